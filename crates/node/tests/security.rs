//! Signatures of bundles between live nodes: shared keys, private keys and their first use, strangers, restarts, rotation.

mod common;

use bytes::Bytes;
use common::{App, Place, reserved, start};
use longwire_node::config::security::new_key;
use longwire_node::message::{Message, MessageOptions, Reply, Request};
use longwire_node::view::{Keys, Signature};
use longwire_node::{Config, Node, NodeSetup};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn letter(seed: u64, length: usize) -> Bytes {
    common::payload(length, seed)
}

fn bob(place: &Path, security: &str) -> Node {
    start(common::in_folder(place, "bob", &format!("listen = ['127.0.0.1:0']\n{security}")))
}

fn linked(place: &Path, name: &str, bob: &Node, security: &str) -> Config {
    let address = bob.addresses()[0];
    common::in_folder(place, name, &format!("[[link]]\nname = 'bob'\naddress = '{address}'\n{security}"))
}

/// Next delivery: its source, payload and signature.
fn delivery(app: &mut App) -> (String, Bytes, Option<Signature>) {
    let (number, source, signature, body) = app.wait(|said| match said.head {
        Reply::Delivered { delivery, source, signature, .. } => {
            Some((delivery, source, signature.map(|signature| *signature), said.body))
        }
        _ => None,
    });
    app.take(number);
    (source, body, signature)
}

fn keys(app: &mut App) -> Keys {
    app.ask(Request::Keys);
    app.wait(|said| if let Reply::Keys { keys } = said.head { Some(keys) } else { None })
}

fn counter(status: &serde_json::Value, name: &str) -> u64 {
    status["counters"][name].as_u64().expect("a counter")
}

const SHARED: &str =
    "[[security.key]]\nname = 'field day'\nfile = '../shared.key'\nnodes = ['dtn://alice/', 'dtn://bob/']\n";
const REQUIRED: &str = "[[security.policy]]\naction = 'require'\n";
const PRIVATE: &str = "[security]\nprivate-key = 'node.key'\n";

#[test]
fn nodes_with_a_shared_key_know_whose_bundles_they_get() {
    let place = Place::new("security-shared");
    new_key(&place.0.join("shared.key"), true).expect("a key");
    let bob = bob(&place.0, &format!("{SHARED}{REQUIRED}"));
    let alice = start(linked(&place.0, "alice", &bob, SHARED));
    let mallory = start(linked(&place.0, "mallory", &bob, ""));
    let [mut from_alice, mut from_mallory, mut at_bob] = [&alice, &mallory, &bob].map(App::new);
    at_bob.register("letters", 100_000);
    let long = letter(1, 70_000);
    let options = || MessageOptions { report_deletion: true, ..MessageOptions::default() };
    from_mallory.send("dtn://bob/letters", &letter(2, 500), options());
    from_mallory.wait(|said| match said.head {
        // Missing security operation (RFC 9172 11.4).
        Reply::Report { status, reason: 12, .. } if status == "deleted" => Some(()),
        _ => None,
    });
    from_alice.send("dtn://bob/letters", &long, options());
    let (source, body, signature) = delivery(&mut at_bob);
    assert_eq!((source.as_str(), body), ("dtn://alice/", long));
    let signature = signature.expect("it is signed");
    assert!(signature.valid);
    assert_eq!(signature.signer.as_deref(), Some("dtn://alice/"));
    assert_eq!(signature.key.as_deref(), Some("field day"));
    let status = at_bob.status();
    let counted = ["signatures_valid", "signatures_missing", "deleted_signature"];
    assert_eq!(counted.map(|name| counter(&status, name)), [1, 1, 1]);
    let failure = &status["security"]["failures"][0];
    assert_eq!((&failure["node"], &failure["reason"]), (&"dtn://mallory/".into(), &"missing".into()));
    assert_eq!((&failure["count"], &failure["deleted"]), (&1.into(), &1.into()));
}

