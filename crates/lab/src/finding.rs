//! Findings: the result of an experiment as records, a page and a terminal summary.

use crate::record::{Experiment, Params, Value};
use crate::report::{PageBlock, Report, Section};
use crate::trace::CapturedFrame;

/// The result of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Records and runs.
    pub experiment: Experiment,
    /// The page for people.
    pub report: Report,
    /// Terminal summary: the answer in a few paragraphs and tables.
    pub summary: Vec<PageBlock>,
    /// Frames of single runs, if requested.
    pub traces: Vec<Trace>,
}

/// Part of a page, and of the output in the terminal, about the runs of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Answer, or a summary in a sentence.
    pub lead: String,
    /// First blocks of the page.
    pub answer: Vec<PageBlock>,
    /// Blocks on the terminal, after the lead.
    pub summary: Vec<PageBlock>,
    /// Facts for the top of the page.
    pub facts: Vec<(String, String)>,
    /// Sections of the page.
    pub sections: Vec<Section>,
}

/// The frames of one run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Name of the run, for display and for the name of its folder.
    pub name: String,
    /// All frames.
    pub frames: Vec<CapturedFrame>,
}

/// Describes parameters, such as `ber 1e-6, delay_ms 2000`.
pub fn point_name(params: &Params) -> String {
    let word = |(name, value): (&str, &Value)| format!("{name} {value}");
    params.iter().map(word).collect::<Vec<_>>().join(", ")
}
