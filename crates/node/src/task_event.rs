//! Events of the engines' task.

use crate::client::ClientEnd;
use crate::counter_changes::CounterChanges;
use crate::message::{Message, Request};
use crate::pumps::datagram;
use crate::pumps::stream::{ByteStream, PumpEvent};
use crate::radio::LineId;
use crate::storage::StoreDamage;
use longwire_proto::service::{LinkId, StorageIndication};

/// Unique ID of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// ID of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

pub(crate) enum TaskEvent {
    /// Indications of a thread of the store.
    Storage(Vec<StorageIndication>),
    /// Damage was found in the store and handled.
    Damage(StoreDamage),
    /// Event of a connection's pump.
    Stream(ConnectionId, PumpEvent),
    /// Event of a UDP socket of the link, with the number of the socket.
    Datagrams(LinkId, u64, datagram::SocketEvent),
    /// Event of the line to a TNC, with the number of the connection.
    Line(LineId, u64, PumpEvent),
    /// A listening UDP socket and its address.
    Listens(tokio::net::UdpSocket, String),
    /// An incoming connection and its address.
    Caller(Box<dyn ByteStream>, String),
    /// An application connects.
    Client(ClientId, ClientEnd),
    /// An application sends a request.
    Request(ClientId, Message<Request>),
    /// An application disconnects.
    ClientGone(ClientId),
    /// A counter of the HTTP interface or of the control socket has changed.
    Counted(CounterChanges),
    /// The wall clock may have jumped.
    Clock,
    /// The configuration must be reloaded.
    Reload,
    /// The node must stop; with `at_once` as if it had crashed.
    Stop { at_once: bool },
}

impl std::fmt::Debug for TaskEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TaskEvent::Storage(said) => f.debug_tuple("Storage").field(said).finish(),
            TaskEvent::Damage(damage) => f.debug_tuple("Damage").field(damage).finish(),
            TaskEvent::Stream(id, said) => f.debug_tuple("Stream").field(id).field(said).finish(),
            TaskEvent::Datagrams(link, _, said) => {
                f.debug_tuple("Datagrams").field(link).field(said).finish()
            }
            TaskEvent::Line(tnc, _, said) => f.debug_tuple("Line").field(tnc).field(said).finish(),
            TaskEvent::Listens(_, at) => f.debug_tuple("Listens").field(at).finish(),
            TaskEvent::Caller(_, from) => f.debug_tuple("Caller").field(from).finish(),
            TaskEvent::Client(id, _) => f.debug_tuple("Client").field(id).finish(),
            TaskEvent::Request(id, message) => {
                f.debug_tuple("Request").field(id).field(&message.head).finish()
            }
            TaskEvent::ClientGone(id) => f.debug_tuple("ClientGone").field(id).finish(),
            TaskEvent::Counted(_) => f.write_str("Counted"),
            TaskEvent::Clock => f.write_str("Clock"),
            TaskEvent::Reload => f.write_str("Reload"),
            TaskEvent::Stop { at_once } => f.debug_struct("Stop").field("at_once", at_once).finish(),
        }
    }
}
