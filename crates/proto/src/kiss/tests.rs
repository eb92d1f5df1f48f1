//! Octets of the specifications, and a simulated TNC.

mod counts;
mod share;
mod tnc;

use super::*;
use crate::codec::{DecodeError, crc};
use bytes::{BufMut, Bytes, BytesMut};

fn on_the_line(frame: &Frame, checksum: Checksum) -> Vec<u8> {
    let mut line = BytesMut::new();
    enclose(frame, checksum, &mut line);
    line.to_vec()
}

fn contents(line: &[u8]) -> Vec<Vec<u8>> {
    let (mut deframer, mut input) = (Deframer::new(), Bytes::copy_from_slice(line));
    core::iter::from_fn(|| deframer.next(&mut input)).map(|content| content.to_vec()).collect()
}

/// KISS 3: the two escapes.
#[test]
fn fend_and_fesc_are_escaped() {
    let frame = Frame::data(0, Bytes::from_static(&[0xc0, 0xdb, 0xdc, 0xdd, 1]));
    let line = [0xc0, 0, 0xdb, 0xdc, 0xdb, 0xdd, 0xdc, 0xdd, 1, 0xc0];
    assert_eq!(on_the_line(&frame, Checksum::None), line);
    assert_eq!(contents(&line), [[0, 0xc0, 0xdb, 0xdc, 0xdd, 1]]);
}

/// Data for port 12 have a FEND as their type octet.
#[test]
fn the_type_octet_is_escaped() {
    let frame = Frame::data(12, Bytes::from_static(b"x"));
    assert_eq!(on_the_line(&frame, Checksum::None), [0xc0, 0xdb, 0xdc, b'x', 0xc0]);
    assert_eq!(Frame::decode(&mut contents(&[0xc0, 0xdb, 0xdc, b'x', 0xc0]).remove(0).into()), Ok(frame));
}

/// KISS 2, 3: consecutive FENDs are no frames; an invalid escape is ignored; noise ends at the next FEND.
#[test]
fn noise_spoils_one_frame_at_most() {
    assert_eq!(
        contents(&[7, 0xc0, 0xc0, 0xc0, 0, 1, 0xc0, 0xc0, 0, 2, 0xc0]),
        [vec![7], vec![0, 1], vec![0, 2]]
    );
    assert_eq!(contents(&[0xc0, 0, 1, 0xdb, 9, 2, 0xc0]), [[0, 1, 2]]);
    assert_eq!(contents(&[0xc0, 0, 1, 0xdb, 0xc0, 0xdc, 2, 0xc0]), [[0, 1], [0xdc, 2]]);
}

#[test]
fn a_content_without_end_is_dropped_up_to_the_next() {
    let mut deframer = Deframer::new();
    assert_eq!(deframer.dropped(), 0);
    let mut line = vec![5; FRAME_BYTES_MAX + 10];
    line.extend_from_slice(&[0xc0, 0, 1, 0xc0]);
    // One octet at a time, as on slow lines.
    let found = line.iter().filter_map(|octet| deframer.next(&mut Bytes::copy_from_slice(&[*octet])));
    assert_eq!(found.collect::<Vec<_>>(), [&[0, 1][..]]);
    assert_eq!(deframer.dropped(), 1);
}

/// KISS 4, and the addresses of Multi-Drop: the high four bits.
#[test]
fn commands_are_those_of_the_tables() {
    let line = |port, body| on_the_line(&Frame { port, body }, Checksum::None);
    assert_eq!(line(0, Command::TxDelay(50)), [0xc0, 0x01, 50, 0xc0]);
    assert_eq!(line(1, Command::Persistence(63)), [0xc0, 0x12, 63, 0xc0]);
    assert_eq!(line(0, Command::SlotTime(10)), [0xc0, 0x03, 10, 0xc0]);
    assert_eq!(line(0, Command::TxTail(2)), [0xc0, 0x04, 2, 0xc0]);
    assert_eq!(line(0, Command::FullDuplex(1)), [0xc0, 0x05, 1, 0xc0]);
    assert_eq!(line(0, Command::SetHardware(Bytes::from_static(b"TXBUF:")))[..3], [0xc0, 0x06, b'T']);
    assert_eq!(line(0, Command::Return), [0xc0, 0xff, 0xc0]);
    assert_eq!(line(3, Command::Poll), [0xc0, 0x3e, 0xc0]);
    assert_eq!(
        line(2, Command::Unknown { command: 9, bytes: Bytes::from_static(b"x") }),
        [0xc0, 0x29, b'x', 0xc0]
    );
}

