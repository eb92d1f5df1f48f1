//! Digests of the payloads that are held, were delivered or were passed on.
//!
//! A key may have a kilobyte, and there may be a hundred thousand of them: memory holds digests, the records
//! hold the complete keys.

use crate::bp::{CreationTimestamp, Eid};
use crate::service::BundleVersion;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;
use std::collections::hash_map::DefaultHasher;

use super::delivery::{AduKey, PayloadProperties};
use super::head::AnyHead;

/// Number of 128 bits that represents a key while this process runs. The hash key is random and new with
/// every start, so that an attacker cannot choose two keys with the same digest.
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

/// Delivered payload: its key and its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TakenPayload {
    timestamp: CreationTimestamp,
    digest: Digest,
}

impl TakenPayload {
    /// All payloads with this timestamp.
    pub(super) fn all_of(timestamp: CreationTimestamp) -> RangeInclusive<TakenPayload> {
        let end = |digest| TakenPayload { timestamp, digest };
        end(Digest::FIRST)..=end(Digest::LAST)
    }
}

/// Computes digests with the random key of this start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digests(u64);

impl Digests {
    /// Creates digests with this key.
    pub(super) fn new(key: u64) -> Self {
        Digests(key)
    }

    /// Digest of a bundle and its fragments.
    pub(super) fn adu(&self, adu: &AduKey) -> Digest {
        Digest::of(self.0, adu)
    }

    /// Digest of a delivered payload. Tombstones of earlier versions have no properties, and match every
    /// payload with the same bundle ID.
    pub(super) fn taken(
        &self,
        source: &Eid,
        timestamp: CreationTimestamp,
        version: BundleVersion,
        payload: Option<&PayloadProperties>,
    ) -> TakenPayload {
        TakenPayload { timestamp, digest: Digest::of(self.0, (source, version, payload)) }
    }

    /// Digest of a part of a bundle that was passed on.
    pub(super) fn part(&self, head: &AnyHead) -> Digest {
        let part = head.fragment().map(|fragment| (fragment.offset, head.payload_bytes()));
        let name = (head.source(), head.timestamp(), head.version(), PayloadProperties::of(head));
        Digest::of(self.0, (name, part))
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    /// A key chosen for its digest would have it under only one hash key, and not for both halves.
    #[test]
    fn a_digest_depends_on_the_key_and_its_halves_differ() {
        let Digest(first, second) = Digest::of(1, "dtn://alice/");
        assert_ne!(first, second);
        assert!(Digest::of(2, "dtn://alice/") != Digest(first, second));
    }
}
