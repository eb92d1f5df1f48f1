//! Bundles over NORM (RFC 5740), one object each, over UDP or UI frames, to one receiver or to a group.

use super::ltp::{HEADERS_BYTES, UI_FRAME_BYTES, millis, or};
use super::members;
use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::{Hop, best_payload_bytes, extended_ax25, round_trip};
use longwire_proto::ax25::RadioParameters;
use longwire_proto::bp::Eid;
use longwire_proto::codec::crc::crc32c;
use longwire_proto::joint::Origin;
use longwire_proto::norm::config::SEGMENT_BYTES_MIN;
use longwire_proto::norm::wire::{FecScheme, data_header_bytes, is_message};
use longwire_proto::norm::{Config, CongestionControl, Link};
use longwire_proto::rng::Rng;
use longwire_proto::time::Duration;
use longwire_settings::duration::short;
use longwire_settings::error::Error;
use longwire_settings::figure::figure;
use longwire_settings::toml_text::to_table;
use toml::Table;

/// Bundles over NORM.
#[derive(Debug)]
pub struct Norm;

/// Length of the longest frame check, bytes.
const FRAME_CHECK_BYTES: u64 = 4;
/// Packets in the queues of both sides that the first estimate of the round-trip time includes.
const PACKETS_WAITING: f64 = 4.0;
/// Duration of an unannounced outage after which objects continue.
const OUTAGE: Duration = Duration::from_secs(1800);
/// Longest round trip that messages can state.
const GRTT_MAX: Duration = Duration::from_secs(1000);
/// Frames of both sides for which an answer waits on a shared channel.
const FRAMES_WAITING: u64 = 8;
/// Length of a usual UI frame, address to information, bytes.
const FRAME_BYTES: u64 = 272;
/// Length of the header of a message with data.
const DATA_HEADER_BYTES: u64 = data_header_bytes(FecScheme::ReedSolomon8, true) as u64;

impl Carrier for Norm {
    type Settings = Config;
    const ABOUT: About = About {
        name: "norm",
        section: "norm",
        random_label: "norm",
        // That of DTN2.
        port: Some(4557),
        media: &[Medium::Udp, Medium::Ui],
        takes_turns: true,
        acknowledges: true,
        resumes: false,
        is_called: true,
        is_group: false,
        multicast: true,
        negotiated: &[],
        families: &[Family {
            name: "norm",
            about: "bundles over NORM (RFC 5740) over UDP or UI frames, whose lost segments are replaced by parity symbols on \
                    request, stored at each node",
            presets: &[Preset::new(
                "tuned",
                "segments for the bit-error rate, the rate of the slowest link, memory for twice the bandwidth-delay product",
                tuned,
            )],
        }],
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::norm::fuzz::FUZZ;

    /// Over AX.25, values that the section leaves at their defaults follow from the channel: the controller takes frames as fast
    /// as they leave.
    fn adapt(settings: Config, link: &LinkFacts<'_>) -> Config {
        let settings = match &link.channel {
            None => settings,
            Some(channel) => {
                let (plain, own) = (Config::default(), on_channel(&channel.parameters, Config::default()));
                Config {
                    rate_bps: or(settings.rate_bps, plain.rate_bps, own.rate_bps),
                    grtt: or(settings.grtt, plain.grtt, own.grtt),
                    grtt_max: or(settings.grtt_max, plain.grtt_max, own.grtt_max),
                    probe_min: or(settings.probe_min, plain.probe_min, own.probe_min),
                    probe_max: or(settings.probe_max, plain.probe_max, own.probe_max),
                    watermark_interval: or(
                        settings.watermark_interval,
                        plain.watermark_interval,
                        own.watermark_interval,
                    ),
                    silence_limit: or(settings.silence_limit, plain.silence_limit, own.silence_limit),
                    inactivity_limit: or(
                        settings.inactivity_limit,
                        plain.inactivity_limit,
                        own.inactivity_limit,
                    ),
                    ..settings
                }
            }
        };
        if link.rate_bps > 0 { Config { rate_bps: link.rate_bps, ..settings } } else { settings }
    }

    /// The members of a group are nodes that acknowledge, each known by the identifier that follows from its node ID.
    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        if !settings.members.is_empty() {
            if !link.own.contains_key("members") {
                return Err(Error::new("`norm.members` cannot be set for all groups")
                    .hint("set `norm = { members = [..] }` in the [[link]]"));
            }
            if link.peer.is_some() {
                return Err(Error::new("a group has no `peer`")
                    .hint("name its nodes with `norm = { members = [..] }`"));
            }
        }
        if !settings.members.is_empty() && link.channel.is_none() && !link.to_group {
            return Err(Error::new(format!("{} is one node, and only a group has members", link.place))
                .hint("use the address of a multicast group, such as 239.192.7.1:4557"));
        }
        let members = members::checked(&settings.members, link.node_id)?;
        let mut acknowledging = settings.acknowledging.clone();
        acknowledging.extend(members.iter().map(|member| norm_node_id(&member.to_string())));
        acknowledging.sort_unstable();
        acknowledging.dedup();
        let is_group = settings.group.or((link.to_group || !members.is_empty()).then_some(true));
        // On a half-duplex channel, answers wait for their turn anyway.
        let waits = is_group == Some(true) && link.channel.is_some();
        let backoff_factor = settings.backoff_factor.or(waits.then_some(1));
        let members = members.iter().map(Eid::to_string).collect();
        let settings = Config { backoff_factor, acknowledging, group: is_group, members, ..settings };
        let peer_node_id = settings.peer_node_id.or_else(|| link.peer.map(str::to_owned));
        let norm_node_id = settings.norm_node_id.or_else(|| Some(norm_node_id(link.node_id)));
        Ok(Config { norm_node_id, peer_node_id, ..settings })
    }

