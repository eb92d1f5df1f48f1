//! AX.25 stations of a simulated node, one on each of its channels.
//!
//! The station towards the destination connects, the one towards the source is called. A callsign is `N` and the
//! position of the node in three digits; only two stations are on each channel, except in a group.

use super::NodePosition;
use super::node::ONWARD_LINK;
use super::{INWARD, ONWARD};
use longwire_proto::ax25::{
    self, Callsign, IpInterfaceConfig, IpInterfaces, IpMode, LinkConfig, PeerStation, Station,
};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::observe::Observation;
use longwire_proto::service::{Both, Datagrams, Frames, InterfaceId, LinkId, Many, Packets, Port};
use longwire_proto::time::Instant;

/// Link towards the source, of every node but the first.
pub(super) const INWARD_LINK: LinkId = LinkId(0);

type Links = Both<Many<LinkId, Packets>, Many<LinkId, Datagrams>>;

pub(super) struct Stations {
    /// Stations towards the source and the destination, as far as they exist.
    stations: Vec<(InterfaceId, Station)>,
}

impl Stations {
    /// Creates the stations of a node, with this configuration of their links.
    pub(super) fn new(place: &NodePosition, link: &LinkConfig) -> Stations {
        let inward = (place.position > 0).then(|| (INWARD, place.position - 1));
        let onward = (!place.is_destination()).then_some((ONWARD, place.position));
        let station =
            |(interface, hop): (InterfaceId, usize)| (interface, station(place, link, interface, hop));
        let stations = inward.into_iter().chain(onward).map(station).collect();
        Stations { stations }
    }

    /// Creates the station of a node that sends UI frames to a group and receives them, on its channel towards the others.
    pub(super) fn in_group(place: &NodePosition, link: &LinkConfig) -> Stations {
        let (radio, transmission_max) = place.radios[0].clone().expect("a radio channel");
        let group = PeerStation { station: group(), path: Vec::new(), link: link.clone() };
        let mut config = ax25::Config::new(callsign(place.position));
        (config.radio, config.transmission_max) = (radio, transmission_max);
        config.unconnected.insert(ONWARD_LINK, group);
        Stations { stations: vec![(ONWARD, Station::new(config))] }
    }

    fn of_link(&mut self, link: LinkId) -> &mut Station {
        let interface = if link == ONWARD_LINK { ONWARD } else { INWARD };
        self.of_interface(interface)
    }

    fn of_interface(&mut self, interface: InterfaceId) -> &mut Station {
        let known = self.stations.iter_mut().find(|(known, _)| *known == interface);
        &mut known.expect("a node asks only for links that it has").1
    }
}

/// Callsign of the group of all stations.
fn group() -> Callsign {
    "ALL".parse().expect("a callsign")
}

fn callsign(position: usize) -> Callsign {
    format!("N{:03}", position % 1000).parse().expect("a callsign")
}

fn station(place: &NodePosition, link: &LinkConfig, interface: InterfaceId, hop: usize) -> Station {
    let onward = interface == ONWARD;
    let (radio, transmission_max) = place.radios[hop].clone().expect("a radio channel");
    let other = if onward { place.position + 1 } else { place.position - 1 };
    let peer = PeerStation { station: callsign(other), path: Vec::new(), link: link.clone() };
    let id = if onward { ONWARD_LINK } else { INWARD_LINK };
    let mut config = ax25::Config::new(callsign(place.position));
    (config.radio, config.transmission_max) = (radio, transmission_max);
    config.callers = (!onward).then(|| link.clone());
    config.unconnected.insert(id, peer.clone());
    if onward {
        config.peers.insert(id, peer);
    }
    Station::new(config)
}

/// Interfaces of an IP host over these stations, each towards the next node.
pub(super) fn internet(place: &NodePosition, carriage: IpMode) -> IpInterfaces {
    let inward = (place.position > 0).then(|| (INWARD, INWARD_LINK, place.position - 1));
    let onward = (!place.is_destination()).then(|| (ONWARD, ONWARD_LINK, place.position + 1));
    let to =
        |(interface, link, other)| IpInterfaceConfig { interface, link, peer: callsign(other), carriage };
    IpInterfaces::new(inward.into_iter().chain(onward).map(to))
}

impl Engine for Stations {
    type Above = Links;
    type Below = Many<InterfaceId, Frames>;

    fn handle_request(&mut self, now: Instant, request: Request<Links>) {
        let link = match &request {
            Port::First((link, _)) => *link,
            Port::Second((link, _)) => *link,
        };
        self.of_link(link).handle_request(now, request);
    }

    fn handle_indication(&mut self, now: Instant, (interface, said): Indication<Self::Below>) {
        self.of_interface(interface).handle_indication(now, said);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.stations.iter_mut().for_each(|(_, station)| station.handle_timeout(now));
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Links>> {
        self.stations.iter_mut().find_map(|(_, station)| station.poll_indication(now))
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        let ask = |(interface, station): &mut (InterfaceId, Station)| {
            Some((*interface, station.poll_request(now)?))
        };
        self.stations.iter_mut().find_map(ask)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.stations.iter().filter_map(|(_, station)| station.poll_timeout()).min()
    }

    fn observe(&self, view: &mut Observation) {
        self.stations.iter().for_each(|(interface, station)| view.with_id(interface, station));
    }
}
