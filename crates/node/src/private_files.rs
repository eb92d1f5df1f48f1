//! Files and folders that only this node's user can access, whatever the umask is: bundles are confidential, and write
//! access would give control over the node.

use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Creates a folder and its missing parents: rwx for its user, no rights for others.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns options for a file that, when created, is rw for its user and closed to others.
pub(crate) fn file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Creates or opens a file, without following a symbolic link at its path. A file that the superuser creates in another
/// user's folder gets that user as its owner, if the file system supports it, so that the user can read it later.
pub(crate) fn make(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)?;
    give(path, &file)?;
    Ok(file)
}

/// Replaces a file as a whole: a crash leaves the old one or the new one.
///
/// # Errors
/// Fails if it cannot be written; then the old one is unchanged.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    // The whole name stays in it: a name without its ending may be that of another file, even of the store.
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut options = self::file();
    let mut file = make(options.create(true).truncate(true).write(true), &new)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    // Without this, a power cut could undo the change.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Creates a folder in an existing one, unless it exists; ownership is set as for files.
pub(crate) fn make_folder_in(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    let link_or_folder =
        OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path);
    link_or_folder.map_or(Ok(()), |folder| give(path, &folder))
}

fn give(path: &Path, file: &File) -> io::Result<()> {
    if geteuid().is_root()
        && let Some(folder) = path.parent()
    {
        // A path of one name has an empty parent.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let (made, folder) = (file.metadata()?, fs::metadata(folder)?);
        // A file with another hard link may be the superuser's own.
        if made.uid() == 0 && folder.uid() != 0 && (made.is_dir() || made.nlink() == 1) {
            let _ = fchown(file, Some(folder.uid()), Some(folder.gid()));
        }
    }
    Ok(())
}

/// Removes the rights of others to an existing file or folder. Returns false if it belongs to another user or its file
/// system has no rights, so that they remain.
pub(crate) fn close(path: &Path) -> io::Result<bool> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(true);
    }
    match fs::set_permissions(path, Permissions::from_mode(mode & 0o700)) {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
            Ok(false)
        }
        closed => closed.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rights to the files of a process in /proc cannot be changed.
    #[test]
    fn rights_that_cannot_be_taken_are_no_error() {
        assert!(!close(Path::new("/proc/self/status")).unwrap());
        assert!(close(Path::new("/proc/self/none")).is_err());
    }
}
