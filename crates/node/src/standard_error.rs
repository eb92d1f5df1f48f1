//! Lines on the standard error.
//!
//! The reader may have gone, as `head` does after its lines, or may stand still, as a terminal does that is held: neither is a
//! reason for a node to end or to wait, and strangers have a say in how much there is to say. So a thread of its own writes what
//! the others hand it. Where it cannot keep up, lines are dropped, and how many is said in their place.
//!
//! Units: lines, bytes. Limits: 1 MiB waits, and as much is being written.

use std::collections::VecDeque;
use std::fmt;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that may wait to be written: the lines of a start about a store with as much damage as is remembered, with names as they
/// mostly are.
const BYTES_MAX: usize = 1 << 20;
/// How long an end waits for what was said before it. A reader that reads takes a moment.
const END_MAX: Duration = Duration::from_secs(2);

static STANDARD_ERROR: Queue = Queue::new();

/// Says this line, or these, to whoever reads. It waits for nobody, and never fails.
pub fn say(lines: fmt::Arguments<'_>) {
    STANDARD_ERROR.say(&format!("{lines}"));
    STANDARD_ERROR.begin();
}

/// Waits until all that was said is written, for a while.
pub fn finish() {
    STANDARD_ERROR.finish(END_MAX);
}

/// The lines that are still to be written.
struct Queue {
    waiting: Mutex<Waiting>,
    /// Something is there to be written, or all that was is.
    changed: Condvar,
}

struct Waiting {
    /// Each ends with the end of a line.
    texts: VecDeque<String>,
    bytes: usize,
    /// Lines for which there was no room behind these.
    dropped: u64,
    is_writing: bool,
    /// A thread writes them.
    has_thread: bool,
}

impl Queue {
    const fn new() -> Queue {
        let waiting =
            Waiting { texts: VecDeque::new(), bytes: 0, dropped: 0, is_writing: false, has_thread: false };
        Queue { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    /// The lines are whole even where a thread has panicked with the lock.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, lines: &str) {
        let mut waiting = self.lock();
        // Lines behind dropped ones are dropped, too, so that the place of the gap is known.
        if waiting.dropped > 0 || waiting.bytes + lines.len() >= BYTES_MAX {
            waiting.dropped += lines.lines().count().max(1) as u64;
        } else {
            waiting.bytes += lines.len() + 1;
            waiting.texts.push_back(format!("{lines}\n"));
        }
        drop(waiting);
        self.changed.notify_all();
    }

    /// Begins to write on the standard error, if that has not begun.
    fn begin(&'static self) {
        let mut waiting = self.lock();
        if !waiting.has_thread {
            let write = || self.write_to(&mut std::io::stderr());
            // A system that has no thread now may have one for the next line.
            waiting.has_thread = thread::Builder::new().name("standard-error".into()).spawn(write).is_ok();
        }
    }

    /// Writes what is said, for ever.
    fn write_to(&self, out: &mut impl Write) {
        loop {
            self.write_next(out);
        }
    }

    /// Waits for something, and writes what is there.
    fn write_next(&self, out: &mut impl Write) {
        let mut waiting = self.lock();
        while waiting.texts.is_empty() && waiting.dropped == 0 {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let (texts, dropped) = (std::mem::take(&mut waiting.texts), std::mem::take(&mut waiting.dropped));
        waiting.bytes = 0;
        waiting.is_writing = true;
        drop(waiting);
        for text in texts {
            // Nobody is there to be told that nobody is there.
            let _ = out.write_all(text.as_bytes());
        }
        if dropped > 0 {
            let _ = writeln!(
                out,
                "longwire: {dropped} lines are missing here: nobody read what was said before them"
            );
        }
        let _ = out.flush();
        self.lock().is_writing = false;
        self.changed.notify_all();
    }

    /// Waits until all that was said is written. False if that takes longer than this.
    fn finish(&self, longest: Duration) -> bool {
        let began = Instant::now();
        let mut waiting = self.lock();
        while waiting.has_thread && (waiting.is_writing || !waiting.texts.is_empty() || waiting.dropped > 0) {
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
    use std::io;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A reader that takes a text when it is let, after it has said that there is one.
    struct Reader {
        there: Sender<()>,
        may: Receiver<()>,
        read: Vec<u8>,
    }

    impl Write for Reader {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let _ = self.there.send(());
            // A sender that has gone lets it read all.
            let _ = self.may.recv();
            self.read.extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _text: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn what_is_said_is_written_in_order_and_what_had_no_room_is_counted_in_its_place() {
        let queue = Arc::new(Queue::new());
        queue.lock().has_thread = true;
        let (there, is_there) = channel();
        let (lets, may) = channel();
        let written = queue.clone();
        let writing = thread::spawn(move || {
            let mut reader = Reader { there, may, read: Vec::new() };
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
        assert!(!queue.finish(Duration::ZERO), "it is not read");
        // Nobody reads: as much as there is room for waits, and whoever says something does not.
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
        assert!(queue.finish(Duration::ZERO), "all is written");
        let read = String::from_utf8(read).expect("text");
        let lines: Vec<&str> = read.lines().filter(|line| !line.starts_with('x')).collect();
        let missing = "longwire: 4 lines are missing here: nobody read what was said before them";
        assert_eq!(lines, ["the first", missing, "the last"]);
        assert_eq!(read.lines().count(), 5);
    }

    /// An end waits for what was said, and for the line about what had no room, where there is a thread that writes them.
    #[test]
    fn all_that_was_said_is_waited_for_where_somebody_writes_it() {
        for line in ["a line", &"x".repeat(BYTES_MAX)] {
            let queue = Queue::new();
            queue.say(line);
            assert!(queue.finish(Duration::ZERO), "nobody will write it");
            queue.lock().has_thread = true;
            assert!(!queue.finish(Duration::ZERO), "it is not written");
            queue.write_next(&mut io::sink());
            assert!(queue.finish(Duration::ZERO), "it is written");
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        let queue = Queue::new();
        for _ in 0..2 {
            queue.say("a line");
            queue.write_next(&mut Gone);
            assert_eq!(queue.lock().bytes, 0);
        }
    }
}
