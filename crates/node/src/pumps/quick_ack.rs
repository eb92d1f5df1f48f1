//! TCP connections that acknowledge received data at once.
//!
//! Linux delays an acknowledgement for up to 40 ms to send it with an answer. A peer that writes the header of a message and its
//! payload one after the other, with Nagle's algorithm on (as ION does), keeps the payload until the header is acknowledged. So
//! after each read that empties the socket, the kernel is asked to acknowledge at once: it may clear that setting at any time, and
//! has to be asked again (tcp(7), `TCP_QUICKACK`).

use rustix::net::sockopt::set_tcp_quickack;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP connection that acknowledges received data at once.
#[derive(Debug)]
pub(crate) struct QuickAck(TcpStream);

impl QuickAck {
    pub(crate) fn new(stream: TcpStream) -> Self {
        QuickAck(stream)
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.0
    }
}

impl AsyncRead for QuickAck {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.0).poll_read(context, buffer);
        // A full buffer means that more data is waiting: the next read asks the kernel.
        if buffer.filled().len() > before && buffer.remaining() > 0 {
            // A failure costs nothing but time.
            let _ = set_tcp_quickack(&self.0, true);
        }
        read
    }
}

impl AsyncWrite for QuickAck {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::tcp_quickack;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Exchanges one byte each way; returns how often the kernel would have delayed the next acknowledgement.
    async fn held_back(quick: bool, exchanges: u32) -> u32 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let calling = TcpStream::connect(listener.local_addr().expect("it has one"));
        let (here, there) = tokio::join!(listener.accept(), calling);
        let (mut there, (plain, _)) = (there.expect("it answers"), here.expect("it calls"));
        let (mut byte, mut held_back) = ([0; 1], 0);
        let mut buffer = [0; 16];
        let mut quick = match quick {
            true => Ok(QuickAck::new(plain)),
            false => {
                plain.set_nodelay(true).expect("an option");
                Err(plain)
            }
        };
        for _ in 0..exchanges {
            there.write_all(&[1]).await.expect("it is read");
            let asks = match &mut quick {
                Ok(here) => {
                    assert_eq!(here.read(&mut buffer).await.expect("it is there"), 1);
                    tcp_quickack(here.stream())
                }
                Err(here) => {
                    assert_eq!(here.read(&mut buffer).await.expect("it is there"), 1);
                    tcp_quickack(&*here)
                }
            };
            held_back += u32::from(!asks.expect("Linux says it"));
            match &mut quick {
                Ok(here) => here.write_all(&[2]).await,
                Err(here) => here.write_all(&[2]).await,
            }
            .expect("it is read");
            there.read_exact(&mut byte).await.expect("it is there");
        }
        held_back
    }

    #[tokio::test]
    async fn the_kernel_is_asked_again_after_every_read() {
        assert_eq!(held_back(true, 1000).await, 0);
        assert!(
            held_back(false, 1000).await > 0,
            "without it the kernel waits for answers: else this test shows nothing"
        );
    }
}
