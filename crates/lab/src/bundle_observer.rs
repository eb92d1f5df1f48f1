//! Observer of a bundle link, between an agent and its convergence layers.
//!
//! [`BundleObserver`] is an engine around the convergence layers that passes everything through and records it. It
//! knows the header of every bundle, so it can determine for each byte of a file whether it was acknowledged and
//! whether it was sent again later. This supports the statement that an outage never costs a byte that was already
//! acknowledged.
//!
//! After a break the sender continues from the last byte that it knows to be acknowledged; the receiver may have kept
//! more if an acknowledgement was lost. It then holds two overlapping fragments, and as a relay it forwards both. Those
//! bytes are counted separately: they are the cost of the break on the previous hop, and no acknowledged transfer is
//! repeated.

use crate::arrivals::SharedArrivals;
use bytes::{Bytes, BytesMut};
use longwire_proto::bp::{BundleId, DecodePolicy, decode_head};
use longwire_proto::engine::{Engine, forward};
use longwire_proto::service::{
    Bundles, BundlesIndication, BundlesRequest, DownReason, LinkId, Many, TransferId,
};
use longwire_proto::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Limit of the header length, bytes; a longer incomplete header is not tracked.
const HEAD_BYTES_MAX: usize = 65_536;

/// Traffic of one link away from the node. As bytes it has its sums, not the times.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ObservedTraffic {
    /// Time at which the first byte of a bundle was passed down.
    #[serde(skip)]
    pub first_piece: Option<Instant>,
    /// Time of the latest byte passed down.
    #[serde(skip)]
    pub last_piece: Option<Instant>,
    /// Time at which the latest byte arrived at the node from another link.
    #[serde(skip)]
    pub last_came: Option<Instant>,
    /// Transfers started.
    pub transfers: u64,
    /// Transfers ended before completion.
    pub broken: u64,
    /// Payload bytes passed down, including retransmissions.
    pub handed_bytes: u64,
    /// Payload bytes that the peer had acknowledged before; must be zero.
    pub acknowledged_again_bytes: u64,
    /// Payload bytes that the peer already had from another fragment of the same bundle (overlapping fragments).
    pub overlap_bytes: u64,
    /// Payload bytes acknowledged by the peer over time, summed over all bundles.
    #[serde(skip)]
    pub acknowledged: Vec<(Instant, u64)>,
    /// Changes of the link: `None` for up, the reason for down.
    #[serde(skip)]
    pub changes: Vec<(Instant, Option<DownReason>)>,
}

impl ObservedTraffic {
    /// Payload bytes that the peer had acknowledged at `now`.
    pub fn acknowledged_at(&self, now: Instant) -> u64 {
        let later = self.acknowledged.partition_point(|(at, _)| *at <= now);
        if later == 0 { 0 } else { self.acknowledged[later - 1].1 }
    }
}

/// Observations of a run, one [`ObservedTraffic`] per hop, shared between the nodes and the reader.
pub type SharedObservations = Arc<Mutex<Vec<ObservedTraffic>>>;

/// Creates an empty record for this number of hops.
pub fn record(hops: usize) -> SharedObservations {
    Arc::new(Mutex::new(vec![ObservedTraffic::default(); hops]))
}

/// Observer of one node.
#[derive(Debug)]
pub struct BundleObserver<L> {
    lower: L,
    record: SharedObservations,
    /// Observed link and its hop number.
    watched: Option<(LinkId, usize)>,
    transfers: BTreeMap<TransferId, ObservedTransfer>,
    /// Payload that the peer has of each bundle.
    bundles: BTreeMap<BundleId, PayloadRanges>,
    /// The same for each range to be carried. After a break the remainder ends where the range ended.
    stretches: BTreeMap<(BundleId, u64), PayloadRanges>,
    /// Record of the arrivals; at the destination.
    arrivals: Option<SharedArrivals>,
    /// Transfers from other links, at the destination.
    arriving: BTreeMap<(LinkId, TransferId), ObservedTransfer>,
    /// Payload of each bundle at the destination.
    arrived: BTreeMap<BundleId, PayloadRanges>,
}

#[derive(Debug, Default)]
struct ObservedTransfer {
    start: BytesMut,
    head: Option<PayloadPlace>,
    handed: u64,
}

/// Position of the payload of a transfer: within the transfer, and within the complete payload of the bundle.
#[derive(Clone, Debug)]
struct PayloadPlace {
    bundle: BundleId,
    head_length: u64,
    offset: u64,
    length: u64,
}

