//! Messages of an established session, independent of its version.
//!
//! The terms are those of version 4, which has more of them; version 3 uses a subset. Version 3 has no transfer IDs:
//! its acknowledgements and refusals belong to segments in the order in which these were sent (RFC 7242 5.4).

use super::config::Version;
use super::v4::wire::{RejectReason, TermReason};
use super::{v3, v4};
use crate::codec::{self, DecodeError};
use crate::service::RefuseReason;
use bytes::Bytes;

/// Header of a received segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Transfer ID on the wire; `None` in version 3.
    pub(super) id: Option<u64>,
    /// True for the first segment of a bundle.
    pub(super) start: bool,
    /// True for the last segment of a bundle.
    pub(super) end: bool,
    /// Flags as received, for the acknowledgement.
    pub(super) flags: u8,
    /// Number of payload bytes that follow.
    pub(super) length: u64,
    /// Length of the bundle, bytes; `None` unless announced.
    pub(super) total: Option<u64>,
    /// Reason to refuse the transfer because of its extensions.
    pub(super) fault: Option<RefuseReason>,
}

/// Message received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// A segment begins.
    Segment(SegmentHeader),
    /// The peer acknowledges a part of a transfer.
    Ack {
        /// Transfer ID on the wire; `None` for the oldest waiting transfer.
        id: Option<u64>,
        /// Acknowledged offset in the transfer, bytes.
        up_to: u64,
    },
    /// The peer refuses a transfer.
    Refuse {
        /// Transfer ID on the wire; `None` for the transfer of the oldest waiting segment.
        id: Option<u64>,
        /// Reason for the refusal.
        reason: RefuseReason,
    },
    /// Keepalive.
    KeepAlive,
    /// The peer ends the session.
    Terminate {
        /// True for a reply to the termination by this side.
        reply: bool,
        /// Reason for the end of the session.
        reason: TermReason,
        /// Delay before reconnecting that the peer requests, seconds; zero to forbid it, `None` if unspecified.
        delay: Option<u64>,
    },
    /// The peer rejects a message.
    Rejected {
        /// First byte of the rejected message.
        header: u8,
    },
    /// A message that needs no action now.
    NoAction,
    /// A message that is not allowed in this state.
    Unexpected {
        /// First byte of the message.
        header: u8,
    },
    /// A message of unknown type, and therefore of unknown length.
    Unknown {
        /// First byte of the message.
        header: u8,
    },
}

impl Received {
    /// Returns true for the first segment of a bundle.
    pub(super) fn begins(&self) -> bool {
        matches!(self, Received::Segment(header) if header.start)
    }
}

/// Response of a receiver to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentAnswer {
    /// The segment is acknowledged.
    Ack {
        /// Transfer ID on the wire.
        id: u64,
        /// Flags of the segment.
        flags: u8,
        /// Acknowledged offset in the transfer, bytes.
        up_to: u64,
    },
    /// The transfer is refused.
    Refuse {
        /// Transfer ID on the wire.
        id: u64,
        /// Reason for the refusal.
        reason: RefuseReason,
    },
}

/// Header of a segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentToSend {
    /// Transfer ID on the wire.
    pub(super) id: u64,
    /// True for the first segment of the bundle.
    pub(super) start: bool,
    /// True for the last segment of the bundle.
    pub(super) end: bool,
    /// Number of payload bytes that follow.
    pub(super) length: u64,
    /// Length of the bundle, bytes.
    pub(super) total: u64,
}

/// Negotiated parameters of a session (RFC 9174 4.7, RFC 7242 4.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Maximum length of a segment that the peer accepts, bytes.
    pub(super) segment_bytes_max: u64,
    /// Maximum length of a bundle that the peer accepts, bytes.
    pub(super) transfer_bytes_max: u64,
    /// The peer acknowledges segments.
    pub(super) answers: bool,
    /// Transfers may be refused.
    pub(super) refuses: bool,
    /// The length of a bundle is announced to the peer.
    pub(super) announces: bool,
    /// Both sides keep the acknowledged part of a transfer that breaks off.
    pub(super) keeps_prefix: bool,
}

/// Version of an established session, with its negotiated parameters.
#[derive(Clone, Debug)]
pub(super) struct Dialect {
    pub(super) version: Version,
    pub(super) terms: Terms,
    /// Version 3: length that the peer announced for the next bundle.
    announced: Option<u64>,
}

impl Dialect {
    pub(super) fn new(version: Version, terms: Terms) -> Self {
        Dialect { version, terms, announced: None }
    }

    /// Decodes and removes a message at the beginning of `input`.
    pub(super) fn hear(&mut self, input: &mut Bytes) -> Result<Received, DecodeError> {
        match self.version {
            Version::Three => v3::hear(&mut self.announced, input),
            Version::Four => v4::hear(input),
        }
    }

    /// Encodes the header of a segment.
    pub(super) fn segment(&self, say: SegmentToSend) -> Bytes {
        codec::encoded(48, |out| match self.version {
            Version::Three => v3::segment(&self.terms, say, out),
            Version::Four => v4::segment(&self.terms, say, out),
        })
    }

    /// Encodes a response to a segment; `None` if the version, as negotiated, has no such message.
    pub(super) fn answer(&self, answer: SegmentAnswer) -> Option<Bytes> {
        let bytes = codec::encoded(24, |out| match self.version {
            Version::Three => v3::answer(&self.terms, answer, out),
            Version::Four => v4::answer(answer, out),
        });
        Some(bytes).filter(|bytes| !bytes.is_empty())
    }

    /// Encodes a keepalive.
    pub(super) fn keepalive(&self) -> Bytes {
        match self.version {
            Version::Three => v3::keepalive(),
            Version::Four => v4::keepalive(),
        }
    }

    /// Encodes the termination of the session.
    pub(super) fn terminate(&self, reply: bool, reason: TermReason) -> Bytes {
        match self.version {
            Version::Three => v3::shutdown(reason),
            Version::Four => v4::terminate(reply, reason),
        }
    }

    /// Encodes the rejection of a message; `None` in version 3.
    pub(super) fn reject(&self, reason: RejectReason, header: u8) -> Option<Bytes> {
        match self.version {
            Version::Three => None,
            Version::Four => Some(v4::reject(reason, header)),
        }
    }

    /// Returns the maximum length of the header of the next segment, bytes.
    pub(super) fn header_bytes_max(&self, start: bool) -> u64 {
        match self.version {
            Version::Three => v3::header_bytes_max(self.terms.announces && start),
            Version::Four => v4::header_bytes_max(start),
        }
    }
}
