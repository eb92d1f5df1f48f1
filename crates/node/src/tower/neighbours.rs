//! All neighbours of a node: those over TCP and UDP, and those over TNCs.

use crate::config::{Config, IpNetwork, LinkSettings, is_link_local};
use crate::tower::identities::{CallerRefusal, Identities, IdentityChange};
use crate::tower::links::{KnownLink, LinkTable};
use crate::tower::radio::{LineId, Radios};
use longwire_proto::bp::Eid;
use longwire_proto::bp::agent::parse_node;
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::earlier;
use longwire_proto::observe::{Counts, Part, counts};
use longwire_proto::rng::Rng;
use longwire_proto::service::{Both, Bundles, BundlesIndication, BundlesRequest, LinkId, Many, Port, Stream};
use longwire_proto::tcpcl::{self, AdmissionDecision};
use longwire_proto::time::Instant;
use longwire_settings::error::Error;
use longwire_towers::carriers::Tcpcl;
use longwire_towers::{About, Carrier as _, Media, Plan, neighbours};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// A caller whose session was refused.
#[derive(Clone, Debug)]
pub(crate) struct RefusedCaller {
    pub(crate) link: LinkId,
    /// Node ID that it claims.
    pub(crate) claim: Option<String>,
    pub(crate) refusal: CallerRefusal,
}

/// Maximum number of addresses that are remembered for a name; the lowest goes.
const FOUND_MAX: usize = 16;

/// Addresses of links on amateur radio bands: a peer that connects from one of them gets no TLS and no encrypted bundles.
#[derive(Debug)]
struct AmateurAddresses {
    /// Addresses in the configuration.
    configured: BTreeSet<IpAddr>,
    /// Networks in the configuration.
    networks: Vec<IpNetwork>,
    /// Names of links to hosts, and the node IDs at their other ends.
    named: BTreeMap<String, Eid>,
    /// Addresses to which these names have led, by link, and the name of the link.
    found: BTreeMap<LinkId, (String, BTreeSet<IpAddr>)>,
    /// Sessions of TCPCL with peers at these addresses.
    plan: Option<Plan>,
    /// Callers from these addresses.
    callers: BTreeSet<LinkId>,
}

impl AmateurAddresses {
    fn new(config: &Config) -> Self {
        let amateur = config.link.iter().filter(|link| config.is_amateur(link));
        let literal = |link: &LinkSettings| {
            let (host, _) = link.address.rsplit_once(':')?;
            host.trim_matches(['[', ']']).parse::<IpAddr>().ok()
        };
        let configured = amateur.filter_map(literal).map(|address| address.to_canonical()).collect();
        let by_name = config
            .link
            .iter()
            .filter(|link| config.is_amateur(link) && !link.medium().is_radio() && literal(link).is_none());
        let named = by_name
            .filter_map(|link| Some((link.name.clone(), link.peer.as_deref().and_then(parse_node)?)))
            .collect();
        // The networks were checked with the rest of the configuration.
        let networks = config.amateur_networks.iter().filter_map(|text| text.parse().ok()).collect();
        let plan = config.amateur_callers().ok();
        AmateurAddresses {
            configured,
            networks,
            named,
            found: BTreeMap::new(),
            plan,
            callers: BTreeSet::new(),
        }
    }

    /// True if a caller with this node ID may be the peer of a link whose host name has led nowhere yet.
    fn may_be(&self, node: &Eid) -> bool {
        self.named
            .iter()
            .any(|(name, peer)| peer == node && !self.found.values().any(|(found, _)| found == name))
    }

    /// Notes an address to which the name of a link has led; returns false if it was known.
    fn find(&mut self, link: LinkId, name: &str, address: IpAddr) -> bool {
        let (_, addresses) = self.found.entry(link).or_insert_with(|| (name.to_owned(), BTreeSet::new()));
        if addresses.len() >= FOUND_MAX {
            addresses.pop_first();
        }
        addresses.insert(address.to_canonical())
    }

    fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.configured.contains(&address)
            || self.networks.iter().any(|network| network.contains(address))
            || self.found.values().any(|(_, found)| found.contains(&address))
            || (is_link_local(address) && !self.networks.is_empty())
    }
}

/// Sessions of a node by the network of their link.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// Settings of the links.
    pub(crate) links: LinkTable,
    /// Sessions over TCP and UDP.
    internet: neighbours::Neighbours,
    /// Sessions over TNCs.
    pub(crate) radios: Radios,
    /// Node IDs of the sessions over TCP and UDP.
    pub(crate) identities: Identities,
    /// Addresses of links on amateur radio bands.
    amateur: AmateurAddresses,
    /// Refused callers, which the task collects in each pass.
    pub(crate) refused: Vec<RefusedCaller>,
    /// Connections on amateur radio bands that must end at once if they use TLS, which the task knows and does in each pass.
    pub(crate) cut: Vec<LinkId>,
    /// Next indications for the agent.
    up: VecDeque<(LinkId, BundlesIndication)>,
    /// Next requests to sessions.
    down: VecDeque<(LinkId, BundlesRequest)>,
}

