//! Composition of engines: [`Stack`] (one above another), [`Fan`] (many of one kind in parallel), [`Beside`] (two
//! ports) and [`PassThrough`], an empty layer. All four are engines themselves.

use crate::engine::{Engine, Indication, Request};
use crate::service::{Both, Many};
use crate::time::Instant;
use core::fmt::Debug;
use core::marker::PhantomData;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
}

/// Returns the earlier of two deadlines.
pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// One engine of a fan, with its entries in the fan's lists.
#[derive(Debug)]
struct Slot<L> {
    engine: L,
    deadline: Option<Instant>,
    may_indicate: bool,
    may_request: bool,
}

/// Many engines of one kind in parallel, each with its own ID.
///
/// The fan's factory creates an engine when its ID first occurs, from above (a requested link) or from below (a
/// connection from a peer); the factory may decline. An engine is dropped when it has finished. Handling one event
/// touches one engine: deadlines are kept in order, and engines that may emit something in ready lists.
pub struct Fan<Id, L, F> {
    slots: BTreeMap<Id, Slot<L>>,
    factory: F,
    deadlines: BTreeSet<(Instant, Id)>,
    indicating: VecDeque<Id>,
    requesting: VecDeque<Id>,
    /// Number of messages for engines that the factory declined to create.
    pub declined: u64,
}

/// Side from which a [`Fan`] first meets an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user requested it: an active open.
    Above,
    /// The provider indicated it: a passive open.
    Below,
}

impl<Id, L, F> Fan<Id, L, F>
where
    Id: Copy + Ord + Debug,
    L: Engine,
    F: FnMut(Id, Origin) -> Option<L>,
{
    /// Creates an empty fan whose engines `factory` creates.
    pub fn new(factory: F) -> Self {
        Fan {
            slots: BTreeMap::new(),
            factory,
            deadlines: BTreeSet::new(),
            indicating: VecDeque::new(),
            requesting: VecDeque::new(),
            declined: 0,
        }
    }

    /// Returns the engine with this ID, if it exists.
    pub fn get(&self, id: Id) -> Option<&L> {
        self.slots.get(&id).map(|blade| &blade.engine)
    }

    /// Lets the owner change an engine directly; the engine is polled afterwards.
    pub fn change(&mut self, id: Id, act: impl FnOnce(&mut L)) {
        if let Some(blade) = self.slots.get_mut(&id) {
            act(&mut blade.engine);
            self.wake(id);
        }
    }

    /// Returns all engines in order of their IDs.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &L)> {
        self.slots.iter().map(|(id, blade)| (*id, &blade.engine))
    }

    /// Drops an engine, even if it has not finished.
    pub fn remove(&mut self, id: Id) {
        let Some(blade) = self.slots.remove(&id) else { return };
        if let Some(deadline) = blade.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        self.indicating.retain(|other| *other != id);
        self.requesting.retain(|other| *other != id);
    }

    fn with(&mut self, id: Id, origin: Origin, act: impl FnOnce(&mut L)) {
        if !self.slots.contains_key(&id) {
            let Some(engine) = (self.factory)(id, origin) else {
                self.declined += 1;
                return;
            };
            self.slots.insert(id, Slot { engine, deadline: None, may_indicate: false, may_request: false });
        }
        let blade = self.slots.get_mut(&id).expect("it was just inserted");
        act(&mut blade.engine);
        self.wake(id);
    }

    /// Puts the engine on both ready lists.
    fn wake(&mut self, id: Id) {
        let blade = self.slots.get_mut(&id).expect("only living engines are woken");
        if !core::mem::replace(&mut blade.may_indicate, true) {
            self.indicating.push_back(id);
        }
        if !core::mem::replace(&mut blade.may_request, true) {
            self.requesting.push_back(id);
        }
    }

    /// Records the deadline of an engine that is on no ready list, or removes it if it has finished.
    fn settle(&mut self, id: Id) {
        let blade = self.slots.get_mut(&id).expect("only living engines settle");
        if blade.may_indicate || blade.may_request {
            return;
        }
        let deadline = blade.engine.poll_timeout();
        if deadline != blade.deadline {
            if let Some(old) = core::mem::replace(&mut blade.deadline, deadline) {
                self.deadlines.remove(&(old, id));
            }
            if let Some(new) = deadline {
                self.deadlines.insert((new, id));
            }
        }
        if blade.engine.finished() {
            if let Some(old) = blade.deadline {
                self.deadlines.remove(&(old, id));
            }
            self.slots.remove(&id);
        }
    }
}

