//! Counters of the agent.

/// Counters since the start of the agent. Everything that is dropped or refused is counted in one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Bundles received completely.
    pub received: u64,
    /// Prefixes of broken transfers that became fragments.
    pub received_cut: u64,
    /// Received bundles whose creation time is in the future by more than `clock-skew-max`.
    pub received_from_future: u64,
    /// Bundles accepted from applications.
    pub sent_here: u64,
    /// Bundles that the next hop has received completely.
    pub forwarded: u64,
    /// Copies sent to other nodes, including copies of bundles that remain at this node.
    pub copies_sent: u64,
    /// Copies that a node refuses permanently.
    pub copies_refused: u64,
    /// Transfers that carried only a part of a bundle.
    pub fragments_sent: u64,
    /// Payload bytes of broken transfers that the peer had acknowledged and that are not resent.
    pub payload_bytes_saved: u64,
    /// Deliveries that the application accepted.
    pub delivered: u64,
    /// Incoming transfers that broke before they contained a usable prefix.
    pub lost: u64,
    /// Refused: the bundle is already at this node, was already delivered, or is not needed.
    pub refused_completed: u64,
    /// Refused: lack of space, or a limit.
    pub refused_no_resources: u64,
    /// Refused for now: too many bundles wait for their verification, or copies of this one.
    pub refused_beyond_checks: u64,
    /// Refused: above a limit, or a block forbids processing.
    pub refused_not_acceptable: u64,
    /// Refused: CRC mismatch or not a bundle; the peer is asked to resend it.
    pub refused_damaged: u64,
    /// Accepted because of a configured rule: a primary block without a CRC.
    pub accepted_primary_without_crc: u64,
    /// Accepted because of a configured rule: a bundle without creation time and age.
    pub accepted_no_time_no_age: u64,
    /// Accepted because of a configured rule: a fragment whose extension blocks are numbered 0.
    pub accepted_fragment_blocks_numbered_zero: u64,
    /// Refused: a primary block without a CRC. `accept = ["primary-without-crc"]` accepts it.
    pub refused_primary_without_crc: u64,
    /// Refused: a bundle without creation time and age. `accept = ["no-time-no-age"]` accepts it.
    pub refused_no_time_no_age: u64,
    /// Refused: a fragment whose extension blocks are numbered 0. `accept =
    /// ["fragment-blocks-numbered-zero"]` accepts it.
    pub refused_fragment_blocks_numbered_zero: u64,
    /// Transfers whose bundle was adapted to a peer because of a configured rule.
    pub adapted: u64,
    /// Encrypted bundles that were kept from a link on an amateur radio band.
    pub kept_encrypted: u64,
    /// Encrypted bundles that were kept from such a link and expired.
    pub expired_kept_encrypted: u64,
    /// Dropped: the destination is `dtn:none`.
    pub dropped_null_destination: u64,
    /// Deleted: the lifetime expired.
    pub deleted_expired: u64,
    /// Deleted: the hop limit is reached.
    pub deleted_hop_limit: u64,
    /// Deleted: a block that cannot be processed requires it.
    pub deleted_block: u64,
    /// Deleted: the application cancelled the bundle.
    pub deleted_cancelled: u64,
    /// Deleted: evicted for a bundle of higher priority.
    pub deleted_evicted: u64,
    /// Deleted: every next hop refuses the bundle permanently.
    pub deleted_refused: u64,
    /// Deleted: the storage lost the bundle.
    pub deleted_storage: u64,
    /// Sends that failed because of lack of space or a limit.
    pub sends_failed: u64,
    /// Sends and reports that failed because no key of this node was valid.
    pub sends_not_signed: u64,
    /// Bundles made at this node and signed.
    pub signed: u64,
    /// Bundles whose signature is valid, and whose signer may sign them.
    pub signatures_valid: u64,
    /// Bundles without a signature where one is required, or the key of the source is known.
    pub signatures_missing: u64,
    /// Bundles of version 6, which has no signatures, where one is required.
    pub signatures_of_version_6: u64,
    /// Signatures that are wrong: the bundle was altered, or signed with another key.
    pub signatures_wrong: u64,
    /// Signatures of nodes of which no key is known.
    pub signatures_without_key: u64,
    /// Signatures of nodes whose first key was not noted, because there are too many.
    pub signatures_beyond_known_keys: u64,
    /// Signatures with a key that is no longer valid.
    pub signatures_of_expired_keys: u64,
    /// Signatures with a key that is not valid yet.
    pub signatures_of_premature_keys: u64,
    /// Signatures with a key of limited time, which a node without a clock cannot use.
    pub signatures_without_clock: u64,
    /// Signatures with another public key than the known one.
    pub signatures_of_changed_keys: u64,
    /// Valid signatures of nodes that may not sign the bundle.
    pub signatures_of_others: u64,
    /// Valid signatures that do not cover the primary block.
    pub signatures_of_payload_alone: u64,
    /// Signatures of an unknown kind, and encrypted ones.
    pub signatures_unsupported: u64,
    /// Bundles whose security blocks break a rule.
    pub signatures_invalid: u64,
    /// Public keys that were noted at their first use.
    pub keys_noted: u64,
    /// Deleted: the signature is not what the rules require.
    pub deleted_signature: u64,
    /// Bundles of this node that were encrypted.
    pub encrypted: u64,
    /// Sends that failed because the bundle must be encrypted and cannot be.
    pub sends_not_encrypted: u64,
    /// Bundles for this node that were decrypted.
    pub decrypted: u64,
    /// Deleted: a bundle that is not encrypted, although a rule requires it.
    pub deleted_not_encrypted: u64,
    /// Deleted: an encrypted bundle that was altered, or encrypted with another key.
    pub decryptions_wrong: u64,
    /// Deleted: an encrypted bundle for which no key is known.
    pub decryptions_without_key: u64,
    /// Deleted: an encrypted bundle whose key is no longer valid.
    pub decryptions_of_expired_keys: u64,
    /// Deleted: an encrypted bundle whose key is not valid yet.
    pub decryptions_of_premature_keys: u64,
    /// Deleted: an encrypted bundle whose key is valid for a limited time, at a node without a clock.
    pub decryptions_without_clock: u64,
    /// Deleted: a bundle that must be encrypted by its source, and was encrypted by another node.
    pub decryptions_of_other_sources: u64,
    /// Deleted: a bundle whose encryption does not cover the primary block.
    pub decryptions_of_payload_alone: u64,
    /// Times that a bundle found at a start was left to wait, because it cannot be decrypted or verified with the keys of now.
    pub checks_postponed: u64,
    /// Deleted: a bundle whose kind of encryption is unknown.
    pub decryptions_unsupported: u64,
    /// Deleted: an encrypted bundle whose security blocks break a rule.
    pub decryptions_invalid: u64,
    /// Status reports sent.
    pub reports_sent: u64,
    /// Requested status reports that were not sent because of the rate limit or lack of space.
    pub reports_suppressed: u64,
    /// Bundles of which this node accepted custody from another custodian.
    pub custody_accepted: u64,
    /// Bundles whose custody this node released because another node has accepted it or the bundle was
    /// delivered.
    pub custody_released: u64,
    /// Custody timers that expired; the bundle was resent.
    pub custody_timeouts: u64,
    /// Custody signals that report a failure at a node.
    pub custody_refused: u64,
    /// Custody signals sent.
    pub custody_signals_sent: u64,
    /// Custody signals not sent because of lack of space.
    pub custody_signals_unsent: u64,
    /// Custody signals received.
    pub custody_signals_heard: u64,
    /// Custody signals about bundles in custody of this node that are not trusted: they arrived over a link
    /// that is not on the route of the bundle.
    pub custody_signals_not_believed: u64,
    /// Bundles with announcements of links sent to neighbours (DTLSR).
    pub announcements_sent: u64,
    /// Bundles with announcements not sent because of lack of space.
    pub announcements_unsent: u64,
    /// Bundles with announcements received.
    pub announcements_heard: u64,
    /// Announcements among them that were newer than what was known.
    pub announcements_new: u64,
    /// Bundles with announcements ignored: another version, or this node does not use DTLSR.
    pub announcements_ignored: u64,
    /// Bundles with announcements that are not trusted: they are not valid, or arrived over a link that does
    /// not lead to their source.
    pub announcements_not_believed: u64,
    /// Announcements of further nodes than `nodes-max` permits.
    pub announcements_refused: u64,
    /// Administrative records of an unknown type or with invalid contents.
    pub admin_unknown: u64,
    /// Tombstones discarded because of their limit.
    pub tombstones_dropped: u64,
    /// Storage records of another program or version; they are left unchanged.
    pub records_foreign: u64,
    /// Storage records that could not be read at the start because the device failed; they are left for the next start.
    pub records_unread: u64,
    /// Storage records that were too short to be kept.
    pub records_short: u64,
    /// Requests and indications that match nothing: unknown IDs, limits.
    pub ignored: u64,
}
