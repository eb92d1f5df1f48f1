//! Published evaluations, reproduced and compared with their figures.
//!
//! A paper is a folder and an entry in [`PAPERS`]: the command line, its help and the tests take them from there. What
//! is published stands in its `published.csv` or `published.toml`, and its words in `text.toml`.

pub mod aerotp;
pub mod ax25_throughput;
pub mod cislunar;
pub mod dstar;
pub mod dtn_ax25;
#[cfg(any(test, feature = "dummy"))]
pub mod dummy;
mod figures;
#[cfg(test)]
mod tests;
mod text;

use crate::bench::Bench;
use crate::claim::{self, Claim};
use crate::finding::{Finding, Trace};
use crate::record::{Experiment, Record, Row};
use crate::report::{Assumption, PageBlock, Report, Section, Table};

/// All papers.
pub const PAPERS: &[Paper] = &[
    cislunar::PAPER,
    dtn_ax25::PAPER,
    ax25_throughput::PAPER,
    dstar::PAPER,
    aerotp::PAPER,
    #[cfg(any(test, feature = "dummy"))]
    dummy::PAPER,
];

/// Published evaluation.
pub struct Paper {
    /// Name on the command line, such as `cislunar`.
    pub name: &'static str,
    /// Title of its page.
    pub title: &'static str,
    /// Subject, as a line of help.
    pub about: &'static str,
    /// Authors and title.
    pub citation: &'static str,
    /// Plays all runs.
    pub play: fn(&Bench<'_>) -> Page,
}

/// Returns the paper with this name.
pub fn find(name: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|paper| paper.name == name)
}

/// Reproduces a paper.
pub fn reproduce(paper: &Paper, bench: &Bench<'_>) -> Finding {
    (paper.play)(bench).finding(paper, bench)
}

/// Result of a paper.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Result, in a sentence or two.
    pub answer: String,
    /// Fewest and most runs made of a case that has all runs, and what such a case is called.
    pub runs: (u32, u32, &'static str),
    /// Facts for the top of the page.
    pub facts: Vec<(String, String)>,
    /// Published figures and statements beside ours.
    pub claims: Vec<Claim>,
    /// Sections after the claims.
    pub sections: Vec<Section>,
    /// Assumptions and their effect on the result.
    pub assumptions: Vec<Assumption>,
    /// Figures.
    pub records: Vec<Record>,
    /// Runs behind them.
    pub rows: Vec<Row>,
    /// Frames of single runs.
    pub traces: Vec<Trace>,
}

impl Page {
    /// Completes the page with what all papers have in common.
    fn finding(self, paper: &Paper, bench: &Bench<'_>) -> Finding {
        let (fewest, most, of) = self.runs;
        let lead = match bench.progress.early_end() {
            Some(words) => format!("{} {words}", self.answer),
            None => self.answer,
        };
        let runs = if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
        let mut facts = vec![("seed".to_owned(), bench.seed.to_string()), (format!("runs per {of}"), runs)];
        facts.extend(self.facts);
        facts.push(("published in".into(), paper.citation.into()));
        let claims = answer(&self.claims);
        let lead_text = [PageBlock::Text(lead.clone())].into_iter();
        let summary = lead_text.chain(on_terminal(&claims)).chain(self.sections.iter().flat_map(on_terminal));
        Finding {
            summary: summary.collect(),
            experiment: Experiment {
                experiment: paper.name.into(),
                seed: bench.seed,
                records: self.records,
                runs: self.rows,
                ..Experiment::default()
            },
            report: Report {
                title: paper.title.into(),
                lead,
                answer: claims.blocks,
                command: format!("longwire paper {} --seed {} --runs {fewest}", paper.name, bench.seed),
                facts,
                sections: self.sections,
                assumptions: self.assumptions,
            },
            traces: self.traces,
            share: None,
        }
    }
}

/// Beginning of a page: a picture of ours beside the published figures, and the claims.
fn answer(claims: &[Claim]) -> Section {
    if claims.is_empty() {
        return Section::default();
    }
    let pictured = Section::default().with_all(claim::picture(claims)).shown(claim::by_place(claims));
    let missed = claim::misses(claims).into_iter().fold(pictured, Section::shown);
    missed.with(PageBlock::Folded(claim::table("All claims", claims)))
}

/// Blocks of a section that a terminal shows, tables with their captions.
fn on_terminal(section: &Section) -> Vec<PageBlock> {
    let shown = section.on_terminal.iter().map(|at| &section.blocks[*at]);
    let with_caption = |block: &PageBlock| match block {
        PageBlock::Table(Table { caption, .. }) => {
            vec![PageBlock::Text(format!("{caption}:")), block.clone()]
        }
        other => vec![other.clone()],
    };
    shown.flat_map(with_caption).collect()
}
