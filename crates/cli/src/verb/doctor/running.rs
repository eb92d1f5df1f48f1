//! Checks of the state of a running node.

use super::{Doctor, Findings};
use crate::failure::CommandResult;
use crate::node_connection::{NodeConversation, bytes, seconds};
use longwire_node::Config;
use longwire_node::config::ClockSource;
use longwire_node::message::{Reply, Request};
use longwire_node::view::{Bundle, Filter, Link, State, Status};

/// Bundles a page.
const PAGE: usize = 1000;
/// Bundles without a route that are counted at most.
const COUNTED_MAX: usize = 10_000;
/// Time for which refusals and failed handshakes are reported, seconds: strangers cause some at every open port.
const RECENT_S: f64 = 86_400.0;

pub(super) fn look(
    doctor: &Doctor,
    config: &Config,
    node: &mut NodeConversation,
    findings: &mut Findings,
) -> CommandResult {
    let status = node.status()?;
    examine(doctor, config, &status, findings);
    let without_route = without_route(node)?;
    if let Some(first) = without_route.first() {
        findings.warning(
            format!(
                "{}{} without a route, such as {} to {}",
                without_route.len(),
                if without_route.len() == 1 { " bundle" } else { " bundles" },
                first.id,
                first.destination
            ),
            "they wait until a route exists or their lifetime ends",
            "add a [[link]] or [[route]] to the destination and reload the node, or correct the destination; `longwire bundles \
             --state no-route` lists them",
        );
    }
    Ok(())
}

fn without_route(node: &mut NodeConversation) -> CommandResult<Vec<Bundle>> {
    let filter = Filter { state: Some(State::NoRoute), ..Filter::default() };
    let mut all = Vec::new();
    let mut after = None;
    loop {
        node.ask(Request::Bundles { limit: PAGE, after, filter: filter.clone() })?;
        let page =
            node.wait(|said| if let Reply::Bundles { page } = said.head { Some(page) } else { None })?;
        all.extend(page.bundles);
        after = page.next;
        if after.is_none() || all.len() >= COUNTED_MAX {
            return Ok(all);
        }
    }
}

fn examine(doctor: &Doctor, config: &Config, status: &Status, findings: &mut Findings) {
    findings.ok(format!(
        "{} is running, version {}, for {}",
        status.node,
        status.version,
        seconds(status.uptime_s)
    ));
    if config.node_id().is_ok_and(|id| id.to_string() != status.node) {
        findings.error(
            format!("the control socket {} belongs to the node {}", config.control().display(), status.node),
            "commands with this configuration reach another node, and the node of this configuration cannot start",
            "give each node a folder, or a `control`, of its own",
        );
    }
    if status.version != env!("CARGO_PKG_VERSION") {
        findings.warning(
            format!(
                "the node runs version {}; this command is version {}",
                status.version,
                env!("CARGO_PKG_VERSION")
            ),
            "commands may not understand the node",
            "restart the node",
        );
    }
    if !status.ready {
        findings.warning(
            "the node is still reading its store",
            "bundles are not forwarded until it is done",
            "wait; the time depends on the size of the store",
        );
    }
    configuration(status, findings);
    clock(config, status, findings);
    store(status, findings);
    descriptors(status, findings);
    for link in status.links.iter().filter(|link| is_down(doctor, config, status, link)) {
        let (name, since) = (&link.name, seconds(link.since_s));
        let reason = link.why_down.as_deref().unwrap_or("not connected yet");
        let hint = match link.down_reason.as_deref() {
            Some("cut") => format!("open it with `longwire links heal {name}`"),
            _ => "check that the peer is running and that its address and port are right; `longwire links` shows all links"
                .to_owned(),
        };
        let what = format!("link `{name}` has been down for {since}: {reason}");
        findings.warning(what, "bundles for this link wait, or take another one", hint);
    }
    for tnc in status.tncs.iter().filter(|tnc| !tnc.up && tnc.attempts_failed > 0) {
        let reason = tnc.why_down.as_deref().unwrap_or("not connected");
        findings.error(
            format!("TNC `{}` at {} does not answer: {reason}", tnc.name, tnc.address),
            "links over this TNC stay down",
            "check that the TNC is switched on, or that its program is running and listens on that port",
        );
    }
    let folders = status.folders.iter().filter_map(|folder| Some((&folder.folder, folder.trouble.as_ref()?)));
    for (folder, trouble) in folders {
        let what = format!("folder {folder}: {trouble}");
        findings.error(what, "files are not sent or received", "correct the folder or its permissions");
    }
    for (name, trouble) in
        status.gateways.iter().filter_map(|gateway| Some((&gateway.name, gateway.trouble.as_ref()?)))
    {
        let what = format!("gateway {name}: {trouble}");
        findings.error(
            what,
            "programs cannot connect across the link",
            "correct the [[gateway]] or the program",
        );
    }
    if let Some(trouble) = status.discovery.as_ref().and_then(|discovery| discovery.trouble.as_ref()) {
        findings.warning(
            format!("discovery: {trouble}"),
            "other nodes do not find this one",
            "check that a network interface is up and may send multicast; `[discovery] interfaces` and `groups`; \
             docs/discovery.md",
        );
    }
    if let Some(trouble) = status.mail.as_ref().and_then(|mail| mail.trouble.as_ref()) {
        findings.error(
            format!("mail: {trouble}"),
            "mail is not received, or its senders are not notified",
            "correct `mail.folder` or its permissions, or make space on its disk",
        );
    }
    for refused in status.refused.iter().filter(|refused| refused.last_s < RECENT_S) {
        findings.warning(
            format!("data from link `{}` was refused: {}", refused.link, refused.what),
            "data of this peer does not get through",
            "`longwire status` shows which `accept` or `kind` would help; docs/peers.md",
        );
    }
    if let Some(latest) = status.tls.recent.first().filter(|latest| latest.ago_s < RECENT_S) {
        findings.warning(
            format!("TLS with {} failed {} ago: {}", latest.peer, seconds(latest.ago_s), latest.what),
            "sessions that require TLS are refused",
            "compare the certificates and `tls.trust` of both nodes; docs/tls.md",
        );
    }
}

