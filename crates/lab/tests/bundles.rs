//! Bundles over TCPCL over TCP in virtual time.

use longwire_lab::run::{Outcome, Setup, Wanted};
use longwire_lab::scenario::Scenario;
use std::path::Path;

fn play(text: &str, run: u32) -> Outcome {
    let scenario = Scenario::parse(text, "test").unwrap();
    Setup::new(scenario, Path::new(".")).unwrap().run(run, Wanted::default())
}

const PROTOCOLS: [&str; 4] = ["tcpcl3/dtn2", "tcpcl3/tuned", "tcpcl4/default", "tcpcl4/tuned"];

/// A megabyte over two hops of 2 s each, with an outage on the second hop 40 s after its first byte.
fn two_hops(protocol: &str, ber: f64, outage_s: u32) -> String {
    format!(
        "protocol = '{protocol}'\nnodes = ['tx', 'mx', 'rx']\n[[link]]\nprofile = 'cislunar'\nber = {ber}\ndelay-ms = 2000\n\
         [[outage]]\nhop = 2\nfrom = 'data'\nafter-s = 40\nlength-s = {outage_s}"
    )
}

#[test]
fn a_relay_stores_the_whole_bundle_before_it_sends_it_on() {
    for protocol in PROTOCOLS {
        let outcome = play(&two_hops(protocol, 0.0, 0), 0);
        assert!(outcome.delivered, "{protocol}");
        let (first, second) = (outcome.hops[0].data_s.unwrap(), outcome.hops[1].data_s.unwrap());
        assert!(second.0 >= first.1 + 2.0, "{protocol}: {first:?} then {second:?}");
        let ratio = outcome.transfer_s.unwrap() / outcome.limit.store_and_forward.error_free_s;
        assert!((1.0..1.4).contains(&ratio), "{protocol}: {ratio} times the limit");
    }
}

#[test]
fn an_outage_costs_no_byte_that_was_acknowledged() {
    for protocol in PROTOCOLS {
        for run in 0..2 {
            let outcome = play(&two_hops(protocol, 1e-6, 120), run);
            assert!(outcome.delivered, "{protocol}");
            let hop = &outcome.hops[1];
            assert!(hop.acknowledged_at_outage_bytes.unwrap() > 0, "{protocol}: something was safe");
            assert_eq!(hop.acknowledged_again_bytes, 0, "{protocol}");
            assert!(hop.seen.broken > 0, "{protocol}: the outage broke the transfer");
        }
    }
}

#[test]
fn an_announced_outage_is_waited_for_and_costs_little_more_than_its_length() {
    for protocol in PROTOCOLS {
        let text = |announced: bool, length: u32| {
            format!(
                "protocol = '{protocol}'\n[[link]]\nprofile = 'cislunar'\nber = 0\ndelay-ms = 2000\n\
                 [[outage]]\nafter-s = 50\nlength-s = {length}\nannounced = {announced}"
            )
        };
        let seconds = |announced, length| {
            let outcome = play(&text(announced, length), 0);
            assert!(outcome.delivered, "{protocol}");
            assert_eq!(outcome.hops[0].acknowledged_again_bytes, 0, "{protocol}");
            outcome.transfer_s.unwrap()
        };
        let (without, known, unknown) = (seconds(true, 0), seconds(true, 600), seconds(false, 600));
        assert!(
            (600.0..660.0).contains(&(known - without)),
            "{protocol}: {without} s, with the outage {known} s"
        );
        assert!(known <= unknown, "{protocol}: {known} s announced, {unknown} s not");
    }
}
