//! Bundles that go to several nodes, either to every node that is met or in a limited number of copies; and
//! next hops that are waited for.

use super::super::{RetentionReason, RouterChoice, RoutingConfig};
use super::forwarding::{HOUR, MINUTE, has_arrived, random};
use super::world::{EPOCH_DTN_MS, INJECTED, Payload, World};
use crate::bp::{BlockType, Bundle, CreationTimestamp, DtnTime, Fragment, Head, PrimaryBlock};
use crate::service::{
    AppIndication, BundleEvent, BundlesIndication, Contact, DownReason, LinkId, ManagementIndication,
    ManagementRequest, NextHop, RefuseReason, SendId, SendOptions,
};
use crate::time::Duration;
use bytes::Bytes;

const SECOND: Duration = Duration::from_secs(1);

/// Nodes with these names and one router; `cables` connect them by number, and are all unplugged.
fn world(seed: u64, routing: RoutingConfig, names: &[&str], cables: &[(usize, usize)]) -> World {
    let mut world = World::new(seed);
    for name in names {
        world.node(name, |config| config.routing = routing.clone());
    }
    for &(a, b) in cables {
        world.cable(a, b);
    }
    world.start_all();
    (0..cables.len()).for_each(|cable| world.cut(cable));
    world
}

fn epidemic() -> RoutingConfig {
    RoutingConfig { router: RouterChoice::Epidemic, ..RoutingConfig::default() }
}

fn spray(copies: u32) -> RoutingConfig {
    RoutingConfig { router: RouterChoice::SprayAndWait, copies, ..RoutingConfig::default() }
}

/// Plugs a cable in for a while.
fn meet(world: &mut World, cable: usize, time: Duration) {
    world.heal(cable);
    world.run_for(time);
    world.cut(cable);
}

fn send(world: &mut World, node: usize, number: u64, destination: &str, lifetime: Duration) {
    let options = SendOptions { lifetime, ..SendOptions::default() };
    world.send(node, number, destination, Payload::Given(random(number, 3000)), options);
    world.run_for(SECOND);
}

fn held(world: &World, node: usize) -> usize {
    world.agent(node).bundles(world.now).count()
}

fn why(world: &World, node: usize) -> RetentionReason {
    world.agent(node).bundles(world.now).next().expect("a bundle").why
}

#[test]
fn a_bundle_is_carried_from_meeting_to_meeting_and_ends_with_its_lifetime() {
    let mut world = world(1, epidemic(), &["a", "b", "c", "d"], &[(0, 1), (1, 2), (2, 3)]);
    send(&mut world, 0, 1, "dtn://d/in", HOUR);
    assert_eq!(why(&world, 0), RetentionReason::Spread { given: 0, copies: None });
    meet(&mut world, 0, MINUTE);
    assert_eq!(world.nodes[0].user.ended[&SendId(1)], AppIndication::Sent { send: SendId(1) });
    assert_eq!(why(&world, 0), RetentionReason::Spread { given: 1, copies: None });
    meet(&mut world, 1, MINUTE);
    meet(&mut world, 2, MINUTE);
    assert!(has_arrived(&world, 3, 1));
    assert_eq!([0, 1, 2].map(|node| held(&world, node)), [1, 1, 0], "who met the destination is done");
    world.run_for(HOUR);
    for node in 0..4 {
        assert_eq!((held(&world, node), world.disk_records(node)), (0, 1), "node {node}");
    }
    assert_eq!(world.nodes[3].user.inbox.len(), 1);
}

#[test]
fn each_node_gets_one_copy_and_never_back_even_after_a_restart() {
    let mut world = world(2, epidemic(), &["a", "b"], &[(0, 1), (0, 1)]);
    send(&mut world, 0, 1, "dtn://z/in", HOUR);
    meet(&mut world, 0, MINUTE);
    meet(&mut world, 1, MINUTE);
    for node in [0, 1, 0] {
        world.crash(node);
        world.start(node);
        world.cut(1);
        meet(&mut world, 0, MINUTE);
    }
    let transfers: usize = world.cables.iter().map(|cable| cable.heads.len()).sum();
    assert_eq!(transfers, 1, "one bundle went one way, once");
    assert_eq!([held(&world, 0), held(&world, 1)], [1, 1]);
}

#[test]
fn two_at_a_time_get_their_copies_side_by_side() {
    let mut world = world(3, epidemic(), &["a", "b", "c"], &[(0, 1), (0, 2)]);
    world.cables[0].byte_time = Duration::from_millis(100);
    send(&mut world, 0, 1, "dtn://z/in", HOUR);
    world.heal(0);
    world.run_for(10 * SECOND);
    meet(&mut world, 1, 5 * SECOND);
    assert_eq!([held(&world, 1), held(&world, 2)], [0, 1], "the slow one has not kept the fast one waiting");
    assert_eq!(world.agent(0).counters().copies_sent, 1);
    assert_eq!(why(&world, 0), RetentionReason::OnTheWay(LinkId(1)));
    world.run_for(10 * MINUTE);
    assert_eq!(world.agent(0).counters().copies_sent, 2);
}

