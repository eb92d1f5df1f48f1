//! Pings, one after the other.

use super::HttpState;
use super::answer::RequestFailure;
use super::api::ParameterSource;
use crate::client::AppClient;
use crate::message::{Message, MessageOptions, Reply, Request};
use crate::ping;
use crate::view::Pings;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Pings of one request.
const COUNT_MAX: u32 = 100;
/// Seconds that one may take.
const TIMEOUT_S: (f64, f64) = (10.0, 60.0);
/// Payloads up to this length come with their delivery.
const INLINE_BYTES: u32 = 64 * 1024;
/// Services of `ipn` nodes from this number on are for these pings.
const SERVICE_FIRST: u64 = 0x20_0000;

/// How to ping.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PingQuery {
    /// The node, or the endpoint of an echo service: `dtn://bob/`, `ipn:7.0`, `ipn:7.2047`.
    to: String,
    /// How many; 1 if it is not said, 100 at the most.
    count: Option<u32>,
    /// Bytes of payload; 64 if it is not said, 8 at the least, 16,777,216 at the most.
    size_bytes: Option<u32>,
    /// How long to wait for each, seconds; 10 if it is not said, 60 at the most.
    timeout_s: Option<f64>,
}

pub(super) async fn ping(
    shared: Arc<HttpState>,
    asked: ParameterSource<PingQuery>,
) -> Result<Pings, RequestFailure> {
    let PingQuery { to, count, size_bytes, timeout_s } = asked.query;
    let to = ping::target(&to);
    let timeout_s = timeout_s.filter(|time| *time >= 0.0).unwrap_or(TIMEOUT_S.0).min(TIMEOUT_S.1);
    let timeout = Duration::from_secs_f64(timeout_s);
    let number = shared.pings.fetch_add(1, Ordering::Relaxed);
    let is_ipn = shared.node.starts_with("ipn:");
    let endpoint = if is_ipn { (SERVICE_FIRST + number).to_string() } else { format!("http-ping-{number}") };
    let mut client = shared.client_factory.client();
    say(&client, Request::Register { endpoint: endpoint.clone(), inline_bytes: INLINE_BYTES }).await?;
    let mut times = Vec::new();
    for number in 0..count.unwrap_or(1).clamp(1, COUNT_MAX) {
        let body = ping::payload(number.into(), size_bytes.unwrap_or(64));
        let options = MessageOptions {
            source: Some(endpoint.clone()),
            lifetime_s: timeout_s.max(1.0),
            ..MessageOptions::default()
        };
        let length = body.len() as u64;
        let head = Request::Send { send: number.into(), to: to.clone(), length, options };
        let began = Instant::now();
        hand_over(&client, head, body).await?;
        let back = tokio::time::timeout(timeout, wait(&mut client, number.into())).await;
        times.push(match back {
            Ok(back) => back?.then(|| began.elapsed().as_secs_f64() * 1000.0),
            Err(_) => None,
        });
    }
    Ok(ping::add_up(to, times))
}

/// What is longer than a message is said in pieces.
async fn hand_over(client: &AppClient, head: Request, mut body: bytes::Bytes) -> Result<(), RequestFailure> {
    let Request::Send { send, .. } = head else { return Ok(()) };
    let first = body.split_to(body.len().min(INLINE_BYTES as usize));
    say(client, Message { head, body: first }).await?;
    while !body.is_empty() {
        let piece = body.split_to(body.len().min(4 * INLINE_BYTES as usize));
        say(client, Message { head: Request::Piece { send }, body: piece }).await?;
    }
    Ok(())
}

async fn say(client: &AppClient, request: impl Into<Message<Request>>) -> Result<(), RequestFailure> {
    if client.request(request).await { Ok(()) } else { Err(RequestFailure::gone()) }
}

/// Waits for a ping to come back; those that were given up are taken on the way.
async fn wait(client: &mut AppClient, wanted: u64) -> Result<bool, RequestFailure> {
    loop {
        let said = client.reply().await.ok_or_else(RequestFailure::gone)?;
        let (delivery, number) = match said.head {
            Reply::Delivered { delivery, .. } if ping::number(&said.body).is_none() => {
                say(client, Request::Read { delivery, offset: 0, length: ping::BYTES_MIN }).await?;
                continue;
            }
            Reply::Delivered { delivery, .. } | Reply::Data { delivery, .. } => {
                (delivery, ping::number(&said.body))
            }
            Reply::Failed { send, reason, .. } if send == wanted => {
                return Err(RequestFailure::bad(format!("the ping was not sent: {reason}"), None));
            }
            Reply::Error { what, hint } => return Err(RequestFailure::bad(what, hint)),
            _ => continue,
        };
        say(client, Request::Taken { delivery }).await?;
        if number == Some(wanted) {
            return Ok(true);
        }
    }
}
