//! Unexpected neighbours: whatever they send costs no other node an acknowledged bundle.

use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain, chain_with, has_arrived, random};
use super::version6::foreign;
use super::world::{Payload, World};
use crate::bp::agent::{EvictionPolicy, ReportConfig, RetentionReason};
use crate::bp::{
    Block, BlockFlags, BlockType, Bundle, BundleFlags, Content, CrcType, CreationTimestamp, DtnTime, Eid,
    Fragment, Head, HopCount, PrimaryBlock, QualityOfService, v6,
};
use crate::service::{
    AppRequest, BundlesIndication, DownReason, Priority, RefuseReason, SendOptions, TransferId,
};
use crate::time::Duration;
use bytes::Bytes;

const LONG_MS: u64 = 30 * 86_400_000;

pub(super) fn head(world: &World, source: &str, destination: &str, sequence: u64) -> Head {
    let now = world.agent(0).time.clock.dtn_ms(world.now).expect("it has a clock");
    let timestamp = CreationTimestamp { time: DtnTime(now), sequence };
    let [source, destination] = [source, destination].map(|eid| eid.parse().unwrap());
    Head::new(PrimaryBlock::new(destination, source, timestamp, LONG_MS), 0)
}

/// Part of a payload from `offset` on, as a fragment of a payload of `total_length`.
fn part(head: &Head, offset: u64, total_length: u64, payload: &[u8]) -> Bytes {
    let mut head = head.clone();
    head.primary.fragment = Some(Fragment { offset, total_length });
    head.payload.length = payload.len() as u64;
    Bundle::new(head, Bytes::copy_from_slice(payload)).to_bytes()
}

pub(super) fn whole(head: &Head, payload: &Bytes) -> Bytes {
    let mut head = head.clone();
    head.payload.length = payload.len() as u64;
    Bundle::new(head, payload.clone()).to_bytes()
}

fn ready(mut world: World) -> World {
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world
}

/// The link breaks in the middle of a file: the received part is acknowledged, and no longer kept by its
/// sender.
#[test]
fn beginnings_that_never_become_a_whole_cost_nobody_a_file() {
    for restart in [false, true] {
        let mut world = ready(chain(1));
        for sequence in 0..4_096 {
            let head = head(&world, "dtn://mallory/x", "dtn://earth/in", sequence);
            world.inject(EARTH, &part(&head, 0, 1000, b"x"), 1000);
        }
        world.run_for(MINUTE);
        let refused = world.refusals().len();
        world.cables[1].cut_at = Some((60_000, Duration::from_secs(30)));
        let file = random(1, 100_000);
        world.send(MOON, 1, "dtn://earth/in", Payload::Given(file.clone()), SendOptions::default());
        if restart {
            // The beginning is then only in this store.
            world.run_until(HOUR, "the break", |world| !world.cables[1].has_session());
            world.run_for(Duration::from_secs(1));
            world.crash(EARTH);
            world.start(EARTH);
        }
        world.run_until(HOUR, "the file", |world| has_arrived(world, EARTH, 1));
        assert_eq!(world.nodes[EARTH].user.inbox[0].2, file);
        assert_eq!(world.refusals().len(), refused, "what was accepted stays");
    }
}

/// A different source, number or time is a different bundle ID, of which nothing was delivered.
#[test]
fn a_payload_that_was_taken_is_known_by_its_whole_name() {
    let mut world = ready(chain(3));
    let first = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
    let [mut other_source, mut other_number, mut other_time] = [(); 3].map(|()| first.clone());
    other_source.primary.source = "dtn://alice/y".parse().unwrap();
    other_number.primary.timestamp.sequence += 1;
    other_time.primary.timestamp.time.0 -= 1;
    let payload = Bytes::from_static(b"hello");
    for (taken, head) in [first, other_source, other_number, other_time].iter().enumerate() {
        for times in 0..2 {
            world.inject(EARTH, &whole(head, &payload), 1000);
            world.run_for(Duration::from_secs(1));
            let found = (world.nodes[EARTH].user.inbox.len(), world.refusals().len());
            assert_eq!(found, (taken + 1, taken + times), "bundle {taken}, {times} times before");
        }
    }
}

