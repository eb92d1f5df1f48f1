//! Queue of the lines for standard error.
//!
//! Its reader may have gone, as `head` does after its lines, or may have stopped, as a suspended terminal does: neither is a reason
//! for a node to end or to wait, and unknown peers influence the number of lines. So a thread of its own writes the lines of all
//! others. If it cannot keep up, lines are dropped, and their number is written instead.
//!
//! Another program may have set a shared terminal or pipe to non-blocking (`O_NONBLOCK` belongs to the open file, not to a process):
//! then the thread waits until there is room, and resumes where it stopped.
//!
//! Units: lines, bytes. Limits: 1 MiB waiting, and as much being written.

use super::format::LineFormat;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Stderr, Write};
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tracing::Level;

/// Maximum bytes waiting to be written: enough for the lines at startup about a store with as much damage as is remembered, with
/// names of common length.
const BYTES_MAX: usize = 1 << 20;
/// Maximum time that the end of a process waits for earlier lines. A reader that reads takes a moment.
const END_MAX: Duration = Duration::from_secs(2);
/// Bytes per write at the end of a process without a writing thread: any pipe with room accepts this many without blocking
/// (POSIX, `_POSIX_PIPE_BUF`).
const PIECE_BYTES: usize = 512;

static STANDARD_ERROR: LineQueue = LineQueue::new(LineFormat::of_standard_error);

/// Writes one or more lines. Never blocks and never fails.
pub(super) fn say(lines: &str) {
    STANDARD_ERROR.say(lines);
    STANDARD_ERROR.begin();
}

/// Waits until all lines are written, for a limited time.
pub(crate) fn finish() {
    if STANDARD_ERROR.lock().has_something() {
        STANDARD_ERROR.begin();
    }
    STANDARD_ERROR.finish(&mut io::stderr(), END_MAX);
}

/// Destination of the lines.
trait LineSink: Write {
    /// Waits until there is room, or until it is certain that there never will be. Returns false after `longest`.
    ///
    /// # Errors
    /// Fails if the system call fails.
    fn has_room(&self, longest: Option<Duration>) -> io::Result<bool>;
}

impl LineSink for Stderr {
    fn has_room(&self, longest: Option<Duration>) -> io::Result<bool> {
        has_room(self, longest)
    }
}

fn has_room(out: &impl AsFd, longest: Option<Duration>) -> io::Result<bool> {
    let longest = longest.map(|longest| Timespec::try_from(longest).map_err(io::Error::other)).transpose()?;
    match poll(&mut [PollFd::new(out, PollFlags::OUT)], longest.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        // The caller repeats the call.
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Writes all bytes, or discards them if the reader has gone. Returns false if there was no room before `until`.
fn write_all(out: &mut impl LineSink, mut bytes: &[u8], until: Option<Instant>) -> bool {
    while !bytes.is_empty() {
        let mut piece = bytes;
        if let Some(until) = until {
            piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            match out.has_room(Some(until.saturating_duration_since(Instant::now()))) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(_) => return true,
            }
        }
        match out.write(piece) {
            Ok(0) => return true,
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if until.is_none() && out.has_room(None).is_err() {
                    return true;
                }
            }
            // The reader has gone: there is nowhere to report that.
            Err(_) => return true,
        }
    }
    true
}

struct LineQueue {
    waiting: Mutex<WaitingLines>,
    /// Signalled when a line was added or all are written.
    changed: Condvar,
    /// Format of the line about dropped lines.
    format: fn() -> LineFormat,
}

struct WaitingLines {
    /// Lines, each with its newline.
    texts: VecDeque<String>,
    bytes: usize,
    /// Number of lines dropped after these for lack of space.
    dropped: u64,
    is_writing: bool,
    /// True once the writing thread runs.
    has_thread: bool,
}

impl WaitingLines {
    fn has_something(&self) -> bool {
        !self.texts.is_empty() || self.dropped > 0
    }

    /// Removes and returns the next lines to write.
    fn take(&mut self) -> (VecDeque<String>, u64) {
        self.bytes = 0;
        self.is_writing = true;
        (std::mem::take(&mut self.texts), std::mem::take(&mut self.dropped))
    }
}

impl LineQueue {
    const fn new(format: fn() -> LineFormat) -> LineQueue {
        let waiting = WaitingLines {
            texts: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            is_writing: false,
            has_thread: false,
        };
        LineQueue { waiting: Mutex::new(waiting), changed: Condvar::new(), format }
    }

