//! Traffic of measuring tools over TCP: a stream for a fixed time (as iperf sends it), the download of a file (as wget does
//! it), and a file sent again and again.
//!
//! ```text
//!   iperf:    connects, writes blocks until the time is over, closes; bytes and time are those of the writes
//!   download: connects, writes a request; the other end answers with a header and the file and closes
//!   repeated: connects, writes the file, closes; the same again after a pause from start to start
//! ```

use super::{FileTask, TaskIndication, TaskRequest};
use bytes::Bytes;
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::service::{CloseReason, LinkId, Many, Stream, StreamIndication, StreamRequest};
use longwire_proto::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// Block that iperf 2 writes at once over TCP, bytes.
const BLOCK_BYTES: u64 = 128 * 1024;
/// Length of the request of a download and of the header of the answer, bytes: those of wget and Apache, about.
const REQUEST_BYTES: u64 = 120;
const ANSWER_BYTES: u64 = 280;

/// Part of an end in the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends for this time, counted from the connection; complete when the block then begun is written.
    Iperf(Duration),
    /// Downloads a file of this length; complete with its last byte.
    Download(u64),
    /// Answers downloads with a file of this length.
    Serve(u64),
    /// Sends a file of this length at this interval, the first time after half of it; a transfer that is not over when
    /// the next is due delays it by an interval.
    Repeat(u64, Duration),
    /// Receives whatever comes.
    Receive,
}

/// Results of an end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Bytes written by a sender, or received by a receiver.
    pub bytes: u64,
    /// Time of the measured transfer, from its request; `None` before its end.
    pub time: Option<Duration>,
    /// Durations of the repeated transfers, until their connections were closed.
    pub repeated: Vec<Duration>,
}

/// Results, shared between the end and the reader.
pub type SharedMeasured = Arc<Mutex<Measured>>;

/// One end of the traffic, over link 1 to the other one.
#[derive(Debug)]
pub struct Traffic {
    role: Role,
    link: LinkId,
    /// Beginning of the current transfer; `None` while there is none.
    began: Option<Instant>,
    /// Time of the connection.
    connected: Option<Instant>,
    /// Bytes that are still to be written to each connection.
    left: BTreeMap<LinkId, Outgoing>,
    received: u64,
    next: Option<Instant>,
    now: Instant,
    measured: SharedMeasured,
    down: VecDeque<(LinkId, StreamRequest)>,
    up: VecDeque<TaskIndication>,
}

#[derive(Debug, Default)]
struct Outgoing {
    bytes: u64,
    room: u64,
    /// True if the connection is closed after the bytes.
    closes: bool,
    closed: bool,
}

impl Traffic {
    /// Creates an end whose link to the other one has this number. Only a repeated file starts by itself.
    pub fn new(role: Role, link: LinkId, measured: SharedMeasured) -> Traffic {
        let next = match role {
            Role::Repeat(_, interval) => Some(Instant::ZERO + interval / 2),
            _ => None,
        };
        Traffic {
            role,
            link,
            began: None,
            connected: None,
            left: BTreeMap::new(),
            received: 0,
            next,
            now: Instant::ZERO,
            measured,
            down: VecDeque::new(),
            up: VecDeque::new(),
        }
    }

    fn start(&mut self, now: Instant) {
        (self.began, self.received) = (Some(now), 0);
        self.down.push_back((self.link, StreamRequest::Connect));
    }

    fn measure(&self, change: impl FnOnce(&mut Measured)) {
        change(&mut self.measured.lock().expect("nobody panics"));
    }

    fn complete(&mut self, now: Instant) {
        let Some(began) = self.began.take() else { return };
        self.measure(|measured| measured.time = Some(now.saturating_since(began)));
        self.up.push_back(TaskIndication::Done { file: 0, intact: true });
    }

