//! Neighbours that announce much and send little, and bundles from the future.

use super::forwarding::{EARTH, HOUR, ORBITER, chain, chain_with, random};
use super::world::{Payload, World};
use crate::bp::agent::EvictionPolicy;
use crate::bp::{
    Bundle, Content, CreationTimestamp, DtnTime, Fragment, Head, PrimaryBlock, QualityOfService,
};
use crate::service::{AppIndication, Priority, RefuseReason, SendId, SendOptions};
use crate::time::Duration;
use bytes::Bytes;

fn head(world: &World, sequence: u64, ahead_ms: u64, length: u64) -> Head {
    let now = world.agent(ORBITER).time.clock.dtn_ms(world.now).expect("it has a clock");
    let timestamp = CreationTimestamp { time: DtnTime(now + ahead_ms), sequence };
    let [source, destination] = ["dtn://neighbour/", "dtn://nowhere/x"].map(|eid| eid.parse().unwrap());
    Head::new(PrimaryBlock::new(destination, source, timestamp, 3_600_000), length)
}

/// Injects the beginning of a bundle that never continues.
fn announce(world: &mut World, head: &Head) {
    world.inject_beginning(ORBITER, &head.to_bytes());
}

#[test]
fn an_announced_bundle_takes_no_place_before_its_bytes_come() {
    let mut world = chain_with(1, |config| {
        config.limits.store_bytes_max = 10_000_000;
        config.limits.own_share_percent = 0;
        config.limits.neighbour_share_percent = 100;
        config.limits.source_share_percent = 100;
    });
    world.start_all();
    world.run_for(Duration::from_secs(1));
    for sequence in 0..5 {
        let head = head(&world, sequence, 0, 5_000_000);
        announce(&mut world, &head);
    }
    assert_eq!(world.refusals(), []);
    assert_eq!(world.agent(ORBITER).bundles(world.now).count(), 5);
    // Bundles that arrive in the meantime have space.
    let honest = Bundle::new(head(&world, 9, 0, 3_000_000), random(9, 3_000_000));
    world.inject(ORBITER, &honest.to_bytes(), 100_000);
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.refusals(), []);
    assert_eq!(world.agent(ORBITER).counters().received, 1);
    // A bundle that cannot fit is refused at its beginning, or when the space is used up.
    let late = Bundle::new(head(&world, 10, 0, 5_000_000), random(9, 5_000_000));
    world.inject(ORBITER, &late.to_bytes(), 100_000);
    assert_eq!(world.refusals(), [RefuseReason::NoResources]);
}

#[test]
fn an_announced_urgent_bundle_evicts_nothing_before_its_bytes_come() {
    let mut world = chain_with(1, |config| {
        config.limits.store_bytes_max = 10_000_000;
        config.limits.own_share_percent = 0;
        config.limits.neighbour_share_percent = 100;
        config.limits.source_share_percent = 100;
        config.evict = EvictionPolicy::LowestPriority;
    });
    world.start_all();
    world.run_for(Duration::from_secs(1));
    for sequence in 0..8 {
        let honest = Bundle::new(head(&world, sequence, 0, 1_000_000), random(9, 1_000_000));
        world.inject(ORBITER, &honest.to_bytes(), 100_000);
    }
    world.run_for(Duration::from_secs(60));
    let mut urgent = head(&world, 100, 0, 9_000_000);
    urgent.set(&Content::QualityOfService(QualityOfService::from(Priority::Expedited)));
    announce(&mut world, &urgent);
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.agent(ORBITER).counters().deleted_evicted, 0);
    assert_eq!(world.agent(ORBITER).counters().received, 8);
}

#[test]
fn a_bundle_from_the_future_lives_as_long_as_its_lifetime() {
    let mut world = chain(1);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let ten_years = 10 * 365 * 86_400_000;
    let future = Bundle::new(head(&world, 1, ten_years, 10), random(1, 10));
    // A little ahead, within the permitted clock difference.
    let soon = Bundle::new(head(&world, 2, 1_800_000, 10), random(1, 10));
    world.inject(ORBITER, &future.to_bytes(), 1000);
    world.inject(ORBITER, &soon.to_bytes(), 1000);
    world.run_for(Duration::from_secs(60));
    let counters = *world.agent(ORBITER).counters();
    assert_eq!((counters.received, counters.received_from_future), (2, 1));
    world.run_for(HOUR);
    assert_eq!(world.agent(ORBITER).counters().deleted_expired, 1);
    world.run_for(HOUR);
    assert_eq!(world.agent(ORBITER).counters().deleted_expired, 2);
}

#[test]
fn very_many_parts_of_a_bundle_for_elsewhere_pass() {
    let mut world = chain(1);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let plain = head(&world, 1, 0, 1);
    for part in 0..3_000 {
        let mut head = plain.clone();
        head.primary.fragment = Some(Fragment { offset: 2 * part, total_length: 10_000 });
        world.inject(ORBITER, &Bundle::new(head, Bytes::from_static(b"x")).to_bytes(), 1000);
    }
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.agent(ORBITER).counters().received, 3_000);
}

/// An application that has lost the record of a send in a crash sends the bundle again with the same bundle
/// ID.
#[test]
fn the_same_bundle_sent_again_is_delivered_once() {
    for crash in [false, true] {
        let mut world = chain(3);
        world.start_all();
        let now = world.agent(ORBITER).time.clock.dtn_ms(world.now).expect("it has a clock");
        let payload = random(3, 5_000);
        // To the node itself, and to another node.
        for (send, to) in [(1, "dtn://orbiter/in"), (2, "dtn://earth/in")] {
            let options =
                SendOptions { created: Some((now, 1 << 52 | send).into()), ..SendOptions::default() };
            for again in 0..3 {
                let number = 10 * send + again;
                world.send(ORBITER, number, to, Payload::Given(payload.clone()), options.clone());
                world.run_for(Duration::from_secs(30));
                assert_eq!(
                    world.nodes[ORBITER].user.ended[&SendId(number)],
                    AppIndication::Sent { send: SendId(number) },
                );
                if crash {
                    world.crash(ORBITER);
                    world.start(ORBITER);
                }
            }
        }
        world.run_for(HOUR);
        for node in [ORBITER, EARTH] {
            assert_eq!(world.nodes[node].user.inbox.len(), 1, "crash {crash}");
            assert_eq!(world.agent(node).bundles(world.now).count(), 0);
        }
    }
}
