//! All neighbours of a node: those over TCP and UDP, and those over TNCs.

use crate::config::{Config, LinkSettings};
use crate::tower::identities::{CallerRefusal, Identities, IdentityChange};
use crate::tower::links::LinkTable;

use crate::tower::radio::{LineId, Radios};
use crate::tower::sessions::{Layer, SessionMaker, Sessions};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::{Fan, Origin, earlier};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Both, Bundles, BundlesIndication, BundlesRequest, Datagrams, LinkId, Many, Port, Stream,
};
use longwire_proto::tcpcl::{self, AdmissionDecision};
use longwire_proto::time::Instant;
use longwire_settings::error::Error;
use std::collections::VecDeque;
use std::sync::mpsc;

/// A caller whose session was refused.
#[derive(Clone, Debug)]
pub(crate) struct RefusedCaller {
    pub(crate) link: LinkId,
    /// Node ID that it claims.
    pub(crate) claim: Option<String>,
    pub(crate) refusal: CallerRefusal,
}

/// Sessions of a node by the network of their link.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// Settings of the links.
    pub(crate) links: LinkTable,
    /// Sessions over TCP and UDP.
    pub(crate) internet: Sessions,
    maker: SessionMaker,
    /// Counters of sessions that have ended and are not in `closed` yet.
    ended: mpsc::Receiver<tcpcl::Counters>,
    /// Sum of the counters of closed sessions.
    closed: tcpcl::Counters,
    /// Sessions over TNCs.
    pub(crate) radios: Radios,
    /// Node IDs of the sessions over TCP and UDP.
    pub(crate) identities: Identities,
    /// Refused callers, which the task collects in each pass.
    pub(crate) refused: Vec<RefusedCaller>,
    /// Next indications for the agent.
    up: VecDeque<(LinkId, BundlesIndication)>,
    /// Next requests to sessions.
    down: VecDeque<(LinkId, BundlesRequest)>,
}

impl Neighbours {
    /// The neighbours of a configuration, none of them connected.
    ///
    /// # Errors
    /// Fails if a setting of a link or of a TNC is invalid.
    pub(crate) fn new(config: &Config, rng: &Rng) -> Result<Self, Error> {
        let links = LinkTable::new(config)?;
        let mut radios = Radios::new(config, rng)?;
        for (id, known) in links.iter() {
            radios.add(id, known.neighbour.as_ref(), &known.plan);
        }
        let (tell, ended) = mpsc::channel();
        let mut internet: Sessions = Fan::new(|_, _| None);
        internet.on_end(move |_, layer: Layer| {
            if let Some(session) = layer.session() {
                // The owner has gone, and the counters do not matter.
                let _ = tell.send(*session.counters());
            }
        });
        Ok(Neighbours {
            links,
            internet,
            maker: SessionMaker::new(rng.fork("tcpcl")),
            ended,
            closed: tcpcl::Counters::default(),
            radios,
            identities: Identities::new(config),
            refused: Vec::new(),
            up: VecDeque::new(),
            down: VecDeque::new(),
        })
    }

    /// Adds a link, as configured.
    ///
    /// # Errors
    /// Fails if a setting of the link is invalid.
    pub(crate) fn add_link(&mut self, config: &Config, link: &LinkSettings) -> Result<LinkId, Error> {
        let id = self.links.add(config, link)?;
        if let Some(known) = self.links.get(id) {
            self.radios.add(id, known.neighbour.as_ref(), &known.plan);
        }
        Ok(id)
    }

    /// Removes a link; an open one over a TNC ends by itself and is forgotten then.
    pub(crate) fn remove_link(&mut self, id: LinkId) {
        self.radios.remove(id);
        self.links.remove(id);
    }

    /// Takes over the settings for callers from a reloaded configuration.
    pub(crate) fn set_callers(&mut self, config: &Config) {
        self.links.set_callers(config);
        // The configuration was checked before.
        if let Ok(callers) = config.radio_callers() {
            self.radios.set_callers(&callers);
        }
    }

    /// Sum of the counters of all sessions of TCPCL over TCP, including closed ones.
    pub(crate) fn session_counters(&self) -> tcpcl::Counters {
        let sessions = self.internet.iter().filter_map(|(_, layer)| layer.session());
        sessions.fold(self.closed, |sum, session| sum.plus(session.counters()))
    }

