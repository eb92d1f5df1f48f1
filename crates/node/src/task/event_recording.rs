//! Recording of events by the engines' task.

use super::{EngineParts as _, Task};
use crate::surfaces::event_log::EventLog;
use crate::view::{BundleIdentification, Event};
use longwire_proto::bp::ReasonCode;
use longwire_proto::service::{
    AppIndication, BundleEvent, BundleName, LinkId, ManagementIndication, ManagementRequest, RefuseReason,
    ReportedStatus, SendFailure,
};
use longwire_proto::time::{Duration, Instant};
use longwire_towers::Carrier as _;
use longwire_towers::carriers::Ax25Cl;
use std::sync::Arc;

/// Time for which events of bundles are still recorded after the last reader has disconnected: it may reconnect.
const LINGER: Duration = Duration::from_secs(60);
/// Minimum time between two events about a full store.
const BETWEEN_FULL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct EventRecording {
    log: Arc<EventLog>,
    /// True while events of bundles are recorded.
    pub(super) bundles: bool,
    /// Time at which there was a reader last.
    read_at: Instant,
    full_at: Option<Instant>,
}

impl EventRecording {
    /// Records events in this log; those of bundles while there are readers.
    pub(crate) fn new(log: Arc<EventLog>) -> Self {
        EventRecording { log, bundles: false, read_at: Instant::ZERO, full_at: None }
    }
}

pub(crate) fn in_seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

impl Task {
    pub(super) fn note(&self, now: Instant, event: Event) {
        self.recording.log.add(now.as_secs_f64(), self.clock.dtn_ms(), event);
    }

    /// Starts the recording of events of bundles.
    pub(super) fn watch(&mut self, now: Instant) {
        self.recording.read_at = now;
        if !self.recording.bundles {
            self.watch_bundles(now, true);
        }
    }

    /// Stops the recording of events of bundles some time after the last reader has disconnected.
    pub(super) fn look_at_watchers(&mut self, now: Instant) {
        if self.recording.log.readers() > 0 {
            self.recording.read_at = now;
        } else if self.recording.bundles && now.saturating_since(self.recording.read_at) > LINGER {
            self.watch_bundles(now, false);
        }
    }

    fn watch_bundles(&mut self, now: Instant, on: bool) {
        self.recording.bundles = on;
        self.ask(now, ManagementRequest::Watch { on });
        self.note(now, Event::BundlesWatched { on });
    }

    /// Records an indication of the agent to its operator as an event.
    pub(super) fn record_management(&mut self, now: Instant, indication: &ManagementIndication) {
        match indication {
            ManagementIndication::ClockJumped { by_ms } => {
                let ahead_ms = self.engines.upper.clock_ahead_ms();
                let (by_s, ahead_s) = (in_seconds(*by_ms), in_seconds(ahead_ms));
                self.note(now, Event::ClockJumped { by_s, ahead_s });
            }
            ManagementIndication::Link { link, peer, down } => {
                let carrier = self.engines.neighbours().carrier(*link);
                let is_ours = || carrier.is_some_and(|about| about.name == Ax25Cl::ABOUT.name);
                if let Some(peer) = peer.as_deref().filter(|_| down.is_none() && is_ours()) {
                    self.applications.longwire_peers.add(peer);
                }
                let down = down.map(|down| self.down_words(*link, down));
                let (link, peer) = (self.link_name(*link), peer.clone());
                let event = match down.map(|(reason, why)| (reason.to_owned(), why.to_owned())) {
                    None => Event::LinkUp { link, peer },
                    Some((reason, why)) => Event::LinkDown { link, peer, reason, why },
                };
                self.note(now, event);
            }
            ManagementIndication::Bundle { name, destination, payload_bytes, what } => {
                self.record_bundle_event(now, identification(name, destination, *payload_bytes), *what);
            }
            ManagementIndication::SignatureFailed { name, destination, signature, deleted } => {
                self.record_signature(now, name, destination, signature, *deleted);
            }
            ManagementIndication::DecryptionFailed { name, destination, encrypted_by, failure } => {
                self.record_decryption(now, name, destination, encrypted_by.as_deref(), *failure);
            }
            ManagementIndication::NewKey { node, fingerprint } => self.record_key(now, node, fingerprint),
            ManagementIndication::Refused { link, reason, breach, accept } => {
                self.record_refused(now, *link, *reason, *breach, accept);
                if *reason == RefuseReason::NoResources {
                    self.record_full(now);
                }
            }
        }
    }

