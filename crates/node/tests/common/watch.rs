//! All nodes of a test, so that a test that is stuck can show the status of each of them.

use longwire_node::message::{Reply, Request};
use longwire_node::{AppClient, Node};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// A node that does not answer in this time is stuck itself.
const ANSWER: Duration = Duration::from_secs(5);

type Clients = Arc<dyn Fn() -> AppClient + Send + Sync>;

/// Nodes by the thread of their test.
static NODES: LazyLock<Mutex<HashMap<ThreadId, Vec<Clients>>>> = LazyLock::new(Mutex::default);

/// Adds a node to the test of this thread. May be called more than once.
pub(crate) fn enter(node: &Node) {
    let clients: Clients = Arc::new(node.clients());
    NODES.lock().expect("no thread panics with it").entry(thread::current().id()).or_default().push(clients);
}

/// Fails the test, which waits in vain.
#[track_caller]
pub(crate) fn stuck(what: &str) -> ! {
    panic!("waited in vain: {what}\n{}", statuses());
}

/// Status of all nodes of this test; of all nodes if this is not the thread of a test.
pub(crate) fn statuses() -> String {
    let nodes = {
        let all = NODES.lock().expect("no thread panics with it");
        match all.get(&thread::current().id()) {
            Some(nodes) => nodes.clone(),
            None => all.values().flatten().cloned().collect(),
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut told: Vec<(Value, f64)> = Vec::new();
    let mut text = String::new();
    for clients in nodes {
        let mut client = clients();
        let asked = runtime.block_on(async {
            // A node that has ended is left out.
            client.request(Request::Status).await.then_some(())?;
            Some(tokio::time::timeout(ANSWER, client.reply()).await)
        });
        match asked {
            None | Some(Ok(None)) => {}
            Some(Err(_)) => text += "a node does not answer\n",
            Some(Ok(Some(reply))) => {
                let Reply::Status { status } = reply.head else { continue };
                let began = status.dtn_ms.unwrap_or(0) as f64 / 1000.0 - status.uptime_s;
                let status = serde_json::to_value(status).expect("a status is JSON");
                let is_known =
                    |(node, at): &(Value, f64)| *node == status["node"] && (at - began).abs() < 0.5;
                if !told.iter().any(is_known) {
                    told.push((status["node"].clone(), began));
                    text += &format!("{} is: {status:#}\n", status["node"]);
                }
            }
        }
    }
    text
}
