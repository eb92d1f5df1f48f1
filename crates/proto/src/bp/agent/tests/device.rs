//! A disk that cannot read for a while, on a link that carries only small bundles.

use super::super::holdings::VISITED_AT_ONCE;
use super::super::{Agent, Config, LinkConfig};
use crate::bp::{
    AdminRecord, Bundle, BundleFlags, Content, CrcType, CreationTimestamp, DecodePolicy, DtnTime, Eid, Emit,
    Head, PeerRules, PrimaryBlock, ReasonCode, StatusItem, StatusReport,
};
use crate::codec::DecodeError;
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{
    AppIndication, AppRequest, BpaIndication, BpaRequest, BundlesIndication, BundlesRequest, DownReason,
    LinkId, ManagementRequest, NextHop, Port, RefuseReason, ReportedStatus, SendId, SendOptions,
    StorageFailure, StorageIndication, StorageRequest, TransferFailure, TransferId,
};
use crate::time::Instant;
use bytes::Bytes;
use core::ops::Range;
use std::collections::BTreeMap;

const LINK: LinkId = LinkId(1);
/// More requests at one instant than any valid exchange in these tests has.
const REQUESTS_MAX: usize = 1000;

/// An agent, a disk that answers at once, and a neighbour that never acknowledges.
struct Bench {
    agent: Agent,
    now: Instant,
    records: BTreeMap<crate::service::RecordId, Vec<u8>>,
    /// Number of reads that succeed; later reads fail.
    good_reads: usize,
    failed_reads: usize,
    /// Reads are not answered yet.
    withholds: bool,
    withheld: Vec<StorageRequest>,
    /// Maximum length of an answer where parts are enough, bytes.
    part_bytes_max: u32,
    /// For each append whether it is urgent.
    urgent: Vec<bool>,
    /// Indications to the applications, except room.
    told: Vec<AppIndication>,
    opened: usize,
    /// Transfers begun, with their lengths.
    transfers: Vec<(TransferId, u64)>,
    payload: Bytes,
    /// Maximum length of a transfer, and room, of a link when it comes up.
    transfer_bytes_max: u64,
    room: u64,
    /// Bytes read, and bytes sent over each link.
    read_bytes: u64,
    handed: BTreeMap<LinkId, u64>,
    sent: Vec<u8>,
}

impl Bench {
    fn new(payload: Bytes) -> Self {
        let config = Config { node: "dtn://a/".into(), ..Config::default() };
        Bench {
            agent: Agent::new(config, Rng::new(1)).expect("a node id"),
            now: Instant::ZERO,
            records: BTreeMap::new(),
            good_reads: usize::MAX,
            failed_reads: 0,
            withholds: false,
            withheld: Vec::new(),
            part_bytes_max: u32::MAX,
            urgent: Vec::new(),
            told: Vec::new(),
            opened: 0,
            transfers: Vec::new(),
            payload,
            transfer_bytes_max: 1500,
            room: 1 << 20,
            read_bytes: 0,
            handed: BTreeMap::new(),
            sent: Vec::new(),
        }
    }

    fn ask(&mut self, request: impl Into<BpaRequest>) {
        self.agent.handle_request(self.now, request.into());
        self.settle();
    }

    /// Advances the time to the agent's next deadline.
    fn wake(&mut self) {
        self.now = self.agent.poll_timeout().expect("something is due");
        self.agent.handle_timeout(self.now);
        self.settle();
    }

    fn settle(&mut self) {
        for _ in 0..REQUESTS_MAX {
            while let Some(up) = self.agent.poll_indication(self.now) {
                match up {
                    BpaIndication::App(AppIndication::Room(room)) if room > 0 && !self.payload.is_empty() => {
                        let data = core::mem::take(&mut self.payload);
                        let piece = AppRequest::Piece { send: SendId(1), data };
                        self.agent.handle_request(self.now, piece.into());
                    }
                    BpaIndication::App(AppIndication::Room(_)) | BpaIndication::Manage(_) => {}
                    BpaIndication::App(said) => self.told.push(said),
                }
            }
            match self.agent.poll_request(self.now) {
                None => return,
                Some(Port::First(request @ StorageRequest::Read { .. })) if self.withholds => {
                    self.withheld.push(request);
                }
                Some(Port::First(request)) => {
                    let answer = self.store(request);
                    self.agent.handle_indication(self.now, Port::First(answer));
                }
                Some(Port::Second((link, request))) => self.link(link, &request),
            }
        }
        panic!("the agent never comes to rest: {} reads failed", self.failed_reads);
    }

