//! `longwire model`.

use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::output::Show;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use longwire_lab::format::shell_word;
use longwire_lab::model::ax25::{Csma, Duplex, LastFrame, PRESETS, Tail};
use longwire_lab::model::{Changes, Request, StuffingChoice};
use std::env;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Compute the performance of an error-free link in closed form
#[derive(Debug, Args)]
pub(crate) struct Model {
    #[command(subcommand)]
    which: ModelKind,
}

#[derive(Debug, Subcommand)]
enum ModelKind {
    Ax25(Box<Ax25>),
}

/// Connected-mode AX.25 on a radio channel: time and throughput for windows of 1 to 7 frames
///
/// A preset sets every parameter; options override individual ones. Give times with a unit (100ms, 1.5s) and lengths in
/// octets, both flags included.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
struct Ax25 {
    /// Preset to start from
    #[arg(long, value_name = "NAME", default_value = PRESETS[0].0, value_parser = presets())]
    preset: String,
    /// Channel rates, bit/s
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1200,9600", value_parser = rate)]
    rate: Vec<f64>,
    /// File length, bytes
    #[arg(long, value_name = "N", default_value = "7182", value_parser = flag::whole::<u64>(0, u64::MAX))]
    bytes: u64,
    /// File to take the length from, instead of --bytes
    #[arg(long, value_name = "FILE", conflicts_with = "bytes")]
    file: Option<PathBuf>,
    /// Information octets in a full frame (N1, PACLEN)
    #[arg(long, value_name = "N", value_parser = flag::whole::<u32>(1, u32::MAX.into()))]
    information: Option<u32>,
    /// Octets of an I frame apart from its information field
    #[arg(long, value_name = "N", value_parser = flag::whole::<u32>(0, u32::MAX.into()))]
    header: Option<u32>,
    /// Octets in an acknowledgement
    #[arg(long, value_name = "N", value_parser = flag::whole::<u32>(0, u32::MAX.into()))]
    acknowledgement: Option<u32>,
    /// Part of the frame to which bit stuffing applies: `exact` uses the bytes of --file, the others assume random bytes
    #[arg(long, value_name = "HOW")]
    stuffing: Option<StuffingOption>,
    /// Length assumed for the last frame of the file
    #[arg(long, value_name = "HOW", value_parser = flag::word(LastFrame::NAMES))]
    last_frame: Option<LastFrame>,
    /// Model of the mean wait for a slot
    #[arg(long, value_name = "HOW", value_parser = flag::word(Csma::NAMES))]
    csma: Option<Csma>,
    /// Whether a station also waits for a slot before an acknowledgement
    #[arg(long, value_name = "BOOL")]
    acknowledgement_waits: Option<bool>,
    /// Slot time (T102)
    #[arg(long, value_name = "TIME", value_parser = flag::time)]
    slot: Option<Duration>,
    /// Probability of transmitting in a slot: (p + 1) / 256
    #[arg(long, value_name = "SHARE", value_parser = flag::number)]
    persistence: Option<f64>,
    /// Time from key-up to the first frame (TXDELAY, T103)
    #[arg(long, value_name = "TIME", value_parser = flag::time)]
    txdelay: Option<Duration>,
    /// Time from the last frame to key-down (TXTAIL)
    #[arg(long, value_name = "TIME", value_parser = flag::time)]
    txtail: Option<Duration>,
    /// Transmissions that end with TXTAIL
    #[arg(long, value_name = "HOW", value_parser = flag::word(Tail::NAMES))]
    tail: Option<Tail>,
    /// Time for which the receiver waits for another frame before it responds (T2)
    #[arg(long, value_name = "TIME", value_parser = flag::time)]
    t2: Option<Duration>,
    /// Whether the last frame of a window has the P bit set, which avoids the wait for T2
    #[arg(long, value_name = "BOOL")]
    poll: Option<bool>,
    /// Window size that is acknowledged without waiting for T2
    #[arg(long, value_name = "N", value_parser = flag::whole::<u32>(0, u32::MAX.into()))]
    whole_window: Option<u32>,
    /// Time to detect a free channel, in bits
    #[arg(long, value_name = "BITS", value_parser = flag::number)]
    carrier: Option<f64>,
    /// Further delay of a station and its TNC each time it turns from receiving to sending
    #[arg(long, value_name = "TIME", value_parser = flag::time)]
    turnaround: Option<Duration>,
    /// Rate of the serial line between host and TNC, bit/s
    #[arg(long, value_name = "N", value_parser = rate)]
    serial: Option<f64>,
    /// Half or full duplex. With `full` and a window of 2 or more, frames follow one another without a gap while
    /// acknowledgements go the other way; a window of 1 still waits for each acknowledgement, but not for a slot or TXTAIL
    #[arg(long, value_name = "HOW", value_parser = flag::word(Duplex::NAMES))]
    duplex: Option<Duplex>,
    /// Transmissions before the first window; 2 to connect
    #[arg(long, value_name = "N", value_parser = flag::whole::<u32>(0, u32::MAX.into()))]
    set_up: Option<u32>,
    #[command(flatten)]
    show: Show,
}

