//! The CBOR of bundles (RFC 8949): heads, strings and arrays; shortest form only (4.2.1), except that arrays and
//! strings may be of indefinite length where the caller permits it.
//!
//! A general CBOR library accepts any encoding of a number and copies what it decodes. RFC 9171 4.1 requires core
//! deterministic encoding, and the decoders here return slices of the input without a copy.

use super::DecodeError;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Clause that requires the shortest form.
const SHORTEST: &str = "RFC 8949 4.2.1";
/// The "break" that ends an item of indefinite length (RFC 8949 3.2.1).
pub const BREAK: u8 = 0xff;

/// Major types (RFC 8949 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Major {
    /// 0: an unsigned integer.
    Unsigned,
    /// 1: a negative integer.
    Negative,
    /// 2: a byte string.
    ByteString,
    /// 3: a text string.
    TextString,
    /// 4: an array.
    Array,
    /// 5: a map.
    Map,
    /// 6: a tag.
    Tag,
    /// 7: simple values, floats and the break.
    Simple,
}

const MAJORS: [Major; 8] = [
    Major::Unsigned,
    Major::Negative,
    Major::ByteString,
    Major::TextString,
    Major::Array,
    Major::Map,
    Major::Tag,
    Major::Simple,
];

/// Head of an item: its major type and its argument; `None` if the length is indefinite.
pub type ItemHead = (Major, Option<u64>);

/// Reads the head at the front without consuming it. Returns the head and its length in bytes. Refuses a head that is
/// not in shortest form. The head of a float is exempt: its argument has no shortest form.
pub fn peek_head(input: &[u8]) -> Result<(ItemHead, usize), DecodeError> {
    let (head, length, is_shortest) = peek_any_head(input)?;
    if is_shortest {
        Ok((head, length))
    } else {
        Err(DecodeError::invalid("a CBOR head longer than needed", SHORTEST))
    }
}

/// Reads a head of any form. Returns the head, its length in bytes, and true if it is in shortest form.
fn peek_any_head(input: &[u8]) -> Result<(ItemHead, usize, bool), DecodeError> {
    let &first = input.first().ok_or(DecodeError::Incomplete)?;
    let major = MAJORS[usize::from(first >> 5)];
    let short = first & 0x1f;
    let (argument, least, length) = match short {
        0..=23 => return Ok(((major, Some(u64::from(short))), 1, true)),
        24 => (u64::from(*input.get(1).ok_or(DecodeError::Incomplete)?), 24, 2),
        25 => (u64::from(u16::from_be_bytes(fixed(input)?)), 0x100, 3),
        26 => (u64::from(u32::from_be_bytes(fixed(input)?)), 0x1_0000, 5),
        27 => (u64::from_be_bytes(fixed(input)?), 0x1_0000_0000, 9),
        31 => return Ok(((major, None), 1, true)),
        _ => return Err(DecodeError::invalid("a CBOR head", "RFC 8949 3")),
    };
    Ok(((major, Some(argument)), length, argument >= least || major == Major::Simple))
}

fn fixed<const N: usize>(input: &[u8]) -> Result<[u8; N], DecodeError> {
    let bytes = input.get(1..=N).ok_or(DecodeError::Incomplete)?;
    Ok(bytes.try_into().expect("the range has N bytes"))
}

/// Input of the decoders: `Bytes`, whose parts share its memory, or a plain slice where nothing is kept.
pub trait Input: Buf + core::ops::Deref<Target = [u8]> {}

impl Input for Bytes {}
impl Input for &[u8] {}

/// Consumes a head.
#[inline]
pub fn head(input: &mut impl Input) -> Result<ItemHead, DecodeError> {
    // Most heads are one byte long.
    if let Some(&first) = input.first()
        && first & 0x1f < 24
    {
        input.advance(1);
        return Ok((MAJORS[usize::from(first >> 5)], Some(u64::from(first & 0x1f))));
    }
    let (head, length) = peek_head(input)?;
    input.advance(length);
    Ok(head)
}

/// Consumes a head of any form, for formats that do not require the shortest one.
pub fn any_head(input: &mut impl Input) -> Result<ItemHead, DecodeError> {
    let (head, length, _) = peek_any_head(input)?;
    input.advance(length);
    Ok(head)
}

#[inline]
fn expect(
    input: &mut impl Input,
    major: Major,
    what: &'static str,
    clause: &'static str,
) -> Result<Option<u64>, DecodeError> {
    let (found, argument) = head(input)?;
    if found == major { Ok(argument) } else { Err(DecodeError::invalid(what, clause)) }
}

/// Consumes an unsigned integer. `what` and `clause` name the field in errors.
#[inline]
pub fn unsigned(
    input: &mut impl Input,
    what: &'static str,
    clause: &'static str,
) -> Result<u64, DecodeError> {
    expect(input, Major::Unsigned, what, clause)?.ok_or(DecodeError::invalid(what, clause))
}

