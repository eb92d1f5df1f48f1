//! What was damaged in the store, told to people.
//!
//! The agent alone knows whose a record is, once it has read the store. Damage that opening meets, or that is found while the agent
//! reads, waits for that.
//!
//! Limit: as much waits as the store remembers before somebody listens; what is beyond that is told at once, without a name.

use crate::storage::{DAMAGE_WAITING_MAX, StoreDamage};
use crate::task::Task;
use longwire_proto::service::RecordId;
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// What was damaged since the start.
#[derive(Debug, Default)]
pub(crate) struct DamageLog {
    told: u64,
    /// Until it can be said whose it is, in order.
    waiting: Vec<StoreDamage>,
    /// The latest that were told, oldest first.
    pub(crate) latest: VecDeque<String>,
}

impl DamageLog {
    const LATEST_MAX: usize = 16;

    /// Places that were told, and those that wait for that.
    pub(crate) fn count(&self) -> u64 {
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
    /// Something that was stored is damaged: whose it is is told before the agent deletes it.
    pub(crate) fn hear_damage(&mut self, now: Instant, damage: StoreDamage) {
        if !self.engines.upper.is_ready() && self.damage.waiting.len() < DAMAGE_WAITING_MAX {
            self.damage.waiting.push(damage);
        } else {
            self.tell_damage(now, 1, &damage);
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
        let waiting = std::mem::take(&mut self.damage.waiting);
        // A segment that is gone has many places of one record, and one line says so.
        for places in waiting.chunk_by(is_more_of) {
            let bytes = places.iter().map(|damage| damage.bytes).sum();
            self.tell_damage(now, places.len() as u64, &StoreDamage { bytes, ..places[0].clone() });
        }
    }

    /// Tells one place, or several of which this is the first, with the bytes of all.
    fn tell_damage(&mut self, now: Instant, places: u64, damage: &StoreDamage) {
        let bundle = damage.record.map(|record| self.bundle_of(now, record)).unwrap_or_default();
        let more = if places > 1 { format!("; in {places} places from there on") } else { String::new() };
        let line = format!("{damage}{more}{bundle}");
        crate::standard_error::say(format_args!("longwire: the store: {line}"));
        self.note(now, crate::view::Event::StoreDamaged { what: line.clone() });
        self.damage.add(places, line);
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

/// True if one line can say both: the same has happened to the same record in the same file, and no copy of it is kept.
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
