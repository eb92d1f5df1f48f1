//! A convergence layer made up for tests of the table: each bundle is one datagram, repeated until it is answered.
//!
//! A datagram is a type octet, the tag of its sender (4 octets, random), a number (4 octets), and for data the bundle. The
//! receiver acknowledges a bundle when it is stored, or refuses it, and answers the same when it arrives again. It refuses
//! what its user had not accepted when the endpoint closed. There is one bundle in transit at a time.

use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::round_trip;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use longwire_proto::engine::Engine;
use longwire_proto::joint::Origin;
use longwire_proto::observe::Observation;
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Bundles, BundlesIndication, BundlesRequest, Datagrams, DatagramsIndication, DatagramsRequest, DownReason,
    PeerId, RefuseReason, Shares, TransferFailure, TransferId,
};
use longwire_proto::setting::{Fault, Settings, TIME_MAX, TIME_MIN, at_least, time};
use longwire_proto::time::{Duration, Instant};
use longwire_settings::duration::short;
use longwire_settings::error::Error;
use longwire_settings::toml_text::to_table;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The made-up convergence layer.
#[derive(Debug)]
pub(super) struct Dummy;

/// Settings of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Config {
    /// Node ID of the peer, which no datagram contains. Default: unknown.
    pub peer_node_id: Option<String>,
    /// Delay before a datagram is repeated or a failed endpoint is joined again. Default 2 s.
    pub retry_after: Duration,
    /// Maximum number of open outgoing bundles; more fail at once. Default 64.
    pub open_max: usize,
    /// Maximum number of received bundles that wait for acceptance; more are dropped. Default 64.
    pub incoming_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        let retry_after = Duration::from_secs(2);
        Config { peer_node_id: None, retry_after, open_max: 64, incoming_max: 64 }
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        time("retry-after", self.retry_after, TIME_MIN..=TIME_MAX, "longer than the round trip")?;
        at_least("open-max", self.open_max, 1, "with 0 nothing can be sent")?;
        at_least("incoming-max", self.incoming_max, 1, "with 0 nothing can be received")
    }
}

impl Carrier for Dummy {
    type Settings = Config;
    const ABOUT: About = About {
        name: "dummy",
        section: "dummy",
        random_label: "dummy",
        port: None,
        media: &[Medium::Udp, Medium::Ui],
        takes_turns: true,
        acknowledges: true,
        resumes: false,
        is_called: false,
        is_group: false,
        multicast: false,
        negotiated: &[],
        families: &[Family {
            name: "dummy",
            about: "a bundle in a datagram, repeated until it is acknowledged",
            presets: &[Preset {
                name: "patient",
                about: "repeated after twice the round trip",
                settings: |path| {
                    let retry_after = Duration::from_secs(2) + round_trip(path) * 2;
                    sections([("dummy", to_table(&Config { retry_after, ..Config::default() }))])
                },
            }],
        }],
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::fuzz::Material {
        codecs: &[],
        speech: |_, script| {
            let (kind, name) = (script.below(4) as u8, (0, script.below(3) as u32));
            if script.chance() { datagram(kind, name, &script.bytes(40)) } else { script.bytes(40) }
        },
    };

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        Ok(Config { peer_node_id: link.peer.map(str::to_owned), ..settings })
    }

    fn session(settings: &Config, origin: Origin, rng: Rng) -> Session {
        session_over(DummyLink::new(settings.clone(), origin == Origin::Below, rng))
    }

    fn explain(settings: &Config, link: &LinkFacts<'_>) -> Vec<String> {
        let LinkFacts { name, place, .. } = link;
        let after = short(settings.retry_after);
        vec![format!("Link `{name}` to {place} repeats each bundle after {after} until it is acknowledged.")]
    }
}

/// Type octet of a bundle.
const DATA: u8 = 0;
/// Type octet of an acknowledgement.
const ACKNOWLEDGEMENT: u8 = 1;
/// Type octet of a refusal.
const REFUSAL: u8 = 2;
/// Octets before the bundle.
const HEADER_BYTES: usize = 9;
/// Maximum number of remembered bundles that were answered.
const PAST_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndpointState {
    Closed,
    Joining,
    Up,
}

/// Sender's tag and number of a bundle.
type DatagramName = (u32, u32);

/// Complete bundle that is not answered.
#[derive(Debug)]
struct Sending {
    transfer: TransferId,
    number: u32,
    datagram: Bytes,
    is_due: bool,
    is_repeated: bool,
}

