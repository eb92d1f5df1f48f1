//! Unreadable places of the device: the data in them is damaged, and nothing else.

use super::*;
use crate::storage::log::reading::faults::FaultyFile;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Returns the block of the device that contains an offset.
fn block(at: u64) -> Range<u64> {
    let start = at / 4096 * 4096;
    start..start + 4096
}

fn told(log: &Log) -> Arc<Mutex<Vec<StoreDamage>>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    log.quarantine().listen(move |damage| tell.lock().unwrap().push(damage));
    told
}

fn named(told: &[StoreDamage]) -> Vec<(DamageKind, Option<RecordId>)> {
    told.iter().map(|damage| (damage.harm, damage.record)).collect()
}

/// A listing contains nothing that its segment does not.
#[test]
fn a_listing_that_cannot_be_read_is_made_anew() {
    for (from, to) in [(0, 4096), (0, 30), (PREAMBLE_BYTES as u64, 4096), (120, 130)] {
        let place = Place::new("bad-listing");
        let (path, places) = sample(&place);
        let place_of_harm = from..to;
        let bad = FaultyFile::bad(&path.with_extension("listing"), vec![place_of_harm]);
        let checked = check(&place.0, &mut |_, _| {}).unwrap();
        assert!(checked.is_sound() && checked.whole == 3, "{checked:?}");
        let (mut log, opened) = place.open();
        assert_eq!((content(&mut log).len(), opened.damaged), (3, 0), "from {from} to {to}");
        drop((log, bad));
        // It is complete again: with it an entry without a header is read.
        flip(&path, places[1] + 9);
        assert_eq!(look(&place).0, [1, 2, 3]);
    }
}

#[test]
fn a_place_of_a_segment_that_cannot_be_read_costs_what_is_in_it() {
    type Case = (&'static str, fn(&[u64]) -> u64, [&'static [u64]; 2]);
    // Records that are intact with the listing, and without.
    let cases: [Case; 3] = [
        ("its beginning", |_| 0, [&[3], &[3]]),
        ("a header in the middle of a record", |places| places[3], [&[1, 3], &[1, 3]]),
        ("data", |places| places[3] + 50_000, [&[1, 3], &[1, 3]]),
    ];
    for ((name, at, whole), listed) in cases.iter().flat_map(|case| [(case, true), (case, false)]) {
        let place = Place::new("bad-segment");
        let (path, places) = sample(&place);
        if !listed {
            fs::remove_file(path.with_extension("listing")).unwrap();
        }
        let _bad = FaultyFile::bad(&path, vec![block(at(&places))]);
        let (found, told) = look(&place);
        assert_eq!(found, whole[usize::from(!listed)], "{name}, {listed}");
        assert!(
            told.iter().any(|damage| damage.harm == DamageKind::Unreadable),
            "{name}, {listed}: {told:?}"
        );
        let records: BTreeSet<RecordId> = told.iter().filter_map(|damage| damage.record).collect();
        let unnamed =
            told.iter().find(|damage| damage.harm == DamageKind::Unnamed).map_or(0, |found| found.bytes);
        assert_eq!(found.len() as u64 + records.len() as u64 + unnamed, 3, "{name}, {listed}: {told:?}");
    }
}

#[test]
fn what_cannot_be_read_is_told_and_kept_whoever_reads_it() {
    for scrubs in [true, false] {
        let place = Place::new("bad-data");
        let (path, places) = sample(&place);
        let before = fs::read(&path).unwrap();
        let bad = block(places[3] + 50_000);
        let _bad = FaultyFile::bad(&path, vec![bad.clone()]);
        let (log, opened) = place.open();
        assert_eq!(opened.damaged, 0, "only headers are looked at");
        let told = told(&log);
        if scrubs {
            let mut pass = scrub::ScrubPass::new(log.log_reader());
            while pass.step().is_some() {}
        } else {
            let read = log.reader().read(RecordId(2), DATA_BYTES_MAX as u64, 10);
            assert_eq!(read, Err(StorageFailure::Device));
        }
        let told = told.lock().unwrap();
        assert_eq!(named(&told), [(DamageKind::Unreadable, Some(RecordId(2)))], "scrubs: {scrubs}");
        let mut wanted = before[places[2] as usize..places[5] as usize].to_vec();
        let zeros = (bad.start - places[2]) as usize..(bad.end - places[2]) as usize;
        wanted[zeros].fill(0);
        assert!(fs::read(told[0].kept.as_ref().unwrap()).unwrap() == wanted, "all but the bad place");
    }
}

