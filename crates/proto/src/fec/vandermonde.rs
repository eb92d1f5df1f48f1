//! The Reed-Solomon code over GF(2^8) of NRL's NORM.
//!
//! NRL's implementation of NORM uses the code of Luigi Rizzo ("Effective erasure codes for reliable computer
//! communication protocols", 1997) for the FEC encoding IDs 5, 2 with m = 8, and 129 with instance 0. The field has the
//! polynomial 0x11D and alpha = 2; an element is an octet of a symbol. The source symbols are the values of a
//! polynomial of degree below k at the points 0, 1, alpha, alpha^2, .., alpha^(k - 2), and the parity symbols its
//! values at the points that follow: row i of the Vandermonde matrix has the powers of point i, and the generator is
//! that matrix times the inverse of its first k rows. RFC 5510 has the points 1, alpha, alpha^2, .., and its code is a
//! different one.
//!
//! - k is that of the session. A block with fewer source symbols has zeros in place of the others, which neither end
//!   transmits or keeps. Its rows are the same, only their encoding symbol IDs are lower: row j has the ID n + j, where n
//!   is the number of source symbols that the block does have. This module counts rows.
//! - Symbols may be shorter than the size of a symbol, and count as if zeros followed.
//!
//! | part | use |
//! |---|---|
//! | [`VandermondeCode`] | the generator; single parity symbols on demand; decoding |
//! | [`ParitySymbols`] | several parity symbols of a block, which grow as its source symbols are sent |
//! | [`Kernel`] | the instructions of the processor by which symbols are added |
//!
//! # Computation
//!
//! The generator is known without an inversion. With the points x of the source and y of the parity symbols, Lagrange's
//! interpolation has the coefficient A(y) / ((y - x) A'(x)), where A is the product of (z - x) over all source symbols:
//! a Cauchy matrix 1 / (y - x) of which rows and columns have factors. Square parts of it are of the same form, and
//! their inverses are known as well. Decoding of e lost symbols therefore takes e (n - e) products of symbols for what
//! the others contribute to e parity symbols, and e^2 for the inverse matrix.
//!
//! # Example
//!
//! A session has blocks of 8 source symbols and 4 rows; this block has 5 source symbols, of which two are lost.
//!
//! ```
//! use longwire_proto::fec::{ParitySymbols, VandermondeCode};
//!
//! let code = VandermondeCode::new(8, 4)?;
//! let block = [b"the first.", b"the second", b"the third.", b"the fourth", b"the fifth."];
//!
//! let mut parity = ParitySymbols::new(&code, 0..4, 10);
//! for (index, source) in (0..).zip(block) {
//!     parity.add_source(index, source);
//! }
//! let parity = parity.into_symbols();
//!
//! let received = [0, 2, 3].map(|index| (index, &block[index as usize][..]));
//! let restored = code.decode(10, &[1, 4], received, [(3, &parity[3][..]), (1, &parity[1])])?;
//! assert_eq!(restored, [&block[1][..], block[4]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::gf256::{Kernel, Term, divide, multiply, power_of_alpha, product};
use super::{Lacking, LayoutFault};
use bytes::{Bytes, BytesMut};
use core::ops::Range;
use std::sync::Arc;

/// Largest number of source and parity symbols together: the elements of GF(2^8) except one, as in NRL's code.
const SYMBOLS_MAX: u32 = 255;

/// A systematic Reed-Solomon code over GF(2^8): any k of all symbols restore a block. Clones share the generator.
#[derive(Clone, Debug)]
pub struct VandermondeCode {
    source_symbols: u32,
    parity_symbols: u32,
    /// Coefficients of a source symbol in all rows, source symbol by source symbol.
    columns: Arc<[u8]>,
    kernel: Kernel,
}

/// Parity symbols of one block, to which source symbols are added one by one as they are sent.
#[derive(Clone, Debug)]
pub struct ParitySymbols {
    code: VandermondeCode,
    rows: Range<u32>,
    symbol_bytes: usize,
    added: Indexes,
    sums: Vec<u8>,
}

/// A set of the numbers of symbols.
#[derive(Clone, Copy, Debug, Default)]
struct Indexes([u64; 4]);

