//! Upper bound on the payload of a line that alternates between a good and a bad state (Gilbert 1960, Elliott 1963).
//!
//! No sender is better than one that knows the state of the line before each packet, and the fate of the packet at once. In
//! each state it sends a packet of some length or waits for a bit. With the best choice in each state its gain is the payload
//! in bits per bit of time in the long run, and its lead is the difference in value between a time in the good state and one
//! in the bad state, in bits of payload. Both follow from the choices (policy iteration, R. A. Howard, Dynamic Programming
//! and Markov Processes, 1960). For the best choices,
//!
//! ```text
//!   payload of a choice  <=  gain x bits that it takes + value of the state before - value of the state after
//! ```
//!
//! holds for every choice in either state. Summed over a transfer, whatever its sender does, a file of `s` bits takes at
//! least `(s - lead) / gain` bits of time on average, and the lead can be gained again with each outage, after which the line
//! may be better than before.

use longwire_sim::GilbertElliott;

/// Maximum rounds until no choice is better; each round finds a better pair of choices, and two or three are usual.
const ROUNDS_MAX: usize = 32;

/// Upper bound on the payload that a line with bursts of errors carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLimit {
    /// Payload bits per bit of time in the long run.
    pub gain: f64,
    /// Difference in value between the better state and the other, payload bits.
    pub lead_bits: f64,
    /// Payload of the packet in the good state, bytes.
    pub payload_bytes: u32,
}

impl BurstLimit {
    /// Lower bound on the mean time of a file with this number of outages, bits.
    pub fn bits_least(&self, bytes: u64, outages: usize) -> f64 {
        ((8.0 * bytes as f64 - (outages as f64 + 1.0) * self.lead_bits) / self.gain).max(0.0)
    }
}

/// Choice in a state: payload bits that it brings on average, bits that it takes, and the probability that the line is
/// in the other state afterwards.
#[derive(Clone, Copy)]
struct Choice {
    brings: f64,
    takes: f64,
    leaves: f64,
    payload_bytes: u32,
}

/// Computes the maximum for packets of up to `payload_max_bytes` bytes with `header_bytes` more each.
///
/// # Panics
/// Panics if both states let nothing through.
pub fn ceiling(model: &GilbertElliott, header_bytes: u32, payload_max_bytes: u32) -> BurstLimit {
    let choices = choices(model, header_bytes, payload_max_bytes);
    if model.good_bits_mean <= 1.0 && model.bad_bits_mean <= 1.0 {
        return in_turns(&choices);
    }
    // Initially the longest packet in the good state and nothing in the bad state.
    let mut chosen = [choices[0][choices[0].len() - 1], choices[1][0]];
    let mut best = worth(chosen);
    for _ in 0..ROUNDS_MAX {
        let (gain, lead) = best;
        // Leaving the good state costs the lead, and leaving the bad state gains it.
        let better = [(0, -lead), (1, lead)].map(|(state, other): (usize, f64)| {
            let value = |choice: &Choice| choice.brings - gain * choice.takes + other * choice.leaves;
            let most = choices[state].iter().max_by(|a, b| value(a).total_cmp(&value(b)));
            *most.expect("a sender can always wait")
        });
        let found = worth(better);
        if found.0 <= gain {
            break;
        }
        (chosen, best) = (better, found);
    }
    let (gain, lead) = best;
    assert!(gain > 0.0, "nothing ever arrives on this line: {model:?}");
    BurstLimit { gain, lead_bits: lead.abs(), payload_bytes: chosen[0].payload_bytes.max(1) }
}

/// Computes the maximum for alternating good and bad bits. No packet of whole bytes leaves the state in which it
/// starts, so both states can be kept for ever, and the best packet of the better state gives the maximum: reaching it
/// costs time and gains nothing.
fn in_turns(choices: &[Vec<Choice>; 2]) -> BurstLimit {
    let rate = |choice: &&Choice| choice.brings / choice.takes;
    let best = choices.iter().flatten().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let best = best.expect("a sender can always wait");
    assert!(best.brings > 0.0, "nothing ever arrives where each second bit is so bad");
    BurstLimit { gain: rate(&best), lead_bits: 0.0, payload_bytes: best.payload_bytes }
}

