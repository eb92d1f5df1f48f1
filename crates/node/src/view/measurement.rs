//! Views of what was measured between two nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pings and their round-trip times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pings {
    /// Endpoint of the echo service.
    pub to: String,
    /// Pings sent.
    pub sent: u64,
    /// Replies in time.
    pub received: u64,
    /// Loss, percent.
    pub lost_percent: f64,
    /// Round-trip time of each ping, milliseconds; null without a reply in time.
    pub round_trips_ms: Vec<Option<f64>>,
    /// Minimum round-trip time, milliseconds; null without a reply.
    pub least_ms: Option<f64>,
    /// Mean round-trip time, milliseconds; null without a reply.
    pub mean_ms: Option<f64>,
    /// Maximum round-trip time, milliseconds; null without a reply.
    pub most_ms: Option<f64>,
    /// Standard deviation of the round-trip time, milliseconds; null without a reply.
    pub deviation_ms: Option<f64>,
}

/// Throughput between two nodes, measured with bundles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Endpoint of the measuring service.
    pub to: String,
    /// Round trips, measured before with small bundles.
    pub round_trips: Pings,
    /// Payload length of each bundle, bytes.
    pub bundle_bytes: u64,
    /// Bundles sent.
    pub sent: u64,
    /// Bundles that arrived.
    pub arrived: u64,
    /// Loss, percent.
    pub lost_percent: f64,
    /// Time over which the throughput is measured: from the first arrival to the last one, without the first and the last tenth,
    /// seconds; null with fewer than two arrivals.
    pub seconds: Option<f64>,
    /// Payload that arrived in this time, bit/s; null with fewer than two arrivals.
    pub throughput_bps: Option<f64>,
}
