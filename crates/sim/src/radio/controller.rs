//! A controller (TNC) whose own firmware speaks AX.25, between a host that sends it characters and a radio channel.
//!
//! ```text
//!   host ==== serial line ====> memory -> frames made -> [ Station ] -> turn -> channel
//!        <=== serial line ============================== [ Station ] <--------- frames heard
//! ```
//!
//! The AX.25 is [`Station`], the engine that flies. Around it is what controllers differ in: the serial line; the memory, whose
//! octets are free again when the peer has acknowledged them; the processor, which takes its cycles for the octets of
//! the host's that it makes frames of and for each turn from hearing to sending; the wait for more frames (T2) where nobody asked
//! for an answer; a window that grows.
//!
//! How many frames a key-up has is nobody's decision: those go that are made when the channel is won. A firmware that takes
//! longer for a frame than the channel has fewer than the window allows, and so has one whose memory holds what is not
//! acknowledged yet.
//!
//! Source: "Effective throughput of AX.25 protocol", B. Zieliński, Bull. Pol. Ac.: Tech. 61(3), 2013, sections 2.2 and 3.

use bytes::Bytes;
use longwire_proto::ax25::{Control, Frame, Modulo, Station};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::earlier;
use longwire_proto::service::{
    Frames, FramesIndication, FramesRequest, LinkId, Many, Packets, PacketsIndication, PacketsRequest, Port,
};
use longwire_proto::time::{Duration, Instant};
use std::collections::VecDeque;

/// A serial line has ten bits for an octet: start and stop.
const SERIAL_BITS: u64 = 10;
/// A window of modulo 8 that cannot grow: who has heard it all waits for nothing.
const WINDOW_MAX: u32 = 7;

/// A controller and its firmware.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerConfig {
    /// Bits a second between host and controller, ten for an octet, above 0.
    pub serial_bps: u32,
    /// What the processor does in a second, in millions of the cycles in which firmwares are counted, above 0.
    pub megacycles_per_s: f64,
    /// Octets of the host's that there is space for until the peer has acknowledged them: a frame's or more.
    pub memory_bytes: u32,
    /// The firmware.
    pub firmware: Firmware,
}

/// What a firmware does and what it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Firmware {
    /// To make I frames of the host's octets, one frame after the other, thousands of cycles an octet.
    pub octet_kilocycles: f64,
    /// From the last frame heard, or from having something to send, to trying to get the channel, millions of cycles.
    pub turn_megacycles: f64,
    /// I frames that do not ask for an answer are acknowledged so long after the last of them (T2), or when seven have come;
    /// none: at once.
    pub acknowledge_delay: Option<Duration>,
    /// The window begins with one frame, and has one more after each acknowledgement.
    pub window_grows: bool,
}

impl ControllerConfig {
    /// What makes no sense, if anything does; `frame_bytes` is the longest information field.
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

/// See the [module](self). It has one connection at a time.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
    station: Station,
    frame_bytes: u32,
    now: Instant,
    link: Option<LinkId>,
    /// From the host: packets and when they are frames; memory is the limit.
    held: VecDeque<(Instant, Bytes)>,
    /// Octets of each frame that the station has and the peer has not acknowledged.
    sent: VecDeque<u32>,
    acknowledged: u64,
    /// What the station takes, and what the firmware lets it have out.
    station_room: u64,
    window: usize,
    /// Until when serial lines and processor have work.
    line_down: Instant,
    line_up: Instant,
    processor: Instant,
    announced_room: u64,
    /// The host wants the connection closed when all is sent.
    closing: bool,
    /// For the host, in order of time: packets that it has not released, of which the station has a limit.
    to_host: VecDeque<(Instant, LinkId, PacketsIndication)>,
    /// Since when the station wants the channel.
    wants: Option<Instant>,
    /// When a frame was heard last, and when an I frame was.
    heard_at: Instant,
    informed_at: Instant,
    /// I frames heard since it sent, and whether one asked for an answer.
    unanswered: u32,
    asked: bool,
    busy: bool,
}

impl Controller {
    /// A controller around this station, whose links have information fields of `frame_bytes` at most. The station is to
    /// acknowledge at once: when it does so is the firmware's business.
    ///
    /// # Panics
    /// If the configuration makes no sense.
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

    /// Packets that there is memory for.
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

    /// What is due by now happens.
    fn advance(&mut self) {
        loop {
            self.pass();
            match self.station.poll_indication() {
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

    /// Frames that are made go to the station, as far as it takes them.
    fn pass(&mut self) {
        while self.station_room > 0 && self.sent.len() < self.window {
            if self.held.front().is_none_or(|(made_at, _)| *made_at > self.now) {
                return;
            }
            let Some((_, packet)) = self.held.pop_front() else { return };
            self.station_room -= 1;
            self.sent.push_back(packet.len() as u32);
            self.request(PacketsRequest::Packet(packet));
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
        // What the host hears stays in order.
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

    /// When it tries to get the channel.
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
            PacketsRequest::Packet(packet) if self.link == Some(link) => self.take(packet),
            PacketsRequest::Packet(_) => {}
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

    fn poll_indication(&mut self) -> Option<Indication<Self::Above>> {
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
}
