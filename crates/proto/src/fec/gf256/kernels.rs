//! Sums of symbols with coefficients, by the vector instructions of the processor.
//!
//! All kernels compute the same: several sums at once over strips of the symbols, so that each byte of a symbol is
//! loaded once for a group of sums, which stay in registers while all symbols are added. They differ in the
//! multiplication.
//!
//! | kernel | product of a coefficient and a vector of elements |
//! |---|---|
//! | `portable` | exclusive or of the coefficient times alpha^i, for the bits i that are set |
//! | `ssse3`, `avx2` | two lookups in tables of 16 products, one for each half of an octet |
//! | `gfni-256`, `gfni-512` | multiplication by the matrix of the coefficient over GF(2), a single instruction |
//!
//! This file has all `unsafe` code of the crate: loads and stores of vectors through pointers, in functions that accept
//! arrays, and calls of functions for the instructions that a [`Kernel`] was found to have.

#[cfg(target_arch = "x86_64")]
use super::multiply;
use super::times_alpha;

/// A symbol, and its coefficient in each of the sums.
#[derive(Clone, Copy, Debug)]
pub(in crate::fec) struct Term<'a> {
    pub(in crate::fec) symbol: &'a [u8],
    pub(in crate::fec) coefficients: &'a [u8],
}

/// Instructions by which symbols are multiplied and added. The results are the same with all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Path);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Gfni256,
    #[cfg(target_arch = "x86_64")]
    Gfni512,
}

impl Kernel {
    /// Returns the kernels that the processor has, from the slowest to the fastest.
    pub fn available() -> Vec<Kernel> {
        let found = vector_paths().into_iter().filter(|(_, found)| *found).map(|(path, _)| path);
        [Path::Portable].into_iter().chain(found).map(Kernel).collect()
    }

    /// Returns the fastest kernel that the processor has.
    pub fn fastest() -> Kernel {
        Self::available().pop().expect("the portable kernel")
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self.0 {
            Path::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Path::Ssse3 => "ssse3",
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Path::Gfni256 => "gfni-256",
            #[cfg(target_arch = "x86_64")]
            Path::Gfni512 => "gfni-512",
        }
    }

