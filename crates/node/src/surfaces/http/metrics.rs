//! Metrics for Prometheus: the status in OpenMetrics text, so that the two always agree.
//!
//! Names follow Prometheus: a prefix, the unit at the end, `_total` for counters. Counters of the agent with the same first word are
//! one family with a `reason`. Configured links have one label each; incoming connections, which come and go, are only part of the
//! sums over all sessions.

use crate::view::{Counts, Link, Status, Tnc};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::fmt;

/// Encodes the metrics.
pub(super) fn text(status: Status) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(status)));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes everything");
    text
}

#[derive(Debug)]
struct Scrape(Status);

/// Values of one family by label.
type Family = BTreeMap<String, f64>;

struct Out<'a>(DescriptorEncoder<'a>);

impl Out<'_> {
    fn one(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        kind: MetricType,
        value: f64,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, unit, kind)?;
        match kind {
            MetricType::Counter => metric.encode_counter::<NoLabelSet, _, f64>(&value, None),
            _ => metric.encode_gauge(&value),
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.one(name, help, None, MetricType::Gauge, value)
    }

    fn bytes(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, Some(&Unit::Bytes), MetricType::Gauge, value as f64)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, None, MetricType::Counter, value as f64)
    }

    fn family(
        &mut self,
        (name, help): (&str, &str),
        unit: Option<&Unit>,
        kind: MetricType,
        label: &'static str,
        family: &Family,
    ) -> fmt::Result {
        if family.is_empty() {
            return Ok(());
        }
        let mut metric = self.0.encode_descriptor(name, help, unit, kind)?;
        for (said, value) in family {
            let labels = [(label, said.as_str())];
            let mut one = metric.encode_family(&labels)?;
            match kind {
                MetricType::Counter => one.encode_counter::<NoLabelSet, _, f64>(value, None)?,
                _ => one.encode_gauge(value)?,
            }
        }
        Ok(())
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.0;
        let mut out = Out(encoder);
        node(&mut out, status)?;
        agent(&mut out, &status.counters)?;
        links(&mut out, status)?;
        discovery(&mut out, status)?;
        gateways(&mut out, status)?;
        mail(&mut out, status)?;
        tncs(&mut out, status)?;
        let help = "Completed TLS handshakes";
        out.counter("longwire_tls_handshakes", help, status.tls.secured)?;
        let troubles =
            status.tls.troubles.iter().map(|(kind, count)| (kind.clone(), *count as f64)).collect();
        let words = ("longwire_tls_troubles", "TLS failures");
        out.family(words, None, MetricType::Counter, "kind", &troubles)?;
        turns(&mut out, status)?;
        process(&mut out, status)?;
        http(&mut out, &status.http)
    }
}

fn node(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let who = [("node", status.node.as_str()), ("version", status.version.as_str())];
    out.0
        .encode_descriptor("longwire_node", "Node ID and version", None, MetricType::Info)?
        .encode_info(&who)?;
    out.gauge("longwire_ready", "1 once the store has been read", f64::from(u8::from(status.ready)))?;
    let help = "Time since startup";
    out.one("longwire_uptime", help, Some(&Unit::Seconds), MetricType::Gauge, status.uptime_s)?;
    out.gauge("longwire_store_bundles", "Bundles in the store", status.bundles as f64)?;
    out.gauge(
        "longwire_store_limit_bundles",
        "Maximum number of bundles in the store",
        status.bundles_max as f64,
    )?;
    out.bytes("longwire_store", "Bundles in the store", status.stored_bytes)?;
    out.bytes("longwire_store_limit", "Maximum size of the bundles in the store", status.stored_bytes_max)?;
    out.bytes("longwire_buffered", "Payload buffered in memory", status.buffered_bytes)?;
    out.gauge("longwire_applications", "Connected applications", status.applications as f64)?;
    out.gauge("longwire_endpoints", "Registered endpoints", status.endpoints.len() as f64)?;
    out.gauge("longwire_store_records_found", "Records found at startup", status.store.records_found as f64)?;
    out.bytes(
        "longwire_store_torn",
        "Bytes of writes cut short by a crash, found at startup",
        status.store.torn_bytes,
    )?;
    let help = "Damaged places found in the store; copies are kept where there is space";
    out.counter("longwire_store_damaged_places", help, status.store.damaged)?;
    let help = "Records found damaged or missing at startup";
    out.gauge("longwire_store_harmed_records", help, status.store.harmed as f64)?;
    let help = "Missing records at startup that cannot be identified";
    out.gauge("longwire_store_unnamed_records", help, status.store.unnamed as f64)?;
    let help = "Writes that failed because the disk was full";
    out.counter("longwire_store_disk_full", help, status.store.disk_full)?;
    let help = "Completed scrubs of the store";
    out.counter("longwire_store_scrubs", help, status.store.scrubs)?;
    out.bytes(
        "longwire_received",
        "Bytes received and not yet stored, over all connections",
        status.received_bytes,
    )?;
    let help = "Bytes queued for connections and not yet accepted by the kernel";
    out.bytes("longwire_queued", help, status.queued_bytes)?;
    let callers = &status.callers;
    out.gauge("longwire_callers", "Incoming connections", callers.now as f64)?;
    let help = "Incoming connections without a session: not established yet, or ended";
    out.gauge("longwire_callers_opening", help, callers.opening as f64)?;
    out.counter("longwire_callers_arrived", "Incoming connections since startup", callers.arrived)?;
    let help = "Incoming connections closed in favour of newer ones";
    out.counter("longwire_callers_gave_way", help, callers.gave_way)?;
    let help = "Incoming connections refused because there were too many";
    out.counter("longwire_callers_turned_away", help, callers.turned_away)?;
    let help = "Connections closed because the peer stopped reading";
    out.counter("longwire_stalled_connections", help, status.stalled_connections)?;
    let help = "Applications connected to the control socket";
    out.gauge("longwire_control", help, status.control.now as f64)?;
    let help = "Applications refused because there were too many";
    out.counter("longwire_control_turned_away", help, status.control.turned_away)?;
    let help = "Applications disconnected because they stopped reading";
    out.counter("longwire_control_stalled", help, status.control.stalled)
}

