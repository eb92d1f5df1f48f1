//! Limits of docs/limits.md that only much damage or many stations reach: a store with more damage than is kept or remembered, and a
//! TNC at which one station after the other calls. The node is a process of its own; a friend's files go through all the while.

#[path = "common/besieged.rs"]
mod besieged;
mod common;
#[path = "common/peer.rs"]
mod peer;

use besieged::Besieged;
use bytes::{Bytes, BytesMut};
use common::air::{Air, Guest};
use longwire_proto::ax25::{Address, Callsign, Control, Frame, Modulo, Role, Unnumbered};
use longwire_proto::ax25cl::wire::{Hello, Message, Packet};
use longwire_proto::bp::Bundle;
use peer::*;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const FILE_BYTES: usize = 300_000;
const MEMORY_MAX: u64 = 150 << 20;

#[test]
fn the_node_itself() {
    besieged::be_the_node();
}

fn besiege(title: &str, text: &str) -> Besieged {
    Besieged::new(&format!("stated-{title}"), "the_node_itself", text)
}

#[track_caller]
fn memory_holds(bob: &Besieged) {
    let peak = bob.peak_bytes();
    assert!(peak < MEMORY_MAX, "the node has had {} MB", peak >> 20);
}

/// The newest segment of a store.
fn last_segment(store: &Path) -> PathBuf {
    let files = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "log")).max().expect("there is one")
}

/// Five thousand bundles are missing: each is in the list, as many are remembered until the node is up as are stated, and all are
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
    // What is not a bundle was there, too: the number of the start.
    assert!((BUNDLES..BUNDLES + 10).contains(&damaged), "{damaged}");
    let told = bob.log().lines().filter(|line| line.starts_with("longwire: the store: ")).count();
    assert_eq!(told, REMEMBERED);
    let list = fs::read_to_string(bob.store().join("damaged/list.jsonl")).unwrap();
    assert_eq!(list.lines().count() as u64, damaged);
    memory_holds(&bob);
}

/// A folder of damage, as it was left by earlier damage: so many copies of so many bytes in all, and whole segments.
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

/// How many copies are in a folder of damage and how long they are together, and how long the list is, bytes.
fn kept(store: &Path) -> (usize, u64, u64) {
    let (mut copies, mut copied, mut list) = (0, 0, 0);
    for entry in fs::read_dir(store.join("damaged")).unwrap().flatten() {
        let (name, bytes) = (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len());
        if name == "list.jsonl" {
            list = bytes;
        } else if !name.ends_with(".log") {
            copies += 1;
            copied += bytes;
        }
    }
    (copies, copied, list)
}

/// Three of a stranger's bundles are damaged, and there is place left for copies of two: by bytes, and by files.
#[test]
fn copies_of_what_is_damaged_have_their_limits() {
    const COPIED_MAX: u64 = 64 << 20;
    const FILES_MAX: usize = 1_024;
    const WHOLE_MAX: u64 = 256 << 20;
    const LIST_MAX: u64 = 16 << 20;
    const PAYLOAD: usize = 400_000;
    let scrub =
        "storage.scrub-every = '10 ms'\nstorage.scrub-bytes-per-s = 1_000_000_000\nstorage.cache-bytes = 0\n";
    let room = 2 * (PAYLOAD as u64 + 10_000);
    for (title, copies, copied, whole, list) in
        [("bytes", 1, COPIED_MAX - room, 0, 0), ("files", FILES_MAX - 2, 0, WHOLE_MAX, LIST_MAX)]
    {
        let mut bob = besiege(title, scrub);
        let mut sender = Peer::up_4(bob.address, "dtn://mallory/").unwrap().sender();
        let marks: Vec<[u8; 16]> = (0..3).map(|number| [0x31 + number; 16]).collect();
        for (sequence, mark) in marks.iter().enumerate() {
            let payload = [vec![0; PAYLOAD / 2], mark.to_vec(), vec![0; PAYLOAD / 2]].concat();
            sender.send(&bundle("dtn://mallory/", "dtn://nowhere/x", sequence as u64, &payload));
        }
        sender.finish();
        bob.wait_count("/bundles", 3);
        bob.restart_after(|store| {
            left(store, copies, copied, whole, list);
            let harmed = last_segment(store);
            let bytes = fs::read(&harmed).unwrap();
            let file = OpenOptions::new().write(true).open(&harmed).unwrap();
            for mark in &marks {
                let at = bytes.windows(mark.len()).position(|window| window == mark).expect("it is there");
                file.write_all_at(b"!", at as u64).unwrap();
            }
        });
        bob.wait_status("all damage is found", |status| status["bundles"] == 0);
        bob.hears_the_friend(FILE_BYTES);
        let damaged = bob.status()["store"]["damaged"].clone();
        assert_eq!(damaged, 3, "{title}");
        let (all, bytes, lines) = kept(&bob.store());
        assert_eq!(all, copies + 2, "{title}: there is place for two");
        assert!(all <= FILES_MAX && bytes <= COPIED_MAX, "{title}: {all} files, {bytes} bytes");
        assert_eq!(lines > list, list == 0, "{title}: the list has {lines} bytes");
        memory_holds(&bob);
    }
}

fn station(number: usize) -> Callsign {
    format!("MAL{number:03}").parse().expect("a callsign")
}

/// One of many stations says something to the node.
fn say(guest: &mut Guest, from: usize, control: Control, information: Bytes) {
    let address = Address::new(station(from), "B0B".parse().expect("a callsign"), Role::Command, &[]);
    let frame = Frame { address, control, pid: 0xf0, information };
    guest.say(&frame.to_bytes(Modulo::Eight));
}

fn unnumbered(function: Unnumbered) -> Control {
    Control::Unnumbered { function, poll_final: true }
}

/// More stations call than a TNC has links; then each of many begins a bundle and hangs up, and its session waits for it to call again.
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
    for number in 0..LINKS + MORE {
        say(&mut guest, number, unnumbered(Unnumbered::SetMode), Bytes::new());
        let answer = if number < LINKS { Unnumbered::Acknowledge } else { Unnumbered::DisconnectedMode };
        guest.hears(|frame| {
            frame.address.destination == station(number) && frame.control == unnumbered(answer)
        });
    }
    bob.wait_count("/tncs/0/counters/dropped_refused", MORE as u64);
    for number in 0..LINKS {
        say(&mut guest, number, unnumbered(Unnumbered::Disconnect), Bytes::new());
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
    for number in 0..SESSIONS + MORE {
        say(&mut guest, number, unnumbered(Unnumbered::SetMode), Bytes::new());
        say(&mut guest, number, Control::Information { send: 0, receive: 0, poll: true }, begins(number));
        say(&mut guest, number, unnumbered(Unnumbered::Disconnect), Bytes::new());
    }
    let turned_away = bob.wait_count("/tncs/0/counters/callers_turned_away", MORE as u64);
    assert_eq!(turned_away, MORE as u64, "of {SESSIONS} and {MORE} more");
    bob.hears_the_friend(FILE_BYTES);
    memory_holds(&bob);
}
