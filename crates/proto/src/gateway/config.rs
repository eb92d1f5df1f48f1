//! Settings of a gateway.

use crate::setting::{Fault, Settings, TIME_MAX, TIME_MIN, at_least, number, time};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

crate::setting::settings! {
    /// Limits of the gateway of a link.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Maximum concurrent connections of programs, those of this side and those of the peer together; further ones are refused.
        /// Default 1024.
        pub programs_max: usize = 1024,
        /// Maximum bytes of datagrams that wait for the link, for each program; the oldest are dropped. Default 256 KiB.
        pub datagram_queue_bytes_max: u64 = 256 * 1024,
        /// Maximum length of the parts in which a stream is passed to the link, bytes: a small one lets urgent data go first. Default
        /// 64 KiB.
        pub part_bytes_max: u64 = 64 * 1024,
        /// Time without data after which a sign of life is sent, so that the peer does not take a quiet connection for a lost one: less
        /// than half of the time after which it does. Default 30 s.
        pub keepalive: Duration = Duration::from_secs(30),
    }
}

/// Number of ports for own connections: those that are neither assigned nor registered (RFC 6335 6).
pub(super) const PORTS: u16 = 16_384;

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        let most = u64::from(PORTS) / 2;
        number("programs-max", self.programs_max, 1..=most, "each connection has a port of its own")?;
        at_least(
            "datagram-queue-bytes-max",
            self.datagram_queue_bytes_max,
            65_536,
            "the longest datagram must fit",
        )?;
        at_least("part-bytes-max", self.part_bytes_max, 1, "65536 is usual")?;
        time("keepalive", self.keepalive, TIME_MIN..=TIME_MAX, "30 s is usual")
    }
}
