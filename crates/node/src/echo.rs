//! The echo service: what comes to it goes back to where it came from, as an application of its own node.
//!
//! Its endpoint is service 7 of `ipn` nodes, `echo` of `dtn` nodes. It does not answer another echo service, nor itself:
//! two of them would never end. What is long goes back in parts, one payload at a time, so that memory holds a part only.

use crate::client::AppClient;
use crate::message::{Message, MessageOptions, Reply, Request};
use std::collections::{BTreeMap, VecDeque};

/// Payloads longer than this get no answer.
pub(crate) const PAYLOAD_BYTES_MAX: u32 = 16 << 20;
/// Payloads up to this length come with their delivery.
const INLINE_BYTES: u32 = 64 * 1024;
/// Bytes that are read at once.
const READ_BYTES: u32 = 256 * 1024;
/// Answers that were handed over and are not durable, or wait for their turn.
const PENDING_MAX: usize = 256;

/// The service of an endpoint with this scheme.
pub fn service(is_ipn: bool) -> &'static str {
    if is_ipn { "7" } else { "echo" }
}

fn is_echo(endpoint: &str) -> bool {
    endpoint.ends_with("/echo") || (endpoint.starts_with("ipn:") && endpoint.ends_with(".7"))
}

/// A long payload that goes back in parts.
#[derive(Debug)]
struct Long {
    delivery: u64,
    to: String,
    length: u64,
    send: u64,
    /// So much of it was read and handed over.
    at: u64,
    /// So much was asked for.
    asked: u64,
}

struct Echo {
    client: AppClient,
    endpoint: String,
    next: u64,
    /// The send that answers a delivery: when that is durable, the delivery is taken.
    pending: BTreeMap<u64, u64>,
    waiting: VecDeque<Long>,
    copying: Option<Long>,
}

/// Answers until the node ends.
pub(crate) async fn serve(client: AppClient, is_ipn: bool) {
    let endpoint = service(is_ipn).to_owned();
    let register = Request::Register { endpoint: endpoint.clone(), inline_bytes: INLINE_BYTES };
    if !client.request(register).await {
        return;
    }
    let mut echo =
        Echo { client, endpoint, next: 0, pending: BTreeMap::new(), waiting: VecDeque::new(), copying: None };
    while let Some(said) = echo.client.reply().await {
        if !echo.hear(said).await {
            return;
        }
    }
}

impl Echo {
    /// Hears the node; false: it is gone.
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
            Reply::Accepted { send, .. } | Reply::Sent { send } | Reply::Failed { send, .. } => {
                if self.copying.as_ref().is_some_and(|long| long.send == send) {
                    // It failed before all of it was handed over.
                    self.copying = None;
                }
                let taken = match self.pending.remove(&send) {
                    Some(delivery) => self.client.request(Request::Taken { delivery }).await,
                    None => true,
                };
                taken && self.go_on().await
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

    /// Opens an answer; its number, or none: the node is gone.
    async fn open(&mut self, delivery: u64, to: String, length: u64, body: bytes::Bytes) -> Option<u64> {
        self.next += 1;
        let send = self.next;
        self.pending.insert(send, delivery);
        let options = MessageOptions { source: Some(self.endpoint.clone()), ..MessageOptions::default() };
        let head = Request::Send { send, to, length, options };
        self.client.request(Message { head, body }).await.then_some(send)
    }

    /// Reads on in what goes back in parts, and begins with the next when that is through; false: the node is gone.
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
        let length = (long.length - long.at).min(u64::from(READ_BYTES)) as u32;
        long.asked = long.at + u64::from(length);
        let (delivery, offset) = (long.delivery, long.at);
        self.client.request(Request::Read { delivery, offset, length }).await
    }
}
