//! An application's side of the control socket, for programs without an event loop.

use crate::surfaces::message::{Message, REPLY_HEAD_BYTES_MAX, Reply, Request, decode, encode};
use bytes::BytesMut;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A connection to a node. A thread reads the replies, so that neither side waits for the other to read.
#[derive(Debug)]
pub struct ControlConnection {
    stream: UnixStream,
    replies: mpsc::Receiver<io::Result<Message<Reply>>>,
    out: BytesMut,
}

impl ControlConnection {
    /// Connects to the node that owns this control socket.
    ///
    /// # Errors
    /// Fails if no node answers on the socket.
    pub fn open(path: &Path) -> io::Result<ControlConnection> {
        let stream = UnixStream::connect(path)?;
        let reading = stream.try_clone()?;
        // A small queue: an application that does not read blocks the node's side, and no memory fills.
        let (sender, replies) = mpsc::sync_channel(256);
        thread::Builder::new().name("replies".into()).spawn(move || read(reading, &sender))?;
        Ok(ControlConnection { stream, replies, out: BytesMut::new() })
    }

    /// Sends a request to the node.
    ///
    /// # Errors
    /// Fails if the node has stopped.
    pub fn say(&mut self, request: impl Into<Message<Request>>) -> io::Result<()> {
        self.out.clear();
        encode(&request.into(), &mut self.out);
        self.stream.write_all(&self.out)
    }

    /// Returns the next reply of the node; `None` if none arrives within `patience`.
    ///
    /// # Errors
    /// Fails if the node has stopped.
    pub fn hear(&mut self, patience: Duration) -> io::Result<Option<Message<Reply>>> {
        match self.replies.recv_timeout(patience) {
            Ok(reply) => reply.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }
}

impl Drop for ControlConnection {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the node has stopped or closed the connection")
}

fn read(mut stream: UnixStream, sender: &mpsc::SyncSender<io::Result<Message<Reply>>>) {
    let mut input = BytesMut::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match decode(&mut input, REPLY_HEAD_BYTES_MAX) {
            Ok(Some(message)) => {
                if sender.send(Ok(message)).is_err() {
                    return;
                }
                continue;
            }
            Ok(None) => {}
            Err(what) => {
                let _ = sender.send(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) => return drop(sender.send(Err(gone()))),
            Ok(some) => input.extend_from_slice(&buffer[..some]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return drop(sender.send(Err(error))),
        }
    }
}
