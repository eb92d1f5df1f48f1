//! A TNC: frames above, a line of bytes below.

use super::config::{Acknowledgement, Config, Counters};
use super::framing::{Deframer, enclose};
use super::wire::{Body, Frame};
use crate::engine::{Engine, Indication, Request};
use crate::service::{
    CloseReason, Frames, FramesIndication, FramesRequest, Stream, StreamIndication, StreamRequest,
};
use crate::time::{Duration, Instant, Timers};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Beyond the time that a frame needs, what its acknowledgement may take.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
enum Timer {
    /// The line is tried again.
    Call,
    /// The next frame has left, or should have.
    Leave,
    /// The TNC may say something.
    Poll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no line.
    Apart,
    Calling,
    Open,
    /// The TNC says no more, and the line is being ended.
    Ending,
}

/// A frame that the TNC has.
#[derive(Debug)]
struct Held {
    user_token: Option<u64>,
    /// What the TNC gives back when it has left, and the frame if it may have to be sent again.
    asked: Option<(u16, Option<Bytes>)>,
    air_time: Duration,
    /// When it should have left.
    leaves_at: Instant,
}

/// What is known of the TNC's acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Unknown,
    /// One frame is out that will tell.
    Probing,
    Yes,
    No,
}

/// A TNC in KISS mode. The [module](super) says what it does.
#[derive(Debug)]
pub struct Tnc {
    config: Config,
    state: State,
    answers: Answers,
    timers: Timers<3>,
    /// Attempts to have the line that failed in a row.
    failures: u32,
    last_close: Option<CloseReason>,
    deframer: Deframer,
    wants_line: bool,
    wants_end: bool,
    to_release: u64,
    line_room: u64,
    /// A burst as far as it was handed down.
    gathered: BytesMut,
    /// Bytes for the line, what belongs together in one piece.
    out: VecDeque<Bytes>,
    held: VecDeque<Held>,
    /// The TNC is known to wait for the channel: what it gets now leaves with the rest.
    waits: bool,
    /// Since when it could have the channel.
    since: Instant,
    told_room: u32,
    next_asked: u16,
    indications: VecDeque<FramesIndication>,
    counters: Counters,
}

