//! Custody transfer: the custodian of a bundle, and the end of its custody.

use super::super::{
    CheckRule, Config, Counters, Endpoints, RetentionReason, RouterChoice, Security, SignatureCheck,
};
use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain_with, has_arrived, random};
use super::world::{EPOCH_DTN_MS, INJECTED, Payload, World};
use crate::bp::bpsec::{Fingerprint, Keys};
use crate::bp::{Eid, v6};
use crate::service::{
    AppIndication, BundleVersion, BundlesIndication, DownReason, LinkId, ManagementRequest, NextHop,
    RefuseReason, ReportedStatus, SendFailure, SendId, SendOptions, TransferId,
};
use crate::time::Duration;
use bytes::Bytes;
use std::sync::Arc;

fn in_custody() -> SendOptions {
    SendOptions { custody: true, ..SendOptions::default() }
}

fn everybody(config: &mut Config) {
    config.custody.accept_from = vec!["*".into()];
}

fn nobody(_: &mut Config) {}

fn counters(world: &World, node: usize) -> Counters {
    *world.agent(node).counters()
}

fn reasons(world: &World, node: usize) -> Vec<RetentionReason> {
    world.agent(node).bundles(world.now).map(|status| status.why).collect()
}

fn sent(world: &World, send: u64) -> bool {
    world.nodes[MOON].user.ended.get(&SendId(send)) == Some(&AppIndication::Sent { send: SendId(send) })
}

#[test]
fn custody_moves_from_hop_to_hop() {
    let mut world = chain_with(1, everybody);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.cut(1);
    let payload = random(1, 20_000);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), in_custody());
    world.run_until(MINUTE, "release", |world| sent(world, 1));
    assert_eq!(reasons(&world, MOON), [], "the orbiter is responsible now");
    let held = world.agent(ORBITER).bundles(world.now).next().expect("the bundle");
    assert_eq!(held.custodian, Some("dtn://orbiter/".parse().unwrap()));
    assert_eq!((held.version, held.wants_custody), (BundleVersion::V6, true));
    world.heal(1);
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    world.run_for(MINUTE);
    for node in [MOON, ORBITER, EARTH] {
        assert_eq!(reasons(&world, node), []);
        assert_eq!(counters(&world, node).custody_released, 1);
        assert_eq!(counters(&world, node).custody_timeouts, 0);
    }
    assert_eq!(counters(&world, ORBITER).custody_accepted, 1);
    // Each custodian has signalled to the previous one, which has received the signal.
    let signals = [MOON, ORBITER, EARTH].map(|node| {
        let counted = counters(&world, node);
        (counted.custody_signals_heard, counted.custody_signals_sent, counted.custody_signals_unsent)
    });
    assert_eq!(signals, [(1, 0, 0), (1, 1, 0), (0, 1, 0)]);
    // The header names the custodian of each hop.
    let custodian = |cable: usize| {
        let head = world.cables[cable].heads6.iter().find(|head| head.payload.length == 20_000);
        head.expect("the bundle").primary.custodian().uri()
    };
    assert_eq!((custodian(0), custodian(1)), ("dtn://moon/".into(), "dtn://orbiter/".into()));
}

#[test]
fn without_another_custodian_the_source_waits_for_the_delivery() {
    let mut world = chain_with(2, nobody);
    world.nodes[EARTH].user.takes = false;
    world.start_all();
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(2, 3000)), in_custody());
    world.run_for(Duration::from_secs(30));
    assert!(
        matches!(reasons(&world, MOON)[..], [RetentionReason::InCustody { of: Some(_), .. }]),
        "acknowledged, and kept"
    );
    assert!(!sent(&world, 1));
    // The bundle is resent at growing intervals, and refused where it arrives again.
    world.run_for(10 * HOUR);
    let times = counters(&world, MOON).custody_timeouts;
    assert!((8..=11).contains(&times), "a minute, two, four ..: {times} times in ten hours");
    assert_eq!(counters(&world, MOON).custody_released, 0);
    world.crash(EARTH);
    world.nodes[EARTH].user.takes = true;
    world.start(EARTH);
    world.run_until(HOUR, "release", |world| sent(world, 1));
    world.run_for(MINUTE);
    assert_eq!(world.nodes[EARTH].user.inbox.len(), 1);
    assert_eq!(reasons(&world, MOON), []);
}

