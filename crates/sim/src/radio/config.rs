//! How a radio channel and its stations are configured.

use crate::channel::Errors;
use crate::units::millis;
use longwire_proto::time::Duration;
use serde::{Deserialize, Serialize};

/// A channel that stations share. They are counted from 0 in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RadioConfig {
    /// Bits a second on the air. Default: 1,200.
    pub rate_bps: u64,
    /// Stations receive while they transmit, and wait for nobody. Default: no.
    pub full_duplex: bool,
    /// The longest frame, bytes from its address to its information. Default: 4,200.
    pub mtu_bytes: u32,
    /// The stations: none, and all are as the defaults say; one, and all are like it; or one for each. Default: none.
    pub stations: Vec<StationConfig>,
    /// How stations hear each other where it is not as usual. Default: none.
    pub paths: Vec<PathConfig>,
    /// Bit errors from any station to any other. Default: none.
    pub errors: Errors,
    /// By how much a signal has to be above another to survive it, dB; none: what overlaps is lost. Default: none.
    pub capture_db: Option<f64>,
}

impl Default for RadioConfig {
    fn default() -> Self {
        RadioConfig {
            rate_bps: 1200,
            full_duplex: false,
            mtu_bytes: 4200,
            stations: Vec::new(),
            paths: Vec::new(),
            errors: Errors::None,
            capture_db: None,
        }
    }
}

/// A station's transmitter, and how it gets the channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct StationConfig {
    /// From keying the transmitter to the first frame (TXDELAY), milliseconds. Default: 300.
    #[serde(rename = "tx-delay-ms", with = "millis")]
    pub tx_delay: Duration,
    /// From the end of the last frame to unkeying (TXTAIL), milliseconds. Default: 20.
    #[serde(rename = "tx-tail-ms", with = "millis")]
    pub tx_tail: Duration,
    /// One slot of persistence, milliseconds. Default: 100.
    #[serde(rename = "slot-time-ms", with = "millis")]
    pub slot_time: Duration,
    /// The chance to begin in a slot is (`persistence` + 1) / 256. Default: 63, a quarter.
    pub persistence: u8,
    /// How chance and slot are used. Default: draw-then-wait.
    pub access: Access,
    /// How long another's signal is there before it is noticed, milliseconds. Default: 0.
    #[serde(rename = "carrier-on-ms", with = "millis")]
    pub carrier_on: Duration,
    /// How long it is gone before that is noticed, milliseconds. Default: 0.
    #[serde(rename = "carrier-off-ms", with = "millis")]
    pub carrier_off: Duration,
    /// Room when the channel is won: frames of one key-up at most. Default: 128.
    pub key_up_frames: u32,
}

impl Default for StationConfig {
    fn default() -> Self {
        StationConfig {
            tx_delay: Duration::from_millis(300),
            tx_tail: Duration::from_millis(20),
            slot_time: Duration::from_millis(100),
            persistence: 63,
            access: Access::DrawThenWait,
            carrier_on: Duration::ZERO,
            carrier_off: Duration::ZERO,
            key_up_frames: 128,
        }
    }
}

/// How a station that wants the channel gets it, from the moment at which it is clear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// It draws, and waits a slot for each time that it is unlucky: (1 - p) / p slots on average. KISS TNCs.
    #[default]
    DrawThenWait,
    /// It waits a slot before each time that it draws: 1 / p slots on average. Dire Wolf.
    WaitThenDraw,
    /// It waits up to 1 / p slots, all waits being equally likely: 1 / (2 p) slots on average, as the model of Zieliński
    /// has it.
    Uniform,
}

impl StationConfig {
    /// The chance to begin in a slot.
    pub fn chance(&self) -> f64 {
        (f64::from(self.persistence) + 1.0) / 256.0
    }

    /// What it waits on average on a channel that is clear.
    pub fn access_mean(&self) -> Duration {
        let chance = self.chance();
        let slots = match self.access {
            Access::DrawThenWait => (1.0 - chance) / chance,
            Access::WaitThenDraw => 1.0 / chance,
            Access::Uniform => 0.5 / chance,
        };
        self.slot_time.mul_f64(slots)
    }
}

/// How one station is heard by one other, in this direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PathConfig {
    /// Who sends.
    pub from: u16,
    /// Who hears, or does not.
    pub to: u16,
    /// It is heard. Default: yes.
    #[serde(default = "yes")]
    pub heard: bool,
    /// How strong it is there beside others, dB. Default: 0.
    #[serde(default)]
    pub level_db: f64,
    /// Bit errors. Default: the channel's.
    #[serde(default)]
    pub errors: Option<Errors>,
}

fn yes() -> bool {
    true
}

impl PathConfig {
    /// The station `to` does not hear `from`.
    pub fn deaf(from: u16, to: u16) -> Self {
        PathConfig { from, to, heard: false, level_db: 0.0, errors: None }
    }
}

impl RadioConfig {
    /// The configuration of each of `count` stations.
    pub(crate) fn station(&self, index: usize) -> StationConfig {
        match &self.stations[..] {
            [] => StationConfig::default(),
            [one] => one.clone(),
            all => all[index].clone(),
        }
    }

    /// Whether every value makes sense for so many stations; if not, which does not and why.
    pub fn validate(&self, stations: usize) -> Result<(), String> {
        let rule = |holds: bool, message: &str| if holds { Ok(()) } else { Err(message.to_owned()) };
        rule((2..=STATIONS_MAX).contains(&stations), "a radio channel has 2 to 1000 stations")?;
        rule(self.rate_bps > 0, "rate-bps is zero: a channel has a rate")?;
        rule(self.mtu_bytes > 0, "mtu-bytes is zero: a channel takes frames of a byte or more")?;
        let count = self.stations.len();
        rule(count <= 1 || count == stations, "stations: none, one for all, or one for each")?;
        let room = self.stations.iter().all(|station| station.key_up_frames > 0);
        rule(room, "key-up-frames is zero: a key-up has room for a frame or more")?;
        self.errors.validate()?;
        for path in &self.paths {
            let known = usize::from(path.from) < stations && usize::from(path.to) < stations;
            rule(known && path.from != path.to, "a path leads from one station to another")?;
            rule(path.level_db.is_finite(), "level-db is a number")?;
            path.errors.iter().try_for_each(Errors::validate)?;
        }
        rule(self.capture_db.is_none_or(|db| db >= 0.0), "capture-db is zero or more")
    }
}

/// Paths are kept for every pair.
const STATIONS_MAX: usize = 1000;
