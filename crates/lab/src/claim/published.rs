//! Published figures as data: a CSV file for each paper.
//!
//! A row names the figure of ours that it is compared with by case, metric and point:
//!
//! ```text
//! place,what,case,metric,at,published,to,rule,kind,why
//! "Table V","transfer time, k = 4","AX.25-CL, simulated",transfer_s,rate_bps=9600 window=4,24.27,,13 %,predicted,
//! ```
//!
//! `at` has the parameters of the point in the order of the record, `published` and `to` a figure or the ends of a range;
//! `rule` is `10 %`, `2 units`, `printed 1`, `below`, `above` or `no`, and `why` the reason of a miss, or the reason why
//! it is not judged.

use super::{Claim, Ours, Published, Rule};
use crate::record::{FigureKind, Record};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Row of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    place: String,
    what: String,
    case: String,
    metric: String,
    at: String,
    published: f64,
    to: Option<f64>,
    rule: Rule,
    kind: FigureKind,
    why: String,
}

impl Row {
    fn is_about(&self, record: &Record) -> bool {
        record.case == self.case && record.metric == self.metric && record.params.to_string() == self.at
    }
}

impl TryFrom<String> for Rule {
    type Error = String;

    fn try_from(text: String) -> Result<Rule, String> {
        let number = |text: &str| text.parse::<f64>().ok();
        let rule = match text.split_once(' ') {
            Some((share, "%")) => number(share).map(|share| Rule::Share(share / 100.0)),
            Some((units, "units")) => number(units).map(Rule::Units),
            Some(("printed", decimals)) => decimals.parse().ok().map(Rule::Printed),
            None if text == "below" => Some(Rule::Below),
            None if text == "above" => Some(Rule::Above),
            None if text == "no" => Some(Rule::NotJudged),
            _ => None,
        };
        rule.ok_or_else(|| format!("`{text}` is not a valid rule"))
    }
}

/// Attaches the published figures to our records and returns a claim for each row that has a record. A record gets the
/// published figure or the middle of its range, its place and its kind. A row without a record is passed over: an
/// experiment that was stopped early, or a part of it, does not have all of them.
///
/// # Panics
/// Panics if the text is not such a file: it is a part of this program.
pub fn attach(csv: &str, records: &mut [Record]) -> Vec<Claim> {
    let claim = |row: Row| {
        let record = records.iter_mut().find(|record| row.is_about(record))?;
        let (from, to) = (row.published, row.to.unwrap_or(row.published));
        record.reference = Some((from + to) / 2.0);
        record.source = Some(row.place.clone());
        record.kind = row.kind;
        Some(Claim {
            published: row.to.map_or(Published::Point(from), |to| Published::Range(from, to)),
            ours: Ours::Figures(vec![record.clone()]),
            rule: row.rule,
            kind: row.kind,
            what: row.what,
            place: row.place,
            why: row.why,
        })
    };
    rows::<Row>(csv).into_iter().filter_map(claim).collect()
}

/// Reads a CSV file that is a part of this program.
///
/// # Panics
/// Panics if a row is invalid.
pub(crate) fn rows<T: DeserializeOwned>(csv: &str) -> Vec<T> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let row = |row: Result<T, csv::Error>| row.unwrap_or_else(|error| panic!("data: {error}"));
    reader.deserialize().map(row).collect()
}

/// Returns the published figures that are compared with these ones of ours, in the order of the file.
pub fn published(csv: &str, case: &str, metric: &str) -> Vec<f64> {
    let is_one = |row: &Row| row.case == case && row.metric == metric;
    rows::<Row>(csv).into_iter().filter(is_one).map(|row| row.published).collect()
}

/// Number of published figures in a file.
#[cfg(test)]
pub(crate) fn published_figures(csv: &str) -> usize {
    rows::<Row>(csv).len()
}
