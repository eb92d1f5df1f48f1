//! The contract of all engines: a protocol is a value.
//!
//! An [`Engine`] receives requests from above, indications from below and the time; it emits indications upwards and
//! requests downwards, and returns the time of its next wake-up. It owns no socket, clock, file, thread or random
//! source, so the same engine runs in a daemon over a radio and in a simulator that plays a month of radio time in a
//! second.
//!
//! # How an owner drives an engine
//!
//! ```text
//!          request            indication
//!             |                   ^
//!   handle_request           poll_indication
//!             v                   |
//!          +-------------------------+
//!          |         Engine          |  <- handle_timeout      -> poll_timeout
//!          +-------------------------+
//!             |                   ^
//!        poll_request        handle_indication
//!             v                   |
//! ```
//!
//! After construction and after any `handle_*`, the owner **drains** the engine: it alternates
//! [`Engine::poll_indication`] and [`Engine::poll_request`] until both return `None` (all indications go up before the
//! next request goes down), then sleeps until [`Engine::poll_timeout`]. [`drain`] is that loop. A poll that has
//! returned `None` returns `None` until the next `handle_*`, or until the other poll returns a value; lists of ready
//! engines depend on it.
//!
//! # Rules for every engine
//!
//! 1. **Room is credit.** Whatever occupies the line (a write, a frame, a piece of a bundle) is passed down only
//!    against `Room`, and spends it. Control (connect, cancel, close, accept, storage) needs none. Room is absolute:
//!    `Room(n)` replaces the previous value, `Room(0)` withdraws it, and `Down` and `Closed` imply 0. The provider
//!    computes it when polled. It belongs to no transfer: the most urgent one at the time of the poll spends it, so
//!    bytes are made at the last moment, and retransmission timers start when the bytes leave.
//! 2. **The acknowledgement of data waits for the user.** Data go up in pieces; the user answers how many bytes are
//!    stored, and the engine acknowledges only these to its peer.
//! 3. **An engine does not fail.** Wrong bytes are counted and dropped; a broken peer or link is an indication with a
//!    reason; an error of the caller is a panic. Each send ends in exactly one terminal indication.
//! 4. **Time is an argument.** It never runs backwards. A timeout may come early or twice; the engine then does
//!    nothing. Only [`Engine::handle_timeout`] expires timers: a poll at a later time returns nothing that a poll at the
//!    time of the last call would not have returned.
//! 5. **The random source is an argument**: a seeded [`Rng`](crate::rng::Rng) by value.
//! 6. **An idle neighbour costs nothing.** An engine with nothing to do asks for no wake-up.

use crate::observe::Observation;
use crate::time::Instant;
use core::fmt::Debug;

/// The service between two adjacent layers: its requests and its indications.
pub trait Service {
    /// Message of the user to the provider, downwards.
    type Request: Debug;
    /// Message of the provider to the user, upwards.
    type Indication: Debug;
}

/// Request type of a service.
pub type Request<S> = <S as Service>::Request;
/// Indication type of a service.
pub type Indication<S> = <S as Service>::Indication;

/// A protocol as a pure state machine. The [module](self) describes how to drive it.
pub trait Engine {
    /// Service that the engine provides.
    type Above: Service;
    /// Service that the engine uses.
    type Below: Service;

    /// Handles a request of the user.
    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>);
    /// Handles an indication of the provider.
    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>);
    /// Handles the timers that have expired at `now`. Early and repeated calls are harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the next indication for the user.
    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>>;
    /// Returns the next request to the provider. Bytes are made here, at the last moment.
    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>>;
    /// Returns the time of the next wake-up; `None` if none is needed. Valid once drained.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Returns true if nothing is left to do and the owner may drop the engine. False by default: the engine is kept, as one
    /// must be that its user can connect again, because the numbers of its transfers must not occur twice.
    fn finished(&self) -> bool {
        false
    }

    /// Adds the counters and the state of the engine as one part; an engine that is made of others adds theirs, from top
    /// to bottom. Adds nothing by default.
    fn observe(&self, _view: &mut Observation) {}
}

