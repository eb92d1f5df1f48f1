//! Runs the example configurations of the manual with the settings that `compare` merges into them.

mod common;

use common::{Place, reserved};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;

/// Writes an example configuration of the manual with the paths, addresses and callsigns of the test, and with links of
/// this kind over the radio.
fn example(place: &Place, folder: &str, name: &str, at: SocketAddr, kind: &str) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(folder).join(format!("{name}.toml"));
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("/tmp/longwire", &format!("{}/longwire", place.path("").display()));
    let text = text.replace("N0CALL", "DL1XYZ");
    let text = ["127.0.0.1:45560", "127.0.0.1:8001", "127.0.0.1:8002"]
        .iter()
        .fold(text, |text, address| text.replace(address, &at.to_string()));
    fs::write(place.path(&format!("{name}.toml")), of_kind(&text, kind)).unwrap();
}

/// Changes the kind of the radio link of an example.
fn of_kind(example: &str, kind: &str) -> String {
    let text = example.replace("kind = \"ax25cl\"", &format!("kind = \"{kind}\""));
    if kind != "uicl" {
        return text;
    }
    // A group has its own callsign, and members instead of a peer.
    let text = text.replace("peer = \"dtn://bob/\"", "uicl.members = [\"dtn://bob/\"]");
    text.replace("peer.\ncallsign = \"DL1XYZ-2\"", "peer.\ncallsign = \"QST\"")
}

fn compared(place: &Place, link: &str, more: &[&str]) -> Output {
    fs::write(place.path("letter.txt"), "Nothing accepted is ever lost.\n".repeat(40)).unwrap();
    let words = ["compare", "letter.txt", "--link", link, "--runs", "1", "--out", "out"];
    place.longwire(&[&words[..], more].concat()).output().unwrap()
}

/// Compares protocols and replaces the configuration of a node with what is printed; returns what is said beside it.
fn merged(place: &Place, name: &str, link: &str, more: &[&str]) -> String {
    let file = format!("{name}.toml");
    let output = compared(place, link, &[more, &["--config", &file]].concat());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("node = \"dtn://{name}/\"\n")), "{text}");
    fs::write(place.path(&file), text).unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// Two nodes with the printed configurations transfer a letter.
#[test]
fn what_compare_prints_runs_in_the_two_nodes_of_the_manual() {
    for link in ["lan", "cislunar"] {
        let place = Place::new(&format!("printed-{link}"));
        let at = reserved();
        for (name, has) in [("alice", "link `bob` has"), ("bob", "connections that the node accepts have")] {
            example(&place, "two-nodes", name, at, "tcp");
            let said = merged(&place, name, link, &[]);
            assert!(said.contains(&format!("{name}.toml: {has} the settings of tcpcl")), "{said}");
            assert!(said.contains(&format!(" of 17 for letter.txt (1,240 bytes) over {link}: ")), "{said}");
            assert!(said.contains("not the fastest: ") && said.contains("kind ltp"), "{said}");
            assert!(place.path("out/report.html").exists());
        }
        let (bob, alice) = (place.start("bob"), place.start("alice"));
        place.asked("alice", &["send", "letter.txt", "--to", "dtn://bob/files"]);
        place.asked("bob", &["recv", "got"]);
        assert_eq!(fs::read(place.path("got/letter.txt")).unwrap().len(), 40 * 31);
        bob.kill();
        alice.kill();
    }
}

/// The same with radio links: the nodes start and wait for a TNC that does not exist.
#[test]
fn what_compare_prints_starts_the_two_radios_of_the_manual() {
    let place = Place::new("printed-radios");
    let output = compared(&place, "ax25-9600", &["--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ranking = document["ranking"].as_array().unwrap();
    let is_best =
        |place: &&serde_json::Value| place["keeps_accepted"] == true && place["transfer_s"].is_number();
    let best = ranking.iter().find(is_best).unwrap();
    let kind = best["configuration"]["kind"].as_str().unwrap();
    let sides: [(&str, &[&str]); 2] = [("alice", &["--for", "bob"]), ("bob", &[])];
    for (name, more) in sides {
        example(&place, "two-radios", name, reserved(), kind);
        let said = merged(&place, name, "ax25-9600", more);
        assert!(said.contains(" the settings of "), "{said}");
        let node = place.start(name);
        let status = place.asked(name, &["status"]);
        assert!(status.contains("TNC `uhf`"), "{status}");
        node.kill();
    }
}

/// With `--quiet`, only the configuration is printed; what cannot be configured is refused before anything is computed.
#[test]
fn a_configuration_is_printed_alone_or_not_at_all() {
    let place = Place::new("printed-alone");
    example(&place, "two-nodes", "alice", reserved(), "tcp");
    let quiet = compared(&place, "lan", &["--quiet", "--config", "alice.toml"]);
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{quiet:?}");
    fs::remove_dir_all(place.path("out")).unwrap();
    fs::write(place.path("scenario.toml"), "protocol = 'tcpcl4'\n").unwrap();
    let cases: [(&str, &[&str], &str); 6] = [
        ("lan", &["--config", "nobody.toml"], "error: cannot read nobody.toml: No such file or directory"),
        ("lan", &["--config", "scenario.toml"], "error: scenario.toml: unknown field `protocol`"),
        (
            "lan",
            &["--config", "alice.toml", "--for", "carol"],
            "error: alice.toml: no such link: `carol`\nhint: ",
        ),
        (
            "ax25-1200",
            &["--config", "alice.toml"],
            "error: link `bob` is of kind tcp, which `compare` does not rank",
        ),
        ("lan", &["--config", "alice.toml", "--json"], "error: the argument '--"),
        ("lan", &["--for", "bob"], "error: the following required arguments were not provided"),
    ];
    for (link, more, said) in cases {
        let output = compared(&place, link, more);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{error}");
        assert!(error.starts_with(said), "{error}");
        assert!(!place.path("out").exists(), "{more:?}");
    }
}
