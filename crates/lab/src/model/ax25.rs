//! Time of a file over connected-mode AX.25 on a channel without errors, collisions or other stations.
//!
//! One model with parameters covers the published models:
//!
//! - J. Ronan, K. Walsh, D. Long, "More experiments with Delay and Disruption Tolerant Networking over AX.25 Networks",
//!   section III ([`Model::ronan_2011`]). Its tables follow neither its printed formulas nor its printed numbers: they
//!   apply 63/62 for bit stuffing to the 255 information octets only, and include TXTAIL in the acknowledgement.
//! - B. Zieliński, "Effective throughput of AX.25 protocol", equations 1 to 5 ([`Model::zielinski`]). The paper gives
//!   neither slot time nor key-up time nor persistence; the defaults of a TNC 2 are assumed.
//! - Two stations with Dire Wolf 1.6 ([`Model::direwolf`]).
//!
//! ```text
//!   half duplex, one cycle of k frames:
//!   turnaround access TXDELAY | I I .. I | TXTAIL   T2   turnaround access TXDELAY | RR | TXTAIL
//!
//!   full duplex: TXDELAY | I I I I I .. I | TXTAIL, each RR during the next I, the last one after it
//!   with k = 1:  turnaround TXDELAY | I | T2 turnaround TXDELAY | RR |, each TXTAIL while the other station acts
//! ```
//!
//! Times are in seconds, rates in bit/s, lengths in octets. The octets of a frame include its two flags.

use longwire_proto::ax25::{
    Address, Callsign, CommandResponse, Control, Frame, Modulo, Supervisory, hdlc, pid,
};
use serde::Deserialize;

/// Mean number of random bits for which bit stuffing inserts a zero (Ma, 1982).
const BITS_A_STUFFED_ONE: f64 = 62.0;
/// Bits of a character on a serial line: start bit, eight data bits, stop bit.
const SERIAL_BITS: f64 = 10.0;
/// Maximum window with modulo 8 (AX.25 2.2, 6.7.2.3), frames.
pub const WINDOW_MAX: u32 = 7;

/// Part of the frames to which bit stuffing applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stuffing {
    /// Complete frames, as if their bits were random.
    All,
    /// Information octets only, as if their bits were random.
    Payload,
    /// No bit stuffing.
    None,
    /// Actual bit stuffing for the bytes of a file.
    Exact(Stuffed),
}

/// Bits that stuffing inserts into the frames of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stuffed {
    /// Bits inserted into I frames, per information octet.
    pub bits_a_byte: f64,
    /// Bits inserted into an acknowledgement.
    pub bits_an_acknowledgement: f64,
}

impl Stuffed {
    /// Counts the bits for a file in frames of this number of information octets, from one station to another.
    ///
    /// # Panics
    /// Panics if frames have no information octets.
    pub fn count(contents: &[u8], information_bytes: u32) -> Stuffed {
        let [here, there] =
            ["N0CALL-1", "N0CALL-2"].map(|name| name.parse::<Callsign>().expect("a callsign"));
        let numbers = (0..Modulo::Eight.count()).cycle();
        let frames =
            contents.chunks(information_bytes as usize).zip(numbers).map(|(information, send)| Frame {
                address: Address::new(here, there, CommandResponse::Command, &[]),
                control: Control::Information { send, receive: 0, poll: false },
                pid: pid::NONE,
                information: information.to_vec().into(),
            });
        let answers = (0..Modulo::Eight.count()).map(|receive| {
            let function = Supervisory::ReceiveReady;
            let control = Control::Supervisory { function, receive, poll_final: false };
            Frame::bare(Address::new(there, here, CommandResponse::Response, &[]), control)
        });
        let bits_an_acknowledgement =
            answers.map(|frame| stuffed_bits(&frame)).sum::<u64>() as f64 / f64::from(Modulo::Eight.count());
        let bits: u64 = frames.map(|frame| stuffed_bits(&frame)).sum();
        Stuffed { bits_a_byte: bits as f64 / contents.len().max(1) as f64, bits_an_acknowledgement }
    }
}

fn stuffed_bits(frame: &Frame) -> u64 {
    let octets = frame.to_bytes(Modulo::Eight);
    hdlc::air_bits(&octets) - 8 * (octets.len() as u64 + hdlc::CHECK_BYTES as u64)
}

