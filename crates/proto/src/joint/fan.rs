//! [`Fan`]: many engines of one kind in parallel.

use crate::engine::{Engine, Indication, Request};
use crate::kit::Deadlines;
use crate::observe::Observation;
use crate::service::Many;
use crate::time::Instant;
use core::fmt::Debug;
use std::collections::{BTreeMap, VecDeque};

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
/// connection from a peer); the factory may decline. The owner may also [insert](Fan::insert) engines. An engine is
/// dropped when it has finished, or given to the [hook](Fan::on_end) of the owner. Handling one event touches one
/// engine: deadlines are kept in order, and engines that may emit something in ready lists.
pub struct Fan<Id, L, F> {
    slots: BTreeMap<Id, Slot<L>>,
    factory: F,
    deadlines: Deadlines<Id>,
    indicating: VecDeque<Id>,
    requesting: VecDeque<Id>,
    on_end: Option<EndHook<Id, L>>,
    /// Number of messages for engines that the factory declined to create.
    pub declined: u64,
}

/// Receiver of engines that have ended.
type EndHook<Id, L> = Box<dyn FnMut(Id, L) + Send>;

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
            deadlines: Deadlines::new(),
            indicating: VecDeque::new(),
            requesting: VecDeque::new(),
            on_end: None,
            declined: 0,
        }
    }

    /// Returns the engine with this ID, if it exists.
    pub fn get(&self, id: Id) -> Option<&L> {
        self.slots.get(&id).map(|slot| &slot.engine)
    }

    /// Lets the owner change an engine directly; the engine is polled afterwards.
    pub fn change(&mut self, id: Id, act: impl FnOnce(&mut L)) {
        if let Some(slot) = self.slots.get_mut(&id) {
            act(&mut slot.engine);
            self.wake(id);
        }
    }

    /// Returns all engines in order of their IDs.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &L)> {
        self.slots.iter().map(|(id, slot)| (*id, &slot.engine))
    }

    /// Sets a hook that gets every engine once, when it has finished or is removed; those that are left when the fan is
    /// dropped are dropped with it. The hook gets the last counters of an engine, for example.
    pub fn on_end(&mut self, hook: impl FnMut(Id, L) + Send + 'static) {
        self.on_end = Some(Box::new(hook));
    }

    /// Adds an engine that the factory does not create; it is polled afterwards. An engine with the same ID is removed
    /// first.
    pub fn insert(&mut self, id: Id, engine: L) {
        self.remove(id);
        self.enter(id, engine);
        self.wake(id);
    }

    /// Removes an engine, even if it has not finished.
    pub fn remove(&mut self, id: Id) {
        if !self.slots.contains_key(&id) {
            return;
        }
        self.end(id);
        self.indicating.retain(|other| *other != id);
        self.requesting.retain(|other| *other != id);
    }

    fn enter(&mut self, id: Id, engine: L) {
        self.slots.insert(id, Slot { engine, deadline: None, may_indicate: false, may_request: false });
    }

    /// Removes an engine that is on no ready list, or is removed from them afterwards.
    fn end(&mut self, id: Id) {
        let slot = self.slots.remove(&id).expect("only living engines end");
        self.deadlines.remove(id, slot.deadline);
        if let Some(hook) = &mut self.on_end {
            hook(id, slot.engine);
        }
    }

    fn with(&mut self, id: Id, origin: Origin, act: impl FnOnce(&mut L)) {
        if !self.slots.contains_key(&id) {
            let Some(engine) = (self.factory)(id, origin) else {
                self.declined += 1;
                return;
            };
            self.enter(id, engine);
        }
        let slot = self.slots.get_mut(&id).expect("it was just inserted");
        act(&mut slot.engine);
        self.wake(id);
    }

    /// Puts the engine on both ready lists.
    fn wake(&mut self, id: Id) {
        let slot = self.slots.get_mut(&id).expect("only living engines are woken");
        if !core::mem::replace(&mut slot.may_indicate, true) {
            self.indicating.push_back(id);
        }
        if !core::mem::replace(&mut slot.may_request, true) {
            self.requesting.push_back(id);
        }
    }

    /// Records the deadline of an engine that is on no ready list, or removes it if it has finished.
    fn settle(&mut self, id: Id) {
        let slot = self.slots.get_mut(&id).expect("only living engines settle");
        if slot.may_indicate || slot.may_request {
            return;
        }
        let deadline = slot.engine.poll_timeout();
        self.deadlines.set(id, &mut slot.deadline, deadline);
        if slot.engine.finished() {
            self.end(id);
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
        while let Some(id) = self.deadlines.pop_due(now) {
            let slot = self.slots.get_mut(&id).expect("deadlines belong to living engines");
            slot.deadline = None;
            slot.engine.handle_timeout(now);
            self.wake(id);
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        while let Some(&id) = self.indicating.front() {
            let slot = self.slots.get_mut(&id).expect("ready engines live");
            if let Some(indication) = slot.engine.poll_indication(now) {
                if !core::mem::replace(&mut slot.may_request, true) {
                    self.requesting.push_back(id);
                }
                return Some((id, indication));
            }
            slot.may_indicate = false;
            self.indicating.pop_front();
            self.settle(id);
        }
        None
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        while let Some(&id) = self.requesting.front() {
            let slot = self.slots.get_mut(&id).expect("ready engines live");
            if let Some(request) = slot.engine.poll_request(now) {
                if !core::mem::replace(&mut slot.may_indicate, true) {
                    self.indicating.push_back(id);
                }
                return Some((id, request));
            }
            slot.may_request = false;
            self.requesting.pop_front();
            self.settle(id);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    fn observe(&self, view: &mut Observation) {
        self.iter().for_each(|(id, engine)| view.with_id(id, engine));
    }
}

impl<Id: Debug, L: Debug, F> Debug for Fan<Id, L, F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_map().entries(self.slots.iter().map(|(id, slot)| (id, &slot.engine))).finish()
    }
}