/// Received bundle that is not accepted.
#[derive(Debug)]
struct Incoming {
    from: PeerId,
    name: DatagramName,
    length: u64,
}

/// Counters of a link.
#[derive(Debug, Default, Serialize)]
struct Counters {
    bundles_sent: u64,
    bundles_received: u64,
}

/// Link to one peer, or endpoint to which any peer may send.
#[derive(Debug)]
struct DummyLink {
    config: Config,
    is_listening: bool,
    is_wanted: bool,
    state: EndpointState,
    tag: u32,
    next_number: u32,
    peer: Option<PeerId>,
    /// Largest datagram of the medium, bytes.
    bytes_max: u64,
    endpoint_room: u64,
    retry_at: Option<Instant>,
    /// Open bundles with their lengths.
    outgoing: BTreeMap<TransferId, (u64, BytesMut)>,
    /// Bundle whose pieces are arriving.
    filling: Option<TransferId>,
    sending: Option<Sending>,
    incoming: BTreeMap<TransferId, Incoming>,
    next_incoming: u64,
    /// Bundles that were answered, with the type octet of the answer.
    past: VecDeque<(DatagramName, u8)>,
    answers: VecDeque<(PeerId, DatagramName, u8)>,
    orders: VecDeque<DatagramsRequest>,
    release: u64,
    up: VecDeque<BundlesIndication>,
    told: u64,
    counters: Counters,
}

impl DummyLink {
    fn new(config: Config, is_listening: bool, mut rng: Rng) -> DummyLink {
        DummyLink {
            config,
            is_listening,
            is_wanted: false,
            state: EndpointState::Closed,
            tag: rng.next_u32(),
            next_number: 0,
            peer: None,
            bytes_max: 0,
            endpoint_room: 0,
            retry_at: None,
            outgoing: BTreeMap::new(),
            filling: None,
            sending: None,
            incoming: BTreeMap::new(),
            next_incoming: 0,
            past: VecDeque::new(),
            answers: VecDeque::new(),
            orders: VecDeque::new(),
            release: 0,
            up: VecDeque::new(),
            told: 0,
            counters: Counters::default(),
        }
    }

    fn join(&mut self) {
        self.state = EndpointState::Joining;
        self.orders.push_back(DatagramsRequest::Join { damaged: false });
    }

    fn down(&mut self, reason: DownReason, retry: bool) {
        let sending = self.sending.take().map(|sending| sending.transfer);
        let open = std::mem::take(&mut self.outgoing).into_keys();
        let reason_of = TransferFailure::LinkDown;
        let failed = |transfer| BundlesIndication::Failed { transfer, reason: reason_of, acked: 0 };
        self.up.extend(sending.into_iter().chain(open).map(failed));
        self.up.push_back(BundlesIndication::Down { reason, retry });
        self.state = EndpointState::Closed;
        (self.filling, self.retry_at, self.peer) = (None, None, None);
        (self.endpoint_room, self.release) = (0, 0);
        // A repeated datagram must not be indicated as another bundle.
        for incoming in std::mem::take(&mut self.incoming).into_values() {
            self.remember(incoming.name, REFUSAL);
        }
        self.answers.clear();
    }

    fn open(&mut self, transfer: TransferId, length: u64) {
        let reason = match () {
            () if self.state != EndpointState::Up => TransferFailure::LinkDown,
            () if self.peer.is_none() || length > self.bundle_bytes_max() => TransferFailure::TooLong,
            // It would need no room, and take the place of the bundle in transit.
            () if length == 0 => TransferFailure::Refused(RefuseReason::NotAcceptable),
            () if self.outgoing.len() >= self.config.open_max => {
                TransferFailure::Refused(RefuseReason::NoResources)
            }
            () => return drop(self.outgoing.insert(transfer, (length, BytesMut::new()))),
        };
        self.up.push_back(BundlesIndication::Failed { transfer, reason, acked: 0 });
    }

    fn piece(&mut self, now: Instant, transfer: TransferId, data: &Bytes, last: bool) {
        self.told = self.told.saturating_sub(data.len() as u64);
        let Some((_, bytes)) = self.outgoing.get_mut(&transfer) else { return };
        bytes.extend_from_slice(data);
        self.filling = (!last).then_some(transfer);
        if last {
            let (_, bundle) = self.outgoing.remove(&transfer).expect("it was just found");
            let number = self.next_number;
            self.next_number = number.wrapping_add(1);
            let datagram = datagram(DATA, (self.tag, number), &bundle);
            self.sending = Some(Sending { transfer, number, datagram, is_due: true, is_repeated: false });
            self.retry_at = Some(now + self.config.retry_after);
        }
    }

