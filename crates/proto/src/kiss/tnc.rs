//! A TNC: frames above, a line of bytes below.

use super::config::{Acknowledgement, Config, Counters};
use super::framing::{Deframer, enclose};
use super::wire::{Command, Frame};
use crate::controller::{self, ChannelParameters, ControllerLine, HeldFrame, schedule};
use crate::engine::{Engine, Indication, Request};
use crate::joint::earlier;
use crate::observe::Observation;
use crate::service::{Frames, FramesRequest, Stream, StreamIndication};
use crate::time::{Duration, Instant, Timers};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Maximum delay of an acknowledgement beyond the computed end of the frame.
const ACKNOWLEDGEMENT_DELAY_MAX: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
enum Timer {
    /// The next frame has left, or should have.
    Leave,
    /// The next poll is due.
    Poll,
    /// The acknowledgement of the probe frame is overdue: the TNC does not support the mode.
    Probe,
    /// The last burst may begin to leave.
    Join,
}

/// Token that the TNC returns when a frame has left; `None` if it was not asked to.
type HostToken = Option<u16>;

/// Support of acknowledgement mode by the TNC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcknowledgementSupport {
    Unknown,
    /// The probe frame is sent; its acknowledgement will show the support.
    Probing,
    Supported,
    Unsupported,
}

/// Engine for a TNC in KISS mode. The [module](super) describes its behaviour.
#[derive(Debug)]
pub struct KissTnc {
    config: Config,
    channel: ChannelParameters,
    burst_frames_max: u32,
    line: ControllerLine,
    acknowledgement_support: AcknowledgementSupport,
    /// Probe frame, which may be lost without harm.
    probe: Option<Bytes>,
    timers: Timers<4>,
    deframer: Deframer,
    /// Frames of the present burst so far.
    gathered: BytesMut,
    held: VecDeque<HeldFrame<HostToken>>,
    /// The TNC is known to wait for the channel: further frames leave with those that it holds.
    waits_for_channel: bool,
    /// Time since which the TNC could have the channel.
    channel_free_since: Instant,
    next_asked: u16,
    counters: Counters,
}

impl KissTnc {
    /// Creates a TNC that connects when its user joins.
    pub fn new(config: Config, controller: controller::Config) -> Self {
        let acknowledgement_support = match config.acknowledgement {
            Acknowledgement::Probe => AcknowledgementSupport::Unknown,
            Acknowledgement::Always => AcknowledgementSupport::Supported,
            Acknowledgement::Never => AcknowledgementSupport::Unsupported,
        };
        KissTnc {
            config,
            line: ControllerLine::new(&controller),
            channel: controller.channel,
            burst_frames_max: controller.burst_frames_max,
            acknowledgement_support,
            probe: None,
            timers: Timers::new(),
            deframer: Deframer::new(),
            gathered: BytesMut::new(),
            held: VecDeque::new(),
            waits_for_channel: false,
            channel_free_since: Instant::ZERO,
            next_asked: 0,
            counters: Counters::default(),
        }
    }

    /// Sets the probe frame. With [`Acknowledgement::Probe`] it goes ahead of the first burst and shows whether the TNC
    /// supports acknowledgement mode. A TNC that does not may drop it, so no station may need it. Without a probe frame
    /// the mode is not tested.
    pub fn probing(self, frame: Bytes) -> Self {
        KissTnc { probe: Some(frame), ..self }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        let damaged = self.counters.damaged + self.deframer.dropped();
        Counters { damaged, connections: self.line.connections(), ..self.counters }
    }

    /// Returns the line to the TNC.
    pub fn line(&self) -> &ControllerLine {
        &self.line
    }

    /// Returns whether the TNC reports transmitted frames; `None` while that is unknown.
    pub fn acknowledges(&self) -> Option<bool> {
        match self.acknowledgement_support {
            AcknowledgementSupport::Unknown | AcknowledgementSupport::Probing => None,
            AcknowledgementSupport::Supported => Some(true),
            AcknowledgementSupport::Unsupported => Some(false),
        }
    }

    /// Returns the number of frames that the TNC holds and that have not left, as far as this side can know.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns true if the TNC holds frames and has received others since: it waits for a clear channel.
    pub fn waits(&self) -> bool {
        self.waits_for_channel && !self.held.is_empty() && !self.channel.full_duplex
    }

    fn opened(&mut self, now: Instant) {
        // A content that was cut off is not the beginning of the next one.
        self.counters.damaged += core::mem::take(&mut self.deframer).dropped();
        if self.config.send_parameters {
            self.send_parameters();
        }
        if let Some(interval) = self.config.poll_interval {
            self.timers.set(Timer::Poll as usize, now + interval);
        }
        self.line.opened();
    }

