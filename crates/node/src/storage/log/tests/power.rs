//! Power cuts and failed writes: acknowledged data is found, and other data is not.

use super::*;

const ROOM: u64 = 8 << 20;

/// Opens the remains of a store after a power cut, and reads all of it.
fn after_a_power_cut(device: &Device, name: &str) -> BTreeMap<u64, Bytes> {
    let left = Place::new(name);
    device.cut_power(&left.0);
    let (mut log, _) = Log::open_on(&left.0, Device::small(&left.0, ROOM)).expect("the store opens");
    content(&mut log)
}

/// Every batch is synced before it is acknowledged, and so is the name of its segment.
#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    let place = Place::new("power");
    fs::create_dir_all(&place.0).unwrap();
    let device = Device::with_a_plug(&place.0, ROOM);
    let (mut log, _) = Log::open_on(&place.0, device.clone()).expect("the store opens");
    let mut kept = BTreeMap::new();
    for record in 1..=40_u64 {
        let data = Bytes::from(vec![record as u8; 50_000]);
        log.write(&[append(record, 0, data.clone())]).expect("there is room");
        kept.insert(record, data);
        let found = after_a_power_cut(&device, "left");
        assert!(found == kept, "after record {record}: {:?}", found.keys());
    }
    assert!(log.active > 5, "they are in several segments");
    // Removals, too; and data moved out of old segments is durable before these are removed.
    for record in (1..=40).filter(|record| record % 4 > 0) {
        log.write(&[remove(record)]).expect("it is there");
        kept.remove(&record);
        while log.maintain() {}
        let found = after_a_power_cut(&device, "left");
        assert!(found == kept, "after removal {record}: {:?}", found.keys());
    }
    let oldest = lock_index(&log.index).oldest().map(|(number, _)| number).expect("there is a segment");
    assert!(oldest > 1, "old segments have gone");
}

/// A refused batch leaves nothing behind, although its beginning was written.
#[test]
fn a_batch_that_failed_in_the_middle_does_not_come_back() {
    let place = Place::new("failed");
    fs::create_dir_all(&place.0).unwrap();
    let open = || Log::open_on(&place.0, Device::small(&place.0, ROOM)).expect("the store opens");
    let (mut log, _) = open();
    log.write(&[append(1, 0, "kept")]).expect("there is room");
    let batch = [append(2, 0, "whole"), append(3, 0, vec![3; 5000]), append(4, 0, vec![4; ROOM as usize])];
    assert_eq!(log.write(&batch), Err(BatchRefusal::Full));
    let numbers = |log: &mut Log| content(log).into_keys().collect::<Vec<_>>();
    assert_eq!(numbers(&mut log), [1]);
    drop(log);
    let (mut log, opened) = open();
    assert_eq!((numbers(&mut log), opened.torn_bytes, opened.damaged), (vec![1], 0, 0));
    // The next batch takes its place, and all of it is found.
    log.write(&[append(5, 0, vec![5; 5000])]).expect("there is room");
    drop(log);
    assert_eq!(numbers(&mut open().0), [1, 5]);
}

/// The cut loses the mark and the listing of the last batch but not the summary, which shows that it was acknowledged.
#[test]
fn a_batch_that_only_the_note_vouches_for_loses_what_is_damaged_and_nothing_else() {
    type Harms = fn(&Path, u64);
    let cases: [(&str, Harms, &[u64], [u64; 2]); 4] = [
        ("nothing", |_, _| {}, &[1, 2, 3, 4], [0, 0]),
        ("a header", |path, at| flip(path, at - HEADER_BYTES as u64 + 9), &[1, 2, 4], [2, 1]),
        // It is found when it is read.
        ("data", |path, at| flip(path, at + 100), &[1, 2, 4], [0, 0]),
        (
            "the end",
            |path, at| OpenOptions::new().write(true).open(path).unwrap().set_len(at + 100).unwrap(),
            &[1, 2],
            // One by its header, and one that cannot be identified.
            [3, 1],
        ),
    ];
    for (name, harm, whole, [damaged, unnamed]) in cases {
        let (place, left) = (Place::new("noted"), Place::new("noted-left"));
        fs::create_dir_all(&place.0).unwrap();
        let device = Device::with_a_plug(&place.0, ROOM);
        let (mut log, _) = Log::open_on(&place.0, device.clone()).expect("the store opens");
        log.write(&[append(1, 0, "kept")]).expect("there is room");
        let listing = place.last_segment().with_extension("listing");
        let listed = fs::read(&listing).unwrap();
        let batch = [2, 3, 4].map(|record| append(record, 0, vec![record as u8; 5000]));
        log.write(&batch).expect("there is room");
        device.cut_power(&left.0);
        fs::write(left.0.join(listing.file_name().unwrap()), listed).unwrap();
        let path = left.last_segment();
        harm(&path, data_at(&path, 3, 5000));
        // Part of the batch that was never acknowledged reached the device, but not its beginning.
        let torn = if name == "the end" { 0 } else { 100 + HEADER_BYTES as u64 + 4 };
        if torn > 0 {
            let mut bytes = fs::read(&path).unwrap();
            bytes.extend([0; 100]);
            EntryHeader::data(RecordId(9), 0, b"torn").encode(log.secret, &mut bytes);
            bytes.extend(b"torn");
            fs::write(&path, &bytes).unwrap();
        }
        let (mut log, opened) = Log::open_on(&left.0, Device::small(&left.0, ROOM)).expect("it opens");
        let reader = log.reader();
        let is_whole = |(record, length): &(RecordId, u64)| {
            reader.read(*record, 0, *length as u32).is_ok_and(|data| data.len() as u64 == *length)
        };
        let found: Vec<u64> = log.list().iter().filter(|it| is_whole(it)).map(|(id, _)| id.0).collect();
        assert_eq!(found, whole, "{name} is damaged");
        let told = (opened.damaged, opened.unnamed, opened.torn_bytes);
        assert_eq!(told, (damaged, unnamed, torn), "{name} is damaged");
    }
}

/// A sync calls the kernel: neither a pipe nor a folder in /proc can be made durable, and the kernel reports an error.
#[test]
fn whoever_says_durable_has_asked_the_kernel() {
    let (pipe, _end) = io::pipe().expect("a pipe can be made");
    let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
    let device = Device::new(Path::new("/proc/self"));
    assert!(device.sync_data(&pipe).is_err(), "the data");
    assert!(device.sync_all(&pipe).is_err(), "all of it");
    assert!(device.sync_names().is_err(), "the names");
}

/// A device that failed has kept a segment that could not be removed again.
#[test]
fn a_file_that_is_left_over_stops_no_new_segment() {
    let place = Place::new("left-over");
    fs::create_dir_all(&place.0).unwrap();
    let open = || Log::open_on(&place.0, Device::small(&place.0, ROOM)).expect("the store opens");
    let (mut log, _) = open();
    fs::write(segment_path(&place.0, log.active + 1), b"").unwrap();
    for record in 1..=20 {
        log.write(&[append(record, 0, vec![record as u8; 50_000])]).expect("there is room");
    }
    assert!(log.active > 3, "they are in several segments");
    let kept = content(&mut log);
    assert_eq!(kept.len(), 20);
    drop(log);
    let (mut log, _) = open();
    assert!(content(&mut log) == kept);
    log.write(&[append(21, 0, "more")]).expect("there is room");
}
