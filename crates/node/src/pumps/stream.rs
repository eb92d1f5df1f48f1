//! Streams: for each connection one task (the pump) that copies between its bytes and the engines.
//!
//! Outgoing data is limited by the room that the engine is granted, and counted on the engines' side: the pump accepts all of it, so
//! an abort never waits behind data. Incoming data is limited by the window: while that many bytes are not released, the pump does
//! not read, and the peer's writes block.
//!
//! An engine may switch the stream to TLS: once earlier data is written, the handshake takes place, and the pump continues with the
//! secured connection. It reads nothing in between: what a peer sends in plain text before the handshake has been received by the
//! engine, which then ends the session, and cannot be taken for secured data.
//!
//! A peer that reads nothing for too long loses its connection, even if it sends keep-alives.
//!
//! Units: bytes.

use super::secure::{Handshake, peer_address};
use crate::pumps::receive_budget::{BufferMemory, ReceiveBudget};
use crate::tls::TlsFailure;
use crate::view::Proven;
use crate::write_timeout::{Stalled, WriteTimeout, WriteTimeoutStream};
use bytes::{Buf, Bytes, BytesMut};
use longwire_proto::service::CloseReason;
use std::any::Any;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::mpsc;

/// Bytes of a connection: TCP, TLS over it, or a pipe in memory.
pub trait ByteStream: AsyncRead + AsyncWrite + Any + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Any + Send + Unpin> ByteStream for T {}

#[derive(Debug)]
pub(crate) enum PumpCommand {
    /// Sends these bytes.
    Write(Bytes),
    /// Releases this many received bytes.
    Release(u64),
    /// Switches to TLS once all earlier data is written.
    Secure(Box<Handshake>),
    /// Closes the sending direction after all earlier data.
    Close,
    /// Aborts the connection.
    Abort,
}

#[derive(Debug)]
pub(crate) enum PumpEvent {
    /// The connection is established.
    Connected {
        /// Address of the peer, if the connection is over TCP.
        at: Option<IpAddr>,
    },
    /// Bytes from the peer.
    Data(Bytes),
    /// This many bytes were passed to the kernel.
    Written(u64),
    /// The TLS handshake is complete.
    Secured {
        /// Content of the peer's certificate, for the status.
        proven: Box<Proven>,
        /// Proven node IDs of the peer.
        identities: Vec<String>,
        /// True if the certificate matches its host name or address.
        trusted: bool,
    },
    /// TLS failed, during the handshake or later. `Closed` follows.
    Insecure(TlsFailure),
    /// The peer has closed its sending direction.
    PeerClosed,
    /// The connection has ended. The last event.
    Closed(CloseReason),
}

/// Minimum and maximum bytes per read.
const READ_BYTES: (usize, usize) = (16 * 1024, 512 * 1024);
/// Maximum pieces per write.
const SLICES_MAX: usize = 64;
/// Reads before other tasks run.
const READS_MAX: usize = 4;

/// Limits of a connection: unreleased bytes, of it and of all connections, and the time for which it may stall.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) bytes: u64,
    pub(crate) all: Arc<ReceiveBudget>,
    /// Limits the time without progress in writing.
    pub(crate) patience: WriteTimeout,
}

/// Bytes of a connection that were passed on and not released.
struct UnreleasedBytes {
    bytes: u64,
    all: Arc<ReceiveBudget>,
}

impl UnreleasedBytes {
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.all.add(bytes);
    }

    fn release(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.all.subtract(bytes);
    }

    fn allows(&self, window: u64, waker: &Waker) -> bool {
        self.all.allows(self.bytes, window, waker)
    }
}

impl Drop for UnreleasedBytes {
    fn drop(&mut self) {
        self.all.subtract(self.bytes);
    }
}

/// Copies bytes until the connection ends.
pub(crate) async fn pump(
    wire: Box<dyn ByteStream>,
    orders: mpsc::UnboundedReceiver<PumpCommand>,
    window: ConnectionLimits,
    tell: impl Fn(PumpEvent) + Unpin,
) {
    tell(PumpEvent::Connected { at: peer_address(&*wire) });
    let mut pump = Pump {
        wire: Box::new(WriteTimeoutStream::new(wire, window.patience)),
        orders,
        out: VecDeque::new(),
        securing: None,
        secured: false,
        closing: false,
        shut: false,
        peer_closed: false,
        memory: BufferMemory::new(0, window.all.clone()),
        unreleased: UnreleasedBytes { bytes: 0, all: window.all },
        window: window.bytes,
        buffer: BytesMut::new(),
        read_bytes: READ_BYTES.0,
        tell: &tell,
    };
    let reason = loop {
        match poll_fn(|context| pump.poll(context)).await {
            PumpExit::Over(reason) => break reason,
            PumpExit::Secure(handshake) => match pump.secure(*handshake).await {
                Ok(secured) => pump = secured,
                Err(reason) => return tell(PumpEvent::Closed(reason)),
            },
        }
    };
    drop(pump);
    tell(PumpEvent::Closed(reason));
}

