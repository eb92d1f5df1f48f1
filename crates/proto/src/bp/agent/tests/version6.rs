//! Bundles of version 6 together with version 7: each keeps its version.

use super::super::{ReportConfig, RetentionReason};
use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain, chain_with, has_arrived, random};
use super::world::{EPOCH_DTN_MS, Payload, World};
use crate::bp::{Eid, v6};
use crate::service::{
    AppIndication, AppRequest, BundleVersion, Priority, RefuseReason, ReportedStatus, SendFailure, SendId,
    SendOptions,
};
use crate::time::Duration;
use bytes::Bytes;

pub(super) fn version6() -> SendOptions {
    SendOptions { version: Some(BundleVersion::V6), ..SendOptions::default() }
}

fn eid(text: &str) -> Eid {
    Eid::from_uri(text).expect("an endpoint")
}

/// A bundle of an old node.
pub(super) fn foreign(destination: &str, payload: &'static [u8]) -> v6::Bundle {
    let mut primary = v6::PrimaryBlock::new(eid(destination), eid("dtn://old/app"), eid("dtn://old"), false);
    primary.created_s = EPOCH_DTN_MS / 1000;
    primary.sequence = 7;
    primary.lifetime_s = 3600;
    primary.flags = (v6::BundleFlags::SINGLETON).with_priority(Priority::Expedited);
    v6::Bundle::new(v6::Head::new(primary, 0), Bytes::from_static(payload))
}

#[test]
fn both_versions_cross_two_hops_side_by_side() {
    let mut world = chain(1);
    world.start_all();
    let payloads = [random(5, 100_000), random(6, 3000)];
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payloads[0].clone()), version6());
    world.send(MOON, 2, "dtn://earth/in", Payload::Given(payloads[1].clone()), SendOptions::default());
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 2));
    let inbox = &world.nodes[EARTH].user.inbox;
    assert!(payloads.iter().all(|payload| inbox.iter().any(|taken| taken.2 == *payload)));
    world.run_for(MINUTE);
    for node in [MOON, ORBITER, EARTH] {
        assert_eq!(world.agent(node).bundles(world.now).count(), 0);
    }
    for cable in &world.cables {
        assert_eq!((cable.heads.len(), cable.heads6.len()), (1, 1), "each leaves in its own version");
    }
    let head = &world.cables[1].heads6[0];
    assert_eq!(head.previous_hop(), Some(eid("dtn://orbiter/")));
    assert_eq!(head.primary.created_s, EPOCH_DTN_MS / 1000);
    assert_eq!(head.primary.lifetime_s, 86_400);
    assert!(head.primary.flags.contains(v6::BundleFlags::SINGLETON));
}

#[test]
fn priority_is_the_class_of_service() {
    let mut world = chain(2);
    world.start_all();
    world.cut(0);
    for (number, priority) in [(1, Priority::Bulk), (2, Priority::Normal), (3, Priority::Expedited)] {
        let options = SendOptions { priority, ..version6() };
        world.send(MOON, number, "dtn://earth/in", Payload::Given(random(number, 3000)), options);
    }
    world.run_for(MINUTE);
    world.heal(0);
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 3));
    let order: Vec<Priority> =
        world.cables[0].heads6.iter().map(|head| head.primary.flags.priority()).collect();
    assert_eq!(order, [Priority::Expedited, Priority::Normal, Priority::Bulk]);
}

#[test]
fn a_break_at_any_byte_goes_on_with_fragments() {
    for at in (1..9000).step_by(211) {
        let mut world = chain(at);
        world.cables[0].window = 700;
        world.cables[0].cut_at = Some((at, Duration::from_secs(30)));
        world.start_all();
        let payload = random(at, 8000);
        world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), version6());
        world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
        assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload, "cut at {at}");
        let carried = world.cables[0].carried;
        assert!(carried < 8000 + 700 * 2 + 600, "cut at {at}: {carried} bytes");
        world.run_for(MINUTE);
        for node in [MOON, ORBITER, EARTH] {
            assert_eq!(world.agent(node).bundles(world.now).count(), 0, "cut at {at}: left over");
        }
    }
}

