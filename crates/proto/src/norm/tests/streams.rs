//! Streams: transfers, messages, late and slow receivers, gaps.

use super::SECOND;
use super::hostile::stream;
use super::scene::{Scene, contents};
use crate::norm::Config;
use crate::norm::wire::{Body, Command, FecScheme, Flags, Fti, Message};
use crate::service::ObjectsRequest;
use crate::time::Duration;
use bytes::Bytes;

const MILLIS: Duration = Duration::from_millis(1);
/// Buffer of three blocks of 64 segments.
const BUFFER_BYTES: u64 = 3 * 64 * 1_400;

fn config() -> Config {
    Config { rate_bps: 10_000_000, grtt: SECOND / 10, ..Config::default() }
}

fn pair(config: Config, loss: f64, delay: Duration, seed: u64) -> Scene {
    Scene::new(vec![config.clone(), config], false, delay, seed).losing(loss)
}

/// The only object that a node has received.
fn received(scene: &Scene, node: usize) -> &super::scene::Received {
    assert_eq!(scene.nodes[node].received.len(), 1);
    scene.nodes[node].received.values().next().expect("one")
}

/// Bytes sent for each byte of a stream of a megabyte.
fn cost(config: Config, loss: f64, delay: Duration) -> f64 {
    let bytes = contents(1_000_000, 1);
    let mut scene = pair(config, loss, delay, 1);
    scene.open(0, 1, 10 * BUFFER_BYTES);
    scene.write_all(0, 1, bytes.clone());
    assert!(scene.run_until(SECOND * 600, |scene| !scene.nodes[0].sent.is_empty()), "it is acknowledged");
    let received = received(&scene, 1);
    assert!(received.is_whole && received.bytes == bytes && received.gaps.is_empty());
    assert_eq!(received.messages, [0], "the first byte begins a message");
    scene.counters(0).bytes_sent as f64 / bytes.len() as f64
}

#[test]
fn a_stream_takes_the_bytes_that_its_losses_take() {
    for loss in [0.0, 0.05, 0.2] {
        for delay in [MILLIS, 50 * MILLIS] {
            let bytes = cost(config(), loss, delay);
            println!("loss {loss}, delay {} ms: {bytes:.4} bytes", delay.as_millis());
            assert!(bytes < 1.07 / (1.0 - loss), "{bytes} at {loss}");
        }
    }
}

#[test]
fn every_scheme_and_size_of_block_carries_streams() {
    for (fec_scheme, block_symbols, parity_symbols, auto_parity) in [
        (FecScheme::ReedSolomon8, 16, 8, 2),
        (FecScheme::ReedSolomon8, 200, 55, 0),
        (FecScheme::ReedSolomon, 64, 16, 16),
        (FecScheme::SmallBlock, 64, 0, 0),
        (FecScheme::SmallBlock, 1, 2, 1),
    ] {
        let settings = Config { fec_scheme, block_symbols, parity_symbols, auto_parity, ..config() };
        cost(settings, 0.2, MILLIS);
    }
}

/// Messages of 1 to 3,000 bytes, one every 50 ms.
#[test]
fn messages_arrive_when_they_are_flushed_and_their_beginnings_are_told() {
    for loss in [0.0, 0.05, 0.2] {
        let mut scene = pair(config(), loss, 10 * MILLIS, 7);
        scene.open(0, 1, BUFFER_BYTES);
        let (mut sent, mut begins) = (Vec::new(), Vec::new());
        for index in 0..200 {
            let message = contents(1 + (index * 37) % 3_000, index as u64);
            begins.push(sent.len());
            sent.extend_from_slice(&message);
            scene.write_message(0, 1, message);
            scene.run(50 * MILLIS);
            if loss == 0.0 {
                assert!(received(&scene, 1).bytes == sent, "message {index} is there at once");
            }
        }
        assert!(scene.run_until(SECOND * 60, |scene| scene.nodes[0].acknowledged == sent.len() as u64));
        assert!(received(&scene, 1).bytes == sent && received(&scene, 1).messages == begins);
        assert!(scene.nodes[0].sent.is_empty(), "it is open");
        let quiet = scene.tape.len();
        scene.run(SECOND * 60);
        assert!(scene.tape.len() < quiet + 30, "only probes: {}", scene.tape.len() - quiet);
        scene.request(0, ObjectsRequest::Content { object: 1, data: Bytes::new(), last: true });
        assert!(scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()));
        let received = received(&scene, 1);
        assert!(received.is_whole && received.bytes == sent && received.gaps.is_empty());
    }
}

