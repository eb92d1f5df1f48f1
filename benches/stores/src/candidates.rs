//! Each candidate behind the node's own face for stores: a record is chunks under (record, offset).

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use longwire_node::storage::{Backend, Log, Reader, Refusal, Write};
use longwire_proto::service::{RecordId, StorageFailure};
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The names of all candidates.
pub const NAMES: [&str; 4] = ["log", "fjall", "redb", "sqlite"];

/// Opens one, or says why it cannot be opened.
pub fn open(name: &str, folder: &Path) -> Result<Box<dyn Backend>, String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    match name {
        "log" => Log::open(folder)
            .map(|(log, _)| Box::new(log) as Box<dyn Backend>)
            .map_err(|error| error.to_string()),
        "fjall" => Fjall::open(folder)
            .map(|found| Box::new(found) as Box<dyn Backend>)
            .map_err(|error| error.to_string()),
        "redb" => Redb::open(folder)
            .map(|found| Box::new(found) as Box<dyn Backend>)
            .map_err(|error| error.to_string()),
        "sqlite" => Sqlite::open(folder)
            .map(|found| Box::new(found) as Box<dyn Backend>)
            .map_err(|error| error.to_string()),
        other => panic!("no candidate is called {other}"),
    }
}

fn key(record: RecordId, offset: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&record.0.to_be_bytes());
    key[8..].copy_from_slice(&offset.to_be_bytes());
    key
}

fn parts(key: &[u8]) -> (RecordId, u64) {
    let number = |at: usize| u64::from_be_bytes(key[at..at + 8].try_into().expect("eight bytes"));
    (RecordId(number(0)), number(8))
}

/// Appends and chunk keys by record, as every candidate needs them for removals.
fn lengths(chunks: impl Iterator<Item = (RecordId, u64, u64)>) -> Vec<(RecordId, u64)> {
    let mut found: BTreeMap<RecordId, u64> = BTreeMap::new();
    for (record, offset, length) in chunks {
        let end = found.entry(record).or_default();
        *end = (*end).max(offset + length);
    }
    found.into_iter().collect()
}

#[derive(Clone)]
struct Fjall {
    db: Database,
    chunks: Keyspace,
}

impl Fjall {
    fn open(folder: &Path) -> fjall::Result<Self> {
        let db = Database::builder(folder).worker_threads(1).cache_size(8 << 20).open()?;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(16 << 20)
                .with_kv_separation(Some(KvSeparationOptions::default()))
        };
        let chunks = db.keyspace("chunks", options)?;
        Ok(Fjall { db, chunks })
    }
}

impl Backend for Fjall {
    fn list(&mut self) -> Vec<(RecordId, u64)> {
        lengths(self.chunks.iter().filter_map(|guard| {
            let (key, value) = guard.into_inner().ok()?;
            let (record, offset) = parts(&key);
            Some((record, offset, value.len() as u64))
        }))
    }

    fn write(&mut self, batch: &[Write]) -> Result<(), Refusal> {
        let mut out = self.db.batch().durability(Some(PersistMode::SyncData));
        for write in batch {
            match write {
                Write::Append { record, offset, data } => {
                    out.insert(&self.chunks, key(*record, *offset), &data[..])
                }
                Write::Remove { record } => {
                    for guard in self.chunks.prefix(record.0.to_be_bytes()) {
                        out.remove(&self.chunks, guard.key().map_err(|_| Refusal::Device)?);
                    }
                }
            }
        }
        out.commit().map_err(|_| Refusal::Device)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }
}

impl Reader for Fjall {
    fn length(&self, _: RecordId) -> Option<u64> {
        None
    }

    fn read(&self, record: RecordId, _: u64, _: u32) -> Result<Bytes, StorageFailure> {
        let mut out = Vec::new();
        for guard in self.chunks.prefix(record.0.to_be_bytes()) {
            let (_, value) = guard.into_inner().map_err(|_| StorageFailure::Damaged)?;
            out.extend_from_slice(&value);
        }
        Ok(out.into())
    }
}

const CHUNKS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("chunks");

#[derive(Clone)]
struct Redb(Arc<redb::Database>);

impl Redb {
    fn open(folder: &Path) -> Result<Self, redb::Error> {
        let mut builder = redb::Database::builder();
        let db = builder.set_cache_size(16 << 20).create(folder.join("store.redb"))?;
        let begin = db.begin_write()?;
        begin.open_table(CHUNKS)?;
        begin.commit()?;
        Ok(Redb(Arc::new(db)))
    }

