//! `[[tnc]]`, and links over it: packet radio.

use super::tnc_address::{LineAddress, TncAddress};
use super::{Config, LinkSettings};
use longwire_proto::ax25::{
    self, ADDRESS_BYTES, Announcement, Callsign, DIGIPEATERS_MAX, LinkConfig, RadioParameters, Version,
};
use longwire_proto::bp::Eid;
use longwire_proto::controller::{self, ChannelParameters};
use longwire_proto::discovery::aprs;
use longwire_proto::setting::Settings;
use longwire_proto::{agwpe, kiss, settings};
use longwire_settings::duration::short;
use longwire_settings::error::{Error, did_you_mean};
use longwire_settings::toml_text;
use longwire_towers::Medium;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Maximum length of a node ID in the convergence layer over AX.25, bytes.
const NODE_ID_BYTES_MAX: usize = 100;
/// Space that a hello needs in a frame in addition to the node ID, for the tags of the session and its resumption, bytes.
const BESIDE_NODE_ID_BYTES: usize = 40;

settings! {
    /// TNC: a controller between this node and a radio, in KISS mode or behind an AGWPE server; Dire Wolf offers both.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct TncSettings {
        /// Name of the TNC, for links.
        pub name: String,
        /// Address over TCP: `host:port` in KISS mode, such as `127.0.0.1:8001`; `agwpe:host:port` for a port of an AGWPE
        /// server, such as `agwpe:127.0.0.1:8000`. Default: none, the TNC is on a serial line.
        pub address: Option<String>,
        /// Device of the serial line, such as `/dev/ttyUSB0`; 8 data bits, no parity, one stop bit. Default: none, the TNC is
        /// reached over TCP. KISS 3.
        pub serial: Option<String>,
        /// Speed of the serial line, bit/s. Default 9,600.
        pub serial_rate_bps: u32 = 9600,
        /// Callsign of this station, with its SSID if it has one: `EI7IG-3`. Each station on a channel needs its own. AX.25
        /// 3.12.2.
        pub callsign: String,
        /// The radio uses an amateur radio band, where encryption is not allowed: encrypted bundles are not sent over the TNC,
        /// whoever has made them. Default: true. Licensed services of other kinds may set it to false.
        pub amateur: bool = true,
        /// Accepts incoming connections. Default: true.
        pub answer: bool = true,
        /// Repeats frames that name this station as a digipeater. Default: false. AX.25 3.12.4.
        pub repeats: bool,
        /// Maximum concurrent links; further connection requests are refused. Default 64.
        pub links_max: usize = 64,
        /// Time that stations, their controllers and the lines between them need for an answer. Default 500 ms.
        pub turnaround: Duration = Duration::from_millis(500),
        /// Maximum duration of frames per key-up; further frames wait for the next one. Default 60 s. AX.25 6.7.1 (T107).
        pub transmission_max: Duration = Duration::from_secs(60),
        /// Maximum transmission time in any `air-time-window`, key-ups included, for all frames including answers; further
        /// frames wait. A peer that waits too long for an answer drops its link. Default: none, air time is not limited.
        pub air_time_max: Option<Duration>,
        /// Window of `air-time-max`. Default 10 min.
        pub air_time_window: Duration = Duration::from_secs(600),
        /// Maximum share of any `duty-cycle-window` in which the station transmits, from 0 to 1, such as 0.5 for half of the time,
        /// which many transmitters need to cool down; in addition to `air-time-max`. Default: none.
        pub duty_cycle_max: Option<f64>,
        /// Window of `duty-cycle-max`. Default 1 min.
        pub duty_cycle_window: Duration = Duration::from_secs(60),
        /// Transmits nothing after the start until `longwire links permit` allows it; everything waits. Default: false.
        pub inhibit: bool,
        /// Text that identifies the station, which should contain its callsign: sent to `ID` in a UI frame at most
        /// `identification-interval` after a transmission, and when the last link has ended. Default: none, because every frame of
        /// AX.25 contains the callsign of its station.
        pub identification: Option<String>,
        /// Maximum time from a transmission to the next identification. Default 10 min, the limit in many countries.
        pub identification_interval: Duration = Duration::from_secs(600),
        /// Text sent to `BEACON` in a UI frame every `beacon-interval`, the first within a minute of the start. Default: none.
        pub beacon: Option<String>,
        /// Interval of beacons. Default 30 min.
        pub beacon_interval: Duration = Duration::from_secs(1800),
        /// Announces this node every `beacon-interval` in a form that APRS software shows, with the words of `beacon` behind the
        /// node ID, and hears the announcements of others (`discovery`). Default: false.
        pub discovery: bool,
        /// Position of the station for `discovery`, degrees north and east: `53.2734, -7.7783`. With it APRS software shows the
        /// node as an object on its map, otherwise as the status of the station. Default: none.
        pub position: Option<String>,
        /// Maximum frames that the TNC holds at a time. Default 64.
        pub burst_frames_max: u32 = controller::Config::default().burst_frames_max,
        /// Delay between the loss of the line and the first attempt to reconnect; doubled after each attempt. Default 1 s.
        pub reconnect_min: Duration = controller::Config::default().reconnect_min,
        /// Maximum delay between attempts. Default 60 s.
        pub reconnect_max: Duration = controller::Config::default().reconnect_max,
        /// Parameters of the radio channel.
        pub channel: ChannelParameters = controller::Config::default().channel,
        /// Settings for KISS mode.
        pub kiss: kiss::Config,
        /// Settings for an AGWPE server.
        pub agwpe: agwpe::Config,
        /// Settings of AX.25 links.
        pub ax25: LinkConfig,
    }
}

