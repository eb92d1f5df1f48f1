//! Two nodes and their users, driven by hand in virtual time, with a record of everything: the messages on the wire and
//! the indications to the users.

use super::laws::{Factory, node};
use crate::codec::DecodeError;
use crate::engine::Engine;
use crate::joint::Fan;
use crate::laws::{Environment, StreamConditions, Streams};
use crate::rng::Rng;
use crate::service::{BundlesIndication, BundlesRequest, LinkId, Priority, RefuseReason, TransferId};
use crate::tcpcl::{Config, Session, contact, v3, v4};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Link on which node 0 connects to node 1.
pub(super) const CALL: LinkId = LinkId(1);

type Node = Checked<Fan<LinkId, Session, Factory>>;

/// Behaviour of a user towards incoming bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taste {
    /// Accepts all data at once.
    Takes,
    /// Does nothing by itself.
    Waits,
    /// Refuses every bundle at its beginning.
    Refuses(RefuseReason),
}

/// Part of an incoming bundle that a user has received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parcel {
    pub(super) bytes: Vec<u8>,
    pub(super) accepted: u64,
    pub(super) whole: bool,
    pub(super) lost: bool,
}

#[derive(Debug)]
struct User {
    taste: Taste,
    /// Link to send on.
    link: Option<LinkId>,
    room: u64,
    sending: VecDeque<(TransferId, Bytes, usize)>,
    parcels: BTreeMap<(LinkId, TransferId), Parcel>,
    requests: VecDeque<(LinkId, BundlesRequest)>,
}

pub(super) struct Scene {
    pub(super) now: Instant,
    nodes: [Node; 2],
    pub(super) streams: Streams,
    users: [User; 2],
    /// All indications to the users but `Room`: time, node, indication.
    pub(super) told: Vec<(Instant, usize, BundlesIndication)>,
}

impl Scene {
    pub(super) fn new(caller: Config, called: Config, conditions: StreamConditions) -> Self {
        let rng = Rng::new(1);
        let user = |_| User {
            taste: Taste::Takes,
            link: None,
            room: 0,
            sending: VecDeque::new(),
            parcels: BTreeMap::new(),
            requests: VecDeque::new(),
        };
        let fan = |config, name| Checked::new(name, node(config, rng.fork(name)));
        Scene {
            now: Instant::ZERO,
            nodes: [fan(caller, "caller"), fan(called, "called")],
            streams: Streams::new(rng.fork("streams"), conditions, vec![]).recording(),
            users: [0, 1].map(user),
            told: vec![],
        }
    }

    pub(super) fn taste(&mut self, node: usize, taste: Taste) {
        self.users[node].taste = taste;
    }

    pub(super) fn connect(&mut self) {
        self.ask(0, CALL, BundlesRequest::Connect);
    }

    /// Closes the link of `node` for its user.
    pub(super) fn close(&mut self, node: usize) {
        let link = self.users[node].link.expect("it is up");
        self.ask(node, link, BundlesRequest::Close);
    }

    pub(super) fn ask(&mut self, node: usize, link: LinkId, request: BundlesRequest) {
        self.users[node].requests.push_back((link, request));
        self.settle();
    }

    /// Sends a bundle for the user of `node` on the established link.
    pub(super) fn send(&mut self, node: usize, transfer: u64, content: impl Into<Bytes>) {
        let (transfer, content) = (TransferId(transfer), content.into());
        let link = self.users[node].link.expect("it is up");
        let length = content.len() as u64;
        self.users[node].sending.push_back((transfer, content, 0));
        self.ask(node, link, BundlesRequest::Open { transfer, priority: Priority::Normal, length });
    }

    /// Runs for a duration.
    pub(super) fn run(&mut self, span: Duration) {
        let limit = self.now + span;
        self.settle();
        while let Some(at) = self.next().filter(|&at| at <= limit) {
            self.now = self.now.max(at);
            self.streams.handle_timeout(self.now);
            for node in &mut self.nodes {
                if node.poll_timeout().is_some_and(|at| at <= self.now) {
                    node.handle_timeout(self.now);
                }
            }
            self.settle();
        }
        self.now = limit;
    }

    fn next(&self) -> Option<Instant> {
        let nodes = self.nodes.iter().filter_map(|node| node.poll_timeout());
        nodes.chain(self.streams.poll_timeout()).min()
    }

