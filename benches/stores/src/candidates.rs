//! Each candidate behind the node's own face for stores.
//!
//! The databases get what a careful node would add: every chunk has a checksum of its own, so that damage within it is
//! noticed whoever keeps it; and with `+files` long chunks lie in plain files that only grow, one a record, with where
//! they are and their checksum in the database.

use crate::tables::{Change, Fjall, Redb, Sqlite, Table, Trouble};
use bytes::Bytes;
use longwire_node::storage::{Backend, Log, StoreReader, BatchRefusal, StoreWrite};
use longwire_proto::codec::crc::crc32c;
use longwire_proto::service::{RecordId, StorageFailure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The names of all candidates.
pub const NAMES: [&str; 7] = ["log", "fjall", "fjall+files", "redb", "redb+files", "sqlite", "sqlite+files"];

/// Chunks so long go to a file, where files are used.
const FILE_BYTES_MIN: usize = 8192;

/// Opens one, or says why it cannot be opened.
pub fn open(name: &str, folder: &Path) -> Result<Box<dyn Backend>, String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let files = name.ends_with("+files");
    match name.trim_end_matches("+files") {
        "log" => Log::open(folder)
            .map(|(log, _)| Box::new(log) as Box<dyn Backend>)
            .map_err(|error| error.to_string()),
        "fjall" => boxed::<Fjall>(folder, files),
        "redb" => boxed::<Redb>(folder, files),
        "sqlite" => boxed::<Sqlite>(folder, files),
        other => panic!("no candidate is called {other}"),
    }
}

fn boxed<T: Table>(folder: &Path, files: bool) -> Result<Box<dyn Backend>, String> {
    let chunks = Chunks::<T>::open(folder, files).map_err(|error| error.to_string())?;
    Ok(Box::new(chunks))
}

/// A sealed chunk: its data, or where in the record's file they are.
///
/// ```text
///   0 | data .. | crc 4            1 | length 4 | crc of the data 4 | crc 4
/// ```
enum Sealed {
    Inline(Bytes),
    InFile { length: u32, crc: u32 },
}

impl Sealed {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Sealed::Inline(data) => {
                out.reserve_exact(data.len() + 5);
                out.push(0);
                out.extend_from_slice(data);
            }
            Sealed::InFile { length, crc } => {
                out.push(1);
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(&crc.to_be_bytes());
            }
        }
        let crc = crc32c(&out);
        out.extend_from_slice(&crc.to_be_bytes());
        out
    }

    fn decode(value: Vec<u8>) -> Result<Self, StorageFailure> {
        let at = value.len().checked_sub(4).ok_or(StorageFailure::Damaged)?;
        let body = Bytes::from(value);
        let (body, crc) = (body.slice(..at), body.slice(at..));
        if crc32c(&body).to_be_bytes() != crc[..] {
            return Err(StorageFailure::Damaged);
        }
        let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().expect("four bytes"));
        match (body.first(), body.len()) {
            (Some(0), _) => Ok(Sealed::Inline(body.slice(1..))),
            (Some(1), 9) => Ok(Sealed::InFile { length: number(1), crc: number(5) }),
            _ => Err(StorageFailure::Damaged),
        }
    }
}

#[derive(Clone)]
struct Chunks<T> {
    table: T,
    files: Option<PathBuf>,
}

impl<T: Table> Chunks<T> {
    fn open(folder: &Path, files: bool) -> Result<Self, Trouble> {
        let files = files.then(|| folder.join("content"));
        if let Some(content) = &files {
            std::fs::create_dir_all(content)?;
        }
        Ok(Chunks { table: T::open(folder)?, files })
    }

    fn path(&self, record: RecordId) -> Option<PathBuf> {
        Some(self.files.as_ref()?.join(format!("{:016x}", record.0)))
    }

    fn try_write(&self, batch: &[StoreWrite]) -> Result<(), Trouble> {
        let mut changes = Vec::with_capacity(batch.len());
        let mut content: BTreeMap<RecordId, File> = BTreeMap::new();
        let (mut made, mut gone) = (false, BTreeSet::new());
        for write in batch {
            match write {
                StoreWrite::Append { record, offset, data } => {
                    let sealed = match self.path(*record).filter(|_| data.len() >= FILE_BYTES_MIN) {
                        None => Sealed::Inline(data.clone()),
                        Some(path) => {
                            if !content.contains_key(record) {
                                made |= !path.exists();
                                let file = OpenOptions::new().create(true).append(true).open(path)?;
                                content.insert(*record, file);
                            }
                            content.get_mut(record).expect("it was just opened").write_all(data)?;
                            Sealed::InFile { length: data.len() as u32, crc: crc32c(data) }
                        }
                    };
                    changes.push(Change::Put { record: *record, offset: *offset, value: sealed.encode() });
                }
                StoreWrite::Remove { record } => {
                    changes.push(Change::Remove { record: *record });
                    gone.insert(*record);
                }
            }
        }
        for file in content.values() {
            file.sync_data()?;
        }
        if let Some(folder) = self.files.as_ref().filter(|_| made) {
            File::open(folder)?.sync_all()?;
        }
        self.table.commit(&changes)?;
        for record in gone {
            if let Some(path) = self.path(record) {
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }
}

impl<T: Table> Backend for Chunks<T> {
    fn list(&mut self) -> Vec<(RecordId, u64)> {
        let mut found: BTreeMap<RecordId, u64> = BTreeMap::new();
        for (record, offset, length) in self.table.list() {
            let end = found.entry(record).or_default();
            *end = (*end).max(offset + length - 5);
        }
        found.into_iter().collect()
    }

    fn write(&mut self, batch: &[StoreWrite]) -> Result<(), BatchRefusal> {
        self.try_write(batch).map_err(|_| BatchRefusal::Device)
    }

    fn reader(&self) -> Box<dyn StoreReader> {
        Box::new(self.clone())
    }
}

impl<T: Table> StoreReader for Chunks<T> {
    fn length(&self, _: RecordId) -> Option<u64> {
        None
    }

    fn read(&self, record: RecordId, _: u64, _: u32) -> Result<Bytes, StorageFailure> {
        let mut out = Vec::new();
        let mut at_file = 0;
        for (offset, value) in self.table.get(record).map_err(|_| StorageFailure::Damaged)? {
            if offset != out.len() as u64 {
                return Err(StorageFailure::Damaged);
            }
            match Sealed::decode(value)? {
                Sealed::Inline(data) => out.extend_from_slice(&data),
                Sealed::InFile { length, crc } => {
                    let file = File::open(self.path(record).ok_or(StorageFailure::Damaged)?);
                    let mut data = vec![0; length as usize];
                    let read = file.and_then(|file| file.read_exact_at(&mut data, at_file));
                    if read.is_err() || crc32c(&data) != crc {
                        return Err(StorageFailure::Damaged);
                    }
                    at_file += u64::from(length);
                    out.extend_from_slice(&data);
                }
            }
        }
        if out.is_empty() { Err(StorageFailure::Missing) } else { Ok(out.into()) }
    }
}
