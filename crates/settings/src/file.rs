//! Files that somebody names. A device may have no end, so that each kind has a limit.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// The most that is read of a payload, bytes.
pub const BYTES_MAX: u64 = 1 << 30;
/// The most that is read of a text, bytes.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// All of a payload.
///
/// # Errors
/// It cannot be read, or has more than [`BYTES_MAX`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, BYTES_MAX)
}

/// All of a text, such as a configuration.
///
/// # Errors
/// It cannot be read, has more than [`TEXT_BYTES_MAX`], or is no UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read_up_to(path, TEXT_BYTES_MAX)?);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not text (UTF-8)"))
}

fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut content)?;
    match content.len() as u64 > most {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {} MiB", most >> 20))),
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
}
