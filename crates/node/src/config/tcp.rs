//! `[tcp]`: those settings of the kernel's TCP that a program can change.

use longwire_proto::tcp::config::Profile;
use longwire_settings::error::Error;
use longwire_settings::toml_text;
use serde::{Deserialize, Serialize};

/// Settings of the kernel's TCP, for each connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TcpSettings {
    /// Send buffer, which holds unacknowledged data, bytes (SO_SNDBUF); the kernel allows at most net.core.wmem_max.
    /// Default: sized by the kernel.
    pub send_buffer_bytes: Option<u32>,
    /// Receive buffer, which holds data not yet read and so limits the window, bytes (SO_RCVBUF); the kernel allows at most
    /// net.core.rmem_max. Default: sized by the kernel.
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
                return Err(Error::new(format!("`tcp.{key}` is {bytes}; it must be from 1 to 1073741824"))
                    .hint(
                        "twice the bandwidth-delay product is enough; remove it to let the kernel decide",
                    ));
            }
        }
        Ok(())
    }

    /// Refuses a `[tcp]` with settings of the simulated TCP of experiments, which would have no effect here.
    pub(super) fn check_keys(tcp: &toml::Table) -> Result<(), Error> {
        let simulated = toml_text::to_table(&Profile::linux_6());
        let own = ["send-buffer-bytes", "receive-buffer-bytes"];
        let strange = |key: &&String| simulated.contains_key(*key) && !own.contains(&key.as_str());
        let strange: Vec<String> = tcp.keys().filter(strange).map(|key| format!("`{key}`")).collect();
        if strange.is_empty() {
            return Ok(());
        }
        let what = format!("[tcp]: {} cannot be set for the TCP of the kernel", strange.join(", "));
        Err(Error::new(what).hint(
            "only `send-buffer-bytes` and `receive-buffer-bytes` can be set here; for the others, `longwire compare` \
             prints operating system commands",
        ))
    }
}
