//! A preset with changes: the parameters that a user gives.

use super::ax25::{Csma, Duplex, LastFrame, Model, PRESETS, Stuffed, Stuffing, Tail};
use super::page::{Options, finding};
use crate::error::{Error, did_you_mean};
use crate::finding::Finding;
use serde::Deserialize;
use std::time::Duration;

/// Changes of a model; `None` for the value of the preset. The units are those of [`Model`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Changes {
    /// Information octets in a full frame.
    pub information: Option<u32>,
    /// Octets of an I frame apart from its information field.
    pub header: Option<u32>,
    /// Octets in an acknowledgement.
    pub acknowledgement: Option<u32>,
    /// Part of the frames to which bit stuffing applies.
    pub stuffing: Option<StuffingChoice>,
    /// Length assumed for the last frame of a file.
    pub last_frame: Option<LastFrame>,
    /// Model of the mean wait for a slot.
    pub csma: Option<Csma>,
    /// True if a station also waits for a slot before an acknowledgement.
    pub acknowledgement_waits: Option<bool>,
    /// Slot time.
    pub slot: Option<Duration>,
    /// Probability of transmitting in a slot.
    pub persistence: Option<f64>,
    /// Time from key-up to the first frame.
    pub txdelay: Option<Duration>,
    /// Time from the last frame to key-down.
    pub txtail: Option<Duration>,
    /// Transmissions that end with TXTAIL.
    pub tail: Option<Tail>,
    /// Time for which the receiver waits for another frame.
    pub t2: Option<Duration>,
    /// True if the last frame of a window has the P bit set.
    pub poll: Option<bool>,
    /// Window that is acknowledged without waiting for T2.
    pub whole_window: Option<u32>,
    /// Time to detect a free channel, in bits.
    pub carrier: Option<f64>,
    /// Further delay at each turn from receiving to sending.
    pub turnaround: Option<Duration>,
    /// Rate of the serial line between host and TNC, bit/s.
    pub serial: Option<f64>,
    /// Half or full duplex.
    pub duplex: Option<Duplex>,
    /// Transmissions before the first window.
    pub set_up: Option<u32>,
}

/// Choice of the part of the frames to which bit stuffing applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StuffingChoice {
    /// Complete frames.
    All,
    /// Information octets.
    Payload,
    /// Without bit stuffing.
    None,
    /// Actual bits of the frames of a file.
    Exact,
}

impl Changes {
    /// Returns the preset with these changes. The stuffing is still that of the preset.
    fn over(&self, preset: Model) -> Model {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        Model {
            information_bytes: self.information.unwrap_or(preset.information_bytes),
            header_bytes: self.header.unwrap_or(preset.header_bytes),
            acknowledgement_bytes: self.acknowledgement.unwrap_or(preset.acknowledgement_bytes),
            last_frame: self.last_frame.unwrap_or(preset.last_frame),
            csma: self.csma.unwrap_or(preset.csma),
            acknowledgement_waits: self.acknowledgement_waits.unwrap_or(preset.acknowledgement_waits),
            slot_s: seconds(self.slot).unwrap_or(preset.slot_s),
            persistence: self.persistence.unwrap_or(preset.persistence),
            txdelay_s: seconds(self.txdelay).unwrap_or(preset.txdelay_s),
            txtail_s: seconds(self.txtail).unwrap_or(preset.txtail_s),
            tail: self.tail.unwrap_or(preset.tail),
            t2_s: seconds(self.t2).unwrap_or(preset.t2_s),
            poll: self.poll.unwrap_or(preset.poll),
            whole_window: self.whole_window.unwrap_or(preset.whole_window),
            carrier_bits: self.carrier.unwrap_or(preset.carrier_bits),
            turnaround_s: seconds(self.turnaround).unwrap_or(preset.turnaround_s),
            serial_bps: self.serial.or(preset.serial_bps),
            duplex: self.duplex.unwrap_or(preset.duplex),
            set_up_frames: self.set_up.unwrap_or(preset.set_up_frames),
            ..preset
        }
    }

    fn stuffing(&self, model: &Model, contents: Option<&[u8]>) -> Result<Stuffing, Error> {
        Ok(match self.stuffing {
            None => model.stuffing,
            Some(StuffingChoice::All) => Stuffing::All,
            Some(StuffingChoice::Payload) => Stuffing::Payload,
            Some(StuffingChoice::None) => Stuffing::None,
            Some(StuffingChoice::Exact) => {
                let needed = Error::new("`--stuffing exact` needs a file").hint("give it with --file");
                Stuffing::Exact(Stuffed::count(contents.ok_or(needed)?, model.information_bytes))
            }
        })
    }
}

/// Computation of a model as a user asks for it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of the preset.
    pub preset: String,
    /// Changes of the preset.
    pub changes: Changes,
    /// Channel rates, bit/s.
    pub rates_bps: Vec<f64>,
    /// File length, bytes, unless there are contents.
    pub file_bytes: u64,
    /// Contents of the file.
    pub contents: Option<Vec<u8>>,
    /// Command that reproduces the page.
    pub command: String,
}

impl Request {
    /// Computes the figures.
    ///
    /// # Errors
    /// Fails if there is no such preset, or a parameter is invalid.
    pub fn finding(&self) -> Result<Finding, Error> {
        let preset = Model::preset(&self.preset).ok_or_else(|| {
            let known = PRESETS.map(|(name, ..)| name);
            Error::new(format!("no such preset: `{}`", self.preset)).hint(did_you_mean(
                &self.preset,
                known,
                format!("known presets: {}", known.join(", ")),
            ))
        })?;
        let model = self.changes.over(preset);
        if let Some(flaw) = model.flaw() {
            return Err(Error::new(format!("invalid channel: {flaw}"))
                .hint("see `longwire model ax25 --help` for every parameter and its unit"));
        }
        let contents = self.contents.as_deref();
        let model = Model { stuffing: self.changes.stuffing(&model, contents)?, ..model };
        let name = if model == preset { self.preset.clone() } else { format!("{} (modified)", self.preset) };
        Ok(finding(&Options {
            name,
            model,
            rates_bps: self.rates_bps.clone(),
            file_bytes: contents.map_or(self.file_bytes, |contents| contents.len() as u64),
            command: self.command.clone(),
        }))
    }
}
