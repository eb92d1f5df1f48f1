//! Layers over lossy datagrams: scenarios, losses, hostile peers, laws.

use super::incoming::{LATE, SENDERS_MAX, WINDOW};
use super::wire::{LossReport, Packet, Symbol, user_bytes_max};
use super::{Config, Counters, FecDatagrams, fuzz};
use crate::engine::{Engine, drain};
use crate::fec::loss::decode_success;
use crate::fuzz::{over_datagrams, seeds, try_codec, try_play};
use crate::joint::{Fan, Origin, Stack};
use crate::laws::{BundleUserBehaviour, Draw, Layer, hold_over_datagrams};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{CloseReason, DatagramsIndication, DatagramsRequest, LinkId, PeerId, Shares};
use crate::time::{Duration, Instant};
use crate::udpcl;
use crate::wrap::Checked;
use bytes::Bytes;

const PEER: PeerId = PeerId::CONFIGURED;
const IDLE: Duration = Duration::from_millis(20);

/// A layer that is joined, its last output, and the time of it.
struct Scene {
    layer: Checked<FecDatagrams>,
    now: Instant,
    up: Vec<DatagramsIndication>,
    down: Vec<DatagramsRequest>,
}

impl Scene {
    fn with_room(config: Config, room: u64) -> Self {
        let layer = Checked::new("layer", FecDatagrams::new(config, Rng::new(1)));
        let mut scene = Scene { layer, now: Instant::ZERO, up: vec![], down: vec![] };
        scene.ask(DatagramsRequest::Join { damaged: true });
        assert_eq!(scene.down, [DatagramsRequest::Join { damaged: false }]);
        scene.hear(DatagramsIndication::Joined { bytes_max: 1_472, peer: Some(PEER), group: None });
        let bytes_max = user_bytes_max(1_472);
        assert_eq!(scene.up, [DatagramsIndication::Joined { bytes_max, peer: Some(PEER), group: None }]);
        scene.hear(DatagramsIndication::Room(room));
        scene
    }

    fn new(config: Config) -> Self {
        Scene::with_room(config, 100_000)
    }

    fn drain(&mut self) {
        let Scene { layer, now, up, down } = self;
        (*up, *down) = (vec![], vec![]);
        drain(layer, *now, |indication| up.push(indication), |request| down.push(request));
    }

    fn ask(&mut self, request: DatagramsRequest) {
        self.layer.handle_request(self.now, request);
        self.drain();
    }

    fn hear(&mut self, indication: DatagramsIndication) {
        self.layer.handle_indication(self.now, indication);
        self.drain();
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.layer.handle_timeout(self.now);
        self.drain();
    }

    /// Sends a datagram, and returns the packets that leave.
    fn send(&mut self, bytes: &Bytes) -> Vec<Packet> {
        let (bytes, shares) = (bytes.clone(), Shares::payload(bytes.len()));
        self.ask(DatagramsRequest::Datagram { to: PEER, bytes, shares, token: None });
        self.packets()
    }

    fn packets(&self) -> Vec<Packet> {
        let packet = |request: &DatagramsRequest| match request {
            DatagramsRequest::Datagram { bytes, .. } => Some(Packet::decode(&mut bytes.clone()).unwrap()),
            _ => None,
        };
        self.down.iter().filter_map(packet).collect()
    }

    /// Receives a packet, and returns the datagrams that rise; they are released at once.
    fn receive(&mut self, packet: &Packet) -> Vec<Bytes> {
        self.receive_from(PEER, packet.to_bytes())
    }

    fn receive_from(&mut self, from: PeerId, bytes: Bytes) -> Vec<Bytes> {
        self.hear(DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
        let datagrams: Vec<Bytes> = self.up.iter().filter_map(datagram).collect();
        let bytes = datagrams.iter().map(|bytes| bytes.len() as u64).sum();
        self.layer.handle_request(self.now, DatagramsRequest::Release(bytes));
        self.drain();
        datagrams
    }

    fn counters<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let shown = Observation::of(&self.layer);
        names.map(|name| shown.parts[0].counts[name])
    }

    /// A number of the state.
    fn number(&self, name: &str) -> u64 {
        Observation::of(&self.layer).parts[0].number(name).unwrap()
    }
}

fn datagram(indication: &DatagramsIndication) -> Option<Bytes> {
    if let DatagramsIndication::Datagram { bytes, .. } = indication { Some(bytes.clone()) } else { None }
}

