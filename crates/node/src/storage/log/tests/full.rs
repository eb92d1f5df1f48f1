//! Full devices: what is kept stays, and removals make room, in whatever order.

use super::*;
use longwire_proto::rng::Rng;

const ROOM: u64 = 8 << 20;

/// Store on a small device, and its known contents.
struct Small {
    place: Place,
    room: u64,
    log: Log,
    kept: BTreeMap<u64, Bytes>,
    next: u64,
    rng: Rng,
}

impl Small {
    fn new(name: &str, room: u64) -> Self {
        let place = Place::new(name);
        fs::create_dir_all(&place.0).unwrap();
        let (log, _) = Log::open_on(&place.0, Device::small(&place.0, room)).unwrap();
        Small { place, room, log, kept: BTreeMap::new(), next: 1, rng: Rng::new(room) }
    }

    fn reopen(&mut self) {
        // The lock must be released first.
        let elsewhere = Place::new("elsewhere");
        self.log = Log::open(&elsewhere.0).unwrap().0;
        let (log, opened) = Log::open_on(&self.place.0, Device::small(&self.place.0, self.room)).unwrap();
        assert_eq!(opened.damaged, 0);
        self.log = log;
    }

    /// Appends a record; returns true if it is accepted.
    fn bring(&mut self, length: u64) -> bool {
        self.bring_some(1, length)
    }

    /// Appends records in batches, as a node does; returns true if they are accepted. Accepted parts of refused ones are
    /// removed.
    fn bring_some(&mut self, count: u64, length: u64) -> bool {
        let piece_bytes = self.log.batch_bytes_max().min(64 << 10);
        let mut batch = Vec::new();
        let mut brought = BTreeMap::new();
        for record in self.next..self.next + count {
            let mut data = vec![0; length as usize];
            self.rng.fill(&mut data);
            let data = Bytes::from(data);
            let pieces = data.chunks(piece_bytes).enumerate();
            batch.extend(
                pieces.map(|(at, piece)| append(record, (at * piece_bytes) as u64, data.slice_ref(piece))),
            );
            brought.insert(record, data);
        }
        self.next += count;
        for some in batch.chunks((piece_bytes as u64 / length).max(1) as usize) {
            if let Err(refusal) = self.log.write(some) {
                assert_eq!(refusal, BatchRefusal::Full);
                brought.into_keys().for_each(|record| self.take_away(record));
                return false;
            }
            self.log.maintain();
        }
        self.kept.extend(brought);
        true
    }

    fn take_away(&mut self, record: u64) {
        let removed = self.log.write(&[remove(record)]);
        assert!(matches!(removed, Ok(()) | Err(BatchRefusal::Full)), "{removed:?}");
        self.kept.remove(&record);
        self.log.maintain();
    }

    /// Performs maintenance until nothing is left to do.
    fn rest(&mut self) {
        while self.log.maintain() {}
    }

    fn fill(&mut self, length: u64) {
        let count = (16_000 / length).max(1);
        loop {
            if !self.bring_some(count, length) {
                self.rest();
                if !self.bring_some(count, length) {
                    return;
                }
            }
        }
    }

    fn kept_bytes(&self) -> u64 {
        self.log.totals().1
    }

    fn check(&mut self) {
        let found = content(&mut self.log);
        assert!(found == self.kept, "{} records, {} are known", found.len(), self.kept.len());
    }
}

type Order = fn(&mut Rng, &BTreeMap<u64, Bytes>) -> u64;

