//! Link-state routing with bundles: agents whose routes come from announcements.

use super::super::{LearnedRoute, RetentionReason, RouterChoice, RoutingConfig};
use super::forwarding::{HOUR, MINUTE, has_arrived, random};
use super::world::{EPOCH_DTN_MS, INJECTED, Payload, World};
use crate::bp::{AdminRecord, Bundle, BundleFlags, CreationTimestamp, DtnTime, Head, PrimaryBlock};
use crate::service::{
    BundlesIndication, Contact, DownReason, LinkId, ManagementRequest, NextHop, SendOptions,
};
use crate::time::Duration;
use bytes::Bytes;

const SECOND: Duration = Duration::from_secs(1);

/// Nodes with these names and link-state routing; `cables` connect them by number.
fn world(seed: u64, names: &[&str], cables: &[(usize, usize)]) -> World {
    let mut world = World::new(seed);
    for name in names {
        world.node(name, |config| config.routing = dtlsr());
    }
    for &(a, b) in cables {
        world.cable(a, b);
    }
    world.start_all();
    world
}

fn dtlsr() -> RoutingConfig {
    // Learned paths do not fail over.
    RoutingConfig { router: RouterChoice::Dtlsr, failover_after: HOUR, ..RoutingConfig::default() }
}

fn send(world: &mut World, node: usize, number: u64, destination: &str) {
    let options = SendOptions { lifetime: 24 * HOUR, ..SendOptions::default() };
    world.send(node, number, destination, Payload::Given(random(number, 3000)), options);
    world.run_for(SECOND);
}

fn route(world: &World, node: usize, to: &str) -> LearnedRoute {
    let routes = world.agent(node).learned_routes(world.now);
    let found = routes.into_iter().find(|route| route.node.to_string() == to);
    found.unwrap_or_else(|| panic!("no route to {to}: {:?}", world.all_counters()))
}

/// Reasons for keeping the bundles of applications.
fn whys(world: &World, node: usize) -> Vec<RetentionReason> {
    let kept = world.agent(node).bundles(world.now).filter(|status| status.payload_bytes == 3000);
    kept.map(|status| status.why).collect()
}

#[test]
fn bundles_cross_three_hops_without_any_route() {
    let mut world = world(1, &["n1", "n2", "n3", "n4"], &[(0, 1), (1, 2), (2, 3)]);
    world.run_for(MINUTE);
    assert_eq!(route(&world, 0, "dtn://n4/").next.to_string(), "dtn://n2/");
    assert_eq!(route(&world, 0, "dtn://n4/").delay, 3 * SECOND, "each node takes a second");
    send(&mut world, 0, 1, "dtn://n4/in");
    send(&mut world, 3, 2, "dtn://n1/in");
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, 3, 1) && has_arrived(world, 0, 1));
    for node in 0..4 {
        let counters = world.agent(node).counters();
        assert_eq!(counters.announcements_not_believed + counters.announcements_ignored, 0, "node {node}");
        assert_eq!((counters.admin_unknown, counters.ignored), (0, 0), "node {node}");
    }
    world.run_for(MINUTE);
    assert!((0..4).all(|node| world.agent(node).holds().0 == 0), "{:?}", world.all_counters());
}

/// The cost of announcements in docs/routing.md: bytes of bundles that a link carries in both directions in an hour without changes.
#[test]
fn announcements_cost_as_many_bytes_an_hour_as_documented() {
    let names: Vec<String> = (1..=16).map(|number| format!("node{number}")).collect();
    for (count, documented) in [(2, 260), (4, 550), (16, 2400)] {
        let names: Vec<&str> = names[..count].iter().map(String::as_str).collect();
        let cables: Vec<(usize, usize)> = (1..count).map(|node| (node - 1, node)).collect();
        let mut world = world(2, &names, &cables);
        world.run_for(HOUR);
        let before: Vec<u64> = world.cables.iter().map(|cable| cable.carried).collect();
        world.run_for(10 * HOUR);
        let used = world.cables.iter().zip(before).map(|(cable, before)| (cable.carried - before) / 10);
        let most = used.max().expect("a cable");
        println!("{count} nodes: {most} bytes an hour");
        assert!((documented * 9 / 10..=documented).contains(&most), "{count} nodes: {most} bytes an hour");
    }
}

