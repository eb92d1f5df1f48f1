//! Device of a store: its free space, and every operation that uses some.

use super::direct::{DIRECT_BYTES_MIN, DirectFile};
use crate::private_files;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// Maximum buffers per write; the kernel limit is 1,024.
const SLICES_MAX: usize = 1024;

/// Location of a store. Units: bytes.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) folder: PathBuf,
    /// Size of a simulated device, with blocks of 4 KiB.
    #[cfg(test)]
    pub(super) bytes_max: Option<u64>,
    /// Files that would survive a power cut, for tests that need it.
    #[cfg(test)]
    pub(super) durable: Option<super::tests::device::Durable>,
}

impl Device {
    pub(super) fn new(folder: &Path) -> Self {
        Device {
            folder: folder.to_owned(),
            #[cfg(test)]
            bytes_max: None,
            #[cfg(test)]
            durable: None,
        }
    }

    /// Returns the free bytes available to this user; unlimited if unknown.
    pub(super) fn free(&self) -> u64 {
        #[cfg(test)]
        if let Some(bytes_max) = self.bytes_max {
            return bytes_max.saturating_sub(self.own());
        }
        rustix::fs::statvfs(&self.folder)
            .map_or(u64::MAX, |device| device.f_bavail.saturating_mul(device.f_frsize))
    }

    /// Returns the bytes of the store's own files, in whole blocks.
    pub(super) fn own(&self) -> u64 {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.flat_map(|file| file.metadata()).map(|about| in_blocks(about.len())).sum()
    }

    /// Returns the bytes of the segments and their listings.
    pub(super) fn of_segments(&self) -> u64 {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_one =
            |path: &Path| path.extension().is_some_and(|ending| ending == "log" || ending == "listing");
        let lengths = files.filter(|file| is_one(&file.path())).flat_map(|file| file.metadata());
        lengths.map(|about| about.len()).sum()
    }

    /// Writes at the end of a file.
    pub(super) fn append(&self, file: &File, start: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        #[cfg(test)]
        self.check(file, start, slices)?;
        let (mut left, mut at) = (slices, start);
        while !left.is_empty() {
            let some = left.len().min(SLICES_MAX);
            match rustix::io::pwritev(file, &left[..some], at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    IoSlice::advance_slices(&mut left, written);
                    at += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes a batch at the end of a file, directly if it is long. `direct` becomes `None` if the device takes no direct writes.
    pub(super) fn append_batch(
        &self,
        file: &File,
        direct: &mut Option<DirectFile>,
        start: u64,
        slices: &mut [IoSlice<'_>],
    ) -> io::Result<()> {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        if bytes >= DIRECT_BYTES_MIN
            && let Some(writer) = direct
        {
            #[cfg(test)]
            self.check(file, start, slices)?;
            match writer.write(file, start, &mut slices.to_vec()) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => *direct = None,
                done => return done,
            }
        }
        self.append(file, start, slices)
    }

    /// Makes the contents of a file durable, but not irrelevant metadata such as times.
    pub(super) fn sync_data(&self, file: &File) -> io::Result<()> {
        file.sync_data()?;
        #[cfg(test)]
        self.note_file(file)?;
        Ok(())
    }

    /// Makes the contents and all metadata of a file durable.
    pub(super) fn sync_all(&self, file: &File) -> io::Result<()> {
        file.sync_all()?;
        #[cfg(test)]
        self.note_file(file)?;
        Ok(())
    }

    /// Makes the names of files durable: a durable file without a durable name is lost in a power cut.
    pub(super) fn sync_names(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()?;
        #[cfg(test)]
        self.note_names()?;
        Ok(())
    }

    /// Creates a file that only occupies space.
    pub(super) fn put_aside(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let mut file =
            private_files::make(private_files::file().create(true).truncate(false).write(true), path)?;
        #[cfg(test)]
        self.check(&file, bytes, &[])?;
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            Ok(()) => {}
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => return Err(error.into()),
            // Not every file system supports it; all can be written to.
            Err(_) => drop(io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut file)?),
        }
        file.sync_all()
    }
}

/// Returns the space that a file of this length occupies.
pub(super) fn in_blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}
