//! The channel between stations, as sound: in real time; a transmitting station hears nothing, and simultaneous transmissions
//! corrupt each other.
//!
//! Frames are also destroyed on purpose, each with the same probability, by a silence in it. The channel records the frames, and how
//! late it, the stations and this program were: late sound makes a different channel.

use crate::modem::{Event, Modem};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Sample rate, 16-bit samples per second.
pub(crate) const SAMPLES_HZ: usize = 48_000;
/// Duration of the sound forwarded at once.
const TICK: Duration = Duration::from_millis(10);
const TICK_SAMPLES: usize = SAMPLES_HZ / 100;
/// Silence that destroys a frame, bits: shorter than any frame, and too short for a loss of carrier.
const SILENCE_BITS: usize = 32;

/// A channel in its own thread. Ends on drop.
pub(crate) struct Channel {
    over: Arc<AtomicBool>,
    noted: Arc<Mutex<Noted>>,
    thread: Option<JoinHandle<()>>,
}

/// A transmitted frame.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// End of the frame.
    pub(crate) at: Instant,
    pub(crate) station: usize,
    pub(crate) frame: Bytes,
    pub(crate) destroyed: bool,
}

/// Events since the recording was last started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    pub(crate) said: Vec<Said>,
    /// Duration of ticks in which more than one station transmitted.
    pub(crate) collided: Duration,
    ticks: u64,
    /// Maximum time by which the channel was behind the clock.
    pub(crate) late: Duration,
    /// Maximum sound that a station had not read yet.
    pub(crate) unheard: Duration,
    /// Frames damaged at their source: a station could not keep up with its own sound.
    pub(crate) torn: u64,
    /// Probability that a frame is destroyed, and the random numbers for it.
    dice: Option<(f64, Rng)>,
}

/// Pipes of a station: one for its own sound, one that is its input. Both outlive its program.
struct Ear {
    says: File,
    hears: File,
    modem: Modem,
    /// Samples of its sound that are still to be silenced.
    silence_samples: usize,
    destroyed: bool,
    torn: u64,
}

impl Channel {
    /// Starts a channel between these stations, each with the pipe for its own sound and the pipe that is its input. `deaf`: two
    /// that do not hear each other.
    pub(crate) fn start(stations: Vec<(File, File)>, rate_bps: u32, deaf: Option<[usize; 2]>) -> Channel {
        let over = Arc::new(AtomicBool::new(false));
        let noted = Arc::new(Mutex::new(Noted::default()));
        let ear = |(says, hears)| Ear {
            says,
            hears,
            modem: Modem::new(rate_bps),
            silence_samples: 0,
            destroyed: false,
            torn: 0,
        };
        let ears = stations.into_iter().map(ear).collect();
        let air = Carrier { ears, deaf, noted: noted.clone() };
        let until = over.clone();
        let thread = std::thread::spawn(move || air.carry(&until));
        Channel { over, noted, thread: Some(thread) }
    }

    /// Starts a new recording; from now on frames are destroyed with this probability.
    pub(crate) fn begin(&self, chance: f64, seed: u64) {
        let dice = (chance > 0.0).then(|| (chance, Rng::new(seed).fork("channel")));
        *self.noted.lock().unwrap() = Noted { dice, ..Noted::default() };
    }

    /// Waits until all stations read their input. Returns false if one does not.
    pub(crate) fn all_listen(&self) -> bool {
        /// Ticks of a check, in which less than a fifth may be unread.
        const TICKS: u64 = 25;
        (0..120).any(|_| {
            self.begin(0.0, 0);
            while self.noted().ticks < TICKS {
                std::thread::sleep(TICK);
            }
            self.noted().unheard < 5 * TICK
        })
    }

    pub(crate) fn noted(&self) -> Noted {
        self.noted.lock().unwrap().clone()
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

/// A named pipe, opened in both directions, so that neither side waits for the other to open it.
pub(crate) fn pipe(path: &Path) -> File {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(path).unwrap()
}

struct Carrier {
    ears: Vec<Ear>,
    deaf: Option<[usize; 2]>,
    noted: Arc<Mutex<Noted>>,
}

impl Carrier {
    fn carry(mut self, over: &AtomicBool) {
        let began = Instant::now();
        for tick in 1.. {
            if over.load(Ordering::Relaxed) || self.tick().is_err() {
                // A station has ended, and with it the test.
                return;
            }
            let due = began + TICK * tick;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let late = Instant::now().saturating_duration_since(due);
            let mut noted = self.noted.lock().unwrap();
            noted.late = noted.late.max(late);
            noted.ticks += 1;
        }
    }

    fn tick(&mut self) -> std::io::Result<()> {
        let mut noted = self.noted.lock().unwrap();
        let said: Vec<Vec<i16>> =
            self.ears.iter_mut().enumerate().map(|(at, ear)| ear.says(at, &mut noted)).collect();
        if said.iter().filter(|said| !said.is_empty()).count() > 1 {
            noted.collided += TICK;
        }
        for (at, ear) in self.ears.iter_mut().enumerate() {
            let unheard = rustix::io::ioctl_fionread(&ear.hears)?;
            noted.unheard =
                noted.unheard.max(Duration::from_secs_f64(unheard as f64 / (2 * SAMPLES_HZ) as f64));
            let mut heard = [0_i16; TICK_SAMPLES];
            // A radio does not hear while it transmits.
            if said[at].is_empty() {
                let apart =
                    |other: usize| self.deaf.is_some_and(|deaf| deaf == [at.min(other), at.max(other)]);
                for (_, sound) in said.iter().enumerate().filter(|(other, _)| !apart(*other)) {
                    heard
                        .iter_mut()
                        .zip(sound)
                        .for_each(|(sum, sample)| *sum = sum.saturating_add(sample / 2));
                }
            }
            let bytes: Vec<u8> = heard.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            match ear.hears.write_all(&bytes) {
                // The station has not read for long. A pipe accepts so few bytes completely or not at all.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => other?,
            }
        }
        Ok(())
    }
}

impl Ear {
    /// Sound of a station in one tick, as others hear it; empty while it is silent.
    fn says(&mut self, station: usize, noted: &mut Noted) -> Vec<i16> {
        let mut sound = samples(&mut self.says);
        if sound.is_empty() {
            self.modem.silence();
        }
        for sample in &mut sound {
            match self.modem.hear(*sample) {
                Some(Event::Begins) => {
                    self.destroyed = noted.dice.as_mut().is_some_and(|(chance, dice)| dice.chance(*chance));
                    if self.destroyed {
                        self.silence_samples = self.modem.samples(SILENCE_BITS);
                    }
                }
                Some(Event::Ends(frame)) => {
                    noted.said.push(Said { at: Instant::now(), station, frame, destroyed: self.destroyed });
                }
                None => {}
            }
            if self.silence_samples > 0 {
                self.silence_samples -= 1;
                *sample = 0;
            }
        }
        noted.torn += self.modem.damaged() - std::mem::replace(&mut self.torn, self.modem.damaged());
        sound
    }
}

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
