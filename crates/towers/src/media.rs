//! [`Media`]: the services below convergence layers as one service, so that sessions of all kinds stand side by side.

use crate::carrier::Medium;
use longwire_proto::engine::{Engine, Indication, Request, Service, forward};
use longwire_proto::service::{
    Both, Bundles, Datagrams, DatagramsIndication, DatagramsRequest, Many, Packets, PacketsIndication,
    PacketsRequest, Port, Programs, ProgramsIndication, ProgramsRequest, Stream, StreamIndication,
    StreamRequest,
};
use longwire_proto::tcpcl::{AdmissionDecision, CallerIdentity};
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// The service of the medium of a link, whichever it is.
#[derive(Debug)]
pub enum Media {}

impl Service for Media {
    type Request = MediaRequest;
    type Indication = MediaIndication;
}

/// Requests of [`Media`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaRequest {
    /// To a connection that carries bytes.
    Stream(StreamRequest),
    /// To an endpoint of datagrams.
    Datagrams(DatagramsRequest),
    /// To a connection that carries packets.
    Packets(PacketsRequest),
    /// To the owner of the sockets of local programs, from the gateway of a link.
    Programs(ProgramsIndication),
}

/// Indications of [`Media`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaIndication {
    /// From a connection that carries bytes.
    Stream(StreamIndication),
    /// From an endpoint of datagrams.
    Datagrams(DatagramsIndication),
    /// From a connection that carries packets.
    Packets(PacketsIndication),
    /// From the owner of the sockets of local programs, to the gateway of a link.
    Programs(ProgramsRequest),
}

impl MediaIndication {
    /// Returns true for the first indication of a link that a peer opens.
    pub fn is_opening(&self) -> bool {
        matches!(
            self,
            MediaIndication::Stream(StreamIndication::Connected)
                | MediaIndication::Datagrams(DatagramsIndication::Joined { .. })
                | MediaIndication::Packets(PacketsIndication::Connected { .. })
        )
    }

    /// Returns true if it may come from this medium.
    pub fn is_of(&self, medium: Medium) -> bool {
        match self {
            MediaIndication::Stream(_) => medium == Medium::Tcp,
            MediaIndication::Datagrams(_) => matches!(medium, Medium::Udp | Medium::Ui),
            MediaIndication::Packets(_) => medium == Medium::Ax25,
            MediaIndication::Programs(_) => false,
        }
    }
}

/// A service that is a part of another one: one medium of [`Media`], for one link or for many.
pub trait PartOf: Service {
    /// The other service.
    type Whole: Service;

    /// Converts a request of a user.
    fn widen_request(request: Self::Request) -> Request<Self::Whole>;
    /// Converts a request to a provider; `None` if it belongs to another part.
    fn narrow_request(request: Request<Self::Whole>) -> Option<Self::Request>;
    /// Converts an indication of a provider.
    fn widen_indication(indication: Self::Indication) -> Indication<Self::Whole>;
    /// Converts an indication to a user; `None` if it belongs to another part.
    fn narrow_indication(indication: Indication<Self::Whole>) -> Option<Self::Indication>;
}

macro_rules! media {
    ($($medium:ident)+) => { $(
        impl PartOf for $medium {
            type Whole = Media;

            fn widen_request(request: Request<Self>) -> MediaRequest {
                MediaRequest::$medium(request)
            }
            fn narrow_request(request: MediaRequest) -> Option<Request<Self>> {
                if let MediaRequest::$medium(request) = request { Some(request) } else { None }
            }
            fn widen_indication(indication: Indication<Self>) -> MediaIndication {
                MediaIndication::$medium(indication)
            }
            fn narrow_indication(indication: MediaIndication) -> Option<Indication<Self>> {
                if let MediaIndication::$medium(indication) = indication { Some(indication) } else { None }
            }
        }
    )+ };
}

media!(Stream Datagrams Packets);

impl<Id: core::fmt::Debug, S: PartOf> PartOf for Many<Id, S> {
    type Whole = Many<Id, S::Whole>;