/// A forged part with another node's bundle ID: with a different total length, a different destination, or as
/// an administrative record.
#[test]
fn a_forged_part_costs_neither_the_parts_nor_the_whole() {
    let payload = random(2, 100);
    let kinds = ["length", "destination", "record"];
    for (kind, first, in_parts) in kinds
        .iter()
        .flat_map(|kind| [(kind, true), (kind, false)])
        .flat_map(|(kind, first)| [(*kind, first, true), (*kind, first, false)])
    {
        let what = format!("{kind}, forged first: {first}, in parts: {in_parts}");
        let mut world = ready(chain(2));
        let true_head = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
        let mut forged = true_head.clone();
        let total = if kind == "length" { 4_000 } else { 100 };
        match kind {
            "destination" => forged.primary.destination = "dtn://earth/elsewhere".parse().unwrap(),
            "record" => forged.primary.flags |= BundleFlags::ADMINISTRATIVE_RECORD,
            _ => {}
        }
        // The forged part begins with the true ones, and extends beyond the first of them.
        let forged = part(&forged, 0, total, &[0x5a; 90]);
        let mut messages = match in_parts {
            true => vec![part(&true_head, 0, 100, &payload[..50]), part(&true_head, 50, 100, &payload[50..])],
            false => vec![whole(&true_head, &payload)],
        };
        messages.insert(usize::from(!first && in_parts), forged);
        for message in messages {
            world.inject(EARTH, &message, 500);
            world.run_for(MINUTE);
        }
        assert_eq!(world.refusals(), [], "{what}");
        let inbox: Vec<&[u8]> = world.nodes[EARTH].user.inbox.iter().map(|taken| &taken.2[..]).collect();
        assert_eq!(inbox, [&payload[..]], "{what}");
    }
}

/// A forged bundle with the ID of a true one is accepted by an application: for another endpoint, with
/// another length, or for the true endpoint with another lifetime.
#[test]
fn what_is_taken_under_a_name_takes_nothing_along() {
    let payload = random(3, 100);
    for (restart, in_parts, elsewhere) in [false, true].into_iter().flat_map(|restart| {
        [(true, true), (true, false), (false, true), (false, false)]
            .map(|(parts, other)| (restart, parts, other))
    }) {
        let what = format!("restart: {restart}, in parts: {in_parts}, another endpoint: {elsewhere}");
        let mut world = ready(chain(3));
        world.tell(EARTH, AppRequest::Register { endpoint: "dtn://earth/other".into() });
        let true_head = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
        world.inject(EARTH, &part(&true_head, 0, 100, &payload[..50]), 500);
        world.run_for(MINUTE);
        let mut forged = true_head.clone();
        match elsewhere {
            true => forged.primary.destination = "dtn://earth/other".parse().unwrap(),
            false => forged.primary.lifetime_ms = LONG_MS - 1,
        }
        world.inject(EARTH, &whole(&forged, &Bytes::from_static(b"!")), 500);
        world.run_for(MINUTE);
        assert_eq!(world.nodes[EARTH].user.inbox.len(), 1, "{what}");
        if restart {
            world.crash(EARTH);
            world.start(EARTH);
            world.run_for(MINUTE);
        }
        // The accepted part is held, and the rest is accepted.
        let rest = match in_parts {
            true => part(&true_head, 50, 100, &payload[50..]),
            false => whole(&true_head, &payload),
        };
        world.inject(EARTH, &rest, 500);
        world.run_for(MINUTE);
        assert_eq!(world.refusals(), [], "{what}");
        assert!(world.nodes[EARTH].user.inbox.iter().any(|taken| taken.2 == payload), "{what}");
        // Both were delivered, and neither is delivered again.
        for message in [whole(&forged, &Bytes::from_static(b"!")), whole(&true_head, &payload)] {
            world.inject(EARTH, &message, 500);
            world.run_for(MINUTE);
        }
        assert_eq!(world.refusals(), [RefuseReason::Completed; 2], "{what}");
    }
}

/// A forged bundle of version 6 is delivered: the true one is accepted nevertheless, and its custodian
/// receives no signal before.
#[test]
fn what_is_taken_under_a_name_releases_no_custody() {
    let mut world = ready(chain(4));
    let mut forged = foreign("dtn://earth/in", b"!");
    forged.head.primary.lifetime_s += 1;
    let mut asked = foreign("dtn://earth/in", b"hello");
    asked.head.primary.flags |= v6::BundleFlags::CUSTODY;
    asked.head.set_custodian("dtn://neighbour/".parse().unwrap());
    for bundle in [forged, asked] {
        world.inject(EARTH, &bundle.to_bytes(), 500);
        world.run_for(MINUTE);
    }
    assert_eq!(world.refusals(), []);
    assert!(world.nodes[EARTH].user.inbox.iter().any(|taken| taken.2[..] == *b"hello"));
    let counters = world.agent(EARTH).counters();
    assert_eq!((counters.delivered, counters.custody_signals_sent), (2, 1));
}

