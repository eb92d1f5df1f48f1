//! One session: over one link, and over the next one if the link breaks while something is outstanding.

use super::config::{Config, Counters};
use super::incoming::Incoming;
use super::outgoing::{Outgoing, Violation};
use super::wire::{Hello, MAGIC, Message, Packet, encode_control};
use crate::codec;
use crate::engine::Engine;
use crate::kit::Backoff;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, CloseReason, DownReason, Packets, PacketsIndication,
    PacketsRequest, TransferFailure, TransferId,
};
use crate::time::{Instant, Timers};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Maximum waiting answers and cancellations; a peer that causes more does not accept them.
const ANSWERS_MAX: usize = 4096;
/// Minimum space for data after a hello in a packet, bytes.
const BEHIND_HELLO: usize = 16;

#[derive(Clone, Copy)]
enum Timer {
    /// The hello of the peer is overdue.
    Contact,
    /// A frame that is not full has waited long enough.
    Gather,
    /// The next attempt to connect the link is due.
    Retry,
    /// The wait for a new link is over.
    Resume,
    /// The closing of the session takes too long.
    Linger,
    /// The caller has been silent for so long that it is no node.
    Welcome,
}

/// Side that opens the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Active,
    Passive,
}

/// State of the link below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkPhase {
    Closed,
    Connecting,
    Open,
    /// The link is being closed: nothing more is sent or processed.
    Closing,
}

/// State of the session on its present link.
#[derive(Debug, Default)]
struct CurrentLink {
    room: u64,
    bytes_best: usize,
    bytes_max: usize,
    /// True if the session began on an earlier link.
    resumes: bool,
    /// True after the hello of the peer.
    greeted: bool,
    /// True while no numbered packet may be sent because the peer's hello is missing.
    waits: bool,
    /// True while our hello must go with the next packet; with `hello_now` also alone, at once.
    hello_due: bool,
    hello_now: bool,
    /// Packets passed down and not acknowledged: true for the numbered ones.
    handed: VecDeque<bool>,
    acknowledged: u64,
    /// Number of unacknowledged numbered packets that have been sent over this link.
    sent_on_link: usize,
}

/// State that survives a link.
#[derive(Debug, Default)]
struct SessionState {
    /// Our tag for the session; zero without a session.
    tag: u32,
    peer_tag: Option<u32>,
    peer_keeps: bool,
    /// True after the `Up` indication to the user.
    up: bool,
    /// Number of numbered packets that a link has acknowledged; those without acknowledgement are in `unacknowledged`.
    acknowledged: u64,
    unacknowledged: VecDeque<Bytes>,
    /// Number of numbered packets received.
    received: u64,
    outgoing: Outgoing,
    incoming: Incoming,
}

/// A session of Longwire's own convergence layer over AX.25. The [module](super) describes the protocol.
#[derive(Debug)]
pub struct Session {
    config: Config,
    role: Role,
    rng: Rng,
    wanted: bool,
    closing: bool,
    link: LinkPhase,
    current: CurrentLink,
    state: SessionState,
    /// Requests to the link that precede all others.
    orders: VecDeque<PacketsRequest>,
    /// True if the answer to a complete bundle justifies a frame at once.
    answers_now: bool,
    gathered: bool,
    /// Reason for the end and whether to retry, if this side ends the link.
    ends: (DownReason, bool),
    timers: Timers<6>,
    up: VecDeque<BundlesIndication>,
    told: u64,
    /// Delay before the link is opened again.
    backoff: Backoff,
    next_transfer: u64,
    over: bool,
    counters: Counters,
}

impl Session {
    /// Creates a session that connects to its peer on request, and reconnects when the link breaks.
    pub fn active(config: Config, rng: Rng) -> Self {
        Self::new(config, rng, Role::Active)
    }

    /// Creates a session that a peer opens.
    pub fn passive(config: Config, rng: Rng) -> Self {
        Self::new(config, rng, Role::Passive)
    }

