//! Configuration and counters of an endpoint.

use super::wire::{Width, status_header_bytes};
use crate::setting::{Fault, Settings, TIME_MAX, TIME_MIN, at_least, number, time};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Minimum length of the longest packet, bytes: a STATUS with the longest descriptors of this implementation, a stamp and a
/// hole.
pub const PACKET_BYTES_MIN: u64 = 128;
/// Time added to the inactivity limit that follows from the other settings.
const INACTIVITY_MARGIN: Duration = Duration::from_secs(2);
/// Number of answers for which the inactivity limit that follows from the other settings waits.
const INACTIVITY_ANSWERS: u32 = 16;

crate::setting::settings! {
    /// Configuration of a [`Link`](super::Link) or an [`Endpoint`](super::Endpoint).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Node ID of the peer, to which bundles are sent. Default: unknown, so that bundles take the link only by a route.
        pub peer_node_id: Option<String>,
        /// Endpoint ID in the beacons of this side. Default: the node ID.
        pub eid: Option<String>,
        /// Maximum length of a packet to send, bytes, at least 128. Default 1,400, which nearly every path carries
        /// unfragmented; the maximum of UDP over IPv4 is 65,507.
        pub packet_bytes: u64 = 1400,
        /// Maximum length of a file to receive, and of a bundle to send, bytes. Default 16 MiB.
        pub file_bytes_max: u64 = 16 << 20,
        /// Maximum number of bundles that are being sent or wait for the STATUS of the complete file. Default 256.
        pub sessions_max: usize = 256,
        /// Maximum number of bytes in bundles that are being sent or wait for their STATUS; one bundle may exceed it. Default
        /// 64 MiB.
        pub outgoing_bytes_max: u64 = 64 << 20,
        /// Maximum number of files that are being received; packets of more files are dropped. Default 1,024.
        pub incoming_sessions_max: usize = 1024,
        /// Maximum number of received bytes that the user has not stored, with 128 bytes for each piece of them and for each
        /// missing range; more packets are dropped. A quarter is reserved for the first missing bytes of a file, without which
        /// nothing may be stored in order. Default 64 MiB.
        pub incoming_bytes_max: u64 = 64 << 20,
        /// Maximum number of missing ranges of a file, at either side, and of packets for them that the sender knows to be
        /// under way; a packet or report that would make more ranges is dropped. Default 65,536.
        pub holes_max: usize = 65_536,
        /// Maximum number of open bundles that are not completely received from the user; more fail at once. Default 4,096.
        pub open_max: usize = 4096,
        /// Time that a signal takes to the peer (one-way light time). Default 1 s.
        pub one_way_delay: Duration = Duration::from_secs(1),
        /// Time that a packet may wait at one side, in addition to the delay. An answer is late after twice the delay and
        /// twice this margin. Default 500 ms.
        pub margin: Duration = Duration::from_millis(500),
        /// Interval of the requests for a STATUS while a file is sent, and of the STATUS packets with new holes while one is
        /// received. Default 1 s.
        pub status_interval: Duration = Duration::from_secs(1),
        /// Time that a STATUS with new holes waits for packets that arrive out of order. Default 20 ms.
        pub status_delay: Duration = Duration::from_millis(20),
        /// Maximum length of a STATUS to send, bytes, at least 128; more holes take several packets. Default 1,400.
        pub status_bytes: u64 = 1400,
        /// Rate of the STATUS packets, bit/s, including the headers of UDP and IP, where the way back is slower than
        /// `rate-bps`; zero: no limit but that. Default 0.
        pub status_rate_bps: u64 = 0,
        /// Number of times that METADATA, the request for a STATUS at the end of a file and the STATUS of a complete file are
        /// sent: their losses cost a round trip. Default 1.
        pub copies: u32 = 1,
        /// Time without new bytes, or without a new STATUS, after which a file fails. Default: the time of 16 answers, and 2 s.
        pub inactivity: Option<Duration>,
        /// Number of received files that are remembered after their end, so that late packets are answered. Default 16,384.
        pub closed_sessions_max: usize = 16_384,
        /// Transmission rate, bit/s, including the headers of UDP and IP; zero: as fast as the provider accepts. Default
        /// 1,000,000.
        pub rate_bps: u64 = 1_000_000,
        /// Maximum burst, as time at the rate. Default 10 ms.
        pub burst: Duration = Duration::from_millis(10),
        /// Length of the UDP and IP headers of a datagram, bytes. Default 28.
        pub overhead_bytes: u64 = 28,
        /// Interval of beacons, which state the presence and the abilities of this side. Default: none.
        pub beacon: Option<Duration>,
        /// Delay before a failed endpoint is opened again, or a silent peer is tried again; it doubles with each failure.
        /// Default 1 s.
        pub retry_min: Duration = Duration::from_secs(1),
        /// Maximum delay before a failed endpoint is opened again. Default 60 s.
        pub retry_max: Duration = Duration::from_secs(60),
    }
}

