//! Controllers between host and channel.

use crate::ax25::{Rig, closed_form, file};
use crate::nodes::*;
use longwire_proto::ax25::hdlc::air_bits;
use longwire_proto::ax25::{Control, Frame, Modulo};
use longwire_proto::joint::Stack;
use longwire_proto::rng::Rng;
use longwire_proto::service::FramesIndication;
use longwire_proto::time::{Duration, Instant};
use longwire_proto::wrap::Checked;
use longwire_sim::*;
use std::sync::{Arc, Mutex};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn radio(rate_bps: u64, persistence: u8) -> RadioConfig {
    let station =
        StationConfig { persistence, tx_delay: MS(150), slot_time: MS(20), ..StationConfig::default() };
    RadioConfig { rate_bps, stations: vec![station], ..RadioConfig::default() }
}

/// Talkers behind controllers.
fn talkers_behind(
    seed: u64,
    config: RadioConfig,
    tncs: Vec<TncConfig>,
) -> (Simulation<Talk>, Vec<NodeId>, ChannelId) {
    let mut world = Simulation::new(seed);
    let add = |(index, tnc): (usize, TncConfig)| {
        world.add_node(&format!("t{index}"), move |boot| {
            let tnc = Checked::new("tnc", Tnc::new(tnc.clone()));
            Box::new(OnRadio(Stack::new(Checked::new(&boot.name, Talker::default()), tnc)))
        })
    };
    let nodes: Vec<NodeId> = tncs.into_iter().enumerate().map(add).collect();
    let ends: Vec<_> = nodes.iter().map(|node| (*node, AT)).collect();
    let channel = world.add_radio(config, &ends);
    (world, nodes, channel)
}

#[test]
fn a_frame_takes_line_processor_turnaround_air_and_all_of_it_again() {
    let tnc =
        TncConfig { serial_bps: Some(9600), frame_time: MS(30), turnaround: MS(400), ..TncConfig::default() };
    let (mut world, nodes, _) = talkers_behind(1, radio(1200, 255), vec![tnc; 2]);
    let frame = say(1, 100);
    world.request(nodes[0], frame.clone());
    world.run_until(Instant::from_secs(9));
    let told = world.take_indications();
    let line = Duration::from_nanos(1030 * 1_000_000_000 / 9600);
    let left = line + MS(30 + 400 + 150);
    let air = Duration::from_nanos(((air_bits(&frame.bytes) + 16) * 1_000_000_000).div_ceil(1200));
    let at = |wanted: &FramesIndication| {
        let found = told.iter().find(|told| told.2 == *wanted).expect("it is said");
        found.0.saturating_since(Instant::ZERO).as_secs_f64()
    };
    let transmitted = at(&FramesIndication::Transmitted(1));
    assert!((transmitted - (left + air).as_secs_f64()).abs() < 1e-5, "{transmitted}");
    let heard = at(&FramesIndication::Frame(frame.bytes));
    assert!((heard - (left + air + MS(30) + line).as_secs_f64()).abs() < 1e-5, "{heard}");
}

fn draw_tnc(rng: &mut Rng) -> TncConfig {
    TncConfig {
        serial_bps: [None, Some(1200), Some(9600)][rng.below(3) as usize],
        frame_time: MS(rng.below(2) * rng.below(300)),
        turnaround: MS(rng.below(2) * rng.below(1500)),
        ahead_frames: 1 + rng.below(12) as u32,
        buffer_frames: 1 + rng.below(12) as u32,
        burst_frames: 1 + rng.below(6) as u32,
        reports: [TransmitReports::Left, TransmitReports::Taken][rng.below(2) as usize],
        tells_busy: rng.chance(0.5),
        deaf_after_frames: None,
    }
}

#[test]
fn every_frame_is_reported_once_and_sent_once_or_swallowed() {
    let (mut swallowed, mut sent) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed).fork("controllers");
        let tncs: Vec<TncConfig> = (0..2 + rng.below(3)).map(|_| draw_tnc(&mut rng)).collect();
        let may_swallow = tncs.iter().any(|tnc| tnc.buffer_frames < tnc.ahead_frames);
        let full_duplex = rng.chance(0.2);
        let config = RadioConfig { full_duplex, ..radio(9600, 63) };
        let (mut world, nodes, _) = talkers_behind(seed, config, tncs);
        let frames = Arc::new(Mutex::new(Vec::new()));
        let sink = frames.clone();
        world.set_trace(Box::new(move |record| sink.lock().expect("one thread").push(record)));
        let count = 30 + rng.below(60);
        for number in 0..count {
            let node = nodes[rng.below(nodes.len() as u64) as usize];
            let at = Instant::from_millis(rng.below(3) * 30_000 + rng.below(500));
            world.request_at(at, node, say(number, 16 + rng.below(200) as usize));
        }
        while world.step() {}
        let told = world.take_indications();
        let mut reported: Vec<u64> = told
            .iter()
            .filter_map(|told| match told.2 {
                FramesIndication::Transmitted(token) => Some(token),
                _ => None,
            })
            .collect();
        reported.sort_unstable();
        assert_eq!(reported, (0..count).collect::<Vec<u64>>(), "seed {seed}");
        let others = nodes.len() - 1;
        let on_air = frames.lock().expect("one thread").len() / others;
        assert!(on_air as u64 <= count, "seed {seed}: nothing is sent twice");
        assert!(may_swallow || on_air as u64 == count, "seed {seed}: {on_air} of {count}");
        swallowed += count - on_air as u64;
        sent += on_air;
    }
    assert!(swallowed > 20 && sent > 1000, "{swallowed} swallowed, {sent} sent");
}