impl Tnc {
    /// A TNC that is called when its user joins.
    pub fn new(config: Config) -> Self {
        let answers = match config.acknowledgement {
            Acknowledgement::Probe => Answers::Unknown,
            Acknowledgement::Always => Answers::Yes,
            Acknowledgement::Never => Answers::No,
        };
        Tnc {
            config,
            state: State::Apart,
            answers,
            timers: Timers::new(),
            failures: 0,
            last_close: None,
            deframer: Deframer::new(),
            wants_line: false,
            wants_end: false,
            to_release: 0,
            line_room: 0,
            gathered: BytesMut::new(),
            out: VecDeque::new(),
            held: VecDeque::new(),
            waits: false,
            since: Instant::ZERO,
            told_room: 0,
            next_asked: 0,
            indications: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        let damaged = self.counters.damaged + self.deframer.dropped();
        Counters { damaged, ..self.counters }
    }

    /// The line stands.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// The TNC tells when a frame has left; none as long as that is not known.
    pub fn acknowledges(&self) -> Option<bool> {
        match self.answers {
            Answers::Unknown | Answers::Probing => None,
            Answers::Yes => Some(true),
            Answers::No => Some(false),
        }
    }

    /// Frames that it has and that have not left, as far as is known.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// It has frames and others were heard meanwhile: it waits for a clear channel.
    pub fn waits(&self) -> bool {
        self.waits && !self.held.is_empty() && !self.config.full_duplex
    }

    /// Attempts to have the line that failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Why the line ended the last time.
    pub fn last_close(&self) -> Option<CloseReason> {
        self.last_close
    }

    fn opened(&mut self, now: Instant) {
        self.state = State::Open;
        self.failures = 0;
        self.counters.connections += 1;
        // What was cut off in the middle is no beginning of what comes now.
        self.counters.damaged += core::mem::take(&mut self.deframer).dropped();
        if self.config.send_parameters {
            self.send_parameters();
        }
        if let Some(interval) = self.config.poll_interval {
            self.timers.set(Timer::Poll as usize, now + interval);
        }
        self.indications.push_back(FramesIndication::Carrier(true));
    }

    fn send_parameters(&mut self) {
        let units = |time: Duration| u8::try_from(time.as_millis().div_ceil(10)).unwrap_or(u8::MAX);
        let Config { port, tx_delay, tx_tail, slot_time, persistence, full_duplex, .. } = self.config;
        let bodies = [
            Body::TxDelay(units(tx_delay)),
            Body::Persistence(persistence),
            Body::SlotTime(units(slot_time)),
            Body::TxTail(units(tx_tail)),
            Body::FullDuplex(u8::from(full_duplex)),
        ];
        let mut bytes = BytesMut::new();
        bodies.into_iter().for_each(|body| enclose(&Frame { port, body }, self.config.checksum, &mut bytes));
        self.out.push_back(bytes.freeze());
    }

    fn closed(&mut self, now: Instant, reason: CloseReason) {
        self.last_close = Some(reason);
        self.wants_end = false;
        self.lose(State::Apart);
        let wait = self.config.reconnect_min * (1 << self.failures.min(16));
        self.failures += 1;
        self.timers.set(Timer::Call as usize, now + wait.min(self.config.reconnect_max));
    }

    /// The line carries nothing any more.
    fn lose(&mut self, then: State) {
        let was_open = core::mem::replace(&mut self.state, then) == State::Open;
        self.out.clear();
        self.gathered.clear();
        self.line_room = 0;
        self.to_release = 0;
        self.timers.stop_all();
        // They are as lost as if nobody had heard them: whoever waits for an answer must not wait for ever.
        while let Some(held) = self.held.pop_front() {
            self.told(&held);
        }
        if self.answers == Answers::Probing {
            self.answers = Answers::Unknown;
        }
        if was_open {
            self.indications.push_back(FramesIndication::Carrier(false));
        }
    }

    fn told(&mut self, held: &Held) {
        if let Some(token) = held.user_token {
            self.indications.push_back(FramesIndication::Transmitted(token));
        }
    }

    /// A frame for the channel.
    fn send(&mut self, now: Instant, bytes: Bytes, user_token: Option<u64>, last: bool) {
        assert!(self.told_room > 0, "a frame for a TNC without room");
        self.told_room -= 1;
        self.counters.sent += 1;
        let asked = self.asks(user_token.is_some(), last).then(|| {
            let token = self.next_asked;
            self.next_asked = self.next_asked.wrapping_add(1);
            (token, (self.answers == Answers::Probing).then(|| bytes.clone()))
        });
        let air_time = self.config.air_time(bytes.len());
        let body = match &asked {
            Some((token, _)) => Body::DataAcknowledged { token: *token, bytes },
            None => Body::Data(bytes),
        };
        self.enclose(body);
        if self.held.is_empty() {
            self.since = now;
        }
        self.held.push_back(Held { user_token, asked, air_time, leaves_at: now });
        if last || self.told_room == 0 {
            self.out.push_back(self.gathered.split().freeze());
            self.waits = self.config.full_duplex;
            self.schedule();
        }
    }

    /// Whether the TNC is asked to tell when this frame has left.
    fn asks(&mut self, has_token: bool, last: bool) -> bool {
        match self.answers {
            Answers::Unknown if has_token => {
                self.answers = Answers::Probing;
                true
            }
            Answers::Unknown | Answers::Probing | Answers::No => false,
            Answers::Yes => has_token || last,
        }
    }

    fn enclose(&mut self, body: Body) {
        let frame = Frame { port: self.config.port, body };
        enclose(&frame, self.config.checksum, &mut self.gathered);
    }

    /// When the frames leave that the TNC has, if it gets the channel from `since` on as it does on the average.
    fn schedule(&mut self) {
        let mut at = self.since + self.config.key_up();
        for held in &mut self.held {
            at += held.air_time;
            held.leaves_at = at;
        }
        self.set_timer();
    }

    fn set_timer(&mut self) {
        match self.held.front() {
            None => self.timers.stop(Timer::Leave as usize),
            Some(Held { asked, leaves_at, .. }) => {
                let patience = if asked.is_some() { PATIENCE } else { Duration::ZERO };
                self.timers.set(Timer::Leave as usize, *leaves_at + patience);
            }
        }
    }

    /// What should have left by now has; what should have been acknowledged was not.
    fn leave(&mut self, now: Instant) {
        while let Some(held) = self.held.front() {
            let patience = if held.asked.is_some() { PATIENCE } else { Duration::ZERO };
            if held.leaves_at + patience > now {
                break;
            }
            let Some(mut held) = self.held.pop_front() else { break };
            if let Some((_, bytes)) = held.asked.take() {
                self.counters.unacknowledged += 1;
                if let Some(bytes) = bytes.filter(|_| self.answers == Answers::Probing) {
                    self.answers = Answers::No;
                    self.send_again(now, held, bytes);
                    break;
                }
            }
            self.told(&held);
        }
        self.set_timer();
    }

    /// The TNC has swallowed a frame that it was to acknowledge: it gets it as it knows it.
    fn send_again(&mut self, now: Instant, held: Held, bytes: Bytes) {
        let gathered = core::mem::take(&mut self.gathered);
        self.enclose(Body::Data(bytes));
        self.out.push_back(core::mem::replace(&mut self.gathered, gathered).freeze());
        self.held.push_back(held);
        self.since = now;
        self.schedule();
    }

    /// The TNC tells that a frame has left; those before it have, too.
    fn acknowledged(&mut self, token: u16) {
        self.answers = Answers::Yes;
        let is_it = |held: &Held| held.asked.as_ref().is_some_and(|(asked, _)| *asked == token);
        // One that was given up already is known by nobody any more.
        let Some(at) = self.held.iter().position(is_it) else { return };
        for held in self.held.drain(..=at).collect::<Vec<_>>() {
            self.told(&held);
        }
        self.set_timer();
    }

    fn hear(&mut self, now: Instant, mut bytes: Bytes) {
        self.to_release += bytes.len() as u64;
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
            Body::Data(bytes) => {
                self.counters.received += 1;
                self.channel_was_taken(now, bytes.len());
                self.indications.push_back(FramesIndication::Frame(bytes));
                if self.config.poll_interval.is_some() {
                    // One frame is said for each poll: there may be more.
                    self.timers.set(Timer::Poll as usize, now);
                }
            }
            Body::DataAcknowledged { token, bytes } if bytes.is_empty() => self.acknowledged(token),
            Body::Poll => {}
            _ => self.counters.foreign += 1,
        }
    }

