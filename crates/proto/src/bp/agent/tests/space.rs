//! Limits of the store: usage, eviction, bundles that are kept, and refusals.

use super::super::{Config, EvictionPolicy, RetentionReason};
use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain_with, random};
use super::version6::foreign;
use super::world::{EPOCH_DTN_MS, Payload, World};
use crate::bp::{
    Bundle, BundleFlags, Content, CreationTimestamp, DtnTime, Head, PrimaryBlock, QualityOfService,
    ReasonCode, v6,
};
use crate::service::{
    AppIndication, BundleEvent, BundlesIndication, ManagementIndication, ManagementRequest, Priority,
    RefuseReason, SendFailure, SendId, SendOptions, TransferId,
};
use crate::time::Duration;
use bytes::Bytes;

/// Sets the quotas so that each owner may use the complete store.
fn share_with_all(config: &mut Config) {
    config.limits.own_share_percent = 0;
    config.limits.neighbour_share_percent = 100;
    config.limits.source_share_percent = 100;
}

/// A node with these limits, from which no bundle can leave.
fn lone(configure: impl FnOnce(&mut Config)) -> World {
    let mut world = World::new(1);
    world.node("moon", |config| {
        share_with_all(config);
        configure(config);
    });
    world.tell(MOON, ManagementRequest::Watch { on: true });
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world
}

fn of(priority: Priority) -> SendOptions {
    SendOptions { priority, ..SendOptions::default() }
}

fn send(world: &mut World, number: u64, length: usize, options: SendOptions) {
    world.send(MOON, number, "dtn://far/in", Payload::Given(random(number, length)), options);
    world.run_for(Duration::from_secs(1));
}

/// Sends that failed because the store was full, in order of their numbers.
fn failed(world: &World) -> Vec<u64> {
    let full = |(send, end): (&SendId, &AppIndication)| {
        assert_eq!(*end, AppIndication::Failed { send: *send, reason: SendFailure::Full });
        send.0
    };
    world.nodes[MOON].user.ended.iter().map(full).collect()
}

fn evicted(world: &World, node: usize) -> u64 {
    world.agent(node).counters().deleted_evicted
}

/// A bundle from a neighbour for a destination without a route.
fn foreign7(sequence: u64, priority: Priority, length: usize) -> Bundle {
    let timestamp = CreationTimestamp { time: DtnTime(EPOCH_DTN_MS), sequence };
    let [source, destination, report_to] =
        ["dtn://far/app", "dtn://nowhere/x", "dtn://far/reports"].map(|eid| eid.parse().unwrap());
    let mut primary = PrimaryBlock::new(destination, source, timestamp, 3_600_000);
    primary.report_to = report_to;
    primary.flags |= BundleFlags::REPORT_DELETION;
    let mut head = Head::new(primary, 0);
    head.set(&Content::QualityOfService(QualityOfService::from(priority)));
    Bundle::new(head, random(sequence, length))
}

#[test]
fn the_least_urgent_and_oldest_goes_by_bytes_and_by_number() {
    let by_bytes = |config: &mut Config| config.limits.store_bytes_max = 10_000;
    let by_number = |config: &mut Config| config.limits.bundles_max = 4;
    for limit in [&by_bytes as &dyn Fn(&mut Config), &by_number] {
        let mut world = lone(|config| {
            limit(config);
            config.evict = EvictionPolicy::LowestPriority;
        });
        for (number, priority) in
            [(1, Priority::Normal), (2, Priority::Bulk), (3, Priority::Normal), (4, Priority::Bulk)]
        {
            send(&mut world, number, 2_200, of(priority));
        }
        assert_eq!(failed(&world), []);
        let mut gone = Vec::new();
        // First the two of lowest priority, the older first; then those of normal priority; then none of
        // lower priority is left.
        for (number, victim) in [(5, 2), (6, 4), (7, 1), (8, 3), (9, 9)] {
            send(&mut world, number, 2_200, of(Priority::Expedited));
            gone.push(victim);
            gone.sort_unstable();
            assert_eq!(failed(&world), gone, "when {number} comes");
        }
        assert_eq!(evicted(&world, MOON), 4);
        // Each of them was accepted, and is indicated as deleted because of depleted storage.
        let told = |reason: ReasonCode| {
            let events = world.nodes[MOON].user.events.iter();
            let deleted = BundleEvent::Deleted(reason.number());
            events
                .filter(|said| matches!(said, ManagementIndication::Bundle { what, .. } if *what == deleted))
                .count()
        };
        assert_eq!(told(ReasonCode::DepletedStorage), 4);
        // A bundle of the highest priority present is refused; a neighbour receives the refusal of its
        // protocol.
        world.inject(MOON, &foreign7(1, Priority::Expedited, 2_200).to_bytes(), 500);
        assert_eq!(world.refusals(), [RefuseReason::NoResources]);
        assert_eq!(world.agent(MOON).holds().0, 4);
    }
}

