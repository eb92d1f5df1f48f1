//! Bundles over LTP, on real sockets.

mod common;

use common::{App, DEADLINE, Place, config, payload, start, web};
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::view::Filter;
use longwire_node::{Config, Node, NodeSetup};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// Settings with which a lost segment costs little time, and a node that has to wait for the processor fails no block.
const NEAR: &str = "[ltp]\none-way-delay = '10 ms'\nmargin = '1 s'\nreport-delay = '1 ms'\n";

fn bob() -> Node {
    start(config(&format!(
        "node = 'ipn:7.0'\nlisten-udp = ['127.0.0.1:0', 'ltp 127.0.0.1:0']\nstorage.kind = 'memory'\n{NEAR}"
    )))
}

fn alice(to: SocketAddr) -> Node {
    start(config(&format!(
        "node = 'dtn://alice/'\nhttp.listen = '127.0.0.1:0'\nstorage.kind = 'memory'\n{NEAR}[[link]]\nname = 'bob'\n\
         kind = 'ltp'\naddress = '{to}'\npeer = 'ipn:7.0'\nrate-bps = 100_000_000\n"
    )))
}

#[test]
fn bundles_of_any_length_arrive_and_are_acknowledged() {
    let bob = bob();
    let alice = alice(bob.udp_addresses()[1]);
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("ipn:7.5", 2_000_000);
    for (seed, length) in [1, 1399, 1_500_000].into_iter().enumerate() {
        let file = payload(length, seed as u64);
        let sent = here.send("ipn:7.5", &file, MessageOptions::default());
        let (delivery, got) = there.receive();
        assert_eq!(got, file);
        there.take(delivery);
        here.wait_sent(sent);
    }
    let status = here.wait_status(|status| status["links"][0]["counters"]["bundles_sent"] == 3);
    let link = &status["links"][0];
    assert_eq!((&link["carrier"], &link["unacknowledged"]), (&"ltp".into(), &false.into()), "{status:#}");
    assert_eq!(link["counters"]["blocks_completed"], 3, "{status:#}");
    let metrics = web::get(alice.http_address().expect("it listens"), "/metrics").text();
    assert!(metrics.contains("longwire_link_blocks_completed_total{link=\"bob\"} 3"), "{metrics}");
    let status = there.status();
    let names: Vec<_> =
        status["links"].as_array().expect("a list").iter().map(|link| &link["name"]).collect();
    let [first, second] = [0, 1].map(|at| bob.udp_addresses()[at]);
    assert_eq!(names, [&format!("udp {first}"), &format!("ltp {second}")]);
}

/// Long before a block is acknowledged, an operator sees how much of a bundle was transmitted: no more than the rate allows, and all of
/// those before it. The peer is silent.
#[test]
fn how_much_of_a_bundle_was_transmitted_is_told_while_it_goes() {
    const LENGTH: u64 = 50_000;
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let to = silent.local_addr().expect("it is bound");
    // A few segments a minute, after those with which it begins.
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\nstorage.kind = 'memory'\n{NEAR}[[link]]\nname = 'bob'\nkind = 'ltp'\naddress = '{to}'\n\
         peer = 'ipn:7.0'\nrate-bps = 1000\n"
    )));
    let mut here = App::new(&alice);
    let lengths = [300, 300, LENGTH];
    for (seed, length) in (0..).zip(lengths) {
        here.send("ipn:7.5", &payload(length as usize, seed), MessageOptions::default());
    }
    let deadline = Instant::now() + DEADLINE;
    let [first, second, bundle] = loop {
        here.ask(Request::Bundles { limit: 10, after: None, filter: Filter::default() });
        let page = here.wait(|said| match said.head {
            Reply::Bundles { page } => Some(page),
            _ => None,
        });
        match page.bundles.try_into() {
            Ok::<[_; 3], _>(bundles) if bundles[2].transmitted_bytes > 0 => break bundles,
            bundles => assert!(Instant::now() < deadline, "{bundles:?}"),
        }
    };
    assert_eq!([first.transmitted_bytes, second.transmitted_bytes], lengths[..2], "{first:?}, {second:?}");
    assert_eq!(bundle.safe_bytes, 0, "{bundle:?}");
    assert!(bundle.transmitted_bytes < LENGTH / 2, "{bundle:?}");
}