fn configuration(status: &Status, findings: &mut Findings) {
    if let Some(refused) = &status.configuration.refused {
        findings.error(
            format!("the node refused its new configuration: {refused}"),
            "it continues with the previous one",
            "correct the file and reload the node",
        );
    }
    if !status.configuration.needs_restart.is_empty() {
        findings.warning(
            format!("changed settings need a restart: {}", status.configuration.needs_restart.join(", ")),
            "they are not in force",
            "restart the node",
        );
    }
}

fn clock(config: &Config, status: &Status, findings: &mut Findings) {
    if status.dtn_ms.is_none() && config.clock == ClockSource::System {
        findings.warning(
            "the node has no valid clock",
            "bundles are sent without a creation time, and contacts of a plan are not known",
            "set the clock with date or timedatectl",
        );
    }
    if status.clock_ahead_s != 0.0 {
        findings.warning(
            format!("the clock has jumped by {}", seconds(status.clock_ahead_s.abs())),
            "lifetimes follow elapsed time instead",
            "correct the clock, or confirm it with `longwire clock trust`",
        );
    }
}

fn store(status: &Status, findings: &mut Findings) {
    let hint = "raise `agent.limits`, or remove bundles with `longwire bundles cancel`; bundles leave when their links are up";
    let fills = [
        (
            status.bundles,
            status.bundles_max,
            format!("{} of at most {} bundles", status.bundles, status.bundles_max),
        ),
        (
            status.stored_bytes,
            status.stored_bytes_max,
            format!("{} of at most {}", bytes(status.stored_bytes), bytes(status.stored_bytes_max)),
        ),
    ];
    let before = findings.faults();
    for (now, max, words) in fills {
        let tenths = u128::from(now) * 10;
        if now >= max {
            findings.error(format!("the store is full: {words}"), "further bundles are refused", hint);
        } else if tenths >= u128::from(max) * 9 {
            findings.warning(
                format!("the store is nearly full: {words}"),
                "bundles will soon be refused",
                hint,
            );
        }
    }
    if status.store.disk_full != 0 {
        findings.error(
            format!(
                "the disk of the store was full {}",
                super::counted(status.store.disk_full as usize, "time")
            ),
            "bundles were refused",
            "remove files from the disk, or lower `agent.limits.store-bytes-max`",
        );
    }
    let damaged = status.store.damaged + status.store.harmed + status.store.unnamed;
    if damaged != 0 {
        findings.error(
            format!("the store has {} damaged or missing places or records", damaged),
            "the bundles concerned were deleted and reported; the disk may be failing",
            "`longwire status` lists the latest; back up the folder, check the disk, and run `longwire store repair` while the \
             node is not running",
        );
    }
    if findings.faults() == before {
        findings.ok(format!("store: {} of at most {} bundles", status.bundles, status.bundles_max));
    }
}

fn descriptors(status: &Status, findings: &mut Findings) {
    let (open, max) = (status.process.open_files, status.process.open_files_max);
    if max != 0 && u128::from(open) * 10 >= u128::from(max) * 8 {
        findings.warning(
            format!("the node has {open} of at most {max} files and sockets open"),
            "connections and stored bundles are refused at the limit",
            "raise it with `ulimit -Hn` or LimitNOFILE= in the systemd unit, and restart the node",
        );
    }
}

