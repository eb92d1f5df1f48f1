//! Engine of a group, for both directions.

use super::config::{Config, Counters};
use super::incoming::Incoming;
use super::outgoing::{Outgoing, Recipients, TransferOutcome};
use super::wire::{self, Packet};
use crate::engine::Engine;
use crate::joint::earlier;
use crate::kit::{Backoff, Pacer};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, CloseReason, Datagrams, DatagramsIndication,
    DatagramsRequest, DownReason, PeerId, RefuseReason, Shares, TransferFailure, TransferId,
};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of remembered incoming bundles that are complete or interrupted.
const PAST_MAX: usize = 64;
/// Number of slots over which answers are spread if the query names no members.
const SPREAD_SLOTS: u32 = 4;
/// Maximum length of a bitmap, octets: 1,024 segments.
const BITMAP_BYTES_MAX: usize = 128;
/// Maximum number of cancelled bundles whose cancellation waits to be sent.
const CANCELS_MAX: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChannelState {
    Closed,
    Joining,
    Up,
}

/// Outcome of an incoming bundle whose segments are no longer accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinishedTransfer {
    Safe,
    Refused(RefuseReason),
    /// The bundle was interrupted: no answer is sent.
    Over,
}

/// Bundle whose pieces are arriving from the user.
#[derive(Debug)]
struct IncompleteBundle {
    transfer: TransferId,
    length: u64,
    bytes: BytesMut,
}

/// Answer that waits for its slot, and then for the channel.
#[derive(Debug)]
struct PendingAnswer {
    number: u32,
    at: Instant,
    due: bool,
}

/// Group of stations that share a datagram channel. The [module](super) describes the procedures.
#[derive(Debug)]
pub struct Group {
    config: Config,
    own: u32,
    names: Vec<u32>,
    rng: Rng,
    state: ChannelState,
    /// The user has requested the channel.
    wanted: bool,
    retry_at: Option<Instant>,
    /// Delay before the channel is joined again.
    backoff: Backoff,
    /// The group on the channel; `None` before it is joined.
    group: Option<PeerId>,
    /// Maximum length of a packet, bytes.
    bytes_max: usize,
    channel_room: u64,
    /// Time at which the channel will have sent the packets so far, according to its rate alone.
    pacer: Pacer,
    /// Number of the next bundle of this side.
    number: u32,
    open: BTreeMap<TransferId, u64>,
    filling: Option<IncompleteBundle>,
    waiting: Option<(TransferId, Bytes)>,
    active: Option<Outgoing>,
    cancels: VecDeque<u32>,
    incoming: BTreeMap<u32, Incoming>,
    /// Sender's number of each incoming bundle that was indicated to the user.
    risen: BTreeMap<TransferId, u32>,
    past: VecDeque<(u32, FinishedTransfer)>,
    answers: Vec<PendingAnswer>,
    next_incoming: u64,
    orders: VecDeque<DatagramsRequest>,
    release: u64,
    up: VecDeque<BundlesIndication>,
    /// Room granted to the user, bytes.
    told: u64,
    counters: Counters,
}

impl Group {
    /// Creates a group, which is joined on request.
    pub fn new(config: Config, mut rng: Rng) -> Self {
        Group {
            own: wire::name(&config.node_id),
            names: config.members.iter().map(|member| wire::name(member)).collect(),
            number: rng.next_u32(),
            backoff: Backoff::new(config.retry_min, config.retry_max),
            pacer: Pacer::new(config.rate_bps, Duration::ZERO),
            config,
            rng,
            state: ChannelState::Closed,
            wanted: false,
            retry_at: None,
            group: None,
            bytes_max: 0,
            channel_room: 0,
            open: BTreeMap::new(),
            filling: None,
            waiting: None,
            active: None,
            cancels: VecDeque::new(),
            incoming: BTreeMap::new(),
            risen: BTreeMap::new(),
            past: VecDeque::new(),
            answers: Vec::new(),
            next_incoming: 0,
            orders: VecDeque::new(),
            release: 0,
            up: VecDeque::new(),
            told: 0,
            counters: Counters::default(),
        }
    }

