//! Bundles between two nodes, each with its own Dire Wolf; the channel is cut in the middle and restored.

use crate::common::segments::Segments;
use crate::common::{App, config, payload, start};
use crate::direwolf::{Air, Rig, is_installed};
use longwire_node::Node;
use longwire_node::message::MessageOptions;
use longwire_proto::discovery::aprs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const AIR: Air = Air { rate_bps: 9600, window: 7, destroyed_percent: 0, digipeater: false };

/// Nodes over the two stations of a rig.
struct Pair {
    rig: Rig,
    nodes: [Node; 2],
    heard: Segments,
}

impl Pair {
    /// `retries`: number of unanswered retries after which a link fails.
    fn start(name: &str, retries: u8) -> Pair {
        Pair::speaking(name, retries, Rig::kiss)
    }

    /// `way`: returns the address of a station's TNC.
    fn speaking(name: &str, retries: u8, way: impl Fn(&Rig, usize) -> String) -> Pair {
        let rig = Rig::start(name, AIR);
        let text = |at: usize, own: &str, callsign: &str| {
            format!(
                "node = 'dtn://{own}/'\n[storage]\nkind = 'memory'\n[ax25cl]\nretry-min = '1 s'\nretry-max = '2 s'\n\
                 [[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = '{callsign}'\n[tnc.channel]\nrate-bps = {}\n\
                 tx-delay = '150 ms'\nslot-time = '20 ms'\n[tnc.ax25]\nversion = 'plain'\nretries = {retries}\n",
                way(&rig, at),
                AIR.rate_bps
            )
        };
        let link =
            "[[link]]\nname = 'bob'\nkind = 'ax25cl'\ntnc = 'vhf'\ncallsign = 'BOB'\npeer = 'dtn://bob/'\n";
        let alice = start(config(&format!("{}{link}", text(0, "alice", "ALICE"))));
        let bob = start(config(&text(1, "bob", "BOB")));
        Pair { rig, nodes: [alice, bob], heard: Segments::default() }
    }

    /// Records the frames since the last call; from now on the channel is cut, or not.
    fn cut(&mut self, cut: bool) {
        let noted = self.rig.channel.noted();
        self.rig.channel.begin(if cut { 1.0 } else { 0.0 }, 1);
        for said in noted.said.iter().filter(|said| !said.destroyed) {
            self.heard.hear(said.station, &said.frame);
        }
    }
}

/// State of the sender's link.
fn state(status: &serde_json::Value) -> String {
    status["links"][0]["radio"]["state"].as_str().unwrap_or_default().to_owned()
}

fn until(app: &mut App, bound: Duration, wished: impl Fn(&str) -> bool) -> String {
    let began = Instant::now();
    let mut seen: Vec<String> = vec![];
    let mut status = app.status();
    loop {
        let state = state(&status);
        if wished(&state) {
            return state;
        }
        if seen.last() != Some(&state) {
            seen.push(state);
        }
        assert!(began.elapsed() < bound, "not in time: {seen:?}");
        status = app.next_status();
    }
}

/// Transfers a file of this length; the channel is cut after this many of its frames, until the link fails.
fn cut_in_the_middle(name: &str, retries: u8, length: usize, frames: u64, bound: Duration) {
    let mut pair = Pair::start(name, retries);
    let [mut here, mut there] = [0, 1].map(|at: usize| App::new(&pair.nodes[at]));
    there.register("inbox", 1 << 20);
    let file = payload(length, 7);
    here.send("dtn://bob/inbox", &file, MessageOptions::default());
    let gone =
        |state: &str| -> Option<u64> { state.strip_prefix("sending ")?.split(' ').next()?.parse().ok() };
    until(&mut here, bound, |state| gone(state).is_some_and(|gone| gone >= frames));
    pair.cut(true);
    let state = until(&mut here, bound, |state| state.contains("no answer, retry 2 of "));
    assert!(state.ends_with(&retries.to_string()), "{state}");
    until(&mut here, bound, |state| state.starts_with("link lost") || state.starts_with("calling"));
    pair.cut(false);
    // The file arrives complete, and the sender knows it.
    let (delivery, got) = there.receive();
    assert!(got == file, "every byte is as it was sent");
    there.take(delivery);
    let status = here.wait_status(|status| status["bundles"] == 0);
    pair.cut(false);
    let counters = &status["links"][0]["counters"];
    assert_eq!(counters["sessions"], 1, "{counters:#}");
    assert!(counters["resumed"].as_u64() >= Some(1), "{counters:#}");
    assert_eq!(pair.heard.again(), [0, 0], "no acknowledged segment is sent again");
    let acknowledged = pair.heard.acknowledged()[0];
    assert!(acknowledged >= length / 256 - 1, "the channel has heard what was acknowledged: {acknowledged}");
    assert!(pair.heard.calls() > 1, "there was a second link");
}

#[test]
fn a_file_between_two_nodes_outlives_its_link() {
    if is_installed() {
        cut_in_the_middle("nodes", 3, 7182, 8, Duration::from_secs(60));
    }
}

