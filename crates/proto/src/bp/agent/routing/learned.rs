//! Routes that are learned from announcements: link-state routing ([`dtlsr`](super::dtlsr)) with its bundles and its deadline.
//!
//! An announcement is an administrative record in a bundle to the neighbour, which goes over a link to this neighbour whatever
//! routes there are. When the neighbour leaves, the bundle is removed: the neighbour gets all announcements when it is back.

use crate::bp::Eid;
use crate::codec::DecodeError;
use crate::rng::Rng;
use crate::service::{BundleVersion, LinkId, Priority, RecordId};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

use super::super::Agent;
use super::super::accounts::NeighbourNumber;
use super::super::clock::DeadlineKind;
use super::super::config::{RouterKind, RoutingConfig};
use super::super::delivery::PayloadId;
use super::super::status::LearnedRoute;
use super::dtlsr::{LinkState, Path};
use super::{Hop, Hops, Routing};

/// Upper bound of the first sequence number of a node without a clock, so that it rarely is one from before a restart.
const FIRST_SEQUENCE_MAX: u64 = 1 << 16;

/// Link-state routing of an agent.
#[derive(Debug)]
pub(in super::super) struct Learned {
    state: LinkState,
    /// Bundles with announcements that are under way, by the neighbour to which they go.
    under_way: BTreeMap<RecordId, Eid>,
    /// Deadline that is set.
    due: Option<Instant>,
    /// A link has come up or gone down.
    links_changed: bool,
    /// Something happened since the last look.
    touched: bool,
}

impl Learned {
    /// Link-state routing if the settings require it.
    pub(in super::super) fn for_router(settings: &RoutingConfig, node: &Eid, mut rng: Rng) -> Option<Self> {
        (settings.router == RouterKind::Dtlsr).then(|| Learned {
            state: LinkState::new(node.clone(), settings.clone(), rng.below(FIRST_SEQUENCE_MAX)),
            under_way: BTreeMap::new(),
            due: None,
            links_changed: false,
            touched: false,
        })
    }
}

impl Routing {
    /// Neighbour to which a bundle with announcements goes.
    pub(super) fn addressee(&self, record: RecordId) -> Option<&Eid> {
        self.learned.as_ref()?.under_way.get(&record)
    }

    /// Next hop towards an endpoint according to the announcements, other than the node that the bundle came from.
    pub(in super::super) fn learned_hop(&mut self, destination: &Eid, previous: Option<&Eid>) -> Option<Hop> {
        let learned = self.learned.as_mut().filter(|_| destination.is_singleton())?;
        Some(Hop::Node(learned.state.path(&destination.node_id(), previous)?.next))
    }

    /// True if a bundle that follows a learned path, and has been here since this time, may go back where it came from.
    pub(super) fn may_return(&self, since: Instant) -> bool {
        self.learned.as_ref().is_some_and(|learned| learned.state.may_return(since))
    }

    /// True if a path to this node is known from the announcements.
    pub(in super::super) fn has_path(&self, node: &Eid) -> bool {
        self.learned.as_ref().is_some_and(|learned| learned.state.paths().contains_key(&node.node_id()))
    }

    /// Every node to which a path is known.
    pub(in super::super) fn learned_routes(&self, now: Instant) -> Vec<LearnedRoute> {
        let Some(learned) = &self.learned else { return Vec::new() };
        let state = &learned.state;
        let route = |(node, path): (&Eid, &Path)| LearnedRoute {
            node: node.clone(),
            next: path.next.clone(),
            delay: Duration::from_millis(path.delay_ms),
            wait: state.expected_wait_ms(now, &path.next).map(Duration::from_millis),
            announced: state.age_ms(now, node).map(Duration::from_millis),
            links: state.links_of(now, node),
        };
        state.paths().iter().map(route).collect()
    }

    /// Neighbour that is the only one of these hops and is down, and the expected wait for it.
    pub(in super::super) fn expected_contact(&self, now: Instant, hops: &Hops) -> Option<(Eid, Duration)> {
        let [(_, Hop::Node(node))] = &hops[..] else { return None };
        let wait_ms = self.learned.as_ref()?.state.expected_wait_ms(now, node)?;
        Some((node.clone(), Duration::from_millis(wait_ms)))
    }
}

impl Agent {
    /// Notes that a link came up or went down.
    pub(super) fn links_changed(&mut self) {
        if let Some(learned) = &mut self.routing.learned {
            (learned.links_changed, learned.touched) = (true, true);
        }
    }

    /// Notes that a bundle was removed.
    pub(in super::super) fn record_left(&mut self, record: RecordId) {
        let Some(learned) = &mut self.routing.learned else { return };
        if let Some(neighbour) = learned.under_way.remove(&record) {
            learned.state.sent(&neighbour);
            learned.touched = true;
            // The bundle may also be removed while requests are polled.
            self.set_announcement_deadline(Some(Instant::ZERO));
        }
    }