    /// Counters since the creation of the group.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// True if the channel is joined.
    pub fn is_up(&self) -> bool {
        self.state == ChannelState::Up
    }

    // -----------------------------------------------------------------------------------------------------------
    // Up and down

    fn join(&mut self) {
        self.retry_at = None;
        self.state = ChannelState::Joining;
        self.orders.push_back(DatagramsRequest::Join { damaged: false });
    }

    fn joined(&mut self, bytes_max: u64, group: Option<PeerId>) {
        if self.state != ChannelState::Joining {
            return;
        }
        self.state = ChannelState::Up;
        self.backoff.succeed();
        self.group = group;
        // A channel without a group is only received.
        let bytes_max = if group.is_some() { bytes_max } else { 0 };
        self.bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        self.told = 0;
        let transfer_bytes_max = self.transfer_bytes_max();
        self.up.push_back(BundlesIndication::Up { peer: None, interleave: false, transfer_bytes_max });
    }

    fn down(&mut self, reason: DownReason, retry: bool) {
        self.state = ChannelState::Closed;
        (self.channel_room, self.release) = (0, 0);
        let handed = self.filling.take().map(|filling| filling.transfer);
        let waiting = self.waiting.take().map(|(transfer, _)| transfer);
        let active = self.active.take().map(|outgoing| outgoing.transfer);
        let open = core::mem::take(&mut self.open).into_keys();
        let ended: Vec<TransferId> = open.chain(handed).chain(waiting).chain(active).collect();
        for transfer in ended {
            self.fail(transfer, TransferFailure::LinkDown);
        }
        for (number, incoming) in core::mem::take(&mut self.incoming) {
            self.break_off(&incoming);
            // A bundle that was completely indicated must not be indicated again as the same transfer of its
            // sender.
            if incoming.is_whole() {
                self.remember(number, FinishedTransfer::Refused(RefuseReason::Retransmit));
            }
        }
        self.answers.clear();
        self.cancels.clear();
        self.up.push_back(BundlesIndication::Down { reason, retry });
    }

    fn left(&mut self, now: Instant, reason: CloseReason) {
        if self.state == ChannelState::Closed {
            return;
        }
        let retry = self.wanted;
        self.down(DownReason::Stream(reason), retry);
        if retry {
            self.retry_at = Some(now + self.backoff.fail());
        }
    }

    fn close(&mut self) {
        let wanted = core::mem::replace(&mut self.wanted, false);
        self.retry_at = None;
        if self.state != ChannelState::Closed {
            self.orders.clear();
            self.orders.push_back(DatagramsRequest::Leave);
        } else if !wanted {
            return;
        }
        self.down(DownReason::Closed, false);
    }

    // -----------------------------------------------------------------------------------------------------------
    // To the group

    fn segment_bytes(&self) -> usize {
        self.bytes_max.saturating_sub(wire::SEGMENT_BYTES)
    }

    fn transfer_bytes_max(&self) -> u64 {
        let all = self.segment_bytes() as u64 * u64::from(u16::MAX);
        // A group whose queries do not fit into a packet is only received.
        if self.bytes_max < wire::QUERY_BYTES + wire::MEMBER_BYTES {
            0
        } else {
            all.min(self.config.bundle_bytes_max)
        }
    }

    fn fail(&mut self, transfer: TransferId, reason: TransferFailure) {
        self.up.push_back(BundlesIndication::Failed { transfer, reason, acked: 0 });
    }

    fn open(&mut self, transfer: TransferId, length: u64) {
        if self.state != ChannelState::Up {
            self.fail(transfer, TransferFailure::LinkDown);
        } else if length > self.transfer_bytes_max() {
            self.fail(transfer, TransferFailure::TooLong);
        } else if length == 0 {
            self.fail(transfer, TransferFailure::Refused(RefuseReason::NotAcceptable));
        } else if self.open.len() >= self.config.open_max {
            self.fail(transfer, TransferFailure::Refused(RefuseReason::NoResources));
        } else {
            self.open.insert(transfer, length);
        }
    }

