//! The storage port: what was asked and not yet answered.

use crate::service::{DeliveryId, LinkId, RecordId, StorageRequest, TransferId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

use super::delivery::LocalKey;

/// Who asked for a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReadPurpose {
    /// A transfer to a neighbour.
    Transfer(LinkId, TransferId),
    /// The head of what goes in a transfer to a neighbour.
    Head(LinkId, TransferId),
    /// An application.
    Delivery(DeliveryId),
    /// The administrative element, for a record whose payload has this key.
    Admin(LocalKey),
    /// The start of the agent.
    Restore,
    /// The check of a bundle that a crash left without a seal.
    Verify,
}

/// The storage port.
#[derive(Debug, Default)]
pub(super) struct StoragePort {
    out: VecDeque<StorageRequest>,
    /// Reads of a record are answered in order.
    reads: BTreeMap<RecordId, VecDeque<ReadPurpose>>,
    /// Bytes in appends that were not yet handed down.
    pub(super) out_bytes: usize,
}

impl StoragePort {
    pub(super) fn list(&mut self) {
        self.out.push_back(StorageRequest::List);
    }

    pub(super) fn append(&mut self, record: RecordId, data: Bytes) {
        self.out_bytes += data.len();
        self.out.push_back(StorageRequest::Append { record, data });
    }

    pub(super) fn read(&mut self, record: RecordId, offset: u64, length: u32, purpose: ReadPurpose) {
        self.reads.entry(record).or_default().push_back(purpose);
        self.out.push_back(StorageRequest::Read { record, offset, length });
    }

    pub(super) fn remove(&mut self, record: RecordId) {
        self.out.push_back(StorageRequest::Remove { record });
    }

    /// What is handed down next.
    pub(super) fn poll(&mut self) -> Option<StorageRequest> {
        let request = self.out.pop_front();
        if let Some(StorageRequest::Append { data, .. }) = &request {
            self.out_bytes -= data.len();
        }
        request
    }

    /// The record's oldest read was answered: who asked for it.
    pub(super) fn answered(&mut self, record: RecordId) -> Option<ReadPurpose> {
        let reads = self.reads.get_mut(&record)?;
        let purpose = reads.pop_front();
        if reads.is_empty() {
            self.reads.remove(&record);
        }
        purpose
    }
}
