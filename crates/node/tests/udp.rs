//! Bundles over UDP, on real sockets: one per datagram, without acknowledgements.

mod common;
#[path = "common/peer.rs"]
mod peer;

use bytes::Bytes;
use common::{App, DEADLINE, config, payload, reserved, start};
use longwire_node::Node;
use longwire_node::message::{MessageOptions, Reply};
use longwire_proto::bp::{Bundle, Content, Head, HopCount};
use std::net::UdpSocket;

const MEMORY: &str = "[storage]\nkind = 'memory'\n";

fn bob(more: &str) -> Node {
    start(config(&format!("node = 'dtn://bob/'\nlisten-udp = ['127.0.0.1:0']\n{MEMORY}{more}")))
}

fn alice(to: std::net::SocketAddr, link: &str) -> Node {
    start(config(&format!(
        "node = 'dtn://alice/'\n{MEMORY}[[link]]\nname = 'bob'\nkind = 'udp'\naddress = '{to}'\npeer = 'dtn://bob/'\n\
         rate-bps = 50_000_000\n{link}"
    )))
}

#[test]
fn bundles_go_over_udp_and_long_ones_in_fragments() {
    let bob = bob("");
    let alice = alice(bob.udp_addresses()[0], "");
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("inbox", 1000);
    for (seed, length) in [0, 1, 1000, 1399, 100_000].into_iter().enumerate() {
        let file = payload(length, seed as u64);
        let sent = here.send("dtn://bob/inbox", &file, MessageOptions::default());
        let (delivery, got) = there.receive();
        assert_eq!(got, file);
        there.take(delivery);
        here.wait_sent(sent);
    }
    let status = here.status();
    let counters = &status["links"][0]["counters"];
    let sent = counters["datagrams_sent"].as_u64().expect("a number");
    assert!(sent > 4 + 100_000 / 1400, "no datagram is longer than 1,400 bytes: {counters:#}");
    let heard = there.status();
    assert_eq!(heard["links"][0]["counters"]["datagrams_received"], sent, "{heard:#}");
    assert_eq!(heard["links"][0]["name"], format!("udp {}", bob.udp_addresses()[0]));
}

#[test]
fn a_datagram_may_be_as_long_as_ip_allows() {
    let bob = bob("");
    let alice = alice(bob.udp_addresses()[0], "[link.udp]\ndatagram-bytes-max = 65_507\n");
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("inbox", 100_000);
    let file = payload(60_000, 1);
    let sent = here.send("dtn://bob/inbox", &file, MessageOptions::default());
    let (_, got) = there.receive();
    assert_eq!(got, file);
    here.wait_sent(sent);
    assert_eq!(here.status()["links"][0]["counters"]["datagrams_sent"], 1);
}

#[test]
fn what_must_not_be_fragmented_and_fits_no_datagram_fails_with_a_reason() {
    let bob = bob("");
    let alice = alice(bob.udp_addresses()[0], "");
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("inbox", 1000);
    let whole = MessageOptions { must_not_fragment: true, ..MessageOptions::default() };
    let long = here.send("dtn://bob/inbox", &payload(5000, 1), whole.clone());
    let reason = here.wait(|said| match said.head {
        Reply::Failed { send, reason, .. } if send == long => Some(reason),
        _ => None,
    });
    assert!(reason.contains("limit"), "{reason}");
    let short = here.send("dtn://bob/inbox", &payload(500, 2), whole);
    let (_, got) = there.receive();
    assert_eq!(got, payload(500, 2));
    here.wait_sent(short);
    let status = here.status();
    let counters = &status["links"][0]["counters"];
    assert_eq!(counters["datagrams_sent"], 1, "{counters:#}");
    assert_eq!(status["links"][0]["unacknowledged"], true, "{status:#}");
}

