//! The air between stations, as sound: in real time, whoever talks hears nothing, and who talk at once spoil each other.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Samples of 16 bits a second.
pub(crate) const SAMPLES_HZ: usize = 48_000;
/// What is carried at a time.
const TICK: Duration = Duration::from_millis(10);
const TICK_SAMPLES: usize = SAMPLES_HZ / 100;

/// Runs until it is dropped.
pub(crate) struct Channel {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a station says is read from its pipe; what it hears is written to its input.
struct Ear {
    says: File,
    hears: ChildStdin,
}

impl Channel {
    /// Between these stations: the pipe into which each one speaks, and its input.
    pub(crate) fn start(stations: Vec<(File, ChildStdin)>) -> Channel {
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let ears = stations.into_iter().map(|(says, hears)| Ear { says, hears }).collect();
        let thread = std::thread::spawn(move || carry(ears, &until));
        Channel { over, thread: Some(thread) }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A pipe with a name; opened both ways, so that neither side ever waits for the other to be there.
pub(crate) fn pipe(path: &Path) -> File {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(path).unwrap()
}

fn carry(mut ears: Vec<Ear>, over: &AtomicBool) {
    let began = Instant::now();
    for tick in 1.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let said: Vec<Vec<i16>> = ears.iter_mut().map(|ear| samples(&mut ear.says)).collect();
        for (at, ear) in ears.iter_mut().enumerate() {
            let mut heard = [0_i16; TICK_SAMPLES];
            // A radio does not hear while it talks.
            if said[at].is_empty() {
                for other in said.iter().enumerate().filter(|(other, _)| *other != at) {
                    heard
                        .iter_mut()
                        .zip(other.1)
                        .for_each(|(sum, sample)| *sum = sum.saturating_add(sample / 2));
                }
            }
            let bytes: Vec<u8> = heard.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            if ear.hears.write_all(&bytes).is_err() {
                // A station has ended, and with it the test.
                return;
            }
        }
        std::thread::sleep((began + TICK * tick).saturating_duration_since(Instant::now()));
    }
}

/// What a station says in one tick; nothing where it is silent.
fn samples(says: &mut File) -> Vec<i16> {
    let mut bytes = vec![0; 2 * TICK_SAMPLES];
    let mut length = 0;
    while length < bytes.len() {
        match says.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(some) => length += some,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("a station's sound: {error}"),
        }
    }
    bytes[..length].chunks_exact(2).map(|two| i16::from_le_bytes([two[0], two[1]])).collect()
}
