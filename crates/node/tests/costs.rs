//! The maximum cost of an unknown peer to a node, compared with docs/limits.md: connections, the store, the time of others. The
//! node is a process of its own; the unknown peer, with any number of addresses and node IDs, and a friendly peer are in this
//! one.

#[path = "common/besieged.rs"]
mod besieged;
mod common;
#[path = "common/peer.rs"]
mod peer;

use besieged::Besieged;
use bytes::{Bytes, BytesMut};
use common::air::{Air, Guest};
use common::{DEADLINE, payload};
use longwire_proto::ax25::{Address, Callsign, CommandResponse, Control, Frame, Modulo, Unnumbered};
use longwire_proto::ax25cl::wire::{Hello, Message, Packet};
use longwire_proto::bp::{Bundle, BundleFlags, DtnTime};
use longwire_proto::tcpcl::v4::wire::START;
use peer::*;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FILE_BYTES: usize = 300_000;
const MEMORY_MAX: u64 = 140 << 20;

#[test]
fn the_node_itself() {
    besieged::be_the_node();
}

fn besiege(title: &str, text: &str) -> Besieged {
    Besieged::new(title, "the_node_itself", text)
}

/// A loopback address that is not used elsewhere in the test.
fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 9, 9, number)
}

#[track_caller]
fn memory_holds(bob: &Besieged) {
    let peak = bob.peak_bytes();
    assert!(peak < MEMORY_MAX, "the node has had {} MB", peak >> 20);
}

/// All connections are taken by sessions from four addresses, which reconnect whenever one ends: the friendly peer connects all
/// the same.
#[test]
fn sessions_from_four_addresses_keep_no_friend_out() {
    const PLACES: u64 = 512;
    const OF_ONE_ADDRESS: u64 = 128;
    let mut bob = besiege("four-addresses", "");
    let mut sessions = Vec::new();
    for number in 0..PLACES {
        let from = address((number % 4) as u8);
        sessions.push(Peer::up_4_from(from, bob.address, &format!("dtn://mallory-{number}/")).unwrap());
    }
    bob.wait_status("all sessions", |status| status["callers"]["opening"] == 0);
    // One more from an address that has its maximum.
    assert!(Peer::up_4_from(address(0), bob.address, &stranger()).is_err());
    let callers = bob.status()["callers"].clone();
    assert_eq!((&callers["now"], &callers["turned_away"]), (&PLACES.into(), &1.into()), "{callers:#}");
    for round in 1..=9_u64 {
        bob.unfriend();
        let left = if round == 1 { PLACES } else { PLACES - 1 };
        bob.wait_status("the friend has gone", |status| status["callers"]["now"] == left);
        // The unknown peer takes the free place.
        if left < PLACES {
            let more =
                (0..4).find_map(|number| Peer::up_4_from(address(number), bob.address, &stranger()).ok());
            sessions.push(more.expect("an address of four has a session less than it may"));
        }
        bob.wait_status("all places are taken", |status| {
            status["callers"]["now"] == PLACES && status["callers"]["opening"] == 0
        });
        bob.hears_the_friend(FILE_BYTES);
        let callers = bob.status()["callers"].clone();
        assert_eq!(callers["gave_way"], round, "{callers:#}");
    }
    assert_eq!(PLACES / 4, OF_ONE_ADDRESS);
    memory_holds(&bob);
}

