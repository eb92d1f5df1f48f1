//! Test setup between the hosts and the channel for the convergence layer, and the part that is timed.
//!
//! The paper mentions radios with controllers in KISS mode, serial lines and hosts with the AX.25 of Linux, and gives
//! no figures for them but the times. One constant is fitted for each setup, on the first row: the turnaround of a
//! controller.

use super::simulated::{BUNDLES, Exchange, Plan, Timed, channel};
use super::{ALL, MOST, Row, TIMES};
use crate::convergence::{Carried, Layer};
use crate::packets::{Since, Transfer};
use crate::report::{Cell, Column, Table};
use crate::stats::mean;
use longwire_proto::time::Duration;
use longwire_sim::{RadioConfig, TncConfig};

/// Rate of the serial lines to these radios, bit/s: not published, but usual with these radios.
const SERIAL_BPS: u32 = 9600;

/// Location of the turnaround delay.
#[derive(Clone, Copy)]
enum Turn {
    /// In a controller behind a serial line with this rate in bit/s, `None` for no delay; frames enter the line as soon
    /// as the host has them.
    Controller(Option<u32>),
    /// In a station that builds frames after it gets the channel; the delay precedes its decision that the channel is
    /// clear.
    Station,
}

/// Test setup.
#[derive(Clone, Copy)]
pub(super) struct Rig {
    words: &'static str,
    turn: Turn,
    since: Since,
}

/// Setup used.
pub(super) const USED: Rig = Rig {
    words: "controllers in KISS mode on serial lines of 9,600 bit/s; from the connection request to the \
            acknowledgement of the bundle",
    turn: Turn::Controller(Some(SERIAL_BPS)),
    since: Since::Call,
};

/// Setups compared on the page: the one used, and those that differ from it in one property.
pub(super) fn all() -> [Rig; 5] {
    [
        USED,
        Rig {
            words: "serial lines of 19,200 bit/s instead",
            turn: Turn::Controller(Some(2 * SERIAL_BPS)),
            ..USED
        },
        Rig { words: "serial lines without delay", turn: Turn::Controller(None), ..USED },
        Rig { words: "on an existing session, from when the bundle is ready", since: Since::Wish, ..USED },
        Rig {
            words: "stations that build frames after acquiring the channel and fill every window",
            turn: Turn::Station,
            ..USED
        },
    ]
}

/// Controllers of the setup used.
pub(super) fn controller(turn_s: f64) -> TncConfig {
    TncConfig {
        serial_bps: Some(SERIAL_BPS),
        turnaround: Duration::from_secs_f64(turn_s),
        ..TncConfig::default()
    }
}

impl Rig {
    fn transfer(&self, plan: &Plan<'_>, row: &Row, turn_s: f64) -> Transfer {
        let bare = plan.transfer(row);
        match self.turn {
            Turn::Controller(serial_bps) => {
                Transfer { tnc: Some(TncConfig { serial_bps, ..controller(turn_s) }), ..bare }
            }
            Turn::Station => Transfer { radio: late(channel(row.rate_bps), turn_s), ..bare },
        }
    }

    /// Simulates all runs of the convergence layer in these rows.
    pub(super) fn play(&self, plan: &Plan<'_>, rows: &'static [Row], turn_s: f64) -> Vec<Timed> {
        plan.play(BUNDLES, rows, |row| {
            let (transfer, bundle) = (self.transfer(plan, row, turn_s), plan.bundle.clone());
            let (layer, stored_after) = (Layer::Ax25Cm, Duration::ZERO);
            Exchange::Bundle(Carried { transfer, layer, since: self.since, stored_after, bundle })
        })
    }

    /// Finds the turnaround with which the first row has its published time. The time is an almost linear function of
    /// the turnaround; the second of two secants is close to the first result.
    pub(super) fn fitted_turn_s(&self, plan: &Plan<'_>) -> f64 {
        let times = |turn_s: f64| self.play(plan, &TIMES[..1], turn_s).remove(0).times_s();
        let mut turn_s: f64 = 0.5;
        for reach_s in [0.2, 0.02] {
            let (low, high) = ((turn_s - reach_s).max(0.0), turn_s + reach_s);
            let (with_low, with_high) = (times(low), times(high));
            // After an early stop one of them may have fewer runs; the comparison uses the same noise for both.
            let both = with_low.len().min(with_high.len());
            let (with_low, with_high) = (mean(&with_low[..both]), mean(&with_high[..both]));
            turn_s = low + (high - low) * (TIMES[0].convergence_s - with_low) / (with_high - with_low);
        }
        turn_s
    }
}

/// Delays the decision of stations that the channel is clear by this number of seconds.
fn late(mut radio: RadioConfig, turn_s: f64) -> RadioConfig {
    for station in &mut radio.stations {
        station.carrier_off = Duration::from_secs_f64(turn_s);
    }
    radio
}

/// Deviations of the rows of a setup, without the fitted one, from the published times, as shares.
pub(super) struct Fit {
    words: &'static str,
    turn_s: f64,
    pub(super) errors: Vec<f64>,
}

impl Fit {
    /// Fits a setup and simulates all rows.
    pub(super) fn of(rig: &Rig, plan: &Plan<'_>) -> Fit {
        let turn_s = rig.fitted_turn_s(plan);
        let timed = rig.play(plan, &TIMES, turn_s);
        let errors = timed[1..].iter().map(|timed| timed.record().mean / timed.row.convergence_s - 1.0);
        Fit { words: rig.words, turn_s, errors: errors.collect() }
    }

    /// Number of rows, of 13, within this share of the published time.
    pub(super) fn rows_within(&self, bound: f64) -> usize {
        self.errors.iter().filter(|error| error.abs() <= bound).count()
    }
}

pub(super) fn rig_table(fits: &[Fit]) -> Table {
    let mut table = Table::new(
        "AX.25-CL: possible test setups between hosts and channel, each fitted to the first row, up to ten runs per \
         row",
        [
            Column::text("test setup"),
            Column::number("turnaround", "s"),
            Column::number("rows within 10 %, of 13", ""),
            Column::number("within 13 %", ""),
            Column::number("deviation of the shortest time from the published one", ""),
            Column::number("deviation of the longest", ""),
            Column::number("9,600 bit/s, k = 4", ""),
        ],
    );
    let odd = TIMES[1..].iter().position(|row| row.rate_bps == 9600.0 && row.window == 4);
    for fit in fits {
        let extreme = |pick: fn(f64, f64) -> f64, from: f64| fit.errors.iter().copied().fold(from, pick);
        table.row([
            Cell::text(fit.words),
            Cell::precise(fit.turn_s, 3),
            Cell::number(fit.rows_within(MOST) as f64),
            Cell::number(fit.rows_within(ALL) as f64),
            Cell::percent(extreme(f64::min, f64::INFINITY)),
            Cell::percent(extreme(f64::max, f64::NEG_INFINITY)),
            odd.map_or(Cell::empty(), |at| Cell::percent(fit.errors[at])),
        ]);
    }
    table
}
