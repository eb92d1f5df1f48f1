//! Packet radio in a node: the sessions, the links and the line of each TNC.
//!
//! ```text
//!        the agent                 Many<LinkId, Bundles>
//!            |
//!        [ Radios ]                which link uses which TNC
//!            |
//!        [ Neighbours ]            of crates/towers: sessions by link
//!            |                     Many<LinkId, Media>
//!        [ Station ]               of AX.25
//!            |                     Frames
//!        [ Controller ]            KISS, or AGWPE
//!            |                     Many<user, Stream>
//!        [ Share ]                 TNCs in KISS mode at the same place have one line
//!            |                     Stream
//!          Lines                   a serial line, or TCP: pumps
//! ```
//!
//! The engines are those of the simulator. A lost TNC is tried again at increasing intervals; until then its links stand
//! still, and their bundles stay in the store.

mod announcements;
mod channel_log;
pub(crate) mod controller;
#[cfg(test)]
mod tests;
mod views;

pub(crate) use announcements::HeardText;
pub(crate) use views::frames_there;

use crate::config::tnc_address::{LineAddress, TncAddress};
use crate::config::{Config, RadioNeighbour};
use crate::tower::links::CallerIds;
use announcements::HeardTexts;
use channel_log::{ChannelLog, LoggedTnc};
use controller::TncEngine;
use longwire_proto::ax25::Station;
use longwire_proto::engine::Engine;
use longwire_proto::joint::Stack;
use longwire_proto::kiss::SharedLine;
use longwire_proto::rng::Rng;
use longwire_proto::service::{BundlesIndication, BundlesRequest, LinkId, StreamIndication, StreamRequest};
use longwire_proto::time::Instant;
use longwire_settings::error::Error;
use longwire_towers::{Neighbours, Plan, Provides};
use std::collections::{BTreeMap, BTreeSet};

/// TNC: its index in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TncId(pub(crate) usize);

/// Line of one or more TNCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineId(pub(crate) usize);

/// All engines of one TNC.
type TncTower = Stack<Neighbours, Stack<Provides<Station>, LoggedTnc>>;

/// TNC, and the sessions over it that peers opened: each station numbers its own.
#[derive(Debug)]
struct TncSessions {
    tower: TncTower,
    /// Node-wide IDs of these sessions, by ID in the tower.
    callers: BTreeMap<LinkId, LinkId>,
    /// Line, and the number of this TNC among its users.
    line: (LineId, usize),
    /// True if the radio uses an amateur radio band, so that its callers get no encrypted bundles.
    is_amateur: bool,
    /// Callers to be announced, after the indication that their link is amateur radio.
    announced: Option<(LinkId, BundlesIndication)>,
    /// Last state reported: true for up, false for down.
    told: Option<bool>,
    ready: bool,
}

impl TncSessions {
    fn sessions(&self) -> &Neighbours {
        &self.tower.upper
    }

    fn sessions_mut(&mut self) -> &mut Neighbours {
        &mut self.tower.upper
    }

    fn station(&self) -> &Station {
        &self.tower.lower.upper.0
    }

    fn station_mut(&mut self) -> &mut Station {
        &mut self.tower.lower.upper.0
    }

    fn controller(&self) -> &TncEngine {
        &self.tower.lower.lower.engine
    }

    fn announcements_mut(&mut self) -> Option<&mut HeardTexts> {
        self.tower.lower.lower.announcements.as_mut()
    }

    fn channel_log(&self) -> &ChannelLog {
        &self.tower.lower.lower.log
    }
}

/// Line that one or more TNCs share.
#[derive(Debug)]
struct TncLine {
    place: TncAddress,
    share: SharedLine,
    /// Users of the line.
    tncs: Vec<TncId>,
}

/// All TNCs of a node.
#[derive(Debug, Default)]
pub(crate) struct Radios {
    radios: Vec<TncSessions>,
    wires: Vec<TncLine>,
    /// TNC of each link, and the ID of the link there.
    owners: BTreeMap<LinkId, (TncId, LinkId)>,
    /// Links that this node has opened; their end is reported.
    opened: BTreeSet<LinkId>,
    /// Removed links that have not ended yet.
    leaving: BTreeSet<LinkId>,
}

