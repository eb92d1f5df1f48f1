//! The receiver of blocks, against a peer whose segments the test makes.

use super::scene::{Fate, Pair, SECOND, Scene, as_report, bundle, config, data, report, theirs};
use crate::engine::Engine;
use crate::ltp::incoming::PIECE_OVERHEAD_BYTES;
use crate::ltp::segments::SERVICE_DATA;
use crate::ltp::sessions::CONTROL_MAX;
use crate::ltp::wire::{CancelReason, Content, DataKind, Segment};
use crate::ltp::{BlockFormat, Config};
use crate::service::{BundlesIndication, BundlesRequest, DatagramsIndication, RefuseReason, TransferId};
use crate::time::{Duration, Instant};
use bytes::Bytes;

fn begin(transfer: u64) -> BundlesIndication {
    BundlesIndication::Begin { transfer: TransferId(transfer), length: None }
}

fn piece(transfer: u64, data: &[u8], last: bool) -> BundlesIndication {
    BundlesIndication::Piece { transfer: TransferId(transfer), data: Bytes::copy_from_slice(data), last }
}

fn lost(transfer: u64) -> BundlesIndication {
    BundlesIndication::Lost { transfer: TransferId(transfer) }
}

/// Block of one segment.
fn whole(bytes: &'static [u8]) -> Segment {
    data(DataKind::EndOfRedAndBlock, 0, Some((40, 0)), bytes)
}

fn ack(number: u64, serial: u64) -> Segment {
    Segment::new(theirs(number), Content::ReportAck(serial))
}

/// Scope and claims of the only segment that was sent, which is a report for this checkpoint.
fn only_report(scene: &Scene, checkpoint: u64) -> (u64, (u64, u64), Vec<(u64, u64)>) {
    let [segment] = &scene.down[..] else { panic!("{:?}", scene.down) };
    let report = as_report(segment);
    assert_eq!(report.checkpoint, checkpoint);
    (report.serial, (report.lower, report.upper), report.claims.clone())
}

fn contents(scene: &Scene) -> Vec<Content> {
    scene.down.iter().map(|segment| segment.content.clone()).collect()
}

#[test]
fn nothing_is_reported_before_it_is_accepted() {
    let mut scene = Scene::new(config());
    scene.hear(&[whole(b"\x00bundle")]);
    assert_eq!(scene.up, [begin(0), piece(0, b"\x00bundle", true)]);
    assert_eq!(scene.down, []);
    scene.accept(0, 3);
    assert_eq!(scene.down, []);
    scene.accept(0, 7);
    let (serial, scope, claims) = only_report(&scene, 40);
    assert_eq!((scope, claims), ((0, 7), vec![(0, 7)]));
    scene.hear(&[ack(1, serial)]);
    assert_eq!(scene.link.poll_timeout(), None, "the session is over");
}

#[test]
fn a_slow_disk_keeps_the_sender_waiting_and_not_failing() {
    let mut scene = Scene::new(config());
    scene.hear(&[whole(b"\x00bundle")]);
    // The checkpoint comes again: all but the last byte is claimed, which tells the sender that this side is alive.
    scene.hear(&[whole(b"\x00bundle")]);
    let (first, scope, claims) = only_report(&scene, 40);
    assert_eq!((scope, claims), ((0, 6), vec![(0, 6)]));
    scene.hear(&[ack(1, first)]);
    scene.hear(&[whole(b"\x00bundle")]);
    let (second, scope, _) = only_report(&scene, 40);
    assert_eq!((second, scope), (first + 1, (0, 6)));
    scene.accept(0, 7);
    let (last, scope, claims) = only_report(&scene, 40);
    assert_eq!((last, scope, claims), (first + 2, (0, 7), vec![(0, 7)]));
}

#[test]
fn missing_data_are_reported_after_a_delay_for_datagrams_in_another_order() {
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::Red, 0, None, &b"\x00aaa"[..])]);
    scene.hear(&[data(DataKind::EndOfRedAndBlock, 8, Some((40, 0)), &b"cccc"[..])]);
    assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]));
    // In time: nothing was missing after all.
    scene.hear(&[data(DataKind::Red, 4, None, &b"bbbb"[..])]);
    assert_eq!(scene.up, [piece(0, b"bbbb", false), piece(0, b"cccc", true)]);
    scene.accept(0, 12);
    assert_eq!(only_report(&scene, 40).2, [(0, 12)]);
    assert_eq!(scene.counters().reports_sent, 1);
}

