//! Bundles over NORM (RFC 5740), one object each, over UDP.

use super::ltp::{HEADERS_BYTES, millis};
use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::{Hop, best_payload_bytes, round_trip};
use longwire_proto::bp::Eid;
use longwire_proto::codec::crc::crc32c;
use longwire_proto::joint::Origin;
use longwire_proto::norm::config::SEGMENT_BYTES_MIN;
use longwire_proto::norm::wire::{FecScheme, data_header_bytes, is_message};
use longwire_proto::norm::{Config, Link};
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
        media: &[Medium::Udp],
        takes_turns: false,
        acknowledges: true,
        resumes: false,
        is_called: true,
        is_group: false,
        negotiated: &[],
        families: &[Family {
            name: "norm",
            about: "bundles over NORM (RFC 5740) over UDP, whose lost segments are replaced by parity symbols on request, stored \
                    at each node",
            presets: &[Preset::new(
                "tuned",
                "segments for the bit-error rate, the rate of the slowest link, memory for twice the bandwidth-delay product",
                tuned,
            )],
        }],
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::norm::fuzz::FUZZ;

    fn adapt(settings: Config, link: &LinkFacts<'_>) -> Config {
        if link.rate_bps > 0 { Config { rate_bps: link.rate_bps, ..settings } } else { settings }
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
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
            rate => format!("at {rate} bit/s"),
        };
        let peer = settings.peer_node_id.as_deref().unwrap_or("any node (used only through a route)");
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
                "This side is NORM node {}. A bundle counts as sent when the peer has acknowledged it; after {} without an \
                 answer it is sent again. Not encrypted.",
                settings.own_node_id(),
                short(settings.silence_limit)
            ),
        ]
    }
}

impl Admission for Link {}

/// Node identifier that follows from a node ID: the number of the node with `ipn`, otherwise a hash of the ID.
fn norm_node_id(node_id: &str) -> u32 {
    match node_id.parse::<Eid>() {
        Ok(Eid::Ipn(numbers)) if (1..u32::MAX).contains(&numbers.node) => numbers.node,
        _ => crc32c(node_id.as_bytes()).clamp(1, u32::MAX - 1),
    }
}

/// Section of the settings that follow from a path.
fn tuned(path: &[Hop]) -> Table {
    sections([("norm", settings(path))])
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
    let outside = HEADERS_BYTES + FRAME_CHECK_BYTES;
    let best = best_payload_bytes(ber, (outside + DATA_HEADER_BYTES) as f64);
    let longest =
        u64::from(mtu_bytes).saturating_sub(HEADERS_BYTES + DATA_HEADER_BYTES).max(SEGMENT_BYTES_MIN);
    let segment_bytes = (best as u64).clamp(SEGMENT_BYTES_MIN, longest);
    let message = segment_bytes + DATA_HEADER_BYTES;
    let rate_of_messages = (rate_bps as f64 * message as f64 / (message + outside) as f64) as u64;
    let packet_s = (message + outside) as f64 * 8.0 / rate_bps as f64;
    let delays_s = path.iter().map(|hop| hop.delays_s).fold(0.0, f64::max);
    let grtt = millis(delays_s + PACKETS_WAITING * packet_s).max(Duration::from_millis(1));
    let in_flight = (round_trip(path).as_secs_f64() * rate_bps as f64 / 8.0) as u64;
    let bytes_max = plain.outgoing_bytes_max.max(2 * in_flight + plain.object_bytes_max);
    to_table(&Config {
        segment_bytes,
        rate_bps: rate_of_messages.max(1),
        grtt_max: plain.grtt_max.max((grtt * 2).min(Duration::from_secs(1000))),
        grtt: grtt.min(Duration::from_secs(1000)),
        probe_min: plain.probe_min.max(grtt),
        probe_max: plain.probe_max.max(grtt * 4),
        watermark_interval: plain.watermark_interval.max(grtt),
        outgoing_bytes_max: bytes_max,
        unaccepted_bytes_max: bytes_max,
        silence_limit: OUTAGE.max(grtt * 20),
        inactivity_limit: (OUTAGE * 2).max(grtt * 40),
        ..plain
    })
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
