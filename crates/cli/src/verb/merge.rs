//! `longwire merge`.

use crate::failure::CommandResult;
use crate::output::Show;
use clap::Args;
use longwire_lab::error::Error;
use longwire_lab::share::{self, Share};
use longwire_lab::sweep::Sweep;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Join the shares that `run --shard` wrote on several machines
///
/// The result is that of the run without --shard, byte for byte. If shares are missing or there twice, nothing is written, and
/// the error names them. Files that the scenario names must be where they were for `run`.
#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// Directories that `run --shard I/N --out DIR` wrote, or the files NAME.share in them
    #[arg(value_name = "DIR", required = true)]
    shares: Vec<PathBuf>,
    #[command(flatten)]
    show: Show,
}

impl Merge {
    pub(crate) fn run(&self) -> CommandResult {
        let files = self.shares.iter().map(|path| files(path)).collect::<Result<Vec<_>, _>>()?;
        let shares = files.concat().iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        let count = shares.len();
        let (assignment, outcomes) = share::join(shares)?;
        let sweep = Sweep::new(assignment.text.clone(), assignment.options()?)?;
        self.show.carry_out(&sweep.merged(outcomes, count)?)
    }
}

/// Returns the shares in a directory, or the path itself if it is none.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let entries = entries.map_err(|error| unreadable(path, &error))?;
    let is_share = |path: &PathBuf| path.extension().is_some_and(|ending| ending == share::ENDING);
    let mut files: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).filter(is_share).collect();
    files.sort();
    match files.is_empty() {
        true => Err(Error::new(format!("no share in {}", path.display()))
            .hint("`longwire run SCENARIO --shard I/N --out DIR` writes one to DIR")),
        false => Ok(files),
    }
}

fn read(file: &Path) -> Result<(String, Share), Error> {
    let bytes = fs::read(file).map_err(|error| unreadable(file, &error))?;
    let share = Share::from_bytes(&bytes).map_err(|error| error.within(file.display()))?;
    Ok((file.display().to_string(), share))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::new(format!("cannot read {}: {error}", path.display()))
        .hint("give the directories that `longwire run --shard` wrote")
}
