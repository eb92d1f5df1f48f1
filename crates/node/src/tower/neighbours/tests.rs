//! Links on amateur radio bands: no configuration makes one of them encrypt, in either direction.

use super::*;
use crate::tower::links::special;
use bytes::Bytes;
use longwire_proto::service::{DownReason, StreamIndication, StreamRequest};
use longwire_towers::{MediaIndication, MediaRequest};
use std::fmt::Write as _;
use std::path::Path;

const NOW: Instant = Instant::ZERO;
/// Contact header of TCPCL version 4 from a peer that offers TLS (RFC 9174 4.2).
const OFFER: &[u8] = b"dtn!\x04\x01";
/// Flag of a contact header that offers TLS.
const CAN_TLS: u8 = 1;

fn pick<'a>(rng: &mut Rng, words: &[&'a str]) -> &'a str {
    words[rng.below(words.len() as u64) as usize]
}

/// A random configuration with links at the addresses 10.0.0.1 and following, and TNCs.
fn random_config(rng: &mut Rng) -> String {
    let mut text =
        format!("node = 'dtn://here/'\nlisten = ['127.0.0.1:0']\n{}\n", pick(rng, &["", "peers = 'any'"]));
    write!(text, "[tcpcl]\ntls = '{}'\n", pick(rng, &["off", "prefer", "require"])).expect("a string");
    for tnc in 0..rng.below(3) {
        let amateur = pick(rng, &["", "amateur = true\n", "amateur = false\n"]);
        write!(
            text,
            "[[tnc]]\nname = 't{tnc}'\naddress = '127.0.0.1:{}'\ncallsign = 'OE1ABC-{tnc}'\n{amateur}",
            8001 + tnc
        )
        .expect("a string");
    }
    for link in 1..=1 + rng.below(4) {
        let amateur = pick(rng, &["", "amateur = true\n", "amateur = false\n"]);
        let kind = pick(rng, &["tcp", "tcp", "tcp", "udp", "ltp", "aerotp", "ax25cl", "uicl"]);
        let place = match kind {
            "ax25cl" | "uicl" => format!("tnc = 't{}'\ncallsign = 'OE1XYZ-{link}'", rng.below(3)),
            _ => format!("address = '10.0.0.{}:4556'", 1 + rng.below(4)),
        };
        let own = match kind {
            "tcp" => {
                pick(rng, &["", "", "tcpcl.tls = 'off'", "tcpcl.tls = 'prefer'", "tcpcl.tls = 'require'"])
            }
            _ => "",
        };
        let peer = pick(rng, &["", "peer = 'dtn://there/'"]);
        write!(text, "[[link]]\nname = 'l{link}'\nkind = '{kind}'\n{place}\n{amateur}{own}\n{peer}\n")
            .expect("a string");
    }
    if rng.chance(0.3) {
        let plain = pick(rng, &["", "plain = true"]);
        write!(text, "[[gateway]]\nport = 80\nconnect-tcp = '127.0.0.1:80'\n{plain}\n").expect("a string");
    }
    text
}

/// Plays the peer of a connection, which offers TLS. Returns the flags of this side's contact header, and whether this side
/// has begun TLS.
fn answered(neighbours: &mut Neighbours, link: LinkId) -> (Option<u8>, bool) {
    let (mut written, mut secured) = (Vec::new(), false);
    for said in [
        StreamIndication::Connected,
        StreamIndication::Room(10_000),
        StreamIndication::Data(Bytes::from_static(OFFER)),
    ] {
        let said = (link, MediaIndication::Stream(said));
        neighbours.handle_indication(NOW, Port::First(said));
        while neighbours.poll_indication(NOW).is_some() {}
        while let Some(request) = neighbours.poll_request(NOW) {
            match request {
                Port::First((of, MediaRequest::Stream(StreamRequest::Write(bytes)))) if of == link => {
                    written.extend_from_slice(&bytes);
                }
                Port::First((of, MediaRequest::Stream(StreamRequest::Secure { .. }))) if of == link => {
                    secured = true;
                }
                _ => {}
            }
        }
    }
    (written.get(5).copied(), secured)
}

#[test]
fn no_configuration_makes_a_link_on_an_amateur_band_encrypt() {
    let (mut amateur, mut others, mut callers, mut refused) = (0, 0, 0, 0);
    for seed in 0..1000 {
        let mut rng = Rng::new(seed).fork("configuration");
        let text = random_config(&mut rng);
        let Ok(config) = Config::parse(&text, "test", Path::new("/")) else {
            refused += 1;
            continue;
        };
        let mut neighbours = Neighbours::new(&config, &rng).expect("the configuration was checked");
        let links: Vec<(LinkId, LinkSettings)> =
            neighbours.links.iter().map(|(id, known)| (id, known.link.clone())).collect();
        for (id, link) in &links {
            // One radio is one band: its own mark, or that of any link over it.
            let by_tnc = config.tnc.iter().any(|tnc| tnc.name == link.tnc && tnc.amateur)
                || links
                    .iter()
                    .any(|(_, other)| !link.tnc.is_empty() && other.tnc == link.tnc && other.amateur);
            let is_amateur = link.amateur || by_tnc;
            assert_eq!(special(&config, *id, link).amateur, is_amateur, "seed {seed}: {text}");
            if link.kind != "tcp" {
                continue;
            }
            neighbours.handle_request(NOW, (*id, BundlesRequest::Connect));
            while neighbours.poll_request(NOW).is_some() {}
            let (flags, secured) = answered(&mut neighbours, *id);
            if is_amateur {
                amateur += 1;
                assert!(flags.is_none_or(|flags| flags & CAN_TLS == 0) && !secured, "seed {seed}: {text}");
            } else {
                others += u32::from(secured);
            }
        }
        for last in 1..=4_u8 {
            let address = IpAddr::from([10, 0, 0, last]);
            let caller = neighbours.links.caller_ids.next();
            // A connection may arrive in the form of IPv6.
            let mapped = rng.chance(0.5);
            let written = match address {
                IpAddr::V4(four) if mapped => IpAddr::V6(four.to_ipv6_mapped()),
                other => other,
            };
            neighbours.set_address(caller, written);
            let (flags, secured) = answered(&mut neighbours, caller);
            let place = format!("10.0.0.{last}:4556");
            if links.iter().any(|(_, link)| link.amateur && link.address == place) {
                callers += 1;
                assert!(flags.is_none_or(|flags| flags & CAN_TLS == 0) && !secured, "seed {seed}: {text}");
            } else {
                others += u32::from(secured);
            }
        }
    }
    assert!(
        amateur > 80 && others > 200 && callers > 200 && refused > 50,
        "{amateur} {others} {callers} {refused}"
    );
}

