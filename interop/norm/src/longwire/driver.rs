//! A session over sockets, in real time.

use crate::endpoint::{Endpoint, GROUP};
use crate::options::{Options, Source};
use crate::report::{Line, Report};
use bytes::Bytes;
use longwire_proto::engine::Engine;
use longwire_proto::norm::Session;
use longwire_proto::norm::wire::{Body, Message};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    DatagramsIndication, DatagramsRequest, ObjectKind, ObjectsIndication, ObjectsRequest, PeerId,
};
use longwire_proto::time::Instant;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Maximum length of a datagram, bytes.
const DATAGRAM_BYTES_MAX: u64 = 65_507;
/// Number of datagrams that a socket takes.
const ROOM: u64 = 1_000;
/// Maximum wait for a datagram when no timer runs.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Number of bytes of an object after which a line tells how many there are.
const PROGRESS_BYTES: u64 = 500_000;

/// Object that is being received.
#[derive(Debug, Default)]
struct Received {
    sender: u32,
    kind: ObjectKind,
    info: Option<Bytes>,
    /// Number of bytes so far; all once `is_whole`.
    bytes: u64,
    is_whole: bool,
    hash: Sha256,
    /// Number of messages, and of gaps, of a stream.
    messages: u64,
    breaks: u64,
}

/// Session over sockets.
#[derive(Debug)]
pub struct Driver<'a> {
    options: &'a Options,
    session: Session,
    endpoint: Endpoint,
    report: Report,
    start: std::time::Instant,
    /// Time at which the objects were given, seconds.
    begun: f64,
    losses: Rng,
    /// Objects whose contents the session has yet to take.
    waiting: VecDeque<(u64, Bytes)>,
    /// Number of bytes until the message of a stream ends.
    message_left: usize,
    room: u64,
    /// Number of objects that have not been acknowledged.
    unsent: usize,
    received: BTreeMap<u64, Received>,
    /// Number of objects to receive.
    unreceived: usize,
    has_failed: bool,
}

fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Data => "data",
        ObjectKind::File => "file",
        ObjectKind::Stream => "stream",
    }
}

