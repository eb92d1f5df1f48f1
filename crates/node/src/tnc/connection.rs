//! The connection to a TNC, between an engine and a pump.

use super::LineAddress;
use crate::receive_budget::ReceiveBudget;
use crate::stream::{ConnectionLimits, PumpCommand, PumpEvent, pump, reason_of};
use crate::write_timeout::WriteTimeout;
use longwire_proto::service::{CloseReason, StreamIndication, StreamRequest};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes that wait for a line: more than any window of frames, escaped.
const QUEUE_BYTES: u64 = 256 * 1024;
/// Bytes of a line that rise without being released.
const WINDOW_BYTES: u64 = 64 * 1024;
/// A line that takes nothing for so long is closed and opened anew.
const STALL: Duration = Duration::from_secs(60);

/// What one is told with: the number of its connection, and what its pump says.
pub(crate) type Tell = Box<dyn Fn(u64, PumpEvent) + Send + Sync>;

/// A line that was asked for.
#[derive(Debug)]
struct OpenLine {
    orders: mpsc::UnboundedSender<PumpCommand>,
    task: JoinHandle<()>,
    /// Bytes handed over and not yet with the kernel.
    queued: u64,
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where a TNC is, and the line to it.
#[derive(Debug)]
pub(crate) struct LineConnection {
    line: LineAddress,
    open: Option<OpenLine>,
    /// Lines so far: what one says that is gone is not heard.
    number: u64,
}

impl LineConnection {
    pub(crate) fn new(line: LineAddress) -> Self {
        LineConnection { line, open: None, number: 0 }
    }

    /// Carries out what the engine asks for; a new pump tells by `tell`.
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
        // A pump that is over has said so, and is heard soon.
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
            match line.open().await {
                Ok(wire) => pump(wire, ordered, window, tell).await,
                Err(error) => tell(PumpEvent::Closed(reason_of(&error))),
            }
        });
        self.open = Some(OpenLine { orders, task, queued: 0 });
    }

    /// What a pump says, as the engine hears it.
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
