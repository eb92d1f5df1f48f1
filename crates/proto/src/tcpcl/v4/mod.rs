//! Version 4 (RFC 9174): its messages, and the parameters negotiated by two SESS_INITs.

pub mod wire;

use super::config::Config;
use super::dialect::{Received, SegmentAnswer, SegmentHeader, SegmentToSend, Terms};
use crate::codec::{self, DecodeError};
use crate::service::RefuseReason;
use bytes::{Bytes, BytesMut};
use wire::{END, Item, Message, RejectReason, START, SessInit, TRANSFER_LENGTH, TermReason, XferSegment};

/// Type of a session extension from the private range, never critical: this side keeps the acknowledged part of a
/// transfer that breaks off. Version 3 has a flag for it; in version 4 an acknowledgement alone does not imply it, and
/// most receivers drop incomplete bundles.
pub const KEEPS_PREFIX: u16 = 0xbf01;
/// Value of the extension, to distinguish it from other private uses of the number.
const KEEPS_PREFIX_VALUE: &[u8] = b"keeps-prefix";

/// Returns the SESS_INIT for a configuration.
pub(super) fn sess_init(config: &Config) -> SessInit {
    let mut items = BytesMut::new();
    if config.reactive_fragmentation {
        let value = Bytes::from_static(KEEPS_PREFIX_VALUE);
        Item { critical: false, kind: KEEPS_PREFIX, value }.encode(&mut items);
    }
    SessInit {
        keepalive: config.keepalive_seconds(),
        segment_mru: config.segment_mru,
        transfer_mru: config.transfer_mru,
        node_id: config.node_id.clone(),
        items: items.freeze(),
    }
}

/// Computes the parameters of a session from the peer's SESS_INIT. Fails on a malformed list of extensions, an unknown
/// critical extension (RFC 9174 4.6, 4.8), or a segment MRU of zero.
pub(super) fn terms(config: &Config, peer: &SessInit) -> Result<Terms, DecodeError> {
    let items = wire::items(peer.items.clone())?;
    let keeps = |item: &Item| item.kind == KEEPS_PREFIX && item.value[..] == *KEEPS_PREFIX_VALUE;
    if items.iter().any(|item| item.critical && !keeps(item)) {
        return Err(DecodeError::invalid("a critical session extension", "RFC 9174 4.8"));
    }
    if peer.segment_mru == 0 {
        return Err(DecodeError::invalid("the segment MRU", "RFC 9174 4.7"));
    }
    Ok(Terms {
        segment_bytes_max: peer.segment_mru,
        transfer_bytes_max: peer.transfer_mru.max(config.transfer_mtu_min),
        answers: true,
        refuses: true,
        announces: config.lengths,
        keeps_prefix: config.reactive_fragmentation && items.iter().any(keeps),
    })
}

pub(super) fn hear(input: &mut Bytes) -> Result<Received, DecodeError> {
    Ok(match Message::decode(input)? {
        Message::XferSegment(segment) => Received::Segment(segment_heard(&segment)),
        Message::XferAck { id, up_to, .. } => Received::Ack { id: Some(id), up_to },
        Message::XferRefuse { reason, id } => Received::Refuse { id: Some(id), reason },
        Message::KeepAlive => Received::KeepAlive,
        Message::SessTerm { reply, reason } => Received::Terminate { reply, reason, delay: None },
        Message::MsgReject { header, .. } => Received::Rejected { header },
        Message::SessInit(_) => Received::Unexpected { header: 0x07 },
        Message::Unknown { header } => Received::Unknown { header },
    })
}

pub(super) fn segment(terms: &Terms, say: SegmentToSend, out: &mut BytesMut) {
    let flags = if say.start { START } else { 0 } | if say.end { END } else { 0 };
    let mut items = BytesMut::new();
    // A single segment contains its length already (RFC 9174 5.2.5.1).
    if terms.announces && say.start && !say.end {
        let value = Bytes::copy_from_slice(&say.total.to_be_bytes());
        Item { critical: false, kind: TRANSFER_LENGTH, value }.encode(&mut items);
    }
    let segment = XferSegment { flags, id: say.id, items: items.freeze(), length: say.length };
    Message::XferSegment(segment).encode(out);
}

pub(super) fn answer(answer: SegmentAnswer, out: &mut BytesMut) {
    match answer {
        SegmentAnswer::Ack { id, flags, up_to } => Message::XferAck { flags, id, up_to },
        SegmentAnswer::Refuse { id, reason } => Message::XferRefuse { reason, id },
    }
    .encode(out);
}

/// Converts a received header with its transfer extensions: a Transfer Length at most once; an unknown extension only
/// if it is not critical (RFC 9174 5.2.5).
fn segment_heard(segment: &XferSegment) -> SegmentHeader {
    let mut total = None;
    let mut fault = None;
    match wire::items(segment.items.clone()) {
        Err(_) => fault = Some(RefuseReason::ExtensionFailure),
        Ok(items) => {
            for item in items {
                match (item.kind, <[u8; 8]>::try_from(&item.value[..])) {
                    (TRANSFER_LENGTH, Ok(value)) if total.is_none() => {
                        total = Some(u64::from_be_bytes(value))
                    }
                    (TRANSFER_LENGTH, _) => fault = Some(RefuseReason::ExtensionFailure),
                    _ if item.critical => fault = Some(RefuseReason::ExtensionFailure),
                    _ => {}
                }
            }
        }
    }
    SegmentHeader {
        id: Some(segment.id),
        start: segment.flags & START != 0,
        end: segment.flags & END != 0,
        flags: segment.flags,
        length: segment.length,
        total,
        fault,
    }
}

/// Returns the maximum length of a segment's header, bytes: the message itself, and for the first segment the list of
/// extensions with a Transfer Length.
pub(super) const fn header_bytes_max(start: bool) -> u64 {
    if start { 18 + 4 + 13 } else { 18 }
}

/// Encodes a KEEPALIVE.
pub(super) fn keepalive() -> Bytes {
    codec::encoded(0, |out| Message::KeepAlive.encode(out))
}

/// Encodes a SESS_TERM.
pub(super) fn terminate(reply: bool, reason: TermReason) -> Bytes {
    codec::encoded(0, |out| Message::SessTerm { reply, reason }.encode(out))
}

/// Encodes a MSG_REJECT.
pub(super) fn reject(reason: RejectReason, header: u8) -> Bytes {
    codec::encoded(0, |out| Message::MsgReject { reason, header }.encode(out))
}
