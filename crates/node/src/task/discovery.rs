//! Neighbours that announce themselves: announcements in and out, and the links to those that were found.
//!
//! A neighbour gets a link that opens when a bundle needs it. The links of the configuration come first: a node to which one of
//! them leads gets no other. When a neighbour is lost its link goes, and its bundles wait or take another way.

use super::{EngineParts as _, Task};
use crate::config::{Config, LinkSettings};
use crate::pumps::discovery::{DiscoverySockets, HeardDatagram};
use crate::view::{self, Event};
use longwire_proto::bp::Eid;
use longwire_proto::bp::agent;
use longwire_proto::discovery::{
    Announcement, DiscoveryIndication, DiscoveryRequest, HeardAnnouncement, HearingIndication,
    HearingRequest, Neighbour, Neighbourhood, Proof, Way, aprs, ipnd, sand,
};
use longwire_proto::engine::Engine as _;
use longwire_proto::rng::Rng;
use longwire_proto::service::{CreationTimestamp, DownReason, LinkId, ManagementRequest};
use longwire_proto::time::{Duration, Instant};
use longwire_settings::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Time by which the clocks of two nodes may differ.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(300);
/// Intervals of beacons after which a station is taken for gone.
const BEACON_INTERVALS: u32 = 3;

/// Discovery of a running node.
#[derive(Debug)]
pub(crate) struct NodeDiscovery {
    engine: Neighbourhood,
    sockets: DiscoverySockets,
    /// Port on which the node accepts connections of TCPCL.
    tcp_port: Option<u16>,
    /// Creation of the last announcement.
    created: CreationTimestamp,
    /// Datagrams and texts that were no announcements.
    not_understood: u64,
    /// Signed announcements that were made too long ago, or in the future.
    not_fresh: u64,
    /// A configured link leads to a neighbour that has a link, which goes.
    has_spare_link: bool,
    /// Reason why no announcement leaves.
    trouble: Option<String>,
    /// Payload that had passed over each open link to a station, and since when it is that much.
    passed: BTreeMap<LinkId, (u64, Instant)>,
    /// Links to stations that are closing because they were idle.
    idle: BTreeSet<LinkId>,
}

impl NodeDiscovery {
    /// Creates the discovery of a node that accepts connections of TCPCL on these addresses; `None` if it is off.
    ///
    /// # Errors
    /// Fails if a setting is invalid or a group cannot be used.
    pub(crate) fn new(
        config: &Config,
        listens: &[SocketAddr],
        rng: Rng,
        sockets: impl FnOnce() -> Result<DiscoverySockets, Error>,
    ) -> Result<Option<Self>, Error> {
        let Some(settings) = config.neighbourhood()? else { return Ok(None) };
        let engine = Neighbourhood::new(settings, rng).map_err(Error::from)?;
        let reachable = listens.iter().find(|address| !address.ip().is_loopback());
        Ok(Some(NodeDiscovery {
            engine,
            sockets: sockets()?,
            tcp_port: reachable.map(SocketAddr::port),
            created: CreationTimestamp::from((0, 0)),
            not_understood: 0,
            not_fresh: 0,
            has_spare_link: false,
            trouble: None,
            passed: BTreeMap::new(),
            idle: BTreeSet::new(),
        }))
    }

    /// Time of the next wake-up.
    pub(super) fn wakes_at(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    /// Timestamp of the next announcement: later than the last one.
    fn next_created(&mut self, dtn_ms: Option<u64>) -> CreationTimestamp {
        self.created = created_after(self.created, dtn_ms);
        self.created
    }
}

/// Timestamp of the announcement after one with this timestamp. A clock that was set back by so much that the others take no
/// announcement of the time before is followed at once.
fn created_after(last: CreationTimestamp, dtn_ms: Option<u64>) -> CreationTimestamp {
    let apart = u64::try_from(CLOCKS_APART_MAX.as_millis()).unwrap_or(u64::MAX);
    let time = match dtn_ms {
        Some(dtn_ms) if last.time.0 > dtn_ms.saturating_add(apart) => dtn_ms,
        Some(dtn_ms) => dtn_ms.max(last.time.0),
        None => last.time.0,
    };
    let sequence = if time == last.time.0 { last.sequence + 1 } else { 0 };
    CreationTimestamp::from((time, sequence))
}

impl Task {
    /// Begins to announce this node.
    pub(super) fn begin_discovery(&mut self, now: Instant) {
        if let Some(discovery) = &mut self.discovery {
            discovery.engine.handle_request(now, DiscoveryRequest::Join);
        }
    }

