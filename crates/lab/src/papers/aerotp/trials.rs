//! Runs: all modes at all bit-error rates, the aggregation of acknowledgements, and what decides.

use super::path::{Carried, Protocol, RATE_BPS, Setup};
use crate::bench::{self, Bench, Case, Metric, Trial};
use crate::record::Params;
use longwire_proto::aerotp::Config;
use longwire_proto::service::TransportService;
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::Duration;
use longwire_sim::Delay;

/// Runs of each case.
const RUNS: u32 = 25;
/// Runs of each case beyond the paper, and of each variation.
pub(super) const RUNS_FEW: u32 = 5;
/// Bit-error rates.
pub(super) const RATES: [f64; 9] = [0.0, 1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 7.5e-5, 1e-4];
/// Data of a run, bytes.
pub(super) const BYTES: u64 = 1_000_000;
/// Rate of the application, bit/s: 375 packets of 1472 bytes a second.
pub(super) const OFFERED_BPS: f64 = 4.416e6;
/// Rate of the application by the words of the paper: 3000 packets of 1472 bytes a second.
const STATED_BPS: f64 = 3000.0 * 1472.0 * 8.0;
/// Acknowledgements per MACK; the last one fills a packet.
pub(super) const ACKNOWLEDGEMENTS: [u32; 6] = [1, 10, 50, 100, 200, 363];
/// Overhead of UDP, IPv4 and framing, bytes.
const OVERHEAD_BYTES: u64 = 30;
/// Delay of the air link.
pub(super) const DELAY: Duration = Duration::from_millis(10);
/// Longest retransmission timeout in units of the one-way delay, and while acknowledgements wait for others.
const TIMEOUT_DELAYS: u32 = 5;
const TIMEOUT_WAITING: Duration = Duration::from_secs(1);
/// Rates of the reverse channel, as parts of the forward rate.
pub(super) const REVERSE: [u64; 3] = [1, 10, 100];
/// Bit-error rate of the runs with a slow reverse channel.
pub(super) const REVERSE_BER: f64 = 1e-5;

pub(super) const RELIABLE: &str = "AeroTP, reliable";
pub(super) const WEAK_FEC: &str = "AeroTP, FEC, weak code";
pub(super) const WEAK_NACK: &str = "AeroTP, NACK, weak code";
pub(super) const WEAK_MACK: &str = "AeroTP, NACK + MACK, weak code";
pub(super) const FEC: &str = "AeroTP, FEC, RS(255,223)";
pub(super) const NACK: &str = "AeroTP, NACK, RS(255,223)";
pub(super) const MACK: &str = "AeroTP, NACK + MACK, RS(255,223)";
pub(super) const ADAPTIVE: &str = "AeroTP, adaptive";
pub(super) const UDP: &str = "UDP";
pub(super) const TCP: &str = "TCP, ns-3 of 2010";
pub(super) const TCP_LINUX: &str = "TCP, Linux 6";
pub(super) const AGGREGATED: &str = "AeroTP, reliable, acknowledgements wait for others";
/// Case with a LAN at each end.
pub(super) const LANS: [(&str, &str); 2] =
    [(RELIABLE, "AeroTP, reliable, with LANs"), (TCP, "TCP, ns-3 of 2010, with LANs")];

/// Modes of the figures of the paper.
pub(super) const MODES: [&str; 8] = [RELIABLE, WEAK_FEC, WEAK_NACK, WEAK_MACK, UDP, TCP, TCP_LINUX, ADAPTIVE];
/// The same with a code that is as strong as its overhead suggests.
pub(super) const STRONG: [&str; 3] = [FEC, NACK, MACK];

/// Settings of AeroTP on a link with this delay.
pub(super) fn config(delay: Duration) -> Config {
    let standard = Config::default();
    let timeout = (delay * TIMEOUT_DELAYS).max(standard.rto_min * 2);
    let closing = delay * TIMEOUT_DELAYS * 2;
    Config {
        rate_bps: RATE_BPS,
        overhead_bytes: OVERHEAD_BYTES,
        rto_initial: timeout,
        rto_max: timeout,
        close_timeout: standard.close_timeout.max(closing),
        listen_timeout: standard.listen_timeout.max(closing),
        silence_limit: standard.silence_limit.max(closing * 4),
        ..standard
    }
}

