//! Protocols for AX.25: the link alone, bundles over it, and TCP/IP over it.
//!
//! ```text
//!   FilesOverStream       FilesOverBundles        FilesOverBundles       FilesOverStream
//!         |                     |                       |                      |
//!   StreamOverPackets         Agent                   Agent                tcp::Host
//!         |                     |                       |                      |
//!         |             Fan of PacketSession     ax25cl::Sessions         ax25::Internet
//!         |                     |                       |                      |
//!                              Stations: one per channel, over links or UI frames
//! ```

use super::air::{INWARD_LINK, Stations, internet};
use super::bundles::{agent_over, agent_over_both};
use super::node::{FILE_PORT, ONWARD_LINK, TalliedEngine, checked, counted_host};
use super::{Assembly, NodePosition, linux_6_as_installed, round_trip};
use crate::error::Error;
use crate::link::LinkProfile;
use crate::toml_text;
use crate::workload::FileTask;
use crate::workload::packets::StreamOverPackets;
use crate::workload::stream::{FilesOverStream, Retry};
use longwire_proto::ax25::{IpMode, LinkConfig, Version, pid};
use longwire_proto::ax25cl;
use longwire_proto::bp::agent;
use longwire_proto::joint::{Beneath, Fan, OnFirst, OnSecond, Origin, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{LinkId, Storage};
use longwire_proto::setting::Settings as _;
use longwire_proto::tcp::config::Profile;
use longwire_proto::tcp::wire::{IPV4_HEADER_BYTES, TCP_HEADER_BYTES};
use longwire_proto::tcpcl::{self, PacketSession, PacketStream, Session};
use longwire_proto::time::Duration;
use longwire_proto::uicl::{self, Group};
use longwire_sim::{Boot, NodeEngine};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toml::Table;

/// Link of version 2.0 with this window, and the maximum frame length of the path.
fn window(links: &[LinkProfile], frames: u8) -> LinkConfig {
    LinkConfig { version: Version::Plain, window_frames: frames, ..extended(links) }
}

/// Link of version 2.2: modulo 128, selective reject.
fn extended(links: &[LinkProfile]) -> LinkConfig {
    let longest = links.iter().map(|link| link.mtu_bytes).min().unwrap_or(256);
    LinkConfig { information_bytes_max: longest, ..LinkConfig::default() }
}

/// Settings of AX.25 without bundles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Ax25LinkSettings {
    ax25: LinkConfig,
}

/// Default settings.
pub(super) fn link_defaults() -> Table {
    toml_text::to_table(&Ax25LinkSettings::default())
}

/// AX.25 without bundles, with this window.
pub(super) fn link<const K: u8>(links: &[LinkProfile]) -> Table {
    toml_text::to_table(&Ax25LinkSettings { ax25: window(links, K) })
}

/// AX.25 without bundles, version 2.2.
pub(super) fn link_extended(links: &[LinkProfile]) -> Table {
    toml_text::to_table(&Ax25LinkSettings { ax25: extended(links) })
}

/// Checks the settings of AX.25, and that its frames fit the frame length of the path.
fn checked_link(ax25: &LinkConfig, links: &[LinkProfile]) -> Result<(), Error> {
    checked(ax25.check(), "ax25")?;
    let longest = links.iter().map(|link| link.mtu_bytes).min().unwrap_or(u32::MAX);
    let said = ax25.information_bytes_max;
    if said <= longest {
        return Ok(());
    }
    let what = format!(
        "`ax25.information-bytes-max` is {said}, but frames on this path carry at most {longest} bytes"
    );
    Err(Error::new(what)
        .hint(format!("set it to at most {longest}, or set `mtu-bytes` of each link to at least {said}")))
}

