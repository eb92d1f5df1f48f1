//! Simulation: nodes, channels and faults on one virtual clock.

use crate::airtime::Airtime;
use crate::channel::{ChannelConfig, ChannelId, Counters, Direction};
use crate::clock::ClockConfig;
use crate::disk::{Disk, DiskConfig};
use crate::fault::InjectedFault;
use crate::line::Line;
use crate::network::{ChannelKind, FrameInFlight, Network};
use crate::node::{Attachment, Boot, BoundInterface, Node, NodeEngine, NodeId, PendingIndication};
use crate::queue::{SimEvent, Slots, WakeUps};
use crate::radio::{RadioConfig, SharedChannel, StationEventKind};
use crate::trace::{ChannelEnd, FrameFate, FrameSink};
use longwire_proto::engine::{Engine, Indication, Service, drain};
use longwire_proto::joint::earlier;
use longwire_proto::observe::Observation;
use longwire_proto::rng::Rng;
use longwire_proto::service::{FramesIndication, InterfaceId, RecordId};
use longwire_proto::service::{Port as Side, StorageIndication};
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// Maximum number of events at one instant, or of rounds within one event; beyond it nodes are assumed to be in an
/// endless loop.
const CIRCLE_EVENTS_MAX: u64 = 1_000_000;

/// Indication of a node to its user, with its time.
pub type NodeIndication<A> = (Instant, NodeId, Indication<A>);

/// Planned action.
enum PlannedAction<A: Service> {
    Fault(InjectedFault),
    Request(NodeId, A::Request),
}

/// Reason for a pause of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The condition no longer holds.
    Condition,
    /// The limit was reached.
    Limit,
    /// No more events are pending.
    Quiet,
}

/// World in virtual time. The same seed and the same calls give the same run, to the byte.
pub struct Simulation<A: Service> {
    rng: Rng,
    network: Network,
    nodes: Vec<Node<A>>,
    wakes: WakeUps,
    unstarted: VecDeque<NodeId>,
    plans: Slots<PlannedAction<A>>,
    /// Number of cuts of each channel that are not healed.
    cuts: Vec<u32>,
    indications: VecDeque<NodeIndication<A>>,
    events: u64,
    events_of_this_instant: u64,
}

impl<A: Service> Simulation<A> {
    /// Makes an empty world.
    pub fn new(seed: u64) -> Self {
        Simulation {
            rng: Rng::new(seed),
            network: Network::default(),
            nodes: Vec::new(),
            wakes: WakeUps::default(),
            unstarted: VecDeque::new(),
            plans: Slots::default(),
            cuts: Vec::new(),
            indications: VecDeque::new(),
            events: 0,
            events_of_this_instant: 0,
        }
    }

    /// Adds a node with a disk without latency and a clock that is right; otherwise as [`Simulation::add_node_with`].
    pub fn add_node(
        &mut self,
        name: &str,
        make: impl FnMut(Boot) -> NodeEngine<A> + Send + 'static,
    ) -> NodeId {
        self.add_node_with(name, DiskConfig::default(), ClockConfig::default(), make)
    }

