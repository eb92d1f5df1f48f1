//! Links of a node: those of its configuration, and those that peers open.

use crate::config::{Config, LinkSettings, RadioNeighbour};
use crate::tls::CertificatePolicy;
use longwire_proto::bp::agent::LinkConfig;
use longwire_proto::service::LinkId;
use longwire_settings::error::Error;
use longwire_towers::Plan;
use std::collections::{BTreeMap, VecDeque};

/// A link and its settings.
#[derive(Clone, Debug)]
pub(crate) struct KnownLink {
    pub(crate) link: LinkSettings,
    /// Settings of its sessions.
    pub(crate) plan: Plan,
    pub(crate) policy: CertificatePolicy,
    /// Radio neighbour of a link over a TNC.
    pub(crate) neighbour: Option<RadioNeighbour>,
    /// True on an amateur radio band.
    pub(crate) is_amateur: bool,
}

/// Names of removed links that are kept.
const REMOVED_MAX: usize = 64;

/// Links of the configuration, and the names of those that peers open.
#[derive(Debug)]
pub(crate) struct LinkTable {
    known: BTreeMap<LinkId, KnownLink>,
    /// Names of recently removed links, the oldest first: events about their end still follow.
    removed: VecDeque<(LinkId, String)>,
    /// Names of listening UDP sockets.
    listening: BTreeMap<LinkId, String>,
    next: u32,
    pub(crate) caller_ids: CallerIds,
}

/// IDs of links that peers open.
#[derive(Debug)]
pub(crate) struct CallerIds(u32);

impl CallerIds {
    /// None is in use.
    pub(crate) fn new() -> Self {
        CallerIds(LinkId::FIRST_INCOMING)
    }

    /// Returns the ID of the next caller.
    pub(crate) fn next(&mut self) -> LinkId {
        let id = LinkId(self.0);
        self.0 = self.0.checked_add(1).unwrap_or(LinkId::FIRST_INCOMING);
        id
    }
}

impl LinkTable {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let mut links = LinkTable {
            known: BTreeMap::new(),
            removed: VecDeque::new(),
            listening: BTreeMap::new(),
            next: 1,
            caller_ids: CallerIds::new(),
        };
        for link in &config.link {
            links.add(config, link)?;
        }
        Ok(links)
    }

    /// Adds a link with a new ID, so that it inherits no state of an earlier link with the same name.
    pub(crate) fn add(&mut self, config: &Config, link: &LinkSettings) -> Result<LinkId, Error> {
        let id = LinkId(self.next);
        self.next += 1;
        self.known.insert(
            id,
            KnownLink {
                link: link.clone(),
                plan: config.plan(link)?,
                policy: config.policy(link)?,
                neighbour: config.neighbour(link)?,
                is_amateur: config.is_amateur(link),
            },
        );
        Ok(id)
    }

    /// Takes over which links are amateur radio. Returns those that have become so: a link over the same TNC is.
    pub(crate) fn set_amateur(&mut self, config: &Config) -> Vec<LinkId> {
        let mut changed = Vec::new();
        for (id, known) in &mut self.known {
            let is_amateur = config.is_amateur(&known.link);
            if !core::mem::replace(&mut known.is_amateur, is_amateur) && is_amateur {
                changed.push(*id);
            }
        }
        changed
    }

    pub(crate) fn remove(&mut self, id: LinkId) {
        let Some(known) = self.known.remove(&id) else { return };
        self.removed.push_back((id, known.link.name));
        if self.removed.len() > REMOVED_MAX {
            self.removed.pop_front();
        }
    }

    pub(crate) fn get(&self, id: LinkId) -> Option<&KnownLink> {
        self.known.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkId, &KnownLink)> {
        self.known.iter().map(|(id, known)| (*id, known))
    }

    pub(crate) fn named(&self, name: &str) -> Option<LinkId> {
        self.known.iter().find(|(_, known)| known.link.name == name).map(|(id, _)| *id)
    }

    /// Display name of a link.
    pub(crate) fn name(&self, id: LinkId) -> String {
        if let Some(name) = self.listening.get(&id) {
            return name.clone();
        }
        match self.known.get(&id) {
            Some(known) => known.link.name.clone(),
            None if id.is_incoming() => format!("caller {}", id.0 - LinkId::FIRST_INCOMING),
            None => {
                let removed = self.removed.iter().find(|(removed, _)| *removed == id);
                removed.map_or_else(|| format!("link {}", id.0), |(_, name)| name.clone())
            }
        }
    }

    /// Adds a listening UDP socket with this name and returns its ID.
    pub(crate) fn listening(&mut self, name: String) -> LinkId {
        let id = self.caller_ids.next();
        self.listening.insert(id, name);
        id
    }
}

/// Settings of a link for the agent.
pub(crate) fn special(config: &Config, id: LinkId, link: &LinkSettings) -> LinkConfig {
    LinkConfig {
        link: id,
        rate_bps: link.rate_bps,
        bundle_bytes_max: link.bundle_bytes_max,
        relays: link.relays,
        open_in_contacts: config.is_planned(link),
        accept: link.accept.clone(),
        emit: link.emit.clone(),
        amateur: config.is_amateur(link),
        ..LinkConfig::default()
    }
}
