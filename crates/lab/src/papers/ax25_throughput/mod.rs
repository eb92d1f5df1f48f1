//! `paper ax25-throughput`: a published evaluation of connected-mode AX.25 with different TNCs.
//!
//! "Effective throughput of AX.25 protocol", B. Zieliński, Bull. Pol. Ac.: Tech. 61(3), 2013: a model in five
//! equations, and measured throughputs and windows of fifteen controllers and their firmware, connected by wire. The
//! text has no table of either. Its statements are compared with the model and with [simulated
//! controllers](longwire_sim::Controller): the firmware constants come from the statements about 1200 bit/s and predict
//! the rest.
//!
//! `published.toml` has the published figures and statements, `simulation.toml` the simulated transfers.

mod calibrate;
mod claims;
mod effects;
mod figures;
mod fleet;
mod leeway;
mod page;
mod simulated;
#[cfg(test)]
mod tests;
mod theory;

use super::text::{Text, data};
use super::{Page, Paper};
use crate::bench::Bench;
use crate::claim::{self, Check, Claim, Published, Selection, Verdict};
use crate::record::FigureKind;
use claims::{Compared, Publication};
use page::Shown;
use serde::Deserialize;
use simulated::Simulated;
use std::sync::LazyLock;

/// The evaluation.
pub const PAPER: Paper = Paper {
    name: "ax25-throughput",
    title: "Throughput of connected-mode AX.25: a published evaluation, reproduced",
    about: "Throughput of connected-mode AX.25 with different packet-radio controllers",
    citation: "B. Zieliński: Effective throughput of AX.25 protocol, Bull. Pol. Ac.: Tech. 61(3), 2013",
    play,
};

/// Simulated transfers, and the plots of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Simulation {
    played: Vec<Selection>,
    constraints: Vec<Check>,
    machine_curves: Vec<Shown>,
    firmware_curves: Vec<Shown>,
    histograms: Vec<Shown>,
    window_lengths: Vec<Shown>,
    throughput_lengths: Vec<Shown>,
}

static SIMULATION: LazyLock<Simulation> = LazyLock::new(|| data(include_str!("simulation.toml")));
static PUBLISHED: LazyLock<Publication> = LazyLock::new(|| data(include_str!("published.toml")));

fn play(bench: &Bench<'_>) -> Page {
    let text = Text::read(include_str!("text.toml"));
    let simulated = Simulated::play(bench, claims::predicted());
    let others = bench.besides(|| effects::effects(&simulated)).unwrap_or_default();
    let compared = claims::compare(&simulated);
    let claims = claims::claims(&simulated, &compared);
    let of_compared = compared.iter().flat_map(Compared::records);
    Page {
        answer: answer(&compared, &claims, bench.progress.left_out() == 0),
        runs: (simulated.runs, simulated.runs, "transfer"),
        sections: page::sections(&text, &simulated, &compared),
        assumptions: text.assumptions(theory::effects().into_iter().chain(others)),
        records: theory::records().into_iter().chain(of_compared).chain(simulated.records()).collect(),
        rows: simulated.rows(),
        claims,
        ..Page::default()
    }
}

fn answer(compared: &[Compared], claims: &[Claim], is_whole: bool) -> String {
    let predicted = |is_statement: bool| {
        let of_kind = claims.iter().filter(|claim| claim.kind == FigureKind::Predicted);
        claim::count(of_kind.filter(|claim| (claim.published == Published::Statement) == is_statement))
    };
    let missed = || compared.iter().filter(|compared| compared.claim.verdict() == Verdict::Misses);
    let reach = match is_whole {
        true => missed().filter(|compared| compared.open.is_some_and(|open| open.hits)).count().to_string(),
        false => "an unknown number".to_owned(),
    };
    format!(
        "Constants from the statements about 1200 bit/s predict {} other throughputs and windows within their \
         tolerance, and {} other statements hold. Of {} figures that miss, {reach} would match with other allowed \
         constants.",
        predicted(false),
        predicted(true),
        missed().count()
    )
}
