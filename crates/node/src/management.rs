//! Requests of operators: state of the node, stored bundles and why they wait, links.

use crate::clock::clock_time;
use crate::config::{Config, LinkSettings, RouteSettings};
use crate::layer::Layer;
use crate::links::{KnownLink, special};
use crate::message::{Reply, Request};
use crate::task::{LinkObservation, Task, plain};
use crate::turn_meter;
use crate::view::{self, Bundle, Filter, Page, State, Status};
use longwire_proto::ax25::Callsign;
use longwire_proto::bp::agent::{BundleStatus, RetentionReason};
use longwire_proto::bp::eid::Eid;
use longwire_proto::service::{AppRequest, CloseReason, DownReason, LinkId, RecordId};
use longwire_proto::time::Instant;
use longwire_settings::error::nearest;
use std::collections::BTreeSet;

/// Maximum bundles examined for one answer, so that other events wait no longer than that takes.
const LOOKED_AT_MAX: usize = 1000;

impl Task {
    /// Handles requests that are not about sends, registrations or deliveries.
    pub(crate) fn operate(&mut self, now: Instant, request: Request) -> Reply {
        match request {
            Request::Status | Request::NextStatus => Reply::Status { status: Box::new(self.status(now)) },
            Request::Bundles { limit, after, filter } => self.bundles(now, after.as_deref(), limit, &filter),
            Request::Bundle { source, created } => self.bundle(now, &source, created),
            Request::Delete { source, created } => self.delete(now, source, created),
            Request::Links => Reply::Links { links: self.link_views(now) },
            Request::AddLink { name, address } => self.add_link(now, name, address),
            Request::CutLink { name } => self.with_link(now, &name, |link| AppRequest::CloseLink { link }),
            Request::OpenLink { name } => self.with_link(now, &name, |link| AppRequest::OpenLink { link }),
            Request::RemoveLink { name } => self.remove_link(now, &name),
            Request::Watch => {
                self.watch(now);
                Reply::Done
            }
            Request::Routes => Reply::Routes { routes: self.routes() },
            Request::AddRoute { route } => self.add_route(now, route),
            Request::RemoveRoute { to, via } => self.remove_route(now, &to, &via),
            Request::TrustClock => self.trust_clock(now),
            Request::Reload => self.reload(now),
            Request::Send { .. }
            | Request::Piece { .. }
            | Request::Cancel { .. }
            | Request::Register { .. }
            | Request::Unregister { .. }
            | Request::Read { .. }
            | Request::Taken { .. } => unreachable!("`Applications::request` handles these"),
        }
    }

    /// Confirms the clock: lifetimes follow it from now on.
    fn trust_clock(&mut self, now: Instant) -> Reply {
        if self.engines.upper.clock_ahead_ms() == 0 {
            return Reply::error("the clock has not jumped; there is nothing to confirm", None);
        }
        self.ask(now, AppRequest::TrustClock);
        self.note(now, view::Event::ClockTrusted);
        Reply::Done
    }

    fn status(&self, now: Instant) -> Status {
        let agent = &self.engines.upper;
        let (bundles, stored_bytes) = agent.holds();
        Status {
            node: agent.node().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ready: agent.is_ready(),
            router: self.setup.config.routing.router.name().to_owned(),
            uptime_s: now.as_secs_f64(),
            dtn_ms: self.dtn_ms(),
            clock_ahead_s: crate::event_recording::in_seconds(agent.clock_ahead_ms()),
            bundles: bundles as u64,
            bundles_max: agent.limits().bundles_max as u64,
            stored_bytes,
            stored_bytes_max: agent.limits().store_bytes_max,
            buffered_bytes: agent.buffered_bytes() as u64,
            applications: self.applications.applications() as u64,
            endpoints: self.applications.endpoints().map(str::to_owned).collect(),
            counters: view::counts(agent.counters()),
            store: view::Store {
                synced_batches: self.store.synced().0,
                synced_bytes: self.store.synced().1,
                disk_full: self.store.full(),
                records_found: self.opened.records as u64,
                torn_bytes: self.opened.torn_bytes,
                damaged: self.damage.count() + self.opened.untold,
                harmed: self.opened.harmed,
                unnamed: self.opened.unnamed,
                scrubbed_bytes: self.scrub.as_ref().map_or(0, |scrub| scrub.counted().0),
                scrubs: self.scrub.as_ref().map_or(0, |scrub| scrub.counted().1),
                latest_damage: self.damage.latest.iter().cloned().collect(),
            },
            callers: self.callers.view(),
            sessions: view::counts(&self.session_counters()),
            configuration: self.configuration.clone(),
            folders: self.folders.lock().expect("no thread panics with it").clone(),
            control: self.control.view(),
            reports_not_believed: self.reports_not_believed,
            refused: self.refusals.view(now),
            stalled_connections: self.patience.stalled(),
            received_bytes: self.receive_budget.unreleased(),
            queued_bytes: self.queued,
            udp_receive_buffer_bytes: self.sockets.receive_buffer_bytes(),
            tls: self.tls.view(now),
            turns: self.turns.view(self.busy_loop_guard.slowed()),
            process: turn_meter::process(),
            http: self.http.as_ref().map(|counted| counted.view()).unwrap_or_default(),
            tncs: self.tnc_views(),
            links: self.link_views(now),
        }
    }

