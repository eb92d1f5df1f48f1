//! Channels: two lines, one each way, between two interfaces.
//!
//! ```text
//!   handed over -> queue -> transmitter ==== delay ====> check (FCS) -> the other node
//!                    |          |                          |
//!                 queue full  outage                   check failed
//! ```
//!
//! **The transmitter** sends one frame at a time at `rate_bps`. The end of every bit is computed from the start of
//! the busy period, so that back-to-back frames do not drift by rounding. What leaves at time t arrives at
//! t + delay(t).
//!
//! **Room.** With back-pressure the sender hears how many frames of full size the line takes now: one for an idle
//! transmitter and one for each `mtu_bytes` free in the queue. With `queue-bytes = 0` a frame is therefore made when the one
//! before it has left, without a gap. Without back-pressure the line takes everything and drops what its queue
//! cannot hold, as a router does; a dropped frame's token comes back at once, as if it had left.
//!
//! **Outages.** During an outage nothing gets on its way: a frame of which any bit was on the transmitter during an
//! outage is lost; what had left before arrives. An outage that is not announced shows to nobody: the transmitter
//! goes on. An announced one says `Room(0)` and `Carrier(false)` to its sender when it begins, holds what waits in
//! the queue, and says `Carrier(true)` and room when it ends. Either way the sender alone hears of it; where both
//! ends should, both directions have it.
//!
//! **Errors** flip bits of the frame and of its check (see [`Errors`]). The check is computed over the bytes as they arrive; damage
//! that it cannot see gets through, and without a check all damage does. Wrong bits in flags and preambles
//! (`framing_bytes`) do no harm.

use crate::delay::Delay;
use crate::trace::FrameFate;
use crate::units::seconds;
use longwire_proto::codec::crc;
use longwire_proto::time::Instant;
use serde::{Deserialize, Serialize};

/// A channel of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

/// One of the two ways of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From its first end to its second.
    Forward,
    /// From its second end to its first.
    Backward,
}

impl Direction {
    /// Both.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];
}

/// Both directions of a channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChannelConfig {
    /// From the first end to the second.
    pub forward: LineConfig,
    /// From the second end to the first.
    pub backward: LineConfig,
}

impl ChannelConfig {
    /// The same both ways.
    pub fn symmetric(line: LineConfig) -> Self {
        ChannelConfig { backward: line.clone(), forward: line }
    }
}

/// One direction of a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LineConfig {
    /// Bits a second. Default: 1,000,000.
    pub rate_bps: u64,
    /// One-way delay. Default: none.
    pub delay: Delay,
    /// How many bytes may wait behind the frame that is being sent. Default: 0.
    pub queue_bytes: u64,
    /// True: room tells the sender how much the line takes. False: the line takes everything and drops what its
    /// queue cannot hold. Default: true.
    pub backpressure: bool,
    /// The longest frame, without what the line adds. Default: 1500.
    pub mtu_bytes: u32,
    /// Bit errors. Default: none.
    pub errors: Errors,
    /// The line's own check. Default: none.
    pub fcs: Fcs,
    /// Bytes of flags, preamble and the like that each frame takes besides. Default: 0.
    pub framing_bytes: u32,
    /// When there is no line, in order of time. Default: never.
    pub outages: Vec<Window>,
    /// If not empty: when there is a line; at all other times there is none. Default: empty.
    pub contacts: Vec<Window>,
    /// Whether the sender is told when an outage begins and ends. Default: false.
    pub announced: bool,
}

impl Default for LineConfig {
    fn default() -> Self {
        LineConfig {
            rate_bps: 1_000_000,
            delay: Delay::default(),
            queue_bytes: 0,
            backpressure: true,
            mtu_bytes: 1500,
            errors: Errors::None,
            fcs: Fcs::None,
            framing_bytes: 0,
            outages: Vec::new(),
            contacts: Vec::new(),
            announced: false,
        }
    }
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Window {
    /// Its beginning, seconds since the run began.
    #[serde(rename = "from-s", with = "seconds")]
    pub from: Instant,
    /// Its end, seconds since the run began.
    #[serde(rename = "to-s", with = "seconds")]
    pub to: Instant,
}

/// How bits go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Errors {
    /// They do not.
    #[default]
    None,
    /// Each with this probability, whatever the others do.
    Ber(f64),
    /// In bursts.
    GilbertElliott(GilbertElliott),
}

