//! Applications of the node: many of them share the one agent.
//!
//! Each application has its own numbers for its sends; an endpoint belongs to one application at a time. Payload waits
//! here until the agent has room for it, and counts against its application's budget until then, so a full store or a
//! slow disk slows the application down and does not fill the memory. An application is notified of deliveries up to a
//! window; the deliveries beyond it wait in the agent's storage, and only their numbers wait here.

use super::event_recording::status_word;
use super::longwire_peers::LongwirePeers;
use crate::envelope;
use crate::surfaces::client::{ClientEnd, ClientId, MESSAGE_BYTES};
use crate::surfaces::message::{Message, MessageOptions, PART_BYTES, Reply, Request, full_endpoint};
use crate::surfaces::operations::Weight;
use crate::view;
use bytes::{Bytes, BytesMut};
use longwire_proto::kit::OrderedMap;
use longwire_proto::service::{
    AppIndication, AppRequest, BundleName, CreationTimestamp, DeliveryId, RefuseReason, ReportedStatus,
    SendFailure, SendId,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;

/// Maximum deliveries announced to an application and not taken.
const WINDOW_DELIVERIES: usize = 1024;
/// Maximum payload bytes of the deliveries that are announced with their payload.
const WINDOW_BYTES: u64 = 4 << 20;
/// Maximum unread replies of an application; with more it is disconnected.
const REPLIES_MAX: usize = 65_536;
/// Number of unread replies from which progress is not reported.
const REPLIES_BUSY: usize = 1024;
/// Maximum bundles per application whose reports are still expected.
const REPORTABLE_MAX: usize = 65_536;

/// A delivery that the agent has announced and the application has not taken.
#[derive(Clone, Debug)]
struct PendingDelivery {
    client: ClientId,
    name: BundleName,
    destination: String,
    length: u64,
    signature: Option<Box<view::Signature>>,
    /// Payload read so far, if the payload is sent with the delivery.
    inline: Option<BytesMut>,
    said: bool,
    /// Bytes that count against the application's window.
    said_bytes: u64,
}

/// A bundle whose reports are expected.
#[derive(Debug)]
struct ReportedBundle {
    send: u64,
    destination: String,
}

#[derive(Debug)]
struct ConnectedApp {
    end: ClientEnd,
    /// Replies that follow together at the end of the pass: each hand-over may wake the thread of the application.
    replies: Vec<Message<Reply>>,
    sends: OrderedMap<u64, SendId>,
    /// Bundles by creation timestamp, to find the send that a report belongs to.
    reportable: BTreeMap<CreationTimestamp, ReportedBundle>,
    registered: BTreeMap<String, u32>,
    said: usize,
    said_bytes: u64,
    backlog: VecDeque<DeliveryId>,
}

impl ConnectedApp {
    fn close(&mut self, delivery: &PendingDelivery) {
        if delivery.said {
            self.said -= 1;
            self.said_bytes -= delivery.said_bytes;
        }
    }
}

#[derive(Debug)]
struct PendingSend {
    client: ClientId,
    number: u64,
    source: String,
    destination: String,
    /// Bytes that the application has announced and not sent yet.
    owed: u64,
    pieces: VecDeque<Bytes>,
    reports: bool,
    /// True if the payload begins with a file name and the application asks whether the destination may keep that name.
    note_name: bool,
}

/// The applications of the node, with their sends, registrations and deliveries.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    node: String,
    apps: BTreeMap<ClientId, ConnectedApp>,
    /// Applications with replies that are not handed over yet.
    answered: Vec<ClientId>,
    next_send: u64,
    sends: OrderedMap<SendId, PendingSend>,
    /// Sends whose payload waits for room.
    waiting: VecDeque<SendId>,
    room: u64,
    owners: BTreeMap<String, ClientId>,
    deliveries: OrderedMap<DeliveryId, PendingDelivery>,
    down: VecDeque<AppRequest>,
    pub(crate) longwire_peers: LongwirePeers,
}

impl Applications {
    /// No applications yet. `node` is the complete node ID.
    pub(crate) fn new(node: String) -> Self {
        Applications { longwire_peers: LongwirePeers::own(&node), node, ..Applications::default() }
    }