#[test]
fn a_copy_that_breaks_off_goes_on_where_it_was() {
    let mut world = world(4, epidemic(), &["a", "b"], &[(0, 1)]);
    world.cables[0].window = 200;
    send(&mut world, 0, 1, "dtn://z/in", HOUR);
    meet(&mut world, 0, Duration::from_millis(200));
    let before = world.cables[0].carried;
    assert!(before > 500 && before < 3000, "{before}");
    meet(&mut world, 0, MINUTE);
    assert!(world.cables[0].carried < 3700, "{}", world.cables[0].carried);
    assert_eq!(world.cables[0].heads.len(), 2);
    assert_eq!(world.agent(0).counters().copies_sent, 1);
}

#[test]
fn who_handed_it_to_the_destination_does_not_take_it_again() {
    let mut world = world(5, epidemic(), &["a", "b", "c"], &[(0, 1), (1, 2), (0, 2)]);
    send(&mut world, 0, 1, "dtn://c/in", HOUR);
    meet(&mut world, 0, MINUTE);
    meet(&mut world, 1, MINUTE);
    assert_eq!(held(&world, 1), 0);
    world.crash(1);
    world.start(1);
    world.run_for(SECOND);
    // After its crash, the source knows only from its note that b has the bundle.
    meet(&mut world, 0, MINUTE);
    assert_eq!(held(&world, 1), 0, "b has passed it on, and remembers");
    meet(&mut world, 2, MINUTE);
    assert_eq!((held(&world, 0), world.nodes[2].user.inbox.len()), (0, 1), "c has it already, and says so");
}

/// A part is identified by its position in the payload, so that it is not mistaken for another.
#[test]
fn a_part_that_the_destination_has_is_not_taken_again_and_every_other_is() {
    let mut world = world(6, epidemic(), &["a", "b"], &[(0, 1)]);
    let part = |offset: u64, total_length: u64, payload: &'static [u8]| {
        let timestamp = CreationTimestamp { time: DtnTime(EPOCH_DTN_MS), sequence: 1 };
        let [destination, source] = ["dtn://b/in", "dtn://old/x"].map(|eid| eid.parse().unwrap());
        let primary = PrimaryBlock::new(destination, source, timestamp, 3_600_000);
        let mut head = Head::new(primary, payload.len() as u64);
        head.primary.fragment = Some(Fragment { offset, total_length });
        Bundle::new(head, Bytes::from_static(payload)).to_bytes()
    };
    world.inject(0, &part(10, 100, b"12345"), 1000);
    meet(&mut world, 0, MINUTE);
    for (case, other) in [
        ("the same", part(10, 100, b"12345")),
        ("elsewhere", part(20, 100, b"12345")),
        ("longer", part(10, 100, b"1234567")),
        ("of another payload", part(10, 99, b"12345")),
    ] {
        world.inject(0, &other, 1000);
        world.run_for(SECOND);
        assert_eq!(world.refusals(), [RefuseReason::Completed], "{case}");
    }
}

#[test]
fn a_set_number_of_copies_is_sprayed_and_the_last_ones_wait_for_the_destination() {
    let cables: Vec<(usize, usize)> = (1..5).map(|node| (0, node)).chain([(1, 4), (1, 5)]).collect();
    let mut world = world(6, spray(4), &["a", "b", "c", "d", "e", "z"], &cables);
    send(&mut world, 0, 1, "dtn://z/in", HOUR);
    for cable in 0..4 {
        meet(&mut world, cable, MINUTE);
    }
    assert_eq!([0, 1, 2, 3, 4].map(|node| held(&world, node)), [1, 1, 1, 0, 0], "4, then 2, then 1");
    assert_eq!(why(&world, 0), RetentionReason::Spread { given: 2, copies: Some(1) });
    let said = |cable: usize| world.cables[cable].heads[0].copies();
    assert_eq!([said(0), said(1)], [Some(2), Some(1)]);
    assert_eq!(world.cables[0].heads[0].block(BlockType::Copies).expect("a block").data[..], [2]);
    world.crash(1);
    world.start(1);
    world.run_for(SECOND);
    meet(&mut world, 4, MINUTE);
    assert_eq!([held(&world, 1), held(&world, 4)], [1, 1], "b had two, and gives one to e");
    world.crash(1);
    world.start(1);
    world.run_for(SECOND);
    assert_eq!(
        why(&world, 1),
        RetentionReason::Spread { given: 2, copies: Some(1) },
        "that survives a crash"
    );
    meet(&mut world, 5, MINUTE);
    assert!(has_arrived(&world, 5, 1));
    assert_eq!(held(&world, 1), 0);
    world.run_for(HOUR);
    for node in 0..6 {
        assert_eq!((held(&world, node), world.disk_records(node)), (0, 1), "node {node}");
    }
}