impl TncSettings {
    /// Returns the address and the protocol of the TNC.
    ///
    /// # Errors
    /// Fails if neither or both of `address` and `serial` are set, or if the one that is set is invalid.
    pub fn place(&self) -> Result<TncAddress, Error> {
        let wrong =
            |what: &str, hint: &str| Err(Error::new(format!("TNC `{}`: {what}", self.name)).hint(hint));
        match (&self.address, &self.serial) {
            (Some(_), Some(_)) => wrong(
                "both `address` and `serial` are set",
                "remove one: `address` is for TCP, `serial` for a device",
            ),
            (None, None) => wrong(
                "neither `address` nor `serial` is set",
                "set `address = \"127.0.0.1:8001\"` or `serial = \"/dev/ttyUSB0\"`",
            ),
            (Some(address), None) => match address.parse() {
                Ok(place @ (TncAddress::Kiss(LineAddress::Tcp(_)) | TncAddress::Agwpe(_))) => Ok(place),
                _ => wrong(
                    &format!("`{address}` is not a valid address"),
                    "use host:port for KISS (Dire Wolf: port 8001) or agwpe:host:port (Dire Wolf: port 8000)",
                ),
            },
            (None, Some(path)) if path.starts_with('/') => Ok(TncAddress::Kiss(LineAddress::Serial {
                path: path.clone(),
                speed_bps: self.serial_rate_bps,
            })),
            (None, Some(path)) => {
                wrong(&format!("`{path}` is not a serial device"), "use a path such as /dev/ttyUSB0")
            }
        }
    }

    /// Returns the timing of the channel, for computing how long an answer can take.
    pub(crate) fn radio(&self) -> RadioParameters {
        let ChannelParameters { rate_bps, tx_delay, tx_tail, slot_time, persistence, full_duplex } =
            self.channel;
        let turnaround = self.turnaround;
        RadioParameters { rate_bps, tx_delay, tx_tail, slot_time, persistence, full_duplex, turnaround }
    }

    /// Returns the configuration of the engine for the TNC.
    pub(crate) fn controller_config(&self) -> controller::Config {
        let TncSettings { burst_frames_max, reconnect_min, reconnect_max, .. } = *self;
        controller::Config { channel: self.channel.clone(), burst_frames_max, reconnect_min, reconnect_max }
    }

