//! Room for another block when as many are received as may be.

use super::scene::{PEER, Pair, SECOND, Scene, as_report, bundle, config, data, perfect, theirs};
use crate::ltp::wire::{CancelReason, Content, DataKind, Segment, SessionId};
use crate::ltp::{BlockFormat, Config};
use crate::service::{BundlesIndication, DatagramsIndication, PeerId, TransferId};
use crate::time::{Duration, Instant};

/// Time after which a block of which nothing new comes is behind.
const BEHIND: Duration = Duration::from_secs(3);

fn scene(incoming_sessions_max: usize) -> Scene {
    Scene::new(Config { incoming_sessions_max, inactivity: Some(SECOND * 1_000), ..config() })
}

/// Segment of red data without an end.
fn part(number: u64, offset: u64, length: usize) -> Segment {
    Segment { session: theirs(number), ..data(DataKind::Red, offset, None, vec![0; length]) }
}

fn numbers(scene: &Scene) -> Vec<u64> {
    scene.link.engine.sessions.incoming.keys().map(|id| id.number).collect()
}

fn cancelled(number: u64) -> Segment {
    Segment::new(theirs(number), Content::CancelByReceiver(CancelReason::SystemCancelled))
}

fn lost(transfer: u64) -> BundlesIndication {
    BundlesIndication::Lost { transfer: TransferId(transfer) }
}

