//! Verification of signatures: payloads are read from the storage in pieces, once they are complete.
//!
//! ```text
//!   for this node, complete  --\                  /--> valid, or not required: delivered, forwarded
//!                               >--> waiting --> reading
//!   to be forwarded, durable --/                  \--> otherwise: deleted, with an indication
//! ```
//!
//! Nothing of a verification is stored: after a restart it is made again. [`RUNNING_MAX`] payloads are read at a time.

use crate::bp::bpsec::{self, KeyChoice, Keys, PAYLOAD_BLOCK, Scope, Service, Verdict, Verification};
use crate::bp::v6::CustodyReason;
use crate::bp::{self, DtnTime, Eid, ReasonCode};
use crate::service::{ManagementIndication, RecordId, Signature, SignatureFailure, StorageFailure};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Agent;
use super::accounts::NeighbourNumber;
use super::clock::DeadlineKind;
use super::delivery::LocalKey;
use super::head::{AnyHead, decode_head};
use super::held::{BundleState, HeldBundle};
use super::reassembly::Extent;
use super::record::HEADER_BYTES;
use super::security::{NOT_PERMITTED, SignatureCheck, failure_of};
use super::store::ReadPurpose;

/// Maximum number of payloads that are read at a time.
const RUNNING_MAX: usize = 8;
/// Maximum number of keys of a signer that are tried.
pub(super) const KEYS_TRIED_MAX: usize = 8;

/// Bundle whose signature is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckTarget {
    /// Payload for this node.
    Local(LocalKey),
    /// Bundle that is forwarded.
    Passing(RecordId),
}

/// Verification with one of the keys that may be meant.
#[derive(Debug)]
struct Trial {
    key: Option<String>,
    /// Reason why the key is not valid now.
    invalid: Option<SignatureFailure>,
    verification: Verification,
}

#[derive(Debug)]
struct Running {
    target: CheckTarget,
    check: Arc<SignatureCheck>,
    extents: Vec<Extent>,
    /// Bytes read from the beginning of the payload.
    at: u64,
    total: u64,
    signer: Option<Eid>,
    trials: Vec<Trial>,
}

/// Verifications, and what has passed them on its way.
#[derive(Debug, Default)]
pub(super) struct Checks {
    waiting: VecDeque<CheckTarget>,
    running: BTreeMap<u64, Running>,
    next: u64,
    /// Targets of which a read failed for the moment.
    resting: Vec<CheckTarget>,
    /// Payloads that lost a part during their verification: other parts may make them whole.
    incomplete: Vec<LocalKey>,
    /// Bundles that were verified and are being forwarded.
    passed: BTreeMap<RecordId, Signature>,
}

impl Checks {
    /// Outcome for a bundle that is being forwarded.
    pub(super) fn passed(&self, record: RecordId) -> Option<&Signature> {
        self.passed.get(&record)
    }

    /// Forgets a bundle that is removed.
    pub(super) fn forget(&mut self, record: RecordId) {
        self.passed.remove(&record);
        self.stop(&CheckTarget::Passing(record));
    }

    /// Notes a payload that lost a part during its verification.
    pub(super) fn begin_again(&mut self, key: &LocalKey) {
        self.incomplete.push(key.clone());
    }

    /// Ends the verification of a target.
    pub(super) fn stop(&mut self, target: &CheckTarget) {
        self.running.retain(|_, running| running.target != *target);
    }
}

impl Agent {
    /// Adds a bundle to those whose signature is verified.
    pub(super) fn check_signature(&mut self, target: CheckTarget) {
        self.guard.checks.waiting.push_back(target);
    }

    /// Verifies the targets again of which a read failed.
    pub(super) fn retry_checks(&mut self) {
        let resting = core::mem::take(&mut self.guard.checks.resting);
        self.guard.checks.waiting.extend(resting);
    }

