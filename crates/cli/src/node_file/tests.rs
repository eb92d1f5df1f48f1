//! Tests of merged configurations.

use super::*;
use longwire_lab::compare::{configuration_of, node_kinds};
use longwire_lab::link::{LinkPath, SHIPPED};
use std::fs;

/// Node with two links, and settings for all of them.
const TWO_LINKS: &str = r#"# My node.
node = "dtn://alice/"

[[link]]
name = "moon"           # the relay
address = "10.0.0.2:4556"
tcpcl = { tls = "off", keepalive = "30 s" }

# The other one.
[[link]]
name = "bob"
address = "bob.example.org:4556"

[tcpcl]
segment-bytes = 4096    # small
keepalive-timeout = "3 min"
"#;

fn node_file(text: &str, link: Option<&str>) -> NodeFile {
    NodeFile::parse(Path::new("node.toml"), text.to_owned(), link).unwrap()
}

fn key(section: &str, name: &str) -> Key {
    Key { section: section.into(), name: name.into() }
}

fn settings() -> Configuration {
    let node =
        "tcpcl = { segment-bytes = 16384, keepalive-timeout = '122 s' }\ntcp.send-buffer-bytes = 524288";
    let default = Some(toml_text::value_of("\"60 s\""));
    Configuration {
        kind: Some("tcp"),
        node: Some(node.parse().unwrap()),
        at_default: vec![(key("tcpcl", "keepalive"), default)],
        ..Configuration::default()
    }
}

/// Returns an example configuration of the manual with a callsign, and its link of this kind.
fn example(name: &str, kind: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let text = fs::read_to_string(path).unwrap().replace("N0CALL", "DL1XYZ");
    let text = text.replace("kind = \"ax25cl\"", &format!("kind = \"{kind}\""));
    match kind {
        "udp" | "ltp" | "norm" | "ltp-fec" | "saratoga" | "aerotp" if !text.contains("kind = ") => {
            text.replace("name = \"bob\"", &format!("name = \"bob\"\nkind = \"{kind}\""))
        }
        // A group has members instead of a peer.
        "uicl" => text.replace("peer = \"dtn://bob/\"", "uicl.members = [\"dtn://bob/\"]"),
        _ => text,
    }
}

/// Returns the value of a setting that applies to the link, or to the node if it has none.
fn applied(text: &str, key: &Key) -> Option<String> {
    let table = toml_text::parse(text, "merged").unwrap();
    let link = table.get("link").and_then(|links| links.get(0));
    let tnc = table.get("tnc").and_then(|tncs| tncs.get(0));
    let inner = key.section.strip_prefix("tnc.").unwrap_or(&key.section);
    let (first, deeper) =
        inner.split_once('.').map_or((inner, None), |(first, deeper)| (first, Some(deeper)));
    let above = if key.section == inner { table.get(first) } else { tnc.and_then(|tnc| tnc.get(first)) };
    let of_link = link.and_then(|link| link.get(first));
    let mut sections = [of_link, above].into_iter().flatten();
    let set = sections.find_map(|section| match deeper {
        Some(deeper) => section.get(deeper)?.get(&key.name),
        None => section.get(&key.name),
    });
    set.map(|value| value.to_string())
}

/// A node accepts the settings of every protocol that nodes support, for every built-in link on which it runs, and all
/// else in its configuration stays.
#[test]
fn whatever_wins_is_merged_so_that_a_node_takes_it() {
    let mut count = 0;
    for (protocol, kind) in PROTOCOLS.iter().filter_map(|protocol| Some((protocol, protocol.link_kind()?))) {
        for (link, text) in SHIPPED {
            let is_radio = text.contains("[radio]");
            let over_ip = ["tcp", "udp", "ltp", "norm", "ltp-fec", "saratoga", "aerotp"].contains(&kind);
            if is_radio == (over_ip && !(is_radio && kind == "norm")) {
                continue;
            }
            let folder = if is_radio { "two-radios" } else { "two-nodes" };
            for (name, side) in
                protocol.names().flat_map(|name| ["alice", "bob"].map(|side| (name.clone(), side)))
            {
                let before = example(&format!("{folder}/{side}.toml"), kind);
                let configuration = configuration_of(&name, link).unwrap();
                let merged = node_file(&before, None).with(&name, &configuration).unwrap().text;
                let config = Config::parse(&merged, &name, Path::new("/")).unwrap();
                if side == "alice" {
                    assert_eq!(config.link[0].kind, kind);
                }
                for Setting { key, value } in configuration.node_settings() {
                    assert_eq!(applied(&merged, &key), Some(value.to_string()), "{key:?} in\n{merged}");
                }
                let set = configuration.node_settings();
                let is_set = |line: &str| set.iter().any(|setting| line.starts_with(&setting.key.name));
                let mut after = merged.lines();
                for line in before.lines().filter(|line| !is_set(line)) {
                    assert!(after.any(|other| other == line), "`{line}` is not in its place in\n{merged}");
                }
                for line in &configuration.system {
                    let known = ["sysctl -w net.", "ip route replace PEER via GATEWAY dev DEVICE "];
                    assert!(known.iter().any(|start| line.starts_with(start)), "{name} over {link}: {line}");
                }
                let again = node_file(&merged, None).with(&name, &configuration).unwrap().text;
                assert_eq!(again, merged, "{name} over {link}");
                count += 1;
            }
        }
    }
    assert!(count > 40, "only {count} were looked at");
}

