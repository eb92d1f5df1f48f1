//! A disk that is really full: a small file system in its own mount namespace. Accepted bundles stay, others are refused with the
//! reason code of the protocol, and the node accepts bundles again when there is space.

mod common;
#[path = "common/peer.rs"]
mod peer;
#[path = "common/small_disk.rs"]
mod small_disk;

use common::{App, config, payload, reserved, start};
use longwire_node::Node;
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_proto::service::{BundleName, CreationTimestamp};
use peer::{Peer, bundle, transfer, transfer_3};
use small_disk::{DISK_BYTES, Kind, SmallDisk, without_new_processes};
use std::net::SocketAddr;
use std::path::Path;

const QUICK: &str = "[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'\n";
fn relay(disk: &Path, versions: &str, at: SocketAddr, carol: SocketAddr) -> Node {
    start(config(&format!(
        "node = 'dtn://relay/'\nlisten = ['{at}']\nstorage.path = '{}'\n[[link]]\nname = 'carol'\naddress = '{carol}'\n\
         {QUICK}versions = '{versions}'",
        disk.join("store").display()
    )))
}

fn count(status: &serde_json::Value, counter: &str) -> u64 {
    status["counters"][counter].as_u64().expect("a counter")
}

/// More bundles arrive than the relay's disk can hold while none can leave: the relay refuses the rest, is restarted with the
/// full disk, and all files arrive once and complete when it has a link.
fn files_over_a_full_disk(kind: Kind, versions: &str) {
    const FILES: u64 = 40;
    let Some(disk) = SmallDisk::new(&format!("files-{versions}"), kind) else { return };
    let (at, later) = (reserved(), reserved());
    let stopped = relay(&disk.path, versions, at, later);
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[agent]\nbackoff-min = '50 ms'\nbackoff-max = '200 ms'\n\
         [[route]]\nto = '*'\nvia = 'relay'\n[[link]]\nname = 'relay'\naddress = '{at}'\n{QUICK}versions = '{versions}'"
    )));
    let mut here = App::new(&alice);
    for seed in 0..FILES {
        let send = here.send("dtn://carol/inbox", &payload(1_000_000, seed), MessageOptions::default());
        here.wait_accepted(send);
    }
    let mut there = App::new(&stopped);
    there.wait_status(|status| count(status, "refused_no_resources") > 3);
    // The node runs: it answers, refuses a send for lack of space, and has the bundles that it accepted.
    let own = there.send("dtn://carol/inbox", &payload(DISK_BYTES as usize, 99), MessageOptions::default());
    let reason = there.wait(|said| match said.head {
        Reply::Failed { send, reason, .. } if send == own => Some(reason),
        _ => None,
    });
    assert!(reason.contains("full"), "{reason}");
    let alone = without_new_processes();
    drop((there, stopped));
    // As after a crash, with the disk as full.
    let relay = relay(&disk.path, versions, at, later);
    drop(alone);
    let mut there = App::new(&relay);
    let status = there.wait_status(|status| status["ready"] == true);
    assert_eq!(status["store"]["damaged"], 0, "{status:#}");
    let [kept, left] = [&mut there, &mut here].map(|app| app.status()["bundles"].as_u64().unwrap());
    assert!(kept > 0 && left > 0 && kept + left >= FILES, "{kept} are kept, {left} are not sent");
    let carol = start(config(&format!(
        "node = 'dtn://carol/'\nlisten = ['{later}']\n[storage]\nkind = 'memory'\n{QUICK}versions = '{versions}'"
    )));
    let mut end = App::new(&carol);
    end.register("inbox", 0);
    let mut got = Vec::new();
    for _ in 0..FILES {
        let (delivery, data) = end.receive();
        end.take(delivery);
        got.push(data);
    }
    for seed in 0..FILES {
        let found = got.iter().filter(|data| **data == payload(1_000_000, seed)).count();
        assert_eq!(found, 1, "file {seed}");
    }
    for app in [&mut here, &mut there, &mut end] {
        app.wait_status(|status| status["bundles"] == 0);
    }
}

#[test]
fn files_over_a_full_loop_disk_by_version_3() {
    files_over_a_full_disk(Kind::Loop, "3");
}

#[test]
fn files_over_a_full_loop_disk_by_version_4() {
    files_over_a_full_disk(Kind::Loop, "4");
}

#[test]
fn files_over_a_full_tmpfs_by_version_4() {
    files_over_a_full_disk(Kind::Tmpfs, "4");
}

/// Answer to a transfer: `Ok` when all of it is acknowledged, or the reason code of the refusal.
fn outcome(peer: &mut Peer, version: u8, whole: u64) -> Result<(), u8> {
    loop {
        let first = peer.hear(1).expect("the node answers")[0];
        let acknowledged = match (version, first) {
            // XFER_ACK (RFC 9174 5.2.3): flags, transfer, acknowledged length.
            (4, 0x02) => {
                let rest = peer.hear(17).expect("an acknowledgement");
                u64::from_be_bytes(rest[9..].try_into().expect("eight bytes"))
            }
            // XFER_REFUSE (RFC 9174 5.2.4): reason, transfer.
            (4, 0x03) => return Err(peer.hear(9).expect("a refusal")[0]),
            // ACK_SEGMENT (RFC 7242 5.3): an SDNV.
            (3, 0x20) => {
                let mut value = 0;
                loop {
                    let byte = peer.hear(1).expect("an acknowledgement")[0];
                    value = value << 7 | u64::from(byte & 0x7f);
                    if byte & 0x80 == 0 {
                        break value;
                    }
                }
            }
            // REFUSE_BUNDLE (RFC 7242 5.4): the reason is in the header.
            (3, 0x30..=0x3f) => return Err(first & 0x0f),
            other => panic!("the node says {other:x?}"),
        };
        if acknowledged == whole {
            return Ok(());
        }
    }
}

