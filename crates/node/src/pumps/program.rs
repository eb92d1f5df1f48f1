//! TCP connections of programs that use a gateway.
//!
//! A connection that is not ended by both sides is reset when it is dropped, and when the process ends, so that the program does not take
//! it for complete: the system would end it in good order. After such an end by both it still delivers what was written.

use super::quick_ack::QuickAck;
use super::stream::ByteStream;
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, lookup_host};

/// Makes the system reset a connection that is dropped, or whose process ends. Set for a listener, it holds for each connection from its
/// first moment.
///
/// # Errors
/// Fails if the system has no such option.
pub(crate) fn reset_unless_ended(socket: &impl AsFd) -> io::Result<()> {
    Ok(set_socket_linger(socket, Some(Duration::ZERO))?)
}

/// Connection of a program.
#[derive(Debug)]
pub(crate) struct ProgramStream {
    stream: QuickAck,
    /// The sending direction was ended.
    is_shut: bool,
    /// The program has ended its sending direction.
    is_finished: bool,
}

impl ProgramStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Without the option the connection would be ended instead of reset, which is no reason to refuse it.
        let _ = reset_unless_ended(&stream);
        ProgramStream { stream: QuickAck::new(stream), is_shut: false, is_finished: false }
    }

    /// Returns true once both sides have ended the connection, and each system has acknowledged all bytes and the end of the other one:
    /// the system knows no peer any more.
    ///
    /// # Errors
    /// Fails if it did not end in good order.
    pub(crate) fn is_over(&self) -> io::Result<bool> {
        let stream = self.stream.stream();
        let is_over = stream.peer_addr().is_err();
        // Asked last: a reset also ends the connection.
        match stream.take_error()? {
            Some(error) => Err(error),
            None => Ok(is_over),
        }
    }

    /// Once both sides have ended the connection, it is closed in good order.
    fn ends(&self) {
        if self.is_shut && self.is_finished {
            // The connection may be gone.
            let _ = set_socket_linger(self.stream.stream(), None);
        }
    }
}

impl AsyncRead for ProgramStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if matches!(read, Poll::Ready(Ok(()))) && buffer.filled().len() == before && buffer.remaining() > 0 {
            self.is_finished = true;
            self.ends();
        }
        read
    }
}

impl AsyncWrite for ProgramStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        if matches!(shut, Poll::Ready(Ok(()))) {
            self.is_shut = true;
            self.ends();
        }
        shut
    }
}

/// Connects to a program, trying the addresses of its host in turn.
pub(crate) async fn call(to: String) -> io::Result<Box<dyn ByteStream>> {
    Ok(Box::new(ProgramStream::new(connect(&to).await?)))
}

/// Connects by TCP, trying the addresses of the host in turn.
pub(crate) async fn connect(to: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in lookup_host(to).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Before the program can see the connection.
        reset_unless_ended(&socket)?;
        match socket.connect(address).await {
            Ok(stream) => {
                super::connect::prepare_caller(&stream)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn pair() -> (ProgramStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let calling = TcpStream::connect(listener.local_addr().unwrap());
        let (here, there) = tokio::join!(listener.accept(), calling);
        (ProgramStream::new(here.unwrap().0), there.unwrap())
    }

    /// A process that is killed right after it has accepted a connection must not end it in good order.
    #[tokio::test]
    async fn connections_have_the_option_of_their_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        reset_unless_ended(&listener).unwrap();
        let calling = TcpStream::connect(listener.local_addr().unwrap());
        let (here, there) = tokio::join!(listener.accept(), calling);
        drop(here.unwrap());
        let error = there.unwrap().read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn only_a_connection_that_both_have_ended_is_closed_in_good_order() {
        let mut buffer = Vec::new();
        let (here, mut there) = pair().await;
        drop(here);
        let error = there.read_to_end(&mut buffer).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        // The program has not ended its direction.
        let (mut here, mut there) = pair().await;
        here.write_all(b"half").await.unwrap();
        here.shutdown().await.unwrap();
        drop(here);
        assert!(there.read_to_end(&mut buffer).await.is_ok(), "one direction was ended");
        assert!(there.write_all(b"late").await.is_err(), "the other one is reset");
        // Both have.
        buffer.clear();
        let (mut here, mut there) = pair().await;
        there.shutdown().await.unwrap();
        assert_eq!(here.read(&mut [0; 8]).await.unwrap(), 0);
        here.write_all(b"whole").await.unwrap();
        here.shutdown().await.unwrap();
        drop(here);
        there.read_to_end(&mut buffer).await.unwrap();
        assert_eq!(buffer, b"whole");
    }
}