/// Returns the protocol of a mode on a link with this delay.
pub(super) fn protocol(mode: &str, delay: Duration) -> Protocol {
    let standard = config(delay);
    let strong = || Config { fec_strength: 16, ..standard.clone() };
    let weak = || standard.clone().with_weak_code();
    let (service, config) = match mode {
        RELIABLE => (TransportService::Reliable, standard),
        WEAK_FEC => (TransportService::QuasiReliable, weak()),
        WEAK_NACK => (TransportService::Nack, weak()),
        WEAK_MACK => (TransportService::NackMack, weak()),
        FEC => (TransportService::QuasiReliable, strong()),
        NACK => (TransportService::Nack, strong()),
        MACK => (TransportService::NackMack, strong()),
        ADAPTIVE => (TransportService::Adaptive, standard),
        UDP => return Protocol::Udp,
        TCP => return Protocol::Tcp(Profile::ns3_2010()),
        TCP_LINUX => return Protocol::Tcp(Profile::linux_6()),
        other => panic!("`{other}` is not a mode"),
    };
    Protocol::AeroTp(service, config)
}

/// Reliable mode with so many acknowledgements per MACK, which no timer sends earlier.
pub(super) fn aggregated(acknowledgements: u32) -> Protocol {
    let config = Config {
        acks_per_mack: acknowledgements,
        cumulative: false,
        mack_interval: Duration::ZERO,
        rto_initial: TIMEOUT_WAITING,
        rto_max: TIMEOUT_WAITING,
        ..config(DELAY)
    };
    Protocol::AeroTp(TransportService::Reliable, config)
}

/// A run of one protocol.
#[derive(Clone)]
pub(super) struct Transfer(pub(super) Setup);

/// Bytes on the air link beside those delivered.
fn overhead(carried: &Carried) -> f64 {
    (carried.forward.bytes + carried.backward.bytes) as f64 - carried.bytes as f64
}

impl Trial for Transfer {
    type Outcome = Carried;

    const METRICS: &'static [Metric<Carried>] = &[
        Metric::new("goodput_mbps", "Mbit/s", |carried| {
            Some(if carried.bytes == 0 { 0.0 } else { carried.bytes as f64 * 8e-6 / carried.seconds })
        }),
        Metric::new("delay_ms", "ms", |carried| Some(carried.delay_s? * 1e3)),
        Metric::new("intact_delay_ms", "ms", |carried| Some(carried.intact_s? * 1e3)),
        Metric::new("complete_delay_ms", "ms", |carried| {
            if carried.bytes == carried.offered { Some(carried.delay_s? * 1e3) } else { None }
        }),
        Metric::new("complete_intact_delay_ms", "ms", |carried| {
            if carried.bytes == carried.offered { Some(carried.intact_s? * 1e3) } else { None }
        }),
        Metric::new("delivered_mb", "MB", |carried| Some(carried.bytes as f64 * 1e-6)),
        Metric::new("delivered_share", "", |carried| Some(carried.bytes as f64 / carried.offered as f64)),
        Metric::new("complete_share", "", |carried| {
            Some(f64::from(u8::from(carried.bytes == carried.offered)))
        }),
        Metric::new("overhead_mb", "MB", |carried| Some(overhead(carried) * 1e-6)),
        Metric::new("overhead_ratio", "", |carried| {
            (carried.bytes > 0).then(|| overhead(carried) / carried.bytes as f64)
        }),
        Metric::new("damaged_share", "", |carried| {
            let [all, damaged] = carried.data_frames;
            (all > 0).then(|| damaged as f64 / all as f64)
        }),
        Metric::new("transfer_s", "s", |carried| {
            (carried.bytes == carried.offered).then_some(carried.seconds)
        }),
        Metric::new("contact_share", "", |carried| {
            // The time in which what leaves in a contact of ten seconds arrives within it.
            (carried.bytes_until > 0).then(|| carried.bytes_until as f64 * 8.0 / (RATE_BPS as f64 * 9.9))
        }),
        Metric::new("repeated_after_kb", "kB", |carried| {
            (carried.bytes_until > 0).then_some(carried.repeated_after[0] as f64 * 1e-3)
        }),
        Metric::new("repeated_answered_kb", "kB", |carried| {
            (carried.bytes_until > 0).then_some(carried.repeated_after[1] as f64 * 1e-3)
        }),
    ];

    fn play(&self, run: bench::Run) -> Carried {
        let carried = self.0.play(run.seed);
        // CRC-16 lets one of 65,536 damaged packets through, which the checksum of TCP or UDP has to detect as well.
        assert!(carried.wrong == 0, "bytes were changed on the way");
        carried
    }
}

