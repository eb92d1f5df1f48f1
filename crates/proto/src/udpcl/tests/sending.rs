//! Transfers that are sent, and copies (draft-ietf-dtn-udpcl-04 3.3.1, 3.6).

use super::{SECOND, Scene, datagram, failed, joined, to_peer};
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, CloseReason, DatagramsIndication, DatagramsRequest, PeerId, Shares,
    TransferFailure, TransferId,
};
use crate::time::{Duration, Instant};
use crate::udpcl::wire::{ExtensionMap, Message, Messages, Transfer};
use crate::udpcl::{Config, Link};
use bytes::Bytes;

/// A tenth of a second for each datagram of 72 bytes.
fn paced() -> Config {
    Config {
        transfers: true,
        datagram_bytes_max: 72,
        rate_bps: 8_000,
        burst: Duration::ZERO,
        ..Config::default()
    }
}

/// A link as fast as its room allows.
fn unpaced() -> Config {
    Config { rate_bps: 0, ..paced() }
}

impl Scene {
    /// The datagrams that were sent last, with their purposes.
    fn sent(&self) -> Vec<(Bytes, Shares)> {
        let datagram = |request: &DatagramsRequest| match request {
            DatagramsRequest::Datagram { to: PeerId::CONFIGURED, bytes, shares, token: None } => {
                (bytes.clone(), *shares)
            }
            other => panic!("{other:?}"),
        };
        self.down.iter().map(datagram).collect()
    }

    /// The transfers that were sent last.
    fn transfers(&self) -> Vec<Transfer> {
        self.sent().into_iter().map(|(bytes, _)| transfer_in(&bytes)).collect()
    }

    /// Gives a bundle to a link whose room is never exhausted; returns its transfers.
    fn give(&mut self, number: u64, bundle: &[u8]) -> Vec<Transfer> {
        self.open(number, bundle.len() as u64);
        let (mut given, mut transfers) = (0, Vec::new());
        while given < bundle.len() {
            let room = self.told.min((bundle.len() - given) as u64) as usize;
            assert!(room > 0, "the link has room again");
            given += room;
            self.piece(number, &bundle[given - room..given], given == bundle.len());
            transfers.extend(self.transfers());
        }
        assert_eq!(self.up.iter().filter(|said| **said == sent(number)).count(), 1);
        transfers
    }
}

fn transfer_in(packet: &Bytes) -> Transfer {
    let messages: Vec<_> = Messages::new(packet.clone()).collect();
    match &messages[..] {
        [Ok(Message::Extensions(ExtensionMap { transfer: Some(transfer), .. }))] => transfer.clone(),
        other => panic!("{other:?}"),
    }
}

fn sent(number: u64) -> BundlesIndication {
    BundlesIndication::Sent { transfer: TransferId(number) }
}

fn bundle(length: usize) -> Vec<u8> {
    (0..length).map(|at| if at == 0 { 0x9f } else { at as u8 }).collect()
}

#[test]
fn a_bundle_that_is_too_long_for_a_datagram_leaves_in_segments_in_order_each_at_its_time() {
    let mut scene = Scene::new(paced());
    let whole = bundle(150);
    scene.open(1, 150);
    scene.piece(1, &whole[..60], false);
    // The first of three segments: 72 bytes without 3 heads of one byte, an ID of five, two lengths of two, and one more.
    let first = scene.sent().remove(0);
    let id = transfer_in(&first.0).id;
    let heads = [&b"\xa1\x02\x84\x1a"[..], &(id as u32).to_be_bytes(), b"\x18\x96\x00\x58"].concat();
    assert_eq!(first.0, [&heads[..], &[58], &whole[..58]].concat());
    assert_eq!(first.1, Shares::payload(58), "the rest is header");
    assert_eq!(scene.up, [BundlesIndication::Room(0)], "and the bundle is not sent");
    // Overheads of 28 bytes included, the next one may leave after 0.099 s, and its 58 bytes lack 56.
    assert_eq!(
        (scene.wait(), &scene.up[..]),
        (Duration::from_millis(99), &[BundlesIndication::Room(56)][..])
    );
    scene.piece(1, &whole[60..116], false);
    scene.wait();
    assert_eq!(scene.up, [BundlesIndication::Room(34)]);
    scene.piece(1, &whole[116..], true);
    assert_eq!(scene.up, [sent(1)]);
    let last = scene.transfers().remove(0);
    let place = last.place.expect("one of several segments");
    assert_eq!((last.id, place.total_bytes, place.offset, &last.data[..]), (id, 150, 116, &whole[116..]));
    let counters = scene.link.counters();
    assert_eq!((counters.transfers_sent, counters.segments_sent, counters.datagrams_sent), (1, 3, 0));
    assert_eq!((counters.payload_sent, counters.copies_sent), (150, 0));
}

