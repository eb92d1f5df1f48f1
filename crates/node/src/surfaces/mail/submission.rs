//! The message that a mail program submits: whether it may go, and the bundles that it becomes.

use super::domains::domain_of;
use super::envelope::{Envelope, MessageHead, Recipient};
use super::pending::PendingMessage;
use super::sending::{NotStored, Sender};
use super::{MailService, NodeGone, Part};
use crate::config::mail::mail_endpoint_of;
use crate::storage::random_u64;
use crate::surfaces::message::MessageOptions;
use crate::view::{Estimate, Reachability};
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::service::{BundleName, MailAddress, MailRefusal, Notify, SubmissionAnswer};
use longwire_settings::duration::short;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the envelope that are assumed before all recipients are known.
const ENVELOPE_BYTES: u64 = 100;

/// Message of a session.
#[derive(Debug)]
pub(super) struct Submitted {
    service: Arc<MailService>,
    node: Sender,
    sender: Option<MailAddress>,
    declared_bytes: Option<u64>,
    envelope_id: Option<String>,
    /// Recipients by node, with the addresses that every node knows.
    recipients: BTreeMap<String, Vec<Recipient>>,
    /// Addresses as the mail program wrote them, for notices.
    written: BTreeMap<String, String>,
    /// Message with a LF at the end of each line.
    content: BytesMut,
    /// True if the last byte was a CR, which waits for its LF.
    ends_in_cr: bool,
}

fn refusal(code: u16, status: &'static str, text: impl Into<String>) -> SubmissionAnswer {
    Err(MailRefusal { code, status, text: text.into() })
}

impl Submitted {
    pub(super) fn new(service: Arc<MailService>) -> Self {
        let node = Sender::new(service.client_factory.client());
        Submitted {
            service,
            node,
            sender: None,
            declared_bytes: None,
            envelope_id: None,
            recipients: BTreeMap::new(),
            written: BTreeMap::new(),
            content: BytesMut::new(),
            ends_in_cr: false,
        }
    }

    pub(super) fn abandon(&mut self) {
        self.sender = None;
        self.declared_bytes = None;
        self.envelope_id = None;
        self.recipients.clear();
        self.written.clear();
        self.content = BytesMut::new();
        self.ends_in_cr = false;
    }

    /// A sender must be a user of this node, as other nodes expect. They do not know its further domains.
    pub(super) fn sender(
        &mut self,
        address: Option<MailAddress>,
        bytes: Option<u64>,
        envelope_id: Option<String>,
    ) -> SubmissionAnswer {
        self.abandon();
        let mut sender = None;
        if let Some(address) = address {
            let domains = &self.service.domains;
            let node = domains.node(&address.domain);
            let user = self.service.settings.user(&address.local);
            let own_domain = domains.own_domain();
            if let Some(user) = user.filter(|_| node.is_some_and(|node| domains.is_own(&node))) {
                sender = Some(MailAddress { local: user.to_owned(), domain: own_domain });
            } else {
                let users = self.service.settings.users.join(", ");
                let text = format!(
                    "{address} is not an address of this node; its users are {users} at {own_domain}. Correct the address in the mail \
                     program, or add the user to [mail] of the node"
                );
                return refusal(550, "5.7.1", text);
            }
        }
        (self.sender, self.declared_bytes, self.envelope_id) = (sender, bytes, envelope_id);
        Ok("Sender accepted".into())
    }

