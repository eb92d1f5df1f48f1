//! Bundles over AeroTP, a connection for each, over UDP; and beside them the connections of programs that use a gateway.

use super::ltp::{HEADERS_BYTES, millis};
use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, WithLocalPrograms, session_over};
use crate::path::{Hop, round_trip};
use longwire_proto::aerotp::config::PACKET_BYTES_MIN;
use longwire_proto::aerotp::{BUNDLES_PORT, Config, Link};
use longwire_proto::gateway::{self, Shared};
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::service::TransportService;
use longwire_proto::time::Duration;
use longwire_settings::duration::short;
use longwire_settings::error::Error;
use longwire_settings::figure::figure;
use longwire_settings::toml_text::to_table;
use toml::Table;

/// Bundles over AeroTP.
#[derive(Debug)]
pub struct AeroTp;

/// Length of the longest frame check, bytes.
const FRAME_CHECK_BYTES: u64 = 4;
/// Length of a report with its headers, bytes.
const REPORT_BYTES: f64 = 128.0;
/// Share of the way back that reports may take.
const REPORT_SHARE: f64 = 0.1;
/// Limits of the interval between two reports.
const REPORT_INTERVAL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(10));
/// Bit-error rate that is expected at first where none is known.
const BIT_ERROR_RATE: f64 = 1e-6;
/// Duration of an unannounced outage after which connections continue.
const OUTAGE: Duration = Duration::from_secs(1800);
/// Length of a bundle for which the number of connections is chosen, bytes.
const USUAL_BUNDLE_BYTES: u64 = 10_000;
/// Maximum number of connections that is chosen.
const CONNECTIONS_MAX: u64 = 16_384;

impl Carrier for AeroTp {
    type Settings = Config;
    const ABOUT: About = About {
        name: "aerotp",
        section: "aerotp",
        random_label: "aerotp",
        port: None,
        media: &[Medium::Udp],
        acknowledges: true,
        resumes: true,
        is_called: true,
        takes_turns: false,
        is_group: false,
        multicast: false,
        negotiated: &[],
        families: &[Family {
            name: "aerotp",
            about: "bundles over AeroTP over UDP, which corrects bit errors and replaces lost segments by parity, stored at each node",
            presets: &[
                Preset::new(
                    "tuned",
                    "error control that follows the measured bit-error rate, windows for twice the bandwidth-delay product, timers \
                     set for the round trip",
                    |path| tuned(path, TransportService::Adaptive),
                ),
                Preset::new(
                    "reliable",
                    "acknowledgements and retransmission alone, without a code",
                    |path| tuned(path, TransportService::Reliable),
                ),
                Preset::new(
                    "hybrid",
                    "a code of fixed strength, RS(255, 239), with NACKs and acknowledgements",
                    |path| tuned(path, TransportService::NackMack),
                ),
            ],
        }],
    };
    const USES_DAMAGED: bool = true;
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::aerotp::fuzz::FUZZ;

    fn adapt(settings: Config, link: &LinkFacts<'_>) -> Config {
        if link.rate_bps > 0 { Config { rate_bps: link.rate_bps, ..settings } } else { settings }
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        let peer_node_id = settings.peer_node_id.or_else(|| link.peer.map(str::to_owned));
        Ok(Config { peer_node_id, ..settings })
    }

    fn session(settings: &Config, origin: Origin, rng: Rng) -> Session {
        match origin {
            Origin::Above => {
                let programs = rng.fork("gateway");
                let (bundles, endpoint) = Link::new(settings.clone(), rng).into_parts();
                let plain = gateway::Config::default();
                // The peer is assumed to have the same limit.
                let keepalive = plain.keepalive.min(settings.silence_limit / 3);
                let limits = gateway::Config { keepalive, ..plain };
                session_over(WithLocalPrograms::new(Shared::new(
                    bundles,
                    BUNDLES_PORT,
                    limits,
                    endpoint,
                    programs,
                )))
            }
            // Without a configured peer there is no way back for the connections of programs.
            Origin::Below => session_over(Link::listening(settings.clone(), rng)),
        }
    }