    fn try_write(&self, batch: &[Write]) -> Result<(), redb::Error> {
        let mut begun = self.0.begin_write()?;
        // Without it opening after a crash walks the whole file.
        begun.set_quick_repair(true);
        {
            let mut table = begun.open_table(CHUNKS)?;
            for write in batch {
                match write {
                    Write::Append { record, offset, data } => {
                        table.insert(&key(*record, *offset)[..], &data[..])?;
                    }
                    Write::Remove { record } => {
                        let (from, to) = (key(*record, 0), key(*record, u64::MAX));
                        table.retain_in::<&[u8], _>(&from[..]..=&to[..], |_, _| false)?;
                    }
                }
            }
        }
        begun.commit()?;
        Ok(())
    }

    fn try_read(&self, record: RecordId) -> Result<Vec<u8>, redb::Error> {
        let table = self.0.begin_read()?.open_table(CHUNKS)?;
        let (from, to) = (key(record, 0), key(record, u64::MAX));
        let mut out = Vec::new();
        for found in table.range::<&[u8]>(&from[..]..=&to[..])? {
            out.extend_from_slice(found?.1.value());
        }
        Ok(out)
    }
}

impl Backend for Redb {
    fn list(&mut self) -> Vec<(RecordId, u64)> {
        let begun = self.0.begin_read().expect("it reads");
        let table = begun.open_table(CHUNKS).expect("it is there");
        let all = table.iter().expect("it reads").filter_map(|found| {
            let (key, value) = found.ok()?;
            let (record, offset) = parts(key.value());
            Some((record, offset, value.value().len() as u64))
        });
        lengths(all)
    }

    fn write(&mut self, batch: &[Write]) -> Result<(), Refusal> {
        self.try_write(batch).map_err(|_| Refusal::Device)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }
}

impl Reader for Redb {
    fn length(&self, _: RecordId) -> Option<u64> {
        None
    }

    fn read(&self, record: RecordId, _: u64, _: u32) -> Result<Bytes, StorageFailure> {
        self.try_read(record).map(Bytes::from).map_err(|_| StorageFailure::Damaged)
    }
}

#[derive(Clone)]
struct Sqlite(Arc<Mutex<rusqlite::Connection>>);

impl Sqlite {
    fn open(folder: &Path) -> rusqlite::Result<Self> {
        let db = rusqlite::Connection::open(folder.join("store.sqlite"))?;
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000; PRAGMA page_size = 8192;
             CREATE TABLE IF NOT EXISTS chunks (record INTEGER, offset INTEGER, length INTEGER, data BLOB,
                                                PRIMARY KEY (record, offset)) WITHOUT ROWID;",
        )?;
        Ok(Sqlite(Arc::new(Mutex::new(db))))
    }

    fn try_write(&self, batch: &[Write]) -> rusqlite::Result<()> {
        let mut db = self.0.lock().expect("one thread");
        let begun = db.transaction()?;
        {
            let mut insert = begun.prepare_cached("INSERT INTO chunks VALUES (?, ?, ?, ?)")?;
            let mut remove = begun.prepare_cached("DELETE FROM chunks WHERE record = ?")?;
            for write in batch {
                match write {
                    Write::Append { record, offset, data } => {
                        insert.execute((record.0 as i64, *offset as i64, data.len() as i64, &data[..]))?;
                    }
                    Write::Remove { record } => drop(remove.execute([record.0 as i64])?),
                }
            }
        }
        begun.commit()
    }

    fn try_read(&self, record: RecordId) -> rusqlite::Result<Vec<u8>> {
        let db = self.0.lock().expect("one thread");
        let mut select = db.prepare_cached("SELECT data FROM chunks WHERE record = ? ORDER BY offset")?;
        let mut out = Vec::new();
        let mut rows = select.query([record.0 as i64])?;
        while let Some(row) = rows.next()? {
            out.extend_from_slice(row.get_ref(0)?.as_blob()?);
        }
        Ok(out)
    }
}

impl Backend for Sqlite {
    fn list(&mut self) -> Vec<(RecordId, u64)> {
        let db = self.0.lock().expect("one thread");
        let Ok(mut select) = db.prepare("SELECT record, offset, length FROM chunks") else {
            return Vec::new();
        };
        let row = |row: &rusqlite::Row<'_>| {
            Ok((
                RecordId(row.get::<_, i64>(0)? as u64),
                row.get::<_, i64>(1)? as u64,
                row.get::<_, i64>(2)? as u64,
            ))
        };
        let Ok(rows) = select.query_map([], row) else { return Vec::new() };
        lengths(rows.map_while(Result::ok))
    }

    fn write(&mut self, batch: &[Write]) -> Result<(), Refusal> {
        self.try_write(batch).map_err(|_| Refusal::Device)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }
}

impl Reader for Sqlite {
    fn length(&self, _: RecordId) -> Option<u64> {
        None
    }

    fn read(&self, record: RecordId, _: u64, _: u32) -> Result<Bytes, StorageFailure> {
        self.try_read(record).map(Bytes::from).map_err(|_| StorageFailure::Damaged)
    }
}