    fn piece(&mut self, transfer: TransferId, data: &Bytes, last: bool) {
        self.told = self.told.saturating_sub(data.len() as u64);
        if let Some(length) = self.open.remove(&transfer) {
            self.filling = Some(IncompleteBundle { transfer, length, bytes: BytesMut::new() });
        }
        let Some(filling) = self.filling.as_mut().filter(|filling| filling.transfer == transfer) else {
            return;
        };
        filling.bytes.extend_from_slice(data);
        if last {
            let filling = self.filling.take().expect("just seen");
            self.waiting = Some((transfer, filling.bytes.freeze()));
            self.advance();
        }
    }

    /// Begins the next bundle unless one is being sent.
    fn advance(&mut self) {
        if self.active.is_some() {
            return;
        }
        let Some((transfer, bundle)) = self.waiting.take() else { return };
        let needed = self.config.needed.map_or(self.names.len(), |needed| needed as usize);
        let Config { silent_max, rounds_max, .. } = self.config;
        let audience = Recipients { names: &self.names, needed, silent_max, rounds_max };
        self.active = Some(Outgoing::new(transfer, self.number, &bundle, self.segment_bytes(), &audience));
        self.number = self.number.wrapping_add(1);
    }

    fn cancel(&mut self, transfer: TransferId) {
        let opened = self.open.remove(&transfer).is_some();
        let filled = self.filling.take_if(|filling| filling.transfer == transfer).is_some();
        let waited = self.waiting.take_if(|(waiting, _)| *waiting == transfer).is_some();
        let active = self.active.take_if(|outgoing| outgoing.transfer == transfer);
        if let Some(outgoing) = &active {
            self.call_off(outgoing.number);
        }
        if opened || filled || waited || active.is_some() {
            self.fail(transfer, TransferFailure::Cancelled);
            self.advance();
        }
    }

    /// Informs members with a part of a bundle that no more segments follow.
    fn call_off(&mut self, number: u32) {
        if self.cancels.len() < CANCELS_MAX {
            self.cancels.push_back(number);
        }
    }

    /// Ends a round: all answers have arrived, or the time for them has expired.
    fn settle(&mut self) {
        let Some(outgoing) = self.active.as_mut() else { return };
        let Some(end) = outgoing.settle() else { return };
        let (transfer, number) = (outgoing.transfer, outgoing.number);
        self.active = None;
        let (TransferOutcome::Sent { missed } | TransferOutcome::Failed { missed, .. }) = end;
        self.counters.members_missed += missed;
        if missed > 0 {
            self.call_off(number);
        }
        match end {
            TransferOutcome::Sent { .. } => self.up.push_back(BundlesIndication::Sent { transfer }),
            TransferOutcome::Failed { reason, .. } => self.fail(transfer, TransferFailure::Refused(reason)),
        }
        self.advance();
    }

