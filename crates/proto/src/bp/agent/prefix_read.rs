//! Reads of a part of a record whose end only its content tells, such as a header, and behind which something may be damaged.
//!
//! Reads get longer until the part is complete. After one has failed, they approach the longest one that succeeds.

/// Read of the beginning of a part whose end only its content tells. Something damaged may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrefixRead {
    /// Length of the read, bytes.
    pub(super) bytes: u32,
    /// Length of a shorter read, which has succeeded.
    readable: u32,
    /// Length of a longer read, which has failed.
    pub(super) damaged: Option<u32>,
}

impl PrefixRead {
    /// The first read of a part.
    pub(super) fn first(bytes: u32) -> Self {
        PrefixRead { bytes, readable: 0, damaged: None }
    }

    /// The read after this one, which has returned `read` bytes of a record that is longer, and the part does not end in them. `None`
    /// if the rest cannot be read.
    pub(super) fn longer(self, read: usize) -> Option<Self> {
        // The storage has less than it has listed.
        let readable = u32::try_from(read).ok().filter(|read| *read == self.bytes)?;
        match self.damaged {
            None => Some(PrefixRead { bytes: readable.checked_mul(4)?, readable, damaged: None }),
            Some(damaged) => PrefixRead::between(readable, damaged),
        }
    }

    /// The read after this one has failed. `None` if nothing is left to be tried.
    pub(super) fn shorter(self) -> Option<Self> {
        PrefixRead::between(self.readable, self.bytes)
    }

    fn between(readable: u32, damaged: u32) -> Option<Self> {
        let gap = damaged.saturating_sub(readable);
        let bytes = readable + gap / 2;
        (gap > 1).then_some(PrefixRead { bytes, readable, damaged: Some(damaged) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a part of `bytes` bytes from a record that is damaged from an offset. Returns the number of reads, or `None` if the
    /// part cannot be read.
    fn read(first: u32, bytes: u32, damaged_from: u32) -> Option<u32> {
        let mut read = PrefixRead::first(first);
        for reads in 1.. {
            read = match read.bytes {
                tried if tried > damaged_from => read.shorter()?,
                tried if tried >= bytes => return Some(reads),
                tried => read.longer(tried as usize)?,
            };
        }
        unreachable!("the lengths meet")
    }

    #[test]
    fn a_part_is_read_if_nothing_in_it_is_damaged() {
        for bytes in 1..300 {
            for damaged_from in 0..400 {
                for first in [1, 7, 64, 100, 256, 2048] {
                    let reads = read(first, bytes, damaged_from);
                    assert_eq!(
                        reads.is_some(),
                        bytes <= damaged_from,
                        "{bytes} of {damaged_from}, {first} first"
                    );
                    assert!(reads.is_none_or(|reads| reads <= 16), "{reads:?} reads");
                }
            }
        }
        assert_eq!(read(2048, 1 << 20, u32::MAX), Some(6));
        assert_eq!(read(2048, u32::MAX, u32::MAX), None, "the length has a limit");
        assert_eq!(PrefixRead::first(100).longer(99), None, "the storage has less than it has listed");
    }
}