/// Bob notes the first key of Alice. A stranger who claims her name with another key gets nothing to him, after a restart, too,
/// until the operator changes the key.
#[test]
fn the_first_key_of_a_node_is_noted_and_defended() {
    let place = Place::new("security-first");
    let file = |name: &str| {
        std::fs::create_dir_all(place.0.join(name)).expect("a folder");
        new_key(&place.0.join(name).join("node.key"), false)
            .expect("a key")
            .expect("a fingerprint")
            .to_string()
    };
    let (of_alice, of_stranger) = (file("alice"), file("stranger"));
    let at = reserved();
    let listening = || common::in_folder(&place.0, "bob", &format!("listen = ['{at}']\n{REQUIRED}"));
    let mut bob = start(listening());
    let send = |folder: &str, bob: &Node, number: u64| {
        let address = bob.addresses()[0];
        let text = format!(
            "[[link]]\nname = 'bob'\naddress = '{address}'\n[security]\nprivate-key = '../{folder}/node.key'\n"
        );
        // The stranger claims Alice's name.
        let config = Config {
            node: "dtn://alice/".into(),
            ..common::in_folder(&place.0, &format!("{folder}-{number}"), &text)
        };
        let node = start(config);
        let mut app = App::new(&node);
        let sent = app.send("dtn://bob/letters", &letter(number, 3000), MessageOptions::default());
        app.wait_sent(sent);
    };
    let mut app = App::new(&bob);
    app.register("letters", 100_000);
    send("alice", &bob, 1);
    let (_, body, signature) = delivery(&mut app);
    assert_eq!(body, letter(1, 3000));
    assert_eq!(signature.and_then(|signature| signature.key), Some(of_alice.clone()));
    for restart in [false, true] {
        if restart {
            drop(app);
            drop(bob);
            bob = start(listening());
            app = App::new(&bob);
            app.register("letters", 100_000);
        }
        let known = keys(&mut app);
        assert_eq!((known.known.len(), known.known[0].fingerprint.as_str()), (1, of_alice.as_str()));
        send("stranger", &bob, 10 + u64::from(restart));
        let status = app.wait_status(|status| counter(status, "signatures_of_changed_keys") == 1);
        assert_eq!(status["security"]["contested"], serde_json::json!(["dtn://alice/"]));
        assert_eq!(counter(&status, "deleted_signature"), 1);
        assert!(keys(&mut app).known[0].contested);
        send("alice", &bob, 20 + u64::from(restart));
        assert_eq!(delivery(&mut app).1, letter(20 + u64::from(restart), 3000), "hers alone");
    }
    // Alice has a new key, and the operators have compared fingerprints.
    app.ask(Request::TrustKey {
        node: "dtn://alice/".into(),
        fingerprint: of_stranger.replace('-', "").to_uppercase(),
    });
    app.wait(|said| matches!(said.head, Reply::Done).then_some(()));
    send("stranger", &bob, 30);
    assert_eq!(delivery(&mut app).1, letter(30, 3000));
    let known = keys(&mut app).known;
    assert_eq!((known[0].fingerprint.as_str(), known[0].contested), (of_stranger.as_str(), false));
    app.ask(Request::ForgetKey { node: "dtn://alice/".into() });
    app.wait(|said| matches!(said.head, Reply::Done).then_some(()));
    assert!(keys(&mut app).known.is_empty());
    let text = std::fs::read_to_string(place.0.join("bob/store.known-keys")).expect("the file");
    assert_eq!(text, "");
    send("alice", &bob, 31);
    assert_eq!(delivery(&mut app).1, letter(31, 3000));
}

fn error(app: &mut App, request: Request) -> String {
    app.ask(request);
    match app.hear().head {
        Reply::Error { what, .. } => what,
        other => panic!("an error, not {other:?}"),
    }
}

#[test]
fn wrong_orders_about_keys_say_what_is_wrong() {
    let place = Place::new("security-orders");
    let bob = bob(&place.0, "");
    let mut app = App::new(&bob);
    let trust = |node: &str, fingerprint: &str| Request::TrustKey {
        node: node.into(),
        fingerprint: fingerprint.into(),
    };
    assert!(error(&mut app, trust("alice", &"a".repeat(32))).contains("not a node ID"));
    assert!(error(&mut app, trust("dtn://alice/", "1234")).contains("not a fingerprint"));
    assert!(error(&mut app, Request::ForgetKey { node: "dtn://alice/".into() }).contains("no such key"));
}