#[test]
fn what_fits_a_datagram_leaves_without_a_frame() {
    let mut scene = Scene::new(unpaced());
    let whole: Bytes = bundle(72).into();
    scene.open(1, 72);
    scene.piece(1, &whole, true);
    assert_eq!(scene.down, [to_peer(&whole, Shares::payload(72))]);
    assert_eq!((scene.link.counters().datagrams_sent, scene.link.counters().transfers_sent), (1, 0));
}

#[test]
fn the_longest_bundle_is_that_of_a_transfer_and_is_announced() {
    let longest = |config: Config, bytes_max| {
        let mut link = Link::new(config, Rng::new(1));
        link.handle_request(Instant::ZERO, BundlesRequest::Connect);
        let joined = DatagramsIndication::Joined { bytes_max, peer: Some(PeerId::CONFIGURED), group: None };
        link.handle_indication(Instant::ZERO, joined);
        match link.poll_indication(Instant::ZERO) {
            Some(BundlesIndication::Up { transfer_bytes_max, .. }) => transfer_bytes_max,
            other => panic!("{other:?}"),
        }
    };
    let limited = Config { transfer_bytes_max: 1_000, ..paced() };
    assert_eq!(longest(limited.clone(), 65_507), 1_000);
    assert_eq!(longest(Config { transfer_bytes_max: 10, ..paced() }, 65_507), 72, "without a frame");
    assert_eq!(longest(limited.clone(), 63), 63, "a datagram would be mostly headers");
    assert_eq!(longest(Config { transfers: false, ..limited.clone() }, 65_507), 72);
    let mut scene = Scene::new(limited);
    scene.open(1, 1_000);
    assert_eq!(scene.up, []);
    scene.open(2, 1_001);
    assert_eq!(scene.up, [failed(2, TransferFailure::TooLong)]);
}

#[test]
fn transfers_have_different_ids_which_count_up_from_a_random_one() {
    let mut scene = Scene::new(Config { copies: 2, ..unpaced() });
    let ids = [1, 2].map(|number| scene.give(number, &bundle(30))[0].id);
    assert_eq!(ids[1], (ids[0] + 1) & u64::from(u32::MAX));
    let mut other = Scene { link: Link::new(unpaced(), Rng::new(2)), ..Scene::new(unpaced()) };
    other.ask(BundlesRequest::Connect);
    other.hear(joined(Some(PeerId::CONFIGURED)));
    other.hear(DatagramsIndication::Room(100));
    assert!(other.give(1, &bundle(100))[0].id.abs_diff(ids[0]) > 2, "another start, other IDs");
}

#[test]
fn what_is_sent_arrives_at_another_link_whatever_the_sizes() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let copies = 1 + rng.below(2) as u32;
        let config = Config { datagram_bytes_max: 64 + rng.below(100), copies, ..unpaced() };
        let (mut here, mut there) = (Scene::new(config), Scene::new(Config::default()));
        let whole = bundle(1 + rng.below(1_000) as usize);
        here.open(1, whole.len() as u64);
        let (mut given, mut arrived) = (0, Vec::new());
        while given < whole.len() {
            let room = here.told.min(1 + rng.below(200)).min((whole.len() - given) as u64) as usize;
            given += room;
            here.piece(1, &whole[given - room..given], given == whole.len());
            for (bytes, _) in here.sent() {
                there.hear(datagram(&bytes));
                arrived.extend(there.risen());
            }
        }
        assert_eq!(arrived, [whole], "seed {seed}");
    }
}

#[test]
fn copies_are_transfers_that_leave_again_after_the_interval_and_count_as_repeated() {
    let config = Config { copies: 3, copy_interval: 5 * SECOND, ..paced() };
    let mut scene = Scene::new(config);
    let whole = bundle(40);
    scene.open(1, 40);
    scene.piece(1, &whole, true);
    let (packet, shares) = scene.sent().remove(0);
    let transfer = transfer_in(&packet);
    assert_eq!((transfer.place, &transfer.data[..], shares), (None, &whole[..], Shares::payload(40)));
    assert_eq!(scene.up, [BundlesIndication::Room(0), sent(1)], "a copy is no reason to wait");
    assert_eq!(scene.wait(), Duration::from_millis(78), "the rate");
    let mut waits = Vec::new();
    while scene.link.poll_timeout().is_some() {
        let waited = scene.wait();
        if !scene.down.is_empty() {
            assert_eq!(scene.down, [to_peer(&packet, Shares::repeated(packet.len()))]);
            waits.push((scene.now, waited));
        }
    }
    let times: Vec<_> = waits.iter().map(|(at, _)| at.saturating_since(Instant::ZERO)).collect();
    assert_eq!(times, [5 * SECOND, 10 * SECOND]);
    let counters = scene.link.counters();
    assert_eq!((counters.copies_sent, counters.segments_sent, counters.payload_sent), (2, 1, 40));
}

