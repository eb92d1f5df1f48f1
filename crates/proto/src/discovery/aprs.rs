//! Announcements in UI frames of AX.25 that APRS software shows (APRS Protocol Reference 1.2, chapters 11 and 16).
//!
//! ```text
//! ;alice    *111111z5316.40N/00746.70Wndtn://alice/     an object at a position: its name, the node ID as its comment
//! >dtn://alice/                                         a status report, without a position
//! ```
//!
//! The time of the object is that of objects that stay. Its symbol is that of a node, `/n`. A word that is a node ID must
//! stand at the beginning of the comment or of the status; any text may follow. The station to call is the source of the
//! frame.

use super::{Announcement, Format, is_plain_node};
use crate::bp::Eid;
use crate::codec::DecodeError;
use core::fmt::Write as _;
use core::str;

/// Maximum length of the comment of an object (chapter 11).
pub const COMMENT_BYTES_MAX: usize = 43;
/// Maximum length of a status report without a time (chapter 16).
pub const STATUS_BYTES_MAX: usize = 62;
/// Maximum length of a text that is read, bytes.
const TEXT_BYTES_MAX: usize = 256;
/// Length of an object before its comment.
const OBJECT_BYTES: usize = 37;
/// Length of the name of an object.
const NAME_BYTES: usize = 9;
const OBJECT: &str = "APRS 1.2 11";
const STATUS: &str = "APRS 1.2 16";

/// Position on the Earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Latitude, degrees north.
    pub latitude: f64,
    /// Longitude, degrees east.
    pub longitude: f64,
}

impl Position {
    /// Reads `53.2734, -7.7783`: degrees north and east.
    pub fn parse(text: &str) -> Option<Position> {
        let (latitude, longitude) = text.split_once(',')?;
        let read =
            |text: &str, most: f64| text.trim().parse::<f64>().ok().filter(|value| value.abs() <= most);
        Some(Position { latitude: read(latitude, 90.0)?, longitude: read(longitude, 180.0)? })
    }
}

/// Text that announces a node: an object at the position, or else a status report. `None` if the node ID is too long for it.
pub fn text(node: &Eid, position: Option<Position>, comment: &str) -> Option<String> {
    let limit = if position.is_some() { COMMENT_BYTES_MAX } else { STATUS_BYTES_MAX };
    let mut words = node.to_string();
    if words.len() > limit || !is_plain_node(node) {
        return None;
    }
    for word in comment.split_whitespace() {
        if words.len() + 1 + word.len() > limit {
            break;
        }
        let _ = write!(words, " {word}");
    }
    let Some(Position { latitude, longitude }) = position else { return Some(format!(">{words}")) };
    let name: String = short_name(node).chars().take(NAME_BYTES).collect();
    let north = angle(latitude, 2, ['N', 'S']);
    let east = angle(longitude, 3, ['E', 'W']);
    Some(format!(";{name:<NAME_BYTES$}*111111z{north}/{east}n{words}"))
}

/// Name of the object of a node: its name without the scheme.
fn short_name(node: &Eid) -> String {
    let text = node.to_string();
    let name = text.strip_prefix("dtn://").unwrap_or(&text).trim_end_matches('/');
    name.chars().map(|letter| if letter.is_ascii_graphic() { letter } else { '_' }).collect()
}

/// Degrees and minutes with two decimals (chapter 6).
fn angle(degrees: f64, digits: usize, signs: [char; 2]) -> String {
    let hundredths = libm::round(degrees.abs() * 6000.0) as u64;
    let sign = signs[usize::from(degrees < 0.0)];
    let (whole, minutes) = (hundredths / 6000, hundredths % 6000);
    format!("{whole:0digits$}{:02}.{:02}{sign}", minutes / 100, minutes % 100)
}

/// Reads the text of a UI frame.
///
/// # Errors
/// Fails if it is no object or status report, or does not begin with a node ID.
pub fn announcement(text: &[u8]) -> Result<Announcement, DecodeError> {
    let wrong = DecodeError::invalid("an announcement", STATUS);
    if text.len() > TEXT_BYTES_MAX {
        return Err(wrong);
    }
    let text = str::from_utf8(text).map_err(|_| wrong)?;
    let comment = match text.as_bytes().first() {
        Some(b'>') => &text[1..],
        Some(b';') => object_comment(text)?,
        _ => return Err(wrong),
    };
    let word = comment.split_whitespace().next().filter(|word| comment.starts_with(word));
    let node = word.and_then(|word| word.parse::<Eid>().ok()).filter(is_plain_node).ok_or(wrong)?;
    Ok(Announcement {
        format: Format::Aprs,
        node,
        created: None,
        validity: None,
        tcp_port: None,
        solicits: false,
    })
}

/// Comment of an object that lives: a killed one has `_` after its name.
fn object_comment(text: &str) -> Result<&str, DecodeError> {
    let wrong = DecodeError::invalid("an object", OBJECT);
    let is_live = text.as_bytes().get(1 + NAME_BYTES) == Some(&b'*');
    text.get(OBJECT_BYTES..).filter(|_| is_live).ok_or(wrong)
}