#[test]
fn a_bundle_waits_for_the_link_that_is_expected_first() {
    // Two ways from a to d: over b, whose link to d usually is down for an hour, and over c, where it is ten minutes.
    let mut world = world(3, &["a", "b", "c", "d"], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    world.run_for(MINUTE);
    for (cable, outage) in [(2, HOUR), (3, 10 * MINUTE)] {
        world.cut(cable);
        world.run_for(outage);
        world.heal(cable);
        world.run_for(MINUTE);
    }
    world.cut(2);
    world.cut(3);
    world.run_for(2 * MINUTE);
    let to_d = route(&world, 0, "dtn://d/");
    assert_eq!((to_d.next.to_string().as_str(), to_d.wait), ("dtn://c/", None));
    let carried = world.cables[0].carried;
    send(&mut world, 0, 1, "dtn://d/in");
    world.run_for(2 * MINUTE);
    assert_eq!(whys(&world, 0), [], "it has left");
    let why = whys(&world, 2);
    let [RetentionReason::ExpectedContact { node, wait }] = &why[..] else { panic!("{why:?}") };
    assert_eq!(node.to_string(), "dtn://d/");
    assert!((595..=600).contains(&wait.as_secs()), "{wait:?}");
    assert!(world.cables[0].carried - carried < 3000, "nothing went over b");
    world.heal(3);
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, 3, 1));
}

#[test]
fn a_bundle_changes_its_way_when_another_is_faster() {
    let mut world = world(4, &["a", "b", "c", "d"], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    world.run_for(MINUTE);
    world.cut(0);
    world.cut(3);
    // Towards d either the link to b is missing or that from c.
    world.run_for(MINUTE);
    send(&mut world, 0, 1, "dtn://d/in");
    world.run_for(30 * MINUTE);
    assert!(!has_arrived(&world, 3, 1));
    world.heal(0);
    world.run_until(2 * MINUTE, "delivery over b", |world| has_arrived(world, 3, 1));
    // And with only the other way left, over that.
    world.cut(2);
    world.heal(3);
    world.run_for(MINUTE);
    send(&mut world, 0, 2, "dtn://d/in");
    world.run_until(MINUTE, "delivery over c", |world| has_arrived(world, 3, 2));
}

#[test]
fn a_bundle_takes_a_detour_rather_than_going_back_at_once() {
    // From a to z over c; else over b, f; from c also over e, g, h, i.
    let names = ["a", "b", "c", "z", "e", "f", "g", "h", "i"];
    let cables = [(0, 2), (2, 3), (0, 1), (1, 5), (5, 3), (2, 4), (4, 6), (6, 7), (7, 8), (8, 3)];
    let mut world = world(11, &names, &cables);
    world.cables[1].byte_time = Duration::from_millis(10);
    world.run_for(2 * MINUTE);
    send(&mut world, 0, 1, "dtn://z/in");
    assert!(matches!(whys(&world, 2)[..], [RetentionReason::OnTheWay(LinkId(2))]), "{:?}", whys(&world, 2));
    let before = [2, 5].map(|cable| world.cables[cable].carried);
    world.cut(1);
    world.run_until(50 * SECOND, "delivery", |world| has_arrived(world, 3, 1));
    assert_eq!(route(&world, 2, "dtn://z/").next.to_string(), "dtn://a/", "the way back is shorter");
    let used = [2, 5].map(|cable| world.cables[cable].carried);
    assert!(used[0] - before[0] < 3000 && used[1] - before[1] > 3000, "{before:?} {used:?}");
}

#[test]
fn a_bundle_without_a_detour_goes_back_after_a_minute() {
    let mut world = world(13, &["a", "b", "c", "z"], &[(0, 2), (2, 3), (0, 1), (1, 3)]);
    // The way over b is longer, so the bundle goes to c, and is there when the link to z is lost.
    let link = LinkId(3);
    let contact = Contact {
        start_dtn_ms: EPOCH_DTN_MS,
        end_dtn_ms: EPOCH_DTN_MS + 86_400_000,
        delay_ms: 5000,
        ..Contact::default()
    };
    world.tell(0, ManagementRequest::SetContacts { link, contacts: vec![contact] });
    world.cables[1].byte_time = Duration::from_millis(10);
    world.run_for(2 * MINUTE);
    send(&mut world, 0, 1, "dtn://z/in");
    world.cut(1);
    world.run_for(50 * SECOND);
    assert!(
        matches!(whys(&world, 2)[..], [RetentionReason::ExpectedContact { .. }]),
        "{:?}",
        whys(&world, 2)
    );
    world.run_until(2 * MINUTE, "delivery over b", |world| has_arrived(world, 3, 1));
}

#[test]
fn a_custody_signal_is_trusted_if_a_learned_path_leads_where_it_comes_from() {
    let mut world = world(12, &["a", "b", "c"], &[(0, 1), (1, 2)]);
    world.run_for(MINUTE);
    let options = SendOptions { lifetime: HOUR, custody: true, ..SendOptions::default() };
    world.send(0, 1, "dtn://c/in", Payload::Given(random(1, 3000)), options);
    world.run_for(MINUTE);
    let counters = world.agent(0).counters();
    assert_eq!((counters.custody_released, counters.custody_signals_not_believed), (1, 0));
}

#[test]
fn configured_routes_come_before_learned_ones_and_do_not_divert_announcements() {
    let mut world = World::new(5);
    for name in ["a", "b", "c", "d"] {
        world.node(name, |config| (config.routing, config.direct_neighbours) = (dtlsr(), false));
    }
    for (a, b) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
        world.cable(a, b);
    }
    world.start_all();
    world.cables[1].byte_time = Duration::from_micros(200);
    let via = NextHop::Link(LinkId(2));
    world.tell(0, ManagementRequest::SetRoute { pattern: "*".into(), via, cost: 1 });
    world.run_for(MINUTE);
    let heads = |world: &World| world.cables.iter().map(|cable| cable.heads.len()).collect::<Vec<_>>();
    let before = heads(&world);
    send(&mut world, 0, 1, "dtn://d/in");
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, 3, 1));
    let after = heads(&world);
    assert_eq!([0, 1, 2, 3].map(|cable| after[cable] - before[cable]), [0, 1, 0, 1], "over c");
    for cable in [0, 1] {
        let ends = [0, cable + 1].map(|node| world.agent(node).node().to_string());
        let announces = |head: &Head| {
            head.primary.flags.contains(BundleFlags::ADMINISTRATIVE_RECORD)
                && ends.contains(&head.primary.destination.to_string())
        };
        assert!(world.cables[cable].heads[..before[cable]].iter().all(announces), "cable {cable}");
    }
}