impl Config {
    /// Returns the time from the departure of a packet to the arrival of its answer, at the latest.
    pub fn answer_time(&self) -> Duration {
        self.one_way_delay.saturating_add(self.margin).saturating_mul(2).saturating_add(self.status_time())
    }

    /// Returns the time that the longest STATUS takes at its rate.
    fn status_time(&self) -> Duration {
        let rate_bps = if self.status_rate_bps == 0 { self.rate_bps } else { self.status_rate_bps };
        let bits = (self.status_bytes.min(self.packet_bytes) + self.overhead_bytes) * 8;
        if rate_bps == 0 { Duration::ZERO } else { Duration::from_secs_f64(bits as f64 / rate_bps as f64) }
    }

    /// Returns the time without new bytes, or without a new STATUS, after which a file fails.
    pub fn inactivity_limit(&self) -> Duration {
        let derived = self.answer_time().saturating_mul(INACTIVITY_ANSWERS).saturating_add(INACTIVITY_MARGIN);
        self.inactivity.unwrap_or(derived)
    }

    /// Returns the number of bytes in memory that only the first missing bytes of a file may use: without them, a user that
    /// needs the bytes in order frees none of the others.
    pub(super) fn incoming_reserve(&self) -> u64 {
        (self.incoming_bytes_max / 4).max(self.packet_bytes)
    }

    /// Returns the number of holes that fit into a STATUS with a stamp.
    pub(super) fn holes_of_status(&self, bytes_max: u64, width: Width) -> usize {
        let longest = bytes_max.min(self.status_bytes) as usize;
        let room = longest.saturating_sub(status_header_bytes(width, true));
        (room / (2 * width.bytes())).max(1)
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        number("packet-bytes", self.packet_bytes, PACKET_BYTES_MIN..=65_535, "1400 is usual")?;
        number("status-bytes", self.status_bytes, PACKET_BYTES_MIN..=65_535, "1400 is usual")?;
        at_least("file-bytes-max", self.file_bytes_max, 1, "with 0 nothing can be received")?;
        at_least("sessions-max", self.sessions_max, 1, "with 0 nothing can be sent")?;
        at_least("outgoing-bytes-max", self.outgoing_bytes_max, 1, "with 0 nothing can be sent")?;
        at_least("incoming-sessions-max", self.incoming_sessions_max, 1, "with 0 nothing can be received")?;
        at_least("incoming-bytes-max", self.incoming_bytes_max, 65_536, "67108864 is usual")?;
        at_least("holes-max", self.holes_max, 1, "65536 is usual")?;
        at_least("open-max", self.open_max, 1, "with 0 nothing can be sent")?;
        number("copies", self.copies, 1..=8, "1 sends everything once")?;
        number("overhead-bytes", self.overhead_bytes, 0..=65_535, "28 for IPv4, 48 for IPv6")?;
        let some = TIME_MIN..=TIME_MAX;
        let any = Duration::ZERO..=TIME_MAX;
        time("one-way-delay", self.one_way_delay, any.clone(), "1.3 s to the Moon")?;
        time("margin", self.margin, some.clone(), "500 ms is usual")?;
        time("status-interval", self.status_interval, some.clone(), "1 s is usual")?;
        time("status-delay", self.status_delay, any, "20 ms is usual")?;
        if let Some(inactivity) = self.inactivity {
            time("inactivity", inactivity, some.clone(), "must be longer than the outages of the link")?;
        }
        if let Some(interval) = self.beacon {
            time("beacon", interval, some.clone(), "remove it to send no beacons")?;
        }
        time("retry-min", self.retry_min, some, "1 s is usual")?;
        time("retry-max", self.retry_max, self.retry_min..=TIME_MAX, "must not be less than `retry-min`")
    }
}

