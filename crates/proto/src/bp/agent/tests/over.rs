//! Bundles that have expired or exceeded their hop limit when they arrive: refused as completed, and reported
//! as requested.

use super::forwarding::{HOUR, MINUTE, MOON, ORBITER, chain, chain_with, random};
use super::world::{Payload, World};
use crate::bp::{
    Bundle, BundleFlags, Content, CreationTimestamp, DtnTime, Head, HopCount, PrimaryBlock, ReasonCode,
};
use crate::service::{AppIndication, RefuseReason, ReportedStatus, SendOptions};
use crate::time::Duration;

/// Reports indicated to the application of a node: status, reason, bundle, reporter.
fn reports(world: &World, node: usize) -> Vec<(ReportedStatus, u64, CreationTimestamp, String)> {
    let log = world.nodes[node].user.log.iter();
    log.filter_map(|said| match said {
        AppIndication::Report { status, reason, name, reporter, .. } => {
            Some((*status, *reason, name.created, reporter.clone()))
        }
        _ => None,
    })
    .collect()
}

fn dtn_ms(world: &World) -> u64 {
    world.agent(MOON).time.clock.dtn_ms(world.now).expect("it has a clock")
}

/// Header of a bundle from the moon for earth.
fn head(created_ms: u64, sequence: u64, lifetime: Duration) -> Head {
    let timestamp = CreationTimestamp { time: DtnTime(created_ms), sequence };
    let [source, destination] = ["dtn://moon/", "dtn://earth/in"].map(|eid| eid.parse().unwrap());
    Head::new(PrimaryBlock::new(destination, source, timestamp, lifetime.as_millis() as u64), 0)
}

/// RFC 9171 4.4.3 and 5.10: a bundle whose hop count exceeds its limit is deleted and reported if requested.
#[test]
fn a_bundle_that_has_made_too_many_hops_is_reported_when_it_comes() {
    let mut world = chain_with(1, |config| config.reports.deletion = true);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    // The moon has sent the bundle, and a neighbour of the orbiter brings it with a count above its limit.
    world.cut(0);
    let created = CreationTimestamp::from((dtn_ms(&world), 5));
    let options = SendOptions { created: Some(created), report_deletion: true, ..SendOptions::default() };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 100)), options);
    for (sequence, asks) in [(6, false), (5, true)] {
        let mut head = head(created.time.0, sequence, HOUR);
        if asks {
            head.primary.flags |= BundleFlags::REPORT_DELETION;
        }
        head.primary.report_to = "dtn://moon/".parse().unwrap();
        head.set(&Content::HopCount(HopCount { limit: 3, count: 4 }));
        world.inject(ORBITER, &Bundle::new(head, random(1, 100)).to_bytes(), 1000);
    }
    assert_eq!(world.refusals(), [RefuseReason::Completed; 2]);
    let counters = world.agent(ORBITER).counters();
    assert_eq!((counters.deleted_hop_limit, counters.reports_sent), (2, 1), "one of them asks for a report");
    world.heal(0);
    world.run_until(HOUR, "a report", |world| !reports(world, MOON).is_empty());
    let reason = ReasonCode::HopLimitExceeded.number();
    assert_eq!(
        reports(&world, MOON),
        [(ReportedStatus::Deleted, reason, created, "dtn://orbiter/".to_owned())]
    );
}

/// RFC 9171 5.5: a bundle whose lifetime has expired by the clock of the receiving node is deleted there and
/// reported if requested.
#[test]
fn a_bundle_that_has_expired_is_reported_when_it_comes() {
    let mut world = chain_with(2, |config| config.reports.deletion = true);
    world.nodes[ORBITER].clock_ms = Some(100_000);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    let created = CreationTimestamp::from((dtn_ms(&world), 5));
    let options = SendOptions {
        created: Some(created),
        lifetime: Duration::from_secs(50),
        report_deletion: true,
        ..SendOptions::default()
    };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(2, 100)), options);
    world.run_until(MINUTE, "a report", |world| !reports(world, MOON).is_empty());
    let reason = ReasonCode::LifetimeExpired.number();
    assert_eq!(
        reports(&world, MOON),
        [(ReportedStatus::Deleted, reason, created, "dtn://orbiter/".to_owned())]
    );
    let counters = world.agent(ORBITER).counters();
    assert_eq!((counters.deleted_expired, counters.refused_completed, counters.received), (1, 1, 0));
}

/// RFC 9171 5.5: where both the clock and the creation time are known, they determine the age of a bundle,
/// whatever its age block contains.
#[test]
fn where_the_clock_is_known_the_age_block_does_not_count() {
    let mut world = chain(3);
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.cut(1);
    let now = dtn_ms(&world);
    let two_hours = 7_200_000;
    let mut young = head(now, 1, HOUR);
    young.set(&Content::BundleAge(two_hours));
    let mut old = head(now - two_hours, 2, HOUR);
    old.set(&Content::BundleAge(0));
    let bytes = [young, old].map(|head| Bundle::new(head, random(3, 100)).to_bytes());
    world.inject(ORBITER, &bytes[0], 1000);
    assert_eq!(world.refusals(), [], "it was made just now");
    world.inject(ORBITER, &bytes[1], 1000);
    assert_eq!(world.refusals(), [RefuseReason::Completed], "it was made two hours ago");
    // The accepted bundle is kept until its lifetime expires by the clock.
    world.run_for(59 * MINUTE);
    let there = |world: &World| world.agent(ORBITER).bundles(world.now).count();
    assert_eq!((there(&world), world.agent(ORBITER).counters().deleted_expired), (1, 1));
    world.run_for(2 * MINUTE);
    assert_eq!((there(&world), world.agent(ORBITER).counters().deleted_expired), (0, 2));
    // Without a clock only the age counts, and the result is reversed.
    let mut world = chain(3);
    world.nodes[ORBITER].clock_ms = None;
    world.start_all();
    world.run_for(Duration::from_secs(1));
    world.cut(1);
    world.inject(ORBITER, &bytes[0], 1000);
    assert_eq!(world.refusals(), [RefuseReason::Completed], "it is two hours old");
    world.inject(ORBITER, &bytes[1], 1000);
    assert_eq!((world.refusals().len(), there(&world)), (1, 1), "it says that it is new");
}
