//! Remote sender, as a receiver knows it (RFC 5740 5.2).

mod requesting;
mod streams;

use super::config::{Config, Counters};
use super::congestion::{CongestionControl, Monitor, Probe};
use super::incoming::{Added, Incoming, Progress};
use super::quantities;
use super::repair::Request;
use super::sender::ACK_REFUSED;
use super::wire::{
    Ack, AckContents, Body, CcFeedback, Command, Data, FecScheme, Flags, Fti, Info, Nack, NodeId, PayloadId,
    SenderFields, Timestamp,
};
use crate::fec::VandermondeCode;
use crate::rng::Rng;
use crate::service::{ObjectKind, ObjectsIndication, RefuseReason};
use crate::time::{Duration, Instant, Timers};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number that the first object heard of has, apart from its lower bits.
const BASE_NUMBER: u64 = 1 << 32;
/// Number of objects before the latest one that can be under way.
const WINDOW: u64 = 255;
/// Minimum time without messages after which requests are sent without an occasion (RFC 5740 5.3).
const INACTIVITY_MIN: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
enum Timer {
    /// The random delay before a NACK ends.
    Backoff,
    /// Another NACK may be sent.
    Holdoff,
    /// The sender was silent.
    Inactivity,
    /// The random delay before an acknowledgement ends.
    Ack,
    /// The random delay before an answer to a probe ends.
    Probe,
}

/// Point that the sender has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    object: u64,
    /// Block that is being sent; the greatest number at the end of the object.
    block: u32,
    /// Number of symbols of the block of a stream of which the sender has asked whether they have arrived.
    symbols: u16,
}

/// Point up to which the sender requests an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Watermark {
    number: u64,
    scheme: FecScheme,
    object: u16,
    id: PayloadId,
    /// Number of the block.
    block: u32,
    /// Number of bytes of a stream that had risen when the point had.
    risen: Option<u64>,
}

/// Arrival of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) sequence: u16,
    pub(super) bytes: usize,
}

/// State that all senders of a session share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) now: Instant,
    pub(super) config: &'a Config,
    pub(super) counters: &'a mut Counters,
    pub(super) rng: &'a mut Rng,
    pub(super) up: &'a mut VecDeque<ObjectsIndication>,
    /// Provider's number of the next object.
    pub(super) next_number: &'a mut u64,
    /// Memory of incomplete blocks, bytes.
    pub(super) held: &'a mut u64,
    /// Bytes that the user has yet to accept.
    pub(super) unaccepted: &'a mut u64,
    /// Code of the last sizes, which most objects have in common.
    pub(super) code: &'a mut Option<VandermondeCode>,
    /// Streams are received.
    pub(super) has_streams: bool,
    pub(super) own: NodeId,
    /// Maximum length of the contents of an answer, bytes; zero if none fits into a datagram.
    pub(super) payload_bytes_max: usize,
    /// The session has a group: answers are spread over time.
    pub(super) is_group: bool,
}

/// Answers that are due.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    nack: bool,
    ack: bool,
    probe: bool,
}

/// Remote sender.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) node: NodeId,
    instance: u16,
    grtt: Duration,
    backoff_factor: u8,
    group_size: u64,
    objects: BTreeMap<u64, Incoming>,
    /// Objects after `first` that are accepted, or cancelled by the sender.
    done: BTreeSet<u64>,
    /// Objects that this side does not receive, and does not acknowledge.
    ignored: BTreeSet<u64>,
    /// First object that is wanted: all before it are done, or were not wanted.
    first: u64,
    /// The sender repairs nothing before `first`, or this side wants nothing before it.
    is_first_known: bool,
    /// Latest object heard of; `None` before the first.
    highest: Option<u64>,
    position: Position,
    /// An occasion for a NACK has come during the hold-off.
    is_wanted: bool,
    /// Blocks and objects that this side has requested, and when; only of a sender with one receiver.
    requested: BTreeMap<(u64, u32), Instant>,
    /// Requests of other receivers, and blocks and objects that they lack as a whole.
    others: BTreeMap<(u64, u32), Request>,
    other_objects: BTreeSet<u64>,
    /// Last probe, and when it arrived.
    probe: Option<(Timestamp, Instant)>,
    /// State for congestion control.
    monitor: Monitor,
    /// Time before which this receiver gives no feedback unless the sender wants that of this one.
    quiet_until: Instant,
    watermark: Option<Watermark>,
    timers: Timers<5>,
    due: Due,
    pub(super) heard_at: Instant,
    inactivities: u32,
}

