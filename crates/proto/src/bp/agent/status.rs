//! Contents of an agent, and the reason for keeping each bundle.

use crate::bp::{BundleId, Eid};
use crate::service::{
    BundleName, BundleVersion, DeliveryId, LinkId, Priority, RecordId, SecurityFailure, SendId, Signature,
    TransferId,
};
use crate::time::{Duration, Instant};
use core::ops::Bound;

use super::adu::AduKey;
use super::checking::CheckTarget;
use super::delivery::DeliveryProgress;
use super::held::{BundleState, HeldBundle};
use super::routing::{COPIES_FROM, ClassKey, Hop, NextHops};
use super::{Agent, Limits};

/// A bundle, and the reason for keeping it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleStatus {
    /// Record of the bundle: numbers increase with arrival, and the number of a removed record is not reused.
    pub record: RecordId,
    /// Bundle ID.
    pub id: BundleId,
    /// Version of the bundle, in which it is also forwarded.
    pub version: BundleVersion,
    /// True if the bundle requests custody transfer (version 6).
    pub wants_custody: bool,
    /// Current custodian; `None` if the header names none.
    pub custodian: Option<Eid>,
    /// Destination endpoint.
    pub destination: Eid,
    /// Priority.
    pub priority: Priority,
    /// Length of the payload of this bundle or fragment, bytes.
    pub payload_bytes: u64,
    /// Length of the application data unit, bytes.
    pub adu_bytes: u64,
    /// Payload bytes from the beginning that the next hop has acknowledged.
    pub safe_bytes: u64,
    /// Payload bytes from the beginning that were passed to links and not refused: those acknowledged and
    /// those of current transfers.
    pub handed_bytes: u64,
    /// Payload bytes of later transfers that were passed to the link of its last current transfer; 0 without one.
    pub handed_after_bytes: u64,
    /// Age of the bundle, as far as it is known.
    pub age: Duration,
    /// Remaining lifetime.
    pub lifetime_left: Duration,
    /// Link on which the bundle arrived; `None` for bundles made at this node and for those from before the
    /// last start.
    pub arrived_over: Option<LinkId>,
    /// Number of times that a peer refused the bundle for lack of resources.
    pub refusals: u32,
    /// The application's send to which the bundle belongs.
    pub send: Option<SendId>,
    /// Outcome of the verification of its signature; `None` if it has none, or none was verified.
    pub signature: Option<Signature>,
    /// Reason for keeping the bundle.
    pub why: RetentionReason,
}

/// Reason for keeping a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetentionReason {
    /// The bundle is arriving, or an application is sending it.
    Arriving {
        /// Time of the latest bytes from a peer, which links deliver in order; `None` for an application.
        heard: Option<Instant>,
    },
    /// Not all of the bundle is durable yet, or the node has just started: the bundle is being checked after a crash, or waits for its turn.
    Storing,
    /// The signature is being verified.
    Checking,
    /// The bundle cannot be decrypted or verified with the keys in force, and was accepted before them: it waits for its key.
    WithoutKey(SecurityFailure),
    /// No route leads to the destination.
    NoRoute,
    /// The bundle is encrypted, and every link on which it could otherwise leave uses an amateur radio band.
    Encrypted {
        /// One of these links.
        link: LinkId,
    },
    /// Every link on which the bundle may leave is down, or leads back to the node that it came from.
    LinksDown(Vec<LinkId>),
    /// The links on which the bundle may leave are up, and their next contact has not begun.
    NoContact {
        /// The link with the earliest contact.
        link: LinkId,
        /// Beginning of the contact, DTN milliseconds; `None` if no further contact is planned.
        next_dtn_ms: Option<u64>,
    },
    /// The path of least expected delay begins with a neighbour that is down, and the bundle waits for it
    /// (DTLSR).
    ExpectedContact {
        /// Neighbour.
        node: Eid,
        /// Expected wait for the neighbour.
        wait: Duration,
    },
    /// The preferred next hop is down, and the bundle waits for it.
    BetterHop {
        /// Time at which the next hop in order is used.
        until: Instant,
    },
    /// The bundle is copied to the nodes that are met, and every node in contact has it already; the last
    /// copy waits for the destination.
    Spread {
        /// Number of nodes that have the bundle, including the one it came from.
        given: usize,
        /// Number of copies that may still be made, including this one; `None` if unlimited.
        copies: Option<u64>,
    },
    /// Other bundles are sent before this one, or the link has no room at the moment.
    Queued(LinkId),
    /// The bundle is being sent.
    OnTheWay(LinkId),
    /// A peer refused the bundle for lack of resources; the bundle is retried at this time.
    Resting(Instant),
    /// The next hop has the complete bundle, and this node keeps custody until a custody signal arrives.
    InCustody {
        /// Neighbour to which the bundle was sent; `None` if unknown.
        of: Option<Eid>,
        /// Time at which the bundle is resent.
        until: Instant,
    },
    /// The bundle is destined for this node, and fragments are missing.
    InParts {
        /// Bytes received.
        have: u64,
        /// Length of the application data unit, bytes.
        of: u64,
    },
    /// No application is registered for the destination endpoint.
    NobodyRegistered(DeliveryId),
    /// The application was notified and has not accepted the delivery.
    NotTaken(DeliveryId),
}

