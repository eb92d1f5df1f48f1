//! A bundle that the agent holds: its head and where its payload lies. The payload itself is in the storage.

use crate::service::{LinkId, Priority, RecordId, SendId, TransferId};
use crate::time::Instant;
use core::cmp::Reverse;
use core::time::Duration;

use super::accounts::NeighbourNumber;
use super::clock::{ExpiryTime, millis};
use super::custody::Custody;
use super::delivery::AduKey;
use super::head::AnyHead;
use super::ranges::Ranges;
use super::record::HEADER_BYTES;
use super::routing::{ClassId, CopyOrigin, Replication};

/// The order in which bundles want the line: the most urgent first, then the one that is here longest.
pub(super) type Rank = (Reverse<Priority>, RecordId);

/// What is being done with a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundleState {
    /// It arrives from a peer.
    Arriving,
    /// An application writes it.
    Composing,
    /// All of it was handed to the storage, and not all of that is durable yet.
    Sealing,
    /// A crash left all of it and no seal: its checksum is computed anew.
    Verifying,
    /// It waits in the queue of this class, or is on its way to the next hop.
    Forwarding(ClassId),
    /// A peer had no place for it: it waits until then.
    BackingOff(Instant),
    /// The next hop has all of it, and it stays until another custodian has it; it goes again then.
    InCustody(Instant),
    /// It is for this node: [`super::delivery::LocalPayload`] knows.
    Local,
}

/// A bundle, or the part of one, in one record.
#[derive(Clone, Debug)]
pub(super) struct HeldBundle {
    /// The head: what a cut bundle has become, without the blocks that had to be discarded.
    pub(super) head: AnyHead,
    /// The length of the head as it is stored.
    pub(super) head_bytes: u64,
    /// The length of what follows the payload as it is stored; zero while that is not known.
    pub(super) tail_bytes: u64,
    /// The record that names the payload, where it has no source.
    pub(super) named_by: RecordId,
    /// Made here.
    pub(super) own: bool,
    /// No note may follow what is in the record.
    pub(super) closed: bool,
    /// The transfer it came in broke: a rest may come that overlaps with it.
    pub(super) broken: bool,
    /// The neighbour that brought it.
    pub(super) neighbour: NeighbourNumber,
    /// The record's nonce.
    pub(super) nonce: u64,
    /// Bytes handed to the storage.
    pub(super) appended: u64,
    /// Bytes that are durable.
    pub(super) stored: u64,
    /// Some of the head is on the disk only.
    pub(super) head_is_on_disk: bool,
    /// The memory for the payload that it is a part of counts with it.
    pub(super) begins_assembly: bool,
    /// Memory of the head beyond the usual, bytes.
    pub(super) extra_bytes: u32,
    /// Bytes counted against the quota.
    pub(super) share: u64,
    /// Its age was `age_ms` at this time.
    pub(super) since: Instant,
    /// Its age at `since`, as far as it is known, milliseconds.
    pub(super) age_ms: u64,
    /// DTN milliseconds at arrival; zero: not known.
    pub(super) arrival_dtn_ms: u64,
    /// When it expires.
    pub(super) end: ExpiryTime,
    /// The expiry is this node's override and not the bundle's own lifetime.
    pub(super) end_is_override: bool,
    /// The transfer it arrives, or arrived, in.
    pub(super) intake: Option<(LinkId, TransferId)>,
    /// The application's send, while it is owed a terminal indication.
    pub(super) send: Option<SendId>,
    /// Payload bytes that the application has handed down, and those of them that are durable.
    pub(super) handed: u64,
    pub(super) durable: u64,
    /// What was last said as progress.
    pub(super) progress: u64,
    /// What is being done with it.
    pub(super) state: BundleState,
    /// The parts of the payload that are neither with the next hop nor on the way.
    pub(super) to_send: Ranges,
    /// A bundle without payload still has to be sent.
    pub(super) to_send_empty: bool,
    /// The transfers it is on its way in.
    pub(super) transfers: Vec<(LinkId, TransferId)>,
    /// How often a peer had no place for it.
    pub(super) refusals: u32,
    /// What is remembered while this node is its custodian.
    pub(super) custody: Option<Box<Custody>>,
    /// Links over which it cannot go.
    pub(super) excluded_links: Vec<LinkId>,
    /// What is remembered while it goes to several nodes.
    pub(super) replication: Option<Box<Replication>>,
    /// A copy for one node; it has no record of its own.
    pub(super) copy_origin: Option<Box<CopyOrigin>>,
}

