//! Peers with each other: what the options do, over loopback, and with a multicast group in a network namespace.

mod common;

use common::{LINGER, Namespace, PATIENCE, Peer, Place, has, port, sha256, text};
use std::fs;
use std::process::Command;

/// A transfer by unicast of one object, with the watermark of its receiver.
fn unicast(kind: &str, bytes: usize, send: &[&str], receive: &[&str]) -> (Vec<String>, String) {
    let (place, port) = (Place::new(), port());
    let (path, hash) = place.file("object", bytes);
    let common = ["--address", "127.0.0.1", "--port", &port];
    let folder = place.0.join("got");
    fs::create_dir(&folder).expect("a folder");
    let folder = folder.to_str().expect("a plain name");
    let receiver = ["receive", "--node", "2", "--folder", folder, "--linger", LINGER];
    let mut receiver = Peer::start(None, &[&receiver, &common[..], receive].concat());
    let sender = ["send", "--node", "1", "--watermark", "2", kind, &path];
    let sender = Peer::start(None, &[&sender, &common[..], &PATIENCE, send].concat());
    let line = receiver.completed();
    assert!(has(&line, "kind", &text(&kind[2..])) && has(&line, "bytes", &bytes.to_string()), "{line}");
    assert!(has(&line, "sha256", &text(&hash)) && has(&line, "sender", "1"), "{line}");
    if kind == "--file" {
        assert!(has(&line, "info", &text("object")), "{line}");
        assert_eq!(sha256(&fs::read(format!("{folder}/object")).expect("the received file")), hash);
    }
    let (status, heard) = sender.end();
    assert_eq!(status, 0, "{heard:#?}");
    assert!(
        heard.iter().any(|line| has(line, "node", "2") && has(line, "status", &text("success"))),
        "{heard:#?}"
    );
    (heard, line)
}

#[test]
fn data_files_and_streams_arrive_and_are_acknowledged() {
    for kind in ["--data", "--file", "--stream"] {
        unicast(kind, 300_000, &[], &[]);
    }
}

#[test]
fn losses_at_both_ends_are_repaired_with_each_code() {
    for code in [["--fec-id", "5"], ["--fec-id", "2"], ["--fec-id", "129"]] {
        let loss = ["--tx-loss", "5", "--rx-loss", "10"];
        unicast("--data", 1_000_000, &[&code[..], &["--tx-loss", "5"]].concat(), &loss[..]);
    }
    unicast("--stream", 1_000_000, &["--tx-loss", "10"], &["--rx-loss", "2"]);
}

#[test]
fn each_mode_of_congestion_control_delivers() {
    for mode in ["on", "fixed", "tolerant", "ecn"] {
        let bounds = ["--rate-bounds", "2000000:20000000", "--grtt", "0.05"];
        let (heard, _) = unicast("--data", 200_000, &[&["--cc", mode][..], &bounds].concat(), &[]);
        assert!(heard.iter().any(|line| line.contains("\"event\":\"grtt\"")), "{mode}: {heard:#?}");
    }
}

#[test]
fn a_silent_receiver_restores_losses_from_parity_that_comes_unasked() {
    let (place, port) = (Place::new(), port());
    let (path, hash) = place.file("object", 200_000);
    let common = ["--address", "127.0.0.1", "--port", &port];
    let receiver = ["receive", "--node", "2", "--silent", "--rx-loss", "5"];
    let mut receiver = Peer::start(None, &[&receiver, &common[..]].concat());
    let sender =
        ["send", "--node", "1", "--block", "8", "--parity", "16", "--auto-parity", "16", "--data", &path];
    let sender = Peer::start(None, &[&sender, &common[..]].concat());
    assert!(has(&receiver.completed(), "sha256", &text(&hash)));
    assert_eq!((sender.end().0, receiver.end().0), (0, 0));
}

#[test]
fn a_node_that_is_not_there_does_not_acknowledge() {
    let (place, port) = (Place::new(), port());
    let (path, _) = place.file("object", 10_000);
    let common = ["--address", "127.0.0.1", "--port", &port];
    let mut receiver =
        Peer::start(None, &[&["receive", "--node", "2", "--linger", LINGER], &common[..]].concat());
    let sender = ["send", "--node", "1", "--watermark", "2,3", "--grtt", "0.1", "--probing", "off"];
    let object = ["--robust", "60", "--data", &path];
    let sender = Peer::start(None, &[&sender[..], &object, &common].concat());
    receiver.completed();
    let (status, heard) = sender.end();
    let said =
        |node, status| heard.iter().any(|line| has(line, "node", node) && has(line, "status", &text(status)));
    assert!(status == 1 && said("2", "success") && said("3", "failure"), "{heard:#?}");
    assert!(heard.iter().any(|line| has(line, "outcome", &text("unacknowledged"))), "{heard:#?}");
}

