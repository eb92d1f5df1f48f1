//! XID: what the peer can do (6.3.2, C5).
//!
//! After a call with SABME the question goes when the link stands, and nothing waits for it: it ends the key-up of the first
//! data. Until its answer, the parameters are those that the peer gave the last time, or the defaults of version 2.2. It has P,
//! and only one frame that has may be unanswered (4.2.1): the data before it have none, and are acknowledged beside the answer.

use super::frame::{Frame, Modulo, Unnumbered};
use super::link::{CALLS_A_RUNG, Link, OutgoingFrame, SetupStep, State, Timer};
use super::negotiated::{RememberedPeer, XidAnswer, defaults};
use super::timing::LEAVING_MAX;
use super::xid::Parameters;
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};

/// How long the question waits for data to go with: two key-ups would cost a turn of the channel.
const COMPANY: Duration = Duration::from_millis(100);

/// The question of this side on a link that stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum XidExchange {
    /// There is none, or it is answered.
    #[default]
    Done,
    /// It goes behind the next data, or when these have gone or it has waited long enough, now.
    Due { asked: u8, now: bool },
    /// It was asked so often, and the answer is owed.
    Sent { asked: u8, has_left: bool },
}

impl XidExchange {
    pub(super) fn is_open(self) -> bool {
        self != XidExchange::Done
    }

    /// It goes behind the next data.
    pub(super) fn is_due(self) -> bool {
        matches!(self, XidExchange::Due { .. })
    }

    /// Its answer is owed.
    pub(super) fn is_outstanding(self) -> bool {
        matches!(self, XidExchange::Sent { .. })
    }

    pub(super) fn is_asked(self) -> bool {
        matches!(self, XidExchange::Sent { .. } | XidExchange::Due { asked: 1.., .. })
    }
}

impl Link {
    /// The link stands, and nobody has said what the peer can do on it.
    pub(super) fn plan_question(&mut self, now: Instant) {
        self.question = XidExchange::Due { asked: 0, now: false };
        self.timers.set(Timer::Tm201 as usize, now + COMPANY);
    }

    pub(super) fn drop_question(&mut self) {
        self.question = XidExchange::Done;
        self.timers.stop(Timer::Tm201 as usize);
    }

    /// It is to go now. A link that is owed another answer asks afterwards.
    pub(super) fn question_wants_air(&self) -> bool {
        self.state == State::Connected
            && matches!(self.question, XidExchange::Due { now: true, .. })
            && !self.sender.is_polling()
    }

    /// Data would meet its answer.
    pub(super) fn question_has_the_channel(&self) -> bool {
        self.question.is_outstanding() && !self.radio.full_duplex
    }

    /// The data that go now are its last, and the question goes next.
    pub(super) fn question_follows(&mut self) {
        if let XidExchange::Due { now, .. } = &mut self.question {
            *now = true;
        }
    }

    /// The peer has acknowledged everything, and has not answered: it has not heard the question, or its answer is lost. It
    /// goes behind the next data again.
    pub(super) fn question_is_passed_over(&mut self, now: Instant) {
        match self.question {
            XidExchange::Sent { asked, has_left: true } if asked < CALLS_A_RUNG => {
                self.question = XidExchange::Due { asked, now: false };
                self.timers.set(Timer::Tm201 as usize, now + COMPANY);
            }
            _ => {}
        }
    }

    /// The question, if it is to go now. Data that may go precede it.
    pub(super) fn question(&mut self) -> Option<OutgoingFrame> {
        let XidExchange::Due { asked, .. } = self.question else { return None };
        if !self.question_wants_air() || self.may_inform() {
            return None;
        }
        self.question = XidExchange::Sent { asked: asked + 1, has_left: false };
        self.timers.stop(Timer::Tm201 as usize);
        Some(OutgoingFrame::unnumbered(true, Unnumbered::ExchangeIdentification, true, self.offered()))
    }

    /// TM201 begins when the key-up is over in which the question was asked; or when that should be over, where nobody says
    /// that it is.
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

    /// TM201; `leaves_by`: see [`Link::waited`].
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
            // Nobody can answer while others speak.
            XidExchange::Sent { .. } if busy => {
                self.timers.set(Timer::Tm201 as usize, now + self.answer_time());
            }
            XidExchange::Sent { asked, .. } if asked < CALLS_A_RUNG => {
                self.question = XidExchange::Due { asked, now: true };
            }
            // C5: the defaults of the version; here, what this side is configured to.
            XidExchange::Sent { .. } => self.ask_no_more(),
        }
    }

    /// The peer says nothing of what it takes: what it said the last time holds, or what this side is configured to.
    fn ask_no_more(&mut self) {
        self.drop_question();
        if !matches!(self.known, Some(RememberedPeer { identity: XidAnswer::Parameters(_), .. })) {
            self.agreed = defaults(&self.config, self.agreed.modulo);
            self.tell_packet_bytes();
        }
    }

    /// FRMR, which stations that know no XID answer to it.
    pub(super) fn question_refused(&mut self) {
        self.known = Some(RememberedPeer { modulo: self.agreed.modulo, identity: XidAnswer::Refused });
        self.ask_no_more();
    }

    fn offered(&self) -> Bytes {
        let mut information = BytesMut::new();
        self.offer().encode(&mut information);
        information.freeze()
    }

    /// XID before there is a link, as those want it that count to eight.
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
                // It has sent what it sends at a time: what it is to hear of that goes with the answer.
                self.receiver.peer_waits();
            }
            let mut information = BytesMut::new();
            self.offer().agree(&theirs).with_own_limits(&self.offer()).encode(&mut information);
            self.say(false, Unnumbered::ExchangeIdentification, poll_final, information.freeze());
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
            // The link was ended before the answer came.
            State::AwaitingRelease => {}
            _ => self.counters.violations += 1,
        }
    }

    /// The peer has answered, perhaps later than it was waited for.
    fn identified(&mut self, theirs: Parameters) {
        if self.question.is_open() {
            self.drop_question();
            // What is absent has its default, and is not what it was before the answer.
            self.agreed = defaults(&self.config, self.agreed.modulo);
        }
        self.agree(&theirs);
        self.known =
            Some(RememberedPeer { modulo: self.agreed.modulo, identity: XidAnswer::Parameters(theirs) });
    }
}
