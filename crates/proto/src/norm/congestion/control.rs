//! Rate of a sender (RFC 5740 5.5.2.1 and 5.5.2.3, RFC 4654 3).

use super::{CongestionControl, ROUND_TRIP_MIN, blend, counted, equation};
use crate::norm::config::Config;
use crate::norm::quantities;
use crate::norm::wire::{CcFeedback, CcFlags, CcNode, NodeId};
use crate::time::{Duration, Instant};
use std::collections::BTreeMap;

/// Maximum number of receivers that are remembered, those with the lowest rates.
const RECEIVERS_MAX: usize = 64;
/// Maximum number of receivers in a probe.
const LISTED_MAX: usize = 8;
/// Maximum number of potential limiting receivers, and their rate as a multiple of that of the limiting one.
const POTENTIAL_MAX: usize = 2;
const POTENTIAL_BELOW: f64 = 1.25;
/// Receivers with rates this close have the same rate (RFC 5740 5.5.2).
const TIE: f64 = 0.1;
/// Number of probes without an answer of the limiting receiver before the rate is halved (RFC 5740 5.5.2.3).
const AGE_MAX: u16 = 4;
/// Share of a new sample in the round-trip time of receivers that answer each probe, and of others.
const MARKED_SHARE: f64 = 0.1;
const OTHER_SHARE: f64 = 0.5;
/// Least share of the rate that is used while a queue grows.
const DAMPING_MIN: f64 = 0.5;
/// Share of a new sample in the mean length of messages.
const LENGTH_SHARE: f64 = 0.05;
/// Number of round-trip times after which it is seen at a receiver that the sender was idle.
const IDLE_ROUND_TRIPS: f64 = 4.0;
/// Shortest time of a break after which the rate is halved.
const BREAK_MIN: Duration = Duration::from_secs(1);
/// Number of round-trip times of such a break (RFC 4654 3.6).
const BREAK_ROUND_TRIPS: u32 = 10;

/// Receiver, as its feedback shows it.
#[derive(Clone, Copy, Debug)]
struct Receiver {
    /// Smoothed round-trip time, seconds; `None` without a measurement.
    round_trip_s: Option<f64>,
    /// Smoothed square root of the round-trip time as it counts, and that of the latest one; zero without a measurement.
    root: f64,
    latest_root: f64,
    /// Rate that suits it, bytes per second.
    rate: f64,
    /// It has had no loss.
    has_slow_start: bool,
    /// Number of the probe that it has answered, and time of the answer.
    sequence: u16,
    at: Instant,
    /// It knows its round-trip time.
    is_informed: bool,
    is_potential: bool,
}

/// Feedback of a receiver, as it has arrived.
#[derive(Clone, Copy, Debug)]
pub(in crate::norm) struct Report {
    pub(in crate::norm) from: NodeId,
    pub(in crate::norm) feedback: CcFeedback,
    /// Time from the departure of a probe to this answer, without the time at the receiver.
    pub(in crate::norm) round_trip: Option<Duration>,
}

/// Rate of a sender with congestion control, in bytes per second.
#[derive(Debug)]
pub(in crate::norm) struct RateControl {
    is_on: bool,
    rate: f64,
    /// Share of the rate that is used while the round-trip time is above its mean (RFC 5348 4.5).
    damping: f64,
    least: f64,
    greatest: f64,
    segment_bytes: f64,
    /// Mean length of messages, bytes.
    message_bytes: f64,
    robust_factor: u32,
    has_slow_start: bool,
    /// Rate before a break, up to which the rate doubles; zero without one.
    resumed: f64,
    receivers: BTreeMap<NodeId, Receiver>,
    limiting: Option<NodeId>,
    /// Number of the next probe.
    sequence: u16,
    /// Time up to which the rate was raised.
    raised_at: Instant,
    /// Departure of the latest message.
    active_at: Instant,
    /// Latest time at which the user had nothing to send that the rate would have let leave.
    idle_at: Option<Instant>,
    /// Most limiting feedback since the last probe, except that of the limiting receiver, for receivers that cannot hear it.
    round: Option<CcFeedback>,
}

