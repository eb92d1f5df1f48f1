//! The receiving side of a link: what is in order, what is missing, and when it is said (6.4.2 to 6.4.4).

use super::config::LinkConfig;
use super::frame::Frame;
use super::link::{Link, Timer};
use super::segment::{InvalidSegment, Reassembler};
use super::xid::Recovery;
use crate::service::PacketsIndication;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Numbers that one SREJ names at most: its information is never longer than a short frame.
const MISSING_MAX: usize = 32;

/// How long the acknowledgement of what seems to end what the peer has to say waits for its user's answer.
const ANSWER_WAIT: Duration = Duration::from_millis(50);

/// The longest information field that is taken, bytes: what this side sends says nothing of what the peer was told to
/// send, and a link of modulo 8 has no way to agree on it.
pub(super) fn information_bytes_heard_max(config: &LinkConfig) -> u32 {
    config.information_bytes_max.max(2048)
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// V(R).
    receive_state: u64,
    /// What came before what it follows.
    out_of_order: BTreeMap<u64, (u8, Bytes)>,
    /// What was asked for by SREJ and has not come, and in which order: the peer sends it in this order.
    rejects_outstanding: BTreeMap<u64, u64>,
    rejects_sent: u64,
    /// REJ is to be sent.
    reject_due: bool,
    /// REJ was sent, and what it asks for has not come.
    reject_outstanding: bool,
    /// Its place in all that was handed down.
    reject_place: Duration,
    /// How far ahead the last frame was that came instead of the next one.
    ahead: u8,
    /// Times that the peer was asked again after it had been silent, since it last got further.
    asked_again: u8,
    /// An answer with F is owed.
    final_due: bool,
    /// An acknowledgement is to go as soon as it can.
    now: bool,
    /// I frames since this side last said how far it is, but for those that came too early.
    pending: u32,
    /// Something was lost since then.
    loss_since_acknowledgement: bool,
    /// The run of I frames after which the peer has waited: its window, or what it had to send.
    run: u32,
    /// Of the last I frame in order, bytes.
    length: usize,
    assembler: Reassembler,
    unreleased: u64,
    /// The peer was told to wait.
    own_receiver_busy: bool,
}

impl Receiver {
    pub(super) fn receive_state(&self) -> u64 {
        self.receive_state
    }

    /// Bytes of information fields that came early, and of a packet that is not whole.
    pub(super) fn held_bytes(&self) -> u64 {
        let out_of_order = self.out_of_order.values().map(|(_, information)| information.len());
        (out_of_order.sum::<usize>() + self.assembler.held_bytes()) as u64
    }

    pub(super) fn owe_final(&mut self) {
        self.final_due = true;
    }

    pub(super) fn owes_final(&self) -> bool {
        self.final_due
    }

    pub(super) fn owes_reject(&self) -> bool {
        self.reject_due
    }

    pub(super) fn owes_now(&self) -> bool {
        self.now || self.final_due
    }

    pub(super) fn acknowledge_now(&mut self) {
        self.now |= self.pending > 0;
    }

    /// The peer has sent what it sends at a time, and waits.
    pub(super) fn peer_waits(&mut self) {
        if self.pending > 0 && !self.loss_since_acknowledgement {
            self.run = self.pending;
        }
        self.acknowledge_now();
    }

    /// Something is missing that the peer was asked for.
    pub(super) fn awaits_more(&self) -> bool {
        self.reject_outstanding || !self.rejects_outstanding.is_empty()
    }

    /// The peer is silent: it has not heard what it was asked for, or was not heard.
    pub(super) fn ask_again(&mut self) {
        self.asked_again = self.asked_again.saturating_add(1);
        self.reject_due |= core::mem::take(&mut self.reject_outstanding);
        self.rejects_outstanding.clear();
        self.now = true;
    }

    pub(super) fn asked_again(&self) -> u8 {
        self.asked_again
    }

    /// The numbers of all frames on their way say how far this side is.
    pub(super) fn acknowledged(&mut self) {
        // What is missing has to be asked for by a frame of its own.
        if self.out_of_order.is_empty() && !self.reject_due {
            self.answered(self.own_receiver_busy);
        }
    }

    /// An answer goes.
    pub(super) fn answered(&mut self, own_receiver_busy: bool) {
        self.reject_outstanding |= self.reject_due;
        self.own_receiver_busy = own_receiver_busy;
        (self.pending, self.now, self.final_due, self.reject_due) = (0, false, false, false);
        self.loss_since_acknowledgement = !self.out_of_order.is_empty() || self.reject_outstanding;
    }

    /// What is missing and has not been asked for; at the end of what the peer sends, all of it. Without SREJ for several
    /// the first alone, and the others follow when it has come.
    pub(super) fn missing(&mut self, all: bool, recovery: Recovery) -> Vec<u64> {
        if all {
            self.rejects_outstanding.clear();
        }
        let Some(last) = self.out_of_order.last_key_value().map(|(number, _)| *number) else {
            return Vec::new();
        };
        let holes = (self.receive_state..last).filter(|number| !self.out_of_order.contains_key(number));
        let most = if recovery == Recovery::MultiSelectiveReject { MISSING_MAX } else { 1 };
        let missing: Vec<u64> =
            holes.filter(|number| !self.rejects_outstanding.contains_key(number)).take(most).collect();
        self.rejects_outstanding.extend(missing.iter().copied().zip(self.rejects_sent..));
        self.rejects_sent += missing.len() as u64;
        missing
    }

