//! `longwire compare --live`: live runs beside the virtual ones.

mod common;

use common::{Place, noise};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// More than a node passes on at once.
const BYTES: usize = 300_000;

/// Compares over a link and returns the names of the protocols that also ran live; `None` without the permission to do so.
fn live(place: &Place, link: &str) -> Option<BTreeSet<String>> {
    fs::write(place.path("letter.txt"), noise(BYTES, 1)).unwrap();
    let words = ["compare", "letter.txt", "--link", link, "--runs", "1", "--live", "--json", "--quiet"];
    let output = place.longwire(&words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("run the command as root") || said.contains("this needs root") {
        eprintln!("skipped: no link between network namespaces here: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let records = found["records"].as_array().unwrap().iter();
    let live = records.filter(|record| record["metric"] == "live_transfer_s");
    let name = |record: &Value| {
        assert_eq!((&record["kind"], &record["n"]), (&"measured".into(), &1.into()), "{record:#}");
        format!("{}/{}", record["protocol"].as_str().unwrap(), record["settings"].as_str().unwrap())
    };
    Some(live.map(name).collect())
}

#[test]
fn nodes_and_the_kernel_run_over_a_line() {
    let place = Place::new("live-line");
    fs::write(place.path("line.toml"), "title = 'line'\nrate-bps = 1000000\ndelay-ms = 5\n").unwrap();
    let Some(names) = live(&place, "./line.toml") else { return };
    assert!(names.contains("tcp/linux-6"), "{names:?}");
    for protocol in ["ltp", "ltp-fec", "saratoga", "norm", "aerotp", "tcpcl4"] {
        assert!(names.iter().any(|name| name.starts_with(&format!("{protocol}/"))), "{protocol}: {names:?}");
    }
}

#[test]
fn nodes_run_over_a_radio_channel_without_root() {
    let place = Place::new("live-radio");
    fs::write(
        place.path("fast.toml"),
        "title = 'fast'\nrate-bps = 2000000\nmtu-bytes = 256\n[radio]\ntx-delay-ms = 10\nslot-time-ms = 10\n",
    )
    .unwrap();
    let names = live(&place, "./fast.toml").unwrap();
    assert!(names.iter().any(|name| name.starts_with("ax25cl/")), "{names:?}");
}