    /// Handles a datagram of a group.
    pub(super) fn hear_datagram(&mut self, now: Instant, HeardDatagram { from, bytes, .. }: HeardDatagram) {
        let Some(discovery) = &mut self.discovery else { return };
        if !discovery.engine.reads_from(now, from.ip()) {
            return;
        }
        let read = if sand::recognises(&bytes) {
            sand::bundle(&bytes).and_then(|bundle| Ok((sand::announcement(&bundle)?, Some(bundle))))
        } else {
            ipnd::Beacon::decode(&mut bytes.clone()).map(|beacon| (beacon.announcement(), None))
        };
        let Ok((announcement, bundle)) = read else {
            discovery.not_understood += 1;
            return;
        };
        let way = match announcement.tcp_port {
            Some(port) => {
                let mut address = from;
                address.set_port(port);
                Way::Tcp(address)
            }
            // The port of the socket that sent it says nothing about the node.
            None => Way::Calls((from.ip(), 0).into()),
        };
        let agent = &self.engines.upper;
        let proof = match bundle {
            Some(bundle) => agent.prove(now, &bundle),
            None if agent.known_keys().contains_key(&announcement.node) => agent::Proof::Contested,
            None => agent::Proof::None,
        };
        self.hear_announcement(now, announcement, way, proof);
    }

    /// Handles the texts that stations have sent.
    fn hear_texts(&mut self, now: Instant) {
        let Some(discovery) = &mut self.discovery else { return };
        let texts = self.engines.neighbours_mut().radios.take_texts();
        let mut read = Vec::new();
        for (tnc, heard) in texts {
            match aprs::announcement(&heard.text) {
                Ok(announcement) => read.push((tnc.0, heard.from, announcement)),
                Err(_) => discovery.not_understood += 1,
            }
        }
        for (tnc, callsign, mut announcement) in read {
            let interval = self.configuration.config.tnc.get(tnc).map(|tnc| tnc.beacon_interval);
            announcement.validity = interval.map(|interval| interval.saturating_mul(BEACON_INTERVALS));
            let is_known = self.engines.upper.known_keys().contains_key(&announcement.node);
            let proof = if is_known { Proof::Named } else { Proof::Unsigned };
            self.hear_proven(now, announcement, Way::Station { tnc, callsign }, proof);
        }
    }

    fn hear_announcement(&mut self, now: Instant, announcement: Announcement, way: Way, proof: agent::Proof) {
        if matches!(proof, agent::Proof::Known | agent::Proof::First(_))
            && !is_fresh(&announcement, self.clock.dtn_ms())
        {
            self.discovery.iter_mut().for_each(|discovery| discovery.not_fresh += 1);
            return;
        }
        let proof = match proof {
            agent::Proof::Known => Proof::Known,
            // The key is one for announcements; bundles of the node show which one is its key.
            agent::Proof::First(key) => Proof::First(key),
            agent::Proof::None => Proof::Unsigned,
            agent::Proof::Contested => Proof::Contested,
        };
        if proof == Proof::Contested && announcement.format.has_signatures() {
            self.contest(&announcement.node);
        }
        self.hear_proven(now, announcement, way, proof);
    }

    fn hear_proven(&mut self, now: Instant, announcement: Announcement, way: Way, proof: Proof) {
        let heard = HeardAnnouncement { announcement, way, proof };
        if let Some(discovery) = &mut self.discovery {
            discovery.engine.handle_indication(now, HearingIndication::Heard(heard));
        }
    }

