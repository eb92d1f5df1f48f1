//! Bundles over the Licklider Transmission Protocol (RFC 5326), over UDP (RFC 7122), or directly over UI frames of AX.25.

use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::{Hop, best_payload_bytes, extended_ax25, round_trip};
use longwire_proto::bp::Eid;
use longwire_proto::codec::crc::crc32c;
use longwire_proto::joint::Origin;
use longwire_proto::ltp::config::SEGMENT_BYTES_MIN;
use longwire_proto::ltp::{Authentication, Ciphersuite, Config, Link, SecretKey};
use longwire_proto::rng::Rng;
use longwire_proto::time::Duration;
use longwire_settings::duration::short;
use longwire_settings::error::Error;
use longwire_settings::figure::figure;
use longwire_settings::toml_text::to_table;
use toml::Table;

/// Bundles over LTP.
#[derive(Debug)]
pub struct Ltp;

/// Header bytes of IPv4 and UDP per datagram.
pub(super) const HEADERS_BYTES: u64 = 28;
/// Length of the longest frame check, bytes.
const FRAME_CHECK_BYTES: u64 = 4;
/// Bytes of a UI frame beside its information: two addresses, control, protocol identifier, frame check and a flag.
pub(super) const UI_FRAME_BYTES: u64 = 19;
/// Length of a usual UI frame, address to information, bytes.
const FRAME_BYTES: u64 = 272;
/// Packets in the queues of both sides that a timer waits for.
const FRAMES_WAITING: f64 = 4.0;
/// Usual length of the header of a data segment, bytes.
const SEGMENT_HEADER_BYTES: u64 = 16;
/// Number of bits of an engine ID that follows from a node ID: three octets on the wire.
const ENGINE_ID_BITS: u32 = 21;
/// Number of blocks that share the data in transit.
const BLOCKS_IN_FLIGHT: u64 = 8;
/// Maximum length up to which bundles share a block, bytes.
const BLOCK_BYTES_MAX: u64 = 4 << 20;
/// Limits of the number of segments between two checkpoints.
const CHECKPOINT_EVERY: (u64, u64) = (8, 256);
/// Duration of an unannounced outage after which blocks continue.
const OUTAGE: Duration = Duration::from_secs(1800);
/// Maximum number of retransmissions of a checkpoint.
const RETRANSMISSIONS_MAX: u32 = 500;

