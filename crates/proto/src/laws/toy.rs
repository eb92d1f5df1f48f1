//! A protocol small enough to verify by reading, and the laws that its flaws break: each law has a flaw here that only
//! this law detects. A law that cannot fail proves nothing.
//!
//! The toy transfers bundles over one link, one piece at a time: each is retransmitted until the peer acknowledges it.
//! A session is identified by two numbers drawn at the start, which distinguish a node that has crashed from one that
//! has not.

use super::bundles::{BundleUserBehaviour, BundleUsers};
use super::frames::{BitErrors, FrameConditions, HostileFrames};
use super::{Crash, Draw, IdleBudget, LawRun, Replay, RunDigest, RunPlan, sweep};
use crate::codec::crc::crc32;
use crate::engine::Engine;
use crate::joint::Fan;
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, DownReason, Frames, FramesIndication, FramesRequest, LinkId,
    Many, RefuseReason, Shares, TransferFailure, TransferId,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

const PIECE: u64 = 200;
const REPEAT: Duration = Duration::from_secs(2);

/// Flaw of a toy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// Acknowledges received data before they are stored.
    AcknowledgesEarly,
    /// Delivers a retransmitted piece again.
    DeliversTwice,
    /// Accepts any piece as the next one.
    MissesLoss,
    /// Sends every piece once.
    NeverRepeats,
    /// Sends something every second.
    Chatty,
    /// Wakes every second and does nothing.
    Sleepless,
    /// Indicates twice that a bundle is sent.
    TwoEnds,
    /// Never indicates the end.
    NoEnd,
    /// Sends without room.
    Overspends,
    /// Ignores the checksum.
    TrustsBits,
    /// Assumes that a frame is long enough.
    TrustsLengths,
    /// Puts a number into its frames that is not derived from its seed.
    Unseeded,
    /// Loses its deadline when it is woken too early.
    FearsEarlyTimeouts,
}

/// A number that differs from run to run.
static UNSEEDED: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Outgoing {
    wire: u64,
    length: u64,
    handed: u64,
    acked: u64,
}

/// Outstanding piece.
#[derive(Debug)]
struct Flight {
    transfer: TransferId,
    wire: u64,
    offset: u64,
    data: Bytes,
    last: bool,
}

#[derive(Debug)]
struct Incoming {
    wire: u64,
    transfer: TransferId,
    risen: u64,
    accepted: u64,
    last: bool,
    refused: Option<RefuseReason>,
}

impl Incoming {
    fn over(&self) -> bool {
        self.refused.is_some() || (self.last && self.accepted == self.risen)
    }
}

/// Reasons that the toy can encode; the number in a frame is the index plus one.
const REASONS: [RefuseReason; 4] =
    [RefuseReason::Unknown, RefuseReason::Completed, RefuseReason::NoResources, RefuseReason::NotAcceptable];

fn code(reason: Option<RefuseReason>) -> u8 {
    let place = |reason| REASONS.iter().position(|&other| other == reason).unwrap_or(0);
    reason.map_or(0, |reason| place(reason) as u8 + 1)
}

fn reason(code: u8) -> Option<RefuseReason> {
    let place = usize::from(code).checked_sub(1)?;
    Some(REASONS.get(place).copied().unwrap_or(RefuseReason::Unknown))
}

/// Engine of the toy protocol.
#[derive(Debug)]
pub(super) struct Toy {
    flaw: Flaw,
    rng: Rng,
    number: u32,
    peer: Option<u32>,
    wanted: bool,
    room: u32,
    outgoing: BTreeMap<TransferId, Outgoing>,
    flight: Option<Flight>,
    /// The outstanding piece must be sent (again).
    due: bool,
    wires: u64,
    incoming: Option<Incoming>,
    begun: u64,
    /// Replies that wait for room; only the newest of each kind is kept.
    hello: Option<(u32, bool)>,
    ack: bool,
    /// Transfer without a session, to be refused.
    stranger: Option<u64>,
    told: u64,
    up: VecDeque<BundlesIndication>,
    down: VecDeque<FramesRequest>,
    repeat_at: Option<Instant>,
    hello_at: Option<Instant>,
    chat_at: Option<Instant>,
}

