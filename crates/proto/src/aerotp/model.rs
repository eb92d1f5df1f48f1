//! Closed forms for segments on a channel with independent bit errors, and the choice of a code by them.
//!
//! A bit is wrong with the probability p. An octet is wrong with q = 1 - (1 - p)^8, and a word of n octets fails if more than t of
//! them are wrong: the tail of the binomial distribution of n and q. A segment arrives if its headers are intact, those of UDP
//! and IP included, and if no word of its payload fails.

use super::config::STRENGTHS;
use super::wire::{HEADER_BYTES, TRAILER_BYTES, payload_bytes_max};
use crate::fec::{BitErrorCode, WordLayout};

/// Returns the probability that a unit of `bytes` has at least one bit error.
pub fn segment_error_probability(bit_error_rate: f64, bytes: f64) -> f64 {
    -libm::expm1(8.0 * bytes * libm::log1p(-bit_error_rate))
}

/// Returns the probability that more than `strength` octets of a word of `bytes` octets are wrong.
pub fn word_failure_probability(bit_error_rate: f64, bytes: usize, strength: u8) -> f64 {
    let wrong = segment_error_probability(bit_error_rate, 1.0);
    if wrong <= 0.0 || bytes <= usize::from(strength) {
        return 0.0;
    }
    if wrong >= 1.0 {
        return 1.0;
    }
    // The terms of the tail fall quickly where it is small, and it is one less the head where it is not.
    let odds = wrong / (1.0 - wrong);
    let none = libm::exp(bytes as f64 * libm::log1p(-wrong));
    let mut term = none;
    let (mut head, mut tail) = (0.0, 0.0);
    for count in 0..=bytes {
        if count <= usize::from(strength) {
            head += term;
        } else {
            tail += term;
            if term < tail * 1e-12 {
                break;
            }
        }
        term *= odds * (bytes - count) as f64 / (count + 1) as f64;
    }
    if head < 0.5 { 1.0 - head } else { tail }
}

/// Returns the probability that a segment with this payload arrives with an intact header and cannot be corrected. Its code has the
/// usual layout.
pub fn payload_failure_probability(bit_error_rate: f64, payload_bytes: usize, strength: u8) -> f64 {
    if payload_bytes == 0 {
        return 0.0;
    }
    let code = BitErrorCode::new(strength, WordLayout::Interleaved);
    if strength == 0 {
        return segment_error_probability(bit_error_rate, (payload_bytes + TRAILER_BYTES) as f64);
    }
    let lengths = code.word_lengths(payload_bytes + TRAILER_BYTES);
    // Words have one of two lengths.
    let (mut last, mut arrives) = ((0, 0.0), 1.0);
    for length in lengths {
        let bytes = length + 2 * usize::from(strength);
        if last.0 != bytes {
            last = (bytes, word_failure_probability(bit_error_rate, bytes, strength));
        }
        arrives *= 1.0 - last.1;
    }
    1.0 - arrives
}

/// Returns the probability that a segment with its header inside the code is not recognised because its header is wrong after the
/// correction, and the probability that it is recognised and wrong.
///
/// A word that fails has as many wrong octets as before if that is detected. With a strength of 1 it is not: nearly each place is
/// that of a correction, which makes one more octet wrong. The wrong ones are anywhere in the word.
pub fn coded_header_failure_probabilities(
    bit_error_rate: f64,
    payload_bytes: usize,
    strength: u8,
) -> (f64, f64) {
    let code = BitErrorCode::new(strength, WordLayout::Consecutive);
    let mut words = code.word_lengths(HEADER_BYTES + payload_bytes + TRAILER_BYTES);
    let fails =
        |length| word_failure_probability(bit_error_rate, length + 2 * usize::from(strength), strength);
    let first_bytes = words.next().unwrap_or(0) + 2 * usize::from(strength);
    let outside = 1.0 - HEADER_BYTES as f64 / first_bytes as f64;
    let (mut unrecognised, mut at_least) =
        (0.0, word_failure_probability(bit_error_rate, first_bytes, strength));
    let first = at_least;
    for wrong in strength + 1..=u8::MAX {
        let more = word_failure_probability(bit_error_rate, first_bytes, wrong);
        let places = f64::from(wrong) + if strength == 1 { 1.0 } else { 0.0 };
        unrecognised += (at_least - more) * (1.0 - libm::pow(outside, places));
        at_least = more;
        if at_least < unrecognised * 1e-9 {
            break;
        }
    }
    let arrives = words.fold(1.0 - first, |arrives, length| arrives * (1.0 - fails(length)));
    (unrecognised, 1.0 - arrives - unrecognised)
}

