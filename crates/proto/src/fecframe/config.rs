//! Configuration and counters of the layer.

use crate::fec::loss::least_repair;
use crate::setting::{Fault, Settings, TIME_MAX, TIME_MIN, at_least, number, rule, settings, time};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Number of repair symbols that a block may have besides one for each of its source symbols.
pub(super) const REPAIR_SPARE: u32 = 64;

settings! {
    /// Configuration of [`FecDatagrams`](super::FecDatagrams).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Probability that a datagram is lost, from 0 to 0.5, before the peer has reported any loss. Default 0.01.
        pub loss: f64 = 0.01,
        /// Number of datagrams that the setting `loss` counts as, beside those in the reports of the peer; 4,294,967,295
        /// ignores the reports in effect. Default 500.
        pub loss_weight: u32 = 500,
        /// Maximum probability that lost datagrams of a block cannot be restored, from 1e-12 to 1. Default 0.001.
        pub failure_max: f64 = 1e-3,
        /// Number of datagrams of a full block. Long blocks need less repair in proportion; short ones are restored
        /// sooner. Default 2,048.
        pub block_symbols: u32 = 2048,
        /// Repair symbols leave only in pauses of the user, and a full block has some only if there is one before the next block is
        /// full: for users that repeat what is missing, and that lose time only after their last datagram. Both ends must agree, and
        /// the receiver's `block_symbols` must not be less than the sender's. Default false.
        pub deferred: bool,
        /// Minimum number of repair symbols of a block. Default 1.
        pub repair_min: u32 = 1,
        /// Time without datagrams to send after which a block ends. Default 20 ms.
        pub idle: Duration = Duration::from_millis(20),
        /// Maximum memory of received blocks that are not restored, in bytes. Default 64 MiB.
        pub incoming_bytes_max: u64 = 64 << 20,
        /// Transmission rate, bit/s, including the headers of UDP and IP; zero: as fast as the provider accepts. Default
        /// 0.
        pub rate_bps: u64,
        /// Maximum burst, as time at the rate. Default 10 ms.
        pub burst: Duration = Duration::from_millis(10),
        /// Length of the UDP and IP headers of a datagram, bytes. Default 28.
        pub overhead_bytes: u64 = 28,
    }
}

impl Config {
    /// Number of repair symbols for a block of `source_symbols`, of which each is lost with the probability `loss`: the
    /// least with which decoding fails with a probability of at most [`failure_max`](Config::failure_max), but at least
    /// [`repair_min`](Config::repair_min), and at most one for each source symbol and 64.
    pub fn repair_symbols(&self, source_symbols: u32, loss: f64) -> u32 {
        let most = source_symbols + REPAIR_SPARE;
        let least = least_repair(source_symbols, loss, self.failure_max, most).unwrap_or(most);
        least.max(self.repair_min).min(most)
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        const LOSS: &str = "it is a probability; 0.01 is one datagram in a hundred";
        rule((0.0..=0.5).contains(&self.loss), "loss", "must be from 0 to 0.5", LOSS)?;
        let target = (1e-12..=1.0).contains(&self.failure_max);
        rule(target, "failure-max", "must be from 1e-12 to 1", "0.001 is usual")?;
        number("block-symbols", self.block_symbols, 1..=32_000, "2048 is usual")?;
        number("repair-min", self.repair_min, 0..=u64::from(REPAIR_SPARE), "1 is usual")?;
        time("idle", self.idle, TIME_MIN..=TIME_MAX, "20 ms is usual")?;
        at_least("incoming-bytes-max", self.incoming_bytes_max, 1, "67108864 is usual")?;
        time("burst", self.burst, Duration::ZERO..=TIME_MAX, "10 ms is usual")?;
        number("overhead-bytes", self.overhead_bytes, 0..=65_535, "28 for IPv4, 48 for IPv6")
    }
}

/// Counters since the creation of the layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Source symbols sent: datagrams of the user.
    pub sources_sent: u64,
    /// Repair symbols sent.
    pub repairs_sent: u64,
    /// Blocks ended by this side.
    pub blocks_sent: u64,
    /// Source symbols received.
    pub sources_received: u64,
    /// Repair symbols received.
    pub repairs_received: u64,
    /// Blocks begun by peers, as far as they are known here.
    pub blocks_received: u64,
    /// Blocks of which lost datagrams were restored.
    pub blocks_restored: u64,
    /// Datagrams restored.
    pub datagrams_restored: u64,
    /// Blocks that could not be restored, and are no longer expected to be; where repair is deferred, also blocks with a loss
    /// that no pause has followed.
    pub blocks_failed: u64,
    /// Source symbols dropped because they were restored or received before.
    pub duplicates: u64,
    /// Symbols dropped because their block is too old.
    pub late: u64,
    /// Datagrams and blocks that contradict the format or each other.
    pub violations: u64,
    /// Symbols and restored datagrams for which there was no memory.
    pub not_kept: u64,
    /// Restarts of the numbers of blocks: of peers that have restarted, or were unheard for long.
    pub renumbered: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fec::loss::decode_failure;

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let plain = Config::default();
        assert_eq!(plain.check(), Ok(()));
        for (key, config) in [
            ("loss", Config { loss: 0.51, ..plain.clone() }),
            ("loss", Config { loss: f64::NAN, ..plain.clone() }),
            ("failure-max", Config { failure_max: 0.0, ..plain.clone() }),
            ("block-symbols", Config { block_symbols: 0, ..plain.clone() }),
            ("repair-min", Config { repair_min: 65, ..plain.clone() }),
            ("idle", Config { idle: Duration::ZERO, ..plain.clone() }),
            ("incoming-bytes-max", Config { incoming_bytes_max: 0, ..plain.clone() }),
            ("burst", Config { burst: TIME_MAX + TIME_MIN, ..plain.clone() }),
            ("overhead-bytes", Config { overhead_bytes: 1 << 16, ..plain.clone() }),
        ] {
            assert_eq!(config.check().unwrap_err().key, key);
        }
    }

    #[test]
    fn repair_symbols_are_the_least_that_keep_the_target_within_the_limits() {
        let config = Config::default();
        for (sources, loss, repair) in [(1, 0.02, 1), (1, 0.11, 3), (700, 0.02, 27), (2_048, 0.11, 307)] {
            assert_eq!(config.repair_symbols(sources, loss), repair);
            assert!(decode_failure(sources, repair, loss) <= 1e-3, "{sources}");
            assert!(repair == 1 || decode_failure(sources, repair - 1, loss) > 1e-3, "{sources}");
        }
        assert_eq!(config.repair_symbols(100, 0.0), 1, "the minimum");
        assert_eq!(config.repair_symbols(1_000, 0.7), 1_064, "the maximum");
        assert_eq!(Config { repair_min: 0, ..config }.repair_symbols(100, 0.0), 0);
    }
}
