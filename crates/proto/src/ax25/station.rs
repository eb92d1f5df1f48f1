//! A station: all links of one callsign on one channel, and frames of no link.

use super::address::{Address, Callsign, CommandResponse};
use super::air_time_budget::{AirTime, AirTimeLimits};
use super::announcements::{AnnouncementCounts, Announcements, Kind};
use super::config::{Config, Counters, Drops, LinkConfig, PeerStation};
use super::frame::{Control, Frame, Modulo, Unnumbered};
use super::heard::{HeardStation, HeardStations};
use super::link::{Link, OutgoingFrame};
use super::negotiated::{RememberedPeer, offer};
use super::occupancy::Occupancy;
use super::timing::LEAVING_MAX;
use super::transmitted::TransmittedBound;
use super::unconnected::{Dropped, UnconnectedFrames};
use super::xid::Parameters;
use crate::codec;
use crate::engine::{Engine, Indication, Request};
use crate::joint::earlier;
use crate::kit::Deadlines;
use crate::observe::Observation;
use crate::service::{
    Both, CloseReason, Datagrams, DatagramsIndication, DatagramsRequest, Frames, FramesIndication,
    FramesRequest, LinkId, Many, Packets, PacketsIndication, PacketsRequest, Port, Shares,
};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum answers to stations without a link that wait for the channel; more are dropped.
pub(super) const WAITING_MAX: usize = 16;
/// Length of the queue from which on no further frames are repeated: a window of modulo 128 in each direction.
pub(super) const REPEATED_MAX: usize = 256;
/// Maximum UI frames that wait for the channel.
pub(super) const UNCONNECTED_MAX: usize = 8;
/// Maximum frames whose report of transmission is outstanding.
pub(super) const LEAVING_FRAMES_MAX: usize = 1024;
/// Time after the start until which answers to a former run may arrive: the frames left in its controller have been
/// sent by then, and so have the answers, each after waiting for the channel.
const FORMER_RUN_MAX: Duration = LEAVING_MAX.saturating_mul(2);
/// Maximum length of a header with digipeaters, bytes.
const HEADER_BYTES_MAX: u64 = 74;
/// Maximum number of peers that are remembered.
pub(super) const KNOWN_MAX: usize = 256;

/// Phase of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPhase {
    /// The connection is requested.
    Connecting,
    /// The link is established.
    Connected,
    /// The link is being released.
    Disconnecting,
}

/// State of a link, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// Phase of the link.
    pub phase: LinkPhase,
    /// Consecutive tries without an answer, and their maximum (N2).
    pub tries: (u8, u8),
    /// I frames in flight, and their maximum (k).
    pub frames: (usize, u8),
    /// Modulo of the sequence numbers.
    pub modulo: Modulo,
    /// True if the link has a frame to send.
    pub wants_air: bool,
}

#[derive(Debug)]
pub(super) struct LinkSlot {
    pub(super) link: Link,
    announced_room: u64,
    /// Frames and bytes sent since the last frame that awaits an answer.
    burst: (u64, u64),
    pub(super) deadline: Option<Instant>,
}

/// The link layer of one station. The [module](super) lists the implemented functions.
#[derive(Debug)]
pub struct Station {
    pub(super) config: Config,
    /// Time at which the station joined its channel.
    joined: Option<Instant>,
    seized: bool,
    room: u32,
    busy: bool,
    /// Time used in the present key-up.
    spent: Duration,
    budget: AirTimeLimits,
    announcements: Announcements,
    heard: HeardStations,
    pub(super) places: BTreeMap<LinkId, LinkSlot>,
    pub(super) by_peer: BTreeMap<Callsign, LinkId>,
    /// Links that may have indications, or whose state may have changed.
    changed_links: BTreeSet<LinkId>,
    /// Links with frames to send, in the order of their turns.
    pub(super) links_with_frames: VecDeque<LinkId>,
    pub(super) deadlines: Deadlines<LinkId>,
    next_incoming: u32,
    pub(super) known: BTreeMap<Callsign, RememberedPeer>,
    /// Peers that may still answer a connection request of a link that is over.
    pub(super) late_answers_expected: BTreeSet<Callsign>,
    /// Peers that have answered a poll on a link that this station opened since its start.
    pub(super) confirmed_peers: BTreeSet<Callsign>,
    /// XID parameters of peers without a link, sent before their connection request.
    offered_parameters: BTreeMap<Callsign, Parameters>,
    /// Answers outside a link, and frames to repeat.
    waiting: VecDeque<(Bytes, Shares)>,
    unconnected: UnconnectedFrames,
    closed: VecDeque<(LinkId, CloseReason)>,
    next_token: u64,
    /// Frames that await an answer and whose transmission is unreported: their link, and their position in all output.
    pub(super) tokens: BTreeMap<u64, (LinkId, Duration)>,
    leaving: TransmittedBound,
    /// True after the provider reported frames as transmitted that cannot have left.
    transmit_reports_come_early: bool,
    pub(super) past: Counters,
    pub(super) drops: Drops,
}