#[test]
fn a_bundle_is_the_datagram_and_junk_is_counted() {
    let bob = bob("");
    let to = bob.udp_addresses()[0];
    // Alice sends a plain bundle (RFC 9171 4.1: an indefinite array), which any UDP port can receive.
    let peer = UdpSocket::bind("127.0.0.1:0").expect("a port");
    peer.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let alice = alice(peer.local_addr().expect("an address"), "");
    let mut here = App::new(&alice);
    here.send("dtn://bob/inbox", &payload(77, 3), MessageOptions::default());
    let mut buffer = [0; 2000];
    let length = peer.recv(&mut buffer).expect("a bundle");
    assert_eq!((buffer[0], buffer[length - 1]), (0x9f, 0xff));
    // Forwarded to Bob among invalid data, keep-alives and empty datagrams, it arrives.
    let mut there = App::new(&bob);
    there.register("inbox", 1000);
    for datagram in [&b"junk"[..], &[0; 4], &[], &[0x9f, 0xff], &buffer[..length]] {
        peer.send_to(datagram, to).expect("it is sent");
    }
    let (_, got) = there.receive();
    assert_eq!(got, payload(77, 3));
    let status = there.status();
    let counters = &status["links"][0]["counters"];
    assert_eq!(
        (&counters["keepalives_received"], &counters["violations"]),
        (&1.into(), &1.into()),
        "{status:#}"
    );
    assert_eq!((&counters["datagrams_received"], &counters["refused"]), (&2.into(), &1.into()), "{status:#}");
    assert_eq!(counters["not_bundles"], 1, "{status:#}");
}

#[test]
fn a_link_to_nobody_says_so_and_comes_back() {
    // No program listens there yet.
    let port = reserved();
    let alice = alice(port, "[link.udp]\nretry-min = '20 ms'\nretry-max = '50 ms'\n");
    let mut here = App::new(&alice);
    here.send("dtn://bob/inbox", &payload(10, 1), MessageOptions::default());
    let status = here.wait_status(|status| status["links"][0]["counters"]["failed"].as_u64() > Some(0));
    assert_eq!(status["links"][0]["why_down"].as_str().unwrap_or("connection refused"), "connection refused");
    let bob = start(config(&format!("node = 'dtn://bob/'\nlisten-udp = ['{port}']\n{MEMORY}")));
    let mut there = App::new(&bob);
    there.register("inbox", 1000);
    here.wait_status(|status| status["links"][0]["up"] == true);
    here.send("dtn://bob/inbox", &payload(20, 2), MessageOptions::default());
    let (_, got) = there.receive();
    assert_eq!(got, payload(20, 2), "the first was lost: nobody acknowledges anything");
}

