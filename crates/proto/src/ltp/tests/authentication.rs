//! Authentication of segments (RFC 5327 2.1).

use super::scene::{Pair, Scene, as_report, bundle, config, data, perfect, theirs};
use crate::engine::Engine;
use crate::ltp::authentication::Authenticator;
use crate::ltp::wire::{CancelReason, Content, DataKind, Extension, Segment, SessionId};
use crate::ltp::{Authentication, Ciphersuite, Config, SecretKey};
use crate::service::{BundlesIndication, DatagramsIndication, PeerId};
use crate::setting::Settings as _;
use crate::time::Duration;
use bytes::Bytes;

fn settings() -> Authentication {
    Authentication {
        key: Some(SecretKey("000102030405060708090a0b0c0d0e0f10111213".into())),
        key_id: Some("24".into()),
        ..Authentication::default()
    }
}

fn secured(authentication: Authentication) -> Config {
    Config { authentication: Some(authentication), ..config() }
}

fn sealed(segment: &Segment) -> Bytes {
    Authenticator::new(&settings()).seal(&segment.to_bytes())
}

fn hear(scene: &mut Scene, bytes: Bytes) {
    let from = PeerId::CONFIGURED;
    scene.tell(DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
}

fn whole() -> Segment {
    data(DataKind::EndOfRedAndBlock, 0, Some((40, 0)), &b"\x00bundle"[..])
}

/// The values are those of another implementation of HMAC.
#[test]
fn a_segment_is_these_bytes() {
    let segment = Segment::new(SessionId { originator: 9, number: 300 }, Content::ReportAck(5));
    let null = Authentication { suite: Ciphersuite::Null, key: None, ..settings() };
    for (with, suite, value) in [
        (settings(), 0, [0x92, 0x90, 0x29, 0x0f, 0x76, 0x36, 0xd1, 0xfc, 0xd0, 0x90]),
        (null, 255, [0xf5, 0xf2, 0x4f, 0xeb, 0x78, 0x3e, 0x48, 0x89, 0x66, 0xc2]),
    ] {
        let before = [0x09, 9, 0x82, 0x2c, 0x11, 0x00, 0x02, suite, 0x24, 5, 0x00, 10];
        let bytes = Authenticator::new(&with).seal(&segment.to_bytes());
        assert_eq!(bytes[..], [&before[..], &value].concat());
        assert_eq!(bytes.len(), segment.to_bytes().len() + with.overhead_bytes());
    }
}

#[test]
fn links_with_one_key_exchange_bundles_in_segments_of_the_permitted_length() {
    let config = Config { segment_bytes: 200, ..secured(settings()) };
    let mut pair = Pair::new(&config, perfect());
    let bundle = bundle(10_000, 1);
    pair.send(&bundle);
    assert!(pair.run(Duration::from_secs(1_000)));
    assert_eq!(pair.bundles(), [bundle]);
    assert!(pair.log.iter().all(|(_, _, segment)| segment.header.len() == 1 && segment.trailer.len() == 1));
    let lengths = pair.log.iter().map(|(_, _, segment)| segment.to_bytes().len());
    assert_eq!(lengths.max(), Some(200));
}

#[test]
fn no_flipped_bit_gets_through() {
    let bytes = sealed(&whole());
    let mut scene = Scene::new(secured(settings()));
    for bit in 0..8 * bytes.len() {
        let mut altered = bytes.to_vec();
        altered[bit / 8] ^= 1 << (bit % 8);
        hear(&mut scene, altered.into());
        assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]), "bit {bit}");
    }
    let refused = scene.counters().unauthenticated + scene.counters().violations;
    assert!(refused >= 8 * bytes.len() as u64 && scene.counters().unauthenticated > 200, "{refused}");
    assert_eq!((scene.counters().blocks_received, scene.link.poll_timeout()), (0, None));
    hear(&mut scene, bytes);
    assert!(matches!(scene.up[..], [BundlesIndication::Begin { .. }, ..]), "{:?}", scene.up);
}

#[test]
fn forged_segments_of_every_kind_are_refused_and_counted() {
    let mut scene = Scene::new(secured(settings()));
    let (_, sent) = scene.send(&bundle(50, 1));
    let own = sent[0].session;
    let forged = [
        whole(),
        Segment::new(own, Content::CancelByReceiver(CancelReason::SystemCancelled)),
        super::scene::report(&sent[0], 5, (0, 50), &[(0, 50)]),
        Segment::new(theirs(1), Content::ReportAck(5)),
        Segment::new(theirs(1), Content::CancelBySender(CancelReason::ClientCancelled)),
        Segment::new(own, Content::CancelAckToSender),
        Segment::new(theirs(1), Content::CancelAckToReceiver),
    ];
    let another = Authentication { key: Some(SecretKey("ff".repeat(20))), ..settings() };
    let null = Authentication { suite: Ciphersuite::Null, key: None, ..settings() };
    let other_id = Authentication { key_id: Some("25".into()), ..settings() };
    let mut count = 0;
    for segment in &forged {
        let by = |with: &Authentication| Authenticator::new(with).seal(&segment.to_bytes());
        for bytes in
            [segment.to_bytes(), by(&another), by(&null), by(&other_id), with_value(segment.clone(), 9)]
        {
            hear(&mut scene, bytes);
            count += 1;
            assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]), "{segment:?}");
            assert_eq!(scene.counters().unauthenticated, count);
        }
    }
    // A refused segment does not hide an authentic one in the same datagram.
    hear(&mut scene, [whole().to_bytes(), sealed(&forged[2])].concat().into());
    assert!(matches!(scene.up[..], [BundlesIndication::Sent { .. }]), "{:?}", scene.up);
}

