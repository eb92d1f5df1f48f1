//! The engine of Longwire with NRL's implementation, in both directions.

mod common;

use common::{GROUP, LINGER, Namespace, PATIENCE, Peer, Place, has, number, port, sha256, text};
use std::fs;

/// Side that has the engine of Longwire; the other one has NRL's library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    Sender,
    Receiver,
}

const BOTH: [Own; 2] = [Own::Sender, Own::Receiver];

impl Own {
    fn sender(self, namespace: Option<&Namespace>, arguments: &[&str]) -> Peer {
        match self {
            Own::Sender => Peer::own(namespace, arguments),
            Own::Receiver => Peer::start(namespace, &[arguments, &PATIENCE].concat()),
        }
    }

    fn receiver(self, namespace: Option<&Namespace>, arguments: &[&str]) -> Peer {
        if self == Own::Receiver {
            Peer::own(namespace, arguments)
        } else {
            Peer::start(namespace, arguments)
        }
    }
}

/// A transfer by unicast of one object, with the watermark of its receiver.
fn unicast(own: Own, kind: &str, bytes: usize, send: &[&str], receive: &[&str]) {
    let (place, port) = (Place::new(), port());
    let (path, hash) = place.file("object", bytes);
    let common = ["--address", "127.0.0.1", "--port", &port];
    let folder = place.0.join("got");
    fs::create_dir(&folder).expect("a folder");
    let folder = folder.to_str().expect("a plain name");
    let mut arguments = vec!["receive", "--node", "2", "--linger", LINGER];
    if own == Own::Sender {
        arguments.extend(["--folder", folder]);
    }
    let mut receiver = own.receiver(None, &[&arguments, &common[..], receive].concat());
    let arguments = ["send", "--node", "1", "--watermark", "2"];
    let sender = own.sender(None, &[&arguments, &common[..], send, &[kind, &path]].concat());
    let line = receiver.completed();
    let what = format!("{own:?} {send:?} {receive:?}: {line}");
    assert!(has(&line, "kind", &text(&kind[2..])) && has(&line, "bytes", &bytes.to_string()), "{what}");
    assert!(has(&line, "sha256", &text(&hash)) && has(&line, "sender", "1"), "{what}");
    assert!(kind != "--stream" || has(&line, "breaks", "0"), "{what}");
    if kind == "--file" {
        assert!(has(&line, "info", &text("object")), "{what}");
        if own == Own::Sender {
            assert_eq!(sha256(&fs::read(format!("{folder}/object")).expect("the received file")), hash);
        }
    }
    let (status, heard) = sender.end();
    let said = heard.iter().any(|line| has(line, "node", "2") && has(line, "status", &text("success")));
    assert!(status == 0 && said, "{what} {heard:#?}");
}

#[test]
fn data_and_files_arrive_and_are_acknowledged() {
    for own in BOTH {
        for kind in ["--data", "--file"] {
            for bytes in [1, 1_400, 300_000] {
                unicast(own, kind, bytes, &[], &[]);
            }
        }
    }
}

/// Each code with each size of block and with each loss.
fn each_code(own: Own) {
    for (row, block) in [["64", "16"], ["200", "55"], ["16", "8"]].into_iter().enumerate() {
        for (column, loss) in ["0", "5", "20"].into_iter().enumerate() {
            let code = ["5", "2", "129"][(row + column) % 3];
            let send = ["--block", block[0], "--parity", block[1], "--fec-id", code];
            unicast(own, "--data", 500_000, &send, &["--rx-loss", loss]);
        }
    }
}

#[test]
fn losses_are_repaired_with_each_code_when_longwire_sends() {
    each_code(Own::Sender);
}

#[test]
fn losses_are_repaired_with_each_code_when_longwire_receives() {
    each_code(Own::Receiver);
}

/// Streams with each loss. The buffer of Longwire, which waits for acknowledgements, is far shorter than the stream; that of NRL, which
/// waits for a time, is longer.
fn each_stream(own: Own) {
    for block in [["64", "16"], ["16", "8"]] {
        for (loss, code) in [("0", "5"), ("5", "129"), ("20", "2")] {
            let buffer = if own == Own::Sender { "400000" } else { "4000000" };
            let code = ["--block", block[0], "--parity", block[1], "--fec-id", code];
            let stream = ["--stream-buffer", buffer, "--message", "100001", "--rate", "20000000"];
            unicast(own, "--stream", 1_000_000, &[&code[..], &stream].concat(), &["--rx-loss", loss]);
        }
    }
}

#[test]
fn streams_arrive_when_longwire_sends() {
    each_stream(Own::Sender);
}

#[test]
fn streams_arrive_when_longwire_receives() {
    each_stream(Own::Receiver);
}

