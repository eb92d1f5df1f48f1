//! Peers that break every rule, over real sockets: the node's memory stays below a limit, its friendly peers are served all the
//! time, and each case is counted in `status`.

#[path = "common/besieged.rs"]
mod besieged;
mod common;
#[path = "common/peer.rs"]
mod peer;

use besieged::Besieged;
use bytes::Bytes;
use common::DEADLINE;
use longwire_proto::bp::{Block, BlockFlags, Bundle, Content, CrcType, DtnTime, Fragment, HopCount};
use longwire_proto::rng::Rng;
use longwire_proto::tcpcl::v4::wire::{END, Message, RefuseReason, RejectReason, START};
use peer::*;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum memory of a node under attack, bytes.
const MEMORY_MAX: u64 = 140 << 20;
/// Length of the friendly peer's file.
const FILE_BYTES: usize = 300_000;

#[test]
fn the_node_itself() {
    besieged::be_the_node();
}

fn besiege(title: &str, text: &str) -> Besieged {
    Besieged::new(title, "the_node_itself", text)
}

/// Checks that the friendly peer is served and the memory is within its limit.
#[track_caller]
fn holds(bob: &mut Besieged) {
    let took = bob.hears_the_friend(FILE_BYTES);
    let peak = bob.peak_bytes();
    eprintln!("the friend's file took {took:?}; the node has had {} MB", peak >> 20);
    assert!(peak < MEMORY_MAX, "the node has had {} MB", peak >> 20);
}

#[test]
fn lengths_beyond_all_bounds() {
    let mut bob = besiege("lengths", "");
    let huge = 1 << 63;
    // A transfer of that length is refused, and the session continues: RFC 9174 5.2.4.
    let mut peer = Peer::stranger_4(bob.address).unwrap();
    peer.say(&segment_header(START, 1, transfer_length(huge), 10)).unwrap();
    peer.say(&[0; 10]).unwrap();
    let refusal = encoded(&Message::XferRefuse { reason: RefuseReason::NoResources, id: 1 });
    assert_eq!(peer.hear(refusal.len()).unwrap(), refusal);
    bob.wait_count("/sessions/refused", 1);
    // A segment of that length ends the session.
    peer.say(&segment_header(START, 2, Bytes::new(), huge)).unwrap();
    peer.hear_all(DEADLINE);
    bob.wait_count("/sessions/violations", 1);
    // Version 3: a LENGTH of that many bytes is refused, a number of eleven bytes is invalid.
    let mut peer = Peer::stranger_3(bob.address).unwrap();
    peer.say(&[&[0x60][..], &sdnv_of(huge), &transfer_3(b"")].concat()).unwrap();
    assert_eq!(peer.hear(1).unwrap()[0] >> 4, 3, "a refusal");
    bob.wait_count("/sessions/refused", 2);
    peer.say(&[&[0x13][..], &[0xff; 11]].concat()).unwrap();
    peer.hear_all(DEADLINE);
    bob.wait_count("/sessions/violations", 2);
    let mut peer = Peer::stranger_3(bob.address).unwrap();
    // An endless segment takes no more memory than what was received.
    peer.say(&[&[0x12][..], &sdnv_of(huge)].concat()).unwrap();
    peer.say(&bundle("dtn://mallory/", "dtn://bob/x", 1, &[7; 1000])).unwrap();
    // A payload of that length: the bundle is not acceptable.
    let mut text = bundle("dtn://mallory/", "dtn://bob/x", 2, &[7; 100]);
    let at = text.windows(2).position(|two| two == [0x58, 100]).expect("the payload's head");
    text.splice(at..at + 2, [&[0x5b][..], &huge.to_be_bytes()].concat());
    let mut peer = Peer::stranger_4(bob.address).unwrap();
    peer.say(&transfer(1, &text)).unwrap();
    bob.wait_count("/counters/refused_not_acceptable", 1);
    holds(&mut bob);
}

