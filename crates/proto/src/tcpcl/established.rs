//! Established session: processes messages, and builds the next one when there is room for it.

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

/// Maximum number of rejections that wait to be written; one more ends the session.
const REJECTS_MAX: usize = 16;

/// Period in which messages without content are counted.
const IDLE_MESSAGES_TIME: Duration = Duration::from_secs(10);

/// Factor of the length of segments while there is ample room: beyond 256 KiB, they cost hardly less.
const LONG_TIMES: u64 = 4;

/// Minimum time from one keepalive on demand to the next, and from the last input of the peer: requests for such
/// keepalives cause at most ten in [`IDLE_MESSAGES_TIME`].
pub(super) const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Reason why the session cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionFault {
    /// Reason for the user.
    pub(super) down: DownReason,
    /// Message to the peer.
    pub(super) final_message: FinalMessage,
}

/// Last message of a session that breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinalMessage {
    /// Termination of the session.
    Terminate(TermReason),
    /// Rejection of a message of unknown type, with its first byte.
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

/// Progress of an orderly end (RFC 9174 6.1, RFC 7242 6.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// Reason for the user.
    pub(super) down: DownReason,
    /// True to reconnect after the end.
    pub(super) retry: bool,
    /// Delay before reconnecting that the peer requests, seconds; zero to forbid it, `None` if unspecified.
    pub(super) delay: Option<u64>,
    /// Reason in the message to the peer, or from the peer.
    term: TermReason,
    /// The message of this side has been sent.
    said: bool,
    /// The message of the peer has been received.
    heard: bool,
}

/// Effect of a received message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageEffect {
    /// The message was more than a keepalive.
    pub(super) matters: bool,
    /// The orderly end has just begun.
    pub(super) ends: bool,
    /// The message had no content: the number of such messages is limited.
    pub(super) idles: bool,
}

/// Established session of either version.
#[derive(Debug)]
pub(super) struct EstablishedSession {
    pub(super) dialect: Dialect,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// Negotiated keepalive interval; zero if disabled.
    pub(super) keepalive: Duration,
    /// The interval has passed without a message written.
    pub(super) keepalive_due: bool,
    /// Earliest time for a keepalive on demand: none is sent just after input from the peer or an earlier one.
    pub(super) probe_from: Instant,
    pub(super) ending: Option<Ending>,
    /// Time of establishment.
    pub(super) since: Instant,
    rejects: VecDeque<(RejectReason, u8)>,
    segment_bytes: u64,
    /// Maximum length of a segment while there is ample room.
    long_segment_bytes: u64,
    segment_bytes_min: u64,
    ample_room_bytes: u64,
    /// Number of messages without content, the beginning of their period, and the maximum per period.
    idle_messages: (u32, Instant),
    idle_messages_max: u32,
}

impl EstablishedSession {
    pub(super) fn new(config: &Config, dialect: Dialect, keepalive: u16, since: Instant) -> Self {
        let three = dialect.version == Version::Three;
        let segment_mru = if three { u64::MAX } else { config.segment_mru };
        // The header of version 3 has room for a length of 35 bits.
        let allowed = |bytes: u64| bytes.min(dialect.terms.segment_bytes_max).clamp(1, 1 << 32);
        // Peers of version 3 announce no maximum.
        let long_times = if config.ample_room_bytes.is_some() && !three { LONG_TIMES } else { 1 };
        EstablishedSession {
            outgoing: Outgoing::new(config, dialect.terms.answers, dialect.terms.keeps_prefix),
            incoming: Incoming::new(config, segment_mru, three),
            keepalive: Duration::from_secs(u64::from(keepalive)),
            keepalive_due: false,
            probe_from: since + PROBE_EVERY,
            ending: None,
            since,
            rejects: VecDeque::new(),
            segment_bytes: allowed(config.segment_bytes),
            long_segment_bytes: allowed(config.segment_bytes.saturating_mul(long_times)),
            ample_room_bytes: config.ample_room_bytes.unwrap_or(u64::MAX),
            segment_bytes_min: config.segment_bytes_min,
            idle_messages: (0, since),
            idle_messages_max: config.idle_messages_max,
            dialect,
        }
    }