    fn store(&mut self, request: StorageRequest) -> StorageIndication {
        match request {
            StorageRequest::List => StorageIndication::Listed { records: Vec::new() },
            StorageRequest::Append { record, data, urgent } => {
                self.urgent.push(urgent);
                let bytes = self.records.entry(record).or_default();
                bytes.extend_from_slice(&data);
                StorageIndication::Stored { record, up_to: bytes.len() as u64 }
            }
            StorageRequest::Remove { record } => StorageIndication::Removed { record },
            StorageRequest::Read { record, offset, .. } if self.good_reads == 0 => {
                self.failed_reads += 1;
                StorageIndication::ReadFailed { record, offset, failure: StorageFailure::Device }
            }
            StorageRequest::Read { record, offset, length, in_parts } => {
                self.good_reads -= 1;
                let length = if in_parts { length.min(self.part_bytes_max) } else { length };
                let (from, bytes) = (offset as usize, &self.records[&record]);
                let to = bytes.len().min(from + length as usize);
                self.read_bytes += (to - from) as u64;
                StorageIndication::Data { record, offset, data: Bytes::copy_from_slice(&bytes[from..to]) }
            }
        }
    }

    /// Lets a fragment with this part of a bundle's payload, and this age, arrive in a transfer with this number.
    fn part_arrives(&mut self, number: u64, whole: &Bundle, part: Range<usize>, age_ms: u64) {
        let mut head = whole.head.fragment(part.start as u64, part.len() as u64);
        head.set(&Content::BundleAge(age_ms));
        let (transfer, data) = (TransferId(number), Bundle::new(head, whole.payload.slice(part)).to_bytes());
        self.hear(LINK, BundlesIndication::Begin { transfer, length: None });
        self.hear(LINK, BundlesIndication::Piece { transfer, data, last: true });
        self.settle();
    }

    /// Answers the oldest read that waits.
    fn answer(&mut self) {
        let request = self.withheld.remove(0);
        let answer = self.store(request);
        self.agent.handle_indication(self.now, Port::First(answer));
        self.settle();
    }

    fn link(&mut self, link: LinkId, request: &BundlesRequest) {
        if let BundlesRequest::Open { transfer, length, .. } = request {
            self.opened += 1;
            self.transfers.push((*transfer, *length));
        }
        if let BundlesRequest::Piece { data, .. } = request {
            *self.handed.entry(link).or_default() += data.len() as u64;
            self.sent.extend_from_slice(data);
        }
        if matches!(request, BundlesRequest::Connect) {
            let peer = if link == LINK { "dtn://b/".to_owned() } else { format!("dtn://b{}/", link.0) };
            let transfer_bytes_max = self.transfer_bytes_max;
            let up = BundlesIndication::Up { peer: Some(peer), interleave: false, transfer_bytes_max };
            self.hear(link, up);
            self.hear(link, BundlesIndication::Room(self.room));
        }
    }

    fn hear(&mut self, link: LinkId, indication: BundlesIndication) {
        self.agent.handle_indication(self.now, Port::Second((link, indication)));
    }
}

#[test]
fn what_cannot_be_read_waits_though_another_part_of_it_is_on_its_way() {
    let mut bench = Bench::new(Bytes::from(vec![7; 4000]));
    bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
    let (destination, options) = ("dtn://b/in".to_owned(), SendOptions::default());
    bench.ask(AppRequest::Send { send: SendId(1), destination, length: 4000, options });
    bench.good_reads = 1;
    bench.ask(ManagementRequest::OpenLink { link: LINK });
    assert_eq!((bench.opened, bench.failed_reads), (1, 1), "the second part waits");
    bench.wake();
    assert_eq!((bench.opened, bench.failed_reads), (1, 2), "and again");
    bench.good_reads = usize::MAX;
    bench.wake();
    assert!(bench.opened >= 3, "all parts go once the disk can read: {}", bench.opened);
}

/// A store that slows its input down waits with the rest until other data has left it.
#[test]
fn the_end_of_a_bundle_and_tombstones_do_not_wait_for_what_leaves_only_after_them() {
    for (length, expected) in [(10_000, &[false, false, true][..]), (100, &[false])] {
        let mut bench = Bench::new(Bytes::from(vec![7; length]));
        bench.ask(AppRequest::Register { endpoint: "dtn://a/in".into() });
        assert_eq!(bench.urgent, [true], "the record of the start");
        bench.urgent.clear();
        let (destination, options) = ("dtn://a/in".to_owned(), SendOptions::default());
        bench.ask(AppRequest::Send { send: SendId(1), destination, length: length as u64, options });
        assert_eq!(core::mem::take(&mut bench.urgent), expected, "{length} bytes");
        let delivered = bench.told.iter().find_map(|told| match told {
            AppIndication::Delivered { delivery, .. } => Some(*delivery),
            _ => None,
        });
        bench.ask(AppRequest::Taken { delivery: delivered.expect("it is for this node") });
        assert_eq!(bench.urgent, [true], "the tombstone");
    }
}

