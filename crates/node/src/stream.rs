//! Streams: one pump for each connection, between its bytes and the engines.
//!
//! What goes out was handed over against room, and the engines' side counts it: the pump takes all of it, so an abort is
//! never behind data. What comes in is bounded by the window: as long as so much is not released, nothing is read, and the
//! peer's writes come to rest.
//!
//! In mid-stream the bytes may be asked to go through TLS: once what was handed over before is written, the handshake is
//! made, and the pump goes on with the secured connection. Nothing is read in between: what a peer says in plain text before
//! the handshake has been heard by the engine, which then ends the session, and cannot pass for something secured.
//!
//! A peer that takes nothing for too long, though it may say that it is there, keeps its connection no longer.
//!
//! Units: bytes.

use crate::receive_budget::{BufferMemory, ReceiveBudget};
use crate::tls::{Handshake, TlsFailure, peer_address};
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

/// A connection's bytes: TCP, TLS over it, or a pipe in memory.
pub trait ByteStream: AsyncRead + AsyncWrite + Any + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Any + Send + Unpin> ByteStream for T {}

/// To a pump.
#[derive(Debug)]
pub(crate) enum PumpCommand {
    /// Send these.
    Write(Bytes),
    /// So many bytes of what came in are dealt with.
    Release(u64),
    /// Go on with TLS, once everything is written.
    Secure(Box<Handshake>),
    /// Nothing more will be written.
    Close,
    /// End it at once.
    Abort,
}

/// From a pump.
#[derive(Debug)]
pub(crate) enum PumpEvent {
    /// The connection stands.
    Connected {
        /// Where the other end is, if the connection is TCP's.
        at: Option<IpAddr>,
    },
    /// Bytes from the peer.
    Data(Bytes),
    /// So many bytes were handed to the kernel.
    Written(u64),
    /// TLS stands.
    Secured {
        /// What it proved, for people.
        proven: Box<Proven>,
        /// The node ids of the peer that the engine may believe.
        identities: Vec<String>,
        /// Its name and address are in order.
        trusted: bool,
    },
    /// TLS failed, now or after it stood: `Closed` follows.
    Insecure(TlsFailure),
    /// The peer writes no more.
    PeerClosed,
    /// It is over: the last word.
    Closed(CloseReason),
}

/// The least and the most that one read may bring.
const READ_BYTES: (usize, usize) = (16 * 1024, 512 * 1024);
/// Pieces that one write takes.
const SLICES_MAX: usize = 64;
/// Reads before others get their turn.
const READS_MAX: usize = 4;

/// What a connection is held to: the most that rises without being released, of it and of all, and how long it may stall.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) bytes: u64,
    pub(crate) all: Arc<ReceiveBudget>,
    /// With a peer that takes nothing.
    pub(crate) patience: WriteTimeout,
}

/// What of a connection rose and is not released.
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

/// Moves bytes until the connection is over.
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

/// What a pump comes to.
enum PumpExit {
    /// Its end.
    Over(CloseReason),
    /// TLS.
    Secure(Box<Handshake>),
}

struct Pump<'a, T> {
    wire: Box<dyn ByteStream>,
    orders: mpsc::UnboundedReceiver<PumpCommand>,
    out: VecDeque<Bytes>,
    /// To be made once everything is written.
    securing: Option<Box<Handshake>>,
    /// It was made.
    secured: bool,
    closing: bool,
    shut: bool,
    peer_closed: bool,
    unreleased: UnreleasedBytes,
    window: u64,
    buffer: BytesMut,
    /// That of the buffer.
    memory: Arc<BufferMemory>,
    /// How much the next read may bring: grows as long as reads are full.
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

    /// Makes the handshake. To end before it stands is to end it at once: there is nothing that would be lost.
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

    /// Takes all orders; true: it is to end at once.
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
                    // A peer that is gone already has closed its side, too.
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
                // TLS without a closure alert: every message of TCPCL says where it ends (RFC 9174 4.4).
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
        // Others have their turn, then this one goes on.
        context.waker().wake_by_ref();
        Ok(())
    }
}

/// What an error of the operating system means.
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
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;

    /// The peer keeps the session alive with what it says, and takes nothing.
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

#[cfg(test)]
mod closed;
