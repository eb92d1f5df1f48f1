//! Outgoing bundle to a group: segments to send, and members that have them.

use super::incoming::is_set;
use super::wire::Packet;
use crate::observe::Part;
use crate::service::{RefuseReason, TransferId};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::BTreeSet;

/// Without members: number of consecutive queries without a request that end the bundle.
const QUIET_MAX: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    /// The member has not confirmed the bundle.
    Pending,
    HasBundle,
    Refused(RefuseReason),
    /// The member left too many queries unanswered.
    Missed,
}

#[derive(Debug)]
struct Member {
    name: u32,
    standing: MemberState,
    /// The member has answered the last query.
    answered: bool,
    /// Number of consecutive queries that the member left unanswered.
    silent: u8,
}

/// Phase of a round.
#[derive(Debug, PartialEq, Eq)]
enum RoundPhase {
    /// A segment is next or, when none is left, the query.
    Sending,
    /// Answers are awaited until this time.
    AwaitingAnswers(Instant),
}

/// Outcome of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferOutcome {
    /// As many members as required have the bundle; `missed` members do not.
    Sent { missed: u64 },
    /// Too few members have the bundle.
    Failed { missed: u64, reason: RefuseReason },
}

/// Outgoing bundle and the state of its members.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) transfer: TransferId,
    pub(super) number: u32,
    segments: Vec<Bytes>,
    /// Segments below this index have been sent once.
    sent: u16,
    pending: BTreeSet<u16>,
    members: Vec<Member>,
    needed: usize,
    phase: RoundPhase,
    round: u16,
    rounds_max: u16,
    silent_max: u8,
    /// A request arrived after the last query.
    wanted: bool,
    quiet: u8,
}

/// Members that must receive a bundle, and the limits of its rounds.
#[derive(Debug)]
pub(super) struct Recipients<'a> {
    pub(super) names: &'a [u32],
    pub(super) needed: usize,
    pub(super) silent_max: u8,
    pub(super) rounds_max: u16,
}

impl Outgoing {
    /// Divides a bundle into segments of `segment_bytes` bytes; there must be at most 65,535.
    pub(super) fn new(
        transfer: TransferId,
        number: u32,
        bundle: &Bytes,
        segment_bytes: usize,
        audience: &Recipients<'_>,
    ) -> Self {
        let cut = (0..bundle.len()).step_by(segment_bytes);
        let segments: Vec<Bytes> =
            cut.map(|at| bundle.slice(at..bundle.len().min(at + segment_bytes))).collect();
        let member =
            |name: &u32| Member { name: *name, standing: MemberState::Pending, answered: false, silent: 0 };
        Outgoing {
            transfer,
            number,
            pending: (0..segments.len() as u16).collect(),
            segments,
            sent: 0,
            members: audience.names.iter().map(member).collect(),
            needed: audience.needed,
            phase: RoundPhase::Sending,
            round: 0,
            rounds_max: audience.rounds_max,
            silent_max: audience.silent_max,
            wanted: false,
            quiet: 0,
        }
    }

    fn count(&self) -> u16 {
        self.segments.len() as u16
    }

    /// Shows the progress of the bundle.
    pub(super) fn observe(&self, part: &mut Part) {
        let has = |member: &&Member| member.standing == MemberState::HasBundle;
        let (members, have_it) = (self.members.len(), self.members.iter().filter(has).count());
        let (all, left) = (self.segments.len(), self.pending.len());
        let what = match (left, self.round) {
            (0, _) => "asking members for missing segments".to_owned(),
            (_, 0) => format!("sending {} of {all} frames", all - left),
            (_, round) => format!("resending {left} of {all} frames (round {round})"),
        };
        let words = match members {
            0 => what,
            members => format!("{what}; {have_it} of {members} members have the bundle"),
        };
        part.tell("words", words).tell("frames_in_all", all);
        part.tell("members", members).tell("members_that_have_it", have_it);
    }

