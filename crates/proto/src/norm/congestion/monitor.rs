//! State of a receiver for congestion control (RFC 5740 5.5.2.2, RFC 4654 4 and 5).

use super::history::History;
use super::losses::Losses;
use super::queue::Queue;
use super::{ROUND_TRIP_MIN, blend, counted, equation, interval_of};
use crate::norm::quantities;
use crate::norm::wire::{CcFeedback, CcFlags, CcNode, NodeId, Timestamp};
use crate::time::{Duration, Instant};

/// Number of round-trip times for which the rate of reception is measured (RFC 4654 4.3.4).
const RATE_ROUND_TRIPS: u32 = 2;
/// Share of a new sample in the mean length of messages.
const LENGTH_SHARE: f64 = 0.05;
/// Share of the rate of other feedback above which feedback is superfluous (RFC 5740 5.5.2.2).
const SUPPRESSED_FROM: f64 = 0.9;

/// Rate of reception.
#[derive(Debug, Default)]
struct Reception {
    /// Arrival of the message after which bytes count, and of the latest one.
    since: Instant,
    latest: Instant,
    bytes: u64,
    messages: u64,
    /// Rate of the last complete measurement, bytes per second; zero before the first.
    rate: f64,
    /// Mean time from one message to the next then, seconds.
    each_s: f64,
}

impl Reception {
    fn arrive(&mut self, now: Instant, bytes: u64, round_trip: Duration) {
        let gap = now.saturating_since(self.latest);
        // A break of the sender says nothing about the path.
        let is_break = gap.as_secs_f64() > 4.0 * self.each_s && gap > round_trip && self.rate > 0.0;
        if is_break || self.latest == Instant::ZERO {
            (self.since, self.latest, self.bytes, self.messages) = (now, now, 0, 0);
            return;
        }
        (self.latest, self.bytes, self.messages) = (now, self.bytes + bytes, self.messages + 1);
        let span = now.saturating_since(self.since);
        if span >= round_trip * RATE_ROUND_TRIPS {
            self.rate = self.bytes as f64 / span.as_secs_f64();
            self.each_s = span.as_secs_f64() / self.messages as f64;
            (self.since, self.bytes, self.messages) = (now, 0, 0);
        }
    }
}

/// Measurements of a receiver about the path from a sender.
#[derive(Debug)]
pub(in crate::norm) struct Monitor {
    is_loss_tolerant: bool,
    losses: Losses,
    history: History,
    queue: Queue,
    reception: Reception,
    /// Mean length of messages, bytes.
    message_bytes: f64,
    /// Round-trip time that the sender has measured, and the greatest one of the group.
    round_trip: Option<Duration>,
    grtt: Duration,
    /// Number of the latest probe.
    sequence: u16,
    /// Flags CLR and PLR that the sender has given this receiver.
    marks: u8,
    /// The sender is in its slow start.
    has_slow_start: bool,
}

/// Probe of a sender.
#[derive(Clone, Copy, Debug)]
pub(in crate::norm) struct Probe<'a> {
    pub(in crate::norm) sequence: u16,
    pub(in crate::norm) sent: Timestamp,
    pub(in crate::norm) nodes: &'a [CcNode],
}

impl Monitor {
    pub(in crate::norm) fn new(is_loss_tolerant: bool) -> Self {
        Monitor {
            is_loss_tolerant,
            losses: Losses::default(),
            history: History::default(),
            queue: Queue::default(),
            reception: Reception::default(),
            message_bytes: 0.0,
            round_trip: None,
            grtt: ROUND_TRIP_MIN,
            sequence: 0,
            marks: 0,
            has_slow_start: false,
        }
    }

    fn round_trip(&self) -> Duration {
        self.round_trip.unwrap_or(self.grtt).max(ROUND_TRIP_MIN)
    }

