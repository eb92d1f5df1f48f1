//! Whatever the line does, the bytes arrive complete and in order, and everything ends once the faults stop.

use super::harness::{World, pattern};
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::CloseReason;
use crate::tcp::config::Profile;
use crate::time::{Duration, Instant};

const FILE_BYTES: usize = 150_000;

/// A world with a line that loses, duplicates and delays frames; the seed sets the rates.
fn hostile(profile: &Profile, seed: u64) -> World {
    let mut rng = Rng::new(seed).fork("line");
    let (loss, repetition) = (rng.unit() * 0.2, rng.unit() * 0.1);
    let delay_ms = 1 + rng.below(1500);
    let spread_ms = if rng.chance(0.5) { 0 } else { rng.below(delay_ms) };
    let rate_bps = 20_000 + rng.below(5_000_000);
    let mut world =
        World::of([profile.clone(), profile.clone()], rate_bps, Duration::from_millis(delay_ms), seed);
    world.fate = Box::new(move |_, _| {
        let mut arrivals = Vec::new();
        let copies = if rng.chance(loss) { 0 } else { 1 + u32::from(rng.chance(repetition)) };
        for _ in 0..copies {
            let extra = if spread_ms > 0 { rng.below(spread_ms) } else { 0 };
            arrivals.push(Duration::from_millis(delay_ms + extra));
        }
        arrivals
    });
    world
}

fn survives(profile: &Profile, seed: u64) {
    let mut world = hostile(profile, seed);
    let mut rng = Rng::new(seed).fork("user");
    let file = pattern(FILE_BYTES);
    // Written in pieces of all sizes, so that segments and writes have different boundaries.
    for side in 0..2 {
        let mut rest = file.clone();
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(1 + rng.below(9000) as usize));
            world.users[side].to_write.push_back(piece);
        }
        world.users[side].close_when_written = true;
    }
    world.connect();
    let limit = Instant::from_secs(20_000);
    while !world.users.iter().all(|user| user.closed.is_some()) {
        assert!(world.now < limit, "seed {seed}: not over:\n{}", world.story());
        if rng.chance(0.05) {
            // Early and repeated timeouts are harmless.
            let side = rng.below(2) as usize;
            let now = world.now;
            world.hosts[side].handle_timeout(now);
            world.settle(side);
        }
        if !world.step() {
            break;
        }
    }
    for side in 0..2 {
        let reason = world.users[side].closed.map(|(_, reason)| reason);
        // The very last acknowledgement may be lost until the peer's connection no longer exists.
        let gone = matches!(reason, Some(CloseReason::Reset | CloseReason::TimedOut));
        assert!(reason == Some(CloseReason::Finished) || gone, "seed {seed}, side {side}: {reason:?}");
        assert_eq!(world.received(side).len(), FILE_BYTES, "seed {seed}, side {side}\n{}", world.story());
        assert!(world.received(side) == file, "seed {seed}, side {side}: the bytes differ");
    }
    world.run_to_quiet(limit);
    assert!(world.hosts.iter().all(|host| host.connections().count() == 0), "seed {seed}");
    for side in 0..2 {
        let shares = world.shares[side];
        assert_eq!(shares.payload as usize, FILE_BYTES, "seed {seed}: each byte is payload once");
    }
}

#[test]
fn rfc5681_survives() {
    (0..60).for_each(|seed| survives(&Profile::rfc5681(), seed));
}

#[test]
fn linux_2_4_survives() {
    (0..60).for_each(|seed| survives(&Profile::linux_2_4(), seed));
}

#[test]
fn ns3_2010_survives() {
    let profile = Profile { retries: 30, syn_retries: 10, ..Profile::ns3_2010() };
    (0..60).for_each(|seed| survives(&profile, seed));
}

#[test]
fn linux_6_survives() {
    (0..60).for_each(|seed| survives(&Profile::linux_6(), seed));
}

#[test]
fn peers_that_agree_on_little_survive() {
    let plain = Profile { sack: false, timestamps: false, window_scaling: false, ..Profile::linux_6() };
    (0..20).for_each(|seed| survives(&plain, seed));
    let small = Profile { receive_buffer_bytes: 2000, send_buffer_bytes: 3000, ..Profile::rfc5681() };
    (0..20).for_each(|seed| survives(&small, seed));
    let wide = Profile { receive_buffer_bytes: 4_000_000, ..Profile::linux_6() };
    (0..20).for_each(|seed| survives(&wide, seed));
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let tell = || {
        let mut world = hostile(&Profile::linux_6(), 5);
        world.users[0].close_when_written = true;
        world.users[0].to_write.push_back(pattern(FILE_BYTES));
        world.connect();
        world.run_to_quiet(Instant::from_secs(5000));
        world.timeline
    };
    assert_eq!(tell(), tell());
}
