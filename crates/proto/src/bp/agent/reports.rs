//! Status reports: what becomes of a bundle, told to whom it asks for (RFC 9171 5, 6.1.1, 6.2).
//!
//! Only what the bundle asks for and the configuration allows is sent, never about administrative records, and not more
//! in a minute than configured. A report takes its place from the share of the neighbour that brought its subject.

use crate::bp::{
    AdminRecord, BundleFlags, Content, CreationTimestamp, DtnTime, Eid, PrimaryBlock, ReasonCode, StatusItem,
    StatusReport, v6,
};
use crate::service::{AppIndication, BundleVersion, LinkId, Priority, RecordId, ReportedStatus};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

use super::Agent;
use super::accounts::NeighbourNumber;
use super::clock::millis;
use super::delivery::LocalKey;
use super::head::AnyHead;
use super::secret::NumberKind;

/// Neighbours, and sources over each of them, whose records are counted apart; with more the one that asked longest ago is
/// forgotten.
const NEIGHBOURS_MAX: usize = 256;
const SOURCES_MAX: usize = 64;
/// One neighbour has the allowance of so many sources, and all together that of so many.
const SOURCES_A_NEIGHBOUR: u32 = 4;
const SOURCES_IN_ALL: u32 = 16;

/// How many records may still be sent because of what others have sent: for each source of bundles over each neighbour, for the
/// neighbour, and in all.
///
/// ```text
///   source over a neighbour: R a minute --.
///   a source that was not heard of: R/2 ---+--> neighbour: 4 R a minute --> all: 16 R a minute
///   no more than R of those a minute
/// ```
///
/// Anybody can make up sources, so what one neighbour brings takes nothing from what another does, whatever names it uses. A
/// source may go on while it has taken no more than is left of its neighbour's, a neighbour while it has taken no more than is
/// left in all: who has asked for little finds something left.
#[derive(Debug)]
pub(super) struct ReportRateLimit {
    all: TokenBucket,
    of: BTreeMap<NeighbourNumber, NeighbourRateLimit>,
}

/// The allowances of one neighbour and of the sources over it.
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

    /// Takes one record for a source over a neighbour. False: there is none.
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
    /// The allowance of a source. `None`: it was not heard of, and there were too many such.
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