    pub(crate) fn applications(&self) -> usize {
        self.apps.len()
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &str> {
        self.owners.keys().map(String::as_str)
    }

    pub(crate) fn arrive(&mut self, client: ClientId, end: ClientEnd) {
        let app = ConnectedApp {
            end,
            replies: Vec::new(),
            sends: OrderedMap::new(),
            reportable: BTreeMap::new(),
            registered: BTreeMap::new(),
            said: 0,
            said_bytes: 0,
            backlog: VecDeque::new(),
        };
        self.apps.insert(client, app);
    }

    /// Removes an application: cancels its incomplete sends; deliveries that it has not taken wait.
    pub(crate) fn leave(&mut self, client: ClientId) {
        let Some(app) = self.apps.remove(&client) else { return };
        // An application that has ended may still read its last replies.
        app.replies.into_iter().for_each(|reply| drop(app.end.replies.send(reply)));
        app.end.budget.close();
        app.end.asked.close();
        for endpoint in app.registered.into_keys() {
            self.owners.remove(&endpoint);
            self.down.push_back(AppRequest::Unregister { endpoint });
        }
        for (_, send) in app.sends.iter() {
            if let Some(sending) = self.sends.remove(send)
                && (sending.owed > 0 || !sending.pieces.is_empty())
            {
                self.down.push_back(AppRequest::Cancel { send: *send });
            }
        }
        self.remove_deliveries(|delivery| delivery.client == client);
    }

    pub(crate) fn next_request(&mut self) -> Option<AppRequest> {
        self.down.pop_front().or_else(|| self.next_piece())
    }

    /// Returns the next payload piece that the room allows, one per send in turn.
    fn next_piece(&mut self) -> Option<AppRequest> {
        while self.room > 0 {
            let send = self.waiting.pop_front()?;
            let Some(sending) = self.sends.get_mut(&send) else { continue };
            let Some(front) = sending.pieces.front_mut() else { continue };
            let length = self.room.min(PART_BYTES.into()).min(front.len() as u64) as usize;
            let data = front.split_to(length);
            if front.is_empty() {
                sending.pieces.pop_front();
            }
            self.room -= length as u64;
            if sending.owed == 0 && sending.pieces.is_empty() {
                // The send may last long: its empty queue frees its memory.
                sending.pieces = VecDeque::new();
            } else if !sending.pieces.is_empty() {
                self.waiting.push_back(send);
            }
            if let Some(app) = self.apps.get(&sending.client) {
                app.end.budget.add_permits(length);
            }
            return Some(AppRequest::Piece { send, data });
        }
        None
    }

    pub(crate) fn say(&mut self, client: ClientId, reply: impl Into<Message<Reply>>) {
        let Some(app) = self.apps.get_mut(&client) else { return };
        if app.replies.is_empty() {
            self.answered.push(client);
        }
        app.replies.push(reply.into());
        let waiting = app.end.waiting.fetch_add(1, Ordering::Relaxed);
        if waiting > REPLIES_MAX {
            // The application does not read its replies.
            self.leave(client);
        }
    }

    /// Hands the replies of this pass over to the applications.
    pub(crate) fn hand_over(&mut self) {
        for client in std::mem::take(&mut self.answered) {
            let Some(app) = self.apps.get_mut(&client) else { continue };
            let is_heard = app.replies.drain(..).all(|reply| app.end.replies.send(reply).is_ok());
            if !is_heard {
                self.leave(client);
            }
        }
    }

    /// Handles a request of an application; returns requests that are not about sends, registrations or deliveries.
    pub(crate) fn request(&mut self, client: ClientId, message: Message<Request>) -> Option<Request> {
        let Message { head, body } = message;
        if let Some(app) = self.apps.get(&client)
            && head.operation().weight != Weight::Payload
        {
            app.end.asked.add_permits(1);
        }
        match head {
            Request::Send { send, to, length, options } => {
                self.send(client, send, to, length, &options, body)
            }
            Request::Piece { send } => self.piece(client, send, body),
            Request::Cancel { send } => {
                if let Some(send) = self.apps.get(&client).and_then(|app| app.sends.get(&send)) {
                    self.down.push_back(AppRequest::Cancel { send: *send });
                }
            }
            Request::Register { endpoint, inline_bytes } => self.register(client, &endpoint, inline_bytes),
            Request::Unregister { endpoint } => self.unregister(client, &endpoint),
            Request::Read { delivery, offset, length } => self.read(client, delivery, offset, length),
            Request::Taken { delivery } => self.taken(client, DeliveryId(delivery)),
            other => return Some(other),
        }
        None
    }

    fn send(
        &mut self,
        client: ClientId,
        number: u64,
        to: String,
        length: u64,
        options: &MessageOptions,
        body: Bytes,
    ) {
        let Some(app) = self.apps.get_mut(&client) else { return };
        app.end.budget.add_permits(MESSAGE_BYTES);
        if app.sends.contains_key(&number) {
            app.end.budget.add_permits(body.len());
            return self.say(client, Reply::error(format!("send {number} is already open"), None));
        }
        let note_name = options.note_name && envelope::read(&body).is_some();
        let mut options = options.options();
        if let Some(source) = &mut options.source {
            *source = full_endpoint(&self.node, source);
        }
        let app = self.apps.get_mut(&client).expect("it was just found");
        self.next_send += 1;
        let send = SendId(self.next_send);
        app.sends.insert(number, send);
        let sending = PendingSend {
            client,
            number,
            source: options.source.clone().unwrap_or_else(|| self.node.clone()),
            destination: to.clone(),
            owed: length,
            pieces: VecDeque::new(),
            reports: options.report_delivery
                || options.report_reception
                || options.report_forwarding
                || options.report_deletion,
            note_name,
        };
        self.sends.insert(send, sending);
        self.down.push_back(AppRequest::Send { send, destination: to, length, options });
        if !body.is_empty() {
            self.add_piece(client, send, body);
        }
    }

    fn piece(&mut self, client: ClientId, number: u64, body: Bytes) {
        let Some(app) = self.apps.get_mut(&client) else { return };
        app.end.budget.add_permits(MESSAGE_BYTES);
        match app.sends.get(&number).copied() {
            Some(send) => self.add_piece(client, send, body),
            // The send has failed, and the application is notified of that.
            None => app.end.budget.add_permits(body.len()),
        }
    }

    fn add_piece(&mut self, client: ClientId, send: SendId, body: Bytes) {
        let sending = self.sends.get_mut(&send).expect("an application's sends are known");
        if body.len() as u64 > sending.owed {
            let number = sending.number;
            self.down.push_back(AppRequest::Cancel { send });
            let what = format!("send {number} exceeds its announced length and was cancelled");
            if let Some(app) = self.apps.get(&client) {
                app.end.budget.add_permits(body.len());
            }
            return self.say(client, Reply::error(what, None));
        }
        if body.is_empty() {
            return;
        }
        sending.owed -= body.len() as u64;
        let idle = sending.pieces.is_empty();
        sending.pieces.push_back(body);
        if idle {
            self.waiting.push_back(send);
        }
    }

    fn register(&mut self, client: ClientId, endpoint: &str, inline_bytes: u32) {
        let endpoint = full_endpoint(&self.node, endpoint);
        if endpoint.parse::<longwire_proto::bp::Eid>().map_or(true, |eid| eid.is_null()) {
            let hint = Some("an endpoint ID looks like dtn://name/inbox or ipn:3.1");
            return self.say(client, Reply::error(format!("`{endpoint}` is not a valid endpoint ID"), hint));
        }
        if self.owners.get(&endpoint).is_some_and(|owner| *owner != client) {
            let hint =
                Some("only one application at a time can receive for an endpoint; stop the other one first");
            let what = format!("another application is receiving for {endpoint}");
            return self.say(client, Reply::error(what, hint));
        }
        let Some(app) = self.apps.get_mut(&client) else { return };
        app.registered.insert(endpoint.clone(), inline_bytes);
        self.owners.insert(endpoint.clone(), client);
        self.down.push_back(AppRequest::Register { endpoint: endpoint.clone() });
        self.say(client, Reply::Registered { endpoint });
    }

    fn unregister(&mut self, client: ClientId, endpoint: &str) {
        let endpoint = full_endpoint(&self.node, endpoint);
        let Some(app) = self.apps.get_mut(&client) else { return };
        if app.registered.remove(&endpoint).is_some() {
            self.owners.remove(&endpoint);
            // Deliveries that it has not taken wait for the next registration.
            let theirs = |known: &PendingDelivery| known.client == client && known.destination == endpoint;
            for handed_back in self.remove_deliveries(theirs) {
                if let Some(app) = self.apps.get_mut(&client) {
                    app.close(&handed_back);
                }
            }
            self.down.push_back(AppRequest::Unregister { endpoint });
        }
        self.say(client, Reply::Done);
        self.say_deliveries(client);
    }

    /// Removes and returns the deliveries for which this is true.
    fn remove_deliveries(&mut self, is_meant: impl Fn(&PendingDelivery) -> bool) -> Vec<PendingDelivery> {
        let meant = self.deliveries.iter().filter(|(_, delivery)| is_meant(delivery));
        let meant: Vec<DeliveryId> = meant.map(|(id, _)| *id).collect();
        meant.iter().filter_map(|id| self.deliveries.remove(id)).collect()
    }

    fn read(&mut self, client: ClientId, delivery: u64, offset: u64, length: u32) {
        let known = self.deliveries.get(&DeliveryId(delivery)).is_some_and(|known| known.client == client);
        if !known {
            return self.say(client, Reply::error(format!("no such delivery: {delivery}"), None));
        }
        let length = length.min(PART_BYTES);
        self.down.push_back(AppRequest::Read { delivery: DeliveryId(delivery), offset, length });
    }

    fn taken(&mut self, client: ClientId, delivery: DeliveryId) {
        if self.deliveries.get(&delivery).is_some_and(|known| known.client == client) {
            self.down.push_back(AppRequest::Taken { delivery });
        }
    }

    pub(crate) fn indication(&mut self, indication: AppIndication) {
        match indication {
            AppIndication::Room(room) => self.room = room,
            AppIndication::Accepted { send, created } => self.accepted(send, created),
            AppIndication::Progress { send, up_to } => {
                let Some(sending) = self.sends.get(&send) else { return };
                let (client, send) = (sending.client, sending.number);
                let Some(app) = self.apps.get(&client) else { return };
                if app.end.waiting.load(Ordering::Relaxed) < REPLIES_BUSY {
                    self.say(client, Reply::Progress { send, up_to });
                }
            }
            AppIndication::Sent { send } => self.end_send(send, None),
            AppIndication::Failed { send, reason } => self.end_send(send, Some(reason)),
            AppIndication::Delivered { delivery, name, destination, length, signature } => {
                let signature = signature.as_deref().map(|signature| Box::new(signature.into()));
                self.delivered(delivery, name, destination, length, signature);
            }
            AppIndication::Data { delivery, offset, data } => self.data(delivery, offset, data),
            AppIndication::Gone { delivery, taken } => self.gone(delivery, taken),
            AppIndication::Report { name, status, reason, reporter, .. } => {
                self.report(name.created, status, reason, &reporter);
            }
        }
    }

    fn accepted(&mut self, send: SendId, created: CreationTimestamp) {
        let Some(sending) = self.sends.get(&send) else { return };
        let (client, send) = (sending.client, sending.number);
        let source = sending.source.clone();
        let name_may_stay = sending.note_name && self.longwire_peers.is_news(&sending.destination);
        if let Some(app) = self.apps.get_mut(&client)
            && sending.reports
        {
            app.reportable.insert(created, ReportedBundle { send, destination: sending.destination.clone() });
            if app.reportable.len() > REPORTABLE_MAX {
                app.reportable.pop_first();
            }
        }
        self.say(client, Reply::Accepted { send, source, created, name_may_stay });
    }

    fn end_send(&mut self, send: SendId, failure: Option<SendFailure>) {
        let Some(sending) = self.sends.remove(&send) else { return };
        let (client, send) = (sending.client, sending.number);
        if let Some(app) = self.apps.get_mut(&client) {
            app.sends.remove(&send);
            app.end.budget.add_permits(sending.pieces.iter().map(Bytes::len).sum());
        }
        let end = match failure.map(code_and_words) {
            None => Reply::Sent { send },
            Some((code, words)) => Reply::Failed { send, reason: words.to_owned(), code: code.to_owned() },
        };
        self.say(client, end);
    }

    /// Destination of a bundle whose reports are expected.
    pub(crate) fn destination_of(&self, created: CreationTimestamp) -> Option<&str> {
        self.apps.values().find_map(|app| Some(app.reportable.get(&created)?.destination.as_str()))
    }

    fn report(&mut self, created: CreationTimestamp, status: ReportedStatus, reason: u64, reporter: &str) {
        let status = match status {
            ReportedStatus::CustodyAccepted => "in custody",
            other => status_word(other),
        };
        let told: Vec<(ClientId, u64)> = self
            .apps
            .iter()
            .filter_map(|(id, app)| Some((*id, app.reportable.get(&created)?.send)))
            .collect();
        for (client, send) in told {
            let reply =
                Reply::Report { send, status: status.to_owned(), reason, reporter: reporter.to_owned() };
            self.say(client, reply);
        }
    }

    fn delivered(
        &mut self,
        delivery: DeliveryId,
        name: BundleName,
        destination: String,
        length: u64,
        signature: Option<Box<view::Signature>>,
    ) {
        let Some(client) = self.owners.get(&destination).copied() else { return };
        if self.deliveries.contains_key(&delivery) {
            return;
        }
        let new = PendingDelivery {
            client,
            name,
            destination,
            length,
            signature,
            inline: None,
            said: false,
            said_bytes: 0,
        };
        self.deliveries.insert(delivery, new);
        let app = self.apps.get_mut(&client).expect("owners are there");
        app.backlog.push_back(delivery);
        self.say_deliveries(client);
    }

    /// Announces waiting deliveries as far as the application's window allows.
    fn say_deliveries(&mut self, client: ClientId) {
        loop {
            let Some(app) = self.apps.get_mut(&client) else { return };
            if app.said >= WINDOW_DELIVERIES || app.said_bytes >= WINDOW_BYTES {
                return;
            }
            let Some(id) = app.backlog.pop_front() else { return };
            let Some(delivery) = self.deliveries.get_mut(&id) else { continue };
            let inline_bytes = app.registered.get(&delivery.destination).copied().unwrap_or(0);
            let inline_bytes = inline_bytes.min(PART_BYTES);
            delivery.said = true;
            app.said += 1;
            if delivery.length > 0 && delivery.length <= u64::from(inline_bytes) {
                delivery.said_bytes = delivery.length;
                app.said_bytes += delivery.length;
                delivery.inline = Some(BytesMut::new());
                let length = delivery.length as u32;
                self.down.push_back(AppRequest::Read { delivery: id, offset: 0, length });
            } else {
                let reply = delivery.reply(id);
                self.say(client, reply);
            }
        }
    }

    fn data(&mut self, id: DeliveryId, offset: u64, data: Bytes) {
        let Some(delivery) = self.deliveries.get_mut(&id) else { return };
        let client = delivery.client;
        if offset == 0 && envelope::read(&data).is_some() {
            self.longwire_peers.add(&delivery.name.source);
        }
        let Some(read) = &mut delivery.inline else {
            let head = Reply::Data { delivery: id.0, offset };
            return self.say(client, Message { head, body: data });
        };
        // An answer to a read from an application that had this delivery before may overlap what is here.
        let known = (read.len() as u64).checked_sub(offset).filter(|known| *known < data.len() as u64);
        let Some(known) = known else { return };
        let data = data.slice(known as usize..);
        let whole = read.is_empty() && data.len() as u64 == delivery.length;
        let body = if whole {
            data
        } else {
            read.reserve(delivery.length as usize - read.len());
            read.extend_from_slice(&data);
            if (read.len() as u64) < delivery.length {
                return;
            }
            core::mem::take(read).freeze()
        };
        delivery.inline = None;
        let head = delivery.reply(id);
        self.say(client, Message { head, body });
    }

    fn gone(&mut self, id: DeliveryId, taken: bool) {
        let Some(delivery) = self.deliveries.remove(&id) else { return };
        if let Some(app) = self.apps.get_mut(&delivery.client) {
            app.close(&delivery);
        }
        self.say(delivery.client, Reply::Gone { delivery: id.0, taken });
        self.say_deliveries(delivery.client);
    }
}

impl PendingDelivery {
    fn reply(&self, id: DeliveryId) -> Reply {
        Reply::Delivered {
            delivery: id.0,
            source: self.name.source.clone(),
            destination: self.destination.clone(),
            created: self.name.created,
            length: self.length,
            signature: self.signature.clone(),
        }
    }
}

/// Reason of a failed send, as an identifier and as text.
fn code_and_words(failure: SendFailure) -> (&'static str, &'static str) {
    match failure {
        SendFailure::BadEndpoint => {
            ("bad_endpoint", "the destination or source is not a valid endpoint for this node")
        }
        SendFailure::Full => ("full", "the store or its disk is full"),
        SendFailure::Expired => ("expired", "the lifetime expired before delivery"),
        SendFailure::ExpiredEncrypted => (
            "expired",
            "the lifetime expired: the bundle is encrypted, and its links are on amateur radio bands, where that is not allowed",
        ),
        SendFailure::Cancelled => ("cancelled", "cancelled"),
        SendFailure::Limit => ("limit", "the bundle exceeds a limit of this node"),
        SendFailure::Storage => ("storage", "the store failed"),
        SendFailure::Refused(RefuseReason::NotAcceptable) => {
            ("refused", "every next hop rejected the bundle as not acceptable")
        }
        SendFailure::Refused(_) => ("refused", "every next hop refused the bundle"),
        SendFailure::NotSigned => {
            ("not_signed", "the bundle must be signed, and no key of this node is valid")
        }
        SendFailure::NotEncrypted => (
            "not_encrypted",
            "the bundle must be encrypted, and no key of this node is valid, or it is of version 6 or without a source",
        ),
        SendFailure::NoCustody => {
            let words =
                "custody transfer needs a bundle of version 6 with a source and a singleton destination";
            ("no_custody", words)
        }
    }
}