    fn new(config: Config, rng: Rng, role: Role) -> Self {
        Session {
            backoff: Backoff::new(config.retry_min, config.retry_max),
            config,
            role,
            rng,
            wanted: false,
            closing: false,
            link: LinkPhase::Closed,
            current: CurrentLink::default(),
            state: SessionState::default(),
            orders: VecDeque::new(),
            answers_now: false,
            gathered: false,
            ends: (DownReason::Closed, false),
            timers: Timers::new(),
            up: VecDeque::new(),
            told: 0,
            next_transfer: 0,
            over: false,
            counters: Counters::default(),
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns true if the session is up and waits for a link to resume over.
    pub fn is_detached(&self) -> bool {
        self.state.up && matches!(self.link, LinkPhase::Closed | LinkPhase::Connecting)
    }

    /// Returns the number of frames that the peer has of the open bundles, and their total number of frames; `None` if
    /// none is open or there has been no link.
    fn frames(&self) -> Option<(u64, u64)> {
        let (sent, all) = self.state.outgoing.under_way()?;
        let frame = self.current.bytes_best as u64;
        let on_the_way = self.state.unacknowledged.len() as u64;
        (frame > 0).then(|| (sent.div_ceil(frame).saturating_sub(on_the_way), all.div_ceil(frame)))
    }

    /// Returns the peer's tag; `None` until it is known.
    pub fn peer_tag(&self) -> Option<u32> {
        self.state.peer_tag
    }

    /// Returns true if nothing has been exchanged on the link yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.link == LinkPhase::Open && !self.current.greeted && self.state.tag == 0
    }

    /// Resumes over the link of another session whose peer turns out to be this one's.
    pub(super) fn take_link(&mut self, now: Instant, other: &Session) {
        let bytes = (other.current.bytes_max as u32, other.current.bytes_best as u32);
        self.connected(now, bytes.0, bytes.1);
        self.current.room = other.current.room;
    }

    /// Ends the session because the peer has restarted.
    pub(super) fn superseded(&mut self, now: Instant) {
        self.fail(now, DownReason::PeerClosed, false);
    }

    fn set(&mut self, timer: Timer, at: Instant) {
        self.timers.set(timer as usize, at);
    }

    // -- The link -------------------------------------------------------------------------------------------------

    fn call(&mut self) {
        self.timers.stop(Timer::Retry as usize);
        self.link = LinkPhase::Connecting;
        self.orders.push_back(PacketsRequest::Connect);
    }

    fn call_later(&mut self, now: Instant) {
        let delay = self.backoff.fail();
        self.set(Timer::Retry, now + delay);
    }

    fn connected(&mut self, now: Instant, bytes_max: u32, bytes_best: u32) {
        if matches!(self.link, LinkPhase::Open | LinkPhase::Closing) {
            return;
        }
        self.link = LinkPhase::Open;
        self.timers.stop(Timer::Resume as usize);
        let (bytes_max, bytes_best) = (bytes_max as usize, bytes_best as usize);
        let resumes = self.state.tag != 0;
        self.current = CurrentLink { resumes, bytes_best, bytes_max, waits: true, ..CurrentLink::default() };
        let hello = self.hello().len();
        let longest = self.state.unacknowledged.iter().map(Bytes::len).max().unwrap_or(0);
        if hello + BEHIND_HELLO > bytes_best || longest > bytes_max {
            return self.give_up(now, DownReason::Contact);
        }
        if self.role == Role::Passive {
            if self.config.welcome.is_some() {
                self.set(Timer::Welcome, now + self.config.welcome_after);
            }
            return self.set(Timer::Contact, now + self.config.contact_timeout);
        }
        (self.current.hello_due, self.current.hello_now) = (true, true);
        if !resumes {
            self.state.tag = self.draw_tag();
        }
        if !resumes && self.config.peer_node_id.is_some() {
            // The peer's node ID is known, so the first bundle need not wait for its hello.
            self.current.waits = false;
            self.begin(self.config.peer_node_id.clone());
        } else {
            self.set(Timer::Contact, now + self.config.contact_timeout);
        }
    }

    /// Adopts new packet sizes from the link. Packets packed before stay as they are.
    fn takes(&mut self, now: Instant, bytes_max: u32, bytes_best: u32) {
        if self.link != LinkPhase::Open {
            return;
        }
        (self.current.bytes_max, self.current.bytes_best) = (bytes_max as usize, bytes_best as usize);
        if self.hello().len() + BEHIND_HELLO > self.current.bytes_best {
            self.give_up(now, DownReason::Contact);
        }
    }

    fn draw_tag(&mut self) -> u32 {
        self.rng.next_u32().max(1)
    }

    fn begin(&mut self, peer: Option<String>) {
        self.state.up = true;
        self.told = 0;
        self.counters.sessions += 1;
        let transfer_bytes_max = u64::MAX;
        self.up.push_back(BundlesIndication::Up { peer, interleave: true, transfer_bytes_max });
    }

    fn closed(&mut self, now: Instant, reason: CloseReason) {
        let ending = self.link == LinkPhase::Closing;
        self.link = LinkPhase::Closed;
        self.orders.clear();
        self.current = CurrentLink::default();
        self.state.incoming.unlink();
        for timer in [Timer::Contact, Timer::Linger, Timer::Welcome] {
            self.timers.stop(timer as usize);
        }
        if ending {
            return self.ended(now);
        }
        let in_order = reason == CloseReason::Finished;
        let resumes = self.state.up && !in_order && !self.closing && self.is_under_way();
        let reason = if in_order { DownReason::PeerClosed } else { DownReason::Stream(reason) };
        if !resumes {
            return self.fail(now, reason, true);
        }
        if self.timers.get(Timer::Resume as usize).is_none() {
            self.set(Timer::Resume, now + self.config.resume_within);
        }
        if self.role == Role::Active {
            self.call_later(now);
        }
    }

    /// A link that this side has ended is down.
    fn ended(&mut self, now: Instant) {
        let (reason, retry) = self.ends;
        self.fail(now, reason, retry);
    }

    /// Ends the link at once; the session is over when it is down.
    fn give_up(&mut self, now: Instant, reason: DownReason) {
        self.ends = (reason, true);
        match self.link {
            LinkPhase::Open | LinkPhase::Connecting => {
                self.link = LinkPhase::Closing;
                self.orders.clear();
                self.orders.push_back(PacketsRequest::Abort);
            }
            LinkPhase::Closing => {}
            LinkPhase::Closed => self.ended(now),
        }
    }

    /// Tells a caller that is no node what this is, and ends the link in good order.
    fn welcome(&mut self) {
        let Some(text) = self.config.welcome.as_ref().filter(|_| self.link == LinkPhase::Open) else {
            return;
        };
        self.timers.stop(Timer::Welcome as usize);
        // Terminals of packet radio end their lines so.
        let text = Bytes::from(text.replace("\r\n", "\r").replace('\n', "\r") + "\r");
        let packets = usize::try_from(self.current.room).unwrap_or(usize::MAX);
        let pieces = text.chunks(self.current.bytes_best.max(1)).take(packets);
        self.orders.extend(pieces.map(|piece| PacketsRequest::payload(text.slice_ref(piece))));
        self.orders.push_back(PacketsRequest::Close);
        self.counters.welcomed += 1;
        (self.link, self.ends) = (LinkPhase::Closing, (DownReason::Contact, true));
    }

    /// Ends the session: every open transfer ends, and the user is informed.
    fn fail(&mut self, now: Instant, reason: DownReason, retry: bool) {
        let keeps = self.state.peer_keeps && self.config.reactive_fragmentation;
        let mut state = core::mem::take(&mut self.state);
        self.up.extend(state.outgoing.fail_all(keeps));
        self.up.extend(state.incoming.lose_all());
        self.timers.stop_all();
        (self.answers_now, self.gathered, self.closing) = (false, false, false);
        self.wanted &= retry && self.role == Role::Active;
        if state.up || self.role == Role::Active {
            self.up.push_back(BundlesIndication::Down { reason, retry: self.wanted });
        }
        if self.wanted && self.link == LinkPhase::Closed {
            self.call_later(now);
        }
        self.over = self.role == Role::Passive && self.link == LinkPhase::Closed;
    }

    /// Returns true if something would be lost or duplicated if the session ended now.
    fn is_under_way(&self) -> bool {
        let state = &self.state;
        !state.outgoing.is_empty() || state.incoming.is_under_way() || !state.unacknowledged.is_empty()
    }

    // -- Receiving ------------------------------------------------------------------------------------------------

    fn hear(&mut self, now: Instant, mut bytes: Bytes) {
        if self.link != LinkPhase::Open {
            return;
        }
        let is_no_node =
            self.role == Role::Passive && !self.current.greeted && !bytes.starts_with(&MAGIC[..2]);
        if is_no_node && self.config.welcome.is_some() {
            return self.welcome();
        }
        let packet = self.state.incoming.begin_packet();
        let heard = Packet::decode(&mut bytes).map_err(|_| Violation);
        let outcome = heard.and_then(|heard| self.hear_packet(now, heard, packet));
        if outcome.is_err() || self.state.incoming.answers.len() > ANSWERS_MAX {
            self.counters.violations += 1;
            self.give_up(now, DownReason::ProtocolError);
        } else if self.link == LinkPhase::Open {
            self.state.incoming.part_done(packet);
        }
    }

    fn hear_packet(&mut self, now: Instant, heard: Packet, packet: u64) -> Result<(), Violation> {
        match heard.hello {
            Some(hello) if !self.current.greeted => {
                self.current.greeted = true;
                self.hear_hello(now, &hello)?;
            }
            None if self.current.greeted => {}
            _ => return Err(Violation),
        }
        if heard.messages.is_empty() || self.link != LinkPhase::Open {
            return Ok(());
        }
        self.state.received += 1;
        self.counters.packets_received += 1;
        for message in heard.messages {
            self.hear_message(message, packet)?;
        }
        Ok(())
    }

    fn hear_hello(&mut self, now: Instant, hello: &Hello) -> Result<(), Violation> {
        self.timers.stop(Timer::Contact as usize);
        self.timers.stop(Timer::Welcome as usize);
        let is_other = self.config.peer_node_id.as_ref().is_some_and(|expected| *expected != hello.node_id);
        let is_own = !hello.node_id.is_empty() && hello.node_id == self.config.node_id;
        if is_other || is_own {
            self.give_up(now, DownReason::Identity);
            return Ok(());
        }
        self.backoff.succeed();
        let had_begun = self.state.up;
        let goes_on = self.goes_on(hello);
        if !goes_on {
            // The peer has restarted: it has lost the state of the session, so this side ends it, too.
            self.give_up(now, DownReason::PeerClosed);
            return Ok(());
        }
        self.state.peer_tag = Some(hello.tag);
        self.state.peer_keeps = hello.keeps_prefix;
        self.current.waits = false;
        if self.role == Role::Passive {
            (self.current.hello_due, self.current.hello_now) = (true, hello.asks);
            if self.state.tag == 0 {
                self.state.tag = self.draw_tag();
            }
        }
        self.counters.resumed += u64::from(self.current.resumes);
        if !had_begun {
            self.begin(Some(hello.node_id.clone()).filter(|name| !name.is_empty()));
        }
        Ok(())
    }

    /// Returns true if the peer resumes the same session, and has every packet that this side no longer stores.
    fn goes_on(&mut self, hello: &Hello) -> bool {
        let own_tag = self.state.tag;
        match (self.state.peer_tag, hello.resume) {
            _ if !self.current.resumes => true,
            (Some(tag), Some((own, received))) => {
                // A peer that never received a hello of ours has nothing of the session.
                tag == hello.tag && (own == own_tag || (own, received) == (0, 0)) && self.trim(received)
            }
            (None, Some((own, received))) => own == own_tag && self.trim(received),
            // The peer never received our hello, or has forgotten the session: then packets may have arrived.
            (None, None) => self.state.acknowledged == 0 && self.state.unacknowledged.is_empty(),
            (Some(_), None) => false,
        }
    }

    /// Removes the packets that the peer has received. Returns false if the number is impossible.
    fn trim(&mut self, received: u64) -> bool {
        let state = &mut self.state;
        let Some(more) = received.checked_sub(state.acknowledged) else { return false };
        if more > state.unacknowledged.len() as u64 {
            return false;
        }
        state.unacknowledged.drain(..more as usize);
        state.acknowledged = received;
        true
    }

    fn hear_message(&mut self, message: Message, packet: u64) -> Result<(), Violation> {
        let state = &mut self.state;
        let keeps = state.peer_keeps && self.config.reactive_fragmentation;
        let said = match message {
            Message::Whole { number } => state.outgoing.acknowledged(number, None, keeps)?,
            Message::Progress { number, up_to } => state.outgoing.acknowledged(number, Some(up_to), keeps)?,
            Message::Refuse { number, reason } => state.outgoing.refused(number, reason, keeps)?,
            Message::Cancel { number } => state.incoming.cancelled(number)?,
            Message::Data { begins, number, data } => {
                self.counters.payload_received += data.len() as u64;
                let fresh = TransferId(self.next_transfer);
                self.next_transfer += u64::from(begins.is_some());
                let (up, place) = (&mut self.up, (packet, fresh));
                let refused = state.incoming.data(begins, number, data, place, &self.config, up)?;
                self.counters.refused += u64::from(refused);
                None
            }
        };
        self.up.extend(said);
        Ok(())
    }

    fn acknowledged(&mut self, all: u64) {
        if self.link != LinkPhase::Open {
            return;
        }
        let fresh = all.saturating_sub(self.current.acknowledged);
        self.current.acknowledged = all;
        for _ in 0..fresh {
            if self.current.handed.pop_front() == Some(true)
                && self.state.unacknowledged.pop_front().is_some()
            {
                self.state.acknowledged += 1;
                self.current.sent_on_link -= 1;
            }
        }
    }

    // -- Sending --------------------------------------------------------------------------------------------------

    fn hello(&self) -> Bytes {
        let resume = (self.state.peer_tag.unwrap_or(0), self.state.received);
        let hello = Hello {
            asks: self.role == Role::Active && self.current.waits,
            keeps_prefix: self.config.reactive_fragmentation,
            tag: self.state.tag,
            resume: self.current.resumes.then_some(resume),
            node_id: self.config.node_id.clone(),
        };
        codec::encoded(0, |out| hello.encode(out))
    }

    /// Returns the next packet; `None` if none is worth sending.
    fn next_packet(&mut self, now: Instant) -> Option<Bytes> {
        if self.link != LinkPhase::Open || self.current.room == 0 || (self.state.tag == 0) {
            return None;
        }
        let repeats = self.current.sent_on_link < self.state.unacknowledged.len();
        let mut out = BytesMut::new();
        if self.current.hello_due {
            out.extend_from_slice(&self.hello());
            if self.current.waits || repeats {
                return Some(self.greets(out));
            }
        }
        if self.current.waits {
            return None;
        }
        if repeats {
            let packet = self.state.unacknowledged[self.current.sent_on_link].clone();
            self.counters.packets_repeated += 1;
            return Some(self.numbered(packet.clone(), packet));
        }
        let before = out.len();
        self.pack(now, &mut out);
        if out.len() > before {
            self.counters.packets_sent += 1;
            let packet = out.freeze();
            self.current.hello_due = false;
            return Some(self.numbered(packet.slice(before..), packet));
        }
        if !(self.current.hello_due && self.current.hello_now) {
            return None;
        }
        // A passive side answers a request for a hello at once; an active side gives its first bundle a moment to join
        // the hello.
        if self.role == Role::Passive || core::mem::take(&mut self.gathered) {
            return Some(self.greets(out));
        }
        self.wait_for_more(now);
        None
    }

    fn wait_for_more(&mut self, now: Instant) {
        if self.timers.get(Timer::Gather as usize).is_none() {
            self.set(Timer::Gather, now + self.config.gather);
        }
    }

    fn greets(&mut self, hello: BytesMut) -> Bytes {
        self.current.hello_due = false;
        self.current.handed.push_back(false);
        self.current.room -= 1;
        hello.freeze()
    }

    fn numbered(&mut self, content: Bytes, packet: Bytes) -> Bytes {
        if self.current.sent_on_link == self.state.unacknowledged.len() {
            self.state.unacknowledged.push_back(content);
        }
        self.current.sent_on_link += 1;
        self.current.handed.push_back(true);
        self.current.room -= 1;
        packet
    }

    /// Packs answers first, then bundles. Leaves pieces unpacked if they do not fill a frame and more is to come.
    fn pack(&mut self, now: Instant, out: &mut BytesMut) {
        let most = self.current.bytes_best;
        let answers = &mut self.state.incoming.answers;
        let speaks = !answers.is_empty();
        while let Some(answer) = answers.front() {
            let mut said = BytesMut::new();
            encode_control(answer, &mut said);
            if out.len() + said.len() > most {
                break;
            }
            out.extend_from_slice(&said);
            answers.pop_front();
        }
        let outgoing = &mut self.state.outgoing;
        let full = out.len() as u64 + outgoing.queued() >= most as u64;
        if !outgoing.has_pieces() {
            return;
        }
        if !(full || speaks || self.gathered) && outgoing.wants_more() {
            return self.wait_for_more(now);
        }
        self.gathered = false;
        self.timers.stop(Timer::Gather as usize);
        self.counters.payload_sent += outgoing.pack(out, most);
    }

    /// Returns the room for the user: the packets that the link accepts, less the bytes that wait to be packed.
    fn room(&self) -> u64 {
        if !self.state.up || self.closing || self.link != LinkPhase::Open || self.current.waits {
            return 0;
        }
        let repeats = (self.state.unacknowledged.len() - self.current.sent_on_link) as u64;
        let packets = self.current.room.saturating_sub(repeats);
        (packets * self.current.bytes_best as u64).saturating_sub(self.state.outgoing.queued())
    }

    // -- Ending ---------------------------------------------------------------------------------------------------

    fn close(&mut self, now: Instant) {
        let wanted = core::mem::replace(&mut self.wanted, false);
        self.ends = (DownReason::Closed, false);
        match self.link {
            LinkPhase::Open if self.state.up => {
                self.closing = true;
                self.set(Timer::Linger, now + self.config.close_timeout);
            }
            LinkPhase::Open | LinkPhase::Connecting => {
                self.give_up(now, DownReason::Closed);
                self.ends = (DownReason::Closed, false);
            }
            LinkPhase::Closing => {}
            LinkPhase::Closed if wanted || self.state.up => self.fail(now, DownReason::Closed, false),
            LinkPhase::Closed => {}
        }
    }

    /// Returns true if a closing session has nothing outstanding.
    fn may_close(&self) -> bool {
        let state = &self.state;
        let quiet = !state.outgoing.owes() && !state.incoming.owes() && state.unacknowledged.is_empty();
        self.closing && self.link == LinkPhase::Open && quiet
    }
}

impl Engine for Session {
    type Above = Bundles;
    type Below = Packets;

