//! Links of a node: those of its configuration, and those that peers open.

use crate::config::{Config, LinkKind, LinkSettings, RadioNeighbour};
use crate::layer::Layer;
use crate::tls::CertificatePolicy;
use longwire_proto::ax25cl;
use longwire_proto::bp::agent::LinkConfig;
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::{Fan, Origin};
use longwire_proto::rng::Rng;
use longwire_proto::service::{Bundles, LinkId, Stream};
use longwire_proto::tcpcl::{self, Session};
use longwire_proto::time::Instant;
use longwire_proto::udpcl;
use longwire_settings::error::Error;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// Sessions by link.
pub(crate) type Sessions = Fan<LinkId, Layer, Box<dyn FnMut(LinkId, Origin) -> Option<Layer> + Send>>;
/// Sum of the counters of closed sessions.
pub(crate) type ClosedSessionCounters = Arc<Mutex<tcpcl::Counters>>;

/// A session that adds its counters to those of closed sessions when it is dropped.
#[derive(Debug)]
pub(crate) struct CountedSession {
    session: Session,
    closed_session_counters: ClosedSessionCounters,
}

impl std::ops::Deref for CountedSession {
    type Target = Session;
    fn deref(&self) -> &Session {
        &self.session
    }
}

impl CountedSession {
    /// Answers a caller that waits for its admission.
    pub(crate) fn judge(&mut self, now: Instant, verdict: tcpcl::AdmissionDecision) {
        self.session.judge(now, verdict);
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        // A poisoned lock: a panic is unwinding, and the counters do not matter.
        if let Ok(mut closed_session_counters) = self.closed_session_counters.lock() {
            *closed_session_counters = closed_session_counters.plus(self.session.counters());
        }
    }
}

impl Engine for CountedSession {
    type Above = Bundles;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, request: Request<Bundles>) {
        self.session.handle_request(now, request);
    }
    fn handle_indication(&mut self, now: Instant, indication: Indication<Stream>) {
        self.session.handle_indication(now, indication);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
    }
    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Bundles>> {
        self.session.poll_indication(now)
    }
    fn poll_request(&mut self, now: Instant) -> Option<Request<Stream>> {
        self.session.poll_request(now)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.session.poll_timeout()
    }
    fn finished(&self) -> bool {
        self.session.finished()
    }
}

/// A link and its settings.
#[derive(Clone, Debug)]
pub(crate) struct KnownLink {
    pub(crate) link: LinkSettings,
    pub(crate) session: tcpcl::Config,
    pub(crate) policy: CertificatePolicy,
    pub(crate) udp: udpcl::Config,
    /// Radio neighbour of a link over a TNC.
    pub(crate) neighbour: Option<RadioNeighbour>,
}

/// Names of removed links that are kept.
const REMOVED_MAX: usize = 64;

/// Links of the configuration, and the settings of those that peers open.
#[derive(Debug)]
pub(crate) struct LinkTable {
    known: BTreeMap<LinkId, KnownLink>,
    /// Names of recently removed links, the oldest first: events about their end still follow.
    removed: VecDeque<(LinkId, String)>,
    callers: tcpcl::Config,
    /// Settings for callers over TNCs: AX25-CL (Longwire) and TCPCL 3.
    radio_callers: (ax25cl::Config, tcpcl::Config),
    /// Listening UDP sockets and their addresses.
    listening: BTreeMap<LinkId, String>,
    udp: udpcl::Config,
    next: u32,
    next_caller: u32,
}

/// Shared, since the fan asks for settings whenever it creates a session.
pub(crate) type SharedLinks = Arc<Mutex<LinkTable>>;

impl LinkTable {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let mut links = LinkTable {
            known: BTreeMap::new(),
            removed: VecDeque::new(),
            callers: config.callers(),
            radio_callers: config.radio_callers(),
            listening: BTreeMap::new(),
            udp: config.udp.clone(),
            next: 1,
            next_caller: LinkId::FIRST_INCOMING,
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
                session: config.session(link)?,
                policy: config.policy(link)?,
                udp: config.udp(link)?,
                neighbour: config.neighbour(link)?,
            },
        );
        Ok(id)
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
        if let Some(at) = self.listening.get(&id) {
            return format!("udp {at}");
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

    /// Returns the ID of the next caller.
    pub(crate) fn next_caller(&mut self) -> LinkId {
        let id = LinkId(self.next_caller);
        self.next_caller = self.next_caller.checked_add(1).unwrap_or(LinkId::FIRST_INCOMING);
        id
    }

    /// Adds a listening UDP socket and returns its ID.
    pub(crate) fn listening(&mut self, at: String) -> LinkId {
        let id = self.next_caller();
        self.listening.insert(id, at);
        id
    }

    /// Takes over the settings for callers from a reloaded configuration.
    pub(crate) fn set_callers(&mut self, config: &Config) {
        self.callers = config.callers();
        self.radio_callers = config.radio_callers();
    }

    /// Settings for callers over TNCs.
    pub(crate) fn radio_callers(&self) -> &(ax25cl::Config, tcpcl::Config) {
        &self.radio_callers
    }
}

/// Settings of a link for the agent.
pub(crate) fn special(config: &Config, id: LinkId, link: &LinkSettings) -> LinkConfig {
    LinkConfig {
        link: id,
        rate_bps: link.rate_bps,
        bundle_bytes_max: link.bundle_bytes_max,
        open_in_contacts: config.is_planned(link),
        accept: link.accept.clone(),
        emit: link.emit.clone(),
        ..LinkConfig::default()
    }
}

/// Creates the sessions of these links.
pub(crate) fn sessions(
    links: SharedLinks,
    rng: Rng,
    closed_session_counters: ClosedSessionCounters,
) -> Sessions {
    let mut made = 0_u64;
    let make = move |id: LinkId, origin: Origin| {
        let links = links.lock().expect("no thread panics while it has the links");
        made += 1;
        let rng = rng.fork(&made.to_string());
        let counted = |session| {
            Layer::Tcp(Box::new(CountedSession {
                session,
                closed_session_counters: closed_session_counters.clone(),
            }))
        };
        match origin {
            Origin::Above => links.get(id).and_then(|known| match known.link.kind {
                LinkKind::Tcp => Some(counted(Session::active(known.session.clone(), rng))),
                LinkKind::Udp => Some(Layer::Udp(Box::new(udpcl::Link::new(known.udp.clone())))),
                // `Radios` handles these.
                LinkKind::Ax25cl | LinkKind::Ax25cm | LinkKind::Uicl => None,
            }),
            Origin::Below if links.listening.contains_key(&id) => {
                Some(Layer::Udp(Box::new(udpcl::Link::listening(links.udp.clone()))))
            }
            Origin::Below => {
                id.is_incoming().then(|| counted(Session::passive(links.callers.clone(), rng).judged()))
            }
        }
    };
    Fan::new(Box::new(make) as Box<_>)
}