/// Another program fills the disk and frees it again: bundles in between are refused with the proper reason code, over a session
/// that continues.
fn refused_with_the_code_for_it(kind: Kind, version: u8) {
    const NO_RESOURCES: u8 = 2;
    let Some(disk) = SmallDisk::new(&format!("code-{version}"), kind) else { return };
    let (at, nobody) = (reserved(), reserved());
    let node = relay(&disk.path, &version.to_string(), at, nobody);
    let mut app = App::new(&node);
    app.wait_status(|status| status["ready"] == true);
    let call = if version == 4 { Peer::up_4 } else { Peer::up_3 };
    let mut peer = call(at, "dtn://mallory/").expect("a session");
    let mut number = 0;
    let mut try_one = |length: usize| {
        number += 1;
        let data = bundle("dtn://mallory/", "dtn://carol/inbox", number, &payload(length, number));
        let said = if version == 4 { transfer(number, &data) } else { transfer_3(&data) };
        peer.say(&said).expect("it reads");
        outcome(&mut peer, version, data.len() as u64)
    };
    assert_eq!(try_one(300_000), Ok(()));
    let ballast = disk.fill();
    for _ in 0..3 {
        assert_eq!(try_one(300_000), Err(NO_RESOURCES));
    }
    let status = app.status();
    assert_eq!((count(&status, "refused_no_resources"), &status["bundles"]), (3, &1.into()), "{status:#}");
    drop(ballast);
    assert_eq!(try_one(300_000), Ok(()));
    assert_eq!(app.status()["bundles"], 2);
    // Accepted bundles are still in the store after a restart.
    let alone = without_new_processes();
    drop((app, node));
    let node = relay(&disk.path, &version.to_string(), at, nobody);
    drop(alone);
    let status = App::new(&node).wait_status(|status| status["ready"] == true);
    assert_eq!((&status["bundles"], &status["store"]["damaged"]), (&2.into(), &0.into()), "{status:#}");
}

#[test]
fn a_full_loop_disk_is_no_resources_in_version_3() {
    refused_with_the_code_for_it(Kind::Loop, 3);
}

#[test]
fn a_full_loop_disk_is_no_resources_in_version_4() {
    refused_with_the_code_for_it(Kind::Loop, 4);
}

#[test]
fn a_full_tmpfs_is_no_resources_in_version_4() {
    refused_with_the_code_for_it(Kind::Tmpfs, 4);
}

/// Sends bundles that cannot leave until `wanted` are accepted or there is no space; returns the accepted ones.
fn fill_with_bundles(app: &mut App, wanted: usize, refusals_max: usize) -> Vec<CreationTimestamp> {
    let mut accepted = Vec::new();
    let mut refusals = 0;
    while accepted.len() < wanted && refusals < refusals_max {
        let number =
            app.send("dtn://nowhere/x", &payload(400_000, accepted.len() as u64), MessageOptions::default());
        let created = app.wait(|said| match said.head {
            Reply::Accepted { send, created, .. } if send == number => Some(Some(created)),
            Reply::Failed { send, ref code, .. } if send == number && code == "full" => Some(None),
            _ => None,
        });
        match created {
            Some(created) => accepted.push(created),
            None => refusals += 1,
        }
    }
    accepted
}

/// Deleted bundles free space on a full disk, even if the newest and the oldest file of the store contain data in use.
#[test]
fn what_has_gone_from_a_full_disk_makes_room() {
    for kind in [Kind::Loop, Kind::Tmpfs] {
        let Some(disk) = SmallDisk::new("room", kind) else { continue };
        let node = relay(&disk.path, "4", reserved(), reserved());
        let mut app = App::new(&node);
        let mut all = fill_with_bundles(&mut app, usize::MAX, 1);
        let most = all.len();
        assert!(most > 30, "{kind:?}: {most}");
        let mut kept = 0;
        for round in 0..3 {
            // The oldest and the newest stay.
            for created in &all[1..all.len() - 1] {
                let source = "dtn://relay/".to_owned();
                app.ask(Request::Delete(BundleName { source, created: *created }));
            }
            kept += 2;
            app.wait_status(|status| status["bundles"] == kept);
            // While the space is being freed, some are refused.
            let wanted = most - kept - 12;
            all = fill_with_bundles(&mut app, wanted, 200);
            assert_eq!(all.len(), wanted, "{kind:?}, round {round}: {most} at first, {kept} kept");
        }
        let stored = kept + all.len();
        drop((app, node));
        let node = relay(&disk.path, "4", reserved(), reserved());
        let status = App::new(&node).wait_status(|status| status["ready"] == true);
        assert_eq!(
            (&status["bundles"], &status["store"]["damaged"]),
            (&stored.into(), &0.into()),
            "{kind:?}"
        );
    }
}
