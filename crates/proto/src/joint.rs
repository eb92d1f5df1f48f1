//! How engines join: [`Stack`] (one over one), [`Fan`] (many of a kind side by side), [`Beside`] (two ports), and
//! [`PassThrough`], which is nothing at all between two layers. All four are engines themselves.

use crate::engine::{Engine, Indication, Request};
use crate::service::{Both, Many};
use crate::time::Instant;
use core::fmt::Debug;
use core::marker::PhantomData;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One engine over another.
#[derive(Debug)]
pub struct Stack<U, L> {
    /// The user.
    pub upper: U,
    /// The provider.
    pub lower: L,
    /// The time last told, for the work that a poll without a time sets off.
    now: Instant,
}

impl<U, L> Stack<U, L>
where
    U: Engine,
    L: Engine<Above = U::Below>,
{
    /// `upper` over `lower`.
    pub fn new(upper: U, lower: L) -> Self {
        Stack::starting(Instant::ZERO, upper, lower)
    }

    /// `upper` over `lower`, made at `now`: for engines that speak before they are spoken to, in a node that
    /// starts later than the run.
    pub fn starting(now: Instant, upper: U, lower: L) -> Self {
        Stack { upper, lower, now }
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
        self.now = now;
        self.upper.handle_request(now, request);
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        self.now = now;
        self.lower.handle_indication(now, indication);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if self.lower.poll_timeout().is_some_and(|at| at <= now) {
            self.lower.handle_timeout(now);
        }
        if self.upper.poll_timeout().is_some_and(|at| at <= now) {
            self.upper.handle_timeout(now);
        }
    }

    /// Carries everything across the joint, in the order that the contract gives each of the two: what the lower
    /// engine says rises first, then what the upper one says, and only then the upper one's next request goes down.
    fn poll_indication(&mut self) -> Option<Indication<Self::Above>> {
        loop {
            while let Some(indication) = self.lower.poll_indication() {
                self.upper.handle_indication(self.now, indication);
            }
            if let Some(indication) = self.upper.poll_indication() {
                return Some(indication);
            }
            let request = self.upper.poll_request(self.now)?;
            self.lower.handle_request(self.now, request);
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        self.now = now;
        self.lower.poll_request(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.upper.poll_timeout(), self.lower.poll_timeout())
    }

    fn finished(&self) -> bool {
        self.upper.finished() && self.lower.finished()
    }
}

/// The earlier of two deadlines.
pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// One engine of a fan, and where it stands in the fan's lists.
#[derive(Debug)]
struct Slot<L> {
    engine: L,
    deadline: Option<Instant>,
    may_indicate: bool,
    may_request: bool,
}

/// Many engines of a kind side by side, each with its own id.
///
/// An engine is made by the fan's factory when its id is first heard of, from above (a link that is asked for)
/// or from below (a peer that calls); the factory may decline. It is dropped when it has finished. Handling one
/// event touches one engine: deadlines are kept in order and engines with something to say in ready lists.
pub struct Fan<Id, L, F> {
    slots: BTreeMap<Id, Slot<L>>,
    factory: F,
    deadlines: BTreeSet<(Instant, Id)>,
    indicating: VecDeque<Id>,
    requesting: VecDeque<Id>,
    /// Messages for engines that the factory declined to make.
    pub declined: u64,
}

/// Who is heard of first when a [`Fan`] makes an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user asked for it: an active opening.
    Above,
    /// The provider brought it: a passive opening.
    Below,
}

impl<Id, L, F> Fan<Id, L, F>
where
    Id: Copy + Ord + Debug,
    L: Engine,
    F: FnMut(Id, Origin) -> Option<L>,
{
    /// An empty fan whose engines `factory` makes.
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

    /// The engine with this id, if there is one.
    pub fn get(&self, id: Id) -> Option<&L> {
        self.slots.get(&id).map(|blade| &blade.engine)
    }

    /// Lets the owner do something with an engine of its own accord; afterwards the engine is asked what it has to say.
    pub fn change(&mut self, id: Id, act: impl FnOnce(&mut L)) {
        if let Some(blade) = self.slots.get_mut(&id) {
            act(&mut blade.engine);
            self.wake(id);
        }
    }

    /// All engines, by id.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &L)> {
        self.slots.iter().map(|(id, blade)| (*id, &blade.engine))
    }

    /// Drops an engine, whatever it still has to do.
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

    /// Files an engine that has gone quiet: its new deadline, or its end.
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

    fn poll_indication(&mut self) -> Option<Indication<Self::Above>> {
        while let Some(&id) = self.indicating.front() {
            let blade = self.slots.get_mut(&id).expect("ready engines live");
            if let Some(indication) = blade.engine.poll_indication() {
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

/// Two engines side by side that know nothing of each other: one user over both.
#[derive(Debug)]
pub struct Beside<A, B> {
    /// The first port's engine.
    pub first: A,
    /// The second port's engine.
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

    fn poll_indication(&mut self) -> Option<Indication<Self::Above>> {
        if let Some(indication) = self.first.poll_indication() {
            return Some(crate::service::Port::First(indication));
        }
        self.second.poll_indication().map(crate::service::Port::Second)
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

/// Nothing between two layers: what comes in on one side goes out on the other.
pub struct PassThrough<S: crate::engine::Service> {
    down: VecDeque<S::Request>,
    up: VecDeque<S::Indication>,
    service: PhantomData<S>,
}

impl<S: crate::engine::Service> PassThrough<S> {
    /// A passage with nothing in it.
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
    fn poll_indication(&mut self) -> Option<S::Indication> {
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
