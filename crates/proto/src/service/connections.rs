//! Connections to one peer, each in one direction, with a transport service of its own.

use super::{CloseReason, DownReason, RefuseReason};
use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Flows of data to and from a peer: the service of a transport protocol such as AeroTP.
///
/// A connection has one direction. Two of them with exchanged ports are the two directions of a gateway's TCP connection. An outgoing
/// connection is `Open`, then `Data` against its `Room`, the last one marked; then exactly one of `Sent` and `Failed`. After `Cancel`,
/// `Failed` still follows. An incoming connection is `Begin`, then `Data` and `Gap`, the last `Data` marked, or `Lost`; the user
/// answers `Accept` for the bytes that are stored or passed on, or `Refuse`. Each connection has room of its own, so that one whose
/// receiver is slow does not hold back the others; which of them sends next follows from their precedence when a packet is made.
///
/// Services that acknowledge ([`TransportService::acknowledges`]) acknowledge only what the user has accepted. In the others `Accept`
/// only makes room.
///
/// | side | what breaks the contract; .. stands for a value |
/// |---|---|
/// | user | connection .. is used twice |
/// | user | connection .. was never opened |
/// | user | connection .. has ended |
/// | user | data after the last |
/// | user | data after Cancel |
/// | user | data without a byte |
/// | user | a message of .. bytes, above the maximum of .. |
/// | user | it spends .. of a room of .. |
/// | user | incoming connection .. never began |
/// | user | accepts .. bytes, but .. have risen |
/// | user | accepts .. bytes after .. |
/// | provider | Up twice |
/// | provider | Down without a terminal indication for .. |
/// | provider | Down without Lost for .. |
/// | provider | connection .. was never opened |
/// | provider | connection .. has ended |
/// | provider | an acknowledgement in a service without them |
/// | provider | .. bytes acknowledged of .. sent |
/// | provider | .. bytes acknowledged after .. |
/// | provider | Sent before the last data |
/// | provider | Begin while the endpoint is not up |
/// | provider | incoming connection .. begins twice |
/// | provider | data of incoming connection .., which is not open |
/// | provider | data without a byte |
/// | provider | damaged data in a service that acknowledges |
/// | provider | a gap in a service that acknowledges |
#[derive(Debug)]
pub enum Connections {}

impl Service for Connections {
    type Request = ConnectionsRequest;
    type Indication = ConnectionsIndication;
}

/// Service of a connection: the kind of error control. Names are those of the AeroTP papers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportService {
    /// Acknowledgements and retransmission of single segments; the acknowledgement means that the data were passed on to their
    /// destination.
    Reliable,
    /// The same procedures; the acknowledgement means that the receiving gateway has taken custody of the data.
    NearReliable,
    /// Correction of bit errors, and retransmission of segments that could not be corrected. Segments of which nothing arrived are
    /// missing.
    Nack,
    /// Correction of bit errors, negative acknowledgements for segments that could not be corrected, and acknowledgements.
    NackMack,
    /// Correction of bit errors, without answers from the receiver.
    QuasiReliable,
    /// Neither correction nor retransmission, in the order of sending.
    UnreliableConnection,
    /// Single messages, neither corrected nor repeated, in the order of arrival.
    UnreliableDatagram,
    /// Everything arrives; the strength of the code, the length of segments and the amount of parity follow from the measured
    /// bit-error rate.
    #[default]
    Adaptive,
}

impl TransportService {
    /// All services.
    pub const ALL: [TransportService; 8] = [
        TransportService::Reliable,
        TransportService::NearReliable,
        TransportService::Nack,
        TransportService::NackMack,
        TransportService::QuasiReliable,
        TransportService::UnreliableConnection,
        TransportService::UnreliableDatagram,
        TransportService::Adaptive,
    ];

    /// Returns true if the receiver acknowledges the data, so that all of them arrive or the connection fails.
    pub const fn acknowledges(self) -> bool {
        use TransportService::{Adaptive, NackMack, NearReliable, Reliable};
        matches!(self, Reliable | NearReliable | NackMack | Adaptive)
    }

    /// Returns true if the receiver asks for segments that could not be corrected.
    pub const fn has_nacks(self) -> bool {
        matches!(self, TransportService::Nack | TransportService::NackMack)
    }

    /// Returns true if each `Data` is a message, which arrives as one `Data` or not at all.
    pub const fn keeps_messages(self) -> bool {
        matches!(self, TransportService::UnreliableDatagram)
    }
}

/// Precedence of a connection by its type of data; higher ones are sent first. Names are those of RFC 791.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precedence {
    /// Data that can wait, such as files.
    #[default]
    Routine,
    /// Telemetry that is used while it arrives.
    Priority,
    /// Voice and video.
    Immediate,
    /// Commands and control.
    Flash,
}

