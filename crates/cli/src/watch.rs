//! Output that is repeated until Ctrl-C.

use crate::failure::{CommandFailure, CommandResult};
use crate::node_connection::{NodeOptions, print};
use crate::output::interrupts;
use clap::Args;
use longwire_settings::error::Error;
use serde::Serialize;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two outputs.
const EVERY: Duration = Duration::from_secs(1);
/// Interval at which Ctrl-C is looked for.
const STEP: Duration = Duration::from_millis(50);
/// Moves the cursor to the first line and clears the screen from there (ECMA-48 8.3.21, 8.3.39).
const REPAINT: &str = "\x1b[H\x1b[J";

#[derive(Debug, Args)]
pub(crate) struct WatchOptions {
    /// Show the current state every second until Ctrl-C; with --json, one document a line
    #[arg(long, global = true)]
    watch: bool,
}

impl WatchOptions {
    /// Shows what `look` returns: once, or with --watch every second until Ctrl-C. A terminal is repainted, and elsewhere a blank
    /// line separates the outputs.
    pub(crate) fn show<T: Serialize>(
        &self,
        reach: &NodeOptions,
        mut look: impl FnMut() -> CommandResult<T>,
        words: impl Fn(&T) -> String,
    ) -> CommandResult {
        if !self.watch {
            let found = look()?;
            return reach.show(&found, || words(&found));
        }
        let stop = interrupts()?;
        let is_dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
        let repaints = !reach.json && !is_dumb && io::stdout().is_terminal();
        let mut separator = "";
        loop {
            let began = Instant::now();
            // The signal may have interrupted the conversation with the node.
            let found = look().map_err(|failure| match stop.load(Ordering::Relaxed) {
                true => CommandFailure::Interrupted,
                false => failure,
            })?;
            if reach.json {
                print(&serde_json::to_string(&found).map_err(|error| Error::new(error.to_string()))?)?;
            } else if repaints {
                let size = terminal_size::terminal_size().map(|(width, height)| (width.0, height.0));
                print(&format!("{REPAINT}{}", fitted(&words(&found), size)))?;
            } else {
                print(&format!("{separator}{}", words(&found)))?;
                separator = "\n";
            }
            wait(began + EVERY, &stop)?;
        }
    }
}

/// Waits until `end`.
///
/// # Errors
/// Fails after Ctrl-C.
fn wait(end: Instant, stop: &AtomicBool) -> CommandResult {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(CommandFailure::Interrupted);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(STEP));
    }
}

/// Returns the lines that fit on a terminal of this width and height, of which the last stays empty; a note says how many more
/// there are. Text that scrolled could not be repainted.
fn fitted(text: &str, size: Option<(u16, u16)>) -> String {
    let Some((width, height)) = size.filter(|(width, height)| *width > 0 && *height > 2) else {
        return text.to_owned();
    };
    let rows = |line: &str| line.chars().count().div_ceil(width.into()).max(1);
    let room = usize::from(height) - 1;
    if text.lines().map(rows).sum::<usize>() <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |line: &&str| {
        used += rows(line);
        used <= room
    };
    let shown: Vec<&str> = text.lines().take_while(fits).collect();
    let more = text.lines().count() - shown.len();
    let mut out: String = shown.iter().map(|line| format!("{line}\n")).collect();
    out += &format!("and {more} more line{}\n", if more == 1 { "" } else { "s" });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_the_height_of_the_terminal() {
        let text = "one\ntwo two\nthree\nfour\n";
        assert_eq!(fitted(text, Some((80, 5))), text);
        assert_eq!(fitted(text, Some((80, 4))), "one\ntwo two\nand 2 more lines\n");
        // The second line takes two rows.
        assert_eq!(fitted(text, Some((5, 5))), "one\ntwo two\nand 2 more lines\n");
        assert_eq!(fitted(text, Some((5, 4))), "one\nand 3 more lines\n");
        assert_eq!(fitted(text, None), text);
    }
}