/// Many short messages, each sent at once.
#[test]
fn messages_of_streams_arrive_with_nothing_between_them() {
    let send = ["--message", "100", "--block", "16", "--parity", "8"];
    unicast(Own::Sender, "--stream", 20_000, &send, &["--rx-loss", "10"]);
}

/// Without named receivers, the sender learns the only one from its answers.
#[test]
fn a_receiver_that_is_not_named_acknowledges() {
    let (place, port) = (Place::new(), port());
    let (path, hash) = place.file("object", 100_000);
    let common = ["--address", "127.0.0.1", "--port", &port];
    let receive = ["receive", "--node", "2", "--rx-loss", "5", "--linger", LINGER];
    let mut receiver = Peer::start(None, &[&receive, &common[..]].concat());
    let send = ["send", "--node", "1", "--info", "a description", "--data", &path];
    let sender = Peer::own(None, &[&send, &common[..]].concat());
    let line = receiver.completed();
    assert!(has(&line, "sha256", &text(&hash)) && has(&line, "info", &text("a description")), "{line}");
    let (status, heard) = sender.end();
    assert_eq!(status, 0, "{heard:#?}");
}

#[test]
fn a_silent_receiver_restores_losses_from_parity_that_comes_unasked() {
    for own in BOTH {
        let (place, port) = (Place::new(), port());
        let (path, hash) = place.file("object", 200_000);
        let common = ["--address", "127.0.0.1", "--port", &port];
        let receive = ["receive", "--node", "2", "--silent", "--rx-loss", "5"];
        let mut receiver = own.receiver(None, &[&receive, &common[..]].concat());
        let send = ["--block", "8", "--parity", "16", "--auto-parity", "16", "--data", &path];
        let _sender = own.sender(None, &[&["send", "--node", "1"], &common[..], &send].concat());
        assert!(has(&receiver.completed(), "sha256", &text(&hash)), "{own:?}");
    }
}

#[test]
fn a_receiver_that_begins_after_the_sender_gets_all_of_the_object() {
    for own in BOTH {
        let (place, port) = (Place::new(), port());
        let (path, hash) = place.file("object", 500_000);
        let common = ["--address", "127.0.0.1", "--port", &port];
        let send = ["send", "--node", "1", "--watermark", "2", "--rate", "1000000", "--data", &path];
        let sender = own.sender(None, &[&send, &common[..]].concat());
        let receive = ["receive", "--node", "2", "--linger", LINGER];
        let mut receiver = own.receiver(None, &[&receive, &common[..]].concat());
        assert!(has(&receiver.completed(), "sha256", &text(&hash)), "{own:?}");
        let (status, heard) = sender.end();
        assert_eq!(status, 0, "{own:?} {heard:#?}");
    }
}

/// The sender is killed in the middle of an object, and begins anew with another one.
#[test]
fn a_sender_that_restarts_is_received() {
    for own in BOTH {
        let (place, port, tx_port) = (Place::new(), port(), port());
        let [(old, _), (new, hash)] = [place.file("old", 2_000_000), place.file("new", 300_000)];
        let common = ["--address", "127.0.0.1", "--port", &port];
        let receive = ["receive", "--node", "2", "--rx-loss", "2", "--linger", LINGER];
        let mut receiver = own.receiver(None, &[&receive, &common[..]].concat());
        let send = ["send", "--node", "1", "--watermark", "2", "--tx-port", &tx_port];
        let slow = ["--rate", "1000000", "--data", &old];
        let first = own.sender(None, &[&send, &common[..], &slow].concat());
        let begun = if own == Own::Sender { "sender-new" } else { "object-begun" };
        assert!(receiver.event(begun).is_some(), "{own:?} {:#?}", receiver.heard);
        drop(first);
        let mut again = vec!["--data", &new];
        if own == Own::Receiver {
            again.extend(["--instance", "2"]);
        }
        let second = own.sender(None, &[&send, &common[..], &again].concat());
        assert!(has(&receiver.completed(), "sha256", &text(&hash)), "{own:?}");
        let (status, heard) = second.end();
        assert_eq!(status, 0, "{own:?} {heard:#?}");
    }
}

/// Options of a process in the group; ours is always on the loopback interface.
fn group(is_own: bool) -> &'static [&'static str] {
    if is_own { &GROUP[..4] } else { &GROUP }
}