/// Returns the number of frames in each transmission of a node.
fn bursts(world: &mut Simulation<Talk>, from: NodeId, run: impl FnOnce(&mut Simulation<Talk>)) -> Vec<usize> {
    let frames = Arc::new(Mutex::new(Vec::new()));
    let sink = frames.clone();
    world.set_trace(Box::new(move |record| sink.lock().expect("one thread").push(record)));
    run(world);
    let frames = frames.lock().expect("one thread");
    let mut bursts: Vec<(usize, Instant)> = Vec::new();
    for frame in frames.iter().filter(|frame| frame.from.node == from) {
        let (started, left) = (frame.started.expect("sent"), frame.left.expect("sent"));
        match bursts.last_mut().filter(|burst| burst.1 == started) {
            Some(burst) => *burst = (burst.0 + 1, left),
            None => bursts.push((1, left)),
        }
    }
    bursts.into_iter().map(|burst| burst.0).collect()
}

fn bursts_of_seven(tnc: TncConfig, rate_bps: u64) -> Vec<usize> {
    let (mut world, nodes, _) = talkers_behind(1, radio(rate_bps, 255), vec![tnc, TncConfig::default()]);
    bursts(&mut world, nodes[0], |world| {
        (0..7).for_each(|number| assert!(world.request(nodes[0], say(number, 250))));
        world.run_until(Instant::from_secs(60));
    })
}

#[test]
fn a_window_is_cut_by_the_firmware_the_serial_line_and_the_processor() {
    let tnc = TncConfig::default;
    assert_eq!(bursts_of_seven(TncConfig { turnaround: MS(1), ..tnc() }, 1200), [7]);
    assert_eq!(bursts_of_seven(TncConfig { burst_frames: 4, turnaround: MS(1), ..tnc() }, 1200), [4, 3]);
    // 253 bytes take 264 ms to the controller and 210 ms on the channel: TXDELAY and TXTAIL give a second frame time to
    // catch up.
    let serial_bps = Some(9600);
    let slow = bursts_of_seven(TncConfig { serial_bps, ..tnc() }, 9600);
    assert!(slow.len() > 1 && slow.len() < 7, "{slow:?}");
    assert_eq!(
        bursts_of_seven(TncConfig { serial_bps, ..tnc() }, 1200),
        [7],
        "the air is slower than the line"
    );
    let busy = bursts_of_seven(TncConfig { frame_time: MS(900), ..tnc() }, 9600);
    assert_eq!(busy, [1; 7]);
}

fn mean(radio: &RadioConfig, window: u8, tnc: Option<&TncConfig>, runs: u64) -> f64 {
    let file = file();
    let run = |seed| {
        let mut rig = Rig::with_tncs(seed, 2, radio, window, &[], tnc);
        rig.connect();
        let took = rig.transfer(&file).as_secs_f64();
        assert_eq!(rig.heard, file, "seed {seed}");
        took
    };
    (0..runs).map(run).sum::<f64>() / runs as f64
}

#[test]
fn a_controller_that_takes_no_time_changes_nothing() {
    for rate_bps in [1200, 9600] {
        for window in [1, 4, 7] {
            let radio = radio(rate_bps, 63);
            let expected = closed_form(&radio.stations[0], rate_bps as f64, &file(), usize::from(window));
            let took = mean(&radio, window, Some(&TncConfig::default()), 40);
            let off = took / expected - 1.0;
            assert!(off.abs() < 0.02, "{rate_bps} bit/s, k = {window}: {took} s, not {expected} s");
        }
    }
}

#[test]
fn a_turnaround_costs_itself_once_for_each_key_up() {
    let turnaround = MS(730);
    let tnc = TncConfig { turnaround, ..TncConfig::default() };
    for window in [1, 4, 7] {
        // Without a random draw.
        let radio = radio(1200, 255);
        let (without, with) = (mean(&radio, window, None, 1), mean(&radio, window, Some(&tnc), 1));
        let key_ups = 2.0 * f64::from(29u32.div_ceil(u32::from(window)));
        let cost = (with - without) / key_ups;
        // It begins when the last frame has arrived, during the TXTAIL of 20 ms of the other station.
        assert!((cost - 0.730).abs() <= 0.0201, "k = {window}: {cost} s a key-up");
    }
}

