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
//! The paper has no other convergence layer. LTP, with and without an erasure code, is simulated on the same grid, and with
//! announced outages besides.
//!
//! No constant is fitted to a published figure. One reading, errors on the second hop only, was chosen because of the
//! published goodputs, and its own goodputs are marked calibrated; all others are predictions.

mod beyond;
mod cases;
mod claims;
mod page;

use super::{Page, Paper};
use crate::bench::{self, Bench};
use crate::chain::Chain;
use crate::record::number;
use cases::Variant;

/// The evaluation.
pub const PAPER: Paper = Paper {
    name: "cislunar",
    title: "Bundles between Moon and Earth: a published evaluation, reproduced",
    about: "Bundles over TCP between the Moon and the Earth, through an orbiter",
    citation: "R. Wang, X. Wu, T. Wang, T. Taleb: Experimental Evaluation of Delay Tolerant Networking (DTN) \
               Protocols for Long-Delay Cislunar Communications",
    play,
};

/// Text of the scenario file.
pub const SCENARIO: &str = include_str!("../../../../../scenarios/cislunar.toml");
const PUBLISHED: &str = include_str!("published.csv");

/// Longest published outage, s.
const OUTAGE_S: i64 = 120;
/// Published bit-error rates.
const BERS: [f64; 3] = [0.0, 1e-6, 1e-5];

/// Case of the protocols used in the paper.
const MAIN: &str = "tcpcl3/dtn2";
/// The same with bit errors on the second hop only.
const SECOND_HOP: &str = "tcpcl3/dtn2, errors on the second hop only";

/// Curve over the delay.
fn over_delay(ber: f64, outage_s: i64) -> String {
    format!("delay_ms=* ber={} outage_s={outage_s}", number(ber))
}

/// Point with the delay at which the paper states goodputs and shows traces.
fn stated(ber: f64, outage_s: i64) -> String {
    over_delay(ber, outage_s).replace('*', "2000")
}

/// Runs of one point.
type Played = bench::Played<Chain>;

/// All results.
struct Reproduction {
    /// Runs per point.
    planned: u32,
    /// Groups of points by name, in the order of their records.
    groups: Vec<(String, Vec<Played>)>,
    variants: Vec<Variant>,
}

fn play(bench: &Bench<'_>) -> Page {
    page::page(&cases::play(bench), bench)
}

impl Reproduction {
    /// Iterates over all points that have records.
    fn points(&self) -> impl Iterator<Item = &Played> {
        self.groups.iter().filter(|(name, _)| name != "traced").flat_map(|(_, played)| played)
    }

    fn group(&self, name: &str) -> &[Played] {
        let group = self.groups.iter().find(|(known, _)| known == name);
        &group.unwrap_or_else(|| panic!("no cases are called `{name}`")).1
    }

    /// Points of a group at this place, or along this curve.
    fn along(&self, group: &str, at: &str) -> Vec<&Played> {
        self.group(group).iter().filter(|played| played.case.params.along(at).is_some()).collect()
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
        let page = play(&bench);
        let with_a_figure = page.records.iter().filter(|record| record.reference.is_some()).count();
        assert_eq!((claim::published_figures(PUBLISHED), with_a_figure), (36, 36));
    }
}