#[test]
fn a_peer_ends_by_itself_when_nothing_comes() {
    let port = port();
    let arguments = ["receive", "--address", "127.0.0.1", "--port", &port, "--node", "2", "--timeout", "0.2"];
    let output = Command::new(env!("CARGO_BIN_EXE_norm-peer")).args(arguments).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"outcome\":\"timeout\""));
}

#[test]
fn a_wrong_command_line_is_refused() {
    let valid = ["send", "--address", "::1", "--port", "9", "--node", "1"];
    for wrong in [&["--data"][..], &[], &["--data", "x", "--silent"], &["--data", "x", "--rx-loss", "101"]] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_norm-peer")).args(valid).args(wrong).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "{wrong:?}");
    }
}

/// Two receivers with losses of their own; their feedback goes to the group, or to the sender.
#[test]
fn a_multicast_group_receives_and_acknowledges() {
    for feedback in [&[][..], &["--unicast-nacks"]] {
        let Some(namespace) = Namespace::new() else { return };
        let place = Place::new();
        let files = [place.file("first", 300_000), place.file("second", 1_000)];
        let receiver = |node| {
            let arguments =
                ["receive", "--node", node, "--rx-loss", "8", "--objects", "2", "--linger", LINGER];
            Peer::start(Some(&namespace), &[&arguments, &common::GROUP[..], feedback].concat())
        };
        let mut receivers = ["2", "3"].map(receiver);
        let sender = ["send", "--node", "1", "--watermark", "2,3", "--grtt", "0.05", "--group", "10"];
        let objects = ["--data", &files[0].0, "--data", &files[1].0];
        let arguments = [&sender, &common::GROUP[..], &PATIENCE, &objects].concat();
        let sender = Peer::start(Some(&namespace), &arguments);
        for receiver in &mut receivers {
            let lines = [receiver.completed(), receiver.completed()];
            let all_there =
                files.iter().all(|(_, hash)| lines.iter().any(|line| has(line, "sha256", &text(hash))));
            assert!(all_there, "{lines:#?}");
        }
        let (status, heard) = sender.end();
        assert_eq!(status, 0, "{heard:#?}");
    }
}

/// Both come after the first object, while the second one is sent.
#[test]
fn a_late_receiver_gets_old_objects_if_it_asks_for_them() {
    let Some(namespace) = Namespace::new() else { return };
    let place = Place::new();
    let [(old, old_hash), (new, new_hash)] = [place.file("old", 20_000), place.file("new", 1_000_000)];
    let receive = |node, more: &[&str]| {
        let arguments = ["receive", "--node", node, "--linger", LINGER];
        Peer::start(Some(&namespace), &[&arguments, &common::GROUP[..], more].concat())
    };
    let mut early = receive("2", &["--objects", "2"]);
    let sender = ["send", "--node", "1", "--watermark", "2,3,4", "--grtt", "0.1", "--probing", "off"];
    let objects = ["--data", &old, "--data", &new, "--rate", "1000000"];
    let sender = Peer::start(Some(&namespace), &[&sender, &common::GROUP[..], &objects].concat());
    assert!(has(&early.completed(), "sha256", &text(&old_hash)));
    let mut late = [receive("3", &["--sync", "all", "--objects", "2"]), receive("4", &["--sync", "current"])];
    let mut all = [late[0].completed(), late[0].completed()];
    // The new object may be complete before the old one.
    all.sort_by_key(|line| has(line, "sha256", &text(&new_hash)));
    assert!(has(&all[0], "sha256", &text(&old_hash)) && has(&all[1], "sha256", &text(&new_hash)), "{all:#?}");
    assert!(has(&late[1].completed(), "sha256", &text(&new_hash)));
    assert!(has(&early.completed(), "sha256", &text(&new_hash)));
    let (status, heard) = sender.end();
    assert_eq!(status, 0, "{heard:#?}");
}