    /// Carries out what discovery requests. Returns true if the engines have something to do.
    pub(super) fn tend_discovery(&mut self, now: Instant) -> bool {
        self.hear_texts(now);
        let Some(discovery) = &mut self.discovery else { return false };
        if discovery.engine.poll_timeout().is_some_and(|at| at <= now) {
            discovery.engine.handle_timeout(now);
        }
        let mut told = Vec::new();
        while let Some(said) = discovery.engine.poll_indication(now) {
            told.push(said);
        }
        let is_news = core::mem::take(&mut discovery.has_spare_link) || !told.is_empty();
        let mut announces = None;
        while let Some(HearingRequest::Announce { solicits }) = discovery.engine.poll_request(now) {
            announces = Some(solicits);
        }
        if let Some(solicits) = announces {
            self.announce(now, solicits);
        }
        for said in told {
            self.tell_neighbour(now, said);
        }
        if is_news {
            self.put_in_force(now, self.configuration.config.clone());
        }
        is_news
    }

    /// Sends an announcement, signed if this node has a private key.
    fn announce(&mut self, now: Instant, solicits: bool) {
        let dtn_ms = self.clock.dtn_ms();
        let Some(discovery) = &mut self.discovery else { return };
        if !discovery.sockets.announces() {
            // A node that only hears follows the interfaces that come and go, too.
            discovery.sockets.follow_interfaces();
            return;
        }
        let settings = discovery.engine.config();
        let own = sand::Own {
            node: settings.node.clone(),
            tcp_port: discovery.tcp_port,
            interval: settings.interval,
            validity: settings.validity(),
        };
        let mut bundle = own.bundle(discovery.next_created(dtn_ms), solicits);
        self.engines.upper.sign(now, &mut bundle);
        let (left, failure) = discovery.sockets.announce(&bundle.to_bytes());
        let trouble = (left == 0).then(|| match failure {
            Some(error) => format!("no announcement leaves: {error}"),
            None => "no announcement leaves: there is no network interface".to_owned(),
        });
        let left_out = discovery.sockets.left_out();
        let trouble =
            trouble.or_else(|| (left_out > 0).then(|| format!("{left_out} network interfaces are left out")));
        if let Some(trouble) = trouble.as_ref().filter(|trouble| discovery.trouble.as_ref() != Some(trouble))
        {
            let hint = "check the network; `[discovery] interfaces` and `groups` say where the node announces itself";
            tracing::warn!(target: "discovery", hint, "{trouble}");
        }
        discovery.trouble = trouble;
    }

    /// Closes the links to stations that were found and over which no bundle has passed for `discovery.idle`: a connection of
    /// AX.25 costs air time as long as it lasts. The next bundle opens it again. Links over TCP do this by themselves.
    pub(super) fn close_idle_stations(&mut self, now: Instant) {
        let Some(discovery) = &mut self.discovery else { return };
        let neighbours = self.engines.neighbours();
        let up = |id: LinkId| self.link_states.seen.get(&id).is_some_and(|seen| seen.up);
        let open: Vec<(LinkId, String, u64)> = neighbours
            .links
            .iter()
            .filter(|(id, known)| known.link.found && known.neighbour.is_some() && up(*id))
            .filter_map(|(id, known)| {
                let counts = neighbours.shown(id).unwrap_or_default().counts;
                let count = |name: &str| counts.get(name).copied().unwrap_or(0);
                let passed = count("payload_sent") + count("payload_received");
                Some((id, known.link.peer.clone()?, passed))
            })
            .collect();
        discovery.passed.retain(|id, _| open.iter().any(|(link, ..)| link == id));
        discovery.idle.retain(|id| open.iter().any(|(link, ..)| link == id));
        let mut idle = Vec::new();
        for (link, node, passed) in open {
            let (before, since) = discovery.passed.entry(link).or_insert((passed, now));
            // A window may wait for its acknowledgement for longer than an idle link stays.
            if *before != passed || self.engines.upper.sends_over(link) {
                (*before, *since) = (passed, now);
            } else if now.saturating_since(*since) >= self.configuration.config.discovery.idle {
                idle.push((link, node));
                discovery.idle.insert(link);
            }
        }
        for (link, node) in idle {
            self.ask(now, ManagementRequest::CloseLink { link });
            self.ask(now, ManagementRequest::ExpectLink { link, node });
        }
    }

