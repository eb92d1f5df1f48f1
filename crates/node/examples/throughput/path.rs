//! Our own nodes on the whole path.

use crate::payloads::Payloads;
use crate::resting::{self, status};
use crate::{disk, process};
use longwire_node::message::{BODY_BYTES_MAX, Message, MessageOptions, Reply, Request};
use longwire_node::tls::{certificate_folder, issue::CertificateRequest};
use longwire_node::{AppClient, Config, Node, NodeSetup};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time after the last delivery from which the bundles still here count as stranded.
const PATIENCE: Duration = Duration::from_secs(20);

/// A node with its store in this folder; `more`: keys of its configuration.
pub(crate) fn node(folder: &Path, name: &str, kind: &str, more: &str) -> Node {
    let store = folder.join(name);
    let text = format!(
        "node = 'dtn://{name}/'\n{more}\n[storage]\nkind = '{kind}'\npath = '{}'\n[agent.limits]\nbundles-max = 1_200_000",
        store.display()
    );
    let mut config = Config::parse(&text, "throughput", Path::new("/")).expect("it makes sense");
    config.control = None;
    longwire_node::log::begin().expect("the filter is valid");
    Node::start(NodeSetup::new(config)).expect("it starts")
}

/// Runs an application to its end.
pub(crate) fn application<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work)
}

/// A certificate for a node, and the keys that make its sessions use TLS.
fn secured(folder: &Path, name: &str) -> String {
    let now = longwire_node::unix_now().expect("the clock is set");
    let wish = CertificateRequest::for_node(&format!("dtn://{name}/"), now, 2);
    let issued = certificate_folder::issue(&folder.join("tls"), &wish, now, false).expect("a certificate");
    format!(
        "tcpcl.tls = 'require'\ntls.certificate = '{}'\ntls.key = '{}'\ntls.trust = ['{}']",
        issued.certificate.display(),
        issued.key.display(),
        issued.authority.display()
    )
}

/// Settings of LTP for a path without delay: segments of 60 kB without a rate limit, and at most as many bytes in transit as the
/// buffer of the receiving socket holds.
const BLOCKS: &str = "ltp = { segment-bytes = 60_000, block-bytes = 1_000_000, outgoing-bytes-max = 4_000_000, \
                   rate-bps = 0, one-way-delay = '10 ms', margin = '200 ms', report-delay = '2 ms', retransmission-delay = '2 ms' }\n\
                   stream.udp-receive-buffer-bytes = 4_000_000";

/// `kind` is where the stores are, `memory` or `disk`; or `tls`: in memory, and the link is encrypted. `carrier` is `tcp` or
/// `ltp`.
pub(crate) fn run(count: usize, length: usize, kind: &str, carrier: &str) -> Value {
    let folder = crate::folder().join(format!("longwire-throughput-{}", std::process::id()));
    let (tls, datagrams) = (kind == "tls", carrier == "ltp");
    let kind = if tls { "memory" } else { kind };
    let keys = |name| match (tls, datagrams) {
        (true, _) => secured(&folder, name),
        (false, true) => BLOCKS.to_owned(),
        (false, false) => String::new(),
    };
    let listen = if datagrams { "listen-udp = ['ltp 127.0.0.1:0']" } else { "listen = ['127.0.0.1:0']" };
    let bob = node(&folder, "bob", kind, &format!("{listen}\n{}", keys("bob")));
    let address = if datagrams { bob.udp_addresses()[0] } else { bob.addresses()[0] };
    let link = format!(
        "link = [{{ name = 'bob', kind = '{}', address = '{address}', peer = 'dtn://bob/' }}]\n{}",
        carrier,
        keys("alice")
    );
    let alice = node(&folder, "alice", kind, &link);
    measured(&folder, alice, bob, count, length)
}

/// A node whose store holds what `fill` has left, on the path to another one; both stores are durable.
pub(crate) fn beside_others(stored: &Path, count: usize, length: usize) -> Value {
    let folder = crate::folder().join(format!("longwire-throughput-{}", std::process::id()));
    let bob = node(&folder, "bob", "disk", "listen = ['127.0.0.1:0']");
    let link =
        format!("link = [{{ name = 'bob', address = '{}', peer = 'dtn://bob/' }}]", bob.addresses()[0]);
    let alice = node(stored, "full", "disk", &link);
    application(async {
        resting::ready(&mut alice.client()).await;
        resting::at_rest().await;
    });
    measured(&folder, alice, bob, count, length)
}

