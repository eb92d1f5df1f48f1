//! Reports: a small document model, written as one self-contained HTML file, its tables also for the terminal.
//!
//! An author fills [`Report`] with sections of blocks and knows nothing of HTML. Every plot and every table
//! carries its own data: the page shows the table under the plot and offers both as CSV. Nothing in the page
//! refers to anything outside it.

mod format;
mod html;
mod ledger;
mod plot;
mod rank;
mod table;

pub use format::{figure, with_error};
pub use ledger::{Bar, LedgerChart, LedgerShare};
pub use plot::{Axis, Plot, PlotSeries, Point, Shape};
pub use rank::{RankChart, RankRow};
pub use table::{Cell, Column, Table, Tone};

use crate::record::{Experiment, Record};

/// A page for people.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// The answer, in a sentence or two. Text between backticks is set as code, here and in all paragraphs.
    pub lead: String,
    /// The command that makes this page again.
    pub command: String,
    /// Facts for the head of the page, such as the seed and the number of runs.
    pub facts: Vec<(String, String)>,
    /// The body.
    pub sections: Vec<Section>,
    /// What was assumed, and what it does to the result.
    pub assumptions: Vec<Assumption>,
}

/// A part of a page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// Its content, in order.
    pub blocks: Vec<PageBlock>,
}

impl Section {
    /// An empty section.
    pub fn new(heading: impl Into<String>) -> Section {
        Section { heading: heading.into(), blocks: Vec::new() }
    }

    /// With a block behind the others.
    pub fn with(mut self, block: impl Into<PageBlock>) -> Section {
        self.blocks.push(block.into());
        self
    }
}

/// What sections are made of.
#[derive(Clone, Debug)]
pub enum PageBlock {
    /// A paragraph.
    Text(String),
    /// Source text, such as a node's configuration, with a caption.
    Code {
        /// What it is.
        caption: String,
        /// The text.
        text: String,
    },
    /// A plot, with its table and its data.
    Plot(Plot),
    /// A table in full view.
    Table(Table),
    /// Where the time went.
    Ledger(LedgerChart),
    /// One figure of several contenders.
    Rank(RankChart),
}

impl From<&str> for PageBlock {
    fn from(text: &str) -> PageBlock {
        PageBlock::Text(text.to_owned())
    }
}

impl From<String> for PageBlock {
    fn from(text: String) -> PageBlock {
        PageBlock::Text(text)
    }
}

impl From<Plot> for PageBlock {
    fn from(plot: Plot) -> PageBlock {
        PageBlock::Plot(plot)
    }
}

impl From<Table> for PageBlock {
    fn from(table: Table) -> PageBlock {
        PageBlock::Table(table)
    }
}

impl From<LedgerChart> for PageBlock {
    fn from(chart: LedgerChart) -> PageBlock {
        PageBlock::Ledger(chart)
    }
}

impl From<RankChart> for PageBlock {
    fn from(chart: RankChart) -> PageBlock {
        PageBlock::Rank(chart)
    }
}

/// Something that had to be assumed.
#[derive(Clone, Debug, Default)]
pub struct Assumption {
    /// What was assumed, in a sentence.
    pub text: String,
    /// Why, or where from.
    pub basis: String,
    /// What the other choice changes: none if nobody looked; what it does in a few words otherwise.
    pub effect: Option<String>,
    /// True if the result hangs on it.
    pub moves_result: bool,
}

impl Report {
    /// The page. `experiment` is embedded whole, as JSON and as CSV.
    pub fn html(&self, experiment: &Experiment) -> String {
        html::page(self, experiment)
    }
}

/// How a figure of ours is judged beside a published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// It has to come so near, as a share of the published figure: 0.1 is 10 %.
    Within(f64),
    /// It is not, for this reason.
    None(&'static str),
}

/// Ours beside the published, a row a record that has a reference: near enough or not, or why that is not judged.
pub fn verdicts(
    caption: impl Into<String>,
    records: &[Record],
    judgement: impl Fn(&Record) -> Judgement,
) -> Table {
    let mut table = Table::new(
        caption,
        [
            Column::text("series"),
            Column::text("figure"),
            Column::text("at"),
            Column::number("ours", ""),
            Column::number("published", ""),
            Column::number("ratio", ""),
            Column::text("verdict"),
            Column::text("basis"),
        ],
    );
    for record in records {
        let Some(reference) = record.reference else { continue };
        let ratio = (reference != 0.0).then(|| record.mean / reference);
        let source = record.source.as_deref().unwrap_or("published");
        table.row([
            Cell::text(&record.series),
            Cell::text(figure_name(record)),
            Cell::text(point_name(record)),
            Cell::summary(&record.summary()),
            Cell::number(reference),
            ratio.map_or_else(Cell::empty, |ratio| Cell::precise(ratio, 2)),
            verdict(record.mean, reference, judgement(record)),
            Cell::text(format!("{}; {source}", record.kind)).toned(Tone::Faint),
        ]);
    }
    table
}

/// `goodput (byte/s)`: the metric without what the unit says.
fn figure_name(record: &Record) -> String {
    let suffix = format!("_{}", record.unit.replace('/', "_per_"));
    let name = record.metric.strip_suffix(&suffix).unwrap_or(&record.metric).replace('_', " ");
    if record.unit.is_empty() || name.ends_with(&record.unit) {
        name
    } else {
        format!("{name} ({})", record.unit)
    }
}

/// `delay_ms 2000, ber 1e-6`.
fn point_name(record: &Record) -> String {
    let words = record.params.iter().map(|(name, value)| format!("{name} {value}"));
    words.collect::<Vec<_>>().join(", ")
}

fn verdict(ours: f64, reference: f64, judgement: Judgement) -> Cell {
    let tolerance = match judgement {
        Judgement::Within(tolerance) => tolerance,
        Judgement::None(why) => return Cell::text(format!("not judged: {why}")).toned(Tone::Faint),
    };
    let bound = crate::record::number(tolerance * 100.0);
    if (ours - reference).abs() <= tolerance * reference.abs() {
        Cell::text(format!("within {bound} %")).toned(Tone::Good)
    } else {
        Cell::text(format!("NOT within {bound} %")).toned(Tone::Bad)
    }
}

#[cfg(test)]
mod tests;
