//! Feedback of receivers (RFC 5740 5.4).

use super::{ACK_REFUSED, Sender, Timer};
use crate::norm::config::Counters;
use crate::norm::repair::{BlockKey, BlockSizes, Request};
use crate::norm::symbols::SymbolSet;
use crate::norm::wire::{Ack, AckContents, Levels, Nack, NodeId, RepairForm, RepairItem, Timestamp};
use crate::service::{ObjectFailure, ObjectsIndication, PeerId, RefuseReason};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

impl Sender {
    /// Returns the number of the object that a message means: one that was sent, or one before the first.
    fn number_of(&self, object: u16) -> Option<u64> {
        let back = u64::from((self.next_number as u16).wrapping_sub(object));
        (1..1 << 15).contains(&back).then(|| self.next_number - back)
    }

    /// Notes that a node has answered from an address; false if the only receiver answers from another one.
    ///
    /// NRL's receivers answer from a port of their own, not from the one at which they receive. Until an answer has come from
    /// the configured address, the first other one counts as that of the receiver.
    fn heard(&mut self, now: Instant, from: NodeId, address: PeerId, response: Timestamp) -> bool {
        if !self.is_group {
            if self.peer == Some(address) {
                self.answers_from = Some(address);
            }
            if *self.answers_from.get_or_insert(address) != address {
                return false;
            }
            self.acknowledgements.heard(from);
        }
        if !response.is_absent() {
            // A response from the future is that of another clock.
            let own = now.as_nanos() / 1_000;
            if let Some(micros) = own.checked_sub(response.as_micros()).filter(|micros| *micros < 1 << 32) {
                self.grtt.measure(Duration::from_micros(micros));
            }
        }
        true
    }

    /// Handles repair requests.
    pub(in crate::norm) fn handle_nack(
        &mut self,
        now: Instant,
        from: NodeId,
        address: PeerId,
        to_group: bool,
        nack: &Nack,
        counters: &mut Counters,
    ) {
        if self.is_paused || nack.instance != self.instance {
            return;
        }
        counters.nacks_received += 1;
        self.heard(now, from, address, nack.grtt_response);
        let mut wanted: BTreeMap<BlockKey, Request> = BTreeMap::new();
        for request in &nack.requests {
            match request.form {
                RepairForm::Items | RepairForm::Erasures => {
                    let is_count = request.form == RepairForm::Erasures;
                    for item in &request.items {
                        self.want(request.levels, item, item, is_count, &mut wanted);
                    }
                }
                RepairForm::Ranges => {
                    for ends in request.items.chunks_exact(2) {
                        self.want(request.levels, &ends[0], &ends[1], false, &mut wanted);
                    }
                }
                RepairForm::Unknown(_) => counters.violations += 1,
            }
        }
        let mut brings_more = false;
        for (key, mut request) in wanted {
            request.nacks = 1;
            request.count = request.count.max(request.symbols.len());
            let waiting = self.aggregate.entry(key).or_default();
            let before = *waiting;
            waiting.merge(&request);
            brings_more |= (before.symbols, before.count) != (waiting.symbols, waiting.count);
        }
        if self.aggregate.is_empty() {
            return;
        }
        let factor = u32::from(self.backoff_factor());
        if factor == 0 {
            self.answer(now, counters);
            return;
        }
        if self.timers.get(Timer::Aggregate as usize).is_none() {
            let wait = self.advertised_grtt() * (factor + 1);
            self.timers.set(Timer::Aggregate as usize, now + wait);
        }
        // Requests by unicast are unknown to the other receivers.
        if self.is_group && !to_group && brings_more && self.timers.get(Timer::Advertise as usize).is_none() {
            self.due.advertise = true;
        }
    }

