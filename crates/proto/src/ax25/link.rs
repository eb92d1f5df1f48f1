//! One link: its setup, its release and its timers (C4). The station transmits its frames.

use super::Callsign;
use super::config::{Counters, LinkConfig, PeerStation, RadioParameters, Version};
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

/// Unanswered connection requests before the next setup step; also the maximum number of XID commands.
pub(super) const CALLS_A_RUNG: u8 = 3;

/// Timers of a link.
#[derive(Clone, Copy)]
pub(super) enum Timer {
    /// T1: an answer of the peer is outstanding.
    T1,
    /// T2: an acknowledgement to the peer is due.
    T2,
    /// T3: nothing was received for a long time.
    T3,
    /// The request for missing frames is unanswered.
    RejectAgain,
    /// The peer may request further frames.
    CollectRejects,
    /// TM201: the answer to XID is outstanding.
    Tm201,
}

/// Step of the link setup, by the frame that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetupStep {
    /// SABME.
    Sabme,
    /// XID, for stations of version 2.2 with modulo 8.
    Xid,
    /// SABM.
    Sabm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// SABM, SABME or XID is sent (1, 5).
    AwaitingConnection(SetupStep),
    /// More than one connection request was sent, and one is answered. Further frames may still belong to an earlier
    /// request: the link is established when the peer has answered a poll sent now.
    AwaitingConfirmation(SetupStep),
    /// The link is established (3, 4).
    Connected,
    /// DISC is sent (2).
    AwaitingRelease,
    /// The link is over.
    Disconnected,
}

/// A frame of a link, without its address.
#[derive(Debug)]
pub(super) struct OutgoingFrame {
    pub(super) command: bool,
    pub(super) control: Control,
    pub(super) pid: u8,
    pub(super) information: Bytes,
    pub(super) shares: Shares,
    /// True if the link waits for an answer after the frame has left.
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

/// The state of one link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: Callsign,
    /// Path to the peer.
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
    /// Number of times that received frames restarted T1.
    pub(super) t1_extensions: u8,
    /// Connection requests (SABM, SABME) sent since the last refusal.
    unanswered_calls: u8,
    /// True if this station waits longer for the answer to a repeated connection request than the peer does. Two stations that
    /// call each other at the same time do not hear each other, and would repeat that for ever with the same waits.
    pub(super) yields: bool,
    /// True after this station has answered a connection request of the peer while it waits for the answer to its own.
    calls_crossed: bool,
    /// True after the peer has answered a poll sent after the connection request.
    pub(super) is_confirmed: bool,
    /// True after the peer has sent a frame on the established link.
    peer_was_heard: bool,
    /// Maximum and best packet sizes announced to the user, bytes; 0 before the first announcement.
    pub(super) announced_bytes: (u32, u32),
    pub(super) round_trip: RoundTrip,
    /// Number of frames that wait for an answer and have not left.
    pub(super) leaving: u32,
    /// True if frames were reported as transmitted before they can have left.
    pub(super) transmit_reports_come_early: bool,
    /// True if the reports of transmitted frames seem to be missing.
    pub(super) transmit_reports_are_missing: bool,
    /// Position of the last frame that awaits an answer in all output, as time on the channel.
    pub(super) awaited: Duration,
    /// Upper bound of the position up to which output had left when the frame now received began.
    pub(super) gone: Duration,
    /// The same bound if nothing leaves in a gap shorter than TXDELAY.
    pub(super) keyed: Duration,
    /// True if frames were acknowledged before they can have left: the channel differs from its settings, and `gone` is
    /// meaningless.
    pub(super) acknowledged_before_transmission: bool,
    /// Frames and bytes of the last key-up that awaits an answer: digipeaters repeat all of it before an answer comes.
    pub(super) burst: (u64, u64),
    /// Unnumbered frames to send.
    controls: VecDeque<OutgoingFrame>,
    /// True if the user closes the link once everything is acknowledged.
    closing: bool,
    /// Reason for the end of the link, until its last answer has left and the user is informed: a user that knows of
    /// the end may remove the controller.
    close_reason_pending: Option<CloseReason>,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) indications: VecDeque<PacketsIndication>,
    pub(super) counters: Counters,
}

