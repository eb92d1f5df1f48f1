//! What an agent holds, and why each bundle is still here.

use crate::bp::{BundleId, CreationTimestamp, DtnTime, Eid};
use crate::service::{BundleVersion, DeliveryId, LinkId, Priority, RecordId, SendId, TransferId};
use crate::time::{Duration, Instant};
use core::ops::Bound;

use super::delivery::{AduKey, DeliveryProgress};
use super::held::{BundleState, HeldBundle};
use super::routing::{COPIES_FROM, ClassKey, NextHops};
use super::{Agent, Limits};

/// A bundle, and why it is still here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleStatus {
    /// Where it lies: later ones have higher numbers, and one that is gone leaves its number unused.
    pub record: RecordId,
    /// Which bundle.
    pub id: BundleId,
    /// The version it came in, and leaves in.
    pub version: BundleVersion,
    /// It asks for custody transfer (version 6).
    pub wants_custody: bool,
    /// The node that has custody of it, if one has.
    pub custodian: Option<Eid>,
    /// Where it goes.
    pub destination: Eid,
    /// Its urgency.
    pub priority: Priority,
    /// Bytes of payload in this part of it.
    pub payload_bytes: u64,
    /// Bytes of the payload that it is a part of.
    pub adu_bytes: u64,
    /// Payload bytes from its beginning that are safe with the next hop.
    pub safe_bytes: u64,
    /// Payload bytes that links were handed and have not refused: those that are safe, and those of transfers under way.
    pub handed_bytes: u64,
    /// How old it is, as far as that is known.
    pub age: Duration,
    /// How much of its lifetime is left.
    pub lifetime_left: Duration,
    /// The link over which it came; none: it was made here, or came before the last start.
    pub arrived_over: Option<LinkId>,
    /// How often a peer had no place for it.
    pub refusals: u32,
    /// The send of an application that it belongs to.
    pub send: Option<SendId>,
    /// Why it is still here.
    pub why: RetentionReason,
}

/// Why a bundle is still here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetentionReason {
    /// It is arriving, or being written.
    Arriving,
    /// The storage does not have all of it durable yet, or it is being checked after a crash.
    Storing,
    /// No route leads to its destination.
    NoRoute,
    /// Every link that it may take is down, or leads back to where it came from.
    LinksDown(Vec<LinkId>),
    /// The links that it may take are up, and their next contact has not begun.
    NoContact {
        /// The link whose contact comes first.
        link: LinkId,
        /// When it begins, DTN milliseconds; none: no contact is planned any more.
        next_dtn_ms: Option<u64>,
    },
    /// The better of its hops has gone, and is waited for until then.
    BetterHop {
        /// When the next one is taken.
        until: Instant,
    },
    /// Copies of it go to nodes that are met, and none is here now that has none; its last copy waits for the destination.
    Spread {
        /// How many nodes have one, the one it came from included.
        given: usize,
        /// How many copies may still be made, this one included; none: as many as there are nodes.
        copies: Option<u64>,
    },
    /// Others are before it, or the link takes no more at the moment.
    Queued(LinkId),
    /// It is on its way.
    OnTheWay(LinkId),
    /// A peer had no place for it; it is tried again then.
    Resting(Instant),
    /// The next hop has all of it, and this node is responsible for it until somebody signals that he is.
    InCustody {
        /// The neighbour it was handed to, where he is known.
        of: Option<Eid>,
        /// It is sent again then.
        until: Instant,
    },
    /// It is for this node, and parts are missing.
    InParts {
        /// Bytes here.
        have: u64,
        /// Bytes of the whole.
        of: u64,
    },
    /// Nobody is registered for its endpoint.
    NobodyRegistered(DeliveryId),
    /// The application was told and has not taken it.
    NotTaken(DeliveryId),
}

