//! Bundles as files of Saratoga (draft-wood-tsvwg-saratoga), over UDP.

use super::ltp::{HEADERS_BYTES, millis};
use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::{Hop, best_payload_bytes, round_trip};
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::saratoga::config::PACKET_BYTES_MIN;
use longwire_proto::saratoga::{Config, Link};
use longwire_proto::time::Duration;
use longwire_settings::duration::short;
use longwire_settings::error::Error;
use longwire_settings::figure::figure;
use longwire_settings::toml_text::to_table;
use toml::Table;

/// Bundles over Saratoga.
#[derive(Debug)]
pub struct Saratoga;

/// Length of the longest frame check, bytes.
const FRAME_CHECK_BYTES: u64 = 4;
/// Length of the header of a DATA packet with descriptors of 32 bits.
const DATA_HEADER_BYTES: u64 = 12;
/// Length of a bundle for which the number of sessions is chosen, bytes.
const USUAL_BUNDLE_BYTES: u64 = 10_000;
/// Maximum number of sessions that is chosen.
const SESSIONS_MAX: u64 = 16_384;
/// Share of a slower way back that STATUS packets may take, in percent; the rest is for requests and METADATA.
const STATUS_SHARE_PERCENT: u64 = 90;
/// Time that the longest STATUS takes on a slower way back.
const STATUS_TIME: Duration = Duration::from_millis(400);
/// Limits of the interval between two STATUS packets.
const STATUS_INTERVAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// Duration of an unannounced outage after which files continue.
const OUTAGE: Duration = Duration::from_secs(1800);