    /// Creates the session of a link that occurs for the first time, if there is one to create.
    fn make(&mut self, id: LinkId, origin: Origin) {
        if self.internet.get(id).is_none()
            && let Some(layer) = self.maker.session(&self.links, id, origin)
        {
            self.internet.insert(id, layer);
        }
    }

    /// Judges a caller that has sent its node ID.
    fn judge(&mut self, now: Instant, link: LinkId) {
        let Some(session) = self.internet.get(link).and_then(Layer::session) else { return };
        let Some(claim) = session.claim() else { return };
        let verdict = match self.identities.judge(link, claim) {
            Ok(()) => AdmissionDecision::Admit,
            Err(refusal) => {
                let claim = claim.node_id.map(str::to_owned);
                self.refused.push(RefusedCaller { link, claim, refusal });
                if let CallerRefusal::Taken(other) = refusal {
                    // A request to connect makes the session probe its peer, and end if the peer is dead.
                    self.down.push_back((other, BundlesRequest::Connect));
                }
                refusal.verdict()
            }
        };
        self.internet.change(link, |layer| layer.judge(now, verdict));
    }

    /// Assigns node IDs to sessions as they come up and go down.
    fn rises(&mut self, link: LinkId, said: BundlesIndication) -> (LinkId, BundlesIndication) {
        match said {
            BundlesIndication::Up { peer: Some(peer), interleave, transfer_bytes_max } => {
                let session = self.internet.get(link).and_then(Layer::session);
                let proven = session.is_some_and(|session| session.is_proven());
                let (named, changes) = self.identities.up(link, &peer, proven, session.is_some());
                changes.into_iter().for_each(|change| self.change(change));
                let peer = Some(peer).filter(|_| named);
                self.up.push_back((link, BundlesIndication::Up { peer, interleave, transfer_bytes_max }));
                self.up.pop_front().expect("it was just put there")
            }
            BundlesIndication::Down { .. } => {
                self.identities.down(link).into_iter().for_each(|change| self.change(change));
                (link, said)
            }
            said => (link, said),
        }
    }

    fn change(&mut self, change: IdentityChange) {
        match change {
            IdentityChange::Named(link, peer) => self.up.push_back((link, BundlesIndication::Peer { peer })),
            IdentityChange::Ends(link) => self.down.push_back((link, BundlesRequest::Close)),
        }
    }
}

impl Engine for Neighbours {
    type Above = Many<LinkId, Bundles>;
    type Below = Both<Many<LinkId, Both<Stream, Datagrams>>, Many<LineId, Stream>>;

    fn handle_request(&mut self, now: Instant, (id, request): Request<Self::Above>) {
        match self.radios.owns(id) {
            true => self.radios.handle_request(now, (id, request)),
            false => {
                self.make(id, Origin::Above);
                self.internet.handle_request(now, (id, request));
            }
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        match indication {
            Port::First((link, said)) => {
                self.make(link, Origin::Below);
                self.internet.handle_indication(now, (link, said));
                self.judge(now, link);
            }
            Port::Second(said) => self.radios.handle_indication(now, said),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.internet.poll_timeout().is_some_and(|at| at <= now) {
            self.internet.handle_timeout(now);
        }
        if self.radios.poll_timeout().is_some_and(|at| at <= now) {
            self.radios.handle_timeout(now);
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        if let Some(said) = self.up.pop_front() {
            return Some(said);
        }
        match self.internet.poll_indication(now) {
            Some((link, said)) => Some(self.rises(link, said)),
            None => self.radios.poll_indication(now, &mut self.links.caller_ids),
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        while let Some((link, request)) = self.down.pop_front() {
            // A session that has ended in the meantime is not created again.
            self.internet.change(link, |layer| layer.handle_request(now, request));
        }
        let internet = self.internet.poll_request(now).map(Port::First);
        for counters in self.ended.try_iter() {
            self.closed = self.closed.plus(&counters);
        }
        internet.or_else(|| self.radios.poll_request(now).map(Port::Second))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.internet.poll_timeout(), self.radios.poll_timeout())
    }
}
