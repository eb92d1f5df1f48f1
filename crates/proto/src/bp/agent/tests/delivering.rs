//! Ends of bundles: delivered once, expired, refused, reported.

use super::super::{EvictionPolicy, ReportConfig, RetentionReason};
use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain, chain_with, has_arrived, random};
use super::world::{EPOCH_DTN_MS, Payload, World};
use crate::bp::{
    Block, BlockFlags, BlockType, Bundle, BundleFlags, Content, CrcType, CreationTimestamp, DtnTime, Eid,
    Head, HopCount, PrimaryBlock,
};
use crate::rng::Rng;
use crate::service::{
    AppIndication, AppRequest, Priority, RefuseReason, ReportedStatus, SendFailure, SendId, SendOptions,
};
use crate::time::Duration;
use bytes::Bytes;

fn timestamp(sequence: u64) -> CreationTimestamp {
    CreationTimestamp { time: DtnTime(EPOCH_DTN_MS), sequence }
}

fn head_for(destination: &str, sequence: u64) -> Head {
    let source: Eid = "dtn://far/app".parse().expect("an endpoint");
    let destination = destination.parse().expect("an endpoint");
    Head::new(PrimaryBlock::new(destination, source, timestamp(sequence), 3_600_000), 0)
}

fn lone() -> (World, usize) {
    let mut world = World::new(1);
    let node = world.node("earth", |config| config.reports = ReportConfig::all());
    world.start_all();
    world.run_for(Duration::from_secs(1));
    (world, node)
}

#[test]
fn overlapping_fragments_give_the_payload_once() {
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let (mut world, node) = lone();
        let payload = random(seed, 2 + rng.below(900) as usize);
        let whole = Bundle::new(head_for("dtn://earth/in", 1), payload.clone());
        let mut here = vec![false; payload.len()];
        let mut fragments = 0;
        while world.nodes[node].user.inbox.is_empty() {
            let from = rng.below(payload.len() as u64);
            let to = from + 1 + rng.below((payload.len() as u64 - from).min(300));
            let head = whole.head.fragment(from, to - from);
            let fragment = Bundle::new(head, payload.slice(from as usize..to as usize));
            let missing = here.iter().any(|here| !here);
            assert!(missing, "seed {seed}: all is here and nothing delivered");
            let new = here[from as usize..to as usize].iter().any(|here| !here);
            here[from as usize..to as usize].fill(true);
            let refused = world.refusals().len();
            world.inject(node, &fragment.to_bytes(), 1 + rng.below(200) as usize);
            world.run_for(Duration::from_millis(30));
            assert_eq!(world.refusals().len() == refused, new, "seed {seed}: only what is here is refused");
            fragments += 1;
        }
        assert_eq!(world.nodes[node].user.inbox[0].2, payload, "seed {seed}");
        world.run_for(MINUTE);
        assert_eq!(world.disk_records(node), 2, "seed {seed}: of {fragments} fragments something is left");
        world.inject(node, &whole.to_bytes(), 500);
        assert_eq!(world.refusals().last(), Some(&RefuseReason::Completed), "it was delivered");
    }
}

#[test]
fn fragments_that_contradict_each_other_are_put_together_apart() {
    let (mut world, node) = lone();
    let payload = random(1, 100);
    let whole = Bundle::new(head_for("dtn://earth/in", 1), payload.clone());
    let other = Bundle::new(head_for("dtn://earth/in", 1), random(1, 120));
    world.inject(node, &Bundle::new(whole.head.fragment(0, 60), payload.slice(..60)).to_bytes(), 500);
    world.run_for(MINUTE);
    world.inject(node, &Bundle::new(other.head.fragment(60, 60), random(1, 60)).to_bytes(), 500);
    world.run_for(MINUTE);
    let whys: Vec<RetentionReason> = world.agent(node).bundles(world.now).map(|status| status.why).collect();
    assert_eq!(
        whys,
        [RetentionReason::InParts { have: 60, of: 100 }, RetentionReason::InParts { have: 60, of: 120 }]
    );
    world.inject(node, &Bundle::new(whole.head.fragment(60, 40), payload.slice(60..)).to_bytes(), 500);
    world.run_for(MINUTE);
    assert_eq!(world.nodes[node].user.inbox[0].2, payload);
    // A fragment with the same bundle ID that belongs to another payload was accepted, too: it is kept for
    // its lifetime.
    let whys: Vec<RetentionReason> = world.agent(node).bundles(world.now).map(|status| status.why).collect();
    assert_eq!(whys, [RetentionReason::InParts { have: 60, of: 120 }]);
}

