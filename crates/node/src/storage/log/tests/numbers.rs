//! Numbers of segments in their marks, and in their names.

use super::*;

/// Store of three segments, each with one record.
fn three(name: &str) -> Place {
    let place = Place::new(name);
    for record in 1..=3 {
        let (mut log, _) = place.open();
        log.write(&[append(record, 0, vec![record as u8; 300])]).unwrap();
    }
    assert_eq!(place.files("log").len(), 3);
    place
}

/// The newest segment has the name of an older one: the next segment gets neither its number nor its name.
#[test]
fn a_new_segment_never_takes_the_number_of_one_that_is_there() {
    for listed in [true, false] {
        let place = three("renamed");
        let newest = segment_path(&place.0, 3);
        fs::rename(&newest, segment_path(&place.0, 0)).unwrap();
        match listed {
            true => {
                let path = |number| listing::path(&place.0, number);
                fs::rename(path(3), path(0)).unwrap();
            }
            false => fs::remove_file(newest.with_extension("listing")).unwrap(),
        }
        let (mut log, _) = place.open();
        assert_eq!(log.active, 4, "{listed}");
        let mut wanted: BTreeMap<u64, Bytes> =
            (1..=3).map(|record| (record, vec![record as u8; 300].into())).collect();
        assert_eq!(content(&mut log), wanted, "{listed}");
        log.write(&[append(9, 0, "more")]).unwrap();
        wanted.insert(9, "more".into());
        assert_eq!(content(&mut log), wanted, "{listed}");
        drop(log);
        let (mut log, _) = place.open();
        assert_eq!(content(&mut log), wanted, "{listed}: again");
        log.write(&[remove(1), remove(2), remove(3), remove(9)]).unwrap();
        drop(log);
        let (mut log, opened) = place.open();
        assert_eq!((content(&mut log), opened.damaged), (BTreeMap::new(), 0), "{listed}: removed");
    }
}

#[test]
fn a_number_with_no_next_is_refused_and_nothing_is_changed() {
    let place = three("highest");
    let (segment, listing) = (segment_path(&place.0, 3), listing::path(&place.0, 3));
    let mut nothing = |_, _| {};
    for (path, name) in [
        (&segment, "4294967295.log"),
        (&segment, "4294967294.log"),
        (&segment, "2147483648.log"),
        (&listing, "4294967295.listing"),
    ] {
        let renamed = place.0.join(name);
        fs::rename(path, &renamed).unwrap();
        let opened = Log::open(&place.0).map(drop);
        let checked = check(&place.0, &mut nothing).map(drop);
        let repaired = repair(&place.0, &mut nothing).map(drop);
        for error in [opened, checked, repaired].map(Result::unwrap_err) {
            assert!(matches!(&error, OpenError::NumberTooHigh { file } if file == name), "{error:?}");
            assert!(error.to_string().ends_with("nothing was changed"), "{error}");
        }
        assert_eq!(place.files("log").len(), 3, "none was made");
        fs::rename(&renamed, path).unwrap();
    }
    let (mut log, opened) = place.open();
    assert_eq!((content(&mut log).len(), opened.damaged), (3, 0));
}

/// A listing of 1 TiB, which no memory can hold, is read only as far as its segment can have headers, and is then rewritten.
#[test]
fn a_listing_longer_than_its_segment_can_have_is_damage() {
    let place = three("long-listing");
    let listing = listing::path(&place.0, 2);
    let before = fs::read(&listing).unwrap();
    for length in [SEGMENT_BYTES + 1, 1 << 40] {
        OpenOptions::new().write(true).open(&listing).unwrap().set_len(length).unwrap();
        let (mut log, opened) = place.open();
        assert_eq!((content(&mut log).len(), opened.damaged), (3, 0), "{length}");
        drop(log);
        assert!(fs::read(&listing).unwrap() == before, "{length}: it is not as before");
    }
}
