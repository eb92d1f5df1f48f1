//! Parts of a bundle that overlap because a transfer broke.
//!
//! After a break a peer begins where the last acknowledgement that reached it ended (RFC 9171 5.8). What arrived beyond
//! that is here as well, and carried on as a fragment; the rest, when it comes, begins inside it:
//!
//! ```text
//!   what was kept   |==============|          carried on
//!   the rest                   |~~~~============|
//!                               ^^^^ not carried on twice
//! ```
//!
//! Nothing is lost by it: the payload cannot be put together without the part that was kept in any case. The part may
//! still be here, or be safe with the next hop already: a bounded number of those is remembered, until the rest has come,
//! and forgotten in a crash, which costs the overlap and no more.

use crate::bp::Eid;
use crate::service::RecordId;
use std::collections::VecDeque;

use super::Agent;
use super::accounts::NeighbourNumber;
use super::delivery::AduKey;
use super::held::{BundleState, HeldBundle};
use super::incoming::PARTS_LOOKED_AT;
use super::ranges::Ranges;

/// How many parts that are safe with the next hop are remembered.
const PARTS_MAX: usize = 1024;

/// A part of a broken transfer that is safe with the next hop.
#[derive(Debug)]
struct SafePart {
    adu: AduKey,
    /// The length of that, bytes.
    total: u64,
    neighbour: NeighbourNumber,
    previous: Option<Eid>,
    /// Where it lies in the application data unit.
    from: u64,
    to: u64,
}

/// Those that are remembered, the oldest first.
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

    /// The end of the part that this is the rest of: it begins inside. What begins where a part began is the same part
    /// again, from a peer that got it back.
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
    /// The next hop has all of a bundle that came in a transfer that broke.
    pub(super) fn remember_part(&mut self, record: RecordId) {
        let held = &self.bundles[&record];
        if held.broken && !held.own && held.may_fragment() {
            self.parts.add(held);
        }
    }

    /// Takes out of what is to be sent of a bundle what another part of it carries on, or has carried on. False if
    /// nothing is left.
    pub(super) fn trim(&mut self, record: RecordId) -> bool {
        let held = &self.bundles[&record];
        // What is in custody is answered for as a whole.
        if held.own || !held.may_fragment() || held.custody.is_some() {
            return true;
        }
        let gone_to = self.parts.take_end(held);
        let base = held.adu_offset();
        let mut to_send = held.to_send.clone();
        if let Some(to) = gone_to {
            to_send.remove(0, to.saturating_sub(base));
            if to_send.is_empty() {
                return false;
            }
        }
        let here = self.trimmed_by_parts_here(record, to_send.clone());
        // Parts that are here may be gone in a moment: one that they cover whole goes as well.
        let to_send = if here.is_empty() { to_send } else { here };
        self.bundles.get_mut(&record).expect("it was just found").to_send = to_send;
        true
    }

    fn trimmed_by_parts_here(&self, record: RecordId, mut to_send: Ranges) -> Ranges {
        let held = &self.bundles[&record];
        let (base, previous) = (held.adu_offset(), held.head.previous_node());
        let adu = held.adu();
        let latest = self.records_of(&adu).rev().take(PARTS_LOOKED_AT);
        for other in latest.filter(|other| *other != record) {
            let part = &self.bundles[&other];
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
