//! Settings and counters of a station.

use super::address::Callsign;
use super::announcements::Announcement;
use super::frame::{Modulo, pid};
use super::xid::Recovery;
use crate::service::LinkId;
use crate::setting::{Fault, Settings, at_least, number};
use crate::time::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Protocol version with which a link is opened (6.3.1, 6.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    /// The best version that the peer supports, which is remembered: SABME first; after a refusal or without an answer,
    /// XID and SABM.
    #[default]
    Best,
    /// Version 2.2: SABME alone.
    Extended,
    /// Version 2.0: SABM alone, without XID.
    Plain,
}

/// Parameters of the radio channel from which the maximum delay of an answer is computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RadioParameters {
    /// Bit rate on the channel, bit/s. Default 1,200.
    pub rate_bps: u32,
    /// Time from key-up to the first frame (TXDELAY, T103). Default 300 ms.
    pub tx_delay: Duration,
    /// Time from the end of the last frame to key-down (TXTAIL). Default 20 ms.
    pub tx_tail: Duration,
    /// Slot time of p-persistence (T102). Default 100 ms.
    pub slot_time: Duration,
    /// Persistence P: the probability of transmitting in a free slot is (P + 1) / 256. Default 63, a quarter.
    pub persistence: u8,
    /// True if stations transmit and receive at the same time, without waiting for the channel. Default false.
    pub full_duplex: bool,
    /// Further delay of an answer in stations, their controllers and the lines between them. Default 500 ms.
    pub turnaround: Duration,
}

impl Default for RadioParameters {
    fn default() -> Self {
        RadioParameters {
            rate_bps: 1200,
            tx_delay: Duration::from_millis(300),
            tx_tail: Duration::from_millis(20),
            slot_time: Duration::from_millis(100),
            persistence: 63,
            full_duplex: false,
            turnaround: Duration::from_millis(500),
        }
    }
}

impl RadioParameters {
    /// Returns the time on the channel of frames with a total of `bytes` bytes (address to information), with check
    /// sequences, flags and some bit stuffing.
    pub fn air_time(&self, frames: u64, bytes: u64) -> Duration {
        /// Length of a flag and the check sequence.
        const AROUND_BYTES: u64 = 3;
        let bits = 8 * (bytes + AROUND_BYTES * frames) + 8;
        // Random data have one stuffed bit in 62; a sixteenth is above the share in text.
        let bits = bits + bits / 16;
        Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.rate_bps))
    }

    /// Returns the time to key up and down.
    pub(super) fn keying(&self) -> Duration {
        self.tx_delay + self.tx_tail
    }

    /// Returns the time to get the channel, key up and down, which is exceeded once in fifty times.
    pub fn access(&self) -> Duration {
        /// ln 50.
        const RARELY: f64 = 3.9;
        let key = self.keying();
        if self.full_duplex {
            return key;
        }
        let chance = (f64::from(self.persistence) + 1.0) / 256.0;
        let slots = if chance < 1.0 { (RARELY / -libm::log1p(-chance)).max(1.0) } else { 1.0 };
        key + self.slot_time.mul_f64(slots)
    }
}

