//! Packets of which several nodes have copies, and copies that arrive damaged.

use super::world::{World, flight};
use crate::aeronp::wire::PacketType;
use bytes::Bytes;

/// Damages all data packets from one node to another.
fn damage(world: &mut World, bad: (usize, usize)) {
    world.fate = Box::new(move |from, to, packet, bytes| {
        if (from, to) != bad || packet.kind != PacketType::Data {
            return Some(bytes);
        }
        let mut bytes = bytes.to_vec();
        *bytes.last_mut().expect("a payload") ^= 1;
        Some(bytes.into())
    });
}

/// Payloads that arrived, with their damage.
fn arrived(world: &World) -> Vec<(Bytes, bool)> {
    world.arrived.iter().map(|(_, _, payload, damaged)| (payload.clone(), *damaged)).collect()
}

#[test]
fn an_intact_copy_is_delivered_after_a_damaged_one() {
    // Two relays between source and destination; the link of the first one to the destination is bad.
    let flights = [flight(1800.0, 0.0), flight(900.0, 0.0), flight(901.0, 0.0), flight(0.0, 0.0)];
    let mut world = World::spreading(&flights, 8, |_, _| {});
    [0, 3].into_iter().for_each(|node| world.join(node, true));
    damage(&mut world, (1, 3));
    world.run_until(3);
    assert!(world.send(0, b"bits", 1));
    world.run_until(6);
    let arrived = arrived(&world);
    assert_eq!(arrived.iter().filter(|(_, damaged)| *damaged).count(), 1);
    assert_eq!(arrived.last(), Some(&(Bytes::from_static(b"bits"), false)), "{arrived:?}");
    assert_eq!(arrived.len(), 2, "of each kind one");
}

#[test]
fn a_relay_replaces_a_damaged_copy_by_an_intact_one() {
    // The link of the source to the first relay is bad. The second relay hears both, and the destination, which comes into
    // range of the first relay at t = 20 s, never.
    let flights = [flight(1800.0, 0.0), flight(900.0, 0.0), flight(1000.0, 0.0), flight(-2100.0, 100.0)];
    let mut world = World::spreading(&flights, 8, |_, _| {});
    [0, 3].into_iter().for_each(|node| world.join(node, true));
    damage(&mut world, (0, 1));
    world.run_until(3);
    assert!(world.send(0, b"bits", 1));
    world.run_until(6);
    assert_eq!(world.counters(1).relayed, 2, "a damaged one and an intact one");
    assert_eq!(world.nodes[1].engine.held_packets(), 1);
    world.run_until(24);
    assert_eq!(arrived(&world), [(Bytes::from_static(b"bits"), false)]);
}

#[test]
fn copies_to_a_node_that_has_the_packet_are_kept() {
    // All relays hear each other, and none hears the destination.
    let flights: Vec<_> = [0.0, 100.0, 200.0, 300.0, 9000.0].map(|x_m| flight(x_m, 0.0)).into();
    let mut world = World::spreading(&flights, 16, |_, _| {});
    world.run_until(3);
    assert!(world.send(0, b"spray", 1));
    world.run_until(60);
    let duplicates: u64 = (0..4).map(|node| world.counters(node).duplicates).sum();
    assert!(duplicates > 0, "some copies go to a node that has one");
    assert_eq!((0..4).map(|node| world.nodes[node].engine.held_copies()).sum::<u32>(), 16);
}

#[test]
fn a_lost_acknowledgement_makes_no_copies() {
    let mut world =
        World::spreading(&[flight(0.0, 0.0), flight(100.0, 0.0), flight(9000.0, 0.0)], 8, |_, _| {});
    let mut lost = 2;
    world.fate = Box::new(move |_, _, packet, bytes| {
        let is_lost = packet.kind == PacketType::Acknowledgement && lost > 0;
        lost -= u32::from(is_lost);
        (!is_lost).then_some(bytes)
    });
    world.run_until(3);
    assert!(world.send(0, b"spray", 1));
    world.run_until(60);
    assert!(world.counters(0).data_repeated > 0);
    assert_eq!([0, 1].map(|node| world.nodes[node].engine.held_copies()), [4, 4]);
}

#[test]
fn a_full_queue_drops_copies_that_another_node_has_and_never_the_only_one() {
    let payload: &[u8] = &[7; 464];
    let flights = [flight(0.0, 0.0), flight(1500.0, -20.0), flight(9000.0, 0.0)];
    let mut world = World::spreading(&flights, 8, |_, config| {
        (config.frame_bytes_max, config.queue_bytes_max) = (540, 2_500);
        config.endpoints[0].packets_max = 100;
    });
    let sent = (0..20).filter(|token| world.send(0, payload, *token)).count();
    assert_eq!((sent, world.nodes[0].engine.held_packets()), (4, 4), "there is no room for others");
    assert_eq!(world.counters(0).queue_full, 0);
    // The other node is in range from t = 25 s on. It has a packet of its own, and accepts what fits beside it.
    assert!(world.send(1, payload, 100));
    world.run_until(40);
    assert!(world.send(0, payload, 101), "those of which it has a copy give way");
    assert!(world.counters(0).queue_full > 0);
    let held = [0, 1].map(|node| world.nodes[node].engine.held_packets());
    assert!(held.iter().all(|held| *held <= 5), "{held:?}");
}
