//! A Reed-Solomon code that corrects wrong octets at unknown places, as bit errors make them.
//!
//! The field is GF(2^8) with the polynomial 0x11D, and the generator polynomial has the roots 1, alpha, .., alpha^(2t - 1), as
//! in QR codes and IL2P. A code word has at most 255 octets, of which 2t are parity; t wrong octets of it are corrected,
//! wherever they are. Longer data take several code words, and shorter ones leave out octets that would be zero.
//!
//! ```text
//!  interleaved    data octet i belongs to word i mod c            consecutive    word 0: the first 255 - 2t octets, ..
//!
//!   d0 d1 d2 d3 d4 d5 d6 ..  | parity of word 0, word 1, ..        d0 d1 d2 .. | d253 .. | parity of word 0, word 1, ..
//!   w0 w1 w2 w0 w1 w2 w0                                           w0 w0 w0      w1
//! ```
//!
//! With interleaving, a burst of errors is spread over all words, and words differ by at most one octet in length. The number c of
//! words is the smallest one that has room for the data.
//!
//! Errors beyond t octets in a word are detected in most cases, not in all: with t = 1, nearly every long word
//! with two errors is changed into another valid one. A checksum over the data must decide.
//!
//! Division by the generator polynomial finds out whether a word has errors. Decoding then takes the syndromes, the error locator by the algorithm of Berlekamp and Massey, its roots by trial of all places
//! (Chien), and the values by Forney's formula.

use super::gf256::{divide, multiply, power_of_alpha};
use std::sync::OnceLock;

/// Length of the longest code word, octets.
pub const WORD_BYTES_MAX: usize = 255;

/// Number of octets that a code word can correct at most in this implementation.
pub const STRENGTH_MAX: u8 = 16;

/// Assignment of the octets of the data to code words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WordLayout {
    /// Octet i belongs to word i modulo their number.
    #[default]
    Interleaved,
    /// Each word has the octets that follow those of the word before.
    Consecutive,
}

/// Result of a decoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Correction {
    /// Octets that were changed, those of the parity included.
    pub octets: u32,
    /// Bits that were changed in them.
    pub bits: u32,
    /// Words with more errors than the code corrects. They are left as they were.
    pub failed_words: u32,
}

/// Parity of a word, from its highest coefficient on, and zeros behind it.
type Parity = [u8; 2 * STRENGTH_MAX as usize];
/// Multiples of a generator polynomial by all octets, each as one number in two halves.
type Multiples = [[u128; 2]; 256];

/// The code with 2t octets of parity in each word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitErrorCode {
    strength: u8,
    layout: WordLayout,
}

impl BitErrorCode {
    /// Creates the code that corrects `strength` octets in each word; zero makes a code without parity.
    ///
    /// # Panics
    /// Panics above [`STRENGTH_MAX`].
    pub const fn new(strength: u8, layout: WordLayout) -> Self {
        assert!(strength <= STRENGTH_MAX, "a strength of this implementation");
        BitErrorCode { strength, layout }
    }

    const fn parity_of_word(self) -> usize {
        2 * self.strength as usize
    }

    /// Returns the number of words of data of this length.
    pub const fn words(self, data_bytes: usize) -> usize {
        data_bytes.div_ceil(WORD_BYTES_MAX - self.parity_of_word())
    }

    /// Returns the number of octets of parity of data of this length.
    pub const fn parity_bytes(self, data_bytes: usize) -> usize {
        self.words(data_bytes) * self.parity_of_word()
    }

    /// Returns the length of the data whose length with the parity is `bytes`; `None` if there are no such data.
    pub fn data_bytes(self, bytes: usize) -> Option<usize> {
        let data_bytes = bytes.checked_sub(bytes.div_ceil(WORD_BYTES_MAX) * self.parity_of_word())?;
        (data_bytes + self.parity_bytes(data_bytes) == bytes).then_some(data_bytes)
    }