    /// Returns a page of the list and the position of the next one.
    fn bundles(&self, now: Instant, after: Option<&str>, limit: usize, filter: &Filter) -> Reply {
        let Ok(after) = after.map_or(Ok(0), str::parse) else {
            return Reply::error(
                "`after` is not a valid position in the list",
                Some("use the value of `next` from the previous answer"),
            );
        };
        let agent = &self.engines.upper;
        let mut page = Page { total: agent.holds().0 as u64, ..Page::default() };
        for (looked_at, bundle) in agent.bundles_after(now, RecordId(after)).enumerate() {
            if page.bundles.len() >= limit.max(1) || looked_at >= LOOKED_AT_MAX {
                return Reply::Bundles { page };
            }
            page.next = Some(bundle.record.0.to_string());
            let bundle = self.bundle_view(now, &bundle);
            if filter.wants(&bundle) {
                page.bundles.push(bundle);
            }
        }
        page.next = None;
        Reply::Bundles { page }
    }

    fn bundle(&self, now: Instant, source: &str, created: (u64, u64)) -> Reply {
        let found = self.engines.upper.bundles_named(now, source, created);
        if found.is_empty() {
            return no_bundle(source, created);
        }
        let bundles: Vec<Bundle> =
            found.iter().take(LOOKED_AT_MAX).map(|bundle| self.bundle_view(now, bundle)).collect();
        Reply::Bundles { page: Page { total: found.len() as u64, bundles, next: None } }
    }

    fn bundle_view(&self, now: Instant, bundle: &BundleStatus) -> Bundle {
        let timestamp = bundle.id.timestamp;
        let (source, created) = (bundle.id.source.to_string(), (timestamp.time.0, timestamp.sequence));
        let (state, why) = self.why(now, bundle);
        Bundle {
            id: view::bundle_id(&source, created),
            source,
            created,
            fragment: bundle
                .id
                .fragment
                .map(|(offset_bytes, _)| view::Fragment { offset_bytes, total_bytes: bundle.adu_bytes }),
            version: bundle.version.into(),
            wants_custody: bundle.wants_custody,
            custodian: bundle.custodian.as_ref().map(ToString::to_string),
            destination: bundle.destination.to_string(),
            priority: bundle.priority,
            payload_bytes: bundle.payload_bytes,
            safe_bytes: bundle.safe_bytes,
            transmitted_bytes: self.transmitted_bytes(bundle),
            age_s: bundle.age.as_secs_f64(),
            lifetime_left_s: bundle.lifetime_left.as_secs_f64(),
            arrived_over: bundle
                .arrived_over
                .map(|link| self.links.lock().expect("no thread panics while it has the links").name(link)),
            refusals: bundle.refusals,
            state,
            why,
        }
    }

