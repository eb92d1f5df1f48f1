//! Output of figures and pages to a terminal or a directory.

use crate::record::Experiment;
use crate::report::{PageBlock, Report, wrapped};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Formats blocks for a terminal of this width in columns. Plots and ledgers are shown as their tables, and `colour`
/// adds weight and colour to what the text already states.
pub fn terminal(blocks: &[PageBlock], width: usize, colour: bool) -> String {
    // Limits the length of text lines, because long lines are hard to read however wide the terminal is.
    const WORDS_MAX: usize = 100;
    let words = |text: &str| wrapped(&text.replace('`', ""), width.min(WORDS_MAX)).join("\n") + "\n";
    let part = |block: &PageBlock| match block {
        PageBlock::Text(text) => words(text),
        PageBlock::Code { caption, text } => format!("{}\n{}\n", words(caption), indented(text)),
        PageBlock::Table(table) | PageBlock::Folded(table) => table.terminal(width, colour),
        PageBlock::Plot(plot) => plot.table().terminal(width, colour),
        PageBlock::Ledger(chart) => chart.table().terminal(width, colour),
        PageBlock::Rank(chart) => chart.table().terminal(width, colour),
        PageBlock::Scatter(chart) => chart.table().terminal(width, colour),
        PageBlock::Map(map) => map.terminal(width, colour),
    };
    blocks.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// Writes `report.html`, `NAME.json`, `records.csv` and `runs.csv` to a directory, which is created if necessary;
/// returns the files written.
///
/// # Errors
/// Returns errors of the files, with the name of the file.
pub fn write(directory: &Path, experiment: &Experiment, report: &Report) -> io::Result<Vec<PathBuf>> {
    make(directory)?;
    let json = format!("{}.json", experiment.experiment);
    Ok(vec![
        file(directory, "report.html", |out| out.write_all(report.html(experiment).as_bytes()))?,
        file(directory, &json, |out| experiment.write_json(out))?,
        file(directory, "records.csv", |out| experiment.write_records_csv(out))?,
        file(directory, "runs.csv", |out| experiment.write_runs_csv(out))?,
    ])
}

pub(crate) fn make(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory).map_err(|error| named(error, directory))
}

/// Writes one file; an error contains its name.
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
        let mut table = Table::new("", [Column::text("protocol"), Column::number("time", "s")]);
        table.row([Cell::text("tcpcl4"), Cell::number(105.0)]);
        let blocks = [
            PageBlock::Text("`tcpcl4` is the fastest of them all.".into()),
            PageBlock::Table(table),
            PageBlock::Code { caption: "`node.toml`".into(), text: "[link]\n\nx = 1\n".into() },
        ];
        let expected = "\
tcpcl4 is the
fastest of them all.

protocol  time (s)
--------  --------
tcpcl4         105

node.toml

    [link]

    x = 1
";
        assert_eq!(terminal(&blocks, 20, false), expected);
    }

    #[test]
    fn files_are_written_and_a_place_that_is_none_is_named() {
        let directory = std::env::temp_dir().join(format!("longwire-output-{}", std::process::id()));
        let experiment = Experiment { experiment: "cislunar".into(), ..Experiment::default() };
        let written = write(&directory, &experiment, &Report::default()).unwrap();
        assert_eq!(written[1], directory.join("cislunar.json"));
        let error = write(&written[0], &experiment, &Report::default()).unwrap_err();
        assert!(error.to_string().contains("report.html"), "{error}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
