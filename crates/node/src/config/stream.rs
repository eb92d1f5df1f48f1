//! `[stream]`: what may wait between a connection and the engines.

use longwire_settings::error::Error;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits of what waits between a connection and the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct StreamSettings {
    /// Bytes handed over and not yet with the kernel. Less keeps urgent bundles from waiting behind others. Default
    /// 262,144.
    pub queue_bytes: u64,
    /// Bytes received and not yet safe; with more the peer has to wait. Default 4 MiB.
    pub window_bytes: u64,
    /// Connections that peers have opened. With more, one without a session gives way to a newcomer, then one of the address
    /// that has most, then one whose session carries no bundles, and after that newcomers are turned away. Default 512.
    pub callers_max: usize,
    /// Of these, from one IPv4 address or one IPv6 network of 64 bits. Default 128.
    pub callers_per_address_max: usize,
    /// A session that a peer opened gives way to a newcomer once it has carried no bundles for so long. Default 60 s.
    pub caller_idle: Duration,
    /// Bytes received over all connections and not yet safe; with more, each reads no more than a little. Buffers of which
    /// something stays in memory have as much; with more, what stays is copied. Default 32 MiB.
    pub received_bytes_max: u64,
    /// Bytes handed over to all connections and not yet with the kernel; with more, each takes no more than a little.
    /// Default 8 MiB.
    pub queued_bytes_max: u64,
    /// A connection whose peer takes nothing of what waits for it for so long is ended; its link then calls again. Default
    /// 5 min.
    pub stall: Duration,
    /// The kernel's receive buffer of a UDP socket, for datagrams that were not read yet, bytes (SO_RCVBUF); what comes beyond
    /// is lost. A kernel gives no more than net.core.rmem_max, and the node says so. From 4,096 to 2^30. Default 4 MiB.
    pub udp_receive_buffer_bytes: u32,
}

impl Default for StreamSettings {
    fn default() -> Self {
        StreamSettings {
            queue_bytes: 256 * 1024,
            window_bytes: 4 << 20,
            callers_max: 512,
            callers_per_address_max: 128,
            caller_idle: Duration::from_secs(60),
            received_bytes_max: 32 << 20,
            queued_bytes_max: 8 << 20,
            stall: Duration::from_secs(300),
            udp_receive_buffer_bytes: 4 << 20,
        }
    }
}

impl StreamSettings {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.callers_max == 0 || self.callers_per_address_max == 0 {
            return Err(Error::new(
                "`stream.callers-max` and `stream.callers-per-address-max` are at least 1",
            )
            .hint("where nobody is to call, leave `listen` empty"));
        }
        if self.queue_bytes == 0 || self.window_bytes == 0 || self.stall.is_zero() {
            return Err(Error::new(
                "`stream.queue-bytes`, `stream.window-bytes` and `stream.stall` are more than zero",
            )
            .hint("leave them out"));
        }
        let bytes = self.udp_receive_buffer_bytes;
        if !(4096..=1 << 30).contains(&bytes) {
            return Err(Error::new(format!(
                "`stream.udp-receive-buffer-bytes` is {bytes}, and has to be from 4096 to 1073741824"
            ))
            .hint("what a sender says at a time has to fit; leave it out for 4 MiB"));
        }
        Ok(())
    }
}
