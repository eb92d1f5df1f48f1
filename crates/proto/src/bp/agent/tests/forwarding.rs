//! Forwarding: over one and several hops, in fragments, through breaks and crashes.

use super::super::RetentionReason;
use super::world::{Payload, World};
use crate::rng::Rng;
use crate::service::{AppIndication, LinkId, ManagementRequest, NextHop, SendFailure, SendId, SendOptions};
use crate::time::Duration;
use bytes::Bytes;
use std::collections::BTreeSet;

pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const MOON: usize = 0;
pub(super) const ORBITER: usize = 1;
pub(super) const EARTH: usize = 2;

pub(super) fn random(seed: u64, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    Rng::new(seed).fill(&mut bytes);
    bytes.into()
}

/// Moon - orbiter - earth, with routes both ways.
pub(super) fn chain(seed: u64) -> World {
    chain_with(seed, |_| {})
}

pub(super) fn chain_with(seed: u64, configure: impl Fn(&mut super::super::Config)) -> World {
    let mut world = World::new(seed);
    for name in ["moon", "orbiter", "earth"] {
        world.node(name, &configure);
    }
    world.cable(MOON, ORBITER);
    world.cable(ORBITER, EARTH);
    world.route(MOON, "*", 0);
    world.route(ORBITER, "dtn://earth/*", 1);
    world.route(ORBITER, "dtn://moon/*", 0);
    world.route(EARTH, "*", 1);
    world
}

pub(super) fn has_arrived(world: &World, node: usize, count: usize) -> bool {
    world.nodes[node].user.inbox.len() >= count
}

#[test]
fn a_bundle_crosses_two_hops() {
    let mut world = chain(1);
    world.start_all();
    let payload = random(5, 100_000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), SendOptions::default());
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, EARTH, 1));
    let (source, _, bytes, _) = &world.nodes[EARTH].user.inbox[0];
    assert_eq!((source.as_str(), bytes.as_slice()), ("dtn://moon/", &payload[..]));
    assert_eq!(world.nodes[MOON].user.ended[&SendId(1)], AppIndication::Sent { send: SendId(1) });
    world.run_for(MINUTE);
    assert_eq!(world.disk_records(MOON), 1, "the boot record");
    assert_eq!(world.disk_records(ORBITER), 1);
    assert_eq!(world.disk_records(EARTH), 2, "and a tombstone");
    assert_eq!(world.agent(EARTH).bundles(world.now).count(), 0);
}

/// Sends one bundle from the moon to earth and cuts the first cable once, at this byte.
fn with_a_cut(at: u64, window: u64, length: usize, options: &SendOptions) -> World {
    let mut world = chain(at);
    world.cables[0].window = window;
    world.cables[0].cut_at = Some((at, Duration::from_secs(30)));
    world.start_all();
    let payload = random(at, length);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), options.clone());
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload, "cut at {at}");
    world.run_for(MINUTE);
    assert_eq!(world.nodes[MOON].user.ended[&SendId(1)], AppIndication::Sent { send: SendId(1) });
    for node in [MOON, ORBITER, EARTH] {
        assert_eq!(world.agent(node).bundles(world.now).count(), 0, "cut at {at}: something is left over");
    }
    world
}

#[test]
fn a_break_at_any_byte_costs_no_acknowledged_byte() {
    let length = 8000;
    let whole = with_a_cut(u64::MAX, 700, length, &SendOptions::default()).cables[0].carried;
    let beginning = 1..160;
    let middle = (160..whole - 40).step_by(487);
    let end = whole - 40..=whole;
    for at in beginning.step_by(11).chain(middle).chain(end.step_by(3)) {
        for window in [97, 700] {
            // The cable itself checks that no acknowledged byte is resent.
            let world = with_a_cut(at, window, length, &SendOptions::default());
            let carried = world.cables[0].carried;
            assert!(carried <= whole + 2 * window + 400, "cut at {at}: {carried} bytes instead of {whole}");
        }
    }
}

