//! Mailboxes: deliveries for an endpoint, until they are taken.
//!
//! ```text
//!   POST /registrations --> a mailbox, an application of the node --> GET /deliveries, GET /deliveries/ID (any number of
//!                           times) --> DELETE /deliveries/ID: taken, which is durable: the node deletes its copy
//! ```
//!
//! HTTP has no connection that could own an endpoint, so a mailbox owns it for as long as it is used. A download does not take the
//! delivery: a client that fails during a download repeats it, or requests the rest (`Range`). When a mailbox ends, because it was
//! removed or was not used for its lease, deliveries that were not taken wait in the node for the next registration.

use super::HttpState;
use super::answer::{Answer, RequestFailure};
use super::api::Parameters;
use crate::envelope;
use crate::surfaces::client::AppClient;
use crate::surfaces::message::{Message, PART_BYTES, Reply, Request, full_endpoint};
use crate::view::{Deliveries, Delivery, Done, Registration, Registrations};
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use longwire_proto::service::BundleName;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

const MAILBOXES_MAX: usize = 64;
/// Maximum requests that wait for a mailbox.
const ASKS_MAX: usize = 64;
/// Time without use after which a mailbox ends, seconds: default and maximum.
const LEASE_S: (u32, u32) = (300, 86_400);
/// Maximum time to wait for the first delivery, seconds.
const WAIT_S_MAX: u32 = 60;

pub(super) type Mailboxes = Mutex<BTreeMap<String, Mailbox>>;

/// A mailbox, as used by operations.
#[derive(Clone)]
pub(super) struct Mailbox {
    asks: mpsc::Sender<MailboxRequest>,
    lease_s: u32,
    /// Deliveries that were not taken.
    deliveries: watch::Receiver<BTreeMap<u64, Delivery>>,
}

enum MailboxRequest {
    /// Extends the lease.
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

/// Endpoint to register.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RegisterQuery {
    /// Endpoint: complete, or the part after the node ID.
    endpoint: String,
    /// Seconds without use after which the registration expires; default 300, maximum 86,400.
    lease_s: Option<u32>,
}

pub(super) async fn register(
    shared: Arc<HttpState>,
    asked: Parameters<RegisterQuery>,
) -> Answer<Registration> {
    let endpoint = full_endpoint(&shared.node, &asked.query.endpoint);
    let lease_s = asked.query.lease_s.unwrap_or(LEASE_S.0).clamp(1, LEASE_S.1);
    // An existing registration ends first: its lease may be different.
    unregister_now(&shared, &endpoint).await;
    if shared.boxes().len() >= MAILBOXES_MAX {
        let hint = Some("remove one with DELETE /registrations/ENDPOINT");
        return Err(RequestFailure::new(StatusCode::TOO_MANY_REQUESTS, "too many registrations", hint));
    }
    let mut client = shared.client_factory.client();
    let _ = client.request(Request::Register { endpoint, inline_bytes: 0 }).await;
    let endpoint = match client.reply().await.map(|said| said.head) {
        Some(Reply::Registered { endpoint }) => endpoint,
        Some(Reply::Error { what, hint, .. }) => return Err(RequestFailure::bad(what, hint)),
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

pub(super) async fn registrations(shared: Arc<HttpState>, _: Parameters) -> Answer<Registrations> {
    let boxes = shared.boxes().clone();
    let all = boxes.into_iter().map(|(endpoint, mailbox)| mailbox.registration(endpoint));
    Ok(Registrations { registrations: all.collect() })
}

pub(super) async fn unregister(shared: Arc<HttpState>, asked: Parameters) -> Answer<Done> {
    let endpoint = full_endpoint(&shared.node, &asked.named);
    if !unregister_now(&shared, &endpoint).await {
        return Err(not_registered(&endpoint));
    }
    Ok(Done { done: format!("{endpoint} is no longer registered; deliveries wait") })
}

/// Ends a mailbox and waits for its end. Returns false if there was none.
async fn unregister_now(shared: &HttpState, endpoint: &str) -> bool {
    let Some(mailbox) = shared.boxes().remove(endpoint) else { return false };
    let Mailbox { asks, mut deliveries, .. } = mailbox;
    drop(asks);
    // Running downloads keep it until they have the data that they requested.
    while deliveries.changed().await.is_ok() {}
    true
}

fn not_registered(endpoint: &str) -> RequestFailure {
    let what = format!("{endpoint} is not registered");
    let hint = Some("register it with POST /registrations {\"endpoint\": ..}");
    RequestFailure::new(StatusCode::NOT_FOUND, what, hint)
}

/// Deliveries to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveriesQuery {
    /// Registered endpoint.
    endpoint: String,
    /// Seconds to wait for the first delivery if there is none; maximum 60.
    wait_s: Option<u32>,
}

pub(super) async fn list(shared: Arc<HttpState>, asked: Parameters<DeliveriesQuery>) -> Answer<Deliveries> {
    let endpoint = full_endpoint(&shared.node, &asked.query.endpoint);
    let mut mailbox = shared.boxes().get(&endpoint).cloned().ok_or_else(|| not_registered(&endpoint))?;
    let _ = mailbox.asks.send(MailboxRequest::Touch).await;
    let wait = Duration::from_secs(asked.query.wait_s.unwrap_or(0).min(WAIT_S_MAX).into());
    let some = mailbox.deliveries.wait_for(|deliveries| !deliveries.is_empty());
    let _ = tokio::time::timeout(wait, some).await;
    let deliveries = mailbox.deliveries.borrow().values().cloned().collect();
    Ok(Deliveries { endpoint, deliveries })
}

/// Delivery to accept.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TakeQuery {
    /// ID of the bundle that is meant: the request is refused if the delivery is another one. IDs of deliveries may be used
    /// again after a restart.
    bundle: Option<String>,
}