#[test]
fn a_caller_from_the_address_of_an_amateur_link_is_announced_as_one() {
    let text = "node = 'dtn://here/'\npeers = 'any'\n[[link]]\nname = 'a'\naddress = 'host:4556'\namateur = true\nopen = false\n";
    let config = Config::parse(text, "test", Path::new("/")).expect("it makes sense");
    let mut neighbours = Neighbours::new(&config, &Rng::new(1)).expect("it was checked");
    let address = IpAddr::from([10, 0, 0, 1]);
    let early = neighbours.links.caller_ids.next();
    neighbours.set_address(early, address);
    let up = || BundlesIndication::Up { peer: None, interleave: false, transfer_bytes_max: 1 };
    assert_eq!(neighbours.rises(early, up()).1, up(), "nobody knows yet where `host` is");
    // The name has led to the address: the session of before ends, and the next one is on the amateur band.
    neighbours.set_address(LinkId(1), address);
    assert_eq!(neighbours.cut, [early]);
    assert_eq!(neighbours.poll_indication(NOW), Some((early, BundlesIndication::Amateur)));
    let caller = neighbours.links.caller_ids.next();
    neighbours.set_address(caller, address);
    assert_eq!(neighbours.rises(caller, up()), (caller, BundlesIndication::Amateur));
    assert_eq!(neighbours.poll_indication(NOW), Some((caller, up())));
    neighbours.forget_address(caller);
    assert_eq!(neighbours.rises(caller, up()), (caller, up()));
}

#[test]
fn a_caller_in_a_network_or_with_the_node_id_of_a_host_that_was_not_found_yet_is_amateur() {
    let text = "node = 'dtn://here/'\npeers = 'any'\namateur-networks = ['44.0.0.0/9']\n\
                [[link]]\nname = 'a'\naddress = 'host:4556'\npeer = 'dtn://there/'\namateur = true\nopen = false\n";
    let config = Config::parse(text, "test", Path::new("/")).expect("it makes sense");
    let up = |peer: &str| {
        let peer = Some(peer.to_owned());
        BundlesIndication::Up { peer, interleave: false, transfer_bytes_max: 1 }
    };
    let is_amateur = |neighbours: &mut Neighbours, address: [u8; 4], peer: &str| {
        let caller = neighbours.links.caller_ids.next();
        neighbours.set_address(caller, address.into());
        let first = neighbours.rises(caller, up(peer)).1;
        while neighbours.poll_indication(NOW).is_some() {}
        neighbours.named(caller, BundlesIndication::Down { reason: DownReason::Closed, retry: false });
        first == BundlesIndication::Amateur
    };
    let mut neighbours = Neighbours::new(&config, &Rng::new(1)).expect("it was checked");
    assert!(is_amateur(&mut neighbours, [44, 1, 2, 3], "dtn://else/"));
    assert!(!is_amateur(&mut neighbours, [10, 0, 0, 2], "dtn://else/"));
    assert!(is_amateur(&mut neighbours, [10, 0, 0, 2], "dtn://there/"));
    // Once the name has led to an address, that counts, and not the claim of a node ID.
    neighbours.set_address(LinkId(1), IpAddr::from([10, 0, 0, 1]));
    assert!(!is_amateur(&mut neighbours, [10, 0, 0, 2], "dtn://there/"));
    assert!(is_amateur(&mut neighbours, [10, 0, 0, 1], "dtn://there/"));
}

#[test]
fn a_link_that_becomes_amateur_on_reload_makes_all_over_its_tnc_so() {
    let tnc = "node = 'dtn://here/'\n[[tnc]]\nname = 't'\naddress = '127.0.0.1:8001'\ncallsign = 'OE1ABC'\namateur = false\n";
    let link = |name: &str, more: &str| {
        format!("[[link]]\nname = '{name}'\nkind = 'ax25cl'\ntnc = 't'\ncallsign = '{name}'\n{more}")
    };
    let parse = |text: &str| Config::parse(text, "test", Path::new("/")).expect("it makes sense");
    let old = parse(&format!("{tnc}{}", link("OE1XYZ", "")));
    let new = parse(&format!("{tnc}{}{}", link("OE1XYZ", ""), link("OE1XXR", "amateur = true\n")));
    let mut neighbours = Neighbours::new(&old, &Rng::new(1)).expect("it was checked");
    assert!(
        !special(&old, LinkId(1), &old.link[0]).amateur && special(&new, LinkId(1), &new.link[0]).amateur
    );
    neighbours.set_callers(&new);
    assert_eq!(neighbours.poll_indication(NOW), Some((LinkId(1), BundlesIndication::Amateur)));
}
