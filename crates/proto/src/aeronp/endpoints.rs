//! Endpoints: the users of datagrams.

use super::config::EndpointConfig;
use super::held::Report;
use crate::packet_router::NodeAddress;
use crate::peers::Senders;
use crate::service::{DatagramsIndication, LinkId, PeerId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of senders that an endpoint distinguishes.
const SENDERS_MAX: usize = 256;

/// Endpoint of a user.
#[derive(Debug)]
struct Endpoint {
    config: EndpointConfig,
    joined: bool,
    /// True if the user accepts damaged datagrams.
    damaged: bool,
    /// Number of times that it was joined.
    generation: u64,
    senders: Senders<NodeAddress>,
    /// Packets of the user that have not left.
    waiting: usize,
    told_room: u64,
    unreleased_bytes: u64,
    up: VecDeque<DatagramsIndication>,
}

/// Fate of a packet for this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The user has it.
    Done,
    /// There is no such user, or it does not want a damaged payload that was damaged before the last hop.
    Unwanted,
    /// The user has no room now.
    Later,
}

/// Datagram of a user with what a packet of it needs.
#[derive(Debug)]
pub(super) struct UserDatagram {
    pub(super) destination: NodeAddress,
    pub(super) config: EndpointConfig,
    pub(super) tolerant: bool,
    pub(super) report: Report,
}

/// All endpoints of a node.
#[derive(Debug)]
pub(super) struct Endpoints {
    all: BTreeMap<LinkId, Endpoint>,
    payload_bytes_max: u64,
}

impl Endpoints {
    pub(super) fn new(configs: &[EndpointConfig], payload_bytes_max: u64) -> Self {
        let endpoint = |config: &EndpointConfig| Endpoint {
            config: config.clone(),
            joined: false,
            damaged: false,
            generation: 0,
            senders: Senders::new(SENDERS_MAX),
            waiting: 0,
            told_room: 0,
            unreleased_bytes: 0,
            up: VecDeque::new(),
        };
        let all = configs.iter().map(|config| (config.link, endpoint(config))).collect();
        Endpoints { all, payload_bytes_max }
    }

    fn endpoint(&mut self, link: LinkId) -> &mut Endpoint {
        self.all.get_mut(&link).unwrap_or_else(|| panic!("{link:?} is no endpoint of this node"))
    }

    pub(super) fn join(&mut self, link: LinkId, damaged: bool) {
        let bytes_max = self.payload_bytes_max;
        let endpoint = self.endpoint(link);
        (endpoint.joined, endpoint.damaged, endpoint.told_room) = (true, damaged, 0);
        let peer = endpoint.config.peer.map(|_| PeerId::CONFIGURED);
        endpoint.up.push_back(DatagramsIndication::Joined { bytes_max, peer, group: None });
    }

    pub(super) fn leave(&mut self, link: LinkId) {
        let endpoint = self.endpoint(link);
        endpoint.joined = false;
        endpoint.generation += 1;
        endpoint.senders = Senders::new(SENDERS_MAX);
        (endpoint.waiting, endpoint.unreleased_bytes) = (0, 0);
        endpoint.up.clear();
    }

    pub(super) fn release(&mut self, link: LinkId, bytes: u64) {
        let endpoint = self.endpoint(link);
        endpoint.unreleased_bytes = endpoint.unreleased_bytes.saturating_sub(bytes);
    }

    /// Accepts a datagram of a user; `None` if its receiver is forgotten.
    ///
    /// # Panics
    /// Panics if there was no room for it.
    pub(super) fn send(&mut self, link: LinkId, to: PeerId, token: Option<u64>) -> Option<UserDatagram> {
        let endpoint = self.endpoint(link);
        endpoint.told_room = endpoint.told_room.checked_sub(1).expect("a datagram needs room");
        let destination = match to {
            PeerId::CONFIGURED => endpoint.config.peer,
            other => endpoint.senders.address(other).copied(),
        };
        let Some(destination) = destination else {
            endpoint.up.extend(token.map(DatagramsIndication::Transmitted));
            return None;
        };
        endpoint.waiting += 1;
        let report = Report { link, generation: endpoint.generation, token };
        let (config, tolerant) = (endpoint.config.clone(), endpoint.damaged);
        Some(UserDatagram { destination, config, tolerant, report })
    }

    /// A packet of a user has left, or was dropped: it no longer takes room.
    pub(super) fn no_longer_waits(&mut self, report: Report) {
        if let Some(endpoint) = self.current(report) {
            endpoint.waiting = endpoint.waiting.saturating_sub(1);
        }
    }

    /// Reports to a user that its packet has left, or was dropped.
    pub(super) fn transmitted(&mut self, report: Report) {
        let token = report.token;
        if let Some(endpoint) = self.current(report) {
            endpoint.up.extend(token.map(DatagramsIndication::Transmitted));
        }
    }

    fn current(&mut self, report: Report) -> Option<&mut Endpoint> {
        let endpoint = self.all.get_mut(&report.link)?;
        (endpoint.joined && endpoint.generation == report.generation).then_some(endpoint)
    }

    /// Delivers a packet to the endpoint with its protocol that is configured for its source, or to one for any source.
    pub(super) fn deliver(
        &mut self,
        source: NodeAddress,
        protocol: u8,
        payload: &Bytes,
        damaged: bool,
    ) -> Delivery {
        let of_protocol = |peer: Option<NodeAddress>| {
            let mut all = self.all.iter();
            let found = all.find(|(_, endpoint)| {
                endpoint.joined && endpoint.config.protocol == protocol && endpoint.config.peer == peer
            });
            found.map(|(link, _)| *link)
        };
        let Some(link) = of_protocol(Some(source)).or_else(|| of_protocol(None)) else {
            return Delivery::Unwanted;
        };
        let endpoint = self.endpoint(link);
        if damaged && !endpoint.damaged {
            return Delivery::Unwanted;
        }
        let bytes = payload.len() as u64;
        // One datagram always fits, however long it is.
        if endpoint.unreleased_bytes > 0
            && endpoint.unreleased_bytes + bytes > endpoint.config.incoming_bytes_max
        {
            return Delivery::Later;
        }
        endpoint.unreleased_bytes += bytes;
        let from = match endpoint.config.peer {
            Some(_) => PeerId::CONFIGURED,
            None => endpoint.senders.hear(&source),
        };
        let bytes = payload.clone();
        endpoint.up.push_back(DatagramsIndication::Datagram { from, to_group: false, bytes, damaged });
        Delivery::Done
    }

    /// Returns the next indication to a user. `free_packets` is the number of packets for which the node has space.
    pub(super) fn poll(&mut self, free_packets: u64) -> Option<(LinkId, DatagramsIndication)> {
        for (link, endpoint) in &mut self.all {
            if let Some(said) = endpoint.up.pop_front() {
                return Some((*link, said));
            }
            let room = endpoint.config.packets_max.saturating_sub(endpoint.waiting) as u64;
            let room = room.min(free_packets);
            if endpoint.joined && endpoint.told_room != room {
                endpoint.told_room = room;
                return Some((*link, DatagramsIndication::Room(room)));
            }
        }
        None
    }
}
