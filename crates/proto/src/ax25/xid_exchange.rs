//! XID exchange: negotiation of parameters with the peer (6.3.2, C5).
//!
//! After SABME is accepted, XID is sent on the established link, and nothing waits for it: it ends the key-up of the
//! first data. Until the answer, the parameters are those of the peer's last answer, or the defaults of version 2.2.
//! XID has P, and only one frame with P may be unanswered (4.2.1): the data before it have none, and are acknowledged
//! apart from the answer.

use super::frame::{Frame, Modulo, Unnumbered};
use super::link::{CALLS_A_RUNG, Link, OutgoingFrame, SetupStep, State, Timer};
use super::negotiated::{RememberedPeer, XidAnswer, defaults};
use super::timing::LEAVING_MAX;
use super::xid::Parameters;
use crate::codec;
use crate::time::{Duration, Instant};
use bytes::Bytes;

/// Maximum wait of XID for data to accompany: two key-ups would cost a turnaround of the channel.
const COMPANY: Duration = Duration::from_millis(100);

/// State of this side's XID command on an established link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum XidExchange {
    /// There is none, or it is answered.
    #[default]
    Done,
    /// It follows the next data; with `now` set, the data have been sent or the wait is over, and it is sent now.
    Due { asked: u8, now: bool },
    /// It was sent `asked` times, and the answer is outstanding.
    Sent { asked: u8, has_left: bool },
}

impl XidExchange {
    pub(super) fn is_open(self) -> bool {
        self != XidExchange::Done
    }

    /// Returns true if XID waits for transmission.
    pub(super) fn is_due(self) -> bool {
        matches!(self, XidExchange::Due { .. })
    }

    /// Returns true if the answer is outstanding.
    pub(super) fn is_outstanding(self) -> bool {
        matches!(self, XidExchange::Sent { .. })
    }

    pub(super) fn is_asked(self) -> bool {
        matches!(self, XidExchange::Sent { .. } | XidExchange::Due { asked: 1.., .. })
    }
}

impl Link {
    /// Plans XID on an established link whose peer has not sent its parameters.
    pub(super) fn plan_question(&mut self, now: Instant) {
        self.question = XidExchange::Due { asked: 0, now: false };
        self.timers.set(Timer::Tm201 as usize, now + COMPANY);
    }

    pub(super) fn drop_question(&mut self) {
        self.question = XidExchange::Done;
        self.timers.stop(Timer::Tm201 as usize);
    }

    /// Returns true if XID is to be sent now. A link that waits for another answer sends it afterwards.
    pub(super) fn question_wants_air(&self) -> bool {
        self.state == State::Connected
            && matches!(self.question, XidExchange::Due { now: true, .. })
            && !self.sender.is_polling()
    }

    /// Returns true if data would collide with the answer.
    pub(super) fn question_has_the_channel(&self) -> bool {
        self.question.is_outstanding() && !self.radio.full_duplex
    }

    /// Notes that XID follows the last data of this key-up.
    pub(super) fn question_follows(&mut self) {
        if let XidExchange::Due { now, .. } = &mut self.question {
            *now = true;
        }
    }

    /// Handles an acknowledgement of everything without an answer to XID: XID or the answer was lost. XID follows the
    /// next data again.
    pub(super) fn question_is_passed_over(&mut self, now: Instant) {
        match self.question {
            XidExchange::Sent { asked, has_left: true } if asked < CALLS_A_RUNG => {
                self.question = XidExchange::Due { asked, now: false };
                self.timers.set(Timer::Tm201 as usize, now + COMPANY);
            }
            _ => {}
        }
    }

    /// Returns XID if it is to be sent now. Data that may be sent precede it.
    pub(super) fn question(&mut self) -> Option<OutgoingFrame> {
        let XidExchange::Due { asked, .. } = self.question else { return None };
        if !self.question_wants_air() || self.may_inform() {
            return None;
        }
        self.question = XidExchange::Sent { asked: asked + 1, has_left: false };
        self.timers.stop(Timer::Tm201 as usize);
        Some(OutgoingFrame::unnumbered(true, Unnumbered::ExchangeIdentification, true, self.offered()))
    }

