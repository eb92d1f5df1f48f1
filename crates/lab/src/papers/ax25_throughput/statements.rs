//! Statements of the text about controllers and firmware, and whether the simulation satisfies them.
//!
//! The interpretation of each statement stands next to it, because the text has few numbers.

use super::fleet::{Case, EXCHANGED, FAST, FAST_BPS, FASTEST_BPS, Role, SLOW, SLOW_BPS};
use super::simulated::{BY_LENGTH, LENGTHS, Simulated};
use crate::format::figure;
use crate::record::FigureKind;

/// Statement and its result.
pub(super) struct Statement {
    pub(super) words: &'static str,
    /// Condition under which it holds.
    pub(super) meaning: &'static str,
    pub(super) kind: FigureKind,
    pub(super) holds: bool,
    /// Simulated values, as text.
    pub(super) detail: String,
}

/// Tolerance of `about the same`, as a share.
pub(super) const ALIKE: f64 = 0.05;
/// Tolerance of `similar` and `not significantly`, as a share.
pub(super) const SIMILAR: f64 = 0.25;
/// Upper bound of `no significant improvement`, as a share.
pub(super) const FLAT: f64 = 0.10;
/// Lower bound of `grows rapidly`, as a ratio.
pub(super) const GROWTH: f64 = 1.25;
/// Upper bound of `never`, as a share.
pub(super) const RARE: f64 = 0.01;
/// Lower bound of `grow` and `fall` for a mean window, frames.
const FALL_FRAMES: f64 = 0.5;
/// Noise of a mean window, frames.
const NOISE_FRAMES: f64 = 0.1;
/// Lower bound of `much more`, as a ratio.
pub(super) const MUCH: f64 = 2.0;
const TAPR: [&str; 2] = ["MFJ", "Spirit"];
const QUICK: [&str; 3] = ["TNC3S", "TNC7multi", "DLC7"];

/// Results used by the statements.
struct Look<'a>(&'a Simulated);

impl Look<'_> {
    fn sends(&self, program: &'static str, machine: &'static str, window: u8) -> f64 {
        self.0.throughput(Case::exchanged(Role::Sender, program, machine).with_window(window))
    }

    fn receives(&self, program: &'static str, machine: &'static str) -> f64 {
        self.0.throughput(Case::exchanged(Role::Recipient, program, machine))
    }

    fn both(&self, machine: &'static str, rate_bps: u64, window: u8) -> f64 {
        self.0.throughput(Case::delivered(machine, rate_bps).with_window(window))
    }

    fn gain(&self, program: &'static str, machine: &'static str, from: u8) -> f64 {
        self.sends(program, machine, 7) / self.sends(program, machine, from)
    }

    fn length(&self, machine: &'static str, rate_bps: u64) -> [f64; LENGTHS.len()] {
        let case = Case::delivered(machine, rate_bps);
        LENGTHS.map(|bytes| self.0.window(case.with_information(bytes)))
    }
}

fn near(left: f64, right: f64, share: f64) -> bool {
    left.max(right) / left.min(right) - 1.0 <= share
}

fn words(names: &[&str], value: impl Fn(usize) -> f64) -> String {
    let each = names.iter().enumerate().map(|(at, name)| format!("{name} {}", figure(value(at).round())));
    each.collect::<Vec<String>>().join(", ")
}

fn frames(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.1}")).collect::<Vec<String>>().join(", ")
}

/// Returns true if mean windows fall by at least this number of frames from the first to the last, and no step rises by
/// more than the noise.
fn falls(values: &[f64], by_frames: f64) -> bool {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
    first - last >= by_frames && values.windows(2).all(|pair| pair[1] <= pair[0] + NOISE_FRAMES)
}

/// Returns all statements.
pub(super) fn statements(simulated: &Simulated) -> Vec<Statement> {
    let look = Look(simulated);
    let mut all = slower(&look);
    all.extend(faster(&look));
    all.extend(machines(&look));
    all
}

