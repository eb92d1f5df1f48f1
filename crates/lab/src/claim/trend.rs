//! Trend of a metric along a parameter, distinguished from noise.
//!
//! **The criterion** is the same for every claim and was fixed before its numbers. The paper describes curves ("total
//! file transfer time increases along with the disruption time") rather than single steps, so a claim holds if nothing
//! contradicts it and the curves as a whole support it:
//!
//! 1. no single step from one point of a curve to the next contradicts it significantly, at a level of 5 % over *all*
//!    steps together (each is tested at 5 % divided by their number);
//! 2. no curve contradicts it significantly at 5 % from its first to its last point;
//! 3. most curves support it significantly from end to end, so that noise alone cannot pass.
//!
//! Differences are between the same runs and use Student's t. A step with runs that are all equal to the nanosecond is
//! counted separately: it is not noise, the protocols wait for the same timer.

use crate::bench::{Played, Trial};
use crate::stats::{FittedLine, Summary};

const LEVEL: f64 = 0.95;

/// The criterion, for a page.
pub const CRITERION: &str = "The criterion for rising and falling curves was fixed before the figures were known. No \
                             single step may go significantly the other way (paired runs, Student's t, 5 % shared \
                             by all steps), no curve may do so from end to end (5 %), and most curves must go the \
                             stated way significantly from end to end. All counts are shown.";

/// Numbers of differences by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TrendCounts {
    /// Differences in the claimed direction, with zero outside the interval.
    along: usize,
    /// Differences with zero inside the interval.
    noise: usize,
    /// Differences with equal values in all runs.
    equal: usize,
    /// Differences against the claim, with zero outside the interval.
    against: usize,
}

impl TrendCounts {
    fn total(&self) -> usize {
        self.along + self.noise + self.equal + self.against
    }

    fn add(&mut self, difference: &Summary, share: f64) {
        let half = difference.half_width(share).unwrap_or(f64::INFINITY);
        match difference.mean {
            _ if difference.min == 0.0 && difference.max == 0.0 => self.equal += 1,
            mean if mean - half > 0.0 => self.along += 1,
            mean if mean + half < 0.0 => self.against += 1,
            _ => self.noise += 1,
        }
    }
}

/// Trend of a metric over its curves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trend {
    /// Single steps between neighbouring points.
    steps: TrendCounts,
    /// Single steps that contradict the claim when all of them share the level.
    steps_against_corrected: usize,
    /// Differences from the first to the last point of each curve.
    ends: TrendCounts,
    /// Lines through all points of a curve, run by run.
    lines: TrendCounts,
    /// True if a point has one run, so that noise cannot be estimated.
    single: bool,
}

impl Trend {
    /// Computes the trend of a metric along a parameter, with one curve for each combination of values of the other
    /// parameters; `sign` is 1 for a claimed rise and -1 for a claimed fall.
    pub fn of<T: Trial>(
        points: &[&Played<T>],
        along: &str,
        others: [&str; 2],
        metric: &str,
        sign: f64,
    ) -> Trend {
        let place = |played: &Played<T>| others.map(|other| played.param(other));
        let mut trend = Trend::default();
        let mut steps = Vec::new();
        let mut places: Vec<[f64; 2]> = points.iter().map(|played| place(played)).collect();
        places.sort_by(|a, b| a.partial_cmp(b).expect("parameters are numbers"));
        places.dedup();
        for at in places {
            let mut curve: Vec<&Played<T>> =
                points.iter().copied().filter(|played| place(played) == at).collect();
            curve.sort_by(|a, b| a.param(along).total_cmp(&b.param(along)));
            let [first, .., last] = curve[..] else { continue };
            trend.single |= curve.iter().any(|played| played.runs.len() < 2);
            steps.extend(curve.windows(2).filter_map(|pair| difference(pair[0], pair[1], metric, sign)));
            for (counts, change) in [
                (&mut trend.ends, difference(first, last, metric, sign)),
                (&mut trend.lines, line(&curve, along, metric, sign)),
            ] {
                change.into_iter().for_each(|change| counts.add(&change, LEVEL));
            }
        }
        let mut corrected = TrendCounts::default();
        let share = 1.0 - (1.0 - LEVEL) / steps.len().max(1) as f64;
        for step in &steps {
            trend.steps.add(step, LEVEL);
            corrected.add(step, share);
        }
        trend.steps_against_corrected = corrected.against;
        trend
    }

