//! Nodes that are killed with SIGKILL while files go through them.
//!
//! `LONGWIRE_KILLS=200 cargo test -p longwire --test kills` sets the number of kills.

mod common;

use common::{DEADLINE, Place, Running, noise, reserved};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Sender, relay and receiver are killed at random instants during transfers, each with every file size and both versions in
/// turn; every file arrives once and complete.
#[test]
fn nothing_is_lost_when_nodes_are_killed() {
    let kills: usize =
        std::env::var("LONGWIRE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(2 * ROUND);
    for version in ["3", "4"] {
        let place = Place::new(&format!("kills-{version}"));
        let (relay, carol) = (reserved(), reserved());
        let tcpcl =
            format!("[tcpcl]\nversions = '{version}'\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'");
        place.configure(
            "alice",
            &format!(
                "[[link]]\nname = 'relay'\naddress = '{relay}'\n[[route]]\nto = '*'\nvia = 'relay'\n{tcpcl}"
            ),
        );
        place.configure(
            "relay",
            &format!("listen = ['{relay}']\n[[link]]\nname = 'carol'\naddress = '{carol}'\n{tcpcl}"),
        );
        place.configure("carol", &format!("listen = ['{carol}']\n{tcpcl}"));
        kill_in_turn(&place, kills.div_ceil(2).max(ROUND), version.parse().unwrap());
    }
}

const NAMES: [&str; 3] = ["alice", "relay", "carol"];
/// File sizes, bytes.
const LENGTHS: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// Number of kills after which each node was killed with each size.
const ROUND: usize = NAMES.len() * LENGTHS.len();

fn kill_in_turn(place: &Place, kills: usize, seed: u64) {
    let mut nodes: BTreeMap<&str, Running> = NAMES.iter().map(|name| (*name, place.start(name))).collect();
    let mut expected: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let random = noise(kills, seed);
    for (kill, instant) in random.into_iter().enumerate() {
        // The two lengths are coprime, so all combinations occur.
        let (length, victim) = (LENGTHS[kill % LENGTHS.len()], NAMES[kill % NAMES.len()]);
        let name = format!("file-{kill}");
        let content = noise(length, kill as u64);
        fs::write(place.path(&name), &content).unwrap();
        let output = place.ask("alice", &["send", &name, "--to", "dtn://carol/files"]);
        assert!(output.status.success(), "{output:?}");
        expected.insert(name, content);
        // A random delay before the kill.
        let wait = Duration::from_micros(u64::from(instant) * 300);
        let _ = mpsc::channel::<()>().1.recv_timeout(wait);
        nodes.remove(victim).unwrap().kill();
        nodes.insert(victim, place.start(victim));
    }
    collect(place, &expected);
    for (name, node) in nodes {
        let status: serde_json::Value =
            serde_json::from_str(&place.asked(name, &["status", "--json"])).unwrap();
        assert_eq!(status["store"]["damaged"], 0, "{name}");
        drop(node);
    }
}

/// Receives until all files have arrived, and checks that none arrives twice.
fn collect(place: &Place, expected: &BTreeMap<String, Vec<u8>>) {
    let mut receiving = place
        .longwire(&["recv", "got", "--follow", "--config", "carol.toml"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(receiving.stdout.take().unwrap()).lines();
    let (sender, heard) = mpsc::channel();
    thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let began = Instant::now();
    for count in 0..expected.len() {
        let left = DEADLINE.saturating_sub(began.elapsed());
        let why = || format!("{count} of {}: {}{}", expected.len(), whereabouts(place), place.statuses());
        heard.recv_timeout(left).unwrap_or_else(|_| panic!("{}", why()));
    }
    // When all nodes are empty, no copy of a file is left that could arrive.
    while ["alice", "relay", "carol"].iter().any(|node| place.asked(node, &["bundles"]) != "no bundles\n") {
        assert!(began.elapsed() < DEADLINE, "{}{}", whereabouts(place), place.statuses());
    }
    assert!(heard.try_recv().is_err(), "something came twice");
    receiving.kill().unwrap();
    receiving.wait().unwrap();
    let got: BTreeMap<String, Vec<u8>> = files(&place.path("got"));
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert!(got == *expected, "every file is whole");
}

fn whereabouts(place: &Place) -> String {
    ["alice", "relay", "carol"].map(|node| format!("{node}: {}", place.asked(node, &["bundles"]))).concat()
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}
