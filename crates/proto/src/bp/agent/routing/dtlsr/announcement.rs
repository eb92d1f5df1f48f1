//! Announcements and their wire format.
//!
//! A record is the content of an administrative record (RFC 9171 6.1) of type 64577, one of those for private use (RFC 9713 4.1).
//! Its bundle goes from a node to a neighbour and no further, so its destination is the endpoint that every node has whatever
//! its scheme, the administrative one, and nodes that do not know the type ignore the record (RFC 9713 2). All arrays and
//! integers have their shortest form.
//!
//! ```text
//!   record       = [version = 1, [announcement, ..]]                         at most 4,096 bytes with its type
//!   announcement = [origin, sequence, age, [link, ..]]                       at most 128 links
//!   link         = [neighbour, delay] / [neighbour, delay, down, outage]     up / down
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | `origin`, `neighbour` | node IDs, encoded as in bundles (RFC 9171 4.2.5.1) |
//! | `sequence` | number of the announcement: higher is newer, at most 2^62 |
//! | `age` | milliseconds since the origin made the announcement, as far as it is known |
//! | `delay` | time in which a bundle passes the link while it is up, milliseconds, 1 to 86,400,000 |
//! | `down` | milliseconds for which the link had been down when the announcement was made |
//! | `outage` | smoothed length of its earlier outages, milliseconds; zero without one |

use crate::bp::{AdminRecord, Eid};
use crate::codec::{DecodeError, cbor, encoded};
use bytes::{Bytes, BytesMut};

/// Type of the administrative record.
pub(in super::super::super) const RECORD_TYPE: u64 = 64_577;
/// Maximum length of an administrative record with announcements, bytes: the default limit of a receiver.
pub(super) const RECORD_BYTES_MAX: usize = 4096;
/// Maximum number of links in an announcement.
pub(super) const LINKS_MAX: usize = 128;
/// Maximum sequence number: there is always a higher number that fits.
pub(super) const SEQUENCE_MAX: u64 = 1 << 62;
/// Maximum delay of a link and maximum expected wait for it, milliseconds: a day.
pub(super) const DELAY_MAX_MS: u64 = 86_400_000;

const VERSION: u64 = 1;
/// Length of the type, the version and the heads of their arrays, bytes.
const FRAME_BYTES: usize = 10;
/// Maximum growth of an announcement with its age, bytes.
const AGE_BYTES: usize = 8;
const CLAUSE: &str = "DTLSR version 1";

/// State of the links of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) origin: Eid,
    pub(super) sequence: u64,
    /// Time since the announcement was made, milliseconds.
    pub(super) age_ms: u64,
    pub(super) links: Vec<AnnouncedLink>,
}

/// Directed link to a neighbour of the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnnouncedLink {
    pub(super) to: Eid,
    /// Delay while the link is up, milliseconds.
    pub(super) delay_ms: u64,
    /// `None` if the link was up.
    pub(super) outage: Option<Outage>,
}

/// Outage of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    /// Time since the link went down, milliseconds.
    pub(super) down_ms: u64,
    /// Smoothed length of earlier outages, milliseconds; zero without one.
    pub(super) mean_ms: u64,
}

impl Announcement {
    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        array(input, 4)?;
        let origin = node(input)?;
        let sequence = number(input)?;
        if sequence > SEQUENCE_MAX {
            return Err(DecodeError::Limit { what: "the sequence number of an announcement" });
        }
        let age_ms = number(input)?;
        let count = cbor::array(input, "an announcement", CLAUSE)?.ok_or(invalid())?;
        if count > LINKS_MAX as u64 {
            return Err(DecodeError::Limit { what: "the number of links in an announcement" });
        }
        let links = (0..count).map(|_| AnnouncedLink::decode(input)).collect::<Result<Vec<_>, _>>()?;
        if links.iter().any(|link| link.to == origin) {
            return Err(invalid());
        }
        Ok(Announcement { origin, sequence, age_ms, links })
    }

    /// Appends the announcement.
    pub(super) fn encode(&self, out: &mut BytesMut) {
        cbor::put_array(4, out);
        self.origin.encode(out);
        cbor::put_unsigned(self.sequence, out);
        cbor::put_unsigned(self.age_ms, out);
        cbor::put_array(self.links.len() as u64, out);
        self.links.iter().for_each(|link| link.encode(out));
    }
}

