//! Convergence layer of a link: a TCPCL session over a stream, or bundles in datagrams.

use crate::config::LinkKind;
use crate::tower::links::SharedLinks;
use crate::view::{self, Counts};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::{Fan, Origin};
use longwire_proto::rng::Rng;
use longwire_proto::service::{Both, Bundles, Datagrams, LinkId, Port, Stream};
use longwire_proto::tcpcl::{self, AdmissionDecision, Session};
use longwire_proto::time::Instant;
use longwire_proto::udpcl;
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
    pub(crate) fn judge(&mut self, now: Instant, verdict: AdmissionDecision) {
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
            Origin::Below if links.is_listening(id) => {
                Some(Layer::Udp(Box::new(udpcl::Link::listening(links.listening_udp().clone()))))
            }
            Origin::Below => {
                id.is_incoming().then(|| counted(Session::passive(links.callers().clone(), rng).judged()))
            }
        }
    };
    Fan::new(Box::new(make) as Box<_>)
}