#[test]
fn a_slow_link_is_not_flooded() {
    for slow in [false, true] {
        let mut world = chain_with(3, everybody);
        if slow {
            // 1200 bit/s and a delay of half a minute: the transfer takes over two minutes.
            world.cables[0].byte_time = Duration::from_micros(6_667);
            world.cables[0].delay = Duration::from_secs(30);
            world.cables[0].window = 500_000;
        }
        world.start_all();
        for send in 1..=3 {
            world.send(MOON, send, "dtn://earth/in", Payload::Given(random(send, 20_000)), in_custody());
        }
        world.run_until(HOUR, "release", |world| (1..=3).all(|send| sent(world, send)));
        assert_eq!(counters(&world, MOON).custody_timeouts, 0, "slow: {slow}");
        assert!(world.cables[0].carried < 62_000);
    }
}

#[test]
fn the_timer_waits_for_the_link() {
    let mut world = chain_with(4, nobody);
    world.nodes[EARTH].user.takes = false;
    world.start_all();
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(4, 3000)), in_custody());
    world.run_for(Duration::from_secs(30));
    world.cut(0);
    world.run_for(2 * HOUR);
    assert_eq!(counters(&world, MOON).custody_timeouts, 0, "nothing could be heard");
    world.heal(0);
    world.run_for(MINUTE);
    assert!(matches!(reasons(&world, MOON)[..], [RetentionReason::InCustody { .. }]));
}

#[test]
fn crashes_leave_the_custody_where_it_was() {
    for node in [MOON, ORBITER, EARTH] {
        for instant in 0..60 {
            for accepts in [everybody as fn(&mut Config), nobody] {
                let mut world = chain_with(instant, |config| {
                    accepts(config);
                    config.custody.timer_min = Duration::from_secs(10);
                });
                world.start_all();
                let payload = random(instant, 9000);
                world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), in_custody());
                world.run_for(Duration::from_millis(instant * 53 + instant % 7));
                let accepted = world.nodes[MOON].user.accepted.contains(&SendId(1));
                world.crash(node);
                world.run_for(Duration::from_secs(5));
                world.start(node);
                world.heal(0);
                world.heal(1);
                world.run_for(HOUR);
                let inbox = &world.nodes[EARTH].user.inbox;
                assert!(inbox.len() <= 1 && inbox.iter().all(|taken| taken.2 == payload));
                assert!(!accepted || inbox.len() == 1, "node {node}, instant {instant}: accepted and lost");
                for node in [MOON, ORBITER, EARTH] {
                    assert_eq!(reasons(&world, node), [], "node {node}, instant {instant}");
                }
            }
        }
    }
}

#[test]
fn after_a_restart_the_timer_starts_again() {
    let mut world = chain_with(5, nobody);
    world.nodes[EARTH].user.takes = false;
    world.start_all();
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(5, 3000)), in_custody());
    world.run_for(Duration::from_secs(30));
    let carried = world.cables[0].carried;
    world.crash(MOON);
    world.start(MOON);
    world.heal(0);
    world.run_for(Duration::from_secs(30));
    assert!(
        matches!(reasons(&world, MOON)[..], [RetentionReason::InCustody { .. }]),
        "{:?}",
        reasons(&world, MOON)
    );
    assert_eq!(world.cables[0].carried, carried, "not sent again at once");
    world.run_for(MINUTE);
    assert!(counters(&world, MOON).custody_timeouts == 1 && world.cables[0].carried > carried + 3000);
}

#[test]
fn fragments_are_released_one_by_one() {
    for accepts in [everybody as fn(&mut Config), nobody] {
        let mut world = chain_with(6, accepts);
        world.cables[0].transfer_bytes_max = 1500;
        world.cables[0].cut_at = Some((4000, Duration::from_secs(20)));
        world.start_all();
        let payload = random(6, 9000);
        world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), in_custody());
        world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
        assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
        world.run_for(HOUR);
        for node in [MOON, ORBITER, EARTH] {
            assert_eq!(reasons(&world, node), []);
        }
        assert!(sent(&world, 1));
    }
}

