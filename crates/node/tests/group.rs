//! Bundles to a group over packet radio: one sender and three receivers with simulated TNCs.

mod common;

use common::air::{Air, Trouble};
use common::{App, config, payload, start};
use longwire_node::Node;
use longwire_node::message::MessageOptions;
use std::collections::BTreeSet;

const NAMES: [&str; 4] = ["alice", "bob", "carol", "dave"];
/// Endpoint that all receivers share; it belongs to no node.
const NEWS: &str = "dtn://news/~all";

/// A station in the group `QST`.
fn node(air: &Air, at: usize, more: &str) -> Node {
    start(config(&format!(
        "node = 'dtn://{}/'\n[storage]\nkind = 'memory'\n[agent]\nbackoff-min = '20 ms'\nbackoff-max = '100 ms'\n\
         [uicl]\naccess = '50 ms'\nanswer-slot = '50 ms'\nincomplete-max = '2 s'\n\
         [[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = 'GR0UP-{}'\nreconnect-min = '20 ms'\n\
         [tnc.channel]\nrate-bps = 10_000_000\ntx-delay = '0 ms'\ntx-tail = '0 ms'\nslot-time = '0 ms'\n\
         [[link]]\nname = 'all'\nkind = 'uicl'\ntnc = 'vhf'\ncallsign = 'qst'\n{more}\n",
        NAMES[at],
        air.at(at),
        at + 1
    )))
}

/// The sender with these members, and the receivers.
fn stations(air: &Air, members: &[&str]) -> (Node, Vec<Node>) {
    let members: Vec<String> = members.iter().map(|name| format!("'dtn://{name}/'")).collect();
    let route = "[[route]]\nto = 'dtn://news/*'\nvia = 'all'\n";
    let alice =
        node(air, 0, &format!("uicl = {{ members = [{}], silent-max = 3 }}\n{route}", members.join(", ")));
    (alice, (1..4).map(|at| node(air, at, "")).collect())
}

fn listeners(nodes: &[Node]) -> Vec<App> {
    let mut apps: Vec<App> = nodes.iter().map(App::new).collect();
    for app in &mut apps {
        app.register(NEWS, 1 << 20);
        app.wait_status(|status| status["links"][0]["up"] == true && status["tncs"][0]["up"] == true);
    }
    apps
}

#[test]
fn all_members_have_every_byte_where_a_quarter_of_the_frames_is_lost() {
    let air = Air::with(4, None);
    let (alice, nodes) = stations(&air, &NAMES[1..]);
    let (mut here, mut there) = (App::new(&alice), listeners(&nodes));
    let status = here.wait_status(|status| status["links"][0]["radio"]["state"] == "listening");
    assert_eq!(status["links"][0]["radio"]["convergence"], "uicl");
    assert_eq!(status["links"][0]["radio"]["peer"], "QST");
    air.lose(0.25);
    let files = [payload(10_000, 1), payload(5000, 2)];
    for file in &files {
        here.send(NEWS, file, MessageOptions::default());
    }
    for app in &mut there {
        // Collected per receiver: the order is not guaranteed.
        let mut got = BTreeSet::new();
        for _ in &files {
            let (delivery, file) = app.receive();
            app.take(delivery);
            got.insert(file);
        }
        assert!(got == BTreeSet::from(files.clone()), "every byte is as it was sent");
    }
    // The sender knows that all have the bundles, and keeps none.
    let status = here.wait_status(|status| status["bundles"] == 0);
    assert_eq!(status["counters"]["forwarded"], 2);
    let counters = &status["links"][0]["counters"];
    assert!(counters["segments_repeated"].as_u64() > Some(0), "{counters:#}");
    for app in &mut there {
        assert_eq!(app.wait_status(|status| status["bundles"] == 0)["counters"]["delivered"], 2);
    }
}

/// An accepted bundle stays until all members have it; the others get it once.
#[test]
fn a_bundle_stays_until_all_members_have_it() {
    let air = Air::with(4, None);
    let (alice, nodes) = stations(&air, &NAMES[1..]);
    let (mut here, mut there) = (App::new(&alice), listeners(&nodes));
    here.wait_status(|status| status["links"][0]["up"] == true);
    air.trouble(Trouble::Gone(3));
    let file = payload(2000, 3);
    here.send(NEWS, &file, MessageOptions::default());
    for app in &mut there[..2] {
        let (delivery, got) = app.receive();
        assert!(got == file, "every byte is as it was sent");
        app.take(delivery);
    }
    let status =
        here.wait_status(|status| status["links"][0]["counters"]["members_missed"].as_u64() > Some(0));
    assert_eq!((&status["bundles"], &status["counters"]["forwarded"]), (&1.into(), &0.into()));
    air.heal();
    let (delivery, got) = there[2].receive();
    assert!(got == file, "every byte is as it was sent");
    there[2].take(delivery);
    here.wait_status(|status| status["bundles"] == 0);
    for app in &mut there {
        assert_eq!(app.status()["counters"]["delivered"], 1, "nobody got it twice");
    }
}

/// Without members: every station that listens gets the bundle, and three unanswered questions end the transfer.
#[test]
fn whoever_listens_gets_what_is_for_nobody_in_particular() {
    let air = Air::with(4, None);
    let (alice, nodes) = stations(&air, &[]);
    let (mut here, mut there) = (App::new(&alice), listeners(&nodes));
    here.wait_status(|status| status["links"][0]["up"] == true && status["tncs"][0]["up"] == true);
    air.wait_for_programs();
    let file = payload(3000, 4);
    here.send(NEWS, &file, MessageOptions::default());
    let status = here.wait_status(|status| status["bundles"] == 0);
    assert_eq!(status["links"][0]["counters"]["queries_sent"], 3);
    for app in &mut there {
        assert!(app.receive().1 == file, "every byte is as it was sent");
    }
}
