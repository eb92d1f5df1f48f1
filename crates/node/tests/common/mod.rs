//! Nodes in this process, and applications that wait for what they expect, with a deadline.

#![allow(dead_code, reason = "each test file uses a part of it")]

use bytes::{Bytes, BytesMut};
use longwire_node::message::{BODY_BYTES_MAX, Message, MessageOptions, Reply, Request};
use longwire_node::{AppClient, Config, Node, NodeSetup};
use longwire_proto::service::CreationTimestamp;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

pub(crate) mod air;
pub(crate) mod mail;
pub(crate) mod segments;
pub(crate) mod volatile;
pub(crate) mod watch;
pub(crate) mod web;

/// Maximum duration of any step in these tests, on a heavily loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(240);

/// Temporary folder, removed on drop.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("longwire-node-{name}-{process}-{number}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reserves an address for a node that starts later or restarts: on a loopback address of this process, and outside the range of
/// ephemeral ports, so that no other process ever has it.
pub(crate) fn reserved() -> SocketAddr {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    // Process IDs have 22 bits.
    let [_, a, b, c] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 64 | a, b, c], 10_000 + COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// Parses a configuration; the node has no control socket, and applications connect in this process only.
pub(crate) fn config(text: &str) -> Config {
    let mut config = Config::parse(text, "test", Path::new("/nowhere")).expect("it makes sense");
    config.control = None;
    config
}

/// Configuration of a node whose files are in this folder, which reports deletions.
pub(crate) fn in_folder(place: &Path, name: &str, text: &str) -> Config {
    let folder = place.join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!(
        "node = 'dtn://{name}/'\n{text}\n[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'\n[agent.reports]\ndeletion = true\n"
    );
    let mut config = Config::parse(&text, "test", &folder).expect("it makes sense");
    config.control = None;
    config
}

pub(crate) fn start(config: Config) -> Node {
    longwire_node::log::begin().expect("the filter is valid");
    let node = Node::start(NodeSetup::new(config)).expect("it starts");
    watch::enter(&node);
    node
}

/// An application in a test.
pub(crate) struct App {
    runtime: tokio::runtime::Runtime,
    pub(crate) client: AppClient,
    next: u64,
    /// Deliveries announced while waiting for another reply.
    waiting: VecDeque<Message<Reply>>,
}

impl App {
    pub(crate) fn new(node: &Node) -> Self {
        watch::enter(node);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        App { runtime, client: node.client(), next: 0, waiting: VecDeque::new() }
    }

    pub(crate) fn ask(&mut self, request: impl Into<Message<Request>>) {
        let asked = self.runtime.block_on(self.client.request(request));
        assert!(asked, "the node is there");
    }

