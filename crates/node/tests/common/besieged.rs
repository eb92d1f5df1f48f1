//! A node in a process of its own, whose memory can be measured, and a friendly peer that keeps exchanging files with it.

#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::common::{App, DEADLINE, Place, config, payload, start};
use longwire_node::message::{Message, MessageOptions, Reply, Request};
use longwire_node::{Config, ControlConnection, Node, NodeSetup};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Variable that makes a process of this test program a node, with the path of its configuration.
const CHILD: &str = "LONGWIRE_BESIEGED";

/// Runs the node. Called by the test of this name in each program with such tests, which is the child process.
pub(crate) fn be_the_node() {
    let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    longwire_node::log::begin().expect("the filter is valid");
    let config = Config::load(&path).expect("it makes sense");
    let node = Node::start(NodeSetup::new(config)).expect("it starts");
    println!("\nat {}", node.addresses()[0]);
    // The node ends with its parent, which closes the pipe.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// The node's process, its friendly peer, and an application of it.
pub(crate) struct Besieged {
    child: Child,
    pub(crate) address: SocketAddr,
    connection: ControlConnection,
    friend: Option<(Node, App)>,
    sent: u64,
    /// Files of the friendly peer that were not taken yet: their numbers and lengths.
    delivered: VecDeque<(u64, u64)>,
    /// The last file that was taken.
    taken: Option<Vec<u8>>,
    /// Name of the test that runs the node.
    entry: String,
    place: Place,
}

impl Besieged {
    /// Starts `dtn://bob/` with this configuration in addition to the usual one. `entry` is the test that runs the node.
    pub(crate) fn new(title: &str, entry: &str, text: &str) -> Besieged {
        let place = Place::new(&format!("besieged-{title}"));
        let path = place.0.join("bob.toml");
        let usual = "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n";
        std::fs::write(&path, format!("{usual}{text}")).expect("a file");
        let (child, address, connection) = run(&place, entry);
        Besieged {
            child,
            address,
            connection,
            friend: None,
            sent: 0,
            delivered: VecDeque::new(),
            taken: None,
            entry: entry.to_owned(),
            place,
        }
    }

    /// Simulates a power failure and restarts the node: in a new process, with a new address.
    pub(crate) fn restart(&mut self) {
        self.restart_after(|_| ());
    }

    /// The same, with changes to the folder of its store in between.
    pub(crate) fn restart_after(&mut self, happens: impl FnOnce(&Path)) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        happens(&self.store());
        let _ = std::fs::remove_file(self.place.0.join("longwire.sock"));
        self.friend = None;
        self.delivered.clear();
        (self.child, self.address, self.connection) = run(&self.place, &self.entry);
    }

    /// An application on this machine sends a bundle, and the node accepts it.
    #[track_caller]
    pub(crate) fn takes_a_send(&mut self) {
        self.sent += 1;
        let number = self.sent;
        let options = MessageOptions::default();
        self.say(Request::Send { send: number, to: "dtn://far/y".into(), length: 0, options });
        self.wait(|said| match said.head {
            Reply::Accepted { send, .. } if send == number => Some(()),
            Reply::Failed { send, reason, .. } if send == number => panic!("it is refused: {reason}"),
            _ => None,
        });
    }

    /// Connects the friendly peer.
    pub(crate) fn befriend(&mut self) {
        let text = format!(
            "node = 'dtn://friend/'\nstorage.kind = 'memory'\n[[link]]\nname = 'bob'\naddress = '{}'\n[tcpcl]\n\
             reconnect-min = '20 ms'\nreconnect-max = '100 ms'\n",
            self.address
        );
        let node = start(config(&text));
        let app = App::new(&node);
        self.friend = Some((node, app));
    }

    /// Disconnects the friendly peer; the next time it has another connection.
    pub(crate) fn unfriend(&mut self) {
        self.friend = None;
    }

    /// Receives a file from the friendly peer, which gets a delivery report.
    pub(crate) fn hears_the_friend_who_hears_that(&mut self) {
        self.hears(1_000, MessageOptions { report_delivery: true, ..MessageOptions::default() });
        let (_, app) = self.friend.as_mut().expect("it has come");
        app.wait(|said| matches!(said.head, Reply::Report { .. }).then_some(()));
    }

    /// Receives a complete file from the friendly peer; returns the time that it took.
    pub(crate) fn hears_the_friend(&mut self, length: usize) -> Duration {
        self.hears(length, MessageOptions::default())
    }

    fn hears(&mut self, length: usize, options: MessageOptions) -> Duration {
        if self.friend.is_none() {
            self.befriend();
        }
        self.sent += 1;
        let file = payload(length, self.sent);
        let began = Instant::now();
        let (_, app) = self.friend.as_mut().expect("it has come");
        let send = app.send("dtn://bob/inbox", &file, options);
        let mut got = self.takes_a_file();
        // The power failed before the node had recorded that the last file was taken: it is delivered again.
        if self.taken.as_ref() == Some(&got) {
            got = self.takes_a_file();
        }
        assert!(got == file, "the friend's file is whole");
        self.taken = Some(got);
        let (_, app) = self.friend.as_mut().expect("it has come");
        app.wait_sent(send);
        began.elapsed()
    }

    /// Waits until the friendly peer has received this file completely, whichever peer has sent it over this node.
    pub(crate) fn friend_gets(&mut self, file: &[u8]) {
        let (_, app) = self.friend.as_mut().expect("it has come");
        app.register("inbox", 0);
        let (delivery, got) = app.receive();
        assert!(got == file, "what comes to the friend is whole");
        app.take(delivery);
    }

    /// Takes the next file from the friendly peer.
    fn takes_a_file(&mut self) -> Vec<u8> {
        while self.delivered.is_empty() {
            self.wait(|said| matches!(said.head, Reply::Delivered { .. }).then_some(()));
        }
        let (number, length) = self.delivered.pop_front().expect("it was looked at");
        let mut got = Vec::new();
        while (got.len() as u64) < length {
            let offset = got.len() as u64;
            self.say(Request::Read { delivery: number, offset, length: 60_000 });
            let data = self.wait(|said| match said.head {
                Reply::Data { delivery, offset: at } if delivery == number && at == offset => Some(said.body),
                _ => None,
            });
            got.extend_from_slice(&data);
        }
        self.say(Request::Taken { delivery: number });
        got
    }

    /// Takes this many delivered bundles of unknown peers, unread.
    pub(crate) fn takes_strangers(&mut self, count: u64) {
        for _ in 0..count {
            let number = self.wait(|said| match said.head {
                Reply::Delivered { delivery, source, .. } if source != "dtn://friend/" => Some(delivery),
                _ => None,
            });
            self.say(Request::Taken { delivery: number });
        }
    }

    /// Registers an application that reads one byte of each of this many waiting bundles of unknown peers.
    pub(crate) fn reads_strangers(&mut self, endpoint: &str, count: u64, offset: u64) {
        self.say(Request::Register { endpoint: endpoint.into(), inline_bytes: 0 });
        for _ in 0..count {
            let number = self.wait(|said| match said.head {
                Reply::Delivered { delivery, source, .. } if source != "dtn://friend/" => Some(delivery),
                _ => None,
            });
            self.say(Request::Read { delivery: number, offset, length: 1 });
        }
    }

    pub(crate) fn say(&mut self, request: Request) {
        self.connection.say(request).expect("the node is there");
    }

    #[track_caller]
    fn wait<T>(&mut self, mut wanted: impl FnMut(Message<Reply>) -> Option<T>) -> T {
        let until = Instant::now() + DEADLINE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let said = self.connection.hear(left).expect("the node is there");
            let Some(said) = said else { panic!("the node says nothing in time") };
            if let Reply::Delivered { delivery, ref source, length, .. } = said.head
                && source == "dtn://friend/"
            {
                self.delivered.push_back((delivery, length));
            }
            if let Some(found) = wanted(said) {
                return found;
            }
        }
    }

    pub(crate) fn status(&mut self) -> Value {
        self.status_by(Request::Status)
    }

    fn status_by(&mut self, request: Request) -> Value {
        self.say(request);
        self.wait(|said| match said.head {
            Reply::Status { status } => Some(serde_json::to_value(status).expect("it is JSON")),
            _ => None,
        })
    }

    /// Waits until a number of the status, given by its path, is at least this; returns it.
    #[track_caller]
    pub(crate) fn wait_count(&mut self, path: &str, least: u64) -> u64 {
        let count = |status: &Value| {
            let count = status.pointer(path).and_then(Value::as_u64);
            count.unwrap_or_else(|| panic!("there is no {path} in {status:#}"))
        };
        count(&self.wait_status(&format!("{path} is at least {least}"), |status| count(status) >= least))
    }

    /// Waits until the status is as wished. It is read only after a change in the node.
    #[track_caller]
    pub(crate) fn wait_status(&mut self, what: &str, mut wished: impl FnMut(&Value) -> bool) -> Value {
        let until = Instant::now() + DEADLINE;
        let mut status = self.status();
        while !wished(&status) {
            assert!(Instant::now() < until, "waited in vain: {what}: {status:#}");
            status = self.status_by(Request::NextStatus);
        }
        status
    }

    /// Folder of its store.
    pub(crate) fn store(&self) -> PathBuf {
        self.place.0.join("store")
    }

    /// Waits until this many lines on its standard error match, and fails if there are more. A thread of the node writes them
    /// with a delay.
    #[track_caller]
    pub(crate) fn wait_lines(&mut self, count: usize, is_wanted: impl Fn(&str) -> bool) {
        let until = Instant::now() + DEADLINE;
        loop {
            let found = self.log().lines().filter(|line| is_wanted(line)).count();
            if found >= count {
                assert_eq!(found, count, "{}", self.log());
                return;
            }
            assert!(Instant::now() < until, "waited in vain: {found} of {count} lines in {}", self.log());
            // The request serves as a pause between two looks.
            self.status();
        }
    }

    /// Lines on its standard error so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.place.0.join("log")).expect("it has one")
    }

    /// Maximum memory that it has ever used, bytes, without the pages of the program's file: those grow with its code, not with
    /// what peers do.
    pub(crate) fn peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let bytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("Linux says it");
            let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
            kib * 1024
        };
        bytes("VmHWM:").saturating_sub(bytes("RssFile:"))
    }
}

/// Starts the node in its own process; returns the process, its address, and an application of it.
fn run(place: &Place, entry: &str) -> (Child, SocketAddr, ControlConnection) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", entry, "--nocapture", "--test-threads=1"])
        .env(CHILD, place.0.join("bob.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log(place))
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let address = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("at ")?.parse().ok());
    let said = || std::fs::read_to_string(place.0.join("log")).unwrap_or_default();
    let address = address.unwrap_or_else(|| panic!("the node does not come up: {}", said()));
    let mut connection = connect(&place.0.join("longwire.sock"));
    let register = Request::Register { endpoint: "inbox".into(), inline_bytes: 0 };
    connection.say(register).expect("the node is there");
    (child, address, connection)
}

/// File for the node's standard error.
fn log(place: &Place) -> std::fs::File {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true).open(place.0.join("log")).expect("a file")
}

fn connect(path: &Path) -> ControlConnection {
    let until = Instant::now() + DEADLINE;
    loop {
        match ControlConnection::open(path) {
            Ok(connection) => return connection,
            Err(error) => assert!(Instant::now() < until, "{}: {error}", path.display()),
        }
    }
}

impl Drop for Besieged {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the node has said:\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
