//! An established session: hears messages, and makes the next one when there is room for it.

use super::config::{Config, Counters, Version};
use super::dialect::{Dialect, Received};
use super::incoming::{Incoming, Violation};
use super::outgoing::Outgoing;
use super::stream_buffer::StreamBuffer;
use super::v4::wire::{RejectReason, TermReason};
use crate::service::{BundlesIndication, DownReason, RefuseReason, TransferId};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::VecDeque;

/// How many rejections may wait to be written; a peer that earns more is not worth listening to.
const REJECTS_MAX: usize = 16;

/// The time in which messages that carry nothing are counted.
const IDLE_MESSAGES_TIME: Duration = Duration::from_secs(10);

/// The least time from one sign of life on demand to the next, and from when the peer was heard: whoever makes this side ask
/// for one costs the peer no more than ten in [`IDLE_MESSAGES_TIME`].
pub(super) const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Why the session cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionFault {
    /// What the user is told.
    pub(super) down: DownReason,
    /// What the peer is told.
    pub(super) final_message: FinalMessage,
}

/// The last message of a session that breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinalMessage {
    /// The session ends.
    Terminate(TermReason),
    /// The type of a message is not known: its first byte.
    Reject(u8),
}

impl SessionFault {
    pub(super) const PROTOCOL: SessionFault =
        SessionFault::new(DownReason::ProtocolError, TermReason::Unknown);
    pub(super) const LIMIT: SessionFault =
        SessionFault::new(DownReason::ProtocolError, TermReason::ResourceExhaustion);
    const CUT: SessionFault = SessionFault::new(DownReason::Closed, TermReason::Unknown);
    const BUSY: SessionFault = SessionFault::new(DownReason::Busy, TermReason::Busy);

    pub(super) const fn new(down: DownReason, term: TermReason) -> Self {
        SessionFault { down, final_message: FinalMessage::Terminate(term) }
    }
}

/// How an orderly end stands (RFC 9174 6.1, RFC 7242 6.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// What the user is told at the end.
    pub(super) down: DownReason,
    /// Whether to call again.
    pub(super) retry: bool,
    /// Seconds before the peer may be called again, where it says so.
    pub(super) delay: Option<u64>,
    /// What the peer is told, or told this side.
    term: TermReason,
    /// This side's message is out.
    said: bool,
    /// The peer's message is in.
    heard: bool,
}

/// What became of hearing a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageEffect {
    /// It was more than a sign of life.
    pub(super) matters: bool,
    /// The orderly end has just begun.
    pub(super) ends: bool,
    /// It carried nothing: a peer may say little of that kind.
    pub(super) idles: bool,
}

/// An established session.
#[derive(Debug)]
pub(super) struct EstablishedSession {
    pub(super) dialect: Dialect,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// The interval agreed on; zero: none.
    pub(super) keepalive: Duration,
    /// The interval has passed without a message written.
    pub(super) keepalive_due: bool,
    /// No sign of life is sent on demand before: the peer was heard, or was asked, a moment ago.
    pub(super) probe_from: Instant,
    pub(super) ending: Option<Ending>,
    /// When it was established.
    pub(super) since: Instant,
    rejects: VecDeque<(RejectReason, u8)>,
    segment_bytes: u64,
    segment_bytes_min: u64,
    /// Messages that carried nothing, since when, and how many there may be.
    idle_messages: (u32, Instant),
    idle_messages_max: u32,
}

impl EstablishedSession {
    pub(super) fn new(config: &Config, dialect: Dialect, keepalive: u16, since: Instant) -> Self {
        let three = dialect.version() == Version::Three;
        let segment_mru = if three { u64::MAX } else { config.segment_mru };
        EstablishedSession {
            outgoing: Outgoing::new(config, dialect.answers(), dialect.keeps_prefix()),
            incoming: Incoming::new(config, segment_mru, three),
            keepalive: Duration::from_secs(u64::from(keepalive)),
            keepalive_due: false,
            probe_from: since + PROBE_EVERY,
            ending: None,
            since,
            rejects: VecDeque::new(),
            // Version 3's header has room for 35 bits of length.
            segment_bytes: config.segment_bytes.min(dialect.segment_bytes_max()).clamp(1, 1 << 32),
            segment_bytes_min: config.segment_bytes_min,
            idle_messages: (0, since),
            idle_messages_max: config.idle_messages_max,
            dialect,
        }
    }

