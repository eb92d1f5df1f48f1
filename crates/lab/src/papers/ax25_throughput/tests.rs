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

fn few() -> (Vec<Compared>, Vec<Claim>) {
    let simulated = with(2, |bench| Simulated::play(bench, claims::predicted()));
    let compared = claims::compare(&simulated);
    let claims = claims::claims(&simulated, &compared);
    (compared, claims)
}

#[test]
fn the_statements_on_theory_hold() {
    let (_, claims) = few();
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
    let (compared, claims) = few();
    let missed = |claim: &Claim| claim.verdict() == Verdict::Misses;
    let missed_at = |figure: &str, at: &dyn Fn(&Compared) -> String| -> Vec<String> {
        let missed = compared.iter().filter(|compared| compared.figure == figure && missed(&compared.claim));
        missed.map(|compared| format!("{} at {}", compared.row.who, at(compared))).collect()
    };
    let throughputs = missed_at("throughput", &|compared| compared.cases[0].rate_bps.to_string());
    let windows = missed_at("window", &|compared| format!("{} MHz", compared.row.clock));
    let statements = claims.iter().filter(|claim| claim.published == Published::Statement);
    let statements: Vec<&str> = statements.filter(|claim| missed(claim)).map(|claim| &*claim.what).collect();
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
    let missed: Vec<Claim> = few().1.into_iter().filter(missed).collect();
    assert_eq!(missed.len(), 1 + 4 + 8, "as in the list above");
    for claim in missed {
        assert!(claim.why.len() > 50 && !claim.why.contains("NaN"), "{}: {}", claim.what, claim.why);
    }
}

/// The constants used are among those of the ranges.
#[test]
fn what_is_predicted_is_within_its_range() {
    for Compared { row, figure, samples, open, claim, .. } in few().0 {
        let Some(open) = open else { continue };
        let (least, most) =
            (samples.iter().copied().fold(f64::MAX, f64::min), samples.iter().copied().fold(0.0, f64::max));
        assert!(figure != "window" || open.from <= least && most <= open.to, "{} {}", row.who, row.clock);
        assert!(open.hits || claim.verdict() != Verdict::Holds, "{}", row.who);
    }
}

#[test]
fn what_is_called_calibrated_is_what_constants_are_fitted_to() {
    for compared in few().0.iter().filter(|compared| compared.figure != "theory") {
        let fitted = compared.cases.iter().all(|case| calibrate::kind(case) == FigureKind::Calibrated);
        let is_calibrated = compared.claim.kind == FigureKind::Calibrated;
        assert_eq!(is_calibrated, fitted, "{}", compared.claim.what);
    }
}

/// Simulated figures of the page with four runs each.
#[test]
fn the_figures_of_the_page() {
    let words = |(from, to): (f64, f64)| match figure(from.round()) == figure(to.round()) {
        true => figure(from.round()),
        false => format!("{} to {}", figure(from.round()), figure(to.round())),
    };
    let (compared, _) = few();
    let of = |figure: &'static str| compared.iter().filter(move |compared| compared.figure == figure);
    let windows = of("window").map(|Compared { row, cases, samples, open, .. }| {
        let open =
            open.map(|open| format!(", {:.1} to {:.1} allowed", open.from, open.to)).unwrap_or_default();
        let mean = samples[0];
        format!("{} at {} MHz, {} bit/s: {mean:.1} frames{open}\n", row.who, row.clock, cases[0].rate_bps)
    });
    let throughputs = of("throughput").map(|Compared { row, cases, samples, open, .. }| {
        let ends =
            (samples.iter().copied().fold(f64::MAX, f64::min), samples.iter().copied().fold(0.0, f64::max));
        let ours = words(ends).replace(',', "");
        let open =
            open.map(|open| format!(", {:.0} to {:.0} allowed", open.from, open.to)).unwrap_or_default();
        format!("{} as {}, {} bit/s: {ours}{open}\n", row.who, cases[0].role.word(), cases[0].rate_bps)
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
