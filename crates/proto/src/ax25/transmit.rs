//! The sending side of a link: the window, retransmission and polling (6.4.1, 6.4.6 to 6.4.11).

use super::frame::{Control, Frame, Supervisory, pid};
use super::link::{Link, OutgoingFrame, State, Timer};
use super::segment;
use super::xid::Recovery;
use crate::service::{PacketsIndication, Shares};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::VecDeque;

/// Upper bound on the information field of XID, bytes.
const XID_BYTES: u64 = 40;

/// An information field that has not been sent.
#[derive(Debug)]
struct QueuedInformation {
    pid: u8,
    information: Bytes,
    shares: Shares,
    /// True for the last field of a packet.
    ends: bool,
}

/// An unacknowledged I frame.
#[derive(Debug)]
struct SentFrame {
    pid: u8,
    information: Bytes,
    ends: bool,
    /// Serial number among all I frames sent, including retransmissions.
    serial: u64,
    /// Position in all output.
    place: Duration,
    /// True if the frame is to be retransmitted.
    again: bool,
    /// True if the frame was retransmitted.
    repeated: bool,
}

/// An outstanding answer to a frame with P.
#[derive(Clone, Copy, Debug)]
struct OutstandingPoll {
    /// V(S) at the time of the poll.
    next: u64,
    /// Serial number of the last I frame before the poll.
    serial: u64,
    /// Position of the poll in all output.
    place: Duration,
    /// True for RR or RNR: the answer to an enquiry shows the missing frames.
    enquiry: bool,
}

/// The state of the sending side. Numbers count from the beginning of the link, and are reduced by the modulo in
/// frames.
#[derive(Debug, Default)]
pub(super) struct Sender {
    queue: VecDeque<QueuedInformation>,
    sent: VecDeque<SentFrame>,
    /// Acknowledge state variable V(A).
    acknowledged: u64,
    serial: u64,
    peer_busy: bool,
    poll: Option<OutstandingPoll>,
    /// V(S) at the time of the last poll that was not answered in time: its answer may still arrive.
    unanswered_poll_state: Option<u64>,
    /// Answer that may belong to the last poll or to that earlier one: function, N(R) and information.
    ambiguous_answer: Option<(Supervisory, u8, Bytes)>,
    /// True if an enquiry is to be sent.
    probing: bool,
    /// True if the last poll was answered without F, which may still arrive.
    answered_without_final: bool,
    packets_acknowledged: u64,
}

impl Sender {
    /// Returns the send state variable V(S).
    fn next(&self) -> u64 {
        self.acknowledged + self.sent.len() as u64
    }

    pub(super) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.sent.is_empty()
    }

    pub(super) fn is_polling(&self) -> bool {
        self.poll.is_some()
    }

    /// Returns the number of I frames in flight.
    pub(super) fn outstanding(&self) -> usize {
        self.sent.len()
    }

    pub(super) fn awaits_answer(&self) -> bool {
        self.poll.is_some() || !self.sent.is_empty()
    }

    /// Returns the bytes of information fields that are unsent or unacknowledged.
    pub(super) fn held_bytes(&self) -> u64 {
        let unsent = self.queue.iter().map(|unsent| unsent.information.len());
        let sent = self.sent.iter().map(|sent| sent.information.len());
        unsent.chain(sent).sum::<usize>() as u64
    }

    pub(super) fn drop_all(&mut self) {
        self.queue.clear();
        self.sent.clear();
    }

    /// Requests an enquiry (6.4.11).
    pub(super) fn probe(&mut self) {
        self.probing = true;
        if let Some(poll) = self.poll.take() {
            self.unanswered_poll_state = Some(poll.next);
        }
    }

    /// Cancels all polls.
    pub(super) fn begin(&mut self) {
        (self.probing, self.poll, self.unanswered_poll_state) = (false, None, None);
    }

    /// Notes the position of the frame made last, which is passed down now.
    pub(super) fn handed(&mut self, control: Control, place: Duration) {
        let serial = self.serial;
        if let Control::Information { .. } = control
            && let Some(sent) = self.sent.iter_mut().find(|sent| sent.serial == serial)
        {
            sent.place = place;
        }
        if control.poll_final()
            && let Some(poll) = &mut self.poll
        {
            poll.place = place;
        }
    }

    /// Returns the packets that may be passed down: the rest of the window, less the queue.
    pub(super) fn room(&self, window: u8) -> u64 {
        u64::from(window).saturating_sub((self.sent.len() + self.queue.len()) as u64)
    }

    fn may_send_new(&self, window: u8, segments: bool) -> bool {
        let next = self.queue.front().filter(|next| segments || next.pid != pid::SEGMENT);
        next.is_some() && self.sent.len() < usize::from(window)
    }

    fn has_information(&self, window: u8, segments: bool) -> bool {
        !self.peer_busy && (self.sent.iter().any(|sent| sent.again) || self.may_send_new(window, segments))
    }
}