#[test]
fn what_a_relay_has_carried_on_is_not_carried_on_again_with_the_rest_that_overlaps() {
    let payload_over = |world: &World, cable: usize| -> u64 {
        world.cables[cable].heads.iter().map(|head| head.payload.length).sum()
    };
    let mut overlaps = 0;
    for at in (900..7900).step_by(487) {
        let world = with_a_cut(at, 700, 8000, &SendOptions::default());
        overlaps += payload_over(&world, 0) - 8000;
        assert_eq!(payload_over(&world, 1), 8000, "cut at {at}: from the relay on");
    }
    assert!(overlaps > 1000, "acknowledgements were lost: {overlaps}");
}

#[test]
fn a_link_that_went_down_idle_comes_back_for_a_bundle_whose_route_names_its_node() {
    let mut world = World::new(9);
    for name in ["moon", "orbiter", "earth"] {
        world.node(name, |_| {});
    }
    world.cable(MOON, ORBITER);
    world.cable(ORBITER, EARTH);
    let via = NextHop::Node("dtn://orbiter/".into());
    world.tell(MOON, ManagementRequest::SetRoute { pattern: "dtn://earth/*".into(), via, cost: 1 });
    world.start_all();
    world.run_for(MINUTE);
    // A link that leads elsewhere stays idle; the link to the destination itself needs no route.
    (0..2).for_each(|cable| world.rest(cable));
    world.run_for(HOUR);
    assert!(!world.cables[0].session && !world.cables[1].session, "nobody wants them");
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 500)), SendOptions::default());
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, EARTH, 1));
}

#[test]
fn what_must_not_be_fragmented_starts_again() {
    let options = SendOptions { must_not_fragment: true, ..SendOptions::default() };
    let world = with_a_cut(5000, 700, 8000, &options);
    let heads = &world.cables[0].heads;
    assert_eq!(heads.len(), 2);
    assert!(heads.iter().all(|head| head.primary.fragment.is_none() && head.payload.length == 8000));
}

#[test]
fn break_after_break_it_gets_there() {
    let mut world = chain(3);
    for cable in &mut world.cables {
        cable.window = 500;
    }
    world.start_all();
    let payload = random(3, 60_000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), SendOptions::default());
    for _ in 0..300 {
        for cable in &mut world.cables {
            if cable.cut_at.is_none() {
                cable.cut_at = Some((cable.carried + 3100, Duration::from_secs(5)));
            }
        }
        world.run_for(Duration::from_millis(500));
    }
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    let carried = world.cables[0].carried;
    assert!(carried < 95_000, "{carried} bytes over the first hop");
    let transfers = world.cables[0].heads.len();
    assert!(transfers > 15, "it was broken often: {transfers}");
}

#[test]
fn a_crash_of_any_node_at_any_instant_loses_nothing_accepted() {
    for node in [MOON, ORBITER, EARTH] {
        for instant in 0..45 {
            let mut world = chain(instant);
            world.start_all();
            let payload = random(instant, 9000);
            world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), SendOptions::default());
            world.run_for(Duration::from_millis(instant * 53 + instant % 7));
            let accepted = world.nodes[MOON].user.accepted.contains(&SendId(1));
            world.crash(node);
            world.run_for(Duration::from_secs(2));
            world.start(node);
            world.heal(0);
            world.heal(1);
            if accepted {
                world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
                assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
            }
            world.run_for(HOUR);
            assert!(world.nodes[EARTH].user.inbox.len() <= 1, "delivered twice");
            for node in [MOON, ORBITER, EARTH] {
                let left: Vec<_> = world.agent(node).bundles(world.now).collect();
                assert!(left.is_empty(), "node {node}, instant {instant}: {left:?}");
            }
        }
    }
}

