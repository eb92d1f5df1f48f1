//! What was damaged in the store, told to people.
//!
//! The agent alone knows whose a record is, once it has read the store. Damage that opening meets, or that is found while the agent
//! reads, waits for that.
//!
//! Limit: as much waits as the store remembers before somebody listens; what is beyond that is told at once, without a name.

use crate::storage::{DAMAGE_WAITING_MAX, Damage};
use crate::task::Task;
use longwire_proto::service::RecordId;
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// What was damaged since the start.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    told: u64,
    /// Until it can be said whose it is, in order.
    waiting: Vec<Damage>,
    /// The latest that were told, oldest first.
    pub(crate) latest: VecDeque<String>,
}

impl Damages {
    const LATEST_MAX: usize = 16;

    /// Places that were told, and those that wait for that.
    pub(crate) fn count(&self) -> u64 {
        self.told + self.waiting.len() as u64
    }

    fn add(&mut self, line: String) {
        self.told += 1;
        self.latest.push_back(line);
        if self.latest.len() > Self::LATEST_MAX {
            self.latest.pop_front();
        }
    }
}

impl Task {
    /// Something that was stored is damaged: whose it is is told before the agent deletes it.
    pub(crate) fn hear_damage(&mut self, now: Instant, damage: Damage) {
        if !self.engines.upper.is_ready() && self.damage.waiting.len() < DAMAGE_WAITING_MAX {
            self.damage.waiting.push(damage);
        } else {
            self.tell_damage(now, &damage);
        }
    }

    /// Tells what has waited for the agent, if that knows by now which bundles are here.
    pub(crate) fn tell_damage_with_names(&mut self, now: Instant) {
        if !self.damage.waiting.is_empty() && self.engines.upper.is_ready() {
            self.tell_waiting_damage(now);
        }
    }

    /// Tells what has waited, with names or without.
    pub(crate) fn tell_waiting_damage(&mut self, now: Instant) {
        for damage in std::mem::take(&mut self.damage.waiting) {
            self.tell_damage(now, &damage);
        }
    }

    fn tell_damage(&mut self, now: Instant, damage: &Damage) {
        let bundle = damage.record.map(|record| self.bundle_of(now, record)).unwrap_or_default();
        let line = format!("{damage}{bundle}");
        crate::standard_error::say(format_args!("longwire: the store: {line}"));
        self.note(now, crate::view::Event::StoreDamaged { what: line.clone() });
        self.damage.add(line);
    }

    /// The bundle that a record is of, as far as that is known.
    fn bundle_of(&self, now: Instant, record: RecordId) -> String {
        let agent = &self.engines.upper;
        let found = agent.bundles_after(now, RecordId(record.0.wrapping_sub(1))).next();
        match found.filter(|found| found.record == record) {
            Some(found) => {
                let (source, created) = (&found.id.source, found.id.timestamp);
                format!(
                    "; it is of {source} created at {}-{} for {}",
                    created.time.0, created.sequence, found.destination
                )
            }
            // Its beginning is what is damaged, or it has gone meanwhile.
            None if agent.is_ready() => "; no bundle that can be read is of it".to_owned(),
            None => String::new(),
        }
    }
}
