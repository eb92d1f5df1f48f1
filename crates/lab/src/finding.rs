//! Findings: the result of an experiment as records, a page and a terminal summary.

use crate::record::{Experiment, Params, Value};
use crate::report::{PageBlock, Report};
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
