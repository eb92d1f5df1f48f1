//! What operators ask of a node: how it is, what it holds and why, its links.

use crate::config::{Config, Link};
use crate::message::{Reply, Request};
use crate::task::Task;
use longwire_proto::bp::agent::{BundleStatus, Why};
use longwire_proto::service::{AppRequest, LinkId};
use longwire_proto::time::Instant;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Bundles in one answer.
const BUNDLES_MAX: usize = 10_000;

impl Task {
    /// Carries out what is neither a send nor a delivery.
    pub(crate) fn operate(&mut self, now: Instant, request: Request) -> Reply {
        match request {
            Request::Status => Reply::Status { status: self.status(now) },
            Request::Bundles { limit } => self.bundles(now, limit.min(BUNDLES_MAX)),
            Request::Delete { source, created } => self.delete(now, source, created),
            Request::Links => Reply::Links { links: self.links_value(now) },
            Request::AddLink { name, address } => self.add_link(now, name, address),
            Request::CutLink { name } => self.with_link(now, &name, |link| AppRequest::CloseLink { link }),
            Request::OpenLink { name } => self.with_link(now, &name, |link| AppRequest::OpenLink { link }),
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

    fn status(&self, now: Instant) -> Value {
        let agent = &self.engines.upper;
        let mut held = 0;
        let mut bytes = 0;
        for bundle in agent.bundles(now) {
            held += 1;
            bytes += bundle.payload_bytes;
        }
        json!({
            "node": agent.node().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "ready": agent.is_ready(),
            "uptime_s": now.as_secs_f64(),
            "dtn_ms": self.dtn_ms(),
            "bundles": held,
            "payload_bytes": bytes,
            "buffered_bytes": agent.buffered_bytes(),
            "applications": self.desk.applications(),
            "endpoints": self.desk.endpoints().collect::<Vec<_>>(),
            "counters": agent.counters(),
            "store": {
                "records_found": self.opened.records,
                "torn_bytes": self.opened.torn_bytes,
                "damaged": self.opened.damaged,
            },
            "callers_turned_away": self.turned_away,
            "links": self.links_value(now),
        })
    }

    fn bundles(&self, now: Instant, limit: usize) -> Reply {
        let agent = &self.engines.upper;
        let shown: Vec<Value> =
            agent.bundles(now).take(limit).map(|bundle| self.bundle(now, &bundle)).collect();
        Reply::Bundles { bundles: Value::Array(shown), total: agent.bundles(now).count() }
    }

    fn bundle(&self, now: Instant, bundle: &BundleStatus) -> Value {
        let timestamp = bundle.id.timestamp;
        json!({
            "source": bundle.id.source.to_string(),
            "created": (timestamp.time.0, timestamp.sequence),
            "fragment": bundle.id.fragment,
            "destination": bundle.destination.to_string(),
            "priority": bundle.priority,
            "payload_bytes": bundle.payload_bytes,
            "safe_bytes": bundle.safe_bytes,
            "why": self.why(now, &bundle.why),
        })
    }

    /// Why a bundle is still here, for a person.
    fn why(&self, now: Instant, why: &Why) -> String {
        let names = |ids: &[LinkId]| {
            let links = self.links.lock().expect("no thread panics while it has the links");
            ids.iter().map(|id| format!("`{}`", links.name(*id))).collect::<Vec<_>>().join(", ")
        };
        match why {
            Why::Arriving => "it is still arriving".into(),
            Why::Storing => "it is being stored".into(),
            Why::NoRoute => "no route leads to its destination, and no such neighbour is connected".into(),
            Why::LinksDown(ids) => format!("every link that it may take is down: {}", names(ids)),
            Why::NoContact { link, next_dtn_ms: None } => {
                format!("no further contact is planned for link {}", names(&[*link]))
            }
            Why::NoContact { link, next_dtn_ms: Some(next) } => {
                let wait = self.dtn_ms().map_or(0, |dtn_ms| next.saturating_sub(dtn_ms)) / 1000;
                format!("the next contact of link {} begins in {wait} s", names(&[*link]))
            }
            Why::Queued(link) => format!("it waits its turn for link {}", names(&[*link])),
            Why::OnTheWay(link) => format!("it is on its way over link {}", names(&[*link])),
            Why::Resting(until) => {
                let wait = until.saturating_since(now).as_secs();
                format!("the next hop had no place for it; it is tried again in {wait} s")
            }
            Why::InParts { have, of } => format!("it is for this node, and {have} of {of} bytes are here"),
            Why::NobodyRegistered(_) => "it is for this node, and no application asks for it".into(),
            Why::NotTaken(_) => "an application was told of it and has not taken it".into(),
        }
    }

    fn delete(&mut self, now: Instant, source: String, created: (u64, u64)) -> Reply {
        let before = self.engines.upper.counters().deleted_cancelled;
        self.ask(now, AppRequest::Delete { source: source.clone(), created });
        if self.engines.upper.counters().deleted_cancelled > before {
            return Reply::Done;
        }
        let what = format!("there is no bundle of {source} created at {}-{}", created.0, created.1);
        Reply::error(what, Some("longwire bundles lists what there is"))
    }

    fn links_value(&self, now: Instant) -> Value {
        let links = self.links.lock().expect("no thread panics while it has the links");
        let mut ids: BTreeSet<LinkId> = links.iter().map(|(id, _)| id).collect();
        ids.extend(self.seen.keys().copied());
        let sessions = &self.engines.lower.second;
        let shown = ids.into_iter().map(|id| {
            let seen = self.seen.get(&id).cloned().unwrap_or_default();
            let session = sessions.get(id);
            let address = self.address(id).map(str::to_owned);
            json!({
                "name": links.name(id),
                "address": address.or_else(|| links.get(id).map(|known| known.link.address.clone())),
                "calls": id.is_incoming(),
                "up": seen.up,
                "peer": seen.peer,
                "tcpcl": session.and_then(|session| session.version()).map(|version| version.number()),
                "down_reason": seen.down.filter(|_| !seen.up),
                "since_s": now.saturating_since(seen.since).as_secs_f64(),
                "counters": session.map(|session| *session.counters()),
            })
        });
        Value::Array(shown.collect())
    }

    fn with_link(&mut self, now: Instant, name: &str, request: impl Fn(LinkId) -> AppRequest) -> Reply {
        let found = self.links.lock().expect("no thread panics while it has the links").named(name);
        match found.or_else(|| self.caller_named(name)) {
            Some(id) => {
                self.ask(now, request(id));
                Reply::Done
            }
            None => Reply::error(format!("there is no link `{name}`"), Some("longwire links shows them")),
        }
    }

    fn caller_named(&self, name: &str) -> Option<LinkId> {
        let number: u32 = name.strip_prefix("caller ")?.parse().ok()?;
        let id = LinkId(LinkId::FIRST_INCOMING.checked_add(number)?);
        self.seen.contains_key(&id).then_some(id)
    }

    fn add_link(&mut self, now: Instant, name: String, address: String) -> Reply {
        let link = Link { name, address, ..Link::default() };
        let mut config = self.setup.config.clone();
        config.link.push(link.clone());
        let added = config.check().and_then(|()| {
            self.links.lock().expect("no thread panics while it has the links").add(&config, &link)
        });
        match added {
            Ok(id) => {
                self.setup.config = config;
                self.ask(now, AppRequest::OpenLink { link: id });
                Reply::Done
            }
            Err(error) => Reply::Error { what: error.what, hint: error.hint },
        }
    }

    /// Takes over the links and routes of a configuration; the rest waits for the next start.
    pub(crate) fn apply(&mut self, now: Instant, new: Config) -> Reply {
        let old = std::mem::take(&mut self.setup.config);
        for route in
            old.route.iter().filter(|route| !new.route.contains(route) || !same_link(&old, &new, &route.via))
        {
            if let Some(via) = self.hop(&route.via) {
                self.ask(now, AppRequest::RemoveRoute { pattern: route.to.clone(), via });
            }
        }
        let shared = old.callers() == new.callers();
        let mut opened = Vec::new();
        {
            let mut links = self.links.lock().expect("no thread panics while it has the links");
            links.set_callers(new.callers());
            for link in &new.link {
                if !(shared && old.link.contains(link)) {
                    // It was checked when it was read.
                    opened.extend(links.add(&new, link).ok().filter(|_| link.open));
                }
            }
        }
        let gone: Vec<LinkId> = {
            let links = self.links.lock().expect("no thread panics while it has the links");
            let stale = |id: LinkId, link: &Link| {
                let latest =
                    links.iter().filter(|(_, other)| other.link.name == link.name).map(|(id, _)| id).max();
                !new.link.contains(link) || latest != Some(id)
            };
            links.iter().filter(|(id, known)| stale(*id, &known.link)).map(|(id, _)| id).collect()
        };
        for link in gone {
            self.ask(now, AppRequest::CloseLink { link });
            self.links.lock().expect("no thread panics while it has the links").remove(link);
            self.seen.remove(&link);
        }
        for link in opened {
            self.ask(now, AppRequest::OpenLink { link });
        }
        for route in new.route.clone() {
            if let Some(request) = self.route(&route) {
                self.ask(now, request);
            }
        }
        self.setup.config = Config { link: new.link, route: new.route, tcpcl: new.tcpcl, ..old };
        Reply::Done
    }
}

fn same_link(old: &Config, new: &Config, name: &str) -> bool {
    let find = |config: &Config| config.link.iter().find(|link| link.name == name).cloned();
    find(old) == find(new) && old.callers() == new.callers()
}