/// Returns true for a link that has been down for long although it should be up. Links with planned contacts are down between
/// them, idle ones are opened again when they are needed, and some are configured to stay closed.
fn is_down(doctor: &Doctor, config: &Config, status: &Status, link: &Link) -> bool {
    let in_contact = link.contacts.iter().any(|contact| {
        status.dtn_ms.is_some_and(|now| (contact.start_dtn_ms..contact.end_dtn_ms).contains(&now))
    });
    let should_be_up = link.contacts.is_empty() || in_contact;
    let stays_closed = config.link.iter().any(|settings| settings.name == link.name && !settings.open);
    let is_wanted = match link.down_reason.as_deref() {
        Some("idle") => false,
        Some("cut") => !stays_closed,
        _ => true,
    };
    !link.up
        && !link.calls
        && link.why_down.is_some()
        && is_wanted
        && should_be_up
        && link.since_s >= doctor.down_for.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_node::config::LinkSettings;
    use longwire_node::view::{ContactWindow, Process, Refused, Store, Tls, TlsTrouble};
    use std::time::Duration;

    fn faults(status: &Status) -> Vec<String> {
        let doctor = Doctor {
            config: "node.toml".into(),
            down_for: Duration::from_secs(300),
            expires_within: Duration::from_secs(1),
            json: false,
        };
        let closed = LinkSettings { name: "closed".into(), open: false, ..LinkSettings::default() };
        let config = Config { node: status.node.clone(), link: vec![closed], ..Config::default() };
        let mut findings = Findings::default();
        examine(&doctor, &config, status, &mut findings);
        findings.0.into_iter().filter(|finding| finding.why.is_some()).map(|finding| finding.what).collect()
    }

    fn healthy() -> Status {
        Status {
            node: "dtn://alice/".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ready: true,
            dtn_ms: Some(1000),
            bundles_max: 100,
            stored_bytes_max: 1000,
            ..Status::default()
        }
    }

    #[test]
    fn each_fault_of_a_running_node_is_reported_once() {
        assert_eq!(faults(&healthy()), Vec::<String>::new());
        let plants: [(Status, &str); 9] = [
            (Status { version: "0.0.1".into(), ..healthy() }, "the node runs version 0.0.1"),
            (Status { ready: false, ..healthy() }, "still reading its store"),
            (Status { dtn_ms: None, ..healthy() }, "no valid clock"),
            (Status { clock_ahead_s: -7200.0, ..healthy() }, "jumped by 2.0 h"),
            (Status { bundles: 90, ..healthy() }, "nearly full: 90 of at most 100 bundles"),
            (Status { stored_bytes: 1000, ..healthy() }, "the store is full: 1.0 kB of at most 1.0 kB"),
            (Status { store: Store { disk_full: 1, ..Store::default() }, ..healthy() }, "was full 1 time"),
            (Status { store: Store { harmed: 2, ..Store::default() }, ..healthy() }, "has 2 damaged"),
            (
                Status {
                    process: Process { open_files: 900, open_files_max: 1024, ..Process::default() },
                    ..healthy()
                },
                "900 of at most 1024 files",
            ),
        ];
        for (status, expected) in plants {
            let found = faults(&status);
            assert!(matches!(&found[..], [one] if one.contains(expected)), "{expected}: {found:?}");
        }
    }

    #[test]
    fn refusals_and_failed_handshakes_are_reported_for_a_day() {
        let with = |ago_s| {
            let refused =
                Refused { link: "bob".into(), what: "no CRC".into(), last_s: ago_s, ..Refused::default() };
            let trouble = TlsTrouble { ago_s, peer: "bob:4556".into(), what: "unknown authority".into() };
            let tls = Tls { recent: vec![trouble], ..Tls::default() };
            faults(&Status { refused: vec![refused], tls, ..healthy() })
        };
        let recent = with(60.0);
        assert!(recent[0].contains("data from link `bob` was refused: no CRC"), "{recent:?}");
        assert!(recent[1].contains("TLS with bob:4556 failed 60 s ago: unknown authority"), "{recent:?}");
        assert_eq!(with(100_000.0), [""; 0]);
    }

    #[test]
    fn a_link_that_is_meant_to_be_down_is_not_a_fault() {
        let link = Link {
            name: "bob".into(),
            why_down: Some("connection refused".into()),
            since_s: 301.0,
            ..Link::default()
        };
        let contact =
            |start_dtn_ms, end_dtn_ms| ContactWindow { start_dtn_ms, end_dtn_ms, ..ContactWindow::default() };
        let with = |link: Link| faults(&Status { links: vec![link], ..healthy() });
        assert_eq!(with(link.clone()), ["link `bob` has been down for 5 min: connection refused"]);
        assert_eq!(with(Link { since_s: 299.0, ..link.clone() }), [""; 0]);
        assert_eq!(with(Link { contacts: vec![contact(2000, 3000)], ..link.clone() }), [""; 0]);
        assert_eq!(with(Link { contacts: vec![contact(500, 3000)], ..link.clone() }).len(), 1);
        assert_eq!(with(Link { down_reason: Some("idle".into()), ..link.clone() }), [""; 0]);
        let cut = |name: &str| Link { name: name.into(), down_reason: Some("cut".into()), ..link.clone() };
        assert_eq!((with(cut("bob")).len(), with(cut("closed")).len()), (1, 0));
    }
}
