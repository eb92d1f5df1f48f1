//! Endpoints and packets of the tests: pairs, and one side of a transfer whose other side the test plays.

use super::SECOND;
use super::pair::{Line, Pair, perfect};
use crate::saratoga::Config;
use crate::saratoga::wire::{Checksum, Data, Entry, Kind, Metadata, Outcome, Packet, Status, Width};
use crate::service::{FileFailure, FileId, FilesIndication, PartialFile};
use crate::time::Duration;

/// One-way delay 1 s, margin 500 ms: an answer is late after 3 s. No rate, packets of 1,000 bytes of a file.
pub(super) fn config() -> Config {
    Config { rate_bps: 0, packet_bytes: 1_012, file_bytes_max: 1 << 30, ..Config::default() }
}

pub(super) fn pair(config: &Config) -> Pair {
    let mut pair = Pair::new([config.clone(), config.clone()], perfect(SECOND), 1);
    pair.log = Some(Vec::new());
    pair
}

pub(super) fn done(file: FileId) -> FilesIndication {
    FilesIndication::Done { file }
}

pub(super) fn failed(file: FileId, reason: FileFailure) -> FilesIndication {
    FilesIndication::Failed { file, reason, partial: None }
}

/// Loses the packets of node 0 with bytes at these offsets, each as often as it is listed.
pub(super) fn lose(pair: &mut Pair, offsets: &[u128]) {
    let mut left = offsets.to_vec();
    pair.loses = Box::new(move |node, packet| match packet {
        Packet::Data(data) if node == 0 && !data.payload.is_empty() => {
            let found = left.iter().position(|offset| *offset == data.offset);
            found.map(|index| left.remove(index)).is_some()
        }
        _ => false,
    });
}

/// Describes the packets of a log in a few words each.
pub(super) fn dialogue(pair: &Pair) -> Vec<String> {
    let line = |(at, node, packet): &(crate::time::Instant, usize, Packet)| {
        let what = match packet {
            Packet::Beacon(beacon) => format!("BEACON {}", beacon.eid),
            Packet::Request(request) => format!("REQUEST {:?} {}", request.kind, request.path),
            Packet::Metadata(metadata) => {
                let ended = if metadata.ended { ", ended" } else { "" };
                format!("METADATA {} {}{ended}", metadata.entry.path, metadata.entry.size)
            }
            Packet::Data(data) => {
                let end = if data.is_end { ", end" } else { "" };
                let asks = match (data.wants_status, data.stamp) {
                    (true, Some(_)) => ", asks",
                    (true, None) => ", asks without a stamp",
                    (false, _) => "",
                };
                format!("DATA {} + {}{end}{asks}", data.offset, data.payload.len())
            }
            Packet::Status(status) if status.outcome != Outcome::Success => {
                format!("STATUS {:?}", status.outcome)
            }
            Packet::Status(status) => {
                let flag = |is_set, word| if is_set { word } else { "" };
                format!(
                    "STATUS {} of {}{}{}{}{}",
                    status.progress,
                    status.in_response_to,
                    if status.holes.is_empty() {
                        String::new()
                    } else {
                        format!(", holes {:?}", status.holes)
                    },
                    flag(status.incomplete, ", incomplete"),
                    flag(status.lacks_metadata, ", no METADATA"),
                    flag(status.voluntary, ", voluntary"),
                )
            }
        };
        let arrow = if *node == 0 { "->" } else { "  <-" };
        format!("{:.2} {arrow} {what}", at.saturating_since(crate::time::Instant::ZERO).as_secs_f64())
    };
    pair.log.iter().flatten().map(line).collect()
}

/// A node that sends a file to a peer that the test plays.
pub(super) fn sending(config: &Config, length: u64) -> Pair {
    let mut pair = pair(config);
    pair.loses = Box::new(|_, _| true);
    let file = pair.file("a", length);
    pair.put(0, 0, file, false);
    pair.run(Duration::ZERO);
    pair
}

/// STATUS of the file that [`sending`] sends.
pub(super) fn status(pair: &Pair, progress: u128, in_response_to: u128, holes: &[(u128, u128)]) -> Status {
    let session = *pair.sessions(0).first().expect("METADATA was sent");
    Status {
        width: Width::Bits32,
        progress,
        in_response_to,
        holes: holes.to_vec(),
        ..Status::with_outcome(session, Outcome::Success)
    }
}

/// Stamp of the last packet that has one.
pub(super) fn last_stamp(pair: &Pair) -> [u8; 16] {
    let stamps = pair.log.iter().flatten().filter_map(|(_, _, packet)| match packet {
        Packet::Data(data) => data.stamp,
        _ => None,
    });
    stamps.last().expect("a packet has requested a STATUS")
}

/// A node that receives a file of 100 kB from a peer that the test plays.
pub(super) fn receiving(config: &Config) -> Pair {
    let mut pair = pair(config);
    pair.loses = Box::new(|_, _| true);
    pair.hear(1, metadata(100_000));
    pair
}

pub(super) fn metadata(size: u128) -> Metadata {
    Metadata {
        session: 9,
        width: Width::Bits32,
        kind: Kind::File,
        ended: false,
        udp_lite: false,
        checksum: Checksum::None,
        entry: Entry::file("a".to_owned(), size, 1, 2),
    }
}

/// DATA of that file. The user of the pair checks the contents, which here are too short for that to fail.
pub(super) fn data(pair: &Pair, offset: u64, length: usize) -> Data {
    Data {
        session: 9,
        width: Width::Bits32,
        kind: Kind::File,
        stamp: None,
        wants_status: false,
        is_end: false,
        offset: offset.into(),
        payload: pair.content(offset, length),
    }
}

pub(super) fn paced() -> Config {
    Config { rate_bps: 80_000, overhead_bytes: 32, burst: Duration::ZERO, ..config() }
}

pub(super) fn paced_pair() -> Pair {
    let lines = [Line { rate_bps: 80_000, delay: SECOND, bit_error_rate: 0.0 }; 2];
    let mut pair = Pair::new([paced(), paced()], lines, 1);
    pair.log = Some(Vec::new());
    pair
}

/// Runs a get until both sides have given up after 10 s, and returns what the receiver has.
pub(super) fn broken_get(pair: &mut Pair) -> PartialFile {
    let file = pair.file("a", 200_000);
    pair.shelf[0].insert("a".to_owned(), file);
    lose(pair, &[10_020]);
    pair.get(1, 0, "a", None);
    pair.run(10 * SECOND);
    pair.is_cut = true;
    pair.run(10_000 * SECOND);
    let [
        FilesIndication::Failed { file: FileId::Own(0), reason: FileFailure::Silent, partial: Some(partial) },
    ] = &pair.ends(1)[..]
    else {
        panic!("{:?}", pair.ended)
    };
    partial.clone()
}

/// Content of which the first bytes are stored.
pub(super) fn partial_of(up_to: u64) -> PartialFile {
    PartialFile { properties: crate::service::FileProperties::default(), up_to, missing: vec![], sum: 0 }
}
