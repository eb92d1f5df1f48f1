//! Users of convergence layers: they send bundles, accept incoming data at the speed of a disk, refuse and cancel now
//! and then, and know of every byte whether it was acknowledged.

use super::{Draw, Users};
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, LinkId, Many, Priority, RefuseReason, TransferFailure,
    TransferId,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// First byte of a bundle of version 7, without the number of items: an array of CBOR.
const FIRST_BYTE: u8 = 0x80;

/// Bundle: its sender and its number there.
type BundleNumber = (usize, usize);

/// One bundle, with the combined knowledge of the sender's and the receiver's users.
#[derive(Debug)]
struct TestBundle {
    content: Bytes,
    /// Number of times the bundle was opened.
    attempts: u32,
    /// Number of times the bundle arrived complete.
    arrivals: u32,
    /// Maximum number of its bytes that a receiver has stored.
    safe: u64,
    /// Number of times the complete bundle was stored.
    safe_whole: u32,
    sent: u32,
    cancelled: bool,
    /// The layer has refused it as longer than the peer accepts.
    too_long: bool,
}

/// Outgoing transfer.
#[derive(Debug)]
struct OutgoingBundle {
    name: BundleNumber,
    transfer: TransferId,
    handed: u64,
    cancelled: bool,
}

/// Incoming transfer.
#[derive(Debug, Default)]
struct IncomingBundle {
    name: Option<BundleNumber>,
    length: Option<u64>,
    risen: u64,
    accepted: u64,
    last: bool,
}

/// One end of a session.
#[derive(Debug, Default)]
struct SessionEnd {
    up: bool,
    room: u64,
    interleave: bool,
    /// Largest bundle that the peer accepts, bytes.
    bytes_max: u64,
    outgoing: Vec<OutgoingBundle>,
    /// Current transfer if transfers must not interleave.
    busy: Option<TransferId>,
    incoming: BTreeMap<TransferId, IncomingBundle>,
}

#[derive(Debug)]
enum Action {
    /// Requests a link again.
    Connect(usize, LinkId),
    /// Closes the link.
    Close(usize, LinkId),
    /// Accepts received data up to this offset.
    Accept(usize, LinkId, TransferId, u64),
    /// Sends a bundle again.
    Again(usize, BundleNumber),
}

/// Behaviour of the users, drawn from the seed.
#[derive(Clone, Debug)]
pub struct BundleUserBehaviour {
    /// Probability after each incoming piece that the transfer is refused, while there are faults.
    pub refuse: f64,
    /// Probability before each outgoing piece that the transfer is cancelled, while there are faults.
    pub cancel: f64,
    /// Number of times a link is closed on purpose.
    pub closes: u64,
    /// Maximum time until received data are stored.
    pub slow: Duration,
    /// Maximum length of a piece, bytes.
    pub piece_max: u64,
    /// False if bytes are forged: then nothing is compared, and nothing need end. The worlds of the `hold_over`
    /// functions forge none: false only omits checks there.
    pub trusting: bool,
    /// True if a bundle is acknowledged when it counts as sent; false without acknowledgements: then a bundle may be
    /// lost after `Sent`.
    pub acknowledged: bool,
    /// Maximum number of bundles per node; at most 16.
    pub bundles_max: u64,
    /// Maximum length of a bundle, bytes; at least 1. No bundle is empty.
    pub length_max: u64,
}

impl BundleUserBehaviour {
    /// Draws a behaviour of trusting users with acknowledgements: at most 4 bundles per node, of at most 20 kB. Limits
    /// of the layer must be small to be reached.
    pub fn draw(rng: &mut Rng) -> Self {
        let piece_bound = if rng.chance(0.2) { 20 } else { 3_000 };
        let piece_max = 1 + rng.below(piece_bound);
        let length_max = if rng.chance(0.2) { 20_000 } else { 2_000 };
        BundleUserBehaviour {
            refuse: rng.share(0.3),
            cancel: rng.share(0.05),
            closes: if rng.chance(0.3) { rng.between(1, 3) } else { 0 },
            slow: if rng.chance(0.5) {
                Duration::ZERO
            } else {
                rng.span(Duration::ZERO, Duration::from_secs(3))
            },
            piece_max,
            trusting: true,
            acknowledged: true,
            bundles_max: 4,
            // Pieces of one byte for a long bundle test nothing new, and take too long.
            length_max: length_max.min(100 * piece_max),
        }
    }
}

