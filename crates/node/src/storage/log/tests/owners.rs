//! Owners and rights of the files of a store.

use super::*;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};

/// User of the service.
const SERVICE: u32 = 54_321;

fn owners(folder: &Path) -> BTreeMap<PathBuf, u32> {
    let mut all = BTreeMap::from([(folder.to_owned(), fs::symlink_metadata(folder).unwrap().uid())]);
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => all.extend(owners(&path)),
            path => drop(all.insert(path, entry.metadata().unwrap().uid())),
        }
    }
    all
}

/// The superuser repairs the store of a service, which must be able to open it afterwards.
#[test]
fn what_the_superuser_makes_belongs_to_the_owner_of_the_store() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only the superuser can give files away");
        return;
    }
    let place = Place::new("owners");
    let (path, places) = sample(&place);
    fs::remove_file(path.with_extension("listing")).unwrap();
    fs::remove_file(place.0.join("reserve")).unwrap();
    flip(&path, places[1] + HEADER_BYTES as u64 + 1);
    flip(&path, places[5] + 9);
    // The target of a symbolic link is neither written to nor given another owner.
    let key = Place::new("owners-key");
    fs::write(&key.0, "of the superuser").unwrap();
    symlink(&key.0, place.0.join("reserve")).unwrap();
    for path in owners(&place.0).keys().filter(|path| !path.is_symlink()) {
        chown(path, Some(SERVICE), Some(SERVICE)).unwrap();
    }
    let repaired = repair(&place.0, &mut |_, _| {}).unwrap();
    assert!(repaired.damage.iter().filter(|damage| damage.kept.is_some()).count() > 1);
    let owners = owners(&place.0);
    assert!(place.files("log").len() > 1 && place.files("listing").len() > 1);
    assert!(owners.values().all(|owner| *owner == SERVICE), "{owners:#?}");
    assert_eq!(fs::metadata(&key.0).unwrap().uid(), 0);
    assert_eq!(fs::read_to_string(&key.0).unwrap(), "of the superuser");
    fs::remove_file(&key.0).unwrap();
}

/// In the folder of a group, or on a file system without rights, the node still starts and reports it.
#[test]
fn rights_that_cannot_be_taken_from_others_are_counted() {
    let place = Place::new("rights");
    sample(&place);
    // Rights to the files of a process in /proc cannot be changed.
    symlink("/proc/self/status", place.0.join("00000009.listing")).unwrap();
    let (log, opened) = place.open();
    assert_eq!((opened.open_to_others, opened.records), (1, 3));
    drop(log);
    fs::remove_dir_all(&place.0).unwrap();
    assert_eq!(place.open().1.open_to_others, 0);
}
