//! Receiving half: reassembly within the window, SACK blocks, and the window itself (RFC 9293 3.4, 3.8.6; RFC 2018).
//!
//! Offsets are counted from the peer's initial sequence number: its SYN is 0, its first byte 1.

use super::wire::SACK_BLOCKS_MAX;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Position of arriving data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The data were the next ones, and no data wait behind them.
    InOrder,
    /// The data were the next ones, and filled a hole or a part of it.
    FilledHole,
    /// The data lie beyond a hole, or had arrived before.
    OutOfOrder,
}

/// Receiving half of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Next offset expected.
    next: u64,
    /// Right edge of the announced window; never moves left (RFC 9293 3.8.6).
    edge: u64,
    buffer_bytes: u64,
    /// Maximum window that is announced, regardless of the room in the buffer.
    announced_max: u64,
    /// Bytes delivered to the user and not released.
    held: u64,
    /// Data beyond a hole by offset, without overlaps.
    parts: BTreeMap<u64, Bytes>,
    parts_max: usize,
    /// The same data as ranges without gaps, and the ranges that changed last, newest first.
    ranges: BTreeMap<u64, u64>,
    recent: Vec<(u64, u64)>,
    /// Data of the last segment that had arrived before, until an acknowledgement reports them (RFC 2883 4).
    duplicate: Option<(u64, u64)>,
    /// Offset of the peer's FIN, once known.
    fin: Option<u64>,
    /// Segments dropped because too many small ones were waiting.
    pub(super) dropped: u64,
}

