//! Routers in the same scenario of contacts: relations that must hold between them with any seed.

use longwire_lab::bench::{Run, Shard, Trial};
use longwire_lab::contacts::{Outcome, RouterTrial};
use longwire_lab::progress::Progress;
use longwire_lab::record::Record;
use longwire_lab::scenario::{Options, Scenario};
use longwire_lab::sweep;
use longwire_proto::bp::agent::RouterChoice;
use std::path::PathBuf;

fn valley() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/valley.toml"))
}

fn plan(change: impl FnOnce(&mut toml::Table)) -> Scenario {
    let text = std::fs::read_to_string(valley()).expect("it is shipped");
    let mut table: toml::Table = toml::from_str(&text).expect("TOML");
    change(&mut table);
    Scenario::from_table(table, "valley").expect("it makes sense")
}

/// Relations that hold in every scenario: a router with more routes does not deliver less or later, and one that limits
/// copies keeps to the limit.
fn law(plan: &Scenario, copies: usize, run: u32) -> Result<(), String> {
    let trial = |router| RouterTrial { scenario: plan.clone(), router };
    let play = |router| trial(router).play(Run::new(plan.seed, run));
    let (fixed, planned) = (play(RouterChoice::Static), play(RouterChoice::ContactPlan));
    let (epidemic, spray) = (play(RouterChoice::Epidemic), play(RouterChoice::SprayAndWait));
    let most = |outcome: &Outcome| outcome.holders.iter().copied().max().unwrap_or(0);
    let sum = |outcome: &Outcome| outcome.holders.iter().sum::<usize>();
    for (name, holds) in [
        ("every message is accepted", [&fixed, &planned, &epidemic, &spray].iter().all(|of| of.sent == 40)),
        ("spray keeps to its copies", most(&spray) <= copies),
        ("a route is one way: the villages, a bus", most(&fixed) <= 2 && most(&planned) <= 2),
        ("epidemic brings what spray brings", epidemic.delays_s.len() >= spray.delays_s.len()),
        ("spray brings what routes bring", spray.delays_s.len() >= fixed.delays_s.len()),
        ("epidemic copies most", sum(&epidemic) >= sum(&spray) && sum(&spray) >= sum(&fixed)),
        ("copies cost bytes", epidemic.sent_bytes > planned.sent_bytes),
        ("nothing arrives before it is sent", fixed.delays_s.iter().all(|delay| *delay > 0.0)),
    ] {
        if !holds {
            return Err(format!("run {run}: {name}: {fixed:?} {planned:?} {epidemic:?} {spray:?}"));
        }
    }
    Ok(())
}

#[test]
fn more_routes_deliver_no_less_and_limited_copies_keep_to_their_limit() {
    let plan = plan(|_| {});
    (0..3).for_each(|run| law(&plan, plan.copies as usize, run).expect("the laws hold"));
}

#[test]
fn the_relations_notice_more_copies_than_the_limit_and_contacts_that_are_missing() {
    // The sources make sixteen copies, where the relation expects two.
    let many = plan(|table| drop(table.insert("copies".into(), 16.into())));
    assert!(law(&many, 2, 0).expect_err("it is broken").contains("spray keeps to its copies"));
    // Without contacts, copies get no further than routed messages.
    let alone = plan(|table| drop(table.insert("channel".into(), toml::Value::Array(Vec::new()))));
    assert!(law(&alone, 4, 0).expect_err("it is broken").contains("copies cost bytes"));
}

#[test]
fn the_same_seed_is_the_same_world_and_prints_the_same() {
    let show = || {
        let options = Options {
            scenario: valley(),
            sweeps: Vec::new(),
            runs: Some(2),
            seed: Some(7),
            shard: Shard::WHOLE,
            threads: 2,
            traces: false,
        };
        sweep::run(&options, &Progress::default()).expect("it runs")
    };
    let (one, two) = (show(), show());
    assert_eq!(one.experiment, two.experiment);
    let records = &one.experiment.records;
    assert!(records.iter().all(|record| record.case == "tcpcl4"));
    for router in ["static", "contact-plan", "epidemic", "spray-and-wait", "dtlsr"] {
        let with = |record: &&Record| record.params.get("router") == Some(&router.into());
        assert_eq!(records.iter().filter(with).count(), 6, "{router}");
    }
    assert_eq!(one.experiment.runs.len(), 10);
    println!("{}", longwire_lab::output::terminal(&one.summary, 110, false));
}

#[test]
fn routers_are_compared_at_every_point_of_a_sweep() {
    let options = Options {
        scenario: valley(),
        sweeps: vec![("messages.count".into(), vec![2.into(), 3.into()])],
        runs: Some(1),
        seed: None,
        shard: Shard::WHOLE,
        threads: 2,
        traces: false,
    };
    let finding = sweep::run(&options, &Progress::default()).expect("it runs");
    let points: Vec<String> = finding.experiment.runs.iter().map(|run| run.params.to_string()).collect();
    assert_eq!((points.len(), points[0].as_str()), (10, "count=2 router=static"));
    assert!(finding.report.lead.starts_with("A valley with two buses: "), "{}", finding.report.lead);
    assert!(finding.report.command.contains(" --sweep messages.count=2,3 --runs 1 "));
    let error = sweep::run(&Options { traces: true, ..options }, &Progress::default()).expect_err("no files");
    assert!(error.to_string().contains("traces are available for files only"), "{error}");
}

#[test]
fn an_invalid_scenario_is_refused() {
    for (key, value, what) in [
        ("nodes", "['a']", "is not in `nodes`"),
        ("copies", "0", "`copies` from 1 to 127"),
        ("routers", "[]", "must each have at least one entry"),
        ("rate", "1", "unknown"),
    ] {
        let text = std::fs::read_to_string(valley()).expect("it is shipped");
        let mut table: toml::Table = toml::from_str(&text).expect("TOML");
        let new: toml::Table = toml::from_str(&format!("x = {value}")).expect("TOML");
        table.insert(key.into(), new["x"].clone());
        let error = Scenario::from_table(table, "valley").expect_err(key).to_string();
        assert!(error.contains(what), "{key}: {error}");
    }
}