/// Model of the mean wait of a station before key-up on a free channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Csma {
    /// No wait.
    None,
    /// Persistence times slot time, as in Ronan's paper; no p-persistent station behaves so.
    Ronan,
    /// Half a slot divided by the persistence: Zieliński, equation 1.
    Zielinski,
    /// A draw, followed by a slot if it fails: the KISS specification.
    DrawThenWait,
    /// A slot before each draw: Dire Wolf.
    WaitThenDraw,
}

/// Length assumed for the last frame of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastFrame {
    /// Full, like the others.
    Full,
    /// Actual length.
    True,
}

/// Transmissions that end with TXTAIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tail {
    /// All transmissions.
    In,
    /// Transmissions with data only.
    Data,
    /// No transmissions.
    Out,
}

/// Half or full duplex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplex {
    /// Half duplex: one station at a time.
    Half,
    /// Full duplex: both stations at once. The window does not matter from two frames on.
    Full,
}

/// Names of the values of a parameter, as used on the command line.
pub type KnobNames<T> = &'static [(&'static str, T)];

impl Csma {
    /// Names of the values.
    pub const NAMES: KnobNames<Self> = &[
        ("none", Csma::None),
        ("ronan", Csma::Ronan),
        ("zielinski", Csma::Zielinski),
        ("draw-then-wait", Csma::DrawThenWait),
        ("wait-then-draw", Csma::WaitThenDraw),
    ];

    /// Mean wait, seconds, for a slot time in seconds and a persistence above 0 and at most 1.
    pub fn mean_s(self, slot_s: f64, persistence: f64) -> f64 {
        match self {
            Csma::None => 0.0,
            Csma::Ronan => persistence * slot_s,
            Csma::Zielinski => slot_s / (2.0 * persistence),
            Csma::DrawThenWait => (1.0 - persistence) / persistence * slot_s,
            Csma::WaitThenDraw => slot_s / persistence,
        }
    }
}

impl LastFrame {
    /// Names of the values.
    pub const NAMES: KnobNames<Self> = &[("full", LastFrame::Full), ("true", LastFrame::True)];
}

impl Tail {
    /// Names of the values.
    pub const NAMES: KnobNames<Self> = &[("in", Tail::In), ("data", Tail::Data), ("out", Tail::Out)];
}

impl Duplex {
    /// Names of the values.
    pub const NAMES: KnobNames<Self> = &[("half", Duplex::Half), ("full", Duplex::Full)];
}

/// Parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Information octets of a full frame (N1), at least 1.
    pub information_bytes: u32,
    /// Octets of an I frame besides its information: flags, addresses, control, PID, check sequence.
    pub header_bytes: u32,
    /// Octets of a frame without information: flags, addresses, control, check sequence.
    pub acknowledgement_bytes: u32,
    /// Part of the frames to which bit stuffing applies.
    pub stuffing: Stuffing,
    /// Length assumed for the last frame of a file.
    pub last_frame: LastFrame,
    /// Model of the mean wait before key-up.
    pub csma: Csma,
    /// True if a station also waits before an acknowledgement.
    pub acknowledgement_waits: bool,
    /// Slot time (T102), seconds.
    pub slot_s: f64,
    /// Probability of transmitting in a slot, above 0 and at most 1.
    pub persistence: f64,
    /// Time from key-up to the first frame (T103, TXDELAY), seconds.
    pub txdelay_s: f64,
    /// Time from the last frame to key-down (TXTAIL), seconds.
    pub txtail_s: f64,
    /// Transmissions that end with TXTAIL.
    pub tail: Tail,
    /// Response delay of the receiver (T2), seconds.
    pub t2_s: f64,
    /// True if the last frame of a cycle has P set, which avoids the wait for T2.
    pub poll: bool,
    /// Number of frames of a cycle that is acknowledged without T2: the receiver knows that no more can follow.
    pub whole_window: u32,
    /// Time to detect a free channel, in bits.
    pub carrier_bits: f64,
    /// Further delay of a station and its TNC at each turn from receiving to sending, seconds.
    pub turnaround_s: f64,
    /// Rate of the serial lines between hosts and TNCs, bit/s; `None` without delay. A frame is buffered completely
    /// before it is sent and after it was received; apart from that the line is assumed to be faster than the channel.
    pub serial_bps: Option<f64>,
    /// Half or full duplex.
    pub duplex: Duplex,
    /// Transmissions of one frame without information before the first cycle; 2 to connect.
    pub set_up_frames: u32,
}

