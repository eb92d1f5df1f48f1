//! `paper dummy`: a made-up evaluation of the smallest size, to show what a paper consists of.

use super::{Page, Paper};
use crate::bench::{Bench, Case, Metric, Played, Run, Trial};
use crate::claim;
use crate::record::{FigureKind, Params, Record};
use longwire_proto::rng::Rng;

/// The made-up evaluation.
pub const PAPER: Paper = Paper {
    name: "dummy",
    title: "Dice",
    about: "Dice of 6 and 20 sides: a made-up evaluation",
    citation: "A. N. Author: On dice",
    play,
};

/// Number drawn from 1 to the number of sides.
struct Die {
    sides: u64,
}

impl Trial for Die {
    type Outcome = f64;

    const METRICS: &'static [Metric<f64>] = &[Metric::new("number", "", |number| Some(*number))];

    fn play(&self, run: Run) -> f64 {
        (1 + Rng::new(run.seed).fork("die").below(self.sides)) as f64
    }
}

fn play(bench: &Bench<'_>) -> Page {
    let case = |sides: u64| {
        let params = Params::new().with("sides", sides);
        Case::new("die", params, Die { sides }, bench.seed, bench.runs(400))
    };
    let played = bench.play(vec![case(6), case(20)]);
    let mean = |sides: u64| {
        let params = Params::new().with("sides", sides);
        Record::of("mean", params, "number", "", &[(sides + 1) as f64 / 2.0])
            .with_kind(FigureKind::ClosedForm)
    };
    let mut records: Vec<Record> = played.iter().flat_map(Played::records).chain([mean(6)]).collect();
    let claims = claim::attach(include_str!("published.csv"), &mut records);
    let runs = played.iter().map(|played| played.runs.len() as u32).min().unwrap_or(0);
    Page {
        answer: format!("A die of 6 sides shows {:.1} on average.", played[0].mean("number")),
        runs: (runs, runs, "die"),
        claims,
        rows: played.iter().flat_map(Played::rows).collect(),
        records,
        ..Page::default()
    }
}
