//! Every pattern of losses, what is refused, and samples of the code.

use super::loss::{decode_failure, decode_success, least_repair, symbol_loss};
use super::{
    BlockCode, BlockLayout, Decoder, Encoder, Lacking, LayoutFault, Progress, ReedSolomon, SYMBOL_BYTES_MAX,
    SYMBOLS_MAX, SymbolFault,
};
use crate::codec::crc::crc32c;
use crate::rng::Rng;
use bytes::Bytes;

const MEMORY: u64 = 64 << 20;

fn layout(source: u64, repair: u32, symbol_bytes: u32, last_bytes: u32) -> BlockLayout {
    let bytes = (source - 1) * u64::from(symbol_bytes) + u64::from(last_bytes);
    BlockLayout::new(bytes, symbol_bytes, repair).expect("a layout")
}

/// All symbols of a random block, by ID.
fn symbols(code: &'static dyn BlockCode, layout: BlockLayout, rng: &mut Rng) -> Vec<Bytes> {
    let mut block = vec![0; layout.block_bytes() as usize];
    rng.fill(&mut block);
    let mut encoder = Encoder::new(code, layout, MEMORY).expect("a block of the code");
    let mut all = Vec::new();
    for (id, source) in layout.sources(&Bytes::from(block)) {
        assert_eq!(encoder.encode(), Err(Lacking(layout.source_symbols() - id)));
        encoder.add(id, source.clone()).expect("a source symbol");
        all.push(source);
    }
    all.extend(encoder.encode().expect("all source symbols"));
    all
}

fn shuffle(ids: &mut [u32], rng: &mut Rng) {
    for i in (1..ids.len()).rev() {
        ids.swap(i, rng.below(i as u64 + 1) as usize);
    }
}

/// Adds these symbols, which are at least k or not, and compares what can be decoded with the block.
fn decode(code: &'static dyn BlockCode, layout: BlockLayout, all: &[Bytes], received: &[u32]) {
    let k = layout.source_symbols();
    let mut decoder = Decoder::new(code, layout, MEMORY).expect("a block of the code");
    for (count, id) in received.iter().enumerate() {
        let progress = decoder.add(*id, all[*id as usize].clone()).expect("a new symbol");
        match progress {
            Progress::Lacking(more) => assert_eq!(more, k - count as u32 - 1),
            Progress::Decodable => assert!(count as u32 + 1 >= k && decoder.missing().next().is_some()),
            Progress::Complete => assert_eq!(decoder.missing().next(), None),
        }
    }
    let missing: Vec<u32> = (0..k).filter(|id| !received.contains(id)).collect();
    assert_eq!(decoder.missing().collect::<Vec<_>>(), missing);
    if (received.len() as u32) < k {
        let lacking = k - received.len() as u32;
        assert_eq!(decoder.decode(), Err(Lacking(lacking)));
        assert_eq!(decoder.progress(), Progress::Lacking(lacking), "a failure changes nothing");
        assert_eq!(decoder.sources().count() as u32, k - missing.len() as u32);
        return;
    }
    let expected: Vec<_> = missing.iter().map(|id| (*id, all[*id as usize].clone())).collect();
    assert!(decoder.decode().expect("k symbols") == expected, "other bytes than were sent");
    assert_eq!((decoder.progress(), decoder.decode()), (Progress::Complete, Ok(Vec::new())));
    assert!(decoder.sources().map(|(_, bytes)| bytes).eq(&all[..k as usize]));
}

#[test]
fn each_subset_of_the_symbols_of_small_blocks_decodes_if_it_has_enough() {
    let mut rng = Rng::new(1);
    for (source, repair) in [(1, 0), (1, 1), (1, 4), (2, 1), (3, 3), (4, 2), (5, 4), (6, 1), (2, 6)] {
        for (symbol_bytes, last_bytes) in [(2, 1), (6, 6), (64, 3), (66, 65), (130, 128)] {
            let layout = layout(source, repair, symbol_bytes, last_bytes);
            let all = symbols(&ReedSolomon, layout, &mut rng);
            for subset in 0..1u32 << all.len() {
                let mut received: Vec<u32> =
                    (0..layout.symbols()).filter(|id| subset >> id & 1 == 1).collect();
                shuffle(&mut received, &mut rng);
                decode(&ReedSolomon, layout, &all, &received);
            }
        }
    }
}

