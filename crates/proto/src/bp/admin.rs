//! Administrative records (RFC 9171 6, RFC 9713): the payload of a bundle with the administrative record
//! flag.
//!
//! The administrative element ignores a record that is invalid or of an unknown type; the bundle that carried
//! it counts as delivered (RFC 9713 2).

use super::eid::Eid;
use super::time::{CreationTimestamp, DtnTime};
use crate::codec::{self, DecodeError, cbor, codes};
use bytes::{BufMut, Bytes, BytesMut};

const RECORD: &str = "RFC 9171 6.1";
const REPORT: &str = "RFC 9171 6.1.1";
/// Maximum number of status items accepted in a report; RFC 9171 defines four.
const STATUS_ITEMS_MAX: u64 = 32;

/// Administrative record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminRecord {
    /// Type 1: bundle status report.
    StatusReport(StatusReport),
    /// Record of an unknown type.
    Unknown {
        /// Record type code.
        record_type: u64,
        /// Content, one CBOR item.
        content: Bytes,
    },
}

/// Bundle status report (RFC 9171 6.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// The reporting node received the bundle.
    pub received: StatusItem,
    /// The reporting node forwarded the bundle.
    pub forwarded: StatusItem,
    /// The reporting node delivered the bundle.
    pub delivered: StatusItem,
    /// The reporting node deleted the bundle.
    pub deleted: StatusItem,
    /// Status items that RFC 9171 does not define, in order.
    pub further: Vec<StatusItem>,
    /// Reason code.
    pub reason: ReasonCode,
    /// Source of the subject bundle.
    pub source: Eid,
    /// Creation timestamp of the subject bundle.
    pub timestamp: CreationTimestamp,
    /// Offset and length of the subject bundle's payload in the application data unit, bytes; `None` if the
    /// subject bundle is not a fragment.
    pub fragment: Option<(u64, u64)>,
}

/// Assertion of a status report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusItem {
    /// The report does not assert the status.
    #[default]
    NotAsserted,
    /// The report asserts the status, without a time.
    Asserted,
    /// The report asserts the status and contains its time.
    AssertedAt(DtnTime),
}

impl StatusItem {
    /// True if the report asserts the status.
    pub const fn is_asserted(self) -> bool {
        !matches!(self, StatusItem::NotAsserted)
    }
}

/// Status report reason code (RFC 9171 9.5, RFC 9172 11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonCode {
    /// 0: no additional information.
    NoAdditionalInformation,
    /// 1: lifetime expired.
    LifetimeExpired,
    /// 2: forwarded over a unidirectional link.
    ForwardedOverUnidirectionalLink,
    /// 3: transmission cancelled.
    TransmissionCanceled,
    /// 4: depleted storage.
    DepletedStorage,
    /// 5: destination endpoint ID unavailable.
    DestinationUnavailable,
    /// 6: no known route to the destination from here.
    NoRoute,
    /// 7: no timely contact with the next node on the route.
    NoTimelyContact,
    /// 8: block unintelligible.
    BlockUnintelligible,
    /// 9: hop limit exceeded.
    HopLimitExceeded,
    /// 10: traffic pared.
    TrafficPared,
    /// 11: block unsupported.
    BlockUnsupported,
    /// 12: missing security operation.
    MissingSecurityOperation,
    /// 13: unknown security operation.
    UnknownSecurityOperation,
    /// 14: unexpected security operation.
    UnexpectedSecurityOperation,
    /// 15: failed security operation.
    FailedSecurityOperation,
    /// 16: conflicting security operation.
    ConflictingSecurityOperation,
    /// Any other code.
    Unknown(u64),
}

codes!(
    ReasonCode: u64, from_number, number,
    0 NoAdditionalInformation, 1 LifetimeExpired, 2 ForwardedOverUnidirectionalLink, 3 TransmissionCanceled,
    4 DepletedStorage, 5 DestinationUnavailable, 6 NoRoute, 7 NoTimelyContact, 8 BlockUnintelligible,
    9 HopLimitExceeded, 10 TrafficPared, 11 BlockUnsupported, 12 MissingSecurityOperation,
    13 UnknownSecurityOperation, 14 UnexpectedSecurityOperation, 15 FailedSecurityOperation,
    16 ConflictingSecurityOperation, Unknown
);