/// Of sessions from as many addresses, those whose bundles are all refused are replaced, and the one that carries bundles stays.
#[test]
fn sessions_that_carry_nothing_give_way_first() {
    let mut bob = besiege("nothing-carried", "[stream]\ncallers-max = 8\ncaller-idle = '1 ms'\n");
    let mut sessions: Vec<Sender> = (0..8)
        .map(|number| Peer::up_4_from(address(number), bob.address, &stranger()).unwrap().sender())
        .collect();
    let payload = vec![7; 1000];
    for (number, session) in sessions.iter_mut().enumerate() {
        let mut head = head("dtn://somebody/", "dtn://far/x", number as u64, payload.len() as u64);
        if number > 0 {
            head.primary.timestamp.time = DtnTime(now_dtn_ms() - 7_200_000);
        }
        session.send(&Bundle::new(head, Bytes::from(payload.clone())).to_bytes());
        session.finish();
    }
    bob.wait_count("/counters/deleted_expired", 7);
    let received = bob.wait_status("the bundle", |status| status["counters"]["received"] == 1);
    // The node checks every 5 s which sessions carry bundles.
    let since = received["uptime_s"].as_f64().expect("a number");
    bob.wait_status("the next look", |status| status["uptime_s"].as_f64() > Some(since + 5.0));
    let mut newcomers = Vec::new();
    for number in 8..15 {
        newcomers.push(Peer::up_4_from(address(number), bob.address, &stranger()).unwrap());
        bob.wait_status("its session", |status| status["callers"]["opening"] == 0);
    }
    let callers = bob.status()["callers"].clone();
    assert_eq!((&callers["gave_way"], &callers["turned_away"]), (&7.into(), &0.into()), "{callers:#}");
    // The first session still exists.
    sessions[0].send(&bundle("dtn://somebody/", "dtn://far/x", 100, b"still here"));
    sessions[0].finish();
    bob.wait_count("/counters/received", 2);
    drop(newcomers);
}

/// An unknown peer requests reports endlessly, under its own node ID and under ever new ones: friendly peers get their delivery
/// reports, including one that connects only now.
#[test]
fn a_flood_of_report_requests_starves_no_receipt() {
    const PER_MINUTE: u64 = 600;
    const FLOOD: u64 = 3_000;
    let mut bob = besiege("reports", "[agent.reports]\nreception = true\ndelivery = true\n");
    let ask = |sender: &mut Sender, source: &str, sequence: u64| {
        let mut head = head(source, "dtn://far/x", sequence, 0);
        head.primary.flags |= BundleFlags::REPORT_RECEPTION;
        head.primary.report_to = eid("dtn://nowhere/reports");
        sender.send(&Bundle::new(head, Bytes::new()).to_bytes());
    };
    let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
    for sequence in 0..FLOOD {
        ask(&mut sender, "dtn://mallory/x", sequence);
        ask(&mut sender, &format!("dtn://mallory-{sequence}/x"), sequence);
    }
    sender.finish();
    let status = bob.wait_status("the flood", |status| status["counters"]["received"] == 2 * FLOOD);
    let sent = status["counters"]["reports_sent"].as_u64().expect("a number");
    let minutes = status["uptime_s"].as_f64().expect("a number") / 60.0;
    // Under any node IDs, at most four times the allowance of one source, saved up and accrued since; and at least the allowance
    // of new sources.
    let most = 4.0 * PER_MINUTE as f64 * (1.0 + minutes) + 4.0;
    assert!((sent as f64) <= most && sent >= PER_MINUTE, "{sent} reports, {most} at most");
    assert_eq!(status["counters"]["reports_suppressed"], 2 * FLOOD - sent);
    // The requests continue while the friendly peer connects for the first time.
    let address = bob.address;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let flood = std::thread::spawn(move || {
        let mut sender = Peer::up_4(address, "dtn://mallory-again/").unwrap().sender();
        let mut sequence = FLOOD;
        while !stopped.load(Ordering::Relaxed) {
            sequence += 1;
            ask(&mut sender, &format!("dtn://mallory-{sequence}/x"), sequence);
            ask(&mut sender, "dtn://mallory/x", sequence);
            sender.finish();
        }
    });
    for _ in 0..9 {
        bob.hears_the_friend_who_hears_that();
    }
    stop.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    memory_holds(&bob);
}

/// Sends empty bundles without a route, over one neighbour.
fn fill(sender: &mut Sender, count: u64, source: impl Fn(u64) -> String) {
    for sequence in 0..count {
        sender.send(
            &Bundle::new(head(&source(sequence), "dtn://nowhere/x", sequence, 0), Bytes::new()).to_bytes(),
        );
    }
    sender.finish();
}

