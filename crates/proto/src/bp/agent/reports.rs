//! Status reports (RFC 9171 5, 6.1.1, 6.2).
//!
//! A report is sent only if the bundle requests it and the configuration permits it, never about
//! administrative records, and at most at the configured rate. It is charged to the quota of the neighbour
//! that brought its subject.

use crate::bp::{
    AdminRecord, BundleFlags, Content, CreationTimestamp, DtnTime, Eid, PrimaryBlock, ReasonCode, StatusItem,
    StatusReport, v6,
};
use crate::service::{AppIndication, BundleName, BundleVersion, LinkId, Priority, RecordId, ReportedStatus};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

use super::Agent;
use super::accounts::NeighbourNumber;
use super::clock::millis;
use super::delivery::PayloadId;
use super::head::AnyHead;
use super::routing::Hop;
use super::secret::NumberKind;

/// Maximum number of neighbours, and of sources over each of them, with separate rate limits; beyond it, the
/// one unused longest is forgotten.
const NEIGHBOURS_MAX: usize = 256;
const SOURCES_MAX: usize = 64;
/// Rate of a neighbour and of all neighbours together, as multiples of the rate of a source.
const SOURCES_A_NEIGHBOUR: u32 = 4;
const SOURCES_IN_ALL: u32 = 16;

/// Rate limit of administrative records caused by bundles of other nodes: per source over a neighbour, per neighbour, and in
/// total.
///
/// ```text
///   source over a neighbour: R per minute --.
///   a new source over it: begins with R/2 --+--> neighbour: 4 R per minute --> all: 16 R per minute
///   at most R new sources per minute
/// ```
///
/// A neighbour can invent sources, so what one neighbour brings does not reduce the allowance of another, whatever sources it
/// names. A source may continue while it has used no more than is left of its neighbour's allowance, and a neighbour while it
/// has used no more than is left in total. So a party that has used little always finds something left.
///
#[derive(Debug)]
pub(super) struct ReportRateLimit {
    all: TokenBucket,
    of: BTreeMap<NeighbourNumber, NeighbourRateLimit>,
}

/// Allowances of one neighbour and of the sources over it.
#[derive(Debug)]
struct NeighbourRateLimit {
    all: TokenBucket,
    newcomers: TokenBucket,
    of: BTreeMap<u64, TokenBucket>,
}

impl ReportRateLimit {
    pub(super) fn new(per_minute: u32) -> Self {
        let all = TokenBucket::full(Instant::ZERO, per_minute.saturating_mul(SOURCES_IN_ALL));
        ReportRateLimit { all, of: BTreeMap::new() }
    }

    /// Takes one record from the allowance of a source over a neighbour. Returns false if none is left.
    pub(super) fn take(
        &mut self,
        now: Instant,
        per_minute: u32,
        neighbour: NeighbourNumber,
        source: u64,
    ) -> bool {
        let [of_neighbour, of_all] =
            [SOURCES_A_NEIGHBOUR, SOURCES_IN_ALL].map(|sources| per_minute.saturating_mul(sources));
        self.all.fill(now, of_all);
        if self.of.len() >= NEIGHBOURS_MAX && !self.of.contains_key(&neighbour) {
            forget_longest(&mut self.of, |of| of.all.at);
        }
        let here = self.of.entry(neighbour).or_insert_with(|| NeighbourRateLimit {
            all: TokenBucket::full(now, of_neighbour),
            newcomers: TokenBucket::full(now, per_minute),
            of: BTreeMap::new(),
        });
        here.all.fill(now, of_neighbour);
        let left = here.all.level;
        let may_go_on =
            here.all.missing(of_neighbour) <= self.all.level && left >= ONE && self.all.level >= ONE;
        let Some(source) = here.source(now, per_minute, source).filter(|_| may_go_on) else { return false };
        if source.level < ONE || source.missing(per_minute) > left {
            return false;
        }
        source.level -= ONE;
        here.all.level -= ONE;
        self.all.level -= ONE;
        true
    }
}

