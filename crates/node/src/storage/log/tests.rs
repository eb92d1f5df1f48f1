mod damaged;
pub(super) mod device;
mod full;
mod numbers;
mod owners;
mod power;
mod unreadable;

use super::direct::DIRECT_BYTES_MIN;
use super::*;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::sync::atomic::{AtomicU64, Ordering};

/// Temporary folder, removed on drop.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Place::below(&std::env::temp_dir(), name)
    }

    /// In memory, if the system has a place for it: for many small stores whose syncs do not matter.
    fn in_memory(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Place::below(memory, name) } else { Place::new(name) }
    }

    /// Creates a temporary folder, whatever names other tests use at the same time.
    fn below(folder: &Path, name: &str) -> Self {
        static PLACES: AtomicU64 = AtomicU64::new(0);
        let (process, number) = (std::process::id(), PLACES.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(format!("longwire-log-{name}-{process}-{number}"));
        let _ = fs::remove_dir_all(&path);
        Place(path)
    }

    fn open(&self) -> (Log, Opened) {
        Log::open(&self.0).expect("the store opens")
    }

    fn last_segment(&self) -> PathBuf {
        self.files("log").pop().expect("there is a segment")
    }

    /// Returns the files with this extension, in order.
    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == ending));
        paths.sort();
        paths
    }

    /// Removes the segment that the last opening created, with its listing.
    fn remove_last_segment(&self) {
        let path = self.last_segment();
        fs::remove_file(path.with_extension("listing")).unwrap();
        fs::remove_file(path).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn append(record: u64, offset: u64, data: impl Into<Bytes>) -> StoreWrite {
    StoreWrite::Append { record: RecordId(record), offset, data: data.into() }
}

fn remove(record: u64) -> StoreWrite {
    StoreWrite::Remove { record: RecordId(record) }
}

/// Record of 40,000 bytes, in two appends.
fn write_whole(log: &mut Log, record: u64) {
    let data = Bytes::from(vec![record as u8; 20_000]);
    log.write(&[append(record, 0, data.clone()), append(record, 20_000, data)]).unwrap();
}

/// Returns the offset of the data of the first entry with this number of bytes of this value. The header before it may end
/// with the same value.
fn data_at(path: &Path, value: u8, length: usize) -> u64 {
    let bytes = fs::read(path).unwrap();
    let near = bytes.windows(8).position(|window| window == [value; 8]).expect("it is there");
    let run = bytes[near..].iter().take_while(|byte| **byte == value).count();
    (near + run - length) as u64
}

/// Removes the records 1 to `last` except those kept, and continues until there is so much waste that the first segment is
/// removed.
fn compact_but(log: &mut Log, last: u64, kept: [u64; 2], first: &Path) {
    for record in (1..=last).filter(|record| !kept.contains(record)) {
        log.write(&[remove(record)]).unwrap();
    }
    for record in 100..160 {
        write_whole(log, record);
        log.write(&[remove(record)]).unwrap();
        while log.maintain() {}
    }
    assert!(!first.exists(), "the segment has gone");
}

fn content(log: &mut Log) -> BTreeMap<u64, Bytes> {
    let reader = log.reader();
    let read =
        |(id, length): (RecordId, u64)| (id.0, reader.read(id, 0, length as u32).expect("it is whole"));
    log.list().into_iter().map(read).collect()
}

#[test]
fn what_was_written_is_found_again_and_what_was_removed_is_not() {
    let place = Place::new("again");
    let (mut log, opened) = place.open();
    assert_eq!(opened, Opened::default());
    log.write(&[append(1, 0, "one "), append(2, 0, "two"), append(1, 4, "and more")]).unwrap();
    log.write(&[append(3, 0, vec![7; 300_000]), remove(2)]).unwrap();
    let before = content(&mut log);
    assert_eq!(before[&1], "one and more");
    assert_eq!(before[&3].len(), 300_000);
    assert_eq!(log.reader().read(RecordId(3), 131_000, 200).unwrap(), vec![7; 200], "across entries");
    assert_eq!(log.reader().read(RecordId(1), 4, 3).unwrap(), "and");
    assert_eq!(log.reader().read(RecordId(1), 90, 3).unwrap(), "", "behind the end");
    assert_eq!(log.reader().read(RecordId(2), 0, 3), Err(StorageFailure::Missing));
    drop(log);
    let (mut log, opened) = place.open();
    assert_eq!(opened, Opened { records: 2, ..Opened::default() });
    assert_eq!(content(&mut log), before);
}

/// A reader keeps the entry of which it gave a part.
#[test]
fn parts_of_records_in_turn_are_those_of_each_record() {
    let place = Place::new("parts");
    let (mut log, _) = place.open();
    let (one, two) = (vec![1; 50_000], vec![2; 50_000]);
    log.write(&[append(1, 0, one.clone()), append(2, 0, two.clone()), append(1, 50_000, two.clone())])
        .unwrap();
    let reader = log.reader();
    let part = |record, offset| reader.read(RecordId(record), offset, 10_000);
    for offset in [0, 10_000, 40_000, 10_000] {
        assert_eq!(part(1, offset).unwrap(), one[..10_000], "{offset}");
        assert_eq!(part(2, offset).unwrap(), two[..10_000], "{offset}");
        assert_eq!(part(1, 50_000 + offset).unwrap(), two[..10_000], "{offset}");
    }
    assert_eq!(part(1, 45_000).unwrap(), [&one[..5_000], &two[..5_000]].concat(), "across entries");
    assert_eq!(part(2, 0).unwrap(), two[..10_000]);
    log.write(&[remove(2)]).unwrap();
    assert_eq!(part(2, 10_000), Err(StorageFailure::Missing));
    log.write(&[append(2, 0, one.clone())]).unwrap();
    assert_eq!(part(2, 10_000).unwrap(), one[..10_000], "of the new record");
}

#[test]
fn only_one_at_a_time() {
    let place = Place::new("alone");
    let (_log, _) = place.open();
    assert!(matches!(Log::open(&place.0), Err(OpenError::InUse)));
    assert!(matches!(check(&place.0, &mut |_, _| {}), Err(OpenError::InUse)));
    assert!(matches!(repair(&place.0, &mut |_, _| {}), Err(OpenError::InUse)));
}

/// The copy that a child process has while it is being started.
#[test]
fn a_copy_of_its_file_does_not_keep_the_lock() {
    let place = Place::new("copied");
    let (log, _) = place.open();
    let _copy = log.lock.try_clone().unwrap();
    drop(log);
    drop(place.open());
}

#[test]
fn a_batch_that_a_crash_tore_anywhere_leaves_all_before_it_and_a_prefix() {
    let place = Place::new("torn");
    let (mut log, _) = place.open();
    log.write(&[append(1, 0, "kept")]).unwrap();
    let path = place.last_segment();
    let whole = fs::metadata(&path).unwrap().len();
    let listing = path.with_extension("listing");
    let listed = fs::read(&listing).unwrap();
    let lock = place.0.join("lock");
    let noted = fs::read(&lock).unwrap();
    log.write(&[append(2, 0, "first"), append(2, 5, "second"), append(3, 0, vec![1; 5000])]).unwrap();
    drop(log);
    let bytes = fs::read(&path).unwrap();
    for cut in (whole as usize..bytes.len()).step_by(43) {
        fs::write(&path, &bytes[..cut]).unwrap();
        // The crash came before the batch was listed and summarised.
        fs::write(&listing, &listed).unwrap();
        fs::write(&lock, &noted).unwrap();
        let (mut log, opened) = place.open();
        let found = content(&mut log);
        assert_eq!(found[&1], "kept");
        assert!(!found.contains_key(&3));
        assert!(found.get(&2).is_none_or(|two| two == "first" || two == "firstsecond"), "cut at {cut}");
        assert_eq!(opened.damaged, 0);
        // The segment created by this opening would affect the next cut.
        drop(log);
        place.remove_last_segment();
    }
    for at in (whole as usize..bytes.len()).step_by(211) {
        let mut torn = bytes.clone();
        torn[at..].fill(0);
        fs::write(&path, &torn).unwrap();
        fs::write(&listing, &listed).unwrap();
        fs::write(&lock, &noted).unwrap();
        let (mut log, _) = place.open();
        assert_eq!(content(&mut log)[&1], "kept", "zeros from {at}");
        drop(log);
        // No part of a torn write is truncated or reappears, whatever follows it.
        let (mut log, opened) = place.open();
        assert!(!content(&mut log).contains_key(&3), "zeros from {at}");
        assert_eq!((opened.damaged, opened.torn_bytes), (0, 0), "zeros from {at}: it was told before");
        assert!(fs::read(&path).unwrap() == torn, "zeros from {at}");
        drop(log);
        place.remove_last_segment();
    }
}

/// The crash came between the removal and the mark after it.
#[test]
fn a_removal_that_nothing_vouches_for_is_no_record_that_is_missing() {
    let place = Place::new("vouched");
    let (mut log, _) = place.open();
    log.write(&[append(1, 0, "goes"), append(2, 0, "stays")]).unwrap();
    let path = place.last_segment();
    let others = [path.with_extension("listing"), place.0.join("lock")];
    let before = others.each_ref().map(|path| fs::read(path).unwrap());
    let whole = fs::metadata(&path).unwrap().len();
    log.write(&[remove(1)]).unwrap();
    drop(log);
    OpenOptions::new().write(true).open(&path).unwrap().set_len(whole + HEADER_BYTES as u64).unwrap();
    others.iter().zip(before).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    let (mut log, opened) = place.open();
    assert_eq!(opened, Opened { records: 1, ..Opened::default() });
    assert_eq!(content(&mut log).into_keys().collect::<Vec<_>>(), [2]);
}

/// A listing is missing if the device was full when it was created, or if it was deleted.
#[test]
fn a_segment_without_a_listing_goes_as_others_do() {
    let place = Place::new("unlisted");
    let (path, _) = sample(&place);
    let (mut log, _) = place.open();
    fs::remove_file(path.with_extension("listing")).unwrap();
    log.write(&[remove(1), remove(2), remove(3)]).unwrap();
    assert!(!path.exists(), "nothing in it counts");
    assert_eq!(lock_index(&log.index).segments.len(), 1, "it takes no space any more");
}

#[test]
fn a_damaged_entry_takes_no_other_with_it() {
    let place = Place::new("damage");
    let (mut log, _) = place.open();
    for batch in 0..4 {
        let writes: Vec<StoreWrite> = (0..5)
            .map(|at| batch * 5 + at)
            .map(|record| append(record, 0, vec![record as u8; 500]))
            .collect();
        log.write(&writes).unwrap();
    }
    let end = fs::metadata(place.last_segment()).unwrap().len() as usize;
    drop(log);
    let path = place.last_segment();
    let bytes = fs::read(&path).unwrap();
    let mut met = 0;
    for at in (0..end).step_by(193) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let (mut log, opened) = place.open();
        let reader = log.reader();
        let whole =
            log.list().iter().filter(|(id, length)| reader.read(*id, 0, *length as u32).is_ok()).count();
        assert!(whole >= 19, "only {whole} of 20 after damage at {at}");
        met += opened.damaged;
        drop(log);
        place.remove_last_segment();
    }
    // Only the very last mark distinguishes the last batch from a torn write; it may be damaged, too.
    assert!(met > 0, "damaged headers are noticed");
}

