//! Delay-tolerant link-state routing (DTLSR; M. Demmer and K. Fall, NSDR 2007).
//!
//! Each node announces its links, every node passes the announcements on, and computes from all of them the path of least
//! expected delay to every other node. A link that is down stays in the graph, with the expected wait for it: so there are
//! routes over links that are down now, and a bundle waits at the node from which it is expected to arrive first.
//!
//! ```text
//!    neighbours up, down      announcements of others           time
//!             |                        |                          |
//!             v                        v                          v
//!       own announcement ---> newest of each origin ---> graph ---> paths: next node, expected delay
//!     (on change, every hour)          |                 (links that are down cost the wait for them)
//!                                      v
//!                    records for the neighbours, one at a time each
//! ```
//!
//! - *Flooding.* What is newer than what is known is owed to all other neighbours; a neighbour that comes up is owed everything.
//!   A neighbour has one record under way at a time, and gets the next one after the hold-down at the earliest, so that changes in the
//!   meantime go together. Records are not acknowledged: the next announcement replaces one that was lost.
//! - *Newer* is the higher sequence number: the DTN time in milliseconds, or one more than the last. A node that is told of an
//!   announcement of its own that it does not know, because it has restarted, announces its links under a higher number.
//! - *Ageing.* An announcement carries its age, to which every node adds the time for which it kept it; at `forget-after` it is
//!   forgotten everywhere. The time on links is not counted: clocks of neighbours may differ by more than that.
//! - *Expected delay.* Up: 1 s for a node to store and forward a bundle, the delay of the link, and 10,000 bytes at its rate. Down:
//!   that, and the usual length of the outages of this link, or if it has been down for longer, the time that it has been down and
//!   5 s; at most a day. DTN2 has only the second half of that, and the length of the queues, which an announcement each hour cannot
//!   follow.
//! - *Loops.* Nodes with the same announcements send a bundle nearer to its destination each time. While they differ, a bundle may
//!   go round; it goes back to the node that it came from only after a minute.
//! - *Trust.* An announcement counts only if a neighbour itself sends it over its own link, and never about this node or its own
//!   links. A neighbour may still say anything about other nodes, because announcements are not signed.
//! - *Limits.* The number of nodes, of links of a node and of bytes of an announcement. When all places are taken, an origin that is
//!   new takes the place of one of the neighbour that brought most, or has none if it is of that neighbour.
//!
//! Not implemented: administrative areas and announcements of endpoints other than nodes, which the original has; agreement of both
//! ends about a link, because links with only one direction exist; storage of the announcements over a restart, because the
//! neighbours have them.
//!
//! Delays in milliseconds; lengths in bytes.

mod announcement;
mod neighbour;
mod paths;
#[cfg(test)]
mod tests;

pub(in super::super) use announcement::RECORD_TYPE;
pub(in super::super) use paths::Path;

use crate::bp::Eid;
use crate::bp::agent::clock::millis;
use crate::codec::DecodeError;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

use super::super::config::RoutingConfig;
use super::super::status::LearnedLink;
use announcement::{AnnouncedLink, Announcement, DELAY_MAX_MS, LINKS_MAX, Outage, SEQUENCE_MAX};
use neighbour::{Neighbour, expected_wait_ms};
use paths::{Graph, shortest};

/// Time for a node to store and forward a bundle, milliseconds.
const NODE_MS: u64 = 1000;
/// Length of the bundle for which delays are computed, bytes.
const BUNDLE_BYTES: u64 = 10_000;
/// Minimum interval between computations of the paths.
const COMPUTE_MIN: Duration = Duration::from_secs(1);
/// Interval between computations while a link is down, because the wait for it grows.
const COMPUTE_EVERY: Duration = Duration::from_secs(60);
/// Time after which a bundle may go back to the node that it came from.
const RETURN_AFTER: Duration = Duration::from_secs(60);

/// Delay of a bundle over a link that is up, milliseconds: `rate_bps` in bit/s, zero if unknown; `delay_ms` one way.
pub(in super::super) fn delay_over_ms(rate_bps: u64, delay_ms: u64) -> u64 {
    let sending_ms = (BUNDLE_BYTES * 8000).checked_div(rate_bps).unwrap_or(0);
    NODE_MS.saturating_add(sending_ms).saturating_add(delay_ms).min(DELAY_MAX_MS)
}

