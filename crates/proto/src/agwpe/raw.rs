//! A port of an AGWPE server as a link of raw frames: frames above, a line of bytes below.

use super::config::{Config, Counters};
use super::wire::{Frame, Kind, Ports, Queued};
use crate::codec::DecodeError;
use crate::controller::{self, ChannelParameters, ControllerLine, HeldFrame, schedule};
use crate::engine::{Engine, Indication, Request};
use crate::joint::earlier;
use crate::observe::Observation;
use crate::service::{Frames, FramesRequest, Stream, StreamIndication};
use crate::time::{Duration, Instant, Timers};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;

/// Maximum delay of the server's report that a burst is being sent, beyond the time to get the channel.
const REPORT_DELAY_MAX: Duration = Duration::from_secs(2);
/// Maximum delay of the server's answer to the query for its ports.
const PORTS_DELAY_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Copy)]
enum Timer {
    /// The next frame has left, or should have.
    Leave,
    /// The next query for waiting frames is due.
    Ask,
    /// The answer to the query for the ports is overdue.
    Ports,
}

/// Fault of a server whose line is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFault {
    /// The server does not answer the query for its ports.
    Silent,
    /// The data from the server are not AGWPE.
    NotAgwpe,
    /// The server does not have the port.
    NoPort,
}

/// Engine for a port of an AGWPE server. The [module](super) describes its behaviour.
#[derive(Debug)]
pub struct RawPort {
    config: Config,
    channel: ChannelParameters,
    burst_frames_max: u32,
    line: ControllerLine,
    trouble: Option<ServerFault>,
    timers: Timers<3>,
    /// Beginning of an incomplete frame from the server.
    partial_frame: BytesMut,
    /// Frames of the present burst so far.
    gathered: BytesMut,
    held: VecDeque<HeldFrame<()>>,
    /// True until the server reports that no frame waits.
    waits_for_queue: bool,
    counters: Counters,
}

