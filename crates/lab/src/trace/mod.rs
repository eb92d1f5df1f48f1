//! Traffic of one run, for inspection and tools: packet captures, time-sequence graphs, goodput, timelines.

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

/// Frame from one node's interface to another's.
#[derive(Clone, Debug)]
pub struct CapturedFrame {
    /// Time at which its first bit left; `None` if it did not leave.
    pub sent: Option<Instant>,
    /// Time at which its last bit arrived, also for damaged frames; `None` if it did not arrive.
    pub received: Option<Instant>,
    /// Time at which its fate was known; for a frame that did not leave or arrive, the time of that event.
    pub ended: Instant,
    /// Sending interface.
    pub from: NodeInterface,
    /// Receiving interface.
    pub to: NodeInterface,
    /// Bytes as sent.
    pub bytes: Bytes,
    /// Bytes as received if the channel changed them; `None` otherwise.
    pub damaged: Option<Bytes>,
    /// Fate of the frame.
    pub fate: FrameFate,
}

/// Interface of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeInterface {
    /// Name of the node.
    pub node: String,
    /// Number of the interface.
    pub interface: u16,
}

impl CapturedFrame {
    /// Converts a frame of a simulation whose nodes have these names.
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

    /// Returns true if its bytes, correct or damaged, were passed up at the receiver.
    pub fn is_heard(&self) -> bool {
        matches!(self.fate, FrameFate::Delivered | FrameFate::Damaged)
    }
}

/// Kind of a moment in the life of a frame.
#[derive(Clone, Copy)]
enum Moment {
    /// Its first bit left.
    Sent,
    /// Its bytes, correct or damaged, were passed up at the receiver.
    Heard,
    /// It was lost.
    Ended,
}

/// Returns the moments of all frames, ordered by time and, at equal times, as the frames are.
fn moments(frames: &[CapturedFrame]) -> Vec<(Instant, Moment, &CapturedFrame)> {
    let mut moments = Vec::with_capacity(2 * frames.len());
    for frame in frames {
        moments.extend(frame.sent.map(|at| (at, Moment::Sent, frame)));
        moments.push(match frame.received.filter(|_| frame.is_heard()) {
            Some(at) => (at, Moment::Heard, frame),
            None => (frame.ended, Moment::Ended, frame),
        });
    }
    moments.sort_by_key(|(at, ..)| *at);
    moments
}

fn words(fate: FrameFate) -> &'static str {
    match fate {
        FrameFate::Delivered => "delivered",
        FrameFate::Damaged => "damaged",
        FrameFate::CheckFailed => "dropped: frame check failed",
        FrameFate::Outage => "lost: outage",
        FrameFate::QueueFull => "dropped: queue full",
        FrameFate::TooLong => "dropped: longer than the MTU",
        FrameFate::SenderCrashed => "lost: sender crashed",
        FrameFate::Unheard => "lost: no receiver",
        FrameFate::Collided => "lost: collision",
        FrameFate::Deaf => "lost: receiver was transmitting",
    }
}

/// Writes the capture of each node (`capture-NODE.pcapng`), `timeline.txt` and `traces.html` to a directory, which is
/// created if necessary.
///
/// # Errors
/// Returns errors of the files, with the name of the file.
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

/// Nodes that sent frames or were their destination, in order of their names.
pub fn nodes(frames: &[CapturedFrame]) -> BTreeSet<&str> {
    frames.iter().flat_map(|frame| [frame.from.node.as_str(), frame.to.node.as_str()]).collect()
}

fn capture_name(node: &str) -> String {
    // Node names consist of these characters, `-` and `_`, so that each has its own file.
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    format!("capture-{}.pcapng", node.chars().map(plain).collect::<String>())
}

/// Page with the graphs of every conversation.
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
        answer: Vec::new(),
        title: title.to_owned(),
        lead: format!(
            "All TCP connections of one run. Packet captures of each node for Wireshark: {}; `timeline.txt` lists \
             the frames as text.",
            captures.join(", ")
        ),
        facts: vec![("frames".to_owned(), frames.len().to_string())],
        sections: sections.collect(),
        ..Report::default()
    };
    let experiment = Experiment { experiment: "traces".to_owned(), ..Experiment::default() };
    report.html(&experiment)
}

/// Returns true for an IP packet, false for an AX.25 frame, whose first octet is shifted by a bit and never looks like
/// version 4.
fn is_packet(frame: &[u8]) -> bool {
    frame.first().is_none_or(|first| first >> 4 == 4)
}

/// Returns the IP packet in a frame, directly or inside an AX.25 frame.
fn packet(frame: &Bytes) -> Option<Bytes> {
    if is_packet(frame) {
        return Some(frame.clone());
    }
    let frame = Frame::decode(&mut frame.clone(), Modulo::Eight).ok()?;
    (frame.pid == pid::INTERNET).then_some(frame.information)
}

/// Returns the TCP segment in a frame, if it contains one with correct checksums.
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