    /// Returns the next reply of the node; fails at the deadline.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> Message<Reply> {
        let reply =
            self.runtime.block_on(async { tokio::time::timeout(DEADLINE, self.client.reply()).await });
        let Ok(reply) = reply else { watch::stuck("the node says nothing") };
        reply.expect("the node is there")
    }

    /// Skips replies until `wanted` returns a value.
    #[track_caller]
    pub(crate) fn wait<T>(&mut self, mut wanted: impl FnMut(Message<Reply>) -> Option<T>) -> T {
        loop {
            let said = self.hear();
            if let Reply::Error { what, .. } = &said.head {
                panic!("the node says: {what}");
            }
            let delivery = matches!(said.head, Reply::Delivered { .. }).then(|| said.clone());
            if let Some(found) = wanted(said) {
                return found;
            }
            self.waiting.extend(delivery);
        }
    }

    pub(crate) fn register(&mut self, endpoint: &str, inline_bytes: u32) {
        self.ask(Request::Register { endpoint: endpoint.to_owned(), inline_bytes });
        self.wait(|said| matches!(said.head, Reply::Registered { .. }).then_some(()));
    }

    /// Sends a whole payload; returns the number of the send.
    pub(crate) fn send(&mut self, to: &str, payload: &Bytes, options: MessageOptions) -> u64 {
        self.next += 1;
        let send = self.next;
        let length = payload.len() as u64;
        self.ask(Request::Send { send, to: to.to_owned(), length, options });
        let mut left = payload.clone();
        while !left.is_empty() {
            let body = left.split_to(left.len().min(BODY_BYTES_MAX));
            self.ask(Message { head: Request::Piece { send }, body });
        }
        send
    }

    pub(crate) fn wait_sent(&mut self, number: u64) {
        self.wait(|said| match said.head {
            Reply::Sent { send } if send == number => Some(()),
            Reply::Failed { send, reason, .. } if send == number => panic!("send {send} failed: {reason}"),
            _ => None,
        });
    }

    pub(crate) fn wait_accepted(&mut self, number: u64) -> CreationTimestamp {
        self.wait(|said| match said.head {
            Reply::Accepted { send, created, .. } if send == number => Some(created),
            Reply::Failed { send, reason, .. } if send == number => panic!("send {send} failed: {reason}"),
            _ => None,
        })
    }

    /// Returns the next delivery, read in parts if it came without its payload, and not taken.
    pub(crate) fn receive(&mut self) -> (u64, Bytes) {
        let delivered = |said: Message<Reply>| match said.head {
            Reply::Delivered { delivery, length, .. } => Some((delivery, length, said.body)),
            _ => None,
        };
        let waited = self.waiting.pop_front().and_then(delivered);
        let (delivery, length, body) = waited.unwrap_or_else(|| self.wait(delivered));
        if body.len() as u64 == length {
            return (delivery, body);
        }
        let mut whole = BytesMut::new();
        while (whole.len() as u64) < length {
            let at = whole.len() as u64;
            self.ask(Request::Read { delivery, offset: at, length: 65_536 });
            let data = self.wait(|said| match said.head {
                Reply::Data { delivery: of, offset } if of == delivery && offset == at => Some(said.body),
                _ => None,
            });
            whole.extend_from_slice(&data);
        }
        (delivery, whole.freeze())
    }

    pub(crate) fn take(&mut self, number: u64) {
        self.ask(Request::Taken { delivery: number });
        self.wait(|said| match said.head {
            Reply::Gone { delivery, taken } if delivery == number => {
                assert!(taken, "it was taken");
                Some(())
            }
            _ => None,
        });
    }

    pub(crate) fn status(&mut self) -> serde_json::Value {
        self.ask(Request::Status);
        self.wait(|said| match said.head {
            Reply::Status { status } => Some(serde_json::to_value(status).expect("a status is JSON")),
            _ => None,
        })
    }

    /// Returns the status once it has changed since the last one.
    pub(crate) fn next_status(&mut self) -> serde_json::Value {
        self.ask(Request::NextStatus);
        self.wait(|said| match said.head {
            Reply::Status { status } => Some(serde_json::to_value(status).expect("a status is JSON")),
            _ => None,
        })
    }

    /// Waits until the status is as wished. It is read only after a change in the node.
    #[track_caller]
    pub(crate) fn wait_status(&mut self, wished: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let until = Until::new();
        let mut status = self.status();
        while !wished(&status) {
            until.check(|| format!("the status of {} is not as wished", status["node"]));
            status = self.next_status();
        }
        status
    }
}

/// Waits until Alice knows that Bob has this many payload bytes over the only link between them: a letter of Bob's arrives after
/// his acknowledgements.
pub(crate) fn wait_acknowledged(alice: &mut App, bob: &mut App, bytes: u64) {
    alice.register("letters", 1000);
    bob.wait_status(|status| status["links"][0]["counters"]["payload_received"].as_u64() >= Some(bytes));
    bob.send("dtn://alice/letters", &payload(4, 1), MessageOptions::default());
    alice.receive();
}

/// Deadline of a wait.
pub(crate) struct Until(std::time::Instant);

impl Until {
    pub(crate) fn new() -> Self {
        Until(std::time::Instant::now() + DEADLINE)
    }

    /// Fails after the deadline, with the condition waited for and the status of all nodes of the test.
    #[track_caller]
    pub(crate) fn check(&self, what: impl FnOnce() -> String) {
        if std::time::Instant::now() >= self.0 {
            watch::stuck(&what());
        }
    }
}

/// Varying bytes.
pub(crate) fn payload(length: usize, seed: u64) -> Bytes {
    let mut bytes = vec![0; length];
    longwire_proto::rng::Rng::new(seed).fill(&mut bytes);
    bytes.into()
}
