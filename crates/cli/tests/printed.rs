//! Runs the settings that `compare` prints for nodes in the example configurations of the manual.

mod common;

use common::{Place, reserved};
use longwire_lab::compare::use_of;
use longwire_lab::link::SHIPPED;
use longwire_lab::report::PageBlock;
use longwire_lab::stack::STACKS;
use longwire_node::Config;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// Returns an example configuration of the manual, with the paths, addresses and callsigns of the test.
fn example(place: &Place, name: &str, at: SocketAddr) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(format!("{name}.toml"));
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("/tmp/longwire", &format!("{}/longwire", place.path("").display()));
    let text = text.replace("N0CALL", "DL1XYZ");
    ["127.0.0.1:45560", "127.0.0.1:8001", "127.0.0.1:8002"]
        .iter()
        .fold(text, |text, address| text.replace(address, &at.to_string()))
}

/// Replaces the sections of an example with the printed sections of the same names.
fn inserted(example: &str, printed: &str) -> String {
    let is_head = |line: &str| line.starts_with('[');
    let heads: Vec<&str> = printed.lines().filter(|line| is_head(line)).collect();
    let (mut kept, mut taken, mut skips) = (String::new(), false, false);
    for line in example.lines() {
        if is_head(line) {
            skips = heads.contains(&line);
            if skips && !taken {
                kept += &format!("{printed}\n");
                taken = true;
            }
        }
        if !skips {
            kept += &format!("{line}\n");
        }
    }
    if taken { kept } else { format!("{kept}\n{printed}") }
}

/// Changes the kind of the radio link of an example.
fn of_kind(example: &str, kind: &str) -> String {
    let text = example.replace("kind = \"ax25cl\"", &format!("kind = \"{kind}\""));
    if kind != "uicl" {
        return text;
    }
    // A group has its own callsign, and members instead of a peer.
    let text = text.replace("peer = \"dtn://bob/\"", "uicl.members = [\"dtn://bob/\"]");
    text.replace("tnc = \"uhf\"\ncallsign = \"DL1XYZ-2\"", "tnc = \"uhf\"\ncallsign = \"QST\"")
}

/// A node accepts the printed settings of every protocol that nodes support, for every built-in link on which it runs.
#[test]
fn whatever_wins_is_printed_so_that_a_node_takes_it() {
    let place = Place::new("printed");
    let mut count = 0;
    for (stack, carrier) in STACKS.iter().filter_map(|stack| Some((stack, stack.carrier?))) {
        let kind = carrier.about().name;
        for (link, text) in SHIPPED {
            let is_radio = text.contains("[radio]");
            if is_radio == ["tcp", "udp"].contains(&kind) {
                continue;
            }
            for name in stack.names() {
                let blocks = use_of(&name, link).unwrap();
                let codes = blocks.iter().filter_map(|block| match block {
                    PageBlock::Code { text, .. } => Some(text),
                    _ => None,
                });
                let codes: Vec<&String> = codes.collect();
                let folder = if is_radio { "two-radios" } else { "two-nodes" };
                let mut text = inserted(&example(&place, &format!("{folder}/alice"), reserved()), codes[0]);
                if is_radio {
                    assert!(codes[0].contains(&format!("kind = \"{kind}\"")), "{}", codes[0]);
                    text = of_kind(&text, kind);
                }
                let config = Config::parse(&text, &name, Path::new("/"));
                let config = config.unwrap_or_else(|error| panic!("{name} over {link}: {error}\n{text}"));
                assert_eq!(config.link[0].kind, if is_radio { kind } else { "tcp" });
                // The block for the operating system contains only commands of that system.
                for line in codes.get(1).iter().flat_map(|text| text.lines()) {
                    let known = ["# ", "sysctl -w net.", "ip route replace PEER via GATEWAY dev DEVICE "];
                    assert!(known.iter().any(|start| line.starts_with(start)), "{name} over {link}: {line}");
                }
                count += 1;
            }
        }
    }
    assert!(count > 20, "only {count} were looked at");
}

/// Returns the block after a caption, as a reader would copy it.
fn block(output: &[u8], caption: &str) -> String {
    let output = String::from_utf8_lossy(output);
    let behind = output.split_once(caption).unwrap_or_else(|| panic!("{output}")).1;
    let lines = behind.lines().skip(1).skip_while(|line| line.is_empty());
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.trim_start())).collect()
}

fn compared(place: &Place, link: &str) -> String {
    fs::write(place.path("letter.txt"), "Nothing accepted is ever lost.\n".repeat(40)).unwrap();
    let words = ["compare", "letter.txt", "--link", link, "--runs", "1", "--quiet", "--out", "out"];
    let output = place.longwire(&words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    block(&output.stdout, "node configuration: ")
}

/// Two nodes with the printed settings transfer a letter.
#[test]
fn what_compare_prints_runs_in_the_two_nodes_of_the_manual() {
    for link in ["lan", "cislunar"] {
        let place = Place::new(&format!("printed-{link}"));
        let printed = compared(&place, link);
        assert!(printed.contains("# tcpcl"), "{printed}");
        let at = reserved();
        for name in ["alice", "bob"] {
            let text = inserted(&example(&place, &format!("two-nodes/{name}"), at), &printed);
            fs::write(place.path(&format!("{name}.toml")), text).unwrap();
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
    let printed = compared(&place, "ax25-9600");
    let kind = printed.split_once("set kind = \"").and_then(|(_, rest)| rest.split_once('"')).unwrap().0;
    for name in ["alice", "bob"] {
        let example = example(&place, &format!("two-radios/{name}"), reserved());
        fs::write(place.path(&format!("{name}.toml")), of_kind(&inserted(&example, &printed), kind)).unwrap();
        let node = place.start(name);
        let status = place.asked(name, &["status"]);
        assert!(status.contains("TNC `uhf`"), "{status}");
        node.kill();
    }
}
