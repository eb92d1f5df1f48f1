//! A store of several segments with every kind of damage to every one of its files: the records read correctly and those
//! reported as damaged or missing are together the records that were accepted and not removed.

use super::*;
use longwire_proto::rng::Rng;
use std::ffi::OsStr;

/// Segments, each created by a separate opening.
const SEGMENTS: u64 = 3;
/// Size of the device: no waste is enough to be moved, and the reserve is short.
const ROOM: u64 = 8 << 20;

fn open_small(place: &Place) -> Result<(Log, Opened), OpenError> {
    fs::create_dir_all(&place.0).unwrap();
    Log::open_on(&place.0, Device::small(&place.0, ROOM))
}

/// Returns the files of a folder and its subfolders with their contents.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let mut all = Files::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => all.extend(files(&path)),
            path if path.file_name() == Some(OsStr::new("reserve")) => {}
            path => drop(all.insert(path.clone(), fs::read(path).unwrap())),
        }
    }
    all
}

/// Store in a given state, and its known contents.
struct Sample {
    place: Place,
    files: Files,
    kept: BTreeMap<u64, Bytes>,
}

impl Sample {
    /// Some records have parts in two segments, some are removed in the same segment and some in a later one.
    fn new(name: &str) -> Self {
        let place = Place::in_memory(name);
        let (mut kept, mut rng) = (BTreeMap::new(), Rng::new(7));
        let mut bytes = |length: usize| {
            let mut data = vec![0; length];
            rng.fill(&mut data);
            Bytes::from(data)
        };
        for segment in 0..SEGMENTS {
            let (mut log, opened) = open_small(&place).unwrap();
            assert_eq!((opened.damaged, opened.records), (0, kept.len()));
            let first = segment * 10;
            let mut batch = Vec::new();
            for (record, length) in (first..).zip([150, 5, 0, 90, 200, 40]) {
                let data = bytes(length);
                batch.push(append(record, 0, data.clone()));
                // A record without a byte does not exist.
                if length > 0 {
                    kept.insert(record, data);
                }
            }
            log.write(&batch).unwrap();
            let mut batch = vec![remove(first + 3)];
            kept.remove(&(first + 3));
            if segment > 0 {
                batch.push(remove(first - 6));
                kept.remove(&(first - 6));
                // The last record of the previous segment continues here.
                let (record, more) = (first - 5, bytes(60));
                let begun = kept[&record].clone();
                batch.push(append(record, begun.len() as u64, more.clone()));
                kept.insert(record, [begun, more].concat().into());
            }
            log.write(&batch).unwrap();
        }
        let files = files(&place.0);
        assert_eq!(files.len() as u64, 2 * SEGMENTS + 1, "segments, listings and the lock");
        Sample { place, files, kept }
    }

    /// Restores the original state.
    fn restore(&self) {
        let _ = fs::remove_dir_all(self.place.0.join("damaged"));
        for path in files(&self.place.0).keys().filter(|path| !self.files.contains_key(*path)) {
            fs::remove_file(path).unwrap();
        }
        for (path, bytes) in &self.files {
            fs::write(path, bytes).unwrap();
        }
    }

    /// Checks the store without changes, and compares the result with the known contents.
    fn check(&self, how: &str) {
        let before = files(&self.place.0);
        match check(&self.place.0, &mut |_, _| {}) {
            Ok(checked) => {
                let named: BTreeSet<u64> =
                    checked.damage.iter().filter_map(|damage| Some(damage.record?.0)).collect();
                assert!(named.iter().all(|record| self.kept.contains_key(record)), "{how}: {checked:?}");
                let all = checked.whole + named.len() as u64 + checked.unnamed;
                assert_eq!(all, self.kept.len() as u64, "{how}: {checked:#?}");
            }
            Err(error) => assert!(matches!(error, OpenError::DamagedFormat { .. }), "{how}: {error}"),
        }
        assert!(before == files(&self.place.0), "{how}: nothing is changed");
    }