/// A line that is good or bad by turns (Gilbert 1960, Elliott 1963).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GilbertElliott {
    /// How long it stays good on average, bits (1 or more).
    pub good_bits_mean: f64,
    /// How long it stays bad on average, bits (1 or more).
    pub bad_bits_mean: f64,
    /// The bit-error rate while good.
    pub good_ber: f64,
    /// The bit-error rate while bad.
    pub bad_ber: f64,
}

impl GilbertElliott {
    /// The bit-error rate in the long run.
    pub fn mean_ber(&self) -> f64 {
        let errors = self.good_bits_mean * self.good_ber + self.bad_bits_mean * self.bad_ber;
        errors / (self.good_bits_mean + self.bad_bits_mean)
    }
}

impl Errors {
    /// The bit-error rate in the long run.
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
            return Err(format!("an error rate lies between 0 and 1, not at {rate}"));
        }
        match self {
            Errors::GilbertElliott(model) if !(model.good_bits_mean >= 1.0 && model.bad_bits_mean >= 1.0) => {
                Err("good-bits-mean and bad-bits-mean are 1 or more".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// A line's own check over each frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fcs {
    /// There is none.
    #[default]
    None,
    /// CRC-16/X-25 (HDLC, AX.25): 2 bytes.
    Crc16,
    /// CRC-32 (Ethernet, PPP): 4 bytes.
    Crc32,
}

impl Fcs {
    /// Bytes on the air.
    pub const fn bytes(self) -> u32 {
        match self {
            Fcs::None => 0,
            Fcs::Crc16 => 2,
            Fcs::Crc32 => 4,
        }
    }

    /// Puts the check of `frame` behind it, lowest byte first, as HDLC sends it.
    pub(crate) fn append(self, frame: &mut Vec<u8>) {
        match self {
            Fcs::None => {}
            Fcs::Crc16 => frame.extend(crc::crc16_x25(frame).to_le_bytes()),
            Fcs::Crc32 => frame.extend(crc::crc32(frame).to_le_bytes()),
        }
    }

    /// Takes the check from behind the frame; true if it is right.
    pub(crate) fn strip(self, frame: &mut Vec<u8>) -> bool {
        let check = frame.split_off(frame.len() - self.bytes() as usize);
        let mut expected = frame.clone();
        self.append(&mut expected);
        expected[frame.len()..] == check[..]
    }
}

/// What became of the frames of one direction.
///
/// `handed` is the sum of all others but `undetected`, which counts within `delivered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Frames that the sender handed over.
    pub handed: u64,
    /// Frames that the receiver heard.
    pub delivered: u64,
    /// Of these, frames with wrong bits.
    pub undetected: u64,
    /// Frames that the line's check dropped.
    pub check_failed: u64,
    /// Frames that an outage took.
    pub outage: u64,
    /// Frames for which the queue had no space.
    pub queue_full: u64,
    /// Frames longer than the line takes.
    pub too_long: u64,
    /// Frames that waited when their sender crashed.
    pub sender_crashed: u64,
    /// Frames that arrived where nobody had joined, or where their sender is not heard.
    pub unheard: u64,
    /// Frames with which another's signal overlapped. On radio channels.
    pub collided: u64,
    /// Frames whose hearer was transmitting. On radio channels.
    pub deaf: u64,
    /// Frames in the queue, on the transmitter or on their way.
    pub in_flight: u64,
}

impl Counters {
    /// A frame is handed over.
    pub(crate) fn hand(&mut self) {
        self.handed += 1;
        self.in_flight += 1;
    }

    /// Counts a frame whose fate is known.
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
    /// The moments at which the line goes (false) and comes back (true), in order. It is there at first.
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

    /// Whether every value makes sense; if not, which does not and why.
    pub fn validate(&self) -> Result<(), String> {
        let rule = |holds: bool, message: &str| if holds { Ok(()) } else { Err(message.to_owned()) };
        rule(self.rate_bps > 0, "rate-bps is zero: a line has a rate")?;
        rule(self.mtu_bytes > 0, "mtu-bytes is zero: a line takes frames of a byte or more")?;
        rule(self.delay.is_ordered(), "the points of a delay schedule are in order of time")?;
        for windows in [&self.outages, &self.contacts] {
            let forward = windows.iter().all(|window| window.from < window.to);
            rule(forward, "a window ends after its beginning")?;
            let apart = windows.windows(2).all(|pair| pair[0].to <= pair[1].from);
            rule(apart, "windows are in order and do not overlap")?;
        }
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
