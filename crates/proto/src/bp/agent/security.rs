//! Bundle security of a node (RFC 9172): its keys, and the policy that says which bundles are signed and encrypted, and which
//! signatures are verified.
//!
//! A bundle made at this node is signed by the first matching rule of [`SignRule`]s. The signature is one operation of
//! integrity whose target is the payload; it covers the primary block, too ([`Scope::ALL`]). A bundle for this node, and by
//! request one that passes it, is verified by the first matching [`CheckRule`]. A valid signature proves that the signer has
//! made the bundle; by the rule, the signer must be the source of the bundle or one of a list.
//!
//! After it was signed, a bundle made at this node is encrypted by the first matching [`EncryptRule`]: its payload, and the
//! signature (RFC 9172 3.9). An encrypted bundle for this node is decrypted before its signature is verified (RFC 9172 5.1);
//! the store has ciphertext only, which is decrypted as the application reads it. An [`EncryptedRule`] refuses plaintext, and what
//! another node than the source has encrypted. Administrative records are neither encrypted nor refused.
//!
//! Bundles of version 6 have another security protocol (RFC 6257), which is not implemented: they are not signed, and count
//! as not signed. They are not sent where a rule encrypts. Fragments are not verified before they are reassembled (RFC 9172 5.2).

use crate::bp::bpsec::{
    self, Algorithm, Encryption, Fault, Fingerprint, Key, KeyChoice, Keys, PAYLOAD_BLOCK, Scope, SignRequest,
    Signing, Verdict, Verification,
};
use crate::bp::{BlockFlags, Bundle, DtnTime, Eid, Head, ReasonCode};
use crate::service::{RefuseReason, SendFailure, Signature, SignatureFailure};
use crate::time::Instant;
use core::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Agent;
use super::checking::Checks;
use super::head::AnyHead;
use super::missing_keys::MissingKeys;

/// End of a send whose bundle may not be forwarded or delivered.
pub(super) const NOT_PERMITTED: SendFailure = SendFailure::Refused(RefuseReason::NotAcceptable);

/// Keys and rules of a node. Without rules, bundles are neither signed nor verified.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// Keys, and the public keys that are known.
    pub keys: Keys,
    /// Bundles of this node: the first rule that matches decides.
    pub sign: Vec<SignRule>,
    /// Bundles of all nodes: the first rule that matches decides.
    pub check: Vec<CheckRule>,
    /// Encryption of bundles of this node: the first rule that matches decides.
    pub encrypt: Vec<EncryptRule>,
    /// Bundles for this node that must be encrypted: the first rule that matches decides.
    pub encrypted: Vec<EncryptedRule>,
}

/// Endpoints for which a rule is: endpoint IDs, or prefixes followed by an asterisk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Source of the bundle.
    pub source: String,
    /// Destination of the bundle.
    pub destination: String,
}

impl Endpoints {
    fn include(&self, source: &Eid, destination: &Eid) -> bool {
        let matches = |pattern: &str, eid: &Eid| pattern == "*" || super::matches(pattern, &eid.to_string());
        matches(&self.source, source) && matches(&self.destination, destination)
    }
}

/// Rule for bundles of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignRule {
    /// Endpoints of the bundles.
    pub endpoints: Endpoints,
    /// Key that signs them; `None` if they stay unsigned.
    pub key: Option<KeyName>,
}

/// Rule for the encryption of bundles of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptRule {
    /// Endpoints of the bundles.
    pub endpoints: Endpoints,
    /// Key that encrypts them; `None` if they stay in plaintext.
    pub key: Option<KeyName>,
}

/// Rule for bundles that arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedRule {
    /// Endpoints of the bundles.
    pub endpoints: Endpoints,
    /// Bundles whose payload is not encrypted are deleted.
    pub required: bool,
}

/// Key that signs or encrypts bundles of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyName {
    /// Any key of this node that is valid: the private one for signatures, otherwise the latest shared one.
    Any,
    /// The valid key of this name.
    Named(String),
}

/// Rule for the verification of signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRule {
    /// Endpoints of the bundles.
    pub endpoints: Endpoints,
    /// Rule for the verification; `None` if nothing is verified.
    pub check: Option<Arc<SignatureCheck>>,
}

/// Demands on the signature of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureCheck {
    /// Bundles without a valid signature are deleted. Otherwise those are whose signature is wrong, and the others pass.
    pub required: bool,
    /// Bundles are verified at nodes that they pass, too, before they are forwarded.
    pub on_the_way: bool,
    /// Patterns of nodes that may sign beside the source of the bundle.
    pub signers: Vec<String>,
    /// Bundles whose signature is wrong pass as well.
    pub passes_wrong: bool,
}

