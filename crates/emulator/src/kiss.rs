//! Controllers (TNCs) in KISS mode over TCP.

use crate::port::{Next, Outgoing, Port};
use bytes::{Buf, Bytes, BytesMut};
use longwire_proto::kiss::{Checksum, Command, Deframer, Frame, enclose};
use longwire_settings::error::Error;
use rustix::event::{PollFd, PollFlags};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Maximum programs at one controller.
const CLIENTS_MAX: usize = 8;
/// Maximum bytes that wait for a program; one that falls further behind is disconnected.
const UNREAD_BYTES_MAX: usize = 1 << 20;
const READ_BYTES: usize = 4096;

/// Frames of the programs at one controller.
pub(crate) struct KissPort {
    listener: TcpListener,
    clients: Vec<Client>,
    next_client: u64,
    /// Frames of programs that wait for room: the program, its token, and the frame.
    outgoing: VecDeque<(u64, Option<u16>, Bytes)>,
    /// Frames whose departure a program wants to know: the program and its token.
    to_acknowledge: BTreeMap<u64, (u64, u16)>,
    next_token: u64,
    frame_bytes_max: usize,
    refused: u64,
}

struct Client {
    number: u64,
    stream: TcpStream,
    deframer: Deframer,
    unread: BytesMut,
    /// True if the program has closed its direction.
    has_said_all: bool,
    has_ended: bool,
}

impl KissPort {
    pub(crate) fn open(place: SocketAddr, frame_bytes_max: u32) -> Result<KissPort, Error> {
        let failed = |error: std::io::Error| {
            Error::new(format!("cannot use TCP port {place}: {error}"))
                .hint("use a free port on an address of this computer, such as 127.0.0.1:8001")
        };
        let listener = TcpListener::bind(place).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(KissPort {
            listener,
            clients: Vec::new(),
            next_client: 0,
            outgoing: VecDeque::new(),
            to_acknowledge: BTreeMap::new(),
            next_token: 0,
            frame_bytes_max: frame_bytes_max as usize,
            refused: 0,
        })
    }

    /// Address of the controller.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Accepts programs while there is a place for them; others wait.
    fn accept(&mut self) {
        while self.clients.len() < CLIENTS_MAX
            && let Ok((stream, _)) = self.listener.accept()
        {
            if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_err() {
                continue;
            }
            self.next_client += 1;
            let (number, deframer, unread) = (self.next_client, Deframer::new(), BytesMut::new());
            self.clients.push(Client {
                number,
                stream,
                deframer,
                unread,
                has_said_all: false,
                has_ended: false,
            });
        }
    }

    /// Reads once from each program, if nothing of them waits.
    fn read(&mut self) {
        for client in self.clients.iter_mut().filter(|client| !client.has_said_all) {
            let mut buffer = [0; READ_BYTES];
            let mut input = match client.stream.read(&mut buffer) {
                // It may still listen.
                Ok(0) => {
                    client.has_said_all = true;
                    continue;
                }
                Ok(length) => Bytes::copy_from_slice(&buffer[..length]),
                Err(error) if is_temporary(error.kind()) => continue,
                Err(_) => {
                    client.has_ended = true;
                    continue;
                }
            };
            while let Some(mut content) = client.deframer.next(&mut input) {
                let (token, bytes) = match Frame::decode(&mut content) {
                    Ok(Frame { port: 0, body: Command::Data(bytes) }) => (None, bytes),
                    Ok(Frame { port: 0, body: Command::DataAcknowledged { token, bytes } }) => {
                        (Some(token), bytes)
                    }
                    // The channel has its parameters from the profile.
                    Ok(Frame { body: Command::Data(_) | Command::DataAcknowledged { .. }, .. }) | Err(_) => {
                        self.refused += 1;
                        continue;
                    }
                    Ok(_) => continue,
                };
                if bytes.is_empty() || bytes.len() > self.frame_bytes_max {
                    self.refused += 1;
                    continue;
                }
                self.outgoing.push_back((client.number, token, bytes));
            }
        }
        self.clients.retain(|client| !client.has_ended);
    }

    fn acknowledge(&mut self, number: u64, token: u16) {
        let body = Command::DataAcknowledged { token, bytes: Bytes::new() };
        if let Some(client) = self.clients.iter_mut().find(|client| client.number == number) {
            client.write(&Frame { port: 0, body });
        }
    }
}

fn is_temporary(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl Client {
    fn write(&mut self, frame: &Frame) {
        enclose(frame, Checksum::None, &mut self.unread);
        self.flush();
        self.has_ended |= self.unread.len() > UNREAD_BYTES_MAX;
    }

    fn flush(&mut self) {
        while !self.unread.is_empty() {
            match self.stream.write(&self.unread) {
                Ok(length) => self.unread.advance(length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.has_ended |= error.kind() != ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }
}

impl Port for KissPort {
    fn wait_for<'a>(&'a self, has_room: bool, list: &mut Vec<PollFd<'a>>) {
        if self.clients.len() < CLIENTS_MAX {
            list.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        for client in &self.clients {
            let reads = if has_room && !client.has_said_all { PollFlags::IN } else { PollFlags::empty() };
            let writes = if client.unread.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            // The end of a connection would be reported again and again even to those who wait for nothing.
            if !(reads | writes).is_empty() {
                list.push(PollFd::new(&client.stream, reads | writes));
            }
        }
    }

    fn next(&mut self) -> Next {
        if self.outgoing.is_empty() {
            self.read();
        }
        let Some((client, token, bytes)) = self.outgoing.pop_front() else { return Next::Empty };
        let token = token.map(|token| {
            self.next_token += 1;
            self.to_acknowledge.insert(self.next_token, (client, token));
            self.next_token
        });
        Next::Packet(Outgoing { bytes, token })
    }

    fn holds_packets(&self) -> bool {
        !self.outgoing.is_empty()
    }

    fn deliver(&mut self, bytes: Bytes) {
        // A program that has connected before the frame arrived hears it.
        self.accept();
        let frame = Frame::data(0, bytes);
        self.clients.iter_mut().for_each(|client| client.write(&frame));
    }

    fn has_left(&mut self, token: u64) {
        if let Some((client, token)) = self.to_acknowledge.remove(&token) {
            self.acknowledge(client, token);
        }
    }

    fn maintain(&mut self) {
        self.accept();
        self.clients.iter_mut().for_each(Client::flush);
        self.clients.retain(|client| !client.has_ended);
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}
