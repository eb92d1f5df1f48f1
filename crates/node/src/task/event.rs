//! Events of the engines' task: one queue for all of them, so that they keep their order.

use crate::pumps::datagram::SocketReport;
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
    /// A listening UDP socket, its address, and the name of its convergence layer.
    Listens(tokio::net::UdpSocket, String, &'static str),
    /// An incoming connection and its address.
    Caller(Box<dyn ByteStream>, String),
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