    /// Opens the store twice and repairs it twice, and compares each result with the known contents.
    fn open(&self, how: &str) {
        self.check(how);
        let before = files(&self.place.0);
        let first = match self.look(how) {
            Ok(first) => first,
            Err(error) => {
                assert!(matches!(error, OpenError::DamagedFormat { .. }), "{how}: {error}");
                assert!(before == files(&self.place.0), "{how}: nothing is changed");
                return self.mend_format(how, &before);
            }
        };
        // Nothing was deleted: each file is unchanged, longer, or in the quarantine; or it is a listing or the lock file,
        // which are rewritten.
        let after = files(&self.place.0);
        for (path, bytes) in before {
            let is_made_anew = bytes.starts_with(b"LWLST") || path.extension() != Some(OsStr::new("log"));
            // A segment with nothing but marks is removed.
            let is_bare = bytes.len() <= PREAMBLE_BYTES + HEADER_BYTES;
            assert!(
                is_made_anew || is_bare || after.values().any(|other| other.starts_with(&bytes)),
                "{how}: {path:?}"
            );
        }
        assert_eq!(self.look(how).unwrap(), first, "{how}: a second time");
        let (whole, named, unnamed) = first;
        let repaired = repair(&self.place.0, &mut |_, _| {}).unwrap();
        assert_eq!(repaired.now.whole, whole.len() as u64, "{how}: repaired");
        let gone = repaired.removed;
        assert_eq!(repaired.now.harmed + gone, named.len() as u64, "{how}: {repaired:#?}");
        assert_eq!(repaired.now.unnamed, 0, "{how}");
        let again = repair(&self.place.0, &mut |_, _| {}).unwrap();
        assert_eq!((again.removed, again.now.harmed), (0, repaired.now.harmed), "{how}: repaired twice");
        let (left, still_named, none) = self.look_for(how, gone + unnamed).unwrap();
        assert_eq!((left, none), (whole, 0), "{how}: after repairing");
        assert!(still_named.is_subset(&named), "{how}");
    }

    /// Repairs a store that cannot be opened as it is: then all of it is readable, and there are copies of what was changed.
    fn mend_format(&self, how: &str, before: &Files) {
        let repaired = repair(&self.place.0, &mut |_, _| {}).unwrap();
        assert_eq!(
            (repaired.now.whole, repaired.now.unnamed),
            (self.kept.len() as u64, 0),
            "{how}: {repaired:?}"
        );
        let after = files(&self.place.0);
        for bytes in before.values().filter(|bytes| bytes.starts_with(b"LW") && bytes[5..8] != *b"001") {
            assert!(after.values().any(|kept| kept[..] == bytes[..PREAMBLE_BYTES]), "{how}: it is kept");
        }
        let (whole, _, unnamed) = self.look(how).unwrap();
        assert_eq!((whole.len(), unnamed), (self.kept.len(), 0), "{how}");
    }

    fn look(&self, how: &str) -> Result<(BTreeSet<u64>, BTreeSet<u64>, u64), OpenError> {
        self.look_for(how, 0)
    }

    /// Returns the intact records, those reported as damaged, and the number of other missing ones; `gone` ones are known to
    /// be lost for good.
    fn look_for(&self, how: &str, gone: u64) -> Result<(BTreeSet<u64>, BTreeSet<u64>, u64), OpenError> {
        let (mut log, opened) = open_small(&self.place)?;
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = told.clone();
        log.quarantine().listen(move |damage| tell.lock().unwrap().push(damage));
        let reader = log.reader();
        let mut whole = BTreeSet::new();
        for (record, length) in log.list() {
            if let Ok(data) = reader.read(record, 0, length as u32) {
                assert_eq!(Some(&data), self.kept.get(&record.0), "{how}: record {record:?}");
                whole.insert(record.0);
            }
        }
        let told = told.lock().unwrap();
        let named: BTreeSet<u64> = told.iter().filter_map(|damage| Some(damage.record?.0)).collect();
        assert!(whole.is_disjoint(&named), "{how}: {told:#?}");
        assert!(named.iter().all(|record| self.kept.contains_key(record)), "{how}: {told:#?}");
        let all = (whole.len() + named.len()) as u64 + opened.unnamed + gone;
        assert_eq!(all, self.kept.len() as u64, "{how}: {opened:?} {told:#?}");
        // Damage found when the store opens is counted and reported.
        assert!(
            opened.harmed as usize <= named.len() && (opened.damaged > 0) >= (opened.harmed > 0),
            "{how}"
        );
        Ok((whole, named, opened.unnamed))
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.place.0).unwrap().display().to_string()
    }
}

