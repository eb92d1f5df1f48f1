//! Names and properties that an attacker has chosen so that they collide with those of another node, and
//! tombstones that outlive everything else on disk.

use super::super::{RouterChoice, RoutingConfig};
use super::forwarding::{MINUTE, random};
use super::strangers::{head, whole};
use super::world::World;
use crate::service::{AppRequest, RefuseReason};
use bytes::Bytes;

fn bob(seed: u64, endpoints: &[&str]) -> World {
    let mut world = World::new(seed);
    world.node("bob", |_| {});
    world.start_all();
    for endpoint in endpoints {
        world.tell(0, AppRequest::Register { endpoint: (*endpoint).into() });
    }
    world.run_for(MINUTE);
    world
}

/// The attacker's endpoint has the same FNV-1a hash as the true one for one in 128 initial values; enough
/// secrets are tried to show a collision.
#[test]
fn no_endpoint_can_be_chosen_that_stands_for_another() {
    let endpoints = ["dtn://bob/reports/daily/north-field", "dtn://bob/ItV4No8daSYYs1Yc73uxcxQxg"];
    let payload = random(1, 1_000);
    for seed in 0..400 {
        let mut world = bob(seed, &endpoints);
        let mut head = head(&world, "dtn://alice/x", endpoints[0], 1);
        head.primary.lifetime_ms = 86_400_000;
        for endpoint in [endpoints[1], endpoints[0]] {
            head.primary.destination = endpoint.parse().unwrap();
            world.inject(0, &whole(&head, &payload), 1_000);
            world.run_for(MINUTE);
        }
        let delivered = world.agent(0).counters().delivered;
        assert_eq!((world.refusals(), delivered), (vec![], 2), "seed {seed}");
    }
}

/// The attacker's name has the same FNV-1a hash as that of the node for which it would be mistaken.
#[test]
fn no_name_can_be_chosen_that_keeps_a_copy_from_another_node() {
    let mut world = World::new(1);
    let routing = RoutingConfig { router: RouterChoice::Epidemic, ..RoutingConfig::default() };
    for name in ["a", "Kt6~RkCnB.JcN~gkut6RWZtxI", "bob"] {
        world.node(name, |config| config.routing = routing.clone());
    }
    world.cable(0, 1);
    world.cable(0, 2);
    world.start_all();
    world.cut(0);
    world.cut(1);
    let head = head(&world, "dtn://alice/x", "dtn://z/in", 1);
    world.inject(0, &whole(&head, &random(1, 1_000)), 1_000);
    for cable in [0, 1] {
        world.run_for(MINUTE);
        world.heal(cable);
        world.run_for(MINUTE);
        world.cut(cable);
    }
    assert_eq!([1, 2].map(|node| world.agent(node).bundles(world.now).count()), [1, 1]);
}

/// The names have the maximum length; the last boot record, which contains the store's secret, is present or
/// lost.
#[test]
fn what_was_taken_is_known_after_a_start_whatever_else_is_lost() {
    let long = |name: &str| format!("dtn://{name}/{}", "x".repeat(1_000));
    let (source, endpoint) = (long("alice"), long("bob"));
    for loses in [false, true] {
        let mut world = bob(1, &[&endpoint]);
        let message = whole(&head(&world, &source, &endpoint, 1), &Bytes::from_static(b"hello"));
        world.inject(0, &message, 1_000);
        world.run_for(MINUTE);
        assert_eq!(world.nodes[0].user.inbox.len(), 1);
        let boot = world.agent(0).startup.clock_record();
        world.crash(0);
        if loses {
            assert!(world.nodes[0].disk.records.remove(&boot).is_some());
        }
        world.start(0);
        world.run_for(MINUTE);
        world.inject(0, &message, 1_000);
        world.run_for(MINUTE);
        assert_eq!(world.refusals(), [RefuseReason::Completed], "the record is lost: {loses}");
    }
}
