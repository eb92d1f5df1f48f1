//! Stores written by earlier versions: all their bundles are there and are forwarded.

mod common;

use bytes::Bytes;
use common::{App, Place, config};
use longwire_node::{Node, NodeSetup, envelope};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Shortly after the store of format 1 was written, DTN milliseconds.
const THEN_DTN_MS: u64 = 848_633_600_000;

/// Copies a store from the folder of test data.
fn copied(place: &Place, name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/store").join(name);
    let to = place.0.join("store");
    fs::create_dir_all(&to).expect("a folder");
    for file in fs::read_dir(from).expect("the test data are there").flatten() {
        fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
    }
    to
}

fn start(text: &str) -> Node {
    let setup = NodeSetup::new(config(text));
    Node::start(NodeSetup { wall_clock: Arc::new(|| Some(THEN_DTN_MS)), ..setup }).expect("it starts")
}

/// A file as encoded by `longwire send`.
fn wrapped(name: &str, content: &[u8]) -> Bytes {
    [&envelope::head(name)[..], content].concat().into()
}

fn poem() -> String {
    (0..300).map(|line| format!("line {line} of a poem\n")).collect()
}

fn picture() -> Vec<u8> {
    (0..150_000_u64).map(|at| ((at * at) >> 7) as u8).collect()
}

#[test]
fn a_store_of_format_1_is_carried_on() {
    let place = Place::new("format-1");
    let store = copied(&place, "format-1");
    let bob = start("node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\nstorage.kind = 'memory'");
    let mut there = App::new(&bob);
    there.register("files", 0);
    // The second time, the store is as this version has left it.
    for name in ["first", "second"] {
        let alice = start(&format!("node = 'dtn://alice/'\nstorage.path = '{}'", store.display()));
        let mut here = App::new(&alice);
        let status = here.wait_status(|status| status["ready"] == true);
        assert_eq!(status["bundles"], 5, "{name}: {status:#}");
        assert_eq!(status["store"]["damaged"], 0, "{name}");
        alice.stop();
    }
    let link = format!("link = [{{ name = 'bob', address = '{}' }}]", bob.addresses()[0]);
    let alice = start(&format!("node = 'dtn://alice/'\n{link}\nstorage.path = '{}'", store.display()));
    let mut here = App::new(&alice);
    here.register("inbox", 0);
    let (note, data) = here.receive();
    assert_eq!(data, wrapped("note.txt", b"A note to Alice herself.\n"));
    here.take(note);
    let mut expected = vec![
        wrapped("letter.txt", b"A letter to Bob.\n"),
        wrapped("poem.txt", poem().as_bytes()),
        wrapped("picture.bin", &picture()),
        wrapped("last.txt", b"Sent after a restart.\n"),
    ];
    while !expected.is_empty() {
        let (delivery, data) = there.receive();
        let found =
            expected.iter().position(|wanted| *wanted == data).expect("it was sent, and not cancelled");
        expected.swap_remove(found);
        there.take(delivery);
    }
    here.wait_status(|status| status["bundles"] == 0);
}