    fn session(settings: &Config, origin: Origin, rng: Rng) -> Session {
        session_over(match origin {
            Origin::Above => Link::new(settings.clone(), rng),
            Origin::Below => Link::listening(settings.clone(), rng),
        })
    }

    /// By version, type and header. The first octet alone may be that of other protocols.
    fn recognises(first: &[u8]) -> bool {
        is_message(first)
    }

    /// Warns about questions that are repeated before the answer can arrive, and about limits that the data in transit exceed.
    fn cautions(settings: &Config, path: &[Hop]) -> Vec<String> {
        let round_trip = round_trip(path);
        let mut cautions = Vec::new();
        if settings.grtt_max < round_trip {
            cautions.push(format!(
                "requests are repeated after {} s, but with a round trip of {} s no repair can arrive in time; increase \
                 `grtt-max`",
                figure(settings.grtt_max.as_secs_f64()),
                figure(round_trip.as_secs_f64())
            ));
        }
        let fastest = path.iter().map(|hop| hop.rate_bps).max().unwrap_or(0);
        let possible_bps = settings.outgoing_bytes_max as f64 * 8.0 / round_trip.as_secs_f64().max(1e-9);
        if possible_bps < fastest as f64 {
            cautions.push(format!(
                "at most {} bit/s of {fastest} bit/s can be used, because bundles of {} bytes fill `outgoing-bytes-max` in \
                 each round trip; increase it",
                figure(possible_bps.floor()),
                settings.outgoing_bytes_max
            ));
        }
        cautions
    }

    fn explain(settings: &Config, link: &LinkFacts<'_>) -> Vec<String> {
        let rate = match settings.rate_bps {
            0 => "without a rate limit".to_owned(),
            rate if settings.congestion_control == CongestionControl::None => format!("at {rate} bit/s"),
            rate => format!("at up to {rate} bit/s as congestion control permits"),
        };
        let peer = match (settings.peer_node_id.as_deref(), settings.group) {
            (_, Some(true)) => "the group",
            (Some(peer), _) => peer,
            (None, _) => "any node (used only through a route)",
        };
        vec![
            format!(
                "Link `{}` to {peer} at {} over NORM, {rate}, in segments of at most {} bytes: lost segments are replaced by \
                 parity segments on request, {} for {} at most.",
                link.name,
                link.place,
                settings.segment_bytes,
                settings.parity_symbols,
                settings.block_symbols
            ),
            format!(
                "This side is NORM node {}. {} Not encrypted.",
                settings.own_node_id(),
                acknowledged(settings)
            ),
        ]
    }
}

impl Admission for Link {}