impl<'a> Driver<'a> {
    pub fn new(options: &'a Options) -> Result<Driver<'a>, String> {
        let start = std::time::Instant::now();
        let rng = Rng::new(options.seed);
        // A restarted sender differs from the one before.
        let of_session = rng.fork(&format!("session of process {}", std::process::id()));
        let is_passive = !options.sends && !options.is_group();
        let make = if is_passive { Session::listening } else { Session::new };
        let mut driver = Driver {
            session: make(options.config.clone(), of_session),
            endpoint: Endpoint::open(options).map_err(|error| error.to_string())?,
            report: Report::new(start),
            start,
            begun: 0.0,
            losses: rng.fork("losses"),
            waiting: VecDeque::new(),
            message_left: options.message_bytes,
            room: 0,
            unsent: options.sources.len(),
            received: BTreeMap::new(),
            unreceived: if options.sends { 0 } else { options.objects },
            has_failed: false,
            options,
        };
        if is_passive {
            driver.join();
        } else {
            driver.session.handle_request(driver.now(), ObjectsRequest::Connect);
        }
        driver.drain();
        driver.begun = driver.start.elapsed().as_secs_f64();
        for (object, source) in options.sources.iter().enumerate() {
            driver.send(object as u64, source);
        }
        driver.report.line("ready").print();
        Ok(driver)
    }

    fn now(&self) -> Instant {
        Instant::from_secs(1) + self.start.elapsed()
    }

    fn join(&mut self) {
        let is_group = self.options.is_group();
        let peer = (self.options.sends && !is_group).then_some(PeerId::CONFIGURED);
        let group = is_group.then_some(GROUP);
        let joined = DatagramsIndication::Joined { bytes_max: DATAGRAM_BYTES_MAX, peer, group };
        self.session.handle_indication(self.now(), joined);
        self.session.handle_indication(self.now(), DatagramsIndication::Room(ROOM));
    }

    fn send(&mut self, object: u64, source: &Source) {
        let (kind, info, length) = (source.kind, source.info.clone(), source.length);
        self.session.handle_request(self.now(), ObjectsRequest::Send { object, kind, info, length });
        if !source.bytes.is_empty() || kind == ObjectKind::Stream {
            self.waiting.push_back((object, source.bytes.clone()));
        }
        self.drain();
    }

    /// Runs until the task is done, or time is over; true if it is done.
    pub fn run(&mut self) -> Result<bool, String> {
        let is_done = self.run_until(self.options.timeout, |driver| {
            driver.unsent == 0 && driver.unreceived == 0 || driver.has_failed
        });
        let outcome = match (is_done, self.has_failed) {
            (true, false) => "complete",
            (true, true) => "aborted",
            (false, _) => "timeout",
        };
        if self.options.sends && outcome == "complete" {
            let bytes: usize = self.options.sources.iter().map(|source| source.bytes.len()).sum();
            let seconds = self.start.elapsed().as_secs_f64() - self.begun;
            let mbps = format!("{:.2}", bytes as f64 * 8e-6 / seconds);
            self.report.line("throughput").number("bytes", bytes).number("mbps", mbps).print();
        }
        if outcome == "complete" {
            for node in &self.options.config.acknowledging {
                self.report.line("acknowledgement").number("node", node).text("status", "success").print();
            }
        }
        self.report.line("end").text("outcome", outcome).print();
        self.run_until(self.options.linger, |_| false);
        self.counters();
        Ok(outcome == "complete")
    }

    /// Runs until a condition holds; false if it does not within the limit.
    fn run_until(&mut self, limit: Duration, mut holds: impl FnMut(&Driver<'_>) -> bool) -> bool {
        let end = self.now() + limit;
        loop {
            if holds(self) {
                return true;
            }
            let now = self.now();
            if now >= end {
                return false;
            }
            let next = self.session.poll_timeout().unwrap_or(end).min(end);
            let wait = next.saturating_since(now).min(WAIT_MAX);
            let mut arrival = self.endpoint.receive(wait);
            while let Some((from, datagram)) = arrival {
                let is_lost = self.losses.chance(self.options.rx_loss);
                self.trace(if is_lost { "x" } else { "<" }, &datagram.bytes);
                if !is_lost {
                    let (to_group, bytes) = (datagram.to_group, datagram.bytes);
                    let heard = DatagramsIndication::Datagram { from, to_group, bytes, damaged: false };
                    self.session.handle_indication(self.now(), heard);
                    self.drain();
                }
                arrival = self.endpoint.receive(Duration::ZERO);
            }
            let now = self.now();
            if self.session.poll_timeout().is_some_and(|at| at <= now) {
                self.session.handle_timeout(now);
            }
            self.drain();
        }
    }

    fn drain(&mut self) {
        loop {
            let now = self.now();
            if let Some(indication) = self.session.poll_indication(now) {
                self.indicated(indication);
                continue;
            }
            match self.session.poll_request(now) {
                Some(DatagramsRequest::Join { .. }) => self.join(),
                Some(DatagramsRequest::Datagram { to, bytes, .. }) => {
                    self.trace(">", &bytes);
                    self.endpoint.send(to, bytes);
                    self.session.handle_indication(now, DatagramsIndication::Room(ROOM));
                }
                Some(DatagramsRequest::Leave | DatagramsRequest::Release(_)) => {}
                None if self.give() => {}
                None => {
                    self.endpoint.flush();
                    return;
                }
            }
        }
    }

    /// Gives contents for which there is room.
    fn give(&mut self) -> bool {
        let Some((object, bytes)) = self.waiting.front_mut().filter(|_| self.room > 0) else { return false };
        let data = bytes.split_to(bytes.len().min(self.room as usize).min(self.message_left));
        let (object, last) = (*object, bytes.is_empty());
        self.room -= data.len() as u64;
        self.message_left -= data.len();
        if last {
            self.waiting.pop_front();
        }
        let mut requests = vec![ObjectsRequest::Content { object, data, last }];
        if last || self.message_left == 0 {
            self.message_left = self.options.message_bytes;
            requests.extend([ObjectsRequest::EndMessage { object }, ObjectsRequest::Flush { object }]);
        }
        for request in requests {
            self.session.handle_request(self.now(), request);
        }
        true
    }

    fn indicated(&mut self, indication: ObjectsIndication) {
        match indication {
            ObjectsIndication::Room(room) => self.room = room,
            ObjectsIndication::Sent { object } => {
                self.unsent -= 1;
                self.report.line("object-sent").number("object", object).print();
            }
            ObjectsIndication::Failed { object, reason } => {
                self.waiting.retain(|(other, _)| *other != object);
                self.has_failed = true;
                let line = self.report.line("object-failed").number("object", object);
                line.text("reason", &format!("{reason:?}")).print();
            }
            ObjectsIndication::Begin { incoming, sender, kind, info, .. } => {
                self.report.line("object-begun").number("object", incoming).print();
                self.received.insert(incoming, Received { sender, kind, info, ..Received::default() });
            }
            ObjectsIndication::Piece { incoming, data, last } => {
                let received = self.received.get_mut(&incoming).expect("it has begun");
                if !self.options.is_fast {
                    received.hash.update(&data);
                }
                let before = received.bytes / PROGRESS_BYTES;
                received.bytes += data.len() as u64;
                received.is_whole = last;
                let up_to = received.bytes;
                if up_to / PROGRESS_BYTES > before {
                    self.report.line("progress").number("object", incoming).number("bytes", up_to).print();
                }
                self.session.handle_request(self.now(), ObjectsRequest::Accept { incoming, up_to });
                self.complete(incoming);
            }
            ObjectsIndication::Message { incoming } => {
                self.received.get_mut(&incoming).expect("it has begun").messages += 1;
            }
            ObjectsIndication::Gap { incoming, bytes } => {
                self.received.get_mut(&incoming).expect("it has begun").breaks += 1;
                self.report.line("gap").number("object", incoming).number("bytes", bytes).print();
            }
            ObjectsIndication::Acknowledged { object, up_to } => {
                self.report.line("acknowledged").number("object", object).number("bytes", up_to).print();
            }
            ObjectsIndication::Info { incoming, info } => {
                // The description of a data object may come after it has been reported.
                if let Some(received) = self.received.get_mut(&incoming) {
                    received.info = Some(info);
                    self.complete(incoming);
                }
            }
            ObjectsIndication::Lost { incoming } => {
                self.received.remove(&incoming);
                self.report.line("object-aborted").number("object", incoming).print();
            }
            ObjectsIndication::Up { .. } => {}
            ObjectsIndication::Down { reason, .. } => {
                self.report.line("down").text("reason", &format!("{reason:?}")).print();
            }
        }
    }

    /// Reports an object that is whole; a file has its description before.
    fn complete(&mut self, incoming: u64) {
        let received = &self.received[&incoming];
        if !received.is_whole || (received.kind == ObjectKind::File && received.info.is_none()) {
            return;
        }
        let received = self.received.remove(&incoming).expect("it is there");
        self.unreceived = self.unreceived.saturating_sub(1);
        let hash: String = received.hash.finalize().iter().map(|octet| format!("{octet:02x}")).collect();
        let info = String::from_utf8_lossy(received.info.as_deref().unwrap_or_default()).into_owned();
        let line = self.report.line("object-completed").text("kind", kind_name(received.kind));
        let line = line.number("sender", received.sender).text("info", &info);
        let line = match received.kind {
            ObjectKind::Stream => {
                line.number("messages", received.messages).number("breaks", received.breaks)
            }
            _ => line,
        };
        line.number("bytes", received.bytes).text("sha256", &hash).print();
    }

    fn trace(&self, direction: &str, bytes: &Bytes) {
        if !self.options.traces {
            return;
        }
        let seconds = self.start.elapsed().as_secs_f64();
        match Message::decode(&mut bytes.clone()).map(|message| message.body) {
            Ok(Body::Data(data)) => {
                let (object, block, symbol) = (data.object, data.id.block, data.id.symbol);
                eprintln!("{seconds:.6} {direction} data {object} {block} {symbol}");
            }
            Ok(body) => eprintln!("{seconds:.6} {direction} {body:?}"),
            Err(error) => eprintln!("{seconds:.6} {direction} {} bytes: {error:?}", bytes.len()),
        }
    }

    fn counters(&self) {
        let counters = self.session.counters();
        let numbers: [(&str, u64); 15] = [
            ("bytes_sent", counters.bytes_sent),
            ("symbols_sent", counters.symbols_sent),
            ("repairs_sent", counters.repairs_sent),
            ("explicit_repairs_sent", counters.explicit_repairs_sent),
            ("symbols_restored", counters.symbols_restored),
            ("duplicates", counters.duplicates),
            ("nacks_sent", counters.nacks_sent),
            ("nacks_received", counters.nacks_received),
            ("acks_sent", counters.acks_sent),
            ("acks_received", counters.acks_received),
            ("squelches_sent", counters.squelches_sent),
            ("blocks_released", counters.blocks_released),
            ("gaps", counters.gaps),
            ("restarts", counters.restarts),
            ("violations", counters.violations),
        ];
        let line: Line = numbers
            .into_iter()
            .fold(self.report.line("counters"), |line, (name, number)| line.number(name, number));
        line.print();
    }
}
