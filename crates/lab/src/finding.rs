//! Findings: the result of an experiment as records, a page and a terminal summary.

use crate::format::{figure, with_error};
use crate::ledger;
use crate::record::{Experiment, Params, Record, Run, Value};
use crate::report::{Bar, LedgerChart, LedgerShare, PageBlock, Report};
use crate::run::Outcome;
use crate::stats::{self, Summary};
use crate::trace::CapturedFrame;

/// The result of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Records and runs.
    pub experiment: Experiment,
    /// The page for people.
    pub report: Report,
    /// Terminal summary: the answer in a few paragraphs and tables.
    pub summary: Vec<PageBlock>,
    /// Frames of single runs, if requested.
    pub traces: Vec<Trace>,
}

/// The frames of one run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Name of the run, for display and for the name of its folder.
    pub name: String,
    /// All frames.
    pub frames: Vec<CapturedFrame>,
}

/// Metric of a run: name including the unit, unit for display, and value, if the run has one.
type RunMetric = (&'static str, &'static str, fn(&Outcome) -> Option<f64>);

const METRICS: &[RunMetric] = &[
    ("transfer_s", "s", |outcome| outcome.transfer_s),
    ("goodput_byte_per_s", "byte/s", |outcome| Some(outcome.goodput())),
    ("last_hop_s", "s", Outcome::last_hop_s),
    ("last_hop_goodput_byte_per_s", "byte/s", |outcome| Some(outcome.last_hop_goodput())),
    ("goodput_with_keepalives_byte_per_s", "byte/s", |outcome| {
        Some(outcome.goodput_with_keepalives()).filter(|_| outcome.lingered)
    }),
    ("delivered", "share of runs", |outcome| Some(f64::from(u8::from(outcome.delivered)))),
    ("error_free_s", "s", |outcome| Some(outcome.bound().error_free_s)),
    ("limit_s", "s", |outcome| Some(outcome.bound().mean_s)),
    ("limit_streaming_s", "s", |outcome| Some(outcome.limit.streaming.mean_s)),
    ("retransmissions", "segments", |outcome| Some(count(outcome, "tcp_retransmissions"))),
    ("timeouts", "timeouts", |outcome| Some(count(outcome, "tcp_timeouts"))),
    ("damaged_frames", "frames", |outcome| {
        Some(outcome.hops.iter().map(|hop| hop.damaged_frames as f64).sum())
    }),
    ("acknowledged_again_bytes", "byte", |outcome| {
        Some(outcome.hops.iter().map(|hop| hop.acknowledged_again_bytes as f64).sum())
    }),
    ("overlap_bytes", "byte", |outcome| {
        Some(outcome.hops.iter().map(|hop| hop.seen.overlap_bytes as f64).sum())
    }),
    ("events", "events", |outcome| Some(outcome.events as f64)),
];

/// Ideal time for these runs, seconds: a single run is compared with the time without errors, the mean of several runs
/// with the mean time including errors.
///
/// # Panics
/// Panics without a run.
pub fn limit_s(outcomes: &[&Outcome]) -> f64 {
    let whole = outcomes.iter().all(|outcome| outcome.is_stored_whole());
    let bound = |outcome: &&Outcome| match whole {
        true => outcome.limit.store_and_forward,
        false => outcome.limit.streaming,
    };
    match outcomes {
        [single] => bound(single).error_free_s,
        many => stats::mean(&many.iter().map(|outcome| bound(outcome).mean_s).collect::<Vec<f64>>()),
    }
}