/// A bundle in custody of an old node.
fn foreign(sequence: u64) -> v6::Bundle {
    let eid = |text| Eid::from_uri(text).expect("an endpoint");
    let mut primary =
        v6::PrimaryBlock::new(eid("dtn://earth/in"), eid("dtn://old/app"), eid("dtn://old"), false);
    primary.created_s = EPOCH_DTN_MS / 1000;
    primary.sequence = sequence;
    primary.lifetime_s = 360_000;
    primary.flags = v6::BundleFlags::SINGLETON | v6::BundleFlags::CUSTODY;
    let mut head = v6::Head::new(primary, 0);
    head.set_custodian(eid("dtn://old"));
    v6::Bundle::new(head, Bytes::from_static(b"hello"))
}

/// Custody signals of a node for the old node, read from its disk.
fn signals(world: &World, node: usize) -> Vec<(bool, v6::CustodyReason)> {
    let records = world.nodes[node].disk.records.values();
    let read = |log: &super::parts::Log| {
        let mut bytes = log.read(36, log.length);
        let bundle = v6::Bundle::decode(&mut bytes).ok()?;
        match v6::AdminRecord::from_bytes(&bundle.payload) {
            Ok(v6::AdminRecord::CustodySignal(signal)) => {
                assert!(bundle.head.primary.custodian().is_null());
                assert_eq!(bundle.head.primary.destination().uri(), "dtn://old", "as the bundle named it");
                assert_eq!(signal.subject.source.uri(), "dtn://old/app");
                Some((signal.succeeded, signal.reason))
            }
            _ => None,
        }
    };
    records.filter_map(read).collect()
}

#[test]
fn what_comes_twice_is_signalled_by_what_became_of_it() {
    use v6::CustodyReason::{NoAdditionalInformation, RedundantReception};
    for takes in [false, true] {
        let mut world = World::new(7);
        let node = world.node("earth", everybody);
        world.nodes[node].user.takes = takes;
        world.start_all();
        world.run_for(Duration::from_secs(1));
        world.inject(node, &foreign(1).to_bytes(), 100);
        world.run_for(MINUTE);
        assert_eq!(signals(&world, node), [(true, NoAdditionalInformation)]);
        world.inject(node, &foreign(1).to_bytes(), 100);
        world.run_for(MINUTE);
        assert_eq!(world.refusals(), [RefuseReason::Completed]);
        let second = if takes { (true, NoAdditionalInformation) } else { (false, RedundantReception) };
        assert_eq!(signals(&world, node), [(true, NoAdditionalInformation), second]);
    }
}

/// Version 6 has no signatures. Where one is required, the previous custodian keeps the bundle.
#[test]
fn custody_of_a_bundle_that_would_be_deleted_is_refused() {
    for (required, expected) in [(true, false), (false, true)] {
        let mut world = World::new(7);
        let node = world.node("earth", everybody);
        let check = SignatureCheck { required, on_the_way: false, signers: Vec::new(), passes_wrong: false };
        let endpoints = Endpoints { source: "*".into(), destination: "*".into() };
        let rule = CheckRule { endpoints, check: Some(Arc::new(check)) };
        let mut keys = Keys::default();
        keys.pin(&"dtn://old/".parse().expect("a node ID"), Fingerprint([1; 16]));
        world.nodes[node].security = Security { keys, check: vec![rule], ..Security::default() };
        world.start_all();
        world.run_for(Duration::from_secs(1));
        world.inject(node, &foreign(1).to_bytes(), 100);
        world.run_for(MINUTE);
        assert_eq!(signals(&world, node), [(expected, v6::CustodyReason::NoAdditionalInformation)]);
        let refused: &[RefuseReason] = if required { &[RefuseReason::NotAcceptable] } else { &[] };
        assert_eq!(world.refusals(), refused);
        let counted = counters(&world, node);
        // A known key says nothing about bundles that cannot have a signature: nobody has taken it off.
        assert_eq!((counted.signatures_missing, counted.signatures_of_version_6), (0, u64::from(required)));
        assert_eq!(counted.deleted_signature, u64::from(required));
        assert_eq!(world.nodes[node].user.inbox.len(), usize::from(expected));
    }
}

