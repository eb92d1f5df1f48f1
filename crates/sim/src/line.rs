//! State of one direction of a channel. See [`crate::channel`] for its behaviour.

use crate::airtime::Airtime;
use crate::channel::{ChannelId, Counters, LineConfig};
use crate::noise::Noise;
use crate::trace::{ChannelEnd, FrameFate};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::service::Shares;
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// Frame in the queue of a line.
#[derive(Clone, Debug)]
pub(crate) struct QueuedFrame {
    pub(crate) bytes: Bytes,
    pub(crate) token: Option<u64>,
    pub(crate) shares: Shares,
    pub(crate) at: Instant,
}

/// Frame on the transmitter.
#[derive(Debug)]
struct Transmission {
    frame: QueuedFrame,
    started: Instant,
    first_slot: u64,
    /// True if an outage has destroyed the frame.
    destroyed: bool,
    /// Duration of the frame outside outages so far, nanoseconds.
    clear_nanos: u64,
}

/// Frame that has left the transmitter.
#[derive(Debug)]
pub(crate) struct TransmittedFrame {
    pub(crate) frame: QueuedFrame,
    pub(crate) started: Instant,
    pub(crate) left: Instant,
    pub(crate) damaged: Option<Bytes>,
    /// Fate of the frame if its receiver has joined.
    pub(crate) fate: FrameFate,
}

/// Result of passing a frame to the line.
#[derive(Debug)]
pub(crate) enum EnqueueOutcome {
    /// The frame waits in the queue.
    Queued,
    /// The first bit of the frame leaves now, the last one at this time.
    Starts(Instant),
    /// The frame is dropped.
    Dropped(QueuedFrame, FrameFate),
}

/// Time axis of a line in units of one bit, counted so that consecutive bits never drift.
#[derive(Debug)]
struct BitClock {
    rate_bps: u64,
    /// Beginning, first slot and number of bits of the current busy period.
    began: Instant,
    began_slot: u64,
    bits: u64,
    /// End of the current busy period.
    end: Instant,
}

const NANOS: u64 = 1_000_000_000;

impl BitClock {
    fn new(rate_bps: u64) -> Self {
        BitClock { rate_bps, began: Instant::ZERO, began_slot: 0, bits: 0, end: Instant::ZERO }
    }

    /// Sends `bits` from `now` on. Returns the first slot and the end. No slot is used twice: a busy period that begins
    /// after the end of the previous one begins in a later slot.
    fn send(&mut self, now: Instant, bits: u64) -> (u64, Instant) {
        debug_assert!(now >= self.end, "one frame at a time");
        if now > self.end || self.bits == 0 {
            let slots = u128::from(now.as_nanos()) * u128::from(self.rate_bps) / u128::from(NANOS);
            (self.began, self.began_slot, self.bits) = (now, slots as u64, 0);
        }
        let first = self.began_slot + self.bits;
        self.bits += bits;
        let nanos = match self.bits.checked_mul(NANOS) {
            Some(product) => product.div_ceil(self.rate_bps),
            None => (u128::from(self.bits) * u128::from(NANOS)).div_ceil(u128::from(self.rate_bps)) as u64,
        };
        self.end = Instant::from_nanos(self.began.as_nanos().saturating_add(nanos));
        (first, self.end)
    }
}

/// Room of a line that accepts every frame: more than can be sent between two renewals.
const BOUNDLESS: u32 = 1 << 30;

/// State of one direction of a channel.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) config: LineConfig,
    /// Channel of the line.
    pub(crate) channel: ChannelId,
    pub(crate) from: ChannelEnd,
    pub(crate) to: ChannelEnd,
    /// True if the sender has joined.
    pub(crate) joined: bool,
    /// Room last reported to the sender.
    pub(crate) told: u32,
    queue: VecDeque<QueuedFrame>,
    queued_bytes: u64,
    sending: Option<Transmission>,
    clock: BitClock,
    noise: Noise,
    cut: bool,
    scheduled_out: bool,
    turns: VecDeque<(Instant, bool)>,
    airtime: Airtime,
    /// End of the accounted airtime.
    accounted: Instant,
    /// Bytes of flags, preamble and check sequence of each frame.
    framing_bytes: u32,
    counters: Counters,
}

