//! Packets between nodes.

use super::world::{RANGE_M, World, address, flight};
use crate::aeronp::wire::{HEADER_BYTES, Packet, PacketType};
use crate::engine::Engine;
use crate::motion::Trajectory;
use crate::service::FramesIndication;
use crate::time::{Duration, Instant};
use bytes::Bytes;

/// Flips a bit of the payload.
fn damaged(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    *bytes.last_mut().expect("a payload") ^= 1;
    bytes.into()
}

#[test]
fn a_packet_to_a_neighbour_arrives_once_and_is_forgotten_when_it_is_acknowledged() {
    let mut world = World::new(&[flight(0.0, 0.0), flight(500.0, 0.0)], |_, _| {});
    world.run_until(3);
    assert!(world.send(0, b"over", 7));
    world.run_until(4);
    assert_eq!(world.arrived.len(), 1);
    let (_, node, payload, damaged) = &world.arrived[0];
    assert_eq!((*node, &payload[..], *damaged), (1, &b"over"[..], false));
    assert_eq!((&world.transmitted[..], world.data.len()), (&[7][..], 1));
    assert_eq!((world.nodes[0].engine.held_packets(), world.counters(1).acknowledgements_sent), (0, 1));
    assert_eq!(world.nodes[0].engine.neighbours(), [address(1)]);
}

#[test]
fn a_packet_on_a_node_without_neighbours_is_carried_and_delivered_later() {
    // Out of range until t = 50 s.
    let mut world = World::new(&[flight(-6000.0, 100.0), flight(0.0, 0.0)], |_, _| {});
    assert!(world.send(0, b"later", 1));
    world.run_until(49);
    assert!(world.data.is_empty() && world.arrived.is_empty(), "nothing is sent into the void");
    assert_eq!((world.nodes[0].engine.held_packets(), world.transmitted.len()), (1, 0));
    world.run_until(52);
    let (at, ..) = world.arrived[0];
    assert!((50.0..52.0).contains(&at), "{at}");
    assert_eq!((world.nodes[0].engine.held_packets(), &world.transmitted[..]), (0, &[1][..]));
}

#[test]
fn a_node_that_flies_to_the_destination_takes_packets_along() {
    // The source flies away from the ground station; another one passes it in the other direction and is out of range of the
    // ground until t = 50 s.
    let flights = [flight(5500.0, 50.0), flight(6000.0, -100.0), flight(0.0, 0.0)];
    let mut world = World::new(&flights, |_, _| {});
    assert!(world.send(0, b"ferry", 1));
    world.run_until(10);
    assert_eq!(world.data.iter().map(|(_, from, to)| (*from, *to)).collect::<Vec<_>>(), [(0, 1)]);
    assert_eq!([0, 1].map(|node| world.nodes[node].engine.held_packets()), [0, 1]);
    world.run_until(60);
    let (at, node, ..) = world.arrived[0];
    assert!(node == 2 && (50.0..52.0).contains(&at), "{at}");
    assert_eq!((world.arrived.len(), world.data.len()), (1, 2));
}

#[test]
fn a_chain_of_nodes_is_crossed_at_once() {
    let flights: Vec<_> = (0..5).map(|at| flight(900.0 * f64::from(4 - at), 0.0)).collect();
    let mut world = World::new(&flights, |_, _| {});
    world.run_until(3);
    assert!(world.send(0, b"chain", 1));
    world.run_until(4);
    let hops: Vec<_> = world.data.iter().map(|(_, from, to)| (*from, *to)).collect();
    assert_eq!(hops, [(0, 1), (1, 2), (2, 3), (3, 4)]);
    assert_eq!(world.arrived.len(), 1);
}

