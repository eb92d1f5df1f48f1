//! A disk that keeps what it has confirmed, and fails as the script determines.

use super::Script;
use crate::service::{RecordId, StorageFailure, StorageIndication, StorageRequest};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Provider of a [`Storage`](crate::service::Storage).
#[derive(Debug, Default)]
pub(super) struct Provider {
    records: BTreeMap<RecordId, BytesMut>,
    asked: VecDeque<StorageRequest>,
}

impl Provider {
    /// Creates a disk with records of an earlier run, or of unknown origin.
    pub(super) fn new(records: impl IntoIterator<Item = Bytes>) -> Self {
        let records = records.into_iter().enumerate();
        let records = records.map(|(number, bytes)| (RecordId(number as u64), bytes.into())).collect();
        Provider { records, asked: VecDeque::new() }
    }

    /// Returns true if a request is unanswered.
    pub(super) fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    pub(super) fn hear(&mut self, request: StorageRequest) {
        self.asked.push_back(request);
    }

    pub(super) fn say(&mut self, script: &mut Script<'_>) -> Option<StorageIndication> {
        let fails = script.below(32) == 0;
        Some(match self.asked.pop_front()? {
            StorageRequest::Append { record, .. } if fails => {
                // This append and later ones are not kept.
                self.asked.retain(|asked| !matches!(asked, StorageRequest::Append { record: other, .. } if *other == record));
                match script.below(2) {
                    0 => StorageIndication::Full { record },
                    _ => StorageIndication::AppendFailed { record },
                }
            }
            StorageRequest::Append { record, data, .. } => {
                let kept = self.records.entry(record).or_default();
                kept.extend_from_slice(&data);
                StorageIndication::Stored { record, up_to: kept.len() as u64 }
            }
            StorageRequest::Read { record, offset, length, .. } => match self.records.get(&record) {
                Some(kept) if !fails => {
                    let from = kept.len().min(offset as usize);
                    let to = kept.len().min(from + length as usize);
                    StorageIndication::Data { record, offset, data: Bytes::copy_from_slice(&kept[from..to]) }
                }
                Some(_) => StorageIndication::ReadFailed { record, offset, failure: StorageFailure::Damaged },
                None => StorageIndication::ReadFailed { record, offset, failure: StorageFailure::Missing },
            },
            StorageRequest::Remove { record } => {
                self.records.remove(&record);
                StorageIndication::Removed { record }
            }
            StorageRequest::List => {
                let records = self.records.iter().map(|(record, kept)| (*record, kept.len() as u64));
                StorageIndication::Listed { records: records.collect() }
            }
        })
    }
}
