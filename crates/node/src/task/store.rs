//! The store of a running node, and reports of damage in it.
//!
//! Only the agent knows which bundle a record belongs to, once it has read the store. Damage found on opening, or while the agent
//! reads, is reported after that.
//!
//! Limit: as many reports wait as the store remembers before it has a listener; those beyond are reported at once, without a bundle.

use super::Task;
use crate::storage::{DAMAGE_WAITING_MAX, Opened, Scrub, StorageDriver, StoreDamage};
use crate::view::Event;
use longwire_proto::service::RecordId;
use longwire_proto::time::Instant;
use std::collections::VecDeque;

pub(crate) struct NodeStore {
    pub(crate) driver: StorageDriver,
    /// Checks of the stored records, if configured.
    pub(crate) scrub: Option<Scrub>,
    /// Result of opening it.
    pub(crate) opened: Opened,
    pub(crate) damage: DamageLog,
}

/// Damage since startup.
#[derive(Debug, Default)]
pub(crate) struct DamageLog {
    told: u64,
    /// Damage that waits until its bundle can be named, in order.
    waiting: Vec<StoreDamage>,
    /// Latest reports, the oldest first.
    pub(super) latest: VecDeque<String>,
}

impl DamageLog {
    const LATEST_MAX: usize = 16;

    /// Number of damaged places, reported or waiting.
    pub(super) fn count(&self) -> u64 {
        self.told + self.waiting.len() as u64
    }

    fn add(&mut self, places: u64, line: String) {
        self.told += places;
        self.latest.push_back(line);
        if self.latest.len() > Self::LATEST_MAX {
            self.latest.pop_front();
        }
    }
}

impl Task {
    /// Handles new damage: it is reported with its bundle before the agent deletes that.
    pub(super) fn hear_damage(&mut self, now: Instant, damage: StoreDamage) {
        if !self.engines.upper.is_ready() && self.store.damage.waiting.len() < DAMAGE_WAITING_MAX {
            self.store.damage.waiting.push(damage);
        } else {
            self.tell_damage(now, 1, &damage);
        }
    }

    /// Reports waiting damage if the agent knows the stored bundles by now.
    pub(super) fn tell_damage_with_names(&mut self, now: Instant) {
        if !self.store.damage.waiting.is_empty() && self.engines.upper.is_ready() {
            self.tell_waiting_damage(now);
        }
    }

    /// Reports waiting damage, with or without bundles.
    pub(super) fn tell_waiting_damage(&mut self, now: Instant) {
        let waiting = std::mem::take(&mut self.store.damage.waiting);
        // A missing segment has many places of one record, which share a line.
        for places in waiting.chunk_by(is_more_of) {
            let bytes = places.iter().map(|damage| damage.bytes).sum();
            self.tell_damage(now, places.len() as u64, &StoreDamage { bytes, ..places[0].clone() });
        }
    }

    /// Reports one place, or several of which this is the first, with the bytes of all.
    fn tell_damage(&mut self, now: Instant, places: u64, damage: &StoreDamage) {
        let bundle = damage.record.map(|record| self.bundle_of(now, record)).unwrap_or_default();
        let more =
            if places > 1 { format!("; {places} places in total, from there on") } else { String::new() };
        let line = format!("{damage}{more}{bundle}");
        tracing::error!(target: "store", "store: {line}");
        self.note(now, Event::StoreDamaged { what: line.clone() });
        self.store.damage.add(places, line);
    }

    /// Describes the bundle that a record belongs to, as far as it is known.
    fn bundle_of(&self, now: Instant, record: RecordId) -> String {
        let agent = &self.engines.upper;
        let found = agent.bundles_after(now, RecordId(record.0.wrapping_sub(1))).next();
        match found.filter(|found| found.record == record) {
            Some(found) => {
                let name = found.id.source.bundle_name(found.id.timestamp);
                format!("; belongs to the bundle {name} to {}", found.destination)
            }
            // The beginning of the bundle is damaged, or it was deleted in the meantime.
            None if agent.is_ready() => "; belongs to no readable bundle".to_owned(),
            None => String::new(),
        }
    }
}

/// True if one line can report both: the same damage to the same record in the same file, of which no copy is kept.
fn is_more_of(one: &StoreDamage, next: &StoreDamage) -> bool {
    let of = |damage: &StoreDamage| (damage.harm, damage.record, damage.file.clone());
    one.record.is_some() && of(one) == of(next) && one.kept.is_none() && next.kept.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::DamageKind;

    #[test]
    fn places_that_one_line_says_are_of_one_record_and_file_and_not_kept() {
        let place = |at| StoreDamage {
            harm: DamageKind::Missing,
            record: Some(RecordId(7)),
            file: "00000003.log".to_owned(),
            at,
            bytes: 100,
            kept: None,
        };
        assert!(is_more_of(&place(0), &place(100)));
        for other in [
            StoreDamage { harm: DamageKind::Data, ..place(100) },
            StoreDamage { record: Some(RecordId(8)), ..place(100) },
            StoreDamage { file: "00000004.log".to_owned(), ..place(100) },
            StoreDamage { kept: Some("copy".into()), ..place(100) },
        ] {
            assert!(!is_more_of(&place(0), &other), "{other}");
        }
        let unnamed = |at| StoreDamage { record: None, ..place(at) };
        assert!(!is_more_of(&unnamed(0), &unnamed(100)));
    }
}
