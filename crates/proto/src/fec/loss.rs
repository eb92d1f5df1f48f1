//! How often a block fails, and how many repair symbols a loss takes.
//!
//! Symbols are lost independently, each with the same probability, and any k of them restore the block: the number of
//! lost symbols has a binomial distribution. Losses in bursts need more repair symbols, or symbols of several blocks in
//! turn. The results are the same bits on every machine.

/// Probability that a segment of `bytes` has at least one bit error, if each bit is wrong with the probability
/// `bit_error_rate`. `bytes` are all those whose damage loses the segment, headers and checksums of the layers below
/// included.
///
/// ```
/// use longwire_proto::fec::loss::symbol_loss;
/// assert_eq!(format!("{:.5}", symbol_loss(1e-6, 2_100)), "0.01666");
/// ```
///
/// # Panics
/// Panics if the rate is no probability.
pub fn symbol_loss(bit_error_rate: f64, bytes: u64) -> f64 {
    check("bit error rate", bit_error_rate);
    if bytes == 0 {
        return 0.0;
    }
    -libm::expm1(8.0 * bytes as f64 * libm::log1p(-bit_error_rate))
}

/// Probability that more than `repair_symbols` of all symbols of a block are lost, so that it cannot be decoded. Accurate
/// also where it is small; zero below 1e-300.
///
/// ```
/// use longwire_proto::fec::loss::decode_failure;
/// // One symbol in a hundred is lost: 64 of 4,160 symbols are enough for all but one block in a thousand.
/// assert!(decode_failure(4_096, 64, 0.01) < 1e-3);
/// // Small blocks need more in proportion: 1 of 65 fails one block in seven.
/// assert!(decode_failure(64, 1, 0.01) > 0.13);
/// ```
///
/// # Panics
/// Panics if `symbol_loss` is no probability.
pub fn decode_failure(source_symbols: u32, repair_symbols: u32, symbol_loss: f64) -> f64 {
    tails(source_symbols, repair_symbols, symbol_loss).1
}

/// Probability that at most `repair_symbols` of all symbols of a block are lost, so that it can be decoded. Accurate also
/// where it is small; where it is close to one, [`decode_failure`] says more.
///
/// # Panics
/// Panics if `symbol_loss` is no probability.
pub fn decode_success(source_symbols: u32, repair_symbols: u32, symbol_loss: f64) -> f64 {
    tails(source_symbols, repair_symbols, symbol_loss).0
}

/// Least number of repair symbols, at most `repair_max`, with which a block fails with a probability of at most
/// `failure_max`. `None` if more would be needed.
///
/// ```
/// use longwire_proto::fec::loss::least_repair;
/// assert_eq!(least_repair(4_096, 0.01, 1e-3, 1_024), Some(63));
/// assert_eq!(least_repair(4_096, 0.01, 1e-3, 62), None);
/// ```
///
/// # Panics
/// Panics if `symbol_loss` or `failure_max` is no probability.
pub fn least_repair(source_symbols: u32, symbol_loss: f64, failure_max: f64, repair_max: u32) -> Option<u32> {
    check("probability of failure", failure_max);
    let is_enough = |repair| decode_failure(source_symbols, repair, symbol_loss) <= failure_max;
    if is_enough(0) {
        return Some(0);
    }
    // `few` is never enough and `many` is: with a repair symbol more, the block fails only if it failed before.
    let (mut few, mut many) = (0, 1.min(repair_max));
    while !is_enough(many) {
        if many == repair_max {
            return None;
        }
        (few, many) = (many, many.saturating_mul(2).min(repair_max));
    }
    while many - few > 1 {
        let middle = few + (many - few) / 2;
        if is_enough(middle) { many = middle } else { few = middle }
    }
    Some(many)
}

fn check(name: &str, probability: f64) {
    assert!((0.0..=1.0).contains(&probability), "the {name} is no probability: {probability}");
}

/// Probabilities that at most, and that more than `repair` of `source + repair` symbols are lost.
///
/// The terms of the distribution are computed from the most probable one outwards, each from its neighbour, and their sum
/// makes them probabilities: no factorial, no logarithm, and all rounding errors are relative ones.
fn tails(source: u32, repair: u32, loss: f64) -> (f64, f64) {
    check("symbol loss", loss);
    let (all, repair) = (u64::from(source) + u64::from(repair), u64::from(repair));
    if source == 0 || loss == 0.0 {
        return (1.0, 0.0);
    }
    if loss == 1.0 {
        return (0.0, 1.0);
    }
    let mode = (((all + 1) as f64 * loss) as u64).min(all);
    let odds = loss / (1.0 - loss);
    let (mut success, mut failure) = (0.0, 0.0);
    let mut add = |lost, term| if lost <= repair { success += term } else { failure += term };
    add(mode, 1.0);
    let mut term = 1.0;
    for lost in mode + 1..=all {
        term *= (all - lost + 1) as f64 / lost as f64 * odds;
        if term < f64::MIN_POSITIVE {
            break;
        }
        add(lost, term);
    }
    term = 1.0;
    for lost in (0..mode).rev() {
        term *= (lost + 1) as f64 / (all - lost) as f64 / odds;
        if term < f64::MIN_POSITIVE {
            break;
        }
        add(lost, term);
    }
    let sum = success + failure;
    (success / sum, failure / sum)
}
