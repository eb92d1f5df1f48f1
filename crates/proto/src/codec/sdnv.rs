//! Self-delimiting numeric values (SDNV, RFC 6256): seven bits per byte, most significant first, the top bit set on all
//! but the last byte. Values have up to 64 bits.

use super::DecodeError;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Maximum length of a 64-bit value, bytes.
pub const LENGTH_MAX: usize = 10;

/// Returns the length of `value`, bytes.
pub const fn length(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Appends `value`.
pub fn encode(value: u64, out: &mut BytesMut) {
    let mut bytes = [0; LENGTH_MAX];
    let from = LENGTH_MAX - length(value);
    for (index, byte) in bytes[from..].iter_mut().rev().enumerate() {
        let more = if index > 0 { 0x80 } else { 0 };
        *byte = (value >> (7 * index)) as u8 & 0x7f | more;
    }
    out.put_slice(&bytes[from..]);
}

/// Consumes a value. Leading zero bytes (`0x80`) are legal (RFC 6256 2.1), but limited here to [`LENGTH_MAX`] bytes in
/// all.
pub fn decode(input: &mut Bytes) -> Result<u64, DecodeError> {
    let mut value = 0u64;
    for index in 0..LENGTH_MAX {
        let Some(&byte) = input.get(index) else {
            return Err(DecodeError::Incomplete);
        };
        if value >> 57 != 0 {
            return Err(DecodeError::Limit { what: "an SDNV" });
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            input.advance(index + 1);
            return Ok(value);
        }
    }
    Err(DecodeError::Limit { what: "an SDNV" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_rfc_6256_2_1() {
        for (value, bytes) in [
            (0xabc, &[0x95, 0x3c][..]),
            (0x1234, &[0xa4, 0x34]),
            (0x4234, &[0x81, 0x84, 0x34]),
            (0x7f, &[0x7f]),
        ] {
            let mut out = BytesMut::new();
            encode(value, &mut out);
            assert_eq!(&out[..], bytes);
            assert_eq!(out.len(), length(value));
            assert_eq!(decode(&mut out.freeze()), Ok(value));
        }
    }

    #[test]
    fn limits() {
        let mut out = BytesMut::new();
        encode(u64::MAX, &mut out);
        assert_eq!(out.len(), LENGTH_MAX);
        assert_eq!(decode(&mut out.freeze()), Ok(u64::MAX));
        assert_eq!(decode(&mut Bytes::from_static(&[0x80])), Err(DecodeError::Incomplete));
        assert_eq!(decode(&mut Bytes::from_static(&[0xff; 11])), Err(DecodeError::Limit { what: "an SDNV" }));
    }
}
