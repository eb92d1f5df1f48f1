//! A bundle held by the agent: its header and the position of its payload, which is in the storage.

use crate::bp::PayloadHeader;
use crate::service::{LinkId, Priority, RecordId, SendFailure, SendId, TransferId};
use crate::time::Instant;
use core::cmp::Reverse;
use core::num::NonZeroU32;
use core::time::Duration;

use super::accounts::NeighbourNumber;
use super::adu::AduKey;
use super::clock::{ExpiryTime, millis};
use super::custody::Custody;
use super::head::AnyHead;
use super::ranges::Ranges;
use super::record::HEADER_BYTES;
use super::routing::{ClassId, CopyOrigin, Replication};

/// Order of bundles for a link: higher priority first, then the one held longest.
pub(super) type Rank = (Reverse<Priority>, RecordId);

/// State of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundleState {
    /// The bundle is arriving from a peer.
    Arriving,
    /// An application is sending the bundle.
    Composing,
    /// The complete bundle was passed to the storage, and not all of it is durable yet.
    Sealing,
    /// A crash left the complete bundle without a seal; its CRC is being verified.
    Verifying,
    /// The signature of the bundle is being verified before it is forwarded.
    Checking,
    /// The bundle waits in the queue of this class, or is being sent to the next hop.
    Forwarding(ClassId),
    /// A peer refused the bundle for lack of resources; it waits until this time.
    BackingOff(Instant),
    /// The next hop has the complete bundle, and this node keeps it until another node accepts custody; it is
    /// resent at this time.
    InCustody(Instant),
    /// The bundle is destined for this node; [`super::delivery::LocalPayload`] has its state.
    Local,
}

/// Bundle or fragment in one record.
#[derive(Clone, Debug)]
pub(super) struct HeldBundle {
    /// Header, without the blocks that had to be discarded; for a cut bundle, that of the resulting fragment.
    pub(super) head: AnyHead,
    /// Length of the header in the record, bytes.
    pub(super) head_bytes: u64,
    /// Length of the tail after the payload in the record, bytes; zero while unknown.
    pub(super) tail_bytes: u64,
    /// Record that identifies the payload if it has no source.
    pub(super) named_by: RecordId,
    /// True if the bundle was made at this node.
    pub(super) own: bool,
    /// No note may be appended to the record.
    pub(super) closed: bool,
    /// The incoming transfer broke: an overlapping remainder may arrive.
    pub(super) broken: bool,
    /// Neighbour that brought the bundle.
    pub(super) neighbour: NeighbourNumber,
    /// Nonce of the record.
    pub(super) nonce: u64,
    /// Bytes passed to the storage.
    pub(super) appended: u64,
    /// Durable bytes.
    pub(super) stored: u64,
    /// CRC of the payload block as it was made or received; `None` without one, if it is zero, or if the bundle was cut, has rested, or
    /// was found at the start. The header of the payload block is still that which it covers.
    pub(super) payload_crc: Option<NonZeroU32>,
    /// A block of the bundle is encrypted, so that the bundle never uses a link on an amateur radio band.
    pub(super) encrypted: bool,
    /// The bundle was counted as kept from such a link.
    pub(super) counted_as_kept: bool,
    /// Part of the header is only on disk.
    pub(super) head_is_on_disk: bool,
    /// The memory for reassembly of the payload counts with this record.
    pub(super) begins_assembly: bool,
    /// Memory for the header beyond 256 bytes, bytes.
    pub(super) extra_bytes: u32,
    /// Bytes counted against the quota.
    pub(super) share: u64,
    /// Time at which the age was `age_ms`.
    pub(super) since: Instant,
    /// Known age at `since`, milliseconds.
    pub(super) age_ms: u64,
    /// Time of arrival, DTN milliseconds; zero if unknown.
    pub(super) arrival_dtn_ms: u64,
    /// Time of expiry.
    pub(super) end: ExpiryTime,
    /// The expiry is this node's override instead of the lifetime of the bundle.
    pub(super) end_is_override: bool,
    /// Incoming transfer of the bundle.
    pub(super) intake: Option<(LinkId, TransferId)>,
    /// The application's send, until its terminal indication.
    pub(super) send: Option<SendId>,
    /// Payload bytes received from the application; `durable` of them are durable.
    pub(super) handed: u64,
    pub(super) durable: u64,
    /// Progress last indicated.
    pub(super) progress: u64,
    /// State of the bundle.
    pub(super) state: BundleState,
    /// Parts of the payload that the next hop does not have and that are not being sent.
    pub(super) to_send: Ranges,
    /// A bundle without payload remains to be sent.
    pub(super) to_send_empty: bool,
    /// Current transfers of the bundle.
    pub(super) transfers: Vec<(LinkId, TransferId)>,
    /// Number of times that a peer refused the bundle for lack of resources.
    pub(super) refusals: u32,
    /// Custody state; `None` if this node is not the custodian.
    pub(super) custody: Option<Box<Custody>>,
    /// Links on which the bundle cannot be sent, each once, and the reason.
    pub(super) excluded_links: Vec<(LinkId, SendFailure)>,
    /// All hops have refused the bundle, which ends with its last transfer.
    pub(super) is_refused: bool,
    /// State of a bundle that goes to several nodes.
    pub(super) replication: Option<Box<Replication>>,
    /// Origin of a copy for one node, which has no record of its own.
    pub(super) copy_origin: Option<Box<CopyOrigin>>,
}

