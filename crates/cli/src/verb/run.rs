//! `longwire run`.

use crate::failure::{CommandFailure, CommandResult};
use crate::output::Measure;
use clap::Args;
use longwire_lab::bench::Shard;
use longwire_lab::scenario::{self, Options};
use longwire_lab::sweep;
use std::path::PathBuf;

/// Run a scenario: nodes, links, outages, protocol and settings, with optional parameter sweeps
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Scenario file
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Values to try for a dotted key of the scenario; repeat for a grid
    #[arg(long, value_name = "KEY=A,B,C")]
    sweep: Vec<String>,
    /// Compute only the I-th of N equal shares of the runs; `longwire merge` joins what --out wrote for all shares
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: String,
    #[command(flatten)]
    measure: Measure,
}

impl Run {
    pub(crate) fn run(&self) -> CommandResult {
        let sweeps = self.sweep.iter().map(|word| scenario::parse_sweep(word));
        let options = Options {
            scenario: self.scenario.clone(),
            sweeps: sweeps.collect::<Result<_, _>>().map_err(CommandFailure::Usage)?,
            runs: self.measure.runs(),
            seed: self.measure.seed,
            shard: self.shard.parse::<Shard>().map_err(CommandFailure::Usage)?,
            threads: self.measure.threads(),
            traces: self.measure.trace.is_some(),
        };
        self.measure.carry_out(|progress| sweep::run(&options, progress))
    }
}
