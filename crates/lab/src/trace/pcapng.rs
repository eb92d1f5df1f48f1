//! Packet captures in virtual time, for Wireshark.
//!
//! A capture contains the view of one node: its interfaces, and each frame where it left or arrived. No frame is there
//! twice, because TCP analysis would treat it as a retransmission. A frame that left and did not arrive has a comment; a
//! damaged frame has the bytes that arrived. Time stamps are nanoseconds of the run; the link type is raw IP, or AX.25
//! without flags and check sequence.
//!
//! The format is that of draft-ietf-opsawg-pcapng: a section header (4.1), a description of each interface (4.2)
//! and an enhanced packet block (4.3) for every observation of a frame, all little-endian.

use super::{CapturedFrame, Moment, NodeInterface, is_packet, moments, words};
use std::collections::BTreeSet;
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Link type for packets that start with their IP header.
const LINKTYPE_RAW: u16 = 101;
/// Link type for packets that start with their AX.25 addresses.
const LINKTYPE_AX25: u16 = 3;
/// Options of any block (3.5), of an interface (4.2) and of a packet (4.3).
const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const TIMESTAMP_RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;
/// Time resolution as a negative power of ten of a second.
const NANOSECONDS: u8 = 9;
/// Direction of a frame: inbound or outbound.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Writes the capture of one node.
///
/// # Errors
/// Returns errors of the writer.
pub fn write(mut out: impl Write, frames: &[CapturedFrame], node: &str) -> io::Result<()> {
    let ends = frames.iter().flat_map(|frame| [&frame.from, &frame.to]);
    let ports: BTreeSet<&NodeInterface> = ends.filter(|port| port.node == node).collect();
    let ports: Vec<&NodeInterface> = ports.into_iter().collect();
    PcapBlock::new(SECTION_HEADER)
        .bytes(&BYTE_ORDER_MAGIC.to_le_bytes())
        .bytes(&[1, 0, 0, 0])
        .bytes(&u64::MAX.to_le_bytes())
        .option(USER_APPLICATION, b"longwire")
        .write(&mut out)?;
    for port in &ports {
        PcapBlock::new(INTERFACE_DESCRIPTION)
            .bytes(&link_type(port, frames).to_le_bytes())
            .bytes(&[0; 6])
            .option(INTERFACE_NAME, format!("{}/{}", port.node, port.interface).as_bytes())
            .option(TIMESTAMP_RESOLUTION, &[NANOSECONDS])
            .write(&mut out)?;
    }
    for (at, moment, frame) in moments(frames) {
        let (port, direction, bytes, is_notable) = match moment {
            Moment::Sent => (&frame.from, OUTBOUND, &frame.bytes, !frame.is_heard()),
            Moment::Heard => {
                let bytes = frame.damaged.as_ref().unwrap_or(&frame.bytes);
                (&frame.to, INBOUND, bytes, frame.damaged.is_some())
            }
            Moment::Ended => continue,
        };
        let Ok(interface) = ports.binary_search(&port) else { continue };
        let (nanos, length) = (at.as_nanos(), (bytes.len() as u32).to_le_bytes());
        let mut block = PcapBlock::new(ENHANCED_PACKET)
            .bytes(&(interface as u32).to_le_bytes())
            .bytes(&((nanos >> 32) as u32).to_le_bytes())
            .bytes(&(nanos as u32).to_le_bytes())
            .bytes(&length)
            .bytes(&length)
            .padded(bytes)
            .option(FLAGS, &direction.to_le_bytes());
        if is_notable {
            block = block.option(COMMENT, words(frame.fate).as_bytes());
        }
        block.write(&mut out)?;
    }
    Ok(())
}

fn link_type(port: &NodeInterface, frames: &[CapturedFrame]) -> u16 {
    let of_port = |frame: &&CapturedFrame| frame.from == *port || frame.to == *port;
    match frames.iter().find(of_port) {
        Some(frame) if !is_packet(&frame.bytes) => LINKTYPE_AX25,
        _ => LINKTYPE_RAW,
    }
}

/// Block in construction: type and body (3.1).
struct PcapBlock {
    kind: u32,
    body: Vec<u8>,
    options: bool,
}

impl PcapBlock {
    fn new(kind: u32) -> PcapBlock {
        PcapBlock { kind, body: Vec::new(), options: false }
    }

    fn bytes(mut self, bytes: &[u8]) -> PcapBlock {
        self.body.extend_from_slice(bytes);
        self
    }

    fn padded(self, bytes: &[u8]) -> PcapBlock {
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.bytes(bytes).bytes(&[0; 3][..padding])
    }

    fn option(mut self, code: u16, value: &[u8]) -> PcapBlock {
        self.options = true;
        self.bytes(&code.to_le_bytes()).bytes(&(value.len() as u16).to_le_bytes()).padded(value)
    }

    fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        if self.options {
            self = self.bytes(&[0; 4]);
        }
        let length = (self.body.len() as u32 + 12).to_le_bytes();
        out.write_all(&self.kind.to_le_bytes())?;
        out.write_all(&length)?;
        out.write_all(&self.body)?;
        out.write_all(&length)
    }
}