    /// Adds the terms to sums, each of which takes `stride` bytes of `sums`. The symbols of the terms have equal sizes,
    /// and are added to the beginning of each sum.
    ///
    /// # Panics
    /// Panics if the symbols have different sizes, exceed a sum, or have not a coefficient for each of them.
    pub(in crate::fec) fn accumulate(self, sums: &mut [u8], stride: usize, terms: &[Term<'_>]) {
        let Some(bytes) = terms.first().map(|term| term.symbol.len()).filter(|bytes| *bytes > 0) else {
            return;
        };
        assert!(
            bytes <= stride && sums.len().is_multiple_of(stride),
            "symbols of {bytes} bytes, sums of {stride}"
        );
        let count = sums.len() / stride;
        let fits = |term: &Term<'_>| term.symbol.len() == bytes && term.coefficients.len() == count;
        assert!(terms.iter().all(fits), "symbols of equal sizes, with {count} coefficients");
        match self.0 {
            Path::Portable => portable(sums, stride, terms),
            // SAFETY: such a kernel exists only where `available` has found the instructions.
            #[cfg(target_arch = "x86_64")]
            Path::Ssse3 => unsafe { ssse3::accumulate(sums, stride, terms) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => unsafe { avx2::accumulate(sums, stride, terms) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Path::Gfni256 => unsafe { gfni256::accumulate(sums, stride, terms) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Path::Gfni512 => unsafe { gfni512::accumulate(sums, stride, terms) },
        }
    }
}

/// Paths with vector instructions, each with whether the processor has them, from the slowest to the fastest.
#[cfg(target_arch = "x86_64")]
fn vector_paths() -> [(Path, bool); 4] {
    let gfni = is_x86_feature_detected!("gfni");
    [
        (Path::Ssse3, is_x86_feature_detected!("ssse3")),
        (Path::Avx2, is_x86_feature_detected!("avx2")),
        (Path::Gfni256, gfni && is_x86_feature_detected!("avx2")),
        (Path::Gfni512, gfni && is_x86_feature_detected!("avx512f")),
    ]
}

/// Elsewhere the compiler makes vectors of the portable kernel.
#[cfg(not(target_arch = "x86_64"))]
fn vector_paths() -> [(Path, bool); 0] {
    []
}

/// Products of each element and alpha^0 to alpha^7.
static MULTIPLES: [[u8; 8]; 256] = {
    let mut multiples = [[0; 8]; 256];
    let mut element = 0;
    while element < 256 {
        let (mut i, mut multiple) = (0, element as u8);
        while i < 8 {
            multiples[element][i] = multiple;
            multiple = times_alpha(multiple);
            i += 1;
        }
        element += 1;
    }
    multiples
};

/// Bytes of a symbol that the portable kernel has in hand. Compilers make vectors of them.
const PORTABLE_BYTES: usize = 32;

/// Sums that have a strip of a symbol in common.
#[cfg(target_arch = "x86_64")]
const GROUP: usize = 4;

/// The portable kernel.
fn portable(sums: &mut [u8], stride: usize, terms: &[Term<'_>]) {
    for term in terms {
        for (at, strip) in (0..).step_by(PORTABLE_BYTES).zip(term.symbol.chunks(PORTABLE_BYTES)) {
            let mut elements = [0; PORTABLE_BYTES];
            elements[..strip.len()].copy_from_slice(strip);
            // All ones where the bit of the element is set.
            let masks: [[u8; PORTABLE_BYTES]; 8] =
                std::array::from_fn(|bit| elements.map(|element| 0u8.wrapping_sub(element >> bit & 1)));
            for (sum, coefficient) in sums.chunks_exact_mut(stride).zip(term.coefficients) {
                let mut products = [0; PORTABLE_BYTES];
                for (mask, multiple) in masks.iter().zip(MULTIPLES[usize::from(*coefficient)]) {
                    for (product, mask) in products.iter_mut().zip(mask) {
                        *product ^= mask & multiple;
                    }
                }
                add(&mut sum[at..at + strip.len()], &products);
            }
        }
    }
}

/// Adds the beginning of `other`.
#[inline]
fn add(sum: &mut [u8], other: &[u8]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum ^= other;
    }
}

/// Products of each element and 0 to 15, then of it and 0 to 15 times 16.
#[cfg(target_arch = "x86_64")]
static HALVES: [[u8; 32]; 256] = {
    let mut halves = [[0; 32]; 256];
    let mut element = 0;
    while element < 256 {
        let mut i = 0;
        while i < 16 {
            halves[element][i] = multiply(element as u8, i as u8);
            halves[element][16 + i] = multiply(element as u8, (i as u8) << 4);
            i += 1;
        }
        element += 1;
    }
    halves
};

/// For each element the matrix by which GFNI's affine transformation multiplies by it: the octet 7 - i selects the bits
/// of the other factor that make the bit i of the product.
#[cfg(target_arch = "x86_64")]
static MATRICES: [u64; 256] = {
    let mut matrices = [0; 256];
    let mut element = 0;
    while element < 256 {
        let mut column = 0;
        while column < 8 {
            let mut row = 0;
            while row < 8 {
                if MULTIPLES[element][column] >> row & 1 == 1 {
                    matrices[element] |= 1 << (8 * (7 - row) + column);
                }
                row += 1;
            }
            column += 1;
        }
        element += 1;
    }
    matrices
};

/// The kernel of a module, by the instructions of the module: a function cannot be generic over them.
#[cfg(target_arch = "x86_64")]
macro_rules! kernel {
    ($features:literal) => {
        /// Bytes of a symbol that are in registers: two vectors.
        const STRIP: usize = 2 * VECTOR;

        /// The kernel. The rest of a symbol behind the last whole strip is in a strip that overlaps with that one.
        #[target_feature(enable = $features)]
        pub(super) fn accumulate(sums: &mut [u8], stride: usize, terms: &[Term<'_>]) {
            let bytes = terms.first().map_or(0, |term| term.symbol.len());
            if bytes < STRIP {
                return portable(sums, stride, terms);
            }
            let whole = bytes - bytes % STRIP;
            for at in (0..whole).step_by(STRIP) {
                strip(sums, stride, terms, at, at);
            }
            if whole < bytes {
                strip(sums, stride, terms, bytes - STRIP, whole);
            }
        }

        /// Adds the strip of the terms at the offset `at` to all sums, from the offset `from` on.
        #[target_feature(enable = $features)]
        fn strip(sums: &mut [u8], stride: usize, terms: &[Term<'_>], at: usize, from: usize) {
            for (group, sums) in sums.chunks_mut(GROUP * stride).enumerate() {
                let first = group * GROUP;
                match sums.len() / stride {
                    GROUP => rows::<GROUP>(sums, stride, terms, first, at, from),
                    3 => rows::<3>(sums, stride, terms, first, at, from),
                    2 => rows::<2>(sums, stride, terms, first, at, from),
                    _ => rows::<1>(sums, stride, terms, first, at, from),
                }
            }
        }

        /// Adds a strip to N sums, which have the coefficients from `first` on.
        #[inline]
        #[target_feature(enable = $features)]
        fn rows<const N: usize>(
            sums: &mut [u8],
            stride: usize,
            terms: &[Term<'_>],
            first: usize,
            at: usize,
            from: usize,
        ) {
            let mut added = [[zero(); 2]; N];
            for term in terms {
                let (vectors, _) = term.symbol[at..at + STRIP].as_chunks();
                let (low, high) = (load(&vectors[0]), load(&vectors[1]));
                let coefficients = &term.coefficients[first..first + N];
                for (added, coefficient) in added.iter_mut().zip(coefficients) {
                    let factor = factor(*coefficient);
                    added[0] = xor(added[0], product(factor, low));
                    added[1] = xor(added[1], product(factor, high));
                }
            }
            for (sum, added) in sums.chunks_exact_mut(stride).zip(added) {
                if from == at {
                    let (vectors, _) = sum[at..at + STRIP].as_chunks_mut();
                    for (vector, added) in vectors.iter_mut().zip(added) {
                        store(vector, xor(load(vector), added));
                    }
                } else {
                    let mut products = [[0; VECTOR]; 2];
                    store(&mut products[0], added[0]);
                    store(&mut products[1], added[1]);
                    add(&mut sum[from..at + STRIP], &products.as_flattened()[from - at..]);
                }
            }
        }
    };
}

/// 16 elements by table lookups.
#[cfg(target_arch = "x86_64")]
mod ssse3 {
    use super::{GROUP, HALVES, Term, add, portable};
    use core::arch::x86_64::*;

    const VECTOR: usize = 16;

    kernel!("ssse3");

    #[inline]
    #[target_feature(enable = "ssse3")]
    fn load(bytes: &[u8; VECTOR]) -> __m128i {
        // SAFETY: the array has the size of the vector, and the instruction does not need an alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "ssse3")]
    fn store(bytes: &mut [u8; VECTOR], vector: __m128i) {
        // SAFETY: as in `load`.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), vector) }
    }

    #[inline]
    #[target_feature(enable = "ssse3")]
    fn zero() -> __m128i {
        _mm_setzero_si128()
    }

    #[inline]
    #[target_feature(enable = "ssse3")]
    fn xor(a: __m128i, b: __m128i) -> __m128i {
        _mm_xor_si128(a, b)
    }

    #[inline]
    #[target_feature(enable = "ssse3")]
    fn factor(coefficient: u8) -> [__m128i; 2] {
        let (halves, _) = HALVES[usize::from(coefficient)].as_chunks();
        [load(&halves[0]), load(&halves[1])]
    }

    #[inline]
    #[target_feature(enable = "ssse3")]
    fn product(factor: [__m128i; 2], elements: __m128i) -> __m128i {
        let mask = _mm_set1_epi8(0x0F);
        let low = _mm_shuffle_epi8(factor[0], _mm_and_si128(elements, mask));
        let high = _mm_shuffle_epi8(factor[1], _mm_and_si128(_mm_srli_epi64::<4>(elements), mask));
        _mm_xor_si128(low, high)
    }
}

/// 32 elements by table lookups.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{GROUP, HALVES, Term, add, portable};
    use core::arch::x86_64::*;

    pub(super) const VECTOR: usize = 32;

    kernel!("avx2");

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn load(bytes: &[u8; VECTOR]) -> __m256i {
        // SAFETY: the array has the size of the vector, and the instruction does not need an alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn store(bytes: &mut [u8; VECTOR], vector: __m256i) {
        // SAFETY: as in `load`.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn zero() -> __m256i {
        _mm256_setzero_si256()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn xor(a: __m256i, b: __m256i) -> __m256i {
        _mm256_xor_si256(a, b)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn factor(coefficient: u8) -> [__m256i; 2] {
        let halves = load(&HALVES[usize::from(coefficient)]);
        [_mm256_permute2x128_si256::<0x00>(halves, halves), _mm256_permute2x128_si256::<0x11>(halves, halves)]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn product(factor: [__m256i; 2], elements: __m256i) -> __m256i {
        let mask = _mm256_set1_epi8(0x0F);
        let low = _mm256_shuffle_epi8(factor[0], _mm256_and_si256(elements, mask));
        let high = _mm256_shuffle_epi8(factor[1], _mm256_and_si256(_mm256_srli_epi64::<4>(elements), mask));
        _mm256_xor_si256(low, high)
    }
}

/// 32 elements by a matrix.
#[cfg(target_arch = "x86_64")]
mod gfni256 {
    use super::avx2::{VECTOR, load, store, xor, zero};
    use super::{GROUP, MATRICES, Term, add, portable};
    use core::arch::x86_64::*;

    kernel!("avx2,gfni");

    #[inline]
    #[target_feature(enable = "avx2,gfni")]
    fn factor(coefficient: u8) -> __m256i {
        _mm256_set1_epi64x(MATRICES[usize::from(coefficient)].cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx2,gfni")]
    fn product(factor: __m256i, elements: __m256i) -> __m256i {
        _mm256_gf2p8affine_epi64_epi8::<0>(elements, factor)
    }
}

/// 64 elements by a matrix.
#[cfg(target_arch = "x86_64")]
mod gfni512 {
    use super::{GROUP, MATRICES, Term, add, portable};
    use core::arch::x86_64::*;

    const VECTOR: usize = 64;

    kernel!("avx512f,gfni");

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(bytes: &[u8; VECTOR]) -> __m512i {
        // SAFETY: the array has the size of the vector, and the instruction does not need an alignment.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(bytes: &mut [u8; VECTOR], vector: __m512i) {
        // SAFETY: as in `load`.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zero() -> __m512i {
        _mm512_setzero_si512()
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn xor(a: __m512i, b: __m512i) -> __m512i {
        _mm512_xor_si512(a, b)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn factor(coefficient: u8) -> __m512i {
        _mm512_set1_epi64(MATRICES[usize::from(coefficient)].cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx512f,gfni")]
    fn product(factor: __m512i, elements: __m512i) -> __m512i {
        _mm512_gf2p8affine_epi64_epi8::<0>(elements, factor)
    }
}