#[test]
fn small_transfers_make_fragments_in_advance() {
    let mut world = chain(3);
    world.cables[1].transfer_bytes_max = 1000;
    world.start_all();
    let payload = random(3, 8000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), version6());
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    assert!(world.cables[1].heads6.len() > 8);
    assert!(world.cables[1].heads6.iter().all(|head| head.primary.fragment.is_some()));
}

#[test]
fn reports_are_of_the_version_of_their_subject() {
    let mut world = chain_with(4, |config| config.reports = ReportConfig::all());
    world.start_all();
    let options = SendOptions { report_delivery: true, report_forwarding: true, ..version6() };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 100)), options);
    let reported = |world: &World, wanted: ReportedStatus, by: &str| {
        world.nodes[MOON].user.log.iter().any(|said| {
            matches!(said, AppIndication::Report { status, reporter, .. } if *status == wanted && reporter == by)
        })
    };
    world.run_until(HOUR, "reports", |world| {
        reported(world, ReportedStatus::Delivered, "dtn://earth/")
            && reported(world, ReportedStatus::Forwarded, "dtn://orbiter/")
    });
    assert_eq!(world.cables.iter().map(|cable| cable.heads.len()).sum::<usize>(), 0, "no version 7 at all");
    let AppIndication::Accepted { created, .. } = world.nodes[MOON]
        .user
        .log
        .iter()
        .find(|said| matches!(said, AppIndication::Accepted { .. }))
        .expect("it was accepted")
    else {
        unreachable!()
    };
    let named = world.nodes[MOON].user.log.iter().all(|said| match said {
        AppIndication::Report { name, .. } => name.created == *created,
        _ => true,
    });
    assert!(named, "reports name the bundle as its acceptance did");
}

#[test]
fn it_expires_with_the_last_second_of_its_lifetime() {
    let mut world = World::new(5);
    world.node("alone", |_| {});
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let options = SendOptions { lifetime: Duration::from_millis(9_500), ..version6() };
    world.send(0, 1, "dtn://nowhere/x", Payload::Given(random(1, 10)), options);
    world.run_for(Duration::from_millis(10_990));
    assert_eq!(
        world.agent(0).bundles(world.now).map(|status| status.why).collect::<Vec<_>>(),
        [RetentionReason::NoRoute]
    );
    world.run_for(Duration::from_millis(20));
    assert_eq!(world.agent(0).bundles(world.now).count(), 0);
    let failed = AppIndication::Failed { send: SendId(1), reason: SendFailure::Expired };
    assert_eq!(world.nodes[0].user.ended[&SendId(1)], failed);
}

#[test]
fn blocks_of_others_keep_their_place_before_and_behind_the_payload() {
    let mut world = World::new(6);
    let node = world.node("relay", |_| {});
    world.node("next", |_| {});
    world.cable(0, 1);
    world.route(0, "*", 0);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let mut bundle = foreign("http://elsewhere/x?y", b"hello");
    let block = |number, flags, data: &'static [u8]| v6::Block {
        block_type: v6::BlockType::from_number(number),
        flags,
        references: None,
        data: Bytes::from_static(data),
    };
    let unprocessed = v6::BlockFlags::FORWARDED_UNPROCESSED;
    bundle.head.blocks = vec![
        block(200, v6::BlockFlags::NONE, b"kept"),
        block(201, v6::BlockFlags::DISCARD, b"discarded"),
        block(8, v6::BlockFlags::NONE, b"\x01metadata"),
    ];
    bundle.head.blocks[0].references = Some(vec![]);
    bundle.head.after = vec![
        block(202, v6::BlockFlags::NONE, b"behind"),
        block(203, v6::BlockFlags::DISCARD, b"discarded, too"),
    ];
    bundle.head.payload.last = false;
    world.cut(0);
    world.inject(node, &bundle.to_bytes(), 7);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.refusals(), []);
    // The blocks after the payload are restored after a crash.
    world.crash(0);
    world.start(0);
    world.heal(0);
    world.run_for(MINUTE);
    let received = world.agent(1).bundles(world.now).next().expect("it is at the next node");
    assert_eq!(received.destination, eid("http://elsewhere/x?y"));
    assert_eq!(received.version, BundleVersion::V6);
    let record = *world.nodes[1].disk.records.keys().last().expect("a record");
    let log = &world.nodes[1].disk.records[&record];
    let stored = log.read(36, log.length - 36 - 24);
    let stored = v6::Bundle::decode(&mut stored.clone()).expect("a bundle");
    assert_eq!(stored.payload, bundle.payload);
    let (before, behind) = (&stored.head.blocks, &stored.head.after);
    assert_eq!(before[0].block_type, v6::BlockType::PreviousHop);
    let kept = |block: &v6::Block, data: &[u8], flags| block.data == data && block.flags == flags;
    assert!(kept(&before[1], b"kept", unprocessed) && before[1].references == Some(vec![]));
    assert!(kept(&before[2], b"\x01metadata", v6::BlockFlags::NONE) && before.len() == 3);
    assert!(kept(&behind[0], b"behind", unprocessed) && behind.len() == 1);
    assert_eq!(stored.head.primary.dictionary(), bundle.head.primary.dictionary(), "as it came");
}

