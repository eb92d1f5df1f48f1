//! A note on the newest batch, in the lock file behind its beginning.
//!
//! ```text
//!   lock    preamble 20 | segment 4 | batch 8 | records 8 | end 8 | crc 4
//! ```
//!
//! The marks within the segments say the same (see [`super::frame`]), but the newest of them go with the newest segment and its
//! listing. This is written over itself when a batch is durable, without a sync of its own: it never says more than was
//! acknowledged, and after a power cut it may say less. Of a batch whose mark and listing a power cut has taken it says that it was
//! durable, and up to where: what is damaged within is no torn write. An earlier version neither writes nor reads it.

use super::frame::{PREAMBLE_BYTES, SealKey};
use bytes::{Buf, BufMut};
use longwire_proto::codec::crc::crc32c;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const BYTES: usize = 32;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewestBatch {
    /// The segment that it is in.
    pub(super) segment: u32,
    /// The number of the mark behind it.
    pub(super) batch: u64,
    /// How many records there are.
    pub(super) records: u64,
    /// Its end in its segment, bytes; 0: that is not known.
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

    /// The note in a lock file; `None` where there is none, or it is damaged.
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