/// Results of a record from a neighbour: numbers of announcements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Heard {
    /// Newer than what was known.
    pub(in super::super) news: u64,
    /// Of new origins without a place.
    pub(in super::super) refused: u64,
}

/// Newest announcement of another node.
#[derive(Debug)]
struct Known {
    announcement: Announcement,
    heard_at: Instant,
    /// Neighbour that brought it.
    from: Eid,
}

impl Known {
    /// Age of the announcement, milliseconds.
    fn age_ms(&self, now: Instant) -> u64 {
        self.announcement.age_ms.saturating_add(millis(now.saturating_since(self.heard_at)))
    }
}

/// Link-state routing of a node.
#[derive(Debug)]
pub(in super::super) struct LinkState {
    node: Eid,
    settings: RoutingConfig,
    neighbours: BTreeMap<Eid, Neighbour>,
    known: BTreeMap<Eid, Known>,
    /// Sequence number of the latest own announcement.
    sequence: u64,
    announced_at: Option<Instant>,
    /// The own links have changed since then.
    changed: bool,
    paths: BTreeMap<Eid, Path>,
    /// Paths that do not begin with a neighbour, for bundles that came from it.
    detours: BTreeMap<Eid, BTreeMap<Eid, Path>>,
    computed_at: Option<Instant>,
    /// The graph has changed since then.
    stale: bool,
    rerouted: bool,
}

impl LinkState {
    /// Routing of a node without neighbours, which numbers its announcements from `first` if it has no clock.
    pub(in super::super) fn new(node: Eid, settings: RoutingConfig, first: u64) -> Self {
        LinkState {
            node,
            settings,
            neighbours: BTreeMap::new(),
            known: BTreeMap::new(),
            sequence: first,
            announced_at: None,
            changed: false,
            paths: BTreeMap::new(),
            detours: BTreeMap::new(),
            computed_at: None,
            stale: false,
            rerouted: false,
        }
    }

    /// Handles the set of neighbours that are connected, with the delays of their links in milliseconds.
    pub(in super::super) fn set_neighbours(&mut self, now: Instant, connected: &BTreeMap<Eid, u64>) {
        for (node, neighbour) in &mut self.neighbours {
            if neighbour.up && !connected.contains_key(node) {
                neighbour.go_down(now);
                self.changed = true;
            }
        }
        for (node, &delay_ms) in connected {
            self.connected(now, node, delay_ms);
        }
        self.stale |= self.changed;
    }

    fn connected(&mut self, now: Instant, node: &Eid, delay_ms: u64) {
        let is_new = match self.neighbours.get_mut(node) {
            Some(neighbour) if neighbour.up => {
                self.changed |= core::mem::replace(&mut neighbour.delay_ms, delay_ms) != delay_ms;
                return;
            }
            Some(neighbour) => {
                neighbour.come_up(now, delay_ms);
                false
            }
            None => true,
        };
        if is_new {
            if self.neighbours.len() >= LINKS_MAX && !self.forget_a_neighbour() {
                return;
            }
            self.neighbours.insert(node.detached(), Neighbour::new(now, delay_ms));
        }
        self.changed = true;
        let everything = self.known.keys().chain([&self.node]).cloned().collect();
        self.neighbours.get_mut(node).expect("it was just found or added").owed = everything;
    }

    /// Makes room for another neighbour: that which has been down longest. Returns false if all are up.
    fn forget_a_neighbour(&mut self) -> bool {
        let down = self.neighbours.iter().filter(|(_, neighbour)| !neighbour.up);
        let longest = down.min_by_key(|(_, neighbour)| neighbour.since).map(|(node, _)| node.clone());
        longest.is_some_and(|node| self.neighbours.remove(&node).is_some())
    }

    /// Handles the content of a record that a neighbour has sent.
    ///
    /// # Errors
    /// Fails if the record is of another version or not valid; nothing of it counts then.
    pub(in super::super) fn hear(
        &mut self,
        now: Instant,
        from: &Eid,
        content: &Bytes,
    ) -> Result<Heard, DecodeError> {
        let mut heard = Heard::default();
        for announcement in announcement::decode(content)? {
            if announcement.origin == self.node {
                self.hear_own(announcement.sequence);
            } else if self.is_news(&announcement) {
                if self.make_place(now, &announcement.origin, from) {
                    heard.news += 1;
                    self.learn(now, from, announcement);
                } else {
                    heard.refused += 1;
                }
            } else {
                self.not_owed(from, &announcement);
            }
        }
        Ok(heard)
    }

