//! A folder for received files: each delivery becomes one file, which appears complete or not at all.
//!
//! ```text
//!   written to .longwire/ID.part, synced --> linked under its name --> (taken) --> .longwire/ID.part is removed
//! ```
//!
//! As long as the part file has its second name, the delivery has been placed: if the node announces it again after a crash, it
//! is taken without another file. Existing files are never replaced: a second file of the same name gets a number. Files and
//! created folders are accessible to their user only.

use crate::envelope;
use crate::private_files;
use longwire_proto::service::BundleName;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum files of one name.
pub(crate) const NUMBERS_MAX: u32 = 100_000;

/// Name of the part of a file that comes from this bundle.
fn part_name(origin: &BundleName) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in origin.source.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{}-{hash:016x}.part", origin.created)
}

/// File name for a payload without one.
fn fallback_name(origin: &BundleName) -> String {
    let source = origin.source.trim_end_matches('/').replace(['/', ':'], "-");
    format!("bundle-{}-{}", source.replace("---", "-"), origin.created)
}

/// A file that is being received.
#[derive(Debug)]
pub struct ArrivingFile {
    folder: PathBuf,
    part: PathBuf,
    origin: BundleName,
    file: File,
    /// Beginning of the payload, until it shows whether there is a file name.
    head: Option<Vec<u8>>,
    name: Option<String>,
}

/// Result of [`begin`].
#[derive(Debug)]
pub enum FileStart {
    /// The file is to be received.
    Arriving(Box<ArrivingFile>),
    /// The file was placed before a crash: it only has to be taken.
    AlreadyPlaced,
}

/// Creates a folder for received files if it does not exist.
///
/// # Errors
/// Fails if the folder cannot be created.
pub fn make(folder: &Path) -> io::Result<()> {
    private_files::make_folder(folder)
}

/// Begins a file in a folder.
///
/// # Errors
/// Fails if the folder is not writable.
pub fn begin(folder: &Path, origin: BundleName) -> io::Result<FileStart> {
    let parts = folder.join(".longwire");
    private_files::make_folder(&parts)?;
    let part = parts.join(part_name(&origin));
    if fs::metadata(&part).is_ok_and(|found| found.nlink() > 1) {
        return Ok(FileStart::AlreadyPlaced);
    }
    let file = private_files::file().create(true).truncate(false).write(true).open(&part)?;
    // The lock keeps `tidy` of another process from removing the file.
    file.try_lock()
        .map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "another program is receiving it"))?;
    file.set_len(0)?;
    let arriving =
        ArrivingFile { folder: folder.to_owned(), part, origin, file, head: Some(Vec::new()), name: None };
    Ok(FileStart::Arriving(Box::new(arriving)))
}

/// Removes the record of a placed delivery, once the node has deleted the delivery.
pub fn forget(folder: &Path, origin: &BundleName) {
    // A leftover is harmless at the next start.
    let _ = fs::remove_file(folder.join(".longwire").join(part_name(origin)));
}

/// Removes leftovers of a crash: parts that were never placed, and those whose file was removed since.
pub fn tidy(folder: &Path) {
    let Ok(parts) = fs::read_dir(folder.join(".longwire")) else { return };
    for part in parts.flatten().map(|entry| entry.path()) {
        let unused = File::open(&part).is_ok_and(|file| {
            file.try_lock().is_ok() && file.metadata().is_ok_and(|found| found.nlink() == 1)
        });
        if unused {
            let _ = fs::remove_file(part);
        }
    }
}

impl ArrivingFile {
    /// Writes the next bytes of the payload.
    ///
    /// # Errors
    /// Fails if the disk is full or fails.
    pub fn write(&mut self, data: &[u8]) -> io::Result<()> {
        let Some(head) = &mut self.head else { return self.file.write_all(data) };
        head.extend_from_slice(data);
        if head.len() >= envelope::HEAD_BYTES_MAX { self.read_head() } else { Ok(()) }
    }

    fn read_head(&mut self) -> io::Result<()> {
        let Some(head) = self.head.take() else { return Ok(()) };
        let from = match envelope::read(&head) {
            Some((name, from)) => {
                self.name = Some(envelope::safe_name(name));
                from
            }
            None => 0,
        };
        self.file.write_all(&head[from..])
    }