impl Link {
    /// Queues a packet of the user.
    pub(super) fn send_packet(&mut self, packet: Bytes, shares: Shares) {
        let (whole, bytes_max) = (packet.len(), self.agreed.information_bytes_max);
        let pieces = segment::cut(self.config.protocol, packet, bytes_max);
        let last = pieces.len() - 1;
        let unsent = pieces.into_iter().enumerate().map(|(at, (pid, information))| {
            let shares = shares.of_part(whole, information.len());
            QueuedInformation { pid, information, shares, ends: at == last }
        });
        self.sender.queue.extend(unsent);
    }

    pub(super) fn wants_numbered(&self) -> bool {
        self.receiver.owes_now() || self.may_enquire() || self.may_inform()
    }

    /// Returns true if an enquiry is to be sent and the peer owes no other answer (4.2.1).
    fn may_enquire(&self) -> bool {
        self.sender.probing && !self.question.is_outstanding()
    }

    /// Returns true if I frames may be sent now. On a half-duplex channel a station that has polled leaves the channel
    /// free for the answer.
    pub(super) fn may_inform(&self) -> bool {
        let gathers = self.timers.get(Timer::CollectRejects as usize).is_some();
        let waits = (self.sender.poll.is_some() || gathers) && !self.radio.full_duplex;
        !waits && !self.question_has_the_channel() && !self.sender.probing && self.has_information()
    }

    /// Returns true if an information field may be sent. Segments wait until the peer confirms that it reassembles them
    /// (6.3.2).
    fn has_information(&self) -> bool {
        let segments = self.agreed.segmenter || !self.question.is_open();
        self.sender.has_information(self.agreed.window, segments)
    }

    pub(super) fn next_numbered(&mut self, more: impl Fn(u64) -> bool) -> Option<OutgoingFrame> {
        if self.receiver.owes_final() {
            return Some(self.acknowledgement());
        }
        if self.may_enquire() {
            self.sender.probing = false;
            return Some(self.enquiry());
        }
        if self.may_inform() {
            return Some(self.information(more));
        }
        self.receiver.owes_now().then(|| self.acknowledgement())
    }

    fn on_air(&self, number: u64) -> u8 {
        (number % u64::from(self.agreed.modulo.count())) as u8
    }

    pub(super) fn expected_on_air(&self) -> u8 {
        self.on_air(self.receiver.receive_state())
    }

    /// Makes an enquiry: RR or RNR with P.
    fn enquiry(&mut self) -> OutgoingFrame {
        let (next, serial) = (self.sender.next(), self.sender.serial);
        self.sender.poll = Some(OutstandingPoll { next, serial, place: Duration::MAX, enquiry: true });
        self.counters.acknowledgements_sent += 1;
        self.receiver.acknowledged();
        let function = if self.own_busy() { Supervisory::ReceiveNotReady } else { Supervisory::ReceiveReady };
        let control = Control::Supervisory { function, receive: self.expected_on_air(), poll_final: true };
        OutgoingFrame {
            command: true,
            control,
            pid: 0,
            information: Bytes::new(),
            shares: Shares::default(),
            awaits: true,
        }
    }

