//! `longwire status`.

use crate::failure::CommandResult;
use crate::node_connection::{NodeOptions, bytes, seconds};
use crate::watch::WatchOptions;
use clap::Args;
use longwire_node::view;
use std::fmt::Write;

/// Show a node's state: stored bundles, links and counters
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    watch: WatchOptions,
    #[command(flatten)]
    reach: NodeOptions,
}

impl Status {
    pub(crate) fn run(&self) -> CommandResult {
        let mut talk = self.reach.connect()?;
        self.watch.show(&self.reach, || talk.status(), words)
    }
}

fn words(status: &view::Status) -> String {
    let mut out = format!(
        "{}, up for {}\nbundles: {} of at most {}; store: {} of at most {}\n",
        status.node,
        seconds(status.uptime_s),
        status.bundles,
        status.bundles_max,
        bytes(status.stored_bytes),
        bytes(status.stored_bytes_max),
    );
    if !status.ready {
        out += "reading the store\n";
    }
    out += &super::clock::jump(status).unwrap_or_default();
    if status.router != "static" {
        let _ = writeln!(out, "router: {}", status.router);
    }
    if status.store.disk_full != 0 {
        let _ = writeln!(out, "disk full: {} times", status.store.disk_full);
    }
    if status.store.harmed != 0 || status.store.unnamed != 0 {
        let _ = writeln!(
            out,
            "store at startup: {} records damaged or missing, {} more missing and not identified",
            status.store.harmed, status.store.unnamed
        );
    }
    if status.store.damaged != 0 {
        let _ = writeln!(out, "store: {} damaged places since startup; the latest:", status.store.damaged);
        for line in &status.store.latest_damage {
            let _ = writeln!(out, "  {line}");
        }
    }
    out += &super::links::tncs(&status.tncs);
    out += &super::links::words(&status.links);
    out += &super::links::neighbours(status.discovery.as_ref());
    for route in &status.learned_routes {
        out += &learned_route(route);
    }
    for refused in &status.refused {
        out += &refusal(refused);
    }
    out += &status.mail.as_ref().map(mail).unwrap_or_default();
    out += &security(&status.security);
    for (kind, count) in &status.tls.troubles {
        let _ = writeln!(out, "{:<28}{count}", format!("tls: {}", kind.replace('_', " ")));
    }
    for trouble in &status.tls.recent {
        let _ = writeln!(out, "tls, {} ago, {}: {}", seconds(trouble.ago_s), trouble.peer, trouble.what);
    }
    for (name, count) in status.counters.iter().filter(|(_, count)| **count != 0) {
        let _ = writeln!(out, "{:<28}{count}", name.replace('_', " "));
    }
    out
}

/// Formats signatures that prove nothing, and bundles that cannot be decrypted.
fn security(security: &view::Security) -> String {
    let mut out = String::new();
    for node in &security.contested {
        let _ = writeln!(
            out,
            "contested: another key, or none, was used for {node}\n  hint: \
             compare fingerprints with its operator; `longwire key list` shows the known one"
        );
    }
    for trouble in &security.failures {
        let _ = writeln!(
            out,
            "security: {} bundle{} of {}, {} deleted, the last {} ago: {}",
            trouble.count,
            if trouble.count == 1 { "" } else { "s" },
            trouble.node,
            trouble.deleted,
            seconds(trouble.last_s),
            trouble.why
        );
    }
    if let Some(trouble) = &security.trouble {
        let _ = writeln!(out, "known keys: {trouble}");
    }
    out
}

/// Formats mail.
fn mail(mail: &view::Mail) -> String {
    let port = mail.listen.as_ref().map(|at| format!("; mail programs at {at}, {} connected", mail.open));
    let count = |name: &str| mail.counters.get(name).copied().unwrap_or(0);
    let mut out = format!(
        "mail: {} submitted, {} delivered, {} waiting for a receipt{}\n",
        count("submitted"),
        count("delivered"),
        mail.pending,
        port.unwrap_or_default()
    );
    for (name, words) in [
        ("submissions_refused", "refused to mail programs"),
        ("returned", "refused on arrival"),
        ("invalid", "bundles that are no valid mail"),
        ("notices_failed", "notices of failure"),
    ] {
        if count(name) > 0 {
            let _ = writeln!(out, "  {words}: {}", count(name));
        }
    }
    if let Some(trouble) = &mail.trouble {
        let _ = writeln!(out, "  {trouble}");
    }
    out
}

/// Formats a route that was learned from announcements.
fn learned_route(route: &view::LearnedRoute) -> String {
    let wait =
        route.wait_s.map(|wait| format!(", which is expected in {}", seconds(wait))).unwrap_or_default();
    let mut out = format!(
        "route to {} via {}{wait}; expected delay {}\n",
        route.node,
        route.next,
        seconds(route.expected_s)
    );
    for link in &route.links {
        let down = link.down_s.map(|down| format!(", down for {}", seconds(down))).unwrap_or_default();
        let _ = writeln!(out, "  link to {}: {}{down}", link.to, seconds(link.expected_s));
    }
    out
}

/// Formats the refused bundles of a peer, or its datagrams of another protocol.
fn refusal(refused: &view::Refused) -> String {
    let address = refused.address.as_ref().map(|address| format!(", {address}")).unwrap_or_default();
    let is_datagram = refused.reason == view::Refused::OTHER_PROTOCOL;
    let mut out = format!(
        "refused {} {}{}, the last {} ago, from {} (link `{}`{address}): {}\n",
        refused.count,
        if is_datagram { "datagram" } else { "bundle" },
        if refused.count == 1 { "" } else { "s" },
        seconds(refused.last_s),
        refused.peer.as_deref().unwrap_or("a peer without a node ID"),
        refused.link,
        refused.what
    );
    if is_datagram {
        let _ = writeln!(out, "  hint: {}", view::Refused::PROTOCOL_HINT);
    }
    if !refused.accept.is_empty() {
        let list: Vec<String> = refused.accept.iter().map(|name| format!("\"{name}\"")).collect();
        let _ = writeln!(out, "  hint: set `accept = [{}]` for this peer to accept them", list.join(", "));
    }
    out
}
