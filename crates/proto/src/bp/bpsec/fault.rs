//! Reasons why a security operation fails, and the reason codes that report them (RFC 9172 7.1).

use crate::bp::ReasonCode;
use crate::codec::DecodeError;
use core::fmt;

/// Reason why a security operation cannot be added, verified or accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The data of a security block cannot be decoded.
    Undecodable(DecodeError),
    /// The security context is unknown, or is not one of this service.
    UnknownContext(i64),
    /// The security context does not define this parameter.
    UnknownParameter(u64),
    /// The value of a parameter is not valid, or stands for something unknown.
    InvalidParameter(u64),
    /// A parameter without default is missing.
    MissingParameter(u64),
    /// The security context does not define this result.
    UnknownResult(u64),
    /// The value of a result is not valid.
    InvalidResult(u64),
    /// The result of the operation is missing.
    MissingResult,
    /// There is no key of this name for the security source and the algorithm.
    MissingKey,
    /// The key is no longer valid.
    ExpiredKey,
    /// The key is not valid yet.
    PrematureKey,
    /// The key is valid for a limited time, and the time is unknown.
    UnknownTime,
    /// The length of the key does not suit its algorithm.
    KeyLength,
    /// The security source must be a node ID that can be written.
    InvalidSource,
    /// There is no place for the first public key of another security source.
    TooManyKeys,
    /// The public key is not the one that is known of the security source.
    ChangedKey,
    /// The authentication code does not match: the key is another one, or the bundle was altered.
    WrongKeyOrAltered,
    /// A required operation is not in the bundle.
    MissingOperation,
    /// An operation without a target, or with too many (RFC 9172 3.6).
    TargetCount,
    /// The target is not in the bundle (RFC 9172 3.6).
    MissingTarget(u64),
    /// The block must not be a target of this service (RFC 9172 3.7, 3.8).
    ForbiddenTarget(u64),
    /// The target already has an operation of this service (RFC 9172 3.2).
    RepeatedOperation(u64),
    /// The target is encrypted: it cannot be signed or verified (RFC 9172 3.9).
    EncryptedTarget(u64),
    /// The flags of a block confidentiality block are not those that RFC 9172 3.8 requires.
    ForbiddenFlags,
    /// A fragment has no security operations of its own (RFC 9172 5.2).
    Fragment,
    /// A block integrity block cannot be divided, because its values depend on its number.
    Indivisible(u64),
    /// The CRC of the primary block cannot change, because another operation covers it.
    CoveredPrimaryBlock,
    /// The target exceeds a limit of this implementation.
    TargetLength,
}

impl Fault {
    /// Reason code of a status report.
    pub const fn reason(self) -> ReasonCode {
        match self {
            Fault::Undecodable(_) => ReasonCode::BlockUnintelligible,
            Fault::MissingOperation => ReasonCode::MissingSecurityOperation,
            Fault::UnknownContext(_)
            | Fault::UnknownParameter(_)
            | Fault::InvalidParameter(_)
            | Fault::UnknownResult(_) => ReasonCode::UnknownSecurityOperation,
            Fault::MissingParameter(_)
            | Fault::InvalidResult(_)
            | Fault::MissingResult
            | Fault::MissingKey
            | Fault::ExpiredKey
            | Fault::PrematureKey
            | Fault::UnknownTime
            | Fault::KeyLength
            | Fault::ChangedKey
            | Fault::TooManyKeys
            | Fault::WrongKeyOrAltered
            | Fault::TargetLength => ReasonCode::FailedSecurityOperation,
            Fault::TargetCount
            | Fault::MissingTarget(_)
            | Fault::ForbiddenTarget(_)
            | Fault::InvalidSource
            | Fault::RepeatedOperation(_)
            | Fault::EncryptedTarget(_)
            | Fault::ForbiddenFlags
            | Fault::Fragment
            | Fault::Indivisible(_)
            | Fault::CoveredPrimaryBlock => ReasonCode::ConflictingSecurityOperation,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Undecodable(error) => write!(f, "a security block cannot be decoded: {error}"),
            Fault::UnknownContext(id) => write!(f, "security context {id} is unknown"),
            Fault::UnknownParameter(id) => write!(f, "security context parameter {id} is unknown"),
            Fault::InvalidParameter(id) => write!(f, "security context parameter {id} is not valid"),
            Fault::MissingParameter(id) => write!(f, "security context parameter {id} is missing"),
            Fault::UnknownResult(id) => write!(f, "security result {id} is unknown"),
            Fault::InvalidResult(id) => write!(f, "security result {id} is not valid"),
            Fault::MissingResult => f.write_str("the security result is missing"),
            Fault::MissingKey => f.write_str("there is no such key"),
            Fault::ExpiredKey => f.write_str("the key is no longer valid"),
            Fault::PrematureKey => f.write_str("the key is not valid yet"),
            Fault::UnknownTime => f.write_str("the time is unknown, and the key is valid for a limited time"),
            Fault::KeyLength => f.write_str("the length of the key does not suit its algorithm"),
            Fault::InvalidSource => f.write_str("the security source is not a node ID"),
            Fault::TooManyKeys => f.write_str("there are too many known public keys"),
            Fault::ChangedKey => f.write_str("the public key is not the one that is known of the signer"),
            Fault::WrongKeyOrAltered => f.write_str("the key is another one, or the bundle was altered"),
            Fault::MissingOperation => f.write_str("a required security operation is missing"),
            Fault::TargetCount => f.write_str("a security block has no target or too many"),
            Fault::MissingTarget(number) => write!(f, "target {number} is not in the bundle"),
            Fault::ForbiddenTarget(number) => write!(f, "block {number} must not be a target"),
            Fault::RepeatedOperation(number) => write!(f, "target {number} has this operation already"),
            Fault::EncryptedTarget(number) => write!(f, "target {number} is encrypted"),
            Fault::ForbiddenFlags => f.write_str("the flags of a block confidentiality block are not valid"),
            Fault::Fragment => f.write_str("the bundle is a fragment"),
            Fault::Indivisible(number) => write!(f, "block integrity block {number} cannot be divided"),
            Fault::CoveredPrimaryBlock => {
                f.write_str("the CRC of the primary block is covered by another security operation")
            }
            Fault::TargetLength => f.write_str("the target exceeds a limit of this implementation"),
        }
    }
}

impl core::error::Error for Fault {}