    fn send_parameters(&mut self) {
        let units = |time: Duration| u8::try_from(time.as_millis().div_ceil(10)).unwrap_or(u8::MAX);
        let ChannelParameters { tx_delay, tx_tail, slot_time, persistence, full_duplex, .. } = self.channel;
        let port = self.config.port;
        let bodies = [
            Command::TxDelay(units(tx_delay)),
            Command::Persistence(persistence),
            Command::SlotTime(units(slot_time)),
            Command::TxTail(units(tx_tail)),
            Command::FullDuplex(u8::from(full_duplex)),
        ];
        let mut bytes = BytesMut::new();
        bodies.into_iter().for_each(|body| enclose(&Frame { port, body }, self.config.checksum, &mut bytes));
        self.line.write(bytes.freeze());
    }

    /// Clears the state of a line that is lost.
    fn lost(&mut self) {
        self.gathered.clear();
        self.timers.stop_all();
        if self.acknowledgement_support == AcknowledgementSupport::Probing {
            self.acknowledgement_support = AcknowledgementSupport::Unknown;
        }
    }

    /// Sends a frame to the TNC.
    fn send(&mut self, now: Instant, bytes: Bytes, user_token: Option<u64>, last: bool) {
        let room = self.line.spend();
        self.counters.sent += 1;
        if self.held.is_empty() {
            self.channel_free_since = now;
        }
        let probe = self.probe();
        let air_time = probe + self.channel.air_time(bytes.len());
        let asked = (self.acknowledgement_support == AcknowledgementSupport::Supported
            && (user_token.is_some() || last))
            .then(|| self.token());
        self.enclose(match asked {
            Some(token) => Command::DataAcknowledged { token, bytes },
            None => Command::Data(bytes),
        });
        self.held.push_back(HeldFrame { user_token, air_time, leaves_at: now, more: asked });
        if last || room == 0 {
            self.line.write(self.gathered.split().freeze());
            self.line.end_grant();
            self.waits_for_channel = self.channel.full_duplex;
            if self.channel_free_since == now {
                self.timers.set(Timer::Join as usize, now + self.channel.tx_delay);
            }
            self.schedule();
        }
    }

    /// Puts the probe frame ahead of the first burst. Returns its time on the channel.
    fn probe(&mut self) -> Duration {
        let Some(bytes) =
            self.probe.clone().filter(|_| self.acknowledgement_support == AcknowledgementSupport::Unknown)
        else {
            return Duration::ZERO;
        };
        self.acknowledgement_support = AcknowledgementSupport::Probing;
        let (air_time, token) = (self.channel.air_time(bytes.len()), self.token());
        self.enclose(Command::DataAcknowledged { token, bytes });
        air_time
    }

    fn token(&mut self) -> u16 {
        let token = self.next_asked;
        self.next_asked = token.wrapping_add(1);
        token
    }

    fn enclose(&mut self, body: Command) {
        let frame = Frame { port: self.config.port, body };
        enclose(&frame, self.config.checksum, &mut self.gathered);
    }

    /// Computes when the held frames leave if the TNC gets the channel after the mean wait from `channel_free_since`.
    fn schedule(&mut self) {
        schedule(&mut self.held, self.channel_free_since + self.channel.key_up());
        self.set_timer();
    }

    fn set_timer(&mut self) {
        match self.held.front() {
            None => self.timers.stop(Timer::Leave as usize),
            Some(HeldFrame { more: asked, leaves_at, .. }) => {
                let delay = if asked.is_some() { ACKNOWLEDGEMENT_DELAY_MAX } else { Duration::ZERO };
                self.timers.set(Timer::Leave as usize, *leaves_at + delay);
            }
        }
    }

    /// Removes frames that should have left by now, and those whose acknowledgement is overdue.
    fn leave(&mut self, now: Instant) {
        while let Some(held) = self.held.front() {
            let delay = if held.more.is_some() { ACKNOWLEDGEMENT_DELAY_MAX } else { Duration::ZERO };
            if held.leaves_at + delay > now {
                break;
            }
            let Some(held) = self.held.pop_front() else { break };
            self.counters.unacknowledged += u64::from(held.more.is_some());
            self.line.left(&held);
        }
        self.has_left(now);
    }

    /// Frames have left, as far as this side can know. The probe frame was ahead of the first, so its acknowledgement
    /// is due.
    fn has_left(&mut self, now: Instant) {
        if self.acknowledgement_support == AcknowledgementSupport::Probing
            && self.timers.get(Timer::Probe as usize).is_none()
        {
            self.timers.set(Timer::Probe as usize, now + ACKNOWLEDGEMENT_DELAY_MAX);
        }
        self.set_timer();
    }

    /// The TNC reports a frame as transmitted; those before it have left, too.
    fn acknowledged(&mut self, token: u16) {
        self.acknowledgement_support = AcknowledgementSupport::Supported;
        self.timers.stop(Timer::Probe as usize);
        // The frame was already treated as transmitted.
        let Some(at) = self.held.iter().position(|held| held.more == Some(token)) else { return };
        for held in self.held.drain(..=at).collect::<Vec<_>>() {
            self.line.left(&held);
        }
        self.set_timer();
    }

