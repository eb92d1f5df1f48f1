//! Division of an object into blocks and segments (RFC 5052 9.1, RFC 5740 5.1.1).

use super::wire::FecScheme;

/// Blocks and segments of an object. The length of all blocks differs by at most one segment.
///
/// ```
/// use longwire_proto::norm::Partition;
/// // 20 segments in blocks of at most 8: two of 7, then one of 6.
/// let partition = Partition::new(19_500, 1_000, 8).expect("it fits");
/// assert_eq!((partition.blocks(), partition.block_symbols(0), partition.block_symbols(2)), (3, 7, 6));
/// assert_eq!(partition.segment(2, 5), 19_000..19_500);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    object_bytes: u64,
    segment_bytes: u16,
    blocks: u32,
    /// Number of segments of the first blocks.
    large: u16,
    /// Number of blocks with `large` segments; the others have one less.
    large_blocks: u32,
}

/// Number of blocks from which their numbers do not fit into the field of RFC 5510 and RFC 5740.
const BLOCKS_END: u64 = 1 << 24;

impl Partition {
    /// Divides an object of `object_bytes` bytes into segments of `segment_bytes` bytes, and these into blocks of at most
    /// `block_symbols`. Returns `None` if a size is zero, or if there were 2^24 blocks or more.
    pub fn new(object_bytes: u64, segment_bytes: u16, block_symbols: u16) -> Option<Self> {
        if segment_bytes == 0 || block_symbols == 0 {
            return None;
        }
        // An empty object has one empty segment.
        let segments = object_bytes.div_ceil(u64::from(segment_bytes)).max(1);
        let blocks = segments.div_ceil(u64::from(block_symbols));
        if blocks >= BLOCKS_END {
            return None;
        }
        let (small, rest) = (segments / blocks, segments % blocks);
        let (large, large_blocks) = if rest == 0 { (small, blocks) } else { (small + 1, rest) };
        Some(Partition {
            object_bytes,
            segment_bytes,
            blocks: blocks as u32,
            large: large as u16,
            large_blocks: large_blocks as u32,
        })
    }

    /// Divides a stream into segments of `segment_bytes` bytes and blocks of `block_symbols` segments, as many as can be numbered (RFC
    /// 5740 5.1.1). Returns `None` if a size is zero.
    pub(super) fn stream(segment_bytes: u16, block_symbols: u16) -> Option<Self> {
        (segment_bytes > 0 && block_symbols > 0).then_some(Partition {
            object_bytes: u64::MAX,
            segment_bytes,
            blocks: STREAM_BLOCKS_MAX,
            large: block_symbols,
            large_blocks: STREAM_BLOCKS_MAX,
        })
    }

    /// Length of the object, bytes.
    pub fn object_bytes(&self) -> u64 {
        self.object_bytes
    }