    /// Returns the number of remaining engines of `node`.
    pub(super) fn sessions(&self, node: usize) -> usize {
        self.nodes[node].engine.iter().count()
    }

    fn settle(&mut self) {
        loop {
            if let Some((node, indication)) = self.streams.poll_indication() {
                self.nodes[node].handle_indication(self.now, indication);
            } else if !(self.hear() || self.act()) {
                return;
            }
        }
    }

    fn hear(&mut self) -> bool {
        for node in 0..2 {
            if let Some((link, said)) = self.nodes[node].poll_indication(self.now) {
                self.users[node].hear(link, &said);
                if !matches!(said, BundlesIndication::Room(_)) {
                    self.told.push((self.now, node, said));
                }
                return true;
            }
        }
        false
    }

    fn act(&mut self) -> bool {
        for node in 0..2 {
            if let Some(request) = self.users[node].next_request() {
                self.nodes[node].handle_request(self.now, request);
                return true;
            }
            if let Some(request) = self.nodes[node].poll_request(self.now) {
                self.streams.handle_request(self.now, node, request);
                return true;
            }
        }
        false
    }

    /// Returns the incoming bundles of `node`, oldest first.
    pub(super) fn parcels(&self, node: usize) -> Vec<Parcel> {
        self.users[node].parcels.values().cloned().collect()
    }

    /// Returns the indications to the user of `node`.
    pub(super) fn told(&self, node: usize) -> Vec<BundlesIndication> {
        self.told.iter().filter(|told| told.1 == node).map(|told| told.2.clone()).collect()
    }

    /// Returns the messages on the wire: time of the last header byte, sender, message.
    pub(super) fn story(&self) -> Vec<String> {
        let mut readers: BTreeMap<(usize, LinkId), Reader> = BTreeMap::new();
        let mut story = vec![];
        for (at, node, link, bytes) in &self.streams.wire {
            let reader = readers.entry((*node, *link)).or_default();
            if bytes.starts_with(b"dtn!") {
                *reader = Reader::default();
            }
            for message in reader.read(bytes) {
                let arrow = if *node == 0 { ">" } else { "<" };
                story.push(format!("{:>7.3} {arrow} {message}", at.as_secs_f64()));
            }
        }
        story
    }
}

impl User {
    fn hear(&mut self, link: LinkId, said: &BundlesIndication) {
        match said {
            BundlesIndication::Up { .. } => self.link = Some(link),
            BundlesIndication::Down { .. } => {
                self.room = 0;
                self.link = None;
            }
            BundlesIndication::Room(room) => self.room = *room,
            BundlesIndication::Begin { transfer, .. } => {
                self.parcels.insert((link, *transfer), Parcel::default());
                if let Taste::Refuses(reason) = self.taste {
                    self.requests.push_back((link, BundlesRequest::Refuse { transfer: *transfer, reason }));
                }
            }
            BundlesIndication::Piece { transfer, data, last } => {
                let parcel = self.parcels.get_mut(&(link, *transfer)).expect("it has begun");
                parcel.bytes.extend_from_slice(data);
                parcel.whole = *last;
                if self.taste == Taste::Takes {
                    parcel.accepted = parcel.bytes.len() as u64;
                    let up_to = parcel.accepted;
                    self.requests.push_back((link, BundlesRequest::Accept { transfer: *transfer, up_to }));
                }
            }
            BundlesIndication::Lost { transfer } => {
                self.parcels.get_mut(&(link, *transfer)).expect("it has begun").lost = true;
            }
            BundlesIndication::Sent { transfer } | BundlesIndication::Failed { transfer, .. } => {
                self.sending.retain(|sending| sending.0 != *transfer);
            }
            BundlesIndication::Acked { .. } | BundlesIndication::Peer { .. } | BundlesIndication::Amateur => {
            }
        }
    }

    fn next_request(&mut self) -> Option<(LinkId, BundlesRequest)> {
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        let (transfer, content, given) =
            self.sending.iter_mut().find(|sending| sending.2 < sending.1.len())?;
        let length = self.room.min((content.len() - *given) as u64) as usize;
        if length == 0 {
            return None;
        }
        let data = content.slice(*given..*given + length);
        *given += length;
        self.room -= length as u64;
        let last = *given == content.len();
        Some((self.link?, BundlesRequest::Piece { transfer: *transfer, data, last }))
    }
}

