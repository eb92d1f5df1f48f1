//! A bundle on its way to a group: what is to be sent, and who has it.

use super::incoming::is_set;
use super::wire::Packet;
use crate::service::{RefuseReason, TransferId};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::BTreeSet;

/// Questions that nobody answers, after which nobody is taken to lack anything where nobody is known.
const QUIET_MAX: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    /// It has not said that it has all.
    Pending,
    HasBundle,
    Refused(RefuseReason),
    /// Silent for too long.
    Missed,
}

#[derive(Debug)]
struct Member {
    name: u32,
    standing: MemberState,
    /// It has answered the last question.
    answered: bool,
    /// Questions in a row that it left unanswered.
    silent: u8,
}

/// What is next.
#[derive(Debug, PartialEq, Eq)]
enum RoundPhase {
    /// A segment or, when none is left, the question.
    Sending,
    /// Answers, until then.
    AwaitingAnswers(Instant),
}

/// How a bundle ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferOutcome {
    /// As many have it as are needed; so many others do not.
    Sent { missed: u64 },
    /// Not enough have it.
    Failed { missed: u64, reason: RefuseReason },
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) transfer: TransferId,
    pub(super) number: u32,
    segments: Vec<Bytes>,
    /// Segments below this have been sent once.
    sent: u16,
    pending: BTreeSet<u16>,
    members: Vec<Member>,
    needed: usize,
    phase: RoundPhase,
    round: u16,
    rounds_max: u16,
    silent_max: u8,
    /// Somebody lacked something when the last question was answered.
    wanted: bool,
    quiet: u8,
}

/// How far a bundle is on its way to a group, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupProgress {
    /// Questions asked.
    pub round: u16,
    /// Segments of the bundle.
    pub segments: u16,
    /// Of these, to be sent, or sent again.
    pub to_send: u16,
    /// Members that are asked.
    pub members: usize,
    /// Of these, those that have said that they have it.
    pub have_it: usize,
}

/// Who is meant, and how long they are waited for.
#[derive(Debug)]
pub(super) struct Recipients<'a> {
    pub(super) names: &'a [u32],
    pub(super) needed: usize,
    pub(super) silent_max: u8,
    pub(super) rounds_max: u16,
}

impl Outgoing {
    /// In segments of so many bytes; there are no more than 65,535 of them.
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

    /// How far it is.
    pub(super) fn progress(&self) -> GroupProgress {
        let has = |member: &&Member| member.standing == MemberState::HasBundle;
        GroupProgress {
            round: self.round,
            segments: self.count(),
            to_send: self.pending.len() as u16,
            members: self.members.len(),
            have_it: self.members.iter().filter(has).count(),
        }
    }

    /// It has something to say.
    pub(super) fn speaks(&self) -> bool {
        self.phase == RoundPhase::Sending
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            RoundPhase::Sending => None,
            RoundPhase::AwaitingAnswers(until) => Some(until),
        }
    }

    /// The next segment, and whether it had been sent before.
    pub(super) fn segment(&mut self) -> Option<(Packet, bool)> {
        let index = self.pending.pop_first()?;
        let again = index < self.sent;
        self.sent = self.sent.max(index + 1);
        let (transfer, count) = (self.number, self.count());
        let data = self.segments[usize::from(index)].clone();
        Some((Packet::Segment { transfer, index, count, data }, again))
    }

    /// The question behind the last segment, to as many members as fit; the order turns, so that nobody always answers behind
    /// the same one.
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

    /// The question has been handed down: answers come until then.
    pub(super) fn listen(&mut self, until: Instant) {
        self.phase = RoundPhase::AwaitingAnswers(until);
    }

    /// An answer came: others may be late, too.
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

    /// Everybody who was asked has answered.
    pub(super) fn has_all_answers(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.answered)
    }

    /// Answers have come, or the time for them is over.
    pub(super) fn settle(&mut self) -> Option<TransferOutcome> {
        self.phase = RoundPhase::Sending;
        // Who hears another ask for what it lacks says nothing itself.
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
