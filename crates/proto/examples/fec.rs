//! Throughput of the erasure codes: megabytes of source symbols a second.
//!
//! ```text
//! cargo run --release -p longwire-proto --example fec [SYMBOL_BYTES]
//! ```
//!
//! Each row is a block of k source and r repair symbols of 1,400 bytes, or of another even size. Encoding makes all
//! repair symbols of a block; decoding restores as many lost source symbols as there are repair symbols. Both begin with
//! the symbols as they come from a channel and end with symbols. A figure is the best of the calls of half a second, on
//! one core; `memory` is what a decoder needs of its limit.
//!
//! The second table has the code of NORM with each kernel that the processor has: all parity symbols of a block at
//! once, the same as its source symbols come one by one, a single parity symbol, and decoding of as many lost source
//! symbols as there are parity symbols.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "what measures has what engines must not have: a clock"
)]

use bytes::Bytes;
use longwire_proto::fec::{
    BlockLayout, Decoder, Encoder, Kernel, LayoutFault, ParitySymbols, ReedSolomon, VandermondeCode,
};
use longwire_proto::rng::Rng;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Source symbols of the blocks. 3,840 of them and at most 256 repair symbols just fill a power of two.
const SOURCE_SYMBOLS: [u32; 5] = [16, 64, 512, 3_840, 4_096];
/// Source and parity symbols of the blocks of NORM.
const NORM_SYMBOLS: [(u32, u32); 5] = [(16, 4), (64, 4), (64, 16), (200, 20), (200, 55)];
/// Repair symbols in percent of source symbols.
const REPAIR_PERCENT: [u32; 2] = [5, 20];
const MEASURED: Duration = Duration::from_millis(500);

/// Adds all symbols, and returns the repair symbols.
fn encode(layout: BlockLayout, sources: &[(u32, Bytes)]) -> Result<Vec<Bytes>, LayoutFault> {
    let mut encoder = Encoder::new(&ReedSolomon, layout, u64::MAX)?;
    for (id, source) in sources {
        encoder.add(*id, source.clone()).expect("a source symbol");
    }
    Ok(encoder.encode().expect("all source symbols"))
}

/// Adds k symbols, and returns the restored ones.
fn decode(layout: BlockLayout, received: &[(u32, Bytes)]) -> Result<Vec<(u32, Bytes)>, LayoutFault> {
    let mut decoder = Decoder::new(&ReedSolomon, layout, u64::MAX)?;
    for (id, symbol) in received {
        decoder.add(*id, symbol.clone()).expect("a symbol of the block");
    }
    Ok(decoder.decode().expect("k symbols"))
}

/// Shortest time of a call.
fn fastest<T>(call: impl Fn() -> T) -> Duration {
    let begin = Instant::now();
    let mut fastest = Duration::MAX;
    while begin.elapsed() < MEASURED {
        let from = Instant::now();
        std::hint::black_box(call());
        fastest = fastest.min(from.elapsed());
    }
    fastest
}

/// Least memory with which a decoder is created.
fn memory_bytes(layout: BlockLayout) -> u64 {
    match Decoder::new(&ReedSolomon, layout, 0) {
        Err(LayoutFault::Memory { bytes, .. }) => bytes,
        _ => 0,
    }
}

fn row(k: u32, repair_percent: u32, symbol_bytes: u32) -> Result<String, LayoutFault> {
    let r = (k * repair_percent).div_ceil(100);
    let layout = BlockLayout::new(u64::from(k) * u64::from(symbol_bytes), symbol_bytes, r)?;
    let mut block = vec![0; layout.block_bytes() as usize];
    Rng::new(u64::from(k)).fill(&mut block);
    let block = Bytes::from(block);
    let sources: Vec<_> = layout.sources(&block).collect();
    let repair = encode(layout, &sources)?;
    let received: Vec<_> = sources[r as usize..].iter().cloned().chain((k..).zip(repair)).collect();
    assert!(decode(layout, &received)? == sources[..r as usize], "other symbols than were sent");

    let rate = |time: Duration| block.len() as f64 / 1e6 / time.as_secs_f64();
    let encoding = fastest(|| encode(layout, &sources));
    let decoding = fastest(|| decode(layout, &received));
    let mib = memory_bytes(layout) as f64 / f64::from(1 << 20);
    let (encoded, decoded, took) = (rate(encoding), rate(decoding), decoding.as_secs_f64() * 1e3);
    Ok(format!("{k:>5} {r:>5} {encoded:>12.0} {decoded:>12.0} {took:>12.3} {mib:>10.1}"))
}

