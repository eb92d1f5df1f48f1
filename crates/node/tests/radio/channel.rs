//! The channel between stations, as sound: in real time; a transmitting station hears nothing, and simultaneous transmissions
//! corrupt each other.
//!
//! Frames are also destroyed on purpose, each with the same probability, by a silence in it. The channel records the frames, and how
//! late it, the stations and this program were: late sound makes a different channel. Tests wait for what it records, and for the
//! sound that it carries.

use crate::modem::{Event, Modem};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Sample rate, 16-bit samples per second.
pub(crate) const SAMPLES_HZ: usize = 48_000;
/// Duration of the sound forwarded at once.
pub(crate) const TICK: Duration = Duration::from_millis(10);
const TICK_SAMPLES: usize = SAMPLES_HZ / 100;
/// Silence that destroys a frame, bits: shorter than any frame, and too short for a loss of carrier.
const SILENCE_BITS: usize = 32;

/// A channel in its own thread. Ends on drop.
pub(crate) struct Channel {
    /// Its end is that of the thread.
    open: Option<mpsc::Sender<()>>,
    record: Arc<Record>,
    thread: Option<JoinHandle<()>>,
}

/// Record of a channel, for those who wait for something in it.
#[derive(Default)]
pub(crate) struct Record {
    noted: Mutex<Noted>,
    ticked: Condvar,
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
    /// Number of ticks since the channel was started, and whether it has ended.
    ticks: u64,
    ended: bool,
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
        let (open, over) = mpsc::channel();
        let record = Arc::new(Record::default());
        let ear = |(says, hears)| Ear {
            says,
            hears,
            modem: Modem::new(rate_bps),
            silence_samples: 0,
            destroyed: false,
            torn: 0,
        };
        let ears = stations.into_iter().map(ear).collect();
        let air = Carrier { ears, deaf, record: record.clone() };
        let thread = std::thread::spawn(move || air.carry(&over));
        Channel { open: Some(open), record, thread: Some(thread) }
    }

    /// Starts a new recording; from now on frames are destroyed with this probability.
    pub(crate) fn begin(&self, chance: f64, seed: u64) {
        let dice = (chance > 0.0).then(|| (chance, Rng::new(seed).fork("channel")));
        let mut noted = self.record.noted.lock().unwrap();
        *noted = Noted { dice, ticks: noted.ticks, ended: noted.ended, ..Noted::default() };
    }

    /// Waits until all stations read their input. Returns false if one does not.
    pub(crate) fn all_listen(&self) -> bool {
        (0..120).any(|_| {
            self.begin(0.0, 0);
            // Less than a fifth of it may be unread.
            self.record.carries(25 * TICK);
            self.noted().unheard < 5 * TICK
        })
    }

    pub(crate) fn noted(&self) -> Noted {
        self.record.noted.lock().unwrap().clone()
    }

    /// The record, for a thread of its own.
    pub(crate) fn record(&self) -> Arc<Record> {
        self.record.clone()
    }
}

impl Record {
    /// Waits until the record is as wished.
    pub(crate) fn wait(&self, wished: impl Fn(&Noted) -> bool) {
        let noted = self.noted.lock().unwrap();
        let noted = self.ticked.wait_while(noted, |noted| !noted.ended && !wished(noted)).unwrap();
        assert!(wished(&noted), "the channel has ended, perhaps because a station has");
    }

    /// Waits until the channel has carried sound of this duration, or silence.
    pub(crate) fn carries(&self, time: Duration) {
        let ticks = time.as_millis().div_ceil(TICK.as_millis()) as u64;
        let until = self.noted.lock().unwrap().ticks + ticks;
        self.wait(|noted| noted.ticks >= until);
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.open = None;
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
    record: Arc<Record>,
}

impl Carrier {
    /// Carries sound in real time until nobody needs it, or a station has ended.
    fn carry(mut self, over: &mpsc::Receiver<()>) {
        let mut due = Instant::now();
        while self.tick().is_ok() {
            due += TICK;
            let left = due.saturating_duration_since(Instant::now());
            if over.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            let late = Instant::now().saturating_duration_since(due);
            let mut noted = self.record.noted.lock().unwrap();
            noted.late = noted.late.max(late);
            noted.ticks += 1;
            self.record.ticked.notify_all();
        }
        self.record.noted.lock().unwrap().ended = true;
        self.record.ticked.notify_all();
    }

    fn tick(&mut self) -> std::io::Result<()> {
        let mut noted = self.record.noted.lock().unwrap();
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
