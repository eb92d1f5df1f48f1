//! `paper dtn-ax25`: a published evaluation of bundles over connected AX.25, beside TCP/IP over AX.25.
//!
//! "More experiments with Delay and Disruption Tolerant Networking over AX.25 Networks", J. Ronan, D. Long, K. Walsh. A
//! file of 7182 bytes goes from one radio to another at 1200 and at 9600 bit/s, with windows of 1 to 7 frames.
//!
//! Its model is here, to the printed digit, and so is what its own explanation of the rest comes to: one constant for
//! each turn of the channel, taken from one row, predicts the others. Raw AX.25 and the
//! convergence layer run on a simulated channel; TCP/IP is named as missing.

use crate::convergence::bundle_seconds;
use crate::finding::Finding;
use crate::model::ax25::{Csma, LastFrame, Model, Stuffed, Stuffing, Tail};
use crate::packets::Transfer;
use crate::progress::Progress;
use crate::record::{Experiment, Kind, Params, Record, Run};
use crate::report::{
    Assumption, Axis, Block, Cell, Column, Plot, PlotSeries, Point, Report, Section, Table, Tone, figure,
};
use crate::spread::spread;
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::time::Duration;
use longwire_sim::{Access, RadioConfig, StationConfig};

/// The file, bytes.
const FILE_BYTES: u64 = 7182;
/// The rates, bit/s.
const RATES_BPS: [f64; 2] = [1200.0, 9600.0];
/// Runs a row, if nothing else is asked for: the wait for a slot is drawn, and at 9600 bit/s it is much of the time.
const RUNS: u32 = 40;
/// How near a simulated transfer has to come to the closed form with the same knobs.
const SAME: f64 = 0.02;
/// How near a predicted time has to come to the published one: most of them, and all of them.
const MOST: f64 = 0.10;
const ALL: f64 = 0.13;

/// A row of Tables II and V, or III and VII: what is published for one window, seconds.
struct Row {
    rate_bps: f64,
    window: u32,
    model_s: f64,
    convergence_s: f64,
    tcp_s: f64,
}

const fn row(rate_bps: f64, window: u32, model_s: f64, convergence_s: f64, tcp_s: f64) -> Row {
    Row { rate_bps, window, model_s, convergence_s, tcp_s }
}

/// Tables II, III, V and VII.
const TIMES: [Row; 14] = [
    row(1200.0, 1, 68.0, 110.36, 169.18),
    row(1200.0, 2, 61.2, 82.82, 114.91),
    row(1200.0, 3, 58.8, 73.64, 96.45),
    row(1200.0, 4, 57.8, 70.45, 90.36),
    row(1200.0, 5, 56.9, 65.64, 88.18),
    row(1200.0, 6, 56.4, 63.73, 86.09),
    row(1200.0, 7, 56.4, 64.55, 86.82),
    row(9600.0, 1, 17.4, 56.82, 71.50),
    row(9600.0, 2, 12.2, 33.82, 42.91),
    row(9600.0, 3, 10.4, 25.00, 34.10),
    row(9600.0, 4, 9.7, 24.27, 30.50),
    row(9600.0, 5, 8.9, 18.64, 27.00),
    row(9600.0, 6, 8.6, 16.91, 25.27),
    row(9600.0, 7, 8.6, 16.80, 26.09),
];

/// Table VI: cycles, difference to the model (s) and the same for each cycle (s), by window.
const DIFFERENCES: [(u64, f64, f64); 7] = [
    (29, 42.4, 1.46),
    (15, 21.6, 1.44),
    (10, 14.8, 1.48),
    (8, 12.6, 1.58),
    (6, 8.8, 1.46),
    (5, 7.4, 1.47),
    (5, 8.2, 1.63),
];

/// Whether a figure, printed with so many decimals, is the published one.
fn as_printed(ours: f64, published: f64, decimals: usize) -> bool {
    format!("{ours:.decimals$}") == format!("{published:.decimals$}")
}

fn said(holds: bool, yes: &str, no: &str) -> Cell {
    if holds { Cell::text(yes).toned(Tone::Good) } else { Cell::text(no).toned(Tone::Bad) }
}

