//! Mailboxes: what arrived for an endpoint, until it is taken.
//!
//! ```text
//!   POST /registrations --> a mailbox, an application of the node --> GET /deliveries, GET /deliveries/ID (as often as
//!                           one likes) --> DELETE /deliveries/ID: taken, and that is durable: the node may forget it
//! ```
//!
//! HTTP has no connection that could own an endpoint, so a mailbox does, for as long as it is used. A download takes
//! nothing: whoever dies in the middle of one asks again, also for the rest (`Range`). When a mailbox ends, because it was
//! told to or nobody has used it for its lease, what was not taken waits in the node for the next registration.

use super::HttpState;
use super::answer::RequestFailure;
use super::api::ParameterSource;
use crate::applications::full_endpoint;
use crate::client::AppClient;
use crate::envelope;
use crate::message::{Message, Reply, Request};
use crate::view::{self, Deliveries, Delivery, Done, Registration, Registrations};
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// Mailboxes at a time.
const MAILBOXES_MAX: usize = 64;
/// Bytes that are read at once.
const READ_BYTES: u32 = 256 * 1024;
/// Questions that wait for a mailbox.
const ASKS_MAX: usize = 64;
/// How long a mailbox stays unused, unless another time is said: the default, and the most.
const LEASE_S: (u32, u32) = (300, 86_400);
/// How long a list is waited for at the most.
const WAIT_S_MAX: u32 = 60;

/// All mailboxes, by endpoint.
pub(super) type Mailboxes = Mutex<BTreeMap<String, Mailbox>>;

/// A mailbox, as operations have it.
#[derive(Clone)]
pub(super) struct Mailbox {
    asks: mpsc::Sender<MailboxRequest>,
    lease_s: u32,
    /// What is there.
    deliveries: watch::Receiver<BTreeMap<u64, Delivery>>,
}

enum MailboxRequest {
    /// It is used.
    Touch,
    Read {
        delivery: u64,
        offset: u64,
        length: u32,
        answer: oneshot::Sender<Bytes>,
    },
    Take {
        delivery: u64,
        answer: oneshot::Sender<bool>,
    },
}

/// Which endpoint.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RegisterQuery {
    /// The endpoint: in full, or what stands behind the node id.
    endpoint: String,
    /// After so long without use the registration ends, seconds; 300 if it is not said, 86,400 at the most.
    lease_s: Option<u32>,
}

pub(super) async fn register(
    shared: Arc<HttpState>,
    asked: ParameterSource<RegisterQuery>,
) -> Result<Registration, RequestFailure> {
    let endpoint = full_endpoint(&shared.node, &asked.query.endpoint);
    let lease_s = asked.query.lease_s.unwrap_or(LEASE_S.0).clamp(1, LEASE_S.1);
    // A registration that is there ends first: its lease may be another.
    unregister_now(&shared, &endpoint).await;
    if shared.boxes().len() >= MAILBOXES_MAX {
        let hint = Some("DELETE /registrations/ENDPOINT ends one");
        return Err(RequestFailure::new(
            StatusCode::TOO_MANY_REQUESTS,
            "there are too many registrations",
            hint,
        ));
    }
    let mut client = shared.client_factory.client();
    let _ = client.request(Request::Register { endpoint, inline_bytes: 0 }).await;
    let endpoint = match client.reply().await.map(|said| said.head) {
        Some(Reply::Registered { endpoint }) => endpoint,
        Some(Reply::Error { what, hint }) => return Err(RequestFailure::bad(what, hint)),
        _ => return Err(RequestFailure::gone()),
    };
    let (asks, asked) = mpsc::channel(ASKS_MAX);
    let (said, deliveries) = watch::channel(BTreeMap::new());
    let mailbox = Mailbox { asks, lease_s, deliveries };
    let keeper = MailboxTask {
        client,
        asks: asked,
        said,
        lease: Duration::from_secs(lease_s.into()),
        reads: BTreeMap::new(),
        takes: BTreeMap::new(),
    };
    tokio::spawn(keeper.run());
    shared.boxes().insert(endpoint.clone(), mailbox.clone());
    Ok(mailbox.registration(endpoint))
}

pub(super) async fn registrations(
    shared: Arc<HttpState>,
    _: ParameterSource<super::api::NoParameters>,
) -> Result<Registrations, RequestFailure> {
    let boxes = shared.boxes().clone();
    let all = boxes.into_iter().map(|(endpoint, mailbox)| mailbox.registration(endpoint));
    Ok(Registrations { registrations: all.collect() })
}

