//! Reports: a small document model, written as one self-contained HTML file, with its tables also for the terminal.
//!
//! A [`Report`] consists of sections of blocks and is independent of HTML. Every plot and every table carries its own
//! data: the page shows the table under the plot and offers both as CSV. The page refers to nothing outside itself.

mod bands;
mod html;
mod ledger;
mod map;
mod panels;
mod plot;
mod rank;
mod scale;
mod scatter;
mod table;

pub use bands::Band;
pub use ledger::{Bar, LedgerChart, LedgerShare};
pub(crate) use map::letters;
pub use map::{MapCell, WinnerMap};
pub use plot::{Axis, Plot, PlotSeries, Point, Shape};
pub use rank::{RankChart, RankRow};
pub use scatter::{Scatter, ScatterPoint, Verdict};
pub use table::{Cell, Column, Table, Tone};
pub(crate) use table::{with_unit, wrapped};

use crate::record::Experiment;

/// Report page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Title.
    pub title: String,
    /// Result, in a sentence or two. Text between backticks is set as code, here and in all paragraphs.
    pub lead: String,
    /// First blocks of the page, right after its result.
    pub answer: Vec<PageBlock>,
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
    /// Table behind its caption, which unfolds it.
    Folded(Table),
    /// Use of time.
    Ledger(LedgerChart),
    /// Ranking of several protocols by one figure.
    Rank(RankChart),
    /// Published figures against ours.
    Scatter(Scatter),
    /// Best protocol at each point of a grid.
    Map(WinnerMap),
}

impl From<&str> for PageBlock {
    fn from(text: &str) -> PageBlock {
        PageBlock::Text(text.to_owned())
    }
}

macro_rules! blocks {
    ($($kind:ident($content:ty))+) => { $(
        impl From<$content> for PageBlock {
            fn from(content: $content) -> PageBlock {
                PageBlock::$kind(content)
            }
        }
    )+ };
}

blocks!(Text(String) Plot(Plot) Table(Table) Ledger(LedgerChart) Rank(RankChart) Scatter(Scatter) Map(WinnerMap));

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

impl Assumption {
    /// Reads assumptions from a CSV file, which is a part of this program.
    pub(crate) fn of_csv(csv: &str) -> Vec<Assumption> {
        let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
        rows.map(|row| row.expect("an assumption")).collect()
    }
}

impl Report {
    /// Writes the page. `experiment` is embedded completely, as JSON and as CSV.
    pub fn html(&self, experiment: &Experiment) -> String {
        html::page(self, experiment)
    }
}

#[cfg(test)]
mod tests;
