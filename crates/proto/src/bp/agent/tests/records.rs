//! Stored bundles that this node has signed and encrypted, as they were recorded: another version must read them.

use super::super::record::NOTE_BYTES;
use super::encryption::{encrypts, key, requires};
use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain, has_arrived, random};
use super::world::{Payload, World};
use crate::bp::bpsec::Algorithm;
use crate::service::{RecordId, SendOptions};
use crate::time::Duration;
use bytes::Bytes;

const RECORDED: &str = include_str!("../../../../../../vectors/bp/secured-records.txt");
const TEXT: &[u8] = b"hello, earth";

fn moon(world: &mut World) -> usize {
    let node = world.node("moon", |_| {});
    world.nodes[node].security = encrypts([key(1, Algorithm::Aes256Gcm)]);
    // Signed, and not encrypted.
    let plain = super::encryption::endpoints("dtn://moon/plain", "*");
    let rule = crate::bp::agent::EncryptRule { endpoints: plain, key: None };
    world.nodes[node].security.encrypt.insert(0, rule);
    node
}

/// Records of a node with a signed bundle, and with one that is encrypted, too.
fn records() -> Vec<(RecordId, Bytes)> {
    let mut world = World::new(6);
    let node = moon(&mut world);
    world.start_all();
    for (number, service) in [(1, "plain"), (2, "secret")] {
        let options = SendOptions { source: Some(format!("dtn://moon/{service}")), ..SendOptions::default() };
        world.send(node, number, "dtn://earth/in", Payload::Given(Bytes::from_static(TEXT)), options);
    }
    world.run_for(MINUTE);
    let records = world.nodes[node].disk.records.iter();
    records.map(|(record, log)| (*record, log.read(0, log.length))).collect()
}

fn recorded() -> Vec<(RecordId, Bytes)> {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let byte = |text: &str, at| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    let line = |line: &str| {
        let (record, text) = line.split_once(' ').expect("a record and its bytes");
        let bytes = (0..text.len()).step_by(2).map(|at| byte(text, at)).collect();
        (RecordId(record.parse().expect("a number")), bytes)
    };
    lines.map(line).collect()
}

#[test]
fn records_of_secured_bundles_are_the_recorded_ones() {
    let records = records();
    let hex = |bytes: &Bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text: String =
        records.iter().map(|(record, bytes)| format!("{} {}\n", record.0, hex(bytes))).collect();
    assert!(
        records == recorded(),
        "the format has changed; stores of earlier versions must be read:\n{text}"
    );
}

#[test]
fn recorded_bundles_are_read_sent_decrypted_and_verified() {
    let mut world = World::new(7);
    let node = moon(&mut world);
    let earth = world.node("earth", |_| {});
    world.nodes[earth].security = requires([key(1, Algorithm::Aes256Gcm)]);
    world.nodes[earth].security.encrypted.clear();
    world.cable(node, earth);
    world.route(node, "dtn://earth/*", 0);
    for (record, bytes) in recorded() {
        world.nodes[node].disk.put(record, bytes);
    }
    world.start_all();
    world.run_until(HOUR, "delivery", |world| has_arrived(world, earth, 2));
    assert!(world.nodes[earth].user.inbox.iter().all(|taken| taken.2 == TEXT));
    let counters = *world.agent(earth).counters();
    assert_eq!((counters.signatures_valid, counters.decrypted), (2, 1));
}

/// A bundle with a payload of so many bytes, and `more` more bytes in each of three endpoint IDs, waits at a node that has crashed.
fn waiting(payload_bytes: usize, more: usize) -> World {
    let mut world = chain(10);
    world.start_all();
    world.run_for(MINUTE);
    world.cut(1);
    let payload = Payload::Given(random(1, payload_bytes));
    let more = "x".repeat(more);
    let own = Some(format!("dtn://moon/{more}"));
    let options = SendOptions { source: own.clone(), report_to: own, ..SendOptions::default() };
    world.send(MOON, 1, &format!("dtn://earth/in{more}"), payload, options);
    world.run_for(MINUTE);
    assert_eq!(world.agent(ORBITER).holds().0, 1);
    world.crash(ORBITER);
    world
}

/// The bundle itself is verified, and goes on, wherever its header and its payload end.
#[test]
fn damage_in_what_was_appended_costs_no_small_bundle() {
    let short = (1..300).map(|bytes| (bytes, 0));
    for (payload_bytes, more) in short.chain((0..40).map(|step| (1 + step * 100, 1000))) {
        let mut world = waiting(payload_bytes, more);
        let bundle = world.nodes[ORBITER].disk.records.values_mut().max_by_key(|log| log.length);
        let bundle = bundle.expect("it is stored");
        bundle.damaged_from = Some(bundle.length - NOTE_BYTES);
        world.start(ORBITER);
        world.heal(1);
        world.run_until(HOUR, "forwarding", |world| world.agent(EARTH).holds().0 == 1);
        assert_eq!(world.agent(ORBITER).counters().deleted_storage, 0, "{payload_bytes} bytes");
    }
}

/// One whose header is lost is removed, and counted.
#[test]
fn a_bundle_with_a_damaged_header_is_removed() {
    for damaged_from in [0, 1, 30, 60] {
        let mut world = waiting(100, 0);
        let bundle = world.nodes[ORBITER].disk.records.values_mut().max_by_key(|log| log.length);
        bundle.expect("it is stored").damaged_from = Some(damaged_from);
        world.start(ORBITER);
        world.run_for(MINUTE);
        let counters = world.agent(ORBITER).counters();
        assert_eq!((counters.deleted_storage, world.agent(ORBITER).holds().0), (1, 0), "from {damaged_from}");
    }
}

/// The bundle does not wait for the next start because of it.
#[test]
fn a_device_that_fails_for_a_moment_hides_no_bundle_from_a_start() {
    let mut world = waiting(300, 0);
    world.nodes[ORBITER].disk.away_until = world.now + Duration::from_secs(5);
    world.start(ORBITER);
    world.heal(1);
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    let counters = world.agent(ORBITER).counters();
    assert_eq!((counters.deleted_storage, counters.records_unread), (0, 0));
}

/// The node starts without it, and leaves everything unchanged for the next start.
#[test]
fn a_device_that_stays_away_ends_the_start_and_costs_nothing() {
    let mut world = waiting(300, 0);
    let stored = world.nodes[ORBITER].disk.records.len();
    world.nodes[ORBITER].disk.away_until = world.now + HOUR;
    world.start(ORBITER);
    world.run_for(MINUTE);
    assert_eq!(world.agent(ORBITER).counters().records_unread, stored as u64);
    world.crash(ORBITER);
    world.nodes[ORBITER].disk.away_until = world.now;
    world.start(ORBITER);
    world.heal(1);
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
}
