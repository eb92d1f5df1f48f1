//! From nothing to a message over a radio channel, with the commands of a new user and without editing a file.

mod common;

use common::{Place, reserved};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

/// Ended on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn two_stations_are_set_up_and_exchange_a_file() {
    let place = Place::new("init-radio");
    // As packet radio, but fast, so that the test is.
    fs::write(
        place.path("fast.toml"),
        "title = 'fast'\nrate-bps = 100000\nmtu-bytes = 256\n[radio]\ntx-delay-ms = 20\nslot-time-ms = 10\n",
    )
    .unwrap();
    let tncs = [reserved(), reserved()].map(|address| address.to_string());
    let mut emulation = place.longwire(&["emulate", "./fast.toml", "--kiss", &tncs.join(",")]);
    let log = fs::File::create(place.path("emulation.log")).unwrap();
    let _emulation = Ended(emulation.stderr(log).stdout(Stdio::null()).spawn().unwrap());
    let stations = [("alice", "DL1XYZ-1", "bob=DL1XYZ-2"), ("bob", "DL1XYZ-2", "alice=DL1XYZ-1")];
    for ((name, callsign, peer), tnc) in stations.iter().zip(&tncs) {
        fs::create_dir(place.path(name)).unwrap();
        let config = format!("{name}/node.toml");
        let init = [
            "init",
            "--config",
            &config,
            "--node",
            name,
            "--tnc",
            tnc,
            "--callsign",
            callsign,
            "--rate",
            "100000",
            "--peer",
            peer,
            "--page",
            "none",
        ];
        let output = place.longwire(&init).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(&format!("longwire node --config {config}")), "{said}");
        assert_eq!(fs::metadata(place.path(&config)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let nodes = ["alice/node", "bob/node"].map(|name| place.start(name));
    fs::write(place.path("note.txt"), "hello, bob").unwrap();
    place.asked("alice/node", &["send", "note.txt", "--to", "dtn://bob/files", "--quiet"]);
    place.asked("bob/node", &["recv", "inbox"]);
    assert_eq!(fs::read_to_string(place.path("inbox/note.txt")).unwrap(), "hello, bob");
    drop(nodes);
}

#[test]
fn a_file_is_neither_replaced_nor_written_with_a_mistake() {
    let place = Place::new("init-mistakes");
    let init = |more: &[&str]| {
        let tnc: &[&str] = if more.contains(&"--tnc") { &[] } else { &["--tnc", "none"] };
        let words = [&["init", "--node", "alice"][..], tnc, more].concat();
        place.longwire(&words).output().unwrap()
    };
    let error = |more: &[&str]| {
        let output = init(more);
        assert!(!output.status.success(), "{more:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&["--peer", "bob"]).contains("does not say how the neighbour is reached"));
    assert!(error(&["--peer", "bob=DL2ABC"]).contains("this node has no TNC"));
    assert!(error(&["--listen", "nowhere"]).contains("nowhere"));
    assert!(!place.path("node.toml").exists());
    assert!(init(&["--peer", "bob=192.0.2.7:4556"]).status.success());
    let first = fs::read(place.path("node.toml")).unwrap();
    assert!(error(&[]).contains("exists already"));
    assert_eq!(fs::read(place.path("node.toml")).unwrap(), first);
    fs::set_permissions(place.path("node.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(init(&["--force"]).status.success());
    assert_eq!(fs::metadata(place.path("node.toml")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(error(&["--config", "third.toml", "--tnc", "direwolf"]).contains("not the place of a TNC"));
    assert!(fs::read(place.path("node.toml")).unwrap() != first);
    // Without a terminal nothing is asked.
    let output = place.longwire(&["init", "--config", "other.toml", "--tnc", "none"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("an answer is missing: Name of this node"), "{said}");
}
