//! Direct writes: the whole blocks of a long batch go from memory to the device, not through the page cache.
//!
//! The page cache costs a page and a copy for each block, and the device gets the data only with the sync. Short batches still use
//! it: their blocks are gathered there, and a direct write would wait for each of them.
//!
//! Units: bytes.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Alignment of offsets, lengths and memory. A device that needs more refuses the write, which then uses the page cache.
const BLOCK_BYTES: usize = 4096;
/// Minimum length of a batch that is written directly.
pub(super) const DIRECT_BYTES_MIN: usize = 128 << 10;
/// Maximum length of one write.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// File opened a second time, for direct writes.
#[derive(Debug)]
pub(super) struct DirectFile {
    file: File,
    /// Memory in which blocks are gathered; it has a block more than is used, because it begins anywhere.
    memory: Vec<u8>,
}

impl DirectFile {
    /// Opens an existing file; `None` if its file system has no direct writes.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let flags = i32::try_from(OFlags::DIRECT.bits()).ok()?;
        let file = OpenOptions::new().write(true).custom_flags(flags).open(path).ok()?;
        Some(DirectFile { file, memory: Vec::new() })
    }

    /// Writes slices at an offset of `file`, which is the same file opened without this: what does not fill a block at the
    /// beginning and at the end goes through the page cache.
    ///
    /// # Errors
    /// As those of other writes; part of the data may be in the file. `Unsupported` if the device takes no such writes: then all
    /// of it must be written again in another way.
    pub(super) fn write(&mut self, file: &File, start: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        let (mut slices, mut at) = (slices, start);
        let mut left: usize = slices.iter().map(|slice| slice.len()).sum();
        if self.memory.is_empty() {
            self.memory = vec![0; WRITE_BYTES_MAX + BLOCK_BYTES];
        }
        let begins = self.memory.as_ptr().align_offset(BLOCK_BYTES);
        let blocks = &mut self.memory[begins..][..WRITE_BYTES_MAX];
        while left > 0 {
            let beyond = (at % BLOCK_BYTES as u64) as usize;
            let is_direct = beyond == 0 && left >= BLOCK_BYTES;
            let length = match is_direct {
                true => (left - left % BLOCK_BYTES).min(WRITE_BYTES_MAX),
                false => left.min(BLOCK_BYTES - beyond),
            };
            let part = &mut blocks[..length];
            gather(&mut slices, part);
            if is_direct {
                write_blocks(&self.file, file, part, at)?;
            } else {
                file.write_all_at(part, at)?;
            }
            at += length as u64;
            left -= length;
        }
        Ok(())
    }
}

/// Writes blocks directly; the rest after a short write, which may not end with a block, goes through the page cache.
fn write_blocks(direct: &File, file: &File, blocks: &[u8], at: u64) -> io::Result<()> {
    let written = match direct.write_at(blocks, at) {
        Ok(written) => written,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Err(error) => return Err(error),
    };
    file.write_all_at(&blocks[written..], at + written as u64)
}

/// Moves data from the slices to a buffer that is not longer than they are.
fn gather(slices: &mut &mut [IoSlice<'_>], buffer: &mut [u8]) {
    let mut filled = 0;
    while filled < buffer.len() {
        let some = slices[0].len().min(buffer.len() - filled);
        buffer[filled..filled + some].copy_from_slice(&slices[0][..some]);
        IoSlice::advance_slices(slices, some);
        filled += some;
    }
}

#[cfg(test)]
mod tests {
    use super::super::device::Device;
    use super::*;
    use crate::test_folder::TestFolder;

    /// Batch of this length, and how it is cut into slices.
    fn batch(length: usize, cut: usize) -> (Vec<u8>, Vec<usize>) {
        let bytes = (0..length).map(|at| (at % 251) as u8).collect();
        (bytes, vec![cut; length.div_ceil(cut)])
    }

    /// Appends batches one after the other, and returns what is in the file then and what should be there.
    fn append(
        name: &str,
        direct: impl FnOnce(&Path) -> Option<DirectFile>,
        is_kept: bool,
    ) -> (Vec<u8>, Vec<u8>) {
        let folder = TestFolder::new(name);
        let path = folder.0.join("file");
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        let device = Device::new(&folder.0);
        let mut direct = direct(&path);
        let was_there = direct.is_some();
        if !was_there {
            println!("skipped: the temporary folder takes no direct writes");
        }
        let mut expected = Vec::new();
        let lengths =
            [1, DIRECT_BYTES_MIN, 4095, DIRECT_BYTES_MIN + 1, 3 * WRITE_BYTES_MAX, 52, 200_000, 1 << 20];
        for (length, cut) in lengths.into_iter().zip([7, 4096, 100, 1000, 131_072, 52, 65_536, 1 << 20]) {
            let (bytes, cuts) = batch(length, cut);
            let mut slices: Vec<IoSlice<'_>> = cuts
                .iter()
                .enumerate()
                .map(|(at, cut)| IoSlice::new(&bytes[at * cut..length.min((at + 1) * cut)]))
                .collect();
            device.append_batch(&file, &mut direct, expected.len() as u64, &mut slices).unwrap();
            expected.extend_from_slice(&bytes);
        }
        assert_eq!(direct.is_some(), was_there && is_kept);
        (std::fs::read(path).unwrap(), expected)
    }

    #[test]
    fn the_file_has_what_was_written_wherever_it_begins_and_ends() {
        let (there, expected) = append("direct", DirectFile::open, true);
        assert!(there == expected);
    }

    /// A file that refuses what is written to it in the way in which a device refuses blocks that are too short for it.
    #[test]
    fn a_device_without_direct_writes_gets_the_whole_batch_in_the_usual_way() {
        let refuses = |_: &Path| {
            let file = File::options().write(true).open("/proc/self/oom_score_adj").ok()?;
            Some(DirectFile { file, memory: Vec::new() })
        };
        let (there, expected) = append("refused", refuses, false);
        assert!(there == expected);
    }
}
