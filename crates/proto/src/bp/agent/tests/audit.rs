//! Payload parts in storage records, for tests that check where the bytes of a bundle are.

use crate::bp::{CreationTimestamp, DecodePolicy};
use bytes::Bytes;

use crate::bp::agent::head::decode_head;
use crate::bp::agent::record::{RecordHeader, RecordKind};

/// Part of a payload, or the complete payload.
#[derive(Debug)]
pub(crate) struct PayloadPart {
    /// Source endpoint.
    pub(crate) source: String,
    /// Creation time and sequence number, as in [`crate::service::AppIndication::Accepted`].
    pub(crate) created: CreationTimestamp,
    /// Offset in the payload, bytes.
    pub(crate) offset: u64,
    /// Bytes of the part that are in the record.
    pub(crate) bytes: Bytes,
}

/// Returns the payload part in a record; `None` if the record is not of a bundle or ends within the header.
pub(crate) fn part_in(record: &[u8]) -> Option<PayloadPart> {
    let mut rest = Bytes::copy_from_slice(record);
    let header = RecordHeader::decode(&mut rest).ok()?;
    if !matches!(header.kind, RecordKind::Own | RecordKind::Received) {
        return None;
    }
    let (head, length) = decode_head(&rest, &DecodePolicy::STRICT).ok()?;
    let mut bytes = rest.slice(length..);
    bytes.truncate(usize::try_from(head.payload_bytes()).unwrap_or(usize::MAX));
    Some(PayloadPart {
        source: head.source().to_string(),
        created: head.timestamp(),
        offset: head.fragment().map_or(0, |fragment| fragment.offset),
        bytes,
    })
}
