//! Simulated TNCs in KISS mode and the channel between them: frames are forwarded at once, unless the test prevents it.

use super::segments::Segments;
use bytes::{Bytes, BytesMut};
use longwire_proto::ax25;
use longwire_proto::kiss::{Checksum, Command, Deframer, Frame, enclose};
use longwire_proto::rng::Rng;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Maximum frames of one test; more indicate an endless loop.
const FRAMES_MAX: usize = 20_000;
#[derive(Default)]
struct State {
    /// Listeners of the TNCs; `None` after one has ended, until it listens again.
    listeners: Vec<Option<TcpListener>>,
    lines: Vec<Option<TcpStream>>,
    /// TNCs that are gone: no program listens.
    gone: Vec<bool>,
    /// Stations whose transmissions are lost.
    unheard: Vec<bool>,
    /// Two stations that do not hear each other.
    apart: Option<[usize; 2]>,
    /// Probability that one station misses a frame, for each station that hears it.
    losing: Option<(f64, Rng)>,
    /// The fault that occurs after this many I frames of both sides.
    plan: Option<(usize, Trouble)>,
    /// Segments of the first two stations, for tests with two.
    segments: Segments,
    frames: usize,
    over: bool,
}

/// A fault during a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// This TNC ends.
    Gone(usize),
    /// Transmissions of this station are lost.
    Unheard(usize),
}

/// The simulated channel and its TNCs. Ends on drop.
pub(crate) struct Air {
    shared: Arc<(Mutex<State>, Condvar)>,
    places: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

impl Air {
    /// Two stations that hear each other.
    pub(crate) fn new() -> Air {
        Air::with(2, None)
    }

    /// This many stations, two of which may be out of range of each other.
    pub(crate) fn with(stations: usize, apart: Option<[usize; 2]>) -> Air {
        let listeners: Vec<TcpListener> =
            (0..stations).map(|_| TcpListener::bind(super::reserved()).expect("it is its own")).collect();
        let places: Vec<SocketAddr> =
            listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
        let state = State {
            listeners: listeners.into_iter().map(Some).collect(),
            lines: (0..stations).map(|_| None).collect(),
            gone: vec![false; stations],
            unheard: vec![false; stations],
            apart,
            ..State::default()
        };
        let shared = Arc::new((Mutex::new(state), Condvar::new()));
        let threads = places.clone().into_iter().enumerate().map(|(at, place)| {
            let shared = shared.clone();
            std::thread::spawn(move || serve(at, place, &shared))
        });
        let threads = threads.collect();
        Air { shared, places, threads }
    }

    /// From now on each station misses this share of the frames that it could hear.
    pub(crate) fn lose(&self, share: f64) {
        self.shared.0.lock().unwrap().losing = Some((share, Rng::new(1)));
    }

    /// Address of a TNC.
    pub(crate) fn at(&self, at: usize) -> SocketAddr {
        self.places[at]
    }

    /// Waits until each TNC has taken its program. Frames for a program that the TNC has not taken yet are lost, although the
    /// program may be connected already.
    pub(crate) fn wait_for_programs(&self) {
        let mut state = self.shared.0.lock().unwrap();
        while state.lines.iter().any(Option::is_none) {
            let (more, waited) = self.shared.1.wait_timeout(state, super::DEADLINE).unwrap();
            assert!(!waited.timed_out(), "a TNC has no program");
            state = more;
        }
    }

    /// Connects another program at this TNC, once the program of another station is connected to its own.
    pub(crate) fn guest(&self, at: usize) -> Guest {
        let mut state = self.shared.0.lock().unwrap();
        while (0..state.lines.len()).all(|other| other == at || state.lines[other].is_none()) {
            let (more, waited) = self.shared.1.wait_timeout(state, super::DEADLINE).unwrap();
            assert!(!waited.timed_out(), "no program comes to a TNC");
            state = more;
        }
        drop(state);
        let line = TcpStream::connect(self.places[at]).expect("the TNC takes programs");
        line.set_read_timeout(Some(super::DEADLINE)).expect("it may");
        Guest { line, deframer: Deframer::new(), rest: Bytes::new() }
    }

