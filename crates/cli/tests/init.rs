//! From nothing to a message over a radio channel, with the commands of a new user and without editing a file.

mod common;

use bytes::{Bytes, BytesMut};
use common::{Place, reserved};
use longwire_proto::{agwpe, ax25, kiss};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::thread;

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

/// Behaviour of a TNC that the test plays.
#[derive(Clone, Copy, PartialEq)]
enum Played {
    /// KISS, with or without a report of what has left.
    Kiss { reports: bool },
    /// AGWPE, whose queue is empty at the second query.
    Agwpe,
}

/// Plays a TNC for one connection; returns its address, and the frames that it gets.
fn play(played: Played) -> (String, thread::JoinHandle<Vec<Bytes>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let play = move || {
        let (stream, _) = listener.accept().unwrap();
        match played {
            Played::Kiss { reports } => play_kiss(stream, reports),
            Played::Agwpe => play_agwpe(stream),
        }
    };
    let prefix = if played == Played::Agwpe { "agwpe:" } else { "" };
    (format!("{prefix}{address}"), thread::spawn(play))
}

fn play_kiss(mut stream: TcpStream, reports: bool) -> Vec<Bytes> {
    let (mut deframer, mut frames, mut buffer) = (kiss::Deframer::new(), Vec::new(), vec![0; 4096]);
    loop {
        let length = stream.read(&mut buffer).unwrap_or(0);
        if length == 0 {
            return frames;
        }
        let mut input = Bytes::copy_from_slice(&buffer[..length]);
        while let Some(mut content) = deframer.next(&mut input) {
            match kiss::Frame::decode(&mut content).unwrap().body {
                kiss::Command::Data(bytes) => frames.push(bytes),
                kiss::Command::DataAcknowledged { token, bytes } if reports => {
                    frames.push(bytes);
                    let body = kiss::Command::DataAcknowledged { token, bytes: Bytes::new() };
                    let mut answer = BytesMut::new();
                    kiss::enclose(&kiss::Frame { port: 0, body }, kiss::Checksum::None, &mut answer);
                    stream.write_all(&answer).unwrap();
                }
                _ => {}
            }
        }
    }
}

fn play_agwpe(mut stream: TcpStream) -> Vec<Bytes> {
    let (mut rest, mut frames, mut buffer, mut asked) = (BytesMut::new(), Vec::new(), vec![0; 4096], 0);
    loop {
        let length = stream.read(&mut buffer).unwrap_or(0);
        if length == 0 {
            return frames;
        }
        rest.extend_from_slice(&buffer[..length]);
        let mut input = rest.split().freeze();
        loop {
            let kept = input.clone();
            let Ok(frame) = agwpe::Frame::decode(&mut input) else {
                rest.extend_from_slice(&kept);
                break;
            };
            let data = match frame.kind {
                agwpe::Kind::Raw => {
                    frames.push(frame.data.slice(1..));
                    continue;
                }
                agwpe::Kind::Ports => Bytes::from_static(b"1;Port1 played;\0"),
                agwpe::Kind::QueuedOnPort => {
                    asked += 1;
                    Bytes::copy_from_slice(&u32::from(asked < 2).to_le_bytes())
                }
                _ => continue,
            };
            stream.write_all(&agwpe::Frame::new(frame.kind).with(data).to_bytes()).unwrap();
        }
    }
}

/// The transmitter is keyed only by `--test-ptt`, with the callsign of the station, and what the TNC reports is said.
#[test]
fn a_transmitter_is_tested_when_the_user_wants_it() {
    let place = Place::new("init-ptt");
    let init = |tnc: &str, callsign: &str, more: &[&str]| {
        let words = ["init", "--node", "alice", "--force", "--tnc", tnc, "--callsign", callsign];
        place.longwire(&[&words[..], &["--rate", "1000000"], more].concat()).output().unwrap()
    };
    let texts = |frames: &[Bytes]| -> Vec<String> {
        let frame = |bytes: &Bytes| ax25::Frame::decode(&mut bytes.clone(), ax25::Modulo::Eight).unwrap();
        let text = |frame: ax25::Frame| {
            let information = String::from_utf8_lossy(&frame.information).into_owned();
            format!("{}>{} {information}", frame.address.source, frame.address.destination)
        };
        frames.iter().map(frame).map(text).collect()
    };
    let probe = "DL1XYZ-7>ID ".to_owned();
    let frame = "DL1XYZ-7>ID Longwire test".to_owned();
    for (played, words, expected) in [
        (Played::Kiss { reports: true }, "reports that the frame has left", vec![probe, frame.clone()]),
        (Played::Kiss { reports: false }, "has taken the frame and reports nothing", vec![frame.clone()]),
        (Played::Agwpe, "reports that the frame has left", vec![frame]),
    ] {
        let (tnc, frames) = play(played);
        let output = init(&tnc, "DL1XYZ-7", &["--test-ptt"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.contains(words), "{said}");
        assert_eq!(texts(&frames.join().unwrap()), expected);
    }
    // The line ends before there is a report.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = listener.local_addr().unwrap().to_string();
    let ends = thread::spawn(move || drop(listener.accept()));
    let output = init(&gone, "DL1XYZ-7", &["--test-ptt"]);
    ends.join().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("nothing was transmitted") && said.contains("hint: "), "{said}");
    assert_eq!(output.status.code(), Some(1));
    for (tnc, callsign, words) in
        [(&*gone, "N0CALL-1", "it is an example"), ("none", "DL1XYZ-7", "there is no TNC to test")]
    {
        let output = init(tnc, callsign, &["--test-ptt"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(words), "{said}");
    }
    // Without the option, nobody connects.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(init(&listener.local_addr().unwrap().to_string(), "DL1XYZ-7", &[]).status.success());
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn mail_is_set_up_with_an_option() {
    let place = Place::new("init-mail");
    let init = |users: &str| {
        place.longwire(&["init", "--node", "alice", "--force", "--tnc", "none", "--mail", users]).output()
    };
    assert!(init("ann,tom").unwrap().status.success());
    let explained = place.longwire(&["node", "--check", "--config", "node.toml"]).output().unwrap();
    let said = String::from_utf8(explained.stdout).unwrap();
    assert!(explained.status.success() && said.contains("ann") && said.contains("127.0.0.1:2525"), "{said}");
    let text = fs::read_to_string(place.path("node.toml")).unwrap();
    for (users, words) in [("ann tom", "are not names of users"), ("ann,ANN", "is twice in `users`")] {
        let output = init(users).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(words), "{said}");
        assert_eq!(fs::read_to_string(place.path("node.toml")).unwrap(), text);
    }
    assert!(init("none").unwrap().status.success());
    assert!(
        fs::read_to_string(place.path("node.toml")).unwrap().contains("\n# [mail]\n# folder = \"mail\"\n")
    );
}