#[test]
fn a_report_of_gaps_claims_what_has_come_and_the_rest_is_reported_at_once() {
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::Red, 0, None, &b"\x00aaa"[..])]);
    scene.hear(&[data(DataKind::EndOfRedAndBlock, 8, Some((40, 0)), &b"cccc"[..])]);
    assert_eq!(scene.wait(), Duration::from_millis(20));
    let (serial, scope, claims) = only_report(&scene, 40);
    assert_eq!((scope, claims), ((0, 12), vec![(0, 4), (8, 12)]));
    scene.hear(&[ack(1, serial)]);
    // A late segment completes the block without a checkpoint: the report is asynchronous.
    scene.hear(&[data(DataKind::Red, 4, None, &b"bbbb"[..])]);
    assert_eq!(scene.down, []);
    scene.accept(0, 12);
    let (next, scope, claims) = only_report(&scene, 0);
    assert_eq!((next, scope, claims), (serial + 1, (0, 12), vec![(0, 12)]));
    // The retransmission was under way: its checkpoint is answered, too.
    scene.hear(&[data(DataKind::Checkpoint, 4, Some((41, serial)), &b"bbbb"[..])]);
    assert_eq!(only_report(&scene, 41).2, [(0, 12)]);
}

/// The checkpoint at the end is lost, and another segment.
#[test]
fn gaps_are_reported_without_a_checkpoint_when_nothing_more_comes() {
    let mut scene = Scene::new(Config { asynchronous_after: Some(SECOND / 2), ..config() });
    scene.hear(&[data(DataKind::Red, 0, None, &b"\x00aaa"[..])]);
    assert_eq!(scene.link.poll_timeout(), Some(scene.now + config().inactivity_limit()), "no gap");
    scene.hear(&[data(DataKind::Red, 8, None, &b"cccc"[..])]);
    scene.pass(SECOND / 4);
    scene.hear(&[data(DataKind::Red, 12, None, &b"dddd"[..])]);
    assert_eq!(scene.wait(), SECOND / 2, "from the latest data");
    let (serial, scope, claims) = only_report(&scene, 0);
    assert_eq!((scope, claims), ((0, 16), vec![(0, 4), (8, 16)]));
    scene.hear(&[ack(1, serial)]);
    // The checkpoint comes late: what was missing before is known.
    scene.hear(&[data(DataKind::EndOfRedAndBlock, 20, Some((40, 0)), &b"ffff"[..])]);
    scene.wait();
    let (second, scope, claims) = only_report(&scene, 40);
    assert_eq!((scope, claims), ((16, 24), vec![(20, 24)]));
    scene.hear(&[ack(1, second)]);
    scene.hear(&[data(DataKind::Checkpoint, 4, Some((41, serial)), &b"bbbb"[..])]);
    scene.wait();
    let (_, scope, claims) = only_report(&scene, 41);
    assert_eq!((scope, claims), ((0, 8), vec![(0, 8)]), "from the lower bound of the report that it answers");
}

#[test]
fn no_report_without_a_checkpoint_repeats_another_one() {
    let after = Some(SECOND / 2);
    let mut scene = Scene::new(Config { asynchronous_after: after, report_delay: SECOND, ..config() });
    scene.hear(&[data(DataKind::Red, 0, None, &b"\x00aaa"[..])]);
    scene.hear(&[data(DataKind::Checkpoint, 8, Some((40, 0)), &b"cccc"[..])]);
    assert_eq!(scene.wait(), SECOND, "the report that the checkpoint asks for");
    let (serial, ..) = only_report(&scene, 40);
    scene.hear(&[ack(1, serial)]);
    scene.hear(&[data(DataKind::Red, 12, None, &b"dddd"[..])]);
    scene.hear(&[data(DataKind::Red, 20, None, &b"ffff"[..])]);
    assert_eq!(scene.wait(), SECOND / 2);
    let (serial, scope, claims) = only_report(&scene, 0);
    assert_eq!((scope, claims), ((12, 24), vec![(12, 16), (20, 24)]), "from the end of the report before");
    scene.hear(&[ack(1, serial)]);
    scene.pass(config().inactivity_limit());
    assert_eq!((scene.counters().reports_sent, scene.counters().inactive), (2, 1));
}

#[test]
fn a_secondary_report_has_the_scope_of_its_cause_and_a_primary_one_follows_the_last() {
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::Checkpoint, 2, Some((40, 0)), &b"bb"[..])]);
    scene.wait();
    let (first, scope, claims) = only_report(&scene, 40);
    assert_eq!((scope, claims), ((0, 4), vec![(2, 4)]));
    scene.hear(&[ack(1, first)]);
    scene.hear(&[data(DataKind::Checkpoint, 6, Some((41, 0)), &b"dd"[..])]);
    scene.wait();
    let (second, scope, claims) = only_report(&scene, 41);
    assert_eq!((scope, claims), ((4, 8), vec![(6, 8)]), "RS with a lower bound that is not zero");
    scene.hear(&[ack(1, second)]);
    scene.hear(&[data(DataKind::Checkpoint, 4, Some((42, second)), &b"c"[..])]);
    scene.wait();
    let (_, scope, claims) = only_report(&scene, 42);
    assert_eq!((scope, claims), ((4, 5), vec![(4, 5)]));
}

