//! Configuration of a radio channel and its stations.

use crate::channel::Errors;
use crate::units::millis;
use longwire_proto::settings;
use longwire_proto::time::Duration;
use serde::{Deserialize, Serialize};

settings! {
    /// Channel shared by stations, which are numbered from 0 in the order given.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct RadioConfig {
        /// Channel rate, bit/s. Default: 1,200.
        pub rate_bps: u64 = 1200,
        /// True if stations receive while they transmit, and do not wait for a clear channel. Default: false.
        pub full_duplex: bool,
        /// Maximum length of a frame from its address to its information field, bytes. Default: 4,200.
        pub mtu_bytes: u32 = 4200,
        /// Stations: none for the defaults, one for all stations, or one for each. Default: none.
        pub stations: Vec<StationConfig>,
        /// Paths between stations that differ from the others. Default: none.
        pub paths: Vec<PathConfig>,
        /// Bit errors between all stations. Default: none.
        pub errors: Errors,
        /// Level difference with which a signal survives another, dB; with `None` overlapping frames are lost. Default:
        /// `None`.
        pub capture_db: Option<f64>,
        /// True if a receiver that follows one signal does not change to a stronger one that begins later: with
        /// `capture-db` that one destroys the first and is lost as well. Default: false.
        #[serde(skip_serializing_if = "core::ops::Not::not")]
        pub follows_first: bool,
        /// Form of a frame on the air. Default: HDLC.
        #[serde(skip_serializing_if = "Framing::is_hdlc")]
        pub framing: Framing,
    }
}

settings! {
    /// Transmitter of a station, and its channel access.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct StationConfig {
        /// Time from key-up to the first frame (TXDELAY), milliseconds. Default: 300.
        #[serde(rename = "tx-delay-ms", with = "millis")]
        pub tx_delay: Duration = Duration::from_millis(300),
        /// Time from the end of the last frame to unkeying (TXTAIL), milliseconds. Default: 20.
        #[serde(rename = "tx-tail-ms", with = "millis")]
        pub tx_tail: Duration = Duration::from_millis(20),
        /// Slot time, milliseconds. Default: 100.
        #[serde(rename = "slot-time-ms", with = "millis")]
        pub slot_time: Duration = Duration::from_millis(100),
        /// Persistence: the probability of transmission in a slot is (`persistence` + 1) / 256. Default: 63, a quarter.
        pub persistence: u8 = 63,
        /// Use of persistence and slots. Default: draw-then-wait.
        pub access: Access,
        /// Time until the signal of another station is detected, milliseconds. Default: 0.
        #[serde(rename = "carrier-on-ms", with = "millis")]
        pub carrier_on: Duration,
        /// Time until the end of a signal is detected, milliseconds. Default: 0.
        #[serde(rename = "carrier-off-ms", with = "millis")]
        pub carrier_off: Duration,
        /// Maximum number of frames per transmission: the room when the channel is won. Default: 128.
        pub key_up_frames: u32 = 128,
    }
}

/// Channel access of a station, from the moment at which the channel is clear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The station draws, and waits a slot after each failed draw: (1 - p) / p slots on average. KISS TNCs.
    #[default]
    DrawThenWait,
    /// The station waits a slot before each draw: 1 / p slots on average. Dire Wolf.
    WaitThenDraw,
    /// The station waits up to 1 / p slots, uniformly distributed: 1 / (2 p) slots on average, as in the model of
    /// Zieliński.
    Uniform,
    /// The station transmits at once if it finds the channel clear. If it found the channel busy it waits a whole number
    /// of slots less than 1 / p, uniformly distributed; after a transmission of its own, 1 / p slots, so that others go
    /// first.
    Backoff,
}

/// Form of a frame on the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// HDLC: flags, stuffed bits and a check sequence of 2 bytes.
    #[default]
    Hdlc,
    /// Ethernet: padding to 60 bytes and a check sequence of 4 bytes.
    Ethernet,
}

