//! Payloads that were taken, or passed on: their names in memory.
//!
//! A name may have a kilobyte, and there may be a hundred thousand of them: memory has digests, the disk has the names.

use crate::bp::{CreationTimestamp, Eid};
use crate::service::{BundleVersion, RecordId};
use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;

use super::Agent;
use super::delivery::{AduKey, LocalKey};
use super::head::Head;

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

/// A payload that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Taken {
    timestamp: CreationTimestamp,
    version: BundleVersion,
    source: Digest,
    /// Its [`LocalKey::mark`]. Tombstones of earlier versions have none, and stand for every payload of the name.
    mark: Option<u64>,
}

impl Agent {
    pub(super) fn taken_as(
        &self,
        source: &Eid,
        timestamp: CreationTimestamp,
        version: BundleVersion,
        mark: Option<u64>,
    ) -> Taken {
        Taken { timestamp, version, source: Digest::of(self.digest_key, source), mark }
    }

    /// True if the payload that a bundle with this head has, or has a part of, was taken here. Another one under its name was
    /// not.
    pub(super) fn was_taken(&self, head: &Head) -> bool {
        let (timestamp, version) = (head.timestamp(), head.version());
        let between = |first, last| {
            let end = |source, mark| Taken { timestamp, version, source, mark };
            self.tombstones.range(end(first, None)..=end(last, Some(u64::MAX))).map(|(taken, _)| taken.mark)
        };
        // Most have a time of their own: then there is no need of a digest.
        if head.source().is_null() || between(Digest::FIRST, Digest::LAST).next().is_none() {
            return false;
        }
        let source = Digest::of(self.digest_key, head.source());
        between(source, source).any(|mark| mark.is_none_or(|mark| mark == self.mark_of(head)))
    }

    /// The digest of a part of a bundle that was passed on.
    pub(super) fn part_digest(&self, head: &Head) -> Digest {
        let part = head.fragment().map(|fragment| (fragment.offset, head.payload_bytes()));
        let name = (head.source(), head.timestamp(), head.version(), self.mark_of(head));
        Digest::of(self.digest_key, (name, part))
    }

    fn mark_of(&self, head: &Head) -> u64 {
        LocalKey::of(head, AduKey::of(head, RecordId(0))).mark(self.secret)
    }
}
