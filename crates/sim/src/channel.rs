//! Channels: two lines, one in each direction, between two interfaces.
//!
//! ```text
//!   frame sent -> queue -> transmitter ==== delay ====> check (FCS) -> the other node
//!                   |          |                          |
//!                queue full  outage                   check failed
//! ```
//!
//! **The transmitter** sends one frame at a time at `rate_bps`. The end of every bit is computed from the start of the
//! busy period, so that consecutive frames do not drift by rounding. A bit that leaves at time t arrives at
//! t + delay(t).
//!
//! **Room.** With back-pressure the sender receives the number of full-size frames that the line accepts now: one for
//! an idle transmitter and one for each `mtu_bytes` free in the queue. With `queue-bytes = 0` a frame is therefore made
//! when the previous one has left, without a gap. Without back-pressure the line accepts every frame and drops those
//! that its queue cannot hold, as a router does; the token of a dropped frame is returned at once, as if it had left.
//!
//! **Outages.** A frame with any bit on the transmitter during an outage is lost; frames that left before it arrive. An
//! unannounced outage is not reported: the transmitter continues. An announced outage sends `Room(0)` and
//! `Carrier(false)` to its sender when it begins, holds the frames in the queue, and sends `Carrier(true)` and room
//! when it ends. In both cases only the sender of that direction is informed; for both ends, configure both directions.
//!
//! **Errors** flip bits of the frame and of its check sequence (see [`Errors`]). The check is computed over the bytes
//! as they arrive; damage that it does not detect is delivered, and without a check all damage is. Wrong bits in flags
//! and preambles (`framing_bytes`) have no effect.

use crate::delay::Delay;
use crate::trace::FrameFate;
use longwire_proto::codec::crc;
use longwire_proto::settings;
use longwire_proto::time::Instant;
use serde::{Deserialize, Serialize};

/// Number of a channel of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

/// Direction of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the first end to the second.
    Forward,
    /// From the second end to the first.
    Backward,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];
}

/// Configuration of both directions of a channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelConfig {
    /// From the first end to the second.
    pub forward: LineConfig,
    /// From the second end to the first.
    pub backward: LineConfig,
}

impl ChannelConfig {
    /// Makes a channel with the same line in both directions.
    pub fn symmetric(line: LineConfig) -> Self {
        ChannelConfig { backward: line.clone(), forward: line }
    }
}

settings! {
    /// Configuration of one direction of a channel.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LineConfig {
        /// Rate, bit/s. Default: 1,000,000.
        pub rate_bps: u64 = 1_000_000,
        /// One-way delay. Default: none.
        pub delay: Delay,
        /// Bytes that can wait in addition to the frame being sent. Default: 0.
        pub queue_bytes: u64,
        /// If true, the room tells the sender how many frames the line accepts. If false, the line accepts every frame and
        /// drops those that its queue cannot hold. Default: true.
        pub backpressure: bool = true,
        /// Maximum length of a frame, without the overhead of the line. Default: 1500.
        pub mtu_bytes: u32 = 1500,
        /// Bit errors. Default: none.
        pub errors: Errors,
        /// Bit errors from certain times on, in order of time. Default: none.
        pub error_changes: Vec<ErrorChange>,
        /// Frame check sequence of the line. Default: none.
        pub fcs: Fcs,
        /// Additional bytes of each frame, such as flags and preamble. Default: 0.
        pub framing_bytes: u32,
        /// Outages, in order of time. Default: never.
        pub outages: Vec<Window>,
        /// If not empty, the only times at which the line is available. Default: empty.
        pub contacts: Vec<Window>,
        /// True if the beginning and the end of outages are reported to the sender. Default: false.
        pub announced: bool,
    }
}

/// Change of the bit errors of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorChange {
    /// Time of the change.
    pub at: Instant,
    /// Bit errors from then on.
    pub errors: Errors,
}

/// Interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Beginning.
    pub from: Instant,
    /// End.
    pub to: Instant,
}

/// Model of bit errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Errors {
    /// No errors.
    #[default]
    None,
    /// Independent errors with this probability for each bit.
    Ber(f64),
    /// Errors in bursts.
    GilbertElliott(GilbertElliott),
}

/// Two-state line that alternates between good and bad (Gilbert 1960, Elliott 1963).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GilbertElliott {
    /// Mean duration of the good state, bits (1 or more).
    pub good_bits_mean: f64,
    /// Mean duration of the bad state, bits (1 or more).
    pub bad_bits_mean: f64,
    /// Bit-error rate in the good state.
    pub good_ber: f64,
    /// Bit-error rate in the bad state.
    pub bad_ber: f64,
}