#[test]
fn a_report_has_as_many_segments_as_its_claims_need() {
    let mut scene = Scene::new(Config { claims_max: 2, ..config() });
    for index in 0..5 {
        scene.hear(&[data(DataKind::Red, 4 * index, None, &b"\x00a"[..])]);
    }
    scene.hear(&[data(DataKind::EndOfRedAndBlock, 20, Some((40, 0)), &b"bb"[..])]);
    scene.wait();
    let reports: Vec<_> = scene.down.iter().map(as_report).collect();
    let parts: Vec<_> =
        reports.iter().map(|report| (report.lower, report.upper, &report.claims[..])).collect();
    assert_eq!(
        parts,
        [(0, 6, &[(0, 2), (4, 6)][..]), (6, 14, &[(8, 10), (12, 14)]), (14, 22, &[(16, 18), (20, 22)]),]
    );
    assert!(reports.windows(2).all(|pair| pair[1].serial == pair[0].serial + 1));
    // Two are acknowledged and one is lost: only that one comes again.
    let serials: Vec<_> = reports.iter().map(|report| report.serial).collect();
    scene.hear(&[ack(1, serials[0]), ack(1, serials[2])]);
    assert_eq!(scene.wait(), 3 * SECOND);
    assert_eq!(only_report(&scene, 40).0, serials[1]);
}

#[test]
fn a_report_fits_into_a_segment_of_any_length() {
    let mut scene = Scene::new(Config { segment_bytes: 96, claims_max: 1_000, ..config() });
    for index in 0..300 {
        scene.hear(&[data(DataKind::Red, 20_000 + 4 * index, None, &b"ab"[..])]);
    }
    scene.hear(&[data(DataKind::Checkpoint, 30_000, Some((40, 0)), &b"ab"[..])]);
    scene.wait();
    let claims: usize = scene.down.iter().map(|segment| as_report(segment).claims.len()).sum();
    assert_eq!(claims, 301);
    assert!(scene.down.iter().all(|segment| segment.to_bytes().len() <= 96));
    assert!(scene.down.len() < 30, "{} segments", scene.down.len());
}

#[test]
fn a_session_without_an_end_is_cancelled() {
    // Known pain: a lost last segment leaves a session for ever.
    let mut scene = Scene::new(Config { inactivity: Some(60 * SECOND), ..config() });
    scene.hear(&[data(DataKind::Red, 0, None, &b"\x00aaa"[..])]);
    assert_eq!(scene.wait(), 60 * SECOND);
    assert_eq!(scene.up, [lost(0)]);
    assert_eq!(contents(&scene), [Content::CancelByReceiver(CancelReason::SystemCancelled)]);
    // Late data of the session are ignored; a checkpoint is answered by the cancellation.
    scene.hear(&[data(DataKind::Red, 4, None, &b"bbbb"[..])]);
    assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]));
    scene.hear(&[Segment::new(theirs(1), Content::CancelAckToReceiver)]);
    assert_eq!(scene.link.poll_timeout(), None);
    scene.hear(&[data(DataKind::EndOfRedAndBlock, 8, Some((40, 0)), &b"cccc"[..])]);
    assert_eq!(contents(&scene), [Content::CancelByReceiver(CancelReason::SystemCancelled)]);
    assert_eq!((scene.counters().inactive, scene.counters().blocks_lost), (1, 1));
}

/// Hears the same segment every second for a time, and acknowledges each report.
fn repeat(scene: &mut Scene, segment: &Segment, seconds: u64) {
    for _ in 0..seconds {
        scene.hear(core::slice::from_ref(segment));
        let mut reports = core::mem::take(&mut scene.down);
        scene.pass(Duration::from_millis(20));
        reports.append(&mut scene.down);
        reports.retain(|sent| matches!(sent.content, Content::Report(_)));
        let acks: Vec<_> = reports.iter().map(|sent| ack(1, as_report(sent).serial)).collect();
        if !acks.is_empty() {
            scene.hear(&acks);
        }
        scene.pass(Duration::from_millis(980));
    }
}

#[test]
fn repetitions_do_not_extend_the_life_of_a_block() {
    for serials in [None, Some((40, 0))] {
        let kind = if serials.is_some() { DataKind::Checkpoint } else { DataKind::Red };
        let mut scene = Scene::new(Config { inactivity: Some(10 * SECOND), ..config() });
        repeat(&mut scene, &data(kind, 4, serials, &b"a"[..]), 9);
        assert_eq!((scene.counters().inactive, scene.counters().duplicates), (0, 8));
        repeat(&mut scene, &data(kind, 4, serials, &b"a"[..]), 2);
        assert_eq!(scene.counters().inactive, 1, "{serials:?}");
    }
    // Neither do retransmissions that bring nothing beyond the limit of cycles.
    let limits = Config { inactivity: Some(10 * SECOND), cycles_max: 20, ..config() };
    let mut scene = Scene::new(limits);
    scene.hear(&[data(DataKind::Checkpoint, 4, Some((40, 0)), &b"a"[..])]);
    scene.wait();
    let cause = only_report(&scene, 40).0;
    scene.hear(&[ack(1, cause)]);
    for cycle in 0..20 {
        let again = data(DataKind::Checkpoint, 4, Some((41 + cycle, cause)), &b"a"[..]);
        repeat(&mut scene, &again, 5);
    }
    assert_eq!(scene.counters().blocks_lost, 0);
    scene.hear(&[data(DataKind::Checkpoint, 4, Some((61, cause)), &b"a"[..])]);
    assert_eq!(scene.counters().blocks_lost, 1);
}

