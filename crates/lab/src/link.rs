//! Link profiles: a channel as a small TOML file.
//!
//! The built-in profiles are part of the binary; a user's own profile is a copy with other numbers, given by its path.
//! In a scenario a profile may be changed key by key, or written out in place.

mod channel;
mod ethernet;
pub mod outages;
mod path;
mod radio;

pub(crate) use channel::{at, on_schedule};
pub(crate) use ethernet::AROUND_BYTES;
pub use ethernet::EthernetChannel;
pub use path::LinkPath;
pub use radio::RadioChannel;
pub(crate) use radio::millis;

use crate::error::{Error, nearest};
use crate::limit;
use crate::toml_text::{self, merge};
use longwire_proto::ax25;
use longwire_proto::settings;
use longwire_proto::time::Duration;
use longwire_sim::{Direction, Errors, Fcs, GilbertElliott};
use longwire_towers::path::Hop;
use outages::{Outage, Pass};
use serde::{Deserialize, Serialize};
use std::path::Path;
use toml::Table;

/// Time for which the outages of a profile are checked, seconds; the default time limit of a run.
const OUTAGES_CHECKED_S: f64 = 1e6;

/// Bytes of a UI frame before its information: two addresses, control and protocol identifier.
const UI_HEADER_BYTES: u32 = 16;
/// Maximum length of the information of a UI frame on a line, bytes.
const UI_BYTES_MAX: u32 = 2048;
/// Maximum frames that a station hands to its line at once, as the time of their transmission.
const UI_BURST: Duration = Duration::from_secs(10);

/// Profiles in the binary: name and TOML text.
pub const SHIPPED: &[(&str, &str)] = &[
    ("airborne-5m", include_str!("../../../scenarios/links/airborne-5m.toml")),
    ("ax25-1200", include_str!("../../../scenarios/links/ax25-1200.toml")),
    ("ax25-9600", include_str!("../../../scenarios/links/ax25-9600.toml")),
    ("cislunar", include_str!("../../../scenarios/links/cislunar.toml")),
    ("cislunar-outage", include_str!("../../../scenarios/links/cislunar-outage.toml")),
    ("dstar-dd", include_str!("../../../scenarios/links/dstar-dd.toml")),
    ("hsmm", include_str!("../../../scenarios/links/hsmm.toml")),
    ("lan", include_str!("../../../scenarios/links/lan.toml")),
    ("leo-9600", include_str!("../../../scenarios/links/leo-9600.toml")),
    ("leo-pass", include_str!("../../../scenarios/links/leo-pass.toml")),
    ("mars", include_str!("../../../scenarios/links/mars.toml")),
    ("mars-relay", include_str!("../../../scenarios/links/mars-relay.toml")),
];

settings! {
    /// Link between two nodes: point to point or, with `[radio]`, a half-duplex channel that both ends share. "Forward" is
    /// the direction of the files, "back" the other one; properties not set for the way back are those of the way forward.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct LinkProfile {
        /// Display name.
        pub title: String,
        /// Line rate, bit/s. Default 115,200.
        pub rate_bps: u64 = 115_200,
        /// Line rate on the way back, bit/s.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub back_rate_bps: Option<u64>,
        /// One-way delay, milliseconds. Default 0.
        pub delay_ms: f64,
        /// One-way delay on the way back, milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub back_delay_ms: Option<f64>,
        /// Changes of the delay in both directions: straight lines between these points, ascending in time. Replaces
        /// `delay-ms`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub delay_schedule: Vec<DelayPoint>,
        /// Bit-error rate. Default 0.
        pub ber: f64,
        /// Bit-error rate on the way back.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub back_ber: Option<f64>,
        /// Bit errors in bursts, both directions; replaces `ber`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub bursts: Option<Bursts>,
        /// Maximum frame length without the overhead of the link itself, bytes; on a radio channel the information field
        /// (N1). Default 1500.
        pub mtu_bytes: u32 = 1500,
        /// Queue of the interface at each end, bytes. Default 20,000.
        pub queue_bytes: u64 = 20_000,
        /// True: frames that find the queue full are dropped, as at a router in the path. False (the default): the host
        /// sees the queue of its own interface and waits.
        pub tail_drop: bool,
        /// Frame check that the link adds: `none` (damaged frames are delivered unchanged), `crc16` (2 bytes) or `crc32` (4
        /// bytes). Default `crc16`.
        pub fcs: Fcs = Fcs::Crc16,
        /// Contents of the line: `ip` packets, or UI frames of AX.25 (`ax25-ui`), with 19 bytes around each; `mtu-bytes` is then
        /// the length of their information. Default `ip`.
        #[serde(skip_serializing_if = "LineFrames::is_ip")]
        pub frames: LineFrames,
        /// Outages. Default: none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub outage: Vec<Outage>,
        /// Passes, outside of which there is no connection. Default: the link is always there.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub pass: Vec<Pass>,
        /// Shared radio channel with AX.25, with its own delays, queues and checks. Default: each direction has its own
        /// line.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub radio: Option<RadioChannel>,
        /// Shared channel with Ethernet frames, one per transmission. Default: each direction has its own line.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ethernet: Option<EthernetChannel>,
    }
}

