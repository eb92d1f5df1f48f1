//! Links: their state, their peers, and their contact windows.
//!
//! ```text
//!      OpenLink: Connect                Up
//!   unwanted --------> connecting ------------------> up
//!  ^                  ^  ^        Down, retry      |
//!  | CloseLink: Close |  '-------------------------|
//!  |                  | after a wait; an idle      | Down, no retry
//!  |                  | link when a bundle needs it|
//!  '------------------'---------- dormant <--------'
//! ```
//!
//! A link that is expected begins idle, and is idle again whenever it goes down and is not retried. A link opened by a peer exists from `Up` to `Down`. Contact windows are in DTN time: without a clock they are ignored, and
//! only the indications of the link count.

use crate::bp::Eid;
use crate::kit::{OrderedMap, remove_from};
use crate::service::{
    BundlesIndication, BundlesRequest, Contact, DownReason, LinkId, ManagementIndication, TransferId,
};
use crate::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Agent;
use super::accounts::NeighbourNumber;
use super::clock::{Clock, DeadlineKind};
use super::config::LinkConfig;
use super::custody::RoundTrip;
use super::outgoing::OutgoingTransfer;
use super::quirks::PeerQuirks;
use super::routing::{Hop, dtlsr};
use super::secret::{NumberKind, Secret};

/// Link.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// The operator has requested the link.
    wanted: bool,
    up: bool,
    /// The provider is connecting the link.
    retrying: bool,
    /// The link is removed when it has gone down.
    is_forgotten: bool,
    /// The link went down because it was idle; a bundle that needs it brings it up.
    idle: bool,
    /// Node at the other end before the link went down idle.
    led_to: Option<Eid>,
    /// Node to which the link leads, if only bundles open it.
    expected: Option<Eid>,
    peer: Option<Eid>,
    /// Number of the peer in the quota accounts, once computed.
    pub(super) neighbour: Option<NeighbourNumber>,
    /// Key of the peer among the holders of copies of bundles.
    peer_key: Option<u64>,
    /// Rules for the peer.
    pub(super) quirks: PeerQuirks,
    pub(super) interleave: bool,
    /// Maximum length of a bundle that the peer accepts, bytes.
    pub(super) bundle_bytes_max: u64,
    pub(super) room: u64,
    pub(super) config: LinkConfig,
    /// The provider has said that the link uses an amateur radio band.
    pub(super) is_announced_amateur: bool,
    contacts: Vec<Contact>,
    /// Next beginning or end of a contact window, DTN milliseconds.
    boundary: Option<u64>,
    /// True during a contact; always true without contact windows or without a clock.
    in_contact: bool,
    /// Number of times that the link has come up.
    pub(super) ups: u64,
    /// Round-trip time of custody signals.
    pub(super) signals: Option<RoundTrip>,
    /// Time until which the link is not used.
    pub(super) held_until: Option<Instant>,
    /// Time at which the data sent so far have left the link, if its rate is known.
    busy_until: Instant,
    /// Unfinished transfers.
    pub(super) transfers: OrderedMap<TransferId, OutgoingTransfer>,
    /// Open transfers with pieces left to send, oldest first.
    pub(super) filling: VecDeque<TransferId>,
    /// Next transfer, whose payload is being read.
    pub(super) prepared: Option<TransferId>,
}

/// All links.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: BTreeMap<LinkId, Link>,
    by_peer: BTreeMap<Eid, BTreeSet<LinkId>>,
    /// Idle links by the node at their other end.
    idle: BTreeMap<Eid, BTreeSet<LinkId>>,
    secret: Secret,
    /// Incoming links and this node's configured links to the same node.
    pub(super) beside: BTreeSet<(LinkId, LinkId)>,
}

impl Links {
    pub(super) fn get(&self, id: LinkId) -> Option<&Link> {
        self.links.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.links.iter().map(|(id, link)| (*id, link))
    }

    /// Node ID of the peer, while the link is up.
    pub(super) fn peer(&self, id: LinkId) -> Option<&Eid> {
        self.links.get(&id)?.peer.as_ref()
    }