/// Groups of the agent's counters, by prefix.
const GROUPS: [(&str, &str, &str); 3] = [
    ("refused_", "longwire_bundles_refused", "Transfers from peers that were refused"),
    ("deleted_", "longwire_bundles_deleted", "Bundles deleted before delivery or forwarding"),
    ("dropped_", "longwire_bundles_dropped", "Bundles dropped"),
];

fn agent(out: &mut Out<'_>, counters: &Counts) -> fmt::Result {
    for (start, name, help) in GROUPS {
        let group =
            counters.iter().filter_map(|(counter, count)| Some((counter.strip_prefix(start)?, *count)));
        let family: Family = group.map(|(reason, count)| (reason.to_owned(), count as f64)).collect();
        out.family((name, help), None, MetricType::Counter, "reason", &family)?;
    }
    for (counter, count) in counters {
        if GROUPS.iter().any(|(start, ..)| counter.starts_with(start)) {
            continue;
        }
        let (name, unit) = name_of("longwire_agent", counter);
        let unit = unit.as_ref();
        out.one(&name, help(counter), unit, MetricType::Counter, *count as f64)?;
    }
    Ok(())
}

/// Name of a family, and its unit, which is appended.
fn name_of(prefix: &str, counter: &str) -> (String, Option<Unit>) {
    match counter {
        "payload_sent" | "payload_received" => (format!("{prefix}_{counter}"), Some(Unit::Bytes)),
        _ if counter.contains("_bytes") => {
            (format!("{prefix}_{}", counter.replacen("_bytes", "", 1)), Some(Unit::Bytes))
        }
        _ => (format!("{prefix}_{counter}"), None),
    }
}

fn help(counter: &str) -> &'static str {
    match counter {
        "received" => "Bundles received from peers",
        "received_cut" => "Interrupted transfers stored as fragments",
        "sent_here" => "Bundles accepted from applications",
        "forwarded" => "Bundles acknowledged by the next hop",
        "fragments_sent" => "Transfers of part of a bundle",
        "payload_bytes_saved" => "Payload of interrupted transfers that did not have to be resent",
        "delivered" => "Deliveries accepted by applications",
        "lost" => "Incoming transfers that failed before anything could be kept",
        "sends_failed" => "Sends that failed for lack of space or because of a limit",
        "reports_sent" => "Status reports sent",
        "reports_suppressed" => "Requested status reports that were not sent",
        "admin_unknown" => "Unknown administrative records",
        "tombstones_dropped" => "Tombstones of delivered bundles discarded because there were too many",
        "records_foreign" => "Records in the store from another program or version",
        "records_unread" => {
            "Records that the device could not read at the start; they are left for the next start"
        }
        "records_short" => "Truncated records dropped from the store",
        "ignored" => "Requests and indications ignored because they match nothing",
        "sessions" => "Established sessions",
        "attempts" => "Attempts to connect",
        "segments_sent" => "Segments sent",
        "segments_received" => "Segments received",
        "payload_sent" => "Bundles sent, including headers",
        "payload_received" => "Bundles received, including headers",
        "keepalives_sent" => "Keep-alives sent",
        "keepalives_received" => "Keep-alives received",
        "violations" => "Protocol violations",
        "rejected" => "Messages rejected by the peer",
        "refused" => "Incoming transfers refused",
        _ => "Counter of the same name in the status",
    }
}