/// Users of both nodes of a link.
pub(crate) struct BundleUsers {
    rng: Rng,
    manners: BundleUserBehaviour,
    faults_are_on: bool,
    running: [bool; 2],
    /// Links that a node requests.
    links: Vec<(usize, LinkId)>,
    parcels: BTreeMap<BundleNumber, TestBundle>,
    /// Bundles that each node has yet to send.
    waiting: [VecDeque<BundleNumber>; 2],
    sessions: BTreeMap<(usize, LinkId), SessionEnd>,
    actions: BTreeMap<(Instant, u64), Action>,
    count: u64,
    transfers: u64,
    requests: VecDeque<(usize, (LinkId, BundlesRequest))>,
}

impl BundleUsers {
    /// Creates the users. `links` contains nodes with the links that they request.
    pub(crate) fn new(
        mut rng: Rng,
        manners: BundleUserBehaviour,
        links: &[(usize, LinkId)],
        faults_end_at: Instant,
    ) -> Self {
        let mut parcels = BTreeMap::new();
        let mut waiting = [VecDeque::new(), VecDeque::new()];
        for (node, waiting) in waiting.iter_mut().enumerate() {
            for number in 0..rng.below(manners.bundles_max + 1) as usize {
                let most = if rng.chance(0.3) { 10 } else { manners.length_max };
                let length = 1 + rng.below(most);
                let mut content = vec![0; length as usize];
                rng.fill(&mut content);
                // The first byte identifies the bundle, and is one with which bundles begin.
                content[0] = FIRST_BYTE | (node * 16 + number) as u8;
                let parcel = TestBundle {
                    content: content.into(),
                    attempts: 0,
                    arrivals: 0,
                    safe: 0,
                    safe_whole: 0,
                    sent: 0,
                    cancelled: false,
                    too_long: false,
                };
                parcels.insert((node, number), parcel);
                waiting.push_back((node, number));
            }
        }
        let mut users = BundleUsers {
            faults_are_on: true,
            running: [false; 2],
            links: links.to_vec(),
            parcels,
            waiting,
            sessions: BTreeMap::new(),
            actions: BTreeMap::new(),
            count: 0,
            transfers: 0,
            requests: VecDeque::new(),
            manners,
            rng,
        };
        for _ in 0..users.manners.closes {
            let (node, link) = users.links[users.rng.below(users.links.len() as u64) as usize];
            let at = Instant::from_nanos(users.rng.below(faults_end_at.as_nanos()));
            users.at(at, Action::Close(node, link));
        }
        users
    }

    fn at(&mut self, at: Instant, action: Action) {
        self.count += 1;
        self.actions.insert((at, self.count), action);
    }

    fn ask(&mut self, node: usize, link: LinkId, request: BundlesRequest) {
        self.requests.push_back((node, (link, request)));
    }

    /// Schedules a bundle again whose transfer has ended without `Sent`.
    fn again(&mut self, node: usize, name: BundleNumber, now: Instant) {
        let soon = now + Duration::from_millis(1 + self.rng.below(2_000));
        self.at(soon, Action::Again(node, name));
    }

    /// A bundle has failed as too long, and is not sent again: an agent would fragment it.
    fn is_too_long(&mut self, name: BundleNumber, bytes_max: u64) {
        let parcel = self.parcels.get_mut(&name).expect("known");
        let length = parcel.content.len() as u64;
        assert!(
            length > bytes_max || !self.manners.trusting,
            "{name:?} of {length} bytes failed as too long, but the maximum is {bytes_max}"
        );
        parcel.too_long = true;
    }

    fn check_acked(&self, name: BundleNumber, up_to: u64) {
        if !self.manners.trusting {
            return;
        }
        let safe = self.parcels[&name].safe;
        assert!(up_to <= safe, "{up_to} bytes of {name:?} are acknowledged, and {safe} are safe");
    }

    fn take_outgoing(&mut self, key: (usize, LinkId), transfer: TransferId) -> OutgoingBundle {
        let session = self.sessions.get_mut(&key).expect("a session");
        if session.busy == Some(transfer) {
            session.busy = None;
        }
        let at = session.outgoing.iter().position(|outgoing| outgoing.transfer == transfer);
        session.outgoing.remove(at.expect("the account knows it"))
    }