#[test]
fn after_a_crash_a_node_is_found_again() {
    let mut world = world(6, &["a", "b", "c"], &[(0, 1), (1, 2)]);
    world.strict = false;
    world.run_for(MINUTE);
    send(&mut world, 0, 1, "dtn://c/in");
    world.run_for(SECOND);
    for start in 2..5 {
        for node in 0..3 {
            world.crash(node);
            world.run_for(MINUTE);
            world.start(node);
        }
        world.run_for(MINUTE);
        send(&mut world, 0, start, "dtn://c/in");
        world.run_until(MINUTE, "delivery", |world| world.nodes[2].user.inbox.len() >= start as usize);
    }
}

#[test]
fn a_node_without_a_clock_that_restarts_is_believed_again() {
    let mut world = World::new(7);
    for name in ["a", "b", "c"] {
        let node = world.node(name, |config| config.routing = dtlsr());
        world.nodes[node].clock_ms = None;
    }
    world.cable(0, 1);
    world.cable(1, 2);
    world.strict = false;
    world.start_all();
    for _ in 0..6 {
        world.run_for(10 * MINUTE);
        world.crash(2);
        // The store is lost, too.
        world.nodes[2].disk.records.clear();
        world.nodes[2].disk.used = 0;
        world.start(2);
    }
    world.run_for(MINUTE);
    let announced = route(&world, 0, "dtn://c/").announced.expect("it announces its links");
    assert!(announced <= MINUTE, "{announced:?}");
    send(&mut world, 0, 1, "dtn://c/in");
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, 2, 1));
}

