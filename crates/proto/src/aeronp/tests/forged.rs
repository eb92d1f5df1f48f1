//! Neighbours that lie: whatever they send is bounded.

use super::world::{World, address, flight};
use crate::aeronp::wire::{Acknowledgement, Beacon, NodeFix, Packet, PacketType, WireFix};
use crate::codec::encoded;
use crate::packet_router::NodeAddress;
use bytes::Bytes;

fn frame(packet: &Packet) -> Bytes {
    encoded(0, |out| packet.encode(out))
}

fn beacon(sender: u32, fix: WireFix, beacon: &Beacon) -> Bytes {
    frame(&Packet {
        kind: PacketType::Beacon,
        source: NodeAddress(sender),
        destination: NodeAddress::BROADCAST,
        sender: NodeAddress(sender),
        receiver: NodeAddress::BROADCAST,
        sender_fix: Some(fix),
        payload: encoded(0, |out| beacon.encode(out)),
        ..Packet::default()
    })
}

fn fix_at(position_cm: [i32; 3], velocity_dmps: [i16; 3]) -> WireFix {
    WireFix { position_cm, velocity_dmps, age_tenths: 0 }
}

#[test]
fn thousands_of_invented_nodes_take_bounded_space_and_nobody_s_place() {
    let mut world =
        World::new(&[flight(0.0, 0.0), flight(500.0, 0.0)], |_, config| config.neighbours_max = 8);
    world.run_until(2);
    for sender in 1000..5000 {
        let fixes = (0..40).map(|number| NodeFix {
            node: NodeAddress(sender * 1000 + number),
            hops: 0,
            fix: fix_at([number as i32; 3], [0; 3]),
        });
        let told = Beacon { fill: 0, links: Vec::new(), fixes: fixes.collect() };
        world.hear(0, beacon(sender, fix_at([0; 3], [0; 3]), &told));
    }
    assert_eq!(world.nodes[0].engine.neighbours().len(), 8);
    assert!(world.nodes[0].engine.neighbours().contains(&address(1)), "the first one was there before");
    assert_eq!(world.counters(0).refused, 4000 - 7);
    let shown = format!("{:?}", world.nodes[0].engine);
    assert!(shown.len() < 200_000, "{} bytes of state", shown.len());
    assert!(world.send(0, b"still", 1));
    world.run_until(3);
    assert_eq!(world.arrived.len(), 1);
}

#[test]
fn impossible_positions_and_speeds_attract_no_packets() {
    let mut world = World::new(&[flight(5000.0, 0.0), flight(0.0, 0.0)], |_, _| {});
    world.run_until(1);
    assert!(world.send(0, b"bait", 1));
    for (number, fix) in [
        // Within range of the destination, and not within that of this node.
        fix_at([0; 3], [0; 3]),
        // Faster than anything that flies.
        fix_at([499_000, 0, 0], [i16::MIN, 0, 0]),
        // At the ends of the frame of reference.
        fix_at([2_000_000_000; 3], [0; 3]),
        fix_at([-2_000_000_000; 3], [i16::MAX; 3]),
    ]
    .into_iter()
    .enumerate()
    {
        world.hear(0, beacon(100 + number as u32, fix, &Beacon::default()));
    }
    world.run_until(2);
    assert!(world.data.is_empty(), "{:?}", world.data);
    assert_eq!(world.nodes[0].engine.held_packets(), 1);
}

#[test]
fn a_beacon_cannot_move_a_ground_station_or_this_node() {
    let mut world = World::new(&[flight(5000.0, 0.0), flight(4500.0, -60.0), flight(0.0, 0.0)], |_, _| {});
    world.run_until(1);
    // Claims that the ground station is elsewhere, and that this node is beside it.
    let elsewhere = NodeFix { node: address(2), hops: 0, fix: fix_at([1_000_000, 0, 0], [0; 3]) };
    let here = NodeFix { node: address(0), hops: 0, fix: fix_at([0; 3], [0; 3]) };
    let lies = Beacon { fill: 0, links: Vec::new(), fixes: vec![elsewhere, here] };
    world.hear(0, beacon(100, fix_at([500_000, 0, 0], [0; 3]), &lies));
    assert!(world.send(0, b"ferry", 1));
    world.run_until(2);
    let hops: Vec<_> = world.data.iter().map(|(_, from, to)| (*from, *to)).collect();
    assert_eq!(hops, [(0, 1)], "the one that flies to the ground station takes it");
}

