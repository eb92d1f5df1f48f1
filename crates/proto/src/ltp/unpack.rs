//! Bundles in a block: where each ends, found while the block arrives.
//!
//! A block has no length fields. A bundle of version 7 is one CBOR array of indefinite length (RFC 9171 4.1); one of version
//! 6 is a sequence of blocks with lengths, of which the last is marked (RFC 5050 4.5). Anything else extends to the end of
//! the block.

use bytes::Bytes;

/// Maximum nesting of CBOR in a bundle.
const DEPTH_MAX: usize = 16;
/// First byte of a bundle of version 7: an array of indefinite length.
const VERSION_7: u8 = 0x9f;
/// First byte of a bundle of version 6: its version.
const VERSION_6: u8 = 6;
/// Flag of a block of version 6: it is the last one.
const LAST_BLOCK: u64 = 0x08;
/// Flag of a block of version 6: it has references to endpoint IDs.
const HAS_REFERENCES: u64 = 0x40;

/// Bytes of one bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Offset in the block.
    pub(super) offset: u64,
    /// These are the first bytes of the bundle.
    pub(super) begins: bool,
    /// Bytes.
    pub(super) data: Bytes,
    /// The bundle ends with them.
    pub(super) ends: bool,
}

/// Result of scanning bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scanned {
    /// All bytes belong to the bundle, which continues.
    More,
    /// The bundle ends after this number of bytes.
    End(usize),
    /// The bytes are no bundle.
    Invalid,
}

/// Position in a block.
#[derive(Debug)]
enum Place {
    /// Between two bundles.
    Between,
    /// In the client service ID before a bundle.
    Service,
    Version7(CborScanner),
    Version6(Version6Scanner),
    /// In bytes that extend to the end of the block.
    Opaque,
}

/// Splits a block into bundles.
#[derive(Debug)]
pub(super) struct Unpacker {
    place: Place,
    /// Each bundle follows its client service ID.
    has_services: bool,
    /// A part of the present bundle was returned.
    has_begun: bool,
    /// Number of bytes of the block so far.
    offset: u64,
}

impl Unpacker {
    /// Creates an unpacker; `has_services` for a block with data of several client services.
    pub(super) fn new(has_services: bool) -> Self {
        Unpacker { place: Place::Between, has_services, has_begun: false, offset: 0 }
    }

    /// Returns the parts of the next bytes of the block. With `last` these are the last ones.
    pub(super) fn split(&mut self, mut data: Bytes, last: bool) -> Vec<Part> {
        let mut parts = Vec::new();
        while !data.is_empty() {
            if self.skip_service(&mut data) {
                continue;
            }
            let scanned = self.scan(&data);
            let length = match scanned {
                Scanned::End(length) => length,
                Scanned::More => data.len(),
                Scanned::Invalid => {
                    self.place = Place::Opaque;
                    data.len()
                }
            };
            let part = data.split_to(length);
            let ends = matches!(scanned, Scanned::End(_)) || (last && data.is_empty());
            let offset = self.offset;
            self.offset += part.len() as u64;
            parts.push(Part { offset, begins: !self.has_begun, data: part, ends });
            self.has_begun = !ends;
            if ends {
                self.place = Place::Between;
            }
        }
        if last && self.has_begun {
            parts.push(Part { offset: self.offset, begins: false, data: Bytes::new(), ends: true });
            self.has_begun = false;
        }
        parts
    }

    /// Skips a byte of the client service ID before a bundle. Returns false if there is none.
    fn skip_service(&mut self, data: &mut Bytes) -> bool {
        let is_before = matches!(self.place, Place::Between) && self.has_services;
        if !is_before && !matches!(self.place, Place::Service) {
            return false;
        }
        let ends = data.split_to(1)[0] & 0x80 == 0;
        self.offset += 1;
        self.place = if ends { Self::first(data) } else { Place::Service };
        true
    }

    /// Returns the place at the first byte of a bundle.
    fn first(data: &[u8]) -> Place {
        match data.first() {
            Some(&VERSION_7) | None => Place::Version7(CborScanner::default()),
            Some(&VERSION_6) => Place::Version6(Version6Scanner::default()),
            Some(_) => Place::Opaque,
        }
    }

    fn scan(&mut self, data: &[u8]) -> Scanned {
        let fresh = match &self.place {
            Place::Between => true,
            Place::Version7(scanner) => !scanner.has_begun && data[0] != VERSION_7,
            _ => false,
        };
        if fresh {
            self.place = Self::first(data);
        }
        match &mut self.place {
            Place::Version7(scanner) => scanner.scan(data),
            Place::Version6(scanner) => scanner.scan(data),
            Place::Between | Place::Service | Place::Opaque => Scanned::More,
        }
    }
}

