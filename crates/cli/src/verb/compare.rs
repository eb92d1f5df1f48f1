//! `longwire compare`.

use crate::failure::CommandFailure;
use crate::output::Measure;
use clap::Args;
use longwire_lab::compare::{self, Options};
use longwire_lab::link::{self, LinkProfile};
use std::path::{Path, PathBuf};

/// Compare protocols and settings for transferring files over a link
///
/// Runs every suitable protocol over the link in virtual time, with exactly these files and the same channel noise for
/// each. Ranks the results, shows how close each comes to the limit of the channel and where the time goes, and prints
/// the configuration of the winner.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct Compare {
    /// Files to transfer
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Link: a built-in profile, or the path of a profile (.toml)
    #[arg(long, value_name = "NAME")]
    link: String,
    #[command(flatten)]
    measure: Measure,
}

fn after_help() -> String {
    format!("Built-in links: {}.", link::shipped_names())
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