/// Each counter, with its value for each name.
fn by_counter<'a>(all: impl Iterator<Item = (&'a String, &'a Counts)>) -> BTreeMap<&'a str, Family> {
    let mut families: BTreeMap<&str, Family> = BTreeMap::new();
    for (name, counters) in all {
        for (counter, count) in counters {
            families.entry(counter).or_default().insert(name.clone(), *count as f64);
        }
    }
    families
}

fn links(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let links: Vec<&Link> = status.links.iter().filter(|link| !link.calls).collect();
    let up: Family = links.iter().map(|link| (link.name.clone(), f64::from(u8::from(link.up)))).collect();
    out.family(("longwire_link_up", "1 while the link is up"), None, MetricType::Gauge, "link", &up)?;
    for (counter, family) in by_counter(links.iter().map(|link| (&link.name, &link.counters))) {
        let (name, unit) = name_of("longwire_link", counter);
        out.family((&name, help(counter)), unit.as_ref(), MetricType::Counter, "link", &family)?;
    }
    for (counter, count) in &status.sessions {
        let (name, unit) = name_of("longwire_tcpcl", counter);
        out.one(&name, help(counter), unit.as_ref(), MetricType::Counter, *count as f64)?;
    }
    Ok(())
}

fn discovery(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let Some(discovery) = &status.discovery else { return Ok(()) };
    let help = "Neighbours that have announced themselves";
    out.gauge("longwire_neighbours", help, discovery.neighbours.len() as f64)?;
    for (counter, count) in &discovery.counters {
        let help = match counter.as_str() {
            "announced" => "Announcements of this node",
            "heard" => "Announcements of neighbours",
            "not_admitted" => "Announcements of nodes that may not become neighbours",
            "contested" => "Announcements that the known key of the node has not signed",
            "superseded" => "Announcements older than one received before",
            "not_fresh" => "Signed announcements that were made too long ago, or in the future",
            "not_read" => "Announcements not read because there were too many at once",
            "not_understood" => "Datagrams and texts that are no announcements",
            "refused" => "Announcements beyond the maximum of neighbours or of ways to one",
            "found" => "Nodes that became neighbours",
            "lost" => "Neighbours from which nothing was heard any more",
            _ => "Counter of the same name in the status",
        };
        out.counter(&format!("longwire_discovery_{counter}"), help, *count)?;
    }
    Ok(())
}

fn gateways(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let open: Family =
        status.gateways.iter().map(|gateway| (gateway.name.clone(), gateway.open as f64)).collect();
    let words = ("longwire_gateway_open", "Connections of programs, or senders of datagrams");
    out.family(words, None, MetricType::Gauge, "gateway", &open)?;
    for (counter, family) in
        by_counter(status.gateways.iter().map(|gateway| (&gateway.name, &gateway.counters)))
    {
        let (name, unit) = name_of("longwire_gateway", counter);
        out.family((&name, gateway_help(counter)), unit.as_ref(), MetricType::Counter, "gateway", &family)?;
    }
    Ok(())
}

fn gateway_help(counter: &str) -> &'static str {
    match counter {
        "connections" => "Connections of programs and to programs, or senders of datagrams",
        "refused" => "Connections refused: too many, the link is down, or the program is not there",
        "reset" => "Connections that ended with a reset",
        "sent_bytes" => "Data from programs",
        "received_bytes" => "Data to programs",
        "dropped" => "Datagrams dropped because they were damaged or the socket was full",
        "custody" => "Connections of which the node has taken custody",
        "delivered" => "Connections in custody that were delivered to the program",
        "retries" => "Attempts to deliver that failed and are repeated",
        "answer_bytes_dropped" => "Answers of programs to data that were in custody, which have no way back",
        _ => "Counter of the same name in the status",
    }
}

fn mail(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let Some(mail) = &status.mail else { return Ok(()) };
    let words = "Connections of mail programs";
    out.one("longwire_mail_open", words, None, MetricType::Gauge, mail.open as f64)?;
    let words = "Messages on their way whose sender is to be notified";
    out.one("longwire_mail_pending", words, None, MetricType::Gauge, mail.pending as f64)?;
    for (counter, count) in &mail.counters {
        let (name, unit) = name_of("longwire_mail", counter);
        out.one(&name, mail_help(counter), unit.as_ref(), MetricType::Counter, *count as f64)?;
    }
    Ok(())
}