    fn cancel(&mut self, transfer: TransferId) {
        let was_open = self.outgoing.remove(&transfer).is_some();
        let was_sent = self.sending.take_if(|sending| sending.transfer == transfer).is_some();
        self.filling = self.filling.filter(|filling| *filling != transfer);
        if was_open || was_sent {
            let reason = TransferFailure::Cancelled;
            self.up.push_back(BundlesIndication::Failed { transfer, reason, acked: 0 });
        }
    }

    /// Hears a datagram; returns false if its bytes need not be kept.
    fn hear(&mut self, from: PeerId, mut bytes: Bytes) -> bool {
        if bytes.len() < HEADER_BYTES {
            return false;
        }
        let length = bytes.len() as u64;
        let (kind, name) = (bytes.get_u8(), (bytes.get_u32(), bytes.get_u32()));
        match kind {
            DATA => {
                if let Some(&(_, answer)) = self.past.iter().find(|(past, _)| *past == name) {
                    self.answer(from, name, answer);
                    return false;
                }
                let is_known = self.incoming.values().any(|incoming| incoming.name == name);
                if is_known || self.incoming.len() >= self.config.incoming_max {
                    return false;
                }
                let transfer = TransferId(self.next_incoming);
                self.next_incoming += 1;
                self.incoming.insert(transfer, Incoming { from, name, length });
                self.up.push_back(BundlesIndication::Begin { transfer, length: Some(bytes.len() as u64) });
                self.up.push_back(BundlesIndication::Piece { transfer, data: bytes, last: true });
                true
            }
            ACKNOWLEDGEMENT | REFUSAL => {
                let answered = self.sending.take_if(|sending| (self.tag, sending.number) == name);
                if let Some(Sending { transfer, .. }) = answered {
                    self.retry_at = None;
                    let reason = TransferFailure::Refused(RefuseReason::NoResources);
                    self.counters.bundles_sent += u64::from(kind == ACKNOWLEDGEMENT);
                    self.up.push_back(match kind {
                        ACKNOWLEDGEMENT => BundlesIndication::Sent { transfer },
                        _ => BundlesIndication::Failed { transfer, reason, acked: 0 },
                    });
                }
                false
            }
            _ => false,
        }
    }

    /// Answers a bundle; there are never more answers than bundles that may wait.
    fn answer(&mut self, to: PeerId, name: DatagramName, kind: u8) {
        if !self.answers.contains(&(to, name, kind)) && self.answers.len() < self.config.incoming_max {
            self.answers.push_back((to, name, kind));
        }
    }

    fn remember(&mut self, name: DatagramName, answer: u8) {
        self.past.push_back((name, answer));
        if self.past.len() > PAST_MAX {
            self.past.pop_front();
        }
    }

    fn accepted(&mut self, transfer: TransferId, up_to: u64) {
        let is_whole = |incoming: &Incoming| up_to + HEADER_BYTES as u64 >= incoming.length;
        if !self.incoming.get(&transfer).is_some_and(is_whole) {
            return;
        }
        self.counters.bundles_received += 1;
        self.is_over(transfer, ACKNOWLEDGEMENT);
    }

    /// The user has stored a bundle or refused it.
    fn is_over(&mut self, transfer: TransferId, answer: u8) {
        let Some(Incoming { from, name, length }) = self.incoming.remove(&transfer) else { return };
        self.release += length;
        self.remember(name, answer);
        self.answer(from, name, answer);
    }

    fn bundle_bytes_max(&self) -> u64 {
        self.bytes_max.saturating_sub(HEADER_BYTES as u64)
    }

    fn room(&self) -> u64 {
        if self.state != EndpointState::Up || self.peer.is_none() || self.sending.is_some() {
            return 0;
        }
        match self.filling {
            Some(transfer) => {
                let (length, bytes) = &self.outgoing[&transfer];
                length.saturating_sub(bytes.len() as u64)
            }
            None => self.bundle_bytes_max(),
        }
    }