/// Enclosing item of CBOR.
#[derive(Clone, Copy, Debug)]
enum Level {
    /// Items that are still to come.
    Items(u64),
    /// An item of indefinite length.
    Indefinite,
}

/// Finds the end of one item of CBOR.
#[derive(Debug, Default)]
struct CborScanner {
    has_begun: bool,
    levels: Vec<Level>,
    /// Bytes of a string that are still to come.
    skip: u64,
    /// Major type, value so far, and missing bytes of an argument; no argument if none are missing.
    argument: (u8, u64, u8),
}

impl CborScanner {
    fn scan(&mut self, data: &[u8]) -> Scanned {
        self.has_begun = true;
        let mut at = 0;
        while at < data.len() {
            if self.skip > 0 {
                let skipped = self.skip.min((data.len() - at) as u64);
                self.skip -= skipped;
                at += skipped as usize;
                if self.skip == 0 && self.end_item() {
                    return Scanned::End(at);
                }
                continue;
            }
            let ended = self.byte(data[at]);
            at += 1;
            match ended {
                Some(true) => return Scanned::End(at),
                Some(false) => {}
                None => return Scanned::Invalid,
            }
        }
        Scanned::More
    }

    /// Processes a byte of the head of an item. Returns true if the outermost item has ended, `None` if it is invalid.
    fn byte(&mut self, byte: u8) -> Option<bool> {
        let (major, value, missing) = self.argument;
        if missing > 0 {
            self.argument = (major, value << 8 | u64::from(byte), missing - 1);
            return if missing == 1 { self.head(major, self.argument.1) } else { Some(false) };
        }
        if byte == 0xff {
            let level = self.levels.pop()?;
            return matches!(level, Level::Indefinite).then(|| self.end_item());
        }
        let (major, info) = (byte >> 5, byte & 0x1f);
        match info {
            0..=23 => self.head(major, u64::from(info)),
            24..=27 => {
                self.argument = (major, 0, 1 << (info - 24));
                Some(false)
            }
            31 if (2..=5).contains(&major) => self.enter(Level::Indefinite),
            _ => None,
        }
    }

    /// Processes the head of an item.
    fn head(&mut self, major: u8, value: u64) -> Option<bool> {
        match major {
            2 | 3 if value > 0 => {
                self.skip = value;
                Some(false)
            }
            4 if value > 0 => self.enter(Level::Items(value)),
            5 if value > 0 => self.enter(Level::Items(value.checked_mul(2)?)),
            6 => self.enter(Level::Items(1)),
            _ => Some(self.end_item()),
        }
    }

    fn enter(&mut self, level: Level) -> Option<bool> {
        self.levels.push(level);
        (self.levels.len() <= DEPTH_MAX).then_some(false)
    }

    /// Ends an item, and with it those that it completes. Returns true if the outermost has ended.
    fn end_item(&mut self) -> bool {
        while let Some(level) = self.levels.last_mut() {
            match level {
                Level::Items(left) if *left > 1 => {
                    *left -= 1;
                    return false;
                }
                Level::Items(_) => {
                    self.levels.pop();
                }
                Level::Indefinite => return false,
            }
        }
        true
    }
}

/// Field of a bundle of version 6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Field {
    #[default]
    Version,
    PrimaryFlags,
    PrimaryLength,
    BlockType,
    BlockFlags,
    ReferenceCount,
    References(u64),
    BlockLength,
}

/// Finds the end of a bundle of version 6.
#[derive(Debug, Default)]
struct Version6Scanner {
    field: Field,
    /// Bytes of the present block that are still to come.
    skip: u64,
    /// The present block is the last one.
    is_last: bool,
    flags: u64,
    /// Value and length of the number so far.
    number: (u64, u8),
}

impl Version6Scanner {
    fn scan(&mut self, data: &[u8]) -> Scanned {
        let mut at = 0;
        while at < data.len() {
            if self.skip > 0 {
                let skipped = self.skip.min((data.len() - at) as u64);
                self.skip -= skipped;
                at += skipped as usize;
            } else {
                let Some(()) = self.byte(data[at]) else { return Scanned::Invalid };
                at += 1;
            }
            if self.skip == 0 && self.field == Field::BlockType && self.is_last {
                return Scanned::End(at);
            }
        }
        Scanned::More
    }