fn orders() -> [(&'static str, Order); 4] {
    [
        ("the oldest first", |_, kept| *kept.keys().next().unwrap()),
        ("the newest first", |_, kept| *kept.keys().next_back().unwrap()),
        ("any", |rng, kept| *kept.keys().nth(rng.below(kept.len() as u64) as usize).unwrap()),
        ("all but the oldest", |rng, kept| {
            let at = 1 + rng.below(kept.len() as u64 - 1);
            *kept.keys().nth(at as usize).unwrap()
        }),
    ]
}

/// docs/store.md: the stored data and a new bundle of up to a 16th are less than seven eighths of the space, and it is
/// accepted.
#[test]
fn a_store_that_was_full_takes_again_below_seven_eighths() {
    let room = ROOM;
    for length in [1_000, 100_000, room / 16] {
        for (name, order) in orders() {
            let mut small = Small::new("eighths", room);
            for round in 0..2 {
                small.fill(length);
                assert!(small.kept_bytes() + length > room * 13 / 16, "{} of {room}", small.kept_bytes());
                while small.kept_bytes() > room * 7 / 8 - room / 16 {
                    let batch = (0..(16_000 / length).max(1)).map(|_| {
                        let gone = order(&mut small.rng, &small.kept);
                        small.kept.remove(&gone);
                        remove(gone)
                    });
                    let removed = small.log.write(&batch.collect::<Vec<_>>());
                    assert!(matches!(removed, Ok(()) | Err(BatchRefusal::Full)), "{removed:?}");
                    small.log.maintain();
                }
                if round == 0 {
                    small.reopen();
                }
                small.rest();
                let (total, live) = small.log.totals();
                assert!(
                    small.bring(room / 16 - 10_000),
                    "{room}, {length}, {name}, round {round}: {live} of {total} count"
                );
                small.check();
            }
        }
    }
}

/// On a device that others have filled to the last block, all records of a store can be removed one by one.
#[test]
fn all_can_be_removed_from_a_device_without_a_free_byte() {
    for length in [1_000, 200_000] {
        let mut small = Small::new("emptied", ROOM);
        let wanted = ROOM / 2;
        while small.kept.len() < 5_000 && small.kept_bytes() < wanted {
            assert!(small.bring_some((16_000 / length).max(1), length));
        }
        small.room = small.log.device.own();
        small.log.device = Device::small(&small.place.0, small.room);
        assert!(!small.bring(50_000));
        while let Some(gone) = small.kept.keys().nth(small.rng.below(small.kept.len().max(1) as u64) as usize)
        {
            let gone = *gone;
            small.take_away(gone);
            if small.kept.len().is_multiple_of(500) {
                small.reopen();
                small.check();
            }
        }
        small.rest();
        assert!(small.bring(small.room / 4), "records of {length} bytes");
    }
}

/// A delivery ends only when it is noted: a full device accepts that, and nothing long.
#[test]
fn a_full_device_takes_notes() {
    let mut small = Small::new("notes", ROOM);
    small.fill(100_000);
    for _ in 0..100 {
        assert!(small.bring(100));
        assert!(!small.bring(100_000));
    }
    small.check();
    small.reopen();
    assert!(small.bring(100));
    small.check();
}

/// At whatever point a crash interrupts the compaction, everything is found, and it is completed afterwards.
#[test]
fn a_crash_between_any_two_moves_loses_nothing() {
    let mut small = Small::new("moves", ROOM);
    small.fill(30_000);
    let every_other: Vec<u64> = small.kept.keys().copied().step_by(2).collect();
    for record in every_other {
        small.kept.remove(&record);
        let _ = small.log.write(&[remove(record)]);
    }
    let mut moves = 0;
    loop {
        small.reopen();
        small.check();
        if !small.log.maintain() {
            break;
        }
        moves += 1;
    }
    assert!(moves > 10, "{moves} moves");
    assert!(small.bring(small.room / 16));
    small.check();
}

/// The device seems slightly larger or smaller at each opening: others write to it, and blocks are smaller than assumed. The
/// reserve is then longer or shorter than a new one would be; it is still released when needed, and every removal makes
/// room, although the very first record stays.
#[test]
fn what_was_put_aside_by_another_opening_is_there_in_need() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let mut small = Small::new("aside", ROOM);
        assert!(small.bring(48));
        small.fill(10_000 + rng.below(300_000));
        for _ in 0..2 {
            let more = rng.below(100_000);
            let other = if rng.chance(0.5) { ROOM + more } else { ROOM - more };
            small.room = other.max(small.log.device.own());
            small.reopen();
            small.check();
            let gone: Vec<u64> = small.kept.keys().copied().skip(1).collect();
            for record in gone {
                small.take_away(record);
            }
            small.rest();
            let (total, live) = small.log.totals();
            let much = small.room / 4;
            assert!(small.bring(much), "seed {seed}, {}: {live} of {total} count", small.room);
            small.check();
            small.fill(10_000 + rng.below(300_000));
        }
    }
}
