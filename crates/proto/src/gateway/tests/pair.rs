//! Two gateways whose flows are carried at once, with gaps and damage on request.

use crate::engine::Engine as _;
use crate::gateway::{Config, Gateway};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    CloseReason, ConnectionFailure, ConnectionProperties, ConnectionsIndication, ConnectionsRequest,
    DownReason, Precedence, ProgramId, ProgramKind, ProgramsIndication, ProgramsRequest, TransportService,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Longest message.
const MESSAGE_BYTES_MAX: u64 = 1400;

/// A gateway of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Near,
    Far,
}

use Side::{Far, Near};

impl Side {
    fn other(self) -> Side {
        if self == Near { Far } else { Near }
    }
}

/// A flow of a side, whose number is that of its sender on both sides.
#[derive(Debug)]
struct Flow {
    from: Side,
    passed: u64,
    accepted: u64,
    has_ended: bool,
    acknowledges: bool,
}

/// Two gateways. The numbers of connections that the far one opens are shown from 1 on, in the order of those at the near one.
pub(super) struct Pair {
    gateways: BTreeMap<Side, Gateway>,
    flows: BTreeMap<u64, Flow>,
    /// Numbers at the near side by those at the far side.
    names: BTreeMap<ProgramId, u64>,
    latest: u64,
    room: u64,
    /// Programs whose next data are lost or damaged.
    now: Instant,
    /// Parts of flows that were carried.
    pub(super) parts: u64,
    loses: BTreeSet<u64>,
    /// Side whose next part of any flow is lost.
    loses_next: Option<Side>,
    damages: BTreeSet<u64>,
    told: BTreeMap<Side, Vec<String>>,
    /// Flows by program, to lose their data.
    senders: BTreeMap<u64, (Side, u64)>,
    speaks: Option<(Side, u64)>,
}

impl Pair {
    pub(super) fn new() -> Self {
        Pair::with(100)
    }

    pub(super) fn with(programs_max: usize) -> Self {
        Pair::with_limits(programs_max, programs_max)
    }

    pub(super) fn with_limits(near: usize, far: usize) -> Self {
        let gateway = |programs_max, first, seed| {
            let config = Config { programs_max, ..Config::default() };
            Gateway::new(config, first, Rng::new(seed))
        };
        let mut pair = Pair {
            gateways: BTreeMap::from([(Near, gateway(near, 1000, 1)), (Far, gateway(far, 2000, 2))]),
            flows: BTreeMap::new(),
            names: BTreeMap::new(),
            latest: 0,
            room: 1 << 20,
            now: Instant::ZERO,
            parts: 0,
            loses: BTreeSet::new(),
            loses_next: None,
            damages: BTreeSet::new(),
            told: BTreeMap::new(),
            senders: BTreeMap::new(),
            speaks: None,
        };
        pair.comes_up();
        for side in [Near, Far] {
            pair.asks(side, ProgramsRequest::Listen);
        }
        pair
    }

    pub(super) fn comes_up(&mut self) {
        let up = ConnectionsIndication::Up { message_bytes_max: MESSAGE_BYTES_MAX };
        for side in [Near, Far] {
            self.hears(side, up.clone());
        }
    }

    pub(super) fn goes_down(&mut self) {
        let now = self.now;
        for side in [Near, Far] {
            let flows: Vec<u64> =
                self.flows.iter().filter(|(_, flow)| flow.from == side).map(|(id, _)| *id).collect();
            for connection in flows {
                let reason = ConnectionFailure::Down(CloseReason::Unreachable);
                self.gateway(side)
                    .handle_indication(now, ConnectionsIndication::Failed { connection, reason });
            }
        }
        self.flows.clear();
        let down = ConnectionsIndication::Down { reason: DownReason::PeerClosed, retry: true };
        for side in [Near, Far] {
            self.hears(side, down.clone());
        }
    }

    pub(super) fn has_room(&mut self, room: u64) {
        self.room = room;
        let flows: Vec<(u64, Side)> = self.flows.iter().map(|(id, flow)| (*id, flow.from)).collect();
        for (connection, from) in flows {
            self.hears(from, ConnectionsIndication::Room { connection, bytes: room });
        }
    }

    pub(super) fn arrives(
        &mut self,
        side: Side,
        program: u64,
        kind: ProgramKind,
        service: TransportService,
        to_port: u16,
    ) {
        self.latest = program;
        let precedence = Precedence::Routine;
        let program = ProgramId(program);
        self.asks(side, ProgramsRequest::Arrive { program, kind, service, precedence, to_port });
    }