#[test]
fn forged_beginnings_of_blocks_do_not_keep_those_of_the_peer_out() {
    let mut pair = Pair::new(&Config { block_format: BlockFormat::Single, ..config() }, perfect());
    for number in 0..300 {
        let session = SessionId { originator: 1, number: 1_000_000_000 + number };
        let bytes = Segment { session, ..data(DataKind::Red, 0, None, &b"\x00"[..]) }.to_bytes();
        let from = PeerId::CONFIGURED;
        pair.tell(1, DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
    }
    assert_eq!(pair.links[1].engine.counters().blocks_received, 256);
    let mut bundles: Vec<_> = (0..20).map(|fill| bundle(3_000, fill)).collect();
    bundles.iter().for_each(|bundle| pair.send(bundle));
    pair.run(10 * SECOND);
    bundles.sort();
    assert_eq!((pair.bundles(), pair.ends()), (bundles, (20, 0)));
    let last = pair.ended.last().expect("all were sent").0;
    assert_eq!(last.saturating_since(Instant::ZERO), 2 * SECOND, "a round trip");
    let counters = *pair.links[1].engine.counters();
    assert_eq!((counters.displaced, counters.blocks_accepted, counters.dropped), (20, 20, 300 - 256));
    // The others end by themselves.
    assert!(pair.run(SECOND * 1_000));
    assert_eq!(pair.links[1].engine.counters().inactive, 256 - 20);
    assert_eq!(pair.links[1].engine.sessions.held_bytes, 0);
}

#[test]
fn a_flood_does_not_displace_blocks_that_go_on() {
    let mut scene = scene(10);
    let mut fresh = 100;
    for step in 0..300 {
        // Each of five blocks has a segment every two seconds.
        if step % 20 < 5 {
            scene.hear(&[part(1 + step % 20, 200 * (step / 20), 200)]);
        }
        for length in [1, 95, 1_400] {
            fresh += 1;
            scene.hear(&[part(fresh, 0, length)]);
        }
        let begun = step.min(4) + 1;
        assert_eq!(numbers(&scene)[..begun as usize], (1..=begun).collect::<Vec<_>>()[..], "step {step}");
        assert!(numbers(&scene).len() <= 10);
        scene.pass(Duration::from_millis(100));
    }
    for number in 1..=5 {
        assert_eq!(scene.link.engine.sessions.incoming[&theirs(number)].length(), 3_000);
    }
    // Of the others, those make room that do not go on: five within three seconds, each for a short one that makes room at once.
    let displaced = scene.counters().displaced;
    assert!((50..=100).contains(&displaced), "{displaced} were displaced");
    assert_eq!(scene.counters().blocks_lost, displaced);
}

#[test]
fn of_blocks_that_do_not_go_on_the_one_with_the_least_data_makes_room() {
    let mut scene = scene(4);
    let whole = data(DataKind::EndOfRedAndBlock, 0, Some((40, 0)), &b"\x00bundle"[..]);
    scene.hear(&[whole, part(2, 0, 1_000), part(3, 0, 500), part(4, 0, 100)]);
    scene.pass(BEHIND - SECOND);
    scene.hear(&[part(4, 100, 100)]);
    scene.pass(SECOND - Duration::from_millis(1));
    scene.hear(&[part(5, 0, 1_400)]);
    assert_eq!((numbers(&scene), scene.counters().dropped), (vec![1, 2, 3, 4], 1));
    // The first waits for the user, and the last goes on.
    scene.pass(Duration::from_millis(1));
    let held = scene.link.engine.sessions.held_bytes;
    scene.hear(&[part(6, 0, 1)]);
    assert_eq!((&scene.down[..], &scene.up[..1]), (&[cancelled(3)][..], &[lost(2)][..]));
    assert_eq!((numbers(&scene), scene.counters().displaced), (vec![1, 2, 4, 6], 1));
    assert_eq!(scene.link.engine.sessions.held_bytes, held - 500 + 1);
    // Its late segments begin nothing, and its checkpoint is answered by the cancellation.
    scene.hear(&[Segment::new(theirs(3), Content::CancelAckToReceiver), part(3, 500, 100)]);
    assert_eq!(scene.down, []);
    let late = data(DataKind::EndOfRedAndBlock, 600, Some((40, 0)), vec![0; 100]);
    scene.hear(&[Segment { session: theirs(3), ..late }]);
    assert_eq!(scene.down, [cancelled(3)]);
    scene.hear(&[part(7, 0, 1)]);
    assert_eq!(numbers(&scene), [1, 4, 6, 7]);
    // No block is behind others that has as little data.
    scene.hear(&[part(8, 0, 95)]);
    assert_eq!(numbers(&scene), [1, 4, 6, 7]);
    scene.hear(&[part(9, 0, 96), part(10, 0, 96), part(11, 0, 96)]);
    assert_eq!((numbers(&scene), scene.counters().displaced), (vec![1, 4, 9, 10], 4));
}

#[test]
fn a_block_without_its_green_part_makes_room_and_is_not_cancelled() {
    let mut scene = scene(1);
    scene.hear(&[data(DataKind::EndOfRed, 0, Some((40, 0)), &b"\x00red"[..])]);
    scene.accept(0, 4);
    let serial = as_report(&scene.down[0]).serial;
    scene.hear(&[Segment::new(theirs(1), Content::ReportAck(serial))]);
    scene.pass(BEHIND);
    scene.hear(&[part(2, 0, 100)]);
    assert_eq!((&scene.down[..], &scene.up[..1]), (&[][..], &[lost(0)][..]));
    assert_eq!((numbers(&scene), scene.counters().blocks_accepted), (vec![2], 1));
    scene.hear(&[data(DataKind::EndOfRed, 0, Some((40, 0)), &b"\x00red"[..])]);
    assert_eq!(as_report(&scene.down[0]).claims, [(0, 4)]);
}

#[test]
fn blocks_that_wait_for_the_user_do_not_hide_those_that_make_room() {
    let mut scene = scene(60);
    for number in 1..=60 {
        let whole = data(DataKind::EndOfRedAndBlock, 0, Some((40, 0)), &b"\x00bundle"[..]);
        let stalls = number % 10 == 0;
        scene.hear(&[if stalls {
            part(number, 0, 200)
        } else {
            Segment { session: theirs(number), ..whole }
        }]);
    }
    scene.pass(BEHIND);
    scene.hear(&(101..=110).map(|number| part(number, 0, 200)).collect::<Vec<_>>());
    let after = numbers(&scene);
    assert_eq!((after.len(), scene.counters().displaced), (60, 6));
    assert!((1..=60).all(|number| (number % 10 == 0) != after.contains(&number)));
    // While the link is down and after that, silence is no sign.
    scene.pass(BEHIND);
    scene.tell(DatagramsIndication::Carrier(false));
    scene.hear(&[part(111, 0, 200)]);
    scene.pass(SECOND);
    scene.tell(DatagramsIndication::Carrier(true));
    scene.hear(&[part(112, 0, 200)]);
    assert_eq!(numbers(&scene), after);
    scene.pass(BEHIND);
    scene.hear(&[part(113, 0, 200)]);
    assert_eq!(scene.counters().displaced, 7);
}

#[test]
fn a_block_of_the_same_engine_makes_room_first() {
    let of = |originator, number, length| Segment {
        session: SessionId { originator, number },
        ..part(number, 0, length)
    };
    let left = |sessions: [Segment; 3], next: Segment| {
        let mut scene = scene(3);
        scene.hear(&sessions);
        scene.pass(BEHIND);
        scene.hear(&[next]);
        numbers(&scene)
    };
    let own = [of(PEER + 1, 1, 200), of(PEER, 2, 300), of(PEER, 3, 400)];
    assert_eq!(left(own, of(PEER, 4, 200)), [3, 4, 1]);
    // A beginning goes before, whoever sends it.
    let forged = [of(PEER + 1, 1, 95), of(PEER, 2, 300), of(PEER, 3, 400)];
    assert_eq!(left(forged, of(PEER, 4, 200)), [2, 3, 4]);
    let others = [of(PEER + 1, 1, 400), of(PEER + 1, 2, 300), of(PEER + 1, 3, 300)];
    assert_eq!(left(others, of(PEER, 4, 200)), [4, 1, 3]);
}