/// Returns the number of octets of a packet with this payload.
pub fn packet_bytes(payload_bytes: usize, strength: u8) -> usize {
    let coded = payload_bytes + TRAILER_BYTES;
    HEADER_BYTES + coded + BitErrorCode::new(strength, WordLayout::Interleaved).parity_bytes(coded)
}

/// Returns the octets on the channel for each octet of data that arrives, where lost segments are replaced one by one. `overhead_bytes`
/// is the length of the headers around each packet.
pub fn cost(bit_error_rate: f64, payload_bytes: usize, strength: u8, overhead_bytes: u64) -> f64 {
    let headers = overhead_bytes as f64 + HEADER_BYTES as f64;
    let arrives = (1.0 - segment_error_probability(bit_error_rate, headers))
        * (1.0 - payload_failure_probability(bit_error_rate, payload_bytes, strength));
    let bytes = (packet_bytes(payload_bytes, strength) as u64 + overhead_bytes) as f64;
    bytes / payload_bytes as f64 / arrives.max(f64::MIN_POSITIVE)
}

/// Length and code of the segments with the least cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Longest payload, octets.
    pub payload_bytes: usize,
    /// Strength of the code.
    pub strength: u8,
    /// Octets on the channel for each octet of data that arrives.
    pub cost: f64,
}

/// Returns the strength with the least cost for a payload of this length, in packets of at most `bytes_max`.
pub fn best_strength(bit_error_rate: f64, payload_bytes: usize, overhead_bytes: u64, bytes_max: u64) -> u8 {
    let fits = |strength: &u8| payload_bytes_max(bytes_max, *strength, false) >= payload_bytes as u64;
    let costs = STRENGTHS.into_iter().filter(fits).map(|strength| {
        let cost = cost(bit_error_rate, payload_bytes, strength, overhead_bytes);
        (strength, cost)
    });
    costs.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(strength, _)| strength)
}

/// Returns the best choice for packets of at most `bytes_max`: all strengths, and packets of that length, half of it, and so on.
pub fn best(bit_error_rate: f64, overhead_bytes: u64, bytes_max: u64) -> Choice {
    let lengths =
        (0..5).map(|halvings| bytes_max >> halvings).filter(|bytes| *bytes >= 128 || *bytes == bytes_max);
    let choices = lengths.flat_map(|bytes| {
        STRENGTHS.into_iter().filter_map(move |strength| {
            let payload_bytes = payload_bytes_max(bytes, strength, false) as usize;
            let cost =
                (payload_bytes > 0).then(|| cost(bit_error_rate, payload_bytes, strength, overhead_bytes))?;
            Some(Choice { payload_bytes, strength, cost })
        })
    });
    let none = Choice { payload_bytes: 1, strength: 0, cost: f64::INFINITY };
    choices.min_by(|a, b| a.cost.total_cmp(&b.cost)).unwrap_or(none)
}

/// Returns the probability that more than `losses` of `segments` are lost.
pub fn more_losses_probability(loss: f64, segments: u64, losses: u64) -> f64 {
    let (loss, segments) = (loss.clamp(0.0, 0.99), segments.min(10_000));
    let mut term = libm::exp(segments as f64 * libm::log1p(-loss));
    let mut head = 0.0;
    for count in 0..=losses.min(segments) {
        head += term;
        term *= loss / (1.0 - loss) * (segments - count) as f64 / (count + 1) as f64;
    }
    (1.0 - head).max(0.0)
}
