//! Maildirs: a folder for each user with `tmp`, `new` and `cur`.
//!
//! A message is written to `tmp`, synced, and linked into `new`. Its name comes from its bundle, so that a message that is delivered again
//! after a crash does not appear twice, also if a mail program has moved it to `cur` meanwhile.

use crate::private_files;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Folders of a Maildir.
const PARTS: [&str; 3] = ["tmp", "new", "cur"];

/// Folders of all users.
#[derive(Clone, Debug)]
pub(super) struct Maildirs {
    folder: PathBuf,
}

impl Maildirs {
    pub(super) fn new(folder: PathBuf) -> Self {
        Maildirs { folder }
    }

    /// Creates the folders of these users.
    pub(super) fn make(&self, users: &[String]) -> io::Result<()> {
        private_files::make_folder(&self.folder)?;
        users.iter().try_for_each(|user| self.make_one(user))
    }

    /// Creates the folders of a user, so that they and their messages outlast a power cut.
    fn make_one(&self, user: &str) -> io::Result<()> {
        let place = self.folder.join(user);
        for part in PARTS {
            private_files::make_folder(&place.join(part))?;
        }
        let above = self.folder.parent().filter(|above| !above.as_os_str().is_empty());
        [Some(&*place), Some(&*self.folder), above].into_iter().flatten().try_for_each(sync_folder)
    }

    /// Writes a message of several parts under a name. `user` is one of the configuration, never one of a message. Returns false if
    /// it is there already. In both cases it outlasts a power cut.
    pub(super) fn deliver(&self, user: &str, name: &str, parts: &[&[u8]]) -> io::Result<bool> {
        let place = self.folder.join(user);
        if !PARTS.iter().all(|part| place.join(part).is_dir()) {
            self.make_one(user)?;
        }
        let is_new = !is_there(&place, name)? && put(&place, name, parts)?;
        // A message that is there already may have been put there just before a crash.
        let folders: &[&str] = if is_new { &["new"] } else { &["new", "cur"] };
        folders.iter().try_for_each(|folder| sync_folder(&place.join(folder)))?;
        Ok(is_new)
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Puts a message into `new`, synced. Returns false if it is there already.
fn put(place: &Path, name: &str, parts: &[&[u8]]) -> io::Result<bool> {
    let (tmp, new) = (place.join("tmp").join(name), place.join("new").join(name));
    // A leftover of a crash.
    let _ = fs::remove_file(&tmp);
    let mut file = private_files::file().write(true).create_new(true).open(&tmp)?;
    let written = parts.iter().try_for_each(|part| file.write_all(part)).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| match fs::hard_link(&tmp, &new) {
        // A file system without links.
        Err(error) if error.kind() != ErrorKind::AlreadyExists && !new.exists() => fs::rename(&tmp, &new),
        linked => linked,
    });
    let _ = fs::remove_file(&tmp);
    match placed {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        placed => placed.map(|()| true),
    }
}

/// True if a message of this name is in `new`, or in `cur` with any flags.
fn is_there(place: &Path, name: &str) -> io::Result<bool> {
    if fs::symlink_metadata(place.join("new").join(name)).is_ok() {
        return Ok(true);
    }
    for entry in fs::read_dir(place.join("cur"))? {
        let found = entry?.file_name();
        let found = found.to_string_lossy();
        if found.split(':').next() == Some(name) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn a_message_appears_whole_and_once() {
        let place = TestFolder::new("maildir");
        let maildirs = Maildirs::new(place.0.join("mail"));
        maildirs.make(&["bob".to_owned()]).unwrap();
        assert!(maildirs.deliver("bob", "1.a", &[b"Subject: x\n", b"\nbody"]).unwrap());
        let new = place.0.join("mail/bob/new/1.a");
        assert_eq!(fs::read(&new).unwrap(), b"Subject: x\n\nbody");
        assert_eq!(fs::read_dir(place.0.join("mail/bob/tmp")).unwrap().count(), 0);
        // Again, also after a mail program has seen it, and over a leftover.
        assert!(!maildirs.deliver("bob", "1.a", &[b"other"]).unwrap());
        fs::rename(&new, place.0.join("mail/bob/cur/1.a:2,S")).unwrap();
        assert!(!maildirs.deliver("bob", "1.a", &[b"other"]).unwrap());
        fs::write(place.0.join("mail/bob/tmp/2.a"), "half").unwrap();
        assert!(maildirs.deliver("bob", "2.a", &[b"whole"]).unwrap());
        assert_eq!(fs::read(place.0.join("mail/bob/new/2.a")).unwrap(), b"whole");
        // The folder of a user may be missing.
        fs::remove_dir_all(place.0.join("mail/bob")).unwrap();
        assert!(maildirs.deliver("bob", "3.a", &[b"x"]).unwrap());
    }
}
