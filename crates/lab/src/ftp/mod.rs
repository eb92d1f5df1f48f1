//! A file by FTP (RFC 959): the dialogue on port 21 and a connection for the data, as engines over streams.
//!
//! Here are the commands that a client of old sends to store one file, and what a server answers; the sizes of both are
//! those of programs in use. There are no directories, no permissions and no restarts: any name and any password will do.
//!
//! ```text
//!   220  USER 331  PASS 230  SYST 215  TYPE 200 | PORT 200  STOR  (data connection)  150  data ..  226 | QUIT 221
//!                                                 PASV 227  STOR
//! ```
//!
//! Limits: a line has 512 bytes, a server stores one file a connection.

mod client;
mod server;
mod session;

pub use client::FtpClient;
pub use server::FtpServer;
pub use session::{FtpSession, SessionTimes};

use bytes::{Bytes, BytesMut};
use longwire_proto::engine::Service;
use longwire_proto::service::{LinkId, StreamRequest};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// The link of the dialogue, on the client's side.
pub const CONTROL: LinkId = LinkId(0);
/// The link of the data connection, on the side that opens it.
pub const DATA: LinkId = LinkId(1);
/// The port of the dialogue (RFC 959 5.2).
pub const CONTROL_PORT: u16 = 21;
/// The port on which the other side opens the data connection.
pub const DATA_PORT: u16 = 50_000;
/// A line is no longer than this, bytes.
const LINE_BYTES_MAX: usize = 512;

/// Which side opens the data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataConnectionMode {
    /// The server does (PORT), as clients of old ask for.
    Active,
    /// The client does (PASV).
    Passive,
}

/// What a user and FTP say to each other.
#[derive(Debug)]
pub enum Files {}

impl Service for Files {
    type Request = FilesRequest;
    type Indication = FilesIndication;
}

/// Down through [`Files`], to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesRequest {
    /// Calls the server, stores this file there, and leaves.
    Store(Bytes),
}

/// Up through [`Files`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesIndication {
    /// The client is past this point.
    Reached(Milestone),
    /// The server has a file, whole.
    Stored(Bytes),
    /// It ended too early, for this reason.
    Failed(String),
}

/// Points of a session, as the client sees them, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Milestone {
    /// The dialogue's connection stands.
    Connected,
    /// The password was good and the type is set: all that comes before a file.
    LoggedIn,
    /// The server waits for the data (150).
    Opened,
    /// The server has the file (226).
    Stored,
    /// The dialogue's connection is over.
    Left,
}

/// One side of a connection: what waits to be written, and a line that is not yet whole.
#[derive(Debug, Default)]
struct ControlLine {
    link: Option<LinkId>,
    room: u64,
    waiting: BytesMut,
    /// Nothing more is written: it is closed when what waits is handed over.
    ends: bool,
    /// The other side heard, or hears next, that it is closed.
    closed: bool,
    line: Vec<u8>,
}

impl ControlLine {
    fn on(link: LinkId) -> Self {
        ControlLine { link: Some(link), ..ControlLine::default() }
    }

    fn is(&self, link: LinkId) -> bool {
        self.link == Some(link)
    }

    /// Nothing, once it ends: a connection that is being closed takes no more.
    fn write(&mut self, bytes: &[u8]) {
        if !self.ends {
            self.waiting.extend_from_slice(bytes);
        }
    }

    /// The connection is over, whoever ended it.
    fn lose(&mut self) {
        self.waiting.clear();
        (self.ends, self.closed) = (true, true);
    }

    /// What there is room for, and the end when nothing is left.
    fn flush(&mut self, down: &mut VecDeque<(LinkId, StreamRequest)>) {
        let Some(link) = self.link else { return };
        let bytes = self.waiting.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        if bytes > 0 {
            self.room -= bytes as u64;
            down.push_back((link, StreamRequest::Write(self.waiting.split_to(bytes).freeze())));
        }
        if self.ends && self.waiting.is_empty() && !core::mem::replace(&mut self.closed, true) {
            down.push_back((link, StreamRequest::Close));
        }
    }

    /// The lines that these bytes complete; none if one of them is too long.
    fn lines(&mut self, bytes: &[u8]) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' => {
                    let line = String::from_utf8_lossy(&core::mem::take(&mut self.line)).into_owned();
                    lines.push(line.trim_end_matches('\r').to_owned());
                }
                _ if self.line.len() >= LINE_BYTES_MAX => return None,
                byte => self.line.push(*byte),
            }
        }
        Some(lines)
    }
}

/// An address and a port as PORT and PASV have them (RFC 959 4.1.2).
fn place(address: Ipv4Addr, port: u16) -> String {
    let [a, b, c, d] = address.octets();
    let [high, low] = port.to_be_bytes();
    format!("{a},{b},{c},{d},{high},{low}")
}
