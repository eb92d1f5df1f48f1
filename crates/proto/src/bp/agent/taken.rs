//! Digests of the payloads that are held, were delivered or were passed on.
//!
//! A key may have a kilobyte, and there may be a hundred thousand of them: memory holds digests, the records
//! hold the complete keys.

use crate::bp::{CreationTimestamp, Eid};
use crate::service::BundleVersion;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;
use std::collections::hash_map::DefaultHasher;

use super::adu::{AduKey, PayloadProperties};
use super::head::AnyHead;

/// Length of what is gathered for one write, bytes: most names are shorter.
const GATHERED_BYTES: usize = 128;

/// Number of 128 bits that represents a key while this process runs. The hash key is random and new with
/// every start, so that an attacker cannot choose two keys with the same digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest(u64, u64);

impl Digest {
    const FIRST: Digest = Digest(0, 0);
    const LAST: Digest = Digest(u64::MAX, u64::MAX);

    fn of(key: u64, name: impl Hash) -> Self {
        let mut gathered = GatheringHasher::default();
        (key, name).hash(&mut gathered);
        let mut hasher = gathered.into_hasher();
        let half = hasher.finish();
        hasher.write_u8(1);
        Digest(half, hasher.finish())
    }
}

/// Hasher that passes on many short writes as one, because a name is a dozen of them. The result does not depend on how the bytes
/// are divided into writes.
#[derive(Clone)]
struct GatheringHasher {
    hasher: DefaultHasher,
    gathered: [u8; GATHERED_BYTES],
    length: usize,
}

impl GatheringHasher {
    /// The hasher that has all bytes.
    fn into_hasher(mut self) -> DefaultHasher {
        self.hasher.write(&self.gathered[..self.length]);
        self.hasher
    }
}

impl Default for GatheringHasher {
    fn default() -> Self {
        GatheringHasher { hasher: DefaultHasher::new(), gathered: [0; GATHERED_BYTES], length: 0 }
    }
}

impl Hasher for GatheringHasher {
    fn write(&mut self, bytes: &[u8]) {
        if self.length + bytes.len() > GATHERED_BYTES {
            self.hasher.write(&self.gathered[..self.length]);
            self.length = 0;
        }
        match self.gathered.get_mut(self.length..self.length + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.hasher.write(bytes),
        }
    }

    fn finish(&self) -> u64 {
        self.clone().into_hasher().finish()
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
    use super::{Digest, GATHERED_BYTES, GatheringHasher};
    use crate::rng::Rng;
    use core::hash::Hasher;
    use std::collections::hash_map::DefaultHasher;

    /// Names of all lengths, in writes of all lengths, have the result of one write.
    #[test]
    fn a_name_has_the_same_digest_however_it_is_divided_into_writes() {
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let mut name = vec![0; rng.below(4 * GATHERED_BYTES as u64) as usize];
            rng.fill(&mut name);
            let (mut whole, mut divided) = (DefaultHasher::new(), GatheringHasher::default());
            whole.write(&name);
            let mut left = &name[..];
            while !left.is_empty() {
                let most = if rng.chance(0.9) { 20 } else { 2 * GATHERED_BYTES as u64 };
                let (first, rest) = left.split_at(left.len().min(rng.below(most) as usize));
                divided.write(first);
                left = rest;
            }
            assert_eq!(divided.finish(), whole.finish(), "seed {seed}");
            assert_eq!(divided.into_hasher().finish(), whole.finish(), "seed {seed}");
        }
    }

    /// A key chosen for its digest would have it under only one hash key, and not for both halves.
    #[test]
    fn a_digest_depends_on_the_key_and_its_halves_differ() {
        let Digest(first, second) = Digest::of(1, "dtn://alice/");
        assert_ne!(first, second);
        assert!(Digest::of(2, "dtn://alice/") != Digest(first, second));
    }
}
