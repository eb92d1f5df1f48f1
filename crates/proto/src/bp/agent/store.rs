//! Storage port: requests and their outstanding answers.

use crate::kit::OrderedMap;
use crate::service::{LinkId, RecordId, StorageRequest, TransferId};
use bytes::Bytes;
use std::collections::VecDeque;

use super::delivery::PayloadId;

/// Purpose of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadPurpose {
    /// Transfer to a neighbour.
    Transfer(LinkId, TransferId),
    /// Header for a transfer to a neighbour.
    Head(LinkId, TransferId),
    /// Payload for this node: a delivery to an application, or an administrative record. With the number of the read.
    Payload(PayloadId, u64),
    /// Header for the verification with this number.
    CheckHead(u64),
    /// Payload for the verification with this number.
    Check(u64),
    /// Start of the agent.
    Restore,
    /// Check of a bundle that a crash left without a seal.
    Verify,
}

impl ReadPurpose {
    /// True if the purpose is served as well by a shorter piece, after which the next read begins.
    fn takes_parts(self) -> bool {
        matches!(
            self,
            ReadPurpose::Transfer(..)
                | ReadPurpose::Payload(..)
                | ReadPurpose::Check(_)
                | ReadPurpose::Verify
        )
    }
}

/// Storage port.
#[derive(Debug, Default)]
pub(super) struct StoragePort {
    out: VecDeque<StorageRequest>,
    /// Purposes, offsets and lengths of the outstanding reads by their numbers; reads of a record are answered in order.
    reads: OrderedMap<(RecordId, u64), (ReadPurpose, u64, u32)>,
    /// Number of the next read.
    next_read: u64,
    /// Bytes in appends that the storage has not yet taken.
    pub(super) out_bytes: usize,
}

impl StoragePort {
    pub(super) fn list(&mut self) {
        self.out.push_back(StorageRequest::List);
    }

    pub(super) fn append(&mut self, record: RecordId, data: Bytes, urgent: bool) {
        self.out_bytes += data.len();
        self.out.push_back(StorageRequest::Append { record, data, urgent });
    }

    pub(super) fn read(&mut self, record: RecordId, offset: u64, length: u32, purpose: ReadPurpose) {
        self.reads.insert((record, self.next_read), (purpose, offset, length));
        self.next_read += 1;
        self.out.push_back(StorageRequest::Read { record, offset, length, in_parts: purpose.takes_parts() });
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

    /// Returns the purpose and the length of the record's oldest read, which was answered; `None` if that has another offset.
    pub(super) fn answered(&mut self, record: RecordId, offset: u64) -> Option<(ReadPurpose, u32)> {
        let (&oldest, (_, at, _)) = self.reads.range((record, 0)..=(record, u64::MAX)).next()?;
        if *at != offset {
            return None;
        }
        self.reads.remove(&oldest).map(|(purpose, _, length)| (purpose, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header is of no use before all of it is there.
    #[test]
    fn only_some_purposes_take_parts() {
        let head = ReadPurpose::Head(LinkId(1), TransferId(1));
        let transfer = ReadPurpose::Transfer(LinkId(1), TransferId(1));
        let purposes = [
            (ReadPurpose::Payload(PayloadId(RecordId(1)), 1), true),
            (ReadPurpose::Check(1), true),
            (ReadPurpose::Verify, true),
            (transfer, true),
            (head, false),
            (ReadPurpose::CheckHead(1), false),
            (ReadPurpose::Restore, false),
        ];
        for (purpose, expected) in purposes {
            let mut port = StoragePort::default();
            port.read(RecordId(1), 0, 10, purpose);
            let Some(StorageRequest::Read { in_parts, .. }) = port.poll() else { panic!("it was requested") };
            assert_eq!(in_parts, expected, "{purpose:?}");
        }
    }

    #[test]
    fn an_answer_belongs_to_the_oldest_read_and_to_none_from_another_place() {
        const RECORD: RecordId = RecordId(1);
        let mut port = StoragePort::default();
        port.read(RECORD, 0, 10, ReadPurpose::Verify);
        port.read(RECORD, 10, 20, ReadPurpose::Restore);
        assert_eq!(port.answered(RECORD, 10), None);
        assert_eq!(port.answered(RECORD, 0), Some((ReadPurpose::Verify, 10)));
        assert_eq!(port.answered(RECORD, 0), None);
        assert_eq!(port.answered(RECORD, 10), Some((ReadPurpose::Restore, 20)));
    }
}
