//! Congestion window: slow start, congestion avoidance, and the reaction to a loss (RFC 5681, RFC 6582, RFC 6675 5, RFC
//! 6937).

use super::config::{
    CongestionControl, Growth, Halved, IdleRestart, Profile, Recovery, Reduction, ReductionBound,
    WindowValidation,
};
use super::cubic::{Cubic, Hystart};
use crate::time::{Duration, Instant};

/// Initial slow-start threshold, "arbitrarily high" (RFC 5681 3.1).
pub(super) const THRESHOLD_UNKNOWN: u64 = u64::MAX / 4;
/// Upper bound of the congestion window, above any usable window.
const WINDOW_MAX: u64 = 1 << 40;

/// Phase of congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No known loss.
    Open,
    /// Fast recovery, until everything before `point` is acknowledged.
    Recovery {
        /// End of the data sent when the phase began.
        point: u64,
    },
    /// Slow start after a timeout, until everything before `point` is acknowledged.
    Loss {
        /// End of the data sent when the phase began.
        point: u64,
    },
}

/// Window and threshold before a reduction, to undo it.
#[derive(Clone, Copy, Debug)]
struct WindowBefore {
    window: u64,
    threshold: u64,
}

/// Congestion window of one connection, bytes.
#[derive(Debug)]
pub(super) struct Congestion {
    growth: Growth,
    validation: WindowValidation,
    halved: Halved,
    whole_segments: bool,
    reduction: Reduction,
    bound: ReductionBound,
    /// Growth by whole acknowledged segments, as in ns-3.
    ns3: bool,
    /// `None` for Reno.
    cubic: Option<Cubic>,
    hystart: Option<Hystart>,
    idle_restart: IdleRestart,
    segment: u64,
    initial: u64,
    pub(super) window: u64,
    pub(super) threshold: u64,
    pub(super) phase: Phase,
    before: Option<WindowBefore>,
    /// Congestion avoidance: bytes acknowledged since the window grew.
    credit: u64,
    /// Proportional reduction: bytes delivered and sent in this recovery, and the window at its beginning.
    delivered: u64,
    sent: u64,
    window_at_loss: u64,
    /// Rate halving: only every second acknowledgement counts.
    odd: bool,
}

impl Congestion {
    pub(super) fn new(profile: &Profile, segment: u64) -> Self {
        let initial = u64::from(profile.initial_window_segments.max(1)) * segment;
        Congestion {
            growth: profile.growth,
            validation: profile.window_validation,
            halved: profile.halved,
            whole_segments: profile.whole_segments,
            reduction: profile.reduction,
            bound: profile.reduction_bound,
            ns3: profile.recovery == Recovery::NewRenoNs3,
            cubic: (profile.congestion_control == CongestionControl::Cubic).then(|| Cubic::new(segment)),
            hystart: profile.hystart.then(Hystart::default),
            idle_restart: profile.idle_restart,
            segment,
            initial,
            window: initial,
            threshold: THRESHOLD_UNKNOWN,
            phase: Phase::Open,
            before: None,
            credit: 0,
            delivered: 0,
            sent: 0,
            window_at_loss: initial,
            odd: false,
        }
    }

    /// Sets the window to one segment after the loss of a SYN (RFC 5681 3.1).
    pub(super) fn syn_was_lost(&mut self) {
        self.window = self.segment;
    }

    fn is_in_slow_start(&self) -> bool {
        match self.growth {
            Growth::PerAcknowledgementLinux => self.window <= self.threshold,
            Growth::PerAcknowledgement | Growth::Bytes { .. } => self.window < self.threshold,
        }
    }

    /// Processes a round-trip sample of an acknowledgement up to `acknowledged`; `sent` is the end of the data sent.
    pub(super) fn note_round_trip(&mut self, now: Instant, measured: Duration, acknowledged: u64, sent: u64) {
        let slow_start = self.is_in_slow_start();
        let segments = self.window / self.segment;
        if let Some(hystart) = &mut self.hystart
            && slow_start
            && hystart.ends_slow_start(now, measured, (acknowledged, sent), segments)
        {
            self.threshold = self.window;
        }
    }