    /// A stream that stands at both sides.
    pub(super) fn stands(&mut self, program: u64) {
        self.arrives(Near, program, ProgramKind::Stream, TransportService::Reliable, 80);
        self.opened(Far, program);
        self.told(Far);
        assert_eq!(self.told(Near), [""; 0]);
    }

    pub(super) fn says(&mut self, side: Side, program: u64, text: &str) {
        self.speaks = Some((side, program));
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let program = self.id(side, program);
        self.asks(side, ProgramsRequest::Data { program, bytes });
    }

    /// The next data of a program are lost.
    pub(super) fn loses(&mut self, _side: Side, program: u64) {
        self.loses.insert(program);
    }

    /// The next part of a flow from a side is lost, be it the first octet.
    pub(super) fn loses_next(&mut self, side: Side) {
        self.loses_next = Some(side);
    }

    /// The next data of a program have bit errors.
    pub(super) fn damages(&mut self, _side: Side, program: u64) {
        self.damages.insert(program);
    }

    pub(super) fn opened(&mut self, side: Side, program: u64) {
        let program = self.id(side, program);
        self.asks(side, ProgramsRequest::Opened { program });
    }

    pub(super) fn written(&mut self, side: Side, program: u64, bytes: u64) {
        let program = self.id(side, program);
        self.asks(side, ProgramsRequest::Written { program, bytes });
    }

    pub(super) fn finishes(&mut self, side: Side, program: u64) {
        let program = self.id(side, program);
        self.asks(side, ProgramsRequest::Finish { program });
    }

    pub(super) fn closes(&mut self, side: Side, program: u64) {
        self.ends(side, program, CloseReason::Finished);
    }

    pub(super) fn resets(&mut self, side: Side, program: u64) {
        self.ends(side, program, CloseReason::Reset);
    }

    pub(super) fn refuses(&mut self, side: Side, program: u64) {
        self.ends(side, program, CloseReason::Refused);
    }

    fn ends(&mut self, side: Side, program: u64, reason: CloseReason) {
        let program = self.id(side, program);
        self.asks(side, ProgramsRequest::Closed { program, reason });
    }

    /// A flow from the near side that no gateway has made.
    pub(super) fn foreign_flow(&mut self, first: &'static [u8]) {
        let properties =
            ConnectionProperties { source_port: 50_000, destination_port: 80, ..Default::default() };
        self.flows
            .insert(7, Flow { from: Near, passed: 0, accepted: 0, has_ended: false, acknowledges: true });
        self.hears(Far, ConnectionsIndication::Begin { incoming: 7, properties });
        let data = Bytes::from_static(first);
        self.hears(Far, ConnectionsIndication::Data { incoming: 7, data, damaged: false, last: false });
    }

    /// Returns what the programs of a side were told since the last call.
    pub(super) fn told(&mut self, side: Side) -> Vec<String> {
        self.told.remove(&side).unwrap_or_default()
    }

    pub(super) fn count(&self, side: Side, name: &str) -> u64 {
        Observation::of(&self.gateways[&side]).sum("gateway")[name]
    }

    /// Checks that nothing is left of any connection.
    #[track_caller]
    pub(super) fn assert_empty(&self) {
        for (side, gateway) in &self.gateways {
            let view = Observation::of(gateway);
            assert_eq!(view.parts[0].number("gateway_programs"), Some(0), "{side:?}: {gateway:?}");
        }
        assert!(self.flows.is_empty(), "{:?}", self.flows);
    }

    /// Time passes.
    pub(super) fn waits(&mut self, time: Duration) {
        self.now += time;
        let now = self.now;
        for side in [Near, Far] {
            self.gateway(side).handle_timeout(now);
            self.drain(side);
        }
    }

    /// Returns true if a side wants to be woken.
    pub(super) fn has_timer(&self, side: Side) -> bool {
        self.gateways[&side].poll_timeout().is_some()
    }

    fn gateway(&mut self, side: Side) -> &mut Gateway {
        self.gateways.get_mut(&side).expect("there are two")
    }

    fn id(&self, side: Side, program: u64) -> ProgramId {
        let named = self.names.iter().find(|(_, name)| **name == program);
        match side {
            Near => ProgramId(program),
            Far => *named.expect("it is open").0,
        }
    }

    fn asks(&mut self, side: Side, request: ProgramsRequest) {
        let now = self.now;
        self.gateway(side).handle_request(now, request);
        self.drain(side);
    }

    fn hears(&mut self, side: Side, indication: ConnectionsIndication) {
        let now = self.now;
        self.gateway(side).handle_indication(now, indication);
        self.drain(side);
    }

