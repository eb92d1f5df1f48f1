//! The contract: a protocol is a value.
//!
//! An [`Engine`] hears three things (a request from above, an indication from below, the time) and says three
//! things (an indication up, a request down, when to wake it). It owns no socket, clock, file, thread or
//! randomness, so the same engine flies in a daemon over a radio and in a simulator that plays a month of radio
//! time in a second.
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
//! After construction and after any `handle_*`, the owner **drains**: it alternates [`Engine::poll_indication`]
//! and [`Engine::poll_request`] until neither yields (all indications rise before the next request goes down),
//! then sleeps until [`Engine::poll_timeout`]. [`drain`] is that loop. A poll that said `None` says `None` until
//! the next `handle_*`, or until the other poll yields: ready lists rest on it.
//!
//! # What every engine keeps to
//!
//! 1. **Room is credit.** What occupies the line (a write, a frame, a piece of a bundle) is handed down only
//!    against `Room`, and spends it. Control (connect, cancel, close, accept, storage) needs none. Room is
//!    absolute: `Room(n)` replaces what was said before, `Room(0)` takes it back, Down and Closed mean 0. The
//!    provider computes it when polled. It belongs to no transfer: whoever is most urgent when polled spends it,
//!    so bytes are made at the last moment, and retransmission timers start when the bytes leave.
//! 2. **An acknowledgement that ends a promise waits.** Data rise in pieces; the user answers how far they are
//!    safe, and the engine acknowledges to its peer only that far.
//! 3. **Nothing here fails.** Wrong bytes are counted and dropped; a broken peer or link is an indication with a
//!    reason; a broken caller is a panic. Each send ends in exactly one terminal indication.
//! 4. **Time is told**, never runs backwards, and a timeout may come early or twice: an engine then does nothing.
//! 5. **Randomness is given**: a seeded [`Rng`](crate::rng::Rng) by value.
//! 6. **An idle neighbour costs nothing.** An engine with nothing to do asks for no wake-up.

use crate::time::Instant;
use core::fmt::Debug;

/// What two adjacent layers say to each other.
pub trait Service {
    /// Goes down: the user asks the provider.
    type Request: Debug;
    /// Goes up: the provider tells the user.
    type Indication: Debug;
}

/// What goes down through a service.
pub type Request<S> = <S as Service>::Request;
/// What comes up through a service.
pub type Indication<S> = <S as Service>::Indication;

/// A protocol as a pure state machine. The [module](self) says how to drive one.
pub trait Engine {
    /// The service it gives.
    type Above: Service;
    /// The service it uses.
    type Below: Service;

    /// Hears a request from its user.
    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>);
    /// Hears an indication from its provider.
    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>);
    /// Hears that the time it asked for has come. Early and repeated calls are harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// Says the next thing to its user.
    fn poll_indication(&mut self) -> Option<Indication<Self::Above>>;
    /// Says the next thing to its provider; bytes are made here, at the last moment.
    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>>;
    /// When to wake it, if ever. Valid once drained.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Nothing left to do: the owner may drop this engine.
    fn finished(&self) -> bool {
        false
    }
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
    fn poll_indication(&mut self) -> Option<Indication<Self::Above>> {
        (**self).poll_indication()
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
}

/// Drains an engine: alternates the two polls until neither yields. The order is part of the contract: every
/// indication rises before the next request goes down.
pub fn drain<E: Engine + ?Sized>(
    engine: &mut E,
    now: Instant,
    mut up: impl FnMut(Indication<E::Above>),
    mut down: impl FnMut(Request<E::Below>),
) {
    loop {
        while let Some(indication) = engine.poll_indication() {
            up(indication);
        }
        match engine.poll_request(now) {
            Some(request) => down(request),
            None => return,
        }
    }
}
