//! The bundle protocol agent: RFC 9171 section 5 as an engine.
//!
//! The agent stores the bundles that it accepts, forwards them when a link towards the destination is up, delivers them to
//! the application that is registered for the destination, and reports the outcome. It has two ports below, the storage and
//! the links. Time, the wall clock and the state of the links come to it as inputs.
//!
//! ```text
//!       applications: Send, Piece, Register, Read, Taken ..                   Delivered, Sent, Report ..
//!       the operator: SetRoute, OpenLink, Delete, Watch ..                    Link, Bundle, Refused ..
//!   ------------------------------------------------------------------------------------------------------
//!    sending --\                                                                /-- delivery, reassembly
//!               >--> storage (sealed) --> dispatch --> routing (queues) --> outgoing
//!    incoming -/          ^                                                      |
//!                         '---- restore (after a crash)             reports <----'
//!   ------------------------------------------------------------------------------------------------------
//!       storage: Append, Read, Remove                 links: Open, Piece, Accept, Refuse
//! ```
//!
//! # Guarantees
//! - A bundle accepted from an application or a peer survives any crash: nothing is acknowledged before it is durable.
//! - A delivery that an application has accepted is never delivered to it again.
//! - Each send ends with one terminal indication (of this start: after a restart the bundle continues silently).
//! - Payloads are streamed: memory holds headers, and a few pieces of payload per transfer.
//! - After a broken transfer, no byte that the peer has acknowledged is resent, and no received byte is discarded: both
//!   sides continue with fragments (reactive fragmentation, RFC 9171 5.8), repeatedly if necessary.
//!
//! # Parts
//! The state is in parts, each in the module of its procedures. Most procedures need several of them, so they are methods of
//! the agent; what needs one part alone is a method of the part.
//!
//! | part | module | state |
//! |---|---|---|
//! | `Indications` | `watch` | indications for applications and the operator |
//! | `Startup` | `restore` | progress of the start, and the numbers that contain it |
//! | `Timekeeping` | `clock` | the clock and its adjustments, all deadlines |
//! | `Holdings` | `holdings` | the bundles, and their counts |
//! | `Evictable` | `space` | which of them may be evicted |
//! | `Sends` | `sending` | bundles that are being made at this node |
//! | `Intake` | `incoming` | bundles that are arriving |
//! | `Links` | `links` | the links and their peers |
//! | `Routing` | `routing` | routes, queues, copies |
//! | `Outgoing` | `outgoing` | requests to the links, and the order in which the links are served |
//! | `BundleSecurity` | `security` | keys, rules, and bundles that are being verified |
//! | `Deliveries` | `delivery` | registrations, payloads for this node, tombstones |
//!
//! # Implemented parts of RFC 9171
//! | section | module |
//! |---|---|
//! | 4.2.7 creation timestamps, with and without a clock; 5.2, 5.12 sending, cancelling | `sending` |
//! | 4.4.1 to 4.4.3 previous node, age, hop count; 5.4 forwarding; 5.8 fragmentation | `outgoing`, `routing` |
//! | 5.1, 6 status reports of all four kinds | `reports` |
//! | 5.3, 5.6 dispatching, reception | `incoming` |
//! | 5.5 expiry, by the clock or by age | `clock`, this module |
//! | 5.7, 5.9 delivery, reassembly | `delivery`, `reassembly` |
//! | 5.10, 5.11 deletion | this module |
//! | RFC 5050 5.10 to 5.12 custody transfer | `custody` |
//! | RFC 9172: signatures and encryption of bundles made here, verification of others | `security`, `checking` |
//! | RFC 9172 5.1: decryption of bundles for this node | `decrypting`, `missing_keys` |
//!
//! Not implemented: membership of a group beyond this node (5.3 step 1: a bundle for a group with a registration at this
//! node is delivered here and not forwarded); returning a bundle to its previous node (5.4.2 allows it, but two such nodes
//! would exchange a bundle endlessly); confidentiality (RFC 9172 3.8), whose blocks are carried unchanged.
//!
//! # Two versions
//! Version 6 (RFC 5050) runs in parallel with version 7. The first byte of an arriving bundle distinguishes the versions,
//! and a bundle is forwarded in its own version, with the flags, blocks and status reports of that version. The sections in
//! the table are those of version 7; version 6 has the same procedures under the same numbers up to 5.9. Fragments are
//! reassembled only with fragments of the same version.
//!
//! The CRC of the payload covers a complete bundle, so only the link's own checks cover the two parts of a broken transfer
//! up to the break; from there on, each fragment has its own CRC.
//!
//! # Units
//! Lengths in bytes; DTN times in milliseconds since 2000-01-01 UTC, zero if unknown; engine time in nanoseconds.

