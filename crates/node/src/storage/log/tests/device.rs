//! Simulated devices for tests: small ones, and ones with power cuts.

use super::super::device::{Device, in_blocks};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirEntryExt as _, FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Segments as a power cut leaves them: synced contents under synced names.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Durable(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    /// Inode of each name.
    names: BTreeMap<OsString, u64>,
    /// Contents of each inode.
    contents: BTreeMap<u64, Vec<u8>>,
}

impl Device {
    /// Creates a device of this size for the store alone.
    pub(in super::super) fn small(folder: &Path, bytes_max: u64) -> Self {
        Device { bytes_max: Some(bytes_max), ..Device::new(folder) }
    }

    /// Creates a small device whose power can be cut.
    pub(in super::super) fn with_a_plug(folder: &Path, bytes_max: u64) -> Self {
        Device { durable: Some(Durable::default()), ..Device::small(folder, bytes_max) }
    }

    /// Cuts the power and writes the surviving files to another folder. Files other than segments are copied as they are: a
    /// store opens without them, too, except for the lock file, whose preamble never changes.
    pub(in super::super) fn cut_power(&self, left: &Path) {
        let files = self.durable.as_ref().expect("it has a plug").0.lock().unwrap();
        fs::create_dir_all(left).unwrap();
        for (name, inode) in files.names.iter().filter(|(name, _)| is_segment(name)) {
            let content = files.contents.get(inode).map_or(&[][..], |content| content);
            fs::write(left.join(name), content).unwrap();
        }
        for file in fs::read_dir(&self.folder).unwrap().map(|file| file.unwrap()) {
            let name = file.file_name();
            if !is_segment(&name) && name != "reserve" && file.file_type().unwrap().is_file() {
                fs::copy(file.path(), left.join(name)).unwrap();
            }
        }
    }

    pub(in super::super) fn note_file(&self, file: &File) -> io::Result<()> {
        let Some(Durable(files)) = &self.durable else { return Ok(()) };
        let about = file.metadata()?;
        let mut content = vec![0; about.len() as usize];
        file.read_exact_at(&mut content, 0)?;
        files.lock().unwrap().contents.insert(about.ino(), content);
        Ok(())
    }

    pub(in super::super) fn note_names(&self) -> io::Result<()> {
        let Some(Durable(files)) = &self.durable else { return Ok(()) };
        let entries = fs::read_dir(&self.folder)?.map(|entry| entry.map(|it| (it.file_name(), it.ino())));
        files.lock().unwrap().names = entries.collect::<io::Result<_>>()?;
        Ok(())
    }

    /// A write that does not fit is done partially, as by a kernel.
    pub(in super::super) fn check(&self, file: &File, start: u64, slices: &[IoSlice<'_>]) -> io::Result<()> {
        let length = file.metadata()?.len();
        let room = in_blocks(length).saturating_add(self.free());
        let end = start + slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
        if in_blocks(end) <= room {
            return Ok(());
        }
        let mut at = start;
        for slice in slices {
            let fits = slice.len().min(room.saturating_sub(at) as usize);
            file.write_all_at(&slice[..fits], at)?;
            at += fits as u64;
        }
        Err(io::ErrorKind::StorageFull.into())
    }
}

fn is_segment(name: &OsString) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "log")
}
