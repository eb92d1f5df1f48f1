//! `longwire monitor`.

use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::node_connection::print;
use crate::output::talk;
use clap::Args;
use longwire_node::tnc::{ListenEvent, TncAddress, listen};
use longwire_proto::ax25::{self, Callsign, ChannelMonitor, Control, Frame, Modulo, Unnumbered, Windows};
use longwire_proto::kiss::{Checksum, Config};
use longwire_proto::setting::Settings as _;
use longwire_settings::error::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Checksums on the line between host and TNC.
const CHECKSUMS: flag::Words<Checksum> =
    &[("none", Checksum::None), ("exclusive-or", Checksum::ExclusiveOr), ("smack", Checksum::Smack)];

/// Show the AX.25 frames that a TNC receives, and a summary of the window sizes in use
///
/// Press Ctrl-C to stop. Longwire sends nothing and does not change the parameters of the TNC. A window is the number of
/// I frames from one station until the other station transmits; frames repeated by digipeaters are shown but not counted.
#[derive(Debug, Args)]
pub(crate) struct Monitor {
    /// TNC in KISS mode (host:port, /dev/ttyUSB0 or /dev/ttyUSB0@38400 [default speed: 9600]), or AGWPE server
    /// (agwpe:host:port)
    #[arg(long, value_name = "WHERE")]
    tnc: String,
    /// KISS or AGWPE port, or address of a TNC that shares a line with others, 0 to 15
    #[arg(long, value_name = "N", default_value = "0", value_parser = flag::whole::<u8>(0, 15))]
    port: u8,
    /// Checksum on the line between host and TNC
    #[arg(long, value_name = "KIND", default_value = "none", value_parser = flag::word(CHECKSUMS))]
    checksum: Checksum,
    /// Print JSON: one line per frame, then one with the windows
    #[arg(long)]
    json: bool,
}

impl Monitor {
    pub(crate) fn run(&self) -> CommandResult {
        let place: TncAddress = self.tnc.parse().map_err(|what| {
            CommandFailure::usage(format!("`{}` is not a valid TNC address", self.tnc), what)
        })?;
        let config = Config { port: self.port, checksum: self.checksum, ..Config::default() };
        config.check().map_err(|fault| CommandFailure::Usage(fault.into()))?;
        if matches!(place, TncAddress::Agwpe(_)) && self.checksum != Checksum::None {
            let hint = "use --checksum only with a TNC in KISS mode";
            return Err(CommandFailure::usage("AGWPE does not use a checksum", hint));
        }
        let mut watcher = ChannelMonitor::new();
        let mut outcome = Ok(());
        let listening = listen(place, config, |heard| {
            outcome = self.show(&mut watcher, heard);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        outcome?;
        listening.map_err(|error| Error::new(format!("cannot listen: {error}")))?;
        let windows = watcher.windows();
        print(&if self.json {
            json!({ "windows": by_name(&windows) }).to_string()
        } else {
            histogram(&windows)
        })
    }

    fn show(&self, watcher: &mut ChannelMonitor, heard: ListenEvent) -> CommandResult {
        let bytes = match heard {
            ListenEvent::Open => {
                talk(format_args!("listening on {}", self.tnc));
                return Ok(());
            }
            ListenEvent::Lost(why) => {
                talk(format_args!("no connection to {}: {why}; retrying", self.tnc));
                return Ok(());
            }
            ListenEvent::Frame(bytes) => bytes,
        };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let length = bytes.len();
        print(&match watcher.hear(bytes) {
            Ok(heard) if self.json => as_json(time, &heard).to_string(),
            Ok(heard) => format!("{}  {}", clock(time), words(&heard)),
            Err(error) if self.json => {
                json!({ "time": time.as_secs_f64(), "bytes": length, "damaged": error.to_string() })
                    .to_string()
            }
            Err(error) => format!("{}  invalid frame, {length} bytes: {error}", clock(time)),
        })
    }
}

/// Formats the time of day, UTC.
fn clock(time: Duration) -> String {
    let s = time.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}.{:03}", s / 3600, s / 60 % 60, s % 60, time.subsec_millis())
}

fn via(frame: &Frame) -> Vec<String> {
    let hops = frame.address.path.iter();
    hops.map(|hop| format!("{}{}", hop.station, if hop.repeated { "*" } else { "" })).collect()
}

fn kind(control: Control) -> String {
    match control {
        Control::Unnumbered { function: Unnumbered::Unknown(octet), .. } => format!("U {octet:02X}"),
        known => known.name().to_owned(),
    }
}

fn words(heard: &ax25::MonitoredFrame) -> String {
    let frame = &heard.frame;
    let mut out = format!("{} > {}", frame.address.source, frame.address.destination);
    let path = via(frame);
    if !path.is_empty() {
        let _ = write!(out, " via {}", path.join(","));
    }
    let _ = write!(out, "  {}", kind(frame.control));
    match frame.control {
        Control::Information { send, receive, .. } => {
            let _ = write!(out, " S{send} R{receive}");
        }
        Control::Supervisory { receive, .. } => {
            let _ = write!(out, " R{receive}");
        }
        Control::Unnumbered { .. } => {}
    }
    if frame.control.poll_final() {
        out.push_str(if frame.is_command() { " P" } else { " F" });
    }
    if frame.control.has_pid() {
        let _ = write!(out, " pid {:02X}", frame.pid);
    }
    if !frame.information.is_empty() {
        let _ = write!(out, ", {} bytes", frame.information.len());
    }
    if let Some(burst) = heard.burst {
        let _ = write!(out, ", frame {burst} of the window");
    }
    if let Some(outstanding) = heard.outstanding {
        let _ = write!(out, ", {outstanding} unacknowledged");
    }
    out
}

fn as_json(time: Duration, heard: &ax25::MonitoredFrame) -> Value {
    let frame = &heard.frame;
    let (send, receive) = match frame.control {
        Control::Information { send, receive, .. } => (Some(send), Some(receive)),
        Control::Supervisory { receive, .. } => (None, Some(receive)),
        Control::Unnumbered { .. } => (None, None),
    };
    json!({
        "time": time.as_secs_f64(),
        "from": frame.address.source.to_string(),
        "to": frame.address.destination.to_string(),
        "via": via(frame),
        "kind": kind(frame.control),
        "command": frame.is_command(),
        "poll_final": frame.control.poll_final(),
        "modulo": if heard.modulo == Modulo::Eight { 8 } else { 128 },
        "send": send,
        "receive": receive,
        "pid": frame.control.has_pid().then_some(frame.pid),
        "information_bytes": frame.information.len(),
        "window": heard.burst,
        "unacknowledged": heard.outstanding,
    })
}

fn by_name(windows: &BTreeMap<Callsign, Windows>) -> BTreeMap<String, &Windows> {
    windows.iter().map(|(sender, windows)| (sender.to_string(), windows)).collect()
}

fn histogram(windows: &BTreeMap<Callsign, Windows>) -> String {
    const WIDTH: u64 = 50;
    if windows.is_empty() {
        return "No I frames received.".into();
    }
    let mut out = String::from(
        "\nWindow sizes in use: station, I frames until the other station transmitted, number of windows\n",
    );
    let most = windows.values().flat_map(|windows| windows.values()).max().copied().unwrap_or(1).max(1);
    for (sender, windows) in windows {
        for (frames, times) in windows {
            let bar = "#".repeat((times * WIDTH).div_ceil(most) as usize);
            let _ = writeln!(out, "{:<9} {frames:>3} {times:>6}  {bar}", sender.to_string());
        }
    }
    out
}
