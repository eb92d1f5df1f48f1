//! `longwire send`.

use crate::endpoint;
use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::meter::{Meter, Unit};
use crate::node_connection::{NodeConversation, StartingNodeOptions};
use crate::output::talk;
use bytes::{Bytes, BytesMut};
use clap::Args;
use longwire_node::envelope;
use longwire_node::message::{Message, MessageOptions, PART_BYTES, Reply, Request};
use longwire_node::view::State;
use longwire_proto::service::{BundleName, BundleVersion, Priority};
use longwire_settings::error::Error;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest wait for a reply before it is checked whether to ask again.
const REPLY_WAIT_MAX: Duration = Duration::from_millis(250);
/// Interval between requests for the state of the bundle.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(500);

/// Send a file; the node has stored it when the command returns
///
/// With --wait, the command returns when the destination confirms delivery. Interrupting it does not cancel the file.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// File to send; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Destination endpoint: dtn://bob/files, ipn:7.1
    #[arg(long, value_name = "EID")]
    to: String,
    /// Wait for the delivery report of the destination
    #[arg(long)]
    wait: bool,
    /// Lifetime of the bundle: 90s, 20min, 12h, 3d
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = flag::time_above_zero)]
    lifetime: Duration,
    /// Priority
    #[arg(long, value_parser = flag::explained(PRIORITIES), default_value = "normal")]
    priority: Priority,
    /// Version of the Bundle Protocol; use 6 for DTN2, ION and IBR-DTN [default: as the node is configured]
    #[arg(long, value_name = "6|7", value_parser = version)]
    bundle_version: Option<BundleVersion>,
    /// Request custody transfer: this node keeps the bundle until another node takes custody (version 6)
    #[arg(long)]
    custody: bool,
    /// File name at the destination [default: the name of the file; none for standard input]
    #[arg(long, value_name = "NAME", conflicts_with = "raw")]
    name: Option<String>,
    /// Send the content only, without the file name, for programs other than Longwire
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    node: StartingNodeOptions,
}

const PRIORITIES: flag::ExplainedWords<Priority> = &[
    ("bulk", Priority::Bulk, "Sent when no other bundle is waiting"),
    ("normal", Priority::Normal, "Default priority"),
    ("expedited", Priority::Expedited, "Sent before all others"),
];

fn version(text: &str) -> Result<BundleVersion, String> {
    match text {
        "6" => Ok(BundleVersion::V6),
        "7" => Ok(BundleVersion::V7),
        _ => Err("must be 6 or 7".into()),
    }
}

impl Send {
    pub(crate) fn run(&self) -> CommandResult {
        let to = endpoint::check(&self.to)?;
        let mut file = self.open()?;
        let about = file.metadata().map_err(|error| self.unreadable(&error))?;
        if !about.is_file() {
            let what = format!("{} is not a file", self.file.display());
            return Err(CommandFailure::usage(what, "to send a folder, archive it first"));
        }
        let head = self.name().map(|name| envelope::head(&name)).unwrap_or_default();
        let length = head.len() as u64 + about.len();
        let mut talk = self.node.connect()?;
        if !self.node.quiet {
            talk.note_neighbour(&to)?;
        }
        let mut stored = Meter::new(self.node.quiet, Unit::Bytes("stored"));
        let opening = Request::Send { send: 1, to: self.to.clone(), length, options: self.options() };
        talk.ask(Message { head: opening, body: head.clone() })?;
        let mut handed = head.len() as u64;
        // A refusal ends the send early; any other reply, such as one that overtakes the end of this loop, is for `follow`.
        let mut early = None;
        while handed < length {
            let body = self.next_piece(&mut file, length - handed)?;
            handed += body.len() as u64;
            talk.ask(Message { head: Request::Piece { send: 1 }, body })?;
            stored.show(handed, length);
            if early.is_none() {
                early = talk.hear_within(Duration::ZERO)?;
                early.iter().try_for_each(|said| refused(&said.head))?;
            }
        }
        let end = self.follow(&mut talk, stored, length, early)?;
        self.node.reach.show(&end, || end["said"].as_str().unwrap_or_default().to_owned())
    }

    fn is_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    /// Opens the file. The node needs the length first, so standard input is read to its end into a temporary file, and so is
    /// a file that has content but reports no length, such as those in /proc.
    fn open(&self) -> CommandResult<File> {
        if self.is_stdin() {
            return Self::spool("standard input", io::stdin().lock());
        }
        let unreadable = |error| self.unreadable(&error);
        let mut file = File::open(&self.file).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        if !about.is_file() || about.len() > 0 {
            return Ok(file);
        }
        let mut first = [0];
        match file.read(&mut first).map_err(unreadable)? {
            0 => Ok(file),
            _ => Self::spool(&self.file.display().to_string(), (&first[..]).chain(file)),
        }
    }

