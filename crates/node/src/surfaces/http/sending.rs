//! Sends: the payload is the body of a request and is passed to the node as it arrives, so its size is not limited. The answer is
//! sent when the bundle is durable. A client that disconnects before has sent nothing.

use super::answer::{Answer, RequestFailure, json};
use super::api::Parameters;
use super::{HttpState, say};
use crate::envelope;
use crate::surfaces::client::AppClient;
use crate::surfaces::message::{Message, MessageOptions, PART_BYTES, Reply, Request};
use crate::view::{Accepted, Urgency};
use axum::body::{Body, BodyDataStream};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::BytesMut;
use futures_util::StreamExt;
use longwire_proto::service::{BundleName, BundleVersion, Priority};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time and bytes for discarding the rest of a refused payload.
const LINGER_MAX: (Duration, usize) = (Duration::from_secs(1), 8 << 20);

/// Parameters of a bundle to send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendQuery {
    /// Destination, such as `dtn://bob/files` or `ipn:7.1`.
    to: String,
    /// File name for the payload; the receiver stores it as a file of this name. If missing, only the payload is sent.
    name: Option<String>,
    /// Priority; default `normal`.
    #[schemars(with = "Option<Urgency>")]
    priority: Option<Priority>,
    /// Lifetime, seconds; default one day.
    lifetime_s: Option<f64>,
    /// Source endpoint of this node; default the node ID.
    source: Option<String>,
    /// Hop limit.
    hop_limit: Option<u8>,
    /// True to forbid fragmentation.
    must_not_fragment: Option<bool>,
    /// Bundle Protocol version, 6 or 7; default from the configuration.
    #[schemars(with = "Option<u8>")]
    bundle_version: Option<BundleVersion>,
    /// Request custody transfer; implies version 6.
    custody: Option<bool>,
    /// Request a delivery report, which arrives as an event.
    report_delivery: Option<bool>,
    /// Request reception reports from every node.
    report_reception: Option<bool>,
    /// Request forwarding reports from every node.
    report_forwarding: Option<bool>,
    /// Request deletion reports from every node.
    report_deletion: Option<bool>,
}

impl SendQuery {
    fn options(&self) -> Answer<MessageOptions> {
        let plain = MessageOptions::default();
        let lifetime_s = self.lifetime_s.unwrap_or(plain.lifetime_s);
        if !(lifetime_s > 0.0 && lifetime_s.is_finite()) {
            let what = format!("`lifetime_s` is {lifetime_s}; it must be finite and greater than zero");
            return Err(RequestFailure::new(
                StatusCode::BAD_REQUEST,
                what,
                Some("for example lifetime_s=3600"),
            ));
        }
        Ok(MessageOptions {
            priority: self.priority.unwrap_or_default(),
            lifetime_s,
            report_delivery: self.report_delivery.unwrap_or(false),
            report_reception: self.report_reception.unwrap_or(false),
            report_forwarding: self.report_forwarding.unwrap_or(false),
            report_deletion: self.report_deletion.unwrap_or(false),
            must_not_fragment: self.must_not_fragment.unwrap_or(false),
            hop_limit: self.hop_limit,
            source: self.source.clone(),
            bundle_version: self.bundle_version,
            custody: self.custody.unwrap_or(false),
            ..plain
        })
    }
}

pub(super) async fn send(
    shared: Arc<HttpState>,
    asked: Parameters<SendQuery>,
    head: Parts,
    body: Body,
) -> Answer<Response> {
    let sending = asked.query;
    let length = head.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let Some(length): Option<u64> = length else {
        let hint = Some("send the payload length as Content-Length; a bundle starts with it");
        return Err(RequestFailure::new(StatusCode::LENGTH_REQUIRED, "missing Content-Length", hint));
    };
    let name = sending.name.as_deref().map(envelope::head).unwrap_or_default();
    let payload_bytes = length.saturating_add(name.len() as u64);
    let mut client = shared.client_factory.client();
    let opening =
        Request::Send { send: 1, to: sending.to.clone(), length: payload_bytes, options: sending.options()? };
    say(&client, Message { head: opening, body: name }).await?;
    let mut body = body.into_data_stream();
    if let Err(failure) = hand_over(&shared, &mut client, &mut body, length).await {
        linger(body).await;
        return Err(failure);
    }
    loop {
        if let Some(bundle) = judge(client.reply().await)? {
            let id = bundle.to_string();
            let BundleName { source, created } = bundle;
            let location = HeaderValue::from_str(&format!("/bundles/{id}"));
            let accepted = Accepted { id, source, created, destination: sending.to, payload_bytes };
            let mut response = json(StatusCode::CREATED, &accepted);
            if let Ok(location) = location {
                response.headers_mut().insert(header::LOCATION, location);
            }
            return Ok(response);
        }
    }
}