/// The memory for a payload counts as long as any of its parts is held, whichever arrived first.
#[test]
fn the_memory_for_a_payload_counts_with_whatever_part_is_left() {
    let mut world = ready(chain(5));
    let memory = |world: &World| world.agent(EARTH).holdings.accounts().memory();
    let before = memory(&world);
    let nobodys = head(&world, "dtn://mallory/x", "dtn://earth/nobody", 1);
    world.inject(EARTH, &part(&nobodys, 0, 2, b"x"), 500);
    world.run_for(MINUTE);
    let with_a_part = memory(&world);
    assert!(with_a_part >= before + 512, "{before} and {with_a_part}");
    world.inject(EARTH, &whole(&nobodys, &Bytes::from_static(b"xy")), 500);
    world.run_for(MINUTE);
    assert_eq!(world.agent(EARTH).bundles(world.now).count(), 1, "the part is superfluous");
    assert_eq!(memory(&world), with_a_part);
    world.crash(EARTH);
    world.start(EARTH);
    world.run_for(MINUTE);
    assert_eq!(memory(&world), with_a_part, "the same as a start finds");
}

/// A neighbour falls silent in the middle of a bundle.
#[test]
fn a_bundle_that_arrives_says_when_its_latest_bytes_came() {
    let mut world = ready(chain(6));
    let head = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
    let message = whole(&head, &random(7, 1_000));
    world.inject_beginning(ORBITER, &message.slice(..600));
    let heard = world.now;
    world.run_for(MINUTE);
    let whys: Vec<RetentionReason> =
        world.agent(ORBITER).bundles(world.now).map(|status| status.why).collect();
    assert_eq!(whys, [RetentionReason::Arriving { heard: Some(heard) }]);
}

/// A link breaks after a part that its neighbour does not know to be received, and the remainder begins
/// inside that part: it is forwarded without the bytes that were already sent. The remainder from another
/// neighbour may belong to another payload.
#[test]
fn the_rest_of_what_came_in_part_goes_on_without_what_has_gone_already() {
    let payload = random(6, 1_000);
    for (neighbour, rest) in [("dtn://neighbour/", (600, 400)), ("dtn://other/", (400, 600))] {
        let mut world = ready(chain(6));
        let head = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
        let message = whole(&head, &payload);
        let start = message.windows(8).position(|bytes| *bytes == payload[..8]).expect("its payload");
        world.inject_beginning(ORBITER, &message.slice(..start + 600));
        world.run_for(MINUTE);
        world.say_injected(ORBITER, BundlesIndication::Lost { transfer: TransferId(1) });
        world.say_injected(ORBITER, BundlesIndication::Down { reason: DownReason::Closed, retry: false });
        world.run_for(MINUTE);
        let peer = Some(neighbour.to_owned());
        let up = BundlesIndication::Up { peer, interleave: true, transfer_bytes_max: u64::MAX };
        world.say_injected(ORBITER, up);
        world.inject(ORBITER, &part(&head, 400, 1_000, &payload[400..]), 500);
        world.run_for(MINUTE);
        let gone = |head: &Head| (head.primary.fragment.map(|part| part.offset), head.payload.length);
        let gone: Vec<_> = world.cables[1].heads.iter().map(gone).collect();
        assert_eq!(gone, [(Some(0), 600), (Some(rest.0), rest.1)], "{neighbour}");
        assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload, "{neighbour}");
    }
}

/// A part that expires before the others and is not needed for the payload removes nothing else.
#[test]
fn a_part_that_is_not_needed_takes_nothing_along() {
    let mut world = ready(chain(3));
    world.nodes[EARTH].user.takes = false;
    let payload = random(3, 100);
    // From a node without a clock: each part contains its age.
    let mut true_head = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
    true_head.primary.timestamp.time = DtnTime::UNKNOWN;
    true_head.set(&Content::BundleAge(0));
    let mut brief = true_head.clone();
    brief.set(&Content::BundleAge(LONG_MS - 600_000));
    world.inject(EARTH, &part(&brief, 20, 100, &payload[20..50]), 500);
    world.run_for(MINUTE);
    world.inject(EARTH, &whole(&true_head, &payload), 500);
    world.run_for(HOUR);
    let whys: Vec<RetentionReason> = world.agent(EARTH).bundles(world.now).map(|status| status.why).collect();
    assert!(matches!(whys[..], [RetentionReason::NotTaken(_)]), "{whys:?}");
    assert_eq!(world.agent(EARTH).counters().deleted_expired, 0);
}