type Above = Both<Many<LinkId, Packets>, Many<LinkId, Datagrams>>;

impl Station {
    /// Creates a station that joins its channel when it is first polled.
    pub fn new(config: Config) -> Self {
        let budget = AirTimeLimits::new(&config);
        let announcements = Announcements::new(config.identification.clone(), config.beacon.clone());
        Station {
            config,
            budget,
            announcements,
            heard: HeardStations::default(),
            joined: None,
            seized: false,
            room: 0,
            busy: false,
            spent: Duration::ZERO,
            places: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            changed_links: BTreeSet::new(),
            links_with_frames: VecDeque::new(),
            deadlines: Deadlines::new(),
            next_incoming: LinkId::FIRST_INCOMING,
            known: BTreeMap::new(),
            late_answers_expected: BTreeSet::new(),
            confirmed_peers: BTreeSet::new(),
            offered_parameters: BTreeMap::new(),
            waiting: VecDeque::new(),
            unconnected: UnconnectedFrames::new(),
            closed: VecDeque::new(),
            next_token: 0,
            tokens: BTreeMap::new(),
            leaving: TransmittedBound::default(),
            transmit_reports_come_early: false,
            past: Counters::default(),
            drops: Drops::default(),
        }
    }

    /// Returns the counters of all links.
    pub fn counters(&self) -> Counters {
        let mut sum = self.past;
        self.places.values().for_each(|place| sum.add(&place.link.counters));
        sum
    }

    /// Returns the counters of dropped frames and requests.
    pub fn drops(&self) -> Drops {
        self.drops
    }

    /// Returns the used time on the channel.
    pub fn air_time(&self) -> AirTime {
        self.budget.used()
    }

    /// Returns the counts of frames that the station sends by itself.
    pub fn announcement_counts(&self) -> AnnouncementCounts {
        self.announcements.counts
    }

    /// Inhibits or permits transmissions. While they are inhibited, everything waits; frames that the controller already
    /// holds may still be transmitted.
    pub fn inhibit(&mut self, inhibited: bool) {
        self.config.inhibited = inhibited;
        // Another key-up begins after it.
        self.spent = Duration::ZERO;
    }

    /// Makes the station identify itself if it has transmitted since its last identification: its owner stops.
    pub fn end_communication(&mut self) {
        self.announcements.communication_over();
    }

    /// Returns true while an identification is due, or may be among the frames that its controller holds.
    pub fn must_identify(&self, frames_held: usize) -> bool {
        let is_held = frames_held > 0 && self.config.identification.is_some();
        is_held || self.announcements.due() == Some(Kind::Identification)
    }

    /// Returns true while transmissions are inhibited.
    pub fn is_inhibited(&self) -> bool {
        self.config.inhibited
    }

    /// Returns the stations that were heard, and the counters of the link with each that has one.
    pub fn heard(&self) -> impl Iterator<Item = (Callsign, &HeardStation, Option<&Counters>)> {
        let link = |callsign| self.link_counters(*self.by_peer.get(&callsign)?);
        self.heard.iter().map(move |(callsign, heard)| (callsign, heard, link(callsign)))
    }

