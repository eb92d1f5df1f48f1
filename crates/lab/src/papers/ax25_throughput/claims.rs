//! Claims: published throughputs, windows and statements beside ours, and what decides a miss.

use super::misses::{slowest_maker, why_statement, why_window};
use super::page::{Compared, Seen, bounds_bps, compared, seen};
use super::published::{self, THEORY};
use super::simulated::Simulated;
use super::statements::{Statement, statements};
use super::theory::{self, ABOUT};
use crate::claim::{Claim, Ours, Published, Rule};
use crate::format::figure;
use crate::record::{FigureKind, Record};

/// Tolerance of a throughput, as a share.
pub(super) const WITHIN: f64 = 0.25;
/// Tolerance of a window, frames.
pub(super) const WITHIN_FRAMES: f64 = 1.0;

/// Returns all claims of the paper.
pub(super) fn claims(simulated: &Simulated) -> Vec<Claim> {
    let of_theory =
        theory::records().into_iter().zip(THEORY).map(|(ours, (rate_bps, stated, words, place))| Claim {
            what: format!("theory at the largest window, {} bit/s: {words}", figure(rate_bps)),
            place: place.into(),
            published: Published::Point(stated),
            ours: Ours::Figures(vec![ours]),
            rule: Rule::Share(ABOUT),
            kind: FigureKind::ClosedForm,
            why: "by equations 1 to 4".into(),
        });
    let about_theory = theory::claims().into_iter().map(|(words, holds, found)| {
        statement(words, found, holds, FigureKind::ClosedForm, "by equations 1 to 4".into())
    });
    let throughputs = compared(simulated).into_iter().map(|compared| throughput(&compared));
    let windows = seen(simulated).into_iter().map(|seen| window(simulated, &seen));
    let of_text = statements(simulated).into_iter().map(|said| {
        let Statement { words, meaning, kind, holds, detail } = said;
        let why = if holds { String::new() } else { why_statement(simulated, words) };
        let why = if why.is_empty() { format!("interpreted as {meaning}") } else { why };
        let found = format!("Interpreted as {meaning}: {detail}");
        statement(words, found, holds, kind, why)
    });
    of_theory.chain(about_theory).chain(throughputs).chain(windows).chain(of_text).collect()
}

fn statement(what: &str, found: String, holds: bool, kind: FigureKind, why: String) -> Claim {
    Claim {
        what: what.into(),
        place: "statements of the text".into(),
        published: Published::Statement,
        ours: Ours::Words(found),
        rule: Rule::Criterion(Some(holds)),
        kind,
        why,
    }
}

fn range((from, to): (f64, f64)) -> Published {
    if from == to { Published::Point(from) } else { Published::Range(from, to) }
}

fn throughput(compared: &Compared) -> Claim {
    let row = &compared.row;
    let open = compared.open.map(|open| {
        format!("with all allowed constants {} to {}", figure(open.from.round()), figure(open.to.round()))
    });
    let reason = (!compared.holds()).then(|| slowest_maker(&row.cases, bounds_bps(row).0));
    Claim {
        what: format!("throughput (bit/s) of {} as {}, {} bit/s", row.who, row.role.word(), row.rate_bps),
        place: row.place.into(),
        published: range(row.effective_bps),
        ours: Ours::Figures(compared.each()),
        rule: Rule::Share(WITHIN),
        kind: compared.kind,
        why: open.into_iter().chain(reason).collect::<Vec<_>>().join("; "),
    }
}

fn window(simulated: &Simulated, seen: &Seen) -> Claim {
    let row = &seen.row;
    let (published, rule) = match row.claim {
        published::Claim::About(from, to) => (range((from, to)), Rule::Units(WITHIN_FRAMES)),
        published::Claim::LargerThan(frames) => (Published::Point(frames), Rule::Above),
    };
    let open = seen.open.map(|open| format!("with all allowed constants {:.1} to {:.1}", open.from, open.to));
    let reason = (!seen.holds).then(|| why_window(simulated, &row.case, seen.open));
    Claim {
        what: format!(
            "window (frames) of {} at {} MHz, {} bit/s: {}",
            row.who, row.clock, row.case.rate_bps, row.words
        ),
        place: seen.place().into(),
        published,
        ours: Ours::Figures(vec![Record::of(
            row.who,
            seen.params(),
            "window_frames",
            "frames",
            &[seen.mean],
        )]),
        rule,
        kind: seen.kind,
        why: open.into_iter().chain(reason).collect::<Vec<_>>().join("; "),
    }
}
