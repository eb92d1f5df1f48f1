//! Stored bundles that this node has signed and encrypted, as they were recorded: another version must read them.

use super::encryption::{encrypts, key, requires};
use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain, has_arrived, random};
use super::world::{Payload, World};
use crate::bp::bpsec::Algorithm;
use crate::service::{RecordId, SendOptions};
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

/// A small bundle waits at a node that has crashed.
fn waiting() -> World {
    let mut world = chain(10);
    world.start_all();
    world.run_for(MINUTE);
    world.cut(1);
    let payload = Payload::Given(random(1, 300));
    world.send(MOON, 1, "dtn://earth/in", payload, SendOptions::default());
    world.run_for(MINUTE);
    assert_eq!(world.agent(ORBITER).holds().0, 1);
    world.crash(ORBITER);
    world
}

/// The bundle itself is verified, and goes on.
#[test]
fn damage_in_what_was_appended_costs_no_small_bundle() {
    let mut world = waiting();
    let bundle = world.nodes[ORBITER].disk.records.values_mut().max_by_key(|log| log.length);
    let bundle = bundle.expect("it is stored");
    bundle.damaged_from = Some(bundle.length - 1);
    world.start(ORBITER);
    world.heal(1);
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.agent(ORBITER).counters().deleted_storage, 0);
}

/// The bundle does not wait for the next start because of it.
#[test]
fn a_device_that_fails_for_a_moment_hides_no_bundle_from_a_start() {
    let mut world = waiting();
    world.nodes[ORBITER].disk.failing_reads = 4;
    world.start(ORBITER);
    world.heal(1);
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.agent(ORBITER).counters().deleted_storage, 0);
}
