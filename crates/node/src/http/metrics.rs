//! What is counted, for Prometheus: the status in OpenMetrics text, so the two always agree.
//!
//! Names follow Prometheus: a prefix, the unit at the end, `_total` behind what only grows. Counters of the agent whose
//! names begin alike are one family with a `reason`. Links of the configuration have a label each; callers, who come and go,
//! are in the sums over all sessions.

use crate::view::{Counts, Link, Status, Tnc};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::fmt;

/// The text.
pub(super) fn text(status: Status) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(status)));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes everything");
    text
}

#[derive(Debug)]
struct Scrape(Status);

/// Values of one family, each with its label.
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
        tncs(&mut out, status)?;
        let help = "TLS handshakes that were made";
        out.counter("longwire_tls_handshakes", help, status.tls.secured)?;
        let troubles =
            status.tls.troubles.iter().map(|(kind, count)| (kind.clone(), *count as f64)).collect();
        let words = ("longwire_tls_troubles", "What went wrong with TLS");
        out.family(words, None, MetricType::Counter, "kind", &troubles)?;
        turns(&mut out, status)?;
        process(&mut out, status)?;
        http(&mut out, &status.http)
    }
}

fn node(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let who = [("node", status.node.as_str()), ("version", status.version.as_str())];
    out.0
        .encode_descriptor("longwire_node", "Which node this is", None, MetricType::Info)?
        .encode_info(&who)?;
    out.gauge("longwire_ready", "1 once the store has been read", f64::from(u8::from(status.ready)))?;
    let help = "Time since the start";
    out.one("longwire_uptime", help, Some(&Unit::Seconds), MetricType::Gauge, status.uptime_s)?;
    out.gauge("longwire_store_bundles", "Bundles in the store", status.bundles as f64)?;
    out.gauge(
        "longwire_store_limit_bundles",
        "The most bundles that the store takes",
        status.bundles_max as f64,
    )?;
    out.bytes("longwire_store", "Bundles in the store", status.stored_bytes)?;
    out.bytes("longwire_store_limit", "The most that the store takes", status.stored_bytes_max)?;
    out.bytes("longwire_buffered", "Payload in memory, on its way", status.buffered_bytes)?;
    out.gauge("longwire_applications", "Applications that are connected", status.applications as f64)?;
    out.gauge(
        "longwire_endpoints",
        "Endpoints that applications have registered",
        status.endpoints.len() as f64,
    )?;
    out.gauge(
        "longwire_store_records_found",
        "Records that were there at the start",
        status.store.records_found as f64,
    )?;
    out.bytes(
        "longwire_store_torn",
        "What a crash had cut off, found at the start",
        status.store.torn_bytes,
    )?;
    let help = "Places of the store that were found damaged; what was there is set aside";
    out.counter("longwire_store_damaged_places", help, status.store.damaged)?;
    let help = "Records of which opening the store found something damaged or missing";
    out.gauge("longwire_store_harmed_records", help, status.store.harmed as f64)?;
    let help = "Records that were missing when the store was opened, and nothing says whose they were";
    out.gauge("longwire_store_unnamed_records", help, status.store.unnamed as f64)?;
    let help = "Times that the disk had no space for a bundle, or for more of one";
    out.counter("longwire_store_disk_full", help, status.store.disk_full)?;
    let help = "Times that all of the store was read to find damage early";
    out.counter("longwire_store_scrubs", help, status.store.scrubs)?;
    out.bytes("longwire_received", "Received and not yet safe, over all connections", status.received_bytes)?;
    let help = "Handed over to connections and not yet with the kernel";
    out.bytes("longwire_queued", help, status.queued_bytes)?;
    let callers = &status.callers;
    out.gauge("longwire_callers", "Connections that peers have opened", callers.now as f64)?;
    let help = "Connections of peers without a session: not agreed on yet, or over";
    out.gauge("longwire_callers_opening", help, callers.opening as f64)?;
    out.counter(
        "longwire_callers_arrived",
        "Connections that peers opened since the start",
        callers.arrived,
    )?;
    let help = "Connections that were ended for a newcomer, because there were too many";
    out.counter("longwire_callers_gave_way", help, callers.gave_way)?;
    let help = "Callers that were turned away because there were too many";
    out.counter("longwire_callers_turned_away", help, callers.turned_away)?;
    let help = "Connections to peers that took nothing for too long";
    out.counter("longwire_stalled_connections", help, status.stalled_connections)?;
    let help = "Applications that are connected to the control socket";
    out.gauge("longwire_control", help, status.control.now as f64)?;
    let help = "Applications that were turned away because there were too many";
    out.counter("longwire_control_turned_away", help, status.control.turned_away)?;
    let help = "Applications that were cut off because they read nothing for too long";
    out.counter("longwire_control_stalled", help, status.control.stalled)
}