    /// Returns true if no transfer is open or in progress in either direction.
    pub(super) fn is_idle(&self) -> bool {
        self.outgoing.is_idle() && self.incoming.is_idle()
    }

    /// Returns the number of payload bytes that the user may pass down.
    pub(super) fn room(&self, pipe: &StreamBuffer) -> u64 {
        if !self.outgoing.may_continue(self.ending.is_some()) || !self.may_send_segments() {
            return 0;
        }
        let header = self.dialect.header_bytes_max(self.outgoing.may_start());
        let (queued, pieces) = self.outgoing.queued();
        let taken = queued + (pieces + 1) * header;
        let is_ample = pipe.free() > self.ample_room_bytes;
        let most = if is_ample { self.long_segment_bytes } else { self.segment_bytes };
        let bytes = pipe.free().saturating_sub(taken).min(most);
        // A small amount of room is held back while more will follow: every segment costs a header and an
        // acknowledgement.
        let worth = self.segment_bytes_min.min(self.segment_bytes).min(pipe.room_max() / 4);
        let wanted = match self.outgoing.wanted() {
            0 => u64::MAX,
            wanted => wanted,
        };
        let little = bytes < worth.min(wanted);
        if little && self.dialect.terms.answers && self.outgoing.is_under_way() { 0 } else { bytes }
    }

    /// Returns false in version 3 once a SHUTDOWN was sent or received: no segments are allowed after it.
    fn may_send_segments(&self) -> bool {
        let shutting_down = self.ending.is_some_and(|ending| ending.said || ending.heard);
        !(shutting_down && self.dialect.version == Version::Three)
    }

    /// Begins an orderly end: transfers in progress may finish. Those that have not begun wait for `Down`: if they
    /// failed now, they would be opened again on a link that still appears to be up.
    pub(super) fn end(&mut self, term: TermReason, down: DownReason, retry: bool) {
        match &mut self.ending {
            // The decision of the user overrides that of the peer.
            Some(ending) => ending.retry &= retry,
            None => {
                self.ending = Some(Ending { down, retry, delay: None, term, said: false, heard: false });
            }
        }
    }

    /// Returns true if both sides have announced the end, and no transfer is in progress.
    pub(super) fn has_ended(&self) -> bool {
        let Some(ending) = self.ending else { return false };
        if !(ending.said && ending.heard) {
            return false;
        }
        match self.dialect.version {
            // The peer sends no more data, but it may still acknowledge.
            Version::Three => !self.outgoing.awaits_answers(),
            Version::Four => self.outgoing_is_quiet() && self.incoming.is_idle(),
        }
    }

    /// Counts a message without content. Returns true if there are too many.
    pub(super) fn is_flooded(&mut self, now: Instant) -> bool {
        let (count, since) = &mut self.idle_messages;
        if now.saturating_since(*since) >= IDLE_MESSAGES_TIME {
            (*count, *since) = (0, now);
        }
        *count = count.saturating_add(1);
        *count > self.idle_messages_max
    }

    /// Processes payload of the current segment.
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