    /// Returns the amounts that the station holds now.
    pub fn holds(&self) -> Occupancy {
        Occupancy {
            links: self.places.len(),
            waiting_frames: self.waiting.len() + self.unconnected.waiting(),
            information_bytes: self.places.values().map(|place| place.link.held_bytes()).sum(),
            leaving_frames: self.tokens.len() + self.unconnected.leaving(),
            known: self.known.len()
                + self.late_answers_expected.len()
                + self.confirmed_peers.len()
                + self.offered_parameters.len()
                + self.unconnected.known()
                + self.heard.len(),
        }
    }

    /// Returns the state of a link; `None` if it does not exist.
    pub fn standing(&self, id: LinkId) -> Option<LinkStatus> {
        let place = self.places.get(&id)?;
        Some(LinkStatus {
            phase: place.link.phase()?,
            tries: (place.link.tries(), place.link.agreed.retries),
            frames: (place.link.sender.outstanding(), place.link.agreed.window),
            modulo: place.link.agreed.modulo,
            wants_air: place.link.wants_air(),
        })
    }

    /// Returns the peer of a link, or the destination of UI frames, and the digipeaters on the path.
    pub fn way_to(&self, id: LinkId) -> Option<(Callsign, &[Callsign])> {
        match self.places.get(&id) {
            Some(place) => Some((place.link.peer, &place.link.path)),
            None => {
                let peer = self.config.peers.get(&id).or_else(|| self.config.unconnected.get(&id));
                peer.map(|peer| (peer.station, &peer.path[..]))
            }
        }
    }

    /// Returns the counters of a link; `None` if it does not exist.
    pub fn link_counters(&self, id: LinkId) -> Option<&Counters> {
        self.places.get(&id).map(|place| &place.link.counters)
    }

    /// Sets the peer of this ID for later connections; `None` removes it. An existing link stays as it is.
    pub fn set_peer(&mut self, id: LinkId, peer: Option<PeerStation>) {
        match peer {
            Some(peer) => drop(self.config.peers.insert(id, peer)),
            None => drop(self.config.peers.remove(&id)),
        }
    }

    /// Sets the destination of UI frames with this ID; `None` removes it and drops its waiting frames.
    pub fn set_unconnected(&mut self, id: LinkId, place: Option<PeerStation>) {
        if let Some(place) = place {
            self.config.unconnected.insert(id, place);
        } else {
            self.config.unconnected.remove(&id);
            self.unconnected.leave(id);
        }
    }

    fn packets_request(&mut self, now: Instant, id: LinkId, request: PacketsRequest) {
        if request == PacketsRequest::Connect {
            return self.connect(now, id);
        }
        let Some(place) = self.places.get_mut(&id).filter(|place| !place.link.is_closed()) else {
            self.drops.late_requests += 1;
            return;
        };
        match request {
            PacketsRequest::Connect => {}
            PacketsRequest::Packet { bytes, shares } => {
                assert!(place.announced_room > 0, "a packet for {id:?} without room");
                place.announced_room -= 1;
                place.link.send_packet(bytes, shares);
            }
            PacketsRequest::Release(packets) => place.link.user_releases(packets),
            PacketsRequest::Acknowledge => place.link.user_acknowledges(),
            PacketsRequest::Close => place.link.user_closes(now, false),
            PacketsRequest::Abort => place.link.user_closes(now, true),
        }
        self.touch(id);
    }

    fn connect(&mut self, now: Instant, id: LinkId) {
        let Some(peer) = self.config.peers.get(&id).cloned() else {
            return self.closed.push_back((id, CloseReason::Unreachable));
        };
        let station = peer.station;
        let taken = self.by_peer.get(&station).is_some_and(|other| {
            *other != id && self.places.get(other).is_some_and(|place| !place.link.is_closed())
        });
        // Two stations have at most one link: only their callsigns distinguish links.
        if taken || !self.has_place(id) {
            return self.closed.push_back((id, CloseReason::Limit));
        }
        self.tell_end(station);
        self.forget(id);
        let known = self.known.get(&station).cloned();
        let mut link = Link::call(self.config.station, peer, self.config.radio.clone(), known);
        let is_young = self.joined.is_none_or(|began| now.saturating_since(began) < FORMER_RUN_MAX);
        let unsettled = self.config.restarts && is_young && !self.confirmed_peers.contains(&station);
        if self.late_answers_expected.remove(&station) || unsettled {
            link.suspect();
        }
        self.place(id, link);
    }