    /// Notes a message of the sender, of any kind.
    pub(in crate::norm) fn arrive(&mut self, now: Instant, sequence: u16, bytes: usize, grtt: Duration) {
        self.grtt = grtt;
        let round_trip = self.round_trip();
        let bytes = bytes as f64;
        if self.message_bytes == 0.0 {
            self.message_bytes = bytes;
        }
        blend(&mut self.message_bytes, bytes, LENGTH_SHARE);
        self.reception.arrive(now, bytes as u64, round_trip);
        let (message_bytes, rate) = (self.message_bytes, self.reception.rate);
        let (queue, history) = (&mut self.queue, &mut self.history);
        let is_loss_tolerant = self.is_loss_tolerant;
        // The losses of a slow start are one event until the sender has ended it.
        let is_begun = self.has_slow_start && !history.is_empty();
        queue.count(1, 0);
        self.losses.arrive(now, sequence, |gap| {
            queue.count(0, gap.messages());
            if !is_begun && (!is_loss_tolerant || queue.is_congested()) {
                history.lose(&gap, round_trip, || interval_of(rate, message_bytes, counted(round_trip)));
            }
        });
    }

    /// Notes a probe of the sender.
    pub(in crate::norm) fn probe(&mut self, now: Instant, own: NodeId, probe: &Probe<'_>) {
        self.sequence = probe.sequence;
        self.queue.probe(now, probe.sent);
        let of_this = probe.nodes.iter().find(|node| node.node == own);
        self.marks = of_this.map_or(0, |node| node.flags & (CcFlags::CLR | CcFlags::PLR));
        if let Some(node) = of_this.filter(|node| node.flags & CcFlags::RTT != 0) {
            self.round_trip = Some(quantities::time_of(node.rtt));
        }
        let has_slow_start = probe.nodes.iter().any(|node| node.flags & CcFlags::START != 0);
        if has_slow_start && !core::mem::replace(&mut self.has_slow_start, has_slow_start) {
            // It begins again after a break (RFC 5740 5.5.2.3).
            self.history = History::default();
        }
        self.has_slow_start = has_slow_start;
    }

    /// Returns true if the sender wants the feedback of this receiver at once.
    pub(in crate::norm) fn is_marked(&self) -> bool {
        self.marks != 0
    }

    /// Returns the feedback, with the rate that suits this receiver.
    pub(in crate::norm) fn feedback(&self) -> CcFeedback {
        let mut flags = self.marks | if self.round_trip.is_some() { CcFlags::RTT } else { 0 };
        let twice = 2.0 * self.reception.rate;
        let share = self.history.share(self.losses.highest());
        let rate = if self.history.is_empty() {
            flags |= CcFlags::START;
            twice
        } else {
            let fair = equation(self.message_bytes, counted(self.round_trip()), share);
            if twice > 0.0 && twice < fair {
                flags |= CcFlags::LIMIT;
                twice
            } else {
                fair
            }
        };
        let loss = quantities::loss_code(share);
        CcFeedback {
            cc_sequence: self.sequence,
            flags,
            rtt: quantities::time_code(self.round_trip.unwrap_or(self.grtt)),
            loss: (loss >> 16) as u16,
            rate: quantities::rate_code(rate),
            reserved: loss as u16,
        }
    }

