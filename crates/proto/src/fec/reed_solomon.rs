//! A Reed-Solomon code over GF(2^16).
//!
//! The code is the one of the crate `reed-solomon-simd`, in its form for more source than repair symbols ("high rate"):
//! polynomials in the basis of Lin, Chung and Han (FOCS 2014), evaluated by an additive FFT over the field with the
//! polynomial 0x1002D in Cantor's basis. No RFC describes it: the codes of RFC 5510 have a Vandermonde matrix. An element
//! consists of the octets i and i + 32 of every 64 octets of a symbol, and i and i + t/2 of the last t < 64.
//! `repair_symbols_are_frozen` among the tests has samples: a version of the crate that changes them is another code.

use super::{BlockCode, BlockLayout, Lacking, LayoutFault};
use reed_solomon_simd::engine::{DefaultEngine, Engine, GF_ORDER, GfElement, ShardsRefMut, tables};
use reed_solomon_simd::rate::{HighRate, HighRateDecoder, HighRateEncoder, Rate, RateDecoder, RateEncoder};

/// Reed-Solomon code over GF(2^16): any k symbols restore the block.
///
/// A block has at most 65,536 symbols, of which the repair symbols count as their number rounded up to a power of
/// two, and that number is the natural one to choose: the first repair symbols are the same for all numbers with the
/// same power of two, so that a sender can hold the others in reserve at no cost of computation.
///
/// Decoding computes over the power of two at or above k plus that number. A block just within it costs half of one just
/// beyond: 3,840 source symbols with up to 256 repair symbols fill 4,096, and 4,096 of them take 8,192. Decoding takes
/// as long for one lost symbol as for many.
///
/// Besides the memory of each block, tables of 8.5 MiB are made at the first use of the process and stay; decoding has
/// 128 KiB on the stack.
///
/// ```
/// use longwire_proto::fec::{BlockCode, BlockLayout, ReedSolomon};
/// let within = BlockLayout::new(3_840 * 1_408, 1_408, 200)?;
/// let beyond = BlockLayout::new(3_841 * 1_408, 1_408, 200)?;
/// assert_eq!(ReedSolomon.decode_bytes(&within), 4_096 * 1_408);
/// assert_eq!(ReedSolomon.decode_bytes(&beyond), 8_192 * 1_408);
/// # Ok::<(), longwire_proto::fec::LayoutFault>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReedSolomon;

/// Numbers of source and repair symbols, and the size of a symbol.
fn counts(layout: &BlockLayout) -> (usize, usize, usize) {
    (layout.source_symbols() as usize, layout.repair_symbols() as usize, layout.symbol_bytes() as usize)
}

/// Memory for a number of symbols in the work area, where a symbol has a multiple of 64 octets.
fn work_bytes(symbols: usize, layout: &BlockLayout) -> u64 {
    symbols as u64 * u64::from(layout.symbol_bytes().next_multiple_of(64))
}

impl BlockCode for ReedSolomon {
    fn name(&self) -> &'static str {
        "reed-solomon"
    }

    fn check(&self, layout: &BlockLayout) -> Result<(), LayoutFault> {
        let (source, repair, _) = counts(layout);
        if repair == 0 || HighRate::<LocatingEngine>::supports(source, repair) {
            return Ok(());
        }
        Err(LayoutFault::Symbols { source: source as u64, repair: layout.repair_symbols() })
    }

    fn encode_bytes(&self, layout: &BlockLayout) -> u64 {
        let (source, repair, _) = counts(layout);
        work_bytes(source.next_multiple_of(repair.next_power_of_two()), layout)
    }

    fn decode_bytes(&self, layout: &BlockLayout) -> u64 {
        let (source, repair, _) = counts(layout);
        work_bytes((source + repair.next_power_of_two()).next_power_of_two(), layout)
    }

    fn encode<'a>(
        &self,
        layout: &BlockLayout,
        sources: &mut dyn Iterator<Item = &'a [u8]>,
        repair: &mut dyn FnMut(&[u8]),
    ) {
        let (source_count, repair_count, bytes) = counts(layout);
        let engine = LocatingEngine::new();
        let mut encoder = HighRateEncoder::new(source_count, repair_count, bytes, engine, None)
            .expect("the layout was checked");
        for source in sources {
            encoder.add_original_shard(source).expect("all source symbols, each of the size of a symbol");
        }
        let encoded = encoder.encode().expect("all source symbols");
        encoded.recovery_iter().for_each(repair);
    }

    fn decode<'a>(
        &self,
        layout: &BlockLayout,
        symbols: &mut dyn Iterator<Item = (u32, &'a [u8])>,
        restored: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), Lacking> {
        let (source_count, repair_count, bytes) = counts(layout);
        let engine = LocatingEngine::new();
        let mut decoder = HighRateDecoder::new(source_count, repair_count, bytes, engine, None)
            .expect("the layout was checked");
        for (id, symbol) in symbols {
            let added = match (id as usize).checked_sub(source_count) {
                None => decoder.add_original_shard(id as usize, symbol),
                Some(index) => decoder.add_recovery_shard(index, symbol),
            };
            added.expect("symbols of the block, each once and of the size of a symbol");
        }
        let decoded = decoder.decode().expect("k symbols");
        for (id, symbol) in decoded.restored_original_iter() {
            restored(u32::try_from(id).expect("an ID of the block"), symbol);
        }
        Ok(())
    }
}