    /// A frame was heard to its end: the TNC did not send while it lasted.
    fn channel_was_taken(&mut self, now: Instant, bytes: usize) {
        if self.config.full_duplex || self.held.is_empty() || !self.gathered.is_empty() {
            return;
        }
        let ours = self.held.iter().map(|held| held.air_time).sum::<Duration>() + self.config.tx_delay;
        let theirs = self.config.air_time(bytes) + self.config.tx_delay;
        if now.saturating_since(self.since) >= ours + theirs {
            // There was time for both: it has left before, and this may be the answer.
            if self.answers == Answers::No || self.answers == Answers::Unknown {
                while let Some(held) = self.held.pop_front() {
                    self.told(&held);
                }
            }
        } else {
            self.waits = true;
            self.since = now;
            self.schedule();
        }
        self.set_timer();
    }

    fn room(&self) -> u32 {
        let held = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
        match self.state {
            State::Open if !self.gathered.is_empty() => self.told_room,
            State::Open if held == 0 || self.waits => self.config.burst_frames_max.saturating_sub(held),
            _ => 0,
        }
    }
}

impl Engine for Tnc {
    type Above = Frames;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, request: Request<Frames>) {
        match request {
            FramesRequest::Join => self.wants_line |= self.state == State::Apart,
            // A TNC takes the channel by itself when it has frames.
            FramesRequest::Seize => {}
            FramesRequest::Frame { bytes, token, last, .. } => self.send(now, bytes, token, last),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Stream>) {
        match indication {
            StreamIndication::Connected => self.opened(now),
            StreamIndication::Room(room) => self.line_room = room,
            StreamIndication::Data(bytes) => self.hear(now, bytes),
            // Who says no more takes no more.
            StreamIndication::PeerClosed => {
                self.lose(State::Ending);
                self.wants_end = true;
            }
            StreamIndication::Secured { .. } => {}
            StreamIndication::Closed(reason) => self.closed(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timers.expire(Timer::Call as usize, now) {
            self.wants_line = true;
        }
        if self.timers.expire(Timer::Leave as usize, now) {
            self.leave(now);
        }
        if self.timers.expire(Timer::Poll as usize, now)
            && let Some(interval) = self.config.poll_interval
        {
            self.timers.set(Timer::Poll as usize, now + interval);
            let mut poll = BytesMut::new();
            let frame = Frame { port: self.config.port, body: Body::Poll };
            enclose(&frame, self.config.checksum, &mut poll);
            // A line that takes nothing gets no more polls.
            if self.out.is_empty() {
                self.out.push_back(poll.freeze());
            }
        }
    }

    fn poll_indication(&mut self) -> Option<Indication<Frames>> {
        if let Some(indication) = self.indications.pop_front() {
            return Some(indication);
        }
        let room = self.room();
        (room != self.told_room).then(|| {
            self.told_room = room;
            FramesIndication::Room(room)
        })
    }

    fn poll_request(&mut self, _now: Instant) -> Option<Request<Stream>> {
        if core::mem::take(&mut self.wants_line) {
            self.state = State::Calling;
            return Some(StreamRequest::Connect);
        }
        if core::mem::take(&mut self.wants_end) {
            return Some(StreamRequest::Abort);
        }
        if self.to_release > 0 {
            return Some(StreamRequest::Release(core::mem::take(&mut self.to_release)));
        }
        let front = self.out.front_mut().filter(|_| self.line_room > 0)?;
        let length = front.len().min(usize::try_from(self.line_room).unwrap_or(usize::MAX));
        let bytes = front.split_to(length);
        if front.is_empty() {
            self.out.pop_front();
        }
        self.line_room -= length as u64;
        Some(StreamRequest::Write(bytes))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }
}
