//! The node's store measured beside embedded databases, in the node's own pattern: append, commit, read, remove.
//!
//! ```text
//! cargo run --release --manifest-path benches/stores/Cargo.toml [-- FOLDER]
//! ```
//!
//! Every candidate runs in processes of its own, so that processor time and bytes written are its own. README.md has
//! the figures of one run and what follows from them.

mod candidates;

use bytes::Bytes;
use candidates::{NAMES, open};
use longwire_node::storage::Write;
use longwire_proto::rng::Rng;
use longwire_proto::service::RecordId;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [task, name, folder] = &words[..] {
        return run(task, name, Path::new(folder));
    }
    let base = words.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let base = base.join(format!("longwire-stores-{}", std::process::id()));
    for task in ["small", "large", "fill", "reopen", "damage"] {
        println!("\n{task}");
        for name in NAMES {
            let shared = if task == "reopen" { "fill" } else { task };
            let folder = base.join(format!("{shared}-{name}"));
            let me = std::env::current_exe().expect("this program has a path");
            let status = Command::new(me).args([task, name]).arg(&folder).status().expect("it starts");
            if !status.success() && task != "fill" {
                println!("{name:<8} died: {status}");
            }
        }
    }
    let _ = std::fs::remove_dir_all(&base);
}

fn run(task: &str, name: &str, folder: &Path) {
    match task {
        "small" => cycle(name, folder, 20_000, 1024, 1024, 256),
        "large" => cycle(name, folder, 300, 1_000_000, 65_536, 16),
        "fill" => {
            let mut store = open(name, folder).expect("it opens");
            for batch in appends(0, 100_000, 1024, 1024).chunks(256) {
                store.write(batch).expect("it is written");
            }
            // As a kill would.
            std::process::abort();
        }
        "reopen" => {
            let began = Instant::now();
            let mut store = open(name, folder).expect("it opens");
            let found = store.list().len();
            println!(
                "{name:<8} {:.3} s to open and list {found} records, {} MB",
                began.elapsed().as_secs_f64(),
                rss_mb()
            );
        }
        "damage" => damage(name, folder),
        other => panic!("no task is called {other}"),
    }
}

fn appends(first: u64, count: u64, length: usize, piece: usize) -> Vec<Write> {
    let mut data = vec![0; length];
    Rng::new(7).fill(&mut data);
    let data = Bytes::from(data);
    let of = |record: u64| {
        let data = data.clone();
        (0..length).step_by(piece).map(move |at| Write::Append {
            record: RecordId(record),
            offset: at as u64,
            data: data.slice(at..length.min(at + piece)),
        })
    };
    (first..first + count).flat_map(of).collect()
}

/// Append, commit, read and remove, in steps of one batch, so that little is there at a time, as in a node.
fn cycle(name: &str, folder: &Path, count: u64, length: usize, piece: usize, batch: u64) {
    let mut store = open(name, folder).expect("it opens");
    let reader = store.reader();
    let (began, cpu, written) = (Instant::now(), cpu_s(), written_bytes());
    for first in (0..count).step_by(batch as usize) {
        let some = batch.min(count - first);
        let writes = appends(first, some, length, piece);
        for part in writes.chunks(256) {
            store.write(part).expect("it is written");
        }
        for record in first..first + some {
            let read = reader.read(RecordId(record), 0, length as u32).expect("it reads");
            assert_eq!(read.len(), length);
        }
        let removals: Vec<Write> =
            (first..first + some).map(|record| Write::Remove { record: RecordId(record) }).collect();
        store.write(&removals).expect("it is removed");
        while store.tend() {}
    }
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), cpu_s() - cpu);
    let amount = (written_bytes() - written) as f64 / (count * length as u64) as f64;
    println!(
        "{name:<8} {:>8.1} us of processor a bundle, {:>8.0} bundles/s, {amount:.2} bytes written a byte, {} MB",
        cpu * 1e6 / count as f64,
        count as f64 / elapsed,
        rss_mb()
    );
}

/// A byte in the middle of the largest file is flipped: how many records are left?
fn damage(name: &str, folder: &Path) {
    const COUNT: u64 = 2000;
    {
        let mut store = open(name, folder).expect("it opens");
        for batch in appends(0, COUNT, 1024, 1024).chunks(256) {
            store.write(batch).expect("it is written");
        }
    }
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let (_, path) = files.last().expect("there is a file");
    let mut bytes = std::fs::read(path).expect("it reads");
    // The middle of what is not empty.
    let used = bytes.iter().rposition(|byte| *byte != 0).expect("something is in it");
    bytes[used / 2] ^= 0x10;
    std::fs::write(path, bytes).expect("it writes");
    match std::panic::catch_unwind(|| open(name, folder)) {
        Ok(Ok(store)) => {
            let reader = store.reader();
            let whole = (0..COUNT).filter(|record| {
                let expected = appends(*record, 1, 1024, 1024);
                let Write::Append { data, .. } = &expected[0] else { unreachable!("appends append") };
                reader.read(RecordId(*record), 0, 1024).is_ok_and(|read| read == *data)
            });
            println!("{name:<8} {} of {COUNT} records are whole after one flipped bit", whole.count());
        }
        Ok(Err(error)) => println!("{name:<8} does not open any more: {error}"),
        Err(_) => println!("{name:<8} panics when opened"),
    }
}

fn collect(folder: &Path, files: &mut Vec<(u64, PathBuf)>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let about = entry.metadata().expect("it is there");
        if about.is_dir() {
            collect(&entry.path(), files);
        } else if entry.file_name() != "reserve" {
            use std::os::unix::fs::MetadataExt;
            files.push((about.blocks(), entry.path()));
        }
    }
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

fn rss_mb() -> u64 {
    let status = proc("status");
    let kb: Option<u64> =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    kb.unwrap_or(0) / 1024
}