/// Contents of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineFrames {
    /// IP packets.
    #[default]
    Ip,
    /// UI frames of AX.25. Both ends transmit at the same time, each on its own frequency.
    Ax25Ui,
}

impl LineFrames {
    fn is_ip(&self) -> bool {
        *self == LineFrames::Ip
    }
}

/// Delay of a link at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DelayPoint {
    /// Time since the start of the run, seconds.
    pub at_s: f64,
    /// One-way delay at that time, milliseconds.
    pub delay_ms: f64,
}

/// Two states of a channel, each with its own bit-error rate (Gilbert and Elliott).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bursts {
    /// Bit-error rate in the good state.
    pub good_ber: f64,
    /// Bit-error rate in the bad state.
    pub bad_ber: f64,
    /// Mean length of the good state, bits.
    pub good_bits: f64,
    /// Mean length of the bad state, bits.
    pub bad_bits: f64,
}

impl LinkProfile {
    /// Loads the built-in profile with this name or, if the name ends in `.toml` or contains a slash, the profile in
    /// this file (relative to `base`).
    ///
    /// # Errors
    /// Fails if the name is unknown, the file cannot be read, or a key or value is invalid; each with a hint.
    pub fn load(name: &str, base: &Path) -> Result<LinkProfile, Error> {
        LinkProfile::from_table(table_of(name, base)?, &format!("link `{name}`"))
    }

    /// Resolves the link of a `[[channel]]`: the profile named by `profile`, if any, with the other keys applied.
    ///
    /// # Errors
    /// Returns the errors of [`LinkProfile::load`].
    pub fn resolve(said: &Table, base: &Path) -> Result<LinkProfile, Error> {
        LinkProfile::resolve_at(said, base, "[[channel]]")
    }

    /// The same; `place` names the table in errors.
    fn resolve_at(said: &Table, base: &Path, place: &str) -> Result<LinkProfile, Error> {
        let mut over = said.clone();
        let table = match over.remove("profile") {
            None => over,
            Some(toml::Value::String(name)) => {
                let mut table = table_of(&name, base)?;
                merge(&mut table, &over);
                table
            }
            Some(other) => {
                return Err(Error::new(format!("`profile = {other}` is not a valid name"))
                    .hint(format!("built-in profiles: {}", shipped_names())));
            }
        };
        LinkProfile::from_table(table, place)
    }

    fn from_table(table: Table, place: &str) -> Result<LinkProfile, Error> {
        path::single(&table, place)?;
        let profile: LinkProfile = toml_text::from_table(table, place)?;
        profile.check(place)?;
        Ok(profile)
    }

