//! Controllers with AX.25 in their firmware: the time of a packet, the size of windows, the time of acknowledgements.

use crate::ax25::call;
use crate::nodes::AT;
use bytes::Bytes;
use longwire_proto::ax25::{self, ChannelMonitor, LinkConfig, PeerStation, Station, Version, Windows};
use longwire_proto::rng::Rng;
use longwire_proto::service::{LinkId, Many, Packets, PacketsIndication, PacketsRequest};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::wrap::Checked;
use longwire_sim::*;
use std::sync::{Arc, Mutex};

const OWN: LinkId = LinkId(0);
const FRAME_BYTES: u32 = 100;
const MS: fn(u64) -> Duration = Duration::from_millis;
/// Time of an I frame of 100 octets of 0x55 at 1200 bit/s with the flag after it: 119 octets, with stuffing only in the
/// header.
const FRAME_S: f64 = 119.0 * 8.0 / 1200.0;

fn config() -> ControllerConfig {
    ControllerConfig {
        serial_bps: 9600,
        megacycles_per_s: 1.0,
        memory_bytes: 20 * FRAME_BYTES,
        firmware: Firmware::default(),
    }
}

/// Two hosts, and the indications to the second one with their times.
struct Pair {
    world: Simulation<Many<LinkId, Packets>>,
    nodes: [NodeId; 2],
    watcher: Arc<Mutex<ChannelMonitor>>,
    room: u64,
    heard: Vec<(Instant, Bytes)>,
    acknowledged: u64,
}

impl Pair {
    fn new(seed: u64, controllers: [ControllerConfig; 2], window: u8, polls: bool) -> Pair {
        let mut pair = Pair::apart(seed, controllers, window, polls);
        pair.world.request(pair.nodes[0], (OWN, PacketsRequest::Connect));
        pair.world.run_until(Instant::from_secs(100));
        pair.listen();
        pair
    }

    /// Makes a pair without a connection.
    fn apart(seed: u64, controllers: [ControllerConfig; 2], window: u8, polls: bool) -> Pair {
        let station = StationConfig {
            tx_delay: MS(100),
            tx_tail: Duration::ZERO,
            persistence: 255,
            ..StationConfig::default()
        };
        let radio = RadioConfig { stations: vec![station], ..RadioConfig::default() };
        let mut world: Simulation<Many<LinkId, Packets>> = Simulation::new(seed);
        let mut numbers = 0..;
        let nodes = controllers.map(|controller| {
            let own = numbers.next().expect("without end");
            let link = LinkConfig {
                version: Version::Plain,
                window_frames: if own == 0 { window } else { 7 },
                information_bytes_max: FRAME_BYTES,
                acknowledge_delay: Some(Duration::ZERO),
                poll_last: polls,
                ..LinkConfig::default()
            };
            let mut config = ax25::Config::new(call(["A", "B"][own]));
            config.radio.turnaround = Duration::from_secs(60);
            config.callers = Some(link.clone());
            if own == 0 {
                config.peers.insert(OWN, PeerStation { station: call("B"), path: Vec::new(), link });
            }
            world.add_node(["A", "B"][own], move |boot| {
                let controller = Controller::new(controller, Station::new(config.clone()), FRAME_BYTES);
                Box::new(OnRadio(Checked::new(&boot.name, controller)))
            })
        });
        world.add_radio(radio, &nodes.map(|node| (node, AT)));
        let watcher = Arc::new(Mutex::new(ChannelMonitor::new()));
        let hears = watcher.clone();
        world.set_trace(Box::new(move |record| {
            hears.lock().expect("nobody panics").hear(record.bytes).expect("stations send frames");
        }));
        Pair { world, nodes, watcher, room: 0, heard: Vec::new(), acknowledged: 0 }
    }

    fn listen(&mut self) {
        while let Some((when, node, (link, said))) = self.world.pop_indication() {
            match said {
                PacketsIndication::Room(room) if node == self.nodes[0] => self.room = room,
                PacketsIndication::Acknowledged(count) => self.acknowledged = count,
                PacketsIndication::Packet(packet) => {
                    self.heard.push((when, packet));
                    self.world.request(node, (link, PacketsRequest::Release(1)));
                }
                PacketsIndication::Closed(why) => panic!("{node:?} closed: {why:?}"),
                _ => {}
            }
        }
    }