/// Node to which link-state routing knows a path (DTLSR).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedRoute {
    /// Node ID.
    pub node: Eid,
    /// Neighbour with which the path of least expected delay begins.
    pub next: Eid,
    /// Expected delay of a bundle to the node.
    pub delay: Duration,
    /// Expected wait for the neighbour; `None` if it is connected.
    pub wait: Option<Duration>,
    /// Age of the latest announcement of the node; `None` if it is known only as a neighbour of others.
    pub announced: Option<Duration>,
    /// Links that the node announces.
    pub links: Vec<LearnedLink>,
}

/// Link that a node announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedLink {
    /// Node ID of the neighbour.
    pub to: Eid,
    /// Expected delay of a bundle over the link.
    pub delay: Duration,
    /// Time for which the link has been down; `None` if it is up.
    pub down: Option<Duration>,
}

impl Agent {
    /// True if a bundle is on its way over this link.
    pub fn sends_over(&self, link: LinkId) -> bool {
        self.links.get(link).is_some_and(|link| !link.transfers.is_empty())
    }

    /// Returns every node to which link-state routing knows a path, in order of node IDs.
    pub fn learned_routes(&self, now: Instant) -> Vec<LearnedRoute> {
        self.routing.learned_routes(now)
    }

    /// Returns every bundle held, with the reason for keeping it.
    pub fn bundles(&self, now: Instant) -> impl Iterator<Item = BundleStatus> + '_ {
        self.bundles_after(now, RecordId(0))
    }

    /// Returns every bundle after this record, in order of record numbers; for lists that are read in parts.
    pub fn bundles_after(&self, now: Instant, after: RecordId) -> impl Iterator<Item = BundleStatus> + '_ {
        // Copies are not listed as bundles of their own.
        let behind = (Bound::Excluded(after.min(COPIES_FROM)), Bound::Excluded(COPIES_FROM));
        self.holdings.range(behind).map(move |(record, held)| self.status_of(now, record, &held))
    }

    /// Returns a bundle with all of its fragments held.
    pub fn bundles_named(&self, now: Instant, name: &BundleName) -> Vec<BundleStatus> {
        let records = self.records_named(name).into_iter();
        records.map(|record| self.status_of(now, record, &self.holdings[&record])).collect()
    }

    /// Returns the number of bundles held, and the bytes that count against the limit.
    pub fn holds(&self) -> (usize, u64) {
        (self.holdings.originals(), self.holdings.bytes())
    }

    /// Limits in force.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Records of a bundle and its fragments.
    pub(super) fn records_named(&self, name: &BundleName) -> Vec<RecordId> {
        let (source, timestamp) = (&name.source[..], name.created);
        let parsed = source.parse::<Eid>();
        if let Ok(source) = &parsed
            && !source.is_null()
        {
            let versions = [BundleVersion::V6, BundleVersion::V7];
            let records = |version| self.holdings.records_of(&AduKey::named(source, timestamp, version));
            return versions.into_iter().flat_map(records).collect();
        }
        // Bundles without a source have distinct keys, and a source of an unknown scheme is compared in its
        // text form.
        let is_source = |eid: &Eid| match &parsed {
            Ok(source) => eid == source,
            Err(_) => eid.to_string() == source,
        };
        let named = |held: &HeldBundle| held.head.timestamp() == timestamp && is_source(held.head.source());
        let found = self.holdings.iter().filter(|(_, held)| held.copy_origin.is_none() && named(held));
        found.map(|(record, _)| record).collect()
    }

    fn status_of(&self, now: Instant, record: RecordId, held: &HeldBundle) -> BundleStatus {
        BundleStatus {
            record,
            id: held.head.id(),
            version: held.head.version(),
            wants_custody: held.head.wants_custody(),
            custodian: held.head.custodian().cloned(),
            destination: held.head.destination().clone(),
            priority: held.head.priority(),
            payload_bytes: held.payload_bytes(),
            adu_bytes: held.adu_bytes(),
            safe_bytes: self.safe_prefix(held),
            handed_bytes: self.handed_bytes(held),
            handed_after_bytes: self.handed_after_bytes(held),
            age: Duration::from_millis(held.age_ms_now(now)),
            lifetime_left: self.time.clock.left(held.end, now),
            arrived_over: held.intake.map(|(link, _)| link),
            refusals: held.refusals,
            send: held.send,
            signature: self.signature_of(record, held),
            why: self.why(now, record, held),
        }
    }

    fn signature_of(&self, record: RecordId, held: &HeldBundle) -> Option<Signature> {
        let found = match held.state {
            BundleState::Local => self.local_of(held)?.signature(),
            _ => self.security.checks.passed(record),
        };
        found.filter(|signature| **signature != Signature::default()).cloned()
    }

    /// Payload bytes from the beginning that the next hop has acknowledged or that were passed to its link.
    fn handed_bytes(&self, held: &HeldBundle) -> u64 {
        let flight = |(link, transfer): &(LinkId, TransferId)| self.links.get(*link)?.transfers.get(transfer);
        let flights = held.transfers.iter().filter_map(flight);
        let mut parts: Vec<(u64, u64)> = flights.map(|part| (part.from, part.from + part.handed())).collect();
        parts.sort_unstable();
        let longer = |prefix: u64, (from, to)| if from <= prefix { prefix.max(to) } else { prefix };
        parts.into_iter().fold(self.safe_prefix(held), longer)
    }

    fn handed_after_bytes(&self, held: &HeldBundle) -> u64 {
        let Some((link, transfer)) = held.transfers.last() else { return 0 };
        let later = (Bound::Excluded(*transfer), Bound::Unbounded);
        let transfers = self.links.get(*link).map(|link| &link.transfers);
        transfers.map_or(0, |all| all.range(later).map(|(_, transfer)| transfer.handed()).sum())
    }

    /// Reason for keeping a bundle.
    fn why(&self, now: Instant, record: RecordId, held: &HeldBundle) -> RetentionReason {
        match held.state {
            BundleState::Arriving | BundleState::Composing => {
                RetentionReason::Arriving { heard: held.intake.and_then(|from| self.intake.heard(&from)) }
            }
            BundleState::Sealing | BundleState::Verifying => RetentionReason::Storing,
            BundleState::Checking => self.why_checking(&CheckTarget::Passing(record)),
            BundleState::BackingOff(until) => RetentionReason::Resting(until),
            BundleState::InCustody(until) => {
                RetentionReason::InCustody { of: self.signal_owed_by(held), until }
            }
            BundleState::Local => self.why_local(held),
            BundleState::Forwarding(class) => match held.transfers.first() {
                Some((link, _)) => RetentionReason::OnTheWay(*link),
                None => self.why_waiting(now, held, self.routing.queues.key(class)),
            },
        }
    }

    fn why_local(&self, held: &HeldBundle) -> RetentionReason {
        let Some(local) = self.local_of(held) else { return RetentionReason::Storing };
        match local.progress {
            DeliveryProgress::InParts => {
                RetentionReason::InParts { have: local.assembly.have(), of: local.assembly.total() }
            }
            DeliveryProgress::Checking => self.why_checking(&CheckTarget::Local(local.id())),
            DeliveryProgress::Whole => RetentionReason::NobodyRegistered(local.delivery),
            DeliveryProgress::Told => RetentionReason::NotTaken(local.delivery),
            DeliveryProgress::Taken => RetentionReason::Storing,
        }
    }

    fn why_checking(&self, target: &CheckTarget) -> RetentionReason {
        let missing = self.security.missing_keys.of(target);
        missing.map_or(RetentionReason::Checking, RetentionReason::WithoutKey)
    }

    /// Reason why a bundle that goes to several nodes waits.
    fn why_spread(&self, now: Instant, held: &HeldBundle, key: &ClassKey) -> RetentionReason {
        let replication = held.replication.as_deref().expect("what goes to everyone is spread");
        let copies = replication.under_way.values().filter_map(|id| self.holdings.get(id));
        if let Some((link, _)) = copies.flat_map(|copy| copy.transfers.first()).next() {
            return RetentionReason::OnTheWay(*link);
        }
        let free = |link: &LinkId| {
            self.links.usable(*link, now)
                && !key.has(*link, &self.links)
                && !key.is_barred(*link, &self.links)
        };
        let queued = self.links.named().find(free).map(RetentionReason::Queued);
        let kept = || self.amateur_link_of(key).map(|link| RetentionReason::Encrypted { link });
        match queued.or_else(kept) {
            Some(why) => why,
            None => RetentionReason::Spread { given: replication.given.len(), copies: replication.copies },
        }
    }

    fn why_waiting(&self, now: Instant, held: &HeldBundle, key: &ClassKey) -> RetentionReason {
        let hops = match &key.ways {
            NextHops::Hops(hops) => hops,
            NextHops::Everyone => return self.why_spread(now, held, key),
        };
        let barred = |link: &LinkId| key.encrypted && self.links.is_amateur(*link);
        // A link that the bundle must not use is not waited for.
        let is_barred = |hop: &Hop| {
            let mut links = self.links.of(hop).peekable();
            links.peek().is_some() && links.all(|link| barred(&link))
        };
        let hops: Vec<_> = hops.iter().filter(|(_, hop)| !is_barred(hop)).cloned().collect();
        let hops = &hops;
        if let Some((node, wait)) = self.routing.expected_contact(now, hops) {
            return RetentionReason::ExpectedContact { node, wait };
        }
        if let Some(until) = self.routing.router.waits_until(hops, &self.view(now)) {
            return RetentionReason::BetterHop { until };
        }
        if let Some(link) =
            self.routing.router.waits_for(hops, &|link| key.may(link, &self.links), &self.view(now))
        {
            let next = self.links.get(link).and_then(|link| link.next_contact(self.time.clock.dtn_ms(now)));
            return RetentionReason::NoContact { link, next_dtn_ms: next };
        }
        let links = hops.iter().flat_map(|(_, hop)| self.links.of(hop));
        let links: Vec<LinkId> = links.filter(|link| !barred(link)).collect();
        if let Some(link) = self.amateur_link_of(key).filter(|_| links.is_empty()) {
            return RetentionReason::Encrypted { link };
        }
        if let Some(replication) = held.replication.as_deref().filter(|_| links.is_empty()) {
            return RetentionReason::Spread { given: replication.given.len(), copies: replication.copies };
        }
        if links.is_empty() {
            return RetentionReason::NoRoute;
        }
        if let Some(link) = links.iter().find(|link| self.links.usable(**link, now)) {
            return RetentionReason::Queued(*link);
        }
        let dtn_ms = self.time.clock.dtn_ms(now);
        let waiting = links.iter().filter_map(|id| {
            let link = self.links.get(*id).filter(|link| !link.is_in_contact())?;
            Some((link.next_contact(dtn_ms), *id))
        });
        match waiting.min_by_key(|(next, _)| next.unwrap_or(u64::MAX)) {
            Some((next_dtn_ms, link)) => RetentionReason::NoContact { link, next_dtn_ms },
            None => RetentionReason::LinksDown(links),
        }
    }

    /// Bytes of payloads and headers in memory that wait for the storage or for a link.
    pub fn buffered_bytes(&self) -> usize {
        let transfers = self.links.iter().flat_map(|(_, link)| link.transfers.values());
        let flying: usize = transfers.map(|flight| flight.buffered).sum();
        flying + self.store.out_bytes
    }
}