#[test]
fn copies_keep_to_the_rate_and_leave_before_new_data() {
    // 72 bytes and 28 of headers take a tenth of a second.
    let config = Config { copies: 2, copy_interval: Duration::from_millis(150), ..paced() };
    let mut scene = Scene::new(config);
    let whole = bundle(600);
    scene.open(1, 600);
    let (mut given, mut kinds, mut free_at) = (0, String::new(), Instant::ZERO);
    loop {
        let room = scene.told.min((whole.len() - given) as u64) as usize;
        if room > 0 {
            given += room;
            scene.piece(1, &whole[given - room..given], given == whole.len());
        } else {
            scene.wait();
        }
        for (bytes, shares) in scene.sent() {
            assert!(bytes.len() <= 72 && scene.now >= free_at, "at {}", scene.now);
            free_at = scene.now + Duration::from_millis(bytes.len() as u64 + 28);
            kinds.push(if shares.repeated > 0 { 'c' } else { 'n' });
        }
        if given == whole.len() && scene.link.poll_timeout().is_none() {
            break;
        }
    }
    // Two leave before the first copy is due; from then on a copy is due whenever the rate permits another datagram.
    assert_eq!(kinds, "nnccnnccnnccnnccnnccnc");
}

#[test]
fn new_data_wait_while_too_many_bytes_wait_for_their_copies() {
    let config = Config { copies: 2, copies_bytes_max: 200, copy_interval: 10 * SECOND, ..unpaced() };
    let mut scene = Scene::new(config);
    for number in 1..=2 {
        scene.give(number, &bundle(60));
    }
    // Twice 69 bytes wait, and another 72 might be too many.
    assert_eq!((scene.told, scene.link.poll_timeout()), (0, Some(Instant::from_secs(10))));
    scene.wait();
    assert_eq!((scene.down.len(), scene.told), (2, 72));
    scene.give(3, &bundle(60));
}

#[test]
fn a_link_that_goes_down_or_a_transfer_that_is_cancelled_ends_in_the_middle() {
    let mut scene = Scene::new(Config { copies: 2, ..unpaced() });
    scene.open(1, 500);
    scene.piece(1, &bundle(60), false);
    assert_eq!((scene.sent().len(), scene.link.poll_timeout().is_some()), (1, true));
    scene.ask(BundlesRequest::Cancel { transfer: TransferId(1) });
    assert_eq!(scene.up, [failed(1, TransferFailure::Cancelled), BundlesIndication::Room(72)]);
    scene.open(2, 500);
    scene.piece(2, &bundle(60), false);
    scene.hear(DatagramsIndication::Left(CloseReason::Refused));
    assert_eq!(scene.up[0], failed(2, TransferFailure::LinkDown));
    // Another socket may have another port, from which a segment would belong to no transfer.
    assert_eq!(scene.wait(), SECOND, "only the socket is opened again");
    scene.hear(joined(Some(PeerId::CONFIGURED)));
    scene.hear(DatagramsIndication::Room(10));
    assert_eq!((scene.link.poll_timeout(), &scene.down[..]), (None, &[][..]));
}

/// A node that knows only RFC 7122, and one that sends transfers: what fits a datagram has the same bytes in both directions.
#[test]
fn nodes_with_and_without_transfers_understand_each_other_if_bundles_fit() {
    let draft = Config { datagram_bytes_max: 1_400, keepalive: Some(15 * SECOND), ..unpaced() };
    let plain = Config { transfers: false, ..draft.clone() };
    for (from, to) in [(&draft, &plain), (&plain, &draft)] {
        let (mut here, mut there) = (Scene::new(from.clone()), Scene::new(to.clone()));
        let whole = bundle(1_400);
        here.open(1, 1_400);
        here.piece(1, &whole, true);
        let datagrams = here.sent();
        assert_eq!(datagrams, [(Bytes::from(whole.clone()), Shares::payload(1_400))], "RFC 7122 3.2");
        there.hear(datagram(&datagrams[0].0));
        assert_eq!(there.risen(), [whole]);
        here.wait();
        assert_eq!(here.sent(), [(Bytes::from_static(&[0; 4]), Shares::control(4))], "RFC 7122 3.4");
        there.hear(datagram(&here.sent()[0].0));
        assert_eq!((&there.up[..], &there.down[..]), (&[][..], &[DatagramsRequest::Release(4)][..]));
        assert_eq!(there.link.counters().keepalives_received, 1);
    }
}
