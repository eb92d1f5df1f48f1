//! Connection to a TNC, between an engine and a pump.

use super::LineAddress;
use crate::pumps::receive_budget::ReceiveBudget;
use crate::pumps::stream::{ByteStream, ConnectionLimits, PumpCommand, PumpEvent, pump, reason_of};
use crate::write_timeout::WriteTimeout;
use longwire_proto::service::{CloseReason, StreamIndication, StreamRequest};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Maximum bytes queued for a line: more than any window of frames, escaped.
const QUEUE_BYTES: u64 = 256 * 1024;
/// Maximum bytes received from a line and not yet released.
const WINDOW_BYTES: u64 = 64 * 1024;
/// Time without progress after which a line is closed and opened again.
const STALL: Duration = Duration::from_secs(60);

/// Callback for events of a pump, with the number of its connection.
pub(crate) type Tell = Box<dyn Fn(u64, PumpEvent) + Send + Sync>;

/// Line in use or being opened.
#[derive(Debug)]
struct OpenLine {
    orders: mpsc::UnboundedSender<PumpCommand>,
    task: JoinHandle<()>,
    /// Bytes passed on and not yet with the kernel.
    queued: u64,
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Address of a TNC, and the line to it.
#[derive(Debug)]
pub(crate) struct LineConnection {
    line: LineAddress,
    open: Option<OpenLine>,
    /// Number of the current line: events of earlier lines are ignored.
    number: u64,
}

impl LineConnection {
    pub(crate) fn new(line: LineAddress) -> Self {
        LineConnection { line, open: None, number: 0 }
    }

    /// Carries out a request of the engine; a new pump reports through `tell`.
    pub(crate) fn request(&mut self, request: StreamRequest, tell: impl FnOnce() -> Tell) {
        if request == StreamRequest::Connect {
            return self.connect(tell());
        }
        let Some(open) = &mut self.open else { return };
        let order = match request {
            StreamRequest::Write(bytes) => {
                open.queued += bytes.len() as u64;
                PumpCommand::Write(bytes)
            }
            StreamRequest::Release(bytes) => PumpCommand::Release(bytes),
            StreamRequest::Close => PumpCommand::Close,
            StreamRequest::Abort => PumpCommand::Abort,
            StreamRequest::Connect => return,
            StreamRequest::Secure { .. } => panic!("there is no TLS on the line of a TNC"),
        };
        // A pump that has ended has already reported it.
        let _ = open.orders.send(order);
    }

    fn connect(&mut self, tell: Tell) {
        self.number += 1;
        let (number, line) = (self.number, self.line.clone());
        let (orders, ordered) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let tell = move |said| tell(number, said);
            let window = ConnectionLimits {
                bytes: WINDOW_BYTES,
                all: Arc::new(ReceiveBudget::new(WINDOW_BYTES)),
                patience: WriteTimeout::new(STALL),
            };
            match open(&line).await {
                Ok(wire) => pump(wire, ordered, window, tell).await,
                Err(error) => tell(PumpEvent::Closed(reason_of(&error))),
            }
        });
        self.open = Some(OpenLine { orders, task, queued: 0 });
    }

    /// Converts an event of a pump to indications for the engine.
    pub(crate) fn hear(&mut self, number: u64, said: PumpEvent) -> Vec<StreamIndication> {
        let Some(open) = self.open.as_mut().filter(|_| number == self.number) else { return Vec::new() };
        let room = |queued: u64| StreamIndication::Room(QUEUE_BYTES.saturating_sub(queued));
        match said {
            PumpEvent::Connected { .. } => vec![StreamIndication::Connected, room(0)],
            PumpEvent::Written(bytes) => {
                open.queued -= bytes;
                vec![room(open.queued)]
            }
            PumpEvent::Data(bytes) => vec![StreamIndication::Data(bytes)],
            PumpEvent::PeerClosed => vec![StreamIndication::PeerClosed],
            PumpEvent::Closed(reason) => {
                self.open = None;
                vec![StreamIndication::Closed(reason)]
            }
            PumpEvent::Secured { .. } | PumpEvent::Insecure(_) => {
                vec![StreamIndication::Closed(CloseReason::Insecure)]
            }
        }
    }
}

/// Opens the line to a TNC.
async fn open(line: &LineAddress) -> io::Result<Box<dyn ByteStream>> {
    match line {
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
