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
    fn of(key: u64, name: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        (key, name).hash(&mut hasher);
        let half = hasher.finish();
        hasher.write_u8(1);
        Digest(half, hasher.finish())
    }
}

/// A payload that was taken: its name, and its [`LocalKey::mark`]. Tombstones of earlier versions have no mark, and stand for
/// every payload of the name.
pub(super) type Taken = (Digest, Option<u64>);

impl Agent {
    pub(super) fn digest_of(
        &self,
        source: &Eid,
        timestamp: CreationTimestamp,
        version: BundleVersion,
    ) -> Digest {
        Digest::of(self.digest_key, (source, timestamp, version))
    }

    /// True if the payload that a bundle with this head has, or has a part of, was taken here. Another one under its name was
    /// not.
    pub(super) fn was_taken(&self, head: &Head) -> bool {
        if self.tombstones.is_empty() || head.source().is_null() {
            return false;
        }
        let digest = self.digest_of(head.source(), head.timestamp(), head.version());
        let mut marks =
            self.tombstones.range((digest, None)..=(digest, Some(u64::MAX))).map(|(taken, _)| taken.1);
        marks.any(|mark| mark.is_none_or(|mark| mark == self.mark_of(head)))
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