#[test]
fn payload_cannot_pass_for_an_entry() {
    let place = Place::new("forged");
    let (mut log, _) = place.open();
    let mut forged = Vec::new();
    EntryHeader::remove(RecordId(1)).encode(SealKey(0), &mut forged);
    log.write(&[append(1, 0, "kept")]).unwrap();
    log.write(&[append(2, 0, forged)]).unwrap();
    log.write(&[append(3, 0, "kept, too")]).unwrap();
    drop(log);
    let path = place.last_segment();
    // With it the record would still be found.
    fs::remove_file(path.with_extension("listing")).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    // The header of the second record's entry is damaged: the next one is searched for.
    let at = bytes.windows(4).enumerate().filter(|(_, window)| window == b"LWE1").nth(3).unwrap().0;
    bytes[at + 10] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let (mut log, opened) = place.open();
    let found = content(&mut log);
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1, 3]);
    // The damaged header, and the missing record known from the count.
    assert_eq!((opened.damaged, opened.unnamed), (2, 1));
}

#[test]
fn space_comes_back_and_what_counts_is_moved() {
    let place = Place::new("space");
    let (mut log, _) = place.open();
    log.write(&[append(1, 0, "an old one that stays")]).unwrap();
    let piece = Bytes::from(vec![9; 1 << 20]);
    for record in 2..600 {
        log.write(&[append(record, 0, piece.clone())]).unwrap();
        log.write(&[remove(record)]).unwrap();
        while log.maintain() {}
    }
    let (total, live) = log.totals();
    assert!(total < 4 * SEGMENT_BYTES, "{total} bytes for {live}");
    assert_eq!(content(&mut log)[&1], "an old one that stays");
    drop(log);
    let (mut log, _) = place.open();
    assert_eq!(content(&mut log).len(), 1);
}

