//! One connection of a program, and its two flows.

use super::framing;
use crate::service::{ConnectionProperties, ProgramId, ProgramKind, TransportService};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::VecDeque;

/// First octet of a flow that is a stream.
const STREAM: u8 = 1;
/// First octet of a flow of datagrams.
const DATAGRAMS: u8 = 2;
/// Length of the header of a chunk of a stream: the number of bytes that follow.
const CHUNK_HEADER_BYTES: u64 = 2;
/// Maximum number of bytes of a chunk.
const CHUNK_BYTES_MAX: u64 = 65_535;
/// Maximum number of places of headers of chunks that are remembered.
const HEADERS_MAX: usize = 1024;
/// Maximum length of a datagram.
pub(super) const DATAGRAM_BYTES_MAX: usize = 65_535;
/// Maximum number of datagrams that wait, for each program.
const DATAGRAMS_MAX: usize = 4096;

/// First octet of a flow; `None` where messages are kept.
pub(super) fn format_of(kind: ProgramKind, service: TransportService) -> Option<u8> {
    match kind {
        _ if service.keeps_messages() => None,
        ProgramKind::Stream => Some(STREAM),
        ProgramKind::Datagrams => Some(DATAGRAMS),
    }
}

/// Shape of the data after this first octet.
pub(super) fn kind_of(format: u8) -> Option<ProgramKind> {
    match format {
        STREAM => Some(ProgramKind::Stream),
        DATAGRAMS => Some(ProgramKind::Datagrams),
        _ => None,
    }
}

/// A connection of a program.
#[derive(Debug)]
pub(super) struct Association {
    pub(super) kind: ProgramKind,
    /// Properties of the own flow.
    pub(super) properties: ConnectionProperties,
    /// The connection to the program stands.
    pub(super) is_open: bool,
    /// The connection to the program ended in good order.
    pub(super) is_closed: bool,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Option<Incoming>,
    /// It is on the list of those that may have something to send.
    pub(super) is_ready: bool,
}

impl Association {
    pub(super) fn new(kind: ProgramKind, properties: ConnectionProperties) -> Self {
        Association {
            kind,
            properties,
            is_open: false,
            is_closed: false,
            outgoing: Outgoing::default(),
            incoming: None,
            is_ready: false,
        }
    }

    /// Own port and that of the peer.
    pub(super) fn ports(&self) -> (u16, u16) {
        (self.properties.source_port, self.properties.destination_port)
    }

    /// True if nothing is left to do: the program has closed, and both flows have ended.
    pub(super) fn is_over(&self) -> bool {
        let has_received = self.incoming.as_ref().is_none_or(|incoming| incoming.is_done());
        self.is_closed && self.outgoing.is_done && has_received
    }
}

/// The flow to the peer.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Its number; `None` before it is opened.
    pub(super) connection: Option<u64>,
    /// Bytes that may be passed down.
    pub(super) room: u64,
    /// Bytes or datagrams that wait for room.
    pub(super) queue: VecDeque<Bytes>,
    /// Length of all that wait.
    pub(super) queued: u64,
    /// First octet of the flow, until it is passed down.
    pub(super) format: Option<u8>,
    /// The beginning of the first datagram in the queue was passed down.
    is_cut: bool,
    /// A sign of life is due.
    pub(super) is_quiet: bool,
    /// Octets of the flow that are not the program's.
    marks: Marks,
    /// Bytes passed down.
    pub(super) passed: u64,
    /// Bytes passed down when it was last asked whether there are more.
    passed_before: u64,
    /// Bytes of the program that were released.
    pub(super) released: u64,
    /// The program sends no more.
    pub(super) is_finished: bool,
    /// The end of the flow was passed down.
    pub(super) has_ended: bool,
    /// All of the flow is acknowledged.
    pub(super) is_done: bool,
}

impl Outgoing {
    /// Returns true if nothing was passed down since the last call.
    pub(super) fn is_unchanged(&mut self) -> bool {
        core::mem::replace(&mut self.passed_before, self.passed) == self.passed
    }

    /// Adds bytes to those that wait.
    pub(super) fn push(&mut self, bytes: Bytes) {
        self.queued += bytes.len() as u64;
        self.queue.push_back(bytes);
    }