fn norm_row(kernel: Kernel, (k, r): (u32, u32), symbol_bytes: usize) -> Result<String, LayoutFault> {
    let code = VandermondeCode::new(k, r)?.with_kernel(kernel);
    let mut block = vec![0; k as usize * symbol_bytes];
    Rng::new(u64::from(k)).fill(&mut block);
    let sources: Vec<_> = (0..).zip(block.chunks(symbol_bytes)).collect();
    let at_once = || {
        let mut parity = ParitySymbols::new(&code, 0..r, symbol_bytes);
        parity.add_sources(sources.iter().copied());
        parity.into_symbols()
    };
    let one_by_one = || {
        let mut parity = ParitySymbols::new(&code, 0..r, symbol_bytes);
        sources.iter().for_each(|(index, source)| parity.add_source(*index, source));
        parity.into_symbols()
    };
    let single = || {
        let mut parity = vec![0; symbol_bytes];
        code.encode_into(r - 1, block.chunks(symbol_bytes), &mut parity);
        parity
    };
    let (parity, lost) = (at_once(), (0..r.min(k)).collect::<Vec<_>>());
    let restore = || {
        let present = sources[lost.len()..].iter().copied();
        code.decode(symbol_bytes, &lost, present, (0..).zip(parity.iter().map(|symbol| &symbol[..])))
    };
    assert!(one_by_one() == parity && single() == parity[r as usize - 1], "other parity symbols");
    let restored = restore().expect("k symbols");
    assert!(restored.iter().eq(sources[..lost.len()].iter().map(|(_, source)| source)), "other symbols");

    let rate = |time: Duration| block.len() as f64 / 1e6 / time.as_secs_f64();
    let rates = [fastest(at_once), fastest(one_by_one), fastest(single), fastest(restore)].map(rate);
    let [at_once, one_by_one, single, restored] = rates.map(|rate| format!("{rate:>12.0}"));
    Ok(format!("{:<9} {k:>5} {r:>5} {at_once} {one_by_one} {single} {restored}", kernel.name()))
}

fn main() -> ExitCode {
    let symbol_bytes = match std::env::args().nth(1).map_or(Ok(1_400), |size| size.parse()) {
        Ok(size) => size,
        Err(_) => {
            eprintln!("error: the size of symbols is no number of bytes\nhint: fec 1400");
            return ExitCode::FAILURE;
        }
    };
    println!("symbols of {symbol_bytes} bytes, {:?}", ReedSolomon);
    println!("    k     r  encode MB/s  decode MB/s    decode ms memory MiB");
    for (k, percent) in SOURCE_SYMBOLS.iter().flat_map(|k| REPAIR_PERCENT.map(|percent| (*k, percent))) {
        match row(k, percent, symbol_bytes) {
            Ok(row) => println!("{row}"),
            Err(fault) => {
                eprintln!("error: {fault}\nhint: fec 1400");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("\nsymbols of {symbol_bytes} bytes, the code of NORM; MB/s");
    println!("kernel        k     r      at once   one by one       single       decode");
    for (kernel, symbols) in
        Kernel::available().iter().flat_map(|kernel| NORM_SYMBOLS.map(|sizes| (kernel, sizes)))
    {
        let row = norm_row(*kernel, symbols, symbol_bytes as usize).expect("symbols of the code");
        println!("{row}");
    }
    ExitCode::SUCCESS
}
