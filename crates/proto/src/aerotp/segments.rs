//! Sending in the services other than `adaptive`: single segments, each with a timer of its own.

use super::buffer::Buffer;
use crate::service::TransportService;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Segment that is kept for retransmission.
#[derive(Debug)]
struct Segment {
    payload: Bytes,
    /// Number of bytes of data before its end.
    end: u64,
    is_last: bool,
    /// Time at which it counts as lost, or is forgotten in a service without acknowledgements; `None` before it has left.
    timer: Option<Instant>,
    /// Time of its last departure.
    left_at: Option<Instant>,
}

/// Segment to send.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) index: u64,
    pub(super) payload: Bytes,
    pub(super) is_last: bool,
    /// It was sent before.
    pub(super) is_again: bool,
}

/// Segments of a connection at its sender. They are counted from zero here.
#[derive(Debug)]
pub(super) struct Segments {
    service: TransportService,
    /// Index of the next new segment.
    next: u64,
    /// Bytes in the segments before.
    bytes: u64,
    kept: BTreeMap<u64, Segment>,
    kept_bytes: u64,
    /// Segments to send again.
    again: BTreeSet<u64>,
    timers: BTreeSet<(Instant, u64)>,
    /// Index of the first segment that the receiver's user has not accepted.
    accepted: u64,
    accepted_bytes: u64,
    /// Ends of the segments that are acknowledged and not accepted.
    ends: BTreeMap<u64, u64>,
}

impl Segments {
    pub(super) fn new(service: TransportService) -> Self {
        Segments {
            service,
            next: 0,
            bytes: 0,
            kept: BTreeMap::new(),
            kept_bytes: 0,
            again: BTreeSet::new(),
            timers: BTreeSet::new(),
            accepted: 0,
            accepted_bytes: 0,
            ends: BTreeMap::new(),
        }
    }

    /// Index of the next new segment: the number of segments after the end.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn accepted_bytes(&self) -> u64 {
        self.accepted_bytes
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    pub(super) fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Returns true if a new segment may be made.
    pub(super) fn has_room(&self, window_segments: u64, buffer: &Buffer) -> bool {
        !buffer.is_empty() && self.in_window() < window_segments
    }

    /// Number of segments in the window: those that are not accepted, or without acknowledgements those that are kept.
    fn in_window(&self) -> u64 {
        if self.service.acknowledges() { self.next - self.accepted } else { self.kept.len() as u64 }
    }

    /// Returns true if no segment waits for anything.
    pub(super) fn is_settled(&self) -> bool {
        self.kept.is_empty() && self.again.is_empty()
    }

    /// Returns true if all segments are accepted.
    pub(super) fn is_accepted(&self) -> bool {
        self.accepted == self.next
    }

    /// Makes the next segment, those to send again first.
    pub(super) fn leave(
        &mut self,
        buffer: &mut Buffer,
        payload_bytes: usize,
        window_segments: u64,
    ) -> Option<Leaving> {
        if let Some(index) = self.again.pop_first() {
            let segment = self.kept.get_mut(&index).expect("segments to send again are kept");
            let timer = segment.timer.take();
            timer.into_iter().for_each(|at| _ = self.timers.remove(&(at, index)));
            segment.left_at = None;
            let (payload, is_last) = (segment.payload.clone(), segment.is_last);
            return Some(Leaving { index, payload, is_last, is_again: true });
        }
        if !self.has_room(window_segments, buffer) {
            return None;
        }
        let payload =
            if self.service.keeps_messages() { buffer.take_piece() } else { buffer.take(payload_bytes) };
        let is_last = buffer.is_ended && buffer.is_empty();
        let index = self.next;
        self.next += 1;
        self.bytes += payload.len() as u64;
        if self.service.acknowledges() || self.service.has_nacks() {
            self.kept_bytes += payload.len() as u64;
            let segment =
                Segment { payload: payload.clone(), end: self.bytes, is_last, timer: None, left_at: None };
            self.kept.insert(index, segment);
        }
        Some(Leaving { index, payload, is_last, is_again: false })
    }

    /// A segment has left: its timer begins.
    pub(super) fn left(&mut self, now: Instant, index: u64, timeout: Duration) {
        if let Some(segment) = self.kept.get_mut(&index)
            && !self.again.contains(&index)
        {
            segment.timer.into_iter().for_each(|at| _ = self.timers.remove(&(at, index)));
            segment.left_at = Some(now);
            segment.timer = Some(now + timeout);
            self.timers.insert((now + timeout, index));
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Handles the timers that have expired; returns how many segments are to be sent again.
    pub(super) fn expire(&mut self, now: Instant) -> u64 {
        let mut expired = 0;
        while let Some((_, index)) = self.timers.first().filter(|(at, _)| *at <= now).copied() {
            self.timers.pop_first();
            if self.service.acknowledges() {
                expired += 1;
                self.kept.get_mut(&index).expect("its timer ran").timer = None;
                self.again.insert(index);
            } else {
                self.forget(index);
            }
        }
        expired
    }

    /// Restarts all timers, after an interruption of the link.
    pub(super) fn restart(&mut self, now: Instant, timeout: Duration) {
        self.timers.clear();
        let waiting: Vec<u64> =
            self.kept.keys().copied().filter(|index| !self.again.contains(index)).collect();
        for index in waiting {
            let segment = self.kept.get_mut(&index).expect("just listed");
            segment.timer = Some(now + timeout);
            self.timers.insert((now + timeout, index));
        }
    }

    fn forget(&mut self, index: u64) -> Option<u64> {
        let segment = self.kept.remove(&index)?;
        segment.timer.into_iter().for_each(|at| _ = self.timers.remove(&(at, index)));
        self.again.remove(&index);
        self.kept_bytes -= segment.payload.len() as u64;
        Some(segment.end)
    }

    /// The receiver has a segment. Returns true if this was unknown.
    pub(super) fn acknowledge(&mut self, index: u64) -> bool {
        match self.forget(index) {
            Some(end) => {
                if index >= self.accepted {
                    self.ends.insert(index, end);
                }
                true
            }
            None => false,
        }
    }

    /// The receiver's user has accepted all segments before this one. Returns true if this was unknown.
    pub(super) fn accept(&mut self, up_to: u64, settles: bool) -> bool {
        if up_to <= self.accepted || up_to > self.next {
            return false;
        }
        self.accepted = up_to;
        let kept = self.kept.range(..up_to).map(|(_, segment)| segment.end).next_back();
        let rest = self.ends.split_off(&up_to);
        let acknowledged = core::mem::replace(&mut self.ends, rest);
        let end = kept.max(acknowledged.into_values().next_back());
        self.accepted_bytes = self.accepted_bytes.max(end.unwrap_or(0));
        if settles {
            while let Some(index) =
                self.kept.first_key_value().map(|(index, _)| *index).filter(|index| *index < up_to)
            {
                self.forget(index);
            }
        }
        true
    }

    /// The receiver could not correct a segment. It is sent again unless it is under way: it left less than half a round trip ago.
    pub(super) fn refuse(&mut self, now: Instant, index: u64, half_round_trip: Duration) -> bool {
        let Some(segment) = self.kept.get_mut(&index) else { return false };
        let is_under_way = segment.left_at.is_none_or(|at| now < at + half_round_trip);
        if is_under_way || self.again.contains(&index) {
            return false;
        }
        segment.timer.take().into_iter().for_each(|at| _ = self.timers.remove(&(at, index)));
        self.again.insert(index)
    }
}
