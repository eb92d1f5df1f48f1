use super::*;

const TEXT: &str = r#"
    title = "two hops"
    protocol = "tcpcl3/dtn2"
    nodes = ["tx", "mx", "rx"]
    runs = 4
    workload.bytes = 1000

    [[channel]]
    between = ["tx", "mx"]
    profile = "cislunar"
    delay-ms = 2000

    [[channel]]
    between = ["rx", "mx"]
    profile = "cislunar"
    delay-ms = 2000
    outage = [{ length-s = 30 }]

    [sweep]
    "channel.ber" = [0, 1e-6]
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test").expect(text)
}

fn points(text: &str, sweeps: &[&str]) -> Result<Vec<GridPoint>, Error> {
    let further: Vec<_> = sweeps.iter().map(|word| parse_sweep(word).expect("a sweep")).collect();
    Scenario::points(text.parse().expect("TOML"), &further, "test")
}

#[test]
fn a_chain_has_the_link_and_the_outages_of_each_hop() {
    let path = parse(TEXT).path(Path::new(".")).expect("links");
    assert_eq!(path.iter().map(|(link, _)| link.delay_ms).collect::<Vec<_>>(), [2000.0, 2000.0]);
    assert_eq!(path.iter().map(|(_, outages)| outages.len()).collect::<Vec<_>>(), [0, 1]);
    let plain = parse("nodes = ['a', 'b', 'c']").path(Path::new(".")).expect("links");
    assert_eq!(plain, [(LinkProfile::default(), Vec::new()), (LinkProfile::default(), Vec::new())]);
}

#[test]
fn sweeps_make_a_grid_whose_last_key_varies_fastest() {
    let points = points(TEXT, &["channel.outage.length-s=0,30,60"]).expect("a grid");
    let texts: Vec<String> = points.iter().map(|point| point.params.to_string()).collect();
    assert_eq!(texts.len(), 6);
    assert_eq!(texts[1], "ber=0 outage_length_s=30");
    let path = points[5].scenario.path(Path::new(".")).expect("links");
    assert_eq!((path[0].0.ber, path[1].0.ber, path[1].1[0].length_s), (1e-6, 1e-6, 60.0));
}

/// Files of earlier versions, and the same in the present shape.
const BEFORE: [(&str, &str); 4] = [
    (
        "stack = 'tcp'\nnodes = ['a', 'b', 'c']\n[[link]]\nprofile = 'lan'\n[[outage]]\nhop = 2\nlength-s = 3\n\
         [[outage]]\nlength-s = 4\n[[outage]]\nhop = 2\nafter-s = 5\nlength-s = 6",
        "protocol = 'tcp'\nnodes = ['a', 'b', 'c']\n[[channel]]\nbetween = ['a', 'b']\nprofile = 'lan'\n\
         outage = [{ length-s = 4 }]\n[[channel]]\nbetween = ['b', 'c']\nprofile = 'lan'\n\
         outage = [{ length-s = 3 }, { after-s = 5, length-s = 6 }]",
    ),
    (
        "[[link]]\nber = 1e-5\n[link.radio]\npersistence = 127",
        "[[channel]]\nbetween = ['tx', 'rx']\nber = 1e-5\n[channel.radio]\npersistence = 127",
    ),
    (
        "nodes = ['a', 'b']\n[messages]\nfrom = ['a']\nto = ['b']\n[[meeting]]\nbetween = ['b', 'a']\nfirst-s = 9\n\
         [[meeting]]\nbetween = ['a', 'b']\nchance = 0.5",
        "nodes = ['a', 'b']\nruns = 8\n[messages]\nfrom = ['a']\nto = ['b']\n[[channel]]\nbetween = ['b', 'a']\n\
         contact = [{ first-s = 9 }]\n[[channel]]\nbetween = ['a', 'b']\ncontact = [{ chance = 0.5 }]",
    ),
    (
        "nodes = ['a', 'b']\n[radio]\nrate-bps = 9600\n[[radio.paths]]\nfrom = 0\nto = 1\nheard = false",
        "nodes = ['a', 'b']\n[frames]\n[[channel]]\nbetween = ['a', 'b']\nrate-bps = 9600\n[[channel.paths]]\n\
         from = 0\nto = 1\nheard = false",
    ),
];