/// Flips a bit of a file.
fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

/// Returns the offsets of the headers in a segment.
fn places(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).unwrap();
    let marks = bytes.windows(4).enumerate().filter(|(_, window)| window == b"LWE1");
    marks.map(|(at, _)| at as u64).collect()
}

/// Three records in one batch: the second in three entries. Then a fourth that is removed again.
fn sample(place: &Place) -> (PathBuf, Vec<u64>) {
    let (mut log, _) = place.open();
    let long = vec![2; 2 * DATA_BYTES_MAX + 10];
    log.write(&[append(1, 0, "one"), append(2, 0, long), append(3, 0, "three"), append(4, 0, "four")])
        .unwrap();
    log.write(&[remove(4)]).unwrap();
    let path = place.last_segment();
    let places = places(&path);
    // Mark, 1, 2, 2, 2, 3, 4, mark, removal, mark.
    assert_eq!(places.len(), 10);
    (path, places)
}

/// Opens a store, reads all of it, and returns what was readable and what was reported.
fn look(place: &Place) -> (Vec<u64>, Vec<StoreDamage>) {
    let (mut log, _) = place.open();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    log.quarantine().listen(move |damage| tell.lock().unwrap().push(damage));
    let reader = log.reader();
    let mut whole = Vec::new();
    for (id, length) in log.list() {
        if reader.read(id, 0, length as u32).is_ok() {
            whole.push(id.0);
        }
    }
    let told = told.lock().unwrap().clone();
    (whole, told)
}