fn open_small(place: &Place) -> Log {
    fs::create_dir_all(&place.0).unwrap();
    Log::open_on(&place.0, Device::small(&place.0, 8 << 20)).unwrap().0
}

/// Store whose first segment is removed except for parts of two records; one of them has a place that is unreadable this
/// number of times.
fn moved(name: &str, times: u64) -> (Place, Log, Arc<Mutex<Vec<StoreDamage>>>) {
    let place = Place::new(name);
    let mut log = open_small(&place);
    // Each attempt counts.
    log.unreadable.rest = Duration::ZERO;
    (1..=10).for_each(|record| write_whole(&mut log, record));
    let first = segment_path(&place.0, 1);
    let at = data_at(&first, 2, 20_000);
    let bad = block(at + 8192);
    let left = AtomicU64::new(times);
    let _bad = FaultyFile::new(&first, move |read| {
        let is_in = bad.start < read.end && read.start < bad.end;
        match is_in && left.load(Ordering::Relaxed) > 0 {
            false => Ok(read.end - read.start),
            true if bad.start > read.start => Ok(bad.start - read.start),
            true => {
                left.fetch_sub(1, Ordering::Relaxed);
                Err(rustix::io::Errno::IO.into())
            }
        }
    });
    let told = told(&log);
    compact_but(&mut log, 10, [2, 5], &first);
    (place, log, told)
}

/// A segment with an unreadable place would stay for ever, and so would all later ones.
#[test]
fn what_cannot_be_read_holds_up_no_segment() {
    let (place, log, told) = moved("bad-moved", u64::MAX);
    assert_eq!(log.reader().read(RecordId(5), 0, 40_000).unwrap().len(), 40_000);
    let see = |log: &Log| {
        assert_eq!(log.reader().read(RecordId(2), 0, 40_000), Err(StorageFailure::Damaged));
        assert_eq!(log.reader().read(RecordId(2), 20_000, 20_000).unwrap(), vec![2; 20_000]);
    };
    see(&log);
    {
        let told = told.lock().unwrap();
        assert_eq!(named(&told), [(DamageKind::Unreadable, Some(RecordId(2)))]);
        let kept = fs::read(told[0].kept.as_ref().unwrap()).unwrap();
        assert_eq!(kept.iter().filter(|byte| **byte == 2).count() / 1000, 35, "what could be read");
    }
    drop(log);
    see(&open_small(&place));
}

/// An entry that is readable at the next attempt is moved, not given up.
#[test]
fn what_can_be_read_another_time_is_not_lost() {
    let (place, log, told) = moved("bad-at-times", u64::from(moving::TIMES_MAX));
    let see = |log: &Log| {
        for record in [2, 5] {
            assert_eq!(log.reader().read(RecordId(record), 0, 40_000).unwrap(), vec![record as u8; 40_000]);
        }
    };
    see(&log);
    assert_eq!(told.lock().unwrap().len(), 0);
    drop(log);
    see(&open_small(&place));
}

#[test]
fn what_could_not_be_read_once_more_than_that_is_given_up() {
    let (_place, _log, told) = moved("bad-too-often", u64::from(moving::TIMES_MAX) + 1);
    assert_eq!(told.lock().unwrap().len(), 1);
}

/// Longer than any test.
const LASTING: Duration = Duration::from_secs(86_400);

