//! Receiving in the services other than `adaptive`: the order of segments, gaps, and negative acknowledgements.

use super::config::Config;
use crate::service::TransportService;
use crate::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Indication to the user about the next bytes of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Data { data: Bytes, damaged: bool },
    Gap { bytes: Option<u64> },
}

/// A segment that was negatively acknowledged, and has not come again.
#[derive(Debug)]
struct Asked {
    attempts: u32,
    /// Time of the next attempt, or at which it is given up; `None` while the negative acknowledgement waits to leave.
    at: Option<Instant>,
    /// The payload with its errors.
    damaged: Bytes,
}

/// Segment that waits for those before it.
#[derive(Debug)]
enum Held {
    Good(Bytes),
    /// It could not be corrected and will not come again.
    Damaged(Bytes),
}

impl Held {
    fn len(&self) -> u64 {
        let (Held::Good(payload) | Held::Damaged(payload)) = self;
        payload.len() as u64
    }
}

/// Outcome of a segment that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    New,
    Known,
    /// It is damaged, and a negative acknowledgement or a gap follows.
    Damaged,
    /// A limit does not permit it.
    Dropped,
}

/// Segments of a connection at its receiver. They are counted from zero here.
#[derive(Debug)]
pub(super) struct Assembly {
    service: TransportService,
    /// Index of the next segment that the user has not had.
    next: u64,
    held: BTreeMap<u64, Held>,
    held_bytes: u64,
    /// Index after the highest one that was heard of.
    heard: u64,
    /// Number of segments, once it is known.
    end: Option<u64>,
    asked: BTreeMap<u64, Asked>,
    /// Segments to acknowledge negatively.
    nacks: BTreeSet<u64>,
    timers: BTreeSet<(Instant, u64)>,
}