    fn widen_request((id, request): (Id, S::Request)) -> Request<Self::Whole> {
        (id, S::widen_request(request))
    }
    fn narrow_request((id, request): Request<Self::Whole>) -> Option<Self::Request> {
        Some((id, S::narrow_request(request)?))
    }
    fn widen_indication((id, indication): (Id, S::Indication)) -> Indication<Self::Whole> {
        (id, S::widen_indication(indication))
    }
    fn narrow_indication((id, indication): Indication<Self::Whole>) -> Option<Self::Indication> {
        Some((id, S::narrow_indication(indication)?))
    }
}

/// Packets and datagrams side by side, as AX.25 stations provide them.
impl<Id: core::fmt::Debug> PartOf for Both<Many<Id, Packets>, Many<Id, Datagrams>> {
    type Whole = Many<Id, Media>;

    fn widen_request(request: Request<Self>) -> Request<Self::Whole> {
        match request {
            Port::First((id, request)) => (id, MediaRequest::Packets(request)),
            Port::Second((id, request)) => (id, MediaRequest::Datagrams(request)),
        }
    }
    fn narrow_request((id, request): Request<Self::Whole>) -> Option<Request<Self>> {
        match request {
            MediaRequest::Stream(_) | MediaRequest::Programs(_) => None,
            MediaRequest::Packets(request) => Some(Port::First((id, request))),
            MediaRequest::Datagrams(request) => Some(Port::Second((id, request))),
        }
    }
    fn widen_indication(indication: Indication<Self>) -> Indication<Self::Whole> {
        match indication {
            Port::First((id, indication)) => (id, MediaIndication::Packets(indication)),
            Port::Second((id, indication)) => (id, MediaIndication::Datagrams(indication)),
        }
    }
    fn narrow_indication((id, indication): Indication<Self::Whole>) -> Option<Indication<Self>> {
        match indication {
            MediaIndication::Stream(_) | MediaIndication::Programs(_) => None,
            MediaIndication::Packets(indication) => Some(Port::First((id, indication))),
            MediaIndication::Datagrams(indication) => Some(Port::Second((id, indication))),
        }
    }
}

/// The programs of this side from below: an engine asks the owner of their sockets, and hears from it.
#[derive(Debug)]
pub enum LocalPrograms {}

impl Service for LocalPrograms {
    type Request = ProgramsIndication;
    type Indication = ProgramsRequest;
}

/// Datagrams and local programs side by side, as the gateway of a link uses them.
impl PartOf for Both<Datagrams, LocalPrograms> {
    type Whole = Media;

    fn widen_request(request: Request<Self>) -> MediaRequest {
        match request {
            Port::First(request) => MediaRequest::Datagrams(request),
            Port::Second(request) => MediaRequest::Programs(request),
        }
    }
    fn narrow_request(request: MediaRequest) -> Option<Request<Self>> {
        match request {
            MediaRequest::Datagrams(request) => Some(Port::First(request)),
            MediaRequest::Programs(request) => Some(Port::Second(request)),
            MediaRequest::Stream(_) | MediaRequest::Packets(_) => None,
        }
    }
    fn widen_indication(indication: Indication<Self>) -> MediaIndication {
        match indication {
            Port::First(indication) => MediaIndication::Datagrams(indication),
            Port::Second(indication) => MediaIndication::Programs(indication),
        }
    }
    fn narrow_indication(indication: MediaIndication) -> Option<Indication<Self>> {
        match indication {
            MediaIndication::Datagrams(indication) => Some(Port::First(indication)),
            MediaIndication::Programs(indication) => Some(Port::Second(indication)),
            MediaIndication::Stream(_) | MediaIndication::Packets(_) => None,
        }
    }
}

/// An engine with a second port above, for local programs, which it has below here: the convergence layer of a link keeps its shape, and
/// the owner of its datagrams owns the sockets of the programs as well.
#[derive(Debug)]
pub struct WithLocalPrograms<E> {
    engine: E,
    /// Messages to the owner of the sockets.
    out: VecDeque<ProgramsIndication>,
}

