//! Streams: users of several, and the provider of one whose peer sends what a protocol says, or nothing.

use super::{Script, ScriptedSide, Speech};
use crate::service::{CloseReason, LinkId, StreamIndication, StreamRequest};
use std::collections::BTreeMap;

const CLOSE_REASONS: [CloseReason; 6] = [
    CloseReason::Finished,
    CloseReason::Reset,
    CloseReason::Refused,
    CloseReason::TimedOut,
    CloseReason::Unreachable,
    CloseReason::Limit,
];

/// One connection, from the view of either side.
#[derive(Debug, Default, Clone, Copy)]
struct Connection {
    connecting: bool,
    connected: bool,
    room: u64,
    /// Bytes delivered and not released.
    unreleased: u64,
    /// The user has closed its sending direction.
    closing: bool,
    aborted: bool,
    /// The peer has closed its sending direction.
    peer_closed: bool,
}

/// Users of the streams of a host: one that they open themselves, and those that peers open.
#[derive(Debug)]
pub(super) struct StreamUsers {
    own: LinkId,
    connections: BTreeMap<LinkId, Connection>,
}

impl StreamUsers {
    pub(super) fn new(own: LinkId) -> Self {
        StreamUsers { own, connections: BTreeMap::from([(own, Connection::default())]) }
    }
}

impl ScriptedSide<(LinkId, StreamIndication), (LinkId, StreamRequest)> for StreamUsers {
    fn hear(&mut self, (link, indication): (LinkId, StreamIndication)) {
        let connection = self.connections.entry(link).or_default();
        match indication {
            StreamIndication::Connected => {
                connection.connecting = false;
                connection.connected = true;
            }
            StreamIndication::Room(room) => connection.room = room,
            StreamIndication::Data(data) => connection.unreleased += data.len() as u64,
            StreamIndication::Closed(_) if link == self.own => *connection = Connection::default(),
            StreamIndication::Closed(_) => drop(self.connections.remove(&link)),
            StreamIndication::PeerClosed | StreamIndication::Secured { .. } => {}
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<(LinkId, StreamRequest)> {
        let links: Vec<_> = self.connections.keys().copied().collect();
        let link = script.pick(&links)?;
        let connection = self.connections.get_mut(&link)?;
        let request = match script.below(8) {
            0 | 1 if !connection.connecting && !connection.connected && link == self.own => {
                connection.connecting = true;
                StreamRequest::Connect
            }
            0..=3 if connection.connected && !connection.closing && !connection.aborted => {
                let most = connection.room.min(1 << script.below(12));
                connection.room -= most;
                if most == 0 {
                    return None;
                }
                StreamRequest::Write(vec![0x5a; most as usize].into())
            }
            4 | 5 if connection.connected => {
                let bytes = connection.unreleased >> script.below(3);
                connection.unreleased -= bytes;
                StreamRequest::Release(bytes)
            }
            6 if connection.connected || connection.connecting => {
                connection.closing = true;
                StreamRequest::Close
            }
            7 if connection.connected || connection.connecting => {
                connection.aborted = true;
                StreamRequest::Abort
            }
            _ => return None,
        };
        Some((link, request))
    }
}

/// Maximum number of bytes delivered without being released.
const WINDOW: u64 = 4096;

/// Provider of one stream.
#[derive(Debug)]
pub(super) struct Provider {
    connection: Connection,
    /// The peer connects.
    incoming: bool,
    speech: Speech,
    spoken: Option<u8>,
}

impl Provider {
    /// Creates a provider with a peer that sends the data of `speech`; with `incoming` it is about to connect.
    pub(super) fn new(incoming: bool, speech: Speech) -> Self {
        let connection = Connection { connecting: incoming, ..Default::default() };
        Provider { connection, incoming, speech, spoken: None }
    }
}

impl ScriptedSide<StreamRequest, StreamIndication> for Provider {
    fn hear(&mut self, request: StreamRequest) {
        let connection = &mut self.connection;
        match request {
            StreamRequest::Connect => *connection = Connection { connecting: true, ..Default::default() },
            StreamRequest::Write(bytes) => connection.room -= bytes.len() as u64,
            StreamRequest::Release(bytes) => {
                connection.unreleased = connection.unreleased.saturating_sub(bytes);
            }
            StreamRequest::Close => connection.closing = true,
            StreamRequest::Abort => connection.aborted = true,
            StreamRequest::Secure { .. } => unreachable!("TLS is off"),
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<StreamIndication> {
        let connection = &mut self.connection;
        if connection.connecting {
            let connected = self.incoming || script.below(8) > 0;
            *connection = Connection { connected, connecting: false, ..*connection };
            self.incoming = false;
            self.spoken = None;
            return Some(if connected {
                StreamIndication::Connected
            } else {
                StreamIndication::Closed(script.pick(&CLOSE_REASONS)?)
            });
        }
        if !connection.connected {
            return None;
        }
        if connection.aborted {
            *connection = Connection::default();
            return Some(StreamIndication::Closed(CloseReason::Aborted));
        }
        match script.below(16) {
            0 => {
                *connection = Connection::default();
                Some(StreamIndication::Closed(script.pick(&CLOSE_REASONS)?))
            }
            1 if !connection.peer_closed => {
                connection.peer_closed = true;
                Some(StreamIndication::PeerClosed)
            }
            2..=4 => {
                connection.room = (1 << script.below(14)) - 1;
                Some(StreamIndication::Room(connection.room))
            }
            _ => {
                let data = (self.speech)(&mut self.spoken, script);
                let fits = connection.unreleased + data.len() as u64 <= WINDOW;
                if data.is_empty() || connection.peer_closed || !fits {
                    return None;
                }
                connection.unreleased += data.len() as u64;
                Some(StreamIndication::Data(data))
            }
        }
    }
}
