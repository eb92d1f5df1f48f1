//! The embedded databases, each as a table of chunks under (record, offset).

use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use longwire_proto::service::RecordId;
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Whatever a database says against it.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// One change of a batch.
pub enum Change {
    /// A chunk, sealed.
    Put { record: RecordId, offset: u64, value: Vec<u8> },
    /// All chunks of a record go.
    Remove { record: RecordId },
}

/// A database as a table of chunks.
pub trait Table: Clone + Send + 'static {
    fn open(folder: &Path) -> Result<Self, Trouble>;
    /// All of a batch, durable when it returns.
    fn commit(&self, batch: &[Change]) -> Result<(), Trouble>;
    /// The chunks of a record in order, each with its offset.
    fn get(&self, record: RecordId) -> Result<Vec<(u64, Vec<u8>)>, Trouble>;
    /// All chunks: record, offset, sealed value's length; as far as they can be read.
    fn list(&self) -> Vec<(RecordId, u64, u64)>;
}

fn key(record: RecordId, offset: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&record.0.to_be_bytes());
    key[8..].copy_from_slice(&offset.to_be_bytes());
    key
}

/// None: the key itself is damaged.
fn parts(key: &[u8]) -> Option<(RecordId, u64)> {
    let number = |at: usize| Some(u64::from_be_bytes(key.get(at..at + 8)?.try_into().ok()?));
    Some((RecordId(number(0)?), number(8)?))
}

#[derive(Clone)]
pub struct Fjall {
    db: Database,
    chunks: Keyspace,
}

impl Table for Fjall {
    fn open(folder: &Path) -> Result<Self, Trouble> {
        let db = Database::builder(folder).worker_threads(1).cache_size(8 << 20).open()?;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(16 << 20)
                .with_kv_separation(Some(KvSeparationOptions::default()))
        };
        let chunks = db.keyspace("chunks", options)?;
        Ok(Fjall { db, chunks })
    }

    fn commit(&self, batch: &[Change]) -> Result<(), Trouble> {
        let mut out = self.db.batch().durability(Some(PersistMode::SyncData));
        for change in batch {
            match change {
                Change::Put { record, offset, value } => {
                    out.insert(&self.chunks, key(*record, *offset), &value[..])
                }
                Change::Remove { record } => {
                    for guard in self.chunks.prefix(record.0.to_be_bytes()) {
                        out.remove(&self.chunks, guard.key()?);
                    }
                }
            }
        }
        Ok(out.commit()?)
    }

    fn get(&self, record: RecordId) -> Result<Vec<(u64, Vec<u8>)>, Trouble> {
        let mut out = Vec::new();
        for guard in self.chunks.prefix(record.0.to_be_bytes()) {
            let (key, value) = guard.into_inner()?;
            let (_, offset) = parts(&key).ok_or("a damaged key")?;
            out.push((offset, value.to_vec()));
        }
        Ok(out)
    }

    fn list(&self) -> Vec<(RecordId, u64, u64)> {
        let entry = |guard: fjall::Guard| {
            let (key, value) = guard.into_inner().ok()?;
            let (record, offset) = parts(&key)?;
            Some((record, offset, value.len() as u64))
        };
        self.chunks.iter().filter_map(entry).collect()
    }
}

const CHUNKS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("chunks");

#[derive(Clone)]
pub struct Redb(Arc<redb::Database>);

impl Table for Redb {
    fn open(folder: &Path) -> Result<Self, Trouble> {
        let mut builder = redb::Database::builder();
        let db = builder.set_cache_size(16 << 20).create(folder.join("store.redb"))?;
        let begin = db.begin_write()?;
        begin.open_table(CHUNKS)?;
        begin.commit()?;
        Ok(Redb(Arc::new(db)))
    }

