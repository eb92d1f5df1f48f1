//! Measuring service: an application of the node itself that answers each payload with its number and its length, so that
//! the sender can measure throughput in one direction.
//!
//! Its endpoint is service 8 of `ipn` nodes, `measure` of `dtn` nodes. A payload begins with its number, eight bytes,
//! big-endian; the answer is this number and the length of the payload, eight bytes each. It answers no payload as short as an
//! answer, so that it and a service that answers everything come to an end, even if a source is forged; nor other
//! measuring and echo services.

use crate::surfaces::client::AppClient;
use crate::surfaces::echo;
use crate::surfaces::held_answers::HeldAnswers;
use crate::surfaces::message::{Message, MessageOptions, Reply, Request};
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::service::BundleName;
use std::collections::BTreeMap;

/// Maximum answers that are not durable yet and payloads whose number is being read, together. A payload beyond is not answered.
const PENDING_MAX: usize = 1024;
const NUMBER_BYTES: u32 = 8;
const ANSWER_BYTES: u64 = 16;
/// Minimum length of a payload that is answered.
pub const BYTES_MIN: u32 = ANSWER_BYTES as u32 + 1;
/// Lifetime of an answer, seconds: a later one is of no use.
const LIFETIME_S: f64 = 3600.0;

/// Service name of an endpoint with this scheme.
pub fn service(is_ipn: bool) -> &'static str {
    if is_ipn { "8" } else { "measure" }
}

fn is_measuring(endpoint: &str) -> bool {
    endpoint.ends_with("/measure") || (endpoint.starts_with("ipn:") && endpoint.ends_with(".8"))
}

/// Returns the number and the length in an answer.
pub fn answered(payload: &[u8]) -> Option<(u64, u64)> {
    let (number, rest) = payload.split_first_chunk::<8>()?;
    let length = rest.first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), u64::from_be_bytes(*length)))
}

fn answer(number: [u8; 8], length: u64) -> Bytes {
    let mut answer = BytesMut::with_capacity(ANSWER_BYTES as usize);
    answer.put_slice(&number);
    answer.put_u64(length);
    answer.freeze()
}

struct Measuring {
    client: AppClient,
    endpoint: String,
    next: u64,
    /// Deliveries whose number is being read: their sources and lengths.
    reading: BTreeMap<u64, (String, u64)>,
    /// Delivery that each answer belongs to: it is taken once the answer is durable.
    pending: BTreeMap<u64, u64>,
    held: HeldAnswers,
}

/// Answers until the node stops.
pub(crate) async fn serve(client: AppClient, is_ipn: bool) {
    let endpoint = service(is_ipn).to_owned();
    let register = Request::Register { endpoint: endpoint.clone(), inline_bytes: NUMBER_BYTES };
    if !client.request(register).await {
        return;
    }
    let (reading, pending, held) = Default::default();
    let mut measuring = Measuring { client, endpoint, next: 0, reading, pending, held };
    while let Some(said) = measuring.client.reply().await {
        if !measuring.hear(said).await {
            return;
        }
    }
}

impl Measuring {
    /// Handles a reply of the node. Returns false if the node has stopped.
    async fn hear(&mut self, Message { head, body }: Message<Reply>) -> bool {
        match head {
            Reply::Delivered { delivery, source, length, .. } => {
                let is_service = is_measuring(&source) || echo::is_echo(&source);
                let is_answerable = !is_service && source != "dtn:none" && length > ANSWER_BYTES;
                if !is_answerable || self.pending.len() + self.reading.len() >= PENDING_MAX {
                    return self.client.request(Request::Taken { delivery }).await;
                }
                match body.first_chunk::<8>() {
                    Some(number) => self.answer(delivery, source, *number, length).await,
                    None => {
                        self.reading.insert(delivery, (source, length));
                        let read = Request::Read { delivery, offset: 0, length: NUMBER_BYTES };
                        self.client.request(read).await
                    }
                }
            }
            Reply::Data { delivery, .. } => match (self.reading.remove(&delivery), body.first_chunk::<8>()) {
                (Some((source, length)), Some(number)) => {
                    self.answer(delivery, source, *number, length).await
                }
                _ => true,
            },
            Reply::Accepted { send, source, created, .. } => {
                let name = BundleName { source, created };
                self.held.keep(&self.client, send, name, ANSWER_BYTES).await && self.answered(send).await
            }
            Reply::Sent { send } => self.answered(send).await,
            Reply::Failed { send, .. } => {
                self.held.remove(send);
                self.answered(send).await
            }
            Reply::Gone { delivery, .. } => {
                self.reading.remove(&delivery);
                true
            }
            _ => true,
        }
    }

    /// Takes the delivery that this send answers, if that is still pending. Returns false if the node has stopped.
    async fn answered(&mut self, send: u64) -> bool {
        match self.pending.remove(&send) {
            Some(delivery) => self.client.request(Request::Taken { delivery }).await,
            None => true,
        }
    }

    /// Sends an answer. Returns false if the node has stopped.
    async fn answer(&mut self, delivery: u64, to: String, number: [u8; 8], length: u64) -> bool {
        self.next += 1;
        self.pending.insert(self.next, delivery);
        let body = answer(number, length);
        let source = Some(self.endpoint.clone());
        let options = MessageOptions { source, lifetime_s: LIFETIME_S, ..MessageOptions::default() };
        let head = Request::Send { send: self.next, to, length: body.len() as u64, options };
        self.client.request(Message { head, body }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_number_and_length() {
        assert_eq!(answered(&answer(7_u64.to_be_bytes(), 1000)), Some((7, 1000)));
        assert_eq!((answered(b""), answered(&[0; 15])), (None, None));
    }

    #[test]
    fn measuring_services_are_told_by_their_names() {
        for (endpoint, expected) in [
            ("dtn://bob/measure", true),
            ("ipn:7.8", true),
            ("ipn:7.18", false),
            ("dtn://bob/measure-1", false),
        ] {
            assert_eq!(is_measuring(endpoint), expected, "{endpoint}");
        }
    }
}
