//! Events of single bundles, reported while the operator watches.

use crate::service::{BpaIndication, BundleEvent, ManagementIndication, RecordId};
use std::collections::VecDeque;

use super::Agent;
use super::routing::is_copy;

/// Indications for applications and the operator.
#[derive(Debug, Default)]
pub(super) struct Indications {
    queue: VecDeque<BpaIndication>,
    /// True while the operator watches the events of bundles.
    watched: bool,
}

impl Indications {
    pub(super) fn push(&mut self, indication: impl Into<BpaIndication>) {
        self.queue.push_back(indication.into());
    }

    pub(super) fn pop(&mut self) -> Option<BpaIndication> {
        self.queue.pop_front()
    }

    /// Sets whether the operator watches the events of bundles.
    pub(super) fn watch(&mut self, on: bool) {
        self.watched = on;
    }

    /// True while the operator watches the events of bundles.
    pub(super) fn are_watched(&self) -> bool {
        self.watched
    }
}

impl Agent {
    /// Reports an event of a bundle held at this node. Copies have no events of their own.
    pub(super) fn happened(&mut self, record: RecordId, what: BundleEvent) {
        if !self.indications.are_watched() || is_copy(record) {
            return;
        }
        let Some(held) = self.holdings.get(&record) else { return };
        self.indications.push(ManagementIndication::Bundle {
            name: held.head.source().bundle_name(held.head.timestamp()),
            destination: held.head.destination().to_string(),
            payload_bytes: held.payload_bytes(),
            what,
        });
    }
}
