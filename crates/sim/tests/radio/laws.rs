//! Properties of every radio channel: channels, traffic and faults are drawn from seeds.

use crate::nodes::*;
use longwire_proto::rng::Rng;
use longwire_proto::service::{FramesIndication, Shares};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Complete observable result of a run.
struct Run {
    told: Vec<NodeIndication<Talk>>,
    frames: Vec<FrameRecord>,
    world: Simulation<Talk>,
    nodes: Vec<NodeId>,
    channel: ChannelId,
    config: RadioConfig,
}

fn draw_config(rng: &mut Rng, stations: usize) -> RadioConfig {
    let millis = |rng: &mut Rng, below| Duration::from_millis(rng.below(below));
    let access = [Access::DrawThenWait, Access::WaitThenDraw, Access::Uniform];
    let station = |rng: &mut Rng| StationConfig {
        tx_delay: millis(rng, 400),
        tx_tail: millis(rng, 50),
        slot_time: Duration::from_millis(1 + rng.below(150)),
        persistence: rng.below(256) as u8,
        access: access[rng.below(3) as usize],
        carrier_on: millis(rng, 60),
        carrier_off: millis(rng, 60),
        key_up_frames: 1 + rng.below(8) as u32,
    };
    let count = [0, 1, stations][rng.below(3) as usize];
    let path = |rng: &mut Rng| {
        let from = rng.below(stations as u64) as u16;
        let to = (from + 1 + rng.below(stations as u64 - 1) as u16) % stations as u16;
        let errors = rng.chance(0.5).then_some(Errors::Ber(1e-3));
        PathConfig {
            heard: rng.chance(0.5),
            level_db: 20.0 * rng.unit(),
            errors,
            ..PathConfig::clear(from, to)
        }
    };
    RadioConfig {
        rate_bps: [1200, 9600][rng.below(2) as usize],
        full_duplex: rng.chance(0.25),
        mtu_bytes: 300,
        paths: (0..rng.below(5)).map(|_| path(rng)).collect(),
        stations: (0..count).map(|_| station(rng)).collect(),
        errors: if rng.chance(0.5) { Errors::Ber(2e-4) } else { Errors::None },
        capture_db: rng.chance(0.5).then_some(6.0),
        ..RadioConfig::default()
    }
}

/// Changes some of the channels to Ethernet frames, one per transmission, with partial hearing.
fn draw_ethernet(rng: &mut Rng, config: &mut RadioConfig) {
    config.framing = if rng.chance(0.5) { Framing::Ethernet } else { Framing::Hdlc };
    config.follows_first = rng.chance(0.5);
    for station in &mut config.stations {
        station.access = if rng.chance(0.5) { Access::Backoff } else { station.access };
    }
    for path in &mut config.paths {
        path.heard_share = rng.chance(0.5).then(|| rng.unit());
        path.frame_bytes_max = rng.chance(0.5).then(|| rng.below(300) as u32);
    }
}

fn run(seed: u64, mut probe: impl FnMut(&Simulation<Talk>, &[NodeId], ChannelId)) -> Run {
    let mut rng = Rng::new(seed).fork("scenario");
    let count = 2 + rng.below(5) as usize;
    let mut config = draw_config(&mut rng, count);
    draw_ethernet(&mut Rng::new(seed).fork("ethernet"), &mut config);
    let (mut world, nodes, channel) = talkers(seed, count, config.clone());
    let frames = Arc::new(Mutex::new(Vec::new()));
    let sink = frames.clone();
    world.set_trace(Box::new(move |record| sink.lock().expect("one thread").push(record)));
    for number in 0..40 + rng.below(100) {
        // Traffic comes in bursts.
        let at = Instant::from_millis(rng.below(6) * 60_000 + rng.below(3000));
        let length = if rng.chance(0.05) { 301 } else { 16 + rng.below(285) as usize };
        let node = nodes[rng.below(count as u64) as usize];
        world.request_at(at, node, say(number, length));
    }
    for _ in 0..rng.below(4) {
        let from = Instant::from_millis(rng.below(300_000));
        world.fault_at(from, InjectedFault::Cut(channel));
        world.fault_at(from + Duration::from_millis(rng.below(20_000)), InjectedFault::Heal(channel));
    }
    for _ in 0..rng.below(4) {
        let (node, at) = (nodes[rng.below(count as u64) as usize], rng.below(6) * 60_000 + rng.below(6000));
        world.fault_at(Instant::from_millis(at), InjectedFault::Crash(node));
        world.fault_at(Instant::from_millis(at + rng.below(9000)), InjectedFault::Restart(node));
    }
    while let Some(at) = world.next_event_at() {
        probe(&world, &nodes, channel);
        world.run_until(at + Duration::from_secs(3));
    }
    let (told, frames) =
        (world.take_indications(), core::mem::take(&mut *frames.lock().expect("one thread")));
    Run { told, frames, world, nodes, channel, config }
}

