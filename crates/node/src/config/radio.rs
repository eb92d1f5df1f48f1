//! `[[tnc]]` and links over it: packet radio.

use super::{Config, LinkKind, LinkSettings, out_of_range};
use crate::tnc::{LineAddress, TncAddress, TncEngine};
use longwire_proto::ax25::{
    self, ADDRESS_BYTES, Callsign, DIGIPEATERS_MAX, Frame, LinkConfig, Modulo, RadioParameters, Version,
};
use longwire_proto::bp::Eid;
use longwire_proto::controller::{self, ChannelParameters};
use longwire_proto::tcpcl::{Tls, Versions};
use longwire_proto::{agwpe, ax25cl, kiss, tcpcl, uicl};
use longwire_settings::error::{Error, nearest};
use longwire_settings::toml_text;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest node id that the convergence layer over AX.25 says, bytes.
const NODE_ID_BYTES_MAX: usize = 100;
/// What a frame has to have room for beside the node id: who calls, and where it goes on.
const BESIDE_NODE_ID_BYTES: usize = 40;

/// A TNC: a controller between this node and a radio, in KISS mode or behind an AGWPE server; Dire Wolf is both, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TncSettings {
    /// What it is called, by links.
    pub name: String,
    /// Where it is, over TCP: `host:port`, such as `127.0.0.1:8001`, in KISS mode; `agwpe:host:port`, such as
    /// `agwpe:127.0.0.1:8000`, a port of an AGWPE server. Default: none, it is on a serial line.
    pub address: Option<String>,
    /// The device of its serial line, such as `/dev/ttyUSB0`; 8 data bits, no parity, one stop bit. Default: none, it is
    /// reached over TCP. KISS 3.
    pub serial: Option<String>,
    /// The speed of the serial line, bit/s. Default 9,600.
    pub serial_rate_bps: u32,
    /// The callsign of this station, with its SSID where it has one: `EI7IG-3`. Each station on a channel needs its own.
    /// AX.25 3.12.2.
    pub callsign: String,
    /// Stations may call. Default: yes.
    pub answer: bool,
    /// It repeats what names it as digipeater. Default: no. AX.25 3.12.4.
    pub repeats: bool,
    /// Links at a time; calls beyond are refused. Default 64.
    pub links_max: usize,
    /// What stations, their controllers and the lines between them take for an answer. Default 500 ms.
    pub turnaround: Duration,
    /// The longest time that one key-up sends frames; what is left waits for the next one. Default 60 s. AX.25 6.7.1 (T107).
    pub transmission_max: Duration,
    /// The longest time that it sends within any `air-time-window`, key-ups included, whoever asks for it; what is beyond waits.
    /// Peers that wait too long for an answer give a link up. Default: none, as long as it has something to send.
    pub air_time_max: Option<Duration>,
    /// The window of `air-time-max`. Default 10 min.
    pub air_time_window: Duration,
    /// Frames that it gets at a time. Default 64.
    pub burst_frames_max: u32,
    /// From the loss of its line to the first attempt to have it again; doubled after each. Default 1 s.
    pub reconnect_min: Duration,
    /// The longest time between attempts. Default 60 s.
    pub reconnect_max: Duration,
    /// The channel behind it.
    pub channel: ChannelParameters,
    /// How it is spoken with in KISS mode.
    pub kiss: kiss::Config,
    /// How it is spoken with behind an AGWPE server.
    pub agwpe: agwpe::Config,
    /// How its AX.25 links work.
    pub ax25: LinkConfig,
}

impl Default for TncSettings {
    fn default() -> Self {
        let controller::Config { channel, burst_frames_max, reconnect_min, reconnect_max } =
            controller::Config::default();
        TncSettings {
            name: String::new(),
            address: None,
            serial: None,
            serial_rate_bps: 9600,
            callsign: String::new(),
            answer: true,
            repeats: false,
            links_max: 64,
            turnaround: Duration::from_millis(500),
            transmission_max: Duration::from_secs(60),
            air_time_max: None,
            air_time_window: Duration::from_secs(600),
            burst_frames_max,
            reconnect_min,
            reconnect_max,
            channel,
            kiss: kiss::Config::default(),
            agwpe: agwpe::Config::default(),
            ax25: LinkConfig::default(),
        }
    }
}