impl PayloadPlace {
    /// Returns the bundle and the end of this transfer within the complete payload.
    fn stretch(&self) -> (BundleId, u64) {
        (self.bundle.clone(), self.offset + self.length)
    }

    /// Returns the range of the complete payload that bytes `from..to` of the transfer contain.
    fn payload(&self, from: u64, to: u64) -> (u64, u64) {
        let within = |at: u64| self.offset + at.saturating_sub(self.head_length).min(self.length);
        (within(from), within(to))
    }
}

impl<L> BundleObserver<L> {
    /// Wraps `lower` and observes outgoing traffic on `watched` for the hop with that number (from zero).
    pub fn new(lower: L, watched: Option<(LinkId, usize)>, record: SharedObservations) -> Self {
        BundleObserver {
            lower,
            record,
            watched,
            transfers: BTreeMap::new(),
            bundles: BTreeMap::new(),
            stretches: BTreeMap::new(),
            arrivals: None,
            arriving: BTreeMap::new(),
            arrived: BTreeMap::new(),
        }
    }

    /// Records the arrivals at this node, too.
    pub fn recording(self, arrivals: Option<SharedArrivals>) -> Self {
        BundleObserver { arrivals, ..self }
    }

    fn change(&self, act: impl FnOnce(&mut ObservedTraffic)) {
        if let Some((_, hop)) = self.watched {
            act(&mut self.record.lock().expect("no observer panics")[hop]);
        }
    }

    fn see_request(&mut self, now: Instant, request: &BundlesRequest) {
        match request {
            BundlesRequest::Open { transfer, .. } => {
                self.transfers.insert(*transfer, ObservedTransfer::default());
                self.change(|seen| seen.transfers += 1);
            }
            BundlesRequest::Piece { transfer, data, .. } => self.see_piece(now, *transfer, data),
            _ => {}
        }
    }

    fn see_piece(&mut self, now: Instant, id: TransferId, data: &Bytes) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let from = transfer.add(data);
        let (mut again, mut overlap, mut payload) = (0, 0, 0);
        if let Some(placed) = &transfer.head {
            let (from, to) = placed.payload(from, transfer.handed);
            payload = to - from;
            again = self.stretches.get(&placed.stretch()).map_or(0, |safe| safe.overlap(from, to));
            overlap = self.bundles.get(&placed.bundle).map_or(0, |safe| safe.overlap(from, to)) - again;
        }
        self.change(|seen| {
            seen.first_piece.get_or_insert(now);
            seen.last_piece = Some(now);
            seen.handed_bytes += payload;
            seen.acknowledged_again_bytes += again;
            seen.overlap_bytes += overlap;
        });
    }

    fn see_indication(&mut self, now: Instant, indication: &BundlesIndication) {
        match indication {
            BundlesIndication::Acked { transfer, up_to } => self.see_acknowledged(now, *transfer, *up_to),
            BundlesIndication::Sent { transfer } => {
                self.see_acknowledged(now, *transfer, u64::MAX);
                // A later transfer that ends there is another copy, not the remainder of this one.
                if let Some(placed) = self.transfers.remove(transfer).and_then(|transfer| transfer.head) {
                    self.stretches.remove(&placed.stretch());
                }
            }
            BundlesIndication::Failed { transfer, acked, .. } => {
                self.see_acknowledged(now, *transfer, *acked);
                self.transfers.remove(transfer);
                self.change(|seen| seen.broken += 1);
            }
            BundlesIndication::Up { .. } => self.change(|seen| seen.changes.push((now, None))),
            BundlesIndication::Down { reason, .. } => {
                let reason = *reason;
                self.change(|seen| seen.changes.push((now, Some(reason))));
            }
            _ => {}
        }
    }

    fn see_acknowledged(&mut self, now: Instant, id: TransferId, up_to: u64) {
        let Some(placed) = self.transfers.get(&id).and_then(|transfer| transfer.head.clone()) else { return };
        let (from, to) = placed.payload(0, up_to);
        self.stretches.entry(placed.stretch()).or_default().add(from, to);
        self.bundles.entry(placed.bundle).or_default().add(from, to);
        let total = self.bundles.values().map(PayloadRanges::total).sum();
        self.change(|seen| {
            if seen.acknowledged.last().is_none_or(|(_, before)| *before != total) {
                seen.acknowledged.push((now, total));
            }
        });
    }

    fn see_arrival(&mut self, now: Instant, link: LinkId, indication: &BundlesIndication) {
        let Some(arrivals) = &self.arrivals else { return };
        match indication {
            BundlesIndication::Piece { transfer, data, last } => {
                let arriving = self.arriving.entry((link, *transfer)).or_default();
                let from = arriving.add(data);
                if let Some(placed) = &arriving.head {
                    let (from, to) = placed.payload(from, arriving.handed);
                    self.arrived.entry(placed.bundle.clone()).or_default().add(from, to);
                }
                if *last {
                    self.arriving.remove(&(link, *transfer));
                }
                let total = self.arrived.values().map(PayloadRanges::total).sum();
                arrivals.lock().expect("nobody panics").add(now, total);
            }
            BundlesIndication::Lost { transfer, .. } => drop(self.arriving.remove(&(link, *transfer))),
            _ => {}
        }
    }

    fn is_watched(&self, link: LinkId) -> bool {
        self.watched.is_some_and(|(watched, _)| watched == link)
    }
}

