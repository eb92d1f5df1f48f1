//! Half-duplex radio channel that both ends share, as in packet radio.

use super::LinkProfile;
use crate::error::Error;
use crate::limit::Keying;
use longwire_proto::ax25;
use longwire_proto::settings;
use longwire_proto::time::Duration;
use longwire_sim::{Access, Errors, PathConfig, RadioConfig, StationConfig};
use serde::{Deserialize, Serialize};

settings! {
    /// Channel access of the stations of a radio link. Both stations are alike; each link is a channel of its own without
    /// other users.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct RadioChannel {
        /// Time from key-up to the first frame (TXDELAY), milliseconds. Default 300.
        pub tx_delay_ms: f64 = 300.0,
        /// Time from the end of the last frame to key-down (TXTAIL), milliseconds. Default 20.
        pub tx_tail_ms: f64 = 20.0,
        /// One slot of persistence, milliseconds. Default 100.
        pub slot_time_ms: f64 = 100.0,
        /// Persistence: the probability to start in a slot is (`persistence` + 1) / 256. Default 63, a quarter.
        pub persistence: u8 = 63,
        /// Use of persistence and slot: `draw-then-wait` (KISS controllers), `wait-then-draw` (Dire Wolf), `uniform`.
        /// Default `draw-then-wait`.
        pub access: Access,
        /// Time from the end of the other station's signal until the station is ready to send (controller, serial line,
        /// radio), milliseconds. Default 0.
        pub turnaround_ms: f64,
        /// Maximum duration of one key-up, seconds. Default 60.
        pub key_up_max_s: f64 = 60.0,
    }
}

/// Key of a link that does not apply to a radio channel, with a test whether it is set.
type Alien = (&'static str, fn(&LinkProfile, &LinkProfile) -> bool);

const ALIENS: [Alien; 8] = [
    ("frames", |link, plain| link.frames != plain.frames),
    ("back-rate-bps", |link, plain| link.back_rate_bps != plain.back_rate_bps),
    ("delay-ms", |link, plain| link.delay_ms != plain.delay_ms),
    ("back-delay-ms", |link, plain| link.back_delay_ms != plain.back_delay_ms),
    ("delay-schedule", |link, plain| link.delay_schedule != plain.delay_schedule),
    ("queue-bytes", |link, plain| link.queue_bytes != plain.queue_bytes),
    ("tail-drop", |link, plain| link.tail_drop != plain.tail_drop),
    ("fcs", |link, plain| link.fcs != plain.fcs),
];

/// Duration of this number of milliseconds.
pub(crate) fn millis(millis: f64) -> Duration {
    Duration::from_nanos((millis * 1e6) as u64)
}

impl RadioChannel {
    pub(super) fn check(&self, link: &LinkProfile, place: &str) -> Result<(), Error> {
        let wrong = |key: &str, rule: &str| Err(Error::new(format!("{place}: `{key}` {rule}")));
        let times = [
            ("radio.tx-delay-ms", self.tx_delay_ms),
            ("radio.tx-tail-ms", self.tx_tail_ms),
            ("radio.slot-time-ms", self.slot_time_ms),
            ("radio.turnaround-ms", self.turnaround_ms),
        ];
        if let Some((key, _)) = times.iter().find(|(_, millis)| !(0.0..=60_000.0).contains(millis)) {
            return wrong(key, "must be from 0 to 60000");
        }
        if !(1.0..=3600.0).contains(&self.key_up_max_s) {
            return wrong("radio.key-up-max-s", "must be from 1 to 3600");
        }
        if !(300..=10_000_000).contains(&link.rate_bps) {
            return wrong("rate-bps", "must be from 300 to 10000000 on a radio channel");
        }
        if link.mtu_bytes > 2048 {
            return wrong(
                "mtu-bytes",
                "is the length of the information field; it must not exceed 2048 on a radio channel",
            );
        }
        let plain = LinkProfile::default();
        match ALIENS.iter().find(|(_, given)| given(link, &plain)) {
            Some((key, _)) => wrong(key, "does not apply to a radio channel; remove it"),
            None => Ok(()),
        }
    }

    /// Channel for the simulator; its first station is the one towards the source.
    pub fn channel(&self, link: &LinkProfile, errors: [Errors; 2]) -> RadioConfig {
        let station = StationConfig {
            tx_delay: millis(self.tx_delay_ms),
            tx_tail: millis(self.tx_tail_ms),
            slot_time: millis(self.slot_time_ms),
            persistence: self.persistence,
            access: self.access,
            carrier_off: millis(self.turnaround_ms),
            ..StationConfig::default()
        };
        let path =
            |from: u16, errors| PathConfig { errors: Some(errors), ..PathConfig::clear(from, 1 - from) };
        let [there, back] = errors;
        RadioConfig {
            rate_bps: link.rate_bps,
            stations: vec![station],
            paths: vec![path(0, there), path(1, back)],
            ..RadioConfig::default()
        }
    }

    /// Parameters that a station knows about the channel.
    pub fn believed(&self, link: &LinkProfile) -> ax25::RadioParameters {
        ax25::RadioParameters {
            rate_bps: link.rate_bps as u32,
            tx_delay: millis(self.tx_delay_ms),
            tx_tail: millis(self.tx_tail_ms),
            slot_time: millis(self.slot_time_ms),
            persistence: self.persistence,
            turnaround: millis(2.0 * self.turnaround_ms) + ax25::RadioParameters::default().turnaround,
            ..ax25::RadioParameters::default()
        }
    }

    /// TXDELAY, TXTAIL, slot time and persistence, for display.
    pub fn in_words(&self) -> String {
        let RadioChannel { tx_delay_ms, tx_tail_ms, slot_time_ms, persistence, .. } = self;
        format!("{tx_delay_ms} ms, {tx_tail_ms} ms, {slot_time_ms} ms, {persistence}")
    }

    /// Channel in the form of a node configuration, with its TNC.
    pub fn as_configured(&self, link: &LinkProfile) -> String {
        let RadioChannel { tx_delay_ms, tx_tail_ms, slot_time_ms, persistence, .. } = self;
        format!(
            "[tnc.channel]\nrate-bps = {}\ntx-delay = \"{tx_delay_ms} ms\"\ntx-tail = \"{tx_tail_ms} ms\"\n\
             slot-time = \"{slot_time_ms} ms\"\npersistence = {persistence}\n",
            link.rate_bps
        )
    }

    /// Maximum key-up.
    pub fn key_up_max(&self) -> Duration {
        Duration::from_secs_f64(self.key_up_max_s)
    }

    /// Keying for the limit.
    pub(super) fn keying(&self, link: &LinkProfile) -> Keying {
        let station = self.channel(link, [Errors::None; 2]).stations.remove(0);
        Keying {
            access_s: station.access_mean().as_secs_f64(),
            before_s: station.tx_delay.as_secs_f64(),
            after_s: station.tx_tail.as_secs_f64(),
            burst_max_s: self.key_up_max_s,
            frames_max: station.key_up_frames,
        }
    }
}
