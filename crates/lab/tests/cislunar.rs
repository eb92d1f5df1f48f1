//! A small part of the published cislunar evaluation: its statements about delays, errors and outages.

use longwire_lab::bench::Bench;
use longwire_lab::finding::Finding;
use longwire_lab::papers;
use longwire_lab::papers::cislunar::{PAPER, SCENARIO};
use longwire_lab::progress::Progress;
use longwire_lab::record::{FigureKind, Record, Value};
use longwire_lab::run::{Outcome, Setup, Wanted};
use longwire_lab::scenario::{Scenario, parse_sweep};
use longwire_lab::stats::mean;
use std::path::Path;

/// Returns the outcomes of some runs at one point.
fn at(delay_ms: u32, ber: f64, outage_s: u32, runs: u32) -> Vec<Outcome> {
    let sweeps = [
        format!("channel.delay-ms={delay_ms}"),
        format!("channel.ber={ber:?}"),
        format!("channel.outage.length-s={outage_s}"),
    ];
    let sweeps = sweeps.map(|sweep| parse_sweep(&sweep).unwrap());
    let point = Scenario::points(SCENARIO.parse().unwrap(), &sweeps, "cislunar").unwrap().remove(0);
    let setup = Setup::new(point.scenario, Path::new(".")).unwrap();
    (0..runs).map(|run| setup.run(run, Wanted::default())).collect()
}

fn goodput(outcomes: &[Outcome]) -> f64 {
    mean(outcomes.iter().map(Outcome::goodput))
}

#[test]
fn without_errors_the_goodput_is_the_published_one() {
    let ours = goodput(&at(2000, 0.0, 0, 1));
    assert!((ours / 5400.0 - 1.0).abs() < 0.10, "{ours}");
}

#[test]
fn at_1e_5_the_published_goodput_lies_between_the_two_readings() {
    let outcomes = at(2000, 1e-5, 0, 12);
    let last = mean(outcomes.iter().map(Outcome::last_hop_goodput));
    let whole = goodput(&outcomes);
    assert!(whole < 776.0 && 776.0 < last, "{whole} on the whole path, {last} from mx to rx");
}

/// With bit errors between mx and rx only, all three published goodputs are reproduced.
#[test]
fn errors_on_the_second_hop_alone_give_the_published_goodputs() {
    for (ber, published, tolerance) in [(0.0, 5400.0, 0.10), (1e-6, 2550.0, 0.15), (1e-5, 776.0, 0.15)] {
        let mut scenario = Scenario::parse(SCENARIO, "cislunar").unwrap();
        scenario.sweep.clear();
        for channel in &mut scenario.channel {
            channel.properties.insert("delay-ms".into(), 2000.into());
        }
        scenario.channel[1].properties.insert("ber".into(), ber.into());
        let setup = Setup::new(scenario, Path::new(".")).unwrap();
        let outcomes: Vec<Outcome> = (0..64).map(|run| setup.run(run, Wanted::default())).collect();
        let ours = goodput(&outcomes);
        assert!((ours / published - 1.0).abs() < tolerance, "{ours} instead of {published} at {ber}");
    }
}

#[test]
fn goodput_falls_with_delay_errors_and_outage() {
    let by_delay = [1280, 2500, 5000].map(|delay| goodput(&at(delay, 1e-6, 0, 6)));
    assert!(by_delay.is_sorted_by(|a, b| a > b), "{by_delay:?}");
    let by_errors = [0.0, 1e-6, 1e-5].map(|ber| goodput(&at(2000, ber, 0, 6)));
    assert!(by_errors.is_sorted_by(|a, b| a > b), "{by_errors:?}");
    let by_outage = [0, 30, 60, 120].map(|outage| goodput(&at(2000, 0.0, outage, 1)));
    assert!(by_outage.is_sorted_by(|a, b| a > b), "{by_outage:?}");
}

#[test]
fn outages_deliver_every_byte_and_repeat_none_that_was_acknowledged() {
    for ber in [0.0, 1e-6, 1e-5] {
        for outage_s in [30, 120] {
            for outcome in at(2000, ber, outage_s, 3) {
                assert!(outcome.delivered);
                for hop in &outcome.hops {
                    assert_eq!(hop.acknowledged_again_bytes, 0, "{ber} {outage_s} run {}", outcome.run);
                }
                assert!(outcome.hops[1].acknowledged_at_outage_bytes.unwrap() > 0);
            }
        }
    }
}

#[test]
fn every_ledger_accounts_for_the_whole_transfer() {
    for outcome in at(2000, 1e-5, 60, 2) {
        for ledger in outcome.hops.iter().flat_map(|hop| &hop.ledgers) {
            let elapsed = (outcome.transfer_s.unwrap() * 1e9).round();
            assert!((ledger.total() as f64 - elapsed).abs() < 2.0);
            assert!(ledger.seconds("payload") > 0.0);
        }
    }
}

