//! Outcome of the verification of a bundle's signature.

use core::fmt;

/// Outcome of the verification of a bundle's signature at this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// Security source: the node that signed; `None` without a readable signature.
    pub signer: Option<String>,
    /// Name of the shared key, or fingerprint of the public key; `None` if no key fits.
    pub key: Option<String>,
    /// Reason why the signature proves nothing; `None` if it is valid and its signer may sign the bundle.
    pub failure: Option<SignatureFailure>,
}

/// Reason why the signature of a bundle proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SignatureFailure {
    /// The bundle has no signature of its payload.
    Missing,
    /// The bundle is of version 6, which has no signatures: no one has taken it off.
    Version6,
    /// The bundle was altered, or signed with another key.
    WrongKeyOrAltered,
    /// No key of the signer is known.
    NoKey,
    /// The key of the signer is its first one, and there is no place for another known key.
    TooManyKeys,
    /// The key is no longer valid.
    ExpiredKey,
    /// The key is not valid yet.
    PrematureKey,
    /// The key is valid for a limited time, and this node has no clock.
    NoClock,
    /// The public key is not the one that is known of the signer.
    ChangedKey,
    /// The signer is neither the source of the bundle nor a node that may sign for it.
    OtherSigner,
    /// The signature does not cover the primary block, so that it may be that of another bundle.
    PayloadAlone,
    /// The kind of the signature is unknown, or the signature is encrypted.
    Unsupported,
    /// The security blocks of the bundle break a rule.
    Invalid,
}

impl SignatureFailure {
    /// All reasons.
    pub const ALL: [SignatureFailure; 13] = [
        SignatureFailure::Missing,
        SignatureFailure::Version6,
        SignatureFailure::WrongKeyOrAltered,
        SignatureFailure::NoKey,
        SignatureFailure::TooManyKeys,
        SignatureFailure::ExpiredKey,
        SignatureFailure::PrematureKey,
        SignatureFailure::NoClock,
        SignatureFailure::ChangedKey,
        SignatureFailure::OtherSigner,
        SignatureFailure::PayloadAlone,
        SignatureFailure::Unsupported,
        SignatureFailure::Invalid,
    ];

    /// Reason as an identifier.
    pub const fn name(self) -> &'static str {
        match self {
            SignatureFailure::Missing => "missing",
            SignatureFailure::Version6 => "version_6",
            SignatureFailure::WrongKeyOrAltered => "wrong_key_or_altered",
            SignatureFailure::NoKey => "no_key",
            SignatureFailure::TooManyKeys => "too_many_keys",
            SignatureFailure::ExpiredKey => "expired_key",
            SignatureFailure::PrematureKey => "premature_key",
            SignatureFailure::NoClock => "no_clock",
            SignatureFailure::ChangedKey => "changed_key",
            SignatureFailure::OtherSigner => "other_signer",
            SignatureFailure::PayloadAlone => "payload_alone",
            SignatureFailure::Unsupported => "unsupported",
            SignatureFailure::Invalid => "invalid",
        }
    }
}

impl fmt::Display for SignatureFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SignatureFailure::Missing => "the bundle is not signed",
            SignatureFailure::Version6 => "the bundle is of version 6, which has no signatures",
            SignatureFailure::WrongKeyOrAltered => "the bundle was altered, or signed with another key",
            SignatureFailure::NoKey => "no key of the signer is known",
            SignatureFailure::TooManyKeys => "there are too many known keys for another one",
            SignatureFailure::ExpiredKey => "the key of the signer is no longer valid",
            SignatureFailure::PrematureKey => "the key of the signer is not valid yet",
            SignatureFailure::NoClock => "the key is valid for a limited time, and this node has no clock",
            SignatureFailure::ChangedKey => "the key of the signer has changed",
            SignatureFailure::OtherSigner => "the signer is not the source of the bundle",
            SignatureFailure::PayloadAlone => "the signature does not cover the primary block",
            SignatureFailure::Unsupported => "the kind of the signature is unknown, or it is encrypted",
            SignatureFailure::Invalid => "the security blocks of the bundle break a rule",
        })
    }
}
