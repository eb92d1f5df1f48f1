//! Two endpoints with a line between them, and users that have files: contents follow from their offsets.

use crate::engine::Engine;
use crate::rng::Rng;
use crate::saratoga::wire::Packet;
use crate::saratoga::{Config, Endpoint};
use crate::service::{
    CloseReason, DatagramsIndication, DatagramsRequest, FileFailure, FileId, FileProperties, FilesIndication,
    FilesRequest, PartialFile, PeerId, Wish,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Period of the contents: no multiple of any packet.
const PERIOD: usize = 1_048_573;
/// Bytes of a packet besides it.
pub(super) const HEADER_BYTES: u64 = 32;

/// Decision on a packet of a node: true if it is lost.
type Loses = Box<dyn FnMut(usize, &Packet) -> bool>;

/// One direction of the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Rate, bit/s; zero: a packet takes no time.
    pub(super) rate_bps: u64,
    pub(super) delay: Duration,
    pub(super) bit_error_rate: f64,
}

#[derive(Debug)]
enum Event {
    Gone(usize, Option<u64>),
    Arrives(usize, Bytes),
    Carrier(bool),
}

/// Two endpoints.
pub(super) struct Pair {
    pub(super) ends: [Endpoint; 2],
    pub(super) now: Instant,
    lines: [Line; 2],
    free_at: [Instant; 2],
    /// The line is interrupted: what is sent is lost.
    pub(super) is_cut: bool,
    pub(super) loses: Loses,
    rng: Rng,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    pattern: Bytes,
    /// Files that each node provides, by path.
    pub(super) shelf: [BTreeMap<String, FileProperties>; 2],
    /// Paths of the deletions that each node was asked for.
    pub(super) deletions: [Vec<String>; 2],
    /// Users answer offers with this content of earlier transfers.
    pub(super) held: Option<PartialFile>,
    /// Users store what arrives.
    pub(super) stores: bool,
    /// Users refuse offers for this reason.
    pub(super) refuses: Option<FileFailure>,
    /// Files that have begun to arrive at each node.
    arriving: [BTreeSet<FileId>; 2],
    /// Received bytes that are not stored: node, file, beginning and end.
    pub(super) unstored: Vec<(usize, FileId, u64, u64)>,
    /// Files that ended at each node, with the time.
    pub(super) ended: [Vec<(Instant, FilesIndication)>; 2],
    pub(super) told: [Vec<FilesIndication>; 2],
    /// Packets in the order of their departure: time, node, packet, without payloads. Only if it is wanted.
    pub(super) log: Option<Vec<(Instant, usize, Packet)>>,
    /// Longest time that a packet has waited for the line.
    pub(super) waited_max: [Duration; 2],
    /// Bytes that have arrived in each direction for the first time.
    pub(super) payload: [u64; 2],
}

impl Pair {
    pub(super) fn new(configs: [Config; 2], lines: [Line; 2], seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut pattern = vec![0; PERIOD];
        rng.fill(&mut pattern);
        pattern.extend_from_within(..65_536);
        let mut pair = Pair {
            ends: configs.map(Endpoint::new),
            now: Instant::ZERO,
            lines,
            free_at: [Instant::ZERO; 2],
            is_cut: false,
            loses: Box::new(|_, _| false),
            rng,
            events: BTreeMap::new(),
            count: 0,
            pattern: pattern.into(),
            shelf: Default::default(),
            deletions: Default::default(),
            held: None,
            stores: true,
            refuses: None,
            arriving: Default::default(),
            unstored: Vec::new(),
            ended: Default::default(),
            told: Default::default(),
            log: None,
            waited_max: [Duration::ZERO; 2],
            payload: [0; 2],
        };
        for node in 0..2 {
            pair.ask(node, FilesRequest::Connect);
        }
        pair
    }

    /// Content of any file.
    pub(super) fn content(&self, offset: u64, length: usize) -> Bytes {
        let start = (offset % PERIOD as u64) as usize;
        self.pattern.slice(start..start + length)
    }

    /// Properties of a file with its checksum.
    pub(super) fn file(&self, path: &str, length: u64) -> FileProperties {
        let mut sum = crate::codec::crc::Running::crc32c();
        let mut at = 0;
        while at < length {
            let part = (length - at).min(65_536);
            sum.update(&self.content(at, part as usize));
            at += part;
        }
        FileProperties {
            path: path.to_owned(),
            length,
            modified: 7,
            created: 5,
            crc32c: Some(sum.value()),
            ..FileProperties::default()
        }
    }

