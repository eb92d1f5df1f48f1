//! A terminal for two packet-radio stations: what is typed at one is printed at the other.
//!
//! ```text
//! cargo run -p longwire-proto --example terminal -- EI7IG-1 EI7IG-2 127.0.0.1:8001
//! ```
//!
//! Each station runs it with its own callsign first, and with the TNC of its radio: a TNC in KISS mode on TCP, such as
//! Dire Wolf. The connection is AX.25's connected mode; whoever types first opens it. The channel has 1,200 bit/s and the
//! defaults of [`controller::Config`]; the TNC is told them.
//!
//! This is an owner of engines with a real clock and real sockets. Two threads read, one from the standard input and one
//! from the TNC; the owner alone has the engines, and waits for an event or for their next deadline.
//!
//! ```text
//!    standard input --> [ events ] <-- TCP
//!                           |
//!                         owner ----> [ Station: AX.25 ]
//!                           ^         [ KissTnc: KISS  ]
//!                           |                |
//!                           '----------------'----> TCP
//! ```
//!
//! The queue of events is bounded. The thread of the TNC waits when it is full, and TCP then slows the TNC. The thread of
//! the standard input has credit, as users of engines have room: it reads the next text against a permit, which it gets
//! back when the text has been passed to the engines.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an owner has what engines must not have: a clock, a socket, threads"
)]

use bytes::Bytes;
use longwire_proto::ax25::{self, Callsign, Frame, LinkConfig, Modulo, PeerStation, Station};
use longwire_proto::controller;
use longwire_proto::engine::Engine;
use longwire_proto::joint::{OnFirst, Stack};
use longwire_proto::kiss::{self, KissTnc};
use longwire_proto::service::{
    CloseReason, LinkId, PacketsIndication, PacketsRequest, StreamIndication, StreamRequest,
};
use longwire_proto::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

const USAGE: &str = "\
usage: terminal OWN PEER HOST:PORT

Connects two packet-radio stations: what is typed at one is printed at the other.

  OWN        callsign of this station, with an SSID if others use the same, such as EI7IG-1
  PEER       callsign of the other station
  HOST:PORT  TNC in KISS mode on TCP, such as Dire Wolf with KISSPORT 8001: 127.0.0.1:8001

The station that types first opens the connection. The end of the input (Ctrl-D) closes it.
";

/// ID of the connection that this station opens.
const LINK: LinkId = LinkId(1);
/// Maximum number of events that wait for the owner.
const EVENTS_MAX: usize = 64;
/// Maximum number of texts that wait for the connection.
const TEXTS_MAX: usize = 16;
/// Maximum length of a text that is read at once, bytes. A terminal passes a line at a time.
const TEXT_BYTES_MAX: usize = 256;
/// Room for the engine of the TNC, bytes. A write waits until the system has all of it.
const ROOM_BYTES: u64 = 65_536;
/// Maximum time to connect to the TNC, and to write to it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Something that happens outside the owner.
enum Event {
    /// A text was typed.
    Typed(Bytes),
    /// The standard input has ended.
    InputEnded,
    /// The TNC has sent bytes.
    Received(Bytes),
    /// The connection to the TNC has ended.
    LineEnded,
}