    /// Adds what an item, or a range of them, means to the requests of a NACK.
    fn want(
        &mut self,
        levels: Levels,
        first: &RepairItem,
        last: &RepairItem,
        is_count: bool,
        wanted: &mut BTreeMap<BlockKey, Request>,
    ) {
        let ends = self.number_of(first.object).zip(self.number_of(last.object));
        let Some((start, end)) = ends.filter(|(start, end)| start <= end && end - start < 1 << 9) else {
            return;
        };
        for number in start..=end {
            let Some(outgoing) = self.objects.get(&number) else {
                self.squelch(number);
                continue;
            };
            let blocks = outgoing.blocks_left();
            if (levels.has(Levels::INFO) || levels.has(Levels::OBJECT))
                && outgoing.info.is_some()
                && !outgoing.is_info_due
            {
                self.repairs.activate_info(number);
            }
            let mut whole = |blocks: core::ops::Range<u32>| {
                for block in blocks {
                    wanted.entry((number, block)).or_default().is_whole = true;
                }
            };
            if levels.has(Levels::OBJECT) {
                whole(0..blocks);
                continue;
            }
            let from = if number == start { first.id.block } else { 0 };
            let to = if number == end { last.id.block } else { blocks };
            if levels.has(Levels::BLOCK) {
                whole(from..to.saturating_add(1).min(blocks));
            } else if levels.has(Levels::SEGMENT) && from == to && outgoing.has_left(from) {
                let symbols = outgoing.partition.block_symbols(from) + self.config.parity_symbols as u16;
                let request = wanted.entry((number, from)).or_default();
                if is_count {
                    request.count = request.count.max(first.id.symbol.min(symbols));
                } else {
                    let end = last.id.symbol.saturating_add(1).min(symbols);
                    request.symbols.extend(&SymbolSet::range(first.id.symbol..end));
                }
            }
        }
    }

    /// Makes the repair transmissions wait that answer the requests so far.
    pub(super) fn answer(&mut self, now: Instant, counters: &mut Counters) {
        let round_trip = self.advertised_grtt();
        for (key, request) in core::mem::take(&mut self.aggregate) {
            let Some(outgoing) = self.objects.get(&key.0) else { continue };
            let sizes = BlockSizes {
                sources: outgoing.partition.block_symbols(key.1),
                parity: self.config.parity_symbols as u16,
            };
            if !self.repairs.activate(now, round_trip, key, sizes, &request) {
                counters.nacks_ignored += 1;
            }
        }
    }

    /// Makes a SQUELCH due, because a receiver requests an object that cannot be repaired.
    pub(super) fn squelch(&mut self, number: u64) {
        if self.timers.get(Timer::Squelch as usize).is_none() {
            let lowest = self.due.squelch.map_or(number, |lowest| lowest.min(number));
            self.due.squelch = Some(lowest);
        }
    }

    /// Handles an acknowledgement.
    pub(in crate::norm) fn handle_ack(
        &mut self,
        now: Instant,
        from: NodeId,
        address: PeerId,
        ack: &Ack,
        counters: &mut Counters,
    ) {
        if self.is_paused || ack.instance != self.instance {
            return;
        }
        counters.acks_received += 1;
        if !self.heard(now, from, address, ack.grtt_response) {
            return;
        }
        match &ack.contents {
            AckContents::Cc => {}
            AckContents::Flush { object, id, .. } => {
                if let Some(number) = self.number_of(*object).filter(|number| *number < self.cursor) {
                    let is_end = self
                        .objects
                        .get(&number)
                        .is_none_or(|outgoing| Self::end(outgoing) == (id.block, id.symbol));
                    if is_end {
                        self.acknowledgements.acknowledge(from, number);
                        self.confirm(counters);
                    }
                }
            }
            AckContents::Other { ack_type: ACK_REFUSED, contents } if !self.is_group => {
                self.refused(contents, counters);
            }
            AckContents::Other { .. } => {}
        }
    }

    /// Handles the refusal of an object by the only receiver.
    fn refused(&mut self, contents: &Bytes, counters: &mut Counters) {
        let Some([high, low, reason]) = contents.first_chunk() else {
            counters.violations += 1;
            return;
        };
        let Some(number) = self.number_of(u16::from_be_bytes([*high, *low])) else { return };
        if let Some(outgoing) = self.remove(number) {
            counters.objects_failed += 1;
            self.fail(outgoing.object, ObjectFailure::Refused(RefuseReason::from_code(*reason)));
        }
        self.squelch(number);
    }

    /// Indicates the objects that all receivers have acknowledged.
    pub(super) fn confirm(&mut self, counters: &mut Counters) {
        let through = self.acknowledgements.acknowledged();
        while let Some((number, _)) = self.objects.first_key_value()
            && through.is_some_and(|through| *number <= through)
        {
            self.complete(*number, counters);
        }
    }

    pub(super) fn complete(&mut self, number: u64, counters: &mut Counters) {
        if let Some(outgoing) = self.remove(number) {
            counters.objects_sent += 1;
            self.up.push_back(ObjectsIndication::Sent { object: outgoing.object });
        }
    }
}
