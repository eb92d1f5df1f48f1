//! Echo service: an application of the node itself that returns each payload to its source.
//!
//! Its endpoint is service 7 of `ipn` nodes, `echo` of `dtn` nodes. It answers neither other echo services nor itself: two of
//! them would never stop. A long payload is returned in parts, one payload at a time, so that only a part is in memory.

use crate::surfaces::client::AppClient;
use crate::surfaces::held_answers::HeldAnswers;
use crate::surfaces::message::{Message, MessageOptions, PART_BYTES, Reply, Request};
use longwire_proto::service::BundleName;
use std::collections::{BTreeMap, VecDeque};

/// Maximum payload length that is answered.
pub(crate) const PAYLOAD_BYTES_MAX: u32 = 16 << 20;
/// Maximum payload length that is delivered together with its notification.
const INLINE_BYTES: u32 = 64 * 1024;
/// Maximum answers that are not durable yet or wait for their turn.
const PENDING_MAX: usize = 256;

/// Service name of an endpoint with this scheme.
pub fn service(is_ipn: bool) -> &'static str {
    if is_ipn { "7" } else { "echo" }
}

/// Returns true if the endpoint is an echo service by its name.
pub(crate) fn is_echo(endpoint: &str) -> bool {
    endpoint.ends_with("/echo") || (endpoint.starts_with("ipn:") && endpoint.ends_with(".7"))
}

/// A long payload that is returned in parts.
#[derive(Debug)]
struct Long {
    delivery: u64,
    to: String,
    length: u64,
    send: u64,
    /// Bytes read and passed on.
    at: u64,
    /// Bytes requested.
    asked: u64,
}

struct Echo {
    client: AppClient,
    endpoint: String,
    next: u64,
    /// Delivery that each send answers, and its length: the delivery is taken once the send is durable.
    pending: BTreeMap<u64, (u64, u64)>,
    held: HeldAnswers,
    waiting: VecDeque<Long>,
    copying: Option<Long>,
}

/// Answers until the node stops.
pub(crate) async fn serve(client: AppClient, is_ipn: bool) {
    let endpoint = service(is_ipn).to_owned();
    let register = Request::Register { endpoint: endpoint.clone(), inline_bytes: INLINE_BYTES };
    if !client.request(register).await {
        return;
    }
    let mut echo = Echo {
        client,
        endpoint,
        next: 0,
        pending: BTreeMap::new(),
        held: HeldAnswers::default(),
        waiting: VecDeque::new(),
        copying: None,
    };
    while let Some(said) = echo.client.reply().await {
        if !echo.hear(said).await {
            return;
        }
    }
}

impl Echo {
    /// Handles a reply of the node. Returns false if the node has stopped.
    async fn hear(&mut self, Message { head, body }: Message<Reply>) -> bool {
        match head {
            Reply::Delivered { delivery, source, length, .. } => {
                let answerable =
                    !is_echo(&source) && source != "dtn:none" && length <= u64::from(PAYLOAD_BYTES_MAX);
                if !answerable || self.pending.len() + self.waiting.len() >= PENDING_MAX {
                    self.client.request(Request::Taken { delivery }).await
                } else if length == body.len() as u64 {
                    self.open(delivery, source, length, body).await.is_some()
                } else {
                    self.waiting.push_back(Long { delivery, to: source, length, send: 0, at: 0, asked: 0 });
                    self.go_on().await
                }
            }
            Reply::Data { delivery, .. } => match &mut self.copying {
                Some(long) if long.delivery == delivery => {
                    long.at += body.len() as u64;
                    let head = Request::Piece { send: long.send };
                    self.client.request(Message { head, body }).await && self.go_on().await
                }
                _ => true,
            },
            Reply::Accepted { send, source, created, .. } => {
                let length = self.pending.get(&send).map_or(0, |(_, length)| *length);
                let name = BundleName { source, created };
                self.held.keep(&self.client, send, name, length).await && self.answered(send).await
            }
            Reply::Sent { send } => self.answered(send).await,
            Reply::Failed { send, .. } => {
                self.held.remove(send);
                self.answered(send).await
            }
            Reply::Gone { delivery, .. } => {
                self.waiting.retain(|long| long.delivery != delivery);
                match self.copying.take_if(|long| long.delivery == delivery) {
                    Some(long) => {
                        self.pending.remove(&long.send);
                        self.client.request(Request::Cancel { send: long.send }).await && self.go_on().await
                    }
                    None => true,
                }
            }
            _ => true,
        }
    }

    /// Takes the delivery that this send answers, if that is still pending. Returns false if the node has stopped.
    async fn answered(&mut self, send: u64) -> bool {
        if self.copying.as_ref().is_some_and(|long| long.send == send) {
            // The send failed before all of the payload was passed on.
            self.copying = None;
        }
        let taken = match self.pending.remove(&send) {
            Some((delivery, _)) => self.client.request(Request::Taken { delivery }).await,
            None => true,
        };
        taken && self.go_on().await
    }

    /// Opens an answer and returns its number; `None` if the node has stopped.
    async fn open(&mut self, delivery: u64, to: String, length: u64, body: bytes::Bytes) -> Option<u64> {
        self.next += 1;
        let send = self.next;
        self.pending.insert(send, (delivery, length));
        let options = MessageOptions { source: Some(self.endpoint.clone()), ..MessageOptions::default() };
        let head = Request::Send { send, to, length, options };
        self.client.request(Message { head, body }).await.then_some(send)
    }

    /// Reads the next part of the long payload, or begins with the next payload. Returns false if the node has stopped.
    async fn go_on(&mut self) -> bool {
        if self.copying.as_ref().is_some_and(|long| long.at >= long.length) {
            self.copying = None;
        }
        if self.copying.is_none() {
            let Some(mut long) = self.waiting.pop_front() else { return true };
            let Some(send) =
                self.open(long.delivery, long.to.clone(), long.length, bytes::Bytes::new()).await
            else {
                return false;
            };
            long.send = send;
            self.copying = Some(long);
        }
        let Some(long) = self.copying.as_mut().filter(|long| long.at >= long.asked) else { return true };
        let length = (long.length - long.at).min(u64::from(PART_BYTES)) as u32;
        long.asked = long.at + u64::from(length);
        let (delivery, offset) = (long.delivery, long.at);
        self.client.request(Request::Read { delivery, offset, length }).await
    }
}
