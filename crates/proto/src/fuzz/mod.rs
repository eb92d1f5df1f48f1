//! The bodies of the fuzz targets in `fuzz/`: any bytes into every codec, any script into every conversing engine.
//!
//! They are here so that a bounded run of the very same bodies, with random and with damaged legal messages from
//! seeds, is an ordinary test. The first byte chooses the codec or the engine, the rest is for it. A body panics
//! where something is wrong.

mod codecs;

pub use codecs::{CODECS, Codec};

use bytes::Bytes;

/// Gives the bytes to the codec that the first one chooses.
pub fn decode(data: &[u8]) {
    if let Some((&choice, rest)) = data.split_first() {
        let codec = &CODECS[usize::from(choice) % CODECS.len()];
        (codec.check)(&Bytes::copy_from_slice(rest));
    }
}

#[cfg(test)]
mod tests;