fn mail_help(counter: &str) -> &'static str {
    match counter {
        "submitted" => "Messages accepted from mail programs",
        "submissions_refused" => "Senders, recipients and messages of mail programs that were refused",
        "delivered" => "Messages written to mailboxes",
        "returned" => "Messages and recipients that were refused on arrival",
        "invalid" => "Bundles for mail without a valid message or receipt",
        "receipts_sent" => "Receipts sent to the nodes of senders",
        "receipts_not_sent" => "Receipts not sent, because there were too many of late",
        "notices_delivered" => "Notices of delivery written to mailboxes of senders",
        "notices_failed" => "Notices of failure written to mailboxes of senders",
        "connections_refused" => "Connections of mail programs refused because of the limit",
        _ => "Counter of the same name in the status",
    }
}

fn tncs(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let by_name = |value: fn(&Tnc) -> f64| -> Family {
        status.tncs.iter().map(|tnc| (tnc.name.clone(), value(tnc))).collect()
    };
    let up = by_name(|tnc| f64::from(u8::from(tnc.up)));
    out.family(("longwire_tnc_up", "1 while the TNC is connected"), None, MetricType::Gauge, "tnc", &up)?;
    let waiting = by_name(|tnc| tnc.frames_waiting as f64);
    let words = ("longwire_tnc_waiting_frames", "Frames in the TNC that are not yet transmitted");
    out.family(words, None, MetricType::Gauge, "tnc", &waiting)?;
    for (counter, family) in by_counter(status.tncs.iter().map(|tnc| (&tnc.name, &tnc.counters))) {
        let name = format!("longwire_tnc_{counter}");
        out.family((&name, tnc_help(counter)), None, MetricType::Counter, "tnc", &family)?;
    }
    let retries: Family = status
        .links
        .iter()
        .filter(|link| !link.calls)
        .filter_map(|link| Some((link.name.clone(), link.radio.as_ref()?.retries as f64)))
        .collect();
    let words = ("longwire_link_retries", "Consecutive retries without an answer");
    out.family(words, None, MetricType::Gauge, "link", &retries)
}

fn tnc_help(counter: &str) -> &'static str {
    match counter {
        "sent" => "Frames sent to the TNC",
        "received" => "Frames received from the TNC",
        "damaged" => "Data from the TNC that is not a frame, is too long, or has a wrong checksum",
        "connections" => "Connections established to the TNC",
        "information_sent" => "I frames sent for the first time",
        "information_repeated" => "I frames resent",
        "information_received" => "I frames received in order or filling a gap",
        "duplicates" => "I frames received twice or outside the window",
        "timeouts" => "Expiries of the acknowledgement timer (T1)",
        _ => "Counter of the same name in the status",
    }
}

fn turns(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let turns = &status.turns;
    let mut buckets: Vec<(f64, u64)> =
        turns.within.iter().map(|within| (within.bound_s, within.count)).collect();
    let within: u64 = buckets.iter().map(|(_, count)| count).sum();
    buckets.push((f64::INFINITY, turns.count.saturating_sub(within)));
    let help = "Duration of a pass of the event loop, which is the longest time that input waits";
    out.0
        .encode_descriptor("longwire_turn", help, Some(&Unit::Seconds), MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(turns.busy_s, turns.count, &buckets, None)?;
    let help = "Longest pass of the event loop since startup";
    out.one("longwire_turn_longest", help, Some(&Unit::Seconds), MetricType::Gauge, turns.longest_s)
}

fn process(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let process = &status.process;
    out.bytes("process_resident_memory", "Resident memory", process.resident_bytes)?;
    let help = "User and system processor time";
    out.one("process_cpu", help, Some(&Unit::Seconds), MetricType::Counter, process.cpu_s)?;
    out.gauge("process_open_fds", "Open file descriptors", process.open_files as f64)?;
    out.gauge("process_max_fds", "Maximum number of open file descriptors", process.open_files_max as f64)
}

fn http(out: &mut Out<'_>, counts: &Counts) -> fmt::Result {
    let mut refused = Family::new();
    for (name, count) in counts {
        match name.strip_prefix("refused_") {
            Some(reason) => drop(refused.insert(reason.to_owned(), *count as f64)),
            None => {
                let help = "Counters of the HTTP interface";
                out.counter(&format!("longwire_http_{name}"), help, *count)?;
            }
        }
    }
    let help = "Connections and requests refused by the HTTP interface";
    out.family(("longwire_http_refused", help), None, MetricType::Counter, "reason", &refused)
}