#[test]
fn what_is_new_extends_the_life_of_a_block() {
    let begun = || {
        let mut scene = Scene::new(Config { inactivity: Some(10 * SECOND), ..config() });
        scene.hear(&[data(DataKind::Checkpoint, 4, Some((40, 0)), &b"aaaa"[..])]);
        scene.wait();
        let (serial, ..) = only_report(&scene, 40);
        scene.pass(9 * SECOND);
        (scene, serial)
    };
    let (_, serial) = begun();
    for news in [
        None,
        Some(data(DataKind::Red, 8, None, &b"b"[..])),
        Some(data(DataKind::EndOfRed, 4, Some((41, 0)), &b"aaaa"[..])),
        Some(data(DataKind::Checkpoint, 4, Some((41, serial)), &b"aaaa"[..])),
        Some(ack(1, serial)),
    ] {
        let (mut scene, own) = begun();
        assert_eq!(own, serial);
        scene.hear(news.as_slice());
        scene.pass(2 * SECOND);
        assert_eq!(scene.counters().inactive, u64::from(news.is_none()), "{news:?}");
    }
}

#[test]
fn a_sender_that_hears_no_reports_is_waited_for_until_its_last_repetition() {
    // All reports are lost but those for the last repetition of the checkpoint.
    let last = SECOND * 3 * config().retransmissions_max;
    let mut reports = 0;
    let bundle = bundle(5_000, 1);
    let mut is_first = true;
    let fate: Fate = Box::new(move |node, segment| {
        let is_lost = match &segment.content {
            Content::Data(data) => core::mem::take(&mut is_first) && data.offset == 0,
            Content::Report(_) => {
                reports += 1;
                node == 1 && reports <= 10
            }
            _ => false,
        };
        (!is_lost).then_some(SECOND)
    });
    let mut pair = Pair::new(&config(), fate);
    pair.send(&bundle);
    assert!(pair.run(SECOND * 1_000));
    assert_eq!((pair.bundles(), pair.ends()), (vec![bundle], (1, 0)));
    assert!(pair.ended[0].0.saturating_since(Instant::ZERO) > last);
}

/// Segment of data of several client services.
fn service_data(kind: DataKind, offset: u64, serials: Option<(u64, u64)>, byte: u8) -> Segment {
    let mut segment = data(kind, offset, serials, vec![byte]);
    if let Content::Data(data) = &mut segment.content {
        data.client = SERVICE_DATA;
    }
    segment
}

/// All of the block is accepted at once: it is the number of a client service without data.
#[test]
fn a_red_part_without_an_end_does_not_keep_its_session() {
    let end = service_data(DataKind::EndOfBlock, 1, None, 0x01);
    let limits = Config { inactivity: Some(60 * SECOND), retransmissions_max: 1, ..config() };
    let mut scene = Scene::new(limits.clone());
    scene.hear(&[service_data(DataKind::Red, 0, None, 0x81), end.clone()]);
    assert_eq!(scene.wait(), 60 * SECOND);
    assert_eq!(contents(&scene), [Content::CancelByReceiver(CancelReason::SystemCancelled)]);
    scene.hear(&[Segment::new(theirs(1), Content::CancelAckToReceiver)]);
    assert_eq!(scene.link.poll_timeout(), None);
    // A report that is never acknowledged does not keep it, either.
    let mut scene = Scene::new(limits);
    scene.hear(&[service_data(DataKind::Checkpoint, 0, Some((40, 0)), 0x81), end]);
    for _ in 0..2 {
        scene.wait();
        assert_eq!(only_report(&scene, 40).1, (0, 1));
    }
    scene.wait();
    assert_eq!(contents(&scene), [Content::CancelByReceiver(CancelReason::RetransmissionLimit)]);
    scene.hear(&[Segment::new(theirs(1), Content::CancelAckToReceiver)]);
    assert_eq!(scene.link.poll_timeout(), None);
}

