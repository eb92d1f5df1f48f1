//! Bundles over packet radio: nodes with simulated TNCs, and faults during the transfer.

mod common;

use common::air::{Air, MultiDrop, Trouble};
use common::segments::Segments;
use common::{App, config, payload, start, web};
use longwire_node::Node;
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::view::Filter;
use longwire_proto::ax25::{
    Address, Callsign, CommandResponse, Control, Frame, Modulo, Supervisory, Unnumbered,
};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// A channel without delays, and links that fail quickly.
fn tnc(air: &Air, at: usize, callsign: &str) -> String {
    format!(
        "[storage]\nkind = 'memory'\n[agent]\nbackoff-min = '20 ms'\nbackoff-max = '100 ms'\n\
         [ax25cl]\nretry-min = '50 ms'\nretry-max = '200 ms'\n[ax25cm]\nreconnect-min = '50 ms'\nreconnect-max = '200 ms'\n\
         [[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = '{callsign}'\nturnaround = '300 ms'\n\
         reconnect-min = '20 ms'\nreconnect-max = '100 ms'\n\
         [tnc.channel]\nrate-bps = 10_000_000\ntx-delay = '0 ms'\ntx-tail = '0 ms'\nslot-time = '0 ms'\n[tnc.ax25]\nretries = 4\n",
        air.at(at)
    )
}

fn link(to: &str, kind: &str, callsign: &str, more: &str) -> String {
    format!(
        "[[link]]\nname = '{to}'\nkind = '{kind}'\ntnc = 'vhf'\ncallsign = '{callsign}'\npeer = 'dtn://{to}/'\n{more}\n"
    )
}

fn alice(air: &Air, kind: &str, more: &str) -> Node {
    let link = link("bob", kind, "b0b-2", more);
    start(config(&format!("node = 'dtn://alice/'\n{}{link}", tnc(air, 0, "al1ce-1"))))
}

fn bob(air: &Air) -> Node {
    start(config(&format!("node = 'dtn://bob/'\n{}", tnc(air, 1, "B0B-2"))))
}

/// Transfers a file in each direction at the same time; both arrive complete.
fn both_ways(here: &mut App, there: &mut App, length: usize, middle: impl FnOnce(&mut App, &mut App)) {
    let (out, back) = (payload(length, 1), payload(length, 2));
    here.register("inbox", 1 << 20);
    there.register("inbox", 1 << 20);
    here.wait_status(|status| status["links"][0]["up"] == true);
    here.send("dtn://bob/inbox", &out, MessageOptions::default());
    there.send("dtn://alice/inbox", &back, MessageOptions::default());
    middle(here, there);
    for (app, file) in [(&mut *there, out), (&mut *here, back)] {
        let (delivery, got) = app.receive();
        assert!(got == file, "every byte is as it was sent");
        app.take(delivery);
    }
    // Each node knows that the other has the file, and keeps nothing.
    for app in [here, there] {
        app.wait_status(|status| status["bundles"] == 0 && status["counters"]["forwarded"] == 1);
    }
}

#[test]
fn files_go_both_ways_over_one_link() {
    let air = Air::new();
    let (alice, bob) = (alice(&air, "ax25cl", ""), bob(&air));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    both_ways(&mut here, &mut there, 20_000, |_, _| {});
    assert_eq!(air.segments(Segments::again), [0, 0]);
    let acknowledged = air.segments(Segments::acknowledged);
    assert!(acknowledged.iter().all(|count| *count > 70), "{acknowledged:?}");
    let status = here.wait_status(|status| status["links"][0]["radio"]["state"] == "connected");
    let radio = &status["links"][0]["radio"];
    assert_eq!((&radio["callsign"], &radio["peer"]), (&"AL1CE-1".into(), &"B0B-2".into()));
    assert_eq!(status["tncs"][0]["up"], true);
    let there = there.status();
    assert_eq!(there["links"][0]["radio"]["peer"], "AL1CE-1", "{there:#}");
    assert_eq!(there["links"][0]["peer"], "dtn://alice/");
}