/// Number of octets of the contents of a refusal: the object, and the reason.
fn refusal(object: u64, reason: u8) -> Bytes {
    let [high, low] = (object as u16).to_be_bytes();
    Bytes::copy_from_slice(&[high, low, reason])
}

impl Source {
    pub(super) fn new(
        arrival: Arrival,
        node: NodeId,
        fields: &SenderFields,
        config: &Config,
        is_group: bool,
    ) -> Self {
        let mut source = Source {
            node,
            instance: fields.instance,
            grtt: Duration::ZERO,
            backoff_factor: 0,
            group_size: 0,
            objects: BTreeMap::new(),
            done: BTreeSet::new(),
            ignored: BTreeSet::new(),
            first: BASE_NUMBER,
            is_first_known: true,
            highest: None,
            position: Position { object: 0, block: 0, symbols: 0 },
            is_wanted: false,
            requested: BTreeMap::new(),
            others: BTreeMap::new(),
            other_objects: BTreeSet::new(),
            probe: None,
            monitor: Monitor::new(config.congestion_control == CongestionControl::TfmccLossTolerant),
            quiet_until: Instant::ZERO,
            watermark: None,
            timers: Timers::new(),
            due: Due::default(),
            heard_at: arrival.at,
            inactivities: 0,
        };
        source.note(arrival, fields, config, is_group);
        source
    }

    /// Run of the sender.
    pub(super) fn instance(&self) -> u16 {
        self.instance
    }

    /// Notes a message of the sender. The only receiver has nobody's requests to wait for, whatever factor the sender states: NRL's
    /// implementation states that of groups, and waits for no others itself.
    pub(super) fn note(&mut self, arrival: Arrival, fields: &SenderFields, config: &Config, is_group: bool) {
        self.grtt = quantities::time_of(fields.grtt).min(config.grtt_max);
        self.backoff_factor = if is_group { fields.backoff } else { 0 };
        self.group_size = quantities::group_size_of(fields.group_size);
        self.monitor.arrive(arrival.at, arrival.sequence, arrival.bytes, self.grtt);
        self.heard_at = arrival.at;
        self.inactivities = 0;
    }

    /// Sets the timer for the silence of the sender, if anything is wanted of it.
    fn set_inactivity(&mut self, now: Instant, config: &Config) {
        let after = (self.grtt * (2 * config.robust_factor)).max(INACTIVITY_MIN);
        if self.objects.is_empty() {
            self.timers.stop(Timer::Inactivity as usize);
        } else {
            self.timers.set(Timer::Inactivity as usize, now + after);
        }
    }

    /// Returns the number of an object, which becomes the latest one if it is a later one. `None` for one that is not wanted.
    fn number_of(&mut self, object: u16, shared: &mut Shared<'_>) -> Option<u64> {
        let Some(highest) = self.highest else {
            let number = BASE_NUMBER + u64::from(object);
            self.highest = Some(number);
            (self.first, self.is_first_known) =
                if shared.config.earlier_objects { (number - WINDOW, false) } else { (number, true) };
            return Some(number);
        };
        let number = self.extend(object)?;
        if number > highest {
            self.highest = Some(number);
            if number > self.first + WINDOW {
                self.skip(number - WINDOW, shared);
                // What was skipped may still be due.
                self.is_first_known = false;
            }
        }
        (number >= self.first).then_some(number)
    }

    /// Returns the number of an object near the latest one.
    fn extend(&self, object: u16) -> Option<u64> {
        let highest = self.highest?;
        let distance = object.wrapping_sub(highest as u16) as i16;
        highest.checked_add_signed(distance.into())
    }

