//! Nodes that have little to do: how long a ping takes, and what a node costs that idles or holds much.

use crate::path::{application, node};
use crate::process;
use longwire_node::message::{Message, MessageOptions, Reply, Request};
use longwire_node::{AppClient, echo_service};
use serde_json::{Value, json};
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
    let folder = crate::folder().join("longwire-stored");
    let _ = std::fs::remove_dir_all(&folder);
    let node = node(&folder, "full", "disk", "");
    let client = node.client();
    application(crate::path::send(client, "dtn://nowhere/x", count, 1024));
    json!({ "peak_mb": process::of(None).peak_mb().round() })
}

/// Opens what `fill` has left, as after a kill.
pub(crate) fn found() -> Value {
    let folder = crate::folder().join("longwire-stored");
    let began = Instant::now();
    let node = node(&folder, "full", "disk", "");
    let mut client = node.client();
    let mut last = Value::Null;
    application(async {
        while !last["ready"].as_bool().unwrap_or(false) {
            last = status(&mut client).await;
        }
    });
    let seconds = (began.elapsed().as_secs_f64() * 100.0).round() / 100.0;
    let memory = process::of(None).memory_mb().round();
    drop(node);
    let _ = std::fs::remove_dir_all(folder);
    json!({ "bundles": last["bundles"], "memory_mb": memory, "start_s": seconds })
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