impl Receiver {
    /// Creates a receiver before the first segment. At most `announced_max` bytes are announced; `parts_max` limits the
    /// number of segments that wait beyond holes.
    pub(super) fn new(buffer_bytes: u32, announced_max: Option<u32>, parts_max: usize) -> Self {
        let buffer_bytes = u64::from(buffer_bytes);
        Receiver {
            next: 0,
            edge: 0,
            buffer_bytes,
            announced_max: announced_max.map_or(buffer_bytes, |most| buffer_bytes.min(u64::from(most))),
            held: 0,
            parts: BTreeMap::new(),
            parts_max,
            ranges: BTreeMap::new(),
            recent: Vec::new(),
            duplicate: None,
            fin: None,
            dropped: 0,
        }
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the unused part of the announced window, bytes.
    pub(super) fn announced(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// Returns true once the peer's FIN and everything before it have arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    pub(super) fn has_holes(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Processes the arrival of the peer's SYN.
    pub(super) fn begin(&mut self) {
        self.next = 1;
        // The window of a SYN is never scaled (RFC 7323 2.2).
        self.edge = 1 + self.announced_max.min(u64::from(u16::MAX));
    }

    /// Returns true if a segment touches the window (RFC 9293 3.10.7.4, the four cases).
    pub(super) fn accepts(&self, start: i64, length: u32) -> bool {
        let (next, edge) = (self.next as i64, self.edge.max(self.next) as i64);
        let end = start + i64::from(length);
        match (length, edge - next) {
            (0, 0) => start == next,
            (0, _) => (next..edge).contains(&start),
            (_, 0) => false,
            (_, _) => start < edge && end > next,
        }
    }

    /// Accepts the data of a segment that begin at `start`, without the part outside the window. Passes the data that
    /// are now in order to `deliver`.
    pub(super) fn take(&mut self, start: i64, mut data: Bytes, mut deliver: impl FnMut(Bytes)) -> Arrival {
        let skip = (self.next as i64 - start).max(0) as usize;
        self.note_old(start, data.len());
        if skip >= data.len() {
            return Arrival::OutOfOrder;
        }
        let start = (start + skip as i64) as u64;
        let length = (data.len() - skip).min(self.edge.saturating_sub(start) as usize);
        if length == 0 {
            return Arrival::OutOfOrder;
        }
        data = data.slice(skip..skip + length);
        if start > self.next {
            self.store(start, data);
            return Arrival::OutOfOrder;
        }
        self.advance(data, &mut deliver);
        if self.ranges.is_empty() {
            return Arrival::InOrder;
        }
        self.join(deliver);
        Arrival::FilledHole
    }

    fn advance(&mut self, data: Bytes, deliver: &mut impl FnMut(Bytes)) {
        self.next += data.len() as u64;
        self.held += data.len() as u64;
        deliver(data);
    }

    /// Delivers the data that waited beyond the hole that is now filled.
    fn join(&mut self, mut deliver: impl FnMut(Bytes)) {
        while let Some(entry) = self.parts.first_entry() {
            if *entry.key() > self.next {
                break;
            }
            let (start, data) = entry.remove_entry();
            let skip = (self.next - start) as usize;
            if skip < data.len() {
                self.advance(data.slice(skip..), &mut deliver);
            }
        }
        while self.ranges.first_key_value().is_some_and(|(_, end)| *end <= self.next) {
            self.ranges.pop_first();
        }
        if let Some((start, end)) = self.ranges.first_key_value().map(|(start, end)| (*start, *end))
            && start < self.next
        {
            self.ranges.remove(&start);
            self.ranges.insert(self.next, end);
        }
        let next = self.next;
        self.recent.retain(|(_, end)| *end > next);
    }

    /// Stores data beyond a hole, without the part that is stored already.
    fn store(&mut self, start: u64, data: Bytes) {
        let end = start + data.len() as u64;
        if let Some((_, &held_end)) = self.ranges.range(..=start).next_back() {
            self.note_duplicate(start, end.min(held_end));
        }
        let before = self.parts.range(..=start).next_back();
        let mut at = before.map_or(start, |(held, part)| start.max(held + part.len() as u64));
        while at < end {
            if self.parts.len() >= self.parts_max {
                self.dropped += 1;
                return;
            }
            let following = self.parts.range(at..).next();
            let (stop, behind) = following
                .map_or((end, end), |(held, part)| (end.min(*held), (*held + part.len() as u64).max(at)));
            if stop > at {
                self.parts.insert(at, data.slice((at - start) as usize..(stop - start) as usize));
            }
            at = if stop == end { end } else { behind };
        }
        self.note_range(start, end);
    }

    /// Records the part of a segment that had been delivered.
    pub(super) fn note_old(&mut self, start: i64, length: usize) {
        let end = (start + length as i64).clamp(1, self.next.max(1) as i64) as u64;
        self.note_duplicate(start.max(1) as u64, end);
    }

    fn note_duplicate(&mut self, start: u64, end: u64) {
        if start < end {
            self.duplicate = Some((start, end));
        }
    }

    /// Returns the data that have arrived twice since the last call.
    pub(super) fn take_duplicate(&mut self) -> Option<(u64, u64)> {
        self.duplicate.take()
    }

    /// Joins a range with those that it touches, and makes it the newest.
    fn note_range(&mut self, mut start: u64, mut end: u64) {
        if let Some((&held, &held_end)) = self.ranges.range(..=start).next_back()
            && held_end >= start
        {
            start = held;
            end = end.max(held_end);
        }
        while let Some((&held, &held_end)) = self.ranges.range(start..).next().filter(|(at, _)| **at <= end) {
            end = end.max(held_end);
            self.ranges.remove(&held);
        }
        self.ranges.insert(start, end);
        self.recent.retain(|&(held, held_end)| held_end < start || end < held);
        self.recent.insert(0, (start, end));
        self.recent.truncate(SACK_BLOCKS_MAX);
    }

    /// Returns the SACK blocks, the most recent first (RFC 2018 4).
    pub(super) fn sack_blocks(&self) -> &[(u64, u64)] {
        &self.recent
    }

    /// Records the offset of the peer's FIN. A FIN that contradicts received data is ignored.
    pub(super) fn note_fin(&mut self, offset: u64) {
        let beyond = self.ranges.last_key_value().map_or(self.next, |(_, end)| *end);
        if self.fin.is_none() && offset >= beyond {
            self.fin = Some(offset);
        }
    }

    /// Consumes the FIN if everything before it has arrived. Returns true if so.
    pub(super) fn consume_fin(&mut self) -> bool {
        if self.fin != Some(self.next) {
            return false;
        }
        self.next += 1;
        true
    }

    /// Releases bytes that the user has processed.
    ///
    /// # Panics
    /// Panics if fewer bytes were delivered and not released.
    pub(super) fn release(&mut self, bytes: u64) {
        assert!(bytes <= self.held, "{bytes} bytes released, {} held", self.held);
        self.held -= bytes;
    }

    /// Returns the largest window that may be announced: RFC 9293 3.8.6 leaves the choice to the receiver, within the
    /// room of its buffer.
    fn free(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.held).min(self.announced_max)
    }

    /// Returns the window field of a SYN, which is never scaled (RFC 7323 2.2).
    pub(super) fn window_of_syn(&self) -> u16 {
        self.free().min(u64::from(u16::MAX)) as u16
    }

    /// Returns the window field to send, in units of `1 << shift` bytes, and moves the edge. The edge moves by at least
    /// a segment or half of the maximum window (RFC 9293 3.8.6.2.2).
    pub(super) fn announce(&mut self, shift: u8, segment_bytes: u64) -> u16 {
        let wanted = self.next + self.free();
        let step = segment_bytes.min(self.announced_max / 2);
        let edge = if wanted >= self.edge + step { wanted } else { self.edge };
        let window = edge.saturating_sub(self.next);
        // Rounded up: rounding down would move the edge to the left.
        let field = window.div_ceil(1 << shift).min(u64::from(u16::MAX));
        self.edge = self.edge.max(self.next + (field << shift));
        field as u16
    }

    /// Returns true if the window has opened so far that the peer needs an update: to at least twice the announced
    /// window, and by at least a segment or half of the maximum window.
    pub(super) fn wants_update(&self, segment_bytes: u64) -> bool {
        let step = segment_bytes.min(self.announced_max / 2);
        let (announced, free) = (self.announced(), self.free());
        free >= announced + step && free >= 2 * announced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn receiver(buffer: u32) -> Receiver {
        let mut receiver = Receiver::new(buffer, None, 64);
        receiver.begin();
        receiver
    }

    fn bytes(start: u64, length: u64) -> Bytes {
        (start..start + length).map(|at| at as u8).collect::<Vec<_>>().into()
    }

    #[test]
    fn blocks_are_reported_newest_first_and_joined() {
        let mut receiver = receiver(1000);
        let mut out = Vec::new();
        for (start, length) in [(101, 100), (301, 100), (501, 100)] {
            receiver.take(start, bytes(start as u64, length), |data| out.extend_from_slice(&data));
        }
        assert_eq!(receiver.sack_blocks(), [(501, 601), (301, 401), (101, 201)]);
        receiver.take(201, bytes(201, 100), |data| out.extend_from_slice(&data));
        assert_eq!(receiver.sack_blocks(), [(101, 401), (501, 601)]);
        let arrival = receiver.take(1, bytes(1, 100), |data| out.extend_from_slice(&data));
        assert_eq!(arrival, Arrival::FilledHole);
        assert_eq!((receiver.next(), out.len()), (401, 400));
        assert_eq!(receiver.sack_blocks(), [(501, 601)]);
    }

    /// RFC 2883 4: data below the acknowledgement, and data that wait beyond a hole.
    #[test]
    fn what_arrives_twice_is_named_once() {
        let mut receiver = receiver(1000);
        receiver.take(1, bytes(1, 100), |_| {});
        receiver.take(201, bytes(201, 200), |_| {});
        assert_eq!(receiver.take_duplicate(), None);
        receiver.take(51, bytes(51, 100), |_| {});
        assert_eq!(receiver.take_duplicate(), Some((51, 101)), "the part that had arrived");
        receiver.take(301, bytes(301, 50), |_| {});
        assert_eq!(receiver.take_duplicate(), Some((301, 351)));
        assert_eq!(receiver.take_duplicate(), None);
    }

    #[test]
    fn what_is_beyond_the_window_is_cut_off() {
        let mut receiver = receiver(100);
        let mut got = 0;
        receiver.take(1, bytes(1, 150), |data| got += data.len());
        assert_eq!((got, receiver.announced()), (100, 0));
        assert!(!receiver.accepts(101, 1));
        assert!(receiver.accepts(101, 0));
        receiver.release(100);
        assert!(receiver.wants_update(50));
        assert_eq!(receiver.announce(0, 50), 100);
    }

    /// A window below the room of the buffer stays open while the user has not fetched the data, so the peer needs no
    /// update when it opens again.
    #[test]
    fn a_window_below_the_buffer_does_not_close_on_what_is_held() {
        let mut receiver = Receiver::new(60_000, Some(1280), 64);
        receiver.begin();
        assert_eq!((receiver.window_of_syn(), receiver.announced()), (1280, 1280));
        for at in 0..40 {
            receiver.take(1 + 640 * at, bytes(0, 640), |_| {});
            assert_eq!(receiver.announce(0, 640), 1280, "segment {at}");
            assert!(!receiver.wants_update(640));
        }
        // The window never exceeds the buffer.
        let mut small = Receiver::new(1000, Some(1280), 64);
        small.begin();
        assert_eq!(small.window_of_syn(), 1000);
    }

    #[test]
    fn any_order_any_overlap_any_repetition_gives_the_bytes_once() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut receiver = Receiver::new(4000, None, 4000);
            receiver.begin();
            let mut out = Vec::new();
            while out.len() < 3000 {
                let start = 1 + rng.below(3000);
                let length = (1 + rng.below(300)).min(3001 - start);
                receiver.take(start as i64, bytes(start, length), |data| out.extend_from_slice(&data));
                let covered: u64 = receiver.ranges.iter().map(|(start, end)| end - start).sum();
                let parts: usize = receiver.parts.values().map(Bytes::len).sum();
                assert_eq!(covered, parts as u64);
            }
            assert_eq!(out, bytes(1, 3000));
            assert!(receiver.parts.is_empty() && receiver.ranges.is_empty() && receiver.recent.is_empty());
        }
    }

    #[test]
    fn tiny_segments_beyond_a_hole_are_bounded() {
        let mut receiver = receiver(60_000);
        for at in 0..1000 {
            receiver.take(3 + 2 * at, bytes(0, 1), |_| panic!("nothing is in order"));
        }
        assert_eq!((receiver.parts.len(), receiver.dropped), (64, 936));
    }
}