/// Orders about keys to a node that verifies nothing for now lose none of those that it knew.
#[test]
fn known_keys_outlast_a_start_without_security() {
    let place = Place::new("security-off");
    let path = place.0.join("bob/store.known-keys");
    std::fs::create_dir_all(place.0.join("bob")).expect("a folder");
    let line =
        |node: &str, digit: &str| format!("dtn://{node}/ {}\n", [digit.repeat(4).as_str(); 8].join("-"));
    let known = [line("alice", "1"), line("carol", "2")].concat();
    let trust = || Request::TrustKey { node: "dtn://dave/".into(), fingerprint: "3".repeat(32) };
    std::fs::write(&path, &known).expect("it is written");
    {
        let bob = bob(&place.0, "");
        let mut app = App::new(&bob);
        app.ask(trust());
        app.wait(|said| matches!(said.head, Reply::Done).then_some(()));
        assert_eq!(keys(&mut app).known.len(), 3);
    }
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), format!("{known}{}", line("dave", "3")));
    // A file that cannot be read is no reason not to start without security, and none to replace it.
    std::fs::write(&path, "something else").expect("it is written");
    let bob = bob(&place.0, "");
    let mut app = App::new(&bob);
    assert!(error(&mut app, trust()).contains("nothing was changed"));
    assert!(
        error(&mut app, Request::ForgetKey { node: "dtn://dave/".into() }).contains("nothing was changed")
    );
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), "something else");
}

/// The node ID changes at a restart only; until then bundles are signed as before.
#[test]
fn a_reload_with_another_node_id_keeps_the_signatures() {
    let place = Place::new("security-renamed");
    let path = place.0.join("bob/node.toml");
    std::fs::create_dir_all(place.0.join("bob")).expect("a folder");
    new_key(&place.0.join("bob/node.key"), false).expect("a key");
    let written = |name: &str| {
        std::fs::write(&path, format!("node = 'dtn://{name}/'\n{PRIVATE}{REQUIRED}")).expect("it is written");
    };
    written("bob");
    let mut setup = NodeSetup::new(Config::load(&path).expect("it makes sense"));
    setup.path = Some(path.clone());
    setup.config.control = None;
    let bob = Node::start(setup).expect("it starts");
    let mut app = App::new(&bob);
    app.register("letters", 1000);
    written("robert");
    app.ask(Request::Reload);
    app.wait(|said| matches!(said.head, Reply::Done).then_some(()));
    app.send("dtn://bob/letters", &letter(1, 10), MessageOptions::default());
    let (source, _, signature) = delivery(&mut app);
    assert_eq!((source.as_str(), signature.map(|signature| signature.valid)), ("dtn://bob/", Some(true)));
}

/// A node that is killed between accepting a bundle and sending it sends it signed; what it had not accepted is gone.
#[test]
fn a_killed_node_sends_what_it_accepted_with_its_signature() {
    let place = Place::new("security-killed");
    std::fs::create_dir_all(place.0.join("alice")).expect("a folder");
    new_key(&place.0.join("alice/node.key"), false).expect("a key");
    let at = reserved();
    let alice = || {
        common::in_folder(
            &place.0,
            "alice",
            &format!("[[link]]\nname = 'bob'\naddress = '{at}'\n[[route]]\nto = '*'\nvia = 'bob'\n{PRIVATE}"),
        )
    };
    {
        let node = start(alice());
        let mut app = App::new(&node);
        let whole = app.send("dtn://bob/letters", &letter(1, 300_000), MessageOptions::default());
        app.wait_accepted(whole);
        let half = Request::Send {
            send: 99,
            to: "dtn://bob/letters".into(),
            length: 50_000,
            options: MessageOptions::default(),
        };
        app.ask(Message { head: half, body: letter(2, 30_000) });
        app.status();
        // Dropping it ends it as a crash would.
    }
    let node = start(alice());
    let bob = start(common::in_folder(&place.0, "bob", &format!("listen = ['{at}']\n{REQUIRED}")));
    let mut app = App::new(&bob);
    app.register("letters", 1_000_000);
    let (number, body) = app.receive();
    assert_eq!(body, letter(1, 300_000));
    app.take(number);
    let status = app.status();
    assert_eq!((counter(&status, "signatures_valid"), counter(&status, "received")), (1, 1));
    let mut at_alice = App::new(&node);
    at_alice.wait_status(|status| status["bundles"] == 0);
}