/// Consumes the head of an array. Returns its length; `None` if it is indefinite.
#[inline]
pub fn array(
    input: &mut impl Input,
    what: &'static str,
    clause: &'static str,
) -> Result<Option<u64>, DecodeError> {
    expect(input, Major::Array, what, clause)
}

/// Consumes a byte string of definite length; the result shares the input's memory.
pub fn byte_string(
    input: &mut Bytes,
    what: &'static str,
    clause: &'static str,
) -> Result<Bytes, DecodeError> {
    let length = expect(input, Major::ByteString, what, clause)?.ok_or(DecodeError::invalid(what, clause))?;
    take(input, length)
}

/// Consumes a boolean.
pub fn boolean(
    input: &mut impl Input,
    what: &'static str,
    clause: &'static str,
) -> Result<bool, DecodeError> {
    match expect(input, Major::Simple, what, clause)? {
        Some(20) => Ok(false),
        Some(21) => Ok(true),
        _ => Err(DecodeError::invalid(what, clause)),
    }
}

/// Consumes a break if one is at the front. Returns true if it was.
pub fn take_break(input: &mut impl Input) -> Result<bool, DecodeError> {
    match input.first() {
        None => Err(DecodeError::Incomplete),
        Some(&BREAK) => {
            input.advance(1);
            Ok(true)
        }
        Some(_) => Ok(false),
    }
}

fn take(input: &mut Bytes, length: u64) -> Result<Bytes, DecodeError> {
    match usize::try_from(length) {
        Ok(length) if length <= input.len() => Ok(input.split_to(length)),
        _ => Err(DecodeError::Incomplete),
    }
}