    /// Grows the window after an acknowledgement of new data outside fast recovery; `used` is the number of bytes that
    /// were in the network before, or would have been if the interface had had room.
    pub(super) fn grow(&mut self, acknowledged: u64, used: u64, now: Instant, round_trip: Duration) {
        let slow_start = self.is_in_slow_start();
        let full = used + self.segment > self.window;
        let may = match self.validation {
            WindowValidation::Off => true,
            WindowValidation::WhenFull => full,
            WindowValidation::SlowStartDoubles => full || slow_start && self.window < 2 * used,
        };
        if !may {
            return;
        }
        if self.ns3 {
            return self.grow_as_in_ns3(acknowledged);
        }
        let mut amount = match self.growth {
            Growth::PerAcknowledgementLinux if self.cubic.is_none() || slow_start => {
                return self.grow_by_acknowledgements(slow_start);
            }
            Growth::PerAcknowledgement | Growth::PerAcknowledgementLinux => self.segment,
            Growth::Bytes { segments_max: 0 } => acknowledged,
            Growth::Bytes { segments_max } => acknowledged.min(u64::from(segments_max) * self.segment),
        };
        if slow_start {
            let step = amount.min(self.threshold - self.window);
            self.window = (self.window + step).min(WINDOW_MAX);
            amount -= step;
        }
        if self.window < self.threshold || amount == 0 {
            return;
        }
        if let Some(cubic) = &mut self.cubic {
            self.window = cubic.grow(self.window, amount, now, round_trip).min(WINDOW_MAX);
        } else {
            // RFC 5681 3.1 equation 3, by counting: one segment per window acknowledged.
            self.credit += amount;
            if self.credit >= self.window {
                self.credit -= self.window;
                self.window = (self.window + self.segment).min(WINDOW_MAX);
            }
        }
    }

    /// Grows by one segment in slow start, and by a part of one in congestion avoidance, if whole segments are acknowledged.
    fn grow_as_in_ns3(&mut self, acknowledged: u64) {
        self.credit += acknowledged;
        let mut segments = self.credit / self.segment;
        self.credit %= self.segment;
        if segments > 0 && self.window < self.threshold {
            self.window = (self.window + self.segment).min(WINDOW_MAX);
            segments -= 1;
        }
        if segments > 0 && self.window >= self.threshold {
            self.window = (self.window + (self.segment * self.segment / self.window).max(1)).min(WINDOW_MAX);
        }
    }

    fn grow_by_acknowledgements(&mut self, slow_start: bool) {
        if slow_start {
            self.window = (self.window + self.segment).min(WINDOW_MAX);
        } else if self.credit >= self.window {
            self.credit = 0;
            self.window = (self.window + self.segment).min(WINDOW_MAX);
        } else {
            self.credit += self.segment;
        }
    }

    fn reduce_threshold(&mut self, flight: u64) {
        self.before = Some(WindowBefore { window: self.window, threshold: self.threshold });
        let base = match self.halved {
            Halved::Flight => flight,
            Halved::Window => self.window,
        };
        let share = self.cubic.as_mut().map_or(base / 2, |cubic| cubic.reduce(base));
        let unit = if self.whole_segments { self.segment } else { 1 };
        self.threshold = (share - share % unit).max(2 * self.segment);
        self.credit = 0;
    }

    /// Starts fast recovery (RFC 5681 3.2, RFC 6675 5 step 4).
    pub(super) fn enter_recovery(&mut self, point: u64, flight: u64) {
        self.window_at_loss = self.window.max(1);
        self.reduce_threshold(flight);
        self.phase = Phase::Recovery { point };
        (self.delivered, self.sent, self.odd) = (0, 0, false);
        if self.reduction == Reduction::Immediate {
            self.window = self.threshold;
        }
    }