/// More than is moved in one step is unreadable, at the front of the oldest segment.
#[test]
fn what_cannot_be_read_holds_up_nothing_behind_it() {
    let place = Place::new("bad-stretch");
    let mut log = open_small(&place);
    // The pause does not end during the test.
    log.unreadable.rest = Duration::MAX;
    (1..=6).for_each(|record| write_whole(&mut log, record));
    let first = segment_path(&place.0, 1);
    let at = |record: u8| data_at(&first, record, 20_000);
    let end = at(4);
    assert!(end > log.step_bytes() + 40_000, "two steps");
    let range = at(1)..end - HEADER_BYTES as u64;
    let bad = FaultyFile::bad(&first, vec![range]);
    let told = told(&log);
    for record in [4, 6] {
        log.write(&[remove(record)]).unwrap();
    }
    for record in 100..160 {
        write_whole(&mut log, record);
        log.write(&[remove(record)]).unwrap();
        while log.maintain() {}
    }
    let segments = |log: &Log, record| {
        let index = lock_index(&log.index);
        index
            .records
            .get(&RecordId(record))
            .expect("it is there")
            .chunks()
            .iter()
            .map(|chunk| chunk.segment)
            .collect::<BTreeSet<_>>()
    };
    for record in [1, 2, 3] {
        assert_eq!(segments(&log, record), BTreeSet::from([1]), "record {record} rests");
    }
    assert!(!segments(&log, 5).contains(&1), "what is behind has been moved");
    assert_eq!(told.lock().unwrap().len(), 0);
    // Until the pause of the first chunk ends there is nothing to do.
    assert_eq!(log.maintenance_pause().map(|rest| rest > Duration::from_secs(3600)), Some(true));
    // The failure is over.
    drop(bad);
    log.unreadable.rest = Duration::ZERO;
    while log.maintain() {}
    assert!(!first.exists(), "all has been moved");
    assert_eq!(log.maintenance_pause(), None);
    for record in [1, 2, 3, 5] {
        assert_eq!(log.reader().read(RecordId(record), 0, 40_000).unwrap(), vec![record as u8; 40_000]);
    }
}

/// A temporary failure of a device affects everything tried during it, which can be a lot.
#[test]
fn what_cannot_be_read_for_a_moment_is_not_lost_however_much_is_done_in_it() {
    let place = Place::new("bad-moment");
    let mut log = open_small(&place);
    // The pause lasts longer than the failure.
    assert!(log.unreadable.rest >= Duration::from_secs(60));
    log.unreadable.rest = LASTING;
    (1..=10).for_each(|record| write_whole(&mut log, record));
    let first = segment_path(&place.0, 1);
    let bad = FaultyFile::bad(&first, std::iter::once(0..u64::MAX).collect());
    let told = told(&log);
    for record in (1..=10).filter(|record| ![2, 5].contains(record)) {
        log.write(&[remove(record)]).unwrap();
    }
    for moment in 1..=2 {
        for record in 100..160 {
            write_whole(&mut log, record);
            log.write(&[remove(record)]).unwrap();
            while log.maintain() {}
        }
        let met: BTreeSet<_> = log.unreadable.chunks.keys().map(|(record, _)| record.0).collect();
        assert!(first.exists() && met == [2, 5].into(), "it was to be moved: {met:?}");
        assert!(log.unreadable.chunks.values().all(|found| found.times == moment), "{:?}", log.unreadable);
        assert_eq!(told.lock().unwrap().len(), 0);
        // The next failure has the same extent.
        log.unreadable.chunks.values_mut().for_each(|found| found.last -= LASTING);
        log.unreadable.all_since = None;
    }
    // The failure is over.
    drop(bad);
    log.unreadable.rest = Duration::ZERO;
    while log.maintain() {}
    assert!(!first.exists(), "it has been moved");
    for record in [2, 5] {
        assert_eq!(log.reader().read(RecordId(record), 0, 40_000).unwrap(), vec![record as u8; 40_000]);
    }
    assert_eq!(told.lock().unwrap().len(), 0);
}

/// A long record takes time to examine: neither the engines' task nor the writer waits for that.
#[test]
fn nobody_waits_for_a_record_that_is_looked_at() {
    let place = Place::new("looks");
    let (path, places) = sample(&place);
    flip(&path, places[3] + 50);
    let (log, _) = place.open();
    let (free, reads) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let (is_free, count) = (free.clone(), reads.clone());
    let (index, quarantine) = (log.index.clone(), log.quarantine.clone());
    let _hook = FaultyFile::new(&path, move |read| {
        count.fetch_add(1, Ordering::Relaxed);
        if index.try_lock().is_err() || !quarantine.is_free() {
            is_free.store(false, Ordering::Relaxed);
        }
        Ok(read.end - read.start)
    });
    let read = log.reader().read(RecordId(2), DATA_BYTES_MAX as u64, 10);
    assert_eq!(read, Err(StorageFailure::Damaged));
    assert!(reads.load(Ordering::Relaxed) >= 6, "three entries are looked at and copied");
    assert!(free.load(Ordering::Relaxed), "both locks are free while they are");
}