    /// By version and type, which are in the fifth octet.
    fn recognises(first: &[u8]) -> bool {
        first.get(4).is_none_or(|octet| (0x10..=0x15).contains(octet))
    }

    /// Warns about limits that the data in transit exceed.
    fn cautions(settings: &Config, path: &[Hop]) -> Vec<String> {
        let round_trip_s = round_trip(path).as_secs_f64().max(1e-9);
        let fastest = path.iter().map(|hop| hop.rate_bps).max().unwrap_or(0);
        let window_bytes = u64::from(settings.window_segments) * settings.packet_bytes;
        let mut cautions = Vec::new();
        for (key, bytes) in
            [("outgoing-bytes-max", settings.outgoing_bytes_max), ("window-segments", window_bytes)]
        {
            let possible_bps = bytes as f64 * 8.0 / round_trip_s;
            if possible_bps < fastest as f64 {
                cautions.push(format!(
                    "at most {} bit/s of {fastest} bit/s can be used, because `{key}` is reached in each round trip; increase it",
                    figure(possible_bps.floor())
                ));
            }
        }
        cautions
    }

    fn explain(settings: &Config, link: &LinkFacts<'_>) -> Vec<String> {
        let rate = match settings.rate_bps {
            0 => "without a rate limit".to_owned(),
            rate => format!("at {rate} bit/s"),
        };
        let peer = settings.peer_node_id.as_deref().unwrap_or("any node (used only through a route)");
        let control = match settings.service {
            TransportService::Adaptive => {
                "lost segments are replaced by parity, and the code follows the bit-error rate".to_owned()
            }
            TransportService::NackMack => {
                format!(
                    "{} wrong octets of 255 are corrected, and other segments are repeated",
                    settings.fec_strength
                )
            }
            _ => "lost and damaged segments are repeated".to_owned(),
        };
        vec![
            format!(
                "Link `{}` to {peer} at {} over AeroTP, {rate}, in packets of at most {} bytes: {control}.",
                link.name, link.place, settings.packet_bytes
            ),
            format!(
                "At most {} bundles and {} bytes are in transit or wait for acknowledgement. A silent peer is given up after {}. \
                 Not encrypted.",
                settings.outgoing_max,
                settings.outgoing_bytes_max,
                short(settings.silence_limit)
            ),
        ]
    }
}

impl Admission for Link {}

/// Section of the settings that follow from a path.
fn tuned(path: &[Hop], service: TransportService) -> Table {
    sections(
        [("aerotp", Config { service, ..settings(path) })].map(|(name, config)| (name, to_table(&config))),
    )
}