#[test]
fn a_receipt_over_udp_is_believed_from_the_address_of_a_link() {
    // Bob receives on one port and sends from another, as nodes do.
    let [bob, bob_sends, stranger] = ["127.0.0.1:0", "127.0.0.1:0", "127.0.0.2:0"]
        .map(|address| UdpSocket::bind(address).expect("a port"));
    bob.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\nlisten-udp = ['127.0.0.1:0']\n{MEMORY}[[link]]\nname = 'bob'\nkind = 'udp'\n\
         address = '{}'\npeer = 'dtn://bob/'\n",
        bob.local_addr().expect("an address")
    )));
    let at = alice.udp_addresses()[0];
    let mut here = App::new(&alice);
    let options = MessageOptions { report_delivery: true, ..MessageOptions::default() };
    let send = here.send("dtn://bob/inbox", &payload(77, 3), options);
    let created = here.wait_accepted(send);
    let mut buffer = [0; 2000];
    bob.recv(&mut buffer).expect("a bundle");
    stranger.send_to(&peer::receipt("dtn://bob/", created, 1), at).expect("it is sent");
    here.wait_status(|status| status["reports_not_believed"] == 1);
    bob_sends.send_to(&peer::receipt("dtn://bob/", created, 2), at).expect("it is sent");
    let told = here.wait(|said| match said.head {
        Reply::Report { send, status, .. } => Some((send, status)),
        _ => None,
    });
    assert_eq!(told, (send, "delivered".to_owned()));
    // The bundle arrived over the link.
    let status = here.status();
    let received = |name: &str| {
        let links = status["links"].as_array().expect("links").iter();
        links
            .filter(|link| link["name"].as_str().expect("a name").starts_with(name))
            .map(|link| link["counters"]["datagrams_received"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (received("bob"), received("udp ")),
        (vec![serde_json::Value::from(1)], vec![serde_json::Value::from(1)]),
        "{status:#}"
    );
}

/// As ION's UDP convergence layer sends them; the `accept` that permits them is in the link to it.
#[test]
fn fragments_with_blocks_numbered_zero_are_taken_from_the_address_of_a_link_that_says_so() {
    let [ion, ion_sends, stranger] = ["127.0.0.1:0", "127.0.0.1:0", "127.0.0.2:0"]
        .map(|address| UdpSocket::bind(address).expect("a port"));
    let bob = bob(&format!(
        "[[link]]\nname = 'ion'\nkind = 'udp'\naddress = '{}'\npeer = 'dtn://ion/'\n\
         accept = ['fragment-blocks-numbered-zero']\n",
        ion.local_addr().expect("an address")
    ));
    let at = bob.udp_addresses()[0];
    let fragment = |of: &Head, offset: u64, data: &'static [u8]| {
        let mut head = of.fragment(offset, data.len() as u64);
        head.set(&Content::HopCount(HopCount { limit: 30, count: 1 }));
        head.blocks.iter_mut().for_each(|block| block.number = 0);
        Bundle::new(head, Bytes::from_static(data)).to_bytes()
    };
    let mut there = App::new(&bob);
    there.register("inbox", 1000);
    // The creation time is part of a bundle's identity: one header for all its fragments.
    let [forged, true_one] =
        ["dtn://mallory/", "dtn://ion/"].map(|from| peer::head(from, "dtn://bob/inbox", 1, 10));
    stranger.send_to(&fragment(&forged, 0, b"never"), at).expect("it is sent");
    let status = there.wait_status(|status| status["refused"][0]["count"] == 1);
    assert_eq!(status["refused"][0]["accept"][0], "fragment-blocks-numbered-zero", "{status:#}");
    // It receives on one port and sends from another.
    ion_sends.send_to(&fragment(&true_one, 0, b"hello"), at).expect("it is sent");
    ion_sends.send_to(&fragment(&true_one, 5, b"world"), at).expect("it is sent");
    let (_, got) = there.receive();
    assert_eq!(&got[..], b"helloworld");
}

#[test]
fn a_configuration_says_what_it_means() {
    let text = format!(
        "node = 'dtn://alice/'\nlisten-udp = ['[::]:4556']\n{MEMORY}[[link]]\nname = 'bob'\nkind = 'udp'\n\
         address = 'bob:4556'\nrate-bps = 9600\n"
    );
    let words = config(&text).explain_all();
    for part in [
        "Accepts bundles over UDP from anyone at [::]:4556",
        "at 9600 bit/s",
        "without acknowledgements",
        "only through a route",
    ] {
        assert!(words.contains(part), "{words}");
    }
    for (wrong, what) in [
        ("[link.tcpcl]\nversions = '4'", "`tcpcl` does not apply to kind udp"),
        ("[link.udp]\nkeepalive = '1 s'", "at least 15 s"),
        ("[link.udp]\nrate = 5", "unknown field `rate`"),
    ] {
        let error =
            longwire_node::Config::parse(&format!("{text}{wrong}"), "test", std::path::Path::new("/"));
        let error = error.expect_err(wrong).to_string();
        assert!(error.contains(what) && error.contains("hint: "), "{error}");
    }
}

/// Datagrams that arrive while the node does not read are kept up to the requested receive buffer, by listening and by sending
/// sockets.
#[test]
fn both_ends_have_the_receive_buffer_that_they_ask_for() {
    let bob = bob("[stream]\nudp-receive-buffer-bytes = 65_536\n");
    let at = bob.udp_addresses()[0];
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\n{MEMORY}[stream]\nudp-receive-buffer-bytes = 131_072\n[[link]]\nname = 'bob'\nkind = 'udp'\n\
         address = '{at}'\n"
    )));
    for (node, bytes) in [(&bob, 65_536), (&alice, 131_072)] {
        App::new(node).wait_status(|status| status["udp_receive_buffer_bytes"] == bytes);
    }
}