impl GilbertElliott {
    /// Returns the long-term bit-error rate.
    pub fn mean_ber(&self) -> f64 {
        let errors = self.good_bits_mean * self.good_ber + self.bad_bits_mean * self.bad_ber;
        errors / (self.good_bits_mean + self.bad_bits_mean)
    }
}

impl Errors {
    /// Returns the long-term bit-error rate.
    pub fn mean_ber(&self) -> f64 {
        match self {
            Errors::None => 0.0,
            Errors::Ber(rate) => *rate,
            Errors::GilbertElliott(model) => model.mean_ber(),
        }
    }
}

impl Errors {
    pub(crate) fn validate(&self) -> Result<(), String> {
        let rates = match self {
            Errors::None => return Ok(()),
            Errors::Ber(rate) => [*rate; 2],
            Errors::GilbertElliott(model) => [model.good_ber, model.bad_ber],
        };
        if let Some(rate) = rates.into_iter().find(|rate| !(0.0..=1.0).contains(rate)) {
            return Err(format!("an error rate is {rate}; it must be from 0 to 1"));
        }
        match self {
            Errors::GilbertElliott(model) if !(model.good_bits_mean >= 1.0 && model.bad_bits_mean >= 1.0) => {
                Err("`good-bits-mean` and `bad-bits-mean` must be at least 1".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Frame check sequence of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fcs {
    /// No check sequence.
    #[default]
    None,
    /// CRC-16/X-25 (HDLC, AX.25): 2 bytes.
    Crc16,
    /// CRC-32 (Ethernet, PPP): 4 bytes.
    Crc32,
}

impl Fcs {
    /// Returns the length of the check sequence, bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Fcs::None => 0,
            Fcs::Crc16 => 2,
            Fcs::Crc32 => 4,
        }
    }

    /// Appends the check sequence of `frame`, lowest byte first, as in HDLC.
    pub(crate) fn append(self, frame: &mut Vec<u8>) {
        match self {
            Fcs::None => {}
            Fcs::Crc16 => frame.extend(crc::crc16_x25(frame).to_le_bytes()),
            Fcs::Crc32 => frame.extend(crc::crc32(frame).to_le_bytes()),
        }
    }

    /// Removes the check sequence of the frame; true if it is right.
    pub(crate) fn strip(self, frame: &mut Vec<u8>) -> bool {
        let check = frame.split_off(frame.len() - self.bytes() as usize);
        let mut expected = frame.clone();
        self.append(&mut expected);
        expected[frame.len()..] == check[..]
    }
}

/// Counters of the frames of one direction, by their fate.
///
/// `handed` is the sum of all others except `undetected`, which counts within `delivered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames accepted from the sender.
    pub handed: u64,
    /// Frames delivered to the receiver.
    pub delivered: u64,
    /// Delivered frames with wrong bits.
    pub undetected: u64,
    /// Frames dropped by the frame check.
    pub check_failed: u64,
    /// Frames lost in an outage.
    pub outage: u64,
    /// Frames dropped because the queue was full.
    pub queue_full: u64,
    /// Frames longer than the MTU.
    pub too_long: u64,
    /// Frames in the queue when their sender crashed.
    pub sender_crashed: u64,
    /// Frames that arrived at an end that had not joined, or that is out of range of the sender.
    pub unheard: u64,
    /// Frames lost to an overlapping signal. On radio channels.
    pub collided: u64,
    /// Frames lost because the receiver was transmitting. On radio channels.
    pub deaf: u64,
    /// Frames in the queue, on the transmitter or in flight.
    pub in_flight: u64,
}

impl Counters {
    /// Counts a frame from the sender.
    pub(crate) fn hand(&mut self) {
        self.handed += 1;
        self.in_flight += 1;
    }

    /// Counts a frame with a known fate.
    pub(crate) fn count(&mut self, fate: FrameFate) {
        self.in_flight -= 1;
        *match fate {
            FrameFate::Delivered => &mut self.delivered,
            FrameFate::Damaged => {
                self.undetected += 1;
                &mut self.delivered
            }
            FrameFate::CheckFailed => &mut self.check_failed,
            FrameFate::Outage => &mut self.outage,
            FrameFate::QueueFull => &mut self.queue_full,
            FrameFate::TooLong => &mut self.too_long,
            FrameFate::SenderCrashed => &mut self.sender_crashed,
            FrameFate::Unheard => &mut self.unheard,
            FrameFate::Collided => &mut self.collided,
            FrameFate::Deaf => &mut self.deaf,
        } += 1;
    }
}

impl LineConfig {
    /// Returns the times at which the line goes down (false) and up (true), in order. It is up at first.
    pub(crate) fn turns(&self) -> Vec<(Instant, bool)> {
        let mut edges: Vec<(Instant, i32)> = Vec::new();
        for window in &self.outages {
            edges.extend([(window.from, 1), (window.to, -1)]);
        }
        if !self.contacts.is_empty() {
            edges.push((Instant::ZERO, 1));
            for window in &self.contacts {
                edges.extend([(window.from, -1), (window.to, 1)]);
            }
        }
        edges.sort_by_key(|edge| edge.0);
        let (mut turns, mut depth, mut up) = (Vec::new(), 0, true);
        for (index, &(at, step)) in edges.iter().enumerate() {
            depth += step;
            let last_of_its_instant = edges.get(index + 1).is_none_or(|next| next.0 > at);
            if last_of_its_instant && up != (depth <= 0) {
                up = !up;
                turns.push((at, up));
            }
        }
        turns
    }

    /// Checks all values. Returns a description of the first invalid one.
    pub fn validate(&self) -> Result<(), String> {
        let rule = |holds: bool, message: &str| if holds { Ok(()) } else { Err(message.to_owned()) };
        rule(self.rate_bps > 0, "`rate-bps` is 0; it must be at least 1")?;
        rule(self.mtu_bytes > 0, "`mtu-bytes` is 0; it must be at least 1")?;
        rule(self.delay.is_ordered(), "the points of a delay schedule must be in order of time")?;
        for windows in [&self.outages, &self.contacts] {
            let forward = windows.iter().all(|window| window.from < window.to);
            rule(forward, "a window must end after its beginning")?;
            let apart = windows.windows(2).all(|pair| pair[0].to <= pair[1].from);
            rule(apart, "windows must be in order and must not overlap")?;
        }
        let ordered = self.error_changes.windows(2).all(|pair| pair[0].at < pair[1].at);
        rule(ordered, "changes of the bit errors must be in order of time")?;
        self.error_changes.iter().try_for_each(|change| change.errors.validate())?;
        self.errors.validate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(from: u64, to: u64) -> Window {
        Window { from: Instant::from_secs(from), to: Instant::from_secs(to) }
    }

    fn turns(outages: &[Window], contacts: &[Window]) -> Vec<(u64, bool)> {
        let config =
            LineConfig { outages: outages.to_vec(), contacts: contacts.to_vec(), ..LineConfig::default() };
        config.turns().iter().map(|turn| (turn.0.as_nanos() / 1_000_000_000, turn.1)).collect()
    }

    #[test]
    fn outages_and_contacts_become_turns() {
        assert_eq!(turns(&[], &[]), []);
        assert_eq!(turns(&[window(3, 5), window(5, 7)], &[]), [(3, false), (7, true)]);
        assert_eq!(turns(&[], &[window(0, 5), window(9, 10)]), [(5, false), (9, true), (10, false)]);
        assert_eq!(turns(&[window(1, 4)], &[window(3, 8)]), [(0, false), (4, true), (8, false)]);
    }

    #[test]
    fn values_that_make_no_sense_are_named() {
        let refused = |config: LineConfig| config.validate().expect_err("it makes no sense");
        let line = LineConfig::default;
        assert_eq!(line().validate(), Ok(()));
        assert!(refused(LineConfig { rate_bps: 0, ..line() }).contains("rate-bps"));
        assert!(refused(LineConfig { mtu_bytes: 0, ..line() }).contains("mtu-bytes"));
        assert!(refused(LineConfig { outages: vec![window(3, 3)], ..line() }).contains("window"));
        assert!(
            refused(LineConfig { contacts: vec![window(3, 5), window(4, 6)], ..line() }).contains("overlap")
        );
        for rate in [-0.1, 1.1, f64::NAN] {
            assert!(refused(LineConfig { errors: Errors::Ber(rate), ..line() }).contains("error rate"));
        }
        let short = GilbertElliott { good_bits_mean: 100.0, bad_bits_mean: 0.5, good_ber: 0.0, bad_ber: 0.5 };
        let errors = Errors::GilbertElliott(short);
        assert!(refused(LineConfig { errors, ..line() }).contains("bad-bits-mean"));
    }

    #[test]
    fn a_check_sees_every_burst_no_longer_than_itself() {
        for (fcs, bits) in [(Fcs::Crc16, 16usize), (Fcs::Crc32, 32)] {
            let mut good = b"the quick brown fox".to_vec();
            fcs.append(&mut good);
            assert!(fcs.strip(&mut good.clone()));
            for start in 0..good.len() * 8 - bits {
                let mut bad = good.clone();
                for bit in [start, start + bits / 3, start + bits - 1] {
                    bad[bit / 8] ^= 1 << (bit % 8);
                }
                assert!(!fcs.strip(&mut bad), "{fcs:?} missed a burst at bit {start}");
            }
        }
    }
}
