//! Worlds and faults drawn from a seed.
//!
//! A test suite with one world and many faults finds only the failures of that world. Here the seed determines the
//! world as well: rates from a kilobit to ten megabits per second, delays from zero to ten seconds, queues, check
//! sequences, noise, disks, clocks. All values stay within the range that a robust protocol survives: every line
//! carries most of its shorter frames, every fault ends, no disk is too small.

use longwire_proto::rng::Rng;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::*;
use std::collections::BTreeSet;

/// Returns a number between `low` and `high`, uniform over orders of magnitude.
fn spread(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * libm::exp(rng.unit() * libm::log(high / low))
}

fn duration(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9) as u64)
}

/// Draws a channel, whose two directions may have the same rate and delay.
pub(crate) fn channel(rng: &mut Rng) -> ChannelConfig {
    let forward = line(rng);
    let backward = if rng.chance(0.5) { forward.clone() } else { line(rng) };
    ChannelConfig { forward, backward }
}

/// Draws one direction of a channel, without scheduled outages, which [`faults`] draws.
pub(crate) fn line(rng: &mut Rng) -> LineConfig {
    let backpressure = rng.chance(0.7);
    // A router without any queue would drop most of every burst.
    let queue_bytes_min = if backpressure { 0 } else { 8_000 };
    LineConfig {
        rate_bps: spread(rng, 1e3, 1e7) as u64,
        delay: delay(rng),
        queue_bytes: queue_bytes_min + rng.below(4) * rng.below(20_000),
        backpressure,
        mtu_bytes: 576 + rng.below(925) as u32,
        errors: errors(rng),
        fcs: [Fcs::None, Fcs::Crc16, Fcs::Crc32][rng.below(3) as usize],
        framing_bytes: rng.below(3) as u32 * rng.below(10) as u32,
        announced: rng.chance(0.3),
        ..LineConfig::default()
    }
}

fn delay(rng: &mut Rng) -> Delay {
    let once = |rng: &mut Rng| duration(if rng.chance(0.2) { 0.0 } else { spread(rng, 1e-4, 10.0) });
    if rng.chance(0.8) {
        return Delay::Constant(once(rng));
    }
    let mut at = Instant::ZERO;
    let mut points = Vec::new();
    for _ in 0..2 + rng.below(4) {
        points.push(DelayPoint { at, delay: once(rng) });
        // The distance to the next point exceeds any delay, so that no frame overtakes another.
        at += Duration::from_secs(11 + rng.below(600));
    }
    Delay::Schedule(points)
}

fn errors(rng: &mut Rng) -> Errors {
    match rng.below(3) {
        0 => Errors::None,
        1 => Errors::Ber(spread(rng, 1e-8, 3e-5)),
        _ => Errors::GilbertElliott(GilbertElliott {
            good_bits_mean: spread(rng, 1e5, 1e7),
            bad_bits_mean: spread(rng, 1e1, 1e4),
            good_ber: 0.0,
            bad_ber: spread(rng, 1e-3, 0.5),
        }),
    }
}

/// Draws a disk of sufficient size.
pub(crate) fn disk(rng: &mut Rng) -> DiskConfig {
    if rng.chance(0.3) {
        return DiskConfig::default();
    }
    DiskConfig {
        write_latency: duration(spread(rng, 1e-6, 1e-2)),
        sync_latency: duration(spread(rng, 1e-5, 0.2)),
        read_latency: duration(spread(rng, 1e-6, 2e-2)),
        throughput_bytes_per_s: spread(rng, 1e5, 1e9) as u64,
        group_commit: rng.chance(0.8),
        ..DiskConfig::default()
    }
}

/// Draws a clock: right, somewhat wrong, or absent.
pub(crate) fn clock(rng: &mut Rng) -> ClockConfig {
    match rng.below(4) {
        0 | 1 => ClockConfig::default(),
        2 => ClockConfig {
            offset_ms: rng.below(20_000) as i64 - 10_000,
            drift_ppb: rng.below(200_000) as i64 - 100_000,
            ..ClockConfig::default()
        },
        _ => ClockConfig::none(),
    }
}

/// Kinds and numbers of faults of a world.
#[derive(Clone, Debug)]
pub(crate) struct FaultLimits {
    /// Channels that may be cut.
    pub(crate) channels: Vec<ChannelId>,
    /// Nodes that may crash.
    pub(crate) nodes: Vec<NodeId>,
    /// Earliest time of a fault.
    pub(crate) from: Instant,
    /// Latest end of a fault: from then on every channel, node and disk works.
    pub(crate) until: Instant,
    /// Maximum number of cuts over all channels.
    pub(crate) cuts_max: u32,
    /// Maximum number of crashes over all nodes.
    pub(crate) crashes_max: u32,
    /// Maximum number of disk failures over all nodes.
    pub(crate) disk_failures_max: u32,
    /// Maximum number of damaged records over all nodes. Damage is permanent.
    pub(crate) damages_max: u32,
}

