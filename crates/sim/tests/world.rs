//! Outages and crashes, and nodes with their disks and clocks in one.

mod common;
use common::*;
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::{Beside, PassThrough};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Frames, FramesRequest, InterfaceId, Many, Port, RecordId, Shares, Storage, StorageIndication,
    StorageRequest,
};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::*;
use std::sync::{Arc, Mutex};

#[test]
fn an_outage_and_a_crash_lose_a_frame_each() {
    let (mut world, a, b, channel) = pair(1, ChannelConfig::default());
    let faults = [
        InjectedFault::Cut(channel),
        InjectedFault::Heal(channel),
        InjectedFault::Crash(b),
        InjectedFault::Restart(b),
    ];
    world.request(a, frame(100));
    for (number, fault) in (1..).zip(faults) {
        world.run_until(Instant::from_secs(number));
        world.apply(fault);
        world.request(a, frame(100));
    }
    world.run_until(Instant::from_secs(9));
    let told = said(&world.take_indications(), b);
    assert_eq!(told.iter().filter(|said| matches!(said.1, Hear::Frame(..))).count(), 3);
    let counters = world.counters(channel, Direction::Forward);
    assert_eq!((counters.outage, counters.unheard), (1, 1));
}

fn append(length: usize) -> Ask {
    Ask::Storage(StorageRequest::Append { record: RecordId(1), data: vec![1; length].into(), urgent: false })
}

#[test]
fn a_crash_keeps_what_was_synced() {
    let disk = DiskConfig { sync_latency: Duration::from_millis(10), ..DiskConfig::default() };
    let mut lengths = Vec::new();
    for seed in 0..40 {
        let (mut world, a, ..) = pair_on(seed, ChannelConfig::default(), disk.clone());
        world.request(a, append(1000));
        world.run_until(Instant::from_millis(20));
        world.request(a, append(500));
        world.run_until(Instant::from_millis(25));
        world.crash(a);
        let stored = Hear::Storage(StorageIndication::Stored { record: RecordId(1), up_to: 1000 });
        assert_eq!(said(&world.take_indications(), a)[1..], [(0.01, stored)]);
        world.restart(a);
        world.request(a, Ask::Storage(StorageRequest::List));
        let records = world.records(a);
        let listed = Hear::Storage(StorageIndication::Listed { records: records.clone() });
        assert!(said(&world.take_indications(), a).iter().any(|said| said.1 == listed));
        lengths.push(records[0].1);
    }
    assert!(lengths.iter().all(|length| (1000..=1500).contains(length)));
    assert!(lengths.contains(&1000) && lengths.contains(&1500) && lengths.iter().any(|l| l % 500 != 0));
}

#[test]
fn a_factory_hears_which_boot_it_is() {
    let boots = Arc::new(Mutex::new(Vec::new()));
    let sink = boots.clone();
    let mut world: Simulation<Talk> = Simulation::new(7);
    let make = move |mut boot: Boot| {
        let drawn = boot.rng.next_u64();
        sink.lock().expect("one thread").push((boot.name.clone(), boot.boot, boot.now, boot.dtn_ms, drawn));
        station(&boot.name, &[])
    };
    let clock = ClockConfig { offset_ms: 250, ..ClockConfig::default() };
    let node = world.add_node_with("moon", DiskConfig::default(), clock, make);
    world.fault_at(Instant::from_secs(1), InjectedFault::Crash(node));
    world.fault_at(Instant::from_secs(2), InjectedFault::Clock(node, ClockConfig::none()));
    world.fault_at(Instant::from_secs(3), InjectedFault::Restart(node));
    world.fault_at(Instant::from_secs(4), InjectedFault::Restart(node));
    assert_eq!(world.dtn_ms(node), Some(EPOCH_DTN_MS + 250));
    world.run_until(Instant::from_secs(5));
    let boots = boots.lock().expect("one thread");
    let told: Vec<_> = boots.iter().map(|boot| (boot.1, boot.2, boot.3)).collect();
    assert_eq!(told, [(0, Instant::ZERO, Some(EPOCH_DTN_MS + 250)), (1, Instant::from_secs(3), None)]);
    assert_ne!(boots[0].4, boots[1].4, "every boot has its own randomness");
    let expected = Rng::new(7).fork("boot 0 of moon").next_u64();
    assert_eq!(boots[0].4, expected, "and it depends on the seed and the name");
}