pub(super) async fn take(shared: Arc<HttpState>, asked: Parameters<TakeQuery>) -> Answer<Done> {
    let (mailbox, delivery) = shared.delivery(&asked.named, asked.query.bundle.as_deref())?;
    let (answer, taken) = oneshot::channel();
    let delivery = number(&delivery.id);
    let asked = mailbox.asks.send(MailboxRequest::Take { delivery, answer }).await;
    match taken.await {
        Ok(true) if asked.is_ok() => Ok(Done { done: "taken; the node has deleted its copy".into() }),
        Ok(_) => Err(RequestFailure::new(
            StatusCode::GONE,
            "the delivery expired before it was taken; the node has deleted it",
            None,
        )),
        Err(_) => Err(RequestFailure::gone()),
    }
}

/// Form of a download.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DownloadQuery {
    /// True for the payload as sent. Otherwise the file name is removed from the payload and used as the name of the
    /// download.
    raw: Option<bool>,
    /// ID of the bundle that is meant: the request is refused if the delivery is another one.
    bundle: Option<String>,
}

pub(super) async fn download(
    shared: Arc<HttpState>,
    asked: Parameters<DownloadQuery>,
    head: Parts,
    _: Body,
) -> Answer<Response> {
    let (mailbox, delivery) = shared.delivery(&asked.named, asked.query.bundle.as_deref())?;
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
            let what = format!("the payload has {length} bytes");
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
    // Browsers must not guess another content type.
    say(header::X_CONTENT_TYPE_OPTIONS, "nosniff".into());
    say(header::CONTENT_DISPOSITION, disposition(name.as_deref()));
    if part.is_some() {
        say(header::CONTENT_RANGE, format!("bytes {first}-{}/{length}", end - 1));
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// First and last byte of a range (RFC 9110 14.1.2); other forms are ignored, which is allowed.
fn part_of(range: &str) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let first = first.parse().ok()?;
    let last = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    (first <= last).then_some((first, last))
}

/// Header value for saving under this name (RFC 6266 4.3, RFC 8187 3.2). Clients that do not know `filename*` use `filename`,
/// with `_` for characters that it cannot contain (RFC 6266 4.3 and appendix D).
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
    let hint = Some("list deliveries with GET /deliveries");
    RequestFailure::new(StatusCode::GONE, "the delivery expired; the node has deleted it", hint)
}

