//! Events of single bundles, reported while an application watches.

use crate::service::{AppIndication, BundleEvent, RecordId};
use std::collections::VecDeque;

use super::Agent;
use super::routing::is_copy;

/// What the application is told.
#[derive(Debug, Default)]
pub(super) struct Indications {
    pub(super) queue: VecDeque<AppIndication>,
    /// True while an application watches the events of bundles.
    pub(super) watched: bool,
}

impl Agent {
    /// Reports an event of a bundle held at this node. Copies have no events of their own.
    pub(super) fn happened(&mut self, record: RecordId, what: BundleEvent) {
        if !self.indications.watched || is_copy(record) {
            return;
        }
        let Some(held) = self.holdings.bundles.get(&record) else { return };
        let timestamp = held.head.timestamp();
        self.indications.queue.push_back(AppIndication::Bundle {
            source: held.head.source().to_string(),
            created: (timestamp.time.0, timestamp.sequence),
            destination: held.head.destination().to_string(),
            payload_bytes: held.payload_bytes(),
            what,
        });
    }
}
