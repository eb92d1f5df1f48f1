//! Incoming connections that have ended. They are remembered for a time, so that late packets of them are answered and begin nothing.

use super::hearing::FIRST_NUMBERS;
use super::incoming::Flow;
use super::wire::{Flags, Header};
use crate::service::{PeerId, RefuseReason};
use crate::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Time for which a packet may be under way longer than later ones: the maximum lifetime of a segment of TCP (RFC 9293 3.4.1).
const LIFETIME_MICROS: u32 = 120_000_000;

/// Incoming connection that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub(super) first: u32,
    /// Number of sequence numbers that it has used.
    pub(super) numbers: u64,
    /// Latest time of departure of its packets, as they state it.
    pub(super) stamp: u32,
    /// Reason of a refusal; `None` if all of it has arrived.
    pub(super) refused: Option<RefuseReason>,
}

impl Closed {
    /// Last sequence number.
    pub(super) fn last(&self) -> u32 {
        self.first.wrapping_add(self.numbers.saturating_sub(1) as u32)
    }

    /// Returns true if a packet is one of this connection.
    fn has(&self, header: &Header) -> bool {
        let distance = u64::from(header.sequence.wrapping_sub(self.first));
        if self.refused.is_none() {
            // Packets without data have the number after the last one.
            return distance <= self.numbers && !self.is_of_another(header);
        }
        if header.flags.has(Flags::ASYN) || header.service.keeps_messages() {
            header.sequence & !(FIRST_NUMBERS - 1) == self.first
        } else {
            // Those that were under way when it was refused.
            distance < self.numbers.max(FIRST_NUMBERS.into()) + u64::from(FIRST_NUMBERS)
        }
    }

    /// Returns true if a packet begins another connection with the same numbers. All of this one had been sent when its latest packet
    /// left, and later ones say so.
    fn is_of_another(&self, header: &Header) -> bool {
        let is_early = header.flags.has(Flags::ASYN) && !header.flags.has(Flags::WHOLE);
        is_early && self.stamp.wrapping_sub(header.timestamp) > LIFETIME_MICROS
    }
}

/// All that are remembered.
#[derive(Debug, Default)]
pub(super) struct ClosedConnections {
    flows: BTreeMap<Flow, VecDeque<Closed>>,
    /// Flows in the order in which their connections ended, with the times.
    order: VecDeque<(Instant, Flow)>,
}

impl ClosedConnections {
    /// Remembers a connection, of at most so many.
    pub(super) fn remember(&mut self, now: Instant, flow: Flow, closed: Closed, most: usize) {
        self.flows.entry(flow).or_default().push_back(closed);
        self.order.push_back((now, flow));
        while self.order.len() > most {
            self.forget_first();
        }
    }

    /// Forgets those that ended so long ago.
    pub(super) fn expire(&mut self, now: Instant, age: Duration) {
        while self.order.front().is_some_and(|(at, _)| *at + age <= now) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((_, flow)) = self.order.pop_front() else { return };
        if let Some(closed) = self.flows.get_mut(&flow) {
            closed.pop_front();
            if closed.is_empty() {
                self.flows.remove(&flow);
            }
        }
    }

    /// Returns the connection of a packet.
    pub(super) fn find(&self, flow: Flow, header: &Header) -> Option<Closed> {
        self.flows.get(&flow)?.iter().rev().find(|closed| closed.has(header)).copied()
    }

    /// Counts all times from now on, after an interruption of the link: its senders have waited.
    pub(super) fn restart(&mut self, now: Instant) {
        self.order.iter_mut().for_each(|(at, _)| *at = now);
    }

    /// Forgets those of peers whose numbers are not valid any more.
    pub(super) fn keep_configured(&mut self) {
        self.flows.retain(|(peer, ..), _| *peer == PeerId::CONFIGURED);
        self.order.retain(|(_, (peer, ..))| *peer == PeerId::CONFIGURED);
    }
}
