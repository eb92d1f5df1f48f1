//! The sender of blocks, against a peer whose segments the test makes.

use super::scene::{SECOND, Scene, as_data, bundle, config, report, serials};
use crate::engine::Engine;
use crate::ltp::wire::{CancelReason, Content, DataKind, Segment};
use crate::ltp::{BlockFormat, Config};
use crate::service::{
    BundlesIndication, BundlesRequest, DatagramsIndication, DownReason, Priority, RefuseReason,
    TransferFailure, TransferId,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;

fn sent(transfer: TransferId) -> BundlesIndication {
    BundlesIndication::Sent { transfer }
}

fn failed(transfer: TransferId, reason: TransferFailure) -> BundlesIndication {
    BundlesIndication::Failed { transfer, reason, acked: 0 }
}

/// Offsets, ends and kinds of data segments.
fn parts(segments: &[Segment]) -> Vec<(u64, u64, DataKind)> {
    let data = segments.iter().filter_map(|segment| match &segment.content {
        Content::Data(data) => Some((data.offset, data.end(), data.kind)),
        _ => None,
    });
    data.collect()
}

/// Settings with segments of a thousand bytes.
fn short() -> Config {
    Config { segment_bytes: 1_000, ..config() }
}

#[test]
fn a_block_is_cut_into_segments_and_its_end_is_a_checkpoint() {
    let mut scene = Scene::new(short());
    let bundle = bundle(2_500, 1);
    let (transfer, segments) = scene.send(&bundle);
    let cut = parts(&segments);
    assert_eq!(cut.len(), 3);
    assert!(segments.iter().all(|segment| segment.to_bytes().len() <= 1_000));
    assert!(segments[0].to_bytes().len() >= 995, "full: {}", segments[0].to_bytes().len());
    assert_eq!([cut[0].2, cut[1].2, cut[2].2], [DataKind::Red, DataKind::Red, DataKind::EndOfRedAndBlock]);
    let whole: Vec<u8> = segments.iter().flat_map(|segment| as_data(segment).data.clone()).collect();
    assert_eq!(whole, bundle);
    assert_eq!(serials(&segments[2]).report, 0);
    scene.hear(&[report(&segments[2], 9, (0, 2_500), &[(0, 2_500)])]);
    assert_eq!(scene.up, [sent(transfer)]);
    assert_eq!(scene.down, [Segment::new(segments[0].session, Content::ReportAck(9))]);
    assert_eq!(scene.link.poll_timeout(), None);
}

#[test]
fn copies_of_a_report_are_acknowledged_once_and_a_repeated_report_again() {
    let mut scene = Scene::new(short());
    let (_, segments) = scene.send(&bundle(3_500, 1));
    let (_, end, _) = parts(&segments)[0];
    let (part, all) = ([(0, end)], [(0, 3_500)]);
    let first = report(&segments[3], 9, (0, 3_500), &part);
    let acks = |scene: &Scene| {
        scene.down.iter().filter(|segment| matches!(segment.content, Content::ReportAck(_))).count()
    };
    scene.hear(std::slice::from_ref(&first));
    assert_eq!(acks(&scene), 1);
    scene.hear(std::slice::from_ref(&first));
    scene.hear(std::slice::from_ref(&first));
    assert_eq!(acks(&scene), 0, "copies");
    scene.hear(&[report(&segments[3], 10, (0, 3_500), &all)]);
    assert_eq!(acks(&scene), 1, "another report");
    scene.now += Duration::from_millis(79);
    scene.hear(std::slice::from_ref(&first));
    assert_eq!(acks(&scene), 0);
    scene.now += Duration::from_millis(1);
    scene.hear(std::slice::from_ref(&first));
    assert_eq!(acks(&scene), 1, "the peer has not heard the acknowledgement");
}

#[test]
fn an_acknowledgement_shares_the_datagram_of_the_segment_after_it_where_that_is_allowed() {
    for (shared_datagram_bytes, bytes_max, expected) in [
        (None, 65_507, vec![1, 1, 1]),
        (Some(1_472), 65_507, vec![3]),
        (Some(1_007), 65_507, vec![2, 1]),
        (Some(1_472), 1_007, vec![2, 1]),
    ] {
        let mut scene = Scene::over(Config { shared_datagram_bytes, ..short() }, bytes_max);
        let blocks = [1, 2, 3].map(|fill| scene.send(&bundle(980, fill)).1.pop().expect("one segment"));
        assert_eq!(scene.shared, [1], "data share nothing");
        scene.set_room(0);
        scene.hear(&[report(&blocks[0], 9, (0, 980), &[(0, 980)])]);
        scene.hear(&[report(&blocks[1], 9, (0, 980), &[(0, 980)])]);
        let (_, sent) = scene.send(&bundle(980, 4));
        assert_eq!(sent, []);
        scene.set_room(1_000);
        assert_eq!(scene.shared, expected);
        let kinds = scene.down.iter().map(|segment| match segment.content {
            Content::ReportAck(9) => 'a',
            Content::Data(_) => 'd',
            _ => '?',
        });
        assert_eq!(kinds.collect::<String>(), "aad");
        // The timer of the data begins all the same.
        assert_eq!(scene.wait(), 3 * SECOND);
        assert_eq!(scene.down.len(), 2, "the blocks without reports: {:?}", scene.down);
    }
}

#[test]
fn missing_data_are_sent_again_and_the_last_of_them_is_a_checkpoint() {
    let mut scene = Scene::new(short());
    let (transfer, segments) = scene.send(&bundle(3_500, 1));
    let ends: Vec<_> = parts(&segments).iter().map(|(_, end, _)| *end).collect();
    // The first and the third segment are lost.
    scene.hear(&[report(&segments[3], 9, (0, 3_500), &[(ends[0], ends[1]), (ends[2], 3_500)])]);
    assert_eq!(scene.down.len(), 1, "only the acknowledgement: {:?}", scene.down);
    assert_eq!(scene.wait(), Duration::from_millis(20));
    let repeated = parts(&scene.down);
    assert_eq!(repeated.first().map(|part| (part.0, part.2)), Some((0, DataKind::Red)));
    assert_eq!(repeated.last().map(|part| (part.1, part.2)), Some((ends[2], DataKind::Checkpoint)));
    let last = scene.down.last().expect("just seen").clone();
    let again = serials(&last);
    assert_eq!((again.checkpoint, again.report), (serials(&segments[3]).checkpoint + 1, 9));
    // The report of the retransmission alone: with the claims before, everything is there.
    let claims = [(0, ends[0]), (ends[1], ends[2])];
    scene.hear(&[report(&last, 10, (0, ends[2]), &claims)]);
    assert_eq!(scene.up, [sent(transfer)]);
    let counters = scene.counters();
    assert_eq!((counters.segments_sent, counters.segments_repeated as usize), (4, repeated.len()));
}

#[test]
fn retransmissions_are_copied_only_if_all_of_them_leave_within_a_round_trip() {
    // 20,000 bytes a round trip, and a burst of any length.
    let burst = 1_000_000 * SECOND;
    let settings = Config { copies: 2, rate_bps: 80_000, burst, ..short() };
    for (lost, is_copied) in [(10_000, true), (18_500, true), (19_500, false), (50_000, false)] {
        let mut scene = Scene::new(settings.clone());
        scene.now += burst;
        let (_, segments) = scene.send(&bundle(60_000, 1));
        let last = segments.last().expect("an end");
        // The copy of the end.
        scene.wait();
        // In two reports, whose retransmissions leave one after the other.
        let middle = lost / 2;
        scene.hear(&[
            report(last, 9, (0, middle), &[]),
            report(last, 10, (middle, 60_000), &[(lost, 60_000)]),
        ]);
        let mut sent = Vec::new();
        while scene.link.poll_timeout() < Some(scene.now + SECOND) {
            scene.wait();
            sent.extend(parts(&scene.down));
        }
        assert_eq!(scene.counters().payload_repeated, lost);
        let checkpoints = sent.iter().filter(|(_, _, kind)| *kind == DataKind::Checkpoint).count();
        assert_eq!(checkpoints, 4, "two checkpoints, twice each");
        let copied = sent.iter().map(|(start, end, _)| end - start).sum::<u64>() - lost;
        match is_copied {
            true => assert_eq!(copied, lost),
            false => assert!(copied <= 2_000, "{copied} of {lost} bytes are copied"),
        }
    }
}

#[test]
fn a_checkpoint_without_an_answer_is_sent_again_with_its_serial_number() {
    let mut scene = Scene::new(Config { retransmissions_max: 2, ..short() });
    let (transfer, segments) = scene.send(&bundle(100, 1));
    for _ in 0..2 {
        assert_eq!(scene.wait(), 3 * SECOND);
        assert_eq!(scene.down, segments);
    }
    scene.wait();
    let unheard = failed(transfer, TransferFailure::LinkDown);
    let down = BundlesIndication::Down { reason: DownReason::KeepAlive, retry: true };
    assert_eq!(scene.up, [unheard, down], "the peer is silent");
    assert_eq!((scene.counters().silent, scene.counters().checkpoint_timeouts), (1, 3));
    assert_eq!(scene.wait(), SECOND, "it tries again");
}

#[test]
fn only_the_session_fails_if_the_peer_answers_others() {
    let mut scene = Scene::new(Config { retransmissions_max: 1, ..short() });
    let (transfer, segments) = scene.send(&bundle(100, 1));
    scene.wait();
    scene.hear(&[Segment::new(segments[0].session, Content::CancelAckToSender)]);
    scene.wait();
    assert_eq!(scene.up, [failed(transfer, TransferFailure::LinkDown)]);
    let cancel = Content::CancelBySender(CancelReason::RetransmissionLimit);
    assert_eq!(scene.down, [Segment::new(segments[0].session, cancel.clone())]);
    // The cancellation is repeated as often as anything else.
    scene.wait();
    assert_eq!(scene.down, [Segment::new(segments[0].session, cancel)]);
    scene.wait();
    assert_eq!((&scene.down[..], scene.link.poll_timeout()), (&[][..], None));
}

#[test]
fn one_lost_report_of_several_does_not_stop_the_checkpoint() {
    // Known pain: the first report segment stops the timer, and the second one is lost with what it asks for.
    let mut scene = Scene::new(short());
    let (transfer, segments) = scene.send(&bundle(2_500, 1));
    let checkpoint = &segments[2];
    scene.hear(&[report(checkpoint, 9, (0, 1_000), &[(0, 1_000)])]);
    assert_eq!(scene.wait(), 3 * SECOND);
    assert_eq!(&scene.down[..], std::slice::from_ref(checkpoint));
    scene.hear(&[report(checkpoint, 10, (1_000, 2_500), &[(1_000, 2_500)])]);
    assert_eq!(scene.up, [sent(transfer)]);
}

#[test]
fn a_report_without_claims_asks_for_everything() {
    let mut scene = Scene::new(short());
    let (_, segments) = scene.send(&bundle(1_500, 1));
    scene.hear(&[report(&segments[1], 9, (0, 1_500), &[])]);
    scene.wait();
    let repeated = parts(&scene.down);
    assert_eq!((repeated.len(), repeated[0].0, repeated[1].1), (2, 0, 1_500));
}

#[test]
fn a_redundant_or_invalid_report_is_acknowledged_and_nothing_more() {
    let mut scene = Scene::new(short());
    let (_, segments) = scene.send(&bundle(1_500, 1));
    let gap = report(&segments[1], 9, (0, 1_500), &[(0, 1_000)]);
    scene.hear(&[gap.clone(), gap.clone(), gap]);
    assert_eq!(scene.down.len(), 1, "copies are acknowledged once");
    scene.wait();
    assert_eq!(parts(&scene.down).len(), 1, "sent again once");
    scene.hear(&[report(&segments[1], 10, (0, 1_501), &[(0, 1_501)])]);
    assert_eq!((&scene.up[..], scene.counters().violations), (&[][..], 1), "claims what was never sent");
}

#[test]
fn a_repeated_report_is_no_copy_however_long_the_interval_of_copies_is() {
    let mut scene = Scene::new(Config { copy_interval: SECOND, ..config() });
    let (_, segments) = scene.send(&bundle(50, 1));
    let all = report(&segments[0], 9, (0, 50), &[(0, 50)]);
    for (millis, acknowledged) in [(0, 1), (1_499, 0), (1, 1)] {
        scene.now += Duration::from_millis(millis);
        scene.hear(std::slice::from_ref(&all));
        assert_eq!(scene.down.len(), acknowledged, "after {millis} ms more");
    }
}

#[test]
fn a_report_for_a_checkpoint_that_was_never_sent_is_invalid() {
    for (distance, is_valid) in [(-1, false), (0, true), (1, false)] {
        let mut scene = Scene::new(config());
        let (_, segments) = scene.send(&bundle(50, 1));
        let mut all = report(&segments[0], 9, (0, 50), &[(0, 50)]);
        if let Content::Report(report) = &mut all.content {
            report.checkpoint = report.checkpoint.saturating_add_signed(distance);
        }
        scene.hear(&[all]);
        assert_eq!((scene.up.len(), scene.counters().violations), (is_valid.into(), (!is_valid).into()));
    }
}

#[test]
fn a_second_report_does_not_repeat_what_is_under_way() {
    let mut scene = Scene::new(short());
    let (_, segments) = scene.send(&bundle(1_500, 1));
    scene.hear(&[report(&segments[1], 9, (0, 1_500), &[(0, 1_000)])]);
    // An asynchronous report with the same gap, before and after the retransmission.
    let other = Segment::new(segments[0].session, Content::CancelAckToSender);
    scene.hear(&[report(&other, 10, (0, 1_500), &[(0, 1_000)])]);
    scene.wait();
    assert_eq!(parts(&scene.down).len(), 1);
    scene.hear(&[report(&other, 11, (0, 1_500), &[(0, 1_000)])]);
    assert_eq!(scene.wait(), 3 * SECOND, "only its checkpoint's timer runs");
}

#[test]
fn data_that_a_later_report_claims_are_not_sent_again() {
    let mut scene = Scene::new(short());
    let (transfer, segments) = scene.send(&bundle(1_500, 1));
    scene.hear(&[report(&segments[1], 9, (0, 1_500), &[(0, 1_000)])]);
    let other = Segment::new(segments[0].session, Content::CancelAckToSender);
    scene.hear(&[report(&other, 10, (0, 1_500), &[(0, 1_500)])]);
    assert_eq!(scene.up, [sent(transfer)], "within the delay");
    assert_eq!(scene.link.poll_timeout(), None);
    assert_eq!(scene.counters().segments_repeated, 0);
}

#[test]
fn a_peer_that_has_lost_its_state_is_noticed_by_its_serial_numbers() {
    let mut scene = Scene::new(short());
    let (transfer, segments) = scene.send(&bundle(1_500, 1));
    scene.hear(&[report(&segments[1], 9, (0, 1_500), &[(0, 1_000)])]);
    scene.wait();
    let last = scene.down.last().expect("a retransmission").clone();
    // The claims of both together are complete, but the second peer never had the first part.
    scene.hear(&[report(&last, 9_000_000, (0, 1_500), &[(1_000, 1_500)])]);
    assert_eq!(scene.up, [failed(transfer, TransferFailure::LinkDown)]);
    assert_eq!(scene.counters().restarts, 1);
}

#[test]
fn a_cancellation_by_the_receiver_is_acknowledged_and_has_its_meaning() {
    for (reason, expected) in [
        (CancelReason::ClientCancelled, TransferFailure::Refused(RefuseReason::NoResources)),
        (CancelReason::Unreachable, TransferFailure::Refused(RefuseReason::NotAcceptable)),
        (CancelReason::RetransmissionLimit, TransferFailure::LinkDown),
        (CancelReason::Miscolored, TransferFailure::Refused(RefuseReason::NoResources)),
        (CancelReason::SystemCancelled, TransferFailure::Refused(RefuseReason::NoResources)),
        (CancelReason::Other(99), TransferFailure::Refused(RefuseReason::NoResources)),
    ] {
        let mut scene = Scene::new(short());
        let (transfer, segments) = scene.send(&bundle(100, 1));
        scene.hear(&[Segment::new(segments[0].session, Content::CancelByReceiver(reason))]);
        assert_eq!(scene.up, [failed(transfer, expected)]);
        assert_eq!(scene.down, [Segment::new(segments[0].session, Content::CancelAckToReceiver)]);
        assert_eq!(scene.link.poll_timeout(), None);
        // It comes again because the acknowledgement was lost.
        scene.hear(&[Segment::new(segments[0].session, Content::CancelByReceiver(reason))]);
        assert_eq!(scene.down.len(), 1);
    }
}

/// Holds all datagrams back, so that several bundles wait.
fn queue(scene: &mut Scene, bundles: &[Bytes]) -> Vec<TransferId> {
    scene.set_room(0);
    let mut transfers = Vec::new();
    for (number, bundle) in bundles.iter().enumerate() {
        let transfer =
            TransferId(1_000 * scene.counters().joined + scene.counters().blocks_sent * 10 + number as u64);
        let length = bundle.len() as u64;
        scene
            .link
            .handle_request(scene.now, BundlesRequest::Open { transfer, priority: Priority::Normal, length });
        transfers.push(transfer);
    }
    for (transfer, bundle) in transfers.iter().zip(bundles) {
        let (transfer, data) = (*transfer, bundle.clone());
        scene.link.handle_request(scene.now, BundlesRequest::Piece { transfer, data, last: true });
    }
    scene.set_room(1_000);
    transfers
}

#[test]
fn bundles_that_wait_share_a_block_in_the_format_of_the_settings() {
    let bundles = [bundle(20, 1), bundle(30, 2)];
    for (format, blocks, client) in [
        (BlockFormat::Single, vec![bundles[0].to_vec(), bundles[1].to_vec()], 1),
        (BlockFormat::Concatenated, vec![bundles.concat()], 1),
        (BlockFormat::ServiceData, vec![[b"\x01", &bundles[0][..], b"\x01", &bundles[1][..]].concat()], 2),
    ] {
        let mut scene = Scene::new(Config { block_format: format, ..config() });
        let transfers = queue(&mut scene, &bundles);
        let segments = scene.down.clone();
        let found: Vec<_> = segments.iter().map(|segment| as_data(segment).data.to_vec()).collect();
        assert_eq!(found, blocks, "{format:?}");
        assert!(segments.iter().all(|segment| as_data(segment).client == client));
        let mut ends = Vec::new();
        for segment in &segments {
            let length = as_data(segment).end();
            scene.hear(&[report(segment, 9, (0, length), &[(0, length)])]);
            ends.append(&mut scene.up);
        }
        assert_eq!(ends, transfers.into_iter().map(sent).collect::<Vec<_>>());
    }
}

#[test]
fn a_block_has_its_maximum_length_and_a_long_bundle_its_own() {
    let mut scene = Scene::new(Config { block_bytes: 100, ..config() });
    queue(&mut scene, &[bundle(60, 1), bundle(30, 2), bundle(30, 3), bundle(150, 4), bundle(10, 5)]);
    let lengths: Vec<_> = scene.down.iter().map(|segment| as_data(segment).data.len()).collect();
    assert_eq!(lengths, [90, 30, 150, 10]);
}

#[test]
fn the_end_of_a_block_waits_for_announced_bundles_only_a_short_time() {
    let mut scene = Scene::new(config());
    let open = |transfer| BundlesRequest::Open { transfer, priority: Priority::Normal, length: 50 };
    scene.ask(open(TransferId(1)));
    scene.ask(open(TransferId(2)));
    let piece = |transfer| BundlesRequest::Piece { transfer, data: bundle(50, 1), last: true };
    scene.ask(piece(TransferId(1)));
    assert_eq!(scene.down, []);
    assert_eq!(scene.wait(), Duration::from_millis(10));
    assert_eq!(parts(&scene.down), [(0, 50, DataKind::EndOfRedAndBlock)]);
    scene.ask(piece(TransferId(2)));
    assert_eq!(parts(&scene.down), [(0, 50, DataKind::EndOfRedAndBlock)], "nothing more is expected");
}

#[test]
fn after_a_refusal_of_several_bundles_each_has_its_own_block() {
    let bundles = [bundle(20, 1), bundle(30, 2)];
    let mut scene = Scene::new(config());
    let transfers = queue(&mut scene, &bundles);
    let refused = Content::CancelByReceiver(CancelReason::ClientCancelled);
    scene.hear(&[Segment::new(scene.down[0].session, refused)]);
    let reason = TransferFailure::Refused(RefuseReason::NoResources);
    assert_eq!(scene.up, transfers.iter().map(|transfer| failed(*transfer, reason)).collect::<Vec<_>>());
    let (_, first) = scene.send(&bundles[0]);
    let (_, second) = scene.send(&bundles[1]);
    assert_ne!(first[0].session, second[0].session);
    queue(&mut scene, &[bundle(40, 3), bundle(50, 4)]);
    assert_eq!(scene.down.len(), 1, "then bundles share blocks again");
}

#[test]
fn a_cancelled_bundle_leaves_the_block_or_takes_it_with_it() {
    // Nothing of it has left.
    let mut scene = Scene::new(config());
    scene.set_room(0);
    let transfers = [TransferId(1), TransferId(2)];
    for transfer in transfers {
        let open = BundlesRequest::Open { transfer, priority: Priority::Normal, length: 50 };
        scene.link.handle_request(scene.now, open);
    }
    let piece = |transfer, length, last| BundlesRequest::Piece {
        transfer,
        data: bundle(50, 1).slice(..length),
        last,
    };
    scene.link.handle_request(scene.now, piece(transfers[0], 50, true));
    scene.link.handle_request(scene.now, piece(transfers[1], 20, false));
    scene.ask(BundlesRequest::Cancel { transfer: transfers[1] });
    assert_eq!(scene.up, [failed(transfers[1], TransferFailure::Cancelled)]);
    scene.set_room(9);
    assert_eq!(parts(&scene.down), [(0, 50, DataKind::EndOfRedAndBlock)]);
    // All of it has left: the session is cancelled.
    scene.ask(BundlesRequest::Cancel { transfer: transfers[0] });
    assert_eq!(scene.up, [failed(transfers[0], TransferFailure::Cancelled)]);
    let [cancel] = &scene.down[..] else { panic!("{:?}", scene.down) };
    assert_eq!(cancel.content, Content::CancelBySender(CancelReason::ClientCancelled));
    scene.hear(&[Segment::new(cancel.session, Content::CancelAckToSender)]);
    assert_eq!(scene.link.poll_timeout(), None);
}

#[test]
fn timers_begin_when_segments_leave() {
    let mut scene = Scene::new(config());
    scene.held = Some(Vec::new());
    scene.send(&bundle(100, 1));
    assert_eq!(scene.link.poll_timeout(), None, "it has not left");
    scene.now = Instant::from_secs(50);
    let tokens = scene.held.take().expect("they are held");
    for token in tokens {
        scene.tell(DatagramsIndication::Transmitted(token));
    }
    assert_eq!(scene.wait(), 3 * SECOND);
}

#[test]
fn timers_stand_still_and_nothing_leaves_while_the_link_is_down() {
    let mut scene = Scene::new(config());
    let (_, segments) = scene.send(&bundle(100, 1));
    scene.now = Instant::from_secs(1);
    scene.tell(DatagramsIndication::Carrier(false));
    assert_eq!(scene.link.poll_timeout(), None);
    scene.hear(&[report(&segments[0], 9, (0, 100), &[(0, 50)])]);
    assert_eq!(scene.down, [], "not even an acknowledgement");
    scene.now = Instant::from_secs(1_000);
    scene.tell(DatagramsIndication::Carrier(true));
    assert!(matches!(scene.down[0].content, Content::ReportAck(9)));
}

#[test]
fn a_block_that_continues_after_an_outage_asks_at_once_what_was_lost() {
    for interrupted in [false, true] {
        let mut scene = Scene::new(short());
        let (transfer, bundle) = (TransferId(0), bundle(4_500, 1));
        scene.ask(BundlesRequest::Open { transfer, priority: Priority::Normal, length: 4_500 });
        scene.ask(BundlesRequest::Piece { transfer, data: bundle.slice(..2_000), last: false });
        let before = parts(&scene.down);
        assert!(!before.is_empty() && before.iter().all(|part| part.2 == DataKind::Red), "{before:?}");
        if interrupted {
            scene.tell(DatagramsIndication::Carrier(false));
            scene.tell(DatagramsIndication::Carrier(true));
        }
        scene.ask(BundlesRequest::Piece { transfer, data: bundle.slice(2_000..), last: true });
        let after: Vec<DataKind> = parts(&scene.down).into_iter().map(|part| part.2).collect();
        let first = if interrupted { DataKind::Checkpoint } else { DataKind::Red };
        assert_eq!(after, [first, DataKind::Red, DataKind::EndOfRedAndBlock]);
    }
}

#[test]
fn important_segments_are_sent_as_often_as_the_settings_say() {
    let interval = Duration::from_millis(30);
    let mut scene = Scene::new(Config { copies: 3, copy_interval: interval, ..config() });
    let (_, segments) = scene.send(&bundle(100, 1));
    for _ in 0..2 {
        assert_eq!(scene.wait(), interval);
        assert_eq!(scene.down, segments);
    }
    assert_eq!(scene.counters().copies_sent, 2);
    assert_eq!(scene.wait(), 3 * SECOND - 2 * interval, "the first departure counts");
}

#[test]
fn green_blocks_are_sent_once() {
    let mut scene = Scene::new(Config { green: true, ..short() });
    let (transfer, segments) = scene.send(&bundle(1_500, 1));
    assert_eq!(
        parts(&segments).iter().map(|part| part.2).collect::<Vec<_>>(),
        [DataKind::Green, DataKind::EndOfBlock]
    );
    assert_eq!(scene.link.poll_timeout(), None);
    assert_eq!(scene.counters().blocks_completed, 1);
    assert_eq!(transfer, TransferId(0));
}

#[test]
fn discretionary_checkpoints_ask_before_the_end() {
    let mut scene = Scene::new(Config { checkpoint_every: 2, ..short() });
    let (transfer, segments) = scene.send(&bundle(3_500, 1));
    let kinds: Vec<_> = parts(&segments).iter().map(|part| part.2).collect();
    assert_eq!(kinds, [DataKind::Red, DataKind::Checkpoint, DataKind::Red, DataKind::EndOfRedAndBlock]);
    let middle = as_data(&segments[1]).end();
    scene.hear(&[report(&segments[1], 9, (0, middle), &[(0, middle)])]);
    scene.hear(&[report(&segments[3], 10, (middle, 3_500), &[(middle, 3_500)])]);
    assert_eq!(scene.up, [sent(transfer)]);
}

#[test]
fn numbers_fit_into_the_32_bits_of_other_implementations() {
    let mut scene = Scene::new(config());
    for _ in 0..20 {
        let (_, segments) = scene.send(&bundle(100, 1));
        let numbers = serials(&segments[0]);
        assert!((1..1 << 28).contains(&numbers.checkpoint));
        assert!((1..1 << 29).contains(&segments[0].session.number));
    }
}