    /// Gives up all objects before `first`.
    fn skip(&mut self, first: u64, shared: &mut Shared<'_>) {
        while let Some((number, _)) = self.objects.first_key_value().filter(|(number, _)| **number < first) {
            self.lose(*number, shared);
        }
        self.done.retain(|number| *number >= first);
        self.ignored.retain(|number| *number >= first);
        self.first = self.first.max(first);
        self.advance_first();
    }

    fn advance_first(&mut self) {
        while self.done.remove(&self.first) {
            self.first += 1;
        }
    }

    /// Forgets an object that ends before it is accepted.
    fn lose(&mut self, number: u64, shared: &mut Shared<'_>) {
        let Some(incoming) = self.objects.remove(&number) else { return };
        *shared.held -= incoming.held;
        if !matches!(incoming.progress, Progress::Refused(_)) {
            *shared.unaccepted -= incoming.risen - incoming.accepted;
            shared.counters.objects_lost += 1;
            if incoming.progress == Progress::Receiving {
                shared.up.push_back(ObjectsIndication::Lost { incoming: incoming.number });
            }
        }
    }

    /// Ends all objects, as the sender has restarted, ended or was silent for too long.
    pub(super) fn end(&mut self, shared: &mut Shared<'_>) {
        while let Some((number, _)) = self.objects.first_key_value() {
            self.lose(*number, shared);
        }
        self.timers.stop_all();
        self.due = Due::default();
    }

    /// Number of objects that are being received.
    pub(super) fn objects(&self) -> usize {
        self.objects.len()
    }

    // -- Objects ------------------------------------------------------------------------------------------------

    /// Begins an object unless it is known, or not received; false if there is none.
    fn begin(
        &mut self,
        number: u64,
        flags: Flags,
        scheme: FecScheme,
        fti: Option<Fti>,
        shared: &mut Shared<'_>,
    ) -> bool {
        if self.objects.contains_key(&number) {
            return true;
        }
        if self.done.contains(&number) || self.ignored.contains(&number) {
            return false;
        }
        // Without sizes, its symbols count as lost; a later message has them.
        let Some(fti) = fti else { return false };
        let symbols = u32::from(fti.block_symbols) + u32::from(fti.parity_symbols);
        // The length of a stream is that of a buffer elsewhere.
        let is_stream = flags.has(Flags::STREAM);
        let fits = (1..=255).contains(&symbols)
            && fti.block_symbols > 0
            && if is_stream {
                shared.has_streams
            } else {
                fti.object_bytes <= shared.config.object_bytes_max
            };
        let code = fits.then(|| shared.code(fti)).flatten();
        let incoming = code.and_then(|code| Incoming::new(flags, scheme, fti, code, *shared.next_number));
        let Some(incoming) = incoming else {
            shared.counters.objects_ignored += 1;
            self.ignored.insert(number);
            return false;
        };
        let kind = match () {
            () if is_stream => ObjectKind::Stream,
            () if flags.has(Flags::FILE) => ObjectKind::File,
            () => ObjectKind::Data,
        };
        *shared.next_number += 1;
        shared.up.push_back(ObjectsIndication::Begin {
            incoming: incoming.number,
            sender: self.node.0,
            kind,
            info: None,
            length: (!is_stream).then_some(fti.object_bytes),
        });
        self.objects.insert(number, incoming);
        true
    }

    pub(super) fn handle_info(&mut self, now: Instant, info: &Info, shared: &mut Shared<'_>) {
        let Some(number) = self.number_of(info.object, shared) else { return };
        if self.begin(number, info.flags, info.scheme, info.fti, shared) {
            let incoming = self.objects.get_mut(&number).expect("it has begun");
            if incoming.info.is_none() {
                incoming.info = Some(Bytes::copy_from_slice(&info.payload));
                let info = incoming.info.clone().expect("it was set");
                shared.up.push_back(ObjectsIndication::Info { incoming: incoming.number, info });
                self.finish(number, shared);
            }
        }
        self.reach(now, Position { object: number, block: 0, symbols: 0 }, shared);
        self.set_inactivity(now, shared.config);
    }