    pub(super) async fn recipient(
        &mut self,
        address: MailAddress,
        notify: Notify,
    ) -> Result<SubmissionAnswer, NodeGone> {
        let Some(node) = self.service.domains.node(&address.domain) else {
            let text = format!(
                "{} cannot be a node; an address is USER@NODE, as bob@alice for dtn://alice/",
                address.domain
            );
            return Ok(refusal(550, "5.1.2", text));
        };
        let Ok(endpoint) = mail_endpoint_of(&node) else {
            return Ok(refusal(550, "5.1.2", format!("{node} is not a valid node ID")));
        };
        if self.service.domains.is_own(&node)
            && !address.local.eq_ignore_ascii_case("postmaster")
            && self.service.settings.user(&address.local).is_none()
            && self.service.settings.default_user.is_none()
        {
            let text = format!("{address} is not a user of this node");
            return Ok(refusal(550, "5.1.1", text));
        }
        let length = self.declared_bytes.unwrap_or(0).saturating_add(ENVELOPE_BYTES);
        let estimate = self.node.estimate(endpoint, length).await?;
        if let Some(refused) =
            self.unreachable(&node, &estimate).or_else(|| self.takes_too_long(length, &estimate))
        {
            return Ok(refused);
        }
        let (on_success, on_failure) = match (&self.sender, notify) {
            (None, _) | (_, Notify::Never) => (false, false),
            (_, Notify::Default) => (self.service.settings.receipts, true),
            (_, Notify::Of { success, failure }) => (success, failure),
        };
        let domain = domain_of(&node).unwrap_or_else(|| self.service.domains.own_domain());
        let known = MailAddress { domain, local: address.local.clone() }.to_string();
        let recipient = Recipient { address: known.clone(), on_success, on_failure };
        let recipients = self.recipients.entry(node).or_default();
        match recipients.iter_mut().find(|other| other.address == known) {
            Some(other) => {
                other.on_success |= on_success;
                other.on_failure |= on_failure;
            }
            None => {
                recipients.push(recipient);
                if !address.domain.is_empty() {
                    self.written.insert(known, address.to_string());
                }
            }
        }
        let way = match &estimate.link {
            Some(link) if estimate.up => format!("Recipient accepted, over link `{link}`"),
            Some(link) => format!("Recipient accepted; link `{link}` is down, and mail waits for it"),
            None => "Recipient accepted".into(),
        };
        Ok(Ok(way))
    }

    fn unreachable(&self, node: &str, estimate: &Estimate) -> Option<SubmissionAnswer> {
        match estimate.reachability {
            Reachability::Own | Reachability::Known => None,
            Reachability::Unknown => {
                let text = format!(
                    "No route to {node} is known yet; a link or a node that is not connected now may lead there. Try again later, or \
                     set `peer` of its [[link]]"
                );
                Some(refusal(451, "4.4.4", text))
            }
            Reachability::None => {
                let text = format!(
                    "No route to {node}. Correct the part of the address behind the @, or add a [[route]] to the configuration of \
                     the node"
                );
                Some(refusal(550, "5.4.4", text))
            }
        }
    }

    /// Refuses a payload that takes longer than it may.
    fn takes_too_long(&self, length: u64, estimate: &Estimate) -> Option<SubmissionAnswer> {
        let max = self.service.settings.air_time_max;
        let time = Duration::try_from_secs_f64(estimate.time_s?.round()).unwrap_or(Duration::MAX);
        if max.is_zero() || time <= max {
            return None;
        }
        let link = estimate.link.as_deref().unwrap_or_default();
        let text = format!(
            "A message of {} takes about {} over link `{link}` at {} bit/s, and at most {} is allowed. Make attachments smaller, or \
             raise `air-time-max` in [mail] of the node",
            in_bytes(length),
            in_words(time),
            estimate.rate_bps,
            short(max)
        );
        Some(refusal(552, "5.3.4", text))
    }

