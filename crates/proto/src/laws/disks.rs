//! Disks that are slow, fill up, and lose in a crash what they had not confirmed as stored; and grounds that combine
//! disks and links.

use super::{Draw, Environment};
use crate::engine::Service;
use crate::rng::Rng;
use crate::service::{Both, Port, RecordId, Storage, StorageFailure, StorageIndication, StorageRequest};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Default)]
struct HostileRecord {
    /// Data that survive a crash.
    durable: Vec<u8>,
    /// Appends that are not durable, in order.
    pending: VecDeque<Bytes>,
    /// An append found no space: later ones are not kept either.
    full: bool,
    /// Time at which the last request is done.
    done_at: Instant,
}

#[derive(Debug)]
enum Work {
    Append {
        /// The append was confirmed already.
        lie: bool,
    },
    Full,
    Read {
        offset: u64,
        length: u32,
    },
    Remove,
}

#[derive(Debug, Default)]
struct HostileDisk {
    records: BTreeMap<RecordId, HostileRecord>,
    work: BTreeMap<(Instant, u64), (RecordId, Work)>,
    lists: BTreeMap<Instant, u32>,
    /// Bytes that are stored or will be.
    used: u64,
}

/// Disks of all nodes.
pub(crate) struct Disks {
    rng: Rng,
    disks: Vec<HostileDisk>,
    count: u64,
    up: VecDeque<(usize, StorageIndication)>,
    delay: Duration,
    capacity_bytes: u64,
    lies: bool,
    carried: u64,
    faults: u64,
}

impl Disks {
    pub(crate) fn new(mut rng: Rng, nodes: usize) -> Self {
        let delay_max = if rng.chance(0.3) { 1_000 } else { 20 };
        Disks {
            delay: if rng.chance(0.2) { Duration::ZERO } else { Duration::from_millis(rng.below(delay_max)) },
            capacity_bytes: if rng.chance(0.25) { rng.between(1_000, 60_000) } else { u64::MAX },
            rng,
            disks: (0..nodes).map(|_| HostileDisk::default()).collect(),
            count: 0,
            up: VecDeque::new(),
            lies: false,
            carried: 0,
            faults: 0,
        }
    }

    /// Makes the disks confirm small appends long before they are durable, and delay removals as long: to test that the
    /// laws detect it.
    pub(crate) fn lying(self) -> Self {
        Disks { lies: true, ..self }
    }

    /// Returns the durable data of every record of all nodes.
    pub(crate) fn durable(&self) -> impl Iterator<Item = &[u8]> {
        self.disks.iter().flat_map(|disk| disk.records.values()).map(|record| &record.durable[..])
    }

    /// Returns the time that an operation takes.
    fn delay(&self, work: &Work) -> Duration {
        match work {
            Work::Append { lie: true } => Duration::from_secs(20),
            Work::Remove if self.lies => Duration::from_secs(20),
            _ => self.delay,
        }
    }

    /// Schedules an operation: those on one record are done in order, those on several in any order.
    fn schedule(&mut self, now: Instant, node: usize, record: RecordId, work: Work) {
        self.count += 1;
        let delay = self.delay(&work);
        let at = now + self.rng.span(Duration::ZERO, delay);
        let entry = self.disks[node].records.entry(record).or_default();
        entry.done_at = entry.done_at.max(at);
        let done_at = entry.done_at;
        self.disks[node].work.insert((done_at, self.count), (record, work));
    }

    fn append(&mut self, now: Instant, node: usize, record: RecordId, data: Bytes) {
        let capacity = self.capacity_bytes;
        let disk = &mut self.disks[node];
        let entry = disk.records.entry(record).or_default();
        if entry.full {
            return;
        }
        if disk.used + data.len() as u64 > capacity {
            entry.full = true;
            self.faults += 1;
            self.schedule(now, node, record, Work::Full);
            return;
        }
        disk.used += data.len() as u64;
        let lie = self.lies && data.len() < 100;
        entry.pending.push_back(data);
        if lie {
            let length = entry.durable.len() + entry.pending.iter().map(Bytes::len).sum::<usize>();
            self.up.push_back((node, StorageIndication::Stored { record, up_to: length as u64 }));
        }
        self.schedule(now, node, record, Work::Append { lie });
    }

    fn done(&mut self, node: usize, record: RecordId, work: Work) {
        let disk = &mut self.disks[node];
        // A removal discards the operations requested before it; later ones create the record again.
        let known = disk.records.get_mut(&record);
        let said = match (work, known) {
            (Work::Append { lie }, Some(entry)) => {
                let data = entry.pending.pop_front().expect("an append waits");
                entry.durable.extend_from_slice(&data);
                // Several appends may be confirmed together: then the last one is.
                if lie || (!entry.pending.is_empty() && self.rng.chance(0.5)) {
                    return;
                }
                StorageIndication::Stored { record, up_to: entry.durable.len() as u64 }
            }
            (Work::Full, Some(entry)) => {
                entry.full = false;
                if self.rng.chance(0.5) {
                    StorageIndication::Full { record }
                } else {
                    StorageIndication::AppendFailed { record }
                }
            }
            (Work::Read { offset, length }, Some(entry)) if !entry.durable.is_empty() => {
                let from = (offset as usize).min(entry.durable.len());
                let to = from.saturating_add(length as usize).min(entry.durable.len());
                let data = Bytes::copy_from_slice(&entry.durable[from..to]);
                StorageIndication::Data { record, offset, data }
            }
            (Work::Read { offset, .. }, _) => {
                StorageIndication::ReadFailed { record, offset, failure: StorageFailure::Missing }
            }
            (Work::Remove, entry) => {
                if let Some(entry) = entry {
                    disk.used -= entry.durable.len() as u64;
                    entry.durable.clear();
                    if entry.pending.is_empty() && !entry.full {
                        let later = disk.work.values().any(|(other, _)| *other == record);
                        if !later {
                            disk.records.remove(&record);
                        }
                    }
                }
                StorageIndication::Removed { record }
            }
            (Work::Append { .. } | Work::Full, None) => unreachable!("its record is kept while it waits"),
        };
        self.up.push_back((node, said));
    }
}