pub(super) type Played = bench::Played<Transfer>;

pub(super) fn at(ber: f64) -> Params {
    Params::new().with("ber", ber)
}

/// All runs.
pub(super) struct Results {
    pub(super) played: Vec<Played>,
    pub(super) runs: u32,
}

/// Makes cases of these experiments.
pub(super) struct Cases<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) runs: u32,
    pub(super) cases: Vec<Case<Transfer>>,
}

impl Cases<'_> {
    pub(super) fn add(&mut self, name: &str, params: Params, setup: Setup, runs_max: u32) {
        let runs = self.runs.min(runs_max);
        self.cases.push(Case::new(name, params, Transfer(setup), self.bench.seed, runs));
    }
}

fn offered(protocol: Protocol, ber: f64) -> Setup {
    Setup::new(protocol, BYTES, Some(OFFERED_BPS), ber)
}

pub(super) fn play(bench: &Bench<'_>) -> Results {
    let runs = bench.runs(RUNS);
    let mut cases = Cases { bench, runs, cases: Vec::new() };
    let all = u32::MAX;
    for ber in RATES {
        for mode in MODES {
            cases.add(mode, at(ber), offered(protocol(mode, DELAY), ber), all);
        }
        for mode in STRONG.into_iter().filter(|_| !bench.thin) {
            cases.add(mode, at(ber), offered(protocol(mode, DELAY), ber), all);
        }
        for acknowledgements in ACKNOWLEDGEMENTS.into_iter().step_by(if bench.thin { 5 } else { 1 }) {
            let params = Params::new().with("acknowledgements", acknowledgements).with("ber", ber);
            cases.add(AGGREGATED, params, offered(aggregated(acknowledgements), ber), all);
        }
    }
    if !bench.thin {
        reverse(&mut cases);
        for (mode, name) in LANS {
            let setup = Setup { lans: true, ..offered(protocol(mode, DELAY), 1e-5) };
            cases.add(name, at(1e-5), setup, all);
        }
        variations(&mut cases);
        super::beyond::add(&mut cases);
    }
    Results { played: bench.play(cases.cases), runs }
}

/// The reliable mode with a slow reverse channel.
fn reverse(cases: &mut Cases<'_>) {
    for part in REVERSE {
        for acknowledgements in ACKNOWLEDGEMENTS {
            let mut setup = offered(aggregated(acknowledgements), REVERSE_BER);
            setup.backward.rate_bps /= part;
            let params =
                Params::new().with("acknowledgements", acknowledgements).with("reverse", 1.0 / part as f64);
            cases.add(AGGREGATED, params, setup, RUNS_FEW);
        }
    }
}

/// Other readings of the delay and of the rate: names of their words, delay, rate.
pub(super) const READINGS: [(&str, Duration, f64); 4] = [
    ("as-assumed", DELAY, OFFERED_BPS),
    ("ten-microseconds", Duration::from_micros(10), OFFERED_BPS),
    ("ten-seconds", Duration::from_secs(10), OFFERED_BPS),
    ("stated-rate", DELAY, STATED_BPS),
];
pub(super) const READING_RATES: [f64; 3] = [0.0, 1e-5, 1e-4];

fn variations(cases: &mut Cases<'_>) {
    for (reading, delay, rate_bps) in READINGS {
        for ber in READING_RATES {
            for mode in MODES {
                let mut setup = Setup::new(protocol(mode, delay), BYTES, Some(rate_bps), ber);
                setup.forward.delay = Delay::Constant(delay);
                setup.backward.delay = Delay::Constant(delay);
                let params = at(ber).with("reading", reading);
                cases.add(mode, params, setup, RUNS_FEW);
            }
        }
    }
}