    pub(super) fn put(&mut self, node: usize, file: u64, properties: FileProperties, asks: bool) {
        let available = properties.length;
        self.ask(node, FilesRequest::Put { file, properties, available, asks });
    }

    pub(super) fn get(&mut self, node: usize, file: u64, path: &str, held: Option<PartialFile>) {
        self.ask(node, FilesRequest::Get { file, path: path.to_owned(), wish: Wish::Get, held });
    }

    pub(super) fn ask(&mut self, node: usize, request: FilesRequest) {
        self.ends[node].handle_request(self.now, request);
        self.settle();
    }

    pub(super) fn tell(&mut self, node: usize, indication: DatagramsIndication) {
        self.ends[node].handle_indication(self.now, indication);
        self.settle();
    }

    /// Announces the state of the line to both ends at this time from now.
    pub(super) fn announce(&mut self, after: Duration, is_up: bool) {
        self.later(after, Event::Carrier(is_up));
    }

    /// Passes a packet to a node.
    pub(super) fn hear(&mut self, node: usize, packet: impl Into<Packet>) {
        let bytes = packet.into().to_bytes();
        let from = PeerId::CONFIGURED;
        self.tell(node, DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
        self.run(Duration::ZERO);
    }

    fn later(&mut self, after: Duration, event: Event) {
        self.count += 1;
        self.events.insert((self.now + after, self.count), event);
    }

    fn settle(&mut self) {
        while (0..2).any(|node| self.carry(node)) {}
    }

    fn carry(&mut self, node: usize) -> bool {
        if let Some(said) = self.ends[node].poll_indication(self.now) {
            self.indicated(node, said);
            return true;
        }
        match self.ends[node].poll_request(self.now) {
            Some(DatagramsRequest::Join { .. }) => {
                let peer = Some(PeerId::CONFIGURED);
                let joined = DatagramsIndication::Joined { bytes_max: 65_507, peer, group: None };
                self.ends[node].handle_indication(self.now, joined);
                self.ends[node].handle_indication(self.now, DatagramsIndication::Room(8));
            }
            Some(DatagramsRequest::Datagram { bytes, token, .. }) => self.depart(node, bytes, token),
            Some(DatagramsRequest::Leave | DatagramsRequest::Release(_)) => {}
            None => return false,
        }
        true
    }

    fn depart(&mut self, node: usize, bytes: Bytes, token: Option<u64>) {
        let line = self.lines[node];
        let packet = Packet::decode(&mut bytes.clone()).expect("an endpoint sends valid packets");
        let bits = (bytes.len() as u64 + HEADER_BYTES) * 8;
        let start = self.free_at[node].max(self.now);
        self.waited_max[node] = self.waited_max[node].max(start.saturating_since(self.now));
        let air = (bits * 1_000_000_000).checked_div(line.rate_bps).unwrap_or(0);
        self.free_at[node] = start + Duration::from_nanos(air);
        let gone = self.free_at[node].saturating_since(self.now);
        self.later(gone, Event::Gone(node, token));
        let arrives = (1.0 - line.bit_error_rate).powi(bits as i32);
        let is_lost = !self.rng.chance(arrives) || (self.loses)(node, &packet);
        if !self.is_cut && !is_lost {
            self.later(gone + line.delay, Event::Arrives(1 - node, bytes));
        }
        if let Some(log) = &mut self.log {
            log.push((self.now, node, packet));
        }
    }

    fn indicated(&mut self, node: usize, said: FilesIndication) {
        let now = self.now;
        match said {
            FilesIndication::Read { file, offset, length } => {
                let data = self.content(offset, length as usize);
                self.ends[node].handle_request(now, FilesRequest::Content { file, offset, data });
            }
            FilesIndication::Piece { file, offset, data } => {
                assert_eq!(data, self.content(offset, data.len()), "the content at {offset}");
                let end = offset + data.len() as u64;
                assert!(self.arriving[node].contains(&file), "{file:?} has not begun");
                self.payload[1 - node] += data.len() as u64;
                match self.stores {
                    true => {
                        self.ends[node].handle_request(now, FilesRequest::Stored { file, start: offset, end })
                    }
                    false => self.unstored.push((node, file, offset, end)),
                }
            }
            FilesIndication::Offered { file, .. } => {
                let answer = match self.refuses {
                    Some(reason) => FilesRequest::Refuse { file, reason },
                    None => FilesRequest::Accept { file, held: self.held.take() },
                };
                self.arriving[node].insert(file);
                self.told[node].push(said);
                self.ends[node].handle_request(now, answer);
            }
            FilesIndication::Begun { file, .. } => {
                self.arriving[node].insert(file);
                self.told[node].push(said);
            }
            FilesIndication::Wanted { file, ref path, .. } => {
                let answer = match self.shelf[node].get(path) {
                    Some(properties) => FilesRequest::Provide {
                        file,
                        properties: properties.clone(),
                        available: properties.length,
                    },
                    None => FilesRequest::Refuse { file, reason: FileFailure::NotFound },
                };
                self.told[node].push(said);
                self.ends[node].handle_request(now, answer);
            }
            FilesIndication::Remove { file, path } => {
                self.deletions[node].push(path);
                self.ends[node].handle_request(now, FilesRequest::Removed { file });
            }
            FilesIndication::Done { .. } | FilesIndication::Failed { .. } => {
                self.ended[node].push((now, said));
            }
            FilesIndication::Up { .. } | FilesIndication::Down { .. } | FilesIndication::Progress { .. } => {
                self.told[node].push(said);
            }
        }
    }

    /// Stores everything that has arrived.
    pub(super) fn store_all(&mut self) {
        for (node, file, start, end) in core::mem::take(&mut self.unstored) {
            self.ends[node].handle_request(self.now, FilesRequest::Stored { file, start, end });
        }
        self.settle();
    }

    /// Runs for a time, or until nothing happens any more; then it returns true.
    pub(super) fn run(&mut self, time: Duration) -> bool {
        let end = self.now + time;
        loop {
            let timeouts = self.ends.iter().filter_map(Endpoint::poll_timeout);
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = timeouts.chain(event).min() else { return true };
            if next > end {
                self.now = end;
                return false;
            }
            self.now = next.max(self.now);
            for node in 0..2 {
                if self.ends[node].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.ends[node].handle_timeout(self.now);
                }
            }
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let event = entry.remove();
                self.happen(event);
            }
            self.settle();
        }
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Gone(node, token) => {
                if let Some(token) = token {
                    self.ends[node].handle_indication(now, DatagramsIndication::Transmitted(token));
                }
                self.ends[node].handle_indication(now, DatagramsIndication::Room(8));
            }
            Event::Arrives(node, bytes) if !self.is_cut => {
                let from = PeerId::CONFIGURED;
                let datagram = DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
                self.ends[node].handle_indication(now, datagram);
            }
            Event::Arrives(..) => {}
            Event::Carrier(is_up) => {
                self.is_cut = !is_up;
                for node in 0..2 {
                    self.ends[node].handle_indication(now, DatagramsIndication::Carrier(is_up));
                }
            }
        }
        self.settle();
    }

    /// Fails the endpoint of a node; it opens again by itself.
    pub(super) fn leave(&mut self, node: usize) {
        self.tell(node, DatagramsIndication::Left(CloseReason::Unreachable));
    }

    /// Returns the indications with which files have ended at a node.
    pub(super) fn ends(&self, node: usize) -> Vec<FilesIndication> {
        self.ended[node].iter().map(|(_, said)| said.clone()).collect()
    }

    /// Returns the holes in the STATUS packets of a node, in the order of their departure.
    pub(super) fn holes(&self, node: usize) -> Vec<(u128, u128)> {
        let log = self.log.iter().flatten().filter(|(_, from, _)| *from == node);
        let holes = log.filter_map(|(_, _, packet)| match packet {
            Packet::Status(status) => Some(status.holes.clone()),
            _ => None,
        });
        holes.flatten().collect()
    }

    /// Returns the offsets of the DATA packets of a node with bytes, in the order of their departure.
    pub(super) fn offsets(&self, node: usize) -> Vec<u128> {
        let log = self.log.iter().flatten().filter(|(_, from, _)| *from == node);
        log.filter_map(|(_, _, packet)| match packet {
            Packet::Data(data) if !data.payload.is_empty() => Some(data.offset),
            _ => None,
        })
        .collect()
    }

    /// Returns the numbers of all sessions in packets of a node.
    pub(super) fn sessions(&self, node: usize) -> BTreeSet<u32> {
        let log = self.log.iter().flatten().filter(|(_, from, _)| *from == node);
        log.filter_map(|(_, _, packet)| match packet {
            Packet::Metadata(metadata) => Some(metadata.session),
            Packet::Request(request) => Some(request.session),
            _ => None,
        })
        .collect()
    }
}

/// A line without errors, on which a packet takes this time.
pub(super) fn perfect(delay: Duration) -> [Line; 2] {
    [Line { rate_bps: 0, delay, bit_error_rate: 0.0 }; 2]
}
