//! What operators ask of a node: how it is, what it holds and why, its links.

use crate::config::{Config, LinkSettings, RouteSettings};
use crate::contacts::clock_time;
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

/// Bundles that one answer looks at: what comes in meanwhile does not wait longer than that.
const LOOKED_AT_MAX: usize = 1000;

impl Task {
    /// Carries out what is neither a send nor a delivery.
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
            | Request::Taken { .. } => unreachable!("the desk does these"),
        }
    }

    /// The operator says that the clock is right: lifetimes go by it from here on.
    fn trust_clock(&mut self, now: Instant) -> Reply {
        if self.engines.upper.clock_ahead_ms() == 0 {
            return Reply::error("lifetimes go by the clock already: it has not jumped", None);
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

    /// A part of the list, and where the next one begins: what one turn has time for.
    fn bundles(&self, now: Instant, after: Option<&str>, limit: usize, filter: &Filter) -> Reply {
        let Ok(after) = after.map_or(Ok(0), str::parse) else {
            return Reply::error(
                "`after` is no place in the list",
                Some("say what the answer before called `next`"),
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

    /// Payload bytes that have gone to the next hop, as far as is known: over AX.25, whose links take a few frames at a time,
    /// what they were handed, and of Longwire's own by the frames that the other station has; over TCP, whose kernel takes much
    /// that has not left, what is safe there.
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

    /// Why a bundle is still here, for a person.
    fn why(&self, now: Instant, bundle: &BundleStatus) -> (State, String) {
        let names = |ids: &[LinkId]| {
            let links = self.links.lock().expect("no thread panics while it has the links");
            ids.iter().map(|id| format!("`{}`", links.name(*id))).collect::<Vec<_>>().join(", ")
        };
        match &bundle.why {
            RetentionReason::Arriving => (State::Arriving, "it is still arriving".into()),
            RetentionReason::Storing => (State::Storing, "it is being stored".into()),
            RetentionReason::NoRoute => match self.neighbour_that_is_down(&bundle.destination) {
                Some(words) => (State::LinksDown, words),
                None => {
                    let words = "no route leads to its destination, and no such neighbour is connected";
                    (State::NoRoute, format!("{words}{}", self.links_that_might_lead_there()))
                }
            },
            RetentionReason::LinksDown(ids) => {
                (State::LinksDown, format!("every link that it may take is down: {}", names(ids)))
            }
            RetentionReason::NoContact { link, next_dtn_ms: None } => {
                (State::NoContact, format!("no further contact is planned for link {}", names(&[*link])))
            }
            RetentionReason::NoContact { link, next_dtn_ms: Some(next) } => {
                let dtn_ms = self.dtn_ms().unwrap_or(0);
                let wait = next.saturating_sub(dtn_ms) / 1000;
                let words = format!(
                    "it waits for the contact over link {} at {}, in {wait} s",
                    names(&[*link]),
                    clock_time(*next, dtn_ms)
                );
                (State::NoContact, words)
            }
            RetentionReason::Queued(link) => {
                (State::Queued, format!("it waits its turn for link {}", names(&[*link])))
            }
            RetentionReason::OnTheWay(link) => {
                (State::OnTheWay, format!("it is on its way over link {}", names(&[*link])))
            }
            RetentionReason::BetterHop { until } => {
                let wait = until.saturating_since(now).as_secs();
                let words = format!("the better of its ways is down; the next one is taken in {wait} s");
                (State::BetterHop, words)
            }
            RetentionReason::Spread { given, copies: Some(1) } => (
                State::Spread,
                format!("{given} nodes have a copy; this one waits for the destination itself"),
            ),
            RetentionReason::Spread { given, copies } => {
                let more = copies.map_or(String::new(), |copies| format!(", {copies} are left to give"));
                let words = format!("{given} nodes have a copy{more}; it waits for a node that has none");
                (State::Spread, words)
            }
            RetentionReason::Resting(until) => {
                let wait = until.saturating_since(now).as_secs();
                let words = format!("the next hop had no place for it; it is tried again in {wait} s");
                (State::Resting, words)
            }
            RetentionReason::InCustody { of, until } => {
                let wait = until.saturating_since(now).as_secs();
                let to = of.as_ref().map_or(String::new(), |node| format!(" {node} has it;"));
                let words =
                    format!("in custody:{to} waiting for a custody signal, it is sent again in {wait} s");
                (State::InCustody, words)
            }
            RetentionReason::InParts { have, of } => {
                (State::InParts, format!("it is for this node, and {have} of {of} bytes are here"))
            }
            RetentionReason::NobodyRegistered(_) => {
                (State::NobodyRegistered, "it is for this node, and no application asks for it".into())
            }
            RetentionReason::NotTaken(_) => {
                (State::NotTaken, "an application was told of it and has not taken it".into())
            }
        }
    }

    /// A note for a person that the link to this destination's node is down, and why: the link that its neighbour was
    /// connected over, or that is configured for it.
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

    /// The links of which nobody knows yet where they lead to, for a person.
    fn links_that_might_lead_there(&self) -> String {
        /// More are not named.
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
            Some((only, [])) => format!("; link {only} was not up yet, and may lead there"),
            Some((last, rest)) => {
                format!("; links {} and {last} were not up yet, and may lead there", rest.join(", "))
            }
        }
    }

    /// Why a link is down: in one word, and for a person.
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
                format!("`{address}` is a callsign: only links over TCP are added like this"),
                Some(
                    "write a [[link]] with `kind`, `tnc` and `callsign` into the configuration; a hang-up signal or `POST /reload` takes it at once",
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
        // What is planned for it alone goes, too: a plan without a link makes no sense.
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
                format!("there is no route to {to} via {via}"),
                Some("`GET /routes` lists them"),
            );
        }
        self.apply(now, config)
    }

    /// Takes over the links and routes of a configuration; the rest waits for the next start.
    pub(crate) fn apply(&mut self, now: Instant, new: Config) -> Reply {
        // Lines are opened when the node starts.
        let new = Config { tnc: self.setup.config.tnc.clone(), ..new };
        if let Err(error) = new.check() {
            let hint =
                error.hint.or_else(|| Some("a new TNC is used from the node's next start on".to_owned()));
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
                    // It was checked when it was read.
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

    /// Tells the agent what is special about each link.
    fn configure_links(&mut self) {
        self.engines.upper.configure_peers(self.setup.config.peer.clone());
        let links = self.links.lock().expect("no thread panics while it has the links");
        for (id, known) in links.iter() {
            self.engines.upper.configure_link(special(&self.setup.config, id, &known.link));
        }
    }
}

fn no_bundle(source: &str, created: (u64, u64)) -> Reply {
    let what = format!("there is no bundle {}", view::bundle_id(source, created));
    Reply::error(what, Some("it may have been delivered, or gone on; `longwire bundles` lists what there is"))
}

fn no_link(config: &Config, name: &str) -> Reply {
    let hint = match nearest(name, config.link.iter().map(|link| link.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`longwire links` shows them".to_owned(),
    };
    Reply::error(format!("there is no link `{name}`"), Some(&hint))
}

/// Why a link is down: in one word, and for a person.
fn down_words(reason: DownReason) -> (&'static str, &'static str) {
    match reason {
        DownReason::Closed => ("cut", "cut here"),
        DownReason::PeerClosed => ("peer_closed", "the peer ended the session"),
        DownReason::Idle => ("idle", "idle"),
        DownReason::KeepAlive => ("keepalive", "the peer fell silent"),
        DownReason::ProtocolError => ("protocol_error", "the peer broke the protocol"),
        DownReason::Version => ("version", "the peer speaks no version that this node does"),
        DownReason::Insecure => ("insecure", "TLS is required, and the peer offers none"),
        DownReason::Contact => ("contact", "the peer refuses the session"),
        DownReason::Identity => ("identity", "the peer is not who it should be"),
        DownReason::Busy => ("busy", "the peer is busy"),
        DownReason::Stream(CloseReason::Finished) => ("finished", "the connection was closed"),
        DownReason::Stream(CloseReason::Aborted) => ("aborted", "the connection was given up"),
        DownReason::Stream(CloseReason::Reset) => ("reset", "the connection broke"),
        DownReason::Stream(CloseReason::Refused) => ("refused", "nobody listens there"),
        DownReason::Stream(CloseReason::TimedOut) => ("timed_out", "no answer"),
        DownReason::Stream(CloseReason::Unreachable) => ("unreachable", "no way to that address"),
        DownReason::Stream(CloseReason::Insecure) => ("insecure", "TLS failed or was refused"),
        DownReason::Stream(CloseReason::Limit) => ("limit", "a limit of this node was reached"),
        DownReason::Stream(CloseReason::Damaged) => ("damaged", "what came is not what was sent"),
        DownReason::Stream(CloseReason::Stalled) => ("stalled", "the peer took nothing for too long"),
    }
}

/// The same of a link over a TNC.
fn radio_down_words(reason: DownReason) -> (&'static str, &'static str) {
    match reason {
        DownReason::Stream(CloseReason::Refused) => ("refused", "the station refuses the link"),
        DownReason::Stream(CloseReason::Limit) => {
            ("limit", "there is a link with this station already, or there are too many")
        }
        DownReason::Stream(CloseReason::Reset) => {
            ("reset", "the link broke: the two sides did not agree any more")
        }
        DownReason::Stream(CloseReason::Finished) => ("finished", "the station ended the link"),
        other => down_words(other),
    }
}

fn same_link(old: &Config, new: &Config, name: &str) -> bool {
    let find = |config: &Config| config.link.iter().find(|link| link.name == name).cloned();
    find(old) == find(new) && same_sessions(old, new)
}

/// What is the same for all links is the same as before.
fn same_sessions(old: &Config, new: &Config) -> bool {
    old.callers() == new.callers()
        && old.radio_callers() == new.radio_callers()
        && old.tls == new.tls
        && old.udp == new.udp
        && old.uicl == new.uicl
}
