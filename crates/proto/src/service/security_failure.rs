//! Reasons for which bundle security fails, of signatures and of encryption.

use super::{DecryptionFailure, SignatureFailure};
use core::fmt;

/// Reason why bundle security fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityFailure {
    /// A signature that proves nothing.
    Signature(SignatureFailure),
    /// A bundle that cannot be decrypted, or is not encrypted.
    Decryption(DecryptionFailure),
}

impl SecurityFailure {
    /// Reason as an identifier.
    pub const fn name(self) -> &'static str {
        match self {
            SecurityFailure::Signature(failure) => failure.name(),
            SecurityFailure::Decryption(failure) => failure.name(),
        }
    }

    /// True for failures that other keys, or the clock, may end. A wrong key cannot be told from an altered bundle.
    pub const fn may_pass_later(self) -> bool {
        matches!(
            self,
            SecurityFailure::Signature(
                SignatureFailure::WrongKeyOrAltered
                    | SignatureFailure::NoKey
                    | SignatureFailure::ExpiredKey
                    | SignatureFailure::PrematureKey
                    | SignatureFailure::NoClock
            ) | SecurityFailure::Decryption(
                DecryptionFailure::WrongKeyOrAltered
                    | DecryptionFailure::NoKey
                    | DecryptionFailure::ExpiredKey
                    | DecryptionFailure::PrematureKey
                    | DecryptionFailure::NoClock
            )
        )
    }
}

impl fmt::Display for SecurityFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecurityFailure::Signature(failure) => failure.fmt(f),
            SecurityFailure::Decryption(failure) => failure.fmt(f),
        }
    }
}
