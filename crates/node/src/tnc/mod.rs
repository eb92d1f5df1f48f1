//! TNCs, reached over a serial line or TCP.
//!
//! ```text
//!     user:             request            next
//!                          |                ^
//!                       [ engine: a Tnc, or a Station over one ]
//!                          |                ^
//!                       stream::pump, one per connection
//!                          |                ^
//!                       a serial line, or TCP
//! ```
//!
//! The engine requests its line and requests it again after a loss. Outgoing data waits in the pump, limited by the room
//! granted to the engine; incoming data is limited by the pump's window.

mod connection;
mod controller;
mod listen;
mod room;
#[cfg(test)]
mod tests;

pub(crate) use connection::LineConnection;
pub use controller::TncEngine;
pub use listen::{ListenEvent, listen};
pub use room::{CreditedService, RequestRefused};

use crate::stream::{ByteStream, PumpEvent};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::service::{Stream, StreamIndication};
use longwire_proto::time::Instant;
use std::io;
use std::str::FromStr;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::mpsc;

/// Default speed of serial lines, bit/s.
const SPEED_BPS: u32 = 9600;

/// Address of a TNC: `127.0.0.1:8001` over TCP, `/dev/ttyUSB0` for a serial line at 9,600 bit/s, `/dev/ttyUSB0@38400` for
/// another speed; 8 data bits, one stop bit, no parity, no flow control (KISS 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineAddress {
    /// Host and port for TCP.
    Tcp(String),
    /// Serial line.
    Serial {
        /// Path of the device.
        path: String,
        /// Speed, bit/s.
        speed_bps: u32,
    },
}

impl FromStr for LineAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.starts_with('/') {
            let port =
                text.rsplit_once(':').map(|(host, port)| (host.is_empty(), port.parse::<u16>().is_ok()));
            return match port {
                Some((false, true)) => Ok(LineAddress::Tcp(text.to_owned())),
                _ => Err("give host:port, such as 127.0.0.1:8001, or a serial device, such as /dev/ttyUSB0"),
            };
        }
        let (path, speed_bps) = match text.rsplit_once('@') {
            Some((path, speed)) => {
                (path, speed.parse().map_err(|_| "give the speed in bit/s, as in /dev/ttyUSB0@9600")?)
            }
            None => (text, SPEED_BPS),
        };
        Ok(LineAddress::Serial { path: path.to_owned(), speed_bps })
    }
}

impl std::fmt::Display for LineAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LineAddress::Tcp(address) => f.write_str(address),
            LineAddress::Serial { path, speed_bps } => write!(f, "{path}@{speed_bps}"),
        }
    }
}

impl LineAddress {
    pub(crate) async fn open(&self) -> io::Result<Box<dyn ByteStream>> {
        match self {
            LineAddress::Tcp(address) => {
                let found = lookup_host(address).await;
                let found = found.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
                let stream = TcpStream::connect(&*found.collect::<Vec<_>>()).await?;
                // A window is one write and must not wait for another.
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            LineAddress::Serial { path, speed_bps } => {
                Ok(Box::new(serial2_tokio::SerialPort::open(path, *speed_bps)?))
            }
        }
    }
}

/// Address and protocol of a TNC: KISS mode at a [`LineAddress`], or an AGWPE server such as `agwpe:127.0.0.1:8000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TncAddress {
    /// TNC in KISS mode.
    Kiss(LineAddress),
    /// AGWPE server over TCP.
    Agwpe(LineAddress),
}

impl TncAddress {
    /// Returns the address of the line.
    pub fn line(&self) -> &LineAddress {
        match self {
            TncAddress::Kiss(line) | TncAddress::Agwpe(line) => line,
        }
    }

    /// Returns a hint for when the TNC cannot be reached.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            TncAddress::Kiss(LineAddress::Tcp(_)) => {
                "check that the TNC's program is running, with KISS over TCP on that port"
            }
            TncAddress::Kiss(LineAddress::Serial { .. }) => {
                "check that the TNC is connected and switched on, and that this user may open the device (group dialout)"
            }
            TncAddress::Agwpe(_) => {
                "check that the server is running, with AGWPE on that TCP port and the radio port of `agwpe.port`, counted \
                 from 0"
            }
        }
    }
}