impl Line {
    pub(crate) fn new(
        config: LineConfig,
        channel: ChannelId,
        [from, to]: [ChannelEnd; 2],
        now: Instant,
        rng: &Rng,
    ) -> Self {
        if let Err(why) = config.validate() {
            panic!("{from:?} to {to:?}: {why}");
        }
        let mut line = Line {
            channel,
            from,
            to,
            joined: false,
            told: 0,
            queue: VecDeque::new(),
            queued_bytes: 0,
            sending: None,
            clock: BitClock::new(config.rate_bps),
            noise: Noise::of_line(&config, rng),
            cut: false,
            scheduled_out: false,
            turns: config.turns().into(),
            airtime: Airtime::default(),
            accounted: Instant::ZERO,
            framing_bytes: config.fcs.bytes() + config.framing_bytes,
            counters: Counters::default(),
            config,
        };
        while line.turns.front().is_some_and(|turn| turn.0 <= now) {
            line.scheduled_out = line.turns.pop_front().is_some_and(|turn| !turn.1);
        }
        line
    }

    /// Returns the time of the next scheduled change.
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        self.turns.front().map(|turn| turn.0)
    }

    /// Applies a scheduled change.
    pub(crate) fn turn(&mut self, now: Instant) {
        let (at, up) = self.turns.pop_front().expect("a turn falls due once");
        assert_eq!(at, now, "turns fall due in order");
        self.account(now);
        self.scheduled_out = !up;
        self.destroy(now);
    }

    pub(crate) fn set_cut(&mut self, now: Instant, cut: bool) {
        self.account(now);
        self.cut = cut;
        self.destroy(now);
    }

    /// True during an outage.
    pub(crate) fn is_out(&self) -> bool {
        self.cut || self.scheduled_out
    }

    /// True unless an outage has been reported to the sender.
    pub(crate) fn carrier(&self) -> bool {
        !(self.config.announced && self.is_out())
    }

    /// Destroys the frame on the transmitter in an outage, unless its last bit leaves at this moment.
    fn destroy(&mut self, now: Instant) {
        if self.is_out()
            && let Some(sending) = &mut self.sending
            && self.clock.end > now
        {
            sending.destroyed = true;
        }
    }

    /// Returns the number of frames that the sender may send.
    pub(crate) fn room(&self) -> u32 {
        if !self.joined || !self.carrier() {
            return 0;
        }
        if !self.config.backpressure {
            // Renewed when half of it is used.
            return if self.told > BOUNDLESS / 2 { self.told } else { BOUNDLESS };
        }
        let free = self.config.queue_bytes - self.queued_bytes;
        let waiting = (free / u64::from(self.config.mtu_bytes)).min(u64::from(BOUNDLESS)) as u32;
        waiting + u32::from(self.sending.is_none() && self.queue.is_empty())
    }

    /// Accepts a frame from the sender.
    ///
    /// # Panics
    /// Panics if the sender had no room for it, or if its shares exceed its length.
    pub(crate) fn hand(&mut self, now: Instant, frame: QueuedFrame) -> EnqueueOutcome {
        assert!(self.told > 0, "{:?} was sent a frame without room", self.from);
        assert!(
            frame.shares.spoken_for() <= frame.bytes.len() as u64,
            "the shares exceed the frame: {frame:?}"
        );
        self.told -= 1;
        self.counters.hand();
        let length = frame.bytes.len() as u64;
        if length > u64::from(self.config.mtu_bytes) {
            return EnqueueOutcome::Dropped(frame, FrameFate::TooLong);
        }
        if self.sending.is_none() && self.carrier() {
            debug_assert!(self.queue.is_empty(), "an idle transmitter leaves nothing waiting");
            return EnqueueOutcome::Starts(self.start(now, frame));
        }
        if self.queued_bytes + length > self.config.queue_bytes {
            return EnqueueOutcome::Dropped(frame, FrameFate::QueueFull);
        }
        self.queued_bytes += length;
        self.queue.push_back(frame);
        EnqueueOutcome::Queued
    }

    fn start(&mut self, now: Instant, frame: QueuedFrame) -> Instant {
        self.account(now);
        let bits = 8 * (frame.bytes.len() as u64 + u64::from(self.framing_bytes));
        let (first_slot, end) = self.clock.send(now, bits);
        self.sending =
            Some(Transmission { frame, started: now, first_slot, destroyed: self.is_out(), clear_nanos: 0 });
        end
    }

    /// Starts the next waiting frame if the transmitter is free. Returns the time at which its last bit leaves.
    pub(crate) fn start_next(&mut self, now: Instant) -> Option<Instant> {
        if self.sending.is_some() || !self.carrier() {
            return None;
        }
        let frame = self.queue.pop_front()?;
        self.queued_bytes -= frame.bytes.len() as u64;
        Some(self.start(now, frame))
    }

    /// Ends the transmission of the frame on the transmitter.
    pub(crate) fn leave(&mut self, now: Instant) -> TransmittedFrame {
        self.account(now);
        let sending = self.sending.take().expect("a frame leaves that was being sent");
        debug_assert_eq!(self.clock.end, now, "it leaves when it should");
        let frame = sending.frame;
        let length = frame.bytes.len() as u32;
        self.airtime.add_frame(sending.clear_nanos, length, self.framing_bytes, &frame.shares);
        let (fate, damaged) = if sending.destroyed {
            (FrameFate::Outage, None)
        } else {
            self.damage(sending.first_slot, &frame.bytes)
        };
        TransmittedFrame { frame, started: sending.started, left: now, damaged, fate }
    }

    /// Flips the bits hit by noise.
    fn damage(&mut self, first_slot: u64, bytes: &Bytes) -> (FrameFate, Option<Bytes>) {
        let first = first_slot + 8 * u64::from(self.config.framing_bytes);
        let end = first + 8 * (bytes.len() as u64 + u64::from(self.config.fcs.bytes()));
        let Some(mut slot) = self.noise.find(first, end) else {
            return (FrameFate::Delivered, None);
        };
        let mut damaged = Vec::with_capacity(bytes.len() + 4);
        damaged.extend_from_slice(bytes);
        self.config.fcs.append(&mut damaged);
        loop {
            // Lowest bit first, as in HDLC and Ethernet: the order for which their check sequences detect bursts well.
            let bit = slot - first;
            damaged[(bit / 8) as usize] ^= 1 << (bit % 8);
            match self.noise.find(slot + 1, end) {
                Some(next) => slot = next,
                None => break,
            }
        }
        let good = self.config.fcs.strip(&mut damaged);
        let fate = match (self.config.fcs.bytes(), good) {
            (0, _) | (_, true) => FrameFate::Damaged,
            (_, false) => FrameFate::CheckFailed,
        };
        (fate, Some(damaged.into()))
    }

    /// Drops the waiting frames of a crashed sender. The transmitter finishes the current frame.
    pub(crate) fn abandon(&mut self) -> Vec<QueuedFrame> {
        self.joined = false;
        self.told = 0;
        self.queued_bytes = 0;
        if let Some(sending) = &mut self.sending {
            sending.frame.token = None;
        }
        self.queue.drain(..).collect()
    }

    /// Adds the time since the last call to the account.
    fn account(&mut self, now: Instant) {
        let nanos = now.as_nanos() - self.accounted.as_nanos();
        self.accounted = now;
        if self.is_out() {
            self.airtime.outage += nanos;
        } else if let Some(sending) = &mut self.sending {
            sending.clear_nanos += nanos;
        } else {
            self.airtime.idle += nanos;
        }
    }

    /// Returns the use of the time up to `now`.
    pub(crate) fn airtime(&self, now: Instant) -> Airtime {
        let mut airtime = self.airtime;
        let nanos = now.as_nanos() - self.accounted.as_nanos();
        let mut clear_nanos = 0;
        match &self.sending {
            _ if self.is_out() => airtime.outage += nanos,
            Some(_) => clear_nanos = nanos,
            None => airtime.idle += nanos,
        }
        if let Some(sending) = &self.sending {
            let (length, shares) = (sending.frame.bytes.len() as u32, &sending.frame.shares);
            airtime.add_frame(sending.clear_nanos + clear_nanos, length, self.framing_bytes, shares);
        }
        assert_eq!(airtime.total(), now.as_nanos(), "the airtime sums to the time elapsed");
        airtime
    }

    /// Counts a frame with a known fate.
    pub(crate) fn count(&mut self, fate: FrameFate) {
        self.counters.count(fate);
    }

    /// Returns the counters of the frames.
    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the frames and bytes waiting, and whether a frame is being sent.
    pub(crate) fn backlog(&self) -> (usize, u64, bool) {
        (self.queue.len(), self.queued_bytes, self.sending.is_some())
    }
}