/// Multi-Drop, Acknowledgment Mode: the specification's own example, for the TNC with address 5.
#[test]
fn acknowledgement_mode_is_as_in_the_example() {
    let sent = Frame {
        port: 5,
        body: Command::DataAcknowledged { token: 0xaabb, bytes: Bytes::from_static(b"data") },
    };
    assert_eq!(on_the_line(&sent, Checksum::None), [0xc0, 0x5c, 0xaa, 0xbb, b'd', b'a', b't', b'a', 0xc0]);
    let back = Frame { port: 5, body: Command::DataAcknowledged { token: 0xaabb, bytes: Bytes::new() } };
    assert_eq!(Frame::decode(&mut Bytes::from_static(&[0x5c, 0xaa, 0xbb])), Ok(back));
    assert_eq!(Frame::decode(&mut Bytes::from_static(&[0x5c, 0xaa])), Err(DecodeError::Incomplete));
}

/// Multi-Drop, Checksum Mode: the sum covers the octets between the FENDs before they are escaped, and is escaped
/// itself.
#[test]
fn the_checksum_is_the_exclusive_or() {
    let frame = Frame::data(0, Bytes::from_static(&[0xc0, 0x01]));
    let line = on_the_line(&frame, Checksum::ExclusiveOr);
    assert_eq!(line, [0xc0, 0, 0xdb, 0xdc, 0x01, 0xc1, 0xc0]);
    let content = Bytes::from(contents(&line).remove(0));
    assert_eq!(Checksum::ExclusiveOr.strip(content.clone()), Ok(Bytes::from_static(&[0, 0xc0, 1])));
    let mut wrong = content.to_vec();
    wrong[1] ^= 4;
    assert_eq!(Checksum::ExclusiveOr.strip(wrong.into()), Err(DecodeError::Checksum { what: "KISS frame" }));
    let fend = on_the_line(&Frame::data(0, Bytes::from_static(&[0xc0])), Checksum::ExclusiveOr);
    assert_eq!(fend, [0xc0, 0, 0xdb, 0xdc, 0xdb, 0xdc, 0xc0]);
}

/// SMACK: data have the CRC and the top bit, commands have neither, and plain data are accepted, too.
#[test]
fn smack_covers_data() {
    let frame = Frame::data(1, Bytes::from_static(b"frame"));
    let content = contents(&on_the_line(&frame, Checksum::Smack)).remove(0);
    let mut expected = BytesMut::from(&b"\x90frame"[..]);
    let crc = crc::crc16_arc(&expected);
    expected.put_u16_le(crc);
    assert_eq!(content, expected);
    let mut plain = Checksum::Smack.strip(content.clone().into()).unwrap();
    assert_eq!(Frame::decode(&mut plain), Ok(frame));
    for bit in 0..8 * content.len() {
        let mut wrong = content.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let read = Checksum::Smack.strip(wrong.into());
        // Without the marking bit there is no CRC; other commands have none.
        assert!(read.is_err() || bit < 8, "bit {bit}: {read:?}");
    }
    let delay = Frame { port: 0, body: Command::TxDelay(30) };
    assert_eq!(on_the_line(&delay, Checksum::Smack), [0xc0, 1, 30, 0xc0]);
    let unmarked = Bytes::from_static(b"\x10frame");
    assert_eq!(Checksum::Smack.strip(unmarked.clone()), Ok(unmarked));
}
