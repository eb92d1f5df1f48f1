//! Page: the claims, the readings behind them, and the plots of the paper.

use super::closed::{closed_form, effects, entries, readings, records, time_s, with_turnaround};
use super::trials::{Fit, Played, Simulated};
use super::{ALL, BUNDLES, FILE_BYTES, MODEL, MOST, NEAR, PUBLISHED, RATES_BPS, ROWS, Row};
use crate::claim::{self, Claim, Ours, Published, Rule, Verdict};
use crate::format::figure;
use crate::model::ax25::Model;
use crate::papers::Page;
use crate::papers::text::Text;
use crate::record::{FigureKind, Record};
use crate::report::{Axis, Cell, Column, Plot, PlotSeries, Point, Table};

/// Tolerance of a simulated transfer compared with the closed form with the same parameters.
const SAME: f64 = 0.02;

/// Returns all figures, those with a published one compared with it, and all claims.
pub(super) fn records_and_claims(simulated: &Simulated) -> (Vec<Record>, Vec<Claim>) {
    let played = simulated.main().flat_map(Played::records);
    let mut records: Vec<Record> = records().into_iter().chain(played).collect();
    records.extend(simulated.beyond.records());
    let mut claims = claim::attach(PUBLISHED, &mut records);
    let model = closed_form(&simulated.file);
    claims.extend(ROWS.iter().zip(&simulated.raw).map(|(row, raw)| Claim {
        what: format!("raw AX.25, simulated (s), {} bit/s, k = {}", row.rate_bps, row.window),
        place: "closed form of the same channel".into(),
        published: Published::Point(time_s(&model, row)),
        ours: Ours::Figures(raw.record("transfer_s").into_iter().collect()),
        rule: Rule::Share(SAME),
        kind: FigureKind::Predicted,
        why: "waits for the channel are random".into(),
    }));
    claims.push(order(simulated));
    claims.extend(simulated.beyond.claims());
    (records, claims)
}

/// Claims that the transfer takes least time in the model and most by TCP/IP.
fn order(simulated: &Simulated) -> Claim {
    let is_ordered = |(at, row): (usize, &Row)| {
        let [bundles_s, tcp_s] = [&simulated.bundles, &simulated.tcp].map(|all| all[at].mean("transfer_s"));
        time_s(&Model::ronan_2011(), row) < bundles_s && bundles_s < tcp_s
    };
    let ordered = ROWS.iter().enumerate().filter(|row| is_ordered(*row)).count();
    Claim {
        what: "Transfers take longer by AX.25-CL than in the model, and longer by TCP/IP than by AX.25-CL."
            .into(),
        place: "Tables V and VII".into(),
        published: Published::Statement,
        ours: Ours::Words(format!("{ordered} of {} rows", ROWS.len())),
        rule: Rule::Criterion(Some(ordered == ROWS.len())),
        kind: FigureKind::Predicted,
        why: "all rows have to".into(),
    }
}

/// Counts the claims about a case that hold, of those that are judged.
fn held(claims: &[Claim], case: &str) -> String {
    let is_about = |claim: &&Claim| match &claim.ours {
        Ours::Figures(records) => records.iter().any(|record| record.case == case),
        Ours::Words(_) => false,
    };
    claim::count(claims.iter().filter(|claim| claim.verdict() != Verdict::NotJudged).filter(is_about))
}