fn statement(
    kind: FigureKind,
    words: &'static str,
    meaning: &'static str,
    holds: bool,
    detail: String,
) -> Statement {
    Statement { words, meaning, kind, holds, detail }
}

/// Firmware at 1200 bit/s: Figures 10 and 11.
fn slower(look: &Look<'_>) -> Vec<Statement> {
    let said =
        |words, meaning, holds, detail| statement(FigureKind::Calibrated, words, meaning, holds, detail);
    let names = EXCHANGED.map(|program| program.name);
    let senders = |machine| words(&names, |at| look.sends(names[at], machine, 7));
    let recipients = |machine| words(&names, |at| look.receives(names[at], machine));
    let [slow, quick] = SLOW;
    let spread = |value: &dyn Fn(&'static str, &'static str) -> f64| {
        let all: Vec<f64> = SLOW.iter().flat_map(|machine| names.map(|name| value(name, machine))).collect();
        all.iter().copied().fold(0.0, f64::max) / all.iter().copied().fold(f64::MAX, f64::min)
    };
    let (of_senders, of_recipients) = (
        spread(&|name, machine| look.sends(name, machine, 7)),
        spread(&|name, machine| look.receives(name, machine)),
    );
    let gains = |name: &'static str, from: u8| SLOW.map(|machine| look.gain(name, machine, from));
    let beyond_five = |name, machine| -> f64 {
        look.0.shares(Case::exchanged(Role::Sender, name, machine))[5..].iter().sum()
    };
    let order = ["TF 2.1", "TF 2.3", "TF 2.7"].map(|name| look.sends(name, slow, 7));
    let tapr = TAPR.map(|name| look.sends(name, slow, 7));
    vec![
        said(
            "Senders at 1200: MFJ and Spirit are very close to each other.",
            "within 5 % at k = 7, at both clocks",
            SLOW.iter()
                .all(|machine| near(look.sends("MFJ", machine, 7), look.sends("Spirit", machine, 7), ALIKE)),
            format!("2.5 MHz: {}; 4.9 MHz: {}", senders(slow), senders(quick)),
        ),
        said(
            "Throughput rises rapidly from k = 1 to 4 and not significantly beyond.",
            "by a quarter and more up to 4 (theory: by a third), by less than 10 % from 4 to 7",
            TAPR.iter().all(|name| {
                SLOW.iter().all(|machine| {
                    look.sends(name, machine, 4) / look.sends(name, machine, 1) >= GROWTH
                        && look.gain(name, machine, 4) < 1.0 + FLAT
                })
            }),
            format!("from 4 to 7: MFJ {:.2} and {:.2} times", gains("MFJ", 4)[0], gains("MFJ", 4)[1]),
        ),
        said(
            "MFJ and Spirit never send more than 5 frames of full length in a row.",
            "less than 1 % of windows are of 6 or 7, at both clocks",
            TAPR.iter().all(|name| SLOW.iter().all(|machine| beyond_five(name, machine) < RARE)),
            format!(
                "MFJ {:.0} % and {:.0} %, Spirit {:.0} % and {:.0} %",
                100.0 * beyond_five("MFJ", slow),
                100.0 * beyond_five("MFJ", quick),
                100.0 * beyond_five("Spirit", slow),
                100.0 * beyond_five("Spirit", quick)
            ),
        ),
        said(
            "TF 2.1 is the least effective sender, and independent of the window.",
            "the lowest at both clocks; k = 7 within 5 % of k = 1",
            SLOW.iter().all(|machine| {
                names[..2]
                    .iter()
                    .chain(&names[3..])
                    .all(|name| look.sends("TF 2.1", machine, 7) < look.sends(name, machine, 7))
            }) && gains("TF 2.1", 1).iter().all(|gain| *gain <= 1.0 + ALIKE),
            format!("from 1 to 7: {:.2} and {:.2} times", gains("TF 2.1", 1)[0], gains("TF 2.1", 1)[1]),
        ),
        said(
            "TF 2.3 is similar at the slower clock; at the faster clock it is similar to TF 2.7.",
            "k = 7 within 25 % of k = 1 at 2.5 MHz; within 25 % of TF 2.7 at 4.9",
            gains("TF 2.3", 1)[0] <= 1.0 + SIMILAR
                && near(look.sends("TF 2.3", quick, 7), look.sends("TF 2.7", quick, 7), SIMILAR),
            format!(
                "from 1 to 7 at 2.5 MHz: {:.2} times (independent, so within 5 %: {})",
                gains("TF 2.3", 1)[0],
                if gains("TF 2.3", 1)[0] <= 1.0 + ALIKE { "yes" } else { "no" }
            ),
        ),
        said(
            "At the slow clock the order is MFJ and Spirit, TF 2.7, TF 2.3, TF 2.1.",
            "in that order at k = 7",
            order[0] < order[1] && order[1] < order[2] && tapr.iter().all(|value| *value > order[2]),
            senders(slow),
        ),
        said(
            "At 4.9 MHz and k = 7 TF 2.7 achieves the same as MFJ.",
            "within 5 %",
            near(look.sends("TF 2.7", quick, 7), look.sends("MFJ", quick, 7), ALIKE),
            senders(quick),
        ),
        said(
            "Receivers at 1200: Spirit is the fastest, TF 2.7 the slowest.",
            "at both clocks, the others between them",
            SLOW.iter().all(|machine| {
                is_first_and_last(&names, "Spirit", "TF 2.7", |name| look.receives(name, machine))
            }),
            format!("2.5 MHz: {}; 4.9 MHz: {}", recipients(slow), recipients(quick)),
        ),
        said(
            "The sender matters much more than the receiver.",
            "the lead of the best over the worst is at least twice as large among senders",
            of_senders - 1.0 >= MUCH * (of_recipients - 1.0),
            format!(
                "ahead by {:.0} % among senders, by {:.0} % among receivers",
                100.0 * (of_senders - 1.0),
                100.0 * (of_recipients - 1.0)
            ),
        ),
    ]
}