    /// Handles an own announcement that came back. It is never believed: one that is newer than the latest is from before a
    /// restart, or forged, and a newer one replaces it.
    fn hear_own(&mut self, sequence: u64) {
        if sequence > self.sequence {
            self.sequence = sequence;
            self.changed = true;
        }
    }

    /// Notes that a neighbour has an announcement already if it is the one that is known here.
    fn not_owed(&mut self, neighbour: &Eid, announcement: &Announcement) {
        let origin = &announcement.origin;
        let is_same = |known: &Known| known.announcement.sequence == announcement.sequence;
        if self.known.get(origin).is_some_and(is_same)
            && let Some(neighbour) = self.neighbours.get_mut(neighbour)
        {
            neighbour.owed.remove(origin);
        }
    }

    fn is_news(&self, announcement: &Announcement) -> bool {
        let known = self.known.get(&announcement.origin).map(|known| known.announcement.sequence);
        known.is_none_or(|known| announcement.sequence > known)
            && announcement.age_ms < millis(self.settings.forget_after)
    }

    /// Makes a place for an origin that this neighbour brings. Returns false if there is none.
    fn make_place(&mut self, now: Instant, origin: &Eid, from: &Eid) -> bool {
        if self.known.len() < self.settings.nodes_max || self.known.contains_key(origin) {
            return true;
        }
        let mut brought: BTreeMap<&Eid, usize> = BTreeMap::new();
        self.known.values().for_each(|known| *brought.entry(&known.from).or_default() += 1);
        let share = brought.get(from).copied().unwrap_or(0);
        let Some((most, count)) = brought.into_iter().max_by_key(|(_, count)| *count) else { return false };
        if share + 1 >= count {
            return false;
        }
        let of_most = self.known.iter().filter(|(_, known)| known.from == *most);
        let oldest = of_most.max_by_key(|(_, known)| known.age_ms(now)).map(|(origin, _)| origin.clone());
        oldest.is_some_and(|oldest| self.forget(&oldest))
    }

    fn learn(&mut self, now: Instant, from: &Eid, announcement: Announcement) {
        for (node, neighbour) in &mut self.neighbours {
            if node == from {
                neighbour.owed.remove(&announcement.origin);
            } else if neighbour.up {
                neighbour.owed.insert(announcement.origin.clone());
            }
        }
        self.stale = true;
        let origin = announcement.origin.clone();
        self.known.insert(origin, Known { announcement, heard_at: now, from: from.detached() });
    }

    /// Forgets what an origin announced.
    fn forget(&mut self, origin: &Eid) -> bool {
        for neighbour in self.neighbours.values_mut() {
            neighbour.owed.remove(origin);
        }
        self.stale = true;
        self.known.remove(origin).is_some()
    }

    /// Does what is due: forgets, announces, computes the paths. `dtn_ms` is the DTN time, if it is known.
    pub(in super::super) fn handle_timeout(&mut self, now: Instant, dtn_ms: Option<u64>) {
        let too_old = millis(self.settings.forget_after);
        let old: Vec<Eid> = self
            .known
            .iter()
            .filter(|(_, known)| known.age_ms(now) >= too_old)
            .map(|(origin, _)| origin.clone())
            .collect();
        for origin in &old {
            self.forget(origin);
        }
        let before = self.neighbours.len();
        let forget_after = self.settings.forget_after;
        self.neighbours.retain(|_, neighbour| neighbour.up || now < neighbour.since + forget_after);
        if self.neighbours.len() < before {
            (self.changed, self.stale) = (true, true);
        }
        if self.announces_at().is_some_and(|at| at <= now) {
            self.announce(now, dtn_ms);
        }
        if self.computes_at().is_some_and(|at| at <= now) {
            self.compute(now);
        }
    }

    /// Time of the next own announcement.
    fn announces_at(&self) -> Option<Instant> {
        let wait = if self.changed { self.settings.announce_hold_down } else { self.settings.announce_every };
        match self.announced_at {
            Some(at) => (self.changed || !self.neighbours.is_empty()).then(|| at + wait),
            None => self.changed.then_some(Instant::ZERO),
        }
    }

