//! Reads files that the user names. Each kind has a maximum size, because a device may have no end.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// Maximum size of a payload, bytes.
pub const BYTES_MAX: u64 = 1 << 30;
/// Maximum size of a text, bytes.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Reads a payload.
///
/// # Errors
/// Fails if the file cannot be read or is larger than [`BYTES_MAX`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, BYTES_MAX)
}

/// Reads a text, such as a configuration.
///
/// # Errors
/// Fails if the file cannot be read, is larger than [`TEXT_BYTES_MAX`], or is not valid UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read_up_to(path, TEXT_BYTES_MAX)?);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "not valid UTF-8"))
}

/// Reads a text as [`read_text`] does, but never waits: a process that is running must not depend on the writer of a FIFO.
///
/// # Errors
/// Fails as [`read_text`] does, and if it is not a regular file, which is then not opened.
pub fn read_regular_text(path: &Path) -> io::Result<String> {
    match std::fs::metadata(path)?.is_file() {
        true => read_text(path),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}

fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut content)?;
    match content.len() as u64 > most {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, format!("larger than {} MiB", most >> 20))),
        false => Ok(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_an_end_and_bytes_that_are_no_text_are_refused() {
        let refused = |read: io::Result<String>| read.unwrap_err().kind();
        assert_eq!(refused(read_text(Path::new("/dev/zero"))), ErrorKind::FileTooLarge);
        let binary = std::env::temp_dir().join(format!("longwire-no-text-{}", std::process::id()));
        std::fs::write(&binary, [0xff, 0xfe]).unwrap();
        assert_eq!(refused(read_text(&binary)), ErrorKind::InvalidData);
        assert_eq!(read(&binary).unwrap(), [0xff, 0xfe]);
        std::fs::remove_file(binary).unwrap();
        assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn only_a_regular_file_is_opened_where_nothing_may_wait() {
        let folder = std::env::temp_dir().join(format!("longwire-regular-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (text, link, large) = (folder.join("text"), folder.join("link"), folder.join("large"));
        std::fs::write(&text, "words").unwrap();
        std::os::unix::fs::symlink("text", &link).unwrap();
        assert_eq!(read_regular_text(&text).unwrap(), "words");
        assert_eq!(read_regular_text(&link).unwrap(), "words");
        File::create(&large).unwrap().set_len(TEXT_BYTES_MAX + 1).unwrap();
        let refused = |path: &Path| read_regular_text(path).unwrap_err().kind();
        assert_eq!(refused(&large), ErrorKind::FileTooLarge);
        assert_eq!(refused(&folder.join("missing")), ErrorKind::NotFound);
        for other in [&folder, Path::new("/dev/null"), Path::new("/dev/zero")] {
            assert_eq!(refused(other), ErrorKind::InvalidInput, "{}", other.display());
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