/// Cuts a stream into messages.
#[derive(Debug, Default)]
struct Reader {
    kept: BytesMut,
    version: Option<u8>,
    payload: u64,
}

impl Reader {
    fn read(&mut self, bytes: &Bytes) -> Vec<String> {
        self.kept.extend_from_slice(bytes);
        let mut messages = vec![];
        loop {
            let passed = self.payload.min(self.kept.len() as u64);
            self.kept.advance(passed as usize);
            self.payload -= passed;
            let mut input = Bytes::copy_from_slice(&self.kept);
            match self.next(&mut input) {
                Ok(message) => messages.push(message),
                Err(DecodeError::Incomplete) => return messages,
                Err(error) => panic!("{error} in {:?}", self.kept),
            }
            let taken = self.kept.len() - input.len();
            self.kept.advance(taken);
        }
    }

    fn next(&mut self, input: &mut Bytes) -> Result<String, DecodeError> {
        match self.version {
            None if contact::sniff(input)? == 3 => {
                let header = v3::wire::ContactHeader::decode(input)?;
                self.version = Some(3);
                let flags = [
                    (header.acknowledgements, " acks"),
                    (header.reactive_fragmentation, " reactive"),
                    (header.refusal, " refusal"),
                    (header.lengths, " lengths"),
                ];
                let flags: String = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
                Ok(format!("CONTACT 3 {} {}s{flags}", header.eid, header.keepalive))
            }
            None => {
                let header = v4::wire::ContactHeader::decode(input)?;
                self.version = Some(4);
                Ok(format!("CONTACT 4{}", if header.can_tls { " tls" } else { "" }))
            }
            Some(3) => {
                let message = v3::wire::Message::decode(input)?;
                if let v3::wire::Message::DataSegment { length, .. } = message {
                    self.payload = length;
                }
                Ok(tell_three(message))
            }
            Some(_) => {
                let message = v4::wire::Message::decode(input)?;
                if let v4::wire::Message::XferSegment(segment) = &message {
                    self.payload = segment.length;
                }
                Ok(tell_four(&message))
            }
        }
    }
}

fn start_end(start: bool, end: bool) -> &'static str {
    match (start, end) {
        (true, true) => " start end",
        (true, false) => " start",
        (false, true) => " end",
        (false, false) => "",
    }
}

fn tell_three(message: v3::wire::Message) -> String {
    use v3::wire::Message;
    match message {
        Message::DataSegment { start, end, length } => format!("SEGMENT {length}{}", start_end(start, end)),
        Message::AckSegment { up_to } => format!("ACK {up_to}"),
        Message::RefuseBundle { reason } => format!("REFUSE {reason:?}"),
        Message::KeepAlive => "KEEPALIVE".to_owned(),
        Message::Shutdown { reason, .. } => {
            reason.map_or("SHUTDOWN".to_owned(), |reason| format!("SHUTDOWN {reason:?}"))
        }
        Message::Length { total } => format!("LENGTH {total}"),
        Message::Unknown { header } => format!("? {header:#x}"),
    }
}

fn tell_four(message: &v4::wire::Message) -> String {
    use v4::wire::{END, Message, START};
    let flags = |flags: u8| start_end(flags & START != 0, flags & END != 0);
    match message {
        Message::XferSegment(segment) => {
            let items = v4::wire::items(segment.items.clone()).expect("a list of items");
            let total = items.iter().find(|item| item.kind == v4::wire::TRANSFER_LENGTH);
            let total = total.map(|item| format!(" of {}", item.value.clone().get_u64())).unwrap_or_default();
            format!("SEGMENT #{} {}{}{total}", segment.id, segment.length, flags(segment.flags))
        }
        Message::XferAck { flags: bits, id, up_to } => format!("ACK #{id} {up_to}{}", flags(*bits)),
        Message::XferRefuse { reason, id } => format!("REFUSE #{id} {reason:?}"),
        Message::KeepAlive => "KEEPALIVE".to_owned(),
        Message::SessTerm { reply, reason } => {
            format!("TERM {reason:?}{}", if *reply { " reply" } else { "" })
        }
        Message::MsgReject { reason, header } => format!("REJECT {reason:?} {header:#x}"),
        Message::SessInit(init) => {
            format!(
                "INIT {} {}s segment {} transfer {}",
                init.node_id, init.keepalive, init.segment_mru, init.transfer_mru
            )
        }
        Message::Unknown { header } => format!("? {header:#x}"),
    }
}