    /// Reason for which a link went down: the agent has closed an idle link by request.
    pub(super) fn reason_of(&mut self, link: LinkId, reason: DownReason) -> DownReason {
        let was_idle = self.discovery.as_mut().is_some_and(|discovery| discovery.idle.remove(&link));
        if was_idle && reason == DownReason::Closed { DownReason::Idle } else { reason }
    }

    fn tell_neighbour(&mut self, now: Instant, said: DiscoveryIndication) {
        let Some(discovery) = &self.discovery else { return };
        let (DiscoveryIndication::Found(node)
        | DiscoveryIndication::Moved(node)
        | DiscoveryIndication::Lost(node)) = &said;
        let name = node.to_string();
        match (said.clone(), discovery.engine.neighbour(node)) {
            (DiscoveryIndication::Lost(_), _) => {
                tracing::info!(target: "discovery", "neighbour {name} is lost: nothing was heard from it");
                self.note(now, Event::NeighbourLost { node: name });
            }
            (_, Some(Neighbour { way, format, proof, .. })) => {
                tracing::info!(target: "discovery", "neighbour {name} found at {way} ({})", format.name());
                let (at, by) = (way.to_string(), format.name().to_owned());
                self.note(now, Event::NeighbourFound { node: name, at, by, signed: proof.is_signed() });
            }
            (_, None) => {}
        }
    }

    /// Links to the neighbours, for nodes to which the configuration has none.
    pub(super) fn found_links(&self, config: &Config) -> Vec<LinkSettings> {
        let neighbours = self.discovery.iter().flat_map(|discovery| discovery.engine.neighbours());
        let mut links: Vec<LinkSettings> = Vec::new();
        let led_to = self.nodes_of_configured_links();
        for (node, neighbour) in neighbours.filter(|(node, _)| !led_to.contains_key(node)) {
            let Some(mut link) = config.found_link(node, &neighbour.way) else { continue };
            if let Way::Tcp(address) = neighbour.way {
                link.amateur |= self.engines.neighbours().is_amateur_address(address.ip());
            }
            if links.iter().all(|other| other.name != link.name) && config.plan(&link).is_ok() {
                links.push(link);
            }
        }
        links
    }

    /// Notes that a link has come up: a configured one takes the place of the one to the same neighbour.
    pub(super) fn spare_links_beside(&mut self, link: LinkId, peer: &str) {
        let known = self.engines.neighbours().links.get(link);
        if known.is_none_or(|known| known.link.found) {
            return;
        }
        let Some(discovery) = &mut self.discovery else { return };
        let is_neighbour = |node: Eid| discovery.engine.neighbour(&node).is_some();
        discovery.has_spare_link |= agent::parse_node(peer).is_some_and(is_neighbour);
    }

    /// Nodes at the other ends of configured links, which need not name them, and these links.
    fn nodes_of_configured_links(&self) -> BTreeMap<Eid, &str> {
        let configured = self.engines.neighbours().links.iter().filter(|(_, known)| !known.link.found);
        let led_to = configured.filter_map(|(id, known)| {
            let node = self.link_states.seen.get(&id)?.led_to.as_deref()?;
            Some((agent::parse_node(node)?, &*known.link.name))
        });
        led_to.collect()
    }

    /// All neighbours: those without a port to call have no link, and call by themselves.
    pub(super) fn discovered_nodes(&self) -> BTreeSet<Eid> {
        let neighbours = self.discovery.iter().flat_map(|discovery| discovery.engine.neighbours());
        neighbours.map(|(node, _)| node.clone()).collect()
    }

    /// Takes over the rule for neighbours of a reloaded configuration, if discovery is on.
    pub(super) fn admit_neighbours(&mut self, now: Instant) {
        let admission = self.configuration.config.discovered();
        let configured = self.configuration.config.configured_nodes();
        if let (Some(discovery), Some(admission)) = (&mut self.discovery, admission) {
            let known = discovery.engine.config();
            if known.admission != admission || known.configured != configured {
                discovery.engine.handle_request(now, DiscoveryRequest::Admit { admission, configured });
            }
        }
    }

