//! The longwire command: one file a verb.
//!
//! Data go to stdout and talk to stderr. The exit status is 0 if all went well, 1 if something failed, 2 if the
//! command was not understood, and 70 if a node ends because a part of it failed.

mod endpoint;
mod failure;
mod flag;
mod output;
mod progress;
mod reach;
mod verb;

use clap::Parser;
use std::process::ExitCode;

/// Move files and messages over links that TCP cannot cope with, and measure, in virtual time and with the same
/// protocol code, which protocol and which settings a link deserves.
#[derive(Debug, Parser)]
#[command(name = "longwire", version, max_term_width = 100, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: verb::Verb,
}

fn main() -> ExitCode {
    match Arguments::parse().verb.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}