    /// Returns the length of the longest data that take at most `bytes` with their parity.
    pub fn data_bytes_max(self, bytes: usize) -> usize {
        let whole = bytes / WORD_BYTES_MAX;
        let rest = (bytes % WORD_BYTES_MAX).saturating_sub(self.parity_of_word());
        whole * (WORD_BYTES_MAX - self.parity_of_word()) + rest
    }

    /// Returns the octets of data in each word, in the order of the words.
    pub fn word_lengths(self, data_bytes: usize) -> impl Iterator<Item = usize> {
        let words = self.words(data_bytes);
        let length = WORD_BYTES_MAX - self.parity_of_word();
        (0..words).map(move |word| match self.layout {
            WordLayout::Interleaved => data_bytes / words + usize::from(word < data_bytes % words),
            WordLayout::Consecutive => length.min(data_bytes - word * length),
        })
    }

    /// Returns the place in the data of each octet of a word.
    fn places(self, data_bytes: usize, word: usize) -> impl Iterator<Item = usize> {
        let length = WORD_BYTES_MAX - self.parity_of_word();
        let (start, end, step) = match self.layout {
            WordLayout::Interleaved => (word, data_bytes, self.words(data_bytes)),
            WordLayout::Consecutive => (word * length, data_bytes.min((word + 1) * length), 1),
        };
        (start..end).step_by(step)
    }

    /// Appends the parity of the data to `out`.
    pub fn encode(self, data: &[u8], out: &mut impl Extend<u8>) {
        if self.strength == 0 {
            return;
        }
        for word in 0..self.words(data.len()) {
            let octets = self.places(data.len(), word).map(|place| data[place]);
            let parity = self.remainder(octets);
            out.extend(parity[..self.parity_of_word()].iter().copied());
        }
    }

    /// Returns the remainder of these octets, followed by as many zeros as there is parity, by the generator polynomial.
    fn remainder(self, octets: impl Iterator<Item = u8>) -> Parity {
        let multiples = self.multiples();
        let [mut high, mut low] = [0_u128; 2];
        for octet in octets {
            let [of_high, of_low] = multiples[usize::from((high >> 120) as u8 ^ octet)];
            high = (high << 8 | low >> 120) ^ of_high;
            low = low << 8 ^ of_low;
        }
        let mut remainder = [0; size_of::<Parity>()];
        remainder[..16].copy_from_slice(&high.to_be_bytes());
        remainder[16..].copy_from_slice(&low.to_be_bytes());
        remainder
    }