impl Neighbours {
    /// The neighbours of a configuration, none of them connected.
    ///
    /// # Errors
    /// Fails if a setting of a link or of a TNC is invalid.
    pub(crate) fn new(config: &Config, rng: &Rng) -> Result<Self, Error> {
        let links = LinkTable::new(config)?;
        let mut internet = neighbours::Neighbours::of_all_carriers(rng.clone());
        internet.judge_callers();
        let mut radios = Radios::new(config, rng)?;
        links.iter().for_each(|(id, known)| open(&mut internet, &mut radios, id, known));
        let mut neighbours = Neighbours {
            links,
            internet,
            radios,
            identities: Identities::new(config),
            amateur: AmateurAddresses::new(config),
            refused: Vec::new(),
            cut: Vec::new(),
            up: VecDeque::new(),
            down: VecDeque::new(),
        };
        neighbours.answer(&config.all_callers()?);
        Ok(neighbours)
    }

    /// Sets the settings for callers.
    fn answer(&mut self, plans: &[Plan]) {
        for plan in plans {
            self.internet.answer(plan.clone());
            self.radios.answer(plan);
        }
    }

    /// Adds a link, as configured.
    ///
    /// # Errors
    /// Fails if a setting of the link is invalid.
    pub(crate) fn add_link(&mut self, config: &Config, link: &LinkSettings) -> Result<LinkId, Error> {
        let id = self.links.add(config, link)?;
        if let Some(known) = self.links.get(id) {
            open(&mut self.internet, &mut self.radios, id, known);
        }
        Ok(id)
    }

    /// Adds a listening UDP socket of a convergence layer, and returns its ID.
    pub(crate) fn listening(&mut self, at: &str, kind: &'static str) -> LinkId {
        let link = self.links.listening(format!("{kind} {at}"));
        self.internet.expect(link, kind);
        link
    }

    /// Removes a link; an open one over a TNC ends by itself and is forgotten then.
    pub(crate) fn remove_link(&mut self, id: LinkId) {
        self.radios.remove(id);
        self.internet.unset(id);
        self.links.remove(id);
        self.amateur.found.remove(&id);
    }

    /// True for an address of amateur radio, as far as it is known now.
    pub(crate) fn is_amateur_address(&self, address: IpAddr) -> bool {
        self.amateur.contains(address)
    }

    /// Sets the address of the other end of a connection or a socket, before the first message of a caller.
    pub(crate) fn set_address(&mut self, link: LinkId, address: IpAddr) {
        self.identities.set_address(link, address);
        if let Some(known) = self.links.get(link).filter(|known| known.is_amateur) {
            if self.amateur.find(link, &known.link.name, address) {
                self.end_other_amateurs();
            }
        } else if link.is_incoming() && self.amateur.contains(address) {
            // Without a plan, the section of TCPCL is invalid, and the configuration was refused.
            let Some(plan) = self.amateur.plan.clone() else { return };
            self.internet.set(link, plan);
            self.amateur.callers.insert(link);
        }
    }

    /// Forgets the address of a connection that has ended.
    pub(crate) fn forget_address(&mut self, link: LinkId) {
        self.identities.forget(link);
        if self.amateur.callers.remove(&link) {
            self.internet.unset(link);
        }
    }

    /// Marks the callers whose addresses have become those of links on amateur radio bands, and ends those that use TLS.
    fn end_other_amateurs(&mut self) {
        let callers = self.identities.caller_addresses();
        let others = callers
            .filter(|(link, address)| self.amateur.contains(*address) && !self.amateur.callers.contains(link))
            .map(|(link, _)| link);
        let others: Vec<LinkId> = others.collect();
        self.up.extend(others.iter().map(|link| (*link, BundlesIndication::Amateur)));
        self.cut.extend(others);
    }

    /// Takes over the settings for callers from a reloaded configuration.
    pub(crate) fn set_callers(&mut self, config: &Config) {
        // The configuration was checked before.
        if let Ok(plans) = config.all_callers() {
            self.answer(&plans);
        }
        let AmateurAddresses { configured, networks, named, plan, .. } = AmateurAddresses::new(config);
        let amateur = &mut self.amateur;
        (amateur.configured, amateur.networks, amateur.named, amateur.plan) =
            (configured, networks, named, plan);
        self.end_other_amateurs();
        let mut changed = self.links.set_amateur(config);
        changed.extend(self.radios.set_amateur(config));
        self.up.extend(changed.into_iter().map(|link| (link, BundlesIndication::Amateur)));
    }

    /// Sums of the counters of all sessions of TCPCL over TCP, including closed ones; zeros if there were none.
    pub(crate) fn session_counters(&self) -> Counts {
        let mut sums = counts(&tcpcl::Counters::default());
        sums.extend(self.internet.counts(Tcpcl::ABOUT.name));
        sums
    }

    /// Sessions among which that of a link is, and its ID there.
    fn sessions_of(&self, id: LinkId) -> (&neighbours::Neighbours, LinkId) {
        self.radios.sessions_of(id).unwrap_or((&self.internet, id))
    }