/// All segments of a session are sent once more by someone else, to both sides.
#[test]
fn replayed_and_reflected_segments_bring_nothing_new() {
    let mut scene = Scene::new(secured(settings()));
    let block = sealed(&whole());
    hear(&mut scene, block.clone());
    scene.accept(0, 7);
    let serial = as_report(&scene.down[0]).serial;
    let acknowledgement = sealed(&Segment::new(theirs(1), Content::ReportAck(serial)));
    hear(&mut scene, acknowledgement.clone());
    let (_, sent) = scene.send(&bundle(50, 1));
    let report = sealed(&super::scene::report(&sent[0], 5, (0, 50), &[(0, 50)]));
    hear(&mut scene, report.clone());
    let before = scene.counters();
    // So long that the report is no copy.
    scene.now += config().retransmission_timeout();
    for (replayed, answers) in [(block, 1), (acknowledgement, 0), (report, 1)] {
        hear(&mut scene, replayed);
        assert_eq!((&scene.up[..], scene.down.len()), (&[][..], answers), "a peer that repeats is answered");
    }
    let after = scene.counters();
    assert_eq!((after.duplicates, after.blocks_received), (before.duplicates + 1, before.blocks_received));
    assert_eq!(scene.link.poll_timeout(), None);
    // The segment that this side has sent.
    hear(&mut scene, sent[0].to_bytes());
    assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]));
    assert_eq!(scene.counters().strangers, before.strangers + 1);
}

/// A peer that changes its key sends the values of both; the last one covers the other.
#[test]
fn one_right_value_of_several_is_enough_and_the_header_may_be_missing() {
    let wrong = Extension { tag: 0, value: Bytes::from_static(&[7; 10]) };
    for others in [vec![wrong], vec![]] {
        let mut scene = Scene::new(secured(settings()));
        hear(&mut scene, with_value(Segment { trailer: others, ..whole() }, 10));
        assert!(matches!(scene.up[..], [BundlesIndication::Begin { .. }, ..]), "{:?}", scene.up);
    }
}

/// Each value that is tried costs as much as the segment is long.
#[test]
fn only_two_values_of_the_right_length_are_tried() {
    let wrong = |length| Extension { tag: 0, value: vec![7; length].into() };
    for (others, refused) in [([wrong(10), wrong(10)], 1), ([wrong(9), wrong(11)], 0)] {
        let mut scene = Scene::new(secured(settings()));
        hear(&mut scene, with_value(Segment { trailer: others.into(), ..whole() }, 10));
        assert_eq!((scene.counters().unauthenticated, scene.up.is_empty()), (refused, refused == 1));
    }
}

/// Adds the first bytes of the right value to the trailer.
fn with_value(mut segment: Segment, length: usize) -> Bytes {
    segment.trailer.push(Extension { tag: 0, value: vec![0; length].into() });
    let encoded = segment.to_bytes();
    let value = Authenticator::new(&settings()).value(&encoded[..encoded.len() - length]);
    [&encoded[..encoded.len() - length], &value[..length]].concat().into()
}

/// An extension after the value is authenticated, too.
#[test]
fn what_follows_the_value_cannot_be_altered() {
    let extension = |tag, value: &'static [u8]| Extension { tag, value: Bytes::from_static(value) };
    let trailer = vec![extension(0, &[0; 10]), extension(0xc0, b"after")];
    let encoded = Segment { trailer, ..whole() }.to_bytes();
    let end = encoded.len() - 7;
    let (before, after) = (&encoded[..end - 10], &encoded[end..]);
    let value = Authenticator::new(&settings()).value(&[before, after].concat());
    let authentic = [before, &value, after].concat();
    let mut altered = authentic.clone();
    *altered.last_mut().expect("a byte") ^= 1;
    for (bytes, refused) in [(altered, 1), (authentic, 0)] {
        let mut scene = Scene::new(secured(settings()));
        hear(&mut scene, bytes.into());
        assert_eq!((scene.counters().unauthenticated, scene.up.is_empty()), (refused, refused == 1));
    }
}

#[test]
fn settings_without_a_usable_key_are_refused_by_name() {
    let key = |text: &str| Some(SecretKey(text.to_owned()));
    for (name, authentication) in [
        ("authentication.suite", Authentication { suite: Ciphersuite::RsaSha256, ..settings() }),
        ("authentication.key", Authentication { key: None, ..settings() }),
        ("authentication.key", Authentication { key: key("00112233445566778899aabbccddee"), ..settings() }),
        ("authentication.key", Authentication { key: key("00112233445566778899aabbccddeef"), ..settings() }),
        ("authentication.key", Authentication { key: key("x0112233445566778899aabbccddeeff"), ..settings() }),
        ("authentication.key", Authentication { suite: Ciphersuite::Null, ..settings() }),
        ("authentication.key-id", Authentication { key_id: Some("2".into()), ..settings() }),
        ("authentication.key-file", Authentication { key_file: Some("moon.key".into()), ..settings() }),
    ] {
        let debug = format!("{authentication:?}");
        assert_eq!(secured(authentication).check().unwrap_err().key, name);
        assert!(!debug.contains("0011"), "{debug}");
    }
    let short = Config { segment_bytes: 96, ..secured(settings()) };
    assert_eq!(short.check().unwrap_err().key, "segment-bytes");
}