    fn hear(&mut self, now: Instant, mut bytes: Bytes) {
        if !self.line.hears(bytes.len()) {
            return;
        }
        while let Some(content) = self.deframer.next(&mut bytes) {
            match self.config.checksum.strip(content).and_then(|mut plain| Frame::decode(&mut plain)) {
                Ok(frame) => self.hear_frame(now, frame),
                Err(_) => self.counters.damaged += 1,
            }
        }
    }

    fn hear_frame(&mut self, now: Instant, frame: Frame) {
        if frame.port != self.config.port {
            self.counters.foreign += 1;
            return;
        }
        match frame.body {
            Command::Data(bytes) => {
                self.counters.received += 1;
                self.channel_was_taken(now, bytes.len());
                self.line.rise(bytes);
                if self.config.poll_interval.is_some() {
                    // The TNC sends one frame per poll: there may be more.
                    self.timers.set(Timer::Poll as usize, now);
                }
            }
            Command::DataAcknowledged { token, bytes } if bytes.is_empty() => self.acknowledged(token),
            Command::Poll => {}
            _ => self.counters.foreign += 1,
        }
    }

    /// A frame was received to its end: the TNC did not send while it lasted.
    fn channel_was_taken(&mut self, now: Instant, bytes: usize) {
        if self.channel.full_duplex || self.held.is_empty() || !self.gathered.is_empty() {
            return;
        }
        let ours = self.held.iter().map(|held| held.air_time).sum::<Duration>() + self.channel.tx_delay;
        let theirs = self.channel.air_time(bytes) + self.channel.tx_delay;
        if now.saturating_since(self.channel_free_since) >= ours + theirs {
            // There was time for both: the burst left first, and this frame may be the answer.
            while self.held.front().is_some_and(|held| held.more.is_none()) {
                self.held.pop_front().into_iter().for_each(|held| self.line.left(&held));
            }
            self.has_left(now);
        } else {
            self.waits_for_channel = true;
            self.channel_free_since = now;
            self.schedule();
        }
    }

    /// Returns true if no bit of the burst can have left: further frames go in the same key-up, such as a user's
    /// response to the packets that the first frame acknowledges.
    fn joins(&self) -> bool {
        self.timers.get(Timer::Join as usize).is_some()
    }

    fn room(&self) -> u32 {
        let held = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
        match (self.line.is_open(), self.gathered.is_empty()) {
            (true, false) => self.line.announced_room(),
            (true, true) if held == 0 || self.waits_for_channel || self.joins() => {
                self.burst_frames_max.saturating_sub(held)
            }
            _ => 0,
        }
    }
}

impl Engine for KissTnc {
    type Above = Frames;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, request: Request<Frames>) {
        match request {
            FramesRequest::Join => self.line.join(),
            // A TNC takes the channel by itself when it has frames.
            FramesRequest::Seize => self.line.seize(),
            FramesRequest::Frame { bytes, token, last, .. } => self.send(now, bytes, token, last),
        }
        self.line.offer(now, self.room());
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Stream>) {
        match indication {
            StreamIndication::Connected => self.opened(now),
            StreamIndication::Room(room) => self.line.set_room(room),
            StreamIndication::Data(bytes) => self.hear(now, bytes),
            // A TNC that has closed its direction accepts nothing either.
            StreamIndication::PeerClosed => {
                self.lost();
                self.line.end(&mut self.held);
            }
            StreamIndication::Secured { .. } => {}
            StreamIndication::Closed(reason) => {
                self.lost();
                self.line.closed(now, reason, &mut self.held);
            }
        }
        self.line.offer(now, self.room());
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timers.expire(Timer::Leave as usize, now) {
            self.leave(now);
        }
        if self.timers.expire(Timer::Poll as usize, now)
            && let Some(interval) = self.config.poll_interval
        {
            self.timers.set(Timer::Poll as usize, now + interval);
            let mut poll = BytesMut::new();
            let frame = Frame { port: self.config.port, body: Command::Poll };
            enclose(&frame, self.config.checksum, &mut poll);
            // No further polls accumulate while the line accepts nothing.
            if self.line.is_clear() {
                self.line.write(poll.freeze());
            }
        }
        self.timers.expire(Timer::Join as usize, now);
        if self.timers.expire(Timer::Probe as usize, now) {
            self.counters.unacknowledged += 1;
            self.acknowledgement_support = AcknowledgementSupport::Unsupported;
        }
        self.line.handle_timeout(now, self.room());
        self.line.offer(now, self.room());
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<Indication<Frames>> {
        let room = self.room();
        self.line.poll_indication(room)
    }

    fn poll_request(&mut self, _now: Instant) -> Option<Request<Stream>> {
        self.line.poll_request()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.timers.next(), self.line.poll_timeout())
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("kiss").count(&self.counters());
        part.tell("open", self.line.is_open()).tell("failures", u64::from(self.line.failures()));
    }
}
