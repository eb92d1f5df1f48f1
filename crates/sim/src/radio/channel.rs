//! State of a radio channel: keyed stations, reception, and overlapping signals.

use super::config::RadioConfig;
use super::path::HearingPath;
use super::station::{Deferral, SimStation, StationState, Transmission};
use crate::airtime::Airtime;
use crate::channel::{ChannelId, Counters, Direction};
use crate::line::QueuedFrame;
use crate::queue::{EventQueue, SimEvent};
use crate::trace::{ChannelEnd, FrameFate, FrameRecord, FrameSink};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::service::FramesIndication;
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// Timer of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StationTimer {
    pub(crate) radio: u32,
    station_number: u16,
    timer: Timer,
    epoch: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Timer of the transmitter or of the channel access.
    Proceed,
    /// Timer of the carrier detection.
    Sense,
}

/// Event of a station. The simulation processes these one by one, and runs the node of the station after each.
#[derive(Debug)]
pub(crate) struct StationEvent {
    pub(crate) station_number: u16,
    pub(crate) what: StationEventKind,
}

/// Kind of a [`StationEvent`].
#[derive(Debug)]
pub(crate) enum StationEventKind {
    /// The room of the station may have changed.
    Room,
    /// Indication of the channel.
    Frames(FramesIndication),
    /// The user of the station has had its opportunity to send; the transmitter continues.
    GoOn,
}

/// Context of a channel in the simulation.
pub(crate) struct ChannelContext<'a> {
    pub(crate) now: Instant,
    pub(crate) queue: &'a mut EventQueue,
    pub(crate) trace: &'a mut Option<FrameSink>,
}

/// Radio channel shared by several stations.
#[derive(Debug)]
pub(crate) struct SharedChannel {
    pub(crate) channel: ChannelId,
    index: u32,
    config: RadioConfig,
    stations: Vec<SimStation>,
    /// Keyed stations, ascending, and number of those that want the channel: every event needs them, and few stations of a
    /// large channel are either.
    keyed: Vec<usize>,
    accessing: usize,
    /// Paths by sender, then by receiver.
    paths: Vec<HearingPath>,
    cut: bool,
    /// Use of the time of the channel up to `accounted`.
    airtime: Airtime,
    accounted: Instant,
    pub(crate) notes: VecDeque<StationEvent>,
}