/// The keys of both change while they run, with bundles on the way signed by the old one.
#[test]
fn keys_change_without_a_restart() {
    let place = Place::new("security-rotation");
    for name in ["shared.key", "new.key"] {
        new_key(&place.0.join(name), true).expect("a key");
    }
    let new = "[[security.key]]\nname = 'new'\nfile = '../new.key'\nnodes = ['dtn://alice/', 'dtn://bob/']\nvalid-from = 2020-01-01T00:00:00Z\n";
    let path = place.0.join("bob/node.toml");
    std::fs::create_dir_all(place.0.join("bob")).expect("a folder");
    let written = |keys: &str| {
        let text = format!("node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n{keys}{REQUIRED}");
        std::fs::write(&path, text).expect("it is written");
    };
    written(SHARED);
    let mut setup = NodeSetup::new(Config::load(&path).expect("it makes sense"));
    setup.path = Some(path.clone());
    setup.config.control = None;
    let bob = Node::start(setup).expect("it starts");
    let mut app = App::new(&bob);
    app.register("letters", 100_000);
    let send = |app: &mut App, number: u64, keys: &str, expected: &str| {
        let alice = start(linked(&place.0, &format!("alice-{number}"), &bob, keys).with_name("dtn://alice/"));
        let mut from_alice = App::new(&alice);
        from_alice.send("dtn://bob/letters", &letter(number, 900), MessageOptions::default());
        let (_, body, signature) = delivery(app);
        assert_eq!(body, letter(number, 900));
        assert_eq!(signature.and_then(|signature| signature.key).as_deref(), Some(expected));
    };
    send(&mut app, 1, SHARED, "field day");
    written(&format!("{SHARED}{new}"));
    app.ask(Request::Reload);
    app.wait(|said| matches!(said.head, Reply::Done).then_some(()));
    send(&mut app, 2, SHARED, "field day");
    // Of several valid keys, the one that began last signs.
    send(&mut app, 3, &format!("{SHARED}{new}"), "new");
    written(new);
    app.ask(Request::Reload);
    app.wait(|said| matches!(said.head, Reply::Done).then_some(()));
    let alice = start(linked(&place.0, "alice-4", &bob, SHARED).with_name("dtn://alice/"));
    let mut from_alice = App::new(&alice);
    from_alice.send("dtn://bob/letters", &letter(4, 900), MessageOptions::default());
    app.wait_status(|status| counter(status, "signatures_wrong") == 1);
}

trait WithName {
    fn with_name(self, node: &str) -> Self;
}

impl WithName for Config {
    fn with_name(mut self, node: &str) -> Config {
        self.node = node.to_owned();
        self
    }
}

#[test]
fn a_node_without_a_valid_key_says_so_to_the_sender() {
    let place = Place::new("security-expired");
    new_key(&place.0.join("shared.key"), true).expect("a key");
    let expired = format!("{SHARED}valid-until = 2020-01-01T00:00:00Z\n");
    let bob = bob(&place.0, &format!("{expired}{REQUIRED}"));
    let mut app = App::new(&bob);
    app.send("dtn://bob/letters", &letter(1, 10), MessageOptions::default());
    let code = app.wait(|said| if let Reply::Failed { code, .. } = said.head { Some(code) } else { None });
    assert_eq!(code, "not_signed");
}