    pub(super) fn handle_data(&mut self, now: Instant, data: &Data, shared: &mut Shared<'_>) {
        let Some(number) = self.number_of(data.object, shared) else {
            shared.counters.duplicates += 1;
            return;
        };
        let mut id = data.id;
        if self.begin(number, data.flags, data.scheme, data.fti, shared) {
            let Some(block) = self.block_of(number, id, shared) else {
                shared.counters.violations += 1;
                return;
            };
            id.block = block;
            self.symbol(number, id, &data.payload, shared);
        } else if self.done.contains(&number) {
            shared.counters.duplicates += 1;
        }
        self.reach(now, Position { object: number, block: id.block, symbols: 0 }, shared);
        self.set_inactivity(now, shared.config);
    }

    fn symbol(&mut self, number: u64, id: PayloadId, payload: &Bytes, shared: &mut Shared<'_>) {
        let incoming = self.objects.get(&number).expect("it has begun");
        if incoming.progress != Progress::Receiving {
            shared.counters.duplicates += 1;
            return;
        }
        if *shared.unaccepted >= shared.config.unaccepted_bytes_max {
            shared.counters.dropped += 1;
            return;
        }
        let is_new = id.block < incoming.partition.blocks()
            && !incoming.blocks.contains_key(&id.block)
            && !incoming.has_block(id.block);
        if is_new && !self.make_room(number, id.block, shared) {
            shared.counters.dropped += 1;
            return;
        }
        let incoming = self.objects.get_mut(&number).expect("it has begun");
        let before = incoming.held;
        let added = incoming.add(id.block, id.symbol, payload);
        *shared.held = *shared.held + incoming.held - before;
        match added {
            Added::Invalid => shared.counters.violations += 1,
            Added::Duplicate => shared.counters.duplicates += 1,
            Added::Kept => {
                shared.counters.symbols_received += 1;
                self.rise_stream(number, shared);
            }
            Added::Completes(restored) => {
                shared.counters.symbols_received += 1;
                shared.counters.symbols_restored += u64::from(restored);
                self.rise(number, shared);
                self.rise_stream(number, shared);
            }
        }
    }

    /// Makes room for the first symbol of a block: blocks that come later make way.
    fn make_room(&mut self, number: u64, block: u32, shared: &mut Shared<'_>) -> bool {
        let needed = self.objects[&number].block_memory(block);
        let max = shared.config.incoming_bytes_max;
        // The next block of the oldest object has room in any case, so that it ends.
        let is_next = self.objects[&number].next_block == block
            && self
                .objects
                .iter()
                .find(|(_, other)| other.progress == Progress::Receiving)
                .map(|(first, _)| *first)
                == Some(number);
        while *shared.held + needed > max {
            let last =
                self.objects.range_mut(number..).rev().find(|(_, incoming)| !incoming.blocks.is_empty());
            let Some((_, incoming)) = last.filter(|(last, _)| is_next || **last > number) else {
                return is_next;
            };
            let freed = incoming.drop_last_block();
            *shared.held -= freed;
            if freed == 0 {
                return is_next;
            }
        }
        true
    }

    /// Indicates the blocks that are complete.
    fn rise(&mut self, number: u64, shared: &mut Shared<'_>) {
        let incoming = self.objects.get_mut(&number).expect("it has begun");
        if incoming.stream.is_some() {
            return;
        }
        let before = incoming.held;
        let mut is_complete = false;
        while let Some((data, last)) = incoming.pop_block() {
            shared.counters.payload_received += data.len() as u64;
            *shared.unaccepted += data.len() as u64;
            is_complete = last;
            shared.up.push_back(ObjectsIndication::Piece { incoming: incoming.number, data, last });
        }
        *shared.held = *shared.held + incoming.held - before;
        if is_complete {
            incoming.progress = Progress::Complete;
            self.finish(number, shared);
        }
    }

    /// Ends an object that is complete and accepted, with its description.
    fn finish(&mut self, number: u64, shared: &mut Shared<'_>) {
        let incoming = &self.objects[&number];
        let has_info = incoming.info.is_some() || !incoming.flags.has(Flags::INFO);
        if incoming.progress == Progress::Complete && incoming.accepted == incoming.risen && has_info {
            shared.counters.objects_received += 1;
            self.objects.remove(&number);
            self.done.insert(number);
            self.advance_first();
            self.acknowledge_if_through(shared);
        }
    }

