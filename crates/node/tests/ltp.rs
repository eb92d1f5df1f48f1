//! Bundles over LTP, on real sockets.

mod common;

use common::{App, DEADLINE, Place, config, payload, start, web};
use longwire_node::message::MessageOptions;
use longwire_node::{Config, Node, NodeSetup};
use std::net::{SocketAddr, UdpSocket};

/// Settings with which a lost segment costs little time.
const NEAR: &str = "[ltp]\none-way-delay = '10 ms'\nmargin = '100 ms'\nreport-delay = '1 ms'\n";

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

/// The same over the erasure code, which each side has in a table of its settings.
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
    for (at, app) in apps.iter_mut().enumerate() {
        app.wait_status(|status| status["links"].as_array().is_some_and(|links| links.len() == 2));
        app.register(&format!("ipn:{}.5", at + 1), 1_000_000);
    }
    // All are under way before the first is looked for.
    let mut numbers = [Vec::new(), Vec::new()];
    for file in &files {
        for (at, numbers) in numbers.iter_mut().enumerate() {
            let to = format!("ipn:{}.5", 2 - at);
            numbers.push(apps[at].send(&to, file, MessageOptions::default()));
        }
    }
    for (app, numbers) in apps.iter_mut().zip(numbers) {
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
        numbers.into_iter().for_each(|number| app.wait_sent(number));
        let other = |status: &serde_json::Value| {
            let links = status["links"].as_array().expect("a list");
            links.iter().find(|link| link["name"] == "other").expect("a link")["counters"].clone()
        };
        let status = app.wait_status(|status| other(status)["bundles_sent"] == 3);
        assert_eq!(other(&status)["blocks_failed"], 0, "{status:#}");
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