impl TncSettings {
    /// Where it is, and how it is spoken with.
    ///
    /// # Errors
    /// It is nowhere, or at two places.
    pub fn place(&self) -> Result<TncAddress, Error> {
        let wrong =
            |what: &str, hint: &str| Err(Error::new(format!("TNC `{}`: {what}", self.name)).hint(hint));
        match (&self.address, &self.serial) {
            (Some(_), Some(_)) => wrong(
                "it has an `address` and a `serial` line",
                "leave one out: `address` is over TCP, `serial` is a device",
            ),
            (None, None) => wrong(
                "neither `address` nor `serial` says where it is",
                "address = \"127.0.0.1:8001\", or serial = \"/dev/ttyUSB0\"",
            ),
            (Some(address), None) => match address.parse() {
                Ok(place @ (TncAddress::Kiss(LineAddress::Tcp(_)) | TncAddress::Agwpe(_))) => Ok(place),
                _ => wrong(
                    &format!("`{address}` is no address"),
                    "write host:port for KISS, where Dire Wolf has port 8001, or agwpe:host:port, where it has port 8000",
                ),
            },
            (None, Some(path)) if path.starts_with('/') => Ok(TncAddress::Kiss(LineAddress::Serial {
                path: path.clone(),
                speed_bps: self.serial_rate_bps,
            })),
            (None, Some(path)) => {
                wrong(&format!("`{path}` is no serial device"), "write its path, such as /dev/ttyUSB0")
            }
        }
    }

    /// What the channel takes, for reckoning how long an answer may take.
    fn radio(&self) -> RadioParameters {
        let ChannelParameters { rate_bps, tx_delay, tx_tail, slot_time, persistence, full_duplex } =
            self.channel;
        let turnaround = self.turnaround;
        RadioParameters { rate_bps, tx_delay, tx_tail, slot_time, persistence, full_duplex, turnaround }
    }

    /// What speaks with it.
    ///
    /// # Errors
    /// It is nowhere, or at two places.
    pub(crate) fn controller(&self) -> Result<TncEngine, Error> {
        let config = self.controller_config();
        Ok(match self.place()? {
            TncAddress::Kiss(_) => {
                // An identification may be sent at any time, and nobody answers it.
                let probe = Frame::identification(self.own()?).to_bytes(Modulo::Eight);
                TncEngine::kiss(self.kiss.clone(), config, Some(probe))
            }
            TncAddress::Agwpe(_) => TncEngine::agwpe(self.agwpe.clone(), config),
        })
    }

    fn controller_config(&self) -> controller::Config {
        let TncSettings { burst_frames_max, reconnect_min, reconnect_max, .. } = *self;
        controller::Config { channel: self.channel.clone(), burst_frames_max, reconnect_min, reconnect_max }
    }

    /// The callsign of this station on its channel.
    fn own(&self) -> Result<Callsign, Error> {
        let place = format!("TNC `{}`: `callsign`", self.name);
        let own = callsign(&place, &self.callsign)?;
        if own.is_placeholder() {
            let what = format!("{place}: {own} stands where your own callsign belongs");
            return Err(Error::new(what).hint(
                "put in your own, with an SSID that nothing else of yours has: a transmitter says who is responsible for it",
            ));
        }
        Ok(own)
    }

    /// Its station, without the peers that are called.
    ///
    /// # Errors
    /// Its callsign is none.
    pub(crate) fn station(&self) -> Result<ax25::Config, Error> {
        Ok(ax25::Config {
            callers: self.answer.then(|| self.ax25.clone()),
            links_max: self.links_max,
            repeats: self.repeats,
            restarts: true,
            radio: self.radio(),
            transmission_max: self.transmission_max,
            air_time_max: self.air_time_max,
            air_time_window: self.air_time_window,
            ..ax25::Config::new(self.own()?)
        })
    }