    fn check(&self, place: &str) -> Result<(), Error> {
        let wrong = |key: &str, rule: &str| Err(Error::new(format!("{place}: `{key}` {rule}")));
        let probability = |ber: f64| (0.0..=0.5).contains(&ber);
        // The clock counts nanoseconds; at much higher rates frames would take no time.
        let rate = |rate: u64| (1..=1_000_000_000_000).contains(&rate);
        if !rate(self.rate_bps) {
            return wrong("rate-bps", "must be from 1 to 1e12");
        }
        if !self.back_rate_bps.is_none_or(rate) {
            return wrong("back-rate-bps", "must be from 1 to 1e12");
        }
        if !(64..=65_535).contains(&self.mtu_bytes) {
            return wrong("mtu-bytes", "must be from 64 to 65535");
        }
        if !probability(self.ber) || !self.back_ber.is_none_or(probability) {
            return wrong("ber", "must be from 0 to 0.5");
        }
        let delays = [self.delay_ms, self.back_delay_ms.unwrap_or(0.0)];
        if !delays.into_iter().chain(self.delay_schedule.iter().map(|point| point.delay_ms)).all(is_time) {
            return wrong("delay-ms", "must be from 0 to 1e9");
        }
        if !self.delay_schedule.iter().all(|point| (0.0..=1e9).contains(&point.at_s))
            || !self.delay_schedule.is_sorted_by(|a, b| a.at_s < b.at_s)
        {
            return wrong("delay-schedule", "needs points in order of time, `at-s` from 0 to 1e9");
        }
        if let Some(bursts) = self.bursts {
            if !probability(bursts.good_ber) || !probability(bursts.bad_ber) {
                return wrong("bursts", "needs `good-ber` and `bad-ber` from 0 to 0.5");
            }
            let length = |bits: f64| (1.0..=1e18).contains(&bits);
            if !length(bursts.good_bits) || !length(bursts.bad_bits) {
                return wrong("bursts", "needs `good-bits` and `bad-bits` from 1 to 1e18");
            }
        }
        if self.queue_bytes < u64::from(self.mtu_bytes) {
            return wrong("queue-bytes", "must hold at least one frame of mtu-bytes");
        }
        if self.frames == LineFrames::Ax25Ui {
            if !(2..=UI_BYTES_MAX).contains(&self.mtu_bytes) {
                return wrong(
                    "mtu-bytes",
                    "is the length of the information of a UI frame; it must not exceed 2048",
                );
            }
            if self.fcs != Fcs::Crc16 {
                return wrong("fcs", "must be `crc16` with `frames = \"ax25-ui\"`");
            }
            if !(300..=10_000_000).contains(&self.rate_bps) {
                return wrong("rate-bps", "must be from 300 to 10000000 with `frames = \"ax25-ui\"`");
            }
        }
        if let Err(rule) = outages::check_passes(&self.pass) {
            return wrong("pass", rule);
        }
        if let Err(what) = self.outages_until(OUTAGES_CHECKED_S) {
            return Err(Error::new(format!("{place}: {what}")));
        }
        self.ethernet.iter().try_for_each(|ethernet| ethernet.check(self, place))?;
        self.radio.iter().try_for_each(|radio| radio.check(self, place))
    }

    /// Outages, and those between the passes that begin before this time, seconds.
    ///
    /// # Errors
    /// Fails if they overlap, or there are too many.
    pub fn outages_until(&self, end_s: f64) -> Result<Vec<Outage>, String> {
        let mut all = outages::between(&self.pass, end_s)?;
        if !self.outage.is_empty() {
            all.extend(&self.outage);
            outages::check_outages(&all)?;
        }
        Ok(all)
    }

    /// Maximum length of a frame without the overhead of the line itself, bytes: of a UI frame with its addresses, control and
    /// protocol identifier.
    pub(crate) fn frame_bytes_max(&self) -> u32 {
        match self.frames {
            LineFrames::Ip => self.mtu_bytes,
            LineFrames::Ax25Ui => self.mtu_bytes + UI_HEADER_BYTES,
        }
    }

    /// Returns true if both ends share one channel.
    pub fn is_shared(&self) -> bool {
        self.radio.is_some() || self.ethernet.is_some()
    }

    /// Longest round trip without queues, seconds.
    pub fn round_trip_s(&self) -> f64 {
        if let Some(ethernet) = &self.ethernet {
            return 2.0 * ethernet.cost_ms / 1e3;
        }
        let constant = self.delay_ms + self.back_delay_ms.unwrap_or(self.delay_ms);
        let scheduled = self.delay_schedule.iter().map(|point| 2.0 * point.delay_ms);
        scheduled.reduce(f64::max).unwrap_or(constant) / 1e3
    }

    /// Mean bit-error rate forward.
    pub fn mean_ber(&self) -> f64 {
        self.errors(Direction::Forward).mean_ber()
    }

    /// Parameters that a station knows about the channel, and the maximum key-up; `None` on a line.
    pub fn believed_radio(&self) -> Option<(ax25::RadioParameters, Duration)> {
        self.radio.as_ref().map(|radio| (radio.believed(self), radio.key_up_max()))
    }

