//! Connections whose peer may not stall: a write must make progress within a time, or the connection ends.
//!
//! A slow peer does not stall: it continues as long as it reads something now and then. Reads have no limit here: a silent peer is a
//! matter of the protocol above.
//!
//! Units: connections. Limits: `stream.stall`, `applications.patience`, `http.patience`.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Maximum time without progress, and the number of peers that exceeded it.
#[derive(Clone, Debug)]
pub(crate) struct WriteTimeout {
    time: Duration,
    stalled: Arc<AtomicU64>,
}

impl WriteTimeout {
    pub(crate) fn new(time: Duration) -> Self {
        WriteTimeout { time, stalled: Arc::default() }
    }

    /// Maximum time without progress.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    pub(crate) fn count(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }
}

/// The peer read nothing for too long.
#[derive(Debug, thiserror::Error)]
#[error("the peer stopped reading")]
pub(crate) struct Stalled;

impl Stalled {
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Stalled>())
    }
}

/// A connection whose writes fail with [`Stalled`] after too long without progress.
pub(crate) struct WriteTimeoutStream<W> {
    wire: W,
    patience: WriteTimeout,
    /// Runs while a write waits.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<W> WriteTimeoutStream<W> {
    pub(crate) fn new(wire: W, patience: WriteTimeout) -> Self {
        WriteTimeoutStream { wire, patience, stall: None }
    }

    /// The connection itself.
    pub(crate) fn inner(&self) -> &W {
        &self.wire
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stall = None;
            return poll;
        }
        let time = self.patience.time;
        let stall = self.stall.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        if stall.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.stall = None;
        self.patience.count();
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, Stalled)))
    }
}

impl<W: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_read(context, buffer)
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.wire).poll_write(context, bytes);
        self.watch(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.wire).poll_write_vectored(context, slices);
        self.watch(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    const TIME: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_given_up_and_counted() {
        let (here, _there) = tokio::io::duplex(100);
        let patience = WriteTimeout::new(TIME);
        let mut wire = WriteTimeoutStream::new(here, patience.clone());
        let began = Instant::now();
        let error = wire.write_all(&[0; 1000]).await.expect_err("nobody reads");
        assert!(Stalled::is(&error) && error.kind() == ErrorKind::TimedOut, "{error}");
        assert_eq!((began.elapsed().as_secs(), patience.stalled()), (60, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_little_goes_on() {
        let (here, mut there) = tokio::io::duplex(100);
        let patience = WriteTimeout::new(TIME);
        let mut wire = WriteTimeoutStream::new(here, patience.clone());
        let reading = async {
            for _ in 0..10 {
                tokio::time::sleep(TIME - Duration::from_secs(1)).await;
                there.read_exact(&mut [0; 100]).await.expect("there is more");
            }
        };
        let (written, ()) = tokio::join!(wire.write_all(&[0; 1000]), reading);
        written.expect("it was taken in the end");
        assert_eq!(patience.stalled(), 0);
    }
}
