//! TCP/IP over AX.25 with the settings of Table IV, and a file by FTP.
//!
//! The paper states neither what carried the packets nor which part of a session was timed. One reading is close to all
//! its rows, and the page shows the deviations of the others.

use super::rigs;
use super::simulated::{Exchange, Plan, channel};
use super::{Row, TIMES};
use crate::ftp::{DataConnectionMode, FtpSession, SessionTimes};
use crate::internet::Internet;
use crate::report::{Cell, Column, Table};
use longwire_proto::ax25::IpMode;
use longwire_proto::tcp::config::Profile;
use longwire_sim::TncConfig;

/// Series of TCP/IP.
pub(super) const TCP: &str = "TCP/IP over UI frames, simulated";
/// Tolerance of TCP/IP compared with its published times, as a share.
pub(super) const NEAR: f64 = 0.20;

/// Rows of Table IV, by window: MTU, MSS and TCP window, bytes.
pub(super) const SETTINGS: [(u16, u16, u32); 7] = [
    (168, 128, 256),
    (296, 256, 512),
    (424, 384, 768),
    (552, 512, 1024),
    (680, 640, 1280),
    (808, 768, 1536),
    (936, 896, 1792),
];

/// Reading of the timed part and the setup.
#[derive(Clone)]
pub(super) struct Reading {
    words: &'static str,
    carriage: IpMode,
    opening: DataConnectionMode,
    profile: fn() -> Profile,
    took_s: fn(&SessionTimes) -> f64,
}

/// Reading used.
pub(super) const USED: Reading = Reading {
    words: "UI frames; from the PORT command to the end of the session; Linux as installed",
    carriage: IpMode::Unconnected,
    opening: DataConnectionMode::Active,
    profile: Profile::linux_2_4,
    took_s: |at| at.left_s - at.logged_in_s,
};

/// Readings compared on the page: the one used, and those that differ from it in one property.
pub(super) fn readings() -> [Reading; 8] {
    [
        USED,
        Reading { words: "over a connected link instead", carriage: IpMode::Connected, ..USED },
        Reading {
            words: "the complete session, from connection request to end",
            took_s: |at| at.left_s,
            ..USED
        },
        Reading {
            words: "from the connection request to the reply that the file is stored",
            took_s: |at| at.stored_s,
            ..USED
        },
        Reading {
            words: "the data connection alone, from the reply that it is open (150)",
            took_s: |at| at.stored_s - at.opened_s,
            ..USED
        },
        Reading {
            words: "the client opens the data connection (PASV)",
            opening: DataConnectionMode::Passive,
            ..USED
        },
        Reading {
            words: "without the timestamps that Linux adds to each segment",
            profile: || Profile { timestamps: false, ..Profile::linux_2_4() },
            ..USED
        },
        Reading { words: "current Linux", profile: Profile::linux_6, ..USED },
    ]
}

impl Reading {
    fn session(&self, plan: &Plan<'_>, row: &Row, tnc: Option<TncConfig>, loss: f64) -> FtpSession {
        let (mtu_bytes, maximum_segment_bytes, window_bytes) = SETTINGS[row.window as usize - 1];
        let internet = Internet {
            radio: channel(row.rate_bps),
            tnc,
            loss,
            carriage: self.carriage,
            mtu_bytes,
            window_frames: row.window as u8,
            profile: Profile {
                maximum_segment_bytes,
                announced_bytes_max: Some(window_bytes),
                ..(self.profile)()
            },
        };
        FtpSession { internet, opening: self.opening, file: plan.file.clone() }
    }

    /// Session of a row with ideal controllers, on a channel that loses a share of the frames.
    pub(super) fn with_ideal_controllers(&self, plan: &Plan<'_>, row: &Row, loss: f64) -> FtpSession {
        self.session(plan, row, None, loss)
    }

    /// Session of a row, with the timed part of this reading.
    pub(super) fn exchange(&self, plan: &Plan<'_>, row: &Row, turn_s: f64) -> Exchange {
        Exchange::Session(self.session(plan, row, Some(rigs::controller(turn_s)), 0.0), self.took_s)
    }
}

/// Deviation of each row of a reading from the published time, as a share.
pub(super) struct Fit {
    words: &'static str,
    errors: Vec<f64>,
}

impl Fit {
    /// Simulates all rows of a reading.
    pub(super) fn of(reading: &Reading, plan: &Plan<'_>, turn_s: f64) -> Fit {
        let timed = plan.play(TCP, &TIMES, |row| reading.exchange(plan, row, turn_s));
        let errors = timed.iter().map(|timed| timed.record().mean / timed.row.tcp_s - 1.0);
        Fit { words: reading.words, errors: errors.collect() }
    }

    /// Number of rows within [`NEAR`] of the published time.
    pub(super) fn rows_near(&self) -> usize {
        self.errors.iter().filter(|error| error.abs() <= NEAR).count()
    }
}

pub(super) fn reading_table(fits: &[Fit]) -> Table {
    let mut table = Table::new(
        "TCP/IP: possible definitions of the measured time and their deviation, up to ten runs per row",
        [
            Column::text("reading"),
            Column::number("rows within 20 %, of 14", ""),
            Column::number("deviation of the shortest time from the published one", ""),
            Column::number("deviation of the longest", ""),
        ],
    );
    for fit in fits {
        let extreme = |pick: fn(f64, f64) -> f64, from: f64| fit.errors.iter().copied().fold(from, pick);
        table.row([
            Cell::text(fit.words),
            Cell::number(fit.rows_near() as f64),
            Cell::percent(extreme(f64::min, f64::INFINITY)),
            Cell::percent(extreme(f64::max, f64::NEG_INFINITY)),
        ]);
    }
    table
}