    fn check(&self) -> Result<(), Error> {
        self.station()?;
        let place = format!("TNC `{}`", self.name);
        self.check_sections(&self.place()?)?;
        self.controller_config()
            .check()
            .map_err(|fault| Error { what: format!("{place}: {fault}"), ..out_of_range(fault) })?;
        self.kiss.check().map_err(|fault| out_of_range(fault.within(&format!("{place}: kiss"))))?;
        self.agwpe.check().map_err(|fault| out_of_range(fault.within(&format!("{place}: agwpe"))))?;
        self.ax25.check().map_err(|fault| out_of_range(fault.within(&format!("{place}: ax25"))))?;
        let wrong = |what: &str, hint: &str| Err(Error::new(format!("{place}: {what}")).hint(hint));
        if self.links_max == 0 {
            return wrong("`links-max` is 0", "64 is usual; where nobody is to call, `answer = false`");
        }
        if self.serial_rate_bps == 0 {
            return wrong("`serial-rate-bps` is 0", "9600 is usual");
        }
        let longest = radio_longest(&self.radio(), &self.ax25);
        if self.air_time_max.is_some_and(|max| max < longest || max > self.air_time_window) {
            return wrong(
                "`air-time-max` is shorter than its longest frame takes, or longer than `air-time-window`",
                &format!(
                    "a frame of {} bytes takes {longest:.1?} with its key-up, the window is {:?}; leave it out for no limit",
                    self.ax25.information_bytes_max, self.air_time_window
                ),
            );
        }
        if self.transmission_max.is_zero() {
            return wrong("`transmission-max` is zero", "60 s is usual");
        }
        Ok(())
    }
}

impl TncSettings {
    /// Those in KISS mode at one place have one line: they are told apart by their ports.
    fn check_beside(&self, other: &TncSettings) -> Result<(), Error> {
        let (Ok(place @ TncAddress::Kiss(_)), Ok(there)) = (self.place(), other.place()) else {
            return Ok(());
        };
        let what = |what: &str| {
            Error::new(format!("TNCs `{}` and `{}` are both at {place}: {what}", self.name, other.name))
        };
        if place != there {
            Ok(())
        } else if self.kiss.port == other.kiss.port {
            Err(what(&format!("both are port {}", self.kiss.port))
                .hint("`kiss.port` tells the ports of one line apart"))
        } else if self.kiss.checksum != other.kiss.checksum {
            Err(what("their checksums differ").hint("`kiss.checksum` is the same for all on one line"))
        } else {
            Ok(())
        }
    }

    /// What is said of the other way of speaking with it means nothing.
    fn check_sections(&self, place: &TncAddress) -> Result<(), Error> {
        let (kiss, agwpe) = (self.kiss != kiss::Config::default(), self.agwpe != agwpe::Config::default());
        let (key, hint) = match place {
            TncAddress::Kiss(_) if agwpe => ("agwpe", "`address = \"agwpe:host:port\"` is an AGWPE server"),
            TncAddress::Agwpe(_) if kiss => ("kiss", "leave `agwpe:` out of its `address` for KISS"),
            _ => return Ok(()),
        };
        let name = &self.name;
        Err(Error::new(format!("TNC `{name}` at {place}: `{key}` means nothing there")).hint(hint))
    }
}

impl Config {
    /// TNCs and links over them, for a person.
    pub(super) fn explain_radio(&self, line: &mut impl FnMut(String)) {
        for tnc in &self.tnc {
            tnc.explain(line);
        }
        for link in self.link.iter().filter(|link| link.kind.is_radio()) {
            let Ok(Some(neighbour)) = self.neighbour(link) else { continue };
            let who =
                link.peer.as_ref().map_or("whoever answers".to_owned(), |peer| format!("{peer}, no other"));
            let when = if link.open { "It calls" } else { "When told to, it calls" };
            let path: Vec<String> = neighbour.peer.path.iter().map(ToString::to_string).collect();
            let via = if path.is_empty() { String::new() } else { format!(" by way of {}", path.join(", ")) };
            if let Some(group) = &neighbour.group {
                line(explain_group(link, &format!("{}{via}", neighbour.peer.station), group));
                continue;
            }
            let layer = match link.kind {
                LinkKind::Ax25cm => "TCPCL 3 over AX.25, as DTN2 has it",
                _ => "Longwire's own convergence layer",
            };
            line(format!(
                "{when} link `{}`: {}{via} over TNC `{}`, in {layer}, and expects {who}. Nothing is encrypted.",
                link.name, neighbour.peer.station, link.tnc
            ));
            if link.kind == LinkKind::Ax25cl && link.peer.is_none() {
                line(format!(
                    "With `peer` said, link `{}` would send its first bundle without waiting for a word.",
                    link.name
                ));
            }
        }
    }
}

