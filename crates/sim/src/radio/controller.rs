//! Controller (TNC) with AX.25 in its firmware, between a host that sends characters and a radio channel.
//!
//! ```text
//!   host ==== serial line ====> memory -> frames made -> [ Station ] -> turnaround -> channel
//!        <=== serial line ============================== [ Station ] <--------- received frames
//! ```
//!
//! [`Station`] implements AX.25, the same engine as in the node. The controller adds the properties in which
//! controllers differ: the serial line; the memory, whose octets are free when the peer has acknowledged them; the
//! processor, which needs cycles for each octet of the host that it makes frames of and for each turnaround from
//! receiving to sending; the wait for more frames (T2) if no response was requested; and a growing window.
//!
//! The number of frames in a transmission is not set: all frames that are ready when the channel is won are sent. A
//! firmware that needs more time for a frame than the channel sends fewer than the window allows, and so does one whose
//! memory holds unacknowledged data.
//!
//! Source: "Effective throughput of AX.25 protocol", B. Zieliński, Bull. Pol. Ac.: Tech. 61(3), 2013, sections 2.2 and
//! 3.

use bytes::Bytes;
use longwire_proto::ax25::{Control, Frame, Modulo, Station};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::earlier;
use longwire_proto::observe::Observation;
use longwire_proto::service::{
    Frames, FramesIndication, FramesRequest, LinkId, Many, Packets, PacketsIndication, PacketsRequest, Port,
};
use longwire_proto::time::{Duration, Instant};
use std::collections::VecDeque;

/// Bits per octet on a serial line, with start and stop bit.
const SERIAL_BITS: u64 = 10;
/// Maximum window of modulo 8: after a complete window there is nothing more to wait for.
const WINDOW_MAX: u32 = 7;

/// Configuration of a controller and its firmware.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerConfig {
    /// Rate between host and controller, bit/s, with ten bits per octet; above 0.
    pub serial_bps: u32,
    /// Speed of the processor in millions of the cycles in which firmware versions are specified, per second; above 0.
    pub megacycles_per_s: f64,
    /// Memory for octets of the host until the peer has acknowledged them: one frame or more.
    pub memory_bytes: u32,
    /// Firmware version.
    pub firmware: Firmware,
}

/// Behaviour and processing times of a firmware version.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Firmware {
    /// Thousands of cycles per octet for making I frames, one frame after another.
    pub octet_kilocycles: f64,
    /// Millions of cycles from the last received frame, or from having data to send, to the channel access.
    pub turn_megacycles: f64,
    /// Delay after the last of the I frames that do not request a response until they are acknowledged (T2), or until
    /// seven have arrived; `None` to acknowledge at once.
    pub acknowledge_delay: Option<Duration>,
    /// True if the window begins with one frame and grows by one after each acknowledgement.
    pub window_grows: bool,
}

impl ControllerConfig {
    /// Returns the first invalid value as text; `frame_bytes` is the maximum information field.
    pub fn flaw(&self, frame_bytes: u32) -> Option<&'static str> {
        let Firmware { octet_kilocycles, turn_megacycles, .. } = self.firmware;
        let cycles = [octet_kilocycles, turn_megacycles];
        match () {
            () if self.serial_bps == 0 => Some("a serial line has a rate"),
            () if !(self.megacycles_per_s > 0.0 && self.megacycles_per_s.is_finite()) => {
                Some("a processor has a clock")
            }
            () if self.memory_bytes < frame_bytes => Some("there is memory for a frame at least"),
            () if cycles.iter().any(|cycles| !(0.0..=1e6).contains(cycles)) => {
                Some("cycles are from none to a million thousands an octet or millions a turn")
            }
            () => None,
        }
    }

    fn time_of(&self, megacycles: f64) -> Duration {
        Duration::from_secs_f64(megacycles / self.megacycles_per_s)
    }

    fn serial_time(&self, bytes: usize) -> Duration {
        let bits = SERIAL_BITS * bytes as u64;
        Duration::from_nanos((bits * 1_000_000_000).div_ceil(u64::from(self.serial_bps)))
    }
}

