//! Open files and sockets: how many the process may have, and how many a node may need.
//!
//! A node starts with the default limit of its system (1,024 on most) and raises it as far as it may.
//!
//! Unit: file descriptors.

use crate::config::{Config, StorageKind};
use crate::storage::SEGMENT_BYTES;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for internal use: standard streams, event queues, signals, locks, and short-lived files.
const OWN: u64 = 32;
/// Minimum number of segments of the store that must fit.
const SEGMENTS_MIN: u64 = 32;

/// Returns the current limit and the maximum to which the process may raise it.
pub(crate) fn limits() -> (u64, u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX))
}

/// Raises the limit as far as the process may.
pub(crate) fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // If the system refuses, the limit stays as it is; `status` and `--check` show it.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Returns the maximum number of descriptors without the store, for each use.
fn needs(config: &Config) -> [(u64, &'static str); 6] {
    let callers = if config.listen.is_empty() { 0 } else { config.stream.callers_max as u64 };
    let http = if config.http.listen.is_none() { 0 } else { config.http.connections_max as u64 };
    // A connection of a gateway that takes custody needs a file as well.
    let gateways = config
        .gateway
        .iter()
        .map(|gateway| gateway.connections_max as u64 * if gateway.takes_custody() { 2 } else { 1 });
    let sockets =
        config.gateway.len() + config.listen.len() + config.listen_udp.len() + config.link.len() + 2;
    // The mail service writes one file at a time.
    let mail = if config.mail.folder.is_none() { 0 } else { config.mail.connections_max as u64 + 4 };
    // A folder needs an event queue, a watch and a file.
    let folders = 6 * (config.drop.len() + config.receive.len());
    [
        (callers, "incoming connections"),
        (config.applications.connections_max as u64, "applications"),
        (http, "the HTTP interface"),
        (gateways.sum(), "gateways"),
        (mail, "mail"),
        (OWN + (sockets + folders) as u64, "links, folders and internal use"),
    ]
}

/// Describes the limit `most` for an operator.
pub(crate) fn explain(config: &Config, most: u64) -> String {
    let needs = needs(config);
    let sum: u64 = needs.iter().map(|(count, _)| count).sum();
    let some = needs.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = some.map(|(count, what)| format!("{count} for {what}")).collect();
    let words = format!(
        "The limit of open files is {most}; this configuration may need {sum}: {}.",
        parts.join(", ")
    );
    let left = most.saturating_sub(sum);
    let more = "raise it with `ulimit -Hn` or LimitNOFILE= in the systemd unit";
    if left < SEGMENTS_MIN {
        return format!("WARNING: {words} To avoid failures, {more}.");
    }
    // Up to half of the data in segments is waste before it is compacted.
    let store_bytes = left.saturating_mul(SEGMENT_BYTES / 2);
    match config.storage.kind {
        StorageKind::Disk if store_bytes < config.agent.limits.store_bytes_max => {
            format!(
                "{words} The remainder is enough for {} GB in the store; {more}.",
                store_bytes / 1_000_000_000
            )
        }
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_may() {
        raise();
        let (now, most) = limits();
        assert_eq!(now, most);
    }

    #[test]
    fn what_a_node_needs_follows_its_limits() {
        let mut config = Config { listen: vec!["[::]:4556".into()], ..Config::default() };
        assert!(explain(&config, 1 << 20).contains("512 for incoming connections, 256 for applications"));
        config.agent.limits.store_bytes_max = 1 << 40;
        let words = explain(&config, 2000);
        assert!(!words.contains("WARNING") && words.contains("enough for 40 GB in the store"), "{words}");
        config.agent.limits.store_bytes_max = 1 << 30;
        assert!(!explain(&config, 2000).contains("GB"));
        config.stream.callers_max = 100_000;
        assert!(explain(&config, 2000).starts_with("WARNING: "));
    }
}
