//! Tests of the reproduced statements and of its determinism.

use super::*;
use crate::claim::{Claim, Verdict};
use crate::format::figure;
use crate::papers::reproduce;
use crate::progress::Progress;
use crate::record::FigureKind;

fn with<R>(threads: usize, play: impl Fn(&Bench<'_>) -> R) -> R {
    play(&Bench { runs: Some(4), threads, ..Bench::new(&Progress::new()) })
}

fn few() -> Simulated {
    with(2, Simulated::play)
}

#[test]
fn the_statements_on_theory_hold() {
    let claims = claims::claims(&few());
    for claim in claims.iter().filter(|claim| claim.kind == FigureKind::ClosedForm) {
        assert_eq!(claim.verdict(), Verdict::Holds, "{claim:?}");
    }
    assert_eq!(claims.iter().filter(|claim| claim.kind == FigureKind::ClosedForm).count(), 6);
}

#[test]
fn the_serial_lines_take_what_equation_5_says() {
    let times = theory::serial_times().map(|(_, seconds)| format!("{seconds:.3}"));
    assert_eq!(times, ["0.533", "0.267", "0.089", "0.044"]);
}

/// Names all misses; everything else on the page holds.
#[test]
fn what_is_published_comes_out_but_for_these() {
    let simulated = few();
    let throughputs: Vec<String> = page::compared(&simulated)
        .iter()
        .filter(|compared| !compared.holds())
        .map(|compared| format!("{} at {}", compared.row.who, compared.row.rate_bps))
        .collect();
    let windows: Vec<String> = page::seen(&simulated)
        .iter()
        .filter(|seen| !seen.holds)
        .map(|seen| format!("{} at {} MHz", seen.row.who, seen.row.clock))
        .collect();
    let statements: Vec<&str> = statements::statements(&simulated)
        .iter()
        .filter(|statement| !statement.holds)
        .map(|statement| statement.words)
        .collect();
    assert_eq!(
        (&throughputs[..], &windows[..], &statements[..]),
        (
            &["Spirit-2 and KPC-9612+ at 38400"].map(String::from)[..],
            &["TF 2.1 at 10 MHz", "TF 2.1 at 20 MHz", "TF 2.3 at 10 MHz", "TF 2.3 at 20 MHz"]
                .map(String::from)[..],
            &[
                "Senders at 9600: TF 2.1 is the slowest at either clock, TF 2.3 a little better.",
                "MFJ and Spirit achieve similar efficiency regardless of the clock.",
                "The fastest receivers are TF 2.1 and Spirit, both at 20 MHz.",
                "Surprisingly, TF 2.7 receives better at the slower clock.",
                "TNC3 and TNC7 perform worse than the others for k < 7.",
                "At 9600 the slowest is TNC2D, the fastest DLC7.",
                "At 38,400 Spirit-2 and KPC-9612+ are limited alike; TNC3 is above them, then TNC7, then DLC7.",
                "TNC3 and TNC7 use the full window, and a smaller one only from 150 kbit/s on.",
            ][..]
        )
    );
}

#[test]
fn whatever_misses_has_a_reason() {
    let missed = |claim: &Claim| claim.verdict() == Verdict::Misses;
    let missed: Vec<Claim> = claims::claims(&few()).into_iter().filter(missed).collect();
    assert_eq!(missed.len(), 1 + 4 + 8, "as in the list above");
    for claim in missed {
        assert!(claim.why.len() > 50 && !claim.why.contains("NaN"), "{}: {}", claim.what, claim.why);
    }
}

/// The constants used are among those of the ranges.
#[test]
fn what_is_predicted_is_within_its_range() {
    let simulated = few();
    for seen in page::seen(&simulated) {
        let Some(open) = seen.open else { continue };
        assert!(open.from <= seen.mean && seen.mean <= open.to, "{} {}", seen.row.who, seen.row.clock);
        assert!(open.hits || !seen.holds);
    }
    for compared in page::compared(&simulated) {
        assert!(compared.open.is_none_or(|open| open.hits || !compared.holds()), "{}", compared.row.who);
    }
}

/// Simulated figures of the page with four runs each.
#[test]
fn the_figures_of_the_page() {
    let words = |(from, to): (f64, f64)| match figure(from.round()) == figure(to.round()) {
        true => figure(from.round()),
        false => format!("{} to {}", figure(from.round()), figure(to.round())),
    };
    let simulated = few();
    let windows = page::seen(&simulated).into_iter().map(|seen| {
        let page::Seen { row, mean, open, .. } = seen;
        let open =
            open.map(|open| format!(", {:.1} to {:.1} allowed", open.from, open.to)).unwrap_or_default();
        format!("{} at {} MHz, {} bit/s: {mean:.1} frames{open}\n", row.who, row.clock, row.case.rate_bps)
    });
    let throughputs = page::compared(&simulated).into_iter().map(|compared| {
        let (row, ours) = (&compared.row, words(compared.ours_bps).replace(',', ""));
        let open = compared.open;
        let open =
            open.map(|open| format!(", {:.0} to {:.0} allowed", open.from, open.to)).unwrap_or_default();
        format!("{} as {}, {} bit/s: {ours}{open}\n", row.who, row.role.word(), row.rate_bps)
    });
    let found: String = windows.chain(throughputs).collect();
    assert_eq!(found, include_str!("figures.txt"), "\n{found}");
}

#[test]
fn constants_are_from_1200_bit_per_s_alone() {
    let finding = with(2, |bench| reproduce(&PAPER, bench));
    let mut kinds = std::collections::BTreeSet::new();
    for record in &finding.experiment.records {
        let at = record.params.get("rate_bps").map(ToString::to_string);
        assert!(record.kind != FigureKind::Calibrated || at.as_deref() == Some("1200"), "{record:?}");
        kinds.insert(record.kind.to_string());
    }
    assert_eq!(kinds.into_iter().collect::<Vec<String>>(), ["calibrated", "closed-form", "predicted"]);
}

#[test]
fn the_same_seed_gives_the_same_page_on_any_number_of_threads() {
    let page = |threads| {
        let finding = with(threads, |bench| reproduce(&PAPER, bench));
        (finding.report.html(&finding.experiment), finding.experiment)
    };
    let one = page(1);
    assert!(one == page(3));
    assert!(one.0.contains("Figure 15") && !one.0.contains("NaN"));
}