mod accounts;
mod adu;
mod amateur;
mod checking;
mod clock;
mod config;
mod counters;
mod custody;
mod decrypting;
mod delivery;
mod failures;
mod head;
mod heads_on_disk;
mod held;
mod holdings;
mod incoming;
mod links;
mod missing_keys;
mod outgoing;
mod overlap;
mod prefix_read;
mod quirks;
mod ranges;
mod reassembly;
mod record;
mod refusal;
mod reports;
mod resting;
mod restore;
mod routing;
mod secret;
mod security;
mod sending;
mod space;
mod status;
mod store;
mod taken;
#[cfg(test)]
mod tests;
mod verifying;
mod watch;

pub use config::{
    Config, CustodyConfig, EvictionPolicy, Limits, LinkConfig, ReportConfig, RouterKind as RouterChoice,
    RoutingConfig, Version6Config,
};
pub use counters::Counters;
pub use security::{
    CheckRule, EncryptRule, EncryptedRule, Endpoints, KeyName, Proof, Security, SignRule, SignatureCheck,
};
pub use status::{BundleStatus, LearnedLink, LearnedRoute, RetentionReason};
#[cfg(test)]
pub(crate) use tests::audit::{PayloadPart, part_in};

use crate::bp::{DecodePolicy, Eid, ReasonCode};
use crate::codec::DecodeError;
use crate::engine::Engine;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    AppIndication, AppRequest, Both, Bpa, BpaIndication, BpaRequest, BundleEvent, Bundles, BundlesIndication,
    BundlesRequest, LinkId, ManagementIndication, ManagementRequest, Many, Port, RecordId, SendFailure,
    SteadyReading, Storage, StorageFailure, StorageIndication, StorageRequest,
};
use crate::time::{Duration, Instant};

use checking::CheckTarget;
use clock::{ClockAdjustment, DeadlineKind, Timekeeping};
use delivery::{Deliveries, DeliveryProgress};
use held::{BundleState, HeldBundle};
use holdings::Holdings;
use incoming::Intake;
use links::Links;
use outgoing::Outgoing;
use reports::ReportRateLimit;
use restore::Startup;
use routing::Routing;
use security::BundleSecurity;
use sending::Sends;
use space::Evictable;
use store::{ReadPurpose, StoragePort};
use taken::Digests;
use watch::Indications;

/// Interval at which the clock state is stored: a restart counts at most this much time twice.
const CLOCK_KEPT_EVERY: Duration = Duration::from_secs(3600);

/// Bundle protocol agent (RFC 9171 section 5): stores, forwards and delivers bundles.
#[derive(Debug)]
pub struct Agent {
    config: Config,
    node: Eid,
    rng: Rng,
    counters: Counters,
    store: StoragePort,
    indications: Indications,
    startup: Startup,
    time: Timekeeping,
    holdings: Holdings,
    evictable: Evictable,
    sends: Sends,
    intake: Intake,
    links: Links,
    routing: Routing,
    outgoing: Outgoing,
    deliveries: Deliveries,
    security: BundleSecurity,
    report_rate_limit: ReportRateLimit,
    /// Rate limit of custody signals about refused bundles.
    signal_rate_limit: ReportRateLimit,
}

