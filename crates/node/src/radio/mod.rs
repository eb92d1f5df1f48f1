//! Packet radio in a node: for each TNC the sessions, the links and the line.
//!
//! ```text
//!        the agent                 Many<LinkId, Bundles>
//!            |
//!        [ Radios ]                whose link is whose, over which TNC
//!            |
//!        [ Convergence ]           Longwire's sessions over AX.25, TCPCL 3's, and groups
//!            |                     Many<LinkId, Packets>, Many<LinkId, Datagrams>
//!        [ Station ]               of AX.25
//!            |                     Frames
//!        [ Controller ]            KISS, or AGWPE
//!            |                     Stream
//!          Lines                   a serial line, or TCP: pumps
//! ```
//!
//! The engines are those that the simulator runs. A TNC that is lost is called again, ever more rarely; meanwhile its links
//! stand still, and what waits for them stays in the store.

mod convergence;
mod hearing;
mod lines;
mod views;

pub(crate) use lines::Lines;

use crate::config::Config;
use crate::links::Shared;
use crate::tnc::Controller;
use convergence::Convergence;
use longwire_proto::ax25::Station;
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::Stack;
use longwire_proto::rng::Rng;
use longwire_proto::service::{Bundles, BundlesIndication, LinkId, Many, Stream};
use longwire_proto::time::Instant;
use longwire_settings::error::Error;
use std::collections::{BTreeMap, BTreeSet};

/// A TNC: its number in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TncId(pub(crate) usize);

/// All engines of one TNC.
type Tower = Stack<Convergence, Stack<Station, Controller>>;

/// One TNC, and the sessions over it that peers opened: each station counts its own.
#[derive(Debug)]
struct Radio {
    tower: Tower,
    /// The node's ids of these, by the tower's.
    callers: BTreeMap<LinkId, LinkId>,
    ready: bool,
}

/// All TNCs of a node.
#[derive(Debug)]
pub(crate) struct Radios {
    radios: Vec<Radio>,
    links: Shared,
    /// Over which TNC a link goes, and its id there.
    owners: BTreeMap<LinkId, (TncId, LinkId)>,
    /// Links that were removed and have not ended yet.
    leaving: BTreeSet<LinkId>,
}

impl Radios {
    /// Those of a configuration, with their links.
    pub(crate) fn new(config: &Config, links: Shared, rng: &Rng) -> Result<Self, Error> {
        let mut radios = Vec::new();
        for (at, tnc) in config.tnc.iter().enumerate() {
            let station = Station::new(tnc.station()?);
            let lower = Stack::new(station, tnc.controller()?);
            let convergence = Convergence::new(links.clone(), rng.fork(&format!("tnc {at}")));
            radios.push(Radio {
                tower: Stack::new(convergence, lower),
                callers: BTreeMap::new(),
                ready: true,
            });
        }
        let known: Vec<LinkId> = {
            let links = links.lock().expect("no thread panics while it has the links");
            links.iter().map(|(id, _)| id).collect()
        };
        let mut radios = Radios { radios, links, owners: BTreeMap::new(), leaving: BTreeSet::new() };
        known.into_iter().for_each(|id| radios.add(id));
        Ok(radios)
    }

    /// Knows a link from now on, as the configuration has it.
    pub(crate) fn add(&mut self, id: LinkId) {
        let links = self.links.lock().expect("no thread panics while it has the links");
        let Some(neighbour) = links.get(id).and_then(|known| known.neighbour.as_ref()) else { return };
        let Some(radio) = self.radios.get_mut(neighbour.tnc) else { return };
        let (station, peer) = (&mut radio.tower.lower.upper, Some(neighbour.peer.clone()));
        match neighbour.group {
            None => station.set_peer(id, peer),
            Some(_) => station.set_unconnected(id, peer),
        }
        self.owners.insert(id, (TncId(neighbour.tnc), id));
    }