#[test]
fn what_is_not_wanted_is_refused_with_the_reason() {
    let (mut world, node) = lone();
    let bundle = |head: Head| Bundle::new(head, random(9, 50)).to_bytes();
    let mut cases: Vec<(&str, Bytes, RefuseReason)> = Vec::new();
    cases.push(("nobody", bundle(head_for("dtn:none", 1)), RefuseReason::Completed));
    let mut old = head_for("dtn://earth/in", 2);
    old.primary.lifetime_ms = 500;
    cases.push(("expired", bundle(old), RefuseReason::Completed));
    let mut hops = head_for("dtn://earth/in", 3);
    hops.set(&Content::HopCount(HopCount { limit: 3, count: 4 }));
    cases.push(("hops", bundle(hops), RefuseReason::Completed));
    let strange = |flags| Block {
        block_type: BlockType::Unknown(200),
        number: 2,
        flags,
        crc: CrcType::None,
        data: Bytes::from_static(&[0]),
    };
    let mut deleting = head_for("dtn://earth/in", 4);
    deleting.blocks.push(strange(BlockFlags::DELETE_BUNDLE));
    cases.push(("block", bundle(deleting), RefuseReason::NotAcceptable));
    cases.push(("garbage", random(1, 300), RefuseReason::Retransmit));
    let good = bundle(head_for("dtn://earth/in", 5));
    let mut damaged = good.to_vec();
    let middle = damaged.len() - 20;
    damaged[middle] ^= 1;
    cases.push(("damaged", damaged.into(), RefuseReason::Retransmit));
    cases.push(("short", good.slice(..good.len() - 3), RefuseReason::Retransmit));
    let mut long = good.to_vec();
    long.push(0);
    cases.push(("long", long.into(), RefuseReason::Retransmit));
    for (index, (name, bytes, reason)) in cases.into_iter().enumerate() {
        world.inject(node, &bytes, 40);
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.refusals().get(index), Some(&reason), "{name}");
    }
    // A bundle refused at its last byte is accepted the next time.
    world.inject(node, &good, 40);
    world.run_for(Duration::from_secs(1));
    assert!(has_arrived(&world, node, 1));
    world.run_for(HOUR);
    assert_eq!(world.agent(node).bundles(world.now).count(), 0);
}

#[test]
fn any_bytes_in_any_pieces_never_panic() {
    let (mut world, node) = lone();
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut bytes = Bundle::new(head_for("dtn://earth/in", seed), random(seed, 80)).to_bytes().to_vec();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        bytes.truncate(1 + rng.below(bytes.len() as u64) as usize);
        world.inject(node, &bytes.into(), 1 + rng.below(90) as usize);
        world.run_for(Duration::from_millis(20));
    }
}

#[test]
fn an_empty_administrative_record_is_no_record() {
    let (mut world, node) = lone();
    let mut head = head_for("dtn://earth/", 1);
    head.primary.flags |= BundleFlags::ADMINISTRATIVE_RECORD;
    world.inject(node, &Bundle::new(head, Bytes::new()).to_bytes(), 50);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.agent(node).counters().admin_unknown, 1);
    assert_eq!(world.agent(node).bundles(world.now).count(), 0);
}

#[test]
fn blocks_that_nobody_knows_stay_or_go_as_they_wish() {
    let mut world = World::new(2);
    let (a, b) = (world.node("a", |_| {}), world.node("b", |config| config.reports = ReportConfig::all()));
    let cable = world.cable(a, b);
    world.route(a, "*", cable);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let mut head = head_for("dtn://b/in", 1);
    for (number, flags) in [(2, BlockFlags::DISCARD), (3, BlockFlags::NONE)] {
        let data = Bytes::from_static(&[7]);
        head.blocks.push(Block {
            block_type: BlockType::Unknown(200),
            number,
            flags,
            crc: CrcType::None,
            data,
        });
    }
    head.set(&Content::HopCount(HopCount { limit: 9, count: 2 }));
    head.set(&Content::BundleAge(1000));
    world.inject(a, &Bundle::new(head, random(1, 100)).to_bytes(), 50);
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, b, 1));
    let head = &world.cables[cable].heads[0];
    let kept: Vec<u64> = head
        .blocks
        .iter()
        .filter(|block| block.block_type == BlockType::Unknown(200))
        .map(|block| block.number)
        .collect();
    assert_eq!(kept, [3]);
    assert_eq!(head.hop_count(), Some(HopCount { limit: 9, count: 3 }));
    assert_eq!(head.previous_node(), "dtn://a/".parse().ok());
    let age = head.age_ms().expect("it has an age");
    assert!((1001..1100).contains(&age), "the age grows by the time it was here: {age}");
}