    /// Parameters that the stations at both ends know about their channel: those of [`LinkProfile::believed_radio`], or of a
    /// line for UI frames, whose transmitters are always on. `None` on a line for IP packets.
    pub fn station_radio(&self) -> Option<(ax25::RadioParameters, Duration)> {
        let line = (self.frames == LineFrames::Ax25Ui).then(|| ax25::RadioParameters {
            rate_bps: self.rate_bps as u32,
            tx_delay: Duration::ZERO,
            tx_tail: Duration::ZERO,
            full_duplex: true,
            ..ax25::RadioParameters::default()
        });
        self.believed_radio().or_else(|| Some((line?, UI_BURST)))
    }

    /// Model of the bit errors in this direction.
    pub fn errors(&self, direction: Direction) -> Errors {
        let ber = if direction == Direction::Forward { self.ber } else { self.back_ber.unwrap_or(self.ber) };
        match self.bursts {
            Some(bursts) => Errors::GilbertElliott(GilbertElliott {
                good_bits_mean: bursts.good_bits,
                bad_bits_mean: bursts.bad_bits,
                good_ber: bursts.good_ber,
                bad_ber: bursts.bad_ber,
            }),
            None if ber > 0.0 => Errors::Ber(ber),
            None => Errors::None,
        }
    }

    /// Returns the link as far as the settings of protocols depend on it.
    pub fn for_settings(&self) -> Hop {
        Hop {
            rate_bps: self.rate_bps,
            back_rate_bps: self.back_rate_bps,
            delays_s: self.round_trip_s(),
            mtu_bytes: self.mtu_bytes,
            queue_bytes: self.queue_bytes,
            drops: self.tail_drop,
            mean_ber: self.mean_ber(),
            radio: self.believed_radio().map(|(radio, _)| radio),
            ui_frames: self.frames == LineFrames::Ax25Ui,
        }
    }

    /// Returns the hop forward for the limit, with these outages.
    pub fn hop(&self, outages: Vec<(f64, f64)>) -> limit::LimitHop {
        let scheduled = self.delay_schedule.iter().map(|point| point.delay_ms);
        let soonest = scheduled.reduce(f64::min).unwrap_or(self.delay_ms);
        // Of AX.25 the MTU is the information field of a frame; otherwise it is a packet including its headers.
        let (header_bytes, payload_max_bytes) = match (&self.radio, self.frames) {
            (Some(_), _) | (None, LineFrames::Ax25Ui) => (limit::AX25_BYTES, self.mtu_bytes),
            (None, LineFrames::Ip) => {
                let around = self.ethernet.as_ref().map_or(0, |_| AROUND_BYTES);
                (limit::IP_BYTES + around, self.mtu_bytes - limit::IP_BYTES)
            }
        };
        limit::LimitHop {
            rate_bps: self.rate_bps as f64,
            delay_s: soonest / 1e3,
            errors: self.errors(Direction::Forward),
            header_bytes,
            payload_max_bytes,
            delivers_damaged: self.fcs == Fcs::None,
            keying: match (&self.radio, &self.ethernet) {
                (Some(radio), _) => Some(radio.keying(self)),
                (None, ethernet) => ethernet.as_ref().map(EthernetChannel::keying),
            },
            outages,
        }
    }
}

fn is_time(millis: f64) -> bool {
    (0.0..=1e9).contains(&millis)
}

/// Names of the built-in profiles.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The same, for display.
pub fn shipped_names() -> String {
    shipped().collect::<Vec<_>>().join(", ")
}

