//! Protocols over AX.25 on simulated radio channels, as `compare` runs them.

use longwire_lab::compare::{Options, compare};
use longwire_lab::ledger::HopDirection;
use longwire_lab::progress::Progress;
use longwire_lab::protocols::{self, Medium};
use longwire_lab::report::PageBlock;
use longwire_lab::run::{Outcome, Setup, Wanted};
use longwire_lab::scenario::Scenario;
use std::path::Path;

fn setup(text: &str) -> Setup {
    let scenario = Scenario::parse(text, "test").unwrap();
    Setup::new(scenario, Path::new(".")).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn play(text: &str, run: u32) -> Outcome {
    setup(text).run(run, Wanted::default())
}

fn on_radio() -> impl Iterator<Item = String> {
    protocols::PROTOCOLS
        .iter()
        .filter(|protocol| protocol.runs_on(Medium::Radio))
        .flat_map(protocols::Protocol::names)
}

fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
}

/// On good and bad channels every byte arrives, the ledger of the channel adds up, and no protocol is faster than the
/// limit.
#[test]
fn every_protocol_delivers_and_accounts_for_its_time() {
    for (link, ber) in [("ax25-1200", "0"), ("ax25-9600", "0"), ("ax25-1200", "5e-5"), ("ax25-9600", "5e-5")]
    {
        for name in on_radio() {
            let text = format!(
                "protocol = '{name}'\n[workload]\nbytes = 7182\n[[link]]\nprofile = '{link}'\nber = {ber}"
            );
            let setup = setup(&text);
            let outcomes: Vec<Outcome> = (0..4).map(|run| setup.run(run, Wanted::default())).collect();
            for outcome in &outcomes {
                assert!(outcome.delivered, "{text}: {:?} {:?}", outcome.missed, outcome.failures);
                let [ledger, _] = &outcome.hops[0].ledgers;
                let elapsed = (outcome.transfer_s.unwrap() * 1e9).round() as u64;
                assert_eq!((ledger.way, ledger.total()), (HopDirection::Shared, elapsed), "{text}");
                for entry in ["payload", "headers", "framing", "stuffing", "keying"] {
                    assert!(ledger.seconds(entry) > 0.0, "{text}: {entry}");
                }
                assert_eq!(ledger.seconds("outage"), 0.0, "{text}");
            }
            // A station that draws its slot at once does not wait, which may happen with a single key-up.
            assert!(mean(&outcomes, |outcome| outcome.hops[0].ledgers[0].seconds("access")) > 0.0, "{text}");
            let ratio =
                mean(&outcomes, |outcome| outcome.transfer_s.unwrap() / outcome.limit.streaming.mean_s);
            assert!(ratio > 1.0, "{text}: {ratio} times the limit");
            // NORM does not repeat what is lost, but sends repair symbols.
            let again = |outcome: &Outcome| {
                let ledger = &outcome.hops[0].ledgers[0];
                ledger.seconds("repeated") + ledger.seconds("repair")
            };
            let repeated = mean(&outcomes, again);
            assert!(ber == "0" || repeated > 0.0, "{text}: errors cost something");
        }
    }
}

/// The bytes of TCP in a frame are classified: on a channel without errors its payload equals the file.
#[test]
fn the_headers_and_acknowledgements_of_tcp_are_not_payload() {
    let text = "protocol = 'tcp-ax25/frames-tuned'\n[workload]\nbytes = 20000\n[[link]]\nprofile = 'ax25-9600'\nber = 0";
    let outcome = play(text, 0);
    let ledger = &outcome.hops[0].ledgers[0];
    let file_s = (20_000.0 + 12.0) * 8.0 / 9600.0;
    assert!((ledger.seconds("payload") / file_s - 1.0).abs() < 0.001, "{ledger:?}");
    assert!(ledger.seconds("acknowledgements") > 0.0 && ledger.seconds("control") > 0.0, "{ledger:?}");
    // AX.25, IP and TCP: 56 bytes for each 216, apart from options.
    let share = ledger.seconds("headers") / ledger.seconds("payload");
    assert!((0.24..0.32).contains(&share), "{share}");
}