    fn announce(&mut self, now: Instant, dtn_ms: Option<u64>) {
        self.sequence = (self.sequence + 1).max(dtn_ms.unwrap_or(0)).min(SEQUENCE_MAX);
        self.announced_at = Some(now);
        self.changed = false;
        for neighbour in self.neighbours.values_mut().filter(|neighbour| neighbour.up) {
            neighbour.owed.insert(self.node.clone());
        }
    }

    /// Own announcement as of now, with as many links as fit: those in order of their expected delay.
    fn own(&self, now: Instant) -> Announcement {
        let mut nearest: Vec<(&Eid, &Neighbour)> = self.neighbours.iter().collect();
        nearest.sort_by_key(|(_, neighbour)| neighbour.expected_ms(now));
        let link = |(to, neighbour): (&Eid, &Neighbour)| AnnouncedLink {
            to: to.clone(),
            delay_ms: neighbour.delay_ms,
            outage: neighbour.outage(now),
        };
        let links = nearest.into_iter().map(link).collect();
        let mut own = Announcement { origin: self.node.clone(), sequence: self.sequence, age_ms: 0, links };
        while !announcement::fits(&own) && own.links.pop().is_some() {}
        own
    }

    /// Announcement of an origin as of now.
    fn announcement(&self, now: Instant, origin: &Eid) -> Option<Announcement> {
        if *origin == self.node {
            return Some(self.own(now));
        }
        let known = self.known.get(origin)?;
        Some(Announcement { age_ms: known.age_ms(now), ..known.announcement.clone() })
    }

    /// Returns an administrative record for a neighbour. It is under way until [`LinkState::sent`].
    pub(in super::super) fn poll_record(&mut self, now: Instant) -> Option<(Eid, Bytes)> {
        let due = |(_, neighbour): &(&Eid, &Neighbour)| self.tells_at(neighbour).is_some_and(|at| at <= now);
        let to = self.neighbours.iter().find(due)?.0.clone();
        let owed: Vec<Eid> =
            self.neighbours[&to].owed.iter().filter(|origin| self.is_final(origin)).cloned().collect();
        let (record, count) =
            announcement::record(owed.iter().filter_map(|origin| self.announcement(now, origin)));
        let neighbour = self.neighbours.get_mut(&to).expect("it was just found");
        for origin in &owed[..count] {
            neighbour.owed.remove(origin);
        }
        (neighbour.busy, neighbour.told_at) = (true, Some(now));
        Some((to, record))
    }

    /// False for the own announcement while a newer one is about to replace it.
    fn is_final(&self, origin: &Eid) -> bool {
        *origin != self.node || !self.changed
    }

    /// Time at which a neighbour can be sent a record; `None` if there is none for it.
    fn tells_at(&self, neighbour: &Neighbour) -> Option<Instant> {
        let owes =
            neighbour.up && !neighbour.busy && neighbour.owed.iter().any(|origin| self.is_final(origin));
        owes.then(|| neighbour.told_at.map_or(Instant::ZERO, |at| at + self.settings.announce_hold_down))
    }

    /// Handles the end of the record that was under way to a neighbour, whether it arrived or not.
    pub(in super::super) fn sent(&mut self, to: &Eid) {
        if let Some(neighbour) = self.neighbours.get_mut(to) {
            neighbour.busy = false;
        }
    }

    /// True if this neighbour is connected.
    pub(in super::super) fn is_connected(&self, node: &Eid) -> bool {
        self.neighbours.get(node).is_some_and(|neighbour| neighbour.up)
    }

    /// Time of the next action.
    pub(in super::super) fn poll_timeout(&self) -> Option<Instant> {
        let tells = self.neighbours.values().filter_map(|neighbour| self.tells_at(neighbour));
        let forgets = self.known.values().map(|known| {
            let left_ms = millis(self.settings.forget_after).saturating_sub(known.announcement.age_ms);
            known.heard_at + Duration::from_millis(left_ms)
        });
        let leaves = self.neighbours.values().filter(|neighbour| !neighbour.up);
        let leaves = leaves.map(|neighbour| neighbour.since + self.settings.forget_after);
        let single = self.announces_at().into_iter().chain(self.computes_at());
        tells.chain(forgets).chain(leaves).chain(single).min()
    }

