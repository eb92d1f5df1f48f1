//! Published figures and statements beside ours, and whether they hold.
//!
//! A claim is judged in one place, by the rule that stands next to the published figure. Where a claim is missed, not
//! judged or cannot be judged, it says why.

mod published;
mod statement;
#[cfg(test)]
mod tests;
pub mod trend;

#[cfg(test)]
pub(crate) use published::published_figures;
pub(crate) use published::rows;
pub use published::{attach, published};
pub use statement::{Check, Compared, Comparison, Selection, Statement};

use crate::format::figure;
use crate::record::{FigureKind, Record, distinct, number};
pub use crate::report::Verdict;
use crate::report::{Cell, Column, Scatter, ScatterPoint, Table, Tone};

/// Published figure or statement, with the result of our runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Published figure or statement, in words.
    pub what: String,
    /// Place of publication, such as `Table V`.
    pub place: String,
    /// Published figure.
    pub published: Published,
    /// Our result.
    pub ours: Ours,
    /// Condition under which the claim holds.
    pub rule: Rule,
    /// Relation of our result to the published one.
    pub kind: FigureKind,
    /// Reason of a miss, or the reason why the claim is not judged. Empty only for a claim that holds.
    pub why: String,
}

/// Published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// One figure.
    Point(f64),
    /// Lower and upper end.
    Range(f64, f64),
    /// No figure: what is published is a statement.
    Statement,
}

/// Our result.
#[derive(Clone, Debug, PartialEq)]
pub enum Ours {
    /// One or several figures, each of which has to satisfy the rule.
    Figures(Vec<Record>),
    /// Description of what was found.
    Words(String),
}

/// Condition under which a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum Rule {
    /// Largest distance from the published figure, as a share of it: 0.1 is 10 %.
    Share(f64),
    /// Largest distance from the published figure, in its unit.
    Units(f64),
    /// Equality after rounding to this number of decimals.
    Printed(usize),
    /// Ours is lower than the published figure.
    Below,
    /// Ours is higher than the published figure.
    Above,
    /// Result of a criterion of the experiment; `None` with too few runs to judge.
    Criterion(Option<bool>),
    /// Not judged.
    NotJudged,
}

impl Claim {
    /// Judges the claim.
    pub fn verdict(&self) -> Verdict {
        let holds = match (self.rule, &self.ours) {
            (Rule::NotJudged, _) => return Verdict::NotJudged,
            (Rule::Criterion(None), _) => return Verdict::CannotTell,
            (Rule::Criterion(Some(holds)), _) => holds,
            (_, Ours::Words(_)) => return Verdict::NotJudged,
            (rule, Ours::Figures(records)) => {
                records.iter().all(|record| rule.accepts(record.mean, self.published))
            }
        };
        if holds { Verdict::Holds } else { Verdict::Misses }
    }

    /// Describes the verdict: the rule, and why a claim is missed or not judged.
    fn verdict_cell(&self) -> Cell {
        let why = |words: String| {
            if self.why.is_empty() { words } else { format!("{words}: {}", self.why) }
        };
        let (bound, holds, misses) = match self.rule {
            Rule::Share(share) => (number(share * 100.0) + " %", "within", "outside"),
            Rule::Units(units) => (number(units), "within", "outside"),
            Rule::Printed(0) => ("as printed".into(), "yes", "no"),
            Rule::Printed(decimals) => (format!("to {decimals} decimals"), "yes", "no"),
            Rule::Below => ("below".into(), "yes", "no"),
            Rule::Above => ("above".into(), "yes", "no"),
            Rule::Criterion(_) | Rule::NotJudged => (String::new(), "yes", "no"),
        };
        let phrase = |word: &str| format!("{word} {bound}").trim_end().to_owned();
        match self.verdict() {
            Verdict::Holds => Cell::text(phrase(holds)).toned(Tone::Good),
            Verdict::Misses => Cell::text(why(phrase(misses))).toned(Tone::Bad),
            Verdict::CannotTell => Cell::text(why("too few runs".into())).toned(Tone::Faint),
            Verdict::NotJudged => Cell::text(why("not judged".into())).toned(Tone::Faint),
        }
    }

