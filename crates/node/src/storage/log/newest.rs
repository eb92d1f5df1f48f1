//! Summary of the newest batch, in the lock file after its preamble.
//!
//! ```text
//!   lock    preamble 20 | segment 4 | batch 8 | records 8 | end 8 | crc 4
//! ```
//!
//! The marks within the segments contain the same (see [`super::frame`]), but the newest of them are lost with the newest
//! segment and its listing. The summary is overwritten when a batch is durable, without a sync of its own: it never claims
//! more than was acknowledged, and less after some power cuts. If a power cut has lost the mark and the listing of a batch,
//! the summary proves that the batch was durable, and its end: damage within it is not a torn write. Earlier versions
//! neither write nor read it.

use super::frame::{PREAMBLE_BYTES, SealKey};
use bytes::{Buf, BufMut};
use longwire_proto::codec::crc::crc32c;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const BYTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewestBatch {
    /// Segment that contains it.
    pub(super) segment: u32,
    /// Number of the mark after it.
    pub(super) batch: u64,
    /// Number of records.
    pub(super) records: u64,
    /// End of the batch in its segment, bytes; 0 if unknown.
    pub(super) end: u64,
}

impl NewestBatch {
    fn encode(&self, secret: SealKey) -> Vec<u8> {
        let mut out = Vec::with_capacity(BYTES);
        out.put_u32(self.segment);
        out.put_u64(self.batch);
        out.put_u64(self.records);
        out.put_u64(self.end);
        let seal = [&secret.0.to_be_bytes()[..], &out].concat();
        out.put_u32(crc32c(&seal));
        out
    }

    /// Reads the summary from a lock file; `None` if it is missing or damaged.
    pub(super) fn read(lock: &File, secret: SealKey) -> Option<Self> {
        let mut bytes = [0; BYTES];
        lock.read_exact_at(&mut bytes, PREAMBLE_BYTES as u64).ok()?;
        let mut input = &bytes[..];
        let newest = NewestBatch {
            segment: input.get_u32(),
            batch: input.get_u64(),
            records: input.get_u64(),
            end: input.get_u64(),
        };
        (newest.encode(secret) == bytes).then_some(newest)
    }

    pub(super) fn write(&self, lock: &File, secret: SealKey) -> io::Result<()> {
        lock.write_all_at(&self.encode(secret), PREAMBLE_BYTES as u64)
    }
}
