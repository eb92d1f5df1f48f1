use super::*;
use crate::rng::Rng;

/// Seeds a codec; more of them is what `cargo fuzz` is for.
const SEEDS: u64 = 3_000;

/// Does to bytes what happens to bytes: flipped bits, new bytes, lost and doubled ranges, a cut end.
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

#[test]
fn legal_messages_are_accepted() {
    for codec in CODECS {
        for seed in 0..SEEDS {
            let message = (codec.valid)(Rng::new(seed));
            assert!((codec.check)(&message), "{}, seed {seed}: {message:x}", codec.name);
        }
    }
}

/// Some damage leaves a legal message, or the run tries nothing but the first check.
#[test]
fn damaged_messages_break_no_codec() {
    for codec in CODECS {
        let accepts = |seed: &u64| {
            let mut rng = Rng::new(*seed).fork("damage");
            let message = (codec.valid)(Rng::new(*seed));
            (codec.check)(&damage(&message, &mut rng).into())
        };
        let accepted = (0..SEEDS).filter(accepts).count() as u64;
        assert!(accepted > SEEDS / 100, "{}: {accepted} accepted", codec.name);
        assert!(accepted < SEEDS, "{}: no damage is noticed", codec.name);
    }
}

#[test]
fn random_bytes_break_no_codec() {
    for seed in 0..5 * SEEDS {
        let mut rng = Rng::new(seed);
        let mut bytes = vec![0; rng.below(120) as usize];
        rng.fill(&mut bytes);
        decode(&bytes);
    }
}