#[test]
fn the_urgent_goes_first_then_the_old() {
    let mut world = chain(4);
    world.start_all();
    let send = |world: &mut World, number: u64, priority| {
        let options = SendOptions { priority, ..SendOptions::default() };
        world.send(MOON, number, "dtn://earth/in", Payload::Given(random(number, 5000)), options);
    };
    use crate::service::Priority::{Bulk, Expedited, Normal};
    for (number, priority) in [(1, Bulk), (2, Bulk), (3, Normal), (4, Normal), (5, Expedited)] {
        send(&mut world, number, priority);
        world.run_for(Duration::from_millis(20));
    }
    world.run_until(MINUTE, "five deliveries", |world| has_arrived(world, EARTH, 5));
    let number = |bytes: &[u8]| (1..=5).find(|number| random(*number, 5000) == bytes);
    let order: Vec<_> = world.nodes[EARTH]
        .user
        .inbox
        .iter()
        .map(|(.., bytes, _)| number(bytes).expect("a payload"))
        .collect();
    assert_eq!(order, [1, 5, 3, 4, 2], "the first had begun");
}

#[test]
fn a_peer_with_small_transfers_gets_fragments_that_fit() {
    let mut world = chain(5);
    world.cables[0].transfer_bytes_max = 1500;
    world.cables[1].transfer_bytes_max = 900;
    world.start_all();
    let payload = random(5, 20_000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), SendOptions::default());
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    for (cable, most) in [(0, 1500), (1, 900)] {
        for head in &world.cables[cable].heads {
            let length = head.to_bytes().len() as u64 + head.payload.length + head.tail_bytes() as u64;
            assert!(length <= most, "a bundle of {length} bytes");
        }
    }
    let fits = SendOptions { must_not_fragment: true, ..SendOptions::default() };
    world.send(MOON, 2, "dtn://earth/in", Payload::Given(payload), fits);
    world.run_for(MINUTE);
    let failed = AppIndication::Failed { send: SendId(2), reason: SendFailure::Limit };
    assert_eq!(world.nodes[MOON].user.ended[&SendId(2)], failed, "too long, and not to be fragmented");
}

#[test]
fn a_contact_is_filled_and_not_overrun() {
    use super::super::LinkConfig;
    use super::world::EPOCH_DTN_MS;
    use crate::service::{Contact, LinkId};
    let mut world = chain_with(6, |config| {
        // The cable carries 10,000 byte/s; the configured rate is a little lower because of the delays.
        let link = LinkConfig { link: LinkId(1), rate_bps: 70_000, ..LinkConfig::default() };
        config.links.push(link);
    });
    let window = |from: u64, to: u64| Contact {
        start_dtn_ms: EPOCH_DTN_MS + from * 1000,
        end_dtn_ms: EPOCH_DTN_MS + to * 1000,
        ..Contact::default()
    };
    let contacts = vec![window(10, 12), window(100, 103), window(200, 260)];
    world.tell(MOON, ManagementRequest::SetContacts { link: LinkId(1), contacts });
    world.start_all();
    let payload = random(6, 50_000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), SendOptions::default());
    let mut carried = Vec::new();
    for until in [10, 12, 100, 103, 200, 260] {
        let just_before = Duration::from_millis(until * 1000 - 10);
        world.run_for(just_before - Duration::from_nanos(world.now.as_nanos()));
        carried.push(world.cables[0].carried);
    }
    assert_eq!(carried[0], 0, "nothing before the first contact");
    assert!((12_000..=18_000).contains(&carried[1]), "{carried:?}");
    assert_eq!(carried[1], carried[2], "nothing between contacts");
    assert!((34_000..=46_000).contains(&carried[3]), "{carried:?}");
    assert_eq!(carried[3], carried[4], "nothing between contacts");
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    assert_eq!(world.agent(ORBITER).counters().received_cut, 0, "no transfer was cut short");
}

#[test]
fn a_bundle_larger_than_memory_flows_through_bounded_buffers() {
    let length = 1 << 30;
    let mut world = chain(7);
    for cable in &mut world.cables {
        cable.byte_time = Duration::from_nanos(1);
        cable.window = 1 << 20;
        cable.delay = Duration::from_micros(100);
    }
    for node in 0..3 {
        world.nodes.get_mut(node).expect("a node").disk.latency = Duration::from_micros(10);
    }
    world.start_all();
    world.send(MOON, 1, "dtn://earth/in", Payload::Pattern(length), SendOptions::default());
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].3, length);
    let peaks: Vec<usize> = world.nodes.iter().map(|node| node.peak_buffered).collect();
    // Data that the application may pass ahead, and a few pieces at each node.
    assert!(peaks[MOON] <= (1 << 20) + (1 << 18), "{peaks:?}");
    assert!(peaks[ORBITER] <= 1 << 18 && peaks[EARTH] <= 1 << 18, "{peaks:?}");
}

