//! Peers that break the rules.

use super::SECOND;
use super::scene::{Scene, contents};
use crate::norm::Config;
use crate::norm::wire::{
    Ack, AckContents, Body, Command, Data, FecScheme, Flags, Fti, Levels, Message, Nack, NodeId, PayloadId,
    RepairForm, RepairItem, RepairRequest, SenderFields, StreamFields, Timestamp,
};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::ObjectKind;
use crate::time::Duration;
use bytes::Bytes;

const MILLIS: Duration = Duration::from_millis(1);

fn config() -> Config {
    Config { rate_bps: 10_000_000, grtt: SECOND / 10, ..Config::default() }
}

fn held(scene: &Scene, node: usize) -> u64 {
    let mut view = Observation::default();
    crate::engine::Engine::observe(&scene.nodes[node].session, &mut view);
    let part = view.parts.iter().find(|part| part.engine == "norm").expect("its part");
    part.number("bytes_held").expect("it is told")
}

fn data(object: u16, block: u32, symbol: u16, fti: Fti, payload: usize) -> Bytes {
    let sender = SenderFields { instance: 7, grtt: 100, backoff: 0, group_size: 0 };
    let id = PayloadId { block, block_symbols: 0, symbol };
    let (scheme, payload) = (FecScheme::ReedSolomon8, Bytes::from(vec![1; payload]));
    let body = Body::Data(Data { sender, flags: Flags(0), scheme, object, id, fti: Some(fti), payload });
    Message { sequence: 0, source: NodeId(9), body }.to_bytes()
}

#[test]
fn stated_sizes_take_no_memory() {
    let mut scene = Scene::new(vec![config(), config()], false, MILLIS, 1);
    let huge =
        Fti { object_bytes: (1 << 48) - 1, segment_bytes: 1400, block_symbols: 64, parity_symbols: 16 };
    scene.deliver(0, 1, false, data(0, 0, 0, huge, 1400));
    assert_eq!((scene.counters(1).objects_ignored, held(&scene, 1)), (1, 0));
    let strange = [
        Fti { object_bytes: 1000, segment_bytes: 0, block_symbols: 64, parity_symbols: 16 },
        Fti { object_bytes: 1000, segment_bytes: 100, block_symbols: 0, parity_symbols: 16 },
        Fti { object_bytes: 1000, segment_bytes: 100, block_symbols: 200, parity_symbols: 200 },
    ];
    for (object, fti) in (1..).zip(strange) {
        scene.deliver(0, 1, false, data(object, 0, 0, fti, 100));
    }
    assert_eq!((scene.counters(1).objects_ignored, held(&scene, 1)), (4, 0));
}

#[test]
fn memory_is_bounded_whatever_objects_and_blocks_begin() {
    let limit = 1 << 20;
    let settings = Config { incoming_bytes_max: limit, ..config() };
    let mut scene = Scene::new(vec![config(), settings], false, MILLIS, 1);
    let fti = Fti { object_bytes: 60 << 20, segment_bytes: 60_000, block_symbols: 64, parity_symbols: 16 };
    for object in 0..5_000_u16 {
        scene.deliver(
            0,
            1,
            false,
            data(object.wrapping_mul(7), u32::from(object % 16), object % 64, fti, 60_000),
        );
        // The next block of the oldest object has room in any case.
        assert!(held(&scene, 1) <= limit + 64 * 60_000 + 10_000, "{object}");
    }
    assert!(scene.nodes[1].received.values().filter(|received| !received.is_lost).count() <= 256);
    scene.send_data(0, 1, contents(100_000, 1));
    assert!(
        scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()),
        "an honest sender is served"
    );
}