/// Bundles of any length over the erasure code, which each side has in a table of its settings.
#[test]
fn bundles_arrive_over_the_erasure_code() {
    const NEAR: &str = "[ltp-fec]\none-way-delay = '10 ms'\nmargin = '200 ms'\nreport-delay = '100 ms'\n\
                        fec.block-symbols = 100\nfec.idle = '2 ms'\n";
    let bob = start(config(&format!(
        "node = 'ipn:7.0'\nlisten-udp = ['ltp-fec 127.0.0.1:0']\nstorage.kind = 'memory'\n{NEAR}"
    )));
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\nstorage.kind = 'memory'\n{NEAR}[[link]]\nname = 'bob'\nkind = 'ltp-fec'\n\
         address = '{}'\npeer = 'ipn:7.0'\nrate-bps = 100_000_000\n",
        bob.udp_addresses()[0]
    )));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("ipn:7.5", 2_000_000);
    for (seed, length) in [1, 1399, 1_500_000].into_iter().enumerate() {
        let file = payload(length, seed as u64);
        let sent = here.send("ipn:7.5", &file, MessageOptions::default());
        let (delivery, got) = there.receive();
        assert_eq!(got, file);
        there.take(delivery);
        here.wait_sent(sent);
    }
    let status = here.wait_status(|status| status["links"][0]["counters"]["blocks_completed"] == 3);
    let counters = &status["links"][0]["counters"];
    assert!(counters["repairs_sent"].as_u64() > Some(10), "{status:#}");
}

/// A datagram that is no packet of the protocol of its link is reported with its sender, and not again as a bundle.
#[test]
fn datagrams_for_a_link_of_another_protocol_are_named() {
    let memory = "[storage]\nkind = 'memory'\n";
    for (kind, other) in [("ltp", "ltp-fec"), ("ltp-fec", "ltp"), ("saratoga", "ltp"), ("udp", "ltp-fec")] {
        let bob = format!("node = 'ipn:2.0'\nlisten-udp = ['{kind} 127.0.0.1:0']\n{memory}");
        let bob = start(config(&bob));
        let to = bob.udp_addresses()[0];
        let alice = start(config(&format!(
            "node = 'ipn:1.0'\n{memory}[[link]]\nname = 'bob'\nkind = '{other}'\naddress = '{to}'\npeer = 'ipn:2.0'\n"
        )));
        let (mut here, mut there) = (App::new(&alice), App::new(&bob));
        here.send("ipn:2.1", &payload(100, 1), MessageOptions::default());
        let status = there.wait_status(|status| status["refused"][0].is_object());
        let refused = &status["refused"][0];
        assert_eq!(refused["reason"], "other_protocol", "{refused:#}");
        let what = format!("no packet of `{kind}`, but probably one of `{other}`");
        assert_eq!(refused["what"], what, "{refused:#}");
        assert_eq!(refused["link"], format!("{kind} {to}"));
        let address: SocketAddr =
            refused["address"].as_str().expect("an address").parse().expect("with a port");
        assert_ne!(address, to, "that of the sender");
        assert_eq!(there.status()["refused"].as_array().map(Vec::len), Some(1), "told once");
    }
}

/// Two nodes that listen, each with a link to the other. The address of the second one is known after the first has started, so
/// that the first gets its link by a reload.
#[test]
fn two_listening_nodes_exchange_bundles_in_both_directions() {
    let place = Place::new("ltp-both");
    let file = place.0.join("bob.toml");
    let text = |number: u8| {
        format!("node = 'ipn:{number}.0'\nlisten-udp = ['ltp 127.0.0.1:0']\nstorage.kind = 'memory'\n{NEAR}")
    };
    let link = |number: u8, to: SocketAddr| {
        format!(
            "[[link]]\nname = 'other'\nkind = 'ltp'\naddress = '{to}'\npeer = 'ipn:{number}.0'\nrate-bps = 100_000_000\n"
        )
    };
    std::fs::write(&file, text(2)).expect("a file");
    let settings = Config::load(&file).expect("it makes sense");
    let setup = NodeSetup { path: Some(file.clone()), ..NodeSetup::new(settings) };
    let bob = Node::start(setup).expect("it starts");
    let alice = start(config(&format!("{}{}", text(1), link(2, bob.udp_addresses()[0]))));
    std::fs::write(&file, format!("{}{}", text(2), link(1, alice.udp_addresses()[0]))).expect("a file");
    bob.reload();
    let mut apps = [App::new(&alice), App::new(&bob)];
    let files = [payload(200_000, 1), payload(1399, 2), payload(150_000, 3)];
    for app in &mut apps {
        app.wait_status(|status| status["links"].as_array().is_some_and(|links| links.len() == 2));
    }
    // All are under way before the first is looked for.
    let mut numbers = [Vec::new(), Vec::new()];
    for file in &files {
        for (at, numbers) in numbers.iter_mut().enumerate() {
            let to = format!("ipn:{}.5", 2 - at);
            numbers.push(apps[at].send(&to, file, MessageOptions::default()));
        }
    }
    for ((at, app), numbers) in apps.iter_mut().enumerate().zip(numbers) {
        numbers.into_iter().for_each(|number| app.wait_sent(number));
        app.register(&format!("ipn:{}.5", at + 1), 1_000_000);
        let mut got: Vec<_> = files
            .iter()
            .map(|_| {
                let (delivery, got) = app.receive();
                app.take(delivery);
                got
            })
            .collect();
        got.sort_by_key(|file| files.iter().position(|sent| sent == file));
        assert_eq!(got, files);
        let other = |status: &serde_json::Value| {
            let links = status["links"].as_array().expect("a list");
            links.iter().find(|link| link["name"] == "other").expect("a link")["counters"].clone()
        };
        let status = app.wait_status(|status| other(status)["bundles_sent"] == 3);
        assert_eq!(other(&status)["blocks_failed"], 0, "{status:#}");
    }
}