    fn place(&mut self, id: LinkId, link: Link) {
        self.by_peer.insert(link.peer, id);
        self.places.insert(id, LinkSlot { link, announced_room: 0, burst: (0, 0), deadline: None });
        self.touch(id);
    }

    /// Updates the deadline of a link and its place among those with frames to send, after any change.
    pub(super) fn touch(&mut self, id: LinkId) {
        let Some(place) = self.places.get_mut(&id) else { return };
        self.changed_links.insert(id);
        let deadline = place.link.deadline();
        self.deadlines.set(id, &mut place.deadline, deadline);
        if place.link.wants_air() && !self.links_with_frames.contains(&id) {
            self.links_with_frames.push_back(id);
        }
    }

    fn hear(&mut self, now: Instant, mut bytes: Bytes) {
        let whole = bytes.clone();
        let Ok(address) = Address::decode(&mut bytes) else {
            self.drops.damaged += 1;
            return;
        };
        if address.source == self.config.station {
            // A frame of this station, repeated by a digipeater or received by its own receiver.
            self.drops.not_ours += 1;
            return;
        }
        self.heard.note(now, &address, &bytes);
        let radio = &self.config.radio;
        let keyed = self.leaving.keyed(now, radio, whole.len());
        let gone = self.leaving.heard(now, radio, whole.len());
        if !address.arrived() {
            return self.repeat(address, whole.slice(whole.len() - bytes.len()..));
        }
        let link = self.by_peer.get(&address.source).copied();
        let ours = address.destination == self.config.station;
        let link = link.filter(|_| ours);
        let modulo = link.and_then(|id| self.places.get(&id)).map(|place| place.link.agreed.modulo);
        // Without a link (6.2, 6.3.5), the modulo is guessed from the frame itself.
        let modulo = modulo.unwrap_or_else(|| Modulo::of_unknown(&bytes));
        let Ok(frame) = Frame::decode_behind(address, bytes, modulo) else {
            self.drops.damaged += 1;
            return;
        };
        if let Control::Unnumbered { function: Unnumbered::Information, .. } = frame.control {
            self.hear_unconnected(&frame, ours);
        }
        match link {
            _ if !ours => self.drops.not_ours += 1,
            Some(id) if self.places.get(&id).is_some_and(|place| !place.link.is_closed()) => {
                self.hear_on_link(now, id, &frame, (gone, keyed));
            }
            _ => self.hear_stranger(&frame),
        }
    }

    /// Handles a frame on its way to a digipeater: this station repeats its own part of the path (3.12.4).
    fn repeat(&mut self, mut address: Address, behind: Bytes) {
        let next = address.path.iter_mut().find(|hop| !hop.repeated);
        match next {
            Some(hop) if self.config.repeats && hop.station == self.config.station => hop.repeated = true,
            _ => {
                self.drops.not_ours += 1;
                return;
            }
        }
        let mut output = BytesMut::with_capacity(address.len_bytes() + behind.len());
        address.encode(&mut output);
        output.extend_from_slice(&behind);
        let (length, own) =
            (output.len(), self.config.radio.keying() + self.announcements.kept_air_time(&self.config.radio));
        match self.budget.ever_affords(own + self.config.radio.air_time(1, length as u64)) {
            true => self.wait(output.freeze(), Shares::repeated(length), REPEATED_MAX),
            false => self.drops.too_long_to_repeat += 1,
        }
    }

    fn wait(&mut self, bytes: Bytes, shares: Shares, most: usize) {
        match self.waiting.len() < most {
            true => self.waiting.push_back((bytes, shares)),
            false => self.drops.overflow += 1,
        }
    }