impl RateControl {
    pub(in crate::norm) fn new(config: &Config) -> Self {
        let greatest = if config.rate_bps == 0 { f64::INFINITY } else { config.rate_bps as f64 / 8.0 };
        let least = (config.rate_min_bps as f64 / 8.0).min(greatest);
        let segment = config.segment_bytes as f64;
        let first = segment.min(segment / config.grtt.as_secs_f64());
        let is_on = config.congestion_control != CongestionControl::None;
        RateControl {
            is_on,
            rate: if is_on { first.clamp(least, greatest) } else { greatest },
            damping: 1.0,
            least,
            greatest,
            segment_bytes: segment,
            message_bytes: segment,
            robust_factor: config.robust_factor,
            has_slow_start: true,
            resumed: 0.0,
            receivers: BTreeMap::new(),
            limiting: None,
            sequence: 0,
            raised_at: Instant::ZERO,
            active_at: Instant::ZERO,
            idle_at: None,
            round: None,
        }
    }

    /// Returns true if the rate follows the path.
    pub(in crate::norm) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Returns the rate, bit/s, zero without a limit.
    pub(in crate::norm) fn rate_bps(&self) -> u64 {
        let rate = (self.rate * self.damping).max(self.least);
        if rate.is_finite() { (rate * 8.0).max(1.0) as u64 } else { 0 }
    }

    /// Returns the rate as a probe states it.
    pub(in crate::norm) fn rate_code(&self) -> u16 {
        quantities::rate_code(if self.rate.is_finite() { self.rate } else { 0.0 })
    }

    fn set_rate(&mut self, rate: f64) {
        // An initial limit of one segment in a second has no use above the greatest rate.
        self.rate = rate.clamp(self.least, self.greatest);
    }

    // -- Probes -------------------------------------------------------------------------------------------------

    /// Returns the interval to the next probe, if a limiting receiver determines it.
    pub(in crate::norm) fn probe_interval(&self) -> Option<Duration> {
        let round_trip_s = self.receivers.get(&self.limiting.filter(|_| self.is_on)?)?.round_trip_s?;
        let each_s = self.message_bytes / self.rate;
        Some(Duration::from_secs_f64(round_trip_s.max(each_s).clamp(ROUND_TRIP_MIN.as_secs_f64(), 60.0)))
    }

    /// Makes a probe: its number, and the receivers that it states.
    pub(in crate::norm) fn probe(&mut self, now: Instant, grtt: Duration) -> (u16, Vec<CcNode>) {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        self.round = None;
        if !self.is_on {
            return (sequence, Vec::new());
        }
        self.note_silence(now, grtt);
        self.choose_potential();
        let mut listed: Vec<(NodeId, Receiver)> =
            self.receivers.iter().map(|(node, state)| (*node, *state)).collect();
        let is_limiting = |node: NodeId| Some(node) == self.limiting;
        let rank = |(node, state): &(NodeId, Receiver)| {
            (!is_limiting(*node), !state.is_potential, state.is_informed, state.rate)
        };
        listed.sort_by(|left, right| rank(left).partial_cmp(&rank(right)).expect("rates are numbers"));
        let most = LISTED_MAX.min(self.segment_bytes as usize / 8);
        let item = |(node, state): &(NodeId, Receiver)| {
            let clr = if is_limiting(*node) { CcFlags::CLR } else { 0 };
            let plr = if state.is_potential { CcFlags::PLR } else { 0 };
            let rtt = if state.round_trip_s.is_some() { CcFlags::RTT } else { 0 };
            let start = if self.has_slow_start { CcFlags::START } else { 0 };
            let round_trip = Duration::from_secs_f64(state.round_trip_s.unwrap_or(0.0));
            CcNode {
                node: *node,
                flags: clr | plr | rtt | start,
                rtt: quantities::time_code(round_trip),
                rate: quantities::rate_code(state.rate),
            }
        };
        (sequence, listed.iter().take(most).map(item).collect())
    }

