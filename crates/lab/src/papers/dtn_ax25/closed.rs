//! Results without a channel: the published model, and its explanation of the remaining time.

use super::{FILE_BYTES, MODEL, ROWS, Row, TURNING, params};
use crate::model::ax25::{Csma, LastFrame, Model, Stuffed, Stuffing, Tail};
use crate::papers::text::Text;
use crate::record::{FigureKind, Record};

pub(super) fn time_s(model: &Model, row: &Row) -> f64 {
    model.transfer(row.rate_bps, row.window, FILE_BYTES).total_s()
}

/// Metrics with units of the published convergence layer: cycles, time beyond the model, and the same per cycle.
fn difference(row: &Row) -> [(&'static str, &'static str, f64); 3] {
    let model = Model::ronan_2011();
    let cycles = model.cycles(row.window, FILE_BYTES) as f64;
    let difference_s = row.convergence_s - time_s(&model, row);
    let per_cycle_s = difference_s / cycles;
    [("cycles", "", cycles), ("difference_s", "s", difference_s), ("difference_a_cycle_s", "s", per_cycle_s)]
}

/// Published model with a turnaround for the authors' radios, from the first row alone: half of the difference per
/// cycle between measurement and model, because both stations turn once per cycle.
pub(super) fn with_turnaround() -> Model {
    let [.., (_, _, per_cycle_s)] = difference(&ROWS[0]);
    Model { turnaround_s: per_cycle_s / 2.0, ..Model::ronan_2011() }
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
    ROWS.iter().filter(|row| format!("{:.1}", time_s(model, row)) == format!("{:.1}", row.model_s)).count()
}

/// Readings of the printed formulas: name of its words and model.
pub(super) fn readings() -> [(&'static str, Model); 6] {
    let preset = Model::ronan_2011();
    let printed = Model { stuffing: Stuffing::All, ..preset };
    [
        ("preset", preset),
        ("printed", printed),
        ("no-tail", Model { tail: Tail::Data, ..printed }),
        ("no-stuffing", Model { stuffing: Stuffing::None, ..preset }),
        ("256-bytes", Model { information_bytes: 256, ..preset }),
        ("short-last-frame", Model { last_frame: LastFrame::True, ..preset }),
    ]
}

/// Effects of other choices than those of the model, in the order of the assumptions.
pub(super) fn effects(text: &Text) -> [String; 3] {
    let preset = Model::ronan_2011();
    let others = [
        Model { csma: Csma::WaitThenDraw, ..preset },
        Model { last_frame: LastFrame::True, ..preset },
        Model { stuffing: Stuffing::All, ..preset },
    ];
    others.map(|other| {
        let change = |at: usize| 100.0 * (time_s(&other, &ROWS[at]) / time_s(&preset, &ROWS[at]) - 1.0);
        let places = [("slow-1", 0), ("fast-1", 7), ("slow-7", 6), ("fast-7", 13)];
        text.words("effect", &places.map(|(place, at)| (place, format!("{:+.1} %", change(at)))))
    })
}

/// Figures of the model, with and without a turnaround.
pub(super) fn records() -> Vec<Record> {
    let closed = |case: &str, row: &Row, metric: &str, unit: &str, value: f64| {
        Record::of(case, params(row), metric, unit, &[value]).with_kind(FigureKind::ClosedForm)
    };
    let timed = |case: &'static str, model: Model| {
        ROWS.iter().map(move |row| closed(case, row, "transfer_s", "s", time_s(&model, row)))
    };
    // Table VI has the rows at the lower rate.
    let differences = ROWS[..7].iter().flat_map(|row| {
        let case = "published AX.25-CL minus model ronan-2011";
        difference(row).map(|(metric, unit, value)| closed(case, row, metric, unit, value))
    });
    timed(MODEL, Model::ronan_2011()).chain(differences).chain(timed(TURNING, with_turnaround())).collect()
}