/// Says when a bundle counts as sent.
fn acknowledged(settings: &Config) -> String {
    let who = match (settings.group, &settings.members[..], &settings.acknowledging[..]) {
        (Some(true), [], []) => {
            return "No members are named: a bundle counts as sent when no more requests arrive, whether or not any node \
                    received it."
                .to_owned();
        }
        (Some(true), [], nodes) => format!("{} nodes have", nodes.len()),
        (Some(true), members, _) => format!("all of the members {} have", members.join(", ")),
        _ => "the peer has".to_owned(),
    };
    let again = short(settings.silence_limit);
    format!(
        "A bundle counts as sent when {who} acknowledged it; after {again} without an answer it is sent again."
    )
}

/// Node identifier that follows from a node ID: the number of the node with `ipn`, otherwise a hash of the ID.
fn norm_node_id(node_id: &str) -> u32 {
    match node_id.parse::<Eid>() {
        Ok(Eid::Ipn(numbers)) if (1..u32::MAX).contains(&numbers.node) => numbers.node,
        _ => crc32c(node_id.as_bytes()).clamp(1, u32::MAX - 1),
    }
}

/// Sections of the settings that follow from a path.
fn tuned(path: &[Hop]) -> Table {
    let mut tables = sections([("norm", settings(path))]);
    if has_ui_frames(path) {
        tables.extend(sections([("ax25", to_table(&extended_ax25(path)))]));
    }
    tables
}

/// True if a link of the path carries UI frames of AX.25.
fn has_ui_frames(path: &[Hop]) -> bool {
    path.iter().any(|hop| hop.ui_frames || hop.radio.is_some())
}

/// Settings for a shared half-duplex channel, on which every answer waits for the end of a transmission, and costs a key-up of its own:
/// questions that are not needed are not asked while data are sent.
fn on_channel(radio: &RadioParameters, config: Config) -> Config {
    let frames = radio.air_time(FRAMES_WAITING, FRAMES_WAITING * FRAME_BYTES);
    let grtt = millis((frames + radio.access() * 2).as_secs_f64()).min(GRTT_MAX);
    Config {
        rate_bps: 0,
        grtt,
        grtt_max: config.grtt_max.max(grtt * 8).min(GRTT_MAX),
        probe_min: config.probe_min.max(grtt * 8),
        probe_max: config.probe_max.max(grtt * 32),
        watermark_interval: config.watermark_interval.max(grtt * 8),
        silence_limit: config.silence_limit.max(grtt * 20),
        inactivity_limit: config.inactivity_limit.max(grtt * 40),
        ..config
    }
}

