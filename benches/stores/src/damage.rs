//! Damage: a store is filled and closed, or left as a kill leaves it; bytes are flipped, or the end of its newest file is
//! torn off; another process opens it and looks at every record.

use crate::candidates::open;
use crate::{SMALL_BYTES, appends, payload};
use longwire_node::storage::{Backend, StoreWrite};
use longwire_proto::rng::Rng;
use longwire_proto::service::RecordId;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SMALL: u64 = 2000;
const LARGE: u64 = 20;
const LARGE_BYTES: usize = 1_000_000;
/// A store that takes longer to open is as good as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fills a store with small bundles and large ones among them.
pub fn fill(name: &str, folder: &Path) -> Box<dyn Backend> {
    let mut store = open(name, folder).expect("it opens");
    for part in 0..LARGE {
        let each = SMALL / LARGE;
        for batch in appends(SMALL + part, 1, LARGE_BYTES, 65_536).chunks(16) {
            store.write(batch).expect("it is written");
        }
        for batch in appends(part * each, each, SMALL_BYTES, SMALL_BYTES).chunks(50) {
            store.write(batch).expect("it is written");
        }
    }
    store
}

/// Looks at every record, and says what it found in one line of numbers.
pub fn look(name: &str, folder: &Path) {
    let mut store = match open(name, folder) {
        Ok(store) => store,
        Err(_) => return println!("shut"),
    };
    let listed = store.list().len();
    let reader = store.reader();
    let (mut lost, mut wrong) = (0, 0);
    for record in 0..SMALL + LARGE {
        let length = if record < SMALL { SMALL_BYTES } else { LARGE_BYTES };
        match reader.read(RecordId(record), 0, length as u32) {
            Ok(data) if data == payload(record, length) => {}
            // Shorter is noticed by whoever wants it.
            Ok(data) if data.len() == length => wrong += 1,
            _ => lost += 1,
        }
    }
    let fresh = RecordId(SMALL + LARGE);
    let data = payload(fresh.0, SMALL_BYTES);
    let goes_on = store.write(&[StoreWrite::Append { record: fresh, offset: 0, data: data.clone() }]).is_ok()
        && store.reader().read(fresh, 0, SMALL_BYTES as u32).is_ok_and(|read| read == data)
        && store.write(&[StoreWrite::Remove { record: fresh }]).is_ok();
    println!("open {listed} {lost} {wrong} {}", u8::from(goes_on));
}

/// What became of a store that was damaged once.
enum Outcome {
    /// Some records were not found or were noticed as damaged, some were wrong and not noticed.
    Open {
        lost: u64,
        wrong: u64,
        goes_on: bool,
    },
    Shut,
    Died,
}

#[derive(Default)]
struct Tally {
    trials: u64,
    shut: u64,
    died: u64,
    collateral_trials: u64,
    collateral: u64,
    collateral_most: u64,
    wrong: u64,
    stuck: u64,
}

impl Tally {
    /// `own`: as many records the damage itself may cost.
    fn add(&mut self, outcome: &Outcome, own: u64) {
        self.trials += 1;
        match outcome {
            Outcome::Shut => self.shut += 1,
            Outcome::Died => self.died += 1,
            Outcome::Open { lost, wrong, goes_on } => {
                let others = (lost + wrong).saturating_sub(own);
                self.collateral_trials += u64::from(others > 0);
                self.collateral += others;
                self.collateral_most = self.collateral_most.max(others);
                self.wrong += wrong;
                self.stuck += u64::from(!goes_on);
            }
        }
    }

    fn print(&self, name: &str, what: &str) {
        let Tally { trials, shut, died, collateral_trials, collateral, collateral_most, wrong, stuck } = self;
        println!(
            "{name:<13} {what:<13} {trials} trials: {shut} not opened, {died} took the process down, {collateral_trials} lost others \
             ({collateral} records, at most {collateral_most}), {wrong} records wrong unnoticed, {stuck} take nothing new"
        );
    }
}

