//! Format of the lines of the log.
//!
//! A message is one line, and its hint another one. On a terminal or in a file the message begins with the name of the program. In the
//! journal of systemd each line begins with its priority in angle brackets instead (sd-daemon(3)), and the journal names the unit.

use rustix::fs::fstat;
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::io;
use std::os::fd::AsFd;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Format of the lines, by their reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineFormat {
    /// A terminal, a file or another program.
    Plain,
    /// The journal of systemd.
    Journal,
}

impl LineFormat {
    /// Format for the standard error of this process.
    pub(super) fn of_standard_error() -> LineFormat {
        LineFormat::of(&io::stderr(), std::env::var_os("JOURNAL_STREAM").as_deref())
    }

    /// Format for `out`. `journal` is the journal's stream by device and inode (systemd.exec(5)): child processes inherit the
    /// variable even if their standard error is a different file.
    fn of(out: &impl AsFd, journal: Option<&OsStr>) -> LineFormat {
        let name = fstat(out).map(|file| format!("{}:{}", file.st_dev, file.st_ino));
        match (name, journal) {
            (Ok(name), Some(journal)) if journal == name.as_str() => LineFormat::Journal,
            _ => LineFormat::Plain,
        }
    }

    /// Lines of a message of the node, without a newline at the end.
    pub(super) fn lines(self, level: Level, text: &str) -> String {
        match self {
            LineFormat::Plain => format!("longwire: {text}"),
            LineFormat::Journal => {
                let priority = priority(level);
                let lines: Vec<String> = text.lines().map(|line| format!("<{priority}>{line}")).collect();
                lines.join("\n")
            }
        }
    }
}

/// Priority of a level in the journal (syslog(3)).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut message = Message::default();
        event.record(&mut message);
        let text = message.text + &message.hint;
        let metadata = event.metadata();
        match self {
            // The command's own lines begin with what it reports, as those of the other commands do.
            LineFormat::Plain if !is_of_this_crate(metadata.module_path()) => writer.write_str(&text),
            format => writer.write_str(&format.lines(*metadata.level(), &text)),
        }
    }
}

fn is_of_this_crate(module: Option<&str>) -> bool {
    module.is_some_and(|module| module.split("::").next() == module_path!().split("::").next())
}

#[derive(Default)]
struct Message {
    /// The message, and fields for which there is no format, each with its name.
    text: String,
    /// Line with the hint, if there is one, after a newline.
    hint: String,
}

impl Visit for Message {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail, but `value` can.
        let _ = match field.name() {
            "message" => write!(self.text, "{value:?}"),
            "hint" => write!(self.hint, "\nhint: {value:?}"),
            name => write!(self.text, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_known_by_the_device_and_inode_of_its_stream() {
        let (_reader, writer) = io::pipe().expect("a pipe can be made");
        let file = fstat(&writer).expect("it is open");
        let (device, inode) = (file.st_dev, file.st_ino);
        let of = |journal: &str| LineFormat::of(&writer, Some(OsStr::new(journal)));
        assert_eq!(of(&format!("{device}:{inode}")), LineFormat::Journal);
        for other in [format!("{device}:{inode}1"), format!("1{device}:{inode}"), String::new()] {
            assert_eq!(of(&other), LineFormat::Plain, "{other}");
        }
        assert_eq!(LineFormat::of(&writer, None), LineFormat::Plain);
    }

    #[test]
    fn only_messages_of_the_node_name_the_program() {
        assert!(is_of_this_crate(Some("longwire_node")));
        assert!(is_of_this_crate(Some("longwire_node::task::store")));
        for other in [None, Some("longwire::verb::node"), Some("longwire_node2::task")] {
            assert!(!is_of_this_crate(other), "{other:?}");
        }
    }
}