    /// The lines are consistent even if a thread has panicked while holding the lock.
    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, lines: &str) {
        let mut waiting = self.lock();
        // Lines after dropped ones are dropped, too, so that the gap is in one place.
        if waiting.dropped > 0 || waiting.bytes + lines.len() >= BYTES_MAX {
            waiting.dropped += lines.lines().count().max(1) as u64;
        } else {
            waiting.bytes += lines.len() + 1;
            waiting.texts.push_back(format!("{lines}\n"));
        }
        drop(waiting);
        self.changed.notify_all();
    }

    /// Starts the writing thread if it does not run.
    fn begin(&'static self) {
        let mut waiting = self.lock();
        if !waiting.has_thread {
            let write = || self.write_to(&mut io::stderr());
            // If the thread cannot be started, the next line tries again.
            waiting.has_thread = thread::Builder::new().name("standard-error".into()).spawn(write).is_ok();
        }
    }

    /// Writes lines for ever.
    fn write_to(&self, out: &mut impl LineSink) {
        loop {
            self.write_next(out);
        }
    }

    /// Waits for lines and writes them.
    fn write_next(&self, out: &mut impl LineSink) {
        let mut waiting = self.lock();
        while !waiting.has_something() {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        self.write(out, waiting, None);
    }

    /// Writes the waiting lines. Returns false if there was not room for all before `until`.
    fn write(
        &self,
        out: &mut impl LineSink,
        mut waiting: MutexGuard<'_, WaitingLines>,
        until: Option<Instant>,
    ) -> bool {
        let (mut texts, dropped) = waiting.take();
        drop(waiting);
        if dropped > 0 {
            let text = format!("{dropped} log lines dropped here, because standard error was not being read");
            texts.push_back(format!("{}\n", (self.format)().lines(Level::WARN, &text)));
        }
        let all = texts.iter().all(|text| write_all(out, text.as_bytes(), until));
        let _ = out.flush();
        self.lock().is_writing = false;
        self.changed.notify_all();
        all
    }

    /// Waits until all lines are written, and writes them itself if there is no thread. Returns false if that takes longer than
    /// `longest`.
    fn finish(&self, out: &mut impl LineSink, longest: Duration) -> bool {
        let began = Instant::now();
        let mut waiting = self.lock();
        while waiting.is_writing || waiting.has_something() {
            if !waiting.has_thread && !waiting.is_writing {
                return self.write(out, waiting, Some(began + longest));
            }
            let left = longest.saturating_sub(began.elapsed());
            if left.is_zero() {
                return false;
            }
            waiting = self.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeWriter, Read as _};
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};

    fn new_queue() -> LineQueue {
        LineQueue::new(|| LineFormat::Plain)
    }

    /// A reader that announces each text and reads it when it is told to.
    struct TestReader {
        there: Sender<()>,
        may: Receiver<()>,
        read: Vec<u8>,
    }

    impl Write for TestReader {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let _ = self.there.send(());
            // Once the sender is dropped, the reader reads everything.
            let _ = self.may.recv();
            self.read.extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LineSink for TestReader {
        fn has_room(&self, _longest: Option<Duration>) -> io::Result<bool> {
            Ok(true)
        }
    }

    struct GoneReader;

    impl LineSink for GoneReader {
        fn has_room(&self, _longest: Option<Duration>) -> io::Result<bool> {
            Ok(true)
        }
    }

    impl LineSink for PipeWriter {
        fn has_room(&self, longest: Option<Duration>) -> io::Result<bool> {
            has_room(self, longest)
        }
    }

    /// A pipe that signals when it has no room.
    struct SignallingPipe(PipeWriter, Sender<()>);

    impl Write for SignallingPipe {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.write(text)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    impl LineSink for SignallingPipe {
        fn has_room(&self, longest: Option<Duration>) -> io::Result<bool> {
            let _ = self.1.send(());
            self.0.has_room(longest)
        }
    }

    impl Write for GoneReader {
        fn write(&mut self, _text: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn what_is_said_is_written_in_order_and_what_had_no_room_is_counted_in_its_place() {
        let queue = Arc::new(new_queue());
        queue.lock().has_thread = true;
        let (there, is_there) = channel();
        let (lets, may) = channel();
        let written = queue.clone();
        let writing = thread::spawn(move || {
            let mut reader = TestReader { there, may, read: Vec::new() };
            for _ in 0..3 {
                written.write_next(&mut reader);
            }
            reader.read
        });
        let state = || {
            let waiting = queue.lock();
            (waiting.bytes, waiting.texts.len(), waiting.dropped)
        };
        queue.say("the first");
        is_there.recv().expect("it is about to be read");
        let finish = || queue.finish(&mut GoneReader, Duration::ZERO);
        assert!(!finish(), "it is not read");
        // There is no reader: lines wait up to the limit, and the caller does not.
        let long = "x".repeat(BYTES_MAX / 2 - 1);
        queue.say(&long);
        queue.say(&long);
        assert_eq!(state(), (BYTES_MAX, 2, 0));
        queue.say("");
        queue.say("a line too many\nand its hint");
        queue.say("short");
        assert_eq!(state(), (BYTES_MAX, 2, 4));
        drop(lets);
        while state().2 > 0 {
            is_there.recv().expect("it reads");
        }
        queue.say("the last");
        let read = writing.join().expect("it writes");
        assert!(finish(), "all is written");
        let read = String::from_utf8(read).expect("text");
        let lines: Vec<&str> = read.lines().filter(|line| !line.starts_with('x')).collect();
        let missing = "longwire: 4 log lines dropped here, because standard error was not being read";
        assert_eq!(lines, ["the first", missing, "the last"]);
        assert_eq!(read.lines().count(), 5);
    }

    /// The end of the process waits for the lines, and for the line about dropped ones, if there is a thread that writes them.
    #[test]
    fn all_that_was_said_is_waited_for_where_somebody_writes_it() {
        let (_reader, mut writer) = io::pipe().expect("a pipe can be made");
        for line in ["a line", &"x".repeat(BYTES_MAX)] {
            let queue = new_queue();
            queue.say(line);
            queue.lock().has_thread = true;
            assert!(!queue.finish(&mut writer, Duration::ZERO), "it is not written");
            queue.write_next(&mut writer);
            assert!(queue.finish(&mut writer, Duration::ZERO), "it is written");
        }
    }

    /// The terminal or pipe is shared with a program that has set it to non-blocking.
    #[test]
    fn what_has_no_room_for_a_moment_is_written_when_there_is_some() {
        let (mut reader, writer) = io::pipe().expect("a pipe can be made");
        rustix::io::ioctl_fionbio(&writer, true).expect("it need not wait");
        let queue = new_queue();
        // More than a pipe holds.
        let lines: Vec<String> = (0..20).map(|number| number.to_string().repeat(20_000)).collect();
        lines.iter().for_each(|line| queue.say(line));
        let (full, is_full) = channel();
        let writing = thread::spawn(move || {
            queue.write_next(&mut SignallingPipe(writer, full));
            queue.lock().dropped
        });
        is_full.recv().expect("it waits for room");
        let mut read = String::new();
        reader.read_to_string(&mut read).expect("text");
        assert_eq!(writing.join().expect("it writes"), 0);
        assert!(read.lines().eq(&lines), "{} of {} lines", read.lines().count(), lines.len());
    }

    /// The writing thread cannot be started, not even later.
    #[test]
    fn what_waits_is_written_at_the_end_though_no_thread_does_it() {
        let queue = new_queue();
        let (mut reader, mut writer) = io::pipe().expect("a pipe can be made");
        let long = "x".repeat(2000);
        queue.say("a line");
        queue.say(&long);
        assert!(queue.finish(&mut writer, Duration::from_secs(60)));
        assert!(queue.finish(&mut writer, Duration::ZERO), "there is nothing more");
        // There is no reader, and each call waits for room: the wait ends.
        for _ in 0..10 {
            queue.say(&"y".repeat(100_000));
        }
        assert!(!queue.finish(&mut writer, Duration::from_millis(10)));
        drop(writer);
        let mut read = String::new();
        reader.read_to_string(&mut read).expect("text");
        assert!(read.starts_with(&format!("a line\n{long}\nyy")), "{}", read.len());
    }

    #[test]
    fn the_line_about_dropped_ones_has_the_format_of_the_others() {
        let queue = LineQueue::new(|| LineFormat::Journal);
        let (mut reader, mut writer) = io::pipe().expect("a pipe can be made");
        queue.say(&"x".repeat(BYTES_MAX));
        queue.write_next(&mut writer);
        drop(writer);
        let mut read = String::new();
        reader.read_to_string(&mut read).expect("text");
        assert_eq!(read, "<4>1 log lines dropped here, because standard error was not being read\n");
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        let queue = new_queue();
        for _ in 0..2 {
            queue.say("a line");
            queue.write_next(&mut GoneReader);
            assert_eq!(queue.lock().bytes, 0);
        }
    }
}
