//! Arithmetic in GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11D), where addition is the exclusive or.

#[allow(unsafe_code, reason = "vector instructions, behind safe functions")]
mod kernels;

pub use kernels::Kernel;
pub(super) use kernels::Term;

/// The polynomial without its highest term.
const POLYNOMIAL: u8 = 0x1D;

/// Order of the multiplicative group, which alpha = 2 generates.
const ORDER: usize = 255;

/// Powers of alpha, twice in a row, so that the sum of two logarithms is an index.
const EXP: [u8; 2 * ORDER] = {
    let mut powers = [0; 2 * ORDER];
    let (mut i, mut power) = (0, 1);
    while i < powers.len() {
        powers[i] = power;
        power = times_alpha(power);
        i += 1;
    }
    powers
};

/// Logarithms to the base alpha; that of zero does not exist.
const LOG: [u8; 256] = {
    let mut logarithms = [0; 256];
    let mut i = 0;
    while i < ORDER {
        logarithms[EXP[i] as usize] = i as u8;
        i += 1;
    }
    logarithms
};

const fn times_alpha(a: u8) -> u8 {
    (a << 1) ^ (if a & 0x80 == 0 { 0 } else { POLYNOMIAL })
}

/// Returns alpha to a power.
pub(super) fn power_of_alpha(exponent: usize) -> u8 {
    EXP[exponent % ORDER]
}

pub(super) const fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// # Panics
/// Panics if `b` is zero.
pub(super) fn divide(a: u8, b: u8) -> u8 {
    assert_ne!(b, 0, "zero has no inverse");
    multiply(a, EXP[ORDER - usize::from(LOG[usize::from(b)])])
}

pub(super) fn product(factors: impl IntoIterator<Item = u8>) -> u8 {
    factors.into_iter().fold(1, multiply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The product of polynomials, reduced bit by bit.
    fn long_multiply(a: u8, b: u8) -> u8 {
        let product = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ (u32::from(a) << bit));
        let reduced =
            (8..15).rev().fold(product, |rest, bit| rest ^ ((rest >> bit & 1) * (0x11D << (bit - 8))));
        reduced as u8
    }

    #[test]
    fn products_and_quotients_are_those_of_polynomials() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), long_multiply(a, b), "{a} * {b}");
                if b != 0 {
                    assert_eq!(multiply(divide(a, b), b), a, "{a} / {b}");
                }
            }
        }
        assert_eq!([0, 1, 8, 254, 255, 300].map(power_of_alpha), [1, 2, 0x1D, 0x8E, 1, EXP[45]]);
        assert_eq!((product([]), product([2, 0x80, 3])), (1, 0x27));
    }

    /// Sizes around the vectors and the strips of all kernels.
    const SIZES: [usize; 21] =
        [1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 191, 192, 255, 256, 257, 1_400];

    /// Room behind each sum, which has to stay as it is.
    const SPARE: usize = 3;

    /// Sums and symbols at odd addresses, in every number up to twice a group and one more.
    #[test]
    fn each_kernel_computes_the_sums_of_products() {
        let mut rng = Rng::new(1);
        let mut coefficients: Vec<u8> = (0..=255).collect();
        for (round, bytes) in SIZES.into_iter().cycle().take(4 * SIZES.len()).enumerate() {
            let (count, terms, stride) = (1 + round % 9, 256 / (1 + round % 9) + 1, bytes + SPARE);
            for i in (1..256).rev() {
                coefficients.swap(i, rng.below(i as u64 + 1) as usize);
            }
            // All coefficients, and some of them again.
            let all: Vec<u8> = coefficients.iter().copied().cycle().take(count * terms).collect();
            let (mut symbols, mut sums) =
                (vec![0; terms * bytes + round % 5], vec![0; count * stride + round % 3]);
            rng.fill(&mut symbols);
            rng.fill(&mut sums);
            let sums = &sums[round % 3..];
            let symbols = symbols[round % 5..].chunks_exact(bytes);
            let terms: Vec<_> = symbols
                .zip(all.chunks_exact(count))
                .map(|(symbol, coefficients)| Term { symbol, coefficients })
                .collect();

            let mut expected = sums.to_vec();
            for term in &terms {
                for (sum, coefficient) in expected.chunks_exact_mut(stride).zip(term.coefficients) {
                    for (sum, element) in sum.iter_mut().zip(term.symbol) {
                        *sum ^= multiply(*coefficient, *element);
                    }
                }
            }
            for kernel in Kernel::available() {
                let mut buffer = [&[0][..], sums].concat();
                kernel.accumulate(&mut buffer[1..], stride, &terms);
                assert!(buffer[1..] == expected, "{}: {count} sums of {bytes} bytes", kernel.name());
            }
        }
    }

    #[test]
    fn each_kernel_multiplies_each_pair_of_elements() {
        let elements: Vec<u8> = (0..=255).collect();
        for kernel in Kernel::available() {
            for coefficient in 0..=255 {
                // Whole strips, and a strip that overlaps with the one before.
                for symbol in [&elements[..], &elements[1..]] {
                    let mut product = vec![0; symbol.len()];
                    kernel.accumulate(
                        &mut product,
                        symbol.len(),
                        &[Term { symbol, coefficients: &[coefficient] }],
                    );
                    let expected = symbol.iter().map(|element| multiply(coefficient, *element));
                    assert!(product.into_iter().eq(expected), "{}: {coefficient}", kernel.name());
                }
            }
        }
    }

    #[test]
    fn the_portable_kernel_is_always_there_and_the_last_one_is_taken() {
        let kernels = Kernel::available();
        assert_eq!(kernels[0].name(), "portable");
        assert_eq!(Kernel::fastest(), kernels[kernels.len() - 1]);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(is_x86_feature_detected!("avx2"), kernels.iter().any(|kernel| kernel.name() == "avx2"));
    }

    #[test]
    fn nothing_is_added_without_terms_or_bytes() {
        for kernel in Kernel::available() {
            let mut sums = *b"abc";
            kernel.accumulate(&mut sums, 3, &[]);
            kernel.accumulate(&mut sums, 3, &[Term { symbol: &[], coefficients: &[9] }]);
            kernel.accumulate(&mut [], 0, &[Term { symbol: &[], coefficients: &[] }]);
            assert_eq!(&sums, b"abc");
        }
    }

    #[test]
    #[should_panic(expected = "symbols of 4 bytes, sums of 3")]
    fn a_symbol_that_exceeds_the_sums_is_an_error_of_the_caller() {
        Kernel::fastest().accumulate(&mut [0; 6], 3, &[Term { symbol: &[1; 4], coefficients: &[1, 1] }]);
    }

    #[test]
    #[should_panic(expected = "symbols of equal sizes, with 2 coefficients")]
    fn symbols_of_different_sizes_are_an_error_of_the_caller() {
        let term = |symbol| Term { symbol, coefficients: &[1, 1] };
        Kernel::fastest().accumulate(&mut [0; 6], 3, &[term(&[1; 3]), term(&[1; 2])]);
    }

    #[test]
    #[should_panic(expected = "symbols of equal sizes, with 2 coefficients")]
    fn an_absent_coefficient_is_an_error_of_the_caller() {
        Kernel::fastest().accumulate(&mut [0; 6], 3, &[Term { symbol: &[1; 3], coefficients: &[1] }]);
    }

    #[test]
    #[should_panic(expected = "zero has no inverse")]
    fn a_division_by_zero_is_an_error_of_the_caller() {
        divide(1, 0);
    }
}