    /// Returns the multiples of the generator polynomial by all octets, without the highest coefficient; computed once for each
    /// strength.
    fn multiples(self) -> &'static Multiples {
        static MULTIPLES: [OnceLock<Box<Multiples>>; STRENGTH_MAX as usize] =
            [const { OnceLock::new() }; STRENGTH_MAX as usize];
        MULTIPLES[usize::from(self.strength) - 1].get_or_init(|| {
            let generator = self.generator();
            let multiple = |octet: usize| {
                let product = generator.map(|coefficient| multiply(octet as u8, coefficient));
                let half = |at: usize| {
                    product[at..at + 16].iter().fold(0, |sum: u128, octet| sum << 8 | u128::from(*octet))
                };
                [half(0), half(16)]
            };
            Box::new(core::array::from_fn(multiple))
        })
    }

    /// Returns the coefficients of the generator polynomial below the highest one, which is 1, from the highest on.
    fn generator(self) -> Parity {
        let degree = self.parity_of_word();
        // Coefficients from the lowest on.
        let mut product = [0; 2 * STRENGTH_MAX as usize + 1];
        product[0] = 1;
        for root in 0..degree {
            for index in (0..=root + 1).rev() {
                let shifted = if index == 0 { 0 } else { product[index - 1] };
                product[index] = shifted ^ multiply(product[index], power_of_alpha(root));
            }
        }
        let mut generator = Parity::default();
        for index in 0..degree {
            generator[index] = product[degree - 1 - index];
        }
        generator
    }

    /// Corrects the data and their parity, word by word.
    ///
    /// # Panics
    /// Panics if the parity does not have the length that belongs to the data.
    pub fn decode(self, data: &mut [u8], parity: &mut [u8]) -> Correction {
        assert_eq!(parity.len(), self.parity_bytes(data.len()), "the parity of these data");
        let mut correction = Correction::default();
        if self.strength == 0 {
            return correction;
        }
        for word in 0..self.words(data.len()) {
            let own = &mut parity[word * self.parity_of_word()..][..self.parity_of_word()];
            let mut remainder = self.remainder(self.places(data.len(), word).map(|place| data[place]));
            remainder.iter_mut().zip(&*own).for_each(|(octet, received)| *octet ^= received);
            let remainder = &remainder[..own.len()];
            if remainder.iter().all(|octet| *octet == 0) {
                continue;
            }
            let of_data = self.places(data.len(), word).count();
            let Some(errors) = self.errors(remainder, of_data + own.len()) else {
                correction.failed_words += 1;
                continue;
            };
            for (index, value) in errors {
                correction.octets += 1;
                correction.bits += value.count_ones();
                match index.checked_sub(of_data) {
                    Some(index) => own[index] ^= value,
                    None => {
                        let place = self.places(data.len(), word).nth(index).expect("an octet of the word");
                        data[place] ^= value;
                    }
                }
            }
        }
        correction
    }

    /// Returns the errors of a word of this length with this remainder, as places and differences; `None` if there are too many.
    fn errors(self, remainder: &[u8], length: usize) -> Option<Vec<(usize, u8)>> {
        let count = self.parity_of_word();
        let mut syndromes = [0; 2 * STRENGTH_MAX as usize];
        let syndromes = &mut syndromes[..count];
        for (power, syndrome) in syndromes.iter_mut().enumerate() {
            let x = power_of_alpha(power);
            // The generator polynomial is zero there, so that the word and its remainder have the same value.
            *syndrome = remainder.iter().fold(0, |sum, octet| multiply(sum, x) ^ octet);
        }
        let (locator, errors) = locator(syndromes)?;
        if errors > usize::from(self.strength) {
            return None;
        }
        let evaluator: Vec<u8> = (0..count)
            .map(|degree| {
                (0..=errors.min(degree)).fold(0, |sum, i| sum ^ multiply(locator[i], syndromes[degree - i]))
            })
            .collect();
        let mut found = Vec::with_capacity(errors);
        for index in 0..length {
            // The octet has the power `exponent` of x, and its locator is alpha to that power.
            let exponent = length - 1 - index;
            let inverse = power_of_alpha(WORD_BYTES_MAX - exponent % WORD_BYTES_MAX);
            if polynomial(&locator[..=errors], inverse) != 0 {
                continue;
            }
            // The derivative has the odd coefficients, one power lower.
            let odd = (1..=errors).rev().filter(|i| i % 2 == 1);
            let squared = multiply(inverse, inverse);
            let derivative = odd.fold(0, |sum, i| multiply(sum, squared) ^ locator[i]);
            if derivative == 0 {
                return None;
            }
            let value = divide(polynomial(&evaluator, inverse), derivative);
            found.push((index, multiply(value, power_of_alpha(exponent))));
        }
        (found.len() == errors).then_some(found)
    }
}

/// Returns the value of a polynomial, whose coefficients are given from the lowest on.
fn polynomial(coefficients: &[u8], x: u8) -> u8 {
    coefficients.iter().rev().fold(0, |sum, coefficient| multiply(sum, x) ^ coefficient)
}