/// The answers to reads that were requested before a short one came are for other places, and are not sent.
#[test]
fn a_bundle_that_is_read_in_parts_arrives_whole() {
    const LENGTH: usize = 300_000;
    let payload: Vec<u8> = (0..LENGTH).map(|at| (at / 7) as u8).collect();
    for (part_bytes_max, comes_late) in [(10_000, false), (10_000, true), (65_000, true), (65_536, true)] {
        let mut bench = Bench::new(Bytes::from(payload.clone()));
        bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
        let (destination, options) = ("dtn://b/in".to_owned(), SendOptions::default());
        bench.ask(AppRequest::Send { send: SendId(1), destination, length: LENGTH as u64, options });
        (bench.part_bytes_max, bench.withholds, bench.transfer_bytes_max) =
            (part_bytes_max, comes_late, 1 << 20);
        bench.ask(ManagementRequest::OpenLink { link: LINK });
        while !bench.withheld.is_empty() {
            bench.answer();
        }
        let sent = Bundle::from_bytes(&bench.sent.into(), &DecodePolicy::STRICT).expect("it is whole");
        assert!(sent.payload == payload, "{part_bytes_max} bytes, late: {comes_late}");
        assert_eq!(bench.agent.counters().deleted_storage, 0);
    }
}

#[test]
fn reads_for_a_link_are_as_long_as_its_room() {
    for (room, expected) in [(0, 65_536), (100_000, 100_000), (1 << 20, 262_144)] {
        let mut bench = Bench::new(Bytes::from(vec![7; 300_000]));
        let config = Config { node: "dtn://a/".into(), piece_bytes_max: 262_144, ..Config::default() };
        bench.agent = Agent::new(config, Rng::new(1)).expect("a node id");
        bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
        let (destination, options) = ("dtn://b/in".to_owned(), SendOptions::default());
        bench.ask(AppRequest::Send { send: SendId(1), destination, length: 300_000, options });
        (bench.room, bench.withholds, bench.transfer_bytes_max) = (room, true, 1 << 20);
        bench.ask(ManagementRequest::OpenLink { link: LINK });
        let Some(StorageRequest::Read { length, .. }) = bench.withheld.first() else { panic!("it is read") };
        assert_eq!(*length, expected, "{room}");
    }
}

/// A bundle leaves with the CRC that it was made with: one of what the disk returns would hide what it has changed. Once the next
/// node has refused it, this node looks for itself.
#[test]
fn what_a_disk_changes_unnoticed_the_next_node_notices() {
    let payload = [7; 1000];
    for is_changed in [false, true] {
        let mut bench = Bench::new(Bytes::copy_from_slice(&payload));
        bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
        let (destination, options) = ("dtn://b/in".to_owned(), SendOptions::default());
        bench.ask(AppRequest::Send { send: SendId(1), destination, length: 1000, options });
        let records = bench.records.values_mut();
        let stored = records.filter_map(|record| {
            let at = record.windows(1000).position(|bytes| bytes == payload)?;
            Some(&mut record[at + 500])
        });
        let stored: Vec<_> = stored.collect();
        assert_eq!(stored.len(), 1, "the payload is stored once");
        stored.into_iter().for_each(|byte| *byte ^= u8::from(is_changed));
        bench.ask(ManagementRequest::OpenLink { link: LINK });
        let arrives = |bench: &mut Bench| {
            let sent = core::mem::take(&mut bench.sent);
            Bundle::from_bytes(&sent.into(), &DecodePolicy::STRICT).map(|bundle| bundle.payload)
        };
        let expected = match is_changed {
            false => Ok(Bytes::copy_from_slice(&payload)),
            true => Err(DecodeError::Checksum { what: "payload block" }),
        };
        assert_eq!(arrives(&mut bench), expected);
        let reason = TransferFailure::Refused(RefuseReason::Retransmit);
        let (transfer, _) = bench.transfers[0];
        bench.hear(LINK, BundlesIndication::Failed { transfer, reason, acked: 0 });
        bench.settle();
        while bench.agent.poll_timeout().is_some() && bench.sent.is_empty() && bench.agent.holds().0 > 0 {
            bench.wake();
        }
        if is_changed {
            assert_eq!((bench.agent.holds().0, bench.agent.counters().deleted_storage), (0, 1));
        } else {
            assert_eq!(arrives(&mut bench), expected, "it was right, and is sent again");
        }
    }
}

