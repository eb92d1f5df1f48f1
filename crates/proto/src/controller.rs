//! What hosts of packet-radio controllers have in common, whatever they speak with them: what the channel takes, the line,
//! and frames that a controller has.
//!
//! ```text
//!             Join              Connected, ready            told to end
//!   Apart ------------> Calling ----------------> Open ------------------> Ending
//!     ^    Call (timer)    |                        |                         |
//!     +--------------------+------------------------+-------------------------+  Closed
//! ```

use crate::engine::Indication;
use crate::joint::earlier;
use crate::service::{CloseReason, Frames, FramesIndication, StreamRequest};
use crate::setting::{Fault, at_least, number};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the channel behind a controller takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChannelParameters {
    /// Bit rate on the air, bit/s. Default 1,200.
    pub rate_bps: u32,
    /// From keying the transmitter to the first frame, to 10 ms. Default 300 ms.
    pub tx_delay: Duration,
    /// From the end of the last frame to unkeying, to 10 ms. Default 20 ms.
    pub tx_tail: Duration,
    /// One slot of persistence, to 10 ms. Default 100 ms: shorter ones end before others' carrier is noticed.
    pub slot_time: Duration,
    /// The chance to begin in a free slot, of 256: `persistence` + 1. Default 63, a quarter.
    pub persistence: u8,
    /// Both directions at once. Default no.
    pub full_duplex: bool,
}

impl Default for ChannelParameters {
    fn default() -> Self {
        ChannelParameters {
            rate_bps: 1200,
            tx_delay: Duration::from_millis(300),
            tx_tail: Duration::from_millis(20),
            slot_time: Duration::from_millis(100),
            persistence: 63,
            full_duplex: false,
        }
    }
}

impl ChannelParameters {
    /// Walks its numbers.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub fn check(&self) -> Result<(), Fault> {
        number("rate-bps", self.rate_bps, 1..=10_000_000, "1200 and 9600 are usual")?;
        for (key, time) in
            [("tx-delay", self.tx_delay), ("tx-tail", self.tx_tail), ("slot-time", self.slot_time)]
        {
            let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            number(key, ms, 0..=2550, "KISS has one octet for it, in units of 10 ms")?;
        }
        Ok(())
    }

    /// What a frame of so many bytes takes on the air, with check sequence, flag and the stuffing of random data.
    pub(crate) fn air_time(&self, bytes: usize) -> Duration {
        /// A flag and the check sequence.
        const AROUND_BYTES: u64 = 3;
        let bits = 8 * (bytes as u64 + AROUND_BYTES);
        let bits = bits + bits / 62;
        Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.rate_bps.max(1)))
    }

    /// From a free channel to the first frame, on the average.
    pub(crate) fn key_up(&self) -> Duration {
        if self.full_duplex {
            return self.tx_delay;
        }
        self.tx_delay + self.slot_time.mul_f64(256.0 / (f64::from(self.persistence) + 1.0))
    }
}

/// A controller as its host uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The channel behind it.
    pub channel: ChannelParameters,
    /// Frames that it holds at a time, one or more. Default 64.
    pub burst_frames_max: u32,
    /// From the loss of the line to the first attempt to have it again; doubled after each. Default 1 s.
    pub reconnect_min: Duration,
    /// The longest time between attempts. Default 60 s.
    pub reconnect_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            channel: ChannelParameters::default(),
            burst_frames_max: 64,
            reconnect_min: Duration::from_secs(1),
            reconnect_max: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// Walks its numbers.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub fn check(&self) -> Result<(), Fault> {
        at_least("burst-frames-max", self.burst_frames_max, 1, "64 is usual")?;
        self.channel.check().map_err(|fault| fault.within("channel"))
    }
}

/// A frame that the controller has, and what else is known of it.
#[derive(Debug)]
pub(crate) struct HeldFrame<T> {
    /// Its user is told when it has left.
    pub(crate) user_token: Option<u64>,
    pub(crate) air_time: Duration,
    /// When it should have left.
    pub(crate) leaves_at: Instant,
    pub(crate) more: T,
}

