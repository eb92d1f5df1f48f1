//! Plain TCP in virtual time, beside what a kernel measured over the same links.

use longwire_lab::run::{Outcome, Setup, Wanted};
use longwire_lab::scenario::Scenario;
use std::path::Path;

fn play(text: &str, run: u32) -> Outcome {
    let scenario = Scenario::parse(text, "test").unwrap();
    Setup::new(scenario, Path::new(".")).unwrap().run(run, Wanted::default())
}

/// 1,000,000 bytes over one hop at 115,200 bit/s, error-free, Linux reno with an effective window of 53,000 bytes.
#[test]
fn error_free_times_are_those_of_the_kernel() {
    for (delay_ms, kernel_s) in [(1280, 78.1), (2000, 91.4), (3500, 155.9), (5000, 220.4)] {
        let text = format!(
            "stack = 'tcp/linux-6-64k'\n[settings.tcp]\nreceive-buffer-bytes = 53000\n[[link]]\nprofile = 'cislunar'\n\
             ber = 0\nfcs = 'none'\ndelay-ms = {delay_ms}"
        );
        let outcome = play(&text, 0);
        assert!(outcome.delivered);
        let ours = outcome.transfer_s.unwrap();
        assert!((ours / kernel_s - 1.0).abs() < 0.05, "{delay_ms} ms: {ours} s here, {kernel_s} s measured");
    }
}

#[test]
fn the_same_run_gives_the_same_outcome_and_another_run_another() {
    let text =
        "stack = 'tcp/rfc5681'\n[[link]]\nprofile = 'cislunar'\nber = 1e-5\n[workload]\nbytes = 200000";
    let (first, again, other) = (play(text, 0), play(text, 0), play(text, 1));
    assert!(first.delivered && other.delivered);
    assert_eq!((first.transfer_s, &first.tally), (again.transfer_s, &again.tally));
    assert_ne!(first.transfer_s, other.transfer_s);
    assert!(first.hops[0].damaged_frames > 0);
}

#[test]
fn a_relay_is_refused_with_a_hint() {
    let scenario = Scenario::parse("stack = 'tcp'\nnodes = ['a', 'b', 'c']", "test").unwrap();
    let error = Setup::new(scenario, Path::new(".")).err().unwrap().to_string();
    assert!(error.contains("choose a bundle stack"), "{error}");
}
