//! Encrypted bundles between live nodes: what travels, what is stored, what is delivered, and what is refused.

mod common;

use bytes::Bytes;
use common::{App, Place, start};
use longwire_node::config::security::new_key;
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::view::{Filter, State};
use longwire_node::{Config, Node};
use std::path::Path;

const TEXT: &[u8] = b"The transmitter is below the third oak, and nobody else may know.";

fn linked(place: &Path, name: &str, bob: &Node, security: &str) -> Config {
    let address = bob.addresses()[0];
    common::in_folder(place, name, &format!("[[link]]\nname = 'bob'\naddress = '{address}'\n{security}"))
}

fn key(name: &str, algorithm: &str) -> String {
    format!(
        "[[security.key]]\nname = '{name}'\nfile = '../{name}.key'\nalgorithm = '{algorithm}'\n\
         nodes = ['dtn://alice/', 'dtn://bob/', 'dtn://mallory/']\n"
    )
}

const ENCRYPT: &str = "[[security.policy]]\naction = 'encrypt'\ndestination = 'dtn://bob/*'\n";
const REQUIRE: &str = "[[security.policy]]\naction = 'require-encryption'\n";

/// Bytes of all files below a folder.
fn files_below(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => all.extend(files_below(&path)),
            false => {
                // Most of the file of a store is reserved, and zero.
                let bytes = std::fs::read(&path).unwrap_or_default();
                let used = bytes.chunks(4096).filter(|chunk| **chunk != [0; 4096][..chunk.len()]);
                all.extend(used.flatten());
            }
        }
    }
    all
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

#[test]
fn what_is_delivered_is_plaintext_and_what_is_stored_is_not() {
    for algorithm in ["aes256-gcm", "aes-key-wrap"] {
        let place = Place::new(&format!("encryption-{algorithm}"));
        for name in ["secret", "signing"] {
            new_key(&place.0.join(format!("{name}.key")), true).expect("a key");
        }
        let keys = format!("{}{}", key("secret", algorithm), key("signing", "hmac-sha256"));
        let bob_text =
            format!("listen = ['127.0.0.1:0']\n{keys}{REQUIRE}[[security.policy]]\naction = 'require'\n");
        let bob = start(common::in_folder(&place.0, "bob", &bob_text));
        let alice = start(linked(&place.0, "alice", &bob, &format!("{keys}{ENCRYPT}")));
        let (mut from, mut to) = (App::new(&alice), App::new(&bob));
        let sent = from.send("dtn://bob/letters", &Bytes::from_static(TEXT), MessageOptions::default());
        // Nobody is registered: the bundle is in the store of its destination.
        to.wait_status(|status| {
            status["counters"]["decrypted"] == 1 && status["counters"]["signatures_valid"] == 1
        });
        for name in ["alice", "bob"] {
            let files = files_below(&place.0.join(name));
            assert!(contains(&files, b"//bob/letters"), "{name} has a store");
            assert!(!contains(&files, &TEXT[..20]), "{name} has plaintext");
        }
        to.register("letters", 100_000);
        let (body, signature) = to.wait(|said| match said.head {
            Reply::Delivered { signature, .. } => Some((said.body, signature)),
            _ => None,
        });
        assert_eq!(body, TEXT);
        assert!(signature.is_some_and(|signature| signature.valid), "it was signed before it was encrypted");
        from.wait_sent(sent);
        let status = from.status();
        assert_eq!((&status["counters"]["encrypted"], &status["counters"]["signed"]), (&1.into(), &1.into()));
    }
}

