//! Tests of the disk against a simple model, and of single cases.

use super::*;
use StorageIndication as Says;

fn append(disk: &mut Disk, now: Instant, record: u64, data: &[u8]) {
    let data = Bytes::copy_from_slice(data);
    disk.handle_request(now, StorageRequest::Append { record: RecordId(record), data, urgent: false });
}

fn read(disk: &mut Disk, now: Instant, record: u64, offset: u64, length: u32) {
    disk.handle_request(
        now,
        StorageRequest::Read { record: RecordId(record), offset, length, in_parts: false },
    );
}

fn remove(disk: &mut Disk, now: Instant, record: u64) {
    disk.handle_request(now, StorageRequest::Remove { record: RecordId(record) });
}

/// Runs the disk until it is idle. Returns its answers with their times in milliseconds.
fn until_quiet(disk: &mut Disk, mut now: Instant) -> Vec<(f64, Says)> {
    let mut said = Vec::new();
    loop {
        while let Some(answer) = disk.poll_indication() {
            said.push((now.as_nanos() as f64 / 1e6, answer));
        }
        match disk.poll_timeout() {
            Some(at) => now = at,
            None => return said,
        }
        disk.handle_timeout(now);
    }
}

fn stored(record: u64, up_to: u64) -> Says {
    Says::Stored { record: RecordId(record), up_to }
}

fn data(record: u64, offset: u64, data: &[u8]) -> Says {
    Says::Data { record: RecordId(record), offset, data: Bytes::copy_from_slice(data) }
}

fn slow() -> DiskConfig {
    DiskConfig {
        write_latency: Duration::from_millis(1),
        sync_latency: Duration::from_millis(10),
        read_latency: Duration::from_millis(2),
        throughput_bytes_per_s: 1_000_000,
        ..DiskConfig::default()
    }
}

/// Model that keeps all durable data and all data that may have survived.
#[derive(Default)]
struct Model {
    /// Bytes appended to each record since its creation, and the number of answered bytes.
    records: BTreeMap<u64, (Vec<u8>, u64)>,
    removing: BTreeSet<u64>,
    /// Expected answers to reads, in order.
    reads: VecDeque<Says>,
}

impl Model {
    fn exists(&self, record: u64) -> bool {
        self.records.contains_key(&record) && !self.removing.contains(&record)
    }

    fn read(&mut self, record: u64, offset: u64, length: u32) {
        let answer = match self.records.get(&record).filter(|_| self.exists(record)) {
            None => Says::ReadFailed { record: RecordId(record), offset, failure: StorageFailure::Missing },
            Some((bytes, _)) => {
                let end = (offset + u64::from(length)).min(bytes.len() as u64);
                data(record, offset, &bytes[offset.min(end) as usize..end as usize])
            }
        };
        self.reads.push_back(answer);
    }
}

/// Draws latencies over several orders of magnitude.
fn drawn(rng: &mut Rng) -> DiskConfig {
    let mut spread = |low: f64, high: f64| low * libm::exp(rng.unit() * libm::log(high / low));
    DiskConfig {
        write_latency: Duration::from_secs_f64(spread(1e-6, 1e-2)),
        sync_latency: Duration::from_secs_f64(spread(1e-5, 0.2)),
        read_latency: Duration::from_secs_f64(spread(1e-6, 2e-2)),
        throughput_bytes_per_s: spread(1e5, 1e9) as u64,
        group_commit: rng.chance(0.8),
        ..DiskConfig::default()
    }
}

#[test]
fn what_was_answered_survives_every_crash() {
    let mut torn = 0;
    for seed in 0..300 {
        let mut rng = Rng::new(seed).fork("disk law");
        let config = if rng.chance(0.2) { DiskConfig::default() } else { drawn(&mut rng) };
        let mut disk = Disk::new(config);
        let (mut model, mut now) = (Model::default(), Instant::ZERO);
        for _ in 0..200 {
            let record = rng.below(6);
            match rng.below(10) {
                0..=4 if !model.removing.contains(&record) => {
                    let mut bytes = vec![0; rng.below(300) as usize];
                    rng.fill(&mut bytes);
                    append(&mut disk, now, record, &bytes);
                    model.records.entry(record).or_default().0.extend(&bytes);
                }
                5 if model.exists(record) => {
                    remove(&mut disk, now, record);
                    model.removing.insert(record);
                }
                6 => {
                    let (offset, length) = (rng.below(500), rng.below(500) as u32);
                    read(&mut disk, now, record, offset, length);
                    model.read(record, offset, length);
                }
                7 => {
                    torn += crash(&mut disk, &mut model, &mut rng);
                }
                _ => {
                    now = disk.poll_timeout().unwrap_or(now);
                    disk.handle_timeout(now);
                }
            }
            while let Some(answer) = disk.poll_indication() {
                hear(&mut model, answer);
            }
        }
    }
    assert!(torn > 10, "crashes cut appends short: {torn}");
}

