//! Mail bundles that arrive: messages are written to Maildirs, receipts become notices.

use super::envelope::{Envelope, HEAD_BYTES_MAX, MessageHead, Outcome};
use super::receipt_limit::ReceiptLimit;
use super::sending::Sender;
use super::{AGAIN_AFTER, MailService, NodeGone, Part, notices, receipts};
use crate::config::mail::mail_endpoint_of;
use crate::surfaces::client::AppClient;
use crate::surfaces::message::{Message, MessageOptions, PART_BYTES, Reply, Request};
use crate::view::Signature;
use bytes::{Bytes, BytesMut};
use longwire_proto::bp::Eid;
use longwire_proto::service::BundleName;
use longwire_proto::smtp::parse_address;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use tokio::time::Instant;

/// Maximum length of a text of an arriving message that becomes a part of its header.
const TRACE_BYTES_MAX: usize = 300;

/// A mail bundle that the node offers.
#[derive(Debug)]
struct MailDelivery {
    number: u64,
    bundle: BundleName,
    /// Node ID of its source.
    node: String,
    length: u64,
    signature: Option<Box<Signature>>,
    /// Users who have the message: what they delete or move does not come again.
    written: BTreeSet<String>,
    /// Outcomes, once everything is written.
    outcomes: Option<Vec<Outcome>>,
}

struct Receiver {
    service: Arc<MailService>,
    client: AppClient,
    /// True once the endpoint is registered.
    is_registered: bool,
    /// Replies received while waiting for another one.
    waiting: VecDeque<Message<Reply>>,
    /// Deliveries that failed, each with the time at which it is tried again; the earliest first.
    postponed: VecDeque<(Instant, MailDelivery)>,
    /// Application that sends receipts.
    sender: Sender,
    receipt_limit: ReceiptLimit,
}

/// Reason why a delivery is not done.
enum NotDone {
    /// It has expired.
    Gone,
    /// A file cannot be written, or a receipt cannot be sent: it is tried again.
    Later(String),
}

impl From<io::Error> for NotDone {
    fn from(error: io::Error) -> Self {
        NotDone::Later(format!(
            "cannot write mail: {error}; the node keeps the messages that were not written"
        ))
    }
}

/// Receives until the node stops.
pub(super) async fn serve(service: Arc<MailService>) -> Result<(), NodeGone> {
    let (client, sender) = (service.client_factory.client(), Sender::new(service.client_factory.client()));
    let (waiting, postponed) = Default::default();
    let receipt_limit = ReceiptLimit::new(Instant::now());
    let is_registered = false;
    let mut receiver = Receiver { service, client, is_registered, waiting, postponed, sender, receipt_limit };
    receiver.register().await?;
    loop {
        let again = receiver.postponed.front().map(|(at, _)| *at);
        let said = tokio::select! {
            said = receiver.hear() => said?,
            () = tokio::time::sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {
                if let Some((_, delivery)) = receiver.postponed.pop_front() {
                    receiver.handle(delivery).await?;
                }
                continue;
            }
        };
        match said.head {
            Reply::Delivered { delivery: number, source, created, length, signature, .. } => {
                let node = source.parse::<Eid>().map_or(String::new(), |eid| eid.node_id().to_string());
                let bundle = BundleName { source, created };
                let (written, outcomes) = Default::default();
                let delivery = MailDelivery { number, bundle, node, length, signature, written, outcomes };
                receiver.handle(delivery).await?;
            }
            Reply::Gone { delivery, .. } => receiver.forget(delivery),
            // Another application has the endpoint. Any other error is an answer about a delivery that has expired meanwhile.
            Reply::Error { what, .. } if !receiver.is_registered => {
                receiver.service.trouble(Part::Endpoint, Some(what));
                tokio::time::sleep(AGAIN_AFTER).await;
                receiver.register().await?;
            }
            Reply::Registered { .. } => {
                receiver.is_registered = true;
                receiver.service.trouble(Part::Endpoint, None);
            }
            _ => {}
        }
    }
}

impl Receiver {
    async fn ask(&self, request: impl Into<Message<Request>>) -> Result<(), NodeGone> {
        if self.client.request(request).await { Ok(()) } else { Err(NodeGone) }
    }

