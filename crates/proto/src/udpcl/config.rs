//! Configuration and counters of a link.

use crate::setting::{Fault, Settings, at_least, number, rule, wait, wait_from};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Minimum interval between keep-alives (RFC 7122 3.4).
pub const KEEPALIVE_MIN: Duration = Duration::from_secs(15);

/// Configuration of a [`Link`](super::Link).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Node ID of the peer, which no datagram contains. Default: unknown, so that bundles take the link only
    /// by a route.
    pub peer_node_id: Option<String>,
    /// Maximum length of a datagram to send, bytes; longer bundles must be fragmented (RFC 7122 3.1, 3.2).
    /// Default 1,400, which nearly every path carries unfragmented; the maximum of IPv4 is 65,507.
    pub datagram_bytes_max: u64,
    /// Transmission rate, bit/s, including the headers of UDP and IP (RFC 8085 3.1); zero: as fast as the
    /// system accepts, which causes losses on every slower path. Default 1,000,000.
    pub rate_bps: u64,
    /// Maximum burst, as time at the rate. Default 10 ms.
    pub burst: Duration,
    /// Length of the UDP and IP headers of a datagram, bytes. Default 28.
    pub overhead_bytes: u64,
    /// Maximum number of open bundles that are not completely sent; more fail at once. Default 4,096.
    pub open_max: usize,
    /// Maximum number of received bundles that wait for acceptance; more are dropped, as by the network.
    /// Default 1,024.
    pub incoming_max: usize,
    /// Idle time of this side after which a keep-alive of four zero octets is sent, at least 15 s (RFC 7122
    /// 3.4). Default: none.
    pub keepalive: Option<Duration>,
    /// Delay before a failed socket is opened again; it doubles with each failure. Default 1 s.
    pub retry_min: Duration,
    /// Maximum delay before a failed socket is opened again. Default 60 s.
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

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        at_least(
            "datagram-bytes-max",
            self.datagram_bytes_max,
            1,
            "with 0 nothing can be sent; 1400 is usual",
        )?;
        number("overhead-bytes", self.overhead_bytes, 0..=65_535, "28 for IPv4, 48 for IPv6")?;
        at_least("open-max", self.open_max, 1, "with 0 nothing can be sent")?;
        at_least("incoming-max", self.incoming_max, 1, "with 0 nothing can be received")?;
        if let Some(interval) = self.keepalive {
            const NEVER: &str = "remove it to send no keep-alives";
            rule(interval >= KEEPALIVE_MIN, "keepalive", "must be at least 15 s (RFC 7122 3.4)", NEVER)?;
            wait_from("keepalive", interval, KEEPALIVE_MIN, NEVER)?;
        }
        wait("retry-min", self.retry_min, "1 s is usual")?;
        wait_from("retry-max", self.retry_max, self.retry_min, "must not be less than `retry-min`")
    }
}

/// Counters of a [`Link`](super::Link) since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Number of times that the socket was opened.
    pub joined: u64,
    /// Number of times that the socket failed or the peer's port was unreachable.
    pub failed: u64,
    /// Bundles sent, one per datagram; their arrival is unknown.
    pub datagrams_sent: u64,
    /// Bundles received, one per datagram.
    pub datagrams_received: u64,
    /// Bytes of bundles sent.
    pub payload_sent: u64,
    /// Bytes of bundles received.
    pub payload_received: u64,
    /// Keep-alives sent.
    pub keepalives_sent: u64,
    /// Keep-alives received.
    pub keepalives_received: u64,
    /// Bundles dropped because too many waited for acceptance.
    pub dropped: u64,
    /// Empty datagrams.
    pub violations: u64,
    /// Received bundles that the user refused; the sender is not informed.
    pub refused: u64,
    /// Bundles that were too long for a datagram.
    pub too_long: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{TIME_MAX, TIME_MIN};

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let plain = Config::default();
        let second = Duration::from_secs(1);
        for (key, config) in [
            ("datagram-bytes-max", Config { datagram_bytes_max: 0, ..plain.clone() }),
            ("overhead-bytes", Config { overhead_bytes: 1 << 16, ..plain.clone() }),
            ("open-max", Config { open_max: 0, ..plain.clone() }),
            ("incoming-max", Config { incoming_max: 0, ..plain.clone() }),
            ("keepalive", Config { keepalive: Some(KEEPALIVE_MIN - TIME_MIN), ..plain.clone() }),
            ("keepalive", Config { keepalive: Some(TIME_MAX + second), ..plain.clone() }),
            ("retry-min", Config { retry_min: Duration::ZERO, ..plain.clone() }),
            ("retry-max", Config { retry_min: second * 2, retry_max: second, ..plain.clone() }),
        ] {
            assert_eq!(config.check().unwrap_err().key, key);
        }
        let unpaced = Config { rate_bps: 0, keepalive: Some(KEEPALIVE_MIN), ..plain };
        assert_eq!(
            unpaced.check(),
            Ok(()),
            "the rate has no limit, and keep-alives are as frequent as allowed"
        );
    }
}