/// Draws faults, in order of time. Faults of one kind may overlap at the same channel or node: a channel is up again
/// when the last cut has ended, while the first end of a crash or failure ends all of them.
pub(crate) fn faults(rng: &mut Rng, limits: &FaultLimits) -> Vec<(Instant, InjectedFault)> {
    let mut plan = Vec::new();
    let mut intervals =
        |rng: &mut Rng, count_max: u32, victims: usize, make: &dyn Fn(usize, bool) -> InjectedFault| {
            let count = if victims == 0 { 0 } else { rng.below(u64::from(count_max) + 1) };
            for _ in 0..count {
                let victim = rng.below(victims as u64) as usize;
                let (begin, end) = interval(rng, limits.from, limits.until);
                plan.push((begin, make(victim, true)));
                plan.push((end, make(victim, false)));
            }
        };
    let (channels, nodes) = (&limits.channels, &limits.nodes);
    intervals(rng, limits.cuts_max, channels.len(), &|victim, begins| match begins {
        true => InjectedFault::Cut(channels[victim]),
        false => InjectedFault::Heal(channels[victim]),
    });
    intervals(rng, limits.crashes_max, nodes.len(), &|victim, begins| match begins {
        true => InjectedFault::Crash(nodes[victim]),
        false => InjectedFault::Restart(nodes[victim]),
    });
    intervals(rng, limits.disk_failures_max, nodes.len(), &|victim, begins| {
        InjectedFault::DiskFails(nodes[victim], begins)
    });
    for _ in 0..if nodes.is_empty() { 0 } else { rng.below(u64::from(limits.damages_max) + 1) } {
        let victim = nodes[rng.below(nodes.len() as u64) as usize];
        plan.push((interval(rng, limits.from, limits.until).0, InjectedFault::DamageAnyRecord(victim)));
    }
    plan.sort_by_key(|planned| planned.0);
    plan
}

/// Draws an interval within the given one, short more often than long.
fn interval(rng: &mut Rng, from: Instant, until: Instant) -> (Instant, Instant) {
    let span = until.saturating_since(from).as_nanos() as u64;
    let begin = rng.below(span.max(1));
    let length = ((span - begin) as f64 * spread(rng, 1e-4, 1.0)) as u64;
    let at = |nanos| from + Duration::from_nanos(nanos);
    (at(begin), at((begin + length).min(span)))
}

#[test]
fn every_fault_is_mended_in_time() {
    let limits = FaultLimits {
        channels: vec![ChannelId(0), ChannelId(1)],
        nodes: vec![NodeId(0), NodeId(1), NodeId(2)],
        from: Instant::from_secs(10),
        until: Instant::from_secs(100),
        cuts_max: 8,
        crashes_max: 8,
        disk_failures_max: 4,
        damages_max: 2,
    };
    let mut kinds = [0; 4];
    for seed in 0..500 {
        let (mut cut, mut down, mut failing) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (at, fault) in faults(&mut Rng::new(seed), &limits) {
            assert!(at >= limits.from && at <= limits.until);
            match fault {
                InjectedFault::Cut(channel) => kinds[0] += u32::from(cut.insert(channel)),
                InjectedFault::Heal(channel) => drop(cut.remove(&channel)),
                InjectedFault::Crash(node) => kinds[1] += u32::from(down.insert(node)),
                InjectedFault::Restart(node) => drop(down.remove(&node)),
                InjectedFault::DiskFails(node, true) => kinds[2] += u32::from(failing.insert(node)),
                InjectedFault::DiskFails(node, false) => drop(failing.remove(&node)),
                InjectedFault::DamageAnyRecord(_) => kinds[3] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(cut.is_empty() && down.is_empty() && failing.is_empty(), "seed {seed}");
    }
    assert!(kinds.iter().all(|count| *count > 100), "every kind of fault is drawn: {kinds:?}");
}

#[test]
fn worlds_that_are_drawn_make_sense() {
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let config = channel(&mut rng);
        assert_eq!(config.forward.validate().and(config.backward.validate()), Ok(()));
        match config.forward.errors {
            Errors::GilbertElliott(model) => {
                assert!(model.bad_bits_mean * 9.0 < model.good_bits_mean, "good most of the time: {model:?}");
            }
            even => assert!(even.mean_ber() < 1e-4, "{even:?}"),
        }
        assert!(disk(&mut rng).sync_latency < Duration::from_secs(1));
    }
}