/// Bundles of ever new sources with names of maximum length, taken by an application: the node remembers that they were taken,
/// without storing the names; also after a restart.
#[test]
fn names_of_what_was_taken_fill_no_memory() {
    // Half of the number that is remembered.
    const TAKEN: u64 = 50_000;
    let mut bob = besiege("taken", "");
    bob.hears_the_friend(FILE_BYTES);
    let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
    for batch in 0..TAKEN / 500 {
        for number in batch * 500..(batch + 1) * 500 {
            let source = format!("dtn://{number:0>900}/x");
            sender.send(&Bundle::new(head(&source, "dtn://bob/inbox", number, 0), Bytes::new()).to_bytes());
        }
        sender.finish();
        bob.takes_strangers(500);
    }
    bob.wait_count("/counters/delivered", TAKEN);
    for time in ["as they went", "after a restart"] {
        bob.wait_status("nothing is left", |status| status["bundles"] == 0);
        let peak = bob.peak_bytes();
        eprintln!("{TAKEN} were taken, {time}: the node has had {} MB", peak >> 20);
        assert!(peak < MEMORY_MAX / 2, "{peak} bytes, {time}");
        bob.restart();
    }
}

/// A neighbour that invents any number of sources still has its own share.
#[test]
fn names_of_sources_share_the_part_of_their_neighbour() {
    // Of 2,000 places a tenth is reserved for applications, a neighbour has half of the others, and one source three quarters of
    // that.
    const SHARES: [u64; 2] = [900, 675];
    for (title, share, source) in [
        ("many-sources", SHARES[0], (|number| format!("dtn://mallory-{number}/x")) as fn(u64) -> String),
        ("one-source", SHARES[1], |_| "dtn://mallory/x".to_owned()),
    ] {
        let mut bob = besiege(title, "agent.limits.bundles-max = 2000\n");
        let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
        fill(&mut sender, 1_500, source);
        let refused = bob.wait_count("/counters/refused_no_resources", 1_500 - share);
        assert_eq!((refused, &bob.status()["bundles"]), (1_500 - share, &share.into()), "{title}");
        bob.takes_a_send();
        bob.hears_the_friend(FILE_BYTES);
    }
}

/// Each new node ID of a neighbour takes half of the remaining places: after ten of them a friendly peer still has its place, and
/// after twenty the places reserved for applications on the machine remain.
#[test]
fn names_of_neighbours_take_half_of_the_rest_each() {
    // 18,000 of these are not reserved for applications.
    let mut bob = besiege("many-names", "agent.limits.bundles-max = 20_000\n");
    let mut bundles = 0;
    let mut left: u64 = 18_000;
    for name in 0..20_u64 {
        // Rounded up: a small store has a place for another peer, too.
        let share = left.div_ceil(2);
        let mut take_share = |neighbour: String| {
            let mut sender = Peer::up_4(bob.address, &neighbour).unwrap().sender();
            fill(&mut sender, share + 100, |number| format!("dtn://mallory-{name}-{number}/x"));
            bob.status()["bundles"].as_u64().expect("a number")
        };
        let mut here = take_share(format!("dtn://mallory-{name}/"));
        // One node ID in 65,535 has the number, and so the share, of an earlier one; another node ID has not.
        for other in 0..3 {
            if here == bundles && share > 0 {
                here = take_share(format!("dtn://mallory-{name}-or-{other}/"));
            }
        }
        left -= share;
        bundles += share;
        assert_eq!(here, bundles, "with {} names", name + 1);
        if name == 9 {
            assert_eq!(left, 17);
            bob.hears_the_friend(FILE_BYTES);
            bob.wait_status("the friend's file is gone", |status| status["bundles"] == bundles);
        }
    }
    assert_eq!(left, 0);
    for _ in 0..100 {
        bob.takes_a_send();
    }
    memory_holds(&bob);
}