impl Carrier for Ltp {
    type Settings = Config;
    const ABOUT: About = About {
        name: "ltp",
        section: "ltp",
        random_label: "ltp",
        port: Some(1113),
        media: &[Medium::Udp, Medium::Ui],
        takes_turns: false,
        acknowledges: true,
        resumes: false,
        is_called: true,
        is_group: false,
        multicast: false,
        negotiated: &[],
        families: &[Family {
            name: "ltp",
            about: "bundles over LTP (RFC 5326) over UDP or UI frames, in blocks whose lost segments are repeated, stored at each node",
            presets: &[Preset::new(
                "tuned",
                "segments for the bit-error rate, blocks and sessions for twice the bandwidth-delay product, a checkpoint \
                 every quarter of the round trip, timers set for it",
                tuned,
            )],
        }],
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::ltp::fuzz::FUZZ;

    /// Over AX.25, values that the section leaves at their defaults follow from the channel.
    fn adapt(settings: Config, link: &LinkFacts<'_>) -> Config {
        let settings = match &link.channel {
            None => settings,
            Some(channel) => {
                let (plain, radio) = (Config::default(), &channel.parameters);
                let frame = radio.air_time(1, FRAME_BYTES);
                let margin = plain.margin.max(millis(FRAMES_WAITING * frame.as_secs_f64()));
                Config {
                    rate_bps: or(settings.rate_bps, plain.rate_bps, radio.rate_bps.into()),
                    overhead_bytes: or(settings.overhead_bytes, plain.overhead_bytes, UI_FRAME_BYTES),
                    margin: or(settings.margin, plain.margin, margin),
                    ..settings
                }
            }
        };
        if link.rate_bps > 0 { Config { rate_bps: link.rate_bps, ..settings } } else { settings }
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        let peer_node_id = settings.peer_node_id.or_else(|| link.peer.map(str::to_owned));
        let engine_id = settings.engine_id.or_else(|| Some(engine_id(link.node_id)));
        let authentication = settings.authentication.map(with_key).transpose()?;
        Ok(Config { engine_id, peer_node_id, authentication, ..settings })
    }

    fn session(settings: &Config, origin: Origin, rng: Rng) -> Session {
        session_over(match origin {
            Origin::Above => Link::new(settings.clone(), rng),
            Origin::Below => Link::listening(settings.clone(), rng),
        })
    }

    /// By version and type of a segment (RFC 5326 3.1). Keep-alives are zeros.
    fn recognises(first: &[u8]) -> bool {
        first.first().is_none_or(|control| matches!(control, 0..=4 | 7..=9 | 12..=15))
    }

    /// Warns about timers that expire before the answer can arrive, and about limits that the data in transit exceed.
    fn cautions(settings: &Config, path: &[Hop]) -> Vec<String> {
        let round_trip = round_trip(path);
        let mut cautions = Vec::new();
        if settings.retransmission_timeout() < round_trip {
            cautions.push(format!(
                "checkpoints are repeated after {} s, but with a round trip of {} s no report can arrive in time; increase \
                 `one-way-delay`",
                figure(settings.retransmission_timeout().as_secs_f64()),
                figure(round_trip.as_secs_f64())
            ));
        }
        let fastest = path.iter().map(|hop| hop.rate_bps).max().unwrap_or(0);
        let possible_bps = settings.outgoing_bytes_max as f64 * 8.0 / round_trip.as_secs_f64().max(1e-9);
        if possible_bps < fastest as f64 {
            cautions.push(format!(
                "at most {} bit/s of {fastest} bit/s can be used, because blocks of {} bytes fill `outgoing-bytes-max` in \
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
        let repair = match settings.green {
            true => "lost segments are not repeated".to_owned(),
            false => format!(
                "lost segments are repeated; an answer may take {} for a delay of {}",
                short(settings.retransmission_timeout()),
                short(settings.one_way_delay)
            ),
        };
        vec![
            format!(
                "Link `{}` to {peer} at {} over LTP, {rate}, in segments of at most {} bytes: {repair}. Engine ID {}.",
                link.name,
                link.place,
                settings.segment_bytes,
                settings.own_engine_id()
            ),
            format!(
                "At most {} blocks and {} bytes are in transit or wait for their reports. Not encrypted{}.",
                settings.sessions_max,
                settings.outgoing_bytes_max,
                match settings.authentication.as_ref().map(|with| with.suite) {
                    None => "",
                    Some(Ciphersuite::Null) => ", with a checksum in each segment",
                    Some(_) => ", and only authenticated segments are accepted",
                }
            ),
        ]
    }
}

impl Admission for Link {}

/// Returns the settings with the key from its file.
fn with_key(settings: Authentication) -> Result<Authentication, Error> {
    let Some(path) = &settings.key_file else { return Ok(settings) };
    if settings.key.is_some() {
        return Err(
            Error::new("`authentication.key` and `authentication.key-file` are both set").hint("remove one")
        );
    }
    let text = longwire_settings::file::read_regular_text(path).map_err(|error| {
        Error::new(format!("cannot read the key {}: {error}", path.display()))
            .hint("set `authentication.key-file` to a file that the user of the node can read")
    })?;
    Ok(Authentication { key: Some(SecretKey(text.trim().to_owned())), key_file: None, ..settings })
}

/// Returns the node number of `ipn`, or a number that follows from the node ID.
fn engine_id(node_id: &str) -> u64 {
    match node_id.parse::<Eid>() {
        Ok(Eid::Ipn(numbers)) if numbers.node > 0 => numbers.node.into(),
        _ => (u64::from(crc32c(node_id.as_bytes())) & ((1 << ENGINE_ID_BITS) - 1)).max(1),
    }
}

/// Section of the settings that follow from a path.
fn tuned(path: &[Hop]) -> Table {
    let mut tables = sections([("ltp", settings(path))]);
    if path.iter().any(|hop| hop.ui_frames) {
        tables.extend(sections([("ax25", to_table(&extended_ax25(path)))]));
    }
    tables
}

/// Settings that follow from a path.
///
/// - Segments have the length with which a byte costs least: each segment costs its headers, and a lost one costs all of it.
/// - Blocks and their number are for twice the data that are in transit at the rate of the path, so that nobody waits for a
///   report before sending.
/// - With bit errors, a checkpoint every quarter of the round trip has earlier losses repaired while later data are sent; the
///   last checkpoint of a block and what is repeated after it are sent twice, because their loss costs time.
/// - A timer waits for the round trip, and for the queues of both sides as long as four packets take.
pub(super) fn settings(path: &[Hop]) -> Table {
    let plain = Config::default();
    let (Some(rate_bps), Some(mtu_bytes)) =
        (path.iter().map(|hop| hop.rate_bps).min(), path.iter().map(|hop| hop.mtu_bytes).min())
    else {
        return to_table(&plain);
    };
    let delays_s = path.iter().map(|hop| hop.delays_s).fold(0.0, f64::max);
    let slowest =
        path.iter().map(|hop| hop.back_rate_bps.map_or(hop.rate_bps, |back| back.min(hop.rate_bps)));
    let packet_s = f64::from(mtu_bytes) * 8.0 / slowest.min().unwrap_or(rate_bps) as f64;
    let (one_way_delay, margin) =
        (millis(delays_s / 2.0), plain.margin.max(millis(FRAMES_WAITING * packet_s)));
    let ber = path.iter().map(|hop| hop.mean_ber).fold(0.0, f64::max);
    // The MTU of a line for UI frames is the length of their information.
    let ui_frames = path.iter().any(|hop| hop.ui_frames);
    let (headers, around) = match ui_frames {
        true => (0, UI_FRAME_BYTES),
        false => (HEADERS_BYTES, HEADERS_BYTES + FRAME_CHECK_BYTES),
    };
    let best = best_payload_bytes(ber, (around + SEGMENT_HEADER_BYTES) as f64) + SEGMENT_HEADER_BYTES as f64;
    let longest = u64::from(mtu_bytes).saturating_sub(headers).max(SEGMENT_BYTES_MIN);
    let segment_bytes = (best as u64).clamp(SEGMENT_BYTES_MIN, longest);
    let in_flight = (round_trip(path).as_secs_f64() * rate_bps as f64 / 8.0) as u64;
    let block_bytes = (in_flight / BLOCKS_IN_FLIGHT).clamp(plain.block_bytes, BLOCK_BYTES_MAX);
    let sessions = 2 * in_flight / block_bytes + 1;
    let sessions_max = plain.sessions_max.max(usize::try_from(sessions).unwrap_or(usize::MAX));
    let bytes_max = plain.outgoing_bytes_max.max(2 * in_flight + plain.block_bytes_max);
    let quarter = in_flight / segment_bytes / 4;
    let timeout_s = 2.0 * (one_way_delay + margin).as_secs_f64();
    let repeats = (OUTAGE.as_secs_f64() / timeout_s).ceil() as u32;
    let ltp = Config {
        segment_bytes,
        block_bytes,
        sessions_max,
        outgoing_bytes_max: bytes_max,
        incoming_sessions_max: plain.incoming_sessions_max.max(sessions_max.saturating_mul(4)),
        incoming_bytes_max: bytes_max,
        one_way_delay,
        margin,
        retransmissions_max: repeats.clamp(plain.retransmissions_max, RETRANSMISSIONS_MAX),
        checkpoint_every: if ber > 0.0 {
            quarter.clamp(CHECKPOINT_EVERY.0, CHECKPOINT_EVERY.1) as u32
        } else {
            0
        },
        copies: if ber > 0.0 { 2 } else { 1 },
        rate_bps,
        // Includes the longest frame check, because a queue that drops must not fill.
        overhead_bytes: around,
        ..plain
    };
    to_table(&ltp)
}

/// Returns the value that is set, or `own` if it is the default.
pub(super) fn or<T: PartialEq>(set: T, default: T, own: T) -> T {
    if set == default { own } else { set }
}

/// Rounds up to whole milliseconds.
pub(super) fn millis(seconds: f64) -> Duration {
    Duration::from_millis((seconds * 1e3).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::ChannelFacts;
    use longwire_proto::ax25::RadioParameters;

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

    fn tuned_for(delays_s: f64, mean_ber: f64) -> Config {
        let table = tuned(&[hop(delays_s, mean_ber)]);
        table["ltp"].clone().try_into().expect("settings")
    }

    #[test]
    fn ui_frames_are_filled_and_counted_with_the_bytes_around_them() {
        let satellite =
            Hop { mtu_bytes: 256, back_rate_bps: Some(1200), ui_frames: true, ..hop(0.014, 2.33e-5) };
        let table = tuned(&[satellite]);
        let config: Config = table["ltp"].clone().try_into().expect("settings");
        assert_eq!((config.segment_bytes, config.overhead_bytes), (256, 19));
        assert!(config.margin > Duration::from_secs(6), "four frames at 1200 bit/s");
        assert_eq!(table["ax25"]["information-bytes-max"].as_integer(), Some(256));
        assert!(!tuned(&[hop(0.014, 0.0)]).contains_key("ax25"));
    }

    #[test]
    fn segments_are_short_where_bits_are_lost() {
        assert_eq!(tuned_for(2.56, 0.0).segment_bytes, 1472);
        assert_eq!(tuned_for(2.56, 1e-6).segment_bytes, 1472);
        let short = tuned_for(2.56, 1e-5).segment_bytes;
        // The cost of a byte is (1 + h / m) e^(8 ber (m + h)).
        let cost = |segment: u64| {
            let (m, h) = ((segment - SEGMENT_HEADER_BYTES) as f64, 48.0);
            (1.0 + h / m) * (-8.0 * (-1e-5_f64).ln_1p() * (m + h)).exp()
        };
        assert!(cost(short) <= cost(short - 10) && cost(short) <= cost(short + 10), "{short}");
        assert_eq!(tuned_for(2.56, 0.1).segment_bytes, SEGMENT_BYTES_MIN);
    }

    #[test]
    fn sessions_hold_twice_what_is_in_transit() {
        for (delays_s, rate_bps) in [(2.56, 115_200), (1500.0, 256_000), (0.5, 1_000_000_000)] {
            let path = [Hop { rate_bps, ..hop(delays_s, 1e-6) }];
            let config: Config = tuned(&path)["ltp"].clone().try_into().expect("settings");
            let in_flight = delays_s * rate_bps as f64 / 8.0;
            assert!(config.sessions_max as f64 * config.block_bytes as f64 >= 2.0 * in_flight);
            assert!(config.outgoing_bytes_max as f64 >= 2.0 * in_flight);
            assert!(Ltp::cautions(&config, &path).is_empty(), "tuned settings know the path");
            let plain = Ltp::cautions(&Config { outgoing_bytes_max: 1000, ..Config::default() }, &path);
            assert_eq!(plain.len(), if delays_s > 3.0 { 2 } else { 1 }, "{plain:?}");
        }
    }

    #[test]
    fn over_ax25_the_channel_decides_what_nobody_has_set() {
        let parameters = RadioParameters { rate_bps: 1200, ..RadioParameters::default() };
        let channel = Some(ChannelFacts { tnc: "uhf", parameters, digipeaters: 0 });
        let link = LinkFacts { channel, ..LinkFacts::default() };
        let found = Ltp::adapt(Config::default(), &link);
        assert_eq!((found.rate_bps, found.overhead_bytes), (1200, 19));
        let frame_s = 275.0 * 8.0 / 1200.0;
        assert!((4.0 * frame_s..5.0 * frame_s).contains(&found.margin.as_secs_f64()), "{:?}", found.margin);
        let set =
            Config { rate_bps: 300, overhead_bytes: 9, margin: Duration::from_secs(99), ..Config::default() };
        assert_eq!(Ltp::adapt(set.clone(), &link), set);
        assert_eq!(Ltp::adapt(Config::default(), &LinkFacts { rate_bps: 600, ..link }).rate_bps, 600);
    }

    #[test]
    fn an_engine_id_follows_from_the_node_id_unless_it_is_set() {
        let finish = |node_id, engine_id| {
            let settings = Config { engine_id, ..Config::default() };
            let link = LinkFacts { node_id, ..LinkFacts::default() };
            Ltp::finish(settings, &link).expect("it makes sense").own_engine_id()
        };
        assert_eq!((finish("ipn:977.0", None), finish("ipn:977.0", Some(5))), (977, 5));
        let (one, other) = (finish("dtn://a/", None), finish("dtn://b/", None));
        assert!(one != other && one.max(other) < 1 << ENGINE_ID_BITS && one.min(other) > 0, "{one} {other}");
    }
}