/// Receivers of both kinds, with losses of their own.
#[test]
fn a_multicast_group_of_both_receives_and_acknowledges() {
    for own in BOTH {
        let Some(namespace) = Namespace::new() else { return };
        let place = Place::new();
        let files = [place.file("first", 300_000), place.file("second", 1_000)];
        let receive = |node, seed, is_own: bool| {
            let arguments =
                ["receive", "--node", node, "--rx-loss", "8", "--objects", "2", "--linger", LINGER];
            let arguments = [&arguments, group(is_own)].concat();
            match is_own {
                true => Peer::own(Some(&namespace), &[&arguments[..], &["--seed", seed]].concat()),
                false => Peer::start(Some(&namespace), &arguments),
            }
        };
        let mut receivers = [receive("2", "2", true), receive("3", "3", true), receive("4", "4", false)];
        let send = ["send", "--node", "1", "--watermark", "2,3,4", "--grtt", "0.05", "--group", "10"];
        let objects = ["--data", &files[0].0, "--data", &files[1].0];
        let sender = own.sender(Some(&namespace), &[&send, group(own == Own::Sender), &objects].concat());
        for receiver in &mut receivers {
            let lines = [receiver.completed(), receiver.completed()];
            let has_all =
                files.iter().all(|(_, hash)| lines.iter().any(|line| has(line, "sha256", &text(hash))));
            assert!(has_all, "{own:?} {lines:#?}");
        }
        let (status, heard) = sender.end();
        assert_eq!(status, 0, "{own:?} {heard:#?}");
    }
}

/// It comes after the first object, while the second one is sent.
#[test]
fn a_late_receiver_gets_old_objects_if_it_asks_for_them() {
    for own in BOTH {
        let Some(namespace) = Namespace::new() else { return };
        let place = Place::new();
        let [(old, old_hash), (new, new_hash)] = [place.file("old", 20_000), place.file("new", 1_000_000)];
        let receive = |node, more: &[&str]| {
            let arguments = ["receive", "--node", node, "--linger", LINGER];
            let arguments = [&arguments, group(own == Own::Receiver), more].concat();
            own.receiver(Some(&namespace), &arguments)
        };
        let mut early = receive("2", &["--objects", "2"]);
        let send = ["send", "--node", "1", "--watermark", "2,3", "--grtt", "0.1", "--rate", "1000000"];
        let objects = ["--data", &old, "--data", &new];
        let sender = own.sender(Some(&namespace), &[&send, group(own == Own::Sender), &objects].concat());
        assert!(has(&early.completed(), "sha256", &text(&old_hash)), "{own:?}");
        let mut late = receive("3", &["--sync", "all", "--objects", "2"]);
        let lines = [late.completed(), late.completed()];
        let has_both =
            [old_hash, new_hash].iter().all(|hash| lines.iter().any(|line| has(line, "sha256", &text(hash))));
        assert!(has_both, "{own:?} {lines:#?}");
        let (status, heard) = sender.end();
        assert_eq!(status, 0, "{own:?} {heard:#?}");
    }
}

/// It comes when most of the stream has left the buffer of the sender, and is told where it can begin.
#[test]
fn a_late_receiver_of_a_stream_begins_where_it_can_be_repaired() {
    for own in BOTH {
        let Some(namespace) = Namespace::new() else { return };
        let place = Place::new();
        let (path, hash) = place.file("stream", 3_000_000);
        let receive = ["receive", "--node", "2", "--linger", LINGER];
        // Longwire's receivers say how far they are.
        let mut early = Peer::own(Some(&namespace), &[&receive, group(true)].concat());
        let send = ["send", "--node", "1", "--grtt", "0.05", "--group", "10", "--rate", "4000000"];
        let stream = ["--stream-buffer", "800000", "--message", "5000", "--stream", &path];
        let arguments = [&send, group(own == Own::Sender), &stream].concat();
        let sender = own.sender(Some(&namespace), &arguments);
        for _ in 0..3 {
            assert!(early.event("progress").is_some(), "{own:?} {:#?}", early.heard);
        }
        let policy = if own == Own::Sender { "stream" } else { "all" };
        let receive = ["receive", "--node", "3", "--linger", LINGER, "--sync", policy];
        let arguments = [&receive, group(own == Own::Receiver)].concat();
        let mut late = own.receiver(Some(&namespace), &arguments);
        assert!(has(&early.completed(), "sha256", &text(&hash)), "{own:?}");
        let line = late.completed();
        // All from the beginning of a message to the end.
        let stream = fs::read(&path).expect("the stream");
        let bytes: usize = number(&line, "bytes");
        let rest = &stream[stream.len() - bytes..];
        assert!(bytes > 0 && bytes < stream.len() && bytes.is_multiple_of(5_000), "{own:?} {line}");
        assert!(has(&line, "sha256", &text(&sha256(rest))), "{own:?} {line}");
        let (_, heard) = sender.end();
        if own == Own::Sender {
            let counters = heard.iter().find(|line| line.contains("\"counters\"")).expect("counters");
            let [released, squelches] =
                ["blocks_released", "squelches_sent"].map(|name| number(counters, name));
            assert!(released > 0 && squelches > 0, "{counters}");
        }
    }
}