    /// Room to indicate: for the rest of the bundle that is arriving from the user, or for a new one.
    fn room(&self) -> u64 {
        match (self.state, &self.filling) {
            (ChannelState::Closed | ChannelState::Joining, _) => 0,
            (ChannelState::Up, Some(filling)) => filling.length.saturating_sub(filling.bytes.len() as u64),
            (ChannelState::Up, None) if self.waiting.is_none() => self.transfer_bytes_max(),
            (ChannelState::Up, None) => 0,
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // From the group

    fn receive(&mut self, now: Instant, data: Bytes) {
        if self.state != ChannelState::Up {
            return;
        }
        self.release += data.len() as u64;
        let Ok(packet) = Packet::decode(&mut data.clone()) else {
            self.counters.violations += 1;
            return;
        };
        match packet {
            Packet::Segment { transfer, index, count, data } if !data.is_empty() => {
                self.receive_segment(now, transfer, index, count, data);
            }
            Packet::Segment { .. } => self.counters.violations += 1,
            Packet::Query { transfer, count, slot_ms, ref members, .. } => {
                self.asked(now, transfer, count, slot_ms, members);
            }
            Packet::Request { transfer, first, ref bitmap, .. } => {
                self.answered(now, &packet);
                self.spare(transfer, first, bitmap);
            }
            Packet::Confirm { .. } | Packet::Refuse { .. } => self.answered(now, &packet),
            Packet::Cancel { transfer } => {
                // Its sender can no longer cancel a bundle that was completely indicated.
                if self.incoming.get(&transfer).is_some_and(|incoming| !incoming.is_whole()) {
                    self.give_up(transfer);
                    self.remember(transfer, FinishedTransfer::Over);
                }
            }
        }
    }

    /// Incoming bundle with this number, created if there is space; `None` if its segments are ignored.
    fn listen_to(&mut self, now: Instant, number: u32, count: u16) -> Option<&mut Incoming> {
        if self.past.iter().any(|(past, _)| *past == number) {
            return None;
        }
        if !self.incoming.contains_key(&number) {
            if self.incoming.len() >= self.config.incoming_max {
                self.counters.dropped += 1;
                return None;
            }
            self.incoming.insert(number, Incoming::new(now, count));
        }
        let incoming = self.incoming.get_mut(&number).expect("just made");
        if incoming.count != count {
            self.counters.violations += 1;
            return None;
        }
        incoming.heard_at = now;
        Some(incoming)
    }

    fn receive_segment(&mut self, now: Instant, number: u32, index: u16, count: u16, data: Bytes) {
        let most = self.config.bundle_bytes_max;
        let Some(incoming) = self.listen_to(now, number, count) else {
            self.counters.duplicates += 1;
            return;
        };
        if incoming.bytes() + data.len() as u64 > most {
            self.counters.dropped += 1;
            self.give_up(number);
            return self.remember(number, FinishedTransfer::Refused(RefuseReason::NotAcceptable));
        }
        match incoming.take(index, data) {
            true => self.counters.segments_received += 1,
            false => self.counters.duplicates += 1,
        }
        let incoming = self.incoming.get_mut(&number).expect("just heard");
        while let Some((data, last)) = incoming.rise() {
            let transfer = *incoming.transfer.get_or_insert_with(|| {
                let transfer = TransferId(self.next_incoming);
                self.next_incoming += 1;
                self.risen.insert(transfer, number);
                self.up.push_back(BundlesIndication::Begin { transfer, length: None });
                transfer
            });
            self.up.push_back(BundlesIndication::Piece { transfer, data, last });
        }
    }

    /// Handles a query: schedules the answer for its slot.
    fn asked(&mut self, now: Instant, number: u32, count: u16, slot_ms: u16, members: &[u32]) {
        let slot = Duration::from_millis(slot_ms.into());
        let wait = match (members, members.iter().position(|member| *member == self.own)) {
            ([], _) => slot.mul_f64(f64::from(SPREAD_SLOTS) * self.rng.unit()),
            (_, Some(place)) => slot * place as u32,
            (_, None) => return,
        };
        let known = self.past.iter().any(|(past, _)| *past == number);
        if !known && self.listen_to(now, number, count).is_none() {
            return;
        }
        self.answers.retain(|answer| answer.number != number);
        if self.answers.len() < PAST_MAX {
            self.answers.push(PendingAnswer { number, at: now + wait, due: wait.is_zero() });
        }
    }

    /// Suppresses the own answer if another member has requested all segments that are missing here.
    fn spare(&mut self, number: u32, first: u16, bitmap: &[u8]) {
        let Some(incoming) = self.incoming.get(&number) else { return };
        if incoming.is_whole() || !incoming.is_covered_by(first, bitmap) {
            return;
        }
        let before = self.answers.len();
        self.answers.retain(|answer| answer.number != number);
        self.counters.answers_spared += (before - self.answers.len()) as u64;
    }

    /// Handles an answer, which may belong to a query of this side.
    fn answered(&mut self, now: Instant, packet: &Packet) {
        let slot = self.config.answer_slot;
        let Some(outgoing) = self.active.as_mut().filter(|active| active.number == packet.transfer()) else {
            return;
        };
        self.counters.answers_received += 1;
        outgoing.hear(packet, now + slot);
        if outgoing.deadline().is_some() && outgoing.has_all_answers() {
            self.settle();
        }
    }

    /// Answer of this side about a bundle; `None` while a complete bundle is not yet stored.
    fn answer(&mut self, number: u32) -> Option<Packet> {
        let member = self.own;
        let past = self.past.iter().find(|(past, _)| *past == number).map(|(_, past)| *past);
        if let Some(past) = past {
            return match past {
                FinishedTransfer::Safe => Some(Packet::Confirm { transfer: number, member }),
                FinishedTransfer::Refused(reason) => {
                    Some(Packet::Refuse { transfer: number, member, reason })
                }
                FinishedTransfer::Over => None,
            };
        }
        let octets_max = self.bytes_max.saturating_sub(wire::REQUEST_BYTES).min(BITMAP_BYTES_MAX);
        let (first, bitmap) = self.incoming.get(&number)?.lacking(octets_max.max(1))?;
        Some(Packet::Request { transfer: number, member, first, bitmap })
    }

    /// Ends the indications of an incoming bundle.
    fn break_off(&mut self, incoming: &Incoming) {
        let Some(transfer) = incoming.transfer else { return };
        self.risen.remove(&transfer);
        if !incoming.is_whole() {
            self.counters.lost += 1;
            self.up.push_back(BundlesIndication::Lost { transfer });
        }
    }

    fn remember(&mut self, number: u32, past: FinishedTransfer) {
        if self.past.len() >= PAST_MAX {
            self.past.pop_front();
        }
        self.past.push_back((number, past));
    }

    fn give_up(&mut self, number: u32) {
        if let Some(incoming) = self.incoming.remove(&number) {
            self.answers.retain(|answer| answer.number != number);
            self.break_off(&incoming);
        }
    }

    /// Ends an incoming bundle that the user has stored or refused.
    fn user_is_done(&mut self, transfer: TransferId, past: FinishedTransfer) {
        let Some(number) = self.risen.remove(&transfer) else { return };
        self.incoming.remove(&number);
        self.remember(number, past);
    }

    fn accept(&mut self, transfer: TransferId, up_to: u64) {
        let incoming = self.risen.get(&transfer).and_then(|number| self.incoming.get(number));
        if incoming.is_some_and(|incoming| incoming.is_whole() && up_to >= incoming.risen) {
            self.user_is_done(transfer, FinishedTransfer::Safe);
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // Packets

    /// Next packet; the flag is true if it was sent before.
    fn next_packet(&mut self, now: Instant) -> Option<(Packet, bool)> {
        while let Some(place) = self.answers.iter().position(|answer| answer.due) {
            let answer = self.answers.remove(place);
            if let Some(packet) = self.answer(answer.number) {
                self.counters.answers_sent += 1;
                return Some((packet, false));
            }
        }
        if let Some(transfer) = self.cancels.pop_front() {
            return Some((Packet::Cancel { transfer }, false));
        }
        let outgoing = self.active.as_mut().filter(|outgoing| outgoing.speaks())?;
        if let Some((packet, again)) = outgoing.segment() {
            self.counters.segments_sent += u64::from(!again);
            self.counters.segments_repeated += u64::from(again);
            return Some((packet, again));
        }
        let Config { answer_slot: slot, access, .. } = self.config;
        let slot_ms = u16::try_from(slot.as_millis()).unwrap_or(u16::MAX);
        let members_max = (self.bytes_max - wire::QUERY_BYTES) / wire::MEMBER_BYTES;
        let query = outgoing.query(slot_ms, members_max);
        let slots = match &query {
            Packet::Query { members, .. } if !members.is_empty() => members.len() as u32,
            _ => SPREAD_SLOTS,
        };
        self.counters.queries_sent += 1;
        outgoing.listen(self.pacer.ready_at().max(now) + access + slot * (slots + 1));
        Some((query, false))
    }

    /// Accounts for the time of a packet on the channel, after the packets before it.
    fn spend(&mut self, now: Instant, bytes: u64) {
        self.channel_room -= 1;
        self.pacer.spend(now, bytes + self.config.frame_bytes);
    }
}

impl Engine for Group {
    type Above = Bundles;
    type Below = Datagrams;

    fn handle_request(&mut self, _now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect => {
                self.wanted = true;
                if self.state == ChannelState::Closed {
                    self.backoff.succeed();
                    self.join();
                }
            }
            BundlesRequest::Open { transfer, length, .. } => self.open(transfer, length),
            BundlesRequest::Piece { transfer, data, last } => self.piece(transfer, &data, last),
            BundlesRequest::Cancel { transfer } => self.cancel(transfer),
            BundlesRequest::Accept { transfer, up_to } => self.accept(transfer, up_to),
            BundlesRequest::Refuse { transfer, reason } => {
                self.counters.refused += 1;
                self.user_is_done(transfer, FinishedTransfer::Refused(reason));
            }
            BundlesRequest::Close => self.close(),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { bytes_max, group, .. } => self.joined(bytes_max, group),
            DatagramsIndication::Room(room) => self.channel_room = room,
            DatagramsIndication::Datagram { bytes, .. } => self.receive(now, bytes),
            DatagramsIndication::Carrier(_) | DatagramsIndication::Transmitted(_) => {}
            DatagramsIndication::Left(reason) => self.left(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) && self.wanted {
            self.join();
        }
        for answer in self.answers.iter_mut().filter(|answer| answer.at <= now) {
            answer.due = true;
        }
        if self.active.as_ref().and_then(Outgoing::deadline).is_some_and(|until| until <= now) {
            self.settle();
        }
        let limit = self.config.incomplete_max;
        let stale = |incoming: &Incoming| !incoming.is_whole() && incoming.heard_at + limit <= now;
        let stale: Vec<u32> =
            self.incoming.iter().filter(|(_, incoming)| stale(incoming)).map(|(number, _)| *number).collect();
        stale.into_iter().for_each(|number| self.give_up(number));
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<BundlesIndication> {
        let room = self.room();
        BundlesIndication::next(&mut self.up, &mut self.told, room)
    }

    fn poll_request(&mut self, now: Instant) -> Option<DatagramsRequest> {
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        if self.release > 0 {
            return Some(DatagramsRequest::Release(core::mem::take(&mut self.release)));
        }
        if self.state != ChannelState::Up
            || self.channel_room == 0
            || self.bytes_max < wire::REQUEST_BYTES + 1
        {
            return None;
        }
        let to = self.group?;
        let (packet, again) = self.next_packet(now)?;
        let bytes = packet.to_bytes();
        self.spend(now, bytes.len() as u64);
        if let Some(outgoing) = &self.active
            && let Some(until) = outgoing.deadline()
            && until < self.pacer.ready_at()
        {
            // An answer of this side was sent in between: the answers of others are delayed by it.
            let until = self.pacer.ready_at() + self.config.answer_slot;
            self.active.as_mut().expect("just seen").listen(until);
        }
        let shares = match packet {
            Packet::Segment { .. } if again => Shares::repeated(bytes.len()),
            Packet::Segment { data, .. } => Shares::payload(data.len()),
            Packet::Query { .. } | Packet::Cancel { .. } => Shares::control(bytes.len()),
            Packet::Request { .. } | Packet::Confirm { .. } | Packet::Refuse { .. } => {
                Shares::acknowledgement(bytes.len())
            }
        };
        Some(DatagramsRequest::Datagram { to, bytes, shares, token: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let answer = self.answers.iter().filter(|answer| !answer.due).map(|answer| answer.at).min();
        let deadline = self.active.as_ref().and_then(Outgoing::deadline);
        let limit = self.config.incomplete_max;
        let listened = self.incoming.values().filter(|incoming| !incoming.is_whole());
        let stale = listened.map(|incoming| incoming.heard_at + limit).min();
        earlier(earlier(self.retry_at, answer), earlier(deadline, stale))
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("uicl").count(&self.counters).tell("up", self.is_up());
        match &self.active {
            Some(outgoing) => outgoing.observe(part),
            None => {
                let words = if self.is_up() { "listening" } else { "not joined" };
                part.tell("words", words.to_owned());
            }
        }
    }
}