/// Datagrams of several lengths, all different.
fn datagrams(count: usize, length_max: u64) -> Vec<Bytes> {
    let mut rng = Rng::new(7);
    let datagram = |at| {
        let mut bytes = vec![0; rng.between(4, length_max) as usize];
        rng.fill(&mut bytes);
        bytes[..4].copy_from_slice(&(at as u32).to_be_bytes());
        bytes.into()
    };
    (0..count).map(datagram).collect()
}

/// Number of repair symbols of each block.
fn fixed(repairs: u32) -> Config {
    Config { loss: 0.0, repair_min: repairs, ..Config::default() }
}

fn source(block: u32, id: u16, bytes: &[u8]) -> Packet {
    Packet { block, id, report: None, symbol: Symbol::Source(Bytes::copy_from_slice(bytes)) }
}

fn repair(block: u32, id: u16, (sources, repairs): (u16, u16), bytes: &[u8]) -> Packet {
    let bytes = Bytes::copy_from_slice(bytes);
    Packet { block, id, report: None, symbol: Symbol::Repair { sources, repairs, bytes } }
}

#[test]
fn datagrams_leave_at_once_and_repair_symbols_when_the_user_has_had_nothing_to_send() {
    let (mut sender, mut receiver) = (Scene::new(fixed(2)), Scene::new(fixed(2)));
    let sent = datagrams(4, 1_400);
    for (id, datagram) in sent.iter().enumerate() {
        sender.wait(IDLE - Duration::from_millis(1));
        let [packet] = &sender.send(datagram)[..] else { panic!("one packet for each datagram") };
        assert_eq!((packet.id, &packet.symbol), (id as u16, &Symbol::Source(datagram.clone())));
        if id != 2 {
            assert_eq!(receiver.receive(packet), sent[id..=id]);
        }
    }
    sender.wait(IDLE - Duration::from_millis(1));
    assert_eq!(sender.packets(), []);
    sender.wait(Duration::from_millis(1));
    let repairs = sender.packets();
    assert_eq!(repairs.iter().map(|packet| packet.id).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(receiver.receive(&repairs[0]), [sent[2].clone()]);
    assert_eq!(receiver.receive(&repairs[1]), [] as [Bytes; 0]);
    let next = sender.send(&sent[0]);
    assert_eq!((next[0].id, next[0].block), (0, repairs[0].block.wrapping_add(1)));
}

#[test]
fn a_full_block_is_followed_by_its_repair_symbols_before_the_next_datagram() {
    let config = Config { block_symbols: 3, ..fixed(2) };
    let mut sender = Scene::with_room(config, 4);
    let sent = datagrams(4, 100);
    let first: Vec<_> = sent[..3].iter().flat_map(|datagram| sender.send(datagram)).collect();
    assert_eq!(first.iter().map(|packet| packet.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(sender.up, [DatagramsIndication::Room(0)], "a repair symbol waits, too");
    sender.hear(DatagramsIndication::Room(3));
    assert_eq!(sender.packets().iter().map(|packet| packet.id).collect::<Vec<_>>(), [4]);
    assert_eq!(sender.up, [DatagramsIndication::Room(2)]);
    assert_eq!(sender.send(&sent[3])[0].id, 0);
}

#[test]
fn deferred_repair_symbols_leave_in_a_pause_for_the_last_full_block_and_the_block_in_progress() {
    let config = Config { block_symbols: 3, deferred: true, ..fixed(1) };
    let (mut sender, mut receiver) = (Scene::new(config.clone()), Scene::new(config));
    let sent = datagrams(8, 1_400);
    let sources: Vec<Packet> = sent.iter().flat_map(|datagram| sender.send(datagram)).collect();
    let first = sources[0].block;
    assert_eq!(
        sources.iter().map(|packet| packet.block - first).collect::<Vec<_>>(),
        [0, 0, 0, 1, 1, 1, 2, 2]
    );
    sender.wait(IDLE);
    let repairs = sender.packets();
    assert_eq!(
        repairs.iter().map(|packet| (packet.block - first, packet.id)).collect::<Vec<_>>(),
        [(1, 3), (2, 2)],
        "the first block is too long ago"
    );
    for lost in [0, 4, 6] {
        let others = sources.iter().enumerate().filter(|(at, _)| at / 3 == lost / 3 && *at != lost);
        others.for_each(|(at, packet)| assert_eq!(receiver.receive(packet), sent[at..=at]));
    }
    let restored: Vec<Bytes> = repairs.iter().flat_map(|packet| receiver.receive(packet)).collect();
    assert_eq!(restored, [sent[4].clone(), sent[6].clone()]);
    assert_eq!(receiver.counters(["blocks_restored", "violations"]), [2, 0]);
    // Nothing is left for another pause, and the next block continues the numbers.
    sender.wait(IDLE * 2);
    assert_eq!((sender.packets(), sender.number("symbols_outgoing_bytes")), (vec![], 0));
    assert_eq!(sender.send(&sent[0])[0].block - first, 3);
    assert_eq!(sender.counters(["blocks_sent"]), [3]);
}

#[test]
fn deferred_repair_symbols_of_two_blocks_leave_in_turn() {
    let mut sender = Scene::new(Config { block_symbols: 4, deferred: true, ..fixed(2) });
    let sources: Vec<Packet> = datagrams(7, 100).iter().flat_map(|datagram| sender.send(datagram)).collect();
    sender.wait(IDLE);
    let first = sources[0].block;
    let left = sender.packets();
    let left: Vec<_> = left.iter().map(|packet| (packet.block - first, packet.id)).collect();
    assert_eq!(left, [(0, 4), (1, 3), (0, 5), (1, 4)]);
}

#[test]
fn deferred_repair_symbols_leave_only_while_the_user_sends_nothing() {
    const PACE: Duration = Duration::from_millis(11);
    // A packet takes between 10 and 11 ms.
    let rate =
        Config { rate_bps: 100_800, burst: Duration::ZERO, block_symbols: 4, deferred: true, ..fixed(3) };
    let mut sender = Scene::new(rate);
    let datagram = Bytes::from(vec![1; 91]);
    let block = sender.send(&datagram)[0].block;
    let numbers = |packets: Vec<Packet>| -> Vec<(u32, u16)> {
        packets.iter().map(|packet| (packet.block.wrapping_sub(block), packet.id)).collect()
    };
    // As soon as the rate permits it.
    let send = |sender: &mut Scene| {
        sender.now += PACE;
        sender.layer.handle_timeout(sender.now);
        assert_eq!(sender.layer.poll_indication(sender.now), Some(DatagramsIndication::Room(1)));
        numbers(sender.send(&datagram))
    };
    let wait = |sender: &mut Scene, time| {
        sender.wait(time);
        numbers(sender.packets())
    };
    assert_eq!((wait(&mut sender, PACE), wait(&mut sender, IDLE)), (vec![], vec![(0, 1)]), "a pause");
    assert_eq!(send(&mut sender), [(1, 0)], "a datagram is first");
    assert_eq!(wait(&mut sender, PACE), [(0, 2)], "a gap");
    for id in 1..4 {
        assert_eq!(send(&mut sender), [(1, id)]);
    }
    // A full block was sent since.
    assert_eq!((wait(&mut sender, PACE), wait(&mut sender, IDLE)), (vec![], vec![(1, 4)]));
}

#[test]
fn deferred_repair_symbols_restore_blocks_after_many_short_ones_and_are_not_taken_for_lost() {
    let config = Config { block_symbols: 40, deferred: true, ..fixed(1) };
    let (mut sender, mut receiver) = (Scene::new(config.clone()), Scene::new(config));
    let sent = datagrams(40, 1_000);
    let mut packets = vec![];
    let mut repairs = vec![];
    // A pause after each second datagram.
    for pair in sent.chunks(2) {
        packets.extend(pair.iter().flat_map(|datagram| sender.send(datagram)));
        sender.wait(IDLE);
        repairs.extend(sender.packets());
    }
    assert_eq!(repairs.len(), 20);
    for (at, packet) in packets.iter().enumerate() {
        if at != 0 {
            receiver.receive(packet);
        }
    }
    assert_eq!(receiver.receive(&repairs[0]), sent[..1]);
    // The losses that the receiver reports are those of datagrams.
    let reported = receiver.send(&sent[0])[0].report.expect("something to report");
    assert_eq!(reported.lost, 1);
}

#[test]
fn deferred_blocks_without_a_pause_take_no_memory_once_they_are_long_past() {
    let config = Config { block_symbols: 10, deferred: true, ..fixed(1) };
    let (mut sender, mut receiver) = (Scene::new(config.clone()), Scene::new(config));
    for (at, datagram) in datagrams(1_000, 1_000).iter().enumerate() {
        let packets = sender.send(datagram);
        // Some blocks lose a datagram.
        if at % 25 != 3 {
            packets.iter().for_each(|packet| assert_eq!(receiver.receive(packet).len(), 1));
        }
        assert!(receiver.number("symbols_held_bytes") < 4 * 10 * 1_200, "three blocks");
    }
    assert_eq!(receiver.counters(["not_kept", "violations"]), [0, 0]);
}

#[test]
fn a_short_datagram_does_not_end_the_pause_before_deferred_repair_symbols() {
    let [long, short] = [Bytes::from(vec![1; 100]), Bytes::from(vec![2; 40])];
    let left = |deferred, second: &Bytes| {
        let mut sender = Scene::new(Config { deferred, ..fixed(1) });
        sender.send(&long);
        sender.wait(IDLE - Duration::from_millis(1));
        sender.send(second);
        sender.wait(Duration::from_millis(1));
        sender.packets().len()
    };
    assert_eq!(left(true, &short), 1);
    assert_eq!([left(true, &long), left(false, &short)], [0, 0]);
}

#[test]
fn deferred_repair_symbols_follow_a_short_datagram_that_is_being_paced_when_the_pause_ends() {
    // With all headers, the long datagram takes 40 ms, and the short one 10 ms.
    let [long, short] = [Bytes::from(vec![1; 285]), Bytes::from(vec![2; 45])];
    let ms = Duration::from_millis;
    let config = Config { rate_bps: 64_000, burst: Duration::ZERO, deferred: true, ..fixed(1) };
    let paced = || {
        let mut sender = Scene::with_room(config.clone(), 100);
        sender.send(&long);
        sender.wait(ms(40));
        assert_eq!(sender.up, [DatagramsIndication::Room(1)]);
        sender.wait(IDLE - ms(5));
        assert_eq!(sender.send(&short).len(), 1);
        sender.wait(ms(5));
        assert_eq!(sender.packets(), [], "the pause is over, and the short datagram is under way");
        sender.wait(ms(5));
        assert_eq!((sender.packets(), &sender.up[..]), (vec![], &[DatagramsIndication::Room(1)][..]));
        sender
    };
    let repairs = |sender: &Scene| {
        let is_repair = |packet: &Packet| matches!(packet.symbol, Symbol::Repair { .. });
        sender.packets().iter().filter(|packet| is_repair(packet)).count()
    };
    // The user has nothing more to send.
    let mut sender = paced();
    assert_eq!(sender.layer.poll_timeout(), Some(sender.now));
    sender.wait(Duration::ZERO);
    assert_eq!(repairs(&sender), 1);
    // Another short datagram leaves first, and a long one ends the pause.
    for (next, time, count) in [(&short, ms(10), 1), (&long, ms(40), 0)] {
        let mut sender = paced();
        assert_eq!(sender.send(next).len(), 1);
        sender.wait(Duration::ZERO);
        assert_eq!(sender.packets(), []);
        sender.wait(time);
        assert_eq!((sender.packets(), &sender.up[..]), (vec![], &[DatagramsIndication::Room(1)][..]));
        sender.wait(Duration::ZERO);
        assert_eq!(repairs(&sender), count);
    }
}

#[test]
fn a_block_does_not_end_while_the_user_has_no_room() {
    let mut sender = Scene::with_room(fixed(1), 1);
    sender.send(&datagrams(1, 10)[0]);
    sender.wait(IDLE * 10);
    assert_eq!((sender.packets(), sender.layer.poll_timeout()), (vec![], None));
    sender.hear(DatagramsIndication::Room(5));
    assert_eq!(sender.packets(), []);
    sender.wait(IDLE);
    assert_eq!(sender.packets().len(), 1);
}

#[test]
fn repair_symbols_share_the_rate() {
    // A packet of 100 bytes and 28 of headers takes 128 ms.
    let config = Config { rate_bps: 8_000, burst: Duration::ZERO, block_symbols: 2, ..fixed(1) };
    let mut sender = Scene::with_room(config, 100);
    assert_eq!(sender.layer.poll_timeout(), None);
    let bytes: Bytes = vec![1; 93].into();
    assert_eq!((sender.send(&bytes).len(), &sender.up[..]), (1, &[][..]));
    sender.wait(Duration::from_millis(127));
    assert_eq!(sender.up, []);
    sender.wait(Duration::from_millis(1));
    assert_eq!(sender.up, [DatagramsIndication::Room(1)]);
    assert_eq!((sender.send(&bytes).len(), &sender.up[..]), (1, &[][..]));
    sender.wait(Duration::from_millis(128));
    assert_eq!((sender.packets()[0].id, &sender.up[..]), (2, &[][..]), "the repair symbol takes the turn");
    sender.wait(Duration::from_millis(200));
    assert_eq!(sender.up, [DatagramsIndication::Room(1)]);
}

#[test]
fn any_datagrams_are_restored_whatever_their_lengths_once_as_many_symbols_have_come() {
    let mut rng = Rng::new(3);
    for round in 0..50 {
        let config = Config { block_symbols: 40, ..fixed(12) };
        let (mut sender, mut receiver) = (Scene::new(config.clone()), Scene::new(config));
        let mut sent = datagrams(40, user_bytes_max(1_472));
        sent[3] = Bytes::new();
        let mut packets: Vec<_> = sent.iter().flat_map(|datagram| sender.send(datagram)).collect();
        assert_eq!(packets.len(), 52);
        for last in (1..packets.len()).rev() {
            packets.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let mut got: Vec<_> = packets[..40].iter().flat_map(|packet| receiver.receive(packet)).collect();
        assert_eq!(got.len(), 40, "round {round}");
        assert_eq!(packets[40..].iter().flat_map(|packet| receiver.receive(packet)).count(), 0);
        got.sort();
        sent.sort();
        assert_eq!(got, sent);
    }
}

#[test]
fn all_restored_datagrams_rise_if_there_is_memory_for_them() {
    let config = Config { block_symbols: 100, ..fixed(60) };
    let (mut sender, mut receiver) = (Scene::new(config.clone()), Scene::new(config));
    let sent: Vec<_> = (0..100).map(|fill| Bytes::from(vec![fill; 1_400])).collect();
    let packets: Vec<_> = sent.iter().flat_map(|datagram| sender.send(datagram)).collect();
    let got: Vec<_> = packets[60..].iter().flat_map(|packet| receiver.receive(packet)).collect();
    assert_eq!(got, [&sent[60..], &sent[..60]].concat());
    assert_eq!(receiver.counters(["not_kept"]), [0]);
}

#[test]
fn what_peers_have_lost_decides_on_the_number_of_repair_symbols() {
    let config = Config { block_symbols: 500, loss_weight: 0, ..Config::default() };
    let (mut sender, mut receiver) = (Scene::new(config.clone()), Scene::new(config.clone()));
    let sent = datagrams(500, 20);
    let block = |sender: &mut Scene, receiver: &mut Scene| {
        let packets: Vec<_> = sent.iter().flat_map(|datagram| sender.send(datagram)).collect();
        let arrive = packets.iter().enumerate().filter(|(at, _)| at % 10 != 3);
        for (at, packet) in arrive {
            receiver.receive(packet);
            // A packet that arrives twice makes up for no lost one.
            if at % 7 == 0 && at < 400 {
                receiver.receive(packet);
            }
        }
        packets.len() as u32 - 500
    };
    assert_eq!(block(&mut sender, &mut receiver), config.repair_symbols(500, 0.01));
    // The answer of the receiver has the report.
    let answer = receiver.send(&sent[0]);
    let report = answer[0].report.expect("a block has arrived");
    assert_eq!((report.lost, report.of), (51, 500 + config.repair_symbols(500, 0.01) as u16));
    sender.receive(&answer[0]);
    let loss = f64::from(report.lost) / f64::from(report.of);
    assert_eq!(block(&mut sender, &mut receiver), config.repair_symbols(500, loss));
    assert!(config.repair_symbols(500, loss) > 70);
}

#[test]
fn blocks_of_which_most_is_missing_are_not_taken_for_losses() {
    let config = Config { block_symbols: 10, ..fixed(1) };
    let (mut sender, mut receiver) = (Scene::new(config.clone()), Scene::new(config));
    let sent = datagrams(10, 100);
    let block = |sender: &mut Scene| -> Vec<_> { sent.iter().flat_map(|bytes| sender.send(bytes)).collect() };
    // Packets of other blocks with high numbers, an outage, and a block with three losses.
    for number in 0..1_000 {
        receiver.receive(&source(number * 1_000_003, 500, b"forged"));
    }
    block(&mut sender).iter().take(4).for_each(|packet| drop(receiver.receive(packet)));
    block(&mut sender).iter().skip(3).for_each(|packet| drop(receiver.receive(packet)));
    for _ in 0..20 {
        block(&mut sender).iter().for_each(|packet| drop(receiver.receive(packet)));
    }
    let report = receiver.send(&sent[0])[0].report.expect("blocks have arrived");
    assert_eq!(report.lost, 3, "{report:?}");
}

/// Share of blocks that are restored, and of lost datagrams, at a loss of 2 % and blocks of 700.
#[test]
fn the_restored_share_is_the_computed_one() {
    const BLOCKS: u32 = 400;
    let (count, loss) = (700, 0.02);
    for failure_max in [0.5, 0.1, 1e-3] {
        let config = Config { loss, failure_max, block_symbols: count, ..Config::default() };
        let repairs = config.repair_symbols(count, loss);
        let (mut sender, mut receiver) = (Scene::new(config.clone()), Scene::new(config));
        let (mut rng, bytes) = (Rng::new(11), Bytes::from_static(b"four"));
        for _ in 0..BLOCKS {
            for _ in 0..count {
                for packet in sender.send(&bytes) {
                    if !rng.chance(loss) {
                        receiver.receive(&packet);
                    }
                }
                sender.hear(DatagramsIndication::Room(100_000));
            }
        }
        let sent = sender.counters(["sources_sent", "repairs_sent"]);
        assert_eq!(sent, [count, repairs].map(|number| u64::from(BLOCKS * number)));
        let [blocks_restored, blocks_failed] = receiver.counters(["blocks_restored", "blocks_failed"]);
        // Those of the last blocks have not settled.
        let settled = f64::from(BLOCKS - WINDOW as u32);
        let failures = settled * (1.0 - decode_success(count, repairs, loss));
        let deviation = (failures * (1.0 - failures / settled)).sqrt();
        let difference = (blocks_failed as f64 - failures).abs();
        assert!(difference < 4.0 * deviation + 1.0, "{blocks_failed} of {settled} fail, {failures} expected");
        assert!(blocks_restored + blocks_failed <= u64::from(BLOCKS));
        assert!(blocks_restored as f64 > 0.99 * (f64::from(BLOCKS) - failures) - 4.0 * deviation - 40.0);
    }
}

#[test]
fn symbols_that_contradict_each_other_end_the_work_on_their_block_only() {
    let mut receiver = Scene::new(Config::default());
    let (first, second) = (&b"first"[..], &b"second"[..]);
    assert_eq!(receiver.receive(&source(5, 0, first)), [first]);
    // Too short for the datagram before it: its own fault.
    assert_eq!(receiver.receive(&repair(5, 2, (2, 1), &[0; 6])).len(), 0);
    // The datagram is longer than the symbols of its block.
    assert_eq!(receiver.receive(&repair(6, 3, (3, 2), &[0; 6])).len(), 0);
    assert_eq!(receiver.receive(&source(6, 0, second)), [second], "datagrams rise nevertheless");
    assert_eq!(receiver.receive(&repair(6, 4, (3, 2), &[0; 6])).len(), 0);
    assert_eq!(receiver.receive(&source(6, 1, b"1234")), [&b"1234"[..]]);
    // Other numbers than those of the first repair packet, and more repair symbols than any block needs.
    assert_eq!(receiver.receive(&repair(7, 3, (3, 2), &[0; 6])).len(), 0);
    assert_eq!(receiver.receive(&repair(7, 2, (2, 2), &[0; 6])).len(), 0);
    assert_eq!(receiver.receive(&repair(7, 100, (3, 20_000), &[0; 6])).len(), 0);
    // A restored length above the symbol, and bytes that are no packet.
    assert_eq!(receiver.receive(&repair(8, 1, (1, 1), &[255; 6])).len(), 0);
    assert_eq!(receiver.receive_from(PEER, Bytes::from_static(b"\x10")).len(), 0);
    assert_eq!(receiver.counters(["violations"]), [6]);
    assert_eq!(receiver.number("symbols_held_bytes"), symbols(&[5, 6]));
}

/// Memory of symbols of these lengths.
fn symbols(lengths: &[u64]) -> u64 {
    lengths.iter().map(|length| length + 96).sum()
}

#[test]
fn a_block_may_have_a_source_symbol_of_every_id() {
    let mut receiver = Scene::new(Config::default());
    for id in 0..=u16::MAX {
        assert_eq!(receiver.receive(&source(5, id, b"a")).len(), 1, "{id}");
    }
    assert_eq!(receiver.number("symbols_held_bytes"), 65_536 * symbols(&[1]));
    receiver.receive(&source(1 << 30, 0, b"a"));
    assert_eq!(receiver.counters(["renumbered", "blocks_failed", "violations"]), [1, 0, 0]);
}

#[test]
fn symbols_of_old_blocks_are_dropped_and_distant_numbers_begin_a_new_count() {
    let mut receiver = Scene::new(Config::default());
    let (window, late) = (WINDOW as u32, LATE as u32);
    let newest = 3_u32;
    for (block, rises) in [
        (newest, true),
        (newest.wrapping_sub(window - 1), true),
        (newest.wrapping_sub(window), false),
        (newest.wrapping_sub(late - 1), false),
        (newest + late, true),
        (newest + 1, false),
        // A restart.
        (newest.wrapping_sub(1 << 20), true),
        (newest.wrapping_sub(1 << 20) - window, false),
        (1 << 31, true),
    ] {
        assert_eq!(receiver.receive(&source(block, 0, b"a")).len(), usize::from(rises), "{block}");
        assert_eq!(receiver.receive(&source(block, 0, b"a")).len(), 0, "{block} is a duplicate");
    }
    assert_eq!(receiver.counters(["late", "duplicates", "renumbered"]), [8, 5, 2]);
}

#[test]
fn floods_take_no_more_memory_than_the_limit_and_datagrams_rise_nevertheless() {
    let config = Config { incoming_bytes_max: 50_000, ..Config::default() };
    let mut receiver = Scene::new(config.clone());
    let mut rng = Rng::new(5);
    for _ in 0..20_000 {
        let (from, id) = (PeerId(rng.below(200) as u32), rng.below(30_000) as u16);
        let block = if rng.chance(0.5) { rng.below(100) as u32 } else { rng.next_u32() };
        let bytes = vec![1; 2 * rng.below(700) as usize];
        let packet = match rng.chance(0.5) && !bytes.is_empty() {
            true => repair(block, id, (id.max(1), 1 + rng.below(3) as u16), &bytes),
            false => source(block, id, &bytes),
        };
        receiver.receive_from(from, packet.to_bytes());
        assert!(receiver.number("symbols_held_bytes") <= config.incoming_bytes_max);
        assert!(receiver.number("symbol_senders") <= SENDERS_MAX as u64);
    }
    let [sources, not_kept] = receiver.counters(["sources_received", "not_kept"]);
    assert!(sources > 5_000 && not_kept > 1_000, "{sources} source symbols, {not_kept} not kept");
    // A peer that sends what fits is served.
    let [before] = receiver.counters(["blocks_restored"]);
    let mut sender = Scene::new(fixed(2));
    let sent = datagrams(3, 1_000);
    sent.iter().for_each(|datagram| drop(sender.send(datagram)));
    sender.wait(IDLE);
    let restored: Vec<_> = sender.packets().iter().flat_map(|packet| receiver.receive(packet)).collect();
    assert_eq!(restored.len(), 0, "two of three symbols");
    let first = sent[0].clone();
    let block = sender.packets()[0].block;
    receiver.receive(&source(block, 0, &first));
    assert_eq!(receiver.counters(["blocks_restored"]), [before + 1]);
}

#[test]
fn a_sender_that_fills_the_memory_does_not_end_the_blocks_of_others() {
    let config = Config { incoming_bytes_max: 100_000, ..Config::default() };
    let mut receiver = Scene::new(config);
    let (flooder, honest) = (PeerId(1), PeerId(2));
    let mut number = 0;
    let mut flood = |receiver: &mut Scene| {
        for _ in 0..300 {
            number += 1;
            receiver.receive_from(flooder, source(number / 10, (number % 10) as u16, &[1; 1_000]).to_bytes());
        }
        assert!(receiver.number("symbols_held_bytes") > 80_000);
    };
    // An honest sender loses the second of three datagrams of a block.
    let mut sender = Scene::new(fixed(1));
    let sent = datagrams(3, 1_000);
    let mut packets: Vec<_> = sent.iter().flat_map(|datagram| sender.send(datagram)).collect();
    sender.wait(IDLE);
    packets.extend(sender.packets());
    packets.remove(1);
    let mut got = Vec::new();
    for packet in packets {
        flood(&mut receiver);
        got.extend(receiver.receive_from(honest, packet.to_bytes()));
    }
    assert_eq!(got, [0, 2, 1].map(|at| sent[at].clone()));
    let [not_kept, restored] = receiver.counters(["not_kept", "blocks_restored"]);
    assert!(not_kept > 700 && restored == 1, "{not_kept} symbols not kept, {restored} blocks restored");
}

#[test]
fn an_endpoint_that_fails_begins_anew() {
    let (mut sender, mut receiver) = (Scene::new(fixed(1)), Scene::new(fixed(1)));
    let sent = datagrams(2, 100);
    let packet = sender.send(&sent[0]).remove(0);
    receiver.receive(&packet);
    for scene in [&mut sender, &mut receiver] {
        scene.hear(DatagramsIndication::Left(CloseReason::Refused));
        assert_eq!(scene.layer.poll_timeout(), None, "no repair symbols without an endpoint");
        scene.ask(DatagramsRequest::Join { damaged: false });
        scene.hear(DatagramsIndication::Joined { bytes_max: 1_472, peer: Some(PEER), group: None });
        scene.hear(DatagramsIndication::Room(100));
    }
    assert_eq!(receiver.number("symbols_held_bytes"), 0);
    let next = sender.send(&sent[1]).remove(0);
    assert_eq!(next.id, 0);
    assert!(next.block.wrapping_sub(packet.block) > 1, "numbers begin at random");
    assert_eq!(receiver.receive(&next), sent[1..]);
}

#[test]
fn packets_are_as_documented() {
    let report = Some(LossReport { lost: 3, of: 515 });
    let source = Packet { report, ..source(0x0102_0304, 0x0506, b"data") };
    assert_eq!(source.to_bytes(), &b"\x12\x05\x06\x01\x02\x03\x04\x00\x03\x02\x03data"[..]);
    let repair = repair(7, 2, (2, 1), b"\x00\x04even");
    assert_eq!(repair.to_bytes(), &b"\x11\x00\x02\x00\x00\x00\x07\x00\x02\x00\x01\x00\x04even"[..]);
    let refused: [&[u8]; 6] = [
        b"\x14\0\0\0\0\0\0",
        b"\x10\0\0\0\0\0",
        b"\x12\0\0\0\0\0\0\0\x03\0\x02",
        b"\x11\0\x01\0\0\0\0\0\x02\0\x01\0\0",
        b"\x11\0\x03\0\0\0\0\0\x02\0\x01\0\0",
        b"\x11\0\x02\0\0\0\0\0\x02\0\x01\0\0\0",
    ];
    for bytes in refused {
        assert!(Packet::decode(&mut Bytes::from_static(bytes)).is_err(), "{bytes:02x?}");
    }
}

#[test]
fn no_bytes_break_the_codec() {
    fuzz::FUZZ.codecs.iter().for_each(|codec| try_codec(codec, seeds()));
}

#[test]
fn no_script_breaks_the_layer() {
    try_play("fecframe", seeds(), |script| {
        let is_called = script.chance();
        let link = if is_called { udpcl::Link::listening } else { udpcl::Link::new };
        let (block_symbols, deferred) = (1 + script.below(4) as u32, script.chance());
        let config = Config { block_symbols, deferred, ..Config::default() };
        let layer = Checked::new("layer", FecDatagrams::new(config, script.rng()));
        over_datagrams(
            Stack::new(link(udpcl::Config::default(), script.rng()), layer),
            is_called,
            fuzz::FUZZ.speech,
            script,
        )
    });
}

/// Bundles over the layer. A receiver that restarts may restore what it has received before, so none does here.
#[test]
fn layers_keep_the_laws() {
    hold_over_datagrams("fecframe", 1_000, 65_507..=65_507, |world| {
        let draw = &mut world.draw;
        let users = BundleUserBehaviour { acknowledged: false, ..BundleUserBehaviour::draw(draw) };
        let link = udpcl::Config {
            datagram_bytes_max: user_bytes_max(65_507),
            rate_bps: 0,
            ..udpcl::Config::default()
        };
        let config = Config {
            loss: draw.share(0.5) / 2.0,
            loss_weight: draw.below(1_000) as u32,
            block_symbols: 1 + draw.below(10) as u32,
            deferred: draw.chance(0.5),
            repair_min: draw.below(3) as u32,
            idle: draw.span(Duration::from_millis(1), Duration::from_secs(1)),
            rate_bps: if draw.chance(0.5) { 0 } else { 8_000 << draw.below(14) },
            ..Config::default()
        };
        let layer = Layer::new(users, move |start| {
            let (link, config) = (link.clone(), config.clone());
            Fan::new(move |id: LinkId, origin| {
                let rng = start.rng.fork(&format!("{id:?}"));
                let layer = Checked::new("layer", FecDatagrams::new(config.clone(), rng.clone()));
                let link = Checked::new("link", udpcl::Link::new(link.clone(), rng));
                (origin == Origin::Above).then(|| Stack::new(link, layer))
            })
        });
        Layer { crashes: false, ..layer }
    });
}

#[test]
fn a_layer_shows_all_its_counters() {
    let counters = crate::observe::counts(&Counters::default());
    let layer = FecDatagrams::new(Config::default(), Rng::new(1));
    crate::observe::tests::expect(&layer, "fecframe", &[counters]);
}