fn hear(model: &mut Model, answer: Says) {
    match answer {
        Says::Stored { record, up_to } => {
            let (bytes, answered) = model.records.get_mut(&record.0).expect("only what exists is stored");
            assert!(up_to >= *answered && up_to <= bytes.len() as u64);
            *answered = up_to;
        }
        Says::Removed { record } => {
            model.removing.remove(&record.0);
            model.records.remove(&record.0);
        }
        Says::Data { .. } | Says::ReadFailed { .. } => assert_eq!(Some(answer), model.reads.pop_front()),
        Says::Full { .. } | Says::AppendFailed { .. } | Says::Listed { .. } => panic!("{answer:?}"),
    }
}

/// Crashes the disk, compares it with the model, and continues from there. Returns the number of truncated appends.
fn crash(disk: &mut Disk, model: &mut Model, rng: &mut Rng) -> u32 {
    disk.crash(rng);
    let left: BTreeMap<u64, u64> =
        disk.list().into_iter().map(|(record, length)| (record.0, length)).collect();
    let mut torn = 0;
    for (record, (bytes, answered)) in core::mem::take(&mut model.records) {
        let Some(&length) = left.get(&record) else {
            assert!(answered == 0 || model.removing.contains(&record), "record {record} is gone");
            continue;
        };
        assert!(length >= answered && length <= bytes.len() as u64);
        torn += u32::from(length > answered && length < bytes.len() as u64);
        let kept = disk.records[&RecordId(record)].range(0, u32::MAX);
        assert_eq!(kept, bytes[..length as usize], "a prefix survives");
        model.records.insert(record, (kept.to_vec(), length));
    }
    assert!(left.keys().all(|record| model.records.contains_key(record)), "nothing comes from nowhere");
    assert_eq!(disk.used_bytes, left.values().sum::<u64>());
    assert_eq!(disk.poll_timeout(), None, "a crash forgets what was asked");
    model.removing.clear();
    model.reads.clear();
    torn
}

#[test]
fn a_perfect_disk_answers_at_once() {
    let mut disk = Disk::new(DiskConfig::default());
    append(&mut disk, Instant::ZERO, 1, b"hello ");
    append(&mut disk, Instant::ZERO, 1, b"world");
    read(&mut disk, Instant::ZERO, 1, 3, 5);
    remove(&mut disk, Instant::ZERO, 1);
    read(&mut disk, Instant::ZERO, 1, 0, 5);
    let failed = Says::ReadFailed { record: RecordId(1), offset: 0, failure: StorageFailure::Missing };
    let removed = Says::Removed { record: RecordId(1) };
    let said: Vec<Says> = until_quiet(&mut disk, Instant::ZERO).into_iter().map(|said| said.1).collect();
    assert_eq!(said, [stored(1, 11), data(1, 3, b"lo wo"), removed, failed]);
}

#[test]
fn one_sync_serves_all_that_waits() {
    let mut disk = Disk::new(slow());
    for _ in 0..4 {
        append(&mut disk, Instant::ZERO, 1, &[7; 1000]);
    }
    append(&mut disk, Instant::ZERO, 2, &[]);
    // The first write is a batch of its own: 1 + 1 + 10 ms; then three of 2 ms, one of 1 ms, and one sync.
    let said = until_quiet(&mut disk, Instant::ZERO);
    assert_eq!(said, [(12.0, stored(1, 1000)), (29.0, stored(1, 4000)), (29.0, stored(2, 0))]);
}

#[test]
fn without_group_commit_each_write_has_its_sync() {
    let mut disk = Disk::new(DiskConfig { group_commit: false, ..slow() });
    for _ in 0..3 {
        append(&mut disk, Instant::ZERO, 1, &[7; 1000]);
    }
    let said = until_quiet(&mut disk, Instant::ZERO);
    assert_eq!(said, [(12.0, stored(1, 1000)), (24.0, stored(1, 2000)), (36.0, stored(1, 3000))]);
}

