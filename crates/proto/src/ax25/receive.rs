//! The receiving side of a link: what is in order, what is missing, and when it is said (6.4.2 to 6.4.4).

use super::frame::Frame;
use super::link::{Link, Timer};
use super::segment::{Assembler, Broken};
use super::xid::Recovery;
use crate::service::PacketsIndication;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers that one SREJ names at most: its information is never longer than a short frame.
const MISSING_MAX: usize = 32;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// V(R).
    expected: u64,
    /// What came before what it follows.
    early: BTreeMap<u64, (u8, Bytes)>,
    /// What was asked for by SREJ since the peer was last heard to end what it sends.
    asked: BTreeSet<u64>,
    /// REJ is to be sent.
    reject: bool,
    /// REJ was sent, and what it asks for has not come.
    rejected: bool,
    /// An answer with F is owed.
    final_owed: bool,
    /// An acknowledgement is to go as soon as it can.
    now: bool,
    /// I frames since this side last said how far it is.
    pending: u32,
    /// The longest run of I frames for which the peer has waited: its window, or what it had to send.
    run: u32,
    assembler: Assembler,
    unreleased: u64,
    /// The peer was told to wait.
    told_busy: bool,
}

impl Receiver {
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.expected == 0 && self.early.is_empty()
    }

    pub(super) fn owe_final(&mut self) {
        self.final_owed = true;
    }

    pub(super) fn owes_final(&self) -> bool {
        self.final_owed
    }

    pub(super) fn owes_reject(&self) -> bool {
        self.reject
    }

    pub(super) fn owes_now(&self) -> bool {
        self.now || self.final_owed
    }

    pub(super) fn acknowledge_now(&mut self) {
        self.now |= self.pending > 0 || self.reject || !self.early.is_empty();
    }

    /// The numbers of all frames on their way say how far this side is.
    pub(super) fn acknowledged(&mut self) {
        // What is missing has to be asked for by a frame of its own.
        if self.early.is_empty() && !self.reject {
            self.answered(self.told_busy);
        }
    }

    /// An answer goes.
    pub(super) fn answered(&mut self, told_busy: bool) {
        self.run = self.pending.max(1);
        self.rejected |= self.reject;
        self.told_busy = told_busy;
        (self.pending, self.now, self.final_owed, self.reject) = (0, false, false, false);
    }

    /// What is missing and has not been asked for; at the end of what the peer sends, all of it. Without SREJ for several
    /// the first alone, and the others follow when it has come.
    pub(super) fn missing(&mut self, all: bool, recovery: Recovery) -> Vec<u64> {
        if all {
            self.asked.clear();
        }
        let Some(last) = self.early.last_key_value().map(|(number, _)| *number) else { return Vec::new() };
        let holes = (self.expected..last).filter(|number| !self.early.contains_key(number));
        let most = if recovery == Recovery::MultiSelectiveReject { MISSING_MAX } else { 1 };
        let missing: Vec<u64> = holes.filter(|number| !self.asked.contains(number)).take(most).collect();
        self.asked.extend(&missing);
        missing
    }

    /// What has not been asked for yet is asked for next, each by a frame of its own.
    pub(super) fn ask_for_more(&mut self) {
        let last = self.early.last_key_value().map_or(self.expected, |(number, _)| *number);
        let mut holes = (self.expected..last).filter(|number| !self.early.contains_key(number));
        self.now |= holes.any(|number| !self.asked.contains(&number));
    }

    /// The user has dealt with packets.
    fn release(&mut self, packets: u64) {
        self.unreleased = self.unreleased.saturating_sub(packets);
    }
}

impl Link {
    pub(super) fn own_busy(&self) -> bool {
        self.receiver.unreleased >= self.config.unreleased_max
    }

    pub(super) fn user_releases(&mut self, packets: u64) {
        self.receiver.release(packets);
        if self.receiver.told_busy && !self.own_busy() {
            self.receiver.now = true;
        }
    }

    /// The user answers: what is owed goes with it.
    pub(super) fn user_acknowledges(&mut self) {
        self.receiver.acknowledge_now();
    }

    pub(super) fn hear_information(&mut self, now: Instant, frame: &Frame, send: u8, poll: bool) {
        if frame.information.len() > self.config.information_bytes_max as usize {
            return self.broken();
        }
        self.receiver.final_owed |= poll;
        if self.own_busy() {
            self.receiver.now = true;
            return;
        }
        let modulo = self.agreed.modulo;
        let window = self.config.window(modulo, self.agreed.recovery);
        let steps = modulo.distance(self.expected_on_air(), send);
        self.receiver.pending += 1;
        match (steps, self.agreed.recovery) {
            (0, _) => {
                self.deliver(frame.pid, frame.information.clone());
                while let Some((pid, information)) = self.receiver.early.remove(&self.receiver.expected) {
                    self.deliver(pid, information);
                }
            }
            (_, Recovery::Reject) => {
                self.counters.out_of_order += 1;
                self.receiver.reject |= !self.receiver.rejected;
            }
            (steps, _) if steps < window => {
                self.counters.out_of_order += 1;
                let number = self.receiver.expected + u64::from(steps);
                let field = (frame.pid, frame.information.clone());
                if self.receiver.early.insert(number, field).is_some() {
                    self.counters.duplicates += 1;
                }
            }
            _ => self.counters.duplicates += 1,
        }
        self.plan_acknowledgement(now, poll);
    }

    /// At once when it is asked for, or when the peer has sent as much as it does at a time; else after T2.
    fn plan_acknowledgement(&mut self, now: Instant, poll: bool) {
        let window = u32::from(self.config.window(self.agreed.modulo, self.agreed.recovery));
        // 6.7.1.2: on full-duplex channels half a window.
        let enough = if self.radio.full_duplex { (window / 2).max(1) } else { window };
        let delay = self.acknowledge_delay();
        let run_over = self.receiver.run > 1 && self.receiver.pending >= self.receiver.run;
        if poll || delay == Duration::ZERO || self.receiver.pending >= enough || run_over {
            self.receiver.now = true;
            self.timers.stop(Timer::Acknowledge as usize);
        } else {
            self.timers.set(Timer::Acknowledge as usize, now + delay);
        }
    }

    fn deliver(&mut self, pid: u8, information: Bytes) {
        self.counters.information_received += 1;
        self.receiver.asked.remove(&self.receiver.expected);
        self.receiver.expected += 1;
        self.receiver.rejected = false;
        match self.receiver.assembler.hear(pid, information) {
            Ok(None) => {}
            Ok(Some((protocol, packet))) if protocol == self.config.protocol => {
                self.receiver.unreleased += 1;
                self.indications.push_back(PacketsIndication::Packet(packet));
            }
            // Somebody else's protocol: nobody here takes it.
            Ok(Some(_)) => self.counters.violations += 1,
            Err(Broken) => self.broken(),
        }
    }
}