impl RawPort {
    /// Creates a port that connects to its server when its user joins.
    pub fn new(config: Config, controller: controller::Config) -> Self {
        RawPort {
            config,
            line: ControllerLine::new(&controller),
            channel: controller.channel,
            burst_frames_max: controller.burst_frames_max,
            trouble: None,
            timers: Timers::new(),
            partial_frame: BytesMut::new(),
            gathered: BytesMut::new(),
            held: VecDeque::new(),
            waits_for_queue: false,
            counters: Counters::default(),
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        Counters { connections: self.line.connections(), ..self.counters }
    }

    /// Returns the line to the server.
    pub fn line(&self) -> &ControllerLine {
        &self.line
    }

    /// Returns the reason for which this side closed the line the last time; `None` if the line has worked since.
    pub fn trouble(&self) -> Option<ServerFault> {
        self.trouble
    }

    /// Returns the number of frames that the server holds and that have not left, as far as this side can know.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns true if the server has reported that frames wait for the channel.
    pub fn waits(&self) -> bool {
        self.waits_for_queue && self.timers.get(Timer::Ask as usize).is_some()
    }

    fn frame(&self, kind: Kind) -> Frame {
        Frame { port: self.config.port, ..Frame::new(kind) }
    }

    /// Queries the ports on a new line, to check that the peer is such a server and has the port.
    fn ask_for_ports(&mut self, now: Instant) {
        self.line.write(self.frame(Kind::Ports).to_bytes());
        self.timers.set(Timer::Ports as usize, now + PORTS_DELAY_MAX);
    }

    fn hear_ports(&mut self, data: &Bytes) {
        if self.timers.get(Timer::Ports as usize).is_none() {
            return;
        }
        match Ports::decode(&mut data.clone()) {
            Err(_) => self.give_up(ServerFault::NotAgwpe),
            Ok(Ports(ports)) if !ports.contains(&self.config.port) => self.give_up(ServerFault::NoPort),
            Ok(_) => {
                self.timers.stop(Timer::Ports as usize);
                self.trouble = None;
                // Raw frames are off on a new line, and this turns them on.
                self.line.write(self.frame(Kind::MonitorRaw).to_bytes());
                self.line.opened();
            }
        }
    }

    fn give_up(&mut self, trouble: ServerFault) {
        self.counters.damaged += u64::from(trouble == ServerFault::NotAgwpe);
        self.trouble = Some(trouble);
        self.lost();
        self.line.end(&mut self.held);
    }

    /// Clears the state of a line that is lost.
    fn lost(&mut self) {
        self.gathered.clear();
        self.partial_frame.clear();
        self.timers.stop_all();
    }

    /// Sends a frame to the server. A burst is one write, so that it leaves in one key-up.
    fn send(&mut self, now: Instant, bytes: &Bytes, user_token: Option<u64>, last: bool) {
        let room = self.line.spend();
        self.counters.sent += 1;
        let mut data = BytesMut::with_capacity(bytes.len() + 1);
        data.put_u8(self.config.port << 4);
        data.put_slice(bytes);
        self.frame(Kind::Raw).with(data).encode(&mut self.gathered);
        let air_time = self.channel.air_time(bytes.len());
        self.held.push_back(HeldFrame { user_token, air_time, leaves_at: now, more: () });
        if last || room == 0 {
            self.frame(Kind::QueuedOnPort).encode(&mut self.gathered);
            self.line.write(self.gathered.split().freeze());
            self.line.end_grant();
            self.waits_for_queue = true;
            // Until the server reports the state of its queue.
            self.schedule(now + self.channel.key_up() + REPORT_DELAY_MAX);
        }
    }

    fn schedule(&mut self, begins_at: Instant) {
        schedule(&mut self.held, begins_at);
        self.set_timer();
    }

    fn set_timer(&mut self) {
        match self.held.front() {
            None => self.timers.stop(Timer::Leave as usize),
            Some(held) => self.timers.set(Timer::Leave as usize, held.leaves_at),
        }
    }

    fn leave(&mut self, now: Instant) {
        if core::mem::take(&mut self.waits_for_queue) {
            self.counters.unanswered += 1;
            self.timers.stop(Timer::Ask as usize);
        }
        while let Some(held) = self.held.pop_front() {
            if held.leaves_at > now {
                self.held.push_front(held);
                break;
            }
            self.line.left(&held);
        }
        self.set_timer();
    }

    /// Handles the report of waiting frames. The server removes a frame from this queue when it begins to send it.
    fn queued(&mut self, now: Instant, frames: u32) {
        if !self.waits_for_queue {
            return;
        }
        if frames > 0 {
            // The channel is not won yet.
            self.schedule(now + self.channel.key_up() + REPORT_DELAY_MAX);
            self.timers.set(Timer::Ask as usize, now + self.config.ask_interval);
        } else {
            self.waits_for_queue = false;
            self.schedule(now + self.channel.tx_delay);
        }
    }

    fn hear(&mut self, now: Instant, bytes: &Bytes) {
        if !self.line.hears(bytes.len()) {
            return;
        }
        self.partial_frame.put_slice(bytes);
        let mut input = core::mem::take(&mut self.partial_frame).freeze();
        loop {
            let rest = input.clone();
            match Frame::decode(&mut input) {
                Ok(frame) => {
                    if !self.hear_frame(now, &frame) {
                        return;
                    }
                }
                Err(DecodeError::Incomplete) => {
                    self.partial_frame.put_slice(&rest);
                    return;
                }
                // The beginning of the next frame cannot be found.
                Err(_) => return self.give_up(ServerFault::NotAgwpe),
            }
        }
    }

    /// Returns false if the line is closed.
    fn hear_frame(&mut self, now: Instant, frame: &Frame) -> bool {
        match frame.kind {
            Kind::Ports => {
                self.hear_ports(&frame.data);
                return self.line.is_open();
            }
            Kind::Raw if self.is_of_the_port(frame) && frame.data.len() > 1 => {
                self.counters.received += 1;
                self.line.rise(frame.data.slice(1..));
            }
            Kind::QueuedOnPort if self.is_of_the_port(frame) => {
                match Queued::decode(&mut frame.data.clone()) {
                    Ok(Queued(frames)) => self.queued(now, frames),
                    Err(_) => self.counters.foreign += 1,
                }
            }
            _ => self.counters.foreign += 1,
        }
        true
    }

    fn is_of_the_port(&self, frame: &Frame) -> bool {
        self.line.is_open() && frame.port == self.config.port
    }

    fn room(&self) -> u32 {
        match (self.line.is_open(), self.gathered.is_empty()) {
            (true, false) => self.line.announced_room(),
            (true, true) if self.held.is_empty() => self.burst_frames_max,
            _ => 0,
        }
    }
}

impl Engine for RawPort {
    type Above = Frames;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, request: Request<Frames>) {
        match request {
            FramesRequest::Join => self.line.join(),
            // A server takes the channel by itself when it has frames.
            FramesRequest::Seize => self.line.seize(),
            FramesRequest::Frame { bytes, token, last, .. } => self.send(now, &bytes, token, last),
        }
        self.line.offer(now, self.room());
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Stream>) {
        match indication {
            StreamIndication::Connected => self.ask_for_ports(now),
            StreamIndication::Room(room) => self.line.set_room(room),
            StreamIndication::Data(bytes) => self.hear(now, &bytes),
            // A server that has closed its direction accepts nothing either.
            StreamIndication::PeerClosed => {
                self.trouble = None;
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
        if self.timers.expire(Timer::Ports as usize, now) {
            self.give_up(ServerFault::Silent);
        }
        if self.timers.expire(Timer::Leave as usize, now) {
            self.leave(now);
        }
        if self.timers.expire(Timer::Ask as usize, now) && self.line.is_clear() {
            // No further queries accumulate while the line accepts nothing.
            self.line.write(self.frame(Kind::QueuedOnPort).to_bytes());
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
        let part = view.part("agwpe").count(&self.counters());
        part.tell("open", self.line.is_open()).tell("failures", u64::from(self.line.failures()));
    }
}