/// Sizes on both sides of a power of two, and of the limit up to which erasures are located directly.
#[test]
fn random_losses_of_large_blocks_decode_up_to_the_number_of_repair_symbols() {
    let mut rng = Rng::new(2);
    let sizes =
        [(16, 16), (64, 13), (240, 16), (241, 16), (512, 103), (1_024, 1_024), (4_096, 205), (3_000, 3_500)];
    for (source, repair) in sizes {
        let layout = layout(source, repair, 34, 1 + rng.below(34) as u32);
        let all = symbols(&ReedSolomon, layout, &mut rng);
        for lost in [1, repair / 2, repair, repair + 1, layout.symbols() - 1] {
            let mut ids: Vec<u32> = (0..layout.symbols()).collect();
            shuffle(&mut ids, &mut rng);
            decode(&ReedSolomon, layout, &all, &ids[lost as usize..]);
        }
        // The hardest case: nothing but the end, and nothing but the beginning.
        let (first, k) = (layout.symbols() - layout.source_symbols(), layout.source_symbols());
        decode(&ReedSolomon, layout, &all, &(first..layout.symbols()).collect::<Vec<_>>());
        decode(&ReedSolomon, layout, &all, &(0..k).collect::<Vec<_>>());
    }
}

#[test]
fn symbols_that_do_not_belong_to_the_block_are_refused_and_change_nothing() {
    let layout = layout(3, 2, 8, 5);
    let all = symbols(&ReedSolomon, layout, &mut Rng::new(3));
    let mut encoder = Encoder::new(&ReedSolomon, layout, MEMORY).unwrap();
    let mut decoder = Decoder::new(&ReedSolomon, layout, MEMORY).unwrap();
    let bytes = |length: usize| Bytes::from(vec![9; length]);
    let size = |bytes, expected| Err(SymbolFault::Size { bytes, expected });
    assert_eq!(encoder.add(3, all[3].clone()), Err(SymbolFault::Id { id: 3, ids: 3 }));
    assert_eq!(decoder.add(5, bytes(8)), Err(SymbolFault::Id { id: 5, ids: 5 }));
    assert_eq!(decoder.add(u32::MAX, bytes(8)), Err(SymbolFault::Id { id: u32::MAX, ids: 5 }));
    for (id, wrong, expected) in [(0, 7, 8), (1, 10, 8), (2, 8, 5), (2, 4, 5), (2, 0, 5)] {
        assert_eq!(encoder.add(id, bytes(wrong)), size(wrong, expected));
        assert_eq!(decoder.add(id, bytes(wrong)), size(wrong, expected));
    }
    assert_eq!(decoder.add(3, bytes(5)), size(5, 8), "repair symbols are full");
    assert_eq!((encoder.progress(), decoder.progress()), (Progress::Lacking(3), Progress::Lacking(3)));

    assert_eq!(encoder.add(1, all[1].clone()), Ok(Progress::Lacking(2)));
    assert_eq!(encoder.add(1, bytes(8)), Err(SymbolFault::Duplicate(1)));
    assert_eq!(decoder.add(4, all[4].clone()), Ok(Progress::Lacking(2)));
    assert_eq!(decoder.add(4, bytes(8)), Err(SymbolFault::Duplicate(4)));
    assert_eq!(decoder.add(2, all[2].clone()), Ok(Progress::Lacking(1)));
    assert_eq!(decoder.add(2, bytes(5)), Err(SymbolFault::Duplicate(2)));
    assert_eq!(decoder.add(3, all[3].clone()), Ok(Progress::Decodable));
    assert_eq!(decoder.decode(), Ok(vec![(0, all[0].clone()), (1, all[1].clone())]));
    assert_eq!(decoder.add(0, bytes(8)), Err(SymbolFault::Duplicate(0)), "restored symbols are present");
    assert_eq!(decoder.add(3, bytes(8)), Ok(Progress::Complete), "repair symbols are no longer needed");
    assert!(decoder.sources().map(|(_, bytes)| bytes).eq(&all[..3]));
}