#[test]
fn an_end_without_new_data_ends_the_session() {
    let mut scene = Scene::new(config());
    scene.hear(&[service_data(DataKind::Green, 0, None, 0x01)]);
    assert!(scene.link.poll_timeout().is_some());
    scene.hear(&[service_data(DataKind::EndOfBlock, 0, None, 0x01)]);
    assert_eq!((scene.link.poll_timeout(), scene.counters().blocks_accepted), (None, 1));
}

#[test]
fn reports_without_an_acknowledgement_are_bounded() {
    let mut scene = Scene::new(config());
    let odd = |at: u64| data(DataKind::Red, 2 * at + 1, None, &b"a"[..]);
    scene.hear(&(0..20_000).map(odd).collect::<Vec<_>>());
    let checkpoint = |serial| data(DataKind::Checkpoint, 40_000, Some((serial, 0)), Bytes::new());
    scene.hear(&(1..=1_024).map(checkpoint).collect::<Vec<_>>());
    scene.wait();
    assert_eq!(scene.down.len(), 1_024);
    let last = as_report(&scene.down[1_023]);
    assert_eq!((last.checkpoint, Some(last.upper)), (2, last.claims.last().map(|(_, end)| *end)));
    assert!(last.upper < 40_000, "it says nothing of the rest");
    let acks: Vec<_> = scene.down.iter().map(|sent| ack(1, as_report(sent).serial)).collect();
    scene.hear(&[checkpoint(3)]);
    assert_eq!(scene.down, []);
    // The peer repeats its checkpoint.
    scene.hear(&acks);
    scene.hear(&[checkpoint(3)]);
    assert_eq!(scene.down.len(), 1_024);
    assert!(scene.wait() > SECOND, "nothing more is made until then");
}

#[test]
fn late_duplicates_do_not_open_a_closed_session() {
    let mut scene = Scene::new(config());
    scene.hear(&[whole(b"\x00bundle")]);
    scene.accept(0, 7);
    let serial = only_report(&scene, 40).0;
    scene.hear(&[ack(1, serial)]);
    scene.hear(&[data(DataKind::Red, 0, None, &b"\x00bu"[..])]);
    assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]));
    // The acknowledged report may have been forged or forgotten: a checkpoint has its answer.
    scene.hear(&[whole(b"\x00bundle")]);
    assert_eq!(only_report(&scene, 40), (serial + 1, (0, 7), vec![(0, 7)]));
    assert_eq!(scene.up, []);
    assert_eq!(scene.link.poll_timeout(), None);
    assert_eq!(scene.counters().blocks_received, 1);
}

#[test]
fn a_lost_acknowledgement_ends_after_the_limit_and_the_bundle_stays() {
    let mut scene = Scene::new(Config { retransmissions_max: 2, ..config() });
    scene.hear(&[whole(b"\x00bundle")]);
    scene.accept(0, 7);
    for _ in 0..2 {
        assert_eq!(scene.wait(), 3 * SECOND);
        assert_eq!(only_report(&scene, 40).1, (0, 7));
    }
    scene.wait();
    assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]), "neither lost nor cancelled");
    assert_eq!((scene.link.poll_timeout(), scene.counters().blocks_accepted), (None, 1));
}

#[test]
fn a_ping_is_answered() {
    // HDTN cancels a session that does not exist, and expects the acknowledgement.
    let mut scene = Scene::new(Config { peer_engine_id: Some(2), ..config() });
    let ping = |originator| {
        let session = crate::ltp::wire::SessionId { originator, number: u64::MAX };
        Segment::new(session, Content::CancelBySender(CancelReason::ClientCancelled))
    };
    scene.hear(&[ping(2)]);
    assert_eq!(scene.down, [Segment { content: Content::CancelAckToSender, ..ping(2) }]);
    scene.hear(&[ping(3)]);
    assert_eq!((&scene.down[..], scene.counters().strangers), (&[][..], 1));
}

#[test]
fn a_flood_of_pings_displaces_no_report() {
    let mut scene = Scene::new(config());
    scene.set_room(0);
    let ping = Segment::new(theirs(9), Content::CancelBySender(CancelReason::ClientCancelled));
    for _ in 0..CONTROL_MAX / 32 + 10 {
        scene.hear(&vec![ping.clone(); 32]);
    }
    scene.hear(&[whole(b"\x00bundle")]);
    scene.accept(0, 7);
    scene.set_room(10_000);
    let answers = scene.down.iter().filter(|segment| segment.content == Content::CancelAckToSender).count();
    assert_eq!(answers, CONTROL_MAX);
    assert!(matches!(scene.down.last().map(|last| &last.content), Some(Content::Report(_))));
}

#[test]
fn huge_offsets_cost_nothing_and_end_the_session() {
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::Red, 1 << 40, None, &b"a"[..])]);
    assert_eq!(contents(&scene), [Content::CancelByReceiver(CancelReason::SystemCancelled)]);
    assert_eq!(scene.link.engine.sessions.held_bytes, 0);
    assert_eq!(scene.counters().dropped, 1);
}