fn notice(what: fmt::Arguments<'_>) {
    eprintln!("-- {what}");
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let [own, peer, address] = &words[..] else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(own, peer, address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn callsign(text: &str) -> Result<Callsign, String> {
    let station = text.parse::<Callsign>().map_err(|error| format!("`{text}`: {error}"))?;
    if station.is_placeholder() {
        return Err(format!(
            "`{text}` is the callsign of examples\nhint: give your own; every transmission must identify its operator"
        ));
    }
    Ok(station)
}

/// The owner's loop: drains the engines, then waits for an event or for their next deadline.
fn run(own: &str, peer: &str, address: &str) -> Result<(), String> {
    let (own, peer) = (callsign(own)?, callsign(peer)?);
    if own == peer {
        return Err(format!("{own} cannot connect to itself\nhint: give one station another SSID: {own}-1"));
    }
    let (events, happened) = mpsc::sync_channel(EVENTS_MAX);
    let (permits, permitted) = mpsc::sync_channel(TEXTS_MAX);
    let mut line = Line { address, events: events.clone(), stream: None };
    let mut terminal = Terminal::new(own, peer, permits);
    thread::spawn(move || read_input(&events, &permitted));
    // The time of engines counts from the start of their owner.
    let began = std::time::Instant::now();
    let now = || Instant::ZERO + began.elapsed();
    while !terminal.over {
        if let Some((link, indication)) = terminal.engines.poll_indication(now()) {
            terminal.hear(now(), link, indication);
            continue;
        }
        if let Some(request) = terminal.engines.poll_request(now()) {
            for indication in line.carry(request)? {
                terminal.engines.handle_indication(now(), indication);
            }
            continue;
        }
        let wait = terminal.engines.poll_timeout().map(|at| at.saturating_since(now()));
        match next_event(&happened, wait) {
            None => terminal.engines.handle_timeout(now()),
            Some(Event::Typed(text)) => terminal.typed(now(), text),
            Some(Event::InputEnded) => terminal.input_ended(now()),
            Some(Event::Received(bytes)) => {
                terminal.engines.handle_indication(now(), StreamIndication::Data(bytes));
            }
            Some(Event::LineEnded) => return Err(format!("the TNC at {address} has closed its line")),
        }
    }
    Ok(())
}

/// Returns the next event; `None` if none happens within this time.
fn next_event(happened: &Receiver<Event>, wait: Option<Duration>) -> Option<Event> {
    match wait {
        // A deadline that has passed goes before events, which may be many.
        Some(wait) if wait.is_zero() => None,
        Some(wait) => happened.recv_timeout(wait).ok(),
        None => happened.recv().ok(),
    }
}

/// The user of the engines: the connection to the peer, and the texts for it.
struct Terminal {
    engines: OnFirst<Stack<Station, KissTnc>>,
    peer: Callsign,
    /// Connection that is open or is being opened.
    link: Option<LinkId>,
    /// Number of packets that the connection accepts now.
    room: u64,
    /// Length of a packet that fits into one frame, bytes.
    packet_bytes: usize,
    /// Packets of this connection that were passed down, and those of them that the peer has acknowledged.
    sent: u64,
    acknowledged: u64,
    /// Texts that wait for room.
    waiting: VecDeque<Bytes>,
    /// Permits for further texts.
    permits: SyncSender<()>,
    input_ended: bool,
    /// The user has requested the end of the connection.
    closing: bool,
    over: bool,
}

impl Terminal {
    fn new(own: Callsign, peer: Callsign, permits: SyncSender<()>) -> Self {
        for _ in 0..TEXTS_MAX {
            // The channel has space for all permits, here and below.
            let _ = permits.send(());
        }
        let other = PeerStation { station: peer, path: Vec::new(), link: LinkConfig::default() };
        let peers = BTreeMap::from([(LINK, other)]);
        // The TNC may still hold frames of an earlier run.
        let station = ax25::Config { peers, restarts: true, ..ax25::Config::new(own) };
        // An identification, which nobody answers, shows whether the TNC reports transmitted frames.
        let probe = Frame::identification(own).to_bytes(Modulo::Eight);
        let tnc = KissTnc::new(kiss::Config::default(), controller::Config::default()).probing(probe);
        Terminal {
            engines: OnFirst(Stack::new(Station::new(station), tnc)),
            peer,
            link: None,
            room: 0,
            packet_bytes: 0,
            sent: 0,
            acknowledged: 0,
            waiting: VecDeque::new(),
            permits,
            input_ended: false,
            closing: false,
            over: false,
        }
    }

    /// Handles an indication of the engines.
    fn hear(&mut self, now: Instant, link: LinkId, indication: PacketsIndication) {
        match indication {
            PacketsIndication::Connected { peer, .. } if peer != self.peer.to_string() => {
                notice(format_args!("{peer} calls and is refused; this terminal is for {}", self.peer));
                self.engines.handle_request(now, (link, PacketsRequest::Close));
            }
            PacketsIndication::Connected { bytes_best, .. } => {
                notice(format_args!("connected to {}", self.peer));
                (self.link, self.room, self.closing) = (Some(link), 0, false);
                (self.sent, self.acknowledged) = (0, 0);
                self.packet_bytes = bytes_best as usize;
            }
            // The indication belongs to a caller that is refused.
            _ if self.link != Some(link) => {}
            PacketsIndication::Sizes { bytes_best, .. } => self.packet_bytes = bytes_best as usize,
            PacketsIndication::Room(room) => {
                self.room = room;
                self.send(now);
            }
            PacketsIndication::Packet(bytes) => {
                print!("{}", printable(&bytes));
                let _ = io::stdout().flush();
                self.engines.handle_request(now, (link, PacketsRequest::Release(1)));
            }
            PacketsIndication::Acknowledged(packets) => self.acknowledged = packets,
            PacketsIndication::Closed(reason) => self.closed(reason),
        }
    }

    /// Handles a text of the user. Without a connection it opens one.
    fn typed(&mut self, now: Instant, text: Bytes) {
        self.waiting.push_back(text);
        if self.link.is_none() {
            notice(format_args!("calling {}", self.peer));
            self.link = Some(LINK);
            self.engines.handle_request(now, (LINK, PacketsRequest::Connect));
        }
        self.send(now);
    }

    fn input_ended(&mut self, now: Instant) {
        self.input_ended = true;
        self.over = self.link.is_none();
        self.send(now);
    }

    /// Passes texts down as far as there is room; after the last one, the end of the connection.
    fn send(&mut self, now: Instant) {
        let Some(link) = self.link else { return };
        while self.room > 0
            && let Some(text) = self.waiting.front_mut()
        {
            let packet = text.split_to(text.len().min(self.packet_bytes.max(1)));
            if text.is_empty() {
                self.waiting.pop_front();
                let _ = self.permits.send(());
            }
            self.room -= 1;
            self.sent += 1;
            self.engines.handle_request(now, (link, PacketsRequest::payload(packet)));
        }
        if self.input_ended && self.waiting.is_empty() && !self.closing {
            self.closing = true;
            self.engines.handle_request(now, (link, PacketsRequest::Close));
        }
    }

    fn closed(&mut self, reason: CloseReason) {
        notice(format_args!("disconnected from {}: {}", self.peer, explain(reason)));
        let (unacknowledged, unsent) = (self.sent - self.acknowledged, self.waiting.len());
        if unacknowledged > 0 || unsent > 0 {
            notice(format_args!("{unacknowledged} packets may be lost, and {unsent} texts were not sent"));
        }
        for _ in self.waiting.drain(..) {
            let _ = self.permits.send(());
        }
        (self.link, self.room, self.sent, self.acknowledged) = (None, 0, 0, 0);
        self.over = self.input_ended;
    }
}

fn explain(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Finished => "closed in good order",
        CloseReason::Refused => "it refuses the connection; is its terminal running, and for this callsign?",
        CloseReason::TimedOut => "no answer; is it on the channel, and are the levels of both radios right?",
        CloseReason::Reset => "its station has begun anew",
        _ => "the connection was given up",
    }
}

/// Returns the text of a packet without control characters: a stranger must not control the terminal. Lines end in CR on
/// packet radio.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|character| matches!(character, '\n' | '\t') || !character.is_control()).collect()
}

