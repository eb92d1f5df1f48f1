//! Tables V and VII and their plots.

use super::closed::with_turnaround;
use super::simulated::{Simulated, Timed};
use super::{ALL, MOST, Row, TIMES, is_fitted, said, time_s};
use crate::model::ax25::Model;
use crate::record::FigureKind;
use crate::report::{Axis, Cell, Column, Plot, PlotSeries, Point, Table, Tone};

pub(super) fn time_table(simulated: &Simulated) -> Table {
    let mut table = Table::new(
        "Tables V and VII: transfer times of the convergence layer",
        [
            Column::number("rate", "bit/s"),
            Column::number("k", ""),
            Column::number("AX.25-CL, published", "s"),
            Column::number("closed form with turnaround", "s"),
            Column::number("ratio", ""),
            Column::text("verdict"),
            Column::number("AX.25-CL, simulated", "s"),
            Column::number("ratio", ""),
            Column::text("verdict"),
            Column::text("basis"),
        ],
    );
    let model = with_turnaround();
    for (row, record) in TIMES.iter().zip(simulated.bundles.iter().map(Timed::record)) {
        let ours = time_s(&model, row);
        let ratio = |seconds: f64| seconds / row.convergence_s;
        let faint = |kind: FigureKind| Cell::text(kind.to_string()).toned(Tone::Faint);
        table.row([
            Cell::number(row.rate_bps),
            Cell::number(f64::from(row.window)),
            Cell::precise(row.convergence_s, 2),
            Cell::precise(ours, 2),
            Cell::precise(ratio(ours), 2),
            verdict(row, ours),
            Cell::summary(&record.summary()),
            Cell::precise(ratio(record.mean), 2),
            verdict(row, record.mean),
            faint(if is_fitted(row) { FigureKind::Calibrated } else { FigureKind::Predicted }),
        ]);
    }
    table
}

pub(super) fn tcp_table(simulated: &Simulated) -> Table {
    let mut table = Table::new(
        "Tables V and VII: transfer times of TCP/IP",
        [
            Column::number("rate", "bit/s"),
            Column::number("k", ""),
            Column::number("TCP/IP, published", "s"),
            Column::number("FTP over UI frames, simulated", "s"),
            Column::number("ratio", ""),
            Column::text("verdict"),
            Column::text("basis"),
            Column::text("model < AX.25-CL < TCP/IP"),
        ],
    );
    for (index, timed) in simulated.tcp.iter().enumerate() {
        let (row, record) = (timed.row, timed.record());
        table.row([
            Cell::number(row.rate_bps),
            Cell::number(f64::from(row.window)),
            Cell::precise(row.tcp_s, 2),
            Cell::summary(&record.summary()),
            Cell::precise(record.mean / row.tcp_s, 2),
            said(simulated.tcp_is_near(index), "within 20 %", "not within 20 %"),
            Cell::text(FigureKind::Calibrated.to_string()).toned(Tone::Faint),
            said(simulated.is_ordered(index), "yes", "no"),
        ]);
    }
    table
}

/// Verdict on a time compared with the published one of the convergence layer.
pub(super) fn verdict(row: &Row, seconds: f64) -> Cell {
    let error = (seconds / row.convergence_s - 1.0).abs();
    match () {
        () if is_fitted(row) => Cell::text("fitted").toned(Tone::Faint),
        () if error <= MOST => said(true, "within 10 %", ""),
        () if error <= ALL => Cell::text("within 13 %"),
        () => said(false, "", "not within 13 %"),
    }
}

pub(super) fn plot(simulated: &Simulated, rate_bps: f64, title: &str) -> Plot {
    let rows = || TIMES.iter().filter(move |row| row.rate_bps == rate_bps);
    let points =
        |time: &dyn Fn(&Row) -> f64| rows().map(|row| Point::new(f64::from(row.window), time(row))).collect();
    let played = |times: &[Timed]| {
        let here = times.iter().filter(|timed| timed.row.rate_bps == rate_bps);
        here.map(|timed| Point::of(f64::from(timed.row.window), &timed.record())).collect()
    };
    let (model, turning) = (Model::ronan_2011(), with_turnaround());
    Plot::new(title, Axis::new("window k", "frames"), Axis::new("transfer time", "s").from_zero())
        .with(PlotSeries::new("model", points(&|row| time_s(&model, row))).styled(0))
        .with(PlotSeries::new("model with turnaround", points(&|row| time_s(&turning, row))).styled(1))
        .with(PlotSeries::new("AX.25-CL, simulated", played(&simulated.bundles)).styled(2))
        .with(PlotSeries::new("TCP/IP, simulated", played(&simulated.tcp)).styled(3))
        .with(PlotSeries::new("AX.25-CL, published", points(&|row| row.convergence_s)).published().styled(2))
        .with(PlotSeries::new("TCP/IP, published", points(&|row| row.tcp_s)).published().styled(3))
}