    /// Returns true if it has something for which there is room.
    pub(super) fn may_send(&self, keeps_messages: bool) -> bool {
        if self.connection.is_none() || self.has_ended {
            return false;
        }
        match self.queue.front() {
            _ if self.format.is_some() => self.room > 0,
            Some(front) if keeps_messages => front.len() as u64 <= self.room,
            Some(_) => self.room > CHUNK_HEADER_BYTES,
            None => self.is_finished || (self.is_quiet && self.room >= CHUNK_HEADER_BYTES),
        }
    }

    /// Takes the next bytes for which there is room: the first octet, or as much as a length permits of a datagram or a chunk of a
    /// stream. Without any, it is a sign of life, or empty at the end.
    pub(super) fn take(&mut self, kind: ProgramKind, bytes_max: u64) -> Bytes {
        let is_quiet = core::mem::take(&mut self.is_quiet);
        let part = match (self.format.take(), kind) {
            (Some(format), _) => {
                self.marks.mark(self.passed, 1);
                Bytes::copy_from_slice(&[format])
            }
            (None, ProgramKind::Datagrams) => match self.queue.pop_front() {
                Some(mut datagram) => {
                    let length = self.room.min(bytes_max).min(datagram.len() as u64);
                    self.queued -= length;
                    let part = datagram.split_to(length as usize);
                    self.is_cut = !datagram.is_empty();
                    if self.is_cut {
                        self.queue.push_front(datagram);
                    }
                    part
                }
                None if self.is_finished || !is_quiet => Bytes::new(),
                None => Bytes::from_static(&[0]),
            },
            (None, ProgramKind::Stream) if self.queue.is_empty() && (self.is_finished || !is_quiet) => {
                Bytes::new()
            }
            (None, ProgramKind::Stream) => {
                self.marks.mark(self.passed, CHUNK_HEADER_BYTES);
                self.chunk(bytes_max)
            }
        };
        self.room -= part.len() as u64;
        self.passed += part.len() as u64;
        part
    }

    /// Makes a chunk of the next bytes, which is empty if there are none.
    fn chunk(&mut self, bytes_max: u64) -> Bytes {
        let length =
            self.queued.min(self.room - CHUNK_HEADER_BYTES).min(bytes_max).min(CHUNK_BYTES_MAX) as usize;
        let mut chunk = BytesMut::with_capacity(length + CHUNK_HEADER_BYTES as usize);
        chunk.put_u16(length as u16);
        let mut left = length;
        while left > 0
            && let Some(front) = self.queue.front_mut()
        {
            let part = front.split_to(front.len().min(left));
            left -= part.len();
            chunk.put_slice(&part);
            if front.is_empty() {
                self.queue.pop_front();
            }
        }
        self.queued -= length as u64;
        chunk.freeze()
    }

    /// Number of bytes of the program among the first ones of the flow. Never asked for fewer than before.
    pub(super) fn of_program(&mut self, up_to: u64) -> u64 {
        let up_to = up_to.min(self.passed);
        up_to - self.marks.below(up_to)
    }

    /// Drops the oldest datagrams above a limit, but none whose beginning has left, and returns their number.
    pub(super) fn drop_above(&mut self, bytes_max: u64) -> u64 {
        let mut dropped = 0;
        while (self.queued > bytes_max || self.queue.len() > DATAGRAMS_MAX)
            && let Some(oldest) = self.queue.remove(usize::from(self.is_cut))
        {
            self.queued -= oldest.len() as u64;
            dropped += 1;
        }
        dropped
    }
}

/// The flow from the peer.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) id: u64,
    /// Its first octet has arrived, or is not needed any more.
    pub(super) has_begun: bool,
    /// Bytes received so far.
    pub(super) received: u64,
    /// Bytes accepted so far.
    pub(super) accepted: u64,
    /// Bytes that the program has been passed.
    pub(super) written: u64,
    /// Octets of the flow that are not the program's, by the number of the program's bytes before them. Beyond [`HEADERS_MAX`] places,
    /// further octets move the last place, so that they are accepted later than they could be.
    headers: VecDeque<(u64, u64)>,
    /// Bytes of the program received so far.
    program_bytes: u64,
    /// First octet of the header of a chunk, whose second one is still to come.
    header: Option<u8>,
    /// Bytes of the present chunk that are still to come.
    chunk_left: usize,
    /// Bytes for a program that has not answered yet; they are not accepted.
    pub(super) waiting: VecDeque<(Bytes, bool)>,
    /// Length of the datagrams that wait.
    pub(super) waits: u64,
    /// Datagrams in the flow, unless it keeps messages.
    pub(super) reader: framing::Reader,
    /// The end has arrived.
    pub(super) has_ended: bool,
    /// The end was passed to the program.
    pub(super) end_is_told: bool,
}