#[test]
fn half_open_sessions_give_way() {
    let text = "[stream]\ncallers-max = 100\n[tcpcl]\ncontact-timeout = '600 s'\n";
    let mut bob = besiege("half-open", text);
    let mut peers = Vec::new();
    for number in 0..300 {
        let mut peer = Peer::call(bob.address).unwrap();
        match number % 3 {
            0 => {}
            1 => drop(peer.say(CONTACT_4)),
            _ => drop(peer.say(b"dtn!")),
        }
        peers.push(peer);
    }
    holds(&mut bob);
    bob.wait_count("/callers/gave_way", 200);
    // The friendly peer's established session is not replaced.
    for _ in 0..300 {
        peers.push(Peer::call(bob.address).unwrap());
    }
    bob.wait_count("/callers/gave_way", 500);
    holds(&mut bob);
    assert_eq!(bob.status()["counters"]["received"], 2);
    let sessions = bob.status()["callers"]["now"].as_u64();
    assert!(sessions <= Some(100), "{sessions:?}");
}

#[test]
fn half_open_sessions_end_in_time() {
    let mut bob = besiege("late", "[tcpcl]\ncontact-timeout = '300 ms'\n");
    let mut peers: Vec<Peer> = (0..4).map(|_| Peer::call(bob.address).unwrap()).collect();
    peers[1].say(CONTACT_4).unwrap();
    peers[2].say(b"dt").unwrap();
    peers[3].say(&contact_3("dtn://mallory/")[..9]).unwrap();
    for peer in &mut peers {
        // Half of the time until the node ends them without that setting.
        peer.hear_all(Duration::from_secs(30));
    }
    bob.wait_count("/sessions/late", 4);
    holds(&mut bob);
}

/// Peers with long node IDs full of terminal control characters: messages about them remain readable.
#[test]
fn names_that_are_not_meant_to_be_read() {
    let mut bob = besiege("names", "");
    let name = "\u{1b}[2J\u{0}".repeat(200);
    let peers: Vec<Peer> = (0..100).map(|_| Peer::up_4(bob.address, &name).unwrap()).collect();
    let status = bob.status();
    let links = status["links"].as_array().unwrap();
    assert_eq!(links.len(), peers.len());
    let shown = links[0]["peer"].as_str().unwrap();
    assert!(shown.starts_with("_[2J_") && shown.len() == 128, "{shown:?}");
    holds(&mut bob);
}

#[test]
fn one_address_does_not_take_all_places() {
    let mut bob = besiege("address", "[stream]\ncallers-max = 100\ncallers-per-address-max = 20\n");
    bob.befriend();
    bob.hears_the_friend(1);
    let mut peers = Vec::new();
    for _ in 0..60 {
        peers.push(Peer::stranger_4(bob.address).ok());
    }
    assert!(peers.iter().flatten().count() < 20, "the friend has one of the places");
    bob.wait_count("/callers/turned_away", 30);
    holds(&mut bob);
}

#[test]
fn thousands_of_connections() {
    let mut bob = besiege("thousands", "[stream]\ncallers-max = 500\ncallers-per-address-max = 500\n");
    bob.befriend();
    let mut peers = Vec::new();
    let mut rng = Rng::new(1);
    for number in 0..4000 {
        let Ok(mut peer) = Peer::call(bob.address) else { continue };
        match number % 5 {
            0 => drop(peer.say(CONTACT_4)),
            1 => drop(peer.say(&[CONTACT_4, &sess_init("dtn://mallory/")].concat())),
            2 => drop(peer.say(&garbage(&mut rng, 100))),
            3 => peer.hang_up(),
            _ => {}
        }
        peers.push(peer);
        // Connections that the node has closed long ago are closed here, too.
        if peers.len() > 1500 {
            peers.drain(..500);
        }
    }
    holds(&mut bob);
    // The last ones may not be accepted yet.
    bob.wait_count("/callers/arrived", 3900);
}

fn garbage(rng: &mut Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes);
    bytes
}