/// Settings of one link. The defaults are those of version 2.2, with a window that suits half-duplex channels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Version with which the link is opened. Default: best.
    pub version: Version,
    /// Maximum information field to send (N1, 6.7.2.1), 2 to 4,096 bytes. Default 256.
    pub information_bytes_max: u32,
    /// Maximum frames in flight with modulo 8 (k, 6.7.2.3), 1 to 7. Default 7.
    pub window_frames: u8,
    /// Maximum frames in flight with modulo 128, 1 to 127; with selective reject at most half the sequence numbers.
    /// Default 32.
    pub extended_window_frames: u8,
    /// Recovery of lost frames, as far as the peer agrees. Default: SREJ for several frames at once.
    pub recovery: Recovery,
    /// Maximum tries without an answer before the link is closed (N2, 6.7.2.2). Default 10.
    pub retries: u8,
    /// Response delay (T2, 6.7.1.2): wait for the next frame before an unpolled frame is acknowledged. Default: the
    /// duration of the longest frame and 200 ms; no delay if the provider reports when the channel is won.
    pub acknowledge_delay: Option<Duration>,
    /// Idle time after which the link is probed (T3, 6.7.1.3). Default 300 s.
    pub idle_probe: Duration,
    /// True to set the P bit in the last frame of a burst, which requests its acknowledgement (6.2). Default true.
    pub poll_last: bool,
    /// Protocol identifier of the frames (PID, 3.4). Default 0xF0, no layer 3.
    pub protocol: u8,
    /// Number of unreleased received packets at which the peer is told to wait (RNR). Default 64.
    pub unreleased_max: u64,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            version: Version::Best,
            information_bytes_max: 256,
            window_frames: 7,
            extended_window_frames: 32,
            recovery: Recovery::MultiSelectiveReject,
            retries: 10,
            acknowledge_delay: None,
            idle_probe: Duration::from_secs(300),
            poll_last: true,
            protocol: pid::NONE,
            unreleased_max: 64,
        }
    }
}

impl LinkConfig {
    /// Returns the window of this modulo and this recovery, in frames.
    pub fn window(&self, modulo: Modulo, recovery: Recovery) -> u8 {
        let (wanted, limit) = match modulo {
            Modulo::Eight => (self.window_frames, 7),
            Modulo::Extended => (self.extended_window_frames, 127),
        };
        // With more than half the numbers, an old frame could be taken for a new one.
        let limit = if recovery == Recovery::Reject { limit } else { modulo.count() / 2 };
        wanted.clamp(1, limit)
    }
}

impl Settings for LinkConfig {
    fn check(&self) -> Result<(), Fault> {
        number("information-bytes-max", self.information_bytes_max, 2..=4096, "256 is usual")?;
        number("window-frames", self.window_frames, 1..=7, "modulo 8 allows at most seven")?;
        number(
            "extended-window-frames",
            self.extended_window_frames,
            1..=127,
            "modulo 128 allows at most 127",
        )?;
        at_least("retries", self.retries, 1, "10 is usual")?;
        at_least("unreleased-max", self.unreleased_max, 1, "64 is usual")
    }
}

/// A peer and the path to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PeerStation {
    /// Callsign of the peer.
    pub station: Callsign,
    /// Digipeaters in the order of the path, nearest first; at most eight.
    #[serde(default)]
    pub path: Vec<Callsign>,
    /// Settings of the link.
    #[serde(default)]
    pub link: LinkConfig,
}

/// A station and its peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Callsign of this station.
    pub station: Callsign,
    /// Peers that this station connects to, by the IDs of its user.
    pub peers: BTreeMap<LinkId, PeerStation>,
    /// Settings of links that peers open; `None` if connection requests are refused.
    pub callers: Option<LinkConfig>,
    /// Maximum number of links at once; further connection requests are refused. Default 64.
    pub links_max: usize,
    /// Destinations of UI frames, by the IDs of its user.
    pub unconnected: BTreeMap<LinkId, PeerStation>,
    /// True to act as a digipeater for frames with this station in their path. Default false.
    pub repeats: bool,
    /// True if the controller may still hold frames of a former run. In the first two minutes the first link to each
    /// peer carries packets only after the peer has answered a poll sent on it, because the answer to the connection
    /// request may belong to a former one. Default false.
    pub restarts: bool,
    /// Parameters of the radio channel.
    pub radio: RadioParameters,
    /// Maximum time of frames in one key-up; the rest waits for the next one (T107). Default 60 s.
    pub transmission_max: Duration,
    /// Maximum time on the channel within any `air_time_window`, key-ups included; further frames wait, but one frame
    /// always goes. `None` without a limit, which is the default.
    pub air_time_max: Option<Duration>,
    /// Window of `air_time_max`. Default 10 min.
    pub air_time_window: Duration,
    /// Maximum share of any `duty_cycle_window` in which the station transmits, from 0 to 1, key-ups included; further
    /// frames wait, but one frame always goes. `None` without a limit, which is the default.
    pub duty_cycle_max: Option<f64>,
    /// Window of `duty_cycle_max`. Default 1 min.
    pub duty_cycle_window: Duration,
    /// Nothing is transmitted until [`Station::inhibit`](super::Station::inhibit) permits it. Default false.
    pub inhibited: bool,
    /// Identification: sent at intervals while the station transmits, and when its last link ends. Default none.
    pub identification: Option<Announcement>,
    /// Beacon: sent at intervals, the first at most a minute after the start. Default none.
    pub beacon: Option<Announcement>,
}

