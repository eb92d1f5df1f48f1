//! The near side: TCP connections become bundles.

use super::{AppClient, ClientFactory, GatewayStatus};
use crate::config::GatewaySettings;
use crate::private_files;
use crate::pumps::program::ProgramStream;
use crate::storage::random_u64;
use crate::surfaces::message::{Message, MessageOptions, PART_BYTES, Reply, Request};
use bytes::{Bytes, BytesMut};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// Bytes of a connection that wait in memory; longer data wait in a file.
const MEMORY_BYTES: usize = 64 * 1024;
/// Number of the only send of a connection's application.
const SEND: u64 = 1;

/// The near side of a gateway.
#[derive(Debug)]
pub(super) struct NearSide {
    settings: GatewaySettings,
    /// Destination of the bundles.
    to: String,
    folder: PathBuf,
    client_factory: ClientFactory,
    status: GatewayStatus,
    /// Bytes of all connections that are not stored yet.
    waiting: AtomicU64,
}

/// Reason for a reset.
#[derive(Debug)]
enum Refusal {
    /// The data are too long, or those of all connections are.
    TooLong(String),
    /// The program has reset its connection, or sent nothing for too long.
    Program,
    /// The file in which the data wait cannot be written or read.
    Spool(io::Error),
    /// The node has refused the bundle.
    Node(String),
    /// The node has stopped.
    Stopped,
}

impl NearSide {
    pub(super) fn new(
        settings: GatewaySettings,
        to: String,
        folder: PathBuf,
        client_factory: ClientFactory,
        status: GatewayStatus,
    ) -> Self {
        NearSide { settings, to, folder, client_factory, status, waiting: AtomicU64::new(0) }
    }

    /// Accepts connections until the node stops.
    pub(super) async fn serve(self, listener: std::net::TcpListener) {
        let near = Arc::new(self);
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        let mut node = near.client_factory.client();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                reply = node.reply() => match reply {
                    Some(_) => continue,
                    None => return,
                },
            };
            match accepted {
                Ok((stream, _)) => {
                    // Dropped before it has ended, it is reset.
                    let stream = ProgramStream::new(stream);
                    let connections_max = near.settings.connections_max as u64;
                    let has_room = near.status.change(|shown| {
                        let has_room = shown.open < connections_max;
                        shown.open += u64::from(has_room);
                        has_room
                    });
                    near.status.count(if has_room { "connections" } else { "refused" }, 1);
                    if has_room {
                        tokio::spawn(Arc::clone(&near).handle(stream));
                    }
                }
                // Probably out of file descriptors: other connections must close first.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn handle(self: Arc<Self>, stream: ProgramStream) {
        let mut data = WaitingData::new(&self);
        let taken = self.take_over(stream, &mut data).await;
        drop(data);
        self.status.change(|shown| shown.open -= 1);
        match taken {
            Ok(bytes) => {
                self.status.count("custody", 1);
                self.status.count("sent_bytes", bytes);
                self.status.trouble(None);
            }
            Err(refusal) => {
                self.status.count("reset", 1);
                match refusal {
                    Refusal::TooLong(what) | Refusal::Node(what) => self.status.trouble(Some(what)),
                    Refusal::Spool(error) => {
                        let folder = self.folder.display();
                        self.status.trouble(Some(format!("cannot use a file in {folder}: {error}")));
                    }
                    Refusal::Program | Refusal::Stopped => {}
                }
            }
        }
    }

    /// Takes over the data of a connection and ends it. Returns their length.
    async fn take_over(&self, mut stream: ProgramStream, data: &mut WaitingData<'_>) -> Result<u64, Refusal> {
        let mut buffer = BytesMut::with_capacity(MEMORY_BYTES);
        loop {
            buffer.clear();
            let read = timeout(self.settings.idle(), stream.read_buf(&mut buffer)).await;
            match read {
                Ok(Ok(0)) => break,
                Ok(Ok(_)) => data.add(&buffer)?,
                Ok(Err(_)) | Err(_) => return Err(Refusal::Program),
            }
        }
        let length = data.length;
        self.store(data).await?;
        // Only now the program may take its data for delivered.
        stream.shutdown().await.map_err(|_| Refusal::Program)?;
        Ok(length)
    }