impl Framing {
    fn is_hdlc(&self) -> bool {
        *self == Framing::Hdlc
    }
}

impl StationConfig {
    /// Returns the probability of transmission in a slot.
    pub fn chance(&self) -> f64 {
        (f64::from(self.persistence) + 1.0) / 256.0
    }

    /// Returns the mean access time on a clear channel.
    pub fn access_mean(&self) -> Duration {
        let chance = self.chance();
        let slots = match self.access {
            Access::DrawThenWait => (1.0 - chance) / chance,
            Access::WaitThenDraw => 1.0 / chance,
            Access::Uniform => 0.5 / chance,
            Access::Backoff => 0.0,
        };
        self.slot_time.mul_f64(slots)
    }
}

/// Path from one station to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PathConfig {
    /// Sending station.
    pub from: u16,
    /// Receiving station.
    pub to: u16,
    /// False if the sender is out of range. Default: true.
    #[serde(default = "yes")]
    pub heard: bool,
    /// Level of the signal compared with others, dB. Default: 0.
    #[serde(default)]
    pub level_db: f64,
    /// Bit errors. Default: those of the channel.
    #[serde(default)]
    pub errors: Option<Errors>,
    /// Maximum length of a frame that can be received, bytes; longer frames only occupy the channel, and 0 leaves nothing
    /// but a carrier. Default: `None`, any length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_bytes_max: Option<u32>,
    /// Share of the transmissions that arrive at all, drawn for each; the others are neither received nor detected.
    /// Default: `None`, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_share: Option<f64>,
}

fn yes() -> bool {
    true
}

impl PathConfig {
    /// Makes a path on which the station `to` does not receive `from`.
    pub fn deaf(from: u16, to: u16) -> Self {
        PathConfig { heard: false, ..PathConfig::clear(from, to) }
    }

    /// Makes a path without any difference from the others.
    pub fn clear(from: u16, to: u16) -> Self {
        PathConfig {
            from,
            to,
            heard: true,
            level_db: 0.0,
            errors: None,
            frame_bytes_max: None,
            heard_share: None,
        }
    }
}

impl RadioConfig {
    /// Returns the configuration of the station `index`.
    pub(crate) fn station(&self, index: usize) -> StationConfig {
        match &self.stations[..] {
            [] => StationConfig::default(),
            [one] => one.clone(),
            all => all[index].clone(),
        }
    }

    /// Checks all values for this number of stations. Returns a description of the first invalid one.
    pub fn validate(&self, stations: usize) -> Result<(), String> {
        let rule = |holds: bool, message: &str| if holds { Ok(()) } else { Err(message.to_owned()) };
        rule((2..=STATIONS_MAX).contains(&stations), "a radio channel must have from 2 to 1000 stations")?;
        rule(self.rate_bps > 0, "`rate-bps` is 0; it must be at least 1")?;
        rule(self.mtu_bytes > 0, "`mtu-bytes` is 0; it must be at least 1")?;
        let count = self.stations.len();
        rule(count <= 1 || count == stations, "`stations` must have no entry, one for all, or one for each")?;
        let room = self.stations.iter().all(|station| station.key_up_frames > 0);
        rule(room, "`key-up-frames` is 0; it must be at least 1")?;
        self.errors.validate()?;
        for path in &self.paths {
            let known = usize::from(path.from) < stations && usize::from(path.to) < stations;
            rule(known && path.from != path.to, "a path must lead from one station to another")?;
            rule(path.level_db.is_finite(), "`level-db` must be a finite number")?;
            path.errors.iter().try_for_each(Errors::validate)?;
            let share = path.heard_share.is_none_or(|share| (0.0..=1.0).contains(&share));
            rule(share, "`heard-share` must be from 0 to 1")?;
        }
        rule(self.capture_db.is_none_or(|db| db >= 0.0), "`capture-db` must be at least 0")
    }
}

/// Maximum number of stations, because every pair has a path.
const STATIONS_MAX: usize = 1000;
