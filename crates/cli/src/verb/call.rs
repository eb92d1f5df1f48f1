//! `longwire call`.

use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::output::talk;
use bytes::Bytes;
use clap::Args;
use longwire_node::tnc::{Call as StationCall, CallEnd, CallEvent, Sender, TEXTS_MAX, TncAddress, texts};
use longwire_proto::ax25::{Callsign, DIGIPEATERS_MAX};
use longwire_proto::controller::ChannelParameters;
use longwire_proto::service::CloseReason;
use longwire_settings::error::Error;
use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

/// Maximum length of a text that is read at once, bytes. A terminal passes a line at a time.
const TEXT_BYTES_MAX: usize = 256;

/// Call a station on packet radio, and exchange text with it
///
/// A terminal in the connected mode of AX.25, for mailboxes, nodes and people. What is typed is sent line by line, what comes is
/// printed without control characters. Ctrl-D ends the connection in good order, as does Ctrl-C; a second Ctrl-C ends the
/// command at once. The exit status is 0 if the connection ended in good order.
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// Callsign of the station, with its SSID if it has one: DL1XYZ-7
    #[arg(value_name = "CALLSIGN")]
    peer: Callsign,
    /// TNC in KISS mode (host:port, /dev/ttyUSB0 or /dev/ttyUSB0@38400 [default speed: 9600]), or AGWPE server
    /// (agwpe:host:port)
    #[arg(long, value_name = "WHERE")]
    tnc: String,
    /// Callsign of this station; a node that runs with the same TNC needs another one
    #[arg(long, value_name = "CALLSIGN")]
    own: Callsign,
    /// Digipeaters, the nearest first: DB0ABC,DB0DEF
    #[arg(long, value_name = "CALLSIGN,..", value_delimiter = ',')]
    via: Vec<Callsign>,
    /// KISS or AGWPE port, 0 to 15
    #[arg(long, value_name = "N", default_value = "0", value_parser = flag::whole::<u8>(0, 15))]
    port: u8,
    /// Rate of the radio channel, bit/s
    #[arg(long, value_name = "BPS", default_value_t = 1200, value_parser = clap::value_parser!(u32).range(300..=10_000_000))]
    rate: u32,
    /// Time from key-up to the first frame (TXDELAY)
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = flag::time)]
    tx_delay: Duration,
    /// Number of repetitions without an answer after which the call is given up
    #[arg(long, value_name = "N", default_value = "10", value_parser = flag::whole::<u8>(1, 100))]
    retries: u8,
}

impl Call {
    pub(crate) fn run(&self) -> CommandResult {
        let call = self.call()?;
        let (send, input) = texts(TEXTS_MAX);
        // The thread ends with the process: nothing can wake it from its read.
        thread::spawn(move || read_input(&send));
        let mut last = b'\n';
        let ended = call.run(input, |event| {
            match event {
                CallEvent::Calling => talk(format_args!("calling {} over {}", self.peer, self.tnc)),
                CallEvent::Lost(why) => talk(format_args!("no connection to {}: {why}; retrying", self.tnc)),
                CallEvent::Connected => {
                    talk(format_args!("connected to {}; Ctrl-D ends the connection", self.peer))
                }
                CallEvent::Received(bytes) => {
                    let text = printable(&bytes);
                    last = text.bytes().last().unwrap_or(last);
                    let mut out = io::stdout().lock();
                    out.write_all(text.as_bytes()).and_then(|()| out.flush())?;
                }
            }
            Ok(())
        });
        let end = match ended {
            Ok(end) => end,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Err(CommandFailure::OutputClosed);
            }
            Err(error) => return Err(Error::new(format!("the call has ended: {error}")).into()),
        };
        if last != b'\n' {
            talk(format_args!(""));
        }
        self.result(end)
    }

    fn call(&self) -> CommandResult<StationCall> {
        let place: TncAddress = self.tnc.parse().map_err(|what| {
            CommandFailure::usage(format!("`{}` is not a valid TNC address", self.tnc), what)
        })?;
        for station in [&self.own, &self.peer].into_iter().chain(&self.via) {
            if station.is_placeholder() {
                let what = format!("{station} is an example of a callsign");
                return Err(CommandFailure::usage(what, "every transmission must identify its operator"));
            }
        }
        if self.own == self.peer {
            let what = format!("{} cannot call itself", self.own);
            return Err(CommandFailure::usage(what, "give this station another SSID"));
        }
        if self.via.len() > DIGIPEATERS_MAX {
            let what = format!("--via has {} digipeaters", self.via.len());
            return Err(CommandFailure::usage(what, "a frame can name at most eight (AX.25 3.12.5)"));
        }
        let channel = ChannelParameters {
            rate_bps: self.rate,
            tx_delay: self.tx_delay,
            ..ChannelParameters::default()
        };
        longwire_proto::setting::Settings::check(&channel)
            .map_err(|fault| CommandFailure::Usage(fault.into()))?;
        let (own, peer, path) = (self.own, self.peer, self.via.clone());
        Ok(StationCall { own, peer, path, place, port: self.port, channel, retries: self.retries })
    }

    /// Prints how the call ended.
    fn result(&self, end: CallEnd) -> CommandResult {
        if end.unacknowledged > 0 || end.unsent > 0 {
            talk(format_args!(
                "{} packets were not acknowledged and may be lost, {} lines were not sent",
                end.unacknowledged, end.unsent
            ));
        }
        let peer = &self.peer;
        let (what, hint) = match (end.reason, end.was_connected) {
            (Some(CloseReason::Finished), true) => {
                talk(format_args!("disconnected from {peer}"));
                return Ok(());
            }
            (None | Some(CloseReason::Finished), _) => return Err(CommandFailure::Interrupted),
            (Some(CloseReason::Refused), _) => (
                format!("{peer} is busy or refuses the connection"),
                "try again later, or another SSID of it",
            ),
            (Some(CloseReason::TimedOut), false) => (
                format!("no answer from {peer} after {} repetitions", self.retries),
                "`longwire monitor --tnc` shows whether it can be heard; perhaps a digipeater reaches it (--via)",
            ),
            (Some(CloseReason::TimedOut), true) => {
                (format!("{peer} no longer answers"), "the channel may be busy or the path poor; try again")
            }
            (Some(_), _) => (format!("the connection to {peer} was given up"), "try again"),
        };
        Err(CommandFailure::failed(what, hint))
    }
}

/// Text without control characters: a stranger must not control the terminal. Lines end in CR on packet radio.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    let is_shown = |character: &char| {
        let turns_text = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        matches!(character, '\n' | '\t') || !(character.is_control() || turns_text)
    };
    text.chars().filter(is_shown).collect()
}

/// Reads the standard input until it or the call ends.
fn read_input(send: &Sender) {
    let mut input = io::stdin().lock();
    let mut text = [0; TEXT_BYTES_MAX];
    loop {
        let length = match input.read(&mut text) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let octets = text[..length].iter().map(|octet| if *octet == b'\n' { b'\r' } else { *octet });
        if !send.send(octets.collect::<Bytes>()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stranger_sends_cannot_control_the_terminal() {
        assert_eq!(printable(b"one\rtwo\r\nthree\n"), "one\ntwo\nthree\n");
        assert_eq!(printable(b"\x1b[2J\x07red\x08\x00\tend"), "[2Jred\tend");
        assert_eq!(printable("a\u{202e}b\u{9b}31m".as_bytes()), "ab31m");
        assert_eq!(printable(b"caf\xe9"), "caf\u{fffd}");
    }
}