    /// Sends packets, distinguished by their first octet, as room allows. Returns the time until all are acknowledged,
    /// and the windows.
    fn send(&mut self, count: usize) -> (Duration, Windows) {
        let since = self.world.now();
        let mut handed = 0;
        while self.acknowledged < count as u64 {
            while self.room > 0 && handed < count {
                let mut packet = vec![0x55; FRAME_BYTES as usize];
                packet[0] = handed as u8;
                self.world.request(self.nodes[0], (OWN, PacketsRequest::payload(packet.into())));
                (self.room, handed) = (self.room - 1, handed + 1);
                self.listen();
            }
            assert!(self.world.step(), "nothing happens any more\n{}", self.world.status());
            assert!(self.world.now() < Instant::from_secs(9000), "{}", self.world.status());
            self.listen();
        }
        let took = self.world.now().saturating_since(since);
        self.world.run_until(self.world.now() + Duration::from_secs(60));
        self.listen();
        let heard: Vec<u8> = self.heard.iter().map(|(_, packet)| packet[0]).collect();
        assert_eq!(heard, (0..count).map(|number| number as u8).collect::<Vec<u8>>());
        let windows = self.watcher.lock().expect("nobody panics").windows();
        (took, windows[&call("A")].clone())
    }
}

#[test]
fn there_is_room_for_the_packets_that_there_is_memory_for() {
    let config = ControllerConfig { memory_bytes: 6 * FRAME_BYTES - 1, ..config() };
    let mut pair = Pair::new(6, [config; 2], 7, true);
    assert_eq!(pair.room, 5);
    pair.send(20);
    assert_eq!(pair.room, 5, "all of it is acknowledged");
}

#[test]
fn a_call_can_be_given_up_before_it_is_answered() {
    let mut pair = Pair::apart(7, [config(); 2], 7, true);
    for request in [PacketsRequest::Connect, PacketsRequest::Close] {
        pair.world.request(pair.nodes[0], (OWN, request));
    }
    pair.world.run_until(Instant::from_secs(100));
    let said: Vec<PacketsIndication> = core::iter::from_fn(|| pair.world.pop_indication())
        .filter_map(|(_, node, (_, said))| (node == pair.nodes[0]).then_some(said))
        .collect();
    assert!(said.iter().any(|said| matches!(said, PacketsIndication::Closed(_))), "{said:?}");
    assert!(!said.iter().any(|said| matches!(said, PacketsIndication::Connected { .. })), "{said:?}");
}

#[test]
fn a_packet_takes_line_processor_turn_air_and_line() {
    let firmware = Firmware { octet_kilocycles: 5.0, turn_megacycles: 0.3, ..Firmware::default() };
    let mut pair = Pair::new(1, [ControllerConfig { firmware, ..config() }; 2], 7, true);
    let since = pair.world.now();
    pair.room -= 1;
    pair.world.request(pair.nodes[0], (OWN, PacketsRequest::payload(vec![0x55; 100].into())));
    pair.world.run_until(since + Duration::from_secs(9));
    pair.listen();
    let took = pair.heard[0].0.saturating_since(since).as_secs_f64();
    let line = 1000.0 / 9600.0;
    let expected = line + 0.5 + 0.3 + 0.1 + 8.0 / 1200.0 + FRAME_S + line;
    // One or two stuffed bits in the header and the check sequence.
    assert!((0.0..0.004).contains(&(took - expected)), "{took} s, {expected} s");
}

/// No window below seven is configured: it follows from the frames made when the channel is won. In a cycle of n frames
/// there is time to make n: n = (duration of a cycle without them) / (making one - sending one).
#[test]
fn who_is_slower_than_the_channel_has_small_windows() {
    let with = |octet_kilocycles: f64| {
        let firmware = Firmware { octet_kilocycles, ..Firmware::default() };
        let sender = ControllerConfig { firmware, serial_bps: 115_200, ..config() };
        mean(&Pair::new(1, [sender, config()], 7, true).send(200).1)
    };
    // Two TXDELAYs, two flags, and an RR of 17 octets with a flag.
    let beside_s = 0.2 + (2.0 + 18.0) * 8.0 / 1200.0;
    for octet_kilocycles in [9.2, 9.5, 10.0, 11.0] {
        let expected = beside_s / (octet_kilocycles / 10.0 - FRAME_S);
        let found = with(octet_kilocycles);
        assert!((found - expected).abs() < 0.3, "{octet_kilocycles}: {found} frames, {expected}");
    }
    assert_eq!(with(20.0), 1.0);
    assert!(with(0.0) > 6.5 && with(4.0) > 6.0);
}