    /// Returns the callsign of this station.
    pub(crate) fn own(&self) -> Result<Callsign, Error> {
        let place = format!("TNC `{}`: `callsign`", self.name);
        let own = callsign(&place, &self.callsign)?;
        if own.is_placeholder() {
            let what = format!("{place}: replace the example callsign {own} with your own");
            return Err(Error::new(what).hint(
                "use your callsign with an SSID that no other station of yours uses; every transmission must identify its \
                 operator",
            ));
        }
        Ok(own)
    }

    /// Returns the text that announces a node; `None` if it would be too long.
    pub(crate) fn announcement_text(&self, node: &Eid) -> Option<String> {
        let position = self.position.as_deref().and_then(aprs::Position::parse);
        aprs::text(node, position, self.beacon.as_deref().unwrap_or_default())
    }

    /// Returns the configuration of the station of a node, without its peers.
    ///
    /// # Errors
    /// Fails if the callsign is invalid.
    pub(crate) fn station_of(&self, node: &Eid) -> Result<ax25::Config, Error> {
        let mut station = self.station()?;
        if self.discovery {
            station.beacon = announcement(&self.announcement_text(node), self.beacon_interval);
        }
        Ok(station)
    }

    fn station(&self) -> Result<ax25::Config, Error> {
        Ok(ax25::Config {
            callers: self.answer.then(|| self.ax25.clone()),
            links_max: self.links_max,
            repeats: self.repeats,
            restarts: true,
            radio: self.radio(),
            transmission_max: self.transmission_max,
            air_time_max: self.air_time_max,
            air_time_window: self.air_time_window,
            duty_cycle_max: self.duty_cycle_max,
            duty_cycle_window: self.duty_cycle_window,
            inhibited: self.inhibit,
            identification: announcement(&self.identification, self.identification_interval),
            beacon: announcement(&self.beacon, self.beacon_interval),
            ..ax25::Config::new(self.own()?)
        })
    }

    fn check(&self) -> Result<(), Error> {
        self.station()?;
        let place = format!("TNC `{}`", self.name);
        self.check_sections(&self.place()?)?;
        self.controller_config().check().map_err(|fault| Error::from(fault).within(&place))?;
        self.kiss.check().map_err(|fault| fault.within(&format!("{place}: kiss")))?;
        self.agwpe.check().map_err(|fault| fault.within(&format!("{place}: agwpe")))?;
        self.ax25.check().map_err(|fault| fault.within(&format!("{place}: ax25")))?;
        let wrong = |what: &str, hint: &str| Err(Error::new(format!("{place}: {what}")).hint(hint));
        if self.links_max == 0 {
            return wrong("`links-max` is 0", "64 is usual; to accept no connections, set `answer = false`");
        }
        if self.serial_rate_bps == 0 {
            return wrong("`serial-rate-bps` is 0", "9600 is usual");
        }
        self.check_announcements()?;
        if self.transmission_max.is_zero() {
            return wrong("`transmission-max` is zero", "60 s is usual");
        }
        Ok(())
    }
}

