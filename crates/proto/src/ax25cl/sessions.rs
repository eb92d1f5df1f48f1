//! The sessions of a node, and the assignment of links to sessions.

use super::config::{Config, Counters};
use super::session::Session;
use super::wire::Packet;
use crate::engine::{Engine, Indication, Request};
use crate::kit::Deadlines;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{Bundles, LinkId, Many, Packets, PacketsIndication};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct SessionSlot {
    session: Session,
    /// Present link of the session.
    link: Option<LinkId>,
    /// Name of the peer that opened the link; empty if this node did.
    caller: String,
    deadline: Option<Instant>,
}

/// Makes the configuration of a session; returns `None` to decline the session.
pub type Configure = Box<dyn FnMut(LinkId) -> Option<Config> + Send>;

/// All sessions of a node, by the links that the node opens and the first links that peers opened. A later link of a
/// peer is assigned to the session that it resumes.
pub struct Sessions {
    configure: Configure,
    /// Configurations of sessions that do not exist yet, in place of those that `configure` makes.
    configured: BTreeMap<LinkId, Config>,
    rng: Rng,
    made: u64,
    places: BTreeMap<LinkId, SessionSlot>,
    /// Session of each link.
    owners: BTreeMap<LinkId, LinkId>,
    indicating: BTreeSet<LinkId>,
    requesting: BTreeSet<LinkId>,
    deadlines: Deadlines<LinkId>,
    /// Number of messages for sessions that do not exist.
    pub declined: u64,
}

impl Sessions {
    /// Creates an empty set of sessions; `configure` is called for each new one.
    pub fn new(configure: Configure, rng: Rng) -> Self {
        Sessions {
            configure,
            configured: BTreeMap::new(),
            rng,
            made: 0,
            places: BTreeMap::new(),
            owners: BTreeMap::new(),
            indicating: BTreeSet::new(),
            requesting: BTreeSet::new(),
            deadlines: Deadlines::new(),
            declined: 0,
        }
    }

    /// Returns the counters of a session; `None` if it does not exist.
    pub fn counters(&self, id: LinkId) -> Option<&Counters> {
        self.places.get(&id).map(|place| place.session.counters())
    }

    /// Returns a session; `None` if it does not exist.
    pub fn session(&self, id: LinkId) -> Option<&Session> {
        self.places.get(&id).map(|place| &place.session)
    }

    /// Returns the number of sessions.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Returns the name of the peer that opened the link; `None` if this node opened it, or if there is no such
    /// session.
    pub fn caller(&self, id: LinkId) -> Option<&str> {
        self.places.get(&id).map(|place| place.caller.as_str()).filter(|caller| !caller.is_empty())
    }

    /// Returns the present link of a session.
    pub fn link_of(&self, id: LinkId) -> Option<LinkId> {
        self.places.get(&id).and_then(|place| place.link)
    }

    /// Returns true if the link belongs to a session, or will when it is reconnected.
    pub fn owns(&self, link: LinkId) -> bool {
        self.owners.contains_key(&link)
    }

    /// Drops a session, even if it has not finished.
    pub fn remove(&mut self, id: LinkId) {
        self.configured.remove(&id);
        let Some(place) = self.places.remove(&id) else { return };
        self.deadlines.remove(id, place.deadline);
        self.indicating.remove(&id);
        self.requesting.remove(&id);
        self.owners.retain(|_, owner| *owner != id);
    }

    /// Sets the configuration of the next session with this ID, for which `configure` is not called then.
    pub fn configure_next(&mut self, id: LinkId, config: Config) {
        self.configured.insert(id, config);
    }

    fn make(&mut self, id: LinkId, caller: Option<String>) -> bool {
        let configured = self.configured.remove(&id);
        let Some(config) = configured.or_else(|| (self.configure)(id)) else {
            self.declined += 1;
            return false;
        };
        self.made += 1;
        let rng = self.rng.fork(&format!("session {}", self.made));
        let session = match caller {
            None => Session::active(config, rng),
            Some(_) => Session::passive(config, rng),
        };
        let caller = caller.unwrap_or_default();
        self.places.insert(id, SessionSlot { session, link: Some(id), caller, deadline: None });
        self.owners.insert(id, id);
        true
    }

