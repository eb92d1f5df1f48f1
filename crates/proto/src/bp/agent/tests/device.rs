//! A disk that cannot read for a while, on a link that takes small bundles only.

use super::super::{Agent, Config};
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{
    AppIndication, AppRequest, BundlesIndication, BundlesRequest, LinkId, NextHop, Port, SendId, SendOptions,
    StorageFailure, StorageIndication, StorageRequest,
};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::BTreeMap;

const LINK: LinkId = LinkId(1);
/// More requests at one moment than any honest dialogue here has.
const REQUESTS_MAX: usize = 1000;

/// An agent, a disk that answers at once, and a neighbour that never acknowledges.
struct Bench {
    agent: Agent,
    now: Instant,
    records: BTreeMap<crate::service::RecordId, Vec<u8>>,
    /// So many reads succeed; those after them fail.
    good_reads: usize,
    failed_reads: usize,
    opened: usize,
    payload: Bytes,
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
            opened: 0,
            payload,
        }
    }

    fn ask(&mut self, request: AppRequest) {
        self.agent.handle_request(self.now, request);
        self.settle();
    }

    /// Lets time pass to the agent's next deadline.
    fn wake(&mut self) {
        self.now = self.agent.poll_timeout().expect("something is due");
        self.agent.handle_timeout(self.now);
        self.settle();
    }

    fn settle(&mut self) {
        for _ in 0..REQUESTS_MAX {
            while let Some(up) = self.agent.poll_indication() {
                if let AppIndication::Room(room) = up
                    && room > 0
                    && !self.payload.is_empty()
                {
                    let data = core::mem::take(&mut self.payload);
                    self.agent.handle_request(self.now, AppRequest::Piece { send: SendId(1), data });
                }
            }
            match self.agent.poll_request(self.now) {
                None => return,
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
            StorageRequest::Append { record, data } => {
                let bytes = self.records.entry(record).or_default();
                bytes.extend_from_slice(&data);
                StorageIndication::Stored { record, up_to: bytes.len() as u64 }
            }
            StorageRequest::Remove { record } => StorageIndication::Removed { record },
            StorageRequest::Read { record, .. } if self.good_reads == 0 => {
                self.failed_reads += 1;
                StorageIndication::Failed { record, failure: StorageFailure::Device }
            }
            StorageRequest::Read { record, offset, length } => {
                self.good_reads -= 1;
                let (from, bytes) = (offset as usize, &self.records[&record]);
                let to = bytes.len().min(from + length as usize);
                StorageIndication::Data { record, offset, data: Bytes::copy_from_slice(&bytes[from..to]) }
            }
        }
    }

    fn link(&mut self, link: LinkId, request: &BundlesRequest) {
        self.opened += usize::from(matches!(request, BundlesRequest::Open { .. }));
        if matches!(request, BundlesRequest::Connect) {
            let peer = Some("dtn://b/".to_owned());
            let up = BundlesIndication::Up { peer, interleave: false, transfer_bytes_max: 1500 };
            for indication in [up, BundlesIndication::Room(1 << 20)] {
                self.agent.handle_indication(self.now, Port::Second((link, indication)));
            }
        }
    }
}

#[test]
fn what_cannot_be_read_waits_though_another_part_of_it_is_on_its_way() {
    let mut bench = Bench::new(Bytes::from(vec![7; 4000]));
    bench.ask(AppRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
    let (destination, options) = ("dtn://b/in".to_owned(), SendOptions::default());
    bench.ask(AppRequest::Send { send: SendId(1), destination, length: 4000, options });
    bench.good_reads = 1;
    bench.ask(AppRequest::OpenLink { link: LINK });
    assert_eq!((bench.opened, bench.failed_reads), (1, 1), "the second part waits");
    bench.wake();
    assert_eq!((bench.opened, bench.failed_reads), (1, 2), "and again");
    bench.good_reads = usize::MAX;
    bench.wake();
    assert!(bench.opened >= 3, "all parts go once the disk can read: {}", bench.opened);
}

#[test]
fn a_route_changes_its_cost_even_where_no_other_fits() {
    let mut bench = Bench::new(Bytes::new());
    let most = bench.agent.config.limits.routes_max;
    for number in 0..most {
        let pattern = format!("dtn://n{number}/*");
        bench.ask(AppRequest::SetRoute { pattern, via: NextHop::Link(LINK), cost: 1 });
    }
    let again = AppRequest::SetRoute { pattern: "dtn://n0/*".into(), via: NextHop::Link(LINK), cost: 9 };
    bench.ask(again);
    assert_eq!(bench.agent.counters().ignored, 0);
    bench.ask(AppRequest::SetRoute { pattern: "*".into(), via: NextHop::Link(LINK), cost: 1 });
    assert_eq!(bench.agent.counters().ignored, 1, "one more does not fit");
}
