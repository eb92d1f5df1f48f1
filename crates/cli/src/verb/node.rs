//! `longwire node`.

use crate::failure::{CommandFailure, CommandResult};
use clap::Args;
use longwire_node::config::DatagramListener;
use longwire_node::{Config, NodeSetup, log};
use std::path::PathBuf;
use tracing::{error, info, warn};

/// Run a node that stores bundles, forwards them when links are up and delivers them to applications
///
/// The node never loses a bundle that it has accepted, however it ends. SIGHUP reloads links, routes, limits and folders, and
/// the log says what changed. The exit status is 1 if the node cannot start, and 70 after an internal error: restart it, and it
/// continues.
///
/// It logs to stderr, under systemd with a priority for each line. The environment variable LONGWIRE_LOG selects messages by
/// level (off, error, warn, info, debug or trace; info if unset) and by target: `LONGWIRE_LOG=warn,store=info`. docs/log.md
/// lists the targets.
#[derive(Debug, Args)]
pub(crate) struct Node {
    /// Configuration file
    #[arg(long, value_name = "FILE", default_value = "node.toml")]
    config: PathBuf,
    /// Check the configuration, describe it and exit
    #[arg(long)]
    check: bool,
    /// With --check: also show limits, timers and the value of every setting
    #[arg(long, requires = "check")]
    all: bool,
}

impl Node {
    pub(crate) fn run(&self) -> CommandResult {
        log::begin().map_err(CommandFailure::Usage)?;
        let config = Config::load(&self.config).map_err(CommandFailure::Usage)?;
        if self.check {
            config.check_here()?;
            let more = "For limits, timers and every setting, use `--check --all`.\n";
            let words = if self.all { config.explain_all() } else { config.explain() + more };
            return crate::node_connection::print(&words);
        }
        longwire_node::ending::end_on_panic();
        let control = config.control();
        let path = config.storage.path.clone();
        let list = path.join("damaged/list.jsonl");
        let name = config.node.clone();
        let callers = config.who_may_call().filter(|_| config.listens_beyond_loopback());
        let stations = config.tnc.iter().filter(|tnc| tnc.answer);
        let stations: Vec<String> = stations
            .map(|tnc| format!("{} over TNC `{}`", tnc.callsign.to_ascii_uppercase(), tnc.name))
            .collect();
        let kind_of = |entry: &String| Ok(DatagramListener::parse(entry)?.kind);
        let kinds = config.listen_udp.iter().map(kind_of).collect::<CommandResult<Vec<_>>>()?;
        let setup = NodeSetup { path: Some(self.config.clone()), signals: true, ..NodeSetup::new(config) };
        let node = longwire_node::Node::start(setup)?;
        let opened = node.opened();
        if opened.torn_bytes > 0 || opened.damaged > 0 {
            warn!(
                target: "store",
                "store: {} records; discarded {} bytes of an incomplete write after a crash; found {} damaged places",
                opened.records,
                opened.torn_bytes,
                opened.damaged
            );
        }
        if opened.harmed > 0 || opened.unnamed > 0 {
            error!(
                target: "store",
                "store: {} records are damaged or missing (listed in {}); {} more are missing and cannot be identified",
                opened.harmed,
                list.display(),
                opened.unnamed
            );
        }
        if opened.open_to_others > 0 {
            warn!(
                target: "store",
                "store: other users can access {} files and folders of {}, and the node cannot restrict this: \
                 they belong to another user, or the file system has no permissions",
                opened.open_to_others,
                path.display()
            );
        }
        let mut addresses: Vec<String> = node.addresses().iter().map(ToString::to_string).collect();
        let datagrams = kinds.iter().zip(node.udp_addresses());
        addresses.extend(datagrams.map(|(kind, address)| format!("{kind} {address}")));
        addresses.extend(stations);
        let at = match addresses.is_empty() {
            true => "not accepting connections".to_owned(),
            false => format!("listening on {}", addresses.join(", ")),
        };
        let http = node.http_address().map(|address| format!(", http://{address}/")).unwrap_or_default();
        let mail =
            node.mail_address().map(|address| format!(", mail programs at {address}")).unwrap_or_default();
        info!(target: "node", "{name} is ready: {at}; control socket {}{http}{mail}", control.display());
        if let Some(callers) = callers {
            info!(target: "node", "{callers}");
        }
        tell_supervisor();
        node.wait();
        Ok(())
    }
}

/// Notifies systemd, if it has started this process, that the node is ready.
fn tell_supervisor() {
    if let Some(path) = std::env::var_os("NOTIFY_SOCKET")
        && let Ok(socket) = std::os::unix::net::UnixDatagram::unbound()
    {
        // A failed notification does not affect the node.
        let _ = socket.send_to(b"READY=1", path);
    }
}
