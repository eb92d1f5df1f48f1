//! Observations of a run: the time at which each part of the data was first sent and the time at which it arrived, and
//! the bytes on the air link.

use super::ends::{WORD_BYTES, data, place};
use crate::stats::mean;
use longwire_proto::service::Shares;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{Direction, FrameFate, FrameRecord};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Length of an IPv4 header and place of the protocol in it.
const IPV4_HEADER_BYTES: usize = 20;
const PROTOCOL_AT: usize = 9;
/// Places of the sequence numbers of TCP and, after the header of UDP, of AeroTP.
const NUMBERS_AT: [(u8, usize); 2] = [(6, IPV4_HEADER_BYTES + 4), (17, IPV4_HEADER_BYTES + 8 + 8)];

/// Returns the sequence number of a segment of TCP or AeroTP in a packet.
fn sequence_number(packet: &[u8]) -> Option<u32> {
    let protocol = packet.get(PROTOCOL_AT)?;
    let (_, at) = NUMBERS_AT.iter().find(|(number, _)| number == protocol)?;
    packet.get(*at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Observation, shared between the simulation and its reader.
pub(super) type SharedObserved = Arc<Mutex<Observed>>;

/// Bytes on the air link in one direction, by their use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sent {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) payload: u64,
    pub(super) repeated: u64,
    pub(super) repair: u64,
    pub(super) acknowledgement: u64,
    pub(super) control: u64,
}

impl Sent {
    fn add(&mut self, bytes: usize, shares: &Shares) {
        self.frames += 1;
        self.bytes += bytes as u64;
        self.payload += u64::from(shares.payload);
        self.repeated += u64::from(shares.repeated);
        self.repair += u64::from(shares.repair);
        self.acknowledgement += u64::from(shares.acknowledgement);
        self.control += u64::from(shares.control);
    }
}

/// Data sent for the first time by one frame. The order is that in which they were handed to the air link, whose queue drops the
/// last ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FirstSent {
    handed: Instant,
    /// Time at which the first bit left; the far future if the queue dropped the frame.
    started: Instant,
    bytes: u32,
}

impl FirstSent {
    /// Time from which the delay of the data counts.
    fn from(&self) -> Instant {
        if self.started == Instant::FAR_FUTURE { self.handed } else { self.started }
    }
}

/// Time at which the first copy of a segment left, and that at which one first arrived without bit errors.
#[derive(Clone, Copy, Debug)]
struct Segment {
    sent: Instant,
    intact: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Frames with data sent for the first time.
    first_sent: Vec<FirstSent>,
    /// Segments by their sequence number.
    segments: BTreeMap<u32, Segment>,
    /// Times and bytes of what was sent again, with the sequence number of the segment.
    repeats: Vec<(Instant, u32, Option<u32>)>,
    /// Frames with data, and those of them that arrived with bit errors.
    pub(super) data_frames: [u64; 2],
    pub(super) forward: Sent,
    pub(super) backward: Sent,
    /// End of the data that have arrived.
    end: u64,
    pub(super) bytes: u64,
    pub(super) last_at: Instant,
    /// Arrivals: place, length, time.
    pieces: Vec<(u64, u64, Instant)>,
    /// Bytes that were not those sent.
    pub(super) wrong: u64,
}

impl Observed {
    /// Records the arrival of data at the application of the sink.
    pub(super) fn arrive(&mut self, now: Instant, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // Fewer bytes than two words are at the end of the stream, and follow the bytes before.
        let at = place(bytes).unwrap_or(self.end);
        let to = at + bytes.len() as u64;
        let new = to.saturating_sub(self.end.max(at));
        let expected = data(at / WORD_BYTES * WORD_BYTES, to.next_multiple_of(WORD_BYTES));
        let skip = (at % WORD_BYTES) as usize;
        let differs = |(got, sent): (&u8, &u8)| got != sent;
        self.wrong += bytes.iter().zip(&expected[skip..]).filter(|pair| differs(*pair)).count() as u64;
        self.bytes += new;
        self.end = self.end.max(to);
        if new > 0 {
            self.last_at = now;
            self.pieces.push((at, to - at, now));
        }
    }

