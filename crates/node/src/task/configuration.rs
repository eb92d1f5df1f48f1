//! The configuration in force, and changes to it.

use super::{EngineParts as _, Task};
use crate::config::{Config, Differences, LinkSettings};
use crate::surfaces::message::Reply;
use crate::tls::Credentials;
use crate::tower::links::special;
use crate::view::{self, Event};
use longwire_proto::bp::agent;
use longwire_proto::service::{LinkId, ManagementRequest};
use longwire_proto::time::Instant;
use longwire_settings::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) struct ActiveConfiguration {
    pub(super) config: Config,
    path: Option<PathBuf>,
    /// Certificate of the node and trusted authorities.
    pub(super) credentials: Option<Arc<Credentials>>,
    /// Result of the last reload.
    pub(super) reloaded: view::Configuration,
}

impl ActiveConfiguration {
    /// The configuration of a node that starts.
    pub(crate) fn new(config: Config, path: Option<PathBuf>, credentials: Option<Arc<Credentials>>) -> Self {
        ActiveConfiguration { config, path, credentials, reloaded: view::Configuration::default() }
    }
}

impl Task {
    /// Reloads the configuration file, if there is one; links, routes, limits and folders follow it.
    pub(super) fn reload(&mut self, now: Instant) -> Reply {
        let Some(path) = self.configuration.path.clone() else {
            return Reply::error("this node has no configuration file", None);
        };
        let read = Config::load(&path)
            .and_then(|config| Ok((config.credentials()?, self.new_security(&config)?, config)));
        let done = match read {
            Ok((credentials, security, config)) => {
                let mut in_force = self.configuration.config.clone();
                in_force.link.retain(|link| !link.found);
                let differences = in_force.differences(&config);
                match self.apply(now, config) {
                    Reply::Error { what, hint, .. } => Err(Error { what, hint }),
                    _ => {
                        self.configuration.credentials = credentials.map(Arc::new);
                        self.apply_security(security);
                        Ok(differences)
                    }
                }
            }
            Err(error) => Err(error),
        };
        self.tell_reload(now, done)
    }

    /// Reports the result of a reload: to the requester, in `status`, as an event, and in the log, for operators who use the
    /// signal.
    fn tell_reload(&mut self, now: Instant, done: Result<Differences, Error>) -> Reply {
        match done {
            Ok(Differences { applied, needs_restart }) => {
                let named = |keys: &[String]| {
                    let list: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
                    list.join(", ")
                };
                let now_changed = match &applied[..] {
                    [] => "no setting that applies at once was changed".to_owned(),
                    keys => format!("changed: {}", named(keys)),
                };
                let later = match &needs_restart[..] {
                    [] => String::new(),
                    keys => format!("; changes to {} take effect after a restart", named(keys)),
                };
                tracing::info!(target: "configuration", "configuration reloaded; {now_changed}{later}");
                self.configuration.reloaded = view::Configuration {
                    refused: None,
                    applied: applied.clone(),
                    needs_restart: needs_restart.clone(),
                };
                self.note(now, Event::ConfigurationRead { applied, needs_restart });
                Reply::Done
            }
            Err(Error { what, hint }) => {
                tracing::error!(
                    target: "configuration",
                    hint,
                    "configuration not reloaded, the previous one stays in use: {what}"
                );
                self.configuration.reloaded.refused = Some(what.clone());
                self.note(now, Event::ConfigurationRefused { what: what.clone(), hint: hint.clone() });
                Error { what, hint }.into()
            }
        }
    }

    /// Applies the links, routes, limits and folders of a configuration; other settings take effect after a restart.
    pub(super) fn apply(&mut self, now: Instant, new: Config) -> Reply {
        // Lines to TNCs are opened at startup only, and sessions have the node ID of the agent, which stays.
        let Config { node, tnc, gateway, .. } = self.configuration.config.clone();
        let new = Config { node, tnc, ..new };
        // Gateways stay those of the start, too.
        let running = Config { gateway, ..new.clone() };
        if let Err(Error { what, .. }) = running.check_plain_gateways() {
            let hint =
                "the gateways of the start are still in use; restart the node to use those of the file";
            return Reply::error(what, Some(hint));
        }
        if let Err(Error { what, hint }) = new.check() {
            let hint = hint.or_else(|| Some("restart the node to use a new TNC".to_owned()));
            return Error { what, hint }.into();
        }
        // The store, the mail and the secrets stay where they are until the restart.
        let (drop, receive) = (new.drop.clone(), new.receive.clone());
        let in_force = Config { drop, receive, ..self.configuration.config.clone() };
        if let Err(Error { what, .. }) = in_force.check_folders() {
            let hint = "paths of the start are still in use; restart the node to use those of the file";
            return Reply::error(what, Some(hint));
        }
        self.put_in_force(now, new);
        Reply::Done
    }