impl Toy {
    pub(super) fn new(flaw: Flaw, mut rng: Rng) -> Self {
        Toy {
            flaw,
            number: rng.next_u32() | 1,
            rng,
            peer: None,
            wanted: false,
            room: 0,
            outgoing: BTreeMap::new(),
            flight: None,
            due: false,
            wires: 0,
            incoming: None,
            begun: 0,
            hello: None,
            ack: false,
            stranger: None,
            told: 0,
            up: VecDeque::new(),
            down: VecDeque::new(),
            repeat_at: None,
            hello_at: None,
            chat_at: None,
        }
    }

    /// Indicates the room: one piece if none is outstanding.
    fn tell_room(&mut self) {
        let room = if self.peer.is_some() && self.flight.is_none() { PIECE } else { 0 };
        if room != self.told {
            self.told = room;
            self.up.push_back(BundlesIndication::Room(room));
        }
    }

    /// Ends the session; the next one has another number, which shows the peer that it is new.
    fn close(&mut self) {
        self.end(DownReason::Closed, false);
        self.number = self.rng.next_u32() | 1;
        (self.peer, self.flight, self.repeat_at, self.told) = (None, None, None, 0);
        (self.incoming, self.due, self.hello_at, self.hello) = (None, false, None, None);
        self.wanted = false;
    }

    fn end(&mut self, reason: DownReason, retry: bool) {
        if self.peer.is_some() {
            for (transfer, entry) in core::mem::take(&mut self.outgoing) {
                let failed = TransferFailure::LinkDown;
                self.up.push_back(BundlesIndication::Failed { transfer, reason: failed, acked: entry.acked });
            }
            if let Some(incoming) = self.incoming.take()
                && !incoming.over()
            {
                self.up.push_back(BundlesIndication::Lost { transfer: incoming.transfer });
            }
            self.up.push_back(BundlesIndication::Down { reason, retry });
        }
    }

    fn session(&mut self, peer: u32) {
        self.end(DownReason::PeerClosed, true);
        (self.peer, self.flight, self.repeat_at, self.told) = (Some(peer), None, None, 0);
        (self.incoming, self.due, self.hello_at) = (None, false, None);
        self.up.push_back(BundlesIndication::Up {
            peer: None,
            interleave: false,
            transfer_bytes_max: u64::MAX,
        });
    }

    fn hears_frame(&mut self, mut frame: Bytes) {
        if !self.wanted {
            return;
        }
        if self.flaw != Flaw::TrustsLengths && frame.len() < 13 {
            return;
        }
        let sum = frame.get_u32();
        if self.flaw != Flaw::TrustsBits && sum != crc32(&frame) {
            return;
        }
        let (theirs, mine, kind) = (frame.get_u32(), frame.get_u32(), frame.get_u8());
        match kind {
            b'h' | b'H' => {
                if mine == self.number && self.peer != Some(theirs) {
                    self.session(theirs);
                    self.hello = Some((theirs, false));
                }
                if kind == b'H' {
                    self.hello = Some((theirs, mine != self.number));
                }
            }
            _ if self.peer != Some(theirs) || mine != self.number => self.hello = Some((theirs, true)),
            b'd' if frame.len() >= 25 || self.flaw == Flaw::TrustsLengths => self.hears_piece(frame),
            b'a' if frame.len() >= 25 || self.flaw == Flaw::TrustsLengths => self.hears_ack(frame),
            _ => {}
        }
    }

