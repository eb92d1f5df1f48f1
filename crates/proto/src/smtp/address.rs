//! Addresses of mailboxes (RFC 5321 4.1.2).

use crate::service::MailAddress;

/// Maximum length of the part before the `@` (RFC 5321 4.5.3.1.1).
const LOCAL_BYTES_MAX: usize = 64;
/// Maximum length of a domain (RFC 5321 4.5.3.1.2).
const DOMAIN_BYTES_MAX: usize = 255;

/// Reads an address, without brackets. `None` if it is none. A domain may be any name of letters, digits, dots, hyphens and
/// underscores, as those of nodes are.
pub fn parse_address(text: &str) -> Option<MailAddress> {
    let (local, domain) = match text.strip_prefix('"') {
        Some(quoted) => {
            let (local, rest) = unquoted(quoted)?;
            (local, rest.strip_prefix('@')?)
        }
        None => {
            let (local, domain) = text.split_once('@')?;
            let is_dotted = local.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_atom_byte));
            (is_dotted.then(|| local.to_owned())?, domain)
        }
    };
    let fits = (1..=LOCAL_BYTES_MAX).contains(&local.len()) && is_domain(domain);
    fits.then(|| MailAddress { local, domain: domain.to_owned() })
}

/// Returns true for the characters of atoms (RFC 5322 3.2.3).
fn is_atom_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    domain.len() <= DOMAIN_BYTES_MAX && domain.split('.').all(is_label)
}

/// Reads a quoted string behind its first quote. Returns it without quotes, and the rest.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut local = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        let letter = match letter {
            '"' => return Some((local, &text[at + 1..])),
            '\\' => letters.next()?.1,
            letter => letter,
        };
        if !matches!(letter, ' '..='~') {
            return None;
        }
        local.push(letter);
    }
    None
}

/// Reads a path: an address in angle brackets, and the rest behind it. A route before the address is ignored (RFC 5321 4.1.1.3).
pub(super) fn take_path(text: &str) -> Option<(Path, &str)> {
    let inner = text.strip_prefix('<')?;
    let mut quoted = false;
    let mut escaped = false;
    let end = inner.bytes().position(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'>' if !quoted => return true,
            _ => {}
        }
        false
    })?;
    let (path, rest) = (&inner[..end], &inner[end + 1..]);
    let path = match path.strip_prefix('@') {
        Some(routed) => routed.split_once(':')?.1,
        None => path,
    };
    let path = match path {
        "" => Path::Null,
        name if name.eq_ignore_ascii_case("postmaster") => {
            Path::Mailbox(MailAddress { local: name.to_owned(), domain: String::new() })
        }
        address => Path::Mailbox(parse_address(address)?),
    };
    Some((path, rest))
}

/// Address in angle brackets, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// `<>`.
    Null,
    /// An address.
    Mailbox(MailAddress),
}