#[test]
fn damage_is_noticed_at_the_end_and_all_is_sent_again() {
    let mut world = chain(8);
    world.start_all();
    let payload = random(8, 9000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), SendOptions::default());
    world.run_until(MINUTE, "half of it", |world| world.cables[0].carried > 4500);
    world.cables[0].damage = true;
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    assert_eq!(world.agent(ORBITER).counters().refused_damaged, 1);
    assert_eq!(world.cables[0].heads.len(), 2);
}

#[test]
fn a_full_orbiter_is_tried_again_until_it_has_space() {
    let mut world = chain(9);
    world.nodes[ORBITER].disk.capacity = Some(5000);
    world.start_all();
    let payload = random(9, 9000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), SendOptions::default());
    world.run_for(5 * MINUTE);
    assert!(world.nodes[EARTH].user.inbox.is_empty());
    assert!(world.agent(ORBITER).counters().refused_no_resources > 1);
    world.nodes[ORBITER].disk.capacity = None;
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
}

#[test]
fn another_way_is_taken_when_the_cheap_one_is_down() {
    use crate::service::{LinkId, NextHop};
    let mut world = World::new(10);
    let (a, b) = (world.node("a", |_| {}), world.node("b", |config| config.direct_neighbours = false));
    let (cheap, dear) = (world.cable(a, b), world.cable(a, b));
    let route = |link: u32, cost| ManagementRequest::SetRoute {
        pattern: "dtn://b/*".into(),
        via: NextHop::Link(LinkId(link)),
        cost,
    };
    world.tell(a, route(1, 1));
    world.tell(a, route(2, 2));
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.send(a, 1, "dtn://b/in", Payload::Given(random(1, 3000)), SendOptions::default());
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, b, 1));
    let carried = (world.cables[cheap].carried, world.cables[dear].carried);
    assert!(carried.0 > 3000, "{carried:?}");
    world.send(a, 2, "dtn://b/in", Payload::Given(random(2, 3000)), SendOptions::default());
    world.run_for(Duration::from_millis(200));
    world.cut(cheap);
    world.run_until(MINUTE, "the rest over the other", |world| has_arrived(world, b, 2));
    assert!(world.cables[dear].carried > 0);
    assert_eq!(world.nodes[b].user.inbox[1].2, random(2, 3000));
}

#[test]
fn a_link_that_the_neighbour_opened_is_used() {
    let mut world = World::new(11);
    let (a, b) = (world.node("a", |_| {}), world.node("b", |_| {}));
    world.cable(b, a);
    world.start_all();
    // Without any route: the neighbour is the destination.
    world.send(a, 1, "dtn://b/in", Payload::Given(random(1, 3000)), SendOptions::default());
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, b, 1));
}

#[test]
fn thousands_of_small_bundles_keep_a_long_line_busy() {
    let (count, length) = (3000, 100);
    let mut world = chain(12);
    for cable in &mut world.cables {
        cable.delay = Duration::from_millis(2000);
        cable.window = 1 << 20;
    }
    world.start_all();
    for number in 0..count {
        let payload = Payload::Given(random(number, length));
        world.send(MOON, number, "dtn://earth/in", payload, SendOptions::default());
        if number % 500 == 499 {
            world.run_for(Duration::from_millis(100));
        }
    }
    world.run_until(HOUR, "all deliveries", |world| has_arrived(world, EARTH, count as usize));
    // Up to 1,024 transfers are outstanding at once, and each takes a round trip of a little more than 4 s;
    // the link itself needs 60 s at 10 kbyte/s for 200 bytes each.
    let limit = Duration::from_secs(85);
    assert!(world.now.saturating_since(crate::time::Instant::ZERO) < limit, "it took {}", world.now);
}