/// A source may use 75 % of the 50 % that its neighbour may use of the 90 % that are not reserved for applications, which is also
/// the size of its largest bundle. An application on this machine may send longer ones.
#[test]
fn the_largest_bundle_of_one_source_is_a_third_of_the_store() {
    const STORE: u64 = 2_000_000;
    const SHARE: u64 = 675_000;
    let mut bob = besiege("too-large", "agent.limits.store-bytes-max = 2_000_000\n");
    assert_eq!(SHARE, STORE * 90 / 100 * 50 / 100 * 75 / 100);
    let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
    sender.send(&bundle("dtn://mallory/", "dtn://far/x", 1, &vec![1; SHARE as usize]));
    sender.finish();
    bob.wait_count("/counters/refused_no_resources", 1);
    // The part that was received stays as a fragment, which uses up the share of this source.
    let mut bob = besiege("largest", "agent.limits.store-bytes-max = 2_000_000\n");
    let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
    // Less the overhead per bundle.
    sender.send(&bundle("dtn://mallory/", "dtn://far/x", 1, &vec![1; SHARE as usize - 1_000]));
    sender.finish();
    bob.wait_count("/counters/received", 1);
    let status = bob.status();
    assert_eq!(status["counters"]["refused_no_resources"], 0);
    assert!(status["stored_bytes"].as_u64() <= Some(SHARE), "{}", status["stored_bytes"]);
    bob.hears_the_friend(FILE_BYTES);
}

/// A keep-alive interval of 1 s: after 2 s without a message the session of a peer ends.
#[test]
fn a_peer_that_falls_silent_loses_its_session() {
    let mut bob = besiege("silent", "");
    let mut peer = Peer::up_4_alive(bob.address, "dtn://mallory/", 1).unwrap();
    peer.hear_all(DEADLINE);
    bob.wait_count("/sessions/silent", 1);
}

/// This many bytes are discarded after the end of a session, and then the connection is closed.
#[test]
fn who_sends_on_after_its_session_has_ended_is_cut_off() {
    const WAITED_OUT: u64 = 4 << 20;
    // Maximum bytes that kernels buffer on both sides of a connection.
    const BUFFERS: u64 = 64 << 20;
    let mut bob = besiege("over", "");
    let mut peer = Peer::stranger_4(bob.address).unwrap();
    peer.deafen();
    // A segment longer than any buffer ends the session.
    peer.say(&segment_header(START, 1, Bytes::new(), 1 << 62)).unwrap();
    bob.wait_count("/sessions/violations", 1);
    let mut said = 0;
    let chunk = vec![0; 65_536];
    while peer.say(&chunk).is_ok() {
        said += chunk.len() as u64;
        assert!(said <= WAITED_OUT + BUFFERS, "it is heard without end");
    }
    assert!(said >= WAITED_OUT, "only {said} bytes are waited out");
    memory_holds(&bob);
}

/// None of very many peers reads its bundles: the bytes queued for all of them together have a limit, in their queues and before
/// them; a peer that reads gets its bundles all the same.
#[test]
fn readers_of_nothing_take_what_their_queues_may_have() {
    const QUEUED_MAX: u64 = 8 << 20;
    // Queue that each connection may have in any case.
    const SHARE: u64 = 32 * 1024;
    const READERS: u64 = 400;
    let mut bob = besiege("unread", "[tcp]\nsend-buffer-bytes = 16384\n");
    let mut readers = Vec::new();
    for number in 0..READERS {
        let from = address((number % 4) as u8);
        readers.push(Peer::up_4_from(from, bob.address, &format!("dtn://reader-{number}/")).unwrap());
    }
    let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
    let mut most = 0;
    for number in 0..READERS {
        let payload = vec![number as u8; 400_000];
        sender.send(&bundle("dtn://mallory/", &format!("dtn://reader-{number}/x"), number, &payload));
        sender.finish();
        most = most.max(bob.status()["queued_bytes"].as_u64().expect("a number"));
    }
    bob.wait_status("much waits", |status| {
        most = most.max(status["queued_bytes"].as_u64().expect("a number"));
        most >= QUEUED_MAX
    });
    assert!(most <= QUEUED_MAX + READERS * SHARE, "{most} bytes waited");
    bob.hears_the_friend(FILE_BYTES);
    let file = payload(1_000_000, READERS);
    sender.send(&bundle("dtn://mallory/", "dtn://friend/inbox", READERS, &file));
    sender.finish();
    bob.friend_gets(&file);
    eprintln!("{READERS} that read nothing: the node has had {} MB", bob.peak_bytes() >> 20);
    memory_holds(&bob);
    drop(readers);
}