#[test]
fn files_go_both_ways_as_dtn2_sends_them() {
    let air = Air::new();
    let (alice, bob) = (alice(&air, "ax25cm", ""), bob(&air));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    both_ways(&mut here, &mut there, 20_000, |_, _| {});
    assert_eq!(here.status()["links"][0]["tcpcl"], 3);
    assert_eq!(there.status()["links"][0]["radio"]["convergence"], "ax25cm");
}

/// Waits for the planned fault, and then until it is noticed, by the state of the TNC and the text for the link over it; returns
/// that text.
#[track_caller]
fn until_noticed(air: &Air, app: &mut App, noticed: impl Fn(bool, &str) -> bool) -> String {
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let state = |status: &serde_json::Value| word(&status["links"][0]["radio"]["state"]);
    let status = app
        .wait_status(|status| air.is_troubled() && noticed(status["tncs"][0]["up"] == true, &state(status)));
    state(&status)
}

#[test]
fn a_tnc_that_ends_in_the_middle_costs_nothing_that_was_acknowledged() {
    let air = Air::new();
    let (alice, bob) = (alice(&air, "ax25cl", ""), bob(&air));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    air.plan(40, Trouble::Gone(0));
    both_ways(&mut here, &mut there, 20_000, |here, _| {
        let state = until_noticed(&air, here, |up, _| !up);
        assert!(state.starts_with("TNC disconnected; waiting bundles are kept"), "{state}");
        let status = here.wait_status(|status| status["tncs"][0]["attempts_failed"].as_u64() > Some(1));
        assert_eq!(status["tncs"][0]["why_down"], "connection refused");
        assert!(status["bundles"].as_u64() >= Some(1), "it is kept");
        air.heal();
    });
    assert_eq!(air.segments(Segments::again), [0, 0], "no acknowledged segment is sent again");
    assert_eq!(here.status()["tncs"][0]["counters"]["connections"], 2);
}

#[test]
fn a_peer_that_is_not_heard_for_a_while_costs_nothing_that_was_acknowledged() {
    for side in [0, 1] {
        let air = Air::new();
        let (alice, bob) = (alice(&air, "ax25cl", ""), bob(&air));
        let (mut here, mut there) = (App::new(&alice), App::new(&bob));
        air.plan(60, Trouble::Unheard(side));
        both_ways(&mut here, &mut there, 20_000, |here, _| {
            let state = until_noticed(&air, here, |_, state| state.contains("no answer, retry"));
            assert!(state.ends_with("of 4"), "{state}");
            air.heal();
        });
        assert_eq!(air.segments(Segments::again), [0, 0], "no acknowledged segment is sent again");
    }
}

/// Long before a whole piece is acknowledged, an operator sees how much of a bundle was transmitted.
#[test]
fn how_much_of_a_bundle_was_transmitted_is_told_while_it_goes() {
    const LENGTH: u64 = 20_000;
    for kind in ["ax25cl", "ax25cm"] {
        let air = Air::new();
        let (alice, bob) = (alice(&air, kind, ""), bob(&air));
        let (mut here, mut there) = (App::new(&alice), App::new(&bob));
        let file = payload(LENGTH as usize, 1);
        there.register("inbox", 1 << 20);
        here.wait_status(|status| status["links"][0]["up"] == true);
        air.plan(50, Trouble::Unheard(1));
        here.send("dtn://bob/inbox", &file, MessageOptions::default());
        until_noticed(&air, &mut here, |_, state| state.contains("no answer, retry"));
        here.ask(Request::Bundles { limit: 10, after: None, filter: Filter::default() });
        let page = here.wait(|said| match said.head {
            Reply::Bundles { page } => Some(page),
            _ => None,
        });
        let bundle = &page.bundles[0];
        assert!(bundle.safe_bytes <= bundle.transmitted_bytes, "{kind}: {bundle:?}");
        assert!((1..LENGTH).contains(&bundle.transmitted_bytes), "{kind}: {bundle:?}");
        air.heal();
        let (delivery, got) = there.receive();
        assert!(got == file, "every byte is as it was sent");
        there.take(delivery);
    }
}

