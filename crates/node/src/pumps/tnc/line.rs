//! The line to a TNC: a pump like others.

use super::LineAddress;
use crate::pumps::receive_budget::ReceiveBudget;
use crate::pumps::stream::{ByteStream, ConnectionLimits, PumpCommand, PumpEvent};
use crate::pumps::table::{PumpReport, Pumps, QueueLimit, Source};
use crate::write_timeout::WriteTimeout;
use longwire_proto::service::{CloseReason, StreamIndication, StreamRequest};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};

/// Maximum bytes queued for a line: more than any window of frames, escaped.
const QUEUE_BYTES: u64 = 256 * 1024;
/// Maximum bytes received from a line and not yet released.
const WINDOW_BYTES: u64 = 64 * 1024;
/// Time without progress after which a line is closed and opened again.
const STALL: Duration = Duration::from_secs(60);

impl<Key: Copy + Ord + Send + Sync + Unpin + 'static> Pumps<Key> {
    /// Carries out a request of the engine of a TNC.
    pub(crate) fn request_line(&mut self, key: Key, line: &LineAddress, request: StreamRequest) {
        let command = match request {
            StreamRequest::Connect => return self.open_line(key, line),
            StreamRequest::Write(bytes) => PumpCommand::Write(bytes),
            StreamRequest::Release(bytes) => PumpCommand::Release(bytes),
            StreamRequest::Close => PumpCommand::Close,
            StreamRequest::Abort => PumpCommand::Abort,
            StreamRequest::Secure { .. } => panic!("there is no TLS on the line of a TNC"),
        };
        self.command(key, command);
    }

    fn open_line(&mut self, key: Key, line: &LineAddress) {
        let limits = ConnectionLimits {
            bytes: WINDOW_BYTES,
            all: Arc::new(ReceiveBudget::new(WINDOW_BYTES)),
            patience: WriteTimeout::new(STALL),
        };
        let calling = Source::Calling(Box::pin(open(line.clone())));
        self.open(key, line.to_string(), calling, limits, QueueLimit::Own(QUEUE_BYTES));
    }

    /// Converts an event of a line to indications for the engine of its TNC.
    pub(crate) fn hear_line(&mut self, said: PumpReport<Key>) -> Vec<StreamIndication> {
        let key = said.key;
        let indication = self.hear(said).map(|event| match event {
            PumpEvent::Connected { .. } => StreamIndication::Connected,
            PumpEvent::Data(bytes) => StreamIndication::Data(bytes),
            PumpEvent::PeerClosed => StreamIndication::PeerClosed,
            PumpEvent::Closed(reason) => {
                self.close(key);
                StreamIndication::Closed(reason)
            }
            PumpEvent::Written(_) | PumpEvent::Secured { .. } | PumpEvent::Insecure(_) => {
                StreamIndication::Closed(CloseReason::Insecure)
            }
        });
        indication.into_iter().chain(self.room(key).map(StreamIndication::Room)).collect()
    }
}

async fn open(line: LineAddress) -> io::Result<Box<dyn ByteStream>> {
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
            Ok(Box::new(serial2_tokio::SerialPort::open(path, speed_bps)?))
        }
    }
}