/// A stranger requests everything again and again.
#[test]
fn repetitions_of_requests_cause_at_most_one_repair_in_a_round_trip() {
    let mut scene = Scene::new(vec![config(), config()], false, 50 * MILLIS, 1);
    scene.send_data(0, 1, contents(1_000_000, 1));
    scene.run(SECOND / 2);
    let first = scene.tape.iter().find_map(|(_, node, bytes)| {
        let message = Message::decode(&mut bytes.clone()).expect("a message");
        match message.body {
            Body::Data(data) if *node == 0 => Some(data),
            _ => None,
        }
    });
    let data = first.expect("data have left");
    let item = |object| RepairItem { scheme: data.scheme, object, id: PayloadId::default() };
    let requests = vec![RepairRequest {
        form: RepairForm::Items,
        levels: Levels::OBJECT,
        items: vec![item(data.object), item(data.object.wrapping_sub(3)), item(data.object.wrapping_add(9))],
    }];
    let (sender, instance, grtt_response) = (NodeId(1), data.sender.instance, Timestamp::default());
    let before = *scene.counters(0);
    for source in 0..1_000 {
        let body = Body::Nack(Nack { sender, instance, grtt_response, cc: None, requests: requests.clone() });
        let nack = Message { sequence: 0, source: NodeId(100 + source), body };
        scene.deliver(1, 0, false, nack.to_bytes());
    }
    scene.run(SECOND / 10);
    let repairs = scene.counters(0).repairs_sent - before.repairs_sent;
    assert!(repairs <= 450, "{repairs}: those of the blocks that had left");
    assert_eq!(scene.counters(0).squelches_sent - before.squelches_sent, 1);
    assert!(scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()));
}

#[test]
fn senders_are_bounded() {
    let settings = Config { senders_max: 8, ..config() };
    let mut scene = Scene::new(vec![config(), settings], false, MILLIS, 1);
    let fti = Fti { object_bytes: 1_000, segment_bytes: 100, block_symbols: 8, parity_symbols: 0 };
    for source in 0..1_000 {
        let mut bytes = data(0, 0, 0, fti, 100).to_vec();
        bytes[4..8].copy_from_slice(&(1_000 + source as u32).to_be_bytes());
        scene.deliver(0, 1, false, bytes.into());
    }
    assert_eq!(scene.counters(1).displaced, 992);
    assert!(held(&scene, 1) < 8 * 2_000);
}

/// The peer answers from the configured address; somebody else acknowledges in its place.
#[test]
fn a_stranger_does_not_acknowledge_in_place_of_the_receiver() {
    let mut scene = Scene::new(vec![config(), config()], false, 50 * MILLIS, 1);
    scene.send_data(0, 1, contents(1_000_000, 1));
    scene.run(SECOND / 2);
    let acknowledge = |scene: &Scene| {
        let flush = scene.tape.iter().rev().find_map(|(_, node, bytes)| {
            let message = Message::decode(&mut bytes.clone()).expect("a message");
            match message.body {
                Body::Command(command) if *node == 0 => match command.command {
                    Command::Flush { scheme, object, id, .. } => {
                        Some((command.sender.instance, AckContents::Flush { scheme, object, id }))
                    }
                    _ => None,
                },
                _ => None,
            }
        });
        let (instance, contents) = flush.expect("a FLUSH has left");
        let (sender, grtt_response) = (NodeId(1), Timestamp::default());
        let body = Body::Ack(Ack { sender, instance, id: 0, grtt_response, cc: None, contents });
        Message { sequence: 0, source: NodeId(2), body }.to_bytes()
    };
    scene.deafen(1, true);
    scene.run(SECOND);
    let forged = acknowledge(&scene);
    scene.answers_from_elsewhere = true;
    scene.deliver(1, 0, false, forged.clone());
    assert!(scene.nodes[0].sent.is_empty());
    scene.answers_from_elsewhere = false;
    scene.deliver(1, 0, false, forged);
    assert_eq!(scene.nodes[0].sent.len(), 1);
}

/// A NACK for a block of the object of which the last data have left.
pub(super) fn nack_for_block(scene: &Scene, block: u32) -> Bytes {
    let data = scene.tape.iter().rev().find_map(|(_, node, bytes)| {
        let message = Message::decode(&mut bytes.clone()).expect("a message");
        match message.body {
            Body::Data(data) if *node == 0 => Some(data),
            _ => None,
        }
    });
    let data = data.expect("data have left");
    let id = PayloadId { block, ..PayloadId::default() };
    let items = vec![RepairItem { scheme: data.scheme, object: data.object, id }];
    let requests = vec![RepairRequest { form: RepairForm::Items, levels: Levels::BLOCK, items }];
    let (sender, instance, grtt_response) = (NodeId(1), data.sender.instance, Timestamp::default());
    let body = Body::Nack(Nack { sender, instance, grtt_response, cc: None, requests });
    Message { sequence: 0, source: NodeId(2), body }.to_bytes()
}