#[test]
fn a_route_is_kept_to_whatever_the_router() {
    for routing in [epidemic(), spray(8)] {
        let mut world = world(7, routing, &["a", "b", "c"], &[(0, 1), (0, 2)]);
        world.route(0, "dtn://z/*", 1);
        send(&mut world, 0, 1, "dtn://z/in", HOUR);
        meet(&mut world, 0, MINUTE);
        assert_eq!(held(&world, 1), 0, "b is not on the route");
        meet(&mut world, 1, MINUTE);
        assert_eq!([held(&world, 0), held(&world, 2)], [0, 1]);
    }
}

#[test]
fn thousands_of_bundles_go_to_everyone_who_is_met() {
    let mut world = world(8, epidemic(), &["a", "b", "c"], &[(0, 1), (0, 2)]);
    for cable in &mut world.cables {
        cable.byte_time = Duration::from_nanos(10);
        cable.window = 1 << 20;
    }
    let count = 2000;
    for number in 0..count {
        let payload = Payload::Given(random(number, 50));
        world.send(0, number, "dtn://z/in", payload, SendOptions::default());
        if number % 500 == 499 {
            world.run_for(SECOND);
        }
    }
    meet(&mut world, 0, MINUTE);
    meet(&mut world, 1, MINUTE);
    assert_eq!([1, 2].map(|node| held(&world, node)), [count as usize; 2]);
    assert_eq!(world.agent(0).counters().copies_sent, 2 * count);
}