/// Groups of the agent's counters, by how their names begin.
const GROUPS: [(&str, &str, &str); 3] = [
    ("refused_", "longwire_bundles_refused", "Transfers that were refused to a peer"),
    (
        "deleted_",
        "longwire_bundles_deleted",
        "Bundles that were deleted before they were delivered or forwarded",
    ),
    ("dropped_", "longwire_bundles_dropped", "Bundles that were dropped"),
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

/// The name of a family, with its unit apart: it comes at the end.
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
        "received" => "Bundles received whole from peers",
        "received_cut" => "Prefixes of broken transfers that became fragments",
        "sent_here" => "Bundles accepted from applications",
        "forwarded" => "Bundles that the next hop has whole",
        "fragments_sent" => "Transfers that carried a part of a bundle",
        "payload_bytes_saved" => "Payload of broken transfers that was not sent again",
        "delivered" => "Deliveries that applications took",
        "lost" => "Incoming transfers that broke before anything was worth keeping",
        "sends_failed" => "Sends of applications that failed for want of space or a limit",
        "reports_sent" => "Status reports sent",
        "reports_suppressed" => "Status reports that were asked for and not sent",
        "admin_unknown" => "Administrative records that are not understood",
        "tombstones_dropped" => "Notes of what was delivered that were given up because there were too many",
        "records_foreign" => "Records in the store that are not from this program or this version",
        "records_short" => "Records in the store that were too short to be kept",
        "ignored" => "Requests and indications that fit nothing",
        "sessions" => "Sessions that were established",
        "attempts" => "Attempts to connect",
        "segments_sent" => "Segments sent",
        "segments_received" => "Segments received",
        "payload_sent" => "Bundles sent, their headers included",
        "payload_received" => "Bundles received, their headers included",
        "keepalives_sent" => "Keep-alives sent",
        "keepalives_received" => "Keep-alives received",
        "violations" => "Messages that broke the protocol",
        "rejected" => "Messages that the peer rejected",
        "refused" => "Incoming transfers that were refused",
        _ => "A count; the status has it under the same name",
    }
}

fn links(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let links: Vec<&Link> = status.links.iter().filter(|link| !link.calls).collect();
    let up: Family = links.iter().map(|link| (link.name.clone(), f64::from(u8::from(link.up)))).collect();
    out.family(("longwire_link_up", "1 while the link is up"), None, MetricType::Gauge, "link", &up)?;
    let mut families: BTreeMap<&str, Family> = BTreeMap::new();
    for link in &links {
        for (counter, count) in &link.counters {
            families.entry(counter).or_default().insert(link.name.clone(), *count as f64);
        }
    }
    for (counter, family) in &families {
        let (name, unit) = name_of("longwire_link", counter);
        out.family((&name, help(counter)), unit.as_ref(), MetricType::Counter, "link", family)?;
    }
    for (counter, count) in &status.sessions {
        let (name, unit) = name_of("longwire_tcpcl", counter);
        out.one(&name, help(counter), unit.as_ref(), MetricType::Counter, *count as f64)?;
    }
    Ok(())
}

