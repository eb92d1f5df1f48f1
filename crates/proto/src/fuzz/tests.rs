use super::*;
use crate::rng::Rng;

/// Number of seeds per codec and engine, set by `LONGWIRE_SEEDS`; `cargo fuzz` is meant for longer runs.
fn seeds() -> u64 {
    std::env::var("LONGWIRE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000)
}

#[test]
fn legal_messages_are_accepted() {
    for codec in CODECS {
        for seed in 0..seeds() {
            let message = (codec.valid)(Rng::new(seed));
            assert!((codec.check)(&message), "{}, seed {seed}: {message:x}", codec.name);
        }
    }
}

/// Some damaged messages must remain legal, or the run tests only the first check.
#[test]
fn damaged_messages_break_no_codec() {
    for codec in CODECS {
        let accepts = |seed: &u64| {
            let mut rng = Rng::new(*seed).fork("damage");
            let message = (codec.valid)(Rng::new(*seed));
            (codec.check)(&damage(&message, &mut rng).into())
        };
        let accepted = (0..seeds()).filter(accepts).count() as u64;
        assert!(accepted > seeds() / 100, "{}: {accepted} accepted", codec.name);
        assert!(accepted < seeds(), "{}: no damage is noticed", codec.name);
    }
}

#[test]
fn random_bytes_break_no_codec() {
    for seed in 0..5 * seeds() {
        let mut rng = Rng::new(seed);
        let mut bytes = vec![0; rng.below(120) as usize];
        rng.fill(&mut bytes);
        decode(&bytes);
    }
}

/// Random scripts, long enough to reach the states of an engine.
#[test]
fn scripts_break_no_engine() {
    for play in PLAYS {
        let mut said = 0;
        for seed in 0..seeds() {
            let mut rng = Rng::new(seed);
            let mut bytes = vec![0; 1 + rng.below(1500) as usize];
            rng.fill(&mut bytes);
            let run = std::panic::AssertUnwindSafe(|| (play.run)(&mut Script::new(&bytes)));
            match std::panic::catch_unwind(run) {
                Ok(more) => said += more,
                Err(_) => panic!("{} breaks at seed {seed}", play.name),
            }
        }
        assert!(said > seeds(), "{} says {said} things in {} scripts", play.name, seeds());
    }
}
