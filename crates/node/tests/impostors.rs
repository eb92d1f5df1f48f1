//! Peers that claim another node's ID, over real sockets.

mod common;
#[path = "common/peer.rs"]
mod peer;

use bytes::Bytes;
use common::{App, DEADLINE, Place, Until, config, payload, start};
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::tls::issue::{Authority, CertificateRequest};
use longwire_node::{Node, NodeSetup};
use longwire_proto::bp::{Bundle, Fragment};
use peer::*;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const QUICK: &str = "\n[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'\n";
const BUNDLES: u64 = 40;

fn bob(more: &str) -> Node {
    start(config(&format!("node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\nstorage.kind = 'memory'\n{more}")))
}

fn alice_calls(bob: &Node, more: &str) -> Node {
    let at = bob.addresses()[0];
    start(config(&format!(
        "node = 'dtn://alice/'\nlisten = ['127.0.0.1:0']\nstorage.kind = 'memory'\n[[link]]\nname = 'bob'\naddress = '{at}'\n\
         {more}{QUICK}"
    )))
}

fn link(status: &Value, has: impl Fn(&Value) -> bool) -> Option<&Value> {
    status["links"].as_array()?.iter().find(|link| link["up"] == true && has(link))
}

fn with_peer(status: &Value, peer: &str) -> bool {
    link(status, |link| link["peer"] == peer).is_some()
}

/// Sends forty bundles from one application to the endpoint `inbox` of another; all of them arrive.
fn all_arrive(from: &mut App, to: &mut App, node: &str) {
    let send = |number| from.send(&format!("{node}inbox"), &payload(1000, number), MessageOptions::default());
    let sent: Vec<u64> = (0..BUNDLES).map(send).collect();
    for _ in 0..BUNDLES {
        let (delivery, _) = to.receive();
        to.take(delivery);
    }
    sent.into_iter().for_each(|number| from.wait_sent(number));
}

/// Sends one bundle; its sender gets a delivery report.
fn receipt_arrives(from: &mut App, to: &mut App, node: &str) {
    let send = from.send(&format!("{node}inbox"), &payload(1000, 1), reported());
    let (delivery, _) = to.receive();
    to.take(delivery);
    delivered(from, send, node);
}

/// Sends one bundle with custody transfer; it stays with its sender until that gets the delivery report.
fn custody_goes(from: &mut App, to: &mut App, node: &str) {
    let options = MessageOptions { custody: true, ..MessageOptions::default() };
    let send = from.send(&format!("{node}inbox"), &payload(1000, 2), options);
    let (delivery, _) = to.receive();
    to.take(delivery);
    from.wait_sent(send);
}

fn reported() -> MessageOptions {
    MessageOptions { report_delivery: true, ..MessageOptions::default() }
}

/// Waits until the sender of a bundle gets a delivery report.
fn delivered(from: &mut App, send: u64, by: &str) {
    let told = from.wait(|said| match said.head {
        Reply::Report { send, status, reporter, .. } => Some((send, status, reporter)),
        _ => None,
    });
    assert_eq!(told, (send, "delivered".to_owned(), by.to_owned()));
}

#[test]
fn a_second_caller_with_a_node_id_is_refused_and_gets_nothing() {
    let bob = bob("");
    let alice = alice_calls(&bob, "");
    let (mut here, mut there) = (App::new(&bob), App::new(&alice));
    there.register("inbox", 2000);
    here.wait_status(|status| with_peer(status, "dtn://alice/"));
    let at = bob.addresses()[0];
    for name in ["dtn://alice/", "dtn://alice", "dtn://alice/inbox"] {
        let mut impostor = Peer::call(at).unwrap();
        impostor.say(&[CONTACT_4, &sess_init(name)].concat()).unwrap();
        // A contact header and a SESS_TERM with the reason `busy`: it never has a session.
        assert_eq!(impostor.hear_all(DEADLINE), [CONTACT_4, &[5, 0, 3]].concat(), "{name}");
    }
    let mut impostor = Peer::up_3(at, "dtn://alice/").unwrap();
    assert_eq!(impostor.hear_all(DEADLINE), [0x52, 0x02], "a SHUTDOWN with the reason `busy`");
    all_arrive(&mut here, &mut there, "dtn://alice/");
    assert_eq!(here.status()["callers"]["refused_taken"], 4);
    // After she has left, the node ID is free without a delay.
    drop(there);
    alice.stop();
    here.wait_status(|status| !with_peer(status, "dtn://alice/"));
    drop(Peer::up_4(at, "dtn://alice/").unwrap());
}