    fn piece_rises(
        &mut self,
        now: Instant,
        key: (usize, LinkId),
        transfer: TransferId,
        data: &[u8],
        last: bool,
    ) {
        let session = self.sessions.get_mut(&key).expect("a session");
        // Data that arrive before a refusal was processed are ignored.
        let Some(incoming) = session.incoming.get_mut(&transfer) else { return };
        if !self.manners.trusting {
            incoming.risen += data.len() as u64;
            let up_to = incoming.risen;
            self.ask(key.0, key.1, BundlesRequest::Accept { transfer, up_to });
            return;
        }
        if data.is_empty() && incoming.name.is_none() {
            // Cancelled before its first byte.
            session.incoming.remove(&transfer);
            self.ask(key.0, key.1, BundlesRequest::Accept { transfer, up_to: 0 });
            return;
        }
        if incoming.name.is_none() && !data.is_empty() {
            let first = usize::from(data[0] ^ FIRST_BYTE);
            let name = (first / 16, first % 16);
            assert!(self.parcels.contains_key(&name) && name.0 != key.0, "{name:?} was never sent here");
            incoming.name = Some(name);
        }
        let name = incoming.name.expect("no bundle is empty");
        let parcel = self.parcels.get_mut(&name).expect("checked when its name rose");
        let range = incoming.risen as usize..incoming.risen as usize + data.len();
        let whole = parcel.content.len() as u64;
        assert!(
            parcel.content.get(range.clone()) == Some(data),
            "bytes {range:?} of {name:?} are not what was sent"
        );
        assert!(incoming.length.is_none_or(|length| length == whole), "{name:?} has another length");
        incoming.risen += data.len() as u64;
        incoming.last = last;
        if last {
            // If the protocol has no means to cancel a bundle, one without a length may end early; its content shows
            // this to the user.
            let given_up = parcel.cancelled && incoming.length.is_none();
            assert!(incoming.risen == whole || given_up, "{name:?} ends at {} of {whole}", incoming.risen);
            parcel.arrivals += 1;
            assert!(parcel.arrivals <= parcel.attempts, "{name:?} arrives more often than it was sent");
        }
        let risen = incoming.risen;
        if self.faults_are_on && self.rng.chance(self.manners.refuse) {
            self.sessions.get_mut(&key).expect("a session").incoming.remove(&transfer);
            self.ask(key.0, key.1, BundlesRequest::Refuse { transfer, reason: RefuseReason::NoResources });
            return;
        }
        let delay = self.rng.span(Duration::ZERO, self.manners.slow);
        self.at(now + delay, Action::Accept(key.0, key.1, transfer, risen));
    }

    fn accept(&mut self, key: (usize, LinkId), transfer: TransferId, up_to: u64) {
        let Some(incoming) =
            self.sessions.get_mut(&key).and_then(|session| session.incoming.get_mut(&transfer))
        else {
            return;
        };
        // Delays differ: a later piece may be stored earlier, and with it all before it.
        if up_to <= incoming.accepted {
            return;
        }
        incoming.accepted = up_to;
        let parcel = self.parcels.get_mut(&incoming.name.expect("something rose")).expect("known");
        parcel.safe = parcel.safe.max(up_to);
        if incoming.last && up_to == incoming.risen {
            parcel.safe_whole += u32::from(up_to == parcel.content.len() as u64);
            self.sessions.get_mut(&key).expect("a session").incoming.remove(&transfer);
        }
        self.ask(key.0, key.1, BundlesRequest::Accept { transfer, up_to });
    }

    /// Returns the next request on a session: a new transfer, or a piece of one.
    fn next_of(&mut self, key: (usize, LinkId)) -> Option<BundlesRequest> {
        let session = self.sessions.get_mut(&key)?;
        if !session.up {
            return None;
        }
        let most = if session.interleave { 2 } else { 1 };
        if session.outgoing.len() < most
            && let Some(name) = self.waiting[key.0].pop_front()
        {
            let transfer = TransferId(self.transfers);
            self.transfers += 1;
            session.outgoing.push(OutgoingBundle { name, transfer, handed: 0, cancelled: false });
            let parcel = self.parcels.get_mut(&name).expect("known");
            parcel.attempts += 1;
            let length = parcel.content.len() as u64;
            return Some(BundlesRequest::Open { transfer, priority: Priority::Normal, length });
        }
        let chosen = self.rng.below(session.outgoing.len().max(1) as u64) as usize;
        let outgoing = session.outgoing.get_mut(chosen)?;
        let content = &self.parcels[&outgoing.name].content;
        let length = content.len() as u64;
        if outgoing.cancelled || outgoing.handed == length || session.room == 0 {
            return None;
        }
        if !session.interleave && session.busy.is_some_and(|busy| busy != outgoing.transfer) {
            return None;
        }
        // A bundle of many small pieces would be cancelled for ever.
        let patient = self.parcels[&outgoing.name].attempts > 20;
        if self.faults_are_on && !patient && self.rng.chance(self.manners.cancel) {
            outgoing.cancelled = true;
            self.parcels.get_mut(&outgoing.name).expect("known").cancelled = true;
            return Some(BundlesRequest::Cancel { transfer: outgoing.transfer });
        }
        let size = session.room.min(self.manners.piece_max).min(length - outgoing.handed);
        let from = outgoing.handed as usize;
        let data = content.slice(from..from + size as usize);
        outgoing.handed += size;
        session.room -= size;
        let last = outgoing.handed == length;
        session.busy = (!last).then_some(outgoing.transfer);
        Some(BundlesRequest::Piece { transfer: outgoing.transfer, data, last })
    }
}

