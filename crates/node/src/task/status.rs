//! Status of the node and of its links.

use super::link_states::plain;
use super::{EngineParts as _, Task, turn_meter};
use crate::surfaces::control::ControlCounters;
use crate::surfaces::custody;
use crate::surfaces::folders::Folders;
use crate::surfaces::http::HttpCounters;
use crate::surfaces::mail;
use crate::tower::neighbours::Neighbours;
use crate::view::{self, Status};
use longwire_proto::bp::agent::{LearnedLink, LearnedRoute};
use longwire_proto::service::{CloseReason, Contact, DownReason, LinkId};
use longwire_proto::time::{Duration, Instant};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of contacts of a link shown.
const CONTACTS_MAX: usize = 64;
/// Maximum number of learned routes shown.
const ROUTES_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct SurfaceStates {
    pub(crate) control: Arc<ControlCounters>,
    /// Counters of the HTTP interface, if it is on.
    pub(crate) http: Option<Arc<HttpCounters>>,
    pub(crate) folders: Folders,
    pub(crate) custody: custody::SharedStatus,
    pub(crate) mail: mail::SharedStatus,
}

impl Task {
    pub(super) fn status(&self, now: Instant) -> Status {
        let agent = &self.engines.upper;
        let (bundles, stored_bytes) = agent.holds();
        Status {
            node: agent.node().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ready: agent.is_ready(),
            router: self.configuration.config.routing.router.name().to_owned(),
            uptime_s: now.as_secs_f64(),
            dtn_ms: self.clock.dtn_ms(),
            clock_ahead_s: super::event_recording::in_seconds(agent.clock_ahead_ms()),
            bundles: bundles as u64,
            bundles_max: agent.limits().bundles_max as u64,
            stored_bytes,
            stored_bytes_max: agent.limits().store_bytes_max,
            buffered_bytes: agent.buffered_bytes() as u64,
            applications: self.applications.applications() as u64,
            endpoints: self.applications.endpoints().map(str::to_owned).collect(),
            counters: view::counts(agent.counters()),
            store: view::Store {
                synced_batches: self.store.driver.synced().0,
                synced_bytes: self.store.driver.synced().1,
                disk_full: self.store.driver.full(),
                records_found: self.store.opened.records as u64,
                torn_bytes: self.store.opened.torn_bytes,
                damaged: self.store.damage.count() + self.store.opened.untold,
                harmed: self.store.opened.harmed,
                unnamed: self.store.opened.unnamed,
                scrubbed_bytes: self.store.scrub.as_ref().map_or(0, |scrub| scrub.counted().0),
                scrubs: self.store.scrub.as_ref().map_or(0, |scrub| scrub.counted().1),
                latest_damage: self.store.damage.latest.iter().cloned().collect(),
            },
            callers: self.link_states.callers.view(),
            sessions: view::named(self.engines.neighbours().session_counters()),
            configuration: self.configuration.reloaded.clone(),
            folders: self.surfaces.folders.view(),
            control: self.surfaces.control.view(),
            reports_not_believed: self.reports_not_believed,
            refused: self.refusals.view(now),
            stalled_connections: self.connections.patience.stalled(),
            received_bytes: self.connections.receive_budget.unreleased(),
            queued_bytes: self.connections.pumps.queued(),
            udp_receive_buffer_bytes: self.connections.sockets.receive_buffer_bytes(),
            security: self.security_view(now),
            tls: self.link_states.tls.view(now),
            turns: self.turns.view(),
            process: turn_meter::process(),
            http: self.surfaces.http.as_ref().map(|counted| counted.view()).unwrap_or_default(),
            gateways: self.gateway_views(),
            tncs: self.engines.neighbours().radios.tnc_views(&self.configuration.config.tnc),
            links: self.link_views(now),
            discovery: self.discovery_view(now),
            mail: self.surfaces.mail.lock().expect("no thread panics with it").clone(),
            learned_routes: agent.learned_routes(now).iter().take(ROUTES_MAX).map(learned_route).collect(),
        }
    }

    /// Gateways, each with what its connections and its bundles have counted.
    fn gateway_views(&self) -> Vec<view::Gateway> {
        let mut all = self.gateways.views();
        for custody in self.surfaces.custody.lock().expect("no thread panics with it").iter() {
            match all.iter_mut().find(|shown| shown.name == custody.name) {
                Some(shown) => {
                    shown.open += custody.open;
                    shown.trouble.clone_from(&custody.trouble);
                    for (name, count) in &custody.counters {
                        *shown.counters.entry(name.clone()).or_default() += count;
                    }
                }
                None => all.push(custody.clone()),
            }
        }
        all
    }

