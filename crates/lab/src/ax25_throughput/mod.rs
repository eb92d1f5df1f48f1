//! `paper ax25-throughput`: a published evaluation of what TNCs make of connected AX.25.
//!
//! "Effective throughput of AX.25 protocol", B. Zieliński, Bull. Pol. Ac.: Tech. 61(3), 2013: a model in five equations,
//! and throughputs and windows of fifteen controllers and five firmwares, wired together. The text has no table of either;
//! what it states in words is here. Its statements on theory stand beside the model, its measurements beside what theory
//! allows; the controllers themselves are not simulated, and each of their rows says so.

use crate::finding::Finding;
use crate::model::ax25::{Csma, Duplex, Model, WINDOW_MAX};
use crate::record::{Experiment, Kind, Params, Record};
use crate::report::{
    Assumption, Axis, Block, Cell, Column, Plot, PlotSeries, Point, Report, Section, Table, Tone, figure,
};

/// The rates on the wire between the controllers, bit/s.
const RATES_BPS: [f64; 3] = [1200.0, 9600.0, 38_400.0];
/// How near `about 1000 bit/s` has to come.
const ABOUT: f64 = 0.05;
/// T2 where it is shown, seconds: the paper names none.
const T2_S: f64 = 1.0;

/// What the paper says of theory: rate and throughput (bit/s) at the largest window, in which words and where.
const THEORY: [(f64, f64, &str, &str); 3] = [
    (1200.0, 1000.0, "about 1000 bps", "section 3.2, slower configuration"),
    (9600.0, 5900.0, "about 5.9 kbps", "section 3.1, Fig. 5"),
    (9600.0, 6000.0, "about 6000 bps", "section 3.2, faster configuration"),
];

/// A throughput that was measured.
struct Measured {
    rate_bps: f64,
    who: &'static str,
    role: &'static str,
    /// From and to, bit/s.
    effective_bps: (f64, f64),
    /// The window really used, where the paper says, frames.
    window: Option<u32>,
}

const fn measured(
    rate_bps: f64,
    who: &'static str,
    role: &'static str,
    effective_bps: (f64, f64),
    window: Option<u32>,
) -> Measured {
    Measured { rate_bps, who, role, effective_bps, window }
}

/// The statements on throughput at the largest window and 256 information bytes.
const MEASURED: [Measured; 11] = [
    measured(1200.0, "MFJ and Spirit, 2.5 MHz", "sender", (750.0, 800.0), Some(4)),
    measured(1200.0, "MFJ and Spirit, 4.9 MHz", "sender", (800.0, 900.0), Some(4)),
    measured(1200.0, "all firmwares", "recipient", (900.0, 1000.0), None),
    measured(9600.0, "TNC2D, the slowest (by its table 1200 bit/s at most)", "both", (1500.0, 1500.0), None),
    measured(9600.0, "DLC7, the fastest", "both", (5500.0, 5500.0), None),
    measured(9600.0, "the best of the Z80", "sender", (4000.0, 4000.0), None),
    measured(9600.0, "all firmwares", "recipient", (4100.0, 5200.0), None),
    measured(38_400.0, "Spirit-2 and KPC-9612+", "both", (5000.0, 5000.0), None),
    measured(38_400.0, "TNC3", "both", (8000.0, 8000.0), Some(7)),
    measured(38_400.0, "TNC7", "both", (10_000.0, 10_000.0), Some(7)),
    measured(38_400.0, "DLC7", "both", (11_000.0, 11_000.0), None),
];