    /// Adds content, with a LF for each CR LF: the engine lets no others pass.
    pub(super) fn content(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\r') {
            if core::mem::take(&mut self.ends_in_cr) && piece.first() != Some(&b'\n') {
                self.content.put_u8(b'\r');
            }
            match piece.strip_suffix(b"\r") {
                Some(before) => {
                    self.content.put_slice(before);
                    self.ends_in_cr = true;
                }
                None => self.content.put_slice(piece),
            }
        }
    }

    /// Stores the bundles of a message, one for each node.
    pub(super) async fn complete(&mut self) -> Result<SubmissionAnswer, NodeGone> {
        let message = core::mem::take(&mut self.content).freeze();
        let recipients = core::mem::take(&mut self.recipients);
        let written = core::mem::take(&mut self.written);
        let sender = self.sender.take().map(|sender| sender.to_string());
        let envelope_id = self.envelope_id.take();
        let mut bundles = Vec::new();
        let mut longest: Option<Estimate> = None;
        for (node, recipients) in recipients {
            let Ok(endpoint) = mail_endpoint_of(&node) else { continue };
            let head = MessageHead {
                sender: sender.clone().unwrap_or_default(),
                recipients: recipients.clone(),
                message_bytes: message.len() as u64,
            };
            let head = Envelope::Message(head).to_bytes();
            let length = (head.len() + message.len()) as u64;
            let estimate = self.node.estimate(endpoint.clone(), length).await?;
            if let Some(refused) = self.takes_too_long(length, &estimate) {
                return Ok(refused);
            }
            if estimate.time_s > longest.as_ref().and_then(|longest| longest.time_s) {
                longest = Some(estimate);
            }
            bundles.push((node, endpoint, recipients, head));
        }
        let mut stored = Vec::new();
        for (node, endpoint, recipients, head) in bundles {
            let mut pending = self.pending(&node, sender.as_deref(), &envelope_id, recipients, &message);
            let is_here = |known: &String| pending.recipients.iter().any(|one| one.address == *known);
            let here: BTreeMap<_, _> =
                written.clone().into_iter().filter(|(known, _)| is_here(known)).collect();
            pending.written = here;
            let not_stored = match self.store(endpoint, head, message.clone(), &pending).await? {
                Ok(()) => {
                    stored.push(pending.bundle);
                    continue;
                }
                Err(not_stored) => not_stored,
            };
            // The mail program keeps the message, for all of its recipients. What has left already arrives once more when it tries
            // again, which is better than never.
            for bundle in stored {
                self.service.with_pending(|all| all.remove(&bundle));
                self.node.delete(bundle).await?;
            }
            let NotStored { reason, is_temporary } = not_stored;
            return Ok(match is_temporary {
                true => refusal(452, "4.3.1", format!("Not accepted: {reason}")),
                false => refusal(554, "5.3.0", format!("Not accepted for {node}: {reason}")),
            });
        }
        self.service.count("submitted");
        let time = longest.and_then(|longest| Some((longest.time_s?, longest.link?)));
        Ok(Ok(match time {
            Some((seconds, link)) => {
                let time = Duration::try_from_secs_f64(seconds.round()).unwrap_or(Duration::MAX);
                format!("Message stored; about {} over link `{link}`", in_words(time))
            }
            None => "Message stored".into(),
        }))
    }

    /// Stores a bundle, and before it what is remembered of it: a receipt may come at once.
    async fn store(
        &mut self,
        endpoint: String,
        head: Bytes,
        message: Bytes,
        pending: &PendingMessage,
    ) -> Result<Result<(), NotStored>, NodeGone> {
        let settings = &self.service.settings;
        // The lifetime begins at the creation time, before the time at present.
        let end_ms = pending.expires_dtn_ms.filter(|_| pending.bundle.created.time.0 > 0);
        let lifetime = end_ms.map_or(settings.lifetime, |end_ms| {
            Duration::from_millis(end_ms.saturating_sub(pending.bundle.created.time.0))
        });
        let options = MessageOptions {
            priority: settings.priority,
            lifetime_s: lifetime.as_secs_f64(),
            report_deletion: pending.wants_notices(),
            created: Some(pending.bundle.created),
            ..MessageOptions::default()
        };
        if pending.wants_notices() {
            let added = self.service.with_pending(|all| all.add(pending.clone()));
            let reason = added.err().map(|error| format!("it cannot be remembered for its receipt: {error}"));
            self.service.trouble(Part::Pending, reason.clone());
            if let Some(reason) = reason {
                return Ok(Err(NotStored { reason, is_temporary: true }));
            }
        }
        let stored = self.node.send(endpoint, head, message, options).await?;
        if stored.is_err() {
            self.service.with_pending(|all| all.remove(&pending.bundle));
        }
        Ok(stored)
    }

    fn pending(
        &self,
        node: &str,
        sender: Option<&str>,
        envelope_id: &Option<String>,
        recipients: Vec<Recipient>,
        message: &[u8],
    ) -> PendingMessage {
        let dtn_ms = self.service.clock.dtn_ms();
        // A whole second: version 6 has no others. A number that no other bundle of this node has: the agent counts from zero.
        let created = (dtn_ms.map_or(0, in_whole_seconds), (1 << 52) | (random_u64() >> 12)).into();
        let lifetime_ms = u64::try_from(self.service.settings.lifetime.as_millis()).unwrap_or(u64::MAX);
        PendingMessage {
            bundle: BundleName { source: self.service.domains.own().to_owned(), created },
            node: node.to_owned(),
            sender: sender.unwrap_or_default().to_owned(),
            envelope_id: envelope_id.clone(),
            recipients,
            written: BTreeMap::new(),
            header: super::notices::header_of(message),
            forwarded: false,
            expires_dtn_ms: dtn_ms.map(|dtn_ms| dtn_ms.saturating_add(lifetime_ms)),
        }
    }
}

fn in_whole_seconds(dtn_ms: u64) -> u64 {
    dtn_ms / 1000 * 1000
}

/// A length in the largest fitting unit.
fn in_bytes(length: u64) -> String {
    match length {
        0..1000 => format!("{length} bytes"),
        1000..1_000_000 => format!("{:.1} kB", length as f64 / 1e3),
        _ => format!("{:.1} MB", length as f64 / 1e6),
    }
}

/// A time in the largest unit of which there are two or more.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