    /// Payload bytes transmitted to the next hop, as far as known: over AX25-CL by the frames that the other station has
    /// acknowledged; over other links over TNCs, which queue only a few frames, the bytes passed to the link; over TCP, where the
    /// kernel queues many bytes, the bytes that the next hop has acknowledged.
    fn transmitted_bytes(&self, bundle: &BundleStatus) -> u64 {
        let RetentionReason::OnTheWay(link) = bundle.why else { return bundle.safe_bytes };
        let radios = &self.engines.lower.second.radios;
        let gone = match radios.frames_there(link) {
            Some((there, all)) => {
                let share = u128::from(bundle.payload_bytes) * u128::from(there.min(all));
                (share / u128::from(all.max(1))) as u64
            }
            None if radios.owns(link) => bundle.handed_bytes,
            None => 0,
        };
        gone.clamp(bundle.safe_bytes, bundle.payload_bytes.max(bundle.safe_bytes))
    }

    /// Reason why a bundle is still stored, as text.
    fn why(&self, now: Instant, bundle: &BundleStatus) -> (State, String) {
        let names = |ids: &[LinkId]| {
            let links = self.links.lock().expect("no thread panics while it has the links");
            ids.iter().map(|id| format!("`{}`", links.name(*id))).collect::<Vec<_>>().join(", ")
        };
        match &bundle.why {
            RetentionReason::Arriving => (State::Arriving, "being received".into()),
            RetentionReason::Storing => (State::Storing, "being written to the store".into()),
            RetentionReason::NoRoute => match self.neighbour_that_is_down(&bundle.destination) {
                Some(words) => (State::LinksDown, words),
                None => {
                    let words = "no route to the destination, and it is not a connected neighbour";
                    (State::NoRoute, format!("{words}{}", self.links_that_might_lead_there()))
                }
            },
            RetentionReason::LinksDown(ids) => {
                (State::LinksDown, format!("every usable link is down: {}", names(ids)))
            }
            RetentionReason::NoContact { link, next_dtn_ms: None } => {
                (State::NoContact, format!("no further contact planned for link {}", names(&[*link])))
            }
            RetentionReason::NoContact { link, next_dtn_ms: Some(next) } => {
                let dtn_ms = self.dtn_ms().unwrap_or(0);
                let wait = next.saturating_sub(dtn_ms) / 1000;
                let words = format!(
                    "waiting for the contact over link {} at {}, in {wait} s",
                    names(&[*link]),
                    clock_time(*next, dtn_ms)
                );
                (State::NoContact, words)
            }
            RetentionReason::Queued(link) => (State::Queued, format!("queued for link {}", names(&[*link]))),
            RetentionReason::OnTheWay(link) => {
                (State::OnTheWay, format!("being sent over link {}", names(&[*link])))
            }
            RetentionReason::BetterHop { until } => {
                let wait = until.saturating_since(now).as_secs();
                let words = format!("the preferred link is down; the next one is used in {wait} s");
                (State::BetterHop, words)
            }
            RetentionReason::Spread { given, copies: Some(1) } => {
                (State::Spread, format!("{given} nodes have a copy; the last copy waits for the destination"))
            }
            RetentionReason::Spread { given, copies } => {
                let more = copies.map_or(String::new(), |copies| format!(", {copies} copies left"));
                let words = format!("{given} nodes have a copy{more}; waiting for a node without one");
                (State::Spread, words)
            }
            RetentionReason::Resting(until) => {
                let wait = until.saturating_since(now).as_secs();
                let words = format!("the next hop had no space; retrying in {wait} s");
                (State::Resting, words)
            }
            RetentionReason::InCustody { of, until } => {
                let wait = until.saturating_since(now).as_secs();
                let to = of.as_ref().map_or(String::new(), |node| format!(" sent to {node};"));
                let words = format!("in custody:{to} waiting for a custody signal, resending in {wait} s");
                (State::InCustody, words)
            }
            RetentionReason::InParts { have, of } => {
                (State::InParts, format!("for this node: {have} of {of} bytes received"))
            }
            RetentionReason::NobodyRegistered(_) => {
                (State::NobodyRegistered, "for this node: no application has registered the endpoint".into())
            }
            RetentionReason::NotTaken(_) => {
                (State::NotTaken, "for this node: the application has not taken it".into())
            }
        }
    }

