//! Every paper with many seeds: each must produce a page, whatever the noise.

use longwire_lab::finding::Finding;
use longwire_lab::papers::{ax25_throughput, cislunar, dtn_ax25};
use longwire_lab::progress::Progress;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds with which each paper is run, one run per point.
const SEEDS: core::ops::Range<u64> = 0..50;
const THREADS: usize = 2;

/// Runs a paper with every seed, and names those with which it fails.
fn with_many_seeds(paper: impl Fn(u64) -> Finding) {
    let fails = |seed: &u64| {
        catch_unwind(AssertUnwindSafe(|| {
            let finding = paper(*seed);
            let page = finding.report.html(&finding.experiment);
            assert!(!finding.experiment.records.is_empty() && !page.contains("NaN"), "a page of numbers");
        }))
        .is_err()
    };
    let failed: Vec<u64> = SEEDS.filter(fails).collect();
    assert!(failed.is_empty(), "it fails with the seeds {failed:?}: the reasons stand above");
}

#[test]
fn cislunar_with_many_seeds() {
    with_many_seeds(|seed| {
        let options = cislunar::Options {
            runs: Some(1),
            seed: Some(seed),
            threads: THREADS,
            traces: false,
            thin: true,
        };
        cislunar::reproduce(&options, &Progress::new()).expect("a scenario of this program")
    });
}

#[test]
fn dtn_ax25_with_many_seeds() {
    with_many_seeds(|seed| {
        let options = dtn_ax25::Options { runs: Some(1), seed: Some(seed), threads: THREADS, thin: true };
        dtn_ax25::reproduce(&options, &Progress::new())
    });
}

#[test]
fn ax25_throughput_with_many_seeds() {
    with_many_seeds(|seed| {
        let options =
            ax25_throughput::Options { runs: Some(1), seed: Some(seed), threads: THREADS, thin: true };
        ax25_throughput::reproduce(&options, &Progress::new())
    });
}