/// How many records may still be sent: a bucket that fills evenly.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    at: Instant,
    /// Records, in units of a 60,000,000,000th: one nanosecond brings `per_minute` of them.
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

    /// The level that it lacks to be full.
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

    /// Reports blocks that are not supported and ask for it (RFC 9171 5.6 step 4).
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
        let held = &self.bundles[&record];
        if self.config.reports.forwarding && held.head.asks_for(ReportedStatus::Forwarded) {
            let (head, neighbour, none) =
                (held.head.clone(), held.neighbour, ReasonCode::NoAdditionalInformation);
            self.report(now, neighbour, &head, ReportedStatus::Forwarded, none);
        }
    }

    /// Reports the delivery of the payload that this record is a part of: as of a whole bundle.
    pub(super) fn report_delivered(&mut self, now: Instant, record: RecordId) {
        let held = &self.bundles[&record];
        if self.config.reports.delivery && held.head.asks_for(ReportedStatus::Delivered) {
            let (head, neighbour) = (held.head.clone().without_fragment(), held.neighbour);
            let none = ReasonCode::NoAdditionalInformation;
            self.report(now, neighbour, &head, ReportedStatus::Delivered, none);
        }
    }

    /// The deletion of what is in custody is reported in any case (RFC 5050 5.1, 5.13).
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

    /// The number that stands for the node that a bundle says it is from.
    pub(super) fn source_key(&self, subject: &AnyHead) -> u64 {
        self.secret.number(NumberKind::Source, &subject.source().node_id().to_string())
    }

    /// Reports about a bundle that this neighbour has brought.
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
        if self.originate_record(now, neighbour, about, lifetime, priority) {
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
        let asserted = match self.clock.dtn_ms(now) {
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

    /// A status report of version 6 has a time with everything it says; a node without a clock says zero.
    fn record_of_v6(
        &self,
        now: Instant,
        subject: &v6::Head,
        statuses: &[ReportedStatus],
        reason: ReasonCode,
    ) -> Bytes {
        let time = v6::Time::from_millis(self.clock.dtn_ms(now).unwrap_or(0));
        let when = |this| statuses.contains(&this).then_some(time);
        let report = v6::StatusReport {
            received: when(ReportedStatus::Received),
            custody: when(ReportedStatus::CustodyAccepted),
            forwarded: when(ReportedStatus::Forwarded),
            delivered: when(ReportedStatus::Delivered),
            deleted: when(ReportedStatus::Deleted),
            unused_flags: 0,
            // Version 6 has the first nine.
            reason: match reason {
                ReasonCode::BlockUnsupported => ReasonCode::BlockUnintelligible,
                reason if reason.number() > 8 => ReasonCode::NoAdditionalInformation,
                reason => reason,
            },
            subject: subject_of(subject),
        };
        v6::AdminRecord::StatusReport(report).to_bytes()
    }

    /// Makes a bundle with an administrative record, of the version of its subject, because of what this neighbour has
    /// brought. False: there is no space.
    pub(super) fn originate_record(
        &mut self,
        now: Instant,
        neighbour: NeighbourNumber,
        (version, destination, payload): (BundleVersion, Eid, Bytes),
        lifetime: Duration,
        priority: Priority,
    ) -> bool {
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
                let singleton = match destination.is_singleton() {
                    true => v6::BundleFlags::SINGLETON,
                    false => v6::BundleFlags::NONE,
                };
                let flags = v6::BundleFlags::ADMINISTRATIVE_RECORD | singleton;
                let endpoints = [destination, self.node.clone(), Eid::Null];
                AnyHead::V6(Box::new(self.head_v6(
                    now,
                    endpoints,
                    flags.with_priority(priority),
                    lifetime,
                    length,
                )))
            }
        };
        self.originate(now, neighbour, head, payload)
    }

    /// Extension blocks of a bundle made here.
    pub(super) fn furnish(&self, head: &mut crate::bp::Head, priority: Priority, hop_limit: Option<u8>) {
        if let Some(limit) = hop_limit.filter(|limit| *limit > 0) {
            head.set(&Content::HopCount(crate::bp::HopCount { limit, count: 0 }));
        }
        // A node without a clock has to send the age (RFC 9171 4.4.2).
        if !head.primary.timestamp.time.is_known() {
            head.set(&Content::BundleAge(0));
        }
        if priority != Priority::Normal {
            head.set(&Content::QualityOfService(priority.into()));
        }
    }

    /// The same for version 6.
    pub(super) fn say_report_v6(&mut self, report: &v6::StatusReport, key: &LocalKey) {
        let over = self.came_over(key);
        let said = [
            (ReportedStatus::Received, report.received),
            (ReportedStatus::CustodyAccepted, report.custody),
            (ReportedStatus::Forwarded, report.forwarded),
            (ReportedStatus::Delivered, report.delivered),
            (ReportedStatus::Deleted, report.deleted),
        ];
        for (status, _) in said.into_iter().filter(|(_, time)| time.is_some()) {
            self.up.push_back(AppIndication::Report {
                source: report.subject.source.to_string(),
                created: (report.subject.created_s.saturating_mul(1000), report.subject.sequence),
                status,
                reason: report.reason.number(),
                reporter: key.adu.source.to_string(),
                over: over.clone(),
            });
        }
    }

    /// Tells the application what a report says about a bundle of its own.
    pub(super) fn say_report(&mut self, report: &StatusReport, key: &LocalKey) {
        let over = self.came_over(key);
        let said = [
            (ReportedStatus::Received, report.received),
            (ReportedStatus::Forwarded, report.forwarded),
            (ReportedStatus::Delivered, report.delivered),
            (ReportedStatus::Deleted, report.deleted),
        ];
        for (status, _) in said.into_iter().filter(|(_, asserted)| asserted.is_asserted()) {
            self.up.push_back(AppIndication::Report {
                source: report.source.to_string(),
                created: (report.timestamp.time.0, report.timestamp.sequence),
                status,
                reason: report.reason.number(),
                reporter: key.adu.source.to_string(),
                over: over.clone(),
            });
        }
    }

    /// The links over which the parts of a payload came that is here; none where a part was made here or came before the last
    /// start.
    pub(super) fn came_over(&self, key: &LocalKey) -> Vec<LinkId> {
        let Some(local) = self.local.get(key) else { return Vec::new() };
        let over = |record| Some(self.bundles.get(&record)?.intake?.0);
        let links: Option<BTreeSet<LinkId>> = local.assembly.records().map(over).collect();
        links.unwrap_or_default().into_iter().collect()
    }

    /// The neighbour at the other end of a link, as it is called, while the link is up.
    pub fn peer(&self, link: LinkId) -> Option<&Eid> {
        self.links.peer(link)
    }

    /// True if this link leads to a node: it is the node's own, or the next hop of a route to it. A report by the node, or
    /// about a bundle for it, comes over such a link; anybody else has no business with it.
    pub fn leads_to(&mut self, link: LinkId, node: &Eid) -> bool {
        // Where bundles are spread, everybody who is met is a next hop.
        let is_met = self.links.peer(link).is_some() || !link.is_incoming();
        is_met && self.router.spreads() || self.is_next_hop(link, node)
    }

    /// True if the node is at the other end of a link, or a route to it leads there.
    pub(super) fn is_next_hop(&mut self, link: LinkId, node: &Eid) -> bool {
        if self.links.peer(link) == Some(&node.node_id()) {
            return true;
        }
        let known = self.links.peer(link).is_some() || !link.is_incoming();
        known && self.table.hops(node).iter().any(|(_, hop)| self.links.of(hop).contains(&link))
    }

    /// Makes a bundle of its own, all of it at once. False: there is no space.
    fn originate(&mut self, now: Instant, neighbour: NeighbourNumber, head: AnyHead, payload: Bytes) -> bool {
        let Some(record) = self.begin_own(now, head, neighbour) else { return false };
        self.append_own(record, payload);
        true
    }
}

/// How records of version 6 name a bundle.
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
            // Under the name of the friend, under one of its own, and under as many names as there are.
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
            // All that it can get.
            let sent = (0..100_000_u64).filter(|number| take(stranger, *number % 50)).count();
            assert!(sent <= 4 * PER_MINUTE as usize, "{sent}");
        }
        for report in 0..20 {
            assert!(take(9, 1), "report {report}");
        }
        // Over the neighbour of a stranger there is something left, too, for who was heard of.
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
        // A newcomer begins with half of it.
        assert!(take(0) && !take(0) && !take(29) && take(30) && !take(31));
        assert!(take(1000) && take(1000) && !take(1000));
        let mut none = ReportRateLimit::new(0);
        assert!(!none.take(Instant::from_secs(1000), 0, NeighbourNumber(1), 1));
    }
}