#[test]
fn memory_is_bounded_under_a_peer_that_opens_sessions_for_ever() {
    let limits = Config { incoming_sessions_max: 10, closed_sessions_max: 20, ..config() };
    let limits = Config { incoming_bytes_max: 100_000, block_bytes_max: 100_000, ..limits };
    let mut scene = Scene::new(Config { inactivity: Some(5 * SECOND), ..limits });
    for number in 0..2_000 {
        // Tiny segments that are out of order.
        let segment = data(DataKind::Red, 10 + 2 * (number / 50), None, &b"a"[..]);
        scene.hear(&[Segment { session: theirs(number % 50 + number / 1_000 * 50), ..segment }]);
        let sessions = &scene.link.engine.sessions;
        assert!(sessions.incoming.len() <= 10 && sessions.closed.len() <= 20);
        assert!(sessions.held_bytes <= 200_000);
        if number % 500 == 499 {
            scene.wait();
        }
    }
    assert!(scene.counters().dropped > 0 && scene.counters().inactive > 0);
    while scene.link.poll_timeout().is_some() {
        scene.wait();
    }
    let sessions = &scene.link.engine.sessions;
    assert_eq!((sessions.incoming.len(), sessions.held_bytes, sessions.cancelling.len()), (0, 0, 0));
}

#[test]
fn data_beyond_the_limit_count_as_lost() {
    let limits = Config { incoming_bytes_max: 1_000, block_bytes_max: 1_000, ..config() };
    let mut scene = Scene::new(limits);
    let part = |session, offset| {
        let bytes = vec![0; 400];
        Segment { session: theirs(session), ..data(DataKind::Red, offset, None, bytes) }
    };
    let pieces = |count| count * (400 + PIECE_OVERHEAD_BYTES);
    scene.hear(&[part(1, 0), part(2, 0), part(2, 400)]);
    assert_eq!((scene.counters().dropped, scene.link.engine.sessions.held_bytes), (1, pieces(2)));
    // The oldest block goes on, because otherwise none would end.
    scene.hear(&[part(1, 400)]);
    assert_eq!(scene.link.engine.sessions.held_bytes, pieces(3));
    scene.accept(0, 800);
    scene.hear(&[part(2, 400)]);
    assert_eq!((scene.counters().dropped, scene.link.engine.sessions.held_bytes), (1, pieces(2)));
}

#[test]
fn tiny_segments_count_with_their_overhead_until_they_are_accepted() {
    let limits = Config { incoming_bytes_max: 10_000, block_bytes_max: 10_000, ..config() };
    let mut scene = Scene::new(limits);
    let byte = |offset| data(DataKind::Red, offset, None, &b"a"[..]);
    let held = |scene: &Scene| scene.link.engine.sessions.held_bytes;
    // In order, in reverse order, and in order again.
    for offset in [0, 1, 4, 3, 2, 5] {
        scene.hear(&[byte(offset)]);
    }
    assert_eq!(held(&scene), 6 * (1 + PIECE_OVERHEAD_BYTES));
    scene.accept(0, 4);
    assert_eq!(held(&scene), 2 * (1 + PIECE_OVERHEAD_BYTES));
    for offset in 6..1_000 {
        scene.hear(&[byte(offset)]);
        assert!(held(&scene) <= 20_000 + PIECE_OVERHEAD_BYTES);
    }
    assert!(scene.counters().dropped > 800, "{} dropped", scene.counters().dropped);
}

#[test]
fn only_one_block_exceeds_the_limit_whatever_the_numbers_of_the_sessions() {
    let limits = Config { incoming_bytes_max: 10_000, block_bytes_max: 10_000, ..config() };
    let mut scene = Scene::new(limits);
    for session in (1..=20).rev() {
        for offset in (0..20).map(|at| 400 * at) {
            let part = data(DataKind::Red, offset, None, vec![0; 400]);
            scene.hear(&[Segment { session: theirs(session), ..part }]);
        }
    }
    let held = scene.link.engine.sessions.held_bytes;
    assert!(held <= 20_000 + 400 + PIECE_OVERHEAD_BYTES, "{held} bytes");
}

#[test]
fn the_longest_block_is_received_with_the_overhead_of_its_segments() {
    let limits = Config { incoming_bytes_max: 10_000, block_bytes_max: 10_000, ..config() };
    let mut scene = Scene::new(limits);
    // The first segment comes last.
    for offset in (0..50).map(|at| 200 * at).rev() {
        let (kind, serials) = match offset {
            9_800 => (DataKind::EndOfRedAndBlock, Some((1, 0))),
            _ => (DataKind::Red, None),
        };
        scene.hear(&[data(kind, offset, serials, vec![7; 200])]);
    }
    assert_eq!((scene.counters().dropped, scene.counters().payload_received), (0, 10_000));
}