#[test]
fn a_link_gets_over_a_controller_that_swallows_frames() {
    let tnc = TncConfig { buffer_frames: 5, ..TncConfig::default() };
    let radio = radio(9600, 63);
    for seed in 0..5 {
        let mut rig = Rig::with_tncs(seed, 2, &radio, 7, &[], Some(&tnc));
        rig.connect();
        rig.transfer(&file());
        assert_eq!(rig.heard, file(), "seed {seed}");
        // Two or more frames of each window of seven find no space, so there are repetitions.
        let repeated = rig.world.radio_airtime(rig.channel, (rig.nodes[0], AT)).repeated;
        assert!(repeated > 0, "seed {seed}");
    }
}

/// A controller that stops receiving until it transmits again (dtn-over-ax25, V.C): the acknowledgement of the receiver
/// after T2 and the poll of the sender after T1 end this state.
#[test]
fn a_link_gets_over_controllers_that_go_deaf_until_they_send() {
    let tnc = TncConfig { deaf_after_frames: Some(3), ..TncConfig::default() };
    for rate_bps in [1200, 9600] {
        let radio = radio(rate_bps, 63);
        for seed in 0..5 {
            let mut rig = Rig::with_tncs(seed, 2, &radio, 7, &[], Some(&tnc));
            rig.connect();
            rig.transfer(&file());
            assert_eq!(rig.heard, file(), "{rate_bps} bit/s, seed {seed}");
            // The fourth frame and those after it were received by no station.
            let repeated = rig.world.radio_airtime(rig.channel, (rig.nodes[0], AT)).repeated;
            assert!(repeated > 0, "{rate_bps} bit/s, seed {seed}");
        }
    }
}

/// Returns the numbers of I frames, repeated I frames and polls sent by A, and for each window the time from its
/// arrival at the controller to its acknowledgement.
fn windows(window: u8) -> (usize, usize, usize, Vec<Duration>) {
    let tnc = TncConfig { turnaround: MS(1460), ..TncConfig::default() };
    let mut rig = Rig::with_tncs(3, 2, &radio(1200, 255), window, &[], Some(&tnc));
    rig.connect();
    let frames = Arc::new(Mutex::new(Vec::new()));
    let sink = frames.clone();
    rig.world.set_trace(Box::new(move |record| sink.lock().expect("one thread").push(record)));
    let mut since = rig.world.now();
    rig.transfer(&file());
    assert_eq!(rig.heard, file());
    let (mut seen, mut repeated, mut questions, mut waits) = (Vec::new(), 0, 0, vec![]);
    for record in frames.lock().expect("one thread").iter() {
        let frame = Frame::decode(&mut record.bytes.clone(), Modulo::Eight).expect("a frame");
        match frame.control {
            Control::Information { .. } => {
                repeated += usize::from(seen.contains(&frame.information));
                seen.push(frame.information);
            }
            Control::Supervisory { .. } if record.from.node == rig.nodes[0] => questions += 1,
            Control::Supervisory { .. } => {
                let at = record.received.expect("nothing is lost");
                waits.push(at.saturating_since(since));
                since = at;
            }
            Control::Unnumbered { .. } => {}
        }
    }
    (seen.len(), repeated, questions, waits)
}

/// The flood of repetitions in the published trials (dtn-over-ax25, V.A): a T1 of 10 s expired while a window of four
/// was still being sent, and all frames were repeated again and again. Here T1 starts at the end of the last frame and
/// covers the time of the response: it expires in no window, and no frame is sent twice.
#[test]
fn a_constant_timer_would_flood_and_the_computed_one_does_not() {
    const PUBLISHED: Duration = Duration::from_secs(10);
    for window in [1, 4, 7] {
        let (sent, repeated, questions, waits) = windows(window);
        assert_eq!((sent, repeated, questions), (29, 0, 0), "k = {window}");
        let late = waits.iter().filter(|wait| **wait > PUBLISHED).count();
        println!("k = {window}: {late} of {} windows take longer than 10 s: {waits:?}", waits.len());
        assert_eq!(late > 0, window > 1, "k = {window}: {waits:?}");
    }
}

#[test]
fn values_that_make_no_sense_are_named() {
    let refused = |config: TncConfig| config.validate().expect_err("it makes no sense");
    let tnc = TncConfig::default;
    assert_eq!(tnc().validate(), Ok(()));
    assert!(refused(TncConfig { serial_bps: Some(0), ..tnc() }).contains("serial-bps"));
    assert!(refused(TncConfig { ahead_frames: 0, ..tnc() }).contains("ahead-frames"));
    assert!(refused(TncConfig { buffer_frames: 0, ..tnc() }).contains("buffer-frames"));
    assert!(refused(TncConfig { burst_frames: 0, ..tnc() }).contains("burst-frames"));
    assert!(refused(TncConfig { deaf_after_frames: Some(0), ..tnc() }).contains("deaf-after-frames"));
    let text = "serial-bps = 9600\nframe-time-ms = 2.5\nturnaround-ms = 1460\nreports = \"never\"\n";
    let read: TncConfig = toml::from_str(text).expect("it reads");
    let frame_time = Duration::from_micros(2500);
    let reports = TransmitReports::Never;
    assert_eq!(
        read,
        TncConfig { serial_bps: Some(9600), frame_time, turnaround: MS(1460), reports, ..tnc() }
    );
}
