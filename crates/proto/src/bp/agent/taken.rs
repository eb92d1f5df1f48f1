//! Payloads that are here, were taken, or passed on: their names in memory.
//!
//! A name may have a kilobyte, and there may be a hundred thousand of them: memory has digests, the disk has the names.

use crate::bp::{CreationTimestamp, Eid};
use crate::service::BundleVersion;
use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;

use super::Agent;
use super::delivery::{AduKey, PayloadProperties};
use super::head::AnyHead;

/// A number of 128 bits that stands for a name while this process runs. The key is new with every start and known to nobody
/// else, so that nobody can choose two names that have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest(u64, u64);

impl Digest {
    const FIRST: Digest = Digest(0, 0);
    const LAST: Digest = Digest(u64::MAX, u64::MAX);

    fn of(key: u64, name: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        (key, name).hash(&mut hasher);
        let half = hasher.finish();
        hasher.write_u8(1);
        Digest(half, hasher.finish())
    }
}

/// A payload that was taken: its name and its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TakenPayload {
    timestamp: CreationTimestamp,
    digest: Digest,
}

impl Agent {
    /// The digest that stands for a bundle and its fragments among all that are here.
    pub(super) fn adu_digest(&self, adu: &AduKey) -> Digest {
        Digest::of(self.digest_key, adu)
    }

    /// Tombstones of earlier versions say nothing of the payload, and stand for every one of the name.
    pub(super) fn taken_as(
        &self,
        source: &Eid,
        timestamp: CreationTimestamp,
        version: BundleVersion,
        payload: Option<PayloadProperties<&Eid>>,
    ) -> TakenPayload {
        TakenPayload { timestamp, digest: Digest::of(self.digest_key, (source, version, payload)) }
    }

    /// True if the payload that a bundle with this head has, or has a part of, was taken here. Another one under its name was
    /// not.
    pub(super) fn was_taken(&self, head: &AnyHead) -> bool {
        let (timestamp, version) = (head.timestamp(), head.version());
        let end = |digest| TakenPayload { timestamp, digest };
        // Most have a time of their own: then there is no need of a digest.
        let has_time = self.tombstones.range(end(Digest::FIRST)..=end(Digest::LAST)).next().is_some();
        let was = |payload| {
            self.tombstones.contains_key(&self.taken_as(head.source(), timestamp, version, payload))
        };
        has_time && !head.source().is_null() && (was(Some(PayloadProperties::of(head))) || was(None))
    }

    /// The digest of a part of a bundle that was passed on.
    pub(super) fn part_digest(&self, head: &AnyHead) -> Digest {
        let part = head.fragment().map(|fragment| (fragment.offset, head.payload_bytes()));
        let name = (head.source(), head.timestamp(), head.version(), PayloadProperties::of(head));
        Digest::of(self.digest_key, (name, part))
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    /// A name that is chosen for its digest would have it under one key, and not for both of its halves.
    #[test]
    fn a_digest_depends_on_the_key_and_its_halves_differ() {
        let Digest(first, second) = Digest::of(1, "dtn://alice/");
        assert_ne!(first, second);
        assert!(Digest::of(2, "dtn://alice/") != Digest(first, second));
    }
}