fn tncs(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let by_name = |value: fn(&Tnc) -> f64| -> Family {
        status.tncs.iter().map(|tnc| (tnc.name.clone(), value(tnc))).collect()
    };
    let up = by_name(|tnc| f64::from(u8::from(tnc.up)));
    out.family(
        ("longwire_tnc_up", "1 while the line of the TNC stands"),
        None,
        MetricType::Gauge,
        "tnc",
        &up,
    )?;
    let waiting = by_name(|tnc| tnc.frames_waiting as f64);
    let words = ("longwire_tnc_waiting_frames", "Frames that the TNC has and that have not left");
    out.family(words, None, MetricType::Gauge, "tnc", &waiting)?;
    let mut families: BTreeMap<&str, Family> = BTreeMap::new();
    for tnc in &status.tncs {
        for (counter, count) in &tnc.counters {
            families.entry(counter).or_default().insert(tnc.name.clone(), *count as f64);
        }
    }
    for (counter, family) in &families {
        let name = format!("longwire_tnc_{counter}");
        out.family((&name, tnc_help(counter)), None, MetricType::Counter, "tnc", family)?;
    }
    let retries: Family = status
        .links
        .iter()
        .filter(|link| !link.calls)
        .filter_map(|link| Some((link.name.clone(), link.radio.as_ref()?.retries as f64)))
        .collect();
    let words = ("longwire_link_retries", "Times in a row that the station of the link has not answered");
    out.family(words, None, MetricType::Gauge, "link", &retries)
}

fn tnc_help(counter: &str) -> &'static str {
    match counter {
        "sent" => "Frames given to the TNC",
        "received" => "Frames that the TNC gave",
        "damaged" => "Contents of the line that are no frames, too long, or with a wrong checksum",
        "connections" => "Times that the line stood",
        "information_sent" => "I frames sent for the first time",
        "information_repeated" => "I frames sent again",
        "information_received" => "I frames that came in order, or filled a hole",
        "duplicates" => "I frames that had come before, or were outside the window",
        "timeouts" => "Times that no answer came in time",
        _ => "A count; the status has it under the same name",
    }
}

fn turns(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let turns = &status.turns;
    let mut buckets: Vec<(f64, u64)> =
        turns.within.iter().map(|within| (within.bound_s, within.count)).collect();
    let within: u64 = buckets.iter().map(|(_, count)| count).sum();
    buckets.push((f64::INFINITY, turns.count.saturating_sub(within)));
    let help = "How long the engines' task took for a turn: what comes in waits so long at the most";
    out.0
        .encode_descriptor("longwire_turn", help, Some(&Unit::Seconds), MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(turns.busy_s, turns.count, &buckets, None)?;
    let help = "The longest turn since the start";
    out.one("longwire_turn_longest", help, Some(&Unit::Seconds), MetricType::Gauge, turns.longest_s)
}

fn process(out: &mut Out<'_>, status: &Status) -> fmt::Result {
    let process = &status.process;
    out.bytes("process_resident_memory", "Resident memory", process.resident_bytes)?;
    let help = "User and system processor time";
    out.one("process_cpu", help, Some(&Unit::Seconds), MetricType::Counter, process.cpu_s)?;
    out.gauge("process_open_fds", "Open file descriptors", process.open_files as f64)?;
    out.gauge("process_max_fds", "The most file descriptors that it may have", process.open_files_max as f64)
}

fn http(out: &mut Out<'_>, counts: &Counts) -> fmt::Result {
    let mut refused = Family::new();
    for (name, count) in counts {
        match name.strip_prefix("refused_") {
            Some(reason) => drop(refused.insert(reason.to_owned(), *count as f64)),
            None => {
                let help = "What the HTTP interface has counted";
                out.counter(&format!("longwire_http_{name}"), help, *count)?;
            }
        }
    }
    let help = "Connections and requests that the HTTP interface refused";
    out.family(("longwire_http_refused", help), None, MetricType::Counter, "reason", &refused)
}
