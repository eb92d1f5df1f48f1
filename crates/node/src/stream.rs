//! Streams: one pump for each connection, between its bytes and the engines.
//!
//! What goes out was handed over against room, and the engines' side counts it: the pump takes all of it, so an abort is
//! never behind data. What comes in is bounded by the window: as long as so much is not released, nothing is read, and the
//! peer's writes come to rest.
//!
//! Units: bytes.

use bytes::{Buf, Bytes, BytesMut};
use longwire_proto::service::CloseReason;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::mpsc;

/// A connection's bytes: TCP, TLS over it, or a pipe in memory.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Wire for T {}

/// To a pump.
#[derive(Debug)]
pub(crate) enum Order {
    /// Send these.
    Write(Bytes),
    /// So many bytes of what came in are dealt with.
    Release(u64),
    /// Nothing more will be written.
    Close,
    /// End it at once.
    Abort,
}

/// From a pump.
#[derive(Debug)]
pub(crate) enum Said {
    /// The connection stands.
    Connected,
    /// Bytes from the peer.
    Data(Bytes),
    /// So many bytes were handed to the kernel.
    Written(u64),
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

/// Moves bytes until the connection is over. `window`: the most that rises without being released.
pub(crate) async fn pump(
    wire: impl Wire,
    orders: mpsc::UnboundedReceiver<Order>,
    window: u64,
    tell: impl Fn(Said) + Unpin,
) {
    tell(Said::Connected);
    let mut pump = Pump {
        wire,
        orders,
        out: VecDeque::new(),
        closing: false,
        shut: false,
        peer_closed: false,
        unreleased: 0,
        window,
        buffer: BytesMut::new(),
        read_bytes: READ_BYTES.0,
        tell: &tell,
    };
    let reason = poll_fn(|context| pump.poll(context)).await;
    drop(pump);
    tell(Said::Closed(reason));
}

struct Pump<'a, W, T> {
    wire: W,
    orders: mpsc::UnboundedReceiver<Order>,
    out: VecDeque<Bytes>,
    closing: bool,
    shut: bool,
    peer_closed: bool,
    unreleased: u64,
    window: u64,
    buffer: BytesMut,
    /// How much the next read may bring: grows as long as reads are full.
    read_bytes: usize,
    tell: &'a T,
}

impl<W: Wire, T: Fn(Said)> Pump<'_, W, T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<CloseReason> {
        match self.step(context) {
            Ok(Some(reason)) => Poll::Ready(reason),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(reason_of(&error)),
        }
    }

    fn step(&mut self, context: &mut Context<'_>) -> io::Result<Option<CloseReason>> {
        if self.hear(context) {
            return Ok(Some(CloseReason::Aborted));
        }
        self.write(context)?;
        self.read(context)?;
        Ok((self.shut && self.peer_closed).then_some(CloseReason::Finished))
    }

    /// Takes all orders; true: it is to end at once.
    fn hear(&mut self, context: &mut Context<'_>) -> bool {
        while let Poll::Ready(order) = self.orders.poll_recv(context) {
            match order {
                Some(Order::Write(bytes)) => self.out.push_back(bytes),
                Some(Order::Release(bytes)) => self.unreleased = self.unreleased.saturating_sub(bytes),
                Some(Order::Close) => self.closing = true,
                Some(Order::Abort) | None => return true,
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
            (self.tell)(Said::Written(written));
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
            if self.peer_closed || self.unreleased >= self.window {
                return Ok(());
            }
            if self.buffer.capacity() < READ_BYTES.0 / 2 {
                self.buffer.reserve(self.read_bytes);
            }
            let offered = self.buffer.capacity();
            let read = pin!(self.wire.read_buf(&mut self.buffer));
            let Poll::Ready(result) = std::future::Future::poll(read, context) else { return Ok(()) };
            let some = result?;
            if some == 0 {
                self.peer_closed = true;
                (self.tell)(Said::PeerClosed);
                return Ok(());
            }
            if some == offered {
                self.read_bytes = (self.read_bytes * 2).min(READ_BYTES.1);
            }
            self.unreleased += some as u64;
            (self.tell)(Said::Data(self.buffer.split().freeze()));
        }
        // Others have their turn, then this one goes on.
        context.waker().wake_by_ref();
        Ok(())
    }
}

/// What an error of the operating system means.
pub(crate) fn reason_of(error: &io::Error) -> CloseReason {
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