    /// Message that the link to the node of this destination is down, with the reason. It is the link over which that neighbour
    /// was last connected, or the one that is configured for it.
    fn neighbour_that_is_down(&self, destination: &Eid) -> Option<String> {
        let node = destination.node_id().to_string();
        let links = self.links.lock().expect("no thread panics while it has the links");
        let configured = |id: LinkId| {
            let peer = links.get(id).and_then(|known| known.link.peer.clone());
            peer.is_some_and(|peer| peer.parse::<Eid>().is_ok_and(|peer| peer.to_string() == node))
        };
        let led_there =
            |id: &LinkId, seen: &LinkObservation| seen.led_to.as_ref() == Some(&node) || configured(*id);
        let (id, seen) = self.seen.iter().find(|(id, seen)| !seen.up && led_there(id, seen))?;
        let why = seen.down.map_or("", |down| self.down_words(*id, down).1);
        Some(format!("link `{}` to {node} is down: {why}", links.name(*id)))
    }

    /// Links whose neighbour is still unknown, as text.
    fn links_that_might_lead_there(&self) -> String {
        /// Maximum number of links named.
        const NAMED_MAX: usize = 3;
        let links = self.links.lock().expect("no thread panics while it has the links");
        let unknown = |(id, known): &(LinkId, &KnownLink)| {
            let seen = self.seen.get(id);
            known.link.peer.is_none() && seen.is_none_or(|seen| !seen.up && seen.led_to.is_none())
        };
        let names = links.iter().filter(unknown).map(|(id, _)| format!("`{}`", links.name(id)));
        let mut names: Vec<String> = names.take(NAMED_MAX + 1).collect();
        if names.len() > NAMED_MAX {
            names[NAMED_MAX] = "others".to_owned();
        }
        match names.split_last() {
            None => String::new(),
            Some((only, [])) => format!("; link {only} has not connected yet and may lead there"),
            Some((last, rest)) => {
                format!("; links {} and {last} have not connected yet and may lead there", rest.join(", "))
            }
        }
    }

    /// Reason why a link is down, as an identifier and as text.
    pub(crate) fn down_words(&self, link: LinkId, reason: DownReason) -> (&'static str, &'static str) {
        match self.engines.lower.second.radios.owns(link) {
            true => radio_down_words(reason),
            false => down_words(reason),
        }
    }

    fn delete(&mut self, now: Instant, source: String, created: (u64, u64)) -> Reply {
        let before = self.engines.upper.counters().deleted_cancelled;
        self.ask(now, AppRequest::Delete { source: source.clone(), created });
        if self.engines.upper.counters().deleted_cancelled > before {
            return Reply::Done;
        }
        no_bundle(&source, created)
    }

    fn link_views(&self, now: Instant) -> Vec<view::Link> {
        let links = self.links.lock().expect("no thread panics while it has the links");
        let mut ids: BTreeSet<LinkId> = links.iter().map(|(id, _)| id).collect();
        ids.extend(self.seen.keys().copied());
        let sessions = &self.engines.lower.second.internet;
        let radios = &self.engines.lower.second.radios;
        let identities = &self.engines.lower.second.identities;
        let shown = ids.into_iter().map(|id| {
            let seen = self.seen.get(&id).cloned().unwrap_or_default();
            let layer = sessions.get(id);
            let session = layer.and_then(Layer::session);
            let address = self.address(id).map(str::to_owned);
            let down = seen.down.filter(|_| !seen.up).map(|down| self.down_words(id, down));
            view::Link {
                name: links.name(id),
                address: address.or_else(|| {
                    links.get(id).map(|known| known.link.address.clone()).filter(|_| !radios.owns(id))
                }),
                calls: id.is_incoming(),
                up: seen.up,
                peer: match identities.name(id) {
                    Some(name) => name.map(plain),
                    None => seen.peer,
                },
                claims: identities.claims(id).map(plain),
                tcpcl: session
                    .and_then(|session| session.version())
                    .map(|version| version.number())
                    .or_else(|| radios.version(id)),
                fell_back: session.is_some_and(|session| session.fell_back()),
                radio: radios.link_view(id, &self.setup.config.tnc),
                unacknowledged: matches!(layer, Some(Layer::Udp(_))),
                down_reason: down.map(|(reason, _)| reason.to_owned()),
                why_down: down.map(|(_, words)| self.tls.of(id).unwrap_or(words).to_owned()),
                tls: self.proven(id).filter(|_| seen.up).cloned(),
                would_help: self
                    .engines
                    .upper
                    .would_help(id)
                    .map(|accept| accept.name().to_owned())
                    .collect(),
                since_s: now.saturating_since(seen.since).as_secs_f64(),
                was_up: seen.was_up,
                counters: layer.map(Layer::counts).or_else(|| radios.counts(id)).unwrap_or_default(),
            }
        });
        shown.collect()
    }

