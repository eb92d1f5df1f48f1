//! Convergence layer of a link: a TCPCL session over a stream, or bundles in datagrams.

use crate::links::CountedSession;
use crate::view::{self, Counts};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::service::{Both, Bundles, Datagrams, Port, Stream};
use longwire_proto::tcpcl::AdmissionDecision;
use longwire_proto::time::Instant;
use longwire_proto::udpcl;

/// The convergence layer of one link. A request or indication for the other kind is an error of the caller.
#[derive(Debug)]
pub(crate) enum Layer {
    /// TCPCL, over the first port.
    Tcp(Box<CountedSession>),
    /// UDP, over the second port.
    Udp(Box<udpcl::Link>),
}

impl Layer {
    /// The TCPCL session; `None` for UDP.
    pub(crate) fn session(&self) -> Option<&CountedSession> {
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
