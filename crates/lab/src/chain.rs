//! Runs of a chain as trials: their metrics, what the channels allow them, and their use of time.

mod map;
mod page;

pub use page::shown;

use crate::bench::{Case, Metric, Run, Trial};
use crate::error::Error;
use crate::finding::Trace;
use crate::format::{figure, with_error};
use crate::ledger;
use crate::limit::Bound;
use crate::record::{Params, distinct};
use crate::report::{Bar, LedgerChart, LedgerShare};
use crate::run::{Outcome, RETRANSMISSIONS, Setup, TIMEOUTS, Wanted};
use crate::scenario::GridPoint;
use crate::stats::{self, Summary};
use std::path::Path;

type Played = crate::bench::Played<Chain>;

/// Scenario of a chain, ready to run.
#[derive(Clone)]
pub struct Chain {
    /// Scenario.
    pub setup: Setup,
    /// Additional results to collect in each run.
    pub wanted: Wanted,
}

impl Chain {
    /// Creates a case with this number of runs.
    pub fn case(name: impl Into<String>, params: Params, setup: Setup, runs: u32) -> Case<Chain> {
        let seed = setup.scenario.seed;
        Case::new(name, params, Chain { setup, wanted: Wanted::default() }, seed, runs)
    }

    /// Creates the cases of a scenario's points; paths are relative to `base`.
    ///
    /// # Errors
    /// Returns the errors of [`Setup::new`].
    pub fn cases(points: impl Iterator<Item = GridPoint>, base: &Path) -> Result<Vec<Case<Chain>>, Error> {
        let mut cases: Vec<Case<Chain>> = Vec::new();
        for GridPoint { params, scenario, .. } in points {
            let (name, runs) = (scenario.protocol.clone(), scenario.runs);
            // Points with the same workload share its files.
            let before = cases.last().map(|case| &case.trial.setup).filter(|before| {
                let (ours, theirs) = (&scenario, &before.scenario);
                (&ours.workload, ours.seed) == (&theirs.workload, theirs.seed)
            });
            let setup = match before.map(|before| before.files.clone()) {
                Some(files) => Setup::with_files(scenario, base, files)?,
                None => Setup::new(scenario, base)?,
            };
            cases.push(Chain::case(name, params, setup, runs));
        }
        Ok(cases)
    }

    /// Repeats the first run with its frames.
    pub fn trace(&self, name: &str) -> Trace {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
        let frames = self.setup.run(0, Wanted { frames: true, linger_s: 0.0 }).frames;
        Trace { name: name.chars().map(plain).collect(), frames }
    }
}

impl Trial for Chain {
    type Outcome = Outcome;

    const METRICS: &'static [Metric<Outcome>] = &[
        Metric::new("transfer_s", "s", |outcome: &Outcome| outcome.transfer_s).with_limit(limit_s),
        Metric::new("goodput_byte_per_s", "byte/s", |outcome: &Outcome| Some(outcome.goodput()))
            .with_limit(goodput_limit),
        Metric::new("last_hop_s", "s", Outcome::last_hop_s),
        Metric::new("last_hop_goodput_byte_per_s", "byte/s", |outcome| Some(outcome.last_hop_goodput())),
        Metric::new("goodput_with_keepalives_byte_per_s", "byte/s", |outcome| {
            Some(outcome.goodput_with_keepalives()).filter(|_| outcome.lingered)
        }),
        Metric::new("delivered", "share of runs", |outcome| Some(f64::from(u8::from(outcome.delivered)))),
        Metric::new("error_free_s", "s", |outcome| Some(outcome.bound().error_free_s)),
        Metric::new("limit_s", "s", |outcome| Some(outcome.bound().mean_s)),
        Metric::new("limit_streaming_s", "s", |outcome| Some(outcome.limit.streaming.mean_s)),
        Metric::new("retransmissions", "segments", |outcome| Some(tcp_count(outcome, RETRANSMISSIONS))),
        Metric::new("timeouts", "timeouts", |outcome| Some(tcp_count(outcome, TIMEOUTS))),
        Metric::new("damaged_frames", "frames", |outcome| {
            Some(outcome.hops.iter().map(|hop| hop.damaged_frames as f64).sum())
        }),
        Metric::new("channel_bytes", "byte", |outcome| {
            Some(outcome.hops.iter().map(|hop| hop.channel_bytes as f64).sum())
        }),
        Metric::new("acknowledged_again_bytes", "byte", |outcome| {
            Some(outcome.hops.iter().map(|hop| hop.acknowledged_again_bytes as f64).sum())
        }),
        Metric::new("overlap_bytes", "byte", |outcome| {
            Some(outcome.hops.iter().map(|hop| hop.seen.overlap_bytes as f64).sum())
        }),
        Metric::new("events", "events", |outcome| Some(outcome.events as f64)),
    ];

    fn play(&self, run: Run) -> Outcome {
        self.setup.play(run, self.wanted)
    }
}

