//! A port of an AGWPE server as a link of raw frames: frames above, a line of bytes below.

use super::config::{Config, Counters};
use super::wire::{Frame, Kind, Queued};
use crate::codec::DecodeError;
use crate::engine::{Engine, Indication, Request};
use crate::service::{
    CloseReason, Frames, FramesIndication, FramesRequest, Stream, StreamIndication, StreamRequest,
};
use crate::time::{Duration, Instant, Timers};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;

/// Beyond the time that a burst needs to get the channel, what the server may take to say that it is being sent.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
enum Timer {
    /// The line is tried again.
    Call,
    /// The next frame has left, or should have.
    Leave,
    /// The server is asked how many frames wait.
    Ask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no line.
    Apart,
    Calling,
    Open,
    /// The line is being ended.
    Ending,
}

/// A frame that the server has.
#[derive(Debug)]
struct Held {
    user_token: Option<u64>,
    air_time: Duration,
    /// When it should have left.
    leaves_at: Instant,
}

/// A port of an AGWPE server. The [module](super) says what it does.
#[derive(Debug)]
pub struct Raw {
    config: Config,
    state: State,
    timers: Timers<3>,
    /// Attempts to have the line that failed in a row.
    failures: u32,
    last_close: Option<CloseReason>,
    /// The beginning of a frame of the server's.
    begun: BytesMut,
    wants_line: bool,
    wants_end: bool,
    to_release: u64,
    line_room: u64,
    /// A burst as far as it was handed down.
    gathered: BytesMut,
    /// Bytes for the line.
    out: VecDeque<Bytes>,
    held: VecDeque<Held>,
    /// The server has not said yet that it sends what it has.
    waits: bool,
    told_room: u32,
    indications: VecDeque<FramesIndication>,
    counters: Counters,
}