/// Damages copies of a filled store at seeded places; of the copies every second is of a store that was killed.
pub fn trials(name: &str, base: &Path, count: u64) {
    let me = std::env::current_exe().expect("this program has a path");
    let whole = [("closed", "damage-fill"), ("killed", "damage-fill-kill")].map(|(left, task)| {
        let whole = base.join(format!("{left}-{name}"));
        let _ = Command::new(&me).args([task, name]).arg(&whole).status().expect("it starts");
        whole
    });
    let copy = base.join(format!("copy-{name}"));
    let mut rng = Rng::new(1);
    for (what, count) in [("any byte", count), ("its own files", count), ("tail", count / 2)] {
        let mut tally = Tally::default();
        for trial in 0..count {
            let _ = std::fs::remove_dir_all(&copy);
            copy_folder(&whole[trial as usize % 2], &copy);
            let own = match what {
                "any byte" => flip_anywhere(&copy, &mut rng),
                "its own files" => flip_own(&copy, trial / 2, &mut rng),
                // The bytes that were torn off may have been of so many records.
                _ => tear(&copy, trial / 2, &mut rng) / SMALL_BYTES as u64 + 2,
            };
            tally.add(&outcome(name, &copy), own);
        }
        tally.print(name, what);
    }
    for folder in whole.iter().chain([&copy]) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Flips a bit among all bytes; how many records it may cost.
fn flip_anywhere(folder: &Path, rng: &mut Rng) -> u64 {
    let files = used_files(folder);
    let (file, at) = anywhere(&files, rng);
    flip(file, at, rng);
    1
}

/// Flips a bit in a file that the database itself keeps, whatever its length: anywhere, near its beginning, near its
/// end, in turn.
fn flip_own(folder: &Path, trial: u64, rng: &mut Rng) -> u64 {
    let files = used_files(folder);
    let own = files.iter().filter(|(path, _)| !path.components().any(|part| part.as_os_str() == "content"));
    let own: Vec<&(PathBuf, Vec<u8>)> = own.collect();
    let chosen = own[rng.below(own.len() as u64) as usize];
    let length = chosen.1.len() as u64;
    let near = length.min(4096);
    let at = match trial % 3 {
        0 => rng.below(length),
        1 => rng.below(near),
        _ => length - 1 - rng.below(near),
    };
    flip(chosen, at, rng);
    1
}

fn flip((path, bytes): &(PathBuf, Vec<u8>), at: u64, rng: &mut Rng) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("it opens");
    let flipped = bytes[at as usize] ^ (1 << rng.below(8));
    file.write_all_at(&[flipped], at).expect("it is written");
}

/// A byte among all bytes.
fn anywhere<'a>(files: &'a [(PathBuf, Vec<u8>)], rng: &mut Rng) -> (&'a (PathBuf, Vec<u8>), u64) {
    let total: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let mut at = rng.below(total);
    for found in files {
        let length = found.1.len() as u64;
        if at < length {
            return (found, at);
        }
        at -= length;
    }
    unreachable!("it is below the sum of all")
}

/// The used end of the file that was written last is lost, up to 16 KiB: cut off, or zeros, in turn; how many bytes.
fn tear(folder: &Path, trial: u64, rng: &mut Rng) -> u64 {
    let newest = used_files(folder)
        .into_iter()
        .max_by_key(|(path, _)| std::fs::metadata(path).and_then(|about| about.modified()).ok());
    let (path, bytes) = newest.expect("there is a file");
    let torn = 1 + rng.below((bytes.len() as u64 - 1).min(16_384));
    let from = bytes.len() as u64 - torn;
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("it opens");
    match trial % 2 {
        0 => file.set_len(from).expect("it is cut"),
        _ => file.write_all_at(&vec![0; torn as usize], from).expect("it is written"),
    }
    torn
}

/// The files that hold something, each as far as it is not zeros.
fn used_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths = Vec::new();
    collect(folder, &mut paths);
    paths.sort();
    let used = paths.into_iter().filter_map(|path| {
        let mut bytes = std::fs::read(&path).expect("it reads");
        let end = bytes.iter().rposition(|byte| *byte != 0)?;
        bytes.truncate(end + 1);
        Some((path, bytes))
    });
    used.collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.file_type().expect("it is there").is_dir() {
            collect(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().expect("it is there").is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("it is copied");
            let modified = entry.metadata().and_then(|about| about.modified()).expect("a time");
            let file = std::fs::OpenOptions::new().write(true).open(&target).expect("it opens");
            file.set_modified(modified).expect("it is set");
        }
    }
}

fn outcome(name: &str, folder: &Path) -> Outcome {
    let me = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(me)
        .args(["damage-look", name])
        .arg(folder)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            let mut said = String::new();
            let _ = std::io::Read::read_to_string(child.stdout.as_mut().expect("it is piped"), &mut said);
            let words: Vec<&str> = said.split_whitespace().collect();
            return match &words[..] {
                _ if !status.success() => Outcome::Died,
                ["shut"] => Outcome::Shut,
                ["open", _, lost, wrong, goes_on] => {
                    let number = |text: &str| text.parse().expect("a number");
                    Outcome::Open { lost: number(lost), wrong: number(wrong), goes_on: *goes_on == "1" }
                }
                _ => Outcome::Died,
            };
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Outcome::Died;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