#[test]
fn a_caller_with_the_node_id_of_a_link_that_is_up_gets_nothing() {
    let bob = bob("");
    let alice = start(config("node = 'dtn://alice/'\nlisten = ['127.0.0.1:0']\nstorage.kind = 'memory'"));
    let (mut here, mut there) = (App::new(&bob), App::new(&alice));
    there.register("inbox", 2000);
    // An impostor that connects first has the node ID until the link is up, and one that connects later never gets it.
    let at = bob.addresses()[0];
    let first = Peer::up_4(at, "dtn://alice/").unwrap();
    here.wait_status(|status| with_peer(status, "dtn://alice/"));
    here.ask(Request::AddLink { name: "alice".into(), address: alice.addresses()[0].to_string() });
    here.wait_status(|status| link(status, |link| link["name"] == "alice").is_some());
    let impostors = [first, Peer::up_4(at, "dtn://alice/").unwrap()];
    here.wait_status(|status| {
        let claims = |link: &&Value| link["claims"] == "dtn://alice/" && link["peer"].is_null();
        status["links"].as_array().is_some_and(|links| links.iter().filter(claims).count() == 2)
    });
    all_arrive(&mut here, &mut there, "dtn://alice/");
    for mut impostor in impostors {
        impostor.0.shutdown(std::net::Shutdown::Write).unwrap();
        let heard = impostor.hear_all(DEADLINE);
        assert!(heard.len() < 100, "an end of session at most: {} bytes", heard.len());
    }
}

#[test]
fn two_nodes_that_call_each_other_have_both_of_their_sessions() {
    let reports = "[agent.reports]\ndelivery = true\n";
    let bob = bob(&format!("{reports}[[route]]\nto = 'dtn://alice/*'\nvia = 'dtn://alice/'{QUICK}"));
    let alice = alice_calls(&bob, &format!("{reports}[[route]]\nto = 'dtn://bob/*'\nvia = 'bob'"));
    let (mut here, mut there) = (App::new(&bob), App::new(&alice));
    here.ask(Request::AddLink { name: "alice".into(), address: alice.addresses()[0].to_string() });
    for (app, name) in [(&mut here, "alice"), (&mut there, "bob")] {
        let node = format!("dtn://{name}/");
        app.wait_status(|status| {
            link(status, |link| link["name"] == name && link["peer"] == node.as_str()).is_some()
                && link(status, |link| link["claims"] == node.as_str()).is_some()
        });
        app.register("inbox", 2000);
    }
    all_arrive(&mut here, &mut there, "dtn://alice/");
    all_arrive(&mut there, &mut here, "dtn://bob/");
    // Each returns its delivery reports over its own link: for the other that is a caller without a node ID, at the address of
    // its own link.
    receipt_arrives(&mut here, &mut there, "dtn://alice/");
    receipt_arrives(&mut there, &mut here, "dtn://bob/");
    assert_eq!([&mut here, &mut there].map(|app| app.status()["reports_not_believed"].clone()), [0, 0]);
    // And its custody signals.
    custody_goes(&mut here, &mut there, "dtn://alice/");
    custody_goes(&mut there, &mut here, "dtn://bob/");
    // Without its link, a node sends over the connection that the other has opened.
    here.ask(Request::CutLink { name: "alice".into() });
    here.wait_status(|status| {
        link(status, |link| link["calls"] == true && link["peer"] == "dtn://alice/").is_some()
    });
    all_arrive(&mut here, &mut there, "dtn://alice/");
}