#[test]
fn a_file_that_is_missing_emptied_cut_zeroed_or_flipped_anywhere_is_known_to_be() {
    let sample = Sample::new("swept");
    sample.open("as it was left");
    for (path, bytes) in &sample.files {
        let name = sample.name(path);
        let damaged = |bytes: &[u8], how: &str, thoroughly: bool| {
            sample.restore();
            fs::write(path, bytes).unwrap();
            match thoroughly {
                true => sample.open(&format!("{name} {how}")),
                false => sample.check(&format!("{name} {how}")),
            }
        };
        sample.restore();
        fs::remove_file(path).unwrap();
        sample.open(&format!("{name} missing"));
        for cut in 0..bytes.len() {
            damaged(&bytes[..cut], &format!("cut at {cut}"), cut % 97 == 0);
        }
        for (length, step) in [(1, 1), (40, 11), (300, 29), (4096, 101)] {
            for at in (0..bytes.len()).step_by(step) {
                let mut bytes = bytes.clone();
                let end = bytes.len().min(at + length);
                bytes[at..end].fill(0);
                damaged(&bytes, &format!("zeroed from {at} to {end}"), at / step % 61 == 0);
            }
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            damaged(&bytes, &format!("flipped at {at}"), at % 89 == 0);
        }
        let longer = [&bytes[..], &[7; 500]].concat();
        damaged(&longer, "with more behind it", true);
    }
}

#[test]
fn files_that_are_swapped_doubled_or_renamed_are_read_as_what_they_are() {
    let sample = Sample::new("swapped");
    let paths: Vec<&PathBuf> = sample.files.keys().collect();
    for (place, one) in paths.iter().enumerate() {
        for other in &paths[place + 1..] {
            sample.restore();
            fs::write(one, &sample.files[*other]).unwrap();
            fs::write(other, &sample.files[*one]).unwrap();
            sample.open(&format!("{} and {} swapped", sample.name(one), sample.name(other)));
        }
        for other in &paths {
            if one != other {
                sample.restore();
                fs::write(other, &sample.files[*one]).unwrap();
                sample.open(&format!("{} written over {}", sample.name(one), sample.name(other)));
            }
        }
        for name in ["00000009.log", "00000009.listing", "00000000.log", "9.log"] {
            sample.restore();
            fs::copy(one, sample.place.0.join(name)).unwrap();
            sample.open(&format!("{} twice, as {name}", sample.name(one)));
            sample.restore();
            fs::rename(one, sample.place.0.join(name)).unwrap();
            sample.open(&format!("{} renamed to {name}", sample.name(one)));
        }
    }
}

/// The oldest segment and its listing together: no file identifies the records, but the count gives their number.
#[test]
fn records_that_nothing_names_are_counted() {
    let sample = Sample::new("unnamed");
    let path = segment_path(&sample.place.0, 1);
    fs::remove_file(path.with_extension("listing")).unwrap();
    fs::remove_file(path).unwrap();
    sample.open("without all of the oldest segment");
    sample.restore();
    let path = segment_path(&sample.place.0, 1);
    fs::remove_file(path.with_extension("listing")).unwrap();
    fs::write(path, "").unwrap();
    sample.open("with an empty file for the oldest segment");
    sample.restore();
    let (_, opened) = open_small(&sample.place).unwrap();
    assert_eq!(opened.unnamed, 0);
}

#[test]
fn a_store_of_another_format_or_another_store_or_none_is_refused_and_not_changed() {
    let sample = Sample::new("formats");
    let refused = |wanted: &dyn Fn(&OpenError) -> bool, how: &str| {
        let before = files(&sample.place.0);
        let mut nothing = |_, _| {};
        let opened = open_small(&sample.place).map(drop);
        let checked = check(&sample.place.0, &mut nothing).map(drop);
        let repaired = repair(&sample.place.0, &mut nothing).map(drop);
        for error in [opened, checked, repaired].map(Result::unwrap_err) {
            assert!(wanted(&error), "{how}: {error:?}");
            assert!(error.to_string().ends_with("nothing was changed"), "{error}");
        }
        assert!(before == files(&sample.place.0), "{how}");
        sample.restore();
    };
    for (path, bytes) in &sample.files {
        for format in [0, 2, 7, 999] {
            let other = |error: &OpenError| matches!(error, OpenError::OtherFormat { format: said, .. } if *said == format);
            let mut bytes = bytes.clone();
            bytes[5..8].copy_from_slice(format!("{format:03}").as_bytes());
            let crc = crc32c(&bytes[..16]);
            bytes[16..20].copy_from_slice(&crc.to_be_bytes());
            fs::write(path, bytes).unwrap();
            refused(&other, &format!("{} of format {format}", sample.name(path)));
        }
    }
    // A segment of another store is in the folder.
    let other = Sample::new("formats-other");
    for path in sample.files.keys() {
        let name = sample.name(path);
        fs::copy(other.place.0.join(&name), path).unwrap();
        refused(&|error| matches!(error, OpenError::OtherStore { .. }), &format!("{name} of another store"));
    }
    // Nothing is left that identifies the store.
    for (path, bytes) in &sample.files {
        let zeros = bytes.len().min(4096);
        let bytes = if sample.name(path) == "lock" {
            Vec::new()
        } else {
            [&vec![0; zeros][..], &bytes[zeros..]].concat()
        };
        fs::write(path, bytes).unwrap();
    }
    refused(&|error| matches!(error, OpenError::Foreign { .. }), "all beginnings are zero");
    // Files of something else with such names.
    for path in sample.files.keys() {
        fs::write(path, "12 write-ahead\n").unwrap();
    }
    refused(&|error| matches!(error, OpenError::Foreign { .. }), "files of something else");
}

