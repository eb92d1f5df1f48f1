//! A network as data, from which both worlds are built.

use longwire_proto::bp::agent;
use longwire_proto::rng::Rng;
use longwire_proto::tcpcl::{self, Versions};
use longwire_settings::toml_text;
use longwire_sim::DiskConfig;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Plan {
    /// Names of the nodes; a node called `x` is `dtn://x/`.
    pub(crate) nodes: Vec<String>,
    pub(crate) line: Vec<Line>,
    pub(crate) route: Vec<Route>,
    /// Configuration of all agents, except for nodes with their own.
    pub(crate) agent: agent::Config,
    /// Configuration of all sessions.
    pub(crate) tcpcl: tcpcl::Config,
    #[serde(skip)]
    pub(crate) agents: BTreeMap<String, agent::Config>,
    /// Versions of nodes that do not support all.
    #[serde(skip)]
    pub(crate) versions: BTreeMap<String, Versions>,
    /// Disks in virtual time.
    #[serde(skip)]
    pub(crate) disk: DiskConfig,
}

/// A line between two nodes; the first connects to the second.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Line {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Rate in each direction, bit/s.
    pub(crate) rate_bps: u64,
    /// One-way delay; in virtual time only.
    pub(crate) delay_ms: f64,
    /// Bit error rate; in virtual time only, where TCP has to repair the errors.
    pub(crate) ber: f64,
    /// Maximum length of a bundle that is not fragmented, bytes; zero for no limit.
    pub(crate) bundle_bytes_max: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Route {
    pub(crate) at: String,
    pub(crate) to: String,
    /// Name of the neighbour.
    pub(crate) via: String,
}

pub(crate) fn node_id(name: &str) -> String {
    format!("dtn://{name}/")
}

impl Plan {
    /// Loads a plan from `scenarios/nodes`.
    pub(crate) fn named(name: &str) -> Plan {
        let path = format!("{}/../../scenarios/nodes/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let table = toml_text::parse(&text, &path).expect("it is TOML");
        toml_text::from_table(table, &path).expect("it is a plan")
    }

    /// Returns the same nodes with random lines and disks.
    pub(crate) fn drawn(mut self, rng: &mut Rng) -> Plan {
        for line in &mut self.line {
            line.rate_bps = line.rate_bps / 2 + rng.below(line.rate_bps);
            line.delay_ms *= 0.2 + 20.0 * rng.unit();
            line.ber = if rng.chance(0.5) { 0.0 } else { 2e-6 * rng.unit() };
        }
        self.disk.write_latency = Duration::from_millis(5).mul_f64(rng.unit());
        self.disk.sync_latency = Duration::from_millis(40).mul_f64(rng.unit());
        self.agent.piece_bytes_max = 2_000 + rng.below(70_000) as usize;
        self.agent.read_ahead_pieces = 1 + rng.below(4) as usize;
        self.tcpcl.segment_bytes = 2_000 + rng.below(100_000);
        self.tcpcl.transfers_max = 1 + rng.below(50) as usize;
        self
    }

    pub(crate) fn agent_of(&self, name: &str) -> agent::Config {
        let config = self.agents.get(name).unwrap_or(&self.agent).clone();
        agent::Config { node: node_id(name), ..config }
    }

    pub(crate) fn tcpcl_of(&self, name: &str) -> tcpcl::Config {
        let versions = self.versions.get(name).copied().unwrap_or_default();
        tcpcl::Config { node_id: node_id(name), versions, ..self.tcpcl.clone() }
    }

    pub(crate) fn routes(&self, name: &str) -> impl Iterator<Item = &Route> {
        self.route.iter().filter(move |route| route.at == name)
    }
}
