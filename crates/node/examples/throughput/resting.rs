//! Nodes that have little to do: how long a ping takes, and what a node costs that idles or holds much.

use crate::path::{application, node};
use crate::process;
use longwire_node::message::{Message, MessageOptions, Reply, Request};
use longwire_node::view::Filter;
use longwire_node::{AppClient, echo_service};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Payload of a ping, bytes.
const PING_BYTES: usize = 64;

pub(crate) fn ping() -> Value {
    let folder = crate::folder().join(format!("longwire-ping-{}", std::process::id()));
    let bob = node(&folder, "bob", "memory", "listen = ['127.0.0.1:0']");
    let link = format!("link = [{{ name = 'bob', address = '{}' }}]", bob.addresses()[0]);
    let alice = node(&folder, "alice", "memory", &link);
    let mut client = alice.client();
    let mut trips: Vec<Duration> = Vec::new();
    application(async {
        let register = Request::Register { endpoint: "ping".into(), inline_bytes: 1000 };
        assert!(client.request(register).await);
        for send in 0..200 {
            let began = Instant::now();
            let options = MessageOptions { source: Some("ping".into()), ..MessageOptions::default() };
            let to = format!("dtn://bob/{}", echo_service(false));
            let head = Request::Send { send, to, length: PING_BYTES as u64, options };
            assert!(client.request(Message { head, body: vec![7; PING_BYTES].into() }).await);
            let delivery = loop {
                if let Reply::Delivered { delivery, .. } =
                    client.reply().await.expect("the node is there").head
                {
                    break delivery;
                }
            };
            trips.push(began.elapsed());
            assert!(client.request(Request::Taken { delivery }).await);
        }
    });
    trips.sort();
    let ms = |at: usize| (trips[at].as_secs_f64() * 1e5).round() / 100.0;
    json!({ "median_ms": ms(trips.len() / 2), "p95_ms": ms(trips.len() * 95 / 100) })
}

pub(crate) fn idle() -> Value {
    let folder = crate::folder().join(format!("longwire-idle-{}", std::process::id()));
    let node = node(&folder, "idle", "disk", "listen = ['127.0.0.1:0']");
    let mut client = node.client();
    application(async { while !status(&mut client).await["ready"].as_bool().unwrap_or(false) {} });
    let memory = process::of(None).memory_mb().round();
    drop(node);
    let _ = std::fs::remove_dir_all(folder);
    json!({ "memory_mb": memory })
}

/// So many bundles of 1 KiB for a node that nobody knows, stored durably.
pub(crate) fn fill(count: usize) -> Value {
    let folder = stored();
    let _ = std::fs::remove_dir_all(&folder);
    let node = node(&folder, "full", "disk", "");
    let began = Instant::now();
    application(crate::path::send(node.client(), "dtn://nowhere/x", count, 1024));
    let rate = count as f64 / began.elapsed().as_secs_f64();
    // Without the application, whose sends the node has remembered while it was there.
    application(async {
        status(&mut node.client()).await;
    });
    let me = process::of(None);
    json!({ "bundles_per_s": rate.round(), "memory_mb": me.own_mb().round(), "peak_mb": me.peak_mb().round() })
}

/// Opens what `fill` has left, as after a kill, and reads the list of bundles.
pub(crate) fn found() -> Value {
    let began = Instant::now();
    let node = node(&stored(), "full", "disk", "");
    let mut client = node.client();
    let bundles = application(ready(&mut client));
    let start_s = rounded(began.elapsed().as_secs_f64());
    let me = process::of(None);
    let (memory_mb, peak_mb) = (me.own_mb().round(), me.peak_mb().round());
    let mut pages = application(pages(&mut client));
    let all_s = rounded(pages.iter().map(Duration::as_secs_f64).sum());
    pages.sort();
    let page_ms = |at: usize| rounded(pages[at].as_secs_f64() * 1e3);
    json!({
        "bundles": bundles,
        "start_s": start_s,
        "memory_mb": memory_mb,
        "peak_mb": peak_mb,
        "page_ms": page_ms(pages.len() / 2),
        "longest_page_ms": page_ms(pages.len() - 1),
        "all_pages_s": all_s,
        "memory_after_list_mb": me.own_mb().round(),
    })
}

/// Bundles from a node that holds what `fill` has left to another node; the stored ones are removed at the end.
pub(crate) fn beside(count: usize) -> Value {
    let figures = crate::path::beside_others(&stored(), count, 1024);
    let _ = std::fs::remove_dir_all(stored());
    let rate = figures["bundles_per_s"].as_f64().unwrap_or(f64::NAN);
    json!({ "bundles_per_s": rate.round(), "peak_mb": figures["peak_mb"], "stranded": figures["stranded"] })
}

fn stored() -> PathBuf {
    crate::folder().join("longwire-stored")
}

fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

/// Waits until a node has read its store; how many bundles it holds.
pub(crate) async fn ready(client: &mut AppClient) -> Value {
    loop {
        let status = status(client).await;
        if status["ready"].as_bool().unwrap_or(false) {
            return status["bundles"].clone();
        }
        // A status takes the time of the node, too.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until this process, whose node is ready, has nothing to do: it dispatches what it has found in its store after that.
pub(crate) async fn at_rest() {
    const LOOK: Duration = Duration::from_millis(500);
    // A tenth of a processor; an idle node takes less than a hundredth.
    const BUSY_S: f64 = 0.05;
    let me = process::of(None);
    let mut before = f64::NEG_INFINITY;
    while me.cpu_s() - before > BUSY_S {
        before = me.cpu_s();
        tokio::time::sleep(LOOK).await;
    }
}

/// Reads the list of bundles, and measures how long each page takes.
async fn pages(client: &mut AppClient) -> Vec<Duration> {
    const BUNDLES: usize = 100;
    let (mut after, mut took) = (None, Vec::new());
    loop {
        let began = Instant::now();
        let head = Request::Bundles { limit: BUNDLES, after, filter: Filter::default() };
        assert!(client.request(head).await);
        let page = loop {
            if let Reply::Bundles { page } = client.reply().await.expect("the node is there").head {
                break page;
            }
        };
        took.push(began.elapsed());
        after = page.next;
        if after.is_none() {
            return took;
        }
    }
}

/// Returns the status of a node.
pub(crate) async fn status(client: &mut AppClient) -> Value {
    assert!(client.request(Request::Status).await);
    loop {
        if let Reply::Status { status } = client.reply().await.expect("the node is there").head {
            return serde_json::to_value(status).expect("it has a form in JSON");
        }
    }
}
