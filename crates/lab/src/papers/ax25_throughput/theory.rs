//! Model of the paper, and the statements of the paper about it.

use super::fleet::Case;
use super::published::THEORY;
use crate::format::figure;
use crate::model::ax25::{Csma, Duplex, Model, WINDOW_MAX};
use crate::record::{FigureKind, Params, Record};
use crate::report::{Assumption, Cell, Column, Table};

/// Rates between the controllers, bit/s.
pub(super) const RATES_BPS: [f64; 3] = [1200.0, 9600.0, 38_400.0];
/// Tolerance of `about 1000 bit/s`, as a share.
pub(super) const ABOUT: f64 = 0.05;

/// Model of equations 1 to 4.
pub(super) fn theory() -> Model {
    Model::zielinski()
}

/// The same model with the T2 of the simulated controllers.
pub(super) fn with_t2(rate_bps: f64) -> Model {
    Model { t2_s: Case::t2_s(rate_bps, theory().information_bytes), ..theory() }
}

/// Statement about the model, whether it holds, and its numbers.
pub(super) type TheoryClaim = (&'static str, bool, String);

pub(super) fn claims() -> Vec<TheoryClaim> {
    let at = |model: Model, rate: f64, window: u32| model.throughput_bps(rate, window);
    let windows = || RATES_BPS.into_iter().flat_map(|rate| (1..WINDOW_MAX).map(move |window| (rate, window)));
    let grows = |model: &dyn Fn(f64) -> Model| {
        windows().all(|(rate, window)| at(model(rate), rate, window) < at(model(rate), rate, window + 1))
    };
    let step = |model: Model, rate: f64, to: u32| at(model, rate, to) - at(model, rate, to - 1);
    let full = Model { duplex: Duplex::Full, ..theory() };
    let alike =
        RATES_BPS.into_iter().all(|rate| (3..=WINDOW_MAX).all(|k| at(full, rate, k) == at(full, rate, 2)));
    let steps = |rate: f64| {
        let model = with_t2(rate);
        format!("{:+.0} after {:+.0} at {}", step(model, rate, 7), step(model, rate, 6), figure(rate))
    };
    vec![
        (
            "Decreasing the window always increases the overhead.",
            grows(&|_| theory()) && grows(&with_t2),
            "throughput grows with every frame of the window, at all three rates, with T2 and without".into(),
        ),
        (
            "With T2, throughput jumps from k = 6 to 7: at the largest window the receiver does not wait.",
            RATES_BPS
                .into_iter()
                .all(|rate| step(with_t2(rate), rate, 7) > 2.0 * step(with_t2(rate), rate, 6)),
            format!("from 6 to 7 frames, and before that from 5 to 6: {}", RATES_BPS.map(steps).join(", ")),
        ),
        (
            "In full duplex the window is not important.",
            alike,
            format!(
                "{:.0} and {:.0} bit/s at 1200 and 9600 from k = 2; for a window of one frame: {:.0} and {:.0}",
                at(full, 1200.0, 7),
                at(full, 9600.0, 7),
                at(full, 1200.0, 1),
                at(full, 9600.0, 1)
            ),
        ),
    ]
}

pub(super) fn serial_table() -> Table {
    let columns = [Column::number("serial rate", "bit/s"), Column::number("first and last frame", "s")];
    let mut table = Table::new("Time added by the serial lines", columns);
    for (rate, seconds) in serial_times() {
        table.row([Cell::number(rate), Cell::precise(seconds, 3)]);
    }
    table
}

pub(super) fn serial_times() -> [(f64, f64); 4] {
    [9600.0, 19_200.0, 57_600.0, 115_200.0].map(|rate| {
        let model = Model { serial_bps: Some(rate), ..theory() };
        (rate, model.transfer(RATES_BPS[0], WINDOW_MAX, 8192).serial_s)
    })
}

pub(super) fn records() -> Vec<Record> {
    let metric = "throughput_without_end_bit_per_s";
    let closed = |name: &str, params: Params, metric: &str, unit: &str, value: f64| {
        Record::of(name, params, metric, unit, &[value]).with_kind(FigureKind::ClosedForm)
    };
    let at = |rate: f64, window: u32| Params::new().with("rate_bps", rate).with("window", window);
    let stated = THEORY.iter().map(|(rate, stated, _, place)| {
        let ours = theory().throughput_bps(*rate, WINDOW_MAX);
        closed("theory", at(*rate, WINDOW_MAX), metric, "bit/s", ours).with_reference(*stated, *place)
    });
    type Of = fn(f64) -> Model;
    let curves: [(&str, Of); 3] = [
        ("theory", |_| theory()),
        ("theory, T2", with_t2),
        ("theory, full duplex", |_| Model { duplex: Duplex::Full, ..theory() }),
    ];
    let curves = curves.into_iter().flat_map(|(name, model)| {
        let points =
            RATES_BPS.into_iter().flat_map(|rate| (1..=WINDOW_MAX).map(move |window| (rate, window)));
        points.map(move |(rate, window)| {
            closed(name, at(rate, window), metric, "bit/s", model(rate).throughput_bps(rate, window))
        })
    });
    let serial = serial_times().into_iter().map(|(rate, seconds)| {
        closed("theory", Params::new().with("serial_bps", rate), "serial_s", "s", seconds)
    });
    stated.chain(curves).chain(serial).collect()
}

pub(super) fn assumptions() -> Vec<Assumption> {
    let at_7 = |model: Model| {
        let values = RATES_BPS.map(|rate| format!("{:.0}", model.throughput_bps(rate, WINDOW_MAX)));
        format!("theory: {} bit/s at k = 7 instead", values.join(", "))
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
            "default of a TNC 2; not given in the paper",
            format!("with 0.25 s, {}", at_7(Model { txdelay_s: 0.25, ..theory() })),
        ),
        assumed(
            "T102 is 0.1 s and the persistence 64/256.",
            "defaults of a TNC 2; not given in the paper",
            format!(
                "with a slot before each draw, as in Dire Wolf, {}",
                at_7(Model { csma: Csma::WaitThenDraw, ..theory() })
            ),
        ),
        assumed(
            "T2 is the time of the longest frame and 0.2 s.",
            "the paper gives none and says that TNC3 calculates its own",
            format!(
                "with 1 s, theory with T2 at k = 6: {} bit/s",
                RATES_BPS
                    .map(|rate| format!("{:.0}", Model { t2_s: 1.0, ..theory() }.throughput_bps(rate, 6)))
                    .join(", ")
            ),
        ),
        assumed(
            "An acknowledgement has 20 octets.",
            "equation 4; with two flags it has 19",
            at_7(Model { acknowledgement_bytes: 19, ..theory() }),
        ),
    ]
}
