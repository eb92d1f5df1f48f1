//! Applications that wait for a change of the node's status.
//!
//! A pass of the event loop that handles an event or an expired timer counts as a change; a request for the status does not. The
//! applications are answered at a rate that costs little, so that waiting applications do not slow the node down.
//!
//! Limits: one wait per application; one answer per [`PACE`].

use super::Task;
use super::event::TaskEvent;
use crate::surfaces::client::{ClientEvent, ClientId};
use crate::surfaces::message::Request;
use crate::surfaces::operations::Effect;
use longwire_proto::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum time between two answers.
const PACE: Duration = Duration::from_millis(2);

/// Applications that wait for a change, and the change that each has seen last.
#[derive(Debug, Default)]
pub(crate) struct StatusWaiters {
    /// Number of passes with a change.
    count: u64,
    /// The count when each application got its last status.
    told: BTreeMap<ClientId, u64>,
    waiting: BTreeSet<ClientId>,
    /// Earliest time of the next answer.
    next: Instant,
}

impl StatusWaiters {
    /// True if handling this event changes the status, or may.
    pub(crate) fn is_some(event: &TaskEvent) -> bool {
        let TaskEvent::Client(ClientEvent::Request(_, message)) = event else { return true };
        message.head.operation().effect == Effect::Change
    }

    /// Counts a change.
    pub(crate) fn add(&mut self) {
        self.count += 1;
    }

    /// An application gets the status without having waited.
    pub(crate) fn told(&mut self, client: ClientId) {
        self.told.insert(client, self.count);
    }

    /// Adds an application that waits for a change since its last status.
    pub(crate) fn wait(&mut self, client: ClientId) {
        self.waiting.insert(client);
    }

    pub(crate) fn leave(&mut self, client: ClientId) {
        self.told.remove(&client);
        self.waiting.remove(&client);
    }

    fn has_news(&self, client: ClientId) -> bool {
        self.told.get(&client).is_none_or(|told| *told < self.count)
    }

    /// Time of the next answer, if nothing else happens.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        self.waiting.iter().any(|client| self.has_news(*client)).then_some(self.next)
    }

    /// Removes and returns the applications to answer now.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<ClientId> {
        if now < self.next {
            return Vec::new();
        }
        let due: Vec<ClientId> =
            self.waiting.iter().copied().filter(|client| self.has_news(*client)).collect();
        for client in &due {
            self.waiting.remove(client);
            self.told.insert(*client, self.count);
        }
        if !due.is_empty() {
            self.next = now + PACE;
        }
        due
    }
}

impl Task {
    /// Sends the status to applications that wait for a change.
    pub(super) fn tell_news(&mut self, now: Instant, happened: bool) {
        if happened {
            self.status_waiters.add();
        }
        for client in self.status_waiters.due(now) {
            let status = self.operate(now, Request::Status);
            self.applications.say(client, status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_of_what_happened_since_and_not_too_often() {
        const ONE: ClientId = ClientId(1);
        let mut news = StatusWaiters::default();
        let now = Instant::ZERO + PACE;
        news.wait(ONE);
        assert_eq!(news.due(now), [ONE], "it was never told anything");
        news.wait(ONE);
        assert_eq!((news.due(now + PACE), news.wakes_at()), (vec![], None), "nothing has happened");
        news.add();
        assert_eq!((news.due(now), news.wakes_at()), (vec![], Some(now + PACE)), "it was just told");
        assert_eq!(news.due(now + PACE), [ONE]);
        news.add();
        news.told(ONE);
        news.wait(ONE);
        assert_eq!(news.due(now + 3 * PACE), [], "it has asked since");
        news.add();
        assert_eq!(news.due(now + 3 * PACE), [ONE]);
        news.wait(ONE);
        news.leave(ONE);
        news.add();
        assert_eq!(news.wakes_at(), None);
    }
}
