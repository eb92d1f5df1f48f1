//! For tests that ask where the bytes of a bundle are: what a record of the storage has of a payload.

use crate::bp::DecodePolicy;
use bytes::Bytes;

use super::head::decode_head;
use super::record::{RecordHeader, RecordKind};

/// A part of a payload, or all of it.
#[derive(Debug)]
pub(crate) struct PayloadPart {
    /// The endpoint that sent it.
    pub(crate) source: String,
    /// As [`crate::service::AppIndication::Accepted`] says it.
    pub(crate) created: (u64, u64),
    /// Where it begins in the payload.
    pub(crate) offset: u64,
    /// Its bytes, as far as they are there.
    pub(crate) bytes: Bytes,
}

/// The part of a payload that is in a record; none in one that is not of a bundle, or ends within its head.
pub(crate) fn part_in(record: &[u8]) -> Option<PayloadPart> {
    let mut rest = Bytes::copy_from_slice(record);
    let header = RecordHeader::decode(&mut rest).ok()?;
    if !matches!(header.kind, RecordKind::Own | RecordKind::Received) {
        return None;
    }
    let (head, length) = decode_head(&rest, &DecodePolicy::STRICT).ok()?;
    let mut bytes = rest.slice(length..);
    bytes.truncate(usize::try_from(head.payload_bytes()).unwrap_or(usize::MAX));
    let timestamp = head.timestamp();
    Some(PayloadPart {
        source: head.source().to_string(),
        created: (timestamp.time.0, timestamp.sequence),
        offset: head.fragment().map_or(0, |fragment| fragment.offset),
        bytes,
    })
}