    /// Key of the peer among the holders of copies of bundles.
    pub(super) fn peer_key(&self, id: LinkId) -> Option<u64> {
        self.links.get(&id)?.peer_key
    }

    /// Key of a node among the holders of copies of bundles.
    pub(super) fn key_of(&self, node: &Eid) -> u64 {
        self.secret.number(NumberKind::Holder, &node.node_id().to_string())
    }

    /// Sets the secret of the store, and recomputes the numbers of links that came up before.
    pub(super) fn learn(&mut self, secret: Secret) {
        self.secret = secret;
        let keys: Vec<_> =
            self.links.values().map(|link| link.peer.as_ref().map(|peer| self.key_of(peer))).collect();
        for (link, key) in self.links.values_mut().zip(keys) {
            link.peer_key = key;
            link.neighbour = None;
        }
    }

    /// Links whose peer has a node ID.
    pub(super) fn named(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.by_peer.values().flatten().copied()
    }

    /// True if any link to this node is up.
    pub(super) fn is_connected(&self, node: &Eid) -> bool {
        self.by_peer.contains_key(node)
    }

    /// True if the link uses an amateur radio band.
    pub(super) fn is_amateur(&self, id: LinkId) -> bool {
        self.links.get(&id).is_some_and(Link::is_amateur)
    }

    /// Links to which a hop refers.
    pub(super) fn of(&self, hop: &Hop) -> impl Iterator<Item = LinkId> + use<'_> {
        let (itself, to_node) = match hop {
            Hop::Link(link) => (Some(*link), None),
            Hop::Node(node) => (None, self.by_peer.get(node)),
        };
        itself.into_iter().chain(to_node.into_iter().flatten().copied())
    }

    /// Idle links that a bundle for this hop would bring up.
    pub(super) fn idle_for(&self, hop: &Hop) -> impl Iterator<Item = LinkId> + '_ {
        let node = match hop {
            Hop::Link(_) => None,
            Hop::Node(node) => self.idle.get(node),
        };
        node.into_iter().flatten().copied()
    }

    /// All idle links.
    pub(super) fn idle(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.idle.values().flatten().copied()
    }

    /// Marks a link as idle towards this node; with `None`, as not idle.
    fn set_led_to(&mut self, id: LinkId, node: Option<Eid>) {
        let Some(link) = self.links.get_mut(&id) else { return };
        move_in(&mut self.idle, id, &mut link.led_to, node);
    }

    /// True if bundles can be sent over the link now.
    pub(super) fn usable(&self, id: LinkId, now: Instant) -> bool {
        self.links.get(&id).is_some_and(|link| link.up && link.in_contact && !link.is_held(now))
    }

    /// Link with this ID, created if necessary; `None` if there are too many links.
    pub(super) fn entry(&mut self, id: LinkId, most: usize, configs: &[LinkConfig]) -> Option<&mut Link> {
        if !self.links.contains_key(&id) {
            if self.links.len() >= most {
                return None;
            }
            let config = configs.iter().find(|config| config.link == id).cloned();
            let config = config.unwrap_or(LinkConfig { link: id, ..LinkConfig::default() });
            let link = Link { config, in_contact: true, bundle_bytes_max: u64::MAX, ..Link::default() };
            self.links.insert(id, link);
        }
        self.links.get_mut(&id)
    }

    fn set_peer(&mut self, id: LinkId, peer: Option<Eid>) {
        let key = peer.as_ref().map(|peer| self.key_of(peer));
        let Some(link) = self.links.get_mut(&id) else { return };
        link.peer_key = key;
        link.neighbour = None;
        move_in(&mut self.by_peer, id, &mut link.peer, peer);
    }
}

impl Link {
    /// Node ID of the peer, while the link is up.
    pub(super) fn peer(&self) -> Option<&Eid> {
        self.peer.as_ref()
    }

    /// True if the link uses an amateur radio band.
    pub(super) fn is_amateur(&self) -> bool {
        self.config.amateur || self.is_announced_amateur
    }

    fn is_held(&self, now: Instant) -> bool {
        self.held_until.is_some_and(|until| now < until)
    }