/// Without a flush, bytes that do not fill a segment wait; those that do are repaired after a while, in a group as well.
#[test]
fn bytes_that_do_not_fill_a_segment_wait_and_the_others_are_asked_about() {
    for is_group in [false, true] {
        let settings = Config { group_size: Some(10), ..config() };
        let mut scene = Scene::new(vec![settings; 2], is_group, MILLIS, 7);
        scene.open(0, 1, BUFFER_BYTES);
        scene.deafen(1, true);
        scene.request(0, ObjectsRequest::Content { object: 1, data: contents(3_000, 1), last: false });
        scene.run(SECOND / 2);
        scene.deafen(1, false);
        let has_arrived = |scene: &Scene| scene.nodes[1].received.values().any(|of| of.bytes.len() == 2_800);
        assert!(scene.run_until(SECOND * 10, has_arrived), "group: {is_group}");
        assert!(received(&scene, 1).bytes == contents(3_000, 1)[..2_800]);
        scene.run(SECOND * 10);
        assert_eq!(scene.nodes[0].acknowledged, if is_group { 0 } else { 2_800 });
    }
}

/// A receiver that begins later has the stream from the first message that it hears, or from the first that can be repaired.
#[test]
fn a_late_receiver_begins_with_a_message() {
    for earlier_objects in [true, false] {
        let mut configs = vec![Config { backoff_factor: Some(0), grtt: SECOND / 50, ..config() }; 2];
        configs[1].earlier_objects = earlier_objects;
        let mut scene = Scene::new(configs.clone(), true, MILLIS, 3).losing(0.05);
        scene.deafen(1, true);
        scene.open(0, 1, BUFFER_BYTES);
        let (mut sent, mut begins) = (Vec::new(), Vec::new());
        for index in 0..600 {
            if index == 500 {
                // All before has left by then.
                scene.run(SECOND * 3);
                scene.deafen(1, false);
            }
            let message = contents(3_000 + index, index as u64);
            begins.push(sent.len());
            sent.extend_from_slice(&message);
            assert!(scene.run_until(SECOND * 60, |scene| scene.nodes[0].room() >= message.len() as u64));
            scene.write_message(0, 1, message);
            scene.run(MILLIS);
        }
        scene.request(0, ObjectsRequest::Content { object: 1, data: Bytes::new(), last: true });
        assert!(scene.run_until(SECOND * 600, |scene| scene.nodes[1].received.values().any(|r| r.is_whole)));
        let received = received(&scene, 1);
        assert!(sent.ends_with(&received.bytes) && received.gaps.is_empty() && received.messages[0] == 0);
        let from = sent.len() - received.bytes.len();
        let of_late: Vec<usize> = begins.iter().filter(|at| **at >= from).map(|at| at - from).collect();
        assert_eq!(received.messages, of_late);
        // A message has three segments. The first that is heard is in block 23, whose first whole message is 491; the buffer has
        // blocks 21 and 22 as well.
        let first = begins.iter().position(|at| *at == from).expect("a message");
        assert_eq!(first, if earlier_objects { 448 } else { 491 });
    }
}

/// Nobody waits for a receiver that is away: what has left the buffer in the meantime is a gap.
#[test]
fn a_receiver_that_was_away_is_told_its_gap() {
    let settings = Config { backoff_factor: Some(1), group_size: Some(10), grtt: SECOND / 50, ..config() };
    let mut scene = Scene::new(vec![settings; 3], true, MILLIS, 3).losing(0.05);
    let bytes = contents(3_000_000, 1);
    scene.open(0, 1, BUFFER_BYTES);
    scene.write_all(0, 1, bytes.clone());
    scene.run(SECOND);
    scene.deafen(1, true);
    scene.run(SECOND);
    scene.deafen(1, false);
    assert!(scene.run_until(SECOND * 600, |scene| {
        scene.nodes[1..].iter().all(|node| node.received.values().any(|received| received.is_whole))
    }));
    assert!(received(&scene, 2).bytes == bytes && received(&scene, 2).gaps.is_empty());
    let [(at, missing)] = received(&scene, 1).gaps[..] else { panic!("{:?}", received(&scene, 1).gaps) };
    let (before, after) = received(&scene, 1).bytes.split_at(at);
    assert!(missing > 100_000 && bytes.starts_with(before) && bytes.ends_with(after));
    assert_eq!(before.len() + missing as usize + after.len(), bytes.len());
    assert!(scene.counters(0).blocks_released > 10 && scene.counters(1).gaps == 1);
}

