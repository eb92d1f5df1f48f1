//! Batches of runs: the same point with different seeds, many points at once, spread over threads.

use crate::parallel::{Shard, spread_rounds};
use crate::progress::Progress;
use crate::record::Params;
use crate::run::{Outcome, Setup, Wanted};

/// Runs of one series at one point.
pub struct Batch {
    /// Whose runs.
    pub series: String,
    /// At which point.
    pub params: Params,
    /// The world.
    pub setup: Setup,
    /// How many runs.
    pub runs: u32,
    /// What each is asked for.
    pub wanted: Wanted,
}

impl Batch {
    /// So many runs of a setup.
    pub fn new(series: impl Into<String>, params: Params, setup: Setup, runs: u32) -> Batch {
        Batch { series: series.into(), params, setup, runs, wanted: Wanted::default() }
    }

    /// Asked for more than the outcome.
    pub fn wanting(mut self, wanted: Wanted) -> Batch {
        self.wanted = wanted;
        self
    }
}

/// Plays a share of the runs of all batches, and returns each batch's outcomes in order of their numbers. Stopped early, it
/// returns those that all batches have: at least the first.
pub fn play(batches: &[Batch], threads: usize, shard: Shard, progress: &Progress) -> Vec<Vec<Outcome>> {
    // By turns, so that batches that take long are not all at the end.
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
