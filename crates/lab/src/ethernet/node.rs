//! Nodes of a simulation whose hosts share one Ethernet station.

use super::EthernetStation;
use longwire_proto::engine::{Engine, Indication, Request, Service};
use longwire_proto::joint::earlier;
use longwire_proto::observe::Observation;
use longwire_proto::service::{InterfaceId, Port, StorageRequest};
use longwire_proto::time::Instant;
use longwire_sim::{NodeBelow, NodeEngine};
use std::collections::VecDeque;

/// Node with several hosts over one station: the first one has the user and the disk, and each of the others has the
/// interfaces from its own number on.
pub struct OnEthernet<A: Service> {
    /// Interface of the station in the simulation.
    at: InterfaceId,
    hosts: Vec<(InterfaceId, NodeEngine<A>)>,
    station: EthernetStation,
    storage: VecDeque<StorageRequest>,
}

impl<A: Service> OnEthernet<A> {
    /// Creates a node with one host, whose station has this interface in the simulation.
    pub fn new(at: InterfaceId, host: NodeEngine<A>, station: EthernetStation) -> OnEthernet<A> {
        OnEthernet { at, hosts: vec![(InterfaceId(0), host)], station, storage: VecDeque::new() }
    }

    /// Adds a host without a user and a disk, with the interfaces from this number on. Numbers are ascending.
    #[must_use]
    pub fn and(mut self, from: InterfaceId, host: NodeEngine<A>) -> OnEthernet<A> {
        self.hosts.push((from, host));
        self
    }

    /// Passes everything between hosts and station.
    fn settle(&mut self, now: Instant) {
        loop {
            let mut quiet = true;
            for (_, host) in &mut self.hosts {
                while let Some(request) = host.poll_request(now) {
                    quiet = false;
                    match request {
                        Port::First(request) => self.storage.push_back(request),
                        Port::Second(request) => self.station.handle_request(now, request),
                    }
                }
            }
            while let Some((interface, said)) = self.station.poll_indication(now) {
                quiet = false;
                let owner = self.hosts.iter_mut().rfind(|(from, _)| *from <= interface);
                let (_, host) = owner.expect("the first host has the lowest interface");
                host.handle_indication(now, Port::Second((interface, said)));
            }
            if quiet {
                return;
            }
        }
    }
}

impl<A: Service> Engine for OnEthernet<A> {
    type Above = A;
    type Below = NodeBelow;

    fn handle_request(&mut self, now: Instant, request: Request<A>) {
        self.hosts[0].1.handle_request(now, request);
    }

    fn handle_indication(&mut self, now: Instant, said: Indication<NodeBelow>) {
        match said {
            Port::First(_) => self.hosts[0].1.handle_indication(now, said),
            Port::Second((_, said)) => self.station.handle_indication(now, said),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.hosts.iter_mut().for_each(|(_, host)| host.handle_timeout(now));
        self.station.handle_timeout(now);
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<A>> {
        self.settle(now);
        let (others, first) = {
            let (first, others) = self.hosts.split_first_mut().expect("a node has a host");
            (others, first)
        };
        // Hosts without a user have nobody to tell.
        others.iter_mut().for_each(|(_, host)| while host.poll_indication(now).is_some() {});
        first.1.poll_indication(now)
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<NodeBelow>> {
        self.settle(now);
        if let Some(request) = self.storage.pop_front() {
            return Some(Port::First(request));
        }
        self.station.poll_request(now).map(|request| Port::Second((self.at, request)))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let hosts = self.hosts.iter().filter_map(|(_, host)| host.poll_timeout()).min();
        earlier(hosts, self.station.poll_timeout())
    }

    fn observe(&self, view: &mut Observation) {
        self.hosts.iter().for_each(|(_, host)| host.observe(view));
        self.station.observe(view);
    }
}
