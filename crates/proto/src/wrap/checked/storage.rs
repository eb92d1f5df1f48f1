//! The rules of [`Storage`].

use super::account::rule;
use super::{CheckedService, ContractBreach};
use crate::service::{RecordId, Storage, StorageIndication, StorageRequest};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An unanswered read. Units: bytes.
#[derive(Clone, Copy, Debug)]
struct ReadAccount {
    offset: u64,
    length: u32,
    /// Minimum length of the answer: what was durable then, unless parts are enough.
    least: u64,
}

/// A record from its first append to its removal.
#[derive(Debug, Default)]
struct LifeAccount {
    /// Length after all appends so far; `None` for a record of an earlier run that was not listed.
    appended: Option<u64>,
    stored: u64,
    /// Lengths after the appends that are unanswered, as far as known.
    unstored: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct RecordAccount {
    /// The life of the record that the next answer concerns.
    life: LifeAccount,
    /// Lives after removals that are unanswered.
    later: VecDeque<LifeAccount>,
    /// Unanswered reads in the order of the requests.
    reads: Vec<ReadAccount>,
}

/// The account of [`Storage`]. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct StorageAccount {
    records: BTreeMap<RecordId, RecordAccount>,
    listing: u32,
    listed: bool,
}

impl StorageAccount {
    fn record(&mut self, record: RecordId) -> &mut RecordAccount {
        let life = LifeAccount { appended: self.listed.then_some(0), ..Default::default() };
        self.records.entry(record).or_insert_with(|| RecordAccount { life, ..Default::default() })
    }
}

impl CheckedService for Storage {
    type Account = StorageAccount;

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        match request {
            StorageRequest::Append { record, data, .. } => {
                let entry = account.record(*record);
                let life = entry.later.back_mut().unwrap_or(&mut entry.life);
                if let Some(appended) = &mut life.appended {
                    *appended += data.len() as u64;
                    life.unstored.insert(*appended);
                }
            }
            StorageRequest::Read { record, offset, length, in_parts } => {
                let entry = account.record(*record);
                let durable = if entry.later.is_empty() { entry.life.stored } else { 0 };
                let there = durable.saturating_sub(*offset).min((*length).into());
                let least = if *in_parts { there.min(1) } else { there };
                entry.reads.push(ReadAccount { offset: *offset, length: *length, least });
            }
            StorageRequest::Remove { record } => {
                let fresh = LifeAccount { appended: Some(0), ..Default::default() };
                account.record(*record).later.push_back(fresh);
            }
            StorageRequest::List => account.listing += 1,
        }
        Ok(())
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        match indication {
            StorageIndication::Stored { record, up_to } => {
                let entry = &mut account.record(*record).life;
                rule(*up_to >= entry.stored, format_args!("stored {up_to} bytes after {}", entry.stored))?;
                if let Some(appended) = entry.appended {
                    rule(*up_to <= appended, format_args!("stored {up_to} bytes of {appended}"))?;
                }
                entry.stored = *up_to;
                entry.unstored = entry.unstored.split_off(&(up_to + 1));
            }
            StorageIndication::Data { record, offset, data } => {
                let entry = account.record(*record);
                let read = entry.reads.iter().position(|read| read.offset == *offset);
                rule(read.is_some(), format_args!("data without a read"))?;
                let ReadAccount { length, least, .. } = entry.reads.remove(read.expect("checked above"));
                rule(
                    data.len() as u64 <= length.into(),
                    format_args!("{} bytes where {length} were asked for", data.len()),
                )?;
                rule(
                    data.len() as u64 >= least,
                    format_args!("{} bytes where {least} are durable", data.len()),
                )?;
            }
            StorageIndication::Removed { record } => {
                let entry = account.record(*record);
                let next = entry.later.pop_front();
                rule(next.is_some(), format_args!("Removed without Remove"))?;
                entry.life = next.expect("checked above");
            }
            StorageIndication::Full { record } | StorageIndication::AppendFailed { record } => {
                account.record(*record).life.unstored.clear();
            }
            StorageIndication::ReadFailed { record, offset, .. } => {
                let entry = account.record(*record);
                let read = entry.reads.iter().position(|read| read.offset == *offset);
                rule(read.is_some(), format_args!("a failure without a read"))?;
                entry.reads.remove(read.expect("checked above"));
            }
            StorageIndication::Listed { records } => {
                rule(account.listing > 0, format_args!("Listed without List"))?;
                rule(records.is_sorted_by_key(|&(record, _)| record), format_args!("a list out of order"))?;
                account.listing -= 1;
                if !core::mem::replace(&mut account.listed, true) {
                    for &(record, length) in records {
                        let entry = &mut account.records.entry(record).or_default().life;
                        entry.stored = entry.stored.max(length);
                        if entry.unstored.is_empty() && entry.appended.is_none() {
                            entry.appended = Some(length);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        let mut owed = Vec::new();
        for (record, entry) in &account.records {
            if let Some(up_to) = entry.life.unstored.last() {
                owed.push(format!("Stored {up_to} of {record:?}"));
            }
            if let Some(ReadAccount { offset, .. }) = entry.reads.first() {
                owed.push(format!("Data from {offset} of {record:?}"));
            }
            if !entry.later.is_empty() {
                owed.push(format!("Removed of {record:?}"));
            }
        }
        if account.listing > 0 {
            owed.push("Listed".to_owned());
        }
        owed
    }
}