/// Parses a node ID. Also accepts `dtn://name` and any endpoint of the node. `None` for the null endpoint and
/// invalid text.
pub fn parse_node(text: &str) -> Option<Eid> {
    let eid = text.parse::<Eid>().or_else(|_| format!("{text}/").parse::<Eid>()).ok()?;
    if eid.is_null() { None } else { Some(eid.node_id().detached()) }
}

/// True if a pattern matches this endpoint: an endpoint ID, or a prefix followed by an asterisk.
fn matches(pattern: &str, endpoint: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => endpoint.starts_with(prefix),
        None => endpoint == pattern,
    }
}

/// Limit on the head of a bundle, in the unit of the decoder.
fn head_bytes_max(limits: &Limits) -> u32 {
    u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX)
}

impl Agent {
    /// Creates an agent, which begins by listing the records of its storage.
    ///
    /// # Errors
    /// Fails if the configured node ID is invalid.
    pub fn new(config: Config, rng: Rng) -> Result<Self, DecodeError> {
        let node = parse_node(&config.node).ok_or(DecodeError::invalid("a node ID", "RFC 9171 4.2.5.2"))?;
        let head_bytes_max = head_bytes_max(&config.limits);
        let policy = DecodePolicy { head_bytes_max, ..DecodePolicy::STRICT };
        // A smaller limit does not lose bundles that were accepted under an earlier one.
        let stored_policy =
            DecodePolicy { head_bytes_max: head_bytes_max.max(1 << 20), ..DecodePolicy::STORED };
        let [report_rate_limit, signal_rate_limit] =
            [(); 2].map(|()| ReportRateLimit::new(config.reports.per_minute_max));
        let router = routing::router(&config.routing);
        let digests = Digests::new(rng.fork("digests").next_u64());
        let learned = routing::Learned::for_router(&config.routing, &node, rng.fork("announcements"));
        let mut store = StoragePort::default();
        store.list();
        Ok(Agent {
            config,
            node,
            rng,
            counters: Counters::default(),
            store,
            indications: Indications::default(),
            startup: Startup::new(stored_policy),
            time: Timekeeping::default(),
            holdings: Holdings::new(digests),
            evictable: Evictable::default(),
            sends: Sends::default(),
            intake: Intake::new(policy),
            links: Links::default(),
            routing: Routing::new(router, digests, learned),
            outgoing: Outgoing::default(),
            deliveries: Deliveries::new(digests),
            security: BundleSecurity::default(),
            report_rate_limit,
            signal_rate_limit,
        })
    }

    /// Changes the limits. Bundles that are held already stay, even above a smaller limit; with eviction, a new one takes the
    /// place of as much as it needs itself.
    pub fn set_limits(&mut self, limits: Limits) {
        let bytes = head_bytes_max(&limits);
        self.intake.set_head_bytes_max(bytes);
        self.startup.raise_head_bytes_max(bytes);
        self.config.limits = limits;
    }

