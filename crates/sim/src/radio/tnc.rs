//! A controller (TNC) between a host and a radio channel, as an engine over [`Frames`] that gives [`Frames`].
//!
//! ```text
//!   host ==== serial line ====> buffer -> processor -> turnaround -> channel (Seize, room, frames)
//!        <=== serial line ===== processor <--------------------------- frames heard
//! ```
//!
//! The host has room as long as the controller takes frames ahead; the controller gets the channel by itself and sends in
//! one key-up what is ready then and what becomes ready while it is keyed. Both ways of the serial line, and of the
//! processor, work side by side. A node without this engine has an ideal controller: the channel asks the
//! host itself for frames at the moment at which it is won.
//!
//! Source: the KISS protocol (frames between two FENDs behind a command byte, two bytes for each FEND and FESC inside).

use crate::units::millis;
use bytes::Bytes;
use longwire_proto::engine::Engine;
use longwire_proto::joint::earlier;
use longwire_proto::service::{Frames, FramesIndication, FramesRequest, Shares};
use longwire_proto::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A controller. The defaults are one that takes no time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TncConfig {
    /// Bits a second between host and controller, ten for a byte; none: they take no time. Default: none.
    pub serial_bps: Option<u32>,
    /// What the processor needs for each frame, each way, milliseconds. Default: 0.
    #[serde(rename = "frame-time-ms", with = "millis")]
    pub frame_time: Duration,
    /// From having something to send to trying to get the channel, once for each key-up, milliseconds. Default: 0.
    #[serde(rename = "turnaround-ms", with = "millis")]
    pub turnaround: Duration,
    /// Frames that the host may hand over before the first of them has left, 1 or more. Default: 128.
    pub ahead_frames: u32,
    /// Frames that there is space for; those beyond are swallowed when they come from the serial line. Default: 128.
    pub buffer_frames: u32,
    /// Frames of one key-up at most, 1 or more. Default: 128.
    pub burst_frames: u32,
    /// What the host hears of frames that it handed over. Default: when they have left.
    pub reports: TransmitReports,
    /// The host hears whether the channel is busy. Default: no, as with KISS.
    pub tells_busy: bool,
    /// A fault of firmware: after so many frames heard since it last sent one, it hears nothing until it sends again.
    /// Default: it hears all.
    pub deaf_after_frames: Option<u32>,
}

impl Default for TncConfig {
    fn default() -> Self {
        TncConfig {
            serial_bps: None,
            frame_time: Duration::ZERO,
            turnaround: Duration::ZERO,
            ahead_frames: 128,
            buffer_frames: 128,
            burst_frames: 128,
            reports: TransmitReports::Left,
            tells_busy: false,
            deaf_after_frames: None,
        }
    }
}

impl TncConfig {
    /// Whether every value makes sense; if not, which does not and why.
    pub fn validate(&self) -> Result<(), String> {
        let rule = |holds: bool, message: &str| if holds { Ok(()) } else { Err(message.to_owned()) };
        rule(self.serial_bps != Some(0), "serial-bps is zero: a serial line has a rate")?;
        rule(self.ahead_frames > 0, "ahead-frames is zero: a controller takes a frame or more")?;
        rule(self.buffer_frames > 0, "buffer-frames is zero: there is space for a frame or more")?;
        rule(self.deaf_after_frames != Some(0), "deaf-after-frames is zero: it would never hear anything")?;
        rule(self.burst_frames > 0, "burst-frames is zero: a key-up has a frame or more")
    }
}

/// What a host hears of the frames that it handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransmitReports {
    /// That the last bit has left the transmitter; of a swallowed one, that it has come.
    #[default]
    Left,
    /// That it has come over the serial line: a host that takes this for leaving is wrong about when.
    Taken,
    /// Nothing.
    Never,
}

/// A frame from the host.
#[derive(Debug)]
struct BufferedFrame {
    bytes: Bytes,
    token: Option<u64>,
    shares: Shares,
    /// When it has come over the serial line.
    comes_at: Instant,
    came: bool,
    /// When it can be sent.
    ready_at: Instant,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Tnc {
    config: TncConfig,
    /// From the host, in order; those that have come and those on the line.
    held: VecDeque<BufferedFrame>,
    /// Handed to the channel: the host's tokens by the channel's.
    leaving: BTreeMap<u64, Option<u64>>,
    next_token: u64,
    /// Until when serial line and processor have work, each way.
    line_down: Instant,
    processor_down: Instant,
    line_up: Instant,
    processor_up: Instant,
    /// For the host, in order of time.
    to_host: VecDeque<(Instant, Bytes)>,
    indications: VecDeque<FramesIndication>,
    wants_join: bool,
    announced_room: u32,
    /// The channel's room, and frames of this key-up so far.
    room: u32,
    burst: u32,
    /// It wants the channel and has not got it.
    seized: bool,
    /// When it tries to get the channel.
    turns_at: Option<Instant>,
    joined: bool,
    swallowed: u64,
    /// Frames heard since it last sent one.
    heard_in_a_row: u32,
    unheard: u64,
}

impl Tnc {
    /// A controller with nothing to do.
    ///
    /// # Panics
    /// If the configuration makes no sense.
    pub fn new(config: TncConfig) -> Self {
        if let Err(why) = config.validate() {
            panic!("a controller: {why}");
        }
        Tnc {
            config,
            held: VecDeque::new(),
            leaving: BTreeMap::new(),
            next_token: 0,
            line_down: Instant::ZERO,
            processor_down: Instant::ZERO,
            line_up: Instant::ZERO,
            processor_up: Instant::ZERO,
            to_host: VecDeque::new(),
            indications: VecDeque::new(),
            wants_join: false,
            announced_room: 0,
            room: 0,
            burst: 0,
            seized: false,
            turns_at: None,
            joined: false,
            swallowed: 0,
            heard_in_a_row: 0,
            unheard: 0,
        }
    }

    /// Frames for which there was no space.
    pub fn swallowed(&self) -> u64 {
        self.swallowed
    }

    /// Frames that it did not hear because it was deaf.
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

    /// What is due by now happens.
    fn advance(&mut self, now: Instant) {
        self.come(now);
        while self.to_host.front().is_some_and(|(at, _)| *at <= now) {
            let (_, bytes) = self.to_host.pop_front().expect("checked above");
            self.indications.push_back(FramesIndication::Frame(bytes));
        }
    }

    /// Frames come over the serial line, and find space or not.
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

    /// The next frame for a channel that has room.
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

/// What a frame takes on the serial line.
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
            // It does so by itself, when it has something.
            FramesRequest::Seize => {}
            FramesRequest::Frame { bytes, token, shares, .. } => self.take(now, bytes, token, shares),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: FramesIndication) {
        match indication {
            FramesIndication::Room(room) => {
                if room == 0 || self.room == 0 {
                    // Another key-up.
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

    fn poll_indication(&mut self) -> Option<FramesIndication> {
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
        // What is ready waits for the channel, or for its turn.
        let capped = self.room > 0 && self.burst >= self.config.burst_frames;
        let waits = self.seized || self.turns_at.is_some() || capped;
        let ready = ready.filter(|_| !waits);
        let to_host = self.to_host.front().map(|(at, _)| *at);
        earlier(earlier(coming, ready), earlier(self.turns_at, to_host))
    }
}
