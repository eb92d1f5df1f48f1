//! Random scenarios: bundles of all sizes in both directions, cuts at any byte, crashes at any instant, peers
//! with small limits. At the end, every accepted bundle has reached its destination exactly once.

use super::forwarding::{EARTH, HOUR, MOON, ORBITER, chain_with, random};
use super::world::{Payload, World};
use crate::rng::Rng;
use crate::service::{BundleVersion, Priority, SendId, SendOptions};
use crate::time::Duration;

const SENDS: u64 = 10;

fn payload_of(seed: u64, number: u64) -> bytes::Bytes {
    let mut rng = Rng::new(seed).fork(&format!("payload {number}"));
    let length = match rng.below(4) {
        0 => rng.below(4),
        1 => rng.below(200),
        2 => rng.below(4000),
        _ => rng.below(20_000),
    };
    // The number distinguishes payloads that are too short to differ.
    let mut bytes = vec![number as u8];
    bytes.extend_from_slice(&random(seed ^ number << 32, length as usize));
    bytes.into()
}

/// Bytes are damaged only in scenarios without breaks: the CRC of a payload covers complete transfers.
fn worry(world: &mut World, rng: &mut Rng, damage: bool) {
    match rng.below(6) {
        2 if damage => world.cables[rng.below(2) as usize].damage = true,
        _ if damage => {}
        0 => {
            let cable = rng.below(2) as usize;
            let at = world.cables[cable].carried + rng.below(4000);
            world.cables[cable].cut_at = Some((at, Duration::from_millis(rng.below(20_000))));
        }
        1 => {
            let node = rng.below(3) as usize;
            world.crash(node);
            world.run_for(Duration::from_millis(rng.below(3000)));
            world.start(node);
            world.heal(0);
            world.heal(1);
        }
        _ => {}
    }
}

/// Returns how often custody was accepted, released and retried.
fn live(seed: u64, version: BundleVersion, custody: bool, relays: u32) -> [u64; 3] {
    let mut rng = Rng::new(seed).fork("chaos");
    let mut world = chain_with(seed, |config| {
        config.relays = relays;
        let accepts = custody && Rng::new(seed).fork(&config.node).chance(0.7);
        config.custody.accept_from = if accepts { vec!["*".into()] } else { Vec::new() };
        // Often too short, so that bundles being sent are resent.
        let timer_ms = 50 + Rng::new(seed).fork("timer").below(5000);
        config.custody.timer_min = Duration::from_millis(timer_ms);
        config.custody.timer_max = Duration::from_secs(120);
    });
    world.strict = false;
    for cable in 0..2 {
        let cable = &mut world.cables[cable];
        cable.window = 1 + rng.below(5000);
        cable.delay = Duration::from_millis(rng.below(500));
        cable.interleave = rng.chance(0.3);
        cable.transfer_bytes_max = if rng.chance(0.3) { 400 + rng.below(3000) } else { u64::MAX };
    }
    for node in &mut world.nodes {
        node.disk.latency = Duration::from_millis(rng.below(30));
        node.clock_ms = if rng.chance(0.8) { Some(0) } else { None };
    }
    world.start_all();
    // Version 6 has no checksum that would detect the damage.
    let damage = version == BundleVersion::V7 && rng.chance(0.2);
    let mut accepted = Vec::new();
    for number in 0..SENDS {
        let (from, to) = if number % 3 == 0 { (EARTH, "dtn://moon/in") } else { (MOON, "dtn://earth/in") };
        let priority = [Priority::Bulk, Priority::Normal, Priority::Expedited][rng.below(3) as usize];
        let small = payload_of(seed, number).len() < 250;
        let must_not_fragment = small && rng.chance(0.3);
        let (version, custody) = (Some(version), custody && rng.chance(0.8));
        let options = SendOptions { priority, must_not_fragment, version, custody, ..SendOptions::default() };
        world.send(from, number, to, Payload::Given(payload_of(seed, number)), options);
        world.run_for(Duration::from_millis(rng.below(3000)));
        accepted.extend(world.nodes.iter().flat_map(|node| node.user.accepted.iter().copied()));
        worry(&mut world, &mut rng, damage);
    }
    accepted.extend(world.nodes.iter().flat_map(|node| node.user.accepted.iter().copied()));
    accepted.sort();
    accepted.dedup();
    for cable in 0..2 {
        world.cables[cable].cut_at = None;
        world.cables[cable].damage = false;
        world.heal(cable);
    }
    world.run_for(HOUR);
    let mut arrived: Vec<SendId> = Vec::new();
    for (_, _, bytes, _) in [MOON, EARTH].iter().flat_map(|node| &world.nodes[*node].user.inbox) {
        let number = u64::from(bytes[0]);
        assert_eq!(payload_of(seed, number), *bytes, "seed {seed}: bundle {number} is damaged");
        arrived.push(SendId(number));
    }
    arrived.sort();
    let count = arrived.len();
    arrived.dedup();
    assert_eq!(arrived.len(), count, "seed {seed}: delivered twice");
    for send in accepted {
        assert!(arrived.contains(&send), "seed {seed}: {send:?} was accepted and is lost");
    }
    for node in [MOON, ORBITER, EARTH] {
        let left: Vec<_> = world.agent(node).bundles(world.now).collect();
        assert!(left.is_empty(), "seed {seed}, node {node}: {left:?}");
        assert_eq!(world.agent(node).buffered_bytes(), 0);
    }
    let mut sums = [0; 3];
    for node in [MOON, ORBITER, EARTH] {
        let counters = world.agent(node).counters();
        let counted = [counters.custody_accepted, counters.custody_released, counters.custody_timeouts];
        sums.iter_mut().zip(counted).for_each(|(sum, counted)| *sum += counted);
    }
    sums
}

#[test]
fn nothing_accepted_is_lost_in_many_worlds() {
    for seed in 0..400 {
        live(seed, BundleVersion::V7, false, 0);
    }
}

#[test]
fn nothing_accepted_is_lost_in_fragments_that_relays_forward_while_they_receive_others() {
    for seed in 0..1000 {
        live(seed, if seed % 4 == 0 { BundleVersion::V6 } else { BundleVersion::V7 }, false, 1);
    }
}

#[test]
fn nothing_accepted_is_lost_in_many_worlds_of_version_6() {
    for seed in 0..400 {
        live(seed, BundleVersion::V6, false, 0);
    }
}

#[test]
fn custody_ends_with_delivery_in_many_worlds() {
    let mut sums = [0; 3];
    for seed in 0..1000 {
        let counted = live(seed, BundleVersion::V6, true, 0);
        sums.iter_mut().zip(counted).for_each(|(sum, counted)| *sum += counted);
    }
    let [accepted, released, timeouts] = sums;
    assert!(accepted > 5000 && released > 5000 && timeouts > 200, "{sums:?}: the worlds were too kind");
}