#[test]
fn red_after_green_is_miscolored() {
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::Green, 4, None, &b"gg"[..])]);
    scene.hear(&[data(DataKind::Red, 5, None, &b"r"[..])]);
    assert_eq!(contents(&scene), [Content::CancelByReceiver(CancelReason::Miscolored)]);
}

#[test]
fn segments_that_contradict_each_other_are_dropped() {
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::EndOfRedAndBlock, 4, Some((40, 0)), &b"bbbb"[..])]);
    let before = scene.counters().violations;
    for wrong in [
        data(DataKind::Red, 8, None, &b"beyond the end"[..]),
        data(DataKind::EndOfRedAndBlock, 0, Some((41, 0)), &b"\x00a"[..]),
        data(DataKind::Green, 6, None, &b"gg"[..]),
        data(DataKind::Red, 0, None, &b""[..]),
    ] {
        scene.hear(&[wrong]);
        assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]));
    }
    assert_eq!(scene.counters().violations, before + 4);
    scene.hear(&[data(DataKind::Red, 0, None, &b"\x00aaa"[..])]);
    assert_eq!(scene.up, [begin(0), piece(0, b"\x00aaa", false), piece(0, b"bbbb", true)]);
}

#[test]
fn a_block_with_a_green_part_is_reported_up_to_its_red_end() {
    let mut scene = Scene::new(Config { inactivity: Some(60 * SECOND), ..config() });
    scene.hear(&[data(DataKind::EndOfRed, 0, Some((40, 0)), &b"\x00red"[..])]);
    assert_eq!(scene.up, [begin(0), piece(0, b"\x00red", false)]);
    scene.accept(0, 4);
    let (serial, scope, _) = only_report(&scene, 40);
    assert_eq!(scope, (0, 4));
    scene.hear(&[ack(1, serial)]);
    // The last green segment is lost: the block ends when nothing arrives any more, and is not cancelled.
    scene.hear(&[data(DataKind::Green, 4, None, &b"green"[..])]);
    assert_eq!(scene.up, [piece(0, b"green", false)]);
    assert_eq!(scene.wait(), 60 * SECOND);
    assert_eq!((&scene.up[..], &scene.down[..]), (&[lost(0)][..], &[][..]));
    assert_eq!(scene.link.poll_timeout(), None);
}

#[test]
fn all_three_formats_of_blocks_are_received() {
    let (one, two) = (bundle(20, 1), bundle(30, 2));
    let both = [&one[..], &two[..]].concat();
    let services = [b"\x01", &one[..], b"\x01", &two[..]].concat();
    for (client, block) in [(1, both), (2, services)] {
        let mut scene = Scene::new(config());
        let length = block.len() as u64;
        let mut segment = data(DataKind::EndOfRedAndBlock, 0, Some((40, 0)), block);
        if let Content::Data(data) = &mut segment.content {
            data.client = client;
        }
        scene.hear(&[segment]);
        assert_eq!(scene.up, [begin(0), piece(0, &one, true), begin(1), piece(1, &two, true)]);
        // In any order; the report waits for both.
        scene.accept(1, 30);
        assert_eq!(scene.down, []);
        scene.accept(0, 20);
        assert_eq!(only_report(&scene, 40).1, (0, length));
        assert_eq!(scene.counters().bundles_received, 2);
    }
    let mut scene = Scene::new(Config { block_format: BlockFormat::Single, ..config() });
    scene.hear(&[whole(b"\x00any bytes")]);
    assert_eq!(scene.up, [begin(0), piece(0, b"\x00any bytes", true)]);
}

#[test]
fn an_unknown_client_service_is_unreachable() {
    let mut scene = Scene::new(config());
    let mut segment = whole(b"\x00bundle");
    if let Content::Data(data) = &mut segment.content {
        data.client = 3;
    }
    scene.hear(&[segment]);
    assert_eq!(contents(&scene), [Content::CancelByReceiver(CancelReason::Unreachable)]);
    assert_eq!(scene.up, []);
}

#[test]
fn a_refused_bundle_cancels_its_block_unless_it_is_there_already() {
    let refuse = |reason| {
        let mut scene = Scene::new(config());
        scene.hear(&[whole(b"\x00bundle")]);
        scene.ask(BundlesRequest::Refuse { transfer: TransferId(0), reason });
        contents(&scene)
    };
    let cancel = |reason| vec![Content::CancelByReceiver(reason)];
    assert_eq!(refuse(RefuseReason::NotAcceptable), cancel(CancelReason::Unreachable));
    assert_eq!(refuse(RefuseReason::NoResources), cancel(CancelReason::ClientCancelled));
    let completed = refuse(RefuseReason::Completed);
    assert!(matches!(&completed[..], [Content::Report(report)] if report.claims == [(0, 7)]));
    // One of two: the sender cannot be told which.
    let mut scene = Scene::new(config());
    let both = [&bundle(20, 1)[..], &bundle(30, 2)[..20]].concat();
    scene.hear(&[data(DataKind::Red, 0, None, both)]);
    let reason = RefuseReason::NotAcceptable;
    scene.ask(BundlesRequest::Refuse { transfer: TransferId(0), reason });
    assert_eq!(contents(&scene), cancel(CancelReason::ClientCancelled));
    assert_eq!(scene.up, [lost(1)]);
}