    async fn register(&self) -> Result<(), NodeGone> {
        let endpoint = self.service.endpoint.to_owned();
        self.ask(Request::Register { endpoint, inline_bytes: 0 }).await
    }

    async fn hear(&mut self) -> Result<Message<Reply>, NodeGone> {
        match self.waiting.pop_front() {
            Some(said) => Ok(said),
            None => self.client.reply().await.ok_or(NodeGone),
        }
    }

    /// Waits for a reply for which `wanted` returns a value; deliveries announced in the meantime are kept.
    async fn wait<T>(&mut self, mut wanted: impl FnMut(&Message<Reply>) -> Option<T>) -> Result<T, NodeGone> {
        loop {
            let said = self.client.reply().await.ok_or(NodeGone)?;
            if let Some(found) = wanted(&said) {
                return Ok(found);
            }
            match said.head {
                Reply::Delivered { .. } => self.waiting.push_back(said),
                Reply::Gone { delivery, .. } => self.forget(delivery),
                _ => {}
            }
        }
    }

    /// Forgets a delivery that has expired before it was handled.
    fn forget(&mut self, gone: u64) {
        self.waiting
            .retain(|said| !matches!(said.head, Reply::Delivered { delivery, .. } if delivery == gone));
        self.postponed.retain(|(_, delivery)| delivery.number != gone);
    }

    /// Handles a delivery and takes it. One that fails is tried again later, so that it does not hold up others.
    async fn handle(&mut self, mut delivery: MailDelivery) -> Result<(), NodeGone> {
        match self.receive(&mut delivery).await? {
            Ok(()) => {}
            Err(NotDone::Gone) => return Ok(()),
            Err(NotDone::Later(why)) => {
                self.service.trouble(Part::Delivery, Some(why));
                self.postponed.push_back((Instant::now() + AGAIN_AFTER, delivery));
                return Ok(());
            }
        }
        if self.postponed.is_empty() {
            self.service.trouble(Part::Delivery, None);
        }
        let number = delivery.number;
        self.ask(Request::Taken { delivery: number }).await?;
        self.wait(|said| {
            matches!(said.head, Reply::Gone { delivery, .. } if delivery == number).then_some(())
        })
        .await
    }

    async fn receive(&mut self, delivery: &mut MailDelivery) -> Result<Result<(), NotDone>, NodeGone> {
        let first = delivery.length.min(HEAD_BYTES_MAX);
        let Some(mut payload) = self.read(delivery, 0, first).await? else { return Ok(Err(NotDone::Gone)) };
        match Envelope::decode(&mut payload, delivery.length) {
            Err(_) => {
                self.service.count("invalid");
                Ok(Ok(()))
            }
            Ok(Envelope::Receipt(created, outcomes)) => {
                let bundle = BundleName { source: self.service.domains.own().to_owned(), created };
                let settled =
                    receipts::settle(&self.service, &bundle, outcomes, &delivery.node, &delivery.bundle);
                Ok(settled.map_err(NotDone::from))
            }
            Ok(Envelope::Message(head)) => {
                let outcomes = match delivery.outcomes.clone() {
                    Some(outcomes) => outcomes,
                    None => match self.refusal(&head, delivery) {
                        Some((status, reason)) => {
                            self.service.count("returned");
                            let all = head.recipients.iter();
                            all.map(|recipient| outcome(&recipient.address, status, reason.clone())).collect()
                        }
                        None => match self.deliver(&head, delivery, payload).await? {
                            Ok(outcomes) => outcomes,
                            Err(not_done) => return Ok(Err(not_done)),
                        },
                    },
                };
                delivery.outcomes = Some(outcomes.clone());
                self.send_receipt(&head, delivery, outcomes).await
            }
        }
    }

    /// Reads a part of the payload; `None` if it has expired.
    async fn read(&mut self, delivery: &MailDelivery, from: u64, to: u64) -> Result<Option<Bytes>, NodeGone> {
        let (number, mut at) = (delivery.number, from);
        let mut payload = BytesMut::new();
        while at < to {
            let length = (to - at).min(PART_BYTES.into()) as u32;
            self.ask(Request::Read { delivery: number, offset: at, length }).await?;
            let end = at + u64::from(length);
            while at < end {
                let data = self.wait(|said| match &said.head {
                    Reply::Data { delivery, offset } if *delivery == number && *offset == at => {
                        Some(Some(said.body.clone()))
                    }
                    Reply::Gone { delivery, .. } if *delivery == number => Some(None),
                    _ => None,
                });
                let Some(data) = data.await? else { return Ok(None) };
                at += data.len() as u64;
                payload.extend_from_slice(&data);
            }
        }
        Ok(Some(payload.freeze()))
    }

