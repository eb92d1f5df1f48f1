//! A limit of docs/limits.md that only much damage reaches: a store with more of it than is remembered. The node is a process of its
//! own; a friend's file goes through.

#[path = "common/besieged.rs"]
mod besieged;
mod common;
#[path = "common/peer.rs"]
mod peer;

use besieged::Besieged;
use bytes::Bytes;
use longwire_proto::bp::Bundle;
use peer::*;
use std::fs;
use std::path::{Path, PathBuf};

const FILE_BYTES: usize = 300_000;
const MEMORY_MAX: u64 = 150 << 20;

#[test]
fn the_node_itself() {
    besieged::be_the_node();
}

fn besiege(title: &str, text: &str) -> Besieged {
    Besieged::new(&format!("stated-{title}"), "the_node_itself", text)
}

#[track_caller]
fn memory_holds(bob: &Besieged) {
    let peak = bob.peak_bytes();
    assert!(peak < MEMORY_MAX, "the node has had {} MB", peak >> 20);
}

/// The newest segment of a store.
fn last_segment(store: &Path) -> PathBuf {
    let files = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "log")).max().expect("there is one")
}

/// Five thousand bundles are missing: each is in the list, as many are remembered until the node is up as are stated, and all are
/// counted.
#[test]
fn damage_that_is_too_much_to_be_remembered_is_counted() {
    const REMEMBERED: usize = 4_096;
    const BUNDLES: u64 = 5_000;
    let mut bob = besiege("remembered", "");
    let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
    for sequence in 0..BUNDLES {
        let head = head("dtn://mallory/x", "dtn://nowhere/x", sequence, 0);
        sender.send(&Bundle::new(head, Bytes::new()).to_bytes());
    }
    sender.finish();
    bob.wait_count("/bundles", BUNDLES);
    bob.restart_after(|store| {
        fs::write(last_segment(store), "").unwrap();
    });
    bob.hears_the_friend(FILE_BYTES);
    let damaged = bob.status()["store"]["damaged"].as_u64().expect("a number");
    // What is not a bundle was there, too: the number of the start.
    assert!((BUNDLES..BUNDLES + 10).contains(&damaged), "{damaged}");
    let told = bob.log().lines().filter(|line| line.starts_with("longwire: the store: ")).count();
    assert_eq!(told, REMEMBERED);
    let list = fs::read_to_string(bob.store().join("damaged/list.jsonl")).unwrap();
    assert_eq!(list.lines().count() as u64, damaged);
    memory_holds(&bob);
}