    /// Node ID.
    pub fn node(&self) -> &Eid {
        &self.node
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Difference between the wall clock and the lifetime clock after a jump of the wall clock, milliseconds;
    /// zero without a jump, or after the operator has confirmed the clock.
    pub fn clock_ahead_ms(&self) -> i64 {
        self.time.clock.ahead_ms()
    }

    /// True once the storage has been read.
    pub fn is_ready(&self) -> bool {
        self.startup.is_ready()
    }

    /// Returns an unused record ID, which contains the number of this start.
    fn next_record(&mut self) -> RecordId {
        self.startup.next_record()
    }

    fn insert_bundle(&mut self, record: RecordId, held: HeldBundle) {
        self.time.deadlines.ends(held.end, DeadlineKind::Expiry(record));
        self.holdings.insert(record, held);
    }

    /// Removes a bundle and all its state (RFC 9171 5.11).
    fn drop_bundle(&mut self, record: RecordId) {
        self.unroute(record);
        let Some(mut held) = self.holdings.remove(record) else { return };
        self.record_left(record);
        self.time.deadlines.not_ends(held.end, DeadlineKind::Expiry(record));
        self.sends.forget(record, &held);
        self.startup.stop_verifying(record);
        self.security.checks.forget(record);
        self.security.stop_check(&CheckTarget::Passing(record));
        self.cancel_transfers(&held.transfers);
        if let Some(replication) = held.replication.take() {
            self.drop_copies(*replication);
        }
        if let Some(copy) = held.copy_origin.take() {
            return self.copy_gone(record, &copy);
        }
        if held.state == BundleState::Local {
            self.part_gone(record, &held);
        }
        self.store.remove(record);
    }

    /// Deletes a bundle for a reason (RFC 9171 5.10).
    fn delete(&mut self, now: Instant, record: RecordId, reason: ReasonCode, failure: SendFailure) {
        let Some(held) = self.holdings.get(&record) else { return };
        let (send, intake, held_in_custody) = (held.send, held.intake, held.custody.is_some());
        let neighbour = held.neighbour;
        let head = held.head.clone();
        if let Some((id, transfer)) = intake.filter(|intake| self.intake.contains(intake)) {
            self.refuse_deleted(id, transfer, reason);
        }
        self.signal_deleted(now, record, reason);
        if let Some(send) = send {
            self.end_send(send, Err(failure));
        }
        self.happened(
            record,
            match failure {
                SendFailure::ExpiredEncrypted => BundleEvent::ExpiredEncrypted,
                _ => BundleEvent::Deleted(reason.number()),
            },
        );
        if reason == ReasonCode::TransmissionCanceled && self.holdings[&record].replication.is_some() {
            // Other nodes may have copies and send them to this one.
            self.remember_passed(now, record);
        }
        self.drop_bundle(record);
        // The report may need the space of the deleted bundle.
        self.report_deleted(now, neighbour, &head, reason, held_in_custody);
    }

    /// Deletes a bundle whose lifetime has expired (RFC 9171 5.5).
    fn expire(&mut self, now: Instant, record: RecordId) {
        let Some(held) = self.holdings.get(&record) else { return };
        let taken = self.local_of(held).is_some_and(|local| local.progress == DeliveryProgress::Taken);
        if held.state == BundleState::Local && taken {
            // The delivered bundle is about to be removed.
            return;
        }
        let reason =
            if held.end_is_override { ReasonCode::TrafficPared } else { ReasonCode::LifetimeExpired };
        self.counters.deleted_expired += 1;
        let was_kept = held.counted_as_kept;
        self.counters.expired_kept_encrypted += u64::from(was_kept);
        let failure = if was_kept { SendFailure::ExpiredEncrypted } else { SendFailure::Expired };
        self.delete(now, record, reason, failure);
    }

    /// Deletes a bundle whose record the storage has lost.
    fn storage_lost(&mut self, now: Instant, record: RecordId) {
        let record = self.original(record);
        if !self.holdings.contains(&record) {
            // An earlier read of the record failed.
            return;
        }
        self.counters.deleted_storage += 1;
        self.delete(now, record, ReasonCode::DepletedStorage, SendFailure::Storage);
    }

    fn set_clock(&mut self, now: Instant, dtn_ms: Option<u64>, steady: Option<SteadyReading>) {
        let was_told = self.time.clock.dtn_ms(now).is_some();
        let jump = self.time.clock.set(now, dtn_ms, steady);
        self.time.deadlines.follow(dtn_ms.is_some());
        if let Some(jump) = jump {
            self.indications.push(ManagementIndication::ClockJumped { by_ms: jump.by_ms });
        }
        if self.is_ready() {
            self.note_turn(now, jump.map_or(0, |jump| jump.moved_ms));
            self.age_found(now);
            if jump.is_some() || !was_told {
                self.retry_postponed_checks();
            }
            if jump.is_some() || now.saturating_since(self.time.kept_at) >= CLOCK_KEPT_EVERY {
                self.keep_clock(now);
            }
        }
        self.look_at_all_contacts(now);
        self.run_deadlines(now);
    }

    /// Handles the operator's confirmation of the clock.
    fn trust_clock(&mut self, now: Instant) {
        let moved_ms = self.time.clock.trust();
        if moved_ms != 0 && self.is_ready() {
            self.note_turn(now, moved_ms);
            self.keep_clock(now);
        }
        self.run_deadlines(now);
    }

    /// Records a change of the clock adjustment, which applies to later records.
    fn note_turn(&mut self, now: Instant, moved_ms: i64) {
        let ahead_ms = self.time.clock.ahead_ms();
        if ahead_ms == self.time.adjustments.ahead_ms() && moved_ms == 0 {
            return;
        }
        let first = self.startup.first_later_record();
        let doubtful = self.time.adjustments.first_behind().filter(|_| ahead_ms == 0);
        self.time.adjustments.add(ClockAdjustment { first, ahead_ms, moved_ms });
        let Some(doubtful) = doubtful else { return };
        // The times of bundles that arrived while the clock was doubted can now be interpreted.
        let came: Vec<RecordId> = self.holdings.records(doubtful..first).collect();
        for record in came {
            let held = self.holdings.get_mut(&record).expect("it was just found");
            self.time.renew_end(now, record, held, &self.config);
        }
    }

    fn run_deadlines(&mut self, now: Instant) {
        if !self.is_ready() {
            // The clock has not yet been compared with its stored state.
            return self.repeat_reads(now);
        }
        while let Some(due) = self.time.pop_due(now) {
            match due {
                DeadlineKind::Expiry(record) => self.expire(now, record),
                DeadlineKind::TombstoneExpiry(record) => self.forget(now, record),
                DeadlineKind::Contact(link) => self.look_at_contacts(now, link),
                DeadlineKind::Retry(record) => self.retry(now, record),
                DeadlineKind::Custody(record) => self.custody_timeout(now, record),
                DeadlineKind::Release(link) => self.release_link(link),
                DeadlineKind::RouterWait => self.look_at_all_links(),
                DeadlineKind::Announcements => self.announcements_due(),
                DeadlineKind::RepeatDelivery(payload) => self.repeat(now, payload),
                DeadlineKind::RetryRead(payload) => self.read_next(payload),
                DeadlineKind::RetryChecks => self.retry_checks(),
                DeadlineKind::DispatchFound => self.dispatch_found(now),
                DeadlineKind::AgeFound => self.age_next(now),
                DeadlineKind::Reroute => self.reroute_next(now),
                DeadlineKind::RetryTombstone(payload) => self.write_tombstone(now, payload),
            }
        }
        self.settle(now);
    }

    /// Continues with bundles that have become durable.
    fn settle(&mut self, now: Instant) {
        while let Some(record) = self.holdings.next_settled() {
            let durable =
                |held: &HeldBundle| held.state == BundleState::Sealing && held.stored >= held.appended;
            if self.holdings.get(&record).is_some_and(durable) {
                self.sealed(now, record);
            }
        }
        self.run_checks(now);
    }

    fn handle_storage(&mut self, now: Instant, indication: StorageIndication) {
        match indication {
            StorageIndication::Listed { records } => self.listed(now, records),
            StorageIndication::Stored { record, up_to } => self.stored(now, record, up_to),
            StorageIndication::Data { record, offset, data } => {
                let Some((purpose, length)) = self.store.answered(record, offset) else {
                    self.counters.ignored += 1;
                    return;
                };
                match purpose {
                    ReadPurpose::Transfer(link, transfer) => {
                        self.transfer_data(now, link, transfer, offset, length, data);
                    }
                    ReadPurpose::Head(link, transfer) => self.head_was_read(now, link, transfer, &data),
                    ReadPurpose::Payload(payload, read) => {
                        self.local_data(now, (payload, read), record, data)
                    }
                    ReadPurpose::CheckHead(number) => self.check_head_was_read(now, number, record, &data),
                    ReadPurpose::Check(number) => self.check_data(now, number, record, &data),
                    ReadPurpose::Restore => self.restore_data(now, record, offset, data),
                    ReadPurpose::Verify => self.verify_data(now, record, data),
                }
            }
            StorageIndication::Removed { record } => {
                if !self.deliveries.is_tombstone(record) {
                    self.tombstone_stored(now, record);
                }
            }
            StorageIndication::Full { record } => self.append_failed(now, record, SendFailure::Full),
            StorageIndication::AppendFailed { record } => {
                self.append_failed(now, record, SendFailure::Storage);
            }
            StorageIndication::ReadFailed { record, offset, failure } => {
                match self.store.answered(record, offset) {
                    Some((purpose, _)) => self.read_failed(now, record, purpose, failure),
                    None => self.counters.ignored += 1,
                }
            }
        }
    }

    /// Handles an increase of the durable length of a record.
    fn stored(&mut self, now: Instant, record: RecordId, up_to: u64) {
        if self.startup.boots_with(record) {
            return self.booted(now, true);
        }
        if self.startup.is_clock_record(record) {
            self.startup.take_old_boots().into_iter().for_each(|old| self.store.remove(old));
            return;
        }
        let Some(held) = self.holdings.get_mut(&record) else {
            if self.deliveries.tombstone_is_whole(record, up_to) {
                self.tombstone_stored(now, record);
            }
            return;
        };
        held.stored = held.stored.max(up_to);
        let payload = held.stored.saturating_sub(held.payload_at());
        let durable = held.handed.min(payload).max(held.durable);
        self.sends.stored(durable - core::mem::replace(&mut held.durable, durable));
        match held.state {
            BundleState::Sealing if held.stored >= held.appended => self.holdings.settle_later(record),
            BundleState::Sealing | BundleState::Arriving => self.accept(record),
            _ => {}
        }
    }

    /// Handles an append that the storage rejected.
    fn append_failed(&mut self, now: Instant, record: RecordId, failure: SendFailure) {
        if self.startup.boots_with(record) {
            return self.booted(now, false);
        }
        if self.deliveries.awaits_tombstone(record) {
            return self.tombstone_failed(now, record);
        }
        let Some(held) = self.holdings.get_mut(&record) else { return };
        match held.state {
            BundleState::Arriving | BundleState::Sealing if !held.own => self.intake_full(record),
            BundleState::Composing | BundleState::Sealing => {
                self.counters.sends_failed += 1;
                if let Some(send) = held.send {
                    self.end_send(send, Err(failure));
                }
                self.drop_bundle(record);
            }
            _ => {
                // Only a note was lost: the record remains valid, but accepts no further notes.
                held.closed = true;
            }
        }
    }

    fn read_failed(&mut self, now: Instant, record: RecordId, purpose: ReadPurpose, failure: StorageFailure) {
        let lost = failure != StorageFailure::Device;
        match purpose {
            ReadPurpose::Restore => self.restore_failed(now, record, lost),
            ReadPurpose::Payload(payload, read) => self.local_failed(now, (payload, read), record, failure),
            ReadPurpose::Transfer(link, transfer) | ReadPurpose::Head(link, transfer) => {
                self.transfer_read_failed(now, link, transfer);
                if lost {
                    self.storage_lost(now, record);
                }
            }
            ReadPurpose::CheckHead(number) | ReadPurpose::Check(number) => {
                self.check_failed(now, number, record, failure);
            }
            ReadPurpose::Verify if lost => self.storage_lost(now, record),
            ReadPurpose::Verify => {
                self.time.deadlines.at(now + self.config.backoff_min, DeadlineKind::Retry(record))
            }
        }
    }

    fn handle_application(&mut self, now: Instant, request: AppRequest) {
        match request {
            AppRequest::Register { endpoint } => self.register(now, &endpoint),
            AppRequest::Unregister { endpoint } => self.unregister(&endpoint),
            AppRequest::Send { send, destination, length, options } => {
                self.send(now, send, destination, length, options);
            }
            AppRequest::Piece { send, data } => self.send_piece(send, data),
            AppRequest::Cancel { send } => self.cancel(now, send),
            AppRequest::Read { delivery, offset, length } => {
                self.read_delivery(now, delivery, offset, length)
            }
            AppRequest::Taken { delivery } => self.taken(now, delivery),
        }
    }

    fn handle_management(&mut self, now: Instant, request: ManagementRequest) {
        match request {
            ManagementRequest::SetClock { dtn_ms, steady } => self.set_clock(now, dtn_ms, steady),
            ManagementRequest::TrustClock => self.trust_clock(now),
            ManagementRequest::SetRoute { pattern, via, cost } => self.set_route(now, pattern, via, cost),
            ManagementRequest::RemoveRoute { pattern, via } => self.remove_route(now, pattern, &via),
            ManagementRequest::Delete(name) => self.delete_named(now, &name),
            ManagementRequest::OpenLink { link } => self.open_link(link),
            ManagementRequest::ExpectLink { link, node } => self.expect_link(link, &node),
            ManagementRequest::CloseLink { link } => self.close_link(link),
            ManagementRequest::ForgetLink { link } => self.forget_link(link),
            ManagementRequest::Watch { on } => self.indications.watch(on),
            ManagementRequest::SetContacts { link, contacts } => self.set_contacts(now, link, contacts),
        }
    }

    fn handle_bundles(&mut self, now: Instant, link: LinkId, indication: BundlesIndication) {
        match indication {
            BundlesIndication::Up { peer, interleave, transfer_bytes_max } => {
                self.link_up(now, link, peer, interleave, transfer_bytes_max);
            }
            BundlesIndication::Amateur => self.link_is_amateur(now, link),
            BundlesIndication::Peer { peer } => self.rename_peer(now, link, peer),
            BundlesIndication::Down { reason, retry } => self.link_down(now, link, reason, retry),
            BundlesIndication::Room(room) => {
                if let Some(link) = self.links.get_mut(link) {
                    link.room = room;
                }
                self.outgoing.wake(link);
            }
            BundlesIndication::Begin { transfer, length } => self.begin(link, transfer, length),
            BundlesIndication::Piece { transfer, data, last } => self.piece(now, link, transfer, data, last),
            BundlesIndication::Lost { transfer } => self.lost(link, transfer),
            BundlesIndication::Acked { transfer, up_to } => self.transfer_acked(link, transfer, up_to),
            BundlesIndication::Sent { transfer } => self.transfer_sent(now, link, transfer),
            BundlesIndication::Failed { transfer, reason, acked } => {
                self.transfer_failed(now, link, transfer, reason, acked);
            }
        }
    }
}

impl Engine for Agent {
    type Above = Bpa;
    type Below = Both<Storage, Many<LinkId, Bundles>>;