    pub(super) fn discovery_view(&self, now: Instant) -> Option<view::Discovery> {
        let discovery = self.discovery.as_ref()?;
        let mut counters = view::counts(&discovery.engine.counters());
        counters.insert("not_understood".to_owned(), discovery.not_understood);
        counters.insert("not_fresh".to_owned(), discovery.not_fresh);
        let neighbours = discovery.engine.neighbours();
        Some(view::Discovery {
            neighbours: neighbours
                .map(|(node, neighbour)| self.neighbour_view(now, node, &neighbour))
                .collect(),
            counters,
            trouble: discovery.trouble.clone(),
        })
    }

    fn neighbour_view(&self, now: Instant, node: &Eid, neighbour: &Neighbour) -> view::Neighbour {
        let seconds = |time: Duration| time.as_secs_f64();
        let leads_there = |link: &&LinkSettings| {
            link.peer.as_ref().is_some_and(|peer| peer.parse::<Eid>().is_ok_and(|peer| peer == *node))
        };
        let named = self.configuration.config.link.iter().find(leads_there).map(|link| &*link.name);
        let link = named.or_else(|| self.nodes_of_configured_links().get(node).copied());
        view::Neighbour {
            node: node.to_string(),
            by: neighbour.format.name().to_owned(),
            at: neighbour.way.to_string(),
            signed: neighbour.proof.is_signed(),
            contested: neighbour.contested,
            ways: neighbour.ways as u64,
            link: link.map(str::to_owned),
            since_s: seconds(now.saturating_since(neighbour.since)),
            last_s: seconds(now.saturating_since(neighbour.last)),
        }
    }
}

/// False for an announcement that was made long ago or in the future, by the clock of this node: someone may have recorded it.
/// Without a clock at one of the nodes all count.
fn is_fresh(announcement: &Announcement, dtn_ms: Option<u64>) -> bool {
    let (Some(created), Some(dtn_ms)) = (announcement.created, dtn_ms) else { return true };
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let apart = milliseconds(CLOCKS_APART_MAX);
    let valid = milliseconds(announcement.validity.unwrap_or_default());
    let earliest = dtn_ms.saturating_sub(valid.saturating_add(apart));
    (earliest..=dtn_ms.saturating_add(apart)).contains(&created.time.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::discovery::Format;

    #[test]
    fn an_announcement_that_someone_has_recorded_is_of_no_use_later() {
        let made: i64 = 800_000_000_000;
        let announcement = |created: Option<u64>| Announcement {
            format: Format::Sand,
            node: "dtn://bob/".parse().expect("a node ID"),
            created: created.map(|time| (time, 0).into()),
            validity: Some(Duration::from_secs(90)),
            tcp_port: None,
            solicits: false,
        };
        for (later_s, fresh) in
            [(0, true), (389, true), (391, false), (86_400, false), (-299, true), (-301, false)]
        {
            let now = made + later_s * 1000;
            let dtn_ms = u64::try_from(now).expect("after 2000");
            let recorded = announcement(Some(made as u64));
            assert_eq!(is_fresh(&recorded, Some(dtn_ms)), fresh, "{later_s} s");
        }
        assert!(is_fresh(&announcement(None), Some(1)) && is_fresh(&announcement(Some(1)), None));
    }

    #[test]
    fn timestamps_of_announcements_grow_and_follow_a_clock_that_is_set_right() {
        let day_ms = 86_400_000;
        let after = |time: u64, sequence, dtn_ms| created_after((time, sequence).into(), dtn_ms);
        assert_eq!(after(1000, 0, Some(2000)), (2000, 0).into());
        assert_eq!(after(2000, 0, Some(2000)), (2000, 1).into());
        // A clock that goes back by less than others tolerate, or is lost.
        assert_eq!(after(2_000_000, 1, Some(1_800_000)), (2_000_000, 2).into());
        assert_eq!(after(2000, 2, None), (2000, 3).into());
        // After a jump of two days into the future.
        assert_eq!(after(3 * day_ms, 7, Some(day_ms)), (day_ms, 0).into());
    }
}