    fn hear_on_link(&mut self, now: Instant, id: LinkId, frame: &Frame, gone: (Duration, Duration)) {
        let Some(place) = self.places.get_mut(&id) else { return };
        place.link.hear(now, frame, gone);
        let begun_anew = place.link.is_closed()
            && matches!(
                frame.control,
                Control::Unnumbered { function: Unnumbered::SetMode | Unnumbered::SetModeExtended, .. }
            );
        self.touch(id);
        if begun_anew {
            self.hear_stranger(frame);
        }
    }

    fn hear_stranger(&mut self, frame: &Frame) {
        let Control::Unnumbered { function, poll_final } = frame.control else {
            if frame.is_command() && frame.control.poll_final() {
                self.answer(frame, Unnumbered::DisconnectedMode, true, Bytes::new());
            }
            return;
        };
        if !frame.is_command() {
            self.drops.not_ours += 1;
            return;
        }
        match function {
            Unnumbered::SetMode => self.called(frame, Modulo::Eight, poll_final),
            Unnumbered::SetModeExtended => self.called(frame, Modulo::Extended, poll_final),
            Unnumbered::ExchangeIdentification => self.identify(frame, poll_final),
            Unnumbered::Test => {
                self.answer(frame, Unnumbered::Test, poll_final, frame.information.clone());
            }
            // 4.3.3.6.
            Unnumbered::Information if !poll_final => {}
            _ => self.answer(frame, Unnumbered::DisconnectedMode, poll_final, Bytes::new()),
        }
    }

    fn called(&mut self, frame: &Frame, modulo: Modulo, poll: bool) {
        let id = LinkId(self.next_incoming);
        let config: Option<LinkConfig> = self.config.callers.clone().filter(|config| match modulo {
            Modulo::Eight => true,
            Modulo::Extended => config.version != super::config::Version::Plain,
        });
        let Some(config) = config.filter(|_| self.has_place(id)) else {
            self.drops.refused += 1;
            return self.answer(frame, Unnumbered::DisconnectedMode, poll, Bytes::new());
        };
        let (peer, path) = (frame.address.source, frame.address.way_back());
        self.tell_end(peer);
        if let Some(before) = self.by_peer.get(&peer).and_then(|before| self.places.get_mut(before)) {
            // A peer that requests a new link waits for no answers on the old one.
            before.link.fall_silent();
        }
        let offered_parameters = self.offered_parameters.remove(&peer);
        let radio = self.config.radio.clone();
        let peer = PeerStation { station: peer, path, link: config };
        let link = Link::answer(peer, radio, modulo, poll, offered_parameters.as_ref());
        // An ID is reused only after four thousand million connection requests.
        self.next_incoming = self.next_incoming.checked_add(1).unwrap_or(LinkId::FIRST_INCOMING);
        self.place(id, link);
    }

    /// Answers XID outside a link, in any state (C5).
    fn identify(&mut self, frame: &Frame, poll: bool) {
        let Some(callers) = &self.config.callers else {
            return self.answer(frame, Unnumbered::DisconnectedMode, poll, Bytes::new());
        };
        let Ok(theirs) = Parameters::decode(&mut frame.information.clone()) else {
            self.drops.damaged += 1;
            return;
        };
        let modulo = theirs.options.map_or(Modulo::Eight, |options| options.modulo);
        let ours = offer(callers, &self.config.radio, modulo);
        let answer = ours.agree(&theirs).with_own_limits(&ours);
        let information = codec::encoded(0, |out| answer.encode(out));
        if self.offered_parameters.len() >= WAITING_MAX {
            self.offered_parameters.pop_first();
        }
        self.offered_parameters.insert(frame.address.source, theirs);
        self.answer(frame, Unnumbered::ExchangeIdentification, poll, information);
    }

    fn answer(&mut self, to: &Frame, function: Unnumbered, final_bit: bool, information: Bytes) {
        let (own, peer) = (self.config.station, to.address.source);
        let address = Address::new(own, peer, CommandResponse::Response, &to.address.way_back());
        let control = Control::Unnumbered { function, poll_final: final_bit };
        let bytes = Frame { information, ..Frame::bare(address, control) }.to_bytes(Modulo::Eight);
        let shares = Shares::control(bytes.len());
        self.wait(bytes, shares, WAITING_MAX);
    }