/// During an outage of the channel in the middle, acknowledged data are not sent again, and the ledger contains the
/// length of the outage.
#[test]
fn an_outage_costs_no_acknowledged_byte() {
    for name in ["ax25cl/k4", "ax25cm/k4"] {
        let text = format!(
            "protocol = '{name}'\n[workload]\nbytes = 20000\n[[link]]\nprofile = 'ax25-1200'\n\
             [[outage]]\nfrom = 'data'\nafter-s = 60\nlength-s = 300"
        );
        for run in 0..2 {
            let outcome = play(&text, run);
            assert!(outcome.delivered, "{name}: {:?} {:?}", outcome.missed, outcome.failures);
            let hop = &outcome.hops[0];
            assert_eq!(hop.acknowledged_again_bytes, 0, "{name}");
            assert!((hop.ledgers[0].seconds("outage") - 300.0).abs() < 1e-6, "{name}");
            assert!(outcome.transfer_s.unwrap() > outcome.limit.streaming.error_free_s, "{name}");
        }
    }
    let scheduled = "protocol = 'ax25cl'\n[[outage]]\nafter-s = 10\nlength-s = 50\n[workload]\nbytes = 5000\n[[link]]\nprofile = 'ax25-1200'";
    assert!((play(scheduled, 0).hops[0].ledgers[0].seconds("outage") - 50.0).abs() < 1e-6);
}

#[test]
fn relays_pass_bundles_on_over_two_channels() {
    for name in ["ax25cl", "ax25cm", "uicl"] {
        let text = format!(
            "protocol = '{name}'\nnodes = ['tx', 'hill', 'rx']\n[workload]\nbytes = 5000\n[[link]]\nprofile = 'ax25-9600'"
        );
        let outcome = play(&text, 0);
        assert!(outcome.delivered, "{name}: {:?}", outcome.missed);
        assert!(outcome.transfer_s.unwrap() > outcome.limit.streaming.error_free_s);
        assert!(outcome.hops.iter().all(|hop| hop.frames > 0));
    }
}

#[test]
fn a_protocol_on_a_link_that_does_not_suit_it_is_refused_with_those_that_do() {
    for (protocol, link, hint) in [
        ("tcpcl4", "ax25-1200", "ax25, ax25cm, ax25cl, uicl, tcp-ax25"),
        ("ax25cl", "lan", "tcp, tcpcl3, tcpcl4, udp"),
    ] {
        let text = format!("protocol = '{protocol}'\n[[link]]\nprofile = '{link}'");
        let scenario = Scenario::parse(&text, "test").unwrap();
        let error = Setup::new(scenario, Path::new(".")).err().unwrap().to_string();
        assert!(error.contains("cannot be used on this link") && error.contains(hint), "{error}");
    }
}

#[test]
fn the_same_run_gives_the_same_outcome_and_another_run_another() {
    let text = "protocol = 'ax25cl'\n[workload]\nbytes = 5000\n[[link]]\nprofile = 'ax25-1200'";
    let [first, again, other] = [0, 0, 1].map(|run| play(text, run));
    assert_eq!((first.transfer_s, &first.observed), (again.transfer_s, &again.observed));
    assert_ne!(first.transfer_s, other.transfer_s);
}

/// Captures of a radio channel open as AX.25, and TCP inside the frames is found.
#[test]
fn traces_of_a_radio_channel_are_ax25() {
    let frames = |name: &str| {
        let text = format!("protocol = '{name}'\n[workload]\nbytes = 2000\n[[link]]\nprofile = 'ax25-9600'");
        setup(&text).run(0, Wanted { frames: true, linger_s: 0.0 }).frames
    };
    let written = |name: &str| {
        let (mut capture, mut timeline) = (Vec::new(), Vec::new());
        longwire_lab::trace::pcapng::write(&mut capture, &frames(name), "tx").unwrap();
        longwire_lab::trace::timeline::write(&mut timeline, &frames(name)).unwrap();
        (capture, String::from_utf8(timeline).unwrap())
    };
    let (capture, timeline) = written("ax25/k4");
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&capture[..]).unwrap();
    while let Some(block) = reader.next_block() {
        if let pcap_file::pcapng::Block::InterfaceDescription(interface) = block.unwrap() {
            assert_eq!(interface.linktype, pcap_file::DataLink::AX25);
        }
    }
    for words in ["tx > rx  SABM, poll", "I N(S)=0 N(R)=0", "RR N(R)=4, final"] {
        assert!(timeline.contains(words), "{words}\n{timeline}");
    }
    assert!(written("tcp-ax25/frames").1.contains("> 5001 SYN 0"));
}

