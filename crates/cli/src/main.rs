//! The longwire command: one file per verb.
//!
//! Data goes to stdout and messages go to stderr. The exit status is 0 on success, 1 on failure, 2 on a usage error,
//! 70 after an internal error of a running node, and 130 if Ctrl-C interrupted the command.

#![forbid(unsafe_code)]

mod endpoint;
mod failure;
mod flag;
mod live;
mod meter;
mod node_connection;
mod node_file;
mod output;
mod verb;
mod watch;

use clap::{Command, CommandFactory, Parser};
use std::process::ExitCode;

#[cfg(target_env = "gnu")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Move files and messages over links too slow, lossy or intermittent for ordinary TCP/IP, and measure which
/// protocol and settings suit each link.
#[derive(Debug, Parser)]
#[command(name = "longwire", version, max_term_width = 100, arg_required_else_help = true, after_help = STATUS)]
struct Arguments {
    #[command(subcommand)]
    verb: verb::Verb,
}

/// Exit statuses, on which scripts can rely.
const STATUS: &str = "Exit status: 0 on success, 1 on failure, 2 on a usage error, 70 after an internal error of a running node, \
                      130 if interrupted by Ctrl-C.";

fn main() -> ExitCode {
    match Arguments::parse().verb.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

/// Definition of all commands and options.
fn definition() -> Command {
    Arguments::command()
}