    /// What has not been asked for yet is asked for next, each by a frame of its own.
    pub(super) fn ask_for_more(&mut self) {
        let last = self.out_of_order.last_key_value().map_or(self.receive_state, |(number, _)| *number);
        let mut holes = (self.receive_state..last).filter(|number| !self.out_of_order.contains_key(number));
        self.now |= holes.any(|number| !self.rejects_outstanding.contains_key(&number));
    }

    /// This one has come. What was asked for before it has been lost again, or was never heard of.
    fn has_come(&mut self, number: u64) {
        if let Some(order) = self.rejects_outstanding.remove(&number) {
            self.rejects_outstanding.retain(|_, other| *other > order);
        }
    }

    /// REJ is handed down, and leaves behind all up to this place.
    pub(super) fn rejects_at(&mut self, place: Duration) {
        self.reject_place = place;
    }

    /// Instead of the next frame this one has come; frames up to the place `keyed` may have left before it. After REJ, a peer
    /// that has gone back has sent that one, and it is lost again. One that goes back before REJ can have left does so for
    /// reasons of its own: a second REJ would be in the same key-up as the first, and be done twice (4.3.2.3, 4.4.3).
    fn wants_reject(&mut self, ahead: u8, keyed: Duration) -> bool {
        let back = ahead <= core::mem::replace(&mut self.ahead, ahead);
        !self.reject_outstanding || (back && self.reject_place <= keyed)
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
        if self.receiver.own_receiver_busy && !self.own_busy() {
            self.receiver.now = true;
        }
    }

    /// The user answers: what is owed goes with it.
    pub(super) fn user_acknowledges(&mut self) {
        self.receiver.acknowledge_now();
    }

    pub(super) fn hear_information(&mut self, now: Instant, frame: &Frame, send: u8, poll: bool) {
        if frame.information.len() > information_bytes_heard_max(&self.config) as usize {
            return self.broken();
        }
        self.receiver.final_due |= poll;
        if self.own_busy() {
            self.receiver.now = true;
            return;
        }
        let modulo = self.agreed.modulo;
        let window = self.config.window(modulo, self.agreed.recovery);
        let steps = modulo.distance(self.expected_on_air(), send);
        match (steps, self.agreed.recovery) {
            (0, _) => {
                let shorter = frame.information.len() < self.receiver.length;
                self.receiver.length = frame.information.len();
                self.receiver.pending += 1;
                let filled = !self.receiver.out_of_order.is_empty();
                self.deliver(frame.pid, frame.information.clone());
                while let Some((pid, information)) =
                    self.receiver.out_of_order.remove(&self.receiver.receive_state)
                {
                    self.deliver(pid, information);
                }
                self.receiver.ask_for_more();
                self.receiver.now |= filled && self.receiver.out_of_order.is_empty();
                self.plan_acknowledgement(now, shorter);
            }
            (_, Recovery::Reject) => {
                self.counters.out_of_order += 1;
                self.receiver.loss_since_acknowledgement = true;
                // 6.4.4.1: one at a time, until the peer has done what it asks for.
                self.receiver.reject_due |= self.receiver.wants_reject(steps, self.keyed);
                self.receiver.now |= self.receiver.reject_due;
            }
            (steps, _) if steps < window => {
                self.counters.out_of_order += 1;
                let number = self.receiver.receive_state + u64::from(steps);
                let field = (frame.pid, frame.information.clone());
                if self.receiver.out_of_order.insert(number, field).is_some() {
                    self.counters.duplicates += 1;
                }
                self.receiver.loss_since_acknowledgement = true;
                self.receiver.has_come(number);
                self.receiver.ask_for_more();
            }
            _ => {
                self.counters.duplicates += 1;
                self.receiver.loss_since_acknowledgement = true;
                self.receiver.pending += 1;
                self.plan_acknowledgement(now, false);
            }
        }
    }

    /// At once when it is asked for, or when the peer has sent as much as it does at a time; else after T2. A frame shorter
    /// than the one before it probably ends what the peer has to send.
    fn plan_acknowledgement(&mut self, now: Instant, shorter: bool) {
        let window = u32::from(self.config.window(self.agreed.modulo, self.agreed.recovery));
        // 6.7.1.2: on full-duplex channels half a window.
        let enough = if self.radio.full_duplex { (window / 2).max(1) } else { window };
        let delay = self.acknowledge_delay();
        let run_over = self.receiver.run > 1 && self.receiver.pending >= self.receiver.run;
        self.receiver.now |= delay == Duration::ZERO || self.receiver.pending >= enough || run_over;
        if self.receiver.owes_now() {
            self.timers.stop(Timer::T2 as usize);
        } else {
            let delay = if shorter { delay.min(ANSWER_WAIT) } else { delay };
            self.timers.set(Timer::T2 as usize, now + delay);
        }
    }

    fn deliver(&mut self, pid: u8, information: Bytes) {
        self.counters.information_received += 1;
        self.receiver.has_come(self.receiver.receive_state);
        self.receiver.receive_state += 1;
        (self.receiver.reject_due, self.receiver.reject_outstanding) = (false, false);
        (self.receiver.ahead, self.receiver.asked_again) = (0, 0);
        match self.receiver.assembler.hear(pid, information) {
            Ok(None) => {}
            Ok(Some((protocol, packet))) if protocol == self.config.protocol => {
                self.receiver.unreleased += 1;
                self.indications.push_back(PacketsIndication::Packet(packet));
            }
            // Somebody else's protocol: nobody here takes it.
            Ok(Some(_)) => self.counters.violations += 1,
            Err(InvalidSegment) => self.broken(),
        }
    }
}
