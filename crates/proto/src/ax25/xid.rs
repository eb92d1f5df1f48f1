//! Parameters of stations: the information field of XID frames (4.3.3.7).
//!
//! Bit fields follow figure 4.5; the example of figure 4.6 violates it, and is accepted nevertheless.

use super::frame::Modulo;
use crate::codec::{DecodeError, take};
use crate::time::Duration;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

/// Format identifier: general-purpose information (ISO 8885).
const FORMAT: u8 = 0x82;
/// Group identifier: parameter negotiation.
const GROUP: u8 = 0x80;

const CLASSES: u8 = 2;
const OPTIONS: u8 = 3;
const INFORMATION_BITS: u8 = 6;
const WINDOW: u8 = 8;
const ACKNOWLEDGE_TIMER: u8 = 9;
const RETRIES: u8 = 10;

const CLASS_BALANCED: u32 = 1 << 0;
const CLASS_HALF_DUPLEX: u32 = 1 << 5;
const CLASS_FULL_DUPLEX: u32 = 1 << 6;

const OPTION_REJECT: u32 = 1 << 1;
const OPTION_SELECTIVE_REJECT: u32 = 1 << 2;
const OPTION_MODULO_8: u32 = 1 << 10;
const OPTION_MODULO_128: u32 = 1 << 11;
const OPTION_MULTI_SELECTIVE_REJECT: u32 = 1 << 21;
const OPTION_SEGMENTER: u32 = 1 << 22;
/// Extended address, TEST, 16-bit check sequence, synchronous transmission: always set.
const OPTIONS_ALWAYS: u32 = 1 << 7 | 1 << 13 | 1 << 15 | 1 << 17;

/// Recovery of lost frames, in ascending order: negotiation chooses the lesser (6.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// REJ: retransmission of all frames from the lost one on.
    Reject,
    /// SREJ: retransmission of the lost frame only.
    SelectiveReject,
    /// SREJ with several lost frames.
    MultiSelectiveReject,
}

/// Optional functions (parameter 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalFunctions {
    /// Recovery of lost frames.
    pub recovery: Recovery,
    /// Modulo of the sequence numbers.
    pub modulo: Modulo,
    /// True if packets longer than a frame are segmented (6.6).
    pub segmenter: bool,
}

/// Parameters of one station. An absent parameter keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// True if the station transmits and receives at the same time.
    pub full_duplex: Option<bool>,
    /// Optional functions.
    pub options: Option<OptionalFunctions>,
    /// Maximum information field that the station accepts (N1), bytes.
    pub information_bytes_max: Option<u32>,
    /// Maximum unacknowledged frames that the station accepts (k).
    pub window_frames: Option<u8>,
    /// Acknowledgement timer (T1), in whole milliseconds.
    pub acknowledge_timer: Option<Duration>,
    /// Maximum number of tries (N2).
    pub retries: Option<u8>,
}

impl Parameters {
    /// Decodes an information field. It is optional (4.3.3.7): an empty one contains no parameters.
    ///
    /// # Errors
    /// Fails with another format or group, or if a part is incomplete.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.is_empty() {
            return Ok(Parameters::default());
        }
        let mut fixed = take(input, 4)?;
        if (fixed.get_u8(), fixed.get_u8()) != (FORMAT, GROUP) {
            return Err(DecodeError::invalid("format of the identification", "AX.25 4.3.3.7"));
        }
        let mut group = take(input, usize::from(fixed.get_u16()))?;
        let mut found = Parameters::default();
        while !group.is_empty() {
            let item = take(&mut group, 2)?;
            found.take(item[0], &take(&mut group, usize::from(item[1]))?)?;
        }
        Ok(found)
    }

    fn take(&mut self, identifier: u8, value: &[u8]) -> Result<(), DecodeError> {
        // A parameter without a value counts as absent.
        if value.is_empty() {
            return Ok(());
        }
        match identifier {
            CLASSES => self.full_duplex = Some(flags(value) & CLASS_FULL_DUPLEX != 0),
            OPTIONS => self.options = Some(options(flags(value))?),
            INFORMATION_BITS => self.information_bytes_max = Some(number(value)? / 8),
            WINDOW => self.window_frames = Some(small(number(value)? & 0x7f)),
            ACKNOWLEDGE_TIMER => {
                self.acknowledge_timer = Some(Duration::from_millis(u64::from(number(value)?)));
            }
            RETRIES => self.retries = Some(small(number(value)?)),
            // Unknown parameters are ignored.
            _ => {}
        }
        Ok(())
    }

    /// Appends the information field.
    pub fn encode(&self, output: &mut BytesMut) {
        let mut group = BytesMut::new();
        if let Some(full_duplex) = self.full_duplex {
            let class = if full_duplex { CLASS_FULL_DUPLEX } else { CLASS_HALF_DUPLEX };
            put(&mut group, CLASSES, &(CLASS_BALANCED | class).to_le_bytes()[..2]);
        }
        if let Some(options) = &self.options {
            put(&mut group, OPTIONS, &option_flags(options).to_le_bytes()[..3]);
        }
        if let Some(bytes) = self.information_bytes_max {
            put_number(&mut group, INFORMATION_BITS, bytes.saturating_mul(8), 2);
        }
        if let Some(frames) = self.window_frames {
            put_number(&mut group, WINDOW, u32::from(frames & 0x7f), 1);
        }
        if let Some(timer) = self.acknowledge_timer {
            put_number(
                &mut group,
                ACKNOWLEDGE_TIMER,
                u32::try_from(timer.as_millis()).unwrap_or(u32::MAX),
                2,
            );
        }
        if let Some(retries) = self.retries {
            put_number(&mut group, RETRIES, u32::from(retries), 1);
        }
        output.put_slice(&[FORMAT, GROUP]);
        output.put_u16(group.len() as u16);
        output.put_slice(&group);
    }

    /// Returns the parameters for both stations, if `self` was sent on one side and `other` on the other: the lesser
    /// function, the longer timer, the larger count (6.3.2). Window and length are each station's own for reception,
    /// and are those of `other`: the limits for this side's frames.
    #[must_use]
    pub fn agree(&self, other: &Parameters) -> Parameters {
        let options = match (self.options, other.options) {
            (Some(ours), Some(theirs)) => Some(OptionalFunctions {
                recovery: ours.recovery.min(theirs.recovery),
                modulo: ours.modulo.min(theirs.modulo),
                segmenter: ours.segmenter && theirs.segmenter,
            }),
            (ours, theirs) => theirs.or(ours),
        };
        Parameters {
            full_duplex: both(self.full_duplex, other.full_duplex, |ours, theirs| ours && theirs),
            options,
            information_bytes_max: other.information_bytes_max,
            window_frames: other.window_frames,
            acknowledge_timer: both(self.acknowledge_timer, other.acknowledge_timer, Ord::max),
            retries: both(self.retries, other.retries, Ord::max),
        }
    }
}

