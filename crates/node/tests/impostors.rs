//! Peers that say that they are somebody else, over real sockets.

mod common;
#[path = "common/peer.rs"]
mod peer;

use common::{App, config, payload, start};
use longwire_node::message::{Options, Reply, Request};
use longwire_node::{Node, Setup};
use longwire_proto::bp::{
    AdminRecord, Bundle, BundleFlags, CreationTimestamp, DtnTime, ReasonCode, Status, StatusReport,
};
use peer::*;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PATIENCE: Duration = Duration::from_secs(30);
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

/// Forty bundles go from one application to the endpoint `inbox` of another, all of them.
fn all_arrive(from: &mut App, to: &mut App, node: &str) {
    let send = |number| from.send(&format!("{node}inbox"), &payload(1000, number), Options::default());
    let sent: Vec<u64> = (0..BUNDLES).map(send).collect();
    for _ in 0..BUNDLES {
        let (delivery, _) = to.receive();
        to.take(delivery);
    }
    sent.into_iter().for_each(|number| from.wait_sent(number));
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
        assert_eq!(impostor.hear_all(PATIENCE), [CONTACT_4, &[5, 0, 3]].concat(), "{name}");
    }
    let mut impostor = Peer::up_3(at, "dtn://alice/").unwrap();
    assert_eq!(impostor.hear_all(PATIENCE), [0x52, 0x02], "a SHUTDOWN with the reason `busy`");
    all_arrive(&mut here, &mut there, "dtn://alice/");
    assert_eq!(here.status()["callers"]["refused_taken"], 4);
    // When she has gone, the name is free, and waits for nobody.
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
    // An impostor that comes first has the name until the link is up, and one that comes later never.
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
        let heard = impostor.hear_all(PATIENCE);
        assert!(heard.len() < 100, "an end of session at most: {} bytes", heard.len());
    }
}

#[test]
fn two_nodes_that_call_each_other_have_both_of_their_sessions() {
    let bob = bob(&format!("[[route]]\nto = 'dtn://alice/*'\nvia = 'dtn://alice/'{QUICK}"));
    let alice = alice_calls(&bob, "[[route]]\nto = 'dtn://bob/*'\nvia = 'bob'");
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
    // Without its link, a node sends over what the other has opened.
    here.ask(Request::CutLink { name: "alice".into() });
    here.wait_status(|status| {
        link(status, |link| link["calls"] == true && link["peer"] == "dtn://alice/").is_some()
    });
    all_arrive(&mut here, &mut there, "dtn://alice/");
}

#[test]
fn a_nodes_own_id_is_refused_from_callers() {
    let bob = bob("");
    let at = bob.addresses()[0];
    let mut impostor = Peer::call(at).unwrap();
    impostor.say(&[CONTACT_4, &sess_init("dtn://bob/")].concat()).unwrap();
    assert_eq!(impostor.hear_all(PATIENCE), [CONTACT_4, &[5, 0, 4]].concat(), "the contact fails");
    let mut impostor = Peer::up_3(at, "dtn://bob").unwrap();
    impostor.hear_all(PATIENCE);
    let mut impostor = Peer::call(at).unwrap();
    impostor.say(&[CONTACT_4, &sess_init("dtn://bob/inbox")].concat()).unwrap();
    impostor.hear_all(PATIENCE);
    let status = App::new(&bob).status();
    assert!(link(&status, |_| true).is_none(), "{:#}", status["links"]);
    assert_eq!(
        status["callers"]["refused_own_id"], 1,
        "an endpoint of this node; the rest the session refuses itself"
    );
}

/// A report that says of this bundle of `dtn://alice/` that it was delivered.
fn forged(by: &str, created: (u64, u64), number: u64) -> Vec<u8> {
    let report = AdminRecord::StatusReport(StatusReport {
        received: Status::NotAsserted,
        forwarded: Status::NotAsserted,
        delivered: Status::Asserted,
        deleted: Status::NotAsserted,
        further: Vec::new(),
        reason: ReasonCode::NoAdditionalInformation,
        source: eid("dtn://alice/"),
        timestamp: CreationTimestamp { time: DtnTime(created.0), sequence: created.1 },
        fragment: None,
    })
    .to_bytes();
    let mut head = head(by, "dtn://alice/", number, report.len() as u64);
    head.primary.flags = BundleFlags::ADMINISTRATIVE_RECORD;
    Bundle::new(head, report).to_bytes().to_vec()
}

#[test]
fn a_forged_report_delivers_nothing() {
    let bob = bob("agent.reports.delivery = true");
    let alice = alice_calls(&bob, "[[route]]\nto = 'dtn://carol/*'\nvia = 'bob'");
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    let wants = Options { report_delivery: true, ..Options::default() };
    let sends = ["dtn://bob/inbox", "dtn://carol/inbox"].map(|to| {
        let send = here.send(to, &payload(100, 1), wants.clone());
        let created = here.wait_accepted(send);
        here.wait_sent(send);
        (send, created)
    });
    let mut number = 0;
    let mut forge = |peer: &mut Peer, by: &str, created| {
        number += 1;
        peer.say(&transfer(number, &forged(by, created, number))).unwrap();
    };
    // Strangers under their own name and under bob's, in all names.
    let mut stranger = Peer::stranger_4(alice.addresses()[0]).unwrap();
    let mut nobody = Peer::up_4(alice.addresses()[0], "dtn://bob/").unwrap();
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
                Reply::Report { reporter, .. } => panic!("{reporter} is believed"),
                _ => {}
            }
        };
    }
    // The true one is.
    there.register("inbox", 1000);
    let (delivery, _) = there.receive();
    there.take(delivery);
    let (send, reporter) = here.wait(|said| match said.head {
        Reply::Report { send, status, reporter, .. } => {
            assert_eq!(status, "delivered");
            Some((send, reporter))
        }
        _ => None,
    });
    assert_eq!((send, reporter.as_str()), (sends[0].0, "dtn://bob/"));
}

/// A caller with this node id, from an address that is not this machine's; the type of the message that the node answers to its
/// SESS_INIT.
fn answer(node: &Node, node_id: &str) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (mut here, there) = tokio::io::duplex(10_000);
    node.call(there, "192.0.2.7:4556");
    runtime.block_on(async {
        here.write_all(&[CONTACT_4, &sess_init(node_id)].concat()).await.expect("it reads");
        let mut heard = [0; 7];
        tokio::time::timeout(PATIENCE, here.read_exact(&mut heard))
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
        let bob = Node::start(Setup::new(config(&text))).expect("it starts");
        assert_eq!(["dtn://alice/", "dtn://mallory/"].map(|name| answer(&bob, name)), expected, "{peers}");
        let callers = App::new(&bob).status()["callers"].clone();
        let refused = expected.iter().filter(|kind| **kind == SESS_TERM).count() as u64;
        let counted = |key: &str| callers[key].as_u64().expect("a count");
        assert_eq!(counted("refused_unknown") + counted("refused_unproven"), refused, "{peers}");
    }
}