    /// Processes a byte of a field; `None` if a number is too long.
    fn byte(&mut self, byte: u8) -> Option<()> {
        match self.field {
            Field::Version => self.field = Field::PrimaryFlags,
            Field::BlockType => self.field = Field::BlockFlags,
            field => {
                let (value, length) = self.number;
                if length >= 10 || value >> 57 != 0 {
                    return None;
                }
                self.number = (value << 7 | u64::from(byte & 0x7f), length + 1);
                if byte & 0x80 == 0 {
                    let (value, _) = core::mem::take(&mut self.number);
                    self.field = self.end(field, value);
                }
            }
        }
        Some(())
    }

    /// Processes a complete number; returns the next field.
    fn end(&mut self, field: Field, value: u64) -> Field {
        match field {
            Field::PrimaryFlags => Field::PrimaryLength,
            Field::BlockFlags => {
                self.flags = value;
                if value & HAS_REFERENCES != 0 { Field::ReferenceCount } else { Field::BlockLength }
            }
            Field::ReferenceCount if value > 0 => Field::References(value.saturating_mul(2)),
            Field::References(left) if left > 1 => Field::References(left - 1),
            Field::ReferenceCount | Field::References(_) => Field::BlockLength,
            Field::PrimaryLength => {
                self.skip = value;
                Field::BlockType
            }
            Field::BlockLength => {
                self.skip = value;
                self.is_last = self.flags & LAST_BLOCK != 0;
                Field::BlockType
            }
            Field::Version | Field::BlockType => unreachable!("they are no numbers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz;
    use crate::rng::Rng;

    /// Splits a block that arrives in pieces of random lengths; returns whole bundles.
    fn split(block: &Bytes, has_services: bool, rng: &mut Rng) -> Vec<Bytes> {
        let mut unpacker = Unpacker::new(has_services);
        let (mut rest, mut bundles, mut open) = (block.clone(), Vec::new(), Vec::new());
        while !rest.is_empty() {
            let length = 1 + rng.below(rest.len() as u64) as usize;
            let data = rest.split_to(length);
            let last = rest.is_empty() && rng.chance(0.8);
            let mut parts = unpacker.split(data, last);
            if rest.is_empty() && !last {
                parts.extend(unpacker.split(Bytes::new(), true));
            }
            for part in parts {
                assert_eq!(part.begins, open.is_empty());
                open.extend_from_slice(&part.data);
                if part.ends {
                    bundles.push(Bytes::from(core::mem::take(&mut open)));
                }
            }
        }
        assert!(open.is_empty(), "the last bundle ends with the block");
        bundles
    }

    #[test]
    fn bundles_of_both_versions_are_told_apart() {
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let has_services = rng.chance(0.3);
            let bundle = |rng: &mut Rng| match rng.chance(0.5) {
                true => fuzz::bundle(rng.fork("7")),
                false => fuzz::bundle_of_version_6(rng.fork("6")),
            };
            let bundles: Vec<_> = (0..1 + rng.below(4)).map(|_| bundle(&mut rng)).collect();
            let mut block = Vec::new();
            for bundle in &bundles {
                if has_services {
                    block.extend_from_slice(if rng.chance(0.5) { b"\x01" } else { b"\x80\x01" });
                }
                block.extend_from_slice(bundle);
            }
            assert_eq!(split(&block.into(), has_services, &mut rng), bundles, "seed {seed}");
        }
    }

    #[test]
    fn anything_else_extends_to_the_end_of_the_block() {
        let mut rng = Rng::new(1);
        let valid = fuzz::bundle(Rng::new(2));
        let other = Bytes::from_static(b"\x00\x9f\x01\xff\x06");
        assert_eq!(&split(&other, false, &mut rng)[..], std::slice::from_ref(&other));
        let both: Bytes = [&valid[..], &other].concat().into();
        assert_eq!(split(&both, false, &mut rng), [valid.clone(), other]);
        // An invalid head of CBOR, too many levels, a number that is too long, and a bundle that is cut short.
        for broken in
            [&b"\x9f\x1c\xff\xff"[..], &[0x9f; 40], b"\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"]
        {
            let broken = Bytes::copy_from_slice(broken);
            assert_eq!(split(&broken, false, &mut rng), [broken]);
        }
        let short = valid.slice(..valid.len() - 1);
        assert_eq!(split(&short, false, &mut rng), [short]);
    }

    #[test]
    fn random_bytes_are_passed_on_completely() {
        for seed in 0..2_000 {
            let mut rng = Rng::new(seed);
            let mut block = vec![0; 1 + rng.below(80) as usize];
            rng.fill(&mut block);
            block[0] = if rng.chance(0.5) { VERSION_7 } else { VERSION_6 };
            let block = Bytes::from(block);
            assert_eq!(split(&block, false, &mut rng).concat(), block, "seed {seed}");
        }
    }
}