    /// Status and reason, if the whole message is returned.
    fn refusal(&self, head: &MessageHead, delivery: &MailDelivery) -> Option<(&'static str, String)> {
        let own = self.service.domains.own();
        let bytes_max = self.service.settings.message_bytes_max;
        if head.message_bytes > bytes_max {
            return Some((
                "5.3.4",
                format!("the message is longer than {bytes_max} bytes, the limit of {own}"),
            ));
        }
        if head.sender.is_empty() {
            return None;
        }
        let domains = &self.service.domains;
        let sender = parse_address(&head.sender);
        let is_its_own = sender.is_some_and(|sender| domains.stands_for(&sender.domain, &delivery.node));
        (!is_its_own).then(|| {
            let words = "the domain of the sender is not that of the node that sent the message";
            ("5.7.1", words.to_owned())
        })
    }

    /// Returns the user of this node who has an address, or why there is none.
    fn user(&self, address: &str) -> Result<String, (&'static str, String)> {
        let (settings, domains) = (&self.service.settings, &self.service.domains);
        let is_own = |domain: &str| domains.node(domain).is_some_and(|node| domains.is_own(&node));
        let Some(address) = parse_address(address).filter(|address| is_own(&address.domain)) else {
            return Err(("5.1.2", format!("not an address of {}", domains.own())));
        };
        let user = settings.user(&address.local).or(settings.default_user.as_deref());
        // Every domain has a postmaster (RFC 5321 4.5.1).
        let is_postmaster = address.local.eq_ignore_ascii_case("postmaster");
        let user = user.or_else(|| settings.users.first().map(String::as_str).filter(|_| is_postmaster));
        user.map(str::to_owned).ok_or_else(|| ("5.1.1", format!("no such user at {}", domains.own())))
    }

    /// Writes the message once for each user, however many addresses lead to that one. `message` is its beginning.
    async fn deliver(
        &mut self,
        head: &MessageHead,
        delivery: &mut MailDelivery,
        message: Bytes,
    ) -> Result<Result<Vec<Outcome>, NotDone>, NodeGone> {
        let mut users: BTreeMap<String, &str> = BTreeMap::new();
        let mut outcomes = Vec::new();
        for recipient in &head.recipients {
            match self.user(&recipient.address) {
                Ok(user) => {
                    outcomes.push(outcome(&recipient.address, "2.1.5", String::new()));
                    users.entry(user).or_insert(&recipient.address);
                }
                Err((status, reason)) => outcomes.push(outcome(&recipient.address, status, reason)),
            }
        }
        users.retain(|user, _| !delivery.written.contains(user));
        let (mut trouble, mut ready) = (None, Vec::new());
        for (user, address) in users {
            match self.service.maildirs.make(core::slice::from_ref(&user)) {
                Ok(()) => ready.push((user, address)),
                Err(error) => trouble = Some(error),
            }
        }
        // A payload is not read for Maildirs that cannot be written anyway.
        let mut message = BytesMut::from(&message[..]);
        if !ready.is_empty() {
            let from = delivery.length.min(HEAD_BYTES_MAX);
            let Some(rest) = self.read(delivery, from, delivery.length).await? else {
                return Ok(Err(NotDone::Gone));
            };
            message.extend_from_slice(&rest);
        }
        // A message that begins with no field would go on in the last one of the trace.
        let ends_trace = message.first() == Some(&b'\n') || begins_with_field(&message);
        let end: &[u8] = if ends_trace { b"" } else { b"\n" };
        for (user, address) in ready {
            let trace = self.trace(head, delivery, address);
            let name = format!("{}.{}", file_name(&delivery.bundle), self.service.domains.own_domain());
            match self.service.maildirs.deliver(&user, &name, &[trace.as_bytes(), end, &message]) {
                Ok(is_new) => {
                    if is_new {
                        self.service.count("delivered");
                    }
                    delivery.written.insert(user);
                }
                Err(error) => trouble = Some(error),
            }
        }
        if let Some(error) = trouble {
            return Ok(Err(error.into()));
        }
        let returned = outcomes.iter().filter(|outcome| !outcome.is_delivered()).count();
        (0..returned).for_each(|_| self.service.count("returned"));
        Ok(Ok(outcomes))
    }

