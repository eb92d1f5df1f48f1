//! Administrative records (RFC 5050 6.1): the payload of a bundle with the administrative record flag.

use crate::bp::{CreationTimestamp, Eid, ReasonCode};
use crate::codec::{self, DecodeError, codes, sdnv, take, take_byte};
use bytes::{BufMut, Bytes, BytesMut};

const RECORD: &str = "RFC 5050 6.1";
const REPORT: &str = "RFC 5050 6.1.1";
const SIGNAL: &str = "RFC 5050 6.1.2";
/// Maximum length of a source endpoint ID, bytes: scheme, colon and scheme-specific part (RFC 5050 4.4).
const EID_BYTES_MAX: u64 = 1023 + 1 + 1023;

/// Administrative record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminRecord {
    /// Type 1: bundle status report.
    StatusReport(StatusReport),
    /// Type 2: custody signal.
    CustodySignal(CustodySignal),
    /// Record of an unknown type, such as 4, aggregate custody signal.
    Unknown {
        /// Record type code, 4 bits.
        record_type: u8,
        /// Record flags, 4 bits.
        flags: u8,
        /// Rest of the record.
        content: Bytes,
    },
}

/// Identification of the subject bundle of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Source endpoint ID.
    pub source: Eid,
    /// Creation time, seconds since 2000-01-01 UTC.
    pub created_s: u64,
    /// Creation timestamp sequence number.
    pub sequence: u64,
    /// Offset and length of the payload in the application data unit, bytes; `None` if the subject bundle is
    /// not a fragment.
    pub fragment: Option<(u64, u64)>,
}

/// DTN time of version 6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 2000-01-01 UTC.
    pub seconds: u64,
    /// Nanoseconds since the beginning of that second.
    pub nanoseconds: u64,
}

impl Time {
    /// Converts from milliseconds since 2000-01-01 UTC.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Time { seconds: milliseconds / 1000, nanoseconds: milliseconds % 1000 * 1_000_000 }
    }
}

/// Bundle status report (RFC 5050 6.1.1). Each asserted status has a time; the others are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// The reporting node received the bundle.
    pub received: Option<Time>,
    /// The reporting node accepted custody of the bundle.
    pub custody: Option<Time>,
    /// The reporting node forwarded the bundle.
    pub forwarded: Option<Time>,
    /// The reporting node delivered the bundle.
    pub delivered: Option<Time>,
    /// The reporting node deleted the bundle.
    pub deleted: Option<Time>,
    /// The three unused bits of the status flags, in their positions.
    pub unused_flags: u8,
    /// Reason code; the defined codes are those of version 7.
    pub reason: ReasonCode,
    /// Subject bundle.
    pub subject: Subject,
}

/// Custody signal: custody was accepted or refused (RFC 5050 6.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustodySignal {
    /// True if the signalling node has accepted custody or has delivered the bundle.
    pub succeeded: bool,
    /// Reason code.
    pub reason: CustodyReason,
    /// Time of the signal.
    pub time: Time,
    /// Subject bundle.
    pub subject: Subject,
}

/// Custody signal reason code (RFC 5050 6.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CustodyReason {
    /// 0: no additional information.
    NoAdditionalInformation,
    /// 3: redundant reception; the node is already custodian of this bundle.
    RedundantReception,
    /// 4: depleted storage.
    DepletedStorage,
    /// 5: destination endpoint ID unintelligible.
    DestinationUnintelligible,
    /// 6: no known route to the destination from here.
    NoRoute,
    /// 7: no timely contact with the next node on the route.
    NoTimelyContact,
    /// 8: block unintelligible.
    BlockUnintelligible,
    /// Any other code, 7 bits.
    Unknown(u8),
}

codes!(
    CustodyReason: u8, from_number, number,
    0 NoAdditionalInformation, 3 RedundantReception, 4 DepletedStorage, 5 DestinationUnintelligible, 6 NoRoute,
    7 NoTimelyContact, 8 BlockUnintelligible, Unknown & 0x7f
);

const TYPE_REPORT: u8 = 1;
const TYPE_SIGNAL: u8 = 2;
const FLAG_FRAGMENT: u8 = 1;
const SUCCEEDED: u8 = 0x80;
const UNUSED: u8 = 0xe0;

impl AdminRecord {
    /// Decodes a payload that contains exactly one administrative record.
    ///
    /// # Errors
    /// Fails if the payload is not an administrative record, or if further bytes follow it.
    pub fn from_bytes(payload: &Bytes) -> Result<Self, DecodeError> {
        let mut input = payload.clone();
        let what = "the length of an administrative record";
        let record = Self::decode(&mut input).map_err(|error| match error {
            DecodeError::Incomplete => DecodeError::invalid(what, RECORD),
            error => error,
        })?;
        if input.is_empty() { Ok(record) } else { Err(DecodeError::invalid(what, RECORD)) }
    }

