//! The ledger: where the time of a channel went. Its entries sum to the time elapsed, to the nanosecond.

use longwire_sim::Airtime;
use serde::Serialize;

/// Which way of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HopDirection {
    /// Towards the destination.
    There,
    /// Towards the source.
    Back,
    /// Both on one channel.
    Shared,
}

/// What the time of a channel can go to: the name, what counts as it, and whether the line is silent then.
pub const ENTRIES: [(&str, &str, bool); 12] = [
    ("payload", "bytes of the user of the transport, sent for the first time", false),
    ("headers", "headers of what is sent for the first time: TCP and IP, AX.25", false),
    ("repeated", "everything that is sent once more than once", false),
    ("acknowledgements", "segments that do nothing but acknowledge", false),
    ("control", "opening, closing, probing and keeping alive", false),
    ("repair", "bytes that are there to repair others", false),
    ("framing", "what the link adds to each frame", false),
    ("stuffing", "bits put between the others so that they do not look like a flag", false),
    ("keying", "a transmitter was keyed and sent no frame: TXDELAY, TXTAIL", false),
    ("access", "waiting for the channel to be clear and for a slot, turning round", true),
    ("outage", "there was no link", true),
    ("idle", "nothing was sent", true),
];

/// Where the time of one way of a hop went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// Which way.
    pub way: HopDirection,
    /// Nanoseconds, in the order of [`ENTRIES`].
    pub nanos: [u64; ENTRIES.len()],
}

impl Ledger {
    /// Of what a channel counted.
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

    /// The time elapsed, nanoseconds.
    pub fn total(&self) -> u64 {
        self.nanos.iter().sum()
    }

    /// An entry by its name, seconds.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn seconds(&self, name: &str) -> f64 {
        let entry = ENTRIES.iter().position(|(known, ..)| *known == name);
        self.nanos[entry.unwrap_or_else(|| panic!("no entry is called {name}"))] as f64 / 1e9
    }
}

#[cfg(test)]
mod tests;
