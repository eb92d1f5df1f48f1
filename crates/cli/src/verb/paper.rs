//! `longwire paper`.

use crate::failure::CommandFailure;
use crate::output::Measure;
use clap::{Args, ValueEnum};
use longwire_lab::cislunar::{self, Options};
use longwire_lab::{ax25_throughput, dtn_ax25};

/// Reproduce a published evaluation: our figures beside the published ones, with verdicts
#[derive(Debug, Args)]
pub(crate) struct Paper {
    /// Which
    #[arg(value_name = "NAME")]
    name: PaperName,
    #[command(flatten)]
    measure: Measure,
}

/// The evaluations that are reproduced.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PaperName {
    /// Bundles over TCP between Moon and Earth, through an orbiter
    Cislunar,
    /// Bundles over connected AX.25 between two radios, beside TCP/IP
    DtnAx25,
    /// What packet radio controllers make of connected AX.25
    Ax25Throughput,
}

impl Paper {
    pub(crate) fn run(&self) -> Result<(), CommandFailure> {
        match self.name {
            PaperName::Cislunar => {
                let options = Options {
                    runs: self.measure.runs(),
                    seed: self.measure.seed,
                    threads: self.measure.threads(),
                    traces: self.measure.trace.is_some(),
                    thin: false,
                };
                self.measure.carry_out(|progress| cislunar::reproduce(&options, progress))
            }
            PaperName::DtnAx25 => {
                let options = dtn_ax25::Options {
                    runs: self.measure.runs(),
                    seed: self.measure.seed,
                    threads: self.measure.threads(),
                    thin: false,
                };
                self.measure.carry_out(|progress| Ok(dtn_ax25::reproduce(&options, progress)))
            }
            PaperName::Ax25Throughput => {
                let options = ax25_throughput::Options {
                    runs: self.measure.runs(),
                    seed: self.measure.seed,
                    threads: self.measure.threads(),
                    thin: false,
                };
                self.measure.carry_out(|progress| Ok(ax25_throughput::reproduce(&options, progress)))
            }
        }
    }
}