    /// Returns true if the feedback of another receiver, or of several, makes that of this one superfluous.
    pub(in crate::norm) fn is_suppressed_by(&self, other: &CcFeedback) -> bool {
        let own = self.feedback();
        let knows_less = own.flags & CcFlags::RTT == 0 && other.flags & CcFlags::RTT != 0;
        let counts =
            other.flags & (CcFlags::CLR | CcFlags::LEAVE) == 0 && quantities::rate_of(other.rate) > 0.0;
        let (own, other) = (quantities::rate_of(own.rate), quantities::rate_of(other.rate));
        counts && !knows_less && !self.is_marked() && own > SUPPRESSED_FROM * other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(50);

    /// A receiver of a message of 1,000 bytes per millisecond, of which those with these numbers are lost.
    fn monitor(is_loss_tolerant: bool, is_lost: impl Fn(u64) -> bool) -> Monitor {
        let mut monitor = Monitor::new(is_loss_tolerant);
        for number in (1..2_000_u64).filter(|number| !is_lost(*number)) {
            monitor.arrive(Instant::from_millis(number), number as u16, 1_000, ROUND_TRIP);
        }
        monitor
    }

    fn rate(feedback: &CcFeedback) -> f64 {
        quantities::rate_of(feedback.rate)
    }

    fn close(left: f64, right: f64) -> bool {
        (left / right - 1.0).abs() < 0.01
    }

    #[test]
    fn twice_the_rate_is_stated_before_the_first_loss() {
        let feedback = monitor(false, |_| false).feedback();
        assert!(close(rate(&feedback), 2e6), "{feedback:?}");
        assert_eq!((feedback.flags, feedback.loss), (CcFlags::START, 0));
        assert_eq!(rate(&Monitor::new(false).feedback()), 0.0, "nothing is known");
    }

    #[test]
    fn losses_have_the_rate_of_the_equation() {
        let feedback = monitor(false, |number| number % 100 == 0).feedback();
        let share = quantities::loss_of(feedback.loss, feedback.reserved);
        assert!((share - 0.01).abs() < 0.001, "{share}");
        assert!(close(rate(&feedback), equation(1_000.0, 0.05, share)) && feedback.flags == 0);
        // The losses of a millionth cost little, and twice the rate of reception is the limit.
        let few = monitor(false, |number| number == 1_500).feedback();
        assert!(few.flags == 0 && rate(&few) < 1.3e6, "one loss: about the rate of reception {few:?}");
    }

    #[test]
    fn the_tolerant_receiver_counts_losses_from_full_queues() {
        let feedback = monitor(true, |number| number % 20 == 0).feedback();
        assert_eq!((feedback.flags, feedback.loss), (CcFlags::START, 0));
        let feedback = monitor(true, |number| number % 2 == 0).feedback();
        assert!(feedback.flags & CcFlags::START == 0, "half is congestion");
        let mut queued = monitor(true, |_| false);
        for (second, delay) in [(2, 10), (3, 100)] {
            let sent = Timestamp::from_micros(second * 1_000_000);
            let probe = Probe { sequence: 1, sent, nodes: &[] };
            queued.probe(Instant::from_millis(second * 1_000 + delay), NodeId(1), &probe);
        }
        for number in [2_001, 2_002, 2_003_u64] {
            queued.arrive(Instant::from_millis(3_100), number as u16, 1_000, ROUND_TRIP);
        }
        assert!(queued.feedback().flags & CcFlags::START == 0);
    }

    #[test]
    fn a_slow_start_begins_the_history_again() {
        let mut monitor = monitor(false, |number| number % 100 == 0);
        let item =
            |flags| [CcNode { node: NodeId(1), flags, rtt: quantities::time_code(ROUND_TRIP), rate: 0 }];
        let mut probe = |flags| {
            let probe = Probe { sequence: 7, sent: Timestamp::default(), nodes: &item(flags) };
            monitor.probe(Instant::from_secs(3), NodeId(1), &probe);
            (monitor.feedback().flags, monitor.is_marked())
        };
        assert_eq!(probe(CcFlags::CLR | CcFlags::RTT), (CcFlags::CLR | CcFlags::RTT, true));
        let all = CcFlags::CLR | CcFlags::RTT | CcFlags::START;
        assert_eq!(probe(all), (all, true));
    }

    #[test]
    fn feedback_of_others_with_lower_rates_suppresses() {
        let mut own = monitor(false, |number| number % 100 == 0);
        let other = |times: f64, flags| CcFeedback {
            flags,
            rate: quantities::rate_code(rate(&own.feedback()) * times),
            ..CcFeedback::default()
        };
        assert!(own.is_suppressed_by(&other(1.0, 0)) && !own.is_suppressed_by(&other(1.2, 0)));
        assert!(!own.is_suppressed_by(&other(0.5, CcFlags::RTT)), "it knows its round-trip time");
        assert!(!own.is_suppressed_by(&other(0.5, CcFlags::CLR)) && !own.is_suppressed_by(&other(0.0, 0)));
        let known = other(0.5, CcFlags::RTT);
        own.round_trip = Some(ROUND_TRIP);
        assert!(own.is_suppressed_by(&known));
        own.marks = CcFlags::PLR;
        assert!(!own.is_suppressed_by(&known));
    }
}