/// The windows really used with k = 7 and 256 information bytes: firmware, clock (MHz), rate, window.
const WINDOWS: [(&str, &str, &str, &str); 14] = [
    ("MFJ, Spirit", "2.5", "1,200", "4, or 3 and 5 in turn"),
    ("MFJ, Spirit", "4.9", "1,200", "4, or 3 and 5 in turn"),
    ("MFJ, Spirit", "10 to 20", "9,600", "4, not so often; smaller ones occur"),
    ("TF 2.1", "2.5", "1,200", "1 or 2"),
    ("TF 2.1", "10 to 20", "9,600", "larger than at 1200 bit/s"),
    ("TF 2.3", "2.5", "1,200", "1 or 2"),
    ("TF 2.3", "4.9", "1,200", "about 6"),
    ("TF 2.3", "10 to 20", "9,600", "about 3"),
    ("TF 2.7", "2.5", "1,200", "about 6"),
    ("TF 2.7", "4.9", "1,200", "almost 7"),
    ("TF 2.7", "10", "9,600", "about 4"),
    ("TF 2.7", "20", "9,600", "almost 7"),
    ("KPC-9612+", "16", "9,600", "7 mostly, less often from 100 information bytes on"),
    ("TNC3, TNC7", "14.7 to 59", "any", "7, less often from 150 kbit/s on"),
];

/// What this page does not show.
const MISSING: &str = "Missing: what is simulated. The controllers and their firmwares are not run here, so the throughputs and windows that \
     were measured stand beside what theory allows and nothing else.";

fn theory() -> Model {
    Model::zielinski()
}

fn with_t2() -> Model {
    Model { t2_s: T2_S, ..theory() }
}

fn said(holds: bool, no: &str) -> Cell {
    if holds { Cell::text("yes").toned(Tone::Good) } else { Cell::text(no).toned(Tone::Bad) }
}

fn missing() -> Cell {
    Cell::text("missing").toned(Tone::Faint)
}

/// The page, the figures and what a terminal shows. The seed is that of the record: nothing here is drawn.
pub fn reproduce(seed: u64) -> Finding {
    let lead = lead();
    let rates = Section::new("Figures 4 to 6: throughput and window").with(
        "Published points are those that the text states for the largest window; it gives no table of its plots. Of a range the middle is \
         drawn.",
    );
    let sections = vec![
        Section::new("What the paper says of theory").with(theory_table()).with(claims_table()),
        Section::new("What was measured, beside theory")
            .with(MISSING)
            .with(measured_table())
            .with(window_table()),
        RATES_BPS
            .into_iter()
            .zip(4..)
            .fold(rates, |section, (rate, number)| section.with(window_plot(rate, number))),
        Section::new("The length of frames").with(length_plot()),
        Section::new("Equation 5: the serial lines").with(serial_table()),
    ];
    Finding {
        summary: summary(&lead),
        experiment: Experiment {
            experiment: "ax25-throughput".into(),
            seed,
            records: records(),
            runs: Vec::new(),
        },
        report: Report {
            title: "The throughput of connected AX.25: a published evaluation, reproduced".into(),
            lead,
            command: "longwire paper ax25-throughput".into(),
            facts: vec![(
                "published in".into(),
                "B. Zieliński: Effective throughput of AX.25 protocol, Bull. Pol. Ac.: Tech. 61(3), 2013"
                    .into(),
            )],
            sections,
            assumptions: assumptions(),
        },
        traces: Vec::new(),
    }
}

/// What a terminal shows.
fn summary(lead: &str) -> Vec<Block> {
    let tables = [theory_table(), claims_table(), measured_table()];
    let with_caption = |table: Table| [Block::Text(format!("{}:", table.caption)), Block::Table(table)];
    let text = |text: &str| [Block::Text(text.to_owned())];
    text(lead).into_iter().chain(tables.into_iter().flat_map(with_caption)).chain(text(MISSING)).collect()
}

fn lead() -> String {
    let met = THEORY.iter().filter(|(rate, stated, ..)| is_about(*rate, *stated)).count();
    let below = MEASURED.iter().filter(|row| row.is_below()).count();
    let largest = RATES_BPS.map(|rate| figure(theory().throughput_bps(rate, WINDOW_MAX).round()));
    format!(
        "At the largest window the model allows {} bit/s at 1200, 9600 and 38,400 bit/s. {met} of the paper's {} statements on \
         theory hold within {:.0} %, and {below} of {} measured throughputs are below it.",
        largest.join(", "),
        THEORY.len(),
        100.0 * ABOUT,
        MEASURED.len()
    )
}