impl Parameters {
    /// Replaces window and length by those of `ours`: an answer contains its sender's limits for reception.
    #[must_use]
    pub fn with_own_limits(self, ours: &Parameters) -> Parameters {
        Parameters {
            information_bytes_max: ours.information_bytes_max,
            window_frames: ours.window_frames,
            ..self
        }
    }
}

fn both<T>(ours: Option<T>, theirs: Option<T>, merge: impl Fn(T, T) -> T) -> Option<T> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => Some(merge(ours, theirs)),
        (ours, theirs) => theirs.or(ours),
    }
}

fn small(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// Decodes a bit field; bit 0 is the low bit of its first octet.
fn flags(value: &[u8]) -> u32 {
    value.iter().take(4).rev().fold(0, |flags, octet| flags << 8 | u32::from(*octet))
}

/// Decodes a number, high octet first.
fn number(value: &[u8]) -> Result<u32, DecodeError> {
    if value.len() > 4 {
        return Err(DecodeError::Limit { what: "number in an identification" });
    }
    Ok(value.iter().fold(0, |number, octet| number << 8 | u32::from(*octet)))
}

fn options(flags: u32) -> Result<OptionalFunctions, DecodeError> {
    let has = |flag| flags & flag != 0;
    // Stations that support both set both bits; either alone is the rule.
    let recovery = match (has(OPTION_SELECTIVE_REJECT), has(OPTION_REJECT)) {
        (_, _) if has(OPTION_MULTI_SELECTIVE_REJECT) => Recovery::MultiSelectiveReject,
        (true, _) => Recovery::SelectiveReject,
        (false, true) => Recovery::Reject,
        (false, false) => return Err(DecodeError::invalid("neither REJ nor SREJ", "AX.25 4.3.3.7")),
    };
    let modulo = if has(OPTION_MODULO_128) { Modulo::Extended } else { Modulo::Eight };
    Ok(OptionalFunctions { recovery, modulo, segmenter: has(OPTION_SEGMENTER) })
}

fn option_flags(options: &OptionalFunctions) -> u32 {
    let recovery = match options.recovery {
        Recovery::Reject => OPTION_REJECT,
        Recovery::SelectiveReject => OPTION_SELECTIVE_REJECT,
        Recovery::MultiSelectiveReject => OPTION_SELECTIVE_REJECT | OPTION_MULTI_SELECTIVE_REJECT,
    };
    let modulo = match options.modulo {
        Modulo::Eight => OPTION_MODULO_8,
        Modulo::Extended => OPTION_MODULO_128,
    };
    let segmenter = if options.segmenter { OPTION_SEGMENTER } else { 0 };
    OPTIONS_ALWAYS | recovery | modulo | segmenter
}

fn put(group: &mut BytesMut, identifier: u8, value: &[u8]) {
    group.put_slice(&[identifier, value.len() as u8]);
    group.put_slice(value);
}

/// Appends a number in the smallest number of octets, at least `octets_min`.
fn put_number(group: &mut BytesMut, identifier: u8, number: u32, octets_min: usize) {
    let octets = number.to_be_bytes();
    let zeros = octets.iter().take_while(|octet| **octet == 0).count();
    put(group, identifier, &octets[zeros.min(octets.len() - octets_min)..]);
}