/// Counters of an [`Endpoint`](super::Endpoint) since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Number of times that the endpoint was opened.
    pub joined: u64,
    /// Number of times that the endpoint failed or the peer's port was unreachable.
    pub failed: u64,
    /// Number of times that the peer answered nothing at all.
    pub silent: u64,
    /// Files to send that have begun.
    pub files_sent: u64,
    /// Files that the peer has received completely.
    pub files_completed: u64,
    /// Files to send that have failed.
    pub files_failed: u64,
    /// Files of which a packet was received.
    pub files_received: u64,
    /// Files that were received and stored completely.
    pub files_accepted: u64,
    /// Files whose reception has failed.
    pub files_lost: u64,
    /// Offered or requested files that the user refused.
    pub refused: u64,
    /// Transfers that continued with what the receiver had stored before.
    pub continued: u64,
    /// DATA packets sent with bytes for the first time.
    pub packets_sent: u64,
    /// DATA packets sent to fill holes.
    pub packets_repeated: u64,
    /// Requests for a STATUS in a DATA packet without bytes, at the end of a file.
    pub probes_sent: u64,
    /// DATA packets received with new bytes.
    pub packets_received: u64,
    /// DATA packets received without new bytes.
    pub duplicates: u64,
    /// Bytes of files sent for the first time.
    pub payload_sent: u64,
    /// Bytes of files sent again.
    pub payload_repeated: u64,
    /// Bytes of files received for the first time.
    pub payload_received: u64,
    /// METADATA packets sent.
    pub metadata_sent: u64,
    /// REQUEST packets sent.
    pub requests_sent: u64,
    /// REQUEST packets received.
    pub requests_received: u64,
    /// STATUS packets sent.
    pub status_sent: u64,
    /// Bytes of STATUS packets sent, with the headers of UDP and IP.
    pub status_bytes_sent: u64,
    /// STATUS packets received.
    pub status_received: u64,
    /// Holes listed in STATUS packets sent.
    pub holes_sent: u64,
    /// Reported holes that were not filled because bytes for them were under way.
    pub holes_under_way: u64,
    /// Beacons sent.
    pub beacons_sent: u64,
    /// Beacons received.
    pub beacons_received: u64,
    /// Files that ended because the peer was silent.
    pub inactive: u64,
    /// Files that were received with another content than that of their checksum, or another length.
    pub damaged: u64,
    /// Packets dropped because of a limit.
    pub dropped: u64,
    /// Packets of sessions that are unknown, and need no answer.
    pub strangers: u64,
    /// Packets that could not be decoded or broke a rule.
    pub violations: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let plain = Config::default;
        let second = Duration::from_secs(1);
        assert_eq!(plain().check(), Ok(()));
        for (key, config) in [
            ("packet-bytes", Config { packet_bytes: 127, ..plain() }),
            ("status-bytes", Config { status_bytes: 127, ..plain() }),
            ("file-bytes-max", Config { file_bytes_max: 0, ..plain() }),
            ("sessions-max", Config { sessions_max: 0, ..plain() }),
            ("outgoing-bytes-max", Config { outgoing_bytes_max: 0, ..plain() }),
            ("incoming-sessions-max", Config { incoming_sessions_max: 0, ..plain() }),
            ("incoming-bytes-max", Config { incoming_bytes_max: 65_535, ..plain() }),
            ("holes-max", Config { holes_max: 0, ..plain() }),
            ("open-max", Config { open_max: 0, ..plain() }),
            ("copies", Config { copies: 0, ..plain() }),
            ("overhead-bytes", Config { overhead_bytes: 1 << 16, ..plain() }),
            ("one-way-delay", Config { one_way_delay: TIME_MAX + second, ..plain() }),
            ("margin", Config { margin: Duration::ZERO, ..plain() }),
            ("status-interval", Config { status_interval: Duration::ZERO, ..plain() }),
            ("status-delay", Config { status_delay: TIME_MAX + second, ..plain() }),
            ("inactivity", Config { inactivity: Some(Duration::ZERO), ..plain() }),
            ("beacon", Config { beacon: Some(Duration::ZERO), ..plain() }),
            ("retry-min", Config { retry_min: Duration::ZERO, ..plain() }),
            ("retry-max", Config { retry_min: second * 2, retry_max: second, ..plain() }),
        ] {
            assert_eq!(config.check().unwrap_err().key, key);
        }
    }

    #[test]
    fn waits_and_lists_follow_from_delay_and_rate() {
        let config = Config { status_rate_bps: 9600, status_bytes: 572, ..Config::default() };
        // Twice 1.5 s, and 600 bytes at 9,600 bit/s.
        assert_eq!(config.answer_time(), Duration::from_millis(3_500));
        assert_eq!(config.inactivity_limit(), Duration::from_secs(58));
        let free = Config { rate_bps: 0, ..Config::default() };
        assert_eq!(free.answer_time(), Duration::from_secs(3));
        // 572 bytes less a header of 8, a stamp of 16 and two descriptors; two of them for each hole.
        assert_eq!(config.holes_of_status(65_507, Width::Bits32), 67);
        assert_eq!(config.holes_of_status(100, Width::Bits16), 18);
        assert_eq!(config.holes_of_status(1, Width::Bits64), 1);
    }
}
