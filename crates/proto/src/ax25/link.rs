//! One connection: how it opens, how it ends, and what it waits for (C4). The station moves its frames.

use super::Callsign;
use super::config::{Counters, LinkConfig, RadioParameters, Version};
use super::frame::{Control, Frame, Modulo, Supervisory, Unnumbered};
use super::negotiated::{Negotiated, RememberedPeer, XidAnswer, defaults, offer, unsaid};
use super::receive::Receiver;
use super::station::LinkPhase;
use super::timing::{LEAVING_MAX, RoundTrip};
use super::transmit::Sender;
use super::xid::Parameters;
use super::xid_exchange::XidExchange;
use crate::service::{CloseReason, PacketsIndication, Shares};
use crate::time::{Duration, Instant, Timers};
use bytes::Bytes;
use std::collections::VecDeque;

/// Calls without an answer before the next rung of the ladder is tried; so often the peer is asked what it can do.
pub(super) const CALLS_A_RUNG: u8 = 3;

/// Timers of a link.
#[derive(Clone, Copy)]
pub(super) enum Timer {
    /// T1: an answer is owed to us.
    T1,
    /// T2: an acknowledgement is owed by us.
    T2,
    /// T3: nothing was heard for long.
    T3,
    /// The peer was asked for what is missing, and is silent.
    RejectAgain,
    /// The peer may ask for more.
    CollectRejects,
    /// TM201: the peer is to say what it can do.
    Tm201,
}

/// With what a call is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetupStep {
    /// SABME.
    Sabme,
    /// XID, for stations of version 2.2 that count to eight.
    Xid,
    /// SABM.
    Sabm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It calls (1, 5).
    AwaitingConnection(SetupStep),
    /// It called more than once, and one call is answered. What comes may still belong to an answer before the last: the
    /// link stands when the peer has answered a question asked now.
    AwaitingConfirmation(SetupStep),
    /// It stands (3, 4).
    Connected,
    /// DISC is out (2).
    AwaitingRelease,
    /// Over.
    Disconnected,
}

/// A frame that a link sends, without its address.
#[derive(Debug)]
pub(super) struct OutgoingFrame {
    pub(super) command: bool,
    pub(super) control: Control,
    pub(super) pid: u8,
    pub(super) information: Bytes,
    pub(super) shares: Shares,
    /// When it has left, the link waits for an answer.
    pub(super) awaits: bool,
}

impl OutgoingFrame {
    pub(super) fn unnumbered(
        command: bool,
        function: Unnumbered,
        poll_final: bool,
        information: Bytes,
    ) -> Self {
        let control = Control::Unnumbered { function, poll_final };
        let (awaits, shares) = (command && poll_final, Shares::default());
        OutgoingFrame { command, control, pid: 0, information, shares, awaits }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: Callsign,
    /// The way to the peer.
    pub(super) path: Vec<Callsign>,
    pub(super) config: LinkConfig,
    pub(super) radio: RadioParameters,
    pub(super) state: State,
    pub(super) agreed: Negotiated,
    pub(super) known: Option<RememberedPeer>,
    pub(super) question: XidExchange,
    pub(super) timers: Timers<6>,
    /// Tries without an answer (RC).
    pub(super) retry_count: u8,
    /// Times that T1 was begun anew by what was heard.
    pub(super) t1_extensions: u8,
    /// Calls that went out since the last answer that refused one.
    unanswered_calls: u8,
    /// The peer has answered a question asked after the call.
    pub(super) is_confirmed: bool,
    /// The peer was heard to use the link as it stands.
    peer_was_heard: bool,
    /// The longest packet and the best that the user was told of, bytes; 0: it was not told yet.
    pub(super) announced_bytes: (u32, u32),
    pub(super) round_trip: RoundTrip,
    /// Frames that wait for an answer, and have not left.
    pub(super) leaving: u32,
    /// They were said to have left before they can have.
    pub(super) transmit_reports_come_early: bool,
    /// Nobody seems to say when they have left.
    pub(super) transmit_reports_are_missing: bool,
    /// The place of the last of them in all that was handed down.
    pub(super) awaited: Duration,
    /// The place up to which frames had left, at the most, when the frame began that is being heard.
    pub(super) gone: Duration,
    /// The same where nothing leaves in a gap shorter than TXDELAY.
    pub(super) keyed: Duration,
    /// Frames were acknowledged before they can have left: the channel is not as this side was told, and `gone` says nothing.
    pub(super) acknowledged_before_transmission: bool,
    /// The last key-up that waits for an answer, frames and bytes: digipeaters repeat all of it before an answer comes.
    pub(super) burst: (u64, u64),
    /// Unnumbered frames to be sent.
    controls: VecDeque<OutgoingFrame>,
    /// The user wants it closed when all is acknowledged.
    closing: bool,
    /// It is over, and its user is told when its last answer has left: whoever hears of the end may take the controller away.
    close_reason_pending: Option<CloseReason>,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) indications: VecDeque<PacketsIndication>,
    pub(super) counters: Counters,
}