    /// Our mean divided by the published figure; `None` without one figure on each side.
    pub fn ratio(&self) -> Option<f64> {
        match (&self.ours, self.published) {
            (Ours::Figures(records), Published::Point(published)) => match &records[..] {
                [record] if published != 0.0 => Some(record.mean / published),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Rule {
    /// Returns true if our figure satisfies the rule; false for a rule that does not compare figures.
    pub fn accepts(self, ours: f64, published: Published) -> bool {
        let (from, to) = match published {
            Published::Point(point) => (point, point),
            Published::Range(from, to) => (from, to),
            Published::Statement => return false,
        };
        let (bound, distance) = if ours < from { (from, from - ours) } else { (to, (ours - to).max(0.0)) };
        match self {
            Rule::Share(share) => distance <= share * bound.abs(),
            Rule::Units(units) => distance <= units,
            Rule::Printed(decimals) => format!("{ours:.decimals$}") == format!("{bound:.decimals$}"),
            Rule::Below => ours < to,
            Rule::Above => ours > from,
            Rule::Criterion(_) | Rule::NotJudged => false,
        }
    }
}

/// Describes how many claims hold: `12 of 13`, of those that are judged.
pub fn count<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> String {
    let verdicts = || [Verdict::Holds, Verdict::Misses];
    let judged: Vec<Verdict> =
        claims.into_iter().map(Claim::verdict).filter(|verdict| verdicts().contains(verdict)).collect();
    let holding = judged.iter().filter(|verdict| **verdict == Verdict::Holds).count();
    format!("{holding} of {}", judged.len())
}

/// Describes how many claims about figures of this case hold.
pub fn count_of(claims: &[Claim], case: &str) -> String {
    let is_about = |claim: &&Claim| match &claim.ours {
        Ours::Figures(records) => records.iter().any(|record| record.case == case),
        Ours::Words(_) => false,
    };
    count(claims.iter().filter(is_about))
}

/// Creates the table of the places of publication, with the number of claims that hold.
pub fn by_place(claims: &[Claim]) -> Table {
    let caption = format!("Claims: {} of those judged hold", count(claims));
    let mut table = Table::of(caption, "source|# hold|# miss|# too few runs|# not judged");
    for place in distinct(claims.iter().map(|claim| claim.place.as_str())) {
        let number = |verdict: Verdict| {
            let here = claims.iter().filter(|claim| claim.place == place && claim.verdict() == verdict);
            match (here.count(), verdict) {
                (0, _) => Cell::empty(),
                (count, Verdict::Misses) => Cell::number(count as f64).toned(Tone::Bad),
                (count, _) => Cell::number(count as f64),
            }
        };
        let verdicts = [Verdict::Holds, Verdict::Misses, Verdict::CannotTell, Verdict::NotJudged];
        table.row([Cell::text(place)].into_iter().chain(verdicts.map(number)));
    }
    table
}

/// Creates the table of the claims that do not hold; `None` if there are none.
pub fn misses(claims: &[Claim]) -> Option<Table> {
    let missed: Vec<Claim> =
        claims.iter().filter(|claim| claim.verdict() == Verdict::Misses).cloned().collect();
    (!missed.is_empty()).then(|| table("Claims that do not hold", &missed))
}

/// Creates a chart of our figures against the published ones; `None` with fewer than two. A claim has a place in it if
/// it is about one positive figure.
pub fn picture(claims: &[Claim]) -> Option<Scatter> {
    let point = |claim: &Claim| {
        let (Ours::Figures(records), Published::Point(published)) = (&claim.ours, claim.published) else {
            return None;
        };
        let [record] = &records[..] else { return None };
        (published > 0.0 && record.mean > 0.0).then(|| ScatterPoint {
            what: format!("{}: {}", claim.place, claim.what),
            published,
            ours: record.mean,
            verdict: claim.verdict(),
        })
    };
    let points: Vec<ScatterPoint> = claims.iter().filter_map(point).collect();
    (points.len() > 1).then(|| Scatter {
        title: "Ours against the published figures".into(),
        caption: "Each figure is judged by its own rule, which may be stricter or wider than the band."
            .into(),
        points,
    })
}

/// Creates the table of claims, a row for each.
pub fn table(caption: impl Into<String>, claims: &[Claim]) -> Table {
    let columns = [
        Column::text("claim"),
        Column::text("source").left_out(1),
        Column::number("published", ""),
        Column::number("ours", ""),
        Column::number("ratio", ""),
        Column::text("verdict"),
        Column::text("basis").left_out(0),
    ];
    let mut table = Table::new(caption, columns);
    for claim in claims {
        let (what, ours) = match &claim.ours {
            Ours::Figures(records) => (claim.what.clone(), figures(records)),
            // The words take the place of a figure, but read better next to the claim.
            Ours::Words(words) => (format!("{} {words}", claim.what), Cell::empty()),
        };
        let published = match claim.published {
            Published::Point(point) => Cell::number(point),
            Published::Range(from, to) => Cell::text(range(from, to)),
            Published::Statement => Cell::empty(),
        };
        table.row([
            Cell::text(what),
            Cell::text(&claim.place),
            published,
            ours,
            claim.ratio().map_or_else(Cell::empty, |ratio| Cell::precise(ratio, 2)),
            claim.verdict_cell(),
            Cell::text(claim.kind.to_string()).toned(Tone::Faint),
        ]);
    }
    table
}

fn figures(records: &[Record]) -> Cell {
    if let [record] = records {
        return Cell::summary(&record.summary());
    }
    let means = records.iter().map(|record| record.mean);
    Cell::text(range(means.clone().fold(f64::MAX, f64::min), means.fold(f64::MIN, f64::max)))
}

fn range(from: f64, to: f64) -> String {
    if from == to { figure(from) } else { format!("{} to {}", figure(from), figure(to)) }
}