/// What has another place than the link, or is not listened for, is an obstacle.
#[test]
fn a_link_and_a_listening_node_keep_their_kind_of_neighbour() {
    let obstacles = |text: &str, link| {
        let file = node_file(text, link);
        ["tcp", "udp", "ltp", "ax25cl"].map(|kind| file.obstacle("any", kind).is_some())
    };
    assert_eq!(obstacles(TWO_LINKS, Some("bob")), [false, true, true, true]);
    let listening = "node = 'dtn://bob/'\nlisten-udp = ['127.0.0.1:4556', 'ltp 127.0.0.1:1113']\n";
    assert_eq!(obstacles(listening, None), [true, false, false, true]);
    let one = "node = 'dtn://bob/'\nlisten = ['127.0.0.1:4556']\nlisten-udp = ['127.0.0.1:4556']\n";
    assert_eq!(obstacles(one, None), [false, false, true, true]);
}

#[test]
fn comments_and_order_stay_and_only_the_named_link_changes() {
    let merged = node_file(TWO_LINKS, Some("bob")).with("tcpcl4/tuned", &settings()).unwrap();
    let expected = TWO_LINKS.replace(
        "address = \"bob.example.org:4556\"\n",
        "address = \"bob.example.org:4556\"\n\n[link.tcpcl]\nkeepalive-timeout = \"122 s\"\nsegment-bytes = 16384\n",
    ) + "\n[tcp]\nsend-buffer-bytes = 524288\n";
    assert_eq!(merged.text, expected);
    let remarks = [
        "node.toml: link `bob` has the settings of tcpcl4/tuned",
        "other links of the node are also affected by [tcp]",
    ];
    assert_eq!(merged.remarks, remarks);
    // A key that is at its default in the settings leaves the link; what stands beside it stays.
    let merged = node_file(TWO_LINKS, Some("moon")).with("tcpcl4/tuned", &settings()).unwrap();
    let expected = TWO_LINKS.replace(
        "{ tls = \"off\", keepalive = \"30 s\" }",
        "{ tls = \"off\", keepalive-timeout = \"122 s\", segment-bytes = 16384 }",
    ) + "\n[tcp]\nsend-buffer-bytes = 524288\n";
    assert_eq!(merged.text, expected);
}

#[test]
fn a_default_is_written_where_all_links_have_another_value() {
    let at_default = vec![
        (key("tcpcl", "segment-bytes"), Some(toml_text::value_of("65536"))),
        (key("tcpcl", "keepalive-timeout"), None),
        (key("tcpcl", "versions"), Some(toml_text::value_of("\"both\""))),
    ];
    let nothing = Configuration {
        kind: Some("tcp"),
        node: Some("".parse().unwrap()),
        at_default,
        ..Configuration::default()
    };
    let merged = node_file(TWO_LINKS, Some("bob")).with("tcpcl4/default", &nothing).unwrap();
    let expected = TWO_LINKS.replace("\n[tcpcl]\n", "\n[link.tcpcl]\nsegment-bytes = 65536\n\n[tcpcl]\n");
    assert_eq!(merged.text, expected);
    let remark = "link `bob` also has `keepalive-timeout` from a section of all links; tcpcl4/default was simulated without";
    assert_eq!(merged.remarks[1..], [remark]);
}

#[test]
fn a_value_that_is_the_same_stays_as_it_is_written_and_another_keeps_its_comment() {
    let text = "node = 'dtn://alice/'\n[[link]]\nname = 'bob'\naddress = '10.0.0.2:4556'\n[link.tcpcl]\n\
                keepalive-timeout = '122 s' # measured\nsegment-bytes = 1_000   # small\n[tcp]\nsend-buffer-bytes=524_288\n";
    let merged = node_file(text, None).with("tcpcl4/tuned", &settings()).unwrap();
    assert_eq!(merged.text, text.replace("1_000   # small", "16384   # small"));
}

