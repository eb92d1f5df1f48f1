//! One station of a radio channel: what it waits for, what it sends, and where its time goes.

use super::config::{Access, StationConfig};
use crate::airtime::{Airtime, scale};
use crate::line::QueuedFrame;
use crate::trace::ChannelEnd;
use longwire_proto::ax25::hdlc;
use longwire_proto::rng::Rng;
use longwire_proto::time::{Duration, Instant};
use std::collections::VecDeque;

const NANOS: u64 = 1_000_000_000;
/// Flag and check sequence of a frame, bytes.
const AROUND_BYTES: u32 = 3;

/// The frame on the air.
#[derive(Debug)]
pub(super) struct Transmission {
    pub(super) frame: QueuedFrame,
    pub(super) started: Instant,
    /// The bit of the time axis in which its first bit goes.
    pub(super) first_slot: u64,
    /// Nanoseconds of it in which there was a channel, so far.
    clear_nanos: u64,
    /// The same for the account of the channel, which counts overlapping frames once.
    pub(super) channel_nanos: u64,
}

impl Transmission {
    /// Enters so many nanoseconds of it.
    pub(super) fn enter(&self, nanos: u64, airtime: &mut Airtime) {
        let QueuedFrame { bytes, shares, .. } = &self.frame;
        let (bits, length) = (hdlc::air_bits(bytes), bytes.len() as u32);
        let stuffed = bits - 8 * (bytes.len() + hdlc::CHECK_BYTES) as u64;
        let stuffing = scale(nanos, stuffed, bits + hdlc::FLAG_BITS);
        airtime.stuffing += stuffing;
        airtime.add_frame(nanos - stuffing, length, AROUND_BYTES, shares);
    }
}

/// What a station is about.
#[derive(Debug)]
pub(super) enum StationState {
    /// It wants nothing.
    Quiet,
    /// It wants the channel, which others have.
    Waiting,
    /// It wants the channel, which is clear, and will act when its timer is over.
    Contending,
    /// The channel is its own, and its user is being asked for frames.
    Won,
    /// Keyed, and TXDELAY runs.
    Keying,
    /// A frame is on the air.
    Sending(Transmission),
    /// A frame has ended, and its user may have another.
    Between,
    /// Keyed, and TXTAIL runs.
    Tail,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct SimStation {
    pub(super) config: StationConfig,
    pub(super) end: ChannelEnd,
    pub(super) joined: bool,
    /// The room that its user believes in.
    pub(super) told: u32,
    /// What is left of the room of this key-up.
    pub(super) granted: u32,
    /// Its user wants the channel.
    pub(super) wants: bool,
    pub(super) state: StationState,
    /// Tells the timer of this state from those of states that are over.
    pub(super) epoch: u32,
    pub(super) queue: VecDeque<QueuedFrame>,
    /// Others that are keyed and that it hears.
    pub(super) carriers: u32,
    /// It knows of them.
    pub(super) busy: bool,
    pub(super) sense_epoch: u32,
    rng: Rng,
    /// When the frames of this key-up began, and their bits so far.
    began: Instant,
    bits: u64,
    airtime: Airtime,
    /// Up to when the airtime is accounted.
    accounted: Instant,
    /// There is no channel.
    out: bool,
}

impl SimStation {
    pub(super) fn new(config: StationConfig, end: ChannelEnd, rng: Rng) -> Self {
        SimStation {
            config,
            end,
            joined: false,
            told: 0,
            granted: 0,
            wants: false,
            state: StationState::Quiet,
            epoch: 0,
            queue: VecDeque::new(),
            carriers: 0,
            busy: false,
            sense_epoch: 0,
            rng,
            began: Instant::ZERO,
            bits: 0,
            airtime: Airtime::default(),
            accounted: Instant::ZERO,
            out: false,
        }
    }

    /// Others hear its signal.
    pub(super) fn is_keyed(&self) -> bool {
        matches!(
            self.state,
            StationState::Keying | StationState::Sending(_) | StationState::Between | StationState::Tail
        )
    }

    pub(super) fn turn(&mut self, now: Instant, state: StationState) {
        self.account(now);
        self.epoch += 1;
        self.state = state;
    }

