//! A contact plan over real sockets: bundles wait, are sent, stop and are sent again.

mod common;

use common::{App, Place, config, payload};
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::{Node, NodeSetup};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// 2025-05-08 06:13:20 UTC.
const BEGAN_DTN_MS: u64 = 800_000_000_000;
const BOB: &str = "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'\n";

/// A node with a link to Bob and these contacts.
fn alice(bob: &Node, contacts: &str) -> String {
    format!(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[tcpcl]\nreconnect-min = '10 ms'\nreconnect-max = '50 ms'\n\
         [[link]]\nname = 'bob'\naddress = '{}'\npeer = 'dtn://bob/'\n[[route]]\nto = 'dtn://bob/*'\nvia = 'bob'\n{contacts}",
        bob.addresses()[0]
    )
}

/// A clock that the test sets.
#[derive(Clone)]
struct Wall(Arc<AtomicU64>);

impl Wall {
    fn start(&self, text: &str) -> Node {
        let wall = self.0.clone();
        let wall_clock = Arc::new(move || Some(wall.load(Ordering::Relaxed)));
        Node::start(NodeSetup { wall_clock, ..NodeSetup::new(config(text)) }).expect("it starts")
    }

    fn jump_to(&self, seconds: u64, nodes: [&Node; 2]) {
        self.0.store(BEGAN_DTN_MS + seconds * 1000, Ordering::Relaxed);
        nodes.iter().for_each(|node| node.clock_jumped());
    }
}

/// Reason why the only bundle of a node is still stored.
fn why(app: &mut App) -> String {
    app.ask(Request::Bundles { after: None, limit: 10, filter: Default::default() });
    app.wait(|said| match said.head {
        Reply::Bundles { page } => {
            assert_eq!(page.bundles.len(), 1, "{page:#?}");
            Some(page.bundles[0].why.clone())
        }
        _ => None,
    })
}

fn arrives(there: &mut App, seed: u64) {
    let (delivery, got) = there.receive();
    assert_eq!(got, payload(1000, seed));
    there.take(delivery);
}

#[test]
fn a_link_opens_and_closes_with_its_contacts_and_bundles_say_what_they_wait_for() {
    let wall = Wall(Arc::new(AtomicU64::new(BEGAN_DTN_MS)));
    let bob = wall.start(BOB);
    let contact = "[[contact]]\nto = 'dtn://bob/'\nstart = 2025-05-08T06:23:20Z\nlasts = '10 min'\n\
                   every = '30 min'\nuntil = 2025-05-08T07:00:00Z\n";
    let alice = wall.start(&alice(&bob, contact));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    // Every 30 minutes from 10 minutes after the start; none begins at 07:00 or later.
    let status = here.wait_status(|status| status["links"][0]["contacts"][0].is_object());
    let windows = [(600, 1200), (2400, 3000)].map(|(start_s, end_s)| {
        let [start, end] = [start_s, end_s].map(|seconds| BEGAN_DTN_MS + seconds * 1000);
        serde_json::json!({"start_dtn_ms": start, "end_dtn_ms": end, "rate_bps": 0, "delay_ms": 0})
    });
    assert_eq!(status["links"][0]["contacts"], serde_json::json!(windows));
    there.register("inbox", 10_000);
    let send = |here: &mut App, seed: u64| {
        let sent = here.send("dtn://bob/inbox", &payload(1000, seed), MessageOptions::default());
        here.wait_accepted(sent);
        sent
    };
    let closed = |status: &serde_json::Value| status["links"][0]["up"] == false && status["bundles"] == 0;

    let early = send(&mut here, 1);
    assert_eq!(here.status()["links"][0]["up"], false);
    let waits = why(&mut here);
    assert!(waits.starts_with("waiting for the contact over link `bob` at 06:23:20 UTC, in "), "{waits}");
    assert_eq!(there.status()["links"].as_array().map(Vec::len), Some(0), "nobody has called");

    wall.jump_to(601, [&alice, &bob]);
    arrives(&mut there, 1);
    here.wait_sent(early);
    let within = send(&mut here, 2);
    arrives(&mut there, 2);
    here.wait_sent(within);

    wall.jump_to(1201, [&alice, &bob]);
    assert_eq!(here.wait_status(closed)["links"][0]["down_reason"], "cut");
    let between = send(&mut here, 3);
    let waits = why(&mut here);
    assert!(waits.starts_with("waiting for the contact over link `bob` at 06:53:20 UTC, in "), "{waits}");
    assert_eq!(here.status()["links"][0]["up"], false);

    wall.jump_to(2401, [&alice, &bob]);
    arrives(&mut there, 3);
    here.wait_sent(between);

    wall.jump_to(3001, [&alice, &bob]);
    here.wait_status(closed);
    send(&mut here, 4);
    assert_eq!(why(&mut here), "no further contact planned for link `bob`");
    assert_eq!(there.status()["counters"]["delivered"], 3);
}

#[test]
fn contacts_come_again_and_again_by_themselves() {
    let place = Place::new("contacts");
    let bob = Node::start(NodeSetup::new(config(BOB))).expect("it starts");
    let contact = "[[contact]]\nto = 'bob'\nafter = '200 ms'\nlasts = '400 ms'\nevery = '800 ms'\n";
    let text = alice(&bob, contact).replace("'memory'", &format!("'disk'\npath = '{}'", place.0.display()));
    let alice = Node::start(NodeSetup::new(config(&text))).expect("it starts");
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("inbox", 10_000);
    for seed in 0..3 {
        here.wait_status(|status| status["links"][0]["up"] == false);
        let sent = here.send("dtn://bob/inbox", &payload(1000, seed), MessageOptions::default());
        arrives(&mut there, seed);
        here.wait_sent(sent);
        here.wait_status(|status| status["links"][0]["up"] == true || status["bundles"] == 0);
    }
}