impl FromStr for TncAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("agwpe:") {
            None => Ok(TncAddress::Kiss(text.parse()?)),
            Some(server) => match server.parse() {
                Ok(line @ LineAddress::Tcp(_)) => Ok(TncAddress::Agwpe(line)),
                _ => Err("give agwpe:host:port, such as agwpe:127.0.0.1:8000"),
            },
        }
    }
}

impl std::fmt::Display for TncAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TncAddress::Kiss(line) => write!(f, "{line}"),
            TncAddress::Agwpe(line) => write!(f, "agwpe:{line}"),
        }
    }
}

/// Runs an engine over the line of a TNC, while [`Driver::next`] is awaited.
#[derive(Debug)]
pub struct Driver<E: Engine>
where
    E::Above: CreditedService,
{
    engine: E,
    /// Room that the user can still spend.
    room: <E::Above as CreditedService>::Room,
    connection: LineConnection,
    began: tokio::time::Instant,
    lost: u64,
    said: mpsc::UnboundedReceiver<(u64, PumpEvent)>,
    tell: mpsc::UnboundedSender<(u64, PumpEvent)>,
}

impl<E: Engine<Below = Stream>> Driver<E>
where
    E::Above: CreditedService,
{
    /// Creates a driver; the time of the engine starts now.
    pub fn new(engine: E, line: LineAddress) -> Self {
        let (tell, said) = mpsc::unbounded_channel();
        let connection = LineConnection::new(line);
        let began = tokio::time::Instant::now();
        Driver { engine, room: Default::default(), connection, began, lost: 0, said, tell }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Returns the time of the engine.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }

    /// Passes a request to the engine. It is carried out while [`Driver::next`] is awaited.
    ///
    /// # Errors
    /// Fails if the request needs more room than [`Driver::next`] has granted and is unspent; only
    /// [`Room`](longwire_proto::service::PacketsIndication::Room) allows requests that occupy a link. The engine does not
    /// receive the request.
    pub fn request(&mut self, request: Request<E::Above>) -> Result<(), RequestRefused> {
        <E::Above as CreditedService>::spend(&mut self.room, &request)?;
        self.engine.handle_request(self.now(), request);
        Ok(())
    }

    /// Returns how often the line was lost or could not be opened.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the next indication of the engine. Cancel-safe: a dropped future loses nothing.
    pub async fn next(&mut self) -> Indication<E::Above> {
        loop {
            if let Some(said) = self.step().await {
                return said;
            }
        }
    }

    /// Performs one step: returns an indication of the engine, or passes one event to it.
    async fn step(&mut self) -> Option<Indication<E::Above>> {
        if let Some(said) = self.engine.poll_indication(self.now()) {
            <E::Above as CreditedService>::hear(&mut self.room, &said);
            return Some(said);
        }
        if let Some(request) = self.engine.poll_request(self.now()) {
            let tell = self.tell.clone();
            let tell =
                || -> connection::Tell { Box::new(move |number, said| drop(tell.send((number, said)))) };
            self.connection.request(request, tell);
            return None;
        }
        let deadline = self.engine.poll_timeout();
        tokio::select! {
            Some((number, said)) = self.said.recv() => self.hear(number, said),
            () = until(self.began, deadline) => self.engine.handle_timeout(self.now()),
        }
        None
    }

    fn hear(&mut self, number: u64, said: PumpEvent) {
        for indication in self.connection.hear(number, said) {
            self.lost += u64::from(matches!(indication, StreamIndication::Closed(_)));
            let now = self.now();
            self.engine.handle_indication(now, indication);
        }
    }
}

async fn until(began: tokio::time::Instant, deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(began + at.saturating_since(Instant::ZERO)).await,
        None => std::future::pending().await,
    }
}