fn explain_group(link: &LinkSettings, place: &str, group: &uicl::Config) -> String {
    let asked = match (&group.members[..], group.needed) {
        ([], _) => "It names no members: whoever lacks something asks for it, and a bundle of which nobody asks for more \
                    has gone, whether anybody has heard it or not."
            .to_owned(),
        (members, needed) => format!(
            "{} have to have each bundle safe, {} of them, and are asked in slots of {:?}; else it stays here and goes \
             again later.",
            members.join(", "),
            needed.map_or("all".to_owned(), |needed| needed.to_string()),
            group.answer_slot
        ),
    };
    format!(
        "Link `{}` is the group {place} over TNC `{}`, in UI frames: all that hear it are sent to at once. {asked} Nothing is \
         encrypted.",
        link.name, link.tnc
    )
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
            "TNC `{}` at {at}, port {port}: this station is {} on it, at {rate_bps} bit/s; TXDELAY {tx_delay:?}, slots of {slot_time:?}, persistence {} of 256{}.",
            self.name,
            self.callsign.to_ascii_uppercase(),
            u16::from(persistence) + 1,
            if is_told { ", which the TNC is told" } else { ", as the TNC has to have them by itself" },
        ));
        let LinkConfig {
            version, window_frames, extended_window_frames, information_bytes_max, retries, ..
        } = self.ax25;
        let modulo = match version {
            Version::Plain => format!("{window_frames} frames at a time, modulo 8"),
            Version::Extended => format!("{extended_window_frames} frames at a time, modulo 128"),
            Version::Best => format!(
                "{extended_window_frames} frames at a time where the peer counts to 128, {window_frames} where it counts to 8"
            ),
        };
        line(format!(
            "Its links have {modulo}, of at most {information_bytes_max} bytes, and are given up after {retries} retries."
        ));
        line(match self.air_time_max {
            Some(max) => format!(
                "It sends for at most {max:?} of any {:?}, key-ups included; what is beyond waits.",
                self.air_time_window
            ),
            None => format!(
                "It sends when it has something, at most {:?} at a time; `air-time-max` would limit it.",
                self.transmission_max
            ),
        });
        line(match self.answer {
            true => "Stations may call there, in either convergence layer over AX.25.".to_owned(),
            false => "Nobody may call there.".to_owned(),
        });
    }
}

/// A neighbour over a TNC, with all that its sessions need.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RadioNeighbour {
    /// The number of its TNC in the configuration.
    pub(crate) tnc: usize,
    pub(crate) peer: ax25::PeerStation,
    pub(crate) kind: LinkKind,
    pub(crate) ours: ax25cl::Config,
    pub(crate) cm: tcpcl::Config,
    /// If it is a group.
    pub(crate) group: Option<uicl::Config>,
}

impl Config {
    /// What sessions that peers open over AX.25 work by: Longwire's, and TCPCL 3's.
    pub(crate) fn radio_callers(&self) -> (ax25cl::Config, tcpcl::Config) {
        let node_id = self.node_id().map(|eid| eid.to_string()).unwrap_or_default();
        let ours = ax25cl::Config { node_id: node_id.clone(), ..self.ax25cl.clone() };
        (ours, tcpcl::Config { node_id, ..self.ax25cm.clone() })
    }