/// The first symbol of a block tells that the oldest one has left the buffer: what follows the gap does not wait for the second.
#[test]
fn a_block_is_given_up_when_the_one_begins_that_takes_its_place() {
    // A buffer of two blocks of two segments.
    let fti = Fti { object_bytes: 400, segment_bytes: 100, block_symbols: 2, parity_symbols: 1 };
    let mut scene = pair(config(), 0.0, MILLIS, 1);
    for (block, symbol, offset) in [(0, 0, 0), (1, 0, 200), (1, 1, 300)] {
        scene.deliver(0, 1, false, stream(block, symbol, fti, offset, 100));
    }
    assert_eq!(received(&scene, 1).bytes.len(), 100, "the second segment can still come");
    scene.deliver(0, 1, false, stream(2, 0, fti, 400, 100));
    let received = received(&scene, 1);
    assert_eq!((received.bytes.len(), &received.gaps[..]), (400, &[(100, 100)][..]));
}

/// The sender tells a receiver that was away which block is the first that can be repaired.
#[test]
fn a_request_for_a_block_that_has_left_the_buffer_is_answered_by_squelch() {
    let settings = Config { backoff_factor: Some(1), group_size: Some(10), grtt: SECOND / 50, ..config() };
    let mut scene = Scene::new(vec![settings; 2], true, MILLIS, 3);
    scene.open(0, 1, BUFFER_BYTES);
    // It hears the beginning, and at the end only questions, which do not tell that the buffer has only three blocks.
    let write = |scene: &mut Scene, bytes: usize| {
        for index in 0..bytes / 10_000 {
            assert!(scene.run_until(SECOND * 60, |scene| scene.nodes[0].room() >= 10_000));
            let data = contents(10_000, index as u64);
            scene.request(0, ObjectsRequest::Content { object: 1, data, last: false });
        }
        scene.request(0, ObjectsRequest::Flush { object: 1 });
    };
    write(&mut scene, 50_000);
    scene.run(SECOND);
    scene.deafen(1, true);
    write(&mut scene, 400_000);
    scene.run(SECOND * 2);
    let before = scene.counters(0).squelches_sent;
    let range_of_blocks = scene.tape.iter().rev().find_map(|(_, node, bytes)| {
        let message = Message::decode(&mut bytes.clone()).expect("a message");
        match message.body {
            Body::Data(data) if *node == 0 && data.flags.has(Flags::STREAM) => Some(data.id.block),
            _ => None,
        }
    });
    assert!(range_of_blocks > Some(3));
    // A NACK for the first block.
    let nack = super::hostile::nack_for_block(&scene, 0);
    scene.deliver(1, 0, false, nack);
    scene.run(SECOND / 2);
    assert!(scene.counters(0).squelches_sent > before);
    let squelched = scene.tape.iter().rev().find_map(|(_, node, bytes)| {
        let message = Message::decode(&mut bytes.clone()).expect("a message");
        match message.body {
            Body::Command(command) if *node == 0 => match command.command {
                Command::Squelch { id, .. } => Some(id),
                _ => None,
            },
            _ => None,
        }
    });
    let id = squelched.expect("a SQUELCH");
    assert!(id.symbol == 0 && Some(id.block + 2) == range_of_blocks, "{id:?} of {range_of_blocks:?}");
}

