//! Clocks that jump: lifetimes follow the elapsed time until the operator confirms the clock.

use super::super::Counters;
use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain, has_arrived, random};
use super::world::{Payload, World};
use crate::service::{ManagementIndication, ManagementRequest, SendOptions};
use crate::time::Duration;

const TWO_DAYS_MS: i64 = 2 * 86_400_000;

/// A bundle for earth with a lifetime of an hour waits at the orbiter.
fn waiting(seed: u64) -> World {
    waiting_in(chain(seed), seed)
}

fn waiting_in(mut world: World, seed: u64) -> World {
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.cut(1);
    let options = SendOptions { lifetime: Duration::from_secs(3600), ..SendOptions::default() };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(seed, 100)), options);
    world.run_for(MINUTE);
    assert_eq!(held(&world), 1);
    world
}

fn held(world: &World) -> usize {
    world.agent(ORBITER).bundles(world.now).count()
}

fn expired(world: &World) -> u64 {
    let Counters { deleted_expired, .. } = *world.agent(ORBITER).counters();
    deleted_expired
}

fn turn_clock(world: &mut World, off_ms: i64) {
    world.nodes[ORBITER].clock_ms = Some(off_ms);
    world.tell_clock(ORBITER);
}

fn restart(world: &mut World) {
    world.crash(ORBITER);
    world.start(ORBITER);
    world.run_for(Duration::from_secs(1));
}

fn jumps(world: &World) -> Vec<i64> {
    let jump = |said: &ManagementIndication| match said {
        ManagementIndication::ClockJumped { by_ms } => Some(*by_ms),
        _ => None,
    };
    world.nodes[ORBITER].user.events.iter().filter_map(jump).collect()
}

#[test]
fn a_clock_two_days_ahead_deletes_nothing() {
    for restarts in [0, 1, 3] {
        let mut world = waiting(1);
        turn_clock(&mut world, TWO_DAYS_MS);
        assert_eq!(jumps(&world), [TWO_DAYS_MS]);
        assert_eq!(world.agent(ORBITER).clock_ahead_ms(), TWO_DAYS_MS);
        for _ in 0..restarts {
            world.run_for(10 * MINUTE);
            restart(&mut world);
            assert_eq!(world.agent(ORBITER).clock_ahead_ms(), TWO_DAYS_MS);
        }
        world.run_for(10 * MINUTE);
        assert_eq!((held(&world), expired(&world)), (1, 0), "{restarts} restarts");
        // Its lifetime is one hour of elapsed time.
        world.run_for((50 - 10 * restarts) * MINUTE);
        assert_eq!((held(&world), expired(&world)), (0, 1), "{restarts} restarts");
    }
}

#[test]
fn a_clock_that_goes_back_keeps_nothing_longer() {
    for restarted in [false, true] {
        let mut world = waiting(2);
        turn_clock(&mut world, -TWO_DAYS_MS);
        if restarted {
            restart(&mut world);
        }
        world.run_for(30 * MINUTE);
        assert_eq!(held(&world), 1);
        world.run_for(30 * MINUTE);
        assert_eq!((held(&world), expired(&world)), (0, 1), "restarted: {restarted}");
    }
}

#[test]
fn the_operator_says_that_the_clock_is_right() {
    let mut world = waiting(3);
    turn_clock(&mut world, TWO_DAYS_MS);
    world.run_for(MINUTE);
    assert_eq!(held(&world), 1);
    world.request(ORBITER, ManagementRequest::TrustClock);
    world.run_for(Duration::from_secs(1));
    assert_eq!((held(&world), world.agent(ORBITER).clock_ahead_ms()), (0, 0));
    // The confirmation survives a restart, too.
    restart(&mut world);
    assert_eq!(world.agent(ORBITER).clock_ahead_ms(), 0);
}

#[test]
fn a_clock_that_is_back_is_right_again() {
    let mut world = waiting(4);
    turn_clock(&mut world, TWO_DAYS_MS);
    turn_clock(&mut world, 300);
    assert_eq!(world.agent(ORBITER).clock_ahead_ms(), 0);
    assert_eq!(jumps(&world).len(), 2);
    // Small steps are not jumps.
    for step in 1..=10 {
        turn_clock(&mut world, 50_000 * step);
    }
    assert_eq!((jumps(&world).len(), world.agent(ORBITER).clock_ahead_ms()), (2, 0));
    world.heal(1);
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, EARTH, 1));
}

#[test]
fn what_comes_and_what_is_made_after_a_jump_goes_its_way() {
    for off_ms in [TWO_DAYS_MS, -TWO_DAYS_MS] {
        let mut world = waiting(5);
        turn_clock(&mut world, off_ms);
        let options = SendOptions { lifetime: Duration::from_secs(600), ..SendOptions::default() };
        world.send(MOON, 2, "dtn://earth/in", Payload::Given(random(6, 100)), options.clone());
        world.send(ORBITER, 3, "dtn://earth/in", Payload::Given(random(7, 100)), options);
        world.run_for(5 * MINUTE);
        assert_eq!(held(&world), 3, "off by {off_ms}");
        world.heal(1);
        world.run_until(MINUTE, "delivery", |world| has_arrived(world, EARTH, 3));
    }
}

