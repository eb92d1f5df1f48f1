//! How a station is configured, and what it counts.

use super::address::Callsign;
use super::frame::{Modulo, pid};
use super::xid::Recovery;
use crate::service::LinkId;
use crate::setting::{Fault, at_least, number};
use crate::time::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which version a link is opened in (6.3.1, 6.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    /// The best that the peer answers to, and what it answered to is remembered: SABME; then, after a refusal or
    /// silence, XID and SABM.
    #[default]
    Best,
    /// 2.2: SABME alone.
    Extended,
    /// 2.0: SABM alone, without XID.
    Plain,
}

/// What the radio channel takes: all that is needed to know how long an answer may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RadioParameters {
    /// Bit rate on the air, bit/s. Default 1,200.
    pub rate_bps: u32,
    /// From keying the transmitter to the first frame (T103). Default 300 ms.
    pub tx_delay: Duration,
    /// From the end of the last frame to unkeying. Default 20 ms.
    pub tx_tail: Duration,
    /// One slot of persistence (T102). Default 100 ms.
    pub slot_time: Duration,
    /// The chance to begin in a slot in which the channel is clear, of 256: `persistence` + 1. Default 63, a quarter.
    pub persistence: u8,
    /// Both directions at once: nobody waits for the channel. Default no.
    pub full_duplex: bool,
    /// What stations, their controllers and the lines between them take for an answer. Default 500 ms.
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
    /// What frames of so many bytes (address to information) take, with check sequence, flags and a little stuffing.
    pub fn air_time(&self, frames: u64, bytes: u64) -> Duration {
        /// Flag and check sequence.
        const AROUND_BYTES: u64 = 3;
        let bits = 8 * (bytes + AROUND_BYTES * frames) + 8;
        // One stuffed bit in 62 is what random data have; a sixteenth is above what text has.
        let bits = bits + bits / 16;
        Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.rate_bps))
    }

    /// Keying up and down.
    pub(super) fn keying(&self) -> Duration {
        self.tx_delay + self.tx_tail
    }

    /// What it takes to get the channel, key up and down, but for one time in fifty.
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

/// How one link works. Defaults are those of version 2.2 with a window that fits half-duplex channels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Which version it is opened in. Default the best.
    pub version: Version,
    /// The longest information field that is sent (N1), 2 to 4,096 bytes. Default 256. 6.7.2.1.
    pub information_bytes_max: u32,
    /// Frames on their way at a time (k) with modulo 8, 1 to 7. Default 7. 6.7.2.3.
    pub window_frames: u8,
    /// The same with modulo 128, 1 to 127; with selective reject half the sequence numbers at most. Default 32.
    pub extended_window_frames: u8,
    /// How lost frames are asked for, as far as the peer agrees. Default SREJ for several at once.
    pub recovery: Recovery,
    /// Tries without an answer before the link is given up (N2). Default 10. 6.7.2.2.
    pub retries: u8,
    /// How long the acknowledgement of a frame that does not ask for one waits for the next frame (T2). Default: what the
    /// longest frame takes, and 200 ms; nothing where the provider tells when the channel is won. 6.7.1.2.
    pub acknowledge_delay: Option<Duration>,
    /// An idle link is probed after so long (T3). Default 300 s. 6.7.1.3.
    pub idle_probe: Duration,
    /// The last frame of what is sent at a time asks for its acknowledgement (P). Default yes. 6.2.
    pub poll_last: bool,
    /// The protocol identifier of its frames. Default 0xF0, none. 3.4.
    pub protocol: u8,
    /// Packets that rose and are not released, at which the peer is told to wait (RNR). Default 64.
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
    /// The largest window that it has with this modulo and this recovery.
    pub fn window(&self, modulo: Modulo, recovery: Recovery) -> u8 {
        let (wanted, limit) = match modulo {
            Modulo::Eight => (self.window_frames, 7),
            Modulo::Extended => (self.extended_window_frames, 127),
        };
        // Beyond half the numbers an old frame could pass for a new one.
        let limit = if recovery == Recovery::Reject { limit } else { modulo.count() / 2 };
        wanted.clamp(1, limit)
    }

    /// Walks its numbers.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub fn check(&self) -> Result<(), Fault> {
        number("information-bytes-max", self.information_bytes_max, 2..=4096, "256 is usual")?;
        number("window-frames", self.window_frames, 1..=7, "modulo 8 has seven")?;
        number("extended-window-frames", self.extended_window_frames, 1..=127, "modulo 128 has 127")?;
        at_least("retries", self.retries, 1, "10 is usual")?;
        at_least("unreleased-max", self.unreleased_max, 1, "64 is usual")
    }
}

/// A peer, and the way to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PeerStation {
    /// Its callsign.
    pub station: Callsign,
    /// Who repeats what is said, the nearest first; at most eight.
    #[serde(default)]
    pub path: Vec<Callsign>,
    /// How the link works.
    #[serde(default)]
    pub link: LinkConfig,
}

/// A station and whom it knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Who this is.
    pub station: Callsign,
    /// The peers that it calls, by the ids that its user has for them.
    pub peers: BTreeMap<LinkId, PeerStation>,
    /// How links that others open work; none: nobody may call.
    pub callers: Option<LinkConfig>,
    /// Links at a time; calls beyond are refused. Default 64.
    pub links_max: usize,
    /// Where frames of no link may go, by the ids that the user has for these places: UI frames.
    pub unconnected: BTreeMap<LinkId, PeerStation>,
    /// It repeats frames for others that name it in their path. Default no.
    pub repeats: bool,
    /// Its controller may still have frames of a former run. In the first two minutes the first link to each peer carries
    /// packets when the peer has answered a question asked on it, since the answer to the call may be the answer to a former
    /// one. Default no.
    pub restarts: bool,
    /// The channel.
    pub radio: RadioParameters,
    /// The longest time that one key-up sends frames; what is left waits for the next one (T107). Default 60 s.
    pub transmission_max: Duration,
    /// The longest time that it sends within any `air_time_window`, key-ups included; what is beyond waits. One frame always
    /// goes. Default: none, as long as it has something to send.
    pub air_time_max: Option<Duration>,
    /// The window of `air_time_max`. Default 10 min.
    pub air_time_window: Duration,
}

impl Config {
    /// A station with no peers that answers callers.
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
        }
    }
}

/// What a link, or all links of a station, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// I frames sent for the first time.
    pub information_sent: u64,
    /// I frames sent again.
    pub information_repeated: u64,
    /// I frames that came in order, or filled a hole.
    pub information_received: u64,
    /// I frames that had come before, or were outside the window.
    pub duplicates: u64,
    /// I frames that came while one before them was missing.
    pub out_of_order: u64,
    /// RR and RNR sent.
    pub acknowledgements_sent: u64,
    /// REJ and SREJ sent.
    pub rejects_sent: u64,
    /// REJ and SREJ heard.
    pub rejects_received: u64,
    /// Times that no answer came in time (T1).
    pub timeouts: u64,
    /// Answers that came when nothing was asked, or too early to be the answer to what was: T1 was too short.
    pub late_answers: u64,
    /// Frames of the link that made no sense where they came.
    pub violations: u64,
    /// Times that the link was begun anew while it stood.
    pub resets: u64,
}

impl Counters {
    /// Adds another's counts.
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
