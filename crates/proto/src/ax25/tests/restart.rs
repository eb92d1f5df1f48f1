//! Controllers that keep sending for a host that has restarted without state.

use super::channel::station;
use super::hostile::{air_time, turn, unnumbered};
use crate::ax25::{CommandResponse, Control, Frame, Modulo, Station, Unnumbered, Version};
use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{FramesIndication, FramesRequest, LinkId, PacketsIndication, PacketsRequest, Port};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

const OWN: LinkId = LinkId(0);

/// A host and its controller, which survives it.
struct Side {
    station: Checked<Station>,
    /// Frames that the controller holds.
    queue: VecDeque<Bytes>,
    /// Number of these frames from the host's former run.
    former: usize,
    /// Number of connections of this host so far, including those before the last start; packets contain it.
    connection: u8,
    room: u64,
    sent: u8,
    connected: bool,
    open: bool,
}

impl Side {
    /// Starts a host at this time.
    fn new(name: &str, peer: &str, version: Version, now: Instant) -> Side {
        let mut config = station(name, &[peer]);
        config.restarts = true;
        config.peers.values_mut().for_each(|peer| peer.link.version = version);
        let mut station = Checked::new(name, Station::new(config));
        // The station joins its channel.
        drain(&mut station, now, |_| {}, |_| {});
        Side {
            station,
            queue: VecDeque::new(),
            former: 0,
            connection: 0,
            room: 0,
            sent: 0,
            connected: false,
            open: false,
        }
    }

    /// Returns true if no frame of the former run waits, and neither does the poll by which this run confirms its link
    /// setup, nor its answer, which looks like the answer to another poll.
    fn may_start_again(&self, peer: &Side) -> bool {
        let asks = |bytes: &Bytes| {
            [Modulo::Eight, Modulo::Extended].into_iter().any(|modulo| {
                let control = Frame::decode(&mut bytes.clone(), modulo).map(|frame| frame.control);
                matches!(control, Ok(Control::Supervisory { poll_final: true, .. }))
            })
        };
        self.former == 0 && self.connection < 200 && !self.queue.iter().chain(&peer.queue).any(asks)
    }
}

/// A connects and sends; B listens.
struct World {
    now: Instant,
    a: Side,
    b: Side,
    /// Connection of A and number of packets that B has received on each of its links.
    heard: BTreeMap<LinkId, (u8, u8)>,
    /// Number of packets that B has received for each connection of A.
    came: BTreeMap<u8, u8>,
    connections: u32,
    packets: u32,
}

impl World {
    fn settle(&mut self) {
        loop {
            let (now, mut quiet) = (self.now, true);
            let World { a, b, heard, came, connections, packets, .. } = self;
            for side in [&mut *a, &mut *b] {
                side.station.handle_indication(now, FramesIndication::Room(16));
            }
            let (mut rose, mut tokens) = (vec![], vec![]);
            let queue = &mut b.queue;
            drain(&mut b.station, now, |said| rose.push(said), |request| hand(queue, &mut tokens, request));
            for said in rose {
                let Port::First((link, PacketsIndication::Packet(packet))) = said else { continue };
                let (connection, number) = (packet[0], packet[1]);
                let (first, next) = heard.entry(link).or_insert((connection, 0));
                assert_eq!(
                    (connection, number),
                    (*first, *next),
                    "a packet of another connection on {link:?}"
                );
                *next += 1;
                came.insert(connection, number + 1);
                *packets += 1;
                b.station.handle_request(now, Port::First((link, PacketsRequest::Release(1))));
                quiet = false;
            }
            for token in core::mem::take(&mut tokens) {
                b.station.handle_indication(now, FramesIndication::Transmitted(token));
                quiet = false;
            }
            let (mut rose, queue) = (vec![], &mut a.queue);
            drain(&mut a.station, now, |said| rose.push(said), |request| hand(queue, &mut tokens, request));
            for said in rose {
                match said {
                    Port::First((OWN, PacketsIndication::Room(room))) => a.room = room,
                    Port::First((OWN, PacketsIndication::Connected { .. })) => {
                        (a.connected, a.sent) = (true, 0);
                        *connections += 1;
                    }
                    Port::First((OWN, PacketsIndication::Acknowledged(count))) => {
                        let has = came.get(&a.connection).copied().unwrap_or(0);
                        assert!(count <= u64::from(has), "{count} acknowledged, and B has {has}");
                    }
                    Port::First((OWN, PacketsIndication::Closed(_))) => {
                        (a.open, a.connected, a.room) = (false, false, 0);
                    }
                    _ => {}
                }
            }
            for token in tokens {
                a.station.handle_indication(now, FramesIndication::Transmitted(token));
                quiet = false;
            }
            if a.connected && a.room > 0 && a.sent < 20 {
                let packet = Bytes::from(vec![a.connection, a.sent, 0, 0]);
                a.station.handle_request(now, Port::First((OWN, PacketsRequest::payload(packet))));
                (a.room, a.sent, quiet) = (a.room - 1, a.sent + 1, false);
            }
            if quiet {
                return;
            }
        }
    }

