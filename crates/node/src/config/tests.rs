use super::*;
use longwire_proto::tcpcl::Versions;
use longwire_proto::time::Duration;

fn parse(text: &str) -> Result<Config, Error> {
    Config::parse(text, "node.toml", Path::new("/etc/longwire"))
}

fn session(config: &Config) -> tcpcl::Config {
    let plan = config.plan(&config.link[0]).expect("it makes sense");
    plan.settings::<Tcpcl>().expect("a link over TCP").clone()
}

#[test]
fn a_configuration_is_short_and_its_paths_are_beside_it() {
    let text = "node = 'dtn://alice/'\n[[link]]\nname = 'bob'\naddress = 'bob:4556'\n[link.tcpcl]\nversions = '3'\n\
                keepalive = '15 s'\n[[route]]\nto = 'dtn://carol/*'\nvia = 'bob'";
    let config = parse(text).expect("it makes sense");
    assert_eq!(config.storage.path, Path::new("/etc/longwire/store"));
    assert_eq!(config.control(), Path::new("/etc/longwire/longwire.sock"));
    let session = session(&config);
    assert_eq!((session.versions, session.keepalive), (Versions::Three, Duration::from_secs(15)));
    assert_eq!(session.node_id, "dtn://alice/");
    assert_eq!(session.segment_bytes, config.tcp_callers().segment_bytes, "the rest is as in all others");
    assert_eq!(config.agent.limits.buffer_bytes_max, 8 << 20, "a node's own default");
}

/// As in earlier versions, only the table of a link can set another node ID than that of the node.
#[test]
fn a_link_may_state_another_node_id() {
    let text = format!(
        "{TNC}{LINK}ax25cl.node-id = 'dtn://gateway/'\n[[link]]\nname = 'carol'\naddress = 'carol:4556'\n\
         tcpcl.node-id = 'dtn://gateway/'\n[[link]]\nname = 'dave'\naddress = 'dave:4556'\n\
         [tcpcl]\nnode-id = 'dtn://common/'"
    );
    let config = parse(&text).expect("it makes sense");
    let plan = |at: usize| config.plan(&config.link[at]).expect("it makes sense");
    let over_radio = plan(0).settings::<carriers::Ax25Cl>().map(|settings| settings.node_id.clone());
    let tcp = |at: usize| plan(at).settings::<Tcpcl>().map(|settings| settings.node_id.clone());
    assert_eq!(
        [over_radio, tcp(1), tcp(2)].map(Option::unwrap_or_default),
        ["dtn://gateway/", "dtn://gateway/", "dtn://a/"]
    );
    assert_eq!(config.tcp_callers().node_id, "dtn://a/");
}

