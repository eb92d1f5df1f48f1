//! Options of the measuring verbs, and the output of their findings.

use crate::failure::{CommandFailure, CommandResult, INTERRUPTED};
use crate::flag;
use crate::meter::{Meter, Unit};
use clap::Args;
use longwire_lab::error::Error;
use longwire_lab::finding::Finding;
use longwire_lab::progress::Progress;
use longwire_lab::{bench, output, trace};
use signal_hook::consts::SIGINT;
use std::env;
use std::fmt;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Options of verbs without randomness: only the form and place of the output.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write report.html, records.csv, runs.csv and the JSON document to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Show {
    /// Prints the finding and writes its files.
    pub(crate) fn carry_out(&self, finding: &Finding) -> CommandResult {
        if let Some(directory) = &self.out {
            write_report(directory, finding)?;
        }
        print(finding, self.json)
    }
}

/// Options of all measuring verbs.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write report.html, records.csv, runs.csv and the JSON document to this directory [default:
    /// longwire-report; none with --json]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write packet captures, time-sequence graphs, goodput traces and timelines to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Random seed; the same seed gives byte-identical output
    // A scenario contains the seed, and integers in TOML have 64 bits with a sign.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flag::whole::<u64>(0, i64::MAX as u64))]
    pub(crate) seed: Option<u64>,
    /// Number of runs, each with its own channel noise; Ctrl-C stops after the current runs, a second Ctrl-C stops at once
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flag::whole::<u32>(1, u32::MAX.into()))]
    runs: Option<u32>,
    /// Number of threads; does not change the result [default: all processors]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flag::whole::<usize>(1, 4096))]
    threads: Option<usize>,
    /// Print only errors on stderr
    #[arg(long, short)]
    quiet: bool,
}

impl Measure {
    pub(crate) fn runs(&self) -> Option<u32> {
        self.runs
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(bench::threads_available)
    }

    /// Computes with progress on stderr, then prints the finding and writes its files.
    pub(crate) fn carry_out(
        &self,
        compute: impl FnOnce(&Progress) -> Result<Finding, Error>,
    ) -> CommandResult {
        self.carry_out_and(compute, |finding| print(finding, self.json))
    }

    /// Does the same, but `show` prints the finding.
    pub(crate) fn carry_out_and(
        &self,
        compute: impl FnOnce(&Progress) -> Result<Finding, Error>,
        show: impl FnOnce(&Finding) -> CommandResult,
    ) -> CommandResult {
        self.carry_out_in(Path::new(""), interrupts()?, compute, show)
    }

    /// The same as `carry_out` with several computations, one after the other, each with a directory of its own below the
    /// others.
    pub(crate) fn carry_out_all(
        &self,
        names: &[&str],
        compute: impl Fn(&str, &Progress) -> Result<Finding, Error>,
    ) -> CommandResult {
        let stop = interrupts()?;
        let mut each = names.iter();
        each.try_for_each(|name| {
            let show = |finding: &Finding| print(finding, self.json);
            self.carry_out_in(Path::new(name), stop.clone(), |progress| compute(name, progress), show)
        })
    }

    fn carry_out_in(
        &self,
        below: &Path,
        stop: Arc<AtomicBool>,
        compute: impl FnOnce(&Progress) -> Result<Finding, Error>,
        show: impl FnOnce(&Finding) -> CommandResult,
    ) -> CommandResult {
        // A directory that cannot be created is reported before a long computation, not after it.
        for directory in [&self.out, &self.trace].into_iter().flatten() {
            fs::create_dir_all(directory).map_err(|error| CommandFailure::of_directory(directory, &error))?;
        }
        let progress = Progress::until(stop);
        let finding = Meter::new(self.quiet, Unit::Runs).watch(&progress, compute)?;
        // Ctrl-C during the last round stops nothing.
        let is_stopped = progress.left_out() > 0;
        if is_stopped {
            self.say(format_args!("stopped early; the results cover the completed runs"));
        }
        let shown = show(&finding);
        // The files are written even if the reader of stdout has closed it.
        self.write(below, &finding)?;
        shown?;
        if is_stopped { Err(CommandFailure::Interrupted) } else { Ok(()) }
    }

    fn write(&self, below: &Path, finding: &Finding) -> CommandResult {
        let unsaid = (!self.json).then(|| PathBuf::from("longwire-report"));
        if let Some(directory) = self.out.clone().or(unsaid) {
            let page = write_report(&directory.join(below), finding)?;
            self.say(format_args!("report: {}", page.display()));
        }
        if let Some(directory) = &self.trace {
            for traced in &finding.traces {
                let directory = directory.join(below).join(traced.folder());
                let written = trace::write(&directory, &traced.name, &traced.frames);
                written.map_err(|error| CommandFailure::of_file(&error))?;
            }
            self.say(format_args!("traces of {} runs: {}", finding.traces.len(), directory.display()));
        }
        Ok(())
    }

    /// Prints a line on stderr, unless only errors are wanted.
    pub(crate) fn say(&self, what: fmt::Arguments<'_>) {
        if !self.quiet {
            talk(what);
        }
    }
}

/// Returns a flag that is true from the first Ctrl-C on; a second Ctrl-C ends the process.
pub(crate) fn interrupts() -> CommandResult<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let watched = signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), stop.clone())
        .and_then(|_| signal_hook::flag::register(SIGINT, stop.clone()));
    watched.map_err(|error| Error::new(format!("cannot install a signal handler: {error}")))?;
    Ok(stop)
}

fn print(finding: &Finding, json: bool) -> CommandResult {
    let mut out = io::stdout().lock();
    let written = if json {
        finding.experiment.write_json(&mut out)
    } else {
        let (width, colour) = stdout_style();
        out.write_all(output::terminal(&finding.summary, width, colour).as_bytes())
    };
    written.and_then(|()| out.flush()).map_err(|error| CommandFailure::of_stdout(&error))
}

/// Writes the finding as files and returns the path of the page.
fn write_report(directory: &Path, finding: &Finding) -> CommandResult<PathBuf> {
    let written = finding.write(directory);
    Ok(written.map_err(|error| CommandFailure::of_file(&error))?.swap_remove(0))
}

/// Prints a line on stderr. A closed stderr is not a failure.
pub(crate) fn talk(what: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Maximum width of a line in a file or a pipe, in which all columns of a comparison fit.
const FILE_COLUMNS: usize = 120;

/// Returns the maximum width of a line on stdout, and whether to use colour.
fn stdout_style() -> (usize, bool) {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return (FILE_COLUMNS, false);
    }
    let width = terminal_size::terminal_size_of(&stdout).map_or(100, |(width, _)| usize::from(width.0));
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || env::var_os("TERM").is_some_and(|term| term == "dumb");
    (width.max(40), !plain)
}