    /// Maximum length of a segment, bytes.
    pub fn segment_bytes(&self) -> u16 {
        self.segment_bytes
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Number of segments of a block.
    pub fn block_symbols(&self, block: u32) -> u16 {
        if block < self.large_blocks { self.large } else { self.large - 1 }
    }

    /// Returns the bytes of a block in the object.
    pub fn block(&self, block: u32) -> core::ops::Range<u64> {
        let start = self.first_segment(block) * u64::from(self.segment_bytes);
        let end = self.first_segment(block + 1) * u64::from(self.segment_bytes);
        start.min(self.object_bytes)..end.min(self.object_bytes)
    }

    /// Returns the bytes of a segment in the object.
    pub fn segment(&self, block: u32, symbol: u16) -> core::ops::Range<u64> {
        let size = u64::from(self.segment_bytes);
        let start = (self.first_segment(block) + u64::from(symbol)) * size;
        start.min(self.object_bytes)..(start + size).min(self.object_bytes)
    }

    /// Returns the block that contains this byte of the object.
    pub fn block_at(&self, offset: u64) -> u32 {
        let segment = offset / u64::from(self.segment_bytes);
        let in_large = u64::from(self.large_blocks) * u64::from(self.large);
        match segment.checked_sub(in_large) {
            None => (segment / u64::from(self.large)) as u32,
            Some(_) if self.large == 1 => self.large_blocks,
            Some(beyond) => self.large_blocks + (beyond / u64::from(self.large - 1)) as u32,
        }
    }

    /// Number of segments before a block.
    fn first_segment(&self, block: u32) -> u64 {
        let large = u64::from(block.min(self.large_blocks));
        let small = u64::from(block.saturating_sub(self.large_blocks));
        large * u64::from(self.large) + small * u64::from(self.large - 1)
    }
}

/// Number of blocks that a stream can have, 380 TB with the usual sizes; greater ones mean more than a block elsewhere.
pub(super) const STREAM_BLOCKS_MAX: u32 = u32::MAX - 2;

/// Returns the number of a block of a stream, of which the lower bits are known, and which is near another one.
pub(super) fn extend_block(scheme: FecScheme, bits: u32, near: u32) -> Option<u32> {
    let cycle = 1_i64 << scheme.block_bits();
    let ahead = (i64::from(bits) - i64::from(near)).rem_euclid(cycle);
    let distance = if ahead < cycle / 2 { ahead } else { ahead - cycle };
    u32::try_from(i64::from(near) + distance).ok().filter(|number| *number < STREAM_BLOCKS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_blocks_begin_with_zero_again() {
        let near = (1 << 24) + 5;
        let short = |bits| extend_block(FecScheme::ReedSolomon8, bits, near);
        assert_eq!([5, 4, 0, 0xff_ffff].map(short), [near, near - 1, 1 << 24, (1 << 24) - 1].map(Some));
        assert_eq!(short((1 << 23) + 4), Some(near + (1 << 23) - 1));
        assert_eq!(short((1 << 23) + 5), Some(near - (1 << 23)));
        assert_eq!(extend_block(FecScheme::ReedSolomon8, 0xff_ffff, 3), None, "before the first block");
        assert_eq!(
            extend_block(FecScheme::SmallBlock, u32::MAX - 1, u32::MAX - 9),
            None,
            "after the last block"
        );
        assert_eq!(extend_block(FecScheme::SmallBlock, 7, 9), Some(7));
    }

    /// Walks all segments of objects of many sizes.
    #[test]
    fn segments_cover_the_object_once_in_blocks_of_nearly_equal_length() {
        for bytes in [1, 999, 1_000, 1_001, 7_999, 8_000, 8_001, 19_500, 150_000, 1_234_567] {
            for symbols in [1, 3, 8, 16, 64] {
                let partition = Partition::new(bytes, 1_000, symbols).expect("it fits");
                let lengths: Vec<u16> =
                    (0..partition.blocks()).map(|block| partition.block_symbols(block)).collect();
                let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
                assert!(
                    *least >= 1 && *most <= symbols && most - least <= 1,
                    "{bytes} {symbols}: {lengths:?}"
                );
                assert!(lengths.is_sorted_by(|a, b| a >= b), "longer blocks come first");
                let mut end = 0;
                for (block, length) in lengths.iter().enumerate() {
                    let range = partition.block(block as u32);
                    assert_eq!(range.start, end);
                    for symbol in 0..*length {
                        let segment = partition.segment(block as u32, symbol);
                        assert_eq!(segment.start, end);
                        assert!(segment.end > end, "no segment is empty");
                        assert_eq!(partition.block_at(end), block as u32);
                        end = segment.end;
                    }
                    assert_eq!(range.end, end);
                }
                assert_eq!(end, bytes);
            }
        }
    }

    #[test]
    fn an_empty_object_has_one_empty_segment() {
        let partition = Partition::new(0, 1_400, 64).expect("it fits");
        assert_eq!((partition.blocks(), partition.block_symbols(0), partition.segment(0, 0)), (1, 1, 0..0));
    }

    #[test]
    fn sizes_beyond_the_numbers_of_blocks_are_refused() {
        assert_eq!(Partition::new((1 << 48) - 1, 1_400, 64), None);
        assert_eq!(Partition::new(100, 0, 64), None);
        assert_eq!(Partition::new(100, 1_400, 0), None);
        let most = ((1 << 24) - 1) * 64 * 1_400;
        assert!(Partition::new(most, 1_400, 64).is_some());
        assert_eq!(Partition::new(most + 1, 1_400, 64), None);
    }
}
