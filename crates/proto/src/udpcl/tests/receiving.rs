//! Transfers that are received (draft-ietf-dtn-udpcl-04 3.5.2, 3.6.2).

use super::{SECOND, Scene, datagram, datagram_from, joined, segment, single};
use crate::engine::Engine;
use crate::service::{
    BundlesIndication, BundlesRequest, CloseReason, DatagramsIndication, DatagramsRequest, PeerId, TransferId,
};
use crate::udpcl::Config;
use bytes::Bytes;

fn scene() -> Scene {
    Scene::new(Config::default())
}

#[test]
fn segments_in_any_order_are_one_bundle_whose_pieces_rise_in_order_when_it_is_complete() {
    let parts = [(0, &b"\x9fab"[..]), (3, b"c"), (4, b"defg")];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut scene = scene();
        for (count, at) in order.into_iter().enumerate() {
            let packet = segment(7, 8, parts[at].0, parts[at].1);
            scene.hear(datagram(&packet));
            // Segments are copied, so that those after a gap do not stop the socket.
            assert_eq!(scene.down, [DatagramsRequest::Release(packet.len() as u64)]);
            assert_eq!(scene.up.is_empty(), count < 2);
        }
        let transfer = TransferId(0);
        let piece = |at: usize| BundlesIndication::Piece {
            transfer,
            data: Bytes::from_static(parts[at].1),
            last: at == 2,
        };
        let begin = BundlesIndication::Begin { transfer, length: Some(8) };
        assert_eq!(scene.up, [begin, piece(0), piece(1), piece(2)], "{order:?}");
        scene.ask(BundlesRequest::Accept { transfer, up_to: 8 });
        assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]), "all was released");
        let counters = scene.link.counters();
        assert_eq!((counters.transfers_received, counters.segments_received), (1, 3));
        assert_eq!((counters.payload_received, counters.datagrams_received), (8, 0));
    }
}

#[test]
fn a_datagram_contains_several_transfers_other_items_and_padding() {
    let mut scene = scene();
    let packet = [&single(1, b"\x9fa")[..], b"\xa1\x04\x61x", &single(2, b"\x06b"), &[0; 40]].concat();
    scene.hear(datagram(&packet));
    assert_eq!(scene.risen(), [b"\x9fa", b"\x06b"]);
    assert_eq!(scene.down, [DatagramsRequest::Release(packet.len() as u64)]);
    assert_eq!((scene.link.counters().items_skipped, scene.link.counters().violations), (1, 0));
}

#[test]
fn transfers_of_one_id_from_different_senders_are_different() {
    let mut scene = scene();
    let [one, other] = [PeerId(1), PeerId(2)];
    scene.hear(datagram_from(one, &segment(7, 4, 0, b"\x9fa")));
    scene.hear(datagram_from(other, &segment(7, 4, 2, b"zz")));
    scene.hear(datagram_from(other, &segment(7, 4, 0, b"\x9fy")));
    assert_eq!(scene.risen(), [b"\x9fyzz"]);
    scene.hear(datagram_from(one, &segment(7, 4, 2, b"bc")));
    assert_eq!(scene.risen(), [b"\x9fabc"]);
}

#[test]
fn segments_that_overlap_others_are_discarded() {
    let mut scene = scene();
    scene.hear(datagram(&segment(7, 10, 4, b"efg")));
    for (offset, data) in [(4, &b"EFG"[..]), (2, b"CDE"), (6, b"G"), (5, b"F"), (3, b"DEFGHIJ"), (6, b"GH")] {
        scene.hear(datagram(&segment(7, 10, offset, data)));
    }
    scene.hear(datagram(&single(7, b"\x9fbcdEFGhij")));
    assert_eq!((scene.link.counters().duplicates, scene.link.counters().segments_received), (7, 1));
    scene.hear(datagram(&segment(7, 10, 0, b"\x9fbcd")));
    scene.hear(datagram(&segment(7, 10, 7, b"hij")));
    assert_eq!(scene.risen(), [b"\x9fbcdefghij"], "what came first counts");
}

#[test]
fn a_transfer_whose_segments_announce_different_lengths_is_refused_with_all_its_segments() {
    let mut scene = scene();
    scene.hear(datagram(&segment(7, 4, 0, b"\x9fa")));
    scene.hear(datagram(&segment(7, 5, 2, b"bc")));
    assert_eq!((scene.link.counters().transfers_malformed, scene.link.counters().segments_refused), (1, 0));
    for packet in [segment(7, 4, 2, b"bc"), segment(7, 4, 0, b"\x9fa"), single(7, b"\x9fabc")] {
        scene.hear(datagram(&packet));
        assert_eq!(scene.risen(), [[]; 0]);
    }
    assert_eq!((scene.link.counters().transfers_malformed, scene.link.counters().segments_refused), (1, 3));
    scene.hear(datagram(&segment(8, 4, 0, b"\x9fa")));
    scene.hear(datagram(&single(8, b"\x9fa")));
    assert_eq!(scene.link.counters().transfers_malformed, 2, "the data are the length of a single segment");
}

