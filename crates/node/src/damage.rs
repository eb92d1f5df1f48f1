//! What was damaged in the store, told to people.

use crate::storage::Damage;
use crate::task::Task;
use longwire_proto::service::RecordId;
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// What was damaged since the start.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    pub(crate) count: u64,
    /// The latest, oldest first.
    pub(crate) latest: VecDeque<String>,
}

impl Damages {
    const LATEST_MAX: usize = 16;

    fn add(&mut self, line: String) {
        self.count += 1;
        self.latest.push_back(line);
        if self.latest.len() > Self::LATEST_MAX {
            self.latest.pop_front();
        }
    }
}

impl Task {
    /// Something that was stored is damaged: whose it is is told before the agent deletes it.
    pub(crate) fn hear_damage(&mut self, now: Instant, damage: &Damage) {
        let before = damage.record.map(|record| RecordId(record.0.wrapping_sub(1)));
        let found = before.and_then(|before| self.engines.upper.bundles_after(now, before).next());
        let found = found.filter(|found| Some(found.record) == damage.record);
        let bundle = found.map(|found| {
            let (source, created) = (&found.id.source, found.id.timestamp);
            format!(
                "; it is of {source} created at {}-{} for {}",
                created.time.0, created.sequence, found.destination
            )
        });
        let line = format!("{damage}{}", bundle.unwrap_or_default());
        crate::standard_error::say(format_args!("longwire: the store: {line}"));
        self.note(now, crate::view::Event::StoreDamaged { what: line.clone() });
        self.damage.add(line);
    }
}