    /// Nothing is open or under way either way.
    pub(super) fn is_idle(&self) -> bool {
        self.outgoing.is_idle() && self.incoming.is_idle()
    }

    /// How many payload bytes the user may hand down.
    pub(super) fn room(&self, pipe: &StreamBuffer) -> u64 {
        if !self.outgoing.may_continue(self.ending.is_some()) || !self.may_send_segments() {
            return 0;
        }
        let header = self.dialect.header_bytes_max(self.outgoing.may_start());
        let (queued, pieces) = self.outgoing.queued();
        let taken = queued + (pieces + 1) * header;
        let bytes = pipe.free().saturating_sub(taken).min(self.segment_bytes);
        // A little room is worth little while there is more to come: every segment has a header, and an answer.
        let worth = self.segment_bytes_min.min(self.segment_bytes).min(pipe.room_max() / 4);
        let wanted = match self.outgoing.wanted() {
            0 => u64::MAX,
            wanted => wanted,
        };
        let little = bytes < worth.min(wanted);
        if little && self.dialect.answers() && self.outgoing.is_under_way() { 0 } else { bytes }
    }

    /// Version 3 allows no segment once a SHUTDOWN went either way.
    fn may_send_segments(&self) -> bool {
        let shutting_down = self.ending.is_some_and(|ending| ending.said || ending.heard);
        !(shutting_down && self.dialect.version() == Version::Three)
    }

    /// Begins an orderly end: transfers under way may finish. Those that have not begun wait for `Down`: failed
    /// now, they would be opened again over what still looks like a link.
    pub(super) fn end(&mut self, term: TermReason, down: DownReason, retry: bool) {
        match &mut self.ending {
            // What the user wants counts more than what the peer wants.
            Some(ending) => ending.retry &= retry,
            None => {
                self.ending = Some(Ending { down, retry, delay: None, term, said: false, heard: false });
            }
        }
    }

    /// Both sides said that it ends, and nothing is under way any more.
    pub(super) fn has_ended(&self) -> bool {
        let Some(ending) = self.ending else { return false };
        if !(ending.said && ending.heard) {
            return false;
        }
        match self.dialect.version() {
            // The peer sends no more data, but it may still answer.
            Version::Three => !self.outgoing.awaits_answers(),
            Version::Four => self.outgoing_is_quiet() && self.incoming.is_idle(),
        }
    }

    /// One more message that carried nothing: true if there are too many.
    pub(super) fn is_flooded(&mut self, now: Instant) -> bool {
        let (count, since) = &mut self.idle_messages;
        if now.saturating_since(*since) >= IDLE_MESSAGES_TIME {
            (*count, *since) = (0, now);
        }
        *count = count.saturating_add(1);
        *count > self.idle_messages_max
    }

    /// Hears payload of the current segment.
    pub(super) fn payload(
        &mut self,
        data: Bytes,
        pipe: &mut StreamBuffer,
        up: &mut VecDeque<BundlesIndication>,
        counters: &mut Counters,
    ) {
        let length = data.len() as u64;
        counters.payload_received += length;
        let (indication, free) = self.incoming.payload(data);
        pipe.hold(length - free);
        up.extend(indication);
    }