impl Indexes {
    /// Returns true if the index is new.
    fn insert(&mut self, index: u32) -> bool {
        let (word, bit) = (&mut self.0[index as usize / 64], 1 << (index % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// The point of a symbol, source symbols first.
fn point(index: u32) -> u8 {
    index.checked_sub(1).map_or(0, |exponent| power_of_alpha(exponent as usize))
}

/// The product of the differences between a point and those of other symbols.
fn differences(point_of: u8, others: impl Iterator<Item = u8>) -> u8 {
    product(others.filter(|other| *other != point_of).map(|other| point_of ^ other))
}

impl VandermondeCode {
    /// Computes the generator for blocks of at most `source_symbols` (NORM's `ndata`), which are as many as the session
    /// has, not as the block has, with `parity_symbols` rows.
    ///
    /// # Errors
    /// Fails without source symbols, and for more than 255 symbols.
    pub fn new(source_symbols: u32, parity_symbols: u32) -> Result<Self, LayoutFault> {
        if source_symbols == 0 {
            return Err(LayoutFault::Empty);
        }
        let symbols = source_symbols.saturating_add(parity_symbols);
        if symbols > SYMBOLS_MAX {
            return Err(LayoutFault::Symbols { source: source_symbols.into(), repair: parity_symbols });
        }
        let sources = || (0..source_symbols).map(point);
        let rows: Vec<_> =
            (source_symbols..symbols).map(|row| (point(row), differences(point(row), sources()))).collect();
        let columns = sources().flat_map(|x| {
            let column = differences(x, sources());
            rows.iter().map(move |(y, row)| divide(*row, multiply(y ^ x, column)))
        });
        let columns = columns.collect();
        Ok(VandermondeCode { source_symbols, parity_symbols, columns, kernel: Kernel::fastest() })
    }

    /// Computes with another kernel, for measurements; the symbols are the same.
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        VandermondeCode { kernel, ..self }
    }

    /// Returns the number k of source symbols of the longest block.
    pub fn source_symbols(&self) -> u32 {
        self.source_symbols
    }

    /// Returns the number of rows.
    pub fn parity_symbols(&self) -> u32 {
        self.parity_symbols
    }

    /// Returns the coefficients of the k source symbols in a parity symbol.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn parity_row(&self, row: u32) -> Vec<u8> {
        (0..self.source_symbols).map(|index| self.coefficients(index, row..row + 1)[0]).collect()
    }

    /// Returns the coefficients of a source symbol in these rows.
    fn coefficients(&self, index: u32, rows: Range<u32>) -> &[u8] {
        assert!(index < self.source_symbols, "source symbol {index} of {}", self.source_symbols);
        assert!(
            rows.start <= rows.end && rows.end <= self.parity_symbols,
            "rows {rows:?} of {}",
            self.parity_symbols
        );
        let column = (index * self.parity_symbols) as usize;
        &self.columns[column + rows.start as usize..column + rows.end as usize]
    }

    /// Computes one parity symbol of a block, whose source symbols `sources` yields in their order. Sizes above that of
    /// the longest source symbol are filled with zeros.
    ///
    /// # Panics
    /// Panics if there is no such row, for more than k source symbols, and if one of them exceeds `parity`.
    pub fn encode_into<'a>(&self, row: u32, sources: impl IntoIterator<Item = &'a [u8]>, parity: &mut [u8]) {
        parity.fill(0);
        let terms = (0..)
            .zip(sources)
            .map(|(index, symbol)| Term { symbol, coefficients: self.coefficients(index, row..row + 1) });
        accumulate(self.kernel, parity, parity.len(), terms);
    }

    /// Computes source symbols that are missing, in their order in `missing`, each with `symbol_bytes`. `sources`
    /// yields all other source symbols of the block and `parity` at least as many parity symbols as are missing, with
    /// their row; further ones are ignored. Source symbols that neither `sources` nor `missing` has are those that a
    /// shorter block does not have.
    ///
    /// # Errors
    /// Returns how many more parity symbols are needed.
    ///
    /// # Panics
    /// Panics if a symbol is longer than `symbol_bytes`, is not one of the code, or appears twice.
    pub fn decode<'a>(
        &self,
        symbol_bytes: usize,
        missing: &[u32],
        sources: impl IntoIterator<Item = (u32, &'a [u8])>,
        parity: impl IntoIterator<Item = (u32, &'a [u8])>,
    ) -> Result<Vec<Bytes>, Lacking> {
        let lost = missing.len();
        if lost == 0 {
            return Ok(Vec::new());
        }
        let mut seen = Indexes::default();
        let mut check = |index: u32, bytes: usize| {
            assert!(bytes <= symbol_bytes, "a symbol of {bytes} bytes in place of {symbol_bytes}");
            assert!(seen.insert(index), "symbol {index} appears twice");
        };
        // Parity symbols, of which the shares of the present source symbols are subtracted.
        let mut sums = vec![0; lost * symbol_bytes];
        let mut rows = Vec::with_capacity(lost);
        for (row, symbol) in parity.into_iter().take(lost) {
            assert!(row < self.parity_symbols, "row {row} of {}", self.parity_symbols);
            check(self.source_symbols + row, symbol.len());
            sums[rows.len() * symbol_bytes..][..symbol.len()].copy_from_slice(symbol);
            rows.push(row);
        }
        if rows.len() < lost {
            return Err(Lacking((lost - rows.len()) as u32));
        }
        for index in missing {
            assert!(*index < self.source_symbols, "source symbol {index} of {}", self.source_symbols);
            check(*index, 0);
        }
        let (mut symbols, mut coefficients) = (Vec::new(), Vec::new());
        for (index, symbol) in sources {
            let column = self.coefficients(index, 0..self.parity_symbols);
            check(index, symbol.len());
            symbols.push(symbol);
            coefficients.extend(rows.iter().map(|row| column[*row as usize]));
        }
        accumulate(self.kernel, &mut sums, symbol_bytes, terms(&symbols, &coefficients, lost));

        let inverse = self.inverse(&rows, missing);
        let sums: Vec<_> = sums.chunks_exact(symbol_bytes.max(1)).collect();
        let mut restored = BytesMut::zeroed(lost * symbol_bytes);
        accumulate(self.kernel, &mut restored, symbol_bytes, terms(&sums, &inverse, lost));
        let mut restored = restored.freeze();
        Ok((0..lost).map(|_| restored.split_to(symbol_bytes)).collect())
    }

    /// The inverse of the part of the generator with these rows and the columns of the missing symbols: for each row
    /// its coefficients in the missing symbols.
    fn inverse(&self, rows: &[u32], missing: &[u32]) -> Vec<u8> {
        let sources = || (0..self.source_symbols).map(point);
        let xs = || missing.iter().map(|index| point(*index));
        let ys = || rows.iter().map(|row| point(self.source_symbols + row));
        let by_symbol = xs().map(|x| {
            let numerator = multiply(differences(x, sources()), differences(x, ys()));
            (x, divide(numerator, differences(x, xs())))
        });
        let by_symbol: Vec<_> = by_symbol.collect();
        let coefficients = ys().flat_map(|y| {
            let denominator = multiply(differences(y, sources()), differences(y, ys()));
            let by_row = divide(differences(y, xs()), denominator);
            by_symbol.iter().map(move |(x, by_symbol)| divide(multiply(by_row, *by_symbol), x ^ y))
        });
        coefficients.collect()
    }
}

impl ParitySymbols {
    /// Creates parity symbols of `symbol_bytes` for some rows of the code, of a block without source symbols.
    ///
    /// # Panics
    /// Panics if the code does not have these rows.
    pub fn new(code: &VandermondeCode, rows: Range<u32>, symbol_bytes: usize) -> Self {
        let sums = vec![0; code.coefficients(0, rows.clone()).len() * symbol_bytes];
        ParitySymbols { code: code.clone(), rows, symbol_bytes, added: Indexes::default(), sums }
    }

    /// Adds a source symbol. The order is free.
    ///
    /// # Panics
    /// Panics if the symbol is longer than a parity symbol, is not one of the code, or was added before.
    pub fn add_source(&mut self, index: u32, symbol: &[u8]) {
        self.add_sources([(index, symbol)]);
    }

    /// Adds several source symbols, which takes less time than one by one if their sizes are equal.
    ///
    /// # Panics
    /// Panics as [`add_source`](ParitySymbols::add_source) does.
    pub fn add_sources<'a>(&mut self, sources: impl IntoIterator<Item = (u32, &'a [u8])>) {
        let (code, added) = (&self.code, &mut self.added);
        let terms = sources.into_iter().map(|(index, symbol)| {
            let coefficients = code.coefficients(index, self.rows.clone());
            assert!(added.insert(index), "source symbol {index} was added before");
            Term { symbol, coefficients }
        });
        accumulate(code.kernel, &mut self.sums, self.symbol_bytes, terms);
    }