    fn drain(&mut self, side: Side) {
        let now = self.now;
        loop {
            if let Some(indication) = self.gateway(side).poll_indication(now) {
                let words = self.words(side, indication);
                self.told.entry(side).or_default().push(words);
            } else if let Some(request) = self.gateway(side).poll_request(now) {
                self.carry(side, request);
            } else {
                return;
            }
        }
    }

    fn words(&mut self, side: Side, indication: ProgramsIndication) -> String {
        let program = indication.program();
        if matches!(indication, ProgramsIndication::Open { .. }) {
            self.names.insert(program, self.latest);
        }
        let name = if side == Near { program.0 } else { self.names[&program] };
        match indication {
            ProgramsIndication::Open { kind, port, .. } => {
                format!("open {name} {} at port {port}", format!("{kind:?}").to_lowercase())
            }
            ProgramsIndication::Data { bytes, damaged, .. } => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                format!("data {name} {text}{}", if damaged { " (damaged)" } else { "" })
            }
            ProgramsIndication::Release { bytes, .. } => format!("release {name} {bytes}"),
            ProgramsIndication::Finish { .. } => format!("finish {name}"),
            ProgramsIndication::Abort { .. } => format!("abort {name}"),
        }
    }

    /// Carries a request to the other side; what the other side has to say comes back at once.
    fn carry(&mut self, side: Side, request: ConnectionsRequest) {
        let now = self.now;
        let other = side.other();
        match request {
            ConnectionsRequest::Open { connection, properties } => {
                let acknowledges = properties.service.acknowledges();
                let flow = Flow { from: side, passed: 0, accepted: 0, has_ended: false, acknowledges };
                self.flows.insert(connection, flow);
                let name = if side == Near { self.latest } else { 0 };
                self.senders.insert(connection, (side, name));
                self.hears(other, ConnectionsIndication::Begin { incoming: connection, properties });
                let bytes = self.room;
                if self.flows.contains_key(&connection) {
                    self.gateway(side)
                        .handle_indication(now, ConnectionsIndication::Room { connection, bytes });
                }
            }
            ConnectionsRequest::Data { connection, data, last } => {
                self.parts += 1;
                let Some(flow) = self.flows.get_mut(&connection) else { return };
                flow.has_ended = last;
                let spoken = self.speaks.filter(|(from, _)| *from == side && data.len() > 1);
                let is_lost = spoken.is_some_and(|(_, program)| self.loses.remove(&program))
                    || self.loses_next.take_if(|from| *from == side).is_some();
                let damaged = spoken.is_some_and(|(_, program)| self.damages.remove(&program));
                let length = data.len() as u64;
                let flow = self.flows.get_mut(&connection).expect("it was found");
                flow.passed += if is_lost { 0 } else { length };
                let is_sent = last && !flow.acknowledges;
                let incoming = connection;
                let indication = match is_lost {
                    true => ConnectionsIndication::Gap { incoming, bytes: Some(length) },
                    false => ConnectionsIndication::Data { incoming, data, damaged, last },
                };
                self.hears(other, indication);
                let sent =
                    self.flows.get(&connection).is_some_and(|flow| last && flow.accepted == flow.passed);
                if is_sent || sent {
                    self.flows.remove(&connection);
                    self.gateway(side).handle_indication(now, ConnectionsIndication::Sent { connection });
                }
            }
            ConnectionsRequest::Cancel { connection } => {
                if self.flows.remove(&connection).is_some() {
                    let reason = ConnectionFailure::Cancelled;
                    self.gateway(side)
                        .handle_indication(now, ConnectionsIndication::Failed { connection, reason });
                    self.hears(other, ConnectionsIndication::Lost { incoming: connection });
                }
            }
            ConnectionsRequest::Accept { incoming, up_to } => {
                let Some(flow) = self.flows.get_mut(&incoming) else { return };
                assert!(
                    flow.from == other && up_to <= flow.passed && up_to > flow.accepted,
                    "{up_to}: {flow:?}"
                );
                flow.accepted = up_to;
                let connection = incoming;
                if !flow.acknowledges {
                    return;
                }
                let is_sent = flow.has_ended && flow.accepted == flow.passed;
                let said = match is_sent {
                    true => ConnectionsIndication::Sent { connection },
                    false => ConnectionsIndication::Acknowledged { connection, up_to },
                };
                if is_sent {
                    self.flows.remove(&incoming);
                }
                self.hears(other, said);
            }
            ConnectionsRequest::Refuse { incoming, reason } => {
                if self.flows.remove(&incoming).is_some() {
                    let reason = ConnectionFailure::Refused(reason);
                    self.hears(other, ConnectionsIndication::Failed { connection: incoming, reason });
                }
            }
            ConnectionsRequest::Connect | ConnectionsRequest::Close => panic!("the endpoint is not its own"),
        }
    }
}