/// Relay for the datagrams of one node to another and back, of which it keeps the former.
struct Relay {
    at: SocketAddr,
    kept: Arc<Mutex<Vec<Vec<u8>>>>,
    work: Option<JoinHandle<()>>,
}

impl Relay {
    fn new(to: SocketAddr) -> Relay {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let (at, kept) = (socket.local_addr().expect("an address"), Arc::new(Mutex::new(Vec::new())));
        let keeps = kept.clone();
        let work = std::thread::spawn(move || {
            let (mut buffer, mut back) = ([0; 2000], None);
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let datagram = &buffer[..length];
                if from == to {
                    back.map(|back| socket.send_to(datagram, back));
                } else if length == 0 {
                    return;
                } else {
                    back = Some(from);
                    keeps.lock().expect("no thread panics with it").push(datagram.to_vec());
                    let _ = socket.send_to(datagram, to);
                }
            }
        });
        Relay { at, kept, work: Some(work) }
    }

    fn kept(&self) -> Vec<Vec<u8>> {
        self.kept.lock().expect("no thread panics with it").clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let _ = socket.send_to(&[], self.at);
        self.work.take().map(JoinHandle::join);
    }
}

/// Both nodes have one key. What passes between them is sent once more, altered, and without authentication.
#[test]
fn forged_altered_and_replayed_segments_are_refused_and_counted() {
    let place = Place::new("ltp-key");
    std::fs::write(place.0.join("moon.key"), "000102030405060708090a0b0c0d0e0f10111213\n").expect("a file");
    let with_key = |text: String| {
        let near = NEAR
            .replace("[ltp]", "[ltp]\nauthentication.key-file = 'moon.key'\nauthentication.key-id = '24'");
        let mut config =
            Config::parse(&text.replace("KEY", &near), "test", &place.0).expect("it makes sense");
        config.control = None;
        start(config)
    };
    let bob =
        with_key("node = 'ipn:7.0'\nlisten-udp = ['ltp 127.0.0.1:0']\nstorage.kind = 'memory'\nKEY".into());
    let to = bob.udp_addresses()[0];
    let relay = Relay::new(to);
    let alice = with_key(format!(
        "node = 'ipn:1.0'\nstorage.kind = 'memory'\nKEY[[link]]\nname = 'bob'\nkind = 'ltp'\naddress = '{}'\n\
         peer = 'ipn:7.0'\nrate-bps = 100_000_000\n",
        relay.at
    ));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("ipn:7.5", 2_000_000);
    let mut carry = |seed| {
        let file = payload(5000, seed);
        let sent = here.send("ipn:7.5", &file, MessageOptions::default());
        let (delivery, got) = there.receive();
        assert_eq!(got, file);
        there.take(delivery);
        here.wait_sent(sent);
    };
    carry(1);
    let kept = relay.kept();
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    for datagram in &kept {
        let mut altered = datagram.clone();
        *altered.last_mut().expect("a segment") ^= 1;
        for sent in [&altered, datagram] {
            stranger.send_to(sent, to).expect("it is sent");
        }
    }
    // Data of another session, and a cancellation.
    for forged in [&b"\x03\x01\x05\x00\x01\x00\x02\x01\x00hi"[..], b"\x0c\x01\x05\x00\x00"] {
        stranger.send_to(forged, to).expect("it is sent");
    }
    carry(2);
    let mut there = App::new(&bob);
    let data = kept.iter().filter(|datagram| datagram[0] < 8).count() as u64;
    let status = there.wait_status(|status| {
        let counters = &status["links"][0]["counters"];
        counters["unauthenticated"].as_u64() >= Some(kept.len() as u64 + 2)
            && counters["duplicates"].as_u64() >= Some(data)
    });
    let counters = &status["links"][0]["counters"];
    assert_eq!(
        (&counters["bundles_received"], &counters["blocks_lost"]),
        (&2.into(), &0.into()),
        "{status:#}"
    );
    assert!(data > 3 && kept.iter().all(|datagram| datagram.len() > 15), "{data} segments with data");
}