#[test]
fn a_restart_after_a_break_sends_only_the_rest() {
    let mut world = chain(13);
    world.cables[0].window = 500;
    world.cables[0].cut_at = Some((5000, HOUR));
    world.start_all();
    let payload = random(13, 8000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), SendOptions::default());
    world.run_for(MINUTE);
    let saved = world.agent(MOON).counters().payload_bytes_saved;
    assert!(saved > 3500, "{saved}");
    world.crash(MOON);
    world.start(MOON);
    world.run_for(MINUTE);
    world.heal(0);
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    let rest = world.cables[0].heads.last().expect("it was sent").primary.fragment.expect("a fragment");
    assert_eq!(rest.offset, saved);
}

/// A node may hold a million bundles: those that wait are short, also after a restart, and go on as they came.
#[test]
fn bundles_that_wait_rest_as_bytes() {
    const BUNDLES: u64 = 60;
    let mut world = chain(1);
    world.cut(1);
    world.start_all();
    let payload = |number| random(number, 300);
    for number in 0..BUNDLES {
        world.send(MOON, number, "dtn://earth/in", Payload::Given(payload(number)), SendOptions::default());
    }
    for time in ["as they came", "after a restart"] {
        world.run_until(HOUR, "the orbiter has them", |world| {
            world.agent(ORBITER).holds().0 == BUNDLES as usize
        });
        world.run_for(MINUTE);
        let (awake, longest) = world.agent(ORBITER).holdings.awake_and_longest();
        assert!(awake <= 10, "{time}: {awake} of {BUNDLES} are awake");
        assert!((1..=200).contains(&longest), "{time}: {longest} bytes");
        world.crash(ORBITER);
        world.start(ORBITER);
    }
    world.heal(1);
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, BUNDLES as usize));
    let arrived: BTreeSet<Vec<u8>> =
        world.nodes[EARTH].user.inbox.iter().map(|(_, _, bytes, _)| bytes.to_vec()).collect();
    assert_eq!(arrived, (0..BUNDLES).map(|number| payload(number).to_vec()).collect());
}

/// A change of the routes reaches very many bundles in portions, and others go their way meanwhile. The last change holds for all.
#[test]
fn very_many_bundles_are_routed_again_in_portions() {
    const BUNDLES: u64 = 300;
    let mut world = World::new(5);
    for name in ["moon", "orbiter", "earth"] {
        world.node(name, |_| {});
    }
    world.cable(MOON, ORBITER);
    world.cable(MOON, EARTH);
    world.start_all();
    world.run_for(MINUTE);
    let to = "dtn://mars/in";
    for number in 0..BUNDLES {
        world.send(MOON, number, to, Payload::Given(random(number, 100)), SendOptions::default());
    }
    let without_route = |world: &World| {
        let bundles = world.agent(MOON).bundles(world.now);
        bundles.filter(|bundle| bundle.why == RetentionReason::NoRoute).count() as u64
    };
    world.run_until(MINUTE, "they wait", |world| without_route(world) == BUNDLES);
    world.cut(0);
    let via = NextHop::Link(LinkId(1));
    world.route(MOON, "dtn://mars/*", 0);
    let waiting = without_route(&world);
    assert!((1..BUNDLES).contains(&waiting), "{waiting} bundles are yet to be visited");
    // Two portions later; changes that come again and again do not keep the last bundles waiting.
    world.run_for(Duration::from_millis(2));
    let fewer = without_route(&world);
    assert!((1..waiting).contains(&fewer), "{fewer} of {waiting} bundles are yet to be visited");
    world.tell(MOON, ManagementRequest::RemoveRoute { pattern: "dtn://mars/*".into(), via });
    world.route(MOON, "dtn://mars/*", 1);
    world.send(MOON, BUNDLES, to, Payload::Given(random(BUNDLES, 100)), SendOptions::default());
    world.run_until(MINUTE, "all go the last way", |world| world.agent(MOON).holds().0 == 0);
    assert_eq!(world.agent(EARTH).bundles(world.now).count() as u64, BUNDLES + 1);
}