/// Controller with AX.25 in its firmware and one connection at a time.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
    station: Station,
    frame_bytes: u32,
    now: Instant,
    link: Option<LinkId>,
    /// Packets of the host and the times at which their frames are made; limited by the memory.
    held: VecDeque<(Instant, Bytes)>,
    /// Octets of each frame passed to the station and not acknowledged by the peer.
    sent: VecDeque<u32>,
    acknowledged: u64,
    /// Room of the station, and window of the firmware.
    station_room: u64,
    window: usize,
    /// Ends of the work of the serial lines and the processor.
    line_down: Instant,
    line_up: Instant,
    processor: Instant,
    announced_room: u64,
    /// True if the host has requested closing of the connection after all data.
    closing: bool,
    /// Indications for the host, in order of time: packets that it has not released, which the station limits.
    to_host: VecDeque<(Instant, LinkId, PacketsIndication)>,
    /// Time since which the station wants the channel; `None` if it does not.
    wants: Option<Instant>,
    /// Times of the last received frame and of the last received I frame.
    heard_at: Instant,
    informed_at: Instant,
    /// Number of I frames received since the last transmission, and whether one requested a response.
    unanswered: u32,
    asked: bool,
    busy: bool,
}

impl Controller {
    /// Makes a controller around this station, whose links have information fields of at most `frame_bytes`. The
    /// station must acknowledge at once, because the firmware determines the time.
    ///
    /// # Panics
    /// Panics if the configuration is invalid.
    pub fn new(config: ControllerConfig, station: Station, frame_bytes: u32) -> Self {
        if let Some(flaw) = config.flaw(frame_bytes) {
            panic!("a controller: {flaw}");
        }
        Controller {
            config,
            station,
            frame_bytes,
            now: Instant::ZERO,
            link: None,
            held: VecDeque::new(),
            sent: VecDeque::new(),
            acknowledged: 0,
            station_room: 0,
            window: if config.firmware.window_grows { 1 } else { usize::MAX },
            line_down: Instant::ZERO,
            line_up: Instant::ZERO,
            processor: Instant::ZERO,
            announced_room: 0,
            closing: false,
            to_host: VecDeque::new(),
            wants: None,
            heard_at: Instant::ZERO,
            informed_at: Instant::ZERO,
            unanswered: 0,
            asked: false,
            busy: false,
        }
    }

    fn request(&mut self, request: PacketsRequest) {
        if let Some(link) = self.link {
            self.station.handle_request(self.now, Port::First((link, request)));
        }
    }

    /// Returns the number of packets for which there is memory.
    fn host_room(&self) -> u64 {
        if self.link.is_none() || self.closing {
            return 0;
        }
        let held: u64 = self.held.iter().map(|(_, packet)| packet.len() as u64).sum();
        let sent: u64 = self.sent.iter().map(|bytes| u64::from(*bytes)).sum();
        u64::from(self.config.memory_bytes).saturating_sub(held + sent) / u64::from(self.frame_bytes)
    }

    fn take(&mut self, packet: Bytes) {
        assert!(self.announced_room > 0, "a packet for a controller without room");
        self.announced_room -= 1;
        self.line_down = self.line_down.max(self.now) + self.config.serial_time(packet.len());
        let kilocycles = self.config.firmware.octet_kilocycles * packet.len() as f64;
        let making = self.config.time_of(kilocycles / 1000.0);
        self.processor = self.processor.max(self.line_down) + making;
        self.held.push_back((self.processor, packet));
    }

    /// Processes everything that is due.
    fn advance(&mut self) {
        loop {
            self.pass();
            match self.station.poll_indication(self.now) {
                Some(Port::First((link, said))) => self.rise(link, said),
                Some(Port::Second(_)) => {}
                None => break,
            }
        }
        if self.closing && self.held.is_empty() {
            self.closing = false;
            self.request(PacketsRequest::Close);
            self.advance();
        }
    }

    /// Passes finished frames to the station, as far as it accepts them.
    fn pass(&mut self) {
        while self.station_room > 0 && self.sent.len() < self.window {
            if self.held.front().is_none_or(|(made_at, _)| *made_at > self.now) {
                return;
            }
            let Some((_, packet)) = self.held.pop_front() else { return };
            self.station_room -= 1;
            self.sent.push_back(packet.len() as u32);
            self.request(PacketsRequest::payload(packet));
        }
    }

