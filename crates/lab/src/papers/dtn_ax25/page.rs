//! Page: the claims, the readings behind them, and the plots of the paper.

use super::closed::{closed_form, effects, entries, readings, records, time_s, with_turnaround};
use super::trials::{Fit, Played, Simulated};
use super::{BUNDLES, FILE_BYTES, MODEL, PUBLISHED, RATES_BPS, RAW, ROWS, Row, TCP, TURNING, beyond, params};
use crate::claim::{self, Claim, Ours, Published, Rule};
use crate::format::figure;
use crate::papers::Page;
use crate::papers::figures::Figures;
use crate::papers::text::Text;
use crate::record::{FigureKind, Record};
use crate::report::{Cell, Plot, Table};

/// Returns all figures, those with a published one compared with it, and all claims.
pub(super) fn records_and_claims(simulated: &Simulated, text: &Text) -> (Vec<Record>, Vec<Claim>) {
    let played = simulated.played.iter().flat_map(Played::records);
    let mut records: Vec<Record> = records().into_iter().chain(played).collect();
    records.extend(simulated.beyond.iter().cloned());
    let mut claims = claim::attach(PUBLISHED, &mut records);
    let (model, figures) = (closed_form(&simulated.file), Figures(&records));
    let raw = |row: &Row| figures.at(RAW, "transfer_s", &params(row).to_string()).cloned();
    claims.extend(ROWS.iter().map(|row| Claim {
        what: format!("raw AX.25, simulated (s), {} bit/s, k = {}", row.rate_bps, row.window),
        place: "closed form of the same channel".into(),
        published: Published::Point(time_s(&model, row)),
        ours: Ours::Figures(raw(row).into_iter().collect()),
        rule: Rule::Share(0.02),
        kind: FigureKind::Predicted,
        why: "waits for the channel are random".into(),
    }));
    // The transfer takes least time in the model and most by TCP/IP.
    let is_ordered = |row: &&Row| {
        let at = params(row).to_string();
        let times_s = [MODEL, BUNDLES, TCP].map(|case| figures.mean(case, "transfer_s", &at));
        times_s.is_sorted_by(|a, b| a < b)
    };
    let ordered = ROWS.iter().filter(is_ordered).count();
    let found = format!("{ordered} of {} rows", ROWS.len());
    claims.push(text.statement("order", Some(ordered == ROWS.len()), found));
    claims.extend(beyond::claims(figures));
    (records, claims)
}

pub(super) fn page(simulated: &Simulated) -> Page {
    let text = &Text::read(include_str!("text.toml"));
    let (records, claims) = records_and_claims(simulated, text);
    let figures = Figures(&records);
    let runs = || simulated.played.iter().map(|played| played.runs.len() as u32);
    let (closed_s, simulated_s) = (with_turnaround().turnaround_s, simulated.turn_s);
    let turnaround = format!("{closed_s:.3} s in the closed form, {simulated_s:.3} s simulated");
    let [model, closed_form, bundles, tcp] =
        [MODEL, TURNING, BUNDLES, TCP].map(|case| claim::count_of(&claims, case));
    let row = |(name, model)| vec![Cell::text(text.words(name, &[])), Cell::number(entries(&model) as f64)];
    Page {
        answer: format!(
            "{model} entries of the model are as printed. With a turnaround from one row, {closed_form} (closed form) \
             and {bundles} (simulated) AX.25-CL times are within 13 %, {tcp} of TCP/IP within 20 %."
        ),
        runs: (runs().min().unwrap_or(0), runs().max().unwrap_or(0), "row"),
        facts: vec![
            ("file".into(), format!("{} bytes", figure(FILE_BYTES as f64))),
            ("turnaround".into(), turnaround),
        ],
        sections: vec![
            text.section("model").with(text.table("model", readings().map(row))),
            text.section("raw"),
            text.section("convergence").shown(fit_table(text, "rigs", &[0.10, 0.13], &simulated.rigs)),
            text.section("tcp")
                .shown(fit_table(text, "readings", &[0.20], &simulated.readings))
                .with_all(RATES_BPS.map(|rate_bps| plot(figures, text, rate_bps))),
            text.section("overhead").shown(beyond::cost_table(figures, text)),
            text.section("losses")
                .shown(beyond::loss_table(figures, text))
                .with_all(RATES_BPS.map(|rate_bps| beyond::loss_plot(figures, text, rate_bps))),
            text.section("singles").shown(beyond::single_table(figures, text)),
        ],
        rows: simulated.played.iter().flat_map(Played::rows).collect(),
        assumptions: text.assumptions(effects(text).map(|effect| vec![effect])),
        claims,
        records,
        ..Page::default()
    }
}

/// Table of test setups or readings, with the number of rows within these shares of the published times.
fn fit_table(text: &Text, name: &str, bounds: &[f64], fits: &[Fit]) -> Table {
    let row = |fit: &Fit| {
        let errors = || fit.errors.iter().copied();
        let count = |rows: usize| Cell::number(rows as f64);
        let of_row = fit.errors[fit.errors.len() - 4];
        let tail = [errors().fold(f64::MAX, f64::min), errors().fold(f64::MIN, f64::max), of_row];
        let head =
            [Cell::text(text.words(fit.name, &[])), count(fit.errors.len()), Cell::precise(fit.turn_s, 3)];
        let within = bounds.iter().map(|bound| count(fit.rows_within(*bound)));
        head.into_iter().chain(within).chain(tail.map(Cell::percent)).collect()
    };
    text.table(name, fits.iter().map(row))
}

/// Figures 4 and 5.
fn plot(figures: Figures<'_>, text: &Text, rate_bps: f64) -> Plot {
    let at = format!("rate_bps={rate_bps} window=* file_bytes={FILE_BYTES}");
    let plot = text.plot(&format!("rate-{rate_bps}"));
    let ours = [("model", MODEL), ("model with turnaround", TURNING), (BUNDLES, BUNDLES), (TCP, TCP)];
    let plot = ours.into_iter().enumerate().fold(plot, |plot, (style, (name, case))| {
        plot.with(figures.curve(name, case, "transfer_s", &at).styled(style))
    });
    let published = [("AX.25-CL, published", BUNDLES), ("TCP/IP, published", TCP)];
    published.into_iter().enumerate().fold(plot, |plot, (style, (name, case))| {
        plot.with(figures.published(name, case, "transfer_s", &at).styled(style + 2))
    })
}
