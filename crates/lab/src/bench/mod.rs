//! Trials played in many cases, each with many seeds. Seeds, threads, shares, early stops, records and rows are made
//! here and nowhere else.

mod metric;
mod spread;
#[cfg(test)]
mod tests;

pub use metric::Metric;
pub use spread::{Shard, threads_available};

use crate::progress::Progress;
use crate::record::{Params, Record, Row, Value};
use crate::report::Cell;
use longwire_proto::rng::Rng;

/// Run of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the run in its case, from 0. Runs of the same number are paired: they have the same noise.
    pub number: u32,
    /// Seed of the run.
    pub seed: u64,
}

impl Run {
    /// Creates a run of an experiment with this seed. The seed of the run is a function of both numbers only.
    pub fn new(seed: u64, number: u32) -> Run {
        Run { number, seed: Rng::new(seed).fork(&format!("run {number}")).next_u64() }
    }
}

/// Experiment that can be repeated: it gives the same outcome for the same run.
pub trait Trial: Sync {
    /// Outcome of a run.
    type Outcome: Send + 'static;

    /// Metrics of an outcome, in the order of records and rows.
    const METRICS: &'static [Metric<Self::Outcome>];

    /// Plays one run.
    fn play(&self, run: Run) -> Self::Outcome;

    /// Returns the metric with this name.
    ///
    /// # Panics
    /// Panics if there is none.
    fn metric(key: &str) -> &'static Metric<Self::Outcome> {
        let found = Self::METRICS.iter().find(|metric| metric.key == key);
        found.unwrap_or_else(|| panic!("`{key}` is not a metric of the trial"))
    }
}

/// Trial at one point of the parameters.
#[derive(Clone, Debug)]
pub struct Case<T> {
    /// Name: a protocol with its settings, such as `tcpcl3/tuned`, or another one.
    pub name: String,
    /// Parameters of the point.
    pub params: Params,
    /// Trial that is played.
    pub trial: T,
    /// Seed of the experiment, from which those of the runs are derived.
    pub seed: u64,
    /// Number of rounds.
    pub rounds: u32,
    /// Interval between the rounds in which this case has a run: 1 for every round.
    pub every: u32,
}

impl<T> Case<T> {
    /// Creates a case with a run in each of these rounds.
    pub fn new(name: impl Into<String>, params: Params, trial: T, seed: u64, rounds: u32) -> Case<T> {
        Case { name: name.into(), params, trial, seed, rounds, every: 1 }
    }

    /// Limits the runs to the first of every `every` rounds, for trials that are long.
    pub fn every(mut self, every: u32) -> Case<T> {
        self.every = every.max(1);
        self
    }

    fn is_in(&self, round: u32) -> bool {
        round < self.rounds && round.is_multiple_of(self.every)
    }

    /// Run of a round in which this case has one.
    pub fn run(&self, round: u32) -> Run {
        Run::new(self.seed, round / self.every)
    }
}

/// Options of an experiment, with the threads and the share of its runs.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// Number of threads; does not change the result.
    pub threads: usize,
    /// Share of the runs that is played.
    pub shard: Shard,
    /// Count of the runs made, and requests to stop.
    pub progress: &'a Progress,
    /// Seed of the experiment.
    pub seed: u64,
    /// Number of runs of a case; `None` for the usual number.
    pub runs: Option<u32>,
    /// Keeps the frames of single runs.
    pub traces: bool,
    /// Restricts an experiment to a part of its cases. For tests with many seeds, whose figures have little meaning.
    pub thin: bool,
}

impl<'a> Bench<'a> {
    /// Creates a bench for all runs of a complete experiment with seed 1, on one thread.
    pub fn new(progress: &'a Progress) -> Bench<'a> {
        let (threads, shard, seed) = (1, Shard::WHOLE, 1);
        Bench { threads, shard, progress, seed, runs: None, traces: false, thin: false }
    }

    /// Returns the number of runs of a case that usually has this number.
    pub fn runs(&self, usual: u32) -> u32 {
        self.runs.unwrap_or(usual).max(1)
    }

    /// Plays this share of the runs of all cases. After an early stop every case has the runs of the rounds completed,
    /// at least of the first one.
    pub fn play<T: Trial>(&self, cases: Vec<Case<T>>) -> Vec<Played<T>> {
        let jobs = self.jobs(&cases);
        self.progress.expect(jobs.len() as u64);
        let work = |job: usize| {
            let (at, round) = jobs[job];
            let run = cases[at].run(round);
            (run, cases[at].trial.play(run))
        };
        let done = spread::spread(jobs.len(), self.threads, work, |job| jobs[job].1, self.progress);
        let mut played: Vec<Played<T>> =
            cases.into_iter().map(|case| Played { case, runs: Vec::new() }).collect();
        for ((at, _), done) in jobs.iter().zip(done) {
            played[*at].runs.push(done);
        }
        played
    }

    /// Runs of this share: the place of the case, and the round, in the order in which they are played.
    pub fn jobs<T>(&self, cases: &[Case<T>]) -> Vec<(usize, u32)> {
        // Interleaved, so that slow cases are not all at the end.
        let rounds = cases.iter().map(|case| case.rounds).max().unwrap_or(0);
        let of_round = |round: u32| {
            let with_a_run = cases.iter().enumerate().filter(move |(_, case)| case.is_in(round));
            with_a_run.map(move |(at, _)| (at, round))
        };
        let all = (0..rounds).flat_map(of_round).enumerate();
        all.filter(|(job, _)| self.shard.has(*job)).map(|(_, what)| what).collect()
    }

    /// Does work besides the runs; `None` with `thin` and after an early stop, which leaves it out.
    pub fn besides<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        if self.thin {
            return None;
        }
        self.progress.expect(1);
        if self.progress.is_stopped() {
            self.progress.leave_out(1);
            return None;
        }
        let result = work();
        self.progress.advance(1);
        Some(result)
    }

