//! The verbs.

mod compare;
mod paper;
mod run;

use crate::failure::Failure;
use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Compare(compare::Compare),
    Paper(paper::Paper),
    Run(run::Run),
}

impl Verb {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Verb::Compare(compare) => compare.run(),
            Verb::Paper(paper) => paper.run(),
            Verb::Run(run) => run.run(),
        }
    }
}