/// Explains why completed runs were faster on average than the ideal time, by more than their interval; `None` if they
/// were not. No protocol can be so fast permanently: such runs are too few, or selected by their errors.
pub fn beyond_limit(outcomes: &[&Outcome]) -> Option<String> {
    let arrived: Vec<&Outcome> = outcomes.iter().copied().filter(|outcome| outcome.delivered).collect();
    let times = samples(&arrived, "transfer_s");
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

fn count(outcome: &Outcome, name: &str) -> f64 {
    outcome.tally.get(name).copied().unwrap_or(0) as f64
}

/// Returns a run as a row.
pub fn run_row(series: &str, params: &Params, outcome: &Outcome) -> Run {
    let values = METRICS.iter().filter_map(|(name, _, value)| Some(((*name).to_owned(), value(outcome)?)));
    Run {
        series: series.to_owned(),
        params: params.clone(),
        run: outcome.run,
        seed: outcome.seed,
        values: values.collect(),
    }
}

/// Returns the samples of a metric over runs; runs without it are omitted.
pub fn samples(outcomes: &[&Outcome], metric: &str) -> Vec<f64> {
    let (.., value) = METRICS.iter().find(|(name, ..)| *name == metric).expect("a metric of the table");
    outcomes.iter().filter_map(|outcome| value(outcome)).collect()
}

/// Returns the values of a metric in the runs in which both have one, run by run, because only the same runs have the
/// same noise.
pub fn pairs(ours: &[&Outcome], theirs: &[&Outcome], metric: &str) -> (Vec<f64>, Vec<f64>) {
    let (.., value) = METRICS.iter().find(|(name, ..)| *name == metric).expect("a metric of the table");
    let same_run = |our: &&Outcome| theirs.iter().find(|their| their.run == our.run);
    ours.iter().filter_map(|our| Some((value(our)?, value(same_run(our)?)?))).unzip()
}

/// Returns the record of a metric over runs, with the limit of the same runs for transfer times and goodputs; `None` if
/// no run has it. The limit of a goodput is that without errors, because the mean of quotients has no other bound.
pub fn record_of(series: &str, params: &Params, outcomes: &[&Outcome], metric: &str) -> Option<Record> {
    let (name, unit, value) =
        METRICS.iter().find(|(name, ..)| *name == metric).expect("a metric of the table");
    let (found, measured): (Vec<f64>, Vec<&Outcome>) =
        outcomes.iter().filter_map(|outcome| Some((value(outcome)?, *outcome))).unzip();
    if found.is_empty() {
        return None;
    }
    let record = Record::of(series, params.clone(), *name, *unit, &found);
    Some(match metric {
        "transfer_s" => record.with_limit(limit_s(&measured)),
        "goodput_byte_per_s" => {
            let most = |outcome: &&Outcome| outcome.file_bytes as f64 / outcome.bound().error_free_s;
            record.with_limit(stats::mean(&measured.iter().map(most).collect::<Vec<f64>>()))
        }
        _ => record,
    })
}

/// Returns the records of all metrics over runs.
pub fn records_of(series: &str, params: &Params, outcomes: &[&Outcome]) -> Vec<Record> {
    METRICS.iter().filter_map(|(name, ..)| record_of(series, params, outcomes, name)).collect()
}

/// Reasons why runs did not deliver, each once; empty if all runs delivered.
pub fn why_missed(outcomes: &[&Outcome]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for missed in outcomes.iter().filter_map(|outcome| outcome.missed) {
        let reason = missed.to_string();
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.join("; ")
}

/// Means of the ledger of a hop over runs, towards the destination (0) or back (1), seconds.
pub fn mean_ledger(outcomes: &[&Outcome], hop: usize, way: usize) -> Vec<f64> {
    let entry = |index: usize| {
        let nanos = |outcome: &&Outcome| outcome.hops[hop].ledgers[way].nanos[index] as f64 / 1e9;
        stats::mean(&outcomes.iter().map(nanos).collect::<Vec<f64>>())
    };
    (0..ledger::ENTRIES.len()).map(entry).collect()
}

/// Creates an empty chart with the entries of the ledger as shares.
pub fn ledger_chart(title: &str, caption: &str) -> LedgerChart {
    let share = |(name, meaning, silent): &(&str, &str, bool)| match silent {
        true => LedgerShare::idle(*name, *meaning),
        false => LedgerShare::new(*name, *meaning),
    };
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

/// Describes parameters, such as `ber 1e-6, delay_ms 2000`.
pub fn point_name(params: &Params) -> String {
    let word = |(name, value): (&str, &Value)| format!("{name} {value}");
    params.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Bound;
    use crate::run::{Setup, Wanted};
    use crate::scenario::Scenario;
    use std::path::Path;

    #[test]
    fn pairs_are_of_the_same_run_even_where_each_side_missed_another() {
        let scenario = Scenario::parse("stack = 'tcp/tuned'\n[workload]\nbytes = 10\n[[link]]", "test");
        let content = vec![bytes::Bytes::from_static(b"0123456789")];
        let setup = Setup::with_files(scenario.expect("a scenario"), Path::new("."), content);
        let setup = setup.expect("a setup");
        let timed = |missed: u32| -> Vec<Outcome> {
            let outcome = |run| Outcome {
                delivered: run != missed,
                transfer_s: (run != missed).then_some(f64::from(run)),
                ..setup.run(run, Wanted::default())
            };
            (0..4).map(outcome).collect()
        };
        let (ours, theirs) = (timed(1), timed(2));
        let (ours, theirs): (Vec<&Outcome>, Vec<&Outcome>) = (ours.iter().collect(), theirs.iter().collect());
        assert_eq!(samples(&ours, "transfer_s").len(), samples(&theirs, "transfer_s").len());
        let both = vec![0.0, 3.0];
        assert_eq!(pairs(&ours, &theirs, "transfer_s"), (both.clone(), both));
        // A run that is not a sample does not affect the limit either.
        let with_limits: Vec<Outcome> = timed(1)
            .into_iter()
            .map(|mut outcome| {
                let mean_s = if outcome.run == 1 { 1000.0 } else { 2.0 };
                outcome.limit.store_and_forward = Bound { error_free_s: 1.0, mean_s };
                outcome
            })
            .collect();
        let all: Vec<&Outcome> = with_limits.iter().collect();
        let record = record_of("tcp", &Params::new(), &all, "transfer_s").expect("three runs have it");
        assert_eq!((record.n, record.limit), (3, Some(2.0)));
        let record = record_of("tcp", &Params::new(), &all[3..], "transfer_s").expect("one run has it");
        assert_eq!(record.limit, Some(1.0), "a single run is held against its time without errors");
        // Times of 0, 2 and 3 s have a wide interval; three times 1.5 s has none.
        assert_eq!(beyond_limit(&all), None);
        let timed = |seconds: f64| -> Vec<Outcome> {
            let with_time = |outcome: &Outcome| Outcome {
                transfer_s: outcome.delivered.then_some(seconds),
                ..outcome.clone()
            };
            with_limits.iter().map(with_time).collect()
        };
        let equal = timed(1.5);
        let words = beyond_limit(&equal.iter().collect::<Vec<_>>()).expect("nobody is so fast");
        assert!(
            words.starts_with("1.5 ± 0 s is below the mean ideal time of 2 s")
                && words.contains("1 of its 4 runs"),
            "{words}"
        );
        assert_eq!(beyond_limit(&timed(2.0).iter().collect::<Vec<_>>()), None);
    }
}
