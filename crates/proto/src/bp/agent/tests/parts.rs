//! Parts of a node besides its agent: a disk, and an application.

use crate::rng::Rng;
use crate::service::{
    AppIndication, AppRequest, BpaIndication, BundleName, CreationTimestamp, DeliveryId,
    ManagementIndication, RecordId, SendId,
};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};

/// Payloads longer than this follow the pattern and are checked while they are read.
pub(super) const COLLECTED_MAX: u64 = 4 << 20;
pub(super) const PERIOD: usize = 65_536;

/// Part of the payload of every long send: it is periodic, and slices of it share its memory.
pub(super) fn pattern(offset: u64, length: usize) -> Bytes {
    static PATTERN: std::sync::LazyLock<Bytes> = std::sync::LazyLock::new(|| {
        let mut bytes = vec![0; PERIOD];
        Rng::new(99).fill(&mut bytes);
        bytes.extend_from_within(..);
        bytes.into()
    });
    let start = (offset % PERIOD as u64) as usize;
    PATTERN.slice(start..start + length)
}

#[derive(Clone, Debug)]
pub(super) enum Payload {
    Given(Bytes),
    Pattern(u64),
}

impl Payload {
    pub(super) fn len(&self) -> u64 {
        match self {
            Payload::Given(bytes) => bytes.len() as u64,
            Payload::Pattern(length) => *length,
        }
    }

    pub(super) fn part(&self, offset: u64, length: u64) -> Bytes {
        let length = length.min(self.len() - offset).min(PERIOD as u64) as usize;
        match self {
            Payload::Given(bytes) => bytes.slice(offset as usize..offset as usize + length),
            Payload::Pattern(_) => pattern(offset, length),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) records: BTreeMap<RecordId, Log>,
    pub(super) latency: Duration,
    pub(super) capacity: Option<u64>,
    /// Additional space for short appends.
    pub(super) spare: u64,
    pub(super) used: u64,
    /// Records with an append that was rejected: later ones are rejected, too.
    pub(super) refused: BTreeSet<RecordId>,
    /// Time until which reads fail with the device.
    pub(super) away_until: Instant,
}

impl Disk {
    /// Stores a durable record.
    pub(super) fn put(&mut self, record: RecordId, bytes: Bytes) {
        let length = bytes.len() as u64;
        self.used += length;
        self.records.insert(
            record,
            Log { chunks: BTreeMap::from([(0, bytes)]), length, durable: length, damaged_from: None },
        );
    }
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) chunks: BTreeMap<u64, Bytes>,
    pub(super) length: u64,
    pub(super) durable: u64,
    /// Offset behind which no byte can be read.
    pub(super) damaged_from: Option<u64>,
}

impl Log {
    pub(super) fn is_damaged(&self, offset: u64, length: u64) -> bool {
        self.damaged_from.is_some_and(|from| self.length.min(offset + length) > from)
    }

    pub(super) fn read(&self, offset: u64, length: u64) -> Bytes {
        let end = self.length.min(offset + length);
        let mut out = BytesMut::new();
        let mut here = offset;
        while here < end {
            let (&start, chunk) = self.chunks.range(..=here).next_back().expect("chunks are dense");
            let part = chunk.slice((here - start) as usize..);
            let part = part.slice(..part.len().min((end - here) as usize));
            if here == offset && part.len() as u64 == end - offset {
                return part;
            }
            here += part.len() as u64;
            out.extend_from_slice(&part);
        }
        out.freeze()
    }

    pub(super) fn truncate(&mut self, length: u64) {
        self.chunks.split_off(&length);
        if let Some((&start, chunk)) = self.chunks.last_key_value() {
            let kept = chunk.slice(..chunk.len().min((length - start) as usize));
            self.chunks.insert(start, kept);
        }
        self.length = length;
        self.durable = length;
    }
}

/// Accepted delivery: source, creation timestamp, payload (empty for long ones), length.
pub(super) type Taken = (String, CreationTimestamp, Vec<u8>, u64);

