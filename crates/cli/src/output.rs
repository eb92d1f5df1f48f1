//! What every measuring verb can be told, and how what it found is shown.

use crate::failure::{CommandFailure, INTERRUPTED};
use crate::flag;
use crate::progress;
use clap::Args;
use longwire_lab::error::Error;
use longwire_lab::finding::Finding;
use longwire_lab::progress::Progress;
use longwire_lab::{output, parallel, trace};
use signal_hook::consts::SIGINT;
use std::env;
use std::fmt;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The flags of verbs that compute without chance: nothing but where it goes.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write report.html, records.csv, runs.csv and the JSON document into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Show {
    /// Shows and writes what was found.
    pub(crate) fn carry_out(&self, finding: &Finding) -> Result<(), CommandFailure> {
        if let Some(directory) = &self.out {
            write_report(directory, finding)?;
        }
        print(finding, self.json)
    }
}

/// The flags of all verbs that measure.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write report.html, records.csv, runs.csv and the JSON document into this directory [default:
    /// longwire-report; with --json, none]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write packet captures, time-sequence graphs, goodput traces and timelines into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// The seed of all randomness: the same seed gives the same bytes
    // A scenario holds it, and TOML's numbers end there.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flag::whole::<u64>(0, i64::MAX as u64))]
    pub(crate) seed: Option<u64>,
    /// How many runs, each with its own noise; Ctrl-C ends with those that are done, and a second one at once
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flag::whole::<u32>(1, u32::MAX.into()))]
    runs: Option<u32>,
    /// How many threads to compute on; changes nothing but the time it takes [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = flag::whole::<usize>(1, 4096))]
    threads: Option<usize>,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    quiet: bool,
}

impl Measure {
    pub(crate) fn runs(&self) -> Option<u32> {
        self.runs
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(parallel::threads_available)
    }

    /// Computes with progress on stderr, then shows and writes what was found.
    pub(crate) fn carry_out(
        &self,
        compute: impl FnOnce(&Progress) -> Result<Finding, Error>,
    ) -> Result<(), CommandFailure> {
        let stop = interrupts()?;
        // Better told before a long computation than after it.
        for directory in [&self.out, &self.trace].into_iter().flatten() {
            fs::create_dir_all(directory).map_err(|error| CommandFailure::of_directory(directory, &error))?;
        }
        let visible = !self.quiet && io::stderr().is_terminal();
        let progress = Progress::until(stop);
        let finding = progress::shown(visible, &progress, compute)?;
        // Ctrl-C that came in the last round has stopped nothing.
        let is_stopped = progress.left_out() > 0;
        if is_stopped {
            self.say(format_args!("stopped: this is what the runs that were done by then give"));
        }
        let shown = print(&finding, self.json);
        // Whoever stops reading still gets the files.
        self.write(&finding)?;
        shown?;
        if is_stopped { Err(CommandFailure::Interrupted) } else { Ok(()) }
    }

    fn write(&self, finding: &Finding) -> Result<(), CommandFailure> {
        let unsaid = (!self.json).then(|| PathBuf::from("longwire-report"));
        if let Some(directory) = self.out.clone().or(unsaid) {
            let page = write_report(&directory, finding)?;
            self.say(format_args!("report: {}", page.display()));
        }
        if let Some(directory) = &self.trace {
            for traced in &finding.traces {
                let directory = directory.join(folder(&traced.name));
                let written = trace::write(&directory, &traced.name, &traced.frames);
                written.map_err(|error| CommandFailure::of_file(&error))?;
            }
            self.say(format_args!("traces of {} runs: {}", finding.traces.len(), directory.display()));
        }
        Ok(())
    }

    fn say(&self, what: fmt::Arguments<'_>) {
        if !self.quiet {
            talk(what);
        }
    }
}

/// True from the first Ctrl-C on; a second one ends the process.
pub(crate) fn interrupts() -> Result<Arc<AtomicBool>, CommandFailure> {
    let stop = Arc::new(AtomicBool::new(false));
    let watched = signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), stop.clone())
        .and_then(|_| signal_hook::flag::register(SIGINT, stop.clone()));
    watched.map_err(|error| {
        CommandFailure::Failed(Error::new(format!("the system gives no signals: {error}")))
    })?;
    Ok(stop)
}

/// What was found, on stdout.
fn print(finding: &Finding, json: bool) -> Result<(), CommandFailure> {
    let mut out = io::stdout().lock();
    let written = if json {
        finding.experiment.write_json(&mut out)
    } else {
        let (width, colour) = stdout_style();
        out.write_all(output::terminal(&finding.summary, width, colour).as_bytes())
    };
    written.and_then(|()| out.flush()).map_err(|error| CommandFailure::of_stdout(&error))
}

/// What was found, as files; says where the page is.
fn write_report(directory: &Path, finding: &Finding) -> Result<PathBuf, CommandFailure> {
    let written = output::write(directory, &finding.experiment, &finding.report);
    Ok(written.map_err(|error| CommandFailure::of_file(&error))?.swap_remove(0))
}

/// A line on stderr. That nobody reads it is no failure.
pub(crate) fn talk(what: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// How wide lines may be, and whether to use colour.
fn stdout_style() -> (usize, bool) {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return (usize::MAX, false);
    }
    let width = terminal_size::terminal_size_of(&stdout).map_or(100, |(width, _)| usize::from(width.0));
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || env::var_os("TERM").is_some_and(|term| term == "dumb");
    (width.max(40), !plain)
}

/// A name as a folder's name.
fn folder(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let all: String = name.chars().map(fits).collect();
    let words: Vec<&str> = all.split('-').filter(|word| word.chars().any(|c| c != '.')).collect();
    if words.is_empty() { "run".to_owned() } else { words.join("-") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_names_that_every_system_takes() {
        assert_eq!(folder("tcpcl3/dtn2, delay_ms 2000"), "tcpcl3-dtn2-delay-ms-2000");
        assert_eq!(folder("../ber 1e-6"), "ber-1e-6");
        assert_eq!(folder("../.."), "run");
    }
}
