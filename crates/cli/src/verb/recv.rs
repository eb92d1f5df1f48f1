//! `longwire recv`.

use crate::failure::{CommandFailure, CommandResult};
use crate::node_connection::{NodeConversation, StartingNodeOptions, bytes, print};
use clap::Args;
use longwire_node::inbox::{self, FileStart};
use longwire_node::message::{Message, PART_BYTES, Reply, Request};
use longwire_node::view::Signature;
use longwire_proto::service::BundleName;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Receive files into a folder, under their original names
///
/// Takes all waiting files, or waits for one; with --follow it keeps receiving. A file appears only when it is complete,
/// and the node keeps its copy until the file is stored here. Existing files are never overwritten.
#[derive(Debug, Args)]
pub(crate) struct Recv {
    /// Destination folder
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Endpoint to receive from: a name such as files, or an endpoint ID such as dtn://bob/files or ipn:7.1
    /// [default: files; 1 for ipn]
    #[arg(long = "for", value_name = "EID")]
    endpoint: Option<String>,
    /// Keep receiving until Ctrl-C
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    node: StartingNodeOptions,
}

#[derive(Debug)]
struct WaitingDelivery {
    number: u64,
    origin: BundleName,
    length: u64,
    signature: Option<Box<Signature>>,
}

impl Recv {
    pub(crate) fn run(&self) -> CommandResult {
        inbox::make(&self.folder).map_err(|error| self.failed(&error))?;
        inbox::tidy(&self.folder);
        let mut talk = self.node.connect()?;
        let endpoint = self.endpoint(&mut talk)?;
        talk.ask(Request::Register { endpoint, inline_bytes: 0 })?;
        let endpoint = talk.wait(|said| match said.head {
            Reply::Registered { endpoint } => Some(endpoint),
            _ => None,
        })?;
        let mut waiting = VecDeque::new();
        let mut received = 0;
        let mut said_so = self.node.quiet;
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
                    let end = if self.follow {
                        "press Ctrl-C to stop"
                    } else {
                        "stops after the first file, or on Ctrl-C"
                    };
                    crate::output::talk(format_args!("waiting for files addressed to {endpoint}; {end}"));
                }
            } else if let Some(said) = talk.hear_within(Duration::from_secs(3600))? {
                waiting.extend(delivery(&said));
            }
        }
    }

    /// Collects the deliveries that wait at the node. It reports them before it replies to a request.
    fn find_waiting(
        &self,
        talk: &mut NodeConversation,
        waiting: &mut VecDeque<WaitingDelivery>,
    ) -> CommandResult {
        talk.ask(Request::Status)?;
        talk.wait(|said| {
            waiting.extend(delivery(&said));
            matches!(said.head, Reply::Status { .. }).then_some(())
        })
    }

    fn endpoint(&self, talk: &mut NodeConversation) -> CommandResult<String> {
        if let Some(endpoint) = &self.endpoint {
            return Ok(endpoint.clone());
        }
        let is_ipn = talk.status()?.node.starts_with("ipn:");
        Ok(if is_ipn { "1" } else { "files" }.to_owned())
    }

    fn failed(&self, error: &io::Error) -> CommandFailure {
        let what = format!(
            "cannot write to {}: {error}\nThe node keeps the files that were not received.",
            self.folder.display()
        );
        CommandFailure::failed(what, "free some space or choose another folder, then run the command again")
    }

    fn receive(
        &self,
        talk: &mut NodeConversation,
        delivery: WaitingDelivery,
        waiting: &mut VecDeque<WaitingDelivery>,
    ) -> CommandResult {
        let begun =
            inbox::begin(&self.folder, delivery.origin.clone()).map_err(|error| self.failed(&error))?;
        let WaitingDelivery { number, origin, length, signature } = delivery;
        if let FileStart::Arriving(mut file) = begun {
            let mut at = 0;
            while at < length {
                talk.ask(Request::Read { delivery: number, offset: at, length: PART_BYTES })?;
                let end = length.min(at + u64::from(PART_BYTES));
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
                        let what = "the bundle expired while it was being received; no file was written";
                        return Err(CommandFailure::failed(
                            what,
                            "ask the sender to send it again with a longer --lifetime",
                        ));
                    };
                    file.write(&data).map_err(|error| self.failed(&error))?;
                    at += data.len() as u64;
                }
            }
            let path = file.finish().map_err(|error| self.failed(&error))?;
            self.tell(&path, &origin, length, signature.as_deref())?;
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

    /// Prints the line of a file.
    fn tell(
        &self,
        path: &std::path::Path,
        origin: &BundleName,
        length: u64,
        signature: Option<&Signature>,
    ) -> CommandResult {
        let value: Value = json!({"file": path, "source": origin.source, "created": origin.created, "payload_bytes": length, "signature": signature});
        match self.node.reach.json {
            true => print(&value.to_string()),
            false => {
                let signed = signature.map(|signature| format!("; signature {}", signature.words()));
                let signed = signed.unwrap_or_default();
                print(&format!("{} ({}) from {}{signed}", path.display(), bytes(length), origin.source))
            }
        }
    }
}

fn delivery(said: &Message<Reply>) -> Option<WaitingDelivery> {
    match &said.head {
        Reply::Delivered { delivery, source, created, length, signature, .. } => Some(WaitingDelivery {
            number: *delivery,
            origin: BundleName { source: source.clone(), created: *created },
            length: *length,
            signature: signature.clone(),
        }),
        _ => None,
    }
}
