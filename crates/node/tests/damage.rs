//! A store that is damaged while the node does not run: the damaged data is copied, reported, and its bundles are deleted with a
//! reason; all others arrive.

mod common;

use common::{App, Place, config, payload, web};
use longwire_node::message::MessageOptions;
use longwire_node::{Node, NodeSetup};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

fn start(place: &Place, name: &str, more: &str) -> Node {
    let path = place.0.join(name);
    // No cache: the test is about the disk.
    let text = format!(
        "node = 'dtn://{name}/'\nstorage.path = '{}'\nstorage.cache-bytes = 0\n{more}",
        path.display()
    );
    Node::start(NodeSetup::new(config(&text))).expect("it starts")
}

/// The only place in the segments of a store with these bytes.
fn find(store: &Path, wanted: &[u8]) -> (PathBuf, u64) {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(store).unwrap().flatten() {
        let bytes = if entry.path().is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
        let at = bytes.windows(wanted.len()).position(|window| window == wanted);
        found.extend(at.map(|at| (entry.path(), at as u64)));
    }
    assert_eq!(found.len(), 1, "the bytes are there once");
    found.remove(0)
}

fn flip((path, at): (PathBuf, u64)) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[!byte[0]], at).unwrap();
}

const LENGTHS: [usize; 5] = [1000, 300_000, 1000, 300_000, 1000];

/// A store in which Alice has five bundles for Bob, whose node is not running yet.
fn filled(name: &str) -> Place {
    let place = Place::new(name);
    let alice = start(&place, "alice", "");
    let mut app = App::new(&alice);
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        let send = app.send("dtn://bob/inbox", &payload(length, seed as u64), MessageOptions::default());
        app.wait_accepted(send);
    }
    drop(app);
    alice.stop();
    place
}

/// Starts both nodes. Returns the payloads that arrive at Bob, and Alice's status once she has no bundles left.
fn carried(place: &Place, count: usize) -> (Vec<bytes::Bytes>, serde_json::Value) {
    let bob = start(place, "bob", "listen = ['127.0.0.1:0']");
    let link = format!("link = [{{ name = 'bob', address = '{}' }}]", bob.addresses()[0]);
    let alice = start(place, "alice", &format!("http.listen = '127.0.0.1:0'\n{link}"));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("inbox", 0);
    let got: Vec<bytes::Bytes> = (0..count)
        .map(|_| {
            let (delivery, data) = there.receive();
            there.take(delivery);
            data
        })
        .collect();
    let status = here.wait_status(|status| status["bundles"] == 0 && status["ready"] == true);
    // The events have the same lines as `status`.
    let told = web::event(alice.http_address().expect("it has an HTTP interface"), "store_damaged");
    assert_eq!(told["what"], status["store"]["latest_damage"][0]);
    (got, status)
}

#[test]
fn a_damaged_payload_is_not_forwarded_as_if_whole_and_the_others_are() {
    for hit in [1, 2] {
        let place = filled(&format!("payload-{hit}"));
        // In the middle of the payload: for the long one, the entries before and after it are intact.
        let data = payload(LENGTHS[hit], hit as u64);
        let middle = LENGTHS[hit] / 2;
        flip(find(&place.0.join("alice"), &data[middle..middle + 16]));
        let (got, status) = carried(&place, 4);
        for (seed, length) in LENGTHS.into_iter().enumerate().filter(|(seed, _)| *seed != hit) {
            assert!(got.contains(&payload(length, seed as u64)), "bundle {seed}");
        }
        assert_eq!(status["counters"]["deleted_storage"], 1);
        assert_eq!(status["counters"]["forwarded"], 4);
        assert_eq!(status["store"]["damaged"], 1);
        let told = status["store"]["latest_damage"][0].as_str().expect("it is told");
        assert!(told.contains("checksum mismatch"), "{told}");
        let kept = std::fs::read_dir(place.0.join("alice/damaged")).unwrap().flatten();
        let kept: Vec<PathBuf> = kept.map(|entry| entry.path()).collect();
        let record =
            kept.iter().find(|path| path.to_string_lossy().contains("-record-")).expect("it is kept");
        assert!(std::fs::metadata(record).unwrap().len() > LENGTHS[hit] as u64, "all of it is kept");
        assert!(kept.iter().any(|path| path.ends_with("list.jsonl")));
    }
}