    fn handle_request(&mut self, now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect => {
                if self.role == Role::Active && !self.wanted {
                    (self.wanted, self.ends.1) = (true, true);
                    self.backoff.succeed();
                    if self.link == LinkPhase::Closed {
                        self.call();
                    }
                }
            }
            BundlesRequest::Open { transfer, length, .. } => {
                let failed = match self.state.up {
                    true => self.state.outgoing.open(transfer, length, self.config.open_max),
                    false => {
                        let reason = TransferFailure::LinkDown;
                        Some(BundlesIndication::Failed { transfer, reason, acked: 0 })
                    }
                };
                self.up.extend(failed);
            }
            BundlesRequest::Piece { transfer, data, last } => {
                self.told = self.told.saturating_sub(data.len() as u64);
                self.state.outgoing.piece(transfer, data, last);
            }
            BundlesRequest::Cancel { transfer } => {
                let keeps = self.state.peer_keeps && self.config.reactive_fragmentation;
                let (number, said) = self.state.outgoing.cancel(transfer, keeps);
                self.state.incoming.answers.extend(number.map(|number| Message::Cancel { number }));
                self.up.extend(said);
            }
            BundlesRequest::Accept { transfer, up_to } => {
                self.answers_now |= self.state.incoming.accept(transfer, up_to, self.config.progress_bytes);
            }
            BundlesRequest::Refuse { transfer, reason } => {
                self.counters.refused += u64::from(self.state.incoming.refuse(transfer, reason));
            }
            BundlesRequest::Close => self.close(now),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: PacketsIndication) {
        match indication {
            PacketsIndication::Connected { bytes_max, bytes_best, .. } => {
                self.connected(now, bytes_max, bytes_best)
            }
            PacketsIndication::Sizes { bytes_max, bytes_best } => self.takes(now, bytes_max, bytes_best),
            PacketsIndication::Room(room) => self.current.room = room,
            PacketsIndication::Packet(packet) => self.hear(now, packet),
            PacketsIndication::Acknowledged(all) => self.acknowledged(all),
            PacketsIndication::Closed(reason) => self.closed(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let mut due = |timer: Timer| self.timers.expire(timer as usize, now);
        let (contact, gather, retry) = (due(Timer::Contact), due(Timer::Gather), due(Timer::Retry));
        let (resume, linger) = (due(Timer::Resume), due(Timer::Linger));
        self.gathered |= gather && (self.current.hello_due || self.state.outgoing.has_pieces());
        if due(Timer::Welcome) && !self.current.greeted {
            self.welcome();
        }
        if contact {
            self.give_up(now, DownReason::Contact);
        }
        if resume && self.is_detached() {
            match self.link {
                LinkPhase::Connecting => self.give_up(now, DownReason::Stream(CloseReason::TimedOut)),
                _ => self.fail(now, DownReason::Stream(CloseReason::TimedOut), true),
            }
        }
        if retry && self.link == LinkPhase::Closed && self.wanted {
            self.call();
        }
        if linger {
            let ends = self.ends;
            self.give_up(now, ends.0);
            self.ends = ends;
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<BundlesIndication> {
        let room = self.room();
        BundlesIndication::next(&mut self.up, &mut self.told, room)
    }

    fn poll_request(&mut self, now: Instant) -> Option<PacketsRequest> {
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        if self.link != LinkPhase::Open {
            return None;
        }
        let release = core::mem::take(&mut self.state.incoming.release);
        if release > 0 {
            return Some(PacketsRequest::Release(release));
        }
        if let Some(packet) = self.next_packet(now) {
            return Some(PacketsRequest::payload(packet));
        }
        if core::mem::take(&mut self.answers_now) {
            return Some(PacketsRequest::Acknowledge);
        }
        if self.may_close() {
            self.link = LinkPhase::Closing;
            return Some(PacketsRequest::Close);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn finished(&self) -> bool {
        self.over && self.up.is_empty() && self.orders.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("ax25cl").count(&self.counters);
        part.tell("detached", self.is_detached()).tell("unacknowledged", self.state.unacknowledged.len());
        if let Some((there, all)) = self.frames() {
            part.tell("frames_acknowledged", there).tell("frames_in_all", all);
        }
    }
}
