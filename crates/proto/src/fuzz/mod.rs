//! Bodies of the fuzz targets in `fuzz/`: any bytes into every codec, any script into every conversing engine.
//!
//! They are here so that a bounded run of the same bodies, with random and with damaged legal messages from seeds, is
//! an ordinary test. The first byte selects the codec or the engine, the rest is its input. A body panics if it detects
//! a fault.

mod codecs;
mod converse;
mod radio;

pub use codecs::{CODECS, Codec};
pub use converse::{PLAYS, Play, Script};
#[cfg(test)]
pub(crate) use radio::ax25_frame;

use crate::rng::Rng;
use bytes::Bytes;

/// Passes the bytes to the codec that the first one selects.
pub fn decode(data: &[u8]) {
    if let Some((&choice, rest)) = data.split_first() {
        let codec = &CODECS[usize::from(choice) % CODECS.len()];
        (codec.check)(&Bytes::copy_from_slice(rest));
    }
}

/// Plays the bytes as a script with the engine that the first one selects.
pub fn converse(data: &[u8]) {
    if let Some((&choice, rest)) = data.split_first() {
        (PLAYS[usize::from(choice) % PLAYS.len()].run)(&mut Script::new(rest));
    }
}

/// Damages bytes: flipped bits, new bytes, lost and duplicated ranges, truncation.
fn damage(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=rng.below(4) {
        let at = |rng: &mut Rng, bytes: &[u8]| rng.below(bytes.len() as u64 + 1) as usize;
        let (from, to) = (at(rng, &bytes), at(rng, &bytes));
        let (from, to) = (from.min(to), from.max(to));
        match rng.below(6) {
            0 => bytes.truncate(to),
            1 => drop(bytes.drain(from..to.min(from + 9))),
            2 => {
                bytes.splice(from..from, vec![rng.next_u64() as u8; 1 + rng.below(9) as usize]).for_each(drop)
            }
            3 => bytes.extend_from_within(from..to.min(from + 20)),
            _ if from == bytes.len() => {}
            4 => bytes[from] = rng.next_u64() as u8,
            _ => bytes[from] ^= 1 << rng.below(8),
        }
    }
    bytes
}

#[cfg(test)]
mod tests;
