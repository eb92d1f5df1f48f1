//! The ledger: use of the time of a channel. Its entries add up to the elapsed time, to the nanosecond.

use longwire_sim::Airtime;
use serde::{Deserialize, Serialize};

/// Direction of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HopDirection {
    /// Towards the destination.
    There,
    /// Towards the source.
    Back,
    /// Both directions on one channel.
    Shared,
}

/// Entries of the ledger: name, meaning, and whether the line is silent meanwhile.
pub const ENTRIES: [(&str, &str, bool); 12] = [
    ("payload", "user data, sent for the first time", false),
    ("headers", "headers of first transmissions (TCP/IP, AX.25)", false),
    ("repeated", "retransmissions", false),
    ("acknowledgements", "pure acknowledgements", false),
    ("control", "connection setup, teardown, probes and keep-alives", false),
    ("repair", "forward error correction", false),
    ("framing", "link framing", false),
    ("stuffing", "bit stuffing", false),
    ("keying", "keyed without a frame: TXDELAY and TXTAIL", false),
    ("access", "waiting for a clear channel and a slot, turnaround", true),
    ("outage", "link outage", true),
    ("idle", "nothing sent", true),
];

/// Use of the time of one direction of a hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Direction.
    pub way: HopDirection,
    /// Durations in nanoseconds, in the order of [`ENTRIES`].
    pub nanos: [u64; ENTRIES.len()],
}

impl Ledger {
    /// Creates the ledger from the counters of a channel.
    pub fn of(way: HopDirection, airtime: &Airtime) -> Ledger {
        let nanos = [
            airtime.payload,
            airtime.header,
            airtime.repeated,
            airtime.acknowledgement,
            airtime.control,
            airtime.repair,
            airtime.framing,
            airtime.stuffing,
            airtime.keying,
            airtime.access,
            airtime.outage,
            airtime.idle,
        ];
        Ledger { way, nanos }
    }

    /// Elapsed time, nanoseconds.
    pub fn total(&self) -> u64 {
        self.nanos.iter().sum()
    }

    /// Returns an entry by its name, seconds.
    ///
    /// # Panics
    /// Panics if there is no such entry.
    pub fn seconds(&self, name: &str) -> f64 {
        let entry = ENTRIES.iter().position(|(known, ..)| *known == name);
        self.nanos[entry.unwrap_or_else(|| panic!("no entry is called {name}"))] as f64 / 1e9
    }
}

#[cfg(test)]
mod tests;