/// Gain and lead of a sender with these choices in the good and the bad state. For both, the payload equals the cost at
/// this gain: `brings = gain takes + lead leaves` in the good state, `brings = gain takes - lead leaves` in the bad
/// state.
fn worth([good, bad]: [Choice; 2]) -> (f64, f64) {
    let gain = (good.brings * bad.leaves + good.leaves * bad.brings)
        / (good.takes * bad.leaves + good.leaves * bad.takes);
    (gain, (gain * bad.takes - bad.brings) / bad.leaves)
}

/// All choices in the good state and in the bad state: first waiting for a bit, then packets, the shortest first.
fn choices(model: &GilbertElliott, header_bytes: u32, payload_max_bytes: u32) -> [Vec<Choice>; 2] {
    let leave = [1.0 / model.good_bits_mean, 1.0 / model.bad_bits_mean];
    let right = [1.0 - model.good_ber, 1.0 - model.bad_ber];
    // One bit: it is correct, and then the state may change.
    let bit = [
        [right[0] * (1.0 - leave[0]), right[0] * leave[0]],
        [right[1] * leave[1], right[1] * (1.0 - leave[1])],
    ];
    let byte = squared(squared(squared(bit)));
    // Loss of memory of the state over one stretch and over two; this form keeps very rare changes from being rounded
    // away.
    let over_both = |one: f64, other: f64| one + (1.0 - one) * other;
    let twice = |one: f64| over_both(one, one);
    let forgotten_a_byte = twice(twice(twice(leave[0] + leave[1])));
    let share_of_other = [leave[0], leave[1]].map(|leave_own| leave_own / (leave[0] + leave[1]));
    let mut found = leave.map(|leaves| vec![Choice { brings: 0.0, takes: 1.0, leaves, payload_bytes: 0 }]);
    let (mut arrives, mut forgotten) = ([1.0, 1.0], 0.0);
    for length in 1..=header_bytes + payload_max_bytes {
        arrives = [0, 1].map(|state: usize| byte[state][0] * arrives[0] + byte[state][1] * arrives[1]);
        forgotten = over_both(forgotten, forgotten_a_byte);
        let Some(payload) = length.checked_sub(header_bytes).filter(|payload| *payload > 0) else { continue };
        for state in [0, 1] {
            found[state].push(Choice {
                brings: 8.0 * f64::from(payload) * arrives[state],
                takes: 8.0 * f64::from(length),
                leaves: share_of_other[state] * forgotten,
                payload_bytes: payload,
            });
        }
    }
    found
}