    /// True if the link is up, and a contact is active or none is required.
    pub(super) fn is_here(&self) -> bool {
        self.up && self.in_contact
    }

    /// True if a contact is active or none is required.
    pub(super) fn is_in_contact(&self) -> bool {
        self.in_contact
    }

    /// Current contact, or else the next one.
    fn contact(&self, dtn_ms: u64) -> Option<Contact> {
        let index = self.contacts.partition_point(|contact| contact.end_dtn_ms <= dtn_ms);
        self.contacts.get(index).copied()
    }

    /// Time left in the current contact, milliseconds; `None` if it has no end.
    fn contact_left_ms(&self, dtn_ms: Option<u64>) -> Option<u64> {
        let dtn_ms = dtn_ms?;
        let contact = self.contact(dtn_ms)?;
        (contact.start_dtn_ms <= dtn_ms).then(|| contact.end_dtn_ms.saturating_sub(dtn_ms))
    }

    /// Node to which a bundle can be sent now, at once or by opening the link, which is idle.
    pub(super) fn reaches(&self) -> Option<&Eid> {
        let idle = self.led_to.as_ref().filter(|_| self.idle && self.wanted && self.in_contact);
        self.peer.as_ref().filter(|_| self.is_here()).or(idle)
    }

    /// Delay of a bundle over the link while it is up, for link-state routing, milliseconds.
    pub(super) fn expected_delay_ms(&self, dtn_ms: Option<u64>) -> u64 {
        let contact = dtn_ms.and_then(|dtn_ms| self.contact(dtn_ms));
        dtlsr::delay_over_ms(self.rate_bps(contact), contact.map_or(0, |contact| contact.delay_ms))
    }

    /// Rate during the contact, bit/s; zero if unknown.
    fn rate_bps(&self, contact: Option<Contact>) -> u64 {
        contact.map(|contact| contact.rate_bps).filter(|rate| *rate > 0).unwrap_or(self.config.rate_bps)
    }

    /// Number of bytes that the link can carry before its contact ends, with time for their acknowledgement;
    /// `None` if unknown or if the contact has no end.
    pub(super) fn capacity_bytes(&self, now: Instant, dtn_ms: Option<u64>) -> Option<u64> {
        let left = self.contact_left_ms(dtn_ms)?;
        let contact = self.contact(dtn_ms?)?;
        let left = Duration::from_millis(left.saturating_sub(contact.delay_ms.saturating_mul(2)));
        let left = left.saturating_sub(self.busy_until.saturating_since(now));
        let rate_bps = self.rate_bps(Some(contact));
        let bits = left.as_nanos() * u128::from(rate_bps) / 1_000_000_000;
        (rate_bps > 0).then(|| u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }

    /// Arrival of the first bit of a waiting bundle at the other end according to the contact plan,
    /// milliseconds from now; `None` if the link is down and no contact will bring it up.
    pub(super) fn arrival_ms(&self, usable: bool, dtn_ms: Option<u64>) -> Option<u64> {
        let contact = dtn_ms.and_then(|dtn_ms| self.contact(dtn_ms));
        let delay_ms = contact.map_or(0, |contact| contact.delay_ms);
        match (usable, contact) {
            (true, _) => Some(delay_ms),
            (false, Some(contact)) if !self.in_contact => {
                let wait = contact.start_dtn_ms.saturating_sub(dtn_ms.unwrap_or(0));
                Some(wait.saturating_add(delay_ms))
            }
            (false, _) => None,
        }
    }

    /// Accounts for bytes passed to the link.
    pub(super) fn occupy(&mut self, now: Instant, dtn_ms: Option<u64>, bytes: u64) {
        self.room -= bytes;
        let rate_bps = self.rate_bps(dtn_ms.and_then(|dtn_ms| self.contact(dtn_ms)));
        if rate_bps > 0 {
            let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(rate_bps);
            let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.busy_until = self.busy_until.max(now) + time;
        }
    }

    /// Beginning of the next contact, DTN milliseconds; `None` during a contact.
    pub(super) fn next_contact(&self, dtn_ms: Option<u64>) -> Option<u64> {
        let contact = self.contact(dtn_ms?)?;
        (!self.in_contact).then_some(contact.start_dtn_ms)
    }
}

/// Replaces the node of a link, and moves the link in an index by node.
fn move_in(
    index: &mut BTreeMap<Eid, BTreeSet<LinkId>>,
    link: LinkId,
    stored: &mut Option<Eid>,
    node: Option<Eid>,
) {
    if let Some(old) = core::mem::replace(stored, node.clone()) {
        remove_from(index, &old, &link);
    }
    if let Some(node) = node {
        index.entry(node).or_default().insert(link);
    }
}

impl Agent {
    /// Replaces the settings of a link after the start.
    pub fn configure_link(&mut self, config: LinkConfig) {
        self.config.links.retain(|known| known.link != config.link);
        if let Some(link) = self.links.get_mut(config.link) {
            link.config = config.clone();
            // Bundles that the settings have kept from it, encrypted ones of an amateur link, may be sent now.
            self.outgoing.wake(config.link);
        }
        self.config.links.push(config);
    }

