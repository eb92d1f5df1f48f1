//! The verbs.

mod compare;
mod run;

use crate::failure::Failure;
use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Compare(compare::Compare),
    Run(run::Run),
}

impl Verb {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Verb::Compare(compare) => compare.run(),
            Verb::Run(run) => run.run(),
        }
    }
}
