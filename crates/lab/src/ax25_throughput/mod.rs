//! `paper ax25-throughput`: a published evaluation of what TNCs make of connected AX.25.
//!
//! "Effective throughput of AX.25 protocol", B. Zieliński, Bull. Pol. Ac.: Tech. 61(3), 2013: a model in five equations,
//! and throughputs and windows of fifteen controllers and their firmwares, wired together. The text has no table of either;
//! what it states in words is here, beside the model and beside [simulated controllers](longwire_sim::Controller): the
//! constants of firmwares are from what is said of 1200 bit/s, and predict the rest.

mod bench;
mod calibrate;
mod fleet;
mod leeway;
mod misses;
mod page;
mod published;
mod statements;
#[cfg(test)]
mod tests;
mod theory;
mod transfer;

use crate::finding::Finding;
use crate::model::ax25::WINDOW_MAX;
use crate::progress::Progress;
use crate::record::{Experiment, FigureKind, Record};
use crate::report::{Assumption, Cell, PageBlock, Report, Section, Table, Tone, figure};
use bench::{Alternative, Bench};
use theory::{RATES_BPS, theory};

/// How it is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Runs of each transfer, if not 16; a quarter of it for long files.
    pub runs: Option<u32>,
    /// The seed, if not 1.
    pub seed: Option<u64>,
    /// Threads.
    pub threads: usize,
    /// Without other constants and other assumptions, which have seeds of their own: a look at many seeds, whose figures say little.
    pub thin: bool,
}

fn said(holds: bool) -> Cell {
    if holds { Cell::text("yes").toned(Tone::Good) } else { Cell::text("NO").toned(Tone::Bad) }
}

/// The page, the figures and what a terminal shows.
pub fn reproduce(options: &Options, progress: &Progress) -> Finding {
    let bench = Bench::play(options, progress);
    let seed = options.seed.unwrap_or(1);
    let alternatives = alternatives(&bench, options, progress);
    let early_end = progress.early_end().map(|words| format!(" {words}"));
    let lead = lead(&bench, early_end.is_none()) + &early_end.unwrap_or_default();
    Finding {
        summary: summary(&lead, &bench),
        experiment: Experiment {
            experiment: "ax25-throughput".into(),
            seed,
            records: records(&bench),
            runs: bench.rows(),
        },
        report: Report {
            title: "The throughput of connected AX.25: a published evaluation, reproduced".into(),
            lead,
            command: format!("longwire paper ax25-throughput --runs {} --seed {seed}", bench.runs()),
            facts: vec![
                (
                    "published in".into(),
                    "B. Zieliński: Effective throughput of AX.25 protocol, Bull. Pol. Ac.: Tech. 61(3), 2013"
                        .into(),
                ),
                ("runs a transfer".into(), bench.runs().to_string()),
                ("seed".into(), seed.to_string()),
            ],
            sections: sections(&bench),
            assumptions: assumptions(alternatives),
        },
        traces: Vec::new(),
    }
}

fn records(bench: &Bench) -> Vec<Record> {
    theory::records().into_iter().chain(page::records(bench)).chain(bench.records()).collect()
}

fn sections(bench: &Bench) -> Vec<Section> {
    let with_plots = |section: Section, plots: Vec<crate::report::Plot>| {
        plots.into_iter().fold(section, |section, plot| section.with(plot))
    };
    let machines = Section::new("Figures 4 to 6: controllers as they are delivered").with(
        "Published points are those that the text states for the largest window; it gives no table of its plots.",
    );
    let lengths = Section::new("Figures 7 to 9: the length of frames")
        .with(page::window_length_plot(bench))
        .with(page::length_plot(bench));
    vec![
        Section::new("What was measured, and what is simulated")
            .with(
                "A file of 8 KB goes from one host to another; 64 KB where windows are counted. Constants of firmwares are from the \
                 middle of what is allowed by what is said of 1200 bit/s (`calibrated`); all else is `predicted`. Where several \
                 controllers or firmwares are meant, each of ours has to be within the bound. Beside what is predicted stands what it \
                 comes to with all other constants that are allowed, and beside a miss whether any of them would hit. Misses stay.",
            )
            .with(page::measured_table(bench))
            .with(page::window_table(bench))
            .with(page::statement_table(bench))
            .with(misses::misses_table(bench)),
        with_plots(machines, page::machine_plots(bench)),
        lengths,
        with_plots(
            Section::new("Figures 10 to 13: firmwares exchanged").with("The other controller is a TNC7."),
            page::firmware_plots(bench),
        ),
        with_plots(Section::new("Figures 14 and 15: windows"), page::histograms(bench)),
        Section::new("The simulated controllers").with(MODEL).with(page::firmware_table()).with(FIT)
            .with(page::fit_table()).with(page::machine_table(bench)),
        Section::new("What the paper says of theory").with(theory::theory_table()).with(theory::claims_table()),
        Section::new("Equation 5: the serial lines").with(theory::serial_table()),
    ]
}