impl NeighbourRateLimit {
    /// Allowance of a source; `None` if the source is new and there were too many new ones.
    fn source(&mut self, now: Instant, per_minute: u32, source: u64) -> Option<&mut TokenBucket> {
        if !self.of.contains_key(&source) {
            self.newcomers.fill(now, per_minute);
            self.newcomers.level = self.newcomers.level.checked_sub(ONE)?;
            if self.of.len() >= SOURCES_MAX {
                forget_longest(&mut self.of, |of| of.at);
            }
            let full = TokenBucket::full(now, per_minute);
            self.of.insert(source, TokenBucket { level: (full.level / 2).max(ONE), ..full });
        }
        let of = self.of.get_mut(&source)?;
        of.fill(now, per_minute);
        Some(of)
    }
}

fn forget_longest<K: Ord + Copy, V>(of: &mut BTreeMap<K, V>, at: impl Fn(&V) -> Instant) {
    if let Some((key, _)) = of.iter().min_by_key(|(_, of)| at(of)) {
        let key = *key;
        of.remove(&key);
    }
}

/// Token bucket, filled at a constant rate.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    at: Instant,
    /// Level, in units of 1/60,000,000,000 of a record: one nanosecond adds `per_minute` units.
    level: u128,
}

const ONE: u128 = 60_000_000_000;

impl TokenBucket {
    fn full(at: Instant, per_minute: u32) -> Self {
        TokenBucket { at, level: u128::from(per_minute) * ONE }
    }

    fn fill(&mut self, now: Instant, per_minute: u32) {
        let gained = now.saturating_since(self.at).as_nanos() * u128::from(per_minute);
        self.at = now;
        self.level = (self.level + gained).min(u128::from(per_minute) * ONE);
    }

    /// Difference between the level and a full bucket.
    fn missing(&self, per_minute: u32) -> u128 {
        (u128::from(per_minute) * ONE).saturating_sub(self.level)
    }
}

impl Agent {
    pub(super) fn report_received(
        &mut self,
        now: Instant,
        neighbour: NeighbourNumber,
        head: &AnyHead,
        reason: ReasonCode,
    ) {
        if self.config.reports.reception {
            self.report(now, neighbour, head, ReportedStatus::Received, reason);
        }
    }

    /// Reports unsupported blocks whose flags request it (RFC 9171 5.6 step 4).
    pub(super) fn report_unsupported(&mut self, now: Instant, neighbour: NeighbourNumber, head: &AnyHead) {
        let reason = match head.version() {
            BundleVersion::V7 => ReasonCode::BlockUnsupported,
            BundleVersion::V6 => ReasonCode::BlockUnintelligible,
        };
        for _ in head.unsupported().iter().filter(|block| block.report) {
            self.report_received(now, neighbour, head, reason);
        }
    }

    pub(super) fn report_forwarded(&mut self, now: Instant, record: RecordId) {
        let held = &self.holdings[&record];
        if self.config.reports.forwarding && held.head.asks_for(ReportedStatus::Forwarded) {
            let (head, neighbour, none) =
                (held.head.clone(), held.neighbour, ReasonCode::NoAdditionalInformation);
            self.report(now, neighbour, &head, ReportedStatus::Forwarded, none);
        }
    }

    /// Reports the delivery of the payload to which this record belongs, as that of a complete bundle.
    pub(super) fn report_delivered(&mut self, now: Instant, record: RecordId) {
        let held = &self.holdings[&record];
        if self.config.reports.delivery && held.head.asks_for(ReportedStatus::Delivered) {
            let (head, neighbour) = (held.head.clone().without_fragment(), held.neighbour);
            let none = ReasonCode::NoAdditionalInformation;
            self.report(now, neighbour, &head, ReportedStatus::Delivered, none);
        }
    }