#[test]
fn a_checkpoint_for_a_report_that_was_never_sent_shows_lost_state() {
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::Checkpoint, 0, Some((40, 77)), &b"\x00aaa"[..])]);
    assert_eq!(contents(&scene), [Content::CancelByReceiver(CancelReason::SystemCancelled)]);
    assert_eq!((&scene.up[..], scene.counters().restarts), (&[][..], 1));
}

#[test]
fn a_cancellation_by_the_sender_loses_what_has_not_ended() {
    let mut scene = Scene::new(config());
    let both = [&bundle(20, 1)[..], &bundle(30, 2)[..20]].concat();
    scene.hear(&[data(DataKind::Red, 0, None, both)]);
    scene.hear(&[Segment::new(theirs(1), Content::CancelBySender(CancelReason::RetransmissionLimit))]);
    assert_eq!(scene.up, [lost(1)], "the first bundle is complete");
    assert_eq!(contents(&scene), [Content::CancelAckToSender]);
    assert_eq!(scene.link.poll_timeout(), None);
    scene.accept(0, 20);
    scene.hear(&[data(DataKind::EndOfRedAndBlock, 40, Some((40, 0)), &b"late"[..])]);
    assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]));
}

#[test]
fn cancellations_that_cross_end_at_both_sides() {
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::Green, 4, None, &b"gg"[..])]);
    scene.hear(&[data(DataKind::Red, 5, None, &b"r"[..])]);
    scene.hear(&[Segment::new(theirs(1), Content::CancelBySender(CancelReason::ClientCancelled))]);
    assert_eq!(contents(&scene), [Content::CancelAckToSender]);
    scene.hear(&[Segment::new(theirs(1), Content::CancelAckToReceiver)]);
    assert_eq!(scene.link.poll_timeout(), None);
}

#[test]
fn invalid_bytes_are_counted_and_nothing_more() {
    let mut scene = Scene::new(config());
    for bytes in [&b"\x05\x02\x01\x00\x01\x00\x01a"[..], b"\xff", b"", b"\x00\x02"] {
        let from = crate::service::PeerId::CONFIGURED;
        let bytes = Bytes::copy_from_slice(bytes);
        scene.tell(DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
        assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]));
    }
    assert_eq!(scene.counters().violations, 4);
    let keepalive = DatagramsIndication::Datagram {
        from: crate::service::PeerId::CONFIGURED,
        to_group: false,
        bytes: Bytes::from_static(&[0; 4]),
        damaged: false,
    };
    scene.tell(keepalive);
    assert_eq!((scene.counters().violations, scene.counters().keepalives_received), (4, 1));
    // A report for a session that is over is acknowledged, and nothing more (RFC 5326 6.13).
    let unknown =
        Segment::new(crate::ltp::wire::SessionId { originator: 1, number: 5 }, Content::CancelAckToSender);
    scene.hear(&[report(&unknown, 9, (0, 4), &[(0, 4)])]);
    assert_eq!(contents(&scene), [Content::ReportAck(9)]);
}

/// Data cannot lie behind the end of their part, whichever arrives first.
#[test]
fn an_end_before_data_that_have_arrived_is_invalid() {
    for (data_kind, end_kind, serials, offset) in [
        (DataKind::Red, DataKind::EndOfRed, Some((40, 0)), 0),
        (DataKind::Red, DataKind::EndOfRedAndBlock, Some((40, 0)), 0),
        (DataKind::Green, DataKind::EndOfBlock, None, 10),
    ] {
        let mut scene = Scene::new(config());
        scene.hear(&[data(data_kind, offset, None, vec![0; 10])]);
        scene.hear(&[data(end_kind, offset, serials, vec![0; 9])]);
        assert_eq!(scene.counters().violations, 1, "{end_kind:?} before their end");
        scene.hear(&[data(end_kind, offset, serials, vec![0; 10])]);
        assert_eq!(scene.counters().violations, 1, "{end_kind:?} at their end");
    }
    // The end of the red part says nothing about green data behind it.
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::Green, 10, None, vec![0; 10])]);
    scene.hear(&[data(DataKind::EndOfRed, 0, Some((40, 0)), vec![0; 10])]);
    assert_eq!(scene.counters().violations, 0);
    // Data that end no part may come in any order.
    let mut scene = Scene::new(config());
    scene.hear(&[data(DataKind::Red, 10, None, vec![0; 10]), data(DataKind::Red, 0, None, vec![0; 10])]);
    assert_eq!(scene.counters().violations, 0);
}