    /// Hears a message. `number` is what a new incoming transfer will be known by.
    pub(super) fn hear(
        &mut self,
        heard: Received,
        number: TransferId,
        pipe: &mut StreamBuffer,
        up: &mut VecDeque<BundlesIndication>,
        counters: &mut Counters,
    ) -> Result<MessageEffect, SessionFault> {
        let mut effect = MessageEffect { matters: true, ends: false, idles: false };
        let outcome = match heard {
            Received::Segment(header) => {
                counters.segments_received += 1;
                let closed = self.ending.is_some() && self.dialect.version() == Version::Four;
                let outcome = self.incoming.segment(header, number, closed);
                if let Ok(outcome) = &outcome {
                    counters.refused += u64::from(outcome.refused);
                    pipe.release(outcome.released);
                    up.extend(outcome.indication.clone());
                    // An empty last segment says that all is there.
                    if header.length == 0 {
                        self.payload(Bytes::new(), pipe, up, counters);
                    }
                    if outcome.refused && !self.may_refuse() {
                        return Err(SessionFault::BUSY);
                    }
                }
                outcome.map(drop)
            }
            Received::Ack { id, up_to } => self.outgoing.ack(id, up_to).map(|said| up.extend(said)),
            Received::Refuse { id, reason } => self.outgoing.refused(id, reason).map(|said| up.extend(said)),
            Received::KeepAlive => {
                counters.keepalives_received += 1;
                (effect.matters, effect.idles) = (false, true);
                Ok(())
            }
            Received::Terminate { reply, reason, delay } => {
                effect.ends = self.ending.is_none();
                self.terminated(reply, reason, delay);
                Ok(())
            }
            Received::Rejected { header } => {
                counters.rejected += 1;
                effect.idles = true;
                // Without segments, answers or parameters there is no session to speak of.
                if matches!(header, 0x01 | 0x02 | 0x07) { Err(Violation::Broken) } else { Ok(()) }
            }
            Received::NoAction => Ok(()),
            Received::Unexpected { .. } => Err(Violation::Unexpected),
            Received::Unknown { header } => {
                // Version 3 has no rejections.
                counters.violations += 1;
                return Err(match self.dialect.version() {
                    Version::Three => SessionFault::PROTOCOL,
                    Version::Four => {
                        SessionFault { final_message: FinalMessage::Reject(header), ..SessionFault::PROTOCOL }
                    }
                });
            }
        };
        match outcome {
            Ok(()) => Ok(effect),
            Err(violation) => {
                counters.violations += 1;
                self.violated(violation, heard).map(|()| MessageEffect { idles: true, ..effect })
            }
        }
    }

    /// The peer ends the session, or agrees to its end.
    fn terminated(&mut self, reply: bool, reason: TermReason, delay: Option<u64>) {
        self.end(reason, down_reason(reason), true);
        let ending = self.ending.as_mut().expect("the end has begun");
        ending.heard = true;
        ending.delay = delay;
        // The answer repeats the reason (RFC 9174 6.1).
        if !ending.said {
            ending.term = reason;
        }
        // Its retry is the user's choice, unless the peer forbids it (RFC 7242 6.1).
        ending.retry &= delay != Some(0);
        // An answer to nothing asks for none; the stream is closed all the same.
        ending.said |= reply && !ending.said && self.dialect.version() == Version::Four;
    }

    /// What a violation leads to.
    fn violated(&mut self, violation: Violation, heard: Received) -> Result<(), SessionFault> {
        let header = match heard {
            Received::Segment(_) => 0x01,
            Received::Ack { .. } => 0x02,
            Received::Refuse { .. } => 0x03,
            Received::Unexpected { header } => header,
            _ => return Err(SessionFault::PROTOCOL),
        };
        match violation {
            Violation::Broken => Err(SessionFault::PROTOCOL),
            Violation::Limit => Err(SessionFault::LIMIT),
            Violation::Unexpected if self.dialect.version() == Version::Three => Err(SessionFault::PROTOCOL),
            Violation::Unexpected if self.rejects.len() >= REJECTS_MAX => Err(SessionFault::PROTOCOL),
            Violation::Unexpected => {
                self.rejects.push_back((RejectReason::Unexpected, header));
                Ok(())
            }
        }
    }

    /// Whether a transfer may go unacknowledged: because the peer can be told, or because nothing is.
    fn may_refuse(&self) -> bool {
        self.dialect.refuses() || !self.dialect.answers()
    }

