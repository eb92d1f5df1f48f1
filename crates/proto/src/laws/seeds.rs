//! Runs a world with many seeds.

use super::{RunDigest, SweepCounts};
use crate::wrap::{Timeline, TimelineWriter};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Seeds that broke a law once: `sweep seed`, and the reason.
const ONCE_FAILED: &str = include_str!("seeds.txt");

/// One run of a seed.
pub(crate) struct Replay {
    pub(crate) seed: u64,
    /// Timeline of the run, if it is recorded.
    timeline: Option<RefCell<Timeline>>,
}

impl Replay {
    /// Maximum number of lines of a timeline that are shown when a law is broken.
    const LINES_SHOWN: usize = 80;

    pub(crate) fn quiet(seed: u64) -> Self {
        Replay { seed, timeline: None }
    }

    fn told(seed: u64) -> Self {
        Replay { seed, timeline: Some(RefCell::new(Timeline::new())) }
    }

    /// Returns the writer of this run's timeline, if it is recorded.
    pub(crate) fn timeline_writer(&self) -> Option<TimelineWriter> {
        self.timeline.as_ref().map(|timeline| timeline.borrow().timeline_writer(""))
    }

    /// Returns the end of the timeline.
    fn tail(&self) -> String {
        let Some(timeline) = &self.timeline else { return String::new() };
        let lines = timeline.borrow_mut().lines();
        let shown = variable("LONGWIRE_LINES").map_or(Self::LINES_SHOWN, |lines| lines as usize);
        let shown = &lines[lines.len().saturating_sub(shown)..];
        shown.join("\n")
    }
}

/// Runs `world` with `count` seeds from `first` on, after those that failed once; every sixteenth twice, to check that
/// the same seed gives the same trace. A broken law is reported with the seed and the end of the timeline. Prints and
/// returns the counts of all runs, with those that repeat a seed.
pub(crate) fn sweep(name: &str, first: u64, count: u64, world: impl Fn(&Replay) -> RunDigest) -> SweepCounts {
    let seeds: Vec<(u64, bool)> = match variable("LONGWIRE_SEED") {
        Some(seed) => vec![(seed, true)],
        None => {
            let count = variable("LONGWIRE_SEEDS").unwrap_or(count);
            once_failed(name).map(|seed| (seed, true)).chain(one_after_the_other(first, count)).collect()
        }
    };
    let counts = try_seeds(name, seeds, world);
    println!("{name}: {counts}");
    counts
}

/// Returns seeds, and whether each is run twice.
fn one_after_the_other(first: u64, count: u64) -> impl Iterator<Item = (u64, bool)> {
    (first..first + count).map(|seed| (seed, seed % 16 == 0))
}

fn try_seeds(
    name: &str,
    seeds: impl IntoIterator<Item = (u64, bool)>,
    world: impl Fn(&Replay) -> RunDigest,
) -> SweepCounts {
    let mut counts = SweepCounts::default();
    for (seed, twice) in seeds {
        counts += try_seed(name, seed, twice, &world);
    }
    counts
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

fn once_failed(name: &str) -> impl Iterator<Item = u64> {
    ONCE_FAILED.lines().filter_map(move |line| {
        let mut words = line.split_whitespace();
        let seed = (words.next() == Some(name)).then(|| words.next().and_then(|seed| seed.parse().ok()));
        seed.map(|seed| seed.unwrap_or_else(|| panic!("seeds.txt: no seed in {line:?}")))
    })
}

fn try_seed(name: &str, seed: u64, twice: bool, world: &impl Fn(&Replay) -> RunDigest) -> SweepCounts {
    let once = |replay: &Replay| catch_unwind(AssertUnwindSafe(|| world(replay)));
    let trace = match once(&Replay::quiet(seed)) {
        Ok(trace) => trace,
        Err(panic) => {
            let told = Replay::told(seed);
            let same = once(&told).is_err();
            eprintln!("{}", told.tail());
            eprintln!(
                "a law is broken: {name}, LONGWIRE_SEED={seed}{}",
                if same { "" } else { ", but not twice" }
            );
            resume_unwind(panic);
        }
    };
    let mut counts = trace.counts;
    if twice {
        let again = world(&Replay::quiet(seed));
        assert_eq!(trace, again, "the same seed gave another trace: {name}, LONGWIRE_SEED={seed}");
        counts += again.counts;
    }
    counts
}

/// Runs seeds until a law is broken, and checks that it is the expected one: a test that cannot fail proves nothing.
#[cfg(test)]
pub(crate) fn catches(flaw: &str, law: &str, world: impl Fn(&Replay) -> RunDigest) {
    let Some((seed, message)) = broken(&world).next() else { panic!("{flaw} was not found") };
    assert!(message.contains(law), "{flaw} was found for another reason, seed {seed}: {message}");
}

/// As [`catches`], for a flaw that breaks several laws: this one must be among them.
#[cfg(test)]
pub(crate) fn catches_also(flaw: &str, law: &str, world: impl Fn(&Replay) -> RunDigest) {
    let found = broken(&world).any(|(_, message)| message.contains(law));
    assert!(found, "{flaw} was not found by: {law}");
}

/// Returns the seeds that break a law, with the messages.
#[cfg(test)]
fn broken(world: &impl Fn(&Replay) -> RunDigest) -> impl Iterator<Item = (u64, String)> {
    (0..300).filter_map(move |seed| {
        let once = || world(&Replay::quiet(seed));
        let run = || assert_eq!(once(), once(), "the same seed gave another trace");
        let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Some((seed, message.expect("a panic has a message")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    /// The documentation of the laws says how many runs there are.
    #[test]
    fn repeated_seeds_count_as_runs() {
        let counts = SweepCounts { runs: 1, sent: 2, faults: 3, timeouts: 4 };
        let digest = RunDigest { hash: 1, crossings: 1, settled_at: Instant::ZERO, counts };
        let counts = try_seeds("counted", one_after_the_other(0, 300), |_| digest);
        assert_eq!(counts.to_string(), "319 runs, 638 sent, 957 faults, 1276 timeouts");
    }
}
