//! The limit holds: whatever the errors, no protocol is faster than its channel.

use longwire_lab::bench::Trial;
use longwire_lab::chain::{self, Chain};
use longwire_lab::protocols::{self, Medium};
use longwire_lab::run::{Outcome, Setup, Wanted};
use longwire_lab::scenario::Scenario;
use std::path::Path;

const RUNS: u32 = 6;

fn outcomes(text: &str, runs: u32) -> Vec<Outcome> {
    let scenario = Scenario::parse(text, "test").unwrap();
    let setup = Setup::new(scenario, Path::new(".")).unwrap_or_else(|error| panic!("{text}: {error}"));
    (0..runs).map(|run| setup.run(run, Wanted::default())).collect()
}

/// Mean of the completed runs divided by the limit of these; `None` without any. No run is below its time without
/// errors: such a run panics.
fn ratio(outcomes: &[Outcome]) -> Option<f64> {
    let arrived: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.delivered).collect();
    let times = Chain::metric("transfer_s").samples(&arrived);
    let mean_s = times.iter().sum::<f64>() / times.len().max(1) as f64;
    (!arrived.is_empty()).then(|| mean_s / chain::limit_s(&arrived))
}

/// Rare bursts that destroy nearly every frame that they meet; bursts that last for many frames and leave some; and
/// bursts that are shorter than a frame.
const BURSTS: [&str; 3] = [
    "{ good-ber = 0, bad-ber = 0.3, good-bits = 200000, bad-bits = 500 }",
    "{ good-ber = 1e-6, bad-ber = 2e-4, good-bits = 100000, bad-bits = 20000 }",
    "{ good-ber = 0, bad-ber = 0.001, good-bits = 30000, bad-bits = 300 }",
];

#[test]
fn no_protocol_is_faster_than_a_line_or_a_channel_with_bursts() {
    for (medium, link, bytes) in [
        (Medium::Line, "profile = 'lan'\nrate-bps = 115200", 100_000),
        (Medium::Radio, "profile = 'ax25-9600'", 7182),
    ] {
        for bursts in BURSTS {
            let mut ratios = Vec::new();
            for name in protocols::PROTOCOLS
                .iter()
                .filter(|protocol| protocol.runs_on(medium))
                .flat_map(protocols::Protocol::names)
            {
                let text = format!(
                    "protocol = '{name}'\nduration-limit-s = 20000\n[workload]\nbytes = {bytes}\n[[link]]\n{link}\nbursts = {bursts}"
                );
                let Some(ratio) = ratio(&outcomes(&text, RUNS)) else { continue };
                assert!(ratio > 1.0, "{text}: {ratio} times the limit");
                ratios.push(ratio);
            }
            let best = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(best < 3.0, "{link}, {bursts}: a limit that nobody comes near says nothing: {ratios:?}");
        }
    }
}

/// A protocol that only forwards bundles is not compared with nodes that store all of a file first.
#[test]
fn a_relay_that_passes_fragments_on_is_held_against_its_channels_and_not_against_storage() {
    let two = |protocol: &str| {
        format!(
            "protocol = '{protocol}'\nnodes = ['tx', 'mx', 'rx']\n[workload]\nbytes = 100000\n[[link]]\nprofile = 'cislunar'\nber = 0"
        )
    };
    let [passed, stored] = ["udp", "tcpcl4/tuned"].map(|protocol| outcomes(&two(protocol), 2));
    assert!(!passed[0].is_stored_whole() && stored[0].is_stored_whole());
    let [passed, stored] = [passed, stored].map(|outcomes| ratio(&outcomes).expect("they arrive"));
    assert!((1.0..1.5).contains(&passed), "{passed} times the limit");
    assert!((1.0..1.5).contains(&stored), "{stored} times the limit");
}

/// A file that is shorter than the delay has left the source before its first byte arrives at the relay, but is still
/// forwarded in pieces.
#[test]
fn a_file_shorter_than_the_delay_is_not_taken_for_stored_whole_where_its_pieces_are_passed_on() {
    let text = |protocol: &str, bytes: u32| {
        format!(
            "protocol = '{protocol}'\nnodes = ['tx', 'mx', 'rx']\n[workload]\nbytes = {bytes}\n\
             [[link]]\nprofile = 'cislunar'\ndelay-ms = 1280\nber = 0"
        )
    };
    for (protocol, bytes, is_stored) in
        [("udp", 5000, false), ("udp", 500, true), ("tcpcl4/tuned", 5000, true), ("tcpcl3/dtn2", 5000, true)]
    {
        let outcomes = outcomes(&text(protocol, bytes), 2);
        assert_eq!(outcomes[0].is_stored_whole(), is_stored, "{protocol}, {bytes} bytes");
        let ratio = ratio(&outcomes).expect("they arrive");
        assert!(ratio >= 1.0, "{protocol}, {bytes} bytes: {ratio} times the limit");
        assert_eq!(
            chain::beyond_limit(&outcomes.iter().collect::<Vec<_>>()),
            None,
            "{protocol}, {bytes} bytes"
        );
    }
}

/// With one packet in three lost, runs in which all packets happened to arrive do not represent the others, and are not
/// reported as faster than the channel.
#[test]
fn runs_that_were_lucky_are_said_to_be() {
    let text = "protocol = 'udp'\nduration-limit-s = 1000\n[workload]\nbytes = 1000\n[[link]]\nprofile = 'cislunar'\nber = 4e-5";
    let outcomes = outcomes(text, 12);
    let arrived = outcomes.iter().filter(|outcome| outcome.delivered).count();
    assert!((2..12).contains(&arrived), "{arrived} of 12 arrived");
    let words = chain::beyond_limit(&outcomes.iter().collect::<Vec<_>>()).expect("they were lucky");
    assert!(words.contains(&format!("{} of its 12 runs did not complete", 12 - arrived)), "{words}");
}