    /// Notes that the deadline of link-state routing has passed.
    pub(in super::super) fn announcements_due(&mut self) {
        if let Some(learned) = &mut self.routing.learned {
            (learned.due, learned.touched) = (None, true);
        }
    }

    /// Handles a record with announcements, which is this payload. It counts only if a neighbour sent it over its own link.
    pub(in super::super) fn hear_announcements(
        &mut self,
        now: Instant,
        content: &Bytes,
        source: &Eid,
        id: PayloadId,
    ) {
        let Some(learned) = &mut self.routing.learned else {
            self.counters.announcements_ignored += 1;
            return;
        };
        learned.touched = true;
        self.counters.announcements_heard += 1;
        let (source, over) = (source.node_id(), self.came_over(id));
        let is_from_source =
            |link: &LinkId| self.links.peer(*link).is_some_and(|peer| peer.same_node(&source));
        let trusted = !over.is_empty() && over.iter().all(is_from_source);
        let Some(learned) = self.routing.learned.as_mut().filter(|_| trusted) else {
            self.counters.announcements_not_believed += 1;
            return;
        };
        match learned.state.hear(now, &source, content) {
            Ok(heard) => {
                self.counters.announcements_new += heard.news;
                self.counters.announcements_refused += heard.refused;
            }
            Err(DecodeError::Unsupported { .. }) => self.counters.announcements_ignored += 1,
            Err(_) => self.counters.announcements_not_believed += 1,
        }
    }

    /// Lets link-state routing do what is due, after each input that may concern it.
    pub(in super::super) fn tend_announcements(&mut self, now: Instant) {
        let is_touched = self.routing.learned.as_ref().is_some_and(|learned| learned.touched);
        if !is_touched || !self.is_ready() {
            return;
        }
        let connected = self.connected_nodes(now);
        let dtn_ms = self.time.clock.dtn_ms(now);
        let learned = self.routing.learned.as_mut().expect("it was just found");
        learned.touched = false;
        if core::mem::take(&mut learned.links_changed) {
            learned.state.set_neighbours(now, &connected);
            let state = &learned.state;
            let gone = learned.under_way.iter().filter(|(_, to)| !state.is_connected(to));
            let gone: Vec<RecordId> = gone.map(|(record, _)| *record).collect();
            gone.into_iter().for_each(|record| self.drop_bundle(record));
        }
        let learned = self.routing.learned.as_mut().expect("it was just found");
        learned.state.handle_timeout(now, dtn_ms);
        let rerouted = learned.state.take_rerouted();
        self.send_announcements(now);
        if rerouted {
            self.reroute_all(now);
        }
        let next = self.routing.learned.as_ref().and_then(|learned| learned.state.poll_timeout());
        self.set_announcement_deadline(next);
    }

    /// Delays over the links that are up to each node that is connected, the least for each, milliseconds. A link that is idle
    /// counts: a bundle brings it up.
    fn connected_nodes(&self, now: Instant) -> BTreeMap<Eid, u64> {
        let dtn_ms = self.time.clock.dtn_ms(now);
        let mut connected: BTreeMap<Eid, u64> = BTreeMap::new();
        for (_, link) in self.links.iter() {
            let Some(node) = link.reaches() else { continue };
            let delay_ms = link.expected_delay_ms(dtn_ms);
            let least = connected.entry(node.clone()).or_insert(delay_ms);
            *least = delay_ms.min(*least);
        }
        connected
    }

    /// Makes bundles of the records for the neighbours.
    fn send_announcements(&mut self, now: Instant) {
        let lifetime = self.config.routing.forget_after;
        while let Some((to, payload)) =
            self.routing.learned.as_mut().and_then(|learned| learned.state.poll_record(now))
        {
            let about = (BundleVersion::V7, to.clone(), payload);
            let record =
                self.originate_record(now, NeighbourNumber::UNKNOWN, about, lifetime, Priority::Expedited);
            let learned = self.routing.learned.as_mut().expect("it was just found");
            match record {
                Some(record) => {
                    self.counters.announcements_sent += 1;
                    learned.under_way.insert(record, to);
                }
                None => {
                    self.counters.announcements_unsent += 1;
                    learned.state.sent(&to);
                }
            }
        }
    }

    fn set_announcement_deadline(&mut self, next: Option<Instant>) {
        let Some(learned) = &mut self.routing.learned else { return };
        let old = core::mem::replace(&mut learned.due, next);
        if old != next {
            old.into_iter().for_each(|at| self.time.deadlines.not_at(at, DeadlineKind::Announcements));
            next.into_iter().for_each(|at| self.time.deadlines.at(at, DeadlineKind::Announcements));
        }
    }
}
