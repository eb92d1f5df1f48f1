//! A folder held open, and operations in it that follow no symbolic links.
//!
//! A user with write access to a watched folder can replace anything in it by a symbolic link between any two steps, to make the node
//! send, move or remove what only the node may touch. So each step starts at an open folder, not at a path.

use rustix::fd::OwnedFd;
use rustix::fs::{Access, accessat, statat, unlinkat};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, RenameFlags, fsync, mkdirat, openat, renameat, renameat_with};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Flags for opening a folder or file: for reading, and not inherited by other programs.
const STEP: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

/// An open folder, whatever is at its path now.
#[derive(Debug)]
pub(super) struct OpenFolder(OwnedFd);

impl OpenFolder {
    /// Opens the folder at a configured path; symbolic links on the way to it are permitted.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(OpenFolder(rustix::fs::open(path, STEP | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Opens a folder in this one; fails for a symbolic link.
    pub(super) fn folder(&self, name: &OsStr) -> io::Result<Self> {
        match openat(&self.0, name, STEP | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let what =
                    format!("{} is not a folder (or is a symbolic link); ignored", name.to_string_lossy());
                Err(io::Error::new(io::ErrorKind::NotADirectory, what))
            }
            opened => Ok(OpenFolder(opened?)),
        }
    }

    /// Creates a folder that must not exist: rwx for its user and no rights for others.
    pub(super) fn new_folder(&self, name: &OsStr) -> io::Result<Self> {
        mkdirat(&self.0, name, Mode::RWXU)?;
        self.folder(name)
    }

    /// Opens a folder, and creates it if it does not exist.
    pub(super) fn some_folder(&self, name: &OsStr) -> io::Result<Self> {
        match mkdirat(&self.0, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that this user may create files in the folder.
    pub(super) fn check_writable(&self) -> io::Result<()> {
        Ok(accessat(&self.0, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?)
    }

    /// Opens a file in this folder; `None` for a symbolic link or anything else that is not a regular file. The check is on the
    /// opened file, not on its name.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<Option<File>> {
        // Does not wait for the writer of a pipe.
        match openat(&self.0, name, STEP | OFlags::NOFOLLOW | OFlags::NONBLOCK, Mode::empty()) {
            Ok(file) => {
                let file = File::from(file);
                Ok(file.metadata()?.is_file().then_some(file))
            }
            Err(Errno::LOOP | Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Names of at most this many entries.
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

    /// Moves an entry of another folder here.
    pub(super) fn take(&self, from: &OpenFolder, name: &OsStr) -> io::Result<()> {
        Ok(renameat(&from.0, name, &self.0, name)?)
    }

    /// Moves an entry of another folder here under a new name; fails if the name exists.
    pub(super) fn take_as(&self, from: &OpenFolder, name: &OsStr, new: &OsStr) -> io::Result<()> {
        match renameat_with(&from.0, name, &self.0, new, RenameFlags::NOREPLACE) {
            // A file system that cannot check and move in one step.
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

    /// Removes a file, or a symbolic link itself.
    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(super) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes the names in this folder durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.0)?)
    }
}