#[test]
fn each_failure_has_its_reason_and_plaintext_is_refused() {
    let place = Place::new("encryption-failures");
    for name in ["secret", "other"] {
        new_key(&place.0.join(format!("{name}.key")), true).expect("a key");
    }
    let secret = key("secret", "aes256-gcm");
    let bob =
        start(common::in_folder(&place.0, "bob", &format!("listen = ['127.0.0.1:0']\n{secret}{REQUIRE}")));
    let mut at_bob = App::new(&bob);
    at_bob.register("letters", 100_000);
    let send = |name: &str, security: &str| {
        let node = start(linked(&place.0, name, &bob, security));
        let mut app = App::new(&node);
        let options = MessageOptions { report_deletion: true, ..MessageOptions::default() };
        app.send("dtn://bob/letters", &Bytes::from_static(TEXT), options);
        app.wait(|said| match said.head {
            // Other reports say that no next hop accepts the bundle.
            Reply::Report { status, reason: reason @ (12 | 15), .. } if status == "deleted" => Some(reason),
            _ => None,
        })
    };
    assert_eq!(send("mallory", ""), 12, "missing security operation");
    let other = key("other", "aes256-gcm");
    assert_eq!(send("alice", &format!("{other}{ENCRYPT}")), 15, "failed security operation");
    let wrapped = key("other", "aes-key-wrap");
    assert_eq!(
        send("alice-2", &format!("{wrapped}{ENCRYPT}").replace("dtn://mallory/", "dtn://alice-2/")),
        15
    );
    let status =
        at_bob.wait_status(|status| status["security"]["failures"].as_array().map(Vec::len) == Some(3));
    let mut found: Vec<_> = status["security"]["failures"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|failure| format!("{} {}", failure["node"], failure["reason"]).replace('"', ""))
        .collect();
    found.sort();
    let expected = [
        "dtn://alice-2/ decryption_no_key",
        "dtn://alice/ decryption_wrong_key_or_altered",
        "dtn://mallory/ not_encrypted",
    ];
    assert_eq!(found, expected);
    let counted = ["deleted_not_encrypted", "decryptions_wrong", "decryptions_without_key"]
        .map(|name| &status["counters"][name]);
    assert_eq!(counted, [1, 1, 1].map(|count| serde_json::json!(count)).each_ref());
}

#[test]
fn configurations_that_make_no_sense_are_refused_with_a_hint() {
    let place = Place::new("encryption-config");
    new_key(&place.0.join("a.key"), true).expect("a key");
    let parse = |text: &str| Config::parse(&format!("node = 'dtn://alice/'\n{text}"), "test", &place.0);
    let key = |algorithm: &str| {
        format!("[[security.key]]\nname = 'a'\nfile = 'a.key'\nalgorithm = '{algorithm}'\n")
    };
    for (text, expected) in [
        (ENCRYPT.to_owned(), "this node has no key that encrypts"),
        (format!("{}{ENCRYPT}", key("hmac-sha256")), "this node has no key that encrypts"),
        (format!("{}{ENCRYPT}key = 'b'", key("aes256-gcm")), "this node has no key `b` that encrypts"),
        (
            format!("{}[[security.policy]]\naction = 'sign'", key("aes256-gcm")),
            "this node has no key that signs",
        ),
        (format!("{}{}", key("aes256-gcm"), key("hmac-sha256").replace("'a'", "'b'")), "have one file"),
        (format!("{REQUIRE}key = 'a'"), "does not apply"),
        (format!("{}{ENCRYPT}on-the-way = true", key("aes256-gcm")), "does not apply"),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.what.contains(expected) && error.hint.is_some(), "{text}: {error:?}");
    }
    let error = parse(&key("aes128-gcm")).expect("the text is right").security().expect_err("32 bytes");
    assert!(error.hint.is_some_and(|hint| hint.contains("16 bytes")));
    let explained =
        parse(&format!("{}{ENCRYPT}{REQUIRE}", key("aes256-gcm"))).expect("it makes sense").explain();
    for words in ["Shared key `a`: encryption by", "to dtn://bob/* are encrypted;", "are refused unless"] {
        assert!(explained.contains(words), "{explained}");
    }
}

