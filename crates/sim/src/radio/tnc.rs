//! Controller (TNC) between a host and a radio channel, as an engine that provides [`Frames`] over [`Frames`].
//!
//! ```text
//!   host ==== serial line ====> buffer -> processor -> turnaround -> channel (Seize, room, frames)
//!        <=== serial line ===== processor <--------------------------- received frames
//! ```
//!
//! The host has room as long as the controller accepts frames in advance; the controller seizes the channel by itself
//! and sends in one transmission all frames that are ready then and that become ready while it is keyed. Both
//! directions of the serial line and of the processor work concurrently. A node without this engine has an ideal
//! controller: the channel asks the host itself for frames at the moment at which it is won.
//!
//! Source: the KISS protocol (frames between two FENDs after a command byte, two bytes for each FEND and FESC inside).

use crate::units::millis;
use bytes::Bytes;
use longwire_proto::engine::Engine;
use longwire_proto::joint::earlier;
use longwire_proto::service::{Frames, FramesIndication, FramesRequest, Shares};
use longwire_proto::settings;
use longwire_proto::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

settings! {
    /// Configuration of a controller. The default controller has no delays.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct TncConfig {
        /// Rate between host and controller, bit/s, with ten bits per byte; `None` for no delay. Default: `None`.
        pub serial_bps: Option<u32>,
        /// Processing time of each frame in each direction, milliseconds. Default: 0.
        #[serde(rename = "frame-time-ms", with = "millis")]
        pub frame_time: Duration,
        /// Time from having frames to send to the channel access, once per transmission, milliseconds. Default: 0.
        #[serde(rename = "turnaround-ms", with = "millis")]
        pub turnaround: Duration,
        /// Maximum number of frames from the host before the first of them has left, 1 or more. Default: 128.
        pub ahead_frames: u32 = 128,
        /// Frames for which there is space; others are dropped when they arrive over the serial line. Default: 128.
        pub buffer_frames: u32 = 128,
        /// Maximum number of frames per transmission, 1 or more. Default: 128.
        pub burst_frames: u32 = 128,
        /// Reports to the host about its frames. Default: when they have left.
        pub reports: TransmitReports,
        /// True if the host is informed whether the channel is busy. Default: false, as with KISS.
        pub tells_busy: bool,
        /// Firmware fault: after this many received frames without a transmission the controller receives nothing until it
        /// transmits again. Default: `None`, no fault.
        pub deaf_after_frames: Option<u32>,
    }
}

impl TncConfig {
    /// Checks all values. Returns a description of the first invalid one.
    pub fn validate(&self) -> Result<(), String> {
        let rule = |holds: bool, message: &str| if holds { Ok(()) } else { Err(message.to_owned()) };
        rule(self.serial_bps != Some(0), "`serial-bps` is 0; it must be at least 1")?;
        rule(self.ahead_frames > 0, "`ahead-frames` is 0; it must be at least 1")?;
        rule(self.buffer_frames > 0, "`buffer-frames` is 0; it must be at least 1")?;
        rule(self.deaf_after_frames != Some(0), "`deaf-after-frames` is 0; it must be at least 1")?;
        rule(self.burst_frames > 0, "`burst-frames` is 0; it must be at least 1")
    }
}

/// Reports to the host about its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransmitReports {
    /// Reported when the last bit has left the transmitter; for a dropped frame, when it has arrived.
    #[default]
    Left,
    /// Reported when the frame has arrived over the serial line: a host that treats this as transmission has the wrong
    /// time.
    Taken,
    /// Never reported.
    Never,
}

/// Frame from the host.
#[derive(Debug)]
struct BufferedFrame {
    bytes: Bytes,
    token: Option<u64>,
    shares: Shares,
    /// Time of arrival over the serial line.
    comes_at: Instant,
    came: bool,
    /// Time at which the frame can be sent.
    ready_at: Instant,
}

