//! Engines with a port that nobody uses.

use crate::engine::{Engine, Indication, Request, Service, forward};
use crate::service::{Both, Port};
use crate::time::Instant;
use core::marker::PhantomData;

/// An engine with two ports above, used by an engine that has the first one only: indications of the other are dropped.
#[derive(Debug)]
pub struct OnFirst<E>(pub E);

impl<E, A, B> Engine for OnFirst<E>
where
    E: Engine<Above = Both<A, B>>,
    A: Service,
    B: Service,
{
    type Above = A;
    type Below = E::Below;

    forward!(0: handle_indication handle_timeout poll_request poll_timeout finished observe);

    fn handle_request(&mut self, now: Instant, request: Request<A>) {
        self.0.handle_request(now, Port::First(request));
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<A>> {
        loop {
            if let Port::First(indication) = self.0.poll_indication(now)? {
                return Some(indication);
            }
        }
    }
}

/// An engine with two ports above, used by an engine that has the second one only: indications of the other are dropped.
#[derive(Debug)]
pub struct OnSecond<E>(pub E);

impl<E, A, B> Engine for OnSecond<E>
where
    E: Engine<Above = Both<A, B>>,
    A: Service,
    B: Service,
{
    type Above = B;
    type Below = E::Below;

    forward!(0: handle_indication handle_timeout poll_request poll_timeout finished observe);

    fn handle_request(&mut self, now: Instant, request: Request<B>) {
        self.0.handle_request(now, Port::Second(request));
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<B>> {
        loop {
            if let Port::Second(indication) = self.0.poll_indication(now)? {
                return Some(indication);
            }
        }
    }
}

/// An engine above two ports of which it uses the second: indications of `Unused` are dropped, such as those of a disk
/// below an engine that stores nothing.
#[derive(Debug)]
pub struct Beneath<E, Unused>(E, PhantomData<fn() -> Unused>);

impl<E: Engine, Unused: Service> Beneath<E, Unused> {
    /// Puts an engine above its service and another one.
    pub fn new(engine: E) -> Self {
        Beneath(engine, PhantomData)
    }
}

impl<E: Engine, Unused: Service> Engine for Beneath<E, Unused> {
    type Above = E::Above;
    type Below = Both<Unused, E::Below>;

    forward!(0: handle_request handle_timeout poll_indication poll_timeout finished observe);

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        if let Port::Second(indication) = indication {
            self.0.handle_indication(now, indication);
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        self.0.poll_request(now).map(Port::Second)
    }
}