/// The rules for a peer may change the payload block: a bundle that was prepared by those for another one is prepared again.
#[test]
fn a_peer_with_a_new_name_gets_bundles_by_the_rules_for_that_name() {
    let mut bench = Bench::new(Bytes::from_static(&[7; 1000]));
    let (node, emit) = ("dtn://c/".to_owned(), vec![Emit::NoPayloadCrc]);
    bench.agent.configure_peers(vec![PeerRules { node, emit, ..PeerRules::default() }]);
    bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
    let (destination, options) = ("dtn://z/in".to_owned(), SendOptions::default());
    bench.ask(AppRequest::Send { send: SendId(1), destination, length: 1000, options });
    bench.room = 0;
    bench.ask(ManagementRequest::OpenLink { link: LINK });
    assert_eq!((bench.read_bytes, bench.opened), (1000, 0), "it is prepared");
    bench.hear(LINK, BundlesIndication::Peer { peer: Some("dtn://c/".into()) });
    bench.settle();
    bench.hear(LINK, BundlesIndication::Room(1 << 20));
    bench.settle();
    let sent = Bundle::from_bytes(&bench.sent.into(), &DecodePolicy::STRICT).expect("it is whole");
    assert_eq!((sent.head.payload.crc, &sent.payload[..]), (CrcType::None, &[7; 1000][..]));
}

#[test]
fn a_route_changes_its_cost_even_where_no_other_fits() {
    let mut bench = Bench::new(Bytes::new());
    let most = bench.agent.config.limits.routes_max;
    for number in 0..most {
        let pattern = format!("dtn://n{number}/*");
        bench.ask(ManagementRequest::SetRoute { pattern, via: NextHop::Link(LINK), cost: 1 });
    }
    let again =
        ManagementRequest::SetRoute { pattern: "dtn://n0/*".into(), via: NextHop::Link(LINK), cost: 9 };
    bench.ask(again);
    assert_eq!(bench.agent.counters().ignored, 0);
    bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
    assert_eq!(bench.agent.counters().ignored, 1, "one more does not fit");
}

/// Ends a transfer of a thousand bytes with this failure after 600 of its bytes are acknowledged. Returns the
/// lengths of that transfer and of the next.
fn lengths_after(reason: TransferFailure) -> [u64; 2] {
    let mut bench = Bench::new(Bytes::from(vec![7; 1000]));
    bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
    let (destination, options) = ("dtn://b/in".to_owned(), SendOptions::default());
    bench.ask(AppRequest::Send { send: SendId(1), destination, length: 1000, options });
    bench.ask(ManagementRequest::OpenLink { link: LINK });
    let (transfer, length) = bench.transfers[0];
    let failed = BundlesIndication::Failed { transfer, reason, acked: 600 };
    for indication in [BundlesIndication::Acked { transfer, up_to: 600 }, failed] {
        bench.agent.handle_indication(bench.now, Port::Second((LINK, indication)));
        bench.settle();
    }
    for _ in 0..10 {
        if let Some((_, again)) = bench.transfers.get(1) {
            return [length, *again];
        }
        bench.wake();
    }
    panic!("it is not sent again");
}

/// A transfer refused as damaged is discarded by the peer, whatever it has acknowledged: all of it is resent
/// (RFC 9174 5.2.4). When the link breaks, the peer keeps what it has acknowledged.
#[test]
fn what_is_refused_as_damaged_is_sent_again_from_its_first_byte() {
    let [before, again] = lengths_after(TransferFailure::Refused(RefuseReason::Retransmit));
    // The encoded age and hop count may be longer.
    assert!((before..before + 10).contains(&again), "{again} of {before}");
    let [before, rest] = lengths_after(TransferFailure::LinkDown);
    assert!(rest < before - 400, "{rest} of {before}");
}

