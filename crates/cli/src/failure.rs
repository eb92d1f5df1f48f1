//! Failures: what happened, what was kept, what to do about it.

use longwire_lab::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command asks for something that does not exist or makes no sense.
    Usage(Error),
    /// Something went wrong while it was carried out.
    Failed(Error),
    /// Nobody reads what is written any more, and that is no failure.
    NobodyReads,
    /// Ctrl-C ended it early; what was there by then has been shown.
    Interrupted,
}

/// The exit status of what Ctrl-C ended, as shells have it: 128 and the signal's number.
pub(crate) const INTERRUPTED: u8 = 130;

impl Failure {
    /// Says it on stderr.
    pub(crate) fn tell(&self) -> ExitCode {
        match self {
            Failure::Usage(error) => {
                crate::output::talk(format_args!("error: {error}"));
                ExitCode::from(2)
            }
            Failure::Failed(error) => {
                crate::output::talk(format_args!("error: {error}"));
                ExitCode::from(1)
            }
            Failure::NobodyReads => ExitCode::SUCCESS,
            Failure::Interrupted => ExitCode::from(INTERRUPTED),
        }
    }

    /// Writing to stdout went wrong.
    pub(crate) fn of_stdout(error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::NobodyReads;
        }
        let what = format!("cannot write the result to standard output: {error}");
        Failure::Failed(Error::new(what).hint("--out DIR writes it into files"))
    }

    /// A directory that was asked for cannot be made.
    pub(crate) fn of_directory(directory: &Path, error: &io::Error) -> Failure {
        let what =
            format!("cannot make the directory {}: {error}\nNothing was computed.", directory.display());
        Failure::Failed(Error::new(what).hint("name a directory in a place that can be written to"))
    }

    /// Writing files went wrong after the result was shown.
    pub(crate) fn of_file(error: &io::Error) -> Failure {
        let what = format!("cannot write {error}\nThe result above is complete; its files are not.");
        Failure::Failed(
            Error::new(what).hint("name a directory that can be written to with --out or --trace"),
        )
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Failed(error)
    }
}