impl HeldBundle {
    /// Key of the application data unit.
    pub(super) fn adu(&self) -> AduKey {
        AduKey::of(&self.head, self.named_by)
    }

    /// Position in the sending order.
    pub(super) fn rank(&self, record: RecordId) -> Rank {
        (Reverse(self.head.priority()), record)
    }

    /// Offset of the payload in the application data unit, bytes.
    pub(super) fn adu_offset(&self) -> u64 {
        self.head.fragment().map_or(0, |fragment| fragment.offset)
    }

    /// Length of the application data unit, bytes.
    pub(super) fn adu_bytes(&self) -> u64 {
        self.head.adu_bytes()
    }

    /// Length of the payload in this record, bytes.
    pub(super) fn payload_bytes(&self) -> u64 {
        self.head.payload_bytes()
    }

    /// Offset of the payload in the record, bytes.
    pub(super) fn payload_at(&self) -> u64 {
        HEADER_BYTES + self.head_bytes
    }

    /// Offset of the notes in the record of a complete bundle, bytes.
    pub(super) fn notes_at(&self) -> u64 {
        self.payload_at() + self.payload_bytes() + self.tail_bytes
    }

    /// Header of the payload block and its CRC, if the CRC is known.
    pub(super) fn known_crc(&self) -> Option<(PayloadHeader, NonZeroU32)> {
        Some((*self.head.payload_header()?, self.payload_crc?))
    }

    /// True if the bundle can be fragmented (RFC 9171 4.2.3, 5.8).
    pub(super) fn may_fragment(&self) -> bool {
        self.head.may_fragment() && self.payload_bytes() > 1
    }

    /// Current age as far as it is known, milliseconds.
    pub(super) fn age_ms_now(&self, now: Instant) -> u64 {
        self.age_ms.saturating_add(millis(now.saturating_since(self.since)))
    }

    /// True if no part of the bundle remains to be passed to a link.
    pub(super) fn all_handed_out(&self) -> bool {
        self.to_send.is_empty() && !self.to_send_empty
    }

    /// True if the bundle cannot be sent on this link.
    pub(super) fn excludes(&self, link: LinkId) -> bool {
        self.excluded_links.iter().any(|(excluded, _)| *excluded == link)
    }

    /// Makes the bundle try all links again.
    pub(super) fn forgive_links(&mut self) {
        self.excluded_links.clear();
        self.is_refused = false;
    }

    /// Marks the complete payload to be sent (again).
    pub(super) fn renew(&mut self) {
        self.to_send = Ranges::of(0, self.payload_bytes());
        self.to_send_empty = self.payload_bytes() == 0;
    }

    /// Cuts the record to the payload's first `payload_bytes` bytes, which become a fragment.
    pub(super) fn cut_to(&mut self, payload_bytes: u64) {
        self.head = self.head.part(0, payload_bytes);
        self.payload_crc = None;
        self.closed = true;
        self.renew();
    }

    /// Computes the expiry (RFC 9171 5.5). `lifetime_max` overrides a longer lifetime (zero: no override).
    /// `ahead_ms` is the amount by which the lifetime clock may have been ahead of the wall clock when the
    /// bundle arrived.
    pub(super) fn set_end(&mut self, lifetime_max: Duration, ahead_ms: u64) {
        let own_ms = self.head.lifetime_ms();
        let most_ms = if lifetime_max.is_zero() { u64::MAX } else { millis(lifetime_max) };
        let lifetime_ms = own_ms.min(most_ms);
        self.end_is_override = lifetime_ms < own_ms;
        let created = self.head.created_ms();
        // A bundle expires when its age exceeds its lifetime: one millisecond later.
        let after = lifetime_ms.saturating_add(1);
        self.end = ExpiryTime {
            dtn_ms: created.map(|created| created.saturating_add(after).saturating_add(ahead_ms)),
            by_age: self.since + Duration::from_millis(after.saturating_sub(self.age_ms)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::DeadlineKind;
    use super::*;

    /// A node holds a hundred thousand bundles, so the state of each must be small.
    #[test]
    fn what_is_kept_of_a_bundle_is_small() {
        assert!(size_of::<HeldBundle>() <= 576, "{}", size_of::<HeldBundle>());
        assert!(size_of::<DeadlineKind>() <= 16, "{}", size_of::<DeadlineKind>());
    }
}
