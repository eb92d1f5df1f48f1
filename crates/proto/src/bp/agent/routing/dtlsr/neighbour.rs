//! A neighbour: whether it is connected, the history of its outages, and what it is still to be told.

use super::announcement::{DELAY_MAX_MS, Outage};
use crate::bp::Eid;
use crate::bp::agent::clock::millis;
use crate::time::Instant;
use std::collections::BTreeSet;

/// Part of the expected wait for a link that has just gone down, milliseconds.
const AGEING_MS: u64 = 5000;
/// Weight of the latest outage in the smoothed length is one in this number.
const SMOOTHING: u64 = 4;

/// Expected wait for a link that is down, milliseconds: the usual length of its outages; once it has been down for longer, as
/// long again as it has been.
pub(super) fn expected_wait_ms(outage: Outage) -> u64 {
    outage.mean_ms.max(outage.down_ms.saturating_add(AGEING_MS)).min(DELAY_MAX_MS)
}

/// Neighbour.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) up: bool,
    /// Time at which it came up or went down.
    pub(super) since: Instant,
    /// Delay of the link while it is up, milliseconds.
    pub(super) delay_ms: u64,
    /// Smoothed length of the outages, milliseconds; `None` before one has ended.
    mean_ms: Option<u64>,
    /// Origins whose latest announcements it has not been sent.
    pub(super) owed: BTreeSet<Eid>,
    /// A record for it is on its way.
    pub(super) busy: bool,
    /// Time at which the latest record was made for it.
    pub(super) told_at: Option<Instant>,
}

impl Neighbour {
    /// Neighbour that came up for the first time.
    pub(super) fn new(now: Instant, delay_ms: u64) -> Self {
        Neighbour {
            up: true,
            since: now,
            delay_ms,
            mean_ms: None,
            owed: BTreeSet::new(),
            busy: false,
            told_at: None,
        }
    }

    /// Ends an outage.
    pub(super) fn come_up(&mut self, now: Instant, delay_ms: u64) {
        let lasted_ms = millis(now.saturating_since(self.since));
        let smoothed = |mean: u64| mean - mean / SMOOTHING + lasted_ms / SMOOTHING;
        self.mean_ms = Some(self.mean_ms.map_or(lasted_ms, smoothed));
        (self.up, self.since, self.delay_ms) = (true, now, delay_ms);
    }

    /// Begins an outage. A record that is under way no longer counts: the neighbour is told everything when it is back.
    pub(super) fn go_down(&mut self, now: Instant) {
        (self.up, self.since, self.busy) = (false, now, false);
        self.owed.clear();
    }

    /// Present outage; `None` while the neighbour is up.
    pub(super) fn outage(&self, now: Instant) -> Option<Outage> {
        let down_ms = millis(now.saturating_since(self.since));
        (!self.up).then_some(Outage { down_ms, mean_ms: self.mean_ms.unwrap_or(0) })
    }

    /// Expected delay of a bundle to the neighbour, milliseconds.
    pub(super) fn expected_ms(&self, now: Instant) -> u64 {
        self.outage(now).map_or(0, expected_wait_ms) + self.delay_ms
    }
}
