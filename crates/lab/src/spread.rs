//! Work spread over threads with its results in order: the number of threads changes how long it takes and nothing
//! else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// How many threads this machine runs at once.
pub fn threads_available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does jobs `0..jobs` on `threads` threads and returns their results by number. `progress` hears how many are done,
/// after each, on the caller's thread.
///
/// Threads take the next job when they are free, so long jobs hold up nobody but themselves. A panic in a job is
/// passed on.
pub fn spread<R: Send>(
    jobs: usize,
    threads: usize,
    work: impl Fn(usize) -> R + Sync,
    mut progress: impl FnMut(usize),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<Option<R>> = (0..jobs).map(|_| None).collect();
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for _ in 0..threads.clamp(1, jobs.max(1)) {
            let (tell, next, work) = (tell.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    if job >= jobs || tell.send((job, work(job))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        for (done, (job, result)) in told.iter().enumerate() {
            results[job] = Some(result);
            progress(done + 1);
        }
    });
    results.into_iter().map(|result| result.expect("every job was done")).collect()
}

/// A share of the jobs: `2/5` does every fifth job beginning with the second, so that five machines do all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which share, from 1.
    pub index: usize,
    /// Of how many.
    pub count: usize,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// True if this job belongs to this share.
    pub fn has(self, job: usize) -> bool {
        job % self.count == self.index - 1
    }
}

impl std::str::FromStr for Shard {
    type Err = crate::error::Error;

    fn from_str(text: &str) -> Result<Shard, Self::Err> {
        let parsed = text.split_once('/').and_then(|(index, count)| {
            Some(Shard { index: index.trim().parse().ok()?, count: count.trim().parse().ok()? })
        });
        parsed.filter(|shard| 1 <= shard.index && shard.index <= shard.count).ok_or_else(|| {
            crate::error::Error::new(format!("`{text}` is not a share of the work"))
                .hint("write i/n with i from 1 to n, such as 2/5")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_number_of_threads() {
        let squares = |threads| spread(100, threads, |job| job * job, |_| {});
        assert_eq!(squares(1), squares(7));
        assert_eq!(squares(3)[9], 81);
    }

    #[test]
    fn progress_counts_every_job_and_no_jobs_are_no_trouble() {
        let mut last = 0;
        spread(5, 2, |_| (), |done| last = done);
        assert_eq!(last, 5);
        assert!(spread(0, 2, |job| job, |_| panic!("nothing is done")).is_empty());
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