    /// Begins verifications as long as there is place for them. Those that end do not begin others, so that nothing
    /// recurs.
    pub(super) fn tend_checks(&mut self, now: Instant) {
        while let Some(key) = self.guard.checks.incomplete.pop() {
            if self.deliveries.local(&key).is_some_and(|local| local.is_in_parts()) {
                self.assembled(now, &key);
            }
        }
        while self.guard.checks.running.len() < RUNNING_MAX
            && let Some(target) = self.guard.checks.waiting.pop_front()
        {
            let is_running = self.guard.checks.running.values().any(|running| running.target == target);
            if !is_running && self.awaits_check(&target) {
                self.begin_check(now, target);
            }
        }
    }

    fn awaits_check(&self, target: &CheckTarget) -> bool {
        match target {
            CheckTarget::Local(key) => self.deliveries.local(key).is_some_and(|local| local.is_checked()),
            CheckTarget::Passing(record) => {
                self.holdings.get(record).is_some_and(|held| held.state == BundleState::Checking)
            }
        }
    }

    fn begin_check(&mut self, now: Instant, target: CheckTarget) {
        let (first, extents, total) = match &target {
            CheckTarget::Local(key) => {
                let local = self.deliveries.local(key).expect("it awaits its check");
                let extents = local.extents().to_vec();
                let first = extents.first().map(|extent| extent.record);
                (first.unwrap_or(local.first_record()), extents, local.total())
            }
            CheckTarget::Passing(record) => {
                let held = &self.holdings[record];
                let (start, end, at) = (0, held.payload_bytes(), held.payload_at());
                (*record, vec![Extent { start, end, record: *record, at }], end)
            }
        };
        let held = &self.holdings[&first];
        let on_the_way = matches!(target, CheckTarget::Passing(_));
        let Some(check) = self.guard.check_of(&held.head, on_the_way) else {
            // The rules have changed.
            return self.checked(now, target, None);
        };
        let number = self.guard.checks.next;
        self.guard.checks.next += 1;
        let running = Running { target, check, extents, at: 0, total, signer: None, trials: Vec::new() };
        self.guard.checks.running.insert(number, running);
        if held.head_is_on_disk {
            let length = u32::try_from(held.head_bytes).unwrap_or(u32::MAX);
            self.store.read(first, HEADER_BYTES, length, ReadPurpose::CheckHead(number));
        } else {
            let head = held.head.clone();
            self.check_head(now, number, head);
        }
    }

    /// Handles the header read for a verification.
    pub(super) fn check_head_was_read(&mut self, now: Instant, number: u64, record: RecordId, data: &Bytes) {
        if !self.guard.checks.running.contains_key(&number) {
            return;
        }
        let Some(held) = self.holdings.get(&record) else { return };
        match decode_head(data, &self.startup.stored_policy()) {
            Ok((mut head, _)) if head.source() == held.head.source() => {
                head.restore_signature(&held.head);
                self.check_head(now, number, head);
            }
            _ => self.storage_lost(now, record),
        }
    }

    fn check_head(&mut self, now: Instant, number: u64, head: AnyHead) {
        let at = self.key_time(now);
        let running = self.guard.checks.running.get(&number).expect("it was just begun");
        let head = match head {
            AnyHead::V7(mut head) => {
                // Fragments of a payload were reassembled: the bundle is whole, as its source made it.
                if matches!(running.target, CheckTarget::Local(_)) {
                    head.primary.fragment = None;
                    head.payload.length = running.total;
                }
                head
            }
            AnyHead::V6(_) => return self.end_check(now, number, Err(SignatureFailure::Missing)),
        };
        match begin_trials(&head, self.guard.keys(), at) {
            Ok((signer, trials)) => {
                let running = self.guard.checks.running.get_mut(&number).expect("it was just found");
                (running.signer, running.trials) = (Some(signer), trials);
                self.check_next(now, number);
            }
            Err((signer, failure)) => {
                let running = self.guard.checks.running.get_mut(&number).expect("it was just found");
                running.signer = signer;
                self.end_check(now, number, Err(failure));
            }
        }
    }