fn missing() -> Cell {
    Cell::text("missing").toned(Tone::Faint)
}

fn time_s(model: &Model, row: &Row) -> f64 {
    model.transfer(row.rate_bps, row.window, FILE_BYTES).total_s()
}

/// The published model with the time that each turn takes on the authors' radios, from the first row alone: half of what
/// a cycle took beyond the model, since both stations turn once a cycle.
fn with_turnaround() -> Model {
    let model = Model::ronan_2011();
    let first = &TIMES[0];
    let cycles = model.cycles(first.window, FILE_BYTES) as f64;
    Model { turnaround_s: (first.convergence_s - time_s(&model, first)) / cycles / 2.0, ..model }
}

/// How many of the 14 printed entries a reading of the model gives.
fn entries(model: &Model) -> usize {
    TIMES.iter().filter(|row| as_printed(time_s(model, row), row.model_s, 1)).count()
}

/// The readings of the printed formulas: words and model.
fn readings() -> [(&'static str, Model); 6] {
    let preset = Model::ronan_2011();
    let printed = Model { stuffing: Stuffing::All, ..preset };
    [
        ("63/62 on the 255 information bytes only, the tail in the acknowledgement, too", preset),
        ("the formulas as printed: 63/62 on every frame", printed),
        (
            "as printed, the acknowledgement without the tail, as in its printed sum",
            Model { tail: Tail::Data, ..printed },
        ),
        ("no bit stuffing", Model { stuffing: Stuffing::None, ..preset }),
        ("256 information bytes instead of 255", Model { information_bytes: 256, ..preset }),
        ("the last frame as long as it is, 42 bytes", Model { last_frame: LastFrame::True, ..preset }),
    ]
}

/// How it is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Runs a row, if not 40.
    pub runs: Option<u32>,
    /// The seed, if not 1.
    pub seed: Option<u64>,
    /// Threads.
    pub threads: usize,
}

/// The channel of Table I with persistence as a KISS TNC has it; a station takes `turn_s` seconds to turn from hearing to
/// sending.
fn channel(rate_bps: f64, turn_s: f64) -> RadioConfig {
    let station = StationConfig {
        tx_delay: Duration::from_millis(150),
        tx_tail: Duration::from_millis(20),
        slot_time: Duration::from_millis(20),
        persistence: 63,
        access: Access::DrawThenWait,
        carrier_off: Duration::from_secs_f64(turn_s),
        ..StationConfig::default()
    };
    RadioConfig { rate_bps: rate_bps as u64, stations: vec![station], ..RadioConfig::default() }
}

/// The closed form of that channel: what waits is as drawn, the last frame as long as it is, stuffing counted on the file,
/// and one flag between frames.
fn closed_form(file: &[u8]) -> Model {
    let preset = Model::ronan_2011();
    Model {
        csma: Csma::DrawThenWait,
        last_frame: LastFrame::True,
        stuffing: Stuffing::Exact(Stuffed::count(file, preset.information_bytes)),
        header_bytes: preset.header_bytes - 1,
        acknowledgement_bytes: preset.acknowledgement_bytes - 1,
        ..preset
    }
}

/// A row's runs, seconds.
struct Timed {
    series: &'static str,
    row: &'static Row,
    seeds: Vec<u64>,
    times_s: Vec<f64>,
}

/// What was simulated.
struct Simulated {
    raw: Vec<Timed>,
    /// The closed form of the channel of each row, seconds.
    closed_s: Vec<f64>,
    /// AX.25-CL, with that turn.
    bundles: Vec<Timed>,
    /// What a station takes to turn from hearing to sending, fitted on the first row, seconds.
    turn_s: f64,
}

/// The file and how its runs are drawn.
struct Plan<'a> {
    options: &'a Options,
    progress: &'a Progress,
    seeds: Vec<u64>,
    file: Bytes,
    bundle: Bytes,
}