pub(super) async fn unregister(
    shared: Arc<HttpState>,
    asked: ParameterSource<super::api::NoParameters>,
) -> Result<Done, RequestFailure> {
    let endpoint = full_endpoint(&shared.node, &asked.named);
    if !unregister_now(&shared, &endpoint).await {
        return Err(not_registered(&endpoint));
    }
    Ok(Done { done: format!("nobody receives for {endpoint} here; what comes waits") })
}

/// Ends a mailbox; true: there was one. It is over when this returns.
async fn unregister_now(shared: &HttpState, endpoint: &str) -> bool {
    let Some(mailbox) = shared.boxes().remove(endpoint) else { return false };
    let Mailbox { asks, mut deliveries, .. } = mailbox;
    drop(asks);
    // Downloads under way keep it until they have what they asked for.
    while deliveries.changed().await.is_ok() {}
    true
}

fn not_registered(endpoint: &str) -> RequestFailure {
    let what = format!("nobody has registered {endpoint} here");
    let hint = Some("POST /registrations {\"endpoint\": ..} begins to receive for it");
    RequestFailure::new(StatusCode::NOT_FOUND, what, hint)
}

/// Which deliveries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveriesQuery {
    /// Of this registration.
    endpoint: String,
    /// If there is none, wait so long for the first, seconds; 60 at the most.
    wait_s: Option<u32>,
}

pub(super) async fn list(
    shared: Arc<HttpState>,
    asked: ParameterSource<DeliveriesQuery>,
) -> Result<Deliveries, RequestFailure> {
    let endpoint = full_endpoint(&shared.node, &asked.query.endpoint);
    let mut mailbox = shared.boxes().get(&endpoint).cloned().ok_or_else(|| not_registered(&endpoint))?;
    let _ = mailbox.asks.send(MailboxRequest::Touch).await;
    let wait = Duration::from_secs(asked.query.wait_s.unwrap_or(0).min(WAIT_S_MAX).into());
    let some = mailbox.deliveries.wait_for(|deliveries| !deliveries.is_empty());
    let _ = tokio::time::timeout(wait, some).await;
    let deliveries = mailbox.deliveries.borrow().values().cloned().collect();
    Ok(Deliveries { endpoint, deliveries })
}

pub(super) async fn take(
    shared: Arc<HttpState>,
    asked: ParameterSource<super::api::NoParameters>,
) -> Result<Done, RequestFailure> {
    let (mailbox, delivery) = shared.delivery(&asked.named)?;
    let (answer, taken) = oneshot::channel();
    let delivery = number(&delivery.id);
    let asked = mailbox.asks.send(MailboxRequest::Take { delivery, answer }).await;
    match taken.await {
        Ok(true) if asked.is_ok() => Ok(Done { done: "it is taken, and that is durable".into() }),
        Ok(_) => Err(RequestFailure::new(
            StatusCode::GONE,
            "its lifetime ended before it was taken; the node deleted it",
            None,
        )),
        Err(_) => Err(RequestFailure::gone()),
    }
}

/// How a payload is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DownloadQuery {
    /// As it was sent. Otherwise a payload that was sent with a name comes without it, as a file of this name.
    raw: Option<bool>,
}