/// A forged part that expires soon: the true one is not refused as a duplicate, whether it is for this node
/// or forwarded.
#[test]
fn a_forged_part_that_ends_sooner_stands_for_no_true_one() {
    for node in [EARTH, ORBITER] {
        let mut world = ready(chain(12));
        world.cut(1);
        let payload = random(12, 100);
        let true_head = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
        let mut forged = true_head.clone();
        forged.primary.lifetime_ms = 10_000;
        world.inject(node, &part(&forged, 0, 100, &[0x5a; 50]), 500);
        world.run_for(Duration::from_secs(1));
        world.inject(node, &part(&true_head, 0, 100, &payload[..50]), 500);
        world.run_for(MINUTE);
        assert_eq!(world.agent(node).counters().deleted_expired, 1, "the forged one");
        world.inject(node, &part(&true_head, 50, 100, &payload[50..]), 500);
        assert_eq!(world.refusals(), [], "at {node}");
        world.heal(1);
        world.run_until(HOUR, "the bundle", |world| has_arrived(world, EARTH, 1));
        assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    }
}

/// Two payloads with one bundle ID were accepted, and one of them delivered: a restart keeps the other.
#[test]
fn what_has_the_name_of_something_taken_survives_a_restart() {
    let mut world = ready(chain(13));
    let payload = random(13, 100);
    let true_head = head(&world, "dtn://alice/x", "dtn://earth/later", 1);
    let mut forged = true_head.clone();
    forged.primary.destination = "dtn://earth/in".parse().unwrap();
    world.inject(EARTH, &whole(&true_head, &payload), 500);
    world.run_for(MINUTE);
    world.inject(EARTH, &whole(&forged, &random(1, 70)), 500);
    world.run_until(HOUR, "the forged one", |world| has_arrived(world, EARTH, 1));
    world.run_for(MINUTE);
    for _ in 0..2 {
        assert_eq!(world.agent(EARTH).bundles(world.now).count(), 1, "it waits for its application");
        world.crash(EARTH);
        world.start(EARTH);
        world.run_for(MINUTE);
    }
}

/// Restored bundles are dispatched in portions: those that wait for that are known all the same, and none is lost or doubled.
#[test]
fn a_restored_bundle_is_known_before_it_is_dispatched() {
    const BUNDLES: u64 = 200;
    let mut world = ready(chain(14));
    world.cut(1);
    let bundles: Vec<Bytes> = (1..=BUNDLES)
        .map(|number| whole(&head(&world, "dtn://alice/x", "dtn://earth/in", number), &random(number, 40)))
        .collect();
    bundles.iter().for_each(|bundle| world.inject(ORBITER, bundle, 500));
    world.run_for(MINUTE);
    world.crash(ORBITER);
    world.start(ORBITER);
    world.run_until(MINUTE, "the start", |world| world.agent(ORBITER).is_ready());
    let storing = |world: &World| {
        let bundles = world.agent(ORBITER).bundles(world.now);
        bundles.filter(|bundle| matches!(bundle.why, RetentionReason::Storing)).count()
    };
    assert!(storing(&world) > 100, "{} are not dispatched yet", storing(&world));
    world.inject(ORBITER, bundles.last().unwrap(), 500);
    assert_eq!(world.refusals(), [RefuseReason::Completed]);
    world.run_for(MINUTE);
    assert_eq!(storing(&world), 0);
    world.heal(1);
    world.run_until(HOUR, "all bundles", |world| has_arrived(world, EARTH, bundles.len()));
    world.run_for(MINUTE);
    assert_eq!(world.nodes[EARTH].user.inbox.len(), bundles.len());
}

