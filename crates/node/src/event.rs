//! What the engines' task hears.

use crate::client::ClientEnd;
use crate::counter_news::CounterNews;
use crate::datagram;
use crate::message::{Message, Request};
use crate::radio::LineId;
use crate::storage::Damage;
use crate::stream::{Said, Wire};
use longwire_proto::service::{LinkId, StorageIndication};

/// A connection, never the same twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// An application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

pub(crate) enum Event {
    /// A thread of the store.
    Storage(Vec<StorageIndication>),
    /// Something in the store is damaged; it was set aside.
    Damage(Damage),
    /// A pump.
    Stream(ConnectionId, Said),
    /// A socket for datagrams, and which of the link's.
    Datagrams(LinkId, u64, datagram::Said),
    /// The line of a TNC, and which of its lines.
    Line(LineId, u64, Said),
    /// A socket on which others may send datagrams, and where it is.
    Listens(tokio::net::UdpSocket, String),
    /// A peer calls.
    Caller(Box<dyn Wire>, String),
    /// An application comes.
    Client(ClientId, ClientEnd),
    /// It wants something.
    Request(ClientId, Message<Request>),
    /// It goes.
    ClientGone(ClientId),
    /// A counter of the HTTP interface or of the control socket.
    Counted(CounterNews),
    /// The wall clock may have jumped.
    Clock,
    /// The configuration is to be read again.
    Reload,
    /// The node is to end; at once: as if it had crashed.
    Stop { at_once: bool },
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::Storage(said) => f.debug_tuple("Storage").field(said).finish(),
            Event::Damage(damage) => f.debug_tuple("Damage").field(damage).finish(),
            Event::Stream(id, said) => f.debug_tuple("Stream").field(id).field(said).finish(),
            Event::Datagrams(link, _, said) => f.debug_tuple("Datagrams").field(link).field(said).finish(),
            Event::Line(tnc, _, said) => f.debug_tuple("Line").field(tnc).field(said).finish(),
            Event::Listens(_, at) => f.debug_tuple("Listens").field(at).finish(),
            Event::Caller(_, from) => f.debug_tuple("Caller").field(from).finish(),
            Event::Client(id, _) => f.debug_tuple("Client").field(id).finish(),
            Event::Request(id, message) => f.debug_tuple("Request").field(id).field(&message.head).finish(),
            Event::ClientGone(id) => f.debug_tuple("ClientGone").field(id).finish(),
            Event::Counted(_) => f.write_str("Counted"),
            Event::Clock => f.write_str("Clock"),
            Event::Reload => f.write_str("Reload"),
            Event::Stop { at_once } => f.debug_struct("Stop").field("at_once", at_once).finish(),
        }
    }
}
