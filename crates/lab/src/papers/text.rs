//! Text of a page as data: a TOML file for each paper, with the headings and paragraphs of its sections, the headings of
//! its tables and plots, its statements and its assumptions. A unit follows a heading in brackets.

use crate::claim::{Claim, Ours, Published, Rule};
use crate::record::FigureKind;
use crate::report::{Assumption, Axis, Cell, Column, Plot, Section, Table, with_unit};
use crate::toml_text;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    section: BTreeMap<String, Part>,
    #[serde(default)]
    table: BTreeMap<String, Headings>,
    #[serde(default)]
    plot: BTreeMap<String, Axes>,
    #[serde(default)]
    statement: BTreeMap<String, Statement>,
    /// Sentences with places for figures, such as `{calls}`.
    #[serde(default)]
    words: BTreeMap<String, String>,
    #[serde(default)]
    assumption: Vec<Assumption>,
}

/// Heading and first paragraphs of a section.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    heading: String,
    #[serde(default)]
    text: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Headings {
    caption: String,
    columns: Vec<String>,
    /// Columns of text; the others have numbers.
    #[serde(default)]
    text: Vec<String>,
}

/// Title and axes of a plot; the vertical one starts at zero or is logarithmic.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Axes {
    title: String,
    x: String,
    y: String,
    #[serde(default)]
    log: bool,
    #[serde(default)]
    caption: String,
}

/// Published statement without a figure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    what: String,
    place: String,
    why: String,
    #[serde(default = "predicted")]
    kind: FigureKind,
}

fn predicted() -> FigureKind {
    FigureKind::Predicted
}

impl Text {
    pub(super) fn read(text: &str) -> Text {
        data(text)
    }

    /// Returns the assumptions, the first ones with effects that are computed: each `{}` in the words of an effect stands for
    /// the next of its figures, and without words the effect is what was computed. An effect whose figures are missing was
    /// not tested.
    pub(super) fn assumptions(&self, effects: impl IntoIterator<Item = Vec<String>>) -> Vec<Assumption> {
        let mut effects = effects.into_iter();
        let fill = |words: String, figure: &String| words.replacen("{}", figure, 1);
        let with_effect = |assumption: &Assumption| {
            let words = assumption.effect.clone();
            let effect = match effects.next() {
                Some(figures) => Some(figures.iter().fold(words.unwrap_or("{}".to_owned()), fill)),
                None => words.filter(|words| !words.contains("{}")),
            };
            Assumption { effect, ..assumption.clone() }
        };
        self.assumption.iter().map(with_effect).collect()
    }

    /// Creates a section with its paragraphs.
    pub(super) fn section(&self, name: &str) -> Section {
        let part = entry(&self.section, name);
        Section::new(&part.heading).with_all(part.text.iter().map(String::as_str))
    }

    pub(super) fn table(&self, name: &str, rows: impl IntoIterator<Item = Vec<Cell>>) -> Table {
        let Headings { caption, columns, text } = entry(&self.table, name);
        let column = |head: &String| {
            let (name, unit) = with_unit(head);
            Column { right: !text.contains(head), ..Column::number(name, unit) }
        };
        let mut table = Table::new(caption, columns.iter().map(column));
        rows.into_iter().for_each(|row| table.row(row));
        table
    }

    /// Creates a plot without series.
    pub(super) fn plot(&self, name: &str) -> Plot {
        let Axes { title, x, y, log, caption } = entry(&self.plot, name);
        let axis = |head| {
            let (label, unit) = with_unit(head);
            Axis::new(label, unit)
        };
        let y = if *log { axis(y).log() } else { axis(y).from_zero() };
        Plot::new(title, axis(x), y).captioned(caption)
    }

    /// Returns sentences with figures in their places.
    pub(super) fn words(&self, name: &str, figures: &[(&str, String)]) -> String {
        let fill =
            |words: String, (place, figure): &(&str, String)| words.replace(&format!("{{{place}}}"), figure);
        figures.iter().fold(entry(&self.words, name).clone(), fill)
    }

    /// Creates the claim about a statement, with what was found; `holds` is `None` with too few runs to judge.
    pub(super) fn statement(&self, name: &str, holds: Option<bool>, found: String) -> Claim {
        let Statement { what, place, why, kind } = entry(&self.statement, name);
        Claim {
            what: what.clone(),
            place: place.clone(),
            published: Published::Statement,
            ours: Ours::Words(found),
            rule: Rule::Criterion(holds),
            kind: *kind,
            why: why.clone(),
        }
    }
}

fn entry<'a, T>(entries: &'a BTreeMap<String, T>, name: &str) -> &'a T {
    entries.get(name).unwrap_or_else(|| panic!("the text has no `{name}`"))
}

/// Reads a file that is a part of this program.
///
/// # Panics
/// Panics if the file is invalid.
pub(super) fn data<T: DeserializeOwned>(text: &str) -> T {
    let data = toml_text::parse(text, "data").and_then(|table| toml_text::from_table(table, "data"));
    data.unwrap_or_else(|error| panic!("{error}"))
}