impl HttpState {
    /// Mailboxes that have not ended.
    fn boxes(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Mailbox>> {
        let mut boxes = self.mailboxes.lock().expect("no thread panics while it has the mailboxes");
        boxes.retain(|_, mailbox| !mailbox.asks.is_closed());
        boxes
    }

    /// Finds a delivery and its mailbox. Fails if it is of another bundle than the one that is meant.
    fn delivery(&self, id: &str, bundle: Option<&str>) -> Answer<(Mailbox, Delivery)> {
        let number = id.parse::<u64>().ok();
        let boxes = self.boxes();
        let found = boxes.values().find_map(|mailbox| {
            let delivery = mailbox.deliveries.borrow().get(&number?).cloned();
            Some((mailbox.clone(), delivery?))
        });
        let found = found.ok_or_else(|| {
            let hint = Some("list deliveries with GET /deliveries; register the endpoint first");
            RequestFailure::new(StatusCode::NOT_FOUND, format!("no such delivery: {id}"), hint)
        })?;
        match bundle.filter(|meant| *meant != found.1.bundle) {
            None => Ok(found),
            Some(meant) => {
                let what = format!("delivery {id} is {}, not {meant}; nothing was done", found.1.bundle);
                let hint = Some("list deliveries with GET /deliveries again");
                Err(RequestFailure::new(StatusCode::CONFLICT, what, hint))
            }
        }
    }
}

impl Mailbox {
    fn registration(&self, endpoint: String) -> Registration {
        let deliveries = self.deliveries.borrow().len() as u64;
        Registration { endpoint, lease_s: self.lease_s, deliveries }
    }

    /// Reads a part of a payload; `None` if the delivery is gone.
    async fn read(&self, delivery: u64, offset: u64, length: u32) -> Option<Bytes> {
        let (answer, read) = oneshot::channel();
        self.asks.send(MailboxRequest::Read { delivery, offset, length, answer }).await.ok()?;
        read.await.ok()
    }

    /// Streams the payload between two offsets, reading as it is sent.
    fn stream(self, delivery: u64, from: u64, to: u64) -> Body {
        let parts = futures_util::stream::try_unfold((self, from), move |(mailbox, at)| async move {
            let left = to - at;
            if left == 0 {
                return Ok(None);
            }
            let length = left.min(u64::from(PART_BYTES)) as u32;
            match mailbox.read(delivery, at, length).await.filter(|data| !data.is_empty()) {
                Some(data) => {
                    let at = at + data.len() as u64;
                    Ok(Some((data, (mailbox, at))))
                }
                None => Err(io::Error::other("the bundle expired")),
            }
        });
        Body::from_stream(parts)
    }
}

/// A read that is running or waits for an earlier one.
struct PendingRead {
    offset: u64,
    length: u32,
    got: BytesMut,
    answer: oneshot::Sender<Bytes>,
}

/// The task of a mailbox, which owns the application's interface.
struct MailboxTask {
    client: AppClient,
    asks: mpsc::Receiver<MailboxRequest>,
    said: watch::Sender<BTreeMap<u64, Delivery>>,
    lease: Duration,
    /// Reads by delivery; the first one of each is running.
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

    /// Carries out a request. Returns false if the node has stopped.
    async fn carry_out(&mut self, ask: MailboxRequest) -> bool {
        match ask {
            MailboxRequest::Touch => true,
            MailboxRequest::Read { delivery, .. } | MailboxRequest::Take { delivery, .. }
                if !self.said.borrow().contains_key(&delivery) =>
            {
                // The delivery is gone: dropping the answer channel reports that.
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

    /// Handles a reply of the node. Returns false if it has stopped.
    async fn hear(&mut self, Message { head, body }: Message<Reply>) -> bool {
        match head {
            Reply::Delivered { delivery, source, destination, created, length, signature } => {
                let name = BundleName { source, created };
                let new = Delivery {
                    id: delivery.to_string(),
                    bundle: name.to_string(),
                    source: name.source,
                    endpoint: destination,
                    created,
                    payload_bytes: length,
                    signature: signature.map(|signature| *signature),
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
            // If the requester has gone, the payload stays.
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