fn mean(windows: &Windows) -> f64 {
    let frames: u64 = windows.iter().map(|(window, count)| u64::from(*window) * count).sum();
    frames as f64 / windows.values().sum::<u64>() as f64
}

#[test]
fn what_is_not_acknowledged_takes_memory_from_the_next_window() {
    let with = |frames: u32| {
        let sender = ControllerConfig { memory_bytes: frames * FRAME_BYTES, serial_bps: 115_200, ..config() };
        Pair::new(1, [sender, config()], 7, true).send(100).1
    };
    // Memory for six frames: frames in flight and frames being read in are six together.
    let windows = with(6);
    assert!((2.8..3.2).contains(&mean(&windows)), "{windows:?}");
    assert!(with(20).keys().last() == Some(&7));
}

#[test]
fn who_is_not_asked_waits_for_more_frames_but_not_behind_seven() {
    let took = |count: usize, polls: bool, delay_ms: Option<u64>| {
        let firmware = Firmware { acknowledge_delay: delay_ms.map(MS), ..Firmware::default() };
        let recipient = ControllerConfig { firmware, ..config() };
        // All frames are made before the first is sent.
        let turn = Firmware { turn_megacycles: 2.0, ..Firmware::default() };
        let sender = ControllerConfig { firmware: turn, ..config() };
        Pair::new(1, [sender, recipient], 7, polls).send(count).0.as_secs_f64()
    };
    // One bit more or less in a header can cause another stuffed bit.
    let close = |left: f64, right: f64| assert!((left - right).abs() < 0.005, "{left} s, {right} s");
    for count in [3, 6] {
        close(took(count, true, Some(1500)), took(count, true, None));
        close(took(count, false, Some(1500)), took(count, true, None) + 1.5);
        close(took(count, false, None), took(count, true, None));
    }
    close(took(7, false, Some(1500)), took(7, true, None));
}

#[test]
fn a_window_that_grows_begins_with_one() {
    let firmware = Firmware { window_grows: true, ..Firmware::default() };
    let sender = ControllerConfig { firmware, ..config() };
    let (_, windows) = Pair::new(1, [sender, config()], 4, true).send(18);
    assert_eq!(windows, Windows::from([(1, 1), (2, 1), (3, 1), (4, 3)]));
}

#[test]
fn whatever_the_controllers_are_all_arrives_once_and_in_order() {
    let draw = |rng: &mut Rng| ControllerConfig {
        serial_bps: [1200, 9600, 115_200][rng.below(3) as usize],
        megacycles_per_s: 1.0 + rng.unit() * 20.0,
        memory_bytes: FRAME_BYTES * (1 + rng.below(20) as u32),
        firmware: Firmware {
            octet_kilocycles: rng.below(2) as f64 * rng.unit() * 100.0,
            turn_megacycles: rng.below(2) as f64 * rng.unit() * 20.0,
            acknowledge_delay: rng.chance(0.5).then(|| MS(rng.below(3000))),
            window_grows: rng.chance(0.3),
        },
    };
    for seed in 0..40 {
        let mut rng = Rng::new(seed).fork("controllers");
        let controllers = [draw(&mut rng), draw(&mut rng)];
        let (window, polls) = (1 + rng.below(7) as u8, rng.chance(0.5));
        let play = || Pair::new(seed, controllers, window, polls).send(30);
        let (took, windows) = play();
        assert!(windows.keys().all(|frames| *frames <= u32::from(window)), "{seed}: {windows:?}");
        if seed % 10 == 0 {
            assert_eq!((took, windows), play(), "the same seed, the same run");
        }
    }
}