impl Link {
    fn new(
        peer: Callsign,
        path: Vec<Callsign>,
        config: LinkConfig,
        radio: RadioParameters,
        state: State,
    ) -> Self {
        let agreed = defaults(&config, Modulo::Eight);
        Link {
            sender: Sender::default(),
            receiver: Receiver::default(),
            peer,
            path,
            config,
            radio,
            state,
            agreed,
            known: None,
            question: XidExchange::Done,
            timers: Timers::new(),
            retry_count: 0,
            t1_extensions: 0,
            unanswered_calls: 0,
            is_confirmed: false,
            peer_was_heard: false,
            announced_bytes: (0, 0),
            round_trip: RoundTrip::default(),
            leaving: 0,
            transmit_reports_come_early: false,
            transmit_reports_are_missing: false,
            awaited: Duration::ZERO,
            gone: Duration::ZERO,
            keyed: Duration::ZERO,
            acknowledged_before_transmission: false,
            burst: (0, 0),
            controls: VecDeque::new(),
            closing: false,
            close_reason_pending: None,
            indications: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// A link that calls its peer.
    pub(super) fn call(
        peer: Callsign,
        path: Vec<Callsign>,
        config: LinkConfig,
        radio: RadioParameters,
        known: Option<RememberedPeer>,
    ) -> Self {
        let rung = match (config.version, &known) {
            (Version::Plain, _) => SetupStep::Sabm,
            (Version::Extended, _) => SetupStep::Sabme,
            (Version::Best, Some(RememberedPeer { modulo: Modulo::Eight, identity })) => match identity {
                XidAnswer::Parameters(_) => SetupStep::Xid,
                XidAnswer::None | XidAnswer::Refused => SetupStep::Sabm,
            },
            (Version::Best, _) => SetupStep::Sabme,
        };
        let mut link = Link::new(peer, path, config, radio, State::AwaitingConnection(rung));
        link.known = known;
        link.climb(rung);
        link
    }

    /// A link that the peer opened with SABM or SABME; its answer waits to be sent.
    pub(super) fn answer(
        peer: Callsign,
        path: Vec<Callsign>,
        config: LinkConfig,
        radio: RadioParameters,
        modulo: Modulo,
        poll: bool,
        offered: Option<&Parameters>,
    ) -> Self {
        let mut link = Link::new(peer, path, config, radio, State::Connected);
        link.agreed = defaults(&link.config, modulo);
        if let Some(offered) = offered {
            link.agree(offered);
        }
        link.control(false, Unnumbered::Acknowledge, poll);
        link.connected();
        link
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Disconnected
    }

    /// Nothing remains to be sent or said.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed() && self.controls.is_empty() && self.is_told()
    }

    /// Its user knows all there is to know of it.
    pub(super) fn is_told(&self) -> bool {
        self.indications.is_empty() && self.close_reason_pending.is_none()
    }

    /// The user is told of the end, whether the last answer has left or not.
    pub(super) fn tell_end(&mut self) {
        self.indications.extend(self.close_reason_pending.take().map(PacketsIndication::Closed));
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state == State::Connected
    }

    /// How far it is; none: it is over.
    pub(super) fn phase(&self) -> Option<LinkPhase> {
        match self.state {
            State::AwaitingConnection(_) | State::AwaitingConfirmation(_) => Some(LinkPhase::Connecting),
            State::Connected => Some(LinkPhase::Connected),
            State::AwaitingRelease => Some(LinkPhase::Disconnecting),
            State::Disconnected => self.close_reason_pending.map(|_| LinkPhase::Disconnecting),
        }
    }

    /// Tries without an answer.
    pub(super) fn tries(&self) -> u8 {
        self.retry_count
    }

    /// The user may send.
    pub(super) fn carries(&self) -> bool {
        self.state == State::Connected && !self.closing
    }

    /// It stands, and the peer may not know it yet: nothing that it has said shows that it does.
    fn is_fresh(&self) -> bool {
        self.is_connected() && !self.peer_was_heard
    }

    /// It has called, and nobody knows what became of it: an answer may still come.
    pub(super) fn has_called_in_vain(&self) -> bool {
        self.unanswered_calls > 0
    }

    /// Calls before this link's may still be answered.
    pub(super) fn suspect(&mut self) {
        self.unanswered_calls = self.unanswered_calls.saturating_add(1);
    }

    /// What waits for the channel is said no more.
    pub(super) fn fall_silent(&mut self) {
        self.controls.clear();
        self.tell_end();
    }

    /// It is fresh, nothing waits to be sent, and all is as it is before anything is asked or agreed.
    fn is_blank(&self) -> bool {
        self.is_fresh()
            && self.sender.is_done()
            && !self.question.is_open()
            && self.agreed == defaults(&self.config, self.agreed.modulo)
    }

    pub(super) fn climb(&mut self, rung: SetupStep) {
        self.state = State::AwaitingConnection(rung);
        self.retry_count = 0;
        self.agreed =
            defaults(&self.config, if rung == SetupStep::Sabme { Modulo::Extended } else { Modulo::Eight });
        self.call_again(rung);
    }

    fn call_again(&mut self, rung: SetupStep) {
        self.unanswered_calls = self.unanswered_calls.saturating_add(u8::from(rung != SetupStep::Xid));
        match rung {
            SetupStep::Sabme => self.control(true, Unnumbered::SetModeExtended, true),
            SetupStep::Xid => self.identify(),
            SetupStep::Sabm => self.control(true, Unnumbered::SetMode, true),
        }
    }

    /// The peer refuses this rung, or is silent on it.
    fn next_rung(&mut self, rung: SetupStep, silent: bool) -> bool {
        if !silent {
            self.unanswered_calls = 0;
        }
        if self.config.version != Version::Best {
            return false;
        }
        match rung {
            // Who is silent may be gone: one question less.
            SetupStep::Sabme if silent => self.climb(SetupStep::Sabm),
            SetupStep::Sabme => self.climb(SetupStep::Xid),
            SetupStep::Xid => self.climb(SetupStep::Sabm),
            SetupStep::Sabm => return false,
        }
        true
    }

    fn control(&mut self, command: bool, function: Unnumbered, poll_final: bool) {
        self.say(command, function, poll_final, Bytes::new());
    }

    pub(super) fn say(&mut self, command: bool, function: Unnumbered, poll_final: bool, information: Bytes) {
        /// Answers that wait for the channel; a flood of commands gets no more.
        const CONTROLS_MAX: usize = 4;
        if self.controls.len() >= CONTROLS_MAX {
            self.counters.violations += 1;
            return;
        }
        self.controls.push_back(OutgoingFrame::unnumbered(command, function, poll_final, information));
    }

    /// What this side can do, as XID says it.
    pub(super) fn offer(&self) -> Parameters {
        offer(&self.config, &self.radio, self.agreed.modulo)
    }

    pub(super) fn awaits_answer(&self) -> bool {
        match self.state {
            State::AwaitingConnection(_) | State::AwaitingConfirmation(_) | State::AwaitingRelease => true,
            State::Connected => self.sender.awaits_answer(),
            State::Disconnected => self.close_reason_pending.is_some(),
        }
    }

    pub(super) fn close(&mut self, reason: CloseReason) {
        if self.state == State::Disconnected {
            return;
        }
        self.state = State::Disconnected;
        self.timers.stop_all();
        self.indications.push_back(PacketsIndication::Closed(reason));
    }

    /// The user closes it: when all is acknowledged, or at once.
    pub(super) fn user_closes(&mut self, now: Instant, at_once: bool) {
        match self.state {
            State::AwaitingConnection(_) | State::AwaitingConfirmation(_) => {
                self.control(false, Unnumbered::DisconnectedMode, true);
                self.close(CloseReason::Aborted);
            }
            State::Connected if at_once => {
                self.sender.drop_all();
                self.release();
            }
            State::Connected => self.closing = true,
            State::AwaitingRelease if at_once => self.close(CloseReason::Aborted),
            State::AwaitingRelease | State::Disconnected => {}
        }
        self.settle(now);
    }

    fn release(&mut self) {
        self.state = State::AwaitingRelease;
        self.retry_count = 0;
        self.drop_question();
        self.timers.stop_all();
        self.control(true, Unnumbered::Disconnect, true);
    }

    /// Goes on to what can begin now.
    pub(super) fn settle(&mut self, now: Instant) {
        let unwatched = self.timers.get(Timer::T1 as usize).is_none();
        if unwatched && self.awaits_answer() && (self.leaving > 0 || !self.wants_air()) {
            // It leaves now; or the peer is busy, or has not said how far it is; or what would have asked it found no place
            // to wait.
            self.wait(now);
        }
        self.watch_question(now, false);
        if self.closing && self.state == State::Connected && self.sender.is_done() {
            self.closing = false;
            self.release();
        }
        let asks_again = self.is_connected()
            && self.receiver.awaits_more()
            && self.receiver.asked_again() < self.agreed.retries;
        if !asks_again {
            self.timers.stop(Timer::RejectAgain as usize);
        } else if self.timers.get(Timer::RejectAgain as usize).is_none() {
            self.timers.set(Timer::RejectAgain as usize, now + self.silence());
        }
    }

    /// A frame of this link came; when it began, frames had left up to the place `gone`, at the most, or up to `keyed`, if
    /// TXDELAY is as long as it is said to be.
    pub(super) fn hear(&mut self, now: Instant, frame: &Frame, (gone, keyed): (Duration, Duration)) {
        (self.gone, self.keyed) = if self.acknowledged_before_transmission {
            (Duration::MAX, Duration::MAX)
        } else {
            (gone, keyed)
        };
        if !self.is_closed() {
            self.heard(now);
        }
        match frame.control {
            Control::Unnumbered { function, poll_final } => {
                self.hear_unnumbered(now, frame, function, poll_final);
            }
            Control::Supervisory { receive: 0, poll_final: true, .. }
                if matches!(self.state, State::AwaitingConfirmation(_)) && !frame.is_command() =>
            {
                self.settled(now);
            }
            _ if !self.is_connected() => {
                let asked = frame.is_command() && frame.control.poll_final();
                match self.state {
                    // 6.3.4: who still sends is told that the link is being closed.
                    State::AwaitingRelease if asked => {
                        self.control(false, Unnumbered::DisconnectedMode, true)
                    }
                    // Both called more than once: each answers the other's question.
                    State::AwaitingConfirmation(_)
                        if asked && matches!(frame.control, Control::Supervisory { .. }) =>
                    {
                        self.receiver.owe_final();
                    }
                    _ => {}
                }
            }
            Control::Information { send, receive, poll } => {
                self.peer_was_heard = true;
                if self.hear_number(now, receive) {
                    self.hear_information(now, frame, send, poll);
                }
            }
            Control::Supervisory { function, receive, poll_final } => {
                self.peer_was_heard = true;
                self.hear_supervisory(now, frame, function, receive, poll_final);
            }
        }
        self.settle(now);
    }

    fn hear_unnumbered(&mut self, now: Instant, frame: &Frame, function: Unnumbered, poll_final: bool) {
        match (function, self.state) {
            (Unnumbered::SetMode | Unnumbered::SetModeExtended, _) => {
                self.hear_call(now, function, poll_final);
            }
            (Unnumbered::Disconnect, State::AwaitingConnection(_) | State::AwaitingConfirmation(_)) => {
                self.control(false, Unnumbered::DisconnectedMode, poll_final);
            }
            (Unnumbered::Disconnect, _) => self.hang_up(now, poll_final),
            (Unnumbered::Acknowledge, State::AwaitingConnection(rung))
                if poll_final && rung != SetupStep::Xid =>
            {
                self.agreed_to_open(now, rung);
            }
            // The answer to a call before the last.
            (Unnumbered::Acknowledge, State::AwaitingConfirmation(_)) => {}
            (Unnumbered::Acknowledge | Unnumbered::DisconnectedMode, State::AwaitingRelease)
                if poll_final =>
            {
                self.answered(now);
                self.close(CloseReason::Finished);
            }
            (
                Unnumbered::DisconnectedMode,
                State::AwaitingConnection(rung) | State::AwaitingConfirmation(rung),
            ) if poll_final => {
                self.answered(now);
                if !self.next_rung(rung, false) {
                    self.close(CloseReason::Refused);
                }
            }
            (
                Unnumbered::FrameReject,
                State::AwaitingConnection(rung) | State::AwaitingConfirmation(rung),
            ) => {
                self.answered(now);
                if !self.next_rung(rung, false) {
                    self.close(CloseReason::Refused);
                }
            }
            (Unnumbered::FrameReject, State::Connected) if self.question.is_asked() => {
                self.question_refused()
            }
            (Unnumbered::DisconnectedMode, State::Connected) => self.close(CloseReason::Reset),
            // The answer to the call comes twice, and nothing was said since.
            (Unnumbered::Acknowledge, State::Connected)
                if self.question.is_open() && self.is_fresh() && self.sender.outstanding() == 0 =>
            {
                self.counters.violations += 1;
            }
            // The peer and this side no longer agree: what is on its way may be lost or come twice.
            (Unnumbered::FrameReject, State::Connected) => self.broken(),
            // Of two calls, the first was not this link's: the next link looks closer.
            (Unnumbered::Acknowledge, State::Connected) => {
                self.suspect();
                self.broken();
            }
            (Unnumbered::ExchangeIdentification, _) => self.hear_identification(now, frame, poll_final),
            (Unnumbered::Test, _) if frame.is_command() => {
                self.say(false, Unnumbered::Test, poll_final, frame.information.clone());
            }
            (Unnumbered::Information, state) if frame.is_command() && poll_final => match state {
                // 4.3.3.6: there is no link yet, or none any more (C4.2, C4.3, C4.6).
                State::AwaitingConnection(_) | State::AwaitingRelease => {
                    self.control(false, Unnumbered::DisconnectedMode, true);
                }
                // Where it is settling, the peer has agreed to it.
                State::AwaitingConfirmation(_) | State::Connected => self.receiver.owe_final(),
                State::Disconnected => {}
            },
            (Unnumbered::Information, _) => {}
            _ => self.counters.violations += 1,
        }
    }

    /// DISC: there is no more to say than UA.
    fn hang_up(&mut self, now: Instant, poll: bool) {
        self.controls.clear();
        let out = OutgoingFrame::unnumbered(false, Unnumbered::Acknowledge, poll, Bytes::new());
        self.controls.push_back(OutgoingFrame { awaits: true, ..out });
        self.state = State::Disconnected;
        self.timers.stop_all();
        self.timers.set(Timer::T1 as usize, now + LEAVING_MAX);
        self.close_reason_pending = Some(CloseReason::Finished);
    }

    /// SABM or SABME on a link that is there (6.3.6.2, 6.5).
    fn hear_call(&mut self, now: Instant, function: Unnumbered, poll: bool) {
        let modulo = if function == Unnumbered::SetMode { Modulo::Eight } else { Modulo::Extended };
        match self.state {
            // Both call: each agrees, and waits for the other to. Who calls with less is the measure.
            State::AwaitingConnection(rung) | State::AwaitingConfirmation(rung) => match (rung, modulo) {
                (SetupStep::Sabme, Modulo::Eight) => {
                    self.acknowledge_call(poll);
                    self.agreed = defaults(&self.config, modulo);
                    self.answered(now);
                    self.open(now);
                }
                (SetupStep::Xid | SetupStep::Sabm, Modulo::Extended) => {}
                _ => self.acknowledge_call(poll),
            },
            // The answer was lost, or comes later than the peer waits for it.
            State::Connected if self.is_fresh() && self.agreed.modulo == modulo => {
                self.acknowledge_call(poll);
            }
            // It came down to less before anything was carried or agreed.
            State::Connected if self.is_blank() => {
                self.agreed = defaults(&self.config, modulo);
                self.control(false, Unnumbered::Acknowledge, poll);
            }
            // The peer has begun anew, and knows nothing of what was. The station opens its new link.
            State::Connected => {
                self.counters.resets += 1;
                self.close(CloseReason::Reset);
            }
            State::AwaitingRelease | State::Disconnected => {
                self.control(false, Unnumbered::DisconnectedMode, poll);
            }
        }
    }

    /// One answer is enough for as many calls as came before it could be sent.
    fn acknowledge_call(&mut self, poll: bool) {
        let control = Control::Unnumbered { function: Unnumbered::Acknowledge, poll_final: poll };
        if !self.controls.iter().any(|out| out.control == control) {
            self.control(false, Unnumbered::Acknowledge, poll);
        }
    }

    fn agreed_to_open(&mut self, now: Instant, rung: SetupStep) {
        self.answered(now);
        if self.unanswered_calls > 1 {
            // The peer may have begun anew with each call, and what it has sent since the first is none of this link's.
            self.state = State::AwaitingConfirmation(rung);
            self.sender.probe();
        } else {
            self.stand(now, rung);
        }
    }

    /// The peer has answered a question that it heard after the last call: from here on both mean the same link.
    fn settled(&mut self, now: Instant) {
        let State::AwaitingConfirmation(rung) = self.state else { return };
        self.answered(now);
        self.is_confirmed = true;
        self.sender.begin();
        self.stand(now, rung);
    }

    fn stand(&mut self, now: Instant, rung: SetupStep) {
        self.peer_was_heard = core::mem::take(&mut self.unanswered_calls) > 1;
        if rung == SetupStep::Sabme {
            self.expect_of_the_peer(now);
        }
        self.open(now);
    }

    fn expect_of_the_peer(&mut self, now: Instant) {
        let identity = self.known.as_ref().map(|known| known.identity.clone()).unwrap_or_default();
        match identity {
            XidAnswer::Refused => return,
            XidAnswer::None => self.agreed = unsaid(&self.config),
            XidAnswer::Parameters(theirs) => self.agree(&theirs),
        }
        self.plan_question(now);
    }

    fn open(&mut self, now: Instant) {
        self.state = State::Connected;
        let identity = self.known.take().map(|known| known.identity).unwrap_or_default();
        self.known = Some(RememberedPeer { modulo: self.agreed.modulo, identity });
        self.timers.set(Timer::T3 as usize, now + self.config.idle_probe);
        self.connected();
    }

    /// Both sides no longer agree on what was sent (J, K of C4): going on would lose or repeat packets unseen.
    pub(super) fn broken(&mut self) {
        self.counters.violations += 1;
        self.counters.resets += 1;
        self.control(false, Unnumbered::DisconnectedMode, false);
        self.close(CloseReason::Reset);
    }

    /// The time has come; `leaves_by`: see [`Link::waited`].
    pub(super) fn handle_timeout(&mut self, now: Instant, busy: bool, leaves_by: Option<Instant>) {
        if self.timers.expire(Timer::T2 as usize, now) {
            self.receiver.peer_waits();
        }
        // What has been gathered is sent.
        if self.timers.expire(Timer::CollectRejects as usize, now) {
            self.hear_doubtful(now);
        }
        if self.timers.expire(Timer::RejectAgain as usize, now) && !busy {
            self.receiver.ask_again();
        }
        if self.timers.expire(Timer::T3 as usize, now)
            && self.state == State::Connected
            && !self.awaits_answer()
        {
            self.sender.probe();
        }
        if self.timers.expire(Timer::Tm201 as usize, now) {
            self.question_times_out(now, busy, leaves_by);
        }
        if self.timers.expire(Timer::T1 as usize, now) {
            self.waited(now, busy, leaves_by);
        }
        self.settle(now);
    }

    /// No answer has come in time.
    pub(super) fn unanswered(&mut self) {
        let silent = self.retry_count > self.agreed.retries;
        match self.state {
            State::AwaitingConnection(rung) if self.retry_count >= CALLS_A_RUNG => {
                if !self.next_rung(rung, true) {
                    match silent {
                        true => self.close(CloseReason::TimedOut),
                        false => self.call_again(rung),
                    }
                }
            }
            State::AwaitingConnection(_) | State::AwaitingConfirmation(_) if silent => {
                self.close(CloseReason::TimedOut)
            }
            State::AwaitingConnection(rung) => self.call_again(rung),
            State::AwaitingConfirmation(_) => self.sender.probe(),
            State::AwaitingRelease if silent => self.close(CloseReason::TimedOut),
            State::AwaitingRelease => self.control(true, Unnumbered::Disconnect, true),
            State::Connected if silent => {
                self.control(false, Unnumbered::DisconnectedMode, false);
                self.close(CloseReason::TimedOut);
            }
            State::Connected => self.sender.probe(),
            State::Disconnected => self.tell_end(),
        }
    }

    /// The numbers of I and S frames move on (V(A)); T1 goes with them.
    pub(super) fn progressed(&mut self, now: Instant, final_heard: bool) {
        if final_heard {
            self.answered(now);
        } else {
            self.retry_count = 0;
        }
        if !self.sender.awaits_answer() {
            self.timers.stop(Timer::T1 as usize);
        }
    }

    /// The frame that was made last is handed down, and gets its place.
    pub(super) fn handed(&mut self, control: Control, place: Duration) {
        if let Control::Supervisory { function: Supervisory::Reject, .. } = control {
            self.receiver.rejects_at(place);
        }
        self.sender.handed(control, place);
    }

    /// It has something for the air.
    pub(super) fn wants_air(&self) -> bool {
        !self.controls.is_empty()
            || self.question_wants_air()
            || (self.state == State::Connected && self.wants_numbered())
            || (matches!(self.state, State::AwaitingConfirmation(_)) && self.wants_numbered())
    }

    /// The next frame for the air; `more` says whether the key-up has time for another behind it.
    pub(super) fn next_frame(&mut self, more: impl Fn(u64) -> bool) -> Option<OutgoingFrame> {
        let out = match self.controls.pop_front().or_else(|| self.question()) {
            Some(out) => out,
            None if matches!(self.state, State::Connected | State::AwaitingConfirmation(_)) => {
                self.next_numbered(more)?
            }
            None => return None,
        };
        if out.awaits {
            // Nobody answers before it has left: T1 begins then, and `settle` sees to it that it does begin.
            self.leaving += 1;
            self.timers.stop(Timer::T1 as usize);
        }
        Some(out)
    }

    /// The longest information field that its next frame may have, bytes.
    pub(super) fn next_bytes_max(&self) -> u32 {
        match self.controls.front() {
            Some(out) => out.information.len() as u32,
            None => self.agreed.information_bytes_max,
        }
    }

    /// Bytes of information fields that it keeps.
    pub(super) fn held_bytes(&self) -> u64 {
        self.sender.held_bytes() + self.receiver.held_bytes()
    }

    /// When it wants to be woken.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }
}