    /// Notes that the user has stored a part of an object; false if it is not one of this sender.
    pub(super) fn accept(&mut self, incoming: u64, up_to: u64, shared: &mut Shared<'_>) -> bool {
        let Some((number, object)) = self.objects.iter_mut().find(|(_, object)| object.number == incoming)
        else {
            return false;
        };
        if !matches!(object.progress, Progress::Refused(_)) {
            let accepted = up_to.min(object.risen).max(object.accepted);
            *shared.unaccepted -= accepted - object.accepted;
            object.accepted = accepted;
            let (number, is_stream) = (*number, object.stream.is_some());
            self.finish(number, shared);
            if is_stream {
                self.acknowledge_if_through(shared);
            }
        }
        true
    }

    /// Notes that the user refuses an object; false if it is not one of this sender. A user that has the object already, or will
    /// never take it from a group, has nothing else to receive.
    pub(super) fn refuse(&mut self, incoming: u64, reason: RefuseReason, shared: &mut Shared<'_>) -> bool {
        let found = self.objects.iter_mut().find(|(_, object)| object.number == incoming);
        let Some((number, object)) = found else { return false };
        let number = *number;
        *shared.unaccepted -= object.risen - object.accepted;
        *shared.held -= object.held;
        object.clear();
        object.accepted = object.risen;
        object.progress = Progress::Refused(reason.code());
        if reason == RefuseReason::Completed || (shared.is_group && reason == RefuseReason::NotAcceptable) {
            self.objects.remove(&number);
            self.done.insert(number);
            self.advance_first();
            self.acknowledge_if_through(shared);
        } else {
            shared.counters.objects_refused += 1;
            // The sender learns it without a question, too.
            self.due.ack |= !shared.is_group && !shared.is_silent();
        }
        true
    }

    // -- Commands -----------------------------------------------------------------------------------------------

    pub(super) fn handle_command(&mut self, now: Instant, command: &Command, shared: &mut Shared<'_>) {
        match command {
            Command::Flush { scheme, object, id, acking_nodes } => {
                let number = self.number_of(*object, shared).or_else(|| self.extend(*object));
                let Some(number) = number else { return };
                let position = self.flushed(number, *id, shared);
                if acking_nodes.contains(&shared.own) {
                    self.set_watermark(number, *scheme, *object, *id, position.block);
                    self.acknowledge_if_through(shared);
                }
                self.reach(now, position, shared);
                self.occasion(now, shared);
                self.set_inactivity(now, shared.config);
            }
            Command::Squelch { object, id, invalid_objects, .. } => {
                self.squelch(*object, invalid_objects, shared);
                self.squelch_stream(*object, id.block, shared);
            }
            Command::Cc { cc_sequence, send_time, rate, nodes } => {
                self.probe = Some((*send_time, now));
                let probe = Probe { sequence: *cc_sequence, sent: *send_time, nodes };
                self.monitor.probe(now, shared.own, &probe);
                if rate.is_some() && !shared.is_silent() {
                    self.answer_probe(now, shared);
                }
            }
            Command::RepairAdv { requests, cc, .. } => {
                self.hear_requests(requests);
                self.hear_feedback(cc.as_ref());
            }
            Command::Eot => self.end(shared),
            Command::AckReq { .. } | Command::Application(_) | Command::Unknown(_) => {}
        }
    }

    /// Notes what the sender can still repair.
    fn squelch(&mut self, object: u16, invalid: &[u16], shared: &mut Shared<'_>) {
        if self.highest.is_none() {
            let _ = self.number_of(object, shared);
        }
        let Some((first, highest)) = self.extend(object).zip(self.highest) else { return };
        if first > self.first {
            self.skip(first, shared);
        } else if !self.is_first_known {
            // What was given up can still be repaired.
            self.first = first.max((highest + 1).saturating_sub(WINDOW)).min(self.first);
        }
        self.is_first_known = true;
        for object in invalid {
            let number = self.extend(*object).filter(|number| (self.first..=highest).contains(number));
            if let Some(number) = number {
                self.lose(number, shared);
                self.ignored.remove(&number);
                self.done.insert(number);
            }
        }
        self.advance_first();
        self.acknowledge_if_through(shared);
    }

