//! Simulated controllers on the page: tables and plots.

use super::calibrate::{Allowed, Said, What, is_within, rows, used as firmwares};
use super::claims::{WITHIN, WITHIN_FRAMES};
use super::fleet::{
    Case, DERIVED, EXCHANGED, FAST, FAST_BPS, FASTEST_BPS, MACHINES, Machine, Role, SLOW, SLOW_BPS, SPEEDS,
    find, program,
};
use super::leeway::Range;
use super::published::{Claim, Measured, Used, measured, used};
use super::said;
use super::simulated::{BY_LENGTH, LENGTHS, Simulated};
use super::theory::{theory, with_t2};
use crate::format::figure;
use crate::model::ax25::{Model, WINDOW_MAX};
use crate::record::{FigureKind, Params, Record};
use crate::report::{Axis, Cell, Column, Plot, PlotSeries, Point, Shape, Table};

/// Published throughput compared with the simulated one.
pub(super) struct Compared {
    pub(super) row: Measured,
    /// Lowest and highest simulated throughput, bit/s.
    pub(super) ours_bps: (f64, f64),
    samples: Vec<f64>,
    pub(super) kind: FigureKind,
    /// Range over all allowed constants, bit/s; `None` if calibrated.
    pub(super) open: Option<Range>,
}

/// Bounds of a throughput, bit/s.
pub(super) fn bounds_bps(row: &Measured) -> (f64, f64) {
    let (from, to) = row.effective_bps;
    ((1.0 - WITHIN) * from, (1.0 + WITHIN) * to)
}

impl Compared {
    pub(super) fn holds(&self) -> bool {
        let (from, to) = bounds_bps(&self.row);
        self.ours_bps.0 >= from && self.ours_bps.1 <= to
    }

    /// Figure of each transfer, or of the best.
    pub(super) fn each(&self) -> Vec<Record> {
        let params = || Params::new().with("rate_bps", self.row.rate_bps as f64).with("window", 7u32);
        let record =
            |sample: &f64| Record::of(self.row.who, params(), "throughput_bit_per_s", "bit/s", &[*sample]);
        self.samples.iter().map(record).collect()
    }

    fn records(&self) -> Vec<Record> {
        let params = Params::new().with("rate_bps", self.row.rate_bps as f64).with("window", 7u32);
        let case = format!("{}, {}", self.row.who, self.row.role.word());
        let record = |metric: &str, samples: &[f64]| {
            Record::of(case.clone(), params.clone(), metric, "bit/s", samples).with_kind(self.kind)
        };
        let ours = record("throughput_bit_per_s", &self.samples);
        let mut records = vec![ours.with_reference(self.row.middle_bps(), self.row.place)];
        records.extend(self.open.into_iter().flat_map(|open| {
            [
                record("throughput_least_allowed_bit_per_s", &[open.from]),
                record("throughput_most_allowed_bit_per_s", &[open.to]),
            ]
        }));
        records
    }
}

pub(super) fn compared(simulated: &Simulated) -> Vec<Compared> {
    let one = |row: Measured| {
        let all: Vec<f64> = row.cases.iter().map(|case| simulated.throughput(*case)).collect();
        let most = all.iter().copied().fold(f64::MIN, f64::max);
        let samples = if row.best { vec![most] } else { all };
        let least = samples.iter().copied().fold(f64::MAX, f64::min);
        let fitted =
            row.cases.iter().all(|case| super::simulated::kind(case, false) == FigureKind::Calibrated);
        let kind = if fitted { FigureKind::Calibrated } else { FigureKind::Predicted };
        let open = (kind == FigureKind::Predicted)
            .then(|| simulated.leeway().throughputs(&row.cases, row.best, bounds_bps(&row)));
        Compared { ours_bps: (least, most), samples, kind, open, row }
    };
    measured().into_iter().map(one).collect()
}

/// Published window compared with the simulated one.
pub(super) struct Seen {
    pub(super) row: Used,
    pub(super) mean: f64,
    shares: [f64; 7],
    pub(super) holds: bool,
    pub(super) kind: FigureKind,
    /// Range over all allowed constants, frames; `None` if calibrated.
    pub(super) open: Option<Range>,
}

/// Bounds of a mean window, frames.
fn bounds_frames(row: &Used) -> (f64, f64) {
    match row.claim {
        Claim::About(from, to) => (from - WITHIN_FRAMES, to + WITHIN_FRAMES),
        Claim::LargerThan(frames) => (frames.next_up(), f64::from(WINDOW_MAX)),
    }
}

