//! What a store of records has to be able to do: the small face behind which databases can be exchanged.

use bytes::Bytes;
use longwire_proto::service::{RecordId, StorageFailure};
use std::time::Duration;

/// One change of a batch.
#[derive(Clone, Debug)]
pub enum StoreWrite {
    /// Data at the end of a record; the first makes it.
    Append {
        /// The record.
        record: RecordId,
        /// Where the data begin: the record's length so far.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// The record goes.
    Remove {
        /// The record.
        record: RecordId,
    },
}

/// Why a batch was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRefusal {
    /// There is no space for its data. What it removes is removed.
    Full,
    /// The device failed. Nothing of it counts.
    Device,
}

/// A store of records, written by one thread.
pub trait Backend: Send + 'static {
    /// All records, each with its durable length in bytes, in order.
    fn list(&mut self) -> Vec<(RecordId, u64)>;

    /// Makes a batch durable, as far as there is space. Returns when it is.
    ///
    /// # Errors
    /// The batch was not kept.
    fn write(&mut self, batch: &[StoreWrite]) -> Result<(), BatchRefusal>;

    /// Bytes that one batch should take at the most, with some for each entry.
    fn batch_bytes_max(&self) -> usize {
        32 << 20
    }

    /// Does some of what can wait; true: there is more.
    fn maintain(&mut self) -> bool {
        false
    }

    /// After there was no more: so long until there is, though nothing is written; none: there is none.
    fn maintenance_pause(&self) -> Option<Duration> {
        None
    }

    /// Reads beside the writer.
    fn reader(&self) -> Box<dyn StoreReader>;
}

/// Reads what is durable, on a thread of its own.
pub trait StoreReader: Send {
    /// The durable length of a record; none: there is no such record.
    fn length(&self, record: RecordId) -> Option<u64>;

    /// A range of a record, shorter at its end.
    ///
    /// # Errors
    /// The record is missing or damaged, or the device fails.
    fn read(&self, record: RecordId, offset: u64, length: u32) -> Result<Bytes, StorageFailure>;
}