impl ObservedTransfer {
    /// Adds bytes, and returns the number of those before.
    fn add(&mut self, data: &Bytes) -> u64 {
        let from = self.handed;
        self.handed += data.len() as u64;
        if self.head.is_none() && self.start.len() < HEAD_BYTES_MAX {
            self.start.extend_from_slice(data);
            self.head = place(&self.start);
        }
        from
    }
}

/// Returns the position of the payload of a bundle that starts with these bytes, once its header is complete.
fn place(start: &BytesMut) -> Option<PayloadPlace> {
    let (head, length) = decode_head(&start.clone().freeze(), &DecodePolicy::default()).ok()?;
    let mut bundle = head.id();
    bundle.fragment = None;
    let offset = head.primary.fragment.map_or(0, |fragment| fragment.offset);
    Some(PayloadPlace { bundle, head_length: length as u64, offset, length: head.payload.length })
}

impl<L: Engine<Above = Many<LinkId, Bundles>>> Engine for BundleObserver<L> {
    type Above = Many<LinkId, Bundles>;
    type Below = L::Below;

    forward!(lower: handle_indication handle_timeout poll_request poll_timeout finished observe);

    fn handle_request(&mut self, now: Instant, (link, request): (LinkId, BundlesRequest)) {
        if self.is_watched(link) {
            self.see_request(now, &request);
        }
        self.lower.handle_request(now, (link, request));
    }

    fn poll_indication(&mut self, now: Instant) -> Option<(LinkId, BundlesIndication)> {
        let (link, indication) = self.lower.poll_indication(now)?;
        if self.is_watched(link) {
            self.see_indication(now, &indication);
        } else if matches!(indication, BundlesIndication::Piece { .. }) {
            self.change(|seen| seen.last_came = Some(now));
        }
        self.see_arrival(now, link, &indication);
        Some((link, indication))
    }
}

/// Ranges of a payload, ascending and disjoint.
#[derive(Clone, Debug, Default)]
struct PayloadRanges(Vec<(u64, u64)>);

