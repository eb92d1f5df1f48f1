//! `longwire compare`.

use crate::failure::CommandFailure;
use crate::output::Measure;
use clap::Args;
use longwire_lab::compare::{self, Options};
use longwire_lab::link::{self, LinkProfile};
use std::path::{Path, PathBuf};

/// Find out which protocol and which settings move files over a link best
///
/// Runs every protocol that fits over the link in virtual time, with these very bytes and the same noise for all;
/// ranks them, says how near each comes to what the channel itself allows, where the time went, and how to configure
/// the winner.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct Compare {
    /// The files to transfer
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The link: a shipped one, or the path of a link profile (.toml)
    #[arg(long, value_name = "NAME")]
    link: String,
    #[command(flatten)]
    measure: Measure,
}

fn after_help() -> String {
    format!("Shipped links: {}.", link::shipped_names())
}

impl Compare {
    pub(crate) fn run(&self) -> Result<(), CommandFailure> {
        LinkProfile::load(&self.link, Path::new(".")).map_err(CommandFailure::Usage)?;
        let options = Options {
            files: self.files.clone(),
            link: self.link.clone(),
            runs: self.measure.runs(),
            seed: self.measure.seed.unwrap_or(1),
            threads: self.measure.threads(),
            traces: self.measure.trace.is_some(),
        };
        self.measure.carry_out(|progress| compare::compare(&options, progress))
    }
}