    fn commit(&self, batch: &[Change]) -> Result<(), Trouble> {
        let mut begun = self.0.begin_write()?;
        // Without it opening after a crash walks the whole file.
        begun.set_quick_repair(true);
        {
            let mut table = begun.open_table(CHUNKS)?;
            for change in batch {
                match change {
                    Change::Put { record, offset, value } => {
                        table.insert(&key(*record, *offset)[..], &value[..])?;
                    }
                    Change::Remove { record } => {
                        let (from, to) = (key(*record, 0), key(*record, u64::MAX));
                        table.retain_in::<&[u8], _>(&from[..]..=&to[..], |_, _| false)?;
                    }
                }
            }
        }
        Ok(begun.commit()?)
    }

    fn get(&self, record: RecordId) -> Result<Vec<(u64, Vec<u8>)>, Trouble> {
        let table = self.0.begin_read()?.open_table(CHUNKS)?;
        let (from, to) = (key(record, 0), key(record, u64::MAX));
        let mut out = Vec::new();
        for found in table.range::<&[u8]>(&from[..]..=&to[..])? {
            let (key, value) = found?;
            let (_, offset) = parts(key.value()).ok_or("a damaged key")?;
            out.push((offset, value.value().to_vec()));
        }
        Ok(out)
    }

    fn list(&self) -> Vec<(RecordId, u64, u64)> {
        let Ok(Ok(table)) = self.0.begin_read().map(|begun| begun.open_table(CHUNKS)) else {
            return Vec::new();
        };
        let Ok(all) = table.iter() else { return Vec::new() };
        let entries = all.map_while(|found| {
            let (key, value) = found.ok()?;
            let (record, offset) = parts(key.value())?;
            Some((record, offset, value.value().len() as u64))
        });
        entries.collect()
    }
}

#[derive(Clone)]
pub struct Sqlite(Arc<Mutex<rusqlite::Connection>>);

impl Table for Sqlite {
    fn open(folder: &Path) -> Result<Self, Trouble> {
        let db = rusqlite::Connection::open(folder.join("store.sqlite"))?;
        db.execute_batch(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000;
             CREATE TABLE IF NOT EXISTS chunks (record INTEGER, offset INTEGER, length INTEGER, data BLOB,
                                                PRIMARY KEY (record, offset)) WITHOUT ROWID;",
        )?;
        Ok(Sqlite(Arc::new(Mutex::new(db))))
    }

    fn commit(&self, batch: &[Change]) -> Result<(), Trouble> {
        let mut db = self.0.lock().expect("one thread");
        let begun = db.transaction()?;
        {
            let mut insert = begun.prepare_cached("INSERT INTO chunks VALUES (?, ?, ?, ?)")?;
            let mut remove = begun.prepare_cached("DELETE FROM chunks WHERE record = ?")?;
            for change in batch {
                match change {
                    Change::Put { record, offset, value } => {
                        insert.execute((record.0 as i64, *offset as i64, value.len() as i64, &value[..]))?;
                    }
                    Change::Remove { record } => drop(remove.execute([record.0 as i64])?),
                }
            }
        }
        Ok(begun.commit()?)
    }

    fn get(&self, record: RecordId) -> Result<Vec<(u64, Vec<u8>)>, Trouble> {
        let db = self.0.lock().expect("one thread");
        let mut select =
            db.prepare_cached("SELECT offset, data FROM chunks WHERE record = ? ORDER BY offset")?;
        let mut out = Vec::new();
        let mut rows = select.query([record.0 as i64])?;
        while let Some(row) = rows.next()? {
            out.push((row.get::<_, i64>(0)? as u64, row.get_ref(1)?.as_blob()?.to_vec()));
        }
        Ok(out)
    }

    fn list(&self) -> Vec<(RecordId, u64, u64)> {
        let db = self.0.lock().expect("one thread");
        let Ok(mut select) = db.prepare("SELECT record, offset, length FROM chunks") else {
            return Vec::new();
        };
        let row = |row: &rusqlite::Row<'_>| {
            let number = |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)? as u64);
            Ok((RecordId(number(0)?), number(1)?, number(2)?))
        };
        let Ok(rows) = select.query_map([], row) else { return Vec::new() };
        rows.map_while(Result::ok).collect()
    }
}
