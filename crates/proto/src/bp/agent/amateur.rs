//! Links on amateur radio bands, where encryption is not allowed.
//!
//! An encrypted bundle is one with a block confidentiality block (RFC 9172 3.8), or in version 6 with a block for payload
//! confidentiality or extension security (RFC 6257 2.4, 2.5), whoever made it. It never uses such a link: its class of bundles
//! excludes the link, so that another link is chosen where there is one, and the header that leaves is checked once more when
//! a transfer is opened. Otherwise the bundle waits, as for a link that is down.
//!
//! The property is one of the bundle: it is kept when the header is only on disk, and for all fragments. Payloads that
//! applications have encrypted cannot be told from others.

use super::Agent;
use super::head::AnyHead;
use super::routing::{ClassId, ClassKey, NextHops};
use crate::service::{LinkId, RecordId};
use crate::time::Instant;

impl Agent {
    /// Notes that a link uses an amateur radio band until it goes down, and cancels the transfers of encrypted bundles
    /// over it.
    pub(super) fn link_is_amateur(&mut self, now: Instant, id: LinkId) {
        // Without room for the link it is closed when it comes up.
        let Some(link) = self.links.entry(id, self.config.limits.links_max, &self.config.links) else {
            return;
        };
        link.is_announced_amateur = true;
        let encrypted = |record: &RecordId| self.holdings.get(record).is_some_and(|held| held.encrypted);
        let begun =
            link.transfers.iter().filter(|(_, flight)| !flight.is_cancelled() && encrypted(&flight.record));
        let begun: Vec<_> =
            begun.map(|(transfer, flight)| (*transfer, flight.record, flight.from, flight.to)).collect();
        for (transfer, record, from, to) in begun {
            self.cancel_transfers(&[(id, transfer)]);
            self.put_back(now, record, id, transfer, from, to);
            self.sort_again(record);
            self.settle_refused(now, record);
        }
        self.count_kept_from(id);
    }

    /// True if a bundle, with the header with which it would leave, must not be sent over this link: bundle security
    /// may have encrypted it on the way out.
    pub(super) fn must_keep(&self, id: LinkId, record: RecordId, head: &AnyHead) -> bool {
        self.links.is_amateur(id) && (self.holdings[&record].encrypted || head.is_encrypted())
    }

    /// Returns the prepared transfer of such a bundle to the queue, from now on as one that is encrypted. Returns true:
    /// the link has done something.
    pub(super) fn keep_encrypted(&mut self, now: Instant, id: LinkId, record: RecordId) -> bool {
        let original = self.original(record);
        self.drop_prepared(now, id);
        for record in [record, original] {
            if let Some(held) = self.holdings.get_mut(&record) {
                held.encrypted = true;
            }
            self.sort_again(record);
        }
        true
    }

    /// Counts an encrypted bundle, once, if a link to its next hops uses an amateur radio band.
    pub(super) fn count_if_kept(&mut self, record: RecordId, class: ClassId) {
        let key = self.routing.queues.key(class);
        if !key.encrypted {
            return;
        }
        let kept = match &key.ways {
            NextHops::Hops(hops) => {
                hops.iter().flat_map(|(_, hop)| self.links.of(hop)).any(|link| self.links.is_amateur(link))
            }
            NextHops::Everyone => self.links.named().any(|link| self.links.is_amateur(link)),
        };
        if kept {
            self.count_kept(record);
        }
    }

    fn count_kept(&mut self, record: RecordId) {
        let record = self.original(record);
        if let Some(held) = self.holdings.get_mut(&record)
            && !core::mem::replace(&mut held.counted_as_kept, true)
        {
            self.counters.kept_encrypted += 1;
        }
    }

    /// Counts the waiting encrypted bundles that are kept from a link that has come up.
    pub(super) fn count_kept_from(&mut self, link: LinkId) {
        if self.links.is_amateur(link) {
            let kept = self.routing.queues.encrypted_of(link, &self.links);
            kept.into_iter().for_each(|record| self.count_kept(record));
        }
    }

    /// Link to the next hops of a class of encrypted bundles that uses an amateur radio band.
    pub(super) fn amateur_link_of(&self, key: &ClassKey) -> Option<LinkId> {
        let links: Vec<LinkId> = match &key.ways {
            NextHops::Hops(hops) => hops.iter().flat_map(|(_, hop)| self.links.of(hop)).collect(),
            NextHops::Everyone => self.links.named().filter(|link| !key.has(*link, &self.links)).collect(),
        };
        links.into_iter().find(|link| key.encrypted && self.links.is_amateur(*link))
    }
}