    /// True if a segment or a query is to be sent.
    pub(super) fn speaks(&self) -> bool {
        self.phase == RoundPhase::Sending
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            RoundPhase::Sending => None,
            RoundPhase::AwaitingAnswers(until) => Some(until),
        }
    }

    /// Next segment; the flag is true if it had been sent before.
    pub(super) fn segment(&mut self) -> Option<(Packet, bool)> {
        let index = self.pending.pop_first()?;
        let again = index < self.sent;
        self.sent = self.sent.max(index + 1);
        let (transfer, count) = (self.number, self.count());
        let data = self.segments[usize::from(index)].clone();
        Some((Packet::Segment { transfer, index, count, data }, again))
    }

    /// Query after the last segment, to as many members as fit; the order rotates, so that no member always
    /// answers after the same one.
    pub(super) fn query(&mut self, slot_ms: u16, members_max: usize) -> Packet {
        let mut members: Vec<u32> = self
            .members
            .iter()
            .filter(|member| member.standing == MemberState::Pending)
            .map(|m| m.name)
            .collect();
        if !members.is_empty() {
            let turn = usize::from(self.round) % members.len();
            members.rotate_left(turn);
        }
        members.truncate(members_max);
        for member in &mut self.members {
            member.answered = !members.contains(&member.name);
        }
        self.wanted = false;
        let round = self.round as u8;
        self.round += 1;
        Packet::Query { transfer: self.number, count: self.count(), round, slot_ms, members }
    }

    /// Begins the wait for answers, once the query has been sent.
    pub(super) fn listen(&mut self, until: Instant) {
        self.phase = RoundPhase::AwaitingAnswers(until);
    }

    /// Handles an answer; others may be delayed by it.
    pub(super) fn hear(&mut self, packet: &Packet, not_before: Instant) {
        let member = |name: u32| self.members.iter().position(|member| member.name == name);
        match packet {
            Packet::Request { member: name, first, bitmap, .. } => {
                let count = u32::from(self.count());
                let lacking = (0..8 * bitmap.len())
                    .filter(|place| is_set(bitmap, *place))
                    .map(|place| u32::from(*first) + place as u32)
                    .filter(|index| *index < count);
                let before = self.pending.len();
                self.pending.extend(lacking.map(|index| index as u16));
                self.wanted |= self.pending.len() > before;
                self.answered(member(*name), None);
            }
            Packet::Confirm { member: name, .. } => {
                self.answered(member(*name), Some(MemberState::HasBundle))
            }
            Packet::Refuse { member: name, reason, .. } => {
                let standing = match reason {
                    RefuseReason::Completed => MemberState::HasBundle,
                    reason => MemberState::Refused(*reason),
                };
                self.answered(member(*name), Some(standing));
            }
            _ => {}
        }
        if let RoundPhase::AwaitingAnswers(until) = &mut self.phase {
            *until = (*until).max(not_before);
        }
    }

    fn answered(&mut self, place: Option<usize>, standing: Option<MemberState>) {
        let Some(member) = place.map(|place| &mut self.members[place]) else { return };
        (member.answered, member.silent) = (true, 0);
        if let Some(standing) = standing
            && matches!(member.standing, MemberState::Pending | MemberState::Missed)
        {
            member.standing = standing;
        }
    }

    /// True if every queried member has answered.
    pub(super) fn has_all_answers(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.answered)
    }

    /// Ends a round. Returns the outcome if the bundle is complete.
    pub(super) fn settle(&mut self) -> Option<TransferOutcome> {
        self.phase = RoundPhase::Sending;
        // A member that receives another's request for all that it lacks does not answer.
        let excused = self.wanted;
        let silent_max = self.silent_max;
        for member in self.members.iter_mut().filter(|member| !member.answered && !excused) {
            member.silent += 1;
            if member.silent >= silent_max && member.standing == MemberState::Pending {
                member.standing = MemberState::Missed;
            }
        }
        self.quiet = if self.wanted { 0 } else { self.quiet + 1 };
        let open = self.members.iter().any(|member| member.standing == MemberState::Pending);
        let over = self.round >= self.rounds_max;
        let waits = if self.members.is_empty() { self.quiet < QUIET_MAX } else { open };
        if waits && !over {
            return None;
        }
        Some(self.end())
    }

    fn end(&self) -> TransferOutcome {
        let has = self.members.iter().filter(|member| member.standing == MemberState::HasBundle).count();
        let silent = |member: &&Member| matches!(member.standing, MemberState::Pending | MemberState::Missed);
        let missed = self.members.iter().filter(silent).count() as u64;
        if has >= self.needed {
            return TransferOutcome::Sent { missed };
        }
        let refusal = self.members.iter().find_map(|member| match member.standing {
            MemberState::Refused(reason) => Some(reason),
            _ => None,
        });
        TransferOutcome::Failed { missed, reason: refusal.unwrap_or(RefuseReason::Unknown) }
    }
}
