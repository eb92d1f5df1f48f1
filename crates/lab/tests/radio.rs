//! Single frames on a shared channel, from the file to the results.

use longwire_lab::bench::{Run, Shard, Trial};
use longwire_lab::progress::Progress;
use longwire_lab::radio::RadioScenario;
use longwire_lab::scenario::{Options, Scenario};
use longwire_lab::sweep;
use std::path::PathBuf;

fn shipped() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/positions.toml"))
}

fn plan(text: &str) -> Result<RadioScenario, String> {
    let table: toml::Table = text.parse().expect("it is TOML");
    let scenario = Scenario::from_table(table, "here").and_then(RadioScenario::of);
    scenario.map_err(|error| error.to_string())
}

#[test]
fn a_single_sender_waits_for_its_slots_its_key_up_and_its_bits() {
    let plan = plan(
        "nodes = [\"a\", \"b\"]\n[frames]\nfrom = [\"a\"]\nto = [\"b\"]\nper-minute = 0.5\nfor-s = 36000\n[radio]\nrate-bps = 1200",
    )
    .expect("it makes sense");
    let outcome = plan.play(Run::new(1, 0));
    assert!((200..400).contains(&outcome.frames), "{} frames", outcome.frames);
    assert_eq!(outcome.delays_s.len() as u32, outcome.frames);
    // Flags, addresses, control, identifier, check sequence and 64 octets, a few bits stuffed; TXDELAY is 0.3 s.
    let least = 0.3 + 8.0 * (64.0 + 20.0) / 1200.0 - 1e-9;
    assert!((least..least + 0.02).contains(&outcome.delays_s[0]), "{}", outcome.delays_s[0]);
    // Three slots of 0.1 s on average, and occasionally two frames at once.
    let mean = outcome.mean_delay_s().expect("all arrived");
    assert!((mean - least - 0.3).abs() < 0.1, "{mean} s");
}

#[test]
fn with_more_frames_fewer_arrive_and_later() {
    let text = std::fs::read_to_string(shipped()).expect("it is shipped");
    let mut plan = plan(&text).expect("it makes sense");
    let (mut before, mut collided): (Option<(f64, f64)>, u32) = (None, 0);
    for per_minute in [0.5, 4.0, 12.0] {
        plan.frames.per_minute = per_minute;
        let outcome = plan.play(Run::new(1, 1));
        let lost = f64::from(outcome.frames) - outcome.delays_s.len() as f64;
        let accounted = outcome.collided + outcome.deaf + outcome.damaged;
        assert_eq!(lost, f64::from(accounted), "what is lost has a reason");
        let now = (lost / f64::from(outcome.frames), outcome.mean_delay_s().expect("some arrive"));
        if let Some(before) = before {
            assert!(now.0 > before.0 && now.1 > before.1, "{per_minute} a minute: {now:?} after {before:?}");
        }
        before = Some(now);
        collided = outcome.collided;
    }
    assert!(collided > 0, "some do not hear each other");
}

#[test]
fn the_shipped_channel_is_a_grid_and_a_page() {
    let options = |threads| Options {
        scenario: shipped(),
        sweeps: vec![("frames.for-s".into(), vec![toml::Value::Float(600.0)])],
        runs: Some(3),
        seed: Some(7),
        shard: Shard::WHOLE,
        threads,
        traces: false,
    };
    let finding = sweep::run(&options(2), &Progress::default()).expect("it runs");
    let again = sweep::run(&options(1), &Progress::default()).expect("it runs");
    assert_eq!(format!("{:?}", finding.experiment), format!("{:?}", again.experiment));
    let delivered: Vec<_> =
        finding.experiment.records.iter().filter(|record| record.metric == "delivered").collect();
    assert_eq!(delivered.len(), 5 * 2, "every load on every channel");
    // The errors vary more slowly than the load: a bad channel loses more at each load.
    let (good, bad) = delivered.split_at(5);
    assert!(good.iter().zip(bad).all(|(good, bad)| bad.mean < good.mean), "{delivered:?}");
    assert_eq!(finding.experiment.runs.len(), 30);
}

#[test]
fn invalid_channels_and_loads_are_refused_by_name() {
    let refused = |text: &str| plan(text).expect_err(text);
    let two = "nodes = [\"a\", \"b\"]\n[[channel]]\nbetween = [\"a\", \"b\"]\n";
    assert!(refused("nodes = [\"a\"]").contains("nodes"));
    assert!(refused("nodes = [\"a\", \"b\"]\n[frames]").contains("one channel between all nodes"));
    assert!(refused(&format!("{two}[frames]\nfrom = [\"c\"]")).contains("`c`"));
    assert!(refused(&format!("{two}[frames]\nto = [\"a\"]")).contains("other than the sender"));
    assert!(refused(&format!("{two}[frames]\nbytes = 3")).contains("frames.bytes"));
    assert!(refused(&format!("{two}[frames]\nper-minute = 0")).contains("frames"));
    assert!(refused(&format!("{two}rate-bps = 0\n[frames]")).contains("rate-bps"));
    assert!(refused(&format!("{two}paths = [{{ from = \"c\", to = 0 }}]\n[frames]")).contains("`c`"));
    assert!(refused(&format!("{two}[frames]\n[tnc]\nahead-frames = 0")).contains("ahead-frames"));
    assert!(refused(&format!("{two}rate = 1200\n[frames]")).contains("rate"));
}

#[test]
fn paths_by_name_are_those_by_number() {
    let paths = |from: &str, to: &str| {
        let text = "nodes = [\"a\", \"b\", \"c\"]\n[frames]\n[[channel]]\nbetween = [\"c\", \"a\", \"b\"]";
        plan(&format!("{text}\n[[channel.paths]]\nfrom = {from}\nto = {to}\nheard = false"))
            .expect("it makes sense")
    };
    assert_eq!(paths("\"c\"", "\"b\""), paths("2", "1"));
}
