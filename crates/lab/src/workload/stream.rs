//! Files over plain TCP, the baseline for all other protocols.
//!
//! The sender opens a connection for each file, one after the other, writes a header of 12 bytes (number and length of the
//! file, which distinguish an empty file and a second attempt) and the file, and closes. The receiver reads to the end and
//! compares. A broken connection is opened again after a pause that doubles, and the file restarts, because plain TCP keeps
//! no state between connections.
//!
//! ```text
//! source:       idle -> connecting -> writing -> closing -> idle (next file)
//!                           ^            |          |
//!                           +--- pause <-+----------+  (broken)
//! destination:  header -> body -> complete
//! ```

use super::{FileTask, TaskIndication, TaskRequest, TryFailure};
use crate::arrivals::SharedArrivals;
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::engine::Engine;
use longwire_proto::service::{CloseReason, LinkId, Many, Stream, StreamIndication, StreamRequest};
use longwire_proto::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Length of the header before a file: its number (4) and its length (8), big-endian.
pub const HEAD_BYTES: usize = 12;

/// Maximum length of a single write. Writes share the memory of the file, so this only limits the data passed down in
/// one step.
const WRITE_BYTES_MAX: u64 = 64 * 1024;

/// Attempts for each file.
const TRIES_MAX: u32 = 10;

/// Pause after the first failure; it doubles with each further failure.
const PAUSE: Duration = Duration::from_secs(1);

const PAUSE_MAX: Duration = Duration::from_secs(60);

/// State of the sender with its current file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Connecting,
    Writing,
    Closing,
    Paused(Instant),
}

#[derive(Debug)]
struct Incoming {
    head: BytesMut,
    file: usize,
    at: u64,
    intact: bool,
}

/// Workload: sender and receiver in one, each inactive until requested.
#[derive(Debug)]
pub struct FilesOverStream {
    link: LinkId,
    files: Vec<Bytes>,
    current: usize,
    tries: u32,
    phase: Phase,
    head: Bytes,
    written: u64,
    room: u64,
    expected: Vec<Bytes>,
    done: Vec<bool>,
    incoming: BTreeMap<LinkId, Incoming>,
    /// Record of the arrivals; at the destination.
    arrivals: Option<SharedArrivals>,
    down: VecDeque<(LinkId, StreamRequest)>,
    up: VecDeque<TaskIndication>,
}

impl FilesOverStream {
    /// Creates a workload that sends over `link` when requested, and receives from all incoming connections.
    pub fn new(link: LinkId) -> Self {
        FilesOverStream {
            link,
            files: Vec::new(),
            current: 0,
            tries: 0,
            phase: Phase::Idle,
            head: Bytes::new(),
            written: 0,
            room: 0,
            expected: Vec::new(),
            done: Vec::new(),
            incoming: BTreeMap::new(),
            arrivals: None,
            down: VecDeque::new(),
            up: VecDeque::new(),
        }
    }

    /// Records the arrivals at this node.
    pub fn recording(self, arrivals: Option<SharedArrivals>) -> Self {
        FilesOverStream { arrivals, ..self }
    }

    fn connect(&mut self) {
        let Some(file) = self.files.get(self.current) else {
            self.phase = Phase::Idle;
            return;
        };
        let mut head = BytesMut::with_capacity(HEAD_BYTES);
        head.put_u32(self.current as u32);
        head.put_u64(file.len() as u64);
        self.head = head.freeze();
        self.written = 0;
        self.room = 0;
        self.tries += 1;
        self.phase = Phase::Connecting;
        self.down.push_back((self.link, StreamRequest::Connect));
    }

    fn hear_as_source(&mut self, now: Instant, indication: StreamIndication) {
        match indication {
            StreamIndication::Connected => self.phase = Phase::Writing,
            StreamIndication::Room(room) => self.room = room,
            StreamIndication::Data(data) => {
                self.down.push_back((self.link, StreamRequest::Release(data.len() as u64)));
            }
            StreamIndication::Closed(CloseReason::Finished) if self.phase == Phase::Closing => {
                self.next_file();
            }
            StreamIndication::Closed(reason) => self.broken(now, reason),
            StreamIndication::PeerClosed | StreamIndication::Secured { .. } => {}
        }
    }

    fn next_file(&mut self) {
        self.current += 1;
        self.tries = 0;
        self.connect();
    }

    fn broken(&mut self, now: Instant, reason: CloseReason) {
        let for_good = self.tries >= TRIES_MAX;
        self.up.push_back(TaskIndication::Failed {
            file: self.current,
            why: TryFailure::Stream(reason),
            for_good,
        });
        if for_good {
            self.next_file();
            return;
        }
        let doublings = (self.tries - 1).min(16);
        let pause = PAUSE.saturating_mul(1 << doublings).min(PAUSE_MAX);
        self.phase = Phase::Paused(now + pause);
    }

