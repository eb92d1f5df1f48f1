//! The rules of each service, as accounts that follow its messages.

use super::{CheckedService, ContractBreach};
use crate::service::{
    App, AppIndication, AppRequest, Both, Bundles, BundlesIndication, BundlesRequest, DeliveryId, Frames,
    FramesIndication, FramesRequest, Many, Port, RecordId, SendId, Storage, StorageIndication,
    StorageRequest, Stream, StreamIndication, StreamRequest, TransferId,
};
use core::fmt::{self, Debug};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Returns a breach with this message unless the condition holds.
pub(super) fn rule(holds: bool, message: fmt::Arguments<'_>) -> Result<(), ContractBreach> {
    if holds { Ok(()) } else { Err(ContractBreach(message.to_string())) }
}

/// Room, in the unit of the service.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room(pub(super) u64);

impl Room {
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), ContractBreach> {
        rule(cost <= self.0, format_args!("it spends {cost} of a room of {}", self.0))?;
        self.0 -= cost;
        Ok(())
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Frames

/// The account of [`Frames`].
#[derive(Debug, Default)]
pub struct FramesAccount {
    joined: bool,
    room: Room,
    tokens: BTreeMap<u64, u32>,
}

impl CheckedService for Frames {
    type Account = FramesAccount;

    fn request(account: &mut FramesAccount, request: &FramesRequest) -> Result<(), ContractBreach> {
        match request {
            FramesRequest::Join => account.joined = true,
            FramesRequest::Seize => rule(account.joined, format_args!("the channel seized before Join"))?,
            FramesRequest::Frame { token, .. } => {
                rule(account.joined, format_args!("a frame before Join"))?;
                account.room.spend(1)?;
                if let Some(token) = token {
                    *account.tokens.entry(*token).or_default() += 1;
                }
            }
        }
        Ok(())
    }

    fn indication(account: &mut FramesAccount, indication: &FramesIndication) -> Result<(), ContractBreach> {
        match indication {
            FramesIndication::Room(room) => {
                rule(account.joined || *room == 0, format_args!("room before Join"))?;
                account.room = Room((*room).into());
            }
            FramesIndication::Frame(_) => rule(account.joined, format_args!("a frame came before Join"))?,
            FramesIndication::Transmitted(token) => {
                let left = account.tokens.get_mut(token);
                rule(left.is_some(), format_args!("transmitted a frame that it does not have"))?;
                let left = left.expect("checked above");
                *left -= 1;
                if *left == 0 {
                    account.tokens.remove(token);
                }
            }
            FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
        }
        Ok(())
    }

    fn owed(account: &FramesAccount) -> Vec<String> {
        account.tokens.keys().map(|token| format!("Transmitted({token})")).collect()
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Stream

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StreamState {
    /// No connection yet, or closed.
    #[default]
    None,
    Connecting,
    Connected,
}

/// The account of [`Stream`] for the present or the last connection.
#[derive(Debug, Default)]
pub struct StreamAccount {
    state: StreamState,
    room: Room,
    risen: u64,
    released: u64,
    securing: bool,
    /// True after the user has closed its sending direction.
    closing: bool,
    aborted: bool,
    /// True after the peer has closed its sending direction.
    peer_closed: bool,
}

impl CheckedService for Stream {
    type Account = StreamAccount;

    fn request(account: &mut StreamAccount, request: &StreamRequest) -> Result<(), ContractBreach> {
        let connected = account.state == StreamState::Connected;
        match request {
            StreamRequest::Connect => {
                rule(
                    account.state == StreamState::None,
                    format_args!("Connect before the connection has Closed"),
                )?;
                *account = StreamAccount { state: StreamState::Connecting, ..Default::default() };
            }
            StreamRequest::Secure { .. } => {
                rule(connected, format_args!("Secure without a connection"))?;
                rule(!account.securing, format_args!("Secure while the last one is not answered"))?;
                account.securing = true;
            }
            StreamRequest::Write(bytes) => {
                rule(connected, format_args!("Write without a connection"))?;
                rule(!account.closing && !account.aborted, format_args!("Write after Close or Abort"))?;
                account.room.spend(bytes.len() as u64)?;
            }
            StreamRequest::Release(bytes) if connected => {
                account.released += bytes;
                let (released, risen) = (account.released, account.risen);
                rule(
                    released <= risen,
                    format_args!("released {released} bytes, but only {risen} have risen"),
                )?;
            }
            StreamRequest::Close => account.closing = true,
            StreamRequest::Abort => account.aborted = true,
            // Concerns a connection that has closed since: harmless.
            StreamRequest::Release(_) => {}
        }
        Ok(())
    }

    fn indication(account: &mut StreamAccount, indication: &StreamIndication) -> Result<(), ContractBreach> {
        let connected = account.state == StreamState::Connected;
        match indication {
            StreamIndication::Connected => {
                rule(!connected, format_args!("Connected twice"))?;
                let aborted = account.state == StreamState::Connecting && account.aborted;
                let closing = account.state == StreamState::Connecting && account.closing;
                *account =
                    StreamAccount { state: StreamState::Connected, aborted, closing, ..Default::default() };
            }
            StreamIndication::Secured { .. } => {
                rule(account.securing, format_args!("Secured without Secure"))?;
                account.securing = false;
            }
            StreamIndication::Room(room) => {
                rule(connected || *room == 0, format_args!("room without a connection"))?;
                account.room = Room(*room);
            }
            StreamIndication::Data(bytes) => {
                rule(connected, format_args!("data without a connection"))?;
                rule(!account.peer_closed, format_args!("data after PeerClosed"))?;
                rule(!bytes.is_empty(), format_args!("data without a byte"))?;
                account.risen += bytes.len() as u64;
            }
            StreamIndication::PeerClosed => {
                rule(connected, format_args!("PeerClosed without a connection"))?;
                rule(!account.peer_closed, format_args!("PeerClosed twice"))?;
                account.peer_closed = true;
            }
            StreamIndication::Closed(_) => {
                rule(account.state != StreamState::None, format_args!("Closed without a connection"))?;
                *account = StreamAccount::default();
            }
        }
        Ok(())
    }

    fn owed(account: &StreamAccount) -> Vec<String> {
        let finished = account.aborted || (account.closing && account.peer_closed);
        let mut owed = Vec::new();
        if account.state == StreamState::Connecting {
            owed.push("Connected or Closed".to_owned());
        } else if account.state == StreamState::Connected && finished {
            owed.push("Closed".to_owned());
        }
        owed
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Storage

/// A record from its first append to its removal.
#[derive(Debug, Default)]
struct LifeAccount {
    /// Length after all appends so far; `None` for a record of an earlier run that was not listed.
    appended: Option<u64>,
    stored: u64,
    /// Lengths after the appends that are unanswered, as far as known.
    unstored: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct RecordAccount {
    /// The life of the record that the next answer concerns.
    life: LifeAccount,
    /// Lives after removals that are unanswered.
    later: VecDeque<LifeAccount>,
    /// Unanswered reads in the order of the requests: offset and length.
    reads: Vec<(u64, u32)>,
}

/// The account of [`Storage`].
#[derive(Debug, Default)]
pub struct StorageAccount {
    records: BTreeMap<RecordId, RecordAccount>,
    listing: u32,
    listed: bool,
}

impl StorageAccount {
    fn record(&mut self, record: RecordId) -> &mut RecordAccount {
        let life = LifeAccount { appended: self.listed.then_some(0), ..Default::default() };
        self.records.entry(record).or_insert_with(|| RecordAccount { life, ..Default::default() })
    }
}

impl CheckedService for Storage {
    type Account = StorageAccount;

    fn request(account: &mut StorageAccount, request: &StorageRequest) -> Result<(), ContractBreach> {
        match request {
            StorageRequest::Append { record, data } => {
                let entry = account.record(*record);
                let life = entry.later.back_mut().unwrap_or(&mut entry.life);
                if let Some(appended) = &mut life.appended {
                    *appended += data.len() as u64;
                    life.unstored.insert(*appended);
                }
            }
            StorageRequest::Read { record, offset, length } => {
                account.record(*record).reads.push((*offset, *length));
            }
            StorageRequest::Remove { record } => {
                let fresh = LifeAccount { appended: Some(0), ..Default::default() };
                account.record(*record).later.push_back(fresh);
            }
            StorageRequest::List => account.listing += 1,
        }
        Ok(())
    }

    fn indication(
        account: &mut StorageAccount,
        indication: &StorageIndication,
    ) -> Result<(), ContractBreach> {
        match indication {
            StorageIndication::Stored { record, up_to } => {
                let entry = &mut account.record(*record).life;
                rule(*up_to >= entry.stored, format_args!("stored {up_to} bytes after {}", entry.stored))?;
                if let Some(appended) = entry.appended {
                    rule(*up_to <= appended, format_args!("stored {up_to} bytes of {appended}"))?;
                }
                entry.stored = *up_to;
                entry.unstored = entry.unstored.split_off(&(up_to + 1));
            }
            StorageIndication::Data { record, offset, data } => {
                let entry = account.record(*record);
                let read = entry.reads.iter().position(|(at, _)| at == offset);
                rule(read.is_some(), format_args!("data without a read"))?;
                let (_, length) = entry.reads.remove(read.expect("checked above"));
                rule(
                    data.len() as u64 <= length.into(),
                    format_args!("{} bytes where {length} were asked for", data.len()),
                )?;
            }
            StorageIndication::Removed { record } => {
                let entry = account.record(*record);
                let next = entry.later.pop_front();
                rule(next.is_some(), format_args!("Removed without Remove"))?;
                entry.life = next.expect("checked above");
            }
            StorageIndication::Full { record } => {
                account.record(*record).life.unstored.clear();
            }
            StorageIndication::Failed { record, .. } => {
                let entry = account.record(*record);
                if entry.reads.is_empty() {
                    entry.life.unstored.clear();
                } else {
                    entry.reads.remove(0);
                }
            }
            StorageIndication::Listed { records } => {
                rule(account.listing > 0, format_args!("Listed without List"))?;
                rule(records.is_sorted_by_key(|&(record, _)| record), format_args!("a list out of order"))?;
                account.listing -= 1;
                if !core::mem::replace(&mut account.listed, true) {
                    for &(record, length) in records {
                        let entry = &mut account.records.entry(record).or_default().life;
                        entry.stored = entry.stored.max(length);
                        if entry.unstored.is_empty() && entry.appended.is_none() {
                            entry.appended = Some(length);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn owed(account: &StorageAccount) -> Vec<String> {
        let mut owed = Vec::new();
        for (record, entry) in &account.records {
            if let Some(up_to) = entry.life.unstored.last() {
                owed.push(format!("Stored {up_to} of {record:?}"));
            }
            if let Some((offset, _)) = entry.reads.first() {
                owed.push(format!("Data from {offset} of {record:?}"));
            }
            if !entry.later.is_empty() {
                owed.push(format!("Removed of {record:?}"));
            }
        }
        if account.listing > 0 {
            owed.push("Listed".to_owned());
        }
        owed
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Bundles

#[derive(Debug)]
struct OutgoingAccount {
    length: u64,
    sent: u64,
    acked: u64,
    last: bool,
    cancelled: bool,
}

#[derive(Debug)]
struct IncomingAccount {
    length: Option<u64>,
    risen: u64,
    accepted: u64,
    last: bool,
}

/// The account of [`Bundles`] on one link.
#[derive(Debug, Default)]
pub struct BundlesAccount {
    up: bool,
    interleave: bool,
    /// True after `Close` while the link is up.
    closing: bool,
    room: Room,
    outgoing: BTreeMap<TransferId, OutgoingAccount>,
    /// The outgoing transfer that occupies the line if transfers may not alternate.
    busy: Option<TransferId>,
    used: BTreeSet<TransferId>,
    incoming: BTreeMap<TransferId, IncomingAccount>,
    /// Incoming transfers of this session that are over.
    over: BTreeSet<TransferId>,
}

impl BundlesAccount {
    fn outgoing(&mut self, transfer: TransferId) -> Result<&mut OutgoingAccount, ContractBreach> {
        let known = self.used.contains(&transfer);
        self.outgoing.get_mut(&transfer).ok_or_else(|| {
            ContractBreach(format!("{transfer:?} {}", if known { "has ended" } else { "was never opened" }))
        })
    }

    fn end_outgoing(&mut self, transfer: TransferId) {
        self.outgoing.remove(&transfer);
        if self.busy == Some(transfer) {
            self.busy = None;
        }
    }

    fn end_incoming(&mut self, transfer: TransferId) {
        self.incoming.remove(&transfer);
        self.over.insert(transfer);
    }

    fn user_piece(&mut self, transfer: TransferId, bytes: u64, last: bool) -> Result<(), ContractBreach> {
        self.room.spend(bytes)?;
        if let Some(busy) = self.busy
            && !self.interleave
        {
            rule(busy == transfer, format_args!("a piece while {busy:?} has the line"))?;
        }
        let entry = self.outgoing(transfer)?;
        rule(!entry.cancelled, format_args!("a piece after Cancel"))?;
        rule(!entry.last, format_args!("a piece after the last"))?;
        rule(bytes > 0 || entry.length == 0, format_args!("a piece without a byte"))?;
        entry.sent += bytes;
        entry.last = last;
        let (sent, length) = (entry.sent, entry.length);
        rule(sent <= length, format_args!("{sent} bytes of a bundle of {length}"))?;
        rule(last == (sent == length), format_args!("last is {last} after {sent} bytes of {length}"))?;
        self.busy = (!last).then_some(transfer);
        Ok(())
    }

    fn provider_piece(&mut self, transfer: TransferId, bytes: u64, last: bool) -> Result<(), ContractBreach> {
        let over = self.over.contains(&transfer);
        let Some(entry) = self.incoming.get_mut(&transfer) else {
            return Err(ContractBreach(format!(
                "a piece of what {}",
                if over { "is over" } else { "has not begun" }
            )));
        };
        rule(!entry.last, format_args!("a piece after the last"))?;
        rule(bytes > 0 || last, format_args!("a piece without a byte"))?;
        entry.risen += bytes;
        entry.last = last;
        let risen = entry.risen;
        if let Some(length) = entry.length {
            rule(risen <= length, format_args!("{risen} bytes of a bundle of {length} have risen"))?;
            rule(!last || risen == length, format_args!("the last piece at {risen} of {length} bytes"))?;
        }
        Ok(())
    }
}

impl CheckedService for Bundles {
    type Account = BundlesAccount;

    fn request(account: &mut BundlesAccount, request: &BundlesRequest) -> Result<(), ContractBreach> {
        match request {
            BundlesRequest::Connect => account.closing = false,
            BundlesRequest::Open { transfer, length, .. } => {
                rule(account.up, format_args!("Open while the link is not up"))?;
                rule(account.used.insert(*transfer), format_args!("{transfer:?} is used twice"))?;
                let fresh =
                    OutgoingAccount { length: *length, sent: 0, acked: 0, last: false, cancelled: false };
                account.outgoing.insert(*transfer, fresh);
            }
            BundlesRequest::Piece { transfer, data, last } => {
                account.user_piece(*transfer, data.len() as u64, *last)?;
            }
            BundlesRequest::Cancel { transfer } => {
                account.outgoing(*transfer)?.cancelled = true;
                if account.busy == Some(*transfer) {
                    account.busy = None;
                }
            }
            BundlesRequest::Accept { transfer, up_to } => {
                let Some(entry) = account.incoming.get_mut(transfer) else {
                    // Stored too late: the transfer has broken off before.
                    return Ok(());
                };
                rule(
                    *up_to <= entry.risen,
                    format_args!("accepts {up_to} bytes, but {} have risen", entry.risen),
                )?;
                rule(
                    *up_to >= entry.accepted,
                    format_args!("accepts {up_to} bytes after {}", entry.accepted),
                )?;
                entry.accepted = *up_to;
                if entry.last && entry.accepted == entry.risen {
                    account.end_incoming(*transfer);
                }
            }
            BundlesRequest::Refuse { transfer, .. } => account.end_incoming(*transfer),
            BundlesRequest::Close => account.closing = account.up,
        }
        Ok(())
    }

    fn indication(
        account: &mut BundlesAccount,
        indication: &BundlesIndication,
    ) -> Result<(), ContractBreach> {
        match indication {
            BundlesIndication::Up { interleave, .. } => {
                rule(!account.up, format_args!("Up twice"))?;
                account.up = true;
                account.interleave = *interleave;
                account.over.clear();
            }
            BundlesIndication::Peer { .. } => {
                rule(account.up, format_args!("Peer while the link is not up"))?;
            }
            BundlesIndication::Down { .. } => {
                let open: Vec<_> = account.outgoing.keys().collect();
                rule(open.is_empty(), format_args!("Down without a terminal indication for {open:?}"))?;
                let broken: Vec<_> = account.incoming.iter().filter(|(_, entry)| !entry.last).collect();
                rule(broken.is_empty(), format_args!("Down without Lost for {broken:?}"))?;
                account.up = false;
                account.closing = false;
                account.room = Room(0);
                account.busy = None;
                account.incoming.clear();
            }
            BundlesIndication::Room(room) => {
                rule(account.up || *room == 0, format_args!("room while the link is not up"))?;
                account.room = Room(*room);
            }
            BundlesIndication::Begin { transfer, length } => {
                rule(account.up, format_args!("Begin while the link is not up"))?;
                let new = !account.over.contains(transfer) && !account.incoming.contains_key(transfer);
                rule(new, format_args!("{transfer:?} begins twice"))?;
                let fresh = IncomingAccount { length: *length, risen: 0, accepted: 0, last: false };
                account.incoming.insert(*transfer, fresh);
            }
            BundlesIndication::Piece { transfer, data, last } => {
                account.provider_piece(*transfer, data.len() as u64, *last)?;
            }
            BundlesIndication::Acked { transfer, up_to } => {
                let entry = account.outgoing(*transfer)?;
                rule(
                    *up_to <= entry.sent,
                    format_args!("{up_to} bytes acknowledged of {} sent", entry.sent),
                )?;
                rule(
                    *up_to >= entry.acked,
                    format_args!("{up_to} bytes acknowledged after {}", entry.acked),
                )?;
                entry.acked = *up_to;
            }
            BundlesIndication::Sent { transfer } => {
                let entry = account.outgoing(*transfer)?;
                rule(entry.last, format_args!("Sent after {} of {} bytes", entry.sent, entry.length))?;
                account.end_outgoing(*transfer);
            }
            BundlesIndication::Failed { transfer, acked, .. } => {
                let entry = account.outgoing(*transfer)?;
                rule(
                    *acked <= entry.sent,
                    format_args!("{acked} bytes acknowledged of {} sent", entry.sent),
                )?;
                rule(
                    *acked >= entry.acked,
                    format_args!("{acked} bytes acknowledged after {}", entry.acked),
                )?;
                account.end_outgoing(*transfer);
            }
            BundlesIndication::Lost { transfer } => {
                rule(
                    account.incoming.contains_key(transfer),
                    format_args!("Lost without an incoming transfer"),
                )?;
                account.end_incoming(*transfer);
            }
        }
        Ok(())
    }

    fn owed(account: &BundlesAccount) -> Vec<String> {
        let mut owed: Vec<_> = account
            .outgoing
            .iter()
            .filter(|(_, entry)| entry.last || entry.cancelled)
            .map(|(transfer, _)| format!("the end of {transfer:?}"))
            .collect();
        if account.closing {
            owed.push("Down".to_owned());
        }
        owed
    }
}

// ---------------------------------------------------------------------------------------------------------------
// App

#[derive(Debug)]
struct SendAccount {
    length: u64,
    handed: u64,
    accepted: bool,
    cancelled: bool,
}

#[derive(Debug, Default)]
struct DeliveryAccount {
    length: u64,
    taken: bool,
    gone: bool,
    /// Reads that are not fully answered: present offset and end.
    reads: Vec<(u64, u64)>,
}

/// The account of [`App`].
#[derive(Debug, Default)]
pub struct AppAccount {
    room: Room,
    sends: BTreeMap<SendId, SendAccount>,
    used: BTreeSet<SendId>,
    deliveries: BTreeMap<DeliveryId, DeliveryAccount>,
}

impl AppAccount {
    fn send(&mut self, send: SendId) -> Result<&mut SendAccount, ContractBreach> {
        let known = self.used.contains(&send);
        self.sends.get_mut(&send).ok_or_else(|| {
            ContractBreach(format!("{send:?} {}", if known { "has ended" } else { "was never opened" }))
        })
    }

    fn delivery(&mut self, delivery: DeliveryId) -> Result<&mut DeliveryAccount, ContractBreach> {
        match self.deliveries.get_mut(&delivery) {
            None => Err(ContractBreach(format!("{delivery:?} was never delivered"))),
            Some(entry) if entry.gone => Err(ContractBreach(format!("{delivery:?} is gone"))),
            Some(entry) => Ok(entry),
        }
    }
}

impl CheckedService for App {
    type Account = AppAccount;

    fn request(account: &mut AppAccount, request: &AppRequest) -> Result<(), ContractBreach> {
        match request {
            AppRequest::Send { send, length, .. } => {
                rule(account.used.insert(*send), format_args!("{send:?} is used twice"))?;
                let fresh = SendAccount { length: *length, handed: 0, accepted: false, cancelled: false };
                account.sends.insert(*send, fresh);
            }
            AppRequest::Piece { send, data } => {
                account.room.spend(data.len() as u64)?;
                let entry = account.send(*send)?;
                rule(!entry.cancelled, format_args!("a piece after Cancel"))?;
                entry.handed += data.len() as u64;
                rule(
                    entry.handed <= entry.length,
                    format_args!("{} bytes of {}", entry.handed, entry.length),
                )?;
            }
            AppRequest::Cancel { send } => account.send(*send)?.cancelled = true,
            AppRequest::Read { delivery, offset, length } => {
                let entry = account.delivery(*delivery)?;
                let end = entry.length.min(offset + u64::from(*length));
                if *offset < end {
                    entry.reads.push((*offset, end));
                }
            }
            AppRequest::Taken { delivery } => account.delivery(*delivery)?.taken = true,
            AppRequest::Register { .. }
            | AppRequest::Unregister { .. }
            | AppRequest::SetClock { .. }
            | AppRequest::TrustClock
            | AppRequest::SetRoute { .. }
            | AppRequest::RemoveRoute { .. }
            | AppRequest::Delete { .. }
            | AppRequest::OpenLink { .. }
            | AppRequest::CloseLink { .. }
            | AppRequest::Watch { .. }
            | AppRequest::SetContacts { .. } => {}
        }
        Ok(())
    }

    fn indication(account: &mut AppAccount, indication: &AppIndication) -> Result<(), ContractBreach> {
        match indication {
            AppIndication::Room(room) => account.room = Room(*room),
            AppIndication::Accepted { send, .. } => {
                let entry = account.send(*send)?;
                rule(!entry.accepted, format_args!("Accepted twice"))?;
                let (handed, length) = (entry.handed, entry.length);
                rule(handed == length, format_args!("Accepted after {handed} of {length} bytes"))?;
                entry.accepted = true;
            }
            AppIndication::Progress { send, up_to } => {
                let entry = account.send(*send)?;
                rule(entry.accepted, format_args!("Progress before Accepted"))?;
                rule(*up_to <= entry.length, format_args!("Progress of {up_to} bytes of {}", entry.length))?;
            }
            AppIndication::Sent { send } => {
                let entry = account.send(*send)?;
                rule(entry.accepted, format_args!("Sent before Accepted"))?;
                account.sends.remove(send);
            }
            AppIndication::Failed { send, .. } => {
                account.send(*send)?;
                account.sends.remove(send);
            }
            AppIndication::Delivered { delivery, length, .. } => {
                let entry = account.deliveries.entry(*delivery).or_default();
                rule(!entry.taken && !entry.gone, format_args!("Delivered after it was taken or is gone"))?;
                entry.length = *length;
            }
            AppIndication::Data { delivery, offset, data } => {
                let entry = account.delivery(*delivery)?;
                // A read may be answered in pieces.
                let read = entry.reads.iter().position(|(at, _)| at == offset);
                rule(read.is_some(), format_args!("data without a read"))?;
                let read = read.expect("checked above");
                let (at, end) = &mut entry.reads[read];
                *at += data.len() as u64;
                rule(*at <= *end, format_args!("data up to {at} where {end} was asked for"))?;
                rule(!data.is_empty(), format_args!("data without a byte"))?;
                if at == end {
                    entry.reads.remove(read);
                }
            }
            AppIndication::Gone { delivery, taken } => {
                let entry = account.delivery(*delivery)?;
                rule(!taken || entry.taken, format_args!("Gone as taken without Taken"))?;
                entry.gone = true;
                entry.reads.clear();
            }
            AppIndication::Report { .. }
            | AppIndication::Bundle { .. }
            | AppIndication::Refused { .. }
            | AppIndication::ClockJumped { .. }
            | AppIndication::Link { .. } => {}
        }
        Ok(())
    }

    fn owed(account: &AppAccount) -> Vec<String> {
        let sends = account.sends.iter().filter(|(_, entry)| entry.cancelled || entry.handed == entry.length);
        let mut owed: Vec<_> = sends.map(|(send, _)| format!("the end of {send:?}")).collect();
        for (delivery, entry) in &account.deliveries {
            if entry.taken && !entry.gone {
                owed.push(format!("Gone of {delivery:?}"));
            } else if !entry.reads.is_empty() {
                owed.push(format!("Data of {delivery:?}"));
            }
        }
        owed
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Many and Both

impl<Id: Copy + Ord + Debug, S: CheckedService> CheckedService for Many<Id, S> {
    type Account = BTreeMap<Id, S::Account>;

    fn request(account: &mut Self::Account, (id, request): &Self::Request) -> Result<(), ContractBreach> {
        S::request(account.entry(*id).or_default(), request)
    }

    fn indication(
        account: &mut Self::Account,
        (id, indication): &Self::Indication,
    ) -> Result<(), ContractBreach> {
        S::indication(account.entry(*id).or_default(), indication)
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        account
            .iter()
            .flat_map(|(id, one)| S::owed(one).into_iter().map(move |what| format!("{what} on {id:?}")))
            .collect()
    }
}

impl<A: CheckedService, B: CheckedService> CheckedService for Both<A, B> {
    type Account = (A::Account, B::Account);

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        match request {
            Port::First(request) => A::request(&mut account.0, request),
            Port::Second(request) => B::request(&mut account.1, request),
        }
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        match indication {
            Port::First(indication) => A::indication(&mut account.0, indication),
            Port::Second(indication) => B::indication(&mut account.1, indication),
        }
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        [A::owed(&account.0), B::owed(&account.1)].concat()
    }
}