#[test]
fn custody_is_taken_only_from_whom_and_for_what_is_configured() {
    let cases: [(&[&str], &[&str], usize); 4] = [
        (&["dtn://neighbour/"], &[], 1),
        (&["dtn://other/"], &[], 0),
        (&[], &["dtn://earth/*"], 1),
        (&[], &["dtn://mars/*"], 0),
    ];
    for (accept_from, accept_for, expected) in cases {
        let mut world = World::new(8);
        let strings = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let node = world.node("earth", |config| {
            config.custody.accept_from = strings(accept_from);
            config.custody.accept_for = strings(accept_for);
        });
        world.nodes[node].user.takes = false;
        world.start_all();
        world.run_for(Duration::from_secs(1));
        world.inject(node, &foreign(1).to_bytes(), 100);
        world.run_for(MINUTE);
        assert_eq!(signals(&world, node).len(), expected, "{accept_from:?} {accept_for:?}");
    }
}

#[test]
fn a_block_that_nobody_knows_is_signalled() {
    let mut world = World::new(9);
    let node = world.node("earth", everybody);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let mut bundle = foreign(1);
    bundle.head.blocks.push(v6::Block {
        block_type: v6::BlockType::Unknown(222),
        flags: v6::BlockFlags::DELETE_BUNDLE,
        references: None,
        data: Bytes::new(),
    });
    world.inject(node, &bundle.to_bytes(), 100);
    world.run_for(MINUTE);
    assert_eq!(signals(&world, node), [(false, v6::CustodyReason::BlockUnintelligible)]);
}

/// Custody is not accepted or signalled if the disk has no space for the seal or a part of the body.
#[test]
fn custody_whose_seal_found_no_place_is_not_signalled() {
    let mut bundle = foreign(1);
    bundle.payload = random(1, 1_000);
    bundle.head.payload.length = 1_000;
    let bytes = bundle.to_bytes();
    // The header of the record takes 36 bytes, the seal 24.
    let whole = 36 + bytes.len() as u64;
    for (place, accepted) in [(whole + 24, 1), (whole + 23, 0), (whole, 0), (whole - 1, 0), (whole - 300, 0)]
    {
        let mut world = World::new(10);
        let node = world.node("orbiter", everybody);
        world.start_all();
        world.run_for(Duration::from_secs(1));
        let used = world.nodes[node].disk.used;
        world.nodes[node].disk.capacity = Some(used + place);
        world.inject(node, &bytes, 100);
        world.run_for(MINUTE);
        let case = format!("{place} bytes for {whole}");
        assert_eq!(counters(&world, node).custody_accepted, accepted, "{case}");
        assert_eq!(counters(&world, node).custody_signals_sent, accepted, "{case}");
    }
}

/// A custody signal of an old node, for the agent of `node`.
fn inject_signal(world: &mut World, node: usize, subject: v6::admin::Subject, succeeded: bool, number: u64) {
    let bundle = signal(world, node, subject, succeeded, number);
    world.inject(node, &bundle.to_bytes(), 1000);
}

fn signal(
    world: &World,
    node: usize,
    subject: v6::admin::Subject,
    succeeded: bool,
    number: u64,
) -> v6::Bundle {
    let name = world.agent(node).node().clone();
    let reason = match succeeded {
        true => v6::CustodyReason::NoAdditionalInformation,
        false => v6::CustodyReason::NoRoute,
    };
    let time = v6::Time::from_millis(EPOCH_DTN_MS);
    let signal = v6::CustodySignal { succeeded, reason, time, subject };
    let payload = v6::AdminRecord::CustodySignal(signal).to_bytes();
    let source = Eid::from_uri("dtn://somewhere").expect("an endpoint");
    let mut primary = v6::PrimaryBlock::new(name, source, Eid::Null, true);
    primary.flags = v6::BundleFlags::ADMINISTRATIVE_RECORD | v6::BundleFlags::SINGLETON;
    primary.created_s = EPOCH_DTN_MS / 1000;
    primary.sequence = number;
    primary.lifetime_s = 36_000;
    v6::Bundle::new(v6::Head::new(primary, payload.len() as u64), payload)
}