    /// Processes one acknowledgement during fast recovery; `pipe` is the number of bytes in the network now. `advanced` is
    /// true if the acknowledgement advances, `loss` if it shows further losses.
    pub(super) fn recovery_step(&mut self, delivered: u64, pipe: u64, advanced: bool, loss: bool) {
        match self.reduction {
            Reduction::Immediate => {}
            Reduction::RateHalving => {
                if self.odd && self.window > self.threshold / 2 + self.segment {
                    self.window -= self.segment;
                }
                self.odd = !self.odd;
                self.window = self.window.min(pipe + self.segment);
            }
            Reduction::Proportional => {
                self.delivered += delivered;
                let allowed = if pipe > self.threshold {
                    let share = u128::from(self.delivered) * u128::from(self.threshold);
                    let share = share.div_ceil(u128::from(self.window_at_loss)) as u64;
                    share.saturating_sub(self.sent)
                } else {
                    let owed = self.delivered.saturating_sub(self.sent);
                    let limit = match self.bound {
                        ReductionBound::Conservative => owed,
                        ReductionBound::SlowStart => owed.max(delivered) + self.segment,
                        ReductionBound::SlowStartWithoutLoss if advanced && !loss => {
                            owed.max(delivered) + self.segment
                        }
                        ReductionBound::SlowStartWithoutLoss => owed.max(delivered),
                    };
                    limit.min(self.threshold - pipe)
                };
                // The fast retransmit itself is always allowed.
                let least = if self.sent == 0 { self.segment } else { 0 };
                self.window = pipe + allowed.max(least);
            }
        }
    }

    /// Counts bytes sent during fast recovery.
    pub(super) fn note_sent(&mut self, bytes: u64) {
        if matches!(self.phase, Phase::Recovery { .. }) {
            self.sent += bytes;
        }
    }

    /// Ends fast recovery: everything before the recovery point is acknowledged (RFC 6582 3.2 step 3, RFC 6675 5).
    pub(super) fn exit_recovery(&mut self, flight: u64, sack: bool) {
        self.phase = Phase::Open;
        self.window = match self.reduction {
            // Without SACK the whole flight may have been acknowledged at once: the limit prevents a burst.
            Reduction::Immediate if !sack => self.threshold.min(flight.max(self.segment) + self.segment),
            Reduction::Immediate | Reduction::Proportional => self.threshold,
            Reduction::RateHalving => self.window.min(self.threshold),
        };
        self.window = self.window.max(self.segment);
    }

    /// Reduces the window because a tail loss probe has repaired a loss (RFC 8985 7.4.2).
    pub(super) fn probe_repaired(&mut self, flight: u64) {
        self.reduce_threshold(flight);
        self.window = self.window.min(self.threshold);
        self.before = None;
    }

    /// Reduces the window after a timeout to `pipe`, the bytes in the network, and one segment (RFC 5681 3.1); `first` is
    /// true for the first timeout of these data. If the window itself is halved, a timeout within fast recovery does not
    /// halve it again.
    pub(super) fn time_out(&mut self, point: u64, flight: u64, pipe: u64, first: bool) {
        let halved = self.halved == Halved::Window && matches!(self.phase, Phase::Recovery { .. });
        if first && !halved {
            self.reduce_threshold(flight);
        }
        if let Some(cubic) = &mut self.cubic {
            cubic.time_out();
        }
        self.hystart = self.hystart.as_ref().map(|_| Hystart::default());
        self.window = pipe + self.segment;
        self.credit = 0;
        self.phase = Phase::Loss { point };
    }

    /// Ends the phase after a timeout: everything that was in flight then is acknowledged.
    pub(super) fn exit_loss(&mut self) {
        self.phase = Phase::Open;
    }

    /// Returns true if there is a reduction that can be undone.
    pub(super) fn can_undo(&self) -> bool {
        self.before.is_some()
    }