#[test]
fn nothing_goes_in_vain() {
    let mut world = lone(|config| {
        config.limits.store_bytes_max = 20_000;
        config.limits.place_ahead_bytes = 1_000;
        config.evict = EvictionPolicy::LowestPriority;
    });
    send(&mut world, 1, 2_000, of(Priority::Bulk));
    send(&mut world, 2, 2_000, of(Priority::Bulk));
    send(&mut world, 3, 14_000, of(Priority::Expedited));
    // Evicting both bundles of lower priority would not make enough space, neither for an application nor for
    // a bundle that a neighbour begins to send.
    send(&mut world, 4, 7_000, of(Priority::Expedited));
    world.inject(MOON, &foreign7(1, Priority::Expedited, 7_000).to_bytes(), 500);
    assert_eq!((failed(&world), world.refusals()), (vec![4], vec![RefuseReason::NoResources]));
    assert_eq!((evicted(&world, MOON), world.agent(MOON).holds().0), (0, 3));
    // They are enough for a smaller one, and no more is evicted than necessary.
    world.inject(MOON, &foreign7(2, Priority::Expedited, 2_500).to_bytes(), 500);
    world.run_for(Duration::from_secs(1));
    assert_eq!((evicted(&world, MOON), failed(&world)), (1, vec![1, 4]));
    assert_eq!(world.agent(MOON).counters().received, 1);
}

#[test]
fn a_smaller_limit_makes_an_urgent_bundle_evict_no_more_than_its_own_place() {
    let mut world = lone(|config| config.evict = EvictionPolicy::LowestPriority);
    for number in 1..=8 {
        send(&mut world, number, 2_000, of(Priority::Bulk));
    }
    world.change_limits(MOON, |limits| limits.bundles_max = 4);
    send(&mut world, 9, 2_000, of(Priority::Expedited));
    assert_eq!((failed(&world), world.agent(MOON).holds().0), (vec![1], 8));
    // One that can evict nothing is refused.
    send(&mut world, 10, 2_000, of(Priority::Bulk));
    assert_eq!((failed(&world), world.agent(MOON).holds().0), (vec![1, 10], 8));
}

/// A report about an evicted bundle needs space itself: it uses what is left over, and evicts nothing.
#[test]
fn an_evicted_bundle_goes_once_and_its_report_evicts_nothing() {
    for (bundles_max, length, reports) in [(100, 1_000, 1), (100, 2_650, 0), (4, 1_000, 0)] {
        let mut world = lone(|config| {
            config.limits.store_bytes_max = 10_000;
            config.limits.bundles_max = bundles_max;
            config.reports.deletion = true;
            config.reports.priority = Priority::Expedited;
            config.evict = EvictionPolicy::LowestPriority;
        });
        for sequence in 1..=4 {
            world.inject(MOON, &foreign7(sequence, Priority::Bulk, 2_200).to_bytes(), 500);
        }
        world.run_for(Duration::from_secs(1));
        world.inject(MOON, &foreign7(5, Priority::Expedited, length).to_bytes(), 500);
        world.run_for(Duration::from_secs(1));
        let counters = *world.agent(MOON).counters();
        let case = (bundles_max, length, world.agent(MOON).holds());
        assert_eq!((world.refusals(), counters.deleted_evicted), (vec![], 1), "{case:?}");
        assert_eq!((counters.received, counters.reports_sent), (5, reports), "{case:?}");
        assert_eq!(world.agent(MOON).holds().0, 4 + reports as usize);
    }
}