/// Reason why a pump returns.
enum PumpExit {
    /// The connection has ended.
    Over(CloseReason),
    /// The stream switches to TLS.
    Secure(Box<Handshake>),
}

struct Pump<'a, T> {
    wire: Box<dyn ByteStream>,
    orders: mpsc::UnboundedReceiver<PumpCommand>,
    out: VecDeque<Bytes>,
    /// Handshake to make once everything is written.
    securing: Option<Box<Handshake>>,
    /// True after the handshake.
    secured: bool,
    closing: bool,
    shut: bool,
    peer_closed: bool,
    unreleased: UnreleasedBytes,
    window: u64,
    buffer: BytesMut,
    memory: Arc<BufferMemory>,
    /// Size of the next read: it grows as long as reads fill the buffer.
    read_bytes: usize,
    tell: &'a T,
}

impl<T: Fn(PumpEvent)> Pump<'_, T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<PumpExit> {
        match self.step(context) {
            Ok(Some(turn)) => Poll::Ready(turn),
            Ok(None) => Poll::Pending,
            Err(error) => {
                if let Some(trouble) = TlsFailure::of(&error) {
                    (self.tell)(PumpEvent::Insecure(trouble));
                }
                Poll::Ready(PumpExit::Over(reason_of(&error)))
            }
        }
    }

    fn step(&mut self, context: &mut Context<'_>) -> io::Result<Option<PumpExit>> {
        if self.hear(context) {
            return Ok(Some(PumpExit::Over(CloseReason::Aborted)));
        }
        self.write(context)?;
        if self.securing.is_some() {
            let flushed = Pin::new(&mut self.wire).poll_flush(context)?.is_ready();
            let now = flushed && self.out.is_empty();
            return Ok(self.securing.take_if(|_| now).map(PumpExit::Secure));
        }
        self.read(context)?;
        Ok((self.shut && self.peer_closed).then_some(PumpExit::Over(CloseReason::Finished)))
    }

    /// Makes the handshake. A close during the handshake aborts: no data can be lost.
    async fn secure(mut self, handshake: Handshake) -> Result<Self, CloseReason> {
        let running = handshake.run(self.wire);
        tokio::pin!(running);
        let done = loop {
            tokio::select! {
                done = &mut running => break done,
                order = self.orders.recv() => match order {
                    Some(PumpCommand::Write(bytes)) => self.out.push_back(bytes),
                    Some(PumpCommand::Release(bytes)) => self.unreleased.release(bytes),
                    Some(PumpCommand::Secure(_)) => {}
                    Some(PumpCommand::Close | PumpCommand::Abort) | None => break Err(TlsFailure::Unfinished),
                },
            }
        };
        match done {
            Ok(done) => {
                let (identities, trusted) = (done.identities, done.trusted);
                (self.tell)(PumpEvent::Secured { proven: Box::new(done.proven), identities, trusted });
                Ok(Pump { wire: done.wire, secured: true, ..self })
            }
            Err(trouble) => {
                (self.tell)(PumpEvent::Insecure(trouble));
                Err(CloseReason::Insecure)
            }
        }
    }

    /// Handles all commands. Returns true if the connection must be aborted.
    fn hear(&mut self, context: &mut Context<'_>) -> bool {
        while let Poll::Ready(order) = self.orders.poll_recv(context) {
            match order {
                Some(PumpCommand::Write(bytes)) => self.out.push_back(bytes),
                Some(PumpCommand::Release(bytes)) => self.unreleased.release(bytes),
                Some(PumpCommand::Secure(handshake)) => self.securing = Some(handshake),
                Some(PumpCommand::Close) => self.closing = true,
                Some(PumpCommand::Abort) | None => return true,
            }
        }
        false
    }

    fn write(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let mut written = 0;
        while !self.out.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut count = 0;
            for (slice, bytes) in slices.iter_mut().zip(&self.out) {
                *slice = IoSlice::new(bytes);
                count += 1;
            }
            let Poll::Ready(result) = Pin::new(&mut self.wire).poll_write_vectored(context, &slices[..count])
            else {
                break;
            };
            let some = result?;
            if some == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.advance(some);
            written += some as u64;
        }
        if written > 0 {
            (self.tell)(PumpEvent::Written(written));
        }
        if let Poll::Ready(result) = Pin::new(&mut self.wire).poll_flush(context) {
            result?;
            if self.out.is_empty() && self.closing && !self.shut {
                match Pin::new(&mut self.wire).poll_shutdown(context) {
                    // A peer that has gone has closed its side, too.
                    Poll::Ready(_) => self.shut = true,
                    Poll::Pending => {}
                }
            }
        }
        Ok(())
    }

    fn advance(&mut self, mut bytes: usize) {
        while let Some(front) = self.out.front_mut() {
            let some = front.len().min(bytes);
            front.advance(some);
            bytes -= some;
            if !front.is_empty() {
                return;
            }
            self.out.pop_front();
            if bytes == 0 {
                return;
            }
        }
    }

    fn read(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        for _ in 0..READS_MAX {
            if self.peer_closed || !self.unreleased.allows(self.window, context.waker()) {
                return Ok(());
            }
            if self.buffer.capacity() < READ_BYTES.0 / 2 {
                let all = &self.unreleased.all;
                let bytes = if all.is_full_of_buffers() { READ_BYTES.0 } else { self.read_bytes };
                self.buffer = BytesMut::with_capacity(bytes);
                self.memory = BufferMemory::new(bytes, all.clone());
            }
            let offered = self.buffer.capacity();
            let read = pin!(self.wire.read_buf(&mut self.buffer));
            let Poll::Ready(result) = std::future::Future::poll(read, context) else { return Ok(()) };
            let some = match result {
                // TLS without a closure alert: every message of TCPCL has a defined end (RFC 9174 4.4).
                Err(error) if self.secured && error.kind() == io::ErrorKind::UnexpectedEof => 0,
                result => result?,
            };
            if some == 0 {
                self.peer_closed = true;
                (self.tell)(PumpEvent::PeerClosed);
                return Ok(());
            }
            if some == offered {
                self.read_bytes = (self.read_bytes * 2).min(READ_BYTES.1);
            }
            self.unreleased.add(some as u64);
            (self.tell)(PumpEvent::Data(self.memory.part(self.buffer.split().freeze())));
        }
        // Other tasks run before the next read.
        context.waker().wake_by_ref();
        Ok(())
    }
}