    /// Ends the file, which appears under its name.
    ///
    /// # Errors
    /// Fails if the disk is full or fails; the file does not appear.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        self.read_head()?;
        self.file.sync_all()?;
        let name = self.name.clone().unwrap_or_else(|| envelope::safe_name(&fallback_name(&self.origin)));
        let path = self.place(&name)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(path)
    }

    fn place(&self, name: &str) -> io::Result<PathBuf> {
        for number in 1..NUMBERS_MAX {
            let path = self.folder.join(numbered(name.as_ref(), number));
            match fs::hard_link(&self.part, &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) if !path.exists() => {
                    // A file system without links, such as FAT: a crash at this point may produce the file twice.
                    fs::rename(&self.part, &path)?;
                    return Ok(path);
                }
                Err(_) => {}
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("too many files named {name}")))
    }
}

/// Returns the name itself for number 1, and a name with the number before the extension for others.
pub(crate) fn numbered(name: &OsStr, number: u32) -> OsString {
    if number == 1 {
        return name.to_owned();
    }
    let path = Path::new(name);
    let mut out = path.file_stem().unwrap_or(name).to_owned();
    out.push(format!("-{number}"));
    if let Some(ending) = path.extension() {
        out.push(".");
        out.push(ending);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    fn visible(folder: &TestFolder) -> Vec<String> {
        let names = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        names
    }

    fn origin(sequence: u64) -> BundleName {
        BundleName { source: "dtn://moon/".into(), created: (5, sequence).into() }
    }

    fn arriving(folder: &TestFolder, sequence: u64) -> Box<ArrivingFile> {
        match begin(&folder.0, origin(sequence)).unwrap() {
            FileStart::Arriving(arriving) => arriving,
            FileStart::AlreadyPlaced => panic!("it was never placed"),
        }
    }

    #[test]
    fn a_file_appears_whole_once_and_replaces_none() {
        let folder = TestFolder::new("inbox-whole");
        for sequence in 0..3 {
            let mut file = arriving(&folder, sequence);
            // One byte at a time: the name may be split anywhere.
            for byte in envelope::head("../letter.txt").iter().chain(b"hello") {
                file.write(&[*byte]).unwrap();
                assert_eq!(visible(&folder).len(), sequence as usize, "not before it is whole");
            }
            let path = file.finish().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"hello");
            assert!(
                matches!(begin(&folder.0, origin(sequence)).unwrap(), FileStart::AlreadyPlaced),
                "said again"
            );
        }
        assert_eq!(visible(&folder), ["letter-2.txt", "letter-3.txt", "letter.txt"]);
        forget(&folder.0, &origin(1));
        assert_eq!(fs::read_dir(folder.0.join(".longwire")).unwrap().count(), 2);
    }

    #[test]
    fn a_payload_without_a_name_is_kept_as_it_is() {
        let folder = TestFolder::new("inbox-plain");
        let mut file = arriving(&folder, 7);
        let payload = vec![b'x'; 1000];
        file.write(&payload[..100]).unwrap();
        file.write(&payload[100..]).unwrap();
        let path = file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), payload);
        assert_eq!(visible(&folder), ["bundle-dtn-moon-5-7"]);
        let empty = arriving(&folder, 8).finish().unwrap();
        assert_eq!(fs::read(empty).unwrap(), b"");
    }

    #[test]
    fn what_a_crash_left_is_begun_anew() {
        let folder = TestFolder::new("inbox-anew");
        let mut file = arriving(&folder, 1);
        file.write(&[1; 5000]).unwrap();
        tidy(&folder.0);
        assert!(begin(&folder.0, origin(1)).is_err(), "somebody is at it");
        drop(file);
        let mut file = arriving(&folder, 1);
        file.write(&[2; 600]).unwrap();
        let path = file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), [2; 600]);
        tidy(&folder.0);
        assert!(matches!(begin(&folder.0, origin(1)).unwrap(), FileStart::AlreadyPlaced));
        fs::remove_file(path).unwrap();
        tidy(&folder.0);
        assert_eq!(fs::read_dir(folder.0.join(".longwire")).unwrap().count(), 0);
    }
}
