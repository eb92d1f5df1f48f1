//! The bundles that the node holds, and what is counted of them.

use crate::service::RecordId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::accounts::Accounts;
use super::held::HeldBundle;
use super::space::Evictable;
use super::taken::Digest;

/// All bundles, in order of their records.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// Each bundle is boxed, because half of the slots of a B-tree are empty.
    pub(super) bundles: BTreeMap<RecordId, Box<HeldBundle>>,
    /// Number of copies among the bundles.
    pub(super) copies: usize,
    /// Records of a bundle and its fragments.
    pub(super) adus: BTreeSet<(Digest, RecordId)>,
    /// Total length of the bundles, bytes.
    pub(super) bytes: u64,
    pub(super) accounts: Accounts,
    pub(super) evictable: Evictable,
    /// Records that may have become completely durable.
    pub(super) settled: VecDeque<RecordId>,
}
