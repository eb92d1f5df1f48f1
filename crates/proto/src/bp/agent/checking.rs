//! Verification of signatures: payloads are read from the storage in pieces, once they are complete. Those that are encrypted
//! are read twice, the first time for their decryption.
//!
//! ```text
//!   for this node, complete  --\                  /--> valid, or not required: delivered, forwarded
//!                               >--> waiting --> reading
//!   to be forwarded, durable --/                  \--> otherwise: deleted, with an indication
//! ```
//!
//! Nothing of a verification is stored: after a restart it is made again, with the keys that were valid when the bundle arrived.
//! A bundle from before the start, or from before the keys in force, for which no key fits waits for one. [`RUNNING_MAX`] payloads
//! are read at a time.

use crate::bp::bpsec::{
    self, Decryptor, KeyChoice, Keys, PAYLOAD_BLOCK, Scope, Service, Verdict, Verification,
};
use crate::bp::v6::CustodyReason;
use crate::bp::{self, BlockType, DtnTime, Eid, ReasonCode};
use crate::service::{
    DecryptionFailure, ManagementIndication, RecordId, SecurityFailure, Signature, SignatureFailure,
    StorageFailure,
};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::Agent;
use super::accounts::NeighbourNumber;
use super::adu::PayloadProperties;
use super::clock::DeadlineKind;
use super::decrypting::{Decrypting, open_signatures};
use super::delivery::PayloadId;
use super::head::{AnyHead, decode_head};
use super::held::{BundleState, HeldBundle};
use super::reassembly::Extent;
use super::record::HEADER_BYTES;
use super::security::{NOT_PERMITTED, SignatureCheck, failure_of};
use super::store::ReadPurpose;

/// Maximum number of payloads that are read at a time.
const RUNNING_MAX: usize = 8;
/// Number of bundles that wait for their verification above which others are not received: a neighbour sends them again
/// later. Bundles that were found at a start wait in any number.
const WAITING_MAX: usize = 1000;
/// Maximum number of copies of a payload for this node that are held while one is verified.
const COPIES_MAX: usize = 4;
/// Memory for the outcome for a bundle that is being forwarded, beside its strings, bytes.
const PASSED_BYTES: usize = 128;
/// Maximum number of keys of a signer that are tried.
pub(super) const KEYS_TRIED_MAX: usize = 8;

/// Bundle whose signature is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CheckTarget {
    /// Payload for this node.
    Local(PayloadId),
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
    /// Demands on the signature; `None` if it is not verified.
    check: Option<Arc<SignatureCheck>>,
    /// The payload must be encrypted.
    must_be_encrypted: bool,
    /// Time by which keys are judged.
    key_time: DtnTime,
    /// Decryption, until all of the payload has been read.
    decrypting: Option<Decrypting>,
    /// Means to decrypt the payload, after that.
    decryptor: Option<Box<Decryptor>>,
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
    failed_reads: Vec<CheckTarget>,
    /// Payloads that lost a part during their verification: other parts may make them whole.
    incomplete: Vec<PayloadId>,
    /// Bundles that were verified and are being forwarded.
    passed: BTreeMap<RecordId, Signature>,
    /// Bundles of which another copy was forwarded without a valid signature: they follow only with one.
    repeated: BTreeSet<RecordId>,
}

impl Checks {
    /// Outcome for a bundle that is being forwarded.
    pub(super) fn passed(&self, record: RecordId) -> Option<&Signature> {
        self.passed.get(&record)
    }

    /// Forgets a bundle that is removed.
    pub(super) fn forget(&mut self, record: RecordId) {
        self.passed.remove(&record);
        self.repeated.remove(&record);
    }

    /// Adds targets to the next retry, which they begin anew. Returns false if that has none.
    pub(super) fn retry(&mut self, targets: impl IntoIterator<Item = CheckTarget>) -> bool {
        self.failed_reads.extend(targets);
        !self.failed_reads.is_empty()
    }