    fn hears_piece(&mut self, mut frame: Bytes) {
        let (wire, offset, length) = (frame.get_u64(), frame.get_u64(), frame.get_u64());
        let last = offset + frame.len() as u64 == length;
        if self.incoming.as_ref().is_none_or(|incoming| incoming.wire < wire) {
            if offset > 0 && self.flaw != Flaw::MissesLoss {
                // The peer does not know that this is another session: its transfer does not belong to it.
                self.stranger = Some(wire);
                return;
            }
            if let Some(old) = self.incoming.take()
                && !old.over()
            {
                self.up.push_back(BundlesIndication::Lost { transfer: old.transfer });
            }
            let transfer = TransferId(self.begun);
            self.begun += 1;
            self.up.push_back(BundlesIndication::Begin { transfer, length: Some(length) });
            let fresh = Incoming { wire, transfer, risen: 0, accepted: 0, last: false, refused: None };
            self.incoming = Some(fresh);
        }
        let incoming = self.incoming.as_mut().expect("it was just made");
        if incoming.wire != wire {
            return;
        }
        let next = incoming.risen == offset && !incoming.last && incoming.refused.is_none();
        let twice = self.flaw == Flaw::DeliversTwice && incoming.refused.is_none();
        if next || self.flaw == Flaw::MissesLoss || twice {
            incoming.risen += frame.len() as u64;
            incoming.last = last;
            self.up.push_back(BundlesIndication::Piece { transfer: incoming.transfer, data: frame, last });
            if self.flaw == Flaw::AcknowledgesEarly {
                incoming.accepted = incoming.risen;
            }
        }
        self.ack = true;
    }

    fn hears_ack(&mut self, mut frame: Bytes) {
        let (wire, risen, up_to) = (frame.get_u64(), frame.get_u64(), frame.get_u64());
        let refused = reason(frame.get_u8());
        let Some(flight) = &self.flight else { return };
        if flight.wire != wire {
            return;
        }
        let (transfer, last) = (flight.transfer, flight.last);
        // The next piece follows when this one has been delivered; the last one is retransmitted until the bundle is
        // stored.
        let end = flight.offset + flight.data.len() as u64;
        let arrived = if last { up_to == end } else { risen >= end };
        let entry = self.outgoing.get_mut(&transfer).expect("a flight belongs to a transfer");
        if up_to > entry.acked {
            entry.acked = up_to;
            self.up.push_back(BundlesIndication::Acked { transfer, up_to });
        }
        let acked = entry.acked;
        if let Some(refused) = refused {
            let reason = TransferFailure::Refused(refused);
            self.up.push_back(BundlesIndication::Failed { transfer, reason, acked });
            self.outgoing.remove(&transfer);
        } else if !arrived {
            return;
        } else if last {
            let ends = match self.flaw {
                Flaw::TwoEnds => 2,
                Flaw::NoEnd => 0,
                _ => 1,
            };
            self.up.extend((0..ends).map(|_| BundlesIndication::Sent { transfer }));
            self.outgoing.remove(&transfer);
        }
        (self.flight, self.due, self.repeat_at) = (None, false, None);
    }

    fn frame(&self, to: u32, kind: u8, rest: impl FnOnce(&mut BytesMut)) -> FramesRequest {
        let mut body = BytesMut::new();
        body.put_u32(self.number);
        body.put_u32(to);
        body.put_u8(kind);
        rest(&mut body);
        let mut bytes = BytesMut::new();
        bytes.put_u32(crc32(&body));
        bytes.put_slice(&body);
        FramesRequest::Frame { bytes: bytes.freeze(), token: None, last: true, shares: Shares::default() }
    }

    /// Returns the next frame, built when there is room for it.
    fn next_frame(&mut self, now: Instant) -> Option<FramesRequest> {
        if let Some((to, ask)) = self.hello.take() {
            return Some(self.frame(to, if ask { b'H' } else { b'h' }, |_| {}));
        }
        let peer = self.peer?;
        if let Some(wire) = self.stranger.take() {
            return Some(self.frame(peer, b'a', |body| {
                body.put_u64(wire);
                body.put_u64(0);
                body.put_u64(0);
                body.put_u8(code(Some(RefuseReason::Unknown)));
            }));
        }
        if core::mem::take(&mut self.ack)
            && let Some(incoming) = &self.incoming
        {
            return Some(self.frame(peer, b'a', |body| {
                body.put_u64(incoming.wire);
                body.put_u64(incoming.risen);
                body.put_u64(incoming.accepted);
                body.put_u8(code(incoming.refused));
            }));
        }
        let flight = self.flight.as_ref()?;
        if !core::mem::take(&mut self.due) {
            return None;
        }
        self.repeat_at = (self.flaw != Flaw::NeverRepeats).then(|| now + REPEAT);
        let length = self.outgoing[&flight.transfer].length;
        Some(self.frame(peer, b'd', |body| {
            body.put_u64(flight.wire);
            body.put_u64(flight.offset);
            body.put_u64(length);
            body.put_slice(&flight.data);
        }))
    }
}

