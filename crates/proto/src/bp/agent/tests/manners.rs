//! What is accepted from single peers although it is wrong, and how bundles are made that go to them.

use super::super::LinkConfig;
use super::forwarding::{MINUTE, has_arrived, random};
use super::world::{EPOCH_DTN_MS, INJECTED, Payload, World};
use crate::bp::{Accept, Bundle, CrcType, CreationTimestamp, DtnTime, Eid, Emit, Head, Peer, PrimaryBlock};
use crate::service::{AppRequest, LinkId, RefuseReason, SendOptions};
use crate::time::Duration;
use bytes::Bytes;

/// A node that hears `dtn://neighbour/`, of which this is said.
fn world(about: &str, accept: &[Accept]) -> (World, usize) {
    let mut world = World::new(1);
    let peer = Peer { node: about.into(), accept: accept.to_vec(), ..Peer::default() };
    let node = world.node("earth", |config| config.peers.push(peer));
    world.start_all();
    world.run_for(Duration::from_secs(1));
    (world, node)
}

fn bundle(change: impl FnOnce(&mut Head)) -> Bytes {
    let timestamp = CreationTimestamp { time: DtnTime(EPOCH_DTN_MS), sequence: 1 };
    let eid = |text: &str| text.parse::<Eid>().expect("an endpoint");
    let primary = PrimaryBlock::new(eid("dtn://earth/in"), eid("dtn://far/app"), timestamp, 3_600_000);
    let mut head = Head::new(primary, 0);
    change(&mut head);
    Bundle::new(head, Bytes::from_static(b"hello")).to_bytes()
}

/// What a peer sends arrives if this is accepted from it, and only then; both is counted, and the policy is named.
fn only_with(accept: Accept, bytes: &Bytes, counts: impl Fn(&World, usize) -> (u64, u64)) {
    for (about, allowed, arrives) in [
        ("dtn://neighbour/", &[accept][..], true),
        ("dtn://neigh*", &[accept], true),
        ("*", &Accept::ALL, true),
        ("dtn://neighbour/", &[], false),
        ("dtn://stranger/", &Accept::ALL, false),
    ] {
        let (mut world, node) = world(about, allowed);
        world.inject(node, bytes, 40);
        world.run_for(MINUTE);
        let helps: Vec<Accept> = world.agent(node).would_help(INJECTED).collect();
        assert_eq!(world.nodes[node].user.inbox.len(), usize::from(arrives), "{about} {allowed:?}");
        match arrives {
            true => assert_eq!((counts(&world, node), world.refusals()), ((1, 0), vec![])),
            false => {
                assert_eq!((counts(&world, node), helps), ((0, 1), vec![accept]), "{about}");
                assert_eq!(world.refusals(), [RefuseReason::NotAcceptable], "again it would be no better");
            }
        }
    }
}

#[test]
fn primary_without_crc_is_taken_from_whom_the_operator_says() {
    let bytes = bundle(|head| head.primary.crc = CrcType::None);
    only_with(Accept::PrimaryWithoutCrc, &bytes, |world, node| {
        let counters = world.agent(node).counters();
        (counters.accepted_primary_without_crc, counters.refused_primary_without_crc)
    });
}

#[test]
fn neither_time_nor_age_is_taken_from_whom_the_operator_says() {
    let bytes = bundle(|head| head.primary.timestamp.time = DtnTime::UNKNOWN);
    only_with(Accept::NoTimeNoAge, &bytes, |world, node| {
        let counters = world.agent(node).counters();
        (counters.accepted_no_time_no_age, counters.refused_no_time_no_age)
    });
}

#[test]
fn what_was_accepted_by_a_policy_survives_a_restart_without_it() {
    let (mut world, node) = world("*", &Accept::ALL);
    world.nodes[node].user.takes = false;
    world.inject(
        node,
        &bundle(|head| {
            head.primary.crc = CrcType::None;
            head.primary.timestamp.time = DtnTime::UNKNOWN;
        }),
        40,
    );
    world.run_for(MINUTE);
    world.crash(node);
    world.nodes[node].user.takes = true;
    world.start(node);
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, node, 1));
}

/// A bundle from `ipn:1.0` to `ipn:2.1` over a link with these ways.
fn emitted(emit: &[Emit]) -> (Head, World) {
    let mut world = World::new(2);
    let link = LinkConfig { link: LinkId(1), emit: emit.to_vec(), ..LinkConfig::default() };
    let a = world.node("a", |config| {
        config.node = "ipn:1.0".into();
        config.links.push(link);
    });
    let b = world.node("b", |config| config.node = "ipn:2.0".into());
    world.cable(a, b);
    world.tell(b, AppRequest::Register { endpoint: "ipn:2.1".into() });
    world.start_all();
    let payload = random(2, 20_000);
    world.send(a, 1, "ipn:2.1", Payload::Given(payload.clone()), SendOptions::default());
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, b, 1));
    assert_eq!(world.nodes[b].user.inbox[0].2, payload);
    (world.cables[0].heads[0].clone(), world)
}

fn has_three(eid: &Eid) -> bool {
    matches!(eid, Eid::Ipn(ipn) if ipn.three_elements)
}

#[test]
fn by_default_payloads_have_a_checksum_and_ipn_two_elements() {
    let (head, world) = emitted(&[]);
    assert_eq!(head.payload.crc, CrcType::Crc32c);
    assert!(
        ![&head.primary.destination, &head.primary.source, &head.primary.report_to]
            .map(has_three)
            .contains(&true)
    );
    assert_eq!(world.agent(0).counters().adapted, 0);
}

#[test]
fn no_payload_crc_goes_to_whom_the_operator_says() {
    let (head, world) = emitted(&[Emit::NoPayloadCrc]);
    assert_eq!((head.payload.crc, head.primary.crc), (CrcType::None, CrcType::Crc32c));
    assert_eq!(world.agent(0).counters().adapted, 1);
}

#[test]
fn three_element_ipn_goes_to_whom_the_operator_says() {
    let (head, world) = emitted(&[Emit::ThreeElementIpn]);
    assert_eq!(
        [&head.primary.destination, &head.primary.source, &head.primary.report_to].map(has_three),
        [true; 3]
    );
    assert_eq!(world.agent(0).counters().adapted, 1);
    let (head, _) = emitted(&[Emit::ThreeElementIpn, Emit::TwoElementIpn]);
    assert!(!has_three(&head.primary.source), "the last word counts");
}