    /// Records an indication of the agent to applications as an event. Returns false if they must not get it.
    pub(super) fn record_indication(&mut self, now: Instant, indication: &AppIndication) -> bool {
        match indication {
            AppIndication::Delivered { name, destination, length, .. } if self.recording.bundles => {
                let bundle = identification(name, destination, *length);
                self.note(now, Event::BundleArrived { bundle });
            }
            AppIndication::Failed { reason: SendFailure::Full, .. } => self.record_full(now),
            AppIndication::Report { name, status, reason, reporter, .. } => {
                let believed = self.believes(indication);
                self.reports_not_believed += u64::from(!believed);
                let event = Event::Report {
                    id: name.to_string(),
                    status: status_word(*status).to_owned(),
                    reason: *reason,
                    reporter: reporter.clone(),
                    believed,
                };
                self.note(now, event);
                return believed;
            }
            _ => {}
        }
        true
    }

    fn record_bundle_event(&mut self, now: Instant, bundle: BundleIdentification, what: BundleEvent) {
        let event = match what {
            BundleEvent::Accepted => Event::BundleAccepted { bundle },
            BundleEvent::Received(link) => Event::BundleReceived { bundle, link: self.link_name(link) },
            BundleEvent::Forwarded => Event::BundleForwarded { bundle },
            BundleEvent::Delivered => Event::BundleDelivered { bundle },
            BundleEvent::Deleted(reason) => {
                let reason = reason_word(ReasonCode::from_number(reason));
                Event::BundleDeleted { bundle, reason }
            }
            BundleEvent::ExpiredEncrypted => {
                Event::BundleDeleted { bundle, reason: "lifetime_expired_kept_from_amateur_links".to_owned() }
            }
        };
        self.note(now, event);
    }

    fn record_full(&mut self, now: Instant) {
        let since = self.recording.full_at.map(|at| now.saturating_since(at));
        if since.is_none_or(|since| since >= BETWEEN_FULL) {
            self.recording.full_at = Some(now);
            let (bundles, stored_bytes) = self.engines.upper.holds();
            self.note(now, Event::StoreFull { bundles: bundles as u64, stored_bytes });
        }
    }

    pub(super) fn link_name(&self, link: LinkId) -> String {
        self.engines.neighbours().links.name(link)
    }
}

fn identification(name: &BundleName, destination: &str, payload_bytes: u64) -> BundleIdentification {
    let (id, source) = (name.to_string(), name.source.clone());
    BundleIdentification { id, source, destination: destination.to_owned(), payload_bytes }
}

pub(crate) fn refuse_word(reason: RefuseReason) -> &'static str {
    match reason {
        RefuseReason::Completed => "completed",
        RefuseReason::NoResources => "no_resources",
        RefuseReason::Retransmit => "retransmit",
        RefuseReason::NotAcceptable => "not_acceptable",
        RefuseReason::ExtensionFailure => "extension_failure",
        RefuseReason::SessionTerminating => "session_terminating",
        RefuseReason::Unknown | RefuseReason::Other(_) => "unknown",
    }
}

/// Status of a report, as an identifier.
pub(super) fn status_word(status: ReportedStatus) -> &'static str {
    match status {
        ReportedStatus::Received => "received",
        ReportedStatus::Forwarded => "forwarded",
        ReportedStatus::Delivered => "delivered",
        ReportedStatus::Deleted => "deleted",
        ReportedStatus::CustodyAccepted => "custody_accepted",
    }
}

/// Reason code, as an identifier: `LifetimeExpired` is `lifetime_expired`.
fn reason_word(reason: ReasonCode) -> String {
    if let ReasonCode::Unknown(number) = reason {
        return format!("reason_{number}");
    }
    let mut word = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}
