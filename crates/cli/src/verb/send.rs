//! `longwire send`.

use crate::endpoint;
use crate::failure::Failure;
use crate::output::talk;
use crate::reach::{Reach, Talk, bytes, seconds};
use bytes::{Bytes, BytesMut};
use clap::{Args, ValueEnum};
use longwire_node::envelope;
use longwire_node::message::{Message, Options, Reply, Request};
use longwire_proto::service::{BundleVersion, Priority};
use longwire_settings::error::Error;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes of the file that are handed over at once.
const PIECE_BYTES: usize = 256 * 1024;
/// How often the progress is shown.
const BETWEEN: Duration = Duration::from_millis(250);
/// What is done in less time shows no progress.
const BEFORE_FIRST: Duration = Duration::from_secs(2);

/// Send a file; it is safe with this node when the command ends
///
/// With --wait the command ends when the destination has said that it was delivered. Interrupted before that, the file
/// still goes on.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where it goes: dtn://bob/files, ipn:7.1
    #[arg(long, value_name = "EID")]
    to: String,
    /// Wait until the destination says that it was delivered
    #[arg(long)]
    wait: bool,
    /// How long it is worth delivering: 90s, 20min, 12h, 3d
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = lifetime)]
    lifetime: f64,
    /// How urgent it is
    #[arg(long, value_enum, default_value_t = Urgency::Normal)]
    priority: Urgency,
    /// The version of the Bundle Protocol: 6 reaches nodes of DTN2, ION and IBR-DTN; without it the node decides
    #[arg(long, value_name = "6|7", value_parser = version)]
    bundle_version: Option<BundleVersion>,
    /// Ask for custody transfer: this node keeps the bundle until another one is responsible for it (version 6)
    #[arg(long)]
    custody: bool,
    /// The name that it arrives under [default: the file's; standard input has none]
    #[arg(long, value_name = "NAME", conflicts_with = "raw")]
    name: Option<String>,
    /// Send the bytes as they are, without the file's name: for programs that expect that
    #[arg(long)]
    raw: bool,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Urgency {
    /// When nothing else wants the line
    Bulk,
    /// The usual
    Normal,
    /// Before everything else
    Expedited,
}

fn lifetime(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err("give a time with its unit: s, min, h or d".into()),
    };
    let time = number.trim().parse::<f64>().map_err(|error| error.to_string())? * unit;
    if time > 0.0 && time.is_finite() { Ok(time) } else { Err("it would be over before it began".into()) }
}

fn version(text: &str) -> Result<BundleVersion, String> {
    match text {
        "6" => Ok(BundleVersion::V6),
        "7" => Ok(BundleVersion::V7),
        _ => Err("there are versions 6 and 7".into()),
    }
}

/// How far it is.
struct Journey {
    visible: bool,
    began: Instant,
    shown_at: Instant,
    width: usize,
    length: u64,
}

