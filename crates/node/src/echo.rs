//! The echo service: what comes to it goes back to where it came from, as an application of its own node.
//!
//! Its endpoint is service 7 of `ipn` nodes, `echo` of `dtn` nodes. It does not answer another echo service, nor itself:
//! two of them would never end.

use crate::client::Client;
use crate::message::{Message, Options, Reply, Request};
use std::collections::BTreeMap;

/// Payloads longer than this get no answer.
const PAYLOAD_BYTES_MAX: u32 = 64 * 1024;
/// Answers that were handed over and are not durable.
const PENDING_MAX: usize = 256;

/// The service of an endpoint with this scheme.
pub fn service(is_ipn: bool) -> &'static str {
    if is_ipn { "7" } else { "echo" }
}

fn is_echo(endpoint: &str) -> bool {
    endpoint.ends_with("/echo") || (endpoint.starts_with("ipn:") && endpoint.ends_with(".7"))
}

/// Answers until the node ends.
pub(crate) async fn serve(mut client: Client, is_ipn: bool) {
    let endpoint = service(is_ipn).to_owned();
    if !client
        .request(Request::Register { endpoint: endpoint.clone(), inline_bytes: PAYLOAD_BYTES_MAX })
        .await
    {
        return;
    }
    // The send that answers a delivery: when that is durable, the delivery is taken.
    let mut pending: BTreeMap<u64, u64> = BTreeMap::new();
    let mut next = 0;
    while let Some(Message { head, body }) = client.reply().await {
        let asked = match head {
            Reply::Delivered { delivery, source, length, .. } => {
                let answerable = !is_echo(&source) && source != "dtn:none" && length == body.len() as u64;
                if answerable && pending.len() < PENDING_MAX {
                    next += 1;
                    pending.insert(next, delivery);
                    let options = Options { source: Some(endpoint.clone()), ..Options::default() };
                    let head = Request::Send { send: next, to: source, length, options };
                    client.request(Message { head, body }).await
                } else {
                    client.request(Request::Taken { delivery }).await
                }
            }
            Reply::Accepted { send, .. } | Reply::Sent { send } | Reply::Failed { send, .. } => {
                match pending.remove(&send) {
                    Some(delivery) => client.request(Request::Taken { delivery }).await,
                    None => true,
                }
            }
            _ => true,
        };
        if !asked {
            return;
        }
    }
}
