//! Bundles that are being sent, and datagrams that are sent again.

use super::wire::{self, Place, Transfer};
use crate::service::{Shares, TransferId};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Form in which a bundle is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Without a frame, as one datagram.
    Unframed,
    /// As an identified transfer.
    Transfer {
        /// Transfer ID.
        id: u64,
        /// Maximum length of a segment, bytes.
        segment_bytes: u64,
    },
}

impl Form {
    /// Returns the form of a transfer of `length` bytes in datagrams of at most `bytes_max`.
    pub(super) fn transfer(id: u64, length: u64, bytes_max: u64) -> Form {
        let is_single = wire::single_packet_bytes(id, length) <= bytes_max;
        let segment_bytes = if is_single { length } else { wire::segment_bytes(id, length, bytes_max) };
        Form::Transfer { id, segment_bytes }
    }
}

/// Datagram with a bundle or a segment of it.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) bytes: Bytes,
    pub(super) shares: Shares,
    /// Number of bytes of the bundle.
    pub(super) payload: u64,
    /// The bundle ends with it.
    pub(super) is_last: bool,
}

/// Bundle that is being sent: its bytes arrive from the user and leave in datagrams.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) transfer: TransferId,
    pub(super) form: Form,
    length: u64,
    /// Number of bytes that the user has given.
    given: u64,
    /// Number of bytes that have left.
    sent: u64,
    /// Bytes that were given and have not left.
    parts: VecDeque<Bytes>,
}

impl Outgoing {
    pub(super) fn new(transfer: TransferId, form: Form, length: u64) -> Self {
        Outgoing { transfer, form, length, given: 0, sent: 0, parts: VecDeque::new() }
    }

    /// Adds bytes from the user.
    pub(super) fn add(&mut self, data: Bytes) {
        self.given += data.len() as u64;
        self.parts.push_back(data);
    }

    /// True if the user has given all bytes.
    pub(super) fn is_whole(&self) -> bool {
        self.given == self.length
    }

    /// Number of bytes of the bundle in the next datagram.
    fn next_bytes(&self) -> u64 {
        match self.form {
            Form::Unframed => self.length,
            Form::Transfer { segment_bytes, .. } => segment_bytes.min(self.length - self.sent),
        }
    }

    /// Number of bytes that the next datagram lacks.
    pub(super) fn lacks(&self) -> u64 {
        self.next_bytes().saturating_sub(self.given - self.sent)
    }

    /// Removes and returns the next datagram, if none of its bytes are lacking.
    pub(super) fn next_datagram(&mut self) -> Option<Departure> {
        if self.lacks() > 0 {
            return None;
        }
        let (payload, offset) = (self.next_bytes(), self.sent);
        let data = take(&mut self.parts, payload as usize);
        self.sent += payload;
        let bytes = match self.form {
            Form::Unframed => data,
            Form::Transfer { id, .. } => {
                let place = Place { total_bytes: self.length, offset };
                let place = (payload < self.length).then_some(place);
                Transfer { id, place, data }.to_packet()
            }
        };
        let shares = Shares::payload(payload as usize);
        Some(Departure { bytes, shares, payload, is_last: self.sent == self.length })
    }
}

/// Removes and returns the first bytes of several parts, which have as many. The bytes of a single part are not copied.
fn take(parts: &mut VecDeque<Bytes>, length: usize) -> Bytes {
    let mut whole = BytesMut::new();
    while let Some(first) = parts.front_mut() {
        let missing = length - whole.len();
        let part = first.split_to(missing.min(first.len()));
        if first.is_empty() {
            parts.pop_front();
        }
        if part.len() == length {
            return part;
        }
        whole.extend_from_slice(&part);
        if whole.len() == length {
            break;
        }
    }
    whole.freeze()
}

/// Datagram that is sent again.
#[derive(Debug)]
struct Copy {
    at: Instant,
    /// Number of times.
    left: u32,
    bytes: Bytes,
}

/// Datagrams that are sent again, in the order of their times.
#[derive(Debug)]
pub(super) struct Copies {
    interval: Duration,
    waiting: VecDeque<Copy>,
    held: u64,
}

impl Copies {
    pub(super) fn new(interval: Duration) -> Self {
        Copies { interval, waiting: VecDeque::new(), held: 0 }
    }

    /// Number of bytes that wait.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Time of the next copy.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.front().map(|copy| copy.at)
    }

    /// Adds a datagram that leaves now, and leaves another `left` times.
    pub(super) fn add(&mut self, now: Instant, left: u32, bytes: Bytes) {
        if left > 0 {
            self.held += bytes.len() as u64;
            self.waiting.push_back(Copy { at: now + self.interval, left, bytes });
        }
    }

    /// Returns the next copy if its time has come, and schedules the one after it.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Bytes> {
        let copy = if self.next()? <= now { self.waiting.pop_front()? } else { return None };
        self.held -= copy.bytes.len() as u64;
        self.add(now, copy.left - 1, copy.bytes.clone());
        Some(copy.bytes)
    }

    /// Discards all copies.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.held = 0;
    }
}
