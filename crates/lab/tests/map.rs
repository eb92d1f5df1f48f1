//! A sweep of protocols over delay and bit errors: bundles over LTP beside bundles over TCP.

use longwire_lab::bench::Shard;
use longwire_lab::finding::Finding;
use longwire_lab::output;
use longwire_lab::progress::Progress;
use longwire_lab::record::{Record, Value};
use longwire_lab::report::PageBlock;
use longwire_lab::scenario::{Options, parse_sweep};
use longwire_lab::sweep;

/// Plays a part of the shipped scenario.
fn played(sweeps: &[&str], runs: u32) -> Finding {
    let options = Options {
        scenario: concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/delay-and-loss.toml").into(),
        sweeps: sweeps.iter().map(|word| parse_sweep(word).expect("a sweep")).collect(),
        runs: Some(runs),
        seed: Some(1),
        shard: Shard::WHOLE,
        threads: 2,
        traces: false,
    };
    sweep::run(&options, &Progress::new()).expect("it can be played")
}

fn on_terminal(finding: &Finding, width: usize) -> String {
    let is_table = |block: &&PageBlock| !matches!(block, PageBlock::Table(_));
    let blocks: Vec<PageBlock> = finding.summary.iter().filter(is_table).cloned().collect();
    output::terminal(&blocks, width, false)
}

#[test]
fn blocks_are_ahead_of_sessions_at_every_round_trip_of_a_second_and_more() {
    let finding = played(&["channel.delay-ms=500,2500,10000", "channel.ber=0,1e-6,1e-5"], 3);
    let time_s = |protocol: &str| -> Vec<(f64, f64, f64)> {
        let records = finding.experiment.records.iter();
        let ours = records.filter(|record| record.case == protocol && record.metric == "transfer_s");
        let at =
            |record: &Record, name| record.params.get(name).and_then(Value::as_f64).expect("it is swept");
        ours.map(|record| (at(record, "ber"), at(record, "delay_ms"), record.mean)).collect()
    };
    for other in ["ltp/tuned", "ltp-fec/tuned"] {
        let points: Vec<_> = time_s(other).into_iter().zip(time_s("tcpcl4/tuned")).collect();
        assert_eq!(points.len(), 9);
        for (ours, tcpcl) in points {
            assert!(
                (ours.0, ours.1) == (tcpcl.0, tcpcl.1) && ours.2 < tcpcl.2,
                "{other}: {ours:?}, {tcpcl:?}"
            );
        }
    }
}

#[test]
fn a_terminal_of_80_columns_shows_the_map_and_where_protocols_cross() {
    let finding = played(&["channel.delay-ms=500,2500,10000", "channel.ber=0,1e-6,1e-5"], 3);
    let shown = on_terminal(&finding, 80);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let map = "\
Fastest protocol; columns: one-way delay (ms)
bit-error rate  500  2500  10000
--------------  ---  ----  -----
             0    L     L      L
          1e-6   L=    F=     F=
          1e-5    F     F      F
";
    assert!(shown.contains(map), "{shown}");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "T is tcpcl4/tuned, L is ltp/tuned, F is ltp-fec/tuned, = stands where it is not significantly ahead.",
        "ltp/tuned is ahead of tcpcl4/tuned at 7 of 9 points, level at 2 and behind at 0: they do not cross.",
        "ltp-fec/tuned is ahead of ltp/tuned at 3 of 9 points, level at 3 and behind at 3. They cross at one-way \
         delay 500 ms between bit-error rate 0 and 1e-5; at one-way delay 2500 ms between bit-error rate 0 and 1e-5; at \
         one-way delay 10000 ms between bit-error rate 0 and 1e-5.",
    ] {
        assert!(words.contains(sentence), "{words}");
    }
}