    /// The user does not want an incoming transfer.
    pub(super) fn refuse(
        &mut self,
        transfer: TransferId,
        reason: RefuseReason,
        pipe: &mut StreamBuffer,
        counters: &mut Counters,
    ) -> Result<(), SessionFault> {
        if !self.incoming.may_refuse(transfer) {
            return Ok(());
        }
        counters.refused += 1;
        if self.may_refuse() {
            pipe.release(self.incoming.refuse(transfer, reason));
            return Ok(());
        }
        pipe.release(self.incoming.swallow(transfer));
        // The peer does not know refusals. To acknowledge what this side does not have would be a lie: it has to
        // come again.
        if reason == RefuseReason::Completed { Ok(()) } else { Err(SessionFault::BUSY) }
    }

    /// The user gives an outgoing transfer up. A receiver that was not told its length could take its beginning for
    /// all of it: then the session has to break.
    pub(super) fn cancel(
        &mut self,
        transfer: TransferId,
        up: &mut VecDeque<BundlesIndication>,
    ) -> Result<(), SessionFault> {
        let (indication, begun) = self.outgoing.cancel(transfer);
        up.extend(indication);
        if begun && !self.dialect.announces() { Err(SessionFault::CUT) } else { Ok(()) }
    }

    /// Makes the next message, and puts it into an idle pipe.
    pub(super) fn speak(
        &mut self,
        pipe: &mut StreamBuffer,
        up: &mut VecDeque<BundlesIndication>,
        counters: &mut Counters,
    ) -> Written {
        while let Some(answer) = self.incoming.next_answer() {
            if let Some(bytes) = self.dialect.answer(answer) {
                pipe.write(bytes);
                return Written::Message;
            }
        }
        if let Some((reason, header)) = self.rejects.pop_front() {
            pipe.write(self.dialect.reject(reason, header).unwrap_or_default());
            return Written::Message;
        }
        if self.may_say_the_end() {
            let ending = self.ending.as_mut().expect("it may be said");
            ending.said = true;
            pipe.write(self.dialect.terminate(ending.heard, ending.term));
            return Written::Message;
        }
        if self.keepalive_due {
            self.keepalive_due = false;
            counters.keepalives_sent += 1;
            pipe.write(self.dialect.keepalive());
            return Written::KeepAlive;
        }
        if !self.may_send_segments() {
            return Written::Nothing;
        }
        let Some((say, data, sent)) = self.outgoing.next_segment(self.segment_bytes) else {
            return Written::Nothing;
        };
        counters.segments_sent += 1;
        counters.payload_sent += data.len() as u64;
        pipe.write(self.dialect.segment(say));
        pipe.write(data);
        up.extend(sent);
        Written::Message
    }

    /// Version 4 says the end at once; version 3 once nothing is under way, for it may send no data after it, or
    /// in answer to the peer's.
    fn may_say_the_end(&self) -> bool {
        self.ending.is_some_and(|ending| {
            let quiet = || self.outgoing_is_quiet() && self.incoming.is_idle();
            !ending.said && (self.dialect.version() == Version::Four || ending.heard || quiet())
        })
    }

    /// Nothing of this side's is under way.
    fn outgoing_is_quiet(&self) -> bool {
        self.outgoing.is_answered() && !self.outgoing.is_midway()
    }

    /// An end that waits for nothing but the peer's version 3 bundles could wait for ever.
    pub(super) fn may_linger(&self) -> bool {
        let waits_for_peer = self.dialect.version() == Version::Three && self.outgoing_is_quiet();
        !waits_for_peer || self.ending.is_some_and(|ending| ending.said)
    }
}

/// What [`EstablishedSession::speak`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Nothing is to be said.
    Nothing,
    /// A sign of life.
    KeepAlive,
    /// Any other message.
    Message,
}

/// What the user is told when the peer ends the session.
pub(super) fn down_reason(reason: TermReason) -> DownReason {
    match reason {
        TermReason::IdleTimeout => DownReason::Idle,
        TermReason::VersionMismatch => DownReason::Version,
        TermReason::Busy | TermReason::ResourceExhaustion => DownReason::Busy,
        TermReason::ContactFailure => DownReason::Contact,
        TermReason::Unknown | TermReason::Other(_) => DownReason::PeerClosed,
    }
}