    fn next_datagram(&mut self) -> Option<DatagramsRequest> {
        let carries_nothing = self.bytes_max < HEADER_BYTES as u64;
        if self.state != EndpointState::Up || self.endpoint_room == 0 || carries_nothing {
            return None;
        }
        let (to, bytes, shares) = match self.answers.pop_front() {
            Some((to, name, kind)) => (to, datagram(kind, name, &[]), Shares::acknowledgement(HEADER_BYTES)),
            None => {
                let to = self.peer?;
                let sending = self.sending.as_mut().filter(|sending| sending.is_due)?;
                sending.is_due = false;
                let bytes = sending.datagram.clone();
                let is_repeated = std::mem::replace(&mut sending.is_repeated, true);
                let of = if is_repeated { Shares::repeated } else { Shares::payload };
                let shares = of(bytes.len());
                (to, bytes, shares)
            }
        };
        self.endpoint_room -= 1;
        Some(DatagramsRequest::Datagram { to, bytes, shares, token: None })
    }
}

fn datagram(kind: u8, (tag, number): DatagramName, bundle: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + bundle.len());
    bytes.put_u8(kind);
    bytes.put_u32(tag);
    bytes.put_u32(number);
    bytes.put_slice(bundle);
    bytes.freeze()
}

impl Admission for DummyLink {}

impl Engine for DummyLink {
    type Above = Bundles;
    type Below = Datagrams;

    fn handle_request(&mut self, now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect if !self.is_listening => {
                self.is_wanted = true;
                if self.state == EndpointState::Closed {
                    self.retry_at = None;
                    self.join();
                }
            }
            BundlesRequest::Connect => {}
            BundlesRequest::Open { transfer, length, .. } => self.open(transfer, length),
            BundlesRequest::Piece { transfer, data, last } => self.piece(now, transfer, &data, last),
            BundlesRequest::Cancel { transfer } => self.cancel(transfer),
            BundlesRequest::Accept { transfer, up_to } => self.accepted(transfer, up_to),
            BundlesRequest::Refuse { transfer, .. } => self.is_over(transfer, REFUSAL),
            BundlesRequest::Close => {
                if self.state != EndpointState::Closed {
                    self.orders.clear();
                    self.orders.push_back(DatagramsRequest::Leave);
                } else if !self.is_wanted {
                    return;
                }
                self.is_wanted = false;
                self.down(DownReason::Closed, false);
            }
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { bytes_max, peer, .. } if self.state != EndpointState::Up => {
                self.state = EndpointState::Up;
                (self.peer, self.told) = (peer, 0);
                self.bytes_max = bytes_max;
                self.up.push_back(BundlesIndication::Up {
                    peer: self.config.peer_node_id.clone(),
                    interleave: false,
                    transfer_bytes_max: if peer.is_some() { self.bundle_bytes_max() } else { 0 },
                });
            }
            DatagramsIndication::Room(room) => self.endpoint_room = room,
            DatagramsIndication::Datagram { from, bytes, .. } => {
                let length = bytes.len() as u64;
                if !(self.state == EndpointState::Up && self.hear(from, bytes)) {
                    self.release += length;
                }
            }
            DatagramsIndication::Left(reason) if self.state != EndpointState::Closed => {
                self.down(DownReason::Stream(reason), self.is_wanted);
                self.retry_at = self.is_wanted.then(|| now + self.config.retry_after);
            }
            DatagramsIndication::Joined { .. }
            | DatagramsIndication::Left(_)
            | DatagramsIndication::Carrier(_)
            | DatagramsIndication::Transmitted(_) => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.retry_at.is_none_or(|at| at > now) {
            return;
        }
        self.retry_at = None;
        if let Some(sending) = &mut self.sending {
            sending.is_due = true;
            self.retry_at = Some(now + self.config.retry_after);
        } else if self.is_wanted && self.state == EndpointState::Closed {
            self.join();
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<BundlesIndication> {
        if let Some(indication) = self.up.pop_front() {
            return Some(indication);
        }
        let room = self.room();
        let is_news = self.state == EndpointState::Up && self.told != room;
        is_news.then(|| {
            self.told = room;
            BundlesIndication::Room(room)
        })
    }

    fn poll_request(&mut self, _now: Instant) -> Option<DatagramsRequest> {
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        if self.release > 0 && self.state == EndpointState::Up {
            return Some(DatagramsRequest::Release(std::mem::take(&mut self.release)));
        }
        self.next_datagram()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.retry_at
    }

    fn finished(&self) -> bool {
        self.is_listening
            && self.state == EndpointState::Closed
            && self.up.is_empty()
            && self.orders.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        view.part("dummy").count(&self.counters);
    }
}