    fn answer_probe(&mut self, now: Instant, shared: &mut Shared<'_>) {
        let is_urgent = !shared.is_group || self.monitor.is_marked();
        if !is_urgent && now < self.quiet_until {
            return;
        }
        let wait = if is_urgent { Duration::ZERO } else { self.random_backoff(shared.rng) };
        if wait.is_zero() {
            self.due.probe = true;
        } else if self.timers.get(Timer::Probe as usize).is_none() {
            self.timers.set(Timer::Probe as usize, now + wait);
        }
    }

    /// Notes the feedback of another receiver, which may make that of this one superfluous.
    pub(super) fn hear_feedback(&mut self, other: Option<&CcFeedback>) {
        if let Some(at) = self.timers.get(Timer::Probe as usize)
            && other.is_some_and(|other| self.monitor.is_suppressed_by(other))
        {
            self.timers.stop(Timer::Probe as usize);
            self.quiet_until = at + self.grtt * u32::from(self.backoff_factor);
        }
    }

    /// Makes the acknowledgement due that the sender has requested, if everything up to it is accepted.
    fn acknowledge_if_through(&mut self, shared: &mut Shared<'_>) {
        let Some(watermark) = self.watermark else { return };
        let is_refused = |incoming: &Incoming| matches!(incoming.progress, Progress::Refused(_));
        let is_through = self.is_through();
        let has_refused =
            !shared.is_group && self.objects.range(..=watermark.number).any(|(_, object)| is_refused(object));
        if !(is_through || has_refused) || shared.is_silent() {
            return;
        }
        // The answers of a group are spread over a round trip (RFC 5740 5.5.3).
        if !shared.is_group {
            self.due.ack = true;
        } else if self.timers.get(Timer::Ack as usize).is_none() {
            let wait = self.grtt.mul_f64(shared.rng.unit());
            self.timers.set(Timer::Ack as usize, shared.now + wait);
        }
    }

    // -- Timers and messages ------------------------------------------------------------------------------------

    /// Handles the timers that have expired; false if the sender is to be forgotten.
    pub(super) fn handle_timeout(&mut self, now: Instant, shared: &mut Shared<'_>) -> bool {
        if self.timers.expire(Timer::Backoff as usize, now) {
            if self.is_suppressed(now) {
                shared.counters.nacks_suppressed += 1;
                self.hold_off(now);
            } else {
                self.due.nack = true;
            }
        }
        if self.timers.expire(Timer::Holdoff as usize, now) && (self.is_wanted || self.backoff_factor == 0) {
            self.occasion(now, shared);
        }
        self.due.ack |= self.timers.expire(Timer::Ack as usize, now);
        self.due.probe |= self.timers.expire(Timer::Probe as usize, now);
        if self.timers.expire(Timer::Inactivity as usize, now) {
            if now >= self.heard_at + shared.config.inactivity_limit {
                return false;
            }
            self.inactivities += 1;
            let after = (self.grtt * (2 * shared.config.robust_factor)).max(INACTIVITY_MIN);
            if self.inactivities <= shared.config.robust_factor {
                // All that the sender can have sent is wanted.
                self.position.block = u32::MAX;
                self.occasion(now, shared);
                self.timers.set(Timer::Inactivity as usize, now + after);
            } else {
                self.timers.set(Timer::Inactivity as usize, self.heard_at + shared.config.inactivity_limit);
            }
        }
        true
    }