/// How controllers work here.
const MODEL: &str = "What the host sends comes over the serial line into the controller's memory and stays there until it is \
     acknowledged. The processor makes frames of it, one after the other. For each turn from hearing to sending the firmware takes \
     its time; then the channel is asked for, and what is made when it is won goes out. So a window smaller than k comes about by \
     itself: where making a frame takes longer than sending one, and where the memory is full of what is not acknowledged yet. The \
     AX.25 is the engine that flies.";

/// How the constants were found.
const FIT: &str = "The cap is read off, not fitted: windows of 3 and 5 in turn are what comes of space for eight frames; space for four \
     would give windows of 4 as well, but never 3 and 5. Each statement on 1200 bit/s is a range for the simulated controllers, by the \
     reading of its words that stands in the table. Two constants are allowed if all ranges of their firmware are met; looked at are \
     all in steps of 1000 cycles an octet up to 80,000 and of 250,000 cycles a turn up to 8 million. What is told as an order says \
     which allowed constants of one firmware go with which of another. The constants used are nearest to the mean of all combinations \
     that keep the orders. No statement on another rate is looked at. Nothing that is said ends the cycles an octet of TF 2.1: the \
     search does. `With all allowed constants` is over the fewest and the most cycles a turn for each number an octet.";

/// What a terminal shows.
fn summary(lead: &str, bench: &Bench) -> Vec<PageBlock> {
    let tables = [
        theory::theory_table(),
        page::measured_table(bench),
        page::window_table(bench),
        page::statement_table(bench),
        misses::misses_table(bench),
        page::firmware_table(),
    ];
    let with_caption =
        |table: Table| [PageBlock::Text(format!("{}:", table.caption)), PageBlock::Table(table)];
    let lead = [PageBlock::Text(lead.to_owned())];
    lead.into_iter().chain(tables.into_iter().flat_map(with_caption)).collect()
}

fn lead(bench: &Bench, is_whole: bool) -> String {
    let predicted = |kind: FigureKind| kind == FigureKind::Predicted;
    let throughputs: Vec<bool> = page::compared(bench)
        .iter()
        .filter(|compared| predicted(compared.kind))
        .map(page::Compared::holds)
        .collect();
    let windows: Vec<bool> =
        page::seen(bench).iter().filter(|seen| predicted(seen.kind)).map(|seen| seen.holds).collect();
    let statements: Vec<bool> = statements::statements(bench)
        .iter()
        .filter(|statement| predicted(statement.kind))
        .map(|statement| statement.holds)
        .collect();
    let of = |all: &[bool]| format!("{} of {}", all.iter().filter(|holds| **holds).count(), all.len());
    let largest = RATES_BPS.map(|rate| figure(theory().throughput_bps(rate, WINDOW_MAX).round()));
    let (reach, missed) = misses::within_reach(bench);
    let reach = match is_whole {
        true => format!("{reach} would come out with other allowed constants"),
        false => "it was not tried how many would come out with other allowed constants".to_owned(),
    };
    format!(
        "At the largest window the model allows {} bit/s at 1200, 9600 and 38,400 bit/s. Simulated controllers have two constants and one \
         cap a firmware. The cap is read off; the constants are from the middle of what the statements on 1200 bit/s allow. They predict \
         {} other throughputs within 25 %; of other windows {} hold, and of other statements {}. Of the {missed} throughputs and \
         windows that miss, {reach}.",
        largest.join(", "),
        of(&throughputs),
        of(&windows),
        of(&statements)
    )
}

/// The assumptions about controllers; none where only a part is looked at, or where it is to end early.
fn alternatives(bench: &Bench, options: &Options, progress: &Progress) -> Vec<Alternative> {
    if options.thin {
        return Vec::new();
    }
    progress.expect(1);
    if progress.is_stopped() {
        progress.leave_out(1);
        return Vec::new();
    }
    let all = bench::alternatives(bench);
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
        "Controllers use their highest serial rate where the text names none.",
        "Table 2",
        None,
    ));
    all
}
