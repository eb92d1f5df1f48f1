//! Dialogues: time in seconds, direction (`>` from the active side, `<` from the passive side), message. One way takes
//! half a second.

use super::scene::{CALL, Scene, Taste};
use crate::laws::StreamConditions;
use crate::service::{
    BundlesIndication, BundlesRequest, CloseReason, DownReason, LinkId, RefuseReason, TransferFailure,
    TransferId,
};
use crate::tcpcl::{Config, Tls, Versions};
use crate::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const CALLED: LinkId = LinkId(LinkId::FIRST_INCOMING);

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 251) as u8).collect()
}

/// Segments of 100 bytes, to keep dialogues short.
fn small(config: Config) -> Config {
    Config { segment_bytes: 100, segment_mru: 1000, transfer_mru: 5000, reconnect_jitter: 0.0, ..config }
}

fn three(name: &str) -> Config {
    small(Config::version_3(name))
}

fn four(name: &str) -> Config {
    small(Config::version_4(name))
}

fn both(name: &str) -> Config {
    Config { versions: Versions::Both, ..four(name) }
}

/// Two nodes with a session, five seconds after the start.
fn scene(caller: Config, called: Config) -> Scene {
    let mut scene =
        Scene::new(caller, called, StreamConditions { delay: SECOND / 2, ..StreamConditions::fair() });
    scene.connect();
    scene.run(5 * SECOND);
    scene
}

#[track_caller]
fn assert_story(scene: &Scene, expected: &str) {
    let told = scene.story().join("\n");
    let expected: Vec<_> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let found: Vec<_> = told.lines().map(str::trim).collect();
    assert_eq!(found, expected, "the story is\n{told}");
}

/// The dialogue from a time on.
fn since(scene: &Scene, second: f64) -> Vec<String> {
    let late = |line: &String| line[..7].trim().parse::<f64>().expect("a time") >= second;
    scene.story().into_iter().filter(late).map(|line| line.trim().to_owned()).collect()
}

fn downs(scene: &Scene, node: usize) -> Vec<(f64, DownReason, bool)> {
    let down = |told: &(crate::time::Instant, usize, BundlesIndication)| match told.2 {
        BundlesIndication::Down { reason, retry } if told.1 == node => {
            Some((told.0.as_secs_f64(), reason, retry))
        }
        _ => None,
    };
    scene.told.iter().filter_map(down).collect()
}

fn failed(transfer: u64, reason: TransferFailure, acked: u64) -> BundlesIndication {
    BundlesIndication::Failed { transfer: TransferId(transfer), reason, acked }
}

fn sent(transfer: u64) -> BundlesIndication {
    BundlesIndication::Sent { transfer: TransferId(transfer) }
}

#[test]
fn version_4_from_beginning_to_end() {
    let mut scene = scene(four("ipn:1.0"), four("ipn:2.0"));
    scene.send(0, 1, content(250));
    scene.send(0, 2, content(60));
    scene.run(5 * SECOND);
    scene.close(0);
    scene.run(5 * SECOND);
    assert_story(
        &scene,
        "0.500 > CONTACT 4
         1.000 < CONTACT 4
         1.500 > INIT ipn:1.0 60s segment 1000 transfer 5000
         2.000 < INIT ipn:2.0 60s segment 1000 transfer 5000
         5.000 > SEGMENT #0 100 start of 250
         5.000 > SEGMENT #0 100
         5.000 > SEGMENT #0 50 end
         5.000 > SEGMENT #1 60 start end
         5.500 < ACK #0 100 start
         5.500 < ACK #0 200
         5.500 < ACK #0 250 end
         5.500 < ACK #1 60 start end
         10.000 > TERM Unknown
         10.500 < TERM Unknown reply",
    );
    assert_eq!(
        scene.parcels(1).iter().map(|parcel| parcel.bytes.clone()).collect::<Vec<_>>(),
        [content(250), content(60)]
    );
    assert!(scene.told(0).contains(&sent(1)) && scene.told(0).contains(&sent(2)));
    assert_eq!(downs(&scene, 0), [(11.0, DownReason::Closed, false)]);
    assert_eq!(downs(&scene, 1), [(11.5, DownReason::PeerClosed, false)]);
    assert_eq!([scene.sessions(0), scene.sessions(1)], [1, 0], "who was called is dropped");
}