impl Radios {
    /// Creates the TNCs of a configuration, without links.
    pub(crate) fn new(config: &Config, rng: &Rng) -> Result<Self, Error> {
        let mut radios = Vec::new();
        let mut wires: Vec<(TncAddress, Vec<TncId>)> = Vec::new();
        for (at, tnc) in config.tnc.iter().enumerate() {
            let station = Station::new(tnc.station_of(&config.node_id()?)?);
            let controller = LoggedTnc {
                engine: TncEngine::new(tnc)?,
                log: ChannelLog::new(tnc),
                announcements: tnc.discovery.then(HeardTexts::default),
            };
            let lower = Stack::new(Provides(station), controller);
            let sessions = Neighbours::of_all_carriers(rng.fork(&format!("tnc {at}")));
            let place = tnc.place()?;
            let shared =
                |(other, _): &(TncAddress, _)| matches!(place, TncAddress::Kiss(_)) && *other == place;
            let line = wires.iter().position(shared).unwrap_or_else(|| {
                wires.push((place, Vec::new()));
                wires.len() - 1
            });
            let users = &mut wires[line].1;
            users.push(TncId(at));
            radios.push(TncSessions {
                tower: Stack::new(sessions, lower),
                callers: BTreeMap::new(),
                line: (LineId(line), users.len() - 1),
                is_amateur: config.is_amateur_tnc(tnc),
                announced: None,
                told: None,
                ready: true,
            });
        }
        let wire = |(place, tncs): (TncAddress, Vec<TncId>)| TncLine {
            place,
            share: SharedLine::new(tncs.len()),
            tncs,
        };
        let wires = wires.into_iter().map(wire).collect();
        Ok(Radios { radios, wires, ..Radios::default() })
    }

    /// Takes the texts that stations have sent in UI frames over TNCs with discovery, the oldest first.
    pub(crate) fn take_texts(&mut self) -> Vec<(TncId, HeardText)> {
        let mut all = Vec::new();
        for (at, radio) in self.radios.iter_mut().enumerate() {
            let texts = radio.announcements_mut().into_iter().flat_map(HeardTexts::take);
            all.extend(texts.map(|text| (TncId(at), text)));
        }
        all
    }

    /// Returns the address of a line.
    pub(crate) fn line(&self, LineId(line): LineId) -> &LineAddress {
        self.wires[line].place.line()
    }

    /// Returns the TNCs on a line.
    pub(crate) fn tncs_of(&self, LineId(line): LineId) -> &[TncId] {
        &self.wires[line].tncs
    }

    /// Returns the address of a TNC.
    pub(crate) fn place(&self, TncId(at): TncId) -> &TncAddress {
        let (LineId(line), _) = self.radios[at].line;
        &self.wires[line].place
    }

    /// Records the state of a TNC; returns false if it was already reported.
    pub(crate) fn is_news(&mut self, TncId(at): TncId, up: bool) -> bool {
        self.radios[at].told.replace(up) != Some(up)
    }

    /// Adds a link to this neighbour.
    pub(crate) fn add(&mut self, id: LinkId, neighbour: &RadioNeighbour, plan: &Plan) {
        let Some(radio) = self.radios.get_mut(neighbour.tnc) else { return };
        radio.sessions_mut().set(id, plan.clone());
        let (station, peer) = (radio.station_mut(), Some(neighbour.peer.clone()));
        match neighbour.is_connected {
            true => station.set_peer(id, peer),
            false => station.set_unconnected(id, peer),
        }
        self.owners.insert(id, (TncId(neighbour.tnc), id));
    }

    /// Removes a link; an open one ends by itself and is forgotten then.
    pub(crate) fn remove(&mut self, id: LinkId) {
        let Some((TncId(at), own)) = self.owners.get(&id).copied() else { return };
        let radio = &mut self.radios[at];
        radio.sessions_mut().unset(own);
        radio.station_mut().set_peer(own, None);
        radio.station_mut().set_unconnected(own, None);
        if self.opened.contains(&id) {
            self.leaving.insert(id);
        } else {
            self.forget(id);
        }
    }

    /// Takes over which TNCs are amateur radio. Returns the links of callers over those that have become so.
    pub(crate) fn set_amateur(&mut self, config: &Config) -> Vec<LinkId> {
        let mut callers = Vec::new();
        for (radio, tnc) in self.radios.iter_mut().zip(&config.tnc) {
            let is_amateur = config.is_amateur_tnc(tnc);
            if !core::mem::replace(&mut radio.is_amateur, is_amateur) && is_amateur {
                callers.extend(radio.callers.values());
            }
        }
        callers
    }

    /// Sets the settings for callers of a convergence layer.
    pub(crate) fn answer(&mut self, plan: &Plan) {
        self.radios.iter_mut().for_each(|radio| radio.sessions_mut().answer(plan.clone()));
    }

    /// Returns the sessions among which that of a link is, and its ID there; `None` if it uses no TNC.
    pub(crate) fn sessions_of(&self, id: LinkId) -> Option<(&Neighbours, LinkId)> {
        let (TncId(at), own) = self.owners.get(&id)?;
        Some((self.radios[*at].sessions(), *own))
    }

    /// Forgets everything about a link.
    fn forget(&mut self, id: LinkId) {
        if let Some((TncId(at), own)) = self.owners.remove(&id) {
            self.radios[at].sessions_mut().forget(own);
        }
    }

    /// Returns true if the link uses a TNC.
    pub(crate) fn owns(&self, id: LinkId) -> bool {
        self.owners.contains_key(&id)
    }