impl SignatureCheck {
    /// True if a bundle with this outcome is deleted.
    fn deletes(&self, failure: SignatureFailure) -> bool {
        let is_wrong = matches!(
            failure,
            SignatureFailure::WrongKeyOrAltered | SignatureFailure::ChangedKey | SignatureFailure::Invalid
        );
        self.required || is_wrong && !self.passes_wrong
    }

    /// True if this node may sign a bundle with this source.
    fn permits(&self, signer: &Eid, source: &Eid) -> bool {
        let is_source = !source.is_null() && source.is_singleton() && source.same_node(signer);
        let signer = signer.to_string();
        is_source || self.signers.iter().any(|pattern| pattern == "*" || super::matches(pattern, &signer))
    }

    /// Judges the outcome of a verification. Returns the reason for which the bundle is deleted.
    pub(super) fn judge(&self, signature: &Signature) -> Result<(), ReasonCode> {
        let Some(failure) = signature.failure.filter(|failure| self.deletes(*failure)) else { return Ok(()) };
        Err(match failure {
            SignatureFailure::Missing | SignatureFailure::Version6 => ReasonCode::MissingSecurityOperation,
            SignatureFailure::Unsupported => ReasonCode::UnknownSecurityOperation,
            SignatureFailure::Invalid => ReasonCode::ConflictingSecurityOperation,
            _ => ReasonCode::FailedSecurityOperation,
        })
    }
}

/// Reason for applications and operators.
pub(super) fn failure_of(fault: Fault) -> SignatureFailure {
    match fault {
        Fault::MissingOperation => SignatureFailure::Missing,
        Fault::MissingKey => SignatureFailure::NoKey,
        Fault::ExpiredKey => SignatureFailure::ExpiredKey,
        Fault::PrematureKey => SignatureFailure::PrematureKey,
        Fault::UnknownTime => SignatureFailure::NoClock,
        Fault::TooManyKeys => SignatureFailure::TooManyKeys,
        Fault::ChangedKey => SignatureFailure::ChangedKey,
        Fault::WrongKeyOrAltered => SignatureFailure::WrongKeyOrAltered,
        Fault::UnknownContext(_)
        | Fault::UnknownParameter(_)
        | Fault::InvalidParameter(_)
        | Fault::MissingParameter(_)
        | Fault::UnknownResult(_)
        | Fault::EncryptedTarget(_) => SignatureFailure::Unsupported,
        _ => SignatureFailure::Invalid,
    }
}

/// Value of the signature of a bundle that does not pass through the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Signed with the key that is known of the node.
    Known,
    /// Signed with this key, the first one of the node.
    First(Fingerprint),
    /// Not signed in a way that proves anything, and no key of the node is known.
    None,
    /// Not signed with the key that is known of the node.
    Contested,
}

/// Bundle security of a running node.
#[derive(Debug, Default)]
pub(super) struct BundleSecurity {
    policy: Security,
    pub(super) checks: Checks,
    pub(super) missing_keys: MissingKeys,
}

impl BundleSecurity {
    pub(super) fn keys(&self) -> &Keys {
        &self.policy.keys
    }

    pub(super) fn keys_mut(&mut self) -> &mut Keys {
        &mut self.policy.keys
    }

    /// Demands on a bundle with these endpoints, at its destination or on its way.
    pub(super) fn check_of(&self, head: &AnyHead, on_the_way: bool) -> Option<Arc<SignatureCheck>> {
        let mut rules = self.policy.check.iter();
        let rule = rules.find(|rule| rule.endpoints.include(head.source(), head.destination()))?;
        rule.check.clone().filter(|check| check.on_the_way || !on_the_way)
    }

    /// Best valid key of this node for one of these algorithms.
    fn own_key(
        &self,
        node: &Eid,
        at: DtnTime,
        name: &KeyName,
        serves: impl Fn(Algorithm) -> bool,
    ) -> Result<&Key, Fault> {
        let is_named =
            |key: &Key| matches!(name, KeyName::Any) || *name == KeyName::Named(key.name().to_owned());
        let own = self.keys().iter().filter(|key| key.source() == node && serves(key.algorithm()));
        let own = own.filter(|key| is_named(key));
        let mut fault = Fault::MissingKey;
        let valid = own.filter(|key| key.check(at).inspect_err(|error| fault = *error).is_ok());
        // The first one added, of those with the latest beginning.
        let best = valid
            .enumerate()
            .max_by_key(|(at, key)| (key.algorithm() == Algorithm::Ed25519, key.valid_from(), Reverse(*at)));
        best.map(|(_, key)| key).ok_or(fault)
    }

