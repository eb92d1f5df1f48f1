//! Findings: the result of an experiment as records, a page and a terminal summary.

use crate::output;
use crate::record::{Experiment, Params, Value};
use crate::report::{PageBlock, Report, Section};
use crate::share::{self, Share};
use crate::trace::CapturedFrame;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The result of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Records and runs.
    pub experiment: Experiment,
    /// The page for people.
    pub report: Report,
    /// Terminal summary: the answer in a few paragraphs and tables.
    pub summary: Vec<PageBlock>,
    /// Frames of single runs, if requested.
    pub traces: Vec<Trace>,
    /// Outcomes of the runs, if they are a share of all.
    pub share: Option<Share>,
}

impl Finding {
    /// Writes the files of [`output::write`] to a directory, and for a share `NAME.share`; returns the files written, the page
    /// first.
    ///
    /// # Errors
    /// Returns errors of the files, with the name of the file.
    pub fn write(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let mut files = output::write(directory, &self.experiment, &self.report)?;
        if let Some(share) = &self.share {
            let name = format!("{}.{}", self.experiment.experiment, share::ENDING);
            files.push(output::file(directory, &name, |out| out.write_all(&share.to_bytes()))?);
        }
        Ok(files)
    }
}

/// Part of a page, and of the output in the terminal, about the runs of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Answer, or a summary in a sentence.
    pub lead: String,
    /// First blocks of the page.
    pub answer: Vec<PageBlock>,
    /// Blocks on the terminal, after the lead.
    pub summary: Vec<PageBlock>,
    /// Facts for the top of the page.
    pub facts: Vec<(String, String)>,
    /// Sections of the page.
    pub sections: Vec<Section>,
}

/// The frames of one run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Name of the run, for display and for the name of its folder.
    pub name: String,
    /// All frames.
    pub frames: Vec<CapturedFrame>,
}

impl Trace {
    /// Name of the folder of its files, which every system takes.
    pub fn folder(&self) -> String {
        let fits = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let all: String = self.name.chars().map(fits).collect();
        let words: Vec<&str> = all.split('-').filter(|word| word.chars().any(|c| c != '.')).collect();
        if words.is_empty() { "run".to_owned() } else { words.join("-") }
    }
}

/// Describes parameters, such as `ber 1e-6, delay_ms 2000`.
pub fn point_name(params: &Params) -> String {
    let word = |(name, value): (&str, &Value)| format!("{name} {value}");
    params.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_names_that_every_system_takes() {
        let folder = |name: &str| Trace { name: name.to_owned(), ..Trace::default() }.folder();
        assert_eq!(folder("tcpcl3/dtn2, delay_ms 2000"), "tcpcl3-dtn2-delay-ms-2000");
        assert_eq!(folder("../ber 1e-6"), "ber-1e-6");
        assert_eq!(folder("../.."), "run");
    }
}
