//! Habits of other implementations, as they are known of ION and HDTN.

use super::scene::{Scene, as_data, as_report, bundle, config, data, report, segments, serials, theirs};
use crate::engine::{Engine, drain};
use crate::ltp::wire::{CancelReason, Content, DataKind, Report, Segment, SessionId};
use crate::ltp::{Config, Link};
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, CloseReason, DatagramsIndication, DatagramsRequest, DownReason,
    PeerId, TransferId,
};
use crate::time::Instant;

/// Passes a segment from a peer to a link; returns the segments that leave, with their receivers.
fn answers(link: &mut Link, from: PeerId, segment: &Segment) -> Vec<(PeerId, Segment)> {
    let now = Instant::ZERO;
    let bytes = segment.to_bytes();
    link.handle_indication(
        now,
        DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false },
    );
    let (mut accepted, mut sent) = (Vec::new(), Vec::new());
    let mut settle = |link: &mut Link, accepted: &mut Vec<_>| {
        drain(
            link,
            now,
            |said| {
                if let BundlesIndication::Piece { transfer, data, .. } = said {
                    accepted.push((transfer, data.len() as u64));
                }
            },
            |asked| {
                if let DatagramsRequest::Datagram { to, bytes, .. } = asked {
                    sent.extend(segments(bytes).into_iter().map(|segment| (to, segment)));
                }
            },
        );
    };
    settle(link, &mut accepted);
    for (transfer, up_to) in std::mem::take(&mut accepted) {
        link.handle_request(now, BundlesRequest::Accept { transfer, up_to });
    }
    settle(link, &mut accepted);
    sent
}

fn joined(peer: Option<PeerId>) -> DatagramsIndication {
    DatagramsIndication::Joined { bytes_max: 65_507, peer, group: None }
}

fn whole() -> Segment {
    data(DataKind::EndOfRedAndBlock, 0, Some((40, 0)), &b"\x00bundle"[..])
}

/// ION sends from another port than that on which it listens.
#[test]
fn a_link_answers_to_the_port_of_its_settings() {
    let mut link = Link::new(config(), Rng::new(1));
    link.handle_request(Instant::ZERO, BundlesRequest::Connect);
    link.handle_indication(Instant::ZERO, joined(Some(PeerId::CONFIGURED)));
    link.handle_indication(Instant::ZERO, DatagramsIndication::Room(9));
    let other_port = PeerId(5);
    let sent = answers(&mut link, other_port, &whole());
    assert!(
        matches!(&sent[..], [(PeerId::CONFIGURED, Segment { content: Content::Report(_), .. })]),
        "{sent:?}"
    );
}

#[test]
fn an_endpoint_answers_to_the_port_that_it_was_sent_from() {
    let mut link = Link::listening(config(), Rng::new(1));
    link.handle_indication(Instant::ZERO, joined(None));
    link.handle_indication(Instant::ZERO, DatagramsIndication::Room(9));
    for from in [PeerId(5), PeerId(6)] {
        let segment = Segment { session: theirs(from.0.into()), ..whole() };
        let sent = answers(&mut link, from, &segment);
        assert!(
            matches!(&sent[..], [(to, Segment { content: Content::Report(_), .. })] if *to == from),
            "{sent:?}"
        );
    }
}

/// The provider opens such an endpoint: before that, the user was not told that it is up.
#[test]
fn an_endpoint_is_down_only_after_it_was_up() {
    let told = |link: &mut Link| -> Vec<_> {
        core::iter::from_fn(|| link.poll_indication(Instant::ZERO))
            .filter(|said| !matches!(said, BundlesIndication::Room(_)))
            .collect()
    };
    let mut never_up = Link::listening(config(), Rng::new(1));
    never_up.handle_request(Instant::ZERO, BundlesRequest::Connect);
    never_up.handle_request(Instant::ZERO, BundlesRequest::Close);
    assert_eq!(told(&mut never_up), []);

    let mut link = Link::listening(config(), Rng::new(1));
    link.handle_indication(Instant::ZERO, joined(None));
    assert!(matches!(told(&mut link)[..], [BundlesIndication::Up { .. }]));
    link.handle_indication(Instant::ZERO, DatagramsIndication::Left(CloseReason::Finished));
    let reason = DownReason::Stream(CloseReason::Finished);
    assert_eq!(told(&mut link), [BundlesIndication::Down { reason, retry: false }]);
}

#[test]
fn a_segment_that_someone_else_sends_again_does_not_divert_the_answers() {
    let mut link = Link::listening(config(), Rng::new(1));
    link.handle_indication(Instant::ZERO, joined(None));
    link.handle_indication(Instant::ZERO, DatagramsIndication::Room(9));
    for from in [PeerId(5), PeerId(6)] {
        let sent = answers(&mut link, from, &whole());
        assert!(
            matches!(&sent[..], [(PeerId(5), Segment { content: Content::Report(_), .. })]),
            "{from:?}: {sent:?}"
        );
    }
}

