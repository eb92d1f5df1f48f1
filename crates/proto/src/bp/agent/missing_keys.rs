//! Bundles that wait for their key. They were accepted while earlier keys were in force, or before the start of this node: the
//! check may have passed then, and nobody else may have them, so they are kept until a key fits or their lifetime ends.

use crate::service::{RecordId, SecurityFailure};
use crate::time::Instant;
use std::collections::BTreeMap;

use super::Agent;
use super::checking::CheckTarget;
use super::clock::DeadlineKind;
use super::delivery::PayloadId;
use super::reassembly::Extent;
use super::security::BundleSecurity;

/// Targets that wait for other keys or for the clock, each with the reason.
#[derive(Debug, Default)]
pub(super) struct MissingKeys {
    waiting: BTreeMap<CheckTarget, SecurityFailure>,
    /// Records below this one were begun before the keys in force were set.
    since: RecordId,
}

impl MissingKeys {
    /// Reason why a target waits; `None` if it does not wait.
    pub(super) fn of(&self, target: &CheckTarget) -> Option<SecurityFailure> {
        self.waiting.get(target).copied()
    }

    /// Ends the wait of a target. Returns true if it has waited.
    fn remove(&mut self, target: &CheckTarget) -> bool {
        self.waiting.remove(target).is_some()
    }

    /// Ends the wait of all targets.
    fn take(&mut self) -> impl Iterator<Item = CheckTarget> {
        core::mem::take(&mut self.waiting).into_keys()
    }
}

impl BundleSecurity {
    /// Ends the verification of a target, or its wait for a key.
    pub(super) fn stop_check(&mut self, target: &CheckTarget) {
        self.checks.stop(target);
        self.missing_keys.remove(target);
    }
}

impl Agent {
    /// True if this failure of a bundle may come from a key that has gone since the bundle was accepted.
    pub(super) fn may_lack_key(
        &self,
        records: impl IntoIterator<Item = RecordId>,
        failure: SecurityFailure,
    ) -> bool {
        let is_earlier =
            |record: RecordId| self.startup.was_found(record) || record < self.security.missing_keys.since;
        failure.may_pass_later() && records.into_iter().any(is_earlier)
    }

    /// Lets a bundle wait until keys or the clock change, or its lifetime ends; another whole copy of a payload is verified first.
    pub(super) fn postpone_check(&mut self, target: CheckTarget, failure: SecurityFailure) {
        if let CheckTarget::Local(id) = target
            && self.take_next_copy(id)
        {
            return self.check_signature(target);
        }
        self.counters.checks_postponed += 1;
        self.security.missing_keys.waiting.insert(target, failure);
    }

    /// Takes the whole copy behind the one that was verified: that one may be false, and this one genuine. After the last copy, the
    /// next verification begins with the first one; returns false.
    fn take_next_copy(&mut self, id: PayloadId) -> bool {
        let Some(local) = self.deliveries.payload(id) else { return false };
        let verified = local.extents().first().map(|extent| extent.record);
        let next = local.assembly.whole_copies().find(|copy| Some(copy.record) > verified);
        let extents = next.map_or_else(|| local.assembly.extents(), |copy| vec![copy]);
        self.deliveries.set_extents(id, extents);
        next.is_some()
    }

    /// Verifies everything again that waits for other keys, and that has begun with the earlier ones.
    pub(super) fn keys_were_set(&mut self) {
        self.security.missing_keys.since = self.startup.first_later_record();
        self.security.checks.begin_all_again();
        self.retry_postponed_checks();
    }

    /// Verifies everything again that waits for other keys or for the clock.
    pub(super) fn retry_postponed_checks(&mut self) {
        let targets = self.security.missing_keys.take();
        if self.security.checks.retry(targets) {
            self.time.deadlines.at(Instant::ZERO, DeadlineKind::RetryChecks);
        }
    }

    /// Verifies another copy of a payload that waits for its key: the waiting one may be false, and this one genuine.
    pub(super) fn check_copy_beside(&mut self, id: PayloadId, copy: Extent) {
        let target = CheckTarget::Local(id);
        let total = self.deliveries.payload(id).map(|local| local.total());
        let is_whole = copy.start == 0 && Some(copy.end) == total && copy.end > 0;
        if is_whole && self.security.missing_keys.remove(&target) {
            self.deliveries.set_extents(id, vec![copy]);
            self.check_signature(target);
        }
    }
}