    /// Plans a fault after this many I frames of both sides, counted from the beginning.
    pub(crate) fn plan(&self, frames: usize, trouble: Trouble) {
        self.shared.0.lock().unwrap().plan = Some((frames, trouble));
    }

    /// Causes a fault now.
    pub(crate) fn trouble(&self, trouble: Trouble) {
        self.shared.0.lock().unwrap().trouble(trouble);
    }

    /// Ends all faults.
    pub(crate) fn heal(&self) {
        let mut state = self.shared.0.lock().unwrap();
        state.gone.fill(false);
        state.unheard.fill(false);
        self.shared.1.notify_all();
    }

    /// True while there is a fault.
    pub(crate) fn is_troubled(&self) -> bool {
        let state = self.shared.0.lock().unwrap();
        state.gone.contains(&true) || state.unheard.contains(&true)
    }

    /// Reads the segments heard so far.
    pub(crate) fn segments<T>(&self, look: impl FnOnce(&Segments) -> T) -> T {
        look(&self.shared.0.lock().unwrap().segments)
    }
}

/// A program at a TNC that is not a node.
pub(crate) struct Guest {
    line: TcpStream,
    deframer: Deframer,
    rest: Bytes,
}

impl Guest {
    pub(crate) fn say(&mut self, bytes: &Bytes) {
        let mut line = BytesMut::new();
        enclose(&Frame::data(0, bytes.clone()), Checksum::None, &mut line);
        self.line.write_all(&line).expect("the TNC listens");
    }

