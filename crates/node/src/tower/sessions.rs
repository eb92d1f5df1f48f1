//! Convergence layer of a link: a TCPCL session over a stream, or bundles in datagrams.

use crate::tower::links::LinkTable;
use crate::view::{self, Counts};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::{Fan, Origin};
use longwire_proto::rng::Rng;
use longwire_proto::service::{Both, Bundles, Datagrams, LinkId, Port, Stream};
use longwire_proto::tcpcl::{AdmissionDecision, Session};
use longwire_proto::time::Instant;
use longwire_proto::udpcl;
use longwire_towers::carriers::{Tcpcl, Udp};

/// Sessions by link; their owner inserts them.
pub(crate) type Sessions = Fan<LinkId, Layer, fn(LinkId, Origin) -> Option<Layer>>;

/// The convergence layer of one link. A request or indication for the other kind is an error of the caller.
#[derive(Debug)]
pub(crate) enum Layer {
    /// TCPCL, over the first port.
    Tcp(Box<Session>),
    /// UDP, over the second port.
    Udp(Box<udpcl::Link>),
}

impl Layer {
    /// The TCPCL session; `None` for UDP.
    pub(crate) fn session(&self) -> Option<&Session> {
        match self {
            Layer::Tcp(session) => Some(session),
            Layer::Udp(_) => None,
        }
    }

    /// Answers a caller that waits for its admission.
    pub(crate) fn judge(&mut self, now: Instant, verdict: AdmissionDecision) {
        if let Layer::Tcp(session) = self {
            session.judge(now, verdict);
        }
    }

    /// Counters of the layer.
    pub(crate) fn counts(&self) -> Counts {
        match self {
            Layer::Tcp(session) => view::counts(session.counters()),
            Layer::Udp(link) => view::counts(link.counters()),
        }
    }
}

impl Engine for Layer {
    type Above = Bundles;
    type Below = Both<Stream, Datagrams>;

    fn handle_request(&mut self, now: Instant, request: Request<Bundles>) {
        match self {
            Layer::Tcp(session) => session.handle_request(now, request),
            Layer::Udp(link) => link.handle_request(now, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        match (self, indication) {
            (Layer::Tcp(session), Port::First(said)) => session.handle_indication(now, said),
            (Layer::Udp(link), Port::Second(said)) => link.handle_indication(now, said),
            (layer, said) => panic!("{said:?} is for another kind of link than {layer:?}"),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Layer::Tcp(session) => session.handle_timeout(now),
            Layer::Udp(link) => link.handle_timeout(now),
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Bundles>> {
        match self {
            Layer::Tcp(session) => session.poll_indication(now),
            Layer::Udp(link) => link.poll_indication(now),
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        match self {
            Layer::Tcp(session) => session.poll_request(now).map(Port::First),
            Layer::Udp(link) => link.poll_request(now).map(Port::Second),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Layer::Tcp(session) => session.poll_timeout(),
            Layer::Udp(link) => link.poll_timeout(),
        }
    }

    fn finished(&self) -> bool {
        match self {
            Layer::Tcp(session) => session.finished(),
            Layer::Udp(link) => link.finished(),
        }
    }
}

/// Creates sessions, each with random numbers of its own.
#[derive(Debug)]
pub(crate) struct SessionMaker {
    rng: Rng,
    made: u64,
}

impl SessionMaker {
    pub(crate) fn new(rng: Rng) -> Self {
        SessionMaker { rng, made: 0 }
    }

    /// Creates the session of a link; `None` for a link that is not known, and for one over a TNC.
    pub(crate) fn session(&mut self, links: &LinkTable, id: LinkId, origin: Origin) -> Option<Layer> {
        self.made += 1;
        let rng = self.rng.fork(&self.made.to_string());
        let plan = match origin {
            Origin::Above => &links.get(id)?.plan,
            Origin::Below => Some(links.callers(id)).filter(|_| id.is_incoming())?,
        };
        if let Some(settings) = plan.settings::<Tcpcl>() {
            let settings = settings.clone();
            return Some(Layer::Tcp(Box::new(match origin {
                Origin::Above => Session::active(settings, rng),
                Origin::Below => Session::passive(settings, rng).judged(),
            })));
        }
        // `Radios` handles links of other convergence layers.
        let settings = plan.settings::<Udp>()?.clone();
        Some(Layer::Udp(Box::new(match origin {
            Origin::Above => udpcl::Link::new(settings),
            Origin::Below => udpcl::Link::listening(settings),
        })))
    }
}
