//! Every paper with many seeds: each must produce a page, whatever the noise.

use longwire_lab::bench::Bench;
use longwire_lab::papers::{PAPERS, reproduce};
use longwire_lab::progress::Progress;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds with which each paper is run, one run per point.
const SEEDS: core::ops::Range<u64> = 0..20;
const THREADS: usize = 2;

#[test]
fn papers_with_many_seeds() {
    let mut failed = Vec::new();
    for paper in PAPERS {
        let fails = |seed: &u64| {
            catch_unwind(AssertUnwindSafe(|| {
                let progress = Progress::new();
                let bench = Bench {
                    runs: Some(1),
                    seed: *seed,
                    threads: THREADS,
                    thin: true,
                    ..Bench::new(&progress)
                };
                let finding = reproduce(paper, &bench);
                let page = finding.report.html(&finding.experiment);
                assert!(!finding.experiment.records.is_empty() && !page.contains("NaN"), "a page of numbers");
            }))
            .is_err()
        };
        failed.extend(SEEDS.filter(fails).map(|seed| format!("{} with seed {seed}", paper.name)));
    }
    assert!(failed.is_empty(), "these fail: {failed:?}; the reasons stand above");
}