#[test]
fn whatever_is_damaged_is_told_and_kept_and_takes_nothing_else_with_it() {
    let header = |entry: usize| move |places: &[u64]| places[entry] + 9;
    let data = |entry: usize| move |places: &[u64]| places[entry] + HEADER_BYTES as u64 + 1;
    type At = Box<dyn Fn(&[u64]) -> u64>;
    // Records that are intact with the listing, and without.
    type Case = (&'static str, At, [&'static [u64]; 2], Option<DamageKind>);
    const ALL: &[u64] = &[1, 2, 3];
    let cases: Vec<Case> = vec![
        ("nothing", Box::new(|_| 9), [ALL, ALL], Some(DamageKind::Preamble)),
        ("the first mark", Box::new(header(0)), [ALL, ALL], Some(DamageKind::Header)),
        ("a header", Box::new(header(1)), [ALL, &[2, 3]], Some(DamageKind::Header)),
        ("data", Box::new(data(1)), [&[2, 3], &[2, 3]], Some(DamageKind::Data)),
        ("a header in the middle of a record", Box::new(header(3)), [ALL, &[1, 3]], Some(DamageKind::Header)),
        ("the data in the middle of a record", Box::new(data(3)), [&[1, 3], &[1, 3]], Some(DamageKind::Data)),
        ("the data before a mark", Box::new(data(6)), [ALL, ALL], None),
        ("a mark between batches", Box::new(header(7)), [ALL, ALL], Some(DamageKind::Header)),
        ("a removal", Box::new(header(8)), [ALL, &[1, 2, 3, 4]], Some(DamageKind::Header)),
        ("the last mark", Box::new(header(9)), [ALL, ALL], None),
    ];
    let both = cases.iter().flat_map(|case| [(case, true), (case, false)]);
    for ((name, at, whole, harm), listed) in both {
        let (whole, harm) = (whole[usize::from(!listed)], *harm);
        let place = Place::new("kinds");
        let (path, places) = sample(&place);
        if !listed {
            fs::remove_file(path.with_extension("listing")).unwrap();
        }
        let before = fs::read(&path).unwrap();
        flip(&path, at(&places));
        let (found, told) = look(&place);
        assert_eq!(found, whole, "{name}, {listed}");
        assert_eq!(told.first().map(|damage| damage.harm), harm, "{name}: {told:?}");
        for damage in told.iter().filter(|damage| damage.harm != DamageKind::Unnamed) {
            let kept = fs::read(damage.kept.as_ref().expect("there is space")).unwrap();
            let from = damage.at as usize;
            let original = &before[from..from + damage.bytes as usize];
            let differ = kept
                .windows(original.len())
                .map(|kept| kept.iter().zip(original).filter(|(a, b)| a != b).count());
            // All of it except the flipped bit; for a missing part, the part after it is reported.
            assert!(differ.min().unwrap() <= 1, "{name}");
        }
        let lines = fs::read_to_string(place.0.join("damaged/list.jsonl")).unwrap_or_default();
        assert_eq!(lines.lines().count(), told.len(), "{name}");
    }
}

