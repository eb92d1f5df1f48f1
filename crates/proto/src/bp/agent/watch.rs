//! Events of single bundles, reported while an application watches.

use crate::service::{AppIndication, BundleEvent, RecordId};

use super::Agent;
use super::routing::is_copy;

impl Agent {
    /// Reports an event of a bundle held at this node. Copies have no events of their own.
    pub(super) fn happened(&mut self, record: RecordId, what: BundleEvent) {
        if !self.watched || is_copy(record) {
            return;
        }
        let Some(held) = self.bundles.get(&record) else { return };
        let timestamp = held.head.timestamp();
        self.up.push_back(AppIndication::Bundle {
            source: held.head.source().to_string(),
            created: (timestamp.time.0, timestamp.sequence),
            destination: held.head.destination().to_string(),
            payload_bytes: held.payload_bytes(),
            what,
        });
    }
}