    /// Requests the next piece of a payload, or ends the verification after the last one.
    fn check_next(&mut self, now: Instant, number: u64) {
        let running = &self.guard.checks.running[&number];
        if running.at < running.total {
            let index = running.extents.partition_point(|extent| extent.end <= running.at);
            let extent = running.extents[index];
            let length = (extent.end - running.at).min(self.config.piece_bytes_max as u64) as u32;
            let at = extent.at + (running.at - extent.start);
            self.store.read(extent.record, at, length, ReadPurpose::Check(number));
            return;
        }
        let running = self.guard.checks.running.get_mut(&number).expect("it was just found");
        let mut failure = SignatureFailure::NoKey;
        let mut found = None;
        for Trial { key, invalid, verification } in core::mem::take(&mut running.trials) {
            let scope = verification.scope();
            let verdicts = verification.finish();
            // A block with another target that was altered is no valid signature.
            let fault = verdicts.iter().find_map(|verdict| verdict.outcome.err());
            let Some(verdict) = verdicts.into_iter().find(|verdict| verdict.target == PAYLOAD_BLOCK) else {
                continue;
            };
            match (fault.map_or(Ok(()), Err), invalid) {
                // The bundle was signed with this key.
                (Ok(()), Some(invalid)) => {
                    failure = invalid;
                    break;
                }
                (Ok(()), None) if scope.is_some_and(|scope| scope.contains(Scope::PRIMARY_BLOCK)) => {
                    found = Some((key, verdict));
                    break;
                }
                (Ok(()), None) => failure = SignatureFailure::PayloadAlone,
                (Err(fault), _) => failure = failure_of(fault),
            }
        }
        self.end_check(now, number, found.ok_or(failure));
    }

    /// Handles a piece of a payload.
    pub(super) fn check_data(&mut self, now: Instant, number: u64, record: RecordId, data: &Bytes) {
        let Some(running) = self.guard.checks.running.get_mut(&number) else { return };
        if data.is_empty() {
            // The storage has less than it reported as durable.
            return self.storage_lost(now, record);
        }
        running.at += data.len() as u64;
        running.trials.iter_mut().for_each(|trial| trial.verification.update(data));
        self.check_next(now, number);
    }

    /// Handles a failed read.
    pub(super) fn check_failed(
        &mut self,
        now: Instant,
        number: u64,
        record: RecordId,
        failure: StorageFailure,
    ) {
        let Some(running) = self.guard.checks.running.remove(&number) else { return };
        if failure == StorageFailure::Device {
            self.guard.checks.resting.push(running.target);
            self.time.deadlines.at(now + self.config.backoff_min, DeadlineKind::RetryChecks);
        } else {
            // The rest of the target is verified when it is complete again.
            self.storage_lost(now, record);
        }
    }

    /// Ends a verification with the key that fits.
    fn end_check(
        &mut self,
        now: Instant,
        number: u64,
        found: Result<(Option<String>, Verdict), SignatureFailure>,
    ) {
        let Running { target, check, signer, extents, .. } =
            self.guard.checks.running.remove(&number).expect("it is running");
        let mut signature = Signature { signer: signer.as_ref().map(Eid::to_string), ..Signature::default() };
        match found {
            Ok((key, verdict)) => {
                let fingerprint = verdict.public_key.map(|key| key.fingerprint());
                signature.key = key.or(fingerprint.map(|fingerprint| fingerprint.to_string()));
                let head = self.head_of(&target);
                let may = head.is_some_and(|head| Agent::may_sign(&check, &verdict.source, head));
                signature.failure = match fingerprint {
                    _ if !may => Some(SignatureFailure::OtherSigner),
                    Some(fingerprint) => self.pin(&verdict.source, fingerprint),
                    None => None,
                };
            }
            Err(failure) => signature.failure = Some(failure),
        }
        let judged = check.judge(&signature);
        // A bundle without a signature is nothing unusual, unless its source has a key or a signature is required. This node
        // itself leaves bundles unsigned by its rules, and version 6 has no signatures.
        let is_known = self.held_of(&target).is_some_and(|held| {
            matches!(held.head, AnyHead::V7(_)) && !held.own && self.guard.keys().know(held.head.source())
        });
        let is_usual = signature.failure == Some(SignatureFailure::Missing) && !check.required && !is_known;
        if !is_usual {
            self.count(&signature);
            self.tell_failure(&target, &signature, judged.is_err());
        }
        match judged {
            Ok(()) => self.checked(now, target, Some(signature).filter(|_| !is_usual)),
            Err(reason) => self.reject(now, &target, &extents, reason),
        }
    }