/// The checksum distinguishes a damaged format number from another version, if another file has the store's number. Opening
/// changes nothing, and a repair corrects it.
#[test]
fn a_damaged_number_of_a_format_is_put_right_by_repairing() {
    let sample = Sample::new("digits");
    for (path, bytes) in &sample.files {
        for digits in ["000", "002", "101", "999"] {
            sample.restore();
            let mut bytes = bytes.clone();
            bytes[5..8].copy_from_slice(digits.as_bytes());
            fs::write(path, bytes).unwrap();
            let error = open_small(&sample.place).map(drop).unwrap_err();
            assert!(matches!(error, OpenError::DamagedFormat { .. }), "{error:?}");
            sample.open(&format!("{} of format {digits}", sample.name(path)));
            let (_, opened) = open_small(&sample.place).unwrap();
            assert_eq!((opened.records, opened.damaged), (sample.kept.len(), 0));
        }
    }
    // In all of them: nothing shows that it is damage.
    sample.restore();
    for (path, bytes) in &sample.files {
        let mut bytes = bytes.clone();
        bytes[5..8].copy_from_slice(b"002");
        fs::write(path, bytes).unwrap();
    }
    let before = files(&sample.place.0);
    let error = repair(&sample.place.0, &mut |_, _| {}).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::OtherFormat { format: 2, .. }), "{error:?}");
    assert!(before == files(&sample.place.0));
    // A file of a newer version next to a damaged one: nothing is repaired.
    sample.restore();
    let mut paths = sample.files.keys().filter(|path| sample.name(path).ends_with(".log"));
    let (damaged, newer) = (paths.next().unwrap(), paths.next().unwrap());
    for (path, seal) in [(damaged, false), (newer, true)] {
        let mut bytes = sample.files[path].clone();
        bytes[5..8].copy_from_slice(b"002");
        if seal {
            let crc = crc32c(&bytes[..16]);
            bytes[16..20].copy_from_slice(&crc.to_be_bytes());
        }
        fs::write(path, bytes).unwrap();
    }
    let before = files(&sample.place.0);
    let error = repair(&sample.place.0, &mut |_, _| {}).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::OtherFormat { format: 2, .. }), "{error:?}");
    assert!(before == files(&sample.place.0));
}

/// The newest segment and its listing together, or the ends of both: only the lock file describes their contents.
#[test]
fn the_end_of_a_store_does_not_go_unnoticed() {
    let sample = Sample::new("end");
    let newest = segment_path(&sample.place.0, SEGMENTS as u32);
    let listing = newest.with_extension("listing");
    fs::remove_file(&newest).unwrap();
    fs::remove_file(&listing).unwrap();
    let checked = check(&sample.place.0, &mut |_, _| {}).unwrap();
    assert!(
        checked.damage.iter().any(|damage| damage.harm == DamageKind::End && damage.file == "00000003.log")
    );
    assert!(checked.unnamed > 0);
    let (_, opened) = open_small(&sample.place).unwrap();
    assert!(opened.damaged > 0 && opened.unnamed == checked.unnamed, "{opened:?}");
    // It is reported once, and the missing records are counted until the repair.
    let (_, again) = open_small(&sample.place).unwrap();
    assert_eq!((again.unnamed, again.damaged), (opened.unnamed, 1));
    let repaired = repair(&sample.place.0, &mut |_, _| {}).unwrap();
    assert_eq!((repaired.now.unnamed, repaired.now.is_sound()), (0, true));
    let (_, after) = open_small(&sample.place).unwrap();
    assert_eq!((after.unnamed, after.damaged), (0, 0));
    for keep in [PREAMBLE_BYTES, 60, 300] {
        sample.restore();
        for path in [&newest, &listing] {
            fs::write(path, &sample.files[path][..keep]).unwrap();
        }
        let checked = check(&sample.place.0, &mut |_, _| {}).unwrap();
        assert!(!checked.is_sound(), "{keep}: {checked:?}");
    }
    // Unchanged, and after a crash at any time, nothing is missing.
    sample.restore();
    for round in 0..4_u64 {
        let (mut log, opened) = open_small(&sample.place).unwrap();
        assert_eq!((opened.damaged, opened.unnamed), (0, 0), "round {round}");
        if round > 1 {
            log.write(&[append(500 + round, 0, "more")]).unwrap();
        }
    }
}

