//! Frames of a run as text, one per line: time, node, direction, peer, content.
//!
//! ```text
//!    0.000000  TX > MX  41000 > 4556 SYN 0, window 65535
//!    2.003472  MX < TX  41000 > 4556 SYN 0, window 65535
//! ```
//!
//! `>` means sent, `<` received, `x` lost. Sequence numbers count from the start of each connection.

use super::{CapturedFrame, FrameFate, Moment, is_packet, moments, tcp, words};
use bytes::Bytes;
use longwire_proto::ax25::{Control, Frame, Modulo, Unnumbered};
use longwire_proto::tcp::wire::{Flags, Segment};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// Writes a timeline.
///
/// # Errors
/// Returns errors of the writer.
pub fn write(mut out: impl Write, frames: &[CapturedFrame]) -> io::Result<()> {
    let width = frames.iter().flat_map(|f| [f.from.node.chars().count(), f.to.node.chars().count()]).max();
    let mut words = Wording { width: width.unwrap_or(0), first: BTreeMap::new() };
    for (at, moment, frame) in moments(frames) {
        writeln!(out, "{at:>14}  {}", words.line(moment, frame))?;
    }
    Ok(())
}

/// Both ends of a connection, that of the sender first.
type Ends = (Ipv4Addr, u16, Ipv4Addr, u16);

struct Wording {
    width: usize,
    /// First sequence number of each side of each connection.
    first: BTreeMap<Ends, u32>,
}

impl Wording {
    fn line(&mut self, moment: Moment, frame: &CapturedFrame) -> String {
        let what = self.what(&frame.bytes);
        let far = matches!(
            frame.fate,
            FrameFate::CheckFailed | FrameFate::Unheard | FrameFate::Collided | FrameFate::Deaf
        );
        let (from, to) = (&frame.from.node, &frame.to.node);
        match moment {
            Moment::Sent => self.between(from, '>', to, &what),
            Moment::Heard if frame.damaged.is_some() => {
                self.between(to, '<', from, &format!("{what} (damaged)"))
            }
            Moment::Heard => self.between(to, '<', from, &what),
            Moment::Ended => {
                let (node, peer) = if far { (to, from) } else { (from, to) };
                self.between(node, 'x', peer, &format!("{}: {what}", words(frame.fate)))
            }
        }
    }

    fn between(&self, node: &str, direction: char, peer: &str, what: &str) -> String {
        let width = self.width;
        format!("{node:>width$} {direction} {peer:<width$}  {what}")
    }

    fn what(&mut self, bytes: &Bytes) -> String {
        match tcp(bytes) {
            Some((ip, segment)) => self.segment(ip.source, ip.destination, &segment),
            None => match Frame::decode(&mut bytes.clone(), Modulo::Eight) {
                Ok(frame) if !is_packet(bytes) => frame_in_words(&frame),
                _ => format!("{} bytes", bytes.len()),
            },
        }
    }

    fn segment(&mut self, source: Ipv4Addr, destination: Ipv4Addr, segment: &Segment) -> String {
        let ours = (source, segment.source_port, destination, segment.destination_port);
        let theirs = (destination, segment.destination_port, source, segment.source_port);
        let syn = segment.flags.contains(Flags::SYN);
        let first = self.first.entry(ours).or_insert(segment.sequence);
        if syn {
            *first = segment.sequence;
        }
        let start = segment.sequence.wrapping_sub(*first);
        let mut out = format!("{} > {}", segment.source_port, segment.destination_port);
        for (flag, name) in [(Flags::SYN, "SYN"), (Flags::FIN, "FIN"), (Flags::RST, "RST")] {
            if segment.flags.contains(flag) {
                let _ = write!(out, " {name}");
            }
        }
        let end = start.wrapping_add(segment.payload.len() as u32);
        let _ =
            if segment.payload.is_empty() { write!(out, " {start}") } else { write!(out, " {start}..{end}") };
        if segment.flags.contains(Flags::ACK) {
            let heard = self.first.get(&theirs).copied().unwrap_or(segment.acknowledgement);
            let _ = write!(out, ", ack {}", segment.acknowledgement.wrapping_sub(heard));
            for (start, end) in segment.options.sack.as_slice() {
                let _ = write!(out, ", has {}..{}", start.wrapping_sub(heard), end.wrapping_sub(heard));
            }
        }
        let _ = write!(out, ", window {}", segment.window);
        out
    }
}

/// Describes a frame. Sequence numbers are decoded as modulo 8.
fn frame_in_words(frame: &Frame) -> String {
    let what = match frame.control {
        Control::Information { send, receive, .. } => format!("I N(S)={send} N(R)={receive}"),
        Control::Supervisory { receive, .. } => format!("{} N(R)={receive}", frame.control.name()),
        Control::Unnumbered { function: Unnumbered::Unknown(octet), .. } => format!("U {octet:02X}"),
        Control::Unnumbered { .. } => frame.control.name().to_owned(),
    };
    let poll = match (frame.control.poll_final(), frame.is_command()) {
        (false, _) => "",
        (true, true) => ", poll",
        (true, false) => ", final",
    };
    format!("{what}{poll}, {} bytes", frame.information.len())
}