    /// Header lines of the last delivery (RFC 5321 4.4).
    fn trace(&self, head: &MessageHead, delivery: &MailDelivery, recipient: &str) -> String {
        let own = self.service.domains.own();
        let signature = match &delivery.signature {
            None => "not signed".to_owned(),
            Some(signature) => format!("signature {}", signature.words()),
        };
        let dtn_ms = self.service.clock.dtn_ms().unwrap_or(delivery.bundle.created.time.0);
        format!(
            "Return-Path: <{}>\nDelivered-To: {recipient}\nReceived: from {} ({})\n by {own} with BP id {};\n {}\n",
            head.sender,
            plain(&delivery.node),
            plain(&signature),
            delivery.bundle.created,
            notices::date(dtn_ms),
        )
    }

    /// Sends the outcomes to the node of the sender, as far as the sender wants to know them.
    async fn send_receipt(
        &mut self,
        head: &MessageHead,
        delivery: &MailDelivery,
        mut outcomes: Vec<Outcome>,
    ) -> Result<Result<(), NotDone>, NodeGone> {
        outcomes.retain(|outcome| {
            let asked = head.recipients.iter().find(|recipient| recipient.address == outcome.address);
            asked.is_some_and(|one| if outcome.is_delivered() { one.on_success } else { one.on_failure })
        });
        if self.service.domains.is_own(&delivery.node) {
            // No bundle is needed between users of one node.
            let bundle = &delivery.bundle;
            let own_name = BundleName { source: delivery.node.clone(), created: bundle.created };
            let settled = receipts::settle(&self.service, &own_name, outcomes, &delivery.node, bundle);
            return Ok(settled.map_err(NotDone::from));
        }
        let Ok(endpoint) = mail_endpoint_of(&delivery.node) else { return Ok(Ok(())) };
        if outcomes.is_empty() || head.sender.is_empty() {
            return Ok(Ok(()));
        }
        if !self.receipt_limit.permits(Instant::now(), &delivery.node) {
            self.service.count("receipts_not_sent");
            return Ok(Ok(()));
        }
        let receipt = Envelope::Receipt(delivery.bundle.created, outcomes).to_bytes();
        let settings = &self.service.settings;
        let options = MessageOptions {
            priority: settings.priority,
            lifetime_s: settings.lifetime.as_secs_f64(),
            ..MessageOptions::default()
        };
        match self.sender.send(endpoint, receipt, Bytes::new(), options).await? {
            Ok(()) => self.service.count("receipts_sent"),
            Err(not_stored) if not_stored.is_temporary => {
                return Ok(Err(NotDone::Later(format!("cannot send a receipt: {}", not_stored.reason))));
            }
            Err(_) => {}
        }
        Ok(Ok(()))
    }
}

fn outcome(address: &str, status: &str, reason: String) -> Outcome {
    Outcome { address: address.to_owned(), status: status.to_owned(), reason }
}

/// True if a message begins with a field of a header.
fn begins_with_field(message: &[u8]) -> bool {
    let name = message.iter().position(|byte| !matches!(byte, b'!'..=b'9' | b';'..=b'~'));
    name.is_some_and(|end| end > 0 && message[end] == b':')
}

/// Text for a header line: printable ASCII without parentheses, shortened.
fn plain(text: &str) -> String {
    let printable = |letter: char| matches!(letter, ' '..='~') && !matches!(letter, '(' | ')' | '\\');
    text.chars().map(|letter| if printable(letter) { letter } else { '_' }).take(TRACE_BYTES_MAX).collect()
}

/// Name in a Maildir for the message of a bundle. It begins with seconds, by which mail programs sort.
fn file_name(bundle: &BundleName) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bundle.source.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let seconds = crate::clock::unix_s(bundle.created.time.0);
    format!("{seconds}.{}-{hash:016x}", bundle.created)
}