/// Settings that follow from a path.
///
/// - Segments have the length with which a byte costs least: each costs its headers, and a lost one costs all of it.
/// - The rate is that of the slowest link, less the headers of UDP and IP and the frame check of each packet.
/// - Bytes in memory are for twice the data in transit, so that nobody waits for an acknowledgement before sending.
/// - The first estimate of the round-trip time is the one of the path, and the queues of both sides.
fn settings(path: &[Hop]) -> Table {
    let plain = Config::default();
    let (Some(rate_bps), Some(mtu_bytes)) =
        (path.iter().map(|hop| hop.rate_bps).min(), path.iter().map(|hop| hop.mtu_bytes).min())
    else {
        return to_table(&plain);
    };
    let ber = path.iter().map(|hop| hop.mean_ber).fold(0.0, f64::max);
    // The MTU of a link for UI frames is the length of their information.
    let (headers, outside) = match has_ui_frames(path) {
        true => (0, UI_FRAME_BYTES),
        false => (HEADERS_BYTES, HEADERS_BYTES + FRAME_CHECK_BYTES),
    };
    let best = best_payload_bytes(ber, (outside + DATA_HEADER_BYTES) as f64);
    let longest = u64::from(mtu_bytes).saturating_sub(headers + DATA_HEADER_BYTES).max(SEGMENT_BYTES_MIN);
    let segment_bytes = (best as u64).clamp(SEGMENT_BYTES_MIN, longest);
    let message = segment_bytes + DATA_HEADER_BYTES;
    let rate_of_messages = (rate_bps as f64 * message as f64 / (message + outside) as f64) as u64;
    let packet_s = (message + outside) as f64 * 8.0 / rate_bps as f64;
    let delays_s = path.iter().map(|hop| hop.delays_s).fold(0.0, f64::max);
    let grtt = millis(delays_s + PACKETS_WAITING * packet_s).max(Duration::from_millis(1));
    let in_flight = (round_trip(path).as_secs_f64() * rate_bps as f64 / 8.0) as u64;
    let bytes_max = plain.outgoing_bytes_max.max(2 * in_flight + plain.object_bytes_max);
    let config = Config {
        segment_bytes,
        rate_bps: rate_of_messages.max(1),
        grtt_max: plain.grtt_max.max((grtt * 2).min(GRTT_MAX)),
        grtt: grtt.min(GRTT_MAX),
        probe_min: plain.probe_min.max(grtt),
        probe_max: plain.probe_max.max(grtt * 4),
        watermark_interval: plain.watermark_interval.max(grtt),
        outgoing_bytes_max: bytes_max,
        unaccepted_bytes_max: bytes_max,
        silence_limit: OUTAGE.max(grtt * 20),
        inactivity_limit: (OUTAGE * 2).max(grtt * 40),
        ..plain
    };
    let slowest = path.iter().filter_map(|hop| hop.radio.as_ref()).min_by_key(|radio| radio.rate_bps);
    to_table(&slowest.map_or(config.clone(), |radio| on_channel(radio, config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(delays_s: f64, mean_ber: f64) -> Hop {
        Hop {
            rate_bps: 115_200,
            back_rate_bps: None,
            delays_s,
            mtu_bytes: 1500,
            queue_bytes: 20_000,
            drops: false,
            mean_ber,
            radio: None,
            ui_frames: false,
        }
    }

    fn tuned_for(hop: Hop) -> Config {
        tuned(&[hop])["norm"].clone().try_into().expect("settings")
    }

    #[test]
    fn segments_are_short_where_bits_are_lost_and_messages_fill_the_rate() {
        let plain = tuned_for(hop(2.56, 0.0));
        assert_eq!((plain.segment_bytes, plain.rate_bps), (1440, 115_200 * 1472 / 1504));
        let short = tuned_for(hop(2.56, 1e-5)).segment_bytes;
        // The cost of a byte is (1 + h / m) e^(8 ber (m + h)).
        let cost = |payload: u64| {
            let (m, h) = (payload as f64, 64.0);
            (1.0 + h / m) * (-8.0 * (-1e-5_f64).ln_1p() * (m + h)).exp()
        };
        assert!(cost(short) <= cost(short - 10) && cost(short) <= cost(short + 10), "{short}");
        assert_eq!(tuned_for(hop(2.56, 0.1)).segment_bytes, SEGMENT_BYTES_MIN);
    }

    #[test]
    fn nodes_have_identifiers_that_follow_from_their_ids() {
        assert_eq!(norm_node_id("ipn:7.0"), 7);
        assert_ne!(norm_node_id("dtn://a/"), norm_node_id("dtn://b/"));
        assert_eq!(norm_node_id("dtn://a/"), norm_node_id("dtn://a/"));
        assert!(norm_node_id("ipn:4294967295.0") < u32::MAX, "the number for any node");
    }

    #[test]
    fn messages_are_recognised_by_more_than_their_first_octet() {
        // A FLUSH of another implementation, then packets of the erasure code's layer that begin alike.
        let flush = b"\x13\x05\0\x17\0\0\0\x01\x12\x34\x71\x42\x01\x05\0\0\0\0\x02\x05";
        assert!(Norm::recognises(flush));
        assert!(!Norm::recognises(&flush[..19]) && !Norm::recognises(b""));
        assert!(!Norm::recognises(b"\x12\0\x01\0\0\0\0\x05\0\0\0\x01\x21\x01\x02\x03"));
        assert!(!Norm::recognises(b"\x13\0\x40\0\0\0\0\x05\0\0\0\x01\0\x40\0\x10\x02\x03"));
    }

    #[test]
    fn a_link_is_explained() {
        let link = LinkFacts { name: "moon", place: "192.0.2.7:4557", ..LinkFacts::default() };
        let config = Config { peer_node_id: Some("dtn://moon/".to_owned()), ..Config::default() };
        assert_eq!(
            Norm::explain(&config, &link),
            [
                "Link `moon` to dtn://moon/ at 192.0.2.7:4557 over NORM, at 1000000 bit/s, in segments of at most 1400 bytes: lost \
                 segments are replaced by parity segments on request, 16 for 64 at most.",
                "This side is NORM node 1. A bundle counts as sent when the peer has acknowledged it; after 60 s without an \
                 answer it is sent again. Not encrypted."
            ]
        );
    }
}