impl Raw {
    /// A port whose server is called when its user joins.
    pub fn new(config: Config) -> Self {
        Raw {
            config,
            state: State::Apart,
            timers: Timers::new(),
            failures: 0,
            last_close: None,
            begun: BytesMut::new(),
            wants_line: false,
            wants_end: false,
            to_release: 0,
            line_room: 0,
            gathered: BytesMut::new(),
            out: VecDeque::new(),
            held: VecDeque::new(),
            waits: false,
            told_room: 0,
            indications: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The line stands.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Why the line ended the last time.
    pub fn last_close(&self) -> Option<CloseReason> {
        self.last_close
    }

    fn frame(&self, kind: Kind) -> Frame {
        Frame { port: self.config.port, ..Frame::new(kind) }
    }

    fn opened(&mut self) {
        self.state = State::Open;
        self.failures = 0;
        self.counters.connections += 1;
        // Raw frames are off on a line that is new, and this turns them on.
        self.out.push_back(self.frame(Kind::MonitorRaw).to_bytes());
        self.indications.push_back(FramesIndication::Carrier(true));
    }

    fn closed(&mut self, now: Instant, reason: CloseReason) {
        self.last_close = Some(reason);
        self.wants_end = false;
        self.lose(State::Apart);
        let wait = self.config.reconnect_min * (1 << self.failures.min(16));
        self.failures += 1;
        self.timers.set(Timer::Call as usize, now + wait.min(self.config.reconnect_max));
    }

    fn end(&mut self) {
        self.lose(State::Ending);
        self.wants_end = true;
    }

    /// The line carries nothing any more.
    fn lose(&mut self, then: State) {
        let was_open = core::mem::replace(&mut self.state, then) == State::Open;
        self.out.clear();
        self.gathered.clear();
        self.begun.clear();
        (self.line_room, self.to_release) = (0, 0);
        self.timers.stop_all();
        // They are as lost as if nobody had heard them: whoever waits for an answer must not wait for ever.
        while let Some(held) = self.held.pop_front() {
            self.told(&held);
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

    /// A frame for the channel. What is handed down at once is one write, so that it leaves in one key-up.
    fn send(&mut self, now: Instant, bytes: &Bytes, user_token: Option<u64>, last: bool) {
        assert!(self.told_room > 0, "a frame for a server without room");
        self.told_room -= 1;
        self.counters.sent += 1;
        let mut data = BytesMut::with_capacity(bytes.len() + 1);
        data.put_u8(self.config.port << 4);
        data.put_slice(bytes);
        self.frame(Kind::Raw).with(data).encode(&mut self.gathered);
        let air_time = self.config.air_time(bytes.len());
        self.held.push_back(Held { user_token, air_time, leaves_at: now });
        if last || self.told_room == 0 {
            self.frame(Kind::QueuedOnPort).encode(&mut self.gathered);
            self.out.push_back(self.gathered.split().freeze());
            self.waits = true;
            // Until the server says better.
            self.schedule(now + self.config.key_up() + PATIENCE);
        }
    }

    /// When the frames leave that the server has, if the first of them begins then.
    fn schedule(&mut self, begins_at: Instant) {
        let mut at = begins_at;
        for held in &mut self.held {
            at += held.air_time;
            held.leaves_at = at;
        }
        self.set_timer();
    }

    fn set_timer(&mut self) {
        match self.held.front() {
            None => self.timers.stop(Timer::Leave as usize),
            Some(held) => self.timers.set(Timer::Leave as usize, held.leaves_at),
        }
    }

    fn leave(&mut self, now: Instant) {
        if core::mem::take(&mut self.waits) {
            self.counters.unanswered += 1;
            self.timers.stop(Timer::Ask as usize);
        }
        while let Some(held) = self.held.pop_front() {
            if held.leaves_at > now {
                self.held.push_front(held);
                break;
            }
            self.told(&held);
        }
        self.set_timer();
    }

    /// The server says how many frames wait on the port. It takes a frame out of this queue when it begins to send it.
    fn queued(&mut self, now: Instant, frames: u32) {
        if !self.waits {
            return;
        }
        if frames > 0 {
            // The channel is not won yet.
            self.schedule(now + self.config.key_up() + PATIENCE);
            self.timers.set(Timer::Ask as usize, now + self.config.ask_interval);
        } else {
            self.waits = false;
            self.schedule(now + self.config.tx_delay);
        }
    }

    fn hear(&mut self, now: Instant, bytes: &Bytes) {
        self.to_release += bytes.len() as u64;
        self.begun.put_slice(bytes);
        let mut input = core::mem::take(&mut self.begun).freeze();
        loop {
            let rest = input.clone();
            match Frame::decode(&mut input) {
                Ok(frame) => self.hear_frame(now, &frame),
                Err(DecodeError::Incomplete) => {
                    self.begun.put_slice(&rest);
                    return;
                }
                Err(_) => {
                    self.counters.damaged += 1;
                    return self.end();
                }
            }
        }
    }

    fn hear_frame(&mut self, now: Instant, frame: &Frame) {
        match frame.kind {
            Kind::Raw if frame.port == self.config.port && frame.data.len() > 1 => {
                self.counters.received += 1;
                self.indications.push_back(FramesIndication::Frame(frame.data.slice(1..)));
            }
            Kind::QueuedOnPort if frame.port == self.config.port => {
                match Queued::decode(&mut frame.data.clone()) {
                    Ok(Queued(frames)) => self.queued(now, frames),
                    Err(_) => self.counters.foreign += 1,
                }
            }
            _ => self.counters.foreign += 1,
        }
    }

    fn room(&self) -> u32 {
        match self.state {
            State::Open if !self.gathered.is_empty() => self.told_room,
            State::Open if self.held.is_empty() => self.config.burst_frames_max,
            _ => 0,
        }
    }
}

impl Engine for Raw {
    type Above = Frames;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, request: Request<Frames>) {
        match request {
            FramesRequest::Join => self.wants_line |= self.state == State::Apart,
            // A server takes the channel by itself when it has frames.
            FramesRequest::Seize => {}
            FramesRequest::Frame { bytes, token, last, .. } => self.send(now, &bytes, token, last),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Stream>) {
        match indication {
            StreamIndication::Connected => self.opened(),
            StreamIndication::Room(room) => self.line_room = room,
            StreamIndication::Data(bytes) if self.state == State::Open => self.hear(now, &bytes),
            StreamIndication::Data(bytes) => self.to_release += bytes.len() as u64,
            // Who says no more takes no more.
            StreamIndication::PeerClosed => self.end(),
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
        if self.timers.expire(Timer::Ask as usize, now) && self.out.is_empty() {
            // A line that takes nothing gets no more questions.
            self.out.push_back(self.frame(Kind::QueuedOnPort).to_bytes());
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
        let front = self.out.front_mut().filter(|_| self.line_room > 0 && self.state == State::Open)?;
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
