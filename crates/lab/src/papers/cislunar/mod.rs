//! `paper cislunar`: a published evaluation of bundles over TCP between the Moon and the Earth, with its use of time.
//!
//! "Experimental Evaluation of Delay Tolerant Networking (DTN) Protocols for Long-Delay Cislunar Communications", R.
//! Wang, X. Wu, T. Wang, T. Taleb. A megabyte is sent from a lander (tx) through an orbiter (mx), which stores all of
//! it, to the Earth (rx), at 115,200 bit/s, for nine delays, three bit-error rates and five outages, with 16 runs each.
//!
//! The text does not state which path its figures describe: its goodputs without errors match two hops with the delay
//! on both, its traces are from mx to rx. Nor does it state whether both hops have bit errors. Three readings are
//! reproduced: *whole path*, from the start to the last byte at rx; *mx to rx*, from the first byte that mx sends; and
//! the *whole path with errors on the second hop only*.
//!
//! No constant is fitted to a published figure. One reading, errors on the second hop only, was chosen because of the
//! published goodputs, and its own goodputs are marked calibrated; all others are predictions.

mod cases;
mod claims;
mod page;

use super::{Page, Paper};
use crate::bench::{self, Bench};
use crate::chain::Chain;
use crate::run::Outcome;
use cases::Variant;

/// The evaluation.
pub const PAPER: Paper = Paper {
    name: "cislunar",
    title: "Bundles between Moon and Earth: a published evaluation, reproduced",
    about: "Bundles over TCP between the Moon and the Earth, through an orbiter",
    citation: "R. Wang, X. Wu, T. Wang, T. Taleb: Experimental Evaluation of Delay Tolerant Networking (DTN) Protocols for \
         Long-Delay Cislunar Communications",
    play,
};

/// Text of the scenario file.
pub const SCENARIO: &str = include_str!("../../../../../scenarios/cislunar.toml");
/// Published figures.
const PUBLISHED: &str = include_str!("published.csv");

/// One-way delay at which the paper shows traces and states goodputs, ms.
const DELAY_MS: i64 = 2000;
/// Longest published outage, s.
const OUTAGE_S: i64 = 120;
/// Published bit-error rates.
const BERS: [f64; 3] = [0.0, 1e-6, 1e-5];
/// Range of the random start of an outage, seconds of data on the second hop; even the fastest transfer is still in
/// progress.
const ANY_MOMENT_S: (f64, f64) = (10.0, 70.0);

/// Case of the protocols used in the paper.
const MAIN: &str = "tcpcl3/dtn2";
/// The same with a random start of the outage in every run.
const ANY_MOMENT: &str = "tcpcl3/dtn2, outage at any moment";
/// The same with bit errors on the second hop only.
const SECOND_HOP: &str = "tcpcl3/dtn2, errors on the second hop only";

/// Runs of one point.
type Played = bench::Played<Chain>;

/// Run whose frames are shown.
struct Traced {
    ber: f64,
    outage_s: i64,
    outcome: Outcome,
}

/// Groups of points, in the order of their records.
const GRID: usize = 0;
const ANY: usize = 1;
const SECOND: usize = 2;
const ANNOUNCED: usize = 4;
const STARTS: usize = 5;
const VARIED: usize = 7;

/// All results.
struct Reproduction {
    /// Runs per point.
    planned: u32,
    groups: [Vec<Played>; 8],
    variants: Vec<Variant>,
    traced: Vec<Traced>,
}

fn play(bench: &Bench<'_>) -> Page {
    let reproduction = cases::play(bench);
    let (records, claims) = reproduction.records_and_claims();
    page::page(&reproduction, bench, records, claims)
}

impl Reproduction {
    /// Iterates over all points in the order of their records.
    fn points(&self) -> impl Iterator<Item = &Played> {
        self.groups.iter().flatten()
    }

    fn grid_at(&self, delay_ms: f64, ber: f64, outage_s: f64) -> &Played {
        let is_there = |played: &&Played| {
            ["delay_ms", "ber", "outage_s"].map(|name| played.param(name)) == [delay_ms, ber, outage_s]
        };
        self.groups[GRID].iter().find(is_there).expect("the grid has every published point")
    }

    /// Point at which the paper states figures.
    fn stated(&self, ber: f64) -> &Played {
        self.grid_at(DELAY_MS as f64, ber, 0.0)
    }

    /// Curve of a grid over the delay, without an outage.
    fn without_outage(grid: &[Played], ber: f64) -> Vec<&Played> {
        let is_on_it = |played: &&Played| played.param("ber") == ber && played.param("outage_s") == 0.0;
        grid.iter().filter(is_on_it).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim;
    use crate::progress::Progress;

    #[test]
    fn every_published_figure_has_a_record() {
        let progress = Progress::new();
        let bench = Bench { threads: 2, runs: Some(1), thin: true, ..Bench::new(&progress) };
        let page = (PAPER.play)(&bench);
        let with_a_figure = page.records.iter().filter(|record| record.reference.is_some()).count();
        assert_eq!((claim::published_figures(PUBLISHED), with_a_figure), (36, 36));
    }
}