fn is_about(rate_bps: f64, stated_bps: f64) -> bool {
    (theory().throughput_bps(rate_bps, WINDOW_MAX) / stated_bps - 1.0).abs() <= ABOUT
}

impl Measured {
    fn theory_bps(&self) -> f64 {
        theory().throughput_bps(self.rate_bps, WINDOW_MAX)
    }

    fn is_below(&self) -> bool {
        self.effective_bps.1 <= self.theory_bps()
    }

    fn words(&self) -> String {
        let (from, to) = self.effective_bps;
        if from == to { figure(from) } else { format!("{} to {}", figure(from), figure(to)) }
    }
}

fn theory_table() -> Table {
    let mut table = Table::new(
        "Theory at the largest window",
        [
            Column::number("rate", "bit/s"),
            Column::text("the paper says"),
            Column::text("where"),
            Column::number("ours", "bit/s"),
            Column::number("ratio", ""),
            Column::text("within 5 %"),
        ],
    );
    for (rate, stated, words, place) in THEORY {
        let ours = theory().throughput_bps(rate, WINDOW_MAX);
        table.row([
            Cell::number(rate),
            Cell::text(words),
            Cell::text(place),
            Cell::precise(ours, 0),
            Cell::precise(ours / stated, 3),
            said(is_about(rate, stated), "NO"),
        ]);
    }
    table
}