    /// Header of a target.
    fn head_of(&self, target: &CheckTarget) -> Option<&AnyHead> {
        self.held_of(target).map(|held| &held.head)
    }

    /// Bundle of a target; the oldest part for a payload for this node.
    fn held_of(&self, target: &CheckTarget) -> Option<&HeldBundle> {
        let record = match target {
            CheckTarget::Local(key) => self.deliveries.local(key)?.first_record(),
            CheckTarget::Passing(record) => *record,
        };
        self.holdings.get(&record)
    }

    /// Notes the public key of a signer at its first use. Fails if another one was noted meanwhile.
    fn pin(&mut self, signer: &Eid, fingerprint: bpsec::Fingerprint) -> Option<SignatureFailure> {
        match self.guard.keys().pins().get(signer) {
            Some(known) if *known == fingerprint => return None,
            Some(_) => return Some(SignatureFailure::ChangedKey),
            None if self
                .guard
                .keys()
                .iter()
                .any(|key| key.source() == signer && key.public_key().is_some()) =>
            {
                return None;
            }
            None => {}
        }
        if !self.guard.keys_mut().pin(signer, fingerprint) {
            return Some(SignatureFailure::NoKey);
        }
        self.counters.keys_noted += 1;
        let (node, fingerprint) = (signer.to_string(), fingerprint.to_string());
        self.indications.push(ManagementIndication::NewKey { node, fingerprint });
        None
    }

    fn count(&mut self, signature: &Signature) {
        let counters = &mut self.counters;
        let counter = match signature.failure {
            None => &mut counters.signatures_valid,
            Some(SignatureFailure::TooManyKeys) => &mut counters.signatures_beyond_known_keys,
            Some(SignatureFailure::Missing) => &mut counters.signatures_missing,
            Some(SignatureFailure::WrongKeyOrAltered) => &mut counters.signatures_wrong,
            Some(SignatureFailure::NoKey) => &mut counters.signatures_without_key,
            Some(SignatureFailure::ExpiredKey) => &mut counters.signatures_of_expired_keys,
            Some(SignatureFailure::PrematureKey) => &mut counters.signatures_of_premature_keys,
            Some(SignatureFailure::NoClock) => &mut counters.signatures_without_clock,
            Some(SignatureFailure::ChangedKey) => &mut counters.signatures_of_changed_keys,
            Some(SignatureFailure::OtherSigner) => &mut counters.signatures_of_others,
            Some(SignatureFailure::PayloadAlone) => &mut counters.signatures_of_payload_alone,
            Some(SignatureFailure::Unsupported) => &mut counters.signatures_unsupported,
            Some(SignatureFailure::Invalid) => &mut counters.signatures_invalid,
        };
        *counter += 1;
    }

    /// True if a rule deletes an arriving bundle of version 6, which has no signatures. Such a bundle is refused at its
    /// header: once this node has accepted its custody, no other node may have it any more.
    pub(super) fn lacks_required_signature(&self, head: &AnyHead) -> bool {
        let on_the_way = !self.is_local(head.destination());
        let is_judged = matches!(head, AnyHead::V6(_)) && !(on_the_way && head.fragment().is_some());
        is_judged && self.guard.check_of(head, on_the_way).is_some_and(|check| check.required)
    }

    /// Counts and reports an arriving bundle that is refused because it is not signed.
    pub(super) fn unsigned_refused(&mut self, now: Instant, neighbour: NeighbourNumber, head: &AnyHead) {
        let signature = Signature { failure: Some(SignatureFailure::Missing), ..Signature::default() };
        self.counters.deleted_signature += 1;
        self.count(&signature);
        self.indications.push(ManagementIndication::SignatureFailed {
            name: head.source().bundle_name(head.timestamp()),
            destination: head.destination().to_string(),
            signature,
            deleted: true,
        });
        self.report_deleted(now, neighbour, head, ReasonCode::MissingSecurityOperation, false);
        self.signal_refusal(now, neighbour, head, false, CustodyReason::NoAdditionalInformation);
    }

