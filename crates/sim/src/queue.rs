//! Pending events: a heap of events and one wake-up for each node.
//!
//! Events of the same instant are processed in the order in which they were created, with two exceptions: the world
//! (outages, faults, plans) comes before the frames and nodes in it, and wake-ups come last, so that a frame that
//! arrives at the instant of a timeout is in time.

use crate::radio::StationTimer;
use longwire_proto::time::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Pending event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimEvent {
    /// The last bit of the frame on the transmitter of this line leaves.
    TransmissionEnds(u32),
    /// The last bit of this frame in flight arrives.
    FrameArrives(u32),
    /// The next scheduled outage of this line begins or ends.
    OutageChanges(u32),
    /// A planned action is due.
    Planned(u32),
    /// A timer of a radio channel expires.
    Radio(StationTimer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at: Instant,
    order: u64,
    event: SimEvent,
}

impl Ord for Entry {
    /// The earliest event is the greatest, as required by `BinaryHeap`.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Pending events in the order of processing.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Entry>,
    pushed: u64,
}

/// Flag in the order of every event except those of the world.
const AFTER_THE_WORLD: u64 = 1 << 63;

impl EventQueue {
    pub(crate) fn push(&mut self, at: Instant, event: SimEvent) {
        let class = match event {
            SimEvent::OutageChanges(_) | SimEvent::Planned(_) => 0,
            SimEvent::TransmissionEnds(_) | SimEvent::FrameArrives(_) | SimEvent::Radio(_) => AFTER_THE_WORLD,
        };
        self.heap.push(Entry { at, order: self.pushed | class, event });
        self.pushed += 1;
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    pub(crate) fn pop(&mut self) -> Option<SimEvent> {
        self.heap.pop().map(|entry| entry.event)
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

/// Values that pending events refer to, by number; the numbers of those that were taken are used again.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Stores a value and returns its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[index as usize] = Some(value);
        index
    }

    /// Takes the value with this number, which is taken once.
    pub(crate) fn take(&mut self, index: u32) -> T {
        self.free.push(index);
        self.slots[index as usize].take().expect("an event happens once")
    }
}

/// One deadline for each node, changed in place: a tree in which each parent has the earlier deadline of its children.
#[derive(Debug, Default)]
pub(crate) struct WakeUps {
    leaves: usize,
    tree: Vec<Instant>,
}

/// No deadline.
const NEVER: Instant = Instant::FAR_FUTURE;

impl WakeUps {
    /// Makes space for node `count - 1`.
    pub(crate) fn grow(&mut self, count: usize) {
        if count <= self.leaves {
            return;
        }
        let old = self.tree.get(self.leaves..).unwrap_or_default().to_vec();
        self.leaves = count.next_power_of_two();
        self.tree = vec![NEVER; 2 * self.leaves];
        for (node, at) in old.into_iter().enumerate() {
            self.set(node, at);
        }
    }

    /// Sets the deadline of a node; [`Instant::FAR_FUTURE`] for none.
    pub(crate) fn set(&mut self, node: usize, at: Instant) {
        let mut place = self.leaves + node;
        if self.tree[place] == at {
            return;
        }
        self.tree[place] = at;
        while place > 1 {
            let earlier = self.tree[place].min(self.tree[place ^ 1]);
            place /= 2;
            if self.tree[place] == earlier {
                return;
            }
            self.tree[place] = earlier;
        }
    }

    /// Returns the deadline of a node.
    pub(crate) fn get(&self, node: usize) -> Option<Instant> {
        Some(self.tree[self.leaves + node]).filter(|at| *at != NEVER)
    }

    /// Returns the earliest deadline.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.tree.get(1).copied().filter(|at| *at != NEVER)
    }

    /// Returns the node with the earliest deadline; of several, the first.
    pub(crate) fn first(&self) -> usize {
        let mut place = 1;
        while place < self.leaves {
            place *= 2;
            if self.tree[place] > self.tree[place + 1] {
                place += 1;
            }
        }
        place - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::rng::Rng;

    #[test]
    fn events_come_by_time_then_world_then_age() {
        let mut queue = EventQueue::default();
        let at = Instant::from_secs;
        queue.push(at(2), SimEvent::TransmissionEnds(1));
        queue.push(at(1), SimEvent::FrameArrives(2));
        queue.push(at(1), SimEvent::TransmissionEnds(3));
        queue.push(at(1), SimEvent::OutageChanges(4));
        let order: Vec<SimEvent> = core::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(
            order,
            [
                SimEvent::OutageChanges(4),
                SimEvent::FrameArrives(2),
                SimEvent::TransmissionEnds(3),
                SimEvent::TransmissionEnds(1)
            ]
        );
    }

    #[test]
    fn the_tree_of_wakes_agrees_with_a_plain_search() {
        let mut rng = Rng::new(5);
        let mut wakes = WakeUps::default();
        let mut plain: Vec<Instant> = Vec::new();
        for _ in 0..2000 {
            if plain.len() < 37 && rng.chance(0.05) {
                plain.push(NEVER);
                wakes.grow(plain.len());
            }
            if !plain.is_empty() {
                let node = rng.below(plain.len() as u64) as usize;
                let at = if rng.chance(0.2) { NEVER } else { Instant::from_secs(rng.below(20)) };
                plain[node] = at;
                wakes.set(node, at);
                let looked_at = rng.below(plain.len() as u64) as usize;
                assert_eq!(wakes.get(looked_at), Some(plain[looked_at]).filter(|at| *at != NEVER));
                let earliest = plain.iter().min().copied().filter(|at| *at != NEVER);
                assert_eq!(wakes.next_at(), earliest);
                if let Some(earliest) = earliest {
                    assert_eq!(Some(wakes.first()), plain.iter().position(|at| *at == earliest));
                }
            }
        }
    }
}