    /// Returns the next write, if there is room for one.
    fn write(&mut self) -> Option<StreamRequest> {
        if self.phase != Phase::Writing {
            return None;
        }
        let file = &self.files[self.current];
        let total = (HEAD_BYTES + file.len()) as u64;
        if self.written == total {
            self.phase = Phase::Closing;
            return Some(StreamRequest::Close);
        }
        let room = self.room.min(WRITE_BYTES_MAX) as usize;
        if room == 0 {
            return None;
        }
        let at = self.written as usize;
        let data = match at.checked_sub(HEAD_BYTES) {
            None => self.head.slice(at..HEAD_BYTES.min(at + room)),
            Some(offset) => file.slice(offset..file.len().min(offset + room)),
        };
        self.written += data.len() as u64;
        self.room -= data.len() as u64;
        Some(StreamRequest::Write(data))
    }

    fn hear_as_destination(&mut self, now: Instant, link: LinkId, indication: StreamIndication) {
        match indication {
            StreamIndication::Connected => {
                let fresh =
                    Incoming { head: BytesMut::with_capacity(HEAD_BYTES), file: 0, at: 0, intact: true };
                self.incoming.insert(link, fresh);
            }
            StreamIndication::Data(data) => {
                self.down.push_back((link, StreamRequest::Release(data.len() as u64)));
                self.receive(link, data);
                self.record_arrivals(now, link);
            }
            StreamIndication::PeerClosed => self.down.push_back((link, StreamRequest::Close)),
            StreamIndication::Closed(_) => {
                self.incoming.remove(&link);
            }
            StreamIndication::Room(_) | StreamIndication::Secured { .. } => {}
        }
    }

    /// Records the bytes of all complete files, and of the one that this link carries.
    fn record_arrivals(&self, now: Instant, link: LinkId) {
        let (Some(arrivals), Some(incoming)) = (&self.arrivals, self.incoming.get(&link)) else { return };
        let complete = self.expected.iter().zip(&self.done).enumerate();
        let complete = complete.filter(|(file, (_, done))| **done && *file != incoming.file);
        let complete: u64 = complete.map(|(_, (file, _))| file.len() as u64).sum();
        let total = complete + incoming.at;
        arrivals.lock().expect("nobody panics").add(now, total);
    }

    fn receive(&mut self, link: LinkId, mut data: Bytes) {
        let Some(incoming) = self.incoming.get_mut(&link) else { return };
        if incoming.head.len() < HEAD_BYTES {
            let missing = (HEAD_BYTES - incoming.head.len()).min(data.len());
            incoming.head.extend_from_slice(&data.split_to(missing));
            if incoming.head.len() < HEAD_BYTES {
                return;
            }
            incoming.file = u32::from_be_bytes(incoming.head[..4].try_into().expect("four bytes")) as usize;
            let length = u64::from_be_bytes(incoming.head[4..].try_into().expect("eight bytes"));
            let announced = self.expected.get(incoming.file).map(|file| file.len() as u64);
            incoming.intact = announced == Some(length);
        }
        let Some(expected) = self.expected.get(incoming.file) else { return };
        let from = (incoming.at as usize).min(expected.len());
        let to = (from + data.len()).min(expected.len());
        incoming.intact &= to - from == data.len() && expected[from..to] == data[..];
        incoming.at += data.len() as u64;
        if incoming.at == expected.len() as u64 {
            let (file, intact) = (incoming.file, incoming.intact);
            if !core::mem::replace(&mut self.done[file], true) {
                self.up.push_back(TaskIndication::Done { file, intact });
            }
        }
    }
}

impl Engine for FilesOverStream {
    type Above = FileTask;
    type Below = Many<LinkId, Stream>;

    fn handle_request(&mut self, _now: Instant, request: TaskRequest) {
        match request {
            TaskRequest::Start { files } => {
                self.files.extend(files);
                if self.phase == Phase::Idle {
                    self.connect();
                }
            }
            TaskRequest::Expect { files } => {
                self.done.extend(files.iter().map(|_| false));
                self.expected.extend(files);
            }
        }
    }

