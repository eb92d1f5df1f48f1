//! The whole path on one machine: application, node, TCPCL 4 over loopback TCP, node, application.
//!
//! ```text
//! cargo run --release -p longwire-node --example throughput -- 10000 1024 memory
//! cargo run --release -p longwire-node --example throughput -- 500 1000000 disk
//! ```
//!
//! Prints bundles a second, Mbit/s, processor time a bundle of both nodes and both applications together, and the most
//! memory. Every payload is compared.

use bytes::Bytes;
use longwire_node::message::{BODY_BYTES_MAX, Message, Options, Reply, Request};
use longwire_node::{Client, Config, Node, Setup};
use std::path::Path;
use std::time::{Duration, Instant};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, plain: usize| words.get(at).map_or(plain, |word| word.parse().expect("a number"));
    let (count, length) = (number(0, 10_000), number(1, 1024));
    let kind = words.get(2).map_or("memory", String::as_str);
    let folder = std::env::temp_dir().join(format!("longwire-throughput-{}", std::process::id()));
    let node = |name: &str, more: &str| {
        let store = folder.join(name);
        let text = format!(
            "node = 'dtn://{name}/'\n{more}\n[storage]\nkind = '{kind}'\npath = '{}'",
            store.display()
        );
        let mut config = Config::parse(&text, "throughput", Path::new("/")).expect("it makes sense");
        config.control = None;
        Node::start(Setup::new(config)).expect("it starts")
    };
    let bob = node("bob", "listen = ['127.0.0.1:0']");
    let link = format!("link = [{{ name = 'bob', address = '{}' }}]", bob.addresses()[0]);
    let alice = node("alice", &link);
    let (sender, receiver) = (alice.client(), bob.client());
    let cpu = cpu_s();
    let began = Instant::now();
    let sending = std::thread::spawn(move || runtime().block_on(send(sender, count, length)));
    runtime().block_on(receive(receiver, count, length));
    let elapsed = began.elapsed();
    let cpu = cpu_s() - cpu;
    sending.join().expect("the sender is content");
    let rate = count as f64 / elapsed.as_secs_f64();
    println!(
        "{count} x {length} B, {kind}: {:.3} s, {rate:.0} bundles/s, {:.0} Mbit/s, {:.1} us of processor a bundle, {} MB at most",
        elapsed.as_secs_f64(),
        rate * length as f64 * 8e-6,
        cpu * 1e6 / count as f64,
        peak_kb() / 1024,
    );
    let _ = std::fs::remove_dir_all(&folder);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn payload(number: u64, length: usize) -> Bytes {
    let mut bytes = vec![number as u8; length];
    let head = number.to_be_bytes();
    let some = head.len().min(length);
    bytes[..some].copy_from_slice(&head[..some]);
    bytes.into()
}

/// At most so many sends are not durable at a time.
const OPEN_MAX: u64 = 512;

async fn send(mut client: Client, count: usize, length: usize) {
    let mut accepted = 0;
    for send in 0..count as u64 {
        let mut left = payload(send, length);
        let body = left.split_to(left.len().min(BODY_BYTES_MAX));
        let options = Options::default();
        let head = Request::Send { send, to: "dtn://bob/sink".into(), length: length as u64, options };
        assert!(client.request(Message { head, body }).await);
        while !left.is_empty() {
            let body = left.split_to(left.len().min(BODY_BYTES_MAX));
            assert!(client.request(Message { head: Request::Piece { send }, body }).await);
        }
        while send - accepted >= OPEN_MAX {
            accepted += u64::from(is_accepted(client.reply().await.expect("the node is there")));
        }
        while let Some(reply) = client.try_reply() {
            accepted += u64::from(is_accepted(reply));
        }
    }
    while accepted < count as u64 {
        accepted += u64::from(is_accepted(client.reply().await.expect("the node is there")));
    }
    // What is sent is still on its way: the link must not go with this application's node.
    tokio::time::sleep(Duration::ZERO).await;
}

fn is_accepted(reply: Message<Reply>) -> bool {
    match reply.head {
        Reply::Accepted { .. } => true,
        Reply::Failed { reason, .. } => panic!("{reason}"),
        _ => false,
    }
}

async fn receive(mut client: Client, count: usize, length: usize) {
    let inline_bytes = 256 * 1024;
    assert!(client.request(Request::Register { endpoint: "sink".into(), inline_bytes }).await);
    let mut seen = vec![false; count];
    let (mut taken, mut reading) = (0, std::collections::BTreeMap::new());
    while taken < count {
        let Message { head, body } = client.reply().await.expect("the node is there");
        let whole = match head {
            Reply::Delivered { delivery, length: all, .. } if all > u64::from(inline_bytes) => {
                reading.insert(delivery, Vec::with_capacity(length));
                assert!(client.request(Request::Read { delivery, offset: 0, length: inline_bytes }).await);
                None
            }
            Reply::Delivered { delivery, .. } => Some((delivery, body)),
            Reply::Data { delivery, .. } => {
                let read = reading.get_mut(&delivery).expect("it is being read");
                read.extend_from_slice(&body);
                let at = read.len();
                if at == length {
                    reading.remove(&delivery).map(|read| (delivery, Bytes::from(read)))
                } else {
                    if at.is_multiple_of(inline_bytes as usize) {
                        let offset = at as u64;
                        assert!(
                            client.request(Request::Read { delivery, offset, length: inline_bytes }).await
                        );
                    }
                    None
                }
            }
            Reply::Gone { .. } => {
                taken += 1;
                None
            }
            _ => None,
        };
        if let Some((delivery, body)) = whole {
            let number = body.first_chunk::<8>().map_or(0, |head| u64::from_be_bytes(*head));
            assert_eq!(body, payload(number, length), "every byte");
            assert!(!std::mem::replace(&mut seen[number as usize], true), "once");
            assert!(client.request(Request::Taken { delivery }).await);
        }
    }
}

/// Processor time of this process, seconds.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