impl Agent {
    /// Every bundle that is here, and why.
    pub fn bundles(&self, now: Instant) -> impl Iterator<Item = BundleStatus> + '_ {
        self.bundles_after(now, RecordId(0))
    }

    /// Every bundle behind this record, in order: a list that is asked for in parts goes on so.
    pub fn bundles_after(&self, now: Instant, after: RecordId) -> impl Iterator<Item = BundleStatus> + '_ {
        // Copies are no bundles of their own.
        let behind = (Bound::Excluded(after.min(COPIES_FROM)), Bound::Excluded(COPIES_FROM));
        self.bundles.range(behind).map(move |(record, held)| self.status_of(now, *record, held))
    }

    /// A bundle with all of its fragments here.
    pub fn bundles_named(&self, now: Instant, source: &str, created: (u64, u64)) -> Vec<BundleStatus> {
        let records = self.records_named(source, created).into_iter();
        records.map(|record| self.status_of(now, record, &self.bundles[&record])).collect()
    }

    /// How many bundles are here, and the bytes that they are counted with against the limit.
    pub fn holds(&self) -> (usize, u64) {
        (self.bundles.len() - self.copies_held, self.bytes_held)
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// The records of a bundle and its fragments.
    pub(super) fn records_named(&self, source: &str, created: (u64, u64)) -> Vec<RecordId> {
        let timestamp = CreationTimestamp { time: DtnTime(created.0), sequence: created.1 };
        let parsed = source.parse::<Eid>();
        if let Ok(source) = &parsed
            && !source.is_null()
        {
            let versions = [BundleVersion::V6, BundleVersion::V7];
            let records = |version| self.records_of(&AduKey::named(source, timestamp, version));
            return versions.into_iter().flat_map(records).collect();
        }
        // Bundles without a source have each a name of its own; of a scheme that is not known, what it is written as tells.
        let is_source = |eid: &Eid| match &parsed {
            Ok(source) => eid == source,
            Err(_) => eid.to_string() == source,
        };
        let named = |held: &HeldBundle| held.head.timestamp() == timestamp && is_source(held.head.source());
        let found = self.bundles.iter().filter(|(_, held)| held.copy_origin.is_none() && named(held));
        found.map(|(record, _)| *record).collect()
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
            age: Duration::from_millis(held.age_ms_now(now)),
            lifetime_left: self.clock.left(held.end, now),
            arrived_over: held.intake.map(|(link, _)| link),
            refusals: held.refusals,
            send: held.send,
            why: self.why(now, held),
        }
    }

    /// Bytes of a bundle that are safe with a next hop, or have been handed to the link of one.
    fn handed_bytes(&self, held: &HeldBundle) -> u64 {
        let flight = |(link, transfer): &(LinkId, TransferId)| self.links.get(*link)?.transfers.get(transfer);
        let ends = held.transfers.iter().filter_map(flight).map(|flight| flight.from + flight.handed());
        ends.fold(self.safe_prefix(held), u64::max)
    }

    /// Why a bundle is still here.
    fn why(&self, now: Instant, held: &HeldBundle) -> RetentionReason {
        match held.state {
            BundleState::Arriving | BundleState::Composing => RetentionReason::Arriving,
            BundleState::Sealing | BundleState::Verifying => RetentionReason::Storing,
            BundleState::BackingOff(until) => RetentionReason::Resting(until),
            BundleState::InCustody(until) => {
                RetentionReason::InCustody { of: self.signal_owed_by(held), until }
            }
            BundleState::Local => self.why_local(held),
            BundleState::Forwarding(class) => match held.transfers.first() {
                Some((link, _)) => RetentionReason::OnTheWay(*link),
                None => self.why_waiting(now, held, self.queues.key(class)),
            },
        }
    }

    fn why_local(&self, held: &HeldBundle) -> RetentionReason {
        let Some(local) = self.local_of(held) else { return RetentionReason::Storing };
        match local.progress {
            DeliveryProgress::InParts => {
                RetentionReason::InParts { have: local.assembly.have(), of: local.assembly.total() }
            }
            DeliveryProgress::Whole => RetentionReason::NobodyRegistered(local.delivery),
            DeliveryProgress::Told => RetentionReason::NotTaken(local.delivery),
            DeliveryProgress::Taken => RetentionReason::Storing,
        }
    }

    /// Why a bundle waits that goes to several nodes.
    fn why_spread(&self, now: Instant, held: &HeldBundle, key: &ClassKey) -> RetentionReason {
        let replication = held.replication.as_deref().expect("what goes to everyone is spread");
        let copies = replication.under_way.values().filter_map(|id| self.bundles.get(id));
        if let Some((link, _)) = copies.flat_map(|copy| copy.transfers.first()).next() {
            return RetentionReason::OnTheWay(*link);
        }
        let free = |link: &LinkId| self.links.usable(*link, now) && !key.has(*link, &self.links);
        match self.links.named().find(free) {
            Some(link) => RetentionReason::Queued(link),
            None => RetentionReason::Spread { given: replication.given.len(), copies: replication.copies },
        }
    }

    fn why_waiting(&self, now: Instant, held: &HeldBundle, key: &ClassKey) -> RetentionReason {
        let hops = match &key.ways {
            NextHops::Hops(hops) => hops,
            NextHops::Everyone => return self.why_spread(now, held, key),
        };
        if let Some(until) = self.router.waits_until(hops, &self.view(now)) {
            return RetentionReason::BetterHop { until };
        }
        if let Some(link) = self.router.waits_for(hops, &|link| key.may(link, &self.links), &self.view(now)) {
            let next = self.links.get(link).and_then(|link| link.next_contact(self.clock.dtn_ms(now)));
            return RetentionReason::NoContact { link, next_dtn_ms: next };
        }
        let links: Vec<LinkId> = hops.iter().flat_map(|(_, hop)| self.links.of(hop)).collect();
        if let Some(replication) = held.replication.as_deref().filter(|_| links.is_empty()) {
            return RetentionReason::Spread { given: replication.given.len(), copies: replication.copies };
        }
        if links.is_empty() {
            return RetentionReason::NoRoute;
        }
        if let Some(link) = links.iter().find(|link| self.links.usable(**link, now)) {
            return RetentionReason::Queued(*link);
        }
        let dtn_ms = self.clock.dtn_ms(now);
        let waiting = links.iter().filter_map(|id| {
            let link = self.links.get(*id).filter(|link| !link.is_in_contact())?;
            Some((link.next_contact(dtn_ms), *id))
        });
        match waiting.min_by_key(|(next, _)| next.unwrap_or(u64::MAX)) {
            Some((next_dtn_ms, link)) => RetentionReason::NoContact { link, next_dtn_ms },
            None => RetentionReason::LinksDown(links),
        }
    }

    /// Payload bytes and heads that are in memory at the moment: what waits for the storage or for a link.
    pub fn buffered_bytes(&self) -> usize {
        let transfers = self.links.iter().flat_map(|(_, link)| link.transfers.values());
        let flying: usize = transfers.map(|flight| flight.buffered).sum();
        flying + self.store.out_bytes
    }
}