impl<E: Engine + ?Sized> Engine for Box<E> {
    type Above = E::Above;
    type Below = E::Below;
    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        (**self).handle_request(now, request);
    }
    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        (**self).handle_indication(now, indication);
    }
    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }
    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        (**self).poll_indication(now)
    }
    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        (**self).poll_request(now)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }
    fn finished(&self) -> bool {
        (**self).finished()
    }
    fn observe(&self, view: &mut Observation) {
        (**self).observe(view);
    }
}

/// Writes methods of [`Engine`] that pass everything to an engine inside, for one that changes only the others:
/// `forward!(0: handle_timeout poll_timeout)` calls those of `self.0`.
#[macro_export]
macro_rules! forward {
    ($inner:tt: $($method:ident)+) => { $($crate::engine::forward!(@$method $inner);)+ };
    (@handle_request $inner:tt) => {
        fn handle_request(&mut self, now: $crate::time::Instant, request: $crate::engine::Request<Self::Above>) {
            self.$inner.handle_request(now, request);
        }
    };
    (@handle_indication $inner:tt) => {
        fn handle_indication(
            &mut self,
            now: $crate::time::Instant,
            indication: $crate::engine::Indication<Self::Below>,
        ) {
            self.$inner.handle_indication(now, indication);
        }
    };
    (@handle_timeout $inner:tt) => {
        fn handle_timeout(&mut self, now: $crate::time::Instant) {
            self.$inner.handle_timeout(now);
        }
    };
    (@poll_indication $inner:tt) => {
        fn poll_indication(&mut self, now: $crate::time::Instant) -> Option<$crate::engine::Indication<Self::Above>> {
            self.$inner.poll_indication(now)
        }
    };
    (@poll_request $inner:tt) => {
        fn poll_request(&mut self, now: $crate::time::Instant) -> Option<$crate::engine::Request<Self::Below>> {
            self.$inner.poll_request(now)
        }
    };
    (@poll_timeout $inner:tt) => {
        fn poll_timeout(&self) -> Option<$crate::time::Instant> {
            self.$inner.poll_timeout()
        }
    };
    (@finished $inner:tt) => {
        fn finished(&self) -> bool {
            self.$inner.finished()
        }
    };
    (@observe $inner:tt) => {
        fn observe(&self, view: &mut $crate::observe::Observation) {
            self.$inner.observe(view);
        }
    };
}
pub use forward;

/// Writes the methods of [`Engine`] that concern time, for one without timers.
#[macro_export]
macro_rules! no_timers {
    () => {
        fn handle_timeout(&mut self, _now: $crate::time::Instant) {}

        fn poll_timeout(&self) -> Option<$crate::time::Instant> {
            None
        }
    };
}
pub use no_timers;

/// Drains an engine: alternates the two polls until both return `None`. The order is part of the contract: every
/// indication goes up before the next request goes down.
pub fn drain<E: Engine + ?Sized>(
    engine: &mut E,
    now: Instant,
    mut up: impl FnMut(Indication<E::Above>),
    mut down: impl FnMut(Request<E::Below>),
) {
    loop {
        while let Some(indication) = engine.poll_indication(now) {
            up(indication);
        }
        match engine.poll_request(now) {
            Some(request) => down(request),
            None => return,
        }
    }
}

impl Observation {
    /// Observes an engine.
    pub fn of<E: Engine + ?Sized>(engine: &E) -> Self {
        let mut view = Observation::default();
        engine.observe(&mut view);
        view
    }

    /// Adds the parts of one engine among others of its kind.
    pub fn with_id<E: Engine + ?Sized>(&mut self, id: impl std::fmt::Debug, engine: &E) {
        let first = self.parts.len();
        engine.observe(self);
        for part in &mut self.parts[first..] {
            part.id.insert(0, format!("{id:?}"));
        }
    }
}
