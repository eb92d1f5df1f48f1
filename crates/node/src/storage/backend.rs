//! Interface of a store of records, behind which databases are exchangeable.

use bytes::Bytes;
use longwire_proto::service::{RecordId, StorageFailure};
use std::sync::Arc;
use std::time::Duration;

/// Change in a batch.
#[derive(Clone, Debug)]
pub enum StoreWrite {
    /// Appends data to a record; the first append creates it.
    Append {
        /// ID of the record.
        record: RecordId,
        /// Offset of the data: the length of the record before it.
        offset: u64,
        /// Data.
        data: Bytes,
    },
    /// Removes a record.
    Remove {
        /// ID of the record.
        record: RecordId,
    },
}

/// Reason why a batch was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRefusal {
    /// There is no space for the data. The removals were carried out.
    Full,
    /// The device failed. No part of the batch counts.
    Device,
}

/// Store of records, written by one thread.
pub trait Backend: Send + 'static {
    /// Returns all records in order, each with its durable length in bytes.
    fn list(&mut self) -> Vec<(RecordId, u64)>;

    /// Makes a batch durable, as far as there is space, and returns when it is.
    ///
    /// # Errors
    /// Fails if the batch was not kept.
    fn write(&mut self, batch: &[StoreWrite]) -> Result<(), BatchRefusal>;

    /// Returns the maximum bytes for one batch, with some overhead for each entry.
    fn batch_bytes_max(&self) -> usize {
        32 << 20
    }

    /// Performs one step of maintenance; returns true if there is more to do.
    fn maintain(&mut self) -> bool {
        false
    }

    /// Returns the time until there is maintenance to do although nothing is written; `None` if there is none.
    fn maintenance_pause(&self) -> Option<Duration> {
        None
    }

    /// Returns a reader that works in parallel with the writer.
    fn reader(&self) -> Box<dyn StoreReader>;
}

/// Function that opens a store.
pub type StoreOpener = Arc<dyn Fn() -> Box<dyn Backend> + Send + Sync>;

/// Reader of durable data for another thread.
pub trait StoreReader: Send {
    /// Returns the durable length of a record; `None` if there is no such record.
    fn length(&self, record: RecordId) -> Option<u64>;

    /// Reads a range of a record, shorter at its end.
    ///
    /// # Errors
    /// Fails if the record is missing or damaged, or if the device fails.
    fn read(&self, record: RecordId, offset: u64, length: u32) -> Result<Bytes, StorageFailure>;

    /// Returns ranges (record, offset, length) of about so many bytes from an offset of a record on, in the order of the records. By
    /// default there are none, and nothing is read ahead.
    fn ranges_from(&self, _record: RecordId, _offset: u64, _bytes: u64) -> Vec<(RecordId, u64, u32)> {
        Vec::new()
    }
}
