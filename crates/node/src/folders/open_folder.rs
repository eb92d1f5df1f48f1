//! A folder that is held open, and what is done in it without following a link.
//!
//! Any user who may write to a watched folder can put a link in the place of anything in it between any two steps, to have the
//! node send, move or remove what only the node may touch. So each step begins at a folder that is open, not at a path.

use rustix::fd::OwnedFd;
use rustix::fs::{Access, accessat, statat, unlinkat};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, RenameFlags, fsync, mkdirat, openat, renameat, renameat_with};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// How a folder or a file is opened: for reading, and not for programs that are started.
const STEP: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

/// A folder that is open, whatever is under its name now.
#[derive(Debug)]
pub(super) struct OpenFolder(OwnedFd);

impl OpenFolder {
    /// The folder at a path of the configuration: links on the way to it are the operator's.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(OpenFolder(rustix::fs::open(path, STEP | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// A folder in it; a link is none.
    pub(super) fn folder(&self, name: &OsStr) -> io::Result<Self> {
        match openat(&self.0, name, STEP | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let what = format!("{} is a link or no folder, and is left alone", name.to_string_lossy());
                Err(io::Error::new(io::ErrorKind::NotADirectory, what))
            }
            opened => Ok(OpenFolder(opened?)),
        }
    }

    /// A folder in it that must not be there: rwx for its user and nothing for others.
    pub(super) fn new_folder(&self, name: &OsStr) -> io::Result<Self> {
        mkdirat(&self.0, name, Mode::RWXU)?;
        self.folder(name)
    }

    /// The same, of one that may be there.
    pub(super) fn some_folder(&self, name: &OsStr) -> io::Result<Self> {
        match mkdirat(&self.0, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that this user may put files into it.
    pub(super) fn check_writable(&self) -> io::Result<()> {
        Ok(accessat(&self.0, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?)
    }

    /// A file in it; `None`: it is a link, or something else that is no regular file. The opened file is looked at, not the one
    /// that has its name.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<Option<File>> {
        // A pipe without a writer is not waited for.
        match openat(&self.0, name, STEP | OFlags::NOFOLLOW | OFlags::NONBLOCK, Mode::empty()) {
            Ok(file) => {
                let file = File::from(file);
                Ok(file.metadata()?.is_file().then_some(file))
            }
            Err(Errno::LOOP | Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The names of so many things in it.
    pub(super) fn names(&self, most: usize) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if names.len() < most && name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Moves what is in another here.
    pub(super) fn take(&self, from: &OpenFolder, name: &OsStr) -> io::Result<()> {
        Ok(renameat(&from.0, name, &self.0, name)?)
    }

    /// Moves what is in another here, under a name that nothing has: nothing that is there is replaced.
    pub(super) fn take_as(&self, from: &OpenFolder, name: &OsStr, new: &OsStr) -> io::Result<()> {
        match renameat_with(&from.0, name, &self.0, new, RenameFlags::NOREPLACE) {
            // A file system that cannot look and move in one step.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                match statat(&self.0, new, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => Ok(renameat(&from.0, name, &self.0, new)?),
                    Err(error) => Err(error.into()),
                    Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                }
            }
            moved => Ok(moved?),
        }
    }

    /// Removes a file in it, or a link itself.
    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty folder in it.
    pub(super) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes durable what is in it under which names.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.0)?)
    }
}
