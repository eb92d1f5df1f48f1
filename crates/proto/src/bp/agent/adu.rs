//! Keys of bundles and of payloads for this node, whatever the number of their fragments and copies (application data units).

use crate::bp::v6;
use crate::bp::{CreationTimestamp, Eid};
use crate::service::{BundleVersion, RecordId};

use super::head::AnyHead;

/// Key that a bundle has in common with all its fragments and copies. Each bundle without a source has its
/// own key. The timestamp is compared first: it distinguishes most bundles, and is cheaper to compare than
/// the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct AduKey {
    pub(super) timestamp: CreationTimestamp,
    pub(super) source: Eid,
    anonymous: RecordId,
    pub(super) version: BundleVersion,
}

impl AduKey {
    /// Key of the bundle with this header in this record. It shares the memory of the header, so it must not
    /// outlive the bundle.
    pub(super) fn of(head: &AnyHead, record: RecordId) -> Self {
        let source = head.source().clone();
        let anonymous = if source.is_null() { record } else { RecordId(0) };
        AduKey { source, timestamp: head.timestamp(), anonymous, version: head.version() }
    }

    /// Key of the subject of a custody signal.
    pub(super) fn of_subject(subject: &v6::admin::Subject) -> Self {
        AduKey::named(&subject.source, subject.timestamp(), BundleVersion::V6)
    }

    /// Key of a bundle with this non-null source, creation timestamp and version, and of its fragments.
    pub(super) fn named(source: &Eid, timestamp: CreationTimestamp, version: BundleVersion) -> Self {
        AduKey { source: source.clone(), timestamp, anonymous: RecordId(0), version }
    }

    pub(super) fn is_anonymous(&self) -> bool {
        self.anonymous != RecordId(0)
    }
}

/// Key of a payload for this node, which all parts of it have. A part with another key belongs to another payload and
/// does not affect this one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LocalKey {
    pub(super) adu: AduKey,
    pub(super) payload: PayloadProperties,
}

impl LocalKey {
    /// Key of the payload of a bundle with this header, which may be a fragment.
    pub(super) fn of(head: &AnyHead, adu: AduKey) -> Self {
        LocalKey { adu, payload: PayloadProperties::of(head) }
    }
}

/// Properties that distinguish payloads with the same bundle ID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PayloadProperties {
    pub(super) endpoint: Eid,
    /// Length of the complete payload, bytes.
    pub(super) total: u64,
    /// All fragments have the lifetime of the complete bundle (RFC 9171 4.3.1, 5.8): a part that expires
    /// earlier must not replace one that expires later.
    pub(super) lifetime_ms: u64,
    pub(super) is_admin: bool,
    /// Fragments in plaintext are not parts of an encrypted payload, nor the other way round. False in version 6, where
    /// blocks behind the payload may tell it.
    pub(super) is_encrypted: bool,
}

impl PayloadProperties {
    /// Properties of the payload of a bundle with this header, which may be a fragment.
    pub(super) fn of(head: &AnyHead) -> Self {
        PayloadProperties {
            endpoint: head.destination().clone(),
            total: head.adu_bytes(),
            lifetime_ms: head.lifetime_ms(),
            is_admin: head.is_administrative(),
            is_encrypted: matches!(head, AnyHead::V7(_)) && head.has_encrypted_payload(),
        }
    }
}