#[test]
fn hops_and_lifetime_end_a_packet() {
    let flights: Vec<_> = (0..4).map(|at| flight(900.0 * f64::from(3 - at), 0.0)).collect();
    let mut world = World::new(&flights, |_, config| config.hops_max = 1);
    world.run_until(3);
    assert!(world.send(0, b"far", 1));
    world.run_until(5);
    assert_eq!((world.data.len(), world.counters(2).expired, world.arrived.len()), (2, 1, 0));
    let short = |_: usize, config: &mut crate::aeronp::Config| {
        config.endpoints[0].lifetime = Duration::from_secs(20);
    };
    let mut world = World::new(&[flight(-6000.0, 100.0), flight(0.0, 0.0)], short);
    assert!(world.send(0, b"late", 9));
    world.run_until(60);
    assert_eq!((world.counters(0).expired, world.arrived.len(), &world.transmitted[..]), (1, 0, &[9][..]));
}

#[test]
fn a_damaged_payload_is_sent_again_unless_the_user_wants_it() {
    for tolerant in [false, true] {
        let mut world = World::new(&[flight(900.0, 0.0), flight(1800.0, 0.0), flight(0.0, 0.0)], |_, _| {});
        [0, 2].into_iter().for_each(|node| world.join(node, tolerant));
        let mut first = true;
        world.fate = Box::new(move |from, to, packet, bytes| {
            let is_data = (from, to, packet.kind) == (0, 2, PacketType::Data);
            let hit = is_data && core::mem::take(&mut first);
            Some(if hit { damaged(&bytes) } else { bytes })
        });
        world.run_until(3);
        assert!(world.send(0, b"bits", 1));
        world.run_until(6);
        let (_, _, payload, is_damaged) = &world.arrived[0];
        assert_eq!((*is_damaged, &payload[..] == b"bits"), (tolerant, !tolerant));
        assert_eq!((world.arrived.len(), world.data.len()), (1, if tolerant { 1 } else { 2 }));
        let counters = world.counters(2);
        assert_eq!((counters.payload_errors, counters.delivered_damaged), (1, u64::from(tolerant)));
    }
}

#[test]
fn a_packet_that_was_damaged_on_the_way_says_so_behind_the_next_relay() {
    let flights: Vec<_> = (0..3).map(|at| flight(900.0 * f64::from(2 - at), 0.0)).collect();
    let mut world = World::new(&flights, |_, _| {});
    [0, 2].into_iter().for_each(|node| world.join(node, true));
    world.fate = Box::new(|from, _, packet, bytes| {
        let hit = from == 0 && packet.kind == PacketType::Data;
        assert!(from == 0 || !packet.damaged, "a relay computes the check of what it has");
        Some(if hit { damaged(&bytes) } else { bytes })
    });
    world.run_until(3);
    assert!(world.send(0, b"bits", 1));
    world.run_until(4);
    assert_eq!((world.arrived.len(), world.arrived[0].3), (1, true));
    assert_eq!((world.counters(1).payload_errors, world.counters(2).payload_errors), (1, 0));
}

#[test]
fn a_damaged_header_is_no_packet_and_a_lost_acknowledgement_no_second_delivery() {
    let mut world = World::new(&[flight(900.0, 0.0), flight(0.0, 0.0)], |_, _| {});
    let (mut headers, mut answers) = (1, 1);
    world.fate = Box::new(move |from, _, packet, bytes| {
        if from == 0 && packet.kind == PacketType::Data && headers > 0 {
            headers -= 1;
            let mut bytes = bytes.to_vec();
            bytes[HEADER_BYTES / 2] ^= 0x10;
            return Some(bytes.into());
        }
        let is_lost = packet.kind == PacketType::Acknowledgement && answers > 0;
        answers -= u32::from(is_lost);
        (!is_lost).then_some(bytes)
    });
    world.run_until(3);
    assert!(world.send(0, b"once", 1));
    world.run_until(8);
    assert_eq!((world.arrived.len(), world.data.len()), (1, 3), "damaged, not acknowledged, acknowledged");
    assert_eq!((world.counters(1).header_errors, world.counters(1).duplicates), (1, 1));
    assert_eq!((world.counters(0).data_repeated, world.nodes[0].engine.held_packets()), (2, 0));
}

