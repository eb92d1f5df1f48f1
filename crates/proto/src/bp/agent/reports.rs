//! Status reports: what becomes of a bundle, told to whom it asks for (RFC 9171 5, 6.1.1, 6.2).
//!
//! Only what the bundle asks for and the configuration allows is sent, never about administrative records, and not more
//! in a minute than configured.

use crate::bp::{
    AdminRecord, BlockFlags, BundleFlags, Content, CreationTimestamp, DtnTime, Eid, Head, PrimaryBlock,
    ReasonCode, Status, StatusReport,
};
use crate::service::{AppIndication, Priority, RecordId, ReportedStatus};
use crate::time::{Duration, Instant};
use bytes::Bytes;

use super::Agent;
use super::clock::millis;
use super::held::is_supported;

/// How many reports may still be sent: a bucket that fills evenly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    at: Instant,
    /// Reports, in units of a 60,000,000,000th: one nanosecond brings `per_minute` of them.
    level: u128,
}

const ONE: u128 = 60_000_000_000;

impl Allowance {
    pub(super) fn new(per_minute: u32) -> Self {
        Allowance { at: Instant::ZERO, level: u128::from(per_minute) * ONE }
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
    pub(super) fn report_received(&mut self, now: Instant, head: &Head, reason: ReasonCode) {
        if self.config.reports.reception {
            self.report(now, head, ReportedStatus::Received, reason);
        }
    }

    /// Reports blocks that are not supported and ask for it (RFC 9171 5.6 step 4).
    pub(super) fn report_unsupported(&mut self, now: Instant, head: &Head) {
        let asks = |block: &crate::bp::Block| {
            !is_supported(block.block_type) && block.flags.contains(BlockFlags::REPORT)
        };
        for _ in head.blocks.iter().filter(|block| asks(block)) {
            self.report_received(now, head, ReasonCode::BlockUnsupported);
        }
    }

    pub(super) fn report_forwarded(&mut self, now: Instant, record: RecordId) {
        let head = &self.bundles[&record].head;
        if self.config.reports.forwarding && head.primary.flags.contains(BundleFlags::REPORT_FORWARDING) {
            let head = head.clone();
            self.report(now, &head, ReportedStatus::Forwarded, ReasonCode::NoAdditionalInformation);
        }
    }

    /// Reports the delivery of the payload that this record is a part of: as of a whole bundle.
    pub(super) fn report_delivered(&mut self, now: Instant, record: RecordId) {
        let head = &self.bundles[&record].head;
        if self.config.reports.delivery && head.primary.flags.contains(BundleFlags::REPORT_DELIVERY) {
            let mut head = head.clone();
            head.primary.fragment = None;
            self.report(now, &head, ReportedStatus::Delivered, ReasonCode::NoAdditionalInformation);
        }
    }

    pub(super) fn report_deleted(&mut self, now: Instant, head: &Head, reason: ReasonCode) {
        if self.config.reports.deletion && head.primary.flags.contains(BundleFlags::REPORT_DELETION) {
            self.report(now, head, ReportedStatus::Deleted, reason);
        }
    }

    fn report(&mut self, now: Instant, subject: &Head, status: ReportedStatus, reason: ReasonCode) {
        let primary = &subject.primary;
        let silent =
            primary.flags.contains(BundleFlags::ADMINISTRATIVE_RECORD) || primary.report_to.is_null();
        if silent || primary.source.is_null() {
            return;
        }
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
        let per_minute = self.config.reports.per_minute_max;
        if !self.allowance.take(now, per_minute) {
            self.counters.reports_suppressed += 1;
            return;
        }
        let payload = AdminRecord::StatusReport(report).to_bytes();
        let head = self.report_head(now, primary.report_to.clone(), payload.len() as u64);
        if self.originate(now, head, payload) {
            self.counters.reports_sent += 1;
        } else {
            self.counters.reports_suppressed += 1;
        }
    }

    fn report_head(&mut self, now: Instant, destination: Eid, length: u64) -> Head {
        let timestamp: CreationTimestamp = self.timestamp(now);
        let lifetime = millis(self.config.reports.lifetime.max(Duration::from_millis(1)));
        let mut primary = PrimaryBlock::new(destination, self.node.clone(), timestamp, lifetime);
        primary.crc = self.primary_crc();
        primary.flags = BundleFlags::ADMINISTRATIVE_RECORD;
        primary.report_to = Eid::Null;
        let mut head = Head::new(primary, length);
        head.payload.crc = self.config.block_crc;
        self.furnish(&mut head, self.config.reports.priority, None);
        head
    }

    /// Extension blocks of a bundle made here.
    pub(super) fn furnish(&self, head: &mut Head, priority: Priority, hop_limit: Option<u8>) {
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

    /// Tells the application what a report says about a bundle of its own.
    pub(super) fn say_report(&mut self, report: &StatusReport, reporter: &Eid) {
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
                reporter: reporter.to_string(),
            });
        }
    }

    /// Makes a bundle of its own, all of it at once. False: there is no space.
    fn originate(&mut self, now: Instant, head: Head, payload: Bytes) -> bool {
        let Some(record) = self.begin_own(now, head) else { return false };
        self.append_own(record, payload);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_limited_by_the_minute() {
        let mut allowance = Allowance::new(2);
        let at = Instant::from_secs;
        assert!(allowance.take(at(0), 2) && allowance.take(at(0), 2) && !allowance.take(at(1), 2));
        assert!(!allowance.take(at(29), 2) && allowance.take(at(30), 2) && !allowance.take(at(31), 2));
        assert!(allowance.take(at(1000), 2) && allowance.take(at(1000), 2) && !allowance.take(at(1000), 2));
    }
}
