//! Reading files of a store from a device of which some places may be bad.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// A bad place takes so many bytes with it, at a multiple of them: what a device and the system's memory of files read at once.
const BLOCK_BYTES: u64 = 4096;

/// Reads some of what is at a place.
fn read_some(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    #[cfg(test)]
    let buffer = faults::heed(file, buffer, at)?;
    loop {
        match file.read_at(buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Fills a buffer with what is at a place.
pub(super) fn read_exact(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    let mut have = 0;
    while have < buffer.len() {
        match read_some(file, &mut buffer[have..], at + have as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => have += read,
        }
    }
    Ok(())
}

/// The result of a read around bytes that are not readable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PartialRead {
    /// Bytes, fewer than asked for at the end of the file.
    pub(super) bytes: usize,
    /// Where nothing could be read, from and to: zeros stand there.
    pub(super) bad: Vec<(u64, u64)>,
}

impl PartialRead {
    /// How many of the bytes could be read.
    pub(super) fn good(&self) -> u64 {
        self.bytes as u64 - self.bad.iter().map(|(from, to)| to - from).sum::<u64>()
    }
}

/// Fills a buffer with what is at a place, around what the device cannot read.
///
/// # Errors
/// It is no file.
pub(super) fn read_around(file: &File, buffer: &mut [u8], at: u64) -> io::Result<PartialRead> {
    let mut around = PartialRead::default();
    while around.bytes < buffer.len() {
        let place = at + around.bytes as u64;
        let block = (BLOCK_BYTES - place % BLOCK_BYTES).min((buffer.len() - around.bytes) as u64) as usize;
        let left = &mut buffer[around.bytes..];
        // All at once, and where that does not work, what the next bad place may take.
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

/// Files that cannot be read everywhere, in tests.
#[cfg(test)]
pub(super) mod faults {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io;
    use std::ops::Range;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    /// Given where it is read: how much of that can be, or none.
    type ReadLimit = dyn Fn(Range<u64>) -> io::Result<u64> + Send + Sync;

    static FAULTS: Mutex<BTreeMap<(u64, u64), Arc<ReadLimit>>> = Mutex::new(BTreeMap::new());

    fn id(file: &File) -> (u64, u64) {
        let about = file.metadata().expect("it is open");
        (about.dev(), about.ino())
    }

    /// A file with a fault, as long as this is kept. It stays open: the number of a file that is gone may be another test's next.
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

        /// These places are bad. As of a kernel, what is before them is read.
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

    pub(super) fn heed<'a>(file: &File, buffer: &'a mut [u8], at: u64) -> io::Result<&'a mut [u8]> {
        let faults = FAULTS.lock().unwrap();
        let fault = if faults.is_empty() { None } else { faults.get(&id(file)).cloned() };
        drop(faults);
        let Some(fault) = fault else { return Ok(buffer) };
        let length = fault(at..at + buffer.len() as u64)? as usize;
        Ok(&mut buffer[..length])
    }
}