/// A bundle that waits for its link is not mistaken for one with the same ID and another length or
/// destination.
#[test]
fn what_waits_under_a_forged_name_keeps_nobody_out() {
    let mut world = ready(chain(4));
    world.cut(1);
    let payload = random(4, 300);
    let true_head = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
    // With another destination; a longer complete bundle; a part.
    let mut elsewhere = true_head.clone();
    elsewhere.primary.destination = "dtn://nowhere/in".parse().unwrap();
    for forged in [whole(&elsewhere, &payload), part(&true_head, 0, 4_000, &[0x5a; 350])] {
        world.inject(ORBITER, &forged, 500);
        world.run_for(MINUTE);
    }
    world.inject(ORBITER, &whole(&true_head, &payload), 500);
    world.run_for(MINUTE);
    assert_eq!(world.refusals(), []);
    world.heal(1);
    world.run_until(HOUR, "the bundle", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
}

/// A part or a record above a limit of reassembly is refused, so that its sender keeps it.
#[test]
fn what_cannot_be_put_together_is_refused_before_it_is_accepted() {
    let mut world = ready(chain_with(5, |config| {
        config.limits.fragments_max = 3;
        config.limits.admin_bytes_max = 100;
    }));
    let head = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
    let payload = random(5, 1_000);
    for number in 0..4 {
        let from = 10 * number;
        world.inject(EARTH, &part(&head, from as u64, 1_000, &payload[from..from + 10]), 500);
        world.run_for(MINUTE);
    }
    assert_eq!(world.refusals(), [RefuseReason::NoResources]);
    let accepted = world.accepted_injected();
    assert_eq!(accepted.len(), 3, "{accepted:?}");
    // An administrative record above the maximum length.
    let mut record = head.clone();
    record.primary.flags |= BundleFlags::ADMINISTRATIVE_RECORD;
    record.primary.timestamp.sequence = 2;
    world.inject(EARTH, &whole(&record, &payload), 500);
    assert_eq!(world.refusals().last(), Some(&RefuseReason::NotAcceptable));
    // There is always space for the complete bundle.
    world.inject(EARTH, &whole(&head, &payload), 500);
    world.run_for(MINUTE);
    assert_eq!(world.refusals().len(), 2);
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
    assert_eq!(world.agent(EARTH).bundles(world.now).count(), 0, "its parts went with it");
}

/// Space for nine hundred bundles from neighbours, and for a hundred more of applications at this node.
fn small() -> World {
    ready(chain_with(6, |config| {
        config.limits.bundles_max = 1_000;
    }))
}

/// Injects `count` empty bundles with unlimited lifetimes for an unreachable destination, from these sources.
fn flood(world: &mut World, first: u64, count: u64, source: impl Fn(u64) -> String, priority: Priority) {
    for sequence in first..first + count {
        let mut head = head(world, &source(sequence), "dtn://nowhere/x", sequence);
        head.primary.lifetime_ms = 1 << 62;
        head.set(&Content::QualityOfService(QualityOfService::from(priority)));
        world.inject(ORBITER, &whole(&head, &Bytes::new()), 500);
    }
    world.run_for(MINUTE);
}

fn refused(world: &World) -> u64 {
    world.agent(ORBITER).counters().refused_no_resources
}

#[test]
fn one_stranger_does_not_close_a_node() {
    let mut world = small();
    let many = |number: u64| format!("dtn://mallory-{number}/x");
    flood(&mut world, 0, 1_100, many, Priority::Normal);
    let has = world.agent(ORBITER).holds().0;
    assert_eq!(has, 450, "half of what is not kept for applications");
    for round in 0..2_u64 {
        // From an application at this node, and through this node from a friend.
        world.cut(1);
        for send in 0..50 {
            let number = 100 * round + send;
            world.send(
                ORBITER,
                number,
                "dtn://earth/in",
                Payload::Given(random(number, 50)),
                SendOptions::default(),
            );
            world.send(
                MOON,
                number,
                "dtn://earth/in",
                Payload::Given(random(number, 50)),
                SendOptions::default(),
            );
        }
        world.run_for(MINUTE);
        world.heal(1);
        world.run_until(HOUR, "the friends' bundles", |world| {
            has_arrived(world, EARTH, 100 * (round as usize + 1))
        });
        assert_eq!(world.agent(ORBITER).counters().sends_failed, 0);
        // The neighbour is recognised after a restart, and gets no more than before.
        world.crash(ORBITER);
        world.answers.clear();
        world.start(ORBITER);
        world.run_for(MINUTE);
        let before = world.agent(ORBITER).holds().0;
        flood(&mut world, 2_000 + 1_000 * round, 100, many, Priority::Normal);
        assert_eq!((refused(&world), world.agent(ORBITER).holds().0), (100, before), "round {round}");
    }
    // Maximum time for which a bundle from a neighbour is kept.
    world.run_for(Duration::from_secs(60 * 86_400));
    assert_eq!(world.agent(ORBITER).holds().0, 0);
}

#[test]
fn one_source_does_not_use_up_the_share_of_its_neighbour() {
    let mut world = small();
    flood(&mut world, 0, 1_000, |_| "dtn://mallory/x".into(), Priority::Normal);
    let (has, before) = (world.agent(ORBITER).holds().0, refused(&world));
    assert_eq!(has as u64 + before, 1_000);
    flood(&mut world, 1_000, 50, |_| "dtn://alice/x".into(), Priority::Normal);
    assert_eq!(world.agent(ORBITER).holds().0, has + 50);
    // With the source name of a friend, over this neighbour: the friend's own bundles are counted separately.
    flood(&mut world, 2_000, 1_000, |_| "dtn://moon/x".into(), Priority::Normal);
    for number in 0..20 {
        let options = SendOptions::default();
        world.send(MOON, number, "dtn://earth/in", Payload::Given(random(number, 50)), options);
    }
    world.run_until(HOUR, "the friend's bundles", |world| has_arrived(world, EARTH, 20));
}

#[test]
fn a_stranger_that_asks_for_reports_does_not_use_up_the_share_of_applications() {
    let mut world = ready(chain_with(7, |config| {
        config.limits.bundles_max = 1_000;
        config.reports = ReportConfig { per_minute_max: 100_000, ..ReportConfig::all() };
    }));
    for sequence in 0..1_100 {
        let mut head = head(&world, "dtn://mallory/x", "dtn://nowhere/x", sequence);
        head.primary.flags |= BundleFlags::REPORT_RECEPTION;
        head.primary.report_to = "dtn://nowhere/reports".parse().unwrap();
        world.inject(ORBITER, &whole(&head, &Bytes::new()), 500);
    }
    world.run_for(MINUTE);
    world.cut(1);
    for number in 0..100 {
        let options = SendOptions::default();
        world.send(ORBITER, number, "dtn://earth/in", Payload::Given(random(number, 50)), options);
    }
    world.run_for(MINUTE);
    assert_eq!(world.agent(ORBITER).counters().sends_failed, 0);
}

/// Injects refused bundles that each cost a custody signal.
fn refused_in_custody(world: &mut World, count: u64, source: impl Fn(u64) -> String) {
    for sequence in 0..count {
        let mut bundle = foreign("dtn://earth/in", b"hello");
        let name = |text: &str| Eid::from_uri(text).expect("an endpoint");
        let mut primary =
            v6::PrimaryBlock::new(name("dtn://earth/in"), name(&source(sequence)), Eid::Null, false);
        primary.created_s = bundle.head.primary.created_s;
        primary.sequence = sequence;
        primary.lifetime_s = 360_000;
        primary.flags = v6::BundleFlags::SINGLETON | v6::BundleFlags::CUSTODY;
        bundle.head = v6::Head::new(primary, bundle.payload.len() as u64);
        bundle.head.set_custodian(name("dtn://nowhere/"));
        bundle.head.blocks.push(v6::Block {
            block_type: v6::BlockType::Unknown(222),
            flags: v6::BlockFlags::DELETE_BUNDLE,
            references: None,
            data: Bytes::new(),
        });
        world.inject(ORBITER, &bundle.to_bytes(), 500);
    }
    world.run_for(Duration::from_secs(1));
}

#[test]
fn records_about_the_bundles_of_a_stranger_take_their_place_from_its_share() {
    let many = |number: u64| format!("dtn://mallory-{number}/x");
    let mut world = ready(chain_with(14, |config| {
        config.limits.bundles_max = 1_000;
        config.reports.per_minute_max = 100_000;
    }));
    for round in 0..2 {
        refused_in_custody(&mut world, 1_100, many);
        // The signals have one source, this node; together with the stranger's bundles they are within its
        // quota, also after a restart.
        let share = if round == 0 { 338 } else { 450 };
        assert_eq!(world.agent(ORBITER).holds().0, share, "round {round}");
        flood(&mut world, 10_000 * (round + 1), 200, many, Priority::Normal);
        assert_eq!(world.agent(ORBITER).holds().0, 450, "round {round}");
        world.crash(ORBITER);
        world.answers.clear();
        world.start(ORBITER);
        world.run_for(MINUTE);
    }
    world.cut(1);
    for number in 0..50 {
        let options = SendOptions::default();
        world.send(MOON, number, "dtn://earth/in", Payload::Given(random(number, 50)), options);
    }
    world.run_for(MINUTE);
    assert_eq!(world.agent(ORBITER).holds().0, 500, "the friend's are here");
}

#[test]
fn custody_signals_about_what_is_refused_have_an_allowance() {
    for (source, most) in [("dtn://mallory/x", 310), ("", 610)] {
        let mut world = ready(chain(15));
        refused_in_custody(&mut world, 2_000, |number| match source {
            "" => format!("dtn://mallory-{number}/x"),
            source => source.into(),
        });
        let counters = *world.agent(ORBITER).counters();
        assert!((100..=most).contains(&counters.custody_signals_sent), "{counters:?}");
        assert_eq!(counters.custody_signals_sent + counters.custody_signals_unsent, 2_000);
    }
}

/// A neighbour cannot exceed its quota with bundles of growing priority: its own bundles of lower priority
/// are evicted for them.
#[test]
fn a_neighbour_that_has_its_share_makes_place_among_its_own() {
    let many = |number: u64| format!("dtn://mallory-{number}/x");
    let one = |_: u64| "dtn://mallory/x".to_owned();
    for (source, share) in [(&many as &dyn Fn(u64) -> String, 450), (&one as &dyn Fn(u64) -> String, 338)] {
        let mut world = ready(chain_with(16, |config| {
            config.limits.bundles_max = 1_000;
            config.evict = EvictionPolicy::LowestPriority;
        }));
        for (round, priority) in
            [Priority::Bulk, Priority::Normal, Priority::Expedited].into_iter().enumerate()
        {
            flood(&mut world, 1_000 * round as u64, 1_000, source, priority);
            assert_eq!(world.agent(ORBITER).holds().0, share, "{priority:?}");
            let evicted = world.agent(ORBITER).counters().deleted_evicted;
            assert_eq!(evicted, (round * share) as u64, "{priority:?}");
        }
        let urgent = world.agent(ORBITER).holdings.iter().map(|(_, held)| held);
        let urgent = urgent.filter(|held| held.head.priority() == Priority::Expedited);
        assert_eq!(urgent.count(), share);
    }
}

#[test]
fn what_goes_is_of_whoever_has_most() {
    let mut world = ready(chain_with(8, |config| {
        config.limits.bundles_max = 1_000;
        config.limits.neighbour_share_percent = 100;
        config.limits.source_share_percent = 100;
        config.evict = EvictionPolicy::LowestPriority;
    }));
    world.cut(1);
    // Older bundles of a friend, and bundles of an application.
    let bulk = SendOptions { priority: Priority::Bulk, ..SendOptions::default() };
    for number in 0..50 {
        world.send(MOON, number, "dtn://earth/in", Payload::Given(random(number, 10)), bulk.clone());
        world.send(ORBITER, number, "dtn://earth/in", Payload::Given(random(number, 10)), bulk.clone());
    }
    world.run_for(MINUTE);
    flood(&mut world, 0, 1_000, |_| "dtn://mallory/x".into(), Priority::Bulk);
    let mallory = |world: &World| {
        let all = world.agent(ORBITER).bundles(world.now);
        all.filter(|status| status.id.source.to_string() == "dtn://mallory/x").count()
    };
    let before = mallory(&world);
    for number in 1_000..1_300 {
        let options = SendOptions::default();
        world.send(ORBITER, number, "dtn://earth/in", Payload::Given(random(number, 10)), options);
    }
    world.run_for(MINUTE);
    let evicted = world.agent(ORBITER).counters().deleted_evicted as usize;
    assert!(evicted > 50, "{evicted}");
    assert_eq!(mallory(&world), before - evicted, "all that went was the stranger's");
}

/// A block of unknown type.
fn strange(length: usize) -> Block {
    Block {
        block_type: BlockType::Unknown(200),
        number: 7,
        flags: BlockFlags::REPLICATE,
        crc: CrcType::Crc16,
        data: random(9, length),
    }
}

#[test]
fn blocks_that_nobody_reads_stay_on_the_disk_and_go_as_they_came() {
    for (restart, cut_at) in [(false, None), (true, None), (false, Some(14_000)), (true, Some(5_000))] {
        let mut world = ready(chain(9));
        world.cut(1);
        let mut head = head(&world, "dtn://alice/x", "dtn://earth/in", 1);
        head.set(&Content::HopCount(HopCount { limit: 9, count: 2 }));
        head.blocks.push(strange(12_000));
        let payload = random(9, 3_000);
        world.inject(ORBITER, &whole(&head, &payload), 4_000);
        world.run_for(MINUTE);
        if restart {
            world.crash(ORBITER);
            world.start(ORBITER);
            world.run_for(MINUTE);
        }
        let in_memory: u64 = world
            .agent(ORBITER)
            .holdings
            .iter()
            .map(|(_, held)| held)
            .map(|held| u64::from(held.extra_bytes))
            .sum();
        assert!(in_memory < 300, "{in_memory}");
        world.cables[1].window = 40_000;
        world.cables[1].cut_at = cut_at.map(|at| (at, Duration::from_secs(30)));
        world.heal(1);
        world.run_until(HOUR, "the bundle", |world| has_arrived(world, EARTH, 1));
        assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
        assert!(!world.cables[1].heads.is_empty());
        for there in &world.cables[1].heads {
            let block = there.block(BlockType::Unknown(200)).expect("it goes with every part");
            assert_eq!(block.data, random(9, 12_000), "restart {restart}, cut at {cut_at:?}");
            assert_eq!(there.hop_count(), Some(HopCount { limit: 9, count: 3 }));
        }
    }
}

/// Names cannot be left on disk: their memory is limited, with a quota for each neighbour.
#[test]
fn long_names_have_a_budget() {
    let mut world = ready(chain_with(10, |config| config.limits.heads_bytes_max = 300_000));
    for sequence in 0..100 {
        let name = format!("dtn://nowhere/{}", "x".repeat(1_000));
        let mut head = head(&world, "dtn://mallory/x", &name, sequence);
        head.primary.report_to = name.parse().unwrap();
        world.inject(ORBITER, &whole(&head, &Bytes::new()), 20_000);
    }
    world.run_for(MINUTE);
    let held = world.agent(ORBITER).holds().0;
    assert!((40..70).contains(&held), "{held}");
    assert_eq!(refused(&world), 100 - held as u64);
    // Bundles with usual names are still accepted, also from this neighbour.
    flood(&mut world, 1_000, 50, |_| "dtn://mallory/x".into(), Priority::Normal);
    assert_eq!(world.agent(ORBITER).holds().0, held + 50);
}

/// Each payload that waits for its application has an entry in memory, however short the bundle is.
#[test]
fn payloads_that_nobody_takes_have_a_budget() {
    let mut world = ready(chain_with(17, |config| config.limits.heads_bytes_max = 200_000));
    for round in 0..2_u64 {
        for sequence in 0..300 {
            let head = head(&world, "dtn://mallory/x", "dtn://earth/nobody", 1_000 * round + sequence);
            world.inject(EARTH, &whole(&head, &Bytes::new()), 500);
        }
        world.run_for(MINUTE);
        let held = world.agent(EARTH).holds().0;
        assert!((100..160).contains(&held), "{held} in round {round}");
        world.crash(EARTH);
        world.answers.clear();
        world.start(EARTH);
        world.run_for(MINUTE);
        assert_eq!(world.agent(EARTH).holds().0, held);
    }
    // All parts of one payload share one entry.
    let head = head(&world, "dtn://alice/x", "dtn://moon/in", 1);
    for number in 0..500 {
        world.inject(MOON, &part(&head, 2 * number, 1_000, b"x"), 500);
        world.run_for(Duration::from_secs(1));
    }
    world.run_for(MINUTE);
    assert_eq!(world.agent(MOON).holds().0, 500);
}

/// In version 6, blocks after a payload arrive when most of it is acknowledged: if they are too long, the
/// payload is kept.
#[test]
fn what_was_acknowledged_stays_when_the_blocks_behind_it_are_too_long() {
    let mut world = ready(chain_with(11, |config| config.limits.heads_bytes_max = 20_000));
    let mut bundle = foreign("dtn://earth/in", &[0x5a; 3_000]);
    bundle.head.payload.last = false;
    bundle.head.after.push(v6::Block {
        block_type: v6::BlockType::Unknown(222),
        flags: v6::BlockFlags::NONE,
        references: None,
        data: random(11, 10_000),
    });
    let bytes = bundle.to_bytes();
    let behind = bytes.len() - 10_000;
    world.inject_beginning(ORBITER, &bytes.slice(..behind));
    world.run_for(MINUTE);
    let accepted = world.accepted_injected();
    assert_eq!(accepted.len(), 1, "most of it is acknowledged");
    world.inject_end(ORBITER, &bytes.slice(behind..));
    assert_eq!(world.refusals(), [RefuseReason::NoResources]);
    world.run_until(HOUR, "the payload", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.nodes[EARTH].user.inbox[0].2, [0x5a; 3_000][..]);
    let kept: u64 = world
        .agent(ORBITER)
        .holdings
        .iter()
        .map(|(_, held)| held)
        .map(|held| u64::from(held.extra_bytes))
        .sum();
    assert_eq!(kept, 0, "the blocks are not kept");
}