#[test]
fn an_acknowledgement_that_comes_late_is_one() {
    // Acknowledgements of the first two transmissions are lost; the one of the first comes after the third.
    let mut world = World::new(&[flight(900.0, 0.0), flight(0.0, 0.0)], |_, _| {});
    let late = std::rc::Rc::new(std::cell::RefCell::new(None));
    let kept = late.clone();
    world.fate = Box::new(move |_, _, packet, bytes| {
        if packet.kind != PacketType::Acknowledgement {
            return Some(bytes);
        }
        kept.borrow_mut().get_or_insert(bytes);
        None
    });
    world.run_until(3);
    assert!(world.send(0, b"once", 1));
    world.run_until(9);
    assert!(world.data.len() > 2 && world.nodes[0].engine.held_packets() == 1, "{:?}", world.data);
    let waits: Vec<_> = world.data.windows(2).map(|two| two[1].0 - two[0].0).collect();
    assert!(
        waits.windows(2).all(|two| two[1] > 1.9 * two[0]),
        "each wait is twice the one before: {waits:?}"
    );
    let first = late.borrow_mut().take().expect("it was acknowledged");
    world.hear(0, first);
    assert_eq!((world.nodes[0].engine.held_packets(), world.arrived.len()), (0, 1));
}

#[test]
fn a_neighbour_that_does_not_acknowledge_is_none_until_it_is_heard_again() {
    let mut world = World::new(&[flight(900.0, 0.0), flight(0.0, 0.0)], |_, config| {
        config.beacon_interval = Duration::from_secs(100);
        config.neighbour_timeout = Duration::from_secs(1000);
        config.failures_max = 2;
    });
    world.run_until(100);
    assert_eq!(world.nodes[0].engine.neighbours(), [address(1)]);
    world.fate = Box::new(|_, _, _, _| None);
    assert!(world.send(0, b"hello?", 1));
    world.run_until(104);
    assert_eq!((world.nodes[0].engine.neighbours().len(), world.data.len()), (0, 2));
    world.fate = Box::new(|_, _, _, bytes| Some(bytes));
    world.run_until(220);
    assert_eq!((world.arrived.len(), world.counters(0).neighbours_met), (1, 2));
}

#[test]
fn a_relay_with_a_full_queue_leaves_packets_with_their_sender() {
    // The relay closes in on the ground station, which it reaches at t = 30 s, and holds one packet.
    let payload: &[u8] = &[7; 400];
    let flights = [flight(4900.0, -80.0), flight(4000.0, -100.0), flight(0.0, 0.0)];
    let mut world = World::new(&flights, |node, config| {
        config.frame_bytes_max = 512;
        config.queue_bytes_max = if node == 1 { 700 } else { 100_000 };
        config.congestion_percent = 50;
    });
    world.run_until(2);
    (0..3).for_each(|token| assert!(world.send(0, payload, token)));
    world.run_until(8);
    assert_eq!(world.nodes[1].engine.held_packets(), 1, "it accepts what it can hold");
    assert!(world.nodes[0].engine.held_packets() >= 2, "the others are not lost");
    assert_eq!(world.counters(1).relayed, 1);
    world.run_until(40);
    assert_eq!(world.arrived.len(), 1);
    assert_eq!(world.counters(2).delivered_congested, 1, "its queue was more than half full");
}

#[test]
fn the_room_of_a_user_falls_with_the_queue_and_returns() {
    let mut world = World::new(&[flight(-6000.0, 100.0), flight(0.0, 0.0)], |_, config| {
        config.endpoints[0].packets_max = 3;
    });
    assert_eq!([(); 4].map(|()| world.send(0, b"full", 0)), [true, true, true, false]);
    world.run_until(60);
    assert!(world.send(0, b"free", 0));
    world.run_until(61);
    assert_eq!((world.arrived.len(), world.transmitted.len()), (4, 4));
}