    /// Reports a deletion. That of a bundle in custody is always reported (RFC 5050 5.1, 5.13).
    pub(super) fn report_deleted(
        &mut self,
        now: Instant,
        neighbour: NeighbourNumber,
        head: &AnyHead,
        reason: ReasonCode,
        in_custody: bool,
    ) {
        if in_custody || (self.config.reports.deletion && head.asks_for(ReportedStatus::Deleted)) {
            self.report(now, neighbour, head, ReportedStatus::Deleted, reason);
        }
    }

    /// Number that represents the node ID in a bundle's source.
    pub(super) fn source_key(&self, subject: &AnyHead) -> u64 {
        self.startup.secret().number(NumberKind::Source, &subject.source().node_id().to_string())
    }

    /// Sends a report about a bundle that this neighbour brought.
    pub(super) fn report(
        &mut self,
        now: Instant,
        neighbour: NeighbourNumber,
        subject: &AnyHead,
        status: ReportedStatus,
        reason: ReasonCode,
    ) {
        if subject.is_administrative() || subject.report_to().is_null() || subject.source().is_null() {
            return;
        }
        let per_minute = self.config.reports.per_minute_max;
        let source = self.source_key(subject);
        if !self.report_rate_limit.take(now, per_minute, neighbour, source) {
            self.counters.reports_suppressed += 1;
            return;
        }
        let payload = match subject {
            AnyHead::V7(subject) => self.record_of_v7(now, subject, status, reason),
            AnyHead::V6(subject) => self.record_of_v6(now, subject, &[status], reason),
        };
        let (lifetime, priority) = (self.config.reports.lifetime, self.config.reports.priority);
        let destination = subject.report_to().clone();
        let about = (subject.version(), destination, payload);
        if self.originate_record(now, neighbour, about, lifetime, priority).is_some() {
            self.counters.reports_sent += 1;
        } else {
            self.counters.reports_suppressed += 1;
        }
    }

    fn record_of_v7(
        &self,
        now: Instant,
        subject: &crate::bp::Head,
        status: ReportedStatus,
        reason: ReasonCode,
    ) -> Bytes {
        let primary = &subject.primary;
        let asserted = match self.time.clock.dtn_ms(now) {
            Some(dtn_ms) if primary.flags.contains(BundleFlags::STATUS_TIME) => {
                StatusItem::AssertedAt(DtnTime(dtn_ms))
            }
            _ => StatusItem::Asserted,
        };
        let when = |this| if status == this { asserted } else { StatusItem::NotAsserted };
        let report = StatusReport {
            received: when(ReportedStatus::Received),
            forwarded: when(ReportedStatus::Forwarded),
            delivered: when(ReportedStatus::Delivered),
            deleted: when(ReportedStatus::Deleted),
            further: Vec::new(),
            reason,
            source: primary.source.clone(),
            timestamp: primary.timestamp,
            fragment: primary.fragment.map(|fragment| (fragment.offset, subject.payload.length)),
        };
        AdminRecord::StatusReport(report).to_bytes()
    }

    /// A status report of version 6 has a time with each assertion; a node without a clock writes zero.
    fn record_of_v6(
        &self,
        now: Instant,
        subject: &v6::Head,
        statuses: &[ReportedStatus],
        reason: ReasonCode,
    ) -> Bytes {
        let time = v6::Time::from_millis(self.time.clock.dtn_ms(now).unwrap_or(0));
        let when = |this| statuses.contains(&this).then_some(time);
        let report = v6::StatusReport {
            received: when(ReportedStatus::Received),
            custody: when(ReportedStatus::CustodyAccepted),
            forwarded: when(ReportedStatus::Forwarded),
            delivered: when(ReportedStatus::Delivered),
            deleted: when(ReportedStatus::Deleted),
            unused_flags: 0,
            // Version 6 has only the first nine reason codes.
            reason: match reason {
                ReasonCode::BlockUnsupported => ReasonCode::BlockUnintelligible,
                reason if reason.number() > 8 => ReasonCode::NoAdditionalInformation,
                reason => reason,
            },
            subject: subject_of(subject),
        };
        v6::AdminRecord::StatusReport(report).to_bytes()
    }