    /// Processes a message. `number` is the ID of a new incoming transfer for the user.
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
                let closed = self.ending.is_some() && self.dialect.version == Version::Four;
                let outcome = self.incoming.segment(header, number, closed);
                if let Ok(outcome) = &outcome {
                    counters.refused += u64::from(outcome.refused);
                    pipe.release(outcome.released);
                    up.extend(outcome.indication.clone());
                    // An empty last segment completes the bundle.
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
                // A peer that rejects segments, acknowledgements or SESS_INIT cannot hold a session.
                if matches!(header, 0x01 | 0x02 | 0x07) { Err(Violation::Broken) } else { Ok(()) }
            }
            Received::NoAction => Ok(()),
            Received::Unexpected { .. } => Err(Violation::Unexpected),
            Received::Unknown { header } => {
                // Version 3 has no rejections.
                counters.violations += 1;
                return Err(match self.dialect.version {
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

    /// Processes the peer's termination of the session, or its reply to this side's.
    fn terminated(&mut self, reply: bool, reason: TermReason, delay: Option<u64>) {
        self.end(reason, down_reason(reason), true);
        let ending = self.ending.as_mut().expect("the end has begun");
        ending.heard = true;
        ending.delay = delay;
        // The reply repeats the reason (RFC 9174 6.1).
        if !ending.said {
            ending.term = reason;
        }
        // The user decides whether to reconnect, unless the peer forbids it (RFC 7242 6.1).
        ending.retry &= delay != Some(0);
        // A reply without a request needs no reply; the stream is closed anyway.
        ending.said |= reply && !ending.said && self.dialect.version == Version::Four;
    }

    /// Handles a protocol violation.
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
            Violation::Unexpected if self.dialect.version == Version::Three => Err(SessionFault::PROTOCOL),
            Violation::Unexpected if self.rejects.len() >= REJECTS_MAX => Err(SessionFault::PROTOCOL),
            Violation::Unexpected => {
                self.rejects.push_back((RejectReason::Unexpected, header));
                Ok(())
            }
        }
    }

    /// Returns true if a transfer may remain unacknowledged: the peer supports refusals, or there are no
    /// acknowledgements.
    fn may_refuse(&self) -> bool {
        self.dialect.terms.refuses || !self.dialect.terms.answers
    }

    /// Refuses an incoming transfer for the user.
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
        // The peer does not support refusals. Data that this side does not have must not be acknowledged, so the
        // session ends and the peer sends the bundle again.
        if reason == RefuseReason::Completed { Ok(()) } else { Err(SessionFault::BUSY) }
    }

    /// Cancels an outgoing transfer for the user. A receiver without the announced length could take the beginning for
    /// the complete bundle: then the session must end.
    pub(super) fn cancel(
        &mut self,
        transfer: TransferId,
        up: &mut VecDeque<BundlesIndication>,
    ) -> Result<(), SessionFault> {
        let (indication, begun) = self.outgoing.cancel(transfer);
        up.extend(indication);
        if begun && !self.dialect.terms.announces { Err(SessionFault::CUT) } else { Ok(()) }
    }

    /// Builds the next message, and writes it to an idle stream.
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
        let Some((say, data, sent)) = self.outgoing.next_segment(self.long_segment_bytes) else {
            return Written::Nothing;
        };
        counters.segments_sent += 1;
        counters.payload_sent += data.len() as u64;
        pipe.write(self.dialect.segment(say));
        pipe.write(data);
        up.extend(sent);
        Written::Message
    }

    /// Returns true if the termination may be sent: in version 4 at once; in version 3 once no transfer is in progress,
    /// because no data may follow it, or in reply to the peer's.
    fn may_say_the_end(&self) -> bool {
        self.ending.is_some_and(|ending| {
            let quiet = || self.outgoing_is_quiet() && self.incoming.is_idle();
            !ending.said && (self.dialect.version == Version::Four || ending.heard || quiet())
        })
    }

    /// Returns true if no outgoing transfer is in progress.
    fn outgoing_is_quiet(&self) -> bool {
        self.outgoing.is_answered() && !self.outgoing.is_midway()
    }

    /// Returns false if the end waits only for version 3 bundles of the peer, which could take for ever.
    pub(super) fn may_linger(&self) -> bool {
        let waits_for_peer = self.dialect.version == Version::Three && self.outgoing_is_quiet();
        !waits_for_peer || self.ending.is_some_and(|ending| ending.said)
    }
}

/// Result of [`EstablishedSession::speak`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// There is nothing to send.
    Nothing,
    /// A keepalive.
    KeepAlive,
    /// Any other message.
    Message,
}

/// Returns the reason for the user if the peer ends the session.
pub(super) fn down_reason(reason: TermReason) -> DownReason {
    match reason {
        TermReason::IdleTimeout => DownReason::Idle,
        TermReason::VersionMismatch => DownReason::Version,
        TermReason::Busy | TermReason::ResourceExhaustion => DownReason::Busy,
        TermReason::ContactFailure => DownReason::Contact,
        TermReason::Unknown | TermReason::Other(_) => DownReason::PeerClosed,
    }
}
