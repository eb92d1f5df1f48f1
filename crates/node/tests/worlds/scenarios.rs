//! The scenarios: each a plan and a plain function, the same in both worlds. Parameters that a seed may vary are drawn from
//! `rng`.

use crate::plan::Plan;
use crate::stage::{Network, Stage};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::service::{Priority, SendFailure, SendOptions};
use longwire_proto::tcpcl::Versions;
use longwire_proto::time::Duration;

/// Payload bytes plus the maximum of headers and acknowledgements for them: of TCP, IP and TCPCL.
fn with_headers(payload: u64) -> u64 {
    payload + payload / 10 + 40_000
}

fn payload(rng: &mut Rng, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes);
    bytes.into()
}

fn plainly() -> SendOptions {
    SendOptions::default()
}

pub(crate) fn pair(versions: Versions) -> Plan {
    let mut plan = Plan::named("pair");
    plan.versions.insert("alice".into(), versions);
    plan
}

/// Both directions, all sizes.
pub(crate) fn transfer<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    stage.register("alice");
    stage.register("bob");
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for length in [0, 1, 1000, 60_001, 400_000] {
        there.push(payload(rng, length));
        back.push(payload(rng, length));
    }
    for (one, other) in there.iter().zip(&back) {
        stage.send("alice", "bob", one.clone(), plainly());
        stage.send("bob", "alice", other.clone(), plainly());
    }
    stage.wait_arrivals(10);
    stage.wait("all are sent", |_, users| users.sendings.iter().all(|send| send.end == Some(Ok(()))));
    stage.check_arrivals("bob", &there);
    stage.check_arrivals("alice", &back);
}

/// There is never an end-to-end path: the relay keeps its bundles until the second line is up, when the first one is down.
pub(crate) fn a_relay_stores_and_forwards<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    let (first, second) = (stage.line("alice", "relay"), stage.line("relay", "carol"));
    stage.register("carol");
    stage.world.cut(second);
    let files: Vec<Bytes> = [500, 100_000, 300_000].iter().map(|length| payload(rng, *length)).collect();
    for file in &files {
        stage.send("alice", "carol", file.clone(), plainly());
    }
    stage.wait("the relay has them", |_, users| users.sendings.iter().all(|send| send.end == Some(Ok(()))));
    assert!(stage.users.arrivals.is_empty());
    stage.world.cut(first);
    stage.world.heal(second);
    stage.wait_arrivals(files.len());
    stage.check_arrivals("carol", &files);
}

/// The line is cut in the middle of a bundle and restored, first before the cut is noticed, then long after: acknowledged bytes
/// are not resent.
pub(crate) fn an_outage_sends_nothing_acknowledged_again<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    let line = stage.line("alice", "bob");
    stage.register("bob");
    let file = payload(rng, 1_500_000);
    let send = stage.hand("alice", "bob", file.clone(), plainly());
    let (mut safe, mut before) = (0, 0);
    for (from, outage) in [(100_000, 200), (500_000, 3_000)] {
        let enough = from + rng.below(400_000);
        stage.wait("it is under way", |_, users| users.sendings[send].safe >= enough);
        stage.world.cut(line);
        (safe, before) = (stage.users.sendings[send].safe, stage.world.carried(line));
        stage.pass(Duration::from_millis(outage));
        stage.world.heal(line);
    }
    stage.wait_arrivals(1);
    stage.wait("it is sent", |_, users| users.sendings[send].end == Some(Ok(())));
    stage.check_arrivals("bob", std::slice::from_ref(&file));
    let carried = stage.world.carried(line) - before;
    let rest = file.len() as u64 - safe;
    assert!(carried <= with_headers(rest), "{carried} bytes went over, and {rest} were not acknowledged");
}

/// A node crashes while bundles pass through it, and restarts: all of them arrive, once.
fn a_crash<W: Network>(stage: &mut Stage<W>, rng: &mut Rng, victim: &str) {
    stage.register("carol");
    let files: Vec<Bytes> =
        [300_000, 2_000, 700_000, 50_000].iter().map(|length| payload(rng, *length)).collect();
    for file in &files {
        stage.hand("alice", "carol", file.clone(), plainly());
    }
    let line = if victim == "carol" { stage.line("relay", "carol") } else { stage.line("alice", "relay") };
    let enough = 50_000 + rng.below(800_000);
    stage.wait("they are under way", |world, _| world.carried(line) >= enough);
    stage.crash(victim);
    stage.pass(Duration::from_millis(rng.below(500)));
    stage.restart(victim);
    stage.wait_arrivals(files.len());
    stage.check_arrivals("carol", &files);
}

pub(crate) fn the_sender_crashes<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    a_crash(stage, rng, "alice");
}

pub(crate) fn the_relay_crashes<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    a_crash(stage, rng, "relay");
}

pub(crate) fn the_receiver_crashes<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    a_crash(stage, rng, "carol");
}

pub(crate) fn cut_through() -> Plan {
    let mut plan = Plan::named("row");
    plan.agent.relays = 1;
    plan
}

