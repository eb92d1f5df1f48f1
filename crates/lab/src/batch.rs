//! Batches of runs: many points with several seeds each, spread over threads.

use crate::finding::{self, Trace};
use crate::parallel::{Shard, spread_rounds};
use crate::progress::Progress;
use crate::record::Params;
use crate::run::{Outcome, Setup, Wanted};

/// Runs of one series at one point.
pub struct Batch {
    /// Series of the runs.
    pub series: String,
    /// Parameters of the point.
    pub params: Params,
    /// Scenario, ready to run.
    pub setup: Setup,
    /// Number of runs.
    pub runs: u32,
    /// Additional results to collect in each run.
    pub wanted: Wanted,
}

impl Batch {
    /// Creates a batch of this number of runs.
    pub fn new(series: impl Into<String>, params: Params, setup: Setup, runs: u32) -> Batch {
        Batch { series: series.into(), params, setup, runs, wanted: Wanted::default() }
    }

    /// Collects additional results.
    pub fn wanting(mut self, wanted: Wanted) -> Batch {
        self.wanted = wanted;
        self
    }
}

/// Plays a share of the runs of all batches and returns the outcomes of each batch in the order of the runs. After an
/// early stop it returns the runs that all batches have, at least the first.
pub fn play(batches: &[Batch], threads: usize, shard: Shard, progress: &Progress) -> Vec<Vec<Outcome>> {
    // Interleaved, so that slow batches are not all at the end.
    let most = batches.iter().map(|batch| batch.runs).max().unwrap_or(0);
    let all = (0..most).flat_map(|run| {
        let with_that_run = move |(_, batch): &(usize, &Batch)| run < batch.runs;
        batches.iter().enumerate().filter(with_that_run).map(move |(index, _)| (index, run))
    });
    let jobs: Vec<(usize, u32)> =
        all.enumerate().filter(|(job, _)| shard.has(*job)).map(|(_, what)| what).collect();
    progress.expect(jobs.len() as u64);
    let work = |job: usize| {
        let (index, run) = jobs[job];
        batches[index].setup.run(run, batches[index].wanted)
    };
    let outcomes = spread_rounds(jobs.len(), threads, work, |job| jobs[job].1, progress);
    let mut sorted: Vec<Vec<Outcome>> = batches.iter().map(|_| Vec::new()).collect();
    for ((index, _), outcome) in jobs.iter().zip(outcomes) {
        sorted[*index].push(outcome);
    }
    sorted
}

/// Repeats the first run at every point with its frames.
pub fn traces(batches: &[Batch]) -> Vec<Trace> {
    let trace = |batch: &Batch| {
        let name = match finding::point_name(&batch.params) {
            name if name.is_empty() => batch.series.clone(),
            name => name,
        };
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
        let frames = batch.setup.run(0, Wanted { frames: true, linger_s: 0.0 }).frames;
        Trace { name: name.chars().map(plain).collect(), frames }
    };
    batches.iter().map(trace).collect()
}
