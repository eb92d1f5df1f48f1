//! Durable storage for engines.

use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A durable store of records, each a log of bytes that only grows until it is removed.
///
/// | side | what breaks the contract; .. stands for a value |
/// |---|---|
/// | provider | stored .. bytes after .. |
/// | provider | stored .. bytes of .. |
/// | provider | data without a read |
/// | provider | a failure without a read |
/// | provider | .. bytes where .. were asked for |
/// | provider | .. bytes where .. are durable |
/// | provider | Removed without Remove |
/// | provider | Listed without List |
/// | provider | a list out of order |
#[derive(Debug)]
pub enum Storage {}

impl Service for Storage {
    type Request = StorageRequest;
    type Indication = StorageIndication;
}

/// A record of a [`Storage`], chosen by the user and never used twice while the record exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(pub u64);

/// Requests of [`Storage`]. All of them are control and need no room. Requests for one record are executed in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageRequest {
    /// Appends bytes to a record; the first append creates it. Answered by `Stored` once durable, or `Full`, or
    /// `AppendFailed`. Several appends may be answered together.
    Append {
        /// Record to append to.
        record: RecordId,
        /// Bytes to append.
        data: Bytes,
        /// True if the store must not wait with the answer to slow its input down: other data leaves only after it.
        urgent: bool,
    },
    /// Reads a range. Answered by `Data` (shorter at the end of the record, or if parts are enough) or `ReadFailed`, in the order of
    /// the reads of a record.
    Read {
        /// Record to read.
        record: RecordId,
        /// Offset in the record, bytes.
        offset: u64,
        /// Maximum number of bytes.
        length: u32,
        /// True if parts are enough: the answer may be shorter where that saves a copy, but not empty. The user reads on from there.
        in_parts: bool,
    },
    /// Removes a record. Answered by `Removed` once that is durable, also for a record that does not exist. A store whose device
    /// fails removes it later.
    Remove {
        /// Record to remove.
        record: RecordId,
    },
    /// Lists all records. Answered by `Listed`.
    List,
}

/// Indications of [`Storage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageIndication {
    /// The first `up_to` bytes of the record survive a crash.
    Stored {
        /// Record that was appended to.
        record: RecordId,
        /// Number of bytes from the beginning of the record.
        up_to: u64,
    },
    /// Result of a read.
    Data {
        /// Record that was read.
        record: RecordId,
        /// Offset in the record, bytes.
        offset: u64,
        /// Bytes read.
        data: Bytes,
    },
    /// The record is removed durably.
    Removed {
        /// Record that was removed.
        record: RecordId,
    },
    /// There was no space: this append and those after it to the same record were not stored, and no other will be
    /// until the record is removed.
    Full {
        /// Record of the append.
        record: RecordId,
    },
    /// The device failed: this append and those after it to the same record were not stored, and no other will be until the record
    /// is removed.
    AppendFailed {
        /// Record of the append.
        record: RecordId,
    },
    /// A range could not be read.
    ReadFailed {
        /// Record of the read.
        record: RecordId,
        /// Offset of the read, bytes.
        offset: u64,
        /// Reason for the failure.
        failure: StorageFailure,
    },
    /// All records, in order, each with its durable length in bytes.
    Listed {
        /// Records and their lengths.
        records: Vec<(RecordId, u64)>,
    },
}

/// Reason for the failure of a read from a [`Storage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StorageFailure {
    /// The record does not exist.
    Missing,
    /// The record is damaged.
    Damaged,
    /// The device failed.
    Device,
}
