//! Snapshots of the complete output of commands, as a user sees it.
//!
//! `INSTA_UPDATE=always cargo test -p longwire` updates the snapshots.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Temporary folder of a test, removed on drop.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("longwire-cli-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("letter.txt"), "Nothing accepted is ever lost.\n".repeat(100)).unwrap();
        fs::write(path.join("empty"), "").unwrap();
        Place(path)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(words).current_dir(&self.0).env_clear().stdin(Stdio::null());
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs a command and returns it with its output and exit status.
    fn transcript(&self, words: &[&str]) -> String {
        let output = self.output(words);
        let mut out = format!("$ longwire {}\n", words.join(" "));
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                out += &format!("-- {name}\n{}", String::from_utf8_lossy(bytes));
            }
        }
        let status = output.status.code().unwrap();
        out += &format!("-- status {status}\n");
        out.replace(&*self.0.to_string_lossy(), "HERE")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn all_of(place: &Place, commands: &[&[&str]]) -> String {
    commands.iter().map(|words| place.transcript(words)).collect::<Vec<_>>().join("\n")
}

#[test]
fn help() {
    let place = Place::new("help");
    let commands: [&[&str]; 13] = [
        &["--help"],
        &["call", "--help"],
        &["init", "--help"],
        &["doctor", "--help"],
        &["status", "--help"],
        &["links", "--help"],
        &["measure", "--help"],
        &["demo", "--help"],
        &["compare", "--help"],
        &["emulate", "--help"],
        &["paper", "--help"],
        &["run", "--help"],
        &["model", "ax25", "--help"],
    ];
    insta::assert_snapshot!(all_of(&place, &commands));
}

#[test]
fn commands_that_are_not_understood() {
    let place = Place::new("usage");
    let commands: [&[&str]; 27] = [
        &["call", "N0CALL", "--tnc", "127.0.0.1:8001", "--own", "OE1ABC"],
        &["call", "OE1ABC", "--tnc", "127.0.0.1:8001", "--own", "OE1ABC"],
        &["call", "OE1XYZ", "--tnc", "nowhere", "--own", "OE1ABC"],
        &["compere", "letter.txt"],
        &["emulate", "lan"],
        &["emulate", "lan", "--udp", "127.0.0.1:7001"],
        &["emulate", "lan", "--udp", "127.0.0.1:7001,host"],
        &["emulate", "lan", "--set", "bre=0", "--udp", "127.0.0.1:7001,127.0.0.1:7002"],
        &["emulate", "ax25-1200", "--udp", "127.0.0.1:7001,127.0.0.1:7002"],
        &["compare", "letter.txt"],
        &["compare", "letter.txt", "--link", "cislnar"],
        &["compare", "letter.txt", "--link", "lan", "--runs", "0"],
        &["compare", "letter.txt", "--link", "lan", "--threads", "many"],
        &["compare", "letter.txt", "--link", "lan", "--seed", "-1"],
        &["ping", "dtn://bob/", "--count", "0"],
        &["ping", "dtn://bob/", "--interval", "1"],
        &["certificate", "dtn://bob/", "--lifetime", "1h"],
        &["monitor", "--tnc", "pi:8001", "--port", "16"],
        &["model", "ax25", "--slot", "0.1"],
        &["paper", "cislunr"],
        &["paper", "--jsn", "cislunar"],
        &["run", "world.toml", "--shard", "3/2"],
        &["run", "world.toml", "--sweep", "link.ber"],
        &["model", "ax25", "--preset", "ronan"],
        &["model", "ax25", "--persistence", "0"],
        &["model", "ax25", "--rate", "1200,0"],
        &["model", "ax25", "--stuffing", "exact"],
    ];
    insta::assert_snapshot!(all_of(&place, &commands));
}

#[test]
fn commands_that_cannot_be_carried_out() {
    let place = Place::new("failures");
    fs::write(place.0.join("world.toml"), "protocol = \"tcpcl3\"\nchanel = []\n").unwrap();
    let commands: [&[&str]; 7] = [
        &["compare", "leter.txt", "--link", "lan"],
        &["compare", "empty", "--link", "lan"],
        &["compare", ".", "--link", "lan"],
        &["compare", "letter.txt", "--link", "lan", "--out", "empty"],
        &["run", "wrld.toml"],
        &["run", "world.toml"],
        &["model", "ax25", "--file", "leter.txt"],
    ];
    insta::assert_snapshot!(all_of(&place, &commands));
}

const COMPARE: [&str; 6] = ["compare", "letter.txt", "--link", "cislunar", "--runs", "3"];

fn with<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