    /// Requests that a link be kept up.
    pub(super) fn open_link(&mut self, id: LinkId) {
        let most = self.config.limits.links_max;
        let Some(link) = self.links.entry(id, most, &self.config.links) else {
            self.counters.ignored += 1;
            return;
        };
        link.is_forgotten = false;
        let closed = link.config.open_in_contacts && !link.in_contact;
        if !core::mem::replace(&mut link.wanted, true) && !link.up && !closed {
            link.retrying = true;
            self.outgoing.tell(id, BundlesRequest::Connect);
        }
    }

    /// Requests that a link be opened whenever a bundle needs it.
    pub(super) fn expect_link(&mut self, id: LinkId, node: &str) {
        let most = self.config.limits.links_max;
        let node = super::parse_node(node).filter(|node| *node != self.node);
        let link = self.links.entry(id, most, &self.config.links);
        let (Some(node), Some(link)) = (node, link) else {
            self.counters.ignored += 1;
            return;
        };
        link.is_forgotten = false;
        link.expected = Some(node.clone());
        if !core::mem::replace(&mut link.wanted, true) && !link.up {
            link.idle = true;
            self.links.set_led_to(id, Some(node));
            self.outgoing.wake(id);
        }
    }

    /// Closes a link until it is requested again.
    pub(super) fn close_link(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(id)
            && (link.wanted || link.up)
        {
            link.wanted = false;
            link.retrying = false;
            self.outgoing.tell(id, BundlesRequest::Close);
        }
    }

    /// Closes a link and removes it, at once if it is down. Its ID may not be used again.
    pub(super) fn forget_link(&mut self, id: LinkId) {
        self.close_link(id);
        self.config.links.retain(|known| known.link != id);
        if let Some(link) = self.links.get_mut(id) {
            link.is_forgotten = true;
            link.expected = None;
            if !link.up {
                self.remove_link(id);
            }
        }
    }

    /// Removes a link that is down, with everything that refers to it.
    fn remove_link(&mut self, id: LinkId) {
        self.links.set_led_to(id, None);
        let Some(link) = self.links.links.remove(&id) else { return };
        if let Some(boundary) = link.boundary {
            self.time.deadlines.not_at_dtn(boundary, DeadlineKind::Contact(id));
        }
        if let Some(until) = link.held_until {
            self.time.deadlines.not_at(until, DeadlineKind::Release(id));
        }
    }

    /// Sets the contact windows of a link.
    pub(super) fn set_contacts(&mut self, now: Instant, id: LinkId, mut contacts: Vec<Contact>) {
        let most = self.config.limits.links_max;
        if contacts.len() > self.config.limits.contacts_max {
            contacts.truncate(self.config.limits.contacts_max);
            self.counters.ignored += 1;
        }
        contacts.retain(|contact| contact.start_dtn_ms < contact.end_dtn_ms);
        contacts.sort_by_key(|contact| contact.start_dtn_ms);
        let Some(link) = self.links.entry(id, most, &self.config.links) else {
            self.counters.ignored += 1;
            return;
        };
        link.contacts = contacts;
        self.look_at_contacts(now, id);
    }

