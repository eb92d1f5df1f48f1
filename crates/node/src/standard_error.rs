//! Lines on the standard error.
//!
//! The reader may have gone, as `head` does after its lines: that is no reason for a node to end, as `eprintln!` would have it.

use std::fmt;
use std::io::Write;

/// Says this line, or these, to whoever reads.
pub(crate) fn say(lines: fmt::Arguments<'_>) {
    let text = format!("{lines}\n");
    // Nobody is there to be told that nobody is there.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
