//! TCP/IP over AX.25 with the settings of Table IV, and a file by FTP.
//!
//! The paper says neither what carried the packets nor which part of a session was timed. One reading comes near all its
//! rows, and the page shows how near others come.

use super::rigs;
use super::simulated::{Plan, channel};
use super::{Row, TIMES};
use crate::ftp::{DataConnectionMode, FtpSession, SessionTimes};
use crate::internet::Internet;
use crate::report::{Cell, Column, Table};
use longwire_proto::ax25::IpMode;
use longwire_proto::tcp::config::Profile;
use longwire_sim::TncConfig;

/// The series of TCP/IP.
pub(super) const TCP: &str = "TCP/IP over UI frames, simulated";
/// How near TCP/IP has to come to its published times.
pub(super) const NEAR: f64 = 0.20;

/// Table IV, by window: MTU, MSS and TCP window, bytes.
pub(super) const SETTINGS: [(u16, u16, u32); 7] = [
    (168, 128, 256),
    (296, 256, 512),
    (424, 384, 768),
    (552, 512, 1024),
    (680, 640, 1280),
    (808, 768, 1536),
    (936, 896, 1792),
];

/// What was timed, and how.
#[derive(Clone)]
pub(super) struct Reading {
    words: &'static str,
    carriage: IpMode,
    opening: DataConnectionMode,
    profile: fn() -> Profile,
    took_s: fn(&SessionTimes) -> f64,
}

/// The reading that is used.
pub(super) const USED: Reading = Reading {
    words: "UI frames; from the PORT command to the end of the session; Linux as installed",
    carriage: IpMode::Unconnected,
    opening: DataConnectionMode::Active,
    profile: Profile::linux_2_4,
    took_s: |at| at.left_s - at.logged_in_s,
};

/// The readings that the page compares: the used one and those that differ from it in one thing.
pub(super) fn readings() -> [Reading; 8] {
    [
        USED,
        Reading { words: "over a connected link instead", carriage: IpMode::Connected, ..USED },
        Reading { words: "the whole session, from the call to its end", took_s: |at| at.left_s, ..USED },
        Reading {
            words: "from the call to the answer that the file is stored",
            took_s: |at| at.stored_s,
            ..USED
        },
        Reading {
            words: "the data connection alone, from the answer that it is open (150)",
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
        Reading { words: "a Linux of today", profile: Profile::linux_6, ..USED },
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

    /// The session of a row with controllers that take no time, on a channel on which a share of frames does not arrive.
    pub(super) fn with_ideal_controllers(&self, plan: &Plan<'_>, row: &Row, loss: f64) -> FtpSession {
        self.session(plan, row, None, loss)
    }

    /// One run of a row, seconds.
    pub(super) fn seconds(&self, plan: &Plan<'_>, row: &Row, turn_s: f64, seed: u64) -> Option<f64> {
        self.session(plan, row, Some(rigs::controller(turn_s)), 0.0)
            .play(seed)
            .map(|moments| (self.took_s)(&moments))
    }
}

/// How far each row of a reading is from the published time, as a share.
pub(super) struct Fit {
    words: &'static str,
    errors: Vec<f64>,
}

impl Fit {
    /// Plays all rows of a reading.
    pub(super) fn of(reading: &Reading, plan: &Plan<'_>, turn_s: f64) -> Fit {
        let timed = plan.play(TCP, &TIMES, |row, seed| reading.seconds(plan, row, turn_s, seed));
        let errors = timed.iter().map(|timed| timed.record().mean / timed.row.tcp_s - 1.0);
        Fit { words: reading.words, errors: errors.collect() }
    }

    /// Rows within [`NEAR`] of the published time.
    pub(super) fn rows_near(&self) -> usize {
        self.errors.iter().filter(|error| error.abs() <= NEAR).count()
    }
}

pub(super) fn reading_table(fits: &[Fit]) -> Table {
    let mut table = Table::new(
        "TCP/IP: what could have been timed, and how near it comes, in up to ten runs a row",
        [
            Column::text("reading"),
            Column::number("rows within 20 %, of 14", ""),
            Column::number("shortest against published", ""),
            Column::number("longest", ""),
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
