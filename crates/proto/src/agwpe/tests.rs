//! Frames as servers and programs write them.

mod raw;

use super::*;
use crate::codec::DecodeError;
use bytes::Bytes;

fn name(text: &str) -> StationName {
    text.parse().unwrap()
}

/// A connection request, octet by octet.
#[test]
fn a_call_is_36_octets() {
    let call = Frame { pid: 0xf0, ..Frame::new(Kind::Connect).between(name("EI7IG-1"), name("W1AW-15")) };
    let mut expected = vec![0, 0, 0, 0, b'C', 0, 0xf0, 0];
    expected.extend_from_slice(b"EI7IG-1\0\0\0W1AW-15\0\0\0");
    expected.extend_from_slice(&[0; 8]);
    assert_eq!(call.to_bytes(), expected);
    assert_eq!(Frame::decode(&mut expected.into()), Ok(call));
}

#[test]
fn data_have_their_length_low_octet_first() {
    let data = Frame::new(Kind::Data).between(name("A1A"), name("B1B")).with(vec![7; 300]);
    let bytes = data.to_bytes();
    assert_eq!(bytes[28..36], [44, 1, 0, 0, 0, 0, 0, 0]);
    for length in 0..bytes.len() {
        assert_eq!(Frame::decode(&mut bytes.slice(..length)), Err(DecodeError::Incomplete), "{length}");
    }
    let mut two = Bytes::from([&bytes[..], &bytes[..]].concat());
    assert_eq!(Frame::decode(&mut two), Ok(data.clone()));
    assert_eq!(Frame::decode(&mut two), Ok(data));
    assert!(two.is_empty());
}

/// Octets after the zero of a name are not part of it, and a length of four gigabytes is refused.
#[test]
fn what_servers_leave_in_headers_is_no_matter() {
    let mut bytes = Frame::new(Kind::Data).between(name("A1A"), name("B1B")).to_bytes().to_vec();
    bytes[12..18].copy_from_slice(b"xyz\xff\x80\x01");
    bytes[1] = 9;
    assert_eq!(Frame::decode(&mut bytes.clone().into()).unwrap().from, name("A1A"));
    bytes[31] = 0xff;
    assert_eq!(Frame::decode(&mut bytes.into()), Err(DecodeError::Limit { what: "AGWPE data" }));
}

#[test]
fn replies_are_read() {
    assert_eq!(Registered::decode(&mut Bytes::from_static(&[1])), Ok(Registered(true)));
    let ports = Ports::decode(&mut Bytes::from_static(b"2;Port1 9600 baud;Port3 HF;\0"));
    assert_eq!(ports, Ok(Ports([0, 2].into())));
    assert_eq!(Queued::decode(&mut Bytes::from_static(&[4, 0, 0, 0])), Ok(Queued(4)));
}

#[test]
fn digipeaters_are_counted() {
    let bytes = Bytes::from_static(b"\x02WIDE1-1\0\0\0WIDE2-2\0\0\0");
    assert_eq!(Via::decode(&mut bytes.clone()), Ok(Via(vec![name("WIDE1-1"), name("WIDE2-2")])));
    assert!(Via::decode(&mut Bytes::from_static(&[0])).is_err());
    assert!(Via::decode(&mut Bytes::from_static(&[9])).is_err());
}