    /// Plays several groups of cases together, round by round.
    pub fn play_groups<T: Trial>(&self, groups: Vec<Vec<Case<T>>>) -> Vec<Vec<Played<T>>> {
        let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
        let mut played = self.play(groups.into_iter().flatten().collect()).into_iter();
        sizes.into_iter().map(|size| played.by_ref().take(size).collect()).collect()
    }
}

/// Number of rounds completed for these cases.
pub fn rounds<T: Trial>(played: &[Played<T>]) -> u32 {
    let last = |played: &Played<T>| Some(played.runs.last()?.0.number * played.case.every + 1);
    played.iter().filter_map(last).max().unwrap_or(0)
}

/// Case with its runs.
pub struct Played<T: Trial> {
    /// The case.
    pub case: Case<T>,
    /// Runs with their outcomes, by number.
    pub runs: Vec<(Run, T::Outcome)>,
}

impl<T: Trial> Played<T> {
    /// Iterates over the outcomes.
    pub fn outcomes(&self) -> impl Iterator<Item = &T::Outcome> {
        self.runs.iter().map(|(_, outcome)| outcome)
    }

    /// Returns all outcomes.
    pub fn all(&self) -> Vec<&T::Outcome> {
        self.outcomes().collect()
    }

    /// Returns a parameter as a number; 0 if the point has none.
    pub fn param(&self, name: &str) -> f64 {
        self.case.params.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// Returns the samples of a metric; runs without it are omitted.
    pub fn samples(&self, key: &str) -> Vec<f64> {
        T::metric(key).samples(&self.all())
    }

    /// Returns the values of a metric in the runs in which both cases have one, run by run, because only the same runs
    /// have the same noise.
    pub fn pairs(&self, other: &Played<T>, key: &str) -> (Vec<f64>, Vec<f64>) {
        self.pairs_of(other, T::metric(key).value)
    }

    /// Returns the same for any value of a run.
    pub fn pairs_of(
        &self,
        other: &Played<T>,
        value: impl Fn(&T::Outcome) -> Option<f64>,
    ) -> (Vec<f64>, Vec<f64>) {
        let same = |run: &Run| other.runs.iter().find(|(theirs, _)| theirs.number == run.number);
        let both = |(run, outcome): &(Run, T::Outcome)| Some((value(outcome)?, value(&same(run)?.1)?));
        self.runs.iter().filter_map(both).unzip()
    }

    /// Returns the record of a metric; `None` if no run has it.
    pub fn record(&self, key: &str) -> Option<Record> {
        T::metric(key).record(&self.case.name, &self.case.params, &self.all())
    }

    /// Returns the records of all metrics.
    pub fn records(&self) -> Vec<Record> {
        T::METRICS.iter().filter_map(|metric| self.record(metric.key)).collect()
    }

    /// Returns a table cell with a metric.
    pub fn cell(&self, key: &str) -> Cell {
        self.record(key).map_or_else(Cell::empty, |record| Cell::summary(&record.summary()))
    }

    /// Iterates over table cells with the figures of all metrics.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        T::METRICS.iter().map(|metric| self.cell(metric.key))
    }

    /// Returns the mean of a metric; NaN if no run has it.
    pub fn mean(&self, key: &str) -> f64 {
        self.record(key).map_or(f64::NAN, |record| record.mean)
    }

    /// Returns a row for each run.
    pub fn rows(&self) -> Vec<Row> {
        let row = |(run, outcome): &(Run, T::Outcome)| Row {
            case: self.case.name.clone(),
            params: self.case.params.clone(),
            run: run.number,
            seed: run.seed,
            values: T::METRICS
                .iter()
                .filter_map(|metric| Some((metric.key.to_owned(), (metric.value)(outcome)?)))
                .collect(),
        };
        self.runs.iter().map(row).collect()
    }
}