impl Engine for Toy {
    type Above = Bundles;
    type Below = Frames;

    fn handle_request(&mut self, now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect => {
                self.wanted = true;
                self.down.push_back(FramesRequest::Join);
                self.hello_at = Some(now);
                if matches!(self.flaw, Flaw::Chatty | Flaw::Sleepless) {
                    self.chat_at = Some(now);
                }
            }
            BundlesRequest::Open { transfer, length, .. } => {
                self.wires += 1;
                self.outgoing.insert(transfer, Outgoing { wire: self.wires, length, handed: 0, acked: 0 });
            }
            BundlesRequest::Piece { transfer, data, last } => {
                let entry = self.outgoing.get_mut(&transfer).expect("the account knows it");
                let (wire, offset) = (entry.wire, entry.handed);
                entry.handed += data.len() as u64;
                self.told -= data.len() as u64;
                self.flight = Some(Flight { transfer, wire, offset, data, last });
                self.due = true;
            }
            BundlesRequest::Cancel { transfer } => {
                if let Some(entry) = self.outgoing.remove(&transfer) {
                    let (reason, acked) = (TransferFailure::Cancelled, entry.acked);
                    self.up.push_back(BundlesIndication::Failed { transfer, reason, acked });
                    (self.flight, self.due, self.repeat_at) = (None, false, None);
                }
            }
            BundlesRequest::Accept { transfer, up_to } => {
                if let Some(incoming) =
                    self.incoming.as_mut().filter(|incoming| incoming.transfer == transfer)
                {
                    incoming.accepted = incoming.accepted.max(up_to);
                    self.ack = true;
                }
            }
            BundlesRequest::Refuse { transfer, reason } => {
                if let Some(incoming) =
                    self.incoming.as_mut().filter(|incoming| incoming.transfer == transfer)
                {
                    incoming.refused = Some(reason);
                    self.ack = true;
                }
            }
            BundlesRequest::Close => self.close(),
        }
        self.tell_room();
    }

    fn handle_indication(&mut self, _now: Instant, indication: FramesIndication) {
        match indication {
            FramesIndication::Room(room) => self.room = room,
            FramesIndication::Frame(frame) => self.hears_frame(frame),
            FramesIndication::Transmitted(_) | FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
        }
        self.tell_room();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.repeat_at.is_some_and(|at| at <= now) {
            (self.repeat_at, self.due) = (None, true);
        } else if self.flaw == Flaw::FearsEarlyTimeouts {
            self.repeat_at = None;
        }
        if self.hello_at.is_some_and(|at| at <= now) {
            (self.hello_at, self.hello) = (Some(now + REPEAT), Some((0, true)));
        }
        if self.chat_at.is_some_and(|at| at <= now) {
            self.chat_at = Some(now + Duration::from_secs(1));
            if self.flaw == Flaw::Chatty && self.hello.is_none() {
                self.hello = self.peer.map(|peer| (peer, false));
            }
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<BundlesIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, now: Instant) -> Option<FramesRequest> {
        if let Some(request) = self.down.pop_front() {
            return Some(request);
        }
        if self.room == 0 && self.flaw != Flaw::Overspends {
            return None;
        }
        let mut request = self.next_frame(now)?;
        if self.flaw == Flaw::Unseeded
            && let FramesRequest::Frame { token, .. } = &mut request
        {
            *token = Some(UNSEEDED.fetch_add(1, Ordering::Relaxed));
        }
        self.room = self.room.saturating_sub(1);
        Some(request)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.repeat_at, self.hello_at, self.chat_at].into_iter().flatten().min()
    }
}