    /// Sends the next frame of one side's controller, which is received or lost.
    fn carry(&mut self, from_a: bool, lost: bool) {
        let (from, to) = if from_a { (&mut self.a, &mut self.b) } else { (&mut self.b, &mut self.a) };
        if let Some(bytes) = from.queue.pop_front() {
            self.now += air_time(&bytes);
            from.former = from.former.saturating_sub(1);
            if !lost {
                to.station.handle_indication(self.now, FramesIndication::Frame(bytes));
            }
        }
    }
}

fn hand(queue: &mut VecDeque<Bytes>, tokens: &mut Vec<u64>, request: FramesRequest) {
    if let FramesRequest::Frame { bytes, token, .. } = request {
        queue.push_back(bytes);
        // The controller reports a frame as transmitted when it has accepted it.
        tokens.extend(token);
    }
}

/// A host restarts while its controller holds frames of its link, or its connection request. They leave ahead of its
/// new frames, and the peer answers them: none of that is taken for data, or an acknowledgement, of the new link. (A
/// host that restarts twice, faster than its controller sends, cannot distinguish the answers.)
#[test]
fn what_a_controller_sends_for_a_host_that_has_started_again_is_none_of_its_new_link() {
    for version in [Version::Plain, Version::Best] {
        let (mut connections, mut packets) = (0, 0);
        for seed in 0..150 {
            let mut rng = Rng::new(seed);
            let (a, b) = ["A", "B"]
                .map(|name| {
                    let peer = if name == "A" { "B" } else { "A" };
                    Side::new(name, peer, version, Instant::ZERO)
                })
                .into();
            let (heard, came) = (BTreeMap::new(), BTreeMap::new());
            let mut world = World { now: Instant::ZERO, a, b, heard, came, connections: 0, packets: 0 };
            let loss = if seed % 2 == 0 { 0.0 } else { 0.15 };
            for _ in 0..600 {
                world.settle();
                if !world.a.open {
                    (world.a.open, world.a.connection) = (true, world.a.connection + 1);
                    let connect = Port::First((OWN, PacketsRequest::Connect));
                    world.a.station.handle_request(world.now, connect);
                    continue;
                }
                match rng.below(40) {
                    0 if world.a.may_start_again(&world.b) => {
                        let queue = core::mem::take(&mut world.a.queue);
                        let connection = world.a.connection;
                        let former = queue.len();
                        world.a =
                            Side { queue, former, connection, ..Side::new("A", "B", version, world.now) };
                    }
                    1..=30 => world.carry(rng.chance(0.5), rng.chance(loss)),
                    _ => {
                        world.now += Duration::from_millis(rng.below(2000));
                        for side in [&mut world.a, &mut world.b] {
                            if side.station.poll_timeout().is_some_and(|at| at <= world.now) {
                                side.station.handle_timeout(world.now);
                            }
                        }
                    }
                }
            }
            connections += world.connections;
            packets += world.packets;
        }
        // Links were established between the starts, and carried data.
        assert!(connections > 500 && packets > 5000, "{connections} connections, {packets} packets");
    }
}

/// When no answer to a former run can arrive any longer, the answer to the connection request counts, without the
/// turnaround of a poll.
#[test]
fn the_first_call_of_a_station_that_has_run_for_long_asks_nothing() {
    const FORMER_RUN_MAX: Duration = Duration::from_secs(120);
    let tick = Duration::from_millis(1);
    for (wait, asks) in [(FORMER_RUN_MAX - tick, true), (FORMER_RUN_MAX, false)] {
        // The start of the station is not the beginning of the clock.
        let mut now = Instant::from_secs(1000);
        let mut side = Side::new("A", "B", Version::Plain, now);
        now += wait;
        side.station.handle_request(now, Port::First((OWN, PacketsRequest::Connect)));
        turn(&mut side.station, &mut now, None, Modulo::Eight);
        let answer = unnumbered(CommandResponse::Response, Unnumbered::Acknowledge);
        let (said, frames) = turn(&mut side.station, &mut now, Some(answer), Modulo::Eight);
        let stands = said.iter().any(|said| matches!(said, PacketsIndication::Connected { .. }));
        assert_eq!((stands, frames.len()), (!asks, usize::from(asks)), "after {wait:?}: {frames:?}");
    }
}