/// Links without room: the data read for all of them are limited, and a link that gets room is read for up to
/// that room.
#[test]
fn what_is_read_before_there_is_room_has_a_limit_for_all_links() {
    const LENGTH: u64 = 300_000;
    let mut bench = Bench::new(Bytes::new());
    (bench.room, bench.transfer_bytes_max) = (0, u64::MAX);
    let (most, piece) =
        (bench.agent.config.limits.buffer_bytes_max, bench.agent.config.piece_bytes_max as u64);
    let links = 2..42_u32;
    for number in links.clone() {
        let (link, send) = (LinkId(number), SendId(number.into()));
        let pattern = format!("dtn://b{number}/*");
        bench.ask(ManagementRequest::SetRoute { pattern, via: NextHop::Link(link), cost: 1 });
        let (destination, options) = (format!("dtn://b{number}/in"), SendOptions::default());
        bench.ask(AppRequest::Send { send, destination, length: LENGTH, options });
        bench.ask(AppRequest::Piece { send, data: vec![7; LENGTH as usize].into() });
        bench.ask(ManagementRequest::OpenLink { link });
        let standing = u64::from(number - 1);
        assert_eq!(bench.read_bytes, (2 * piece * standing).min(most), "with {standing} links");
    }
    // The last link, for which nothing was read.
    let link = LinkId(links.end - 1);
    while bench.handed.get(&link).is_none_or(|handed| *handed <= LENGTH) {
        let before = bench.handed.get(&link).copied().unwrap_or(0);
        bench.hear(link, BundlesIndication::Room(50_000));
        bench.settle();
        let handed = bench.handed[&link];
        assert!(handed > before, "{handed} bytes have gone down");
        // A piece is read as a whole, and the header is not read.
        assert!(bench.read_bytes <= most + piece + handed, "{} bytes were read", bench.read_bytes);
    }
    assert_eq!(bench.handed.len(), 1);
}

/// A link that is expected connects for a bundle and not before, and again after it was idle or has failed.
#[test]
fn a_link_that_is_expected_opens_when_a_bundle_needs_it() {
    let mut bench = Bench::new(Bytes::new());
    let connected = |bench: &Bench| bench.agent.links.get(LINK).is_some_and(|link| link.is_here());
    let send = |bench: &mut Bench, number: u64| {
        let (send, options) = (SendId(number), SendOptions::default());
        let to = if number == 1 { "dtn://c/in" } else { "dtn://b/in" };
        bench.ask(AppRequest::Send { send, destination: to.to_owned(), length: 10, options });
        bench.ask(AppRequest::Piece { send, data: vec![7; 10].into() });
    };
    bench.ask(ManagementRequest::ExpectLink { link: LINK, node: "dtn://b/".into() });
    assert!(!connected(&bench), "nothing needs it");
    send(&mut bench, 1);
    assert!(!connected(&bench), "a bundle for another node does not");
    send(&mut bench, 2);
    assert!(connected(&bench) && bench.opened == 1);
    let (transfer, _) = bench.transfers[0];
    for said in [
        BundlesIndication::Sent { transfer },
        BundlesIndication::Down { reason: DownReason::Idle, retry: false },
    ] {
        bench.hear(LINK, said);
        bench.settle();
    }
    assert!(!connected(&bench), "it was idle");
    send(&mut bench, 3);
    assert!(connected(&bench) && bench.opened == 2);
    bench.hear(LINK, BundlesIndication::Down { reason: DownReason::PeerClosed, retry: false });
    bench.settle();
    assert!(!connected(&bench), "not at once, though its bundle still waits");
    for _ in 0..10 {
        if !connected(&bench) {
            bench.wake();
        }
    }
    assert!(connected(&bench) && bench.opened == 3);
    bench.ask(ManagementRequest::CloseLink { link: LINK });
    bench.hear(LINK, BundlesIndication::Down { reason: DownReason::Closed, retry: false });
    bench.settle();
    send(&mut bench, 4);
    assert!(!connected(&bench), "the operator has closed it");
}

/// Links to neighbours come and go for as long as the node runs.
#[test]
fn links_that_are_forgotten_leave_their_places_to_others() {
    let mut bench = Bench::new(Bytes::new());
    for number in 1..=5000 {
        let link = LinkId(number);
        let config = LinkConfig { link, ..LinkConfig::default() };
        bench.agent.configure_link(config);
        bench.ask(ManagementRequest::ExpectLink { link, node: "dtn://b/".into() });
        bench.ask(ManagementRequest::ForgetLink { link });
    }
    assert_eq!((bench.agent.links.iter().count(), bench.agent.links.idle().count()), (0, 0));
    assert!(bench.agent.config.links.is_empty());
    // A caller and a new link find places; one that is up goes when it is down.
    for link in [LinkId(LinkId::FIRST_INCOMING), LinkId(6000)] {
        bench.hear(link, up("dtn://c/"));
        bench.settle();
        assert!(bench.agent.links.get(link).is_some_and(|link| link.is_here()), "{link:?}");
        bench.ask(ManagementRequest::ForgetLink { link });
        bench.hear(link, BundlesIndication::Down { reason: DownReason::Closed, retry: false });
        bench.settle();
        assert!(bench.agent.links.get(link).is_none(), "{link:?}");
    }
}