    /// Copies what has no known length into a temporary file.
    fn spool(name: &str, mut from: impl Read) -> CommandResult<File> {
        let mut spooled = || {
            let path = std::env::temp_dir().join(format!("longwire-send-{}", std::process::id()));
            let mut file =
                OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
            // Removed at once: no other process can open the file, and it goes with this process.
            std::fs::remove_file(&path)?;
            io::copy(&mut from, &mut file)?;
            file.rewind()?;
            Ok(file)
        };
        spooled().map_err(|error: io::Error| {
            let what = format!(
                "cannot store {name} in {}: {error}\nNothing was sent.",
                std::env::temp_dir().display()
            );
            CommandFailure::failed(what, "set $TMPDIR to a folder with more space")
        })
    }

    /// Returns the file name at the destination; `None` if only the content is sent.
    fn name(&self) -> Option<String> {
        if self.raw || (self.is_stdin() && self.name.is_none()) {
            return None;
        }
        let own = || self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(self.name.clone().unwrap_or_else(own))
    }

    fn unreadable(&self, error: &io::Error) -> CommandFailure {
        let what = format!("cannot read {}: {error}\nNothing was sent.", self.file.display());
        CommandFailure::failed(what, "check the path")
    }

    fn options(&self) -> MessageOptions {
        MessageOptions {
            priority: self.priority,
            lifetime_s: self.lifetime.as_secs_f64(),
            report_delivery: self.wait,
            report_deletion: self.wait,
            bundle_version: self.bundle_version,
            custody: self.custody,
            note_name: !self.node.quiet,
            ..MessageOptions::default()
        }
    }

    /// Notes that the file name precedes the content, because unknown software may not remove it.
    fn talk_of_name(&self) {
        talk(format_args!(
            "note: the bundle starts with the file name, which Longwire removes on arrival; the software at {} is not known",
            self.to
        ));
        talk(format_args!("hint: use --raw to send the content only"));
    }

    fn next_piece(&self, file: &mut File, left: u64) -> CommandResult<Bytes> {
        let mut piece = BytesMut::zeroed(left.min(PART_BYTES.into()) as usize);
        let read = file.read(&mut piece).map_err(|error| self.unreadable(&error))?;
        if read == 0 {
            let what = format!("{} was truncated while being read; nothing was sent", self.file.display());
            return Err(CommandFailure::failed(what, "send it again when no program is writing to it"));
        }
        piece.truncate(read);
        Ok(piece.freeze())
    }

    /// Waits until the node has stored the bundle and, with `--wait`, until the destination reports its delivery.
    fn follow(
        &self,
        talk: &mut NodeConversation,
        stored: Meter,
        length: u64,
        mut early: Option<Message<Reply>>,
    ) -> CommandResult<Value> {
        let (name, name_may_stay) = loop {
            let said = if early.is_some() { early.take() } else { talk.hear_within(REPLY_WAIT_MAX)? };
            let Some(said) = said else { continue };
            refused(&said.head)?;
            if let Reply::Accepted { source, created, name_may_stay, .. } = said.head {
                break (BundleName { source, created }, name_may_stay);
            }
        };
        drop(stored);
        if name_may_stay {
            self.talk_of_name();
        }
        let id = name.to_string();
        let mut whereabouts = BundleProgress { name, ..BundleProgress::default() };
        if !self.wait {
            // The state is final once the node has looked for a route.
            while !self.node.quiet && whereabouts.is_open() {
                whereabouts.ask(talk)?;
                while whereabouts.asked {
                    if let Some(said) = talk.hear_all_within(REPLY_WAIT_MAX)? {
                        whereabouts.hear(&said.head);
                    }
                }
                if whereabouts.is_open() {
                    // The node looks for a route once the bundle is stored; no reply in between matters here.
                    talk.hear_all_within(Duration::from_millis(20))?;
                }
            }
            whereabouts.tell();
            let words = format!("queued as {id}");
            return Ok(json!({"bundle": id, "delivered": Value::Null, "said": words}));
        }
        let mut sent = Meter::new(self.node.quiet, Unit::Bytes("transmitted"));
        let mut said_so = false;
        loop {
            if !said_so && !self.node.quiet {
                whereabouts.ask_again(talk)?;
            }
            let Some(said) = talk.hear_all_within(REPLY_WAIT_MAX)? else { continue };
            refused(&said.head)?;
            if whereabouts.hear(&said.head) {
                if whereabouts.has_news() {
                    sent.clear();
                    whereabouts.tell();
                }
                if !said_so {
                    sent.show(whereabouts.transmitted, length);
                }
                continue;
            }
            match said.head {
                Reply::Error { what, hint, .. } => return Err(Error { what, hint }.into()),
                Reply::Progress { up_to, .. } if !said_so => {
                    whereabouts.transmitted = whereabouts.transmitted.max(up_to);
                    sent.show(whereabouts.transmitted, length);
                }
                Reply::Sent { .. } if !said_so => {
                    said_so = true;
                    sent.clear();
                    if !self.node.quiet {
                        talk_of_receipt();
                    }
                }
                Reply::Report { status, reporter, reason, .. } => {
                    if status == "delivered" {
                        let words = format!("delivered {id} (reported by {reporter})");
                        return Ok(
                            json!({"bundle": id, "delivered": true, "reporter": reporter, "said": words}),
                        );
                    }
                    if status == "deleted" {
                        let what = format!("deleted by {reporter} (reason code {reason})");
                        let hint =
                            "see RFC 9171 section 9.5 for reason codes; 1 means that the lifetime expired";
                        return Err(CommandFailure::failed(what, hint));
                    }
                }
                _ => {}
            }
        }
    }
}

