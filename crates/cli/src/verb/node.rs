//! `longwire node`.

use crate::failure::CommandFailure;
use clap::Args;
use longwire_node::standard_error::say;
use longwire_node::{Config, NodeSetup};
use std::path::PathBuf;

/// Run a node: stores bundles, forwards them when links are up, delivers them to applications
///
/// Nothing that it has accepted is lost, whenever it ends. Hang-up (SIGHUP) reads links and routes again. The exit status
/// is 1 if it cannot start, and 70 if a part of it failed by a fault of this program: started again, it goes on.
#[derive(Debug, Args)]
pub(crate) struct Node {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "node.toml")]
    config: PathBuf,
    /// Only say in words what a node with this configuration does, and whether it can start here
    #[arg(long)]
    check: bool,
    /// With --check: limits and times, too, and every setting with its value
    #[arg(long, requires = "check")]
    all: bool,
}

impl Node {
    pub(crate) fn run(&self) -> Result<(), CommandFailure> {
        let config = Config::load(&self.config).map_err(CommandFailure::Usage)?;
        if self.check {
            config.check_here()?;
            return crate::node_connection::print(&match self.all {
                true => config.explain_all(),
                false => {
                    format!("{}`--check --all` has limits, times and every setting.\n", config.explain())
                }
            });
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
        let setup = NodeSetup { path: Some(self.config.clone()), signals: true, ..NodeSetup::new(config) };
        let node = longwire_node::Node::start(setup)?;
        let opened = node.opened();
        if opened.torn_bytes > 0 || opened.damaged > 0 {
            say(format_args!(
                "store: {} records; {} bytes of a write that a crash cut off do not count, {} damaged places met",
                opened.records, opened.torn_bytes, opened.damaged
            ));
        }
        if opened.harmed > 0 || opened.unnamed > 0 {
            say(format_args!(
                "store: {} records are damaged or missing: the list is in {}; {} more are missing without a name",
                opened.harmed,
                list.display(),
                opened.unnamed
            ));
        }
        if opened.open_to_others > 0 {
            say(format_args!(
                "store: others than this node's user have rights to {} files and folders of {}, and the node cannot take them: \
                 they belong to another user, or the file system knows no rights",
                opened.open_to_others,
                path.display()
            ));
        }
        let mut addresses: Vec<String> = node.addresses().iter().map(ToString::to_string).collect();
        addresses.extend(stations);
        let at = if addresses.is_empty() { "nowhere".to_owned() } else { addresses.join(", ") };
        let http = node.http_address().map(|address| format!(", http://{address}/")).unwrap_or_default();
        say(format_args!("{name} is up: peers call at {at}, applications at {}{http}", control.display()));
        if let Some(callers) = callers {
            say(format_args!("{callers}"));
        }
        tell_supervisor();
        node.wait();
        Ok(())
    }
}

/// Tells systemd, if that has started it, that the node is up.
fn tell_supervisor() {
    if let Some(path) = std::env::var_os("NOTIFY_SOCKET")
        && let Ok(socket) = std::os::unix::net::UnixDatagram::unbound()
    {
        // Nobody is hurt if it does not want to know.
        let _ = socket.send_to(b"READY=1", path);
    }
}