    /// Creates a bundle with an administrative record, in the version of its subject, charged to this
    /// neighbour. Returns its record; `None` if there is no space.
    pub(super) fn originate_record(
        &mut self,
        now: Instant,
        neighbour: NeighbourNumber,
        (version, destination, payload): (BundleVersion, Eid, Bytes),
        lifetime: Duration,
        priority: Priority,
    ) -> Option<RecordId> {
        let lifetime = lifetime.max(Duration::from_millis(1));
        let length = payload.len() as u64;
        let head = match version {
            BundleVersion::V7 => {
                let timestamp: CreationTimestamp = self.timestamp(now);
                let mut primary =
                    PrimaryBlock::new(destination, self.node.clone(), timestamp, millis(lifetime));
                primary.crc = self.primary_crc();
                primary.flags = BundleFlags::ADMINISTRATIVE_RECORD;
                primary.report_to = Eid::Null;
                let mut head = crate::bp::Head::new(primary, length);
                head.payload.crc = self.config.block_crc;
                self.furnish(&mut head, priority, None);
                AnyHead::V7(head)
            }
            BundleVersion::V6 => {
                let mut flags = BundleFlags::ADMINISTRATIVE_RECORD.with_priority(priority);
                if destination.is_singleton() {
                    flags |= BundleFlags::SINGLETON;
                }
                let endpoints = [destination, self.node.clone(), Eid::Null];
                AnyHead::V6(Box::new(self.head_v6(now, endpoints, flags, lifetime, length)))
            }
        };
        self.originate(now, neighbour, head, payload)
    }

    /// Adds the extension blocks of a bundle made at this node.
    pub(super) fn furnish(&self, head: &mut crate::bp::Head, priority: Priority, hop_limit: Option<u8>) {
        if let Some(limit) = hop_limit.filter(|limit| *limit > 0) {
            head.set(&Content::HopCount(crate::bp::HopCount { limit, count: 0 }));
        }
        // A node without a clock must send the age (RFC 9171 4.4.2).
        if !head.primary.timestamp.time.is_known() {
            head.set(&Content::BundleAge(0));
        }
        if priority != Priority::Normal {
            head.set(&Content::QualityOfService(priority.into()));
        }
    }

    /// Indicates the assertions of a report of version 6, which is this payload.
    pub(super) fn say_report_v6(&mut self, report: &v6::StatusReport, reporter: &Eid, id: PayloadId) {
        let name = report.subject.source.bundle_name(report.subject.timestamp());
        let said = [
            (ReportedStatus::Received, report.received.is_some()),
            (ReportedStatus::CustodyAccepted, report.custody.is_some()),
            (ReportedStatus::Forwarded, report.forwarded.is_some()),
            (ReportedStatus::Delivered, report.delivered.is_some()),
            (ReportedStatus::Deleted, report.deleted.is_some()),
        ];
        self.say_statuses(&name, &said, report.reason, reporter, id);
    }

    /// Indicates the assertions of a report of version 7, which is this payload.
    pub(super) fn say_report(&mut self, report: &StatusReport, reporter: &Eid, id: PayloadId) {
        let name = report.source.bundle_name(report.timestamp);
        let said = [
            (ReportedStatus::Received, report.received.is_asserted()),
            (ReportedStatus::Forwarded, report.forwarded.is_asserted()),
            (ReportedStatus::Delivered, report.delivered.is_asserted()),
            (ReportedStatus::Deleted, report.deleted.is_asserted()),
        ];
        self.say_statuses(&name, &said, report.reason, reporter, id);
    }

    /// Indicates the asserted statuses of one of this node's bundles to the application.
    fn say_statuses(
        &mut self,
        name: &BundleName,
        said: &[(ReportedStatus, bool)],
        reason: ReasonCode,
        reporter: &Eid,
        id: PayloadId,
    ) {
        let over = self.came_over(id);
        for (status, _) in said.iter().filter(|(_, asserted)| *asserted) {
            self.indications.push(AppIndication::Report {
                name: name.clone(),
                status: *status,
                reason: reason.number(),
                reporter: reporter.to_string(),
                over: over.clone(),
            });
        }
    }