    /// True if bundles for this node with this header are deleted unless their payload is encrypted. Administrative records
    /// are for nodes, and never come to an application.
    pub(super) fn must_be_encrypted(&self, head: &AnyHead) -> bool {
        let mut rules = self.policy.encrypted.iter();
        let rule = rules.find(|rule| rule.endpoints.include(head.source(), head.destination()));
        !head.is_administrative() && rule.is_some_and(|rule| rule.required)
    }

    /// Begins the encryption of a bundle of this node; `None` if it stays in plaintext.
    fn encryption(
        &self,
        node: &Eid,
        at: DtnTime,
        head: &AnyHead,
        unique: &[u8],
    ) -> Result<Option<Encryption>, Fault> {
        let mut rules = self.policy.encrypt.iter();
        let rule = rules.find(|rule| rule.endpoints.include(head.source(), head.destination()));
        let Some(name) = rule.and_then(|rule| rule.key.as_ref()) else { return Ok(None) };
        // Without reports and custody signals, which have nothing secret, other nodes would send again and again.
        if head.is_administrative() {
            return Ok(None);
        }
        // Bundles of version 6 cannot be encrypted, and the security source would tell the source of a bundle that has none.
        let AnyHead::V7(head) = head else { return Err(Fault::UnknownContext(0)) };
        if head.primary.source.is_null() {
            return Err(Fault::InvalidSource);
        }
        let encrypts =
            |algorithm| matches!(algorithm, Algorithm::Aes128Gcm | Algorithm::Aes256Gcm | Algorithm::KeyWrap);
        let key = self.own_key(node, at, name, encrypts)?;
        Encryption::begin(head, node, key, unique).map(Some)
    }

    /// Begins the signature of a bundle of this node; `None` if it stays unsigned.
    fn signing(&self, node: &Eid, at: DtnTime, head: &Head) -> Result<Option<Signing>, Fault> {
        let primary = &head.primary;
        let mut rules = self.policy.sign.iter();
        let rule = rules.find(|rule| rule.endpoints.include(&primary.source, &primary.destination));
        let Some(name) = rule.and_then(|rule| rule.key.as_ref()) else { return Ok(None) };
        // A signature would tell the source of a bundle that has none.
        if primary.source.is_null() {
            return Ok(None);
        }
        let signs = |algorithm| {
            matches!(
                algorithm,
                Algorithm::Ed25519 | Algorithm::Hmac256 | Algorithm::Hmac384 | Algorithm::Hmac512
            )
        };
        let key = self.own_key(node, at, name, signs)?;
        let request = SignRequest {
            source: node.clone(),
            targets: vec![PAYLOAD_BLOCK],
            algorithm: key.algorithm(),
            scope: Scope::ALL,
            fresh_key: None,
            flags: BlockFlags::NONE,
        };
        let choice = KeyChoice { keys: self.keys(), name: key.name(), at };
        Signing::begin(head, &request, &choice).map(Some)
    }
}

impl Agent {
    /// Sets keys and rules; initially there are none. They are for bundles made and verified from now on; a bundle that was
    /// accepted before is not deleted because a key has gone.
    pub fn set_security(&mut self, security: Security) {
        self.security.policy = security;
        self.keys_were_set();
    }

    /// Known public keys by security source.
    pub fn known_keys(&self) -> &BTreeMap<Eid, Fingerprint> {
        self.security.keys().pins()
    }

    /// Notes the public key of a node, in place of an earlier one. Returns false if there are too many.
    pub fn trust_key(&mut self, node: &Eid, fingerprint: Fingerprint) -> bool {
        let is_noted = self.security.keys_mut().pin(node, fingerprint);
        self.retry_postponed_checks();
        is_noted
    }

    /// Forgets the public key of a node. Returns false if none is known.
    pub fn forget_key(&mut self, node: &Eid) -> bool {
        let was_known = self.security.keys_mut().forget(node);
        self.retry_postponed_checks();
        was_known
    }