impl TncSettings {
    /// Checks that the limits allow the longest of these frames, with an identification before it.
    fn check_air_time(&self, frames: impl Iterator<Item = LongestFrame>) -> Result<(), Error> {
        let place = format!("TNC `{}`", self.name);
        let wrong = |what: &str, hint: &str| Err(Error::new(format!("{place}: {what}")).hint(hint));
        let radio = self.radio();
        let with_key_up = |bytes: u64| radio.tx_delay + radio.tx_tail + radio.air_time(1, bytes);
        let identification =
            self.identification.as_ref().map_or(Duration::ZERO, |text| with_key_up(16 + text.len() as u64));
        let own = LongestFrame { information_bytes: self.ax25.information_bytes_max, digipeaters: 0 };
        let frame = frames.fold(own, |one, other| if other.bytes() > one.bytes() { other } else { one });
        let longest = with_key_up(frame.bytes()) + identification;
        let share = self.duty_cycle_max;
        if share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return wrong("`duty-cycle-max` must be greater than 0 and at most 1", "0.5 is half of the time");
        }
        if share.is_some_and(|share| self.duty_cycle_window.mul_f64(share) < longest) {
            return wrong(
                "`duty-cycle-max` of `duty-cycle-window` is shorter than the longest frame",
                &format!(
                    "{frame} takes {} with key-up{}; lengthen `duty-cycle-window`",
                    short(longest),
                    if identification.is_zero() { "" } else { " and an identification" },
                ),
            );
        }
        if self.air_time_max.is_some_and(|max| max < longest || max > self.air_time_window) {
            return wrong(
                "`air-time-max` must be long enough for the longest frame and not longer than `air-time-window`",
                &format!(
                    "{frame} takes {} with key-up; the window is {}; remove `air-time-max` for no limit",
                    short(longest),
                    short(self.air_time_window)
                ),
            );
        }
        Ok(())
    }
}

/// Longest frame of a link.
#[derive(Clone, Copy, Debug)]
struct LongestFrame {
    information_bytes: u32,
    /// Digipeaters that the frame names.
    digipeaters: usize,
}

impl LongestFrame {
    /// Length with the header, bytes: two addresses and one for each digipeater, a control field for modulo 128, and the protocol
    /// identifier (AX.25 3.12, 4.2.1).
    fn bytes(self) -> u64 {
        const CONTROL_BYTES: u64 = 3;
        let addresses_bytes = (2 + self.digipeaters as u64) * ADDRESS_BYTES as u64;
        u64::from(self.information_bytes) + addresses_bytes + CONTROL_BYTES
    }
}

impl fmt::Display for LongestFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a frame of {} bytes", self.information_bytes)?;
        match self.digipeaters {
            0 => Ok(()),
            1 => f.write_str(" through a digipeater"),
            more => write!(f, " through {more} digipeaters"),
        }
    }
}

/// Maximum length of an identification or a beacon, bytes: the default for information fields in AX.25 6.7.2.3.
const ANNOUNCEMENT_BYTES_MAX: usize = 256;
/// Minimum interval of identifications and beacons.
const ANNOUNCEMENT_INTERVAL_MIN: Duration = Duration::from_secs(30);

fn announcement(text: &Option<String>, interval: Duration) -> Option<Announcement> {
    text.as_ref().map(|text| Announcement { text: text.clone().into(), interval })
}

impl TncSettings {
    /// Checks the texts that the station sends by itself, and their intervals.
    fn check_announcements(&self) -> Result<(), Error> {
        for (key, text, interval) in [
            ("identification", &self.identification, self.identification_interval),
            ("beacon", &self.beacon, self.beacon_interval),
        ] {
            let wrong =
                |what: &str, hint: &str| Err(Error::new(format!("TNC `{}`: {what}", self.name)).hint(hint));
            let Some(text) = text else { continue };
            if text.is_empty() || text.len() > ANNOUNCEMENT_BYTES_MAX {
                return wrong(
                    &format!(
                        "`{key}` has {} bytes; it must have from 1 to {ANNOUNCEMENT_BYTES_MAX}",
                        text.len()
                    ),
                    "a short text saves air time; remove it to send none",
                );
            }
            if text.chars().any(char::is_control) {
                return wrong(
                    &format!("`{key}` contains a control character"),
                    "use printable characters only",
                );
            }
            if interval < ANNOUNCEMENT_INTERVAL_MIN {
                return wrong(
                    &format!("`{key}-interval` is {}", short(interval)),
                    "10 min is usual; the minimum is 30 s",
                );
            }
        }
        Ok(())
    }
}

