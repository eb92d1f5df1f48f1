//! Runs: the four tools of the paper and what else its channel can carry, in every configuration.

use super::world::{Carried, Configuration, Load, MTU_BYTES, Setup, channel, tcp};
use crate::bench::{self, Bench, Case, Metric, Trial};
use crate::link::LinkProfile;
use crate::protocols;
use crate::record::Params;
use crate::toml_text;
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::time::Duration;
use longwire_sim::{PathConfig, RadioConfig};
use toml::{Table, Value};

/// Runs of each case.
pub(super) const RUNS: u32 = 25;
/// Runs of each case beyond the paper.
const RUNS_BEYOND: u32 = 5;
/// File of the paper: 49,152 units of 1,024 bits.
pub(super) const FILE_BYTES: u64 = 6 << 20;
const IPERF: Duration = Duration::from_secs(600);
/// Bytes of a datagram above UDP with a segment of 1,400 bytes and the header of NORM.
pub(super) const DATAGRAM_BYTES: usize = 1436;
const SEGMENT_BYTES: u64 = 1400;
/// Rates of datagrams and of NORM, kbit/s above UDP.
pub(super) const RATES_KBPS: [f64; 7] = [72.0, 78.0, 81.0, 84.0, 87.0, 90.0, 96.0];
/// Rate of NORM in the paper.
pub(super) const RATE_KBPS: f64 = 84.0;

pub(super) const IPERF_CASE: &str = "iperf";
pub(super) const WGET: &str = "wget";
pub(super) const TCPCL: &str = "tcpcl3/dtn2";
/// Case of the same with one session from source to destination.
pub(super) const TCPCL_THROUGH: &str = "tcpcl3/dtn2, one session from end to end";
pub(super) const NORM: &str = "norm/84k";
/// Rate above which NORM does not look for one, kbit/s: the nominal rate of the radios.
const CHANNEL_MAX_KBPS: f64 = 128.0;
/// NORM with congestion control.
const NORM_FOLLOWING: &str = "norm, tfmcc";
/// NORM at other rates.
pub(super) const NORM_RATES: &str = "norm";
pub(super) const DATAGRAMS: &str = "datagrams";
pub(super) const PING: &str = "ping";
pub(super) const REDIRECTED: &str = "iperf, with redirects";

