//! CUBIC congestion avoidance (RFC 9438), and HyStart, with which Linux ends slow start before a loss.
//!
//! Windows are in bytes outside and in segments inside, as in RFC 9438. `C` is 0.4 and the decrease factor 0.7 (RFC 9438
//! 4.6, 5). The window follows the larger of the cubic function and the estimate of Reno's window, with fast convergence
//! (4.7). After a timeout the function starts at the window with which congestion avoidance begins (4.8). Idle periods do
//! not count as time (4.2, 5.8). HyStart has the rules of Linux: windows of 16 segments and more; eight samples per round
//! trip for the growth of the delay, which must exceed an eighth of the shortest, from 4 to 16 ms; and trains of
//! acknowledgements 2 ms apart that last for half of the shortest round trip.

use crate::time::{Duration, Instant};

/// Segments per second cubed (RFC 9438 5).
const C: f64 = 0.4;
/// Share of the window that remains after a loss (RFC 9438 4.6).
const BETA: f64 = 0.7;
/// Increase of the estimate of Reno's window per round trip, segments (RFC 9438 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Largest target per round trip, as a multiple of the window (RFC 9438 4.2).
const TARGET_MAX: f64 = 1.5;

/// HyStart: smallest window, segments; samples per round trip; limits of the tolerated delay; gap within a train.
const HYSTART_SEGMENTS: u64 = 16;
const HYSTART_SAMPLES: u32 = 8;
const HYSTART_DELAY: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
const HYSTART_GAP: Duration = Duration::from_millis(2);

/// Stage of congestion avoidance between two losses.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds until the window is `plateau` (K), and the window there.
    seconds_to_plateau: f64,
    plateau: f64,
    /// Estimate of the window that Reno would have (W_est).
    estimate: f64,
}

/// State of CUBIC.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    segment: f64,
    /// Window before the last loss, less with fast convergence (W_max); zero before the first loss and after a timeout.
    highest: f64,
    /// Window before the last loss (cwnd_prior).
    prior: f64,
    /// Part of a byte by which the window is larger.
    fraction: f64,
    epoch: Option<Epoch>,
}

impl Cubic {
    pub(super) fn new(segment: u64) -> Self {
        Cubic { segment: segment as f64, highest: 0.0, prior: 0.0, fraction: 0.0, epoch: None }
    }

    /// Returns the slow-start threshold after a loss with this window, bytes (RFC 9438 4.6, 4.7).
    pub(super) fn reduce(&mut self, window: u64) -> u64 {
        let segments = window as f64 / self.segment;
        let converges = segments < self.highest;
        self.highest = if converges { segments * (1.0 + BETA) / 2.0 } else { segments };
        self.prior = segments;
        self.fraction = 0.0;
        self.epoch = None;
        window * 7 / 10
    }

    /// Starts again after a timeout: the function has no earlier maximum (RFC 9438 4.8).
    pub(super) fn time_out(&mut self) {
        self.highest = 0.0;
        self.epoch = None;
    }

    /// Excludes an idle period from the time since the last loss (RFC 9438 5.8).
    pub(super) fn skip(&mut self, idle: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }

    /// Returns the window after an acknowledgement in congestion avoidance (RFC 9438 4.2 to 4.5).
    pub(super) fn grow(&mut self, window: u64, acknowledged: u64, now: Instant, round_trip: Duration) -> u64 {
        let segments = (window as f64 + self.fraction) / self.segment;
        let share = acknowledged as f64 / window as f64;
        let (highest, prior) = (self.highest, self.prior);
        let epoch = self.epoch.get_or_insert_with(|| {
            let below = (highest - segments).max(0.0);
            Epoch {
                start: now,
                seconds_to_plateau: libm::cbrt(below / C),
                plateau: highest.max(segments),
                estimate: segments,
            }
        });
        let alpha = if epoch.estimate >= prior { 1.0 } else { ALPHA };
        epoch.estimate += alpha * share;
        let elapsed = now.saturating_since(epoch.start);
        let segments = if epoch.at(elapsed) < epoch.estimate {
            segments.max(epoch.estimate)
        } else {
            let target = epoch.at(elapsed + round_trip).clamp(segments, TARGET_MAX * segments);
            segments + (target - segments) * share
        };
        let bytes = segments * self.segment;
        self.fraction = bytes.fract();
        bytes as u64
    }
}