    /// Waits until it hears a matching frame.
    pub(crate) fn hears(&mut self, mut wished: impl FnMut(&ax25::Frame) -> bool) {
        let mut watcher = ax25::ChannelMonitor::new();
        loop {
            while let Some(mut content) = self.deframer.next(&mut self.rest) {
                let Ok(Frame { body: Command::Data(bytes), .. }) = Frame::decode(&mut content) else {
                    continue;
                };
                if watcher.hear(bytes).is_ok_and(|heard| wished(&heard.frame)) {
                    return;
                }
            }
            let mut buffer = vec![0; 4096];
            let length = self.line.read(&mut buffer).expect("something is heard in time");
            assert!(length > 0, "the TNC has ended");
            self.rest = Bytes::copy_from_slice(&buffer[..length]);
        }
    }
}

impl Drop for Air {
    fn drop(&mut self) {
        {
            let mut state = self.shared.0.lock().unwrap();
            state.over = true;
            for line in state.lines.iter().flatten() {
                let _ = line.shutdown(std::net::Shutdown::Both);
            }
            self.shared.1.notify_all();
        }
        // Wakes the threads that wait in `accept`.
        self.places.iter().for_each(|place| drop(TcpStream::connect(place)));
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Runs one TNC.
fn serve(at: usize, place: SocketAddr, shared: &(Mutex<State>, Condvar)) {
    loop {
        let listener = {
            let mut state = shared.0.lock().unwrap();
            while state.gone[at] && !state.over {
                state = shared.1.wait(state).unwrap();
            }
            if state.over {
                return;
            }
            let listener = state.listeners[at]
                .get_or_insert_with(|| TcpListener::bind(place).expect("its port is its own"));
            listener.try_clone().expect("a descriptor")
        };
        let Ok((line, _)) = listener.accept() else { continue };
        {
            let mut state = shared.0.lock().unwrap();
            if state.over || state.gone[at] {
                continue;
            }
            state.lines[at] = line.try_clone().ok();
            shared.1.notify_all();
        }
        hear(at, line, shared);
        shared.0.lock().unwrap().lines[at] = None;
    }
}

/// Handles the frames of the host until its line ends.
fn hear(at: usize, mut line: TcpStream, shared: &(Mutex<State>, Condvar)) {
    let mut deframer = Deframer::new();
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = line.read(&mut buffer) {
        let mut bytes = Bytes::copy_from_slice(&buffer[..length]);
        while let Some(mut content) = deframer.next(&mut bytes) {
            let Ok(frame) = Frame::decode(&mut content) else { continue };
            shared.0.lock().unwrap().carry(at, frame);
        }
    }
}

impl State {
    /// Forwards a frame of this host over the channel, and reports its transmission.
    fn carry(&mut self, at: usize, frame: Frame) {
        let bytes = match frame.body {
            Command::Data(bytes) => bytes,
            Command::DataAcknowledged { token, bytes } => {
                self.say(at, Command::DataAcknowledged { token, bytes: Bytes::new() });
                bytes
            }
            _ => return,
        };
        self.frames += 1;
        assert!(self.frames < FRAMES_MAX, "it runs in circles");
        if self.gone[at] || self.unheard[at] {
            return;
        }
        let hears = |state: &State, other: usize| {
            other != at && !state.gone[other] && state.apart != Some([at.min(other), at.max(other)])
        };
        let others: Vec<usize> = (0..self.lines.len()).filter(|other| hears(self, *other)).collect();
        if self.lines.len() == 2 && !others.is_empty() {
            self.segments.hear(at, &bytes);
        }
        for other in others {
            let missed = self.losing.as_mut().is_some_and(|(share, dice)| dice.chance(*share));
            if !missed {
                self.say(other, Command::Data(bytes.clone()));
            }
        }
        let so_far = self.segments.information();
        if let Some((_, trouble)) = self.plan.take_if(|(frames, _)| *frames <= so_far) {
            self.trouble(trouble);
        }
    }

    fn say(&mut self, at: usize, body: Command) {
        let mut line = BytesMut::new();
        enclose(&Frame { port: 0, body }, Checksum::None, &mut line);
        if let Some(out) = &mut self.lines[at] {
            // A host that has gone is noticed by its reader.
            let _ = out.write_all(&line);
        }
    }

    fn trouble(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Gone(at) => {
                self.gone[at] = true;
                // From now on nobody gets a connection, although the thread of the TNC still has its copy.
                if let Some(listener) = self.listeners[at].take() {
                    let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
                }
                if let Some(line) = self.lines[at].take() {
                    let _ = line.shutdown(std::net::Shutdown::Both);
                }
            }
            Trouble::Unheard(at) => self.unheard[at] = true,
        }
    }
}

/// Two TNCs on one line, distinguished by their ports (Multi-Drop). Ends when its user or a TNC ends.
pub(crate) struct MultiDrop {
    pub(crate) place: SocketAddr,
    thread: Option<JoinHandle<usize>>,
}

impl MultiDrop {
    pub(crate) fn of(tncs: [SocketAddr; 2]) -> MultiDrop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = listener.local_addr().expect("an address");
        let thread = std::thread::spawn(move || {
            let (line, _) = listener.accept().expect("its user");
            let out = Mutex::new(line.try_clone().expect("a copy"));
            let ends = tncs.map(|tnc| TcpStream::connect(tnc).expect("the TNC takes programs"));
            std::thread::scope(|scope| {
                for (port, end) in ends.iter().enumerate() {
                    let (end, out) = (end.try_clone().expect("a copy"), &out);
                    scope.spawn(move || each_frame(end, |frame| put(&out.lock().unwrap(), port, frame)));
                }
                each_frame(line, |frame| {
                    let port = usize::from(frame.port);
                    put(&ends[port], 0, frame);
                });
                ends.iter().for_each(|end| drop(end.shutdown(std::net::Shutdown::Both)));
            });
            listener.set_nonblocking(true).expect("it may");
            1 + listener.incoming().take_while(Result::is_ok).count()
        });
        MultiDrop { place, thread: Some(thread) }
    }

    /// Waits until its user has no line left; returns the number of lines that it had.
    pub(crate) fn lines(mut self) -> usize {
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(0)
    }
}

fn each_frame(mut line: TcpStream, mut act: impl FnMut(Frame)) {
    let (mut deframer, mut buffer) = (Deframer::new(), vec![0; 16 * 1024]);
    while let Ok(length @ 1..) = line.read(&mut buffer) {
        let mut bytes = Bytes::copy_from_slice(&buffer[..length]);
        while let Some(mut content) = deframer.next(&mut bytes) {
            act(Frame::decode(&mut content).expect("whole frames"));
        }
    }
}

fn put(mut line: &TcpStream, port: usize, frame: Frame) {
    let mut bytes = BytesMut::new();
    enclose(&Frame { port: port as u8, ..frame }, Checksum::None, &mut bytes);
    let _ = line.write_all(&bytes);
}
