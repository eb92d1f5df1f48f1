//! The longwire command: one file a verb.
//!
//! Data go to stdout and talk to stderr. The exit status is 0 if all went well, 1 if something failed, 2 if the
//! command was not understood, 70 if a node ends because a part of it failed, and 130 if Ctrl-C left work out.

mod endpoint;
mod failure;
mod flag;
mod node_connection;
mod output;
mod progress;
mod verb;

use clap::Parser;
use std::process::ExitCode;

/// Move files and messages over links that TCP cannot cope with, and measure, in virtual time and with the same
/// protocol code, which protocol and which settings a link deserves.
#[derive(Debug, Parser)]
#[command(name = "longwire", version, max_term_width = 100, arg_required_else_help = true, after_help = STATUS)]
struct Arguments {
    #[command(subcommand)]
    verb: verb::Verb,
}

/// The promise to scripts.
const STATUS: &str = "Exit status: 0 if all went well, 1 if something failed, 2 if the command was not understood, 70 if a node ends \
                      because a part of it failed by a fault of this program, 130 if Ctrl-C ended a computation early.";

fn main() -> ExitCode {
    match Arguments::parse().verb.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}