/// Another assumption about the channel: name of its words, and the change.
type Variation = (&'static str, fn(&mut RadioConfig));
pub(super) const VARIATIONS: [Variation; 10] = [
    ("as-assumed", |_| ()),
    ("changes-to-louder", |channel| channel.follows_first = false),
    ("no-capture", |channel| channel.capture_db = None),
    ("1-and-3-always", |channel| share(channel, [(0, 2), (2, 0)], 1.0)),
    ("1-and-3-never", |channel| share(channel, [(0, 2), (2, 0)], 0.0)),
    ("4-hears-2-half", |channel| share(channel, [(1, 3); 2], 0.5)),
    ("4-hears-2-always", |channel| share(channel, [(1, 3); 2], 1.0)),
    ("4-hears-2-never", |channel| share(channel, [(1, 3); 2], 0.0)),
    ("slow-detection", |channel| channel.stations[0].carrier_on = channel.stations[0].slot_time.mul_f64(0.9)),
    ("fewer-slots", |channel| channel.stations[0].persistence = 31),
];

fn share(channel: &mut RadioConfig, pairs: [(u16, u16); 2], share: f64) {
    let is_one = |path: &&mut PathConfig| pairs.contains(&(path.from, path.to));
    channel.paths.iter_mut().filter(is_one).for_each(|path| path.heard_share = Some(share));
}

/// Convergence layers of the page with their protocols, and whether bundles are stored at each node; the first two are those of
/// the paper.
const CARRIERS: &[(&str, &str, bool)] = &[
    (TCPCL, TCPCL, true),
    (NORM, "norm/tuned", true),
    ("ltp/tuned", "ltp/tuned", true),
    ("saratoga/tuned", "saratoga/tuned", true),
];

/// Load in a configuration.
#[derive(Clone)]
pub(super) struct Transfer {
    pub(super) setup: Setup,
    /// Bits of a unit of the throughput: 1,000 for tools that count so, 1,024 for files of 6 MiB.
    pub(super) unit_bits: f64,
}

impl Trial for Transfer {
    type Outcome = (Carried, f64);

    const METRICS: &'static [Metric<(Carried, f64)>] = &[
        Metric::new("throughput_kbps", "kbit/s", |(carried, unit_bits)| {
            Some(carried.bytes as f64 * 8.0 / unit_bits / carried.seconds?)
        }),
        Metric::new("ping_ms", "ms", |(carried, _)| carried.ping_ms),
        Metric::new("overlapped_percent", "%", |(carried, _)| Some(100.0 * carried.overlapped)),
        Metric::new("interfering_transfers", "transfers", |(carried, _)| {
            (!carried.interfering_s.is_empty()).then_some(carried.interfering_s.len() as f64)
        }),
        Metric::new("interfering_s", "s", |(carried, _)| {
            let times = &carried.interfering_s;
            (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
        }),
    ];

    fn play(&self, run: bench::Run) -> (Carried, f64) {
        (self.setup.play(run.seed), self.unit_bits)
    }
}

pub(super) type Played = bench::Played<Transfer>;

pub(super) fn at(configuration: Configuration) -> Params {
    Params::new().with("configuration", configuration.name())
}

/// Settings of NORM at this rate, with the segments of DTN2.
fn at_rate(rate_kbps: f64) -> String {
    format!("rate-bps = {}\nsegment-bytes = {SEGMENT_BYTES}\n", (rate_kbps * 1e3) as u64)
}

impl Transfer {
    pub(super) fn new(configuration: Configuration, load: Load) -> Transfer {
        let unit_bits = match load {
            Load::Iperf(_) | Load::Datagrams(..) | Load::Ping(..) => 1000.0,
            Load::Wget(_) | Load::Bundles(..) => 1024.0,
        };
        Transfer { setup: Setup { configuration, load, channel: channel(), redirects: false }, unit_bits }
    }

    /// Stream of iperf.
    pub(super) fn iperf(configuration: Configuration) -> Transfer {
        Transfer::new(configuration, Load::Iperf(IPERF))
    }

    /// Pings with 56 bytes on one link, whose length does not matter.
    pub(super) fn ping() -> Transfer {
        Transfer::new(Configuration::PointToPoint, Load::Ping(Duration::from_secs(1), 56))
    }

    /// Datagrams at this rate, counted as the segments of 1,400 bytes in them.
    fn datagrams(configuration: Configuration, rate_kbps: f64) -> Transfer {
        let interval = Duration::from_secs_f64(DATAGRAM_BYTES as f64 * 8.0 / (rate_kbps * 1e3));
        let load = Load::Datagrams(interval, DATAGRAM_BYTES, IPERF);
        let unit_bits = 1024.0 * DATAGRAM_BYTES as f64 / SEGMENT_BYTES as f64;
        Transfer { unit_bits, ..Transfer::new(configuration, load) }
    }

    /// The file as a bundle; with NORM at the rate of the paper.
    fn bundles(configuration: Configuration, protocol: &str, file: &Bytes, stored: bool) -> Transfer {
        Transfer::bundles_with(configuration, protocol, file, stored, &at_rate(RATE_KBPS))
    }

    /// The file as a bundle over NORM, whose rate follows the channel.
    fn norm_that_follows(configuration: Configuration, file: &Bytes) -> Transfer {
        let norm = format!("{}congestion-control = 'tfmcc'\n", at_rate(CHANNEL_MAX_KBPS));
        Transfer::bundles_with(configuration, "norm/tuned", file, true, &norm)
    }

    /// The file as a bundle; with NORM with these settings.
    fn bundles_with(
        configuration: Configuration,
        protocol: &str,
        file: &Bytes,
        stored: bool,
        norm: &str,
    ) -> Transfer {
        let hops = if stored { configuration.links() } else { 1 };
        let link = LinkProfile {
            rate_bps: channel().rate_bps,
            mtu_bytes: MTU_BYTES.into(),
            queue_bytes: 1_000_000,
            ..LinkProfile::default()
        };
        let over_tcp = protocol.starts_with("tcpcl");
        let tcp = over_tcp.then(|| ("tcp".to_owned(), Value::Table(toml_text::to_table(&tcp()))));
        let norm = format!("[norm]\n{norm}");
        let norm = protocol.starts_with("norm").then(|| norm.parse().expect("a table"));
        let settings: Table = tcp.into_iter().chain(norm.into_iter().flat_map(|norm: Table| norm)).collect();
        let assembly = protocols::assemble(protocol, &vec![link; hops], &settings);
        let assembly = assembly.unwrap_or_else(|error| panic!("{error}"));
        Transfer::new(configuration, Load::Bundles(assembly, vec![file.clone()], stored))
    }
}

/// All runs.
pub(super) struct Results {
    pub(super) played: Vec<Played>,
    pub(super) runs: u32,
}

pub(super) fn play(bench: &Bench<'_>) -> Results {
    let mut file = vec![0; FILE_BYTES as usize];
    Rng::new(bench.seed).fork("file").fill(&mut file);
    let file = Bytes::from(file);
    let runs = bench.runs(RUNS);
    let case = |name: &str, transfer: Transfer, runs: u32| {
        let params = at(transfer.setup.configuration);
        Case::new(name, params, transfer, bench.seed, runs)
    };
    let mut cases = vec![case(PING, Transfer::ping(), 1)];
    for configuration in Configuration::ALL {
        let is_chain = configuration != Configuration::HiddenNode;
        if is_chain {
            cases.push(case(IPERF_CASE, Transfer::iperf(configuration), runs));
        }
        if configuration != Configuration::Control {
            let wget = Transfer::new(configuration, Load::Wget(FILE_BYTES));
            cases.push(case(WGET, wget, runs));
        }
        for (at, (name, protocol, stored)) in CARRIERS.iter().enumerate() {
            let runs = if at < 2 { runs } else { runs.min(RUNS_BEYOND) };
            if is_chain || at > 0 {
                cases.push(case(name, Transfer::bundles(configuration, protocol, &file, *stored), runs));
            }
        }
        if !bench.thin {
            let following = Transfer::norm_that_follows(configuration, &file);
            cases.push(case(NORM_FOLLOWING, following, runs.min(RUNS_BEYOND)));
        }
        if is_chain && configuration.links() > 1 {
            let through = Transfer::bundles(configuration, TCPCL, &file, false);
            cases.push(case(TCPCL_THROUGH, through, runs));
        }
    }
    if !bench.thin {
        cases.extend(datagrams(bench, runs.min(RUNS_BEYOND)));
        cases.extend(RATES_KBPS.into_iter().map(|rate_kbps| {
            let one = Configuration::PointToPoint;
            let norm = Transfer::bundles_with(one, "norm/tuned", &file, true, &at_rate(rate_kbps));
            let params = at(Configuration::PointToPoint).with("rate_kbps", rate_kbps);
            Case::new(NORM_RATES, params, norm, bench.seed, runs.min(RUNS_BEYOND))
        }));
        let mut redirected = Transfer::iperf(Configuration::SingleHop);
        redirected.setup.redirects = true;
        cases.push(case(REDIRECTED, redirected, runs.min(RUNS_BEYOND)));
        cases.extend(variations(bench, runs.min(RUNS_BEYOND)));
    }
    Results { played: bench.play(cases), runs }
}

/// One-way datagrams on one link at several rates, and at the rate of the paper with a hidden node.
fn datagrams(bench: &Bench<'_>, runs: u32) -> Vec<Case<Transfer>> {
    let case = |configuration: Configuration, rate_kbps: f64| {
        let params = at(configuration).with("rate_kbps", rate_kbps);
        Case::new(DATAGRAMS, params, Transfer::datagrams(configuration, rate_kbps), bench.seed, runs)
    };
    let rates = RATES_KBPS.into_iter().map(|rate_kbps| case(Configuration::PointToPoint, rate_kbps));
    rates.chain([case(Configuration::HiddenNode, RATE_KBPS)]).collect()
}

/// The stream of iperf and the download with other assumptions, where stations do not all hear each other.
fn variations(bench: &Bench<'_>, runs: u32) -> Vec<Case<Transfer>> {
    let case = |(name, change): Variation, mut transfer: Transfer, case: &str| {
        change(&mut transfer.setup.channel);
        let params = at(transfer.setup.configuration).with("variation", name);
        Case::new(case, params, transfer, bench.seed, runs)
    };
    let of = |variation: Variation| {
        let [two, three] = [Configuration::SingleHop, Configuration::DoubleHop].map(Transfer::iperf);
        let hidden = Transfer::datagrams(Configuration::HiddenNode, RATE_KBPS);
        [(two, IPERF_CASE), (three, IPERF_CASE), (hidden, DATAGRAMS)]
            .map(|(transfer, name)| case(variation, transfer, name))
    };
    VARIATIONS.into_iter().flat_map(of).collect()
}