fn is_first_and_last(
    names: &[&'static str],
    first: &str,
    last: &str,
    value: impl Fn(&'static str) -> f64,
) -> bool {
    let of = |wanted: &str| {
        let name = names.iter().find(|name| **name == wanted).expect("it is one of them");
        value(name)
    };
    names.iter().all(|name| *name == first || value(name) < of(first))
        && names.iter().all(|name| *name == last || value(name) > of(last))
}

/// Firmware at 9600 bit/s: Figures 12 and 13.
fn faster(look: &Look<'_>) -> Vec<Statement> {
    let said =
        |words, meaning, holds, detail| statement(FigureKind::Predicted, words, meaning, holds, detail);
    let names = EXCHANGED.map(|program| program.name);
    let [slow, quick] = FAST;
    let senders = |machine| words(&names, |at| look.sends(names[at], machine, 7));
    let both_clocks = || format!("10 MHz: {}; 20 MHz: {}", senders(slow), senders(quick));
    let at = |name, machine| look.sends(name, machine, 7);
    let lower = |name, others: &[&'static str]| {
        FAST.iter().all(|machine| others.iter().all(|other| at(name, machine) < at(other, machine)))
    };
    let recipients: Vec<(&str, &str, f64)> = FAST
        .iter()
        .flat_map(|machine| names.map(|name| (name, *machine, look.receives(name, machine))))
        .collect();
    let mut ranked = recipients.clone();
    ranked.sort_by(|left, right| right.2.total_cmp(&left.2));
    let first_two: Vec<(&str, &str)> =
        ranked[..2].iter().map(|(name, machine, _)| (*name, *machine)).collect();
    let received = |machine: &str| {
        let mine = recipients.iter().filter(|(_, other, _)| *other == machine);
        mine.map(|(name, _, value)| format!("{name} {}", figure(value.round())))
            .collect::<Vec<String>>()
            .join(", ")
    };
    let tf27 = FAST.map(|machine| look.receives("TF 2.7", machine));
    let best_other = names[..4].iter().map(|name| at(name, quick)).fold(0.0, f64::max);
    vec![
        said(
            "Senders at 9600: TF 2.1 is the slowest at either clock, TF 2.3 a little better.",
            "in that order, at both clocks, and TF 2.3 within 25 % of TF 2.1",
            lower("TF 2.1", &["MFJ", "Spirit", "TF 2.3", "TF 2.7"])
                && lower("TF 2.3", &["TF 2.7"])
                && FAST.iter().all(|machine| near(at("TF 2.1", machine), at("TF 2.3", machine), SIMILAR)),
            both_clocks(),
        ),
        said(
            "TF 2.1 and TF 2.3 are faster at the faster clock.",
            "higher at 20 MHz than at 10 MHz",
            ["TF 2.1", "TF 2.3"].iter().all(|name| at(name, quick) > at(name, slow)),
            both_clocks(),
        ),
        said(
            "TF 2.1 and TF 2.3 are slower than Spirit and MFJ.",
            "at the same clock",
            ["TF 2.1", "TF 2.3"].iter().all(|name| lower(name, &TAPR)),
            both_clocks(),
        ),
        said(
            "MFJ and Spirit achieve similar efficiency regardless of the clock.",
            "20 MHz within 25 % of 10 MHz",
            TAPR.iter().all(|name| near(at(name, slow), at(name, quick), SIMILAR)),
            both_clocks(),
        ),
        said(
            "From k = 4 on MFJ and Spirit do not visibly improve.",
            "by less than 10 % from 4 to 7",
            TAPR.iter().all(|name| FAST.iter().all(|machine| look.gain(name, machine, 4) < 1.0 + FLAT)),
            TAPR.map(|name| {
                format!("{name} {:.2} and {:.2} times", look.gain(name, slow, 4), look.gain(name, quick, 4))
            })
            .join(", "),
        ),
        said(
            "TF 2.7 achieves speeds similar to MFJ and Spirit.",
            "within 25 % of both at 10 MHz",
            TAPR.iter().all(|name| near(at("TF 2.7", slow), at(name, slow), SIMILAR)),
            senders(slow),
        ),
        said(
            "At 20 MHz TF 2.7 outperforms all others, though not significantly.",
            "above each of them, and by less than 25 %",
            at("TF 2.7", quick) > best_other && near(at("TF 2.7", quick), best_other, SIMILAR),
            senders(quick),
        ),
        said(
            "Receivers at 9600: all are visibly below theory.",
            "by more than 5 % of the model at k = 7",
            recipients.iter().all(|(.., value)| {
                *value < 0.95 * super::theory::theory().throughput_bps(FAST_BPS as f64, 7)
            }),
            format!("10 MHz: {}; 20 MHz: {}", received(slow), received(quick)),
        ),
        said(
            "The fastest receivers are TF 2.1 and Spirit, both at 20 MHz.",
            "the first two of all ten",
            first_two.contains(&("TF 2.1", quick)) && first_two.contains(&("Spirit", quick)),
            first_two
                .iter()
                .map(|(name, machine)| format!("{name} in {machine}"))
                .collect::<Vec<String>>()
                .join(", "),
        ),
        said(
            "Surprisingly, TF 2.7 receives better at the slower clock.",
            "higher at 10 MHz than at 20 MHz, with the same TNC7 as peer",
            tf27[0] > tf27[1],
            format!("{} at 10 MHz, {} at 20", figure(tf27[0].round()), figure(tf27[1].round())),
        ),
    ]
}

/// Controllers with original firmware: Figures 4 to 9.
fn machines(look: &Look<'_>) -> Vec<Statement> {
    let said =
        |words, meaning, holds, detail| statement(FigureKind::Predicted, words, meaning, holds, detail);
    let at = |machine, rate_bps| look.both(machine, rate_bps, 7);
    let flat = |machine| look.both(machine, SLOW_BPS, 7) / look.both(machine, SLOW_BPS, 4);
    let others = ["TNC2", "TNC2D", "KPC-9612+"];
    let theory_bps = super::theory::theory().throughput_bps(SLOW_BPS as f64, 7);
    let jump = |machine, rate_bps| {
        let step = |to: u8| look.both(machine, rate_bps, to) - look.both(machine, rate_bps, to - 1);
        (step(6), step(7))
    };
    let jumps = |rate_bps| {
        QUICK
            .map(|machine| jump(machine, rate_bps))
            .map(|(six, seven)| format!("{seven:+.0} after {six:+.0}"))
            .join(", ")
    };
    let fast_names =
        ["TNC2D", "TNC2H", "Spirit-2 Std.", "Spirit-2 H.S.", "KPC-9612+", "TNC3S", "TNC7multi", "DLC7"];
    let ends = |first: &str, last: &str, rate_bps| {
        is_first_and_last(&fast_names, first, last, |name| at(name, rate_bps))
    };
    let [of_2d, of_2h, of_kpc] = BY_LENGTH.map(|(machine, rate_bps)| look.length(machine, rate_bps));
    let kpc = look.0.shares(Case::delivered("KPC-9612+", FAST_BPS));
    let ceilings = ["Spirit-2 Std.", "Spirit-2 H.S.", "KPC-9612+"];
    let rates = |machine| {
        super::simulated::RATES_OF_TNC3.map(|rate_bps| look.0.window(Case::delivered(machine, rate_bps)))
    };
    let falls_late = |windows: [f64; 5]| {
        windows[..3].iter().all(|window| *window > 6.5)
            && windows[3..].iter().all(|window| *window < windows[2] - 0.1)
    };
    vec![
        said(
            "At 1200, TNC2 and TNC2D cannot make use of more than about 4 frames; KPC-9612+ behaves similarly.",
            "less than 10 % more at k = 7 than at 4",
            others.iter().all(|machine| flat(machine) < 1.0 + FLAT),
            format!("{} times", others.map(|machine| format!("{machine} {:.2}", flat(machine))).join(", ")),
        ),
        said(
            "TNC3 and TNC7 perform worse than the others for k < 7.",
            "below TNC2, TNC2D and KPC-9612+ at every k from 1 to 6",
            (1..7).all(|k| {
                QUICK[..2].iter().all(|quick| {
                    others.iter().all(|other| look.both(quick, SLOW_BPS, k) < look.both(other, SLOW_BPS, k))
                })
            }),
            format!(
                "k = 4: {}",
                words(&["TNC3S", "TNC7multi", "TNC2", "TNC2D", "KPC-9612+"], |index| look.both(
                    ["TNC3S", "TNC7multi", "TNC2", "TNC2D", "KPC-9612+"][index],
                    SLOW_BPS,
                    4
                ))
            ),
        ),
        said(
            "At k = 7, TNC3, TNC7 and DLC7 are above the others, close to theory.",
            "above each, and within 5 % of the model",
            QUICK.iter().all(|quick| {
                others.iter().all(|other| at(quick, SLOW_BPS) > at(other, SLOW_BPS))
                    && near(at(quick, SLOW_BPS), theory_bps, ALIKE)
            }),
            format!("{}; theory {theory_bps:.0}", words(&QUICK, |index| at(QUICK[index], SLOW_BPS))),
        ),
        said(
            "Between k = 6 and 7 there is a jump for TNC3, TNC7 and DLC7, at 1200 and at 9600.",
            "the step is over twice the one before it",
            [SLOW_BPS, FAST_BPS].iter().all(|rate| {
                QUICK.iter().all(|machine| jump(machine, *rate).1 > 2.0 * jump(machine, *rate).0)
            }),
            format!("1200: {}; 9600: {}", jumps(SLOW_BPS), jumps(FAST_BPS)),
        ),
        said(
            "At 9600 the slowest is TNC2D, the fastest DLC7.",
            "of the controllers here",
            ends("DLC7", "TNC2D", FAST_BPS),
            words(&fast_names, |index| at(fast_names[index], FAST_BPS)),
        ),
        said(
            "At 38,400 Spirit-2 and KPC-9612+ are limited alike; TNC3 is above them, then TNC7, then DLC7.",
            "within 25 % of each other; in that order",
            ceilings.iter().all(|machine| at(machine, FASTEST_BPS) < at("TNC3S", FASTEST_BPS))
                && ceilings
                    .iter()
                    .all(|machine| near(at(machine, FASTEST_BPS), at(ceilings[0], FASTEST_BPS), SIMILAR))
                && at("TNC3S", FASTEST_BPS) < at("TNC7multi", FASTEST_BPS)
                && at("TNC7multi", FASTEST_BPS) < at("DLC7", FASTEST_BPS),
            words(&fast_names[2..], |index| at(fast_names[index + 2], FASTEST_BPS)),
        ),
        said(
            "Windows of TNC2D at 1200 and TNC2H at 9600 grow when frames are shorter.",
            "the mean falls by half a frame or more from 32 octets to 256",
            falls(&of_2d, FALL_FRAMES) && falls(&of_2h, FALL_FRAMES),
            format!("TNC2D {}; TNC2H {}", frames(&of_2d), frames(&of_2h)),
        ),
        said(
            "KPC-9612+: windows of 7 dominate at 256 octets; smaller ones occur from 100 octets on.",
            "over half are 7 at 256; the mean falls by a tenth of a frame or more from 100 octets to 256",
            kpc[6] > 0.5 && falls(&of_kpc[2..], NOISE_FRAMES),
            format!("{:.0} % are 7; {}", 100.0 * kpc[6], frames(&of_kpc)),
        ),
        said(
            "TNC3 and TNC7 use the full window, and a smaller one only from 150 kbit/s on.",
            "over 6.5 frames up to 38.4 kbit/s, and fewer at 153.6 and 614.4",
            ["TNC3S", "TNC7multi"].iter().all(|machine| falls_late(rates(machine))),
            format!("TNC3 {}; TNC7 {}", frames(&rates("TNC3S")), frames(&rates("TNC7multi"))),
        ),
        said(
            "Processor speed matters more at higher rates.",
            "the best over the worst grows from 1200 to 9600 to 38,400",
            {
                let ratio = |rate_bps| at("DLC7", rate_bps) / at("TNC2D", rate_bps);
                ratio(SLOW_BPS) < ratio(FAST_BPS) && ratio(FAST_BPS) < ratio(FASTEST_BPS)
            },
            format!(
                "{:.2}, {:.2} and {:.2} times",
                at("DLC7", SLOW_BPS) / at("TNC2D", SLOW_BPS),
                at("DLC7", FAST_BPS) / at("TNC2D", FAST_BPS),
                at("DLC7", FASTEST_BPS) / at("TNC2D", FASTEST_BPS)
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_nearness_are_what_they_say() {
        assert!(near(100.0, 104.0, ALIKE) && near(104.0, 100.0, ALIKE) && !near(100.0, 106.0, ALIKE));
        for (windows, fall) in [
            (&[7.0, 6.5, 6.5][..], true),
            (&[7.0, 7.1, 6.5], true),
            (&[6.0, 6.5], false),
            (&[7.0, 7.0, 7.0], false),
            (&[7.0, 6.6], false),
            (&[7.0, 6.0, 6.2], false),
        ] {
            assert_eq!(falls(windows, FALL_FRAMES), fall, "{windows:?}");
        }
        let value = |name: &'static str| name.len() as f64;
        assert!(is_first_and_last(&["ccc", "a", "bb"], "ccc", "a", value));
        assert!(!is_first_and_last(&["ccc", "a", "ddd"], "ccc", "a", value));
    }
}