    /// Makes the next I frame, retransmissions first. The last one for now polls for its acknowledgement.
    fn information(&mut self, more: impl Fn(u64) -> bool) -> OutgoingFrame {
        self.sender.serial += 1;
        let serial = self.sender.serial;
        let again = self.sender.sent.iter().position(|sent| sent.again);
        let mut first_shares = Shares::default();
        let at = again.unwrap_or_else(|| {
            let QueuedInformation { pid, information, shares, ends } =
                self.sender.queue.pop_front().expect("may_inform found one");
            first_shares = shares;
            self.sender.sent.push_back(SentFrame {
                pid,
                information,
                ends,
                serial,
                place: Duration::MAX,
                again: false,
                repeated: false,
            });
            self.sender.sent.len() - 1
        });
        let sent = &mut self.sender.sent[at];
        (sent.serial, sent.again) = (serial, false);
        sent.repeated = again.is_some();
        let (pid, information) = (sent.pid, sent.information.clone());
        let number = self.sender.acknowledged + at as u64;
        let length = information.len();
        let shares = match again {
            Some(_) => {
                self.counters.information_repeated += 1;
                Shares::repeated(length)
            }
            None => {
                self.counters.information_sent += 1;
                first_shares
            }
        };
        let shares = shares.in_frame(length, length + self.header_bytes());
        let last = !(self.has_information() && more(length as u64));
        // XID has P, too, and one is enough.
        let question = last && self.question.is_due() && self.sender.poll.is_none() && more(XID_BYTES);
        if question {
            self.question_follows();
        }
        let asks = last
            && self.config.poll_last
            && self.sender.poll.is_none()
            && !question
            && !self.question.is_outstanding();
        // Some stations answer P on a retransmitted frame with RR even if others are missing; they answer an enquiry
        // with SREJ.
        let behind = asks && self.is_repairing() && more(0);
        self.sender.probing |= behind;
        let poll = asks && !behind;
        if poll {
            let next = self.sender.next();
            self.sender.poll = Some(OutstandingPoll { next, serial, place: Duration::MAX, enquiry: false });
        }
        self.receiver.acknowledged();
        let control =
            Control::Information { send: self.on_air(number), receive: self.expected_on_air(), poll };
        OutgoingFrame {
            command: true,
            control,
            pid,
            information,
            shares,
            awaits: last && !behind && !question,
        }
    }

    fn is_selective(&self) -> bool {
        self.agreed.recovery != Recovery::Reject
    }

    /// Returns true if single frames were retransmitted and are still unacknowledged.
    fn is_repairing(&self) -> bool {
        self.is_selective() && self.sender.sent.iter().any(|sent| sent.repeated)
    }

    fn header_bytes(&self) -> usize {
        let control = Control::Information { send: 0, receive: 0, poll: false };
        14 + 7 * self.path.len() + control.len_bytes(self.agreed.modulo) + 1
    }

    /// Converts N(R) to the number of a frame; `None` if it is outside the frames sent.
    fn number(&self, receive: u8) -> Option<u64> {
        let steps = self.agreed.modulo.distance(self.on_air(self.sender.acknowledged), receive);
        (usize::from(steps) <= self.sender.sent.len()).then(|| self.sender.acknowledged + u64::from(steps))
    }

    /// Handles the N(R) of an I frame, or of any other that acknowledges. Returns false if it is invalid and resets the
    /// link.
    pub(super) fn hear_number(&mut self, now: Instant, receive: u8) -> bool {
        let Some(number) = self.number(receive) else {
            self.broken();
            return false;
        };
        self.acknowledge_up_to(now, number);
        self.answered_by_number(now, number);
        true
    }

    /// Treats a poll as answered by a number that covers everything sent before it, with F or without: some stations
    /// answer P with F = 0, and would otherwise be polled for F until the link is closed.
    fn answered_by_number(&mut self, now: Instant, number: u64) {
        let gone = self.gone;
        let covered = |poll: &mut OutstandingPoll| poll.next == number && poll.place <= gone;
        if self.state == State::Connected && self.sender.poll.take_if(covered).is_some() {
            self.sender.answered_without_final = true;
            self.progressed(now, true);
        }
    }

