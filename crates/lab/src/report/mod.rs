//! Reports: a small document model, written as one self-contained HTML file, with its tables also for the terminal.
//!
//! A [`Report`] consists of sections of blocks and is independent of HTML. Every plot and every table carries its own
//! data: the page shows the table under the plot and offers both as CSV. The page refers to nothing outside itself.

mod html;
mod ledger;
mod plot;
mod rank;
mod table;

pub use ledger::{Bar, LedgerChart, LedgerShare};
pub use plot::{Axis, Plot, PlotSeries, Point, Shape};
pub use rank::{RankChart, RankRow};
pub use table::{Cell, Column, Table, Tone};

use crate::record::{Experiment, Record};

/// Report page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Title.
    pub title: String,
    /// Result, in a sentence or two. Text between backticks is set as code, here and in all paragraphs.
    pub lead: String,
    /// Command that reproduces this page.
    pub command: String,
    /// Facts for the top of the page, such as the seed and the number of runs.
    pub facts: Vec<(String, String)>,
    /// Sections of the page.
    pub sections: Vec<Section>,
    /// Assumptions and their effect on the result.
    pub assumptions: Vec<Assumption>,
}

/// Section of a page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub heading: String,
    /// Blocks, in order.
    pub blocks: Vec<PageBlock>,
    /// Positions of the blocks that a terminal shows, too.
    pub on_terminal: Vec<usize>,
}

impl Section {
    /// Creates an empty section.
    pub fn new(heading: impl Into<String>) -> Section {
        Section { heading: heading.into(), ..Section::default() }
    }

    /// Appends a block.
    pub fn with(mut self, block: impl Into<PageBlock>) -> Section {
        self.blocks.push(block.into());
        self
    }

    /// Appends several blocks.
    pub fn with_all<B: Into<PageBlock>>(self, blocks: impl IntoIterator<Item = B>) -> Section {
        blocks.into_iter().fold(self, Section::with)
    }

    /// Appends a block that a terminal shows, too.
    pub fn shown(mut self, block: impl Into<PageBlock>) -> Section {
        self.on_terminal.push(self.blocks.len());
        self.with(block)
    }
}

/// Block of a section.
#[derive(Clone, Debug)]
pub enum PageBlock {
    /// A paragraph.
    Text(String),
    /// Source text, such as a node configuration, with a caption.
    Code {
        /// Caption.
        caption: String,
        /// Source text.
        text: String,
    },
    /// A plot, with its table and its data.
    Plot(Plot),
    /// Table, shown in full.
    Table(Table),
    /// Use of time.
    Ledger(LedgerChart),
    /// Ranking of several protocols by one figure.
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

/// Assumption.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Assumption {
    /// Assumption, in a sentence.
    pub text: String,
    /// Basis of the assumption.
    pub basis: String,
    /// Effect of the alternative, in a few words; `None` if it was not tested.
    pub effect: Option<String>,
    /// True if the assumption affects the result.
    pub moves_result: bool,
}

impl Report {
    /// Writes the page. `experiment` is embedded completely, as JSON and as CSV.
    pub fn html(&self, experiment: &Experiment) -> String {
        html::page(self, experiment)
    }
}

/// Judgement of our figure compared with a published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// Tolerance, as a share of the published figure: 0.1 is 10 %.
    Within(f64),
    /// Not judged, for this reason.
    None(&'static str),
}

/// Table of our figures and the published ones, a row per record with a reference: within the tolerance or not, or the
/// reason why it is not judged.
pub fn verdicts(
    caption: impl Into<String>,
    records: &[Record],
    judgement: impl Fn(&Record) -> Judgement,
) -> Table {
    let mut table = Table::new(
        caption,
        [
            Column::text("protocol"),
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

/// Name of the metric without its unit, followed by the unit: `goodput (byte/s)`.
fn figure_name(record: &Record) -> String {
    let suffix = format!("_{}", record.unit.replace('/', "_per_"));
    let name = record.metric.strip_suffix(&suffix).unwrap_or(&record.metric).replace('_', " ");
    if record.unit.is_empty() || name.ends_with(&record.unit) {
        name
    } else {
        format!("{name} ({})", record.unit)
    }
}

/// Parameters of a record: `delay_ms 2000, ber 1e-6`.
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
        Cell::text(format!("outside {bound} %")).toned(Tone::Bad)
    }
}

#[cfg(test)]
mod tests;
