//! `[stream]`: limits of the buffers between connections and engines.

use longwire_proto::settings;
use longwire_settings::error::Error;
use serde::{Deserialize, Serialize};
use std::time::Duration;

settings! {
    /// Limits of the buffers between connections and engines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct StreamSettings {
        /// Maximum bytes per connection that are queued but not yet passed to the kernel; up to eight times as many while the kernel
        /// accepts that within 20 ms and other connections leave it. A small limit keeps urgent bundles from waiting behind others.
        /// Default 262,144.
        pub queue_bytes: u64 = 256 * 1024,
        /// Maximum bytes per connection that are received but not yet stored; beyond it the peer must wait. With a small limit, the
        /// disk is idle while the peer waits. For a UDP socket or a program of a gateway it is 4 MiB at most. Default 16 MiB.
        pub window_bytes: u64 = 16 << 20,
        /// Maximum incoming connections. Beyond it, a new connection replaces one without a session, then one of the address
        /// with the most connections, then one whose session carries no bundles; if there is none, it is refused. Default 512.
        pub callers_max: usize = 512,
        /// Maximum incoming connections from one IPv4 address or one IPv6 /64 network. Default 128.
        pub callers_per_address_max: usize = 128,
        /// Time without bundles after which a new connection may replace a session that a peer opened. Default 60 s.
        pub caller_idle: Duration = Duration::from_secs(60),
        /// Maximum bytes over all connections that are received but not yet stored; beyond it, each connection reads only small
        /// amounts. The same limit applies to buffers of which a part stays in memory; beyond it, that part is copied. Default
        /// 32 MiB.
        pub received_bytes_max: u64 = 32 << 20,
        /// Maximum bytes over all connections that are queued but not yet passed to the kernel; beyond it, each connection
        /// accepts only small amounts. Default 8 MiB.
        pub queued_bytes_max: u64 = 8 << 20,
        /// Time after which a connection is closed if its peer reads nothing of the queued data; its link then connects again.
        /// Default 5 min.
        pub stall: Duration = Duration::from_secs(300),
        /// Receive buffer of a UDP socket in the kernel, for datagrams not yet read, bytes (SO_RCVBUF); further datagrams are
        /// lost. The kernel allows at most net.core.rmem_max; the node reports if it gets less. From 4,096 to 2^30. Default 4 MiB.
        pub udp_receive_buffer_bytes: u32 = 4 << 20,
    }
}

impl StreamSettings {
    /// Returns the maximum unreleased bytes of a UDP socket or of a program: there may be many, and those of sockets are not among
    /// `received_bytes_max`.
    pub(crate) fn small_window_bytes(&self) -> u64 {
        const SMALL_WINDOW_BYTES_MAX: u64 = 4 << 20;
        self.window_bytes.min(SMALL_WINDOW_BYTES_MAX)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.callers_max == 0 || self.callers_per_address_max == 0 {
            return Err(Error::new(
                "`stream.callers-max` and `stream.callers-per-address-max` must be at least 1",
            )
            .hint("to accept no connections, leave `listen` empty"));
        }
        if self.queue_bytes == 0 || self.window_bytes == 0 || self.stall.is_zero() {
            return Err(Error::new(
                "`stream.queue-bytes`, `stream.window-bytes` and `stream.stall` must be greater than zero",
            )
            .hint("remove them to use the defaults"));
        }
        let bytes = self.udp_receive_buffer_bytes;
        if !(4096..=1 << 30).contains(&bytes) {
            return Err(Error::new(format!(
                "`stream.udp-receive-buffer-bytes` is {bytes}; it must be from 4096 to 1073741824"
            ))
            .hint("it must hold a burst of datagrams; remove it for the default of 4 MiB"));
        }
        Ok(())
    }
}