impl Precedence {
    /// All levels, the lowest first.
    pub const ALL: [Precedence; 4] =
        [Precedence::Routine, Precedence::Priority, Precedence::Immediate, Precedence::Flash];
}

/// Properties of a connection, which its receiver learns with the first segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ConnectionProperties {
    /// Kind of error control.
    pub service: TransportService,
    /// Precedence.
    pub precedence: Precedence,
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
}

/// Requests of [`Connections`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionsRequest {
    /// Opens the endpoint. `Up` follows, or `Down`.
    Connect,
    /// Opens a connection to the peer. Ends in exactly one of `Sent` and `Failed`; fails at once with `NoResources` if too many are
    /// open, and with `InUse` if one with the same ports is.
    Open {
        /// The user's number for the connection, never used twice.
        connection: u64,
        /// Properties.
        properties: ConnectionProperties,
    },
    /// The next bytes of an open connection. Needs room for all of them. In a service that keeps messages it is one message, of at
    /// most the length that `Up` stated. May be empty if it is the last one.
    Data {
        /// The user's number.
        connection: u64,
        /// Bytes.
        data: Bytes,
        /// True at the end of the connection.
        last: bool,
    },
    /// Withdraws an outgoing connection: `Failed` follows, unless it has ended meanwhile. No data may follow.
    Cancel {
        /// The user's number.
        connection: u64,
    },
    /// The first `up_to` bytes of an incoming connection, those of gaps not counted, are stored or passed on. Without effect once it
    /// was refused or lost.
    Accept {
        /// The provider's number.
        incoming: u64,
        /// Number of bytes from the beginning.
        up_to: u64,
    },
    /// Refuses an incoming connection, of which no more is indicated. Without effect once it was lost.
    Refuse {
        /// The provider's number.
        incoming: u64,
        /// Reason.
        reason: RefuseReason,
    },
    /// Closes the endpoint: outgoing connections fail, incoming ones are lost, and `Down` follows.
    Close,
}

/// Indications of [`Connections`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionsIndication {
    /// The endpoint is open.
    Up {
        /// Maximum length of a message in the services that keep messages, bytes; zero if there is no peer to send to.
        message_bytes_max: u64,
    },
    /// The endpoint is closed. Every outgoing connection has had its last indication before, and every incoming one that was not
    /// complete is lost.
    Down {
        /// Reason.
        reason: DownReason,
        /// True if the provider opens it again by itself.
        retry: bool,
    },
    /// Bytes of an outgoing connection that may be passed down. Absolute: it replaces the previous value.
    Room {
        /// The user's number.
        connection: u64,
        /// Bytes.
        bytes: u64,
    },
    /// The receiver's user has accepted the first bytes. Only in services that acknowledge; not due for the last ones, which `Sent`
    /// confirms.
    Acknowledged {
        /// The user's number.
        connection: u64,
        /// Number of bytes from the beginning.
        up_to: u64,
    },
    /// All of it is acknowledged; in a service that does not acknowledge, all of it was sent, and the time for retransmissions has
    /// passed. Terminal.
    Sent {
        /// The user's number.
        connection: u64,
    },
    /// The connection has failed. Terminal.
    Failed {
        /// The user's number.
        connection: u64,
        /// Reason.
        reason: ConnectionFailure,
    },
    /// A connection begins to arrive.
    Begin {
        /// The provider's number.
        incoming: u64,
        /// Properties.
        properties: ConnectionProperties,
    },
    /// The next bytes of a connection; a message in a service that keeps them.
    Data {
        /// The provider's number.
        incoming: u64,
        /// Bytes; empty at most at the end.
        data: Bytes,
        /// True if they contain bit errors, and the configuration asks for them all the same. Only in services that do not
        /// acknowledge.
        damaged: bool,
        /// True at the end of the connection.
        last: bool,
    },
    /// Bytes are missing for ever before the next ones. Only in services that do not acknowledge.
    Gap {
        /// The provider's number.
        incoming: u64,
        /// Number of bytes; `None` if it is unknown, because nothing of them arrived.
        bytes: Option<u64>,
    },
    /// No more of the connection follows, and its end has not arrived.
    Lost {
        /// The provider's number.
        incoming: u64,
    },
}

/// Reason for the failure of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConnectionFailure {
    /// The endpoint is closed, or has no peer.
    NotUp,
    /// The endpoint was closed.
    Down(CloseReason),
    /// The receiver was silent for too long.
    Silent,
    /// The user withdrew it.
    Cancelled,
    /// The receiver, or its user, refused it.
    Refused(RefuseReason),
    /// The receiver does not know the connection any more: it has restarted.
    Unknown,
    /// Too many connections are open.
    NoResources,
    /// A connection with the same ports is open, or the peer still remembers it.
    InUse,
}
