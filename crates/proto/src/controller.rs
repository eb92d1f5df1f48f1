//! Parts that hosts of packet-radio controllers share, whatever their protocol: the parameters of the channel, the line
//! to the controller, and the frames that a controller holds.
//!
//! ```text
//!             Join              controller ready           end
//!   Closed --------> Connecting ----------------> Open --------> Closing
//!     ^   retry timer    |                          |               |
//!     +------------------+--------------------------+---------------+  stream closed
//! ```

use crate::engine::Indication;
use crate::joint::earlier;
use crate::kit::Backoff;
use crate::service::{CloseReason, Frames, FramesIndication, StreamRequest};
use crate::setting::{Fault, Settings, at_least, number};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Parameters of the radio channel behind a controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChannelParameters {
    /// Bit rate on the channel, bit/s. Default 1,200.
    pub rate_bps: u32,
    /// Time from key-up to the first frame (TXDELAY), in steps of 10 ms. Default 300 ms.
    pub tx_delay: Duration,
    /// Time from the end of the last frame to key-down (TXTAIL), in steps of 10 ms. Default 20 ms.
    pub tx_tail: Duration,
    /// Slot time of p-persistence, in steps of 10 ms. Default 100 ms; shorter slots end before another station's
    /// carrier is detected.
    pub slot_time: Duration,
    /// Persistence P: the probability of transmitting in a free slot is (P + 1) / 256. Default 63, a quarter.
    pub persistence: u8,
    /// True if the station transmits and receives at the same time. Default false.
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

impl Settings for ChannelParameters {
    fn check(&self) -> Result<(), Fault> {
        number("rate-bps", self.rate_bps, 1..=10_000_000, "1200 and 9600 are usual")?;
        for (key, time) in
            [("tx-delay", self.tx_delay), ("tx-tail", self.tx_tail), ("slot-time", self.slot_time)]
        {
            let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            number(key, ms, 0..=2550, "KISS has one octet for it, in units of 10 ms")?;
        }
        Ok(())
    }
}

impl ChannelParameters {
    /// Returns the time on the channel of a frame of `bytes` bytes, with check sequence, one flag and the bit stuffing
    /// of random data.
    pub(crate) fn air_time(&self, bytes: usize) -> Duration {
        /// Length of a flag and the check sequence.
        const AROUND_BYTES: u64 = 3;
        let bits = 8 * (bytes as u64 + AROUND_BYTES);
        let bits = bits + bits / 62;
        Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.rate_bps.max(1)))
    }

    /// Returns the mean time from a free channel to the first frame.
    pub(crate) fn key_up(&self) -> Duration {
        if self.full_duplex {
            return self.tx_delay;
        }
        self.tx_delay + self.slot_time.mul_f64(256.0 / (f64::from(self.persistence) + 1.0))
    }
}

/// Settings of a host for its controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Radio channel behind the controller.
    pub channel: ChannelParameters,
    /// Maximum frames that the controller holds at once, at least 1. Default 64.
    pub burst_frames_max: u32,
    /// Delay between the loss of the line and the first attempt to reconnect; doubled after each failure. Default 1 s.
    pub reconnect_min: Duration,
    /// Maximum delay between attempts. Default 60 s.
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

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        at_least("burst-frames-max", self.burst_frames_max, 1, "64 is usual")?;
        self.channel.check().map_err(|fault| fault.within("channel"))
    }
}

/// A frame that the controller holds, and further data of the host about it.
#[derive(Debug)]
pub(crate) struct HeldFrame<T> {
    /// Token for [`FramesIndication::Transmitted`]; `None` if the user did not ask for it.
    pub(crate) user_token: Option<u64>,
    pub(crate) air_time: Duration,
    /// Expected end of the frame's transmission.
    pub(crate) leaves_at: Instant,
    pub(crate) more: T,
}

/// Computes when each of the held frames leaves if the first begins at `begins_at`.
pub(crate) fn schedule<T>(held: &mut VecDeque<HeldFrame<T>>, begins_at: Instant) {
    let mut at = begins_at;
    for held in held {
        at += held.air_time;
        held.leaves_at = at;
    }
}

/// Removes as much of the first piece as the line has room for, and spends that room.
pub(crate) fn take_piece(out: &mut VecDeque<Bytes>, room: &mut u64) -> Option<Bytes> {
    let front = out.front_mut().filter(|_| *room > 0)?;
    let bytes = front.split_to(front.len().min(usize::try_from(*room).unwrap_or(usize::MAX)));
    if front.is_empty() {
        out.pop_front();
    }
    *room -= bytes.len() as u64;
    Some(bytes)
}

/// Delay between the user's request for the channel and the grant of room, and the time that the grant stays open. A
/// task switch and a look into the store take less, and a slot of the channel is several times as long.
pub(crate) const GATHER: Duration = Duration::from_millis(5);

/// Grant of the channel to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    /// The user has not asked, or the controller has no room.
    None,
    /// The user may begin at this time.
    Gathering(Instant),
    /// The user may begin; if it has not begun at this time, it waits for the next grant.
    Offered(Instant),
    /// The user has begun a burst.
    InBurst,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    /// There is no line.
    Closed,
    Connecting,
    Open,
    /// The line is being closed.
    Closing,
}