    /// Signs a bundle that does not pass through the store with the private key of this node. Returns false without one.
    pub fn sign(&self, now: Instant, bundle: &mut Bundle) -> bool {
        let (keys, at) = (self.security.keys(), self.key_time(now));
        let is_own = |key: &&Key| key.source() == &self.node && key.algorithm() == Algorithm::Ed25519;
        let valid = keys.iter().filter(is_own).filter(|key| key.check(at).is_ok());
        let Some(key) = valid.max_by_key(|key| key.valid_from()) else { return false };
        let request = SignRequest {
            source: self.node.clone(),
            targets: vec![PAYLOAD_BLOCK],
            algorithm: Algorithm::Ed25519,
            scope: Scope::ALL,
            fresh_key: None,
            flags: BlockFlags::NONE,
        };
        bpsec::sign(bundle, &request, &KeyChoice { keys, name: key.name(), at }).is_ok()
    }

    /// Judges the signature of the source in a bundle that does not pass through the store. The key, if it is the first one of
    /// its node and first keys are noted, is returned to be noted.
    pub fn prove(&self, now: Instant, bundle: &Bundle) -> Proof {
        let (keys, at) = (self.security.keys(), self.key_time(now));
        let node = bundle.head.primary.source.node_id();
        let key = || {
            let (block, _) = bpsec::find(&bundle.head, bpsec::Service::Integrity, PAYLOAD_BLOCK)?;
            let choice = KeyChoice { keys, name: "", at };
            let mut verification = Verification::begin(&bundle.head, block, &choice).ok()?;
            // A signature that leaves the primary block out would prove neither the source nor the time.
            verification.scope().filter(|scope| scope.contains(Scope::PRIMARY_BLOCK))?;
            verification.update(&bundle.payload);
            let verdicts = verification.finish();
            let of_source = |verdict: &&Verdict| verdict.source == node && verdict.target == PAYLOAD_BLOCK;
            verdicts.iter().find(of_source).filter(|verdict| verdict.outcome.is_ok())?.public_key
        };
        match key() {
            Some(_) if keys.pins().contains_key(&node) => Proof::Known,
            Some(key) => Proof::First(key.fingerprint()),
            None if keys.pins().contains_key(&node) => Proof::Contested,
            None => Proof::None,
        }
    }

    /// Time by which keys for new bundles are valid.
    pub(super) fn key_time(&self, now: Instant) -> DtnTime {
        self.time.clock.dtn_ms(now).map_or(DtnTime::UNKNOWN, DtnTime)
    }

    /// Begins the signature of a bundle made at this node, whose header gets room for it; `None` if it stays unsigned.
    pub(super) fn begin_signature(
        &mut self,
        now: Instant,
        head: &mut AnyHead,
    ) -> Result<Option<Box<Signing>>, SendFailure> {
        let AnyHead::V7(plain) = head else { return Ok(None) };
        match self.security.signing(&self.node, self.key_time(now), plain) {
            Ok(signing) => {
                if let Some(signing) = &signing {
                    *plain = signing.draft();
                }
                Ok(signing.map(Box::new))
            }
            Err(_) => {
                self.counters.sends_not_signed += 1;
                Err(SendFailure::NotSigned)
            }
        }
    }

    /// Begins the encryption of a bundle made at this node, whose header gets room for it; `None` if it stays in plaintext.
    pub(super) fn begin_encryption(
        &mut self,
        now: Instant,
        head: &mut AnyHead,
    ) -> Result<Option<Box<Encryption>>, SendFailure> {
        if self.security.policy.encrypt.is_empty() {
            return Ok(None);
        }
        let unique = self.unique_bytes(head);
        match self.security.encryption(&self.node, self.key_time(now), head, &unique) {
            Ok(encryption) => {
                if let Some(encryption) = &encryption {
                    *head = AnyHead::V7(encryption.draft());
                }
                Ok(encryption.map(Box::new))
            }
            Err(_) => {
                self.counters.sends_not_encrypted += 1;
                Err(SendFailure::NotEncrypted)
            }
        }
    }

    /// Bytes that no other bundle has, of this or of another node, before or after a restart; also not if a copy of the store
    /// is used again.
    fn unique_bytes(&mut self, head: &AnyHead) -> Vec<u8> {
        let timestamp = head.timestamp();
        let numbers = [
            self.startup.secret().0,
            self.startup.next_record().0,
            self.rng.next_u64(),
            timestamp.time.0,
            timestamp.sequence,
        ];
        let numbers = numbers.iter().flat_map(|number| number.to_be_bytes());
        numbers.chain(self.node.to_string().into_bytes()).collect()
    }

    /// Decides by a rule whether this node may have signed the bundle.
    pub(super) fn may_sign(check: &SignatureCheck, signer: &Eid, head: &AnyHead) -> bool {
        check.permits(signer, head.source())
    }
}