#[test]
fn acknowledgements_of_packets_that_were_not_sent_and_packets_of_this_node_change_nothing() {
    let mut world = World::new(&[flight(-6000.0, 100.0), flight(0.0, 0.0)], |_, _| {});
    assert!(world.send(0, b"kept", 1));
    let answer = Acknowledgement { accepted: (0..64).collect(), known: Vec::new() };
    let forged = Packet {
        kind: PacketType::Acknowledgement,
        source: address(1),
        sender: address(1),
        destination: address(0),
        receiver: address(0),
        payload: encoded(0, |out| answer.encode(out)),
        ..Packet::default()
    };
    world.hear(0, frame(&forged));
    world.hear(0, frame(&Packet { sender: address(0), ..forged.clone() }));
    world.hear(0, frame(&Packet { payload: Bytes::from_static(b"odd"), ..forged }));
    assert_eq!((world.counters(0).refused, world.counters(0).header_errors), (1, 1));
    world.run_until(60);
    assert_eq!(world.arrived.len(), 1);
}

#[test]
fn packets_for_nobody_fill_a_queue_to_its_limit_only() {
    let mut world = World::new(&[flight(5000.0, 0.0), flight(0.0, 0.0)], |_, config| {
        config.queue_bytes_max = 10_000;
    });
    let packet = |identification: u32| Packet {
        source: NodeAddress(50),
        sender: NodeAddress(50),
        destination: NodeAddress(60),
        receiver: address(0),
        hops_left: 9,
        lifetime_tenths: u16::MAX,
        identification,
        payload: vec![0; 1000].into(),
        ..Packet::default()
    };
    (0..1000).for_each(|number| world.hear(0, frame(&packet(number))));
    assert_eq!(world.nodes[0].engine.held_packets(), 9);
    assert_eq!((world.counters(0).relayed, world.counters(0).queue_full), (9, 991));
    // A more urgent one takes the place of the oldest.
    world.hear(0, frame(&Packet { precedence: 5, ..packet(5000) }));
    assert_eq!((world.nodes[0].engine.held_packets(), world.counters(0).relayed), (9, 10));
    // The others are as urgent as one that comes last, and one without payload that is not makes too little space.
    (0..8).for_each(|number| world.hear(0, frame(&Packet { precedence: 5, ..packet(6000 + number) })));
    world.hear(0, frame(&Packet { payload: Bytes::new(), ..packet(7000) }));
    assert_eq!((world.nodes[0].engine.held_packets(), world.counters(0).relayed), (10, 19));
    world.hear(0, frame(&Packet { precedence: 1, ..packet(7001) }));
    assert_eq!(
        (world.nodes[0].engine.held_packets(), world.counters(0).relayed),
        (10, 19),
        "none is dropped"
    );
}

#[test]
fn packets_without_payload_fill_a_queue_too() {
    let mut world = World::new(&[flight(5000.0, 0.0), flight(0.0, 0.0)], |_, config| {
        config.queue_bytes_max = 3_600;
    });
    let packet = |identification: u32| Packet {
        source: NodeAddress(50),
        sender: NodeAddress(50),
        destination: NodeAddress(60),
        receiver: address(0),
        hops_left: 9,
        lifetime_tenths: u16::MAX,
        identification,
        ..Packet::default()
    };
    (0..1000).for_each(|number| world.hear(0, frame(&packet(number))));
    assert_eq!(world.nodes[0].engine.held_packets(), 100, "a header has 36 octets");
}
