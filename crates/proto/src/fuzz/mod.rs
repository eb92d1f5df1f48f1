//! Bodies of the fuzz targets in `fuzz/`: any bytes into every codec, any script into every conversing engine.
//!
//! They are here so that a bounded run of the same bodies, with random and with damaged legal messages from seeds, is
//! an ordinary test. A body panics if it detects a fault. Those of convergence layers are made from the table of them,
//! in `longwire-towers`; what they need of a protocol is its [`Material`].

mod aeronp;
mod bpsec;
mod codecs;
mod converse;
mod radio;
mod smtp;

#[cfg(test)]
pub(crate) use bpsec::{keys, secure};
pub use codecs::{CODECS, Codec};
#[cfg(test)]
pub(crate) use codecs::{bundle, bundle_of_version_6};
pub(crate) use codecs::{encoded, is_identity, is_stable, node_id};
pub use converse::{PLAYS, Play, Script, Speech, over_datagrams, over_packets, over_stream};
#[cfg(test)]
pub(crate) use radio::ax25_frame;

use crate::rng::Rng;

/// Codecs of a convergence layer, and messages of its peers.
#[derive(Debug)]
pub struct Material {
    /// Codecs of its messages.
    pub codecs: &'static [Codec],
    /// Messages of a peer, legal ones and others.
    pub speech: Speech,
}

impl Material {
    /// No codec, and any bytes.
    pub const BYTES: Material = Material { codecs: &[], speech: |_, script| script.bytes(200) };
}

/// Number of seeds of a bounded run, set by `LONGWIRE_SEEDS`; `cargo fuzz` is meant for longer runs.
pub fn seeds() -> u64 {
    std::env::var("LONGWIRE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000)
}

/// Tries a codec with legal, damaged and random messages of as many seeds. Some damaged messages must remain legal, or
/// the run tests only the first check.
///
/// # Panics
///
/// Panics if a legal message is not accepted, or if the codec finds all damaged messages legal, or next to none.
pub fn try_codec(codec: &Codec, seeds: u64) {
    let mut accepted = 0;
    for seed in 0..seeds {
        let message = (codec.valid)(Rng::new(seed));
        assert!((codec.check)(&message), "{}, seed {seed}: {message:x}", codec.name);
        let mut rng = Rng::new(seed).fork("damage");
        accepted += u64::from((codec.check)(&damage(&message, &mut rng).into()));
        let mut bytes = vec![0; rng.below(120) as usize];
        rng.fill(&mut bytes);
        (codec.check)(&bytes.into());
    }
    assert!(accepted > seeds / 100, "{}: {accepted} accepted", codec.name);
    assert!(accepted < seeds, "{}: no damage is noticed", codec.name);
}

/// Plays random scripts of as many seeds, long enough to reach the states of an engine; `run` returns the amount of its
/// output.
///
/// # Panics
///
/// Panics if a script breaks the engine, or if it says next to nothing.
pub fn try_play(name: &str, seeds: u64, run: impl Fn(&mut Script<'_>) -> u64) {
    let mut said = 0;
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let mut bytes = vec![0; 1 + rng.below(1500) as usize];
        rng.fill(&mut bytes);
        let run = std::panic::AssertUnwindSafe(|| run(&mut Script::new(&bytes)));
        match std::panic::catch_unwind(run) {
            Ok(more) => said += more,
            Err(_) => panic!("{name} breaks at seed {seed}"),
        }
    }
    assert!(said > seeds, "{name} says {said} things in {seeds} scripts");
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