/// A bundle of the moon in custody, which was sent as far as earth, where it is not accepted; and its
/// identification in signals.
fn handed_over(seed: u64, configure: impl Fn(&mut Config)) -> (World, v6::admin::Subject) {
    let mut world = chain_with(seed, configure);
    world.nodes[EARTH].user.takes = false;
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(seed, 3000)), in_custody());
    world.run_for(Duration::from_secs(10));
    let id = world.agent(MOON).bundles(world.now).next().expect("the bundle").id;
    let subject = v6::admin::Subject {
        source: id.source.clone(),
        created_s: id.timestamp.time.0 / 1000,
        sequence: id.timestamp.sequence,
        fragment: None,
    };
    (world, subject)
}

/// Makes the injected neighbour the last next hop towards the pattern.
fn leads_to(world: &mut World, node: usize, pattern: &str) {
    let via = NextHop::Node("dtn://neighbour/".into());
    world.tell(node, ManagementRequest::SetRoute { pattern: pattern.into(), via, cost: 99 });
    world.run_for(Duration::from_secs(1));
}

#[test]
fn a_signal_from_who_is_not_on_the_bundles_way_releases_nothing() {
    // A bundle in custody is not replicated by any router.
    for router in [RouterChoice::Static, RouterChoice::Epidemic] {
        strangers_release_nothing(router);
    }
}

fn strangers_release_nothing(router: RouterChoice) {
    let (mut world, subject) = handed_over(14, |config| config.routing.router = router);
    let before = world.cables[0].heads6.len();
    // The incoming link is from the node at the other end of another link, over which the bundle was not
    // sent.
    let agent = world.nodes[MOON].agent.as_mut().expect("the node is up");
    agent.engine.set_beside_links([(INJECTED, LinkId(9))].into());
    // A stranger signals that the bundle is elsewhere; its link is not on the route to earth.
    for (number, succeeded) in [(1, true), (2, true), (3, false)] {
        inject_signal(&mut world, MOON, subject.clone(), succeeded, number);
        world.run_for(Duration::from_secs(1));
        assert_eq!(reasons(&world, MOON).len(), 1, "signal {number} is not believed");
        assert_eq!(counters(&world, MOON).custody_signals_not_believed, number);
    }
    assert_eq!(counters(&world, MOON).custody_refused, 0);
    world.run_for(2 * MINUTE);
    assert!(world.cables[0].heads6.len() > before, "the timer has run out, and it is sent again");
    // A neighbour on the route may signal it.
    leads_to(&mut world, MOON, "dtn://earth/*");
    inject_signal(&mut world, MOON, subject, true, 4);
    world.run_for(Duration::from_secs(1));
    assert_eq!(reasons(&world, MOON), []);
    assert!(sent(&world, 1));
}

/// The other part came from another neighbour, or before the last start, so that its neighbour is unknown.
#[test]
fn a_signal_is_believed_only_if_all_of_it_came_on_the_bundles_way() {
    for starts_anew in [false, true] {
        let (mut world, subject) = handed_over(16, nobody);
        let whole = signal(&world, MOON, subject, true, 1);
        let length = whole.payload.len() as u64;
        let [first, second] = [(0, 5), (5, length - 5)].map(|(from, bytes)| {
            let payload = whole.payload.slice(from as usize..(from + bytes) as usize);
            v6::Bundle::new(whole.head.fragment(from, bytes), payload).to_bytes()
        });
        let stranger = LinkId(INJECTED.0 + 1);
        let transfer = TransferId(1);
        for said in [
            BundlesIndication::Up {
                peer: Some("dtn://stranger/".into()),
                interleave: true,
                transfer_bytes_max: u64::MAX,
            },
            BundlesIndication::Begin { transfer, length: None },
            BundlesIndication::Piece { transfer, data: first, last: true },
        ] {
            world.say_from(MOON, stranger, said);
        }
        world.run_for(Duration::from_secs(1));
        if starts_anew {
            world.crash(MOON);
            world.start(MOON);
            world.heal(0);
        }
        leads_to(&mut world, MOON, "dtn://earth/*");
        world.inject(MOON, &second, 1000);
        world.run_for(Duration::from_secs(1));
        let counted = counters(&world, MOON);
        assert_eq!((counted.custody_signals_heard, counted.custody_signals_not_believed), (1, 1));
        assert_eq!(reasons(&world, MOON).len(), 1, "starts anew: {starts_anew}");
    }
}

