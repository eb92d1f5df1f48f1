//! Half-duplex channel that both ends share, with one Ethernet frame per transmission: D-STAR DD, amateur 802.11.

use super::{LinkProfile, millis};
use crate::error::Error;
use crate::ethernet::EthernetConfig;
use crate::ethernet::wire::{HEADER_BYTES, MacAddress};
use crate::limit::Keying;
use longwire_proto::service::InterfaceId;
use longwire_proto::settings;
use longwire_proto::time::Duration;
use longwire_sim::{Access, Errors, Framing, PathConfig, RadioConfig, StationConfig};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Bytes of a frame beside its packet: the header and the check sequence.
pub(crate) const AROUND_BYTES: u32 = HEADER_BYTES as u32 + 4;

settings! {
    /// Channel access of the stations of a link with Ethernet frames. Both stations are alike; each link is a channel of its
    /// own without other users. A station that finds the channel clear transmits at once; one that found it busy waits a
    /// random number of slots, and one that has just transmitted waits all of them.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct EthernetChannel {
        /// Fixed cost of each transmission, milliseconds: preamble, header of the radio, turnaround. Default 22.6.
        pub cost_ms: f64 = 22.6,
        /// One slot, milliseconds. Default 0.5.
        pub slot_time_ms: f64 = 0.5,
        /// Number of slots, a power of two from 1 to 256. Default 16.
        pub slots: u32 = 16,
        /// Time until the signal of the other station is detected, milliseconds. Default 0.25.
        pub detection_ms: f64 = 0.25,
    }
}

/// Key of a link that does not apply to such a channel, with a test whether it is set.
type Alien = (&'static str, fn(&LinkProfile, &LinkProfile) -> bool);

const ALIENS: [Alien; 8] = [
    ("radio", |link, plain| link.radio != plain.radio),
    ("frames", |link, plain| link.frames != plain.frames),
    ("back-rate-bps", |link, plain| link.back_rate_bps != plain.back_rate_bps),
    ("delay-ms", |link, plain| link.delay_ms != plain.delay_ms),
    ("back-delay-ms", |link, plain| link.back_delay_ms != plain.back_delay_ms),
    ("delay-schedule", |link, plain| link.delay_schedule != plain.delay_schedule),
    ("tail-drop", |link, plain| link.tail_drop != plain.tail_drop),
    ("fcs", |link, plain| link.fcs != plain.fcs),
];

impl EthernetChannel {
    pub(super) fn check(&self, link: &LinkProfile, place: &str) -> Result<(), Error> {
        let wrong = |key: &str, rule: &str| Err(Error::new(format!("{place}: `{key}` {rule}")));
        let times = [
            ("ethernet.cost-ms", self.cost_ms),
            ("ethernet.slot-time-ms", self.slot_time_ms),
            ("ethernet.detection-ms", self.detection_ms),
        ];
        if let Some((key, _)) = times.iter().find(|(_, millis)| !(0.0..=60_000.0).contains(millis)) {
            return wrong(key, "must be from 0 to 60000");
        }
        if !(1..=256).contains(&self.slots) || !self.slots.is_power_of_two() {
            return wrong("ethernet.slots", "must be a power of two from 1 to 256");
        }
        let plain = LinkProfile::default();
        match ALIENS.iter().find(|(_, given)| given(link, &plain)) {
            Some((key, _)) => wrong(key, "does not apply to a channel with Ethernet frames; remove it"),
            None => Ok(()),
        }
    }

    /// Channel for the simulator; its first station is the one towards the source.
    pub fn channel(&self, link: &LinkProfile, errors: [Errors; 2]) -> RadioConfig {
        let station = StationConfig {
            tx_delay: millis(self.cost_ms),
            tx_tail: Duration::ZERO,
            slot_time: millis(self.slot_time_ms),
            persistence: (256 / self.slots - 1) as u8,
            access: Access::Backoff,
            carrier_on: millis(self.detection_ms),
            key_up_frames: 1,
            ..StationConfig::default()
        };
        let path =
            |from: u16, errors| PathConfig { errors: Some(errors), ..PathConfig::clear(from, 1 - from) };
        let [there, back] = errors;
        RadioConfig {
            rate_bps: link.rate_bps,
            framing: Framing::Ethernet,
            mtu_bytes: link.mtu_bytes + HEADER_BYTES as u32,
            stations: vec![station],
            paths: vec![path(0, there), path(1, back)],
            ..RadioConfig::default()
        }
    }

    /// Station of the node at this end, 0 towards the source, whose host has this interface and address.
    pub(crate) fn station(
        &self,
        link: &LinkProfile,
        end: u16,
        host: (InterfaceId, Ipv4Addr),
        other: Ipv4Addr,
    ) -> EthernetConfig {
        EthernetConfig {
            mac: MacAddress::of_station(end),
            addresses: vec![host],
            arp: vec![(other, MacAddress::of_station(1 - end))],
            queue_frames: (link.queue_bytes / u64::from(link.mtu_bytes)) as usize,
            mtu_bytes: link.mtu_bytes as usize,
            ..EthernetConfig::default()
        }
    }

    /// Station with this number on a channel of several, whose addresses are those of the hosts in order.
    pub(crate) fn station_of_several(
        &self,
        link: &LinkProfile,
        station: u16,
        interface: InterfaceId,
        addresses: &[Ipv4Addr],
    ) -> EthernetConfig {
        let own = addresses[usize::from(station)];
        let known =
            addresses.iter().zip(0..).map(|(address, number)| (*address, MacAddress::of_station(number)));
        EthernetConfig {
            mac: MacAddress::of_station(station),
            arp: known.collect(),
            ..self.station(link, 0, (interface, own), own)
        }
    }

    /// Cost of a transmission, slot, number of slots and detection, for display.
    pub fn in_words(&self) -> String {
        let EthernetChannel { cost_ms, slot_time_ms, slots, detection_ms } = self;
        format!("{cost_ms} ms, {slot_time_ms} ms, {slots}, {detection_ms} ms")
    }

    /// Keying for the limit: every frame costs, and waits for nobody.
    pub(super) fn keying(&self) -> Keying {
        Keying { access_s: 0.0, before_s: self.cost_ms / 1e3, after_s: 0.0, burst_max_s: 0.0, frames_max: 1 }
    }
}
