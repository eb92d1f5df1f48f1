//! Looking through a whole store that no node has open, and mending what can be mended.

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

/// Records that are removed with one sync.
const REMOVED_AT_ONCE: usize = 1000;

/// Hears how many bytes of how many were looked at.
pub type ProgressFn<'a> = &'a mut dyn FnMut(u64, u64);

/// The content of a store, with all that is damaged or missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreCheck {
    /// Its format.
    pub format: u32,
    /// Its segments, those that are missing included.
    pub segments: u64,
    /// Bytes of its files; those of the reserve and of what was set aside are not counted.
    pub bytes: u64,
    /// Its records, those that are damaged or missing included, as far as they are known.
    pub records: u64,
    /// Records that are whole.
    pub whole: u64,
    /// Records of which something is damaged or missing.
    pub harmed: u64,
    /// Records that are missing, and nothing says whose they were.
    pub unnamed: u64,
    /// Bytes of a write that a crash cut off; they were never acknowledged.
    pub torn_bytes: u64,
    /// All that is damaged or missing, place by place.
    pub damage: Vec<StoreDamage>,
}

impl StoreCheck {
    /// Nothing is damaged or missing.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreRepair {
    /// All that was damaged or missing, and where it is kept now.
    pub damage: Vec<StoreDamage>,
    /// Places beside these: they were too many to be remembered.
    pub untold: u64,
    /// Records that were removed, as nothing of them was left.
    pub removed: u64,
    /// How the store is now.
    pub now: StoreCheck,
}

/// Reads all of a store, and changes nothing.
///
/// # Errors
/// There is none, a node has it open, or it is not understood.
pub fn check(folder: &Path, progress: ProgressFn<'_>) -> Result<StoreCheck, OpenError> {
    let (names, secret) = match opening::look(folder) {
        Err(OpenError::Device(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::Missing);
        }
        looked => looked?,
    };
    let secret = secret.ok_or(OpenError::Missing)?;
    // A node that has the store open has locked this file; where it is missing, nobody can be asked.
    let lock = match File::open(folder.join("lock")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        lock => Some(Lock::take(lock?)?),
    };
    let quarantine = Quarantine::that_only_tells(folder);
    let (damage, _) = collected(&quarantine);
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
    checked.count();
    Ok(checked)
}

/// Opens a store as a node would, reads all of it, sets a copy of what is damaged aside, and removes the records of which
/// nothing is left. What is left of others stays: a node that starts finds out whether their bundle is whole all the same,
/// or ends it for a reason. Records that are missing without a name are no longer counted as missing.
///
/// # Errors
/// As [`check`]; or the device fails, and what was done until then stays.
pub fn repair(folder: &Path, progress: ProgressFn<'_>) -> Result<StoreRepair, OpenError> {
    let quarantine = Quarantine::new(folder);
    let (damage, _) = collected(&quarantine);
    // A folder without a store is not made one.
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
        index.records.keys().filter(is_gone).map(|record| StoreWrite::Remove { record: *record }).collect()
    };
    for some in gone.chunks(REMOVED_AT_ONCE) {
        let failed = |_| io::Error::other("the records of which nothing is left cannot be removed");
        log.write(some).map_err(failed)?;
    }
    log.unnamed = 0;
    log.mark(&[]);
    // The note may not say more than is durable.
    let (file, end) = log.end();
    log.device.sync_data(&file)?;
    log.note_newest(end);
    drop(log);
    let damage = core::mem::take(&mut *damage.lock().expect("no thread panics with the list"));
    Ok(StoreRepair { damage, untold, removed: gone.len() as u64, now: check(folder, progress)? })
}

impl StoreCheck {
    fn count(&mut self) {
        let harmed: BTreeSet<RecordId> = self.damage.iter().filter_map(|damage| damage.record).collect();
        self.harmed = harmed.len() as u64;
        self.whole = self.records - self.harmed;
    }
}

/// All that is told from now on, and was before; and how much of that is not told any more.
fn collected(quarantine: &Quarantine) -> (Arc<Mutex<Vec<StoreDamage>>>, u64) {
    let all = Arc::new(Mutex::new(Vec::new()));
    let untold = quarantine.listen(told(&all));
    (all, untold)
}

/// Adds what is told to a list.
fn told(all: &Arc<Mutex<Vec<StoreDamage>>>) -> impl Fn(StoreDamage) + Send + 'static {
    let all = all.clone();
    move |damage| all.lock().expect("no thread panics with the list").push(damage)
}

/// Reads every record, and tells of those that are not whole.
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