/// Creates the page.
pub(super) fn page(simulated: &Simulated) -> Page {
    let (records, claims) = records_and_claims(simulated);
    let text = Text::read(include_str!("text.toml"));
    let runs = || simulated.main().map(|played| played.runs.len() as u32);
    let beyond = &simulated.beyond;
    let mut assumptions = text.assumption.clone();
    for (assumption, effect) in assumptions.iter_mut().zip(effects()) {
        assumption.effect = Some(effect);
    }
    Page {
        answer: format!(
            "{} entries of the model's tables are reproduced to the printed digit. With a turnaround from one row, \
             {:.3} s in the closed form and {:.3} s simulated, {} and {} times of AX.25-CL are within 13 %, and {} of \
             TCP/IP within 20 %.",
            held(&claims, MODEL),
            with_turnaround().turnaround_s,
            simulated.turn_s,
            held(&claims, "model ronan-2011 with turnaround"),
            held(&claims, BUNDLES),
            held(&claims, super::TCP),
        ),
        runs: (runs().min().unwrap_or(0), runs().max().unwrap_or(0), "row"),
        facts: vec![("file".into(), format!("{} bytes", figure(FILE_BYTES as f64)))],
        sections: vec![
            text.section("model").with(reading_table()),
            text.section("raw"),
            text.section("convergence").shown(fit_table(
                "AX.25-CL: possible test setups between hosts and channel, each fitted to the first row, up to ten \
                 runs per row",
                "test setup",
                &[MOST, ALL],
                &simulated.rigs,
            )),
            text.section("tcp")
                .shown(fit_table(
                    "TCP/IP: possible definitions of the measured time and their deviation, up to ten runs per row",
                    "reading",
                    &[NEAR],
                    &simulated.readings,
                ))
                .with(plot(simulated, RATES_BPS[0], "Figure 4: transfer times at 1200 bit/s"))
                .with(plot(simulated, RATES_BPS[1], "Figure 5: transfer times at 9600 bit/s")),
            text.section("overhead").shown(beyond.cost_table()),
            text.section("losses").shown(beyond.loss_table()).with_all(RATES_BPS.map(|rate| beyond.loss_plot(rate))),
            text.section("singles").shown(beyond.single_table()),
        ],
        rows: simulated.main().flat_map(Played::rows).collect(),
        assumptions,
        claims,
        records,
        ..Page::default()
    }
}

impl Simulated {
    /// Iterates over the cases that are compared with published times.
    fn main(&self) -> impl Iterator<Item = &Played> {
        self.raw.iter().chain(&self.bundles).chain(&self.tcp)
    }
}

fn reading_table() -> Table {
    let columns = [Column::text("reading"), Column::number("entries of 14", "")];
    let mut table = Table::new("Table entries reproduced by each reading", columns);
    for (words, model) in readings() {
        table.row([Cell::text(words), Cell::number(entries(&model) as f64)]);
    }
    table
}

/// Table of test setups or readings, with the number of rows within these shares of the published times.
fn fit_table(caption: &str, what: &str, bounds: &[f64], fits: &[Fit]) -> Table {
    let within = |bound: &f64| Column::number(format!("rows within {:.0} %", 100.0 * bound), "");
    let head = [Column::text(what), Column::number("rows", ""), Column::number("turnaround", "s")];
    let tail = [
        Column::number("deviation of the shortest time from the published one", ""),
        Column::number("deviation of the longest", ""),
        Column::number("9,600 bit/s, k = 4", ""),
    ];
    let mut table = Table::new(caption, head.into_iter().chain(bounds.iter().map(within)).chain(tail));
    for fit in fits {
        let errors = || fit.errors.iter().copied();
        let head =
            [Cell::text(fit.words), Cell::number(errors().count() as f64), Cell::precise(fit.turn_s, 3)];
        let within = bounds.iter().map(|bound| Cell::number(fit.rows_within(*bound) as f64));
        let of_row = fit.errors[fit.errors.len() - 4];
        let tail = [errors().fold(f64::MAX, f64::min), errors().fold(f64::MIN, f64::max), of_row];
        table.row(head.into_iter().chain(within).chain(tail.map(Cell::percent)));
    }
    table
}

fn plot(simulated: &Simulated, rate_bps: f64, title: &str) -> Plot {
    let rows = || ROWS.iter().filter(move |row| row.rate_bps == rate_bps);
    let points =
        |time: &dyn Fn(&Row) -> f64| rows().map(|row| Point::new(f64::from(row.window), time(row))).collect();
    let played = |all: &[Played]| {
        let here = all.iter().filter(|played| played.param("rate_bps") == rate_bps);
        let point = |played: &Played| Some(Point::of(played.param("window"), &played.record("transfer_s")?));
        here.filter_map(point).collect()
    };
    let (model, turning) = (Model::ronan_2011(), with_turnaround());
    Plot::new(title, Axis::new("window k", "frames"), Axis::new("transfer time", "s").from_zero())
        .with(PlotSeries::new("model", points(&|row| time_s(&model, row))).styled(0))
        .with(PlotSeries::new("model with turnaround", points(&|row| time_s(&turning, row))).styled(1))
        .with(PlotSeries::new("AX.25-CL, simulated", played(&simulated.bundles)).styled(2))
        .with(PlotSeries::new("TCP/IP, simulated", played(&simulated.tcp)).styled(3))
        .with(PlotSeries::new("AX.25-CL, published", points(&|row| row.convergence_s)).published().styled(2))
        .with(PlotSeries::new("TCP/IP, published", points(&|row| row.tcp_s)).published().styled(3))
}