    /// Starts TM201 at the end of the key-up with XID; or when that should be over, if it is not reported.
    pub(super) fn watch_question(&mut self, now: Instant, has_left_now: bool) {
        let XidExchange::Sent { asked, has_left } = self.question else { return };
        let unwatched = self.timers.get(Timer::Tm201 as usize).is_none();
        if unwatched || has_left_now && !has_left {
            self.question = XidExchange::Sent { asked, has_left: has_left_now };
            let told = has_left_now || self.transmit_reports_are_missing;
            let leaving = if told { Duration::ZERO } else { LEAVING_MAX };
            self.timers.set(Timer::Tm201 as usize, now + leaving + self.answer_time());
        }
    }

    /// Handles the expiry of TM201. [`Link::waited`] explains `leaves_by`.
    pub(super) fn question_times_out(&mut self, now: Instant, busy: bool, leaves_by: Option<Instant>) {
        if let XidExchange::Sent { has_left: false, .. } = self.question {
            self.expect_no_word();
        }
        let due = leaves_by.map(|at| at + self.answer_time()).filter(|due| *due > now);
        if let (XidExchange::Sent { .. }, Some(due)) = (self.question, due) {
            return self.timers.set(Timer::Tm201 as usize, due);
        }
        match self.question {
            XidExchange::Done => {}
            XidExchange::Due { asked, .. } => self.question = XidExchange::Due { asked, now: true },
            // No answer is possible while other stations transmit.
            XidExchange::Sent { .. } if busy => {
                self.timers.set(Timer::Tm201 as usize, now + self.answer_time());
            }
            XidExchange::Sent { asked, .. } if asked < CALLS_A_RUNG => {
                self.question = XidExchange::Due { asked, now: true };
            }
            // C5 uses the defaults of the version; this side uses its own settings.
            XidExchange::Sent { .. } => self.ask_no_more(),
        }
    }

    /// Ends the exchange without an answer: the peer's last parameters stay valid, or this side's settings.
    fn ask_no_more(&mut self) {
        self.drop_question();
        if !matches!(self.known, Some(RememberedPeer { identity: XidAnswer::Parameters(_), .. })) {
            self.agreed = defaults(&self.config, self.agreed.modulo);
            self.tell_packet_bytes();
        }
    }

    /// Handles FRMR, the answer of stations without XID.
    pub(super) fn question_refused(&mut self) {
        self.known = Some(RememberedPeer { modulo: self.agreed.modulo, identity: XidAnswer::Refused });
        self.ask_no_more();
    }

    fn offered(&self) -> Bytes {
        codec::encoded(0, |out| self.offer().encode(out))
    }

    /// Sends XID before the link setup, for stations of version 2.2 with modulo 8.
    pub(super) fn identify(&mut self) {
        self.say(true, Unnumbered::ExchangeIdentification, true, self.offered());
    }

    pub(super) fn hear_identification(&mut self, now: Instant, frame: &Frame, poll_final: bool) {
        let Ok(theirs) = Parameters::decode(&mut frame.information.clone()) else {
            self.counters.violations += 1;
            return;
        };
        if frame.is_command() {
            if self.is_connected() {
                self.agree(&theirs);
                // The peer has ended its burst: acknowledgements go with the answer.
                self.receiver.peer_waits();
            }
            let answer = self.offer().agree(&theirs).with_own_limits(&self.offer());
            let information = codec::encoded(0, |out| answer.encode(out));
            self.say(false, Unnumbered::ExchangeIdentification, poll_final, information);
            return;
        }
        match self.state {
            State::Connected => self.identified(theirs),
            State::AwaitingConnection(SetupStep::Xid) => {
                self.answered(now);
                self.climb(SetupStep::Sabm);
                self.agree(&theirs);
                self.known =
                    Some(RememberedPeer { modulo: Modulo::Eight, identity: XidAnswer::Parameters(theirs) });
            }
            // The link was released before the answer arrived.
            State::AwaitingRelease => {}
            _ => self.counters.violations += 1,
        }
    }

    /// Handles the peer's answer, which may be late.
    fn identified(&mut self, theirs: Parameters) {
        if self.question.is_open() {
            self.drop_question();
            // An absent parameter has its default, not its value before the answer.
            self.agreed = defaults(&self.config, self.agreed.modulo);
        }
        self.agree(&theirs);
        self.known =
            Some(RememberedPeer { modulo: self.agreed.modulo, identity: XidAnswer::Parameters(theirs) });
    }
}
