//! How a link is configured, and what it counts.

use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Keep-alives are never sent more often (RFC 7122 3.4).
pub const KEEPALIVE_MIN: Duration = Duration::from_secs(15);

/// The configuration of a [`Link`](super::Link).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The node id at the other end: no datagram says it. Default: not known, so that bundles take the link by a route
    /// only.
    pub peer_node_id: Option<String>,
    /// The longest datagram to send, bytes; a bundle that is longer has to be fragmented. Default 1,400, which few paths
    /// cannot carry whole; 65,507 is the most that IPv4 has room for. RFC 7122 3.1, 3.2.
    pub datagram_bytes_max: u64,
    /// The rate at which to send, bit/s, headers of UDP and IP counted; zero: as fast as the system takes it, which loses
    /// on every path that is slower. Default 1,000,000. RFC 8085 3.1.
    pub rate_bps: u64,
    /// How far ahead of its rate a burst may go, as time at that rate. Default 10 ms.
    pub burst: Duration,
    /// What UDP and IP add to a datagram, bytes. Default 28.
    pub overhead_bytes: u64,
    /// Bundles that may be open and not yet handed down; more fail at once. Default 4,096.
    pub open_max: usize,
    /// Bundles received that may wait to be accepted; more are dropped, as the network would. Default 1,024.
    pub incoming_max: usize,
    /// Send a keep-alive of four zero octets after so long a silence of this side; never more often than every 15 s.
    /// Default: none. RFC 7122 3.4.
    pub keepalive: Option<Duration>,
    /// The delay before a socket that failed is opened again; doubled with each failure. Default 1 s.
    pub retry_min: Duration,
    /// The longest such delay. Default 60 s.
    pub retry_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            peer_node_id: None,
            datagram_bytes_max: 1400,
            rate_bps: 1_000_000,
            burst: Duration::from_millis(10),
            overhead_bytes: 28,
            open_max: 4096,
            incoming_max: 1024,
            keepalive: None,
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(60),
        }
    }
}

/// What a [`Link`](super::Link) has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Times the socket was opened.
    pub joined: u64,
    /// Times it failed, or the other side said that nobody listens.
    pub failed: u64,
    /// Bundles handed over: one a datagram. Whether they arrived nobody knows.
    pub datagrams_sent: u64,
    /// Bundles received: one a datagram.
    pub datagrams_received: u64,
    /// Their bytes, sent.
    pub payload_sent: u64,
    /// Their bytes, received.
    pub payload_received: u64,
    /// Keep-alives sent.
    pub keepalives_sent: u64,
    /// Keep-alives received.
    pub keepalives_received: u64,
    /// Bundles dropped because too many waited to be accepted.
    pub dropped: u64,
    /// Datagrams without a byte.
    pub violations: u64,
    /// Bundles refused by this side's user; the sender does not hear of it.
    pub refused: u64,
    /// Bundles to send that are too long for a datagram.
    pub too_long: u64,
}