/// Mean time of a protocol, as a multiple of the ideal time with the bundle stored at the relay, or with cut-through of that of
/// streaming.
fn factor(protocol: &str, cut_through: bool, announced: bool, delay_ms: u32, ber: f64, outage_s: u32) -> f64 {
    let runs = if ber > 0.0 { 3 } else { 1 };
    let after_s = if cut_through { 40 } else { 100 };
    let outage = match announced {
        true => format!("{{ after-s = {after_s}, length-s = {outage_s}, announced = true }}"),
        false => format!("{{ from = 'data', after-s = 20, length-s = {outage_s} }}"),
    };
    let link = format!("profile = 'cislunar'\nber = {ber:?}\ndelay-ms = {delay_ms}");
    let text = format!(
        "protocol = '{protocol}/tuned'\nnodes = ['tx', 'mx', 'rx']\nsettings.agent.relays = {}\n\
         [[channel]]\nbetween = ['tx', 'mx']\n{link}\n\
         [[channel]]\nbetween = ['mx', 'rx']\n{link}\noutage = [{outage}]",
        i32::from(cut_through)
    );
    let setup = Setup::new(Scenario::parse(&text, "cislunar").unwrap(), Path::new(".")).unwrap();
    let outcomes: Vec<Outcome> = (0..runs).map(|run| setup.run(run, Wanted::default())).collect();
    assert!(outcomes.iter().all(|outcome| outcome.delivered && outcome.is_stored_whole() != cut_through));
    let ideal = outcomes.iter().map(|outcome| match cut_through {
        false => outcome.limit.store_and_forward,
        true => outcome.limit.streaming,
    });
    let ideal_s = ideal.map(|bound| if runs == 1 { bound.error_free_s } else { bound.mean_s });
    mean(outcomes.iter().filter_map(|outcome| outcome.transfer_s)) / mean(ideal_s)
}

/// Delays and lengths of the outage at the corners of the grid, ms and s.
const CORNERS: [(u32, u32); 4] = [(1280, 0), (1280, 30), (5000, 30), (5000, 120)];

#[test]
fn the_best_protocol_needs_little_more_than_the_ideal_time_of_a_bundle_that_is_stored_whole() {
    let best = |announced, delay_ms, ber, outage_s| {
        let of = |protocol| factor(protocol, false, announced, delay_ms, ber, outage_s);
        of("ltp").min(of("ltp-fec"))
    };
    for (ber, most) in [(0.0, 1.05), (1e-6, 1.10), (1e-5, 1.15)] {
        for (delay_ms, outage_s) in CORNERS {
            let factor = best(true, delay_ms, ber, outage_s);
            assert!(factor <= most, "announced, {ber} {delay_ms} {outage_s}: {factor}");
        }
        let factor = best(false, 5000, ber, 120);
        assert!(factor <= 1.35, "not announced, {ber}: {factor}");
    }
}

#[test]
fn with_cut_through_files_need_little_more_than_the_ideal_time_of_streaming() {
    for (ber, most) in [(0.0, 1.05), (1e-6, 1.10), (1e-5, 1.15)] {
        for (delay_ms, outage_s) in CORNERS {
            let factor = factor("ltp-fec", true, true, delay_ms, ber, outage_s);
            assert!(factor <= most, "announced, {ber} {delay_ms} {outage_s}: {factor}");
        }
        let factor = factor("ltp-fec", true, false, 5000, ber, 120);
        assert!(factor <= 1.35, "not announced, {ber}: {factor}");
    }
}

fn small(threads: usize) -> Finding {
    let progress = Progress::new();
    let bench = Bench { runs: Some(1), seed: 7, threads, traces: true, thin: true, ..Bench::new(&progress) };
    papers::reproduce(&PAPER, &bench)
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let bytes = |finding: &Finding| {
        let (mut json, mut capture) = (Vec::new(), Vec::new());
        finding.experiment.write_json(&mut json).unwrap();
        for trace in &finding.traces {
            for node in longwire_lab::trace::nodes(&trace.frames) {
                longwire_lab::trace::pcapng::write(&mut capture, &trace.frames, node).unwrap();
            }
        }
        (json, capture)
    };
    let (one, two) = (small(1), small(2));
    let (first, second) = (bytes(&one), bytes(&two));
    assert!(first.1.len() > 1_000_000, "frames are captured");
    assert!(first == second, "one thread and two differ");
    let calls = one.experiment.records.iter().find(|record| record.metric == "syns_in_a_cluster").unwrap();
    assert_eq!(calls.mean, 6.0, "a call is one SYN and five more");
    let chosen = |record: &&Record| {
        record.case.ends_with("second hop only")
            && record.metric == "goodput_byte_per_s"
            && record.reference.is_some()
            && record.params.get("ber").and_then(Value::as_f64).is_some_and(|ber| ber > 0.0)
    };
    let kinds: Vec<FigureKind> =
        one.experiment.records.iter().filter(chosen).map(|record| record.kind).collect();
    assert_eq!(kinds, [FigureKind::Calibrated; 2], "a reading chosen by a figure does not predict it");
    let is = |record: &&Record, ber: f64| {
        record.reference.is_some() && record.params.get("ber").and_then(Value::as_f64) == Some(ber)
    };
    for ber in [0.0, 1e-6, 1e-5] {
        let stated = one.experiment.records.iter().filter(|record| is(record, ber)).count();
        assert!(stated >= 7, "{stated} figures with a reference at {ber}");
    }
}
