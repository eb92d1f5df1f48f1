//! Views of radio links, their TNCs, and the stations on their channels.

use super::Counts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TNC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tnc {
    /// Name of the TNC.
    pub name: String,
    /// Address: host and port, or serial device and speed.
    pub address: String,
    /// Callsign of this station.
    pub callsign: String,
    /// True while connected to the TNC.
    pub up: bool,
    /// Reason for being down, as text; null while up or before the first attempt.
    pub why_down: Option<String>,
    /// True while nothing is transmitted because the operator has inhibited it.
    #[serde(default)]
    pub inhibited: bool,
    /// Consecutive failed attempts to connect.
    pub attempts_failed: u64,
    /// True if the TNC reports transmitted frames (acknowledgement mode); null until known.
    pub acknowledges: Option<bool>,
    /// Frames in the TNC that are not known to have been transmitted.
    pub frames_waiting: u64,
    /// Number of stations that were heard, at most 256.
    #[serde(default)]
    pub stations_heard: u64,
    /// Counters of the TNC and of all AX.25 links over it.
    pub counters: Counts,
}

/// State of a link over a TNC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Radio {
    /// Name of the TNC.
    pub tnc: String,
    /// Callsign of this station.
    pub callsign: String,
    /// Callsign of the peer, or of the group.
    pub peer: String,
    /// Digipeaters, the nearest first.
    pub via: Vec<String>,
    /// Convergence layer: `ax25cl`, `ax25cm` for TCPCL 3, or `uicl` for a group.
    pub convergence: String,
    /// State, as text: calling, connected, sending 4 of 29 frames, waiting for a clear channel ..
    pub state: String,
    /// Consecutive attempts without an answer.
    pub retries: u64,
    /// Attempts after which the link fails and is retried later.
    pub retries_max: u64,
    /// I frames sent and not yet acknowledged.
    pub frames_in_flight: u64,
    /// Window size: maximum of unacknowledged I frames.
    pub window_frames: u64,
    /// Modulus of the sequence numbers: 8 or 128; zero without a link.
    pub modulo: u64,
    /// Acknowledged frames of the bundles being sent; null if there are none.
    pub frames_acknowledged: Option<u64>,
    /// Total frames of the bundles being sent; null if there are none.
    pub frames_in_all: Option<u64>,
    /// Group links: members polled for the current bundle; zero without members or a bundle.
    #[serde(default)]
    pub members: u64,
    /// Of these, members that have confirmed the bundle.
    #[serde(default)]
    pub members_that_have_it: u64,
    /// Counters of the AX.25 link, while it exists.
    pub link: Counts,
}

/// Transmissions on the channels of TNCs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transmissions {
    /// Transmissions, the latest of each TNC first; at most 200 of each.
    pub transmissions: Vec<Transmission>,
}

/// Transmission on the channel of a TNC: frames of one station with pauses of at most 0.5 s.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transmission {
    /// Name of the TNC.
    pub tnc: String,
    /// Callsign of the station that transmits: the source, or the digipeater that repeats its frames.
    pub from: String,
    /// Callsign of the source of the frames.
    pub source: String,
    /// Callsign of the destination of the frames.
    pub to: String,
    /// True for frames of this station. They count from the time at which they are passed to the TNC.
    pub own: bool,
    /// Seconds since its beginning, which follows from the length of the first frame and the rate of the channel.
    pub began_s: f64,
    /// Duration, seconds; for own frames at least this.
    pub lasts_s: f64,
    /// Number of frames.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
}

/// Stations that the TNCs of the node have heard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Heard {
    /// Stations, those heard last first.
    pub stations: Vec<HeardStation>,
}

/// Station that a TNC has heard. Nothing about it is verified: frames claim the callsign of their sender.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeardStation {
    /// Callsign.
    pub callsign: String,
    /// Name of the TNC.
    pub tnc: String,
    /// Time since the first frame, seconds.
    pub first_s: f64,
    /// Time since the last frame, seconds.
    pub last_s: f64,
    /// Frames heard, including those that digipeaters repeated.
    pub frames: u64,
    /// Digipeater from which the last frame was heard; null if it was heard directly.
    pub via: Option<String>,
    /// Text of the last UI frame with text, such as a beacon; null if there was none.
    pub text: Option<String>,
    /// Counters of the link with the station, which show losses: `information_sent`, `information_repeated`, `rejects_sent`,
    /// `rejects_received`, `timeouts` ..; empty without a link.
    pub link: Counts,
}