#[test]
fn senders_of_a_byte_now_and_then_and_readers_of_none() {
    let mut bob = besiege("slow", "");
    let mut peers = Vec::new();
    for number in 0..50 {
        let mut peer = Peer::up_4(bob.address, &format!("dtn://slow-{number}/")).unwrap();
        // In the middle of a header, of a payload, of a message.
        let text = bundle("dtn://mallory/", "dtn://bob/x", number, &[1; 5000]);
        let message = transfer(1, &text);
        let most = [30, 3000, 9][number as usize % 3];
        peer.say(&message[..most]).unwrap();
        peers.push((peer, message, most));
    }
    for round in 0..20 {
        for (peer, message, at) in &mut peers {
            peer.say(&message[*at..=*at]).unwrap();
            *at += 1;
        }
        if round % 10 == 0 {
            holds(&mut bob);
        }
    }
    holds(&mut bob);
}

#[test]
fn garbage_of_all_kinds() {
    let mut bob = besiege("garbage", "");
    let mut rng = Rng::new(7);
    for number in 0..200_u64 {
        let length = 1 + rng.below(20_000) as usize;
        let noise = garbage(&mut rng, length);
        let peer = match number % 5 {
            0 => Peer::call(bob.address),
            1 => Peer::call(bob.address).and_then(|mut peer| peer.say(CONTACT_4).map(|()| peer)),
            2 => Peer::stranger_4(bob.address),
            3 => Peer::stranger_3(bob.address),
            // The first bytes of TLS without an agreement on TLS.
            _ => Peer::call(bob.address).and_then(|mut peer| {
                peer.say(
                    &[b"dtn!\x04\x01\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", &noise[..]].concat(),
                )?;
                Ok(peer)
            }),
        };
        // The node may close the connection while this is being sent.
        if let Ok(mut peer) = peer {
            let _ = peer.say(&noise);
            peer.hang_up();
        }
    }
    // Segments of random bytes, and bundles with single wrong bits.
    let mut peer = Peer::stranger_4(bob.address).unwrap();
    peer.deafen();
    for id in 0..200 {
        let mut text = bundle("dtn://mallory/", "dtn://bob/x", id, &[1; 300]);
        if id % 2 == 0 {
            let at = rng.below(text.len() as u64) as usize;
            text[at] ^= 1 << rng.below(8);
        } else {
            text = garbage(&mut rng, 300);
        }
        peer.say(&transfer(id, &text)).unwrap();
    }
    bob.wait_count("/counters/refused_damaged", 150);
    bob.wait_count("/sessions/violations", 100);
    holds(&mut bob);
}

#[test]
fn messages_that_belong_to_nothing() {
    let mut bob = besiege("nothing", "");
    let cases: [Vec<u8>; 5] = [
        // A segment without a start.
        [segment_header(END, 9, Bytes::new(), 3), vec![1, 2, 3]].concat(),
        encoded(&Message::XferAck { flags: START | END, id: 77, up_to: 1 << 40 }),
        encoded(&Message::XferRefuse { reason: RefuseReason::Retransmit, id: 77 }),
        sess_init("dtn://mallory/"),
        encoded(&Message::MsgReject { reason: RejectReason::Unexpected, header: 0x04 }),
    ];
    let mut expected = 0;
    for case in &cases {
        let mut peer = Peer::stranger_4(bob.address).unwrap();
        peer.deafen();
        peer.say(case).unwrap();
        // The session continues, and a bundle still arrives.
        expected += 1;
        peer.say(&transfer(10, &bundle("dtn://mallory/", "dtn://bob/x", expected, b"still here"))).unwrap();
        bob.wait_count("/counters/received", expected);
    }
    let status = bob.status();
    assert!(status["sessions"]["violations"].as_u64() >= Some(3), "{:#}", status["sessions"]);
    assert!(status["sessions"]["rejected"].as_u64() >= Some(1), "{:#}", status["sessions"]);
    // Version 3 has no message for this: the session ends.
    for case in [vec![0x10, 3, 1, 2, 3], vec![0x20, 5], vec![0xf0]] {
        let mut peer = Peer::stranger_3(bob.address).unwrap();
        peer.say(&case).unwrap();
        peer.hear_all(DEADLINE);
    }
    holds(&mut bob);
}