/// Preset: name, description and parameters.
pub type Preset = (&'static str, &'static str, Model);

/// Presets of the command line.
pub const PRESETS: [Preset; 4] = [
    ("ronan-2011", "Ronan, Walsh and Long: the model behind their Tables II and III", Model::ronan_2011()),
    ("zielinski", "Zieliński, equations 1 to 4, with the defaults of a TNC 2", Model::zielinski()),
    (
        "zielinski-t2",
        "the same with a T2 of 1 s, waited for wherever the window is not 7",
        Model { t2_s: 1.0, ..Model::zielinski() },
    ),
    (
        "direwolf",
        "two Dire Wolfs, from the connection request to the last acknowledgement",
        Model::direwolf(),
    ),
];

impl Model {
    /// Returns the model behind Ronan's Tables II and III.
    pub const fn ronan_2011() -> Model {
        Model {
            information_bytes: 255,
            header_bytes: 20,
            acknowledgement_bytes: 20,
            stuffing: Stuffing::Payload,
            last_frame: LastFrame::Full,
            csma: Csma::Ronan,
            acknowledgement_waits: true,
            slot_s: 0.020,
            persistence: 0.25,
            txdelay_s: 0.150,
            txtail_s: 0.020,
            tail: Tail::In,
            t2_s: 0.0,
            poll: false,
            whole_window: WINDOW_MAX,
            carrier_bits: 0.0,
            turnaround_s: 0.0,
            serial_bps: None,
            duplex: Duplex::Half,
            set_up_frames: 0,
        }
    }

    /// Returns the model of Zieliński's equations 1 to 4. T102 of 0.1 s, T103 of 0.3 s and a persistence of 64/256 are
    /// defaults of a TNC 2; the paper gives none.
    pub const fn zielinski() -> Model {
        Model {
            information_bytes: 256,
            stuffing: Stuffing::All,
            csma: Csma::Zielinski,
            acknowledgement_waits: false,
            slot_s: 0.1,
            txdelay_s: 0.3,
            txtail_s: 0.0,
            tail: Tail::Out,
            ..Model::ronan_2011()
        }
    }

    /// Returns the model of two Dire Wolfs with Ronan's channel: a slot before each draw, no P in the last frame of a
    /// cycle and no T2, because each frame requests the channel at once. The end of a signal is detected when the
    /// memory of 32 bits has run out, by a check every 10 ms.
    pub const fn direwolf() -> Model {
        Model {
            acknowledgement_bytes: 19,
            stuffing: Stuffing::All,
            last_frame: LastFrame::True,
            csma: Csma::WaitThenDraw,
            carrier_bits: 32.0,
            turnaround_s: 0.005,
            set_up_frames: 2,
            ..Model::ronan_2011()
        }
    }

    /// Returns the preset with this name.
    pub fn preset(name: &str) -> Option<Model> {
        PRESETS.into_iter().find(|(known, ..)| *known == name).map(|(.., model)| model)
    }

