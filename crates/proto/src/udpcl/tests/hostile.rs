//! Senders that exhaust the memory of a receiver, or try to (draft-ietf-dtn-udpcl-04 5.9).

use super::{SECOND, Scene, datagram, datagram_from, segment, single};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{BundlesRequest, CloseReason, DatagramsIndication, PeerId, RefuseReason, TransferId};
use crate::udpcl::Config;

/// Memory of a transfer of one segment of `bytes`.
fn memory_of(bytes: u64) -> u64 {
    256 + 128 + bytes
}

fn scene(incoming_bytes_max: u64) -> Scene {
    Scene::new(Config { transfer_bytes_max: incoming_bytes_max, incoming_bytes_max, ..Config::default() })
}

impl Scene {
    /// A state of the link.
    fn state(&self, name: &str) -> u64 {
        Observation::of(&self.link).parts[0].number(name).expect("a state")
    }

    fn held(&self) -> u64 {
        self.state("bytes_held")
    }

    /// A segment of `length` bytes from a sender, the first of a transfer that needs one byte more.
    fn begin(&mut self, from: PeerId, id: u64, length: usize) {
        let data = vec![0x9f; length];
        self.hear(datagram_from(from, &segment(id, length as u64 + 1, 0, &data)));
    }

    /// The missing byte of a transfer; returns true if that completes it.
    fn end(&mut self, from: PeerId, id: u64, length: usize) -> bool {
        self.hear(datagram_from(from, &segment(id, length as u64 + 1, length as u64, b"z")));
        !self.risen().is_empty()
    }
}

#[test]
fn nothing_is_reserved_for_an_announced_length() {
    let mut scene = Scene::new(Config::default());
    scene.hear(datagram(&segment(1, 16 << 20, (16 << 20) - 1, b"z")));
    assert_eq!(scene.held(), memory_of(1));
}

#[test]
fn transfers_that_are_longer_than_the_limit_are_not_begun() {
    let mut scene = Scene::new(Config::default());
    for total in [(16 << 20) + 1, u64::from(u32::MAX), u64::MAX] {
        scene.hear(datagram(&segment(1, total, 0, b"\x9f")));
        scene.hear(datagram(&segment(1, total, total - 1, b"z")));
    }
    assert_eq!((scene.state("transfers_remembered"), scene.link.counters().segments_refused), (0, 6));
}

#[test]
fn segments_without_bytes_or_beyond_the_end_are_not_kept() {
    let mut scene = Scene::new(Config::default());
    for packet in [
        segment(1, 9, 0, b""),
        segment(1, 0, 0, b""),
        single(1, b""),
        segment(1, 9, 9, b"z"),
        segment(1, 9, 8, b"yz"),
        segment(1, 9, u64::MAX, b"z"),
        segment(1, u64::MAX, u64::MAX, b"z"),
    ] {
        scene.hear(datagram(&packet));
    }
    assert_eq!((scene.held(), scene.link.counters().violations), (0, 7));
}

#[test]
fn segments_of_one_byte_count_with_their_overhead() {
    let mut scene = scene(100_000);
    for offset in 0..10_000 {
        scene.hear(datagram(&segment(1, 50_000, 4 * offset, b"\x9f")));
        assert!(scene.held() <= 100_000);
    }
    let kept = scene.link.counters().segments_received;
    assert_eq!((kept, scene.link.counters().dropped), ((100_000 - 256) / 129, 10_000 - kept));
    // A sender with less takes the place of all of them.
    scene.begin(PeerId(1), 1, 1_000);
    assert!(scene.end(PeerId(1), 1, 1_000));
    assert_eq!(scene.link.counters().transfers_displaced, 1);
}

#[test]
fn a_sender_of_many_transfers_loses_those_that_it_has_not_continued_for_the_longest_time() {
    let mut scene = scene(20 * memory_of(1_000));
    let sender = PeerId(1);
    for id in 0..100 {
        scene.begin(sender, id, 1_000);
        scene.now += SECOND / 10;
        if id > 0 {
            // Repeated: it stays the one that was heard last.
            scene.begin(sender, 0, 1_000);
        }
        assert!(scene.held() <= 20 * memory_of(1_000));
    }
    assert!(scene.end(sender, 0, 1_000) && scene.end(sender, 99, 1_000));
    assert!(!scene.end(sender, 50, 1_000));
}