impl PayloadRanges {
    fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let (mut from, mut to) = (from, to);
        self.0.retain(|&(begin, end)| {
            let apart = end < from || to < begin;
            if !apart {
                (from, to) = (from.min(begin), to.max(end));
            }
            apart
        });
        let place = self.0.partition_point(|&(begin, _)| begin < from);
        self.0.insert(place, (from, to));
    }

    fn overlap(&self, from: u64, to: u64) -> u64 {
        self.0.iter().map(|&(begin, end)| end.min(to).saturating_sub(begin.max(from))).sum()
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(begin, end)| end - begin).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::bp::{Bundle, CreationTimestamp, DtnTime, Eid, Head, PrimaryBlock};
    use longwire_proto::engine::no_timers;
    use longwire_proto::service::{Priority, TransferFailure};
    use std::collections::VecDeque;

    const LINK: LinkId = LinkId(1);

    /// Convergence layers that emit scripted indications only.
    #[derive(Default)]
    struct ScriptedLayer(VecDeque<(LinkId, BundlesIndication)>);

    impl Engine for ScriptedLayer {
        type Above = Many<LinkId, Bundles>;
        type Below = Many<LinkId, Bundles>;

        no_timers!();
        fn handle_request(&mut self, _: Instant, _: (LinkId, BundlesRequest)) {}
        fn handle_indication(&mut self, _: Instant, indication: (LinkId, BundlesIndication)) {
            self.0.push_back(indication);
        }
        fn poll_indication(&mut self, _now: Instant) -> Option<(LinkId, BundlesIndication)> {
            self.0.pop_front()
        }
        fn poll_request(&mut self, _: Instant) -> Option<(LinkId, BundlesRequest)> {
            None
        }
    }

    fn head() -> Head {
        let eid = |text: &str| text.parse::<Eid>().expect("an endpoint");
        let timestamp = CreationTimestamp { time: DtnTime(1), sequence: 0 };
        let primary = PrimaryBlock::new(eid("dtn://rx/in"), eid("dtn://tx/"), timestamp, 1000);
        Head::new(primary, 1000)
    }

    struct ObserverTest {
        observer: BundleObserver<ScriptedLayer>,
        record: SharedObservations,
    }

    impl ObserverTest {
        fn new() -> ObserverTest {
            let record = record(1);
            ObserverTest {
                observer: BundleObserver::new(ScriptedLayer::default(), Some((LINK, 0)), record.clone()),
                record,
            }
        }

        fn down(&mut self, request: BundlesRequest) {
            self.observer.handle_request(Instant::ZERO, (LINK, request));
        }

        /// Starts a transfer and passes down `upto` bytes of it in two pieces.
        fn hand(&mut self, transfer: TransferId, bytes: &Bytes, upto: usize) {
            let length = bytes.len() as u64;
            self.down(BundlesRequest::Open { transfer, priority: Priority::Normal, length });
            for data in [bytes.slice(..10), bytes.slice(10..upto)] {
                self.down(BundlesRequest::Piece { transfer, data, last: upto == bytes.len() });
            }
        }

        fn up(&mut self, indication: BundlesIndication) {
            self.observer.handle_indication(Instant::from_secs(1), (LINK, indication));
            while self.observer.poll_indication(Instant::ZERO).is_some() {}
        }

        fn seen(&self) -> ObservedTraffic {
            self.record.lock().expect("nobody panicked")[0].clone()
        }
    }

    /// Returns the bytes of a bundle and the length of its header.
    fn bundle(head: Head) -> (Bytes, u64) {
        let length = head.to_bytes().len() as u64;
        let payload = vec![7; head.payload.length as usize];
        (Bundle::new(head, payload.into()).to_bytes(), length)
    }

    /// The first transfer breaks when 400 bytes of the payload are acknowledged; then `second` is sent completely.
    fn after_a_break(second: Head) -> ObservedTraffic {
        let mut scene = ObserverTest::new();
        let (bytes, head_length) = bundle(head());
        let (first, then) = (TransferId(1), TransferId(2));
        scene.hand(first, &bytes, 700);
        let acked = head_length + 400;
        scene.up(BundlesIndication::Acked { transfer: first, up_to: acked });
        scene.up(BundlesIndication::Failed { transfer: first, reason: TransferFailure::LinkDown, acked });
        assert_eq!(scene.seen().acknowledged_at(Instant::from_secs(1)), 400);
        let (bytes, _) = bundle(second);
        scene.hand(then, &bytes, bytes.len());
        scene.up(BundlesIndication::Sent { transfer: then });
        assert_eq!(scene.seen().acknowledged_at(Instant::from_secs(1)), 1000);
        scene.seen()
    }

    #[test]
    fn sending_the_rest_as_a_fragment_repeats_nothing_that_was_acknowledged() {
        let seen = after_a_break(head().fragment(400, 600));
        assert_eq!((seen.acknowledged_again_bytes, seen.transfers, seen.broken), (0, 2, 1));
        assert!(seen.handed_bytes > 1000, "what was on its way is sent again");
    }

    #[test]
    fn sending_all_of_it_again_does_not_go_unseen() {
        assert_eq!(after_a_break(head()).acknowledged_again_bytes, 400);
    }

    #[test]
    fn fragments_that_overlap_are_counted_apart() {
        let mut scene = ObserverTest::new();
        for (number, head) in [(1, head().fragment(0, 400)), (2, head().fragment(300, 700))] {
            let (bytes, _) = bundle(head);
            scene.hand(TransferId(number), &bytes, bytes.len());
            scene.up(BundlesIndication::Sent { transfer: TransferId(number) });
        }
        assert_eq!((scene.seen().acknowledged_again_bytes, scene.seen().overlap_bytes), (0, 100));
    }

    #[test]
    fn ranges_grow_together() {
        let mut ranges = PayloadRanges::default();
        for (from, to) in [(5, 7), (0, 2), (2, 5), (10, 12), (3, 3)] {
            ranges.add(from, to);
        }
        assert_eq!(ranges.0, [(0, 7), (10, 12)]);
        assert_eq!((ranges.total(), ranges.overlap(6, 11)), (9, 2));
    }
}
