//! Configuration and counters of a link.

use crate::setting::{Fault, Settings, TIME_MIN, at_least, number, rule, settings, time, wait, wait_from};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Minimum interval between keep-alives (RFC 7122 3.4).
pub const KEEPALIVE_MIN: Duration = Duration::from_secs(15);

/// Minimum of [`Config::datagram_bytes_max`] with transfers, bytes: a datagram carries more data than headers.
pub(super) const DATAGRAM_BYTES_MIN: u64 = 64;
/// Maximum number of copies of a datagram.
const COPIES_MAX: u64 = 8;
/// Maximum time without a segment after which a receiver forgets a transfer, and maximum time from a datagram to its last copy
/// (draft-ietf-dtn-udpcl-04 3.6.2, 3.3.1).
pub const TRANSFER_TIMEOUT_MAX: Duration = Duration::from_secs(60);

settings! {
    /// Configuration of a [`Link`](super::Link).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Node ID of the peer, which no datagram contains. Default: unknown, so that bundles take the link only
        /// by a route.
        pub peer_node_id: Option<String>,
        /// Maximum length of a datagram to send, bytes; longer bundles must be fragmented, or sent as
        /// [`transfers`](Config::transfers) (RFC 7122 3.1, 3.2). Default 1,400, which nearly every path carries unfragmented; the
        /// maximum of IPv4 is 65,507.
        pub datagram_bytes_max: u64 = 1400,
        /// A bundle that is longer than a datagram is sent as a transfer of several segments (draft-ietf-dtn-udpcl-04 3.6), which
        /// peers that know only RFC 7122 discard. Transfers are always received. Default false.
        pub transfers: bool,
        /// Maximum length of a bundle to send or to receive as a transfer, bytes. Default 16 MiB.
        pub transfer_bytes_max: u64 = 16 << 20,
        /// Number of times that each datagram with a bundle or a part of it is sent (draft-ietf-dtn-udpcl-04 3.3.1). More than 1
        /// needs `transfers`: every bundle is then a transfer, so that the peer discards the copies. Default 1.
        pub copies: u32 = 1,
        /// Time between two copies of a datagram; long enough, they are not lost together. At most 60 s from the first one to the
        /// last. Default 1 s.
        pub copy_interval: Duration = Duration::from_secs(1),
        /// Number of bytes of datagrams that wait for their copies above which no others are made. Default 16 MiB.
        pub copies_bytes_max: u64 = 16 << 20,
        /// Transmission rate, bit/s, including the headers of UDP and IP (RFC 8085 3.1); zero: as fast as the
        /// system accepts, which causes losses on every slower path. Default 1,000,000.
        pub rate_bps: u64 = 1_000_000,
        /// Maximum burst, as time at the rate. Default 10 ms.
        pub burst: Duration = Duration::from_millis(10),
        /// Length of the UDP and IP headers of a datagram, bytes. Default 28.
        pub overhead_bytes: u64 = 28,
        /// Maximum number of open bundles that are not completely sent; more fail at once. Default 4,096.
        pub open_max: usize = 4096,
        /// Maximum number of received bundles that wait for acceptance; more are dropped, as by the network.
        /// Default 1,024.
        pub incoming_max: usize = 1024,
        /// Maximum memory of incoming transfers, bytes: of those that are not complete or not accepted with 128 bytes for each
        /// segment, and 256 bytes for each transfer of which something is remembered. Above it, the sender with the most memory
        /// loses the transfer that it has not continued for the longest time. Default 64 MiB.
        pub incoming_bytes_max: u64 = 64 << 20,
        /// Time since the last segment of a transfer after which it is forgotten: what was received of it, or that it is complete
        /// and its copies are discarded. At most 60 s (draft-ietf-dtn-udpcl-04 3.6.2). Default 60 s.
        pub transfer_timeout: Duration = TRANSFER_TIMEOUT_MAX,
        /// Idle time of this side after which a keep-alive of four zero octets is sent, at least 15 s (RFC 7122
        /// 3.4). Default: none.
        pub keepalive: Option<Duration>,
        /// Delay before a failed socket is opened again; it doubles with each failure. Default 1 s.
        pub retry_min: Duration = Duration::from_secs(1),
        /// Maximum delay before a failed socket is opened again. Default 60 s.
        pub retry_max: Duration = Duration::from_secs(60),
    }
}