    /// Ends all verifications, which the next retry begins anew.
    pub(super) fn begin_all_again(&mut self) {
        let running = core::mem::take(&mut self.running);
        self.failed_reads.extend(running.into_values().map(|running| running.target));
    }

    /// Notes a payload that lost a part during its verification.
    pub(super) fn begin_again(&mut self, id: PayloadId) {
        self.incomplete.push(id);
    }

    /// Ends the verification of a target.
    pub(super) fn stop(&mut self, target: &CheckTarget) {
        self.running.retain(|_, running| running.target != *target);
    }
}

impl Agent {
    /// Adds a bundle to those whose signature is verified.
    pub(super) fn check_signature(&mut self, target: CheckTarget) {
        self.security.checks.waiting.push_back(target);
    }

    /// Verifies the targets again of which a read failed.
    pub(super) fn retry_checks(&mut self) {
        let targets = core::mem::take(&mut self.security.checks.failed_reads);
        self.security.checks.waiting.extend(targets);
    }

    /// Begins verifications as long as there is place for them. Those that end do not begin others, so that nothing
    /// recurs.
    pub(super) fn run_checks(&mut self, now: Instant) {
        while let Some(id) = self.security.checks.incomplete.pop() {
            if self.deliveries.payload(id).is_some_and(|local| local.is_in_parts()) {
                self.assembled(now, id);
            }
        }
        while self.security.checks.running.len() < RUNNING_MAX
            && let Some(target) = self.security.checks.waiting.pop_front()
        {
            let is_running = self.security.checks.running.values().any(|running| running.target == target);
            if !is_running && self.awaits_check(&target) {
                self.begin_check(now, target);
            }
        }
    }

    fn awaits_check(&self, target: &CheckTarget) -> bool {
        match target {
            CheckTarget::Local(id) => self.deliveries.payload(*id).is_some_and(|local| local.is_checked()),
            CheckTarget::Passing(record) => {
                self.holdings.get(record).is_some_and(|held| held.state == BundleState::Checking)
            }
        }
    }