    /// Marks the receivers whose rates are near that of the limiting one, so that they answer each probe.
    fn choose_potential(&mut self) {
        let limit = self.limiting.and_then(|node| self.receivers.get(&node)).map_or(0.0, |state| state.rate);
        let limiting = self.limiting;
        let mut near: Vec<(f64, NodeId)> = Vec::new();
        for (node, state) in &mut self.receivers {
            state.is_potential = false;
            if Some(*node) != limiting && state.rate < limit * POTENTIAL_BELOW {
                near.push((state.rate, *node));
            }
        }
        near.sort_by(|left, right| left.partial_cmp(right).expect("rates are numbers"));
        for (_, node) in near.iter().take(POTENTIAL_MAX) {
            self.receivers.get_mut(node).expect("it is one of them").is_potential = true;
        }
    }

    /// Number of probes since the one that a receiver has answered.
    fn age(&self, sequence: u16) -> u16 {
        self.sequence.wrapping_sub(1).wrapping_sub(sequence)
    }

    /// Halves the rate if the limiting receiver does not answer, and after some time gives it up.
    fn note_silence(&mut self, now: Instant, grtt: Duration) {
        let robust = u16::try_from(self.robust_factor).unwrap_or(u16::MAX / 8);
        let is_gone = |age: u16| u32::from(age) > 4 * u32::from(robust);
        let next = self.sequence.wrapping_sub(1);
        let limiting = self.limiting;
        self.receivers
            .retain(|node, state| Some(*node) == limiting || !is_gone(next.wrapping_sub(state.sequence)));
        let Some((node, state)) = limiting.and_then(|node| Some((node, *self.receivers.get(&node)?))) else {
            return;
        };
        let age = self.age(state.sequence);
        // Probes may be more frequent than the round trips of a queue that has just filled.
        let patience = grtt.max(Duration::from_secs_f64(counted_s(&state))) * u32::from(AGE_MAX);
        if age > AGE_MAX && now >= state.at + patience {
            self.set_rate(self.rate / 2.0);
            self.resumed = 0.0;
        }
        if age > robust {
            self.receivers.remove(&node);
            self.choose_limiting();
        }
    }

    /// Makes the receiver with the lowest rate the limiting one.
    fn choose_limiting(&mut self) {
        let lowest = self.receivers.iter().min_by(|left, right| left.1.rate.total_cmp(&right.1.rate));
        self.limiting = lowest.map(|(node, _)| *node);
        if self.limiting.is_none() {
            self.has_slow_start = true;
            self.set_rate(self.least);
        }
    }

    // -- Feedback -----------------------------------------------------------------------------------------------

    /// Notes the feedback of a receiver; true if other receivers should learn it.
    pub(in crate::norm) fn hear(&mut self, now: Instant, report: &Report, grtt: Duration) -> bool {
        let Report { from, feedback, .. } = report;
        // Answers to probes that were not sent yet are no answers.
        if !self.is_on || self.age(feedback.cc_sequence) >= 1 << 15 {
            return false;
        }
        if feedback.flags & CcFlags::LEAVE != 0 {
            self.receivers.remove(from);
            if self.limiting == Some(*from) {
                self.choose_limiting();
            }
            return false;
        }
        // Feedback without a new probe raises no rate: a receiver that hears nothing any more may still send requests.
        let age = self.age(feedback.cc_sequence);
        let known = self.receivers.get(from);
        let is_new = known.map_or(age <= AGE_MAX, |known| age < self.age(known.sequence));
        if known.is_none() && self.limiting.is_none() && !is_new {
            return false;
        }
        let state = self.assess(now, report, grtt);
        if !self.make_room(*from, state.rate) {
            return false;
        }
        self.receivers.insert(*from, state);
        self.adjust(now, *from, is_new, grtt);
        self.note_round(*from, feedback)
    }

