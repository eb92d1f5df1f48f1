//! A bundle to five stations at once over UI frames, by the convergence layer for groups and by NORM, compared with five bundles to one
//! station each.

use crate::ax25::{believed, call};
use crate::bundles::*;
use crate::nodes::*;
use longwire_proto::ax25::{self, LinkConfig, PeerStation, Station};
use longwire_proto::joint::{Fan, OnSecond, Origin, Stack};
use longwire_proto::norm;
use longwire_proto::rng::Rng;
use longwire_proto::service::{Datagrams, LinkId, Many};
use longwire_proto::setting::Settings as _;
use longwire_proto::time::Duration;
use longwire_proto::uicl::{self, Group};
use longwire_proto::wrap::Checked;
use longwire_sim::*;

const GROUP: LinkId = LinkId(0);
const RECEIVERS: usize = 5;
/// Bits of a full frame: 256 bytes, address, control, protocol and check sequence, with one stuffed bit per 62.
const FRAME_BITS: f64 = 8.0 * 274.0 * 63.0 / 62.0;

fn name(at: usize) -> String {
    format!("ipn:{at}.0")
}

fn group(at: usize, rate_bps: u64, needed: Option<u32>, rng: Rng) -> Courier<Many<LinkId, Datagrams>> {
    let members = if at == 0 { (1..=RECEIVERS).map(name).collect() } else { Vec::new() };
    let config = uicl::Config {
        node_id: name(at),
        members,
        needed: needed.filter(|_| at == 0),
        rate_bps,
        access: Duration::from_secs(1),
        answer_slot: Duration::from_millis(400 + 1_200_000 / rate_bps),
        ..uicl::Config::default()
    };
    config.check().expect("sensible numbers");
    let make = move |link, origin| {
        (origin == Origin::Above).then(|| Group::new(config.clone(), rng.fork(&format!("{link:?}"))))
    };
    Courier::new(Box::new(Checked::new("group", Fan::new(make))))
}

/// The same over NORM, whose requests all stations hear.
fn norm_group(at: usize, rate_bps: u64, rng: Rng) -> Courier<Many<LinkId, Datagrams>> {
    let seconds = Duration::from_secs_f64;
    let grtt = seconds(1.0 + 8.0 * FRAME_BITS / rate_bps as f64);
    let config = norm::Config {
        norm_node_id: Some(at as u32 + 1),
        acknowledging: if at == 0 { (1..=RECEIVERS).map(|at| at as u32 + 1).collect() } else { Vec::new() },
        group: Some(true),
        rate_bps: 0,
        segment_bytes: 224,
        backoff_factor: Some(1),
        group_size: Some(10),
        grtt,
        grtt_max: seconds(900.0),
        probe_min: grtt * 8,
        probe_max: grtt * 32,
        watermark_interval: grtt * 8,
        silence_limit: seconds(3600.0),
        inactivity_limit: seconds(3600.0),
        ..norm::Config::default()
    };
    config.check().expect("sensible numbers");
    let make = move |link, origin| {
        (origin == Origin::Above).then(|| norm::Link::new(config.clone(), rng.fork(&format!("{link:?}"))))
    };
    Courier::new(Box::new(Checked::new("group", Fan::new(make))))
}

/// Returns the time until the sender knew that all members, or as many as needed, have the bundle, and the time in
/// which any transmitter was keyed, seconds.
fn told(seed: u64, radio: &RadioConfig, needed: Option<u32>) -> (f64, f64) {
    told_by(seed, radio, needed, move |at, rate_bps, rng| group(at, rate_bps, needed, rng))
}

