//! Bundles over UDP (RFC 7122).

use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Session, session_over};
use crate::path::Hop;
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::udpcl::{Config, Link};
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
        media: &[Medium::Udp],
        acknowledges: false,
        resumes: false,
        is_group: false,
        negotiated: &[],
        families: &[Family {
            name: "udp",
            about: "bundles over UDP (RFC 7122), one per datagram, stored at each node, without acknowledgements",
            presets: &[Preset {
                name: "paced",
                about: "sent at the rate of the slowest link, in datagrams of its packet size",
                settings: paced,
            }],
        }],
    };

    fn defaults() -> Config {
        Config::default()
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Config {
        let peer = || link.peer.map(str::to_owned);
        Config { peer_node_id: settings.peer_node_id.or_else(peer), ..settings }
    }

    fn session(settings: &Config, origin: Origin, _rng: Rng) -> Session {
        session_over(match origin {
            Origin::Above => Link::new(settings.clone()),
            Origin::Below => Link::listening(settings.clone()),
        })
    }

    /// Warns about lost datagrams, which are not retransmitted.
    fn cautions(_settings: &Config, path: &[Hop]) -> Vec<String> {
        let is_certain = path.iter().all(|hop| hop.mean_ber == 0.0);
        let caution =
            "without acknowledgements and retransmissions, one damaged packet loses part of the file";
        if is_certain { Vec::new() } else { vec![caution.to_owned()] }
    }
}

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