impl Plan<'_> {
    fn transfer(&self, row: &Row, turn_s: f64) -> Transfer {
        let information_bytes = Model::ronan_2011().information_bytes;
        let (bytes, length) = (self.file.len(), information_bytes as usize);
        Transfer {
            radio: channel(row.rate_bps, turn_s),
            window: row.window as u8,
            information_bytes,
            packets: (0..bytes)
                .step_by(length)
                .map(|at| self.file.slice(at..bytes.min(at + length)))
                .collect(),
        }
    }

    /// All runs of these rows.
    fn play(
        &self,
        series: &'static str,
        rows: &'static [Row],
        run: impl Fn(&'static Row, u64) -> Option<f64> + Sync,
    ) -> Vec<Timed> {
        let runs = self.seeds.len();
        self.progress.expect((rows.len() * runs) as u64);
        let work = |job: usize| {
            run(&rows[job / runs], self.seeds[job % runs]).expect("a channel without errors delivers")
        };
        let times = spread(rows.len() * runs, self.options.threads, work, |_| self.progress.advance(1));
        let of_row = |(row, times): (&'static Row, &[f64])| Timed {
            series,
            row,
            seeds: self.seeds.clone(),
            times_s: times.to_vec(),
        };
        rows.iter().zip(times.chunks(runs)).map(of_row).collect()
    }

    fn bundles(&self, rows: &'static [Row], turn_s: f64) -> Vec<Timed> {
        self.play(BUNDLES, rows, |row, seed| bundle_seconds(&self.transfer(row, turn_s), &self.bundle, seed))
    }

    /// The turn that gives the first row its published time. Each turn takes what it takes, so the time is a straight
    /// line of it but for the drawn waits, which are the same.
    fn fitted_turn_s(&self) -> f64 {
        const TRIED_S: f64 = 0.5;
        let mean = |turn_s: f64| self.bundles(&TIMES[..1], turn_s)[0].record().mean;
        let (without, with) = (mean(0.0), mean(TRIED_S));
        TRIED_S * (TIMES[0].convergence_s - without) / (with - without)
    }
}

/// Raw AX.25 and the convergence layer in every row, the file of random bytes.
fn simulate(options: &Options, progress: &Progress) -> Simulated {
    let rng = Rng::new(options.seed.unwrap_or(1));
    let mut bundle = vec![0; FILE_BYTES as usize + BUNDLE_HEADER_BYTES];
    rng.fork("file").fill(&mut bundle);
    let bundle = Bytes::from(bundle);
    let runs = options.runs.unwrap_or(RUNS).max(1);
    let plan = Plan {
        options,
        progress,
        seeds: (0..runs).map(|run| rng.fork(&format!("run {run}")).next_u64()).collect(),
        file: bundle.slice(BUNDLE_HEADER_BYTES..),
        bundle,
    };
    let turn_s = plan.fitted_turn_s();
    let model = closed_form(&plan.file);
    Simulated {
        raw: plan.play(RAW, &TIMES, |row, seed| plan.transfer(row, 0.0).seconds(seed)),
        closed_s: TIMES.iter().map(|row| time_s(&model, row)).collect(),
        bundles: plan.bundles(&TIMES, turn_s),
        turn_s,
    }
}

impl Timed {
    fn record(&self) -> Record {
        Record::of(self.series, params(self.row), "transfer_s", "s", &self.times_s)
    }

    fn rows(&self) -> impl Iterator<Item = Run> {
        let runs = self.seeds.iter().zip(&self.times_s).zip(0..);
        runs.map(|((seed, seconds), run)| Run {
            series: self.series.into(),
            params: params(self.row),
            run,
            seed: *seed,
            values: vec![("transfer_s".into(), *seconds)],
        })
    }
}

impl Simulated {
    /// How far a row of raw AX.25 is from the closed form, as a share.
    fn off(&self, index: usize) -> f64 {
        self.raw[index].record().mean / self.closed_s[index] - 1.0
    }

    /// How far a row of the convergence layer is from the published time, as a share.
    fn error(&self, index: usize) -> f64 {
        self.bundles[index].record().mean / TIMES[index].convergence_s - 1.0
    }

