//! Reading of store files from a device with unreadable blocks.

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Unit in which a device fails, aligned to its size, bytes: what a device and the page cache read at once.
const BLOCK_BYTES: u64 = 4096;

#[cfg(test)]
use faults::readable;

/// Returns how many of these bytes can be read at once: all, except in tests of faults.
#[cfg(not(test))]
fn readable(_file: &File, length: usize, _at: u64) -> io::Result<usize> {
    Ok(length)
}

/// Reads part of the data at an offset.
fn read_some(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let most = readable(file, buffer.len(), at)?;
    let buffer = &mut buffer[..most];
    loop {
        match file.read_at(buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Returns this number of bytes at an offset.
///
/// # Errors
/// Fails if the file is shorter, or if some of them cannot be read.
pub(super) fn read_exact(file: &File, length: usize, at: u64) -> io::Result<Vec<u8>> {
    let mut data = Vec::with_capacity(length);
    while data.len() < length {
        let have = data.len();
        let most = readable(file, length - have, at + have as u64)?;
        match rustix::io::pread(file, spare_capacity(&mut data), at + have as u64) {
            Ok(read) if read.min(most) == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            // The capacity can be more than was asked for.
            Ok(_) => data.truncate(have + most),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(data)
}

/// Result of a read around unreadable bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PartialRead {
    /// Bytes read, fewer than requested at the end of the file.
    pub(super) bytes: usize,
    /// Unreadable ranges (start, end), filled with zeros.
    pub(super) bad: Vec<(u64, u64)>,
}

impl PartialRead {
    /// Returns the number of readable bytes.
    pub(super) fn good(&self) -> u64 {
        self.bytes as u64 - self.bad.iter().map(|(from, to)| to - from).sum::<u64>()
    }
}

/// Fills a buffer with the data at an offset, skipping what the device cannot read.
///
/// # Errors
/// Fails if it is not a regular file.
pub(super) fn read_around(file: &File, buffer: &mut [u8], at: u64) -> io::Result<PartialRead> {
    let mut around = PartialRead::default();
    while around.bytes < buffer.len() {
        let place = at + around.bytes as u64;
        let block = (BLOCK_BYTES - place % BLOCK_BYTES).min((buffer.len() - around.bytes) as u64) as usize;
        let left = &mut buffer[around.bytes..];
        // First everything at once, and if that fails, up to the end of the next block that may be bad.
        let read = match read_some(file, left, place) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => return Err(error),
            Err(_) => read_some(file, &mut left[..block], place),
            read => read,
        };
        around.bytes += match read {
            Ok(0) => break,
            Ok(read) => read,
            Err(_) => {
                let there = file.metadata()?.len().saturating_sub(place).min(block as u64) as usize;
                if there == 0 {
                    break;
                }
                left[..there].fill(0);
                let to = place + there as u64;
                match around.bad.last_mut() {
                    Some((_, end)) if *end == place => *end = to,
                    _ => around.bad.push((place, to)),
                }
                there
            }
        };
    }
    Ok(around)
}

/// Files with unreadable ranges, for tests.
#[cfg(test)]
pub(super) mod faults {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io;
    use std::ops::Range;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    /// Returns the readable length of a range, or an error.
    type ReadLimit = dyn Fn(Range<u64>) -> io::Result<u64> + Send + Sync;

    static FAULTS: Mutex<BTreeMap<(u64, u64), Arc<ReadLimit>>> = Mutex::new(BTreeMap::new());

    fn id(file: &File) -> (u64, u64) {
        let about = file.metadata().expect("it is open");
        (about.dev(), about.ino())
    }

    /// File with a fault, while this exists. It stays open because another test could otherwise get its inode number.
    pub(in super::super) struct FaultyFile((u64, u64), #[expect(dead_code, reason = "it is kept open")] File);

    impl FaultyFile {
        pub(in super::super) fn new(
            path: &Path,
            heed: impl Fn(Range<u64>) -> io::Result<u64> + Send + Sync + 'static,
        ) -> Self {
            let file = File::open(path).expect("it is there");
            let id = id(&file);
            FAULTS.lock().unwrap().insert(id, Arc::new(heed));
            FaultyFile(id, file)
        }

        /// Makes these ranges unreadable. As with a kernel, the data before them is read.
        pub(in super::super) fn bad(path: &Path, bad: Vec<Range<u64>>) -> Self {
            FaultyFile::new(path, move |read| {
                let first = bad.iter().filter(|bad| bad.start < read.end && read.start < bad.end);
                match first.map(|bad| bad.start).min() {
                    None => Ok(read.end - read.start),
                    Some(start) if start > read.start => Ok(start - read.start),
                    Some(_) => Err(rustix::io::Errno::IO.into()),
                }
            })
        }
    }

    impl Drop for FaultyFile {
        fn drop(&mut self) {
            FAULTS.lock().unwrap().remove(&self.0);
        }
    }

    pub(super) fn readable(file: &File, length: usize, at: u64) -> io::Result<usize> {
        let faults = FAULTS.lock().unwrap();
        let fault = if faults.is_empty() { None } else { faults.get(&id(file)).cloned() };
        drop(faults);
        let Some(fault) = fault else { return Ok(length) };
        Ok(fault(at..at + length as u64)? as usize)
    }
}
