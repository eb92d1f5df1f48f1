//! `longwire demo` as a user runs it: two nodes and an emulated link in one process.

mod common;

use common::{DEADLINE, Place, noise};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// A running demonstration and the lines that it has printed.
struct Demo {
    child: Child,
    lines: mpsc::Receiver<String>,
    printed: Vec<String>,
}

impl Demo {
    fn start(mut command: Command) -> Demo {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (send, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Demo { child, lines, printed: Vec::new() }
    }

    /// Waits for a line that has this text in it.
    fn says(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(DEADLINE);
            let line = line.unwrap_or_else(|_| panic!("it does not say `{text}`: {:?}", self.printed));
            self.printed.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    fn interrupt(mut self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the answer of a node to a GET, with its header.
fn get(page: &str, path: &str) -> String {
    let address = page.rsplit_once("http://").unwrap().1.trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn files_arrive_over_a_line_and_both_nodes_have_a_page() {
    let place = Place::new("demo-line");
    let mut demo = Demo::start(place.longwire(&["demo", "lan", "--dir", "here"]));
    for name in ["alice", "bob"] {
        let page = demo.says(name);
        let answer = get(&page, "/status");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(&format!("dtn://{name}/")), "{answer}");
    }
    demo.says("has received hello.txt");
    fs::write(place.path("note"), "another one").unwrap();
    fs::rename(place.path("note"), place.path("here/alice/out/note")).unwrap();
    demo.says("has received note");
    demo.interrupt();
    let [sent, received] = ["here/alice/out/sent/hello.txt", "here/bob/in/hello.txt"]
        .map(|name| fs::read(place.path(name)).unwrap());
    assert!(sent == received && !sent.is_empty());
}

/// Another program has the usual ports of the pages now and then, as another demonstration does that begins or ends.
#[test]
fn a_port_that_is_taken_for_an_instant_keeps_no_demonstration_from_starting() {
    let place = Place::new("demo-ports");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for port in [4580, 4590] {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    drop(TcpListener::bind(("127.0.0.1", port)));
                }
            });
        }
        let begun = std::panic::catch_unwind(|| {
            for _ in 0..10 {
                let mut demo = Demo::start(place.longwire(&["demo", "lan"]));
                demo.says("  alice  http://");
                demo.says("  bob    http://");
            }
        });
        is_over.store(true, Ordering::Relaxed);
        begun.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_configuration_that_is_not_of_a_demonstration_is_not_replaced() {
    let place = Place::new("demo-foreign");
    fs::create_dir(place.path("here")).unwrap();
    fs::write(place.path("here/bob.toml"), "node = 'dtn://bob/'\n").unwrap();
    let output = place.longwire(&["demo", "lan", "--dir", "here"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("is not of a demonstration"), "{said}");
    assert_eq!(fs::read_to_string(place.path("here/bob.toml")).unwrap(), "node = 'dtn://bob/'\n");
}

#[test]
fn files_arrive_over_a_radio_channel_and_nothing_remains() {
    let place = Place::new("demo-radio");
    // As packet radio, but fast, so that the test is.
    fs::write(
        place.path("fast.toml"),
        "title = 'fast'\nrate-bps = 100000\nmtu-bytes = 256\n[radio]\ntx-delay-ms = 20\nslot-time-ms = 10\n",
    )
    .unwrap();
    fs::create_dir(place.path("temporary")).unwrap();
    fs::write(place.path("letter.txt"), noise(5000, 1)).unwrap();
    let mut command = place.longwire(&["demo", "./fast.toml", "--send", "letter.txt"]);
    command.env("TMPDIR", place.path("temporary"));
    let mut demo = Demo::start(command);
    demo.says("fast, 100000 bit/s");
    demo.says("has received letter.txt");
    demo.interrupt();
    assert_eq!(fs::read_dir(place.path("temporary")).unwrap().count(), 0);
}

#[test]
fn a_measurement_finds_the_round_trip_and_a_throughput() {
    let place = Place::new("demo-measure");
    fs::write(place.path("line.toml"), "title = 'line'\nrate-bps = 1000000\ndelay-ms = 50\n").unwrap();
    fs::write(place.path("letter.txt"), noise(100, 1)).unwrap();
    let demo = ["demo", "./line.toml", "--send", "letter.txt", "--dir", "here"];
    let mut demo = Demo::start(place.longwire(&demo));
    demo.says("has received letter.txt");
    let measure =
        ["measure", "dtn://bob/", "--time", "1s", "--count", "3", "--json", "--config", "here/alice.toml"];
    let output = place.longwire(&measure).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["round_trips"]["least_ms"].as_f64().unwrap() >= 100.0, "{found:#}");
    assert_eq!((&found["lost_percent"], &found["sent"]), (&0.0.into(), &found["arrived"]), "{found:#}");
    assert!(found["throughput_bps"].as_f64().unwrap() > 0.0, "{found:#}");
    let nobody = ["measure", "dtn://mars/", "--timeout", "100ms", "--config", "here/alice.toml"];
    let output = place.longwire(&nobody).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("no answer from dtn://mars/measure"), "{said}");
    demo.interrupt();
}
