//! Sessions: their configuration, ends and probes, and how long they keep objects that nobody acknowledges.

use super::SECOND;
use super::scene::{Scene, contents};
use crate::engine::Engine;
use crate::norm::{Config, Session};
use crate::rng::Rng;
use crate::service::{
    CloseReason, DatagramsIndication, DownReason, ObjectsIndication, ObjectsRequest, PeerId,
};
use crate::setting::Settings;
use crate::time::{Duration, Instant};

const MILLIS: Duration = Duration::from_millis(1);

/// All that a session tells its user now.
fn told(session: &mut Session) -> Vec<ObjectsIndication> {
    core::iter::from_fn(|| session.poll_indication(Instant::ZERO)).collect()
}

/// The provider opens such a session: before that, the user was not told that it is up.
#[test]
fn a_listening_session_is_down_only_after_it_was_up() {
    let listening = || Session::listening(Config::default(), Rng::new(1));
    let mut never_up = listening();
    never_up.handle_request(Instant::ZERO, ObjectsRequest::Connect);
    never_up.handle_request(Instant::ZERO, ObjectsRequest::Close);
    assert_eq!(told(&mut never_up), []);

    let mut session = listening();
    let joined =
        DatagramsIndication::Joined { bytes_max: 65_507, peer: Some(PeerId::CONFIGURED), group: None };
    session.handle_indication(Instant::ZERO, joined);
    assert!(matches!(told(&mut session)[..], [ObjectsIndication::Up { .. }, ..]));
    session.handle_indication(Instant::ZERO, DatagramsIndication::Left(CloseReason::Finished));
    let reason = DownReason::Stream(CloseReason::Finished);
    assert_eq!(told(&mut session), [ObjectsIndication::Down { reason, retry: false }]);
}

/// Probes leave at intervals of their own, from one second on, while there is anything to send.
#[test]
fn another_object_brings_no_probe_forward() {
    let config = Config { rate_bps: 1_000_000, grtt: SECOND / 10, ..Config::default() };
    let mut scene = Scene::new(vec![config.clone(), config], false, MILLIS, 1);
    scene.send_data(0, 0, contents(100_000, 0));
    scene.run(SECOND / 4);
    assert_eq!(scene.counters(0).probes_sent, 1);
    for object in 1..5 {
        scene.send_data(0, object, contents(10_000, object));
        scene.run(SECOND / 20);
    }
    assert!(scene.nodes[0].sent.is_empty(), "the first object is still on its way");
    assert_eq!(scene.counters(0).probes_sent, 1);
}

/// Until the questions after the last symbol have brought no requests, only an object without room displaces another one.
#[test]
fn objects_without_acknowledgements_stay_while_there_is_room() {
    for (objects_max, is_displaced) in [(255, false), (4, true)] {
        let config = Config {
            rate_bps: 10_000_000,
            grtt: SECOND / 20,
            group_size: Some(10),
            objects_max,
            ..Config::default()
        };
        let mut scene = Scene::new(vec![config; 2], true, MILLIS * 5, 1);
        for object in 0..50 {
            scene.send_data(0, object, contents(2_000, object));
            scene.run(SECOND / 5);
        }
        assert_eq!(!scene.nodes[0].sent.is_empty(), is_displaced, "room for {objects_max}");
    }
}

/// Each wait, also those that have to be in order.
#[test]
fn waits_beyond_their_limits_are_refused() {
    type Change = fn(&mut Config, Duration);
    let waits: [(&str, Change); 9] = [
        ("grtt", |config, wait| config.grtt = wait),
        ("grtt-max", |config, wait| config.grtt_max = wait),
        ("probe-min", |config, wait| config.probe_min = wait),
        ("probe-max", |config, wait| config.probe_max = wait),
        ("watermark-interval", |config, wait| config.watermark_interval = wait),
        ("inactivity-limit", |config, wait| config.inactivity_limit = wait),
        ("silence-limit", |config, wait| config.silence_limit = wait),
        ("retry-min", |config, wait| config.retry_min = wait),
        ("retry-max", |config, wait| config.retry_max = wait),
    ];
    Config::default().check().expect("the defaults are within");
    for (key, change) in waits {
        for wait in [Duration::ZERO, Duration::MAX] {
            let mut config = Config::default();
            change(&mut config, wait);
            let fault = config.check().expect_err(key);
            // No time is within an upper limit of zero.
            let expected = if key == "grtt-max" && wait.is_zero() { "grtt" } else { key };
            assert_eq!(fault.key, expected);
        }
    }
    let shorter = Config { probe_max: SECOND, probe_min: 2 * SECOND, ..Config::default() };
    assert_eq!(shorter.check().expect_err("no interval").key, "probe-max");
    let shorter = Config { retry_max: SECOND, retry_min: 2 * SECOND, ..Config::default() };
    assert_eq!(shorter.check().expect_err("no interval").key, "retry-max");
}
