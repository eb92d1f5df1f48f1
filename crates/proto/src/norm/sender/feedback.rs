//! Feedback of receivers (RFC 5740 5.4).

use super::{ACK_REFUSED, Sender, Timer};
use crate::norm::acknowledgements::Point;
use crate::norm::config::Counters;
use crate::norm::congestion::Report;
use crate::norm::repair::{BlockKey, Request};
use crate::norm::symbols::SymbolSet;
use crate::norm::wire::{
    Ack, AckContents, CcFeedback, FecScheme, Levels, Nack, NodeId, PayloadId, RepairForm, RepairItem,
    Timestamp,
};
use crate::service::{ObjectFailure, ObjectsIndication, PeerId, RefuseReason};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Fields that all answers of receivers have in common.
struct Answer {
    grtt_response: Timestamp,
    cc: Option<CcFeedback>,
    to_group: bool,
}

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
    fn heard(&mut self, now: Instant, from: NodeId, address: PeerId, answer: &Answer) -> bool {
        if !self.is_group {
            if self.peer == Some(address) {
                self.answers_from = Some(address);
            }
            if *self.answers_from.get_or_insert(address) != address {
                return false;
            }
            self.acknowledgements.heard(from);
        }
        let response = answer.grtt_response;
        // A response from the future is that of another clock.
        let micros = (now.as_nanos() / 1_000).checked_sub(response.as_micros());
        let micros = micros.filter(|micros| !response.is_absent() && *micros < 1 << 32);
        let round_trip = micros.map(|micros| Duration::from_micros(micros).min(self.config.grtt_max));
        if let Some(round_trip) = round_trip {
            self.grtt.measure(round_trip);
        }
        if let Some(feedback) = answer.cc {
            let report = Report { from, feedback, round_trip };
            let is_news = self.control.hear(now, &report, self.grtt.estimate());
            self.due.advertise |= self.has_news(is_news && !answer.to_group);
            self.probe_sooner(now);
        }
        true
    }

    /// Returns true if the other receivers of a group learn something, and may be told now.
    fn has_news(&self, is_news: bool) -> bool {
        self.is_group && is_news && self.timers.get(Timer::Advertise as usize).is_none()
    }

    /// Makes the next probe earlier if the limiting receiver is a nearer one now.
    fn probe_sooner(&mut self, now: Instant) {
        let Some(interval) = self.control.probe_interval().filter(|_| self.control.is_on()) else { return };
        if self.timers.get(Timer::Probe as usize).is_some_and(|at| at > now + interval) {
            self.timers.set(Timer::Probe as usize, now + interval);
        }
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
        counters.cc_feedback_received += u64::from(nack.cc.is_some());
        self.heard(now, from, address, &Answer { grtt_response: nack.grtt_response, cc: nack.cc, to_group });
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
        let round_trip = self.advertised_grtt();
        for (key, mut request) in wanted {
            request.nacks = 1;
            request.count = request.count.max(request.symbols.len());
            let Some(request) = self.repairs.outstanding(now, round_trip, key, request) else {
                counters.nacks_ignored += 1;
                continue;
            };
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
        self.due.advertise |= self.has_news(brings_more && !to_group);
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
            let blocks = outgoing.blocks();
            if (levels.has(Levels::INFO) || levels.has(Levels::OBJECT))
                && outgoing.info.is_some()
                && !outgoing.is_info_due
            {
                self.repairs.activate_info(number);
            }
            let mut whole = |from: u32, to: u32| {
                for block in from.max(blocks.start)..to.min(blocks.end) {
                    wanted.entry((number, block)).or_default().is_whole = true;
                }
            };
            if levels.has(Levels::OBJECT) {
                whole(0, blocks.end);
                continue;
            }
            let block_of = |item: &RepairItem| outgoing.block_number(item.scheme, item.id.block);
            let from = if number == start { block_of(first) } else { Some(0) };
            let to = if number == end { block_of(last) } else { Some(blocks.end) };
            let Some((from, to)) = from.zip(to) else { continue };
            let is_gone = from < blocks.start;
            if levels.has(Levels::BLOCK) {
                whole(from, to.saturating_add(1));
            } else if levels.has(Levels::SEGMENT) && from == to && blocks.contains(&from) {
                let sizes = outgoing.sizes(from);
                let symbols = sizes.sources + sizes.parity;
                let request = wanted.entry((number, from)).or_default();
                if is_count {
                    request.count = request.count.max(first.id.symbol.min(symbols));
                } else {
                    let end = last.id.symbol.saturating_add(1).min(symbols);
                    request.symbols.extend(&SymbolSet::range(first.id.symbol..end));
                }
            }
            if is_gone && (levels.has(Levels::BLOCK) || levels.has(Levels::SEGMENT)) {
                // The block of a stream has left the buffer.
                self.squelch(number);
            }
        }
    }

    /// Makes the repair transmissions wait that answer the requests so far.
    pub(super) fn answer(&mut self, now: Instant, counters: &mut Counters) {
        let round_trip = self.advertised_grtt();
        for (key, request) in core::mem::take(&mut self.aggregate) {
            let Some(outgoing) = self.objects.get(&key.0) else { continue };
            let sizes = outgoing.sizes(key.1);
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
        to_group: bool,
        ack: &Ack,
        counters: &mut Counters,
    ) {
        if self.is_paused || ack.instance != self.instance {
            return;
        }
        counters.acks_received += 1;
        counters.cc_feedback_received += u64::from(ack.cc.is_some());
        let answer = Answer { grtt_response: ack.grtt_response, cc: ack.cc, to_group };
        if !self.heard(now, from, address, &answer) {
            return;
        }
        match &ack.contents {
            AckContents::Cc => {}
            AckContents::Flush { scheme, object, id } => {
                if let Some(point) = self.point_of(*scheme, *object, *id) {
                    self.acknowledgements.acknowledge(from, point);
                    self.confirm(counters);
                }
            }
            AckContents::Other { ack_type: ACK_REFUSED, contents } if !self.is_group => {
                self.refused(contents, counters);
            }
            AckContents::Other { .. } => {}
        }
    }

    /// Returns the point that an acknowledgement means, if all up to it was sent: the end of an object, or any symbol of a stream.
    fn point_of(&self, scheme: FecScheme, object: u16, id: PayloadId) -> Option<Point> {
        let number = self.number_of(object)?;
        let Some(outgoing) = self.objects.get(&number) else {
            return (number < self.cursor).then_some(Point {
                object: number,
                block: u32::MAX,
                symbol: u16::MAX,
            });
        };
        let block = outgoing.block_number(scheme, id.block)?;
        let (at, last) = ((block, id.symbol), outgoing.last()?);
        let is_point = if outgoing.stream().is_some() { at <= last } else { at == last };
        is_point.then_some(Point { object: number, block, symbol: id.symbol })
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

    /// Indicates the objects that all receivers have acknowledged, and how far they have a stream.
    pub(super) fn confirm(&mut self, counters: &mut Counters) {
        let Some(through) = self.acknowledgements.acknowledged() else { return };
        while let Some(number) =
            self.objects.keys().next().copied().filter(|number| *number <= through.object)
        {
            if number == through.object && !self.confirm_stream(through) {
                return;
            }
            self.complete(number, counters);
        }
    }

    pub(super) fn complete(&mut self, number: u64, counters: &mut Counters) {
        if let Some(outgoing) = self.remove(number) {
            counters.objects_sent += 1;
            self.up.push_back(ObjectsIndication::Sent { object: outgoing.object });
        }
    }
}