    /// Time of the next computation of the paths.
    fn computes_at(&self) -> Option<Instant> {
        let links = self.known.values().flat_map(|known| &known.announcement.links);
        let down = self.neighbours.values().any(|neighbour| !neighbour.up)
            || links.into_iter().any(|link| link.outage.is_some());
        match self.computed_at {
            None => self.stale.then_some(Instant::ZERO),
            Some(at) if self.stale => Some(at + COMPUTE_MIN),
            Some(at) => down.then(|| at + COMPUTE_EVERY),
        }
    }

    fn compute(&mut self, now: Instant) {
        let paths = shortest(&self.graph(now), &self.node, None);
        let old = self.paths.iter().map(|(node, path)| (node, &path.next));
        let changed = !old.eq(paths.iter().map(|(node, path)| (node, &path.next)));
        // A bundle that was kept from going back may do so after a while.
        self.rerouted |= changed || !self.detours.is_empty();
        self.paths = paths;
        self.detours.clear();
        (self.computed_at, self.stale) = (Some(now), false);
    }

    /// All links that are known, with their expected delays now. Of the own links, this node itself knows the state.
    fn graph(&self, now: Instant) -> Graph<'_> {
        let mut graph = Graph::new();
        let own = self.neighbours.iter().map(|(to, neighbour)| (to, neighbour.expected_ms(now)));
        graph.insert(&self.node, own.collect());
        for (origin, known) in &self.known {
            let age_ms = known.age_ms(now);
            let links = known.announcement.links.iter();
            graph.insert(origin, links.map(|link| (&link.to, link.expected_ms(age_ms))).collect());
        }
        graph
    }

    /// Path of least expected delay to a node that does not begin with the neighbour `avoided`.
    pub(in super::super) fn path(&mut self, to: &Eid, avoided: Option<&Eid>) -> Option<Path> {
        let best = self.paths.get(to)?;
        let Some(avoided) = avoided.filter(|avoided| **avoided == best.next) else {
            return Some(best.clone());
        };
        if !self.detours.contains_key(avoided) {
            // As of the same time as the other paths.
            let at = self.computed_at.expect("there are paths");
            let detours = shortest(&self.graph(at), &self.node, Some(avoided));
            self.detours.insert(avoided.clone(), detours);
        }
        self.detours[avoided].get(to).cloned()
    }

    /// Paths to all nodes that can be reached.
    pub(in super::super) fn paths(&self) -> &BTreeMap<Eid, Path> {
        &self.paths
    }

    /// True if a bundle that has been here since this time may go back to the node that it came from. With the same
    /// announcements no path leads back; with others, two nodes exchange a bundle no more often than that.
    pub(in super::super) fn may_return(&self, since: Instant) -> bool {
        self.computed_at.is_some_and(|at| at >= since + RETURN_AFTER)
    }

    /// Returns true if bundles must be routed again, because paths have changed since this was last asked.
    pub(in super::super) fn take_rerouted(&mut self) -> bool {
        core::mem::take(&mut self.rerouted)
    }

    /// Age of the latest announcement of a node, milliseconds; `None` if there is none.
    pub(in super::super) fn age_ms(&self, now: Instant, origin: &Eid) -> Option<u64> {
        self.known.get(origin).map(|known| known.age_ms(now))
    }

    /// Links that a node has announced.
    pub(in super::super) fn links_of(&self, now: Instant, origin: &Eid) -> Vec<LearnedLink> {
        let Some(known) = self.known.get(origin) else { return Vec::new() };
        let age_ms = known.age_ms(now);
        let link = |link: &AnnouncedLink| LearnedLink {
            to: link.to.clone(),
            delay: Duration::from_millis(link.expected_ms(age_ms)),
            down: link.outage.map(|outage| Duration::from_millis(outage.down_ms.saturating_add(age_ms))),
        };
        known.announcement.links.iter().map(link).collect()
    }

    /// Expected wait for a neighbour that is down, milliseconds; `None` if it is up or unknown.
    pub(in super::super) fn expected_wait_ms(&self, now: Instant, node: &Eid) -> Option<u64> {
        self.neighbours.get(node)?.outage(now).map(expected_wait_ms)
    }
}

impl AnnouncedLink {
    /// Expected delay of a bundle over the link when its announcement has this age, milliseconds.
    fn expected_ms(&self, age_ms: u64) -> u64 {
        let wait = self.outage.map_or(0, |outage| {
            let down_ms = outage.down_ms.saturating_add(age_ms);
            expected_wait_ms(Outage { down_ms, ..outage })
        });
        wait + self.delay_ms
    }
}