#[test]
fn a_damaged_record_is_told_once_and_goes_when_it_is_removed() {
    let place = Place::new("once");
    let (path, places) = sample(&place);
    flip(&path, places[3] + 50);
    let (mut log, _) = place.open();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    log.quarantine().listen(move |damage| tell.lock().unwrap().push(damage));
    let reader = log.reader();
    assert_eq!(reader.read(RecordId(2), 0, 10).unwrap().len(), 10, "its beginning is whole");
    for _ in 0..3 {
        assert_eq!(reader.read(RecordId(2), DATA_BYTES_MAX as u64, 10), Err(StorageFailure::Damaged));
    }
    let [damage] = &told.lock().unwrap().clone()[..] else { panic!("told once") };
    assert_eq!((damage.harm, damage.record), (DamageKind::Data, Some(RecordId(2))));
    let kept = fs::metadata(damage.kept.as_ref().unwrap()).unwrap().len();
    assert_eq!(kept as usize, 2 * DATA_BYTES_MAX + 10 + 3 * HEADER_BYTES, "all of the record");
    log.write(&[remove(2)]).unwrap();
    drop(log);
    assert_eq!(look(&place), (vec![1, 3], vec![]));
}

#[test]
fn damage_beyond_the_limit_is_told_and_not_kept() {
    let place = Place::new("limit");
    let (path, places) = sample(&place);
    fs::create_dir_all(place.0.join("damaged")).unwrap();
    let full = File::create(place.0.join("damaged/00000000-record-0")).unwrap();
    full.set_len(64 << 20).unwrap();
    flip(&path, places[1] + HEADER_BYTES as u64 + 1);
    let (whole, told) = look(&place);
    assert_eq!(whole, [2, 3]);
    assert_eq!((told.len(), told[0].kept.as_deref()), (1, None));
}

/// There is no space for a copy: the segment itself is kept instead of being removed.
#[test]
fn a_segment_with_damage_that_is_kept_nowhere_else_is_put_away() {
    let place = Place::new("put-away");
    let (path, places) = sample(&place);
    fs::create_dir_all(place.0.join("damaged")).unwrap();
    File::create(place.0.join("damaged/00000000-record-0")).unwrap().set_len(64 << 20).unwrap();
    flip(&path, places[1] + HEADER_BYTES as u64 + 1);
    let damaged = fs::read(&path).unwrap();
    let (mut log, _) = place.open();
    assert_eq!(log.reader().read(RecordId(1), 0, 3), Err(StorageFailure::Damaged));
    log.write(&[remove(1), remove(2), remove(3)]).unwrap();
    assert!(!path.exists(), "nothing in it counts");
    assert!(fs::read(place.0.join("damaged").join(path.file_name().unwrap())).unwrap() == damaged);
}