    fn handle_request(&mut self, now: Instant, request: BpaRequest) {
        match request {
            BpaRequest::App(request) => self.handle_application(now, request),
            BpaRequest::Manage(request) => self.handle_management(now, request),
        }
        self.settle(now);
        self.tend_announcements(now);
    }

    fn handle_indication(
        &mut self,
        now: Instant,
        indication: Port<StorageIndication, (LinkId, BundlesIndication)>,
    ) {
        match indication {
            Port::First(storage) => self.handle_storage(now, storage),
            Port::Second((link, bundles)) => self.handle_bundles(now, link, bundles),
        }
        self.settle(now);
        self.tend_announcements(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run_deadlines(now);
        self.tend_announcements(now);
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<BpaIndication> {
        self.indications.pop().or_else(|| Some(AppIndication::Room(self.poll_send_room()?).into()))
    }

    fn poll_request(&mut self, now: Instant) -> Option<Port<StorageRequest, (LinkId, BundlesRequest)>> {
        loop {
            if let Some(request) = self.store.poll() {
                return Some(Port::First(request));
            }
            if let Some(request) = self.outgoing.next_request() {
                return Some(Port::Second(request));
            }
            let next = self.outgoing.next_link()?;
            if self.work(now, next) {
                self.outgoing.wake(next);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.is_ready() { self.time.next_due() } else { self.startup.next_read() }
    }

    fn observe(&self, view: &mut Observation) {
        let (bundles, bytes) = self.holds();
        let part = view.part("agent").count(&self.counters);
        part.tell("ready", self.is_ready()).tell("bundles", bundles).tell("bytes", bytes);
    }
}