    /// Updates the contacts of all links after a change of the clock.
    pub(super) fn look_at_all_contacts(&mut self, now: Instant) {
        let planned: Vec<LinkId> = self
            .links
            .iter()
            .filter(|(_, link)| !link.contacts.is_empty() || link.boundary.is_some())
            .map(|(id, _)| id)
            .collect();
        for id in planned {
            self.look_at_contacts(now, id);
        }
    }

    /// Updates the contact of a link. A link whose windows are all in the past is not used.
    pub(super) fn look_at_contacts(&mut self, now: Instant, id: LinkId) {
        let clock: Clock = self.time.clock;
        let Some(link) = self.links.get_mut(id) else { return };
        if let Some(boundary) = link.boundary.take() {
            self.time.deadlines.not_at_dtn(boundary, DeadlineKind::Contact(id));
        }
        let was = link.in_contact;
        match clock.dtn_ms(now) {
            Some(dtn_ms) if !link.contacts.is_empty() => {
                let current = link.contact(dtn_ms);
                link.in_contact = current.is_some_and(|contact| contact.start_dtn_ms <= dtn_ms);
                link.boundary = current.map(|contact| match link.in_contact {
                    true => contact.end_dtn_ms,
                    false => contact.start_dtn_ms,
                });
            }
            _ => link.in_contact = true,
        }
        if let Some(boundary) = link.boundary {
            self.time.deadlines.at_dtn(boundary, DeadlineKind::Contact(id));
        }
        let (on, up) = (link.in_contact, link.up);
        if !on && was && link.config.open_in_contacts && (up || link.retrying) {
            link.retrying = false;
            self.outgoing.tell(id, BundlesRequest::Close);
        }
        if on != was {
            if up {
                self.tell_router(now, id, on);
            }
            // Bundles may now be sent over another link, or over this one again.
            self.look_at_all_links();
        }
    }

    /// Handles a link that came up.
    pub(super) fn link_up(
        &mut self,
        now: Instant,
        id: LinkId,
        peer: Option<String>,
        interleave: bool,
        bundle_bytes_max: u64,
    ) {
        let most = self.config.limits.links_max;
        // A link that was forgotten while it was connecting is forgotten again when it goes down.
        let is_unasked = self.links.get(id).is_none();
        let Some(link) = self.links.entry(id, most, &self.config.links) else {
            self.counters.ignored += 1;
            self.outgoing.tell(id, BundlesRequest::Close);
            return;
        };
        link.is_forgotten |= is_unasked;
        link.up = true;
        link.ups += 1;
        link.interleave = interleave;
        link.bundle_bytes_max = bundle_bytes_max;
        link.room = 0;
        // A peer that uses the node ID of this node is treated as one without a node ID.
        let (mut peer, mut node) = (peer.clone(), peer.as_deref().and_then(super::parse_node));
        if node.as_ref() == Some(&self.node) {
            (peer, node) = (None, None);
        }
        let name = node.as_ref().map(Eid::to_string);
        link.quirks = PeerQuirks::of(&link.config, name.as_deref(), &self.config);
        let in_contact = link.in_contact;
        self.links.set_led_to(id, None);
        self.links.set_peer(id, node);
        if in_contact {
            self.tell_router(now, id, true);
        }
        self.indications.push(ManagementIndication::Link { link: id, peer, down: None });
        self.count_kept_from(id);
        self.outgoing.wake(id);
    }

