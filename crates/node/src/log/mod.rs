//! The log: messages for the operator, on standard error.
//!
//! ```text
//!    warn!(target: "store", ..)  -->  filter  -->  format  -->  queue  -->  thread  -->  standard error
//!                                 LONGWIRE_LOG   plain or
//!                                                journal
//! ```
//!
//! A message is an event of `tracing` with a level, a target that names a part of the node, and perhaps a field `hint` with advice. A
//! program in which [`begin`] was not called has no log, or a `tracing` subscriber of its own. docs/log.md describes levels and
//! targets.

mod filter;
mod format;
mod queue;

pub(crate) use queue::finish;

use format::LineFormat;
use longwire_settings::error::Error;
use std::io::{self, Write};
use std::sync::Once;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// Starts the log of this process: the messages of its nodes are written to standard error, as far as the environment variable
/// `LONGWIRE_LOG` selects them. Does nothing if the log was started before, or if the program has a `tracing` subscriber already.
///
/// # Errors
/// Fails if the value of `LONGWIRE_LOG` is invalid.
pub fn begin() -> Result<(), Error> {
    static BEGUN: Once = Once::new();
    let filter = filter::from_environment()?;
    BEGUN.call_once(|| {
        let log = subscriber(filter, LineFormat::of_standard_error(), || QueueWriter);
        // It fails if the program has a subscriber of its own, which gets the messages then.
        let _ = tracing::subscriber::set_global_default(log);
    });
    Ok(())
}

/// Writes an error past the filter and past `tracing`, in whose code a thread may have panicked.
pub(crate) fn write_unfiltered(text: &str) {
    queue::say(&LineFormat::of_standard_error().lines(Level::ERROR, text));
}

/// Writes the lines of selected messages with `make_writer`: one call of `write` for each message.
fn subscriber<W>(filter: Targets, format: LineFormat, make_writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // On failure the layer would print to standard error itself, which blocks if that is not read, and panics if that is closed.
    let lines = tracing_subscriber::fmt::layer()
        .event_format(format)
        .with_writer(make_writer)
        .log_internal_errors(false);
    tracing_subscriber::registry().with(filter).with(lines)
}

/// Writes the lines of one message to the queue.
struct QueueWriter;

impl Write for QueueWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        queue::say(&String::from_utf8_lossy(lines));
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex, PoisonError};
    use tracing::{debug, error, info, trace, warn};
    use tracing_subscriber::util::SubscriberInitExt;

    /// Messages as the queue gets them, each with its newline.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<String>>);

    impl Write for Written {
        fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
            let text = std::str::from_utf8(lines).expect("text");
            *self.0.lock().expect("no other test has it") += &format!("{text}\n");
            Ok(lines.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns what is written of the messages of `log`.
    fn written(filter: &str, format: LineFormat, log: impl FnOnce()) -> String {
        // One subscriber at a time: one that begins while a message is registered for another one may miss the message.
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let written = Written::default();
        let writer = written.clone();
        let filter = filter::parse(filter).expect("it is valid");
        let guard = subscriber(filter, format, move || writer.clone()).set_default();
        log();
        drop(guard);
        let text = written.0.lock().expect("no other test has it");
        text.clone()
    }

    fn messages() {
        let hint = Some("reduce it".to_owned());
        error!(target: "configuration", hint, "not reloaded: {}", "too large");
        warn!(target: "udp", "limited\nhint: enlarge it");
        info!(target: "tnc", hint = None::<&str>, "TNC `{}` is up", "vhf");
        debug!(target: "tnc", frames = 3, port = "0", hint = "none", "heard");
        trace!(target: "tnc", "nothing");
    }

    #[test]
    fn a_message_on_a_terminal_begins_with_the_program_and_ends_with_its_hint() {
        let text = written("", LineFormat::Plain, messages);
        let lines = [
            "longwire: not reloaded: too large",
            "hint: reduce it",
            "longwire: limited",
            "hint: enlarge it",
            "longwire: TNC `vhf` is up",
        ];
        assert_eq!(text, lines.map(|line| format!("{line}\n")).concat());
    }

    #[test]
    fn each_line_in_the_journal_begins_with_the_priority_of_its_message() {
        let text = written("trace", LineFormat::Journal, messages);
        let lines = [
            "<3>not reloaded: too large",
            "<3>hint: reduce it",
            "<4>limited",
            "<4>hint: enlarge it",
            "<6>TNC `vhf` is up",
            "<7>heard frames=3 port=0",
            "<7>hint: none",
            "<7>nothing",
        ];
        assert_eq!(text, lines.map(|line| format!("{line}\n")).concat());
    }

    #[test]
    fn messages_are_selected_by_level_and_target() {
        for (filter, expected) in [
            ("", "store-error store-info udp-warn "),
            ("warn", "store-error udp-warn "),
            ("ERROR, store = debug", "store-error store-info store-debug "),
            ("store=off", "udp-warn "),
            ("store=info,off", "store-error store-info "),
            ("debug,store=trace,store=error,", "store-error udp-warn udp-debug "),
            ("off", ""),
        ] {
            let text = written(filter, LineFormat::Journal, || {
                error!(target: "store", "store-error");
                info!(target: "store", "store-info");
                debug!(target: "store", "store-debug");
                warn!(target: "udp", "udp-warn");
                debug!(target: "udp", "udp-debug");
                error!("of another crate, whose targets are its modules");
            });
            let names: String = text.lines().map(|line| format!("{} ", &line[3..])).collect();
            assert_eq!(names, expected, "{filter}");
        }
    }
}
