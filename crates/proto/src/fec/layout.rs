//! Sizes and numbers of the symbols of a block.

use bytes::Bytes;
use core::fmt;

/// Largest number of symbols of a block, source and repair symbols together: the elements of GF(2^16).
pub const SYMBOLS_MAX: u32 = 1 << 16;

/// Largest size of a symbol in bytes: the even one of a UDP datagram's length field.
pub const SYMBOL_BYTES_MAX: u32 = 65_534;

/// Division of a block into source symbols, and the number of its repair symbols. Both ends have to know the same one: it
/// corresponds to the object transmission information of RFC 5052 for a single block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLayout {
    block_bytes: u64,
    symbol_bytes: u32,
    source_symbols: u32,
    repair_symbols: u32,
}

/// Reason why a block cannot be coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutFault {
    /// The block has no bytes.
    Empty,
    /// The size of symbols is zero, odd or larger than [`SYMBOL_BYTES_MAX`].
    SymbolBytes(u32),
    /// The block has more symbols than the code can number.
    Symbols {
        /// Source symbols.
        source: u64,
        /// Repair symbols.
        repair: u32,
    },
    /// The memory for the block exceeds what its owner permits.
    Memory {
        /// Bytes that the block takes at most.
        bytes: u64,
        /// Permitted bytes.
        bytes_max: u64,
    },
}

impl BlockLayout {
    /// Divides a block of `block_bytes` into symbols of `symbol_bytes`; the last one has the rest. The sender may compute
    /// `repair_symbols`, and send any of them.
    ///
    /// # Errors
    /// Fails for an empty block, for a size that no symbol can have, and for more than [`SYMBOLS_MAX`] symbols.
    pub fn new(block_bytes: u64, symbol_bytes: u32, repair_symbols: u32) -> Result<Self, LayoutFault> {
        if block_bytes == 0 {
            return Err(LayoutFault::Empty);
        }
        if symbol_bytes == 0 || symbol_bytes % 2 == 1 || symbol_bytes > SYMBOL_BYTES_MAX {
            return Err(LayoutFault::SymbolBytes(symbol_bytes));
        }
        let source = block_bytes.div_ceil(u64::from(symbol_bytes));
        let too_many = LayoutFault::Symbols { source, repair: repair_symbols };
        let source_symbols = u32::try_from(source).map_err(|_| too_many)?;
        match source_symbols.checked_add(repair_symbols) {
            Some(symbols) if symbols <= SYMBOLS_MAX => {
                Ok(BlockLayout { block_bytes, symbol_bytes, source_symbols, repair_symbols })
            }
            _ => Err(too_many),
        }
    }

    /// Returns the size of the block in bytes.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Returns the size of a symbol in bytes; only the last source symbol can have less.
    pub fn symbol_bytes(&self) -> u32 {
        self.symbol_bytes
    }

    /// Returns the number k of source symbols, at least one.
    pub fn source_symbols(&self) -> u32 {
        self.source_symbols
    }

    /// Returns the number r of repair symbols.
    pub fn repair_symbols(&self) -> u32 {
        self.repair_symbols
    }

    /// Returns the number of all symbols.
    pub fn symbols(&self) -> u32 {
        self.source_symbols + self.repair_symbols
    }

    /// Returns true if the ID is one of a source symbol.
    pub fn is_source(&self, id: u32) -> bool {
        id < self.source_symbols
    }

    /// Returns the offset of a source symbol in the block; `None` for other symbols.
    pub fn offset_of(&self, id: u32) -> Option<u64> {
        self.is_source(id).then(|| u64::from(id) * u64::from(self.symbol_bytes))
    }

    /// Returns the size of a symbol as it travels; `None` if the block has no symbol with this ID.
    pub fn bytes_of(&self, id: u32) -> Option<u32> {
        if id >= self.symbols() {
            return None;
        }
        let rest = self.offset_of(id).map_or(u64::MAX, |offset| self.block_bytes - offset);
        Some(u32::try_from(rest).unwrap_or(u32::MAX).min(self.symbol_bytes))
    }

    /// Divides a block into its source symbols, without a copy.
    ///
    /// # Panics
    /// Panics if the block does not have the size of this layout.
    pub fn sources(&self, block: &Bytes) -> impl Iterator<Item = (u32, Bytes)> + use<> {
        assert_eq!(block.len() as u64, self.block_bytes, "the block has the size of its layout");
        let (size, mut rest) = (self.symbol_bytes as usize, block.clone());
        (0..self.source_symbols).map(move |id| (id, rest.split_to(size.min(rest.len()))))
    }
}

impl fmt::Display for LayoutFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutFault::Empty => f.write_str("the block is empty"),
            LayoutFault::SymbolBytes(bytes) => {
                write!(f, "symbols of {bytes} bytes: the size must be even and at most {SYMBOL_BYTES_MAX}")
            }
            LayoutFault::Symbols { source, repair } => {
                write!(f, "{source} source and {repair} repair symbols are too many for a block")
            }
            LayoutFault::Memory { bytes, bytes_max } => {
                write!(f, "the block takes {bytes} bytes of memory; {bytes_max} are permitted")
            }
        }
    }
}

impl core::error::Error for LayoutFault {}