impl Link {
    fn new(peer: PeerStation, radio: RadioParameters, state: State) -> Self {
        let PeerStation { station: peer, path, link: config } = peer;
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
            yields: false,
            calls_crossed: false,
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

    /// Creates a link that connects to its peer.
    pub(super) fn call(
        own: Callsign,
        peer: PeerStation,
        radio: RadioParameters,
        known: Option<RememberedPeer>,
    ) -> Self {
        let yields = own > peer.station;
        let rung = match (peer.link.version, &known) {
            (Version::Plain, _) => SetupStep::Sabm,
            (Version::Extended, _) => SetupStep::Sabme,
            (Version::Best, Some(RememberedPeer { modulo: Modulo::Eight, identity })) => match identity {
                XidAnswer::Parameters(_) => SetupStep::Xid,
                XidAnswer::None | XidAnswer::Refused => SetupStep::Sabm,
            },
            (Version::Best, _) => SetupStep::Sabme,
        };
        let mut link = Link::new(peer, radio, State::AwaitingConnection(rung));
        (link.known, link.yields) = (known, yields);
        link.climb(rung);
        link
    }

    /// Creates a link that the peer requested with SABM or SABME; the answer waits for transmission.
    pub(super) fn answer(
        peer: PeerStation,
        radio: RadioParameters,
        modulo: Modulo,
        poll: bool,
        offered: Option<&Parameters>,
    ) -> Self {
        let mut link = Link::new(peer, radio, State::Connected);
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

    /// Returns true if no frame and no indication is left.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed() && self.controls.is_empty() && self.is_told()
    }

    /// Returns true if the user has received all indications.
    pub(super) fn is_told(&self) -> bool {
        self.indications.is_empty() && self.close_reason_pending.is_none()
    }

    /// Informs the user of the end, even if the last answer has not left.
    pub(super) fn tell_end(&mut self) {
        self.indications.extend(self.close_reason_pending.take().map(PacketsIndication::Closed));
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state == State::Connected
    }

    /// Returns the phase of the link; `None` if it is over.
    pub(super) fn phase(&self) -> Option<LinkPhase> {
        match self.state {
            State::AwaitingConnection(_) | State::AwaitingConfirmation(_) => Some(LinkPhase::Connecting),
            State::Connected => Some(LinkPhase::Connected),
            State::AwaitingRelease => Some(LinkPhase::Disconnecting),
            State::Disconnected => self.close_reason_pending.map(|_| LinkPhase::Disconnecting),
        }
    }

    /// Returns the number of tries without an answer.
    pub(super) fn tries(&self) -> u8 {
        self.retry_count
    }

    /// Returns true if the user may send.
    pub(super) fn carries(&self) -> bool {
        self.state == State::Connected && !self.closing
    }

    /// Returns true if the link is established but no frame of the peer shows that it knows so.
    fn is_fresh(&self) -> bool {
        self.is_connected() && !self.peer_was_heard
    }

    /// Returns true if a connection request is unanswered: an answer may still come.
    pub(super) fn has_called_in_vain(&self) -> bool {
        self.unanswered_calls > 0
    }

    /// Notes that earlier connection requests may still be answered.
    pub(super) fn suspect(&mut self) {
        self.unanswered_calls = self.unanswered_calls.saturating_add(1);
    }

    /// Drops the frames that wait for the channel.
    pub(super) fn fall_silent(&mut self) {
        self.controls.clear();
        self.tell_end();
    }

    /// Returns true if the link is fresh, has nothing to send, and has its default parameters, without any negotiation.
    fn is_blank(&self) -> bool {
        self.is_fresh()
            && self.sender.is_done()
            && !self.question.is_open()
            && self.agreed == defaults(&self.config, self.agreed.modulo)
    }

    pub(super) fn climb(&mut self, rung: SetupStep) {
        self.state = State::AwaitingConnection(rung);
        self.calls_crossed = false;
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

    /// Tries the next setup step after a refusal, or after no answer. Returns false if there is none.
    fn next_rung(&mut self, rung: SetupStep, silent: bool) -> bool {
        if !silent {
            self.unanswered_calls = 0;
        }
        if self.config.version != Version::Best {
            return false;
        }
        match rung {
            // A peer that does not answer may be out of reach: this saves the XID step.
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
        /// Maximum waiting answers; further commands of a flood get none.
        const CONTROLS_MAX: usize = 4;
        if self.controls.len() >= CONTROLS_MAX {
            self.counters.violations += 1;
            return;
        }
        self.controls.push_back(OutgoingFrame::unnumbered(command, function, poll_final, information));
    }

    /// Returns this side's parameters for XID.
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

    /// Closes the link for the user: once everything is acknowledged, or at once.
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

    /// Starts timers and the release if their conditions hold.
    pub(super) fn settle(&mut self, now: Instant) {
        let unwatched = self.timers.get(Timer::T1 as usize).is_none();
        if unwatched && self.awaits_answer() && (self.leaving > 0 || !self.wants_air()) {
            // The frame leaves now; or the peer is busy or has not acknowledged; or there was no space in the queue for
            // the frame that would poll the peer.
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

    /// Handles a frame of this link. When it began, output had left up to the position `gone` at most, or up to `keyed`
    /// if TXDELAY is as long as configured.
    pub(super) fn hear(&mut self, now: Instant, frame: &Frame, (gone, keyed): (Duration, Duration)) {
        (self.gone, self.keyed) = if self.acknowledged_before_transmission {
            (Duration::MAX, Duration::MAX)
        } else {
            (gone, keyed)
        };
        if !self.is_closed() {
            self.heard(now);
        }
        // Such a frame shows that the peer has the answer to its request. It waits for nothing else, so its answer to this side's
        // request, which was lost, is not waited for.
        if let State::AwaitingConnection(rung) = self.state
            && self.calls_crossed
            && !matches!(frame.control, Control::Unnumbered { .. })
        {
            self.agreed_to_open(now, rung);
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
                    // 6.3.4: a peer that still sends is informed that the link is being closed.
                    State::AwaitingRelease if asked => {
                        self.control(false, Unnumbered::DisconnectedMode, true)
                    }
                    // Both sides sent more than one connection request: each answers the other's poll.
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
            // This is the answer to an earlier connection request.
            (Unnumbered::Acknowledge, State::AwaitingConfirmation(_)) => {}
            (Unnumbered::Acknowledge | Unnumbered::DisconnectedMode, State::AwaitingRelease)
                if poll_final =>
            {
                self.answered(now);
                self.close(CloseReason::Finished);
            }
            (
                Unnumbered::DisconnectedMode | Unnumbered::FrameReject,
                State::AwaitingConnection(rung) | State::AwaitingConfirmation(rung),
            ) if poll_final || function == Unnumbered::FrameReject => {
                self.answered(now);
                if !self.next_rung(rung, false) {
                    self.close(CloseReason::Refused);
                }
            }
            (Unnumbered::FrameReject, State::Connected) if self.question.is_asked() => {
                self.question_refused()
            }
            (Unnumbered::DisconnectedMode, State::Connected) => self.close(CloseReason::Reset),
            // A duplicate of the answer to the connection request; nothing was sent since.
            (Unnumbered::Acknowledge, State::Connected)
                if self.question.is_open() && self.is_fresh() && self.sender.outstanding() == 0 =>
            {
                self.counters.violations += 1;
            }
            // The two sides no longer agree: frames in flight may be lost or duplicated.
            (Unnumbered::FrameReject, State::Connected) => self.broken(),
            // One of two connection requests was not this link's: the next link confirms its setup.
            (Unnumbered::Acknowledge, State::Connected) => {
                self.suspect();
                self.broken();
            }
            (Unnumbered::ExchangeIdentification, _) => self.hear_identification(now, frame, poll_final),
            (Unnumbered::Test, _) if frame.is_command() => {
                self.say(false, Unnumbered::Test, poll_final, frame.information.clone());
            }
            (Unnumbered::Information, state) if frame.is_command() && poll_final => match state {
                // 4.3.3.6: there is no link yet, or it is being released (C4.2, C4.3, C4.6).
                State::AwaitingConnection(_) | State::AwaitingRelease => {
                    self.control(false, Unnumbered::DisconnectedMode, true);
                }
                // In a link that awaits confirmation the peer has already agreed to it.
                State::AwaitingConfirmation(_) | State::Connected => self.receiver.owe_final(),
                State::Disconnected => {}
            },
            (Unnumbered::Information, _) => {}
            _ => self.counters.violations += 1,
        }
    }

    /// Handles DISC: only UA is still sent.
    fn hang_up(&mut self, now: Instant, poll: bool) {
        self.controls.clear();
        let out = OutgoingFrame::unnumbered(false, Unnumbered::Acknowledge, poll, Bytes::new());
        self.controls.push_back(OutgoingFrame { awaits: true, ..out });
        self.state = State::Disconnected;
        self.timers.stop_all();
        self.timers.set(Timer::T1 as usize, now + LEAVING_MAX);
        self.close_reason_pending = Some(CloseReason::Finished);
    }

    /// Handles SABM or SABME on an existing link (6.3.6.2, 6.5).
    fn hear_call(&mut self, now: Instant, function: Unnumbered, poll: bool) {
        let modulo = if function == Unnumbered::SetMode { Modulo::Eight } else { Modulo::Extended };
        match self.state {
            // Both sides request a connection: each accepts, and waits for the other's answer. The lower version
            // applies.
            State::AwaitingConnection(rung) | State::AwaitingConfirmation(rung) => match (rung, modulo) {
                (SetupStep::Sabme, Modulo::Eight) => {
                    self.acknowledge_call(poll);
                    self.agreed = defaults(&self.config, modulo);
                    self.answered(now);
                    self.open(now);
                }
                (SetupStep::Xid | SetupStep::Sabm, Modulo::Extended) => {}
                _ => {
                    self.acknowledge_call(poll);
                    self.calls_crossed = true;
                }
            },
            // The answer was lost, or arrives after the peer's timeout.
            State::Connected if self.is_fresh() && self.agreed.modulo == modulo => {
                self.acknowledge_call(poll);
            }
            // The peer fell back to a lower version before anything was carried or negotiated.
            State::Connected if self.is_blank() => {
                self.agreed = defaults(&self.config, modulo);
                self.control(false, Unnumbered::Acknowledge, poll);
            }
            // The peer has restarted and has no state of the link. The station opens its new link.
            State::Connected => {
                self.counters.resets += 1;
                self.close(CloseReason::Reset);
            }
            State::AwaitingRelease | State::Disconnected => {
                self.control(false, Unnumbered::DisconnectedMode, poll);
            }
        }
    }

    /// Queues UA. One answer is enough for all connection requests that arrive before it is sent.
    fn acknowledge_call(&mut self, poll: bool) {
        let control = Control::Unnumbered { function: Unnumbered::Acknowledge, poll_final: poll };
        if !self.controls.iter().any(|out| out.control == control) {
            self.control(false, Unnumbered::Acknowledge, poll);
        }
    }

    fn agreed_to_open(&mut self, now: Instant, rung: SetupStep) {
        self.answered(now);
        if self.unanswered_calls > 1 {
            // The peer may have restarted the link with each request, and frames sent since the first are not of this
            // link.
            self.state = State::AwaitingConfirmation(rung);
            self.sender.probe();
        } else {
            self.stand(now, rung);
        }
    }

    /// Handles the answer to the poll after the last connection request: both sides now have the same link.
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

    /// Resets the link because both sides no longer agree on the frames sent (J, K of C4): otherwise packets would be
    /// lost or duplicated without notice.
    pub(super) fn broken(&mut self) {
        self.counters.violations += 1;
        self.counters.resets += 1;
        self.control(false, Unnumbered::DisconnectedMode, false);
        self.close(CloseReason::Reset);
    }

    /// Handles expired timers. [`Link::waited`] explains `leaves_by`.
    pub(super) fn handle_timeout(&mut self, now: Instant, busy: bool, leaves_by: Option<Instant>) {
        if self.timers.expire(Timer::T2 as usize, now) {
            self.receiver.peer_waits();
        }
        // The collection of requests is over: retransmissions may be sent.
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

    /// Handles the expiry of T1 without an answer.
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

    /// Notes progress of the acknowledged sequence number V(A), and updates T1.
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

    /// Notes the position of the frame made last, which is passed down now.
    pub(super) fn handed(&mut self, control: Control, place: Duration) {
        if let Control::Supervisory { function: Supervisory::Reject, .. } = control {
            self.receiver.rejects_at(place);
        }
        self.sender.handed(control, place);
    }

    /// Returns true if the link has a frame to send.
    pub(super) fn wants_air(&self) -> bool {
        !self.controls.is_empty()
            || self.question_wants_air()
            || (matches!(self.state, State::Connected | State::AwaitingConfirmation(_))
                && self.wants_numbered())
    }

    /// Returns the next frame to send; `more` tells whether the key-up has time for another after it.
    pub(super) fn next_frame(&mut self, more: impl Fn(u64) -> bool) -> Option<OutgoingFrame> {
        let out = match self.controls.pop_front().or_else(|| self.question()) {
            Some(out) => out,
            None if matches!(self.state, State::Connected | State::AwaitingConfirmation(_)) => {
                self.next_numbered(more)?
            }
            None => return None,
        };
        if out.awaits {
            // The answer can come only after the frame has left: T1 starts then, which `settle` ensures.
            self.leaving += 1;
            self.timers.stop(Timer::T1 as usize);
        }
        Some(out)
    }

    /// Returns the maximum information field of the next frame, bytes.
    pub(super) fn next_bytes_max(&self) -> u32 {
        match self.controls.front() {
            Some(out) => out.information.len() as u32,
            None => self.agreed.information_bytes_max,
        }
    }

    /// Returns the bytes of information fields that the link stores.
    pub(super) fn held_bytes(&self) -> u64 {
        self.sender.held_bytes() + self.receiver.held_bytes()
    }

    /// Returns the time of the next wake-up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }
}
