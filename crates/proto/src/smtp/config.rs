//! Settings of the server.

use crate::time::Duration;

/// Configuration of a [`Server`](super::Server).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of this host in greetings.
    pub host: String,
    /// Maximum length of a message, bytes (RFC 1870). Default 10 MiB.
    pub message_bytes_max: u64,
    /// Maximum recipients of a message. Default 100 (RFC 5321 4.5.3.1.8).
    pub recipients_max: usize,
    /// Maximum commands of a session before, between and after messages. Default 1,000.
    pub commands_max: u32,
    /// Maximum commands of a session that are refused. Default 50.
    pub refusals_max: u32,
    /// Time after which a silent mail program is disconnected. Default 5 min (RFC 5321 4.5.3.2.7).
    pub patience: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            host: "localhost".into(),
            message_bytes_max: 10 << 20,
            recipients_max: 100,
            commands_max: 1000,
            refusals_max: 50,
            patience: Duration::from_secs(300),
        }
    }
}
