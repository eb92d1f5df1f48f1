//! Reasons for the misses, in a sentence or two with their numbers.

use super::calibrate::Allowed;
use super::fleet::{Case, FAST, FASTEST_BPS, Role, SLOW_BPS, constants_of, find, program};
use super::leeway::Range;
use super::page::{bounds_of, compared, seen};
use super::simulated::Simulated;
use super::theory::theory;
use crate::format::figure;
use crate::model::ax25::WINDOW_MAX;
use crate::record::FigureKind;

/// Coarse grid over all constants: thousands of cycles per octet, millions per turnaround.
pub(super) fn coarse() -> Vec<(f64, f64)> {
    let turns = || (0..=16).map(|step| f64::from(step) / 2.0);
    (1..=20).flat_map(|step| turns().map(move |turn| (4.0 * f64::from(step), turn))).collect()
}

/// Time to build a full frame, seconds.
fn making_s(case: &Case, octet_kilocycles: f64) -> f64 {
    let megacycles = octet_kilocycles * f64::from(case.information_bytes) / 1000.0;
    megacycles / find(case.machine).megacycles_per_s()
}

/// Compares the highest possible throughput of the slowest processor with the lower bound.
pub(super) fn slowest_maker(cases: &[Case], least_bps: f64) -> String {
    let making = |case: &Case| making_s(case, program(case.program).octet_kilocycles);
    let slowest = cases.iter().max_by(|left, right| making(left).total_cmp(&making(right)));
    let Some(case) = slowest else { return String::new() };
    let bits = 8.0 * f64::from(case.information_bytes);
    let mut octets: Vec<f64> =
        Allowed::of(constants_of(case.program)).points().map(|point| point.0).collect();
    octets.sort_by(f64::total_cmp);
    format!(
        "{} needs {:.2} s to build a frame, so it cannot send more than {:.0} bit/s at any channel rate. To come \
         within the bound, {:.0} bit/s, it would need less than {:.1} thousand cycles per octet; the statements \
         about 1200 bit/s allow {} {} to {}, and {} are used.",
        case.machine,
        making(case),
        bits / making(case),
        least_bps,
        octets_for(case, bits / least_bps),
        constants_of(case.program),
        figure(octets[0]),
        figure(octets[octets.len() - 1]),
        figure(program(case.program).octet_kilocycles)
    )
}

/// Cycles per octet with which building a frame takes this number of seconds, thousands.
fn octets_for(case: &Case, seconds: f64) -> f64 {
    1000.0 * seconds * find(case.machine).megacycles_per_s() / f64::from(case.information_bytes)
}

pub(super) fn why_window(simulated: &Simulated, case: &Case, open: Option<Range>) -> String {
    let octet = program(case.program).octet_kilocycles;
    if open.is_some_and(|open| !open.hits) {
        return never_larger(case, octet, open.map_or(0.0, |open| open.to));
    }
    let hits = FAST.map(|machine| {
        let at = Case::exchanged(Role::Sender, case.program, machine);
        bounds_of(&at).map(|bounds| simulated.leeway().octets_that_hit(&at, bounds)).unwrap_or_default()
    });
    let words = FAST.iter().zip(&hits).map(|(machine, hits)| {
        let clock = figure(find(machine).clock_mhz.round());
        match (hits.first(), hits.last()) {
            (Some(from), Some(to)) => {
                format!("with some of {} to {} at {clock} MHz", figure(*from), figure(*to))
            }
            _ => format!("with no constants at {clock} MHz"),
        }
    });
    let apart = hits[0].iter().all(|octet| !hits[1].contains(octet));
    let (from, to) = simulated.leeway().octets(case.program);
    format!(
        "The statements about 1200 bit/s allow {} to {} thousand cycles per octet; {} are used. The published window \
         results {}{}.",
        figure(from),
        figure(to),
        figure(octet),
        words.collect::<Vec<String>>().join(" and "),
        if apart { ", so with no constants at both" } else { "" }
    )
}

/// Reason for a window that cannot grow with the clock.
fn never_larger(case: &Case, octet: f64, most: f64) -> String {
    let channel_s = |rate_bps: u64| {
        let model = theory();
        8.0 * f64::from(model.information_bytes) / model.throughput_bps(rate_bps as f64, 1)
    };
    let slower = Case::exchanged(Role::Sender, case.program, "TNC2D");
    format!(
        "At {} MHz and 1200 bit/s, building a frame takes {:.1} s and sending it with its acknowledgement {:.1} s, \
         so no frame waits for another, as the throughput independent of the window shows. Here building takes {:.1} \
         s and sending {:.1} s, so {}. For 1200 bit/s the paper gives 1 or 2; with all allowed constants the mean is \
         at most {most:.1}.",
        figure((10.0 * find(slower.machine).clock_mhz).round() / 10.0),
        making_s(&slower, octet),
        channel_s(SLOW_BPS),
        making_s(case, octet),
        channel_s(case.rate_bps),
        match making_s(case, octet) > channel_s(case.rate_bps) {
            true => "there is still no second frame to send",
            false => "a second frame waits sometimes, and a third hardly ever",
        },
    )
}