impl TncSettings {
    /// Checks that TNCs in KISS mode at one address, which share a line, have different ports and the same checksum.
    fn check_beside(&self, other: &TncSettings) -> Result<(), Error> {
        let (Ok(place @ TncAddress::Kiss(_)), Ok(there)) = (self.place(), other.place()) else {
            return Ok(());
        };
        let what = |what: &str| {
            Error::new(format!("TNCs `{}` and `{}` share {place}: {what}", self.name, other.name))
        };
        if place != there {
            Ok(())
        } else if self.kiss.port == other.kiss.port {
            Err(what(&format!("both use port {}", self.kiss.port)).hint("give each a different `kiss.port`"))
        } else if self.kiss.checksum != other.kiss.checksum {
            Err(what("their checksums differ").hint("set the same `kiss.checksum` for all TNCs on a line"))
        } else {
            Ok(())
        }
    }

    /// Refuses settings of the protocol that the TNC does not use.
    fn check_sections(&self, place: &TncAddress) -> Result<(), Error> {
        let (kiss, agwpe) = (self.kiss != kiss::Config::default(), self.agwpe != agwpe::Config::default());
        let (key, hint) = match place {
            TncAddress::Kiss(_) if agwpe => {
                ("agwpe", "for an AGWPE server, set `address = \"agwpe:host:port\"`")
            }
            TncAddress::Agwpe(_) if kiss => ("kiss", "for KISS, remove `agwpe:` from `address`"),
            _ => return Ok(()),
        };
        let name = &self.name;
        Err(Error::new(format!("TNC `{name}` at {place}: `{key}` does not apply")).hint(hint))
    }
}

impl Config {
    /// Describes TNCs and the links over them for an operator.
    pub(super) fn explain_radio(&self, line: &mut impl FnMut(String)) {
        for tnc in &self.tnc {
            tnc.explain(line);
            line(match self.is_amateur_tnc(tnc) {
                true => "Amateur radio: encrypted bundles are never sent over this TNC; they take another link or wait.".to_owned(),
                false => "Not amateur radio: encrypted bundles may be sent over this TNC.".to_owned(),
            });
        }
        for link in self.link.iter().filter(|link| link.medium().is_radio()) {
            self.explain_link(link, line);
        }
    }
}

