//! A configuration in words.

use super::{Clock, Config, StorageKind};
use longwire_proto::tcp::config::Profile;
use std::fmt::Write;

impl Config {
    /// What a node with this configuration does, for a person.
    pub fn explain(&self) -> String {
        let mut out = String::new();
        let node = self.node_id().map_or_else(|_| self.node.clone(), |eid| eid.to_string());
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        line(format!("This node is {node}."));
        match &self.listen[..] {
            [] => line("Nobody can call it: `listen` is empty.".into()),
            all => line(format!("Peers may call at {}, in TCPCL version 3 or 4.", all.join(", "))),
        }
        for link in &self.link {
            let who =
                link.peer.as_ref().map_or("whoever is there".to_owned(), |peer| format!("{peer}, no other"));
            let when = if link.open { "It calls" } else { "When told to, it calls" };
            line(format!("{when} link `{}` at {}, and expects {who}.", link.name, link.address));
        }
        for route in &self.route {
            line(format!("Bundles for {} go via {} at cost {}.", route.to, route.via, route.cost));
        }
        if self.agent.direct_neighbours {
            line("Bundles for a neighbour go straight to it, without a route.".into());
        }
        match self.storage.kind {
            StorageKind::Disk => line(format!(
                "What it accepts is kept in {}, at most {} bundles and {} bytes; when that is full, {}.",
                self.storage.path.display(),
                self.agent.limits.bundles_max,
                self.agent.limits.store_bytes_max,
                match self.agent.evict {
                    longwire_proto::bp::agent::Evict::None => "newcomers are refused",
                    longwire_proto::bp::agent::Evict::LowestPriority => {
                        "the least urgent and oldest give way to what is more urgent"
                    }
                }
            )),
            StorageKind::Memory => {
                line("What it accepts is kept in memory only, and lost when it ends.".into())
            }
        }
        if self.clock == Clock::None {
            line("It uses no clock: its bundles carry their age.".into());
        }
        let reports = &self.agent.reports;
        let kinds = [
            (reports.reception, "reception"),
            (reports.forwarding, "forwarding"),
            (reports.delivery, "delivery"),
            (reports.deletion, "deletion"),
        ];
        let kinds: Vec<&str> = kinds.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        if kinds.is_empty() {
            line("It sends no status reports: whoever waits for a receipt waits in vain. `[agent.reports] delivery = true` changes that.".into());
        } else {
            line(format!("It reports {}, to whoever asks for it.", kinds.join(", ")));
        }
        if self.echo {
            line("It answers pings.".into());
        }
        line(format!("Applications reach it at {}.", self.control().display()));
        if self.tcp != Profile::default() {
            line(
                "Of [tcp] the system takes the sizes of the buffers; the rest is the system's own affair."
                    .into(),
            );
        }
        out
    }
}