/// All but one of the files with the store's number are damaged, and everything is still found.
#[test]
fn one_file_that_says_which_store_it_is_is_enough() {
    let sample = Sample::new("number");
    for kept in sample.files.keys() {
        sample.restore();
        for (path, bytes) in sample.files.iter().filter(|(path, _)| *path != kept) {
            let mut bytes = bytes.clone();
            bytes[..PREAMBLE_BYTES].fill(0);
            fs::write(path, bytes).unwrap();
        }
        sample.open(&format!("only {} says it", sample.name(kept)));
        let (_, opened) = open_small(&sample.place).unwrap();
        assert_eq!(opened.records, sample.kept.len());
    }
}

/// Data that is damaged when it is to be moved is known to be lost, also after its segment was removed.
#[test]
fn what_is_damaged_and_was_to_be_moved_stays_named() {
    let place = Place::new("moved");
    let (mut log, _) = open_small(&place).unwrap();
    (1..=20).for_each(|record| write_whole(&mut log, record));
    let first = segment_path(&place.0, 1);
    flip(&first, data_at(&first, 2, 20_000));
    compact_but(&mut log, 20, [2, 5], &first);
    let see = |log: &mut Log| {
        let reader = log.reader();
        let read = |record| reader.read(RecordId(record), 0, 40_000);
        assert_eq!(
            log.list().iter().map(|(id, length)| (id.0, *length)).collect::<Vec<_>>(),
            [(2, 40_000), (5, 40_000)]
        );
        assert_eq!(read(5).unwrap().len(), 40_000);
        assert_eq!(read(2), Err(StorageFailure::Damaged));
    };
    see(&mut log);
    drop(log);
    for _ in 0..2 {
        let (mut log, opened) = open_small(&place).unwrap();
        see(&mut log);
        assert_eq!((opened.records, opened.harmed), (2, 1));
    }
    let checked = check(&place.0, &mut |_, _| {}).unwrap();
    assert_eq!((checked.whole, checked.harmed), (1, 1));
}

#[test]
fn a_scrub_finds_what_nobody_reads() {
    let place = Place::new("scrubbed");
    let (path, places) = sample(&place);
    let (log, _) = place.open();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    log.quarantine().listen(move |damage| tell.lock().unwrap().push(damage));
    let mut pass = scrub::ScrubPass::new(log.log_reader());
    let all: u64 = core::iter::from_fn(|| pass.step()).sum();
    assert_eq!(all, (3 + 2 * DATA_BYTES_MAX + 10 + 5) as u64);
    assert!(told.lock().unwrap().is_empty());
    flip(&path, places[3] + 50);
    let again: u64 = core::iter::from_fn(|| pass.step()).sum();
    assert_eq!(again, all, "a pass begins anew");
    let told = told.lock().unwrap();
    assert_eq!(
        told.iter().map(|damage| (damage.harm, damage.record)).collect::<Vec<_>>(),
        [(DamageKind::Data, Some(RecordId(2)))]
    );
}

/// However many there are, each is reported or counted.
#[test]
fn damage_that_is_too_much_to_be_remembered_is_counted() {
    let place = Place::new("much");
    let (mut log, _) = open_small(&place).unwrap();
    let many: Vec<StoreWrite> = (0..5000).map(|record| append(record, 0, "x")).collect();
    log.write(&many).unwrap();
    drop(log);
    fs::write(place.last_segment(), "").unwrap();
    let (log, opened) = open_small(&place).unwrap();
    assert_eq!((opened.records, opened.harmed), (5000, 5000));
    let told = Arc::new(AtomicU64::new(0));
    let tell = told.clone();
    let untold = log.quarantine().listen(move |_| {
        tell.fetch_add(1, Ordering::Relaxed);
    });
    // The range of the file is reported in addition.
    assert_eq!(told.load(Ordering::Relaxed) + untold, 5001);
    let lines = fs::read_to_string(place.0.join("damaged/list.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 5001, "each has its line");
}