    fn with_link(&mut self, now: Instant, name: &str, request: impl Fn(LinkId) -> AppRequest) -> Reply {
        let found = self.links.lock().expect("no thread panics while it has the links").named(name);
        match found.or_else(|| self.caller_named(name)) {
            Some(id) => {
                self.ask(now, request(id));
                Reply::Done
            }
            None => no_link(&self.setup.config, name),
        }
    }

    fn caller_named(&self, name: &str) -> Option<LinkId> {
        let number: u32 = name.strip_prefix("caller ")?.parse().ok()?;
        let id = LinkId(LinkId::FIRST_INCOMING.checked_add(number)?);
        self.seen.contains_key(&id).then_some(id)
    }

    fn add_link(&mut self, now: Instant, name: String, address: String) -> Reply {
        if address.parse::<Callsign>().is_ok() {
            return Reply::error(
                format!("`{address}` is a callsign; this command adds TCP links only"),
                Some(
                    "add a [[link]] with `kind`, `tnc` and `callsign` to the configuration, then send SIGHUP or `POST /reload`",
                ),
            );
        }
        let link = LinkSettings { name, address, ..LinkSettings::default() };
        let mut config = self.setup.config.clone();
        config.link.push(link.clone());
        let added = config.check().and_then(|()| {
            self.links.lock().expect("no thread panics while it has the links").add(&config, &link)
        });
        match added {
            Ok(id) => {
                self.setup.config = config;
                self.engines.lower.second.radios.add(id);
                self.ask(now, AppRequest::OpenLink { link: id });
                Reply::Done
            }
            Err(error) => Reply::Error { what: error.what, hint: error.hint },
        }
    }

    fn remove_link(&mut self, now: Instant, name: &str) -> Reply {
        if !self.setup.config.link.iter().any(|link| link.name == name) {
            return no_link(&self.setup.config, name);
        }
        let mut config = self.setup.config.clone();
        config.link.retain(|link| link.name != name);
        // Contacts that concern this link only are removed, too: a contact without a link is invalid.
        let old = &self.setup.config;
        config.contact.retain(|planned| {
            old.link.iter().all(|link| link.name != name || !planned.concerns(old, link))
                || config.link.iter().any(|link| planned.concerns(old, link))
        });
        config.route.retain(|route| route.via != name);
        self.apply(now, config)
    }

    fn routes(&self) -> Vec<view::Route> {
        let all = self.setup.config.route.iter();
        all.map(|route| view::Route { to: route.to.clone(), via: route.via.clone(), cost: route.cost })
            .collect()
    }

    fn add_route(&mut self, now: Instant, route: view::Route) -> Reply {
        let mut config = self.setup.config.clone();
        config.route.retain(|other| other.to != route.to || other.via != route.via);
        config.route.push(RouteSettings { to: route.to, via: route.via, cost: route.cost });
        match config.check() {
            Ok(()) => self.apply(now, config),
            Err(error) => Reply::Error { what: error.what, hint: error.hint },
        }
    }

    fn remove_route(&mut self, now: Instant, to: &str, via: &str) -> Reply {
        let mut config = self.setup.config.clone();
        config.route.retain(|route| route.to != to || route.via != via);
        if config.route.len() == self.setup.config.route.len() {
            return Reply::error(
                format!("no such route: {to} via {via}"),
                Some("list routes with `GET /routes`"),
            );
        }
        self.apply(now, config)
    }

