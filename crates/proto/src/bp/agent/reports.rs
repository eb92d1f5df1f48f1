//! Status reports: what becomes of a bundle, told to whom it asks for (RFC 9171 5, 6.1.1, 6.2).
//!
//! Only what the bundle asks for and the configuration allows is sent, never about administrative records, and not more
//! in a minute than configured.

use crate::bp::{
    AdminRecord, BundleFlags, Content, CreationTimestamp, DtnTime, Eid, PrimaryBlock, ReasonCode, Status,
    StatusReport, v6,
};
use crate::service::{AppIndication, BundleVersion, LinkId, Priority, RecordId, ReportedStatus};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

use super::Agent;
use super::accounts::Neighbour;
use super::clock::millis;
use super::delivery::LocalKey;
use super::head::Head;

/// Sources whose reports are counted apart; with more the one that asked longest ago is forgotten.
const SOURCES_MAX: usize = 1024;
/// Neighbours whose newcomers are counted apart; with more the one that brought one longest ago is forgotten.
const NEIGHBOURS_MAX: usize = 1024;

/// How many reports may still be sent, for each node whose bundles ask for them: one that asks for many takes none from others.
///
/// Anybody can make up nodes. So a node that was not heard of has to find a place first, and over one neighbour these places come no
/// faster than reports of one node; whoever has one keeps it while up to a thousand others come.
#[derive(Debug, Default)]
pub(super) struct Allowances {
    /// For nodes that were not heard of, by the neighbour that brings their bundles.
    newcomers: BTreeMap<Neighbour, Allowance>,
    of: BTreeMap<Eid, Allowance>,
}

impl Allowances {
    fn take(&mut self, now: Instant, per_minute: u32, node: &Eid, neighbour: Neighbour) -> bool {
        if let Some(allowance) = self.of.get_mut(node) {
            return allowance.take(now, per_minute);
        }
        if !self.newcomers.contains_key(&neighbour) {
            forget_longest(&mut self.newcomers, NEIGHBOURS_MAX);
        }
        let newcomers = self.newcomers.entry(neighbour).or_insert_with(|| Allowance::new(now, per_minute));
        if !newcomers.take(now, per_minute) {
            return false;
        }
        forget_longest(&mut self.of, SOURCES_MAX);
        let mut allowance = Allowance::new(now, per_minute);
        let takes = allowance.take(now, per_minute);
        self.of.insert(node.detached(), allowance);
        takes
    }
}

/// Makes place for one more: where as many are there as may be, the one that asked longest ago goes.
fn forget_longest<K: Ord + Clone>(all: &mut BTreeMap<K, Allowance>, most: usize) {
    if all.len() >= most
        && let Some(longest) = all.iter().min_by_key(|(_, allowance)| allowance.at)
    {
        let longest = longest.0.clone();
        all.remove(&longest);
    }
}

/// How many reports may still be sent: a bucket that fills evenly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    at: Instant,
    /// Reports, in units of a 60,000,000,000th: one nanosecond brings `per_minute` of them.
    level: u128,
}

const ONE: u128 = 60_000_000_000;

impl Allowance {
    /// A full one.
    fn new(now: Instant, per_minute: u32) -> Self {
        Allowance { at: now, level: u128::from(per_minute) * ONE }
    }

    fn take(&mut self, now: Instant, per_minute: u32) -> bool {
        let gained = now.saturating_since(self.at).as_nanos() * u128::from(per_minute);
        self.at = now;
        self.level = (self.level + gained).min(u128::from(per_minute) * ONE);
        let enough = self.level >= ONE;
        if enough {
            self.level -= ONE;
        }
        enough
    }
}

impl Agent {
    pub(super) fn report_received(
        &mut self,
        now: Instant,
        head: &Head,
        neighbour: Neighbour,
        reason: ReasonCode,
    ) {
        if self.config.reports.reception {
            self.report(now, head, neighbour, ReportedStatus::Received, reason);
        }
    }

    /// Reports blocks that are not supported and ask for it (RFC 9171 5.6 step 4).
    pub(super) fn report_unsupported(&mut self, now: Instant, head: &Head, neighbour: Neighbour) {
        let reason = match head.version() {
            BundleVersion::V7 => ReasonCode::BlockUnsupported,
            BundleVersion::V6 => ReasonCode::BlockUnintelligible,
        };
        for _ in head.unsupported().iter().filter(|block| block.report) {
            self.report_received(now, head, neighbour, reason);
        }
    }

    pub(super) fn report_forwarded(&mut self, now: Instant, record: RecordId) {
        let held = &self.bundles[&record];
        if self.config.reports.forwarding && held.head.asks_for(ReportedStatus::Forwarded) {
            let (head, neighbour) = (held.head.clone(), held.neighbour);
            self.report(
                now,
                &head,
                neighbour,
                ReportedStatus::Forwarded,
                ReasonCode::NoAdditionalInformation,
            );
        }
    }

    /// Reports the delivery of the payload that this record is a part of: as of a whole bundle.
    pub(super) fn report_delivered(&mut self, now: Instant, record: RecordId) {
        let held = &self.bundles[&record];
        if self.config.reports.delivery && held.head.asks_for(ReportedStatus::Delivered) {
            let (head, neighbour) = (held.head.clone().without_fragment(), held.neighbour);
            self.report(
                now,
                &head,
                neighbour,
                ReportedStatus::Delivered,
                ReasonCode::NoAdditionalInformation,
            );
        }
    }