fn told_by(
    seed: u64,
    radio: &RadioConfig,
    needed: Option<u32>,
    courier: impl Fn(usize, u64, Rng) -> Courier<Many<LinkId, Datagrams>> + Copy + Send + 'static,
) -> (f64, f64) {
    let mut world: Simulation<Errands> = Simulation::new(seed);
    let nodes: Vec<NodeId> = (0..=RECEIVERS)
        .map(|at| {
            let mut config = ax25::Config::new(call(&format!("N{at}")));
            config.radio = believed(radio, at);
            let all = PeerStation { station: call("ALL"), path: Vec::new(), link: LinkConfig::default() };
            config.unconnected.insert(GROUP, all);
            let rate_bps = radio.rate_bps;
            world.add_node(&format!("N{at}"), move |boot| {
                let station = Checked::new(&boot.name, Station::new(config.clone()));
                let courier = courier(at, rate_bps, Rng::new(seed).fork(&boot.name));
                Box::new(OnRadio(Stack::new(courier, OnSecond(station))))
            })
        })
        .collect();
    let ends: Vec<_> = nodes.iter().map(|node| (*node, AT)).collect();
    let channel = world.add_radio(radio.clone(), &ends);
    let bundle = bundle();
    for node in &nodes[1..] {
        world.request(*node, None);
    }
    world.request(nodes[0], Some(bundle.clone()));
    let (mut received, wanted) = (0, needed.map_or(RECEIVERS, |needed| needed as usize));
    let took_s = run(&mut world, |node, done| match done {
        Done::Received(bytes) => {
            assert_eq!(bytes, bundle, "{node:?}, seed {seed}");
            received += 1;
            false
        }
        Done::Sent => {
            assert_eq!((received, node), (wanted, nodes[0]), "seed {seed}");
            true
        }
    });
    (took_s, keyed_s(&world, channel))
}

/// Channel that loses this share of full frames on every path; the first two receivers of the group are out of range of
/// each other.
fn losing(rate_bps: u64, share: f64, stations: usize) -> RadioConfig {
    let hidden = [PathConfig::deaf(1, 2), PathConfig::deaf(2, 1)];
    let paths = hidden.into_iter().filter(|_| stations > 2).collect();
    let errors = Errors::Ber(-libm::log1p(-share) / FRAME_BITS);
    RadioConfig { errors, paths, ..radio(rate_bps) }
}

#[test]
fn five_stations_have_every_byte_in_a_fraction_of_the_time_of_five_transfers() {
    const RUNS: u64 = 10;
    for rate_bps in [1200, 9600] {
        for share in [0.0, 0.10, 0.25] {
            let (mut together, mut apart, mut over_norm) = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0));
            for seed in 0..RUNS {
                let (took_s, keyed_s) = told(seed, &losing(rate_bps, share, 1 + RECEIVERS), None);
                together = (together.0 + took_s / RUNS as f64, together.1 + keyed_s / RUNS as f64);
                let (took_s, keyed_s) =
                    told_by(seed, &losing(rate_bps, share, 1 + RECEIVERS), None, norm_group);
                over_norm = (over_norm.0 + took_s / RUNS as f64, over_norm.1 + keyed_s / RUNS as f64);
                for receiver in 0..RECEIVERS as u64 {
                    let radio = losing(rate_bps, share, 2);
                    let one = carried_over(1000 * receiver + seed, radio, &LinkConfig::default(), ours);
                    apart = (apart.0 + one.took_s / RUNS as f64, apart.1 + one.keyed_s / RUNS as f64);
                }
            }
            println!(
                "{rate_bps} bit/s, {:.0} % lost: together {:.1} s, keyed {:.1} s; over NORM {:.1} s, keyed {:.1} s; apart {:.1} s, keyed {:.1} s",
                100.0 * share,
                together.0,
                together.1,
                over_norm.0,
                over_norm.1,
                apart.0,
                apart.1
            );
            assert!(together.0 < 0.5 * apart.0 && together.1 < 0.5 * apart.1, "{rate_bps} bit/s, {share}");
            // Parity symbols serve all receivers at once, but NORM waits for round trips that are long on such a channel.
            assert!(over_norm.1 < 0.5 * apart.1 && over_norm.0 > together.0, "{rate_bps} bit/s, {share}");
        }
    }
}

/// One of the five is out of range in both directions: the other four receive everything, and the sender polls it eight
/// more times.
#[test]
fn a_station_that_is_not_there_does_not_stop_the_others() {
    let there = |at: &u16| *at != 3;
    let deaf = |at| [PathConfig::deaf(at, 3), PathConfig::deaf(3, at)];
    let paths = (0..=RECEIVERS as u16).filter(there).flat_map(deaf).collect();
    let alone = RadioConfig { paths, ..radio(9600) };
    let (all_s, without_s) = (told(1, &radio(9600), None).0, told(1, &alone, Some(4)).0);
    assert!(without_s > all_s && without_s < all_s + 60.0, "{without_s} s, with all {all_s} s");
}
