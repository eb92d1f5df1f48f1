//! Storage port: requests and their outstanding answers.

use crate::service::{DeliveryId, LinkId, RecordId, StorageRequest, TransferId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

use super::delivery::LocalKey;

/// Purpose of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReadPurpose {
    /// Transfer to a neighbour.
    Transfer(LinkId, TransferId),
    /// Header for a transfer to a neighbour.
    Head(LinkId, TransferId),
    /// Delivery to an application.
    Delivery(DeliveryId),
    /// Administrative record, whose payload has this key.
    Admin(Box<LocalKey>),
    /// Header for the verification with this number.
    CheckHead(u64),
    /// Payload for the verification with this number.
    Check(u64),
    /// Start of the agent.
    Restore,
    /// Check of a bundle that a crash left without a seal.
    Verify,
}

/// Storage port.
#[derive(Debug, Default)]
pub(super) struct StoragePort {
    out: VecDeque<StorageRequest>,
    /// Purposes of the outstanding reads by their numbers; reads of a record are answered in order.
    reads: BTreeMap<(RecordId, u64), ReadPurpose>,
    /// Number of the next read.
    next_read: u64,
    /// Bytes in appends that the storage has not yet taken.
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
        self.reads.insert((record, self.next_read), purpose);
        self.next_read += 1;
        self.out.push_back(StorageRequest::Read { record, offset, length });
    }

    pub(super) fn remove(&mut self, record: RecordId) {
        self.out.push_back(StorageRequest::Remove { record });
    }

    /// Next request to the storage.
    pub(super) fn poll(&mut self) -> Option<StorageRequest> {
        let request = self.out.pop_front();
        if let Some(StorageRequest::Append { data, .. }) = &request {
            self.out_bytes -= data.len();
        }
        request
    }

    /// Returns the purpose of the record's oldest read, which was answered.
    pub(super) fn answered(&mut self, record: RecordId) -> Option<ReadPurpose> {
        let (&oldest, _) = self.reads.range((record, 0)..=(record, u64::MAX)).next()?;
        self.reads.remove(&oldest)
    }
}