    fn with(&mut self, id: LinkId, act: impl FnOnce(&mut Session)) {
        match self.places.get_mut(&id) {
            Some(place) => {
                act(&mut place.session);
                self.wake(id);
            }
            None => self.declined += 1,
        }
    }

    fn wake(&mut self, id: LinkId) {
        self.indicating.insert(id);
        self.requesting.insert(id);
    }

    /// Checks by the first packet of an incoming link whether the peer resumes a session that has lost its link.
    fn settle_caller(&mut self, now: Instant, link: LinkId, packet: &Bytes) {
        let Some(place) = self.places.get(&link).filter(|place| place.session.is_fresh()) else { return };
        let Ok(Packet { hello: Some(hello), .. }) = Packet::decode(&mut packet.clone()) else { return };
        let caller = place.caller.clone();
        let before = |(id, other): &(&LinkId, &SessionSlot)| {
            **id != link && id.is_incoming() && other.caller == caller && other.session.is_detached()
        };
        let Some(owner) = self.places.iter().find(before).map(|(id, _)| *id) else { return };
        let known = self.places[&owner].session.peer_tag() == Some(hello.tag);
        if !known {
            return self.with(owner, |session| session.superseded(now));
        }
        let fresh = self.places.remove(&link).expect("just found");
        self.deadlines.remove(link, fresh.deadline);
        self.indicating.remove(&link);
        self.requesting.remove(&link);
        self.owners.insert(link, owner);
        self.places.get_mut(&owner).expect("just found").link = Some(link);
        self.with(owner, |session| session.take_link(now, &fresh.session));
    }

    fn settle(&mut self, id: LinkId) {
        if self.indicating.contains(&id) || self.requesting.contains(&id) {
            return;
        }
        let Some(place) = self.places.get_mut(&id) else { return };
        let deadline = place.session.poll_timeout();
        self.deadlines.set(id, &mut place.deadline, deadline);
        if place.session.finished() {
            self.deadlines.remove(id, place.deadline);
            self.places.remove(&id);
            self.owners.retain(|_, owner| *owner != id);
        }
    }
}

impl Engine for Sessions {
    type Above = Many<LinkId, Bundles>;
    type Below = Many<LinkId, Packets>;

    fn handle_request(&mut self, now: Instant, (id, request): Request<Self::Above>) {
        if !self.places.contains_key(&id) && (id.is_incoming() || !self.make(id, None)) {
            self.declined += u64::from(id.is_incoming());
            return;
        }
        self.with(id, |session| session.handle_request(now, request));
    }

    fn handle_indication(&mut self, now: Instant, (link, indication): Indication<Self::Below>) {
        match &indication {
            PacketsIndication::Connected { peer, .. }
                if link.is_incoming() && !self.make(link, Some(peer.clone())) =>
            {
                return;
            }
            PacketsIndication::Packet(packet) => self.settle_caller(now, link, packet),
            _ => {}
        }
        let Some(owner) = self.owners.get(&link).copied() else {
            self.declined += 1;
            return;
        };
        let closed = matches!(indication, PacketsIndication::Closed(_));
        self.with(owner, |session| session.handle_indication(now, indication));
        if closed && link.is_incoming() {
            self.owners.remove(&link);
            if let Some(place) = self.places.get_mut(&owner) {
                place.link = None;
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(id) = self.deadlines.pop_due(now) {
            let place = self.places.get_mut(&id).expect("deadlines are of sessions");
            place.deadline = None;
            place.session.handle_timeout(now);
            self.wake(id);
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        while let Some(id) = self.indicating.first().copied() {
            let said = self.places.get_mut(&id).and_then(|place| place.session.poll_indication(now));
            if let Some(said) = said {
                self.requesting.insert(id);
                return Some((id, said));
            }
            self.indicating.remove(&id);
            self.settle(id);
        }
        None
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        while let Some(id) = self.requesting.first().copied() {
            let place = self.places.get_mut(&id);
            let asked = place.and_then(|place| Some((place.link?, place.session.poll_request(now)?)));
            if let Some(asked) = asked {
                self.indicating.insert(id);
                return Some(asked);
            }
            self.requesting.remove(&id);
            self.settle(id);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    fn observe(&self, view: &mut Observation) {
        self.places.iter().for_each(|(id, place)| view.with_id(id, &place.session));
    }
}

impl core::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_map().entries(self.places.iter().map(|(id, place)| (id, &place.session))).finish()
    }
}
