//! What the agent counts.

/// How often what happened. Everything that is dropped or refused is in one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Bundles received whole.
    pub received: u64,
    /// Prefixes of broken transfers that became fragments.
    pub received_cut: u64,
    /// Bundles received that were made in the future, by more than clocks may differ.
    pub received_from_future: u64,
    /// Bundles accepted from applications.
    pub sent_here: u64,
    /// Bundles that the next hop has whole.
    pub forwarded: u64,
    /// Copies that other nodes have got, of bundles that stay here, too.
    pub copies_sent: u64,
    /// Copies that a node does not take, now or ever.
    pub copies_refused: u64,
    /// Transfers that carried a part of a bundle only.
    pub fragments_sent: u64,
    /// Payload bytes whose transfer broke and that the peer had acknowledged: they are not sent again.
    pub payload_bytes_saved: u64,
    /// Deliveries that the application took.
    pub delivered: u64,
    /// Incoming transfers that broke before anything was worth keeping.
    pub lost: u64,
    /// Refused: a bundle that is here, was delivered here, or need not come any more.
    pub refused_completed: u64,
    /// Refused: no space, or a limit.
    pub refused_no_resources: u64,
    /// Refused: over a limit, or a block forbids it.
    pub refused_not_acceptable: u64,
    /// Refused: a checksum does not fit, or it is no bundle at all; the peer is asked for it again.
    pub refused_damaged: u64,
    /// Accepted from peers of whom the operator says so: a primary block without a checksum.
    pub accepted_primary_without_crc: u64,
    /// Accepted from peers of whom the operator says so: a bundle with neither creation time nor age.
    pub accepted_no_time_no_age: u64,
    /// Accepted from peers of whom the operator says so: a fragment whose extension blocks are numbered 0.
    pub accepted_fragment_blocks_numbered_zero: u64,
    /// Refused: a primary block without a checksum. `accept = ["primary-without-crc"]` takes it.
    pub refused_primary_without_crc: u64,
    /// Refused: a bundle with neither creation time nor age. `accept = ["no-time-no-age"]` takes it.
    pub refused_no_time_no_age: u64,
    /// Refused: a fragment whose extension blocks are numbered 0. `accept = ["fragment-blocks-numbered-zero"]` takes it.
    pub refused_fragment_blocks_numbered_zero: u64,
    /// Transfers whose bundle was made otherwise for a peer, because the operator says so.
    pub adapted: u64,
    /// Dropped: for `dtn:none`.
    pub dropped_null_destination: u64,
    /// Deleted: the lifetime ended.
    pub deleted_expired: u64,
    /// Deleted: the hop limit is reached.
    pub deleted_hop_limit: u64,
    /// Deleted: a block asks for it that is not supported.
    pub deleted_block: u64,
    /// Deleted: cancelled by the application.
    pub deleted_cancelled: u64,
    /// Deleted: evicted for something more urgent.
    pub deleted_evicted: u64,
    /// Deleted: every next hop refuses it for good.
    pub deleted_refused: u64,
    /// Deleted: the storage lost it.
    pub deleted_storage: u64,
    /// Sends that failed for want of space or a limit.
    pub sends_failed: u64,
    /// Status reports sent.
    pub reports_sent: u64,
    /// Status reports that were asked for and not sent: over the rate, or no space.
    pub reports_suppressed: u64,
    /// Bundles that this node took custody of from another custodian.
    pub custody_accepted: u64,
    /// Bundles whose custody ended because another node has it, or the bundle was delivered.
    pub custody_released: u64,
    /// Custody timers that ran out: the bundle was sent again.
    pub custody_timeouts: u64,
    /// Signals that a node could not do with a bundle what it was handed over for.
    pub custody_refused: u64,
    /// Custody signals sent.
    pub custody_signals_sent: u64,
    /// Custody signals for which there was no space.
    pub custody_signals_unsent: u64,
    /// Custody signals heard.
    pub custody_signals_heard: u64,
    /// Custody signals about bundles in custody here that are not believed: they came over a link that is not on the bundle's way.
    pub custody_signals_not_believed: u64,
    /// Administrative records that are not understood.
    pub admin_unknown: u64,
    /// Tombstones given up because there were too many.
    pub tombstones_dropped: u64,
    /// Records found in the storage that are not from this program or this version; they are left alone.
    pub records_foreign: u64,
    /// Records found in the storage that were too short to be kept.
    pub records_short: u64,
    /// Requests and indications that fit nothing: unknown ids, limits.
    pub ignored: u64,
}
