//! Events as a stream (Server-Sent Events, HTML Living Standard 9.2).
//!
//! ```text
//!   id: 17
//!   event: link_up
//!   data: {"sequence":17,"uptime_s":3.5,"dtn_ms":842000000000,"event":"link_up","link":"bob","peer":"dtn://bob/"}
//! ```
//!
//! A client that reconnects sends the number of the last event that it has seen, as `Last-Event-ID` (browsers do) or `after`, and
//! resumes from there. A client that reads too slowly gets the number of missed events: `event: missed`, without an `id`.

use super::HttpState;
use super::answer::Answer;
use super::api::Parameters;
use crate::surfaces::event_log::EventReader;
use crate::surfaces::message::Request;
use crate::view::{Event, EventRecord};
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Maximum events per write.
const EVENTS_AT_ONCE: usize = 64;
/// Time without an event after which a keep-alive comment is sent.
const BETWEEN: Duration = Duration::from_secs(15);

/// Position at which the stream begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// Number of the last event already received; zero for the oldest available. If missing, only new events.
    after: Option<u64>,
}

pub(super) async fn watch(
    shared: Arc<HttpState>,
    asked: Parameters<EventsQuery>,
    head: Parts,
    _: Body,
) -> Answer<Response> {
    let seen = head.headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let reader = shared.events.reader(seen.or(asked.query.after));
    // Starts the recording of events of bundles.
    shared.ask(Request::Watch).await?;
    let parts = futures_util::stream::unfold(reader, async |reader| Some(part(reader).await));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// Next part of the stream.
async fn part(mut reader: EventReader) -> (Result<Bytes, Infallible>, EventReader) {
    let mut text = String::new();
    match tokio::time::timeout(BETWEEN, reader.next(EVENTS_AT_ONCE)).await {
        Ok(Some((missed, events))) => {
            if missed > 0 {
                write(&mut text, None, &Event::Missed { count: missed }, &Event::Missed { count: missed });
            }
            for noted in events {
                let noted: &EventRecord = &noted;
                write(&mut text, Some(noted.sequence), &noted.event, noted);
            }
        }
        Ok(None) => std::future::pending().await,
        Err(_) => text.push_str(": keepalive\n\n"),
    }
    (Ok(text.into()), reader)
}

fn write(text: &mut String, sequence: Option<u64>, event: &Event, data: &impl serde::Serialize) {
    if let Some(sequence) = sequence {
        let _ = writeln!(text, "id: {sequence}");
    }
    let name = serde_json::to_value(event).unwrap_or_default();
    let name = name["event"].as_str().unwrap_or("event");
    let data = serde_json::to_string(data).unwrap_or_default();
    let _ = write!(text, "event: {name}\ndata: {data}\n\n");
}