    fn hear(&mut self, now: Instant, link: LinkId, said: StreamIndication) {
        match said {
            StreamIndication::Connected => self.open(now, link),
            StreamIndication::Room(room) => self.left.entry(link).or_default().room = room,
            StreamIndication::Data(data) => {
                self.down.push_back((link, StreamRequest::Release(data.len() as u64)));
                self.receive(now, link, data.len() as u64);
            }
            StreamIndication::PeerClosed => {
                let outgoing = self.left.entry(link).or_default();
                outgoing.closes = true;
            }
            StreamIndication::Closed(reason) => {
                self.left.remove(&link);
                if matches!(self.role, Role::Repeat(..))
                    && let Some(began) = self.began.take()
                    && reason == CloseReason::Finished
                {
                    self.measure(|measured| measured.repeated.push(now.saturating_since(began)));
                }
            }
            StreamIndication::Secured { .. } => {}
        }
    }

    fn open(&mut self, now: Instant, link: LinkId) {
        self.connected = Some(now);
        let room = self.left.get(&link).map_or(0, |outgoing| outgoing.room);
        let (bytes, closes) = match self.role {
            Role::Iperf(_) => (BLOCK_BYTES, false),
            Role::Download(_) => (REQUEST_BYTES, false),
            Role::Repeat(bytes, _) => (bytes, true),
            Role::Serve(_) | Role::Receive => (0, false),
        };
        self.left.insert(link, Outgoing { bytes, room, closes, closed: false });
    }

    fn receive(&mut self, now: Instant, link: LinkId, bytes: u64) {
        self.received += bytes;
        self.measure(|measured| measured.bytes += bytes);
        match self.role {
            Role::Download(length) if self.received >= ANSWER_BYTES + length => self.complete(now),
            Role::Serve(length) if self.received == REQUEST_BYTES => {
                let outgoing = self.left.entry(link).or_default();
                (outgoing.bytes, outgoing.closes) = (ANSWER_BYTES + length, true);
            }
            _ => {}
        }
    }

    /// Returns the next write or close of a connection.
    fn write(&mut self) -> Option<(LinkId, StreamRequest)> {
        let now = self.now;
        for (link, outgoing) in &mut self.left {
            if outgoing.bytes == 0
                && let (Role::Iperf(time), Some(connected)) = (self.role, self.connected)
                && !outgoing.closes
            {
                match now.saturating_since(connected) < time {
                    true => outgoing.bytes = BLOCK_BYTES,
                    false => outgoing.closes = true,
                }
            }
            if outgoing.bytes == 0 {
                if outgoing.closes && !core::mem::replace(&mut outgoing.closed, true) {
                    return Some((*link, StreamRequest::Close));
                }
                continue;
            }
            let bytes = outgoing.bytes.min(outgoing.room);
            if bytes > 0 {
                outgoing.bytes -= bytes;
                outgoing.room -= bytes;
                return Some((*link, StreamRequest::Write(vec![0x55; bytes as usize].into())));
            }
        }
        None
    }
}

impl Engine for Traffic {
    type Above = FileTask;
    type Below = Many<LinkId, Stream>;

    fn handle_request(&mut self, now: Instant, request: TaskRequest) {
        self.now = now;
        if let TaskRequest::Start { .. } = request {
            self.start(now);
        }
    }

