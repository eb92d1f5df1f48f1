//! Peers that break the rules.

use super::SECOND;
use super::scene::{Scene, contents};
use crate::norm::Config;
use crate::norm::wire::{
    Ack, AckContents, Body, Command, Data, FecScheme, Flags, Fti, Levels, Message, Nack, NodeId, PayloadId,
    RepairForm, RepairItem, RepairRequest, SenderFields, Timestamp,
};
use crate::observe::Observation;
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