fn squared(m: [[f64; 2]; 2]) -> [[f64; 2]; 2] {
    let entry = |row: usize, column: usize| m[row][0] * m[0][column] + m[row][1] * m[1][column];
    [[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::rng::Rng;

    const HEADER: u32 = 28;

    fn model(good_bits_mean: f64, bad_bits_mean: f64, good_ber: f64, bad_ber: f64) -> GilbertElliott {
        GilbertElliott { good_bits_mean, bad_bits_mean, good_ber, bad_ber }
    }

    /// Simulates the packets of a file bit by bit over such a line, each repeated until it is correct; returns bits of
    /// time.
    fn sent(model: &GilbertElliott, bytes: u32, payload: u32, waits: bool, rng: &mut Rng) -> f64 {
        let (leave, wrong) =
            ([1.0 / model.good_bits_mean, 1.0 / model.bad_bits_mean], [model.good_ber, model.bad_ber]);
        let mut state = usize::from(rng.chance(leave[0] / (leave[0] + leave[1])));
        let (mut left, mut took) = (bytes, 0u64);
        while left > 0 {
            if waits && state == 1 {
                state = usize::from(!rng.chance(leave[1]));
                took += 1;
                continue;
            }
            let payload = payload.min(left);
            let mut intact = true;
            for _ in 0..8 * (payload + HEADER) {
                intact &= !rng.chance(wrong[state]);
                if rng.chance(leave[state]) {
                    state = 1 - state;
                }
                took += 1;
            }
            left -= if intact { payload } else { 0 };
        }
        took as f64
    }

    #[test]
    fn one_state_twice_is_no_bursts_at_all() {
        for ber in [0.0, 1e-6, 1e-4] {
            let same = ceiling(&model(5_000.0, 300.0, ber, ber), HEADER, 1472);
            let payloads = (1..=1472u32).map(|payload| {
                let bits = 8.0 * f64::from(payload + HEADER);
                8.0 * f64::from(payload) / bits * libm::exp(bits * libm::log1p(-ber))
            });
            let expected = payloads.fold(0.0, f64::max);
            assert!((same.gain / expected - 1.0).abs() < 1e-9, "{same:?}, expected {expected}");
            assert!(same.lead_bits < 1e-3, "{same:?}");
        }
    }

    #[test]
    fn a_line_that_is_bad_half_of_the_time_and_then_dead_carries_half() {
        let half = ceiling(&model(1e7, 1e7, 0.0, 0.5), HEADER, 1472);
        assert!((half.gain / (0.5 * 1472.0 / 1500.0) - 1.0).abs() < 0.01, "{half:?}");
        // The lead is the payload that would have been carried while waiting for the good state.
        assert!((half.lead_bits / (half.gain * 1e7) - 1.0).abs() < 0.01, "{half:?}");
        // The names of the states are interchangeable.
        let turned = ceiling(&model(1e7, 1e7, 0.5, 0.0), HEADER, 1472);
        assert!((turned.gain / half.gain - 1.0).abs() < 1e-3, "{turned:?}");
    }

    #[test]
    fn changes_that_hardly_ever_come_are_not_rounded_away() {
        let rare = ceiling(&model(1e18, 1e18, 0.0, 0.5), HEADER, 1472);
        assert!((rare.gain / (0.5 * 1472.0 / 1500.0) - 1.0).abs() < 0.01, "{rare:?}");
        assert_eq!(rare.bits_least(1_000_000, 0), 0.0, "all of a run may be good");
    }

    #[test]
    fn good_and_bad_bits_in_turns_are_a_line_with_half_of_them_bad() {
        let ber = 1e-4;
        let turns = ceiling(&model(1.0, 1.0, 0.0, ber), HEADER, 1472);
        let rate = |payload: u32| {
            let bits = 8.0 * f64::from(payload + HEADER);
            8.0 * f64::from(payload) / bits * libm::exp(bits / 2.0 * libm::log1p(-ber))
        };
        let expected = (1..=1472).map(rate).fold(0.0, f64::max);
        assert!((turns.gain / expected - 1.0).abs() < 1e-9, "{turns:?}, expected {expected}");
        assert!((200..300).contains(&turns.payload_bytes) && turns.lead_bits == 0.0, "{turns:?}");
        // With slightly longer states the usual computation gives nearly the same result.
        for (good, bad) in [(1.0, 1.001), (1.001, 1.0)] {
            let near = ceiling(&model(good, bad, 0.0, ber), HEADER, 1472);
            assert!((near.gain / turns.gain - 1.0).abs() < 1e-3, "{near:?}, {turns:?}");
        }
        // Hardly anything gets through, but the limit is still finite.
        let dead = ceiling(&model(1.0, 1.0, 0.0, 0.5), HEADER, 1472);
        assert!(dead.gain > 0.0 && dead.bits_least(1, 0).is_finite(), "{dead:?}");
        assert!(ceiling(&model(1.0, 1.0, 0.5, 0.5), 28, 1472).gain > 0.0);
    }

    #[test]
    fn no_sender_is_faster_on_average_and_the_best_comes_near() {
        const RUNS: u32 = 60;
        const BYTES: u32 = 5_000;
        let mut rng = Rng::new(1);
        for model in [
            model(200_000.0, 500.0, 0.0, 0.3),
            model(20_000.0, 5_000.0, 0.0, 0.1),
            model(3_000.0, 3_000.0, 1e-5, 0.01),
            model(5_000.0, 5_000.0, 1e-5, 5e-4),
            model(1.0, 1.0, 0.0, 5e-3),
        ] {
            let found = ceiling(&model, HEADER, 1472);
            let least = found.bits_least(BYTES.into(), 0);
            let mut fastest = f64::INFINITY;
            for payload in [found.payload_bytes, found.payload_bytes / 3 + 1, 2 * found.payload_bytes] {
                for waits in [true, false] {
                    let runs: Vec<f64> =
                        (0..RUNS).map(|_| sent(&model, BYTES, payload, waits, &mut rng)).collect();
                    let summary = crate::stats::Summary::of(&runs);
                    let (mean, noise) = (summary.mean, 2.0 * summary.ci95.expect("many runs"));
                    assert!(mean + noise > least, "{model:?} {payload}: {mean} bits, but {least}");
                    fastest = fastest.min(mean - noise);
                }
            }
            assert!(least > 0.7 * fastest, "{model:?}: {least} is far from {fastest}");
        }
    }
}