/// Assembles a file transfer over AX.25 without bundles.
pub(super) fn assemble_link(settings: Table, links: &[LinkProfile]) -> Result<Assembly, Error> {
    let parsed: Ax25LinkSettings = toml_text::from_table(settings.clone(), "[settings]")?;
    checked_link(&parsed.ax25, links)?;
    let make = move |place: &NodePosition, _: Boot| -> NodeEngine<FileTask> {
        let files = FilesOverStream::new(ONWARD_LINK, Retry::default());
        let streams = Fan::new(|_: LinkId, _| Some(StreamOverPackets::default()));
        let below = Stack::new(streams, OnFirst(stations(place, &parsed.ax25)));
        Box::new(Beneath::<_, Storage>::new(Stack::new(files, below)))
    };
    Ok(Assembly { make: Arc::new(make), carries_bundles: false, cautions: Vec::new(), settings })
}

/// Settings of AX25CM-CL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct SegmentSettings {
    agent: agent::Config,
    ax25cm: tcpcl::Config,
    ax25: LinkConfig,
}

impl Default for SegmentSettings {
    fn default() -> Self {
        let ax25cm = tcpcl::Config { connect_timeout: Some(NEVER), ..tcpcl::Config::ax25("") };
        SegmentSettings { agent: agent::Config::default(), ax25cm, ax25: LinkConfig::default() }
    }
}

/// Timeout longer than any run. TOML has no value for "never".
const NEVER: Duration = Duration::from_secs(3650 * 86_400);

/// Default settings.
pub(super) fn segment_defaults() -> Table {
    toml_text::to_table(&SegmentSettings::default())
}

/// AX25CM-CL with this window of frames and an acknowledgement every so many segments.
pub(super) fn segments<const K: u8, const SEGMENTS: u32>(links: &[LinkProfile]) -> Table {
    let plain = SegmentSettings::default();
    let ax25cm = tcpcl::Config { ack_window: SEGMENTS, ..plain.ax25cm };
    toml_text::to_table(&SegmentSettings { ax25cm, ax25: window(links, K), ..plain })
}

/// Assembles bundles over AX25CM-CL.
pub(super) fn assemble_segments(settings: Table, links: &[LinkProfile]) -> Result<Assembly, Error> {
    let parsed: SegmentSettings = toml_text::from_table(settings.clone(), "[settings]")?;
    checked(parsed.agent.check(), "agent")?;
    checked(parsed.ax25cm.check(), "ax25cm")?;
    checked_link(&parsed.ax25, links)?;
    let make = move |place: &NodePosition, boot: Boot| {
        let sessions = packet_sessions(&parsed.ax25cm, place, boot.rng.fork("tcpcl"));
        let below = Stack::new(sessions, OnFirst(stations(place, &parsed.ax25)));
        agent_over(below, &parsed.agent, place, &boot)
    };
    Ok(Assembly { make: Arc::new(make), carries_bundles: true, cautions: Vec::new(), settings })
}

type PacketSessions =
    Fan<LinkId, PacketSession, Box<dyn FnMut(LinkId, Origin) -> Option<PacketSession> + Send>>;

fn packet_sessions(config: &tcpcl::Config, place: &NodePosition, rng: Rng) -> PacketSessions {
    let config = tcpcl::Config { node_id: place.node_id(place.position), ..config.clone() };
    Fan::new(Box::new(move |link: LinkId, origin| {
        let rng = rng.fork(&link.0.to_string());
        let session = match origin {
            Origin::Above => Session::active(config.clone(), rng),
            Origin::Below => Session::passive(config.clone(), rng),
        };
        Some(Stack::new(session, PacketStream::new()))
    }))
}

/// Settings of Longwire's convergence layer (AX25-CL).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct OwnSettings {
    agent: agent::Config,
    ax25cl: ax25cl::Config,
    ax25: LinkConfig,
}

/// Default settings.
pub(super) fn own_defaults() -> Table {
    toml_text::to_table(&OwnSettings::default())
}

/// AX25-CL with this window of frames.
pub(super) fn own<const K: u8>(links: &[LinkProfile]) -> Table {
    toml_text::to_table(&OwnSettings { ax25: window(links, K), ..OwnSettings::default() })
}