/// Sends so many bundles from one node to the other, and ends them.
fn measured(folder: &Path, alice: Node, bob: Node, count: usize, length: usize) -> Value {
    let (sender, receiver) = (alice.client(), bob.client());
    let before = application(holds(&mut [alice.client(), bob.client()])).0;
    let me = process::of(None);
    let (cpu, written) = (me.cpu_s(), me.written_bytes());
    let began = Instant::now();
    let sending = std::thread::spawn(move || application(send(sender, "dtn://bob/sink", count, length)));
    application(receive(receiver, count, length));
    let seconds = began.elapsed().as_secs_f64();
    let (cpu, written) = (me.cpu_s() - cpu, me.written_bytes() - written);
    sending.join().expect("the sender is content");
    let (stranded, batches) = application(settle(before, &mut [alice.client(), bob.client()]));
    drop((alice, bob));
    let _ = std::fs::remove_dir_all(folder);
    let rate = count as f64 / seconds;
    let mut figures = json!({
        "seconds": seconds,
        "bundles_per_s": rate,
        "mbit_per_s": rate * length as f64 * 8e-6,
        "cpu_us": cpu * 1e6 / count as f64,
        "peak_mb": me.peak_mb(),
        "stranded": stranded,
    });
    if let Some(batch_bytes) = written.checked_div(batches) {
        figures["batch_kb"] = json!(batch_bytes as f64 / 1e3);
        figures["stores_mb_per_s"] = json!(written as f64 / seconds / 1e6);
        figures["disk_mb_per_s"] = json!(disk::mb_per_s(written, batch_bytes));
    }
    figures
}

/// Waits until the nodes have no more than this; what is left beyond it all the same, and how many batches both stores have
/// synced.
pub(crate) async fn settle(before: u64, clients: &mut [AppClient]) -> (u64, u64) {
    let began = Instant::now();
    loop {
        let (left, batches) = holds(clients).await;
        if left <= before || began.elapsed() > PATIENCE {
            return (left.saturating_sub(before), batches);
        }
    }
}

/// Number of bundles that the nodes have, and of batches that their stores have synced.
async fn holds(clients: &mut [AppClient]) -> (u64, u64) {
    let (mut bundles, mut batches) = (0, 0);
    for client in &mut *clients {
        let status = status(client).await;
        bundles += status["bundles"].as_u64().unwrap_or(0);
        batches += status["store"]["synced_batches"].as_u64().unwrap_or(0);
    }
    (bundles, batches)
}

/// At most so many sends are not durable at a time.
const OPEN_MAX: u64 = 512;

/// Sends so many bundles; returns when all are accepted.
pub(crate) async fn send(mut client: AppClient, to: &str, count: usize, length: usize) {
    let mut accepted = 0;
    let payloads = Payloads::new(length);
    for send in 0..count as u64 {
        let (body, mut left) = payloads.parts(send);
        let options = MessageOptions::default();
        let head = Request::Send { send, to: to.to_owned(), length: length as u64, options };
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
}

/// Number of reads of a delivery that are requested before the first is answered.
const READS: usize = 4;

fn is_accepted(reply: Message<Reply>) -> bool {
    match reply.head {
        Reply::Accepted { .. } => true,
        Reply::Failed { reason, .. } => panic!("{reason}"),
        _ => false,
    }
}

/// Receives so many bundles, reads and compares each, and accepts it.
pub(crate) async fn receive(mut client: AppClient, count: usize, length: usize) {
    let inline_bytes = 256 * 1024;
    assert!(client.request(Request::Register { endpoint: "sink".into(), inline_bytes }).await);
    let payloads = Payloads::new(length);
    let mut seen = vec![false; count];
    // Number and length so far of those that are being read.
    let (mut taken, mut reading) = (0, BTreeMap::<u64, (u64, usize)>::new());
    while taken < count {
        let Message { head, body } = client.reply().await.expect("the node is there");
        let delivery = match head {
            Reply::Delivered { delivery, length: all, .. } if all > u64::from(inline_bytes) => {
                for offset in (0..all).step_by(inline_bytes as usize).take(READS) {
                    assert!(client.request(Request::Read { delivery, offset, length: inline_bytes }).await);
                }
                continue;
            }
            Reply::Delivered { delivery, .. } | Reply::Data { delivery, .. } => delivery,
            Reply::Gone { .. } => {
                taken += 1;
                continue;
            }
            _ => continue,
        };
        let (number, read) = reading.entry(delivery).or_insert_with(|| (Payloads::number(&body), 0));
        payloads.compare(*number, *read, &body);
        *read += body.len();
        let (number, read) = (*number, *read);
        if read == length {
            reading.remove(&delivery);
            assert!(!std::mem::replace(&mut seen[number as usize], true), "once");
            assert!(client.request(Request::Taken { delivery }).await);
        } else if read.is_multiple_of(inline_bytes as usize) {
            let offset = read as u64 + (READS as u64 - 1) * u64::from(inline_bytes);
            if offset < length as u64 {
                assert!(client.request(Request::Read { delivery, offset, length: inline_bytes }).await);
            }
        }
    }
}
