//! A store that forgets what was not synced: what a power cut leaves, for tests.

use super::backend::{Backend, BatchRefusal, StoreReader, StoreWrite};
use bytes::{Bytes, BytesMut};
use longwire_proto::service::{RecordId, StorageFailure};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A disk in memory that survives its node. Each node that opens it ends the time of the one before: what that one still
/// writes is lost, as after a power cut.
#[derive(Clone, Debug, Default)]
pub struct VolatileStore {
    disk: Arc<VolatileDisk>,
    /// Which opening this is.
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
    /// No sync ends as long as this is so.
    held: bool,
    syncs: u64,
    bytes_max: Option<u64>,
    fails: bool,
}

impl VolatileStore {
    /// Power comes back: a store over what is durable. What the one before has not synced is lost.
    pub fn open(&self) -> VolatileStore {
        let mut state = self.lock();
        state.age += 1;
        self.disk.changed.notify_all();
        VolatileStore { disk: self.disk.clone(), age: state.age }
    }

    /// From now on no sync ends, until it is let go.
    pub fn hold(&self, held: bool) {
        self.lock().held = held;
        self.disk.changed.notify_all();
    }

    /// The disk is so large from now on; none: without limit.
    pub fn set_size(&self, bytes_max: Option<u64>) {
        self.lock().bytes_max = bytes_max;
    }

    /// The thread that writes panics at its next batch, as by a fault of the program.
    pub fn fail(&self) {
        self.lock().fails = true;
    }

    /// How many batches were made durable.
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Waits until so many batches were made durable, but not for longer than this.
    pub fn wait_for_syncs(&self, syncs: u64, patience: Duration) {
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