#[test]
fn floods_of_messages_that_do_nothing() {
    let mut bob = besiege("floods", "");
    let reject = encoded(&Message::MsgReject { reason: RejectReason::Unexpected, header: 0x04 });
    let ack = encoded(&Message::XferAck { flags: 0, id: 5, up_to: 5 });
    for flood in [vec![0x04; 100_000], reject.repeat(50_000), ack.repeat(50_000)] {
        let mut peer = Peer::stranger_4(bob.address).unwrap();
        // The node closes the connection before all is sent.
        let _ = peer.say(&flood);
        peer.hear_all(DEADLINE);
    }
    let mut peer = Peer::stranger_3(bob.address).unwrap();
    let _ = peer.say(&[0x40; 100_000]);
    peer.hear_all(DEADLINE);
    bob.wait_count("/sessions/floods", 3);
    holds(&mut bob);
}

/// A fragment that cannot be kept is refused before it is accepted, and an accepted one stays.
#[test]
fn fragments_that_never_become_a_whole() {
    let mut bob = besiege("fragments", "agent.limits.fragments-max = 100\n");
    let mut sender = Peer::stranger_4(bob.address).unwrap().sender();
    let made = DtnTime(now_dtn_ms());
    let send = |sender: &mut Sender, sequence: u64, offset: u64, total: u64, payload: &[u8]| {
        let mut head = head("dtn://mallory/", "dtn://bob/x", sequence, payload.len() as u64);
        head.primary.timestamp.time = made;
        head.primary.fragment = Some(Fragment { offset, total_length: total });
        sender.send(&Bundle::new(head, Bytes::copy_from_slice(payload)).to_bytes());
    };
    // First fragments of very many payloads; more fragments of one than are allowed.
    for sequence in 0..5_000 {
        send(&mut sender, sequence, 0, 1000, b"a beginning");
    }
    sender.finish();
    bob.wait_count("/counters/received", 5_000);
    holds(&mut bob);
    for part in 0..99 {
        send(&mut sender, 7, 20 + 2 * part, 1000, b"x");
    }
    sender.finish();
    bob.wait_count("/counters/received", 5_000 + 1 + 99);
    for part in 99..200 {
        send(&mut sender, 7, 20 + 2 * part, 1000, b"x");
    }
    sender.finish();
    bob.wait_count("/counters/refused_no_resources", 101);
    // Fragments that contradict each other: in the total length, and in their bytes.
    send(&mut sender, 8, 500, 2000, b"another length");
    send(&mut sender, 9, 0, 1000, &[1; 600]);
    send(&mut sender, 9, 400, 1000, &[2; 600]);
    sender.finish();
    // And one with the friendly peer, whose bundles arrive: see `holds`.
    bob.wait_count("/counters/received", 5_000 + 1 + 99 + 3);
    holds(&mut bob);
}

/// Connections that each use as much of the node's memory as they may.
#[test]
fn many_connections_together_fill_no_memory() {
    let mut bob = besiege("memory", "[storage]\ncache-bytes = 1_000_000\n");
    let address = bob.address;
    let floods: Vec<_> = (0..60_u64)
        .map(|number| {
            std::thread::spawn(move || {
                let mut peer = Peer::stranger_4(address).unwrap();
                peer.deafen();
                let payload = vec![number as u8; 1_000_000];
                for id in 0..3 {
                    let text = bundle(&format!("dtn://mallory-{number}/"), "dtn://far/x", id, &payload);
                    let (start, rest) = text.split_at(500_000);
                    peer.say(&[&segment_header(START, id, Bytes::new(), 500_000), start].concat()).unwrap();
                    peer.say(&segment_header(END, id, Bytes::new(), rest.len() as u64)).unwrap();
                    peer.say(rest).unwrap();
                }
                peer
            })
        })
        .collect();
    holds(&mut bob);
    let peers: Vec<Peer> = floods.into_iter().map(|flood| flood.join().unwrap()).collect();
    bob.wait_count("/counters/received", 180);
    holds(&mut bob);
    drop(peers);
}

