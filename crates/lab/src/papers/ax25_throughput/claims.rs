//! Claims: published figures and statements beside ours.

use super::PUBLISHED;
use super::figures::{case, figure, value};
use super::fleet::{Case, find};
use super::leeway::Range;
use super::simulated::Simulated;
use crate::claim::{Claim, Ours, Published, Rule, Selection, Statement, Verdict};
use crate::format::range;
use crate::record::{FigureKind, Params, Record};
use crate::stats::most;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Published figures and statements.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Publication {
    pub(super) figures: Vec<Stated>,
    statement: Vec<Statement>,
}

/// Published figure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stated {
    place: String,
    /// Firmware or controller.
    pub(super) who: String,
    /// Figure, with the wording where that is more than a number.
    what: String,
    /// Clock as in the text, MHz; only of windows.
    #[serde(default)]
    pub(super) clock: String,
    of: Selection,
    /// True if it is about the best of the transfers, not about each.
    #[serde(default)]
    best: bool,
    from: f64,
    to: Option<f64>,
    kind: FigureKind,
    rule: Rule,
    /// Reason of a miss.
    why: Option<String>,
}

/// Published figure beside the simulated ones.
pub(super) struct Compared {
    pub(super) row: &'static Stated,
    pub(super) figure: String,
    /// Transfers that it is about.
    pub(super) cases: Vec<Case>,
    /// Ours, or the best of ours.
    pub(super) samples: Vec<f64>,
    /// Range over all allowed constants; `None` where nothing is predicted.
    pub(super) open: Option<Range>,
    pub(super) claim: Claim,
}

impl Stated {
    /// Figure, and the transfers that it is about.
    fn cases(&self) -> (String, Vec<Case>) {
        let points = self.of.points();
        (figure(&points[0]).to_owned(), points.iter().map(case).collect())
    }

    /// Middle of the published range.
    pub(super) fn middle(&self) -> f64 {
        (self.from + self.to.unwrap_or(self.from)) / 2.0
    }

    /// Record of our figures, with this word in the name of the metric.
    fn record(&self, word: &str, samples: &[f64]) -> Record {
        let (figure, cases) = self.cases();
        let Case { role, rate_bps, window, machine, .. } = cases[0];
        let with_role = format!("{}, {}", self.who, role.word());
        let (subject, name, unit) = match &*figure {
            "window" => (self.who.clone(), "window", "frames"),
            "theory" => (self.who.clone(), "throughput_without_end", "bit/s"),
            _ => (with_role, "throughput", "bit/s"),
        };
        let at = Params::new().with("rate_bps", rate_bps);
        let at = match name {
            "window" => at.with("clock_mhz", find(machine).clock_mhz),
            _ => at.with("window", u32::from(window)),
        };
        let metric = format!("{name}{word}_{}", unit.replace('/', "_per_"));
        Record::of(subject, at, metric, unit, samples).with_kind(self.kind)
    }

    fn compared(&'static self, simulated: &Simulated) -> Compared {
        let (figure, cases) = self.cases();
        let all: Vec<f64> = self.of.points().iter().map(|point| value(point, simulated)).collect();
        let samples = if self.best { vec![most(all)] } else { all };
        let published = self.to.map_or(Published::Point(self.from), |to| Published::Range(self.from, to));
        let satisfies = |ours: f64| self.rule.accepts(ours, published);
        let is_predicted = self.kind == FigureKind::Predicted;
        let open = is_predicted.then(|| simulated.leeway.range(&cases, self.best, satisfies));
        let mut claim = Claim {
            what: self.what.clone(),
            place: self.place.clone(),
            published,
            ours: Ours::Figures(samples.iter().map(|sample| self.record("", &[*sample])).collect()),
            rule: self.rule,
            kind: self.kind,
            why: String::new(),
        };
        let decimals = usize::from(figure == "window");
        let mut why: Vec<String> = Vec::new();
        if let Some(Range { from, to, .. }) = open {
            why.push(format!("with all allowed constants {}", range([from, to], decimals)));
        }
        if claim.verdict() == Verdict::Misses {
            let unknown = || "no other reason is known".to_owned();
            why.push(self.why.clone().unwrap_or_else(unknown));
        }
        claim.why = why.join("; ");
        Compared { row: self, figure, cases, samples, open, claim }
    }
}

impl Compared {
    /// Returns our figure with the published one, and its range over all allowed constants.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        // A figure that only has to be larger than another one is no reference.
        let is_reference = self.row.rule != Rule::Above;
        let ours = is_reference
            .then(|| self.row.record("", &self.samples).with_reference(self.row.middle(), &*self.row.place));
        let open = self.open.into_iter().flat_map(|Range { from, to, .. }| {
            [("_least_allowed", from), ("_most_allowed", to)].map(|(word, end)| self.row.record(word, &[end]))
        });
        ours.into_iter().chain(open)
    }
}

/// Returns the transfers with predictions of which the text gives figures.
pub(super) fn predicted() -> BTreeSet<Case> {
    let rows = PUBLISHED.figures.iter().filter(|row| row.kind == FigureKind::Predicted);
    rows.flat_map(|row| row.cases().1).collect()
}

/// Compares all published figures with the simulated ones.
pub(super) fn compare(simulated: &Simulated) -> Vec<Compared> {
    PUBLISHED.figures.iter().map(|row| row.compared(simulated)).collect()
}

pub(super) fn claims(simulated: &Simulated, compared: &[Compared]) -> Vec<Claim> {
    let figures = compared.iter().map(|compared| compared.claim.clone());
    let place = "statements of the text";
    let statements = PUBLISHED.statement.iter();
    figures.chain(statements.map(|one| one.claim(place, |point| value(point, simulated)))).collect()
}