/// The user of the receiver takes a while for each piece: the sender waits, and loses nothing.
#[test]
fn a_slow_receiver_holds_the_sender_back() {
    let settings = Config { unaccepted_bytes_max: 100_000, ..config() };
    let mut scene = pair(settings, 0.05, MILLIS, 5);
    scene.nodes[1].accepts = false;
    let bytes = contents(1_500_000, 1);
    scene.open(0, 1, BUFFER_BYTES);
    scene.write_all(0, 1, bytes.clone());
    let mut accepted = 0;
    while scene.nodes[0].sent.is_empty() {
        assert!(scene.now.as_secs_f64() < 600.0);
        scene.run(SECOND / 4);
        assert!(scene.nodes[0].acknowledged <= accepted, "what is not accepted is not acknowledged");
        if let Some((incoming, received)) = scene.nodes[1].received.iter().next() {
            let (incoming, up_to) = (*incoming, received.bytes.len() as u64);
            accepted = up_to;
            scene.request(1, ObjectsRequest::Accept { incoming, up_to });
        }
    }
    assert!(received(&scene, 1).is_whole && received(&scene, 1).bytes == bytes);
    assert!(received(&scene, 1).gaps.is_empty() && scene.counters(1).dropped > 0);
}

#[test]
fn a_cancelled_stream_is_lost_and_the_next_object_arrives() {
    let mut scene = pair(config(), 0.05, MILLIS, 5);
    scene.open(0, 1, BUFFER_BYTES);
    scene.request(0, ObjectsRequest::Content { object: 1, data: contents(50_000, 1), last: false });
    scene.run(SECOND / 2);
    scene.request(0, ObjectsRequest::Cancel { object: 1 });
    scene.send_data(0, 2, contents(50_000, 2));
    assert!(scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()));
    assert_eq!(scene.nodes[0].failed, [1]);
    let received: Vec<_> = scene.nodes[1].received.values().collect();
    assert!(received[0].is_lost && received[1].is_whole && received[1].bytes == contents(50_000, 2));
}

/// Objects before and after a stream, and a stream without contents.
#[test]
fn streams_and_objects_are_acknowledged_in_their_order() {
    let mut scene = pair(config(), 0.1, MILLIS, 5);
    scene.send_data(0, 1, contents(100_000, 1));
    assert!(scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()));
    scene.open(0, 2, 0);
    scene.write_all(0, 2, contents(1_000_000, 2));
    assert!(scene.run_until(SECOND * 60, |scene| scene.nodes[0].sent.len() == 2));
    scene.open(0, 3, BUFFER_BYTES);
    scene.write_all(0, 3, Bytes::new());
    assert!(scene.run_until(SECOND * 60, |scene| scene.nodes[0].sent.len() == 3));
    scene.send_data(0, 4, contents(100_000, 4));
    assert!(scene.run_until(SECOND * 60, |scene| scene.nodes[0].sent.len() == 4));
    let received: Vec<_> = scene.nodes[1].received.values().collect();
    let lengths: Vec<_> = received.iter().map(|received| (received.bytes.len(), received.is_whole)).collect();
    assert_eq!(lengths, [(100_000, true), (1_000_000, true), (0, true), (100_000, true)]);
    assert!(received[1].bytes == contents(1_000_000, 2));
}

/// A silent receiver cannot request anything, and the stream goes on behind what it has lost.
#[test]
fn a_silent_receiver_passes_over_what_it_cannot_restore() {
    let settings = Config {
        silent: true,
        auto_parity: 2,
        block_symbols: 16,
        backoff_factor: Some(0),
        grtt: SECOND / 50,
        ..config()
    };
    let mut scene = Scene::new(vec![settings; 2], true, MILLIS, 3).losing(0.1);
    let bytes = contents(2_000_000, 1);
    scene.open(0, 1, 0);
    scene.write_all(0, 1, bytes.clone());
    scene.run(SECOND * 60);
    let received = received(&scene, 1);
    let missing: u32 = received.gaps.iter().map(|(_, missing)| missing).sum();
    assert!(received.gaps.len() > 3 && received.bytes.len() > 500_000, "{:?}", received.gaps);
    assert!(received.bytes.len() + missing as usize <= bytes.len());
    let mut at = 0;
    let ends = received.gaps.iter().map(|(at, _)| *at).chain([received.bytes.len()]);
    let gaps = received.gaps.iter().map(|(_, missing)| *missing as usize).chain([0]);
    let mut from = 0;
    for (end, gap) in ends.zip(gaps) {
        assert!(received.bytes[at..end] == bytes[from..from + end - at]);
        (from, at) = (from + end - at + gap, end);
    }
}