/// An announced bundle takes no place before it arrives: no other bundle is refused for it. Each is within the share of its
/// source (the last one has 26 MB), and all of them together are five times the store.
#[test]
fn announced_bundles_take_no_place_in_the_store() {
    let mut bob = besiege("announced", "agent.limits.store-bytes-max = 100_000_000\n");
    let mut peers = Vec::new();
    for number in 0..20 {
        let mut peer = Peer::stranger_4(bob.address).unwrap();
        let head = head("dtn://mallory/", "dtn://far/x", number, 25_000_000).to_bytes();
        peer.say(&segment_header(START, 1, Bytes::new(), head.len() as u64)).unwrap();
        peer.say(&head).unwrap();
        peers.push(peer);
    }
    bob.wait_count("/bundles", 20);
    holds(&mut bob);
    let status = bob.status();
    assert_eq!(status["counters"]["refused_no_resources"], 0, "{:#}", status["counters"]);
}

#[test]
fn endless_small_transfers() {
    let mut bob = besiege("small", "agent.limits.bundles-max = 2000\n");
    let address = bob.address;
    let stop = Arc::new(AtomicBool::new(false));
    let floods: Vec<_> = (0..4)
        .map(|flood| {
            let stop = stop.clone();
            std::thread::spawn(move || flood_with_transfers(address, flood, &stop))
        })
        .collect();
    // Each has its share, and gets an answer; a peer that does not wait for answers is disconnected; there is no deadlock.
    bob.wait_count("/counters/refused_no_resources", 1);
    bob.wait_count("/counters/refused_damaged", 1);
    bob.wait_count("/sessions/violations", 1);
    // The first to arrive may have used up its share before another began.
    bob.wait_count("/bundles", 900);
    bob.takes_a_send();
    holds(&mut bob);
    stop.store(true, Ordering::Relaxed);
    for flood in floods {
        flood.join().unwrap();
    }
    let bundles = bob.status()["bundles"].as_u64().unwrap();
    assert!((900..=1800).contains(&bundles), "{bundles}");
}

/// Endless bundles without a route: neither applications on this machine nor friendly peers are refused for it, now or after a
/// restart.
#[test]
fn one_stranger_does_not_close_the_node() {
    const FLOOD: u64 = 105_000;
    // Of 100,000 places a tenth is reserved for applications; of the others one neighbour has half, and one source three quarters
    // of that.
    const SHARE: u64 = 33_750;
    let mut bob = besiege("closing", "");
    let mut began = 0;
    for new in [SHARE, 0] {
        let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
        for id in 0..FLOOD {
            let mut head = head("dtn://mallory/", "dtn://nowhere/x", began + id, 0);
            head.primary.lifetime_ms = 1 << 62;
            sender.send(&Bundle::new(head, Bytes::new()).to_bytes());
        }
        sender.finish();
        began += FLOOD;
        // It has its share, and no more after a restart.
        let refused = bob.wait_count("/counters/refused_no_resources", FLOOD - new);
        assert_eq!(refused, FLOOD - new);
        bob.takes_a_send();
        holds(&mut bob);
        let bundles = bob.status()["bundles"].as_u64().unwrap();
        // Plus the bundles of applications on this machine and of the friendly peer.
        assert!((SHARE..SHARE + 10).contains(&bundles), "{bundles}");
        bob.restart();
        bob.takes_a_send();
        holds(&mut bob);
    }
}