#[test]
fn a_block_that_wants_the_bundle_deleted_is_heeded_wherever_it_stands() {
    for behind in [false, true] {
        let mut world = World::new(7);
        let node = world.node("earth", |_| {});
        world.start_all();
        world.run_for(Duration::from_secs(1));
        let mut bundle = foreign("dtn://earth/in", b"hello");
        let block = v6::Block {
            block_type: v6::BlockType::Unknown(222),
            flags: v6::BlockFlags::DELETE_BUNDLE,
            references: None,
            data: Bytes::new(),
        };
        if behind {
            bundle.head.after.push(block);
            bundle.head.payload.last = false;
        } else {
            bundle.head.blocks.push(block);
        }
        world.inject(node, &bundle.to_bytes(), 1000);
        world.run_for(MINUTE);
        assert_eq!(world.refusals(), [RefuseReason::NotAcceptable]);
        assert_eq!(world.agent(node).counters().deleted_block, 1);
        assert!(world.nodes[node].user.inbox.is_empty());
    }
}

#[test]
fn the_same_name_in_two_versions_is_two_bundles() {
    let mut world = World::new(8);
    let node = world.node("earth", |_| {});
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let old = foreign("dtn://earth/in", b"six");
    let timestamp = crate::bp::CreationTimestamp { time: crate::bp::DtnTime(EPOCH_DTN_MS), sequence: 7 };
    let primary = crate::bp::PrimaryBlock::new(
        eid("dtn://earth/in"),
        old.head.primary.source().clone(),
        timestamp,
        3_600_000,
    );
    let new = crate::bp::Bundle::new(crate::bp::Head::new(primary, 0), Bytes::from_static(b"seven"));
    world.inject(node, &old.to_bytes(), 5);
    world.inject(node, &new.to_bytes(), 5);
    world.run_for(MINUTE);
    assert_eq!(world.refusals(), []);
    // Both were delivered; their tombstones prevent another delivery of either, also after a restart.
    world.crash(node);
    world.start(node);
    world.run_for(Duration::from_secs(1));
    world.inject(node, &old.to_bytes(), 5);
    world.inject(node, &new.to_bytes(), 5);
    world.run_for(MINUTE);
    assert_eq!(world.refusals(), [RefuseReason::Completed; 2]);
}

#[test]
fn a_node_without_a_clock_sends_the_age() {
    let mut world = chain(9);
    world.nodes[MOON].clock_ms = None;
    world.start_all();
    world.cut(0);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 100)), version6());
    world.run_for(Duration::from_secs(90));
    world.heal(0);
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    let head = &world.cables[0].heads6[0];
    assert_eq!(head.primary.created_s, 0);
    assert!((89_000_000..91_000_000).contains(&head.age_us().expect("an age")), "{:?}", head.age_us());
}

/// A bundle without creation time, with this age in its block.
fn aged(destination: &str, age: u64) -> Bytes {
    let mut bundle = foreign(destination, b"hello");
    bundle.head.primary.created_s = 0;
    bundle.head.set(&v6::Content::Age(age));
    bundle.to_bytes()
}