/// A bundle that is not kept: its lifetime has expired.
fn expired(sequence: u64, length: usize) -> Vec<u8> {
    let mut head = head("dtn://mallory/", "dtn://far/x", sequence, length as u64);
    head.primary.timestamp.time = DtnTime(now_dtn_ms() - 7_200_000);
    Bundle::new(head, Bytes::from(vec![2; length])).to_bytes().to_vec()
}

/// Short bundles that stay, each between long ones that do not: no part of the long ones stays in memory with them.
#[test]
fn what_is_kept_keeps_nothing_else_in_memory() {
    const KEPT: u64 = 500;
    let mut bob = besiege("beside", "");
    let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
    for sequence in 0..KEPT {
        sender.send(&bundle("dtn://mallory/", "dtn://nowhere/x", sequence, &[1; 17_000]));
        sender.send(&expired(KEPT + sequence, 500_000));
        if sequence % 8 == 7 {
            sender.finish();
        }
    }
    sender.finish();
    bob.wait_count("/counters/deleted_expired", KEPT);
    assert_eq!(bob.status()["bundles"], KEPT);
    eprintln!("{KEPT} beside others: the node has had {} MB", bob.peak_bytes() >> 20);
    memory_holds(&bob);
    bob.hears_the_friend(FILE_BYTES);
}

/// Bundles with a block each that this node does not use: the blocks are on the disk and not in memory, also after a restart.
/// Blocks of the maximum length of a header, and as many bundles as there are places.
#[test]
fn blocks_that_nobody_reads_fill_no_memory_at_every_place() {
    const PLACES: u64 = 100_000;
    let shares = "own-share-percent = 0\nneighbour-share-percent = 100\nsource-share-percent = 100\n";
    for (title, count, bytes) in [("long", 5_000, 15_900), ("many", PLACES, 600)] {
        // The friendly peer has a place, too.
        let places = PLACES + 100;
        let mut bob = besiege(title, &format!("[agent.limits]\nbundles-max = {places}\n{shares}"));
        let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
        sender.send_long_heads(count, bytes);
        bob.wait_count("/counters/received", count);
        for time in ["as they came", "after a restart"] {
            bob.wait_count("/bundles", count);
            bob.hears_the_friend(FILE_BYTES);
            memory_holds(&bob);
            eprintln!("{count} bundles, {time}: the node has had {} MB", bob.peak_bytes() >> 20);
            bob.restart();
        }
    }
}

/// Latest segment of a store.
fn last_segment(store: &Path) -> PathBuf {
    let files = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "log")).max().expect("there is one")
}

/// Five thousand bundles are missing: each is in the list, as many are remembered until the node is up as documented, and all are
/// counted.
#[test]
fn damage_that_is_too_much_to_be_remembered_is_counted() {
    const REMEMBERED: usize = 4_096;
    const BUNDLES: u64 = 5_000;
    let mut bob = besiege("remembered", "");
    let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
    for sequence in 0..BUNDLES {
        let head = head("dtn://mallory/x", "dtn://nowhere/x", sequence, 0);
        sender.send(&Bundle::new(head, Bytes::new()).to_bytes());
    }
    sender.finish();
    bob.wait_count("/bundles", BUNDLES);
    bob.restart_after(|store| {
        fs::write(last_segment(store), "").unwrap();
    });
    bob.hears_the_friend(FILE_BYTES);
    let damaged = bob.status()["store"]["damaged"].as_u64().expect("a number");
    // Records of other kinds existed, too: the number of the start.
    assert!((BUNDLES..BUNDLES + 10).contains(&damaged), "{damaged}");
    bob.wait_lines(REMEMBERED, |line| line.starts_with("longwire: store: "));
    let list = fs::read_to_string(bob.store().join("damaged/list.jsonl")).unwrap();
    assert_eq!(list.lines().count() as u64, damaged);
    memory_holds(&bob);
}

