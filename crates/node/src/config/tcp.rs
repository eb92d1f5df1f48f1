//! `[tcp]`: the kernel's TCP, as far as a program can tell it.

use longwire_proto::tcp::config::Profile;
use longwire_settings::error::Error;
use longwire_settings::toml_text;
use serde::{Deserialize, Serialize};

/// Settings of the kernel's TCP, for each connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TcpSettings {
    /// The buffer for what is sent and not acknowledged, bytes (SO_SNDBUF); a kernel gives no more than net.core.wmem_max.
    /// Default: as large as the kernel makes it.
    pub send_buffer_bytes: Option<u32>,
    /// The buffer for what is received and not taken, and so the largest window, bytes (SO_RCVBUF); a kernel gives no more
    /// than net.core.rmem_max. Default: as large as the kernel makes it.
    pub receive_buffer_bytes: Option<u32>,
}

impl TcpSettings {
    pub(super) fn check(&self) -> Result<(), Error> {
        for (key, bytes) in [
            ("send-buffer-bytes", self.send_buffer_bytes),
            ("receive-buffer-bytes", self.receive_buffer_bytes),
        ] {
            if bytes.is_some_and(|bytes| !(1..=1 << 30).contains(&bytes)) {
                let bytes = bytes.unwrap_or_default();
                return Err(Error::new(format!(
                    "`tcp.{key}` is {bytes}, and has to be from 1 to 1073741824"
                ))
                .hint("twice the bandwidth-delay product is plenty; leave it out for what the kernel does"));
            }
        }
        Ok(())
    }

    /// Says what is wrong with a `[tcp]` that has settings of the TCP that experiments simulate: they would do nothing.
    pub(super) fn check_keys(tcp: &toml::Table) -> Result<(), Error> {
        let simulated = toml_text::to_table(&Profile::linux_6());
        let own = ["send-buffer-bytes", "receive-buffer-bytes"];
        let strange = |key: &&String| simulated.contains_key(*key) && !own.contains(&key.as_str());
        let strange: Vec<String> = tcp.keys().filter(strange).map(|key| format!("`{key}`")).collect();
        if strange.is_empty() {
            return Ok(());
        }
        let what =
            format!("[tcp]: a node's TCP is the kernel's, which takes nothing of {}", strange.join(", "));
        Err(Error::new(what).hint(
            "leave them out: it takes `send-buffer-bytes` and `receive-buffer-bytes`; for the rest `longwire compare` prints \
             the commands of the operating system",
        ))
    }
}
