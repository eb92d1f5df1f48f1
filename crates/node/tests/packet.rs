//! Bundles over packet radio: nodes whose TNCs are played by the test, with troubles in the middle.

mod common;

use common::air::{Air, Trouble};
use common::segments::Segments;
use common::{App, DEADLINE, config, payload, start};
use longwire_node::Node;
use longwire_node::message::Options;
use longwire_proto::ax25::{Address, Callsign, Control, Frame, Modulo, Role, Supervisory, Unnumbered};

/// A channel on which nothing takes long, and links that are given up soon.
fn tnc(air: &Air, at: usize, callsign: &str) -> String {
    format!(
        "[storage]\nkind = 'memory'\n[agent]\nbackoff-min = '20 ms'\nbackoff-max = '100 ms'\n\
         [ax25cl]\nretry-min = '50 ms'\nretry-max = '200 ms'\n[ax25cm]\nreconnect-min = '50 ms'\nreconnect-max = '200 ms'\n\
         [[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = '{callsign}'\nturnaround = '300 ms'\n\
         [tnc.kiss]\nrate-bps = 10_000_000\ntx-delay = '0 ms'\ntx-tail = '0 ms'\nslot-time = '0 ms'\n\
         reconnect-min = '20 ms'\nreconnect-max = '100 ms'\n[tnc.ax25]\nretries = 4\n",
        air.at(at)
    )
}

fn alice(air: &Air, kind: &str, more: &str) -> Node {
    let link = format!(
        "[[link]]\nname = 'bob'\nkind = '{kind}'\ntnc = 'vhf'\ncallsign = 'b0b-2'\npeer = 'dtn://bob/'\n{more}"
    );
    start(config(&format!("node = 'dtn://alice/'\n{}{link}", tnc(air, 0, "al1ce-1"))))
}

fn bob(air: &Air) -> Node {
    start(config(&format!("node = 'dtn://bob/'\n{}", tnc(air, 1, "B0B-2"))))
}

/// A file each way at the same time, each whole.
fn both_ways(here: &mut App, there: &mut App, length: usize, middle: impl FnOnce(&mut App, &mut App)) {
    let (out, back) = (payload(length, 1), payload(length, 2));
    here.register("inbox", 1 << 20);
    there.register("inbox", 1 << 20);
    here.wait_status(|status| status["links"][0]["up"] == true);
    here.send("dtn://bob/inbox", &out, Options::default());
    there.send("dtn://alice/inbox", &back, Options::default());
    middle(here, there);
    for (app, file) in [(&mut *there, out), (&mut *here, back)] {
        let (delivery, got) = app.receive();
        assert!(got == file, "every byte is as it was sent");
        app.take(delivery);
    }
    // Each has heard that the other has it, and keeps nothing.
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

/// The node's words about its TNC, and about the link over it.
fn words(app: &mut App) -> (bool, String) {
    let status = app.status();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    (status["tncs"][0]["up"] == true, word(&status["links"][0]["radio"]["state"]))
}

/// Waits until the planned trouble is there, and then until it has been noticed.
fn until_noticed(air: &Air, app: &mut App, noticed: impl Fn(bool, &str) -> bool) -> String {
    let began = std::time::Instant::now();
    loop {
        let (up, state) = words(app);
        if air.is_troubled() && noticed(up, &state) {
            return state;
        }
        assert!(began.elapsed() < DEADLINE, "not in time: {up} {state}");
        std::thread::yield_now();
    }
}

#[test]
fn a_tnc_that_ends_in_the_middle_costs_nothing_that_was_acknowledged() {
    let air = Air::new();
    let (alice, bob) = (alice(&air, "ax25cl", ""), bob(&air));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    air.plan(40, Trouble::Gone(0));
    both_ways(&mut here, &mut there, 20_000, |here, _| {
        let state = until_noticed(&air, here, |up, _| !up);
        assert!(state.starts_with("its TNC is gone; what waits is kept"), "{state}");
        let status = here.wait_status(|status| status["tncs"][0]["attempts_failed"].as_u64() > Some(1));
        assert_eq!(status["tncs"][0]["why_down"], "nobody listens there");
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

/// So long that the link is given up: the next one goes on where it broke off.
#[test]
fn a_link_that_is_given_up_goes_on_over_the_next_one() {
    let air = Air::new();
    let (alice, bob) = (alice(&air, "ax25cl", ""), bob(&air));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    air.plan(80, Trouble::Unheard(1));
    both_ways(&mut here, &mut there, 20_000, |here, _| {
        until_noticed(&air, here, |_, state| state.starts_with("the link is lost") || state == "calling");
        air.heal();
    });
    assert_eq!(air.segments(Segments::again), [0, 0], "no acknowledged segment is sent again");
    let status = here.status();
    let counters = &status["links"][0]["counters"];
    assert_eq!((&counters["sessions"], &counters["resumed"]), (&1.into(), &1.into()), "{counters:#}");
    assert!(air.segments(Segments::calls) > 1, "it was called again");
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

/// Others speak on the channel: people at keyboards, beacons, programs that are no nodes.
#[test]
fn callers_that_are_no_nodes_are_hung_up_on() {
    let air = Air::new();
    let bob = bob(&air);
    let mut there = App::new(&bob);
    there.wait_status(|status| status["tncs"][0]["up"] == true);
    let mut guest = air.guest(0);
    let stations = ["GUEST", "B0B-2"].map(|name| name.parse::<Callsign>().expect("a callsign"));
    let mut say = |control: Control, information: &[u8]| {
        let address = Address::new(stations[0], stations[1], Role::Command, &[]);
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

/// What the stories above rest on: whoever listens sees it when an acknowledged segment is sent again.
#[test]
fn a_segment_that_is_sent_again_is_seen() {
    let frame = |from: usize, control: Control, length: usize| {
        let stations = ["AL1CE", "B0B"].map(|name| name.parse::<Callsign>().expect("a callsign"));
        let address = Address::new(stations[from], stations[1 - from], Role::Command, &[]);
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
