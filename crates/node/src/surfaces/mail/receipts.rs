//! Outcomes of messages on their way, and the notices about them in the Maildirs of their senders.

use super::envelope::Outcome;
use super::notices::Notice;
use super::pending::PendingMessage;
use super::sending::Sender;
use super::{MailService, NodeGone, Part};
use crate::clock::unix_s;
use crate::surfaces::event_log::EventReader;
use crate::view::Event;
use longwire_proto::bp::ReasonCode;
use longwire_proto::service::BundleName;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Interval between checks for messages whose lifetime has ended.
const EXPIRY_EVERY: Duration = Duration::from_secs(30);
/// Time after the end of a lifetime at which no receipt is expected any more, milliseconds.
const GRACE_MS: u64 = 60_000;
/// Maximum events handled at a time.
const EVENTS_MAX: usize = 256;

/// Follows the bundles of messages until the node stops.
pub(super) async fn serve(service: Arc<MailService>, mut reader: EventReader) -> Result<(), NodeGone> {
    let mut node = Sender::new(service.client_factory.client());
    node.watch().await?;
    // Messages whose lifetime ended while the node was stopped come before all events.
    expire(&service, &mut node).await?;
    let mut expiry = tokio::time::interval_at(Instant::now() + EXPIRY_EVERY, EXPIRY_EVERY);
    loop {
        tokio::select! {
            events = reader.next(EVENTS_MAX) => {
                let Some((_, events)) = events else { return Err(NodeGone) };
                events.iter().for_each(|record| hear(&service, &record.event));
            }
            _ = expiry.tick() => {
                service.make_maildirs();
                expire(&service, &mut node).await?;
            }
            () = node.gone() => return Err(NodeGone),
        }
    }
}

fn hear(service: &MailService, event: &Event) {
    let pending = |id: &str| service.with_pending(|all| all.get(id).cloned());
    match event {
        Event::BundleForwarded { bundle } => {
            if let Some(message) = pending(&bundle.id).filter(|message| !message.forwarded) {
                let forwarded = PendingMessage { forwarded: true, ..message };
                let noted = service.with_pending(|all| all.add(forwarded));
                let trouble =
                    noted.err().map(|error| format!("cannot note that a message has left: {error}"));
                service.trouble(Part::Pending, trouble);
            }
        }
        Event::BundleDeleted { bundle, reason } => {
            if let Some(message) = pending(&bundle.id).filter(|message| !message.forwarded) {
                let node = service.domains.own().to_owned();
                let (status, words) = match &**reason {
                    "lifetime_expired" => {
                        ("5.4.7", format!("its lifetime ended before it could leave {node}"))
                    }
                    "no_route" => {
                        ("5.4.4", format!("it was deleted at {node}: no route, or the next node refused it"))
                    }
                    other => ("5.0.0", format!("it was deleted at {node}: {}", other.replace('_', " "))),
                };
                fail(service, message, status, &words);
            }
        }
        Event::Report { id, status, reason, reporter, believed: true } if status == "deleted" => {
            if let Some(message) = pending(id) {
                let (status, words) = match ReasonCode::from_number(*reason) {
                    ReasonCode::LifetimeExpired => {
                        ("5.4.7", format!("its lifetime ended at {reporter}, on its way"))
                    }
                    code => {
                        ("5.0.0", format!("it was deleted at {reporter}, on its way: {}", in_words(code)))
                    }
                };
                fail(service, message, status, &words);
            }
        }
        _ => {}
    }
}

