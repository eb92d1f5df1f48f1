//! Lines of JSON on standard output.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

/// Prints events with the time since the start of the process.
#[derive(Debug)]
pub struct Report {
    start: Instant,
}

/// A line that is being written.
#[derive(Debug)]
pub struct Line(String);

impl Report {
    pub fn new(start: Instant) -> Report {
        Report { start }
    }

    pub fn line(&self, event: &str) -> Line {
        Line(format!("{{\"at\":{:.6},\"event\":\"{event}\"", self.start.elapsed().as_secs_f64()))
    }
}

impl Line {
    pub fn text(mut self, key: &str, value: &str) -> Line {
        let _ = write!(self.0, ",\"{key}\":\"");
        for c in value.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                c if c.is_control() => {
                    let _ = write!(self.0, "\\u{:04x}", u32::from(c));
                }
                c => self.0.push(c),
            }
        }
        self.0.push('"');
        self
    }

    pub fn number(mut self, key: &str, value: impl std::fmt::Display) -> Line {
        let _ = write!(self.0, ",\"{key}\":{value}");
        self
    }

    /// A reader that is gone does not change what the peer does.
    pub fn print(mut self) {
        self.0.push_str("}\n");
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(self.0.as_bytes()).and_then(|()| out.flush());
    }
}