impl<Id, L, F> Engine for Fan<Id, L, F>
where
    Id: Copy + Ord + Debug,
    L: Engine,
    F: FnMut(Id, Origin) -> Option<L>,
{
    type Above = Many<Id, L::Above>;
    type Below = Many<Id, L::Below>;

    fn handle_request(&mut self, now: Instant, (id, request): Request<Self::Above>) {
        self.with(id, Origin::Above, |engine| engine.handle_request(now, request));
    }

    fn handle_indication(&mut self, now: Instant, (id, indication): Indication<Self::Below>) {
        self.with(id, Origin::Below, |engine| engine.handle_indication(now, indication));
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.deadlines.first() {
            if at > now {
                return;
            }
            self.deadlines.remove(&(at, id));
            let blade = self.slots.get_mut(&id).expect("deadlines belong to living engines");
            blade.deadline = None;
            blade.engine.handle_timeout(now);
            self.wake(id);
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        while let Some(&id) = self.indicating.front() {
            let blade = self.slots.get_mut(&id).expect("ready engines live");
            if let Some(indication) = blade.engine.poll_indication(now) {
                if !core::mem::replace(&mut blade.may_request, true) {
                    self.requesting.push_back(id);
                }
                return Some((id, indication));
            }
            blade.may_indicate = false;
            self.indicating.pop_front();
            self.settle(id);
        }
        None
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        while let Some(&id) = self.requesting.front() {
            let blade = self.slots.get_mut(&id).expect("ready engines live");
            if let Some(request) = blade.engine.poll_request(now) {
                if !core::mem::replace(&mut blade.may_indicate, true) {
                    self.indicating.push_back(id);
                }
                return Some((id, request));
            }
            blade.may_request = false;
            self.requesting.pop_front();
            self.settle(id);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }
}

impl<Id: Debug, L: Debug, F> Debug for Fan<Id, L, F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_map().entries(self.slots.iter().map(|(id, blade)| (id, &blade.engine))).finish()
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
            crate::service::Port::First(request) => self.first.handle_request(now, request),
            crate::service::Port::Second(request) => self.second.handle_request(now, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        match indication {
            crate::service::Port::First(indication) => self.first.handle_indication(now, indication),
            crate::service::Port::Second(indication) => self.second.handle_indication(now, indication),
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
            return Some(crate::service::Port::First(indication));
        }
        self.second.poll_indication(now).map(crate::service::Port::Second)
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        if let Some(request) = self.first.poll_request(now) {
            return Some(crate::service::Port::First(request));
        }
        self.second.poll_request(now).map(crate::service::Port::Second)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.first.poll_timeout(), self.second.poll_timeout())
    }

    fn finished(&self) -> bool {
        self.first.finished() && self.second.finished()
    }
}

/// An empty layer: what enters on one side leaves on the other.
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
    fn handle_request(&mut self, _now: Instant, request: S::Request) {
        self.down.push_back(request);
    }
    fn handle_indication(&mut self, _now: Instant, indication: S::Indication) {
        self.up.push_back(indication);
    }
    fn handle_timeout(&mut self, _now: Instant) {}
    fn poll_indication(&mut self, _now: Instant) -> Option<S::Indication> {
        self.up.pop_front()
    }
    fn poll_request(&mut self, _now: Instant) -> Option<S::Request> {
        self.down.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn finished(&self) -> bool {
        self.up.is_empty() && self.down.is_empty()
    }
}

#[cfg(test)]
mod tests;