impl AnnouncedLink {
    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let items = cbor::array(input, "an announced link", CLAUSE)?;
        if !matches!(items, Some(2 | 4)) {
            return Err(invalid());
        }
        let (to, delay_ms) = (node(input)?, number(input)?);
        if !(1..=DELAY_MAX_MS).contains(&delay_ms) {
            return Err(DecodeError::Limit { what: "the delay of an announced link" });
        }
        let outage = match items {
            Some(4) => Some(Outage { down_ms: number(input)?, mean_ms: number(input)? }),
            _ => None,
        };
        Ok(AnnouncedLink { to, delay_ms, outage })
    }

    fn encode(&self, out: &mut BytesMut) {
        cbor::put_array(if self.outage.is_some() { 4 } else { 2 }, out);
        self.to.encode(out);
        cbor::put_unsigned(self.delay_ms, out);
        if let Some(outage) = self.outage {
            cbor::put_unsigned(outage.down_ms, out);
            cbor::put_unsigned(outage.mean_ms, out);
        }
    }
}

/// Decodes the content of a record.
///
/// # Errors
/// Fails with [`DecodeError::Unsupported`] for a record of another version, and otherwise if the content is not a list of
/// announcements within the limits.
pub(super) fn decode(content: &Bytes) -> Result<Vec<Announcement>, DecodeError> {
    if content.len() > RECORD_BYTES_MAX {
        return Err(DecodeError::Limit { what: "the length of a record of announcements" });
    }
    let input = &mut content.clone();
    let items = cbor::array(input, "a record of announcements", CLAUSE)?;
    if number(input)? != VERSION {
        return Err(DecodeError::Unsupported { what: "the version of announcements", clause: CLAUSE });
    }
    if items != Some(2) {
        return Err(invalid());
    }
    // The shortest announcement takes several bytes, so the length of the record bounds their number.
    let count = cbor::array(input, "a record of announcements", CLAUSE)?.ok_or(invalid())?;
    let mut announcements = Vec::new();
    for _ in 0..count {
        announcements.push(Announcement::decode(input)?);
    }
    if input.is_empty() { Ok(announcements) } else { Err(invalid()) }
}

/// Record with as many of these announcements as fit, and their number.
pub(super) fn record(announcements: impl Iterator<Item = Announcement>) -> (Bytes, usize) {
    let (mut list, mut count) = (BytesMut::new(), 0);
    for announcement in announcements {
        let next = encoded(128, |out| announcement.encode(out));
        if count > 0 && FRAME_BYTES + list.len() + next.len() > RECORD_BYTES_MAX {
            break;
        }
        list.extend_from_slice(&next);
        count += 1;
    }
    let content = encoded(FRAME_BYTES + list.len(), |out| {
        cbor::put_array(2, out);
        cbor::put_unsigned(VERSION, out);
        cbor::put_array(count as u64, out);
        out.extend_from_slice(&list);
    });
    (AdminRecord::Unknown { record_type: RECORD_TYPE, content }.to_bytes(), count)
}

/// True if an announcement fits into a record, whatever its age.
pub(super) fn fits(announcement: &Announcement) -> bool {
    FRAME_BYTES + AGE_BYTES + encoded(128, |out| announcement.encode(out)).len() <= RECORD_BYTES_MAX
}

fn array(input: &mut Bytes, items: u64) -> Result<(), DecodeError> {
    let found = cbor::array(input, "an announcement", CLAUSE)?;
    if found == Some(items) { Ok(()) } else { Err(invalid()) }
}

fn number(input: &mut Bytes) -> Result<u64, DecodeError> {
    cbor::unsigned(input, "a number of an announcement", CLAUSE)
}

/// Node ID in memory of its own.
fn node(input: &mut Bytes) -> Result<Eid, DecodeError> {
    let node = Eid::decode(input)?;
    if node.is_node_id() { Ok(node.detached()) } else { Err(invalid()) }
}

const fn invalid() -> DecodeError {
    DecodeError::invalid("an announcement", CLAUSE)
}