#[test]
fn urgent_packets_go_first() {
    let mut world = World::new(&[flight(-6000.0, 100.0), flight(0.0, 0.0)], |_, config| {
        let mut urgent = config.endpoints[0].clone();
        (urgent.link, urgent.precedence, urgent.protocol) = (crate::service::LinkId(1), 9, 1);
        config.endpoints.push(urgent);
    });
    assert!(world.send(0, b"routine", 0));
    let join = crate::service::DatagramsRequest::Join { damaged: false };
    let urgent = crate::service::LinkId(1);
    for node in [0, 1] {
        world.nodes[node].handle_request(world.now, (urgent, join.clone()));
    }
    world.run_until(1);
    let datagram = crate::service::DatagramsRequest::Datagram {
        to: crate::service::PeerId::CONFIGURED,
        bytes: Bytes::from_static(b"urgent"),
        shares: Default::default(),
        token: None,
    };
    world.nodes[0].handle_request(world.now, (urgent, datagram));
    world.run_until(60);
    let order: Vec<_> = world.arrived.iter().map(|(_, _, payload, _)| &payload[..]).collect();
    assert_eq!(order, [&b"urgent"[..], b"routine"]);
}

#[test]
fn a_carrier_that_is_lost_and_silence_both_end_a_neighbour() {
    let mut world = World::new(&[flight(0.0, 100.0), flight(0.0, 0.0)], |_, _| {});
    world.run_until(5);
    assert_eq!(world.nodes[1].engine.neighbours(), [address(0)]);
    world.nodes[1].handle_indication(world.now, (super::world::AT, FramesIndication::Carrier(false)));
    assert_eq!((world.nodes[1].engine.neighbours().len(), world.counters(1).neighbours_lost), (0, 1));
    world.run_until(8);
    assert_eq!(world.nodes[1].engine.neighbours(), [address(0)], "it is heard again");
    world.run_until((RANGE_M / 100.0) as u64 + 5);
    assert_eq!(world.nodes[1].engine.neighbours(), [], "it has flown away");
}

#[test]
fn beacons_pass_on_where_others_are() {
    // The middle node hears both ends, which do not hear each other.
    let flights: Vec<_> = (0..3).map(|at| flight(900.0 * f64::from(2 - at), 0.0)).collect();
    let mut world = World::new(&flights, |_, _| {});
    let mut told = false;
    let heard = std::rc::Rc::new(std::cell::Cell::new(false));
    let seen = heard.clone();
    world.fate = Box::new(move |from, to, packet, bytes| {
        if (from, to, packet.kind) == (1, 2, PacketType::Beacon) {
            let beacon = crate::aeronp::wire::Beacon::decode(&mut packet.payload.clone()).expect("a beacon");
            told |= beacon.fixes.iter().any(|fix| fix.node == address(0) && fix.hops == 0);
            seen.set(told);
            assert_eq!(packet.sender_fix.map(|fix| fix.position_cm), Some([90_000, 0, 0]));
        }
        Some(bytes)
    });
    world.run_until(5);
    assert!(heard.get(), "the last node is told of the first one");
}

#[test]
fn a_node_without_a_place_of_its_own_still_delivers_to_neighbours() {
    let mut world =
        World::new(&[flight(0.0, 0.0), flight(500.0, 0.0)], |_, config| config.fixes_in_data = false);
    assert_eq!(Trajectory::default().motion(Instant::ZERO), None);
    world.run_until(3);
    assert!(world.send(0, b"blind", 1));
    world.run_until(4);
    assert_eq!(world.arrived.len(), 1);
    let header = Packet { payload: Bytes::new(), ..Packet::default() }.header_bytes();
    assert_eq!(header, HEADER_BYTES);
}