#[test]
fn version_3_from_beginning_to_end() {
    let mut scene = scene(three("dtn://moon"), three("dtn://earth"));
    scene.send(0, 1, content(250));
    scene.send(0, 2, content(60));
    scene.run(5 * SECOND);
    scene.close(0);
    scene.run(5 * SECOND);
    assert_story(
        &scene,
        "0.500 > CONTACT 3 dtn://moon 60s acks reactive refusal lengths
         0.500 < CONTACT 3 dtn://earth 60s acks reactive refusal lengths
         5.000 > LENGTH 250
         5.000 > SEGMENT 100 start
         5.000 > SEGMENT 100
         5.000 > SEGMENT 50 end
         5.000 > SEGMENT 60 start end
         5.500 < ACK 100
         5.500 < ACK 200
         5.500 < ACK 250
         5.500 < ACK 60
         10.000 > SHUTDOWN
         10.500 < SHUTDOWN",
    );
    assert_eq!(scene.parcels(1)[0].bytes, content(250));
    assert!(scene.told(0).contains(&sent(1)) && scene.told(0).contains(&sent(2)));
    assert_eq!(downs(&scene, 0), [(11.0, DownReason::Closed, false)]);
    assert_eq!([scene.sessions(0), scene.sessions(1)], [1, 0], "who was called is dropped");
}