#[test]
fn a_crash_at_any_instant_of_the_taking_delivers_once() {
    for instant in 0..60 {
        let mut world = World::new(instant);
        let node = world.node("earth", |_| {});
        world.start_all();
        world.run_for(Duration::from_secs(1));
        let bundle = Bundle::new(head_for("dtn://earth/in", 1), random(instant, 100));
        world.inject(node, &bundle.to_bytes(), 60);
        world.run_for(Duration::from_micros(instant * 150));
        world.crash(node);
        world.start(node);
        world.run_for(MINUTE);
        // The application itself checks that a delivery is not repeated after it ended as accepted.
        assert!(world.nodes[node].user.inbox.len() <= 1);
        assert_eq!(world.agent(node).bundles(world.now).count(), 0, "instant {instant}");
    }
}

#[test]
fn what_is_not_taken_is_said_again() {
    let mut world = World::new(3);
    let node = world.node("earth", |_| {});
    world.nodes[node].user.takes = false;
    world.start_all();
    world.send(node, 1, "dtn://earth/in", Payload::Given(random(3, 10)), SendOptions::default());
    let told = |world: &World| {
        let log = &world.nodes[node].user.log;
        log.iter().filter(|said| matches!(said, AppIndication::Delivered { .. })).count()
    };
    world.run_for(MINUTE);
    assert_eq!(told(&world), 1);
    world.crash(node);
    world.start(node);
    world.run_for(MINUTE);
    assert_eq!(told(&world), 2, "after a restart");
    world.request(node, AppRequest::Register { endpoint: "dtn://earth/in".into() });
    assert_eq!(told(&world), 3, "after a registration");
    world.send(node, 2, "dtn://earth/other", Payload::Given(random(3, 10)), SendOptions::default());
    world.run_for(MINUTE);
    let whys: Vec<RetentionReason> = world.agent(node).bundles(world.now).map(|status| status.why).collect();
    assert!(
        matches!(whys[..], [RetentionReason::NotTaken(_), RetentionReason::NobodyRegistered(_)]),
        "{whys:?}"
    );
}

fn lifetime(seconds: u64) -> SendOptions {
    SendOptions { lifetime: Duration::from_secs(seconds), report_deletion: true, ..SendOptions::default() }
}

fn statuses(world: &World, node: usize) -> Vec<(ReportedStatus, u64, String)> {
    let log = world.nodes[node].user.log.iter();
    log.filter_map(|said| match said {
        AppIndication::Report { status, reason, reporter, .. } => Some((*status, *reason, reporter.clone())),
        _ => None,
    })
    .collect()
}

#[test]
fn lifetimes_end_by_the_clock_at_every_node() {
    let mut world = chain_with(4, |config| config.reports.deletion = true);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.cut(0);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(4, 100)), lifetime(50));
    world.run_for(Duration::from_secs(49));
    assert!(world.nodes[MOON].user.ended.is_empty());
    world.run_for(Duration::from_secs(2));
    let failed = AppIndication::Failed { send: SendId(1), reason: SendFailure::Expired };
    assert_eq!(world.nodes[MOON].user.ended[&SendId(1)], failed);
    world.heal(0);
    world.cut(1);
    world.send(MOON, 2, "dtn://earth/in", Payload::Given(random(4, 100)), lifetime(50));
    world.run_for(MINUTE);
    assert_eq!(world.nodes[MOON].user.ended[&SendId(2)], AppIndication::Sent { send: SendId(2) });
    assert_eq!(world.agent(ORBITER).counters().deleted_expired, 1);
    let deleted = |node: &str| (ReportedStatus::Deleted, 1, format!("dtn://{node}/"));
    assert_eq!(statuses(&world, MOON), [deleted("moon"), deleted("orbiter")]);
}