/// Bundle with an announcement by `origin` of a link to `dtn://gold/`, from this source.
fn announcement(source: &str, origin: &str, version: u8, number: u64) -> Bytes {
    let mut content = vec![0x82, version, 0x81, 0x84];
    for (node, then) in [(origin, &[7, 0, 0x81, 0x82][..]), ("dtn://gold/", &[0x19, 3, 0xe8])] {
        let ssp = node.strip_prefix("dtn:").expect("a dtn endpoint");
        content.extend([0x82, 1, 0x60 | ssp.len() as u8]);
        content.extend(ssp.bytes());
        content.extend(then);
    }
    let record = AdminRecord::Unknown { record_type: 64_577, content: content.into() };
    let timestamp = CreationTimestamp { time: DtnTime(EPOCH_DTN_MS), sequence: number };
    let [source, destination] = [source, "dtn://a/"].map(|eid| eid.parse().expect("an endpoint"));
    let mut primary = PrimaryBlock::new(destination, source, timestamp, 3_600_000);
    primary.flags = BundleFlags::ADMINISTRATIVE_RECORD;
    let payload = record.to_bytes();
    Bundle::new(Head::new(primary, payload.len() as u64), payload).to_bytes()
}

#[test]
fn only_a_neighbour_itself_is_believed() {
    let mut world = world(8, &["a"], &[]);
    world.run_for(SECOND);
    let knows_gold = |world: &World| {
        world.agent(0).learned_routes(world.now).iter().any(|route| route.node.to_string() == "dtn://gold/")
    };
    let counted = |world: &World| {
        let counters = world.agent(0).counters();
        (counters.announcements_not_believed, counters.announcements_ignored, counters.announcements_new)
    };
    let inject = |world: &mut World, bytes: Bytes| {
        world.inject(0, &bytes, 1000);
        world.run_for(2 * SECOND);
    };
    inject(&mut world, announcement("dtn://mallory/", "dtn://mallory/", 1, 1));
    assert_eq!((knows_gold(&world), counted(&world)), (false, (1, 0, 0)), "from beyond the neighbour");
    inject(&mut world, announcement("dtn://neighbour/", "dtn://neighbour/", 2, 2));
    assert_eq!((knows_gold(&world), counted(&world)), (false, (1, 1, 0)), "of another version");
    inject(&mut world, announcement("dtn://neighbour/", "dtn://a/", 1, 3));
    assert_eq!((knows_gold(&world), counted(&world)), (false, (1, 1, 0)), "about the node itself");
    inject(&mut world, announcement("dtn://neighbour/", "dtn://neighbour/", 1, 4));
    assert_eq!((knows_gold(&world), counted(&world)), (true, (1, 1, 1)));
    assert_eq!(route(&world, 0, "dtn://gold/").next.to_string(), "dtn://neighbour/");
    let peer = Some("dtn://other/".to_owned());
    world.say_injected(0, BundlesIndication::Down { reason: DownReason::PeerClosed, retry: false });
    world.say_injected(0, BundlesIndication::Up { peer, interleave: true, transfer_bytes_max: u64::MAX });
    inject(&mut world, announcement("dtn://neighbour/", "dtn://neighbour/", 1, 5));
    assert_eq!(counted(&world), (2, 1, 1), "over the link of another");
    assert!(world.agent(0).peer(INJECTED).is_some());
}

#[test]
fn a_node_with_another_router_ignores_announcements() {
    let mut world = World::new(9);
    let a = world.node("a", |config| config.routing = dtlsr());
    let b = world.node("b", |_| {});
    world.cable(a, b);
    world.start_all();
    world.run_for(MINUTE);
    let counters = world.agent(b).counters();
    assert_eq!((counters.announcements_ignored, counters.admin_unknown), (1, 0));
    assert_eq!((counters.announcements_sent, world.agent(b).holds().0), (0, 0));
    // It is a neighbour nevertheless.
    assert_eq!(route(&world, a, "dtn://b/").announced, None);
    send(&mut world, a, 1, "dtn://b/in");
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, b, 1));
}

#[test]
fn announcements_for_a_neighbour_that_leaves_do_not_stay() {
    let mut world = world(10, &["a", "b"], &[(0, 1)]);
    world.cables[0].byte_time = Duration::from_secs(1);
    world.run_for(10 * SECOND);
    assert_eq!(world.agent(0).holds().0, 1, "it is on its way over a very slow link");
    world.cut(0);
    world.run_for(SECOND);
    assert_eq!(world.agent(0).holds().0, 0);
    world.cables[0].byte_time = Duration::from_micros(100);
    world.heal(0);
    world.run_for(MINUTE);
    assert!(world.agent(1).learned_routes(world.now)[0].announced.is_some(), "all of it is sent again");
}
