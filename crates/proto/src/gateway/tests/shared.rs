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
use std::collections::{BTreeMap, VecDeque};

/// One-way delay of the wire.
const DELAY: Duration = Duration::from_millis(20);

/// Two nodes, each of them with bundles and a gateway over an endpoint, and a wire between them.
struct Wire<U: Engine<Above = Bundles, Below = Connections>> {
    now: Instant,
    nodes: [Shared<U, Checked<Endpoint>>; 2],
    /// Datagrams by their receiver, in the order of arrival, and whether they have bit errors.
    under_way: VecDeque<(Instant, usize, Bytes, bool)>,
    rng: Rng,
    /// Probability that a datagram is lost, and that a bit is flipped.
    loss: f64,
    bit_error_rate: f64,
    told: [Vec<ProgramsIndication>; 2],
}

fn wire(seed: u64) -> Wire<impl Engine<Above = Bundles, Below = Connections>> {
    let rng = Rng::new(seed);
    let nodes = [1, 2].map(|number| {
        let rng = rng.fork(&format!("node {number}"));
        let (bundles, endpoint) = Link::new(EndpointConfig::default(), rng.clone()).into_parts();
        let lower = Checked::new("aerotp", endpoint);
        Shared::new(bundles, BUNDLES_PORT, Config::default(), lower, rng)
    });
    let (under_way, told) = (VecDeque::new(), [Vec::new(), Vec::new()]);
    let (now, rng) = (Instant::ZERO, rng.fork("wire"));
    let mut wire = Wire { now, nodes, under_way, rng, loss: 0.0, bit_error_rate: 0.0, told };
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
                if !self.rng.chance(self.loss) {
                    let (bytes, damaged) = damage(&bytes, self.bit_error_rate, &mut self.rng);
                    self.under_way.push_back((self.now + DELAY, 1 - node, bytes, damaged));
                }
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
            while let Some((_, node, bytes, damaged)) =
                self.under_way.pop_front_if(|(at, ..)| *at <= self.now)
            {
                let from = PeerId::CONFIGURED;
                let datagram = DatagramsIndication::Datagram { from, to_group: false, bytes, damaged };
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

/// Flips bits; returns true if there is one.
fn damage(bytes: &Bytes, bit_error_rate: f64, rng: &mut Rng) -> (Bytes, bool) {
    let mut out = bytes.to_vec();
    for octet in &mut out {
        for bit in 0..8 {
            *octet ^= u8::from(rng.chance(bit_error_rate)) << bit;
        }
    }
    let damaged = out[..] != bytes[..];
    (out.into(), damaged)
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
        let mut wire = wire(1);
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

/// Conversation of a program at each end, over one service.
struct Talk {
    kind: ProgramKind,
    service: TransportService,
    sent: Vec<Bytes>,
    got: Vec<Bytes>,
    is_aborted: bool,
}

/// Whatever the wire does, a stream is a beginning of what was sent, and whole where the service acknowledges; a datagram is one that was
/// sent. Once the faults stop, everything moves again.
#[test]
fn over_a_hostile_wire_streams_have_no_holes_and_datagrams_are_whole() {
    use ProgramKind::{Datagrams, Stream};
    use TransportService::{
        Adaptive, Nack, NackMack, QuasiReliable, Reliable, UnreliableConnection, UnreliableDatagram,
    };
    let services = [
        (Stream, Reliable),
        (Stream, Adaptive),
        (Stream, NackMack),
        (Stream, Nack),
        (Stream, QuasiReliable),
        (Datagrams, QuasiReliable),
        (Datagrams, UnreliableConnection),
        (Datagrams, UnreliableDatagram),
    ];
    let precedence = Precedence::Routine;
    for seed in 0..5 {
        let mut wire = wire(seed);
        let mut rng = Rng::new(seed).fork("programs");
        let talk = |(kind, service)| Talk { kind, service, sent: vec![], got: vec![], is_aborted: false };
        let mut talks: Vec<Talk> = services.into_iter().map(talk).collect();
        let mut names: BTreeMap<ProgramId, usize> = BTreeMap::new();
        (wire.loss, wire.bit_error_rate) = (0.05, 1e-5);
        for (number, talk) in talks.iter().enumerate() {
            let (program, to_port) = (ProgramId(number as u64), 100 + number as u16);
            let (kind, service) = (talk.kind, talk.service);
            wire.asks(0, ProgramsRequest::Arrive { program, kind, service, precedence, to_port });
        }
        for turn in 0..60 {
            if turn == 50 {
                (wire.loss, wire.bit_error_rate) = (0.0, 0.0);
                wire.run(Duration::from_secs(60));
            }
            for (number, talk) in talks.iter_mut().enumerate().filter(|(_, talk)| !talk.is_aborted) {
                let bytes_max = if talk.service.keeps_messages() { 1200 } else { 5000 };
                let mut bytes = vec![turn; 1 + rng.below(bytes_max) as usize];
                rng.fill(&mut bytes[1..]);
                let bytes = Bytes::from(bytes);
                talk.sent.push(bytes.clone());
                wire.asks(0, ProgramsRequest::Data { program: ProgramId(number as u64), bytes });
            }
            wire.run(Duration::from_millis(500));
            for said in wire.told(1) {
                let program = said.program();
                match said {
                    ProgramsIndication::Open { port, .. } => {
                        names.insert(program, usize::from(port) - 100);
                        wire.asks(1, ProgramsRequest::Opened { program });
                    }
                    ProgramsIndication::Data { bytes, .. } => {
                        let (talk, length) = (&mut talks[names[&program]], bytes.len() as u64);
                        talk.got.push(bytes);
                        if talk.kind == Stream {
                            wire.asks(1, ProgramsRequest::Written { program, bytes: length });
                        }
                    }
                    _ => {}
                }
            }
            for said in wire.told(0) {
                if let ProgramsIndication::Abort { program } = said {
                    talks[program.0 as usize].is_aborted = true;
                }
            }
        }
        for Talk { kind, service, sent, got, is_aborted } in talks {
            let context = format!("{kind:?} over {service:?}, seed {seed}");
            if kind == Datagrams {
                assert!(got.iter().all(|datagram| sent.contains(datagram)), "{context}");
                assert!(is_aborted || got.last() == sent.last(), "{context}: the faults have stopped");
                continue;
            }
            let (sent, got) = (sent.concat(), got.concat());
            assert!(sent.starts_with(&got), "{context}: a hole");
            assert!(is_aborted || got == sent, "{context}: the faults have stopped");
            assert!(!is_aborted || !service.acknowledges(), "{context}: no reason for a reset");
        }
    }
}