#[test]
fn the_json_document_has_the_promised_shape() {
    let place = Place::new("json");
    let output = place.output(&with(&COMPARE, &["--json"]));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["experiment"], "compare");
    assert_eq!(document["seed"], 1);
    let answer = document["answer"].as_str().unwrap();
    let ranking = document["ranking"].as_array().unwrap();
    assert_eq!(ranking.iter().filter(|place| place["winner"] == true).count(), 1);
    for (at, place) in ranking.iter().enumerate() {
        let name = format!("{}/{}", place["protocol"].as_str().unwrap(), place["settings"].as_str().unwrap());
        assert_eq!(place["winner"], at == 0, "{place}");
        assert!(at > 0 || answer.starts_with(&name), "{answer}");
        assert_eq!(place["rank"].is_null(), place["acknowledged"] == false, "{place}");
        assert_eq!(place["rank"].is_null(), place["tie_group"].is_null(), "{place}");
        assert_eq!(
            place["keeps_accepted"],
            ["tcpcl3", "tcpcl4", "ltp", "norm", "ltp-fec", "saratoga", "aerotp"]
                .contains(&place["protocol"].as_str().unwrap())
        );
        for number in ["runs", "delivered", "transfer_s", "limit_s", "ratio"] {
            assert!(place[number].is_number(), "{number} of {place}");
        }
        let behind = &place["behind_winner"];
        assert!(behind["mean_s"].is_number() && behind["pairs"].is_u64(), "{place}");
        assert!(behind["significant"].is_boolean() && behind.get("ci95_s").is_some(), "{place}");
        let configuration = &place["configuration"];
        let is_of_node = configuration["kind"].is_string();
        assert_eq!(
            (configuration["node"].is_object(), configuration["engine"].is_null()),
            (is_of_node, is_of_node)
        );
        for list in ["system", "fixed_by_kernel"] {
            assert!(configuration[list].is_array(), "{list} of {place}");
        }
    }
    let records = document["records"].as_array().unwrap();
    assert!(!records.is_empty());
    for record in records {
        for number in ["n", "mean", "min", "max"] {
            assert!(record[number].is_number(), "{number} of {record}");
        }
        for text in ["protocol", "metric", "kind", "unit"] {
            assert!(record[text].is_string(), "{text} of {record}");
        }
        for known in ["ci95", "reference", "source", "limit", "ratio"] {
            assert!(record.get(known).is_some(), "{known} of {record}");
        }
        assert!(record["params"].is_object(), "{record}");
    }
    assert!(!place.0.join("longwire-report").exists(), "JSON alone writes no files");
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let place = Place::new("seed");
    let run = |threads: &str| {
        let more = ["--json", "--threads", threads, "--out", threads, "--trace", threads, "--seed", "7"];
        let output = place.output(&with(&COMPARE, &more));
        assert!(output.status.success(), "{output:?}");
        let mut files = vec![output.stdout];
        let mut folders = vec![place.0.join(threads)];
        while let Some(folder) = folders.pop() {
            let mut entries: Vec<PathBuf> =
                fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            entries.sort();
            for entry in entries {
                if entry.is_dir() { folders.push(entry) } else { files.push(fs::read(entry).unwrap()) }
            }
        }
        files
    };
    let one = run("1");
    assert!(one.len() >= 8, "JSON, four files, and three for each traced run");
    assert!(one == run("2"), "two threads give other bytes than one");
    let again = with(&COMPARE, &["--json", "--seed", "8"]);
    assert!(one[0] != place.output(&again).stdout, "another seed gives the same bytes");
}