#[test]
fn an_entry_whose_header_is_damaged_arrives_all_the_same() {
    let place = filled("header");
    let data = payload(LENGTHS[2], 2);
    let (path, at) = find(&place.0.join("alice"), &data[..16]);
    // The header of the entry precedes that of the bundle; damage there affects no other bundle.
    let bytes = std::fs::read(&path).unwrap();
    let header = bytes[..at as usize].windows(4).rposition(|window| window == b"LWE1").expect("an entry");
    flip((path, header as u64 + 12));
    let (got, status) = carried(&place, 5);
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        assert!(got.contains(&payload(length, seed as u64)), "bundle {seed}");
    }
    let told = status["store"]["latest_damage"][0].as_str().expect("it is told");
    assert!(told.contains("header"), "{told}");
}

#[test]
fn a_segment_that_is_cut_short_takes_what_was_behind_the_cut_and_each_of_that_is_named() {
    let place = filled("cut");
    let store = place.0.join("alice");
    let data = payload(LENGTHS[3], 3);
    let (path, at) = find(&store, &data[200_000..200_016]);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(at).unwrap();
    let (got, status) = carried(&place, 3);
    for (seed, length) in LENGTHS.into_iter().enumerate().take(3) {
        assert!(got.contains(&payload(length, seed as u64)), "bundle {seed}");
    }
    assert_eq!(status["store"]["harmed"], 2, "{status:#}");
    assert_eq!(status["counters"]["deleted_storage"], 2, "{status:#}");
    let list = std::fs::read_to_string(store.join("damaged/list.jsonl")).unwrap();
    let named: std::collections::BTreeSet<String> = list
        .lines()
        .filter_map(|line| {
            Some(serde_json::from_str::<serde_json::Value>(line).ok()?["record"].as_u64()?.to_string())
        })
        .collect();
    assert_eq!(named.len(), 2, "{list}");
}

/// The end of one bundle is missing, and all of the next one: the first is reported with its bundle, and the other cannot be
/// identified.
#[test]
fn what_a_start_finds_damaged_is_told_with_its_bundle() {
    let place = filled("named");
    let store = place.0.join("alice");
    let (path, at) = find(&store, &payload(LENGTHS[3], 3)[200_000..200_016]);
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(at).unwrap();
    let alice = start(&place, "alice", "");
    let status = App::new(&alice).wait_status(|status| status["ready"] == true);
    let lines = status["store"]["latest_damage"].as_array().expect("a list").iter();
    let lines: Vec<&str> = lines.map(|line| line.as_str().expect("a line")).collect();
    assert_eq!(status["store"]["damaged"], lines.len(), "none is missing");
    let mut records = std::collections::BTreeMap::<&str, Vec<(bool, bool)>>::new();
    for line in &lines {
        let Some((_, rest)) = line.split_once(", record ") else { continue };
        let is_named =
            rest.contains("; belongs to the bundle dtn://alice/") && rest.ends_with(" to dtn://bob/inbox");
        let is_nameless = rest.ends_with("; belongs to no readable bundle");
        let record = rest.split(';').next().expect("its number");
        records.entry(record).or_default().push((is_named, is_nameless));
    }
    let said: Vec<_> = records.into_values().collect();
    let all = |lines: &[(bool, bool)], wanted| lines.iter().all(|line| *line == wanted);
    assert!(
        said.len() == 2 && all(&said[0], (true, false)) && all(&said[1], (false, true)),
        "the first is named, the second cannot be: {lines:#?}"
    );
}

#[test]
fn damage_of_what_nobody_reads_is_found_by_a_node_that_goes_on() {
    let place = filled("scrubbed");
    let data = payload(LENGTHS[1], 1);
    let more = "storage.scrub-every = '1 s'\nstorage.scrub-bytes-per-s = 1_000_000_000";
    let alice = start(&place, "alice", more);
    let mut app = App::new(&alice);
    app.wait_status(|status| status["store"]["scrubs"].as_u64() > Some(0) && status["store"]["damaged"] == 0);
    flip(find(&place.0.join("alice"), &data[150_000..150_016]));
    let status = app.wait_status(|status| status["store"]["damaged"] != 0);
    let told = status["store"]["latest_damage"][0].as_str().expect("it is told");
    assert!(told.contains("checksum mismatch") && told.contains("to dtn://bob/inbox"), "{told}");
}