/// The engine that suits the processor, with a faster way to locate the erasures of small blocks.
///
/// The crate evaluates the polynomial whose zeros are the erasures by transforms over the whole field, whatever the size
/// of the block: half a millisecond, where the rest of a block of 16 symbols takes a hundredth of one.
struct LocatingEngine(DefaultEngine);

/// Largest number of pairs of a position and an erasure whose product is computed directly. Beyond it, the
/// transforms are faster (calibrated; a pair takes about 1 ns).
const PAIRS_MAX: usize = 1 << 19;

impl LocatingEngine {
    fn new() -> Self {
        LocatingEngine(DefaultEngine::new())
    }
}

impl Engine for LocatingEngine {
    fn fft(&self, data: &mut ShardsRefMut<'_>, pos: usize, size: usize, truncated_size: usize, skew: usize) {
        self.0.fft(data, pos, size, truncated_size, skew);
    }

    fn ifft(&self, data: &mut ShardsRefMut<'_>, pos: usize, size: usize, truncated_size: usize, skew: usize) {
        self.0.ifft(data, pos, size, truncated_size, skew);
    }

    fn mul(&self, x: &mut [[u8; 64]], log_m: GfElement) {
        self.0.mul(x, log_m);
    }

    fn eval_poly(erasures: &mut [GfElement; GF_ORDER], truncated_size: usize) {
        let erased = erasures[..truncated_size].iter().filter(|erased| **erased != 0).count();
        if erased * truncated_size > PAIRS_MAX {
            return DefaultEngine::eval_poly(erasures, truncated_size);
        }
        locate(erasures, truncated_size);
    }
}

/// Replaces marks of erasures by the logarithm of the product of the differences between each position and all erasures
/// but itself. Positions are field elements, and their difference is their exclusive or.
fn locate(erasures: &mut [GfElement; GF_ORDER], positions: usize) {
    let log = &tables::get_exp_log().log;
    let erased: Vec<usize> = (0..positions).filter(|position| erasures[*position] != 0).collect();
    for (position, value) in erasures[..positions].iter_mut().enumerate() {
        let factors = erased.iter().filter(|other| **other != position);
        let sum: u32 = factors.map(|other| u32::from(log[position ^ other])).sum();
        *value = (sum % u32::from(GfElement::MAX)) as GfElement;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Logarithms differ by multiples of the order of the group, which 0 and 65,535 show.
    #[test]
    fn erasures_are_located_as_by_the_transforms() {
        let mut rng = Rng::new(5);
        for (positions, erased) in [(2, 1), (24, 8), (80, 16), (1_024, 300), (4_352, 120)] {
            let mut direct = [0; GF_ORDER];
            for _ in 0..erased {
                direct[rng.below(positions) as usize] = 1;
            }
            let mut transformed = direct;
            locate(&mut direct, positions as usize);
            DefaultEngine::eval_poly(&mut transformed, positions as usize);
            let same = |a: GfElement, b: GfElement| a % GfElement::MAX == b % GfElement::MAX;
            let pairs = direct.iter().zip(&transformed).take(positions as usize);
            assert!(pairs.into_iter().all(|(a, b)| same(*a, *b)), "{positions} positions, {erased} erased");
        }
    }
}