    /// Handles a change of the peer's node ID while the link is up.
    pub(super) fn rename_peer(&mut self, now: Instant, id: LinkId, peer: Option<String>) {
        let node = peer.as_deref().and_then(super::parse_node).filter(|node| *node != self.node);
        let Some(link) = self.links.get(id).filter(|link| link.up && link.peer != node) else { return };
        let (before, in_contact) = (link.peer.clone(), link.in_contact);
        // It was prepared by the rules for the other peer.
        self.drop_prepared(now, id);
        if in_contact {
            self.tell_router(now, id, false);
        }
        self.links.set_peer(id, node);
        let name = self.links.peer(id).map(Eid::to_string);
        if let Some(link) = self.links.get_mut(id) {
            link.quirks = PeerQuirks::of(&link.config, name.as_deref(), &self.config);
        }
        if in_contact {
            self.tell_router(now, id, true);
        }
        if let Some(before) = before {
            self.undo_copies(&before);
        }
        self.look_at_all_links();
    }

    /// Handles a link that went down. Its transfers should have had their terminal indications; those that
    /// the provider omitted end now.
    pub(super) fn link_down(&mut self, now: Instant, id: LinkId, reason: DownReason, retry: bool) {
        let (open, incoming) = self.open_transfers(now, id);
        for (transfer, acked) in open {
            let failed = BundlesIndication::Failed {
                transfer,
                reason: crate::service::TransferFailure::LinkDown,
                acked,
            };
            self.handle_bundles(now, id, failed);
        }
        for transfer in incoming {
            self.handle_bundles(now, id, BundlesIndication::Lost { transfer });
        }
        let Some(link) = self.links.get_mut(id) else { return };
        link.up = false;
        link.room = 0;
        link.is_announced_amateur = false;
        link.retrying = retry && link.wanted;
        let peer = link.peer.as_ref().map(Eid::to_string);
        let expected = link.expected.clone().filter(|_| !link.retrying);
        if link.wanted && !link.retrying && reason != DownReason::Idle {
            // The provider stopped connecting, or the link was requested while it was closing: it is not
            // connected again at once.
            self.hold_link(now, id, self.config.backoff_min);
        }
        self.tell_router(now, id, false);
        let node = self.links.peer(id).cloned();
        self.links.set_peer(id, None);
        let led_to = node.clone().filter(|_| reason == DownReason::Idle && !id.is_incoming()).or(expected);
        if let Some(link) = self.links.get_mut(id) {
            link.idle = reason == DownReason::Idle || led_to.is_some();
        }
        self.links.set_led_to(id, led_to);
        if let Some(node) = node {
            self.undo_copies(&node);
        }
        if id.is_incoming() || self.links.get(id).is_some_and(|link| link.is_forgotten) {
            self.remove_link(id);
        }
        self.indications.push(ManagementIndication::Link { link: id, peer, down: Some(reason) });
        // Bundles that waited for this link may be sent over another.
        self.look_at_all_links();
    }

    fn open_transfers(&mut self, now: Instant, id: LinkId) -> (Vec<(TransferId, u64)>, Vec<TransferId>) {
        self.drop_prepared(now, id);
        let open = self.links.get(id).into_iter();
        let open =
            open.flat_map(|link| link.transfers.iter().map(|(transfer, flight)| (*transfer, flight.acked)));
        let incoming = self.intake.over(id);
        (open.collect(), incoming.collect())
    }

    /// Suspends a link for a while.
    pub(super) fn hold_link(&mut self, now: Instant, id: LinkId, wait: Duration) {
        let Some(link) = self.links.get_mut(id) else { return };
        let until = now + wait;
        if let Some(old) = link.held_until.replace(until) {
            self.time.deadlines.not_at(old, DeadlineKind::Release(id));
        }
        self.time.deadlines.at(until, DeadlineKind::Release(id));
    }

    /// Ends the suspension of a link.
    pub(super) fn release_link(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
            link.held_until = None;
            self.outgoing.wake(id);
        }
    }

    /// Connects a link that is requested and down; an idle link only if a bundle needs it.
    pub(super) fn connect_if_wanted(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get(id) else { return };
        let dormant = link.wanted && !link.up && !link.retrying && !link.is_held(now) && link.in_contact;
        let wanted = || self.routing.queues.wants(id, link.led_to.as_ref(), &self.view(now));
        if dormant && (!link.idle || wanted()) {
            self.links.get_mut(id).expect("it was just found").retrying = true;
            self.outgoing.tell(id, BundlesRequest::Connect);
        }
    }
}