/// A fault so long that the link fails: the next link resumes where this one stopped.
#[test]
fn a_link_that_is_given_up_goes_on_over_the_next_one() {
    let air = Air::new();
    let (alice, bob) = (alice(&air, "ax25cl", ""), bob(&air));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    air.plan(80, Trouble::Unheard(1));
    both_ways(&mut here, &mut there, 20_000, |here, _| {
        until_noticed(&air, here, |_, state| state.starts_with("link lost") || state.starts_with("calling"));
        air.heal();
    });
    assert_eq!(air.segments(Segments::again), [0, 0], "no acknowledged segment is sent again");
    let status = here.status();
    let counters = &status["links"][0]["counters"];
    assert_eq!(counters["sessions"], 1, "{counters:#}");
    assert!(counters["resumed"].as_u64() >= Some(1), "{counters:#}");
    assert!(air.segments(Segments::calls) > 1, "it was called again");
}

#[test]
fn several_neighbours_share_a_tnc() {
    let air = Air::with(3, None);
    let links = format!("{}{}", link("bob", "ax25cl", "B0B-2", ""), link("carol", "ax25cm", "CAR0L", ""));
    let alice = start(config(&format!("node = 'dtn://alice/'\n{}{links}", tnc(&air, 0, "AL1CE-1"))));
    let carol = start(config(&format!("node = 'dtn://carol/'\n{}", tnc(&air, 2, "CAR0L"))));
    let bob = bob(&air);
    let [mut here, mut one, mut other] = [&alice, &bob, &carol].map(App::new);
    let names = ["bob", "carol"];
    for (app, (at, name)) in [&mut one, &mut other].into_iter().zip(names.iter().enumerate()) {
        app.register("inbox", 1 << 20);
        here.send(&format!("dtn://{name}/inbox"), &payload(10_000, at as u64), MessageOptions::default());
    }
    for (app, at) in [&mut one, &mut other].into_iter().zip(0..) {
        assert!(app.receive().1 == payload(10_000, at), "every byte is as it was sent");
        assert_eq!(app.status()["links"].as_array().map(Vec::len), Some(1), "who is called sees its caller");
    }
    let status = here.wait_status(|status| status["counters"]["forwarded"] == 2);
    assert_eq!(status["tncs"].as_array().map(Vec::len), Some(1));
    let layers = [0, 1].map(|at: usize| status["links"][at]["radio"]["convergence"].clone());
    assert_eq!(layers, ["ax25cl", "ax25cm"]);
}

