//! Bundles over UDP (RFC 7122).

use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::Hop;
use longwire_proto::bp::v6::wire::VERSION;
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::udpcl::{Config, Link};
use longwire_settings::error::Error;
use longwire_settings::toml_text::to_table;
use toml::Table;

/// Bundles over UDP.
#[derive(Debug)]
pub struct Udp;

/// Header bytes of IPv4 and UDP per datagram.
const HEADERS_BYTES: u64 = 28;

impl Carrier for Udp {
    type Settings = Config;
    const ABOUT: About = About {
        name: "udp",
        section: "udp",
        random_label: "udp",
        port: Some(4556),
        media: &[Medium::Udp],
        takes_turns: false,
        acknowledges: false,
        resumes: false,
        is_called: true,
        is_group: false,
        negotiated: &[],
        families: &[Family {
            name: "udp",
            about: "bundles over UDP (RFC 7122), one per datagram, stored at each node, without acknowledgements",
            presets: &[Preset::new(
                "paced",
                "sent at the rate of the slowest link, in datagrams of its packet size",
                paced,
            )],
        }],
    };
    /// Keep-alives are zeros.
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::fuzz::Material {
        codecs: &[],
        speech: |_, script| match script.below(5) {
            0 => vec![0; script.below(8) as usize].into(),
            _ => script.bytes(200),
        },
    };

    fn adapt(settings: Config, link: &LinkFacts<'_>) -> Config {
        if link.rate_bps > 0 { Config { rate_bps: link.rate_bps, ..settings } } else { settings }
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        let peer_node_id = settings.peer_node_id.or_else(|| link.peer.map(str::to_owned));
        Ok(Config { peer_node_id, ..settings })
    }

    fn session(settings: &Config, origin: Origin, _rng: Rng) -> Session {
        session_over(match origin {
            Origin::Above => Link::new(settings.clone()),
            Origin::Below => Link::listening(settings.clone()),
        })
    }

    /// By the version of a bundle of version 6, or by the array of one of version 7. Keep-alives are zeros.
    fn recognises(first: &[u8]) -> bool {
        matches!(first, [] | [VERSION, ..] | [0x80..=0x9f, ..] | [0, 0, 0, 0])
    }

    /// Warns about lost datagrams, which are not retransmitted.
    fn cautions(_settings: &Config, path: &[Hop]) -> Vec<String> {
        let is_certain = path.iter().all(|hop| hop.mean_ber == 0.0);
        let caution =
            "without acknowledgements and retransmissions, one damaged packet loses part of the file";
        if is_certain { Vec::new() } else { vec![caution.to_owned()] }
    }

    fn explain(settings: &Config, link: &LinkFacts<'_>) -> Vec<String> {
        let rate = match settings.rate_bps {
            0 => "without a rate limit".to_owned(),
            rate => format!("at {rate} bit/s"),
        };
        let peer = settings.peer_node_id.as_deref().unwrap_or("any node (used only through a route)");
        vec![format!(
            "Link `{}` to {peer} at {} over UDP, {rate}, one bundle per datagram of at most {} bytes, without \
             acknowledgements: lost datagrams are not resent.",
            link.name, link.place, settings.datagram_bytes_max
        )]
    }
}

impl Admission for Link {}

/// Datagrams as long as the packets of the path, at the rate of its slowest link.
fn paced(path: &[Hop]) -> Table {
    let plain = Config::default();
    let rate = path.iter().map(|hop| hop.rate_bps).min();
    let longest = path.iter().map(|hop| u64::from(hop.mtu_bytes)).min();
    let udp = Config {
        rate_bps: rate.unwrap_or(plain.rate_bps),
        datagram_bytes_max: longest.map_or(plain.datagram_bytes_max, |mtu| mtu - HEADERS_BYTES),
        // Includes the longest frame check, because a queue that drops must not fill.
        overhead_bytes: HEADERS_BYTES + 4,
        ..plain
    };
    sections([("udp", to_table(&udp))])
}
