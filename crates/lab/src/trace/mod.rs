//! What went over the channels of one run, for eyes and tools: packet captures, time-sequence graphs, goodput,
//! timelines.

pub mod conversation;
pub mod pcapng;
pub mod timeline;

use crate::output::{self, file};
use crate::record::Experiment;
use crate::report::{Report, Section};
use bytes::Bytes;
use longwire_proto::ax25::{Frame, Modulo, pid};
use longwire_proto::tcp::wire::{Ipv4Header, Segment};
use longwire_proto::time::Instant;
pub use longwire_sim::FrameFate;
use longwire_sim::{ChannelEnd, FrameRecord};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// One frame on its way from one node's interface to another's.
#[derive(Clone, Debug)]
pub struct CapturedFrame {
    /// When its first bit left; none if none did.
    pub sent: Option<Instant>,
    /// When its last bit came, if it did; damaged frames come, too.
    pub received: Option<Instant>,
    /// When its fate was known: for a frame that never left or never came, the moment of that.
    pub ended: Instant,
    /// Who sent it.
    pub from: NodeInterface,
    /// Whom it was meant for.
    pub to: NodeInterface,
    /// Its bytes as they were sent.
    pub bytes: Bytes,
    /// Its bytes as they came, where the channel changed them.
    pub damaged: Option<Bytes>,
    /// What became of it.
    pub fate: FrameFate,
}

/// A node's interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeInterface {
    /// The node's name.
    pub node: String,
    /// The interface's number.
    pub interface: u16,
}

impl CapturedFrame {
    /// A frame of a simulation whose nodes have these names.
    pub fn of(frame: FrameRecord, names: &[String]) -> CapturedFrame {
        let port = |end: ChannelEnd| NodeInterface {
            node: names.get(end.node.0 as usize).cloned().unwrap_or_else(|| format!("node {}", end.node.0)),
            interface: end.interface.0,
        };
        CapturedFrame {
            sent: frame.started,
            received: frame.received,
            ended: frame.received.or(frame.left).or(frame.started).unwrap_or(frame.handed),
            from: port(frame.from),
            to: port(frame.to),
            bytes: frame.bytes,
            damaged: frame.damaged,
            fate: frame.fate,
        }
    }

    /// True if its bytes, right or wrong, went up at the receiver.
    pub fn is_heard(&self) -> bool {
        matches!(self.fate, FrameFate::Delivered | FrameFate::Damaged)
    }
}

/// What became of a frame, in words.
fn words(fate: FrameFate) -> &'static str {
    match fate {
        FrameFate::Delivered => "delivered",
        FrameFate::Damaged => "damaged",
        FrameFate::CheckFailed => "dropped: the line's check found wrong bits",
        FrameFate::Outage => "lost: an outage",
        FrameFate::QueueFull => "dropped: the queue was full",
        FrameFate::TooLong => "dropped: too long for the line",
        FrameFate::SenderCrashed => "lost: the sender crashed",
        FrameFate::Unheard => "lost: nobody listened",
        FrameFate::Collided => "lost: another's signal",
        FrameFate::Deaf => "lost: the receiver was transmitting",
    }
}

/// Writes the capture of each node (`capture-NODE.pcapng`), `timeline.txt` and `traces.html` into a directory, which is made
/// if need be.
///
/// # Errors
/// Those of the files, with the name of the one at fault.
pub fn write(directory: &Path, title: &str, frames: &[CapturedFrame]) -> io::Result<Vec<PathBuf>> {
    output::make(directory)?;
    let mut written = Vec::new();
    for node in nodes(frames) {
        written.push(file(directory, &capture_name(node), |out| pcapng::write(out, frames, node))?);
    }
    written.push(file(directory, "timeline.txt", |out| timeline::write(out, frames))?);
    written.push(file(directory, "traces.html", |out| out.write_all(page(title, frames).as_bytes()))?);
    Ok(written)
}

/// The nodes that sent or were sent to, in order of their names.
pub fn nodes(frames: &[CapturedFrame]) -> BTreeSet<&str> {
    frames.iter().flat_map(|frame| [frame.from.node.as_str(), frame.to.node.as_str()]).collect()
}

fn capture_name(node: &str) -> String {
    // Names of nodes have these letters, `-` and `_`: each has a file of its own.
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    format!("capture-{}.pcapng", node.chars().map(plain).collect::<String>())
}

/// A page with the graphs of every conversation.
fn page(title: &str, frames: &[CapturedFrame]) -> String {
    let conversations = conversation::conversations(frames);
    let sections = conversations.iter().map(|conversation| {
        Section::new(conversation.name())
            .with(conversation.facts())
            .with(conversation.time_sequence())
            .with(conversation.goodput())
    });
    let captures: Vec<String> =
        nodes(frames).into_iter().map(|node| format!("`{}`", capture_name(node))).collect();
    let report = Report {
        title: title.to_owned(),
        lead: format!(
            "What every TCP connection of one run did. For Wireshark there is what each node saw of the same frames: {}; \
             `timeline.txt` tells them in words.",
            captures.join(", ")
        ),
        facts: vec![("frames".to_owned(), frames.len().to_string())],
        sections: sections.collect(),
        ..Report::default()
    };
    let experiment = Experiment { experiment: "traces".to_owned(), ..Experiment::default() };
    report.html(&experiment)
}

/// True for an IP packet, false for an AX.25 frame: its first letter is shifted by a bit and never looks like version 4.
fn is_packet(frame: &[u8]) -> bool {
    frame.first().is_none_or(|first| first >> 4 == 4)
}

/// The IP packet that a frame is, or that an AX.25 frame carries.
fn packet(frame: &Bytes) -> Option<Bytes> {
    if is_packet(frame) {
        return Some(frame.clone());
    }
    let frame = Frame::decode(&mut frame.clone(), Modulo::Eight).ok()?;
    (frame.pid == pid::INTERNET).then_some(frame.information)
}

/// The TCP segment in a frame, if it holds one with right checksums.
fn tcp(frame: &Bytes) -> Option<(Ipv4Header, Segment)> {
    const TCP: u8 = 6;
    let mut rest = packet(frame)?;
    let header = Ipv4Header::decode(&mut rest).ok()?;
    if header.protocol != TCP || header.more_fragments || header.fragment_offset != 0 {
        return None;
    }
    let mut payload = rest.slice(..usize::from(header.payload_bytes));
    let segment = Segment::decode(&mut payload, header.source, header.destination).ok()?;
    Some((header, segment))
}

#[cfg(test)]
mod tests;