#[test]
fn forged_senders_take_no_more_than_their_share_from_others() {
    let mut scene = scene(100_000);
    let honest = PeerId(1);
    scene.begin(honest, 7, 800);
    scene.hear(datagram_from(honest, &single(8, b"\x9fdone")));
    // Each of up to 60 senders has as much as it can, and more than the honest one.
    let mut rng = Rng::new(1);
    for id in 0..5_000 {
        scene.begin(PeerId(2 + rng.below(60) as u32), id, 1_000);
        assert!(scene.held() <= 100_000);
    }
    assert!(scene.link.counters().transfers_displaced > 1_000);
    scene.hear(datagram_from(honest, &single(8, b"\x9fdone")));
    assert_eq!(scene.risen(), [[]; 0], "that it is complete is not forgotten either");
    assert!(scene.end(honest, 7, 800));
}

#[test]
fn a_segment_that_can_never_fit_displaces_nothing() {
    let mut scene = Scene::new(Config { incoming_bytes_max: 5_000, ..Config::default() });
    scene.begin(PeerId(1), 1, 1_000);
    scene.begin(PeerId(1), 2, 5_000);
    assert_eq!((scene.link.counters().dropped, scene.link.counters().transfers_displaced), (1, 0));
    assert!(scene.end(PeerId(1), 1, 1_000));
}

#[test]
fn the_sender_with_the_most_memory_gives_way_to_one_with_less() {
    let mut scene = scene(100_000);
    let (greedy, modest) = (PeerId(1), PeerId(2));
    for id in 0..50 {
        scene.begin(greedy, id, 3_000);
    }
    scene.begin(modest, 1, 40_000);
    assert!(scene.end(modest, 1, 40_000));
}

#[test]
fn a_sender_that_has_more_than_others_gets_nothing_of_theirs() {
    let mut scene = scene(100_000);
    let (first, second) = (PeerId(1), PeerId(2));
    scene.begin(first, 1, 45_000);
    scene.begin(second, 1, 20_000);
    scene.begin(second, 2, 34_000);
    assert_eq!(scene.link.counters().transfers_displaced, 1);
    assert!(scene.end(first, 1, 45_000));
    scene.ask(BundlesRequest::Accept { transfer: TransferId(0), up_to: 45_001 });
    assert!(!scene.end(second, 1, 20_000), "its own");
}

#[test]
fn complete_bundles_count_until_they_are_accepted_or_refused() {
    let mut scene = scene(10 * memory_of(1_000));
    let bundle = vec![0x9f; 1_000];
    let mut risen = 0;
    for id in 0..20 {
        scene.hear(datagram(&single(id, &bundle)));
        risen += scene.risen().len() as u64;
        assert!(scene.held() <= 10 * memory_of(1_000));
    }
    assert!(risen >= 9 && scene.link.counters().dropped == 20 - risen);
    for number in 0..risen {
        let transfer = TransferId(number);
        match number % 2 {
            0 => scene.ask(BundlesRequest::Accept { transfer, up_to: 1_000 }),
            _ => scene.ask(BundlesRequest::Refuse { transfer, reason: RefuseReason::NotAcceptable }),
        }
    }
    scene.hear(datagram(&single(100, &bundle)));
    assert_eq!(scene.risen().len(), 1, "there is memory again");
    scene.hear(DatagramsIndication::Left(CloseReason::Refused));
    assert_eq!(scene.held(), 256 * scene.state("transfers_remembered"), "the user has the bundle");
}

#[test]
fn what_is_remembered_of_transfers_is_bounded_too() {
    let mut scene = scene(100_000);
    for id in 0..2_000 {
        scene.hear(datagram(&single(id, if id % 2 == 0 { b"\x9fa" } else { b"none" })));
        let up_to = 2;
        if let Some(transfer) = scene.last_begun() {
            scene.ask(BundlesRequest::Accept { transfer, up_to });
        }
        assert!(scene.held() <= 100_000);
    }
    assert_eq!(scene.link.counters().transfers_received, 1_000);
    assert!(scene.state("transfers_remembered") <= 100_000 / 256);
}

#[test]
fn a_segment_does_not_keep_its_datagram_in_memory() {
    let mut scene = Scene::new(Config::default());
    let mut packet = segment(1, 3, 0, b"\x9f").to_vec();
    packet.resize(60_000, 0);
    let packet = bytes::Bytes::from(packet);
    let (from, bytes) = (PeerId::CONFIGURED, packet.clone());
    scene.hear(DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
    assert_eq!((scene.link.counters().segments_received, packet.is_unique()), (1, true));
}

#[test]
fn malformed_packets_are_counted_and_what_precedes_them_is_received() {
    let mut scene = Scene::new(Config::default());
    let nested = [&b"\xa1\x03"[..], &[0x81; 60_000]].concat();
    scene.hear(datagram(&[&single(1, b"\x9fa")[..], &nested].concat()));
    assert_eq!((scene.risen().len(), scene.link.counters().violations), (1, 1));
    scene.hear(datagram(b"\xa1\x02\x82\x01\x02"));
    assert_eq!((&scene.up[..], scene.link.counters().violations), (&[][..], 2));
}