impl Bench {
    /// Lets an application send a bundle of so many bytes.
    fn send(&mut self, number: u64, destination: &str, length: u64) {
        let (send, options) = (SendId(number), SendOptions::default());
        self.ask(AppRequest::Send { send, destination: destination.to_owned(), length, options });
        self.ask(AppRequest::Piece { send, data: vec![7; length as usize].into() });
    }

    /// Passes all deadlines before this time.
    fn run_until(&mut self, end: Instant) {
        while self.agent.poll_timeout().is_some_and(|at| at < end) {
            self.wake();
        }
    }

    /// Ends a transfer on the link: it has failed for this reason, or was acknowledged.
    fn end(&mut self, number: usize, reason: Option<TransferFailure>) {
        let (transfer, _) = self.transfers[number];
        let failed = |reason| BundlesIndication::Failed { transfer, reason, acked: 0 };
        self.hear(LINK, reason.map_or(BundlesIndication::Sent { transfer }, failed));
        self.settle();
    }
}

const NOT_ACCEPTABLE: TransferFailure = TransferFailure::Refused(RefuseReason::NotAcceptable);

/// Nothing more of it is sent, whatever becomes of the parts that are on their way.
#[test]
fn a_refused_bundle_is_deleted_when_its_last_part_has_ended() {
    for ending in [None, Some(TransferFailure::LinkDown), Some(NOT_ACCEPTABLE)] {
        let mut bench = Bench::new(Bytes::new());
        bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
        bench.ask(ManagementRequest::OpenLink { link: LINK });
        bench.send(1, "dtn://b/in", 4000);
        let parts = bench.opened;
        assert!(parts > 2, "{parts} parts");
        bench.end(0, Some(NOT_ACCEPTABLE));
        for part in 1..parts {
            let held = (bench.agent.holds().0, bench.agent.counters().deleted_refused);
            assert_eq!(held, (1, 0), "before part {part} has ended");
            bench.end(part, ending);
        }
        let held = (bench.agent.holds().0, bench.agent.counters().deleted_refused);
        assert_eq!((held, bench.opened), ((0, 1), parts), "{ending:?}");
    }
}

/// Another part of the bundle only finds no room there, before or afterwards.
#[test]
fn a_refused_bundle_that_waits_for_a_retry_is_deleted_then() {
    const NO_RESOURCES: TransferFailure = TransferFailure::Refused(RefuseReason::NoResources);
    for reasons in [[NOT_ACCEPTABLE, NO_RESOURCES], [NO_RESOURCES, NOT_ACCEPTABLE]] {
        let mut bench = Bench::new(Bytes::new());
        bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
        bench.ask(ManagementRequest::OpenLink { link: LINK });
        bench.send(1, "dtn://b/in", 2000);
        assert_eq!(bench.opened, 2);
        for (part, reason) in reasons.into_iter().enumerate() {
            assert_eq!(bench.agent.counters().deleted_refused, 0, "{reasons:?}");
            bench.end(part, Some(reason));
        }
        bench.run_until(Instant::from_secs(60));
        assert_eq!((bench.agent.counters().deleted_refused, bench.opened), (1, 2), "{reasons:?}");
    }
}

/// Not even a part that has been read for the link, which has had no room for it.
#[test]
fn a_part_that_is_prepared_is_not_sent_on_a_link_that_refuses_the_bundle() {
    let mut bench = Bench::new(Bytes::new());
    bench.room = 1600;
    bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
    bench.ask(ManagementRequest::OpenLink { link: LINK });
    bench.send(1, "dtn://b/in", 4000);
    let (parts, link) = (bench.opened, bench.agent.links.get(LINK).expect("it is up"));
    assert!(link.prepared_record().is_some(), "{parts} parts");
    bench.end(0, Some(NOT_ACCEPTABLE));
    for part in 1..parts {
        bench.end(part, Some(NOT_ACCEPTABLE));
    }
    bench.hear(LINK, BundlesIndication::Room(1 << 20));
    bench.settle();
    assert_eq!((bench.opened, bench.agent.counters().deleted_refused), (parts, 1));
}

/// The peer's limit becomes so low that not even the header of a bundle fits, of which parts are on their way.
#[test]
fn a_bundle_that_no_longer_fits_is_deleted_when_its_last_part_has_ended() {
    let mut bench = Bench::new(Bytes::new());
    bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
    bench.ask(ManagementRequest::OpenLink { link: LINK });
    bench.send(1, &format!("dtn://b/{}", "in".repeat(100)), 4000);
    let parts = bench.opened;
    bench.send(2, "dtn://b/in", 2);
    bench.end(parts, Some(TransferFailure::TooLong));
    let opened = bench.opened;
    for part in 0..parts {
        assert_eq!(bench.agent.counters().deleted_refused, 0, "before part {part} has ended");
        bench.end(part, Some(TransferFailure::LinkDown));
    }
    assert_eq!((bench.agent.counters().deleted_refused, bench.opened), (1, opened));
    assert_eq!(bench.agent.holds().0, 1, "the other one is sent in parts");
}