    fn hear_unconnected(&mut self, frame: &Frame, ours: bool) {
        let places = || self.config.unconnected.iter().filter(|(_, at)| at.link.protocol == frame.pid);
        let from = places().find(|(_, at)| ours && at.station == frame.address.source);
        let group = places().find(|(_, at)| at.station == frame.address.destination);
        let (from, group) = (from.map(|(id, _)| *id), group.map(|(id, _)| *id));
        let sender = from.is_none().then_some(frame.address.source);
        let Some(id) = from.or(group) else {
            self.drops.not_ours += 1;
            return;
        };
        match self.unconnected.hear(id, sender, frame.information.clone()) {
            Ok(()) => {}
            Err(Dropped::Late) => self.drops.not_ours += 1,
            Err(Dropped::Overflow) => self.drops.overflow += 1,
        }
    }

    fn datagrams_request(&mut self, id: LinkId, request: DatagramsRequest) {
        let Some(peer) = self.config.unconnected.get(&id) else {
            return self.unconnected.tell(id, DatagramsIndication::Left(CloseReason::Unreachable));
        };
        let bytes_max = u64::from(peer.link.information_bytes_max);
        if self.unconnected.request(id, bytes_max, request).is_err() {
            self.drops.late_requests += 1;
        }
    }

    fn left(&mut self, now: Instant, (id, handed): (LinkId, Duration)) {
        let early = handed > self.leaving.gone(now);
        self.transmit_reports_come_early |= early;
        let leaves_by = self.leaving.leaves_by(&self.config.radio, handed).filter(|_| early);
        let at = leaves_by.unwrap_or(now);
        if let Some(place) = self.places.get_mut(&id) {
            place.link.left(now, at);
        }
        self.touch(id);
    }

    fn wants_air(&self) -> bool {
        self.announcements.due().is_some()
            || !self.waiting.is_empty()
            || self.unconnected.waiting() > 0
            || !self.links_with_frames.is_empty()
    }

    /// Returns true if the next frame must wait because of a limit. Every other frame leaves time for the identification.
    fn waits_for_air_time(&mut self, now: Instant) -> bool {
        let (time, kept) = (self.next_time(), self.announcements.kept_air_time(&self.config.radio));
        if self.announcements.due() == Some(Kind::Identification) && self.budget.affords(now, time) {
            return false;
        }
        self.budget.waits(now, time + kept)
    }

    /// Returns the maximum time of the next frame, with the key-up that it begins.
    fn next_time(&self) -> Duration {
        let key = if self.spent.is_zero() { self.config.radio.keying() } else { Duration::ZERO };
        let own = match self.announcements.due() {
            Some(Kind::Identification) => self.announcements.identification_bytes(),
            Some(Kind::Beacon) => self.config.beacon.as_ref().map(|own| 16 + own.text.len() as u64),
            None => None,
        };
        if let Some(bytes) = own {
            return key + self.config.radio.air_time(1, bytes);
        }
        let link = self.links_with_frames.front().and_then(|id| self.places.get(id)).map(|place| &place.link);
        let bytes = match (self.waiting.front(), link) {
            (Some((bytes, _)), _) => bytes.len() as u64,
            (None, Some(link)) => u64::from(link.next_bytes_max()) + HEADER_BYTES_MAX,
            (None, None) => self.unconnected.next_bytes() + HEADER_BYTES_MAX,
        };
        key + self.config.radio.air_time(1, bytes)
    }

    fn frame(&self, out: &OutgoingFrame, peer: Callsign, path: &[Callsign], modulo: Modulo) -> Bytes {
        let role = if out.command { CommandResponse::Command } else { CommandResponse::Response };
        let address = Address::new(self.config.station, peer, role, path);
        let (control, pid, information) = (out.control, out.pid, out.information.clone());
        Frame { address, control, pid, information }.to_bytes(modulo)
    }

