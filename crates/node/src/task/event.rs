//! Events of the engines' task: one queue for all of them, so that they keep their order.

use super::gateways::ProgramKey;
use crate::pumps::datagram::SocketReport;
use crate::pumps::discovery::HeardDatagram;
use crate::pumps::stream::ByteStream;
use crate::pumps::table::PumpReport;
use crate::storage::StoreDamage;
use crate::surfaces::client::ClientEvent;
use crate::surfaces::counter_changes::CounterChanges;
use crate::tower::radio::LineId;
use longwire_proto::service::{LinkId, StorageIndication};

/// Use of a pump by the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PumpKey {
    /// The connection of a link.
    Link(LinkId),
    /// The line of a TNC.
    Line(LineId),
    /// The connection of a program that uses a gateway.
    Program(ProgramKey),
}

pub(crate) enum TaskEvent {
    /// Indications of a thread of the store.
    Storage(Vec<StorageIndication>),
    /// Damage was found in the store and handled.
    Damage(StoreDamage),
    /// Event of the pump of a connection or of a line.
    Pump(PumpReport<PumpKey>),
    /// Event of the pump of a UDP socket.
    Datagrams(SocketReport),
    /// A datagram of a group in which nodes announce themselves.
    Announcement(HeardDatagram),
    /// A listening UDP socket.
    Listens {
        /// Socket.
        socket: tokio::net::UdpSocket,
        /// Its address.
        at: String,
        /// Name of its convergence layer.
        kind: &'static str,
        /// It has joined a multicast group.
        is_group: bool,
    },
    /// An incoming connection and its address.
    Caller(Box<dyn ByteStream>, String),
    /// A program has connected to the gateway with this index.
    Program(usize, Box<dyn ByteStream>, String),
    /// The gateway with this index listens for datagrams, at this address.
    ListensForPrograms(usize, tokio::net::UdpSocket, String),
    /// Event of an application.
    Client(ClientEvent),
    /// A counter of the HTTP interface or of the control socket has changed.
    Counted(CounterChanges),
    /// The wall clock may have jumped.
    Clock,
    /// The configuration must be reloaded.
    Reload,
    /// The node must stop; with `at_once` as if it had crashed.
    Stop { at_once: bool },
}
