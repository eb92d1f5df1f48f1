//! FTP transfer of a file (RFC 959): the control connection on port 21 and a data connection, as engines over streams.
//!
//! Implements the commands that an old client sends to store one file, and the replies of a server; both have the
//! lengths of common programs. There are no directories, permissions or restarts; any user name and password are accepted.
//!
//! ```text
//!   220  USER 331  PASS 230  SYST 215  TYPE 200 | PORT 200  STOR  (data connection)  150  data ..  226 | QUIT 221
//!                                                 PASV 227  STOR
//! ```
//!
//! Limits: lines of 512 bytes, one file per connection.

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

/// Control connection, on the side of the client.
pub const CONTROL: LinkId = LinkId(0);
/// Data connection, on the side that opens it.
pub const DATA: LinkId = LinkId(1);
/// Port of the control connection (RFC 959 5.2).
pub const CONTROL_PORT: u16 = 21;
/// Port on which the other side opens the data connection.
pub const DATA_PORT: u16 = 50_000;
/// Maximum length of a line, bytes.
const LINE_BYTES_MAX: usize = 512;

/// Side that opens the data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataConnectionMode {
    /// The server opens it (PORT), as old clients request.
    Active,
    /// The client opens it (PASV).
    Passive,
}

/// Service between a user and FTP.
#[derive(Debug)]
pub enum Files {}

impl Service for Files {
    type Request = FilesRequest;
    type Indication = FilesIndication;
}

/// Requests of [`Files`] to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesRequest {
    /// Connects to the server, stores this file there, and disconnects.
    Store(Bytes),
}

/// Indications of [`Files`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesIndication {
    /// The client has passed this milestone.
    Reached(Milestone),
    /// The server has received a complete file.
    Stored(Bytes),
    /// The session ended early for this reason.
    Failed(String),
}

/// Milestones of a session as seen by the client, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Milestone {
    /// The control connection is established.
    Connected,
    /// Log-in and type are complete: everything that precedes a file.
    LoggedIn,
    /// The server waits for the data (150).
    Opened,
    /// The server has the file (226).
    Stored,
    /// The control connection is closed.
    Left,
}

/// One side of a connection: data waiting to be written, and an incomplete line.
#[derive(Debug, Default)]
struct ControlLine {
    link: Option<LinkId>,
    room: u64,
    waiting: BytesMut,
    /// True if nothing more is written: the connection is closed when the waiting data have been passed down.
    ends: bool,
    /// True if the other side has received or will next receive the end of the connection.
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

    /// Writes nothing after the end: a connection that is being closed accepts no data.
    fn write(&mut self, bytes: &[u8]) {
        if !self.ends {
            self.waiting.extend_from_slice(bytes);
        }
    }

    /// Records the end of the connection by either side.
    fn lose(&mut self) {
        self.waiting.clear();
        (self.ends, self.closed) = (true, true);
    }

    /// Passes down as much as there is room for, and the end when nothing is left.
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

    /// Returns the lines completed by these bytes; `None` if one of them is too long.
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

/// Formats an address and a port for PORT and PASV (RFC 959 4.1.2).
fn place(address: Ipv4Addr, port: u16) -> String {
    let [a, b, c, d] = address.octets();
    let [high, low] = port.to_be_bytes();
    format!("{a},{b},{c},{d},{high},{low}")
}
