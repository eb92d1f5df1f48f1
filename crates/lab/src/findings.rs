//! What an experiment is asked for, and what it hands back: figures, a page, a summary for the terminal, traces.

use crate::progress::Progress;
use crate::record::Experiment;
use crate::report::{Block, Report};
use crate::trace::{self, CapturedFrame};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What every experiment may be asked for, whatever else it is about.
#[derive(Clone, Copy, Debug)]
pub struct Effort<'a> {
    /// The seed, where it is not to be the experiment's own.
    pub seed: Option<u64>,
    /// Runs a point, where they are not to be the experiment's own number.
    pub runs: Option<u32>,
    /// Threads to spread the runs over. Changes how long it takes and nothing else.
    pub threads: usize,
    /// Keep the frames of one run of each series.
    pub traces: bool,
    /// The command that asked, for the page.
    pub command: &'a str,
    /// Hears of every run that is done.
    pub progress: &'a Progress,
}

/// What came of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The figures and the runs behind them.
    pub experiment: Experiment,
    /// The page.
    pub report: Report,
    /// For the terminal: what a person wants to know first. Plots and ledgers are shown as their tables.
    pub summary: Vec<Block>,
    /// The runs that were traced.
    pub traces: Vec<Trace>,
}

/// A traced run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// A name that is fit for a directory: `tcpcl3-2000ms`.
    pub name: String,
    /// What it shows, for people.
    pub title: String,
    /// Every frame.
    pub frames: Vec<CapturedFrame>,
}

impl Findings {
    /// The summary for a terminal so many columns wide: data only, nothing about where files went.
    pub fn terminal(&self, width: usize, colour: bool) -> String {
        let mut parts = Vec::new();
        if !self.report.lead.is_empty() {
            parts.push(wrapped(&self.report.lead.replace('`', ""), width));
        }
        for block in &self.summary {
            parts.push(match block {
                Block::Text(text) => wrapped(&text.replace('`', ""), width),
                Block::Code { caption, text } => {
                    format!("{}\n\n{}\n", caption.replace('`', ""), indented(text))
                }
                Block::Table(table) => table.terminal(width, colour),
                Block::Plot(plot) => plot.table().terminal(width, colour),
                Block::Ledger(chart) => chart.table().terminal(width, colour),
            });
        }
        parts.join("\n")
    }

    /// Writes `report.html`, `NAME.json`, `records.csv` and `runs.csv` into a directory, which is made if need be; says
    /// which files it wrote.
    ///
    /// # Errors
    /// Those of the files, with the name of the one at fault.
    pub fn write(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        make(directory)?;
        let experiment = &self.experiment;
        let json = format!("{}.json", experiment.experiment);
        Ok(vec![
            file(directory, "report.html", |out| out.write_all(self.report.html(experiment).as_bytes()))?,
            file(directory, &json, |out| experiment.write_json(out))?,
            file(directory, "records.csv", |out| experiment.write_records_csv(out))?,
            file(directory, "runs.csv", |out| experiment.write_runs_csv(out))?,
        ])
    }

    /// Writes each trace into a directory of its name inside this one; says which files it wrote.
    ///
    /// # Errors
    /// Those of the files, with the name of the one at fault.
    pub fn write_traces(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        make(directory)?;
        let mut written = Vec::new();
        for trace in &self.traces {
            written.extend(trace::write(&directory.join(&trace.name), &trace.title, &trace.frames)?);
        }
        Ok(written)
    }
}

pub(crate) fn make(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory).map_err(|error| named(error, directory))
}

/// Writes one file; an error names it.
pub(crate) fn file(
    directory: &Path,
    name: &str,
    fill: impl FnOnce(&mut BufWriter<fs::File>) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let path = directory.join(name);
    let filled = fs::File::create(&path).and_then(|file| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.flush()
    });
    filled.map(|()| path.clone()).map_err(|error| named(error, &path))
}

fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Broken between words.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        }
        if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| if line.is_empty() { String::new() } else { format!("    {line}") });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Cell, Column, Table};

    #[test]
    fn the_terminal_gets_words_tables_and_code() {
        let mut table = Table::new("", [Column::text("stack"), Column::number("time", "s")]);
        table.row([Cell::text("tcpcl4"), Cell::number(105.0)]);
        let findings = Findings {
            report: Report { lead: "`tcpcl4` is the fastest of them all.".into(), ..Report::default() },
            summary: vec![
                table.into(),
                Block::Code { caption: "`node.toml`".into(), text: "[link]\n\nx = 1\n".into() },
            ],
            ..Findings::default()
        };
        let expected = "\
tcpcl4 is the
fastest of them all.

stack   time (s)
------  --------
tcpcl4       105

node.toml

    [link]

    x = 1
";
        assert_eq!(findings.terminal(20, false), expected);
    }

    #[test]
    fn files_are_written_and_a_place_that_is_none_is_named() {
        let directory = std::env::temp_dir().join(format!("longwire-findings-{}", std::process::id()));
        let mut findings = Findings::default();
        findings.experiment.experiment = "cislunar".into();
        findings.traces.push(Trace { name: "tcpcl3".into(), ..Trace::default() });
        let written = findings.write(&directory).unwrap();
        assert_eq!(written[1], directory.join("cislunar.json"));
        assert_eq!(findings.write_traces(&directory).unwrap().len(), 3);
        assert!(directory.join("tcpcl3/capture.pcapng").exists());
        let error = findings.write(&written[0]).unwrap_err();
        assert!(error.to_string().contains("report.html"), "{error}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