/// A section that the file does not mention has the defaults of a node, not those of the engine.
#[test]
fn what_is_not_said_is_the_default() {
    let config = parse("node = 'dtn://alice/'").expect("it makes sense");
    let default = Config::default();
    assert_eq!(config.document()["ax25cm"], default.document()["ax25cm"]);
    assert_eq!(config.document()["ax25cm"]["connect_timeout".replace('_', "-")]["secs"], 86_400);
    assert_eq!(config.carriers, default.carriers);
    assert_eq!((config.agent, config.routing), (default.agent, default.routing));
    assert_eq!((config.stream, config.tcp), (default.stream, default.tcp));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_hint() {
    let refused = |text: &str| parse(text).expect_err(text).to_string();
    let cases = [
        ("listen = []", "`node` is missing", "set `node` to a node ID"),
        ("node = 'alice'", "is not a valid node ID", "dtn://alice/"),
        ("node = 'dtn://a/b'", "is not a valid node ID", "dtn://alice/"),
        ("node = 'dtn://a/'\nlistn = []", "unknown field `listn`", "did you mean `listen`?"),
        ("node = 'dtn://a/'\n[agent]\nlimit = 1", "unknown field `limit`", "did you mean `limits`?"),
        (
            "node = 'dtn://a/'\n[[link]]\nname = 'b'\naddress = 'b'",
            "is not a valid address",
            "host:port; the port of tcp is 4556",
        ),
        (
            "node = 'dtn://a/'\n[[link]]\nname = 'b'\nkind = 'ltp'\naddress = 'b'",
            "is not a valid address",
            "the port of ltp is 1113",
        ),
        (
            "node = 'dtn://a/'\n[[link]]\nname = 'b'\nkind = 'ltp-fec'\naddress = 'b'",
            "is not a valid address",
            "no port is registered for ltp-fec",
        ),
        (
            "node = 'dtn://a/'\n[[route]]\nto = '*'\nvia = 'b'",
            "route to *: no such link: `b`",
            "use the name of a [[link]]",
        ),
        (
            "node = 'dtn://a/'\n[tcp]\nreceive-buffer-bytes = 0",
            "`tcp.receive-buffer-bytes` is 0",
            "bandwidth-delay",
        ),
        (
            "node = 'dtn://a/'\n[tcp]\nrto-minimum = '1 s'\nsend-buffer-bytes = 9\nsack = true",
            "[tcp]: `rto-minimum`, `sack` cannot be set",
            "`send-buffer-bytes` and `receive-buffer-bytes`",
        ),
        (
            "node = 'dtn://a/'\nlisten = ['127.0.0.1']",
            "`listen`: `127.0.0.1` is not a valid address",
            "host:port",
        ),
        (
            "node = 'dtn://a/'\nlisten = ['::1:4556']",
            "`listen`: `::1:4556` is not a valid address",
            "[::]:4556",
        ),
        (
            "node = 'dtn://a/'\nlisten-udp = [':4556']",
            "`listen-udp`: `:4556` is not a valid address",
            "host:port",
        ),
        (
            "node = 'dtn://a/'\nlisten-udp = ['lpt [::]:1113']",
            "`listen-udp`: `lpt [::]:1113` names no convergence layer over UDP",
            "one of udp, ltp",
        ),
        (
            "node = 'dtn://a/'\nlisten-udp = ['ltp 1113']",
            "`listen-udp`: `1113` is not a valid address",
            "host:port",
        ),
        ("node = 'dtn://a/'\n[[link]]\nname = 'b'\naddress = ':1'", "is not a valid address", "host:port"),
        (
            "node = 'dtn://a/'\n[[drop]]\nfolder = '5d'\nto = 'dtn://b/x'\nlifetime = 'soon'",
            "expected a duration, found \"soon\"\nin `drop.lifetime`",
            "3 d",
        ),
        ("node = 'dtn://a/'\n[tcpcl]\nsegment-bytes = 0", "`tcpcl.segment-bytes` is 0", "16384"),
        ("node = 'dtn://a/'\n[tcpcl]\nkeepalive = '500 ms'", "`tcpcl.keepalive` is 500 ms", "whole seconds"),
        (
            "node = 'dtn://a/'\n[agent.limits]\nbundles-max = 0",
            "`agent.limits.bundles-max` is 0",
            "no bundle",
        ),
        ("node = 'dtn://a/'\n[tcpcll]\nkeepalive = '5 s'", "unknown field `tcpcll`", "did you mean `tcpcl`?"),
        ("node = 'dtn://a/'\n[udp]\nkeepalve = '5 s'", "[udp]: unknown field `keepalve`", "`keepalive`?"),
        (
            "node = 'dtn://a/'\n[[link]]\nname = 'b'\nkind = 'ax25c'\naddress = 'b:1'",
            "link `b`: unknown kind `ax25c`",
            "did you mean `ax25cm`?",
        ),
        (
            "node = 'dtn://a/'\n[[link]]\nname = 'b'\nkind = 'websocket'\naddress = 'b:1'",
            "link `b`: unknown kind `websocket`",
            "`kind` is one of tcp, udp",
        ),
        ("node = 'dtn://a/'\n[routing]\ncopies = 500", "`routing.copies` is 500", "8 is usual"),
        (
            "node = 'dtn://a/'\n[[link]]\nname = 'b'\naddress = 'b:1'\n[link.tcpcl]\nreconnect-min = '0 s'",
            "link `b`: [tcpcl]: `reconnect-min` is 0 s",
            "1 s is usual",
        ),
        (
            "node = 'dtn://a/'\nclock = 'none'\nlisten = ['x:1']\n[tcpcl]\ntls = 'prefer'",
            "TLS needs a clock",
            "set `clock = \"system\"`",
        ),
    ];
    for (text, what, hint) in cases {
        let said = refused(text);
        assert!(said.contains(what) && said.contains("hint: ") && said.contains(hint), "{text}: {said}");
        assert!(said.starts_with("node.toml"), "{said}");
    }
    let link = "node = 'dtn://a/'\n[[link]]\nname = 'b'\naddress = 'b:1'\n[link.tcpcl]\nkeepalve = '1 s'";
    assert!(refused(link).contains("did you mean `keepalive`?"));
}

#[test]
fn a_word_that_reads_as_a_time_is_a_word_where_one_is_wanted() {
    let text = "node = 'dtn://a/'\n[[link]]\nname = '2h'\naddress = 'b:1'\ntcpcl.keepalive = '15 s'\n[[route]]\nto = '*'\n\
                via = '2h'\n[[drop]]\nfolder = '5d'\nto = 'dtn://b/x'\nlifetime = '2h'\n[storage]\npath = '3 s'";
    let config = parse(text).expect("it makes sense");
    assert_eq!((config.link[0].name.as_str(), config.route[0].via.as_str()), ("2h", "2h"));
    assert_eq!(config.drop[0].folder, Path::new("/etc/longwire/5d"));
    assert_eq!(config.storage.path, Path::new("/etc/longwire/3 s"));
    assert_eq!(config.drop[0].lifetime, Duration::from_secs(7200));
    let session = session(&config);
    assert_eq!(session.keepalive, Duration::from_secs(15));
}

/// A fault that would prevent the start is found by the check.
#[test]
fn what_cannot_be_had_here_is_told_before_the_start() {
    let place = std::env::temp_dir().join(format!("longwire-here-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("file"), "").unwrap();
    let here = |text: &str| {
        let text = format!("node = 'dtn://a/'\n{text}");
        Config::parse(&text, "node.toml", &place).expect("it makes sense").check_here()
    };
    assert_eq!(here("listen = ['127.0.0.1:4556', '[::1]:1']\nstorage.path = 'deep/er/store'"), Ok(()));
    assert!(!place.join("deep").exists(), "a check makes nothing");
    let cases = [
        ("storage.path = 'file/store'", "the store", "file is not a folder"),
        ("storage.path = 'file'", "the store", "file is not a folder"),
        ("storage.path = '/proc/store'", "the store", "/proc"),
        ("control = 'file/x.sock'", "the socket", "file is not a folder"),
        ("[[receive]]\nfolder = 'file/in'\nendpoint = 'x'", "the folder", "file is not a folder"),
        ("listen = ['192.0.2.1:4556']", "cannot listen on 192.0.2.1:4556", "hint: use 0.0.0.0:4556"),
    ];
    for (text, what, why) in cases {
        // A superuser may write anywhere except where the system itself has no files.
        let said = match here(text) {
            Err(error) => error.to_string(),
            Ok(()) if text.contains("/proc") => continue,
            Ok(()) => panic!("{text}"),
        };
        assert!(said.contains(what) && said.contains(why), "{text}: {said}");
    }
    assert_eq!(here("storage.kind = 'memory'"), Ok(()));
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn one_line_relaxes_what_a_peer_gets_wrong() {
    let text = "node = 'dtn://a/'\n[[link]]\nname = 'b'\naddress = 'b:1'\naccept = ['primary-without-crc']\n\
                [[peer]]\nnode = 'ipn:*'\nemit = ['no-payload-crc']";
    let config = parse(text).expect("it makes sense");
    assert_eq!(config.link[0].accept, [Accept::PrimaryWithoutCrc]);
    let words = config.explain_all();
    assert!(
        words.contains("From the peer of link `b`: primary blocks without a checksum are accepted"),
        "{words}"
    );
    assert!(words.contains("To ipn:*: bundles with payloads without a checksum."), "{words}");
    let refused = |text: &str| parse(&format!("node = 'dtn://a/'\n{text}")).expect_err(text).to_string();
    assert!(refused("[[peer]]\nnode = 'bob'").contains("is not a valid node ID"));
    assert!(
        refused("[[peer]]\nnode = '*'\naccept = ['primary-without-crcs']").contains("primary-without-crc")
    );
}

#[test]
fn it_is_explained_in_words() {
    let config =
        parse("node = 'ipn:7.0'\nlisten = ['[::]:4556']\n[tcp]\nsend-buffer-bytes = 65536").expect("fine");
    let words = config.explain_all();
    for part in [
        "Node ipn:7.0\n",
        "Listens on [::]:4556",
        "/etc/longwire/store",
        "new bundles are refused",
        "send buffers of 65536 bytes",
    ] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn losses_before_relays_without_relays_are_warned_of() {
    let is_warned = |more: &str| {
        let link = "[[link]]\nname = 'moon'\nkind = 'ltp'\naddress = '192.0.2.7:1113'\n";
        let config = parse(&format!("node = 'ipn:7.0'\n[agent]\n{more}").replace("LINK", link));
        config.expect(more).explain().contains("WARNING: `agent.relay-losses` has no effect")
    };
    assert!(is_warned("relay-losses = 3"));
    assert!(is_warned("relay-losses = 3\nLINKrelays = 0"));
    assert!(!is_warned("relay-losses = 3\nrelays = 1"));
    assert!(!is_warned("relay-losses = 3\nLINKrelays = 1"));
    assert!(!is_warned("relays = 0"));
}

#[test]
fn a_setting_in_another_table_than_its_own_is_refused_with_its_own() {
    let hint = |text: &str| {
        let said = parse(&format!("node = 'dtn://a/'\n{text}")).expect_err(text).to_string();
        let (what, hint) = said.split_once("\nhint: ").expect("a hint");
        assert!(what.contains("unknown field"), "{said}");
        hint.to_owned()
    };
    let link = "[[link]]\nname = 'moon'\nkind = 'ltp-fec'\naddress = '192.0.2.7:4557'\n";
    assert_eq!(hint(&format!("{link}relay-losses = 3")), "`relay-losses` is a setting of `[agent]`");
    assert_eq!(hint("relay-losses = 3"), "`relay-losses` is a setting of `[agent]`");
    assert_eq!(hint(&format!("{link}margin = '2 s'")), "`margin` is a setting of `[link.ltp-fec]`");
    let code = "`block-symbols` is a setting of `[link.ltp-fec.fec]`";
    assert_eq!(hint(&format!("{link}block-symbols = 64")), code);
    let top = "`listen` belongs at the top of the file, before the first table";
    assert_eq!(hint(&format!("{link}listen = []")), top);
    assert_eq!(hint(&format!("{link}agent = {{ relays = 1 }}")), "`[agent]` is a table of its own");
    // Many tables have it.
    assert!(hint("retry-min = '2 s'").starts_with("known names: "), "{}", hint("retry-min = '2 s'"));
}

/// Returns the keys of a section that serde knows, from its error about an unknown key.
fn known(section: &str) -> Vec<String> {
    let head = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
    let said = parse(&format!("{head}no-such-key = 1")).expect_err(section).to_string();
    // Keys of one of several alternatives are not covered by this check.
    let expected = said.split_once("expected ").map_or("", |(_, expected)| expected);
    let known = expected.lines().next().unwrap_or_default().split('`').skip(1).step_by(2);
    known.map(str::to_owned).collect()
}

#[test]
fn every_key_is_listed() {
    let config =
        parse("node = 'dtn://a/'\n[[link]]\nname = 'b'\naddress = 'b:1'\ntcpcl.keepalive = '15 s'").unwrap();
    let all = listing::settings(&config);
    let mut sections: Vec<&str> = all.keys().filter_map(|key| Some(key.rsplit_once('.')?.0)).collect();
    sections.retain(|section| !section.starts_with("link"));
    sections.push("");
    sections.dedup();
    let mut count = 0;
    for section in sections {
        for key in known(section) {
            let path = if section.is_empty() { key } else { format!("{section}.{key}") };
            let elsewhere = listing::is_elsewhere(&path);
            let below = format!("{path}.");
            let listed = all.contains_key(&path) || all.keys().any(|key| key.starts_with(&below));
            assert!(listed || elsewhere, "`{path}` is missing");
            count += 1;
        }
    }
    assert!(count > 100, "only {count} keys");
    let words = config.explain_all();
    for line in [
        "  agent.clock-skew-max = \"60 min\"",
        "  agent.limits.place-ahead-bytes = 1048576",
        "  link.0.tcpcl.keepalive = \"15 s\"",
        "  link.0.peer: not set",
        "  node = \"dtn://a/\"  # default: \"\"",
        "  stream.stall = \"300 s\"",
        "  stream.udp-receive-buffer-bytes = 4194304",
    ] {
        assert!(words.lines().any(|said| said == line), "{line}\n{words}");
    }
}

/// Reads a figure in the form of the documents: a number, a percentage, a duration, or a number of bytes.
fn figure(text: &str) -> Option<f64> {
    let text = text.replace(',', "");
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number: f64 = number.parse().ok()?;
    let factor = match unit {
        "" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "TiB" => 1_099_511_627_776.0,
        "days" => 86_400.0,
        unit => longwire_settings::duration::parse(&format!("1 {unit}"))?.as_secs_f64(),
    };
    Some(number * factor)
}

/// Reads a value in the form of the list of all settings.
fn listed_figure(text: &str) -> Option<f64> {
    let text = text.trim_matches('"');
    text.parse().ok().or_else(|| Some(longwire_settings::duration::parse(text)?.as_secs_f64()))
}

/// Returns the configurations of a page, and for each commented-out setting a copy with it enabled.
fn examples(page: &str) -> Vec<String> {
    let is_setting = |line: &str| {
        let key = line.split_once(" = ").map(|(key, _)| key);
        key.is_some_and(|key| key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
    };
    let mut examples = Vec::new();
    for block in page.split("\n```toml\n").skip(1) {
        let lines: Vec<&str> = block.split("\n```").next().expect("its text").lines().collect();
        examples.push(lines.join("\n"));
        for (at, line) in lines.iter().enumerate() {
            if let Some(setting) = line.strip_prefix("# ").filter(|line| is_setting(line)) {
                let mut with = lines.clone();
                with[at] = setting;
                examples.push(with.join("\n"));
            }
        }
    }
    examples
}

/// Completes an example with what it leaves out: the rest of its own table, and the tables to which it refers.
fn completed(example: &str) -> String {
    const CALLSIGN: &str = "callsign = 'LW0CAL-1'";
    let mut whole = String::new();
    if !example.lines().take_while(|line| !line.starts_with('[')).any(|line| line.starts_with("node = ")) {
        whole += "node = 'dtn://alice/'\n";
    }
    if example.starts_with("[link.") {
        whole += "[[link]]\nname = 'x'\naddress = 'x:1'\n";
    }
    // The placeholder is not a valid callsign.
    whole += &example.replace("N0CALL", "LW0CAL");
    // The keys of the examples are in no file.
    let key = "key = \"00112233445566778899aabbccddeeff\"";
    whole = whole.replace("key-file = \"moon.key\"", key);
    let has = |part: &str| example.contains(part);
    if has("[[tnc]]") && !has("callsign = ") {
        whole += &format!("\nname = 'uhf'\naddress = '127.0.0.1:8001'\n{CALLSIGN}");
    }
    if has("tnc = \"uhf\"") && !has("[[tnc]]") {
        whole += &format!("\n[[tnc]]\nname = 'uhf'\naddress = '127.0.0.1:8001'\n{CALLSIGN}");
    }
    for name in ["bob", "orbiter"] {
        let named = ["via", "to"].iter().any(|key| has(&format!("{key} = \"{name}\"")));
        if named && !has(&format!("name = \"{name}\"")) {
            whole += &format!("\n[[link]]\nname = '{name}'\naddress = '{name}:1'");
        }
    }
    whole
}

/// Configurations in the documents are accepted by the program.
#[test]
fn the_configurations_of_the_pages_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs =
        std::fs::read_dir(root.join("docs")).expect("pages").map(|entry| entry.expect("a page").path());
    let pages = docs.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages.chain([root.join("README.md")]) {
        for example in examples(&std::fs::read_to_string(&page).expect("text")) {
            count += 1;
            if let Err(error) = parse(&completed(&example)) {
                wrong.push(format!("{}: {error}\n{example}\n", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 30, "only {count}");
}

/// Every setting with a figure on the page on limits has that figure as its default.
#[test]
fn the_page_on_limits_names_the_defaults() {
    let page = include_str!("../../../../docs/limits.md");
    let config =
        parse("node = 'dtn://a/'\n[[tnc]]\nname = 'vhf'\naddress = '127.0.0.1:8001'\ncallsign = 'oe1abc-7'")
            .unwrap();
    let all: Vec<(String, Option<String>)> = listing::settings(&config)
        .into_iter()
        .map(|(key, value)| (key.replace("tnc.0.", "tnc."), value))
        .collect();
    let mut count = 0;
    for (at, _) in page.match_indices("` (") {
        let key = &page[..at];
        let key = &key[key.rfind('`').expect("an opening one") + 1..];
        let said = page[at + 3..].split_once(')').expect("a closing one").0.replace('\n', " ");
        let said = said.split_once(": ").map_or(&said[..], |(said, _)| said);
        let Some(expected) = figure(said) else { continue };
        let below = format!(".{key}");
        let named: Vec<_> = all.iter().filter(|(name, _)| name == key || name.ends_with(&below)).collect();
        // A setting of a [peer] or [link] may share its name with a global one: the shortest is the global one.
        let (name, value) =
            named.iter().min_by_key(|(name, _)| name.len()).unwrap_or_else(|| panic!("no `{key}`"));
        let value = value.as_deref().and_then(listed_figure);
        assert_eq!(value, Some(expected), "`{key}` ({said}): {name}");
        count += 1;
    }
    assert!(count >= 20, "only {count} figures");
}

#[test]
fn a_token_is_not_listed() {
    let config = parse("node = 'dtn://a/'\n[http]\ntoken = 'a-long-secret-token'").expect("it makes sense");
    let words = config.explain_all();
    assert!(words.contains("http.token = \"..\"") && !words.contains("a-long-secret"), "{words}");
}

const TNC: &str =
    "node = 'dtn://a/'\n[[tnc]]\nname = 'vhf'\naddress = '127.0.0.1:8001'\ncallsign = 'oe1abc-7'\n";
const AGWPE: &str =
    "node = 'dtn://a/'\n[[tnc]]\nname = 'vhf'\naddress = 'agwpe:pi:8000'\ncallsign = 'oe1abc-7'\n";
const LINK: &str = "[[link]]\nname = 'bob'\nkind = 'ax25cl'\ntnc = 'vhf'\ncallsign = 'OE1XYZ'\n";

#[test]
fn a_limit_of_air_time_is_explained() {
    let explained = |text: &str| parse(text).expect("it makes sense").explain_all();
    let limited = explained(&format!("{TNC}air-time-max = '60 s'\n"));
    assert!(limited.contains("Air time: at most 60 s in any 10 min, key-ups included"), "{limited}");
    assert!(limited.contains("  tnc.0.air-time-window = \"10 min\""), "{limited}");
    assert!(explained(TNC).contains("set `air-time-max` to limit it"));
}

/// The longest frame names the digipeaters of its path.
#[test]
fn a_limit_of_air_time_has_room_for_a_frame_through_digipeaters() {
    let with = |limit: &str, path: &str| parse(&format!("{TNC}{limit}{LINK}path = [{path}]"));
    let air_time = |ms: u64| format!("air-time-max = '{ms} ms'\n");
    let duty_cycle = |ms: u64| format!("duty-cycle-max = 0.5\nduty-cycle-window = '{} ms'\n", 2 * ms);
    for limit in [&air_time as &dyn Fn(u64) -> String, &duty_cycle] {
        let all: Vec<u64> = (1..5000).collect();
        let smallest = all[all.partition_point(|ms| with(&limit(*ms), "").is_err())];
        let error = with(&limit(smallest), "'OE1XXR-1', 'OE1XXR-2'").expect_err("two addresses more");
        let hint = error.hint.expect("there is one");
        assert!(hint.contains("a frame of 256 bytes through 2 digipeaters takes"), "{hint}");
        // Two addresses of seven bytes at 1200 bit/s, with stuffed bits.
        with(&limit(smallest + 120), "'OE1XXR-1', 'OE1XXR-2'").expect("it is long enough");
    }
}

#[test]
fn a_tnc_and_links_over_it_are_explained() {
    let text = format!(
        "{TNC}[tnc.channel]\ntx-delay = '150 ms'\n[tnc.ax25]\nwindow-frames = 4\n{LINK}path = ['OE1XXR-1']\n\
         peer = 'dtn://bob/'\n[link.ax25]\nversion = 'plain'\n[link.ax25cl]\nresume-within = '1 h'\n"
    );
    let config = parse(&text).expect("it makes sense");
    let neighbour = config.neighbour(&config.link[0]).expect("it makes sense").expect("it is on the air");
    assert_eq!(
        (neighbour.tnc, neighbour.peer.link.window_frames),
        (0, 4),
        "what all of the TNC's links have"
    );
    assert_eq!(neighbour.peer.link.version, longwire_proto::ax25::Version::Plain, "and what is its own");
    let plan = config.plan(&config.link[0]).expect("it makes sense");
    let ours = plan.settings::<carriers::Ax25Cl>().expect("a link of AX25-CL");
    assert_eq!(ours.resume_within, Duration::from_secs(3600));
    assert_eq!(ours.node_id, "dtn://a/");
    assert_eq!(ours.peer_node_id.as_deref(), Some("dtn://bob/"));
    let words = config.explain_all();
    for part in [
        "TNC `vhf` at 127.0.0.1:8001, port 0: callsign OE1ABC-7, 1200 bit/s, TXDELAY 150 ms, slot time 100 ms",
        "Connects over link `bob` to OE1XYZ via OE1XXR-1 with TNC `vhf`",
        ", 4 with modulo 8",
        "  tnc.0.channel.tx-delay = \"150 ms\"",
        "  tnc.0.serial-rate-bps = 9600",
        "  link.0.ax25.version = \"plain\"",
        "  ax25cl.resume-within = \"15 min\"",
    ] {
        assert!(words.contains(part), "{part}\n{words}");
    }
}

#[test]
fn a_port_of_an_agwpe_server_is_explained() {
    let text = format!("{AGWPE}[tnc.channel]\nrate-bps = 9600\n[tnc.agwpe]\nport = 1\n{LINK}");
    let words = parse(&text).expect("it makes sense").explain_all();
    for part in [
        "TNC `vhf` at agwpe:pi:8000, port 1: callsign OE1ABC-7, 9600 bit/s",
        "which must be set in the TNC",
        "  tnc.0.agwpe.port = 1",
        "  tnc.0.agwpe.ask-interval = \"100 ms\"",
    ] {
        assert!(words.contains(part), "{part}\n{words}");
    }
}

const GROUP: &str = "[[link]]\nname = 'all'\nkind = 'uicl'\ntnc = 'vhf'\ncallsign = 'qst'\n";

/// A link to a multicast group.
const MULTICAST: &str =
    "node = 'dtn://a/'\n[[link]]\nname = 'all'\nkind = 'norm'\naddress = '239.192.7.1:4557'\n";

#[test]
fn a_multicast_group_is_explained() {
    for (more, expected) in [
        ("", "whether or not any node received it"),
        (
            "norm = { members = ['dtn://b/', 'ipn:7.0'] }",
            "all of the members dtn://b/, ipn:7.0 have acknowledged it",
        ),
        ("norm = { acknowledging = [7, 9] }", "2 nodes have acknowledged it"),
    ] {
        let words = parse(&format!("{MULTICAST}{more}")).expect("it is valid").explain();
        let link = words.lines().skip_while(|line| !line.starts_with("Link `all` to the group")).take(2);
        assert!(link.collect::<String>().contains(expected), "{more}: {words}");
    }
}

/// The times of a question and its answers follow from the channel, unless they are set.
#[test]
fn a_group_is_explained() {
    let text = format!("{TNC}{GROUP}uicl = {{ members = ['dtn://b/', 'dtn://c/'], needed = 1 }}\n");
    let group = |text: &str| {
        let config = parse(text).expect("it makes sense");
        let plan = config.plan(&config.link[0]).expect("it makes sense");
        (config.explain_all(), plan.settings::<carriers::Uicl>().expect("it is a group").clone())
    };
    let (words, slow) = group(&text);
    for part in [
        "Link `all` sends to the group QST over TNC `vhf` in UI frames",
        "1 of the members dtn://b/, dtn://c/ must confirm each bundle, answering in slots of",
        "  uicl.rounds-max = 64",
        "  link.0.uicl.needed = 1",
    ] {
        assert!(words.contains(part), "{part}\n{words}");
    }
    let (_, fast) = group(&format!("{text}[uicl]\nsilent-max = 3\n[[peer]]\nnode = 'dtn://b/'\n").replace(
        "callsign = 'oe1abc-7'\n",
        "callsign = 'oe1abc-7'\nturnaround = '0 s'\n[tnc.channel]\nrate-bps = 9600\ntx-delay = '100 ms'\nslot-time = '20 ms'\n",
    ));
    assert_eq!((slow.rate_bps, fast.rate_bps, slow.silent_max, fast.silent_max), (1200, 9600, 8, 3));
    assert!(fast.access * 3 < slow.access && fast.answer_slot * 3 < slow.answer_slot, "{fast:?} {slow:?}");
    let (words, said) =
        group(&format!("{TNC}{GROUP}uicl = {{ access = '7 s' }}\n[uicl]\nanswer-slot = '9 s'\n"));
    assert_eq!((said.access.as_secs(), said.answer_slot.as_secs()), (7, 9));
    assert!(words.contains("No members are named"), "{words}");
}

#[test]
fn what_makes_no_sense_on_the_air_is_refused_with_a_hint() {
    let cases = [
        (TNC.replace("oe1abc-7", "oe1abc-16"), "`oe1abc-16` is not a valid callsign", "0 to 15"),
        (TNC.replace("oe1abc-7", ""), "`` is not a valid callsign", "such as EI7IG"),
        (format!("{TNC}serial = '/dev/ttyUSB0'"), "both `address` and `serial` are set", "remove one"),
        (TNC.replace("address = '127.0.0.1:8001'\n", ""), "neither `address` nor `serial`", "/dev/ttyUSB0"),
        (TNC.replace("127.0.0.1:8001", "8001"), "`8001` is not a valid address", "8001"),
        (TNC.replace("127.0.0.1", "agwpe:"), "`agwpe::8001` is not a valid address", "agwpe:host:port"),
        (TNC.replace("127.0.0.1:8001", "/dev/ttyUSB0"), "`/dev/ttyUSB0` is not a valid address", "host:port"),
        (format!("{AGWPE}[tnc.kiss]\nport = 1"), "`kiss` does not apply", "remove `agwpe:`"),
        (format!("{TNC}[tnc.agwpe]\nport = 1"), "`agwpe` does not apply", "agwpe:host:port"),
        (format!("{AGWPE}[tnc.agwpe]\nport = 16"), "agwpe.port` is 16", "four bits"),
        (format!("{TNC}burst-frames-max = 0"), "TNC `vhf`: `burst-frames-max` is 0", "64 is usual"),
        (
            format!("{TNC}[tnc.ax25]\nwindow-frames = 8"),
            "ax25.window-frames` is 8",
            "modulo 8 allows at most seven",
        ),
        (format!("{TNC}[tnc.ax25]\ninformation-bytes-max = 40"), "the node ID alone needs 8", "256 is usual"),
        (format!("{TNC}air-time-max = '1 s'"), "long enough for the longest frame", "no limit"),
        (format!("{TNC}air-time-max = '11 min'"), "not longer than `air-time-window`", "no limit"),
        (format!("{TNC}[tnc.channel]\nslot-time = '3 s'"), "channel.slot-time` is 3", "units of 10 ms"),
        (
            format!("{TNC}[tnc.channel]\ntxdelay = '3 s'"),
            "unknown field `txdelay`",
            "did you mean `tx-delay`?",
        ),
        (format!("{TNC}links-max = 0"), "`links-max` is 0", "answer = false"),
        (format!("{TNC}{}", &TNC[TNC.find('[').unwrap_or(0)..]), "duplicate TNC name `vhf`", "rename one"),
        (
            format!("{TNC}{}", LINK.replace("'vhf'", "'vhv'")),
            "link `bob`: no such TNC: `vhv`",
            "did you mean `vhf`?",
        ),
        (
            format!("{TNC}{}", LINK.replace("OE1XYZ", "OE1ABC-7")),
            "is the callsign of this station",
            "its own callsign or \
                  SSID",
        ),
        (
            format!("{TNC}{LINK}address = 'b:1'"),
            "`address` does not apply to kind ax25cl",
            "`tnc` and `callsign`",
        ),
        (
            format!("{TNC}{LINK}[link.tcpcl]\nkeepalive = '9 s'"),
            "`tcpcl` does not apply to kind ax25cl",
            "ax25cm",
        ),
        (format!("{TNC}{LINK}path = [{}]", "'X', ".repeat(9)), "has 9 digipeaters", "eight"),
        (format!("{TNC}{LINK}[link.ax25]\nwindow-frames = 0"), "[ax25]: `window-frames` is 0", "seven"),
        (
            format!("{TNC}{}", TNC[TNC.find('[').unwrap_or(0)..].replace("'vhf'", "'uhf'")),
            "TNCs `vhf` and `uhf` share 127.0.0.1:8001: both use port 0",
            "`kiss.port`",
        ),
        (
            format!(
                "{TNC}[tnc.kiss]\nchecksum = 'smack'\n{}[tnc.kiss]\nport = 1",
                TNC[TNC.find('[').unwrap_or(0)..].replace("'vhf'", "'uhf'")
            ),
            "their checksums differ",
            "the same `kiss.checksum` for all",
        ),
        (format!("{MULTICAST}peer = 'dtn://b/'"), "a group has no `peer`", "members"),
        (format!("{MULTICAST}hops = 0"), "`hops` is 0", "1 for one network"),
        (format!("{MULTICAST}norm = {{ members = ['dtn://a/'] }}"), "cannot be a member", "other nodes"),
        (
            MULTICAST.replace("239.192.7.1", "192.0.2.7") + "norm = { members = ['dtn://b/'] }",
            "192.0.2.7:4557 is one node",
            "239.192.7.1",
        ),
        (format!("{TNC}{GROUP}peer = 'dtn://b/'"), "a group has no `peer`", "members"),
        (format!("{TNC}{GROUP}[link.uicl]\nmembers = ['bob']"), "`bob` is not a valid node ID", "dtn://bob/"),
        (
            format!("{TNC}{GROUP}[link.uicl]\nmembers = ['dtn://a/']"),
            "this node cannot be a member",
            "the other nodes",
        ),
        (
            format!("{TNC}{GROUP}[link.uicl]\nneeded = 1"),
            "[uicl]: `needed` is 1",
            "at most the number of members",
        ),
        (
            format!("{TNC}{GROUP}[link.ax25cl]\nretry-min = '9 s'"),
            "`ax25cl` does not apply to kind uicl",
            "uicl",
        ),
        (format!("{TNC}{LINK}[link.uicl]\nneeded = 1"), "`uicl` does not apply to kind ax25cl", "uicl"),
        (format!("{TNC}[uicl]\nmembers = ['dtn://b/']"), "`uicl.members`", "in the [[link]]"),
        (
            format!("{TNC}{GROUP}{}", GROUP.replace("'all'", "'more'").replace("qst", "QST")),
            "is already the group of link `all`",
            "a different callsign",
        ),
        (format!("{TNC}[ax25cm]\nversions = '4'"), "`ax25cm` is TCPCL version 3", "remove `versions`"),
        (
            format!("{TNC}[[link]]\nname = 'b'\naddress = 'b:1'\ncallsign = 'X'"),
            "`callsign` does not apply to kind tcp",
            "ax25cl",
        ),
    ];
    for (text, what, hint) in cases {
        let said = parse(&text).expect_err(&text).to_string();
        assert!(said.contains(what) && said.contains("hint: ") && said.contains(hint), "{text}: {said}");
    }
}

/// A configuration copied from the manual must not transmit without a valid callsign.
#[test]
fn a_placeholder_is_no_callsign() {
    let text = |callsign: &str| {
        format!(
            "node = 'dtn://a/'\n[[tnc]]\nname = 'uhf'\naddress = '127.0.0.1:8001'\ncallsign = '{callsign}'\n"
        )
    };
    for callsign in ["N0CALL", "n0call-1", "N0CALL-15", "NOCALL", "MYCALL-3"] {
        let said = parse(&text(callsign)).expect_err(callsign).to_string();
        assert!(said.contains("TNC `uhf`: `callsign`: ") && said.contains("use your callsign"), "{said}");
    }
    assert!(parse(&text("N0CAL-1")).is_ok());
}

#[test]
fn the_configurations_of_the_manual_make_sense() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    for name in ["two-nodes/alice", "two-nodes/bob", "two-radios/alice", "two-radios/bob"] {
        let text = std::fs::read_to_string(docs.join(format!("{name}.toml"))).expect("it is there");
        let read = parse(&text.replace("N0CALL", "EI7IG"));
        let words = read.unwrap_or_else(|error| panic!("{name}: {error}")).explain();
        assert!(words.lines().count() <= 15, "short enough to be read: {words}");
        assert!(!words.contains("agent.limits"), "{words}");
        assert_eq!(words.contains("TNC `uhf`"), name.starts_with("two-radios"), "{words}");
    }
}

#[test]
fn more_connections_than_can_be_counted_are_refused() {
    for section in ["applications", "http"] {
        let with = |most: &str| parse(&format!("node = 'dtn://a/'\n[{section}]\nconnections-max = {most}"));
        assert!(with("1_000_000").is_ok());
        for most in ["1_000_001", "9_223_372_036_854_775_807"] {
            let error = with(most).expect_err(most).to_string();
            let said = format!("`{section}.connections-max` is greater than 1,000,000");
            assert!(error.contains(&said) && error.contains("hint: "), "{most}: {error}");
        }
    }
}

#[test]
fn a_scrub_without_rest_is_refused() {
    let with = |every: &str| parse(&format!("node = 'dtn://a/'\n[storage]\nscrub-every = '{every}'"));
    assert!(with("1 s").is_ok() && with("0 s").is_ok());
    for every in ["1 ns", "999 ms"] {
        let error = with(every).expect_err(every).to_string();
        assert!(error.contains("`storage.scrub-every` is less than 1 s"), "{every}: {error}");
    }
}

/// Neither a FIFO without a writer nor a device without an end delays a start or a reload.
#[test]
fn a_configuration_and_a_token_are_regular_files() {
    let place = std::env::temp_dir().join(format!("longwire-regular-config-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let fifo = place.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for path in [&fifo, Path::new("/dev/zero"), &place] {
        let error = Config::load(path).expect_err("it is refused").to_string();
        let said = format!("cannot read {}: not a regular file", path.display());
        assert!(error.contains(&said) && error.contains("hint: "), "{error}");
        let text = format!("node = 'dtn://a/'\n[http]\ntoken-file = '{}'", path.display());
        let error =
            parse(&text).expect("it makes sense").http.token().expect_err("it is refused").to_string();
        assert!(error.contains("cannot read the token") && error.contains("not a regular file"), "{error}");
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn room_is_ample_beyond_what_a_connection_usually_queues() {
    let text = "node = 'dtn://alice/'\nstream.queue-bytes = 100_000\n[[link]]\nname = 'b'\naddress = 'b:1'\n";
    let config = parse(text).expect("fine");
    let callers =
        [config.tcp_callers(), config.amateur_callers().expect("fine").settings::<Tcpcl>().unwrap().clone()];
    for session in [session(&config)].iter().chain(&callers) {
        assert_eq!(session.ample_room_bytes, Some(100_000));
    }
    let own = format!("{text}[link.tcpcl]\nample-room-bytes = 5\n");
    assert_eq!(session(&parse(&own).expect("fine")).ample_room_bytes, Some(5));
}
