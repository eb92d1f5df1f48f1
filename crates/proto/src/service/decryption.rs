//! Reasons for which encrypted bundles cannot be read, or others are refused.

use core::fmt;

/// Reason why a bundle for this node was deleted that is encrypted, or is not although it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecryptionFailure {
    /// The payload of the bundle is not encrypted, and a rule requires it.
    NotEncrypted,
    /// The bundle was altered, or encrypted with another key.
    WrongKeyOrAltered,
    /// No key of the node is known that has encrypted the bundle.
    NoKey,
    /// The key is no longer valid.
    ExpiredKey,
    /// The key is not valid yet.
    PrematureKey,
    /// The key is valid for a limited time, and this node has no clock.
    NoClock,
    /// A rule requires encryption, and another node than the source has encrypted the bundle.
    OtherSource,
    /// The encryption does not cover the primary block: the ciphertext fits any bundle.
    PayloadAlone,
    /// The kind of the encryption is unknown.
    Unsupported,
    /// The security blocks of the bundle break a rule.
    Invalid,
}

impl DecryptionFailure {
    /// All reasons.
    pub const ALL: [DecryptionFailure; 10] = [
        DecryptionFailure::NotEncrypted,
        DecryptionFailure::WrongKeyOrAltered,
        DecryptionFailure::NoKey,
        DecryptionFailure::ExpiredKey,
        DecryptionFailure::PrematureKey,
        DecryptionFailure::NoClock,
        DecryptionFailure::OtherSource,
        DecryptionFailure::PayloadAlone,
        DecryptionFailure::Unsupported,
        DecryptionFailure::Invalid,
    ];

    /// Reason as an identifier, which differs from those of signatures.
    pub const fn name(self) -> &'static str {
        match self {
            DecryptionFailure::NotEncrypted => "not_encrypted",
            DecryptionFailure::WrongKeyOrAltered => "decryption_wrong_key_or_altered",
            DecryptionFailure::NoKey => "decryption_no_key",
            DecryptionFailure::ExpiredKey => "decryption_expired_key",
            DecryptionFailure::PrematureKey => "decryption_premature_key",
            DecryptionFailure::NoClock => "decryption_no_clock",
            DecryptionFailure::OtherSource => "decryption_other_source",
            DecryptionFailure::PayloadAlone => "decryption_payload_alone",
            DecryptionFailure::Unsupported => "decryption_unsupported",
            DecryptionFailure::Invalid => "decryption_invalid",
        }
    }
}

impl fmt::Display for DecryptionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecryptionFailure::NotEncrypted => "the bundle is not encrypted",
            DecryptionFailure::WrongKeyOrAltered => "the bundle was altered, or encrypted with another key",
            DecryptionFailure::NoKey => "no key is known that decrypts the bundle",
            DecryptionFailure::ExpiredKey => "the key that decrypts the bundle is no longer valid",
            DecryptionFailure::PrematureKey => "the key that decrypts the bundle is not valid yet",
            DecryptionFailure::NoClock => {
                "the key that decrypts the bundle is valid for a limited time, and this node has no clock"
            }
            DecryptionFailure::OtherSource => "another node than the source has encrypted the bundle",
            DecryptionFailure::PayloadAlone => {
                "the encryption is of the payload alone, which fits any bundle"
            }
            DecryptionFailure::Unsupported => "the kind of the encryption is unknown",
            DecryptionFailure::Invalid => "the security blocks of the encrypted bundle break a rule",
        })
    }
}