    fn acknowledge_up_to(&mut self, now: Instant, number: u64) {
        let count = (number - self.sender.acknowledged) as usize;
        if count == 0 {
            return;
        }
        self.acknowledged_before_transmission |=
            self.sender.sent.range(..count).any(|sent| sent.place > self.gone && !sent.repeated);
        let packets = self.sender.sent.drain(..count).filter(|sent| sent.ends).count();
        self.sender.acknowledged = number;
        if packets > 0 {
            self.sender.packets_acknowledged += packets as u64;
            let all = self.sender.packets_acknowledged;
            self.indications.push_back(PacketsIndication::Acknowledged(all));
        }
        if self.sender.sent.is_empty() {
            self.question_is_passed_over(now);
        }
        self.progressed(now, false);
    }

    pub(super) fn hear_supervisory(
        &mut self,
        now: Instant,
        frame: &Frame,
        function: Supervisory,
        receive: u8,
        poll_final: bool,
    ) {
        let Some(number) = self.number(receive) else {
            self.broken();
            return;
        };
        self.sender.peer_busy = function == Supervisory::ReceiveNotReady;
        let selective = function == Supervisory::SelectiveReject;
        if !selective || poll_final {
            self.acknowledge_up_to(now, number);
        }
        if frame.is_command() && poll_final {
            self.receiver.owe_final();
        }
        let answer = !frame.is_command() && poll_final;
        if answer && self.is_doubtful(function, number) {
            self.sender.ambiguous_answer = Some((function, receive, frame.information.clone()));
            self.timers.set(Timer::CollectRejects as usize, now + self.gather_time());
            return;
        }
        let polled = if answer { self.answered_poll(number) } else { None };
        self.do_as_asked(now, function, number, &frame.information, polled);
        if !frame.is_command() && !selective {
            self.answered_by_number(now, number);
        }
    }

    /// Returns true if an answer with F may belong to an earlier poll that timed out, which is possible where answers
    /// are late: the peer answers polls in order, so a further answer would be the one to the last poll. An answer that
    /// acknowledges more than had been sent then is not in doubt.
    fn is_doubtful(&mut self, function: Supervisory, number: u64) -> bool {
        if self.sender.ambiguous_answer.take().is_some() {
            self.counters.late_answers += 1;
            self.round_trip.was_late();
        }
        let Some(unanswered_poll_state) = self.sender.unanswered_poll_state else { return false };
        // A peer that has received everything requests nothing.
        let asks = matches!(function, Supervisory::Reject | Supervisory::SelectiveReject);
        if number > unanswered_poll_state || (number == unanswered_poll_state && asks) {
            self.sender.unanswered_poll_state = None;
        }
        let all = |poll: &OutstandingPoll| poll.next == number || poll.place > self.gone;
        let late = self.transmit_reports_come_early
            || self.transmit_reports_are_missing
            || self.counters.late_answers > 0;
        late && self.sender.unanswered_poll_state.is_some() && !self.sender.poll.as_ref().is_none_or(all)
    }

    /// Handles an answer in doubt as the answer to the last poll, because no other has followed.
    pub(super) fn hear_doubtful(&mut self, now: Instant) {
        let Some((function, receive, information)) = self.sender.ambiguous_answer.take() else { return };
        self.sender.unanswered_poll_state = None;
        if let Some(number) = self.number(receive) {
            let polled = self.sender.poll.take();
            self.do_as_asked(now, function, number, &information, polled);
        }
    }

    /// Retransmits the frames that the peer requests.
    fn do_as_asked(
        &mut self,
        now: Instant,
        function: Supervisory,
        number: u64,
        information: &Bytes,
        polled: Option<OutstandingPoll>,
    ) {
        if matches!(function, Supervisory::Reject | Supervisory::SelectiveReject) {
            self.counters.rejects_received += 1;
        }
        match function {
            Supervisory::SelectiveReject => {
                self.send_again_selected(number, information, polled);
                self.timers.set(Timer::CollectRejects as usize, now + self.gather_time());
            }
            Supervisory::Reject => self.send_again_from(number, polled),
            Supervisory::ReceiveReady => match polled {
                // The answer to P on a frame in order does not show whether others are missing.
                Some(OutstandingPoll { enquiry: false, .. }) if self.is_selective() => {
                    self.enquire_after_the_rest()
                }
                // Every frame sent before the poll has arrived, or is lost.
                Some(_) => self.send_again_from(number, polled),
                None => {}
            },
            Supervisory::ReceiveNotReady => {}
        }
        if polled.is_some() {
            self.progressed(now, true);
        }
    }