impl<E> WithLocalPrograms<E> {
    /// Turns the second port of an engine.
    pub fn new(engine: E) -> Self {
        WithLocalPrograms { engine, out: VecDeque::new() }
    }
}

impl<E, A> Engine for WithLocalPrograms<E>
where
    A: Service,
    E: Engine<Above = Both<A, Programs>>,
{
    type Above = A;
    type Below = Both<E::Below, LocalPrograms>;

    forward!(engine: handle_timeout poll_timeout observe);

    fn handle_request(&mut self, now: Instant, request: Request<A>) {
        self.engine.handle_request(now, Port::First(request));
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        match indication {
            Port::First(indication) => self.engine.handle_indication(now, indication),
            Port::Second(request) => self.engine.handle_request(now, Port::Second(request)),
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<A>> {
        loop {
            match self.engine.poll_indication(now)? {
                Port::First(indication) => return Some(indication),
                Port::Second(message) => self.out.push_back(message),
            }
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        if let Some(message) = self.out.pop_front() {
            return Some(Port::Second(message));
        }
        self.engine.poll_request(now).map(Port::First)
    }

    fn finished(&self) -> bool {
        self.out.is_empty() && self.engine.finished()
    }
}

impl<E> Admission for WithLocalPrograms<E> {}

/// The admission of a caller, on which the owner of a session may decide. By default no session asks.
pub trait Admission {
    /// Makes the session of a caller wait for a decision.
    fn await_admission(&mut self) {}

    /// Returns the identity of a caller that waits.
    fn claim(&self) -> Option<CallerIdentity<'_>> {
        None
    }

    /// Decides on a caller that waits.
    fn judge(&mut self, _now: Instant, _decision: AdmissionDecision) {}
}

/// A session of any carrier, over any medium.
pub type Session = Box<dyn AnySession>;

/// Engine that carries bundles over the medium of a link: the content of a [`Session`].
pub trait AnySession: Engine<Above = Bundles, Below = Media> + Admission + Send {}

impl<E: Engine<Above = Bundles, Below = Media> + Admission + Send> AnySession for E {}

/// Returns an engine that carries bundles over one medium as a [`Session`].
pub fn session_over<E>(engine: E) -> Session
where
    E: Engine<Above = Bundles> + Admission + Send + 'static,
    E::Below: PartOf<Whole = Media>,
{
    Box::new(Uses(engine))
}

/// An engine that uses one part of the service below it. An indication of another part is an error of the owner.
#[derive(Debug)]
pub struct Uses<E>(pub E);

impl<E: Engine> Engine for Uses<E>
where
    E::Below: PartOf,
{
    type Above = E::Above;
    type Below = <E::Below as PartOf>::Whole;

    forward!(0: handle_request handle_timeout poll_indication poll_timeout finished observe);

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        let indication = E::Below::narrow_indication(indication).expect("an indication of the link's medium");
        self.0.handle_indication(now, indication);
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        self.0.poll_request(now).map(E::Below::widen_request)
    }
}

impl<E: Admission> Admission for Uses<E> {
    fn await_admission(&mut self) {
        self.0.await_admission();
    }

    fn claim(&self) -> Option<CallerIdentity<'_>> {
        self.0.claim()
    }

    fn judge(&mut self, now: Instant, decision: AdmissionDecision) {
        self.0.judge(now, decision);
    }
}

/// An engine that provides one part of the service above it. A request of another part is an error of the owner.
#[derive(Debug)]
pub struct Provides<E>(pub E);

impl<E: Engine> Engine for Provides<E>
where
    E::Above: PartOf,
{
    type Above = <E::Above as PartOf>::Whole;
    type Below = E::Below;

    forward!(0: handle_indication handle_timeout poll_request poll_timeout finished observe);

    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        let request = E::Above::narrow_request(request).expect("a request to the link's medium");
        self.0.handle_request(now, request);
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        self.0.poll_indication(now).map(E::Above::widen_indication)
    }
}