    fn tell_failure(&mut self, target: &CheckTarget, signature: &Signature, is_deleted: bool) {
        if signature.failure.is_none() {
            return;
        }
        let Some(head) = self.head_of(target) else { return };
        let indication = ManagementIndication::SignatureFailed {
            name: head.source().bundle_name(head.timestamp()),
            destination: head.destination().to_string(),
            signature: signature.clone(),
            deleted: is_deleted,
        };
        self.indications.push(indication);
    }

    /// Deletes a bundle whose signature is not what the rule asks for. Parts of the payload that were not used for it stay:
    /// they may be the genuine ones.
    fn reject(&mut self, now: Instant, target: &CheckTarget, extents: &[Extent], reason: ReasonCode) {
        self.counters.deleted_signature += 1;
        let records = match target {
            // Only the header of the oldest part of an empty payload was verified.
            CheckTarget::Local(key) if extents.is_empty() => {
                self.deliveries.local(key).map(|local| local.first_record()).into_iter().collect()
            }
            CheckTarget::Local(_) => extents.iter().map(|extent| extent.record).collect(),
            CheckTarget::Passing(record) => vec![*record],
        };
        for record in records {
            self.delete(now, record, reason, NOT_PERMITTED);
        }
        if let CheckTarget::Local(key) = target
            && self.deliveries.local(key).is_some()
        {
            self.assembled(now, key);
        }
    }

    /// Continues with a bundle that was verified, or need not be.
    fn checked(&mut self, now: Instant, target: CheckTarget, signature: Option<Signature>) {
        match target {
            CheckTarget::Local(key) => self.complete(now, &key, signature),
            CheckTarget::Passing(record) => {
                self.guard.checks.passed.insert(record, signature.unwrap_or_default());
                let held = self.holdings.get_mut(&record).expect("it was just verified");
                held.state = BundleState::Sealing;
                self.dispatch(now, record);
            }
        }
    }
}

/// Begins the verification of the signature of a payload, once for each key of the signer. Keys that are not valid now are
/// tried, too, so that a bundle which was signed with one of them does not count as altered.
fn begin_trials(
    head: &bp::Head,
    keys: &Keys,
    at: DtnTime,
) -> Result<(Eid, Vec<Trial>), (Option<Eid>, SignatureFailure)> {
    // A block that cannot be read is not as if it were missing.
    bpsec::check(head).map_err(|fault| (None, failure_of(fault)))?;
    let Some((number, block)) = bpsec::find(head, Service::Integrity, PAYLOAD_BLOCK) else {
        let is_encrypted = head.is_encrypted(PAYLOAD_BLOCK);
        let failure = if is_encrypted { SignatureFailure::Unsupported } else { SignatureFailure::Missing };
        return Err((None, failure));
    };
    let begin = |keys: &Keys, name: &str, invalid| {
        let verification = Verification::begin(head, number, &KeyChoice { keys, name, at })
            .map_err(|fault| (Some(block.source.clone()), failure_of(fault)))?;
        let key = Some(name.to_owned()).filter(|name| !name.is_empty());
        Ok(Trial { key, invalid, verification })
    };
    let algorithm = bpsec::algorithm(&block);
    let is_meant = |key: &&bpsec::Key| *key.source() == block.source && Some(key.algorithm()) == algorithm;
    let mut trials = Vec::new();
    // A public key has no name here.
    if algorithm != Some(bpsec::Algorithm::Ed25519) {
        for key in keys.iter().filter(is_meant).take(KEYS_TRIED_MAX) {
            let invalid = key.check(at).err().map(failure_of);
            let alone = Keys::from_iter([key.clone().valid(None, None)]);
            trials.push(begin(&alone, key.name(), invalid)?);
        }
    }
    if trials.is_empty() {
        trials.push(begin(keys, "", None)?);
    }
    Ok((block.source.clone(), trials))
}
