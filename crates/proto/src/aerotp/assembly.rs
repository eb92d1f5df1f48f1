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

/// Memory that a segment takes beside its bytes.
pub(super) const SEGMENT_COST: u64 = 64;

/// A segment that was negatively acknowledged, and has not come again.
#[derive(Debug)]
struct Asked {
    attempts: u32,
    /// Time of the next attempt, or at which it is given up; `None` while the negative acknowledgement waits to leave.
    at: Option<Instant>,
    /// In its place if it does not come again.
    damaged: Held,
}

/// Segment that waits for those before it.
#[derive(Debug)]
enum Held {
    Good(Bytes),
    /// It could not be corrected, and its user wants it all the same.
    Damaged(Bytes),
    /// It could not be corrected, and had so many bytes.
    Gap(u64),
}

impl Held {
    /// Bytes in memory.
    fn cost(&self) -> u64 {
        match self {
            Held::Good(payload) | Held::Damaged(payload) => SEGMENT_COST + payload.len() as u64,
            Held::Gap(_) => SEGMENT_COST,
        }
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
    deliver_damaged: bool,
    /// Index of the next segment that the user has not had.
    next: u64,
    held: BTreeMap<u64, Held>,
    /// Bytes in memory, with those of the segments that were asked for.
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
    /// Creates one; `deliver_damaged`: segments that could not be corrected are passed on with their errors.
    pub(super) fn new(service: TransportService, deliver_damaged: bool) -> Self {
        Assembly {
            service,
            deliver_damaged,
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
        let held = match (is_intact, self.deliver_damaged) {
            (true, _) => Held::Good(payload.clone()),
            (false, true) => Held::Damaged(payload.clone()),
            (false, false) => Held::Gap(payload.len() as u64),
        };
        if index != self.next && held.cost() > room {
            return Arrival::Dropped;
        }
        self.heard = self.heard.max(index + 1);
        // A segment that has come again, damaged again, is asked for anew.
        self.settle(index);
        if is_intact {
            self.hold(index, held);
            return Arrival::New;
        }
        if self.service.has_nacks() {
            self.held_bytes += held.cost();
            self.asked.insert(index, Asked { attempts: 0, at: None, damaged: held });
            self.nacks.insert(index);
        } else {
            self.hold(index, held);
        }
        Arrival::Damaged
    }

    fn hold(&mut self, index: u64, held: Held) {
        self.held_bytes += held.cost();
        self.held.insert(index, held);
    }

    /// Forgets that a segment was asked for.
    fn settle(&mut self, index: u64) -> Option<Held> {
        let asked = self.asked.remove(&index)?;
        asked.at.into_iter().for_each(|at| _ = self.timers.remove(&(at, index)));
        self.nacks.remove(&index);
        self.held_bytes -= asked.damaged.cost();
        Some(asked.damaged)
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
            if asked.attempts < config.nack_attempts {
                self.nacks.insert(index);
            } else {
                self.give_up_one(index);
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
        let asked: Vec<u64> = self.asked.keys().copied().collect();
        asked.into_iter().for_each(|index| self.give_up_one(index));
    }

    /// Asks no more for a segment. With acknowledgements its sender repeats it by its own timer.
    fn give_up_one(&mut self, index: u64) {
        let damaged = self.settle(index).expect("it was asked for");
        if index >= self.next && !self.service.acknowledges() {
            self.hold(index, damaged);
        }
    }

    /// Returns the next bytes in their order, or the gap before them.
    pub(super) fn deliver(&mut self) -> Option<Delivery> {
        if let Some(held) = self.held.remove(&self.next) {
            self.next += 1;
            self.held_bytes -= held.cost();
            return Some(match held {
                Held::Good(data) => Delivery::Data { data, damaged: false },
                Held::Damaged(data) => Delivery::Data { data, damaged: true },
                Held::Gap(bytes) => Delivery::Gap { bytes: Some(bytes) },
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