    /// Puts a configuration in force that was checked before, and makes the links to neighbours that were found anew: the
    /// configuration may have others to the same nodes now.
    pub(super) fn put_in_force(&mut self, now: Instant, mut new: Config) {
        new.link.retain(|link| !link.found);
        let found = self.found_links(&new);
        new.link.extend(found);
        let old = std::mem::take(&mut self.configuration.config);
        for route in
            old.route.iter().filter(|route| !new.route.contains(route) || !same_link(&old, &new, &route.via))
        {
            if let Some(via) = self.hop(&route.via) {
                self.ask(now, ManagementRequest::RemoveRoute { pattern: route.to.clone(), via });
            }
        }
        let shared = same_sessions(&old, &new);
        let (mut opened, mut expected) = (Vec::new(), Vec::new());
        self.engines.neighbours_mut().set_callers(&new);
        for link in &new.link {
            if !(shared && old.link.contains(link)) {
                // The configuration was checked before.
                let Ok(id) = self.engines.neighbours_mut().add_link(&new, link) else { continue };
                opened.extend(link.open.then_some(id));
                expected.extend(link.peer.clone().filter(|_| link.found).map(|node| (id, node)));
            }
        }
        let gone: Vec<LinkId> = {
            let links = &self.engines.neighbours().links;
            let stale = |id: LinkId, link: &LinkSettings| {
                let latest =
                    links.iter().filter(|(_, other)| other.link.name == link.name).map(|(id, _)| id).max();
                !new.link.contains(link) || latest != Some(id)
            };
            links.iter().filter(|(id, known)| stale(*id, &known.link)).map(|(id, _)| id).collect()
        };
        for link in gone {
            self.ask(now, ManagementRequest::ForgetLink { link });
            self.engines.neighbours_mut().remove_link(link);
            self.link_states.seen.remove(&link);
            self.link_states.planned.remove(&link);
            self.link_states.tls.forget(link);
        }
        if let Err(Error { what, .. }) = self.surfaces.folders.follow(&new.drop, &new.receive) {
            tracing::error!(target: "configuration", "a folder is not served until the next start: {what}");
        }
        let (agent, _) = self.engines.agent_and_neighbours();
        agent.set_limits(new.agent.limits.clone());
        self.configuration.config = Config {
            agent: agent::Config { limits: new.agent.limits, ..old.agent },
            drop: new.drop,
            receive: new.receive,
            link: new.link.clone(),
            route: new.route.clone(),
            contact: new.contact,
            amateur_networks: new.amateur_networks,
            peer: new.peer,
            tls: new.tls,
            security: new.security,
            peers: new.peers,
            carriers: new.carriers,
            ..old
        };
        self.configure_links();
        let discovered = self.discovered_nodes();
        let identities = &mut self.engines.neighbours_mut().identities;
        identities.configure(&self.configuration.config);
        identities.discover(discovered);
        self.plan(now);
        for link in opened {
            self.ask(now, ManagementRequest::OpenLink { link });
        }
        for (link, node) in expected {
            self.ask(now, ManagementRequest::ExpectLink { link, node });
        }
        self.admit_neighbours(now);
        for route in new.route {
            if let Some(request) = self.route(&route) {
                self.ask(now, request);
            }
        }
    }

    /// Passes the settings of each link to the agent.
    fn configure_links(&mut self) {
        let (agent, neighbours) = self.engines.agent_and_neighbours();
        agent.configure_peers(self.configuration.config.peer.clone());
        for (id, known) in neighbours.links.iter() {
            agent.configure_link(special(&self.configuration.config, id, &known.link));
        }
    }
}

fn same_link(old: &Config, new: &Config, name: &str) -> bool {
    let find = |config: &Config| config.link.iter().find(|link| link.name == name).cloned();
    find(old) == find(new) && same_sessions(old, new)
}

/// True if the settings shared by all links are equal.
fn same_sessions(old: &Config, new: &Config) -> bool {
    old.node_id().ok() == new.node_id().ok() && old.carriers.is_same(&new.carriers) && old.tls == new.tls
}