    /// Calls a link no more; one that stands ends in its own time, and is forgotten then.
    pub(crate) fn remove(&mut self, id: LinkId) {
        let Some((TncId(at), own)) = self.owners.get(&id).copied() else { return };
        let tower = &mut self.radios[at].tower;
        tower.lower.upper.set_peer(own, None);
        tower.lower.upper.set_unconnected(own, None);
        if tower.upper.has(own) {
            self.leaving.insert(id);
        } else {
            self.forget(id);
        }
    }

    /// Nothing is known of it any more.
    fn forget(&mut self, id: LinkId) {
        if let Some((TncId(at), own)) = self.owners.remove(&id) {
            self.radios[at].tower.upper.groups.remove(own);
        }
    }

    /// It goes over a TNC.
    pub(crate) fn owns(&self, id: LinkId) -> bool {
        self.owners.contains_key(&id)
    }

    /// Links that stand, are called, or are being ended.
    pub(crate) fn busy(&self) -> Vec<LinkId> {
        let stands = |(_, (TncId(at), own)): &(&LinkId, &(TncId, LinkId))| {
            let tower = &self.radios[*at].tower;
            let link = tower.upper.ours.link_of(*own).unwrap_or(*own);
            tower.lower.lower.line().is_open() && tower.lower.upper.standing(link).is_some()
        };
        self.owners.iter().filter(stands).map(|(id, _)| *id).collect()
    }

    fn wake(&mut self, TncId(at): TncId) {
        self.radios[at].ready = true;
    }

    /// What a tower says, as the agent hears it.
    fn rises(
        &mut self,
        at: usize,
        id: LinkId,
        said: BundlesIndication,
    ) -> Option<(LinkId, BundlesIndication)> {
        if !id.is_incoming() {
            if matches!(said, BundlesIndication::Down { .. }) && self.leaving.remove(&id) {
                self.forget(id);
            }
            return Some((id, said));
        }
        let radio = &mut self.radios[at];
        if matches!(said, BundlesIndication::Up { .. }) && !radio.callers.contains_key(&id) {
            let node_wide = {
                let mut links = self.links.lock().expect("no thread panics while it has the links");
                links.next_caller()
            };
            radio.callers.insert(id, node_wide);
            self.owners.insert(node_wide, (TncId(at), id));
        }
        let node_wide = *radio.callers.get(&id)?;
        if matches!(said, BundlesIndication::Down { .. }) {
            // A peer that calls again has another id.
            radio.callers.remove(&id);
            self.owners.remove(&node_wide);
        }
        Some((node_wide, said))
    }
}

impl Engine for Radios {
    type Above = Many<LinkId, Bundles>;
    type Below = Many<TncId, Stream>;

    fn handle_request(&mut self, now: Instant, (id, request): Request<Self::Above>) {
        let Some((tnc, own)) = self.owners.get(&id).copied() else { return };
        self.radios[tnc.0].tower.handle_request(now, (own, request));
        self.wake(tnc);
    }

    fn handle_indication(&mut self, now: Instant, (tnc, indication): Indication<Self::Below>) {
        self.radios[tnc.0].tower.handle_indication(now, indication);
        self.wake(tnc);
    }

    fn handle_timeout(&mut self, now: Instant) {
        for radio in &mut self.radios {
            if radio.tower.poll_timeout().is_some_and(|at| at <= now) {
                radio.tower.handle_timeout(now);
                radio.ready = true;
            }
        }
    }

    fn poll_indication(&mut self) -> Option<Indication<Self::Above>> {
        for at in 0..self.radios.len() {
            if !self.radios[at].ready {
                continue;
            }
            while let Some((id, said)) = self.radios[at].tower.poll_indication() {
                if let Some(said) = self.rises(at, id, said) {
                    return Some(said);
                }
            }
        }
        None
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        for (at, radio) in self.radios.iter_mut().enumerate() {
            if !radio.ready {
                continue;
            }
            if let Some(request) = radio.tower.poll_request(now) {
                return Some((TncId(at), request));
            }
            radio.ready = false;
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.radios.iter().filter_map(|radio| radio.tower.poll_timeout()).min()
    }
}