/// A statement on what the model does, whether it does, and its numbers.
type Claim = (&'static str, bool, String);

fn claims() -> Vec<Claim> {
    let at = |model: Model, rate: f64, window: u32| model.throughput_bps(rate, window);
    let grows = |model: Model| {
        let windows =
            RATES_BPS.into_iter().flat_map(|rate| (1..WINDOW_MAX).map(move |window| (rate, window)));
        windows.into_iter().all(|(rate, window)| at(model, rate, window) < at(model, rate, window + 1))
    };
    let jump = |rate: f64| {
        let (t2, imm) = (with_t2(), theory());
        let step = |model| at(model, rate, 7) - at(model, rate, 6);
        (step(t2), step(imm))
    };
    let full = Model { duplex: Duplex::Full, ..theory() };
    let alike =
        RATES_BPS.into_iter().all(|rate| (2..=WINDOW_MAX).all(|k| at(full, rate, k) == at(full, rate, 1)));
    vec![
        (
            "Decreasing the window always increases the overhead.",
            grows(theory()) && grows(with_t2()),
            "throughput grows with every frame of the window, at all three rates, with T2 and without".into(),
        ),
        (
            "With T2, throughput jumps from k = 6 to 7: at the largest window the recipient does not wait.",
            RATES_BPS.into_iter().all(|rate| jump(rate).0 > 3.0 * jump(rate).1),
            format!(
                "from 6 to 7 frames, with a T2 of 1 s and without: {}",
                RATES_BPS
                    .map(|rate| format!("{:+.0} and {:+.0} at {}", jump(rate).0, jump(rate).1, figure(rate)))
                    .join(", ")
            ),
        ),
        (
            "In full duplex the window is not important.",
            alike,
            format!(
                "{:.0} and {:.0} bit/s at 1200 and 9600, whatever k",
                at(full, 1200.0, 7),
                at(full, 9600.0, 7)
            ),
        ),
    ]
}

fn claims_table() -> Table {
    let columns = [Column::text("the paper says"), Column::text("by formula"), Column::text("in numbers")];
    let mut table = Table::new("The paper's statements on the exchange of frames", columns);
    for (text, holds, detail) in claims() {
        table.row([Cell::text(text), said(holds, "NO"), Cell::text(detail)]);
    }
    table
}

fn measured_table() -> Table {
    let mut table = Table::new(
        "Measured throughput at k = 7 and 256 information bytes",
        [
            Column::number("rate", "bit/s"),
            Column::text("controller or firmware"),
            Column::text("role"),
            Column::text("published (bit/s)"),
            Column::number("theory", "bit/s"),
            Column::number("of theory", ""),
            Column::text("below it"),
            Column::number("theory at the window used", "bit/s"),
            Column::text("simulated"),
        ],
    );
    for row in &MEASURED {
        let at_window = row.window.map(|window| theory().throughput_bps(row.rate_bps, window));
        table.row([
            Cell::number(row.rate_bps),
            Cell::text(row.who),
            Cell::text(row.role),
            Cell::text(row.words()),
            Cell::precise(row.theory_bps(), 0),
            Cell::percent(row.effective_bps.1 / row.theory_bps()),
            said(row.is_below(), "NO"),
            at_window.map_or_else(Cell::empty, |value| Cell::precise(value, 0)),
            missing(),
        ]);
    }
    table
}

fn window_table() -> Table {
    let columns = ["firmware or controller", "clock (MHz)", "rate (bit/s)", "window, published", "simulated"];
    let mut table =
        Table::new("Windows really used with k = 7 and 256 information bytes", columns.map(Column::text));
    for (who, clock, rate, window) in WINDOWS {
        let words = [who, clock, rate, window].map(Cell::text);
        table.row(words.into_iter().chain([missing()]));
    }
    table
}

fn serial_table() -> Table {
    let columns = [Column::number("serial rate", "bit/s"), Column::number("first and last frame", "s")];
    let mut table = Table::new("What the serial lines add to a transfer", columns);
    for (rate, seconds) in serial_times() {
        table.row([Cell::number(rate), Cell::precise(seconds, 3)]);
    }
    table
}

fn serial_times() -> [(f64, f64); 4] {
    [9600.0, 19_200.0, 57_600.0, 115_200.0].map(|rate| {
        let model = Model { serial_bps: Some(rate), ..theory() };
        (rate, model.transfer(RATES_BPS[0], WINDOW_MAX, 8192).serial_s)
    })
}

fn window_plot(rate_bps: f64, number: u32) -> Plot {
    let curve = |model: Model| {
        let point = |window: u32| Point::new(f64::from(window), model.throughput_bps(rate_bps, window));
        (1..=WINDOW_MAX).map(point).collect::<Vec<Point>>()
    };
    let title = format!("Figure {number}: {} bit/s", figure(rate_bps));
    let plot =
        Plot::new(title, Axis::new("window k", "frames"), Axis::new("throughput", "bit/s").from_zero())
            .with(PlotSeries::new("theory, no T2", curve(theory())).styled(0))
            .with(PlotSeries::new("theory, T2 of 1 s", curve(with_t2())).styled(1));
    let stated = MEASURED.iter().filter(|row| row.rate_bps == rate_bps).zip(2..);
    stated.fold(plot, |plot, (row, style)| {
        let (from, to) = row.effective_bps;
        let point = Point::new(f64::from(WINDOW_MAX), (from + to) / 2.0);
        let name = format!("{}, {}, published", row.who, row.role);
        plot.with(PlotSeries::new(name, vec![point]).published().styled(style))
    })
}

fn length_plot() -> Plot {
    let plot = Plot::new(
        "Throughput by the length of frames at k = 7",
        Axis::new("information", "bytes"),
        Axis::new("share of the line rate", "%").from_zero(),
    );
    RATES_BPS.into_iter().enumerate().fold(plot, |plot, (index, rate)| {
        let point = |information_bytes: u32| {
            let model = Model { information_bytes, ..theory() };
            let share = model.throughput_bps(rate, WINDOW_MAX) / rate;
            Point::new(f64::from(information_bytes), 100.0 * share)
        };
        let points = (1..=8).map(|eighth| point(32 * eighth)).collect();
        plot.with(PlotSeries::new(format!("{} bit/s", figure(rate)), points).styled(index))
    })
}

fn records() -> Vec<Record> {
    let metric = "throughput_without_end_bit_per_s";
    let closed = |series: &str, params: Params, metric: &str, unit: &str, value: f64| {
        Record::of(series, params, metric, unit, &[value]).with_kind(Kind::ClosedForm)
    };
    let at = |rate: f64, window: u32| Params::new().with("rate_bps", rate).with("window", window);
    let stated = THEORY.iter().map(|(rate, stated, _, place)| {
        let ours = theory().throughput_bps(*rate, WINDOW_MAX);
        closed("theory", at(*rate, WINDOW_MAX), metric, "bit/s", ours).with_reference(*stated, *place)
    });
    let series = [
        ("theory", theory()),
        ("theory, T2 of 1 s", with_t2()),
        ("theory, full duplex", Model { duplex: Duplex::Full, ..theory() }),
    ];
    let curves = series.into_iter().flat_map(|(name, model)| {
        let points =
            RATES_BPS.into_iter().flat_map(|rate| (1..=WINDOW_MAX).map(move |window| (rate, window)));
        points.map(move |(rate, window)| {
            closed(name, at(rate, window), metric, "bit/s", model.throughput_bps(rate, window))
        })
    });
    let serial = serial_times().into_iter().map(|(rate, seconds)| {
        closed("theory", Params::new().with("serial_bps", rate), "serial_s", "s", seconds)
    });
    stated.chain(curves).chain(serial).collect()
}

fn assumptions() -> Vec<Assumption> {
    let at_7 = |model: Model| {
        let values = RATES_BPS.map(|rate| format!("{:.0}", model.throughput_bps(rate, WINDOW_MAX)));
        format!("{} bit/s at k = 7 instead", values.join(", "))
    };
    let assumed = |text: &str, basis: &str, effect: String| Assumption {
        text: text.into(),
        basis: basis.into(),
        effect: Some(effect),
        moves_result: true,
    };
    vec![
        assumed(
            "T103 is 0.3 s.",
            "a TNC 2's default; the paper names none",
            format!("with 0.25 s: {}", at_7(Model { txdelay_s: 0.25, ..theory() })),
        ),
        assumed(
            "T102 is 0.1 s and the persistence 64/256.",
            "a TNC 2's defaults; the paper names neither",
            format!(
                "with a slot before each draw, as in Dire Wolf: {}",
                at_7(Model { csma: Csma::WaitThenDraw, ..theory() })
            ),
        ),
        assumed(
            "T2 is 1 s where it is shown.",
            "the paper names none",
            format!(
                "with 0.5 s at k = 6: {} bit/s",
                RATES_BPS
                    .map(|rate| format!("{:.0}", Model { t2_s: 0.5, ..theory() }.throughput_bps(rate, 6)))
                    .join(", ")
            ),
        ),
        assumed(
            "An acknowledgement is of 20 bytes.",
            "equation 4; with two flags it has 19",
            at_7(Model { acknowledgement_bytes: 19, ..theory() }),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_on_theory_hold() {
        for (rate, stated, ..) in THEORY {
            assert!(is_about(rate, stated), "{rate}: {stated}");
        }
        for (text, holds, detail) in claims() {
            assert!(holds, "{text} {detail}");
        }
        assert!(MEASURED.iter().all(Measured::is_below));
    }

    #[test]
    fn the_serial_lines_take_what_equation_5_says() {
        let times = serial_times().map(|(_, seconds)| format!("{seconds:.3}"));
        assert_eq!(times, ["0.533", "0.267", "0.089", "0.044"]);
    }

    #[test]
    fn every_row_that_is_not_simulated_says_so() {
        for table in [measured_table(), window_table()] {
            let last = table.columns.len() - 1;
            assert_eq!(table.columns[last].name, "simulated");
            assert!(table.rows.iter().all(|row| row[last].text == "missing"));
        }
        let finding = reproduce(1);
        assert!(finding.experiment.records.iter().all(|record| record.kind == Kind::ClosedForm));
    }
}
