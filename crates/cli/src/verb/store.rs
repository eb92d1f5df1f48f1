//! `longwire store`.

use crate::failure::{CommandFailure, CommandResult};
use crate::meter::{Meter, Unit};
use crate::node_connection::bytes;
use clap::{Args, Subcommand};
use longwire_node::Config;
use longwire_node::storage::{self, OpenError, ProgressFn, StoreCheck, StoreDamage, StoreRepair};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Maximum number of damaged places that are printed as text; JSON contains all.
const SHOWN_MAX: usize = 100;

/// Check or repair the store of a node that is not running
///
/// A running node checks its store regularly (storage.scrub-every); `longwire status` shows the result.
#[derive(Debug, Args)]
pub(crate) struct Store {
    #[command(subcommand)]
    what: StoreAction,
    /// Configuration of the node, which names its store [default: node.toml]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Store directory
    #[arg(long, value_name = "DIR", conflicts_with = "config", global = true)]
    store: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum StoreAction {
    /// Check the store without changing it; the exit status is 1 if anything is damaged or missing
    Check,
    /// Copy damaged data to the folder `damaged` of the store, and remove records with no data left
    ///
    /// Records with some data left stay: when the node starts, it either recovers each bundle or deletes it and reports
    /// why. Missing records that cannot be identified are not reported again.
    Repair,
}

impl Store {
    pub(crate) fn run(&self) -> CommandResult {
        let folder = self.folder()?;
        match self.what {
            StoreAction::Check => self.check(&folder),
            StoreAction::Repair => self.repair(&folder),
        }
    }

    fn folder(&self) -> CommandResult<PathBuf> {
        if let Some(folder) = &self.store {
            return Ok(folder.clone());
        }
        let config = self.config.clone().unwrap_or_else(|| "node.toml".into());
        Ok(Config::load(&config).map_err(CommandFailure::Usage)?.storage.path)
    }

    fn check(&self, folder: &Path) -> CommandResult {
        let checked = metered(|progress| storage::check(folder, progress))
            .map_err(|error| unreadable(folder, &error))?;
        self.print(&checked, || words(&checked))?;
        match checked.is_sound() {
            true => Ok(()),
            false => Err(CommandFailure::failed(
                format!("store {} is damaged; nothing was changed", folder.display()),
                "back up the folder if you can, then run `longwire store repair`, which keeps all readable data",
            )),
        }
    }

    fn repair(&self, folder: &Path) -> CommandResult {
        let repaired = metered(|progress| storage::repair(folder, progress))
            .map_err(|error| unreadable(folder, &error))?;
        self.print(&repaired, || repaired_words(&repaired))
    }

    fn print(&self, what: &impl Serialize, words: impl FnOnce() -> String) -> CommandResult {
        let text =
            if self.json { serde_json::to_string_pretty(what).expect("it is a document") } else { words() };
        crate::node_connection::print(text.trim_end())
    }
}

/// Works with a progress line on the terminal, which is erased before anything else is printed.
fn metered<T>(work: impl FnOnce(ProgressFn<'_>) -> T) -> T {
    let mut meter = Meter::new(false, Unit::Bytes("read"));
    work(&mut |done, all| meter.show(done, all))
}

fn unreadable(folder: &Path, error: &OpenError) -> CommandFailure {
    let what = format!("cannot open the store {}: {error}", folder.display());
    CommandFailure::failed(what, error.hint())
}

fn words(checked: &StoreCheck) -> String {
    let mut out = format!(
        "format {}, {} segments, {}\n{} records, {} intact",
        checked.format,
        checked.segments,
        bytes(checked.bytes),
        checked.records,
        checked.whole,
    );
    if checked.harmed > 0 {
        let _ = write!(out, ", {} damaged or missing", checked.harmed);
    }
    if checked.unnamed > 0 {
        let _ = write!(out, "; {} more are missing and cannot be identified", checked.unnamed);
    }
    out += "\n";
    if checked.torn_bytes > 0 {
        let _ = writeln!(
            out,
            "{} bytes of an incomplete write after a crash; never acknowledged",
            checked.torn_bytes
        );
    }
    if checked.is_sound() {
        out + "no damage found\n"
    } else {
        out + &places(&checked.damage).replace("; no copy kept\n", "\n")
    }
}

fn repaired_words(repaired: &StoreRepair) -> String {
    let mut out = String::new();
    if repaired.damage.is_empty() {
        out += "nothing to repair\n";
    } else {
        let _ = writeln!(out, "{} places were damaged:", repaired.damage.len() as u64 + repaired.untold);
        out += &places(&repaired.damage);
        if repaired.untold > 0 {
            let _ = writeln!(out, "  and {} more, not listed", repaired.untold);
        }
    }
    if repaired.removed > 0 {
        let _ = writeln!(out, "removed {} records with no data left", repaired.removed);
    }
    let _ = writeln!(out, "{} records are intact", repaired.now.whole);
    if repaired.now.harmed > 0 {
        let _ = writeln!(
            out,
            "{} records are incomplete; the node deletes each of these bundles when it finds the damage, at its start or later, and logs why",
            repaired.now.harmed
        );
    }
    out
}

fn places(damage: &[StoreDamage]) -> String {
    let mut out = String::new();
    for damage in damage.iter().take(SHOWN_MAX) {
        let _ = writeln!(out, "  {damage}");
    }
    if damage.len() > SHOWN_MAX {
        let _ = writeln!(out, "  and {} more; --json shows all", damage.len() - SHOWN_MAX);
    }
    out
}