    /// A link over a TNC; none: it goes over something else.
    ///
    /// # Errors
    /// Its settings make no sense.
    pub(crate) fn neighbour(&self, link: &LinkSettings) -> Result<Option<RadioNeighbour>, Error> {
        if !link.kind.is_radio() {
            return Ok(None);
        }
        let place = format!("link `{}`", link.name);
        let found = self.tnc.iter().position(|tnc| tnc.name == link.tnc);
        let Some(at) = found else { return Err(self.no_tnc(link)) };
        let tnc = &self.tnc[at];
        let station = callsign(&format!("{place}: `callsign`"), &link.callsign)?;
        if callsign("", &tnc.callsign).is_ok_and(|own| own == station) {
            return Err(Error::new(format!("{place}: {station} is this station itself"))
                .hint("each station on a channel needs a callsign or SSID of its own"));
        }
        if link.path.len() > DIGIPEATERS_MAX {
            return Err(Error::new(format!("{place}: `path` has {} digipeaters", link.path.len()))
                .hint("eight are the most that a frame can name (AX.25 3.12.5)"));
        }
        let path = link.path.iter().map(|hop| callsign(&format!("{place}: `path`"), hop));
        let path = path.collect::<Result<Vec<Callsign>, Error>>()?;
        let ax25: LinkConfig = merged(&tnc.ax25, &link.ax25, &format!("{place}: [ax25]"))?;
        ax25.check().map_err(|fault| out_of_range(fault.within(&format!("{place}: ax25"))))?;
        let (ours, cm) = self.radio_callers();
        let ours: ax25cl::Config = merged(&ours, &link.ax25cl, &format!("{place}: [ax25cl]"))?;
        ours.check().map_err(|fault| out_of_range(fault.within(&format!("{place}: ax25cl"))))?;
        let cm: tcpcl::Config = merged(&cm, &link.ax25cm, &format!("{place}: [ax25cm]"))?;
        cm.check().map_err(|fault| out_of_range(fault.within(&format!("{place}: ax25cm"))))?;
        check_version(&cm, &format!("{place}: "))?;
        let group = match link.kind {
            LinkKind::Uicl => Some(self.group(link, tnc, path.len())?),
            _ => None,
        };
        let peer = match &link.peer {
            Some(peer) => Some(peer.parse::<Eid>().map_err(|_| super::no_endpoint(peer))?.to_string()),
            None => None,
        };
        Ok(Some(RadioNeighbour {
            group,
            tnc: at,
            peer: ax25::PeerStation { station, path, link: ax25 },
            kind: link.kind,
            ours: ax25cl::Config { peer_node_id: ours.peer_node_id.clone().or(peer.clone()), ..ours },
            cm: tcpcl::Config { peer_node_id: cm.peer_node_id.clone().or(peer), ..cm },
        }))
    }

    /// How a link to a group works: what nobody has said is what its channel takes.
    fn group(
        &self,
        link: &LinkSettings,
        tnc: &TncSettings,
        digipeaters: usize,
    ) -> Result<uicl::Config, Error> {
        /// A question to three, or an answer with its frame, bytes.
        const SHORT_FRAME_BYTES: u64 = 64;
        let place = format!("link `{}`", link.name);
        let wrong = |what: String, hint: &str| Err(Error::new(format!("{place}: {what}")).hint(hint));
        if link.peer.is_some() {
            return wrong("a group has no `peer`".into(), "`uicl = { members = [..] }` names its nodes");
        }
        let (plain, radio) = (uicl::Config::default(), tnc.radio());
        let access = millis(radio.access() + radio.turnaround);
        let slot = millis(access + radio.air_time(1, SHORT_FRAME_BYTES)).min(Duration::from_secs(65));
        let or = |said: Duration, default: Duration, own: Duration| if said == default { own } else { said };
        let ours = uicl::Config {
            node_id: self.node_id()?.to_string(),
            rate_bps: if self.uicl.rate_bps == plain.rate_bps {
                radio.rate_bps.into()
            } else {
                self.uicl.rate_bps
            },
            frame_bytes: match self.uicl.frame_bytes == plain.frame_bytes {
                true => plain.frame_bytes + (ADDRESS_BYTES * digipeaters) as u64,
                false => self.uicl.frame_bytes,
            },
            access: or(self.uicl.access, plain.access, access),
            answer_slot: or(self.uicl.answer_slot, plain.answer_slot, slot),
            ..self.uicl.clone()
        };
        let group: uicl::Config = merged(&ours, &link.uicl, &format!("{place}: [uicl]"))?;
        group.check().map_err(|fault| out_of_range(fault.within(&format!("{place}: uicl"))))?;
        let mut members = Vec::new();
        for member in &group.members {
            match member.parse::<Eid>() {
                Ok(eid) if eid.is_node_id() => members.push(eid.to_string()),
                _ => {
                    return wrong(
                        format!("`{member}` is no node id"),
                        "members are such as dtn://bob/ or ipn:7.0",
                    );
                }
            }
        }
        if group.node_id != ours.node_id || members.contains(&ours.node_id) {
            return wrong("this node is no member of its own".into(), "its members are the others");
        }
        if let Some(twice) = members.iter().enumerate().find(|(at, member)| members[..*at].contains(member)) {
            return wrong(format!("{} is named twice", twice.1), "each member is asked once");
        }
        let others = self.link.iter().take_while(|other| other.name != link.name);
        let same = |other: &&LinkSettings| {
            other.kind == LinkKind::Uicl
                && other.tnc == link.tnc
                && other.callsign.eq_ignore_ascii_case(&link.callsign)
        };
        if let Some(other) = others.into_iter().find(same) {
            let what = format!("{} is the group of link `{}` already", link.callsign, other.name);
            return wrong(what, "give each group of a TNC a callsign of its own");
        }
        Ok(uicl::Config { members, ..group })
    }