/// Application of a node: accepts all deliveries and records everything.
#[derive(Debug, Default)]
pub(super) struct User {
    pub(super) takes: bool,
    pub(super) log: Vec<AppIndication>,
    pub(super) events: Vec<ManagementIndication>,
    pub(super) inbox: Vec<Taken>,
    pub(super) reading: BTreeMap<DeliveryId, Reading>,
    /// With endpoint and length: a payload with others and the same bundle ID is a different one.
    pub(super) taken: BTreeSet<(BundleName, String, u64)>,
    pub(super) sends: BTreeMap<SendId, (Payload, u64)>,
    pub(super) ended: BTreeMap<SendId, AppIndication>,
    pub(super) accepted: BTreeSet<SendId>,
    pub(super) room: u64,
    pub(super) requests: Vec<AppRequest>,
}

#[derive(Debug)]
pub(super) struct Reading {
    name: BundleName,
    destination: String,
    pub(super) length: u64,
    got: u64,
    bytes: Vec<u8>,
}

impl User {
    pub(super) fn hear(&mut self, indication: BpaIndication) {
        match indication {
            BpaIndication::App(indication) => self.hear_agent(indication),
            BpaIndication::Manage(event) => self.events.push(event),
        }
        self.feed();
    }

    fn hear_agent(&mut self, indication: AppIndication) {
        match &indication {
            AppIndication::Room(room) => self.room = *room,
            AppIndication::Accepted { send, .. } => {
                assert!(self.accepted.insert(*send), "accepted twice");
            }
            AppIndication::Sent { send } | AppIndication::Failed { send, .. } => {
                let before = self.ended.insert(*send, indication.clone());
                assert!(before.is_none(), "{send:?} ended twice");
                self.sends.remove(send);
            }
            AppIndication::Delivered { delivery, name, destination, length, .. } => {
                let known = (name.clone(), destination.clone(), *length);
                assert!(!self.taken.contains(&known), "{known:?} is delivered after it was taken");
                if self.takes {
                    let reading = Reading {
                        name: known.0,
                        destination: known.1,
                        length: *length,
                        got: 0,
                        bytes: Vec::new(),
                    };
                    self.reading.insert(*delivery, reading);
                    self.read_on(*delivery);
                }
            }
            AppIndication::Data { delivery, offset, data } => self.data(*delivery, *offset, data),
            AppIndication::Gone { delivery, taken: true } => {
                if let Some(reading) = self.reading.remove(delivery) {
                    self.taken.insert((reading.name, reading.destination, reading.length));
                }
            }
            _ => {}
        }
        if !matches!(indication, AppIndication::Data { .. } | AppIndication::Room(_)) {
            self.log.push(indication);
        }
    }

    pub(super) fn data(&mut self, delivery: DeliveryId, offset: u64, data: &Bytes) {
        let Some(reading) = self.reading.get_mut(&delivery) else { return };
        if offset != reading.got {
            return;
        }
        reading.got += data.len() as u64;
        if reading.length <= COLLECTED_MAX {
            reading.bytes.extend_from_slice(data);
        } else {
            assert!(*data == pattern(offset, data.len()), "the payload is damaged at {offset}");
        }
        self.read_on(delivery);
    }

    pub(super) fn read_on(&mut self, delivery: DeliveryId) {
        let reading = &self.reading[&delivery];
        if reading.got < reading.length {
            self.requests.push(AppRequest::Read { delivery, offset: reading.got, length: PERIOD as u32 });
            return;
        }
        // It accepts the complete delivery; after a crash possibly not for the first time.
        let BundleName { source, created } = &reading.name;
        self.inbox.retain(|taken| (&taken.0, &taken.1) != (source, created));
        self.inbox.push((source.clone(), *created, reading.bytes.clone(), reading.length));
        self.requests.push(AppRequest::Taken { delivery });
    }

    /// Passes payload to the agent as far as there is room.
    pub(super) fn feed(&mut self) {
        for (send, (payload, offset)) in &mut self.sends {
            while *offset < payload.len() && self.room > 0 {
                let data = payload.part(*offset, self.room);
                *offset += data.len() as u64;
                self.room -= data.len() as u64;
                self.requests.push(AppRequest::Piece { send: *send, data });
            }
        }
    }
}
