//! Entries as they lie in a segment.
//!
//! ```text
//!  "LWE1" kind 0 0 0 | record 8 | offset 8 | length 4 | data crc 4 | header crc 4 | data ..
//! ```
//!
//! 36 bytes, numbers big-endian, CRC-32C. The header has a checksum of its own, so that opening a store hops from header
//! to header, and damage within data loses no header behind it. A store has a number that nobody
//! outside knows; it goes into the checksum of every header, so that payload bytes cannot pass for an entry. Every segment
//! begins with it.

use bytes::{Buf, BufMut};
use longwire_proto::codec::crc::crc32c;
use longwire_proto::service::RecordId;

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 36;
/// The most data of one entry; what is longer becomes several. A read has to check all of each entry that it touches.
pub(super) const DATA_BYTES_MAX: usize = 128 * 1024;

const MAGIC: &[u8; 4] = b"LWE1";
const SEGMENT_MAGIC: &[u8; 8] = b"LWSEG001";

/// Bytes at the beginning of a segment.
pub(super) const PREAMBLE_BYTES: usize = 20;

/// What a store's headers are sealed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Secret(pub(super) u64);

impl Secret {
    fn seal(self, header: &[u8]) -> u32 {
        let mut all = [0; 8 + HEADER_BYTES - 4];
        all[..8].copy_from_slice(&self.0.to_be_bytes());
        all[8..].copy_from_slice(header);
        crc32c(&all)
    }

    /// The beginning of a segment.
    pub(super) fn preamble(self) -> Vec<u8> {
        let mut out = SEGMENT_MAGIC.to_vec();
        out.put_u64(self.0);
        let crc = crc32c(&out);
        out.put_u32(crc);
        out
    }

    /// The secret of the segment that begins with `input`; none if that is not one.
    pub(super) fn of_preamble(input: &[u8]) -> Option<Self> {
        let mut input = input.get(..PREAMBLE_BYTES)?;
        let crc = crc32c(&input[..16]);
        if input[..8] != SEGMENT_MAGIC[..] {
            return None;
        }
        input.advance(8);
        let secret = Secret(input.get_u64());
        (input.get_u32() == crc).then_some(secret)
    }
}

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A batch begins here: everything before it is known to be durable. The offset is the batch's number.
    Batch,
    /// Data of a record, for the first time or moved from a segment that goes.
    Data,
    /// The record is gone.
    Remove,
}

/// The header of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) record: RecordId,
    /// Where the data belong in the record, bytes.
    pub(super) offset: u64,
    /// Bytes of data.
    pub(super) length: u32,
    pub(super) data_crc: u32,
}

impl Header {
    pub(super) fn batch(number: u64) -> Self {
        Header { kind: Kind::Batch, record: RecordId(0), offset: number, length: 0, data_crc: 0 }
    }

    pub(super) fn remove(record: RecordId) -> Self {
        Header { kind: Kind::Remove, record, offset: 0, length: 0, data_crc: 0 }
    }

    pub(super) fn data(record: RecordId, offset: u64, data: &[u8]) -> Self {
        assert!(data.len() <= DATA_BYTES_MAX, "entries are bounded");
        Header { kind: Kind::Data, record, offset, length: data.len() as u32, data_crc: crc32c(data) }
    }

    pub(super) fn encode(&self, secret: Secret, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_slice(MAGIC);
        out.put_u8(match self.kind {
            Kind::Batch => 1,
            Kind::Data => 2,
            Kind::Remove => 3,
        });
        out.put_slice(&[0; 3]);
        out.put_u64(self.record.0);
        out.put_u64(self.offset);
        out.put_u32(self.length);
        out.put_u32(self.data_crc);
        let seal = secret.seal(&out[start..]);
        out.put_u32(seal);
    }

    /// The header at the front of `input`; none where there is none, or it is damaged.
    pub(super) fn decode(secret: Secret, input: &[u8]) -> Option<Self> {
        let mut input = input.get(..HEADER_BYTES)?;
        if input[..4] != MAGIC[..] || secret.seal(&input[..HEADER_BYTES - 4]).to_be_bytes() != input[32..] {
            return None;
        }
        let kind = match input[4] {
            1 => Kind::Batch,
            2 => Kind::Data,
            3 => Kind::Remove,
            _ => return None,
        };
        input.advance(8);
        let header = Header {
            kind,
            record: RecordId(input.get_u64()),
            offset: input.get_u64(),
            length: input.get_u32(),
            data_crc: input.get_u32(),
        };
        (header.length as usize <= DATA_BYTES_MAX).then_some(header)
    }

    /// Where the next header may begin in `input`, from its second byte on.
    pub(super) fn search(input: &[u8]) -> Option<usize> {
        let tail = input.get(1..)?;
        tail.windows(MAGIC.len()).position(|window| window == MAGIC).map(|at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_and_every_flipped_bit_is_noticed() {
        for header in
            [Header::batch(7), Header::remove(RecordId(9)), Header::data(RecordId(1 << 40), 12, b"hello")]
        {
            let mut bytes = Vec::new();
            header.encode(Secret(5), &mut bytes);
            assert_eq!(bytes.len(), HEADER_BYTES);
            assert_eq!(Header::decode(Secret(5), &bytes), Some(header));
            assert_eq!(Header::decode(Secret(6), &bytes), None, "of another segment");
            for bit in 0..HEADER_BYTES * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Header::decode(Secret(5), &damaged), None, "bit {bit}");
            }
        }
    }
}