impl Epoch {
    /// Returns the cubic function (RFC 9438 4.2, figure 1).
    fn at(&self, elapsed: Duration) -> f64 {
        let distance = elapsed.as_secs_f64() - self.seconds_to_plateau;
        C * distance * distance * distance + self.plateau
    }
}

/// State of HyStart.
#[derive(Clone, Debug, Default)]
pub(super) struct Hystart {
    shortest: Option<Duration>,
    /// Offset that ends this round trip, its begin, its shortest sample, and the number of its samples.
    round_ends: u64,
    round_began: Instant,
    round_shortest: Option<Duration>,
    samples: u32,
    /// Last acknowledgement of the train.
    last: Instant,
}

impl Hystart {
    /// Processes a round-trip sample of an acknowledgement up to `acknowledged` in slow start; `sent` is the end of the
    /// data sent. Returns true if slow start ends.
    pub(super) fn ends_slow_start(
        &mut self,
        now: Instant,
        measured: Duration,
        (acknowledged, sent): (u64, u64),
        window_segments: u64,
    ) -> bool {
        let shortest = self.shortest.map_or(measured, |shortest| shortest.min(measured));
        self.shortest = Some(shortest);
        if acknowledged > self.round_ends {
            (self.round_ends, self.round_began, self.last) = (sent, now, now);
            (self.round_shortest, self.samples) = (None, 0);
        }
        if window_segments < HYSTART_SEGMENTS {
            return false;
        }
        let in_train = now.saturating_since(self.last) <= HYSTART_GAP;
        if in_train {
            self.last = now;
        }
        let long_train = in_train && now.saturating_since(self.round_began) > shortest / 2;
        let round_shortest = self.round_shortest.map_or(measured, |earlier| earlier.min(measured));
        self.round_shortest = Some(round_shortest);
        self.samples += 1;
        let tolerated = (shortest / 8).clamp(HYSTART_DELAY.0, HYSTART_DELAY.1);
        long_train || self.samples > HYSTART_SAMPLES && round_shortest > shortest + tolerated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;

    /// Windows in segments at the end of each of these round trips of 100 ms, with an acknowledgement per segment.
    fn rounds(cubic: &mut Cubic, window: &mut u64, count: u64, round_trip: Duration, first: u64) -> Vec<u64> {
        let mut windows = Vec::new();
        for round in first..first + count {
            let segments = *window / SEGMENT;
            for segment in 0..segments {
                let part = round_trip * segment as u32 / segments as u32;
                let now = Instant::ZERO + round_trip * round as u32 + part;
                *window = cubic.grow(*window, SEGMENT, now, round_trip);
            }
            windows.push(*window / SEGMENT);
        }
        windows
    }

    /// RFC 9438 4.2: from 700 segments it takes K = cbrt(300 / 0.4) = 9.09 s to be back at 1000; the growth is concave
    /// before and convex after.
    #[test]
    fn the_window_is_back_at_its_maximum_after_k_seconds() {
        let mut cubic = Cubic::new(SEGMENT);
        let mut window = cubic.reduce(1000 * SEGMENT);
        assert_eq!(window, 700 * SEGMENT);
        let windows = rounds(&mut cubic, &mut window, 150, Duration::from_millis(100), 0);
        assert!((998..=1000).contains(&windows[89]), "at K: {}", windows[89]);
        let growth = |at: usize| windows[at + 10] - windows[at];
        assert!(growth(10) > growth(40) && growth(40) > growth(70), "concave: {windows:?}");
        assert!(growth(135) > growth(115) && growth(115) > growth(90), "convex: {windows:?}");
        // C (t - K)^3 + W_max one round trip later, at 15 s.
        assert!((1081..=1088).contains(&windows[149]), "{}", windows[149]);
    }

    /// RFC 9438 4.7: a second loss below the maximum of the first leaves room for others.
    #[test]
    fn a_loss_below_the_last_maximum_lowers_it_further() {
        let mut cubic = Cubic::new(SEGMENT);
        cubic.reduce(1000 * SEGMENT);
        cubic.reduce(800 * SEGMENT);
        assert_eq!((cubic.highest, cubic.prior), (800.0 * 0.85, 800.0));
        cubic.reduce(900 * SEGMENT);
        assert_eq!(cubic.highest, 900.0, "it has grown beyond");
    }

    /// RFC 9438 4.3: in short round trips with small windows Reno is faster: 0.53 segments per round trip until the window
    /// before the loss is reached, then one.
    #[test]
    fn where_reno_is_faster_the_window_is_that_of_reno() {
        let mut cubic = Cubic::new(SEGMENT);
        let mut window = cubic.reduce(20 * SEGMENT);
        let windows = rounds(&mut cubic, &mut window, 40, Duration::from_millis(5), 0);
        // 14 and ten times 0.53; the cubic function is still at 14.8.
        assert!((18..=19).contains(&windows[9]), "{windows:?}");
        let late = windows[39] - windows[29];
        assert!((9..=10).contains(&late), "one segment per round trip: {windows:?}");
    }

    /// RFC 9438 4.8: the function starts at the window with which congestion avoidance begins.
    #[test]
    fn after_a_timeout_growth_is_convex_from_the_start() {
        let mut cubic = Cubic::new(SEGMENT);
        let mut window = cubic.reduce(1000 * SEGMENT);
        cubic.time_out();
        let windows = rounds(&mut cubic, &mut window, 6, Duration::from_secs(1), 0);
        // 0.4 (t^3 + 3 t - 2 + 2 exp(-t)) above 700 segments: the target one round trip ahead, approached within it.
        let expected: [u64; 6] = [700, 704, 713, 729, 754, 791];
        assert!(windows.iter().zip(expected).all(|(window, at)| *window == at), "{windows:?}");
    }

    #[test]
    fn growth_does_not_depend_on_the_size_of_the_pieces() {
        let grown = |pieces: u64| {
            let mut cubic = Cubic::new(SEGMENT);
            let mut window = cubic.reduce(1000 * SEGMENT);
            let start = Instant::from_secs(1);
            window = cubic.grow(window, 1, start, Duration::ZERO);
            for _ in 0..pieces {
                let now = start + Duration::from_secs(1);
                window = cubic.grow(window, 10 * SEGMENT / pieces, now, Duration::ZERO);
            }
            window
        };
        assert!(grown(1) > 700 * SEGMENT + 500, "{}", grown(1));
        assert!(grown(1).abs_diff(grown(10_000)) <= 20, "{} and {}", grown(1), grown(10_000));
    }

    /// RFC 9438 5.8: a minute without data does not count.
    #[test]
    fn an_idle_period_does_not_count() {
        let mut cubic = Cubic::new(SEGMENT);
        let mut window = cubic.reduce(100 * SEGMENT);
        rounds(&mut cubic, &mut window, 10, Duration::from_millis(100), 0);
        let before = window;
        cubic.skip(Duration::from_secs(60));
        let windows = rounds(&mut cubic, &mut window, 1, Duration::from_millis(100), 610);
        assert!(windows[0] <= before / SEGMENT + 3, "{windows:?} after {before}");
    }

    /// RFC 9438 4.2: at most half of the window per round trip.
    #[test]
    fn growth_is_limited_to_half_of_the_window_in_a_round_trip() {
        let mut cubic = Cubic::new(SEGMENT);
        let mut window = cubic.reduce(10 * SEGMENT);
        rounds(&mut cubic, &mut window, 1, Duration::from_millis(100), 0);
        let before = window;
        let windows = rounds(&mut cubic, &mut window, 1, Duration::from_millis(100), 1000);
        assert!(windows[0] <= before * 17 / 10 / SEGMENT, "{windows:?} from {before}");
    }

    /// Offers samples of one round trip, `gap` apart; returns the number of the sample that ends slow start.
    fn hystart(measured: Duration, gap: Duration, window_segments: u64) -> Option<u32> {
        let mut hystart = Hystart::default();
        let shortest = Duration::from_millis(100);
        assert!(!hystart.ends_slow_start(Instant::ZERO, shortest, (1, 100), window_segments));
        let start = Instant::from_secs(1);
        (0..60).find(|&sample| {
            let now = start + gap * sample;
            hystart.ends_slow_start(now, measured, (101 + u64::from(sample), 200), window_segments)
        })
    }

    #[test]
    fn slow_start_ends_with_a_longer_round_trip_or_a_long_train() {
        let (steady, longer) = (Duration::from_millis(100), Duration::from_millis(113));
        let (apart, train) = (Duration::from_millis(3), Duration::from_millis(1));
        assert_eq!(hystart(steady, apart, 100), None);
        assert_eq!(hystart(Duration::from_millis(112), apart, 100), None, "an eighth is tolerated");
        assert_eq!(hystart(longer, apart, 100), Some(8), "after eight samples");
        assert_eq!(hystart(steady, train, 100), Some(51), "half of the round trip");
        assert_eq!(hystart(longer, train, 15), None, "the window is small");
    }
}
