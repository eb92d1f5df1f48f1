//! Payloads of the applications. Each differs from the others, and to make and to compare one costs little: the measurement is of
//! the nodes.

use bytes::Bytes;
use longwire_proto::rng::Rng;

/// Length of the number with which a payload begins, bytes.
const NUMBER_BYTES: usize = 8;
/// Length of the part with the number, of which each payload has its own copy, bytes.
const BEGINNING_BYTES: usize = 1024;
/// Number of places in the random bytes where payloads begin.
const PLACES: u64 = 251;

/// Payloads of one length: the number of the payload, followed by random bytes from a place that depends on the number.
pub(crate) struct Payloads {
    random: Bytes,
    length: usize,
}

impl Payloads {
    /// Payloads of this length, bytes.
    pub(crate) fn new(length: usize) -> Self {
        assert!(length >= NUMBER_BYTES, "a payload begins with its number");
        let mut random = vec![0; length + PLACES as usize];
        Rng::new(length as u64).fill(&mut random);
        Payloads { random: random.into(), length }
    }

    /// Beginning of a payload, and the rest of it.
    pub(crate) fn parts(&self, number: u64) -> (Bytes, Bytes) {
        let all = self.place(number);
        let mut beginning = all[..self.length.min(BEGINNING_BYTES)].to_vec();
        beginning[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
        (beginning.into(), all.slice(self.length.min(BEGINNING_BYTES)..))
    }

    /// A payload in one piece.
    pub(crate) fn whole(&self, number: u64) -> Bytes {
        let (beginning, rest) = self.parts(number);
        [&beginning[..], &rest[..]].concat().into()
    }

    /// Number of the payload that begins with these bytes.
    pub(crate) fn number(beginning: &[u8]) -> u64 {
        u64::from_be_bytes(*beginning.first_chunk().expect("a payload begins with its number"))
    }

    /// Panics unless every byte of this part, at this offset, is that of the payload.
    pub(crate) fn compare(&self, number: u64, offset: usize, part: &[u8]) {
        let in_number = NUMBER_BYTES.saturating_sub(offset).min(part.len());
        let (first, rest) = part.split_at(in_number);
        assert_eq!(first, &number.to_be_bytes()[offset.min(NUMBER_BYTES)..][..in_number], "every byte");
        let at = offset + in_number;
        assert!(rest == &self.place(number)[at..at + rest.len()], "every byte of payload {number} from {at}");
    }

    /// Random bytes that a payload ends with, from its place on.
    fn place(&self, number: u64) -> Bytes {
        let at = (number % PLACES) as usize;
        self.random.slice(at..at + self.length)
    }
}