/// When frames leave of which the first begins then.
pub(crate) fn schedule<T>(held: &mut VecDeque<HeldFrame<T>>, begins_at: Instant) {
    let mut at = begins_at;
    for held in held {
        at += held.air_time;
        held.leaves_at = at;
    }
}

/// What of the first of these pieces a line has room for, which it spends.
pub(crate) fn take_piece(out: &mut VecDeque<Bytes>, room: &mut u64) -> Option<Bytes> {
    let front = out.front_mut().filter(|_| *room > 0)?;
    let bytes = front.split_to(front.len().min(usize::try_from(*room).unwrap_or(usize::MAX)));
    if front.is_empty() {
        out.pop_front();
    }
    *room -= bytes.len() as u64;
    Some(bytes)
}

/// From the wish for the channel to room: a task switch and a look into the store take less, and a slot of the channel is
/// several times as long.
pub(crate) const GATHER: Duration = Duration::from_millis(5);

/// The user's turn to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    /// Nobody has asked, or the controller has what it takes.
    None,
    /// It may from then on.
    Gathering(Instant),
    /// It may; what it has not begun to say then waits for the next turn.
    Offered(Instant),
    /// It has begun a burst.
    InBurst,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    /// There is no line.
    Closed,
    Connecting,
    Open,
    /// The line is being ended.
    Closing,
}

/// The line to a controller, and what its user is told: called when it is wanted, and again when it is lost.
#[derive(Debug)]
pub struct ControllerLine {
    reconnect_min: Duration,
    reconnect_max: Duration,
    state: LineState,
    call_at: Option<Instant>,
    failures: u32,
    connections: u64,
    last_close: Option<CloseReason>,
    wants_line: bool,
    wants_end: bool,
    to_release: u64,
    room: u64,
    /// Bytes for the line, what belongs together in one piece.
    out: VecDeque<Bytes>,
    announced_room: u32,
    /// Its user has asked for the channel, and has not had it since.
    seized: bool,
    grant: Grant,
    indications: VecDeque<FramesIndication>,
}

impl ControllerLine {
    pub(crate) fn new(config: &Config) -> Self {
        ControllerLine {
            reconnect_min: config.reconnect_min,
            reconnect_max: config.reconnect_max,
            state: LineState::Closed,
            call_at: None,
            failures: 0,
            connections: 0,
            last_close: None,
            wants_line: false,
            wants_end: false,
            to_release: 0,
            room: 0,
            out: VecDeque::new(),
            announced_room: 0,
            seized: false,
            grant: Grant::None,
            indications: VecDeque::new(),
        }
    }

    /// It stands, and the controller takes frames.
    pub fn is_open(&self) -> bool {
        self.state == LineState::Open
    }

    /// Attempts to have it that failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Times that it stood.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Why it ended the last time.
    pub fn last_close(&self) -> Option<CloseReason> {
        self.last_close
    }

    pub(crate) fn join(&mut self) {
        self.wants_line |= self.state == LineState::Closed;
    }

    /// The controller is ready.
    pub(crate) fn opened(&mut self) {
        (self.state, self.failures) = (LineState::Open, 0);
        (self.call_at, self.wants_line) = (None, false);
        self.connections += 1;
        self.indications.push_back(FramesIndication::Carrier(true));
    }

    /// It is there no more; what waited for it is dropped. Frames that the controller had are as lost as if nobody had heard
    /// them: whoever waits for an answer must not wait for ever.
    pub(crate) fn closed<T>(&mut self, now: Instant, reason: CloseReason, held: &mut VecDeque<HeldFrame<T>>) {
        self.last_close = Some(reason);
        self.wants_end = false;
        self.lose(LineState::Closed, held);
        let wait = self.reconnect_min * (1 << self.failures.min(16));
        self.failures += 1;
        self.call_at = Some(now + wait.min(self.reconnect_max));
    }

    /// It is of no more use, and is ended.
    pub(crate) fn end<T>(&mut self, held: &mut VecDeque<HeldFrame<T>>) {
        self.lose(LineState::Closing, held);
        self.wants_end = true;
    }

