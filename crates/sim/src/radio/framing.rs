//! Bits of a frame on the air: HDLC as in packet radio, or an Ethernet frame as in D-STAR DD.

use super::config::Framing;
use crate::airtime::{Airtime, scale};
use crate::channel::Fcs;
use bytes::Bytes;
use longwire_proto::ax25::hdlc::{self, Decoder, Encoder};
use longwire_proto::service::Shares;

/// Minimum length of an Ethernet frame before its check sequence, bytes.
const ETHERNET_BYTES_MIN: usize = 60;
/// Bytes of the flag and check sequence of an HDLC frame.
const HDLC_AROUND_BYTES: u32 = 3;

impl Framing {
    /// Bits before the first frame of a transmission, and after each frame.
    pub(super) fn flag_bits(self) -> u64 {
        match self {
            Framing::Hdlc => hdlc::FLAG_BITS,
            Framing::Ethernet => 0,
        }
    }

    /// Bits of a frame with its check sequence.
    pub(super) fn air_bits(self, frame: &[u8]) -> u64 {
        match self {
            Framing::Hdlc => hdlc::air_bits(frame),
            Framing::Ethernet => {
                8 * (frame.len().max(ETHERNET_BYTES_MIN) as u64 + u64::from(Fcs::Crc32.bytes()))
            }
        }
    }

    /// Accounts nanoseconds of a frame according to its shares.
    pub(super) fn enter(self, nanos: u64, frame: &[u8], shares: &Shares, airtime: &mut Airtime) {
        let length = frame.len() as u32;
        match self {
            Framing::Hdlc => {
                let bits = hdlc::air_bits(frame);
                let stuffed = bits - 8 * (frame.len() + hdlc::CHECK_BYTES) as u64;
                let stuffing = scale(nanos, stuffed, bits + hdlc::FLAG_BITS);
                airtime.stuffing += stuffing;
                airtime.add_frame(nanos - stuffing, length, HDLC_AROUND_BYTES, shares);
            }
            Framing::Ethernet => {
                let around = (self.air_bits(frame) / 8) as u32 - length;
                airtime.add_frame(nanos, length, around, shares);
            }
        }
    }

    /// Returns the frame that a receiver makes of this one with wrong bits, counted from the first bit of the frame; `None`
    /// if its check fails.
    pub(super) fn received(self, frame: &Bytes, wrong: &[u64]) -> Option<Bytes> {
        let flip = |octets: &mut [u8], bit: u64| octets[(bit / 8) as usize] ^= 1 << (bit % 8);
        match self {
            Framing::Hdlc => {
                let mut encoder = Encoder::default();
                encoder.flag();
                encoder.frame(frame);
                encoder.flag();
                let (octets, bits) = encoder.finish();
                let mut octets = octets.to_vec();
                wrong.iter().for_each(|bit| flip(&mut octets, hdlc::FLAG_BITS + bit));
                let mut decoder = Decoder::new(frame.len());
                let mut bits = (0..bits).map(|bit| octets[(bit / 8) as usize] >> (bit % 8) & 1 == 1);
                bits.find_map(|bit| decoder.bit(bit))
            }
            Framing::Ethernet => {
                let mut octets = frame.to_vec();
                octets.resize(frame.len().max(ETHERNET_BYTES_MIN), 0);
                Fcs::Crc32.append(&mut octets);
                wrong.iter().for_each(|bit| flip(&mut octets, *bit));
                let passes = Fcs::Crc32.strip(&mut octets);
                octets.truncate(frame.len());
                passes.then(|| octets.into())
            }
        }
    }
}
