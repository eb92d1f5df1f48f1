//! Nodes in processes of their own, and what arrives at one of them.

use crate::common::DEADLINE;
use bytes::Bytes;
use longwire_node::message::{Message, MessageOptions, Reply, Request};
use longwire_node::{Config, ControlConnection, Node, NodeSetup, system_dtn_ms};
use longwire_proto::rng::Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Variable that makes a process of this program a node, with the path of its configuration.
const CHILD: &str = "LONGWIRE_SOAK_NODE";
/// Endpoint of the receiver.
const INBOX: &str = "ipn:7.5";
/// Longer than the clocks jump, seconds.
const LIFETIME_S: f64 = 10.0 * 86_400.0;

/// Runs a node whose clock is set by lines on the standard input, and which ends with it.
pub(crate) fn be_the_node() {
    let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    longwire_node::log::begin().expect("the filter is valid");
    let config = Config::load(&path).expect("it makes sense");
    let off_ms = Arc::new(AtomicI64::new(0));
    let clock = Arc::clone(&off_ms);
    let wall_clock = Arc::new(move || system_dtn_ms()?.checked_add_signed(clock.load(Ordering::Relaxed)));
    let setup = NodeSetup { wall_clock, path: Some(path), ..NodeSetup::new(config) };
    let node = Node::start(setup).expect("it starts");
    println!("\nready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        off_ms.store(line.parse().expect("milliseconds"), Ordering::Relaxed);
        node.clock_jumped();
    }
}

/// A node, and its operator.
pub(crate) struct NodeProcess {
    folder: PathBuf,
    name: String,
    pub(crate) address: SocketAddr,
    process: Child,
    input: ChildStdin,
    clock_off_ms: i64,
    connection: ControlConnection,
}

impl NodeProcess {
    /// Starts a node with this configuration and a control socket; `address` is where its peers are heard.
    pub(crate) fn start(folder: &Path, name: &str, text: &str, address: SocketAddr) -> NodeProcess {
        std::fs::write(folder.join(format!("{name}.toml")), with_control(folder, name, text))
            .expect("a file");
        let (process, input, connection) = run(folder, name);
        let (folder, name) = (folder.to_owned(), name.to_owned());
        NodeProcess { folder, name, address, process, input, clock_off_ms: 0, connection }
    }

    /// Kills it and starts it again.
    pub(crate) fn kill_and_restart(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
        (self.process, self.input, self.connection) = run(&self.folder, &self.name);
        self.set_clock_off(self.clock_off_ms);
    }

    /// Its clock jumps to this distance from the real one.
    pub(crate) fn set_clock_off(&mut self, off_ms: i64) {
        self.clock_off_ms = off_ms;
        writeln!(self.input, "{off_ms}").expect("it reads");
    }

    /// Reloads this configuration.
    pub(crate) fn reload(&mut self, text: &str) {
        let path = self.folder.join(format!("{}.toml", self.name));
        std::fs::write(path, with_control(&self.folder, &self.name, text)).expect("a file");
        self.say(Request::Reload);
        self.wait("it reloads", |said| (said.head == Reply::Done).then_some(()));
    }

    /// Sends bundles with these numbers; returns the accepted ones and the number of refused ones. With a limit it returns as soon
    /// as so many are accepted.
    pub(crate) fn send(
        &mut self,
        numbers: std::ops::Range<u64>,
        accepted_max: Option<u64>,
    ) -> (Vec<u64>, u64) {
        for number in numbers.clone() {
            let data = file(number);
            let options = MessageOptions { lifetime_s: LIFETIME_S, ..MessageOptions::default() };
            self.say(Request::Send { send: number, to: INBOX.into(), length: data.len() as u64, options });
            self.say(Message { head: Request::Piece { send: number }, body: data });
        }
        let (mut accepted, mut refused) = (Vec::new(), 0);
        let (mut left, limit) = (numbers.end - numbers.start, accepted_max.unwrap_or(u64::MAX));
        while left > 0 && (accepted.len() as u64) < limit {
            let outcome = self.wait("it accepts or refuses", |said| match said.head {
                Reply::Accepted { send, .. } => Some(Ok(send)),
                Reply::Failed { reason, .. } => Some(Err(reason)),
                _ => None,
            });
            left -= 1;
            match outcome {
                Ok(number) => accepted.push(number),
                Err(reason) => {
                    assert!(reason.contains("full"), "{reason}");
                    refused += 1;
                }
            }
        }
        (accepted, refused)
    }

