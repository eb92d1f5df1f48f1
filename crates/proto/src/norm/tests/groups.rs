//! Groups of receivers.

use super::SECOND;
use super::scene::{Scene, contents};
use crate::norm::Config;
use crate::norm::wire::{Body, Command, Message};
use crate::time::Duration;

const RECEIVERS: u32 = 20;

fn config(acknowledging: Vec<u32>) -> Config {
    Config {
        rate_bps: 10_000_000,
        grtt: SECOND / 20,
        group_size: Some(10),
        acknowledging,
        ..Config::default()
    }
}

/// A sender, and receivers that lose independently; all of them acknowledge.
fn group(receivers: u32, loss: f64, change: impl Fn(Config) -> Config) -> Scene {
    group_with_seed(receivers, loss, 7, change)
}

fn group_with_seed(receivers: u32, loss: f64, seed: u64, change: impl Fn(Config) -> Config) -> Scene {
    let mut configs = vec![change(config((2..2 + receivers).collect()))];
    configs.extend((0..receivers).map(|_| change(config(Vec::new()))));
    Scene::new(configs, true, Duration::from_millis(5), seed).losing(loss)
}

/// Bytes sent by the sender for each byte of an object.
fn cost(mut scene: Scene) -> f64 {
    let bytes = contents(1_000_000, 1);
    scene.send_data(0, 1, bytes.clone());
    assert!(scene.run_until(SECOND * 600, |scene| !scene.nodes[0].sent.is_empty()), "all acknowledge");
    for node in &scene.nodes[1..] {
        let received: Vec<_> = node.received.values().collect();
        assert!(received.len() == 1 && received[0].is_whole && received[0].bytes == bytes);
    }
    scene.counters(0).bytes_sent as f64 / bytes.len() as f64
}

/// Headers take 2.3 % of the bytes. With blocks of 64, no sender could serve 20 receivers with less than 1.057 times the symbols.
#[test]
fn many_receivers_cost_little_more_than_one() {
    const SEEDS: u64 = 4;
    for (block_symbols, parity_symbols, times) in [(64, 16, 1.10), (128, 64, 1.06), (200, 55, 1.05)] {
        let change = |config| Config { block_symbols, parity_symbols, ..config };
        let mean = |receivers| {
            let costs = (1..=SEEDS).map(|seed| cost(group_with_seed(receivers, 0.05, seed, change)));
            costs.sum::<f64>() / SEEDS as f64
        };
        let (one, many) = (mean(1), mean(RECEIVERS));
        println!(
            "blocks of {block_symbols}: one receiver {one:.4}, {RECEIVERS} receivers {many:.4}: {:.4} times",
            many / one
        );
        assert!(one < 1.06 * 1.023 && many < times * one, "{one} {many}");
    }
}

/// The sender repeats the requests that came to it alone, and so do receivers that see those of others not.
#[test]
fn receivers_request_what_others_have_not_requested() {
    for group_answers in [true, false] {
        let mut scene =
            group(RECEIVERS, 0.05, |config| Config { group_answers, group_size: Some(50), ..config });
        scene.send_data(0, 1, contents(500_000, 1));
        assert!(scene.run_until(SECOND * 600, |scene| !scene.nodes[0].sent.is_empty()));
        let sum = |count: fn(&crate::norm::Counters) -> u64| -> u64 {
            (1..scene.nodes.len()).map(|node| count(scene.counters(node))).sum()
        };
        let (sent, suppressed) =
            (sum(|counters| counters.nacks_sent), sum(|counters| counters.nacks_suppressed));
        assert!(suppressed > sent, "{suppressed} suppressed, {sent} sent");
        let is_advertisement = |bytes: &bytes::Bytes| {
            let message = Message::decode(&mut bytes.clone()).expect("a message");
            matches!(message.body, Body::Command(command) if matches!(command.command, Command::RepairAdv { .. }))
        };
        let advertised = scene.tape.iter().filter(|(_, _, bytes)| is_advertisement(bytes)).count();
        assert_eq!(advertised > 0, !group_answers);
    }
}

/// Nobody is known who must acknowledge.
#[test]
fn objects_without_acknowledgements_are_sent_when_nobody_requests_more() {
    let configs = vec![config(Vec::new()); 4];
    let mut scene = Scene::new(configs, true, Duration::from_millis(5), 3).losing(0.2);
    let objects: Vec<_> = (0..5).map(|object| contents(100_000, object)).collect();
    for (object, bytes) in (0..).zip(&objects) {
        scene.send_data(0, object, bytes.clone());
    }
    assert!(scene.run_until(SECOND * 600, |scene| scene.nodes[0].sent.len() == 5));
    for node in &scene.nodes[1..] {
        let mut received: Vec<_> = node.received.values().filter(|received| received.is_whole).collect();
        received.sort_by_key(|received| objects.iter().position(|bytes| *bytes == received.bytes));
        assert!(
            received.len() == 5
                && received.iter().zip(&objects).all(|(received, bytes)| received.bytes == *bytes)
        );
    }
    assert!(scene.counters(0).flushes_sent >= 20);
}

#[test]
fn a_silent_receiver_sends_nothing_and_is_served_by_parity_symbols() {
    let change =
        |config: Config| Config { silent: true, auto_parity: 16, acknowledging: Vec::new(), ..config };
    let mut scene = group(1, 0.05, change);
    let bytes = contents(300_000, 1);
    scene.send_data(0, 1, bytes.clone());
    assert!(scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()));
    let received: Vec<_> = scene.nodes[1].received.values().collect();
    assert!(received.len() == 1 && received[0].is_whole && received[0].bytes == bytes);
    assert!(scene.tape.iter().all(|(_, node, _)| *node == 0), "no answer");
    assert!(scene.counters(1).symbols_restored > 0);
}

/// A member that is away holds back the acknowledgement of the others' objects, and then fails them.
#[test]
fn an_object_fails_if_a_receiver_is_silent() {
    let mut scene = group(3, 0.0, |config| Config { silence_limit: SECOND * 5, ..config });
    scene.deafen(2, true);
    scene.send_data(0, 1, contents(10_000, 1));
    scene.run(SECOND * 4);
    assert!(scene.nodes[0].sent.is_empty() && scene.nodes[0].failed.is_empty());
    assert!(scene.run_until(SECOND * 60, |scene| !scene.nodes[0].failed.is_empty()));
    assert_eq!(scene.counters(0).silent, 1);
    scene.deafen(2, false);
    scene.run(SECOND * 10);
    scene.send_data(0, 2, contents(10_000, 1));
    assert!(scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()), "it works again");
}