impl SharedChannel {
    /// Makes channel number `index` of its kind.
    ///
    /// # Panics
    /// Panics if the configuration is invalid.
    pub(crate) fn new(
        config: RadioConfig,
        channel: ChannelId,
        index: u32,
        ends: &[(ChannelEnd, String)],
        rng: &Rng,
    ) -> Self {
        if let Err(why) = config.validate(ends.len()) {
            panic!("radio channel {}: {why}", channel.0);
        }
        let names: Vec<String> = ends.iter().map(|(_, name)| name.clone()).collect();
        let stations = ends.iter().enumerate().map(|(at, (end, name))| {
            SimStation::new(config.station(at), *end, rng.fork(&format!("radio access of {name}")))
        });
        let (stations, paths) = (stations.collect(), HearingPath::all(&config, &names, rng));
        SharedChannel {
            channel,
            index,
            config,
            stations,
            keyed: Vec::new(),
            accessing: 0,
            paths,
            cut: false,
            airtime: Airtime::default(),
            accounted: Instant::ZERO,
            notes: VecDeque::new(),
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // Requests of users

    pub(crate) fn join(&mut self, station_number: u16) {
        self.stations[usize::from(station_number)].joined = true;
    }

    /// Requests the channel for the user.
    pub(crate) fn seize(&mut self, air: &mut ChannelContext<'_>, station_number: u16) {
        self.account(air.now);
        let at = usize::from(station_number);
        if self.config.full_duplex || !self.stations[at].joined {
            return;
        }
        self.stations[at].wants = true;
        if matches!(self.stations[at].state, StationState::Quiet) {
            self.stations[at].defers = Deferral::None;
            self.pursue(air, at);
        }
    }

    /// Accepts a frame; false if it is dropped at once.
    ///
    /// # Panics
    /// Panics if the sender had no room for it, or if its shares exceed its length.
    pub(crate) fn hand(
        &mut self,
        air: &mut ChannelContext<'_>,
        station_number: u16,
        frame: QueuedFrame,
        last: bool,
    ) -> bool {
        self.account(air.now);
        let at = usize::from(station_number);
        let station = &mut self.stations[at];
        assert!(station.told > 0, "{:?} was sent a frame without room", station.end);
        assert!(
            frame.shares.spoken_for() <= frame.bytes.len() as u64,
            "the shares exceed the frame: {frame:?}"
        );
        station.told -= 1;
        station.granted = if last { 0 } else { station.granted.saturating_sub(1) };
        for to in self.others(at) {
            self.path(at, to).counters.hand();
        }
        if frame.bytes.len() as u64 > u64::from(self.config.mtu_bytes) {
            self.drop_frame(air, at, &frame, FrameFate::TooLong);
            return false;
        }
        self.stations[at].queue.push_back(frame);
        if self.config.full_duplex {
            match self.stations[at].state {
                StationState::Quiet => self.key_up(air, at),
                // The transmitter is still keyed.
                StationState::Tail => self.start(air, at),
                _ => {}
            }
        }
        true
    }

    /// Returns the room of a station if it differs from the one last reported to its user.
    pub(crate) fn changed_room(&mut self, station_number: u16) -> Option<u32> {
        let station = &mut self.stations[usize::from(station_number)];
        let free = station.queue.is_empty() && !matches!(station.state, StationState::Sending(_));
        let room = match (station.joined, self.config.full_duplex) {
            (false, _) => 0,
            (true, true) => u32::from(free),
            (true, false) => station.granted,
        };
        (core::mem::replace(&mut station.told, room) != room).then_some(room)
    }

    /// Drops the waiting frames of a crashed sender. The transmitter finishes the current frame.
    pub(crate) fn abandon(&mut self, air: &mut ChannelContext<'_>, station_number: u16) {
        self.account(air.now);
        let at = usize::from(station_number);
        let station = &mut self.stations[at];
        (station.joined, station.told, station.granted, station.wants) = (false, 0, 0, false);
        match &mut station.state {
            StationState::Sending(sending) => sending.frame.token = None,
            StationState::Waiting | StationState::Contending => self.turn(air.now, at, StationState::Quiet),
            _ => {}
        }
        for frame in core::mem::take(&mut self.stations[at].queue) {
            self.drop_frame(air, at, &frame, FrameFate::SenderCrashed);
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // Timers

    /// Handles the expiry of a timer, unless the timer was superseded.
    pub(crate) fn due(&mut self, air: &mut ChannelContext<'_>, due: StationTimer) {
        self.account(air.now);
        let at = usize::from(due.station_number);
        let station = &mut self.stations[at];
        match due.timer {
            Timer::Sense if due.epoch == station.sense_epoch => self.sense(air, at),
            Timer::Proceed if due.epoch == station.epoch => self.proceed(air, at),
            Timer::Sense | Timer::Proceed => {}
        }
    }

    fn proceed(&mut self, air: &mut ChannelContext<'_>, at: usize) {
        let station = &mut self.stations[at];
        match station.state {
            StationState::Contending => match station.draw_persistence(air.now) {
                Some(next) => self.wake(air, at, next),
                None => self.win(air, at),
            },
            StationState::Keying => self.start(air, at),
            StationState::Sending(_) => self.leave(air, at),
            StationState::Tail => self.key_down(air, at),
            StationState::Quiet | StationState::Waiting | StationState::Won | StationState::Between => {
                unreachable!("no timer runs in {:?}", station.state)
            }
        }
    }

    /// Starts the channel access of a station that wants the channel and is not keyed.
    fn pursue(&mut self, air: &mut ChannelContext<'_>, at: usize) {
        let station = &mut self.stations[at];
        if station.busy {
            station.defers = Deferral::Busy;
            return self.turn(air.now, at, StationState::Waiting);
        }
        self.turn(air.now, at, StationState::Contending);
        let next = self.stations[at].first_draw(air.now);
        self.wake(air, at, next);
    }

    fn win(&mut self, air: &mut ChannelContext<'_>, at: usize) {
        self.turn(air.now, at, StationState::Won);
        let station = &mut self.stations[at];
        (station.wants, station.granted) = (false, station.config.key_up_frames);
        self.note(at, StationEventKind::Room);
        self.note(at, StationEventKind::GoOn);
    }

    /// Continues after the user has had its opportunity to send.
    pub(crate) fn go_on(&mut self, air: &mut ChannelContext<'_>, station_number: u16) {
        self.account(air.now);
        let at = usize::from(station_number);
        match self.stations[at].state {
            StationState::Won if self.stations[at].queue.is_empty() => self.give_back(air, at),
            StationState::Won => self.key_up(air, at),
            StationState::Between => self.start(air, at),
            _ => unreachable!("nobody waits for the user"),
        }
    }

    /// Releases the channel won by a station whose user has sent no frame.
    fn give_back(&mut self, air: &mut ChannelContext<'_>, at: usize) {
        self.stations[at].granted = 0;
        self.turn(air.now, at, StationState::Quiet);
        self.note(at, StationEventKind::Room);
        if self.stations[at].wants {
            self.pursue(air, at);
        }
    }

    fn key_up(&mut self, air: &mut ChannelContext<'_>, at: usize) {
        self.turn(air.now, at, StationState::Keying);
        let station = &mut self.stations[at];
        station.keyed_at = air.now;
        station.sense_epoch += 1;
        let first_frame = air.now + station.config.tx_delay;
        self.wake(air, at, first_frame);
        self.others(at).for_each(|hearer| self.path(at, hearer).key_up());
        for place in 0..self.keyed.len() {
            let sender = self.keyed[place];
            if sender != at && matches!(self.stations[sender].state, StationState::Sending(_)) {
                self.disturb(sender, at);
            }
        }
        self.recount(air);
    }

    /// Applies the effect of a station that keys up to the frame being transmitted by another.
    fn disturb(&mut self, sender: usize, other: usize) {
        for hearer in self.others(sender) {
            if hearer == other {
                if !self.config.full_duplex {
                    self.path(sender, hearer).destroy(FrameFate::Deaf);
                }
            } else if self.destroys(other, sender, hearer) {
                self.path(sender, hearer).destroy(FrameFate::Collided);
            }
        }
    }

    /// True if the signal of `other` destroys that of `sender` at `hearer`.
    fn destroys(&mut self, other: usize, sender: usize, hearer: usize) -> bool {
        let (heard, theirs) = (self.path(other, hearer).heard, self.path(other, hearer).level_db);
        let above = self.path(sender, hearer).level_db - theirs;
        heard && self.config.capture_db.is_none_or(|needed| above < needed)
    }

    /// True if the receiver of `hearer` follows the signal of `other`, which began before that of `sender`. It follows
    /// none of which it could read short frames at most.
    fn is_followed(&mut self, other: usize, sender: usize, hearer: usize) -> bool {
        let is_first = self.stations[other].keyed_at < self.stations[sender].keyed_at;
        let path = self.path(other, hearer);
        let is_followed = path.heard && path.frame_bytes_max.is_none();
        self.config.follows_first && is_first && is_followed
    }

    /// Transmits the next frame; without one, the transmission ends.
    fn start(&mut self, air: &mut ChannelContext<'_>, at: usize) {
        let Some(end) = self.stations[at].start(air.now, self.config.rate_bps, self.config.framing) else {
            self.turn(air.now, at, StationState::Tail);
            let station = &mut self.stations[at];
            station.granted = 0;
            let over = air.now + station.config.tx_tail;
            self.wake(air, at, over);
            return self.note(at, StationEventKind::Room);
        };
        self.wake(air, at, end);
        for hearer in self.others(at) {
            let destroyed_by = self.add_outcome(at, hearer);
            self.path(at, hearer).begin(destroyed_by);
        }
    }

    /// Returns the fate of a frame that begins now, if it is already lost.
    fn add_outcome(&mut self, sender: usize, hearer: usize) -> Option<FrameFate> {
        if self.cut {
            return Some(FrameFate::Outage);
        }
        if !self.config.full_duplex && self.stations[hearer].is_keyed() {
            return Some(FrameFate::Deaf);
        }
        let collides = (0..self.keyed.len()).any(|place| {
            let other = self.keyed[place];
            let third = other != sender && other != hearer;
            third && (self.destroys(other, sender, hearer) || self.is_followed(other, sender, hearer))
        });
        collides.then_some(FrameFate::Collided)
    }

    /// Ends the transmission of a frame, which arrives at the same time.
    fn leave(&mut self, air: &mut ChannelContext<'_>, at: usize) {
        let sending = self.stations[at].leave(air.now);
        sending.enter(sending.channel_nanos, &mut self.airtime);
        for hearer in self.others(at) {
            let listens = self.stations[hearer].joined;
            let path = self.path(at, hearer);
            let (fate, damaged) = path.end(&sending, listens);
            path.counters.count(fate);
            if matches!(fate, FrameFate::Delivered | FrameFate::Damaged) {
                let bytes = damaged.as_ref().unwrap_or(&sending.frame.bytes).clone();
                self.note(hearer, StationEventKind::Frames(FramesIndication::Frame(bytes)));
            }
            if let Some(trace) = air.trace {
                let record = self.record(at, hearer, &sending.frame, fate);
                trace(on_air(record, &sending, air.now, damaged));
            }
        }
        if let Some(token) = sending.frame.token {
            self.note(at, StationEventKind::Frames(FramesIndication::Transmitted(token)));
        }
        if self.config.full_duplex {
            self.note(at, StationEventKind::Room);
        }
        self.note(at, StationEventKind::GoOn);
    }

    fn key_down(&mut self, air: &mut ChannelContext<'_>, at: usize) {
        self.turn(air.now, at, StationState::Quiet);
        let station = &self.stations[at];
        if station.carriers > 0 && !self.config.full_duplex {
            // Carrier detection restarts after the transmission.
            let noticed = air.now + station.config.carrier_on;
            self.sense_at(air, at, noticed);
        }
        self.recount(air);
        if self.stations[at].wants {
            self.stations[at].defers = Deferral::Own;
            self.pursue(air, at);
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // Carrier detection

    /// Counts the keyed stations heard by each station, and schedules carrier detection where the result changes.
    fn recount(&mut self, air: &mut ChannelContext<'_>) {
        if self.config.full_duplex {
            return;
        }
        for at in 0..self.stations.len() {
            let is_heard =
                |other: &&usize| **other != at && self.paths[**other * self.stations.len() + at].heard;
            let carriers = if self.cut { 0 } else { self.keyed.iter().filter(is_heard).count() as u32 };
            let station = &mut self.stations[at];
            let before = core::mem::replace(&mut station.carriers, carriers);
            if (before > 0) != (carriers > 0) && !station.is_keyed() {
                let config = &station.config;
                let delay = if carriers > 0 { config.carrier_on } else { config.carrier_off };
                self.sense_at(air, at, air.now + delay);
            }
        }
    }

    /// Applies the result of the carrier detection.
    fn sense(&mut self, air: &mut ChannelContext<'_>, at: usize) {
        let station = &mut self.stations[at];
        let busy = station.carriers > 0;
        if core::mem::replace(&mut station.busy, busy) == busy {
            return;
        }
        match (&station.state, busy) {
            (StationState::Contending, true) => {
                station.defers = Deferral::Busy;
                self.turn(air.now, at, StationState::Waiting);
            }
            (StationState::Waiting, false) => self.pursue(air, at),
            _ => {}
        }
        if self.stations[at].joined {
            self.note(at, StationEventKind::Frames(FramesIndication::Busy(busy)));
        }
    }

    /// Begins or ends an outage of the channel. Frames being transmitted are lost.
    pub(crate) fn set_cut(&mut self, air: &mut ChannelContext<'_>, cut: bool) {
        self.account(air.now);
        self.cut = cut;
        for sender in 0..self.stations.len() {
            self.stations[sender].set_out(air.now, cut);
            if cut && matches!(self.stations[sender].state, StationState::Sending(_)) {
                self.others(sender).for_each(|hearer| self.path(sender, hearer).destroy(FrameFate::Outage));
            }
        }
        self.recount(air);
    }

    // -----------------------------------------------------------------------------------------------------------
    // Helpers

    /// Changes the state of a station, and the list and the number of stations that depend on it.
    fn turn(&mut self, now: Instant, at: usize, state: StationState) {
        let station = &mut self.stations[at];
        let (was_keyed, was_accessing) = (station.is_keyed(), station.is_accessing());
        station.turn(now, state);
        let (is_keyed, is_accessing) = (station.is_keyed(), station.is_accessing());
        self.accessing = self.accessing + usize::from(is_accessing) - usize::from(was_accessing);
        if is_keyed != was_keyed {
            match self.keyed.binary_search(&at) {
                Ok(place) => drop(self.keyed.remove(place)),
                Err(place) => self.keyed.insert(place, at),
            }
        }
        debug_assert!(
            (0..self.stations.len())
                .filter(|at| self.stations[*at].is_keyed())
                .eq(self.keyed.iter().copied())
        );
    }

    fn others(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.stations.len()).filter(move |other| *other != at)
    }

    fn path(&mut self, from: usize, to: usize) -> &mut HearingPath {
        &mut self.paths[from * self.stations.len() + to]
    }

    fn note(&mut self, at: usize, what: StationEventKind) {
        self.notes.push_back(StationEvent { station_number: at as u16, what });
    }

    fn wake(&self, air: &mut ChannelContext<'_>, at: usize, when: Instant) {
        let epoch = self.stations[at].epoch;
        let due = StationTimer { radio: self.index, station_number: at as u16, timer: Timer::Proceed, epoch };
        air.queue.push(when, SimEvent::Radio(due));
    }

    fn sense_at(&mut self, air: &mut ChannelContext<'_>, at: usize, when: Instant) {
        self.stations[at].sense_epoch += 1;
        let epoch = self.stations[at].sense_epoch;
        let due = StationTimer { radio: self.index, station_number: at as u16, timer: Timer::Sense, epoch };
        air.queue.push(when, SimEvent::Radio(due));
    }

    /// Drops a frame that was never transmitted.
    fn drop_frame(&mut self, air: &mut ChannelContext<'_>, at: usize, frame: &QueuedFrame, fate: FrameFate) {
        for hearer in self.others(at) {
            self.path(at, hearer).counters.count(fate);
            if let Some(trace) = air.trace {
                trace(self.record(at, hearer, frame, fate));
            }
        }
    }

    fn record(&self, from: usize, to: usize, frame: &QueuedFrame, fate: FrameFate) -> FrameRecord {
        FrameRecord {
            channel: self.channel,
            direction: Direction::Forward,
            from: self.stations[from].end,
            to: self.stations[to].end,
            handed: frame.at,
            started: None,
            left: None,
            received: None,
            bytes: frame.bytes.clone(),
            damaged: None,
            shares: frame.shares,
            fate,
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // Queries

    /// Returns the end that a station belongs to.
    pub(crate) fn end(&self, station_number: u16) -> ChannelEnd {
        self.stations[usize::from(station_number)].end
    }

    /// Returns the number of the station at this end.
    ///
    /// # Panics
    /// Panics if there is none.
    pub(crate) fn position(&self, end: ChannelEnd) -> usize {
        let found = self.stations.iter().position(|station| station.end == end);
        found.unwrap_or_else(|| panic!("{end:?} is not on radio channel {}", self.channel.0))
    }

    /// Returns the use of the time of a station.
    pub(crate) fn airtime(&self, end: ChannelEnd, now: Instant) -> Airtime {
        self.stations[self.position(end)].airtime(now)
    }

    /// Returns the use of the time of the channel: time in which any station sends, counted once if several do; then
    /// keying, then waiting.
    pub(crate) fn channel_airtime(&self, now: Instant) -> Airtime {
        let mut airtime = self.airtime;
        let nanos = now.as_nanos() - self.accounted.as_nanos();
        let on_air = self.spend(nanos, &mut airtime);
        for (at, station) in self.stations.iter().enumerate() {
            if let StationState::Sending(sending) = &station.state {
                let more = if on_air == Some(at) { nanos } else { 0 };
                sending.enter(sending.channel_nanos + more, &mut airtime);
            }
        }
        assert_eq!(airtime.total(), now.as_nanos(), "the airtime sums to the time elapsed");
        airtime
    }

    /// Adds the time since the last call to the account. The states have not changed since.
    fn account(&mut self, now: Instant) {
        let nanos = now.as_nanos() - self.accounted.as_nanos();
        let mut airtime = self.airtime;
        if let Some(at) = self.spend(nanos, &mut airtime)
            && let StationState::Sending(sending) = &mut self.stations[at].state
        {
            sending.channel_nanos += nanos;
        }
        (self.airtime, self.accounted) = (airtime, now);
    }

    /// Accounts time without a frame; otherwise returns the station whose frame took it.
    fn spend(&self, nanos: u64, airtime: &mut Airtime) -> Option<usize> {
        if self.cut {
            airtime.outage += nanos;
            return None;
        }
        let sends = |at: &usize| matches!(self.stations[*at].state, StationState::Sending(_));
        let sender = self.keyed.iter().copied().find(sends);
        match sender {
            Some(_) => {}
            None if !self.keyed.is_empty() => airtime.keying += nanos,
            None if self.accessing > 0 => airtime.access += nanos,
            None => airtime.idle += nanos,
        }
        sender
    }

    /// Returns the counters of the frames of one station at another.
    pub(crate) fn counters(&self, from: ChannelEnd, to: ChannelEnd) -> Counters {
        self.paths[self.position(from) * self.stations.len() + self.position(to)].counters
    }

    /// Returns one line about each station.
    pub(crate) fn status(&self, name: impl Fn(ChannelEnd) -> String) -> String {
        let out = if self.cut { "out" } else { "there" };
        let line = |station: &SimStation| {
            let state = match station.state {
                StationState::Sending(_) => "sending".to_owned(),
                ref other => format!("{other:?}").to_lowercase(),
            };
            let (name, joined) = (name(station.end), if station.joined { "" } else { " (not joined)" });
            let (room, waiting) = (station.told, station.queue.len());
            format!(
                "  radio {}, {out}: {name}{joined}, {state}, room {room}, {waiting} frames waiting\n",
                self.channel.0
            )
        };
        self.stations.iter().map(line).collect()
    }
}

/// Makes the record of a frame that was transmitted.
fn on_air(record: FrameRecord, sending: &Transmission, now: Instant, damaged: Option<Bytes>) -> FrameRecord {
    let arrived = matches!(record.fate, FrameFate::Delivered | FrameFate::Damaged | FrameFate::CheckFailed);
    let received = arrived.then_some(now);
    FrameRecord { started: Some(sending.started), left: Some(now), received, damaged, ..record }
}