    /// Returns the links that are open, being opened or being closed.
    pub(crate) fn busy(&self) -> Vec<LinkId> {
        let stands = |(_, (TncId(at), own)): &(&LinkId, &(TncId, LinkId))| {
            let radio = &self.radios[*at];
            let link = radio.sessions().connection_of(*own);
            radio.controller().line().is_open() && radio.station().standing(link).is_some()
        };
        self.owners.iter().filter(stands).map(|(id, _)| *id).collect()
    }

    fn wake(&mut self, TncId(at): TncId) {
        self.radios[at].ready = true;
    }

    /// Passes indications of a line to its TNCs.
    fn line_rises(&mut self, now: Instant, line: usize) {
        let TncLine { share, tncs, .. } = &mut self.wires[line];
        while let Some((user, said)) = share.poll_indication(now) {
            let radio = &mut self.radios[tncs[user].0];
            radio.tower.handle_indication(now, said);
            radio.ready = true;
        }
    }

    /// Passes one request of a tower to its line; returns false if there is none.
    fn request_sinks(&mut self, now: Instant) -> bool {
        for radio in self.radios.iter_mut().filter(|radio| radio.ready) {
            if let Some(request) = radio.tower.poll_request(now) {
                let (LineId(line), user) = radio.line;
                self.wires[line].share.handle_request(now, (user, request));
                self.line_rises(now, line);
                return true;
            }
            radio.ready = false;
        }
        false
    }

    /// Converts an indication of a tower for the agent.
    fn rises(
        &mut self,
        at: usize,
        id: LinkId,
        said: BundlesIndication,
        caller_ids: &mut CallerIds,
    ) -> Option<(LinkId, BundlesIndication)> {
        if !id.is_incoming() {
            if matches!(said, BundlesIndication::Down { retry: false, .. }) {
                self.opened.remove(&id);
                if self.leaving.remove(&id) {
                    self.forget(id);
                }
            }
            return Some((id, said));
        }
        let radio = &mut self.radios[at];
        if matches!(said, BundlesIndication::Up { .. }) && !radio.callers.contains_key(&id) {
            let node_wide = caller_ids.next();
            radio.callers.insert(id, node_wide);
            self.owners.insert(node_wide, (TncId(at), id));
            if radio.is_amateur {
                radio.announced = Some((node_wide, said));
                return Some((node_wide, BundlesIndication::Amateur));
            }
        }
        let node_wide = *radio.callers.get(&id)?;
        if matches!(said, BundlesIndication::Down { .. }) {
            // A peer that connects again gets another ID.
            radio.callers.remove(&id);
            self.owners.remove(&node_wide);
        }
        Some((node_wide, said))
    }
}

/// As an engine over the lines, except that the owner gives IDs to callers.
impl Radios {
    /// Handles a request of the agent.
    pub(crate) fn handle_request(&mut self, now: Instant, (id, request): (LinkId, BundlesRequest)) {
        let Some((tnc, own)) = self.owners.get(&id).copied() else { return };
        if matches!(request, BundlesRequest::Connect) {
            self.opened.insert(id);
        }
        self.radios[tnc.0].tower.handle_request(now, (own, request));
        self.wake(tnc);
    }

    /// Handles an indication of a line.
    pub(crate) fn handle_indication(
        &mut self,
        now: Instant,
        (LineId(line), said): (LineId, StreamIndication),
    ) {
        self.wires[line].share.handle_indication(now, said);
        self.line_rises(now, line);
    }

    /// Handles all timers that are due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for radio in &mut self.radios {
            if radio.tower.poll_timeout().is_some_and(|at| at <= now) {
                radio.tower.handle_timeout(now);
                radio.ready = true;
            }
        }
    }

    /// Returns the next indication for the agent. Also carries requests to the lines, as a [`Stack`] does: indications first,
    /// then a request.
    pub(crate) fn poll_indication(
        &mut self,
        now: Instant,
        caller_ids: &mut CallerIds,
    ) -> Option<(LinkId, BundlesIndication)> {
        loop {
            for at in 0..self.radios.len() {
                if !self.radios[at].ready {
                    continue;
                }
                if let Some(said) = self.radios[at].announced.take() {
                    return Some(said);
                }
                while let Some((id, said)) = self.radios[at].tower.poll_indication(now) {
                    if let Some(said) = self.rises(at, id, said, caller_ids) {
                        return Some(said);
                    }
                }
            }
            if !self.request_sinks(now) {
                return None;
            }
        }
    }

    /// Returns the next request to a line.
    pub(crate) fn poll_request(&mut self, now: Instant) -> Option<(LineId, StreamRequest)> {
        for line in 0..self.wires.len() {
            if let Some(request) = self.wires[line].share.poll_request(now) {
                // There may be room again: the next poll for indications continues.
                self.line_rises(now, line);
                return Some((LineId(line), request));
            }
        }
        None
    }

    /// Returns the time of the next timer.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.radios.iter().filter_map(|radio| radio.tower.poll_timeout()).min()
    }
}
