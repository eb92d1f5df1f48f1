//! Fragments that a relay forwards while it receives the next ones.

use super::super::{Config, LinkConfig};
use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain_with, has_arrived, random};
use super::world::{Payload, World};
use crate::service::{AppIndication, LinkId, SendId, SendOptions};
use crate::time::Duration;

/// Sends one bundle from the moon to earth.
fn sent(configure: impl Fn(&mut Config), length: usize, options: &SendOptions) -> World {
    let mut world = chain_with(3, configure);
    for cable in &mut world.cables {
        cable.byte_time = Duration::from_micros(100);
    }
    world.start_all();
    let payload = random(8, length);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), options.clone());
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    world.run_for(MINUTE);
    assert_eq!(world.nodes[MOON].user.ended[&SendId(1)], AppIndication::Sent { send: SendId(1) });
    assert_eq!(world.nodes[EARTH].user.inbox.len(), 1);
    for node in [MOON, ORBITER, EARTH] {
        assert_eq!(world.agent(node).bundles(world.now).count(), 0, "node {node}: something is left over");
    }
    world
}

/// Lengths of the payloads that crossed a cable.
fn lengths(world: &World, cable: usize) -> Vec<u64> {
    world.cables[cable].heads.iter().map(|head| head.payload.length).collect()
}

fn one_relay(config: &mut Config) {
    config.relays = 1;
}

#[test]
fn a_relay_forwards_fragments_of_equal_length_as_they_are() {
    let world = sent(one_relay, 200_000, &SendOptions::default());
    let lengths = [0, 1].map(|cable| lengths(&world, cable));
    assert_eq!(lengths[0], lengths[1], "no fragment is divided again");
    let (least, most) = (lengths[0].iter().min().unwrap(), lengths[0].iter().max().unwrap());
    assert!((20..80).contains(&lengths[0].len()) && most - least < 100, "{lengths:?}");
    assert_eq!(lengths[0].iter().sum::<u64>(), 200_000, "nothing crosses twice");
}

#[test]
fn fragments_arrive_earlier_than_a_whole_bundle() {
    let time_of = |configure: fn(&mut Config)| {
        let mut world = chain_with(5, configure);
        for cable in &mut world.cables {
            cable.byte_time = Duration::from_micros(100);
        }
        world.start_all();
        let begin = world.now;
        world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(2, 300_000)), SendOptions::default());
        world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
        world.now.saturating_since(begin)
    };
    let (whole, fragments) = (time_of(|_| {}), time_of(one_relay));
    // 30 s a hop.
    assert!(whole >= Duration::from_secs(60), "{whole:?}");
    assert!(fragments <= Duration::from_secs(33), "{fragments:?}");
}

#[test]
fn the_length_of_fragments_weighs_headers_against_the_wait_of_relays() {
    let number = |length, relays| {
        let world = sent(|config: &mut Config| config.relays = relays, length, &SendOptions::default());
        lengths(&world, 0).len()
    };
    assert_eq!([number(300, 0), number(200_000, 0)], [1, 1]);
    assert_eq!(number(50, 1), 1, "a header would be longer");
    let (few, more, most) = (number(50_000, 1), number(200_000, 1), number(200_000, 4));
    assert!(
        more.abs_diff(2 * few) <= 2 && most.abs_diff(2 * more) <= 2,
        "{few} {more} {most}: by the square root"
    );
    let lossy = |config: &mut Config| (config.relays, config.relay_losses) = (1, 3);
    let world = sent(lossy, 200_000, &SendOptions::default());
    assert!(
        lengths(&world, 0).len().abs_diff(2 * more) <= 2,
        "for each of three lost packets a relay waits again"
    );
}

#[test]
fn what_must_not_be_fragmented_and_links_without_relays_carry_whole_bundles() {
    let options = SendOptions { must_not_fragment: true, ..SendOptions::default() };
    assert_eq!(lengths(&sent(one_relay, 100_000, &options), 0), [100_000]);
    let without = |config: &mut Config| {
        config.relays = 1;
        for link in [0, 1] {
            config.links.push(LinkConfig { link: LinkId(link), relays: Some(0), ..LinkConfig::default() });
        }
    };
    assert_eq!(lengths(&sent(without, 100_000, &SendOptions::default()), 0), [100_000]);
    let with = |config: &mut Config| {
        for link in [0, 1] {
            config.links.push(LinkConfig { link: LinkId(link), relays: Some(2), ..LinkConfig::default() });
        }
    };
    assert!(lengths(&sent(with, 100_000, &SendOptions::default()), 0).len() > 10);
}

#[test]
fn a_destination_reassembles_as_many_fragments_as_are_sent() {
    let few = |config: &mut Config| {
        config.relays = 1;
        config.limits.fragments_max = 5;
    };
    assert_eq!(lengths(&sent(few, 100_000, &SendOptions::default()), 0).len(), 5);
}

#[test]
fn fragments_that_are_refused_together_are_one_refusal() {
    let mut world = chain_with(9, one_relay);
    world.nodes[ORBITER].disk.capacity = Some(20_000);
    for cable in &mut world.cables {
        (cable.delay, cable.window) = (Duration::from_secs(1), 200_000);
    }
    world.start_all();
    let payload = random(9, 200_000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), SendOptions::default());
    world.cables[1].plugged = false;
    world.run_for(Duration::from_secs(20));
    let refused = world.agent(ORBITER).counters().refused_no_resources;
    let refusals = world.agent(MOON).bundles(world.now).map(|bundle| bundle.refusals).max();
    assert!(
        refused > 10 && refusals.is_some_and(|steps| (1..=4).contains(&steps)),
        "{refused}, {refusals:?}"
    );
    world.nodes[ORBITER].disk.capacity = None;
    world.heal(1);
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
}

#[test]
fn the_number_of_fragments_leaves_room_for_others() {
    let many = |config: &mut Config| (config.relays, config.relay_losses) = (1, u32::MAX);
    let world = sent(many, 20_000, &SendOptions::default());
    let lengths = lengths(&world, 0);
    assert!((3_000..=4_096).contains(&lengths.len()), "{} fragments", lengths.len());
}