    fn handle_indication(&mut self, now: Instant, (link, indication): (LinkId, StreamIndication)) {
        match link == self.link {
            true => self.hear_as_source(now, indication),
            false => self.hear_as_destination(now, link, indication),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Paused(until) if until <= now) {
            self.connect();
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<TaskIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, _now: Instant) -> Option<(LinkId, StreamRequest)> {
        self.down.pop_front().or_else(|| self.write().map(|request| (self.link, request)))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Paused(until) => Some(until),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::engine::drain;

    const OUT: LinkId = LinkId(1);
    const IN: LinkId = LinkId(LinkId::FIRST_INCOMING);

    /// Perfect stream between two workloads that accepts at most 1000 bytes at a time.
    struct Wire {
        now: Instant,
        source: FilesOverStream,
        destination: FilesOverStream,
        heard: Vec<TaskIndication>,
    }

    impl Wire {
        fn new(files: &[Bytes], expected: &[Bytes]) -> Wire {
            let mut wire = Wire {
                now: Instant::ZERO,
                source: FilesOverStream::new(OUT),
                destination: FilesOverStream::new(OUT),
                heard: Vec::new(),
            };
            wire.source.handle_request(wire.now, TaskRequest::Start { files: files.to_vec() });
            wire.destination.handle_request(wire.now, TaskRequest::Expect { files: expected.to_vec() });
            wire
        }

        /// Carries everything across until both are idle.
        fn run(&mut self) {
            loop {
                let mut down = Vec::new();
                let heard = &mut self.heard;
                drain(&mut self.source, self.now, |up| heard.push(up), |request| down.push(request));
                if down.is_empty() {
                    return;
                }
                for (_, request) in down {
                    self.carry(request);
                }
            }
        }

        fn carry(&mut self, request: StreamRequest) {
            match request {
                StreamRequest::Connect => {
                    self.tell_destination(StreamIndication::Connected);
                    self.tell_source(StreamIndication::Connected);
                    self.tell_source(StreamIndication::Room(1000));
                }
                StreamRequest::Write(data) => {
                    assert!(data.len() <= 1000, "written without room");
                    self.tell_destination(StreamIndication::Data(data));
                    self.tell_source(StreamIndication::Room(1000));
                }
                StreamRequest::Close => {
                    self.tell_destination(StreamIndication::PeerClosed);
                    self.tell_destination(StreamIndication::Closed(CloseReason::Finished));
                    self.tell_source(StreamIndication::Closed(CloseReason::Finished));
                }
                other => panic!("the source never says {other:?}"),
            }
        }

        fn tell_source(&mut self, indication: StreamIndication) {
            self.source.handle_indication(self.now, (OUT, indication));
        }

        fn tell_destination(&mut self, indication: StreamIndication) {
            self.destination.handle_indication(self.now, (IN, indication));
            let heard = &mut self.heard;
            drain(&mut self.destination, self.now, |up| heard.push(up), |_| {});
        }
    }

    #[test]
    fn files_arrive_whole_and_in_order_even_an_empty_one() {
        let files = [Bytes::from(vec![7; 2500]), Bytes::new(), Bytes::from(vec![9; 1])];
        let mut wire = Wire::new(&files, &files);
        wire.run();
        assert_eq!(wire.heard, [0, 1, 2].map(|file| TaskIndication::Done { file, intact: true }));
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let sent = [Bytes::from(vec![7; 2500])];
        let mut other = vec![7; 2500];
        other[2499] = 8;
        let mut wire = Wire::new(&sent, &[Bytes::from(other)]);
        wire.run();
        assert!(wire.heard.contains(&TaskIndication::Done { file: 0, intact: false }));
    }

    #[test]
    fn a_broken_connection_begins_anew_after_a_pause_that_doubles_and_ends_at_the_limit() {
        let files = [Bytes::from(vec![7; 10])];
        let mut source = FilesOverStream::new(OUT);
        let mut now = Instant::ZERO;
        source.handle_request(now, TaskRequest::Start { files: files.to_vec() });
        let mut pauses = Vec::new();
        for _ in 1..TRIES_MAX {
            assert_eq!(source.poll_request(now), Some((OUT, StreamRequest::Connect)));
            source.handle_indication(now, (OUT, StreamIndication::Closed(CloseReason::Refused)));
            let until = source.poll_timeout().expect("it pauses");
            pauses.push((until - now).as_secs());
            now = until;
            source.handle_timeout(now);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(source.poll_request(now), Some((OUT, StreamRequest::Connect)));
        source.handle_indication(now, (OUT, StreamIndication::Closed(CloseReason::TimedOut)));
        assert_eq!(source.poll_timeout(), None, "it gave up");
        let last = core::iter::from_fn(|| source.poll_indication(now)).last();
        let why = TryFailure::Stream(CloseReason::TimedOut);
        assert_eq!(last, Some(TaskIndication::Failed { file: 0, why, for_good: true }));
    }
}