    fn say(&mut self, request: impl Into<Message<Request>>) {
        self.connection.say(request).expect("the node is there");
    }

    #[track_caller]
    fn wait<T>(&mut self, what: &str, mut wanted: impl FnMut(Message<Reply>) -> Option<T>) -> T {
        let until = Instant::now() + DEADLINE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let said = self.connection.hear(left).expect("the node is there");
            let Some(said) = said else { panic!("{}: waited in vain: {what}\n{}", self.name, self.log()) };
            if let Some(found) = wanted(said) {
                return found;
            }
        }
    }

    fn status(&mut self, request: Request) -> Value {
        self.say(request);
        self.wait("its status", |said| match said.head {
            Reply::Status { status } => Some(serde_json::to_value(status).expect("it is JSON")),
            _ => None,
        })
    }

    /// Waits until the status is as wished.
    #[track_caller]
    pub(crate) fn wait_status(&mut self, what: &str, wished: impl Fn(&Value) -> bool) {
        let until = Instant::now() + DEADLINE;
        let mut status = self.status(Request::Status);
        while !wished(&status) {
            assert!(
                Instant::now() < until,
                "{}: waited in vain: {what}: {status:#}\n{}",
                self.name,
                self.log()
            );
            status = self.status(Request::NextStatus);
        }
    }

    /// Number of its open descriptors besides the files of its store, once they are not more than this many.
    #[track_caller]
    pub(crate) fn wait_descriptors(&mut self, most: Option<usize>) -> usize {
        let until = Instant::now() + DEADLINE;
        loop {
            let open = self.descriptors();
            let callers = self.status(Request::Status)["callers"]["now"].as_u64();
            if most.is_none_or(|most| open.len() <= most) && callers <= Some(1) {
                return open.len();
            }
            let name = &self.name;
            assert!(Instant::now() < until, "{name} has {open:#?}, and had {most:?}; {callers:?} callers");
        }
    }

    fn descriptors(&self) -> Vec<PathBuf> {
        let folder = format!("/proc/{}/fd", self.process.id());
        let all = std::fs::read_dir(folder).expect("Linux says it").flatten();
        // One that is closed in between has no target.
        let targets = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        targets
            .filter(|target| {
                !target.components().any(|part| part.as_os_str().to_string_lossy().ends_with("-store"))
            })
            .collect()
    }

    /// Its memory now, without the pages of the program's file.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux says it");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kib * 1024
    }

    /// The end of its log.
    pub(crate) fn log(&self) -> String {
        let text =
            std::fs::read_to_string(self.folder.join(format!("{}.log", self.name))).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("{} has said:\n{}", self.name, lines[lines.len().saturating_sub(40)..].join("\n"))
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn with_control(folder: &Path, name: &str, text: &str) -> String {
    format!("control = '{}'\n{text}", folder.join(format!("{name}.sock")).display())
}

fn run(folder: &Path, name: &str) -> (Child, ChildStdin, ControlConnection) {
    let mut log = std::fs::OpenOptions::new();
    let log = log.create(true).append(true).open(folder.join(format!("{name}.log"))).expect("a file");
    let mut process = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "the_node_itself", "--nocapture", "--test-threads=1"])
        .env(CHILD, folder.join(format!("{name}.toml")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let is_ready = lines.map_while(Result::ok).any(|line| line == "ready");
    assert!(
        is_ready,
        "{name} starts: {}",
        std::fs::read_to_string(folder.join(format!("{name}.log"))).unwrap_or_default()
    );
    let connection =
        ControlConnection::open(&folder.join(format!("{name}.sock"))).expect("its control socket");
    let input = process.stdin.take().expect("it is piped");
    (process, input, connection)
}

/// Content of the bundle with this number, which is in it.
fn file(number: u64) -> Bytes {
    let mut rng = Rng::new(number);
    let mut data = vec![0; 8 + rng.below(60_000) as usize];
    rng.fill(&mut data);
    data[..8].copy_from_slice(&number.to_be_bytes());
    data.into()
}

#[derive(Debug, Default)]
struct Seen {
    /// Number of times that each bundle arrived.
    files: BTreeMap<u64, u32>,
    strangers: u64,
    damaged: Vec<String>,
}

/// All bundles that were delivered at a node, and taken.
pub(crate) struct Arrivals(Arc<(Mutex<Seen>, Condvar)>);

impl Arrivals {
    /// Receives at the inbox of this node until the node has gone.
    pub(crate) fn of(node: &NodeProcess) -> Arrivals {
        let mut connection = ControlConnection::open(&node.folder.join(format!("{}.sock", node.name)))
            .expect("its control socket");
        let register = Request::Register { endpoint: INBOX.into(), inline_bytes: 1 << 20 };
        connection.say(register).expect("the node is there");
        let shared = Arc::new((Mutex::new(Seen::default()), Condvar::new()));
        let seen = Arc::clone(&shared);
        std::thread::spawn(move || {
            loop {
                let said = match connection.hear(DEADLINE) {
                    Ok(Some(said)) => said,
                    Ok(None) => continue,
                    Err(_) => return,
                };
                let Reply::Delivered { delivery, source, length, .. } = said.head else { continue };
                {
                    let mut seen = seen.0.lock().expect("no thread panics with it");
                    let number =
                        said.body.get(..8).map(|eight| u64::from_be_bytes(eight.try_into().expect("eight")));
                    match number {
                        _ if source != "dtn://alice/" => seen.strangers += 1,
                        Some(number) if said.body == file(number) => {
                            *seen.files.entry(number).or_default() += 1
                        }
                        _ => seen.damaged.push(format!("{length} bytes of {number:?}")),
                    }
                }
                seen.1.notify_all();
                if connection.say(Request::Taken { delivery }).is_err() {
                    return;
                }
            }
        });
        Arrivals(shared)
    }

    /// Waits until all of these have arrived, and none of them damaged.
    #[track_caller]
    pub(crate) fn wait_for(&self, all: &BTreeSet<u64>, logs: impl Fn() -> String) {
        let mut until = Instant::now() + DEADLINE;
        let mut seen = self.0.0.lock().expect("no thread panics with it");
        let mut before = seen.files.len();
        loop {
            assert!(seen.damaged.is_empty(), "damaged: {:?}", seen.damaged);
            let missing: Vec<&u64> = all.iter().filter(|number| !seen.files.contains_key(number)).collect();
            if missing.is_empty() {
                return;
            }
            if seen.files.len() > before {
                before = seen.files.len();
                until = Instant::now() + DEADLINE;
            }
            assert!(Instant::now() < until, "accepted and not arrived: {missing:?}\n{}", logs());
            let second = Duration::from_secs(1);
            seen = self.0.1.wait_timeout(seen, second).expect("no thread panics with it").0;
        }
    }

    /// Number of bundles that arrived more than once.
    pub(crate) fn repeated(&self) -> usize {
        self.0.0.lock().expect("no thread panics with it").files.values().filter(|count| **count > 1).count()
    }

    pub(crate) fn of_strangers(&self) -> u64 {
        self.0.0.lock().expect("no thread panics with it").strangers
    }
}
