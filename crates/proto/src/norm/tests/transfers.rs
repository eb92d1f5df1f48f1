//! Transfers of objects.

use super::SECOND;
use super::scene::{Scene, contents};
use crate::norm::Config;
use crate::norm::wire::{Body, Data, FecScheme, Flags, Fti, Message, NodeId, PayloadId, SenderFields};
use crate::service::{ObjectKind, ObjectsRequest, RefuseReason};
use crate::time::Duration;
use bytes::Bytes;

const MILLIS: Duration = Duration::from_millis(1);

fn config() -> Config {
    Config { rate_bps: 10_000_000, grtt: SECOND / 10, ..Config::default() }
}

/// Sends one object of a megabyte to one receiver, and returns the share of the rate at which it was acknowledged, and the bytes
/// sent for each of its bytes.
fn efficiency(config: Config, loss: f64, delay: Duration, seed: u64) -> (f64, f64) {
    let rate = config.rate_bps as f64;
    let bytes = contents(1_000_000, seed);
    let mut scene = Scene::new(vec![config.clone(), config], false, delay, seed).losing(loss);
    scene.send_data(0, 1, bytes.clone());
    assert!(scene.run_until(SECOND * 600, |scene| !scene.nodes[0].sent.is_empty()), "it is acknowledged");
    let received: Vec<_> = scene.nodes[1].received.values().collect();
    assert!(received.len() == 1 && received[0].is_whole && received[0].bytes == bytes);
    let seconds = scene.nodes[0].sent[0].1.as_secs_f64();
    let sent = scene.counters(0).bytes_sent as f64;
    (bytes.len() as f64 * 8.0 / seconds / rate, sent / bytes.len() as f64)
}

#[test]
fn an_object_takes_the_time_and_the_bytes_that_its_losses_take() {
    for loss in [0.0, 0.01, 0.05, 0.1, 0.2] {
        for delay in [MILLIS, 100 * MILLIS] {
            let (_, bytes) = efficiency(config(), loss, delay, 1);
            let least = 1.0 / (1.0 - loss);
            assert!(bytes < least * 1.07, "{bytes} at {loss}");
        }
    }
}

#[test]
fn objects_with_descriptions_arrive_with_them() {
    let mut scene = Scene::new(vec![config(), config()], false, MILLIS, 3).losing(0.2);
    let name = Bytes::from_static(b"photo.jpg");
    for object in 0..30 {
        let bytes = contents(5_000 * object as usize, object);
        scene.send(0, object, ObjectKind::File, Some(name.clone()), bytes);
    }
    assert!(scene.run_until(SECOND * 600, |scene| scene.nodes[0].sent.len() == 30));
    let received = &scene.nodes[1].received;
    assert_eq!(received.len(), 30);
    for received in received.values() {
        let object = received.bytes.len() as u64 / 5_000;
        assert_eq!((received.kind, received.info.as_ref()), (ObjectKind::File, Some(&name)));
        assert!(received.bytes == contents(5_000 * object as usize, object));
    }
}

/// The receiver loses its state when it has acknowledged some objects; the sender, when some are not acknowledged.
#[test]
fn restarts_lose_no_object_that_is_not_acknowledged() {
    let mut scene = Scene::new(vec![config(), config()], false, 20 * MILLIS, 5).losing(0.1);
    for object in 0..20 {
        scene.send_data(0, object, contents(100_000, object));
    }
    assert!(scene.run_until(SECOND * 60, |scene| scene.nodes[0].sent.len() >= 5));
    let sent = scene.nodes[0].sent.len() as u64;
    scene.restart(1, config(), 99);
    assert!(scene.run_until(SECOND * 60, |scene| scene.nodes[0].sent.len() == 20));
    let has = |scene: &Scene, object: u64| {
        let bytes = contents(100_000, object);
        scene.nodes[1].received.values().any(|received| received.is_whole && received.bytes == bytes)
    };
    assert!((sent..20).all(|object| has(&scene, object)), "{sent} were acknowledged before");

    scene.send_data(0, 20, contents(100_000, 20));
    scene.run(SECOND / 20);
    scene.restart(0, config(), 98);
    scene.send_data(0, 21, contents(100_000, 21));
    assert!(
        scene.run_until(SECOND * 60, |scene| scene.nodes[0].sent.last().is_some_and(|sent| sent.0 == 21))
    );
    assert!(has(&scene, 21) && !has(&scene, 20));
    assert_eq!(scene.counters(1).restarts, 1);
}

#[test]
fn what_is_not_accepted_is_not_acknowledged() {
    let mut scene = Scene::new(vec![config(), config()], false, MILLIS, 5);
    scene.nodes[1].accepts = false;
    scene.send_data(0, 1, contents(10_000, 1));
    scene.run(SECOND * 5);
    assert!(scene.nodes[1].received[&0].is_whole && scene.nodes[0].sent.is_empty());
    scene.request(1, ObjectsRequest::Accept { incoming: 0, up_to: 9_999 });
    scene.run(SECOND);
    assert!(scene.nodes[0].sent.is_empty());
    scene.request(1, ObjectsRequest::Accept { incoming: 0, up_to: 10_000 });
    assert!(scene.run_until(SECOND, |scene| !scene.nodes[0].sent.is_empty()));
}

