//! Bundles without a frame, one per datagram (RFC 7122).

use super::{SECOND, Scene, datagram, failed, joined, to_peer};
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, CloseReason, DatagramsIndication, DatagramsRequest, DownReason,
    RefuseReason, Shares, TransferFailure, TransferId,
};
use crate::time::{Duration, Instant};
use crate::udpcl::{Config, Link};
use bytes::Bytes;

#[test]
fn a_bundle_is_a_datagram_and_goes_at_its_rate() {
    let config = Config {
        rate_bps: 8_000,
        burst: Duration::ZERO,
        peer_node_id: Some("dtn://b/".into()),
        ..Config::default()
    };
    let mut scene = Scene::new(config);
    scene.open(1, 72);
    scene.piece(1, &[1; 30], false);
    assert_eq!((&scene.up[..], &scene.down[..]), (&[BundlesIndication::Room(42)][..], &[][..]));
    scene.piece(1, &[2; 42], true);
    let whole: Bytes = [vec![1; 30], vec![2; 42]].concat().into();
    assert_eq!(scene.down, [to_peer(&whole, Shares::payload(whole.len()))]);
    assert_eq!(scene.up, [BundlesIndication::Sent { transfer: TransferId(1) }], "no more room for now");
    // 72 and 28 bytes are 800 bits: a tenth of a second.
    assert_eq!(scene.wait(), Duration::from_millis(100));
    assert_eq!(scene.up, [BundlesIndication::Room(1400)]);
}

#[test]
fn a_burst_catches_up_with_the_rate_and_no_more() {
    let config = Config { rate_bps: 8_000, burst: SECOND, overhead_bytes: 0, ..Config::default() };
    let mut scene = Scene::new(config);
    scene.now = Instant::from_secs(1000);
    let mut sent = 0;
    while scene.link.poll_timeout().is_none() {
        sent += 1;
        scene.open(sent, 250);
        scene.piece(sent, &[9; 250], true);
        assert_eq!(scene.down.len(), 1);
    }
    // Datagrams for one second, and the one that begins with them.
    assert_eq!(sent, 5);
}

#[test]
fn what_no_datagram_can_hold_fails_at_once() {
    let mut scene = Scene::new(Config { open_max: 1, ..Config::default() });
    scene.open(1, 1401);
    assert_eq!(scene.up, [failed(1, TransferFailure::TooLong)]);
    scene.open(2, 0);
    assert_eq!(scene.up, [failed(2, TransferFailure::Refused(RefuseReason::NotAcceptable))]);
    scene.open(3, 10);
    scene.open(4, 10);
    assert_eq!(scene.up, [failed(4, TransferFailure::Refused(RefuseReason::NoResources))]);
    scene.ask(BundlesRequest::Cancel { transfer: TransferId(3) });
    assert_eq!(scene.up, [failed(3, TransferFailure::Cancelled)]);
    assert_eq!(scene.link.counters().too_long, 1);
}

#[test]
fn what_comes_rises_and_is_released_when_it_is_safe() {
    let mut scene = Scene::new(Config { incoming_max: 2, ..Config::default() });
    scene.hear(datagram(b"\x9ffirst"));
    assert_eq!(
        scene.up,
        [
            BundlesIndication::Begin { transfer: TransferId(0), length: Some(6) },
            BundlesIndication::Piece {
                transfer: TransferId(0),
                data: Bytes::from_static(b"\x9ffirst"),
                last: true
            },
        ]
    );
    // Keep-alives and empty datagrams are not bundles.
    for (nothing, released) in [(&[0; 4][..], vec![DatagramsRequest::Release(4)]), (&[], vec![])] {
        scene.hear(datagram(nothing));
        assert_eq!((&scene.up[..], &scene.down), (&[][..], &released));
    }
    scene.hear(datagram(b"\x06second"));
    scene.hear(datagram(b"\x80third"));
    assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[DatagramsRequest::Release(6)][..]), "dropped");
    scene.ask(BundlesRequest::Accept { transfer: TransferId(0), up_to: 5 });
    assert_eq!(scene.down, []);
    scene.ask(BundlesRequest::Accept { transfer: TransferId(0), up_to: 6 });
    assert_eq!(scene.down, [DatagramsRequest::Release(6)]);
    scene.ask(BundlesRequest::Refuse { transfer: TransferId(1), reason: RefuseReason::NotAcceptable });
    assert_eq!(scene.down, [DatagramsRequest::Release(7)]);
    let counters = scene.link.counters();
    assert_eq!((counters.dropped, counters.violations, counters.keepalives_received), (1, 1, 1));
}

#[test]
fn a_silent_link_says_that_it_is_there_where_that_is_wanted() {
    let mut scene = Scene::new(Config { keepalive: Some(SECOND), ..Config::default() });
    assert_eq!(scene.wait(), 15 * SECOND, "never more often");
    assert_eq!(scene.down, [to_peer(&Bytes::from_static(&[0; 4]), Shares::control(4))]);
}

#[test]
fn a_link_comes_back_when_nobody_listened() {
    let mut scene = Scene::new(Config::default());
    scene.open(1, 10);
    scene.hear(DatagramsIndication::Left(CloseReason::Refused));
    let reason = DownReason::Stream(CloseReason::Refused);
    assert_eq!(
        scene.up,
        [failed(1, TransferFailure::LinkDown), BundlesIndication::Down { reason, retry: true }]
    );
    for expected in [1, 2, 4] {
        assert_eq!(scene.wait(), expected * SECOND);
        assert_eq!(scene.down, [DatagramsRequest::Join { damaged: false }]);
        scene.hear(DatagramsIndication::Left(CloseReason::Unreachable));
    }
    scene.ask(BundlesRequest::Close);
    assert_eq!(scene.up, [BundlesIndication::Down { reason: DownReason::Closed, retry: false }]);
    assert_eq!(scene.link.poll_timeout(), None);
}

#[test]
fn a_socket_that_listens_never_sends_and_ends_with_its_socket() {
    let mut link = Link::listening(Config::default(), Rng::new(1));
    link.handle_indication(Instant::ZERO, joined(None));
    link.handle_indication(Instant::ZERO, DatagramsIndication::Room(10));
    assert!(matches!(
        link.poll_indication(Instant::ZERO),
        Some(BundlesIndication::Up { peer: None, transfer_bytes_max: 0, .. })
    ));
    assert_eq!(link.poll_indication(Instant::ZERO), None);
    link.handle_indication(Instant::ZERO, DatagramsIndication::Left(CloseReason::Unreachable));
    assert!(matches!(
        link.poll_indication(Instant::ZERO),
        Some(BundlesIndication::Down { retry: false, .. })
    ));
    assert!(link.finished());
}
