//! A relay whose disk is slow and fills up at any byte while no bundle can leave, and whose power fails at
//! any time: every accepted bundle arrives once there is a next hop.

use super::forwarding::{EARTH, HOUR, MOON, ORBITER, chain_with, random};
use super::world::{Payload, World};
use crate::rng::Rng;
use crate::service::SendOptions;
use crate::time::Duration;
use std::collections::BTreeSet;

const SENDS: u64 = 6;

fn payload_of(seed: u64, number: u64) -> bytes::Bytes {
    let length = Rng::new(seed).fork(&format!("length {number}")).below(12_000);
    let mut bytes = vec![number as u8];
    bytes.extend_from_slice(&random(seed ^ number << 32, length as usize));
    bytes.into()
}

/// Returns how often the relay refused a bundle, and how often it had to cut one that it had begun to
/// acknowledge.
fn live(seed: u64) -> [u64; 2] {
    let mut rng = Rng::new(seed).fork("full");
    let mut world = chain_with(seed, |config| {
        config.backoff_min = Duration::from_millis(50);
        config.backoff_max = Duration::from_millis(2000);
    });
    world.strict = false;
    for cable in &mut world.cables {
        cable.window = 200 + rng.below(20_000);
        cable.delay = Duration::from_millis(rng.below(300));
    }
    world.cables[1].plugged = false;
    let disk = &mut world.nodes[ORBITER].disk;
    disk.capacity = Some(500 + rng.below(40_000));
    disk.spare = if rng.chance(0.5) { 2000 } else { 0 };
    disk.latency = Duration::from_millis(if rng.chance(0.5) { rng.below(30) } else { rng.below(2000) });
    world.start_all();
    for number in 0..SENDS {
        let payload = Payload::Given(payload_of(seed, number));
        world.send(MOON, number, "dtn://earth/in", payload, SendOptions::default());
    }
    let mut refused = 0;
    for _ in 0..1 + rng.below(3) {
        world.run_for(Duration::from_millis(rng.below(12_000)));
        if rng.chance(0.3) {
            world.cut(0);
            world.run_for(Duration::from_millis(rng.below(3000)));
            world.heal(0);
            continue;
        }
        refused += world.agent(ORBITER).counters().refused_no_resources;
        world.crash(ORBITER);
        world.run_for(Duration::from_millis(rng.below(3000)));
        world.start(ORBITER);
        world.heal(0);
    }
    // The disk is still full, but bundles on it can leave.
    world.run_for(Duration::from_millis(rng.below(5000)));
    world.heal(1);
    everything_arrives(&mut world, seed);
    let counters = world.agent(ORBITER).counters();
    [refused + counters.refused_no_resources, counters.received_cut]
}

fn everything_arrives(world: &mut World, seed: u64) {
    world.run_for(HOUR);
    // A bundle that exceeds the disk may wait for ever, but must not be lost.
    let arrived: Vec<u64> =
        world.nodes[EARTH].user.inbox.iter().map(|(_, _, bytes, _)| u64::from(bytes[0])).collect();
    let once: BTreeSet<u64> = arrived.iter().copied().collect();
    assert_eq!(once.len(), arrived.len(), "seed {seed}: delivered twice");
    for (_, _, bytes, _) in &world.nodes[EARTH].user.inbox {
        assert_eq!(payload_of(seed, u64::from(bytes[0])), *bytes, "seed {seed}: damaged");
    }
    if once.len() as u64 == SENDS {
        return;
    }
    world.nodes[ORBITER].disk.capacity = None;
    world.run_for(HOUR);
    let arrived: BTreeSet<u64> =
        world.nodes[EARTH].user.inbox.iter().map(|(_, _, bytes, _)| u64::from(bytes[0])).collect();
    let all: BTreeSet<u64> = (0..SENDS).collect();
    assert_eq!(arrived, all, "seed {seed}: what is missing is lost: {:#?}", world.all_counters());
}

#[test]
fn nothing_is_lost_by_a_disk_that_fills_at_any_byte() {
    let mut sums = [0; 2];
    // The link breaks after the last byte, for which there is then no space.
    for seed in (0..300).chain([1518]) {
        let counted = live(seed);
        sums.iter_mut().zip(counted).for_each(|(sum, counted)| *sum += counted);
    }
    let [refused, cut] = sums;
    assert!(refused > 300 && cut > 30, "{sums:?}: the worlds were too kind");
}