/// Octets to which bit stuffing applies.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StuffingOption {
    /// All of every frame
    All,
    /// Only the information octets
    Payload,
    /// No bit stuffing
    None,
    /// The actual bits of the frames
    Exact,
}

fn presets() -> PossibleValuesParser {
    PossibleValuesParser::new(PRESETS.map(|(name, ..)| name))
}

/// Rates that a model is computed for, bit/s; those of link profiles.
const RATES_BPS: RangeInclusive<f64> = 1.0..=1e12;

fn rate(word: &str) -> Result<f64, String> {
    let rate = word.parse().ok().filter(|rate: &f64| RATES_BPS.contains(rate));
    rate.ok_or_else(|| "a rate must be a number from 1 to 1e12".to_owned())
}

fn after_help() -> String {
    let line = |(name, meaning, _)| format!("  {name:14}{meaning}");
    format!("Presets:\n{}", PRESETS.map(line).join("\n"))
}

fn read(path: &Path) -> CommandResult<Vec<u8>> {
    longwire_settings::file::read(path).map_err(|error| {
        let what = format!("cannot read {}: {error}", path.display());
        CommandFailure::failed(what, "give a readable file with --file, or a length with --bytes")
    })
}

impl Model {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.which {
            ModelKind::Ax25(ax25) => ax25.run(),
        }
    }
}

impl Ax25 {
    fn run(&self) -> CommandResult {
        let words: Vec<String> = env::args().skip(1).map(|word| shell_word(&word)).collect();
        let request = Request {
            preset: self.preset.clone(),
            changes: self.changes(),
            rates_bps: self.rate.clone(),
            file_bytes: self.bytes,
            contents: self.file.as_deref().map(read).transpose()?,
            command: format!("longwire {}", words.join(" ")),
        };
        self.show.carry_out(&request.finding().map_err(CommandFailure::Usage)?)
    }

    fn changes(&self) -> Changes {
        Changes {
            information: self.information,
            header: self.header,
            acknowledgement: self.acknowledgement,
            stuffing: self.stuffing.map(StuffingOption::choice),
            last_frame: self.last_frame,
            csma: self.csma,
            acknowledgement_waits: self.acknowledgement_waits,
            slot: self.slot,
            persistence: self.persistence,
            txdelay: self.txdelay,
            txtail: self.txtail,
            tail: self.tail,
            t2: self.t2,
            poll: self.poll,
            whole_window: self.whole_window,
            carrier: self.carrier,
            turnaround: self.turnaround,
            serial: self.serial,
            duplex: self.duplex,
            set_up: self.set_up,
        }
    }
}

impl StuffingOption {
    fn choice(self) -> StuffingChoice {
        match self {
            StuffingOption::All => StuffingChoice::All,
            StuffingOption::Payload => StuffingChoice::Payload,
            StuffingOption::None => StuffingChoice::None,
            StuffingOption::Exact => StuffingChoice::Exact,
        }
    }
}