impl TncSettings {
    fn explain(&self, line: &mut impl FnMut(String)) {
        let place = self.place();
        let (at, port) = match &place {
            Err(error) => (error.what.clone(), 0),
            Ok(place @ TncAddress::Kiss(_)) => (place.to_string(), self.kiss.port),
            Ok(place @ TncAddress::Agwpe(_)) => (place.to_string(), self.agwpe.port),
        };
        let ChannelParameters { rate_bps, tx_delay, slot_time, persistence, .. } = self.channel;
        let is_told = matches!(place, Ok(TncAddress::Kiss(_))) && self.kiss.send_parameters;
        line(format!(
            "TNC `{}` at {at}, port {port}: callsign {}, {rate_bps} bit/s, TXDELAY {}, slot time {}, \
             persistence {}/256{}.",
            self.name,
            self.callsign.to_ascii_uppercase(),
            short(tx_delay),
            short(slot_time),
            u16::from(persistence) + 1,
            if is_told { ", set by Longwire" } else { ", which must be set in the TNC" },
        ));
        let LinkConfig {
            version, window_frames, extended_window_frames, information_bytes_max, retries, ..
        } = self.ax25;
        let modulo = match version {
            Version::Plain => format!("windows of {window_frames} frames (modulo 8)"),
            Version::Extended => format!("windows of {extended_window_frames} frames (modulo 128)"),
            Version::Best => format!(
                "windows of {extended_window_frames} frames with modulo 128, {window_frames} with modulo 8"
            ),
        };
        line(format!(
            "AX.25 links: {modulo}, at most {information_bytes_max} bytes per frame, {retries} retries."
        ));
        line(match self.air_time_max {
            Some(max) => format!(
                "Air time: at most {} in any {}, key-ups included; further frames wait.",
                short(max),
                short(self.air_time_window)
            ),
            None => format!(
                "Air time: not limited, at most {} per transmission; set `air-time-max` to limit it.",
                short(self.transmission_max)
            ),
        });
        if let Some(share) = self.duty_cycle_max {
            let window = short(self.duty_cycle_window);
            line(format!(
                "Duty cycle: transmits at most {:.0} % of any {window}; further frames wait.",
                share * 100.0
            ));
        }
        if self.inhibit {
            line(format!("Transmits nothing until `longwire links permit {}` allows it.", self.name));
        }
        if let Some(text) = &self.identification {
            line(format!(
                "Identification: \"{text}\" at most {} after a transmission, and when the last link has ended.",
                short(self.identification_interval)
            ));
        }
        if let Some(text) = &self.beacon {
            line(format!("Beacon: \"{text}\" every {}.", short(self.beacon_interval)));
        }
        line(match self.answer {
            true => "Accepts AX.25 connections with either convergence layer.".to_owned(),
            false => "Accepts no AX.25 connections.".to_owned(),
        });
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RadioNeighbour {
    /// Index of its TNC in the configuration.
    pub(crate) tnc: usize,
    pub(crate) peer: ax25::PeerStation,
    /// True for a connected link, false for unconnected frames.
    pub(crate) is_connected: bool,
}

impl RadioNeighbour {
    /// Returns its callsign and the path to it, in words.
    pub(super) fn place(&self) -> String {
        let path: Vec<String> = self.peer.path.iter().map(ToString::to_string).collect();
        let via = if path.is_empty() { String::new() } else { format!(" via {}", path.join(", ")) };
        format!("{}{via}", self.peer.station)
    }
}

impl Config {
    /// Returns the neighbour of a link over a TNC; `None` for links over other media.
    ///
    /// # Errors
    /// Fails if the settings of the link are invalid.
    pub(crate) fn neighbour(&self, link: &LinkSettings) -> Result<Option<RadioNeighbour>, Error> {
        if !link.medium().is_radio() {
            return Ok(None);
        }
        let place = format!("link `{}`", link.name);
        let found = self.tnc.iter().position(|tnc| tnc.name == link.tnc);
        let Some(at) = found else { return Err(self.no_tnc(link)) };
        let tnc = &self.tnc[at];
        let station = real(&format!("{place}: `callsign`"), &link.callsign)?;
        if callsign("", &tnc.callsign).is_ok_and(|own| own == station) {
            return Err(Error::new(format!("{place}: {station} is the callsign of this station"))
                .hint("each station on a channel needs its own callsign or SSID"));
        }
        if link.path.len() > DIGIPEATERS_MAX {
            return Err(Error::new(format!("{place}: `path` has {} digipeaters", link.path.len()))
                .hint("a frame can name at most eight (AX.25 3.12.5)"));
        }
        let path = link.path.iter().map(|hop| real(&format!("{place}: `path`"), hop));
        let path = path.collect::<Result<Vec<Callsign>, Error>>()?;
        let is_connected = link.medium() != Medium::Ui;
        let link = toml_text::changed(&tnc.ax25, &link.ax25);
        let link = toml_text::read(link, &format!("{place}: [ax25]"))?;
        Ok(Some(RadioNeighbour { tnc: at, peer: ax25::PeerStation { station, path, link }, is_connected }))
    }

    /// Checks that the unconnected frames of a link have a callsign that no other link of its TNC has.
    pub(super) fn check_unconnected(&self, link: &LinkSettings) -> Result<(), Error> {
        if link.medium() != Medium::Ui {
            return Ok(());
        }
        let is_same = |other: &&LinkSettings| {
            other.medium() == Medium::Ui
                && other.tnc == link.tnc
                && other.callsign.eq_ignore_ascii_case(&link.callsign)
        };
        let LinkSettings { name, callsign, .. } = link;
        match self.link.iter().take_while(|other| other.name != *name).find(is_same) {
            None => Ok(()),
            Some(other) => Err(Error::new(format!(
                "link `{name}`: {callsign} is already the group of link `{}`",
                other.name
            ))
            .hint("use a different callsign for each group of a TNC")),
        }
    }

    /// Returns the TNC of a link.
    pub(super) fn tnc_of(&self, link: &LinkSettings) -> Option<&TncSettings> {
        self.tnc.iter().find(|tnc| tnc.name == link.tnc)
    }

    /// Returns true if what is sent over this TNC is amateur radio: by its own setting, or that of a link over it.
    pub(crate) fn is_amateur_tnc(&self, tnc: &TncSettings) -> bool {
        tnc.amateur || self.link.iter().any(|link| link.amateur && link.tnc == tnc.name)
    }

    fn no_tnc(&self, link: &LinkSettings) -> Error {
        let names = self.tnc.iter().map(|tnc| tnc.name.as_str());
        let hint = did_you_mean(&link.tnc, names, "set `tnc` to the `name` of a [[tnc]]");
        Error::new(format!("link `{}`: no such TNC: `{}`", link.name, link.tnc)).hint(hint)
    }

    pub(super) fn check_radio(&self) -> Result<(), Error> {
        for (at, tnc) in self.tnc.iter().enumerate() {
            if tnc.name.is_empty() {
                return Err(Error::new(format!("[[tnc]] number {} has no `name`", at + 1))
                    .hint("links refer to TNCs by name"));
            }
            if self.tnc[..at].iter().any(|other| other.name == tnc.name) {
                return Err(Error::new(format!("duplicate TNC name `{}`", tnc.name)).hint("rename one"));
            }
            tnc.check()?;
            tnc.check_air_time(self.longest_frames(tnc))?;
            self.check_frames(tnc)?;
            for other in &self.tnc[..at] {
                other.check_beside(tnc)?;
            }
        }
        Ok(())
    }

    /// Longest frames of the links over a TNC. Links that are not valid are refused with a reason of their own; the paths of
    /// stations that call are not known.
    fn longest_frames(&self, tnc: &TncSettings) -> impl Iterator<Item = LongestFrame> {
        let neighbours = self.link.iter().filter(|link| link.tnc == tnc.name);
        let neighbours = neighbours.filter_map(|link| self.neighbour(link).ok().flatten());
        neighbours.map(|RadioNeighbour { peer, .. }| LongestFrame {
            information_bytes: peer.link.information_bytes_max,
            digipeaters: peer.path.len(),
        })
    }

    /// Checks that the node ID fits in a frame.
    fn check_frames(&self, tnc: &TncSettings) -> Result<(), Error> {
        let length = self.node_id()?.to_string().len();
        if length > NODE_ID_BYTES_MAX {
            return Err(Error::new(format!("the node ID has {length} bytes"))
                .hint("over AX.25 the limit is 100 bytes; a shorter node ID also saves air time"));
        }
        if tnc.ax25.information_bytes_max as usize >= length + BESIDE_NODE_ID_BYTES {
            return Ok(());
        }
        Err(Error::new(format!(
            "TNC `{}`: `ax25.information-bytes-max` is {}, but the node ID alone needs {length}",
            tnc.name, tnc.ax25.information_bytes_max
        ))
        .hint("256 is usual"))
    }
}

/// Reads the callsign of another station, which must not be a placeholder: it goes on the air.
fn real(place: &str, text: &str) -> Result<Callsign, Error> {
    let read = callsign(place, text)?;
    match read.is_placeholder() {
        true => {
            Err(Error::new(format!("{place}: replace the example callsign {read} with that of the station"))
                .hint("every frame to the station contains it"))
        }
        false => Ok(read),
    }
}

fn callsign(place: &str, text: &str) -> Result<Callsign, Error> {
    let read = text.parse::<Callsign>();
    read.map_err(|why| Error::new(format!("{place}: `{text}` is not a valid callsign")).hint(why.to_string()))
}