/// A record with no data left needs no copy, and its segment is not kept for it.
#[test]
fn a_segment_of_which_nothing_is_left_to_keep_goes() {
    let place = Place::new("nothing-left");
    let (path, places) = sample(&place);
    OpenOptions::new().write(true).open(&path).unwrap().set_len(places[5]).unwrap();
    let (mut log, opened) = place.open();
    assert_eq!((opened.records, opened.harmed), (3, 1));
    log.write(&[remove(1), remove(2), remove(3)]).unwrap();
    assert!(!path.exists(), "nothing in it counts");
    let kept: Vec<PathBuf> =
        fs::read_dir(place.0.join("damaged")).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(kept, [place.0.join("damaged/list.jsonl")]);
}

/// Whole segments in the quarantine and the list do not count as copies; whole segments have a separate limit.
#[test]
fn whole_files_and_copies_have_limits_of_their_own() {
    let place = Place::new("limits");
    let (path, places) = sample(&place);
    let damaged = place.0.join("damaged");
    fs::create_dir_all(&damaged).unwrap();
    let put = |name: &str, bytes| File::create(damaged.join(name)).unwrap().set_len(bytes).unwrap();
    put("00000009.log", 256 << 20);
    put("list.jsonl", 16 << 20);
    flip(&path, places[1] + HEADER_BYTES as u64 + 1);
    let (_, told) = look(&place);
    assert!(told[0].kept.as_ref().unwrap().ends_with("00000001-record-1"), "{told:?}");
    put("00000000-record-0", 64 << 20);
    flip(&path, places[5] + HEADER_BYTES as u64 + 1);
    let (mut log, _) = place.open();
    assert_eq!(log.reader().read(RecordId(3), 0, 3), Err(StorageFailure::Damaged));
    log.write(&[remove(1), remove(2), remove(3)]).unwrap();
    assert!(!path.exists() && !damaged.join("00000001.log").exists(), "there is no place for it");
}

/// A repair reports the number of dropped reports.
#[test]
fn repairing_counts_what_it_does_not_list() {
    let place = Place::new("uncounted");
    let (mut log, _) = place.open();
    let many: Vec<StoreWrite> = (0..5000).map(|record| append(record, 0, "x")).collect();
    log.write(&many).unwrap();
    drop(log);
    fs::write(place.last_segment(), "").unwrap();
    let repaired = repair(&place.0, &mut |_, _| {}).unwrap();
    assert_eq!(repaired.removed, 5000);
    // The range of the file is reported in addition.
    assert_eq!(repaired.damage.len() as u64 + repaired.untold, 5001);
    let document = serde_json::to_value(&repaired).unwrap();
    assert_eq!(document["untold"], repaired.untold);
}

/// Long batches between short ones: they go to the device in another way.
#[test]
fn long_and_short_batches_are_there_after_a_restart() {
    let place = Place::new("long");
    let lengths = [10, DIRECT_BYTES_MIN, 5000, 3 * DIRECT_BYTES_MIN + 77, 1, 2 << 20, 100];
    let data = |record: u64| Bytes::from(vec![record as u8 + 1; lengths[record as usize]]);
    let records = 0..lengths.len() as u64;
    let (mut log, _) = place.open();
    for record in records.clone() {
        let append = StoreWrite::Append { record: RecordId(record), offset: 0, data: data(record) };
        log.write(&[append]).unwrap();
    }
    drop(log);
    let (mut log, opened) = place.open();
    assert_eq!((opened.records, opened.damaged, opened.torn_bytes), (lengths.len(), 0, 0));
    let expected: Vec<(RecordId, u64)> =
        records.clone().map(|record| (RecordId(record), data(record).len() as u64)).collect();
    assert_eq!(log.list(), expected);
    let reader = log.reader();
    for record in records {
        assert!(reader.read(RecordId(record), 0, u32::MAX).unwrap() == data(record), "record {record}");
    }
    let ranges = reader.ranges_from(RecordId(2), 4000, 2000);
    assert_eq!(ranges, [(RecordId(2), 4000, 1000), (RecordId(3), 0, 1000)]);
}
