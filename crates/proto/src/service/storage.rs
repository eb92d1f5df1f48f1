//! Where an engine keeps what must outlive it.

use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A durable store of records, each a log of bytes that only grows until it is removed.
#[derive(Debug)]
pub enum Storage {}

impl Service for Storage {
    type Request = StorageRequest;
    type Indication = StorageIndication;
}

/// A record of a [`Storage`], chosen by the user and never used twice while the record exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(pub u64);

/// Down through [`Storage`]. All of it is control: none needs room. Requests for one record are carried out in
/// order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageRequest {
    /// Adds bytes at the end of a record; the first makes it. Answered by `Stored` once durable, or `Full`, or
    /// `Failed`. Several may be answered together.
    Append {
        /// The record.
        record: RecordId,
        /// What to add.
        data: Bytes,
    },
    /// Reads a range. Answered by `Data` (shorter at the record's end) or `Failed`.
    Read {
        /// The record.
        record: RecordId,
        /// Bytes from its beginning.
        offset: u64,
        /// How many bytes at the most.
        length: u32,
    },
    /// Removes a record. Answered by `Removed` once that is durable; removing what is not there is answered, too.
    Remove {
        /// The record.
        record: RecordId,
    },
    /// Asks what there is. Answered by `Listed`.
    List,
}

/// Up through [`Storage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageIndication {
    /// The record's first `up_to` bytes survive a crash.
    Stored {
        /// The record.
        record: RecordId,
        /// Bytes from its beginning.
        up_to: u64,
    },
    /// What was read.
    Data {
        /// The record.
        record: RecordId,
        /// Bytes from its beginning.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// The record is gone for good.
    Removed {
        /// The record.
        record: RecordId,
    },
    /// There was no space: this append and those behind it to the same record were not kept, and none is until the record
    /// is removed.
    Full {
        /// The record.
        record: RecordId,
    },
    /// The store could not do it.
    Failed {
        /// The record.
        record: RecordId,
        /// What happened.
        failure: StorageFailure,
    },
    /// What there is: each record with its durable length in bytes, in order.
    Listed {
        /// The records.
        records: Vec<(RecordId, u64)>,
    },
}

/// Why a [`Storage`] could not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StorageFailure {
    /// There is no such record.
    Missing,
    /// The record is damaged.
    Damaged,
    /// The device failed.
    Device,
}