impl Seen {
    pub(super) fn params(&self) -> Params {
        let case = &self.row.case;
        Params::new().with("rate_bps", case.rate_bps as f64).with("clock_mhz", find(case.machine).clock_mhz)
    }

    /// Plot of the paper that shows it.
    pub(super) fn place(&self) -> &'static str {
        if self.row.case.rate_bps == SLOW_BPS { "Fig. 14" } else { "Fig. 15" }
    }

    fn records(&self) -> Vec<Record> {
        let params = self.params();
        let record = |metric: &str, frames: f64| {
            Record::of(self.row.who, params.clone(), metric, "frames", &[frames]).with_kind(self.kind)
        };
        let ours = match self.row.claim {
            Claim::About(from, to) => {
                Some(record("window_frames", self.mean).with_reference((from + to) / 2.0, self.place()))
            }
            Claim::LargerThan(_) => None,
        };
        let open = self.open.into_iter().flat_map(|open| {
            [record("window_least_allowed_frames", open.from), record("window_most_allowed_frames", open.to)]
        });
        ours.into_iter().chain(open).collect()
    }
}

/// Bounds of the mean window from the statement about this transfer.
pub(super) fn bounds_of(case: &Case) -> Option<(f64, f64)> {
    used().iter().find(|row| row.case == *case).map(bounds_frames)
}

pub(super) fn seen(simulated: &Simulated) -> Vec<Seen> {
    let one = |row: Used| {
        let mean = simulated.window(row.case);
        let bounds = bounds_frames(&row);
        let holds = (bounds.0..=bounds.1).contains(&mean);
        let kind = super::simulated::kind(&row.case.long(), true);
        let open = (kind == FigureKind::Predicted).then(|| simulated.leeway().window(&row.case, bounds));
        Seen { mean, shares: simulated.shares(row.case), holds, kind, open, row }
    };
    used().into_iter().map(one).collect()
}

pub(super) fn window_table(simulated: &Simulated) -> Table {
    let head = [
        Column::text("firmware or controller"),
        Column::text("clock (MHz)"),
        Column::number("rate", "bit/s"),
        Column::number("mean", "frames"),
    ];
    let shares = (1..=7).map(|window| Column::number(format!("of {window}"), ""));
    let mut table = Table::new(
        "Window sizes used with k = 7 and 256 information octets: mean and share of each size in 64 KB",
        head.into_iter().chain(shares),
    );
    for seen in seen(simulated) {
        let row = &seen.row;
        let share = |share: f64| match share {
            0.0 => Cell::empty(),
            share => Cell { text: format!("{:.0} %", 100.0 * share), value: Some(share), ..Cell::empty() },
        };
        let head = [
            Cell::text(row.who),
            Cell::text(row.clock),
            Cell::number(row.case.rate_bps as f64),
            Cell::precise(seen.mean, 1),
        ];
        table.row(head.into_iter().chain(seen.shares.map(share)));
    }
    table
}

pub(super) fn firmware_table() -> Table {
    let mut table = Table::new(
        "Firmware: the two constants used (middle of the allowed range) and the memory limit (derived); other \
         properties from the paper, except the P bit of Z80 firmware, which is assumed",
        [
            Column::text("firmware"),
            Column::number("building frames", "1000 cycles per octet"),
            Column::number("turnaround", "million cycles"),
            Column::text("memory limit (octets)"),
            Column::text("sets the P bit"),
            Column::text("without P"),
            Column::text("window"),
            Column::text("allowed, per octet"),
            Column::text("allowed, per turnaround"),
        ],
    );
    let others = DERIVED.map(program);
    for program in EXCHANGED.into_iter().chain(others) {
        let memory = program.memory_bytes.map_or("its memory".into(), |bytes| figure(f64::from(bytes)));
        let word = |yes: bool, word: &str, other: &str| Cell::text(if yes { word } else { other });
        let name = match program.name {
            "Kantronics" => "Kantronics, constants of MFJ",
            "TimeWave" => "TimeWave, constants of MFJ",
            "TF of TNC3" => "TF of TNC3 and its successors, constants of TF 2.7",
            name => name,
        };
        let own = name == program.name;
        let (octets, turns) = if own { allowed_words(program.name) } else { Default::default() };
        table.row([
            Cell::text(name),
            Cell::number(program.octet_kilocycles),
            Cell::number(program.turn_megacycles),
            Cell::text(memory),
            word(program.polls, "yes", "no"),
            word(program.waits, "after T2 or 7 frames", "acknowledges at once"),
            word(program.grows, "grows from 1", "as set"),
            Cell::text(octets),
            Cell::text(turns),
        ]);
    }
    table
}