#[test]
fn layouts_beyond_the_limits_are_refused() {
    assert_eq!(BlockLayout::new(0, 2, 0), Err(LayoutFault::Empty));
    for size in [0, 1, 1_401, SYMBOL_BYTES_MAX + 2, u32::MAX] {
        assert_eq!(BlockLayout::new(9, size, 0), Err(LayoutFault::SymbolBytes(size)));
    }
    let symbols = |source, repair| LayoutFault::Symbols { source, repair };
    assert_eq!(BlockLayout::new(u64::MAX, 2, 0), Err(symbols(1 << 63, 0)));
    assert_eq!(BlockLayout::new(8, 2, u32::MAX), Err(symbols(4, u32::MAX)));
    assert_eq!(BlockLayout::new(2 * 65_536, 2, 1), Err(symbols(65_536, 1)));
    let most = BlockLayout::new(2 * 65_536 - 1, 2, 0).unwrap();
    assert_eq!((most.symbols(), most.bytes_of(65_535), most.bytes_of(65_536)), (SYMBOLS_MAX, Some(1), None));

    // Repair symbols count as a power of two.
    let create = |layout: BlockLayout, bytes_max| {
        let encoder = Encoder::new(&ReedSolomon, layout, bytes_max).map(|_| ());
        (encoder, Decoder::new(&ReedSolomon, layout, bytes_max).map(|_| ()))
    };
    assert_eq!(create(layout(60_000, 4_096, 2, 2), MEMORY), (Ok(()), Ok(())));
    let refused = Err(symbols(60_000, 4_097));
    assert_eq!(create(layout(60_000, 4_097, 2, 2), MEMORY), (refused, refused));

    // 4,096 places of 64 octets are the work area of both, beside 4,096 symbols.
    let (layout, bytes) = (layout(3_840, 256, 50, 9), 4_096 * (50 + 96 + 64));
    assert_eq!(create(layout, bytes + 1), (Ok(()), Ok(())));
    let decoder = Err(LayoutFault::Memory { bytes, bytes_max: bytes - 1 });
    assert_eq!(create(layout, bytes - 1), (Ok(()), decoder), "encoding takes 3,840 places");
    let encoder = Err(LayoutFault::Memory { bytes: bytes - 256 * 64, bytes_max: 0 });
    assert_eq!(create(layout, 0).0, encoder);
}

#[test]
fn a_block_without_repair_symbols_is_complete_or_nothing() {
    let layout = layout(3, 0, 4, 1);
    let all = symbols(&ReedSolomon, layout, &mut Rng::new(6));
    assert_eq!(all.iter().map(Bytes::len).collect::<Vec<_>>(), [4, 4, 1]);
    decode(&ReedSolomon, layout, &all, &[2, 0]);
    decode(&ReedSolomon, layout, &all, &[2, 0, 1]);
}

#[test]
fn a_code_has_the_name_of_settings_and_reports() {
    assert_eq!(ReedSolomon.name(), "reed-solomon");
}

/// Peers of other versions have to compute the same symbols.
#[test]
fn repair_symbols_are_frozen() {
    let sum = |source, repair, symbol_bytes, last_bytes| {
        let layout = layout(source, repair, symbol_bytes, last_bytes);
        let all = symbols(&ReedSolomon, layout, &mut Rng::new(7));
        crc32c(&all[source as usize..].concat())
    };
    let sums = [
        sum(1, 1, 2, 2),
        sum(3, 2, 6, 5),
        sum(5, 8, 64, 64),
        sum(64, 13, 1_400, 700),
        sum(300, 20, 98, 1),
        sum(4_096, 205, 130, 130),
    ];
    assert_eq!(
        sums.map(|sum| format!("{sum:08x}")),
        ["11d02056", "182c58b2", "06d9295d", "4013ae69", "8eea7e57", "e1420b6e"]
    );
}

#[test]
fn the_first_repair_symbols_do_not_depend_on_how_many_there_are_within_a_power_of_two() {
    let repair = |count| symbols(&ReedSolomon, layout(40, count, 10, 7), &mut Rng::new(8)).split_off(40);
    let most = repair(32);
    for count in 17..32 {
        assert_eq!(repair(count), most[..count as usize], "{count} repair symbols");
    }
    assert_ne!(repair(16), most[..16]);
}

fn is_close(computed: f64, exact: f64, tolerance: f64) -> bool {
    (computed - exact).abs() <= tolerance * exact
}