impl Incoming {
    pub(super) fn new(id: u64) -> Self {
        Incoming {
            id,
            has_begun: false,
            received: 0,
            accepted: 0,
            written: 0,
            headers: VecDeque::new(),
            program_bytes: 0,
            header: None,
            chunk_left: 0,
            waiting: VecDeque::new(),
            waits: 0,
            reader: framing::Reader::default(),
            has_ended: false,
            end_is_told: false,
        }
    }

    /// Takes octets of the flow that are not the program's.
    pub(super) fn skip(&mut self, octets: u64) {
        self.received += octets;
        let is_full = self.headers.len() == HEADERS_MAX;
        match self.headers.back_mut().filter(|(before, _)| is_full || *before == self.program_bytes) {
            Some(last) => *last = (self.program_bytes, last.1 + octets),
            None => self.headers.push_back((self.program_bytes, octets)),
        }
    }

    /// Takes the next bytes of a stream, and returns those of the program, in one piece however short their chunks are.
    pub(super) fn chunks(&mut self, mut data: Bytes) -> Bytes {
        let mut pieces = Vec::new();
        while !data.is_empty() {
            if self.chunk_left > 0 {
                let part = data.split_to(data.len().min(self.chunk_left));
                self.chunk_left -= part.len();
                self.received += part.len() as u64;
                self.program_bytes += part.len() as u64;
                pieces.push(part);
                continue;
            }
            let octet = data.get_u8();
            self.skip(1);
            match self.header.take() {
                None => self.header = Some(octet),
                Some(first) => self.chunk_left = usize::from(u16::from_be_bytes([first, octet])),
            }
        }
        match <[Bytes; 1]>::try_from(pieces) {
            Ok([whole]) => whole,
            Err(pieces) => pieces.concat().into(),
        }
    }

    /// Takes note that the program has been passed bytes, and returns how many octets of the flow are accepted now.
    pub(super) fn write(&mut self, bytes: u64) -> u64 {
        self.written += bytes;
        self.accepted += bytes;
        while let Some((before, octets)) = self.headers.front().copied()
            && before <= self.written
        {
            self.headers.pop_front();
            self.accepted += octets;
        }
        self.accepted
    }

    /// Returns true if another datagram may wait.
    pub(super) fn can_wait(&self, length: usize, bytes_max: u64) -> bool {
        self.waits + length as u64 <= bytes_max && self.waiting.len() < DATAGRAMS_MAX
    }

    /// True if everything has arrived and is accepted.
    pub(super) fn is_done(&self) -> bool {
        self.has_ended && self.accepted == self.received
    }
}

/// Octets of a flow that are not the program's: the first octet, and the headers of chunks.
#[derive(Debug, Default)]
struct Marks {
    /// Place and number of those that are not below all that was asked for.
    ahead: VecDeque<(u64, u64)>,
    /// Number of those that are.
    passed: u64,
}

impl Marks {
    fn mark(&mut self, at: u64, octets: u64) {
        self.ahead.push_back((at, octets));
    }

    /// Number of these octets among the first ones of the flow.
    fn below(&mut self, up_to: u64) -> u64 {
        while let Some((at, octets)) = self.ahead.front().copied()
            && at + octets <= up_to
        {
            self.ahead.pop_front();
            self.passed += octets;
        }
        let cut = self.ahead.front().map_or(0, |(at, _)| up_to.saturating_sub(*at));
        self.passed + cut
    }
}

/// The code of a datagram in a flow of bytes.
pub(super) fn framed(datagram: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    framing::write(datagram, &mut out);
    out.freeze()
}

/// All connections of programs.
pub(super) type Programs = std::collections::BTreeMap<ProgramId, Association>;

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer may send its stream byte by byte.
    #[test]
    fn chunks_of_a_byte_cost_no_more_than_the_octets_of_their_flow() {
        let mut flow = Incoming::new(1);
        for _ in 0..1000 {
            assert_eq!(flow.chunks([0, 1, b'x'].repeat(400).into()), vec![b'x'; 400]);
        }
        assert!(flow.headers.len() <= HEADERS_MAX, "{}", flow.headers.len());
        assert_eq!(
            (flow.received, flow.write(0), flow.write(1)),
            (1_200_000, 2, 5),
            "the first ones are exact"
        );
        assert!(flow.write(300_000) <= 3 * 300_001 + 2);
        assert_eq!(flow.write(99_999), 1_200_000, "in the end all octets are accepted");
    }
}