/// Controller (TNC) without AX.25 of its own.
#[derive(Debug, Default)]
pub struct Tnc {
    config: TncConfig,
    /// Frames from the host in order, including those on the serial line.
    held: VecDeque<BufferedFrame>,
    /// Frames passed to the channel: tokens of the host by tokens of the channel.
    leaving: BTreeMap<u64, Option<u64>>,
    next_token: u64,
    /// Ends of the work of the serial line and the processor in each direction.
    line_down: Instant,
    processor_down: Instant,
    line_up: Instant,
    processor_up: Instant,
    /// Frames for the host, in order of time.
    to_host: VecDeque<(Instant, Bytes)>,
    indications: VecDeque<FramesIndication>,
    wants_join: bool,
    announced_room: u32,
    /// Room of the channel, and frames of the current transmission so far.
    room: u32,
    burst: u32,
    /// True if the channel is seized and not yet won.
    seized: bool,
    /// Time of the next channel access; `None` if there is none.
    turns_at: Option<Instant>,
    joined: bool,
    swallowed: u64,
    /// Frames received since the last transmission.
    heard_in_a_row: u32,
    unheard: u64,
}

impl Tnc {
    /// Makes an idle controller.
    ///
    /// # Panics
    /// Panics if the configuration is invalid.
    pub fn new(config: TncConfig) -> Self {
        if let Err(why) = config.validate() {
            panic!("a controller: {why}");
        }
        Tnc { config, ..Tnc::default() }
    }

    /// Returns the number of frames dropped for lack of space.
    pub fn swallowed(&self) -> u64 {
        self.swallowed
    }

    /// Returns the number of frames missed because of the firmware fault.
    pub fn unheard(&self) -> u64 {
        self.unheard
    }

    fn host_room(&self) -> u32 {
        let here = (self.held.len() + self.leaving.len()) as u32;
        if self.joined { self.config.ahead_frames.saturating_sub(here) } else { 0 }
    }

    fn take(&mut self, now: Instant, bytes: Bytes, token: Option<u64>, shares: Shares) {
        assert!(self.announced_room > 0, "a frame for a controller without room");
        self.announced_room -= 1;
        let comes_at = self.line_down.max(now) + serial_time(self.config.serial_bps, &bytes);
        self.line_down = comes_at;
        let ready_at = self.processor_down.max(comes_at) + self.config.frame_time;
        self.processor_down = ready_at;
        self.held.push_back(BufferedFrame { bytes, token, shares, comes_at, came: false, ready_at });
        self.advance(now);
    }

    fn hear(&mut self, now: Instant, bytes: Bytes) {
        if self.config.deaf_after_frames.is_some_and(|most| self.heard_in_a_row >= most) {
            self.unheard += 1;
            return;
        }
        self.heard_in_a_row += 1;
        self.processor_up = self.processor_up.max(now) + self.config.frame_time;
        self.line_up = self.line_up.max(self.processor_up) + serial_time(self.config.serial_bps, &bytes);
        self.to_host.push_back((self.line_up, bytes));
    }

    /// Processes everything that is due.
    fn advance(&mut self, now: Instant) {
        self.come(now);
        while self.to_host.front().is_some_and(|(at, _)| *at <= now) {
            let (_, bytes) = self.to_host.pop_front().expect("checked above");
            self.indications.push_back(FramesIndication::Frame(bytes));
        }
    }

    /// Receives frames from the serial line, and drops those without space.
    fn come(&mut self, now: Instant) {
        let space = self.config.buffer_frames as usize;
        let mut here = self.held.iter().filter(|held| held.came).count() + self.leaving.len();
        let (reports, indications, swallowed) =
            (self.config.reports, &mut self.indications, &mut self.swallowed);
        self.held.retain_mut(|held| {
            if held.came || held.comes_at > now {
                return true;
            }
            held.came = true;
            let fits = here < space;
            here += usize::from(fits);
            *swallowed += u64::from(!fits);
            if reports == TransmitReports::Taken || (reports == TransmitReports::Left && !fits) {
                indications.extend(held.token.take().map(FramesIndication::Transmitted));
            }
            fits
        });
    }

