//! DTN time and creation timestamps (RFC 9171 4.2.6, 4.2.7).

use crate::codec::{DecodeError, cbor};
use bytes::{Bytes, BytesMut};

pub use crate::service::{CreationTimestamp, DtnTime};

impl DtnTime {
    /// Decodes a DTN time from the front of the input.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        cbor::unsigned(input, "a DTN time", "RFC 9171 4.2.6").map(DtnTime)
    }

    /// Appends a DTN time.
    pub fn encode(&self, out: &mut BytesMut) {
        cbor::put_unsigned(self.0, out);
    }
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
