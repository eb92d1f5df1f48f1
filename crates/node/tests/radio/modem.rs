//! Demodulator of a station's sound: AFSK of 1,200 bit/s (Bell 202) and G3RUH of 9,600 bit/s.
//!
//! It receives the sound at its source, without noise: one level per sample, a clock that follows the edges, no equaliser.

use crate::channel::SAMPLES_HZ;
use bytes::Bytes;
use longwire_proto::ax25::hdlc;

/// Maximum length of a frame, bytes: a header with digipeaters and 256 of information.
const FRAME_BYTES_MAX: usize = 400;
/// Number of bits after a flag without another one that count as the beginning of a frame.
const BEGUN_BITS: u32 = 16;

/// Event of the demodulator.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A frame has begun.
    Begins,
    /// A frame has ended, with a correct checksum.
    Ends(Bytes),
}

/// Demodulator for one station.
pub(crate) struct Modem {
    rate_bps: u32,
    tones: Option<[Tone; 2]>,
    level: bool,
    /// Phase within the bit, from edge to edge.
    phase: f32,
    last: bool,
    scrambled: u32,
    frames: hdlc::Decoder,
    /// The last eight bits.
    octet: u8,
    /// Bits since the last flag; `None` before the first flag.
    bits: Option<u32>,
}

impl Modem {
    pub(crate) fn new(rate_bps: u32) -> Modem {
        let tones = (rate_bps == 1200).then(|| [Tone::new(1200), Tone::new(2200)]);
        Modem {
            rate_bps,
            tones,
            level: false,
            phase: 0.0,
            last: false,
            scrambled: 0,
            frames: hdlc::Decoder::new(FRAME_BYTES_MAX),
            octet: 0,
            bits: None,
        }
    }

    /// Number of samples of this many bits.
    pub(crate) fn samples(&self, bits: usize) -> usize {
        bits * SAMPLES_HZ / self.rate_bps as usize
    }

    /// Frames damaged at their source.
    pub(crate) fn damaged(&self) -> u64 {
        self.frames.heard().damaged
    }

    /// The station has ended its transmission.
    pub(crate) fn silence(&mut self) {
        self.bits = None;
    }

    /// Handles one sample.
    pub(crate) fn hear(&mut self, sample: i16) -> Option<Event> {
        let level = match &mut self.tones {
            Some([low, high]) => low.hear(sample) > high.hear(sample),
            None => sample > 0,
        };
        if level != self.level {
            self.level = level;
            let late = if self.phase < 0.5 { self.phase } else { self.phase - 1.0 };
            self.phase -= 0.3 * late;
        }
        let before = self.phase;
        self.phase += self.rate_bps as f32 / SAMPLES_HZ as f32;
        let taken = before < 0.5 && self.phase >= 0.5;
        if self.phase >= 1.0 {
            self.phase -= 1.0;
        }
        if taken { self.bit(level) } else { None }
    }

    fn bit(&mut self, level: bool) -> Option<Event> {
        let plain = if self.tones.is_some() { level } else { self.descramble(level) };
        // An edge is a zero.
        let one = plain == std::mem::replace(&mut self.last, plain);
        self.octet = self.octet >> 1 | u8::from(one) << 7;
        let frame = self.frames.bit(one);
        if self.octet == 0x7e {
            self.bits = Some(0);
            return frame.map(Event::Ends);
        }
        let bits = self.bits.as_mut()?;
        *bits += 1;
        (*bits == BEGUN_BITS).then_some(Event::Begins)
    }

    /// 1 + x^12 + x^17.
    fn descramble(&mut self, level: bool) -> bool {
        let plain = level ^ (self.scrambled >> 11 & 1 == 1) ^ (self.scrambled >> 16 & 1 == 1);
        self.scrambled = self.scrambled << 1 | u32::from(level);
        plain
    }
}

/// Amount of a tone in the last bit.
struct Tone {
    /// The tone itself, cosine and sine, for as many samples as it takes to repeat.
    waves: Vec<[i64; 2]>,
    products: Vec<[i64; 2]>,
    sums: [i64; 2],
    at: usize,
}

impl Tone {
    fn new(tone_hz: usize) -> Tone {
        // 200 Hz repeat after 240 samples, and both tones are multiples.
        let wave = |at: usize| {
            let angle = std::f64::consts::TAU * (at * tone_hz) as f64 / SAMPLES_HZ as f64;
            [(angle.cos() * 1024.0) as i64, (angle.sin() * 1024.0) as i64]
        };
        let waves = (0..SAMPLES_HZ / 200).map(wave).collect();
        Tone { waves, products: vec![[0; 2]; SAMPLES_HZ / 1200], sums: [0; 2], at: 0 }
    }

    fn hear(&mut self, sample: i16) -> i64 {
        let wave = self.waves[self.at % self.waves.len()];
        let slot = self.at % self.products.len();
        let parts = self.sums.iter_mut().zip(&mut self.products[slot]);
        for ((sum, old), part) in parts.zip(wave) {
            let product = i64::from(sample) * part;
            *sum += product - std::mem::replace(old, product);
        }
        self.at += 1;
        self.sums.iter().map(|sum| (sum >> 10).pow(2)).sum()
    }
}
