//! The node's store measured beside embedded databases, in the node's own pattern: append, commit, read, remove; and
//! what damage does to each.
//!
//! ```text
//! cargo run --release --manifest-path benches/stores/Cargo.toml -- [all|speed|damage] [FOLDER] [TRIALS]
//! ```
//!
//! Every candidate runs in processes of its own, so that processor time and bytes written are its own. docs/store.md has
//! the figures of one run and what follows from them.

mod candidates;
mod damage;
mod tables;

use bytes::Bytes;
use candidates::{NAMES, open};
use longwire_node::storage::StoreWrite;
use longwire_proto::rng::Rng;
use longwire_proto::service::RecordId;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A small bundle's length.
const SMALL_BYTES: usize = 1024;
/// Damaged copies of each store, unless told otherwise.
const TRIALS: u64 = 100;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [task, name, folder] = &words[..]
        && NAMES.contains(&&name[..]) | (name == "plain")
    {
        return run(task, name, Path::new(folder));
    }
    let wanted = words.first().map_or("all", String::as_str);
    assert!(
        ["all", "speed", "damage"].contains(&wanted),
        "all, speed or damage; then a folder, then a number of trials"
    );
    let base = words.get(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let base = base.join(format!("longwire-stores-{}", std::process::id()));
    if wanted != "damage" {
        speed(&base);
    }
    if wanted != "speed" {
        println!("\ndamage");
        let count = words.get(2).map_or(TRIALS, |word| word.parse().expect("a number of trials"));
        for name in NAMES {
            damage::trials(name, &base, count);
        }
    }
    let _ = std::fs::remove_dir_all(&base);
}

fn speed(base: &Path) {
    for task in ["disk-16", "small-16", "small-64", "small-256", "disk-1000", "large", "fill", "reopen"] {
        println!("\n{task}");
        let names = if task.starts_with("disk") { &["plain"][..] } else { &NAMES[..] };
        for name in names {
            let shared = if task == "reopen" { "fill" } else { task };
            let folder = base.join(format!("{shared}-{name}"));
            let me = std::env::current_exe().expect("this program has a path");
            let status = Command::new(me).args([task, name]).arg(&folder).status().expect("it starts");
            if !status.success() && task != "fill" {
                println!("{name:<13} died: {status}");
            }
            if task != "fill" {
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
    }
}

fn run(task: &str, name: &str, folder: &Path) {
    match task {
        "disk-16" => plain(folder, 1250, 16 * SMALL_BYTES),
        "disk-1000" => plain(folder, 300, 1_000_000),
        "small-16" => cycle(name, folder, 20_000, SMALL_BYTES, SMALL_BYTES, 16),
        "small-64" => cycle(name, folder, 20_000, SMALL_BYTES, SMALL_BYTES, 64),
        "small-256" => cycle(name, folder, 20_000, SMALL_BYTES, SMALL_BYTES, 256),
        "large" => cycle(name, folder, 300, 1_000_000, 65_536, 16),
        "fill" => {
            let mut store = open(name, folder).expect("it opens");
            for batch in appends(0, 100_000, SMALL_BYTES, SMALL_BYTES).chunks(256) {
                store.write(batch).expect("it is written");
            }
            // As a kill would.
            std::process::abort();
        }
        "reopen" => {
            let began = Instant::now();
            let mut store = open(name, folder).expect("it opens");
            let found = store.list().len();
            let elapsed = began.elapsed().as_secs_f64();
            println!(
                "{name:<13} {elapsed:.3} s to open and list {found} records, {} MB",
                memory_mb("VmHWM:")
            );
        }
        "damage-fill" => drop(damage::fill(name, folder)),
        "damage-fill-kill" => {
            let _open = damage::fill(name, folder);
            std::process::abort();
        }
        "damage-look" => damage::look(name, folder),
        other => panic!("no task is called {other}"),
    }
}

/// The bytes of a record: no two records are alike.
fn payload(record: u64, length: usize) -> Bytes {
    let mut data = vec![0; length];
    Rng::new(record).fill(&mut data);
    data.into()
}

fn pieces(record: RecordId, data: &Bytes, piece: usize) -> impl Iterator<Item = StoreWrite> + use<> {
    let data = data.clone();
    (0..data.len()).step_by(piece).map(move |at| {
        let data = data.slice(at..data.len().min(at + piece));
        StoreWrite::Append { record, offset: at as u64, data }
    })
}

fn appends(first: u64, count: u64, length: usize, piece: usize) -> Vec<StoreWrite> {
    let records = first..first + count;
    records.flat_map(|record| pieces(RecordId(record), &payload(record, length), piece)).collect()
}

/// What the disk itself does: so many bytes at the end of a file and a sync, again and again.
fn plain(folder: &Path, count: usize, batch_bytes: usize) {
    use std::io::Write as _;
    std::fs::create_dir_all(folder).expect("a folder");
    let mut file = std::fs::File::create(folder.join("plain")).expect("it is made");
    let data = payload(1, batch_bytes);
    let began = Instant::now();
    for _ in 0..count {
        file.write_all(&data).and_then(|()| file.sync_data()).expect("it is written");
    }
    let elapsed = began.elapsed().as_secs_f64();
    let (syncs, rate) = (count as f64 / elapsed, (count * batch_bytes) as f64 / elapsed / 1e6);
    println!("append and fdatasync of {batch_bytes} B: {syncs:.0} a second, {rate:.0} MB/s");
}

/// Append, commit, read and remove, in steps of one batch, so that little is there at a time, as in a node.
fn cycle(name: &str, folder: &Path, count: u64, length: usize, piece: usize, batch: u64) {
    let mut store = open(name, folder).expect("it opens");
    let reader = store.reader();
    let data = payload(7, length);
    let (began, cpu, written) = (Instant::now(), cpu_s(), written_bytes());
    for first in (0..count).step_by(batch as usize) {
        let records = first..count.min(first + batch);
        let writes: Vec<StoreWrite> =
            records.clone().flat_map(|record| pieces(RecordId(record), &data, piece)).collect();
        for part in writes.chunks(256) {
            store.write(part).expect("it is written");
        }
        for record in records.clone() {
            let read = reader.read(RecordId(record), 0, length as u32).expect("it reads");
            assert_eq!(read.len(), length);
        }
        let removals: Vec<StoreWrite> = records.map(|record| StoreWrite::Remove { record: RecordId(record) }).collect();
        store.write(&removals).expect("it is removed");
        while store.maintain() {}
    }
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), cpu_s() - cpu);
    let bytes = (count * length as u64) as f64;
    println!(
        "{name:<13} {:>7.1} us of processor a bundle, {:>6.0} bundles/s, {:>5.0} MB/s, {:.2} bytes written a byte, {} MB at most",
        cpu * 1e6 / count as f64,
        count as f64 / elapsed,
        bytes / elapsed / 1e6,
        (written_bytes() - written) as f64 / bytes,
        memory_mb("VmHWM:"),
    );
}

fn proc(file: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default()
}

fn cpu_s() -> f64 {
    let stat = proc("stat");
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap_or(0.0) + fields[12].parse::<f64>().unwrap_or(0.0)) / 100.0
}

fn written_bytes() -> u64 {
    let io = proc("io");
    io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok()).unwrap_or(0)
}

fn memory_mb(field: &str) -> u64 {
    let status = proc("status");
    let kb: Option<u64> =
        status.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse().ok());
    kb.unwrap_or(0) / 1024
}