/// One line with two TNCs, each with its own channel: a neighbour on each channel.
#[test]
fn links_go_over_several_ports_of_one_line() {
    let airs = [Air::new(), Air::new()];
    let line = MultiDrop::of([airs[0].at(0), airs[1].at(0)]);
    let here = |air: usize, name: &str| {
        let text = tnc(&airs[air], 0, &format!("AL1CE-{}", air + 1));
        let text = text.replace(&airs[air].at(0).to_string(), &line.place.to_string());
        let text = text.replace("name = 'vhf'", &format!("name = '{name}'"))
            + &format!("[tnc.kiss]\nport = {air}\n");
        text[if air == 0 { 0 } else { text.find("[[tnc]]").expect("it has one") }..].to_owned()
    };
    let to = |name: &str, callsign: &str, tnc: &str| {
        link(name, "ax25cl", callsign, "").replace("tnc = 'vhf'", &format!("tnc = '{tnc}'"))
    };
    let text =
        [here(0, "vhf"), here(1, "uhf"), to("bob", "B0B-2", "vhf"), to("carol", "CAR0L", "uhf")].concat();
    let alice = start(config(&format!("node = 'dtn://alice/'\n{text}")));
    let bob = bob(&airs[0]);
    let carol = start(config(&format!("node = 'dtn://carol/'\n{}", tnc(&airs[1], 1, "CAR0L"))));
    let mut here = App::new(&alice);
    let mut there = [&bob, &carol].map(App::new);
    for (app, name) in there.iter_mut().zip(["bob", "carol"]) {
        app.register("inbox", 1 << 20);
        here.send(
            &format!("dtn://{name}/inbox"),
            &payload(8000, name.len() as u64),
            MessageOptions::default(),
        );
    }
    here.register("inbox", 1 << 20);
    for (app, name) in there.iter_mut().zip(["bob", "carol"]) {
        assert!(app.receive().1 == payload(8000, name.len() as u64), "every byte is as it was sent");
        app.send("dtn://alice/inbox", &payload(3000, 9), MessageOptions::default());
        assert!(here.receive().1 == payload(3000, 9), "every byte is as it was sent");
    }
    let status = here.status();
    for at in 0..2 {
        assert_eq!(status["tncs"][at]["up"], true);
        assert_eq!(status["tncs"][at]["counters"]["connections"], 1);
        assert!(status["tncs"][at]["counters"]["foreign"].as_u64() > Some(0), "it hears the other's");
        assert_eq!(airs[at].segments(Segments::again), [0, 0]);
    }
    drop((here, alice));
    assert_eq!(line.lines(), 1);
}

#[test]
fn a_digipeater_stands_between_two_that_do_not_hear_each_other() {
    let air = Air::with(3, Some([0, 1]));
    let digipeater = tnc(&air, 2, "D1G1").replace("name = 'vhf'", "name = 'vhf'\nrepeats = true");
    let _carol = start(config(&format!("node = 'dtn://carol/'\n{digipeater}")));
    let (alice, bob) = (alice(&air, "ax25cl", "path = ['D1G1']"), bob(&air));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    both_ways(&mut here, &mut there, 5000, |_, _| {});
    assert_eq!(here.status()["links"][0]["radio"]["via"], serde_json::json!(["D1G1"]));
    assert_eq!(there.status()["links"][0]["radio"]["via"], serde_json::json!(["D1G1"]));
}

#[test]
fn two_that_call_each_other_have_one_link() {
    let air = Air::new();
    let back = link("alice", "ax25cl", "AL1CE-1", "");
    let bob = start(config(&format!("node = 'dtn://bob/'\n{}{back}", tnc(&air, 1, "B0B-2"))));
    let alice = alice(&air, "ax25cl", "");
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    here.register("inbox", 1 << 20);
    there.register("inbox", 1 << 20);
    let (out, returned) = (payload(10_000, 1), payload(10_000, 2));
    here.send("dtn://bob/inbox", &out, MessageOptions::default());
    there.send("dtn://alice/inbox", &returned, MessageOptions::default());
    assert!(there.receive().1 == out && here.receive().1 == returned, "every byte is as it was sent");
}

