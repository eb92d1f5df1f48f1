//! Control of the transmitter of a TNC in live nodes: inhibition, identification and beacons.

mod common;

use common::air::Air;
use common::{App, config, payload, start};
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::{Node, NodeSetup};
use longwire_proto::ax25::{Address, CommandResponse, Control, Frame, Modulo, Unnumbered};

fn node(air: &Air, at: usize, name: &str, callsign: &str, more: &str) -> String {
    format!(
        "node = 'dtn://{name}/'\n[storage]\nkind = 'memory'\n[ax25cl]\nretry-min = '50 ms'\nretry-max = '200 ms'\n\
         [[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = '{callsign}'\nturnaround = '300 ms'\nreconnect-min = '20 ms'\n{more}\n\
         [tnc.channel]\nrate-bps = 10_000_000\ntx-delay = '0 ms'\ntx-tail = '0 ms'\nslot-time = '0 ms'\n",
        air.at(at)
    )
}

const LINK: &str =
    "[[link]]\nname = 'bob'\nkind = 'ax25cl'\ntnc = 'vhf'\ncallsign = 'B0B-2'\npeer = 'dtn://bob/'\n";

fn is_to(frame: &Frame, to: &str, text: &str) -> bool {
    frame.address.destination.to_string() == to && frame.information == text.as_bytes()
}

#[test]
fn an_inhibited_transmitter_keys_nothing_and_identifies_itself_once_it_may() {
    let air = Air::with(3, None);
    let more = "inhibit = true\nidentification = 'de AL1CE'";
    let alice = start(config(&format!("{}{LINK}", node(&air, 0, "alice", "AL1CE-1", more))));
    let bob = start(config(&node(&air, 1, "bob", "B0B-2", "")));
    let mut guest = air.guest(2);
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("inbox", 1 << 20);
    let file = payload(3000, 1);
    here.send("dtn://bob/inbox", &file, MessageOptions::default());
    let inhibited = "waiting: transmission is inhibited";
    let status = here.wait_status(|status| {
        status["tncs"][0]["up"] == true && status["links"][0]["radio"]["state"] == inhibited
    });
    assert_eq!(status["tncs"][0]["inhibited"], true, "{status:#}");
    assert_eq!(status["tncs"][0]["counters"]["sent"], 0);
    here.ask(Request::Permit { name: "uhf".into() });
    let Reply::Error { what, hint, .. } = here.hear().head else { panic!("there is no such TNC") };
    assert_eq!((what.as_str(), hint.is_some()), ("no such TNC: `uhf`", true));
    here.ask(Request::Permit { name: "vhf".into() });
    let (delivery, got) = there.receive();
    assert!(got == file);
    there.take(delivery);
    here.wait_status(|status| status["bundles"] == 0);
    here.ask(Request::CutLink { name: "bob".into() });
    guest.hears(|frame| is_to(frame, "ID", "de AL1CE"));
    here.ask(Request::Inhibit { name: "vhf".into() });
    let status = here.wait_status(|status| status["tncs"][0]["inhibited"] == true);
    // A connection that had to be tried again ends with an identification of its own.
    assert!(status["tncs"][0]["counters"]["identifications_sent"].as_u64() >= Some(1));
}

#[test]
fn stations_are_listed_with_the_texts_of_their_beacons() {
    let air = Air::with(2, None);
    let alice = start(config(&node(&air, 0, "alice", "AL1CE-1", "")));
    let mut here = App::new(&alice);
    here.wait_status(|status| status["tncs"][0]["up"] == true);
    let more = "beacon = 'node of Bob'\nbeacon-interval = '30 s'";
    let mut guest = air.guest(1);
    // A beacon of a station that is no node, and a text that is an attack on a terminal.
    let beacon = |from: &str, text: &'static [u8]| {
        let call = |text: &str| text.parse().expect("a callsign");
        let address = Address::new(call(from), call("BEACON"), CommandResponse::Command, &[]);
        let control = Control::Unnumbered { function: Unnumbered::Information, poll_final: false };
        Frame { address, control, pid: 0xF0, information: text.into() }.to_bytes(Modulo::Eight)
    };
    guest.say(&beacon("EV1L", b"\x1b]0;title\x07"));
    guest.say(&beacon("CAR0L-3", b"node of Carol\r"));
    here.wait_status(|status| status["tncs"][0]["stations_heard"] == 2);
    here.ask(Request::Heard);
    let Reply::Heard { stations } = here.hear().head else { panic!("no list") };
    let mut found: Vec<_> =
        stations.iter().map(|heard| (&heard.callsign[..], heard.frames, heard.text.as_deref())).collect();
    found.sort();
    assert_eq!(found, [("CAR0L-3", 1, Some("node of Carol")), ("EV1L", 1, None)]);
    // The beacon setting makes sense; its time is tested with the engine.
    assert!(
        config(&node(&air, 1, "bob", "B0B-2", more))
            .explain()
            .contains("Beacon: \"node of Bob\" every 30 s.")
    );
}

