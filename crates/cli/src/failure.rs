//! Failures: what happened, what was kept, what to do about it.

use longwire_lab::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum CommandFailure {
    /// The command asks for something that does not exist or makes no sense.
    Usage(Error),
    /// Something went wrong while it was carried out.
    Failed(Error),
    /// Nobody reads what is written any more, and that is no failure.
    OutputClosed,
    /// Ctrl-C ended it early; what was there by then has been shown.
    Interrupted,
}

/// The exit status of what Ctrl-C ended, as shells have it: 128 and the signal's number.
pub(crate) const INTERRUPTED: u8 = 130;

impl CommandFailure {
    /// Says it on stderr.
    pub(crate) fn tell(&self) -> ExitCode {
        match self {
            CommandFailure::Usage(error) => {
                crate::output::talk(format_args!("error: {error}"));
                ExitCode::from(2)
            }
            CommandFailure::Failed(error) => {
                crate::output::talk(format_args!("error: {error}"));
                ExitCode::from(1)
            }
            CommandFailure::OutputClosed => ExitCode::SUCCESS,
            CommandFailure::Interrupted => ExitCode::from(INTERRUPTED),
        }
    }

    /// Writing to stdout went wrong.
    pub(crate) fn of_stdout(error: &io::Error) -> CommandFailure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return CommandFailure::OutputClosed;
        }
        let what = format!("cannot write the result to standard output: {error}");
        CommandFailure::Failed(Error::new(what).hint("--out DIR writes it into files"))
    }

    /// A directory that was asked for cannot be made.
    pub(crate) fn of_directory(directory: &Path, error: &io::Error) -> CommandFailure {
        let what =
            format!("cannot make the directory {}: {error}\nNothing was computed.", directory.display());
        CommandFailure::Failed(Error::new(what).hint("name a directory in a place that can be written to"))
    }

    /// Writing files went wrong after the result was shown.
    pub(crate) fn of_file(error: &io::Error) -> CommandFailure {
        let what = format!("cannot write {error}\nThe result above is complete; its files are not.");
        CommandFailure::Failed(
            Error::new(what).hint("name a directory that can be written to with --out or --trace"),
        )
    }
}

impl From<Error> for CommandFailure {
    fn from(error: Error) -> CommandFailure {
        CommandFailure::Failed(error)
    }
}
