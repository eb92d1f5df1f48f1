//! `longwire emulate`.

use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::node_connection::print;
use crate::output::{interrupts, talk};
use clap::{ArgGroup, Args};
use longwire_emulator::{EmulationReport, Emulator, Ports, UdpPlace};
use longwire_lab::error::Error;
use longwire_lab::link::{self, LinkPath};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Lateness from which the summary warns, milliseconds.
const LATE_MS: f64 = 10.0;

/// Emulate a link in real time, for other programs
///
/// Packets that enter at one end leave the other end when the link would deliver them, with its rate, delay, queue, bit errors
/// and outages. The ends are TUN devices in two network namespaces, two UDP ports, or TNCs in KISS mode. Ctrl-C ends the
/// emulation and prints the packets and how late they were.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("ports").required(true).args(["tun", "udp", "kiss"])),
    after_help = format!("Built-in links: {}.", link::shipped_names())
)]
pub(crate) struct Emulate {
    /// Link: a built-in profile, or the path of a profile (.toml)
    #[arg(value_name = "LINK")]
    link: String,
    /// Two network namespaces, the sending end first: names (see `ip netns`) or paths. Each gets the device longwire0, with
    /// the addresses 10.64.0.1 and 10.64.0.2; needs root
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    tun: Vec<String>,
    /// Two UDP ports, the sending end first: 127.0.0.1:7001,127.0.0.1:7002. A port passes packets to the program that sent
    /// to it last, or to a fixed one: 127.0.0.1:7001=127.0.0.1:4556
    #[arg(long, value_name = "PORT,PORT", value_delimiter = ',')]
    udp: Vec<UdpPlace>,
    /// TCP ports of TNCs in KISS mode on one radio channel, two or more: 127.0.0.1:8001,127.0.0.1:8002
    #[arg(long, value_name = "PORT,PORT", value_delimiter = ',')]
    kiss: Vec<SocketAddr>,
    /// Change a key of the link profile: ber=0, delay-ms=2000, radio.tx-delay-ms=100
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// End after this time: 10s, 1h [default: run until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = flag::time_above_zero)]
    time: Option<Duration>,
    /// Random seed of bit errors, channel access and random outages
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the summary as one JSON document
    #[arg(long)]
    json: bool,
    /// Print only errors on stderr
    #[arg(long, short)]
    quiet: bool,
}

impl Emulate {
    pub(crate) fn run(&self) -> CommandResult {
        let ports = self.ports().map_err(CommandFailure::Usage)?;
        let path =
            LinkPath::load_with(&self.link, &self.set, Path::new(".")).map_err(CommandFailure::Usage)?;
        let stop = interrupts()?;
        let mut emulator = Emulator::open(&path, &ports, self.seed)?;
        if !self.quiet {
            talk(format_args!("{}: {}", path.title, emulator.places().join("  <->  ")));
            talk(format_args!("packets pass; Ctrl-C ends the emulation"));
        }
        let report = emulator.run(&stop, self.time)?;
        if report.lateness.p99_ms > LATE_MS {
            talk(format_args!("warning: this computer was too busy to emulate the link faithfully"));
        }
        if self.json {
            let text = serde_json::to_string(&report).map_err(|error| Error::new(error.to_string()))?;
            return print(&text);
        }
        print(&words(&report))
    }

    fn ports(&self) -> Result<Ports, Error> {
        let two = |option: &str| {
            Error::new(format!("{option} needs two ends")).hint("separate them by a comma, without a space")
        };
        match (&self.tun[..], &self.udp[..], &self.kiss[..]) {
            ([here, there], [], []) => Ok(Ports::Tun([here.clone(), there.clone()])),
            (_, [here, there], []) => Ok(Ports::Udp([*here, *there])),
            ([_, ..], ..) => Err(two("--tun")),
            (_, [_, ..], _) => Err(two("--udp")),
            (_, _, stations) => Ok(Ports::Kiss(stations.to_vec())),
        }
    }
}

fn words(report: &EmulationReport) -> String {
    let mut lines: Vec<String> = Vec::new();
    for end in &report.ends {
        let refused = match end.refused {
            0 => String::new(),
            refused => format!(", {refused} refused"),
        };
        lines.push(format!("{}: {} packets sent, {} arrived{refused}", end.place, end.sent, end.arrived));
    }
    let late = &report.lateness;
    lines.push(format!(
        "{:.1} s; packets were late by {:.3} ms (median), {:.3} ms (99 of 100), {:.3} ms (maximum)",
        report.elapsed_s, late.median_ms, late.p99_ms, late.max_ms
    ));
    lines.join("\n")
}