#[test]
fn a_key_is_read_from_its_file_and_never_shown() {
    let text = |authentication: &str| {
        format!(
            "node = 'ipn:4.0'\n[[link]]\nname = 'moon'\nkind = 'ltp'\naddress = '192.0.2.1:1113'\npeer = 'ipn:7.0'\n\
             [link.ltp]\nauthentication = {{ {authentication} }}\n"
        )
    };
    let place = Place::new("ltp-key-file");
    let key = "5b".repeat(20);
    std::fs::write(place.0.join("moon.key"), &key).expect("a file");
    let parse = |authentication: &str| Config::parse(&text(authentication), "test", &place.0);
    let explained = parse("key-file = 'moon.key'").expect("it makes sense").explain();
    assert!(explained.contains("only authenticated segments are accepted"), "{explained}");
    let written = parse(&format!("key = '{key}'")).expect("it makes sense");
    assert!(!explained.contains(&key) && !format!("{written:?}").contains(&key), "{written:?}");
    let both = format!("key = '{key}', key-file = 'moon.key'");
    for (authentication, what) in [
        ("key-file = 'mars.key'", "cannot read the key"),
        (&both[..], "are both set"),
        ("key = 'moon'", "`authentication.key` is not a valid key"),
        ("suite = 'rsa-sha256'", "`authentication.suite` is not supported"),
        ("suite = 'none'", "unknown variant"),
    ] {
        let error = parse(authentication).expect_err(authentication);
        assert!(error.to_string().contains(what) && error.hint.is_some(), "{error}");
    }
}

/// A peer by hand: the segments that a node sends, and how it answers the cancellation of a session that does not exist.
#[test]
fn a_peer_by_hand_sees_segments_and_the_answer_to_a_ping() {
    let peer = UdpSocket::bind("127.0.0.1:0").expect("a port");
    peer.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let alice = alice(peer.local_addr().expect("an address"));
    let mut here = App::new(&alice);
    here.send("ipn:7.5", &payload(100, 1), MessageOptions::default());
    let mut buffer = [0; 2000];
    let (length, from) = peer.recv_from(&mut buffer).expect("a segment");
    assert_eq!(buffer[0], 0x03, "red data, checkpoint, end of block");
    assert!(length > 100);
    // HDTN asks by this whether the link is up.
    peer.send_to(b"\x0c\x07\xff\xff\xff\x7f\x00\x00", from).expect("it is sent");
    loop {
        let (length, _) = peer.recv_from(&mut buffer).expect("an answer");
        if buffer[0] == 0x0d {
            assert_eq!(buffer[..length], *b"\x0d\x07\xff\xff\xff\x7f\x00");
            break;
        }
    }
}

#[test]
fn a_link_is_explained() {
    let text = "node = 'ipn:4.0'\nlisten-udp = ['ltp [::]:1113']\n[[link]]\nname = 'moon'\nkind = 'ltp'\n\
                address = '192.0.2.1:1113'\npeer = 'ipn:7.0'\nrate-bps = 64000\n[link.ltp]\none-way-delay = '1300 ms'";
    let explained = config(text).explain();
    for words in [
        "Link `moon` to ipn:7.0 at 192.0.2.1:1113 over LTP, at 64000 bit/s, in segments of at most 1400 bytes",
        "Engine ID 4.",
        "an answer may take 3.6 s for a delay of 1.3 s",
    ] {
        assert!(explained.contains(words), "{explained}");
    }
}