#[test]
fn without_clocks_lifetimes_end_by_age() {
    let mut world = chain(5);
    for node in &mut world.nodes {
        node.clock_ms = None;
    }
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.cut(0);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(5, 100)), lifetime(100));
    world.run_for(Duration::from_secs(60));
    world.heal(0);
    world.cut(1);
    world.run_for(Duration::from_secs(35));
    assert_eq!(world.agent(ORBITER).bundles(world.now).count(), 1);
    assert_eq!(world.cables[0].heads[0].age_ms().map(|age| age / 1000), Some(60));
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.agent(ORBITER).counters().deleted_expired, 1, "60 s there and 40 s here");
    // Two bundles of a node without a clock are not mistaken for one, whatever happens to the node.
    world.heal(1);
    world.send(MOON, 2, "dtn://earth/in", Payload::Given(random(6, 100)), lifetime(100));
    world.run_for(MINUTE);
    world.crash(MOON);
    world.start(MOON);
    world.heal(0);
    world.send(MOON, 3, "dtn://earth/in", Payload::Given(random(7, 100)), lifetime(100));
    world.run_for(MINUTE);
    assert!(has_arrived(&world, EARTH, 2));
}

#[test]
fn all_four_reports_come_when_asked_for_and_only_then() {
    let mut world = chain_with(7, |config| config.reports = ReportConfig::all());
    world.start_all();
    let options = SendOptions {
        report_delivery: true,
        report_reception: true,
        report_forwarding: true,
        report_deletion: true,
        ..SendOptions::default()
    };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(7, 100)), options.clone());
    world.run_for(MINUTE);
    let mut said = statuses(&world, MOON);
    said.sort();
    let expected = [
        (ReportedStatus::Received, 0, "dtn://earth/"),
        (ReportedStatus::Received, 0, "dtn://orbiter/"),
        (ReportedStatus::Forwarded, 0, "dtn://moon/"),
        (ReportedStatus::Forwarded, 0, "dtn://orbiter/"),
        (ReportedStatus::Delivered, 0, "dtn://earth/"),
    ];
    assert_eq!(said, expected.map(|(status, reason, node)| (status, reason, node.to_owned())));
    let limited = SendOptions { hop_limit: Some(1), ..options };
    world.send(MOON, 2, "dtn://earth/in", Payload::Given(random(8, 100)), limited);
    world.run_for(MINUTE);
    let deleted = (ReportedStatus::Deleted, 9, "dtn://orbiter/".to_owned());
    assert!(statuses(&world, MOON).contains(&deleted), "the hop limit: {:?}", statuses(&world, MOON));
    let before = statuses(&world, MOON).len();
    world.send(MOON, 3, "dtn://earth/in", Payload::Given(random(9, 100)), SendOptions::default());
    world.run_for(MINUTE);
    assert!(has_arrived(&world, EARTH, 2));
    assert_eq!(statuses(&world, MOON).len(), before);
}

#[test]
fn reports_are_off_by_default() {
    let mut world = chain(8);
    world.start_all();
    let options = SendOptions { report_delivery: true, report_reception: true, ..SendOptions::default() };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(7, 100)), options);
    world.run_for(MINUTE);
    assert!(has_arrived(&world, EARTH, 1));
    assert!(statuses(&world, MOON).is_empty());
}

#[test]
fn a_full_store_says_so_and_evicts_only_by_policy() {
    for evict in [EvictionPolicy::None, EvictionPolicy::LowestPriority] {
        let mut world = World::new(9);
        let node = world.node("earth", |config| {
            config.evict = evict;
            config.limits.store_bytes_max = 5000;
        });
        world.start_all();
        world.run_for(Duration::from_secs(1));
        let send = |world: &mut World, number: u64, priority| {
            let options = SendOptions { priority, ..SendOptions::default() };
            world.send(node, number, "dtn://far/in", Payload::Given(random(number, 2000)), options);
            world.run_for(Duration::from_secs(1));
        };
        send(&mut world, 1, Priority::Bulk);
        send(&mut world, 2, Priority::Bulk);
        send(&mut world, 3, Priority::Bulk);
        send(&mut world, 4, Priority::Expedited);
        let full = |number| AppIndication::Failed { send: SendId(number), reason: SendFailure::Full };
        let ended = &world.nodes[node].user.ended;
        assert_eq!(ended.get(&SendId(3)), Some(&full(3)));
        match evict {
            EvictionPolicy::None => assert_eq!(ended.get(&SendId(4)), Some(&full(4))),
            EvictionPolicy::LowestPriority => {
                assert_eq!(ended.get(&SendId(1)), Some(&full(1)), "the oldest of the least urgent");
                assert!(world.nodes[node].user.accepted.contains(&SendId(4)));
            }
        }
        let bundle = Bundle::new(head_for("dtn://far/in", 1), random(9, 3000));
        world.inject(node, &bundle.to_bytes(), 500);
        assert_eq!(world.refusals(), [RefuseReason::NoResources]);
    }
}