/// AX25-CL over version 2.2.
pub(super) fn own_extended(links: &[LinkProfile]) -> Table {
    toml_text::to_table(&OwnSettings { ax25: extended(links), ..OwnSettings::default() })
}

/// Assembles bundles over AX25-CL.
pub(super) fn assemble_own(settings: Table, links: &[LinkProfile]) -> Result<Assembly, Error> {
    let parsed: OwnSettings = toml_text::from_table(settings.clone(), "[settings]")?;
    checked(parsed.agent.check(), "agent")?;
    checked(parsed.ax25cl.check(), "ax25cl")?;
    checked_link(&parsed.ax25, links)?;
    let make = move |place: &NodePosition, boot: Boot| {
        let node_id = place.node_id(place.position);
        let next = (!place.is_destination()).then(|| place.node_id(place.position + 1));
        let plain = ax25cl::Config { node_id, ..parsed.ax25cl.clone() };
        let configure = move |link: LinkId| {
            let peer_node_id = next.clone().filter(|_| link == ONWARD_LINK);
            Some(ax25cl::Config { peer_node_id, ..plain.clone() })
        };
        let sessions = ax25cl::Sessions::new(Box::new(configure), boot.rng.fork("ax25cl"));
        let below = Stack::new(sessions, OnFirst(stations(place, &parsed.ax25)));
        agent_over(below, &parsed.agent, place, &boot)
    };
    Ok(Assembly { make: Arc::new(make), carries_bundles: true, cautions: Vec::new(), settings })
}

/// Settings of bundles over UI frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct GroupSettings {
    agent: agent::Config,
    uicl: uicl::Config,
    ax25: LinkConfig,
}

/// Default settings.
pub(super) fn group_defaults() -> Table {
    toml_text::to_table(&GroupSettings::default())
}

/// UI frames to a group of one member, with response slots of the time that a response takes on the channel.
pub(super) fn group(links: &[LinkProfile]) -> Table {
    let plain = GroupSettings::default();
    let slowest = links.iter().min_by_key(|link| link.rate_bps);
    let uicl = match slowest.and_then(|link| link.believed_radio()) {
        Some((radio, _)) => {
            let rate_bps = u64::from(radio.rate_bps);
            // Frames of 64 bytes: a question and a response. In whole milliseconds.
            let millis = |time: Duration| Duration::from_millis(time.as_millis() as u64 + 1);
            let frame = Duration::from_secs_f64(512.0 / rate_bps as f64);
            let (access, slot) = (millis(radio.access()), millis(radio.access() + frame));
            let answer_slot = slot.min(Duration::from_secs(65));
            uicl::Config { rate_bps, access, answer_slot, ..plain.uicl }
        }
        None => plain.uicl,
    };
    toml_text::to_table(&GroupSettings { uicl, ax25: window(links, 7), ..plain })
}

/// Assembles bundles over UI frames.
pub(super) fn assemble_group(settings: Table, links: &[LinkProfile]) -> Result<Assembly, Error> {
    let parsed: GroupSettings = toml_text::from_table(settings.clone(), "[settings]")?;
    checked(parsed.agent.check(), "agent")?;
    checked(parsed.uicl.check(), "uicl")?;
    checked_link(&parsed.ax25, links)?;
    let make = move |place: &NodePosition, boot: Boot| {
        let node_id = place.node_id(place.position);
        let next = (!place.is_destination()).then(|| place.node_id(place.position + 1));
        let plain = uicl::Config { node_id, ..parsed.uicl.clone() };
        let rng = boot.rng.fork("uicl");
        let groups = Fan::new(move |link: LinkId, _| {
            let members = next.clone().filter(|_| link == ONWARD_LINK).into_iter().collect();
            let config = uicl::Config { members, ..plain.clone() };
            Some(Group::new(config, rng.fork(&link.0.to_string())))
        });
        let inward = (place.position > 0).then_some(INWARD_LINK);
        let below = Stack::new(groups, OnSecond(stations(place, &parsed.ax25)));
        agent_over_both(below, inward, &parsed.agent, place, &boot)
    };
    Ok(Assembly { make: Arc::new(make), carries_bundles: true, cautions: Vec::new(), settings })
}