const SEEDS: core::ops::Range<u64> = 0..80;

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in SEEDS {
        let [first, second] = [(); 2].map(|()| run(seed, |_, _, _| {}));
        assert_eq!(format!("{:?}", first.told), format!("{:?}", second.told), "seed {seed}");
        assert_eq!(format!("{:?}", first.frames), format!("{:?}", second.frames), "seed {seed}");
    }
}

fn accounted(counters: &Counters) -> u64 {
    let Counters {
        delivered,
        check_failed,
        outage,
        queue_full,
        too_long,
        sender_crashed,
        unheard,
        collided,
        deaf,
        in_flight,
        ..
    } = counters;
    delivered
        + check_failed
        + outage
        + queue_full
        + too_long
        + sender_crashed
        + unheard
        + collided
        + deaf
        + in_flight
}

#[test]
fn frames_are_conserved_and_the_ledger_closes_at_every_moment() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for seed in SEEDS {
        let end = run(seed, |world, nodes, channel| {
            let together = world.radio_channel_airtime(channel);
            assert_eq!(together.total(), world.now().as_nanos(), "seed {seed}");
            for from in nodes {
                let airtime = world.radio_airtime(channel, (*from, AT));
                assert_eq!(airtime.total(), world.now().as_nanos(), "seed {seed}");
                for to in nodes.iter().filter(|to| *to != from) {
                    let counters = world.radio_counters(channel, (*from, AT), (*to, AT));
                    assert_eq!(counters.handed, accounted(&counters), "seed {seed}");
                }
            }
        });
        let mut handed = 0;
        for from in &end.nodes {
            for to in end.nodes.iter().filter(|to| *to != from) {
                let counters = end.world.radio_counters(end.channel, (*from, AT), (*to, AT));
                assert_eq!(counters.in_flight, 0, "seed {seed}: a quiet world has nothing on its way");
                handed += counters.handed;
            }
        }
        assert_eq!(
            end.frames.len() as u64,
            handed,
            "seed {seed}: the trace has every frame at every station"
        );
        assert!(handed > 20, "seed {seed} does something");
        for frame in &end.frames {
            *seen.entry(format!("{:?}", frame.fate)).or_default() += 1;
        }
    }
    let met: Vec<&str> = seen.keys().map(String::as_str).collect();
    let all =
        ["CheckFailed", "Collided", "Deaf", "Delivered", "Outage", "SenderCrashed", "TooLong", "Unheard"];
    assert_eq!(met, all, "every fate is met: {seen:?}");
}

#[test]
fn what_arrives_is_what_was_sent_and_the_trace_says_so() {
    for seed in SEEDS {
        let run = run(seed, |_, _, _| {});
        let mut heard: BTreeMap<(Instant, NodeId), Vec<bytes::Bytes>> = BTreeMap::new();
        for (at, node, said) in &run.told {
            if let FramesIndication::Frame(bytes) = said {
                heard.entry((*at, *node)).or_default().push(bytes.clone());
            }
        }
        for frame in run.frames.iter().filter(|frame| frame.fate == FrameFate::Delivered) {
            let found = heard.get_mut(&(frame.received.unwrap(), frame.to.node)).expect("it was heard");
            let place = found.iter().position(|bytes| *bytes == frame.bytes).expect("as it was sent");
            found.swap_remove(place);
        }
        assert!(heard.values().all(Vec::is_empty), "seed {seed}: nothing else was heard");
    }
}