    /// Records a frame on the air link.
    pub(super) fn sent(&mut self, frame: &FrameRecord) {
        if frame.direction == Direction::Forward && frame.shares.payload > 0 {
            let started = frame.started.unwrap_or(Instant::FAR_FUTURE);
            self.first_sent.push(FirstSent { handed: frame.handed, started, bytes: frame.shares.payload });
        }
        let Some(started) = frame.started else { return };
        match frame.direction {
            Direction::Forward => {
                self.note_segment(frame, started);
                if frame.shares.repeated > 0 {
                    let number = sequence_number(&frame.bytes);
                    self.repeats.push((started, frame.shares.repeated, number));
                }
                self.forward.add(frame.bytes.len(), &frame.shares);
            }
            Direction::Backward => self.backward.add(frame.bytes.len(), &frame.shares),
        }
    }

    /// Records the fate of a segment of TCP or AeroTP, which the trace tells when it arrives.
    fn note_segment(&mut self, frame: &FrameRecord, started: Instant) {
        if frame.shares.payload == 0 && frame.shares.repeated == 0 {
            return;
        }
        let intact = frame.fate == FrameFate::Delivered;
        self.data_frames[0] += 1;
        self.data_frames[1] += u64::from(!intact);
        let Some(number) = sequence_number(&frame.bytes) else { return };
        let segment = self.segments.entry(number).or_insert(Segment { sent: started, intact: None });
        if intact && segment.intact.is_none() {
            segment.intact = frame.received;
        }
    }

    /// Mean time from the first transmission of a segment until a copy arrives without bit errors.
    pub(super) fn intact_delay_s(&self) -> Option<f64> {
        let delay = |segment: &Segment| Some(segment.intact?.saturating_since(segment.sent).as_secs_f64());
        let delays: Vec<f64> = self.segments.values().filter_map(delay).collect();
        (!delays.is_empty()).then(|| mean(&delays))
    }

    /// Bytes that have arrived until this time.
    pub(super) fn bytes_until(&self, until: Instant) -> u64 {
        self.pieces.iter().filter(|(_, _, at)| *at <= until).map(|(_, length, _)| length).sum()
    }

    /// Bytes sent again after this time; and those of them in segments that had arrived without bit errors so long
    /// before that their acknowledgement had arrived as well.
    pub(super) fn repeated_after(&self, after: Instant, answer: Duration) -> [u64; 2] {
        let has_arrived = |number: &Option<u32>| {
            let segment = number.and_then(|number| self.segments.get(&number));
            segment.and_then(|segment| segment.intact).is_some_and(|at| at + answer <= after)
        };
        let later = || self.repeats.iter().filter(|(at, ..)| *at > after);
        let of_arrived = later().filter(|(.., number)| has_arrived(number));
        [
            later().map(|(_, bytes, _)| u64::from(*bytes)).sum(),
            of_arrived.map(|(_, bytes, _)| u64::from(*bytes)).sum(),
        ]
    }

    /// Mean time from the first transmission of a packet until it arrives at the application, for packets of this length.
    pub(super) fn mean_delay(&self, packet_bytes: u64) -> Option<Duration> {
        let mut frames = self.first_sent.clone();
        frames.sort_unstable();
        let mut end = 0;
        let ends: Vec<u64> = frames
            .iter()
            .map(|frame| {
                end += u64::from(frame.bytes);
                end
            })
            .collect();
        let mut delays = Vec::new();
        for &(at, length, time) in &self.pieces {
            // A packet has arrived with its last byte.
            let (from, to) = (at.div_ceil(packet_bytes).max(1), (at + length) / packet_bytes);
            for packet in from..=to {
                let index = ends.partition_point(|end| *end < packet * packet_bytes);
                delays.push(time.saturating_since(frames.get(index)?.from()).as_secs_f64());
            }
        }
        (!delays.is_empty()).then(|| Duration::from_secs_f64(mean(&delays)))
    }
}