/// A link that is down has no peer, and neither has an incoming link without a node ID: they do not count as
/// the same neighbour.
#[test]
fn a_caller_without_a_name_is_not_who_the_bundle_went_to() {
    let (mut world, subject) = handed_over(17, nobody);
    world.cut(0);
    let (peer, interleave) = (None, true);
    world.say_injected(MOON, BundlesIndication::Up { peer, interleave, transfer_bytes_max: u64::MAX });
    world.injected = 1;
    inject_signal(&mut world, MOON, subject, true, 2);
    world.run_for(Duration::from_secs(1));
    let counted = counters(&world, MOON);
    assert_eq!((counted.custody_signals_heard, counted.custody_signals_not_believed), (1, 1));
    assert_eq!(reasons(&world, MOON).len(), 1);
}

/// Routes may change while a signal is outstanding: the route that the bundle took stays valid, and no other
/// link becomes valid.
#[test]
fn a_signal_is_believed_from_where_the_bundle_went_though_no_route_leads_there_any_more() {
    let (went, other) = (LinkId(1), LinkId(9));
    for (caller, beside, believed) in [
        (None, Some(went), true),
        (Some("dtn://orbiter/"), None, true),
        (None, Some(other), false),
        (Some("dtn://neighbour/"), Some(other), false),
        (None, None, false),
    ] {
        let (mut world, subject) = handed_over(18, nobody);
        world.tell(MOON, ManagementRequest::RemoveRoute { pattern: "*".into(), via: NextHop::Link(went) });
        let peer = caller.map(str::to_owned);
        let up = BundlesIndication::Up { peer, interleave: true, transfer_bytes_max: u64::MAX };
        world.say_injected(MOON, up);
        world.injected = 1;
        let agent = world.nodes[MOON].agent.as_mut().expect("the node is up");
        agent.engine.set_beside_links(beside.map(|link| (INJECTED, link)).into_iter().collect());
        inject_signal(&mut world, MOON, subject, true, 2);
        world.run_for(Duration::from_secs(1));
        let counted = counters(&world, MOON);
        let case = format!("{caller:?} beside {beside:?}");
        assert_eq!((counted.custody_signals_heard, sent(&world, 1)), (1, believed), "{case}");
        assert_eq!(counted.custody_signals_not_believed, u64::from(!believed), "{case}");
    }
}

#[test]
fn a_signal_counts_only_for_what_was_handed_out() {
    let mut world = chain_with(10, nobody);
    world.nodes[EARTH].user.takes = false;
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.cut(0);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(10, 3000)), in_custody());
    world.run_for(MINUTE);
    let id = world.agent(MOON).bundles(world.now).next().expect("the bundle").id;
    let subject = |fragment| v6::admin::Subject {
        source: id.source.clone(),
        created_s: id.timestamp.time.0 / 1000,
        sequence: id.timestamp.sequence,
        fragment,
    };
    // The signalling neighbour has an incoming link from the node at the other end of this node's link; no
    // bundle was sent over the incoming link.
    let agent = world.nodes[MOON].agent.as_mut().expect("the node is up");
    agent.engine.set_beside_links([(INJECTED, LinkId(1))].into());
    inject_signal(&mut world, MOON, subject(None), true, 1);
    world.run_for(MINUTE);
    let counted = counters(&world, MOON);
    assert_eq!((counted.custody_signals_heard, counted.custody_signals_not_believed), (1, 0));
    assert_eq!(reasons(&world, MOON).len(), 1, "it has gone nowhere yet");
    world.say_injected(MOON, BundlesIndication::Down { reason: DownReason::Closed, retry: false });
    world.heal(0);
    world.run_for(Duration::from_secs(30));
    let peer = Some("dtn://neighbour/".to_owned());
    world.say_injected(MOON, BundlesIndication::Up { peer, interleave: true, transfer_bytes_max: u64::MAX });
    for (number, fragment) in [(2, (0, 1000)), (3, (2000, 1000)), (4, (900, 1000))] {
        inject_signal(&mut world, MOON, subject(Some(fragment)), true, number);
        world.run_for(Duration::from_secs(1));
        assert_eq!(reasons(&world, MOON).len(), 1, "bytes 1900 to 2000 are still this node's");
    }
    // Only the unreleased parts are resent.
    world.run_for(2 * MINUTE);
    let last = world.cables[0].heads6.last().expect("a transfer");
    assert_eq!(last.primary.fragment.map(|fragment| fragment.offset), Some(1900));
    assert_eq!(last.payload.length, 100);
    inject_signal(&mut world, MOON, subject(Some((1900, 100))), true, 5);
    world.run_for(Duration::from_secs(1));
    assert_eq!(reasons(&world, MOON), []);
    assert!(sent(&world, 1));
}

