//! Decryption of bundles for this node, before their signatures are verified (RFC 9172 5.1).
//!
//! ```text
//!   complete ciphertext --> its tag is checked with every key that may be meant --> decrypted as it is read
//!                                        \--> no key fits: deleted, with an indication
//! ```
//!
//! Ciphertext stays in the store, so that the check is made again after a restart. Keys are judged by the time at which the
//! bundle has arrived. A bundle from before the start, or from before the keys in force, waits for its key, until other keys are
//! set or the clock is: it may have been decrypted before, and nobody else may have it.

use crate::bp::bpsec::{
    self, Algorithm, Decryption, Decryptor, Fault, KeyChoice, Keys, PAYLOAD_BLOCK, Scope, Service,
};
use crate::bp::v6::CustodyReason;
use crate::bp::{self, DtnTime, Eid, ReasonCode};
use crate::service::{DecryptionFailure, ManagementIndication};
use crate::time::Instant;

use super::Agent;
use super::accounts::NeighbourNumber;
use super::checking::{CheckTarget, KEYS_TRIED_MAX};
use super::head::AnyHead;
use super::reassembly::Extent;

/// Reason for applications and operators.
fn failure_of(fault: Fault) -> DecryptionFailure {
    match fault {
        Fault::MissingKey => DecryptionFailure::NoKey,
        Fault::ExpiredKey => DecryptionFailure::ExpiredKey,
        Fault::PrematureKey => DecryptionFailure::PrematureKey,
        Fault::UnknownTime => DecryptionFailure::NoClock,
        Fault::WrongKeyOrAltered => DecryptionFailure::WrongKeyOrAltered,
        Fault::UnknownContext(_)
        | Fault::UnknownParameter(_)
        | Fault::InvalidParameter(_)
        | Fault::MissingParameter(_)
        | Fault::UnknownResult(_) => DecryptionFailure::Unsupported,
        _ => DecryptionFailure::Invalid,
    }
}

/// Reason code of the status report (RFC 9172 7.1).
fn reason_of(failure: DecryptionFailure) -> ReasonCode {
    match failure {
        DecryptionFailure::NotEncrypted => ReasonCode::MissingSecurityOperation,
        DecryptionFailure::Unsupported => ReasonCode::UnknownSecurityOperation,
        DecryptionFailure::Invalid => ReasonCode::ConflictingSecurityOperation,
        _ => ReasonCode::FailedSecurityOperation,
    }
}

/// Check with one of the keys that may be meant.
#[derive(Debug)]
struct Trial {
    /// Reason why the key is not valid now.
    invalid: Option<DecryptionFailure>,
    decryption: Decryption,
}

/// Encrypted bundle whose payload is being read.
#[derive(Debug)]
pub(super) struct Decrypting {
    /// Header of the whole bundle.
    pub(super) head: Box<bp::Head>,
    trials: Vec<Trial>,
}

impl Decrypting {
    /// Begins the check, once for each key of the node that has encrypted the bundle. Keys that are not valid now are tried,
    /// too, so that a bundle which was encrypted with one of them does not count as altered.
    pub(super) fn begin(head: Box<bp::Head>, keys: &Keys, at: DtnTime) -> Result<Self, DecryptionFailure> {
        bpsec::check(&head).map_err(failure_of)?;
        let Some((_, block)) = bpsec::find(&head, Service::Confidentiality, PAYLOAD_BLOCK) else {
            return Err(DecryptionFailure::Invalid);
        };
        let (Some(algorithm), Some(scope)) =
            (bpsec::encryption_algorithm(&block), bpsec::encryption_scope(&block))
        else {
            return Err(DecryptionFailure::Unsupported);
        };
        // Anybody could move the ciphertext to a bundle with another source, destination or time.
        if !scope.contains(Scope::PRIMARY_BLOCK) {
            return Err(DecryptionFailure::PayloadAlone);
        }
        let trial = |key: &bpsec::Key| {
            let alone = Keys::from_iter([key.clone().valid(None, None)]);
            let choice = KeyChoice { keys: &alone, name: key.name(), at };
            let decryption = Decryption::begin(&head, &choice)?;
            Ok(Trial { invalid: key.check(at).err().map(failure_of), decryption })
        };
        let (mut trials, mut fault) = (Vec::new(), Fault::MissingKey);
        for key in keys_of(keys, &block.source, algorithm) {
            match trial(key) {
                Ok(trial) => trials.push(trial),
                // A wrapped key that this key does not open, for example.
                Err(other) => fault = other,
            }
        }
        if trials.is_empty() { Err(failure_of(fault)) } else { Ok(Decrypting { head, trials }) }
    }

    /// Adds the next bytes of the payload.
    pub(super) fn update(&mut self, payload: &[u8]) {
        self.trials.iter_mut().for_each(|trial| trial.decryption.update(payload));
    }

