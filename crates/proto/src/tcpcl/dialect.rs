//! What an established session says and hears, whichever version it speaks.
//!
//! The words are those of version 4, which are more; version 3 uses what it has. Version 3 has no transfer ids:
//! its answers belong to segments in the order in which those were sent (RFC 7242 5.4).

use super::config::Version;
use super::v4::wire::{RejectReason, TermReason};
use super::{v3, v4};
use crate::codec::DecodeError;
use crate::service::RefuseReason;
use bytes::{Bytes, BytesMut};

/// A received segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// The transfer's number on the wire, where it has one.
    pub(super) id: Option<u64>,
    /// The first of a bundle.
    pub(super) start: bool,
    /// The last of a bundle.
    pub(super) end: bool,
    /// The flags as they came, for the answer.
    pub(super) flags: u8,
    /// Bytes that follow.
    pub(super) length: u64,
    /// The bundle's length, where it was announced.
    pub(super) total: Option<u64>,
    /// What is wrong with the extensions.
    pub(super) fault: Option<RefuseReason>,
}

/// What was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// A segment begins.
    Segment(SegmentHeader),
    /// The peer has so many bytes of a transfer safe.
    Ack {
        /// The transfer's number on the wire; none: the oldest that waits.
        id: Option<u64>,
        /// Bytes from its beginning.
        up_to: u64,
    },
    /// The peer does not want a transfer.
    Refuse {
        /// The transfer's number on the wire; none: that of the oldest segment that waits.
        id: Option<u64>,
        /// Why.
        reason: RefuseReason,
    },
    /// A sign of life.
    KeepAlive,
    /// The peer ends the session.
    Terminate {
        /// As an answer.
        reply: bool,
        /// Why.
        reason: TermReason,
        /// Seconds before it may be called again, where it says so; zero: never.
        delay: Option<u64>,
    },
    /// The peer rejects a message.
    Rejected {
        /// The message's first byte.
        header: u8,
    },
    /// Something that needs no action now.
    NoAction,
    /// A message that does not fit here.
    Unexpected {
        /// Its first byte.
        header: u8,
    },
    /// A message of unknown type, and so of unknown length.
    Unknown {
        /// Its first byte.
        header: u8,
    },
}

impl Received {
    /// It is the first segment of a bundle.
    pub(super) fn begins(&self) -> bool {
        matches!(self, Received::Segment(header) if header.start)
    }
}

/// What a receiver answers to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentAnswer {
    /// It is safe.
    Ack {
        /// The transfer's number on the wire.
        id: u64,
        /// The segment's flags.
        flags: u8,
        /// Bytes from the transfer's beginning.
        up_to: u64,
    },
    /// Its transfer is not wanted.
    Refuse {
        /// The transfer's number on the wire.
        id: u64,
        /// Why.
        reason: RefuseReason,
    },
}

/// The header of a segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentToSend {
    /// The transfer's number on the wire.
    pub(super) id: u64,
    /// The first of the bundle.
    pub(super) start: bool,
    /// The last of the bundle.
    pub(super) end: bool,
    /// Bytes that follow.
    pub(super) length: u64,
    /// The bundle's length.
    pub(super) total: u64,
}

/// The version that an established session speaks, with what was agreed on.
#[derive(Clone, Debug)]
pub(super) enum Dialect {
    /// RFC 7242.
    Three(v3::SessionParameters),
    /// RFC 9174.
    Four(v4::SessionParameters),
}

impl Dialect {
    /// Takes a message from the front of `input`.
    pub(super) fn hear(&mut self, input: &mut Bytes) -> Result<Received, DecodeError> {
        match self {
            Dialect::Three(terms) => terms.hear(input),
            Dialect::Four(terms) => terms.hear(input),
        }
    }

    /// The header of a segment.
    pub(super) fn segment(&self, say: SegmentToSend) -> Bytes {
        let mut out = BytesMut::with_capacity(48);
        match self {
            Dialect::Three(terms) => terms.segment(say, &mut out),
            Dialect::Four(terms) => terms.segment(say, &mut out),
        }
        out.freeze()
    }

    /// An answer; none where this version, as agreed on, has none.
    pub(super) fn answer(&self, answer: SegmentAnswer) -> Option<Bytes> {
        let mut out = BytesMut::with_capacity(24);
        match self {
            Dialect::Three(terms) => terms.answer(answer, &mut out),
            Dialect::Four(terms) => terms.answer(answer, &mut out),
        }
        if out.is_empty() { None } else { Some(out.freeze()) }
    }

    /// A sign of life.
    pub(super) fn keepalive(&self) -> Bytes {
        match self {
            Dialect::Three(_) => v3::keepalive(),
            Dialect::Four(_) => v4::keepalive(),
        }
    }

    /// The end of the session.
    pub(super) fn terminate(&self, reply: bool, reason: TermReason) -> Bytes {
        match self {
            Dialect::Three(_) => v3::shutdown(reason),
            Dialect::Four(_) => v4::terminate(reply, reason),
        }
    }

    /// The rejection of a message; version 3 has none.
    pub(super) fn reject(&self, reason: RejectReason, header: u8) -> Option<Bytes> {
        match self {
            Dialect::Three(_) => None,
            Dialect::Four(_) => Some(v4::reject(reason, header)),
        }
    }

    /// The most bytes that the header of the next segment takes.
    pub(super) fn header_bytes_max(&self, start: bool) -> u64 {
        match self {
            Dialect::Three(terms) => terms.header_bytes_max(start),
            Dialect::Four(_) => v4::header_bytes_max(start),
        }
    }

    /// The longest segment that the peer takes.
    pub(super) fn segment_bytes_max(&self) -> u64 {
        match self {
            Dialect::Three(_) => u64::MAX,
            Dialect::Four(terms) => terms.segment_mtu,
        }
    }

    /// The longest bundle that the peer takes.
    pub(super) fn transfer_bytes_max(&self) -> u64 {
        match self {
            Dialect::Three(terms) => terms.transfer_mtu,
            Dialect::Four(terms) => terms.transfer_mtu,
        }
    }

    /// Whether the peer answers segments.
    pub(super) fn answers(&self) -> bool {
        match self {
            Dialect::Three(terms) => terms.acknowledgements,
            Dialect::Four(_) => true,
        }
    }

    /// Whether transfers may be refused.
    pub(super) fn refuses(&self) -> bool {
        match self {
            Dialect::Three(terms) => terms.refusal,
            Dialect::Four(_) => true,
        }
    }

    /// Whether the peer is told how long a bundle is.
    pub(super) fn announces(&self) -> bool {
        match self {
            Dialect::Three(terms) => terms.lengths,
            Dialect::Four(terms) => terms.lengths,
        }
    }

    /// Whether both sides keep the acknowledged beginning of a transfer that breaks.
    pub(super) fn keeps_prefix(&self) -> bool {
        match self {
            Dialect::Three(terms) => terms.acknowledgements && terms.reactive_fragmentation,
            Dialect::Four(terms) => terms.keeps_prefix,
        }
    }

    /// Which version it is.
    pub(super) fn version(&self) -> Version {
        match self {
            Dialect::Three(_) => Version::Three,
            Dialect::Four(_) => Version::Four,
        }
    }
}