    fn no_tnc(&self, link: &LinkSettings) -> Error {
        let names = self.tnc.iter().map(|tnc| tnc.name.as_str());
        let hint = match nearest(&link.tnc, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`tnc` is the `name` of a [[tnc]]".to_owned(),
        };
        Error::new(format!("link `{}`: there is no TNC `{}`", link.name, link.tnc)).hint(hint)
    }

    pub(super) fn check_radio(&self) -> Result<(), Error> {
        for (at, tnc) in self.tnc.iter().enumerate() {
            if tnc.name.is_empty() {
                return Err(Error::new(format!("[[tnc]] number {} has no `name`", at + 1))
                    .hint("links say over which one they go"));
            }
            if self.tnc[..at].iter().any(|other| other.name == tnc.name) {
                return Err(
                    Error::new(format!("two TNCs are called `{}`", tnc.name)).hint("name one otherwise")
                );
            }
            tnc.check()?;
            self.check_frames(tnc)?;
            for other in &self.tnc[..at] {
                other.check_beside(tnc)?;
            }
        }
        let (ours, cm) = self.radio_callers();
        ours.check().map_err(|fault| out_of_range(fault.within("ax25cl")))?;
        cm.check().map_err(|fault| out_of_range(fault.within("ax25cm")))?;
        self.uicl.check().map_err(|fault| out_of_range(fault.within("uicl")))?;
        if !self.uicl.members.is_empty() || !self.uicl.node_id.is_empty() {
            return Err(Error::new("`uicl.members` and `uicl.node-id` are not for all groups")
                .hint("a [[link]] of kind uicl says `uicl = { members = [..] }`"));
        }
        check_version(&cm, "")
    }

    /// A node id has to fit in a frame.
    fn check_frames(&self, tnc: &TncSettings) -> Result<(), Error> {
        let length = self.node_id()?.to_string().len();
        if length > NODE_ID_BYTES_MAX {
            return Err(Error::new(format!("the node id has {length} bytes"))
                .hint("over AX.25 it has at most 100: a shorter one saves air time, too"));
        }
        if tnc.ax25.information_bytes_max as usize >= length + BESIDE_NODE_ID_BYTES {
            return Ok(());
        }
        Err(Error::new(format!(
            "TNC `{}`: `ax25.information-bytes-max` is {}, and the node id alone takes {length}",
            tnc.name, tnc.ax25.information_bytes_max
        ))
        .hint("256 is usual"))
    }
}

/// What the longest frame takes, with its key-up.
fn radio_longest(radio: &RadioParameters, link: &LinkConfig) -> Duration {
    const HEADER_BYTES: u64 = 17;
    let frame = radio.air_time(1, u64::from(link.information_bytes_max) + HEADER_BYTES);
    radio.tx_delay + radio.tx_tail + frame
}

fn check_version(cm: &tcpcl::Config, place: &str) -> Result<(), Error> {
    if cm.versions == Versions::Three && cm.tls == Tls::Off {
        return Ok(());
    }
    Err(Error::new(format!("{place}`ax25cm` is TCPCL version 3, without TLS"))
        .hint("leave `versions` and `tls` out there"))
}

/// In whole milliseconds, no less.
fn millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

fn merged<T: Serialize + for<'a> Deserialize<'a>>(
    all: &T,
    own: &toml::Table,
    place: &str,
) -> Result<T, Error> {
    let mut table = toml_text::to_table(all);
    toml_text::merge(&mut table, own);
    toml_text::from_table(table, place)
}

fn callsign(place: &str, text: &str) -> Result<Callsign, Error> {
    let read = text.parse::<Callsign>();
    read.map_err(|why| Error::new(format!("{place}: `{text}` is no callsign")).hint(why.to_string()))
}
