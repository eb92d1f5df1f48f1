//! Plain file transfers over AX.25: over the link alone, and over TCP/IP on it.
//!
//! ```text
//!   FilesOverStream      FilesOverStream
//!         |                    |
//!         |                tcp::Host
//!         |                    |
//!   StreamOverPackets    IpInterfaces
//!         |                    |
//!       Stations: one per channel
//! ```

use super::air::{Stations, internet};
use super::node::{FILE_PORT, ONWARD_LINK, checked, checked_link, host};
use super::{Assembly, NodePosition, hops};
use crate::error::Error;
use crate::link::LinkProfile;
use crate::toml_text;
use crate::workload::FileTask;
use crate::workload::packets::StreamOverPackets;
use crate::workload::stream::FilesOverStream;
use longwire_proto::ax25::{IpMode, LinkConfig, pid};
use longwire_proto::joint::{Beneath, Fan, OnFirst, Stack};
use longwire_proto::service::{LinkId, Storage};
use longwire_proto::setting::Settings as _;
use longwire_proto::tcp::config::Profile;
use longwire_proto::tcp::wire::{IPV4_HEADER_BYTES, TCP_HEADER_BYTES};
use longwire_proto::time::Duration;
use longwire_sim::{Boot, NodeEngine};
use longwire_towers::path::{extended_ax25, linux_6_as_installed, plain_ax25, round_trip};
use serde::{Deserialize, Serialize};
use toml::Table;

/// Settings of AX.25 without bundles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Ax25LinkSettings {
    ax25: LinkConfig,
}

pub(super) fn link_defaults() -> Table {
    toml_text::to_table(&Ax25LinkSettings::default())
}

/// AX.25 without bundles, with this window.
pub(super) fn link<const K: u8>(links: &[LinkProfile]) -> Table {
    toml_text::to_table(&Ax25LinkSettings { ax25: plain_ax25(&hops(links), K) })
}

/// AX.25 without bundles, version 2.2.
pub(super) fn link_extended(links: &[LinkProfile]) -> Table {
    toml_text::to_table(&Ax25LinkSettings { ax25: extended_ax25(&hops(links)) })
}

/// Assembles a file transfer over AX.25 without bundles.
pub(super) fn assemble_link(settings: Table, links: &[LinkProfile]) -> Result<Assembly, Error> {
    let parsed: Ax25LinkSettings = toml_text::from_table(settings.clone(), "[settings]")?;
    checked_link(&parsed.ax25, links)?;
    let make = move |place: &NodePosition, _: Boot| -> NodeEngine<FileTask> {
        let files = FilesOverStream::new(ONWARD_LINK).recording(place.recorded_arrivals());
        let streams = Fan::new(|_: LinkId, _| Some(StreamOverPackets::default()));
        let below = Stack::new(streams, OnFirst(Stations::new(place, &parsed.ax25)));
        Box::new(Beneath::<_, Storage>::new(Stack::new(files, below)))
    };
    Ok(Assembly::of_stream(make, settings))
}

/// Settings of TCP/IP over AX.25.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct InternetSettings {
    tcp: Profile,
    carriage: IpMode,
    ax25: LinkConfig,
}

pub(super) fn internet_defaults() -> Table {
    toml_text::to_table(&InternetSettings::default())
}

fn internet_settings(ax25: LinkConfig, carriage: IpMode, tcp: Profile) -> Table {
    toml_text::to_table(&InternetSettings { tcp, carriage, ax25 })
}

/// TCP of current Linux, over UI frames.
pub(super) fn over_frames(links: &[LinkProfile]) -> Table {
    internet_settings(plain_ax25(&hops(links), 7), IpMode::Unconnected, linux_6_as_installed())
}

/// The same over a link with this window.
pub(super) fn over_link<const K: u8>(links: &[LinkProfile]) -> Table {
    internet_settings(plain_ax25(&hops(links), K), IpMode::Connected, linux_6_as_installed())
}

/// TCP tuned for the channel, over UI frames.
pub(super) fn over_frames_tuned(links: &[LinkProfile]) -> Table {
    let waits = round_trip(&hops(links)) * 3;
    let tcp = Profile { rto_initial: waits, rto_maximum: waits * 8, ..in_one_flight(links) };
    internet_settings(plain_ax25(&hops(links), 7), IpMode::Unconnected, tcp)
}

/// The same over a link of version 2.2, which retransmits by itself: TCP waits until it has certainly done so.
pub(super) fn over_link_tuned(links: &[LinkProfile]) -> Table {
    const TIMEOUT: Duration = Duration::from_secs(60);
    let tcp = Profile {
        rto_initial: TIMEOUT,
        rto_minimum: TIMEOUT,
        rto_maximum: TIMEOUT * 4,
        ..in_one_flight(links)
    };
    internet_settings(extended_ax25(&hops(links)), IpMode::Connected, tcp)
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
        let files = FilesOverStream::new(ONWARD_LINK).recording(place.recorded_arrivals());
        let host = host(place, &parsed.tcp, FILE_PORT, &boot.rng);
        let link = LinkConfig { protocol: pid::INTERNET, ..parsed.ax25.clone() };
        let below = Stack::new(internet(place, parsed.carriage), Stations::new(place, &link));
        Box::new(Beneath::<_, Storage>::new(Stack::new(files, Stack::new(host, below))))
    };
    Ok(Assembly::of_stream(make, settings))
}
