//! A folder into which deliveries become files: each appears whole or not at all, and once.
//!
//! ```text
//!   written to .longwire/ID.part, synced --> linked under its name --> (taken) --> .longwire/ID.part is removed
//! ```
//!
//! As long as the part file has its second name, the delivery has been placed: should the node say it again after a crash,
//! it is taken without another file. No file that is there is ever replaced: a second one of a name gets a number. Files, and
//! folders that are made, are for their user only.

use crate::envelope;
use crate::private_files;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files of one name that get a number.
const NUMBERS_MAX: u32 = 100_000;

/// Which bundle a file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrigin {
    /// The bundle's source.
    pub source: String,
    /// Its creation timestamp.
    pub created: (u64, u64),
}

impl FileOrigin {
    fn part_name(&self) -> String {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in self.source.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        format!("{}-{}-{hash:016x}.part", self.created.0, self.created.1)
    }

    /// The name of a payload that has none.
    fn fallback_name(&self) -> String {
        let source = self.source.trim_end_matches('/').replace(['/', ':'], "-");
        format!("bundle-{}-{}-{}", source.replace("---", "-"), self.created.0, self.created.1)
    }
}

/// A file that is arriving.
#[derive(Debug)]
pub struct ArrivingFile {
    folder: PathBuf,
    part: PathBuf,
    origin: FileOrigin,
    file: File,
    /// The payload's beginning, until it tells whether a name stands there.
    head: Option<Vec<u8>>,
    name: Option<String>,
}

/// What became of the beginning.
#[derive(Debug)]
pub enum FileStart {
    /// It is wanted.
    Arriving(Box<ArrivingFile>),
    /// It was placed before a crash: it only has to be taken.
    AlreadyPlaced,
}

/// Makes a folder for files that arrive, if it is missing.
///
/// # Errors
/// It cannot be made.
pub fn make(folder: &Path) -> io::Result<()> {
    private_files::make_folder(folder)
}

/// Begins a file in a folder.
///
/// # Errors
/// The folder cannot be written to.
pub fn begin(folder: &Path, origin: FileOrigin) -> io::Result<FileStart> {
    let parts = folder.join(".longwire");
    private_files::make_folder(&parts)?;
    let part = parts.join(origin.part_name());
    if fs::metadata(&part).is_ok_and(|found| found.nlink() > 1) {
        return Ok(FileStart::AlreadyPlaced);
    }
    let file = private_files::file().create(true).truncate(false).write(true).open(&part)?;
    // As long as it is locked nobody tidies it away.
    file.try_lock().map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "another program receives it"))?;
    file.set_len(0)?;
    let arriving =
        ArrivingFile { folder: folder.to_owned(), part, origin, file, head: Some(Vec::new()), name: None };
    Ok(FileStart::Arriving(Box::new(arriving)))
}

/// Forgets how a delivery was placed, once it is gone from the node.
pub fn forget(folder: &Path, origin: &FileOrigin) {
    // If it is still there at the next start it does no harm.
    let _ = fs::remove_file(folder.join(".longwire").join(origin.part_name()));
}

/// Removes what a crash left: parts that were never placed, and those whose file was removed since.
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
    /// The payload's next bytes.
    ///
    /// # Errors
    /// The disk is full, or worse.
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

    /// All of it is written: it appears under its name.
    ///
    /// # Errors
    /// The disk is full, or worse; the file does not appear.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        self.read_head()?;
        self.file.sync_all()?;
        let name = self.name.clone().unwrap_or_else(|| envelope::safe_name(&self.origin.fallback_name()));
        let path = self.place(&name)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(path)
    }

    fn place(&self, name: &str) -> io::Result<PathBuf> {
        for number in 1..NUMBERS_MAX {
            let path = self.folder.join(numbered(name, number));
            match fs::hard_link(&self.part, &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) if !path.exists() => {
                    // A file system without links, such as FAT: a crash right here may bring the file twice.
                    fs::rename(&self.part, &path)?;
                    return Ok(path);
                }
                Err(_) => {}
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("there are too many files called {name}")))
    }
}

/// The first of a name is plain, the next ones have a number before the ending.
fn numbered(name: &str, number: u32) -> String {
    if number == 1 {
        return name.to_owned();
    }
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{number}.{ending}"),
        _ => format!("{name}-{number}"),
    }
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

    fn origin(sequence: u64) -> FileOrigin {
        FileOrigin { source: "dtn://moon/".into(), created: (5, sequence) }
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
            // One byte at a time: the name may be cut anywhere.
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