    /// The deletion of what is in custody is reported in any case (RFC 5050 5.1, 5.13).
    pub(super) fn report_deleted(
        &mut self,
        now: Instant,
        head: &Head,
        neighbour: Neighbour,
        reason: ReasonCode,
        in_custody: bool,
    ) {
        if in_custody || (self.config.reports.deletion && head.asks_for(ReportedStatus::Deleted)) {
            self.report(now, head, neighbour, ReportedStatus::Deleted, reason);
        }
    }

    /// Makes a report about a bundle that this neighbour has brought, if its source may still have one.
    pub(super) fn report(
        &mut self,
        now: Instant,
        subject: &Head,
        neighbour: Neighbour,
        status: ReportedStatus,
        reason: ReasonCode,
    ) {
        if subject.is_administrative() || subject.report_to().is_null() || subject.source().is_null() {
            return;
        }
        let per_minute = self.config.reports.per_minute_max;
        if !self.allowances.take(now, per_minute, &subject.source().node_id(), neighbour) {
            self.counters.reports_suppressed += 1;
            return;
        }
        let payload = match subject {
            Head::V7(subject) => self.record_of_v7(now, subject, status, reason),
            Head::V6(subject) => self.record_of_v6(now, subject, &[status], reason),
        };
        let (lifetime, priority) = (self.config.reports.lifetime, self.config.reports.priority);
        let destination = subject.report_to().clone();
        if self.originate_record(now, subject.version(), destination, payload, lifetime, priority) {
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
                Status::AssertedAt(DtnTime(dtn_ms))
            }
            _ => Status::Asserted,
        };
        let when = |this| if status == this { asserted } else { Status::NotAsserted };
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

    /// Makes a bundle with an administrative record, of the version of its subject. False: there is no space.
    pub(super) fn originate_record(
        &mut self,
        now: Instant,
        version: BundleVersion,
        destination: Eid,
        payload: Bytes,
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
                Head::V7(head)
            }
            BundleVersion::V6 => {
                let singleton = match destination.is_singleton() {
                    true => v6::BundleFlags::SINGLETON,
                    false => v6::BundleFlags::NONE,
                };
                let flags = v6::BundleFlags::ADMINISTRATIVE_RECORD | singleton;
                let endpoints = [destination, self.node.clone(), Eid::Null];
                Head::V6(Box::new(self.head_v6(
                    now,
                    endpoints,
                    flags.with_priority(priority),
                    lifetime,
                    length,
                )))
            }
        };
        self.originate(now, head, payload)
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
        if self.links.peer(link) == Some(&node.node_id()) {
            return true;
        }
        let known = self.links.peer(link).is_some() || !link.is_incoming();
        if !known {
            return false;
        }
        // Where bundles are spread, everybody who is met is a next hop.
        self.router.spreads()
            || self.table.hops(node).iter().any(|(_, hop)| self.links.of(hop).contains(&link))
    }

    /// Makes a bundle of its own, all of it at once. False: there is no space.
    fn originate(&mut self, now: Instant, head: Head, payload: Bytes) -> bool {
        let Some(record) = self.begin_own(now, head) else { return false };
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

    #[test]
    fn who_asks_for_many_reports_takes_none_from_others() {
        let mut allowances = Allowances::default();
        let at = Instant::from_secs;
        let node = |name: &str| name.parse::<Eid>().expect("a node id");
        let [ours, theirs] = [Neighbour(1), Neighbour(2)];
        assert!(allowances.take(at(0), 60, &node("dtn://friend/"), ours));
        let mut sent = 0;
        for second in 1..=60 {
            // A hundred a second under one name, and a hundred under as many names.
            for number in 0..100 {
                sent += u32::from(allowances.take(at(second), 60, &node("dtn://mallory/"), theirs));
                let name = format!("dtn://mallory-{second}-{number}/");
                sent += u32::from(allowances.take(at(second), 60, &node(&name), theirs));
            }
            assert!(allowances.take(at(second), 60, &node("dtn://friend/"), ours), "second {second}");
            let newcomer = format!("dtn://friend-{second}/");
            assert!(allowances.take(at(second), 60, &node(&newcomer), ours), "a friend that comes only now");
        }
        assert!((120..=300).contains(&sent), "what a minute's places and reports come to: {sent}");
        assert!(allowances.of.len() <= SOURCES_MAX);
    }

    #[test]
    fn so_many_neighbours_are_known_to_bring_newcomers() {
        let mut allowances = Allowances::default();
        let take = |allowances: &mut Allowances, second, name: &str, neighbour| {
            allowances.take(
                Instant::from_secs(second),
                1,
                &name.parse().expect("a node id"),
                Neighbour(neighbour),
            )
        };
        assert!(take(&mut allowances, 0, "dtn://a/", 0));
        assert!(!take(&mut allowances, 1, "dtn://b/", 0));
        for number in 1..=NEIGHBOURS_MAX as u16 {
            assert!(take(&mut allowances, 2, &format!("dtn://c-{number}/"), number));
        }
        assert_eq!((allowances.newcomers.len(), allowances.of.len()), (NEIGHBOURS_MAX, SOURCES_MAX));
        assert!(!take(&mut allowances, 2, "dtn://d/", 2));
        assert!(take(&mut allowances, 2, "dtn://d/", 0), "the one of longest ago is forgotten");
    }

    #[test]
    fn reports_are_limited_by_the_minute() {
        let at = Instant::from_secs;
        let mut allowance = Allowance::new(at(0), 2);
        assert!(allowance.take(at(0), 2) && allowance.take(at(0), 2) && !allowance.take(at(1), 2));
        assert!(!allowance.take(at(29), 2) && allowance.take(at(30), 2) && !allowance.take(at(31), 2));
        assert!(allowance.take(at(1000), 2) && allowance.take(at(1000), 2) && !allowance.take(at(1000), 2));
    }
}