    /// Ends what is incomplete, as the session is closed. What is complete is remembered: the sender may not know it.
    pub(super) fn suspend(&mut self, shared: &mut Shared<'_>) {
        self.pause();
        let is_incomplete = |incoming: &Incoming| incoming.progress == Progress::Receiving;
        let incomplete = self.objects.iter().filter(|(_, incoming)| is_incomplete(incoming));
        for number in incomplete.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.lose(number, shared);
        }
    }

    /// Stops all timers, as nothing can leave.
    pub(super) fn pause(&mut self) {
        self.timers.stop_all();
        self.due = Due::default();
    }

    /// Continues after a pause: all that is missing is requested.
    pub(super) fn resume(&mut self, now: Instant, shared: &mut Shared<'_>) {
        self.heard_at = now;
        self.occasion(now, shared);
        self.set_inactivity(now, shared.config);
    }

    /// Time of the next timer.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn hold_off(&mut self, now: Instant) {
        if self.backoff_factor > 0 || self.timers.get(Timer::Holdoff as usize).is_none() {
            self.timers.set(Timer::Holdoff as usize, now + self.holdoff());
        }
    }

    /// Returns true if an answer is due.
    pub(super) fn has_answer(&self) -> bool {
        self.due.nack || self.due.ack || self.due.probe
    }

    /// Returns the next answer to the sender.
    pub(super) fn next_answer(&mut self, now: Instant, shared: &mut Shared<'_>) -> Option<Body> {
        if core::mem::take(&mut self.due.ack)
            && let Some(contents) = self.acknowledgement(shared)
        {
            shared.counters.acks_sent += 1;
            return Some(self.ack(now, contents));
        }
        if core::mem::take(&mut self.due.nack) {
            let requests = self.requests(now, shared.payload_bytes_max);
            self.hold_off(now);
            if !requests.is_empty() {
                shared.counters.nacks_sent += 1;
                // A NACK answers a probe, too.
                self.due.probe = false;
                self.timers.stop(Timer::Probe as usize);
                let (sender, instance, grtt_response) = (self.node, self.instance, self.response(now));
                let cc = self.feedback(now);
                return Some(Nack { sender, instance, grtt_response, cc, requests }.into());
            }
        }
        if core::mem::take(&mut self.due.probe) {
            shared.counters.acks_sent += 1;
            return Some(self.ack(now, AckContents::Cc));
        }
        None
    }

    /// Returns the acknowledgement of the watermark, or the refusal of an object before it.
    fn acknowledgement(&mut self, shared: &Shared<'_>) -> Option<AckContents> {
        let refused = self.objects.iter().find_map(|(number, object)| match object.progress {
            Progress::Refused(reason) if !shared.is_group => Some((*number, reason)),
            _ => None,
        });
        if let Some((number, reason)) = refused {
            return Some(AckContents::Other { ack_type: ACK_REFUSED, contents: refusal(number, reason) });
        }
        let Watermark { scheme, object, id, .. } = self.watermark?;
        self.is_through().then_some(AckContents::Flush { scheme, object, id })
    }

    fn ack(&mut self, now: Instant, contents: AckContents) -> Body {
        let (sender, instance, grtt_response) = (self.node, self.instance, self.response(now));
        Ack { sender, instance, id: 0, grtt_response, cc: self.feedback(now), contents }.into()
    }

    /// Returns the feedback for congestion control; `None` before the first probe. Then the next one has time.
    fn feedback(&mut self, now: Instant) -> Option<CcFeedback> {
        self.probe?;
        self.quiet_until = now + self.grtt * u32::from(self.backoff_factor);
        Some(self.monitor.feedback())
    }

    /// Returns the time of the last probe, plus the time since it arrived.
    fn response(&self, now: Instant) -> Timestamp {
        self.probe.map_or(Timestamp::default(), |(sent, at)| {
            let held = u64::try_from(now.saturating_since(at).as_micros()).unwrap_or(u64::MAX);
            Timestamp::from_micros(sent.as_micros().saturating_add(held))
        })
    }
}

impl Shared<'_> {
    /// Returns true if this side does not answer.
    pub(super) fn is_silent(&self) -> bool {
        self.config.silent || self.payload_bytes_max == 0
    }

    /// Returns the code of these sizes; `None` if there is none.
    fn code(&mut self, fti: Fti) -> Option<VandermondeCode> {
        let sizes = (u32::from(fti.block_symbols), u32::from(fti.parity_symbols));
        let known = self.code.as_ref().filter(|code| (code.source_symbols(), code.parity_symbols()) == sizes);
        if known.is_none() {
            *self.code = Some(VandermondeCode::new(sizes.0, sizes.1).ok()?);
        }
        self.code.clone()
    }
}