/// A gateway of the start goes on without its operator's statement, whatever the file says of it by now.
#[test]
fn a_link_does_not_become_amateur_below_a_gateway_that_is_running() {
    let place = common::Place::new("amateur-gateway");
    let path = place.0.join("alice.toml");
    let text = |amateur: &str, plain: &str| {
        format!(
            "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[[link]]\nname = 'air'\nkind = 'aerotp'\n\
             address = '127.0.0.1:9'\npeer = 'dtn://bob/'\nopen = false\n{amateur}\n\
             [[gateway]]\nlisten-tcp = '127.0.0.1:0'\nlink = 'air'\nto-port = 80\n{plain}\n"
        )
    };
    let old = text("", "");
    std::fs::write(&path, &old).expect("it is written");
    let setup = NodeSetup { path: Some(path.clone()), ..NodeSetup::new(config(&old)) };
    let alice = Node::start(setup).expect("it starts");
    let mut here = App::new(&alice);
    let refused = |here: &mut App| {
        here.wait_status(|status| !status["configuration"]["refused"].is_null())["configuration"]["refused"]
            .as_str()
            .map(str::to_owned)
    };
    std::fs::write(&path, text("amateur = true", "plain = true")).expect("it is written");
    alice.reload();
    assert!(refused(&mut here).is_some_and(|what| what.contains("link `air` is amateur radio")));
}

/// An operator who has inhibited a transmitter is not surprised by it after a restart.
#[test]
fn inhibition_outlasts_a_restart_until_it_is_permitted() {
    let place = common::Place::new("inhibited");
    let air = Air::with(1, None);
    let text = node(&air, 0, "alice", "AL1CE-1", "");
    let text = text.replace("kind = 'memory'", &format!("path = '{}'", place.0.join("store").display()));
    let running = || {
        let alice = start(config(&text));
        let app = App::new(&alice);
        (alice, app)
    };
    let is_inhibited = |status: &serde_json::Value| status["tncs"][0]["inhibited"] == true;
    let (alice, mut here) = running();
    assert!(!is_inhibited(&here.status()));
    here.ask(Request::Inhibit { name: "vhf".into() });
    here.wait_status(is_inhibited);
    alice.stop();
    for _ in 0..2 {
        let (alice, mut here) = running();
        assert!(is_inhibited(&here.status()), "it transmits after a restart");
        alice.stop();
    }
    let (alice, mut here) = running();
    here.ask(Request::Permit { name: "vhf".into() });
    here.wait_status(|status| !is_inhibited(status));
    alice.stop();
    assert!(!is_inhibited(&running().1.status()));
    std::fs::write(place.0.join("store.inhibited"), [0xFF, 0xFE]).expect("it is written");
    let error = Node::start(NodeSetup::new(config(&text))).expect_err("nobody knows what is inhibited");
    assert!(error.what.contains("inhibited TNCs") && error.hint.is_some(), "{error:?}");
}

/// A station without links, which has transmitted since its last identification, identifies itself when its node stops.
#[test]
fn a_station_identifies_itself_when_its_node_stops() {
    for inhibited in [false, true] {
        let air = Air::with(3, None);
        let group = "[[link]]\nname = 'all'\nkind = 'uicl'\ntnc = 'vhf'\ncallsign = 'QST'\n\
                     uicl = { members = ['dtn://bob/'] }\n[[route]]\nto = 'dtn://news/*'\nvia = 'all'\n";
        let more = "identification = 'de AL1CE'";
        let alice = start(config(&format!("{}{group}", node(&air, 0, "alice", "AL1CE-1", more))));
        let mut guest = air.guest(2);
        let mut here = App::new(&alice);
        here.wait_status(|status| status["tncs"][0]["up"] == true);
        here.send("dtn://news/~all", &payload(50, 1), MessageOptions::default());
        guest.hears(|frame| frame.address.destination.to_string() == "QST");
        if inhibited {
            here.ask(Request::Inhibit { name: "vhf".into() });
            here.wait_status(|status| status["tncs"][0]["inhibited"] == true);
            assert_eq!(here.status()["tncs"][0]["counters"]["identifications_sent"], 0);
        }
        drop(here);
        alice.stop();
        if !inhibited {
            guest.hears(|frame| is_to(frame, "ID", "de AL1CE"));
            continue;
        }
        // The next frame on the channel is that of another station.
        let call = |text: &str| text.parse().expect("a callsign");
        let address = Address::new(call("CAR0L"), call("END"), CommandResponse::Command, &[]);
        let control = Control::Unnumbered { function: Unnumbered::Information, poll_final: false };
        let end = Frame { address, control, pid: 0xF0, information: "over".into() };
        air.guest(1).say(&end.to_bytes(Modulo::Eight));
        guest.hears(|frame| {
            assert!(!is_to(frame, "ID", "de AL1CE"), "it transmits although that is inhibited");
            frame.address.destination.to_string() == "END"
        });
    }
}
