//! `model ax25`: the tables and the page.

use super::ax25::{Duplex, Model, Spent, WINDOW_MAX};
use crate::finding::Finding;
use crate::format::figure;
use crate::record::{Experiment, FigureKind, Params, Record};
use crate::report::{
    Assumption, Axis, Cell, Column, PageBlock, Plot, PlotSeries, Point, Report, Section, Table,
};

/// Options of the computation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Display name of the preset, with a note about changes.
    pub name: String,
    /// Parameters of the model.
    pub model: Model,
    /// Channel rates, bit/s.
    pub rates_bps: Vec<f64>,
    /// File length, bytes.
    pub file_bytes: u64,
    /// Command that reproduces the page.
    pub command: String,
}

/// Computes the figures for windows of 1 to 7 frames.
pub fn finding(options: &Options) -> Finding {
    let tables: Vec<(f64, Table)> =
        options.rates_bps.iter().map(|rate| (*rate, options.table(*rate))).collect();
    let lead = options.lead();
    let mut summary = vec![PageBlock::Text(lead.clone())];
    summary.extend(tables.iter().flat_map(|(_, table)| {
        [PageBlock::Text(format!("{}:", table.caption)), PageBlock::Table(table.clone())]
    }));
    let section = tables
        .into_iter()
        .fold(Section::new("Windows of 1 to 7 frames"), |section, (_, table)| section.with(table));
    let parts = Spent::PARTS.map(|(name, meaning, _)| format!("{name}: {meaning}")).join("; ");
    Finding {
        experiment: Experiment {
            experiment: "model-ax25".into(),
            seed: 1,
            records: options.records(),
            ..Experiment::default()
        },
        report: Report {
            answer: Vec::new(),
            title: format!("Closed-form model of connected-mode AX.25: {}", options.name),
            lead,
            command: options.command.clone(),
            facts: vec![("file".into(), format!("{} bytes", figure(options.file_bytes as f64)))],
            sections: vec![section.with(options.plot()).with(format!("The columns of times: {parts}."))],
            assumptions: Assumption::of_csv(include_str!("assumptions.csv")),
        },
        summary,
        ..Finding::default()
    }
}

impl Options {
    fn windows(&self) -> impl Iterator<Item = u32> + use<> {
        1..=WINDOW_MAX
    }

    fn lead(&self) -> String {
        let duplex = if self.model.duplex == Duplex::Full { "full" } else { "half" };
        format!(
            "{} bytes over connected-mode AX.25, {duplex} duplex, model `{}`, {} information bytes per frame. \
             Steady-state throughput excludes the start and end of the transfer.",
            figure(self.file_bytes as f64),
            self.name,
            self.model.information_bytes
        )
    }

    /// Table with a row for each window, and the parts of the time that any window has.
    fn table(&self, rate_bps: f64) -> Table {
        let spent: Vec<Spent> = self.windows().map(|window| self.transfer(rate_bps, window)).collect();
        let has = |part: fn(&Spent) -> f64| spent.iter().any(|spent| part(spent) > 0.0);
        let parts: Vec<_> = Spent::PARTS.into_iter().filter(|(.., part)| has(*part)).collect();
        let columns = "# k|# cycles|# transfer (s)|# throughput (bit/s)|# steady state (bit/s)";
        let mut table = Table::of(format!("At {} bit/s", figure(rate_bps)), columns);
        table.columns.extend(parts.iter().map(|(name, ..)| Column::number(*name, "s")));
        for (window, spent) in self.windows().zip(&spent) {
            let cells = [
                Cell::number(f64::from(window)),
                Cell::number(self.model.cycles(window, self.file_bytes) as f64),
                Cell::precise(spent.total_s(), 2),
                Cell::precise(self.goodput_bps(spent), 0),
                Cell::precise(self.model.throughput_bps(rate_bps, window), 0),
            ];
            let times = parts.iter().map(|(.., part)| Cell::precise(part(spent), 2));
            table.row(cells.into_iter().chain(times));
        }
        table
    }

    fn transfer(&self, rate_bps: f64, window: u32) -> Spent {
        self.model.transfer(rate_bps, window, self.file_bytes)
    }

    fn goodput_bps(&self, spent: &Spent) -> f64 {
        let total_s = spent.total_s();
        if total_s > 0.0 { 8.0 * self.file_bytes as f64 / total_s } else { 0.0 }
    }

    fn records(&self) -> Vec<Record> {
        let points = self.rates_bps.iter().flat_map(|rate| self.windows().map(move |window| (*rate, window)));
        let of_point = |(rate, window): (f64, u32)| {
            let spent = self.transfer(rate, window);
            let params = || {
                Params::new()
                    .with("rate_bps", rate)
                    .with("window", window)
                    .with("file_bytes", self.file_bytes)
                    .with("model", self.name.as_str())
            };
            let record = |metric: &str, unit: &str, value: f64| {
                Record::of("ax25", params(), metric, unit, &[value]).with_kind(FigureKind::ClosedForm)
            };
            let mut records = vec![
                record("cycles", "", self.model.cycles(window, self.file_bytes) as f64),
                record("transfer_s", "s", spent.total_s()),
                record("goodput_bit_per_s", "bit/s", self.goodput_bps(&spent)),
                record("throughput_without_end_bit_per_s", "bit/s", self.model.throughput_bps(rate, window)),
            ];
            let part = |(name, _, part): (&str, &str, fn(&Spent) -> f64)| {
                record(&format!("{}_s", name.to_lowercase().replace('-', "_")), "s", part(&spent))
            };
            records.extend(Spent::PARTS.map(part));
            records
        };
        points.flat_map(of_point).collect()
    }

    fn plot(&self) -> Plot {
        let plot = Plot::new(
            "Throughput of the file",
            Axis::new("window k", "frames"),
            Axis::new("share of the line rate", "%").from_zero(),
        );
        self.rates_bps.iter().enumerate().fold(plot, |plot, (index, rate)| {
            let point = |window: u32| {
                let spent = self.transfer(*rate, window);
                Point::new(f64::from(window), 100.0 * self.goodput_bps(&spent) / rate)
            };
            let name = format!("{} bit/s", figure(*rate));
            plot.with(PlotSeries::new(name, self.windows().map(point).collect()).styled(index))
        })
    }
}
