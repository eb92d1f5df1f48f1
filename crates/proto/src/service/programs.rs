//! Connections of programs on this side that continue at the peer: the service of a gateway.

use super::{CloseReason, Precedence, TransportService};
use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Connections of local programs, over which a gateway carries bytes and datagrams to and from programs at the peer.
///
/// The user owns the sockets. A connection begins with `Arrive` when a program has connected here, or with `Open` when one has
/// connected at the peer, which needs `Listen`. It ends with `Closed` of the user, or with `Abort` of the provider; after these, neither side names it again.
///
/// No message needs room. Bytes for a program are bounded because they are acknowledged to the peer only once they are `Written`;
/// bytes of a program are bounded because the user reads no more than a limit before `Release`.
#[derive(Debug)]
pub enum Programs {}

impl Service for Programs {
    type Request = ProgramsRequest;
    type Indication = ProgramsIndication;
}

/// Number of a program's connection. The user chooses those that it lets arrive, the provider those that it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgramId(pub u64);

impl ProgramId {
    /// First number of the connections that the provider opens; numbers below it are the user's.
    pub const FIRST_OPENED: u64 = 1 << 63;

    /// Returns true if the provider opened the connection.
    pub const fn is_opened(self) -> bool {
        self.0 >= Self::FIRST_OPENED
    }
}

/// Shape of the data of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramKind {
    /// Bytes in order, as of TCP.
    Stream,
    /// Datagrams, as of UDP.
    Datagrams,
}

/// Requests of [`Programs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramsRequest {
    /// Connections of programs at the peer are answered from now on; without it they are refused.
    Listen,
    /// A program has connected.
    Arrive {
        /// New number.
        program: ProgramId,
        /// Shape of its data.
        kind: ProgramKind,
        /// Transport service to the peer.
        service: TransportService,
        /// Precedence of its data.
        precedence: Precedence,
        /// Port at the peer.
        to_port: u16,
    },
    /// The connection to a program is established: the answer to `Open`.
    Opened {
        /// Its number.
        program: ProgramId,
    },
    /// Bytes from the program; one datagram, if it sends datagrams.
    Data {
        /// Its number.
        program: ProgramId,
        /// Bytes.
        bytes: Bytes,
    },
    /// This many bytes of a stream were passed to the program.
    Written {
        /// Its number.
        program: ProgramId,
        /// Number of bytes.
        bytes: u64,
    },
    /// The program has ended its sending direction.
    Finish {
        /// Its number.
        program: ProgramId,
    },
    /// The connection to the program is over, or could not be established. Terminal.
    Closed {
        /// Its number.
        program: ProgramId,
        /// Reason; `Finished` if both sides ended it in good order.
        reason: CloseReason,
    },
}

/// Indications of [`Programs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramsIndication {
    /// A program has connected at the peer, and wants the one that answers at this port. Answered by `Opened` or `Closed`.
    Open {
        /// New number.
        program: ProgramId,
        /// Shape of its data.
        kind: ProgramKind,
        /// Port.
        port: u16,
    },
    /// Bytes for the program; one datagram, if it receives datagrams.
    Data {
        /// Its number.
        program: ProgramId,
        /// Bytes.
        bytes: Bytes,
        /// True if a datagram contains bit errors.
        damaged: bool,
    },
    /// The peer's program has taken this many bytes of a stream, or they are lost; of datagrams, they were sent or dropped. As many
    /// more may be read.
    Release {
        /// Its number.
        program: ProgramId,
        /// Number of bytes.
        bytes: u64,
    },
    /// The peer's program has ended its sending direction: after all earlier bytes, so does this side.
    Finish {
        /// Its number.
        program: ProgramId,
    },
    /// The connection is over, with a reset: the peer's program or the way to it has failed. Terminal.
    Abort {
        /// Its number.
        program: ProgramId,
    },
}

impl ProgramsIndication {
    /// Returns the number of the connection.
    pub fn program(&self) -> ProgramId {
        match self {
            ProgramsIndication::Open { program, .. }
            | ProgramsIndication::Data { program, .. }
            | ProgramsIndication::Release { program, .. }
            | ProgramsIndication::Finish { program }
            | ProgramsIndication::Abort { program } => *program,
        }
    }
}
