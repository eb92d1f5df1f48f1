//! Files in bundles: encoding of the file name.
//!
//! ```text
//!   "LWFILE1\n" | length of the name 2 | name, UTF-8 .. | CRC-32C 4 | the file's bytes ..
//! ```
//!
//! The checksum covers everything before it, so that no other payload passes for a file. A payload without this header is
//! stored as it is, under a name made of its bundle's source and time. Numbers are big-endian; a name has at most
//! 255 bytes. The receiver decides which names are valid ([`safe_name`]): a name, never a path.

use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::codec::crc::crc32c;

const MAGIC: &[u8; 8] = b"LWFILE1\n";
/// Maximum length of a name, bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum length of the header, bytes: enough of a payload to decode it.
pub const HEAD_BYTES_MAX: usize = 8 + 2 + NAME_BYTES_MAX + 4;

/// Header of a file with this name.
pub fn head(name: &str) -> Bytes {
    let name = cut(name, NAME_BYTES_MAX);
    let mut out = BytesMut::new();
    out.put_slice(MAGIC);
    out.put_u16(name.len() as u16);
    out.put_slice(name.as_bytes());
    let crc = crc32c(&out);
    out.put_u32(crc);
    out.freeze()
}

/// Decodes the header: the name as sent, and the offset of the file's first byte; `None` if the payload has no header.
pub fn read(payload: &[u8]) -> Option<(&str, usize)> {
    let rest = payload.strip_prefix(MAGIC)?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_be_bytes(*length));
    if length > NAME_BYTES_MAX {
        return None;
    }
    let (name, rest) = rest.split_at_checked(length)?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    let before = MAGIC.len() + 2 + length;
    let fits = crc32c(&payload[..before]).to_be_bytes() == *crc;
    fits.then(|| std::str::from_utf8(name).ok().map(|name| (name, before + 4)))?
}

/// Turns a name into the name of a file in a folder: no path, not hidden, no control characters, no device name of another
/// system.
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last
        .chars()
        .map(|c| if c.is_control() || "<>:\"|?*".contains(c) || is_invisible(c) { '_' } else { c })
        .collect();
    let plain = plain.trim().trim_end_matches('.');
    // Leaves space for a number, in case the name exists.
    let plain = cut(plain, NAME_BYTES_MAX - 16);
    let stem = plain.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || (stem.len() == 4 && (stem.starts_with("COM") || stem.starts_with("LPT")));
    match plain {
        "" => "file".to_owned(),
        hidden if hidden.starts_with('.') || device => format!("_{hidden}"),
        plain => plain.to_owned(),
    }
}

/// True for characters that change the direction of a text or are invisible: a name must be what it looks like.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Longest prefix of a text with at most this many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_travels_and_nothing_else_passes_for_one() {
        for name in ["letter.txt", "", "übergröße.png", &"x".repeat(255)] {
            let mut payload = head(name).to_vec();
            assert!(payload.len() <= HEAD_BYTES_MAX);
            assert_eq!(read(&payload), Some((name, payload.len())));
            payload.extend_from_slice(b"content");
            assert_eq!(read(&payload), Some((name, payload.len() - 7)));
            for at in 0..payload.len() - 7 {
                assert_eq!(read(&payload[..at]), None);
                let mut other = payload.clone();
                other[at] ^= 1;
                assert_eq!(read(&other), None, "byte {at} of {name}");
            }
        }
        assert_eq!(head(&"ä".repeat(200)).len(), 8 + 2 + 254 + 4, "cut between letters");
    }

    #[test]
    fn a_name_is_never_a_path() {
        let cases = [
            ("letter.txt", "letter.txt"),
            ("/etc/passwd", "passwd"),
            ("../../.ssh/authorized_keys", "authorized_keys"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("..", "file"),
            (".", "file"),
            ("", "file"),
            ("a/", "file"),
            (".bashrc", "_.bashrc"),
            ("nul.txt", "_nul.txt"),
            ("COM1", "_COM1"),
            ("a\0b\nc", "a_b_c"),
            ("photo\u{202e}gpj.exe", "photo_gpj.exe"),
            ("C:evil", "C_evil"),
            ("  spaced.txt  ", "spaced.txt"),
        ];
        for (name, safe) in cases {
            assert_eq!(safe_name(name), safe, "{name:?}");
        }
        let long = safe_name(&"ö".repeat(300));
        assert!(long.len() <= NAME_BYTES_MAX - 16 && long.chars().all(|c| c == 'ö'));
    }
}
