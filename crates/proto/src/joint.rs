//! Composition of engines: [`Stack`] (one above another), [`Fan`] (many of one kind in parallel), [`Beside`] (two
//! ports), [`OnFirst`] and [`OnSecond`] (one port of two), [`Beneath`] (an unused port below) and [`PassThrough`], an
//! empty layer. All of them are engines themselves.

mod fan;
mod port;

pub use fan::{Fan, Origin};
pub use port::{Beneath, OnFirst, OnSecond};

use crate::engine::{Engine, Indication, Request, no_timers};
use crate::observe::Observation;
use crate::service::{Both, Port};
use crate::time::Instant;
use core::marker::PhantomData;
use std::collections::VecDeque;

/// One engine above another.
#[derive(Debug)]
pub struct Stack<U, L> {
    /// The upper engine, user of the lower one.
    pub upper: U,
    /// The lower engine, provider of the upper one.
    pub lower: L,
}

impl<U, L> Stack<U, L>
where
    U: Engine,
    L: Engine<Above = U::Below>,
{
    /// Puts `upper` above `lower`.
    pub fn new(upper: U, lower: L) -> Self {
        Stack { upper, lower }
    }
}

impl<U, L> Engine for Stack<U, L>
where
    U: Engine,
    L: Engine<Above = U::Below>,
{
    type Above = U::Above;
    type Below = L::Below;

    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        self.upper.handle_request(now, request);
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        self.lower.handle_indication(now, indication);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.lower.poll_timeout().is_some_and(|at| at <= now) {
            self.lower.handle_timeout(now);
        }
        if self.upper.poll_timeout().is_some_and(|at| at <= now) {
            self.upper.handle_timeout(now);
        }
    }

    /// Passes everything between the two engines, in the order that the contract requires of each: the indications of
    /// the lower engine go up first, then those of the upper one, and only then the next request of the upper one goes
    /// down.
    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        loop {
            while let Some(indication) = self.lower.poll_indication(now) {
                self.upper.handle_indication(now, indication);
            }
            if let Some(indication) = self.upper.poll_indication(now) {
                return Some(indication);
            }
            let request = self.upper.poll_request(now)?;
            self.lower.handle_request(now, request);
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        self.lower.poll_request(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.upper.poll_timeout(), self.lower.poll_timeout())
    }

    fn finished(&self) -> bool {
        self.upper.finished() && self.lower.finished()
    }

    fn observe(&self, view: &mut Observation) {
        self.upper.observe(view);
        self.lower.observe(view);
    }
}

/// Returns the earlier of two deadlines.
pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Two independent engines in parallel, with one user above both.
#[derive(Debug)]
pub struct Beside<A, B> {
    /// Engine of the first port.
    pub first: A,
    /// Engine of the second port.
    pub second: B,
}

impl<A: Engine, B: Engine> Engine for Beside<A, B> {
    type Above = Both<A::Above, B::Above>;
    type Below = Both<A::Below, B::Below>;

    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        match request {
            Port::First(request) => self.first.handle_request(now, request),
            Port::Second(request) => self.second.handle_request(now, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        match indication {
            Port::First(indication) => self.first.handle_indication(now, indication),
            Port::Second(indication) => self.second.handle_indication(now, indication),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.first.poll_timeout().is_some_and(|at| at <= now) {
            self.first.handle_timeout(now);
        }
        if self.second.poll_timeout().is_some_and(|at| at <= now) {
            self.second.handle_timeout(now);
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        if let Some(indication) = self.first.poll_indication(now) {
            return Some(Port::First(indication));
        }
        self.second.poll_indication(now).map(Port::Second)
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        if let Some(request) = self.first.poll_request(now) {
            return Some(Port::First(request));
        }
        self.second.poll_request(now).map(Port::Second)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.first.poll_timeout(), self.second.poll_timeout())
    }

    fn finished(&self) -> bool {
        self.first.finished() && self.second.finished()
    }

    fn observe(&self, view: &mut Observation) {
        self.first.observe(view);
        self.second.observe(view);
    }
}

/// An empty layer: what enters on one side leaves on the other.
///
/// Requests that wait in it are missing in a `Room` that passes them, so its owner drains it before the next
/// indication enters.
pub struct PassThrough<S: crate::engine::Service> {
    down: VecDeque<S::Request>,
    up: VecDeque<S::Indication>,
    service: PhantomData<S>,
}

impl<S: crate::engine::Service> PassThrough<S> {
    /// Creates a layer with no messages in it.
    pub fn new() -> Self {
        PassThrough { down: VecDeque::new(), up: VecDeque::new(), service: PhantomData }
    }
}

impl<S: crate::engine::Service> Default for PassThrough<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: crate::engine::Service> Engine for PassThrough<S> {
    type Above = S;
    type Below = S;

    no_timers!();
    fn handle_request(&mut self, _now: Instant, request: S::Request) {
        self.down.push_back(request);
    }
    fn handle_indication(&mut self, _now: Instant, indication: S::Indication) {
        self.up.push_back(indication);
    }
    fn poll_indication(&mut self, _now: Instant) -> Option<S::Indication> {
        self.up.pop_front()
    }
    fn poll_request(&mut self, _now: Instant) -> Option<S::Request> {
        self.down.pop_front()
    }
    fn finished(&self) -> bool {
        self.up.is_empty() && self.down.is_empty()
    }
}

#[cfg(test)]
mod tests;