/// Values computed with 60 decimal digits.
#[test]
fn the_probability_of_failure_is_exact_from_small_blocks_to_large_ones() {
    let exact = [
        (1, 0, 0.25, 0.75, 0.25),
        (16, 4, 0.1, 9.568_255_047_155_366e-1, 4.317_449_528_446_339e-2),
        (64, 13, 0.05, 9.999_741_515_002_444e-1, 2.584_849_975_565_533e-5),
        (512, 26, 0.03, 9.926_069_480_793_418e-1, 7.393_051_920_658_227e-3),
        (4_096, 205, 0.04, 9.944_615_752_067_464e-1, 5.538_424_793_253_65e-3),
        (4_096, 820, 0.15, 9.994_715_058_292_957e-1, 5.284_941_707_042_807e-4),
        (4_096, 205, 0.001, 1.0, 6.754_565_851_207_41e-263),
        (4_096, 41, 0.05, 1.506_534_921_450_711e-46, 1.0),
        (60_000, 5_000, 0.07, 9.999_999_999_956_389e-1, 4.361_079_872_905_173e-12),
        (64, 64, 0.999, 2.248_773_861_187_209e-155, 1.0),
    ];
    for (source, repair, loss, success, failure) in exact {
        let computed = (decode_success(source, repair, loss), decode_failure(source, repair, loss));
        let holds = is_close(computed.0, success, 1e-11) && is_close(computed.1, failure, 1e-11);
        assert!(holds, "{source} + {repair} at {loss}: {computed:?}");
    }
    assert_eq!((decode_failure(9, 0, 0.0), decode_success(9, 0, 0.0)), (0.0, 1.0));
    assert_eq!((decode_failure(9, 999, 1.0), decode_success(9, 999, 1.0)), (1.0, 0.0));
    assert_eq!(decode_failure(4_096, 1_000, 1e-9), 0.0);
}

#[test]
fn the_probability_of_failure_is_the_share_of_all_patterns_of_losses() {
    for (source, repair, loss) in [(1, 1, 0.5), (3, 2, 0.2), (7, 3, 0.7), (10, 4, 0.01)] {
        let symbols: u32 = source + repair;
        let weight = |lost: u32| {
            (0..symbols).fold(1.0, |share, _| share * (1.0 - loss))
                * libm::pow(loss / (1.0 - loss), f64::from(lost))
        };
        let failed = (0..1u32 << symbols).map(u32::count_ones).filter(|lost| *lost > repair);
        let share: f64 = failed.map(weight).sum();
        let computed = decode_failure(source, repair, loss);
        assert!(is_close(computed, share, 1e-12), "{source} + {repair}: {computed} for {share}");
    }
}

#[test]
fn the_least_number_of_repair_symbols_is_enough_and_one_less_is_not() {
    let known = [
        (16, 0.016_66, 1e-3, 3),
        (64, 0.01, 1e-6, 7),
        (512, 0.05, 1e-4, 49),
        (4_096, 0.01, 1e-3, 63),
        (4_096, 0.016_7, 1e-6, 113),
        (4_096, 0.2, 1e-9, 1_247),
        (3_840, 0.15, 1e-3, 767),
    ];
    for (source, loss, failure, least) in known {
        assert_eq!(least_repair(source, loss, failure, 4_096), Some(least), "{source} at {loss}");
        assert_eq!(least_repair(source, loss, failure, least), Some(least));
        assert_eq!(least_repair(source, loss, failure, least - 1), None);
        assert!(decode_failure(source, least, loss) <= failure);
        assert!(decode_failure(source, least - 1, loss) > failure);
    }
    assert_eq!(least_repair(9, 0.0, 0.0, 0), Some(0));
    assert_eq!(least_repair(9, 0.5, 1.0, 0), Some(0));
    assert_eq!(least_repair(9, 1.0, 0.5, u32::MAX >> 12), None);
    assert_eq!(least_repair(9, 0.1, 0.1, 0), None);
}

#[test]
fn the_loss_of_symbols_follows_from_bit_errors() {
    assert_eq!((symbol_loss(0.0, 1_400), symbol_loss(1e-5, 0), symbol_loss(1.0, 1)), (0.0, 0.0, 1.0));
    assert!(is_close(symbol_loss(0.5, 1), 255.0 / 256.0, 1e-14));
    assert!(is_close(symbol_loss(1e-15, 125), 1e-12, 1e-9), "rates far below the resolution of 1");
    assert!(is_close(symbol_loss(1e-5, 1_500), 0.113_080, 1e-5));
}

#[test]
#[should_panic(expected = "the symbol loss is no probability: NaN")]
fn a_loss_that_is_no_number_is_an_error_of_the_caller() {
    decode_failure(4, 2, f64::NAN);
}