/// HDTN has the number of a span in the first bits of session numbers of 64 bits, and serial numbers of 64 bits.
#[test]
fn long_session_and_serial_numbers_are_returned_as_they_are() {
    let mut scene = Scene::new(config());
    let session = SessionId { originator: u64::from(u32::MAX), number: 0b101 << 61 | 7 };
    let checkpoint = u64::MAX - 1;
    let long = data(DataKind::EndOfRedAndBlock, 0, Some((checkpoint, 0)), &b"\x00bundle"[..]);
    scene.hear(&[Segment { session, ..long }]);
    scene.accept(0, 7);
    let [answer] = &scene.down[..] else { panic!("{:?}", scene.down) };
    assert_eq!((answer.session, as_report(answer).checkpoint), (session, checkpoint));
    scene.hear(&[Segment::new(session, Content::ReportAck(as_report(answer).serial))]);
    assert_eq!(scene.link.poll_timeout(), None);
    // The report about a block of this side may have such a serial number, too.
    let (transfer, sent) = scene.send(&bundle(50, 1));
    scene.hear(&[report(&sent[0], u64::MAX, (0, 50), &[(0, 50)])]);
    assert_eq!(scene.up, [BundlesIndication::Sent { transfer }]);
    assert_eq!(scene.down[0].content, Content::ReportAck(u64::MAX));
}

/// HDTN reports as many claims as a datagram holds, 65 with its usual settings; ION reports 20 and continues in another one.
#[test]
fn reports_with_many_claims_and_reports_in_parts_are_understood() {
    let mut scene = Scene::new(Config { segment_bytes: 100, ..config() });
    let (transfer, sent) = scene.send(&bundle(13_000, 1));
    let (checkpoint, parts) = (sent.last().expect("a block"), sent.iter().map(as_data));
    // Every second segment is lost.
    let claims: Vec<(u64, u64)> = parts
        .map(|data| (data.offset, data.end()))
        .enumerate()
        .filter(|(at, _)| at % 2 == 1)
        .map(|(_, claim)| claim)
        .collect();
    let (first, rest) = claims.split_at(65);
    let middle = first.last().expect("65 of them").1;
    scene.hear(&[report(checkpoint, 9, (0, middle), first), report(checkpoint, 10, (middle, 13_000), rest)]);
    scene.wait();
    let repeated: u64 = scene.down.iter().map(|segment| as_data(segment).data.len() as u64).sum();
    let claimed: u64 = claims.iter().map(|(start, end)| end - start).sum();
    assert_eq!(repeated, 13_000 - claimed);
    scene.hear(&[report(checkpoint, 11, (0, 13_000), &[(0, 13_000)])]);
    assert_eq!(scene.up, [BundlesIndication::Sent { transfer }]);
}

/// ION counts sessions from 1, and serial numbers from a random number of 14 bits. It knows five reasons of a cancellation.
#[test]
fn small_numbers_and_few_reasons_are_enough() {
    let mut scene = Scene::new(config());
    for number in 1..4 {
        scene.hear(&[Segment { session: theirs(number), ..whole() }]);
        scene.accept(number - 1, 7);
        assert_eq!(as_report(&scene.down[0]).checkpoint, 40);
    }
    let (transfer, sent) = scene.send(&bundle(50, 1));
    let refused = Content::CancelByReceiver(CancelReason::SystemCancelled);
    scene.hear(&[Segment::new(sent[0].session, refused)]);
    assert!(matches!(scene.up[..], [BundlesIndication::Failed { transfer: of, .. }] if of == transfer));
}

/// HDTN closes its socket on an undefined type, and finds the link by the engine that has begun the session.
#[test]
fn undefined_types_cost_nothing_here_and_are_never_sent() {
    let mut scene = Scene::new(Config { engine_id: Some(9), peer_engine_id: Some(2), ..config() });
    for undefined in [5, 6, 10, 11] {
        let bytes = bytes::Bytes::from(vec![undefined, 2, 1, 0, 1, 0, 0]);
        let from = PeerId::CONFIGURED;
        scene.tell(DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
        assert_eq!((&scene.up[..], &scene.down[..]), (&[][..], &[][..]));
    }
    assert_eq!(scene.counters().violations, 4);
    let (transfer, sent) = scene.send(&bundle(50, 1));
    assert_eq!((sent[0].session.originator, transfer), (9, TransferId(0)));
    // A report about a block of another engine is not for this one.
    let wrong = SessionId { originator: 8, ..sent[0].session };
    let all = Report {
        serial: 5,
        checkpoint: serials(&sent[0]).checkpoint,
        upper: 50,
        lower: 0,
        claims: vec![(0, 50)],
    };
    scene.hear(&[Segment::new(wrong, Content::Report(all))]);
    assert_eq!((&scene.up[..], &scene.down[..], scene.counters().strangers), (&[][..], &[][..], 1));
}
