//! Files and folders that are for this node's user only, whatever the umask says: what passes through a node is nobody
//! else's business, and who may write to it commands it.

use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// Makes a folder with those above it, as far as they are missing: rwx for its user and nothing for others.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// For a file that is rw for its user, and nothing for others, if it is made.
pub(crate) fn file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes or opens a file, and never the target of a link in its place. A file that the superuser makes in somebody's folder
/// belongs to them, as far as the file system can: they have to read it when the superuser is done.
pub(crate) fn make(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)?;
    give(path, &file)?;
    Ok(file)
}

/// Makes a folder in one that is there, unless it is there; the same holds for it.
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
        let (made, folder) = (file.metadata()?, fs::metadata(folder)?);
        // Of a file that has another name, too, that may be the superuser's own.
        if made.uid() == 0 && folder.uid() != 0 && (made.is_dir() || made.nlink() == 1) {
            let _ = fchown(file, Some(folder.uid()), Some(folder.gid()));
        }
    }
    Ok(())
}

/// Takes from others what rights they have to a file or folder that is there. False: it belongs to another user, or its file
/// system knows no rights, and they keep them.
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

    /// The files of a process take no other rights from anybody.
    #[test]
    fn rights_that_cannot_be_taken_are_no_error() {
        assert!(!close(Path::new("/proc/self/status")).unwrap());
        assert!(close(Path::new("/proc/self/none")).is_err());
    }
}