    /// Describes what is wrong with the parameters, if anything.
    pub fn flaw(&self) -> Option<&'static str> {
        let is_time = |value: f64| value >= 0.0 && value.is_finite();
        let Model { slot_s, txdelay_s, txtail_s, t2_s, turnaround_s, carrier_bits, .. } = *self;
        let times = [slot_s, txdelay_s, txtail_s, t2_s, turnaround_s, carrier_bits];
        let is_persistence = self.persistence > 0.0 && self.persistence <= 1.0;
        let has_headers = self.header_bytes > 0 && self.acknowledgement_bytes > 0;
        let rules = [
            (self.information_bytes > 0, "a frame must have at least one information octet"),
            (has_headers, "a frame has a header of one octet at least"),
            (is_persistence, "the persistence must be above 0 and at most 1"),
            (times.into_iter().all(is_time), "times must be zero or more"),
            (self.serial_bps.is_none_or(|rate| rate > 0.0 && rate.is_finite()), "rates must be above zero"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, flaw)| flaw)
    }

    /// Number of frames of a file; zero for an empty file.
    pub fn frames(&self, file_bytes: u64) -> u64 {
        file_bytes.div_ceil(u64::from(self.information_bytes))
    }

    /// Number of cycles of a file, each of up to `window` frames and an acknowledgement.
    pub fn cycles(&self, window: u32, file_bytes: u64) -> u64 {
        self.frames(file_bytes).div_ceil(u64::from(window))
    }

    /// Computes the use of time of a file at a channel rate in bit/s, from the send request at the first station to the
    /// end of the last acknowledgement.
    ///
    /// # Panics
    /// Panics if the window is 0.
    pub fn transfer(&self, rate_bps: f64, window: u32, file_bytes: u64) -> Spent {
        assert!(window > 0, "the window must have at least one frame");
        let mut spent = self.data(rate_bps, file_bytes);
        let cycles = self.cycles(window, file_bytes) as f64;
        let turns = if self.streams(window) { cycles.min(1.0) } else { cycles };
        spent.add_turns(self, rate_bps, turns);
        spent.t2_s = self.t2_s * self.cycles_with_t2(window, file_bytes) as f64;
        spent.set_up_s = f64::from(self.set_up_frames) * self.lone_frame_s(rate_bps);
        spent.serial_s = match self.serial_bps {
            Some(rate) if file_bytes > 0 => 2.0 * SERIAL_BITS * f64::from(self.information_bytes) / rate,
            _ => 0.0,
        };
        spent
    }

    /// Computes the payload of a cycle of full frames divided by its time, bit/s: the steady-state throughput.
    ///
    /// # Panics
    /// Panics if the window is 0.
    pub fn throughput_bps(&self, rate_bps: f64, window: u32) -> f64 {
        let endless = Model { set_up_frames: 0, serial_bps: None, ..*self };
        let endless = match self.duplex {
            Duplex::Half => endless,
            Duplex::Full => Model { txtail_s: 0.0, ..endless },
        };
        let frames = if self.streams(window) { 1 } else { window };
        let bytes = u64::from(self.information_bytes) * u64::from(frames);
        let cycle_s = match self.streams(window) {
            false => endless.transfer(rate_bps, window, bytes).total_s(),
            true => endless.data(rate_bps, bytes).total_s(),
        };
        8.0 * bytes as f64 / cycle_s
    }

    /// Returns true if frames follow one another without a gap while acknowledgements go the other way; with a window
    /// of one frame each frame waits for its own acknowledgement.
    fn streams(&self, window: u32) -> bool {
        self.duplex == Duplex::Full && window > 1
    }

    /// Times of the I frames only.
    fn data(&self, rate_bps: f64, file_bytes: u64) -> Spent {
        let frames = self.frames(file_bytes);
        let counted_bytes = match self.last_frame {
            LastFrame::Full => frames * u64::from(self.information_bytes),
            LastFrame::True => file_bytes,
        };
        let payload_s = 8.0 * counted_bytes as f64 / rate_bps;
        let headers_s = 8.0 * f64::from(self.header_bytes) * frames as f64 / rate_bps;
        let stuffing_s = match self.stuffing {
            Stuffing::All => (payload_s + headers_s) / BITS_A_STUFFED_ONE,
            Stuffing::Payload => payload_s / BITS_A_STUFFED_ONE,
            Stuffing::None => 0.0,
            Stuffing::Exact(stuffed) => stuffed.bits_a_byte * counted_bytes as f64 / rate_bps,
        };
        Spent { payload_s, headers_s, stuffing_s, ..Spent::default() }
    }

    /// Duration of a frame without information, from flag to flag.
    fn bare_frame_s(&self, rate_bps: f64) -> f64 {
        let plain_s = 8.0 * f64::from(self.acknowledgement_bytes) / rate_bps;
        plain_s
            + match self.stuffing {
                Stuffing::All => plain_s / BITS_A_STUFFED_ONE,
                Stuffing::Payload | Stuffing::None => 0.0,
                Stuffing::Exact(stuffed) => stuffed.bits_an_acknowledgement / rate_bps,
            }
    }

    /// Turnaround and wait for a slot before one transmission.
    fn before_s(&self, rate_bps: f64) -> (f64, f64) {
        match self.duplex {
            Duplex::Half => (
                self.turnaround_s + self.carrier_bits / rate_bps,
                self.csma.mean_s(self.slot_s, self.persistence),
            ),
            // A station that receives and sends at once does not wait for the other one.
            Duplex::Full => (self.turnaround_s, 0.0),
        }
    }

    /// Times of a transmission of one frame without information.
    fn lone_frame_s(&self, rate_bps: f64) -> f64 {
        let (turnaround_s, access_s) = self.before_s(rate_bps);
        let tail_s = if self.tail == Tail::In { self.txtail_s } else { 0.0 };
        turnaround_s + access_s + self.txdelay_s + self.bare_frame_s(rate_bps) + tail_s
    }

    fn cycles_with_t2(&self, window: u32, file_bytes: u64) -> u64 {
        if self.poll {
            return 0;
        }
        let frames = self.frames(file_bytes);
        if self.streams(window) {
            // Only the last acknowledgement does not coincide with data.
            return frames.min(1);
        }
        let (whole, rest) = (frames / u64::from(window), frames % u64::from(window));
        let waited = |frames: u64| u64::from(frames > 0 && frames < u64::from(self.whole_window));
        whole * waited(u64::from(window)) + waited(rest)
    }
}