fn table_of(name: &str, base: &Path) -> Result<Table, Error> {
    if let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
        return toml_text::parse(text, name);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        let known = format!("built-in links: {}; or give the path of a .toml file", shipped_names());
        let hint = match nearest(name, SHIPPED.iter().map(|(name, _)| *name)) {
            Some(near) => format!("did you mean `{near}`? {known}"),
            None => known,
        };
        return Err(Error::new(format!("no such link profile: `{name}`")).hint(hint));
    }
    let path = base.join(name);
    let text = longwire_settings::file::read_text(&path).map_err(|error| {
        Error::new(format!("cannot read the link profile {}: {error}", path.display()))
            .hint(format!("built-in links: {}; or give the path of a .toml file", shipped_names()))
    })?;
    toml_text::parse(&text, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_profile_loads() {
        for (name, _) in SHIPPED {
            let path = LinkPath::load(name, Path::new(".")).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!path.title.is_empty(), "{name} has a title");
        }
    }

    #[test]
    fn the_profiles_of_the_page_are_understood() {
        let page = include_str!("../../../docs/links.md");
        let keys = "title = 't'\nrate-bps = 9600\n";
        let blocks: Vec<&str> = page.split("\n```toml link\n").skip(1).collect();
        assert!(blocks.len() >= 2);
        for block in blocks {
            let text = block.split("\n```").next().expect("its text");
            let text = if text.contains("[[hop]]") { text.to_owned() } else { keys.to_owned() + text };
            let file = std::env::temp_dir().join(format!("longwire-page-{}.toml", std::process::id()));
            std::fs::write(&file, &text).expect("a file");
            let path = LinkPath::load(&file.display().to_string(), Path::new("."));
            std::fs::remove_file(&file).expect("it is ours");
            assert!(path.unwrap_or_else(|error| panic!("{error}\n{text}")).has_outages());
        }
    }

    #[test]
    fn an_unknown_link_names_the_nearest_one() {
        let error = LinkProfile::load("cislnar", Path::new(".")).expect_err("there is no such link");
        assert!(error.to_string().contains("did you mean `cislunar`?"), "{error}");
    }

    #[test]
    fn a_scenario_changes_a_profile_key_by_key() {
        let said: Table = toml::from_str("profile = 'cislunar'\ndelay-ms = 2000").expect("TOML");
        let profile = LinkProfile::resolve(&said, Path::new(".")).expect("a profile");
        assert_eq!((profile.delay_ms, profile.rate_bps), (2000.0, 115_200));
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_one() {
        let said: Table = toml::from_str("profile = 'cislunar'\ndealy-ms = 2000").expect("TOML");
        let error = LinkProfile::resolve(&said, Path::new(".")).expect_err("no such key");
        assert!(error.to_string().contains("did you mean `delay-ms`?"), "{error}");
    }

    #[test]
    fn senseless_values_are_refused() {
        for wrong in [
            "rate-bps = 0",
            "rate-bps = 9223372036854775807",
            "back-rate-bps = 0",
            "ber = 0.7",
            "ber = nan",
            "mtu-bytes = 10",
            "delay-ms = -1",
            "queue-bytes = 100",
            "delay-schedule = [{ at-s = 5, delay-ms = 1 }, { at-s = 1, delay-ms = 1 }]",
            "delay-schedule = [{ at-s = -1, delay-ms = 1 }]",
            "bursts = { good-ber = 0, bad-ber = 2, good-bits = 10, bad-bits = 10 }",
            "bursts = { good-ber = 0, bad-ber = 0.1, good-bits = 0, bad-bits = 10 }",
            "mtu-bytes = 256\ndelay-ms = 5\n[radio]",
            "mtu-bytes = 256\nback-rate-bps = 1200\n[radio]",
            "mtu-bytes = 256\nfcs = 'none'\n[radio]",
            "mtu-bytes = 256\n[radio]\ntx-delay-ms = -1",
            "mtu-bytes = 256\n[radio]\nturnaround-ms = nan",
            "mtu-bytes = 256\n[radio]\nkey-up-max-s = 0",
            "mtu-bytes = 4096\nqueue-bytes = 20000\n[radio]",
            "mtu-bytes = 256\nrate-bps = 10\n[radio]",
            "mtu-bytes = 256\nframes = 'ax25-ui'\n[radio]",
            "mtu-bytes = 2049\nframes = 'ax25-ui'",
            "mtu-bytes = 256\nframes = 'ax25-ui'\nfcs = 'crc32'",
            "mtu-bytes = 256\nframes = 'ax25-ui'\nrate-bps = 10",
            "[ethernet]\nslots = 12",
            "[ethernet]\ncost-ms = -1",
            "delay-ms = 5\n[ethernet]",
            "[ethernet]\n[radio]",
        ] {
            let said: Table = toml::from_str(wrong).expect("TOML");
            LinkProfile::resolve(&said, Path::new(".")).expect_err(wrong);
        }
    }
}
