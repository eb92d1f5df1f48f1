//! A sender or receiver of NORM with the engine of Longwire, with the lines and most of the options of `norm-peer`.
//!
//! | file | content |
//! |---|---|
//! | `options` | the command line, with its help |
//! | `endpoint` | sockets, with a number for each address |
//! | `driver` | the session with its timers |
//! | `../report` | lines of JSON on standard output, one for each event |

mod driver;
mod endpoint;
mod options;
#[path = "../report.rs"]
mod report;

use driver::Driver;
use options::{HELP, Options};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(arguments.into_iter()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}\nhint: norm-longwire --help");
            return ExitCode::from(2);
        }
    };
    match Driver::new(&options).and_then(|mut driver| driver.run()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