    fn rows_within(&self, bound: f64) -> usize {
        (1..TIMES.len()).filter(|index| self.error(*index).abs() <= bound).count()
    }

    fn records(&self) -> Vec<Record> {
        let raw = self.raw.iter().map(|timed| {
            timed.record().with_reference(timed.row.model_s, table_of(timed.row, "Table II", "Table III"))
        });
        let bundles = self.bundles.iter().map(|timed| {
            let source = table_of(timed.row, "Table V, AX.25-CL", "Table VII, AX.25-CL");
            let kind = if is_fitted(timed.row) { Kind::Calibrated } else { Kind::Predicted };
            timed.record().with_reference(timed.row.convergence_s, source).with_kind(kind)
        });
        raw.chain(bundles).collect()
    }
}

/// The row that constants are taken from.
fn is_fitted(row: &Row) -> bool {
    std::ptr::eq(row, &TIMES[0])
}

fn table_of(row: &Row, slow: &'static str, fast: &'static str) -> &'static str {
    if row.rate_bps == RATES_BPS[0] { slow } else { fast }
}

/// The series of the convergence layer.
const BUNDLES: &str = "AX.25-CL, simulated";
/// What a bundle adds to its file in version 6 with short names, bytes: not published.
const BUNDLE_HEADER_BYTES: usize = 90;
/// The series of raw AX.25.
const RAW: &str = "raw AX.25, simulated";

fn raw_table(simulated: &Simulated) -> Table {
    let mut table = Table::new(
        "Raw AX.25 on a simulated channel, from the wish to send to the last acknowledgement",
        [
            Column::number("rate", "bit/s"),
            Column::number("k", ""),
            Column::number("simulated", "s"),
            Column::number("closed form, same channel", "s"),
            Column::number("difference", ""),
            Column::text("within 2 %"),
            Column::number("Tables II and III", "s"),
        ],
    );
    for (index, raw) in simulated.raw.iter().enumerate() {
        table.row([
            Cell::number(raw.row.rate_bps),
            Cell::number(f64::from(raw.row.window)),
            Cell::summary(&raw.record().summary()),
            Cell::precise(simulated.closed_s[index], 2),
            Cell::percent(simulated.off(index)),
            said(simulated.off(index).abs() <= SAME, "yes", "NO"),
            Cell::precise(raw.row.model_s, 1),
        ]);
    }
    table
}

/// The page, the figures and what a terminal shows.
pub fn reproduce(options: &Options, progress: &Progress) -> Finding {
    let simulated = simulate(options, progress);
    let runs = simulated.raw[0].times_s.len();
    let seed = options.seed.unwrap_or(1);
    let lead = lead(&simulated);
    let sections = vec![
        Section::new("Tables II and III: the model")
            .with(model_table())
            .with(
                "The tables follow neither the printed formulas nor the printed sums. Of the readings below one gives all \
                 entries, and it is the preset `ronan-2011` of `longwire model ax25`.",
            )
            .with(reading_table()),
        Section::new("The same transfer on a simulated channel")
            .with(
                "Two stations, AX.25 2.0, no errors. They draw for slots as KISS TNCs do, which takes 60 ms on average for the \
                 paper's slot time and persistence; its model has 5 ms.",
            )
            .with(raw_table(&simulated)),
        Section::new("Table VI: what each turn of the channel took").with(difference_table()),
        Section::new("Tables V and VII: the convergence layer and TCP/IP")
            .with(
                "The paper suggests one constant for each turn, from buffering and slow controllers. It is taken from the \
                 first row, once for the closed form, which says how much of the rest is turns, and once for the convergence \
                 layer itself on a simulated channel, from the call to the acknowledgement of the bundle.",
            )
            .with(time_table(&simulated))
            .with(MISSING)
            .with(plot(RATES_BPS[0], "Figure 4: transfer times at 1200 bit/s"))
            .with(plot(RATES_BPS[1], "Figure 5: transfer times at 9600 bit/s")),
    ];
    Finding {
        summary: summary(&lead, &simulated),
        experiment: Experiment {
            experiment: "dtn-ax25".into(),
            seed,
            records: records().into_iter().chain(simulated.records()).collect(),
            runs: simulated.raw.iter().chain(&simulated.bundles).flat_map(Timed::rows).collect(),
        },
        report: Report {
            title: "Bundles over connected AX.25: a published evaluation, reproduced".into(),
            lead,
            command: format!("longwire paper dtn-ax25 --seed {seed} --runs {}", runs),
            facts: vec![
                ("runs a row".into(), runs.to_string()),
                ("seed".into(), seed.to_string()),
                ("file".into(), format!("{} bytes", figure(FILE_BYTES as f64))),
                (
                    "published in".into(),
                    "J. Ronan, D. Long, K. Walsh: More experiments with Delay and Disruption Tolerant Networking over AX.25 \
                     Networks"
                        .into(),
                ),
            ],
            sections,
            assumptions: assumptions(),
        },
        traces: Vec::new(),
    }
}