impl HeldBundle {
    /// The payload's identity.
    pub(super) fn adu(&self) -> AduKey {
        AduKey::of(&self.head, self.named_by)
    }

    /// Its place among others.
    pub(super) fn rank(&self, record: RecordId) -> Rank {
        (Reverse(self.head.priority()), record)
    }

    /// Where its payload begins in the application data unit.
    pub(super) fn adu_offset(&self) -> u64 {
        self.head.fragment().map_or(0, |fragment| fragment.offset)
    }

    /// The length of the application data unit.
    pub(super) fn adu_bytes(&self) -> u64 {
        self.head.adu_bytes()
    }

    /// Bytes of payload in this record.
    pub(super) fn payload_bytes(&self) -> u64 {
        self.head.payload_bytes()
    }

    /// Where the payload begins in the record.
    pub(super) fn payload_at(&self) -> u64 {
        HEADER_BYTES + self.head_bytes
    }

    /// Where the notes begin in the record of a whole bundle.
    pub(super) fn notes_at(&self) -> u64 {
        self.payload_at() + self.payload_bytes() + self.tail_bytes
    }

    /// True if it may become fragments (RFC 9171 4.2.3, 5.8).
    pub(super) fn may_fragment(&self) -> bool {
        self.head.may_fragment() && self.payload_bytes() > 1
    }

    /// Its age now, as far as it is known, milliseconds.
    pub(super) fn age_ms_now(&self, now: Instant) -> u64 {
        self.age_ms.saturating_add(millis(now.saturating_since(self.since)))
    }

    /// Nothing of it is left to hand to a link.
    pub(super) fn all_handed_out(&self) -> bool {
        self.to_send.is_empty() && !self.to_send_empty
    }

    /// All of it is to be sent (again).
    pub(super) fn renew(&mut self) {
        self.to_send = Ranges::of(0, self.payload_bytes());
        self.to_send_empty = self.payload_bytes() == 0;
    }

    /// The record now ends with the payload's first `payload_bytes` bytes, which become a fragment.
    pub(super) fn cut_to(&mut self, payload_bytes: u64) {
        self.head = self.head.part(0, payload_bytes);
        self.closed = true;
        self.renew();
    }

    /// Computes when it expires (RFC 9171 5.5), under an override of its lifetime (zero: none), where what lifetimes go by may
    /// have been so many milliseconds ahead when it came.
    pub(super) fn set_end(&mut self, lifetime_max: Duration, ahead_ms: u64) {
        let own_ms = self.head.lifetime_ms();
        let most_ms = if lifetime_max.is_zero() { u64::MAX } else { millis(lifetime_max) };
        let lifetime_ms = own_ms.min(most_ms);
        self.end_is_override = lifetime_ms < own_ms;
        let created = self.head.created_ms();
        // It expires when its age exceeds the lifetime: one millisecond later.
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

    /// A node holds a hundred thousand bundles: what is kept for each stays small.
    #[test]
    fn what_is_kept_of_a_bundle_is_small() {
        assert!(size_of::<HeldBundle>() <= 576, "{}", size_of::<HeldBundle>());
        assert!(size_of::<DeadlineKind>() <= 16, "{}", size_of::<DeadlineKind>());
    }
}