/// Runs two nodes with toys on two hostile links, joined by `join`.
pub(super) fn world<N>(replay: &Replay, damage: BitErrors, join: impl Fn(Rng) -> N) -> RunDigest
where
    N: Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Frames>>,
{
    let rng = Rng::new(replay.seed);
    let mut draw = rng.fork("parameters");
    let faults_end_at = Instant::ZERO + draw.span(Duration::from_millis(1), Duration::from_secs(60));
    let plan = RunPlan {
        faults_end_at,
        crashes: Crash::draw(&mut draw, 2, faults_end_at),
        patience: Duration::from_secs(3_600),
        lateness: RunPlan::draw_lateness(&mut draw),
        idle: IdleBudget {
            after: Duration::from_secs(60),
            window: Duration::from_secs(3_600),
            wake_ups: 0,
            carried: 0,
        },
    };
    let conditions = FrameConditions::draw(&mut draw, damage);
    let links = [LinkId(1), LinkId(2)];
    let ground = HostileFrames::new(
        rng.fork("ground"),
        conditions,
        &links.map(|link| ((0, link), (1, link))),
        1_500,
        faults_end_at,
    );
    let manners = BundleUserBehaviour::draw(&mut draw);
    let asked: Vec<_> = [0, 1].into_iter().flat_map(|node| links.map(|link| (node, link))).collect();
    let users = BundleUsers::new(rng.fork("users"), manners, &asked, faults_end_at);
    let factory = |node, boot, _| join(rng.fork(&format!("node {node} boot {boot}")));
    LawRun::new(replay, plan, 2, Box::new(factory), ground, users).run()
}

/// Creates the toys of one node.
pub(super) fn toys(
    flaw: Flaw,
    rng: Rng,
) -> impl Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Frames>> {
    Fan::new(move |link: LinkId, _| Some(Checked::new("toy", Toy::new(flaw, rng.fork(&format!("{link:?}"))))))
}

#[test]
fn a_toy_without_a_flaw_keeps_the_laws() {
    sweep("toy", 0, 1_000, |replay| world(replay, BitErrors::Slight, |rng| toys(Flaw::None, rng)));
}

#[test]
fn a_toy_without_a_flaw_survives_any_bytes() {
    sweep("toy-garbage", 0, 300, |replay| world(replay, BitErrors::Gross, |rng| toys(Flaw::None, rng)));
}

fn catches(flaw: Flaw, damage: BitErrors, law: &str) {
    super::catches(&format!("{flaw:?}"), law, |replay| world(replay, damage, |rng| toys(flaw, rng)));
}

#[test]
fn an_early_acknowledgement_is_found() {
    catches(Flaw::AcknowledgesEarly, BitErrors::Slight, "are safe");
}

#[test]
fn a_second_delivery_is_found() {
    catches(Flaw::DeliversTwice, BitErrors::Slight, "are not what was sent");
}

#[test]
fn a_gap_is_found() {
    catches(Flaw::MissesLoss, BitErrors::Slight, "are not what was sent");
}

#[test]
fn what_never_ends_is_found() {
    catches(Flaw::NeverRepeats, BitErrors::Slight, "nothing happens any more");
    catches(Flaw::NoEnd, BitErrors::Slight, "nothing happens any more");
}

#[test]
fn two_ends_are_found() {
    catches(Flaw::TwoEnds, BitErrors::Slight, "has ended");
}

#[test]
fn an_idle_session_that_costs_something_is_found() {
    catches(Flaw::Chatty, BitErrors::Slight, "idle for");
    catches(Flaw::Sleepless, BitErrors::Slight, "idle for");
}

#[test]
fn overspent_room_is_found() {
    catches(Flaw::Overspends, BitErrors::Slight, "spends 1 of a room of 0");
}

#[test]
fn damaged_bytes_are_found() {
    catches(Flaw::TrustsBits, BitErrors::Slight, "are not what was sent");
}

#[test]
fn a_panic_on_strange_bytes_is_found() {
    catches(Flaw::TrustsLengths, BitErrors::Gross, "advance");
}

#[test]
fn randomness_that_is_not_given_is_found() {
    catches(Flaw::Unseeded, BitErrors::Slight, "the same seed gave another trace");
}

#[test]
fn an_early_timeout_that_does_harm_is_found() {
    catches(Flaw::FearsEarlyTimeouts, BitErrors::Slight, "an early timeout moved its wake-up");
}