    /// The channel is clear, and it wants it: when it looks again.
    pub(super) fn contend(&mut self, now: Instant) -> Instant {
        self.turn(now, StationState::Contending);
        let StationConfig { slot_time, access, .. } = self.config;
        now + match access {
            Access::DrawThenWait => Duration::ZERO,
            Access::WaitThenDraw => slot_time,
            Access::Uniform => slot_time.mul_f64(self.rng.unit() / self.config.chance()),
        }
    }

    /// It looks, and the channel is still clear: none, and it is its own; else when it looks again.
    pub(super) fn draw_persistence(&mut self, now: Instant) -> Option<Instant> {
        let lucky = self.config.access == Access::Uniform || self.rng.chance(self.config.chance());
        if lucky {
            return None;
        }
        self.turn(now, StationState::Contending);
        Some(now + self.config.slot_time)
    }

    /// The next waiting frame goes on the air, behind the last one or as the first of a key-up: when its last bit leaves.
    pub(super) fn start(&mut self, now: Instant, rate_bps: u64) -> Option<Instant> {
        let frame = self.queue.pop_front()?;
        if !matches!(self.state, StationState::Between) {
            // The flag before the first frame; the others share theirs.
            (self.began, self.bits) = (now, hdlc::FLAG_BITS);
        }
        let slots = u128::from(self.began.as_nanos()) * u128::from(rate_bps) / u128::from(NANOS);
        let first_slot = slots as u64 + self.bits;
        self.bits += hdlc::air_bits(&frame.bytes) + hdlc::FLAG_BITS;
        self.turn(
            now,
            StationState::Sending(Transmission {
                frame,
                started: now,
                first_slot,
                clear_nanos: 0,
                channel_nanos: 0,
            }),
        );
        // From the beginning of the key-up, so that frames behind each other do not drift by rounding.
        let nanos = (u128::from(self.bits) * u128::from(NANOS)).div_ceil(u128::from(rate_bps)) as u64;
        Some(self.began + Duration::from_nanos(nanos))
    }

    /// The last bit of the frame on the air leaves.
    pub(super) fn leave(&mut self, now: Instant) -> Transmission {
        self.account(now);
        self.epoch += 1;
        let StationState::Sending(sending) = core::mem::replace(&mut self.state, StationState::Between)
        else {
            unreachable!("only what is on the air leaves")
        };
        sending.enter(sending.clear_nanos, &mut self.airtime);
        sending
    }

    pub(super) fn set_out(&mut self, now: Instant, out: bool) {
        self.account(now);
        self.out = out;
    }

    /// Writes the time since the last account to where it went.
    fn account(&mut self, now: Instant) {
        let (airtime, sending) = self.spent(now);
        self.airtime = airtime;
        if let (StationState::Sending(on_air), Some(clear_nanos)) = (&mut self.state, sending) {
            on_air.clear_nanos = clear_nanos;
        }
        self.accounted = now;
    }

    /// The ledger up to now, without the frame on the air, and what that has had.
    fn spent(&self, now: Instant) -> (Airtime, Option<u64>) {
        let mut airtime = self.airtime;
        let nanos = now.as_nanos() - self.accounted.as_nanos();
        let on_air = match &self.state {
            StationState::Sending(sending) => Some(sending.clear_nanos),
            _ => None,
        };
        if self.out {
            airtime.outage += nanos;
            return (airtime, on_air);
        }
        match &self.state {
            StationState::Quiet => airtime.idle += nanos,
            StationState::Waiting | StationState::Contending | StationState::Won => airtime.access += nanos,
            StationState::Keying | StationState::Between | StationState::Tail => airtime.keying += nanos,
            StationState::Sending(sending) => return (airtime, Some(sending.clear_nanos + nanos)),
        }
        (airtime, on_air)
    }

    /// Where the time up to `now` went.
    pub(super) fn airtime(&self, now: Instant) -> Airtime {
        let (mut airtime, on_air) = self.spent(now);
        if let (StationState::Sending(sending), Some(nanos)) = (&self.state, on_air) {
            sending.enter(nanos, &mut airtime);
        }
        assert_eq!(airtime.total(), now.as_nanos(), "the airtime sums to the time elapsed");
        airtime
    }
}