    /// Links over which the parts of a payload held at this node arrived; empty if a part was made here or
    /// arrived before the last start.
    pub(super) fn came_over(&self, id: PayloadId) -> Vec<LinkId> {
        let Some(local) = self.deliveries.payload(id) else { return Vec::new() };
        let over = |record| Some(self.holdings.get(&record)?.intake?.0);
        let links: Option<BTreeSet<LinkId>> = local.assembly.records().map(over).collect();
        links.unwrap_or_default().into_iter().collect()
    }

    /// Node ID of the peer of a link, while the link is up.
    pub fn peer(&self, link: LinkId) -> Option<&Eid> {
        self.links.peer(link)
    }

    /// True if this link leads to a node: the node is its peer, or the link is the next hop of a route to it.
    /// A report by the node, or about a bundle for it, should arrive only over such a link.
    pub fn leads_to(&mut self, link: LinkId, node: &Eid) -> bool {
        // With a replicating router every neighbour is a next hop.
        let is_met = self.links.peer(link).is_some() || !link.is_incoming();
        // Paths that are learned change, and need not be those in the other direction.
        let is_anywhere = self.routing.router.spreads() || self.routing.has_path(node);
        is_met && is_anywhere || self.is_next_hop(link, node)
    }

    /// Returns the links over which a bundle to an endpoint would leave, those of the cheapest next hop first; `None` if every
    /// neighbour gets a copy. Empty if there is no next hop: a neighbour is one only while it is connected, or a route names its link.
    pub fn links_to(&mut self, endpoint: &Eid) -> Option<Vec<LinkId>> {
        let mut hops = self.routing.table.hops(endpoint);
        if hops.is_empty() {
            hops.extend(self.routing.learned_hop(endpoint, None).map(|hop| (0, hop)));
        }
        if self.config.direct_neighbours && endpoint.is_singleton() {
            hops.insert(0, (0, Hop::Node(endpoint.node_id().detached())));
        }
        if self.routing.router.spreads() {
            return None;
        }
        let mut links = Vec::new();
        for link in hops.iter().flat_map(|(_, hop)| self.links.of(hop)) {
            if !links.contains(&link) {
                links.push(link);
            }
        }
        Some(links)
    }

    /// True if the node is the peer of the link, or a route to it leads over the link.
    pub(super) fn is_next_hop(&mut self, link: LinkId, node: &Eid) -> bool {
        if self.links.peer(link) == Some(&node.node_id()) {
            return true;
        }
        let known = self.links.peer(link).is_some() || !link.is_incoming();
        let mut hops = self.routing.table.hops(node);
        if hops.is_empty() {
            hops.extend(self.routing.learned_hop(node, None).map(|hop| (0, hop)));
        }
        known && hops.iter().any(|(_, hop)| self.links.of(hop).any(|other| other == link))
    }

    /// Creates a complete bundle of this node. Returns its record; `None` if there is no space.
    fn originate(
        &mut self,
        now: Instant,
        neighbour: NeighbourNumber,
        head: AnyHead,
        payload: Bytes,
    ) -> Option<RecordId> {
        let record = self.begin_own(now, head, neighbour).ok()?;
        self.append_own(record, payload);
        Some(record)
    }
}

