//! Requests of operators.

use super::{EngineParts as _, Task};
use crate::config::{Config, LinkSettings, RouteSettings, StorageKind};
use crate::surfaces::message::{Reply, Request};
use crate::tower::radio::TncId;
use crate::view;
use longwire_proto::ax25::Callsign;
use longwire_proto::service::{LinkId, ManagementRequest};
use longwire_proto::time::Instant;
use longwire_settings::error::did_you_mean;

impl Task {
    /// Handles requests that are not about sends, registrations or deliveries.
    pub(super) fn operate(&mut self, now: Instant, request: Request) -> Reply {
        match request {
            Request::Status | Request::NextStatus => Reply::Status { status: Box::new(self.status(now)) },
            Request::Bundles { limit, after, filter } => self.bundles(now, after.as_deref(), limit, &filter),
            Request::Bundle(name) => self.bundle(now, &name),
            Request::Delete(name) => self.delete(now, &name),
            Request::Links => Reply::Links { links: self.link_views(now) },
            Request::AddLink { name, address } => self.add_link(now, name, address),
            Request::CutLink { name } => {
                self.with_link(now, &name, |link| ManagementRequest::CloseLink { link })
            }
            Request::OpenLink { name } => {
                self.with_link(now, &name, |link| ManagementRequest::OpenLink { link })
            }
            Request::RemoveLink { name } => self.remove_link(now, &name),
            Request::Heard => {
                let radios = &self.engines.neighbours().radios;
                Reply::Heard { stations: radios.heard_views(now, &self.configuration.config.tnc) }
            }
            Request::Inhibit { name } => self.inhibit(&name, true),
            Request::Permit { name } => self.inhibit(&name, false),
            Request::Watch => {
                self.watch(now);
                Reply::Done
            }
            Request::Transmissions => {
                let tncs = &self.configuration.config.tnc;
                let transmissions = self.engines.neighbours().radios.transmission_views(now, tncs);
                Reply::Transmissions { transmissions }
            }
            Request::Estimate { to, length } => self.estimate(&to, length),
            Request::Routes => Reply::Routes { routes: self.routes() },
            Request::AddRoute { route } => self.add_route(now, route),
            Request::RemoveRoute { to, via } => self.remove_route(now, &to, &via),
            Request::TrustClock => self.trust_clock(now),
            Request::Keys => self.keys(),
            Request::TrustKey { node, fingerprint } => self.trust_key(&node, &fingerprint),
            Request::ForgetKey { node } => self.forget_key(&node),
            Request::Reload => self.reload(now),
            request @ (Request::Send { .. }
            | Request::Piece { .. }
            | Request::Cancel { .. }
            | Request::Register { .. }
            | Request::Unregister { .. }
            | Request::Read { .. }
            | Request::Taken { .. }) => {
                unreachable!("`Applications::request` handles {:?}", request.operation().request)
            }
        }
    }

    /// Confirms the clock: lifetimes follow it from now on.
    fn trust_clock(&mut self, now: Instant) -> Reply {
        if self.engines.upper.clock_ahead_ms() == 0 {
            return Reply::error("the clock has not jumped; there is nothing to confirm", None);
        }
        self.ask(now, ManagementRequest::TrustClock);
        self.note(now, view::Event::ClockTrusted);
        Reply::Done
    }

    fn with_link(
        &mut self,
        now: Instant,
        name: &str,
        request: impl Fn(LinkId) -> ManagementRequest,
    ) -> Reply {
        let found = self.engines.neighbours().links.named(name);
        match found.or_else(|| self.caller_named(name)) {
            Some(id) => {
                self.ask(now, request(id));
                Reply::Done
            }
            None => no_link(&self.configuration.config, name),
        }
    }

    /// Inhibits or permits the transmissions of a TNC.
    fn inhibit(&mut self, name: &str, inhibited: bool) -> Reply {
        let tncs = &self.configuration.config.tnc;
        let Some(at) = tncs.iter().position(|tnc| tnc.name == name) else {
            let names = tncs.iter().map(|tnc| tnc.name.as_str());
            let hint = did_you_mean(name, names, "`longwire status` lists the TNCs of the node");
            return Reply::error(format!("no such TNC: `{name}`"), Some(&hint));
        };
        self.engines.neighbours_mut().radios.inhibit(TncId(at), inhibited);
        let is_kept = self.keep_inhibited(name, inhibited);
        let word = if inhibited { "inhibited" } else { "permitted" };
        let held = match self.engines.neighbours().radios.controller(TncId(at)).held() {
            held if inhibited && held > 0 => {
                format!("; the TNC holds {held} frames, which it may still transmit")
            }
            _ => String::new(),
        };
        tracing::info!("TNC `{name}`: transmission is {word}{held}");
        match is_kept {
            Ok(()) => Reply::Done,
            Err(error) => Reply::error(
                format!("transmission is {word}, but the next start will not know it: {error}"),
                Some("free some space and repeat it; `inhibit` of the `[[tnc]]` holds at each start"),
            ),
        }
    }

