//! Bundles over UDP (RFC 7122, draft-ietf-dtn-udpcl-04).

use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::Hop;
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::udpcl::wire::{KEEPALIVE, begins_bundle, begins_extensions};
use longwire_proto::udpcl::{Config, Link};
use longwire_settings::duration::short;
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
        multicast: false,
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
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::udpcl::fuzz::FUZZ;

    fn adapt(settings: Config, link: &LinkFacts<'_>) -> Config {
        if link.rate_bps > 0 { Config { rate_bps: link.rate_bps, ..settings } } else { settings }
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        let peer_node_id = settings.peer_node_id.or_else(|| link.peer.map(str::to_owned));
        Ok(Config { peer_node_id, ..settings })
    }

    fn session(settings: &Config, origin: Origin, rng: Rng) -> Session {
        session_over(match origin {
            Origin::Above => Link::new(settings.clone(), rng),
            Origin::Below => Link::listening(settings.clone(), rng),
        })
    }

    /// By the version of a bundle of version 6, by the array of one of version 7, or by an extension map. Keep-alives are zeros.
    /// A record of DTLS is reported with its sender, because the session discards it.
    fn recognises(first: &[u8]) -> bool {
        first.is_empty() || first == KEEPALIVE || begins_bundle(first[0]) || begins_extensions(first[0])
    }

    /// Warns about lost datagrams, which are not retransmitted.
    fn cautions(settings: &Config, path: &[Hop]) -> Vec<String> {
        let is_certain = path.iter().all(|hop| hop.mean_ber == 0.0);
        let caution = match settings.copies {
            1 => "without acknowledgements and retransmissions, one damaged packet loses part of the file",
            _ => "without acknowledgements, one packet loses part of the file if all its copies are damaged",
        };
        if is_certain { Vec::new() } else { vec![caution.to_owned()] }
    }

    fn explain(settings: &Config, link: &LinkFacts<'_>) -> Vec<String> {
        let rate = match settings.rate_bps {
            0 => "without a rate limit".to_owned(),
            rate => format!("at {rate} bit/s"),
        };
        let peer = settings.peer_node_id.as_deref().unwrap_or("any node (used only through a route)");
        let longer = match settings.transfers {
            true => format!(
                " (longer ones, up to {} bytes, in several, which the peer must understand)",
                settings.transfer_bytes_max
            ),
            false => String::new(),
        };
        let lost = match settings.copies {
            1 => "lost datagrams are not resent".to_owned(),
            copies => format!(
                "each datagram is sent {copies} times, {} apart, and not again if all are lost",
                short(settings.copy_interval)
            ),
        };
        vec![format!(
            "Link `{}` to {peer} at {} over UDP, {rate}, one bundle per datagram of at most {} bytes{longer}, without \
             acknowledgements: {lost}.",
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

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::time::Duration;

    #[test]
    fn transfers_and_copies_are_explained_where_they_are_used() {
        let link = LinkFacts { name: "beacon", place: "192.0.2.7:4556", ..LinkFacts::default() };
        let plain = Config { peer_node_id: Some("dtn://beacon/".to_owned()), ..Config::default() };
        assert_eq!(
            Udp::explain(&plain, &link),
            [
                "Link `beacon` to dtn://beacon/ at 192.0.2.7:4556 over UDP, at 1000000 bit/s, one bundle per datagram of at most \
              1400 bytes, without acknowledgements: lost datagrams are not resent."
            ]
        );
        let copies = Config { transfers: true, copies: 2, copy_interval: Duration::from_secs(5), ..plain };
        assert_eq!(
            Udp::explain(&copies, &link),
            [
                "Link `beacon` to dtn://beacon/ at 192.0.2.7:4556 over UDP, at 1000000 bit/s, one bundle per datagram of at most \
              1400 bytes (longer ones, up to 16777216 bytes, in several, which the peer must understand), without \
              acknowledgements: each datagram is sent 2 times, 5 s apart, and not again if all are lost."
            ]
        );
    }

    #[test]
    fn datagrams_are_recognised_by_their_first_octet() {
        for own in [&b""[..], b"\0\0\0\0", b"\x06\x10", b"\x9f\x88", b"\x88\x88", b"\xa1\x02", b"\xbf\x02"] {
            assert!(Udp::recognises(own), "{own:x?}");
        }
        // Data of LTP, a packet of Saratoga, the beginning of DTLS, and HTTP.
        for other in [&b"\0\0\0\0\0"[..], b"\x24\x00", b"\x16\xfe\xfd", b"GET /"] {
            assert!(!Udp::recognises(other), "{other:x?}");
        }
    }
}