#[test]
fn where_one_way_fails_another_is_taken() {
    let mut world = World::new(11);
    for name in ["moon", "left", "right"] {
        world.node(name, |_| {});
    }
    world.cable(0, 1);
    world.cable(0, 2);
    world.start_all();
    world.route(0, "dtn://mars/*", 0);
    let via = NextHop::Link(LinkId(2));
    world.tell(0, ManagementRequest::SetRoute { pattern: "dtn://mars/*".into(), via, cost: 9 });
    world.run_for(Duration::from_secs(1));
    world.send(0, 1, "dtn://mars/in", Payload::Given(random(11, 300)), in_custody());
    world.run_for(Duration::from_secs(20));
    assert_eq!((world.cables[0].heads6.len(), world.cables[1].heads6.len()), (1, 0));
    let id = world.agent(0).bundles(world.now).next().expect("the bundle").id;
    let subject = v6::admin::Subject {
        source: id.source.clone(),
        created_s: id.timestamp.time.0 / 1000,
        sequence: id.timestamp.sequence,
        fragment: None,
    };
    leads_to(&mut world, 0, "dtn://mars/*");
    inject_signal(&mut world, 0, subject, false, 1);
    world.run_for(2 * MINUTE);
    assert_eq!(counters(&world, 0).custody_refused, 1);
    assert_eq!((world.cables[0].heads6.len(), world.cables[1].heads6.len()), (1, 1));
}

#[test]
fn what_expires_in_custody_is_reported_unasked() {
    let mut world = chain_with(12, nobody);
    world.nodes[EARTH].user.takes = false;
    world.start_all();
    let options = SendOptions { lifetime: Duration::from_secs(300), ..in_custody() };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(12, 300)), options);
    world.run_for(HOUR);
    let failed = AppIndication::Failed { send: SendId(1), reason: SendFailure::Expired };
    assert_eq!(world.nodes[MOON].user.ended[&SendId(1)], failed);
    assert_eq!(reasons(&world, MOON), []);
    let reported = world.nodes[MOON].user.log.iter().any(|said| {
        matches!(said, AppIndication::Report { status: ReportedStatus::Deleted, reporter, .. } if reporter == "dtn://moon/")
    });
    assert!(reported);
}

#[test]
fn a_full_store_evicts_nothing_that_is_in_custody() {
    let mut world = World::new(13);
    world.node("moon", |config| {
        config.evict = super::super::EvictionPolicy::LowestPriority;
        config.limits.store_bytes_max = 10_000;
    });
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let options = SendOptions { priority: crate::service::Priority::Bulk, ..in_custody() };
    world.send(0, 1, "dtn://earth/in", Payload::Given(random(13, 6000)), options);
    world.run_for(Duration::from_secs(1));
    let options =
        SendOptions { priority: crate::service::Priority::Expedited, ..super::version6::version6() };
    world.send(0, 2, "dtn://earth/in", Payload::Given(random(14, 6000)), options);
    world.run_for(Duration::from_secs(1));
    let failed = AppIndication::Failed { send: SendId(2), reason: SendFailure::Full };
    assert_eq!(world.nodes[0].user.ended[&SendId(2)], failed);
    assert_eq!(reasons(&world, 0).len(), 1);
}
