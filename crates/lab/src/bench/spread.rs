//! Work spread over threads with ordered results, the only threads of the lab: their number affects only the duration.

use crate::error::Error;
use crate::progress::{Abandoned, Progress};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Number of threads that this computer runs at once.
pub fn threads_available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs jobs `0..jobs` in rounds on `threads` threads and returns their results by number; `round` returns the round of
/// a job, and never decreases. Counts the jobs done in `progress`.
///
/// Threads take the next job when they are free, so long jobs do not delay the others. A panic in a job is propagated.
/// The first round is always completed; after `progress` is stopped no job of another round is started, and the results
/// are those of the completed rounds, a prefix of the jobs. `progress` receives the number of jobs left out. Once it is
/// abandoned, no job is started, and this unwinds with [`Abandoned`].
#[expect(clippy::disallowed_methods, reason = "the place where runs are spread")]
pub(super) fn spread<R: Send>(
    jobs: usize,
    threads: usize,
    work: impl Fn(usize) -> R + Sync,
    round: impl Fn(usize) -> u32 + Sync,
    progress: &Progress,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let may_begin = |job: usize| round(job) == round(0) || !progress.is_stopped();
    let mut results: Vec<Option<R>> = (0..jobs).map(|_| None).collect();
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for _ in 0..threads.clamp(1, jobs.max(1)) {
            let (tell, next, work, may_begin) = (tell.clone(), &next, &work, &may_begin);
            scope.spawn(move || {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    if job >= jobs || progress.is_abandoned() || !may_begin(job) {
                        return;
                    }
                    let result = work(job);
                    // Counted here: a thread that has reached the limit begins no further job.
                    progress.advance(1);
                    if tell.send((job, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        for (job, result) in told {
            results[job] = Some(result);
        }
    });
    if progress.is_abandoned() {
        std::panic::resume_unwind(Box::new(Abandoned));
    }
    if let Some(missing) = results.iter().position(Option::is_none) {
        let whole = (0..missing).take_while(|job| round(*job) < round(missing)).count();
        results.truncate(whole);
        progress.leave_out((jobs - whole) as u64);
    }
    results.into_iter().map(|result| result.expect("only whole rounds are left")).collect()
}

/// Share of the jobs: `2/5` does every fifth job starting with the second, so that five machines do all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(usize, usize)", into = "(usize, usize)")]
pub struct Shard {
    /// Index of the share, from 1 to `count`.
    pub index: usize,
    /// Number of shares.
    pub count: usize,
}

impl Shard {
    /// All jobs.
    pub const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// Returns true if this job belongs to this share.
    pub fn has(self, job: usize) -> bool {
        job % self.count == self.index - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl From<Shard> for (usize, usize) {
    fn from(shard: Shard) -> Self {
        (shard.index, shard.count)
    }
}

impl TryFrom<(usize, usize)> for Shard {
    type Error = Error;

    fn try_from((index, count): (usize, usize)) -> Result<Shard, Error> {
        let shard = Shard { index, count };
        if (1..=count).contains(&index) { Ok(shard) } else { Err(invalid(&shard.to_string())) }
    }
}

impl std::str::FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shard, Error> {
        let parsed = text
            .split_once('/')
            .and_then(|(index, count)| Some((index.trim().parse().ok()?, count.trim().parse().ok()?)));
        parsed.and_then(|numbers| Shard::try_from(numbers).ok()).ok_or_else(|| invalid(text))
    }
}

fn invalid(share: &str) -> Error {
    Error::new(format!("`{share}` is not a valid share")).hint("use i/n with i from 1 to n, such as 2/5")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_number_of_threads() {
        let squares = |threads| spread(100, threads, |job| job * job, |_| 0, &Progress::new());
        assert_eq!(squares(1), squares(7));
        assert_eq!(squares(3)[9], 81);
    }

    #[test]
    fn progress_counts_every_job_and_no_jobs_are_no_trouble() {
        let progress = Progress::new();
        spread(5, 2, |_| (), |job| job as u32, &progress);
        assert_eq!((progress.done(), progress.left_out()), (5, 0));
        assert!(spread(0, 2, |job| job, |_| 0, &progress).is_empty());
        assert_eq!(progress.done(), 5);
    }

    #[test]
    fn a_stop_ends_with_whole_rounds_and_with_the_first_in_any_case() {
        use std::sync::Arc;
        use std::sync::atomic::AtomicBool;
        const CASES: usize = 5;
        // Stopped during this job, or before all of them.
        for (stopped_in, least, most) in [(None, 1, 1), (Some(2), 1, 2), (Some(12), 2, 4), (Some(19), 3, 4)] {
            for threads in [1, 3] {
                let stop = Arc::new(AtomicBool::new(stopped_in.is_none()));
                let progress = Progress::until(stop.clone());
                let work = |job: usize| {
                    if stopped_in == Some(job) {
                        stop.store(true, Ordering::Relaxed);
                    }
                    job
                };
                let done = spread(4 * CASES, threads, work, |job| (job / CASES) as u32, &progress);
                assert_eq!(done.len() % CASES, 0, "whole rounds: {done:?}");
                assert!((least..=most).contains(&(done.len() / CASES)), "{stopped_in:?}: {done:?}");
                assert!(done.iter().copied().eq(0..done.len()), "{done:?}");
                assert!(progress.done() >= done.len() as u64);
                assert_eq!(progress.left_out() as usize, 4 * CASES - done.len());
            }
        }
    }

    #[test]
    fn an_abandoned_computation_begins_no_further_job_of_the_first_round_and_unwinds() {
        for threads in [1, 3] {
            let (progress, begun) = (Progress::new(), AtomicUsize::new(0));
            let work = |job: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                progress.abandon();
                job
            };
            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                spread(1000, threads, work, |_| 0, &progress)
            }));
            let payload = unwound.expect_err("nobody waits for the result");
            assert_eq!(payload.downcast_ref::<Abandoned>(), Some(&Abandoned));
            assert!(begun.into_inner() <= threads);
        }
    }

    #[test]
    fn shards_divide_the_jobs_without_overlap() {
        let shards: Vec<Shard> = (1..=3).map(|i| format!("{i}/3").parse().expect("a share")).collect();
        for job in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(job)).count(), 1);
        }
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