    /// Computes the rate of a receiver from its feedback.
    fn assess(&self, now: Instant, report: &Report, grtt: Duration) -> Receiver {
        let Report { from, feedback, round_trip } = report;
        let known = self.receivers.get(from);
        let is_marked = self.limiting == Some(*from) || known.is_some_and(|known| known.is_potential);
        let is_informed = feedback.flags & CcFlags::RTT != 0;
        let before = known.and_then(|known| known.round_trip_s);
        let before = before.or(is_informed.then(|| quantities::time_of(feedback.rtt).as_secs_f64()));
        let round_trip_s = match (before, round_trip) {
            (Some(mut mean), Some(sample)) => {
                let sample = sample.as_secs_f64();
                blend(&mut mean, sample, if is_marked { MARKED_SHARE } else { OTHER_SHARE });
                Some(mean)
            }
            (None, Some(sample)) => Some(sample.as_secs_f64()),
            (before, None) => before,
        };
        let latest_root = match round_trip {
            Some(sample) => libm::sqrt(counted(*sample)),
            None => known.map_or(0.0, |known| known.latest_root),
        };
        let mut root = known.map_or(0.0, |known| known.root);
        if root == 0.0 {
            root = latest_root;
        }
        if round_trip.is_some() {
            blend(&mut root, latest_root, MARKED_SHARE);
        }
        let stated = quantities::rate_of(feedback.rate);
        let losses = quantities::loss_of(feedback.loss, feedback.reserved);
        let has_slow_start = feedback.flags & CcFlags::START != 0;
        let counted_s =
            round_trip_s.map_or(counted(grtt), |seconds| counted(Duration::from_secs_f64(seconds)));
        let fair = equation(self.message_bytes, counted_s, losses);
        let rate = match has_slow_start {
            true => stated,
            false if feedback.flags & CcFlags::LIMIT != 0 && stated > 0.0 => {
                // Less than the rate arrives if less is sent (RFC 5348 4.3).
                let span = Duration::from_secs_f64(IDLE_ROUND_TRIPS * counted_s);
                let is_idle = self.idle_at.is_some_and(|at| now <= at + span);
                fair.min(if is_idle { stated.max(self.rate) } else { stated })
            }
            false => fair,
        };
        let (sequence, at) = match known {
            // An answer that has overtaken another one.
            Some(known) if self.age(known.sequence) < self.age(feedback.cc_sequence) => {
                (known.sequence, known.at)
            }
            _ => (feedback.cc_sequence, now),
        };
        let is_potential = known.is_some_and(|known| known.is_potential);
        Receiver {
            round_trip_s,
            root,
            latest_root,
            rate,
            has_slow_start,
            sequence,
            at,
            is_informed,
            is_potential,
        }
    }

    /// Makes room for a receiver: the one with the greatest rate is forgotten, if it is not this one.
    fn make_room(&mut self, from: NodeId, rate: f64) -> bool {
        if self.receivers.len() < RECEIVERS_MAX || self.receivers.contains_key(&from) {
            return true;
        }
        let others = self.receivers.iter().filter(|(node, _)| Some(**node) != self.limiting);
        let greatest = others.max_by(|left, right| left.1.rate.total_cmp(&right.1.rate));
        let Some((node, _)) = greatest.filter(|(_, state)| state.rate > rate) else { return false };
        let node = *node;
        self.receivers.remove(&node);
        true
    }

    /// Changes the rate after the feedback of a receiver.
    fn adjust(&mut self, now: Instant, from: NodeId, is_new: bool, grtt: Duration) {
        let state = self.receivers[&from];
        if !state.has_slow_start {
            self.has_slow_start = false;
        }
        let limit = self.limiting.filter(|limiting| *limiting != from);
        let takes_over = match limit.and_then(|limiting| self.receivers.get(&limiting)) {
            None => true,
            Some(limiting) if state.rate < limiting.rate * (1.0 - TIE) => true,
            Some(limiting) => {
                state.rate < limiting.rate * (1.0 + TIE) && state.round_trip_s > limiting.round_trip_s
            }
        };
        if takes_over {
            self.limiting = Some(from);
        }
        if self.limiting != Some(from) {
            return;
        }
        let is_late = !self.has_slow_start && state.latest_root > state.root;
        if is_new {
            self.damping = if is_late { (state.root / state.latest_root).max(DAMPING_MIN) } else { 1.0 };
        }
        if !self.has_slow_start && state.rate <= self.rate {
            self.set_rate(state.rate);
            (self.raised_at, self.resumed) = (now, 0.0);
        } else if !is_new {
            // The answer to a later probe tells.
        } else if self.has_slow_start {
            // A receiver of a message per second could not state a rate for long: one segment in a round trip is for the beginning.
            let first = self.message_bytes / counted(grtt);
            if self.rate < first && state.rate == 0.0 {
                self.set_rate(first);
            }
            self.rise(now, state.rate.max(self.rate), counted(grtt), true);
        } else if self.rate < self.resumed {
            self.rise(now, state.rate.min(self.resumed), counted_s(&state), true);
        } else {
            self.rise(now, state.rate, counted_s(&state), false);
        }
    }