    /// Sends the data as a bundle and waits until it is durable.
    async fn store(&self, data: &mut WaitingData<'_>) -> Result<(), Refusal> {
        let mut client = self.client_factory.client();
        let options =
            MessageOptions { lifetime_s: self.settings.lifetime.as_secs_f64(), ..MessageOptions::default() };
        let length = data.length;
        let ask = async |client: &AppClient, message: Message<Request>| {
            if client.request(message).await { Ok(()) } else { Err(Refusal::Stopped) }
        };
        data.rewind()?;
        let first = data.next()?;
        let mut left = length - first.len() as u64;
        let head = Request::Send { send: SEND, to: self.to.clone(), length, options };
        ask(&client, Message { head, body: first }).await?;
        while left > 0 {
            let body = data.next()?;
            left -= body.len() as u64;
            ask(&client, Message { head: Request::Piece { send: SEND }, body }).await?;
            while let Some(reply) = client.try_reply() {
                if let Some(outcome) = outcome(&reply) {
                    return outcome;
                }
            }
        }
        loop {
            let reply = client.reply().await.ok_or(Refusal::Stopped)?;
            if let Some(outcome) = outcome(&reply) {
                return outcome;
            }
        }
    }
}

/// Result of a send, if this reply tells it.
fn outcome(reply: &Message<Reply>) -> Option<Result<(), Refusal>> {
    match &reply.head {
        Reply::Accepted { .. } => Some(Ok(())),
        Reply::Failed { reason, .. } => Some(Err(Refusal::Node(reason.clone()))),
        Reply::Error { what, .. } => Some(Err(Refusal::Node(what.clone()))),
        _ => None,
    }
}

/// Data of a connection that the node has not taken over.
struct WaitingData<'a> {
    near: &'a NearSide,
    memory: Vec<u8>,
    /// All data, if they are long.
    file: Option<File>,
    length: u64,
    /// Bytes that were read again.
    read: u64,
}

impl<'a> WaitingData<'a> {
    fn new(near: &'a NearSide) -> Self {
        WaitingData { near, memory: Vec::new(), file: None, length: 0, read: 0 }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let settings = &self.near.settings;
        let added = bytes.len() as u64;
        let waiting = self.near.waiting.fetch_add(added, Ordering::Relaxed) + added;
        self.length += added;
        if self.length > settings.message_bytes_max {
            let most = settings.message_bytes_max;
            return Err(Refusal::TooLong(format!(
                "a connection has sent more than `message-bytes-max`, {most} bytes"
            )));
        }
        if waiting > settings.waiting_bytes_max {
            let most = settings.waiting_bytes_max;
            return Err(Refusal::TooLong(format!(
                "more than `waiting-bytes-max`, {most} bytes, are not stored yet"
            )));
        }
        if self.file.is_none() && self.memory.len() + bytes.len() <= MEMORY_BYTES {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        self.write(bytes).map_err(Refusal::Spool)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = self.file.insert(nameless_file(&self.near.folder)?);
                file.write_all(&self.memory)?;
                self.memory = Vec::new();
                file
            }
        };
        file.write_all(bytes)
    }

    /// Starts to read from the beginning.
    fn rewind(&mut self) -> Result<(), Refusal> {
        self.read = 0;
        let sought = self.file.as_mut().map(|file| file.rewind()).transpose();
        sought.map(drop).map_err(Refusal::Spool)
    }

    /// Returns the next part; empty at the end.
    fn next(&mut self) -> Result<Bytes, Refusal> {
        let length = (self.length - self.read).min(PART_BYTES.into()) as usize;
        let part = match &mut self.file {
            Some(file) => {
                let mut part = vec![0; length];
                file.read_exact(&mut part).map_err(Refusal::Spool)?;
                Bytes::from(part)
            }
            None => Bytes::copy_from_slice(&self.memory[self.read as usize..][..length]),
        };
        self.read += length as u64;
        Ok(part)
    }
}

impl Drop for WaitingData<'_> {
    fn drop(&mut self) {
        self.near.waiting.fetch_sub(self.length, Ordering::Relaxed);
    }
}

/// Creates a file that nobody else can open, and that is gone when it is closed, however the process ends.
fn nameless_file(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!(".longwire-gateway-{:016x}", random_u64()));
    let file = private_files::file().create_new(true).read(true).write(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