    fn lose<T>(&mut self, then: LineState, held: &mut VecDeque<HeldFrame<T>>) {
        let was_open = core::mem::replace(&mut self.state, then) == LineState::Open;
        self.out.clear();
        (self.room, self.to_release) = (0, 0);
        self.grant = Grant::None;
        // A user that is told of the loss of the line asks anew; one that has never had it still wants it.
        self.seized &= !was_open;
        for held in held.drain(..) {
            self.left(&held);
        }
        if was_open {
            self.indications.push_back(FramesIndication::Carrier(false));
        }
    }

    /// A frame has left, as far as is known.
    pub(crate) fn left<T>(&mut self, held: &HeldFrame<T>) {
        self.indications.extend(held.user_token.map(FramesIndication::Transmitted));
    }

    /// A frame was heard.
    pub(crate) fn rise(&mut self, bytes: Bytes) {
        self.indications.push_back(FramesIndication::Frame(bytes));
    }

    pub(crate) fn write(&mut self, bytes: Bytes) {
        self.out.push_back(bytes);
    }

    /// It has taken all there was.
    pub(crate) fn is_clear(&self) -> bool {
        self.out.is_empty()
    }

    pub(crate) fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// So many bytes came; false: nobody listens to them any more.
    pub(crate) fn hears(&mut self, bytes: usize) -> bool {
        self.to_release += bytes as u64;
        self.state != LineState::Closing
    }

    /// Spends the room for one frame; how much is left.
    pub(crate) fn spend(&mut self) -> u32 {
        assert!(self.announced_room > 0, "a frame for a controller without room");
        self.announced_room -= 1;
        self.grant = Grant::InBurst;
        self.announced_room
    }

    /// The room that its user believes in.
    pub(crate) fn announced_room(&self) -> u32 {
        self.announced_room
    }

    /// `room`: for how many frames there is room now.
    pub(crate) fn handle_timeout(&mut self, now: Instant, room: u32) {
        if self.call_at.take_if(|at| *at <= now).is_some() {
            self.wants_line = true;
        }
        match self.grant {
            // A wish that was not granted stands: its user asks once.
            Grant::Gathering(at) if at <= now && room == 0 => self.grant = Grant::None,
            Grant::Gathering(at) if at <= now => {
                (self.seized, self.grant) = (false, Grant::Offered(now + GATHER));
            }
            Grant::Offered(until) if until <= now => self.grant = Grant::None,
            Grant::None | Grant::Gathering(_) | Grant::Offered(_) | Grant::InBurst => {}
        }
    }

    /// Its user has something to say.
    pub(crate) fn seize(&mut self) {
        self.seized = true;
    }

    /// There is room for so many frames, if anybody wants it: whoever has asked gets it soon.
    pub(crate) fn offer(&mut self, now: Instant, room: u32) {
        if self.seized && room > 0 && self.grant == Grant::None {
            self.grant = Grant::Gathering(now + GATHER);
        }
    }

    /// A burst is complete.
    pub(crate) fn end_grant(&mut self) {
        self.grant = Grant::None;
    }

    /// `room`: for how many frames there is room now.
    pub(crate) fn poll_indication(&mut self, room: u32) -> Option<Indication<Frames>> {
        if let Some(indication) = self.indications.pop_front() {
            return Some(indication);
        }
        let room = if matches!(self.grant, Grant::Offered(_) | Grant::InBurst) { room } else { 0 };
        (room != self.announced_room).then(|| {
            self.announced_room = room;
            FramesIndication::Room(room)
        })
    }

    pub(crate) fn poll_request(&mut self) -> Option<StreamRequest> {
        if core::mem::take(&mut self.wants_line) {
            self.state = LineState::Connecting;
            return Some(StreamRequest::Connect);
        }
        if core::mem::take(&mut self.wants_end) {
            return Some(StreamRequest::Abort);
        }
        if self.to_release > 0 {
            return Some(StreamRequest::Release(core::mem::take(&mut self.to_release)));
        }
        take_piece(&mut self.out, &mut self.room).map(StreamRequest::Write)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let grant = match self.grant {
            Grant::None | Grant::InBurst => None,
            Grant::Gathering(at) | Grant::Offered(at) => Some(at),
        };
        earlier(self.call_at, grant)
    }
}