/// What a terminal shows.
fn summary(lead: &str, simulated: &Simulated) -> Vec<Block> {
    let tables = [model_table(), raw_table(simulated), difference_table(), time_table(simulated)];
    let with_caption = |table: Table| [Block::Text(format!("{}:", table.caption)), Block::Table(table)];
    let text = |text: &str| [Block::Text(text.to_owned())];
    text(lead).into_iter().chain(tables.into_iter().flat_map(with_caption)).chain(text(MISSING)).collect()
}

/// What this page does not show.
const MISSING: &str =
    "Missing: TCP/IP over AX.25 is not run here, so no figure of this page speaks for its column.";

/// The rows that the constant was not taken from.
fn predicted() -> impl Iterator<Item = &'static Row> {
    TIMES.iter().skip(1)
}

fn lead(simulated: &Simulated) -> String {
    let same = (0..TIMES.len()).filter(|index| simulated.off(*index).abs() <= SAME).count();
    let model = with_turnaround();
    let differences = DIFFERENCES.iter().zip(&TIMES).filter(|(printed, row)| difference_holds(printed, row));
    let error = |row: &Row| (time_s(&model, row) / row.convergence_s - 1.0).abs();
    let within = |bound: f64| predicted().filter(|row| error(row) <= bound).count();
    format!(
        "{} of the 14 entries of Tables II and III and {} of the 7 rows of Table VI come out to the printed digit. With {:.3} s \
         at each turn, from one row, the closed form meets {} of the other 13 times of the convergence layer within {:.0} % \
         and {} within {:.0} %. Raw AX.25 on a simulated channel is within {:.0} % of the closed form of that channel in \
         {same} of 14 rows; AX.25-CL, with {:.3} s at each turn from one row, is within {:.0} % of {} of the other 13 times and \
         within {:.0} % of {}.",
        entries(&Model::ronan_2011()),
        differences.count(),
        model.turnaround_s,
        within(MOST),
        100.0 * MOST,
        within(ALL),
        100.0 * ALL,
        100.0 * SAME,
        simulated.turn_s,
        100.0 * MOST,
        simulated.rows_within(MOST),
        100.0 * ALL,
        simulated.rows_within(ALL)
    )
}

fn model_table() -> Table {
    let mut table = Table::new(
        "Tables II and III: time for 7182 bytes over raw AX.25",
        [
            Column::number("rate", "bit/s"),
            Column::number("k", ""),
            Column::number("published", "s"),
            Column::number("ours", "s"),
            Column::text("to the printed digit"),
        ],
    );
    for row in &TIMES {
        let ours = time_s(&Model::ronan_2011(), row);
        table.row([
            Cell::number(row.rate_bps),
            Cell::number(f64::from(row.window)),
            Cell::precise(row.model_s, 1),
            Cell::precise(ours, 3),
            said(as_printed(ours, row.model_s, 1), "yes", "NO"),
        ]);
    }
    table
}

fn reading_table() -> Table {
    let columns = [Column::text("reading"), Column::number("entries of 14", "")];
    let mut table = Table::new("How many entries each reading gives", columns);
    for (words, model) in readings() {
        table.row([Cell::text(words), Cell::number(entries(&model) as f64)]);
    }
    table
}