/// Ranges of the allowed constants, as text.
fn allowed_words(program: &str) -> (String, String) {
    let points: Vec<(f64, f64)> = Allowed::of(program).points().collect();
    let words = |part: fn(&(f64, f64)) -> f64| {
        let all = points.iter().map(part);
        format!("{} to {}", figure(all.clone().fold(f64::MAX, f64::min)), figure(all.fold(0.0, f64::max)))
    };
    (words(|point| point.0), words(|point| point.1))
}

pub(super) fn machine_table(simulated: &Simulated) -> Table {
    let mut table = Table::new(
        "Controllers of Tables 1 and 2, and throughput between two of the same kind at k = 7",
        [
            Column::text("controller"),
            Column::text("processor"),
            Column::number("clock", "MHz"),
            Column::number("work per cycle", "of a Z80's"),
            Column::number("memory", "KB"),
            Column::number("serial line", "bit/s"),
            Column::text("delivered with"),
            Column::number("at 1200", "bit/s"),
            Column::number("at 9600", "bit/s"),
            Column::number("at 38,400", "bit/s"),
        ],
    );
    let at = |machine: &Machine, rate_bps: u64| match machine.wireless_bps >= rate_bps {
        true => Cell::precise(simulated.throughput(Case::delivered(machine.name, rate_bps)), 0),
        false => Cell::empty(),
    };
    for machine in &MACHINES {
        let speed = SPEEDS.iter().find(|(name, _)| *name == machine.processor).map(|(_, speed)| *speed);
        table.row([
            Cell::text(machine.name),
            Cell::text(machine.processor),
            Cell::precise(machine.clock_mhz, 4),
            Cell::number(speed.unwrap_or(1.0)),
            Cell::number(f64::from(machine.ram_kib)),
            Cell::number(f64::from(machine.serial_bps)),
            Cell::text(machine.delivered),
            at(machine, SLOW_BPS),
            at(machine, FAST_BPS),
            at(machine, FASTEST_BPS),
        ]);
    }
    table
}

/// Statements from which the constants come, with the seeds of the search.
pub(super) fn fit_table() -> Table {
    let columns = [
        Column::text("firmware"),
        Column::text("controller"),
        Column::text("what"),
        Column::text("published, interpreted"),
        Column::number("from", ""),
        Column::number("to", ""),
        Column::number("simulated", ""),
        Column::text("holds"),
    ];
    let caption = "Statements about 1200 bit/s that the constants must satisfy; statements of order are evaluated \
                   against the constants used for the other firmware";
    let mut table = Table::new(caption, columns);
    let mut used = firmwares();
    for row in rows() {
        let what = match row.what {
            What::Window => "window (frames)".into(),
            What::BeyondFive => "windows over 5 (share)".into(),
            What::Sending => "sender (bit/s)".into(),
            What::Receiving => "receiver (bit/s)".into(),
            What::Gain { from, to } => format!("sender, k = {to} over k = {from}"),
        };
        let bounds = row.bounds(&mut used);
        let value = row.value(used.get_mut(row.program).expect("it is one of them"));
        let shown = |value: f64| Cell::precise(value, if value > 100.0 { 0 } else { 2 });
        // An order has one end.
        let one_sided = |end: f64| matches!(row.said, Said::Beside(..)) && !(1.0..1e5).contains(&end);
        table.row([
            Cell::text(row.program),
            Cell::text(row.machine),
            Cell::text(what),
            Cell::text(row.words),
            if one_sided(bounds.0) { Cell::empty() } else { shown(bounds.0) },
            bounds.1.filter(|end| !one_sided(*end)).map_or(Cell::empty(), shown),
            shown(value),
            said(is_within(value, bounds)),
        ]);
    }
    table
}