/// Returns the length of a head with this argument, bytes.
pub const fn head_length(argument: u64) -> usize {
    match argument {
        0..=23 => 1,
        24..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

/// Maximum length of a head, bytes.
const HEAD_BYTES_MAX: usize = 9;

/// Writes a head in shortest form to the front of `out`. Returns its length, bytes.
#[inline]
fn write_head(major: Major, argument: u64, out: &mut [u8]) -> usize {
    let top = (major as u8) << 5;
    match argument {
        0..=23 => out[0] = top | argument as u8,
        24..=0xff => out[..2].copy_from_slice(&[top | 24, argument as u8]),
        0x100..=0xffff => {
            out[0] = top | 25;
            out[1..3].copy_from_slice(&(argument as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out[0] = top | 26;
            out[1..5].copy_from_slice(&(argument as u32).to_be_bytes());
        }
        _ => {
            out[0] = top | 27;
            out[1..9].copy_from_slice(&argument.to_be_bytes());
        }
    }
    head_length(argument)
}

/// Appends a head in shortest form.
#[inline]
pub fn put_head(major: Major, argument: u64, out: &mut BytesMut) {
    put_heads([(major, argument)], out);
}

/// Appends several heads in shortest form at once: an append costs more than a head does.
#[inline]
pub fn put_heads<const COUNT: usize>(heads: [(Major, u64); COUNT], out: &mut BytesMut) {
    let (bytes, length) = heads_as_bytes(heads);
    out.extend_from_slice(&bytes[..length]);
}

/// Encodes up to seven heads in shortest form. Returns the bytes and their number.
#[inline]
pub fn heads_as_bytes<const COUNT: usize>(heads: [(Major, u64); COUNT]) -> ([u8; 64], usize) {
    const { assert!(COUNT * HEAD_BYTES_MAX <= 64, "seven heads at the most") };
    let mut bytes = [0; 64];
    let mut length = 0;
    for (major, argument) in heads {
        length += write_head(major, argument, &mut bytes[length..]);
    }
    (bytes, length)
}

/// Appends an unsigned integer.
pub fn put_unsigned(value: u64, out: &mut BytesMut) {
    put_head(Major::Unsigned, value, out);
}

/// Appends the head of an array of `length` items.
pub fn put_array(length: u64, out: &mut BytesMut) {
    put_head(Major::Array, length, out);
}

/// Appends the head of an array that ends with a break.
pub fn put_indefinite_array(out: &mut BytesMut) {
    out.put_u8(0x9f);
}

/// Appends a break.
pub fn put_break(out: &mut BytesMut) {
    out.put_u8(BREAK);
}

/// Appends a byte string.
pub fn put_byte_string(bytes: &[u8], out: &mut BytesMut) {
    put_head(Major::ByteString, bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a boolean.
pub fn put_boolean(value: bool, out: &mut BytesMut) {
    out.put_u8(if value { 0xf5 } else { 0xf4 });
}

/// Consumes one complete item of any type and returns its bytes. Refuses nesting deeper than `depth`, and items that
/// are not well-formed.
pub fn item(input: &mut Bytes, depth: u8) -> Result<Bytes, DecodeError> {
    let whole = input.clone();
    skip(input, depth, head)?;
    Ok(whole.slice(..whole.len() - input.len()))
}

/// Consumes one complete item like [`item`], with heads of any form.
pub fn any_item(input: &mut Bytes, depth: u8) -> Result<Bytes, DecodeError> {
    let whole = input.clone();
    skip(input, depth, any_head)?;
    Ok(whole.slice(..whole.len() - input.len()))
}

type ReadHead = fn(&mut Bytes) -> Result<ItemHead, DecodeError>;

fn skip(input: &mut Bytes, depth: u8, head: ReadHead) -> Result<(), DecodeError> {
    if depth == 0 {
        return Err(DecodeError::Limit { what: "CBOR nesting" });
    }
    let (major, argument) = head(input)?;
    match (major, argument) {
        (Major::Unsigned | Major::Negative | Major::Simple, Some(_)) => Ok(()),
        (Major::ByteString | Major::TextString, Some(length)) => take(input, length).map(drop),
        (Major::Tag, Some(_)) => skip(input, depth - 1, head),
        (Major::Array, Some(count)) => skip_many(input, depth, count, head),
        (Major::Map, Some(count)) => {
            skip_many(input, depth, count.checked_mul(2).ok_or(DecodeError::Incomplete)?, head)
        }
        (Major::Array | Major::Map | Major::ByteString | Major::TextString, None) => {
            while !take_break(input)? {
                skip(input, depth - 1, head)?;
            }
            Ok(())
        }
        (Major::Unsigned | Major::Negative | Major::Tag | Major::Simple, None) => {
            Err(DecodeError::invalid("a CBOR head", "RFC 8949 3.2"))
        }
    }
}

fn skip_many(input: &mut Bytes, depth: u8, count: u64, head: ReadHead) -> Result<(), DecodeError> {
    // Every item takes at least a byte: a count beyond the input ends at once.
    if count > input.len() as u64 {
        return Err(DecodeError::Incomplete);
    }
    (0..count).try_for_each(|_| skip(input, depth - 1, head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &[u8]) -> Bytes {
        Bytes::copy_from_slice(hex)
    }

    #[test]
    fn heads_of_rfc_8949_appendix_a() {
        for (value, expected) in [
            (0u64, &[0x00u8][..]),
            (23, &[0x17]),
            (24, &[0x18, 0x18]),
            (100, &[0x18, 0x64]),
            (1000, &[0x19, 0x03, 0xe8]),
            (1_000_000, &[0x1a, 0x00, 0x0f, 0x42, 0x40]),
            (u64::MAX, &[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ] {
            let mut out = BytesMut::new();
            put_unsigned(value, &mut out);
            assert_eq!(&out[..], expected);
            assert_eq!(unsigned(&mut out.freeze(), "a test", "here"), Ok(value));
        }
    }

    #[test]
    fn a_head_longer_than_needed_is_refused_where_the_shortest_form_is_required() {
        for (long, argument) in [
            (&[0x18u8, 23][..], 23),
            (&[0x19, 0, 255], 255),
            (&[0x1a, 0, 0, 255, 255], 65_535),
            (&[0x1b, 0, 0, 0, 0, 0, 0, 0, 1], 1),
        ] {
            let error = unsigned(&mut bytes(long), "a test", "here");
            assert_eq!(error, Err(DecodeError::invalid("a CBOR head longer than needed", SHORTEST)));
            let whole = any_item(&mut bytes(long), 1).expect("any form is one");
            assert_eq!((&whole[..], any_head(&mut &long[..])), (long, Ok((Major::Unsigned, Some(argument)))));
        }
    }

    #[test]
    fn every_prefix_of_an_item_is_incomplete() {
        let whole = [0x82, 0x43, 1, 2, 3, 0x9f, 0x19, 3, 0xe8, 0x62, b'h', b'i', 0xff];
        for cut in 0..whole.len() {
            assert_eq!(item(&mut bytes(&whole[..cut]), 8), Err(DecodeError::Incomplete), "cut at {cut}");
        }
        assert_eq!(item(&mut bytes(&whole), 8).map(|item| item.len()), Ok(whole.len()));
    }

    #[test]
    fn nesting_is_bounded() {
        assert_eq!(item(&mut bytes(&[0x81; 40]), 16), Err(DecodeError::Limit { what: "CBOR nesting" }));
    }

    #[test]
    fn an_announced_length_of_any_size_costs_nothing() {
        let huge = [0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];
        assert_eq!(byte_string(&mut bytes(&huge), "a test", "here"), Err(DecodeError::Incomplete));
        let huge = [0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];
        assert_eq!(item(&mut bytes(&huge), 4), Err(DecodeError::Incomplete));
    }
}