#[test]
fn reads_do_not_wait_for_writes() {
    let mut disk = Disk::new(slow());
    append(&mut disk, Instant::ZERO, 1, &[7; 1000]);
    read(&mut disk, Instant::ZERO, 1, 0, 2000);
    read(&mut disk, Instant::ZERO, 1, 1000, 5);
    let said = until_quiet(&mut disk, Instant::ZERO);
    assert_eq!(said, [(3.0, data(1, 0, &[7; 1000])), (5.0, data(1, 1000, b"")), (12.0, stored(1, 1000))]);
}

#[test]
fn a_full_disk_refuses_until_there_is_space() {
    let mut disk = Disk::new(DiskConfig { capacity_bytes: 100, ..DiskConfig::default() });
    let now = Instant::ZERO;
    append(&mut disk, now, 1, &[1; 60]);
    append(&mut disk, now, 2, &[2; 60]);
    append(&mut disk, now, 2, &[2; 5]);
    append(&mut disk, now, 3, &[3; 5]);
    let said: Vec<Says> = until_quiet(&mut disk, now).into_iter().map(|said| said.1).collect();
    let full = Says::Full { record: RecordId(2) };
    assert_eq!(said, [stored(1, 60), full, stored(3, 5)], "what is behind a refused append is not kept");
    remove(&mut disk, now, 1);
    append(&mut disk, now, 2, &[2; 60]);
    let said: Vec<Says> = until_quiet(&mut disk, now).into_iter().map(|said| said.1).collect();
    assert_eq!(said, [Says::Removed { record: RecordId(1) }, stored(2, 60)]);
}

#[test]
fn a_record_made_after_a_removal_stays() {
    let mut disk = Disk::new(slow());
    remove(&mut disk, Instant::ZERO, 1);
    append(&mut disk, Instant::ZERO, 1, b"new");
    let said: Vec<Says> = until_quiet(&mut disk, Instant::ZERO).into_iter().map(|said| said.1).collect();
    assert_eq!(said, [Says::Removed { record: RecordId(1) }, stored(1, 3)]);
    assert_eq!(disk.list(), [(RecordId(1), 3)]);
}

#[test]
fn a_read_within_one_append_shares_its_memory() {
    let mut disk = Disk::new(DiskConfig::default());
    let payload = Bytes::from(vec![9; 1000]);
    let request = StorageRequest::Append { record: RecordId(1), data: payload.clone(), urgent: false };
    disk.handle_request(Instant::ZERO, request);
    read(&mut disk, Instant::ZERO, 1, 100, 900);
    let said = until_quiet(&mut disk, Instant::ZERO);
    let Says::Data { data, .. } = &said[1].1 else { panic!("{said:?}") };
    assert_eq!(data.as_ptr(), payload[100..].as_ptr());
}

#[test]
fn a_damaged_record_and_a_failing_device_say_so() {
    let mut disk = Disk::new(DiskConfig::default());
    append(&mut disk, Instant::ZERO, 1, b"hello");
    assert!(disk.damage(RecordId(1)) && !disk.damage(RecordId(2)));
    read(&mut disk, Instant::ZERO, 1, 0, 5);
    disk.set_failing(Instant::ZERO, true);
    append(&mut disk, Instant::ZERO, 1, b"more");
    read(&mut disk, Instant::ZERO, 1, 2, 1);
    remove(&mut disk, Instant::ZERO, 1);
    disk.set_failing(Instant::ZERO, false);
    append(&mut disk, Instant::ZERO, 2, b"hello");
    let said: Vec<Says> = until_quiet(&mut disk, Instant::ZERO).into_iter().map(|said| said.1).collect();
    let (damaged, device) = (StorageFailure::Damaged, StorageFailure::Device);
    let failed = |offset, failure| Says::ReadFailed { record: RecordId(1), offset, failure };
    let (append_failed, removed) =
        (Says::AppendFailed { record: RecordId(1) }, Says::Removed { record: RecordId(1) });
    // The removal is carried out once the device works.
    assert_eq!(
        said,
        [stored(1, 5), failed(0, damaged), append_failed, failed(2, device), removed, stored(2, 5)]
    );
}