/// Settings that follow from a path.
///
/// - Packets are as long as the path permits: with a code, longer ones cost less.
/// - Windows, connections and bytes are for twice the data that are in transit at the rate of the path.
/// - A receiver reports every eighth of the round trip, but not faster than a tenth of the way back carries the reports.
/// - The round trip is known before it is measured.
fn settings(path: &[Hop]) -> Config {
    let plain = Config::default();
    let (Some(rate_bps), Some(mtu_bytes)) =
        (path.iter().map(|hop| hop.rate_bps).min(), path.iter().map(|hop| hop.mtu_bytes).min())
    else {
        return plain;
    };
    let back_bps = path.iter().map(|hop| hop.back_rate_bps.unwrap_or(hop.rate_bps)).min().unwrap_or(rate_bps);
    let round_trip = round_trip(path);
    let ber = path.iter().map(|hop| hop.mean_ber).fold(0.0, f64::max);
    let drops = path.iter().any(|hop| hop.drops);
    let packet_bytes = u64::from(mtu_bytes).saturating_sub(HEADERS_BYTES).max(PACKET_BYTES_MIN);
    let in_flight = (round_trip.as_secs_f64() * rate_bps as f64 / 8.0) as u64;
    let segments = u32::try_from(2 * in_flight / packet_bytes).unwrap_or(u32::MAX);
    let reports = millis(REPORT_BYTES * 8.0 / (back_bps as f64 * REPORT_SHARE));
    let connections = (2 * in_flight / USUAL_BUNDLE_BYTES).min(CONNECTIONS_MAX) as usize;
    let bytes_max = plain.outgoing_bytes_max.max(2 * in_flight + plain.bundle_bytes_max);
    let answer = round_trip * 3 / 2;
    Config {
        packet_bytes,
        mack_interval: (round_trip / 8).max(reports).clamp(REPORT_INTERVAL.0, REPORT_INTERVAL.1),
        rate_bps,
        // Includes the longest frame check, because a queue that drops must not fill.
        overhead_bytes: HEADERS_BYTES + if drops { FRAME_CHECK_BYTES } else { 0 },
        rto_initial: answer.max(plain.rto_initial),
        rto_max: (round_trip * 4).max(plain.rto_max),
        close_timeout: answer.max(plain.close_timeout),
        listen_timeout: answer.max(plain.listen_timeout),
        silence_limit: (round_trip * 16).max(OUTAGE),
        bit_error_rate_initial: ber.clamp(BIT_ERROR_RATE, 0.1),
        window_segments: plain.window_segments.max(segments).min(65_536),
        outgoing_max: plain.outgoing_max.max(connections),
        incoming_max: plain.incoming_max.max(connections.saturating_mul(4)),
        closed_max: plain.closed_max.max(connections.saturating_mul(4)),
        outgoing_bytes_max: bytes_max,
        incoming_bytes_max: bytes_max,
        ..plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(delays_s: f64, mean_ber: f64) -> Hop {
        Hop {
            rate_bps: 5_000_000,
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
        tuned(&[hop], TransportService::Adaptive)["aerotp"].clone().try_into().expect("settings")
    }

    #[test]
    fn settings_follow_from_the_path() {
        let airborne = tuned_for(hop(0.02, 1e-5));
        assert_eq!((airborne.packet_bytes, airborne.overhead_bytes), (1472, 28));
        assert_eq!(airborne.mack_interval, Duration::from_millis(5));
        assert_eq!(
            (airborne.bit_error_rate_initial, tuned_for(hop(0.02, 0.0)).bit_error_rate_initial),
            (1e-5, 1e-6)
        );
        let slow_back = tuned_for(Hop { back_rate_bps: Some(50_000), ..hop(0.02, 1e-5) });
        // A report of 1,024 bits in a tenth of the rate.
        assert_eq!(slow_back.mack_interval, Duration::from_millis(205));
        assert_eq!(tuned_for(Hop { drops: true, ..hop(0.02, 0.0) }).overhead_bytes, 32);
    }

    #[test]
    fn data_in_transit_fit_twice_and_outages_end_nothing() {
        for delays_s in [0.02, 2.56, 60.0] {
            let path = [hop(delays_s, 1e-6)];
            let config = tuned_for(path[0].clone());
            assert!(AeroTp::cautions(&config, &path).is_empty(), "tuned settings know the path");
            assert!(config.silence_limit >= OUTAGE);
            let small = Config { outgoing_bytes_max: 1000, window_segments: 1, ..config };
            assert_eq!(AeroTp::cautions(&small, &path).len(), 2);
        }
    }

    #[test]
    fn packets_are_recognised_by_their_fifth_octet() {
        use longwire_proto::aerotp::fuzz::FUZZ;
        let packet = (FUZZ.codecs[0].valid)(Rng::new(1));
        assert!(AeroTp::recognises(&packet) && AeroTp::recognises(&[]));
        // Data of LTP, a packet of Saratoga.
        assert!(!AeroTp::recognises(&[0x00, 1, 2, 3, 4]) && !AeroTp::recognises(&[0x21, 0, 0, 0, 0]));
    }
}