/// Identification of a bundle in administrative records of version 6.
pub(super) fn subject_of(head: &v6::Head) -> v6::admin::Subject {
    let primary = &head.primary;
    v6::admin::Subject {
        source: primary.source().clone(),
        created_s: primary.created_s,
        sequence: primary.sequence,
        fragment: primary.fragment.map(|fragment| (fragment.offset, head.payload.length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PER_MINUTE: u32 = 600;

    #[test]
    fn who_asks_for_many_reports_takes_none_from_others() {
        let mut report_rate_limit = ReportRateLimit::new(PER_MINUTE);
        let at = Instant::from_secs;
        let [friend, mallory] = [NeighbourNumber(1), NeighbourNumber(2)];
        let mut sent = 0;
        for second in 0..60 {
            // With the friend's source, with a source of its own, and with as many invented ones as possible.
            for number in 0..600 {
                for source in [1, 2, 1_000 * second + number] {
                    sent += u32::from(report_rate_limit.take(at(second), PER_MINUTE, mallory, source));
                }
            }
            for _ in 0..10 {
                assert!(report_rate_limit.take(at(second), PER_MINUTE, friend, 1), "second {second}");
            }
        }
        assert!((600..=2 * 4 * PER_MINUTE).contains(&sent), "{sent}");
    }

    #[test]
    fn after_a_start_every_friend_has_its_reports() {
        let mut report_rate_limit = ReportRateLimit::new(PER_MINUTE);
        for friend in 1..=100 {
            for report in 0..20 {
                let takes =
                    report_rate_limit.take(Instant::ZERO, PER_MINUTE, NeighbourNumber(friend), friend.into());
                assert!(takes, "report {report} of friend {friend}");
            }
        }
    }

    #[test]
    fn who_asks_for_little_finds_something_left() {
        let mut report_rate_limit = ReportRateLimit::new(PER_MINUTE);
        let mut take = |neighbour, source| {
            report_rate_limit.take(Instant::ZERO, PER_MINUTE, NeighbourNumber(neighbour), source)
        };
        for stranger in 1..=8 {
            // The most that an unknown neighbour can get.
            let sent = (0..100_000_u64).filter(|number| take(stranger, *number % 50)).count();
            assert!(sent <= 4 * PER_MINUTE as usize, "{sent}");
        }
        for report in 0..20 {
            assert!(take(9, 1), "report {report}");
        }
        // A known source over a flooding neighbour still has an allowance.
        let mut report_rate_limit = ReportRateLimit::new(PER_MINUTE);
        assert!(report_rate_limit.take(Instant::ZERO, PER_MINUTE, NeighbourNumber(1), 1));
        let now = Instant::from_secs(60);
        let mut take = |source| report_rate_limit.take(now, PER_MINUTE, NeighbourNumber(1), source);
        assert!((0..100_000_u64).filter(|number| take(2 + *number % 50)).count() > 1_000);
        for report in 0..100 {
            assert!(take(1), "report {report}");
        }
    }

    #[test]
    fn many_neighbours_together_have_an_allowance() {
        let mut report_rate_limit = ReportRateLimit::new(PER_MINUTE);
        let mut sent = 0;
        for second in 0..60 {
            for neighbour in 1..=1_000 {
                for number in 0..20 {
                    let source = 1_000 * second + number;
                    let now = Instant::from_secs(second);
                    sent += u32::from(report_rate_limit.take(
                        now,
                        PER_MINUTE,
                        NeighbourNumber(neighbour),
                        source,
                    ));
                }
            }
            assert!(report_rate_limit.of.len() <= NEIGHBOURS_MAX);
            assert!(report_rate_limit.of.values().all(|of| of.of.len() <= SOURCES_MAX));
        }
        assert!(sent <= 2 * 16 * PER_MINUTE, "{sent}");
    }

    #[test]
    fn reports_are_limited_by_the_minute() {
        let mut report_rate_limit = ReportRateLimit::new(2);
        let mut take = |second| report_rate_limit.take(Instant::from_secs(second), 2, NeighbourNumber(1), 1);
        // A new source begins with half the allowance.
        assert!(take(0) && !take(0) && !take(29) && take(30) && !take(31));
        assert!(take(1000) && take(1000) && !take(1000));
        let mut none = ReportRateLimit::new(0);
        assert!(!none.take(Instant::from_secs(1000), 0, NeighbourNumber(1), 1));
    }
}
