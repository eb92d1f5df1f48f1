//! Figures of transfers by their parameters, as the data files have them.

use super::fleet::{Case, PROGRAMS, Role, SLOW, find};
use super::theory::{full_duplex, with_t2};
use crate::model::ax25::Model;
use crate::record::{Params, Value};
use crate::stats::{least, most};

/// Figures of simulated transfers.
pub(super) trait Values {
    /// Mean throughput, bit/s.
    fn throughput(&self, case: Case) -> f64;

    /// Mean window of a long file, frames, and the shares of windows of 1 to 7 frames.
    fn windows(&self, case: Case) -> (f64, [f64; 7]);
}

fn text<'a>(point: &'a Params, name: &str) -> Option<&'a str> {
    point.get(name).and_then(Value::as_text)
}

pub(super) fn figure(point: &Params) -> &str {
    text(point, "figure").unwrap_or("throughput")
}

/// Returns the transfer: by default of 8 KB, of 64 KB for windows, with k = 7, 256 information octets, the original
/// firmware at both ends, and the rate of its configuration.
pub(super) fn case(point: &Params) -> Case {
    let machine = find(text(point, "machine").unwrap_or("TNC7multi"));
    let role = text(point, "role").map_or(Role::Both, Role::of);
    let program = text(point, "program").unwrap_or(&machine.delivered);
    let case = Case::exchanged(role, program, &machine.name);
    let number =
        |name: &str, usual: u64| point.get(name).and_then(Value::as_f64).map_or(usual, |value| value as u64);
    let case = Case {
        rate_bps: number("rate", case.rate_bps),
        window: number("window", case.window.into()) as u8,
        information_bytes: number("length", case.information_bytes.into()) as u32,
        ..case
    };
    if ["window", "beyond-five", "beyond-six"].contains(&figure(point)) { case.long() } else { case }
}

pub(super) fn value(point: &Params, values: &impl Values) -> f64 {
    let case = case(point);
    let of = |model: Model, window: u8| model.throughput_bps(case.rate_bps as f64, window.into());
    match figure(point) {
        "throughput" => values.throughput(case),
        "step" => values.throughput(case) - values.throughput(case.with_window(case.window - 1)),
        "lead" => lead(case, values),
        "window" => values.windows(case).0,
        "beyond-five" => values.windows(case).1[5..].iter().sum(),
        "beyond-six" => values.windows(case).1[6],
        "theory" => of(Model::zielinski(), case.window),
        "theory-t2" => of(with_t2(&case), case.window),
        "theory-t2-step" => of(with_t2(&case), case.window) - of(with_t2(&case), case.window - 1),
        "theory-full-duplex" => of(full_duplex(), case.window),
        other => panic!("no figure is called {other}"),
    }
}

/// Lead of the best over the worst: of all firmware in this role at 1200 bit/s, or of DLC7 over TNC2D.
fn lead(case: Case, values: &impl Values) -> f64 {
    let of =
        |machine| PROGRAMS[..5].iter().map(move |program| Case::exchanged(case.role, &program.name, machine));
    let compared: Vec<Case> = match case.role {
        Role::Both => ["DLC7", "TNC2D"].map(|machine| Case::delivered(machine, case.rate_bps)).into(),
        _ => SLOW.into_iter().flat_map(of).collect(),
    };
    let all = || compared.iter().map(|case| values.throughput(*case));
    most(all()) / least(all()) - 1.0
}