#[test]
fn nobody_transmits_while_it_receives_in_half_duplex() {
    let mut looked = 0;
    for seed in SEEDS {
        let run = run(seed, |_, _, _| {});
        let intervals = |node: NodeId| {
            let of = run.frames.iter().filter(move |frame| frame.from.node == node);
            of.filter_map(|frame| Some((frame.started?, frame.left?)))
        };
        for node in &run.nodes {
            let sent: Vec<(Instant, Instant)> = intervals(*node).collect();
            let received = run
                .frames
                .iter()
                .filter(|frame| frame.to.node == *node && frame.fate == FrameFate::Delivered);
            for frame in received.filter(|_| !run.config.full_duplex) {
                let (started, left) = (frame.started.unwrap(), frame.left.unwrap());
                let both = sent.iter().find(|own| own.0 < left && started < own.1);
                assert_eq!(both, None, "seed {seed}: {node:?} heard {frame:?}");
                looked += 1;
            }
        }
    }
    assert!(looked > 1000, "only {looked} frames");
}

#[test]
fn one_more_talker_out_of_hearing_moves_nobody_elses_frames() {
    let run = |bystander: bool| {
        let deaf = |from, to| PathConfig::deaf(from, to);
        let paths = if bystander { vec![deaf(0, 2), deaf(2, 0), deaf(1, 2), deaf(2, 1)] } else { vec![] };
        let config = RadioConfig { errors: Errors::Ber(3e-4), paths, ..RadioConfig::default() };
        let (mut world, nodes, _) = talkers(9, 2 + usize::from(bystander), config);
        for number in 0..60 {
            world.request_at(
                Instant::from_secs(10 * (number / 4)),
                nodes[number as usize % 2],
                say(number, 200),
            );
            if bystander {
                world.request_at(Instant::from_secs(7 * (number / 4)), nodes[2], say(1000 + number, 100));
            }
        }
        world.run_until(Instant::from_secs(2000));
        let told = world.take_indications();
        told.into_iter()
            .filter(|told| told.1 != NodeId(2))
            .map(|told| format!("{told:?}"))
            .collect::<Vec<_>>()
    };
    let (without, with) = (run(false), run(true));
    assert!(without.iter().filter(|told| told.contains("Frame(")).count() > 20);
    assert_eq!(without, with);
}

#[test]
fn no_share_is_lost_in_the_ledger() {
    let config = RadioConfig { rate_bps: 9600, ..RadioConfig::default() };
    let (mut world, nodes, channel) = talkers(1, 2, config);
    let shares = Shares { payload: 100, repeated: 30, acknowledgement: 20, control: 10, repair: 5 };
    world.request(nodes[0], Say { shares, ..say(1, 200) });
    world.run_until(Instant::from_secs(20));
    let airtime = world.radio_airtime(channel, (nodes[0], AT));
    let StationConfig { tx_delay, tx_tail, .. } = StationConfig::default();
    assert_eq!(airtime.keying, (tx_delay + tx_tail).as_nanos() as u64);
    let unstuffed = airtime.sent() - airtime.stuffing;
    let part = |nanos: u64| (nanos as f64 / unstuffed as f64 * 203.0).round() as u32;
    let parts = [airtime.payload, airtime.repeated, airtime.acknowledgement, airtime.control, airtime.repair];
    assert_eq!(parts.map(part), [100, 30, 20, 10, 5]);
    assert_eq!(part(airtime.framing), 3);
    let other = world.radio_airtime(channel, (nodes[1], AT));
    assert_eq!(other.idle, 20_000_000_000);
    assert_eq!(world.radio_channel_airtime(channel), airtime, "nobody else said a word");
}