/// Dire Wolf's other interface: its AGWPE server, by raw frames.
#[test]
fn nodes_speak_agwpe_with_their_tncs() {
    if !is_installed() {
        return;
    }
    let pair = Pair::speaking("agwpe", 3, Rig::agwpe);
    let [mut here, mut there] = [0, 1].map(|at: usize| App::new(&pair.nodes[at]));
    let files = [payload(4000, 1), payload(3000, 2)];
    here.register("inbox", 1 << 20);
    there.register("inbox", 1 << 20);
    // One after the other, so that transmissions do not collide.
    for at in [0, 1] {
        let (from, to) = if at == 0 { (&mut here, &mut there) } else { (&mut there, &mut here) };
        from.send(["dtn://bob/inbox", "dtn://alice/inbox"][at], &files[at], MessageOptions::default());
        let (delivery, got) = to.receive();
        assert!(got == files[at], "every byte is as it was sent");
        to.take(delivery);
        from.wait_status(|status| status["bundles"] == 0);
    }
    let status = here.status();
    let counters = &status["tncs"][0]["counters"];
    assert_eq!((&counters["unanswered"], &counters["damaged"]), (&0.into(), &0.into()), "{counters:#}");
}

/// Three nodes without links, each with its own Dire Wolf, find each other by their beacons. What waits for a node leaves once it
/// is found.
#[test]
#[ignore = "a minute of real time: ./test radio"]
fn three_nodes_find_each_other_by_their_beacons() {
    if !is_installed() {
        return;
    }
    let rig = Rig::of("beacons", AIR, 3);
    let node = |at: usize, own: &str, callsign: &str, interval_s: u32| {
        start(config(&format!(
            "node = 'dtn://{own}/'\n[storage]\nkind = 'memory'\n[discovery]\npeers = 'any'\ngroups = []\n\
             [[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = '{callsign}'\ndiscovery = true\n\
             position = '53.2734, -7.7783'\nbeacon-interval = '{interval_s} s'\n[tnc.channel]\nrate-bps = {}\n\
             tx-delay = '150 ms'\nslot-time = '20 ms'\n[tnc.ax25]\nversion = 'plain'\n",
            rig.kiss(at),
            AIR.rate_bps
        )))
    };
    // Their first beacons do not collide.
    let nodes = [node(0, "alice", "ALICE", 30), node(1, "bob", "BOB", 32), node(2, "carol", "CAROL", 34)];
    let mut apps = nodes.each_ref().map(App::new);
    apps.iter_mut().for_each(|app| app.register("inbox", 100_000));
    let names = ["alice", "bob", "carol"];
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let sent = payload(600, from as u64);
        apps[from].send(&format!("dtn://{}/inbox", names[to]), &sent, MessageOptions::default());
    }
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let (delivery, received) = apps[to].receive();
        assert!(received == payload(600, from as u64), "every byte is as it was sent");
        apps[to].take(delivery);
    }
    let status = apps[0].status();
    let neighbours = status["discovery"]["neighbours"].as_array().expect("a list");
    let heard: Vec<_> = neighbours.iter().map(|known| (&known["node"], &known["by"], &known["at"])).collect();
    let expected = [("dtn://bob/", "BOB"), ("dtn://carol/", "CAROL")]
        .map(|(node, at)| [node, "aprs", at].map(Into::into));
    let expected: Vec<_> = expected.iter().map(|[node, by, at]| (node, by, at)).collect();
    assert_eq!(heard, expected);
}

/// The words of Dire Wolf's decoder of APRS about an announcement.
#[test]
fn an_announcement_is_an_object_for_software_of_aprs() {
    let place = aprs::Position::parse("53.2734, -7.7783");
    let node = "dtn://alice/".parse().expect("a node ID");
    let object = aprs::text(&node, place, "QRV").expect("it fits");
    let status = aprs::text(&node, None, "on the air").expect("it fits");
    let program = Command::new("decode_aprs").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut program) = program else {
        return eprintln!("skipped: no decode_aprs (Debian package direwolf)");
    };
    let lines = format!("OE1ABC-1>BEACON:{object}\nOE1ABC-1>BEACON:{status}\n");
    program.stdin.take().expect("it is piped").write_all(lines.as_bytes()).expect("it reads");
    let said = program.wait_with_output().expect("it ends").stdout;
    let said = String::from_utf8_lossy(&said);
    for wished in ["Object, \"alice\", Node", "N 53 16.4", "W 007 46.7", "dtn://alice/ QRV", "Status Report"]
    {
        assert!(said.contains(wished), "{wished}: {said}");
    }
}

/// The same with a longer file and links that fail later.
#[test]
#[ignore = "minutes of real time: ./test radio"]
fn a_longer_file_between_two_nodes_outlives_its_link() {
    if is_installed() {
        cut_in_the_middle("nodes-long", 10, 40_000, 60, Duration::from_secs(240));
    }
}
