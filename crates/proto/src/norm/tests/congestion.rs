//! Congestion control (RFC 5740 5.5.2).

use super::SECOND;
use super::bottleneck::{Bottleneck, Path};
use super::scene::{Scene, contents};
use crate::norm::wire::{Ack, AckContents, Body, CcFeedback, CcFlags, Command, Message, NodeId, Timestamp};
use crate::norm::{Config, CongestionControl};
use crate::time::Duration;
use bytes::Bytes;

const MILLIS: Duration = Duration::from_millis(1);

fn config(congestion_control: CongestionControl) -> Config {
    Config { congestion_control, rate_bps: 1_000_000_000, ..Config::default() }
}

fn tfmcc() -> Config {
    config(CongestionControl::Tfmcc)
}

/// One flow that has had some time.
fn flow(path: Path, congestion_control: CongestionControl, time: Duration) -> Bottleneck {
    let mut flow = Bottleneck::new(path, vec![config(congestion_control)], 1);
    flow.begin(0);
    flow.run(time);
    flow
}

/// Rate of objects, without the headers, which take 4.4 %.
#[test]
fn one_flow_uses_nine_tenths_of_a_path() {
    for (rate_bps, round_trip, wait, time) in
        [(100_000_000, 20, 6, 6), (1_000_000, 50, 10, 100), (128_000, 50, 20, 200)]
    {
        let path = Path::new(rate_bps, MILLIS * round_trip);
        let share = flow(path, CongestionControl::Tfmcc, SECOND * wait).shares(SECOND * time)[0];
        println!("{rate_bps} bit/s: {share:.3}");
        assert!(share > 0.9, "{rate_bps} bit/s: {share:.3}");
    }
}

#[test]
fn two_flows_have_equal_shares() {
    let mut flows = Bottleneck::new(Path::new(5_000_000, 40 * MILLIS), vec![tfmcc(), tfmcc()], 1);
    flows.begin(0);
    flows.run(SECOND * 10);
    flows.begin(1);
    flows.run(SECOND * 20);
    let shares = flows.shares(SECOND * 60);
    println!("{shares:.3?}");
    assert!(shares.iter().all(|share| (0.38..0.55).contains(share)), "{shares:?}");
    assert!(shares.iter().sum::<f64>() > 0.9, "{shares:?}");
}

/// Of 20 Mbit/s with losses of a twentieth, 18.2 Mbit/s are possible. TCP would have 2.1 Mbit/s.
#[test]
fn losses_without_a_queue_lower_the_rate_only_if_they_count() {
    let path = Path { loss: 0.05, ..Path::new(20_000_000, 20 * MILLIS) };
    let rate_mbps = |congestion_control| {
        let share = flow(path, congestion_control, SECOND * 5).shares(SECOND * 20)[0];
        println!("{congestion_control:?}: {:.2} Mbit/s", share * 20.0);
        share * 20.0
    };
    let (fair, tolerant) =
        (rate_mbps(CongestionControl::Tfmcc), rate_mbps(CongestionControl::TfmccLossTolerant));
    assert!((1.4..3.2).contains(&fair), "{fair} Mbit/s");
    assert!(tolerant > 0.8 * 18.2, "{tolerant} Mbit/s");
}

/// The loss-tolerant variant leaves room as the other one does: its queue drops little.
#[test]
fn full_queues_limit_the_tolerant_variant() {
    let path = Path::new(20_000_000, 20 * MILLIS);
    let mut all = flow(path, CongestionControl::TfmccLossTolerant, SECOND * 5);
    let (dropped, received) = (all.dropped, all.received(0));
    let share = all.shares(SECOND * 20)[0];
    let lost = (all.dropped - dropped) as f64 / ((all.received(0) - received) as f64 / 1400.0);
    println!("{share:.3} of the path, {lost:.4} dropped");
    assert!(share > 0.9 && lost < 0.01, "{share} {lost}");
}

#[test]
fn the_rate_follows_the_path() {
    let wide = Path::new(10_000_000, 40 * MILLIS);
    let narrow = Path { rate_bps: 1_000_000, ..wide };
    let mut all = flow(wide, CongestionControl::Tfmcc, SECOND * 10);
    assert!(all.rate_bps(0) > 7_000_000);
    all.path = narrow;
    all.run(SECOND * 5);
    assert!(all.rate_bps(0) < 2_000_000, "{}", all.rate_bps(0));
    let share = all.shares(SECOND * 60)[0];
    assert!(share > 0.85, "{share}");
    all.path = wide;
    all.run(SECOND * 10);
    let share = all.shares(SECOND * 10)[0];
    assert!(share > 0.85, "{share}");
}

#[test]
fn the_rate_is_halved_while_the_receiver_is_silent() {
    let path = Path::new(10_000_000, 40 * MILLIS);
    let mut all = flow(path, CongestionControl::Tfmcc, SECOND * 5);
    all.path.is_cut = true;
    let begun = all.rate_bps(0);
    all.run(150 * MILLIS);
    let before = all.rate_bps(0);
    assert!(before > begun / 2, "feedback was under way: {before} after {begun}");
    let mut rates = vec![before];
    for _ in 0..60 {
        all.run(100 * MILLIS);
        rates.push(all.rate_bps(0));
    }
    assert!(rates.is_sorted_by(|earlier, later| earlier >= later), "{rates:?}");
    assert!(rates[10] <= before / 16, "{rates:?}");
    all.run(SECOND * 30);
    assert_eq!(all.rate_bps(0), 2_000, "the receiver is given up");
    all.path.is_cut = false;
    // A probe leaves every 30 s.
    all.run(SECOND * 60);
    assert!(all.shares(SECOND * 10)[0] > 0.8, "it comes back");
}