/// Creates the folder of earlier damage: `copies` copies of `copied_bytes` in total, and whole segments.
fn left(store: &Path, copies: usize, copied_bytes: u64, whole_bytes: u64, list_bytes: u64) {
    let damaged = store.join("damaged");
    fs::create_dir_all(&damaged).unwrap();
    let put = |name: &str, bytes| File::create(damaged.join(name)).unwrap().set_len(bytes).unwrap();
    for number in 0..copies {
        put(&format!("00000000-record-{number}"), if number == 0 { copied_bytes } else { 0 });
    }
    put("00000000.log", whole_bytes);
    put("list.jsonl", list_bytes);
}

/// Content of the folder of damage.
#[derive(Debug, Default)]
struct Kept {
    /// Number of copies.
    copies: usize,
    /// Bytes of the copies.
    copied: u64,
    /// Bytes of whole files.
    whole: u64,
    /// Bytes of the list.
    list: u64,
}

fn kept(store: &Path) -> Kept {
    let mut kept = Kept::default();
    for entry in fs::read_dir(store.join("damaged")).unwrap().flatten() {
        let (name, bytes) = (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len());
        if name == "list.jsonl" {
            kept.list = bytes;
        } else if name.contains("-record-") {
            kept.copies += 1;
            kept.copied += bytes;
        } else {
            kept.whole += bytes;
        }
    }
    kept
}

/// Three bundles of an unknown peer are damaged, and there is space left for copies of two: by bytes, and by files. The segment
/// of the third is kept whole once no other record in it counts, as long as there is space for it.
#[test]
fn copies_of_what_is_damaged_have_their_limits() {
    const COPIED_MAX: u64 = 64 << 20;
    const FILES_MAX: usize = 1_024;
    const WHOLE_MAX: u64 = 256 << 20;
    const LIST_MAX: u64 = 16 << 20;
    const PAYLOAD: usize = 400_000;
    let scrub =
        "storage.scrub-every = '1 s'\nstorage.scrub-bytes-per-s = 1_000_000_000\nstorage.cache-bytes = 0\n";
    let room = 2 * (PAYLOAD as u64 + 10_000);
    for (title, copies, copied, whole, list) in
        [("bytes", 1, COPIED_MAX - room, 0, 0), ("files", FILES_MAX - 2, 0, WHOLE_MAX, LIST_MAX)]
    {
        let mut bob = besiege(title, scrub);
        let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
        let marks: Vec<[u8; 16]> = (0..3).map(|number| [0x31 + number; 16]).collect();
        for (sequence, mark) in marks.iter().enumerate() {
            let payload = [vec![0; PAYLOAD / 2], mark.to_vec(), vec![0; PAYLOAD / 2]].concat();
            sender.send(&bundle("dtn://mallory/", "dtn://bob/late", sequence as u64, &payload));
        }
        sender.finish();
        bob.wait_count("/bundles", 3);
        let mut harmed = PathBuf::new();
        bob.restart_after(|store| {
            left(store, copies, copied, whole, list);
            harmed = last_segment(store);
            let bytes = fs::read(&harmed).unwrap();
            let file = OpenOptions::new().write(true).open(&harmed).unwrap();
            for mark in &marks {
                let at = bytes.windows(mark.len()).position(|window| window == mark).expect("it is there");
                file.write_all_at(b"!", at as u64).unwrap();
            }
        });
        bob.wait_count("/store/damaged", 3);
        bob.hears_the_friend(FILE_BYTES);
        // An application that reads them gets none of them, and they are deleted.
        bob.reads_strangers("late", 3, PAYLOAD as u64 / 2);
        bob.wait_status("all that is damaged has gone", |status| status["bundles"] == 0);
        while harmed.exists() {
            bob.hears_the_friend(FILE_BYTES);
        }
        let kept = kept(&bob.store());
        assert_eq!(kept.copies, copies + 2, "{title}: there is place for two");
        assert!(kept.copies <= FILES_MAX && kept.copied <= COPIED_MAX, "{title}: {kept:?}");
        assert_eq!(kept.whole > whole, whole == 0, "{title}: {kept:?}");
        assert_eq!(kept.list > list, list == 0, "{title}: {kept:?}");
        assert_eq!(bob.status()["store"]["damaged"], 3, "{title}");
        memory_holds(&bob);
    }
}