#[test]
fn what_is_on_its_way_or_here_for_an_application_stays() {
    let mut world = chain_with(2, |config| {
        share_with_all(config);
        config.evict = EvictionPolicy::LowestPriority;
        config.limits.store_bytes_max = 10_000;
    });
    world.nodes[MOON].user.takes = false;
    world.cables[0].byte_time = Duration::from_millis(5);
    world.cables[0].transfer_bytes_max = 1_500;
    world.cables[0].window = 1_000;
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let payload = |number| Payload::Given(random(number, 4_000));
    world.send(MOON, 1, "dtn://moon/in", payload(1), of(Priority::Bulk));
    world.run_for(Duration::from_secs(1));
    // This bundle is being sent for twenty seconds, in parts.
    world.send(MOON, 2, "dtn://earth/in", payload(2), of(Priority::Bulk));
    world.run_for(Duration::from_secs(1));
    world.send(MOON, 3, "dtn://earth/in", payload(3), of(Priority::Expedited));
    world.run_for(Duration::from_secs(1));
    assert_eq!((failed(&world), evicted(&world, MOON)), (vec![3], 0));
    world.run_for(MINUTE);
    assert_eq!(world.nodes[EARTH].user.inbox.len(), 1);
}

#[test]
fn what_rests_after_a_refusal_may_go() {
    let mut world = chain_with(3, |config| {
        share_with_all(config);
        config.evict = EvictionPolicy::LowestPriority;
        let small = config.node == "dtn://orbiter/";
        config.limits.store_bytes_max = if small { 3_000 } else { 10_000 };
        config.backoff_min = HOUR;
        config.backoff_max = HOUR;
    });
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 6_000)), of(Priority::Bulk));
    world.run_for(Duration::from_secs(10));
    let why: Vec<RetentionReason> = world.agent(MOON).bundles(world.now).map(|status| status.why).collect();
    assert!(matches!(why[..], [RetentionReason::Resting(_)]), "{why:?}");
    assert_eq!(world.agent(ORBITER).counters().refused_no_resources, 1);
    world.send(MOON, 2, "dtn://far/in", Payload::Given(random(2, 6_000)), of(Priority::Expedited));
    world.run_for(Duration::from_secs(1));
    assert_eq!((failed(&world), evicted(&world, MOON)), (vec![1], 1));
}

/// The length of the blocks after a payload is not announced: wherever a transfer breaks among them, the
/// counted bytes are the bytes held, and none are left when the bundle has been removed.
#[test]
fn bytes_are_counted_right_where_a_transfer_breaks_among_trailing_blocks() {
    let mut bundle = foreign("dtn://nowhere/x", b"hello");
    let block = |length| v6::Block {
        block_type: v6::BlockType::from_number(200),
        flags: v6::BlockFlags::NONE,
        references: None,
        data: random(1, length),
    };
    bundle.head.after = vec![block(100), block(90)];
    bundle.head.payload.last = false;
    let bytes = bundle.to_bytes();
    for ahead in [0, 40, 1 << 20] {
        for cut in 2..=bytes.len() {
            count_with_a_break(&bytes, cut, ahead);
        }
    }
}

fn count_with_a_break(bytes: &Bytes, cut: usize, place_ahead_bytes: u64) {
    let mut world = lone(|config| config.limits.place_ahead_bytes = place_ahead_bytes);
    let on_disk = |world: &World| world.nodes[MOON].disk.records.values().map(|log| log.length).sum::<u64>();
    let before = on_disk(&world);
    world.inject_beginning(MOON, &bytes.slice(..cut / 2));
    let transfer = TransferId(world.injected);
    let data = bytes.slice(cut / 2..cut);
    world.say_injected(MOON, BundlesIndication::Piece { transfer, data, last: cut == bytes.len() });
    world.say_injected(MOON, BundlesIndication::Lost { transfer });
    world.run_for(Duration::from_secs(1));
    for crash in [false, true] {
        if crash {
            world.crash(MOON);
            world.start(MOON);
            world.run_for(Duration::from_secs(1));
        }
        let (bundles, counted) = world.agent(MOON).holds();
        // The boot record of each start replaces the previous one.
        assert_eq!(counted, on_disk(&world) - before, "cut at {cut}, crash {crash}, {bundles} bundles");
    }
    if cut == bytes.len() {
        assert_eq!(world.agent(MOON).holds().0, 1, "it came whole");
    }
    world.run_for(2 * HOUR);
    assert_eq!(world.agent(MOON).holds(), (0, 0), "cut at {cut}");
}