    fn handle_indication(&mut self, now: Instant, (link, said): Indication<Self::Below>) {
        self.now = now;
        self.hear(now, link, said);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        let Role::Repeat(_, interval) = self.role else { return };
        if self.next.is_some_and(|at| at <= now) {
            self.next = Some(now + interval);
            if self.began.is_none() {
                self.start(now);
            }
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<TaskIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        if let Some(request) = self.down.pop_front() {
            return Some(request);
        }
        let written = self.write()?;
        match &written.1 {
            StreamRequest::Write(bytes) if !matches!(self.role, Role::Download(_) | Role::Serve(_)) => {
                let bytes = bytes.len() as u64;
                self.measure(|measured| measured.bytes += bytes);
            }
            StreamRequest::Close if matches!(self.role, Role::Iperf(_)) => self.complete(now),
            _ => {}
        }
        Some(written)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}

/// Files for the service of an experiment, which starts the traffic with them and does not look into them.
pub fn no_files() -> Vec<Bytes> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: LinkId = LinkId(1);
    const IN: LinkId = LinkId(LinkId::FIRST_INCOMING);

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn end(role: Role) -> (Traffic, SharedMeasured) {
        let measured = SharedMeasured::default();
        (Traffic::new(role, OUT, measured.clone()), measured)
    }

    /// Returns the lengths of the writes, and true if the end closes.
    fn written(end: &mut Traffic, now: Instant) -> (Vec<usize>, bool) {
        let mut lengths = Vec::new();
        while let Some((_, request)) = end.poll_request(now) {
            match request {
                StreamRequest::Write(bytes) => lengths.push(bytes.len()),
                StreamRequest::Close => return (lengths, true),
                StreamRequest::Connect | StreamRequest::Release(_) => {}
                other => panic!("{other:?}"),
            }
        }
        (lengths, false)
    }

    #[test]
    fn iperf_counts_what_it_has_written_until_its_last_block_is_complete() {
        let (mut iperf, measured) = end(Role::Iperf(Duration::from_secs(600)));
        iperf.handle_request(at(1), TaskRequest::Start { files: no_files() });
        assert_eq!(written(&mut iperf, at(1)), (vec![], false));
        iperf.handle_indication(at(2), (OUT, StreamIndication::Connected));
        // At 2 s a block and a half, at 601 s the rest of the second block and a third one, whose rest comes at 640 s.
        for (seconds, room, lengths, closes) in [
            (2, 196_608, vec![131_072, 65_536], false),
            (601, 131_072, vec![65_536, 65_536], false),
            (640, 100_000, vec![65_536], true),
        ] {
            iperf.handle_indication(at(seconds), (OUT, StreamIndication::Room(room)));
            assert_eq!(written(&mut iperf, at(seconds)), (lengths, closes), "at {seconds} s");
        }
        let expected =
            Measured { bytes: 3 * BLOCK_BYTES, time: Some(Duration::from_secs(639)), repeated: vec![] };
        assert_eq!(*measured.lock().unwrap(), expected);
    }

    #[test]
    fn a_download_is_over_with_the_last_byte_of_the_file() {
        let ((mut client, measured), (mut server, _)) = (end(Role::Download(1000)), end(Role::Serve(1000)));
        client.handle_request(at(1), TaskRequest::Start { files: no_files() });
        client.handle_indication(at(2), (OUT, StreamIndication::Connected));
        client.handle_indication(at(2), (OUT, StreamIndication::Room(5000)));
        assert_eq!(written(&mut client, at(2)), (vec![120], false));
        server.handle_indication(at(2), (IN, StreamIndication::Connected));
        server.handle_indication(at(2), (IN, StreamIndication::Room(5000)));
        assert_eq!(written(&mut server, at(2)), (vec![], false), "it waits for the request");
        server.handle_indication(at(3), (IN, StreamIndication::Data(vec![0; 120].into())));
        assert_eq!(written(&mut server, at(3)), (vec![1280], true));
        client.handle_indication(at(8), (OUT, StreamIndication::Data(vec![0; 1279].into())));
        assert_eq!(client.poll_indication(at(8)), None);
        client.handle_indication(at(9), (OUT, StreamIndication::Data(vec![0; 1].into())));
        assert_eq!(client.poll_indication(at(9)), Some(TaskIndication::Done { file: 0, intact: true }));
        assert_eq!(measured.lock().unwrap().time, Some(Duration::from_secs(8)));
    }

    #[test]
    fn a_repeated_file_starts_at_its_interval_unless_the_last_one_is_not_over() {
        let (mut sender, measured) = end(Role::Repeat(500, Duration::from_secs(120)));
        let mut starts = Vec::new();
        for round in 0..4 {
            let now = sender.poll_timeout().expect("it always has a next time");
            sender.handle_timeout(now);
            if sender.poll_request(now) == Some((OUT, StreamRequest::Connect)) {
                starts.push(now.as_secs_f64());
                sender.handle_indication(now, (OUT, StreamIndication::Connected));
                sender.handle_indication(now, (OUT, StreamIndication::Room(5000)));
                assert_eq!(written(&mut sender, now), (vec![500], true));
            }
            // The first one takes too long.
            if round > 0 {
                let over = now + Duration::from_secs(10);
                sender.handle_indication(over, (OUT, StreamIndication::Closed(CloseReason::Finished)));
            }
        }
        assert_eq!(starts, [60.0, 300.0, 420.0]);
        let times: Vec<u64> = measured.lock().unwrap().repeated.iter().map(Duration::as_secs).collect();
        assert_eq!(times, [130, 10, 10]);
    }
}
