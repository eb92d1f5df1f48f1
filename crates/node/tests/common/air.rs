//! TNCs in KISS mode and the air between them: frames go across at once, as long as the test lets them.

use super::segments::Segments;
use bytes::{Bytes, BytesMut};
use longwire_proto::ax25;
use longwire_proto::kiss::{Checksum, Command, Deframer, Frame, enclose};
use longwire_proto::rng::Rng;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Frames of one story; one that has more runs in circles.
const FRAMES_MAX: usize = 20_000;
#[derive(Default)]
struct State {
    lines: Vec<Option<TcpStream>>,
    /// The TNC is gone: nobody listens.
    gone: Vec<bool>,
    /// What this one says is not heard.
    unheard: Vec<bool>,
    /// Two that do not hear each other.
    apart: Option<[usize; 2]>,
    /// The chance that one station misses a frame, for each station that hears it.
    losing: Option<(f64, Rng)>,
    /// After so many I frames of both sides, this happens.
    plan: Option<(usize, Trouble)>,
    /// What the first two say, if there is nobody else.
    segments: Segments,
    frames: usize,
    over: bool,
}

/// What happens in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// This TNC ends.
    Gone(usize),
    /// What this one says is heard by nobody.
    Unheard(usize),
}

/// Ends when it is dropped.
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

    /// So many stations, of which two may be out of each other's reach.
    pub(crate) fn with(stations: usize, apart: Option<[usize; 2]>) -> Air {
        let listeners: Vec<TcpListener> =
            (0..stations).map(|_| TcpListener::bind(super::reserved()).expect("it is its own")).collect();
        let places = listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
        let state = State {
            lines: (0..stations).map(|_| None).collect(),
            gone: vec![false; stations],
            unheard: vec![false; stations],
            apart,
            ..State::default()
        };
        let shared = Arc::new((Mutex::new(state), Condvar::new()));
        let threads = listeners.into_iter().enumerate().map(|(at, listener)| {
            let shared = shared.clone();
            std::thread::spawn(move || serve(at, listener, &shared))
        });
        let threads = threads.collect();
        Air { shared, places, threads }
    }

    /// From now on each station misses this share of the frames that it could hear.
    pub(crate) fn lose(&self, share: f64) {
        self.shared.0.lock().unwrap().losing = Some((share, Rng::new(1)));
    }

    /// Where a TNC is.
    pub(crate) fn at(&self, at: usize) -> SocketAddr {
        self.places[at]
    }

    /// Somebody else at this TNC, who comes when the other of two has taken the program that is there.
    pub(crate) fn guest(&self, at: usize) -> Guest {
        let mut state = self.shared.0.lock().unwrap();
        while state.lines[1 - at].is_none() {
            let (more, waited) = self.shared.1.wait_timeout(state, super::DEADLINE).unwrap();
            assert!(!waited.timed_out(), "no program comes to TNC {}", 1 - at);
            state = more;
        }
        drop(state);
        let line = TcpStream::connect(self.places[at]).expect("the TNC takes programs");
        line.set_read_timeout(Some(super::DEADLINE)).expect("it may");
        Guest { line, deframer: Deframer::new(), rest: Bytes::new() }
    }

    /// After so many I frames of both sides, counted from the beginning, this happens.
    pub(crate) fn plan(&self, frames: usize, trouble: Trouble) {
        self.shared.0.lock().unwrap().plan = Some((frames, trouble));
    }

    /// This happens now.
    pub(crate) fn trouble(&self, trouble: Trouble) {
        self.shared.0.lock().unwrap().trouble(trouble);
    }

    /// All is well again.
    pub(crate) fn heal(&self) {
        let mut state = self.shared.0.lock().unwrap();
        state.gone.fill(false);
        state.unheard.fill(false);
        self.shared.1.notify_all();
    }

    /// It is not well.
    pub(crate) fn is_troubled(&self) -> bool {
        let state = self.shared.0.lock().unwrap();
        state.gone.contains(&true) || state.unheard.contains(&true)
    }

    /// What was heard on it so far.
    pub(crate) fn segments<T>(&self, look: impl FnOnce(&Segments) -> T) -> T {
        look(&self.shared.0.lock().unwrap().segments)
    }
}

/// A program that is no node, at a TNC.
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

    /// Waits until it hears such a frame.
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
        // Who waits for a call gets one.
        self.places.iter().for_each(|place| drop(TcpStream::connect(place)));
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// One TNC.
fn serve(at: usize, listener: TcpListener, shared: &(Mutex<State>, Condvar)) {
    let place = listener.local_addr().expect("an address");
    let mut listener = Some(listener);
    loop {
        {
            let mut state = shared.0.lock().unwrap();
            while state.gone[at] && !state.over {
                listener = None;
                state = shared.1.wait(state).unwrap();
            }
            if state.over {
                return;
            }
        }
        let listening =
            listener.get_or_insert_with(|| TcpListener::bind(place).expect("its port is its own"));
        let Ok((line, _)) = listening.accept() else { continue };
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

/// What the host says, until the line ends.
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
    /// A frame of this host's goes over the air, and its leaving is told.
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
            // A host that is gone is seen where it is read.
            let _ = out.write_all(&line);
        }
    }

    fn trouble(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Gone(at) => {
                self.gone[at] = true;
                if let Some(line) = self.lines[at].take() {
                    let _ = line.shutdown(std::net::Shutdown::Both);
                }
            }
            Trouble::Unheard(at) => self.unheard[at] = true,
        }
    }
}

/// Two TNCs on one line, told apart by their ports (Multi-Drop); over when its user or a TNC ends.
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

    /// How many lines its user had, once it has none any more.
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