    /// Applies the links and routes of a configuration; other settings take effect after a restart.
    pub(crate) fn apply(&mut self, now: Instant, new: Config) -> Reply {
        // Lines to TNCs are opened at startup only.
        let new = Config { tnc: self.setup.config.tnc.clone(), ..new };
        if let Err(error) = new.check() {
            let hint = error.hint.or_else(|| Some("restart the node to use a new TNC".to_owned()));
            return Reply::Error { what: error.what, hint };
        }
        let old = std::mem::take(&mut self.setup.config);
        for route in
            old.route.iter().filter(|route| !new.route.contains(route) || !same_link(&old, &new, &route.via))
        {
            if let Some(via) = self.hop(&route.via) {
                self.ask(now, AppRequest::RemoveRoute { pattern: route.to.clone(), via });
            }
        }
        let shared = same_sessions(&old, &new);
        let (mut opened, mut added) = (Vec::new(), Vec::new());
        {
            let mut links = self.links.lock().expect("no thread panics while it has the links");
            links.set_callers(&new);
            for link in &new.link {
                if !(shared && old.link.contains(link)) {
                    // The configuration was checked before.
                    let Ok(id) = links.add(&new, link) else { continue };
                    added.push(id);
                    opened.extend(link.open.then_some(id));
                }
            }
        }
        added.into_iter().for_each(|id| self.engines.lower.second.radios.add(id));
        let gone: Vec<LinkId> = {
            let links = self.links.lock().expect("no thread panics while it has the links");
            let stale = |id: LinkId, link: &LinkSettings| {
                let latest =
                    links.iter().filter(|(_, other)| other.link.name == link.name).map(|(id, _)| id).max();
                !new.link.contains(link) || latest != Some(id)
            };
            links.iter().filter(|(id, known)| stale(*id, &known.link)).map(|(id, _)| id).collect()
        };
        for link in gone {
            self.ask(now, AppRequest::CloseLink { link });
            self.engines.lower.second.radios.remove(link);
            self.links.lock().expect("no thread panics while it has the links").remove(link);
            self.seen.remove(&link);
            self.planned.remove(&link);
            self.tls.forget(link);
        }
        self.setup.config = Config {
            link: new.link.clone(),
            route: new.route.clone(),
            contact: new.contact,
            peer: new.peer,
            tcpcl: new.tcpcl,
            tls: new.tls,
            peers: new.peers,
            udp: new.udp,
            ax25cl: new.ax25cl,
            ax25cm: new.ax25cm,
            uicl: new.uicl,
            ..old
        };
        self.configure_links();
        self.engines.lower.second.identities.configure(&self.setup.config);
        self.plan(now);
        for link in opened {
            self.ask(now, AppRequest::OpenLink { link });
        }
        for route in new.route {
            if let Some(request) = self.route(&route) {
                self.ask(now, request);
            }
        }
        Reply::Done
    }

    /// Passes the settings of each link to the agent.
    fn configure_links(&mut self) {
        self.engines.upper.configure_peers(self.setup.config.peer.clone());
        let links = self.links.lock().expect("no thread panics while it has the links");
        for (id, known) in links.iter() {
            self.engines.upper.configure_link(special(&self.setup.config, id, &known.link));
        }
    }
}

fn no_bundle(source: &str, created: (u64, u64)) -> Reply {
    let what = format!("no such bundle: {}", view::bundle_id(source, created));
    Reply::error(what, Some("it may have been delivered or forwarded; list bundles with `longwire bundles`"))
}

fn no_link(config: &Config, name: &str) -> Reply {
    let hint = match nearest(name, config.link.iter().map(|link| link.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "list links with `longwire links`".to_owned(),
    };
    Reply::error(format!("no such link: `{name}`"), Some(&hint))
}

/// Reason why a link is down, as an identifier and as text.
fn down_words(reason: DownReason) -> (&'static str, &'static str) {
    match reason {
        DownReason::Closed => ("cut", "closed by the operator"),
        DownReason::PeerClosed => ("peer_closed", "the peer ended the session"),
        DownReason::Idle => ("idle", "idle"),
        DownReason::KeepAlive => ("keepalive", "no keep-alive from the peer"),
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

fn same_link(old: &Config, new: &Config, name: &str) -> bool {
    let find = |config: &Config| config.link.iter().find(|link| link.name == name).cloned();
    find(old) == find(new) && same_sessions(old, new)
}

/// True if the settings shared by all links are equal.
fn same_sessions(old: &Config, new: &Config) -> bool {
    old.callers() == new.callers()
        && old.radio_callers() == new.radio_callers()
        && old.tls == new.tls
        && old.udp == new.udp
        && old.uicl == new.uicl
}