pub(super) async fn download(
    shared: Arc<HttpState>,
    asked: ParameterSource<DownloadQuery>,
    head: Parts,
    _: Body,
) -> Result<Response, RequestFailure> {
    let (mailbox, delivery) = shared.delivery(&asked.named)?;
    let id = number(&delivery.id);
    let mut from = 0;
    let mut name = None;
    if !asked.query.raw.unwrap_or(false) && delivery.payload_bytes > 0 {
        let beginning = mailbox.read(id, 0, envelope::HEAD_BYTES_MAX as u32).await.ok_or_else(over)?;
        if let Some((said, length)) = envelope::read(&beginning) {
            from = length as u64;
            name = Some(envelope::safe_name(said));
        }
    }
    let length = delivery.payload_bytes - from;
    let range = head.headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let part = match range.and_then(part_of) {
        None => None,
        Some((first, last)) if first < length => Some((first, last.min(length - 1))),
        Some(_) => {
            let what = format!("there are {length} bytes");
            return Err(RequestFailure::new(StatusCode::RANGE_NOT_SATISFIABLE, what, None));
        }
    };
    let (first, end) = part.map_or((0, length), |(first, last)| (first, last + 1));
    let mut response = Response::new(mailbox.stream(id, from + first, from + end));
    let headers = response.headers_mut();
    let mut say = |name, text: String| {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    };
    say(header::CONTENT_TYPE, "application/octet-stream".into());
    say(header::CONTENT_LENGTH, (end - first).to_string());
    say(header::ACCEPT_RANGES, "bytes".into());
    // Whatever is in it, a browser is not to make a page of it.
    say(header::X_CONTENT_TYPE_OPTIONS, "nosniff".into());
    say(header::CONTENT_DISPOSITION, disposition(name.as_deref()));
    if part.is_some() {
        say(header::CONTENT_RANGE, format!("bytes {first}-{}/{length}", end - 1));
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// The first and the last byte of a range (RFC 9110 14.1.2); others than the plain kind are not heeded, as is allowed.
fn part_of(range: &str) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let first = first.parse().ok()?;
    let last = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    (first <= last).then_some((first, last))
}

/// To be kept as a file, under this name (RFC 6266 4.3, RFC 8187 3.2). Who does not know `filename*` finds the name in
/// `filename`, with `_` for what cannot be said there (RFC 6266 4.3 and appendix D).
fn disposition(name: Option<&str>) -> String {
    let Some(name) = name else { return "attachment".into() };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    let escape = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let plainly = |letter: char| {
        let quotable = letter.is_ascii_graphic() && !"\"\\%".contains(letter) || letter == ' ';
        if quotable { letter } else { '_' }
    };
    let plain: String = name.chars().map(plainly).collect();
    let exact: String = name.bytes().map(escape).collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}")
}

fn number(id: &str) -> u64 {
    id.parse().unwrap_or(u64::MAX)
}

fn over() -> RequestFailure {
    let hint = Some("GET /deliveries lists what is there");
    RequestFailure::new(StatusCode::GONE, "its lifetime ended; the node deleted it", hint)
}

impl HttpState {
    /// The mailboxes that have not ended.
    fn boxes(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Mailbox>> {
        let mut boxes = self.mailboxes.lock().expect("no thread panics while it has the mailboxes");
        boxes.retain(|_, mailbox| !mailbox.asks.is_closed());
        boxes
    }

    /// A delivery, and the mailbox that it is in.
    fn delivery(&self, id: &str) -> Result<(Mailbox, Delivery), RequestFailure> {
        let number = id.parse::<u64>().ok();
        let boxes = self.boxes();
        let found = boxes.values().find_map(|mailbox| {
            let delivery = mailbox.deliveries.borrow().get(&number?).cloned();
            Some((mailbox.clone(), delivery?))
        });
        found.ok_or_else(|| {
            let hint = Some("GET /deliveries lists what is there; an endpoint has to be registered first");
            RequestFailure::new(StatusCode::NOT_FOUND, format!("there is no delivery {id}"), hint)
        })
    }
}

impl Mailbox {
    fn registration(&self, endpoint: String) -> Registration {
        let deliveries = self.deliveries.borrow().len() as u64;
        Registration { endpoint, lease_s: self.lease_s, deliveries }
    }

    /// A part of a payload; none: it is gone.
    async fn read(&self, delivery: u64, offset: u64, length: u32) -> Option<Bytes> {
        let (answer, read) = oneshot::channel();
        self.asks.send(MailboxRequest::Read { delivery, offset, length, answer }).await.ok()?;
        read.await.ok()
    }