    /// Adds a node. It starts when time first passes or with the first request to a node, so that its channels can be
    /// added before.
    ///
    /// # Panics
    /// Panics if there is a node of this name, because names separate the random generators.
    pub fn add_node_with(
        &mut self,
        name: &str,
        disk: DiskConfig,
        clock: ClockConfig,
        make: impl FnMut(Boot) -> NodeEngine<A> + Send + 'static,
    ) -> NodeId {
        assert!(self.nodes.iter().all(|node| node.name != name), "there are two nodes called {name}");
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node {
            name: name.to_owned(),
            factory: Box::new(make),
            engine: None,
            boots: 0,
            disk: Disk::new(disk),
            clock,
            ports: Vec::new(),
            pending_indications: VecDeque::new(),
        });
        self.wakes.grow(self.nodes.len());
        self.unstarted.push_back(id);
        id
    }

    /// Adds a channel between an interface of one node and one of another (or of the same).
    ///
    /// # Panics
    /// Panics if an interface already has a channel, or if the configuration is invalid.
    pub fn add_channel(
        &mut self,
        a: (NodeId, InterfaceId),
        b: (NodeId, InterfaceId),
        config: ChannelConfig,
    ) -> ChannelId {
        let index = self.network.lines.len() as u32;
        let channel = self.new_channel(ChannelKind::Lines(index));
        let ends = [a, b].map(|(node, interface)| ChannelEnd { node, interface });
        let outlets = [Attachment::Line(index), Attachment::Line(index + 1)];
        ends.into_iter().zip(outlets).for_each(|(end, out)| self.add_port(end, out));
        let name = ends.map(|end| self.end_name(end));
        for (line, config, (from, to)) in
            [(index, config.forward, (0, 1)), (index + 1, config.backward, (1, 0))]
        {
            let rng = self.rng.fork(&format!("line {} to {}", name[from], name[to]));
            let line_at_work = Line::new(config, channel, [ends[from], ends[to]], self.network.now, &rng);
            if let Some(at) = line_at_work.next_turn() {
                self.network.queue.push(at, SimEvent::OutageChanges(line));
            }
            self.network.lines.push(line_at_work);
        }
        ends.into_iter().zip(outlets).for_each(|(end, out)| self.join_late(end, out));
        channel
    }

    /// Adds a radio channel that these interfaces share.
    ///
    /// # Panics
    /// Panics if an interface already has a channel, or if the configuration is invalid.
    pub fn add_radio(&mut self, config: RadioConfig, stations: &[(NodeId, InterfaceId)]) -> ChannelId {
        let index = self.network.radios.len() as u32;
        let channel = self.new_channel(ChannelKind::Radio(index));
        let ends: Vec<(ChannelEnd, String)> = stations
            .iter()
            .map(|(node, interface)| ChannelEnd { node: *node, interface: *interface })
            .map(|end| (end, self.end_name(end)))
            .collect();
        let outlet = |station: usize| Attachment::Radio(index, station as u16);
        let radio = SharedChannel::new(config, channel, index, &ends, &self.rng);
        ends.iter().enumerate().for_each(|(station, (end, _))| self.add_port(*end, outlet(station)));
        self.network.radios.push(radio);
        ends.iter().enumerate().for_each(|(station, (end, _))| self.join_late(*end, outlet(station)));
        channel
    }

    fn new_channel(&mut self, medium: ChannelKind) -> ChannelId {
        self.network.channels.push(medium);
        ChannelId(self.network.channels.len() as u32 - 1)
    }

    fn end_name(&self, end: ChannelEnd) -> String {
        format!("{}/{}", self.nodes[end.node.0 as usize].name, end.interface.0)
    }

    fn add_port(&mut self, end: ChannelEnd, out: Attachment) {
        let ports = &mut self.nodes[end.node.0 as usize].ports;
        let place = ports.binary_search_by_key(&end.interface, |port| port.interface);
        let place = place.err().unwrap_or_else(|| panic!("{end:?} has a channel already"));
        ports.insert(place, BoundInterface { interface: end.interface, out });
    }

    /// Joins an interface that joined before it had a channel.
    fn join_late(&mut self, end: ChannelEnd, out: Attachment) {
        if let Some(place) = self.network.unattached.iter().position(|unattached| *unattached == end) {
            self.network.unattached.swap_remove(place);
            let carrier = self.network.join(out);
            let pending_indications = &mut self.nodes[end.node.0 as usize].pending_indications;
            pending_indications.push_back(PendingIndication::carrier(end.interface, carrier));
            pending_indications.push_back(PendingIndication::Room(end.interface, out));
            self.settle(end.node, false);
        }
    }

    /// Returns the time.
    pub fn now(&self) -> Instant {
        self.network.now
    }

    /// Returns the number of processed events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Sends a request to a node now; false if the node is down.
    pub fn request(&mut self, node: NodeId, request: A::Request) -> bool {
        self.start_nodes();
        let now = self.network.now;
        let Some(engine) = &mut self.nodes[node.0 as usize].engine else {
            return false;
        };
        engine.handle_request(now, request);
        self.settle(node, true);
        true
    }

    /// Sends a request to a node later; it is lost if the node is down then.
    pub fn request_at(&mut self, at: Instant, node: NodeId, request: A::Request) {
        self.plan(at, PlannedAction::Request(node, request));
    }

    /// Injects a fault later.
    pub fn fault_at(&mut self, at: Instant, fault: InjectedFault) {
        self.plan(at, PlannedAction::Fault(fault));
    }

    fn plan(&mut self, at: Instant, plan: PlannedAction<A>) {
        assert!(at >= self.network.now, "{at} has passed");
        let index = self.plans.insert(plan);
        self.network.queue.push(at, SimEvent::Planned(index));
    }

    /// Removes and returns all indications of nodes to their users, in order of time.
    pub fn take_indications(&mut self) -> Vec<NodeIndication<A>> {
        self.indications.drain(..).collect()
    }

    /// Removes and returns the oldest indication of a node to its user.
    pub fn pop_indication(&mut self) -> Option<NodeIndication<A>> {
        self.indications.pop_front()
    }

    /// Sets the receiver of the records of all further frames.
    pub fn set_trace(&mut self, sink: FrameSink) {
        self.network.trace = Some(sink);
    }

    /// Returns the time of the clock of a node, milliseconds since 2000-01-01; `None` without a clock.
    pub fn dtn_ms(&self, node: NodeId) -> Option<u64> {
        self.nodes[node.0 as usize].clock.dtn_ms(self.network.now)
    }

    /// Returns the name of a node.
    pub fn name(&self, node: NodeId) -> &str {
        &self.nodes[node.0 as usize].name
    }

    /// Returns the counters and states of the engines of a node; none while the node is down.
    pub fn observe(&self, node: NodeId) -> Observation {
        self.nodes[node.0 as usize].engine.as_ref().map(Observation::of).unwrap_or_default()
    }

    /// Returns the records on the disk of a node with their durable lengths in bytes.
    pub fn records(&self, node: NodeId) -> Vec<(RecordId, u64)> {
        self.nodes[node.0 as usize].disk.list()
    }

    /// Returns the use of the time of one direction of a point-to-point channel up to now. It sums to the time elapsed.
    pub fn airtime(&self, channel: ChannelId, direction: Direction) -> Airtime {
        self.line(channel, direction).airtime(self.network.now)
    }

    /// Returns the counters of the frames of one direction of a point-to-point channel.
    pub fn counters(&self, channel: ChannelId, direction: Direction) -> Counters {
        self.line(channel, direction).counters()
    }

    fn line(&self, channel: ChannelId, direction: Direction) -> &Line {
        &self.network.lines[self.network.line_index(channel, direction) as usize]
    }

    /// Returns the use of the time of one station of a radio channel up to now. It sums to the time elapsed.
    pub fn radio_airtime(&self, channel: ChannelId, of: (NodeId, InterfaceId)) -> Airtime {
        self.radio(channel).airtime(end(of), self.network.now)
    }

    /// Returns the use of the time of a radio channel up to now, over all stations: simultaneous transmissions count
    /// once. It sums to the time elapsed.
    pub fn radio_channel_airtime(&self, channel: ChannelId) -> Airtime {
        self.radio(channel).channel_airtime(self.network.now)
    }

    /// Returns the counters of the frames of one station of a radio channel at another.
    pub fn radio_counters(
        &self,
        channel: ChannelId,
        from: (NodeId, InterfaceId),
        to: (NodeId, InterfaceId),
    ) -> Counters {
        self.radio(channel).counters(end(from), end(to))
    }

    fn radio(&self, channel: ChannelId) -> &SharedChannel {
        match self.network.channels[channel.0 as usize] {
            ChannelKind::Radio(index) => &self.network.radios[index as usize],
            ChannelKind::Lines(_) => panic!("{channel:?} is two lines, not a radio channel"),
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // Time

    /// Returns the time of the next event; `None` if none is pending.
    pub fn next_event_at(&self) -> Option<Instant> {
        earlier(self.network.queue.next_at(), self.wakes.next_at())
    }

    /// Processes one event; false if none is pending.
    pub fn step(&mut self) -> bool {
        self.start_nodes();
        self.step_by(Instant::FAR_FUTURE)
    }

    /// Runs until `until`, including events of that instant.
    pub fn run_until(&mut self, until: Instant) {
        self.start_nodes();
        while self.step_by(until) {}
        self.network.now = self.network.now.max(until);
    }

    /// Runs while `condition` holds, but not beyond `limit`. The condition is evaluated after each event and may act on
    /// the world. If no more events are pending, the time stays at the last event.
    pub fn run_while(&mut self, limit: Instant, mut condition: impl FnMut(&mut Self) -> bool) -> Pause {
        self.start_nodes();
        while condition(self) {
            self.start_nodes();
            if !self.step_by(limit) {
                if self.next_event_at().is_none() {
                    return Pause::Quiet;
                }
                self.network.now = self.network.now.max(limit);
                return Pause::Limit;
            }
        }
        Pause::Condition
    }

    /// Processes the next event if it is due by `limit`.
    fn step_by(&mut self, limit: Instant) -> bool {
        let (event_at, wake_at) = (self.network.queue.next_at(), self.wakes.next_at());
        let Some(at) = earlier(event_at, wake_at) else {
            return false;
        };
        if at > limit {
            return false;
        }
        self.advance(at);
        // At the same instant events come before wake-ups.
        if event_at == Some(at) {
            match self.network.queue.pop().expect("an event is due") {
                SimEvent::TransmissionEnds(line) => self.leaves(line),
                SimEvent::FrameArrives(flight) => self.arrives(flight),
                SimEvent::OutageChanges(line) => self.turns(line),
                SimEvent::Planned(plan) => self.falls_due(plan),
                SimEvent::Radio(due) => {
                    let (radio, mut air) = self.network.radio(due.radio);
                    radio.due(&mut air, due);
                    self.pass_on(due.radio);
                }
            }
        } else {
            self.wakes_up(NodeId(self.wakes.first() as u32));
        }
        true
    }

    fn advance(&mut self, at: Instant) {
        assert!(at >= self.network.now, "time ran backwards");
        if at > self.network.now {
            self.network.now = at;
            self.events_of_this_instant = 0;
        }
        self.events += 1;
        self.events_of_this_instant += 1;
        if self.events_of_this_instant > CIRCLE_EVENTS_MAX {
            panic!("time stands still\n{}", self.status());
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // Events

    fn leaves(&mut self, index: u32) {
        let now = self.network.now;
        let line = &mut self.network.lines[index as usize];
        let left = line.leave(now);
        let next = line.start_next(now);
        let sender = line.from;
        let arrival = now + line.config.delay.at(now);
        let token = left.frame.token;
        if let Some(end) = next {
            self.network.queue.push(end, SimEvent::TransmissionEnds(index));
        }
        if left.fate == FrameFate::Outage {
            self.network.end_frame(index, left, None);
        } else {
            self.network.fly(index, left, arrival);
        }
        let pending_indications = &mut self.nodes[sender.node.0 as usize].pending_indications;
        if let Some(token) = token {
            pending_indications.push_back(PendingIndication::transmitted(sender.interface, token));
        }
        pending_indications.push_back(PendingIndication::Room(sender.interface, Attachment::Line(index)));
        self.settle(sender.node, false);
    }

    /// Delivers the events of a radio channel to its stations, one after another.
    fn pass_on(&mut self, index: u32) {
        while let Some(note) = self.network.radios[index as usize].notes.pop_front() {
            let (radio, mut air) = self.network.radio(index);
            let ChannelEnd { node, interface } = radio.end(note.station_number);
            let pending = match note.what {
                StationEventKind::GoOn => {
                    radio.go_on(&mut air, note.station_number);
                    continue;
                }
                StationEventKind::Room => {
                    PendingIndication::Room(interface, Attachment::Radio(index, note.station_number))
                }
                StationEventKind::Frames(said) => PendingIndication::Frames(interface, said),
            };
            self.nodes[node.0 as usize].pending_indications.push_back(pending);
            self.settle(node, false);
        }
    }

    fn arrives(&mut self, index: u32) {
        let FrameInFlight { line, mut frame } = self.network.flights.take(index);
        let to = self.network.lines[line as usize].to;
        // The sender of the other direction is the receiver of this one.
        let heard = self.network.lines[(line ^ 1) as usize].joined;
        let passes = matches!(frame.fate, FrameFate::Delivered | FrameFate::Damaged);
        if passes && !heard {
            frame.fate = FrameFate::Unheard;
        }
        let bytes = frame.damaged.as_ref().unwrap_or(&frame.frame.bytes).clone();
        let now = self.network.now;
        self.network.end_frame(line, frame, Some(now));
        if passes && heard {
            let engine = self.nodes[to.node.0 as usize].engine.as_mut().expect("who joined runs");
            let indication = Side::Second((to.interface, FramesIndication::Frame(bytes)));
            engine.handle_indication(now, indication);
            self.settle(to.node, true);
        }
    }

    fn turns(&mut self, index: u32) {
        let now = self.network.now;
        let line = &mut self.network.lines[index as usize];
        let carrier = line.carrier();
        line.turn(now);
        if let Some(at) = line.next_turn() {
            self.network.queue.push(at, SimEvent::OutageChanges(index));
        }
        self.carrier_changed(index, carrier);
    }

    /// Informs the sender if the carrier has changed.
    fn carrier_changed(&mut self, index: u32, before: bool) {
        let now = self.network.now;
        let line = &mut self.network.lines[index as usize];
        let carrier = line.carrier();
        if let Some(end) = line.start_next(now) {
            self.network.queue.push(end, SimEvent::TransmissionEnds(index));
        }
        if carrier == before || !line.joined {
            return;
        }
        let ChannelEnd { node, interface } = line.from;
        // The room is withdrawn before the carrier and granted after it.
        let mut pending_indications = [
            PendingIndication::carrier(interface, carrier),
            PendingIndication::Room(interface, Attachment::Line(index)),
        ];
        if !carrier {
            pending_indications.reverse();
        }
        self.nodes[node.0 as usize].pending_indications.extend(pending_indications);
        self.settle(node, false);
    }

    fn falls_due(&mut self, index: u32) {
        match self.plans.take(index) {
            PlannedAction::Fault(fault) => self.apply(fault),
            PlannedAction::Request(node, request) => {
                self.request(node, request);
            }
        }
    }

    fn wakes_up(&mut self, id: NodeId) {
        let now = self.network.now;
        let node = &mut self.nodes[id.0 as usize];
        let engine = node.engine.as_mut().expect("only running nodes are woken");
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(node.disk.poll_timeout()) {
            node.disk.handle_timeout(now);
        }
        let engine_due = due(engine.poll_timeout());
        if engine_due {
            engine.handle_timeout(now);
        }
        self.settle(id, engine_due);
    }

    // -----------------------------------------------------------------------------------------------------------
    // Faults

    /// Applies a fault now.
    pub fn apply(&mut self, fault: InjectedFault) {
        match fault {
            InjectedFault::Cut(channel) => self.set_cut(channel, true),
            InjectedFault::Heal(channel) => self.set_cut(channel, false),
            InjectedFault::Crash(node) => self.crash(node),
            InjectedFault::Restart(node) => self.restart(node),
            InjectedFault::Clock(node, clock) => self.nodes[node.0 as usize].clock = clock,
            InjectedFault::Delay(channel, direction, delay) => {
                assert!(delay.is_ordered(), "the points of a delay schedule are in order of time");
                if let Some(line) = self.network.find_line(channel, direction) {
                    self.network.lines[line as usize].config.delay = delay;
                }
            }
            InjectedFault::DiskFails(node, failing) => {
                self.nodes[node.0 as usize].disk.set_failing(self.network.now, failing);
                self.settle(node, false);
            }
            InjectedFault::DamageAnyRecord(node) => self.damage_any(node),
        }
    }

    /// Cuts a channel in both directions. As many heals are needed as there were cuts.
    pub fn cut(&mut self, channel: ChannelId) {
        self.set_cut(channel, true);
    }

    /// Undoes one cut of a channel; has no effect without a cut.
    pub fn heal(&mut self, channel: ChannelId) {
        self.set_cut(channel, false);
    }

    fn set_cut(&mut self, channel: ChannelId, cut: bool) {
        self.start_nodes();
        self.cuts.resize(self.network.channels.len(), 0);
        let cuts = &mut self.cuts[channel.0 as usize];
        let was_cut = *cuts > 0;
        *cuts = if cut { *cuts + 1 } else { cuts.saturating_sub(1) };
        if was_cut == (*cuts > 0) {
            return;
        }
        if let ChannelKind::Radio(index) = self.network.channels[channel.0 as usize] {
            let (radio, mut air) = self.network.radio(index);
            return radio.set_cut(&mut air, cut);
        }
        for direction in Direction::BOTH {
            let index = self.network.line_index(channel, direction);
            let line = &mut self.network.lines[index as usize];
            let carrier = line.carrier();
            line.set_cut(self.network.now, cut);
            self.carrier_changed(index, carrier);
        }
    }

    /// Crashes a node: only synced data on its disk survive.
    pub fn crash(&mut self, id: NodeId) {
        self.start_nodes();
        let node = &mut self.nodes[id.0 as usize];
        if node.engine.take().is_none() {
            return;
        }
        node.pending_indications.clear();
        let mut rng = self.rng.fork(&format!("crash {} of {}", node.boots, node.name));
        node.disk.crash(&mut rng);
        self.wakes.set(id.0 as usize, Instant::FAR_FUTURE);
        self.network.unattached.retain(|end| end.node != id);
        for port in node.ports.clone() {
            match port.out {
                Attachment::Line(index) => {
                    for frame in self.network.lines[index as usize].abandon() {
                        self.network.drop_frame(index, frame, FrameFate::SenderCrashed);
                    }
                }
                Attachment::Radio(index, station) => {
                    let (radio, mut air) = self.network.radio(index);
                    radio.abandon(&mut air, station);
                }
            }
        }
    }

    /// Restarts a node.
    pub fn restart(&mut self, id: NodeId) {
        self.start_nodes();
        self.start(id);
    }

    fn damage_any(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.0 as usize];
        let records = node.disk.list();
        if !records.is_empty() {
            let mut rng =
                self.rng.fork(&format!("damage to {} at {}", node.name, self.network.now.as_nanos()));
            let (record, _) = records[rng.below(records.len() as u64) as usize];
            node.disk.damage(record);
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // Nodes

    fn start_nodes(&mut self) {
        while let Some(id) = self.unstarted.pop_front() {
            self.start(id);
        }
    }

    fn start(&mut self, id: NodeId) {
        let now = self.network.now;
        let node = &mut self.nodes[id.0 as usize];
        if node.engine.is_some() {
            return;
        }
        let boot = Boot {
            node: id,
            name: node.name.clone(),
            boot: node.boots,
            rng: self.rng.fork(&format!("boot {} of {}", node.boots, node.name)),
            now,
            dtn_ms: node.clock.dtn_ms(now),
        };
        node.boots += 1;
        node.engine = Some((node.factory)(boot));
        self.settle(id, true);
    }

    /// Exchanges indications and requests with a node until it is quiet, then sets its next wake-up. `stirred` is true
    /// if it has received an indication and was not drained since.
    fn settle(&mut self, id: NodeId, mut stirred: bool) {
        let Simulation { network, nodes, indications, wakes, .. } = self;
        let now = network.now;
        let Node { engine, disk, ports, pending_indications, name, .. } = &mut nodes[id.0 as usize];
        let Some(engine) = engine else {
            pending_indications.clear();
            return;
        };
        let mut rounds = 0;
        loop {
            if core::mem::take(&mut stirred) {
                drain(
                    engine,
                    now,
                    |indication| indications.push_back((now, id, indication)),
                    |request| match request {
                        Side::First(request) => disk.handle_request(now, request),
                        Side::Second((interface, request)) => {
                            network.frames_request(ports, id, interface, request, pending_indications);
                        }
                    },
                );
            }
            let indication = match pending_indications.pop_front() {
                Some(PendingIndication::Frames(interface, said)) => Side::Second((interface, said)),
                Some(PendingIndication::Room(interface, outlet)) => match network.changed_room(outlet) {
                    Some(room) => Side::Second((interface, FramesIndication::Room(room))),
                    None => continue,
                },
                None => match disk.poll_indication() {
                    Some(answer) => Side::First::<StorageIndication, _>(answer),
                    None => break,
                },
            };
            engine.handle_indication(now, indication);
            stirred = true;
            rounds += 1;
            assert!(rounds < CIRCLE_EVENTS_MAX, "{name} talks to its disk or lines in a circle at {now}");
        }
        let wake = earlier(engine.poll_timeout(), disk.poll_timeout());
        // A deadline in the past is due now.
        wakes.set(id.0 as usize, wake.unwrap_or(Instant::FAR_FUTURE).max(now));
    }

    // -----------------------------------------------------------------------------------------------------------
    // Queries

    /// Returns a summary of nodes, lines and pending events, for debugging a stalled run.
    pub fn status(&self) -> String {
        use core::fmt::Write;
        let mut text = String::new();
        let next = self.next_event_at().map_or("nothing pending".into(), |at| format!("next at {at} s"));
        let (now, queued) = (self.network.now, self.network.queue.len());
        let _ = writeln!(text, "at {now} s: {} events done, {queued} queued, {next}", self.events);
        for (index, node) in self.nodes.iter().enumerate() {
            let state = match (&node.engine, self.wakes.get(index)) {
                (None, _) => "down".to_owned(),
                (Some(_), None) => "sleeps".to_owned(),
                (Some(_), Some(at)) => format!("wakes at {at} s"),
            };
            let (used, writes, reads) = node.disk.backlog();
            let _ = writeln!(
                text,
                "  node {} {}: {state}, boot {}; disk {used} bytes, {writes} writes and {reads} reads waiting",
                index, node.name, node.boots
            );
        }
        for line in &self.network.lines {
            let (frames, bytes, sending) = line.backlog();
            let name = |end: ChannelEnd| self.end_name(end);
            let _ = writeln!(
                text,
                "  line {} -> {}: {}{}, {}, room {}, {frames} frames ({bytes} bytes) waiting\n    {:?}",
                name(line.from),
                name(line.to),
                if line.is_out() { "out" } else { "there" },
                if line.joined { "" } else { " (not joined)" },
                if sending { "sending" } else { "idle" },
                line.told,
                line.counters()
            );
        }
        for radio in &self.network.radios {
            text += &radio.status(|end| self.end_name(end));
        }
        text
    }
}

/// Makes the channel end of an interface of a node.
fn end((node, interface): (NodeId, InterfaceId)) -> ChannelEnd {
    ChannelEnd { node, interface }
}
