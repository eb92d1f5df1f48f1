//! Open files and sockets: how many the process may have, and how many a node may come to need.
//!
//! A node starts with the limit that its system gives programs that do not ask (1,024 in most), and raises it as far as it may.
//!
//! Units: descriptors.

use crate::config::{Config, StorageKind};
use crate::storage::SEGMENT_BYTES;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The program's own: standard streams, event queues, signals, locks, and what is open for a moment.
const OWN: u64 = 32;
/// Fewer segments of the store than this leave no place to work.
const SEGMENTS_MIN: u64 = 32;

/// How many the process may have now, and how many it may raise that to.
pub(crate) fn limits() -> (u64, u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX))
}

/// Raises the limit as far as the process may.
pub(crate) fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Where the system does not let it, what it has is what there is: `status` and `--check` say how much.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// How many a node may come to need beside its store, each with what for.
fn needs(config: &Config) -> [(u64, &'static str); 4] {
    let callers = if config.listen.is_empty() { 0 } else { config.stream.callers_max as u64 };
    let http = if config.http.listen.is_none() { 0 } else { config.http.connections_max as u64 };
    let sockets = config.listen.len() + config.listen_udp.len() + config.link.len() + 2;
    // A folder has an event queue, what the system tells of it, and a file.
    let folders = 6 * (config.drop.len() + config.receive.len());
    [
        (callers, "peers that call"),
        (config.applications.connections_max as u64, "applications"),
        (http, "the HTTP interface"),
        (OWN + (sockets + folders) as u64, "links, folders and the program itself"),
    ]
}

/// In words.
pub(crate) fn explain(config: &Config) -> String {
    explain_with(config, limits().1)
}

/// In words, where a process may have so many.
fn explain_with(config: &Config, most: u64) -> String {
    let needs = needs(config);
    let sum: u64 = needs.iter().map(|(count, _)| count).sum();
    let some = needs.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = some.map(|(count, what)| format!("{count} for {what}")).collect();
    let words = format!(
        "It may have {most} files and sockets open here, and come to need {sum}: {}.",
        parts.join(", ")
    );
    let left = most.saturating_sub(sum);
    let more = "`ulimit -Hn`, or LimitNOFILE= of its systemd unit, allows more";
    if left < SEGMENTS_MIN {
        return format!("WARNING: {words} {more}.");
    }
    // Up to half of what lies in segments is waste before it is tidied away.
    let store_bytes = left.saturating_mul(SEGMENT_BYTES / 2);
    match config.storage.kind {
        StorageKind::Disk if store_bytes < config.agent.limits.store_bytes_max => {
            format!("{words} The rest is enough for {} GB in the store; {more}.", store_bytes / 1_000_000_000)
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
        assert!(explain_with(&config, 1 << 20).contains("512 for peers that call, 256 for applications"));
        config.agent.limits.store_bytes_max = 1 << 40;
        let words = explain_with(&config, 2000);
        assert!(!words.contains("WARNING") && words.contains("enough for 40 GB in the store"), "{words}");
        config.agent.limits.store_bytes_max = 1 << 30;
        assert!(!explain_with(&config, 2000).contains("GB"));
        config.stream.callers_max = 100_000;
        assert!(explain_with(&config, 2000).starts_with("WARNING: "));
    }
}