/// Cycles, difference and difference a cycle, as the model has them.
fn difference(row: &Row) -> (u64, f64, f64) {
    let model = Model::ronan_2011();
    let cycles = model.cycles(row.window, FILE_BYTES);
    let difference_s = row.convergence_s - time_s(&model, row);
    (cycles, difference_s, difference_s / cycles as f64)
}

fn difference_holds(printed: &(u64, f64, f64), row: &Row) -> bool {
    let ours = difference(row);
    ours.0 == printed.0 && as_printed(ours.1, printed.1, 1) && as_printed(ours.2, printed.2, 2)
}

fn difference_table() -> Table {
    let mut table = Table::new(
        "Table VI: measured time less the model's, at 1200 bit/s",
        [
            Column::number("k", ""),
            Column::number("cycles", ""),
            Column::number("ours", ""),
            Column::number("difference", "s"),
            Column::number("ours", "s"),
            Column::number("a cycle", "s"),
            Column::number("ours", "s"),
            Column::text("to the printed digit"),
        ],
    );
    for (printed, row) in DIFFERENCES.iter().zip(&TIMES) {
        let ours = difference(row);
        table.row([
            Cell::number(f64::from(row.window)),
            Cell::number(printed.0 as f64),
            Cell::number(ours.0 as f64),
            Cell::precise(printed.1, 1),
            Cell::precise(ours.1, 3),
            Cell::precise(printed.2, 2),
            Cell::precise(ours.2, 3),
            said(difference_holds(printed, row), "yes", "NO"),
        ]);
    }
    table
}

fn time_table(simulated: &Simulated) -> Table {
    let mut table = Table::new(
        "Tables V and VII: transfer times",
        [
            Column::number("rate", "bit/s"),
            Column::number("k", ""),
            Column::number("AX.25-CL, published", "s"),
            Column::number("closed form with turns", "s"),
            Column::number("ratio", ""),
            Column::text("verdict"),
            Column::text("basis"),
            Column::number("AX.25-CL, simulated", "s"),
            Column::number("ratio", ""),
            Column::text("verdict"),
            Column::text("basis"),
            Column::number("TCP/IP, published", "s"),
            Column::text("TCP/IP, simulated"),
        ],
    );
    let model = with_turnaround();
    for (row, record) in TIMES.iter().zip(simulated.bundles.iter().map(Timed::record)) {
        let ours = time_s(&model, row);
        let ratio = |seconds: f64| seconds / row.convergence_s;
        let faint = |kind: Kind| Cell::text(kind.to_string()).toned(Tone::Faint);
        table.row([
            Cell::number(row.rate_bps),
            Cell::number(f64::from(row.window)),
            Cell::precise(row.convergence_s, 2),
            Cell::precise(ours, 2),
            Cell::precise(ratio(ours), 2),
            verdict(row, ours),
            faint(kind_of(row)),
            Cell::summary(&record.summary()),
            Cell::precise(ratio(record.mean), 2),
            verdict(row, record.mean),
            faint(if is_fitted(row) { Kind::Calibrated } else { Kind::Predicted }),
            Cell::precise(row.tcp_s, 2),
            missing(),
        ]);
    }
    table
}

/// How near a time is to the published one of the convergence layer.
fn verdict(row: &Row, seconds: f64) -> Cell {
    let error = (seconds / row.convergence_s - 1.0).abs();
    match () {
        () if is_fitted(row) => Cell::text("fitted").toned(Tone::Faint),
        () if error <= MOST => said(true, "within 10 %", ""),
        () if error <= ALL => Cell::text("within 13 %"),
        () => said(false, "", "NOT within 13 %"),
    }
}

fn kind_of(row: &Row) -> Kind {
    if is_fitted(row) { Kind::Calibrated } else { Kind::ClosedForm }
}