    /// A payload's bytes from one place to another, read as they go out.
    fn stream(self, delivery: u64, from: u64, to: u64) -> Body {
        let parts = futures_util::stream::try_unfold((self, from), move |(mailbox, at)| async move {
            let left = to - at;
            if left == 0 {
                return Ok(None);
            }
            let length = left.min(u64::from(READ_BYTES)) as u32;
            match mailbox.read(delivery, at, length).await.filter(|data| !data.is_empty()) {
                Some(data) => {
                    let at = at + data.len() as u64;
                    Ok(Some((data, (mailbox, at))))
                }
                None => Err(io::Error::other("its lifetime ended")),
            }
        });
        Body::from_stream(parts)
    }
}

/// A read that is under way, or waits for the one before.
struct PendingRead {
    offset: u64,
    length: u32,
    got: BytesMut,
    answer: oneshot::Sender<Bytes>,
}

/// The mailbox itself: it owns the application's end.
struct MailboxTask {
    client: AppClient,
    asks: mpsc::Receiver<MailboxRequest>,
    said: watch::Sender<BTreeMap<u64, Delivery>>,
    lease: Duration,
    /// Of each delivery the first is under way.
    reads: BTreeMap<u64, VecDeque<PendingRead>>,
    takes: BTreeMap<u64, Vec<oneshot::Sender<bool>>>,
}

impl MailboxTask {
    async fn run(mut self) {
        let mut until = Instant::now() + self.lease;
        loop {
            let going_on = tokio::select! {
                said = self.client.reply() => match said {
                    Some(said) => self.hear(said).await,
                    None => false,
                },
                ask = self.asks.recv() => match ask {
                    Some(ask) => {
                        until = Instant::now() + self.lease;
                        self.carry_out(ask).await
                    }
                    None => false,
                },
                () = tokio::time::sleep_until(until) => false,
            };
            if !going_on {
                return;
            }
        }
    }

    /// Carries out a question; false: the node is gone.
    async fn carry_out(&mut self, ask: MailboxRequest) -> bool {
        match ask {
            MailboxRequest::Touch => true,
            MailboxRequest::Read { delivery, .. } | MailboxRequest::Take { delivery, .. }
                if !self.said.borrow().contains_key(&delivery) =>
            {
                // It is over: who asked hears that by the end of the question.
                true
            }
            MailboxRequest::Read { delivery, offset, length, answer } => {
                let reads = self.reads.entry(delivery).or_default();
                reads.push_back(PendingRead { offset, length, got: BytesMut::new(), answer });
                if reads.len() > 1 {
                    return true;
                }
                self.client.request(Request::Read { delivery, offset, length }).await
            }
            MailboxRequest::Take { delivery, answer } => {
                self.takes.entry(delivery).or_default().push(answer);
                self.client.request(Request::Taken { delivery }).await
            }
        }
    }

    /// Hears the node; false: it is gone.
    async fn hear(&mut self, Message { head, body }: Message<Reply>) -> bool {
        match head {
            Reply::Delivered { delivery, source, destination, created, length } => {
                let new = Delivery {
                    id: delivery.to_string(),
                    bundle: view::bundle_id(&source, created),
                    source,
                    endpoint: destination,
                    created,
                    payload_bytes: length,
                };
                self.said.send_modify(|deliveries| drop(deliveries.insert(delivery, new)));
                true
            }
            Reply::Data { delivery, offset } => self.data(delivery, offset, &body).await,
            Reply::Gone { delivery, taken } => {
                self.said.send_modify(|deliveries| drop(deliveries.remove(&delivery)));
                self.reads.remove(&delivery);
                for answer in self.takes.remove(&delivery).unwrap_or_default() {
                    let _ = answer.send(taken);
                }
                true
            }
            _ => true,
        }
    }

    async fn data(&mut self, delivery: u64, offset: u64, body: &[u8]) -> bool {
        let total = self.said.borrow().get(&delivery).map_or(0, |delivery| delivery.payload_bytes);
        let Some(reads) = self.reads.get_mut(&delivery) else { return true };
        let Some(first) = reads.front_mut() else { return true };
        if offset != first.offset + first.got.len() as u64 {
            return true;
        }
        first.got.extend_from_slice(body);
        let end = total.min(first.offset + u64::from(first.length));
        if first.offset + (first.got.len() as u64) < end {
            return true;
        }
        if let Some(done) = reads.pop_front() {
            // Who asked may have gone; the payload stays.
            let _ = done.answer.send(done.got.freeze());
        }
        match reads.front() {
            Some(next) => {
                let (offset, length) = (next.offset, next.length);
                self.client.request(Request::Read { delivery, offset, length }).await
            }
            None => {
                self.reads.remove(&delivery);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_told_to_old_and_new_browsers() {
        for (name, said) in [
            ("photo.jpg", "filename=\"photo.jpg\"; filename*=UTF-8''photo.jpg"),
            ("übung 1.txt", "filename=\"_bung 1.txt\"; filename*=UTF-8''%C3%BCbung%201.txt"),
            ("a\"b\\c%20", "filename=\"a_b_c_20\"; filename*=UTF-8''a%22b%5Cc%2520"),
        ] {
            assert_eq!(disposition(Some(name)), format!("attachment; {said}"));
        }
        assert_eq!(disposition(None), "attachment");
    }
}