fn tcp_count(outcome: &Outcome, name: &str) -> f64 {
    outcome.observed.sum("tcp").get(name).copied().unwrap_or(0) as f64
}

/// Ideal time for these runs, seconds: a single run is compared with the time without errors, the mean of several runs
/// with the mean time including errors.
///
/// # Panics
/// Panics without a run.
pub fn limit_s(outcomes: &[&Outcome]) -> f64 {
    let whole = outcomes.iter().all(|outcome| outcome.is_stored_whole());
    ideal_s(outcomes, |outcome| match whole {
        true => outcome.limit.store_and_forward,
        false => outcome.limit.streaming,
    })
}

/// The same with every packet forwarded as it arrives, whatever these runs did, seconds.
///
/// # Panics
/// Panics without a run.
pub fn streaming_s(outcomes: &[&Outcome]) -> f64 {
    ideal_s(outcomes, |outcome| outcome.limit.streaming)
}

fn ideal_s(outcomes: &[&Outcome], bound: impl Fn(&Outcome) -> Bound) -> f64 {
    match outcomes {
        [single] => bound(single).error_free_s,
        many => stats::mean(many.iter().map(|outcome| bound(outcome).mean_s)),
    }
}

/// Ideal goodput for these runs, byte/s: without errors, because the mean of quotients has no other bound.
fn goodput_limit(outcomes: &[&Outcome]) -> f64 {
    let most = |outcome: &&Outcome| outcome.file_bytes as f64 / outcome.bound().error_free_s;
    stats::mean(outcomes.iter().map(most))
}

/// Explains why completed runs were faster on average than the ideal time, by more than their interval; `None` if they
/// were not. No protocol can be so fast permanently: such runs are too few, or selected by their errors.
pub fn beyond_limit(outcomes: &[&Outcome]) -> Option<String> {
    let arrived: Vec<&Outcome> = outcomes.iter().copied().filter(|outcome| outcome.delivered).collect();
    let times = Chain::metric("transfer_s").samples(&arrived);
    if times.len() < 2 {
        return None;
    }
    let (time, limit_s) = (Summary::of(&times), limit_s(&arrived));
    let (_, most_s) = time.interval();
    let missing = outcomes.len() - arrived.len();
    // Equal times are summed in a different order for the limit.
    (most_s < limit_s * (1.0 - 1e-9)).then(|| {
        let why = match missing {
            0 => format!("its {} runs had fewer errors than expected", times.len()),
            _ => format!(
                "{missing} of its {} runs did not complete and are not counted; the others had fewer errors",
                outcomes.len()
            ),
        };
        format!("{} s is below the mean ideal time of {} s: {why}", with_error(&time), figure(limit_s))
    })
}

/// Reasons why runs did not deliver, each once; empty if all runs delivered.
pub fn why_missed(outcomes: &[&Outcome]) -> String {
    let reasons = outcomes.iter().filter_map(|outcome| outcome.missed).map(|missed| missed.to_string());
    distinct(reasons).join("; ")
}