#[test]
fn a_disk_without_space_fails_sends_and_keeps_what_it_has() {
    let mut world = World::new(10);
    let node = world.node("earth", |_| {});
    world.nodes[node].disk.capacity = Some(6000);
    world.start_all();
    for number in 1..=4 {
        let payload = Payload::Given(random(number, 1700));
        world.send(node, number, "dtn://far/in", payload, SendOptions::default());
        world.run_for(Duration::from_secs(1));
    }
    let accepted: Vec<u64> = world.nodes[node].user.accepted.iter().map(|send| send.0).collect();
    assert_eq!(accepted, [1, 2, 3]);
    let full = AppIndication::Failed { send: SendId(4), reason: SendFailure::Full };
    assert_eq!(world.nodes[node].user.ended[&SendId(4)], full);
    world.crash(node);
    world.start(node);
    world.run_for(MINUTE);
    assert_eq!(world.agent(node).bundles(world.now).count(), 3);
}

#[test]
fn sends_can_be_cancelled_at_any_time_and_end_once() {
    for instant in 0..30 {
        let mut world = chain(instant);
        world.start_all();
        world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 9000)), SendOptions::default());
        world.run_for(Duration::from_millis(instant * 60));
        if world.nodes[MOON].user.ended.is_empty() {
            world.request(MOON, AppRequest::Cancel { send: SendId(1) });
        }
        world.run_for(MINUTE);
        let failed = AppIndication::Failed { send: SendId(1), reason: SendFailure::Cancelled };
        let ended = &world.nodes[MOON].user.ended[&SendId(1)];
        assert!(*ended == failed || has_arrived(&world, EARTH, 1), "instant {instant}: {ended:?}");
        assert_eq!(world.agent(MOON).bundles(world.now).count(), 0);
    }
}

#[test]
fn bad_endpoints_and_empty_payloads() {
    let mut world = chain(11);
    world.start_all();
    world.send(MOON, 1, "earth", Payload::Given(random(1, 10)), SendOptions::default());
    let foreign = SendOptions { source: Some("dtn://mars/app".into()), ..SendOptions::default() };
    world.send(MOON, 2, "dtn://earth/in", Payload::Given(random(1, 10)), foreign);
    world.send(MOON, 3, "dtn://earth/in", Payload::Given(Bytes::new()), SendOptions::default());
    world.send(MOON, 4, "dtn:none", Payload::Given(random(1, 10)), SendOptions::default());
    let nobody =
        SendOptions { source: Some("dtn:none".into()), report_delivery: true, ..SendOptions::default() };
    world.send(MOON, 5, "dtn://earth/in", Payload::Given(random(5, 10)), nobody);
    world.run_for(MINUTE);
    let ended = &world.nodes[MOON].user.ended;
    for number in [1, 2] {
        let failed = AppIndication::Failed { send: SendId(number), reason: SendFailure::BadEndpoint };
        assert_eq!(ended[&SendId(number)], failed);
    }
    for number in [3, 4, 5] {
        assert_eq!(ended[&SendId(number)], AppIndication::Sent { send: SendId(number) });
    }
    let mut inbox: Vec<(&str, usize)> = world.nodes[EARTH]
        .user
        .inbox
        .iter()
        .map(|(source, _, bytes, _)| (source.as_str(), bytes.len()))
        .collect();
    inbox.sort();
    assert_eq!(inbox, [("dtn://moon/", 0), ("dtn:none", 10)]);
    let anonymous = world.cables[0].heads.iter().find(|head| head.primary.source.is_null()).expect("it went");
    assert!(anonymous.primary.flags.contains(BundleFlags::MUST_NOT_FRAGMENT));
    assert!(!anonymous.primary.flags.intersects(BundleFlags::REPORTS));
}