/// Returns the error locator of these syndromes, from its lowest coefficient on, and its degree (Berlekamp and Massey); `None` if its
/// degree exceeds what the syndromes determine.
fn locator(syndromes: &[u8]) -> Option<([u8; 2 * STRENGTH_MAX as usize + 1], usize)> {
    const SIZE: usize = 2 * STRENGTH_MAX as usize + 1;
    let (mut current, mut before) = ([0_u8; SIZE], [0_u8; SIZE]);
    (current[0], before[0]) = (1, 1);
    let (mut errors, mut shift, mut before_discrepancy) = (0, 1, 1_u8);
    for step in 0..syndromes.len() {
        let discrepancy =
            (1..=errors).fold(syndromes[step], |sum, i| sum ^ multiply(current[i], syndromes[step - i]));
        if discrepancy == 0 {
            shift += 1;
            continue;
        }
        let factor = divide(discrepancy, before_discrepancy);
        let old = current;
        for i in shift..SIZE {
            current[i] ^= multiply(factor, before[i - shift]);
        }
        if 2 * errors <= step {
            errors = step + 1 - errors;
            (before, before_discrepancy, shift) = (old, discrepancy, 1);
        } else {
            shift += 1;
        }
    }
    (2 * errors <= syndromes.len() && current[errors] != 0).then_some((current, errors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn code(strength: u8) -> BitErrorCode {
        BitErrorCode::new(strength, WordLayout::Interleaved)
    }

    fn parity_of(code: BitErrorCode, data: &[u8]) -> Vec<u8> {
        let mut parity = Vec::new();
        code.encode(data, &mut parity);
        assert_eq!(parity.len(), code.parity_bytes(data.len()));
        parity
    }

    fn random(rng: &mut Rng, length: usize) -> Vec<u8> {
        let mut data = vec![0; length];
        rng.fill(&mut data);
        data
    }

    /// Changes this number of different octets of one word.
    fn damage(rng: &mut Rng, word: &mut [u8], count: usize) {
        let mut places: Vec<usize> = (0..word.len()).collect();
        for i in 0..count {
            let other = i + rng.below((places.len() - i) as u64) as usize;
            places.swap(i, other);
            word[places[i]] ^= 1 + rng.below(255) as u8;
        }
    }

    #[test]
    fn parity_is_that_of_a_qr_code() {
        // ISO/IEC 18004, version 1-M with the data of the usual example: 16 data and 10 parity code words.
        let data = [32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17];
        assert_eq!(parity_of(code(5), &data), [196, 35, 39, 119, 235, 215, 231, 226, 93, 23]);
    }

    #[test]
    fn every_single_wrong_octet_of_a_short_word_is_corrected() {
        let data = [7, 0, 255, 1];
        for strength in [1, 2] {
            let parity = parity_of(code(strength), &data);
            for place in 0..data.len() + parity.len() {
                for difference in 1..=255 {
                    let mut all = [&data[..], &parity].concat();
                    all[place] ^= difference;
                    let (first, second) = all.split_at_mut(data.len());
                    let correction = code(strength).decode(first, second);
                    let bits = difference.count_ones();
                    let expected = Correction { octets: 1, bits, ..Correction::default() };
                    assert_eq!((correction, &*first, &*second), (expected, &data[..], &parity[..]));
                }
            }
        }
    }

    #[test]
    fn as_many_wrong_octets_as_the_strength_are_corrected_in_every_word() {
        let mut rng = Rng::new(1);
        for round in 0..400 {
            let strength = [1, 2, 4, 8, 16][round % 5];
            let layout = [WordLayout::Interleaved, WordLayout::Consecutive][round % 2];
            let code = BitErrorCode::new(strength, layout);
            let length = 1 + rng.below(1_500) as usize;
            let data = random(&mut rng, length);
            let parity = parity_of(code, &data);
            let (mut wrong, mut wrong_parity) = (data.clone(), parity.clone());
            let mut expected = 0;
            for word in 0..code.words(data.len()) {
                let places: Vec<usize> = code.places(data.len(), word).collect();
                let own = word * 2 * usize::from(strength)..(word + 1) * 2 * usize::from(strength);
                let mut octets: Vec<u8> = places.iter().map(|place| data[*place]).collect();
                octets.extend(&parity[own.clone()]);
                let count = rng.below(1 + u64::from(strength)) as usize;
                damage(&mut rng, &mut octets, count);
                expected += count as u32;
                places.iter().zip(&octets).for_each(|(place, octet)| wrong[*place] = *octet);
                wrong_parity[own].copy_from_slice(&octets[places.len()..]);
            }
            let correction = code.decode(&mut wrong, &mut wrong_parity);
            assert_eq!((correction.octets, correction.failed_words), (expected, 0), "round {round}");
            assert_eq!((wrong, wrong_parity), (data, parity), "round {round}");
        }
    }

    #[test]
    fn more_errors_leave_the_word_as_it_was_or_make_another_word_of_the_code() {
        let mut rng = Rng::new(2);
        let mut undetected = [0; 17];
        for strength in [1_u8, 2, 4, 8, 16] {
            for _ in 0..500 {
                let mut word = random(&mut rng, 200);
                word.extend(parity_of(code(strength), &word));
                let valid = word.clone();
                let count = usize::from(strength) + 1 + rng.below(5) as usize;
                damage(&mut rng, &mut word, count);
                let wrong = word.clone();
                let (data, parity) = word.split_at_mut(200);
                let correction = code(strength).decode(data, parity);
                if correction.failed_words == 1 {
                    assert!(word == wrong);
                } else {
                    undetected[usize::from(strength)] += 1;
                    assert!(word != valid, "more errors than the code corrects");
                    assert_eq!(word[200..], parity_of(code(strength), &word[..200]));
                }
            }
        }
        // About 1/t! of the patterns, times the share of the word that a shortened one has.
        assert!((200..600).contains(&(undetected[1] + undetected[2])), "{undetected:?}");
        assert_eq!((undetected[8], undetected[16]), (0, 0));
    }

    #[test]
    fn lengths_with_parity_tell_the_length_of_the_data() {
        for strength in [0, 1, 2, 4, 8, 16] {
            for layout in [WordLayout::Interleaved, WordLayout::Consecutive] {
                let code = BitErrorCode::new(strength, layout);
                let mut lengths = std::collections::BTreeSet::new();
                for data in 0..1_600 {
                    let bytes = data + code.parity_bytes(data);
                    assert!(lengths.insert(bytes));
                    assert_eq!(code.data_bytes(bytes), Some(data));
                    let words: Vec<_> = code.word_lengths(data).collect();
                    assert_eq!((words.iter().sum::<usize>(), words.len()), (data, code.words(data)));
                    assert!(words.iter().all(|word| word + 2 * usize::from(strength) <= WORD_BYTES_MAX));
                    for (word, length) in words.iter().enumerate() {
                        assert_eq!(code.places(data, word).count(), *length);
                    }
                }
                for bytes in 0..1_600 {
                    let most = code.data_bytes_max(bytes);
                    assert!(most + code.parity_bytes(most) <= bytes);
                    assert!(most + 1 + code.parity_bytes(most + 1) > bytes, "{strength} {bytes} {most}");
                    assert!(code.data_bytes(bytes).is_some() == lengths.contains(&bytes));
                }
            }
        }
    }

    #[test]
    fn a_burst_is_spread_over_the_words() {
        let mut rng = Rng::new(3);
        let data = random(&mut rng, 1_404);
        let strength_four = code(4);
        let mut parity = parity_of(strength_four, &data);
        // Six words correct four octets each.
        let mut wrong = data.clone();
        wrong[700..724].iter_mut().for_each(|octet| *octet ^= 0x55);
        let correction = strength_four.decode(&mut wrong, &mut parity);
        assert_eq!((correction.octets, correction.failed_words), (24, 0));
        assert_eq!(wrong, data);
    }
}
