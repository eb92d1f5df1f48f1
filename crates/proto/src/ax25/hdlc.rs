//! Frames as bits on the channel: flags, bit stuffing, frame check sequence (3.1, 3.6, 3.7).
//!
//! The low bit of each octet comes first (3.8), in memory as on the channel.

use crate::codec::crc::crc16_x25;
use bytes::{BufMut, Bytes, BytesMut};

/// Length of a flag, bits.
pub const FLAG_BITS: u64 = 8;
/// Minimum length of a frame between its flags, bytes (3.9: 136 bits with the flags).
pub const FRAME_BYTES_MIN: usize = 15;

const FLAG: u8 = 0x7e;
/// Length of the frame check sequence, octets.
pub const CHECK_BYTES: usize = 2;
/// Number of consecutive ones after which a zero is inserted.
const ONES_MAX: u32 = 5;
/// Number of consecutive ones that abort a frame (3.10 sends fifteen; seven are neither a flag nor data).
const ABORT_ONES: u32 = 7;

/// Returns the number of bits of a frame on the channel between its flags: its own, the check sequence's and the
/// stuffed ones.
pub fn air_bits(frame: &[u8]) -> u64 {
    let (mut ones, mut stuffed) = (0, 0);
    for octet in frame.iter().copied().chain(crc16_x25(frame).to_le_bytes()) {
        for bit in 0..8 {
            ones = if octet >> bit & 1 == 1 { ones + 1 } else { 0 };
            if ones == ONES_MAX {
                (ones, stuffed) = (0, stuffed + 1);
            }
        }
    }
    8 * (frame.len() + CHECK_BYTES) as u64 + stuffed
}

/// Encodes frames as bits.
#[derive(Debug, Default)]
pub struct Encoder {
    octets: BytesMut,
    /// Bits of the last, incomplete octet.
    open: u8,
    open_bits: u32,
    bits: u64,
}

impl Encoder {
    /// Appends one flag: between frames one is enough (3.1).
    pub fn flag(&mut self) {
        (0..8).for_each(|bit| self.bit(FLAG >> bit & 1 == 1));
    }

    /// Appends a frame with its check sequence, without flags.
    pub fn frame(&mut self, frame: &[u8]) {
        let mut ones = 0;
        for octet in frame.iter().copied().chain(crc16_x25(frame).to_le_bytes()) {
            for bit in 0..8 {
                let one = octet >> bit & 1 == 1;
                self.bit(one);
                ones = if one { ones + 1 } else { 0 };
                if ones == ONES_MAX {
                    self.bit(false);
                    ones = 0;
                }
            }
        }
    }

    fn bit(&mut self, one: bool) {
        self.open |= u8::from(one) << self.open_bits;
        self.open_bits += 1;
        self.bits += 1;
        if self.open_bits == 8 {
            self.octets.put_u8(core::mem::take(&mut self.open));
            self.open_bits = 0;
        }
    }

    /// Returns the bits, with the last octet filled up with zeros, and their number.
    pub fn finish(mut self) -> (Bytes, u64) {
        if self.open_bits > 0 {
            self.octets.put_u8(self.open);
        }
        (self.octets.freeze(), self.bits)
    }
}

/// Counters of a decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecoderCounters {
    /// Frames with a correct check sequence.
    pub frames: u64,
    /// Frames with a wrong check sequence, or not of whole octets.
    pub damaged: u64,
    /// Frames that are too short, too long or aborted.
    pub dropped: u64,
}

/// Decodes frames from bits.
#[derive(Debug)]
pub struct Decoder {
    bytes_max: usize,
    octets: BytesMut,
    open: u8,
    open_bits: u32,
    ones: u32,
    /// True after a flag, until an abort.
    inside: bool,
    heard: DecoderCounters,
}

impl Decoder {
    /// Creates a decoder for frames of at most `bytes_max` bytes without their check sequence.
    pub fn new(bytes_max: usize) -> Self {
        Decoder {
            bytes_max,
            octets: BytesMut::new(),
            open: 0,
            open_bits: 0,
            ones: 0,
            inside: false,
            heard: DecoderCounters::default(),
        }
    }

    /// Returns the counters.
    pub fn heard(&self) -> DecoderCounters {
        self.heard
    }

    /// Receives a bit. Returns the frame that it completes, without check sequence.
    pub fn bit(&mut self, one: bool) -> Option<Bytes> {
        if one {
            self.ones += 1;
            match self.ones {
                // The sixth one may belong to a flag: the next bit decides.
                ..=5 => self.data(true),
                6 => {}
                ABORT_ONES => {
                    self.heard.dropped += u64::from(self.inside && !self.octets.is_empty());
                    self.restart(false);
                }
                _ => {}
            }
            return None;
        }
        let ones = core::mem::take(&mut self.ones);
        match ones {
            ONES_MAX => None,
            6 => self.flag(),
            _ => {
                self.data(false);
                None
            }
        }
    }

    fn data(&mut self, one: bool) {
        if !self.inside {
            return;
        }
        self.open |= u8::from(one) << self.open_bits;
        self.open_bits += 1;
        if self.open_bits == 8 {
            self.octets.put_u8(core::mem::take(&mut self.open));
            self.open_bits = 0;
            if self.octets.len() > self.bytes_max + CHECK_BYTES {
                self.heard.dropped += 1;
                self.restart(false);
            }
        }
    }

    /// Handles a flag: the octets before it may be a frame. Six bits of the flag itself, its zero and five ones, were
    /// taken for data.
    fn flag(&mut self) -> Option<Bytes> {
        const TAKEN_FOR_DATA: u32 = 6;
        let (inside, aligned) = (self.inside, self.open_bits == TAKEN_FOR_DATA);
        let octets = self.octets.split().freeze();
        self.restart(true);
        if !inside || octets.is_empty() {
            return None;
        }
        if octets.len() < FRAME_BYTES_MIN + CHECK_BYTES {
            self.heard.dropped += 1;
            return None;
        }
        let (frame, check) = octets.split_at(octets.len() - CHECK_BYTES);
        if !aligned || crc16_x25(frame).to_le_bytes() != *check {
            self.heard.damaged += 1;
            return None;
        }
        self.heard.frames += 1;
        Some(octets.slice(..octets.len() - CHECK_BYTES))
    }

    fn restart(&mut self, inside: bool) {
        self.octets.clear();
        (self.open, self.open_bits, self.inside) = (0, 0, inside);
    }
}
