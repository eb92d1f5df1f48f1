//! Tables and plots of the page.

use super::SIMULATION;
use super::calibrate::{Fit, edges, rows};
use super::claims::Compared;
use super::figures::{Values, case, figure as name_of, value};
use super::fleet::{CONTROLLERS, Case, Constants, FIRMWARE, MACHINES, Machine, PROGRAMS, Role, find};
use super::simulated::Simulated;
use super::theory::{RATES_BPS, serial_table, with_t2};
use crate::claim::Selection;
use crate::format::{figure, range};
use crate::model::ax25::{Model, WINDOW_MAX};
use crate::papers::text::Text;
use crate::report::{Axis, Cell, Plot, PlotSeries, Point, Section, Table, Tone};
use serde::Deserialize;

/// Plot of several transfers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shown {
    title: String,
    of: Vec<Selection>,
}

impl Shown {
    fn cases(&self) -> Vec<Case> {
        self.of.iter().flat_map(Selection::points).map(|point| case(&point)).collect()
    }
}

pub(super) fn sections(text: &Text, simulated: &Simulated, compared: &[Compared]) -> Vec<Section> {
    let curves = |shown: &'static [Shown]| shown.iter().map(move |shown| curves(simulated, compared, shown));
    let windows = SIMULATION.histograms.iter().map(|shown| histogram(simulated, shown));
    vec![
        text.section("measurements").with(window_table(simulated, compared)),
        text.section("machines").with_all(curves(&SIMULATION.machine_curves)),
        text.section("lengths").with(window_length_plot(simulated)).with(length_plot(simulated)),
        text.section("firmware").with_all(curves(&SIMULATION.firmware_curves)),
        text.section("windows").with_all(windows),
        text.section("model").shown(firmware_table()).with(machine_table(simulated)),
        text.section("fit").with(fit_table()),
        text.section("serial").with(serial_table()),
    ]
}

fn window_table(simulated: &Simulated, compared: &[Compared]) -> Table {
    let mut table = Table::of(
        "Window sizes used with k = 7 and 256 information octets: mean and share of each size in 64 KB",
        "firmware or controller|clock (MHz)|# rate (bit/s)|# mean (frames)|# of 1|# of 2|# of 3|# of 4|# of 5|# of 6|# of 7",
    );
    for Compared { row, cases, samples, .. } in compared.iter().filter(|compared| compared.figure == "window")
    {
        let (who, rate) = ([&row.who, &row.clock].map(Cell::text), Cell::number(cases[0].rate_bps as f64));
        let mean = [rate, Cell::precise(samples[0], 1)];
        table.row(who.into_iter().chain(mean).chain(simulated.windows(cases[0]).1.map(Cell::percent)));
    }
    table
}

fn firmware_table() -> Table {
    let allowed = |at: usize, part: fn(Constants) -> f64, decimals| {
        Cell::text(range(edges(&PROGRAMS[at].constants_of).into_iter().map(part), decimals))
    };
    Table::of_csv(
        "Firmware: the two constants used (middle of the allowed range) and the memory limit (derived), without which \
         the memory of the controller is the limit; other properties from the paper, except the P bit of Z80 firmware, \
         which is assumed",
        "firmware|constants of|# building frames (1000 cycles per octet)|# turnaround (million cycles)|# memory limit \
         (octets)|sets the P bit|waits for T2 or 7 frames|window grows from 1|allowed, per octet|allowed, per turnaround",
        FIRMWARE,
        |at| vec![allowed(at, |point| point.0, 0), allowed(at, |point| point.1, 2)],
    )
}

fn machine_table(simulated: &Simulated) -> Table {
    let at = |machine: &Machine, rate_bps: u64| match machine.wireless_bps >= rate_bps {
        true => Cell::precise(simulated.throughput(Case::delivered(&machine.name, rate_bps)), 0),
        false => Cell::empty(),
    };
    Table::of_csv(
        "Controllers of Tables 1 and 2, and throughput between two of the same kind at k = 7",
        "controller|# clock (MHz)|processor|# work per cycle (of a Z80's)|# memory (KB)|# serial line (bit/s)|# highest \
         rate (bit/s)|delivered with|# at 1200 (bit/s)|# at 9600 (bit/s)|# at 38,400 (bit/s)",
        CONTROLLERS,
        |row| RATES_BPS.map(|rate_bps| at(&MACHINES[row], rate_bps)).into(),
    )
}

