//! Frames sent again although they had arrived: the effect on a link of a controller that reports transmission too
//! early.

use crate::ax25::{Rig, file, link};
use longwire_proto::ax25::{Control, Frame, LinkConfig, Modulo, Version};
use longwire_proto::time::Duration;
use longwire_sim::*;
use std::sync::{Arc, Mutex};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Frames sent by A for the file: I frames, repeated I frames and polls; and the time of the transfer.
#[derive(Debug, Default)]
struct Sent {
    frames: usize,
    repeated: usize,
    questions: usize,
    seconds: f64,
}

fn carry(seed: u64, radio: &RadioConfig, window: u8, tnc: &TncConfig) -> Sent {
    let (link, modulo) = match window {
        ..=7 => (link(window), Modulo::Eight),
        _ => {
            let config = LinkConfig { version: Version::Extended, ..link(7) };
            (LinkConfig { extended_window_frames: window, ..config }, Modulo::Extended)
        }
    };
    let mut rig = Rig::with_link(seed, 2, radio, &link, &[], Some(tnc));
    rig.connect();
    let frames = Arc::new(Mutex::new(Vec::new()));
    let sink = frames.clone();
    rig.world.set_trace(Box::new(move |record| sink.lock().expect("one thread").push(record)));
    let seconds = rig.transfer(&file()).as_secs_f64();
    assert_eq!(rig.heard, file(), "seed {seed}");
    let mut sent = Sent { seconds, ..Sent::default() };
    let mut seen = Vec::new();
    let frames = frames.lock().expect("one thread");
    for record in frames.iter().filter(|record| record.from.node == rig.nodes[0]) {
        match Frame::decode(&mut record.bytes.clone(), modulo).expect("a frame") {
            Frame { control: Control::Information { .. }, information, .. } => {
                sent.frames += 1;
                sent.repeated += usize::from(seen.contains(&information));
                seen.push(information);
            }
            _ => sent.questions += 1,
        }
    }
    sent
}

/// Sums of all runs with one kind of controller.
fn runs(rate_bps: u64, window: u8, tnc: &TncConfig) -> Sent {
    const RUNS: u64 = 6;
    let station = StationConfig { tx_delay: MS(150), slot_time: MS(20), ..StationConfig::default() };
    let radio = RadioConfig { rate_bps, stations: vec![station], ..RadioConfig::default() };
    let mut sum = Sent::default();
    for seed in 0..RUNS {
        let sent = carry(seed, &radio, window, tnc);
        sum.frames += sent.frames;
        sum.repeated += sent.repeated;
        sum.questions += sent.questions;
        sum.seconds += sent.seconds / RUNS as f64;
    }
    sum
}

/// A controller that reports transmission as soon as it has a frame, or never, performs like a correct one: no frame is
/// sent twice, and the time is the same. Earlier, three of four frames were repetitions, or the link was given up.
#[test]
fn what_a_controller_says_of_leaving_costs_nothing() {
    for turnaround in [MS(0), MS(1460)] {
        for rate_bps in [1200, 9600] {
            for window in [1, 4, 7, 32] {
                let tnc = |reports| TncConfig { reports, turnaround, ..TncConfig::default() };
                let honest = runs(rate_bps, window, &tnc(TransmitReports::Left));
                for reports in [TransmitReports::Left, TransmitReports::Taken, TransmitReports::Never] {
                    let sent = runs(rate_bps, window, &tnc(reports));
                    let what =
                        format!("{turnaround:?}, {rate_bps} bit/s, k = {window}, {reports:?}: {sent:?}");
                    assert!(sent.repeated == 0 && sent.questions <= 3, "{what}");
                    assert!((sent.seconds / honest.seconds - 1.0).abs() < 0.02, "{what}, not {honest:?}");
                }
            }
        }
    }
}

/// If the line to the controller is slower than the channel, its report of a received frame comes after the time at
/// which the frame could have left, and the frame leaves even later: T1 is too short by that time, and yet no frame is
/// sent twice.
#[test]
fn reports_of_a_slow_line_repeat_nothing() {
    let tnc = |reports| {
        let slow = TncConfig { serial_bps: Some(1200), turnaround: MS(1460), ..TncConfig::default() };
        TncConfig { reports, ..slow }
    };
    for (rate_bps, window) in [(1200, 1), (1200, 4), (1200, 7), (9600, 4), (9600, 7)] {
        let honest = runs(rate_bps, window, &tnc(TransmitReports::Left));
        let sent = runs(rate_bps, window, &tnc(TransmitReports::Taken));
        let what = format!("{rate_bps} bit/s, k = {window}: {sent:?}, not {honest:?}");
        assert!(sent.repeated == 0 && sent.questions <= 6, "{what}");
        assert!((sent.seconds / honest.seconds - 1.0).abs() < 0.02, "{what}");
    }
}
