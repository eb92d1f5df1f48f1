//! Model of the paper.

use super::fleet::Case;
use crate::model::ax25::{Csma, Duplex, Model, WINDOW_MAX};
use crate::record::{FigureKind, Params, Record};
use crate::report::{Cell, Table};

/// Rates between the controllers, bit/s.
pub(super) const RATES_BPS: [u64; 3] = [1200, 9600, 38_400];

/// Model of equations 1 to 4 with the T2 of a simulated controller.
pub(super) fn with_t2(case: &Case) -> Model {
    Model { t2_s: case.t2_s(), ..Model::zielinski() }
}

/// Model of equations 1 to 4 in full duplex.
pub(super) fn full_duplex() -> Model {
    Model { duplex: Duplex::Full, ..Model::zielinski() }
}

/// Rates of the serial lines, bit/s, and the times that they add, seconds.
pub(super) fn serial_times() -> [(f64, f64); 4] {
    [9600.0, 19_200.0, 57_600.0, 115_200.0].map(|rate| {
        let model = Model { serial_bps: Some(rate), ..Model::zielinski() };
        (rate, model.transfer(1200.0, WINDOW_MAX, 8192).serial_s)
    })
}

pub(super) fn serial_table() -> Table {
    let mut table =
        Table::of("Time added by the serial lines", "# serial rate (bit/s)|# first and last frame (s)");
    for (rate, seconds) in serial_times() {
        table.row([Cell::number(rate), Cell::precise(seconds, 3)]);
    }
    table
}

/// Figures of the model: throughput over the window, and the times of the serial lines.
pub(super) fn records() -> Vec<Record> {
    let closed = |name: &str, params: Params, metric: &str, unit: &str, value: f64| {
        Record::of(name, params, metric, unit, &[value]).with_kind(FigureKind::ClosedForm)
    };
    let mut records = Vec::new();
    for rate in RATES_BPS {
        let with_t2 = with_t2(&Case::delivered("TNC7multi", rate));
        let models =
            [("theory", Model::zielinski()), ("theory, T2", with_t2), ("theory, full duplex", full_duplex())];
        for ((name, model), window) in
            models.into_iter().flat_map(|of| (1..=WINDOW_MAX).map(move |k| (of, k)))
        {
            let params = Params::new().with("rate_bps", rate).with("window", window);
            let ours = model.throughput_bps(rate as f64, window);
            records.push(closed(name, params, "throughput_without_end_bit_per_s", "bit/s", ours));
        }
    }
    let serial = serial_times().map(|(rate, seconds)| {
        closed("theory", Params::new().with("serial_bps", rate), "serial_s", "s", seconds)
    });
    records.into_iter().chain(serial).collect()
}

/// Throughputs with other choices than those of the model, in the order of the assumptions.
pub(super) fn effects() -> [Vec<String>; 4] {
    let choices = [
        (Model { txdelay_s: 0.25, ..Model::zielinski() }, WINDOW_MAX),
        (Model { csma: Csma::WaitThenDraw, ..Model::zielinski() }, WINDOW_MAX),
        (Model { t2_s: 1.0, ..Model::zielinski() }, 6),
        (Model { acknowledgement_bytes: 19, ..Model::zielinski() }, WINDOW_MAX),
    ];
    choices.map(|(model, window)| {
        let at = |rate: u64| format!("{:.0}", model.throughput_bps(rate as f64, window));
        vec![RATES_BPS.map(at).join(", ")]
    })
}
