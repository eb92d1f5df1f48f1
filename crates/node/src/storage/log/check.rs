//! Checking and repairing a whole store that no node has open.

use super::device::Device;
use super::index::Index;
use super::lock::Lock;
use super::newest::NewestBatch;
use super::opening::{self, OpenError};
use super::quarantine::{self, Quarantine, StoreDamage};
use super::{FORMAT, Log, lock_index};
use crate::private_files;
use crate::storage::backend::{Backend as _, StoreWrite};
use longwire_proto::service::RecordId;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Records removed with one sync.
const REMOVED_AT_ONCE: usize = 1000;

/// Callback with the bytes examined so far and in total.
pub type ProgressFn<'a> = &'a mut dyn FnMut(u64, u64);

/// Contents of a store, with everything that is damaged or missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreCheck {
    /// Format of the store.
    pub format: u32,
    /// Segments, including missing ones.
    pub segments: u64,
    /// Bytes of the files, without the reserve and the quarantine.
    pub bytes: u64,
    /// Records, including damaged or missing ones as far as they are known.
    pub records: u64,
    /// Intact records.
    pub whole: u64,
    /// Records with damaged or missing data.
    pub harmed: u64,
    /// Missing records that cannot be identified.
    pub unnamed: u64,
    /// Bytes of a write that a crash interrupted; never acknowledged.
    pub torn_bytes: u64,
    /// Everything that is damaged or missing, place by place.
    pub damage: Vec<StoreDamage>,
}

impl StoreCheck {
    /// Returns true if nothing is damaged or missing.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreRepair {
    /// Everything that was damaged or missing, with its copies.
    pub damage: Vec<StoreDamage>,
    /// Number of further places, which were too many to be reported.
    pub untold: u64,
    /// Records removed because nothing of them was left.
    pub removed: u64,
    /// State of the store after the repair.
    pub now: StoreCheck,
}

/// Reads a whole store without changing anything.
///
/// # Errors
/// Fails if there is no store, if a node has it open, or if this version does not understand it.
pub fn check(folder: &Path, progress: ProgressFn<'_>) -> Result<StoreCheck, OpenError> {
    let (names, secret) = match opening::look(folder) {
        Err(OpenError::Device(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::Missing);
        }
        looked => looked?,
    };
    let secret = secret.ok_or(OpenError::Missing)?;
    // A node that has the store open holds a lock on this file; if it is missing, that cannot be determined.
    let lock = match File::open(folder.join("lock")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        lock => Some(Lock::take(lock?)?),
    };
    let quarantine = Quarantine::that_only_tells(folder);
    let damage = collected(&quarantine);
    let mut parts = opening::parts(&names, secret)?;
    parts.put_away(&quarantine)?;
    let newest = lock.as_ref().and_then(|lock| NewestBatch::read(lock, secret));
    let found = opening::read(parts, secret, newest, &quarantine, |_, _| {})?;
    let mut checked = StoreCheck {
        format: FORMAT,
        segments: found.index.segments.len() as u64,
        bytes: Device::new(folder).of_segments(),
        records: found.index.records.len() as u64,
        unnamed: found.met.unnamed,
        torn_bytes: found.met.torn_bytes,
        ..StoreCheck::default()
    };
    look_through(&Mutex::new(found.index), &quarantine, progress);
    checked.damage = core::mem::take(&mut *damage.lock().expect("no thread panics with the list"));
    let harmed: BTreeSet<RecordId> = checked.damage.iter().filter_map(|damage| damage.record).collect();
    checked.harmed = harmed.len() as u64;
    checked.whole = checked.records - checked.harmed;
    Ok(checked)
}

/// Opens a store as a node would, reads all of it, copies damaged data to the quarantine, and removes the records of which
/// nothing is left. The remains of others stay: when a node starts, it determines whether their bundle is complete, or
/// deletes it with a reason. Missing records that cannot be identified are not counted afterwards.
///
/// # Errors
/// Fails like [`check`], or if the device fails; changes made before that stay.
pub fn repair(folder: &Path, progress: ProgressFn<'_>) -> Result<StoreRepair, OpenError> {
    let quarantine = Quarantine::new(folder);
    let damage = collected(&quarantine);
    // A folder without a store must not become one.
    let known = match opening::look(folder) {
        Err(OpenError::Device(error)) if error.kind() == io::ErrorKind::NotFound => None,
        Err(OpenError::DamagedFormat { .. }) => {
            let mut options = private_files::file();
            options.create(true).truncate(false).read(true).write(true);
            let _lock = Lock::take(options.open(folder.join("lock"))?)?;
            opening::mend_formats(folder, &quarantine)?;
            opening::look(folder)?.1
        }
        looked => looked?.1,
    };
    known.ok_or(OpenError::Missing)?;
    let (mut log, _) = Log::open(folder)?;
    let untold = log.quarantine.listen(told(&damage));
    look_through(&log.index, &log.quarantine, progress);
    let gone: Vec<StoreWrite> = {
        let index = lock_index(&log.index);
        let is_gone = |record: &&RecordId| quarantine::is_gone(&index, **record);
        index
            .records
            .iter()
            .map(|(record, _)| record)
            .filter(is_gone)
            .map(|record| StoreWrite::Remove { record: *record })
            .collect()
    };
    for some in gone.chunks(REMOVED_AT_ONCE) {
        let failed = |_| io::Error::other("cannot remove the records with no data left");
        log.write(some).map_err(failed)?;
    }
    log.unnamed = 0;
    log.mark(&[]);
    // The summary must not claim more than is durable.
    let (file, end) = log.end();
    log.device.sync_data(&file)?;
    log.note_newest(end);
    drop(log);
    let damage = core::mem::take(&mut *damage.lock().expect("no thread panics with the list"));
    Ok(StoreRepair { damage, untold, removed: gone.len() as u64, now: check(folder, progress)? })
}

/// Returns a list of all reports, past and future.
fn collected(quarantine: &Quarantine) -> Arc<Mutex<Vec<StoreDamage>>> {
    let all = Arc::default();
    quarantine.listen(told(&all));
    all
}

/// Returns a listener that adds reports to a list.
fn told(all: &Arc<Mutex<Vec<StoreDamage>>>) -> impl Fn(StoreDamage) + Send + 'static {
    let all = all.clone();
    move |damage| all.lock().expect("no thread panics with the list").push(damage)
}

/// Reads every record and reports the damaged ones.
fn look_through(index: &Mutex<Index>, quarantine: &Quarantine, progress: ProgressFn<'_>) {
    let records: Vec<(RecordId, u64)> =
        lock_index(index).records.iter().map(|(id, record)| (*id, record.length())).collect();
    let all = records.iter().map(|(_, length)| length).sum();
    let mut done = 0;
    for (record, length) in records {
        quarantine.record(index, record);
        done += length;
        progress(done, all);
    }
}
