//! DTN time and creation timestamps (RFC 9171 4.2.6, 4.2.7).

use crate::codec::{DecodeError, cbor};
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

/// DTN time: milliseconds since 2000-01-01 00:00:00 UTC; zero if unknown (RFC 9171 4.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DtnTime(pub u64);

impl DtnTime {
    /// Unknown time: zero.
    pub const UNKNOWN: DtnTime = DtnTime(0);

    /// False for the unknown time.
    pub const fn is_known(self) -> bool {
        self.0 != 0
    }

    /// Decodes a DTN time from the front of the input.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        cbor::unsigned(input, "a DTN time", "RFC 9171 4.2.6").map(DtnTime)
    }

    /// Appends a DTN time.
    pub fn encode(&self, out: &mut BytesMut) {
        cbor::put_unsigned(self.0, out);
    }
}

/// Creation timestamp; together with the source it identifies the bundle (RFC 9171 4.2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CreationTimestamp {
    /// Time of the request to send the bundle; unknown on a node without a clock.
    pub time: DtnTime,
    /// Sequence number, which distinguishes bundles of the same time.
    pub sequence: u64,
}

impl CreationTimestamp {
    /// Decodes a creation timestamp from the front of the input.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        const WHAT: &str = "a creation timestamp";
        const CLAUSE: &str = "RFC 9171 4.2.7";
        if cbor::array(input, WHAT, CLAUSE)? != Some(2) {
            return Err(DecodeError::invalid(WHAT, CLAUSE));
        }
        let time = DtnTime::decode(input)?;
        let sequence = cbor::unsigned(input, "a sequence number", CLAUSE)?;
        Ok(CreationTimestamp { time, sequence })
    }

    /// Appends a creation timestamp.
    pub fn encode(&self, out: &mut BytesMut) {
        cbor::put_array(2, out);
        self.time.encode(out);
        cbor::put_unsigned(self.sequence, out);
    }
}
