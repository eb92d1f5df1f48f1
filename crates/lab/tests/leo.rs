//! LTP over UI frames of AX.25, from an amateur satellite to the ground, in virtual time.

use longwire_lab::protocols::{self, Medium};
use longwire_lab::run::{Outcome, Setup, Wanted};
use longwire_lab::scenario::Scenario;
use longwire_proto::ltp::wire::{Content, Segment};
use longwire_sim::FrameFate;
use std::path::Path;

/// Bytes of a UI frame before its information: two addresses, control and protocol identifier.
const UI_HEADER_BYTES: usize = 16;

fn play(text: &str, run: u32, frames: bool) -> Outcome {
    let scenario = Scenario::parse(text, "test").unwrap();
    let setup = Setup::new(scenario, Path::new(".")).unwrap_or_else(|error| panic!("{text}: {error}"));
    setup.run(run, Wanted { frames, ..Wanted::default() })
}

/// Time of the passes until this time: eight minutes of every 95, from the start.
fn pass_time_s(until_s: f64) -> f64 {
    let whole = (until_s / 5700.0).floor();
    480.0 * whole + (until_s - 5700.0 * whole).min(480.0)
}

/// 1.2 MB need more than two passes, although one frame of twenty is lost. The bundle of one pass continues in the next one.
#[test]
fn a_bundle_arrives_over_three_passes_near_their_limit_and_nothing_acknowledged_is_sent_again() {
    for run in 0..2 {
        let text = "protocol = 'ltp'\n[workload]\nbytes = 1200000\n[[link]]\nprofile = 'leo-9600'";
        let outcome = play(text, run, true);
        assert!(outcome.delivered, "{:?} {:?}", outcome.missed, outcome.failures);
        let took_s = pass_time_s(outcome.transfer_s.unwrap());
        let limit_s = pass_time_s(outcome.limit.streaming.mean_s);
        assert!(limit_s > 2.0 * 480.0, "{limit_s} s of passes");
        assert!(limit_s / took_s > 0.85, "{took_s} s of passes instead of {limit_s} s");
        let hop = &outcome.hops[0];
        let lost = hop.damaged_frames as f64 / outcome.frames.len() as f64;
        assert!((0.03..0.06).contains(&lost), "{lost} of all frames are lost");
        let (repeated, twice) = sent_again(&outcome);
        assert!(repeated > 100, "{repeated} segments are repeated");
        assert_eq!(twice, 0, "of {repeated} repeated segments these were acknowledged");
    }
}

/// Number of data segments with bytes that were sent before, and of those whose bytes the source knew to have arrived.
fn sent_again(outcome: &Outcome) -> (usize, usize) {
    // Reports count from the time at which they have arrived, and data from that at which they leave.
    let mut events = Vec::new();
    for frame in &outcome.frames {
        let is_report = frame.from.node == "rx";
        let at = if is_report { frame.received } else { frame.sent };
        let Some(at) = at.filter(|_| !is_report || frame.fate == FrameFate::Delivered) else { continue };
        let mut segment = frame.bytes.slice(UI_HEADER_BYTES..);
        events.push((at, Segment::decode(&mut segment).expect("a segment").content));
    }
    events.sort_by_key(|(at, _)| *at);
    let (mut claims, mut sent_up_to): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
    let (mut repeated, mut twice) = (0, 0);
    for (_, content) in events {
        match content {
            Content::Report(report) => claims.extend(report.claims),
            Content::Data(data) if data.offset < sent_up_to => {
                repeated += 1;
                let is_known = claims.iter().any(|(from, to)| *from <= data.offset && data.end() <= *to);
                twice += usize::from(is_known);
            }
            Content::Data(data) => sent_up_to = data.end(),
            _ => {}
        }
    }
    (repeated, twice)
}

/// Each UI frame has 19 bytes around its information, and no packet of IP.
#[test]
fn the_frames_are_those_of_ax25() {
    let text = "protocol = 'ltp'\n[workload]\nbytes = 5000\n[[link]]\nprofile = 'leo-9600'\nber = 0";
    let outcome = play(text, 0, true);
    assert!(outcome.delivered);
    let first = &outcome.frames[0];
    assert_eq!((first.bytes.len(), first.bytes[14], first.bytes[15]), (UI_HEADER_BYTES + 256, 0x03, 0xf0));
    let took = first.received.expect("it arrives").saturating_since(first.sent.expect("it leaves"));
    let frame_s = 275.0 * 8.0 / 9600.0;
    assert!((took.as_secs_f64() - 0.007 - frame_s).abs() < 1e-6, "{took:?} with check sequence and flag");
    let fitting = |medium| {
        let all = protocols::PROTOCOLS.iter().filter(move |protocol| protocol.runs_on(medium));
        all.map(|protocol| protocol.name).filter(|name| *name != "dummy").collect::<Vec<_>>()
    };
    assert_eq!(fitting(Medium::UiLine), ["ltp"]);
    assert!(!fitting(Medium::Radio).contains(&"ltp"), "its reports do not wait for their turn");
    let refused = Scenario::parse(&text.replace("'ltp'", "'tcpcl4'"), "test").unwrap();
    let refused = Setup::new(refused, Path::new(".")).err().expect("it needs IP").to_string();
    assert!(refused.contains("carries UI frames of AX.25"), "{refused}");
}