fn plot(rate_bps: f64, title: &str) -> Plot {
    let rows = || TIMES.iter().filter(move |row| row.rate_bps == rate_bps);
    let points =
        |time: &dyn Fn(&Row) -> f64| rows().map(|row| Point::new(f64::from(row.window), time(row))).collect();
    let (model, turning) = (Model::ronan_2011(), with_turnaround());
    Plot::new(title, Axis::new("window k", "frames"), Axis::new("transfer time", "s").from_zero())
        .with(PlotSeries::new("model", points(&|row| time_s(&model, row))).styled(0))
        .with(PlotSeries::new("model with turns", points(&|row| time_s(&turning, row))).styled(1))
        .with(PlotSeries::new("AX.25-CL, published", points(&|row| row.convergence_s)).published().styled(1))
        .with(PlotSeries::new("TCP/IP, published", points(&|row| row.tcp_s)).published().styled(2))
}

fn params(row: &Row) -> Params {
    Params::new().with("rate_bps", row.rate_bps).with("window", row.window).with("file_bytes", FILE_BYTES)
}

fn records() -> Vec<Record> {
    let closed = |series: &str, row: &Row, metric: &str, unit: &str, value: f64| {
        Record::of(series, params(row), metric, unit, &[value]).with_kind(Kind::ClosedForm)
    };
    let modelled = TIMES.iter().map(|row| {
        closed("model ronan-2011", row, "transfer_s", "s", time_s(&Model::ronan_2011(), row))
            .with_reference(row.model_s, table_of(row, "Table II", "Table III"))
    });
    let differences = DIFFERENCES.iter().zip(&TIMES).flat_map(|(printed, row)| {
        let ours = difference(row);
        let series = "AX.25-CL as published, less model ronan-2011";
        [
            closed(series, row, "cycles", "", ours.0 as f64).with_reference(printed.0 as f64, "Table VI"),
            closed(series, row, "difference_s", "s", ours.1).with_reference(printed.1, "Table VI"),
            closed(series, row, "difference_a_cycle_s", "s", ours.2).with_reference(printed.2, "Table VI"),
        ]
    });
    let turning = with_turnaround();
    let predicted = TIMES.iter().map(|row| {
        closed("model ronan-2011 with turns", row, "transfer_s", "s", time_s(&turning, row))
            .with_reference(row.convergence_s, table_of(row, "Table V, AX.25-CL", "Table VII, AX.25-CL"))
            .with_kind(kind_of(row))
    });
    modelled.chain(differences).chain(predicted).collect()
}