/// A jump while the node is not running is detected by a steady clock that keeps running.
#[test]
fn a_jump_between_two_starts_shows() {
    let mut world = chain(6);
    world.nodes[ORBITER].has_steady_clock = true;
    let mut world = waiting_in(world, 6);
    world.crash(ORBITER);
    world.run_for(10 * MINUTE);
    world.nodes[ORBITER].clock_ms = Some(TWO_DAYS_MS);
    world.start(ORBITER);
    world.run_for(MINUTE);
    assert_eq!(held(&world), 1);
    assert!(world.agent(ORBITER).clock_ahead_ms().abs_diff(TWO_DAYS_MS) < 1000);
    world.run_for(HOUR);
    assert_eq!(held(&world), 0);
}

/// The clock was two days ahead when the node started, undetected; bundles that arrive after its correction
/// have their full lifetime.
#[test]
fn a_wrong_clock_that_is_put_right_turns_nothing_away_that_may_be_alive() {
    for hours in [1, 72] {
        for (restarts, trusted) in [(0, false), (2, false), (0, true), (2, true)] {
            let what = format!("{hours} h, {restarts} restarts, trusted: {trusted}");
            let mut world = chain(7);
            world.nodes[ORBITER].clock_ms = Some(TWO_DAYS_MS);
            world.start_all();
            world.run_for(Duration::from_secs(1));
            world.cut(1);
            turn_clock(&mut world, 0);
            assert_eq!(jumps(&world), [-TWO_DAYS_MS]);
            let lifetime = hours * HOUR;
            let options = SendOptions { lifetime, ..SendOptions::default() };
            world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(7, 100)), options);
            world.run_for(MINUTE);
            assert_eq!((held(&world), expired(&world)), (1, 0), "{what}");
            if trusted {
                world.request(ORBITER, ManagementRequest::TrustClock);
            }
            for _ in 0..restarts {
                restart(&mut world);
            }
            world.run_for(lifetime - 10 * MINUTE);
            assert_eq!((held(&world), expired(&world)), (1, 0), "{what}");
            world.run_for(10 * MINUTE);
            assert_eq!((held(&world), expired(&world)), (0, 1), "{what}");
        }
    }
}

/// A bundle whose expiry depends only on its age expires at the right time after the confirmation of the
/// clock and a restart.
#[test]
fn what_ends_by_its_age_outlives_a_trusted_clock_and_a_restart() {
    for off_ms in [TWO_DAYS_MS, -TWO_DAYS_MS] {
        let mut world = chain(8);
        world.nodes[MOON].clock_ms = None;
        world.start_all();
        world.run_for(Duration::from_secs(1));
        world.cut(1);
        turn_clock(&mut world, off_ms);
        let options = SendOptions { lifetime: HOUR, ..SendOptions::default() };
        world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(8, 100)), options);
        world.run_for(20 * MINUTE);
        world.request(ORBITER, ManagementRequest::TrustClock);
        for _ in 0..2 {
            world.run_for(10 * MINUTE);
            restart(&mut world);
            assert_eq!((held(&world), expired(&world)), (1, 0), "off by {off_ms}");
        }
        world.run_for(19 * MINUTE);
        assert_eq!((held(&world), expired(&world)), (1, 0), "off by {off_ms}");
        world.run_for(2 * MINUTE);
        assert_eq!((held(&world), expired(&world)), (0, 1), "off by {off_ms}");
    }
}

/// Very many bundles that a start without a clock has found are aged in portions once there is one.
#[test]
fn every_bundle_that_a_start_has_found_is_aged_when_the_clock_comes() {
    const BUNDLES: u64 = 200;
    let mut world = chain(9);
    world.nodes[MOON].clock_ms = None;
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.cut(1);
    let options = SendOptions { lifetime: HOUR, ..SendOptions::default() };
    for number in 0..BUNDLES {
        let payload = Payload::Given(random(number, 100));
        world.send(MOON, number, "dtn://earth/in", payload, options.clone());
    }
    world.run_for(20 * MINUTE);
    assert_eq!(held(&world), BUNDLES as usize);
    world.crash(ORBITER);
    world.nodes[ORBITER].clock_ms = None;
    world.run_for(HOUR);
    world.start(ORBITER);
    world.run_for(MINUTE);
    assert_eq!((held(&world), expired(&world)), (BUNDLES as usize, 0), "nobody knows how long it was down");
    turn_clock(&mut world, 0);
    world.run_for(Duration::from_secs(1));
    assert_eq!((held(&world), expired(&world)), (0, BUNDLES));
}