/// Blocks that this node does not use, of the maximum length of a header: they are on the disk and not in memory, also after a
/// restart.
#[test]
fn long_heads_fill_no_memory() {
    const FLOOD: u64 = 20_000;
    let mut bob = besiege("heads", "");
    let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
    sender.send_long_heads(FLOOD, 15_900);
    bob.wait_count("/counters/received", FLOOD);
    holds(&mut bob);
    // Names cannot stay on the disk: they have a budget.
    let mut sender = Peer::up_4(bob.address, "dtn://eve/").unwrap().sender();
    for id in 0..FLOOD {
        let name = format!("dtn://nowhere/{}", "x".repeat(1_000));
        let mut head = head("dtn://eve/", &name, id, 0);
        head.primary.report_to = head.primary.destination.clone();
        sender.send(&Bundle::new(head, Bytes::new()).to_bytes());
    }
    sender.finish();
    bob.wait_count("/counters/refused_no_resources", FLOOD - 5_000);
    holds(&mut bob);
    // Many empty blocks are short on the wire and long in memory.
    let mut sender = Peer::up_4(bob.address, "dtn://frank/").unwrap().sender();
    for id in 0..FLOOD {
        let mut head = head("dtn://frank/", "dtn://nowhere/x", id, 0);
        let empty = |number| Block {
            data: Bytes::new(),
            crc: CrcType::None,
            ..unknown_block(number, BlockFlags::NONE)
        };
        head.blocks.extend((2..31).map(empty));
        sender.send(&Bundle::new(head, Bytes::new()).to_bytes());
    }
    sender.finish();
    bob.wait_count("/counters/refused_no_resources", 2 * (FLOOD - 5_000));
    holds(&mut bob);
    bob.restart();
    bob.wait_count("/bundles", FLOOD);
    holds(&mut bob);
}

/// Sends bundles to unknown nodes and empty transfers, without waiting for answers.
fn flood_with_transfers(address: SocketAddr, flood: u64, stop: &AtomicBool) {
    let name = format!("dtn://mallory-{flood}/");
    let mut sequence = 0;
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut peer) = Peer::up_4(address, &name) else { continue };
        peer.deafen();
        for id in 0..u64::MAX {
            sequence += 1;
            let nothing = transfer(2 * id, &[]);
            let something = transfer(2 * id + 1, &bundle(&name, "dtn://far/x", sequence, b""));
            if stop.load(Ordering::Relaxed) || peer.say(&[nothing, something].concat()).is_err() {
                break;
            }
        }
    }
}

#[test]
fn bundles_that_are_not_wanted() {
    let mut bob = besiege("unwanted", "agent.evict = 'none'\n");
    let mut peer = Peer::stranger_4(bob.address).unwrap();
    peer.deafen();
    let mut id = 0;
    let mut send = |bundle: Bundle| {
        id += 1;
        peer.say(&transfer(id, &bundle.to_bytes())).unwrap();
        id
    };
    let plain = |sequence, destination: &str| {
        Bundle::new(head("dtn://mallory/", destination, sequence, 4), Bytes::from_static(b"data"))
    };
    send(plain(1, "dtn:none"));
    bob.wait_count("/counters/dropped_null_destination", 1);
    let mut expired = plain(2, "dtn://far/x");
    expired.head.primary.timestamp.time = DtnTime(now_dtn_ms() - 7_200_000);
    send(expired);
    bob.wait_count("/counters/deleted_expired", 1);
    let mut travelled = plain(3, "dtn://far/x");
    travelled.head.set(&Content::HopCount(HopCount { limit: 3, count: 4 }));
    send(travelled);
    bob.wait_count("/counters/deleted_hop_limit", 1);
    // From the future: kept, since its clock or this one is wrong, and counted.
    let mut future = plain(4, "dtn://far/x");
    future.head.primary.timestamp.time = DtnTime(now_dtn_ms() + 365 * 86_400_000);
    send(future);
    bob.wait_count("/counters/received_from_future", 1);
    // The same bundle twice: the second one is discarded.
    let twice = plain(5, "dtn://far/x");
    send(twice.clone());
    bob.wait_count("/counters/received", 2);
    let before = bob.status()["counters"]["refused_completed"].as_u64().unwrap();
    send(twice);
    bob.wait_count("/counters/refused_completed", before + 1);
    // Two blocks with one number.
    let mut double = plain(6, "dtn://far/x");
    double.head.blocks = vec![unknown_block(2, BlockFlags::NONE), unknown_block(2, BlockFlags::NONE)];
    send(double);
    bob.wait_count("/counters/refused_damaged", 1);
    // A block of unknown type, with every combination of its flags.
    let all = [BlockFlags::REPLICATE, BlockFlags::REPORT, BlockFlags::DELETE_BUNDLE, BlockFlags::DISCARD];
    for combination in 0..16_u64 {
        let mut flags = BlockFlags::NONE;
        for (bit, flag) in all.iter().enumerate() {
            if combination >> bit & 1 == 1 {
                flags |= *flag;
            }
        }
        let mut strange = plain(100 + combination, "dtn://far/x");
        strange.head.blocks = vec![unknown_block(2, flags)];
        send(strange);
    }
    bob.wait_count("/counters/deleted_block", 8);
    bob.wait_count("/counters/received", 2 + 8);
    holds(&mut bob);
}

