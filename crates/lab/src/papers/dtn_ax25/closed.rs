//! Results without a channel: the published model, and its explanation of the remaining time.

use super::{DIFFERENCES, FILE_BYTES, Row, TIMES, as_printed, is_fitted, params, said, table_of, time_s};
use crate::model::ax25::{Csma, LastFrame, Model, Stuffed, Stuffing, Tail};
use crate::record::{FigureKind, Record};
use crate::report::{Cell, Column, Table};

/// Published model with a turnaround for the authors' radios, from the first row alone: half of the difference per
/// cycle between measurement and model, because both stations turn once per cycle.
pub(super) fn with_turnaround() -> Model {
    let model = Model::ronan_2011();
    let first = &TIMES[0];
    let cycles = model.cycles(first.window, FILE_BYTES) as f64;
    Model { turnaround_s: (first.convergence_s - time_s(&model, first)) / cycles / 2.0, ..model }
}

/// Closed form of the simulated channel: mean wait of the simulated persistence, actual length of the last frame,
/// stuffing of the file, and one flag between frames.
pub(super) fn closed_form(file: &[u8]) -> Model {
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

/// Number of the 14 printed entries that a reading of the model reproduces.
pub(super) fn entries(model: &Model) -> usize {
    TIMES.iter().filter(|row| as_printed(time_s(model, row), row.model_s, 1)).count()
}

/// Readings of the printed formulas: description and model.
pub(super) fn readings() -> [(&'static str, Model); 6] {
    let preset = Model::ronan_2011();
    let printed = Model { stuffing: Stuffing::All, ..preset };
    [
        ("factor 63/62 on the 255 information bytes only; acknowledgement with TXTAIL", preset),
        ("the formulas as printed: 63/62 on every frame", printed),
        (
            "as printed, acknowledgement without TXTAIL, as in the printed sum",
            Model { tail: Tail::Data, ..printed },
        ),
        ("no bit stuffing", Model { stuffing: Stuffing::None, ..preset }),
        ("256 information bytes instead of 255", Model { information_bytes: 256, ..preset }),
        ("actual length of the last frame, 42 bytes", Model { last_frame: LastFrame::True, ..preset }),
    ]
}

pub(super) fn model_table() -> Table {
    let mut table = Table::new(
        "Tables II and III: time for 7182 bytes over raw AX.25",
        [
            Column::number("rate", "bit/s"),
            Column::number("k", ""),
            Column::number("published", "s"),
            Column::number("ours", "s"),
            Column::text("exact to the printed digit"),
        ],
    );
    for row in &TIMES {
        let ours = time_s(&Model::ronan_2011(), row);
        table.row([
            Cell::number(row.rate_bps),
            Cell::number(f64::from(row.window)),
            Cell::precise(row.model_s, 1),
            Cell::precise(ours, 3),
            said(as_printed(ours, row.model_s, 1), "yes", "no"),
        ]);
    }
    table
}

pub(super) fn reading_table() -> Table {
    let columns = [Column::text("reading"), Column::number("entries of 14", "")];
    let mut table = Table::new("Table entries reproduced by each reading", columns);
    for (words, model) in readings() {
        table.row([Cell::text(words), Cell::number(entries(&model) as f64)]);
    }
    table
}

/// Cycles, difference and difference per cycle according to the model.
pub(super) fn difference(row: &Row) -> (u64, f64, f64) {
    let model = Model::ronan_2011();
    let cycles = model.cycles(row.window, FILE_BYTES);
    let difference_s = row.convergence_s - time_s(&model, row);
    (cycles, difference_s, difference_s / cycles as f64)
}

pub(super) fn difference_holds(printed: &(u64, f64, f64), row: &Row) -> bool {
    let ours = difference(row);
    ours.0 == printed.0 && as_printed(ours.1, printed.1, 1) && as_printed(ours.2, printed.2, 2)
}

pub(super) fn difference_table() -> Table {
    let mut table = Table::new(
        "Table VI: measured time minus model time, at 1200 bit/s",
        [
            Column::number("k", ""),
            Column::number("cycles", ""),
            Column::number("ours", ""),
            Column::number("difference", "s"),
            Column::number("ours", "s"),
            Column::number("per cycle", "s"),
            Column::number("ours", "s"),
            Column::text("exact to the printed digit"),
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
            said(difference_holds(printed, row), "yes", "no"),
        ]);
    }
    table
}

pub(super) fn records() -> Vec<Record> {
    let closed = |series: &str, row: &Row, metric: &str, unit: &str, value: f64| {
        Record::of(series, params(row), metric, unit, &[value]).with_kind(FigureKind::ClosedForm)
    };
    let modelled = TIMES.iter().map(|row| {
        closed("model ronan-2011", row, "transfer_s", "s", time_s(&Model::ronan_2011(), row))
            .with_reference(row.model_s, table_of(row, "Table II", "Table III"))
    });
    let differences = DIFFERENCES.iter().zip(&TIMES).flat_map(|(printed, row)| {
        let ours = difference(row);
        let series = "published AX.25-CL minus model ronan-2011";
        [
            closed(series, row, "cycles", "", ours.0 as f64).with_reference(printed.0 as f64, "Table VI"),
            closed(series, row, "difference_s", "s", ours.1).with_reference(printed.1, "Table VI"),
            closed(series, row, "difference_a_cycle_s", "s", ours.2).with_reference(printed.2, "Table VI"),
        ]
    });
    let turning = with_turnaround();
    let predicted = TIMES.iter().map(|row| {
        closed("model ronan-2011 with turnaround", row, "transfer_s", "s", time_s(&turning, row))
            .with_reference(row.convergence_s, table_of(row, "Table V, AX.25-CL", "Table VII, AX.25-CL"))
            .with_kind(kind_of(row))
    });
    modelled.chain(differences).chain(predicted).collect()
}

pub(super) fn kind_of(row: &Row) -> FigureKind {
    if is_fitted(row) { FigureKind::Calibrated } else { FigureKind::ClosedForm }
}