/// Statements from which the constants come, with the seeds of the search.
fn fit_table() -> Table {
    let mut table = Table::of(
        "Statements about 1200 bit/s that the constants must satisfy; statements of order are evaluated against the \
         constants used for the other firmware",
        "firmware|controller|what|published, interpreted|# from|# to|# simulated|holds",
    );
    let fit = Fit::default();
    for row in rows() {
        let compared = row.compare(|point| value(point, &fit));
        let (ours, over) = (case(&row.of), row.over.as_ref().map(case));
        // A gain is shown as a ratio, an order between firmware versions by both figures.
        let gain = over.filter(|over| over.program == ours.program);
        let unit = compared.over.filter(|_| gain.is_some()).unwrap_or(1.0);
        let what = match (name_of(&row.of), gain) {
            ("window", _) => "window (frames)".into(),
            ("beyond-five", _) => "windows over 5 (share)".into(),
            (_, Some(over)) => format!("sender, k = {} over k = {}", ours.window, over.window),
            _ => format!("{} (bit/s)", ours.role.word()),
        };
        let shown = |value: f64| Cell::precise(value / unit, if value / unit > 100.0 { 0 } else { 2 });
        let [from, to] = compared.bounds.map(|end| end.map_or_else(Cell::empty, shown));
        let holds = match compared.holds() {
            true => Cell::text("yes").toned(Tone::Good),
            false => Cell::text("NO").toned(Tone::Bad),
        };
        let words = row.check.says.as_deref().unwrap_or_default();
        let what = [ours.program, ours.machine, &what, words].map(Cell::text);
        table.row(what.into_iter().chain([from, to, shown(compared.value), holds]));
    }
    table
}

/// Throughput over the window, for controllers or firmware versions.
fn curves(simulated: &Simulated, compared: &[Compared], shown: &Shown) -> Plot {
    let cases = shown.cases();
    let formula = |model: Model| {
        let rate = cases[0].rate_bps as f64;
        let point = |window: u32| Point::new(f64::from(window), model.throughput_bps(rate, window));
        (1..=WINDOW_MAX).map(point).collect::<Vec<Point>>()
    };
    let axes = (Axis::new("window k", "frames"), Axis::new("throughput", "bit/s").from_zero());
    let mut plot = Plot::new(&shown.title, axes.0, axes.1)
        .with(PlotSeries::new("theory, no T2", formula(Model::zielinski())).styled(0))
        .with(PlotSeries::new("theory, T2", formula(with_t2(&cases[0]))).styled(1));
    for (case, style) in cases.iter().zip(2..) {
        let point = |window: u8| Point::of(f64::from(window), &simulated.record(case.with_window(window)));
        let name = if case.role == Role::Both { case.machine } else { case.program };
        let points = (1..=7).map(point).collect();
        plot = plot.with(PlotSeries::new(format!("{name}, simulated"), points).styled(style));
    }
    let here = (cases[0].role, cases[0].rate_bps);
    let is_shown = |Compared { figure, cases, .. }: &&Compared| {
        let of = (cases[0].role, cases[0].rate_bps);
        figure == "throughput" && of.0 == Role::Both && of == here
    };
    for Compared { row, cases: stated, .. } in compared.iter().filter(is_shown) {
        let own = cases.iter().position(|case| stated.contains(case));
        let points = vec![Point::new(f64::from(WINDOW_MAX), row.middle())];
        let series = PlotSeries::new(format!("{}, published", row.who), points).published();
        plot = plot.with(series.styled(own.map_or(0, |own| own + 2)));
    }
    plot
}

fn histogram(simulated: &Simulated, shown: &Shown) -> Plot {
    let (x, y) = (Axis::new("window", "frames"), Axis::new("share of windows", "%").from_zero());
    let group = |case: Case| {
        let name = format!("{}, {} MHz", case.program, figure(find(case.machine).clock_mhz));
        (name, simulated.windows(case).1.map(|share| 100.0 * share).to_vec())
    };
    Plot::bars(&shown.title, x, y, shown.cases().into_iter().map(group))
}

/// Plot of Figures 7 to 9: windows over the frame length.
fn window_length_plot(simulated: &Simulated) -> Plot {
    let (x, y) = (Axis::new("information", "octets"), Axis::new("window", "frames").from_zero());
    let plot = Plot::new("Figures 7 to 9: mean window used at k = 7 by frame length", x, y);
    SIMULATION.window_lengths.iter().fold(plot, |plot, shown| {
        let point = |case: &Case| Point::new(case.information_bytes.into(), simulated.windows(*case).0);
        plot.with(PlotSeries::new(&shown.title, shown.cases().iter().map(point).collect()))
    })
}

fn length_plot(simulated: &Simulated) -> Plot {
    let (x, y) = (Axis::new("information", "octets"), Axis::new("share of the line rate", "%").from_zero());
    let mut plot = Plot::new("Throughput by frame length at k = 7", x, y);
    for (rate, style) in RATES_BPS.map(|rate| rate as f64).into_iter().zip(0..) {
        let point = |information_bytes: u32| {
            let model = Model { information_bytes, ..Model::zielinski() };
            Point::new(information_bytes.into(), 100.0 * model.throughput_bps(rate, WINDOW_MAX) / rate)
        };
        let points = (1..=8).map(|eighth| point(32 * eighth)).collect();
        plot = plot.with(PlotSeries::new(format!("theory, {} bit/s", figure(rate)), points).styled(style));
    }
    for (shown, style) in SIMULATION.throughput_lengths.iter().zip(3..) {
        let share = |case: &Case| 100.0 * simulated.throughput(*case) / case.rate_bps as f64;
        let point = |case: &Case| Point::new(case.information_bytes.into(), share(case));
        let points = shown.cases().iter().map(point).collect();
        plot = plot.with(PlotSeries::new(&shown.title, points).styled(style));
    }
    plot
}