/// A segment of a stream, with which a message begins.
pub(super) fn stream(block: u32, symbol: u16, fti: Fti, offset: u32, contents: usize) -> Bytes {
    let sender = SenderFields { instance: 7, grtt: 100, backoff: 0, group_size: 0 };
    let id = PayloadId { block, block_symbols: 0, symbol };
    let mut payload = bytes::BytesMut::new();
    StreamFields { length: contents as u16, message_start: 1, offset }.encode(&mut payload);
    payload.resize(StreamFields::BYTES + contents, 1);
    let (scheme, flags) = (FecScheme::ReedSolomon8, Flags(Flags::STREAM));
    let data = Data { sender, flags, scheme, object: 0, id, fti: Some(fti), payload: payload.freeze() };
    Message { sequence: 0, source: NodeId(9), body: Body::Data(data) }.to_bytes()
}

/// Blocks here and there, offsets of anything, and a buffer as large as can be stated.
#[test]
fn the_memory_of_streams_is_bounded() {
    let limit = 1 << 20;
    let settings = Config { incoming_bytes_max: limit, ..config() };
    let mut scene = Scene::new(vec![config(), settings], false, MILLIS, 1);
    for object_bytes in [0, 1 << 20, (1 << 48) - 1] {
        let fti = Fti { object_bytes, segment_bytes: 60_000, block_symbols: 64, parity_symbols: 16 };
        for index in 0..2_000_u32 {
            let block = index.wrapping_mul(0x9e37_79b1) >> 8;
            let message = stream(block, (index % 64) as u16, fti, index.wrapping_mul(0x9e37_79b1), 60_000);
            scene.deliver(0, 1, false, message);
            assert!(held(&scene, 1) <= limit + 64 * 60_008 + 10_000, "{index}: {}", held(&scene, 1));
        }
    }
    assert!(scene.nodes[1].received.len() == 1, "one object");
    let largest = Fti { object_bytes: 1 << 20, segment_bytes: u16::MAX, block_symbols: 4, parity_symbols: 2 };
    scene.deliver(0, 1, false, stream(0, 0, largest, 0, 100));
    scene.send_data(0, 1, contents(100_000, 1));
    assert!(
        scene.run_until(SECOND * 60, |scene| !scene.nodes[0].sent.is_empty()),
        "an honest sender is served"
    );
}

#[test]
fn segments_that_contradict_themselves_are_lost() {
    let fti = Fti { object_bytes: 10_000, segment_bytes: 100, block_symbols: 4, parity_symbols: 2 };
    let mut scene = Scene::new(vec![config(), config()], false, MILLIS, 1);
    let whole = stream(0, 0, fti, 0, 100);
    let header = whole.len() - 108;
    let mut long = whole.to_vec();
    long[header..header + 2].copy_from_slice(&101_u16.to_be_bytes());
    let mut late = whole.to_vec();
    late[header + 2..header + 4].copy_from_slice(&101_u16.to_be_bytes());
    for bytes in [long, late, whole[..header + 7].to_vec()] {
        scene.deliver(0, 1, false, bytes.into());
    }
    assert_eq!((scene.counters(1).violations, held(&scene, 1)), (3, 0));
    scene.deliver(0, 1, false, whole);
    assert_eq!(scene.nodes[1].received[&0].bytes.len(), 100);
}

/// Messages about a few small objects and streams, in any order.
#[test]
fn no_message_about_a_stream_is_more_than_data() {
    let settings = Config { incoming_bytes_max: 10_000, unaccepted_bytes_max: 10_000, ..config() };
    let (mut streams, mut violations) = (0, 0);
    for seed in 0..6 {
        let mut scene = Scene::new(vec![settings.clone(), settings.clone()], false, MILLIS, seed);
        scene.open(0, 1, 0);
        scene.write_all(0, 1, contents(300_000, seed));
        let mut rng = Rng::new(seed);
        for _ in 0..500 {
            let message = crate::norm::fuzz::likely_message(&mut rng);
            scene.deliver(0, 1, false, message.to_bytes());
            scene.deliver(1, 0, false, message.to_bytes());
            scene.run(MILLIS);
            assert!(held(&scene, 1) <= 10_000 + 300_000, "{seed}: {}", held(&scene, 1));
        }
        let counters = scene.counters(1);
        violations += counters.violations;
        let of_node = scene.nodes[1].received.values();
        streams += of_node.filter(|of| of.kind == ObjectKind::Stream && !of.bytes.is_empty()).count();
    }
    assert!(streams > 10 && violations > 100, "{streams} {violations}");
}