    /// Notes in a file that the transmissions of a TNC are inhibited, or no longer. This is an order of the operator, who waits
    /// for it. A node with a store in memory keeps nothing.
    fn keep_inhibited(&mut self, name: &str, inhibited: bool) -> Result<(), String> {
        let is_new = match inhibited {
            true => self.inhibited.insert(name.to_owned()),
            false => self.inhibited.remove(name),
        };
        if !is_new || self.configuration.config.storage.kind == StorageKind::Memory {
            return Ok(());
        }
        let path = self.configuration.config.inhibited();
        let written = crate::inhibited::write(&path, &self.inhibited);
        if written.is_err() {
            // The next attempt writes it.
            match inhibited {
                true => drop(self.inhibited.remove(name)),
                false => drop(self.inhibited.insert(name.to_owned())),
            }
        }
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Inhibits the transmissions again that were inhibited when the node stopped.
    pub(super) fn inhibit_again(&mut self) {
        for (at, tnc) in self.configuration.config.tnc.iter().enumerate() {
            if self.inhibited.contains(&tnc.name) {
                self.engines.neighbours_mut().radios.inhibit(TncId(at), true);
                tracing::warn!(
                    hint = "permit it with `longwire links permit`",
                    "TNC `{}`: transmission is inhibited, as before the start",
                    tnc.name
                );
            }
        }
    }

    fn caller_named(&self, name: &str) -> Option<LinkId> {
        let number: u32 = name.strip_prefix("caller ")?.parse().ok()?;
        let id = LinkId(LinkId::FIRST_INCOMING.checked_add(number)?);
        self.link_states.seen.contains_key(&id).then_some(id)
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
        let mut config = self.configuration.config.clone();
        config.link.push(link.clone());
        let added = config.check().and_then(|()| self.engines.neighbours_mut().add_link(&config, &link));
        match added {
            Ok(id) => {
                self.configuration.config = config;
                self.ask(now, ManagementRequest::OpenLink { link: id });
                Reply::Done
            }
            Err(error) => error.into(),
        }
    }

    fn remove_link(&mut self, now: Instant, name: &str) -> Reply {
        if !self.configuration.config.link.iter().any(|link| link.name == name) {
            return no_link(&self.configuration.config, name);
        }
        if self.configuration.config.link.iter().any(|link| link.name == name && link.found) {
            return Reply::error(
                format!(
                    "link `{name}` leads to a neighbour that was found, and comes back while it is heard"
                ),
                Some("close it with `longwire links cut`, or set `peers` in [discovery]"),
            );
        }
        let mut config = self.configuration.config.clone();
        config.link.retain(|link| link.name != name);
        // Contacts that concern this link only are removed, too: a contact without a link is invalid.
        let old = &self.configuration.config;
        config.contact.retain(|planned| {
            old.link.iter().all(|link| link.name != name || !planned.concerns(old, link))
                || config.link.iter().any(|link| planned.concerns(old, link))
        });
        config.route.retain(|route| route.via != name);
        self.apply(now, config)
    }

    fn routes(&self) -> Vec<view::Route> {
        let all = self.configuration.config.route.iter();
        all.map(|route| view::Route { to: route.to.clone(), via: route.via.clone(), cost: route.cost })
            .collect()
    }

    fn add_route(&mut self, now: Instant, route: view::Route) -> Reply {
        let mut config = self.configuration.config.clone();
        config.route.retain(|other| other.to != route.to || other.via != route.via);
        config.route.push(RouteSettings { to: route.to, via: route.via, cost: route.cost });
        match config.check() {
            Ok(()) => self.apply(now, config),
            Err(error) => error.into(),
        }
    }

    fn remove_route(&mut self, now: Instant, to: &str, via: &str) -> Reply {
        let mut config = self.configuration.config.clone();
        config.route.retain(|route| route.to != to || route.via != via);
        if config.route.len() == self.configuration.config.route.len() {
            return Reply::error(
                format!("no such route: {to} via {via}"),
                Some("list routes with `GET /routes`"),
            );
        }
        self.apply(now, config)
    }
}

fn no_link(config: &Config, name: &str) -> Reply {
    let names = config.link.iter().map(|link| link.name.as_str());
    let hint = did_you_mean(name, names, "list links with `longwire links`");
    Reply::error(format!("no such link: `{name}`"), Some(&hint))
}