/// The TCP connection to the TNC: the provider below the engines. The terminal ends with it.
struct Line<'a> {
    address: &'a str,
    events: SyncSender<Event>,
    stream: Option<TcpStream>,
}

impl Line<'_> {
    /// Carries out a request of the engines, and returns the answers.
    fn carry(&mut self, request: StreamRequest) -> Result<Vec<StreamIndication>, String> {
        match request {
            StreamRequest::Connect => self.connect(),
            StreamRequest::Write(bytes) => {
                let Some(stream) = &mut self.stream else { return Ok(Vec::new()) };
                let lost =
                    |error: io::Error| format!("the line to the TNC at {} is lost: {error}", self.address);
                stream.write_all(&bytes).map_err(lost)?;
                Ok(vec![StreamIndication::Room(ROOM_BYTES)])
            }
            // The queue of events bounds received bytes, and the engine closes no line that works.
            StreamRequest::Release(_)
            | StreamRequest::Secure { .. }
            | StreamRequest::Close
            | StreamRequest::Abort => Ok(Vec::new()),
        }
    }

    fn connect(&mut self) -> Result<Vec<StreamIndication>, String> {
        let failed = |error: io::Error| {
            format!(
                "the TNC at {} cannot be reached: {error}\nhint: check that its program is running, with KISS over TCP \
                 on that port",
                self.address
            )
        };
        let stream = open(self.address).map_err(failed)?;
        let reader = stream.try_clone().map_err(failed)?;
        let events = self.events.clone();
        thread::spawn(move || read_line(reader, &events));
        self.stream = Some(stream);
        notice(format_args!("the TNC at {} is connected", self.address));
        Ok(vec![StreamIndication::Connected, StreamIndication::Room(ROOM_BYTES)])
    }
}

/// Connects to the first address of a host that accepts.
fn open(address: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for place in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, PATIENCE) {
            Ok(stream) => {
                // A burst of frames is one write and must not wait for another.
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Reads from the TNC until the connection or the owner ends.
fn read_line(mut stream: TcpStream, events: &SyncSender<Event>) {
    let mut bytes = [0; 4096];
    loop {
        let (event, ended) = match stream.read(&mut bytes) {
            Ok(0) | Err(_) => (Event::LineEnded, true),
            Ok(length) => (Event::Received(Bytes::copy_from_slice(&bytes[..length])), false),
        };
        if events.send(event).is_err() || ended {
            return;
        }
    }
}

/// Reads the standard input, a text for each permit, until the input or the owner ends.
fn read_input(events: &SyncSender<Event>, permitted: &Receiver<()>) {
    let mut input = io::stdin().lock();
    let mut text = [0; TEXT_BYTES_MAX];
    while permitted.recv().is_ok() {
        let (event, ended) = match input.read(&mut text) {
            Ok(0) | Err(_) => (Event::InputEnded, true),
            Ok(length) => {
                let octets = text[..length].iter();
                let line = octets.map(|octet| if *octet == b'\n' { b'\r' } else { *octet }).collect();
                (Event::Typed(line), false)
            }
        };
        if events.send(event).is_err() || ended {
            return;
        }
    }
}