/// Settings of TCP/IP over AX.25.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct InternetSettings {
    tcp: Profile,
    carriage: IpMode,
    ax25: LinkConfig,
}

/// Default settings.
pub(super) fn internet_defaults() -> Table {
    toml_text::to_table(&InternetSettings::default())
}

fn internet_settings(ax25: LinkConfig, carriage: IpMode, tcp: Profile) -> Table {
    toml_text::to_table(&InternetSettings { tcp, carriage, ax25 })
}

/// TCP of current Linux, over UI frames.
pub(super) fn over_frames(links: &[LinkProfile]) -> Table {
    internet_settings(window(links, 7), IpMode::Unconnected, linux_6_as_installed())
}

/// The same over a link with this window.
pub(super) fn over_link<const K: u8>(links: &[LinkProfile]) -> Table {
    internet_settings(window(links, K), IpMode::Connected, linux_6_as_installed())
}

/// TCP tuned for the channel, over UI frames.
pub(super) fn over_frames_tuned(links: &[LinkProfile]) -> Table {
    let waits = round_trip(links) * 3;
    let tcp = Profile { rto_initial: waits, rto_maximum: waits * 8, ..in_one_flight(links) };
    internet_settings(window(links, 7), IpMode::Unconnected, tcp)
}

/// The same over a link of version 2.2, which retransmits by itself: TCP waits until it has certainly done so.
pub(super) fn over_link_tuned(links: &[LinkProfile]) -> Table {
    const PATIENT: Duration = Duration::from_secs(60);
    let tcp = Profile {
        rto_initial: PATIENT,
        rto_minimum: PATIENT,
        rto_maximum: PATIENT * 4,
        ..in_one_flight(links)
    };
    internet_settings(extended(links), IpMode::Connected, tcp)
}

/// Initial window with as many segments as a key-up has, without timestamps, which are a twentieth of a short segment.
fn in_one_flight(links: &[LinkProfile]) -> Profile {
    const SEGMENTS: u32 = 32;
    let longest = links.iter().map(|link| link.mtu_bytes).min().unwrap_or(256);
    Profile {
        receive_buffer_bytes: SEGMENTS * (longest - (IPV4_HEADER_BYTES + TCP_HEADER_BYTES) as u32),
        initial_window_segments: SEGMENTS,
        timestamps: false,
        ..linux_6_as_installed()
    }
}

/// Assembles file transfers over TCP/IP over AX.25.
pub(super) fn assemble_internet(settings: Table, links: &[LinkProfile]) -> Result<Assembly, Error> {
    let parsed: InternetSettings = toml_text::from_table(settings.clone(), "[settings]")?;
    checked(parsed.tcp.check(), "tcp")?;
    checked_link(&parsed.ax25, links)?;
    let make = move |place: &NodePosition, boot: Boot| -> NodeEngine<FileTask> {
        let files = FilesOverStream::new(ONWARD_LINK, Retry::default());
        let host = counted_host(place, &parsed.tcp, FILE_PORT, &boot.rng);
        let link = LinkConfig { protocol: pid::INTERNET, ..parsed.ax25.clone() };
        let below = Stack::new(internet(place, parsed.carriage), stations(place, &link));
        Box::new(Beneath::<_, Storage>::new(Stack::new(files, Stack::new(host, below))))
    };
    Ok(Assembly { make: Arc::new(make), carries_bundles: false, cautions: Vec::new(), settings })
}

fn stations(place: &NodePosition, link: &LinkConfig) -> TalliedEngine<Stations> {
    TalliedEngine::new(Stations::new(place, link), place.tally.clone(), Stations::count)
}