/// State of an accepted bundle at the node: how much of it was sent, and why the rest is still there.
#[derive(Default)]
struct BundleProgress {
    name: BundleName,
    /// True while a request is outstanding.
    asked: bool,
    asked_at: Option<Instant>,
    transmitted: u64,
    /// Last known state; `None` before the first answer.
    state: Option<State>,
    why: String,
    /// State at the last call of `tell`.
    told: Option<State>,
    /// True if the node does not hold the bundle.
    is_gone: bool,
}

impl BundleProgress {
    /// True while the node has not looked for a route yet.
    fn is_open(&self) -> bool {
        !self.is_gone && matches!(self.state, None | Some(State::Arriving | State::Storing))
    }

    fn ask(&mut self, talk: &mut NodeConversation) -> CommandResult {
        talk.ask(Request::Bundle(self.name.clone()))?;
        (self.asked, self.asked_at) = (true, Some(Instant::now()));
        Ok(())
    }

    /// Asks again after `BETWEEN_QUESTIONS`, unless a request is outstanding.
    fn ask_again(&mut self, talk: &mut NodeConversation) -> CommandResult {
        let is_time = self.asked_at.is_none_or(|at| at.elapsed() >= BETWEEN_QUESTIONS);
        if self.asked || self.is_gone || !is_time { Ok(()) } else { self.ask(talk) }
    }

    /// Processes a reply; false if it does not answer a request for the state.
    fn hear(&mut self, said: &Reply) -> bool {
        match said {
            Reply::Bundles { page } if self.asked => {
                self.asked = false;
                let sum = page.bundles.iter().map(|bundle| bundle.transmitted_bytes).sum();
                self.transmitted = self.transmitted.max(sum);
                if let Some(bundle) = page.bundles.first() {
                    self.state = Some(bundle.state);
                    self.why.clone_from(&bundle.why);
                }
                self.is_gone = page.bundles.is_empty();
                true
            }
            // The node does not hold the bundle.
            Reply::Error { .. } if self.asked => {
                (self.asked, self.is_gone) = (false, true);
                true
            }
            _ => false,
        }
    }

    /// True if the bundle waits for a reason that has not been printed yet.
    fn has_news(&self) -> bool {
        let stands = matches!(
            self.state,
            Some(State::NoRoute | State::LinksDown | State::NoContact | State::BetterHop | State::Resting)
        );
        stands && self.told != self.state
    }

    /// Prints why the bundle waits, if that is news.
    fn tell(&mut self) {
        if self.has_news() && !self.is_gone {
            talk(format_args!("note: waiting at this node: {}", self.why));
        }
        self.told = self.state;
    }
}

fn talk_of_receipt() {
    talk(format_args!(
        "sent to the next hop; waiting for the delivery report (the destination must send reports: [agent.reports] delivery)"
    ));
}

/// Fails if the reply is that of a failed send.
fn refused(reply: &Reply) -> CommandResult {
    match reply {
        Reply::Failed { reason, .. } => Err(CommandFailure::failed(
            format!("not sent: {reason}"),
            "check the node with `longwire status`",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        send: Send,
    }

    fn opened(file: &str) -> (u64, Vec<u8>) {
        let command = Command::try_parse_from(["test", file, "--to", "dtn://bob/files"]).unwrap();
        let Ok(mut file) = command.send.open() else { panic!("{file} is readable") };
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        (file.metadata().unwrap().len(), content)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_reports_no_length_is_sent_with_its_content() {
        let path = "/proc/version";
        assert_eq!(std::fs::metadata(path).unwrap().len(), 0);
        let content = std::fs::read(path).unwrap();
        assert!(!content.is_empty());
        assert_eq!(opened(path), (content.len() as u64, content));
    }

    #[test]
    fn an_empty_file_stays_empty() {
        let path = std::env::temp_dir().join(format!("longwire-empty-{}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        assert_eq!(opened(path.to_str().unwrap()), (0, Vec::new()));
        std::fs::remove_file(path).unwrap();
    }
}
