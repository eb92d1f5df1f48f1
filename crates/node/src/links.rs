//! The links of a node: those of its configuration, and those that peers open.

use crate::config::{Config, Link};
use crate::tls::Policy;
use longwire_proto::joint::{Fan, Origin};
use longwire_proto::rng::Rng;
use longwire_proto::service::LinkId;
use longwire_proto::tcpcl::{self, Session};
use longwire_settings::error::Error;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Sessions side by side.
pub(crate) type Sessions = Fan<LinkId, Session, Box<dyn FnMut(LinkId, Origin) -> Option<Session> + Send>>;

/// A link.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) link: Link,
    pub(crate) session: tcpcl::Config,
    pub(crate) policy: Policy,
}

/// The links of the configuration, and the settings of those that peers open.
#[derive(Debug)]
pub(crate) struct Links {
    known: BTreeMap<LinkId, Known>,
    callers: tcpcl::Config,
    next: u32,
    next_caller: u32,
}

/// The fan asks for settings whenever it makes a session.
pub(crate) type Shared = Arc<Mutex<Links>>;

impl Links {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let mut links = Links {
            known: BTreeMap::new(),
            callers: config.callers(),
            next: 1,
            next_caller: LinkId::FIRST_INCOMING,
        };
        for link in &config.link {
            links.add(config, link)?;
        }
        Ok(links)
    }

    /// A new link has a new id: nothing of an older one of that name sticks to it.
    pub(crate) fn add(&mut self, config: &Config, link: &Link) -> Result<LinkId, Error> {
        let id = LinkId(self.next);
        self.next += 1;
        self.known.insert(
            id,
            Known { link: link.clone(), session: config.session(link)?, policy: config.policy(link)? },
        );
        Ok(id)
    }

    pub(crate) fn remove(&mut self, id: LinkId) {
        self.known.remove(&id);
    }

    pub(crate) fn get(&self, id: LinkId) -> Option<&Known> {
        self.known.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkId, &Known)> {
        self.known.iter().map(|(id, known)| (*id, known))
    }

    pub(crate) fn named(&self, name: &str) -> Option<LinkId> {
        self.known.iter().find(|(_, known)| known.link.name == name).map(|(id, _)| *id)
    }

    /// The name of a link, for people.
    pub(crate) fn name(&self, id: LinkId) -> String {
        match self.known.get(&id) {
            Some(known) => known.link.name.clone(),
            None if id.is_incoming() => format!("caller {}", id.0 - LinkId::FIRST_INCOMING),
            None => format!("link {}", id.0),
        }
    }

    /// The id of the next caller.
    pub(crate) fn next_caller(&mut self) -> LinkId {
        let id = LinkId(self.next_caller);
        self.next_caller = self.next_caller.checked_add(1).unwrap_or(LinkId::FIRST_INCOMING);
        id
    }

    /// What a reload changes for those who call.
    pub(crate) fn set_callers(&mut self, callers: tcpcl::Config) {
        self.callers = callers;
    }
}

/// The sessions of these links.
pub(crate) fn sessions(links: Shared, rng: Rng) -> Sessions {
    let mut made = 0_u64;
    let make = move |id: LinkId, origin: Origin| {
        let links = links.lock().expect("no thread panics while it has the links");
        made += 1;
        let rng = rng.fork(&made.to_string());
        match origin {
            Origin::Above => links.get(id).map(|known| Session::active(known.session.clone(), rng)),
            Origin::Below => id.is_incoming().then(|| Session::passive(links.callers.clone(), rng)),
        }
    };
    Fan::new(Box::new(make) as Box<_>)
}