/// The change has not reached the bundle yet when its last part ends.
#[test]
fn a_refused_bundle_waits_for_a_change_of_the_routes_that_is_under_way() {
    const OTHER: LinkId = LinkId(2);
    let mut bench = Bench::new(Bytes::new());
    let route =
        |link| ManagementRequest::SetRoute { pattern: "dtn://b/*".into(), via: NextHop::Link(link), cost: 1 };
    bench.ask(route(LINK));
    bench.ask(ManagementRequest::OpenLink { link: LINK });
    for number in 0..VISITED_AT_ONCE as u64 {
        bench.send(10 + number, "dtn://nowhere/in", 10);
    }
    bench.send(1, "dtn://b/in", 4000);
    let parts = bench.opened;
    bench.end(0, Some(NOT_ACCEPTABLE));
    bench.ask(route(OTHER));
    for part in 1..parts {
        bench.end(part, None);
    }
    assert_eq!(bench.agent.counters().deleted_refused, 0);
    bench.wake();
    assert_eq!((bench.agent.holds().0, bench.opened), (VISITED_AT_ONCE + 1, parts));
}

/// One link has refused a bundle for good, and the other one, which has not, is down when it is tried again.
#[test]
fn a_bundle_waits_for_a_link_that_has_only_had_no_room_for_it() {
    const OTHER: LinkId = LinkId(2);
    let mut bench = Bench::new(Bytes::new());
    let via = NextHop::Node("dtn://b/".into());
    bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via, cost: 1 });
    bench.ask(ManagementRequest::OpenLink { link: LINK });
    bench.hear(OTHER, up("dtn://b/"));
    bench.hear(OTHER, BundlesIndication::Room(1 << 20));
    bench.settle();
    bench.send(1, "dtn://b/in", 10);
    bench.end(0, Some(NOT_ACCEPTABLE));
    assert_eq!(bench.opened, 2, "the other link takes it");
    let reason = TransferFailure::Refused(RefuseReason::NoResources);
    let failed = BundlesIndication::Failed { transfer: bench.transfers[1].0, reason, acked: 0 };
    bench.hear(OTHER, failed);
    bench.hear(OTHER, BundlesIndication::Down { reason: DownReason::PeerClosed, retry: false });
    bench.settle();
    bench.run_until(Instant::from_secs(60));
    // A change that does not concern it changes nothing.
    let via = NextHop::Link(LINK);
    bench.ask(ManagementRequest::SetRoute { pattern: "dtn://elsewhere/*".into(), via, cost: 1 });
    bench.run_until(Instant::from_secs(120));
    assert_eq!(bench.opened, 2);
    assert_eq!((bench.agent.holds().0, bench.agent.counters().deleted_refused), (1, 0));
}

/// The links that have refused it may accept it by then, or are the only ones.
#[test]
fn a_bundle_tries_its_links_again_if_a_change_of_the_routes_leaves_no_other() {
    const OTHER: LinkId = LinkId(2);
    let mut bench = Bench::new(Bytes::new());
    for link in [LINK, OTHER] {
        bench.ask(ManagementRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(link), cost: 1 });
    }
    bench.ask(ManagementRequest::OpenLink { link: LINK });
    bench.send(1, "dtn://b/in", 10);
    bench.end(0, Some(NOT_ACCEPTABLE));
    assert_eq!((bench.opened, bench.agent.holds().0), (1, 1), "it waits for the other link");
    bench.ask(ManagementRequest::RemoveRoute { pattern: "*".into(), via: NextHop::Link(OTHER) });
    assert_eq!((bench.opened, bench.agent.holds().0), (2, 1));
    bench.end(1, Some(NOT_ACCEPTABLE));
    assert_eq!((bench.opened, bench.agent.holds().0), (2, 0));
}