impl Environment<Storage> for Disks {
    fn handle_request(&mut self, now: Instant, node: usize, request: StorageRequest) {
        self.carried += 1;
        match request {
            StorageRequest::Append { record, data, .. } => self.append(now, node, record, data),
            StorageRequest::Read { record, offset, length, in_parts } => {
                let length = if in_parts { self.rng.between(1, length.max(1).into()) as u32 } else { length };
                self.schedule(now, node, record, Work::Read { offset, length });
            }
            StorageRequest::Remove { record } => self.schedule(now, node, record, Work::Remove),
            StorageRequest::List => *self.disks[node].lists.entry(now + self.delay).or_default() += 1,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for node in 0..self.disks.len() {
            while let Some(entry) = self.disks[node].work.first_entry() {
                if entry.key().0 > now {
                    break;
                }
                let (record, work) = entry.remove();
                self.done(node, record, work);
            }
            let disk = &mut self.disks[node];
            while let Some(entry) = disk.lists.first_entry() {
                if *entry.key() > now {
                    break;
                }
                let there = disk.records.iter().filter(|(_, record)| !record.durable.is_empty());
                let records: Vec<_> = there.map(|(id, record)| (*id, record.durable.len() as u64)).collect();
                for _ in 0..entry.remove() {
                    self.up.push_back((node, StorageIndication::Listed { records: records.clone() }));
                }
            }
        }
    }

    fn poll_indication(&mut self) -> Option<(usize, StorageIndication)> {
        self.up.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let work = self.disks.iter().filter_map(|disk| disk.work.first_key_value()).map(|(&(at, _), _)| at);
        let lists = self.disks.iter().filter_map(|disk| disk.lists.first_key_value()).map(|(&at, _)| at);
        work.chain(lists).min()
    }

    /// Discards data that were not durable, or only a part of them; a pending removal may be done.
    fn crash(&mut self, now: Instant, node: usize) {
        let disk = &mut self.disks[node];
        disk.lists.clear();
        for (_, (record, work)) in core::mem::take(&mut disk.work) {
            let entry = disk.records.get_mut(&record).expect("its record is kept while it waits");
            match work {
                Work::Append { .. } => {
                    let data = entry.pending.pop_front().expect("an append waits");
                    // Once a part is lost, everything after it is lost.
                    if !entry.full {
                        let kept = self.rng.between(0, data.len() as u64) as usize;
                        entry.durable.extend_from_slice(&data[..kept]);
                        entry.full = kept < data.len();
                    }
                }
                Work::Remove if self.rng.chance(0.5) && !entry.full => entry.durable.clear(),
                _ => {}
            }
        }
        disk.records.retain(|_, record| {
            (record.full, record.done_at) = (false, now);
            record.pending.clear();
            !record.durable.is_empty()
        });
        disk.used = disk.records.values().map(|record| record.durable.len() as u64).sum();
        self.up.retain(|&(at, _)| at != node);
    }

    fn calm(&mut self, _now: Instant) {
        self.capacity_bytes = u64::MAX;
    }

    fn carried(&self) -> u64 {
        self.carried
    }

    fn faults(&self) -> u64 {
        self.faults
    }
}

/// Disks and links.
pub(crate) struct DisksAndLinks<L> {
    pub(crate) disks: Disks,
    pub(crate) links: L,
}

impl<S: Service, L: Environment<S>> Environment<Both<Storage, S>> for DisksAndLinks<L> {
    fn handle_request(&mut self, now: Instant, node: usize, request: Port<StorageRequest, S::Request>) {
        match request {
            Port::First(request) => self.disks.handle_request(now, node, request),
            Port::Second(request) => self.links.handle_request(now, node, request),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.disks.handle_timeout(now);
        self.links.handle_timeout(now);
    }

    fn poll_indication(&mut self) -> Option<(usize, Port<StorageIndication, S::Indication>)> {
        if let Some((node, indication)) = self.disks.poll_indication() {
            return Some((node, Port::First(indication)));
        }
        self.links.poll_indication().map(|(node, indication)| (node, Port::Second(indication)))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        crate::joint::earlier(self.disks.poll_timeout(), self.links.poll_timeout())
    }

    fn started(&mut self, now: Instant, node: usize) {
        self.disks.started(now, node);
        self.links.started(now, node);
    }

    fn crash(&mut self, now: Instant, node: usize) {
        self.disks.crash(now, node);
        self.links.crash(now, node);
    }

    fn calm(&mut self, now: Instant) {
        self.disks.calm(now);
        self.links.calm(now);
    }

    fn carried(&self) -> u64 {
        self.disks.carried() + self.links.carried()
    }

    fn faults(&self) -> u64 {
        self.disks.faults() + self.links.faults()
    }
}