/// A relay forwards fragments of a file while it receives others, and crashes again and again: the file arrives, once.
pub(crate) fn a_relay_crashes_between_fragments<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    const LENGTH: usize = 900_000;
    stage.register("carol");
    let (first, second) = (stage.line("alice", "relay"), stage.line("relay", "carol"));
    let file = payload(rng, LENGTH);
    stage.hand("alice", "carol", file.clone(), plainly());
    stage.wait("the relay forwards", |world, _| world.carried(second) >= 30_000);
    assert!(stage.world.carried(first) < LENGTH as u64, "the relay has all of it");
    for _ in 0..5 {
        let more = stage.world.carried(second) + rng.below(150_000);
        stage
            .wait("more arrives", |world, users| !users.arrivals.is_empty() || world.carried(second) >= more);
        stage.crash("relay");
        stage.pass(Duration::from_millis(rng.below(500)));
        stage.restart("relay");
    }
    stage.wait_arrivals(1);
    stage.check_arrivals("carol", std::slice::from_ref(&file));
}

/// A lifetime expires while the line is cut: the sender is notified, and no part of that bundle is sent later.
pub(crate) fn a_lifetime_ends_while_the_line_is_down<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    let line = stage.line("alice", "bob");
    stage.register("bob");
    stage.world.cut(line);
    let (short, long) = (payload(rng, 3_000), payload(rng, 4_000));
    let lifetime = Duration::from_millis(500 + rng.below(500));
    let lost = stage.hand("alice", "bob", short, SendOptions { lifetime, ..plainly() });
    stage.hand("alice", "bob", long.clone(), plainly());
    stage.wait("it expires", |_, users| users.sendings[lost].end == Some(Err(SendFailure::Expired)));
    stage.world.heal(line);
    stage.wait_arrivals(1);
    stage.check_arrivals("bob", &[long]);
    assert_eq!(stage.count("alice", "deleted_expired"), 1);
}

/// Urgent bundles are sent before earlier ones.
pub(crate) fn the_urgent_overtakes<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    stage.register("bob");
    let bulk: Vec<Bytes> = (0..8).map(|_| payload(rng, 150_000)).collect();
    for file in &bulk {
        stage.hand("alice", "bob", file.clone(), SendOptions { priority: Priority::Bulk, ..plainly() });
    }
    stage.wait("the first is there", |_, users| !users.arrivals.is_empty());
    let urgent = payload(rng, 1_000);
    stage.send("alice", "bob", urgent.clone(), SendOptions { priority: Priority::Expedited, ..plainly() });
    stage.wait_arrivals(9);
    let place = stage.users.arrivals.iter().position(|arrival| arrival.1 == urgent).expect("it arrived");
    assert!(place <= 5, "the urgent one is number {place} of 9");
    let all: Vec<Bytes> = bulk.into_iter().chain([urgent]).collect();
    stage.check_arrivals("bob", &all);
}

pub(crate) fn a_small_store(versions: Versions) -> Plan {
    let mut plan = pair(versions);
    let mut agent = plan.agent.clone();
    // The share of one source over one neighbour is 270,000 bytes.
    agent.limits.store_bytes_max = 800_000;
    plan.agents.insert("bob".into(), agent);
    plan
}

/// A full store refuses bundles; once there is space, they arrive after all.
pub(crate) fn a_full_store_refuses<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    let files: Vec<Bytes> = (0..5).map(|_| payload(rng, 100_000)).collect();
    for file in &files {
        stage.hand("alice", "bob", file.clone(), plainly());
    }
    let two = |users: &crate::stage::Users| {
        users.sendings.iter().filter(|send| send.end == Some(Ok(()))).count() == 2
    };
    stage.wait("bob has what fits", |_, users| two(users));
    let bob = stage.node("bob");
    stage.wait("bob refuses the rest", |world, _| world.count(bob, "refused_no_resources") > 0);
    assert!(two(&stage.users), "no more fits");
    stage.register("bob");
    stage.wait_arrivals(files.len());
    stage.check_arrivals("bob", &files);
}

pub(crate) fn in_fragments(versions: Versions) -> Plan {
    let mut plan = pair(versions);
    plan.line[0].bundle_bytes_max = 20_000;
    plan
}

/// A line does not accept long bundles: they are fragmented, and reassembled at the destination.
pub(crate) fn fragments_are_put_together<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    stage.register("bob");
    let files: Vec<Bytes> = [1_000, 100_000, 333_333].iter().map(|length| payload(rng, *length)).collect();
    for file in &files {
        stage.send("alice", "bob", file.clone(), plainly());
    }
    stage.wait_arrivals(files.len());
    stage.check_arrivals("bob", &files);
    let fragments = stage.count("alice", "fragments_sent");
    assert!(fragments >= 22, "{fragments} fragments");
}

pub(crate) fn of_two_versions() -> Plan {
    let mut plan = Plan::named("row");
    plan.versions.insert("alice".into(), Versions::Three);
    plan.versions.insert("carol".into(), Versions::Four);
    plan
}

/// One neighbour supports version 3 and the other version 4.
pub(crate) fn neighbours_of_two_versions<W: Network>(stage: &mut Stage<W>, rng: &mut Rng) {
    stage.register("alice");
    stage.register("carol");
    let (there, back) = (payload(rng, 200_000), payload(rng, 150_000));
    stage.send("alice", "carol", there.clone(), plainly());
    stage.send("carol", "alice", back.clone(), plainly());
    stage.wait_arrivals(2);
    stage.check_arrivals("carol", &[there]);
    stage.check_arrivals("alice", &[back]);
}