    fn begin_check(&mut self, now: Instant, target: CheckTarget) {
        let (first, extents, total) = match &target {
            CheckTarget::Local(id) => {
                let local = self.deliveries.payload(*id).expect("it awaits its check");
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
        let check = self.security.check_of(&held.head, on_the_way);
        let must_be_encrypted = !on_the_way && self.must_be_encrypted(held);
        if check.is_none() && !must_be_encrypted && (on_the_way || !self.any_encrypted(&target)) {
            // The rules have changed.
            return self.checked(now, target, None, None);
        }
        let records = self.used_records(&target, &extents);
        let key_time = self.arrival_time(now, &records);
        let number = self.security.checks.next;
        self.security.checks.next += 1;
        let running = Running {
            target,
            check,
            must_be_encrypted,
            key_time,
            decrypting: None,
            decryptor: None,
            extents,
            at: 0,
            total,
            signer: None,
            trials: Vec::new(),
        };
        self.security.checks.running.insert(number, running);
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
        if !self.security.checks.running.contains_key(&number) {
            return;
        }
        let Some(held) = self.holdings.get(&record) else { return };
        let stored = decode_head(data, &self.startup.stored_policy()).ok().and_then(|(mut head, _)| {
            let is_whole = !held.own || head.restore_security(&held.head);
            (is_whole && head.source() == held.head.source()).then_some(head)
        });
        match stored {
            Some(head) => self.check_head(now, number, head),
            None => self.storage_lost(now, record),
        }
    }

    fn check_head(&mut self, now: Instant, number: u64, head: AnyHead) {
        let running = self.security.checks.running.get(&number).expect("it was just begun");
        let at = running.key_time;
        let is_local = matches!(running.target, CheckTarget::Local(_));
        let must_be_encrypted = running.must_be_encrypted;
        let has_encrypted_part = || {
            let mut parts = running.extents.iter().filter_map(|extent| self.holdings.get(&extent.record));
            parts.any(|part| part.encrypted)
        };
        // In version 7, all parts of a payload are encrypted or none.
        let is_encrypted = is_local
            && (head.has_encrypted_payload() || matches!(head, AnyHead::V6(_)) && has_encrypted_part());
        let mut head = match head {
            AnyHead::V7(head) => Box::new(head),
            AnyHead::V6(_) if is_encrypted => {
                return self.end_decryption(now, number, None, DecryptionFailure::Unsupported);
            }
            AnyHead::V6(_) if must_be_encrypted => {
                return self.end_decryption(now, number, None, DecryptionFailure::NotEncrypted);
            }
            AnyHead::V6(_) => return self.end_check(now, number, Err(SignatureFailure::Version6)),
        };
        if is_local {
            // Fragments of a payload were reassembled: the bundle is whole, as its source made it.
            head.primary.fragment = None;
            head.payload.length = running.total;
        }
        if is_encrypted {
            let encrypted_by = Agent::encrypted_by(&head);
            if must_be_encrypted && !is_by_source(encrypted_by.as_ref(), &head.primary.source) {
                return self.end_decryption(now, number, encrypted_by, DecryptionFailure::OtherSource);
            }
            return match Decrypting::begin(head, self.security.keys(), at) {
                Ok(decrypting) => {
                    let running = self.security.checks.running.get_mut(&number).expect("it was just found");
                    running.decrypting = Some(decrypting);
                    self.check_next(now, number);
                }
                Err(failure) => self.end_decryption(now, number, encrypted_by, failure),
            };
        }
        if must_be_encrypted {
            return self.end_decryption(now, number, None, DecryptionFailure::NotEncrypted);
        }
        if is_local {
            open_signatures(&mut head, self.security.keys(), at);
        }
        self.verify_signature(now, number, &head);
    }

    /// Begins the verification of the signature of a payload in plaintext.
    fn verify_signature(&mut self, now: Instant, number: u64, head: &bp::Head) {
        let running = self.security.checks.running.get(&number).expect("the caller has it");
        if running.check.is_none() {
            let Running { target, decryptor, .. } =
                self.security.checks.running.remove(&number).expect("it was just found");
            return self.checked(now, target, None, decryptor);
        }
        let begun = begin_trials(head, self.security.keys(), running.key_time);
        let running = self.security.checks.running.get_mut(&number).expect("it was just found");
        match begun {
            Ok((signer, trials)) => {
                (running.signer, running.trials) = (Some(signer), trials);
                self.check_next(now, number);
            }
            Err((signer, failure)) => {
                running.signer = signer;
                self.end_check(now, number, Err(failure));
            }
        }
    }

    /// Decrypts the header of a bundle whose ciphertext has been read, and begins to verify its signature.
    fn decrypted(&mut self, now: Instant, number: u64, decrypting: Decrypting) {
        let encrypted_by = Agent::encrypted_by(&decrypting.head);
        let at = self.security.checks.running[&number].key_time;
        match decrypting.finish(self.security.keys(), at) {
            Ok((head, decryptor)) => {
                self.counters.decrypted += 1;
                let running = self.security.checks.running.get_mut(&number).expect("the caller has it");
                (running.at, running.total) = (0, decryptor.bytes());
                running.decryptor = Some(decryptor);
                self.verify_signature(now, number, &head);
            }
            Err(failure) => self.end_decryption(now, number, encrypted_by, failure),
        }
    }

    fn end_decryption(
        &mut self,
        now: Instant,
        number: u64,
        encrypted_by: Option<Eid>,
        failure: DecryptionFailure,
    ) {
        let Running { target, extents, .. } =
            self.security.checks.running.remove(&number).expect("it is running");
        let postponed = SecurityFailure::Decryption(failure);
        if self.may_lack_key(self.used_records(&target, &extents), postponed) {
            return self.postpone_check(target, postponed);
        }
        self.reject_encrypted(now, &target, &extents, encrypted_by, failure);
    }

    /// Time at which the last part of a bundle has arrived, by which its keys are judged. Without a clock at that time it is the
    /// time of now.
    fn arrival_time(&self, now: Instant, records: &[RecordId]) -> DtnTime {
        let arrival = |record: &RecordId| {
            let moved_ms = self.time.adjustments.moved_since(*record);
            let arrival_ms = self.holdings.get(record)?.arrival_dtn_ms;
            let ahead_ms = moved_ms.saturating_add(self.time.clock.ahead_ms());
            (arrival_ms > 0).then(|| arrival_ms.saturating_add_signed(ahead_ms))
        };
        let arrivals = records.iter().map(arrival).collect::<Option<Vec<_>>>();
        arrivals.and_then(|all| all.into_iter().max()).map_or_else(|| self.key_time(now), DtnTime)
    }

    /// True if a part of a payload for this node is encrypted.
    fn any_encrypted(&self, target: &CheckTarget) -> bool {
        let CheckTarget::Local(id) = target else { return false };
        let records = self.deliveries.payload(*id).into_iter().flat_map(|local| local.assembly.records());
        records.into_iter().any(|record| self.holdings.get(&record).is_some_and(|held| held.encrypted))
    }

    /// True if a bundle for this node is deleted unless its payload is encrypted. This node trusts itself.
    fn must_be_encrypted(&self, held: &HeldBundle) -> bool {
        !held.own && self.security.must_be_encrypted(&held.head)
    }

    /// True if this bundle is verified or decrypted before it is forwarded or delivered.
    pub(super) fn is_verified_when_dispatched(&self, record: RecordId) -> bool {
        let held = &self.holdings[&record];
        if !self.is_local(held.head.destination()) {
            return self.must_check_on_the_way(record);
        }
        self.must_check_first(held) || held.encrypted
    }

    /// True if a complete payload for this node is verified or decrypted before it is delivered.
    pub(super) fn must_check(&self, id: PayloadId) -> bool {
        let Some(local) = self.deliveries.payload(id) else { return false };
        self.must_check_first(&self.holdings[&local.first_record()])
            || self.any_encrypted(&CheckTarget::Local(id))
    }

    /// True if a rule asks for the verification or the encryption of a payload for this node that begins with this bundle.
    fn must_check_first(&self, held: &HeldBundle) -> bool {
        self.security.check_of(&held.head, false).is_some() || self.must_be_encrypted(held)
    }

    /// Requests the next piece of a payload, or ends the verification after the last one.
    fn check_next(&mut self, now: Instant, number: u64) {
        let running = &self.security.checks.running[&number];
        if running.at < running.total {
            let index = running.extents.partition_point(|extent| extent.end <= running.at);
            let extent = running.extents[index];
            let length = (extent.end - running.at).min(self.config.piece_bytes_max as u64) as u32;
            let at = extent.at + (running.at - extent.start);
            self.store.read(extent.record, at, length, ReadPurpose::Check(number));
            return;
        }
        let running = self.security.checks.running.get_mut(&number).expect("it was just found");
        if let Some(decrypting) = running.decrypting.take() {
            return self.decrypted(now, number, decrypting);
        }
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
        let Some(running) = self.security.checks.running.get_mut(&number) else { return };
        if data.is_empty() {
            // The storage has less than it reported as durable.
            return self.storage_lost(now, record);
        }
        let at = running.at;
        running.at += data.len() as u64;
        match (&mut running.decrypting, &mut running.decryptor) {
            (Some(decrypting), _) => decrypting.update(data),
            (None, Some(decryptor)) => {
                let data = decryptor.decrypt(at, data);
                running.trials.iter_mut().for_each(|trial| trial.verification.update(&data));
            }
            (None, None) => running.trials.iter_mut().for_each(|trial| trial.verification.update(data)),
        }
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
        let Some(running) = self.security.checks.running.remove(&number) else { return };
        if failure == StorageFailure::Device {
            self.security.checks.failed_reads.push(running.target);
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
        let Running { target, check, signer, extents, decryptor, .. } =
            self.security.checks.running.remove(&number).expect("it is running");
        let Some(check) = check else { return self.checked(now, target, None, decryptor) };
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
        let postponed = signature.failure.filter(|_| judged.is_err()).map(SecurityFailure::Signature);
        if let Some(failure) = postponed
            && self.may_lack_key(self.used_records(&target, &extents), failure)
        {
            return self.postpone_check(target, failure);
        }
        // A bundle without a signature is nothing unusual, unless its source has a key or a signature is required. This node
        // itself leaves bundles unsigned by its rules, and version 6 has no signatures.
        let is_known = self
            .held_of(&target)
            .is_some_and(|held| !held.own && self.security.keys().know(held.head.source()));
        let is_usual = match signature.failure {
            Some(SignatureFailure::Missing) => !check.required && !is_known,
            Some(SignatureFailure::Version6) => !check.required,
            _ => false,
        };
        if !is_usual {
            self.count(&signature);
            self.tell_failure(&target, &signature, judged.is_err());
        }
        match judged {
            Ok(()) => self.checked(now, target, Some(signature).filter(|_| !is_usual), decryptor),
            Err(reason) => self.reject(now, &target, &extents, reason),
        }
    }

    /// Header of a target.
    pub(super) fn head_of(&self, target: &CheckTarget) -> Option<&AnyHead> {
        self.held_of(target).map(|held| &held.head)
    }

    /// Bundle of a target; the oldest part for a payload for this node.
    fn held_of(&self, target: &CheckTarget) -> Option<&HeldBundle> {
        let record = match target {
            CheckTarget::Local(id) => self.deliveries.payload(*id)?.first_record(),
            CheckTarget::Passing(record) => *record,
        };
        self.holdings.get(&record)
    }

    /// Notes the public key of a signer at its first use. Fails if another one was noted meanwhile.
    fn pin(&mut self, signer: &Eid, fingerprint: bpsec::Fingerprint) -> Option<SignatureFailure> {
        match self.security.keys().pins().get(signer) {
            Some(known) if *known == fingerprint => return None,
            Some(_) => return Some(SignatureFailure::ChangedKey),
            None if self
                .security
                .keys()
                .iter()
                .any(|key| key.source() == signer && key.public_key().is_some()) =>
            {
                return None;
            }
            None => {}
        }
        if !self.security.keys_mut().pin(signer, fingerprint) {
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
            Some(SignatureFailure::Version6) => &mut counters.signatures_of_version_6,
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

    /// True if an arriving bundle would be verified or decrypted, and there is no place for it now.
    pub(super) fn has_no_place_to_check(&self, head: &AnyHead) -> bool {
        let is_local = self.is_local(head.destination());
        let is_checked = self.security.check_of(head, !is_local).is_some() || is_local && head.is_encrypted();
        let is_full = self.security.checks.waiting.len() >= WAITING_MAX;
        let has_copies = || {
            let local = self.deliveries.with_head(head);
            head.fragment().is_none()
                && local.is_some_and(|local| local.is_checked() && local.assembly.len() >= COPIES_MAX)
        };
        is_checked && (is_full || is_local && has_copies())
    }

    /// True if a rule deletes an arriving bundle because it has no signature, which its header tells: version 6 has none, and
    /// in version 7 all blocks are before the payload. Such a bundle is refused before its payload arrives. Fragments that
    /// are not the first one need not have the signature, and those that are forwarded are not judged.
    pub(super) fn lacks_required_signature(&self, head: &AnyHead) -> bool {
        let on_the_way = !self.is_local(head.destination());
        let is_judged = match head {
            AnyHead::V6(_) => !(on_the_way && head.fragment().is_some()),
            AnyHead::V7(head) => {
                let is_told =
                    head.primary.fragment.is_none_or(|fragment| !on_the_way && fragment.offset == 0);
                is_told && head.blocks.iter().all(|block| block.block_type != BlockType::BlockIntegrity)
            }
        };
        is_judged && self.security.check_of(head, on_the_way).is_some_and(|check| check.required)
    }

    /// Counts and reports an arriving bundle that is refused because it is not signed.
    pub(super) fn unsigned_refused(&mut self, now: Instant, neighbour: NeighbourNumber, head: &AnyHead) {
        let failure = match head {
            AnyHead::V7(_) => SignatureFailure::Missing,
            AnyHead::V6(_) => SignatureFailure::Version6,
        };
        let signature = Signature { failure: Some(failure), ..Signature::default() };
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
        self.remove_rejected(now, target, extents, reason);
    }

    /// Deletes the parts of a bundle that were verified or decrypted.
    pub(super) fn remove_rejected(
        &mut self,
        now: Instant,
        target: &CheckTarget,
        extents: &[Extent],
        reason: ReasonCode,
    ) {
        for record in self.used_records(target, extents) {
            self.delete(now, record, reason, NOT_PERMITTED);
        }
        if let CheckTarget::Local(id) = target
            && self.deliveries.payload(*id).is_some()
        {
            self.assembled(now, *id);
        }
    }

    /// Records that are verified or decrypted.
    fn used_records(&self, target: &CheckTarget, extents: &[Extent]) -> Vec<RecordId> {
        match target {
            // Only the header of the oldest part of an empty payload is verified.
            CheckTarget::Local(id) if extents.is_empty() => {
                self.deliveries.payload(*id).map(|local| local.first_record()).into_iter().collect()
            }
            CheckTarget::Local(_) => extents.iter().map(|extent| extent.record).collect(),
            CheckTarget::Passing(record) => vec![*record],
        }
    }

    /// Continues with a bundle that was verified, or need not be.
    fn checked(
        &mut self,
        now: Instant,
        target: CheckTarget,
        signature: Option<Signature>,
        decryptor: Option<Box<Decryptor>>,
    ) {
        match target {
            CheckTarget::Local(id) => self.complete(now, id, signature, decryptor),
            CheckTarget::Passing(record) => self.pass(now, record, signature.unwrap_or_default()),
        }
    }

    /// Forwards a bundle that was verified. Of several copies that were verified at the same time, one is forwarded: the
    /// first one with a valid signature, otherwise the first one that the rule lets pass.
    fn pass(&mut self, now: Instant, record: RecordId, signature: Signature) {
        let is_valid = signature.signer.is_some() && signature.failure.is_none();
        let held = &self.holdings[&record];
        let (adu, neighbour) = (held.adu(), held.neighbour);
        let head = held.head.clone();
        let is_repeated = self.security.checks.repeated.contains(&record);
        if !is_valid && (is_repeated || self.is_here(&head, Some(record))) {
            self.counters.refused_completed += 1;
            self.redundant(now, neighbour, &head);
            return self.drop_bundle(record);
        }
        // The strings count as memory of the bundle.
        let bytes =
            signature.signer.as_ref().map_or(0, String::len) + signature.key.as_ref().map_or(0, String::len);
        let bytes = u32::try_from(PASSED_BYTES + bytes).unwrap_or(u32::MAX);
        self.holdings.recount(&record, |held| held.extra_bytes = held.extra_bytes.saturating_add(bytes));
        self.security.checks.passed.insert(record, signature);
        let is_copy = |other: &RecordId| {
            let held = &self.holdings[other];
            *other != record
                && held.state == BundleState::Checking
                && PayloadProperties::of(&held.head) == PayloadProperties::of(&head)
        };
        let copies: Vec<RecordId> = self.holdings.records_of(&adu).filter(is_copy).collect();
        for copy in copies {
            if is_valid {
                self.counters.refused_completed += 1;
                self.drop_bundle(copy);
            } else {
                self.security.checks.repeated.insert(copy);
            }
        }
        self.holdings.get_mut(&record).expect("it was just verified").state = BundleState::Sealing;
        self.dispatch(now, record);
    }
}

/// True if the node of the source itself has encrypted a bundle.
fn is_by_source(encrypted_by: Option<&Eid>, source: &Eid) -> bool {
    !source.is_null() && source.is_singleton() && encrypted_by.is_some_and(|node| source.same_node(node))
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