pub(super) fn why_statement(simulated: &Simulated, words: &str) -> String {
    let ours = |machine, rate_bps| simulated.throughput(Case::delivered(machine, rate_bps));
    if words.starts_with("Senders at 9600: TF 2.1") {
        let ahead = FAST.map(|machine| {
            let at = |name| simulated.throughput(Case::exchanged(Role::Sender, name, machine));
            format!("{:.0} %", 100.0 * (at("TF 2.3") / at("TF 2.1") - 1.0))
        });
        return format!(
            "TF 2.3 is ahead by {} at 10 MHz and by {} at 20: the statements about 1200 bit/s allow it {} thousand \
             cycles per octet, and TF 2.1 {}; at 9600 bit/s building frames takes most of the time of both.",
            ahead[0],
            ahead[1],
            figure(program("TF 2.3").octet_kilocycles),
            figure(program("TF 2.1").octet_kilocycles)
        );
    }
    if words.starts_with("Surprisingly, TF 2.7") {
        return format!(
            "In the simulation a faster clock always shortens the turnaround: for none of {} pairs of constants (up \
             to 80 thousand cycles per octet and 8 million per turnaround) is the slower clock ahead with the same \
             TNC7 as peer. With a TNC7 as peer at 10 MHz and a TNC3 as peer at 20 MHz it is: see the assumptions.",
            coarse().len()
        );
    }
    if words.starts_with("TNC3 and TNC7 perform worse") {
        let at_six = |machine| simulated.throughput(Case::delivered(machine, SLOW_BPS).with_window(6));
        return format!(
            "Without the P bit each window waits for T2 ({:.1} s), but TNC2 waits longer for its frames: each takes \
             {:.1} s to build and {:.1} s to send. At k = 6 TNC3 and TNC7 have {:.0} and {:.0} bit/s, TNC2 {:.0}. \
             For the effect of a longer T2 see the assumptions.",
            Case::t2_s(SLOW_BPS as f64, 256),
            making_s(&Case::delivered("TNC2", SLOW_BPS), program("MFJ").octet_kilocycles),
            8.0 * f64::from(theory().information_bytes + theory().header_bytes) * 63.0
                / 62.0
                / SLOW_BPS as f64,
            at_six("TNC3S"),
            at_six("TNC7multi"),
            at_six("TNC2")
        );
    }
    if words.starts_with("At 9600 the slowest") || words.starts_with("At 38,400") {
        let rate_bps = if words.starts_with("At 9600") { 9600 } else { FASTEST_BPS };
        let window_s = |bps: f64| f64::from(WINDOW_MAX) * 2048.0 / bps;
        return format!(
            "TNC7 and DLC7 are both ARM7, TNC7 with {:.2} times the clock: {:.0} and {:.0} bit/s. From the published \
             11,000 to 10,000 at 38,400 bit/s a window of seven takes {:.2} s more; a turnaround takes {:.3} s here. \
             The paper does not state other differences of the TNC7.",
            find("TNC7multi").clock_mhz / find("DLC7").clock_mhz,
            ours("TNC7multi", rate_bps),
            ours("DLC7", rate_bps),
            window_s(10_000.0) - window_s(11_000.0),
            program("TF of TNC3").turn_megacycles / find("TNC7multi").megacycles_per_s()
        );
    }
    if words.starts_with("TNC3 and TNC7 use the full window") {
        let fills_s = f64::from(WINDOW_MAX) * 2560.0 / f64::from(find("TNC7multi").serial_bps);
        return format!(
            "Seven frames take {fills_s:.2} s on the serial line. T103 (0.3 s in each direction) and a slot leave \
             more than that between windows at any rate, and a station that does not set P keeps sending while its \
             peer waits for T2. The paper does not give T103: see the assumptions."
        );
    }
    if words.starts_with("MFJ and Spirit achieve similar") {
        let at = |name, machine| simulated.throughput(Case::exchanged(Role::Sender, name, machine));
        let shares = ["MFJ", "Spirit"].map(|name| {
            let [slow, quick] = FAST.map(|machine| at(name, machine));
            let case = Case::exchanged(Role::Sender, name, FAST[0]);
            let making = making_s(&case, program(name).octet_kilocycles);
            format!("{name} builds a frame in {making:.2} s and gains {:.0} %", 100.0 * (quick / slow - 1.0))
        });
        return format!(
            "At 10 MHz building a frame takes longer than the 0.23 s of sending it, so a faster clock still helps: \
             {}.",
            shares.join(", ")
        );
    }
    if words.starts_with("The fastest receivers") {
        let turns = ["MFJ", "TF 2.1"].map(|name| {
            let turns = || Allowed::of(name).points().map(|point| point.1);
            let (from, to) = (turns().fold(f64::MAX, f64::min), turns().fold(0.0, f64::max));
            format!("{name} {from} to {to} ({} used)", program(name).turn_megacycles)
        });
        return format!(
            "Receivers differ only in their turnaround, and no statement about 1200 bit/s says whether MFJ or TF 2.1 \
             is faster; the allowed ranges are, in millions of cycles, {}.",
            turns.join("; ")
        );
    }
    String::new()
}

/// Returns the number of missed predictions that other allowed constants reproduce, and the number of missed
/// predictions.
pub(super) fn within_reach(simulated: &Simulated) -> (usize, usize) {
    let throughputs = compared(simulated).into_iter().filter(|compared| !compared.holds());
    let throughputs: Vec<Option<Range>> = throughputs.map(|compared| compared.open).collect();
    let windows =
        seen(simulated).into_iter().filter(|seen| !seen.holds && seen.kind == FigureKind::Predicted);
    let all: Vec<Option<Range>> = throughputs.into_iter().chain(windows.map(|seen| seen.open)).collect();
    (all.iter().filter(|open| open.is_some_and(|open| open.hits)).count(), all.len())
}