/// A refusal reports the broken rule, the block and the peer, in `status`, as an event and in the log, and the values of `accept`
/// that would help. Ever new peers take no more entries than there are.
#[test]
fn a_refusal_names_the_clause_the_block_and_the_peer() {
    let at = common::reserved();
    let text = format!("http.listen = '{at}'\nstream.callers-per-address-max = 1000\n");
    let mut bob = besiege("refusal", &text);
    let plain = |sequence| Bundle::new(head("dtn://mallory/", "dtn://far/x", sequence, 0), Bytes::new());
    let mut peer = Peer::up_4(bob.address, "dtn://mallory/").unwrap();
    let own = peer.0.local_addr().unwrap().to_string();
    // Two blocks with one number, twice.
    for sequence in 1..=2 {
        let mut double = plain(sequence);
        double.head.blocks = vec![unknown_block(2, BlockFlags::NONE), unknown_block(2, BlockFlags::NONE)];
        peer.say(&transfer(sequence, &double.to_bytes())).unwrap();
    }
    let mut unprotected = plain(3);
    unprotected.head.primary.crc = CrcType::None;
    peer.say(&transfer(3, &unprotected.to_bytes())).unwrap();
    bob.wait_count("/counters/refused_primary_without_crc", 1);
    let status = bob.status();
    let all = status["refused"].as_array().unwrap();
    let of = |clause: &str| all.iter().find(|refused| refused["clause"] == clause);
    let (Some(without), Some(double), 2) = (of("RFC 9171 4.3.1"), of("RFC 9171 4.1"), all.len()) else {
        panic!("{status:#}")
    };
    for refused in [without, double] {
        assert_eq!(refused["peer"], "dtn://mallory/");
        assert_eq!(refused["address"], own);
        assert!(refused["link"].as_str().unwrap().starts_with("caller "), "{refused}");
    }
    assert_eq!((&double["count"], &double["reason"]), (&2.into(), &"retransmit".into()));
    assert_eq!(double["block"], "block 2 (type 77, number 2)");
    assert_eq!(double["accept"], serde_json::json!([]));
    assert_eq!((&without["count"], &without["reason"]), (&1.into(), &"not_acceptable".into()));
    assert_eq!(without["block"], "the primary block");
    assert_eq!(without["accept"], serde_json::json!(["primary-without-crc"]));
    let event = common::web::event(at, "transfer_refused");
    for key in ["peer", "address", "link", "clause", "block", "reason", "what"] {
        assert_eq!(event[key], double[key], "{key}");
    }
    let line = format!(
        "a bundle from dtn://mallory/ (link `{}`, {own}) is refused: {}",
        double["link"].as_str().unwrap(),
        double["what"].as_str().unwrap()
    );
    bob.wait_lines(1, |said| said.contains(&line));
    // A peer that connects under ever new node IDs has an entry for each, up to the limit.
    for number in 0..100 {
        let mut peer = Peer::up_4(bob.address, &format!("dtn://mallory-{number}/")).unwrap();
        peer.say(&transfer(1, b"no bundle")).unwrap();
        bob.wait_count("/counters/refused_damaged", 3 + number);
    }
    let refused = bob.status()["refused"].as_array().unwrap().clone();
    assert_eq!((refused.len(), &refused[0]["peer"]), (64, &"dtn://mallory-99/".into()));
    holds(&mut bob);
}