    fn left(&mut self, token: u64) {
        let Some(user_token) = self.leaving.remove(&token) else { return };
        if self.config.reports == TransmitReports::Left {
            self.indications.extend(user_token.map(FramesIndication::Transmitted));
        }
    }

    /// Returns the next frame for a channel with room.
    fn next_frame(&mut self, now: Instant) -> Option<FramesRequest> {
        if self.burst >= self.config.burst_frames || self.held.front()?.ready_at > now {
            return None;
        }
        let BufferedFrame { bytes, token, shares, .. } = self.held.pop_front()?;
        self.heard_in_a_row = 0;
        self.room -= 1;
        self.burst += 1;
        let own = self.next_token;
        self.next_token += 1;
        self.leaving.insert(own, token);
        let last = self.burst == self.config.burst_frames;
        Some(FramesRequest::Frame { bytes, token: Some(own), last, shares })
    }
}

/// Returns the time of a frame on the serial line.
fn serial_time(bps: Option<u32>, frame: &[u8]) -> Duration {
    /// FEND, command, FEND.
    const AROUND_BYTES: usize = 3;
    const FEND: u8 = 0xc0;
    const FESC: u8 = 0xdb;
    let Some(bps) = bps else { return Duration::ZERO };
    let escaped = frame.iter().filter(|byte| matches!(**byte, FEND | FESC)).count();
    let bits = 10 * (frame.len() + escaped + AROUND_BYTES) as u64;
    Duration::from_nanos((bits * 1_000_000_000).div_ceil(u64::from(bps)))
}

impl Engine for Tnc {
    type Above = Frames;
    type Below = Frames;

    fn handle_request(&mut self, now: Instant, request: FramesRequest) {
        match request {
            FramesRequest::Join => (self.wants_join, self.joined) = (true, true),
            // The controller seizes the channel by itself.
            FramesRequest::Seize => {}
            FramesRequest::Frame { bytes, token, shares, .. } => self.take(now, bytes, token, shares),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: FramesIndication) {
        match indication {
            FramesIndication::Room(room) => {
                if room == 0 || self.room == 0 {
                    // A new transmission.
                    self.burst = 0;
                }
                (self.room, self.seized) = (room, false);
            }
            FramesIndication::Frame(bytes) => self.hear(now, bytes),
            FramesIndication::Transmitted(token) => self.left(token),
            FramesIndication::Busy(_) if !self.config.tells_busy => {}
            FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {
                self.indications.push_back(indication)
            }
        }
        self.advance(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<FramesIndication> {
        if let Some(indication) = self.indications.pop_front() {
            return Some(indication);
        }
        let room = self.host_room();
        (core::mem::replace(&mut self.announced_room, room) != room).then_some(FramesIndication::Room(room))
    }

    fn poll_request(&mut self, now: Instant) -> Option<FramesRequest> {
        if core::mem::take(&mut self.wants_join) {
            return Some(FramesRequest::Join);
        }
        if self.room > 0 {
            self.turns_at = None;
            return self.next_frame(now);
        }
        let ready = self.held.front().is_some_and(|held| held.ready_at <= now);
        if self.seized || !ready {
            return None;
        }
        if *self.turns_at.get_or_insert(now + self.config.turnaround) > now {
            return None;
        }
        self.turns_at = None;
        self.seized = true;
        Some(FramesRequest::Seize)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let coming = self.held.iter().find(|held| !held.came).map(|held| held.comes_at);
        let ready = self.held.iter().find(|held| held.came).map(|held| held.ready_at);
        // Frames that are ready wait for the channel or for the turnaround.
        let capped = self.room > 0 && self.burst >= self.config.burst_frames;
        let waits = self.seized || self.turns_at.is_some() || capped;
        let ready = ready.filter(|_| !waits);
        let to_host = self.to_host.front().map(|(at, _)| *at);
        earlier(earlier(coming, ready), earlier(self.turns_at, to_host))
    }
}