/// Feedback of the receiver for the last probe of a flow, with another rate.
fn forged(all: &Bottleneck, change: impl Fn(CcFeedback) -> CcFeedback) -> Bytes {
    let answers = all.tape.as_ref().expect("a tape").iter().rev().filter(|(_, node, _)| *node == 1);
    let mut answers = answers.filter_map(|(_, _, bytes)| Message::decode(&mut bytes.clone()).ok());
    let last = answers.find_map(|message| match message.body {
        Body::Ack(Ack { sender, instance, cc: Some(cc), .. }) => Some((sender, instance, cc)),
        _ => None,
    });
    let (sender, instance, cc) = last.expect("an answer");
    let (grtt_response, contents) = (Timestamp::default(), AckContents::Cc);
    let body = Body::Ack(Ack { sender, instance, id: 0, grtt_response, cc: Some(change(cc)), contents });
    Message { sequence: 0, source: NodeId(2), body }.to_bytes()
}

#[test]
fn forged_feedback_changes_the_rate_within_limits() {
    let path = Path::new(10_000_000, 40 * MILLIS);
    let limits = Config { rate_bps: 20_000_000, rate_min_bps: 50_000, ..tfmcc() };
    let mut all = Bottleneck::new(path, vec![limits], 1);
    all.tape = Some(Vec::new());
    all.begin(0);
    all.run(300 * MILLIS);
    let huge = |cc| CcFeedback { rate: u16::MAX, loss: 0, reserved: 0, flags: CcFlags::START, ..cc };
    let begun = all.rate_bps(0);
    (0..1_000).for_each(|_| all.deliver(0, forged(&all, huge)));
    assert!(all.rate_bps(0) <= 2 * begun, "{} after {begun}: twice in a round trip", all.rate_bps(0));
    all.run(SECOND * 10);
    let steady = all.rate_bps(0);
    (0..1_000).for_each(|_| all.deliver(0, forged(&all, huge)));
    // A segment per round trip more, of 40 ms at least.
    let step = 1_440 * 8 * 1_000 / 40;
    assert!(all.rate_bps(0) <= steady + step, "{} after {steady}", all.rate_bps(0));
    // Answers to probes that were never sent, and the least rate.
    let lost = |cc| CcFeedback { loss: u16::MAX, reserved: u16::MAX, flags: CcFlags::RTT, ..cc };
    let before = all.rate_bps(0);
    all.deliver(
        0,
        forged(&all, |cc| CcFeedback { cc_sequence: cc.cc_sequence.wrapping_add(100), ..lost(cc) }),
    );
    assert_eq!(all.rate_bps(0), before);
    all.deliver(0, forged(&all, lost));
    assert!(all.rate_bps(0) >= 50_000 && all.rate_bps(0) < before);
    for _ in 0..50 {
        all.deliver(0, forged(&all, huge));
        all.run(40 * MILLIS);
        assert!((50_000..=20_000_000).contains(&all.rate_bps(0)));
    }
}

/// Of a group, the receiver with the greatest loss limits the rate. Others answer seldom.
#[test]
fn the_receiver_with_the_lowest_rate_is_followed() {
    let settings =
        |acknowledging| Config { group_size: Some(10), acknowledging, rate_bps: 5_000_000, ..tfmcc() };
    let mut configs = vec![settings((2..8).collect())];
    configs.extend((0..6).map(|_| settings(Vec::new())));
    let mut scene = Scene::new(configs, true, 20 * MILLIS, 7).losing(0.005);
    scene.nodes[4].loss = 0.05;
    for object in 0..20 {
        scene.send_data(0, object, contents(500_000, object));
    }
    scene.run(SECOND * 20);
    let messages = || {
        let read = |(_, node, bytes): &(_, usize, Bytes)| {
            Some((*node, Message::decode(&mut bytes.clone()).ok()?.body))
        };
        scene.tape.iter().filter_map(read)
    };
    let probes: Vec<NodeId> = messages()
        .filter_map(|(_, body)| match body {
            Body::Command(command) => match command.command {
                Command::Cc { nodes, .. } => {
                    nodes.iter().find(|node| node.flags & CcFlags::CLR != 0).map(|node| node.node)
                }
                _ => None,
            },
            _ => None,
        })
        .collect();
    let late = &probes[probes.len() / 2..];
    let followed = late.iter().filter(|node| **node == NodeId(5)).count();
    assert!(followed * 10 > late.len() * 9, "{followed} of {}", late.len());
    let answers = |of: usize| {
        let is_answer = |body: &Body| matches!(body, Body::Ack(Ack { contents: AckContents::Cc, .. }));
        messages().filter(|(node, body)| *node == of && is_answer(body)).count()
    };
    let (limiting, other) = (answers(4), answers(1));
    println!("{} probes, {limiting} answers of the limiting receiver, {other} of another one", probes.len());
    assert!(limiting * 2 > probes.len() && other * 5 < probes.len() && other > 0);
    assert!(scene.counters(0).cc_feedback_received > 0);
}