/// The winner's settings are those of a node if nodes have such links; otherwise those of the best node are added.
#[test]
fn the_configuration_is_that_of_a_node() {
    let file = std::env::temp_dir().join(format!("longwire-air-{}", std::process::id()));
    std::fs::write(&file, vec![7; 3000]).unwrap();
    let options = Options {
        files: vec![file.clone()],
        link: "ax25-9600".into(),
        runs: Some(2),
        seed: 1,
        threads: 2,
        traces: false,
        receivers: 1,
    };
    let finding = compare(&options, &Progress::new()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let code = |block: &PageBlock| match block {
        PageBlock::Code { caption, text } => Some((caption.clone(), text.clone())),
        _ => None,
    };
    let codes: Vec<(String, String)> = finding.summary.iter().filter_map(code).collect();
    let (caption, text) = codes.last().unwrap();
    assert!(caption.starts_with("node configuration: "), "{caption}");
    let table: toml::Table = text.parse().unwrap();
    let channel = &table["tnc"]["channel"];
    assert_eq!(
        (channel["rate-bps"].as_integer(), channel["tx-delay"].as_str()),
        (Some(9600), Some("150 ms"))
    );
    let said: Vec<&str> = finding.experiment.records.iter().map(|record| record.case.as_str()).collect();
    assert!(said.contains(&"uicl/one") && said.contains(&"tcp-ax25/link-k4"));
    assert!(
        finding
            .summary
            .iter()
            .any(|block| matches!(block, PageBlock::Text(text) if text.starts_with("Not applicable: `tcp`")))
    );
}

/// The end of one outage is not the end of another that is still in progress.
#[test]
fn outages_of_a_channel_that_overlap_last_until_the_last_has_ended() {
    for (scheduled_s, waiting_s) in [(100, 10), (4, 100)] {
        let text = format!(
            "protocol = 'ax25cl'\n[workload]\nbytes = 5000\n[[link]]\nprofile = 'ax25-1200'\nber = 0\n\
             [[outage]]\nafter-s = 8\nlength-s = {scheduled_s}\n\
             [[outage]]\nfrom = 'data'\nafter-s = 3\nlength-s = {waiting_s}"
        );
        let outcome = play(&text, 0);
        assert!(outcome.delivered, "{text}: {:?}", outcome.missed);
        let [one, other] = outcome.hops[0].outages[..] else { panic!("{text}: two outages") };
        assert!(other.0 < one.1, "{text}: they overlap: {one:?}, {other:?}");
        let expected = one.1.max(other.1) - one.0;
        let out_s = outcome.hops[0].ledgers[0].seconds("outage");
        assert!((out_s - expected).abs() < 1e-6, "{text}: {out_s} s, not {expected}");
    }
}

/// Frames longer than those of the link are invalid, and the limit does not apply to them.
#[test]
fn an_information_field_longer_than_the_frames_of_the_link_is_refused() {
    for name in on_radio() {
        let refused = |longest: u32| {
            let text = format!(
                "protocol = '{name}'\nnodes = ['tx', 'rx']\n[workload]\nbytes = 100\n\
                 [[link]]\nprofile = 'ax25-1200'\nmtu-bytes = 64\n[settings.ax25]\ninformation-bytes-max = {longest}"
            );
            let scenario = Scenario::parse(&text, "test").unwrap();
            Setup::new(scenario, Path::new(".")).err().map(|error| error.to_string())
        };
        assert_eq!(refused(64), None, "{name}");
        let said = refused(65).unwrap_or_else(|| panic!("{name} takes 65 bytes where frames have 64"));
        assert!(said.contains("information-bytes-max") && said.contains("set it to at most 64"), "{said}");
    }
}
