//! TNCs: what speaks with one over a serial line or TCP.
//!
//! ```text
//!     whoever uses it:  request            next
//!                          |                ^
//!                       [ engine: a Tnc, or a Station over one ]
//!                          |                ^
//!                       stream::pump, one a connection
//!                          |                ^
//!                       a serial line, or TCP
//! ```
//!
//! The engine asks for its line, and asks again when it is lost. What goes out waits in the pump, bounded by the room that the
//! engine is told; what comes in is bounded by the pump's window.

mod listen;
#[cfg(test)]
mod tests;

pub use listen::{Heard, Place, listen};

use crate::patient::Patience;
use crate::pressure::Pressure;
use crate::stream::{Order, Said, Window, Wire, pump, reason_of};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::service::{CloseReason, Stream, StreamIndication, StreamRequest};
use longwire_proto::time::Instant;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes that wait for a line: more than any window of frames, escaped.
pub(crate) const QUEUE_BYTES: u64 = 256 * 1024;
/// Bytes of a line that rise without being released.
pub(crate) const WINDOW_BYTES: u64 = 64 * 1024;
/// A line that takes nothing for so long is closed and opened anew.
pub(crate) const STALL: Duration = Duration::from_secs(60);
/// The speed of serial lines whose is not given, bit/s.
const SPEED_BPS: u32 = 9600;

/// Where a TNC is: `127.0.0.1:8001` is over TCP, `/dev/ttyUSB0` a serial line of 9,600 bit/s, `/dev/ttyUSB0@38400` of
/// another speed; 8 data bits, one stop bit, no parity, no handshake (KISS 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Over TCP: host and port.
    Tcp(String),
    /// A serial line.
    Serial {
        /// Its device.
        path: String,
        /// Its speed, bit/s.
        speed_bps: u32,
    },
}

impl FromStr for Line {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.starts_with('/') {
            let port =
                text.rsplit_once(':').map(|(host, port)| (host.is_empty(), port.parse::<u16>().is_ok()));
            return match port {
                Some((false, true)) => Ok(Line::Tcp(text.to_owned())),
                _ => Err(
                    "a TNC is at a host and port, such as 127.0.0.1:8001, or on a line, such as /dev/ttyUSB0",
                ),
            };
        }
        let (path, speed_bps) = match text.rsplit_once('@') {
            Some((path, speed)) => {
                (path, speed.parse().map_err(|_| "the speed of a line is in bit/s, as in /dev/ttyUSB0@9600")?)
            }
            None => (text, SPEED_BPS),
        };
        Ok(Line::Serial { path: path.to_owned(), speed_bps })
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Line::Tcp(address) => f.write_str(address),
            Line::Serial { path, speed_bps } => write!(f, "{path}@{speed_bps}"),
        }
    }
}

impl Line {
    pub(crate) async fn open(&self) -> io::Result<Box<dyn Wire>> {
        match self {
            Line::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                // A window is one write, and is not to wait for another.
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Line::Serial { path, speed_bps } => {
                Ok(Box::new(serial2_tokio::SerialPort::open(path, *speed_bps)?))
            }
        }
    }
}

/// A connection, as the driver knows it.
#[derive(Debug)]
struct Open {
    orders: mpsc::UnboundedSender<Order>,
    task: JoinHandle<()>,
    queued: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs an engine over the line of a TNC. It does so while [`Driver::next`] is waited for.
#[derive(Debug)]
pub struct Driver<E> {
    engine: E,
    line: Line,
    began: tokio::time::Instant,
    open: Option<Open>,
    /// Connections so far: what one says that is gone is not heard.
    number: u64,
    lost: u64,
    said: mpsc::UnboundedReceiver<(u64, Said)>,
    tell: mpsc::UnboundedSender<(u64, Said)>,
}

impl<E: Engine<Below = Stream>> Driver<E> {
    /// An engine whose time begins now.
    pub fn new(engine: E, line: Line) -> Self {
        let (tell, said) = mpsc::unbounded_channel();
        Driver {
            engine,
            line,
            began: tokio::time::Instant::now(),
            open: None,
            number: 0,
            lost: 0,
            said,
            tell,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The engine's time.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }

    /// Asks the engine for something. It is carried out while [`Driver::next`] is waited for.
    pub fn request(&mut self, request: Request<E::Above>) {
        self.engine.handle_request(self.now(), request);
    }

    /// How often the line was lost, or could not be had.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The next thing that the engine says. It may be dropped at any time, and nothing is lost.
    pub async fn next(&mut self) -> Indication<E::Above> {
        loop {
            if let Some(said) = self.step().await {
                return said;
            }
        }
    }

    /// One step: something that the engine says, or something that happens to it.
    async fn step(&mut self) -> Option<Indication<E::Above>> {
        if let Some(said) = self.engine.poll_indication() {
            return Some(said);
        }
        if let Some(request) = self.engine.poll_request(self.now()) {
            self.carry_out(request);
            return None;
        }
        let deadline = self.engine.poll_timeout();
        tokio::select! {
            Some((number, said)) = self.said.recv() => self.hear(number, said),
            () = until(self.began, deadline) => self.engine.handle_timeout(self.now()),
        }
        None
    }

    fn carry_out(&mut self, request: StreamRequest) {
        if request == StreamRequest::Connect {
            return self.connect();
        }
        let Some(open) = &mut self.open else { return };
        let order = match request {
            StreamRequest::Write(bytes) => {
                open.queued += bytes.len() as u64;
                Order::Write(bytes)
            }
            StreamRequest::Release(bytes) => Order::Release(bytes),
            StreamRequest::Close => Order::Close,
            StreamRequest::Abort => Order::Abort,
            StreamRequest::Connect => return,
            StreamRequest::Secure { .. } => panic!("there is no TLS on the line of a TNC"),
        };
        // A pump that is over has said so, and is heard soon.
        let _ = open.orders.send(order);
    }

    fn connect(&mut self) {
        self.number += 1;
        let (number, tell, line) = (self.number, self.tell.clone(), self.line.clone());
        let (orders, ordered) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let tell = move |said| drop(tell.send((number, said)));
            let window = Window {
                bytes: WINDOW_BYTES,
                all: Arc::new(Pressure::new(WINDOW_BYTES)),
                patience: Patience::new(STALL),
            };
            match line.open().await {
                Ok(wire) => pump(wire, ordered, window, tell).await,
                Err(error) => tell(Said::Closed(reason_of(&error))),
            }
        });
        self.open = Some(Open { orders, task, queued: 0 });
    }

    fn hear(&mut self, number: u64, said: Said) {
        let Some(open) = self.open.as_mut().filter(|_| number == self.number) else { return };
        let now = Instant::ZERO + self.began.elapsed();
        let room = |queued: u64| StreamIndication::Room(QUEUE_BYTES.saturating_sub(queued));
        let indication = match said {
            Said::Connected => {
                self.engine.handle_indication(now, StreamIndication::Connected);
                room(0)
            }
            Said::Written(bytes) => {
                open.queued -= bytes;
                room(open.queued)
            }
            Said::Data(bytes) => StreamIndication::Data(bytes),
            Said::PeerClosed => StreamIndication::PeerClosed,
            Said::Closed(reason) => {
                self.open = None;
                self.lost += 1;
                StreamIndication::Closed(reason)
            }
            Said::Secured { .. } | Said::Insecure(_) => StreamIndication::Closed(CloseReason::Insecure),
        };
        self.engine.handle_indication(now, indication);
    }
}

async fn until(began: tokio::time::Instant, deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(began + at.saturating_since(Instant::ZERO)).await,
        None => std::future::pending().await,
    }
}