#[test]
fn a_better_hop_that_goes_is_waited_for_and_nothing_is_sent_twice() {
    let routing = RoutingConfig { failover_after: Duration::from_secs(30), ..RoutingConfig::default() };
    let mut world = world(9, routing, &["a", "b", "c", "z"], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    for (link, cost) in [(1, 1), (2, 2)] {
        let via = NextHop::Link(LinkId(link));
        world.tell(0, ManagementRequest::SetRoute { pattern: "dtn://z/*".into(), via, cost });
    }
    world.route(1, "dtn://z/*", 2);
    world.route(2, "dtn://z/*", 3);
    (0..4).for_each(|cable| world.heal(cable));
    world.run_for(SECOND);
    world.cut(0);
    send(&mut world, 0, 1, "dtn://z/in", HOUR);
    assert!(matches!(why(&world, 0), RetentionReason::BetterHop { .. }), "{:?}", why(&world, 0));
    world.run_for(10 * SECOND);
    world.heal(0);
    world.run_for(MINUTE);
    assert_eq!((world.cables[1].carried, world.nodes[3].user.inbox.len()), (0, 1), "it came back in time");
    world.cut(0);
    send(&mut world, 0, 2, "dtn://z/in", HOUR);
    world.run_for(20 * SECOND);
    assert_eq!(world.cables[1].carried, 0, "it is still waited for");
    world.run_for(15 * SECOND);
    assert_eq!(world.nodes[3].user.inbox.len(), 2, "then the next one is taken");
    let heads = world.cables[0].heads.len() + world.cables[1].heads.len();
    assert_eq!(heads, 2, "each bundle went one way");
}

fn window(from_s: u64, to_s: u64, rate_bps: u64, delay_ms: u64) -> Contact {
    let at = |seconds: u64| EPOCH_DTN_MS + seconds * 1000;
    Contact { start_dtn_ms: at(from_s), end_dtn_ms: at(to_s), rate_bps, delay_ms }
}

fn plan(world: &mut World, node: usize, link: u32, contacts: Vec<Contact>) {
    world.tell(node, ManagementRequest::SetContacts { link: LinkId(link), contacts });
}

#[test]
fn a_bundle_waits_for_the_contact_that_brings_it_there_first() {
    let routing = RoutingConfig { router: RouterChoice::ContactPlan, ..RoutingConfig::default() };
    let mut world = world(10, routing, &["a", "b", "c", "z"], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    for (node, cable) in [(0, 0), (0, 1), (1, 2), (2, 3)] {
        world.route(node, "dtn://z/*", cable);
    }
    // Over b the bundle takes ten minutes; over c it can leave in a minute, and arrives at once.
    plan(&mut world, 0, 1, vec![window(0, 3600, 0, 600_000)]);
    plan(&mut world, 0, 2, vec![window(60, 120, 0, 1000)]);
    (0..4).for_each(|cable| world.heal(cable));
    send(&mut world, 0, 1, "dtn://z/in", HOUR);
    let next_dtn_ms = Some(EPOCH_DTN_MS + 60_000);
    assert_eq!(why(&world, 0), RetentionReason::NoContact { link: LinkId(2), next_dtn_ms });
    world.run_for(MINUTE);
    assert_eq!((world.cables[0].carried, world.nodes[3].user.inbox.len()), (0, 1));
    world.run_for(MINUTE);
    send(&mut world, 0, 2, "dtn://z/in", HOUR);
    world.run_for(MINUTE);
    assert!(world.cables[0].carried > 3000, "no better contact is planned any more");
}

#[test]
fn a_transfer_that_cannot_be_acknowledged_within_its_contact_is_not_begun() {
    let routing = RoutingConfig { router: RouterChoice::ContactPlan, ..RoutingConfig::default() };
    for must_not_fragment in [false, true] {
        let mut world = world(11, routing.clone(), &["a", "z"], &[(0, 1)]);
        // The cable carries 10,000 byte/s. In the first window two seconds remain once acknowledgements are
        // considered.
        plan(&mut world, 0, 1, vec![window(10, 16, 70_000, 2000), window(100, 200, 70_000, 2000)]);
        world.cables[0].delay = Duration::from_millis(2000);
        world.cables[0].window = 1 << 20;
        world.heal(0);
        let options = SendOptions { must_not_fragment, ..SendOptions::default() };
        world.send(0, 1, "dtn://z/in", Payload::Given(random(11, 50_000)), options);
        world.run_for(16 * SECOND);
        let first = world.cables[0].carried;
        match must_not_fragment {
            true => assert_eq!(first, 0),
            false => assert!((14_000..18_000).contains(&first), "a fragment that fits: {first}"),
        }
        world.run_for(3 * MINUTE);
        assert_eq!(world.nodes[1].user.inbox[0].2, random(11, 50_000));
        assert_eq!(world.agent(1).counters().received_cut, 0);
    }
}

#[test]
fn links_open_and_close_with_their_contacts() {
    use super::super::LinkConfig;
    let mut world = World::new(12);
    for name in ["a", "z"] {
        world.node(name, |config| {
            let link = LinkConfig { link: LinkId(1), open_in_contacts: true, ..LinkConfig::default() };
            config.links.push(link);
        });
    }
    world.cable(0, 1);
    for node in [0, 1] {
        world.nodes[node].forget_requests();
        plan(&mut world, node, 1, vec![window(10, 20, 0, 0), window(100, 110, 0, 0)]);
        world.tell(node, ManagementRequest::OpenLink { link: LinkId(1) });
    }
    world.start_all();
    let mut seen = Vec::new();
    for until in [9, 11, 19, 25, 99, 101, 111] {
        world.run_for(Duration::from_secs(until) - Duration::from_nanos(world.now.as_nanos()));
        seen.push(world.cables[0].has_session());
    }
    assert_eq!(seen, [false, true, true, false, false, true, false]);
}

/// A neighbour without a name may be any node, even one that uses the name of another.
#[test]
fn everybody_who_is_met_under_a_name_is_on_the_way_and_nobody_else() {
    for (routing, met) in [(epidemic(), true), (RoutingConfig::default(), false)] {
        let mut world = world(30, routing, &["a"], &[]);
        let somewhere = "dtn://somewhere/in".parse().expect("an endpoint");
        for (name, is_on_the_way) in
            [(None, false), (Some("dtn://b/"), met), (Some("dtn://somewhere/"), true)]
        {
            let peer = name.map(str::to_owned);
            let up = BundlesIndication::Up { peer, interleave: true, transfer_bytes_max: u64::MAX };
            world.say_injected(0, up);
            let agent = &mut world.nodes[0].agent.as_mut().expect("it is up").engine;
            assert_eq!(agent.leads_to(INJECTED, &somewhere), is_on_the_way, "{name:?}, epidemic: {met}");
            let down = BundlesIndication::Down { reason: DownReason::Closed, retry: false };
            world.say_injected(0, down);
        }
    }
}

/// Everybody who follows a bundle by its events learns once that it has left, whoever got the first copy.
#[test]
fn the_first_copy_is_told_as_forwarded() {
    for destination in ["dtn://b/x", "dtn://c/x"] {
        let mut world = world(9, epidemic(), &["a", "b", "c", "d"], &[(0, 1), (0, 3)]);
        world.tell(0, ManagementRequest::Watch { on: true });
        send(&mut world, 0, 1, destination, HOUR);
        meet(&mut world, 0, MINUTE);
        meet(&mut world, 1, MINUTE);
        let is_forwarded = |said: &&ManagementIndication| {
            matches!(said, ManagementIndication::Bundle { what: BundleEvent::Forwarded, .. })
        };
        assert_eq!(world.nodes[0].user.events.iter().filter(is_forwarded).count(), 1, "{destination}");
    }
}
