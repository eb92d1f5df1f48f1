//! `longwire recv`.

use crate::failure::CommandFailure;
use crate::node_connection::{NodeConversation, NodeOptions, StartingNodeOptions, bytes, print};
use clap::Args;
use longwire_node::inbox::{self, FileOrigin, FileStart};
use longwire_node::message::{Message, Reply, Request};
use longwire_settings::error::Error;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes that are read at once.
const READ_BYTES: u32 = 256 * 1024;

/// Receive files into a folder, under the names that they were sent with
///
/// Takes what waits, or the first that comes; with --follow it goes on. A file appears whole or not at all, and the node
/// forgets it only once it is safe here. No file that is there is replaced.
#[derive(Debug, Args)]
pub(crate) struct Recv {
    /// The folder
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// The endpoint to receive for: files, or in full dtn://bob/files, ipn:7.1 [default: files, or 1 with ipn]
    #[arg(long = "for", value_name = "EID")]
    endpoint: Option<String>,
    /// Go on with what comes later
    #[arg(long)]
    follow: bool,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    starting: StartingNodeOptions,
    #[command(flatten)]
    reach: NodeOptions,
}

#[derive(Debug)]
struct WaitingDelivery {
    number: u64,
    origin: FileOrigin,
    length: u64,
}

impl Recv {
    pub(crate) fn run(&self) -> Result<(), CommandFailure> {
        inbox::make(&self.folder).map_err(|error| self.failed(&error))?;
        inbox::tidy(&self.folder);
        let mut talk = self.reach.connect_to_starting(&self.starting, self.quiet)?;
        let endpoint = self.endpoint(&mut talk)?;
        talk.ask(Request::Register { endpoint, inline_bytes: 0 })?;
        let endpoint = talk.wait(|said| match said.head {
            Reply::Registered { endpoint } => Some(endpoint),
            _ => None,
        })?;
        let mut waiting = VecDeque::new();
        let mut received = 0;
        let mut said_so = self.quiet;
        loop {
            if let Some(delivery) = waiting.pop_front() {
                self.receive(&mut talk, delivery, &mut waiting)?;
                received += 1;
            } else if received > 0 && !self.follow {
                self.find_waiting(&mut talk, &mut waiting)?;
                if waiting.is_empty() {
                    return Ok(());
                }
            } else if !said_so {
                self.find_waiting(&mut talk, &mut waiting)?;
                if waiting.is_empty() {
                    said_so = true;
                    let end = if self.follow { "Ctrl-C ends it" } else { "the first ends it, or Ctrl-C" };
                    crate::output::talk(format_args!("waiting for what comes for {endpoint}; {end}"));
                }
            } else if let Some(said) = talk.hear_within(Duration::from_secs(3600))? {
                waiting.extend(delivery(&said));
            }
        }
    }

    /// Deliveries that wait with the node: one is said before the answer to a question.
    fn find_waiting(
        &self,
        talk: &mut NodeConversation,
        waiting: &mut VecDeque<WaitingDelivery>,
    ) -> Result<(), CommandFailure> {
        talk.ask(Request::Status)?;
        talk.wait(|said| {
            waiting.extend(delivery(&said));
            matches!(said.head, Reply::Status { .. }).then_some(())
        })
    }

    fn endpoint(&self, talk: &mut NodeConversation) -> Result<String, CommandFailure> {
        if let Some(endpoint) = &self.endpoint {
            return Ok(endpoint.clone());
        }
        let is_ipn = talk.status()?.node.starts_with("ipn:");
        Ok(if is_ipn { "1" } else { "files" }.to_owned())
    }

    fn failed(&self, error: &io::Error) -> CommandFailure {
        let what = format!(
            "cannot write to {}: {error}\nThe node still has what was not received.",
            self.folder.display()
        );
        CommandFailure::Failed(Error::new(what).hint("make space or name another folder, and receive again"))
    }

    fn receive(
        &self,
        talk: &mut NodeConversation,
        delivery: WaitingDelivery,
        waiting: &mut VecDeque<WaitingDelivery>,
    ) -> Result<(), CommandFailure> {
        let begun =
            inbox::begin(&self.folder, delivery.origin.clone()).map_err(|error| self.failed(&error))?;
        let WaitingDelivery { number, origin, length } = delivery;
        if let FileStart::Arriving(mut file) = begun {
            let mut at = 0;
            while at < length {
                talk.ask(Request::Read { delivery: number, offset: at, length: READ_BYTES })?;
                let end = length.min(at + u64::from(READ_BYTES));
                while at < end {
                    let data = talk.wait(|said| match said.head {
                        Reply::Data { delivery, offset } if delivery == number && offset == at => {
                            Some(Some(said.body))
                        }
                        Reply::Gone { delivery, .. } if delivery == number => Some(None),
                        _ => {
                            waiting.extend(self::delivery(&said));
                            None
                        }
                    })?;
                    let Some(data) = data else {
                        let what = "its lifetime ended while it was received; nothing appeared";
                        return Err(CommandFailure::Failed(
                            Error::new(what).hint("the sender may give it longer"),
                        ));
                    };
                    file.write(&data).map_err(|error| self.failed(&error))?;
                    at += data.len() as u64;
                }
            }
            let path = file.finish().map_err(|error| self.failed(&error))?;
            self.tell(&path, &origin, length)?;
        }
        talk.ask(Request::Taken { delivery: number })?;
        talk.wait(|said| match said.head {
            Reply::Gone { delivery, .. } if delivery == number => Some(()),
            _ => {
                waiting.extend(self::delivery(&said));
                None
            }
        })?;
        inbox::forget(&self.folder, &origin);
        Ok(())
    }

    /// One line a file.
    fn tell(&self, path: &std::path::Path, origin: &FileOrigin, length: u64) -> Result<(), CommandFailure> {
        let value: Value = json!({"file": path, "source": origin.source, "created": origin.created, "payload_bytes": length});
        match self.reach.json {
            true => print(&value.to_string()),
            false => print(&format!("{} ({}) from {}", path.display(), bytes(length), origin.source)),
        }
    }
}

fn delivery(said: &Message<Reply>) -> Option<WaitingDelivery> {
    match &said.head {
        Reply::Delivered { delivery, source, created, length, .. } => Some(WaitingDelivery {
            number: *delivery,
            origin: FileOrigin { source: source.clone(), created: *created },
            length: *length,
        }),
        _ => None,
    }
}