/// Throughput over the window, for controllers or firmware versions.
fn curves(simulated: &Simulated, title: String, rate_bps: u64, named: &[(String, Case)]) -> Plot {
    let formula = |model: Model| {
        let point =
            |window: u32| Point::new(f64::from(window), model.throughput_bps(rate_bps as f64, window));
        (1..=WINDOW_MAX).map(point).collect::<Vec<Point>>()
    };
    let of = |case: Case| {
        let point = |window: u8| Point::of(f64::from(window), &simulated.record(case.with_window(window)));
        (1..=7).map(point).collect::<Vec<Point>>()
    };
    let plot =
        Plot::new(title, Axis::new("window k", "frames"), Axis::new("throughput", "bit/s").from_zero())
            .with(PlotSeries::new("theory, no T2", formula(theory())).styled(0))
            .with(PlotSeries::new("theory, T2", formula(with_t2(rate_bps as f64))).styled(1));
    named.iter().zip(2..).fold(plot, |plot, ((name, case), style)| {
        plot.with(PlotSeries::new(name.clone(), of(*case)).styled(style))
    })
}

/// Plots of Figures 4 to 6.
pub(super) fn machine_plots(simulated: &Simulated) -> Vec<Plot> {
    let shown: [(u64, &[&'static str]); 3] = [
        (SLOW_BPS, &["TNC2", "TNC2D", "KPC-9612+", "TNC3S", "TNC7multi"]),
        (FAST_BPS, &["TNC2D", "Spirit-2 H.S.", "KPC-9612+", "TNC3S", "DLC7"]),
        (FASTEST_BPS, &["Spirit-2 H.S.", "KPC-9612+", "TNC3S", "TNC7multi", "DLC7"]),
    ];
    let plot = |((rate_bps, names), number): ((u64, &[&'static str]), u32)| {
        let named: Vec<(String, Case)> = names
            .iter()
            .map(|name| (format!("{name}, simulated"), Case::delivered(name, rate_bps)))
            .collect();
        let title = format!("Figure {number}: two equal controllers, {} bit/s", figure(rate_bps as f64));
        let plot = curves(simulated, title, rate_bps, &named);
        let stated = measured().into_iter().filter(|row| row.role == Role::Both && row.rate_bps == rate_bps);
        stated.fold(plot, |plot, row| {
            let own = named.iter().position(|(_, case)| row.cases.contains(case));
            let points = vec![Point::new(f64::from(WINDOW_MAX), row.middle_bps())];
            let series = PlotSeries::new(format!("{}, published", row.who), points).published();
            plot.with(series.styled(own.map_or(0, |own| own + 2)))
        })
    };
    shown.into_iter().zip(4..).map(plot).collect()
}

/// Plots of Figures 10 to 13.
pub(super) fn firmware_plots(simulated: &Simulated) -> Vec<Plot> {
    let plot = |(role, machine, number): (Role, &'static str, u32)| {
        let named: Vec<(String, Case)> = EXCHANGED
            .iter()
            .map(|of| (format!("{}, simulated", of.name), Case::exchanged(role, of.name, machine)))
            .collect();
        let clock = figure(find(machine).clock_mhz);
        let title = format!("Figure {number}: {machine}, {clock} MHz, as {}", role.word());
        curves(simulated, title, named[0].1.rate_bps, &named)
    };
    let of = |(role, machines, number): (Role, [&'static str; 2], u32)| {
        machines.map(|machine| plot((role, machine, number)))
    };
    let figures = [
        (Role::Sender, SLOW, 10),
        (Role::Recipient, SLOW, 11),
        (Role::Sender, FAST, 12),
        (Role::Recipient, FAST, 13),
    ];
    figures.into_iter().flat_map(of).collect()
}

/// Plots of Figures 14 and 15.
pub(super) fn histograms(simulated: &Simulated) -> Vec<Plot> {
    let shown: [(&str, &[(&'static str, &'static str)]); 2] = [
        (
            "Figure 14: windows of senders at 1200 bit/s",
            &[
                ("MFJ", "TNC2"),
                ("MFJ", "TNC2D"),
                ("TF 2.1", "TNC2"),
                ("TF 2.3", "TNC2"),
                ("TF 2.3", "TNC2D"),
                ("TF 2.7", "TNC2"),
                ("TF 2.7", "TNC2D"),
            ],
        ),
        (
            "Figure 15: windows of senders at 9600 bit/s",
            &[
                ("MFJ", "Spirit-2 Std."),
                ("MFJ", "Spirit-2 H.S."),
                ("TF 2.1", "Spirit-2 H.S."),
                ("TF 2.3", "Spirit-2 Std."),
                ("TF 2.3", "Spirit-2 H.S."),
                ("TF 2.7", "Spirit-2 Std."),
                ("TF 2.7", "Spirit-2 H.S."),
            ],
        ),
    ];
    shown
        .into_iter()
        .map(|(title, named)| {
            let plot = Plot::new(
                title,
                Axis::new("window used", "frames"),
                Axis::new("share of windows", "%").from_zero(),
            );
            histogram(simulated, plot, named)
        })
        .collect()
}

/// Bars side by side, and a table with a row for each window size.
fn histogram(simulated: &Simulated, plot: Plot, named: &[(&'static str, &'static str)]) -> Plot {
    /// Distance between bars, frames.
    const APART: f64 = 0.13;
    let shares: Vec<(String, [f64; 7])> = named
        .iter()
        .map(|(program, machine)| {
            let name = format!("{program}, {} MHz", figure(find(machine).clock_mhz));
            (name, simulated.shares(Case::exchanged(Role::Sender, program, machine)))
        })
        .collect();
    let columns = shares.iter().map(|(name, _)| Column::number(name.clone(), "%"));
    let mut table =
        Table::new(plot.title.clone(), [Column::number("window", "frames")].into_iter().chain(columns));
    for window in 1..=7 {
        let share = |(_, shares): &(String, [f64; 7])| Cell::precise(100.0 * shares[window - 1], 1);
        table.row([Cell::number(window as f64)].into_iter().chain(shares.iter().map(share)));
    }
    let middle = (shares.len() - 1) as f64 / 2.0;
    let bars = shares.into_iter().enumerate().fold(plot, |plot, (index, (name, shares))| {
        let aside = APART * (index as f64 - middle);
        let point = |(window, share): (u32, f64)| Point::new(f64::from(window) + aside, 100.0 * share);
        let points = (1..=7).zip(shares).filter(|(_, share)| *share > 0.0).map(point).collect();
        plot.with(PlotSeries::new(name, points).shaped(Shape::Bars))
    });
    Plot { table: Some(table), ..bars }.captioned("Bars are in the order of the legend.")
}

/// Plot of Figures 7 to 9: windows over the frame length.
pub(super) fn window_length_plot(simulated: &Simulated) -> Plot {
    let plot = Plot::new(
        "Figures 7 to 9: mean window used at k = 7 by frame length",
        Axis::new("information", "octets"),
        Axis::new("window", "frames").from_zero(),
    );
    BY_LENGTH.into_iter().fold(plot, |plot, (machine, rate_bps)| {
        let case = Case::delivered(machine, rate_bps);
        let point = |bytes: u32| Point::new(f64::from(bytes), simulated.window(case.with_information(bytes)));
        let name = format!("{machine}, {} bit/s", figure(rate_bps as f64));
        plot.with(PlotSeries::new(name, LENGTHS.map(point).to_vec()))
    })
}

/// Plot of the throughput over the frame length.
pub(super) fn length_plot(simulated: &Simulated) -> Plot {
    let plot = Plot::new(
        "Throughput by frame length at k = 7",
        Axis::new("information", "octets"),
        Axis::new("share of the line rate", "%").from_zero(),
    );
    let plot = super::theory::RATES_BPS.into_iter().enumerate().fold(plot, |plot, (index, rate)| {
        let point = |information_bytes: u32| {
            let model = Model { information_bytes, ..theory() };
            let share = model.throughput_bps(rate, WINDOW_MAX) / rate;
            Point::new(f64::from(information_bytes), 100.0 * share)
        };
        let points = (1..=8).map(|eighth| point(32 * eighth)).collect();
        plot.with(PlotSeries::new(format!("theory, {} bit/s", figure(rate)), points).styled(index))
    });
    ["TNC3S", "TNC7multi"].into_iter().zip(3..).fold(plot, |plot, (machine, style)| {
        let case = Case::delivered(machine, FAST_BPS);
        let share = |bytes: u32| 100.0 * simulated.throughput(case.with_information(bytes)) / FAST_BPS as f64;
        let points = LENGTHS.map(|bytes| Point::new(f64::from(bytes), share(bytes))).to_vec();
        plot.with(PlotSeries::new(format!("{machine}, 9600 bit/s, simulated"), points).styled(style))
    })
}

/// Returns a record with our value for each published figure.
pub(super) fn records(simulated: &Simulated) -> Vec<Record> {
    let throughputs = compared(simulated).iter().flat_map(Compared::records).collect::<Vec<Record>>();
    throughputs.into_iter().chain(seen(simulated).iter().flat_map(Seen::records)).collect()
}