fn assumptions() -> Vec<Assumption> {
    let preset = Model::ronan_2011();
    let moved = |other: Model| {
        let change = |row: &Row| (time_s(&other, row) / time_s(&preset, row) - 1.0) * 100.0;
        format!(
            "the model's times change by {:+.1} % (1200 bit/s) and {:+.1} % (9600 bit/s) at k = 1, by {:+.1} % and {:+.1} % at k = 7",
            change(&TIMES[0]),
            change(&TIMES[7]),
            change(&TIMES[6]),
            change(&TIMES[13])
        )
    };
    let assumed = |text: &str, basis: &str, effect: String| Assumption {
        text: text.into(),
        basis: basis.into(),
        effect: Some(effect),
        moves_result: true,
    };
    vec![
        assumed(
            "A station waits for a slot 5 ms on average.",
            "the paper's p times slot time; a station that waits a slot before each draw, as Dire Wolf does, takes 80 ms",
            moved(Model { csma: Csma::WaitThenDraw, ..preset }),
        ),
        assumed(
            "All 29 frames are full.",
            "no entry of the tables has the last one at its 42 bytes",
            moved(Model { last_frame: LastFrame::True, ..preset }),
        ),
        assumed(
            "Bits are stuffed into information only.",
            "the printed formulas say otherwise, and give other tables",
            moved(Model { stuffing: Stuffing::All, ..preset }),
        ),
        assumed(
            "What the convergence layer took beyond the model is turns alone, the same for every row.",
            "the paper's own explanation; fitted on one row",
            "the ratios of Tables V and VII say how far it goes".into(),
        ),
        assumed(
            "A bundle is 90 bytes longer than its file, and each frame carries 255 bytes.",
            "version 6 with short names; the paper does not say",
            "the turn is fitted with them: they move the other rows by less than they are long".into(),
        ),
        assumed(
            "The simulated layer is timed from the call to the bundle's acknowledgement; a turn is the time until a station \
             takes the channel for clear, and storage takes none.",
            "the paper says neither what was timed nor where its turns come from",
            "what they take is in the turn, which is fitted with them".into(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_the_model_is_the_published_one() {
        let of_model = |record: &&Record| !record.series.ends_with("with turns");
        let (mut seen, records) = (0, records());
        for record in records.iter().filter(of_model) {
            let decimals = match record.metric.as_str() {
                "cycles" => 0,
                "difference_a_cycle_s" => 2,
                _ => 1,
            };
            let published = record.reference.expect("each has one");
            assert!(as_printed(record.mean, published, decimals), "{record:?}");
            seen += 1;
        }
        assert_eq!(seen, 14 + 21);
    }

    #[test]
    fn one_reading_gives_all_entries_and_no_other_does() {
        let found = readings().map(|(_, model)| entries(&model));
        assert_eq!(found[0], 14);
        assert!(found[1..].iter().all(|entries| *entries < 8), "{found:?}");
    }

    /// One constant of one row: twelve of the other thirteen within a tenth, all within 13 %.
    #[test]
    fn turns_explain_the_convergence_layer() {
        let model = with_turnaround();
        assert!((time_s(&model, &TIMES[0]) / TIMES[0].convergence_s - 1.0).abs() < 1e-9);
        let errors: Vec<f64> =
            predicted().map(|row| (time_s(&model, row) / row.convergence_s - 1.0).abs()).collect();
        assert_eq!(errors.len(), 13);
        assert!(errors.iter().filter(|error| **error <= MOST).count() >= 12, "{errors:?}");
        assert!(errors.iter().all(|error| *error <= ALL), "{errors:?}");
    }

    #[test]
    fn what_is_not_simulated_is_called_missing() {
        let table = time_table(&few());
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        for (index, _) in names.iter().enumerate().filter(|(_, name)| name.starts_with("TCP/IP, sim")) {
            assert!(table.rows.iter().all(|row| row[index].text == "missing" && row[index].value.is_none()));
        }
        assert!(records().iter().all(|record| record.kind != Kind::Predicted));
    }

    #[test]
    fn raw_ax25_takes_what_the_closed_form_of_its_channel_says() {
        let simulated = few();
        assert_eq!(simulated.raw.len(), 14);
        for (index, raw) in simulated.raw.iter().enumerate() {
            let off = simulated.off(index);
            assert!(off.abs() < SAME, "{} bit/s, k = {}: {off}", raw.row.rate_bps, raw.row.window);
        }
    }

    fn few() -> Simulated {
        simulate(&Options { runs: Some(20), seed: None, threads: 2 }, &Progress::new())
    }

    /// One constant of one row predicts the times of the convergence layer within a tenth, but for one row: 24.27 s at 9600
    /// bit/s and k = 4, beside 25.00 s at k = 3, is a miss that the page shows.
    #[test]
    fn the_convergence_layer_takes_what_is_published() {
        let simulated = few();
        let errors: Vec<f64> = (0..TIMES.len()).map(|index| simulated.error(index)).collect();
        assert!(errors[0].abs() < 0.002, "the fit: {errors:?}");
        assert!(simulated.rows_within(MOST) >= 12, "{errors:?}");
        let missed: Vec<(f64, u32)> = TIMES
            .iter()
            .zip(&errors)
            .filter(|(_, error)| error.abs() > ALL)
            .map(|(row, _)| (row.rate_bps, row.window))
            .collect();
        assert_eq!(missed, [(9600.0, 4)], "{errors:?}");
        for record in simulated.records() {
            let fitted = record.series == BUNDLES && record.reference == Some(TIMES[0].convergence_s);
            assert_eq!(record.kind == Kind::Calibrated, fitted, "{record:?}");
        }
    }
}