/// A refused object fails at its sender, and does not hold back the others.
#[test]
fn a_refused_object_fails_and_others_are_acknowledged() {
    for (reason, fails) in [(RefuseReason::NoResources, true), (RefuseReason::Completed, false)] {
        let mut scene = Scene::new(vec![config(), config()], false, MILLIS, 5).losing(0.3);
        scene.nodes[1].accepts = false;
        for object in 0..3 {
            scene.send_data(0, object, contents(10_000, object));
        }
        assert!(scene.run_until(SECOND * 60, |scene| scene.nodes[1].received.len() == 3));
        let second = contents(10_000, 1);
        let is_second = |received: &super::scene::Received| {
            second.starts_with(&received.bytes) && !received.bytes.is_empty()
        };
        assert!(scene.run_until(SECOND * 60, |scene| {
            scene.nodes[1].received.values().all(|received| received.is_whole)
        }));
        let incoming: Vec<_> = scene.nodes[1]
            .received
            .iter()
            .map(|(incoming, received)| (*incoming, is_second(received)))
            .collect();
        for (incoming, is_second) in incoming {
            scene.request(
                1,
                match is_second {
                    true => ObjectsRequest::Refuse { incoming, reason },
                    false => ObjectsRequest::Accept { incoming, up_to: 10_000 },
                },
            );
        }
        let ended = |scene: &Scene| scene.nodes[0].sent.len() + scene.nodes[0].failed.len() == 3;
        assert!(scene.run_until(SECOND * 60, ended), "{reason:?}");
        assert_eq!(scene.nodes[0].failed, if fails { vec![1] } else { vec![] });
    }
}

/// The peer is away in the middle of an object for longer than questions are repeated, but not for too long.
#[test]
fn an_interruption_delays_an_object() {
    let mut scene = Scene::new(vec![config(), config()], false, 20 * MILLIS, 5).losing(0.05);
    let bytes = contents(1_000_000, 1);
    scene.send_data(0, 1, bytes.clone());
    scene.run(SECOND / 3);
    scene.deafen(1, true);
    scene.run(SECOND * 50);
    scene.deafen(1, false);
    assert!(scene.run_until(SECOND * 20, |scene| !scene.nodes[0].sent.is_empty()));
    assert!(scene.nodes[1].received.values().any(|received| received.is_whole && received.bytes == bytes));
    assert_eq!(scene.counters(0).objects_failed, 0);
}

#[test]
fn every_scheme_and_size_of_block_carries_objects() {
    for (fec_scheme, block_symbols, parity_symbols) in [
        (FecScheme::ReedSolomon8, 16, 8),
        (FecScheme::ReedSolomon8, 200, 55),
        (FecScheme::ReedSolomon, 64, 16),
        (FecScheme::SmallBlock, 64, 0),
        (FecScheme::SmallBlock, 1, 2),
    ] {
        let settings = Config { fec_scheme, block_symbols, parity_symbols, ..config() };
        let mut scene = Scene::new(vec![settings.clone(), settings], false, MILLIS, 5).losing(0.2);
        let bytes = contents(333_333, 1);
        scene.send_data(0, 1, bytes.clone());
        assert!(scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()), "{block_symbols}");
        assert!(scene.nodes[1].received[&0].bytes == bytes);
    }
}

/// NRL's receivers answer from a port of their own.
#[test]
fn a_receiver_that_answers_from_another_address_acknowledges() {
    let mut scene = Scene::new(vec![config(), config()], false, MILLIS, 5).losing(0.1);
    scene.answers_from_elsewhere = true;
    let bytes = contents(100_000, 1);
    scene.send_data(0, 1, bytes.clone());
    assert!(scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()));
    assert!(scene.nodes[1].received[&0].bytes == bytes);
}

/// NRL's senders state the backoff factor of groups to their only receivers, too, and give up before such a delay ends.
#[test]
fn the_only_receiver_requests_at_once_whatever_the_backoff_factor() {
    let settings = Config { earlier_objects: false, ..config() };
    let mut scene = Scene::new(vec![config(), settings], false, MILLIS, 5);
    scene.run(SECOND);
    let fti = Fti { object_bytes: 1_600, segment_bytes: 100, block_symbols: 8, parity_symbols: 4 };
    let sender = SenderFields { instance: 7, grtt: 200, backoff: 4, group_size: 2 };
    let (scheme, payload) = (FecScheme::ReedSolomon8, Bytes::from(vec![1; 100]));
    for block in 0..2 {
        let id = PayloadId { block, block_symbols: 0, symbol: 1 };
        let (fti, payload) = (Some(fti), payload.clone());
        let data = Data { sender, flags: Flags(0), scheme, object: 0, id, fti, payload };
        let message = Message { sequence: 0, source: NodeId(9), body: Body::Data(data) };
        scene.deliver(0, 1, false, message.to_bytes());
    }
    let is_nack =
        |bytes: &Bytes| matches!(Message::decode(&mut bytes.clone()).map(|m| m.body), Ok(Body::Nack(_)));
    let requested = scene.tape.iter().filter(|(_, node, bytes)| *node == 1 && is_nack(bytes));
    assert_eq!(requested.map(|(at, ..)| *at).collect::<Vec<_>>(), [scene.now]);
}
