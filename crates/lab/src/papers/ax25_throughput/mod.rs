//! `paper ax25-throughput`: a published evaluation of connected-mode AX.25 with different TNCs.
//!
//! "Effective throughput of AX.25 protocol", B. Zieliński, Bull. Pol. Ac.: Tech. 61(3), 2013: a model in five
//! equations, and measured throughputs and windows of fifteen controllers and their firmware, connected by wire. The
//! text has no table of either. Its statements are compared with the model and with [simulated
//! controllers](longwire_sim::Controller): the firmware constants come from the statements about 1200 bit/s and predict
//! the rest.

mod calibrate;
mod claims;
mod fleet;
mod leeway;
mod misses;
mod page;
mod published;
mod simulated;
mod statements;
#[cfg(test)]
mod tests;
mod theory;

use super::{Page, Paper};
use crate::bench::Bench;
use crate::record::{FigureKind, Record};
use crate::report::{Assumption, Cell, Section, Tone};
use simulated::{Alternative, Simulated};

/// The evaluation.
pub const PAPER: Paper = Paper {
    name: "ax25-throughput",
    title: "Throughput of connected-mode AX.25: a published evaluation, reproduced",
    about: "Throughput of connected-mode AX.25 with different packet-radio controllers",
    citation: "B. Zieliński: Effective throughput of AX.25 protocol, Bull. Pol. Ac.: Tech. 61(3), 2013",
    play,
};

fn said(holds: bool) -> Cell {
    if holds { Cell::text("yes").toned(Tone::Good) } else { Cell::text("NO").toned(Tone::Bad) }
}

fn play(bench: &Bench<'_>) -> Page {
    let simulated = Simulated::play(bench);
    let alternatives = alternatives(&simulated, bench);
    Page {
        answer: answer(&simulated, bench.progress.left_out() == 0),
        runs: (simulated.runs(), simulated.runs(), "transfer"),
        sections: sections(&simulated),
        assumptions: assumptions(alternatives),
        claims: claims::claims(&simulated),
        records: records(&simulated),
        rows: simulated.rows(),
        ..Page::default()
    }
}

fn records(simulated: &Simulated) -> Vec<Record> {
    theory::records().into_iter().chain(page::records(simulated)).chain(simulated.records()).collect()
}

fn sections(simulated: &Simulated) -> Vec<Section> {
    let with_plots = |section: Section, plots: Vec<crate::report::Plot>| {
        plots.into_iter().fold(section, |section, plot| section.with(plot))
    };
    let machines = Section::new("Figures 4 to 6: controllers with their original firmware").with(
        "Published points are those given in the text for the largest window; the paper has no tables of its plots.",
    );
    let lengths = Section::new("Figures 7 to 9: frame length")
        .with(page::window_length_plot(simulated))
        .with(page::length_plot(simulated));
    vec![
        Section::new("Measurements and simulation")
            .with(
                "A file of 8 KB is sent from one host to another, or 64 KB where windows are counted. Firmware \
                 constants are the middle of the range allowed by the statements about 1200 bit/s (`calibrated`); \
                 everything else is `predicted`. Where a statement is about several controllers or firmware \
                 versions, each of ours must be within the bound. Next to each prediction stands its range over all \
                 other allowed constants, and next to each miss whether any of them would match. Misses are kept.",
            )
            .with(page::window_table(simulated)),
        with_plots(machines, page::machine_plots(simulated)),
        lengths,
        with_plots(
            Section::new("Figures 10 to 13: firmware versions").with("The other controller is a TNC7."),
            page::firmware_plots(simulated),
        ),
        with_plots(Section::new("Figures 14 and 15: windows"), page::histograms(simulated)),
        Section::new("The simulated controllers").with(MODEL).shown(page::firmware_table()).with(FIT)
            .with(page::fit_table()).with(page::machine_table(simulated)),
        Section::new("Equation 5: the serial lines").with(theory::serial_table()),
    ]
}

/// Description of the simulated controllers.
const MODEL: &str = "Data from the host arrives over the serial line in the memory of the controller and stays there \
                     until it is acknowledged. The processor builds frames from it one by one. After each turn from \
                     receiving to sending the firmware needs a fixed time; then it requests the channel, and sends \
                     the frames that are ready when it gets the channel. Windows smaller than k therefore occur \
                     naturally: when building a frame takes longer than sending one, and when the memory is full of \
                     unacknowledged data. The AX.25 engine is the one that nodes use.";

/// Description of how the constants were found.
const FIT: &str = "The memory limit is derived, not fitted: alternating windows of 3 and 5 result from space for \
                   eight frames; space for four would allow windows of 4 but never 3 and 5. Each statement about \
                   1200 bit/s is interpreted as a range for the simulated controllers, as the table shows. A pair of \
                   constants is allowed if it satisfies all ranges of its firmware; the search covers steps of 1000 \
                   cycles per octet up to 80,000 and of 250,000 cycles per turnaround up to 8 million. Statements of \
                   order restrict which constants of one firmware can be combined with which of another. The \
                   constants used are nearest to the mean of all consistent combinations. Statements about other \
                   rates are not used. No statement limits the cycles per octet of TF 2.1; there the search ends. \
                   `With all allowed constants` covers the fewest and the most cycles per turnaround for each number \
                   per octet.";

fn answer(simulated: &Simulated, is_whole: bool) -> String {
    let predicted = |kind: FigureKind| kind == FigureKind::Predicted;
    let throughputs: Vec<bool> = page::compared(simulated)
        .iter()
        .filter(|compared| predicted(compared.kind))
        .map(page::Compared::holds)
        .collect();
    let windows: Vec<bool> =
        page::seen(simulated).iter().filter(|seen| predicted(seen.kind)).map(|seen| seen.holds).collect();
    let statements: Vec<bool> = statements::statements(simulated)
        .iter()
        .filter(|statement| predicted(statement.kind))
        .map(|statement| statement.holds)
        .collect();
    let of = |all: &[bool]| format!("{} of {}", all.iter().filter(|holds| **holds).count(), all.len());
    let (reach, missed) = misses::within_reach(simulated);
    let reach = match is_whole {
        true => format!("{reach} would match with other allowed constants"),
        false => "other allowed constants were not tried".to_owned(),
    };
    format!(
        "Constants from the statements about 1200 bit/s predict {} other throughputs within 25 %; {} other windows and \
         {} other statements hold. Of {missed} missed figures, {reach}.",
        of(&throughputs),
        of(&windows),
        of(&statements)
    )
}

/// Returns the alternatives to the assumptions about controllers; empty with `thin` and after an early stop.
fn alternatives(simulated: &Simulated, bench: &Bench<'_>) -> Vec<Alternative> {
    let progress = bench.progress;
    if bench.thin {
        return Vec::new();
    }
    progress.expect(1);
    if progress.is_stopped() {
        progress.leave_out(1);
        return Vec::new();
    }
    let all = simulated::alternatives(simulated);
    progress.advance(1);
    all
}

fn assumptions(alternatives: Vec<Alternative>) -> Vec<Assumption> {
    let assumed = |text: &str, basis: &str, effect: Option<String>| Assumption {
        text: text.into(),
        basis: basis.into(),
        moves_result: effect.is_some(),
        effect,
    };
    let mut all = theory::assumptions();
    all.extend(alternatives.into_iter().map(|(text, basis, effect)| assumed(text, basis, Some(effect))));
    all.push(assumed(
        "Controllers use their highest serial rate where the paper gives none.",
        "Table 2",
        None,
    ));
    all
}