/// The line to a controller and the indications to its user. It connects when the user joins, and reconnects when it is
/// lost.
#[derive(Debug)]
pub struct ControllerLine {
    backoff: Backoff,
    state: LineState,
    call_at: Option<Instant>,
    connections: u64,
    last_close: Option<CloseReason>,
    wants_line: bool,
    wants_end: bool,
    to_release: u64,
    room: u64,
    /// Bytes to write; each entry belongs together.
    out: VecDeque<Bytes>,
    announced_room: u32,
    /// True from the user's request for the channel until the grant.
    seized: bool,
    grant: Grant,
    indications: VecDeque<FramesIndication>,
}

impl ControllerLine {
    pub(crate) fn new(config: &Config) -> Self {
        ControllerLine {
            backoff: Backoff::new(config.reconnect_min, config.reconnect_max),
            state: LineState::Closed,
            call_at: None,
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

    /// Returns true if the line is open and the controller accepts frames.
    pub fn is_open(&self) -> bool {
        self.state == LineState::Open
    }

    /// Returns the number of consecutive failed attempts to connect.
    pub fn failures(&self) -> u32 {
        self.backoff.failures()
    }

    /// Returns how many times the line has been opened.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Returns the reason for the last close; `None` before the first.
    pub fn last_close(&self) -> Option<CloseReason> {
        self.last_close
    }

    pub(crate) fn join(&mut self) {
        self.wants_line |= self.state == LineState::Closed;
    }

    /// Notes that the controller is ready.
    pub(crate) fn opened(&mut self) {
        self.state = LineState::Open;
        self.backoff.succeed();
        (self.call_at, self.wants_line) = (None, false);
        self.connections += 1;
        self.indications.push_back(FramesIndication::Carrier(true));
    }

    /// Notes that the line is closed, and drops the bytes that waited for it. Frames that the controller held count as
    /// transmitted, as if no station had received them: a user that waits for `Transmitted` must not wait for ever.
    pub(crate) fn closed<T>(&mut self, now: Instant, reason: CloseReason, held: &mut VecDeque<HeldFrame<T>>) {
        self.last_close = Some(reason);
        self.wants_end = false;
        self.lose(LineState::Closed, held);
        self.call_at = Some(now + self.backoff.fail());
    }

    /// Closes a line that is of no more use.
    pub(crate) fn end<T>(&mut self, held: &mut VecDeque<HeldFrame<T>>) {
        self.lose(LineState::Closing, held);
        self.wants_end = true;
    }

    fn lose<T>(&mut self, then: LineState, held: &mut VecDeque<HeldFrame<T>>) {
        let was_open = core::mem::replace(&mut self.state, then) == LineState::Open;
        self.out.clear();
        (self.room, self.to_release) = (0, 0);
        self.grant = Grant::None;
        // After `Carrier(false)` the user asks again; a request made before the line was ever open stays valid.
        self.seized &= !was_open;
        for held in held.drain(..) {
            self.left(&held);
        }
        if was_open {
            self.indications.push_back(FramesIndication::Carrier(false));
        }
    }

    /// Reports a frame as transmitted, as far as this side can know.
    pub(crate) fn left<T>(&mut self, held: &HeldFrame<T>) {
        self.indications.extend(held.user_token.map(FramesIndication::Transmitted));
    }

    /// Reports a received frame.
    pub(crate) fn rise(&mut self, bytes: Bytes) {
        self.indications.push_back(FramesIndication::Frame(bytes));
    }

    pub(crate) fn write(&mut self, bytes: Bytes) {
        self.out.push_back(bytes);
    }

    /// Returns true if nothing waits to be written.
    pub(crate) fn is_clear(&self) -> bool {
        self.out.is_empty()
    }

    pub(crate) fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// Counts received bytes for release. Returns false if they are to be ignored because the line is closing.
    pub(crate) fn hears(&mut self, bytes: usize) -> bool {
        self.to_release += bytes as u64;
        self.state != LineState::Closing
    }

    /// Spends the room for one frame. Returns the room that is left, in frames.
    pub(crate) fn spend(&mut self) -> u32 {
        assert!(self.announced_room > 0, "a frame for a controller without room");
        self.announced_room -= 1;
        self.grant = Grant::InBurst;
        self.announced_room
    }

    /// Returns the room last announced to the user, in frames.
    pub(crate) fn announced_room(&self) -> u32 {
        self.announced_room
    }

    /// Handles expired timers; `room` is the present room in frames.
    pub(crate) fn handle_timeout(&mut self, now: Instant, room: u32) {
        if self.call_at.take_if(|at| *at <= now).is_some() {
            self.wants_line = true;
        }
        match self.grant {
            // An ungranted request stays pending: the user sends `Seize` only once.
            Grant::Gathering(at) if at <= now && room == 0 => self.grant = Grant::None,
            Grant::Gathering(at) if at <= now => {
                (self.seized, self.grant) = (false, Grant::Offered(now + GATHER));
            }
            Grant::Offered(until) if until <= now => self.grant = Grant::None,
            Grant::None | Grant::Gathering(_) | Grant::Offered(_) | Grant::InBurst => {}
        }
    }

    /// Notes that the user asks for the channel.
    pub(crate) fn seize(&mut self) {
        self.seized = true;
    }

    /// Grants `room` frames soon if the user has asked for the channel.
    pub(crate) fn offer(&mut self, now: Instant, room: u32) {
        if self.seized && room > 0 && self.grant == Grant::None {
            self.grant = Grant::Gathering(now + GATHER);
        }
    }

    /// Ends the grant when a burst is complete.
    pub(crate) fn end_grant(&mut self) {
        self.grant = Grant::None;
    }

    /// Returns the next indication; `room` is the present room in frames.
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