/// Reason code as text: `MissingSecurityOperation` is `missing security operation`.
fn in_words(code: ReasonCode) -> String {
    if let ReasonCode::Unknown(number) = code {
        return format!("reason code {number}");
    }
    let mut words = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// Notifies the senders of messages whose lifetime has ended, as far as they want to know. Lifetimes are those of the node: after a jump
/// of the clock they do not follow it until the operator has confirmed it.
async fn expire(service: &MailService, node: &mut Sender) -> Result<(), NodeGone> {
    let Some(clock_ms) = service.clock.dtn_ms() else { return Ok(()) };
    if service.with_pending(|all| all.expired(clock_ms).is_empty() && all.endless().is_empty()) {
        return Ok(());
    }
    let dtn_ms = clock_ms.saturating_add_signed(-node.clock_ahead_ms().await?);
    // Submitted before the clock was set: their age is not known.
    for message in service.with_pending(|all| all.endless()) {
        let lifetime_ms = u64::try_from(service.settings.lifetime.as_millis()).unwrap_or(u64::MAX);
        let expires_dtn_ms = Some(dtn_ms.saturating_add(lifetime_ms));
        let noted = service.with_pending(|all| all.add(PendingMessage { expires_dtn_ms, ..message }));
        let trouble = noted.err().map(|error| format!("cannot note the lifetime of a message: {error}"));
        service.trouble(Part::Pending, trouble);
    }
    for message in service.with_pending(|all| all.expired(dtn_ms.saturating_sub(GRACE_MS))) {
        let wants_receipt = message.recipients.iter().any(|one| one.on_success);
        match message.forwarded {
            false => fail(
                service,
                message,
                "5.4.7",
                "its lifetime has ended; as far as is known, it never left this node",
            ),
            true if wants_receipt => {
                let words = "its lifetime has ended, and no receipt came; it may have been delivered";
                fail(service, message, "5.4.7", words);
            }
            // The node of the recipients reports failures, and has reported none.
            true => drop(service.with_pending(|all| all.remove(&message.bundle))),
        }
    }
    Ok(())
}

/// Notifies the sender that the message failed for all recipients whose outcome is not known. Without success, this is tried again after
/// the end of its lifetime.
fn fail(service: &MailService, message: PendingMessage, status: &str, reason: &str) {
    let outcome = |address: &str| Outcome {
        address: address.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
    };
    let outcomes: Vec<Outcome> = message.recipients.iter().map(|one| outcome(&one.address)).collect();
    let own = service.domains.own().to_owned();
    let name = format!("{}.failed", message.bundle.created);
    if tell(service, &message, outcomes, &own, &name).is_ok() {
        service.with_pending(|all| all.remove(&message.bundle));
    }
}

/// Handles a receipt of a node. `receipt` is its bundle.
///
/// # Errors
/// Fails if the notice cannot be written; the receipt must be handled again.
pub(super) fn settle(
    service: &MailService,
    bundle: &BundleName,
    outcomes: Vec<Outcome>,
    node: &str,
    receipt: &BundleName,
) -> io::Result<()> {
    let pending = service.with_pending(|all| all.get(&bundle.to_string()).cloned());
    // Nobody else knows what happened there.
    let Some(mut message) = pending else { return Ok(()) };
    if message.node != node {
        service.count("invalid");
        return Ok(());
    }
    let has_outcome: Vec<String> = outcomes.iter().map(|outcome| outcome.address.clone()).collect();
    let name = format!("{}.{}", message.bundle.created, receipt.created);
    tell(service, &message, outcomes, node, &name)?;
    // Deliveries that nobody asked for are not in a receipt.
    message.recipients.retain(|one| one.on_success && !has_outcome.contains(&one.address));
    message.forwarded = true;
    match message.recipients.is_empty() || node == service.domains.own() {
        true => drop(service.with_pending(|all| all.remove(&message.bundle))),
        false => service.with_pending(|all| all.add(message))?,
    }
    Ok(())
}

/// Writes a notice about those outcomes that the sender wants to know.
fn tell(
    service: &MailService,
    message: &PendingMessage,
    mut outcomes: Vec<Outcome>,
    reporter: &str,
    name: &str,
) -> io::Result<()> {
    outcomes.retain(|outcome| {
        let asked = message.recipients.iter().find(|one| one.address == outcome.address);
        asked.is_some_and(|one| if outcome.is_delivered() { one.on_success } else { one.on_failure })
    });
    for outcome in &mut outcomes {
        if let Some(written) = message.written.get(&outcome.address) {
            outcome.address.clone_from(written);
        }
    }
    let sender = longwire_proto::smtp::parse_address(&message.sender);
    let user = sender.and_then(|sender| service.settings.user(&sender.local).map(str::to_owned));
    let Some(user) = user.filter(|_| !outcomes.is_empty()) else { return Ok(()) };
    let is_success = outcomes.iter().all(Outcome::is_delivered);
    let domain = service.domains.own_domain();
    let (outcomes, dtn_ms) = (&outcomes[..], service.clock.dtn_ms());
    let text = Notice { message, outcomes, reporter, domain: &domain, name, dtn_ms }.text();
    // The name is the same when this is tried again. It begins with seconds, by which mail programs sort.
    let file = format!("{}.{name}.notice.{domain}", unix_s(message.bundle.created.time.0));
    match service.maildirs.deliver(&user, &file, &[text.as_bytes()]) {
        Ok(_) => {
            service.trouble(Part::Notices, None);
            service.count(if is_success { "notices_delivered" } else { "notices_failed" });
            Ok(())
        }
        Err(error) => {
            service.trouble(Part::Notices, Some(format!("cannot write a notice for {user}: {error}")));
            Err(error)
        }
    }
}