    /// Raises the rate towards another one: by a segment per round trip for each round trip, or to twice the rate in a round trip.
    fn rise(&mut self, now: Instant, towards: f64, round_trip_s: f64, is_fast: bool) {
        let passed = (now.saturating_since(self.raised_at).as_secs_f64() / round_trip_s).min(1.0);
        let reachable = match is_fast {
            true => self.rate * libm::exp2(passed),
            false => self.rate + self.message_bytes / round_trip_s * passed,
        };
        self.set_rate(towards.min(reachable));
        self.raised_at = now;
    }

    /// Keeps the most limiting feedback for receivers that have not heard it; true if it is more so than before.
    fn note_round(&mut self, from: NodeId, feedback: &CcFeedback) -> bool {
        if self.limiting == Some(from) && feedback.flags & CcFlags::CLR != 0 {
            return false;
        }
        let rate = |feedback: &CcFeedback| quantities::rate_of(feedback.rate);
        let Some(round) = &mut self.round else {
            self.round = Some(CcFeedback { flags: feedback.flags & !CcFlags::PLR, ..*feedback });
            return true;
        };
        let is_lower = rate(feedback) < rate(round);
        round.flags &= feedback.flags | CcFlags::START;
        round.rtt = round.rtt.max(feedback.rtt);
        if (feedback.loss, feedback.reserved) > (round.loss, round.reserved) {
            (round.loss, round.reserved) = (feedback.loss, feedback.reserved);
        }
        if is_lower {
            round.rate = feedback.rate;
        }
        is_lower
    }

    /// Returns the most limiting feedback since the last probe, for CMD(REPAIR_ADV).
    pub(in crate::norm) fn round(&self) -> Option<CcFeedback> {
        let cc_sequence = self.sequence.wrapping_sub(1);
        self.round.map(|round| CcFeedback { cc_sequence, ..round })
    }

    /// Notes that nothing is there to send.
    pub(in crate::norm) fn note_idle(&mut self, now: Instant) {
        self.idle_at = Some(now);
    }

    // -- Departures ---------------------------------------------------------------------------------------------

    /// Notes that a message with data leaves. After a break the rate is lower.
    pub(in crate::norm) fn depart(&mut self, now: Instant, bytes: usize) {
        if !self.is_on {
            return;
        }
        blend(&mut self.message_bytes, bytes as f64, LENGTH_SHARE);
        let last = core::mem::replace(&mut self.active_at, now);
        let limiting = self.limiting.and_then(|node| self.receivers.get(&node));
        let round_trip = limiting.map_or(ROUND_TRIP_MIN, |state| Duration::from_secs_f64(counted_s(state)));
        let span = BREAK_MIN.max(round_trip * BREAK_ROUND_TRIPS).as_secs_f64()
            + 4.0 * self.message_bytes / self.rate;
        let halvings = libm::floor(now.saturating_since(last).as_secs_f64() / span);
        if halvings < 1.0 || last == Instant::ZERO {
            return;
        }
        let first = self.segment_bytes.clamp(self.least, self.greatest);
        let lower = self.rate * libm::exp2(-halvings.min(64.0));
        self.resumed = self.resumed.max(self.rate);
        self.has_slow_start |= lower <= first;
        self.set_rate(lower.max(first).min(self.rate));
        self.raised_at = now;
    }
}

/// Round-trip time of a receiver as it counts, seconds.
fn counted_s(state: &Receiver) -> f64 {
    counted(Duration::from_secs_f64(state.round_trip_s.unwrap_or(0.0)))
}
