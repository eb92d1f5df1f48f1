//! Administrative records (RFC 9171 6, RFC 9713): what the payload of a bundle with the administrative flag is.
//!
//! A record that cannot be read, or whose type is not known, is ignored by the administrative element; the bundle
//! that carried it counts as delivered all the same (RFC 9713 2).

use super::eid::Eid;
use super::time::{CreationTimestamp, DtnTime};
use crate::codec::{DecodeError, cbor};
use bytes::{BufMut, Bytes, BytesMut};

const RECORD: &str = "RFC 9171 6.1";
const REPORT: &str = "RFC 9171 6.1.1";
/// The most status items of a report that are taken; four are defined.
const STATUS_ITEMS_MAX: u64 = 32;

/// An administrative record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminRecord {
    /// Type 1.
    StatusReport(StatusReport),
    /// Of a type that this version does not know.
    Unknown {
        /// The record's type code.
        record_type: u64,
        /// Its content, one CBOR item.
        content: Bytes,
    },
}

/// What became of a bundle (RFC 9171 6.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// The reporting node received it.
    pub received: StatusItem,
    /// The reporting node forwarded it.
    pub forwarded: StatusItem,
    /// The reporting node delivered it.
    pub delivered: StatusItem,
    /// The reporting node deleted it.
    pub deleted: StatusItem,
    /// Status items that RFC 9171 does not define, in their order.
    pub further: Vec<StatusItem>,
    /// Why.
    pub reason: ReasonCode,
    /// The bundle's source.
    pub source: Eid,
    /// The bundle's creation timestamp.
    pub timestamp: CreationTimestamp,
    /// Offset and length of the bundle's payload in the application data unit, bytes, if the bundle is a fragment.
    pub fragment: Option<(u64, u64)>,
}

/// One assertion of a status report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusItem {
    /// It is not said.
    #[default]
    NotAsserted,
    /// It is so; when is not said.
    Asserted,
    /// It is so since then.
    AssertedAt(DtnTime),
}

impl StatusItem {
    /// True if it is so.
    pub const fn is_asserted(self) -> bool {
        !matches!(self, StatusItem::NotAsserted)
    }
}

/// Why a status is asserted (RFC 9171 9.5, RFC 9172 11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonCode {
    /// 0.
    NoAdditionalInformation,
    /// 1.
    LifetimeExpired,
    /// 2.
    ForwardedOverUnidirectionalLink,
    /// 3.
    TransmissionCanceled,
    /// 4.
    DepletedStorage,
    /// 5.
    DestinationUnavailable,
    /// 6.
    NoRoute,
    /// 7.
    NoTimelyContact,
    /// 8.
    BlockUnintelligible,
    /// 9.
    HopLimitExceeded,
    /// 10.
    TrafficPared,
    /// 11.
    BlockUnsupported,
    /// 12.
    MissingSecurityOperation,
    /// 13.
    UnknownSecurityOperation,
    /// 14.
    UnexpectedSecurityOperation,
    /// 15.
    FailedSecurityOperation,
    /// 16.
    ConflictingSecurityOperation,
    /// Any other.
    Unknown(u64),
}

const REASONS: [ReasonCode; 17] = [
    ReasonCode::NoAdditionalInformation,
    ReasonCode::LifetimeExpired,
    ReasonCode::ForwardedOverUnidirectionalLink,
    ReasonCode::TransmissionCanceled,
    ReasonCode::DepletedStorage,
    ReasonCode::DestinationUnavailable,
    ReasonCode::NoRoute,
    ReasonCode::NoTimelyContact,
    ReasonCode::BlockUnintelligible,
    ReasonCode::HopLimitExceeded,
    ReasonCode::TrafficPared,
    ReasonCode::BlockUnsupported,
    ReasonCode::MissingSecurityOperation,
    ReasonCode::UnknownSecurityOperation,
    ReasonCode::UnexpectedSecurityOperation,
    ReasonCode::FailedSecurityOperation,
    ReasonCode::ConflictingSecurityOperation,
];

impl ReasonCode {
    /// The reason with this number.
    pub fn from_number(number: u64) -> Self {
        let known = usize::try_from(number).ok().and_then(|index| REASONS.get(index));
        known.copied().unwrap_or(ReasonCode::Unknown(number))
    }

    /// Its number.
    pub fn number(self) -> u64 {
        match self {
            ReasonCode::Unknown(number) => number,
            known => REASONS.iter().position(|&reason| reason == known).expect("the table is whole") as u64,
        }
    }
}

impl AdminRecord {
    /// Takes an administrative record.
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

    /// Reads a payload that has to be one administrative record and nothing else.
    pub fn from_bytes(payload: &Bytes) -> Result<Self, DecodeError> {
        let mut input = payload.clone();
        let record = Self::decode(&mut input)?;
        if input.is_empty() {
            Ok(record)
        } else {
            Err(DecodeError::invalid("what follows an administrative record", RECORD))
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

    /// The record's bytes.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(64);
        self.encode(&mut out);
        out.freeze()
    }
}

impl StatusReport {
    /// Takes the content of a status report.
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
