//! Version 3 (RFC 7242): its messages, and the parameters negotiated by two contact headers.

pub mod wire;

use super::config::Config;
use super::dialect::{Received, SegmentAnswer, SegmentHeader, SegmentToSend, Terms};
use super::v4::wire::TermReason;
use crate::codec::{self, DecodeError, sdnv};
use crate::service::RefuseReason;
use bytes::{Bytes, BytesMut};
use wire::{ContactHeader, Message, ShutdownReason};

/// Returns the contact header for a configuration.
pub(super) fn contact_header(config: &Config) -> ContactHeader {
    let eid = if config.node_id.is_empty() { "dtn:none".to_owned() } else { config.node_id.clone() };
    ContactHeader {
        acknowledgements: config.acknowledgements,
        reactive_fragmentation: config.reactive_fragmentation,
        // Refusal without acknowledgements is not allowed (RFC 7242 4.1, table 1).
        refusal: config.refusal && config.acknowledgements,
        lengths: config.lengths,
        keepalive: config.keepalive_seconds(),
        eid,
    }
}

/// Computes the parameters of a session from two contact headers. LENGTH messages are sent if the peer requests them (RFC
/// 7242 5.5). No message contains the longest bundle that the peer accepts, so it is the limit of this side.
pub(super) fn terms(config: &Config, peer: &ContactHeader) -> Terms {
    let own = contact_header(config);
    let answers = own.acknowledgements && peer.acknowledgements;
    Terms {
        segment_bytes_max: u64::MAX,
        transfer_bytes_max: config.transfer_mru,
        answers,
        refuses: own.refusal && peer.refusal && answers,
        announces: config.lengths && peer.lengths,
        keeps_prefix: answers && own.reactive_fragmentation && peer.reactive_fragmentation,
    }
}

/// Decodes a message; `announced` is the length that the peer has announced for the next bundle.
pub(super) fn hear(announced: &mut Option<u64>, input: &mut Bytes) -> Result<Received, DecodeError> {
    let message = Message::decode(input)?;
    // Acknowledgements, refusals and keepalives may arrive between a LENGTH and its bundle.
    let continues = matches!(message, Message::DataSegment { start: false, .. } | Message::Length { .. });
    if announced.is_some() && continues {
        return Err(DecodeError::invalid("the message after a LENGTH message", "RFC 7242 5.5"));
    }
    Ok(match message {
        Message::DataSegment { start, end, length } => Received::Segment(SegmentHeader {
            id: None,
            start,
            end,
            flags: 0,
            length,
            total: announced.take(),
            fault: None,
        }),
        Message::AckSegment { up_to } => Received::Ack { id: None, up_to },
        Message::RefuseBundle { reason } => Received::Refuse { id: None, reason },
        Message::KeepAlive => Received::KeepAlive,
        Message::Shutdown { reason, delay } => {
            Received::Terminate { reply: false, reason: shutdown_heard(reason), delay }
        }
        Message::Length { total } => {
            *announced = Some(total);
            Received::NoAction
        }
        Message::Unknown { header } => Received::Unknown { header },
    })
}

pub(super) fn segment(terms: &Terms, say: SegmentToSend, out: &mut BytesMut) {
    // A single segment contains its length already.
    if terms.announces && say.start && !say.end {
        Message::Length { total: say.total }.encode(out);
    }
    Message::DataSegment { start: say.start, end: say.end, length: say.length }.encode(out);
}

pub(super) fn answer(terms: &Terms, answer: SegmentAnswer, out: &mut BytesMut) {
    match answer {
        SegmentAnswer::Ack { up_to, .. } if terms.answers => Message::AckSegment { up_to }.encode(out),
        SegmentAnswer::Refuse { reason, .. } if terms.refuses => {
            Message::RefuseBundle { reason: refuse_said(reason) }.encode(out);
        }
        SegmentAnswer::Ack { .. } | SegmentAnswer::Refuse { .. } => {}
    }
}

/// Returns the maximum length of a segment's header, bytes, with or without a LENGTH message before it.
pub(super) const fn header_bytes_max(announces: bool) -> u64 {
    let announcement = if announces { 1 + sdnv::LENGTH_MAX } else { 0 };
    // An SDNV of five bytes suffices for any segment that room is granted for.
    (1 + 5 + announcement) as u64
}

/// Encodes a KEEPALIVE.
pub(super) fn keepalive() -> Bytes {
    codec::encoded(0, |out| Message::KeepAlive.encode(out))
}

/// Encodes a SHUTDOWN, with a reason if version 3 has one for it.
pub(super) fn shutdown(reason: TermReason) -> Bytes {
    let reason = match reason {
        TermReason::IdleTimeout => Some(ShutdownReason::IdleTimeout),
        TermReason::VersionMismatch => Some(ShutdownReason::VersionMismatch),
        TermReason::Busy | TermReason::ResourceExhaustion => Some(ShutdownReason::Busy),
        TermReason::Unknown | TermReason::ContactFailure | TermReason::Other(_) => None,
    };
    codec::encoded(0, |out| Message::Shutdown { reason, delay: None }.encode(out))
}

fn shutdown_heard(reason: Option<ShutdownReason>) -> TermReason {
    match reason {
        Some(ShutdownReason::IdleTimeout) => TermReason::IdleTimeout,
        Some(ShutdownReason::VersionMismatch) => TermReason::VersionMismatch,
        Some(ShutdownReason::Busy) => TermReason::Busy,
        Some(ShutdownReason::Other(_)) | None => TermReason::Unknown,
    }
}

/// Returns the reason that version 3 has a code for.
fn refuse_said(reason: RefuseReason) -> RefuseReason {
    match reason {
        RefuseReason::Completed | RefuseReason::NoResources | RefuseReason::Retransmit => reason,
        _ => RefuseReason::Unknown,
    }
}