#[test]
fn files_of_earlier_versions_are_the_same_scenarios() {
    for (before, now) in BEFORE {
        assert_eq!(parse(before), parse(now), "{before}");
    }
    // Sweeps are those of the file's own keys.
    let swept = points(BEFORE[0].0, &["link.ber=0,1e-6", "outage.0.length-s=4"]).expect("a grid");
    assert_eq!(swept[1].params.to_string(), "ber=1e-6 outage_length_s=4");
    let path = swept[1].scenario.path(Path::new(".")).expect("links");
    assert_eq!((path[0].0.ber, path[1].0.ber, path[1].1[0].length_s), (1e-6, 1e-6, 4.0));
    assert_eq!(points("stack = 'tcp'", &["stack=udp"]).expect("a point")[0].scenario.protocol, "udp");
    assert!(points("stack = 'tcp'", &["protocol=tcp,udp"]).is_err(), "the file's own protocol would win");
    assert_eq!(points(BEFORE[3].0, &["radio.rate-bps=300,1200"]).expect("a grid").len(), 2);
    for (text, what) in [
        ("stack = 'tcp'\nprotocol = 'udp'", "`stack` and `protocol`"),
        ("nodes = ['a', 'b']\n[[link]]\n[[channel]]\nbetween = ['a', 'b']", "`link` and `channel`"),
        ("nodes = ['a', 'b', 'c', 'd']\n[[link]]\n[[link]]", "4 nodes make 3 hops, but there are 2 links"),
        ("[[outage]]\nhop = 2", "no such hop: 2"),
        ("[[outage]]\nhop = 0", "no such hop: 0"),
        ("[link]\nber = 0", "`link` is not a list of tables"),
        ("radio = 1", "`radio` is not a table"),
    ] {
        let error = Scenario::parse(text, "test").expect_err(text).to_string();
        assert!(error.starts_with("test: ") && error.contains(what), "{error}");
    }
}

#[test]
fn a_wrong_key_is_refused_with_a_hint_at_every_level() {
    for (text, hint) in [
        ("protcol = 'tcp'", "did you mean `protocol`?"),
        ("[workload]\nbites = 1", "did you mean `bytes`?"),
        ("[[outage]]\nlenght-s = 1", "did you mean `length-s`?"),
        ("[[channel]]\nbetween = ['tx', 'rx']\noutage = [{ from = 'dta' }]", "did you mean `data`?"),
        ("[messages]\n[[chanel]]", "did you mean `channel`?"),
        ("[frames]\nper-minut = 1", "did you mean `per-minute`?"),
        ("[airborne]\nrelay = 1", "did you mean `relays`?"),
    ] {
        let error = Scenario::parse(text, "test").expect_err(text).to_string();
        assert!(error.contains(hint), "{error}");
    }
    let channel = parse("[[channel]]\nbetween = ['tx', 'rx']\ndelay-m = 1").path(Path::new("."));
    assert!(channel.expect_err("no such key").to_string().contains("did you mean `delay-ms`?"));
}

