//! `--watch`: output that is repeated every second, in a pipe and on a terminal.

mod common;

use common::{Place, reserved};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

fn watched(place: &Place, words: &[&str], stdout: impl Into<Stdio>) -> Child {
    let mut command = place.longwire(&[words, &["--config", "alice.toml"]].concat());
    command.env("TERM", "xterm").stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends Ctrl-C and asserts the exit status.
fn interrupt(place: &Place, child: Child) {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = place.ended(child, "it ends after Ctrl-C");
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(130), &b""[..]));
}

#[test]
fn json_in_a_pipe_is_one_document_a_line() {
    let place = Place::new("watch-json");
    place.configure("alice", "");
    let _alice = place.start("alice");
    let mut child = watched(&place, &["status", "--watch", "--json"], Stdio::piped());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let uptimes = [(); 2].map(|()| {
        let status: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(status["node"], "dtn://alice/");
        status["uptime_s"].as_f64().unwrap()
    });
    assert!(uptimes[0] < uptimes[1], "{uptimes:?}");
    interrupt(&place, child);
}

#[test]
fn text_in_a_pipe_is_separated_by_blank_lines() {
    let place = Place::new("watch-text");
    place.configure("alice", &format!("[[link]]\nname = 'bob'\naddress = '{}'\nopen = false", reserved()));
    let _alice = place.start("alice");
    // The link is cut once, and then shown repeatedly.
    let mut child = watched(&place, &["links", "cut", "bob", "--watch"], Stdio::piped());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said: Vec<String> = lines.by_ref().take(3).collect();
    assert!(said[0].starts_with("link `bob` to ") && said[1].is_empty(), "{said:?}");
    assert!(said[2].starts_with("link `bob` to "), "{said:?}");
    // A reader that has read enough is no failure.
    drop(lines);
    let output = place.ended(child, "it ends without a reader");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_terminal_is_repainted_and_never_scrolls() {
    let place = Place::new("watch-terminal");
    let links: Vec<String> = (0..9)
        .map(|n| format!("[[link]]\nname = 'bob{n}'\naddress = '{}'\nopen = false", reserved()))
        .collect();
    place.configure("alice", &links.join("\n"));
    let _alice = place.start("alice");
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    tcsetwinsize(&theirs, Winsize { ws_row: 6, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let child = watched(&place, &["links", "--watch"], theirs);
    let mut ours = File::from(ours);
    let mut shown = Vec::new();
    let mut some = [0; 4096];
    let repaint = "\x1b[H\x1b[J";
    // Three beginnings enclose two complete pictures.
    let pictures = loop {
        let count = ours.read(&mut some).unwrap();
        shown.extend_from_slice(&some[..count]);
        let text = String::from_utf8_lossy(&shown).replace("\r\n", "\n");
        if text.matches(repaint).count() == 3 {
            break text;
        }
        assert!(text.matches("link `bob0`").count() < 6, "it is not repainted: {text}");
    };
    let pictures: Vec<&str> = pictures.split(repaint).collect();
    assert_eq!(pictures[0], "");
    for picture in &pictures[1..3] {
        let lines: Vec<&str> = picture.lines().collect();
        assert!(lines[0].starts_with("link `bob0` to "), "{picture}");
        assert_eq!((lines.len(), lines[4]), (5, "and 5 more lines"), "{picture}");
    }
    interrupt(&place, child);
}