    /// Returns true if the claim holds; `None` with too few runs to judge.
    pub fn holds(&self) -> Option<bool> {
        let most_grow = self.ends.along * 2 > self.ends.total();
        (!self.single).then_some(self.steps_against_corrected == 0 && self.ends.against == 0 && most_grow)
    }

    /// Describes all counts; `way` and `against` are words such as "grow" and "fall".
    pub fn words(&self, way: &str, against: &str) -> String {
        let words = |counts: &TrendCounts| {
            let equal =
                if counts.equal > 0 { format!(", {} exactly equal", counts.equal) } else { String::new() };
            format!(
                "{} {way}, {} not significant{equal}, {} {against}",
                counts.along, counts.noise, counts.against
            )
        };
        if self.single {
            return "one run per point: too few to judge".into();
        }
        format!(
            "{} curves from end to end: {}; lines through all their points: {}; {} single steps: {} ({} {against} when \
             the level is shared by all steps)",
            self.ends.total(),
            words(&self.ends),
            words(&self.lines),
            self.steps.total(),
            words(&self.steps),
            self.steps_against_corrected,
        )
    }
}

/// Returns the change of a metric between two points, over the same runs; `None` if no run has both.
fn difference<T: Trial>(from: &Played<T>, to: &Played<T>, metric: &str, sign: f64) -> Option<Summary> {
    let (later, earlier) = to.pairs(from, metric);
    let changes: Vec<f64> = later.iter().zip(&earlier).map(|(a, b)| (a - b) * sign).collect();
    (!changes.is_empty()).then(|| Summary::of(&changes))
}

/// Returns the slopes of the lines through the points of a curve, run by run, of the runs that all points have.
pub fn slopes<T: Trial>(curve: &[&Played<T>], along: &str, metric: &str) -> Vec<f64> {
    let value = T::metric(metric).value;
    let runs = curve.iter().map(|played| played.runs.len()).min().unwrap_or(0);
    let slope = |run: usize| {
        let at = |played: &&Played<T>| Some((played.param(along), value(&played.runs[run].1)?));
        let line: Option<Vec<(f64, f64)>> = curve.iter().map(at).collect();
        Some(FittedLine::fit(&line?)?.slope)
    };
    (0..runs).filter_map(slope).collect()
}

fn line<T: Trial>(curve: &[&Played<T>], along: &str, metric: &str, sign: f64) -> Option<Summary> {
    let slopes: Vec<f64> = slopes(curve, along, metric).iter().map(|slope| slope * sign).collect();
    (!slopes.is_empty()).then(|| Summary::of(&slopes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(differences: &[&[f64]]) -> TrendCounts {
        let mut counts = TrendCounts::default();
        differences.iter().for_each(|runs| counts.add(&Summary::of(runs), LEVEL));
        counts
    }

    #[test]
    fn noise_equality_and_both_ways_are_told_apart() {
        let counts =
            counted(&[&[1.0, 1.1, 0.9], &[-1.0, 1.0, 0.1], &[0.0; 3], &[-1.0, -1.1, -0.9], &[2.0; 3]]);
        assert_eq!(counts, TrendCounts { along: 2, noise: 1, equal: 1, against: 1 });
        assert_eq!(counts.total(), 5);
    }

    #[test]
    fn a_wider_level_takes_a_doubtful_fall_for_noise() {
        let fall = Summary::of(&[-1.0, -3.0, -2.0, -0.2]);
        let (mut single, mut shared) = (TrendCounts::default(), TrendCounts::default());
        single.add(&fall, 0.90);
        shared.add(&fall, 1.0 - 0.05 / 108.0);
        assert_eq!((single.against, shared.noise), (1, 1));
    }

    #[test]
    fn a_claim_falls_with_one_significant_step_and_with_curves_that_say_nothing() {
        let ends = TrendCounts { along: 20, noise: 7, ..TrendCounts::default() };
        let good = Trend { ends, ..Trend::default() };
        assert_eq!(good.holds(), Some(true));
        assert_eq!(Trend { steps_against_corrected: 1, ..good }.holds(), Some(false));
        let against = TrendCounts { against: 1, ..ends };
        assert_eq!(Trend { ends: against, ..good }.holds(), Some(false));
        let silent = TrendCounts { along: 1, noise: 26, ..TrendCounts::default() };
        assert_eq!(Trend { ends: silent, ..good }.holds(), Some(false), "noise alone does not pass");
        assert_eq!(Trend { single: true, ..good }.holds(), None);
    }
}
