//! Scenarios in parts: the shares of a run, or its tasks, give the bytes of the whole run.

use longwire_lab::bench::Shard;
use longwire_lab::error::Error;
use longwire_lab::finding::Finding;
use longwire_lab::progress::Progress;
use longwire_lab::scenario::{Options, parse_sweep};
use longwire_lab::share::{self, Assignment, Outcomes, Share};
use longwire_lab::sweep::Sweep;
use std::path::PathBuf;

/// A scenario of each kind, with sweeps, and with more than one case for each point where there can be.
const SCENARIOS: [(&str, &str); 4] = [
    (
        "files",
        "nodes = ['a', 'b', 'c']\n[workload]\nbytes = 4000\n[[channel]]\nbetween = ['a', 'b']\nprofile = 'cislunar'\nber = 1e-5\n\
         outage = [{ from = 'data', after-s = 1, length-s = 9, spread-s = 5 }]\n[[channel]]\nbetween = ['b', 'c']\n\
         profile = 'cislunar'\n[sweep]\nprotocol = ['tcpcl4/tuned', 'ltp/tuned']",
    ),
    (
        "messages",
        "nodes = ['a', 'b', 'c']\nrouters = ['epidemic', 'spray-and-wait']\nduration-s = 2000\n[messages]\nfrom = ['a']\nto = ['c']\n\
         count = 5\nwithin-s = 600\n[[channel]]\nbetween = ['a', 'b']\ncontact = [{ every-s = 900, late-s = 60, chance = 0.7 }]\n\
         [[channel]]\nbetween = ['b', 'c']\ncontact = [{ every-s = 700, late-s = 60, chance = 0.7 }]",
    ),
    (
        "frames",
        "nodes = ['a', 'b', 'c']\n[frames]\nfor-s = 120\n[tnc]\n[[channel]]\nbetween = ['a', 'b', 'c']\nrate-bps = 1200",
    ),
    (
        "airborne",
        "[airborne]\nrouters = ['aerorp', 'epidemic']\ntest-articles = 4\nrelays = 1\npackets = 20\nwithin-s = 60\nlifetime-s = 50\nduration-s = 150",
    ),
];