/// Age that a relay forwards for a bundle of this age, which it holds for ten seconds.
fn relayed_age(in_seconds: &[&str], age: u64) -> Option<u64> {
    let mut world = World::new(11);
    let patterns = in_seconds.iter().map(|&node| node.to_owned()).collect();
    let relay = world.node("relay", |config| config.version6.ages_in_seconds = patterns);
    world.node("next", |_| {});
    world.cable(0, 1);
    world.route(0, "*", 0);
    world.start_all();
    world.cut(0);
    world.run_for(Duration::from_secs(1));
    world.inject(relay, &aged("dtn://elsewhere/x", age), 1000);
    world.run_for(Duration::from_secs(10));
    world.heal(0);
    world.run_for(MINUTE);
    world.cables[0].heads6.first().and_then(v6::Head::age_us)
}

#[test]
fn ages_are_in_seconds_with_whom_the_operator_says() {
    let micros = |age: Option<u64>| age.map(|age| age / 1_000_000);
    assert_eq!(micros(relayed_age(&[], 90_000_000)), Some(100));
    assert_eq!(relayed_age(&["dtn://neighbour/", "dtn://next/"], 90), Some(100));
    assert_eq!(micros(relayed_age(&["dtn://neigh*"], 90)), Some(100), "the next one has microseconds");
    assert_eq!(relayed_age(&["dtn://next/"], 90_000_000), Some(100), "only the next one has seconds");
    assert_eq!(relayed_age(&["*"], 3601), None, "it was over when it came");
    assert_eq!(relayed_age(&["*"], u64::MAX), None);
}

/// RFC 5050 4 permits such a bundle. If its sender were only asked to resend it, it would do so for ever.
#[test]
fn a_bundle_without_a_payload_block_is_refused_for_good_and_counted() {
    let mut world = World::new(12);
    let node = world.node("earth", |_| {});
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let mut bytes = foreign("dtn://earth/in", b"").to_bytes().to_vec();
    let at = bytes.len() - 3;
    assert_eq!(bytes[at..], [1, 8, 0], "the payload block: type, last block, length");
    bytes[at] = 200;
    for piece in [1, 1000] {
        world.inject(node, &bytes.clone().into(), piece);
    }
    world.run_for(MINUTE);
    assert_eq!(world.refusals(), [RefuseReason::NotAcceptable; 2]);
    let counters = world.agent(node).counters();
    assert_eq!((counters.refused_not_acceptable, counters.refused_damaged, counters.received), (2, 0, 0));
    assert_eq!(world.disk_records(node), 1, "the boot record alone");
}

#[test]
fn the_version_of_a_send_follows_its_destination() {
    let mut world = chain_with(10, |config| config.version6.destinations = vec!["dtn://earth/old*".into()]);
    world.start_all();
    world.tell(EARTH, AppRequest::Register { endpoint: "dtn://earth/old".into() });
    world.send(MOON, 1, "dtn://earth/old", Payload::Given(random(1, 100)), SendOptions::default());
    world.send(MOON, 2, "dtn://earth/in", Payload::Given(random(2, 100)), SendOptions::default());
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 2));
    assert_eq!((world.cables[0].heads.len(), world.cables[0].heads6.len()), (1, 1));
    assert_eq!(*world.cables[0].heads6[0].primary.destination(), eid("dtn://earth/old"));
    // Custody requires version 6, a singleton destination and a source.
    let options = SendOptions { custody: true, version: Some(BundleVersion::V7), ..SendOptions::default() };
    world.send(MOON, 3, "dtn://earth/in", Payload::Given(random(3, 10)), options);
    let options = SendOptions { custody: true, ..SendOptions::default() };
    world.send(MOON, 4, "dtn://earth/~group", Payload::Given(random(3, 10)), options);
    world.run_for(MINUTE);
    for send in [SendId(3), SendId(4)] {
        let failed = AppIndication::Failed { send, reason: SendFailure::NoCustody };
        assert_eq!(world.nodes[MOON].user.ended[&send], failed);
    }
}