    /// Returns the next frame of this key-up, and the token for the report of its transmission.
    fn next_frame(&mut self, now: Instant) -> Option<(Bytes, Shares, Option<u64>)> {
        if let Some(kind) = self.announcements.due() {
            let bytes = self.announcements.take(now, kind, self.config.station);
            self.leaving.hand(now, &self.config.radio, bytes.len());
            let shares = Shares::control(bytes.len());
            return Some((bytes, shares, None));
        }
        if let Some((bytes, shares)) = self.waiting.pop_front() {
            self.leaving.hand(now, &self.config.radio, bytes.len());
            return Some((bytes, shares, None));
        }
        while let Some(id) = self.links_with_frames.front().copied() {
            if let Some(frame) = self.next_of(now, id) {
                return Some(frame);
            }
            self.links_with_frames.pop_front();
        }
        let datagram = self.unconnected.pop()?;
        let peer = self.config.unconnected.get(&datagram.id)?;
        let control = Control::Unnumbered { function: Unnumbered::Information, poll_final: false };
        let (pid, length) = (peer.link.protocol, datagram.bytes.len());
        let (information, shares) = (datagram.bytes, datagram.shares);
        let out = OutgoingFrame { command: true, control, pid, information, shares, awaits: false };
        let bytes = self.frame(&out, datagram.to.unwrap_or(peer.station), &peer.path, Modulo::Eight);
        self.leaving.hand(now, &self.config.radio, bytes.len());
        let token = datagram.token.map(|token| {
            self.next_token += 1;
            self.unconnected.follow(self.next_token - 1, datagram.id, token);
            self.next_token - 1
        });
        let shares = shares.in_frame(length, bytes.len());
        Some((bytes, shares, token))
    }

    fn next_of(&mut self, now: Instant, id: LinkId) -> Option<(Bytes, Shares, Option<u64>)> {
        let (radio, spent, most) = (&self.config.radio, self.spent, self.config.transmission_max);
        let room = self.room;
        let two = |bytes| radio.air_time(2, 2 * (bytes + HEADER_BYTES_MAX));
        let key = if spent.is_zero() { radio.keying() } else { Duration::ZERO };
        let afford =
            self.budget.left(now).saturating_sub(key + self.announcements.kept_air_time(&self.config.radio));
        let more = |bytes| room > 1 && spent + two(bytes) <= most && two(bytes) <= afford;
        let place = self.places.get_mut(&id)?;
        let out = place.link.next_frame(more)?;
        let (peer, path, modulo) = (place.link.peer, place.link.path.clone(), place.link.agreed.modulo);
        let bytes = self.frame(&out, peer, &path, modulo);
        let shares = match out.control {
            Control::Unnumbered { .. } => Shares::control(bytes.len()),
            Control::Supervisory { .. } => Shares { acknowledgement: bytes.len() as u32, ..out.shares },
            Control::Information { .. } => out.shares,
        };
        let handed = self.leaving.hand(now, &self.config.radio, bytes.len());
        let place = self.places.get_mut(&id)?;
        place.link.handed(out.control, handed);
        place.burst = (place.burst.0 + 1, place.burst.1 + bytes.len() as u64);
        let token = out.awaits.then_some(self.next_token);
        if out.awaits {
            self.next_token += 1;
            (place.link.burst, place.link.awaited) = (core::mem::take(&mut place.burst), handed);
            self.tokens.insert(self.next_token - 1, (id, handed));
        }
        let goes_on = place.link.wants_air();
        place.link.settle(now);
        self.touch(id);
        if !goes_on {
            self.links_with_frames.retain(|other| *other != id);
        }
        if self.tokens.len() > LEAVING_FRAMES_MAX
            && let Some((_, frame)) = self.tokens.pop_first()
        {
            // Reports of transmissions are missing: this frame left long ago.
            self.left(now, frame);
        }
        Some((bytes, shares, token))
    }
}