    /// Decodes an administrative record from the front of the input. A record of an unknown type takes all of
    /// the input.
    ///
    /// # Errors
    /// Fails if the input is incomplete or not an administrative record.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let first = take_byte(input)?;
        let (record_type, flags) = (first >> 4, first & 0x0f);
        let fragment = match flags {
            0 => false,
            FLAG_FRAGMENT => true,
            _ if matches!(record_type, TYPE_REPORT | TYPE_SIGNAL) => {
                return Err(DecodeError::invalid("the flags of an administrative record", RECORD));
            }
            _ => false,
        };
        match record_type {
            TYPE_REPORT => StatusReport::decode(input, fragment).map(AdminRecord::StatusReport),
            TYPE_SIGNAL => CustodySignal::decode(input, fragment).map(AdminRecord::CustodySignal),
            _ => {
                let content = input.split_to(input.len());
                Ok(AdminRecord::Unknown { record_type, flags, content })
            }
        }
    }

    /// Appends the record.
    pub fn encode(&self, out: &mut BytesMut) {
        let fragment = |subject: &Subject| if subject.fragment.is_some() { FLAG_FRAGMENT } else { 0 };
        match self {
            AdminRecord::StatusReport(report) => {
                out.put_u8(TYPE_REPORT << 4 | fragment(&report.subject));
                report.encode(out);
            }
            AdminRecord::CustodySignal(signal) => {
                out.put_u8(TYPE_SIGNAL << 4 | fragment(&signal.subject));
                signal.encode(out);
            }
            AdminRecord::Unknown { record_type, flags, content } => {
                out.put_u8(record_type << 4 | flags & 0x0f);
                out.put_slice(content);
            }
        }
    }

    /// Encodes the record.
    pub fn to_bytes(&self) -> Bytes {
        codec::encoded(64, |out| self.encode(out))
    }
}

impl Time {
    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        Ok(Time { seconds: sdnv::decode(input)?, nanoseconds: sdnv::decode(input)? })
    }

    fn encode(self, out: &mut BytesMut) {
        sdnv::encode(self.seconds, out);
        sdnv::encode(self.nanoseconds, out);
    }
}

fn decode_fragment(input: &mut Bytes, is_fragment: bool) -> Result<Option<(u64, u64)>, DecodeError> {
    if is_fragment { Ok(Some((sdnv::decode(input)?, sdnv::decode(input)?))) } else { Ok(None) }
}

impl Subject {
    /// Creation timestamp, whose time has a resolution of one second.
    pub fn timestamp(&self) -> CreationTimestamp {
        (self.created_s.saturating_mul(1000), self.sequence).into()
    }

    /// Decodes the fields that end both kinds of records.
    fn decode(
        input: &mut Bytes,
        fragment: Option<(u64, u64)>,
        clause: &'static str,
    ) -> Result<Self, DecodeError> {
        let (created_s, sequence) = (sdnv::decode(input)?, sdnv::decode(input)?);
        let length = sdnv::decode(input)?;
        if length > EID_BYTES_MAX {
            return Err(DecodeError::Limit { what: "an endpoint ID" });
        }
        let text = take(input, length as usize)?;
        let text = core::str::from_utf8(&text)
            .map_err(|_| DecodeError::invalid("the source of the subject bundle", clause))?;
        Ok(Subject { source: Eid::from_uri(text)?, created_s, sequence, fragment })
    }

    fn encode_fragment(&self, out: &mut BytesMut) {
        if let Some((offset, length)) = self.fragment {
            sdnv::encode(offset, out);
            sdnv::encode(length, out);
        }
    }

    fn encode(&self, out: &mut BytesMut) {
        sdnv::encode(self.created_s, out);
        sdnv::encode(self.sequence, out);
        let text = self.source.uri();
        sdnv::encode(text.len() as u64, out);
        out.put_slice(text.as_bytes());
    }
}

impl StatusReport {
    fn decode(input: &mut Bytes, is_fragment: bool) -> Result<Self, DecodeError> {
        let flags = take_byte(input)?;
        let reason = ReasonCode::from_number(u64::from(take_byte(input)?));
        let fragment = decode_fragment(input, is_fragment)?;
        let mut time = |bit: u8| match flags & bit {
            0 => Ok(None),
            _ => Time::decode(input).map(Some),
        };
        let (received, custody) = (time(0x01)?, time(0x02)?);
        let (forwarded, delivered, deleted) = (time(0x04)?, time(0x08)?, time(0x10)?);
        let subject = Subject::decode(input, fragment, REPORT)?;
        let unused_flags = flags & UNUSED;
        Ok(StatusReport { received, custody, forwarded, delivered, deleted, unused_flags, reason, subject })
    }

    fn encode(&self, out: &mut BytesMut) {
        let times = [self.received, self.custody, self.forwarded, self.delivered, self.deleted];
        let bits = times.iter().enumerate();
        let flags = bits.fold(self.unused_flags & UNUSED, |flags, (index, time)| {
            flags | u8::from(time.is_some()) << index
        });
        out.put_u8(flags);
        out.put_u8(self.reason.number() as u8);
        self.subject.encode_fragment(out);
        times.iter().flatten().for_each(|time| time.encode(out));
        self.subject.encode(out);
    }
}

impl CustodySignal {
    fn decode(input: &mut Bytes, is_fragment: bool) -> Result<Self, DecodeError> {
        let status = take_byte(input)?;
        let fragment = decode_fragment(input, is_fragment)?;
        let time = Time::decode(input)?;
        let subject = Subject::decode(input, fragment, SIGNAL)?;
        let reason = CustodyReason::from_number(status & !SUCCEEDED);
        Ok(CustodySignal { succeeded: status & SUCCEEDED != 0, reason, time, subject })
    }

    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.reason.number() | if self.succeeded { SUCCEEDED } else { 0 });
        self.subject.encode_fragment(out);
        self.time.encode(out);
        self.subject.encode(out);
    }
}