/// Rules whose destinations can be reached over amateur radio alone are named by the check of the configuration, which
/// `longwire doctor` repeats.
#[test]
fn a_rule_that_leads_to_amateur_radio_alone_is_warned_of() {
    let place = Place::new("encryption-amateur");
    new_key(&place.0.join("a.key"), true).expect("a key");
    let warned = |more: &str| {
        let key = "[[security.key]]\nname = 'a'\nfile = 'a.key'\nalgorithm = 'aes256-gcm'\n";
        let text = format!("node = 'dtn://alice/'\n{more}\n{key}{ENCRYPT}");
        let config = Config::parse(&text, "test", &place.0).expect("it makes sense");
        let explained = config.explain();
        let warning =
            explained.lines().find(|line| line.starts_with("WARNING: encrypted bundles to dtn://bob/*"));
        warning.map(|line| line.contains("the link `air`"))
    };
    let air = "[[link]]\nname = 'air'\naddress = '192.0.2.7:4556'\namateur = true\n";
    let wire = "[[link]]\nname = 'wire'\naddress = '192.0.2.8:4556'\n";
    let listen = "listen = ['127.0.0.1:0']\n";
    assert_eq!(warned(air), Some(true));
    assert_eq!(warned(wire), None);
    assert_eq!(warned(&format!("{air}{wire}")), None, "nobody knows where the links lead");
    assert_eq!(warned(&format!("{listen}{air}")), None, "bob may call");
    assert_eq!(warned(&format!("{listen}{air}peer = 'dtn://bob/'\n{wire}")), Some(true));
    let route = |via: &str| format!("[[route]]\nto = 'dtn://bob/*'\nvia = '{via}'\n");
    assert_eq!(warned(&format!("{listen}{air}{wire}{}", route("air"))), Some(true));
    assert_eq!(warned(&format!("{listen}{air}{wire}{}{}", route("air"), route("wire"))), None);
    assert_eq!(warned(&format!("{air}{wire}[[route]]\nto = 'dtn://carol/*'\nvia = 'air'\n")), None);
}

/// The key is removed while a bundle waits for its application, and the node restarts: the bundle waits for the key.
#[test]
fn a_restart_without_the_key_keeps_the_bundle_until_the_key_is_back() {
    let place = Place::new("encryption-restart");
    new_key(&place.0.join("secret.key"), true).expect("a key");
    let secret = key("secret", "aes256-gcm");
    let listen = "listen = ['127.0.0.1:0']\n";
    let bob = start(common::in_folder(&place.0, "bob", &format!("{listen}{secret}{REQUIRE}")));
    let alice = start(linked(&place.0, "alice", &bob, &format!("{secret}{ENCRYPT}")));
    let mut from = App::new(&alice);
    let sent = from.send("dtn://bob/letters", &Bytes::from_static(TEXT), MessageOptions::default());
    from.wait_sent(sent);
    App::new(&bob).wait_status(|status| status["counters"]["decrypted"] == 1);
    bob.stop();
    let bob = start(common::in_folder(&place.0, "bob", &format!("{listen}{REQUIRE}")));
    let mut waiting = App::new(&bob);
    waiting.wait_status(|status| status["counters"]["checks_postponed"] == 1);
    waiting.ask(Request::Bundles { limit: 10, after: None, filter: Filter::default() });
    let why = waiting.wait(|said| match said.head {
        Reply::Bundles { page } => Some((page.bundles[0].state, page.bundles[0].why.clone())),
        _ => None,
    });
    let words =
        "accepted with earlier keys; waits for its key, because no key is known that decrypts the bundle";
    assert_eq!(why, (State::WithoutKey, words.to_owned()));
    drop(waiting);
    bob.stop();
    let bob = start(common::in_folder(&place.0, "bob", &format!("{listen}{secret}{REQUIRE}")));
    let mut to = App::new(&bob);
    to.register("letters", 100_000);
    let body = to.wait(|said| matches!(said.head, Reply::Delivered { .. }).then_some(said.body));
    assert_eq!(body, TEXT);
}