    /// Returns the poll that an answer with F belongs to. An answer that began before the poll can have left is the
    /// late one to an earlier poll: it shows nothing about frames sent since.
    fn answered_poll(&mut self, number: u64) -> Option<OutstandingPoll> {
        let gone = self.gone;
        let polled = self.sender.poll.take_if(|poll| poll.place <= gone || poll.next == number);
        let came_late = polled.is_none() && !core::mem::take(&mut self.sender.answered_without_final);
        if came_late {
            self.counters.late_answers += 1;
            self.round_trip.was_late();
        }
        polled
    }

    fn enquire_after_the_rest(&mut self) {
        let nothing_again = !self.sender.sent.iter().any(|sent| sent.again);
        if nothing_again && !self.sender.sent.is_empty() {
            self.sender.probe();
        }
    }

    /// Returns the wait for further SREJ frames: a peer that misses several frames may send one for each, any of them
    /// with F.
    fn gather_time(&self) -> Duration {
        /// Length of SREJ, and of its way through the controller, bytes.
        const BYTES: u64 = 20;
        self.radio.air_time(1, BYTES) + Duration::from_millis(40)
    }

    /// Retransmits from this number on, as far as the frames were sent before the poll.
    fn send_again_from(&mut self, number: u64, polled: Option<OutstandingPoll>) {
        let from = (number - self.sender.acknowledged) as usize;
        let (next, serial) = polled.map_or((u64::MAX, u64::MAX), |poll| (poll.next, poll.serial));
        let (numbers, gone) = (number.., self.gone);
        for (number, sent) in numbers.zip(self.sender.sent.iter_mut().skip(from)) {
            sent.again |= number < next && sent.serial <= serial && sent.place <= gone;
        }
    }

    /// Retransmits the named frames. Those retransmitted after the poll are still in flight.
    fn send_again_selected(&mut self, first: u64, others: &[u8], polled: Option<OutstandingPoll>) {
        let serial = polled.map_or(u64::MAX, |poll| poll.serial);
        let shift = if self.agreed.modulo.count() == 8 { 5 } else { 1 };
        let others: Vec<u64> = others.iter().filter_map(|octet| self.number(octet >> shift)).collect();
        for number in core::iter::once(first).chain(others) {
            let at = (number - self.sender.acknowledged) as usize;
            if let Some(sent) = self.sender.sent.get_mut(at) {
                sent.again |= sent.serial <= serial && sent.place <= self.gone;
            }
        }
    }

    /// Makes the acknowledgement: SREJ or REJ for missing frames, RNR, or RR.
    fn acknowledgement(&mut self) -> OutgoingFrame {
        let poll_final = self.receiver.owes_final();
        let missing = match self.agreed.recovery {
            Recovery::Reject => Vec::new(),
            _ => self.receiver.missing(poll_final, self.agreed.recovery),
        };
        let mut receive = self.expected_on_air();
        let mut information = Bytes::new();
        let function = if self.own_busy() {
            Supervisory::ReceiveNotReady
        } else if let Some((first, others)) = missing.split_first() {
            receive = self.on_air(*first);
            let shift = if self.agreed.modulo.count() == 8 { 5 } else { 1 };
            information = others.iter().map(|number| self.on_air(*number) << shift).collect();
            Supervisory::SelectiveReject
        } else if self.receiver.owes_reject() {
            Supervisory::Reject
        } else {
            Supervisory::ReceiveReady
        };
        match function {
            Supervisory::Reject | Supervisory::SelectiveReject => self.counters.rejects_sent += 1,
            _ => self.counters.acknowledgements_sent += 1,
        }
        self.receiver.answered(self.own_busy());
        if self.agreed.recovery == Recovery::SelectiveReject {
            self.receiver.ask_for_more();
        }
        let control = Control::Supervisory { function, receive, poll_final };
        let shares = Shares::acknowledgement(15);
        OutgoingFrame { command: false, control, pid: 0, information, shares, awaits: false }
    }
}
