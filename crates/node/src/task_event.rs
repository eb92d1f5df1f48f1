//! What the engines' task hears.

use crate::client::ClientEnd;
use crate::counter_changes::CounterChanges;
use crate::datagram;
use crate::message::{Message, Request};
use crate::radio::LineId;
use crate::storage::StoreDamage;
use crate::stream::{ByteStream, PumpEvent};
use longwire_proto::service::{LinkId, StorageIndication};

/// A connection, never the same twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// An application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

pub(crate) enum TaskEvent {
    /// A thread of the store.
    Storage(Vec<StorageIndication>),
    /// Something in the store is damaged; it was set aside.
    Damage(StoreDamage),
    /// A pump.
    Stream(ConnectionId, PumpEvent),
    /// A socket for datagrams, and which of the link's.
    Datagrams(LinkId, u64, datagram::SocketEvent),
    /// The line of a TNC, and which of its lines.
    Line(LineId, u64, PumpEvent),
    /// A socket on which others may send datagrams, and where it is.
    Listens(tokio::net::UdpSocket, String),
    /// A peer calls.
    Caller(Box<dyn ByteStream>, String),
    /// An application comes.
    Client(ClientId, ClientEnd),
    /// It wants something.
    Request(ClientId, Message<Request>),
    /// It goes.
    ClientGone(ClientId),
    /// A counter of the HTTP interface or of the control socket.
    Counted(CounterChanges),
    /// The wall clock may have jumped.
    Clock,
    /// The configuration is to be read again.
    Reload,
    /// The node is to end; at once: as if it had crashed.
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