/// A part that expires while it is read leaves a read whose answer is for nobody: it neither becomes data of the parts that make
/// the payload whole again, nor are these never read.
#[test]
fn what_expires_while_it_is_read_keeps_nobody_from_what_comes_after_it() {
    let payload = Bytes::from_iter(0..100);
    let endpoint = |text: &str| text.parse::<Eid>().expect("an endpoint");
    let timestamp = CreationTimestamp { time: DtnTime(0), sequence: 1 };
    let primary = PrimaryBlock::new(endpoint("dtn://a/in"), endpoint("dtn://b/out"), timestamp, 60_000);
    let whole = Bundle::new(Head::new(primary, 0), payload.clone());
    // The part that expires is read, or is the other one; the answer comes before or after the next read.
    for (is_read, comes_late) in [(true, false), (true, true), (false, false), (false, true)] {
        let age_ms = |is_meant| if is_meant { 50_000 } else { 0 };
        let mut bench = Bench::new(Bytes::new());
        bench.ask(AppRequest::Register { endpoint: "dtn://a/in".into() });
        bench.ask(ManagementRequest::OpenLink { link: LINK });
        let delivered = |bench: &mut Bench| match bench.told.pop() {
            Some(AppIndication::Delivered { delivery, .. }) => delivery,
            other => panic!("{other:?}"),
        };
        bench.part_arrives(1, &whole, 0..60, age_ms(is_read));
        bench.part_arrives(2, &whole, 60..100, age_ms(!is_read));
        let delivery = delivered(&mut bench);
        bench.withholds = true;
        bench.ask(AppRequest::Read { delivery, offset: 0, length: 100 });
        while bench.agent.holds().0 > 1 {
            bench.wake();
        }
        assert_eq!(bench.told.pop(), Some(AppIndication::Gone { delivery, taken: false }));
        if !comes_late {
            bench.answer();
        }
        bench.part_arrives(3, &whole, if is_read { 0..60 } else { 60..100 }, 0);
        let gone = delivery;
        let delivery = delivered(&mut bench);
        assert_ne!(delivery, gone, "its number is used");
        bench.ask(AppRequest::Read { delivery, offset: 0, length: 100 });
        if comes_late {
            bench.answer();
        }
        assert_eq!(bench.told, [], "the answer is for nobody");
        while !bench.withheld.is_empty() {
            bench.answer();
        }
        let data = |said: &AppIndication| match said {
            AppIndication::Data { data, .. } => data.to_vec(),
            other => panic!("{other:?}"),
        };
        assert_eq!(bench.told.iter().flat_map(data).collect::<Vec<u8>>(), payload);
        bench.ask(AppRequest::Taken { delivery });
        assert_eq!(bench.agent.counters().ignored, 0);
        assert_eq!(bench.told.pop(), Some(AppIndication::Gone { delivery, taken: true }));
    }
}

/// A status report of which one part has been read when the other expires.
#[test]
fn a_report_is_read_from_its_beginning_after_a_part_of_it_went() {
    let endpoint = |text: &str| text.parse::<Eid>().expect("an endpoint");
    let timestamp = CreationTimestamp { time: DtnTime(0), sequence: 1 };
    let report = StatusReport {
        received: StatusItem::Asserted,
        forwarded: StatusItem::NotAsserted,
        delivered: StatusItem::NotAsserted,
        deleted: StatusItem::NotAsserted,
        further: Vec::new(),
        reason: ReasonCode::NoAdditionalInformation,
        source: endpoint("dtn://a/out"),
        timestamp,
        fragment: None,
    };
    let payload = AdminRecord::StatusReport(report).to_bytes();
    let mut primary = PrimaryBlock::new(endpoint("dtn://a/"), endpoint("dtn://b/"), timestamp, 60_000);
    primary.flags |= BundleFlags::ADMINISTRATIVE_RECORD;
    let whole = Bundle::new(Head::new(primary, 0), payload.clone());
    let mut bench = Bench::new(Bytes::new());
    bench.ask(ManagementRequest::OpenLink { link: LINK });
    bench.withholds = true;
    let (half, end) = (payload.len() / 2, payload.len());
    for (number, from, to, age_ms) in [(1, 0, half, 0), (2, half, end, 50_000), (3, half, end, 0)] {
        bench.part_arrives(number, &whole, from..to, age_ms);
        if number == 2 {
            // The first half is read.
            bench.answer();
            while bench.agent.holds().0 > 1 {
                bench.wake();
            }
        }
    }
    while !bench.withheld.is_empty() {
        bench.answer();
    }
    let [AppIndication::Report { name, status, .. }] = &bench.told[..] else { panic!("{:?}", bench.told) };
    assert_eq!((&name.source[..], *status), ("dtn://a/out", ReportedStatus::Received));
    assert_eq!(bench.agent.holds().0, 0);
}

fn up(peer: &str) -> BundlesIndication {
    BundlesIndication::Up { peer: Some(peer.to_owned()), interleave: false, transfer_bytes_max: 1500 }
}
