//! Plain TCP in virtual time, compared with measurements of a kernel over the same links.

use longwire_lab::run::{Outcome, Setup, Wanted};
use longwire_lab::scenario::Scenario;
use longwire_proto::tcp::config::Profile;
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
            "protocol = 'tcp/linux-6-64k'\n[settings.tcp]\nreceive-buffer-bytes = 53000\n[[link]]\nprofile = 'cislunar'\n\
             ber = 0\nfcs = 'none'\ndelay-ms = {delay_ms}"
        );
        let outcome = play(&text, 0);
        assert!(outcome.delivered);
        let ours = outcome.transfer_s.unwrap();
        assert!((ours / kernel_s - 1.0).abs() < 0.05, "{delay_ms} ms: {ours} s here, {kernel_s} s measured");
    }
}

/// The same with bit errors: means of a Linux 6.18 kernel over 239, 55, 109 and 48 runs, with standard errors of 2.3, 5.6, 6.0
/// and 9.3 s.
#[test]
fn times_with_bit_errors_are_those_of_the_kernel() {
    for (delay_ms, ber, kernel_s) in
        [(1280, "1e-6", 151.5), (1280, "1e-5", 607.2), (2000, "1e-6", 227.2), (2000, "1e-5", 905.6)]
    {
        let text = format!(
            "protocol = 'tcp/linux-6-64k'\n[settings.tcp]\nreceive-buffer-bytes = 53000\n[[link]]\nprofile = 'cislunar'\n\
             ber = {ber}\nfcs = 'none'\ndelay-ms = {delay_ms}"
        );
        let runs = 400;
        let times: Vec<f64> = (0..runs).filter_map(|run| play(&text, run).transfer_s).collect();
        let ours = times.iter().sum::<f64>() / times.len() as f64;
        assert!(times.len() >= 300, "some runs end with damage that the checksum of TCP lets through");
        println!("{delay_ms} ms, {ber}: {ours:.1} s here, {kernel_s} s measured");
        assert!(
            (ours / kernel_s - 1.0).abs() < 0.05,
            "{delay_ms} ms, {ber}: {ours} s here, {kernel_s} s measured"
        );
    }
}

#[test]
fn the_same_run_gives_the_same_outcome_and_another_run_another() {
    let text =
        "protocol = 'tcp/rfc5681'\n[[link]]\nprofile = 'cislunar'\nber = 1e-5\n[workload]\nbytes = 200000";
    let (first, again, other) = (play(text, 0), play(text, 0), play(text, 1));
    assert!(first.delivered && other.delivered);
    assert_eq!((first.transfer_s, &first.observed), (again.transfer_s, &again.observed));
    assert_ne!(first.transfer_s, other.transfer_s);
    assert!(first.hops[0].damaged_frames > 0);
}

/// The smallest MTU of a link suffices for the options of a segment and some bytes of data.
#[test]
fn every_mtu_that_a_link_may_have_carries_a_file() {
    for mtu in [64, 65, 80, 103, 104, 128] {
        for variant in ["linux-6", "linux-6-64k", "rfc5681", "tuned"] {
            let text = format!(
                "protocol = 'tcp/{variant}'\nduration-limit-s = 3000\n[[link]]\nprofile = 'lan'\nrate-bps = 115200\nber = 1e-5\n\
                 mtu-bytes = {mtu}\n[workload]\nbytes = 5000"
            );
            let outcome = play(&text, 0);
            assert!(outcome.delivered, "{variant}, MTU {mtu}: {:?}", outcome.missed);
        }
    }
    for variant in ["frames-tuned", "link-k4"] {
        let text = format!(
            "protocol = 'tcp-ax25/{variant}'\nduration-limit-s = 3000\n[[link]]\nprofile = 'ax25-9600'\nmtu-bytes = 64\n\
             [workload]\nbytes = 2000"
        );
        let outcome = play(&text, 0);
        assert!(outcome.delivered, "{variant}: {:?}", outcome.missed);
    }
}

/// Without timestamps a retransmitted SYN gives no sample. A round trip of 10 s is longer than the 3 s of RFC 6298 5.7,
/// but shorter than the timeout after the back-off of two SYNs.
#[test]
fn a_repeated_syn_does_not_make_data_time_out_falsely() {
    let profile = longwire_lab::toml_text::to_table(&Profile::ns3_2010());
    let text = "protocol = 'tcp'\n[[link]]\nprofile = 'cislunar'\nber = 0\ndelay-ms = 5000\n[workload]\nbytes = 20000";
    let mut scenario = Scenario::parse(text, "test").unwrap();
    scenario.settings.insert("tcp".into(), toml::Value::Table(profile));
    let outcome = Setup::new(scenario, Path::new(".")).unwrap().run(0, Wanted::default());
    assert!(outcome.delivered);
    assert!(outcome.observed.sum("tcp")["timeouts"] >= 2, "the SYN is repeated twice");
    assert_eq!(outcome.observed.sum("tcp")["retransmissions"], 0, "nothing was lost");
}