impl Config {
    /// Creates a station without peers of its own that accepts connection requests.
    pub fn new(station: Callsign) -> Self {
        Config {
            station,
            peers: BTreeMap::new(),
            callers: Some(LinkConfig::default()),
            links_max: 64,
            unconnected: BTreeMap::new(),
            repeats: false,
            restarts: false,
            radio: RadioParameters::default(),
            transmission_max: Duration::from_secs(60),
            air_time_max: None,
            air_time_window: Duration::from_secs(600),
            duty_cycle_max: None,
            duty_cycle_window: Duration::from_secs(60),
            inhibited: false,
            identification: None,
            beacon: None,
        }
    }
}

/// Counters of a link, or of all links of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// I frames sent for the first time.
    pub information_sent: u64,
    /// I frames retransmitted.
    pub information_repeated: u64,
    /// I frames that arrived in order, or filled a gap.
    pub information_received: u64,
    /// I frames that had arrived before, or were outside the window.
    pub duplicates: u64,
    /// I frames that arrived while an earlier one was missing.
    pub out_of_order: u64,
    /// RR and RNR sent.
    pub acknowledgements_sent: u64,
    /// REJ and SREJ sent.
    pub rejects_sent: u64,
    /// REJ and SREJ received.
    pub rejects_received: u64,
    /// Number of times that no answer arrived in time (T1).
    pub timeouts: u64,
    /// Answers that arrived without a poll, or too early to answer the last one: T1 was too short.
    pub late_answers: u64,
    /// Frames of the link that are invalid in its state.
    pub violations: u64,
    /// Number of times that the established link was reset.
    pub resets: u64,
}

impl Counters {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Counters) {
        let fields = [
            (&mut self.information_sent, other.information_sent),
            (&mut self.information_repeated, other.information_repeated),
            (&mut self.information_received, other.information_received),
            (&mut self.duplicates, other.duplicates),
            (&mut self.out_of_order, other.out_of_order),
            (&mut self.acknowledgements_sent, other.acknowledgements_sent),
            (&mut self.rejects_sent, other.rejects_sent),
            (&mut self.rejects_received, other.rejects_received),
            (&mut self.timeouts, other.timeouts),
            (&mut self.late_answers, other.late_answers),
            (&mut self.violations, other.violations),
            (&mut self.resets, other.resets),
        ];
        fields.into_iter().for_each(|(sum, part)| *sum += part);
    }
}

/// Counters of dropped frames and requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Frames that are invalid.
    pub damaged: u64,
    /// Frames for other stations, or on their way to a digipeater.
    pub not_ours: u64,
    /// Connection requests beyond the maximum number of links, or if none is accepted.
    pub refused: u64,
    /// Answers, frames to repeat and frames of no link that exceed a queue.
    pub overflow: u64,
    /// Requests for links that are closed, and datagrams to senders that are forgotten.
    pub late_requests: u64,
    /// Frames to repeat that take more time than a limit of the station's own allows.
    pub too_long_to_repeat: u64,
}
