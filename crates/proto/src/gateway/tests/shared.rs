//! Two gateways over the flows of real endpoints, which bundles have in common with them.

use crate::aerotp::{BUNDLES_PORT, Config as EndpointConfig, Endpoint, Link};
use crate::engine::{Engine, drain};
use crate::gateway::{Config, Shared};
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesRequest, Connections, DatagramsIndication, DatagramsRequest, PeerId, Port, Precedence,
    ProgramId, ProgramKind, ProgramsIndication, ProgramsRequest, TransportService,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;
use std::collections::VecDeque;

/// One-way delay of the wire.
const DELAY: Duration = Duration::from_millis(20);

/// Two nodes, each of them with bundles and a gateway over an endpoint, and a wire without losses between them.
struct Wire<U: Engine<Above = Bundles, Below = Connections>> {
    now: Instant,
    nodes: [Shared<U, Checked<Endpoint>>; 2],
    /// Datagrams by their receiver, in the order of arrival.
    under_way: VecDeque<(Instant, usize, Bytes)>,
    told: [Vec<ProgramsIndication>; 2],
}

fn wire() -> Wire<impl Engine<Above = Bundles, Below = Connections>> {
    let nodes = [1, 2].map(|seed| {
        let (bundles, endpoint) = Link::new(EndpointConfig::default(), Rng::new(seed)).into_parts();
        let lower = Checked::new("aerotp", endpoint);
        Shared::new(bundles, BUNDLES_PORT, Config::default(), lower, Rng::new(seed))
    });
    let (under_way, told) = (VecDeque::new(), [Vec::new(), Vec::new()]);
    let mut wire = Wire { now: Instant::ZERO, nodes, under_way, told };
    for node in 0..2 {
        wire.nodes[node].handle_request(wire.now, Port::First(BundlesRequest::Connect));
        wire.asks(node, ProgramsRequest::Listen);
    }
    wire
}

impl<U: Engine<Above = Bundles, Below = Connections>> Wire<U> {
    fn asks(&mut self, node: usize, request: ProgramsRequest) {
        self.nodes[node].handle_request(self.now, Port::Second(request));
        self.drain(node);
    }

    fn drain(&mut self, node: usize) {
        loop {
            let (mut ups, mut downs) = (Vec::new(), Vec::new());
            drain(&mut self.nodes[node], self.now, |up| ups.push(up), |down| downs.push(down));
            for up in ups {
                if let Port::Second(indication) = up {
                    self.told[node].push(indication);
                }
            }
            if downs.is_empty() {
                return;
            }
            downs.into_iter().for_each(|down| self.carry(node, down));
        }
    }

    fn carry(&mut self, node: usize, request: DatagramsRequest) {
        let engine = &mut self.nodes[node];
        match request {
            DatagramsRequest::Join { .. } => {
                let peer = Some(PeerId::CONFIGURED);
                let joined = DatagramsIndication::Joined { bytes_max: 1_472, peer, group: None };
                engine.handle_indication(self.now, joined);
                engine.handle_indication(self.now, DatagramsIndication::Room(64));
            }
            DatagramsRequest::Datagram { bytes, token, .. } => {
                self.under_way.push_back((self.now + DELAY, 1 - node, bytes));
                if let Some(token) = token {
                    engine.handle_indication(self.now, DatagramsIndication::Transmitted(token));
                }
                engine.handle_indication(self.now, DatagramsIndication::Room(64));
            }
            DatagramsRequest::Leave | DatagramsRequest::Release(_) => {}
        }
    }

    fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        let next = |wire: &Self| {
            let arrival = wire.under_way.front().map(|(at, ..)| *at);
            wire.nodes.iter().filter_map(|node| node.poll_timeout()).chain(arrival).min()
        };
        while let Some(at) = next(self).filter(|at| *at <= end) {
            self.now = at.max(self.now);
            while let Some((_, node, bytes)) = self.under_way.pop_front_if(|(at, ..)| *at <= self.now) {
                let from = PeerId::CONFIGURED;
                let datagram = DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
                self.nodes[node].handle_indication(self.now, datagram);
                self.drain(node);
            }
            for node in 0..2 {
                if self.nodes[node].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.nodes[node].handle_timeout(self.now);
                    self.drain(node);
                }
            }
        }
        self.now = end;
    }

    /// Returns what the programs of a node were told since the last call.
    fn told(&mut self, node: usize) -> Vec<ProgramsIndication> {
        core::mem::take(&mut self.told[node])
    }
}

/// The endpoints take a flow in which nothing arrives for `silence-limit` for lost: the gateways keep it alive.
#[test]
fn a_quiet_connection_outlives_the_silence_limit_of_the_endpoints() {
    let silence_limit = EndpointConfig::default().silence_limit;
    let (precedence, to_port) = (Precedence::Routine, 22);
    for (kind, service) in [
        (ProgramKind::Stream, TransportService::Reliable),
        (ProgramKind::Stream, TransportService::Adaptive),
        (ProgramKind::Stream, TransportService::QuasiReliable),
        (ProgramKind::Datagrams, TransportService::UnreliableConnection),
    ] {
        let mut wire = wire();
        let here = ProgramId(1);
        wire.asks(0, ProgramsRequest::Arrive { program: here, kind, service, precedence, to_port });
        wire.asks(0, ProgramsRequest::Data { program: here, bytes: Bytes::from_static(b"one") });
        wire.run(Duration::from_secs(1));
        let there = wire.told(1)[0].program();
        wire.asks(1, ProgramsRequest::Opened { program: there });
        wire.run(Duration::from_secs(1));
        wire.told(0);
        assert_eq!(wire.told(1).len(), 1, "{service:?}: the first data");
        wire.run(silence_limit * 5);
        assert_eq!((wire.told(0), wire.told(1)), (vec![], vec![]), "{service:?}");
        let bytes = Bytes::from_static(b"two");
        wire.asks(0, ProgramsRequest::Data { program: here, bytes: bytes.clone() });
        wire.run(Duration::from_secs(1));
        let data = ProgramsIndication::Data { program: there, bytes, damaged: false };
        assert_eq!(wire.told(1), [data], "{service:?}");
    }
}