impl AdminRecord {
    /// Decodes an administrative record from the front of the input.
    ///
    /// # Errors
    /// Fails if the input is incomplete or not an administrative record.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if cbor::array(input, "an administrative record", RECORD)? != Some(2) {
            return Err(DecodeError::invalid("an administrative record", RECORD));
        }
        match cbor::unsigned(input, "the type of an administrative record", RECORD)? {
            1 => StatusReport::decode(input).map(AdminRecord::StatusReport),
            record_type => {
                let content = cbor::item(input, 16)?;
                Ok(AdminRecord::Unknown { record_type, content })
            }
        }
    }

    /// Decodes a payload that contains exactly one administrative record.
    ///
    /// # Errors
    /// Fails if the payload is not an administrative record, or if further bytes follow it.
    pub fn from_bytes(payload: &Bytes) -> Result<Self, DecodeError> {
        let mut input = payload.clone();
        let record = Self::decode(&mut input)?;
        if input.is_empty() {
            Ok(record)
        } else {
            Err(DecodeError::invalid("data after an administrative record", RECORD))
        }
    }

    /// Appends the record.
    pub fn encode(&self, out: &mut BytesMut) {
        cbor::put_array(2, out);
        match self {
            AdminRecord::StatusReport(report) => {
                cbor::put_unsigned(1, out);
                report.encode(out);
            }
            AdminRecord::Unknown { record_type, content } => {
                cbor::put_unsigned(*record_type, out);
                out.put_slice(content);
            }
        }
    }

    /// Encodes the record.
    pub fn to_bytes(&self) -> Bytes {
        codec::encoded(64, |out| self.encode(out))
    }
}

impl StatusReport {
    /// Decodes the content of a status report from the front of the input.
    ///
    /// # Errors
    /// Fails if the input is incomplete or not a status report, or if it has more than 32 status items.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let items = cbor::array(input, "a status report", REPORT)?;
        if !matches!(items, Some(4 | 6)) {
            return Err(DecodeError::invalid("a status report", REPORT));
        }
        const STATUS: &str = "bundle status information";
        let count = cbor::array(input, STATUS, REPORT)?.ok_or(DecodeError::invalid(STATUS, REPORT))?;
        if count < 4 {
            return Err(DecodeError::invalid(STATUS, REPORT));
        }
        if count > STATUS_ITEMS_MAX {
            return Err(DecodeError::Limit { what: "the number of status items" });
        }
        Ok(StatusReport {
            received: StatusItem::decode(input)?,
            forwarded: StatusItem::decode(input)?,
            delivered: StatusItem::decode(input)?,
            deleted: StatusItem::decode(input)?,
            further: (4..count).map(|_| StatusItem::decode(input)).collect::<Result<_, _>>()?,
            reason: ReasonCode::from_number(cbor::unsigned(input, "a reason code", REPORT)?),
            source: Eid::decode(input)?,
            timestamp: CreationTimestamp::decode(input)?,
            fragment: if items == Some(6) { Some(decode_fragment(input)?) } else { None },
        })
    }

    /// Appends the content of a status report.
    pub fn encode(&self, out: &mut BytesMut) {
        cbor::put_array(if self.fragment.is_some() { 6 } else { 4 }, out);
        let defined = [self.received, self.forwarded, self.delivered, self.deleted];
        cbor::put_array((defined.len() + self.further.len()) as u64, out);
        defined.iter().chain(&self.further).for_each(|status| status.encode(out));
        cbor::put_unsigned(self.reason.number(), out);
        self.source.encode(out);
        self.timestamp.encode(out);
        if let Some((offset, length)) = self.fragment {
            cbor::put_unsigned(offset, out);
            cbor::put_unsigned(length, out);
        }
    }
}

fn decode_fragment(input: &mut Bytes) -> Result<(u64, u64), DecodeError> {
    let offset = cbor::unsigned(input, "a reported fragment offset", REPORT)?;
    let length = cbor::unsigned(input, "a reported payload length", REPORT)?;
    Ok((offset, length))
}

impl StatusItem {
    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        const WHAT: &str = "a status item";
        let items = cbor::array(input, WHAT, REPORT)?;
        match (cbor::boolean(input, WHAT, REPORT)?, items) {
            (false, Some(1)) => Ok(StatusItem::NotAsserted),
            (true, Some(1)) => Ok(StatusItem::Asserted),
            (true, Some(2)) => DtnTime::decode(input).map(StatusItem::AssertedAt),
            _ => Err(DecodeError::invalid(WHAT, REPORT)),
        }
    }

    fn encode(self, out: &mut BytesMut) {
        match self {
            StatusItem::NotAsserted => {
                cbor::put_array(1, out);
                cbor::put_boolean(false, out);
            }
            StatusItem::Asserted => {
                cbor::put_array(1, out);
                cbor::put_boolean(true, out);
            }
            StatusItem::AssertedAt(time) => {
                cbor::put_array(2, out);
                cbor::put_boolean(true, out);
                time.encode(out);
            }
        }
    }
}
