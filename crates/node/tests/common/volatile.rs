//! Store that loses unsynced data, as after a power cut; unit tests of the crate have it, too.

#![allow(dead_code, reason = "each test file uses a part of it")]

use bytes::{Bytes, BytesMut};
use longwire_node::storage::{Backend, BatchRefusal, StoreOpener, StoreReader, StoreWrite};
use longwire_proto::service::{RecordId, StorageFailure};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Disk in memory that survives its node. Each opening invalidates the previous one: its later writes are lost, as after a
/// power cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolatileStore {
    disk: Arc<VolatileDisk>,
    /// Number of the opening.
    age: u64,
}

#[derive(Debug, Default)]
struct VolatileDisk {
    state: Mutex<VolatileState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct VolatileState {
    records: BTreeMap<RecordId, BytesMut>,
    age: u64,
    /// While true, no sync completes.
    held: bool,
    syncs: u64,
    bytes_max: Option<u64>,
    /// Number of batches that are refused because of the device.
    refuses: u64,
    fails: bool,
}

impl VolatileStore {
    /// Opens the durable contents, as after a power cut. Unsynced data of the previous opening is lost.
    pub(crate) fn open(&self) -> VolatileStore {
        let mut state = self.lock();
        state.age += 1;
        self.disk.changed.notify_all();
        VolatileStore { disk: self.disk.clone(), age: state.age }
    }

    /// Opens the disk for a node.
    pub(crate) fn opener(&self) -> StoreOpener {
        let disk = self.clone();
        Arc::new(move || Box::new(disk.open()))
    }

    /// Blocks or releases syncs.
    pub(crate) fn hold(&self, held: bool) {
        self.lock().held = held;
        self.disk.changed.notify_all();
    }

    /// Sets the size of the disk; `None` for no limit.
    pub(crate) fn set_size(&self, bytes_max: Option<u64>) {
        self.lock().bytes_max = bytes_max;
    }

    /// Refuses so many of the next batches, as a device that fails.
    pub(crate) fn refuse(&self, batches: u64) {
        self.lock().refuses = batches;
    }

    /// Waits until no more than this number of batches is still to be refused, for at most `patience`.
    pub(crate) fn wait_for_refusals(&self, left: u64, patience: Duration) {
        let waits = |state: &mut VolatileState| state.refuses > left;
        let waited = self.disk.changed.wait_timeout_while(self.lock(), patience, waits);
        drop(waited.expect("no thread panics with the disk"));
    }

    /// Makes the writer thread panic at its next batch, as after a bug.
    pub(crate) fn fail(&self) {
        self.lock().fails = true;
    }

    /// Returns the number of durable batches.
    pub(crate) fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Waits until this number of batches is durable, for at most `patience`.
    pub(crate) fn wait_for_syncs(&self, syncs: u64, patience: Duration) {
        let waits = |state: &mut VolatileState| state.syncs < syncs;
        let waited = self.disk.changed.wait_timeout_while(self.lock(), patience, waits);
        drop(waited.expect("no thread panics with the disk"));
    }

    fn lock(&self) -> MutexGuard<'_, VolatileState> {
        self.disk.state.lock().expect("no thread panics while it has the disk")
    }
}

impl Backend for VolatileStore {
    fn list(&mut self) -> Vec<(RecordId, u64)> {
        self.lock().records.iter().map(|(id, data)| (*id, data.len() as u64)).collect()
    }

    fn write(&mut self, batch: &[StoreWrite]) -> Result<(), BatchRefusal> {
        let state = self.lock();
        let fails = state.fails;
        drop(state);
        assert!(!fails, "the store fails, as a test has asked for");
        let state = self.lock();
        let age = self.age;
        let waits = |state: &mut VolatileState| state.held && state.age == age;
        let mut state = self.disk.changed.wait_while(state, waits).expect("no thread panics with the disk");
        if state.age != age {
            return Err(BatchRefusal::Device);
        }
        if state.refuses > 0 {
            state.refuses -= 1;
            self.disk.changed.notify_all();
            return Err(BatchRefusal::Device);
        }
        let used: u64 = state.records.values().map(|data| data.len() as u64).sum();
        let more: u64 = batch
            .iter()
            .map(|write| if let StoreWrite::Append { data, .. } = write { data.len() as u64 } else { 0 })
            .sum();
        let full = state.bytes_max.is_some_and(|most| used + more > most);
        for write in batch {
            match write {
                StoreWrite::Append { record, offset, data } if !full => {
                    let found = state.records.entry(*record).or_default();
                    assert_eq!(found.len() as u64, *offset, "appends follow each other");
                    found.extend_from_slice(data);
                }
                StoreWrite::Append { .. } => {}
                StoreWrite::Remove { record } => drop(state.records.remove(record)),
            }
        }
        state.syncs += 1;
        self.disk.changed.notify_all();
        if full { Err(BatchRefusal::Full) } else { Ok(()) }
    }

    fn reader(&self) -> Box<dyn StoreReader> {
        Box::new(self.clone())
    }
}

impl StoreReader for VolatileStore {
    fn length(&self, record: RecordId) -> Option<u64> {
        self.lock().records.get(&record).map(|data| data.len() as u64)
    }

    fn read(&self, record: RecordId, offset: u64, length: u32) -> Result<Bytes, StorageFailure> {
        let state = self.lock();
        let data = state.records.get(&record).ok_or(StorageFailure::Missing)?;
        let from = offset.min(data.len() as u64) as usize;
        let to = offset.saturating_add(u64::from(length)).min(data.len() as u64) as usize;
        Ok(Bytes::copy_from_slice(&data[from..to]))
    }
}
