//! `longwire man`.

use crate::failure::{CommandFailure, CommandResult};
use crate::output::talk;
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// Write the manual pages of all commands to a directory
///
/// `longwire man /usr/local/share/man/man1` makes them available to man(1): longwire.1, longwire-send.1 and so on.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory, which is created if necessary
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(&self) -> CommandResult {
        let directory = &self.directory;
        fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(crate::definition(), directory))
            .map_err(|error| {
                CommandFailure::failed(
                    format!("cannot write manual pages to {}: {error}", directory.display()),
                    "choose a directory that you can write to",
                )
            })?;
        talk(format_args!("wrote the manual pages to {}", directory.display()));
        Ok(())
    }
}