/// Means of the ledger of a hop over runs, towards the destination (0) or back (1), seconds.
pub fn mean_ledger(outcomes: &[&Outcome], hop: usize, way: usize) -> Vec<f64> {
    let entry = |index: usize| {
        let nanos = |outcome: &&Outcome| outcome.hops[hop].ledgers[way].nanos[index] as f64 / 1e9;
        stats::mean(outcomes.iter().map(nanos))
    };
    (0..ledger::ENTRIES.len()).map(entry).collect()
}

/// Creates an empty chart with the entries of the ledger as shares.
pub fn ledger_chart(title: &str, caption: &str) -> LedgerChart {
    let share = |(name, meaning, idle): &(&str, &str, bool)| LedgerShare::new(*name, *meaning, *idle);
    LedgerChart {
        title: title.to_owned(),
        caption: caption.to_owned(),
        unit: "s".to_owned(),
        shares: ledger::ENTRIES.iter().map(share).collect(),
        bars: Vec::new(),
    }
}

/// Creates a bar of the chart.
pub fn ledger_bar(name: &str, outcomes: &[&Outcome], hop: usize, way: usize, limit: Option<f64>) -> Bar {
    Bar { name: name.to_owned(), values: mean_ledger(outcomes, hop, way), limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn pairs_are_of_the_same_run_even_where_each_side_missed_another() {
        let scenario = Scenario::parse("protocol = 'tcp/tuned'\n[workload]\nbytes = 10", "test");
        let content = vec![bytes::Bytes::from_static(b"0123456789")];
        let setup = Setup::with_files(scenario.expect("a scenario"), Path::new("."), content);
        let setup = setup.expect("a setup");
        let played = |change: &dyn Fn(&mut Outcome)| -> Played {
            let case = Chain::case("tcp", Params::new(), setup.clone(), 4);
            let outcome = |run: Run| {
                let mut outcome = case.trial.play(run);
                change(&mut outcome);
                (run, outcome)
            };
            let runs = (0..4).map(|number| outcome(Run::new(case.seed, number))).collect();
            Played { case, runs }
        };
        let timed = |missed: u32| {
            move |outcome: &mut Outcome| {
                outcome.delivered = outcome.run != missed;
                outcome.transfer_s = outcome.delivered.then_some(f64::from(outcome.run));
            }
        };
        let (ours, theirs) = (played(&timed(1)), played(&timed(2)));
        assert_eq!(ours.samples("transfer_s").len(), theirs.samples("transfer_s").len());
        let both = vec![0.0, 3.0];
        assert_eq!(ours.pairs(&theirs, "transfer_s"), (both.clone(), both));
        // A run that is not a sample does not affect the limit either.
        let with_limit = |outcome: &mut Outcome| {
            timed(1)(outcome);
            let mean_s = if outcome.run == 1 { 1000.0 } else { 2.0 };
            outcome.limit.store_and_forward = Bound { error_free_s: 1.0, mean_s };
        };
        let all = played(&with_limit);
        let record = all.record("transfer_s").expect("three runs have it");
        assert_eq!((record.n, record.limit), (3, Some(2.0)));
        let last = Chain::metric("transfer_s").record("tcp", &Params::new(), &all.all()[3..]);
        let limit = last.expect("one run has it").limit;
        assert_eq!(limit, Some(1.0), "a single run is held against its time without errors");
        // Times of 0, 2 and 3 s have a wide interval; three times 1.5 s has none.
        assert_eq!(beyond_limit(&all.all()), None);
        let equal = |seconds: f64| {
            played(&move |outcome: &mut Outcome| {
                with_limit(outcome);
                outcome.transfer_s = outcome.delivered.then_some(seconds);
            })
        };
        let words = beyond_limit(&equal(1.5).all()).expect("nobody is so fast");
        assert!(
            words.starts_with("1.5 ± 0 s is below the mean ideal time of 2 s")
                && words.contains("1 of its 4 runs"),
            "{words}"
        );
        assert_eq!(beyond_limit(&equal(2.0).all()), None);
    }
}
