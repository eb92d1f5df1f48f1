//! `longwire paper`.

use crate::failure::CommandFailure;
use crate::output::Measure;
use clap::{Args, ValueEnum};
use longwire_lab::papers::cislunar::{self, Options};
use longwire_lab::papers::{ax25_throughput, dtn_ax25};

/// Reproduce a published evaluation and compare its figures with ours
#[derive(Debug, Args)]
pub(crate) struct Paper {
    /// Paper to reproduce
    #[arg(value_name = "NAME")]
    name: PaperName,
    #[command(flatten)]
    measure: Measure,
}

/// Papers that can be reproduced.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PaperName {
    /// Bundles over TCP between the Moon and the Earth, through an orbiter
    Cislunar,
    /// Bundles over connected-mode AX.25 between two radios, compared with TCP/IP
    DtnAx25,
    /// Throughput of connected-mode AX.25 with different packet-radio controllers
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