    pub(super) fn link_views(&self, now: Instant) -> Vec<view::Link> {
        let neighbours = self.engines.neighbours();
        let Neighbours { links, radios, identities, .. } = neighbours;
        let mut ids: BTreeSet<LinkId> = links.iter().map(|(id, _)| id).collect();
        ids.extend(self.link_states.seen.keys().copied());
        let shown = ids.into_iter().map(|id| {
            let seen = self.link_states.seen.get(&id).cloned().unwrap_or_default();
            let session = neighbours.shown(id);
            let carrier = neighbours.carrier(id);
            let is_present = session.is_some();
            let session = session.unwrap_or_default();
            let address = self.address(id).map(str::to_owned);
            let radio = radios.link_view(id, &self.configuration.config.tnc);
            let rate_bps = links.get(id).map_or(0, |known| known.link.rate_bps);
            let down = seen.down.filter(|_| !seen.up).map(|down| self.down_words(id, down));
            view::Link {
                name: links.name(id),
                carrier: carrier.map_or("", |about| about.name).to_owned(),
                group: carrier.is_some_and(|about| about.is_group),
                address: address.or_else(|| {
                    links.get(id).map(|known| known.link.address.clone()).filter(|_| !radios.owns(id))
                }),
                calls: id.is_incoming(),
                found: links.get(id).is_some_and(|known| known.link.found),
                up: seen.up,
                peer: match identities.name(id) {
                    Some(name) => name.map(plain),
                    None => seen.peer,
                },
                claims: identities.claims(id).map(plain),
                tcpcl: session.number("version").map(|version| version as u8),
                fell_back: session.flag("fell_back"),
                rate_bps: if rate_bps > 0 { rate_bps } else { self.channel_rate_bps(radio.as_ref()) },
                contacts: self.contact_views(id),
                radio,
                unacknowledged: is_present && carrier.is_some_and(|about| !about.acknowledges),
                down_reason: down.map(|(reason, _)| reason.to_owned()),
                why_down: down.map(|(_, words)| self.link_states.tls.of(id).unwrap_or(words).to_owned()),
                tls: self.proven(id).filter(|_| seen.up).cloned(),
                would_help: self
                    .engines
                    .upper
                    .would_help(id)
                    .map(|accept| accept.name().to_owned())
                    .collect(),
                since_s: now.saturating_since(seen.since).as_secs_f64(),
                was_up: seen.was_up,
                counters: view::named(session.counts),
            }
        });
        shown.collect()
    }

    /// Rate of the channel of a link over a TNC, bit/s; zero for other links.
    fn channel_rate_bps(&self, radio: Option<&view::Radio>) -> u64 {
        let tncs = &self.configuration.config.tnc;
        let tnc = radio.and_then(|radio| tncs.iter().find(|tnc| tnc.name == radio.tnc));
        tnc.map_or(0, |tnc| tnc.channel.rate_bps.into())
    }

    /// Planned contacts of a link.
    fn contact_views(&self, id: LinkId) -> Vec<view::ContactWindow> {
        let planned = self.link_states.planned.get(&id).map_or(&[][..], |planned| &planned[..]);
        let window = |&Contact { start_dtn_ms, end_dtn_ms, rate_bps, delay_ms }: &Contact| {
            view::ContactWindow { start_dtn_ms, end_dtn_ms, rate_bps, delay_ms }
        };
        planned.iter().take(CONTACTS_MAX).map(window).collect()
    }

    /// Reason why a link is down, as an identifier and as text.
    pub(super) fn down_words(&self, link: LinkId, reason: DownReason) -> (&'static str, &'static str) {
        match self.engines.neighbours().radios.owns(link) {
            true => radio_down_words(reason),
            false => down_words(reason),
        }
    }
}

fn learned_route(route: &LearnedRoute) -> view::LearnedRoute {
    let seconds = |time: &Duration| time.as_secs_f64();
    let link = |link: &LearnedLink| view::LearnedLink {
        to: link.to.to_string(),
        expected_s: seconds(&link.delay),
        down_s: link.down.as_ref().map(seconds),
    };
    view::LearnedRoute {
        node: route.node.to_string(),
        next: route.next.to_string(),
        expected_s: seconds(&route.delay),
        wait_s: route.wait.as_ref().map(seconds),
        announced_s: route.announced.as_ref().map(seconds),
        links: route.links.iter().map(link).collect(),
    }
}

/// Reason why a link is down, as an identifier and as text.
fn down_words(reason: DownReason) -> (&'static str, &'static str) {
    match reason {
        DownReason::Closed => ("cut", "closed by the operator"),
        DownReason::PeerClosed => ("peer_closed", "the peer ended the session"),
        DownReason::Idle => ("idle", "idle"),
        DownReason::KeepAlive => ("keepalive", "nothing heard from the peer"),
        DownReason::ProtocolError => ("protocol_error", "protocol error by the peer"),
        DownReason::Version => ("version", "no common protocol version"),
        DownReason::Insecure => ("insecure", "TLS is required but the peer does not offer it"),
        DownReason::Contact => ("contact", "the peer refused the session"),
        DownReason::Identity => ("identity", "the node ID of the peer is not the expected one"),
        DownReason::Busy => ("busy", "the peer is busy"),
        DownReason::Stream(CloseReason::Finished) => ("finished", "the connection was closed"),
        DownReason::Stream(CloseReason::Aborted) => ("aborted", "connection aborted"),
        DownReason::Stream(CloseReason::Reset) => ("reset", "connection reset"),
        DownReason::Stream(CloseReason::Refused) => ("refused", "connection refused"),
        DownReason::Stream(CloseReason::TimedOut) => ("timed_out", "connection timed out"),
        DownReason::Stream(CloseReason::Unreachable) => ("unreachable", "address unreachable"),
        DownReason::Stream(CloseReason::Insecure) => ("insecure", "TLS handshake failed"),
        DownReason::Stream(CloseReason::Limit) => ("limit", "limit of this node reached"),
        DownReason::Stream(CloseReason::Damaged) => ("damaged", "received data is corrupted"),
        DownReason::Stream(CloseReason::Stalled) => ("stalled", "the peer stopped reading"),
    }
}

/// Reason why a link over a TNC is down, as an identifier and as text.
fn radio_down_words(reason: DownReason) -> (&'static str, &'static str) {
    match reason {
        DownReason::Stream(CloseReason::Refused) => ("refused", "the station refused the link"),
        DownReason::Stream(CloseReason::Limit) => {
            ("limit", "a link to this station exists already, or there are too many links")
        }
        DownReason::Stream(CloseReason::Reset) => {
            ("reset", "link reset: the two stations lost synchronization")
        }
        DownReason::Stream(CloseReason::Finished) => ("finished", "the station closed the link"),
        DownReason::Stream(CloseReason::TimedOut) => ("timed_out", "the station does not answer"),
        other => down_words(other),
    }
}
