//! Fragments of a bundle that overlap because a transfer broke.
//!
//! After a break a peer resumes where the last acknowledgement that it received ended (RFC 9171 5.8). This node also has what
//! arrived beyond that, and forwards it as a fragment. The remainder, when it arrives, begins inside that fragment:
//!
//! ```text
//!   received part   |==============|          forwarded
//!   remainder                  |~~~~============|
//!                           ^^^^ not forwarded twice
//! ```
//!
//! Nothing is lost, because the payload cannot be reassembled without the received part in any case. That part may still be at
//! this node, or the next hop may already have it: a bounded number of such parts is remembered until the remainder has
//! arrived. A crash loses this memory, which costs only the overlap.

use crate::bp::Eid;
use crate::service::RecordId;
use std::collections::VecDeque;

use super::Agent;
use super::accounts::NeighbourNumber;
use super::adu::AduKey;
use super::held::{BundleState, HeldBundle};
use super::incoming::PARTS_LOOKED_AT;
use super::ranges::Ranges;

/// Maximum number of remembered parts that the next hop has.
const PARTS_MAX: usize = 1024;

/// Part of a broken transfer that the next hop has.
#[derive(Debug)]
struct SafePart {
    adu: AduKey,
    /// Length of the application data unit, bytes.
    total: u64,
    neighbour: NeighbourNumber,
    previous: Option<Eid>,
    /// Position in the application data unit.
    from: u64,
    to: u64,
}

/// Remembered parts, oldest first.
#[derive(Debug, Default)]
pub(super) struct SafeParts(VecDeque<SafePart>);

impl SafeParts {
    fn add(&mut self, held: &HeldBundle) {
        if self.0.len() >= PARTS_MAX {
            self.0.pop_front();
        }
        let from = held.adu_offset();
        let (adu, previous) = (held.adu(), held.head.previous_node());
        let (total, neighbour) = (held.adu_bytes(), held.neighbour);
        self.0.push_back(SafePart { adu, total, neighbour, previous, from, to: from + held.payload_bytes() });
    }

    /// End of the part of which this bundle is the remainder, that is, which begins before it and extends to
    /// its beginning. A bundle with the same beginning is the same part again, from a peer to which it was
    /// returned.
    fn take_end(&mut self, rest: &HeldBundle) -> Option<u64> {
        let (begin, previous) = (rest.adu_offset(), rest.head.previous_node());
        let continues = |part: &SafePart| {
            part.from < begin
                && begin <= part.to
                && part.adu == rest.adu()
                && part.total == rest.adu_bytes()
                && part.neighbour == rest.neighbour
                && part.previous == previous
        };
        let at = self.0.iter().position(continues)?;
        self.0.remove(at).map(|part| part.to)
    }
}

impl Agent {
    /// Remembers a completely forwarded bundle whose incoming transfer broke.
    pub(super) fn remember_part(&mut self, record: RecordId) {
        let held = &self.holdings[&record];
        if held.broken && !held.own && held.may_fragment() {
            self.outgoing.safe_parts.add(held);
        }
    }

    /// Removes the ranges of a bundle that another part of it covers from those to be sent. Returns false if
    /// nothing is left.
    pub(super) fn trim(&mut self, record: RecordId) -> bool {
        let held = &self.holdings[&record];
        // A bundle in custody must be forwarded completely.
        if held.own || !held.may_fragment() || held.custody.is_some() {
            return true;
        }
        let gone_to = self.outgoing.safe_parts.take_end(held);
        let base = held.adu_offset();
        let mut to_send = held.to_send.clone();
        if let Some(to) = gone_to {
            to_send.remove(0, to.saturating_sub(base));
            if to_send.is_empty() {
                return false;
            }
        }
        let here = self.trimmed_by_parts_here(record, to_send.clone());
        // The parts at this node may be removed at any moment, so a bundle that they cover completely is
        // forwarded as well.
        let to_send = if here.is_empty() { to_send } else { here };
        self.holdings.get_mut(&record).expect("it was just found").to_send = to_send;
        true
    }

    fn trimmed_by_parts_here(&self, record: RecordId, mut to_send: Ranges) -> Ranges {
        let held = &self.holdings[&record];
        let (base, previous) = (held.adu_offset(), held.head.previous_node());
        let adu = held.adu();
        let latest = self.holdings.records_of(&adu).rev().take(PARTS_LOOKED_AT);
        for other in latest.filter(|other| *other != record) {
            let part = &self.holdings[&other];
            let waiting = matches!(part.state, BundleState::Forwarding(_) | BundleState::BackingOff(_));
            let same = part.neighbour == held.neighbour
                && part.adu_bytes() == held.adu_bytes()
                && part.head.destination() == held.head.destination()
                && part.head.previous_node() == previous;
            if waiting && part.head.fragment().is_some() && same {
                let (from, to) = (part.adu_offset(), part.adu_offset() + part.payload_bytes());
                to_send.remove(from.saturating_sub(base), to.saturating_sub(base));
            }
        }
        to_send
    }
}