/// Use of time, seconds. The parts add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Bits of the file.
    pub payload_s: f64,
    /// Other bits of I frames.
    pub headers_s: f64,
    /// Bits inserted into I frames by stuffing.
    pub stuffing_s: f64,
    /// Waiting for a slot.
    pub access_s: f64,
    /// TXDELAY and TXTAIL.
    pub keying_s: f64,
    /// Bits of the acknowledgements.
    pub acknowledgements_s: f64,
    /// Waiting for T2.
    pub t2_s: f64,
    /// Detection of a free channel, and turnaround.
    pub turnaround_s: f64,
    /// The first and the last frame on the serial lines.
    pub serial_s: f64,
    /// Connecting.
    pub set_up_s: f64,
}

/// Part of the time: name, meaning and value in seconds.
type Part = (&'static str, &'static str, fn(&Spent) -> f64);

impl Spent {
    /// The parts in order.
    pub const PARTS: [Part; 10] = [
        ("payload", "file data", |spent| spent.payload_s),
        ("headers", "flags, addresses, control, PID and check sequence", |spent| spent.headers_s),
        ("stuffing", "bit stuffing in I frames", |spent| spent.stuffing_s),
        ("access", "waiting for a slot", |spent| spent.access_s),
        ("keying", "TXDELAY and TXTAIL", |spent| spent.keying_s),
        ("acks", "acknowledgements", |spent| spent.acknowledgements_s),
        ("T2", "waiting for T2", |spent| spent.t2_s),
        ("turnaround", "detecting a free channel, turnaround", |spent| spent.turnaround_s),
        ("serial", "the first and the last frame on the serial lines", |spent| spent.serial_s),
        ("set-up", "connecting", |spent| spent.set_up_s),
    ];

    /// Total time.
    pub fn total_s(&self) -> f64 {
        Self::PARTS.iter().map(|(.., part)| part(self)).sum()
    }

    /// Adds this number of turnarounds of both stations: data, then an acknowledgement.
    fn add_turns(&mut self, model: &Model, rate_bps: f64, count: f64) {
        let (turnaround_s, access_s) = model.before_s(rate_bps);
        let waits = if model.acknowledgement_waits { 2.0 } else { 1.0 };
        let tails = match model.tail {
            Tail::In => 2.0,
            Tail::Data => 1.0,
            Tail::Out => 0.0,
        };
        self.turnaround_s = 2.0 * count * turnaround_s;
        self.access_s = waits * count * access_s;
        let tails = match model.duplex {
            Duplex::Half => count * tails,
            // One station's keying ends while the other station is keyed, except for the last one.
            Duplex::Full => count.min(1.0) * tails,
        };
        self.keying_s = 2.0 * count * model.txdelay_s + tails * model.txtail_s;
        self.acknowledgements_s = count * model.bare_frame_s(rate_bps);
    }
}