impl Config {
    fn check_transfers(&self) -> Result<(), Fault> {
        let least = if self.transfers { DATAGRAM_BYTES_MIN } else { 1 };
        at_least(
            "datagram-bytes-max",
            self.datagram_bytes_max,
            least,
            "1400 is usual; with less than 64 a transfer would be mostly headers",
        )?;
        number("transfer-bytes-max", self.transfer_bytes_max, 1..=u64::from(u32::MAX), "16777216 is usual")?;
        number("copies", self.copies, 1..=COPIES_MAX, "1 sends everything once")?;
        rule(
            self.copies == 1 || self.transfers,
            "copies",
            "must be 1 without `transfers`, or the peer could not discard the copies",
            "set `transfers = true` if the peer implements draft-ietf-dtn-udpcl",
        )?;
        const INTERVAL: &str = "the peer forgets a transfer after 60 s at the latest";
        time("copy-interval", self.copy_interval, TIME_MIN..=TRANSFER_TIMEOUT_MAX, INTERVAL)?;
        let last = self.copy_interval * (self.copies - 1);
        rule(
            last <= TRANSFER_TIMEOUT_MAX,
            "copy-interval",
            "must be at most 60 s from the first of all `copies` to the last",
            INTERVAL,
        )?;
        at_least("copies-bytes-max", self.copies_bytes_max, 1, "16777216 is usual")?;
        at_least(
            "incoming-bytes-max",
            self.incoming_bytes_max,
            self.transfer_bytes_max,
            "must not be less than `transfer-bytes-max`, or the longest transfer can never be received",
        )?;
        let range = TIME_MIN..=TRANSFER_TIMEOUT_MAX;
        time("transfer-timeout", self.transfer_timeout, range, "60 s is usual and the maximum")
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        self.check_transfers()?;
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
    /// Bundles sent without a frame, one per datagram; their arrival is unknown.
    pub datagrams_sent: u64,
    /// Bundles received without a frame, one per datagram.
    pub datagrams_received: u64,
    /// Bundles sent as transfers; their arrival is unknown.
    pub transfers_sent: u64,
    /// Bundles received as transfers.
    pub transfers_received: u64,
    /// Segments of transfers sent, without copies.
    pub segments_sent: u64,
    /// Segments of transfers received and kept.
    pub segments_received: u64,
    /// Copies of datagrams sent beyond the first.
    pub copies_sent: u64,
    /// Bytes of bundles sent.
    pub payload_sent: u64,
    /// Bytes of bundles received.
    pub payload_received: u64,
    /// Keep-alives sent.
    pub keepalives_sent: u64,
    /// Keep-alives received.
    pub keepalives_received: u64,
    /// Bundles and segments dropped because too many bundles waited for acceptance, or because there was no memory.
    pub dropped: u64,
    /// Segments received again or overlapping others, and those of transfers that are complete.
    pub duplicates: u64,
    /// Segments of transfers that are refused: too long, malformed, or without a bundle.
    pub segments_refused: u64,
    /// Transfers that were forgotten because no more of them came in time.
    pub transfers_expired: u64,
    /// Transfers that were refused because their segments announce different lengths.
    pub transfers_malformed: u64,
    /// Transfers that were forgotten because others had to have memory.
    pub transfers_displaced: u64,
    /// Datagrams and transfers discarded because they do not begin like a bundle.
    pub not_bundles: u64,
    /// Records of DTLS, which are discarded.
    pub dtls_refused: u64,
    /// Extension items skipped because this implementation makes no use of them.
    pub items_skipped: u64,
    /// Empty datagrams, and extension maps and transfers that contradict the format.
    pub violations: u64,
    /// Received bundles that the user refused; the sender is not informed.
    pub refused: u64,
    /// Bundles that were too long to send.
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
        let repeating = Config { transfers: true, copies: 3, copy_interval: second * 30, ..plain.clone() };
        assert_eq!((plain.check(), repeating.check()), (Ok(()), Ok(())));
        for (key, config) in [
            ("datagram-bytes-max", Config { datagram_bytes_max: 0, ..plain.clone() }),
            ("datagram-bytes-max", Config { datagram_bytes_max: 63, transfers: true, ..plain.clone() }),
            ("transfer-bytes-max", Config { transfer_bytes_max: 0, ..plain.clone() }),
            ("transfer-bytes-max", Config { transfer_bytes_max: 1 << 32, ..plain.clone() }),
            ("copies", Config { copies: 0, transfers: true, ..plain.clone() }),
            ("copies", Config { copies: 9, transfers: true, ..plain.clone() }),
            ("copies", Config { copies: 2, ..plain.clone() }),
            ("copy-interval", Config { copy_interval: Duration::ZERO, ..plain.clone() }),
            ("copy-interval", Config { copy_interval: second * 61, ..plain.clone() }),
            ("copy-interval", Config { copies: 3, copy_interval: second * 31, ..repeating.clone() }),
            ("copies-bytes-max", Config { copies_bytes_max: 0, ..plain.clone() }),
            ("incoming-bytes-max", Config { incoming_bytes_max: (16 << 20) - 1, ..plain.clone() }),
            ("transfer-timeout", Config { transfer_timeout: Duration::ZERO, ..plain.clone() }),
            ("transfer-timeout", Config { transfer_timeout: second * 61, ..plain.clone() }),
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
