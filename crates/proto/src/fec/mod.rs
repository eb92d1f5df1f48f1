//! Erasure codes: lost symbols of a block are computed from those that arrive.
//!
//! The terms are those of RFC 5052: a *source block* is divided into k *source symbols* of equal size, from which the
//! sender computes r *repair symbols*. The codes are systematic, that is, source symbols travel as they are. A symbol
//! has a number, its *encoding symbol ID*: source symbols have `0..k`, repair symbols `k..k + r`. Symbols arrive whole
//! or not at all: a damaged one must be found by a checksum and dropped before it comes here, since one wrong symbol
//! makes wrong bytes of every restored one.
//!
//! ```text
//!  block    --> sources ------------> [ Encoder ] --encode--> repair symbols
//!                  |                                             |
//!                  |                  channel                    |
//!                  '-------> any symbols, in any order <---------'
//!                                        |
//!                                     add(id, bytes)
//!                                        v
//!  block    <-- sources <--decode-- [ Decoder ]   Lacking(n) --> Decodable --> Complete
//! ```
//!
//! | part | contents |
//! |---|---|
//! | [`BlockLayout`] | sizes and numbers of the symbols of a block, which both ends have to know |
//! | [`Encoder`], [`Decoder`] | the symbols of one block, added one by one; codes are used through them |
//! | [`BlockCode`] | what a code implements |
//! | [`ReedSolomon`] | the code of this crate: any k symbols restore the block |
//! | [`VandermondeCode`], [`ParitySymbols`] | the code over GF(2^8) of NRL's NORM, for at most 255 symbols |
//! | [`Kernel`] | the processor's instructions that it uses |
//! | [`BitErrorCode`] | correction of wrong octets inside a segment, which arrives damaged |
//! | [`loss`] | how often a block fails, and how many repair symbols a loss takes |
//!
//! The code of NORM is used directly, not through [`Encoder`] and [`Decoder`]: a sender makes repair symbols when it is
//! asked for them, blocks are shorter than the code, and symbols have any size.
//!
//! Limits of the other parts: blocks of at most [`SYMBOLS_MAX`] symbols of at most [`SYMBOL_BYTES_MAX`] bytes. Rateless
//! codes, which make symbols without end, are used with a number of repair symbols that is never reached.
//!
//! [`BitErrorCode`] is no erasure code: it finds and corrects wrong octets of a segment that a link has delivered with bit errors.
//!
//! # Sizes
//!
//! 1. The size of symbols is even, because the elements of GF(2^16) have two octets. A segment of odd size leaves
//!    one octet unused.
//! 2. The last source symbol is short if the block is no multiple of the size. It travels short; the code computes
//!    with zeros in place of the absent octets, which neither end transmits or keeps.
//! 3. Repair symbols always have the full size.
//!
//! # Example
//!
//! A block of 10,000 bytes in eight symbols, the last of which has 200 bytes. Three of eleven symbols are lost.
//!
//! ```
//! use bytes::Bytes;
//! use longwire_proto::fec::{BlockLayout, Decoder, Encoder, Progress, ReedSolomon};
//!
//! let block = Bytes::from(vec![7; 10_000]);
//! let layout = BlockLayout::new(10_000, 1_400, 3)?;
//! assert_eq!((layout.source_symbols(), layout.bytes_of(7)), (8, Some(200)));
//!
//! let mut encoder = Encoder::new(&ReedSolomon, layout, 1 << 20)?;
//! for (id, source) in layout.sources(&block) {
//!     encoder.add(id, source)?;
//! }
//! let repair = encoder.encode()?;
//!
//! let mut decoder = Decoder::new(&ReedSolomon, layout, 1 << 20)?;
//! for (id, source) in layout.sources(&block).filter(|(id, _)| ![2, 3, 7].contains(id)) {
//!     decoder.add(id, source)?;
//! }
//! decoder.add(8, repair[0].clone())?;
//! assert_eq!(decoder.add(9, repair[1].clone()), Ok(Progress::Lacking(1)));
//! assert_eq!(decoder.add(10, repair[2].clone()), Ok(Progress::Decodable));
//! let restored: Vec<_> = decoder.decode()?.into_iter().map(|(id, bytes)| (id, bytes.len())).collect();
//! assert_eq!(restored, [(2, 1_400), (3, 1_400), (7, 200)]);
//! assert_eq!(decoder.sources().map(|(_, bytes)| bytes.len()).sum::<usize>(), 10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod errors;
mod gf256;
mod layout;
pub mod loss;
mod reed_solomon;
#[cfg(test)]
mod tests;
mod vandermonde;

pub use block::{Decoder, Encoder, Lacking, Progress, SymbolFault};
pub use errors::{BitErrorCode, Correction, STRENGTH_MAX, WORD_BYTES_MAX, WordLayout};
pub use gf256::Kernel;
pub use layout::{BlockLayout, LayoutFault, SYMBOL_BYTES_MAX, SYMBOLS_MAX};
pub use reed_solomon::ReedSolomon;
pub use vandermonde::{ParitySymbols, VandermondeCode};

/// A systematic erasure code for blocks of symbols of equal size. It is used through [`Encoder`] and [`Decoder`], which
/// keep the rules of its methods: a code sees no short, absent or repeated symbol.
///
/// Both ends need the same code. A protocol that lets them choose transmits a number of its own for each.
pub trait BlockCode: core::fmt::Debug + Send + Sync {
    /// Name in settings and reports.
    fn name(&self) -> &'static str;

    /// Checks that the code has a way to compute such blocks.
    ///
    /// # Errors
    /// Returns the limit of the code that the layout exceeds.
    fn check(&self, layout: &BlockLayout) -> Result<(), LayoutFault>;

    /// Memory in bytes that [`encode`](BlockCode::encode) takes while it runs, besides its symbols.
    fn encode_bytes(&self, layout: &BlockLayout) -> u64;

    /// Memory in bytes that [`decode`](BlockCode::decode) takes while it runs, besides its symbols.
    fn decode_bytes(&self, layout: &BlockLayout) -> u64;

    /// Computes all repair symbols, at least one, and passes them to `repair` in their order. `sources` yields all source
    /// symbols in their order.
    fn encode<'a>(
        &self,
        layout: &BlockLayout,
        sources: &mut dyn Iterator<Item = &'a [u8]>,
        repair: &mut dyn FnMut(&[u8]),
    );

    /// Computes the absent source symbols, and passes them to `restored` in their order. `symbols` yields at least k
    /// symbols with their IDs in ascending order; at least one source symbol is absent.
    ///
    /// # Errors
    /// Returns how many more symbols are needed at least. A code of which any k symbols restore the block does not fail.
    fn decode<'a>(
        &self,
        layout: &BlockLayout,
        symbols: &mut dyn Iterator<Item = (u32, &'a [u8])>,
        restored: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), Lacking>;
}