/// Passes the payload on as it arrives.
async fn hand_over(
    shared: &HttpState,
    client: &mut AppClient,
    body: &mut BodyDataStream,
    length: u64,
) -> Answer<()> {
    let mut piece = BytesMut::new();
    let mut left = length;
    while left > 0 {
        tokio::select! {
            biased;
            said = client.reply() => { judge(said)?; }
            next = tokio::time::timeout(shared.counted.patience.time(), body.next()) => match next {
                Ok(Some(Ok(bytes))) => {
                    left = left.saturating_sub(bytes.len() as u64);
                    piece.extend_from_slice(&bytes);
                    while piece.len() >= PART_BYTES as usize || (left == 0 && !piece.is_empty()) {
                        let some = piece.split_to(piece.len().min(PART_BYTES as usize)).freeze();
                        say(client, Message { head: Request::Piece { send: 1 }, body: some }).await?;
                    }
                }
                Ok(_) => {
                    let what = format!("the body ended {left} bytes short of its length; nothing was sent");
                    return Err(RequestFailure::new(StatusCode::BAD_REQUEST, what, None));
                }
                Err(_) => {
                    shared.counted.patience.count();
                    let what = "request body timed out; nothing was sent";
                    return Err(RequestFailure::new(StatusCode::REQUEST_TIMEOUT, what, Some("retry the request")));
                }
            }
        }
    }
    Ok(())
}

/// Discards the rest of a refused payload, so that the client can read the answer: closing a connection with unread bytes
/// discards the answer, too.
async fn linger(body: BodyDataStream) {
    let (patience, bytes) = LINGER_MAX;
    let mut left = bytes;
    let rest = body.take_while(|next| {
        left = next.as_ref().map_or(0, |some| left.saturating_sub(some.len()));
        std::future::ready(left > 0)
    });
    // The answer is sent in any case.
    let _ = tokio::time::timeout(patience, rest.for_each(|_| std::future::ready(()))).await;
}

/// Evaluates a reply about a send; returns the name of the bundle once it is durable.
fn judge(said: Option<Message<Reply>>) -> Answer<Option<BundleName>> {
    match said.ok_or_else(RequestFailure::gone)?.head {
        Reply::Accepted { source, created, .. } => Ok(Some(BundleName { source, created })),
        Reply::Failed { reason, code, .. } => {
            let (status, hint) = match code.as_str() {
                "no_custody" => (StatusCode::BAD_REQUEST, "remove `custody`"),
                "bad_endpoint" => {
                    (StatusCode::BAD_REQUEST, "an endpoint ID looks like dtn://name/inbox or ipn:3.1")
                }
                "full" => (
                    StatusCode::INSUFFICIENT_STORAGE,
                    "wait for bundles to leave; see /bundles for what they wait for",
                ),
                "limit" => (StatusCode::PAYLOAD_TOO_LARGE, "see /status for the limits"),
                "storage" => (StatusCode::INTERNAL_SERVER_ERROR, "the disk may be failing; check the log"),
                _ => (StatusCode::CONFLICT, "see /events for what happens to bundles"),
            };
            Err(RequestFailure::new(status, format!("it was not sent: {reason}"), Some(hint)))
        }
        Reply::Error { what, hint, .. } => Err(RequestFailure::bad(what, hint)),
        _ => Ok(None),
    }
}