fn station(number: usize) -> Callsign {
    format!("MAL{number:03}").parse().expect("a callsign")
}

/// Sends a frame from one of many stations to the node.
fn say(guest: &mut Guest, from: usize, control: Control, information: Bytes) {
    let address =
        Address::new(station(from), "B0B".parse().expect("a callsign"), CommandResponse::Command, &[]);
    let frame = Frame { address, control, pid: 0xf0, information };
    guest.say(&frame.to_bytes(Modulo::Eight));
}

fn unnumbered(function: Unnumbered) -> Control {
    Control::Unnumbered { function, poll_final: true }
}

/// Connection requests of these stations; waits until each is answered.
fn call(guest: &mut Guest, stations: Range<usize>, answer: Unnumbered) {
    for number in stations.clone() {
        say(guest, number, unnumbered(Unnumbered::SetMode), Bytes::new());
    }
    let mut waiting: BTreeSet<Callsign> = stations.map(station).collect();
    guest.hears(|frame| {
        if frame.control == unnumbered(answer) {
            waiting.remove(&frame.address.destination);
        }
        waiting.is_empty()
    });
}

/// A station that was connected has lost its state.
fn vanishes(guest: &mut Guest, number: usize) {
    say(guest, number, unnumbered(Unnumbered::DisconnectedMode), Bytes::new());
}

/// More stations connect than a TNC has links; then each of many begins a bundle and disappears, and its session waits for it to
/// reconnect.
#[test]
fn stations_beyond_the_places_of_a_tnc_are_refused() {
    const LINKS: usize = 64;
    const SESSIONS: usize = 256;
    const MORE: usize = 4;
    let air = Air::new();
    let tnc = format!(
        "[[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = 'B0B'\n[tnc.channel]\nrate-bps = 10_000_000\ntx-delay = '0 ms'\n\
         tx-tail = '0 ms'\nslot-time = '0 ms'\n",
        air.at(1)
    );
    let mut bob = besiege("stations", &tnc);
    bob.wait_status("the TNC", |status| status["tncs"][0]["up"] == true);
    let mut guest = air.guest(0);
    call(&mut guest, 0..LINKS, Unnumbered::Acknowledge);
    call(&mut guest, LINKS..LINKS + MORE, Unnumbered::DisconnectedMode);
    bob.wait_count("/tncs/0/counters/dropped_refused", MORE as u64);
    for number in 0..LINKS {
        vanishes(&mut guest, number);
    }
    let begins = |number: usize| {
        let hello = Hello {
            asks: false,
            keeps_prefix: true,
            tag: 1 + number as u32,
            resume: None,
            node_id: format!("dtn://mallory-{number}/"),
        };
        let all = bundle("dtn://mallory/", "dtn://nowhere/x", number as u64, &[7; 1_000]);
        let data = Message::Data {
            begins: Some(all.len() as u64),
            number: None,
            data: Bytes::copy_from_slice(&all[..150]),
        };
        let mut packet = BytesMut::new();
        Packet { hello: Some(hello), messages: vec![data] }.encode(&mut packet);
        packet.freeze()
    };
    for first in (0..SESSIONS + MORE).step_by(MORE) {
        call(&mut guest, first..first + MORE, Unnumbered::Acknowledge);
        for number in first..first + MORE {
            say(&mut guest, number, Control::Information { send: 0, receive: 0, poll: true }, begins(number));
            vanishes(&mut guest, number);
        }
    }
    let turned_away = bob.wait_count("/tncs/0/counters/callers_turned_away", MORE as u64);
    assert_eq!(turned_away, MORE as u64, "of {SESSIONS} and {MORE} more");
    bob.hears_the_friend(FILE_BYTES);
    memory_holds(&bob);
}