    fn rise(&mut self, link: LinkId, said: PacketsIndication) {
        let mut at = self.now;
        match &said {
            PacketsIndication::Connected { .. } => self.link = Some(link),
            PacketsIndication::Sizes { .. } => {}
            PacketsIndication::Room(room) => {
                self.station_room = *room;
                return;
            }
            PacketsIndication::Packet(packet) => {
                self.line_up = self.line_up.max(self.now) + self.config.serial_time(packet.len());
                at = self.line_up;
            }
            PacketsIndication::Acknowledged(count) => {
                let packets = (*count - self.acknowledged) as usize;
                self.acknowledged = *count;
                self.sent.drain(..packets.min(self.sent.len()));
                self.window = self.window.saturating_add(1);
            }
            PacketsIndication::Closed(_) => {
                (self.link, self.closing) = (None, false);
                (self.station_room, self.announced_room, self.acknowledged) = (0, 0, 0);
                self.window = if self.config.firmware.window_grows { 1 } else { usize::MAX };
                self.held.clear();
                self.sent.clear();
            }
        }
        // Indications to the host stay in order.
        let at = self.to_host.back().map_or(at, |(last, ..)| at.max(*last));
        self.to_host.push_back((at, link, said));
    }

    fn hear(&mut self, bytes: &Bytes) {
        self.heard_at = self.now;
        let Ok(frame) = Frame::decode(&mut bytes.clone(), Modulo::Eight) else { return };
        if let Control::Information { .. } = frame.control {
            self.informed_at = self.now;
            self.unanswered += 1;
        }
        self.asked |= frame.is_command() && frame.control.poll_final();
    }

    /// Returns the time of the next channel access.
    fn turns_at(&self) -> Option<Instant> {
        let since = self.wants.filter(|_| !self.busy)?.max(self.heard_at);
        let waits = !self.asked && self.sent.is_empty() && (1..WINDOW_MAX).contains(&self.unanswered);
        let since = match self.config.firmware.acknowledge_delay.filter(|_| waits) {
            Some(delay) => since.max(self.informed_at + delay),
            None => since,
        };
        Some(since + self.config.time_of(self.config.firmware.turn_megacycles))
    }
}

impl Engine for Controller {
    type Above = Many<LinkId, Packets>;
    type Below = Frames;

    fn handle_request(&mut self, now: Instant, (link, request): Request<Self::Above>) {
        self.now = now;
        match request {
            PacketsRequest::Packet { bytes, .. } if self.link == Some(link) => self.take(bytes),
            PacketsRequest::Packet { .. } => {}
            PacketsRequest::Close if self.link == Some(link) => self.closing = true,
            other => self.station.handle_request(now, Port::First((link, other))),
        }
        self.advance();
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Frames>) {
        self.now = now;
        match &indication {
            FramesIndication::Frame(bytes) => self.hear(bytes),
            FramesIndication::Busy(busy) => self.busy = *busy,
            FramesIndication::Room(_) | FramesIndication::Transmitted(_) | FramesIndication::Carrier(_) => {}
        }
        self.station.handle_indication(now, indication);
        self.advance();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.station.handle_timeout(now);
        self.advance();
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<Indication<Self::Above>> {
        self.advance();
        if self.to_host.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, link, said) = self.to_host.pop_front()?;
            return Some((link, said));
        }
        let (link, room) = (self.link?, self.host_room());
        let changed = core::mem::replace(&mut self.announced_room, room) != room;
        changed.then_some((link, PacketsIndication::Room(room)))
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Frames>> {
        self.now = now;
        while let Some(request) = self.station.poll_request(now) {
            match request {
                FramesRequest::Seize => self.wants = Some(now),
                FramesRequest::Frame { .. } => {
                    (self.asked, self.unanswered) = (false, 0);
                    return Some(request);
                }
                FramesRequest::Join => return Some(request),
            }
        }
        self.turns_at().filter(|at| *at <= now)?;
        self.wants = None;
        Some(FramesRequest::Seize)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let passes = self.station_room > 0 && self.sent.len() < self.window;
        let made = self.held.front().filter(|_| passes).map(|(at, _)| *at);
        let to_host = self.to_host.front().map(|(at, ..)| *at);
        earlier(earlier(made, to_host), earlier(self.turns_at(), self.station.poll_timeout()))
    }

    fn observe(&self, view: &mut Observation) {
        self.station.observe(view);
    }
}
