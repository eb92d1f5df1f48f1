//! Tests of bundle security.

mod codec;
mod flips;
mod keys;
mod operations;
mod properties;
mod signed;
mod streaming;
mod vectors;

use super::*;
use crate::bp::{
    BlockFlags, BlockType, Bundle, Content, CrcType, CreationTimestamp, DecodePolicy, DtnTime, Eid, Head,
    HopCount, PrimaryBlock,
};
use crate::rng::Rng;
use bytes::Bytes;

/// Time of all tests.
const NOW: DtnTime = DtnTime(800_000_000_000);

fn hex(text: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

fn choice(keys: &Keys) -> KeyChoice<'_> {
    KeyChoice { keys, name: "test", at: NOW }
}

/// Bundle with a hop count (block 2) and a private block (block 3), each with its CRC.
fn sample() -> Bundle {
    let timestamp = CreationTimestamp { time: NOW, sequence: 3 };
    let mut head = Head::new(PrimaryBlock::new(Eid::ipn(9, 1), Eid::ipn(2, 1), timestamp, 86_400_000), 0);
    head.set(&Content::HopCount(HopCount { limit: 30, count: 0 }));
    let mut private = head.blocks[0].clone();
    private.block_type = BlockType::Unknown(222);
    private.number = 3;
    private.data = Bytes::from_static(b"field day");
    head.blocks.push(private);
    Bundle::new(head, Bytes::from_static(b"hello, moon"))
}

fn signing(targets: &[u64]) -> SignRequest {
    SignRequest {
        source: Eid::ipn(2, 1),
        targets: targets.to_vec(),
        algorithm: Algorithm::Hmac256,
        scope: Scope::ALL,
        fresh_key: None,
        flags: BlockFlags::NONE,
    }
}

fn encryption(targets: &[u64]) -> EncryptRequest {
    EncryptRequest {
        source: Eid::ipn(2, 1),
        targets: targets.to_vec(),
        algorithm: Algorithm::Aes256Gcm,
        scope: Scope::ALL,
        tag: TagPlace::Result,
        fresh_key: None,
        flags: BlockFlags::NONE,
    }
}

/// Initialization vectors that differ.
fn ivs() -> impl FnMut() -> [u8; IV_BYTES] {
    let mut count = 0;
    move || {
        count += 1;
        [count; IV_BYTES]
    }
}

/// Outcomes by target.
fn outcomes(verdicts: &[Verdict]) -> Vec<(u64, Result<(), Fault>)> {
    verdicts.iter().map(|verdict| (verdict.target, verdict.outcome)).collect()
}