impl Users<Many<LinkId, Bundles>> for BundleUsers {
    fn started(&mut self, now: Instant, node: usize) {
        self.running[node] = true;
        for (owner, link) in self.links.clone() {
            if owner == node {
                self.at(now, Action::Connect(node, link));
            }
        }
    }

    fn crashed(&mut self, now: Instant, node: usize) {
        self.running[node] = false;
        self.requests.retain(|&(at, _)| at != node);
        // The data to be stored are lost, and numbers start again.
        self.actions.retain(|_, action| !matches!(action, Action::Accept(at, ..) if *at == node));
        let gone: Vec<_> = self.sessions.keys().copied().filter(|&(at, _)| at == node).collect();
        for key in gone {
            let session = self.sessions.remove(&key).expect("just listed");
            for outgoing in session.outgoing {
                self.again(node, outgoing.name, now);
            }
        }
    }

    fn calm(&mut self, _now: Instant) {
        self.faults_are_on = false;
    }

    fn handle_indication(&mut self, now: Instant, node: usize, (link, said): (LinkId, BundlesIndication)) {
        let key = (node, link);
        let session = self.sessions.entry(key).or_default();
        match said {
            BundlesIndication::Up { interleave, transfer_bytes_max, .. } => {
                (session.up, session.interleave) = (true, interleave);
                session.bytes_max = transfer_bytes_max;
            }
            BundlesIndication::Down { retry, .. } => {
                *session = SessionEnd::default();
                if !retry && self.links.contains(&key) {
                    let soon = now + Duration::from_millis(1 + self.rng.below(1_000));
                    self.at(soon, Action::Connect(node, link));
                }
            }
            BundlesIndication::Peer { .. } | BundlesIndication::Amateur => {}
            BundlesIndication::Room(room) => session.room = room,
            BundlesIndication::Begin { transfer, length } => {
                session.incoming.insert(transfer, IncomingBundle { length, ..Default::default() });
            }
            BundlesIndication::Piece { transfer, data, last } => {
                self.piece_rises(now, key, transfer, &data, last);
            }
            BundlesIndication::Lost { transfer } => {
                session.incoming.remove(&transfer);
            }
            BundlesIndication::Acked { transfer, up_to } => {
                let outgoing = session.outgoing.iter().find(|outgoing| outgoing.transfer == transfer);
                let name = outgoing.expect("the account knows it").name;
                self.check_acked(name, up_to);
            }
            BundlesIndication::Sent { transfer } => {
                let name = self.take_outgoing(key, transfer).name;
                let parcel = self.parcels.get_mut(&name).expect("known");
                parcel.sent += 1;
                let (sent, safe) = (parcel.sent, parcel.safe_whole);
                assert!(
                    sent <= safe || !self.manners.trusting || !self.manners.acknowledged,
                    "{name:?} is sent {sent} times, and was made safe {safe} times"
                );
            }
            BundlesIndication::Failed { transfer, acked, reason } => {
                let bytes_max = session.bytes_max;
                let name = self.take_outgoing(key, transfer).name;
                self.check_acked(name, acked);
                if reason == TransferFailure::TooLong {
                    return self.is_too_long(name, bytes_max);
                }
                self.again(node, name, now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.actions.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Action::Connect(node, link) if self.running[node] => {
                    self.ask(node, link, BundlesRequest::Connect)
                }
                Action::Close(node, link) if self.running[node] => {
                    if self.sessions.get(&(node, link)).is_some_and(|session| session.up) {
                        self.ask(node, link, BundlesRequest::Close);
                    }
                }
                Action::Accept(node, link, transfer, up_to) => self.accept((node, link), transfer, up_to),
                Action::Again(node, name) => self.waiting[node].push_back(name),
                Action::Connect(..) | Action::Close(..) => {}
            }
        }
    }

    fn poll_request(&mut self, _now: Instant) -> Option<(usize, (LinkId, BundlesRequest))> {
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        let keys: Vec<_> = self.sessions.keys().copied().collect();
        keys.into_iter().find_map(|key| self.next_of(key).map(|request| (key.0, (key.1, request))))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.actions.first_key_value().map(|(&(at, _), _)| at)
    }

    fn want_ends(&self) -> bool {
        self.manners.trusting
    }

    fn sent(&self) -> u64 {
        self.parcels.values().map(|parcel| u64::from(parcel.sent)).sum()
    }

    fn unsettled(&self) -> Option<String> {
        let (name, parcel) = self.parcels.iter().find(|(_, parcel)| parcel.sent == 0 && !parcel.too_long)?;
        let length = parcel.content.len();
        Some(format!("{name:?} of {length} bytes is not sent after {} attempts", parcel.attempts))
    }
}