impl Send {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let to = endpoint::check(&self.to)?;
        let mut file = self.open()?;
        let about = file.metadata().map_err(|error| self.unreadable(&error))?;
        if !about.is_file() {
            let what = format!("{} is not a file", self.file.display());
            return Err(Failure::Usage(Error::new(what).hint("put a folder into an archive first")));
        }
        let head = self.name().map(|name| envelope::head(&name)).unwrap_or_default();
        let length = head.len() as u64 + about.len();
        let mut talk = self.reach.connect()?;
        if !self.quiet {
            talk.note_neighbour(&to)?;
        }
        let mut journey = Journey::new(!self.quiet && io::stderr().is_terminal(), length);
        let opening = Request::Send { send: 1, to: self.to.clone(), length, options: self.options() };
        talk.ask(Message { head: opening, body: head.clone() })?;
        let mut handed = head.len() as u64;
        while handed < length {
            let body = self.next_piece(&mut file, length - handed)?;
            handed += body.len() as u64;
            talk.ask(Message { head: Request::Piece { send: 1 }, body })?;
            journey.show("stored", handed);
            while let Some(said) = talk.hear_within(Duration::ZERO)? {
                refused(&said.head)?;
            }
        }
        let end = self.follow(&mut talk, &mut journey)?;
        journey.clear();
        self.reach.show(&end, || end["said"].as_str().unwrap_or_default().to_owned())
    }

    fn is_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    /// The file. A bundle begins with its length, so standard input is read to its end first.
    fn open(&self) -> Result<File, Failure> {
        if !self.is_stdin() {
            return File::open(&self.file).map_err(|error| self.unreadable(&error));
        }
        let spooled = || {
            let path = std::env::temp_dir().join(format!("longwire-send-{}", std::process::id()));
            let mut file =
                OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
            // It is this process's alone, and gone with it.
            std::fs::remove_file(&path)?;
            io::copy(&mut io::stdin().lock(), &mut file)?;
            file.rewind()?;
            Ok(file)
        };
        spooled().map_err(|error: io::Error| {
            let what = format!(
                "cannot keep standard input in {}: {error}\nNothing was sent.",
                std::env::temp_dir().display()
            );
            Failure::Failed(Error::new(what).hint("$TMPDIR names a folder with more space"))
        })
    }

    /// The name that it arrives under.
    fn name(&self) -> Option<String> {
        if self.raw || (self.is_stdin() && self.name.is_none()) {
            return None;
        }
        let own = || self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(self.name.clone().unwrap_or_else(own))
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        let what = format!("cannot read {}: {error}\nNothing was sent.", self.file.display());
        Failure::Failed(Error::new(what).hint("check the path"))
    }

    fn options(&self) -> Options {
        Options {
            priority: match self.priority {
                Urgency::Bulk => Priority::Bulk,
                Urgency::Normal => Priority::Normal,
                Urgency::Expedited => Priority::Expedited,
            },
            lifetime_s: self.lifetime,
            report_delivery: self.wait,
            report_deletion: self.wait,
            bundle_version: self.bundle_version,
            custody: self.custody,
            ..Options::default()
        }
    }

    fn next_piece(&self, file: &mut File, left: u64) -> Result<Bytes, Failure> {
        let mut piece = BytesMut::zeroed(PIECE_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX)));
        let read = file.read(&mut piece).map_err(|error| self.unreadable(&error))?;
        if read == 0 {
            let what =
                format!("{} has become shorter while it was read; nothing was sent", self.file.display());
            return Err(Failure::Failed(Error::new(what).hint("send it again when it is at rest")));
        }
        piece.truncate(read);
        Ok(piece.freeze())
    }

    /// Waits for the node to have it, and for the destination if that was asked for.
    fn follow(&self, talk: &mut Talk, journey: &mut Journey) -> Result<Value, Failure> {
        let mut accepted = None;
        let mut said_so = false;
        loop {
            let Some(said) = talk.hear_within(BETWEEN)? else { continue };
            refused(&said.head)?;
            match said.head {
                Reply::Accepted { source, created, .. } => {
                    let id = format!("{source}@{}-{}", created.0, created.1);
                    if !self.wait {
                        let words = format!("the node has it: {id}");
                        return Ok(json!({"bundle": id, "delivered": Value::Null, "said": words}));
                    }
                    accepted = Some(id);
                    journey.restart();
                }
                Reply::Progress { up_to, .. } => journey.show("with the next hop", up_to),
                Reply::Sent { .. } if !said_so => {
                    said_so = true;
                    journey.clear();
                    if !self.quiet {
                        talk_of_receipt();
                    }
                }
                Reply::Report { status, reporter, reason, .. } => {
                    let id = accepted.clone().unwrap_or_default();
                    if status == "delivered" {
                        let words = format!("delivered, says {reporter}: {id}");
                        return Ok(
                            json!({"bundle": id, "delivered": true, "reporter": reporter, "said": words}),
                        );
                    }
                    if status == "deleted" {
                        journey.clear();
                        let what = format!("{reporter} has deleted it (reason {reason})");
                        let hint = "RFC 9171 section 9.1 lists the reasons; 1 is an expired lifetime";
                        return Err(Failure::Failed(Error::new(what).hint(hint)));
                    }
                }
                _ => {}
            }
        }
    }
}

fn talk_of_receipt() {
    talk(format_args!(
        "all of it is with the next hop; waiting for the receipt (the destination has to send them: [agent.reports] delivery)"
    ));
}

/// A send that failed.
fn refused(reply: &Reply) -> Result<(), Failure> {
    match reply {
        Reply::Failed { reason, .. } => Err(Failure::Failed(
            Error::new(format!("it was not sent: {reason}")).hint("`longwire status` tells how the node is"),
        )),
        _ => Ok(()),
    }
}

impl Journey {
    fn new(visible: bool, length: u64) -> Self {
        let now = Instant::now();
        Journey { visible, began: now, shown_at: now + BEFORE_FIRST - BETWEEN, width: 0, length }
    }

    fn restart(&mut self) {
        *self = Journey { width: self.width, ..Journey::new(self.visible, self.length) };
    }

    fn show(&mut self, what: &str, done: u64) {
        let now = Instant::now();
        if !self.visible || now < self.shown_at + BETWEEN {
            return;
        }
        self.shown_at = now;
        let line = line(what, done, self.length, now - self.began);
        let width = self.width;
        let _ = write!(io::stderr(), "\r{line:width$}");
        self.width = line.chars().count();
    }

    fn clear(&mut self) {
        let width = std::mem::take(&mut self.width);
        if width > 0 {
            let _ = write!(io::stderr(), "\r{:width$}\r", "");
        }
    }
}

/// `1.2 MB of 9.9 MB stored, 12 %, 400.0 kB/s, 22 s left`.
fn line(what: &str, done: u64, length: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = length.saturating_sub(done) as f64 / rate.max(1e-9);
    let percent = done * 100 / length.max(1);
    let (done, length) = (bytes(done), bytes(length));
    format!("{done} of {length} {what}, {percent} %, {}/s, {} left", bytes(rate as u64), seconds(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_have_units() {
        assert_eq!(lifetime("20min"), Ok(1200.0));
        assert_eq!(lifetime("1.5h"), Ok(5400.0));
        assert!(lifetime("20").is_err() && lifetime("0s").is_err() && lifetime("-1s").is_err());
    }

    #[test]
    fn the_line_says_how_far_how_fast_and_how_long_still() {
        let line = line("stored", 1_200_000, 10_000_000, Duration::from_secs(3));
        assert_eq!(line, "1.2 MB of 10.0 MB stored, 12 %, 400.0 kB/s, 22 s left");
    }
}
