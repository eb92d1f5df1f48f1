//! The receiving side of a link: frames in order, missing frames, and the time of the acknowledgement (6.4.2 to 6.4.4).

use super::config::LinkConfig;
use super::frame::Frame;
use super::link::{Link, Timer};
use super::segment::{InvalidSegment, Reassembler};
use super::xid::Recovery;
use crate::service::PacketsIndication;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Maximum numbers in one SREJ: its information is at most as long as a short frame.
const MISSING_MAX: usize = 32;

/// Wait of an acknowledgement for the user's response, if the peer seems to have sent everything.
const ANSWER_WAIT: Duration = Duration::from_millis(50);

/// Returns the maximum information field that is accepted, bytes. The length that this side sends does not show the
/// length that the peer was configured to send, and a link of modulo 8 cannot negotiate it.
pub(super) fn information_bytes_heard_max(config: &LinkConfig) -> u32 {
    config.information_bytes_max.max(2048)
}

/// The state of the receiving side.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Receive state variable V(R).
    receive_state: u64,
    /// Frames that arrived before their predecessors.
    out_of_order: BTreeMap<u64, (u8, Bytes)>,
    /// Frames requested by SREJ that have not arrived, with the order of the requests: the peer sends them in this
    /// order.
    rejects_outstanding: BTreeMap<u64, u64>,
    rejects_sent: u64,
    /// True if REJ is to be sent.
    reject_due: bool,
    /// True after REJ, until the requested frame arrives.
    reject_outstanding: bool,
    /// Position of REJ in all output.
    reject_place: Duration,
    /// Distance of the last frame that arrived instead of the next one.
    ahead: u8,
    /// Number of repeated requests after a silence of the peer, since its last progress.
    asked_again: u8,
    /// True if a response with F is due.
    final_due: bool,
    /// True if an acknowledgement is to be sent as soon as possible.
    now: bool,
    /// I frames since the last acknowledgement, without those out of order.
    pending: u32,
    /// True if a frame was lost since then.
    loss_since_acknowledgement: bool,
    /// Number of I frames in a burst of the peer: its window, or what it had to send.
    run: u32,
    /// Length of the last I frame in order, bytes.
    length: usize,
    assembler: Reassembler,
    unreleased: u64,
    /// True if the peer was told to wait.
    own_receiver_busy: bool,
}

impl Receiver {
    pub(super) fn receive_state(&self) -> u64 {
        self.receive_state
    }

    /// Returns the bytes of information fields that are out of order, or of an incomplete packet.
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

    /// Notes that the peer has sent its burst and waits.
    pub(super) fn peer_waits(&mut self) {
        if self.pending > 0 && !self.loss_since_acknowledgement {
            self.run = self.pending;
        }
        self.acknowledge_now();
    }

    /// Returns true if a requested frame is missing.
    pub(super) fn awaits_more(&self) -> bool {
        self.reject_outstanding || !self.rejects_outstanding.is_empty()
    }

    /// Repeats the requests after a silence of the peer: it has not received them, or its frames were lost.
    pub(super) fn ask_again(&mut self) {
        self.asked_again = self.asked_again.saturating_add(1);
        self.reject_due |= core::mem::take(&mut self.reject_outstanding);
        self.rejects_outstanding.clear();
        self.now = true;
    }

    pub(super) fn asked_again(&self) -> u8 {
        self.asked_again
    }

    /// Notes that the N(R) of an outgoing frame acknowledges everything.
    pub(super) fn acknowledged(&mut self) {
        // Missing frames must be requested by a frame of their own.
        if self.out_of_order.is_empty() && !self.reject_due {
            self.answered(self.own_receiver_busy);
        }
    }

    /// Notes that an acknowledgement is sent.
    pub(super) fn answered(&mut self, own_receiver_busy: bool) {
        self.reject_outstanding |= self.reject_due;
        self.own_receiver_busy = own_receiver_busy;
        (self.pending, self.now, self.final_due, self.reject_due) = (0, false, false, false);
        self.loss_since_acknowledgement = !self.out_of_order.is_empty() || self.reject_outstanding;
    }

    /// Returns the missing frames that have not been requested; at the end of the peer's burst, all missing ones.
    /// Without SREJ for several frames it returns only the first, and the others follow when it has arrived.
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

    /// Requests further missing frames as soon as possible, each by a frame of its own.
    pub(super) fn ask_for_more(&mut self) {
        let last = self.out_of_order.last_key_value().map_or(self.receive_state, |(number, _)| *number);
        let mut holes = (self.receive_state..last).filter(|number| !self.out_of_order.contains_key(number));
        self.now |= holes.any(|number| !self.rejects_outstanding.contains_key(&number));
    }

    /// Notes that a frame has arrived. Frames requested before it were lost again, or their request was.
    fn has_come(&mut self, number: u64) {
        if let Some(order) = self.rejects_outstanding.remove(&number) {
            self.rejects_outstanding.retain(|_, other| *other > order);
        }
    }

    /// Notes the position of REJ in all output.
    pub(super) fn rejects_at(&mut self, place: Duration) {
        self.reject_place = place;
    }

    /// Returns true if REJ is to be sent because a frame arrived instead of the next one; output up to the position
    /// `keyed` may have left before it. A peer that goes back after REJ has sent the requested frame, which is lost
    /// again. A peer that goes back before REJ can have left does so for its own reasons: a second REJ would be in the
    /// same key-up as the first, and cause a second retransmission (4.3.2.3, 4.4.3).
    fn wants_reject(&mut self, ahead: u8, keyed: Duration) -> bool {
        let back = ahead <= core::mem::replace(&mut self.ahead, ahead);
        !self.reject_outstanding || (back && self.reject_place <= keyed)
    }

    /// Notes that the user has processed packets.
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

    /// Sends the due acknowledgement with the user's response.
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
                // 6.4.4.1: one REJ at a time, until the peer has done what it requests.
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

    /// Plans the acknowledgement: at once if it is polled, or if the peer has sent as much as in a burst; otherwise
    /// after T2. A frame shorter than the one before it probably is the last one of the peer.
    fn plan_acknowledgement(&mut self, now: Instant, shorter: bool) {
        let window = u32::from(self.config.window(self.agreed.modulo, self.agreed.recovery));
        // 6.7.1.2: half a window on full-duplex channels.
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
            // Packets of another layer-3 protocol have no user here.
            Ok(Some(_)) => self.counters.violations += 1,
            Err(InvalidSegment) => self.broken(),
        }
    }
}