fn sweep(name: &str, text: &str, shard: Shard, threads: usize) -> Sweep {
    let key = match name {
        "files" => "workload.bytes=2000,4000",
        "messages" => "messages.bytes=500,20000",
        "frames" => "frames.bytes=20,64",
        _ => "airborne.area-km=60,90.5",
    };
    let options = Options {
        scenario: PathBuf::from(format!("{name}.toml")),
        sweeps: vec![parse_sweep(key).expect("a sweep")],
        runs: Some(3),
        seed: Some(9),
        shard,
        threads,
        traces: false,
    };
    Sweep::new(text.to_owned(), options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All bytes that a finding is written as.
fn bytes(finding: &Finding) -> String {
    let mut out = Vec::new();
    finding.experiment.write_json(&mut out).expect("a Vec takes everything");
    finding.experiment.write_records_csv(&mut out).expect("a Vec takes everything");
    finding.experiment.write_runs_csv(&mut out).expect("a Vec takes everything");
    let summary = longwire_lab::output::terminal(&finding.summary, 120, false);
    String::from_utf8(out).expect("text") + &finding.report.html(&finding.experiment) + &summary
}

fn merged(assignment: &Assignment, outcomes: Outcomes, count: usize) -> Result<Finding, Error> {
    Sweep::new(assignment.text.clone(), assignment.options()?)?.merged(outcomes, count)
}

/// The shares of a run, through their bytes.
fn shares(name: &str, text: &str, count: usize) -> Vec<(String, Share)> {
    let of = |index: usize| {
        let finding = sweep(name, text, Shard { index, count }, 2).run(&Progress::new()).expect("it runs");
        let share = finding.share.expect("it is not the whole").to_bytes();
        (format!("share {index}"), Share::from_bytes(&share).expect("it was written so"))
    };
    (1..=count).map(of).collect()
}

#[test]
fn shares_in_any_order_give_the_bytes_of_the_whole() {
    // With two routers and two shares no run is there of both, so a share has nothing to compare.
    for (name, text) in SCENARIOS {
        let whole = sweep(name, text, Shard::WHOLE, 2).run(&Progress::new()).expect("it runs");
        assert!(whole.share.is_none() && !whole.experiment.records.is_empty());
        for count in [2, 5] {
            let mut shares = shares(name, text, count);
            shares.rotate_left(1);
            let (assignment, outcomes) = share::join(shares).expect("all are there");
            let joined = merged(&assignment, outcomes, count).expect("all runs are there");
            assert!(bytes(&joined) == bytes(&whole), "{name}, {count} shares");
        }
    }
}

#[test]
fn tasks_of_points_give_the_bytes_of_the_whole_whoever_computes_them_and_in_any_order() {
    for (name, text) in SCENARIOS {
        let all = sweep(name, text, Shard::WHOLE, 1);
        let whole = bytes(&all.run(&Progress::new()).expect("it runs"));
        for runs_max in [None, Some(2)] {
            let mut tasks = all.tasks(runs_max).expect("a grid");
            tasks.reverse();
            let mut outcomes = Outcomes::default();
            for (first_case, task) in &tasks {
                let task = Assignment::from_bytes(&task.to_bytes()).expect("it was written so");
                let options = task.options().expect("it is whole");
                let share = Sweep::new(task.text, options).and_then(|part| part.share(&Progress::new()));
                outcomes.add(share.expect("it runs"), *first_case);
            }
            assert!(bytes(&all.merged(outcomes, 1).expect("all are there")) == whole, "{name}, {runs_max:?}");
        }
        let points = if name == "files" { 4 } else { 2 };
        assert_eq!(all.tasks(None).expect("a grid").len(), points);
        let cases: usize = if name == "messages" || name == "airborne" { 2 } else { 1 };
        assert_eq!(all.tasks(Some(2)).expect("a grid").len(), points * (3 * cases).div_ceil(2));
    }
}

#[test]
fn shares_that_are_missing_there_twice_or_of_another_run_are_named() {
    let (name, text) = SCENARIOS[2];
    let all = shares(name, text, 4);
    let refused = |shares: &[(String, Share)]| share::join(shares.to_vec()).expect_err("not all").to_string();
    let said = refused(&[all[0].clone(), all[2].clone()]);
    assert!(said.starts_with("2 of 4 shares are missing: 2/4, 4/4\nhint: compute it with"), "{said}");
    let again = ("again".to_owned(), all[3].1.clone());
    let said = refused(&[all[0].clone(), all[1].clone(), all[3].clone(), again.clone()]);
    let expected = "1 of 4 shares is missing: 3/4\nshare 4/4 is given 2 times: share 4, again\nhint: compute";
    assert!(said.starts_with(expected), "{said}");
    let said = refused(&[&all[..], &[again]].concat());
    assert!(said.starts_with("share 4/4 is given 2 times: share 4, again\nhint: give"), "{said}");
    let other = shares("airborne", SCENARIOS[3].1, 4);
    let said = refused(&[all[0].clone(), other[1].clone()]);
    assert!(said.starts_with("share 2 and share 1 are of different runs: the scenario differs"), "{said}");
    assert!(share::join(Vec::new()).is_err());
}

#[test]
fn a_share_that_was_stopped_early_is_named_with_the_number_of_its_runs() {
    let (name, text) = SCENARIOS[2];
    let mut all = shares(name, text, 2);
    let stopped = sweep(name, text, Shard { index: 2, count: 2 }, 1).run(&Progress::up_to(1));
    all[1].1 = stopped.expect("it runs").share.expect("it is not the whole");
    let (assignment, outcomes) = share::join(all).expect("both are there");
    let said = merged(&assignment, outcomes, 2).expect_err("runs are missing").to_string();
    assert!(said.starts_with("2 of 6 runs are missing, of these shares: 2/2\nhint: "), "{said}");
}

#[test]
fn bytes_of_another_version_or_another_kind_and_damaged_ones_are_refused() {
    let (name, text) = SCENARIOS[2];
    let share = shares(name, text, 2).remove(0).1;
    let bytes = share.to_bytes();
    let refused = |bytes: &[u8]| Share::from_bytes(bytes).expect_err("it is refused").to_string();
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
    let older = [b"longwire share 0.0.9", &bytes[end..]].concat();
    assert!(refused(&older).starts_with("the share is from longwire 0.0.9, and this is "));
    for damaged in [&b""[..], &bytes[..bytes.len() - 1], b"PK\x03\x04\n", &share.assignment.to_bytes()] {
        assert!(refused(damaged).starts_with("not a complete share of longwire"), "{damaged:?}");
    }
    // A bit of a number that was received is wrong, wherever it is.
    for at in (end + 1..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(refused(&damaged).starts_with("not a complete share of longwire"), "at {at}");
    }
    assert!(refused(&[&bytes[..], b"more"].concat()).starts_with("not a complete share of longwire"));
    for index in [0, 3] {
        let mut impossible = share.clone();
        impossible.assignment.shard.index = index;
        assert!(refused(&impossible.to_bytes()).starts_with("not a complete share of longwire"), "{index}/2");
    }
}

#[test]
fn only_some_of_very_many_missing_shares_are_named() {
    let (name, text) = SCENARIOS[2];
    let mut all = shares(name, text, 2);
    all[0].1.assignment.shard.count = 1_000_000_000;
    let said = share::join(vec![all.remove(0)]).expect_err("most are missing").to_string();
    assert!(said.starts_with("999999999 of 1000000000 shares are missing: 2/1000000000, "), "{said}");
    assert!(said.contains("21/1000000000, and 999999979 more") && said.len() < 1000, "{said}");
}