/// The log, the events and the metrics agree with the status.
#[test]
fn a_lost_tnc_is_told_to_whoever_watches() {
    let air = Air::new();
    let _bob = bob(&air);
    let alice = alice(&air, "ax25cl", "[http]\nlisten = '127.0.0.1:0'\n");
    let mut here = App::new(&alice);
    here.wait_status(|status| status["links"][0]["up"] == true);
    let at = alice.http_address().expect("it is on");
    let value = |name: &str| -> f64 {
        let text = web::get(at, "/metrics").text();
        let line =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
    };
    assert_eq!(value("longwire_tnc_up{tnc=\"vhf\"}") as u64, 1);
    assert!(value("longwire_tnc_sent_total{tnc=\"vhf\"}") > 0.0);
    assert_eq!(value("longwire_link_up{link=\"bob\"}") as u64, 1);
    air.trouble(Trouble::Gone(0));
    here.wait_status(|status| status["tncs"][0]["up"] == false);
    assert_eq!(value("longwire_tnc_up{tnc=\"vhf\"}") as u64, 0);
    air.heal();
    here.wait_status(|status| status["tncs"][0]["up"] == true);
    // Not only the first time.
    air.trouble(Trouble::Gone(0));
    here.wait_status(|status| status["tncs"][0]["up"] == false);
    let told = events_of_tncs(at, 4);
    let names: Vec<_> = told.iter().map(|event| event["event"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["tnc_up", "tnc_down", "tnc_up", "tnc_down"]);
    let down = &told[1];
    for (key, words) in
        [("why", "connection closed"), ("kept", "stay in the store"), ("hint", "KISS over TCP")]
    {
        assert!(down[key].as_str().is_some_and(|said| said.contains(words)), "{down:#}");
    }
}

/// The first `count` events about TNCs.
fn events_of_tncs(at: std::net::SocketAddr, count: usize) -> Vec<serde_json::Value> {
    let mut stream = web::connect(at);
    let request = format!("GET /events?after=0 HTTP/1.1\r\nhost: {at}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let lines = BufReader::new(stream).lines().map(|line| line.expect("an event in time"));
    let data = lines.filter_map(|line| Some(line.strip_prefix("data: ")?.to_owned()));
    let events = data.map(|data| serde_json::from_str::<serde_json::Value>(&data).expect("JSON"));
    events
        .filter(|event| event["event"].as_str().is_some_and(|name| name.starts_with("tnc")))
        .take(count)
        .collect()
}

/// A TNC on a serial line: a pseudo-terminal, whose far end is connected to the simulated TNC over TCP.
#[test]
fn a_tnc_may_be_on_a_serial_line() {
    let air = Air::new();
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let path = ptsname(&master, vec![]).expect("it has a name").into_string().expect("of letters");
    let (mut heard, mut said) = (File::from(master.try_clone().expect("a copy")), File::from(master));
    let mut line = TcpStream::connect(air.at(0)).expect("the TNC takes programs");
    let mut back = line.try_clone().expect("a copy");
    // Each thread ends when the other side of its line ends.
    let there = std::thread::spawn(move || {
        let _ = std::io::copy(&mut heard, &mut line);
        let _ = line.shutdown(std::net::Shutdown::Both);
    });
    let here = std::thread::spawn(move || std::io::copy(&mut back, &mut said).is_ok());
    let serial = tnc(&air, 0, "AL1CE-1").replace(
        &format!("address = '{}'", air.at(0)),
        &format!("serial = '{path}'\nserial-rate-bps = 38_400"),
    );
    let link = link("bob", "ax25cl", "B0B-2", "");
    let (alice, bob) = (start(config(&format!("node = 'dtn://alice/'\n{serial}{link}"))), bob(&air));
    let (mut one, mut other) = (App::new(&alice), App::new(&bob));
    both_ways(&mut one, &mut other, 5000, |_, _| {});
    assert_eq!(one.status()["tncs"][0]["address"], format!("{path}@38400"));
    drop((one, alice));
    there.join().expect("it ends");
    here.join().expect("it ends");
}

/// Links over a TNC are added and removed by a reload; TNCs by a restart.
#[test]
fn a_link_over_a_tnc_may_come_later() {
    let air = Air::new();
    let bob = bob(&air);
    let place = common::Place::new("packet-reload");
    let path = place.0.join("node.toml");
    let text = format!("node = 'dtn://alice/'\n{}", tnc(&air, 0, "AL1CE-1"));
    std::fs::write(&path, &text).expect("it is written");
    let setup =
        longwire_node::NodeSetup { path: Some(path.clone()), ..longwire_node::NodeSetup::new(config(&text)) };
    let alice = Node::start(setup).expect("it starts");
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    std::fs::write(&path, format!("{text}{}", link("bob", "ax25cl", "B0B-2", ""))).expect("it is written");
    alice.reload();
    both_ways_after(&mut here, &mut there);
    std::fs::write(&path, &text).expect("it is written");
    alice.reload();
    here.wait_status(|status| status["links"].as_array().is_some_and(Vec::is_empty));
    there.wait_status(|status| status["links"].as_array().is_some_and(Vec::is_empty));
}

/// The error for a link added by a callsign explains how to add it.
#[test]
fn a_link_over_a_tnc_is_not_added_by_its_callsign() {
    let air = Air::new();
    let alice = start(config(&format!("node = 'dtn://alice/'\n{}", tnc(&air, 0, "AL1CE-1"))));
    let mut here = App::new(&alice);
    here.ask(Request::AddLink { name: "bob".into(), address: "B0B-2".into() });
    let Reply::Error { what, hint, .. } = here.hear().head else { panic!("it is not refused") };
    assert_eq!(what, "`B0B-2` is a callsign; this command adds TCP links only");
    assert!(hint.is_some_and(|hint| hint.contains("[[link]]") && hint.contains("/reload")));
    assert_eq!(here.status()["links"].as_array().map(Vec::len), Some(0));
}

/// The link comes up by itself.
fn both_ways_after(here: &mut App, there: &mut App) {
    here.wait_status(|status| status["links"][0]["up"] == true);
    both_ways(here, there, 1000, |_, _| {});
}

#[test]
fn a_node_that_ends_in_good_order_ends_its_links() {
    let air = Air::new();
    let (alice, bob) = (alice(&air, "ax25cl", ""), bob(&air));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    both_ways(&mut here, &mut there, 1000, |_, _| {});
    there.wait_status(|status| status["links"][0]["radio"]["state"] == "connected");
    drop(here);
    alice.stop();
    there.wait_status(|status| status["links"].as_array().is_some_and(Vec::is_empty));
}

/// Other users of the channel: operators at keyboards, beacons, programs that are not nodes.
#[test]
fn callers_that_are_no_nodes_are_hung_up_on() {
    let air = Air::new();
    let bob = bob(&air);
    let mut there = App::new(&bob);
    there.wait_status(|status| status["tncs"][0]["up"] == true);
    let mut guest = air.guest(0);
    let stations = ["GUEST", "B0B-2"].map(|name| name.parse::<Callsign>().expect("a callsign"));
    let mut say = |control: Control, information: &[u8]| {
        let address = Address::new(stations[0], stations[1], CommandResponse::Command, &[]);
        let frame = Frame { address, control, pid: 0xf0, information: information.to_vec().into() };
        guest.say(&frame.to_bytes(Modulo::Eight));
    };
    say(Control::Unnumbered { function: Unnumbered::Information, poll_final: false }, b"beacon");
    say(Control::Unnumbered { function: Unnumbered::SetMode, poll_final: true }, b"");
    say(Control::Information { send: 0, receive: 0, poll: true }, b"hello, is anybody there?\r");
    let hangs_up = Control::Unnumbered { function: Unnumbered::Disconnect, poll_final: true };
    guest.hears(|frame| frame.control == hangs_up);
    let status = there.status();
    assert_eq!(status["links"].as_array().map(Vec::len), Some(0), "{status:#}");
}

/// Basis of the tests above: the monitor of the channel detects an acknowledged segment that is resent.
#[test]
fn a_segment_that_is_sent_again_is_seen() {
    let frame = |from: usize, control: Control, length: usize| {
        let stations = ["AL1CE", "B0B"].map(|name| name.parse::<Callsign>().expect("a callsign"));
        let address = Address::new(stations[from], stations[1 - from], CommandResponse::Command, &[]);
        let information = payload(length, 1);
        Frame { address, control, pid: 0xf0, information }.to_bytes(Modulo::Eight)
    };
    let call = Control::Unnumbered { function: Unnumbered::SetMode, poll_final: true };
    let segment = Control::Information { send: 0, receive: 0, poll: true };
    let ready = Control::Supervisory { function: Supervisory::ReceiveReady, receive: 1, poll_final: true };
    let mut segments = Segments::default();
    for (from, control, length) in [(0, call, 0), (0, segment, 200), (0, segment, 200)] {
        segments.hear(from, &frame(from, control, length));
    }
    assert_eq!(segments.again(), [0, 0], "nobody had acknowledged it");
    for (from, control, length) in [(1, ready, 0), (0, call, 0), (0, segment, 200)] {
        segments.hear(from, &frame(from, control, length));
    }
    assert_eq!((segments.again(), segments.acknowledged(), segments.calls()), ([1, 0], [1, 0], 2));
}

/// Both stations see the transmissions of both: their own as they hand them over, those of the other as they end.
#[test]
fn who_had_the_channel_is_listed() {
    let air = Air::new();
    let (alice, bob) = (alice(&air, "ax25cl", ""), bob(&air));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    both_ways(&mut here, &mut there, 5_000, |_, _| {});
    for (app, own, other) in [(&mut here, "AL1CE-1", "B0B-2"), (&mut there, "B0B-2", "AL1CE-1")] {
        app.ask(Request::Transmissions);
        let all = app.wait(|said| match said.head {
            Reply::Transmissions { transmissions } => Some(transmissions),
            _ => None,
        });
        for (from, to, is_own) in [(own, other, true), (other, own, false)] {
            let of = all.iter().filter(|known| (&known.from[..], &known.to[..]) == (from, to));
            let (mut frames, mut bytes) = (0, 0);
            for known in of {
                assert_eq!(
                    (&known.tnc[..], &known.source[..], known.own),
                    ("vhf", from, is_own),
                    "{known:?}"
                );
                assert!(known.lasts_s > 0.0 && known.began_s >= 0.0, "{known:?}");
                (frames, bytes) = (frames + known.frames, bytes + known.bytes);
            }
            // The file, and more than one frame of it.
            assert!(
                frames > 5 && bytes > 5_000,
                "{from} to {to}: {frames} frames, {bytes} bytes of {all:#?}"
            );
        }
    }
}

/// Two nodes without links find each other by their beacons; the link opens for a bundle, closes when it is idle, and opens again.
#[test]
fn nodes_find_each_other_by_their_beacons() {
    let air = Air::new();
    let node = |at: usize, name: &str, callsign: &str| {
        let tnc = tnc(&air, at, callsign).replace(
            "[tnc.channel]",
            "discovery = true\nbeacon = 'on the air'\nbeacon-interval = '30 s'\n[tnc.channel]",
        );
        let text = format!(
            "node = 'dtn://{name}/'\n[discovery]\npeers = ['dtn://*']\ngroups = []\nidle = '1 s'\n{tnc}"
        );
        start(config(&text))
    };
    let (alice, bob) = (node(0, "alice", "AL1CE-1"), node(1, "bob", "B0B-2"));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("inbox", 1 << 20);
    for number in 1..=2 {
        let sent = payload(3000, number);
        here.send("dtn://bob/inbox", &sent, MessageOptions::default());
        let (delivery, received) = there.receive();
        assert!(received == sent, "every byte is as it was sent");
        there.take(delivery);
        if number == 2 {
            break;
        }
        let idle = |status: &serde_json::Value| status["links"][0]["up"] == false && status["bundles"] == 0;
        let status = here.wait_status(idle);
        let link = &status["links"][0];
        assert_eq!((&link["name"], &link["found"]), (&"found-bob".into(), &true.into()), "{link:#}");
        assert_eq!(link["counters"]["sessions"], number);
    }
    here.ask(Request::Heard);
    let text = here.wait(|said| match said.head {
        Reply::Heard { stations } => stations.first().and_then(|station| station.text.clone()),
        _ => None,
    });
    assert_eq!(text, ">dtn://bob/ on the air");
}
