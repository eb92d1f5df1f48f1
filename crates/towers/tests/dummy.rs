//! A carrier without a line of test of its own has laws, its flaws are found, and it is fuzzed.

mod table;

use longwire_proto::engine::drain;
use longwire_proto::fuzz::{seeds, try_play};
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    BundlesIndication, BundlesRequest, CloseReason, DatagramsIndication, DatagramsRequest, PeerId, Priority,
    RefuseReason, TransferFailure, TransferId,
};
use longwire_proto::time::Instant;
use longwire_towers::carriers::find;
use longwire_towers::testing::{plan, plays};
use longwire_towers::{MediaIndication, MediaRequest, Session};
use table::{finds_flaws, hold};
use toml::Table;

#[test]
fn the_dummy_keeps_the_laws_and_broken_ones_do_not() {
    let dummy = find("dummy").expect("the feature is on");
    for medium in dummy.about().media {
        hold(dummy, *medium);
        finds_flaws(dummy, *medium);
    }
}

#[test]
fn no_script_breaks_the_dummy() {
    let plays: Vec<_> = plays().filter(|play| play.name().starts_with("dummy")).collect();
    assert_eq!(plays.len(), 2, "one on each medium");
    plays.iter().for_each(|play| try_play(&play.name(), seeds() / 2, |script| play.run(script)));
}

/// Sends a message to a session, and returns its answers.
fn hear(
    session: &mut Session,
    now: Instant,
    said: impl Into<Option<DatagramsIndication>>,
) -> (Vec<BundlesIndication>, Vec<DatagramsRequest>) {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    if let Some(said) = said.into() {
        session.handle_indication(now, MediaIndication::Datagrams(said));
    }
    drain(
        session,
        now,
        |indication| up.push(indication),
        |request| match request {
            MediaRequest::Datagrams(request) => down.push(request),
            other => panic!("{other:?} is for another medium"),
        },
    );
    (up, down)
}

/// A session that is up, over a medium with datagrams of this length.
fn session(bytes_max: u64) -> Session {
    let dummy = find("dummy").expect("the feature is on");
    let mut session = plan(dummy, &Table::new(), 0).unwrap().session(Origin::Above, Rng::new(1));
    session.handle_request(NOW, BundlesRequest::Connect);
    let _ = hear(&mut session, NOW, joined(bytes_max));
    let _ = hear(&mut session, NOW, DatagramsIndication::Room(9));
    session
}

fn joined(bytes_max: u64) -> DatagramsIndication {
    let peer = Some(PeerId::CONFIGURED);
    DatagramsIndication::Joined { bytes_max, peer, group: None }
}

/// A bundle of a peer, number 8 of tag 7.
fn bundle() -> DatagramsIndication {
    let bytes = b"\0\0\0\0\x07\0\0\0\x08bundle"[..].into();
    DatagramsIndication::Datagram { from: PeerId::CONFIGURED, to_group: false, bytes, damaged: false }
}

fn datagrams(said: &[DatagramsRequest]) -> Vec<&[u8]> {
    let bytes =
        |said| if let &DatagramsRequest::Datagram { ref bytes, .. } = said { Some(&bytes[..]) } else { None };
    said.iter().filter_map(bytes).collect()
}

const NOW: Instant = Instant::ZERO;
const LATER: Instant = Instant::from_secs(3_600);
const TRANSFER: TransferId = TransferId(0);

#[test]
fn an_answer_that_the_medium_cannot_carry_is_not_sent() {
    for (bytes_max, answers) in [(8, 0), (9, 1)] {
        let mut session = session(bytes_max);
        let _ = hear(&mut session, NOW, bundle());
        session.handle_request(NOW, BundlesRequest::Accept { transfer: TRANSFER, up_to: 6 });
        let (_, said) = hear(&mut session, NOW, None);
        assert_eq!(datagrams(&said).len(), answers, "{said:?}");
    }
}

/// The peer repeats its datagram until it is answered.
#[test]
fn a_bundle_that_was_refused_is_not_indicated_again() {
    const REFUSAL: &[u8] = b"\x02\0\0\0\x07\0\0\0\x08";
    let mut session = session(1_000);
    let _ = hear(&mut session, NOW, bundle());
    let reason = RefuseReason::NoResources;
    session.handle_request(NOW, BundlesRequest::Refuse { transfer: TRANSFER, reason });
    let (_, said) = hear(&mut session, NOW, None);
    assert_eq!(datagrams(&said), [REFUSAL]);
    let (up, said) = hear(&mut session, NOW, bundle());
    assert_eq!((up, datagrams(&said)), (vec![], vec![REFUSAL]));
}

#[test]
fn a_bundle_that_was_indicated_before_the_endpoint_closed_is_not_indicated_again() {
    let mut session = session(1_000);
    let _ = hear(&mut session, NOW, bundle());
    let _ = hear(&mut session, NOW, DatagramsIndication::Left(CloseReason::Refused));
    session.handle_timeout(LATER);
    let _ = hear(&mut session, LATER, joined(1_000));
    let (up, _) = hear(&mut session, LATER, bundle());
    assert_eq!(up, []);
}

#[test]
fn a_refusal_ends_the_transfer_of_its_sender() {
    let mut session = session(1_000);
    let open = BundlesRequest::Open { transfer: TRANSFER, priority: Priority::Normal, length: 1 };
    session.handle_request(NOW, open);
    let piece = BundlesRequest::Piece { transfer: TRANSFER, data: b"x"[..].into(), last: true };
    session.handle_request(NOW, piece);
    let (_, said) = hear(&mut session, NOW, None);
    let bytes = [&[2], &datagrams(&said)[0][1..9]].concat().into();
    let refusal =
        DatagramsIndication::Datagram { from: PeerId::CONFIGURED, to_group: false, bytes, damaged: false };
    let (up, _) = hear(&mut session, NOW, refusal);
    let reason = TransferFailure::Refused(RefuseReason::NoResources);
    assert!(up.contains(&BundlesIndication::Failed { transfer: TRANSFER, reason, acked: 0 }), "{up:?}");
}

/// Its piece needs no room, so it could come while another bundle is in transit.
#[test]
fn an_empty_bundle_is_refused() {
    let mut session = session(1_000);
    let open = BundlesRequest::Open { transfer: TRANSFER, priority: Priority::Normal, length: 0 };
    session.handle_request(NOW, open);
    let (up, _) = hear(&mut session, NOW, None);
    let reason = TransferFailure::Refused(RefuseReason::NotAcceptable);
    assert_eq!(up, [BundlesIndication::Failed { transfer: TRANSFER, reason, acked: 0 }]);
}