/// As with network address translation, or with two uplinks.
#[test]
fn a_neighbour_that_calls_from_elsewhere_is_believed_where_it_is_named() {
    let elsewhere = start(config(
        "node = 'dtn://bob/'\nlisten = ['127.0.0.2:0']\nstorage.kind = 'memory'\nagent.reports.delivery = true\n\
         [[route]]\nto = 'dtn://alice/*'\nvia = 'dtn://alice/'",
    ));
    let alice =
        alice_calls(&elsewhere, "[[route]]\nto = 'dtn://bob/*'\nvia = 'bob'\n[[peer]]\nnode = 'dtn://bob/'");
    let (mut here, mut there) = (App::new(&alice), App::new(&elsewhere));
    there.register("inbox", 2000);
    there.ask(Request::AddLink { name: "alice".into(), address: alice.addresses()[0].to_string() });
    here.wait_status(|status| {
        with_peer(status, "dtn://bob/") && link(status, |link| link["claims"] == "dtn://bob/").is_some()
    });
    receipt_arrives(&mut here, &mut there, "dtn://bob/");
    custody_goes(&mut here, &mut there, "dtn://bob/");
    let status = here.status();
    assert_eq!(
        (&status["reports_not_believed"], &status["counters"]["custody_signals_not_believed"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn a_nodes_own_id_is_refused_from_callers() {
    let bob = bob("");
    let at = bob.addresses()[0];
    let mut impostor = Peer::call(at).unwrap();
    impostor.say(&[CONTACT_4, &sess_init("dtn://bob/")].concat()).unwrap();
    assert_eq!(impostor.hear_all(DEADLINE), [CONTACT_4, &[5, 0, 4]].concat(), "the contact fails");
    let mut impostor = Peer::up_3(at, "dtn://bob").unwrap();
    impostor.hear_all(DEADLINE);
    let mut impostor = Peer::call(at).unwrap();
    impostor.say(&[CONTACT_4, &sess_init("dtn://bob/inbox")].concat()).unwrap();
    impostor.hear_all(DEADLINE);
    let status = App::new(&bob).status();
    assert!(link(&status, |_| true).is_none(), "{:#}", status["links"]);
    assert_eq!(
        status["callers"]["refused_own_id"], 1,
        "an endpoint of this node; the rest the session refuses itself"
    );
}

/// Certificates of one authority, for nodes of a test.
struct Certificates(Place, Authority, i64);

impl Certificates {
    fn new(name: &str) -> Self {
        let place = Place::new(name);
        let now = (now_dtn_ms() / 1000) as i64 + 946_684_800;
        let (authority, _) = Authority::new("impostors", now).unwrap();
        std::fs::write(place.0.join("ca.pem"), authority.certificate()).unwrap();
        Certificates(place, authority, now)
    }

    /// Configuration of a node with a certificate for its node ID.
    fn of(&self, name: &str) -> String {
        let Certificates(place, authority, now) = self;
        let minted =
            authority.sign(&CertificateRequest::for_node(&format!("dtn://{name}/"), *now, 10)).unwrap();
        std::fs::write(place.0.join(format!("{name}.pem")), &minted.certificate).unwrap();
        std::fs::write(place.0.join(format!("{name}.key")), &minted.key).unwrap();
        let at = place.0.display();
        format!("[tls]\ncertificate = '{at}/{name}.pem'\nkey = '{at}/{name}.key'\ntrust = ['{at}/ca.pem']\n")
    }
}

/// Alice has a link to Bob in several ways, and no other node has his node ID: the configuration does not contain it, contains it
/// in the link or in a route, and contains it everywhere while a certificate proves that he is at the other end of that link.
fn where_bob_has_his_name(mut check: impl FnMut(&str, Node, Node)) {
    let plain = "[[route]]\nto = 'dtn://carol/*'\nvia = 'bob'\n";
    let by_link = format!("peer = 'dtn://bob/'\n{plain}");
    let by_route = format!("{plain}[[route]]\nto = 'dtn://dora/*'\nvia = 'dtn://bob/'\n");
    for (named, text) in [("nowhere", plain), ("by its link", &by_link), ("by a route", &by_route)] {
        let bob = bob("agent.reports.delivery = true");
        let alice = alice_calls(&bob, text);
        check(named, alice, bob);
    }
    let certificates = Certificates::new("impostors-forged");
    let for_bob = format!("agent.reports.delivery = true\ntcpcl.tls = 'prefer'\n{}", certificates.of("bob"));
    let bob = bob(&for_bob);
    let in_all_places = format!(
        "tcpcl = {{ tls = 'require' }}\n{by_link}[[route]]\nto = 'dtn://dora/*'\nvia = 'dtn://bob/'\n[[peer]]\nnode = 'dtn://bob/'\n{}",
        certificates.of("alice")
    );
    let alice = alice_calls(&bob, &in_all_places);
    check("everywhere, and proven", alice, bob);
}

#[test]
fn a_forged_report_delivers_nothing() {
    where_bob_has_his_name(forged_reports_deliver_nothing);
}

fn forged_reports_deliver_nothing(named: &str, alice: Node, bob: Node) {
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    let sends = ["dtn://bob/inbox", "dtn://carol/inbox"].map(|to| {
        let send = here.send(to, &payload(100, 1), reported());
        let created = here.wait_accepted(send);
        here.wait_sent(send);
        (send, created)
    });
    let mut number = 0;
    let mut forge = |peer: &mut Peer, by: &str, created| {
        number += 1;
        peer.say(&transfer(number, &receipt(by, created, number))).unwrap();
    };
    // Strangers under their own node ID and under Bob's, reporting as any node, from another address than Bob's.
    let call = |name: &str| {
        Peer::call_from([127, 0, 0, 2].into(), alice.addresses()[0]).unwrap().greet_4(name).unwrap()
    };
    let (mut stranger, mut nobody) = (call(&stranger()), call("dtn://bob/"));
    for (_, created) in sends {
        for by in ["dtn://bob/", "dtn://carol/", "dtn://alice/", "dtn://mallory/"] {
            forge(&mut stranger, by, created);
            forge(&mut nobody, by, created);
        }
    }
    let mut not_believed = 0;
    while not_believed < 16 {
        here.ask(Request::Status);
        not_believed = loop {
            match here.hear().head {
                Reply::Status { status } => break status.reports_not_believed,
                Reply::Report { reporter, .. } => panic!("{reporter} is believed: bob is named {named}"),
                _ => {}
            }
        };
    }
    // The genuine report is trusted.
    there.register("inbox", 1000);
    let (delivery, _) = there.receive();
    there.take(delivery);
    delivered(&mut here, sends[0].0, "dtn://bob/");
}

#[test]
fn a_forged_custody_signal_releases_nothing() {
    where_bob_has_his_name(forged_signals_release_nothing);
}

fn forged_signals_release_nothing(named: &str, alice: Node, bob: Node) {
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    let options = MessageOptions { custody: true, ..MessageOptions::default() };
    let send = here.send("dtn://bob/inbox", &payload(100, 1), options);
    let created = here.wait_accepted(send);
    // The bundle is at Bob's node, where no application has taken it yet.
    there.wait_status(|status| status["counters"]["received"] == 1);
    let call = |name: &str| {
        Peer::call_from([127, 0, 0, 2].into(), alice.addresses()[0]).unwrap().greet_4(name).unwrap()
    };
    for (number, mut peer) in [call(&stranger()), call("dtn://bob/")].into_iter().enumerate() {
        peer.say(&transfer(0, &release(created, number as u64))).unwrap();
        let heard = number as u64 + 1;
        let status = here.wait_status(|status| status["counters"]["custody_signals_heard"] == heard);
        assert_eq!(status["counters"]["custody_signals_not_believed"], heard, "bob is named {named}");
    }
    assert_eq!(here.status()["counters"]["custody_released"], 0, "bob is named {named}");
    // His own report is trusted.
    there.register("inbox", 1000);
    let (delivery, _) = there.receive();
    there.take(delivery);
    here.wait_sent(send);
}

/// The same bundle in two fragments.
fn in_two_parts(whole: &[u8]) -> [Vec<u8>; 2] {
    let whole = Bundle::decode(&mut Bytes::copy_from_slice(whole)).expect("a bundle");
    let total_length = whole.payload.len() as u64;
    [0..10, 10..whole.payload.len()].map(|range| {
        let mut head = whole.head.clone();
        head.primary.fragment = Some(Fragment { offset: range.start as u64, total_length });
        head.payload.length = range.len() as u64;
        Bundle::new(head, whole.payload.slice(range)).to_bytes().to_vec()
    })
}

#[test]
fn a_receipt_that_comes_back_another_way_is_believed_of_neighbours_that_are_known() {
    let bob = bob("");
    let relays = "[[peer]]\nnode = 'dtn://relay/'\n[[peer]]\nnode = 'dtn://dish/'\n";
    let alice = alice_calls(&bob, &format!("[[route]]\nto = 'dtn://carol/*'\nvia = 'bob'\n{relays}"));
    let mut here = App::new(&alice);
    let mut send = || {
        let send = here.send("dtn://carol/inbox", &payload(100, 1), reported());
        let created = here.wait_accepted(send);
        here.wait_sent(send);
        (send, created)
    };
    let [whole, parts, alias] = [send(), send(), send()];
    let at = alice.addresses()[0];
    let [mut relay, mut dish] = ["dtn://relay/", "dtn://dish/"].map(|name| Peer::up_4(at, name).unwrap());
    let mut stranger = Peer::stranger_4(at).unwrap();
    // A fragment from an unknown peer makes the whole report untrusted.
    let [first, second] = in_two_parts(&receipt("dtn://carol/", parts.1, 1));
    relay.say(&transfer(1, &first)).unwrap();
    stranger.say(&transfer(1, &second)).unwrap();
    here.wait_status(|status| status["reports_not_believed"] == 1);
    let [first, second] = in_two_parts(&receipt("dtn://carol/", parts.1, 2));
    relay.say(&transfer(2, &first)).unwrap();
    dish.say(&transfer(1, &second)).unwrap();
    delivered(&mut here, parts.0, "dtn://carol/");
    relay.say(&transfer(3, &receipt("dtn://carol/", whole.1, 3))).unwrap();
    delivered(&mut here, whole.0, "dtn://carol/");
    // A node that also receives for another endpoint reports under its own node ID.
    relay.say(&transfer(4, &receipt("dtn://carols-house/", alias.1, 4))).unwrap();
    delivered(&mut here, alias.0, "dtn://carols-house/");
    assert_eq!(here.status()["reports_not_believed"], 1);
}

/// A fragment from before the last start may be from any peer: the peer that sent it is not stored.
#[test]
fn a_receipt_of_which_a_part_came_before_the_last_start_is_not_believed() {
    let place = Place::new("impostors-parts");
    let alice = || {
        start(config(&format!(
            "node = 'dtn://alice/'\nlisten = ['127.0.0.1:0']\nstorage.path = '{}'\n[[peer]]\nnode = 'dtn://relay/'\n",
            place.0.display()
        )))
    };
    let [first, second] = in_two_parts(&receipt("dtn://carol/", (now_dtn_ms(), 1).into(), 1));
    let before = alice();
    let mut stranger = Peer::stranger_4(before.addresses()[0]).unwrap().sender();
    stranger.send(&first);
    stranger.finish();
    before.stop();
    let after = alice();
    let mut relay = Peer::up_4(after.addresses()[0], "dtn://relay/").unwrap();
    relay.say(&transfer(0, &second)).unwrap();
    App::new(&after).wait_status(|status| status["reports_not_believed"] == 1);
}

#[test]
fn callers_whom_nobody_knows_are_believed_about_themselves_and_what_goes_to_them() {
    let alice = start(config("node = 'dtn://alice/'\nlisten = ['127.0.0.1:0']\nstorage.kind = 'memory'"));
    let mut here = App::new(&alice);
    let [mut carol, mut dora] =
        ["dtn://carol/", "dtn://dora/"].map(|name| Peer::up_4(alice.addresses()[0], name).unwrap());
    let mut send = || {
        let send = here.send("dtn://carol/inbox", &payload(100, 1), reported());
        (send, here.wait_accepted(send))
    };
    let [alias, relayed, forgery] = [send(), send(), send()];
    carol.say(&transfer(0, &receipt("dtn://carols-house/", alias.1, 1))).unwrap();
    delivered(&mut here, alias.0, "dtn://carols-house/");
    dora.say(&transfer(0, &receipt("dtn://dora/", relayed.1, 2))).unwrap();
    delivered(&mut here, relayed.0, "dtn://dora/");
    dora.say(&transfer(1, &receipt("dtn://carol/", forgery.1, 3))).unwrap();
    here.wait_status(|status| status["reports_not_believed"] == 1);
}

/// A relay that is not configured sends a report from a place where the bundle was not sent: over a link of this node, or under a
/// node ID that a certificate proves. Without either it is unknown.
#[test]
fn a_receipt_of_a_relay_is_believed_over_a_link_of_this_node_or_with_a_certificate() {
    let certificates = Certificates::new("impostors-proven");
    let tls = "tcpcl.tls = 'prefer'\n";
    let bob = bob("");
    for (calls, proven) in [(true, false), (false, true), (false, false)] {
        let (here_tls, there_tls) = match proven {
            true => (certificates.of("alice"), certificates.of("relay")),
            false => (String::new(), String::new()),
        };
        let link = |at: std::net::SocketAddr, name: &str| {
            format!("[[link]]\nname = '{name}'\naddress = 'localhost:{}'\n", at.port())
        };
        let node = |name: &str, links: &str, more: &str| {
            let tls = if proven { tls } else { "" };
            let head =
                format!("node = 'dtn://{name}/'\nlisten = ['127.0.0.1:0']\nstorage.kind = 'memory'\n{tls}");
            start(config(&format!("{head}{links}{more}")))
        };
        let to_bob =
            format!("{}[[route]]\nto = 'dtn://carol/*'\nvia = 'bob'\n", link(bob.addresses()[0], "bob"));
        let (alice, relay) = if calls {
            let relay = node("relay", "", &there_tls);
            (node("alice", &format!("{to_bob}{}", link(relay.addresses()[0], "relay")), &here_tls), relay)
        } else {
            let alice = node("alice", &to_bob, &here_tls);
            let at = alice.addresses()[0];
            (alice, node("relay", &link(at, "alice"), &there_tls))
        };
        let mut here = App::new(&alice);
        App::new(&relay).wait_status(|status| with_peer(status, "dtn://alice/"));
        let send = here.send("dtn://carol/inbox", &payload(100, 1), reported());
        let created = here.wait_accepted(send);
        let mut stranger = Peer::stranger_4(relay.addresses()[0]).unwrap();
        stranger.say(&transfer(0, &receipt("dtn://carol/", created, 1))).unwrap();
        match calls || proven {
            true => delivered(&mut here, send, "dtn://carol/"),
            false => drop(here.wait_status(|status| status["reports_not_believed"] == 1)),
        }
    }
}

/// The caller that has a node ID may have disappeared unnoticed; that is detected when another one claims the node ID.
#[test]
fn who_has_a_node_id_is_asked_whether_it_is_there_when_another_one_claims_it() {
    let bob = bob("tcpcl.keepalive = '1 h'");
    let at = bob.addresses()[0];
    let mut first = Peer::up_4_alive(at, "dtn://alice/", 3600).unwrap();
    first.0.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let until = Until::new();
    loop {
        let mut second = Peer::call(at).unwrap();
        second.say(&[CONTACT_4, &sess_init("dtn://alice/")].concat()).unwrap();
        assert_eq!(second.hear_all(DEADLINE), [CONTACT_4, &[5, 0, 3]].concat());
        let mut said = [0];
        if std::io::Read::read_exact(&mut first.0, &mut said).is_ok() {
            // A KEEPALIVE; the next regular one would be due in an hour.
            assert_eq!(said, [4]);
            return;
        }
        until.check(|| "the session that has the node id is not asked for a sign of life".into());
    }
}

#[test]
fn who_claims_a_node_id_again_and_again_does_not_make_its_session_end() {
    let bob = bob("");
    let alice = alice_calls(&bob, "tcpcl = { idle-messages-max = 40 }\n");
    let (mut here, mut there) = (App::new(&bob), App::new(&alice));
    there.register("inbox", 2000);
    here.wait_status(|status| with_peer(status, "dtn://alice/"));
    for _ in 0..60 {
        let mut impostor = Peer::call(bob.addresses()[0]).unwrap();
        impostor.say(&[CONTACT_4, &sess_init("dtn://alice/")].concat()).unwrap();
        assert_eq!(impostor.hear_all(DEADLINE), [CONTACT_4, &[5, 0, 3]].concat());
    }
    all_arrive(&mut here, &mut there, "dtn://alice/");
    let counters = there.status()["links"][0]["counters"].clone();
    assert_eq!((&counters["sessions"], &counters["floods"]), (&1.into(), &0.into()), "{counters:#}");
}

#[test]
fn a_session_that_acknowledges_is_preferred_to_a_link_over_udp() {
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let udp = format!(
        "[[link]]\nname = 'datagrams'\nkind = 'udp'\naddress = '{}'\npeer = 'dtn://alice/'\n",
        nobody.local_addr().unwrap()
    );
    let bob = bob(&udp);
    let mut here = App::new(&bob);
    let has_it = |status: &Value| {
        link(status, |link| link["name"] == "datagrams").is_some_and(|link| link["peer"] == "dtn://alice/")
    };
    here.wait_status(has_it);
    // A caller from another address may be any node.
    let impostor =
        Peer::call_from([127, 0, 0, 2].into(), bob.addresses()[0]).unwrap().greet_4("dtn://alice/").unwrap();
    here.wait_status(|status| {
        link(status, |link| link["claims"] == "dtn://alice/" && link["calls"] == true).is_some()
    });
    assert!(has_it(&here.status()));
    drop(impostor);
    here.wait_status(|status| link(status, |link| link["calls"] == true).is_none());
    // Alice at the address of the link: bundles do not go where arrivals are not acknowledged.
    let alice = alice_calls(&bob, "");
    let mut there = App::new(&alice);
    there.register("inbox", 2000);
    here.wait_status(|status| {
        link(status, |link| link["calls"] == true && link["peer"] == "dtn://alice/").is_some()
    });
    all_arrive(&mut here, &mut there, "dtn://alice/");
    assert!(!has_it(&here.status()));
    drop(there);
    alice.stop();
    here.wait_status(has_it);
}

/// Without keep-alives an idle session is silent, and so is a machine that disappears.
#[test]
fn the_system_of_a_caller_without_keepalives_is_asked_whether_it_is_there() {
    let bob = bob("");
    let peer = Peer::stranger_4(bob.addresses()[0]).unwrap();
    let port = |address: std::net::SocketAddr| format!(":{:04X}", address.port());
    let ends = (port(bob.addresses()[0]), port(peer.0.local_addr().unwrap()));
    let until = Until::new();
    loop {
        // Local address, remote address, state, queues, and timer: 2 is the one of keep-alives (proc(5)).
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut lines = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let socket = lines.find(|words| words[1].ends_with(&ends.0) && words[2].ends_with(&ends.1));
        let socket = socket.expect("its socket is there");
        if socket[5].starts_with("02:") {
            return;
        }
        until.check(|| format!("no timer of keep-alives runs: {socket:?}"));
    }
}

/// Connects with this node ID, from an address that is not on this machine; returns the type of the message by which the node
/// answers the SESS_INIT.
fn answer(node: &Node, node_id: &str) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (mut here, there) = tokio::io::duplex(10_000);
    node.call(there, "192.0.2.7:4556");
    runtime.block_on(async {
        here.write_all(&[CONTACT_4, &sess_init(node_id)].concat()).await.expect("it reads");
        let mut heard = [0; 7];
        tokio::time::timeout(DEADLINE, here.read_exact(&mut heard))
            .await
            .expect("in time")
            .expect("an answer");
        heard[6]
    })
}

#[test]
fn who_calls_from_elsewhere_has_to_be_known() {
    const SESS_TERM: u8 = 5;
    const SESS_INIT: u8 = 7;
    let known = "[[peer]]\nnode = 'dtn://alice/'\n";
    let cases = [
        ("", [SESS_INIT, SESS_TERM]),
        ("peers = 'known'\n", [SESS_INIT, SESS_TERM]),
        ("peers = 'any'\n", [SESS_INIT, SESS_INIT]),
        ("peers = 'proven'\n", [SESS_TERM, SESS_TERM]),
    ];
    for (peers, expected) in cases {
        let text = format!("node = 'dtn://bob/'\n{peers}storage.kind = 'memory'\n{known}");
        let bob = Node::start(NodeSetup::new(config(&text))).expect("it starts");
        assert_eq!(["dtn://alice/", "dtn://mallory/"].map(|name| answer(&bob, name)), expected, "{peers}");
        let callers = App::new(&bob).status()["callers"].clone();
        let refused = expected.iter().filter(|kind| **kind == SESS_TERM).count() as u64;
        let counted = |key: &str| callers[key].as_u64().expect("a count");
        assert_eq!(counted("refused_unknown") + counted("refused_unproven"), refused, "{peers}");
    }
}