/// The known keys cannot be written: bundles are delivered, and the status says what is wrong.
#[test]
fn a_file_of_known_keys_that_cannot_be_written_shows() {
    let place = Place::new("security-unwritable");
    std::fs::create_dir_all(place.0.join("alice")).expect("a folder");
    new_key(&place.0.join("alice/node.key"), false).expect("a key");
    std::fs::create_dir_all(place.0.join("bob/store.known-keys.new")).expect("a folder in its place");
    let bob = bob(&place.0, REQUIRED);
    let alice = start(linked(&place.0, "alice", &bob, PRIVATE));
    let [mut from_alice, mut app] = [&alice, &bob].map(App::new);
    app.register("letters", 1000);
    from_alice.send("dtn://bob/letters", &letter(1, 10), MessageOptions::default());
    assert!(delivery(&mut app).2.is_some_and(|signature| signature.valid));
    // The disk is written beside the rest.
    app.wait_status(|status| {
        status["security"]["trouble"].as_str().is_some_and(|trouble| trouble.contains("cannot write"))
    });
}

#[test]
fn configurations_that_make_no_sense_are_refused_with_a_hint() {
    let place = Place::new("security-config");
    new_key(&place.0.join("shared.key"), true).expect("a key");
    new_key(&place.0.join("node.key"), false).expect("a key");
    assert!(new_key(&place.0.join("node.key"), false).is_err(), "keys are not replaced");
    let open = place.0.join("open.key");
    std::fs::copy(place.0.join("shared.key"), &open).expect("a copy");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).expect("rights");
    let parse = |text: &str| Config::parse(&format!("node = 'dtn://alice/'\n{text}"), "test", &place.0);
    let key = |rest: &str| format!("[[security.key]]\nname = 'a'\nfile = 'shared.key'\n{rest}");
    for (text, expected) in [
        ("[[security.key]]\nfile = 'shared.key'".to_owned(), "no usable `name`"),
        ("[[security.key]]\nname = 'a'".to_owned(), "has no `file`"),
        (key(&key("")), "duplicate name"),
        (key("nodes = ['alice']"), "not a node ID"),
        (key("valid-from = 2026-01-01"), "not a time"),
        (
            key("valid-from = 2026-01-02T00:00:00Z\nvalid-until = 2026-01-01T00:00:00Z"),
            "ends before it begins",
        ),
        (key("nodes = ['dtn://bob/']\n[[security.policy]]\naction = 'sign'\nkey = 'a'"), "has no key `a`"),
        ("[[security.policy]]\naction = 'sign'".to_owned(), "this node has no key"),
        ("[[security.policy]]\nsource = '*'".to_owned(), "has no `action`"),
        ("[[security.policy]]\naction = 'ignore'\non-the-way = true".to_owned(), "does not apply"),
        (
            (0..9).map(|at| format!("[[security.key]]\nname = '{at}'\nfile = 'shared.key'\n")).collect(),
            "more than 8 keys",
        ),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.what.contains(expected) && error.hint.is_some(), "{text}: {error:?}");
    }
    for (text, expected) in [
        (key("").replace("shared.key", "open.key"), "other users can access"),
        (key("").replace("shared.key", "none.key"), "cannot read the key"),
        (key("").replace("shared.key", "node.key"), "no shared key"),
        ("[security]\nprivate-key = 'shared.key'".to_owned(), "no private key"),
    ] {
        let error = parse(&text).expect("the text is right").security().expect_err(&text);
        assert!(error.what.contains(expected) && error.hint.is_some(), "{text}: {error:?}");
    }
    let explained = parse(&format!("[security]\nprivate-key = 'node.key'\n{}{REQUIRED}", key("")))
        .expect("it makes sense")
        .explain();
    for words in [
        "Signs its bundles with its private key",
        "Shared key `a`",
        "are deleted at this node unless",
        "known-keys",
    ] {
        assert!(explained.contains(words), "{explained}");
    }
    let config =
        parse("storage.path = 'here/store'\n[security]\nprivate-key = 'node.key'").expect("it makes sense");
    std::fs::create_dir_all(place.0.join("here")).expect("a folder");
    std::fs::write(place.0.join("here/store.known-keys"), "dtn://bob/ 1234\n").expect("it is written");
    let error =
        Node::start(NodeSetup::new(Config { control: None, ..config })).expect_err("a short fingerprint");
    assert!(error.what.contains("line 1 is not valid") && error.hint.is_some(), "{error:?}");
}
