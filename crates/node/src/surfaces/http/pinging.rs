//! Pings, one after the other.

use super::answer::{Answer, RequestFailure};
use super::api::Parameters;
use super::{HttpState, say};
use crate::surfaces::client::AppClient;
use crate::surfaces::message::{Reply, Request};
use crate::surfaces::ping;
use crate::view::Pings;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum pings of one request.
const COUNT_MAX: u32 = 100;
/// Time to wait for a reply, seconds: default and maximum.
const TIMEOUT_S: (f64, f64) = (10.0, 60.0);
/// Maximum payload length that is delivered together with its notification.
const INLINE_BYTES: u32 = 64 * 1024;
/// First service number of `ipn` nodes that is used for these pings.
const SERVICE_FIRST: u64 = 0x20_0000;

/// Parameters of a ping.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PingQuery {
    /// Node, or endpoint of an echo service: `dtn://bob/`, `ipn:7.0`, `ipn:7.2047`.
    to: String,
    /// Number of pings; default 1, maximum 100.
    count: Option<u32>,
    /// Payload length, bytes; default 64, from 8 to 16,777,216.
    size_bytes: Option<u32>,
    /// Seconds to wait for each reply; default 10, maximum 60.
    timeout_s: Option<f64>,
}

pub(super) async fn ping(shared: Arc<HttpState>, asked: Parameters<PingQuery>) -> Answer<Pings> {
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
    for number in 0..u64::from(count.unwrap_or(1).clamp(1, COUNT_MAX)) {
        let began = Instant::now();
        for request in ping::requests(number, &to, &endpoint, size_bytes.unwrap_or(64), timeout_s.max(1.0)) {
            say(&client, request).await?;
        }
        let back = tokio::time::timeout(timeout, wait(&mut client, number)).await;
        times.push(match back {
            Ok(back) => back?.then(|| began.elapsed().as_secs_f64() * 1000.0),
            Err(_) => None,
        });
    }
    Ok(ping::add_up(to, times))
}

/// Waits for the reply to a ping; takes late replies to earlier ones.
async fn wait(client: &mut AppClient, wanted: u64) -> Answer<bool> {
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
                return Err(RequestFailure::bad(format!("ping failed: {reason}"), None));
            }
            Reply::Error { what, hint, .. } => return Err(RequestFailure::bad(what, hint)),
            _ => continue,
        };
        say(client, Request::Taken { delivery }).await?;
        if number == Some(wanted) {
            return Ok(true);
        }
    }
}