    /// Returns what the session of a link shows; `None` without a session.
    pub(crate) fn shown(&self, id: LinkId) -> Option<Part> {
        let (sessions, own) = self.sessions_of(id);
        sessions.shown(own)
    }

    /// Returns the convergence layer of a link.
    pub(crate) fn carrier(&self, id: LinkId) -> Option<&'static About> {
        let (sessions, own) = self.sessions_of(id);
        sessions.carrier(own)
    }

    /// Returns true if a datagram may be a packet of the convergence layer of a link over UDP.
    pub(crate) fn recognises(&self, link: LinkId, datagram: &[u8]) -> bool {
        self.internet.recognises(link, datagram)
    }

    /// Judges a caller that has sent its node ID.
    fn judge(&mut self, now: Instant, link: LinkId) {
        let Some(claim) = self.internet.claim(link) else { return };
        let verdict = match self.identities.judge(link, claim) {
            Ok(()) => AdmissionDecision::Admit,
            Err(refusal) => {
                let claim = claim.node_id.map(str::to_owned);
                self.refused.push(RefusedCaller { link, claim, refusal });
                if let CallerRefusal::Taken(other) = refusal {
                    // A request to connect makes the session probe its peer, and end if the peer is dead.
                    self.down.push_back((other, BundlesRequest::Connect));
                }
                refusal.verdict()
            }
        };
        self.internet.judge(now, link, verdict);
    }

    /// Assigns node IDs to sessions as they come up and go down.
    fn rises(&mut self, link: LinkId, said: BundlesIndication) -> (LinkId, BundlesIndication) {
        if let BundlesIndication::Up { peer, .. } = &said
            && link.is_incoming()
        {
            let node = peer.as_deref().and_then(parse_node);
            let by_address = self.amateur.callers.contains(&link);
            if by_address || node.is_some_and(|node| self.amateur.may_be(&node)) {
                self.up.push_back((link, BundlesIndication::Amateur));
                self.cut.push(link);
            }
        }
        let (link, said) = self.named(link, said);
        self.up.push_back((link, said));
        self.up.pop_front().expect("it was just put there")
    }

    fn named(&mut self, link: LinkId, said: BundlesIndication) -> (LinkId, BundlesIndication) {
        match said {
            BundlesIndication::Up { peer: Some(peer), interleave, transfer_bytes_max } => {
                let proven = self.internet.shown(link).is_some_and(|session| session.flag("proven"));
                let acknowledges = self.internet.carrier(link).is_some_and(|about| about.acknowledges);
                let (named, changes) = self.identities.up(link, &peer, proven, acknowledges);
                changes.into_iter().for_each(|change| self.change(change));
                let peer = Some(peer).filter(|_| named);
                (link, BundlesIndication::Up { peer, interleave, transfer_bytes_max })
            }
            BundlesIndication::Down { .. } => {
                self.identities.down(link).into_iter().for_each(|change| self.change(change));
                (link, said)
            }
            said => (link, said),
        }
    }

    fn change(&mut self, change: IdentityChange) {
        match change {
            IdentityChange::Named(link, peer) => self.up.push_back((link, BundlesIndication::Peer { peer })),
            IdentityChange::Ends(link) => self.down.push_back((link, BundlesRequest::Close)),
        }
    }
}

/// Sets the plan of a link, and its radio neighbour if it has one.
fn open(internet: &mut neighbours::Neighbours, radios: &mut Radios, id: LinkId, known: &KnownLink) {
    match &known.neighbour {
        Some(neighbour) => radios.add(id, neighbour, &known.plan),
        None => internet.set(id, known.plan.clone()),
    }
}

impl Engine for Neighbours {
    type Above = Many<LinkId, Bundles>;
    type Below = Both<Many<LinkId, Media>, Many<LineId, Stream>>;

    fn handle_request(&mut self, now: Instant, (id, request): Request<Self::Above>) {
        match self.radios.owns(id) {
            true => self.radios.handle_request(now, (id, request)),
            false => self.internet.handle_request(now, (id, request)),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        match indication {
            Port::First((link, said)) => {
                self.internet.handle_indication(now, (link, said));
                self.judge(now, link);
            }
            Port::Second(said) => self.radios.handle_indication(now, said),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.internet.poll_timeout().is_some_and(|at| at <= now) {
            self.internet.handle_timeout(now);
        }
        if self.radios.poll_timeout().is_some_and(|at| at <= now) {
            self.radios.handle_timeout(now);
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        if let Some(said) = self.up.pop_front() {
            return Some(said);
        }
        match self.internet.poll_indication(now) {
            Some((link, said)) => Some(self.rises(link, said)),
            None => self.radios.poll_indication(now, &mut self.links.caller_ids),
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        while let Some((link, request)) = self.down.pop_front() {
            // These requests are for sessions of callers, which are not created again if they have ended in the meantime.
            self.internet.handle_request(now, (link, request));
        }
        let internet = self.internet.poll_request(now).map(Port::First);
        internet.or_else(|| self.radios.poll_request(now).map(Port::Second))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.internet.poll_timeout(), self.radios.poll_timeout())
    }
}

#[cfg(test)]
mod tests;