/// Maps an error of the operating system to a reason.
pub(crate) fn reason_of(error: &io::Error) -> CloseReason {
    if TlsFailure::of(error).is_some() {
        return CloseReason::Insecure;
    }
    if Stalled::is(error) {
        return CloseReason::Stalled;
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => CloseReason::Refused,
        io::ErrorKind::TimedOut => CloseReason::TimedOut,
        io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::NotFound
        | io::ErrorKind::InvalidInput => CloseReason::Unreachable,
        _ => CloseReason::Reset,
    }
}

#[cfg(test)]
mod tests {
    mod closed;

    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;

    /// The peer keeps the session alive by sending, and reads nothing.
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_talks_and_does_not_read_is_given_up() {
        let (here, mut there) = tokio::io::duplex(1000);
        let (orders, ordered) = mpsc::unbounded_channel();
        let (tell, mut said) = mpsc::unbounded_channel();
        let patience = WriteTimeout::new(Duration::from_secs(300));
        let all = Arc::new(ReceiveBudget::new(1 << 20));
        let window = ConnectionLimits { bytes: 1 << 20, all, patience: patience.clone() };
        orders.send(PumpCommand::Write(Bytes::from(vec![0; 100_000]))).unwrap();
        let began = tokio::time::Instant::now();
        let talking = async {
            while there.write_all(b".").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        };
        tokio::join!(pump(Box::new(here), ordered, window, move |it| drop(tell.send(it))), talking);
        assert_eq!((patience.stalled(), began.elapsed().as_secs() / 20), (1, 300 / 20));
        let mut last = None;
        while let Some(next) = said.recv().await {
            last = Some(next);
        }
        assert!(matches!(last, Some(PumpEvent::Closed(CloseReason::Stalled))), "{last:?}");
    }
}