    /// Returns the parity symbol of a row, of the source symbols so far.
    ///
    /// # Panics
    /// Panics if the row is not one of these.
    pub fn symbol(&self, row: u32) -> &[u8] {
        assert!(self.rows.contains(&row), "row {row} of {:?}", self.rows);
        &self.sums[(row - self.rows.start) as usize * self.symbol_bytes..][..self.symbol_bytes]
    }

    /// Returns the parity symbols, in the order of their rows.
    pub fn into_symbols(self) -> Vec<Bytes> {
        let mut sums = Bytes::from(self.sums);
        self.rows.map(|_| sums.split_to(self.symbol_bytes)).collect()
    }
}

/// Symbols with their coefficients in `sums` sums.
fn terms<'a>(symbols: &[&'a [u8]], coefficients: &'a [u8], sums: usize) -> impl Iterator<Item = Term<'a>> {
    let symbols = symbols.iter().zip(coefficients.chunks_exact(sums));
    symbols.map(|(symbol, coefficients)| Term { symbol, coefficients })
}

/// Adds terms to sums of `sum_bytes` each, those of equal size together.
fn accumulate<'a>(kernel: Kernel, sums: &mut [u8], sum_bytes: usize, terms: impl Iterator<Item = Term<'a>>) {
    let terms: Vec<_> = terms.collect();
    for terms in terms.chunk_by(|a, b| a.symbol.len() == b.symbol.len()) {
        kernel.accumulate(sums, sum_bytes, terms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const NRL: &str = include_str!("../../../../vectors/norm/rs8-generator.txt");

    fn hex(digits: &str) -> Vec<u8> {
        let octets = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
        octets.collect::<Result<_, _>>().expect("hexadecimal digits")
    }

    #[test]
    fn the_generator_is_that_of_nrl() {
        let mut rows = 0;
        for line in NRL.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let fields: Vec<_> = line.split(' ').collect();
            let [source, parity, row] = [0, 1, 2].map(|field| fields[field].parse().expect("a number"));
            let code = VandermondeCode::new(source, parity).expect("a code of NRL");
            assert_eq!(code.parity_row(row), hex(fields[3]), "row {row} of {source} + {parity}");
            rows += 1;
        }
        assert_eq!(rows, 2 + 2 + 4 + 8 + 16 + 55);
    }

    /// The generator times the first k rows of the Vandermonde matrix yields its other rows; only one matrix does.
    #[test]
    fn parity_symbols_are_values_of_the_polynomial_through_the_source_symbols() {
        let power = |x: u8, exponent: u32| (0..exponent).fold(1, |power, _| multiply(power, x));
        for (source, parity) in [(1, 254), (2, 9), (3, 252), (20, 30), (100, 155), (200, 55), (254, 1)] {
            let code = VandermondeCode::new(source, parity).unwrap();
            assert_eq!((code.source_symbols(), code.parity_symbols()), (source, parity));
            for row in [0, parity / 2, parity - 1] {
                let coefficients = code.parity_row(row);
                for exponent in 0..source {
                    let terms =
                        (0..).zip(&coefficients).map(|(i, c)| multiply(*c, power(point(i), exponent)));
                    let sum = terms.fold(0, |sum, term| sum ^ term);
                    assert_eq!(sum, power(point(source + row), exponent), "row {row} of {source} + {parity}");
                }
            }
        }
    }

    /// A block with random symbols of at most this size, and its parity symbols.
    struct Block {
        code: VandermondeCode,
        bytes: usize,
        sources: Vec<Vec<u8>>,
        parity: Vec<Bytes>,
    }

    impl Block {
        /// `short` source symbols have a random size, the others have all `bytes`.
        fn new(code: VandermondeCode, length: u32, bytes: usize, short: u32, rng: &mut Rng) -> Block {
            let size = |index: u32, rng: &mut Rng| {
                if index < short { rng.below(bytes as u64 + 1) as usize } else { bytes }
            };
            let mut sources: Vec<_> = (0..length).map(|index| vec![0; size(index, rng)]).collect();
            sources.iter_mut().for_each(|source| rng.fill(source));
            shuffle(&mut sources, rng);
            let mut parity = ParitySymbols::new(&code, 0..code.parity_symbols(), bytes);
            parity.add_sources((0..).zip(sources.iter().map(Vec::as_slice)));
            Block { bytes, sources, parity: parity.into_symbols(), code }
        }

        /// Decodes with these symbols lost, which are numbered as in the code, and compares.
        fn decode(&self, lost: &[u32]) {
            let k = self.code.source_symbols();
            let (missing, _): (Vec<u32>, Vec<u32>) = lost.iter().partition(|index| **index < k);
            let sources =
                (0..).zip(self.sources.iter().map(Vec::as_slice)).filter(|(index, _)| !lost.contains(index));
            let parity = (0..)
                .zip(self.parity.iter().map(|symbol| &symbol[..]))
                .filter(|(row, _)| !lost.contains(&(k + row)));
            let rows = parity.clone().count();
            let restored = self.code.decode(self.bytes, &missing, sources, parity);
            if rows < missing.len() {
                return assert_eq!(restored, Err(Lacking((missing.len() - rows) as u32)));
            }
            let expected: Vec<_> =
                missing.iter().map(|index| padded(&self.sources[*index as usize], self.bytes)).collect();
            assert!(restored.expect("k symbols") == expected, "{:?} without {lost:?}", self.code);
        }
    }

    fn padded(symbol: &[u8], bytes: usize) -> Vec<u8> {
        [symbol, &vec![0; bytes - symbol.len()]].concat()
    }

    fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
        for i in (1..items.len()).rev() {
            items.swap(i, rng.below(i as u64 + 1) as usize);
        }
    }

    #[test]
    fn each_subset_of_the_symbols_of_small_blocks_decodes_if_it_has_enough() {
        let mut rng = Rng::new(1);
        for (source, parity, length) in [(1, 0, 1), (1, 4, 1), (4, 3, 4), (5, 4, 3), (2, 6, 1), (6, 2, 6)] {
            let code = VandermondeCode::new(source, parity).unwrap();
            let block = Block::new(code, length, 40, 2, &mut rng);
            for subset in 0..1u32 << (length + parity) {
                let lost = (0..length + parity).filter(|index| subset >> index & 1 == 1);
                let index = |index| if index < length { index } else { index - length + source };
                let mut lost: Vec<_> = lost.map(index).collect();
                shuffle(&mut lost, &mut rng);
                block.decode(&lost);
            }
        }
    }

    /// Shapes with the lengths of their blocks, from the longest to a single source symbol, with each kernel.
    #[test]
    fn random_losses_of_large_blocks_decode_up_to_the_number_of_parity_symbols() {
        let mut rng = Rng::new(2);
        let shapes = [
            (16, 8, 16),
            (64, 16, 64),
            (64, 16, 57),
            (64, 16, 1),
            (200, 55, 200),
            (200, 55, 123),
            (127, 128, 127),
        ];
        for kernel in Kernel::available() {
            for (source, parity, length) in shapes {
                let code = VandermondeCode::new(source, parity).unwrap().with_kernel(kernel);
                let (bytes, short) = (1 + rng.below(300) as usize, rng.below(3) as u32);
                let block = Block::new(code, length, bytes, short, &mut rng);
                for lost in [1, parity / 2, parity, parity + 1] {
                    let mut indexes: Vec<_> = (0..length).chain(source..source + parity).collect();
                    shuffle(&mut indexes, &mut rng);
                    indexes.truncate(lost as usize);
                    block.decode(&indexes);
                }
                // The hardest cases: the first source symbols, and the last ones, with the last rows.
                let most = length.min(parity);
                block.decode(&(0..most).collect::<Vec<_>>());
                block.decode(
                    &(length - most..length).chain(source..source + parity - most).collect::<Vec<_>>(),
                );
            }
        }
    }

    #[test]
    fn parity_symbols_are_the_same_in_whatever_way_they_are_computed() {
        let mut rng = Rng::new(3);
        let block = Block::new(VandermondeCode::new(20, 9).unwrap(), 17, 300, 4, &mut rng);
        let sources = || block.sources.iter().map(Vec::as_slice);
        for row in 0..9 {
            // Longer than all source symbols: zeros follow.
            let mut parity = [7; 310];
            block.code.encode_into(row, sources(), &mut parity);
            assert_eq!(parity[..], padded(&block.parity[row as usize], 310));
        }
        let mut order: Vec<_> = (0..).zip(sources()).collect();
        shuffle(&mut order, &mut rng);
        let mut some = ParitySymbols::new(&block.code, 2..7, 300);
        for (index, source) in order {
            some.add_source(index, source);
        }
        for row in 2..7 {
            assert_eq!(some.symbol(row), block.parity[row as usize]);
        }
        assert_eq!(some.into_symbols(), block.parity[2..7]);
        assert!(ParitySymbols::new(&block.code, 9..9, 300).into_symbols().is_empty());
    }

    #[test]
    fn parity_symbols_on_the_way_are_those_of_the_source_symbols_so_far() {
        let block = Block::new(VandermondeCode::new(8, 2).unwrap(), 8, 50, 0, &mut Rng::new(4));
        let mut growing = ParitySymbols::new(&block.code, 0..2, 50);
        for (index, source) in (0..).zip(&block.sources) {
            growing.add_source(index, source);
            let so_far = block.sources[..=index as usize].iter().map(Vec::as_slice);
            let mut parity = [0; 50];
            block.code.encode_into(1, so_far, &mut parity);
            assert_eq!(growing.symbol(1), parity);
        }
    }

    #[test]
    fn symbols_without_bytes_are_restored() {
        let code = VandermondeCode::new(3, 1).unwrap();
        let restored = code.decode(0, &[1], [(0, &[][..]), (2, &[])], [(0, &[][..])]);
        assert_eq!(restored, Ok(vec![Bytes::new()]));
        assert_eq!(ParitySymbols::new(&code, 0..1, 0).into_symbols(), [Bytes::new()]);
    }

    #[test]
    fn codes_beyond_the_limits_are_refused() {
        let refused = |source, parity| VandermondeCode::new(source, parity).map(|_| ()).unwrap_err();
        assert_eq!(refused(0, 1), LayoutFault::Empty);
        for (source, parity) in [(200, 56), (256, 0), (1, 255), (u32::MAX, 1)] {
            assert_eq!(
                refused(source, parity),
                LayoutFault::Symbols { source: source.into(), repair: parity }
            );
        }
        assert_eq!(VandermondeCode::new(255, 0).unwrap().parity_symbols(), 0);
    }

    /// What the caller does wrong, and the beginning of the panic's message.
    fn panics(wrong: impl FnOnce(&VandermondeCode) + std::panic::UnwindSafe, expected: &str) {
        let code = VandermondeCode::new(4, 2).unwrap();
        let panic = std::panic::catch_unwind(|| wrong(&code)).expect_err(expected);
        let message = panic.downcast_ref::<String>().expect("a message");
        assert!(message.starts_with(expected), "{message} in place of {expected}");
    }

    #[test]
    fn symbols_that_the_code_does_not_have_are_an_error_of_the_caller() {
        const A: &[u8] = b"a";
        let decode = |missing: &'static [u32], sources: &'static [u32], rows: &'static [u32]| {
            move |code: &VandermondeCode| {
                let sources = sources.iter().map(|index| (*index, A));
                let _ = code.decode(1, missing, sources, rows.iter().map(|row| (*row, A)));
            }
        };
        panics(decode(&[0], &[1], &[2]), "row 2 of 2");
        panics(decode(&[4], &[1], &[1]), "source symbol 4 of 4");
        panics(decode(&[0], &[4], &[1]), "source symbol 4 of 4");
        panics(decode(&[0, 1], &[3], &[1, 1]), "symbol 5 appears twice");
        panics(decode(&[2, 2], &[3], &[0, 1]), "symbol 2 appears twice");
        panics(decode(&[2], &[2], &[1]), "symbol 2 appears twice");
        panics(decode(&[2], &[3, 3], &[1]), "symbol 3 appears twice");
        panics(
            |code| drop(code.decode(1, &[0], [], [(0, &[1, 2][..])])),
            "a symbol of 2 bytes in place of 1",
        );
        panics(
            |code| drop(code.decode(1, &[0], [(1, &[1, 2][..])], [(0, A)])),
            "a symbol of 2 bytes in place of 1",
        );
        panics(|code| drop(ParitySymbols::new(code, 1..3, 1)), "rows 1..3 of 2");
        panics(|code| assert!(ParitySymbols::new(code, 1..2, 1).symbol(0).is_empty()), "row 0 of 1..2");
        panics(|code| ParitySymbols::new(code, 0..2, 1).add_source(4, A), "source symbol 4 of 4");
        panics(
            |code| ParitySymbols::new(code, 0..2, 1).add_source(0, b"ab"),
            "symbols of 2 bytes, sums of 1",
        );
        panics(
            |code| {
                let mut parity = ParitySymbols::new(code, 0..2, 1);
                parity.add_source(3, A);
                parity.add_source(3, A);
            },
            "source symbol 3 was added before",
        );
    }
}
