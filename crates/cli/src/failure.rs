//! Failures: what happened, what was kept, what to do about it.

use longwire_lab::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Reason for which a command ends before its regular end.
#[derive(Debug)]
pub(crate) enum CommandFailure {
    /// The command line or a configuration is invalid.
    Usage(Error),
    /// An operation failed while the command ran.
    Failed(Error),
    /// The reader of stdout has closed it, which counts as success.
    OutputClosed,
    /// Ctrl-C ended the command early; it has printed its results so far.
    Interrupted,
}

/// Result of a command, or of a step of it.
pub(crate) type CommandResult<T = ()> = Result<T, CommandFailure>;

/// Exit status after Ctrl-C, as in shells: 128 plus the number of the signal.
pub(crate) const INTERRUPTED: u8 = 130;

impl CommandFailure {
    /// Prints the error on stderr and returns the exit status.
    pub(crate) fn tell(&self) -> ExitCode {
        match self {
            CommandFailure::Usage(error) | CommandFailure::Failed(error) => {
                crate::output::talk(format_args!("error: {error}"));
                ExitCode::from(if matches!(self, CommandFailure::Usage(_)) { 2 } else { 1 })
            }
            CommandFailure::OutputClosed => ExitCode::SUCCESS,
            CommandFailure::Interrupted => ExitCode::from(INTERRUPTED),
        }
    }

    pub(crate) fn failed(what: impl Into<String>, hint: impl Into<String>) -> CommandFailure {
        CommandFailure::Failed(Error::new(what).hint(hint))
    }

    /// An invalid command line or configuration, with a hint.
    pub(crate) fn usage(what: impl Into<String>, hint: impl Into<String>) -> CommandFailure {
        CommandFailure::Usage(Error::new(what).hint(hint))
    }

    pub(crate) fn of_stdout(error: &io::Error) -> CommandFailure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return CommandFailure::OutputClosed;
        }
        let what = format!("cannot write the result to standard output: {error}");
        CommandFailure::failed(what, "use --out DIR to write files instead")
    }

    pub(crate) fn of_directory(directory: &Path, error: &io::Error) -> CommandFailure {
        let what =
            format!("cannot create the directory {}: {error}\nNothing was computed.", directory.display());
        CommandFailure::failed(what, "choose a directory that you can write to")
    }

    /// Failure to write files after the result was printed.
    pub(crate) fn of_file(error: &io::Error) -> CommandFailure {
        let what = format!("cannot write {error}\nThe result above is complete, but its files are not.");
        CommandFailure::failed(what, "choose a writable directory with --out or --trace")
    }
}

impl From<Error> for CommandFailure {
    fn from(error: Error) -> CommandFailure {
        CommandFailure::Failed(error)
    }
}