impl Assembly {
    pub(super) fn new(service: TransportService) -> Self {
        Assembly {
            service,
            next: 0,
            held: BTreeMap::new(),
            held_bytes: 0,
            heard: 0,
            end: None,
            asked: BTreeMap::new(),
            nacks: BTreeSet::new(),
            timers: BTreeSet::new(),
        }
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Segments that have arrived and wait for those before them.
    pub(super) fn held(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.held.iter().filter(|(_, held)| matches!(held, Held::Good(_))).map(|(index, _)| *index)
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns true if the user has had everything.
    pub(super) fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// Number of segments, once it is known.
    pub(super) fn end(&self) -> Option<u64> {
        self.end
    }

    /// Negative acknowledgements that wait.
    pub(super) fn nacks(&self) -> usize {
        self.nacks.len()
    }

    /// The connection has this number of segments. A second statement that differs is ignored.
    pub(super) fn end_at(&mut self, end: u64) {
        if self.end.is_none() && end >= self.heard {
            self.end = Some(end);
            self.heard = end;
        }
    }

    /// Handles a segment whose payload is intact or not. `room` is the number of bytes that may be held.
    pub(super) fn arrived(&mut self, index: u64, payload: &Bytes, is_intact: bool, room: u64) -> Arrival {
        if self.end.is_some_and(|end| index >= end) {
            return Arrival::Dropped;
        }
        if index < self.next || self.held.contains_key(&index) {
            return Arrival::Known;
        }
        let repeats = self.service.acknowledges() || self.service.has_nacks();
        if !is_intact && !self.service.has_nacks() && repeats {
            // As if it had been lost.
            return Arrival::Damaged;
        }
        if is_intact && index != self.next && payload.len() as u64 > room {
            return Arrival::Dropped;
        }
        self.heard = self.heard.max(index + 1);
        if is_intact {
            self.settle(index);
            self.hold(index, Held::Good(payload.clone()));
            return Arrival::New;
        }
        if self.service.has_nacks() {
            self.ask(index, payload);
        } else {
            self.hold(index, Held::Damaged(payload.clone()));
        }
        Arrival::Damaged
    }

    fn hold(&mut self, index: u64, held: Held) {
        self.held_bytes += held.len();
        self.held.insert(index, held);
    }

    fn ask(&mut self, index: u64, payload: &Bytes) {
        if let Some(asked) = self.asked.get_mut(&index) {
            // It has come again, damaged again: a new attempt for a new transmission.
            asked.at.take().into_iter().for_each(|at| _ = self.timers.remove(&(at, index)));
            asked.attempts = 0;
            asked.damaged = payload.clone();
        } else {
            self.asked.insert(index, Asked { attempts: 0, at: None, damaged: payload.clone() });
        }
        self.nacks.insert(index);
    }

    /// Forgets that a segment was asked for.
    fn settle(&mut self, index: u64) {
        if let Some(asked) = self.asked.remove(&index) {
            asked.at.into_iter().for_each(|at| _ = self.timers.remove(&(at, index)));
            self.nacks.remove(&index);
        }
    }

    /// Returns the segments for the next packet with negative acknowledgements, which leaves now.
    pub(super) fn take_nacks(&mut self, now: Instant, most: usize, config: &Config) -> Vec<u64> {
        let taken: Vec<u64> = self.nacks.iter().copied().take(most).collect();
        for index in &taken {
            self.nacks.remove(index);
            let asked = self.asked.get_mut(index).expect("it was asked for");
            asked.attempts += 1;
            let at = now + config.listen_timeout;
            asked.at = Some(at);
            self.timers.insert((at, *index));
        }
        taken
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Handles segments that have not come again.
    pub(super) fn expire(&mut self, now: Instant, config: &Config) {
        while let Some((_, index)) = self.timers.first().filter(|(at, _)| *at <= now).copied() {
            self.timers.pop_first();
            let asked = self.asked.get_mut(&index).expect("its timer ran");
            asked.at = None;
            // With acknowledgements the sender repeats it by its own timer.
            if asked.attempts < config.nack_attempts || self.service.acknowledges() {
                self.nacks.insert(index);
            } else {
                let damaged = self.asked.remove(&index).expect("just found").damaged;
                if index >= self.next && !self.held.contains_key(&index) {
                    self.hold(index, Held::Damaged(damaged));
                }
            }
        }
    }

    /// Restarts the timers, after an interruption of the link: what was asked for is asked for again.
    pub(super) fn restart(&mut self) {
        self.timers.clear();
        for (index, asked) in &mut self.asked {
            asked.at = None;
            self.nacks.insert(*index);
        }
    }

    /// Gives up all that has not arrived, because the time after the end has passed.
    pub(super) fn give_up(&mut self) {
        let asked = core::mem::take(&mut self.asked);
        self.timers.clear();
        self.nacks.clear();
        for (index, asked) in asked {
            if index >= self.next && !self.held.contains_key(&index) {
                self.hold(index, Held::Damaged(asked.damaged));
            }
        }
    }

    /// Returns the next bytes in their order, or the gap before them.
    pub(super) fn deliver(&mut self, deliver_damaged: bool) -> Option<Delivery> {
        if let Some(held) = self.held.remove(&self.next) {
            self.next += 1;
            self.held_bytes -= held.len();
            return Some(match held {
                Held::Good(data) => Delivery::Data { data, damaged: false },
                Held::Damaged(data) if deliver_damaged => Delivery::Data { data, damaged: true },
                Held::Damaged(data) => Delivery::Gap { bytes: Some(data.len() as u64) },
            });
        }
        let waits = self.service.acknowledges() || self.asked.contains_key(&self.next);
        if waits || self.next >= self.heard {
            return None;
        }
        // Nothing of these was heard, and they cannot come any more: segments arrive in their order.
        let asked = self.asked.keys().find(|index| **index > self.next).copied();
        let held = self.held.keys().next().copied();
        self.next = asked.into_iter().chain(held).min().unwrap_or(self.heard);
        Some(Delivery::Gap { bytes: None })
    }
}