#[test]
fn invalid_scenarios_are_refused_by_name() {
    let two = "nodes = ['a', 'b']\n";
    let meet =
        "nodes = ['a', 'b']\n[messages]\nfrom = ['a']\nto = ['b']\n[[channel]]\nbetween = ['a', 'b']\n";
    for (text, what) in [
        ("nodes = ['tx']", "`nodes` needs at least two"),
        ("nodes = ['tx', 'tx']", "duplicate node name"),
        ("nodes = ['tx', 'r/x']", "`r/x` is not a valid node name"),
        ("runs = 0", "`runs`"),
        ("[[outage]]\nannounced = true\nfrom = 'data'", "cannot be announced"),
        ("[[outage]]\nlength-s = 9\n[[outage]]\nafter-s = 5\nlength-s = 9", "outages overlap"),
        ("[workload]\nbytes = 1000000000000000", "`workload.bytes`"),
        ("duration-limit-s = 0", "`duration-limit-s`"),
        (&format!("{two}[[channel]]\nbetween = ['a']"), "must name 2 different nodes"),
        (&format!("{two}[[channel]]\nbetween = ['a', 'a']"), "must name 2 different nodes"),
        (&format!("{two}[[channel]]\nbetween = ['a', 'c']"), "`c` is not in `nodes`"),
        ("nodes = ['a', 'b', 'c']\n[[channel]]\nbetween = ['a', 'b']", "no channel between `b` and `c`"),
        (
            "nodes = ['a', 'b']\n[[channel]]\nbetween = ['a', 'b']\n[[channel]]\nbetween = ['b', 'a']",
            "`[[channel]]` is given 2 times for 1 hop along",
        ),
        (
            &format!("{two}[[channel]]\nbetween = ['a', 'b']\ncontact = [{{}}]"),
            "is for scenarios with `[messages]`",
        ),
        (&format!("{meet}outage = [{{}}]"), "is for scenarios with `[workload]`"),
        (&format!("{meet}rate-bps = 9"), "`rate-bps` does not apply"),
        (&format!("{meet}contact = [{{ lasts-s = 0 }}]"), "`lasts-s` must be at least 1"),
        (&format!("{meet}contact = [{{ every-s = 10 }}]"), "before the next can begin"),
        (
            "nodes = ['a', 'b', 'c']\n[frames]\n[[channel]]\nbetween = ['a', 'b']",
            "must name 3 different nodes",
        ),
        (&format!("protocol = 'tcp'\n{meet}"), "unknown field `protocol`"),
    ] {
        let error = Scenario::parse(text, "test").expect_err(text).to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn a_sweep_says_what_is_wrong_with_it() {
    assert!(parse_sweep("channel.ber").is_err());
    let error = points("", &["runz=1,2"]).expect_err("no such key").to_string();
    assert!(error.contains("did you mean `runs`?"), "{error}");
    let error = points("", &["sweep.workload.bytes=1"]).expect_err("a sweep of a sweep").to_string();
    assert!(error.contains("`sweep.workload.bytes` is the key of a sweep"), "{error}");
    let error = points(TEXT, &["channel.0.delay-ms=1,2", "channel.1.delay-ms=1,2"]).expect_err("one name");
    assert!(error.to_string().contains("the same name in the results, `delay_ms`"), "{error}");
}

#[test]
fn moving_nodes_have_limits() {
    assert_eq!(parse("[airborne]\nrelays = 0").airborne, Airborne { relays: 0, ..Airborne::default() });
    for (text, what) in [
        ("routers = []", "at least one entry"),
        ("copies = 128", "from 1 to 127"),
        ("ground-stations = 0", "ground stations"),
        ("test-articles = 61", "1 to 60 test articles"),
        ("range-km = 0", "from 0.1 to 10,000"),
        ("range-km = 5", "up to 10 km above"),
        ("speed-mps = [300, 100]", "the least one first"),
        ("relay-speed-mps = [0, 100]", "from 1 to 1,000 m/s"),
        ("duration-s = 500", "`within-s`"),
        ("lifetime-s = 7000", "6,553"),
        ("packets = 0", "1 to 10,000"),
        ("bytes = 3", "from 16 to 1400"),
        ("bad-share = 1.5", "from 0 to 1"),
        ("beacon-s = 0", "from 0.1 to 100"),
        ("queue-bytes = 10", "at least 1500"),
    ] {
        let error = Scenario::parse(&format!("[airborne]\n{text}"), "test").expect_err(text).to_string();
        assert!(error.contains(what), "{error}");
    }
    let error = Scenario::parse("nodes = ['a', 'b']\n[airborne]", "test").expect_err("nodes are not named");
    assert!(error.to_string().contains("nodes"), "{error}");
}