    /// Returns the header whose payload and integrity blocks are plaintext, and the means to decrypt the payload.
    pub(super) fn finish(
        self,
        keys: &Keys,
        at: DtnTime,
    ) -> Result<(Box<bp::Head>, Box<Decryptor>), DecryptionFailure> {
        let Decrypting { mut head, trials } = self;
        let mut failure = DecryptionFailure::NoKey;
        for Trial { invalid, decryption } in trials {
            match (decryption.finish(), invalid) {
                // The bundle was encrypted with this key.
                (Ok(_), Some(invalid)) => return Err(invalid),
                (Ok(decryptor), None) => {
                    decryptor.open(&mut head);
                    open_signatures(&mut head, keys, at);
                    return Ok((head, Box::new(decryptor)));
                }
                (Err(fault), _) => failure = failure_of(fault),
            }
        }
        Err(failure)
    }
}

/// Keys of a security source for an algorithm, as many as are tried.
fn keys_of<'a>(
    keys: &'a Keys,
    source: &'a Eid,
    algorithm: Algorithm,
) -> impl Iterator<Item = &'a bpsec::Key> {
    let is_meant = move |key: &&bpsec::Key| key.source() == source && key.algorithm() == algorithm;
    keys.iter().filter(is_meant).take(KEYS_TRIED_MAX)
}

/// Decrypts encrypted block integrity blocks. Those for which no valid key is known are removed, with their operations
/// (RFC 9172 5.1.1).
pub(super) fn open_signatures(head: &mut bp::Head, keys: &Keys, at: DtnTime) {
    let encrypted = |head: &bp::Head| {
        let blocks = head.blocks.iter().filter(|block| block.block_type == bp::BlockType::BlockIntegrity);
        let blocks = blocks.map(|block| block.number).filter(|number| head.is_encrypted(*number));
        blocks.collect::<Vec<_>>()
    };
    for number in encrypted(head) {
        let Some((_, block)) = bpsec::find(head, Service::Confidentiality, number) else { continue };
        let Some(algorithm) = bpsec::encryption_algorithm(&block) else { continue };
        for key in keys_of(keys, &block.source, algorithm) {
            if head.is_encrypted(number) {
                let alone = Keys::from_iter([key.clone()]);
                bpsec::decrypt_extensions(head, &KeyChoice { keys: &alone, name: key.name(), at });
            }
        }
    }
    for number in encrypted(head) {
        bpsec::discard(head, number);
    }
}

impl Agent {
    /// Refuses an arriving bundle for this node at its header, if it is in plaintext and a rule requires encryption: all
    /// blocks are before the payload, and every fragment has the one that announces the encryption. Returns true if so.
    pub(super) fn refuses_plaintext(
        &mut self,
        now: Instant,
        neighbour: NeighbourNumber,
        head: &AnyHead,
    ) -> bool {
        let is_refused = self.is_local(head.destination())
            && !head.has_encrypted_payload()
            && self.security.must_be_encrypted(head);
        if is_refused {
            self.tell_decryption_failure(head, None, DecryptionFailure::NotEncrypted);
            self.report_deleted(now, neighbour, head, ReasonCode::MissingSecurityOperation, false);
            self.signal_refusal(now, neighbour, head, false, CustodyReason::NoAdditionalInformation);
        }
        is_refused
    }

    /// Counts and indicates a bundle that cannot be decrypted, or is not encrypted.
    pub(super) fn tell_decryption_failure(
        &mut self,
        head: &AnyHead,
        encrypted_by: Option<Eid>,
        failure: DecryptionFailure,
    ) {
        let counters = &mut self.counters;
        *match failure {
            DecryptionFailure::NotEncrypted => &mut counters.deleted_not_encrypted,
            DecryptionFailure::WrongKeyOrAltered => &mut counters.decryptions_wrong,
            DecryptionFailure::NoKey => &mut counters.decryptions_without_key,
            DecryptionFailure::ExpiredKey => &mut counters.decryptions_of_expired_keys,
            DecryptionFailure::PrematureKey => &mut counters.decryptions_of_premature_keys,
            DecryptionFailure::NoClock => &mut counters.decryptions_without_clock,
            DecryptionFailure::OtherSource => &mut counters.decryptions_of_other_sources,
            DecryptionFailure::PayloadAlone => &mut counters.decryptions_of_payload_alone,
            DecryptionFailure::Unsupported => &mut counters.decryptions_unsupported,
            DecryptionFailure::Invalid => &mut counters.decryptions_invalid,
        } += 1;
        self.indications.push(ManagementIndication::DecryptionFailed {
            name: head.source().bundle_name(head.timestamp()),
            destination: head.destination().to_string(),
            encrypted_by: encrypted_by.map(|node| node.to_string()),
            failure,
        });
    }

    /// Deletes a bundle that cannot be decrypted, or is not encrypted.
    pub(super) fn reject_encrypted(
        &mut self,
        now: Instant,
        target: &CheckTarget,
        extents: &[Extent],
        encrypted_by: Option<Eid>,
        failure: DecryptionFailure,
    ) {
        if let Some(head) = self.head_of(target).cloned() {
            self.tell_decryption_failure(&head, encrypted_by, failure);
        }
        self.remove_rejected(now, target, extents, reason_of(failure));
    }

    /// Security source of the encryption of a payload.
    pub(super) fn encrypted_by(head: &bp::Head) -> Option<Eid> {
        let (_, block) = bpsec::find(head, Service::Confidentiality, PAYLOAD_BLOCK)?;
        Some(block.source)
    }
}