#[test]
fn one_more_node_moves_nobody_elses_noise() {
    let run = |bystander: bool| {
        let mut world: Simulation<Talk> = Simulation::new(3);
        let add = |world: &mut Simulation<Talk>, name: &str| {
            world.add_node(name, |boot| station(&boot.name, &[0, 1]))
        };
        let noisy = LineConfig { errors: Errors::Ber(1e-4), ..LineConfig::default() };
        let config = ChannelConfig::symmetric(noisy);
        let extra = bystander.then(|| add(&mut world, "extra"));
        let (a, b) = (add(&mut world, "a"), add(&mut world, "b"));
        if let Some(extra) = extra {
            world.add_channel((extra, InterfaceId(0)), (a, InterfaceId(1)), config.clone());
            world.request(extra, frame(1500));
        }
        world.add_channel((a, InterfaceId(0)), (b, InterfaceId(0)), config);
        for _ in 0..50 {
            world.request(a, frame(1000));
        }
        world.run_until(Instant::from_secs(10));
        let told = said(&world.take_indications(), b);
        told.into_iter().filter(|said| matches!(said.1, Hear::Frame(..))).collect::<Vec<_>>()
    };
    let (without, with) = (run(false), run(true));
    assert_eq!(without.len(), 50);
    assert!(without.iter().any(|said| said.1 != Hear::Frame(0, vec![0x5a; 1000].into())), "there is noise");
    assert!(without == with, "a bystander, with a channel that was there first, changes nothing");
}

#[test]
fn an_interface_may_be_joined_before_it_has_a_channel() {
    let mut world: Simulation<Talk> = Simulation::new(3);
    let [a, b] = ["a", "b"].map(|name| world.add_node(name, |boot| station(&boot.name, &[0])));
    world.request(a, frame(125));
    world.run_until(Instant::from_secs(1));
    let at = InterfaceId(0);
    world.add_channel((a, at), (b, at), ChannelConfig::default());
    world.run_until(Instant::from_secs(2));
    let told = said(&world.take_indications(), b);
    let carrier = |at, carrier| (at, Hear::Carrier(0, carrier));
    let arrived = (1.001, Hear::Frame(0, vec![0x5a; 125].into()));
    assert_eq!(told, [carrier(0.0, false), carrier(1.0, true), arrived]);
}

#[test]
fn the_status_says_what_is_pending() {
    let config = LineConfig { rate_bps: 8000, queue_bytes: 9000, ..LineConfig::default() };
    let (mut world, a, b, _) = pair(1, ChannelConfig::symmetric(config));
    for _ in 0..3 {
        world.request(a, frame(1000));
    }
    world.request(b, Ask::Alarm(Instant::from_secs(77)));
    world.crash(a);
    let status = world.status();
    for part in
        ["node 0 a: down", "node 1 b: wakes at 77.000000 s", "line a/0 -> b/0: there (not joined), sending"]
    {
        assert!(status.contains(part), "{part:?} is not in\n{status}");
    }
}

/// Engine that always requests a wake-up now.
struct Restless;

impl Engine for Restless {
    type Above = Talk;
    type Below = NodeBelow;

    fn handle_request(&mut self, _: Instant, _: Ask) {}
    fn handle_indication(&mut self, _: Instant, _: Indication<NodeBelow>) {}
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_indication(&mut self, _now: Instant) -> Option<Hear> {
        None
    }
    fn poll_request(&mut self, _: Instant) -> Option<Request<NodeBelow>> {
        None
    }
    fn poll_timeout(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }
}

#[test]
#[should_panic(expected = "time stands still")]
fn a_node_that_runs_in_a_circle_is_found_out() {
    let mut world: Simulation<Talk> = Simulation::new(3);
    world.add_node("restless", |_| Box::new(Restless));
    world.run_until(Instant::from_secs(1));
}

#[test]
#[should_panic(expected = "without room")]
fn a_frame_without_room_is_the_senders_mistake() {
    let mut world: Simulation<NodeBelow> = Simulation::new(3);
    let [a, b] = ["a", "b"].map(|name| {
        world.add_node(name, |_| {
            let interfaces = PassThrough::<Many<InterfaceId, Frames>>::new();
            Box::new(Beside { first: PassThrough::<Storage>::new(), second: interfaces })
        })
    });
    let at = InterfaceId(0);
    world.add_channel((a, at), (b, at), ChannelConfig::default());
    world.request(a, Port::Second((at, FramesRequest::Join)));
    for _ in 0..2 {
        let (bytes, shares) = (vec![0; 10].into(), Shares::default());
        let frame = FramesRequest::Frame { bytes, token: None, last: true, shares };
        world.request(a, Port::Second((at, frame)));
    }
}
