//! Station of a radio channel: state, queue, transmission and account of its time.

use super::config::{Access, Framing, StationConfig};
use crate::airtime::Airtime;
use crate::line::QueuedFrame;
use crate::trace::ChannelEnd;
use longwire_proto::rng::Rng;
use longwire_proto::time::{Duration, Instant};
use std::collections::VecDeque;

const NANOS: u64 = 1_000_000_000;

/// Frame being transmitted.
#[derive(Debug)]
pub(super) struct Transmission {
    pub(super) frame: QueuedFrame,
    pub(super) framing: Framing,
    /// Bits of the frame with its check sequence, the same for all receivers.
    pub(super) air_bits: u64,
    pub(super) started: Instant,
    /// Slot of the time axis of the first bit.
    pub(super) first_slot: u64,
    /// Duration of the frame while there was a channel so far, nanoseconds.
    clear_nanos: u64,
    /// The same duration for the account of the channel, which counts overlapping frames once.
    pub(super) channel_nanos: u64,
}

impl Transmission {
    /// Accounts nanoseconds of the frame according to its shares.
    pub(super) fn enter(&self, nanos: u64, airtime: &mut Airtime) {
        self.framing.enter(nanos, &self.frame.bytes, &self.frame.shares, airtime);
    }
}

/// Reason of a station to wait on a clear channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deferral {
    /// None: the channel was clear when the user wanted it.
    None,
    /// The channel was busy since then.
    Busy,
    /// The previous transmission was that of the station itself.
    Own,
}

/// State of a station.
#[derive(Debug)]
pub(super) enum StationState {
    /// The station does not want the channel.
    Quiet,
    /// The station wants the channel, which is busy.
    Waiting,
    /// The station wants the channel, which is clear, and acts when its timer expires.
    Contending,
    /// The station has won the channel, and its user is asked for frames.
    Won,
    /// The transmitter is keyed, during TXDELAY.
    Keying,
    /// A frame is being transmitted.
    Sending(Transmission),
    /// A frame has ended, and the user may have another.
    Between,
    /// The transmitter is keyed, during TXTAIL.
    Tail,
}

/// Station of a radio channel.
#[derive(Debug)]
pub(super) struct SimStation {
    pub(super) config: StationConfig,
    pub(super) end: ChannelEnd,
    pub(super) joined: bool,
    /// Room last reported to the user.
    pub(super) told: u32,
    /// Remaining room of the current transmission.
    pub(super) granted: u32,
    /// True if the user wants the channel.
    pub(super) wants: bool,
    pub(super) state: StationState,
    /// Distinguishes the timer of the current state from those of earlier states.
    pub(super) epoch: u32,
    pub(super) queue: VecDeque<QueuedFrame>,
    /// Number of keyed stations in range.
    pub(super) carriers: u32,
    /// True if the carrier detection reports a busy channel.
    pub(super) busy: bool,
    pub(super) sense_epoch: u32,
    /// Time of the last key-up.
    pub(super) keyed_at: Instant,
    /// Reason of the station to wait on a clear channel.
    pub(super) defers: Deferral,
    rng: Rng,
    /// Time at which the frames of this transmission began, and their bits so far.
    began: Instant,
    bits: u64,
    airtime: Airtime,
    /// End of the accounted airtime.
    accounted: Instant,
    /// True while there is no channel.
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
            keyed_at: Instant::ZERO,
            defers: Deferral::None,
            rng,
            began: Instant::ZERO,
            bits: 0,
            airtime: Airtime::default(),
            accounted: Instant::ZERO,
            out: false,
        }
    }

    /// True if the transmitter is keyed.
    pub(super) fn is_keyed(&self) -> bool {
        matches!(
            self.state,
            StationState::Keying | StationState::Sending(_) | StationState::Between | StationState::Tail
        )
    }

    /// True if the station wants the channel and is not keyed.
    pub(super) fn is_accessing(&self) -> bool {
        matches!(self.state, StationState::Waiting | StationState::Contending | StationState::Won)
    }

    pub(super) fn turn(&mut self, now: Instant, state: StationState) {
        self.account(now);
        self.epoch += 1;
        self.state = state;
    }

    /// Returns the time of the first draw of an access procedure that begins now, on a clear channel.
    pub(super) fn first_draw(&mut self, now: Instant) -> Instant {
        let StationConfig { slot_time, access, .. } = self.config;
        now + match access {
            Access::DrawThenWait => Duration::ZERO,
            Access::WaitThenDraw => slot_time,
            Access::Uniform => slot_time.mul_f64(self.rng.unit() / self.config.chance()),
            Access::Backoff => {
                let slots = (1.0 / self.config.chance()) as u64;
                slot_time
                    * match self.defers {
                        Deferral::None => 0,
                        Deferral::Busy => self.rng.below(slots) as u32,
                        Deferral::Own => slots as u32,
                    }
            }
        }
    }

    /// Draws on a channel that is still clear. Returns the time of the next draw; `None` if the channel is won.
    pub(super) fn draw_persistence(&mut self, now: Instant) -> Option<Instant> {
        let is_drawn = matches!(self.config.access, Access::Uniform | Access::Backoff);
        let lucky = is_drawn || self.rng.chance(self.config.chance());
        if lucky {
            return None;
        }
        self.turn(now, StationState::Contending);
        Some(now + self.config.slot_time)
    }

    /// Begins transmission of the next waiting frame, the first of a transmission or after another. Returns the time at
    /// which its last bit leaves.
    pub(super) fn start(&mut self, now: Instant, rate_bps: u64, framing: Framing) -> Option<Instant> {
        let frame = self.queue.pop_front()?;
        if !matches!(self.state, StationState::Between) {
            // Opening flag before the first frame; the others share theirs.
            (self.began, self.bits) = (now, framing.flag_bits());
        }
        let slots = u128::from(self.began.as_nanos()) * u128::from(rate_bps) / u128::from(NANOS);
        let first_slot = slots as u64 + self.bits;
        let air_bits = framing.air_bits(&frame.bytes);
        self.bits += air_bits + framing.flag_bits();
        self.turn(
            now,
            StationState::Sending(Transmission {
                frame,
                framing,
                air_bits,
                started: now,
                first_slot,
                clear_nanos: 0,
                channel_nanos: 0,
            }),
        );
        // Counted from the beginning of the transmission, so that consecutive frames do not drift by rounding.
        let nanos = (u128::from(self.bits) * u128::from(NANOS)).div_ceil(u128::from(rate_bps)) as u64;
        Some(self.began + Duration::from_nanos(nanos))
    }

    /// Ends the transmission of the current frame.
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

    /// Adds the time since the last call to the account.
    fn account(&mut self, now: Instant) {
        let (airtime, sending) = self.spent(now);
        self.airtime = airtime;
        if let (StationState::Sending(on_air), Some(clear_nanos)) = (&mut self.state, sending) {
            on_air.clear_nanos = clear_nanos;
        }
        self.accounted = now;
    }

    /// Returns the account up to now without the current frame, and the time of that frame.
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

    /// Returns the use of the time up to `now`.
    pub(super) fn airtime(&self, now: Instant) -> Airtime {
        let (mut airtime, on_air) = self.spent(now);
        if let (StationState::Sending(sending), Some(nanos)) = (&self.state, on_air) {
            sending.enter(nanos, &mut airtime);
        }
        assert_eq!(airtime.total(), now.as_nanos(), "the airtime sums to the time elapsed");
        airtime
    }
}