impl Carrier for Saratoga {
    type Settings = Config;
    const ABOUT: About = About {
        name: "saratoga",
        section: "saratoga",
        random_label: "saratoga",
        port: Some(7542),
        media: &[Medium::Udp],
        acknowledges: true,
        resumes: true,
        is_called: true,
        takes_turns: false,
        is_group: false,
        multicast: false,
        negotiated: &[],
        families: &[Family {
            name: "saratoga",
            about: "bundles as files of Saratoga over UDP, whose holes the receiver reports, stored at each node",
            presets: &[Preset::new(
                "tuned",
                "packets for the bit-error rate, lists of holes that fit the way back, sessions for twice the \
                 bandwidth-delay product, timers set for the round trip",
                tuned,
            )],
        }],
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::saratoga::fuzz::FUZZ;

    fn adapt(settings: Config, link: &LinkFacts<'_>) -> Config {
        if link.rate_bps > 0 { Config { rate_bps: link.rate_bps, ..settings } } else { settings }
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        let peer_node_id = settings.peer_node_id.or_else(|| link.peer.map(str::to_owned));
        let eid = settings.eid.or_else(|| Some(link.node_id.to_owned()));
        Ok(Config { peer_node_id, eid, ..settings })
    }

    fn session(settings: &Config, origin: Origin, rng: Rng) -> Session {
        session_over(match origin {
            Origin::Above => Link::new(settings.clone(), rng),
            Origin::Below => Link::listening(settings.clone(), rng),
        })
    }

    /// By version and type of a packet.
    fn recognises(first: &[u8]) -> bool {
        first.first().is_none_or(|octet| (0x20..=0x24).contains(octet))
    }

    /// Warns about answers that are awaited for too short a time, and about limits that the data in transit exceed.
    fn cautions(settings: &Config, path: &[Hop]) -> Vec<String> {
        let round_trip = round_trip(path);
        let mut cautions = Vec::new();
        if settings.answer_time() < round_trip {
            cautions.push(format!(
                "holes are reported again after {} s, but with a round trip of {} s no packet for them can arrive in time; \
                 increase `one-way-delay`",
                figure(settings.answer_time().as_secs_f64()),
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
        let status = match settings.status_rate_bps {
            0 => String::new(),
            rate => format!(", and take at most {rate} bit/s"),
        };
        vec![
            format!(
                "Link `{}` to {peer} at {} over Saratoga, {rate}, in packets of at most {} bytes: lost packets are repeated; \
                 an answer may take {} for a delay of {}.",
                link.name,
                link.place,
                settings.packet_bytes,
                short(settings.answer_time()),
                short(settings.one_way_delay)
            ),
            format!(
                "At most {} bundles and {} bytes are in transit or wait for their STATUS. Reports of missing bytes leave \
                 every {}{status}. Not encrypted.",
                settings.sessions_max,
                settings.outgoing_bytes_max,
                short(settings.status_interval)
            ),
        ]
    }
}

impl Admission for Link {}

/// Section of the settings that follow from a path.
fn tuned(path: &[Hop]) -> Table {
    sections([("saratoga", settings(path))])
}

/// Settings that follow from a path.
///
/// - Packets have the length with which a byte costs least: each packet costs its headers, and a lost one costs all of it.
/// - Sessions and bytes are for twice the data that are in transit at the rate of the path, so that nobody waits for a
///   STATUS before sending.
/// - A receiver reports holes every quarter of the round trip, but not faster than the way back carries the lists. Where
///   it is slower than the way out, the longest list takes 0.4 s of it.
/// - With bit errors, what costs a round trip if it is lost is sent twice.
/// - An answer is awaited for the round trip, and for the queues of both sides as long as four packets take.
fn settings(path: &[Hop]) -> Table {
    let plain = Config::default();
    let (Some(rate_bps), Some(mtu_bytes)) =
        (path.iter().map(|hop| hop.rate_bps).min(), path.iter().map(|hop| hop.mtu_bytes).min())
    else {
        return to_table(&plain);
    };
    let delays_s = path.iter().map(|hop| hop.delays_s).fold(0.0, f64::max);
    let back_bps = path.iter().map(|hop| hop.back_rate_bps.unwrap_or(hop.rate_bps)).min().unwrap_or(rate_bps);
    let packet_s = f64::from(mtu_bytes) * 8.0 / rate_bps as f64;
    let (one_way_delay, margin) = (millis(delays_s / 2.0), plain.margin.max(millis(4.0 * packet_s)));
    let ber = path.iter().map(|hop| hop.mean_ber).fold(0.0, f64::max);
    let overhead = HEADERS_BYTES + FRAME_CHECK_BYTES + DATA_HEADER_BYTES;
    let best = best_payload_bytes(ber, overhead as f64) + DATA_HEADER_BYTES as f64;
    let longest = u64::from(mtu_bytes).saturating_sub(HEADERS_BYTES).max(PACKET_BYTES_MIN);
    let packet_bytes = (best as u64).clamp(PACKET_BYTES_MIN, longest);
    let status_rate_bps = if back_bps < rate_bps { back_bps * STATUS_SHARE_PERCENT / 100 } else { 0 };
    let status_bytes = match status_rate_bps {
        0 => longest,
        rate => (rate as f64 / 8.0 * STATUS_TIME.as_secs_f64()) as u64,
    };
    let in_flight = (round_trip(path).as_secs_f64() * rate_bps as f64 / 8.0) as u64;
    let sessions = (2 * in_flight / USUAL_BUNDLE_BYTES).min(SESSIONS_MAX) as usize;
    let sessions_max = plain.sessions_max.max(sessions);
    let bytes_max = plain.outgoing_bytes_max.max(2 * in_flight + plain.file_bytes_max);
    let mut settings = Config {
        packet_bytes,
        sessions_max,
        outgoing_bytes_max: bytes_max,
        incoming_sessions_max: plain.incoming_sessions_max.max(sessions_max.saturating_mul(4)),
        incoming_bytes_max: bytes_max,
        one_way_delay,
        margin,
        status_interval: millis(delays_s / 4.0).clamp(STATUS_INTERVAL.0, STATUS_INTERVAL.1),
        status_bytes: status_bytes.clamp(PACKET_BYTES_MIN, longest),
        status_rate_bps,
        copies: if ber > 0.0 { 2 } else { 1 },
        rate_bps,
        // Includes the longest frame check, because a queue that drops must not fill.
        overhead_bytes: HEADERS_BYTES + FRAME_CHECK_BYTES,
        ..plain
    };
    if status_rate_bps > 0 {
        settings.status_interval = settings.status_interval.max(STATUS_TIME);
    }
    settings.inactivity = Some(settings.inactivity_limit().max(OUTAGE));
    to_table(&settings)
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
        tuned(&[hop])["saratoga"].clone().try_into().expect("settings")
    }

    #[test]
    fn packets_are_short_where_bits_are_lost() {
        assert_eq!(tuned_for(hop(2.56, 0.0)).packet_bytes, 1472);
        let short = tuned_for(hop(2.56, 1e-5)).packet_bytes;
        // The cost of a byte is (1 + h / m) e^(8 ber (m + h)).
        let cost = |packet: u64| {
            let (m, h) = ((packet - DATA_HEADER_BYTES) as f64, 44.0);
            (1.0 + h / m) * (-8.0 * (-1e-5_f64).ln_1p() * (m + h)).exp()
        };
        assert!(cost(short) <= cost(short - 10) && cost(short) <= cost(short + 10), "{short}");
        assert_eq!(tuned_for(hop(2.56, 0.1)).packet_bytes, PACKET_BYTES_MIN);
        assert_eq!((tuned_for(hop(2.56, 0.0)).copies, tuned_for(hop(2.56, 1e-6)).copies), (1, 2));
    }

    #[test]
    fn lists_of_holes_fit_a_slow_way_back() {
        let satellite = Hop { rate_bps: 8_100_000, back_rate_bps: Some(9600), ..hop(0.02, 1e-5) };
        let settings = tuned_for(satellite);
        assert_eq!(settings.status_rate_bps, 8640);
        let bits = (settings.status_bytes * 8) as f64;
        assert!(bits / 8640.0 <= settings.status_interval.as_secs_f64(), "{settings:?}");
        let even = tuned_for(hop(2.56, 1e-5));
        assert_eq!((even.status_rate_bps, even.status_bytes), (0, 1472));
        assert_eq!(even.status_interval, Duration::from_millis(640));
    }

    #[test]
    fn bytes_in_transit_fit_twice_and_outages_end_nothing() {
        for (delays_s, rate_bps) in [(2.56, 115_200), (1500.0, 256_000), (0.5, 1_000_000_000)] {
            let path = [Hop { rate_bps, ..hop(delays_s, 1e-6) }];
            let config = tuned_for(path[0].clone());
            assert!(config.outgoing_bytes_max as f64 >= 2.0 * delays_s * rate_bps as f64 / 8.0);
            assert!(config.inactivity_limit() >= OUTAGE);
            assert!(Saratoga::cautions(&config, &path).is_empty(), "tuned settings know the path");
            let plain = Saratoga::cautions(&Config { outgoing_bytes_max: 1000, ..Config::default() }, &path);
            assert_eq!(plain.len(), if delays_s > 4.0 { 2 } else { 1 }, "{plain:?}");
        }
    }
}