/// The first link comes up, and is too narrow, while a change of the routes from it to another one is under way.
#[test]
fn routes_that_have_been_replaced_cost_no_bundle() {
    const BUNDLES: u64 = 400;
    let mut world = World::new(7);
    for name in ["moon", "orbiter", "earth"] {
        world.node(name, |_| {});
    }
    world.cable(MOON, ORBITER);
    world.cable(MOON, EARTH);
    world.start_all();
    world.cables[0].transfer_bytes_max = 100;
    world.route(MOON, "dtn://mars/*", 0);
    world.cut(0);
    world.run_for(MINUTE);
    let options = SendOptions { must_not_fragment: true, ..SendOptions::default() };
    for number in 0..BUNDLES {
        let payload = Payload::Given(random(number, 200));
        world.send(MOON, number, "dtn://mars/in", payload, options.clone());
    }
    world.run_for(MINUTE);
    let via = NextHop::Link(LinkId(1));
    world.tell(MOON, ManagementRequest::RemoveRoute { pattern: "dtn://mars/*".into(), via });
    world.heal(0);
    world.run_for(MINUTE);
    assert_eq!(world.agent(MOON).holds().0 as u64, BUNDLES, "without a route they wait");
    world.cut(0);
    world.route(MOON, "dtn://mars/*", 0);
    world.run_for(MINUTE);
    let via = NextHop::Link(LinkId(1));
    world.tell(MOON, ManagementRequest::RemoveRoute { pattern: "dtn://mars/*".into(), via });
    world.route(MOON, "dtn://mars/*", 1);
    world.heal(0);
    world.run_for(MINUTE);
    assert_eq!(world.agent(MOON).counters().deleted_refused, 0);
    assert_eq!(world.agent(EARTH).bundles(world.now).count() as u64, BUNDLES);
}

/// Memory for bundles that wait for an application stays small.
#[test]
fn a_change_of_the_routes_wakes_no_bundle_that_needs_none() {
    const BUNDLES: u64 = 200;
    let mut world = World::new(8);
    for name in ["moon", "orbiter"] {
        world.node(name, |_| {});
    }
    world.cable(MOON, ORBITER);
    world.start_all();
    world.run_for(MINUTE);
    for number in 0..BUNDLES {
        let payload = Payload::Given(random(number, 100));
        world.send(MOON, number, "dtn://moon/nobody", payload, SendOptions::default());
    }
    world.run_for(MINUTE);
    world.crash(MOON);
    world.start(MOON);
    world.run_for(MINUTE);
    let (before, _) = world.agent(MOON).holdings.awake_and_longest();
    world.route(MOON, "dtn://mars/*", 0);
    world.run_for(MINUTE);
    let (awake, _) = world.agent(MOON).holdings.awake_and_longest();
    assert!(awake <= before, "{awake} of {BUNDLES} bundles are awake, {before} before");
}

/// Reports about a deleted bundle need the number of the start, which is known when all records are read.
#[test]
fn an_operator_deletes_nothing_while_the_store_is_read() {
    let mut world = World::new(6);
    world.node("moon", |config| config.reports.deletion = true);
    world.start_all();
    world.run_for(MINUTE);
    world.send(MOON, 1, "dtn://mars/in", Payload::Given(random(1, 100)), SendOptions::default());
    world.run_for(MINUTE);
    let id = world.agent(MOON).bundles(world.now).next().expect("it waits").id;
    let delete = ManagementRequest::Delete(id.source.bundle_name(id.timestamp));
    world.crash(MOON);
    world.start(MOON);
    world.run_until(MINUTE, "it is found", |world| world.agent(MOON).holds().0 == 1);
    assert!(!world.agent(MOON).is_ready());
    world.request(MOON, delete.clone());
    world.run_for(MINUTE);
    assert_eq!((world.agent(MOON).holds().0, world.agent(MOON).counters().ignored), (1, 1));
    world.request(MOON, delete);
    assert_eq!(world.agent(MOON).holds().0, 0);
}