    /// Undoes the reduction because nothing was lost.
    pub(super) fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.window = self.window.max(before.window);
            self.threshold = self.threshold.max(before.threshold);
        }
        self.phase = Phase::Open;
    }

    /// Restarts after an idle period of length `idle` (RFC 5681 4.1).
    pub(super) fn restart(&mut self, idle: Duration, timeout: Duration) {
        if let Some(cubic) = &mut self.cubic {
            cubic.skip(idle);
        }
        if idle <= timeout || self.phase != Phase::Open {
            return;
        }
        let floor = self.initial.min(self.window);
        match self.idle_restart {
            IdleRestart::Off => {}
            IdleRestart::Rfc5681 => self.window = floor,
            IdleRestart::Halving => {
                self.threshold = self.threshold.max(self.window / 4 * 3);
                let halvings = idle.as_nanos() / timeout.as_nanos().max(1);
                let halved = self.window.checked_shr(halvings.min(63) as u32).unwrap_or(0);
                self.window = halved.max(floor);
            }
        }
        self.credit = 0;
    }

    /// Returns the slow-start threshold for later connections to the same peer, given the one remembered from earlier
    /// connections. As in Linux, a threshold is lowered only after steady growth: a sender that is repairing a loss, or
    /// has not grown above its threshold since, knows too little about the path, and may only raise the remembered
    /// threshold.
    pub(super) fn threshold_to_remember(&self, earlier: Option<u64>) -> Option<u64> {
        let steady = self.phase == Phase::Open && self.window > self.threshold;
        match (self.threshold, earlier) {
            (THRESHOLD_UNKNOWN, earlier) => earlier.map(|earlier| earlier.max(self.window / 2)),
            (threshold, _) if steady => Some(threshold.max(self.window / 2)),
            (threshold, earlier) => earlier.map(|earlier| earlier.max(threshold)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;
    const ROUND_TRIP: Duration = Duration::from_millis(100);

    fn acknowledge_rounds(congestion: &mut Congestion, rounds: u32, segments_per_ack: u64) {
        for _ in 0..rounds {
            let flight = congestion.window;
            for _ in 0..flight / (segments_per_ack * MSS) {
                congestion.grow(segments_per_ack * MSS, flight, Instant::ZERO, ROUND_TRIP);
            }
        }
    }

    #[test]
    fn slow_start_doubles_with_bytes_and_grows_by_half_per_delayed_acknowledgement() {
        let mut bytes = Congestion::new(&Profile::linux_6(), MSS);
        acknowledge_rounds(&mut bytes, 3, 2);
        assert_eq!(bytes.window, 80 * MSS);
        let mut each = Congestion::new(&Profile { initial_window_segments: 10, ..Profile::ns3_2010() }, MSS);
        acknowledge_rounds(&mut each, 2, 2);
        assert_eq!(each.window, 22 * MSS);
    }

    #[test]
    fn linux_counts_the_acknowledgements_of_a_window_and_one_more() {
        let mut congestion = Congestion::new(&Profile::linux_2_4(), MSS);
        (congestion.window, congestion.threshold) = (10 * MSS, 10 * MSS);
        congestion.grow(MSS, 10 * MSS, Instant::ZERO, ROUND_TRIP);
        assert_eq!(congestion.window, 11 * MSS, "slow start goes on at the threshold");
        for _ in 0..11 {
            congestion.grow(2 * MSS, 11 * MSS, Instant::ZERO, ROUND_TRIP);
        }
        assert_eq!(congestion.window, 11 * MSS);
        congestion.grow(2 * MSS, 11 * MSS, Instant::ZERO, ROUND_TRIP);
        assert_eq!(congestion.window, 12 * MSS);
    }

    #[test]
    fn avoidance_adds_one_segment_a_round_trip() {
        let mut congestion = Congestion::new(&Profile::rfc5681(), MSS);
        congestion.enter_recovery(1, 20 * MSS);
        congestion.exit_recovery(0, true);
        assert_eq!((congestion.window, congestion.threshold), (10 * MSS, 10 * MSS));
        acknowledge_rounds(&mut congestion, 3, 1);
        assert_eq!(congestion.window, 13 * MSS);
    }

    #[test]
    fn a_second_timeout_of_the_same_data_keeps_the_threshold() {
        let mut congestion = Congestion::new(&Profile::rfc5681(), MSS);
        congestion.time_out(1, 20 * MSS, 0, true);
        congestion.time_out(1, MSS, 0, false);
        assert_eq!((congestion.window, congestion.threshold), (MSS, 10 * MSS));
    }

    #[test]
    fn rate_halving_and_proportional_reduction_end_at_half() {
        for reduction in [Reduction::RateHalving, Reduction::Proportional] {
            let profile = Profile { reduction, initial_window_segments: 20, ..Profile::linux_6() };
            let mut congestion = Congestion::new(&profile, MSS);
            congestion.enter_recovery(100, 20 * MSS);
            let (mut pipe, mut sent) = (19 * MSS, 0);
            for _ in 0..19 {
                pipe -= MSS;
                congestion.recovery_step(MSS, pipe, false, false);
                while pipe + MSS <= congestion.window {
                    pipe += MSS;
                    sent += 1;
                    congestion.note_sent(MSS);
                }
            }
            assert!((9..=11).contains(&sent), "{reduction:?} sent {sent} segments");
            congestion.exit_recovery(pipe, true);
            assert!((9 * MSS..=11 * MSS).contains(&congestion.window), "{reduction:?} {}", congestion.window);
        }
    }

    /// RFC 6937 3.1: with a window of 20 segments of which 4 survive a burst of losses, one segment arrives per
    /// acknowledgement and leaves the pipe.
    fn window_and_sent(bound: ReductionBound, advanced: bool, loss: bool) -> Vec<u64> {
        let profile = Profile { reduction_bound: bound, initial_window_segments: 20, ..Profile::linux_6() };
        let mut congestion = Congestion::new(&profile, MSS);
        congestion.enter_recovery(100, 20 * MSS);
        let mut pipe = 4 * MSS;
        let mut sent = Vec::new();
        for _ in 0..5 {
            pipe -= MSS;
            congestion.recovery_step(MSS, pipe, advanced, loss);
            let allowed = congestion.window - pipe;
            congestion.note_sent(allowed);
            pipe += allowed;
            sent.push(allowed / MSS);
        }
        sent
    }

    #[test]
    fn below_the_threshold_the_bound_decides_how_fast_the_pipe_fills() {
        use ReductionBound::{Conservative, SlowStart, SlowStartWithoutLoss};
        assert_eq!(window_and_sent(Conservative, true, false), [1; 5], "as much as arrives");
        assert_eq!(window_and_sent(SlowStart, false, true), [2; 5], "and one segment more");
        assert_eq!(window_and_sent(SlowStartWithoutLoss, true, false), [2; 5]);
        assert_eq!(window_and_sent(SlowStartWithoutLoss, true, true), [1; 5], "more is lost");
        assert_eq!(window_and_sent(SlowStartWithoutLoss, false, false), [1; 5], "nothing is repaired yet");
    }

    #[test]
    fn a_proportional_reduction_sends_half_of_what_arrives_and_stops_at_the_threshold() {
        let profile = Profile { initial_window_segments: 20, ..Profile::linux_6() };
        let mut congestion = Congestion::new(&profile, MSS);
        congestion.enter_recovery(100, 20 * MSS);
        // The three duplicates of the beginning have left the pipe; the fast retransmit goes out in any case.
        let (mut pipe, mut sent) = (17 * MSS, Vec::new());
        for _ in 0..10 {
            pipe -= MSS;
            congestion.recovery_step(MSS, pipe, false, false);
            let allowed = (congestion.window - pipe) / MSS * MSS;
            congestion.note_sent(allowed);
            pipe += allowed;
            sent.push(allowed / MSS);
        }
        assert_eq!(sent, [1, 0, 0, 1, 0, 1, 0, 1, 0, 1]);
        // Below the threshold of ten the window is held there, whatever arrives at once.
        congestion.recovery_step(8 * MSS, 4 * MSS, true, false);
        assert_eq!(congestion.window, 10 * MSS);
    }

    #[test]
    fn a_timeout_keeps_what_is_still_in_the_network() {
        let mut congestion = Congestion::new(&Profile::linux_6(), MSS);
        congestion.time_out(1, 10 * MSS, 4 * MSS, true);
        assert_eq!((congestion.window, congestion.threshold), (5 * MSS, 5 * MSS));
    }

    /// One round trip of acknowledgements at this time.
    fn round(congestion: &mut Congestion, now: Instant) -> u64 {
        for _ in 0..congestion.window / MSS {
            congestion.grow(MSS, congestion.window, now, ROUND_TRIP);
        }
        congestion.window / MSS
    }

    fn cubic_after_loss(window: u64, times_out: bool) -> Congestion {
        let profile = Profile { idle_restart: IdleRestart::Off, ..Profile::linux_6_cubic() };
        let mut congestion = Congestion::new(&profile, MSS);
        congestion.window = window * MSS;
        congestion.enter_recovery(1, window * MSS);
        if times_out {
            congestion.time_out(1, window * MSS, 0, true);
        }
        congestion.exit_recovery(0, true);
        congestion
    }

    #[test]
    fn cubic_forgets_its_maximum_at_a_timeout() {
        let far = Instant::from_secs(1000);
        for (times_out, expected) in [(false, 195..=200), (true, 160..=170)] {
            let mut congestion = cubic_after_loss(200, times_out);
            round(&mut congestion, far);
            let grown = (0..8).map(|_| round(&mut congestion, far + Duration::from_secs(4))).last();
            assert!(grown.is_some_and(|window| expected.contains(&window)), "{times_out}: {grown:?}");
        }
    }

    #[test]
    fn an_idle_period_does_not_make_cubic_grow() {
        let (far, idle) = (Instant::from_secs(1000), Duration::from_secs(600));
        let mut congestion = cubic_after_loss(20, false);
        let before = round(&mut congestion, far);
        congestion.restart(idle, Duration::from_secs(1));
        assert!(round(&mut congestion, far + idle) <= before + 1);
    }

    #[test]
    fn a_longer_round_trip_ends_slow_start_with_hystart() {
        let far = Instant::from_secs(1000);
        for (hystart, threshold) in [(true, 20 * MSS), (false, THRESHOLD_UNKNOWN)] {
            let profile = Profile { initial_window_segments: 20, hystart, ..Profile::linux_6_cubic() };
            let mut congestion = Congestion::new(&profile, MSS);
            congestion.note_round_trip(far, ROUND_TRIP, 1, 100);
            for sample in 0..10 {
                let now = far + Duration::from_millis(200 + 10 * sample);
                congestion.note_round_trip(now, ROUND_TRIP * 6 / 5, 101 + sample, 200);
            }
            assert_eq!(congestion.threshold, threshold);
        }
    }

    #[test]
    fn thresholds_of_linux_are_whole_segments() {
        for (whole_segments, threshold) in [(true, 3 * MSS), (false, 3_850)] {
            let profile = Profile { whole_segments, ..Profile::linux_6_cubic() };
            let mut congestion = Congestion::new(&profile, MSS);
            congestion.window = 5_500;
            congestion.enter_recovery(1, 5_500);
            assert_eq!(congestion.threshold, threshold);
        }
    }

    #[test]
    fn cubic_keeps_seven_tenths_and_reno_half() {
        for (profile, kept) in [(Profile::linux_6(), 10), (Profile::linux_6_cubic(), 14)] {
            let profile = Profile { initial_window_segments: 20, ..profile };
            let mut congestion = Congestion::new(&profile, MSS);
            congestion.enter_recovery(1, 20 * MSS);
            congestion.exit_recovery(0, true);
            assert_eq!((congestion.window, congestion.threshold), (kept * MSS, kept * MSS));
        }
    }

    #[test]
    fn only_steady_growth_takes_down_what_is_remembered() {
        let mut congestion = Congestion::new(&Profile::linux_6(), MSS);
        let remembered = |congestion: &Congestion| {
            [None, Some(8), Some(90)].map(|earlier| {
                congestion.threshold_to_remember(earlier.map(|earlier| earlier * MSS)).map(|it| it / MSS)
            })
        };
        assert_eq!(remembered(&congestion), [None, Some(8), Some(90)], "nothing was lost");
        (congestion.window, congestion.threshold) = (10 * MSS, 20 * MSS);
        assert_eq!(remembered(&congestion), [None, Some(20), Some(90)], "it has not grown back");
        congestion.window = 50 * MSS;
        assert_eq!(remembered(&congestion), [Some(25); 3], "steady");
        congestion.enter_recovery(1, 50 * MSS);
        (congestion.window, congestion.threshold) = (50 * MSS, 20 * MSS);
        assert_eq!(remembered(&congestion), [None, Some(20), Some(90)], "it repairs a loss");
    }

    #[test]
    fn idleness_costs_what_the_profile_says() {
        for (idle_restart, expected) in
            [(IdleRestart::Off, 80), (IdleRestart::Rfc5681, 10), (IdleRestart::Halving, 20)]
        {
            let profile = Profile { idle_restart, ..Profile::linux_6() };
            let mut congestion = Congestion::new(&profile, MSS);
            congestion.window = 80 * MSS;
            congestion.restart(Duration::from_secs(5), Duration::from_secs(2));
            assert_eq!(congestion.window, expected * MSS, "{idle_restart:?}");
        }
    }
}