#[test]
fn a_node_that_only_accepts_connections_has_the_settings_for_all_of_them() {
    let text = "node = 'dtn://bob/'\nlisten = ['127.0.0.1:4556']\n";
    let merged = node_file(text, None).with("tcpcl4/tuned", &settings()).unwrap();
    assert_eq!(applied(&merged.text, &key("tcpcl", "segment-bytes")).as_deref(), Some("16384"));
    assert!(merged.text.starts_with(text) && !merged.text.contains("link"), "{}", merged.text);
    assert_eq!(
        merged.remarks,
        ["node.toml: connections that the node accepts have the settings of tcpcl4/tuned"]
    );
}

#[test]
fn a_link_to_one_station_changes_between_its_kinds_and_not_to_a_group() {
    let of = |name: &str| configuration_of(name, "ax25-9600").unwrap();
    let alice = node_file(&example("two-radios/alice.toml", "ax25cl"), Some("bob"));
    let merged = alice.with("ax25cm/k4", &of("ax25cm/k4")).unwrap();
    assert!(merged.text.contains("\nkind = \"ax25cm\"\ntnc = \"uhf\"\n"), "{}", merged.text);
    let error = |file: &NodeFile, name: &str| file.with(name, &of(name)).unwrap_err().to_string();
    let said = error(&alice, "uicl/one");
    assert!(
        said.starts_with("link `bob` is of kind ax25cl, but `uicl/one` needs kind uicl\nhint: for a group"),
        "{said}"
    );
    let group = node_file(&example("two-radios/alice.toml", "uicl"), None);
    assert!(error(&group, "ax25cl/k4").contains("\nhint: for a single neighbour"));
    assert!(error(&alice, "ax25/k4").starts_with("nodes do not have links for `ax25/k4`\nhint: "));
    // A section that the node refuses, that of the kind before, is not printed.
    let own =
        example("two-radios/alice.toml", "ax25cl").replace("amateur", "ax25cl.transfers-max = 3\namateur");
    let said = error(&node_file(&own, None), "ax25cm/k4");
    assert!(
        said.starts_with("a node does not accept the settings of `ax25cm/k4`: node.toml: link `bob`: "),
        "{said}"
    );
}

#[test]
fn what_cannot_be_configured_is_said_before_anything_is_computed() {
    let refused = |text: &str, link: Option<&str>| {
        NodeFile::parse(Path::new("node.toml"), text.to_owned(), link).unwrap_err().to_string()
    };
    assert_eq!(refused(TWO_LINKS, Some("mon")), "node.toml: no such link: `mon`\nhint: did you mean `moon`?");
    assert_eq!(
        refused(TWO_LINKS, Some("saturn")),
        "node.toml: no such link: `saturn`\nhint: links of this node: moon, bob"
    );
    assert_eq!(refused(TWO_LINKS, None), "node.toml has 2 links\nhint: choose one with --for: moon, bob");
    let none = "node = 'dtn://bob/'\nlisten = ['127.0.0.1:4556']\n";
    assert!(refused(none, Some("bob")).contains("hint: this node has no [[link]]"));
    assert!(refused("title = 'A scenario'", None).contains("node.toml: unknown field `title`"));
    assert!(refused("Not TOML.", None).starts_with("node.toml: "));
    let check = |text: &str, link: &str| {
        let path = LinkPath::load(link, Path::new(".")).unwrap();
        let kinds = node_kinds(&path);
        node_file(text, None).check(&kinds, link, path.last()).map_err(|error| error.to_string())
    };
    let alice = example("two-nodes/alice.toml", "tcp");
    let (udp, radio) = (example("two-nodes/alice.toml", "udp"), example("two-radios/alice.toml", "ax25cm"));
    assert_eq!(
        (check(&alice, "mars"), check(&radio, "ax25-1200"), check(none, "lan")),
        (Ok(()), Ok(()), Ok(()))
    );
    for (text, link, kind, kinds) in [
        (&alice, "ax25-1200", "tcp", "norm, ax25cm, ax25cl, uicl"),
        (&udp, "cislunar", "udp", "tcp, ltp, norm, ltp-fec, saratoga, aerotp"),
        (&radio, "lan", "ax25cm", "tcp, ltp, norm, ltp-fec, saratoga, aerotp"),
    ] {
        let said = check(text, link).unwrap_err();
        let what = format!("link `bob` is of kind {kind}, which `compare` does not rank over `{link}`\n");
        assert!(said.starts_with(&what), "{said}");
        assert!(said.contains(&format!("hint: kinds for this profile: {kinds}; ")), "{said}");
    }
    assert!(check(none, "ax25-9600").unwrap_err().starts_with("node.toml has no [[tnc]]\nhint: "));
}