#[test]
fn a_transfer_is_forgotten_when_none_of_its_segments_came_for_the_timeout() {
    let mut scene = Scene::new(Config { transfer_timeout: 10 * SECOND, ..Config::default() });
    for offset in [0, 1, 1] {
        scene.hear(datagram(&segment(7, 4, offset, b"\x9f")));
        scene.now += 9 * SECOND;
    }
    assert_eq!(scene.wait(), SECOND, "a segment that came again counts, too");
    assert_eq!((scene.link.counters().transfers_expired, scene.link.poll_timeout()), (1, None));
    scene.hear(datagram(&segment(7, 4, 2, b"cd")));
    assert_eq!(scene.risen(), [[]; 0]);
    scene.hear(datagram(&segment(7, 4, 0, b"\x9fb")));
    assert_eq!(scene.risen(), [b"\x9fbcd"]);
}

#[test]
fn copies_of_a_complete_transfer_are_discarded_until_none_came_for_the_timeout() {
    let mut scene = scene();
    let packets = [single(1, b"\x9fa"), segment(2, 2, 0, b"\x9f"), segment(2, 2, 1, b"b")];
    for packet in &packets {
        scene.hear(datagram(packet));
    }
    assert_eq!(scene.link.counters().transfers_received, 2);
    for _ in 0..2 {
        scene.now += 59 * SECOND;
        for packet in &packets {
            scene.hear(datagram(packet));
            assert_eq!(scene.risen(), [[]; 0]);
        }
    }
    assert_eq!(scene.link.counters().duplicates, 6);
    assert_eq!(scene.wait(), 60 * SECOND);
    assert_eq!((scene.link.poll_timeout(), scene.link.counters().transfers_expired), (None, 0));
    scene.hear(datagram(&packets[0]));
    assert_eq!(scene.risen(), [b"\x9fa"], "another transfer");
}

#[test]
fn what_does_not_begin_like_a_bundle_is_discarded() {
    let mut scene = scene();
    for (count, packet) in [
        b"\x05\x10\x00".to_vec(),
        b"GET / HTTP/1.1".to_vec(),
        single(1, b"no bundle").into(),
        segment(2, 20, 0, b"no bundle").into(),
    ]
    .into_iter()
    .enumerate()
    {
        scene.hear(datagram(&packet));
        assert_eq!(scene.risen(), [[]; 0]);
        assert_eq!(scene.down, [DatagramsRequest::Release(packet.len() as u64)]);
        assert_eq!(scene.link.counters().not_bundles, 1 + count as u64);
    }
    // Nor if that is seen only with the last segment.
    scene.hear(datagram(&segment(3, 3, 1, b"bc")));
    scene.hear(datagram(&segment(3, 3, 0, b"a")));
    scene.hear(datagram(&segment(2, 20, 9, b"more of it")));
    assert_eq!((scene.link.counters().not_bundles, scene.link.counters().segments_refused), (5, 1));
    assert_eq!(scene.link.counters().transfers_received, 0);
}

#[test]
fn keepalives_padding_and_records_of_dtls_are_not_bundles() {
    let mut scene = scene();
    for packet in [&[0; 4][..], &[0; 5], &[0], b"\0\x9f", b"\x16\xfe\xfd\0", b"\x2f\x01"] {
        scene.hear(datagram(packet));
        assert_eq!(scene.up, []);
        assert_eq!(scene.down, [DatagramsRequest::Release(packet.len() as u64)]);
    }
    let counters = scene.link.counters();
    assert_eq!((counters.keepalives_received, counters.dtls_refused), (1, 2));
    assert_eq!((counters.not_bundles, counters.violations), (0, 0));
}

#[test]
fn a_transfer_continues_when_the_socket_of_this_side_was_opened_again() {
    let mut scene = scene();
    scene.hear(datagram(&segment(7, 4, 0, b"\x9fa")));
    scene.hear(datagram_from(PeerId(3), &segment(7, 4, 0, b"\x9fy")));
    scene.hear(datagram(&single(8, b"\x9f8")));
    scene.hear(DatagramsIndication::Left(CloseReason::Refused));
    scene.wait();
    scene.hear(joined(Some(PeerId::CONFIGURED)));
    scene.hear(datagram(&single(8, b"\x9f8")));
    assert_eq!((scene.risen().len(), scene.link.counters().duplicates), (0, 1));
    scene.hear(datagram(&segment(7, 4, 2, b"bc")));
    assert_eq!(scene.risen(), [b"\x9fabc"]);
    // Other senders have other numbers now.
    scene.hear(datagram_from(PeerId(3), &segment(7, 4, 2, b"bc")));
    assert_eq!(scene.risen(), [[]; 0]);
}

#[test]
fn a_last_segment_is_dropped_while_too_many_bundles_wait_and_its_copy_completes_the_transfer() {
    let mut scene = Scene::new(Config { incoming_max: 1, ..Config::default() });
    scene.hear(datagram(&single(1, b"\x9fa")));
    let last = segment(2, 2, 1, b"b");
    scene.hear(datagram(&segment(2, 2, 0, b"\x9f")));
    for _ in 0..2 {
        scene.hear(datagram(&last));
        scene.hear(datagram(&single(3, b"\x9fc")));
        assert_eq!(scene.up, []);
    }
    assert_eq!(scene.link.counters().dropped, 4);
    scene.ask(BundlesRequest::Accept { transfer: TransferId(0), up_to: 2 });
    scene.hear(datagram(&last));
    assert_eq!(scene.risen(), [b"\x9fb"]);
}