#[test]
fn who_is_called_answers_in_the_version_of_the_caller() {
    let up = |config| {
        let scene = scene(config, both("ipn:2.0"));
        scene.story().into_iter().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(up(three("dtn://a"))[1], "1.000 < CONTACT 3 ipn:2.0 60s acks reactive refusal lengths");
    assert_eq!(up(four("ipn:1.0"))[1], "1.000 < CONTACT 4");
    assert_eq!(up(both("ipn:1.0"))[1], "1.000 < CONTACT 4");
}

#[test]
fn a_caller_of_both_versions_falls_back_to_3() {
    let scene = scene(both("dtn://a"), three("dtn://b"));
    assert_story(
        &scene,
        "0.500 > CONTACT 4
         0.500 < CONTACT 3 dtn://b 60s acks reactive refusal lengths
         1.000 < SHUTDOWN VersionMismatch
         2.500 > CONTACT 3 dtn://a 60s acks reactive refusal lengths
         2.500 < CONTACT 3 dtn://b 60s acks reactive refusal lengths",
    );
    assert_eq!(downs(&scene, 0), [(1.0, DownReason::Version, true)]);
    assert!(matches!(scene.told(0)[1], BundlesIndication::Up { .. }), "at the second attempt");
}

#[test]
fn versions_that_do_not_meet() {
    let mut scene = scene(three("dtn://a"), four("ipn:2.0"));
    scene.run(2 * SECOND);
    let story = scene.story();
    assert_eq!(story[1].trim(), "1.000 < CONTACT 4");
    assert_eq!(story[2].trim(), "1.000 < TERM VersionMismatch");
    let reasons: Vec<_> = downs(&scene, 0);
    assert_eq!(reasons[0], (1.5, DownReason::Version, true));
    assert!(reasons.len() > 1 && scene.told(1).is_empty(), "it calls again, and the called is never up");
}

#[test]
fn a_segment_is_acknowledged_when_all_of_it_is_safe() {
    for (caller, called) in [(three("dtn://a"), three("dtn://b")), (four("ipn:1.0"), four("ipn:2.0"))] {
        let version_3 = caller.versions == Versions::Three;
        let mut scene = scene(caller, called);
        scene.taste(1, Taste::Waits);
        scene.send(0, 1, content(250));
        scene.run(5 * SECOND);
        let transfer = scene.told.iter().find_map(|told| match told.2 {
            BundlesIndication::Begin { transfer, .. } => Some(transfer),
            _ => None,
        });
        let transfer = transfer.expect("it has begun");
        let quiet = since(&scene, 5.5);
        assert!(quiet.is_empty(), "nothing is acknowledged that is not safe: {quiet:?}");
        for up_to in [99, 199, 250] {
            scene.ask(1, CALLED, BundlesRequest::Accept { transfer, up_to });
            scene.run(SECOND);
        }
        let expected = match version_3 {
            true => ["11.000 < ACK 100", "12.000 < ACK 200", "12.000 < ACK 250"],
            false => ["11.000 < ACK #0 100 start", "12.000 < ACK #0 200", "12.000 < ACK #0 250 end"],
        };
        assert_eq!(since(&scene, 5.5), expected);
        assert_eq!(scene.told(0).last(), Some(&sent(1)));
    }
}

#[test]
fn without_acknowledgements_what_is_written_counts_as_sent() {
    let mut scene = scene(three("dtn://a"), Config { acknowledgements: false, ..three("dtn://b") });
    scene.send(0, 1, content(150));
    assert_eq!(scene.told(0).last(), Some(&sent(1)));
    scene.run(5 * SECOND);
    assert_eq!(scene.parcels(1)[0].bytes, content(150));
    assert_eq!(since(&scene, 5.5), Vec::<String>::new());
    scene.close(1);
    scene.run(5 * SECOND);
    assert_eq!(downs(&scene, 1), [(11.0, DownReason::Closed, false)]);
}

#[test]
fn the_answers_of_two_bundles_keep_their_order() {
    let mut scene = scene(four("ipn:1.0"), four("ipn:2.0"));
    scene.taste(1, Taste::Waits);
    scene.send(0, 1, content(60));
    scene.send(0, 2, content(70));
    scene.run(SECOND);
    let numbers: Vec<_> = scene
        .told(1)
        .iter()
        .filter_map(|said| match said {
            BundlesIndication::Begin { transfer, .. } => Some(*transfer),
            _ => None,
        })
        .collect();
    scene.ask(1, CALLED, BundlesRequest::Accept { transfer: numbers[1], up_to: 70 });
    scene.run(SECOND);
    assert_eq!(since(&scene, 5.5), Vec::<String>::new(), "the first is not safe yet");
    scene.ask(1, CALLED, BundlesRequest::Accept { transfer: numbers[0], up_to: 60 });
    scene.run(SECOND);
    assert_eq!(since(&scene, 5.5), ["7.000 < ACK #0 60 start end", "7.000 < ACK #1 70 start end"]);
}

#[test]
fn a_refused_bundle_stops_and_the_next_one_goes() {
    let conditions = |scene: &mut Scene| scene.streams.conditions().window = 300;
    for (caller, called) in [(three("dtn://a"), three("dtn://b")), (four("ipn:1.0"), four("ipn:2.0"))] {
        let version_3 = caller.versions == Versions::Three;
        let mut scene =
            Scene::new(caller, called, StreamConditions { delay: SECOND / 2, ..StreamConditions::fair() });
        conditions(&mut scene);
        scene.connect();
        scene.run(5 * SECOND);
        scene.taste(1, Taste::Refuses(RefuseReason::NoResources));
        scene.send(0, 1, content(1000));
        scene.run(SECOND);
        scene.taste(1, Taste::Takes);
        scene.send(0, 2, content(50));
        scene.run(4 * SECOND);
        let reason = TransferFailure::Refused(RefuseReason::NoResources);
        assert!(scene.told(0).contains(&failed(1, reason, 0)), "{:?}", scene.told(0));
        assert_eq!(scene.told(0).last(), Some(&sent(2)));
        let story = since(&scene, 5.0).join("\n");
        let (sent, refused) = (story.matches("SEGMENT").count(), story.matches("REFUSE").count());
        assert!(sent < 8, "the rest is not sent:\n{story}");
        if version_3 {
            assert_eq!(refused, sent - 1, "every segment has its answer (RFC 7242 5.4):\n{story}");
        } else {
            assert!(refused >= 1, "{story}");
        }
        assert_eq!(scene.parcels(1).last().expect("the second").bytes, content(50));
        assert!(downs(&scene, 0).is_empty());
    }
}

#[test]
fn a_refusal_after_the_last_segment() {
    let mut scene = scene(four("ipn:1.0"), four("ipn:2.0"));
    scene.taste(1, Taste::Waits);
    scene.send(0, 1, content(250));
    scene.run(SECOND);
    let BundlesIndication::Begin { transfer, .. } = scene.told(1)[1] else { panic!("{:?}", scene.told(1)) };
    scene.ask(1, CALLED, BundlesRequest::Accept { transfer, up_to: 100 });
    let reason = RefuseReason::NotAcceptable;
    scene.ask(1, CALLED, BundlesRequest::Refuse { transfer, reason });
    scene.run(SECOND);
    assert_eq!(since(&scene, 5.5), ["6.000 < ACK #0 100 start", "6.000 < REFUSE #0 NotAcceptable"]);
    assert_eq!(scene.told(0).last(), Some(&failed(1, TransferFailure::Refused(reason), 100)));
}

#[test]
fn a_peer_that_knows_no_refusals_is_left_and_called_again() {
    let config = |name| Config { refusal: false, lengths: false, ..three(name) };
    let mut scene = scene(config("dtn://a"), config("dtn://b"));
    scene.taste(1, Taste::Refuses(RefuseReason::NoResources));
    scene.send(0, 1, content(250));
    scene.run(SECOND);
    assert!(
        since(&scene, 5.5).iter().all(|line| !line.contains("ACK")),
        "what is not safe is not acknowledged"
    );
    assert_eq!(since(&scene, 5.5), ["5.500 < SHUTDOWN Busy"]);
    scene.run(3 * SECOND);
    assert_eq!(downs(&scene, 1), [(5.5, DownReason::Busy, false)]);
    assert_eq!(downs(&scene, 0)[0].1, DownReason::Busy);
    assert!(matches!(scene.told(0).last(), Some(BundlesIndication::Up { .. })));
}

#[test]
fn what_the_peer_takes_is_respected() {
    let mut scene = scene(four("ipn:1.0"), Config { segment_mru: 64, transfer_mru: 500, ..four("ipn:2.0") });
    scene.send(0, 1, content(501));
    scene.send(0, 2, content(130));
    scene.run(SECOND);
    assert_eq!(scene.told(0)[1], failed(1, TransferFailure::TooLong, 0));
    assert_eq!(
        &since(&scene, 5.0)[..3],
        ["5.000 > SEGMENT #0 64 start of 130", "5.000 > SEGMENT #0 64", "5.000 > SEGMENT #0 2 end"]
    );
}

#[test]
fn a_limit_that_the_peer_announces_and_does_not_have_can_be_overruled() {
    let here = Config { transfer_mtu_min: 600, ..four("ipn:1.0") };
    let mut scene = scene(here, Config { transfer_mru: 500, ..four("ipn:2.0") });
    scene.send(0, 1, content(600));
    scene.send(0, 2, content(601));
    scene.run(SECOND);
    assert!(since(&scene, 5.0).iter().any(|line| line.contains("start of 600")), "it is tried");
    assert!(scene.told(0).contains(&failed(2, TransferFailure::TooLong, 0)));
}

#[test]
fn an_idle_session_says_a_byte_an_interval() {
    let mut scene = scene(Config::dtn2("dtn://a"), Config::dtn2("dtn://b"));
    scene.run(50 * SECOND);
    assert_story(
        &scene,
        "0.500 > CONTACT 3 dtn://a 10s acks reactive
         0.500 < CONTACT 3 dtn://b 10s acks reactive
         11.000 > KEEPALIVE
         11.000 < KEEPALIVE
         21.000 > KEEPALIVE
         21.000 < KEEPALIVE
         31.000 > KEEPALIVE
         31.000 < KEEPALIVE
         41.000 > KEEPALIVE
         41.000 < KEEPALIVE
         51.000 > KEEPALIVE
         51.000 < KEEPALIVE",
    );
    let mut silent = self::scene(Config { keepalive: Duration::ZERO, ..three("dtn://a") }, three("dtn://b"));
    silent.run(100_000 * SECOND);
    assert_eq!(silent.story().len(), 2, "no keep-alives, no cost");
    assert!(downs(&silent, 0).is_empty());
}

#[test]
fn dtn2_leaves_a_silent_peer_and_calls_it_again() {
    let mut scene = scene(Config::dtn2("dtn://a"), Config::dtn2("dtn://b"));
    scene.streams.stall();
    scene.streams.conditions().refuse = 1.0;
    scene.run(300 * SECOND);
    let downs = downs(&scene, 0);
    assert_eq!(downs[0], (31.0, DownReason::KeepAlive, true));
    // Refusals arrive a second after each attempt; each delay is twice the one before.
    let times: Vec<_> = downs.iter().map(|down| down.0).collect();
    assert_eq!(times, [31.0, 37.0, 48.0, 69.0, 110.0, 191.0]);
    scene.streams.conditions().refuse = 0.0;
    scene.run(400 * SECOND);
    assert!(matches!(scene.told(0).last(), Some(BundlesIndication::Up { .. })));
}

#[test]
fn after_a_cut_no_acknowledged_byte_is_sent_again() {
    for (caller, called) in [(three("dtn://a"), three("dtn://b")), (four("ipn:1.0"), four("ipn:2.0"))] {
        for reactive in [true, false] {
            let with = |config: Config| Config { reactive_fragmentation: reactive, ..config };
            let mut scene = Scene::new(
                with(caller.clone()),
                with(called.clone()),
                StreamConditions { delay: SECOND / 2, window: 500, ..StreamConditions::fair() },
            );
            scene.connect();
            scene.run(5 * SECOND);
            scene.send(0, 1, content(2000));
            scene.run(SECOND * 7 / 4);
            scene.streams.cut(scene.now);
            scene.run(SECOND / 10);
            let acked = scene.told(0).iter().find_map(|said| match said {
                BundlesIndication::Failed { acked, reason: TransferFailure::LinkDown, .. } => Some(*acked),
                _ => None,
            });
            let acked = acked.expect("it broke");
            let parcel = scene.parcels(1)[0].clone();
            assert!(parcel.lost && !parcel.whole);
            assert_eq!(parcel.bytes, content(2000)[..parcel.bytes.len()]);
            if reactive {
                assert!(acked >= 200 && acked <= parcel.accepted, "{acked} of {}", parcel.accepted);
            } else {
                assert_eq!(acked, 0, "a receiver that keeps nothing has nothing safe");
            }
            assert_eq!(downs(&scene, 0)[0].1, DownReason::Stream(CloseReason::TimedOut));
            scene.run(10 * SECOND);
            scene.send(0, 2, content(2000)[acked as usize..].to_vec());
            scene.run(30 * SECOND);
            assert_eq!(scene.told(0).last(), Some(&sent(2)));
            let rest = scene.parcels(1).last().expect("the rest").bytes.clone();
            assert_eq!([&content(2000)[..acked as usize], &rest].concat(), content(2000));
        }
    }
}

#[test]
fn an_idle_session_ends_and_comes_back_when_asked() {
    for (caller, called) in [(three("dtn://a"), three("dtn://b")), (four("ipn:1.0"), four("ipn:2.0"))] {
        let mut scene = scene(Config { idle_timeout: Some(30 * SECOND), ..caller }, called);
        scene.run(10 * SECOND);
        scene.send(0, 1, content(10));
        scene.run(50 * SECOND);
        let ends = downs(&scene, 0);
        assert_eq!((ends.len(), ends[0].1, ends[0].2), (1, DownReason::Idle, false));
        assert!(ends[0].0 > 45.0 && ends[0].0 < 48.0, "{ends:?}");
        assert_eq!(downs(&scene, 1)[0].1, DownReason::Idle);
        let quiet = scene.story().len();
        scene.run(100 * SECOND);
        assert_eq!(scene.story().len(), quiet);
        scene.connect();
        scene.run(5 * SECOND);
        assert!(matches!(scene.told(0).last(), Some(BundlesIndication::Up { .. })));
    }
}

#[test]
fn an_ending_session_finishes_what_has_begun() {
    for (caller, called) in [(three("dtn://a"), three("dtn://b")), (four("ipn:1.0"), four("ipn:2.0"))] {
        for who in 0..2 {
            let mut scene = Scene::new(
                caller.clone(),
                called.clone(),
                StreamConditions { delay: SECOND / 2, window: 500, ..StreamConditions::fair() },
            );
            scene.connect();
            scene.run(5 * SECOND);
            scene.send(0, 1, content(2000));
            scene.send(0, 2, content(2000));
            scene.run(SECOND);
            scene.close(who);
            scene.run(30 * SECOND);
            let told = scene.told(0);
            assert!(told.contains(&sent(1)), "{told:?}");
            let second = told.iter().any(|said| {
                let down = TransferFailure::LinkDown;
                matches!(said, BundlesIndication::Failed { transfer: TransferId(2), reason, .. } if *reason == down)
            });
            assert!(second, "no other begins: {told:?}");
            assert_eq!(downs(&scene, who)[0].1, DownReason::Closed);
            assert_eq!(downs(&scene, 1 - who)[0].1, DownReason::PeerClosed);
            assert_eq!(scene.parcels(1)[0].bytes, content(2000));
        }
    }
}

#[test]
fn a_cancelled_bundle_is_never_taken_for_a_whole_one() {
    let pair = |of: fn(&str) -> Config| (of("ipn:1.0"), of("ipn:2.0"));
    for (lengths, (caller, called)) in [(true, pair(four)), (true, pair(three)), (false, pair(three))] {
        let with = |config| Config { lengths, ..config };
        let mut scene = Scene::new(
            with(caller),
            with(called),
            StreamConditions { delay: SECOND / 2, window: 500, ..StreamConditions::fair() },
        );
        scene.connect();
        scene.run(5 * SECOND);
        scene.send(0, 1, content(2000));
        scene.ask(0, CALL, BundlesRequest::Cancel { transfer: TransferId(1) });
        scene.run(10 * SECOND);
        assert!(scene.told(0).contains(&failed(1, TransferFailure::Cancelled, 0)), "{:?}", scene.told(0));
        assert!(scene.parcels(1).iter().all(|parcel| parcel.lost && !parcel.whole));
        assert_eq!(downs(&scene, 0).is_empty(), lengths, "it breaks where the receiver cannot see it");
        scene.send(0, 2, content(50));
        scene.run(2 * SECOND);
        assert_eq!(scene.told(0).last(), Some(&sent(2)));
    }
}

#[test]
fn tls_is_negotiated() {
    let up = |caller, called| {
        let with = |tls, name| Config { tls, contact_timeout: 3 * SECOND, ..four(name) };
        let scene = scene(with(caller, "ipn:1.0"), with(called, "ipn:2.0"));
        let story: Vec<_> = scene.story().iter().map(|line| line.trim().to_owned()).collect();
        (story, scene.streams.secured, downs(&scene, 0))
    };
    let (story, secured, _) = up(Tls::Prefer, Tls::Off);
    assert_eq!((&story[0][..], &story[1][..], secured), ("0.500 > CONTACT 4 tls", "1.000 < CONTACT 4", 0));
    let (story, secured, _) = up(Tls::Prefer, Tls::Require);
    assert_eq!((&story[2][6..], secured), ("> INIT ipn:1.0 60s segment 1000 transfer 5000", 2));
    let (story, secured, ends) = up(Tls::Off, Tls::Require);
    assert_eq!((&story[2][..], secured), ("1.000 < TERM ContactFailure", 0));
    assert_eq!(ends[0].1, DownReason::Contact);
    let (_, secured, ends) = up(Tls::Require, Tls::Off);
    assert_eq!((secured, ends[0].1), (0, DownReason::Insecure));
}

#[test]
fn what_tls_proves_decides_whether_the_session_begins() {
    let with = |name, tls_identity| Config { tls: Tls::Require, tls_identity, ..four(name) };
    let told = |called: &[&str], caller: &[&str], trusted: bool, tls_identity: bool| {
        let (here, there) = (with("ipn:1.0", tls_identity), with("dtn://two/", tls_identity));
        let mut scene =
            Scene::new(here, there, StreamConditions { delay: SECOND / 2, ..StreamConditions::fair() });
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        scene.streams.proven = [(owned(called), trusted), (owned(caller), true)];
        scene.connect();
        scene.run(5 * SECOND);
        let terms = scene.story().iter().filter(|line| line.contains("TERM ContactFailure")).count();
        (downs(&scene, 0).first().map(|down| down.1), terms)
    };
    assert_eq!(
        told(&["dtn://else/", "dtn://two"], &["ipn:1.0"], true, true),
        (None, 0),
        "any of them will do"
    );
    assert_eq!(told(&[], &[], true, false), (None, 0), "nothing is proven, and nothing was asked for");
    let (down, terms) = told(&[], &["ipn:1.0"], true, true);
    assert_eq!((down, terms > 0), (Some(DownReason::Identity), true), "nothing is proven");
    let (down, terms) = told(&["dtn://else/"], &["ipn:1.0"], true, false);
    assert_eq!((down, terms > 0), (Some(DownReason::Identity), true), "another is proven");
    let (down, terms) = told(&["dtn://two/"], &["ipn:1.0"], false, true);
    assert_eq!((down, terms > 0), (Some(DownReason::Identity), true), "its name is not in order");
    let (down, terms) = told(&["dtn://two/"], &["ipn:7.0"], true, true);
    assert_eq!((down, terms > 0), (Some(DownReason::Contact), true), "the peer refuses");
}

#[test]
fn a_peer_with_the_wrong_name_is_refused() {
    for config in [three("dtn://a"), four("dtn://a")] {
        let expecting = Config { peer_node_id: Some("dtn://b".to_owned()), ..config.clone() };
        let scene = scene(expecting, Config { node_id: "dtn://mallory".to_owned(), ..config });
        assert_eq!(downs(&scene, 0)[0].1, DownReason::Identity);
        assert!(!scene.told(0).iter().any(|said| matches!(said, BundlesIndication::Up { .. })));
    }
}