#[test]
fn the_page_opens_offline() {
    let place = Place::new("page");
    assert!(place.output(&with(&COMPARE, &["--quiet", "--out", "here"])).status.success());
    let page = fs::read_to_string(place.0.join("here/report.html")).unwrap();
    let links: Vec<&str> = page.split("href=\"").skip(1).collect();
    assert!(links.iter().any(|link| link.starts_with("data:text/csv")));
    for link in links {
        assert!(link.starts_with("data:") || link.starts_with('#'), "{}", &link[..60]);
    }
    for outside in ["src=", "<script", "<link", "@import", "http://", "https://"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for file in ["compare.json", "records.csv", "runs.csv"] {
        assert!(place.0.join("here").join(file).exists(), "{file}");
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_failure() {
    let place = Place::new("pipe");
    let mut child = place
        .command(&with(&COMPARE, &["--json"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// After Ctrl-C the completed runs are shown, in whole rounds, so that all protocols had the same noise.
#[test]
fn an_interrupted_comparison_shows_what_it_has() {
    use rustix::process::{Pid, Signal, kill_process};
    let place = Place::new("interrupted");
    let words = ["compare", "letter.txt", "--link", "cislunar", "--runs", "20000", "--json", "--out", "out"];
    let mut child = place.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The folder is created after the signal handler is installed.
    while !place.0.join("out").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it began");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("stopped early; "), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let records = document["records"].as_array().unwrap();
    let all = records.iter().filter(|record| record["metric"] == "delivered");
    let counts: Vec<u64> = all.map(|record| record["n"].as_u64().unwrap()).collect();
    assert!(counts.len() > 8 && counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    assert!((1..20_000).contains(&counts[0]), "{counts:?}");
    let page = fs::read_to_string(place.0.join("out/report.html")).unwrap();
    assert!(page.contains(" of 20,000 runs of each completed."), "{counts:?}");
    assert!(page.contains(&format!("--runs {}", counts[0])), "the command gives this very page again");
}

/// Wireshark finds no malformed packets and no retransmissions in captures of an error-free link. Skipped if tshark is not
/// installed.
#[test]
fn wireshark_finds_nothing_wrong_in_the_captures_of_a_good_line() {
    let tshark = |words: &[&str]| Command::new("tshark").args(words).output();
    if tshark(&["--version"]).is_err() {
        println!("skipped: there is no tshark");
        return;
    }
    let place = Place::new("wireshark");
    let words = ["compare", "letter.txt", "--link", "lan", "--runs", "1", "--quiet", "--trace", "traces"];
    assert!(place.output(&words).status.success());
    let mut looked_at = 0;
    for protocol in ["tcp-linux-6", "tcpcl3-tuned", "tcpcl4-default"] {
        for node in ["tx", "rx"] {
            let capture = place.0.join("traces").join(protocol).join(format!("capture-{node}.pcapng"));
            let capture = capture.to_str().unwrap();
            let lines = |filter: &str| {
                let output = tshark(&["-r", capture, "-Y", filter]).unwrap();
                assert!(output.status.success(), "{output:?}");
                String::from_utf8_lossy(&output.stdout).into_owned()
            };
            for filter in ["_ws.malformed", "tcp.analysis.retransmission", "tcp.analysis.out_of_order"] {
                assert_eq!(lines(filter), "", "{protocol} at {node}: {filter}");
            }
            let all = lines("tcp");
            // Two segments open the connection, and three carry the letter.
            assert!(all.lines().count() >= 5, "{all}");
            assert_eq!(all.contains("TCPCL"), protocol != "tcp-linux-6", "{all}");
            looked_at += 1;
        }
    }
    assert_eq!(looked_at, 6);
}

/// The same for segments of LTP, on its own port.
#[test]
fn wireshark_dissects_segments_in_datagrams() {
    let tshark = |words: &[&str]| Command::new("tshark").args(words).output();
    if tshark(&["--version"]).is_err() {
        println!("skipped: there is no tshark");
        return;
    }
    let place = Place::new("wireshark-ltp");
    let words = ["compare", "letter.txt", "--link", "lan", "--runs", "1", "--quiet", "--trace", "traces"];
    assert!(place.output(&words).status.success());
    for node in ["tx", "rx"] {
        let capture = place.0.join("traces/ltp-tuned").join(format!("capture-{node}.pcapng"));
        let lines = |filter: &str| {
            let output = tshark(&["-r", capture.to_str().unwrap(), "-Y", filter]).unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(lines("_ws.malformed"), "", "{node}");
        // Three data segments; the capture ends with the arrival of the file.
        assert!(lines("ltp").lines().count() >= 3, "{}", lines("ltp"));
    }
}

/// A few bytes over an error-free link: the output changes only if the behaviour of a protocol is changed on purpose.
#[test]
fn compare() {
    let place = Place::new("compare");
    insta::assert_snapshot!(place.transcript(&["compare", "letter.txt", "--link", "lan", "--runs", "2"]));
}

/// Only the lead and the misses: the tables in between are long, and the tests of the lab check them.
#[test]
fn a_paper_says_what_it_predicts_and_what_misses() {
    let place = Place::new("paper");
    let said = place.transcript(&["paper", "ax25-throughput", "--runs", "2"]);
    let parts: Vec<&str> = said.split("\n\n").collect();
    let misses = parts.iter().position(|part| part.starts_with("Claims that do not hold")).unwrap();
    insta::assert_snapshot!([parts[0], parts[misses], parts[misses + 1]].join("\n\n"));
}

#[test]
fn model() {
    let place = Place::new("model");
    let commands: [&[&str]; 5] = [
        &["model", "ax25"],
        &["model", "ax25", "--preset", "zielinski-t2", "--rate", "9600", "--serial", "57600"],
        &["model", "ax25", "--preset", "direwolf", "--rate", "1200", "--bytes", "1000", "--poll", "true"],
        &["model", "ax25", "--rate", "1200", "--stuffing", "exact", "--file", "letter.txt"],
        &["model", "ax25", "--preset", "zielinski", "--rate", "9600", "--duplex", "full"],
    ];
    insta::assert_snapshot!(all_of(&place, &commands));
    assert!(!place.0.join("longwire-report").exists(), "files are written where they are asked for");
    let json = place.output(&["model", "ax25", "--json", "--out", "out", "--rate", "1200"]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let records = document["records"].as_array().unwrap();
    let time_of = |window: u64| {
        let mut of_window = records.iter().filter(|record| record["params"]["window"] == window);
        of_window.find(|record| record["metric"] == "transfer_s").unwrap()
    };
    assert_eq!((&time_of(1)["kind"], &time_of(1)["n"]), (&"closed-form".into(), &1.into()));
    assert!((time_of(1)["mean"].as_f64().unwrap() - 67.978).abs() < 0.001);
    assert!(place.0.join("out/report.html").exists() && place.0.join("out/model-ax25.json").exists());
}

#[test]
fn run() {
    let place = Place::new("run");
    let world = "\
title = \"A letter by way of an orbiter\"
protocol = \"tcpcl4\"
nodes = [\"moon\", \"orbiter\", \"earth\"]
runs = 2

[workload]
files = [\"letter.txt\"]

[[link]]
profile = \"cislunar\"
ber = 0
";
    fs::write(place.0.join("letter.toml"), world).unwrap();
    let sweep = "link.delay-ms=1280,5000";
    let words = ["run", "letter.toml", "--sweep", sweep, "--out", "out", "--trace", "traces"];
    let mut transcript = place.transcript(&words);
    transcript += "\n-- traces/delay-ms-1280/timeline.txt\n";
    transcript +=
        &fs::read_to_string(place.0.join("traces/delay-ms-1280/timeline.txt")).unwrap_or_else(|error| {
            let folders: Vec<_> =
                fs::read_dir(place.0.join("traces")).unwrap().map(|e| e.unwrap().file_name()).collect();
            panic!("{error}: {folders:?}")
        });
    insta::assert_snapshot!(transcript);
}

/// Three machines with a third of the runs each give what one gives; if one of them is missing or there twice, that is said.
#[test]
fn merged_shares_are_the_bytes_of_the_whole_run_and_missing_and_double_ones_are_named() {
    let place = Place::new("merge");
    let world = "title = 'Shared work'\nprotocol = 'ltp/tuned'\nruns = 4\n[workload]\nfiles = ['letter.txt']\n[[channel]]\n\
                 between = ['tx', 'rx']\nprofile = 'cislunar'\n[sweep]\n\"channel.ber\" = [1e-6, 1e-5]\n";
    fs::write(place.0.join("shared.toml"), world).unwrap();
    let files = |directory: &str| {
        ["report.html", "shared.json", "records.csv", "runs.csv"]
            .map(|name| fs::read(place.0.join(directory).join(name)).unwrap())
    };
    let run = |more: &[&str]| {
        let output = place.output(&with(&["run", "shared.toml", "--quiet"], more));
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let whole = run(&["--out", "whole"]);
    assert!(!place.0.join("whole/shared.share").exists(), "the whole is no share");
    for share in ["1", "2", "3"] {
        run(&["--out", share, "--shard", &format!("{share}/3")]);
    }
    let merged = place.output(&["merge", "2", "3/shared.share", "1", "--out", "merged"]);
    assert!(merged.status.success() && merged.stderr.is_empty(), "{merged:?}");
    assert!(merged.stdout == whole, "{}", String::from_utf8_lossy(&merged.stdout));
    assert!(files("merged") == files("whole"));
    let json = place.output(&["merge", "1", "2", "3", "--json"]).stdout;
    assert!(json == files("whole")[1]);
    fs::write(place.0.join("damaged.share"), "longwire share").unwrap();
    let refused: [(&[&str], &str); 5] = [
        (&["1"], "error: 2 of 3 shares are missing: 2/3, 3/3\nhint: "),
        (
            &["1", "2", "1"],
            "error: 1 of 3 shares is missing: 3/3\nshare 1/3 is given 2 times: 1/shared.share, 1/shared.share\n",
        ),
        (&["whole"], "error: no share in whole\nhint: "),
        (&["damaged.share", "1"], "error: damaged.share: not a complete share of longwire\nhint: "),
        (&["nowhere"], "error: cannot read nowhere: No such file or directory"),
    ];
    for (words, said) in refused {
        let output = place.output(&[&["merge", "--out", "none"], words].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && error.starts_with(said), "{error}");
        assert!(output.stdout.is_empty() && !place.0.join("none").exists(), "{words:?}");
    }
}