impl Engine for Station {
    type Above = Above;
    type Below = Frames;

    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        match request {
            Port::First((id, request)) => self.packets_request(now, id, request),
            Port::Second((id, request)) => self.datagrams_request(id, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Frames>) {
        match indication {
            FramesIndication::Room(room) => {
                self.room = room;
                if room == 0 {
                    (self.seized, self.spent) = (false, Duration::ZERO);
                }
            }
            FramesIndication::Frame(bytes) => self.hear(now, bytes),
            FramesIndication::Transmitted(token) => {
                if let Some(frame) = self.tokens.remove(&token) {
                    self.left(now, frame);
                } else {
                    self.unconnected.left(token);
                }
            }
            FramesIndication::Busy(busy) => self.busy = busy,
            FramesIndication::Carrier(carrier) => {
                if !carrier {
                    (self.room, self.seized, self.spent) = (0, false, Duration::ZERO);
                    // Frames held by the controller are lost, without a report.
                    self.leaving.forget();
                    for frame in core::mem::take(&mut self.tokens).into_values() {
                        self.left(now, frame);
                    }
                    for place in self.places.values_mut().filter(|place| place.link.is_closed()) {
                        place.link.fall_silent();
                    }
                    self.changed_links.extend(self.places.keys());
                }
                self.unconnected.carrier(carrier);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.budget.pass(now);
        self.announcements.pass(now);
        while let Some(id) = self.deadlines.pop_due(now) {
            if let Some(place) = self.places.get_mut(&id) {
                place.deadline = None;
                let believed = !(self.transmit_reports_come_early || place.link.transmit_reports_are_missing);
                let leaves_by = || self.leaving.leaves_by(&self.config.radio, place.link.awaited);
                let leaves_by = if believed { None } else { leaves_by() };
                place.link.handle_timeout(now, self.busy, leaves_by);
            }
            self.touch(id);
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<Indication<Self::Above>> {
        if let Some((id, reason)) = self.closed.pop_front() {
            return Some(Port::First((id, PacketsIndication::Closed(reason))));
        }
        if let Some(said) = self.unconnected.poll_indication() {
            return Some(Port::Second(said));
        }
        while let Some(id) = self.changed_links.first().copied() {
            if let Some(place) = self.places.get_mut(&id) {
                if let Some(indication) = place.link.indications.pop_front() {
                    return Some(Port::First((id, indication)));
                }
                let room = match place.link.carries() {
                    true => place.link.sender.room(place.link.agreed.window),
                    false => 0,
                };
                if room != place.announced_room && !place.link.is_closed() {
                    place.announced_room = room;
                    return Some(Port::First((id, PacketsIndication::Room(room))));
                }
                if place.link.is_over() {
                    self.forget(id);
                    if self.places.is_empty() {
                        self.announcements.communication_over();
                    }
                }
            }
            self.changed_links.remove(&id);
        }
        None
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Frames>> {
        if self.joined.is_none() {
            self.joined = Some(now);
            self.announcements.joined(now);
            return Some(FramesRequest::Join);
        }
        // A burst that has begun continues until the last frame that there is time for.
        if self.config.inhibited
            || !self.wants_air()
            || (self.spent.is_zero() && self.waits_for_air_time(now))
        {
            return None;
        }
        if self.room == 0 {
            return (!core::mem::replace(&mut self.seized, true)).then_some(FramesRequest::Seize);
        }
        let is_own = self.announcements.due().is_some();
        let (bytes, shares, token) = self.next_frame(now)?;
        if !is_own {
            self.announcements.sent(now);
        }
        self.room -= 1;
        let key = if self.spent.is_zero() { self.config.radio.keying() } else { Duration::ZERO };
        let time = self.config.radio.air_time(1, bytes.len() as u64);
        self.spent += time;
        self.budget.spend(now, key + time);
        let over = self.room == 0 || self.spent >= self.config.transmission_max;
        let next = self.next_time() + self.announcements.kept_air_time(&self.config.radio);
        let last = over || !self.wants_air() || !self.budget.affords(now, next);
        if last {
            self.spent = Duration::ZERO;
            self.seized = false;
            // The link that is served first changes with each key-up.
            if let Some(id) = self.links_with_frames.pop_front() {
                self.links_with_frames.push_back(id);
            }
        }
        Some(FramesRequest::Frame { bytes, token, last, shares })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.deadlines.next(), earlier(self.budget.until(), self.announcements.until()))
    }

    fn observe(&self, view: &mut Observation) {
        view.part("ax25").count(&self.counters()).count(&self.drops).tell("links", self.places.len());
    }
}
